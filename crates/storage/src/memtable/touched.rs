//! What of a partition a memtable has something to say about: whoever keeps what was read has to forget that.

use std::ops::Bound::Excluded;

use model::{PartitionKey, Position, Schema, Weight};

use super::kept::KeptRow;
use super::place::Place;
use super::{Memtable, Partition};

/// What a memtable has of a partition besides rows and ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Touched {
    /// A deletion of all of it.
    pub(crate) is_deleted: bool,
    /// A static row.
    pub(crate) static_row: bool,
}

impl Memtable {
    /// What it has of a partition; `None` if nothing.
    pub(crate) fn touched(&self, key: &PartitionKey) -> Option<Touched> {
        let partitions = self.partitions.borrow();
        partitions.get(key).map(|partition| Touched {
            is_deleted: !partition.deletion.is_live(),
            static_row: partition.static_row.is_some(),
        })
    }

    /// The first place of a partition that has a row or is deleted as a part of a range, from `at` on, which stands
    /// beside rows.
    pub(crate) fn next_touched(&self, key: &PartitionKey, at: &Position) -> Option<Position> {
        debug_assert!(at.weight != Weight::At, "it stands beside rows");
        let partitions = self.partitions.borrow();
        let partition = partitions.get(key)?;
        let at = Place::new(&self.schema, at.clone());
        if !partition.ranges.at(&at).is_live() {
            return Some(at.position().clone());
        }
        let row = partition.next_row(&self.schema, at.position());
        let row = row.map(|row| Place::new(&self.schema, Position::at(row.clustering())));
        let first = row.into_iter().chain(partition.next_range(&at)).min();
        first.map(|place| place.position().clone())
    }
}

impl Partition {
    fn next_row(&self, schema: &Schema, at: &Position) -> Option<&KeptRow> {
        self.rows.get(self.place_of(schema, at))
    }

    /// Where the next deleted range begins behind a place that is in none.
    fn next_range(&self, at: &Place) -> Option<Place> {
        self.ranges.changes_from(Excluded(at)).next().map(|(place, _)| place.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use model::{Bytes, Clustering, CqlType, DeletionTime, Mutation, RangeTombstone, Row, Schema};

    use super::super::Checked;
    use super::*;

    fn prefix(byte: u8) -> Clustering {
        std::iter::once(vec![byte]).collect()
    }

    #[test]
    fn rows_and_ranges_are_found_one_after_the_other() {
        let schema = Rc::new(Schema::new(CqlType::Blob, vec![CqlType::Blob], Vec::new(), Vec::new()));
        let memtable = Memtable::new(&schema);
        let key = PartitionKey::new(Bytes::from(vec![1]));
        let deletion = DeletionTime { marked_for_delete_at: 5, local_deletion_time: 5 };
        let mut mutation = Mutation::new(key.clone());
        mutation.rows = [2, 9].map(|byte| Row { deletion, ..Row::new(prefix(byte)) }).to_vec();
        let (start, end) = (Position::before(prefix(4)), Position::after(prefix(6)));
        mutation.range_tombstones = vec![RangeTombstone { start: start.clone(), end: end.clone(), deletion }];
        memtable.apply(Checked::of(&mutation, &schema), crate::commit_log::LogPosition::default());

        let next = |at: Position| memtable.next_touched(&key, &at);
        assert_eq!(next(Position::start()), Some(Position::at(prefix(2))));
        assert_eq!(next(Position::after(prefix(2))), Some(start.clone()));
        assert_eq!(next(start.clone()), Some(start));
        assert_eq!(next(Position::before(prefix(5))), Some(Position::before(prefix(5))));
        assert_eq!(next(end), Some(Position::at(prefix(9))));
        assert_eq!(next(Position::after(prefix(9))), None);
        assert_eq!(memtable.touched(&key), Some(Touched { is_deleted: false, static_row: false }));
        assert_eq!(memtable.touched(&PartitionKey::new(Bytes::default())), None);
    }
}
