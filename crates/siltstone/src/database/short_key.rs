//! Keys of one column and of one clustering column or none, as most tables have: shown as bytes, without a copy.
//!
//! What a table is changes under a lock. Its key does not change: who has but to look for a row in memory needs no lock for that.

use model::CqlType;

use super::keys::{LONGEST_KEY, is_key};
use super::shape::Shape;
use super::value::{Coded, NumberType, Value};

/// The columns of such a key.
#[derive(Debug)]
pub(super) struct ShortKey {
    partition: KeyColumn,
    clustering: Option<KeyColumn>,
}

#[derive(Debug)]
struct KeyColumn {
    data_type: CqlType,
    number: Option<NumberType>,
}

/// The bytes of a key, and of the clustering column if there is one.
pub(super) struct ShortBytes<'v> {
    pub(super) key: Coded<'v>,
    pub(super) row: Option<Coded<'v>>,
}

impl ShortKey {
    /// The key of a table; `None` if it has more columns.
    pub(super) fn of(shape: &Shape) -> Option<ShortKey> {
        let ([partition], types) = (shape.key_types(), &shape.model().clustering[..shape.clustering_len()])
        else {
            return None;
        };
        let clustering = match types {
            [] => None,
            [one] => Some(KeyColumn::new(one)),
            _ => return None,
        };
        let is_composite = matches!(shape.model().partition_key, CqlType::Composite(_));
        (!is_composite).then(|| ShortKey { partition: KeyColumn::new(partition), clustering })
    }

    /// The key of the one row of these values; `None` if there cannot be such a one.
    #[inline(always)]
    pub(super) fn bytes<'v>(
        &self,
        partition: &'v [Value],
        clustering: &'v [Value],
    ) -> Option<ShortBytes<'v>> {
        let [value] = partition else { return None };
        let key = self.partition.bytes(value).filter(|key| is_key(key))?;
        let row = match (clustering, &self.clustering) {
            ([], None) => None,
            ([value], Some(column)) => Some(column.bytes(value)?),
            _ => return None,
        };
        Some(ShortBytes { key, row })
    }
}

impl KeyColumn {
    fn new(data_type: &CqlType) -> KeyColumn {
        KeyColumn { data_type: data_type.clone(), number: NumberType::of(data_type) }
    }

    /// The bytes of a value, if it is one of the column.
    #[inline(always)]
    fn bytes<'v>(&self, value: &'v Value) -> Option<Coded<'v>> {
        match value.number(self.number) {
            Some(number) => Some(Coded::Number(number)),
            // What is too long for a key is refused by who has a name for it.
            None => {
                value.encode("", &self.data_type).ok()?.filter(|bytes| bytes.as_ref().len() <= LONGEST_KEY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;
    use crate::table_schema::TableSchema;

    fn shape(table: &str) -> Shape {
        let cql = format!("CREATE TABLE ks.t {table}");
        Shape::new(TableSchema::parse(Path::new(""), &cql, None).unwrap(), 0)
    }

    fn values() -> Vec<Value> {
        let text = |text: &str| Value::Text(text.to_owned());
        vec![
            Value::Null,
            Value::Integer(-7),
            Value::Integer(1 << 40),
            Value::Float(0.5),
            Value::Boolean(true),
            Value::Raw(vec![1, 2, 3, 4]),
            Value::Blob(vec![7; 16]),
            text(""),
            text("é"),
            text("5a1c395e-b41f-11e5-9f22-ba0be0483c18"),
            Value::Json(Box::new(json!([1, 2]))),
        ]
    }

    /// The bytes are those of the key that goes to a shard, and there are none where there is no such key.
    #[test]
    fn a_short_key_is_the_one_of_a_row() {
        let types =
            ["int", "bigint", "smallint", "float", "double", "text", "blob", "uuid", "frozen<list<int>>"];
        let mut keys = 0;
        for (partition, clustering) in types.iter().flat_map(|a| types.map(|b| (a, b))) {
            let of_one = format!("(k {partition} PRIMARY KEY, v int)");
            let of_row = format!("(k {partition}, c {clustering}, v int, PRIMARY KEY (k, c))");
            let tables = [&of_one, &of_row].into_iter().flat_map(|table| {
                ["", " WITH COMPACT STORAGE"].map(|options| shape(&format!("{table}{options}")))
            });
            let reversed = shape(&format!("{of_row} WITH CLUSTERING ORDER BY (c DESC)"));
            let shapes: Vec<Shape> = tables.chain([reversed]).collect();
            for (shape, key, row) in shapes.iter().flat_map(|shape| {
                values().into_iter().flat_map(move |key| {
                    let rows = values().into_iter().map(|row| vec![row]).chain([Vec::new()]);
                    rows.map(move |row| (shape, key.clone(), row))
                })
            }) {
                let short = ShortKey::of(shape).unwrap();
                let (expected, key) = (shape.row_key(std::slice::from_ref(&key), &row).ok(), [key]);
                let found = short.bytes(&key, &row);
                keys += usize::from(found.is_some());
                let found = found.map(|bytes| (bytes.key.to_vec(), bytes.row.map(|row| row.to_vec())));
                let expected =
                    expected.map(|key| (key.key.to_vec(), key.row.first().map(|row| row.to_vec())));
                assert_eq!(found, expected, "{key:?}, {row:?}");
            }
        }
        assert!(keys > 1000, "{keys}");
    }

    #[test]
    fn a_key_of_more_columns_is_none() {
        assert!(ShortKey::of(&shape("(a int, b int, PRIMARY KEY ((a, b)))")).is_none());
        assert!(ShortKey::of(&shape("(a int, b int, c int, PRIMARY KEY (a, b, c))")).is_none());
        let one = ShortKey::of(&shape("(a int PRIMARY KEY, b int)")).unwrap();
        let (a, two) = ([Value::Integer(7)], [Value::Integer(7), Value::Integer(8)]);
        assert!(one.bytes(&a, &[]).is_some());
        let of_bytes = ShortKey::of(&shape("(a blob PRIMARY KEY)")).unwrap();
        let is_key = |len| of_bytes.bytes(&[Value::Blob(vec![7; len])], &[]).is_some();
        assert_eq!([0, 1, 65_535, 65_536].map(is_key), [false, true, true, false]);
        assert!(
            one.bytes(&a, &a).is_none() && one.bytes(&two, &[]).is_none() && one.bytes(&[], &[]).is_none()
        );
    }
}
