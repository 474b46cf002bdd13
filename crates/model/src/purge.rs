//! A stream without what a compaction may forget: old tombstones, and what they were made of.
//!
//! A tombstone may go once every replica had the time to hear of it, which is when it was made before
//! `gc_before`, and once nothing is left outside of the stream that it would still have to delete, which
//! is when its timestamp is below the least one out there. The rules are those of Cassandra 5.0:
//!
//! | what | becomes |
//! |---|---|
//! | a deletion of a partition, row or collection, or a cell's | nothing, once it may go |
//! | an expired cell | nothing, once its *expiry* may go; otherwise a tombstone that was made when the cell was written, and that nothing, once that may go |
//! | an expired or dead row marker | nothing, once its expiry may go; otherwise it stays as it is |
//! | a range tombstone | shrunk to its other neighbours, once it may go |
//! | a row or a partition in which nothing is left | nothing |
//!
//! What lives stays. So do live rows and cells that a deletion still in the stream shadows: a
//! [`crate::Merge`] has removed those already. Where somebody wrote them into one SSTable, beside their
//! deletion, they go together with it and do not come back to life.

use crate::flat::{FlatRow, GIVEN, RowTaker};
use crate::{
    Bytes, Cell, CellValue, DeletionTime, Fragment, FragmentReader, Liveness, Next, PartitionKey,
    PartitionStart, RangeTombstoneChange, Row,
};

/// What decides about all partitions alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PurgeRules {
    /// The time of the purge, in seconds since the epoch: what expires then, or before, is expired.
    pub now: i64,
    /// Tombstones made before this second may go: `now` less the table's `gc_grace_seconds`.
    pub gc_before: i64,
    /// Whether a row without a marker and a deletion is none, as in materialized views.
    pub strict_liveness: bool,
}

impl PurgeRules {
    /// The rules of a table at `now`, with its `gc_grace_seconds`.
    pub fn new(now: i64, gc_grace_seconds: u32) -> PurgeRules {
        PurgeRules { now, gc_before: now - i64::from(gc_grace_seconds), strict_liveness: false }
    }
}

/// The purge of a merged stream, in either direction.
///
/// `limit` tells of a partition the least timestamp of what lies outside of the stream, in memtables and
/// in other SSTables: only tombstones *below* it may go. `None` is for nothing out there at all. It is asked
/// once a partition at the most, and only where there is a tombstone that is old enough.
///
/// Invariants, between two calls of `pop`:
/// 1. `held` is there from a partition's start until something of it is given out.
/// 2. `queued` comes before all that is still to be read: the fragment that made `held` go out, or a row that was found
///    among those given as they stand.
#[derive(Debug)]
pub struct Purge<R, L> {
    reader: R,
    judge: Judge<L>,
    held: Option<PartitionStart>,
    queued: Option<Fragment>,
    /// The partition's deletion, if it went.
    purged_partition: DeletionTime,
    range: Range,
}

/// What a range tombstone change finds in force before it.
#[derive(Clone, Copy, Debug)]
struct Range {
    /// As the source has it.
    deletion: DeletionTime,
    is_purged: bool,
}

const NO_RANGE: Range = Range { deletion: DeletionTime::LIVE, is_purged: false };

impl<R: FragmentReader, L: FnMut(&PartitionKey) -> Option<i64>> Purge<R, L> {
    /// The purge of what `reader` gives.
    pub fn new(reader: R, rules: PurgeRules, limit: L) -> Purge<R, L> {
        Purge {
            reader,
            judge: Judge { rules, limit, key: PartitionKey::new(Bytes::default()), known: None },
            held: None,
            queued: None,
            purged_partition: DeletionTime::LIVE,
            range: NO_RANGE,
        }
    }

    /// The stream below.
    pub fn into_inner(self) -> R {
        self.reader
    }
}

impl<R: FragmentReader, L: FnMut(&PartitionKey) -> Option<i64>> FragmentReader for Purge<R, L> {
    type Error = R::Error;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next, R::Error> {
        if let Some(fragment) = self.queued.take() {
            *place = fragment;
            return Ok(Next::Fragment);
        }
        loop {
            let next = self.reader.pop(place)?;
            if next != Next::Fragment || self.keeps(place) {
                return Ok(next);
            }
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        let Purge { reader, judge, held, queued, purged_partition, range } = self;
        let around = range.purged().max(*purged_partition);
        if held.is_some() || queued.is_some() || !around.is_live() {
            return;
        }
        reader.pop_flat(&mut |row: FlatRow<'_>| {
            // All of a usual row stays.
            if row.is_usual() {
                return take.row(row);
            }
            let mut other = Fragment::default();
            row.decode(&mut other).expect(GIVEN);
            let Fragment::Row(of_other) = &mut other else { unreachable!("a row was decoded") };
            let is_kept = judge.keeps(of_other, around);
            *queued = is_kept.then_some(other);
            !is_kept
        });
    }

    async fn fill(&mut self) -> Result<(), R::Error> {
        self.reader.fill().await
    }
}

impl<R, L: FnMut(&PartitionKey) -> Option<i64>> Purge<R, L> {
    /// What is to be given out now that this came in; whether anything is.
    fn keeps(&mut self, fragment: &mut Fragment) -> bool {
        let is_kept = match fragment {
            Fragment::PartitionStart(start) => return self.starts(start),
            Fragment::PartitionEnd => return self.held.take().is_none(),
            Fragment::StaticRow(row) => self.judge.keeps(row, self.purged_partition),
            Fragment::Row(row) => self.judge.keeps(row, self.purged_partition.max(self.range.purged())),
            Fragment::RangeTombstone(change) => self.keeps_change(change),
        };
        if is_kept && let Some(start) = self.held.take() {
            self.queued = Some(std::mem::replace(fragment, Fragment::PartitionStart(start)));
        }
        is_kept
    }

