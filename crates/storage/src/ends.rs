//! Where an SSTable begins and ends among partitions and their rows, and which of two stands before the other.

use std::cmp::Ordering;

use model::{PartitionKey, Position, Schema, Slice};

use crate::sstable_set::Member;

/// Before and behind which positions an SSTable has nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'a> {
    first: &'a PartitionKey,
    last: &'a PartitionKey,
    /// Of the rows of its partitions; none where they may be anywhere.
    rows: Option<&'a Slice>,
}

impl<'a> Ends<'a> {
    /// Those of an SSTable with all that it has.
    pub(crate) fn of(member: &'a Member, schema: &Schema) -> Ends<'a> {
        // A static row stands in front of all others, and may be in each.
        let rows = member.rows().filter(|rows| schema.statics.is_empty() && !is_none(rows, schema));
        Ends { first: &member.first, last: &member.last, rows }
    }

    /// Those of what it has of one partition but its head.
    pub(crate) fn within(key: &'a PartitionKey, member: &'a Member, schema: &Schema) -> Ends<'a> {
        let rows = member.rows().filter(|rows| !is_none(rows, schema));
        Ends { first: key, last: key, rows }
    }

    /// The same, but rows may be anywhere.
    pub(crate) fn of_keys(self) -> Ends<'a> {
        Ends { rows: None, ..self }
    }

    /// The order of where they begin.
    pub(crate) fn compare_starts(&self, other: &Ends<'_>, schema: &Schema) -> Ordering {
        let rows = match (self.rows, other.rows) {
            (Some(a), Some(b)) => schema.compare(&a.start, &b.start),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        self.first.cmp(other.first).then(rows)
    }

    /// Whether it ends before another one begins, be it in the same partition.
    pub(crate) fn is_before(&self, other: &Ends<'_>, schema: &Schema) -> bool {
        match self.last.cmp(other.first) {
            Ordering::Equal => match (self.rows, other.rows) {
                (Some(a), Some(b)) => schema.compare(&a.end, &b.start).is_lt(),
                _ => false,
            },
            order => order.is_lt(),
        }
    }

    /// Whether it ends behind another one.
    pub(crate) fn is_longer(&self, other: &Ends<'_>, schema: &Schema) -> bool {
        let end = |a: &Position, b: &Position| schema.compare(a, b).is_gt();
        match self.last.cmp(other.last) {
            Ordering::Equal => match (self.rows, other.rows) {
                (Some(a), Some(b)) => end(&a.end, &b.end),
                (a, b) => a.is_none() && b.is_some(),
            },
            order => order.is_gt(),
        }
    }
}

/// Where there are no rows, `oa` has an end before the start.
fn is_none(rows: &Slice, schema: &Schema) -> bool {
    schema.compare(&rows.end, &rows.start).is_lt()
}
