//! Single rows, newest SSTables first.
//!
//! The SSTables that may have the row are ordered by their greatest timestamp. The newest are read first, as many at once as recent reads
//! needed. If their data hides all others ([`crate::cover`]), the others are not read; if not, all others are read at once. So the worst
//! case is two waits, not one wait for each SSTable.
//!
//! ```text
//! newest ──────────────────────────► oldest
//! |  first, at once  |  the rest, at once  |
//!                    ^ how many: what makes the expected wait the shortest
//! ```
//!
//! Rows of one partition that are asked for together are read together in this way: an SSTable is asked only for rows that it may still
//! change.
//!
//! Whether this pays is measured: each such read has a cost from 0, if one SSTable was enough, to 1, if all were needed. While the mean
//! cost is above the table's threshold, all SSTables are read at once from the start, except for one read in a hundred.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use model::{DeletionTime, Fragment, FragmentReader, Next, Slice};

use crate::cover::Cover;
use crate::slices::{open, options};
use crate::source::Source;
use crate::sstable_set::Member;
use crate::table::ReadRequest;
use crate::{Error, Result};

/// Every so many eligible reads one goes newest first whatever the threshold says.
const PROBE_EVERY: u64 = 100;

/// The newest read is one of so many in what is known of all.
const KNOWN: u32 = 64;

/// Before there were that many: what is taken for known of a table that nobody has read, that one SSTable is enough, is as much as so many reads tell.
const PRESUMED: u32 = 8;

/// Up to so many are read at once at first.
const MOST_FIRST: usize = 8;

/// What each SSTable beyond the first adds to the wait for several that are read at once, in waits for one. Published
/// latencies have 2.2 times as much for three.
const ONE_MORE: f64 = 0.6;

/// So many extra SSTables have a count of their own in the histogram; more share the last one.
pub const EXTRA_READS: usize = 16;

/// How well reading newest first does.
#[derive(Debug)]
pub(crate) struct Adaptive {
    threshold: f64,
    /// How many reads what is known comes from, those that are presumed included; [`KNOWN`] at the most.
    known: Cell<u32>,
    mean_cost: Cell<f64>,
    /// The share of reads that needed one SSTable, two and so on.
    needs: Cell<[f64; MOST_FIRST]>,
    counters: Cell<SingleKeyStats>,
}

/// What single-row reads did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SingleKeyStats {
    /// Reads of single rows that several SSTables may have had. Rows of one partition that are read together are one read.
    pub eligible: u64,
    /// Those that were read newest first.
    pub newest_first: u64,
    /// Those of them for which not all SSTables had to be read.
    pub hits: u64,
    /// How many SSTables were read beyond the first, by their number.
    pub extra_reads: [u64; EXTRA_READS],
}

impl Adaptive {
    pub(crate) fn new(threshold: f64) -> Adaptive {
        let mut needs = [0.0; MOST_FIRST];
        needs[0] = 1.0;
        let (known, mean_cost, needs) = (Cell::new(PRESUMED), Cell::new(0.0), Cell::new(needs));
        Adaptive { threshold, known, mean_cost, needs, counters: Cell::default() }
    }

    pub(crate) fn stats(&self) -> SingleKeyStats {
        self.counters.get()
    }

    /// Whether the next eligible read goes newest first.
    fn goes_newest_first(&self) -> bool {
        let mut counters = self.counters.get();
        counters.eligible += 1;
        let is_probe = counters.eligible.is_multiple_of(PROBE_EVERY);
        let pays = self.mean_cost.get() <= self.threshold;
        let goes = self.threshold > 0.0 && (pays || is_probe);
        counters.newest_first += u64::from(goes);
        self.counters.set(counters);
        goes
    }

    /// How many of so many SSTables are read first.
    fn first(&self, candidates: usize) -> usize {
        let mut is_more_needed = 1.0;
        let mut best = (1, f64::INFINITY);
        for (share, first) in self.needs.get().into_iter().zip(1..=candidates) {
            is_more_needed -= share;
            let expected = wait(first) + f64::max(is_more_needed, 0.0) * wait(candidates - first);
            if expected < best.1 {
                best = (first, expected);
            }
        }
        best.0
    }

