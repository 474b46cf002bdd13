//! Rows and cells, flat: one allocation for the cells of a row, however many collections it has.

use crate::{Bytes, Clustering, DeletionTime, Liveness};

/// A row: of a clustering key, or the static one of a partition.
///
/// Invariants, kept by whoever builds one:
/// 1. `cells` are ordered by column, and within a multi-cell column by path.
/// 2. `complex_deletions` are ordered by column, one a column at the most, and none is live.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The clustering key; empty for static rows and for tables without clustering columns.
    pub clustering: Clustering,
    /// The row marker.
    pub liveness: Liveness,
    /// The deletion of the whole row.
    pub deletion: DeletionTime,
    /// Whether `deletion` ends to count once a newer row marker is there (materialized views write it).
    pub shadowable: bool,
    /// Deletions of whole multi-cell columns, by the column's place in the schema.
    pub complex_deletions: Vec<(u16, DeletionTime)>,
    /// All cells of all columns.
    pub cells: Vec<Cell>,
}

impl Row {
    /// A row with nothing in it.
    pub fn new(clustering: Clustering) -> Row {
        Row {
            clustering,
            liveness: Liveness::NONE,
            deletion: DeletionTime::LIVE,
            shadowable: false,
            complex_deletions: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Whether the row says nothing at all: no marker, no deletion, no cell.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_none()
            && self.deletion.is_live()
            && self.cells.is_empty()
            && self.complex_deletions.is_empty()
    }

    /// Whether a `SELECT` at `now` (seconds) would find the row: by its marker or a live cell.
    pub fn is_live(&self, now: i64) -> bool {
        self.liveness.is_live(now) || self.cells.iter().any(|cell| cell.is_live(now))
    }
}

/// What a cell holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CellValue {
    /// A value, or an element of a collection, or a field of a user type. It may be empty.
    Value(Bytes),
    /// The cell was deleted.
    Tombstone,
}

/// A cell: one value of one column, with its own timestamp.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The column's place among the schema's static or regular columns.
    pub column: u16,
    /// Seconds to live; 0 where it does not expire.
    pub ttl: u32,
    /// Microseconds.
    pub timestamp: i64,
    /// When it expires or was deleted, in seconds; [`crate::time::NO_DELETION_TIME`] where neither.
    pub local_deletion_time: i64,
    /// Which element of a multi-cell column this is.
    pub path: Option<Bytes>,
    /// What it holds.
    pub value: CellValue,
}

impl Cell {
    /// Whether the cell is a deletion.
    pub fn is_tombstone(&self) -> bool {
        self.value == CellValue::Tombstone
    }

    /// Whether the cell has a time to live.
    pub fn is_expiring(&self) -> bool {
        self.ttl != 0
    }

    /// Whether a `SELECT` at `now` (seconds) would see the cell.
    pub fn is_live(&self, now: i64) -> bool {
        !self.is_tombstone() && (self.ttl == 0 || now < self.local_deletion_time)
    }
}
