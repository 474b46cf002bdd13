//! Whether the data of a row that was read hides all data that may still be unread.
//!
//! Let M be the greatest timestamp of all unread data. That data cannot matter if
//!
//! 1. a deletion of the row, of a range around it or of its partition has a timestamp of M or more; or
//! 2. the row's marker and every wanted cell have timestamps above M. Of equal timestamps the values decide, so an
//!    equal one is not enough; a marker is needed, because without one an older marker would make the row exist. One
//!    that expires is enough only if all columns are wanted: once it is gone, any cell makes the row exist.
//!
//! Expired cells and tombstones cover like others. A shadowable deletion does not: a newer marker lifts it. The static
//! row has no marker, and is covered by its cells or the partition's deletion alone.

use model::time::NO_TIMESTAMP;
use model::{Fragment, Liveness, Row, Schema};

/// What is wanted of a partition: one row, and perhaps the static one.
///
/// Invariant: the wanted columns have one cell each, and none are counters.
#[derive(Debug)]
pub(crate) struct Cover {
    row: Covered,
    static_row: Option<Covered>,
}

#[derive(Debug)]
struct Covered {
    deleted_up_to: i64,
    /// The row's marker; `None` for the static row, which has none.
    marker: Option<Liveness>,
    /// Whether all columns are wanted.
    has_all: bool,
    /// The greatest timestamp of each wanted column.
    cells: Vec<(u16, i64)>,
}

/// The columns that a read wants.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Places among the regular columns, ascending; all where there are none given.
    pub regulars: Option<Vec<u16>>,
    /// Places among the static columns, ascending; all where there are none given.
    pub statics: Option<Vec<u16>>,
}

impl Cover {
    /// Nothing is covered yet. `None` if a wanted column has several cells or is a counter.
    pub(crate) fn new(schema: &Schema, wanted: &Wanted, static_row: bool) -> Option<Cover> {
        let of = |is_static: bool| {
            let columns = schema.columns(is_static);
            let wanted = if is_static { &wanted.statics } else { &wanted.regulars };
            let all = || (0..columns.len()).map(|column| column as u16).collect();
            let wanted = wanted.clone().unwrap_or_else(all);
            let is_atomic = |column: &u16| {
                let data_type = &columns[usize::from(*column)].data_type;
                !data_type.is_multi_cell() && !data_type.is_counter()
            };
            if !wanted.iter().all(is_atomic) {
                return None;
            }
            Some(Covered {
                deleted_up_to: NO_TIMESTAMP,
                marker: (!is_static).then_some(Liveness::NONE),
                has_all: wanted.len() == columns.len(),
                cells: wanted.iter().map(|column| (*column, NO_TIMESTAMP)).collect(),
            })
        };
        let static_row = match static_row && !schema.statics.is_empty() {
            true => Some(of(true)?),
            false => None,
        };
        Some(Cover { row: of(false)?, static_row })
    }

    /// What was read says something.
    pub(crate) fn add(&mut self, fragment: &Fragment) {
        match fragment {
            Fragment::PartitionStart(start) => {
                let deleted = start.deletion.marked_for_delete_at;
                self.row.deleted(deleted);
                self.static_row.iter_mut().for_each(|row| row.deleted(deleted));
            }
            Fragment::RangeTombstone(change) => self.row.deleted(change.deletion.marked_for_delete_at),
            Fragment::StaticRow(row) => self.static_row.iter_mut().for_each(|covered| covered.add(row)),
            Fragment::Row(row) => self.row.add(row),
            Fragment::PartitionEnd => {}
        }
    }

    /// Whether nothing with a timestamp of `unread` or less can matter.
    pub(crate) fn hides(&self, unread: i64) -> bool {
        self.row.hides(unread) && self.static_row.as_ref().is_none_or(|row| row.hides(unread))
    }
}

impl Covered {
    fn deleted(&mut self, up_to: i64) {
        self.deleted_up_to = self.deleted_up_to.max(up_to);
    }

    fn add(&mut self, row: &Row) {
        self.deleted(row.deletion.marked_for_delete_at);
        if let Some(marker) = &mut self.marker
            && row.liveness.supersedes(marker)
        {
            *marker = row.liveness;
        }
        for cell in &row.cells {
            if let Ok(at) = self.cells.binary_search_by_key(&cell.column, |(column, _)| *column) {
                self.cells[at].1 = self.cells[at].1.max(cell.timestamp);
            }
        }
    }

    fn hides(&self, unread: i64) -> bool {
        let is_enough =
            |marker: Liveness| marker.timestamp > unread && (self.has_all || !marker.is_expiring());
        let newer =
            self.marker.is_none_or(is_enough) && self.cells.iter().all(|(_, timestamp)| *timestamp > unread);
        newer || (self.deleted_up_to != NO_TIMESTAMP && self.deleted_up_to >= unread)
    }
}

#[cfg(test)]
mod tests {
    use model::time::NO_DELETION_TIME;
    use model::{
        Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, PartitionKey, PartitionStart,
        Position, RangeTombstoneChange,
    };

