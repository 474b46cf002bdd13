//! What a read merges: memtables and SSTables behind one face.

use std::collections::VecDeque;

use model::flat::RowTaker;
use model::merge::Mapped;
use model::{Fragment, FragmentReader, Next};
use runtime::boxed;
use sstable::PartitionReader;

use crate::batches::LaneReader;
use crate::memtable::MemtableReader;
use crate::row_cache::{CachedReader, PartReader};
use crate::scans::Scans;
use crate::slices::SliceReader;
use crate::table::Teaching;
use crate::{Error, Result};

/// What all SSTables of a slice together have at hand of their data, in bytes: many slices are read at a time.
const SLICE_READ_AHEAD: u64 = 256 << 10;

/// The same for a scan of all partitions, and a compaction, of which there are few at a time.
pub(crate) const SCAN_READ_AHEAD: u64 = 1 << 20;

/// The least of it, and the most, that one SSTable has: a request is worth no less, gains nothing by more, and two of them are what a
/// thread keeps of buffers
/// ([0062](../../../docs/decisions/0062-larger-requests-of-who-reads-on.md)).
const SHARES: [u64; 2] = [16 << 10, 480 << 10];

/// What an SSTable of a table has at hand of its data at the most, in bytes: no request of data is larger.
pub const MOST_AT_HAND: u64 = SHARES[1];

/// What one of so many SSTables may have at hand of its data, where they have `read_ahead` together. Bytes.
pub(crate) fn share(read_ahead: u64, count: usize) -> u64 {
    (read_ahead / count.max(1) as u64).clamp(SHARES[0], SHARES[1])
}

/// What one of so many SSTables of a slice may have at hand: who reads on is of the few, as scans are. Bytes.
pub(crate) fn share_of_slice(count: usize, reads_on: bool) -> u64 {
    share(if reads_on { SCAN_READ_AHEAD } else { SLICE_READ_AHEAD }, count)
}

/// What one of so many SSTables of a compaction may have at hand: less, as what is written has buffers of its own beside them. Bytes.
pub(crate) fn share_of_compaction(count: usize) -> u64 {
    share(SCAN_READ_AHEAD, count).min(SLICE_READ_AHEAD)
}

/// What a slice then takes of memory that reads so many SSTables at once, in bytes: each has the rows that wait for being merged, what was
/// read for the next ones, and what of that is unpacked, and if who reads it reads on, the two requests that are under way meanwhile. What is wanted begins and
/// ends within chunks.
pub(crate) fn slice_memory(count: usize, chunk: u64, reads_on: bool) -> usize {
    (3 + if reads_on { 2 } else { 0 }) * count * (share_of_slice(count, reads_on) + chunk) as usize
}

/// The same of a scan, which has also the two requests that are under way meanwhile.
pub(crate) fn scan_memory(count: usize, chunk: u64) -> usize {
    5 * count * (share(SCAN_READ_AHEAD, count) + chunk) as usize
}

/// A stream of rows with the columns of the table.
#[derive(Debug)]
pub enum Source {
    /// A memtable of the table's columns of today, or of earlier ones.
    Memtable(Box<Mapped<MemtableReader>>),
    /// A slice of an SSTable's partition.
    SSTable(Mapped<PartitionReader>),
    /// A slice of a partition in several SSTables, of which not all are open.
    Slices(Box<SliceReader>),
    /// Many partitions of SSTables that follow each other.
    Scan(Box<ScanReader>),
    /// A slice of what all SSTables say together of a partition.
    Cached(Box<CachedReader>),
    /// A slice that one stretch of the row cache has.
    Part(PartReader),
    /// What was read already.
    Held(VecDeque<Fragment>),
    /// What is noted of on the way.
    Teaching(Box<Teaching>),
}

impl From<SliceReader> for Source {
    fn from(reader: SliceReader) -> Source {
        match reader {
            SliceReader::One(reader) => Source::SSTable(reader),
            several => Source::Slices(Box::new(several)),
        }
    }
}

/// Many partitions of SSTables that follow each other.
#[derive(Debug)]
pub struct ScanReader(pub(crate) LaneReader<Scans>);

impl FragmentReader for Source {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        match self {
            Source::Memtable(reader) => reader.pop(place),
            Source::SSTable(reader) => Ok(reader.pop(place)?),
            Source::Slices(reader) => reader.pop(place),
            Source::Scan(reader) => reader.0.pop(place),
            Source::Cached(reader) => reader.pop(place),
            Source::Part(reader) => Ok(reader.pop(place)),
            Source::Held(fragments) => Ok(place.pop_from(fragments)),
            Source::Teaching(reader) => reader.pop(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        match self {
            Source::Cached(reader) => reader.pop_flat(take),
            Source::Part(reader) => reader.pop_flat(take),
            Source::SSTable(reader) => reader.pop_flat(take),
            Source::Slices(reader) => reader.pop_flat(take),
            Source::Scan(reader) => reader.0.pop_flat(take),
            Source::Memtable(reader) => reader.pop_flat(take),
            Source::Held(_) | Source::Teaching(_) => {}
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self {
            Source::Memtable(reader) => reader.fill().await,
            Source::SSTable(reader) => Ok(reader.fill().await?),
            Source::Slices(reader) => boxed(|| reader.fill()).await,
            Source::Scan(reader) => reader.0.fill().await,
            Source::Cached(reader) => reader.fill().await,
            Source::Part(_) | Source::Held(_) => Ok(()),
            Source::Teaching(reader) => reader.fill().await,
        }
    }
}
