//! The rows that a `SELECT` would return: without deleted and expired data.

use crate::flat::{CellView, FlatError, FlatRow, RowVisitor, ValueVisitor};
use crate::time::NO_TIMESTAMP;
use crate::{DeletionTime, Fragment, Liveness, Row};

/// Follows a stream and takes from its rows what is dead.
///
/// Works in both directions: a range tombstone is in force from its change on, as the stream runs.
#[derive(Debug)]
pub struct LiveRows {
    /// Seconds.
    now: i64,
    partition: DeletionTime,
    /// The greater one of the partition's deletion and the range tombstone's that is in force.
    around: DeletionTime,
}

impl LiveRows {
    /// What is live at `now`, in seconds since the epoch.
    pub fn new(now: i64) -> LiveRows {
        LiveRows { now, partition: DeletionTime::LIVE, around: DeletionTime::LIVE }
    }

    /// Leaves of a fragment what is live: of a row, if anything is, its live marker and cells; of all else nothing. Whether
    /// anything is left.
    #[inline]
    pub fn keeps(&mut self, fragment: &mut Fragment) -> bool {
        match fragment {
            Fragment::Row(row) => self.keeps_row(row, self.around),
            Fragment::StaticRow(row) => self.keeps_row(row, self.partition),
            Fragment::PartitionStart(start) => {
                (self.partition, self.around) = (start.deletion, start.deletion);
                false
            }
            Fragment::RangeTombstone(change) => {
                self.around = self.partition.max(change.deletion);
                false
            }
            Fragment::PartitionEnd => false,
        }
    }

    /// Whether all of a [usual](crate::flat::is_usual) row that comes next is live.
    #[inline]
    pub fn all_of_usual_rows(&self) -> bool {
        self.around.is_live()
    }

    /// Shows what is live of a row that is not decoded, for which [`LiveRows::keeps`] comes to the same. Whether anything is;
    /// `None` if the row is one that has to be decoded. What was shown counts only if anything is live.
    ///
    /// # Errors
    /// If the bytes are those of no row.
    #[inline(always)]
    pub fn show<'a>(
        &self,
        row: FlatRow<'a>,
        visitor: &mut impl ValueVisitor<'a>,
    ) -> Result<Option<bool>, FlatError> {
        if row.is_usual() && self.all_of_usual_rows() {
            row.visit_usual(visitor)?;
            return Ok(Some(true));
        }
        self.show_any(row, visitor)
    }

    #[inline(never)]
    fn show_any<'a>(
        &self,
        row: FlatRow<'a>,
        visitor: &mut impl ValueVisitor<'a>,
    ) -> Result<Option<bool>, FlatError> {
        let (now, deletion) = (self.now, self.around);
        let marker = NO_TIMESTAMP;
        let mut living = Living { now, deletion, visitor, marker, is_any: false, is_plain: true };
        row.visit(&mut living)?;
        Ok(living.is_plain.then_some(living.is_any))
    }

    #[inline]
    fn keeps_row(&self, row: &mut Row, around: DeletionTime) -> bool {
        if around.is_live() && self.is_all_live(row) {
            return !row.is_empty();
        }
        self.keeps_live_of(row, around)
    }

    /// Whether nothing of the row is deleted or expired; most often nothing is.
    #[inline]
    fn is_all_live(&self, row: &Row) -> bool {
        row.row_deletion().is_live()
            && row.complex_deletions.is_empty()
            && row.cells.iter().all(|cell| cell.is_live(self.now))
            && (row.liveness.is_none() || row.liveness.is_live(self.now))
    }

    fn keeps_live_of(&self, row: &mut Row, around: DeletionTime) -> bool {
        row.normalize();
        let deletion = row.row_deletion().max(around);
        if deletion.deletes(row.liveness.timestamp) || !row.liveness.is_live(self.now) {
            row.liveness = Liveness::NONE;
        }
        let Row { complex_deletions, cells, .. } = row;
        let is_deleted = |column: u16, timestamp: i64| {
            complex_deletions.iter().any(|(of, deletion)| *of == column && deletion.deletes(timestamp))
        };
        cells.retain(|cell| {
            cell.is_live(self.now)
                && !deletion.deletes(cell.timestamp)
                && !is_deleted(cell.column, cell.timestamp)
        });
        complex_deletions.clear();
        (row.deletion, row.shadowable) = (DeletionTime::LIVE, DeletionTime::LIVE);
        !row.is_empty()
    }
}

