//! A slice of a partition, from SSTables.
//!
//! ```text
//! one SSTable            as it is
//! several in one lane    one after the other
//! more lanes             merged; with a limit, first a part of the slice that begins in fewer of them
//! ```

use std::rc::Rc;

use model::flat::RowTaker;
use model::merge::{Direction, Mapped};
use model::{Fragment, FragmentReader, Next, PartitionKey, Schema};
use runtime::boxed;
use sstable::{PartitionReader, ReadOptions};

use crate::batches::{LaneReader, Opens, open_lanes};
use crate::chain::Chain;
use crate::lanes::{self, Lane};
use crate::source::share_of_slice;
use crate::sstable_set::{Candidates, Member, Rest};
use crate::table::ReadRequest;
use crate::{Error, Result};

mod parts;

use parts::Parts;

/// What SSTables have of a slice.
#[derive(Debug)]
pub enum SliceReader {
    /// One.
    One(Mapped<PartitionReader>),
    /// Several, one behind the other.
    Several(Box<SliceLane>),
    /// Of parts of it, one behind the other.
    Parts(Box<SliceParts>),
}

/// What one SSTable has of a part of a slice, or several that follow each other.
#[derive(Debug)]
enum LaneSlice {
    One(Mapped<PartitionReader>),
    Several(Box<SliceLane>),
}

/// Several SSTables that follow each other.
#[derive(Debug)]
pub struct SliceLane(LaneReader<Slices>);

/// A slice in parts, of which those behind the first may not be wanted.
#[derive(Debug)]
pub struct SliceParts(Chain<Parts>);

/// How the SSTables of a slice are opened that is in several.
#[derive(Debug)]
struct Slices {
    request: ReadRequest,
    /// In how many lanes they are.
    lanes: usize,
}

/// What all of these have of a request, of those that have the partition: first those are asked behind which others come.
pub(crate) async fn open_all(
    request: &ReadRequest,
    candidates: &Candidates,
    schema: &Rc<Schema>,
) -> Result<Vec<SliceReader>> {
    if let ([only], None) = (candidates.members(), candidates.rest()) {
        return Ok(open(request, only, 1).await?.map(SliceReader::One).into_iter().collect());
    }
    boxed(|| open_several(request, candidates, schema)).await
}

async fn open_several(
    request: &ReadRequest,
    candidates: &Candidates,
    schema: &Rc<Schema>,
) -> Result<Vec<SliceReader>> {
    let lanes = lanes_of(request, candidates, schema);
    if let Some(Rest { set, at }) = candidates.rest() {
        let [beginning, rest] = request.parted(at);
        let parts = Parts::of(&beginning, candidates, lanes.len(), schema);
        let parts = parts.unwrap_or_else(|| Parts::of_one(beginning, candidates.clone(), schema));
        return open_parts(parts.and(rest, set.clone(), candidates.undeleted())).await;
    }
    if lanes.len() > 1
        && let Some(parts) = Parts::of(request, candidates, lanes.len(), schema)
    {
        return open_parts(parts).await;
    }
    let opened = open_as_lanes(request, lanes, schema).await?;
    Ok(opened.into_iter().map(SliceReader::from).collect())
}

async fn open_parts(parts: Parts) -> Result<Vec<SliceReader>> {
    let parts = Chain::begin(parts).await?;
    Ok(parts.map(|parts| SliceReader::Parts(Box::new(SliceParts(parts)))).into_iter().collect())
}

/// The lanes of these, as the stream runs. Each is one of its own where the static row is wanted, which may be in any.
fn lanes_of(request: &ReadRequest, candidates: &Candidates, schema: &Schema) -> Vec<Lane> {
    let members = candidates.members();
    if request.sought(schema).is_none() {
        return members.iter().map(|member| vec![member.clone()]).collect();
    }
    let mut lanes = lanes::of_slice(&request.key, members, candidates.undeleted(), schema);
    if request.direction == Direction::Reverse {
        lanes.iter_mut().for_each(|lane| lane.reverse());
    }
    lanes
}

async fn open_as_lanes(
    request: &ReadRequest,
    lanes: Vec<Lane>,
    schema: &Rc<Schema>,
) -> Result<Vec<LaneSlice>> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    if lanes.iter().all(|lane| lane.len() == 1) {
        let opened = lanes.iter().flatten().map(|member| open(request, member, lanes.len()));
        let opened = runtime::join_all(opened).await.into_iter().filter_map(Result::transpose);
        return opened.map(|reader| reader.map(LaneSlice::One)).collect();
    }
    let (opener, direction) = (Slices { request: request.clone(), lanes: lanes.len() }, request.direction);
    let opened = open_lanes(opener, lanes, direction, schema).await?;
    Ok(opened.into_iter().map(|lane| LaneSlice::Several(Box::new(SliceLane(lane)))).collect())
}