    /// A partition begins. Its start is held back until something of it is kept.
    fn starts(&mut self, start: &mut PartitionStart) -> bool {
        self.judge.begin(&start.key);
        (self.range, self.purged_partition) = (NO_RANGE, DeletionTime::LIVE);
        if self.judge.may_go(&start.deletion) {
            self.purged_partition = std::mem::replace(&mut start.deletion, DeletionTime::LIVE);
        }
        let is_held = start.deletion.is_live();
        self.held = is_held.then(|| start.clone());
        !is_held
    }

    /// A change between two deletions, of which either may go.
    fn keeps_change(&mut self, change: &mut RangeTombstoneChange) -> bool {
        let is_purged = self.judge.may_go(&change.deletion);
        let before = std::mem::replace(&mut self.range, Range { deletion: change.deletion, is_purged });
        match (before.is_purged, is_purged) {
            (false, false) => true,
            (false, true) => {
                change.deletion = DeletionTime::LIVE;
                !before.deletion.is_live()
            }
            (true, false) => !change.deletion.is_live(),
            (true, true) => false,
        }
    }
}

impl Range {
    fn purged(&self) -> DeletionTime {
        if self.is_purged { self.deletion } else { DeletionTime::LIVE }
    }
}

/// What may go of the partition at hand.
#[derive(Debug)]
struct Judge<L> {
    rules: PurgeRules,
    limit: L,
    key: PartitionKey,
    /// What `limit` said of the partition, once it was asked.
    known: Option<Option<i64>>,
}

impl<L: FnMut(&PartitionKey) -> Option<i64>> Judge<L> {
    fn begin(&mut self, key: &PartitionKey) {
        self.key = key.clone();
        self.known = None;
    }

    /// Leaves of a row what stays under a deletion that went; whether anything does.
    fn keeps(&mut self, row: &mut Row, purged_around: DeletionTime) -> bool {
        drop_covered(row, purged_around);
        if self.may_have_dead(row) {
            self.purge_row(row);
            if self.rules.strict_liveness && row.liveness.is_none() && row.row_deletion().is_live() {
                return false;
            }
        }
        !row.is_empty()
    }

    /// Whether anything in the row is deleted or expired; most often nothing is.
    fn may_have_dead(&self, row: &Row) -> bool {
        let now = self.rules.now;
        (row.liveness.is_expiring() && now >= row.liveness.local_expiration_time)
            || !row.row_deletion().is_live()
            || !row.complex_deletions.is_empty()
            || row.cells.iter().any(|cell| !cell.is_live(now))
    }

    fn purge_row(&mut self, row: &mut Row) {
        for is_shadowable in [false, true] {
            let deletion = if is_shadowable { row.shadowable } else { row.deletion };
            if self.may_go(&deletion) {
                drop_covered(row, deletion);
                *(if is_shadowable { &mut row.shadowable } else { &mut row.deletion }) = DeletionTime::LIVE;
            }
        }
        let Row { liveness, complex_deletions, cells, .. } = row;
        if self.may_marker_go(liveness) {
            *liveness = Liveness::NONE;
        }
        complex_deletions.retain(|(column, deletion)| {
            let goes = self.may_go(deletion);
            if goes {
                cells.retain(|cell| cell.column != *column || !deletion.deletes(cell.timestamp));
            }
            !goes
        });
        cells.retain_mut(|cell| self.keep_cell(cell));
    }

    /// Whether a cell stays. One that has expired becomes the tombstone that it is equal to, which needs
    /// no value.
    fn keep_cell(&mut self, cell: &mut Cell) -> bool {
        if cell.is_live(self.rules.now) {
            return true;
        }
        if self.may_be_forgotten(cell.timestamp, cell.local_deletion_time) {
            return false;
        }
        if !cell.is_expiring() {
            return true;
        }
        // The tombstone counts from the write on. All replicas heard of the cell then or later, and its
        // TTL was a part of what they heard.
        cell.local_deletion_time -= i64::from(cell.ttl);
        (cell.ttl, cell.value) = (0, CellValue::Tombstone);
        !self.may_be_forgotten(cell.timestamp, cell.local_deletion_time)
    }

    fn may_marker_go(&mut self, marker: &Liveness) -> bool {
        !marker.is_none()
            && !marker.is_live(self.rules.now)
            && self.may_be_forgotten(marker.timestamp, marker.local_expiration_time)
    }

    fn may_go(&mut self, deletion: &DeletionTime) -> bool {
        !deletion.is_live()
            && self.may_be_forgotten(deletion.marked_for_delete_at, deletion.local_deletion_time)
    }

    /// Whether a tombstone of this timestamp, which was made at this second, is not needed by anybody.
    fn may_be_forgotten(&mut self, timestamp: i64, local_deletion_time: i64) -> bool {
        if local_deletion_time >= self.rules.gc_before {
            return false;
        }
        let Judge { limit, key, known, .. } = self;
        known.get_or_insert_with(|| limit(key)).is_none_or(|limit| timestamp < limit)
    }
}

/// Takes from a row what a deletion covers that is about to go.
fn drop_covered(row: &mut Row, deletion: DeletionTime) {
    if deletion.is_live() {
        return;
    }
    if !row.liveness.is_none() && deletion.deletes(row.liveness.timestamp) {
        row.liveness = Liveness::NONE;
    }
    row.cells.retain(|cell| !deletion.deletes(cell.timestamp));
}

#[cfg(test)]
mod tests;
