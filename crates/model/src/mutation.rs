//! What a write says of one partition.
//!
//! A mutation is a small partition by itself: applied to a table, it is merged with what is there by the rules of
//! [`crate::merge`]. Nothing depends on the order in which mutations are applied, save for counters.

use std::ops::Range;

use crate::time::{EXPIRED_LIVENESS_TTL, NO_DELETION_TIME, NO_TIMESTAMP};
use crate::{Cell, CellValue, Column, CqlType, DeletionTime, PartitionKey, Position, Row, Schema, Weight};

/// A deletion of all rows between two positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeTombstone {
    /// From here on; never at a row.
    pub start: Position,
    /// Up to here; never at a row.
    pub end: Position,
    /// What is deleted.
    pub deletion: DeletionTime,
}

/// A write to one partition.
///
/// Invariants, kept by whoever builds one:
/// 1. `rows` ascend by their clustering keys, each key once.
/// 2. Rows keep their own invariants, with columns of the table's schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutation {
    /// The partition.
    pub key: PartitionKey,
    /// The deletion of the whole partition.
    pub deletion: DeletionTime,
    /// The static row.
    pub static_row: Option<Row>,
    /// Clustered rows.
    pub rows: Vec<Row>,
    /// Deletions of ranges, in any order; they may overlap.
    pub range_tombstones: Vec<RangeTombstone>,
}

