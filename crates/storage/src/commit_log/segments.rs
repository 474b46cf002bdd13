//! Which tables have data in which segments that is in no SSTable yet.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{LogPosition, TableId};

/// The segments of an open log, by their numbers.
///
/// Invariants:
/// 1. The last one is the one that is appended to; it is never sealed while the log is open, and never taken.
/// 2. A table is in `unflushed` of a segment as long as a record of it there may be in no SSTable.
/// 3. One in `last_words`, or with the newest mark of a table, is removed behind all before it.
#[derive(Default)]
pub(super) struct Segments {
    segments: BTreeMap<u64, Segment>,
    /// Those with the last record of a table that is gone: the mark that what the segments before have of it is not to be
    /// replayed, not even into another table of the same id.
    last_words: BTreeSet<u64>,
    bytes: u64,
}

/// A segment that nobody needs any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unneeded {
    pub(super) number: u64,
    pub(super) bytes: u64,
    /// Whether those before it have to be gone durably before it goes.
    pub(super) is_behind_others: bool,
}

#[derive(Default)]
struct Segment {
    bytes: u64,
    /// Where the last record of each table ends, but for marks.
    unflushed: HashMap<TableId, u64>,
    /// Tables whose newest mark is here: what it says is of records in front of it, and not wanted without them.
    marks: HashSet<TableId>,
    is_sealed: bool,
}

impl Segments {
    /// A new segment, with this many bytes.
    pub(super) fn begin(&mut self, number: u64, bytes: u64) {
        self.segments.insert(number, Segment { bytes, ..Segment::default() });
        self.bytes += bytes;
    }

    /// A record of a table ends at this position, the end of the log.
    pub(super) fn record(&mut self, table: TableId, end: LogPosition) {
        let segment =
            self.segments.get_mut(&end.segment).expect("a record goes into a segment that has begun");
        segment.unflushed.insert(table, end.offset);
        self.bytes += end.offset - segment.bytes;
        segment.bytes = end.offset;
    }

    /// A mark of a table ends at this position, the end of the log.
    pub(super) fn mark(&mut self, table: TableId, end: LogPosition) {
        let segment = self.segments.get_mut(&end.segment).expect("a mark goes into a segment that has begun");
        segment.marks.insert(table);
        self.bytes += end.offset - segment.bytes;
        segment.bytes = end.offset;
    }

    /// All of a segment is durable, and nothing comes after it.
    pub(super) fn seal(&mut self, number: u64) {
        self.segments
            .get_mut(&number)
            .expect("a segment that has begun is there until it is sealed")
            .is_sealed = true;
    }

    /// All records of a table that end here or before are in SSTables, and its newest mark, which says so, is durable.
    pub(super) fn flushed(&mut self, table: TableId, up_to: LogPosition) {
        let mut with_mark =
            self.segments.values_mut().rev().skip_while(|segment| !segment.marks.contains(&table));
        with_mark.next();
        with_mark.for_each(|segment| _ = segment.marks.remove(&table));
        for (&number, segment) in self.segments.range_mut(..=up_to.segment) {
            let end = segment.unflushed.get(&table).copied();
            if end.is_some_and(|offset| LogPosition { segment: number, offset } <= up_to) {
                segment.unflushed.remove(&table);
            }
        }
    }

    /// No record of a table up to this position is wanted any more, and no more come.
    pub(super) fn forget(&mut self, table: TableId, up_to: LogPosition) {
        let with_it = self.segments.iter().rev().find(|(_, segment)| segment.has(table));
        if let Some((&number, _)) = with_it {
            self.last_words.insert(number);
        }
        self.flushed(table, up_to);
    }

    /// Whether the last segment has nothing that a replay would need.
    pub(super) fn is_last_flushed(&self) -> bool {
        let last = self.segments.iter().next_back();
        last.is_some_and(|(number, segment)| segment.unflushed.is_empty() && self.is_heard(*number))
    }

