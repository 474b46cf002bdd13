//! The columns of a table, as the header of an SSTable lists them.
//!
//! Cells name their column by its place here. The order is the one of the bytes in a row: columns of
//! one cell first, then multi-cell ones, each as the writer's family orders names.

use std::cmp::Ordering;

use crate::CqlType;
use crate::clustering::{PositionRef, Weight, compare_ends, compare_positions};
use crate::types::NumberOrder;
use crate::{Clustering, Position, Slice};

/// A static or regular column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The name's bytes: UTF-8, save in tables of compact storage with another comparator.
    pub name: Box<[u8]>,
    /// The type of its value.
    pub data_type: CqlType,
}

impl Column {
    /// The name as text; bytes that are not UTF-8 are replaced.
    pub fn name_text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.name)
    }
}

/// The columns of a table.
///
/// Invariant: in `statics` and `regulars`, columns of one cell come before multi-cell ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schema {
    /// The type of the partition key: a composite where it has several columns.
    pub partition_key: CqlType,
    /// The types of the clustering columns; descending ones are reversed types.
    pub clustering: Vec<CqlType>,
    /// One value a partition.
    pub statics: Vec<Column>,
    /// One value a row.
    pub regulars: Vec<Column>,
}

impl Schema {
    /// Puts the columns into Cassandra's order.
    pub fn new(
        partition_key: CqlType,
        clustering: Vec<CqlType>,
        mut statics: Vec<Column>,
        mut regulars: Vec<Column>,
    ) -> Schema {
        for columns in [&mut statics, &mut regulars] {
            columns.sort_by(|a, b| column_order(a).cmp(&column_order(b)));
        }
        Schema { partition_key, clustering, statics, regulars }
    }

    /// Takes the columns in the order in which a file lists them, which is its writer's: Cassandra and
    /// ScyllaDB order names that are not ASCII differently. Multi-cell columns still come last.
    pub fn as_listed(
        partition_key: CqlType,
        clustering: Vec<CqlType>,
        mut statics: Vec<Column>,
        mut regulars: Vec<Column>,
    ) -> Schema {
        for columns in [&mut statics, &mut regulars] {
            columns.sort_by_key(|column| column.data_type.is_multi_cell());
        }
        Schema { partition_key, clustering, statics, regulars }
    }

    /// The static or the regular columns.
    pub fn columns(&self, of_static_row: bool) -> &[Column] {
        if of_static_row { &self.statics } else { &self.regulars }
    }

    /// Whether rows are counters.
    pub fn is_counter(&self) -> bool {
        self.statics.iter().chain(&self.regulars).any(|column| column.data_type.is_counter())
    }

    /// The order of two positions in a partition.
    pub fn compare(&self, a: &Position, b: &Position) -> Ordering {
        self.compare_views(a.as_view(), b.as_view())
    }

    /// The same of borrowed ones.
    pub fn compare_views(&self, a: PositionRef<'_>, b: PositionRef<'_>) -> Ordering {
        compare_positions(&self.clustering, a, b)
    }

    /// A number that no greater position has a smaller one than: what a search compares first. Equal numbers say nothing.
    ///
    /// ```text
    /// 0             before all rows
    /// 1             null in the first column
    /// 2 … MAX − 1   by the value of the first column
    /// MAX           behind all rows
    /// ```
    #[inline]
    pub fn rank(&self, position: &Position) -> u64 {
        // Between rows of one value it is among them.
        let weight = if position.prefix.len() > 1 { Weight::At } else { position.weight };
        self.rank_of(position.prefix.values.first().map(Option::as_deref), weight)
    }

    /// The same of a position of which this is the first value, if it has one. The weight is that beside the value.
    #[inline]
    pub fn rank_of(&self, first: Option<Option<&[u8]>>, weight: Weight) -> u64 {
        match (first, &*self.clustering) {
            (Some(Some(value)), [data_type, ..]) => {
                data_type.rank_beside(value, weight).clamp(2, u64::MAX - 1)
            }
            (Some(None), _) => 1,
            _ if weight == Weight::Before => 0,
            _ => u64::MAX,
        }
    }

    /// The same of the row with these values in all clustering columns: no more than of the positions behind it, and no less
    /// than of those before. Who ranks many has the [order](Schema::number_order) of the first column at hand.
    #[inline]
    pub fn rank_of_row(&self, order: Option<NumberOrder>, row: &[&[u8]]) -> u64 {
        debug_assert_eq!(order, self.number_order(), "an order of another table");
        match (row, &*self.clustering) {
            ([value, ..], [data_type, ..]) => {
                data_type.rank_beside_in(order, value, Weight::At).clamp(2, u64::MAX - 1)
            }
            _ => u64::MAX,
        }
    }

    /// The order of the values of the first clustering column, if they are whole numbers.
    pub fn number_order(&self) -> Option<NumberOrder> {
        self.clustering.first()?.number_order()
    }

    /// Where a position stands beside the row with these values in all clustering columns.
    // Searches do little else: a call would take longer than comparing two numbers.
    #[inline(always)]
    pub fn compare_to_row(&self, position: &Position, row: &[&[u8]]) -> Ordering {
        if let ([data_type, ..], [Some(own)], [other]) = (&*self.clustering, &*position.prefix.values, row) {
            return data_type.compare(own, other).then(position.weight.cmp(&Weight::At));
        }
        self.compare_any_to_row(position, row)
    }

    fn compare_any_to_row(&self, position: &Position, row: &[&[u8]]) -> Ordering {
        for ((own, other), data_type) in position.prefix.values.iter().zip(row).zip(&self.clustering) {
            let order = own.as_ref().map_or(Ordering::Less, |own| data_type.compare(own, other));
            if order.is_ne() {
                return order;
            }
        }
        compare_ends((position.prefix.len(), position.weight), (row.len(), Weight::At))
    }