    use super::*;

    fn column(name: &str, data_type: CqlType) -> Column {
        Column { name: name.as_bytes().into(), data_type }
    }

    fn schema() -> Schema {
        let regulars = vec![column("a", CqlType::Int), column("b", CqlType::Int)];
        Schema::new(CqlType::Int, vec![CqlType::Int], vec![column("s", CqlType::Int)], regulars)
    }

    fn row(marker: Option<i64>, cells: &[(u16, i64)]) -> Row {
        let cell = |&(column, timestamp): &(u16, i64)| Cell {
            column,
            ttl: 0,
            timestamp,
            local_deletion_time: NO_DELETION_TIME,
            path: None,
            value: CellValue::Tombstone,
        };
        let mut row = Row { cells: cells.iter().map(cell).collect(), ..Row::new(Clustering::empty()) };
        if let Some(timestamp) = marker {
            row.liveness = Liveness { timestamp, ..Liveness::NONE };
        }
        row
    }

    fn deletion(at: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at: at, local_deletion_time: 1 }
    }

    fn cover(wanted: &Wanted, static_row: bool, fragments: &[Fragment]) -> Cover {
        let mut cover = Cover::new(&schema(), wanted, static_row).unwrap();
        fragments.iter().for_each(|fragment| cover.add(fragment));
        cover
    }

    fn start(at: i64) -> Fragment {
        let key = PartitionKey::new(Bytes::default());
        Fragment::PartitionStart(PartitionStart { key, deletion: deletion(at) })
    }

    #[test]
    fn marker_and_all_cells_must_be_newer() {
        let all = Wanted::default();
        let hides = |row: Row, unread| cover(&all, false, &[Fragment::Row(row)]).hides(unread);
        assert!(hides(row(Some(11), &[(0, 11), (1, 12)]), 10));
        assert!(!hides(row(Some(11), &[(0, 11), (1, 10)]), 10));
        assert!(!hides(row(Some(10), &[(0, 11), (1, 11)]), 10));
        assert!(!hides(row(None, &[(0, 11), (1, 11)]), 10));
        assert!(!hides(row(Some(11), &[(0, 11)]), 10));
        let one = Wanted { regulars: Some(vec![1]), statics: None };
        assert!(cover(&one, false, &[Fragment::Row(row(Some(11), &[(1, 11)]))]).hides(10));
    }

    #[test]
    fn a_marker_that_expires_hides_no_other_columns() {
        let mut expiring = row(Some(11), &[(0, 11), (1, 11)]);
        expiring.liveness = Liveness { timestamp: 11, ttl: 5, local_expiration_time: 100 };
        let lasting = Fragment::Row(row(Some(10), &[]));
        let one = Wanted { regulars: Some(vec![1]), statics: None };
        for (wanted, hides) in [(&one, false), (&Wanted::default(), true)] {
            let read = [lasting.clone(), Fragment::Row(expiring.clone())];
            assert_eq!(cover(wanted, false, &read).hides(9), hides);
        }
    }

    #[test]
    fn deletions_cover_what_is_as_old() {
        let all = Wanted::default();
        let change = RangeTombstoneChange { position: Position::start(), deletion: deletion(10) };
        let deleted = Row { deletion: deletion(10), ..row(None, &[]) };
        for fragment in [start(10), Fragment::RangeTombstone(change), Fragment::Row(deleted)] {
            assert!(cover(&all, false, std::slice::from_ref(&fragment)).hides(10));
            assert!(!cover(&all, false, &[fragment]).hides(11));
        }
        let shadowable = Row { shadowable: deletion(10), ..row(None, &[]) };
        assert!(!cover(&all, false, &[Fragment::Row(shadowable)]).hides(1));
        assert!(!cover(&all, false, &[]).hides(i64::MIN));
    }

    #[test]
    fn the_static_row_needs_a_cover_of_its_own() {
        let all = Wanted::default();
        let whole = Fragment::Row(row(Some(11), &[(0, 11), (1, 11)]));
        assert!(!cover(&all, true, std::slice::from_ref(&whole)).hides(10));
        let statics = Fragment::StaticRow(row(None, &[(0, 11)]));
        assert!(cover(&all, true, &[statics, whole]).hides(10));
        assert!(cover(&all, true, &[start(10)]).hides(10));
        let change = RangeTombstoneChange { position: Position::start(), deletion: deletion(10) };
        assert!(!cover(&all, true, &[Fragment::RangeTombstone(change)]).hides(10));
    }

    #[test]
    fn only_columns_of_one_cell() {
        for data_type in [CqlType::list(CqlType::Int, false), CqlType::Counter] {
            let regulars = vec![column("a", CqlType::Int), column("b", data_type)];
            let schema = Schema::new(CqlType::Int, Vec::new(), Vec::new(), regulars);
            assert!(Cover::new(&schema, &Wanted::default(), false).is_none());
            let one = Wanted { regulars: Some(vec![0]), statics: None };
            assert!(Cover::new(&schema, &one, false).is_some());
        }
    }
}
