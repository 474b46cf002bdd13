//! Rows and cells, flat: one allocation for the cells of a row, however many collections it has.

use crate::{Bytes, Clustering, DeletionTime, Liveness};

/// A row: of a clustering key, or the static one of a partition.
///
/// Invariants, kept by whoever builds one:
/// 1. `cells` are ordered by column, and within a multi-cell column by path.
/// 2. `complex_deletions` are ordered by column, one a column at the most, and none is live.
#[derive(PartialEq, Eq, Debug)]
pub struct Row {
    /// The clustering key; empty for static rows and for tables without clustering columns.
    pub clustering: Clustering,
    /// The row marker.
    pub liveness: Liveness,
    /// The deletion of the whole row.
    pub deletion: DeletionTime,
    /// A deletion of the whole row that a newer row marker lifts; updates of materialized views write it.
    pub shadowable: DeletionTime,
    /// Deletions of whole multi-cell columns, by the column's place in the schema.
    pub complex_deletions: Vec<(u16, DeletionTime)>,
    /// All cells of all columns.
    pub cells: Vec<Cell>,
}

impl Clone for Row {
    fn clone(&self) -> Row {
        Row {
            clustering: self.clustering.clone(),
            liveness: self.liveness,
            deletion: self.deletion,
            shadowable: self.shadowable,
            complex_deletions: self.complex_deletions.clone(),
            cells: self.cells.clone(),
        }
    }

    /// In the memory that the row has.
    fn clone_from(&mut self, other: &Row) {
        let Row { clustering, liveness, deletion, shadowable, complex_deletions, cells } = other;
        self.clustering.clone_from(clustering);
        (self.liveness, self.deletion, self.shadowable) = (*liveness, *deletion, *shadowable);
        self.complex_deletions.clone_from(complex_deletions);
        self.cells.clone_from(cells);
    }
}