impl Mutation {
    /// A mutation that says nothing yet.
    pub fn new(key: PartitionKey) -> Mutation {
        Mutation {
            key,
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: Vec::new(),
            range_tombstones: Vec::new(),
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live()
            && self.static_row.as_ref().is_none_or(Row::is_empty)
            && self.rows.iter().all(Row::is_empty)
            && self.range_tombstones.is_empty()
    }

    /// Whether it is a write to a table of these columns, with all invariants: by who has it from elsewhere.
    ///
    /// # Errors
    /// In words, what is not so.
    pub fn check(&self, schema: &Schema) -> Result<(), String> {
        if !self.is_in_order(schema) {
            return Err("the rows of a mutation are out of order".to_owned());
        }
        if self.static_row.as_ref().is_some_and(|row| !row.is_empty()) && schema.statics.is_empty() {
            return Err("a static row of a table without static columns".to_owned());
        }
        let (keys, statics) = (schema.clustering.len(), self.static_row.iter());
        let ends = self.range_tombstones.iter().flat_map(|range| [&range.start, &range.end]);
        let is_whole = |row: &Row, len| row.clustering.len() == len;
        if !self.rows.iter().all(|row| is_whole(row, keys))
            || !statics.clone().all(|row| is_whole(row, 0))
            || ends.into_iter().any(|end| end.prefix.len() > keys)
        {
            return Err(format!("a clustering key of another number of values than {keys}"));
        }
        let ends = self.range_tombstones.iter().flat_map(|range| [&range.start.prefix, &range.end.prefix]);
        for clustering in self.rows.iter().map(|row| &row.clustering).chain(ends) {
            let values = schema.clustering.iter().zip(&clustering.values);
            let mut lengths =
                values.map(|(of, value)| value.as_ref().map_or(Ok(()), |value| check_len(of, value)));
            lengths.try_for_each(|len| len.map_err(|error| format!("a clustering key: {error}")))?;
        }
        let mut ends = self.range_tombstones.iter().flat_map(|range| [&range.start, &range.end]);
        if ends.any(|end| end.weight == Weight::At) {
            return Err("a range of rows ends beside them".to_owned());
        }
        check_deletion(&self.deletion)?;
        self.range_tombstones.iter().try_for_each(|range| check_deletion(&range.deletion))?;
        statics.clone().try_for_each(|row| check_cells(row, &schema.statics))?;
        self.rows.iter().try_for_each(|row| check_cells(row, &schema.regulars))
    }

    /// Whether invariant 1 holds, and every range tombstone begins before it ends.
    pub fn is_in_order(&self, schema: &Schema) -> bool {
        self.rows.windows(2).all(|pair| schema.compare_rows(&pair[0].clustering, &pair[1].clustering).is_lt())
            && self.range_tombstones.iter().all(|range| schema.compare(&range.start, &range.end).is_lt())
    }
}

/// The seconds since the epoch that files have room for.
const LOCAL_TIMES: Range<i64> = 0..u32::MAX as i64;

/// Whether a value has as many bytes as all of its type, where these stand without their length; none may be of a type, or not.
fn check_len(of: &CqlType, value: &[u8]) -> Result<(), String> {
    match of.fixed_len() {
        Some(len) if !value.is_empty() && value.len() != len => {
            Err(format!("{} bytes, where a value of type {} has {len}", value.len(), of.cql_name()))
        }
        _ => Ok(()),
    }
}

/// Whether a deletion was made at a time that there is.
fn check_deletion(deletion: &DeletionTime) -> Result<(), String> {
    let is_one = deletion.is_live() || LOCAL_TIMES.contains(&deletion.local_deletion_time);
    let what = || format!("a deletion of second {}, which there is not", deletion.local_deletion_time);
    if is_one { Ok(()) } else { Err(what()) }
}

/// Whether what lives for so many seconds can end, or was deleted, at this one.
fn check_end(ttl: u32, end: i64) -> Result<(), String> {
    if ttl > EXPIRED_LIVENESS_TTL {
        return Err(format!(
            "a time to live of {ttl} seconds, where there are {EXPIRED_LIVENESS_TTL} at the most"
        ));
    }
    // A dead marker has the time of its deletion.
    let began = if ttl == EXPIRED_LIVENESS_TTL { 0 } else { i64::from(ttl) };
    match end == NO_DELETION_TIME && ttl == 0 || (end >= began && LOCAL_TIMES.contains(&end)) {
        true => Ok(()),
        false => Err(format!("it ends in second {end}, which there is not behind {ttl} seconds")),
    }
}

/// Whether the cells of a row are of these columns, and in order. What else their values are does not matter: there may be some that are none of their type.
fn check_cells(row: &Row, columns: &[Column]) -> Result<(), String> {
    let type_of = |column: u16| match columns.get(usize::from(column)) {
        Some(column) => Ok(&column.data_type),
        None => Err(format!("a column of number {column}, where there are {}", columns.len())),
    };
    let mut before: Option<&Cell> = None;
    for cell in &row.cells {
        let of = type_of(cell.column)?;
        let wrong =
            |what: &str| format!("a cell of {}: {what}", columns[usize::from(cell.column)].name_text());
        match (of.cell_path_type(), &cell.path) {
            (None, None) | (Some(_), Some(_)) => {}
            _ => return Err(wrong("only elements of collections, and fields, have a path")),
        }
        let is_behind = |before: &Cell| match (of.cell_path_type(), &before.path, &cell.path) {
            _ if before.column != cell.column => before.column < cell.column,
            (Some(paths), Some(a), Some(b)) => paths.compare(a, b).is_lt(),
            _ => false,
        };
        if !before.is_none_or(is_behind) {
            return Err(wrong("it is out of order, or there twice"));
        }
        if cell.timestamp == NO_TIMESTAMP {
            return Err(wrong("its timestamp stands for none"));
        }
        check_end(cell.ttl, cell.local_deletion_time).map_err(|error| wrong(&error))?;
        before = Some(cell);
        if let (Some(paths), Some(path)) = (of.cell_path_type(), &cell.path) {
            check_len(paths, path).map_err(|error| wrong(&error))?;
        }
        let of = of.cell_value_type(cell.path.as_deref()).ok_or_else(|| wrong("there is no such field"))?;
        if let CellValue::Value(value) = &cell.value {
            check_len(of, value).map_err(|error| wrong(&error))?;
        }
    }
    check_end(row.liveness.ttl, row.liveness.local_expiration_time)
        .map_err(|error| format!("the marker of a row: {error}"))?;
    let of_columns = row.complex_deletions.iter().map(|(_, deletion)| deletion);
    of_columns.chain([&row.deletion, &row.shadowable]).try_for_each(check_deletion)?;
    let deleted = row.complex_deletions.iter().map(|(column, _)| *column);
    if !deleted.clone().is_sorted_by(|a, b| a < b) {
        return Err("deletions of columns are out of order, or there twice".to_owned());
    }
    deleted.into_iter().try_for_each(|column| match type_of(column)?.is_multi_cell() {
        true => Ok(()),
        false => Err("the deletion of a column of one cell".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::UserType;
    use crate::{Bytes, Clustering, Liveness};

    #[test]
    fn order_is_that_of_the_clustering_keys() {
        let schema = Schema::new(
            CqlType::Blob,
            vec![CqlType::Reversed(Box::new(CqlType::Blob))],
            Vec::new(),
            Vec::new(),
        );
        let row = |byte: u8| Row::new(std::iter::once(vec![byte]).collect::<Clustering>());
        let mut mutation = Mutation::new(PartitionKey::new(Bytes::default()));
        assert!(mutation.is_empty());
        mutation.rows = vec![row(2), row(1)];
        assert!(mutation.is_empty() && mutation.is_in_order(&schema));
        mutation.rows.reverse();
        assert!(!mutation.is_in_order(&schema));
        mutation.rows.clear();
        let at = |byte: u8| Position::before(row(byte).clustering);
        let deletion = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };
        mutation.range_tombstones = vec![RangeTombstone { start: at(2), end: at(1), deletion }];
        assert!(!mutation.is_empty() && mutation.is_in_order(&schema));
        mutation.range_tombstones[0].end = at(2);
        assert!(!mutation.is_in_order(&schema));
    }

    type Change<'a> = dyn Fn(&mut Mutation) + 'a;

    const DELETION: DeletionTime = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };

    /// A table with an `int`, a map and a user type of one field.
    fn table() -> Schema {
        let column = |name: &str, data_type| Column { name: name.as_bytes().into(), data_type };
        let fields = vec![("a".to_owned(), CqlType::Int)];
        let of = UserType { keyspace: "k".into(), name: "t".into(), fields, frozen: false };
        let regulars = vec![
            column("v", CqlType::Int),
            column("m", CqlType::map(CqlType::Int, CqlType::Text, false)),
            column("u", CqlType::Udt(Box::new(of))),
        ];
        Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), regulars)
    }

