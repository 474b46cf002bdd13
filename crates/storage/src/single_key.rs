//! Single rows, newest SSTables first.
//!
//! The SSTables that may have the row are ordered by their greatest timestamp. The newest are read by themselves, as
//! many at once as reads of late needed; where what they say hides all the others ([`crate::cover`]), these are not read.
//! Where it does not, the rest are read at once, so the worst case is two waits and not one an SSTable.
//!
//! ```text
//! newest ──────────────────────────► oldest
//! |  first, at once  |  the rest, at once  |
//!                    ^ how many: what makes the expected wait the shortest
//! ```
//!
//! Whether it pays is measured: each such read has a cost between 0, where one SSTable was enough, and 1, where all were
//! needed. While the mean cost is above the table's threshold, all are read at once from the start, save for one read in
//! a hundred.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use model::merge::Mapped;
use model::{Fragment, FragmentReader, Next};
use sstable::{PartitionReader, ReadOptions};

use crate::cover::Cover;
use crate::source::{SLICE_READ_AHEAD, Source, share};
use crate::sstable_set::Member;
use crate::table::ReadRequest;
use crate::{Error, Result};

/// Every so many eligible reads one goes newest first whatever the threshold says.
const PROBE_EVERY: u64 = 100;

/// The weight of the newest read in what is known of all.
const NEWEST: f64 = 1.0 / 64.0;

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
    mean_cost: Cell<f64>,
    /// The share of reads that needed one SSTable, two and so on.
    needs: Cell<[f64; MOST_FIRST]>,
    counters: Cell<SingleKeyStats>,
}

/// What single-row reads did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SingleKeyStats {
    /// Reads of single rows that several SSTables may have had.
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
        let (mean_cost, needs) = (Cell::new(0.0), Cell::new(needs));
        Adaptive { threshold, mean_cost, needs, counters: Cell::default() }
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

    /// A read went newest first, and chose from so many SSTables.
    fn note(&self, Reach { needed, read }: Reach, candidates: usize) {
        let cost = needed.saturating_sub(1) as f64 / (candidates - 1).max(1) as f64;
        self.mean_cost.set(self.mean_cost.get() * (1.0 - NEWEST) + cost * NEWEST);
        let mut needs = self.needs.get().map(|share| share * (1.0 - NEWEST));
        if let Some(share) = needs.get_mut(needed.saturating_sub(1)) {
            *share += NEWEST;
        }
        self.needs.set(needs);
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

/// How far a read went, newest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reach {
    /// So many of the newest SSTables would have been enough.
    needed: usize,
    /// So many were read.
    read: usize,
}

/// What was read newest first.
pub(crate) struct NewestFirst {
    /// What the memtables say.
    pub(crate) memtables: Vec<Source>,
    /// What those SSTables say that were read, or are open to be.
    pub(crate) sstables: Vec<Source>,
    /// Whether those are all.
    pub(crate) is_all: bool,
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
    let mut read = NewestFirst { memtables: Vec::new(), sstables: Vec::new(), is_all: false };
    for mut memtable in memtables.drain(..) {
        let fragments = gather(&mut memtable).await?;
        fragments.iter().for_each(|fragment| cover.add(fragment));
        read.memtables.push(Source::Held(fragments));
    }
    let first = adaptive.first(members.len());
    let reach = read_members(request, members, first, &mut cover, &mut read.sstables).await?;
    if members.len() > 1 {
        adaptive.note(reach, members.len());
    }
    read.is_all = reach.read == members.len();
    Ok(Some(read))
}

/// Reads so many first, and then all the others if those are not enough.
async fn read_members(
    request: &ReadRequest,
    members: &[Rc<Member>],
    first: usize,
    cover: &mut Cover,
    held: &mut Vec<Source>,
) -> Result<Reach> {
    let (mut read, mut needed) = (0, None);
    let mut some = first;
    while read < members.len() && !cover.hides(members[read].max_timestamp) {
        let batch = &members[read..members.len().min(read + some)];
        let rows = runtime::join_all(batch.iter().map(|member| row_of(request, member, members.len()))).await;
        for row in rows {
            let row = row?;
            read += 1;
            if needed.is_some() {
                continue;
            }
            // One that does not have the partition after all tells nothing of the ones behind it.
            let Some(row) = row else { continue };
            row.iter().for_each(|fragment| cover.add(fragment));
            held.push(Source::Held(row));
            some = members.len();
            needed = members.get(read).is_none_or(|next| cover.hides(next.max_timestamp)).then_some(read);
        }
    }
    Ok(Reach { needed: needed.unwrap_or(read), read })
}

/// All that an SSTable has of a request for one row, if it has the partition.
async fn row_of(request: &ReadRequest, member: &Member, count: usize) -> Result<Option<VecDeque<Fragment>>> {
    match open(request, member, count).await? {
        Some(mut source) => Ok(Some(gather(&mut source).await?)),
        None => Ok(None),
    }
}

/// What each of these has of a request, of those that have the partition.
pub(crate) async fn open_all(request: &ReadRequest, members: &[Rc<Member>]) -> Result<Vec<Source>> {
    let opened = members.iter().map(|member| open(request, member, members.len()));
    runtime::join_all(opened).await.into_iter().filter_map(Result::transpose).collect()
}

/// What an SSTable has of a request, one of so many, if it has the partition.
pub(crate) async fn open(request: &ReadRequest, member: &Member, count: usize) -> Result<Option<Source>> {
    let reader = open_reader(request, member, count).await?;
    Ok(reader.map(Source::SSTable))
}

/// The same, known to be of an SSTable. The filters of all members were asked: [`crate::SSTableSet::of_key`].
pub(crate) async fn open_reader(
    request: &ReadRequest,
    member: &Member,
    count: usize,
) -> Result<Option<Mapped<PartitionReader>>> {
    let reader = member.sstable.read(&request.key, &request.slice, options(request, count)).await?;
    Ok(reader.map(|reader| Mapped::new(reader, member.columns.clone())))
}

/// What the only SSTable that may have the partition has of a request, and maybe rows in front of it.
pub(crate) async fn open_with_neighbours(request: &ReadRequest, member: &Member) -> Result<Option<Source>> {
    let options = ReadOptions { neighbours: true, ..options(request, 1) };
    let reader = member.sstable.read(&request.key, &request.slice, options).await?;
    Ok(reader.map(|reader| Source::SSTable(Mapped::new(reader, member.columns.clone()))))
}

/// How one of so many SSTables is read.
fn options(request: &ReadRequest, count: usize) -> ReadOptions {
    ReadOptions {
        reverse: request.direction == model::Direction::Reverse,
        static_row: request.static_row,
        limit: request.limit.map(|rows| rows.div_ceil(count as u64)),
        is_filtered: true,
        read_buffer: Some(share(SLICE_READ_AHEAD, count)),
        ..ReadOptions::default()
    }
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
        reads.into_iter().for_each(|needed| adaptive.note(Reach { needed, read: needed }, 3));
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
        (0..1000).for_each(|_| adaptive.note(Reach { needed: 20, read: 20 }, 20));
        assert_eq!(adaptive.first(20), 1);
    }
}