/// Shows on what is live of the row that it is shown.
struct Living<'v, V> {
    now: i64,
    /// The greatest one that there is.
    deletion: DeletionTime,
    visitor: &'v mut V,
    /// When the row's marker was written.
    marker: i64,
    is_any: bool,
    /// Whether the row has no deletions of columns.
    is_plain: bool,
}

impl<'a, V: ValueVisitor<'a>> RowVisitor<'a> for Living<'_, V> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.visitor.clustering_value(value);
    }

    #[inline]
    fn marker(&mut self, liveness: Liveness) {
        self.marker = liveness.timestamp;
        self.is_any = liveness.is_live(self.now) && !self.deletion.deletes(liveness.timestamp);
    }

    fn deletions(&mut self, deletion: DeletionTime, shadowable: DeletionTime) {
        self.deletion = self.deletion.max(deletion).max(shadowable);
        self.is_any = self.is_any && !self.deletion.deletes(self.marker);
    }

    fn complex_deletions(&mut self, _deletions: Vec<(u16, DeletionTime)>) {
        self.is_plain = false;
    }

    fn cells(&mut self, _about: usize) {}

    #[inline]
    fn cell(&mut self, cell: CellView<'a>) {
        let Some(value) = cell.value else { return };
        if cell.is_live(self.now) && !self.deletion.deletes(cell.timestamp) {
            self.is_any = true;
            self.visitor.cell(cell.column, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::time::NO_DELETION_TIME;
    use crate::{
        Bytes, Cell, CellValue, Clustering, PartitionKey, PartitionStart, Position, RangeTombstoneChange,
    };

    use super::*;

    fn deletion(at: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at: at, local_deletion_time: 1 }
    }

    fn cell(column: u16, timestamp: i64) -> Cell {
        let value = CellValue::Value(Bytes::default());
        Cell { column, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value }
    }

    fn row(cells: Vec<Cell>) -> Row {
        Row { cells, ..Row::new(Clustering::empty()) }
    }

    fn start(deletion: DeletionTime) -> Fragment {
        let key = PartitionKey::new(Bytes::default());
        Fragment::PartitionStart(PartitionStart { key, deletion })
    }

    fn timestamps(live: &mut LiveRows, row: Row) -> Vec<i64> {
        let mut fragment = Fragment::Row(row);
        match (live.keeps(&mut fragment), fragment) {
            (true, Fragment::Row(row)) => row.cells.iter().map(|cell| cell.timestamp).collect(),
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_deletion_counts() {
        let mut live = LiveRows::new(100);
        live.keeps(&mut start(deletion(1)));
        let cells = || vec![cell(0, 1), cell(0, 2), cell(0, 3), cell(0, 4), cell(0, 5)];
        assert_eq!(timestamps(&mut live, row(cells())), [2, 3, 4, 5]);
        let (position, range) = (Position::start(), deletion(2));
        live.keeps(&mut Fragment::RangeTombstone(RangeTombstoneChange { position, deletion: range }));
        assert_eq!(timestamps(&mut live, row(cells())), [3, 4, 5]);
        assert_eq!(timestamps(&mut live, Row { deletion: deletion(3), ..row(cells()) }), [4, 5]);
        assert_eq!(
            timestamps(&mut live, Row { complex_deletions: vec![(0, deletion(4))], ..row(cells()) }),
            [5]
        );
        live.keeps(&mut start(DeletionTime::LIVE));
        assert_eq!(timestamps(&mut live, row(cells())).len(), 5);
    }

    #[test]
    fn what_expired_is_gone() {
        let mut live = LiveRows::new(100);
        let expiring = |at| Cell { ttl: 10, local_deletion_time: at, ..cell(0, 7) };
        assert_eq!(timestamps(&mut live, row(vec![expiring(100)])).len(), 0);
        assert_eq!(timestamps(&mut live, row(vec![expiring(101)])).len(), 1);
        let marker = Liveness { timestamp: 7, ttl: 10, local_expiration_time: 100 };
        assert!(!live.keeps(&mut Fragment::Row(Row { liveness: marker, ..row(Vec::new()) })));
        let marker = Liveness { local_expiration_time: 101, ..marker };
        assert!(live.keeps(&mut Fragment::Row(Row { liveness: marker, ..row(Vec::new()) })));
    }
}