impl Row {
    /// A row with nothing in it.
    pub fn new(clustering: Clustering) -> Row {
        Row {
            clustering,
            liveness: Liveness::NONE,
            deletion: DeletionTime::LIVE,
            shadowable: DeletionTime::LIVE,
            complex_deletions: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Leaves nothing in it but the memory that it has.
    #[inline]
    pub fn clear(&mut self) {
        self.clustering.values.clear();
        self.liveness = Liveness::NONE;
        (self.deletion, self.shadowable) = (DeletionTime::LIVE, DeletionTime::LIVE);
        self.complex_deletions.clear();
        self.cells.clear();
    }

    /// Whether the row says nothing at all: no marker, no deletion, no cell.
    pub fn is_empty(&self) -> bool {
        self.liveness.is_none()
            && self.row_deletion().is_live()
            && self.cells.is_empty()
            && self.complex_deletions.is_empty()
    }

    /// The greater of the row's two deletions: the one that counts as long as no marker lifts it.
    pub fn row_deletion(&self) -> DeletionTime {
        self.deletion.max(self.shadowable)
    }

    /// Drops what the row's own deletions shadow, as Cassandra does whenever it reads a row: what it
    /// shows and merges is the row as it is then, whatever the writer left in the file. The row may be
    /// empty afterwards.
    ///
    /// A cell of a deleted collection goes only if it is older; one of the same timestamp stays.
    pub fn normalize(&mut self) {
        if !self.row_deletion().is_live() {
            self.drop_shadowed();
        }
        for &(column, deletion) in &self.complex_deletions {
            let is_shadowed =
                |cell: &Cell| cell.column == column && cell.timestamp < deletion.marked_for_delete_at;
            // Most often nothing is, and then nothing is moved.
            if self.cells.iter().any(is_shadowed) {
                self.cells.retain(|cell| !is_shadowed(cell));
            }
        }
    }

    fn drop_shadowed(&mut self) {
        let deletion = self.row_deletion();
        if !self.liveness.is_none() && deletion.deletes(self.liveness.timestamp) {
            self.liveness = Liveness::NONE;
        }
        if self.cells.iter().any(|cell| deletion.deletes(cell.timestamp)) {
            self.cells.retain(|cell| !deletion.deletes(cell.timestamp));
        }
        if self.liveness.timestamp > self.shadowable.marked_for_delete_at {
            self.shadowable = DeletionTime::LIVE;
        }
    }

    /// Whether it was deleted, and shadowed later by an update of a materialized view: a shadowable deletion below the other one says nothing.
    #[inline]
    pub fn has_two_deletions(&self) -> bool {
        !self.deletion.is_live() && self.shadowable > self.deletion
    }

    /// Keeps but the greater of two deletions, as Cassandra does, whose files have room for one: a shadowable one below the other says
    /// nothing anyway.
    pub fn keep_greater_deletion(&mut self) {
        if self.shadowable > self.deletion {
            self.deletion = DeletionTime::LIVE;
        }
    }

    /// Bytes of the values and the paths of all cells.
    pub fn value_bytes(&self) -> usize {
        let of_value = |value: &CellValue| match value {
            CellValue::Value(value) => value.len(),
            CellValue::Tombstone => 0,
        };
        let bytes = |cell: &Cell| of_value(&cell.value) + cell.path.as_ref().map_or(0, |path| path.len());
        self.cells.iter().map(bytes).sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::NO_DELETION_TIME;

    fn deletion(at: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at: at, local_deletion_time: 1 }
    }

    fn marker(timestamp: i64) -> Liveness {
        Liveness { timestamp, ..Liveness::NONE }
    }

    fn cell(column: u16, timestamp: i64) -> Cell {
        let value = CellValue::Value(Bytes::default());
        Cell { column, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value }
    }

    #[test]
    fn the_greater_deletion_stays() {
        let kept = |deletion, shadowable| {
            let mut row = Row::new(Clustering::empty());
            (row.deletion, row.shadowable) = (deletion, shadowable);
            row.keep_greater_deletion();
            (row.deletion, row.shadowable)
        };
        assert_eq!(kept(deletion(5), deletion(6)), (DeletionTime::LIVE, deletion(6)));
        assert_eq!(
            kept(deletion(6), deletion(5)),
            (deletion(6), deletion(5)),
            "the shadowable one says nothing"
        );
        assert_eq!(kept(deletion(6), DeletionTime::LIVE), (deletion(6), DeletionTime::LIVE));
    }

    fn normalized(mut row: Row) -> Row {
        row.normalize();
        row
    }

    fn left(row: &Row) -> Vec<(u16, i64)> {
        row.cells.iter().map(|cell| (cell.column, cell.timestamp)).collect()
    }

    #[test]
    fn a_deletion_takes_what_is_as_old() {
        let mut row = Row::new(Clustering::empty());
        row.deletion = deletion(5);
        row.liveness = marker(5);
        row.cells = vec![cell(0, 4), cell(1, 5), cell(2, 6)];
        let row = normalized(row);
        assert_eq!((row.liveness, left(&row)), (Liveness::NONE, vec![(2, 6)]));
        assert_eq!(row.deletion, deletion(5));
    }

    #[test]
    fn a_collection_keeps_what_is_as_old_as_its_deletion() {
        let mut row = Row::new(Clustering::empty());
        row.complex_deletions = vec![(1, deletion(5))];
        row.cells = vec![cell(0, 4), cell(1, 4), cell(1, 5), cell(2, 4)];
        assert_eq!(left(&normalized(row)), [(0, 4), (1, 5), (2, 4)]);
    }

    #[test]
    fn a_shadowable_deletion_ends_with_a_newer_marker() {
        for (shadowable, at, stays) in [(true, 6, false), (true, 5, true), (false, 6, true)] {
            let mut row = Row::new(Clustering::empty());
            *(if shadowable { &mut row.shadowable } else { &mut row.deletion }) = deletion(5);
            row.liveness = marker(at);
            row.cells = vec![cell(0, 5), cell(1, 6)];
            let row = normalized(row);
            assert_eq!(
                (!row.row_deletion().is_live(), left(&row)),
                (stays, vec![(1, 6)]),
                "{shadowable} {at}"
            );
        }
    }

    #[test]
    fn nothing_may_be_left() {
        let mut row = Row::new(Clustering::empty());
        row.cells = vec![cell(0, 4)];
        assert!(!normalized(row.clone()).is_empty());
        row.cells.clear();
        assert!(normalized(row).is_empty());
    }
}