    /// The first segment that nobody needs any more; it is counted no longer.
    pub(super) fn take_removable(&mut self) -> Option<Unneeded> {
        let last = self.segments.keys().next_back().copied()?;
        let is_removable = |number: u64, segment: &Segment| {
            segment.is_sealed && segment.unflushed.is_empty() && self.is_heard(number)
        };
        let mut segments = self.segments.range(..last).map(|(&number, segment)| (number, segment));
        let (number, _) = segments.find(|&(number, segment)| is_removable(number, segment))?;
        let Segment { bytes, marks, .. } = self.segments.remove(&number)?;
        self.bytes -= bytes;
        let is_behind_others = self.last_words.remove(&number) || !marks.is_empty();
        Some(Unneeded { number, bytes, is_behind_others })
    }

    /// A segment that was taken could not be removed.
    pub(super) fn put_back(&mut self, taken: Unneeded) {
        self.begin(taken.number, taken.bytes);
        self.seal(taken.number);
        if taken.is_behind_others {
            self.last_words.insert(taken.number);
        }
    }

    /// Whether nothing that a segment says of others is needed any more.
    fn is_heard(&self, number: u64) -> bool {
        let says_nothing = self.segments.get(&number).is_none_or(|segment| segment.marks.is_empty());
        says_nothing && !self.last_words.contains(&number) || self.segments.range(..number).next().is_none()
    }

    /// Whether a table is in `unflushed` of another segment than the last one.
    pub(super) fn is_held_by(&self, table: TableId) -> bool {
        self.segments.values().rev().skip(1).any(|segment| segment.has(table))
    }

    /// The bytes of all segments, also of those that are still on their way to the disk.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The tables to flush for all segments to have at most `total` bytes, those with the oldest data first. None if
    /// that is so, or if only the last segment is left.
    pub(super) fn to_flush(&self, total: u64) -> Vec<TableId> {
        let (mut left, mut tables, mut seen) = (self.bytes, Vec::new(), HashSet::new());
        let before_last = self.segments.len().saturating_sub(1);
        for segment in self.segments.values().take(before_last) {
            if left <= total {
                break;
            }
            left -= segment.bytes;
            // In the order of their records, so that the same log gives the same answer.
            let mut unflushed: Vec<_> = segment.unflushed.iter().collect();
            unflushed.sort_unstable_by_key(|&(table, end)| (end, table));
            tables.extend(unflushed.into_iter().map(|(table, _)| *table).filter(|table| seen.insert(*table)));
        }
        tables
    }
}

