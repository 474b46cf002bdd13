//! Whether a version of a row makes an older one void: rows that are written again and again then need not be merged.

use model::flat::{CellView, RowVisitor, StandingRow};
use model::{DeletionTime, Liveness};
use smallvec::SmallVec;

/// Whether all that one version says is newer, column by column, than all that another one says, so that merging them gives
/// just the newer one. Neither has deletions of its own, and no cell is of a counter.
///
/// That of a multi-cell column nothing is ever void this way costs a merge only.
pub(super) fn is_void(older: &StandingRow, newer: &StandingRow) -> bool {
    let (older, newer) = (Extent::of(older), Extent::of(newer));
    older.is_simple
        && newer.is_simple
        && older.greatest < newer.least
        && (newer.has_marker || !older.has_marker)
        && has_all(&newer.columns, &older.columns)
}

/// Whether one list has all of another one; both ascend.
fn has_all(columns: &[u16], others: &[u16]) -> bool {
    let mut columns = columns.iter();
    others.iter().all(|other| columns.any(|column| column == other))
}

/// What a row says something about, and from when to when.
struct Extent {
    is_simple: bool,
    has_marker: bool,
    columns: SmallVec<[u16; 8]>,
    /// Microseconds.
    least: i64,
    greatest: i64,
}

impl Extent {
    fn of(row: &StandingRow) -> Extent {
        let mut extent = Extent {
            is_simple: row.is_plain(),
            has_marker: false,
            columns: SmallVec::new(),
            least: i64::MAX,
            greatest: i64::MIN,
        };
        row.visit(&mut extent);
        extent
    }

    #[inline]
    fn at(&mut self, timestamp: i64) {
        self.least = self.least.min(timestamp);
        self.greatest = self.greatest.max(timestamp);
    }
}

impl<'a> RowVisitor<'a> for Extent {
    fn clustering_value(&mut self, _: Option<&'a [u8]>) {}

    fn marker(&mut self, liveness: Liveness) {
        if liveness != Liveness::NONE {
            self.has_marker = true;
            self.at(liveness.timestamp);
        }
    }

    fn deletions(&mut self, _: DeletionTime, _: DeletionTime) {
        self.is_simple = false;
    }

    fn complex_deletions(&mut self, _: Vec<(u16, DeletionTime)>) {
        self.is_simple = false;
    }

    fn cells(&mut self, _: usize) {}

    fn cell(&mut self, cell: CellView<'a>) {
        self.is_simple &= cell.path.is_none();
        self.columns.push(cell.column);
        self.at(cell.timestamp);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use model::time::NO_DELETION_TIME;
    use model::{Bytes, Cell, CellValue, Clustering, CqlType, Mutation, PartitionKey, Row, Schema};

    use super::super::Checked;
    use super::*;

    fn row(marker: Option<i64>, cells: &[(u16, i64)]) -> Row {
        let mut row = Row::new(Clustering::empty());
        if let Some(timestamp) = marker {
            row.liveness = Liveness { timestamp, ..Liveness::NONE };
        }
        let cell = |&(column, timestamp): &(u16, i64)| Cell {
            column,
            ttl: 0,
            timestamp,
            local_deletion_time: NO_DELETION_TIME,
            path: None,
            value: CellValue::Value(Bytes::default()),
        };
        row.cells = cells.iter().map(cell).collect();
        row
    }

    fn voids(newer: &Row, older: &Row) -> bool {
        let schema = Rc::new(Schema::new(CqlType::Int, Vec::new(), Vec::new(), Vec::new()));
        let key = PartitionKey::new(Bytes::default());
        let [older, newer] = [older, newer].map(|row| {
            let mutation = Mutation { rows: vec![row.clone()], ..Mutation::new(key.clone()) };
            Checked::of(&mutation, &schema).mutation.rows.remove(0)
        });
        is_void(&older, &newer)
    }

    #[test]
    fn all_of_it_has_to_be_newer() {
        let older = row(Some(1), &[(0, 1), (2, 2)]);
        assert!(voids(&row(Some(3), &[(0, 3), (2, 4)]), &older));
        assert!(voids(&row(Some(3), &[(0, 3), (1, 3), (2, 3)]), &older));
        assert!(!voids(&row(Some(3), &[(0, 2), (2, 4)]), &older), "a value at the same time counts");
        assert!(!voids(&row(Some(2), &[(0, 3), (2, 4)]), &older), "the marker is no newer than a cell");
        assert!(!voids(&row(None, &[(0, 3), (2, 4)]), &older), "the row exists by its marker");
        assert!(!voids(&row(Some(3), &[(0, 3)]), &older), "a column stays");
        assert!(voids(&row(None, &[(2, 3)]), &row(None, &[(2, 2)])));
    }

    #[test]
    fn deletions_and_elements_are_merged() {
        let (older, mut newer) = (row(None, &[(0, 1)]), row(None, &[(0, 3)]));
        newer.cells[0].path = Some(Bytes::default());
        assert!(!voids(&newer, &older));
        let deletion = DeletionTime { marked_for_delete_at: 2, local_deletion_time: 1 };
        assert!(!voids(&Row { deletion, ..row(None, &[(0, 3)]) }, &older));
        assert!(!voids(&row(None, &[(0, 3)]), &Row { deletion, ..row(None, &[]) }));
        let mut newer = row(None, &[(0, 3)]);
        newer.complex_deletions = vec![(4, deletion)];
        assert!(!voids(&newer, &older));
    }
}
