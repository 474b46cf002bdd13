//! Between which clustering keys an SSTable has anything, in whatever partition: what is not asked for outside of that.
//!
//! ```text
//! one partition, written as time goes       SSTable 1 [──────)[──────) 2 [──────) 3 [──────) 4
//! a slice of it                                             ├──────┤             asks 2 and 3
//! ```
//!
//! Of many SSTables those around a slice are found by halves, as those around a token are: by whichever of the two leaves fewer.
//!
//! Statistics.db has the least and the greatest clustering key of rows and range tombstones, and whether a partition may be
//! deleted as a whole: that hides rows outside of them too, and the SSTable is asked all the same, unless Fences.db tells more, or it is
//! [known](super::undeleted) that the partition is not. All is in memory as long as the SSTable is open, and costs no request.

use std::cmp::{Ordering, Reverse};
use std::rc::Rc;

use model::{Position, Schema, Slice};
use sstable::SSTable;

use super::Member;
use super::runs::{Runs, Stretch};

/// Runs of rows are worth while where they are so many times fewer than those of tokens.
const FEWER: usize = 4;

/// Where rows and range tombstones are, and what else there is matters to no row.
#[derive(Debug)]
pub(crate) struct Span {
    /// Where there are no rows, `oa` has an end before the start: nothing meets it.
    slice: Slice,
    /// [`Schema::rank`] of its ends.
    ranks: [u64; 2],
    /// Whether a partition may be deleted as a whole, which hides its rows in other SSTables.
    pub(super) may_hide: bool,
}

/// A slice that is looked for, of which the static row is not wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoughtSlice<'a> {
    schema: &'a Schema,
    slice: &'a Slice,
    ranks: [u64; 2],
    /// No SSTable that has been in the table since this version of its set deletes the partition; 0 where nothing is known.
    pub(super) undeleted: u64,
}

/// Where the members of a set have rows, in runs that do not overlap.
#[derive(Clone, Debug, Default)]
pub(super) struct ByRows {
    /// By ranks, as [`on_line`] has them.
    runs: Runs,
    /// The same of members that may hide rows elsewhere.
    hiding: Runs,
    /// These, and since which version each is in the table: the newest first.
    newest_hiding: Vec<(u64, u32)>,
    /// Members that may have rows anywhere.
    anywhere: Vec<u32>,
}

impl Span {
    /// That of an SSTable; `None` where rows may be anywhere, and where it is not certain.
    pub(super) fn of(sstable: &SSTable, schema: &Schema) -> Option<Span> {
        let stats = &sstable.statistics().stats;
        let (covered, all) = (&stats.covered_clustering, Slice::all());
        let is_told = covered.is_accurate && covered.slice != all;
        is_told.then(|| Span {
            slice: covered.slice.clone(),
            ranks: ranks(&covered.slice, schema),
            may_hide: stats.may_have_partition_deletions && !sstable.denies_partition_deletions(),
        })
    }

    /// Outside of which there are none.
    pub(super) fn slice(&self) -> &Slice {
        &self.slice
    }

    /// The same, and the [ranks](Schema::rank) of its ends.
    pub(super) fn ranked(&self) -> (&Slice, [u64; 2]) {
        (&self.slice, self.ranks)
    }

    /// Whether rows or range tombstones of a slice may be here. Both begin and end beside rows: where one begins as the other ends, they
    /// share nothing.
    #[inline]
    pub(super) fn meets(&self, sought: &SoughtSlice<'_>) -> bool {
        let ([first, last], [start, end]) = (self.ranks, sought.ranks);
        let is_before = |a: &Position, a_rank: u64, b: &Position, b_rank: u64| match a_rank.cmp(&b_rank) {
            Ordering::Equal => sought.schema.compare(a, b).is_le(),
            order => order.is_lt(),
        };
        // An end before the start is nowhere, even where all is sought.
        first <= last
            && !is_before(&self.slice.end, last, &sought.slice.start, start)
            && !is_before(&sought.slice.end, end, &self.slice.start, first)
    }

    /// Whether the row with these values in all clustering columns, of this [rank](Schema::rank_of_row), may be here.
    #[inline]
    pub(super) fn may_have_row(&self, schema: &Schema, row: &[&[u8]], rank: u64) -> bool {
        let [first, last] = self.ranks;
        let of_end = |end: &Position, end_rank: u64| match end_rank.cmp(&rank) {
            Ordering::Equal => schema.compare_to_row(end, row),
            order => order,
        };
        of_end(&self.slice.start, first).is_le() && of_end(&self.slice.end, last).is_ge()
    }
}