impl Segment {
    /// Whether it has records or a mark of a table.
    fn has(&self, table: TableId) -> bool {
        self.unflushed.contains_key(&table) || self.marks.contains(&table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(segment: u64, offset: u64) -> LogPosition {
        LogPosition { segment, offset }
    }

    const A: TableId = TableId([1; 16]);
    const B: TableId = TableId([2; 16]);
    const C: TableId = TableId([3; 16]);

    /// Three segments of 100 bytes: A and B, B, A and C.
    fn three() -> Segments {
        let mut segments = Segments::default();
        segments.begin(1, 40);
        segments.record(B, at(1, 60));
        segments.record(A, at(1, 100));
        segments.begin(2, 40);
        segments.record(B, at(2, 100));
        segments.begin(3, 40);
        segments.record(A, at(3, 70));
        segments.record(C, at(3, 100));
        segments
    }

    #[test]
    fn a_segment_goes_once_all_of_it_is_flushed_and_sealed() {
        let mut segments = three();
        segments.flushed(B, at(2, 100));
        assert_eq!(segments.take_removable(), None);
        segments.seal(1);
        segments.seal(2);
        assert_eq!((segments.bytes(), taken(&mut segments)), (300, Some(2)));
        assert_eq!((segments.bytes(), taken(&mut segments)), (200, None));
        segments.flushed(A, at(1, 99));
        assert_eq!(segments.take_removable(), None);
        segments.flushed(A, at(1, 100));
        let first = segments.take_removable().unwrap();
        assert_eq!(first, Unneeded { number: 1, bytes: 100, is_behind_others: false });
        segments.put_back(first);
        assert_eq!((segments.bytes(), taken(&mut segments)), (200, Some(1)));
        segments.flushed(A, at(9, 0));
        segments.flushed(C, at(9, 0));
        segments.seal(3);
        assert_eq!(segments.take_removable(), None, "the last one stays");
    }

    fn taken(segments: &mut Segments) -> Option<u64> {
        segments.take_removable().map(|unneeded| unneeded.number)
    }

    #[test]
    fn the_mark_of_a_table_that_is_gone_stays_behind_its_records() {
        let mut held = three();
        (1..=3).for_each(|number| held.seal(number));
        held.begin(4, 40);
        held.flushed(C, at(3, 100));
        // The third segment has its mark, the first has records that it covers, and B holds that one.
        held.forget(A, at(4, 40));
        assert_eq!(taken(&mut held), None, "B holds the two before");
        held.flushed(B, at(1, 60));
        assert_eq!(taken(&mut held), Some(1));
        assert_eq!(taken(&mut held), None, "the second is before it too");
        held.flushed(B, at(2, 100));
        assert_eq!(taken(&mut held), Some(2));
        let last = held.take_removable().unwrap();
        assert_eq!(last, Unneeded { number: 3, bytes: 100, is_behind_others: true });
        held.put_back(last);
        assert_eq!(held.take_removable(), Some(last));
        assert_eq!(taken(&mut held), None);
    }

    #[test]
    fn a_log_that_ends_keeps_the_mark_of_a_table_that_is_gone() {
        let mut segments = three();
        segments.flushed(C, at(3, 100));
        segments.forget(A, at(3, 100));
        assert!(!segments.is_last_flushed(), "B holds those before");
        segments.flushed(B, at(2, 100));
        (1..=2).for_each(|number| segments.seal(number));
        assert_eq!([taken(&mut segments), taken(&mut segments)], [Some(1), Some(2)]);
        assert!(segments.is_last_flushed());
    }

    #[test]
    fn a_mark_goes_with_the_last_of_what_it_covers() {
        let mut segments = three();
        (1..=2).for_each(|number| segments.seal(number));
        segments.mark(A, at(3, 120));
        segments.flushed(A, at(3, 70));
        segments.flushed(C, at(3, 100));
        assert!(!segments.is_last_flushed(), "the mark covers what the first segment has");
        segments.flushed(B, at(2, 100));
        assert_eq!([taken(&mut segments), taken(&mut segments)], [Some(1), Some(2)]);
        assert!(segments.is_last_flushed(), "there is nothing that it covers");
        segments.seal(3);
        segments.begin(4, 40);
        let last = segments.take_removable().unwrap();
        assert_eq!(last, Unneeded { number: 3, bytes: 120, is_behind_others: true });
    }

    #[test]
    fn an_older_mark_is_not_needed_behind_a_newer_one() {
        let mut segments = three();
        segments.flushed(C, at(3, 100));
        segments.mark(A, at(3, 120));
        segments.flushed(A, at(3, 70));
        segments.begin(4, 40);
        (1..=3).for_each(|number| segments.seal(number));
        assert!(segments.is_held_by(A));
        assert_eq!(taken(&mut segments), None, "B holds the first two, and the mark is behind them");
        segments.mark(A, at(4, 60));
        segments.flushed(A, at(4, 40));
        assert_eq!((taken(&mut segments), segments.is_held_by(A)), (Some(3), false));
    }

    #[test]
    fn the_oldest_are_to_be_flushed_first_and_no_more_than_needed() {
        let mut segments = three();
        assert_eq!(segments.to_flush(300), []);
        assert_eq!(segments.to_flush(299), [B, A]);
        assert_eq!(segments.to_flush(200), [B, A]);
        segments.flushed(B, at(1, 60));
        assert_eq!(segments.to_flush(200), [A]);
        assert_eq!(segments.to_flush(100), [A, B]);
        assert_eq!(segments.to_flush(0), [A, B], "what is in the last one only does not help");
    }
}
