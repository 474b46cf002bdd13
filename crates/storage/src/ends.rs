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
    rows: Option<Rows<'a>>,
}

/// Where rows are, and the [ranks](Schema::rank) of both ends, which mostly tell what stands in front.
#[derive(Clone, Copy, Debug)]
struct Rows<'a> {
    slice: &'a Slice,
    ranks: [u64; 2],
}

impl<'a> Ends<'a> {
    /// Those of an SSTable with all that it has.
    pub(crate) fn of(member: &'a Member, schema: &Schema) -> Ends<'a> {
        // A static row stands in front of all others, and may be in each.
        let rows = Rows::of(member, schema).filter(|_| schema.statics.is_empty());
        Ends { first: &member.first, last: &member.last, rows }
    }

    /// Those of what it has of one partition but its head.
    pub(crate) fn within(key: &'a PartitionKey, member: &'a Member, schema: &Schema) -> Ends<'a> {
        Ends { first: key, last: key, rows: Rows::of(member, schema) }
    }

    /// The same, but rows may be anywhere.
    pub(crate) fn of_keys(self) -> Ends<'a> {
        Ends { rows: None, ..self }
    }

    /// The order of where they begin.
    pub(crate) fn compare_starts(&self, other: &Ends<'_>, schema: &Schema) -> Ordering {
        compare_keys(self.first, other.first).then_with(|| match (&self.rows, &other.rows) {
            (Some(a), Some(b)) => compare(schema, a.start(), b.start()),
            (a, b) => a.is_some().cmp(&b.is_some()),
        })
    }

    /// Whether it ends before another one begins, be it in the same partition.
    pub(crate) fn is_before(&self, other: &Ends<'_>, schema: &Schema) -> bool {
        match compare_keys(self.last, other.first) {
            Ordering::Equal => match (&self.rows, &other.rows) {
                (Some(a), Some(b)) => compare(schema, a.end(), b.start()).is_lt(),
                _ => false,
            },
            order => order.is_lt(),
        }
    }

    /// Whether it ends behind another one.
    pub(crate) fn is_longer(&self, other: &Ends<'_>, schema: &Schema) -> bool {
        match compare_keys(self.last, other.last) {
            Ordering::Equal => match (&self.rows, &other.rows) {
                (Some(a), Some(b)) => compare(schema, a.end(), b.end()).is_gt(),
                (a, b) => a.is_none() && b.is_some(),
            },
            order => order.is_gt(),
        }
    }
}

/// A position, and its [rank](Schema::rank).
pub(crate) type Ranked<'a> = (u64, &'a Position);

impl<'a> Rows<'a> {
    /// Those of an SSTable, if it is certain where they are. Where there are none, `oa` has an end before the start.
    fn of(member: &'a Member, schema: &Schema) -> Option<Rows<'a>> {
        let (slice, ranks) = member.ranked_rows()?;
        let rows = Rows { slice, ranks };
        compare(schema, rows.start(), rows.end()).is_le().then_some(rows)
    }

    fn start(&self) -> Ranked<'a> {
        (self.ranks[0], &self.slice.start)
    }

    fn end(&self) -> Ranked<'a> {
        (self.ranks[1], &self.slice.end)
    }
}

/// Which of two stands before the other.
pub(crate) fn compare(schema: &Schema, (a_rank, a): Ranked<'_>, (b_rank, b): Ranked<'_>) -> Ordering {
    a_rank.cmp(&b_rank).then_with(|| schema.compare(a, b))
}

/// Of two within one partition it is the same key.
fn compare_keys(a: &PartitionKey, b: &PartitionKey) -> Ordering {
    if std::ptr::eq(a, b) { Ordering::Equal } else { a.cmp(b) }
}