impl<'a> SoughtSlice<'a> {
    /// This slice.
    pub(crate) fn new(slice: &'a Slice, schema: &'a Schema) -> SoughtSlice<'a> {
        SoughtSlice { schema, slice, ranks: ranks(slice, schema), undeleted: 0 }
    }

    /// The same of a partition that no SSTable deletes that has been in the table since this version of its set.
    pub(crate) fn undeleted_since(self, version: u64) -> SoughtSlice<'a> {
        SoughtSlice { undeleted: version, ..self }
    }

    /// [`Schema::rank`] of its ends.
    pub(super) fn ranks(&self) -> [u64; 2] {
        self.ranks
    }
}

impl ByRows {
    /// That of these members, if it leaves many fewer of them than their tokens do.
    pub(super) fn of(members: &[Rc<Member>]) -> Option<ByRows> {
        let mut by_rows = ByRows::default();
        let (mut certain, mut hiding) = (Vec::new(), Vec::new());
        for (place, member) in (0..).zip(members) {
            let Some(span) = &member.span else {
                by_rows.anywhere.push(place);
                continue;
            };
            let [first, last] = span.ranks.map(on_line);
            // Where there are no rows, `oa` has an end before the start: they are not met with.
            if first <= last {
                let stretches = if span.may_hide { &mut hiding } else { &mut certain };
                stretches.push(Stretch { first, last, place });
            }
            if span.may_hide {
                by_rows.newest_hiding.push((member.since.get(), place));
            }
        }
        by_rows.newest_hiding.sort_unstable_by_key(|(since, _)| Reverse(*since));
        (by_rows.runs, by_rows.hiding) = (Runs::of(certain), Runs::of(hiding));
        let of_tokens = (0..).zip(members).map(|(place, member)| member.stretch(place));
        let is_fewer = by_rows.len() * FEWER <= Runs::of(of_tokens.collect()).len();
        is_fewer.then_some(by_rows)
    }

    /// The members that may have rows or range tombstones between two ranks, both included.
    pub(super) fn meeting(&self, [first, last]: [u64; 2]) -> impl Iterator<Item = u32> {
        let (first, last) = (on_line(first), on_line(last));
        let told = self.runs.meeting(first, last).chain(self.hiding.meeting(first, last));
        told.chain(self.anywhere.iter().copied())
    }

    /// The same, but so many of each run at the most, those nearest to one of the ends. Whether there are more.
    pub(super) fn nearest(&self, ranks: [u64; 2], is_forward: bool, most: usize) -> (Vec<u32>, bool) {
        let line = ranks.map(on_line);
        let (mut near, has_more) = self.runs.nearest(line, is_forward, most);
        let (hiding, has_more_hiding) = self.hiding.nearest(line, is_forward, most);
        near.extend(hiding);
        (near, has_more || has_more_hiding)
    }

    /// The members that may hide rows wherever these are, and came into the table behind a version of its set.
    pub(super) fn hiding_behind(&self, version: u64) -> impl Iterator<Item = u32> {
        let newer = self.newest_hiding.iter().take_while(move |(since, _)| *since > version);
        newer.map(|(_, place)| *place)
    }

    fn len(&self) -> usize {
        self.runs.len() + self.hiding.len() + self.anywhere.len()
    }
}

/// Whether some of these are asked for a slice, or are asked before others were read, only because they may delete the partition.
pub(super) fn asks_more_than_rows(members: &[Rc<Member>], sought: &SoughtSlice<'_>) -> bool {
    if !members.iter().any(|member| member.may_hide(sought)) {
        return false;
    }
    let compare = |a: &&Position, b: &&Position| sought.schema.compare(a, b);
    let spans = || members.iter().filter_map(|member| member.span.as_ref().map(|span| &span.slice));
    let (first_end, last_start) =
        (spans().map(|slice| &slice.end).min_by(compare), spans().map(|slice| &slice.start).max_by(compare));
    let follow =
        first_end.zip(last_start).is_some_and(|(end, start)| sought.schema.compare(end, start).is_lt());
    follow || members.iter().any(|member| member.is_beside(sought))
}

/// A rank as a number with a sign, in the same order.
fn on_line(rank: u64) -> i64 {
    (rank ^ 1 << 63) as i64
}

fn ranks(slice: &Slice, schema: &Schema) -> [u64; 2] {
    [schema.rank(&slice.start), schema.rank(&slice.end)]
}