    /// Of so many SSTables that a row was looked for in, newest first, so many would have been enough.
    fn note(&self, needed: usize, candidates: usize) {
        let cost = needed.saturating_sub(1) as f64 / (candidates - 1).max(1) as f64;
        let known = KNOWN.min(self.known.get() + 1);
        self.known.set(known);
        let newest = 1.0 / f64::from(known);
        self.mean_cost.set(self.mean_cost.get() * (1.0 - newest) + cost * newest);
        let mut needs = self.needs.get().map(|share| share * (1.0 - newest));
        if let Some(share) = needs.get_mut(needed.saturating_sub(1)) {
            *share += newest;
        }
        self.needs.set(needs);
    }

    /// A read that went newest first has read so many of so many SSTables.
    fn count(&self, read: usize, candidates: usize) {
        let mut counters = self.counters.get();
        counters.hits += u64::from(read < candidates);
        counters.extra_reads[read.saturating_sub(1).min(EXTRA_READS - 1)] += 1;
        self.counters.set(counters);
    }
}

/// How long it takes to read so many SSTables at once, in waits for one.
fn wait(count: usize) -> f64 {
    if count == 0 { 0.0 } else { 1.0 + ONE_MORE * (count - 1) as f64 }
}

/// What SSTables say of a row.
pub(crate) struct OfRow {
    /// Those that were read, or are open to be.
    pub(crate) sstables: Vec<Source>,
    /// Whether those are all.
    pub(crate) is_all: bool,
}

impl OfRow {
    /// What those that were read say of the deletion of the row's partition.
    pub(crate) fn partition_deletion(&self) -> DeletionTime {
        let of_source = |source: &Source| match source {
            Source::Held(fragments) => fragments.front().and_then(|first| match first {
                Fragment::PartitionStart(start) => Some(start.deletion),
                _ => None,
            }),
            _ => None,
        };
        self.sstables.iter().filter_map(of_source).max().unwrap_or(DeletionTime::LIVE)
    }
}

/// What was read newest first.
pub(crate) struct NewestFirst {
    /// What the memtables say.
    pub(crate) memtables: Vec<Source>,
    /// What SSTables say.
    pub(crate) of_row: OfRow,
}

/// A row that is being read.
struct Reading<'r> {
    request: &'r ReadRequest,
    /// What hides all that is older, where anything can.
    cover: Option<Cover>,
    held: Vec<Source>,
    /// How many SSTables were asked for it.
    asked: usize,
    /// How many of them would have been enough, once that is known.
    needed: Option<usize>,
}

/// Reads one row newest first: what the memtables say comes first, and costs nothing. `None` if the read is not of that
/// kind, or if it does not pay to; nothing has been read then.
pub(crate) async fn read_newest_first(
    request: &ReadRequest,
    adaptive: &Adaptive,
    members: &[Rc<Member>],
    memtables: &mut Vec<Source>,
    schema: &model::Schema,
) -> Result<Option<NewestFirst>> {
    if !is_one_row(request, schema) {
        return Ok(None);
    }
    let Some(mut cover) = Cover::new(schema, &request.wanted, request.static_row) else { return Ok(None) };
    if members.len() > 1 && !adaptive.goes_newest_first() {
        return Ok(None);
    }
    let mut held = Vec::new();
    for mut memtable in memtables.drain(..) {
        let fragments = gather(&mut memtable).await?;
        fragments.iter().for_each(|fragment| cover.add(fragment));
        held.push(Source::Held(fragments));
    }
    let mut rows = [Reading { cover: Some(cover), ..Reading::new(request) }];
    read_and_note(&mut rows, adaptive, members).await?;
    let [row] = rows;
    Ok(Some(NewestFirst { memtables: held, of_row: row.into_read(members.len()) }))
}

