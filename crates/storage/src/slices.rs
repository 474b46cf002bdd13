//! What SSTables have of a slice of a partition.

use std::rc::Rc;

use model::flat::FlatRow;
use model::merge::{Direction, Mapped};
use model::{Fragment, FragmentReader, Next, PartitionKey, Schema};
use sstable::{PartitionReader, ReadOptions};

use crate::chain::{Chain, Opens};
use crate::lanes;
use crate::source::share_of_slice;
use crate::sstable_set::{Candidates, Member};
use crate::table::ReadRequest;
use crate::{Error, Result};

/// What one SSTable has of a slice, or several that follow each other.
#[derive(Debug)]
pub enum SliceReader {
    /// One.
    One(Mapped<PartitionReader>),
    /// Several, one behind the other.
    Chain(Box<SliceChain>),
}

/// Several SSTables that follow each other.
#[derive(Debug)]
pub struct SliceChain(Chain<Slices>);

/// How the SSTables of a slice are opened that is in several.
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
    let members = candidates.members();
    if let [only] = members {
        return Ok(open(request, only, 1).await?.into_iter().collect());
    }
    Box::pin(open_several(request, candidates, schema)).await
}

async fn open_several(
    request: &ReadRequest,
    candidates: &Candidates,
    schema: &Rc<Schema>,
) -> Result<Vec<SliceReader>> {
    let members = candidates.members();
    let lanes = if request.sought(schema).is_some() {
        lanes::of_slice(&request.key, members, candidates.undeleted(), schema)
    } else {
        members.iter().map(|member| vec![member.clone()]).collect()
    };
    if lanes.len() == members.len() {
        let opened = members.iter().map(|member| open(request, member, members.len()));
        return runtime::join_all(opened).await.into_iter().filter_map(Result::transpose).collect();
    }
    let direction = request.direction;
    let lanes = lanes.into_iter().map(|mut lane| {
        if direction == Direction::Reverse {
            lane.reverse();
        }
        lane
    });
    let lanes: Vec<_> = lanes.collect();
    let opener = Slices { request: request.clone(), lanes: lanes.len() };
    let chains = Chain::open_lanes(Rc::new(opener), lanes, direction, schema).await?;
    Ok(chains.into_iter().map(|chain| SliceReader::Chain(Box::new(SliceChain(chain)))).collect())
}

/// What an SSTable, one of so many, has of a request, if it has the partition. It is one of those that may have the key:
/// [`crate::SSTableSet::of_key`].
pub(crate) async fn open(
    request: &ReadRequest,
    member: &Member,
    count: usize,
) -> Result<Option<SliceReader>> {
    open_as(request, member, options(request, count, count)).await
}

/// What the only SSTable that may have the partition has of a request, and maybe rows in front of it.
pub(crate) async fn open_with_neighbours(
    request: &ReadRequest,
    member: &Member,
) -> Result<Option<SliceReader>> {
    open_as(request, member, ReadOptions { neighbours: true, ..options(request, 1, 1) }).await
}

async fn open_as(
    request: &ReadRequest,
    member: &Member,
    options: ReadOptions,
) -> Result<Option<SliceReader>> {
    let reader = member.sstable.read(&request.key, &request.slice, options).await?;
    Ok(reader.map(|reader| SliceReader::One(Mapped::new(reader, member.columns.clone()))))
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

impl Opens for Slices {
    type Reader = PartitionReader;

    async fn open(&self, member: &Rc<Member>, at_once: usize) -> Result<Option<Mapped<PartitionReader>>> {
        let Slices { request, lanes } = self;
        let options = options(request, *lanes, at_once);
        let reader = member.sstable.read(&request.key, &request.slice, options).await?;
        Ok(reader.map(|reader| Mapped::new(reader, member.columns.clone())))
    }

    /// By what its partitions have of rows and bytes, on average.
    fn worth(&self, member: &Member) -> f64 {
        let partitions = member.facts.partitions.max(1) as f64;
        let rows = member.sstable.statistics().stats.row_count as f64 / partitions;
        let bytes = member.sstable.data().file.len() as f64 / partitions;
        let wanted = self.request.limit.unwrap_or(u64::MAX).max(1) as f64;
        f64::max(rows / wanted, bytes / share_of_slice(1, self.request.reads_on) as f64)
    }

    fn shared(&self, _: &Member, _: &Member) -> Option<PartitionKey> {
        Some(self.request.key.clone())
    }
}

impl FragmentReader for SliceReader {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        match self {
            SliceReader::One(reader) => Ok(reader.pop(place)?),
            SliceReader::Chain(chain) => chain.0.pop(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl FnMut(FlatRow<'_>) -> bool) {
        match self {
            SliceReader::One(reader) => reader.pop_flat(take),
            SliceReader::Chain(chain) => chain.0.pop_flat(take),
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self {
            SliceReader::One(reader) => Ok(reader.fill().await?),
            SliceReader::Chain(chain) => Box::pin(chain.0.fill()).await,
        }
    }
}