/// What an SSTable, one of so many, has of a request, if it has the partition. It is one of those that may have the key:
/// [`crate::sstable_set::SSTableSet::of_key`].
pub(crate) async fn open(
    request: &ReadRequest,
    member: &Member,
    count: usize,
) -> Result<Option<Mapped<PartitionReader>>> {
    read(request, member, options(request, count, count)).await
}

/// What the only SSTable that may have the partition has of a request, and maybe rows in front of it.
pub(crate) async fn open_with_neighbours(
    request: &ReadRequest,
    member: &Member,
) -> Result<Option<Mapped<PartitionReader>>> {
    read(request, member, ReadOptions { neighbours: true, ..options(request, 1, 1) }).await
}

async fn read(
    request: &ReadRequest,
    member: &Member,
    options: ReadOptions,
) -> Result<Option<Mapped<PartitionReader>>> {
    let reader = member.sstable.read(&request.key, &request.slice, options).await?;
    Ok(reader.map(|reader| Mapped::new(reader, member.columns.clone())))
}

/// How an SSTable is read whose rows come with those of so many lanes, itself one of so many that are read at once.
pub(crate) fn options(request: &ReadRequest, lanes: usize, at_once: usize) -> ReadOptions {
    ReadOptions {
        reverse: request.direction == Direction::Reverse,
        static_row: request.static_row,
        limit: request.limit.map(|rows| rows.div_ceil(lanes as u64)),
        is_filtered: true,
        read_buffer: Some(share_of_slice(at_once, request.reads_on)),
        reads_on: request.reads_on,
        is_among_others: lanes > 1,
        ..ReadOptions::default()
    }
}

/// How the only SSTable is read for a row.
pub(crate) fn options_of_row() -> ReadOptions {
    ReadOptions {
        limit: Some(1),
        is_filtered: true,
        read_buffer: Some(share_of_slice(1, false)),
        ..ReadOptions::default()
    }
}

impl From<LaneSlice> for SliceReader {
    fn from(lane: LaneSlice) -> SliceReader {
        match lane {
            LaneSlice::One(reader) => SliceReader::One(reader),
            LaneSlice::Several(lane) => SliceReader::Several(lane),
        }
    }
}

impl Opens for Slices {
    type Reader = PartitionReader;

    async fn open(&self, member: &Rc<Member>, at_once: usize) -> Result<Option<Mapped<PartitionReader>>> {
        let Slices { request, lanes } = self;
        read(request, member, options(request, *lanes, at_once)).await
    }

    /// By what its partitions have of rows and bytes, on average.
    fn worth(&self, member: &Member) -> f64 {
        let bytes = member.sstable.data().file.len() as f64 / member.facts.partitions.max(1) as f64;
        let wanted = self.request.limit.unwrap_or(u64::MAX).max(1) as f64;
        f64::max(member.rows_of_partition() / wanted, bytes / share_of_slice(1, self.request.reads_on) as f64)
    }

    fn is_certain(&self) -> bool {
        false
    }

    fn shared(&self, _: &Member, _: &Member) -> Option<PartitionKey> {
        Some(self.request.key.clone())
    }
}

impl FragmentReader for LaneSlice {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        match self {
            LaneSlice::One(reader) => Ok(reader.pop(place)?),
            LaneSlice::Several(lane) => lane.0.pop(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        match self {
            LaneSlice::One(reader) => reader.pop_flat(take),
            LaneSlice::Several(lane) => lane.0.pop_flat(take),
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self {
            LaneSlice::One(reader) => Ok(reader.fill().await?),
            LaneSlice::Several(lane) => boxed(|| lane.0.fill()).await,
        }
    }
}

impl FragmentReader for SliceReader {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        match self {
            SliceReader::One(reader) => Ok(reader.pop(place)?),
            SliceReader::Several(lane) => lane.0.pop(place),
            SliceReader::Parts(parts) => parts.0.pop(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        match self {
            SliceReader::One(reader) => reader.pop_flat(take),
            SliceReader::Several(lane) => lane.0.pop_flat(take),
            SliceReader::Parts(parts) => parts.0.pop_flat(take),
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self {
            SliceReader::One(reader) => Ok(reader.fill().await?),
            SliceReader::Several(lane) => boxed(|| lane.0.fill()).await,
            SliceReader::Parts(parts) => boxed(|| parts.0.fill()).await,
        }
    }
}
