//! The ends of range tombstones, in any order, as one sequence of changes.
//!
//! ```text
//! ends        5 begins   9 begins        5 ends    9 begins   9 ends   9 ends
//! 5 open      1          1               0         0          0        0
//! 9 open      0          1               1         2          1        0
//! changes     5          9               –         –          –        live
//! ```

use std::collections::BTreeMap;

use model::{DeletionTime, Position, RangeTombstoneChange, Schema};

use super::{BUFFER, push};

/// One end of a range tombstone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct End {
    pub(super) position: Position,
    pub(super) deletion: DeletionTime,
    /// 1 where it begins, -1 where it ends.
    pub(super) count: i64,
    /// The line that told it.
    pub(super) line: u64,
}

/// The ends of the range tombstones of a partition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Ends {
    ends: Vec<End>,
}

/// How often each deletion has begun and not ended.
#[derive(Debug, Default)]
struct Open {
    counts: BTreeMap<DeletionTime, i64>,
}

impl Ends {
    /// Adds one; how many bytes of memory it takes, about.
    pub(super) fn push(&mut self, end: End) -> usize {
        values_memory(&end) + push(&mut self.ends, end)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn memory(&self) -> usize {
        self.ends.capacity() * size_of::<End>() + self.ends.iter().map(values_memory).sum::<usize>()
    }

    pub(super) fn deletions(&self) -> impl Iterator<Item = DeletionTime> {
        self.ends.iter().map(|end| end.deletion)
    }

    /// Splits off the ends of each deletion of which some do not go together.
    pub(super) fn split_unpaired(&mut self, schema: &Schema) -> Ends {
        let unpaired = self.unpaired(schema);
        if unpaired.is_empty() {
            return Ends::default();
        }
        let (left, whole) = self.ends.drain(..).partition(|end| unpaired.contains_key(&end.deletion));
        self.ends = whole;
        Ends { ends: left }
    }

    /// The first line that tells an end without a start, or a start without an end.
    pub(super) fn first_unpaired(&self, schema: &Schema) -> Option<u64> {
        let mut copy = self.clone();
        copy.unpaired(schema).into_values().min()
    }

    /// The deletions that end somewhere before they begin, or do not end, each with the first line that tells so.
    fn unpaired(&mut self, schema: &Schema) -> BTreeMap<DeletionTime, u64> {
        self.sort(schema);
        let mut open = Open::default();
        let (mut unpaired, mut last_begun) = (BTreeMap::new(), BTreeMap::new());
        for end in &self.ends {
            if end.count > 0 {
                last_begun.insert(end.deletion, end.line);
            }
            if open.add(end) < 0 {
                unpaired.entry(end.deletion).or_insert(end.line);
            }
        }
        for (deletion, _) in open.counts.into_iter().filter(|(_, count)| *count > 0) {
            let line = unpaired.entry(deletion).or_insert(u64::MAX);
            *line = last_begun[&deletion].min(*line);
        }
        unpaired
    }

    /// In the order of their places; at one place, what begins comes first.
    fn sort(&mut self, schema: &Schema) {
        self.ends.sort_by(|a, b| schema.compare(&a.position, &b.position).then(b.count.cmp(&a.count)));
    }

    /// The deletion in force, wherever it changes. All ends go together.
    pub(super) fn into_changes(mut self, schema: &Schema) -> Vec<RangeTombstoneChange> {
        self.sort(schema);
        let mut open = Open::default();
        let mut changes: Vec<RangeTombstoneChange> = Vec::new();
        let mut in_force = DeletionTime::LIVE;
        let mut ends = self.ends.into_iter().peekable();
        while let Some(end) = ends.next() {
            open.add(&end);
            if ends.peek().is_some_and(|next| schema.compare(&next.position, &end.position).is_eq()) {
                continue;
            }
            let greatest = open.greatest();
            if greatest != in_force {
                in_force = greatest;
                changes.push(RangeTombstoneChange { position: end.position, deletion: in_force });
            }
        }
        assert!(in_force.is_live(), "ranges that are not whole were split off");
        changes
    }
}

impl Open {
    /// Counts an end in; how often its deletion is open then.
    fn add(&mut self, end: &End) -> i64 {
        let count = self.counts.entry(end.deletion).or_default();
        *count += end.count;
        let left = *count;
        if left == 0 {
            self.counts.remove(&end.deletion);
        }
        left
    }

    fn greatest(&self) -> DeletionTime {
        let open = self.counts.iter().rev().find(|(_, count)| **count > 0);
        open.map_or(DeletionTime::LIVE, |(deletion, _)| *deletion)
    }
}

/// What an end has besides itself: one buffer for all its values.
fn values_memory(end: &End) -> usize {
    let prefix = &end.position.prefix;
    prefix.spilled_bytes() + prefix.values.iter().flatten().map(|value| value.len()).sum::<usize>() + BUFFER
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CqlType;

    fn schema() -> Schema {
        Schema::new(CqlType::Int, vec![CqlType::Int], vec![], vec![])
    }

    fn deletion(at: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at: at, local_deletion_time: 1 }
    }

    fn at(place: i32) -> Position {
        Position::before([place.to_be_bytes().to_vec()].into_iter().collect())
    }

    fn ends(list: &[(i32, i64, i64)]) -> Ends {
        let mut ends = Ends::default();
        for (line, (place, of, count)) in (1..).zip(list) {
            ends.push(End { position: at(*place), deletion: deletion(*of), count: *count, line });
        }
        ends
    }

    fn changes(list: &[(i32, i64, i64)]) -> Vec<(Position, i64)> {
        let changes = ends(list).into_changes(&schema());
        changes.into_iter().map(|change| (change.position, change.deletion.marked_for_delete_at)).collect()
    }

    #[test]
    fn the_greatest_open_one_counts_in_any_order() {
        let drawn = [(1, 5, 1), (2, 9, 1), (3, 5, -1), (4, 9, 1), (5, 9, -1), (6, 9, -1)];
        let expected = vec![(at(1), 5), (at(2), 9), (at(6), i64::MIN)];
        assert_eq!(changes(&drawn), expected);
        let mut turned = drawn;
        turned.reverse();
        assert_eq!(changes(&turned), expected);
    }

    #[test]
    fn one_that_ends_where_the_next_begins_is_one_change() {
        assert_eq!(
            changes(&[(1, 5, 1), (2, 5, -1), (2, 7, 1), (3, 7, -1)]),
            [(at(1), 5), (at(2), 7), (at(3), i64::MIN)]
        );
    }

    #[test]
    fn what_is_not_whole_is_split_off() {
        let whole = [(1, 5, 1), (2, 5, -1)];
        let mut all = ends(&[&whole[..], &[(3, 9, 1), (4, 6, -1), (5, 6, 1)]].concat());
        let left = all.split_unpaired(&schema());
        assert_eq!(all, ends(&whole));
        assert_eq!(left.first_unpaired(&schema()), Some(3));
        assert_eq!(ends(&[(2, 5, 1), (1, 5, -1)]).first_unpaired(&schema()), Some(2));
        assert_eq!(ends(&whole).first_unpaired(&schema()), None);
    }
}