/// Reads rows of one partition, of which memtables say nothing, each SSTable for all of them: newest first if it pays to, until what
/// was read of each hides the rest. They ascend, without static rows, and the same is wanted of each.
pub(crate) async fn read_together(
    requests: &[ReadRequest],
    adaptive: &Adaptive,
    members: &[Rc<Member>],
    schema: &model::Schema,
) -> Result<Vec<OfRow>> {
    let mut rows: Vec<Reading<'_>> = requests.iter().map(Reading::new).collect();
    let cover = |request: &ReadRequest| Cover::new(schema, &request.wanted, request.static_row);
    if members.len() > 1 && cover(&requests[0]).is_some() && adaptive.goes_newest_first() {
        rows.iter_mut().for_each(|row| row.cover = cover(row.request));
        read_and_note(&mut rows, adaptive, members).await?;
    } else {
        read_members(&mut rows, members, members.len()).await?;
    }
    Ok(rows.into_iter().map(|row| row.into_read(members.len())).collect())
}

/// Reads newest first, and notes how that went.
async fn read_and_note(rows: &mut [Reading<'_>], adaptive: &Adaptive, members: &[Rc<Member>]) -> Result<()> {
    let read = read_members(rows, members, adaptive.first(members.len())).await?;
    if members.len() > 1 {
        // Together they are one read, which waits for the row that needs most.
        let needed = rows.iter().map(|row| row.needed.unwrap_or(row.asked)).max();
        adaptive.note(needed.unwrap_or(read), members.len());
        adaptive.count(read, members.len());
    }
    Ok(())
}

/// Reads so many first, and then all the others, for the rows for which those are not enough. How many were read.
async fn read_members(rows: &mut [Reading<'_>], members: &[Rc<Member>], first: usize) -> Result<usize> {
    let (mut read, mut some) = (0, first);
    while read < members.len() && rows.iter().any(|row| !row.is_hidden(&members[read])) {
        let batch = &members[read..members.len().min(read + some)];
        let mut due: Vec<&mut Reading<'_>> =
            rows.iter_mut().filter(|row| !row.is_hidden(&members[read])).collect();
        due.iter_mut().for_each(|row| row.asked += batch.len());
        let requests: Vec<&ReadRequest> = due.iter().map(|row| row.request).collect();
        let found =
            runtime::join_all(batch.iter().map(|member| rows_of(&requests, member, members.len()))).await;
        for found in found {
            let found = found?;
            read += 1;
            // One that does not have the partition after all tells nothing of the ones behind it.
            let Some(found) = found else { continue };
            some = members.len();
            for (row, fragments) in due.iter_mut().zip(found) {
                row.add(fragments);
                if row.needed.is_none() && members.get(read).is_none_or(|next| row.is_hidden(next)) {
                    row.needed = Some(read);
                }
            }
        }
    }
    Ok(read)
}

impl<'r> Reading<'r> {
    /// Nothing was read of it yet, and nothing will hide anything.
    fn new(request: &'r ReadRequest) -> Reading<'r> {
        Reading { request, cover: None, held: Vec::new(), asked: 0, needed: None }
    }

    fn add(&mut self, fragments: VecDeque<Fragment>) {
        if let Some(cover) = &mut self.cover {
            fragments.iter().for_each(|fragment| cover.add(fragment));
        }
        self.held.push(Source::Held(fragments));
    }

    /// Whether what was read of the row hides all that this SSTable may say.
    fn is_hidden(&self, member: &Member) -> bool {
        self.cover.as_ref().is_some_and(|cover| cover.hides(member.max_timestamp))
    }

    fn into_read(self, members: usize) -> OfRow {
        OfRow { is_all: self.asked == members, sstables: self.held }
    }
}

/// All that an SSTable, one of so many, has of requests for rows of one partition, if it has that.
async fn rows_of(
    requests: &[&ReadRequest],
    member: &Member,
    count: usize,
) -> Result<Option<Vec<VecDeque<Fragment>>>> {
    if let [request] = requests {
        return match open(request, member, count).await?.map(Source::SSTable) {
            Some(mut source) => Ok(Some(vec![gather(&mut source).await?])),
            None => Ok(None),
        };
    }
    let slices: Vec<&Slice> = requests.iter().map(|request| &request.slice).collect();
    let (sstable, options) = (&member.sstable, options(requests[0], count, count));
    let Some(mut rows) = sstable.read_rows(&requests[0].key, &slices, options).await? else {
        return Ok(None);
    };
    if !member.columns.is_identity() {
        rows.iter_mut().flatten().for_each(|fragment| member.columns.map(fragment));
    }
    Ok(Some(rows))
}

/// Reads a source to its end.
pub(crate) async fn gather(source: &mut impl FragmentReader<Error = Error>) -> Result<VecDeque<Fragment>> {
    gather_behind(VecDeque::new(), source).await
}

/// The same behind what came from it before.
pub(crate) async fn gather_behind(
    mut fragments: VecDeque<Fragment>,
    source: &mut impl FragmentReader<Error = Error>,
) -> Result<VecDeque<Fragment>> {
    let mut fragment = Fragment::default();
    loop {
        match source.pop(&mut fragment)? {
            Next::Fragment => fragments.push_back(std::mem::take(&mut fragment)),
            Next::Fill => source.fill().await?,
            Next::End => return Ok(fragments),
        }
    }
}

/// Whether the slice is of one full clustering key.
pub(crate) fn is_one_row(request: &ReadRequest, schema: &model::Schema) -> bool {
    schema.row_of(&request.slice).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reads: impl IntoIterator<Item = usize>) -> Adaptive {
        let adaptive = Adaptive::new(0.5);
        reads.into_iter().for_each(|needed| adaptive.note(needed, 3));
        adaptive
    }

    #[test]
    fn as_many_are_read_first_as_were_needed_of_late() {
        assert_eq!(after([]).first(3), 1);
        for needed in 1..=3 {
            assert_eq!(after([needed; 300]).first(3), needed);
            assert_eq!(after([needed; 300]).first(2), needed.min(2));
        }
        assert_eq!(after([1, 1, 1, 2].into_iter().cycle().take(300)).first(3), 1);
        assert_eq!(after([1, 3].into_iter().cycle().take(300)).first(3), 1);
        assert_eq!(after([1, 3, 3, 3, 3].into_iter().cycle().take(300)).first(3), 3);
    }

    /// What is presumed of a table is soon forgotten, and so is what its first reads happened to be.
    #[test]
    fn a_table_adapts_within_some_twenty_reads() {
        assert_eq!([20, 30].map(|reads| after(vec![3; reads]).first(3)), [1, 3]);
        let then = |reads| after(std::iter::repeat_n(3, 60).chain(std::iter::repeat_n(1, reads)));
        assert_eq!([5, 30].map(|reads| then(reads).first(3)), [3, 1]);
    }

    /// Of a table whose first reads went badly, one in a hundred finds out that it has changed.
    #[test]
    fn a_bad_beginning_does_not_last() {
        let adaptive = after([3; 10]);
        let mut reads = 0;
        while adaptive.mean_cost.get() > 0.5 {
            reads += 1;
            if adaptive.goes_newest_first() {
                adaptive.note(1, 3);
            }
        }
        assert!((100..=500).contains(&reads), "{reads} reads");
    }

    #[test]
    fn what_is_needed_decides_whether_it_pays() {
        for (needed, pays) in [(1, true), (2, true), (3, false)] {
            let adaptive = after([needed; 1000]);
            let newest_first = (0..1000).filter(|_| adaptive.goes_newest_first()).count();
            assert_eq!(newest_first, if pays { 1000 } else { 10 }, "{needed}");
        }
    }

    #[test]
    fn more_than_there_are_shares_of_are_read_at_once() {
        let adaptive = Adaptive::new(1.0);
        (0..1000).for_each(|_| adaptive.note(20, 20));
        assert_eq!(adaptive.first(20), 1);
    }
}