    /// Whether no row can be in the slice: it ends before it begins, or where it begins, beside a row.
    pub fn is_empty_slice(&self, slice: &Slice) -> bool {
        match self.compare(&slice.start, &slice.end) {
            Ordering::Less => false,
            Ordering::Equal => slice.start.weight != Weight::At,
            Ordering::Greater => true,
        }
    }

    /// Whether nothing of a partition's rows is before the first or behind the second of these.
    pub fn is_all(&self, (start, end): (&Position, &Position)) -> bool {
        let is_at = |position: &Position, edge: Position| self.compare(position, &edge).is_eq();
        is_at(start, Position::start()) && is_at(end, Position::end())
    }

    /// The key of the row that a slice is of, if it is a slice of one row: a full clustering key without nulls.
    pub fn row_of<'a>(&self, slice: &'a Slice) -> Option<&'a Clustering> {
        let (start, end) = (&slice.start, &slice.end);
        let is_full = |prefix: &Clustering| prefix.len() == self.clustering.len();
        let is_row = is_full(&start.prefix)
            && is_full(&end.prefix)
            && start.weight != Weight::After
            && end.weight != Weight::Before
            && start.prefix.values.iter().all(Option::is_some)
            && self.compare_rows(&start.prefix, &end.prefix).is_eq();
        is_row.then_some(&start.prefix)
    }

    /// The order of two rows of a partition.
    pub fn compare_rows(&self, a: &Clustering, b: &Clustering) -> Ordering {
        let at = |prefix| PositionRef { prefix, weight: Weight::At };
        compare_positions(&self.clustering, at(a), at(b))
    }

    /// Where a row stands relative to a position.
    pub fn compare_row(&self, row: &Clustering, position: &Position) -> Ordering {
        let at = PositionRef { prefix: row, weight: Weight::At };
        compare_positions(&self.clustering, at, position.as_view())
    }
}

/// Simple columns before multi-cell ones, then by name: by its first six bytes, the first of them with
/// its top bit flipped so that ASCII comes last, then by all of its bytes.
fn column_order(column: &Column) -> (bool, [u8; 6], &[u8]) {
    let mut prefix = [0; 6];
    for (to, from) in prefix.iter_mut().zip(&column.name) {
        *to = *from;
    }
    prefix[0] ^= 0x80;
    (column.data_type.is_multi_cell(), prefix, &column.name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Bytes;

    fn columns(names: &[(&str, &str)]) -> Vec<Column> {
        let column = |&(name, of): &(&str, &str)| Column {
            name: name.as_bytes().into(),
            data_type: CqlType::parse(of).unwrap(),
        };
        names.iter().map(column).collect()
    }

    fn names(columns: &[Column]) -> Vec<String> {
        columns.iter().map(|column| column.name_text().into_owned()).collect()
    }

    #[test]
    fn names_that_are_not_ascii_come_first() {
        let listed = columns(&[
            ("b", "Int32Type"),
            ("l", "ListType(Int32Type)"),
            ("żó", "Int32Type"),
            ("a", "Int32Type"),
        ]);
        let sorted = Schema::new(CqlType::Int, vec![], vec![], listed.clone());
        assert_eq!(names(&sorted.regulars), ["żó", "a", "b", "l"]);
        let as_listed = Schema::as_listed(CqlType::Int, vec![], vec![], listed);
        assert_eq!(names(&as_listed.regulars), ["b", "żó", "a", "l"]);
    }

    /// Values of four bytes or less, whole and malformed, near each other.
    fn values() -> impl Strategy<Value = Option<Vec<u8>>> {
        let byte = || prop::sample::select(vec![0_u8, 1, 0x7f, 0x80, 0xff]);
        prop::option::weighted(0.9, prop::collection::vec(byte(), 0..6))
    }

    fn positions() -> impl Strategy<Value = Position> {
        let weights = prop::sample::select(vec![Weight::Before, Weight::At, Weight::After]);
        (prop::collection::vec(values(), 0..3), weights).prop_map(|(values, weight)| {
            let values = values.into_iter().map(|value| value.map(Bytes::from));
            let prefix = Clustering { values: values.collect() };
            // Nothing is at a prefix of no columns.
            let weight = if prefix.is_empty() && weight == Weight::At { Weight::After } else { weight };
            Position { prefix, weight }
        })
    }

    proptest! {
        #[test]
        fn a_greater_position_has_no_smaller_rank(a in positions(), b in positions()) {
            let reversed = |of: CqlType| CqlType::Reversed(Box::new(of));
            for clustering in [
                [CqlType::Int, CqlType::Int],
                [reversed(CqlType::Int), CqlType::Text],
                [CqlType::SmallInt, CqlType::Int],
                [reversed(CqlType::TinyInt), CqlType::Int],
                [CqlType::BigInt, reversed(CqlType::Int)],
                [CqlType::Text, CqlType::Int],
            ] {
                let schema = Schema::new(CqlType::Int, clustering.to_vec(), Vec::new(), Vec::new());
                let (order, ranks) = (schema.compare(&a, &b), schema.rank(&a).cmp(&schema.rank(&b)));
                prop_assert!(ranks.is_eq() || ranks == order, "{:?}: {:?}, {:?}", clustering, a, b);
                let row: Option<Vec<&[u8]>> = b.prefix.values.iter().map(Option::as_deref).collect();
                if let Some(row) = row.filter(|row| row.len() == clustering.len()) {
                    let rank = schema.rank_of_row(schema.number_order(), &row);
                    prop_assert_eq!(rank, schema.rank(&Position::at(b.prefix.clone())));
                }
            }
        }
    }
}
