//! Single rows, newest SSTable first.
//!
//! The SSTables that may have the row are ordered by their greatest timestamp. The newest is read by itself; where
//! what it says hides all the others ([`crate::cover`]), they are not read. Where it does not, the rest are read at
//! once, so the worst case is two waits and not one an SSTable.
//!
//! Whether it pays is measured: each such read has a cost between 0, one SSTable read, and 1, all of them. While the
//! mean cost is above the table's threshold, all are read at once from the start, save for one read in a hundred.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use model::FragmentReader;
use model::merge::Mapped;
use sstable::{PartitionReader, ReadOptions};

use crate::Result;
use crate::cover::Cover;
use crate::source::{Source, share_of_read_ahead};
use crate::sstable_set::Member;
use crate::table::ReadRequest;

/// Every so many eligible reads one goes newest first whatever the threshold says.
const PROBE_EVERY: u64 = 100;

/// The weight of the newest read in the mean cost.
const NEWEST: f64 = 1.0 / 64.0;

/// So many extra SSTables have a count of their own in the histogram; more share the last one.
pub const EXTRA_READS: usize = 16;

/// How well reading newest first does.
#[derive(Debug)]
pub(crate) struct Adaptive {
    threshold: f64,
    mean_cost: Cell<f64>,
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
        Adaptive { threshold, mean_cost: Cell::new(0.0), counters: Cell::default() }
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

    /// A read that went newest first has read so many of the SSTables that it had to choose from.
    fn note(&self, read: usize, candidates: usize) {
        let extra = read.saturating_sub(1);
        let cost = extra as f64 / (candidates - 1).max(1) as f64;
        self.mean_cost.set(self.mean_cost.get() * (1.0 - NEWEST) + cost * NEWEST);
        let mut counters = self.counters.get();
        counters.hits += u64::from(read < candidates);
        counters.extra_reads[extra.min(EXTRA_READS - 1)] += 1;
        self.counters.set(counters);
    }
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
    if members.is_empty() || !is_one_row(request, schema) {
        return Ok(None);
    }
    let Some(mut cover) = Cover::new(schema, &request.wanted, request.static_row) else { return Ok(None) };
    if members.len() > 1 && !adaptive.goes_newest_first() {
        return Ok(None);
    }
    let mut read = NewestFirst { memtables: Vec::new(), sstables: Vec::new(), is_all: false };
    for memtable in memtables.drain(..) {
        read.memtables.push(hold(memtable, &mut cover).await?);
    }
    let count = read_members(request, members, &mut cover, &mut read.sstables).await?;
    if members.len() > 1 {
        adaptive.note(count, members.len());
    }
    read.is_all = count == members.len();
    Ok(Some(read))
}

/// How many were read.
async fn read_members(
    request: &ReadRequest,
    members: &[Rc<Member>],
    cover: &mut Cover,
    held: &mut Vec<Source>,
) -> Result<usize> {
    for (at, member) in members.iter().enumerate() {
        if cover.hides(member.max_timestamp) {
            return Ok(at);
        }
        // One that does not have the partition after all tells nothing of the ones behind it.
        if let Some(source) = open(request, member, members.len()).await? {
            held.push(hold(source, cover).await?);
            let rest = &members[at + 1..];
            if rest.first().is_none_or(|next| cover.hides(next.max_timestamp)) {
                return Ok(at + 1);
            }
            let opened = rest.iter().map(|member| open(request, member, members.len()));
            for source in runtime::join_all(opened).await {
                held.extend(source?);
            }
            return Ok(members.len());
        }
    }
    Ok(members.len())
}

/// What an SSTable has of a request, one of so many, if it has the partition.
pub(crate) async fn open(request: &ReadRequest, member: &Member, count: usize) -> Result<Option<Source>> {
    let reader = open_reader(request, member, count).await?;
    Ok(reader.map(|reader| Source::SSTable(Box::new(reader))))
}

/// The same, known to be of an SSTable.
pub(crate) async fn open_reader(
    request: &ReadRequest,
    member: &Member,
    count: usize,
) -> Result<Option<Mapped<PartitionReader>>> {
    let options = ReadOptions {
        reverse: request.direction == model::Direction::Reverse,
        static_row: request.static_row,
        may_stop_early: request.may_stop_early,
        read_buffer: Some(share_of_read_ahead(count)),
        ..ReadOptions::default()
    };
    let reader = member.sstable.read(&request.key, &request.slice, options).await?;
    Ok(reader.map(|reader| Mapped::new(reader, member.columns.clone())))
}

/// Reads a source to its end, and tells what it covers.
async fn hold(mut source: Source, cover: &mut Cover) -> Result<Source> {
    let mut fragments = VecDeque::new();
    while let Some(fragment) = source.next().await? {
        cover.add(&fragment);
        fragments.push_back(fragment);
    }
    Ok(Source::Held(fragments))
}

/// Whether the slice is of one full clustering key.
pub(crate) fn is_one_row(request: &ReadRequest, schema: &model::Schema) -> bool {
    schema.row_of(&request.slice).is_some()
}
