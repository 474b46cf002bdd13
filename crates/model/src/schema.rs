//! The columns of a table, as the header of an SSTable lists them.
//!
//! Cells name their column by its place here. The order is the one of the bytes in a row: columns of
//! one cell first, then multi-cell ones, each by name.

use std::cmp::Ordering;

use crate::CqlType;
use crate::clustering::{PositionRef, Weight, compare_positions};
use crate::{Clustering, Position};

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
/// Invariant: `statics` and `regulars` are in the order that [`Schema::new`] gives them.
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
    /// Puts the columns into the order in which rows hold them.
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
        compare_positions(&self.clustering, a.as_view(), b.as_view())
    }

    /// Where a row stands relative to a position.
    pub fn compare_row(&self, row: &Clustering, position: &Position) -> Ordering {
        let at = PositionRef { prefix: row, weight: Weight::At };
        compare_positions(&self.clustering, at, position.as_view())
    }
}

/// Simple columns before multi-cell ones, then by the bytes of the name.
fn column_order(column: &Column) -> (bool, &[u8]) {
    (column.data_type.is_multi_cell(), &column.name)
}