    fn cell(column: u16, path: Option<&[u8]>, value: &[u8]) -> Cell {
        Cell {
            column,
            timestamp: 7,
            ttl: 0,
            local_deletion_time: NO_DELETION_TIME,
            path: path.map(Bytes::from),
            value: CellValue::Value(Bytes::from(value)),
        }
    }

    fn int(value: i32) -> [u8; 4] {
        value.to_be_bytes()
    }

    /// What is said of a mutation of one row that is right but for a change.
    fn told(change: &Change<'_>) -> String {
        let mut mutation = Mutation::new(PartitionKey::new(Bytes::from(&int(1)[..])));
        let cells = vec![cell(0, None, &int(3)), cell(1, Some(&int(1)), b"a"), cell(1, Some(&int(2)), b"b")];
        let clustering = std::iter::once(int(5).to_vec()).collect::<Clustering>();
        mutation.rows.push(Row { cells, ..Row::new(clustering) });
        change(&mut mutation);
        mutation.check(&table()).err().unwrap_or_default()
    }

    fn are_told(wrong: &[(&str, &Change<'_>)]) {
        for (what, change) in wrong {
            assert!(told(change).contains(what), "{what}: {}", told(change));
        }
    }

    #[test]
    fn what_is_not_of_a_table_is_told() {
        assert_eq!(told(&|_| {}), "");
        // Neither is a value of its type, which keeps no file from being written.
        assert_eq!(told(&|m| m.rows[0].cells[1] = cell(1, Some(&int(1)), b"\xff")), "");
        assert_eq!(told(&|m| m.rows[0].cells[0] = cell(0, None, b"")), "");
        assert_eq!(told(&|m| m.rows[0].cells.push(cell(2, Some(&[0, 0]), &int(4)))), "");
        are_told(&[
            ("another number of values than 1", &|m| m.rows[0].clustering = Clustering::empty()),
            ("without static columns", &|m| {
                m.static_row = Some(Row { deletion: DELETION, ..Row::new(Clustering::empty()) });
            }),
            ("a cell of v: ", &|m| m.rows[0].cells[0] = cell(0, None, &[1, 2, 3])),
            ("a clustering key: 3 bytes, where a value of type int has 4", &|m| {
                m.rows[0].clustering = std::iter::once(vec![1, 2, 3]).collect::<Clustering>();
            }),
            ("have a path", &|m| m.rows[0].cells[1] = cell(1, None, b"a")),
            ("there twice", &|m| m.rows[0].cells.insert(0, cell(0, None, &int(4)))),
            ("out of order", &|m| m.rows[0].cells.swap(0, 1)),
            ("a column of number 3, where there are 3", &|m| m.rows[0].cells.push(cell(3, None, b""))),
            ("a cell of m: 3 bytes", &|m| m.rows[0].cells.push(cell(1, Some(&[1, 2, 3]), b""))),
            ("of one cell", &|m| m.rows[0].complex_deletions.push((0, DELETION))),
        ]);
    }

    #[test]
    fn a_field_that_is_not_there_is_told() {
        let put = |path: &[u8], value: CellValue| {
            told(&|m| m.rows[0].cells.push(Cell { value: value.clone(), ..cell(2, Some(path), &[]) }))
        };
        for path in [&[0xff, 0xff][..], &[0, 1], &[0], &[]] {
            let value = CellValue::Value(Bytes::from(&int(4)[..]));
            for value in [value, CellValue::Tombstone] {
                assert_eq!(put(path, value), "a cell of u: there is no such field", "{path:?}");
            }
        }
    }

    #[test]
    fn times_that_no_file_holds_are_told() {
        let ending = |ttl, end| Cell { ttl, local_deletion_time: end, ..cell(0, None, &int(3)) };
        assert_eq!(told(&|m| m.rows[0].cells[0] = ending(100, 100)), "");
        are_told(&[
            ("a time to live of 3000000000 seconds", &|m| m.rows[0].cells[0].ttl = 3_000_000_000),
            ("it ends in second 50", &|m| m.rows[0].cells[0] = ending(100, 50)),
            ("the marker of a row: it ends in second 4294967295", &|m| {
                let end = i64::from(u32::MAX);
                m.rows[0].liveness = Liveness { timestamp: 1, ttl: 5, local_expiration_time: end };
            }),
            ("a deletion of second -1", &|m| {
                m.deletion = DeletionTime { local_deletion_time: -1, ..DELETION };
            }),
        ]);
    }
}
