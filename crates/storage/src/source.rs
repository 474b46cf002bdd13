//! What a read merges: memtables and SSTables behind one face.

use std::collections::VecDeque;

use model::merge::Mapped;
use model::{Fragment, FragmentReader, Next};
use sstable::PartitionReader;
use sstable::data::reader::DataReader;

use crate::memtable::MemtableReader;
use crate::row_cache::CachedReader;
use crate::{Error, Result};

/// What all SSTables of a read or a compaction together have at hand of their data, in bytes.
const READ_AHEAD: u64 = 2 << 20;

/// The least of it, and the most, that one of them has: a request is worth no less, and gains nothing by more.
const SHARES: [u64; 2] = [16 << 10, 256 << 10];

/// What one of so many SSTables that are read together may have at hand of its data, in bytes.
pub(crate) fn share_of_read_ahead(count: usize) -> u64 {
    (READ_AHEAD / count.max(1) as u64).clamp(SHARES[0], SHARES[1])
}

/// A stream of rows with the columns of the table.
#[derive(Debug)]
pub enum Source {
    /// A memtable of the table's columns of today, or of earlier ones.
    Memtable(Box<Mapped<MemtableReader>>),
    /// A slice of an SSTable's partition.
    SSTable(Box<Mapped<PartitionReader>>),
    /// Many partitions of an SSTable.
    Scan(Box<Mapped<DataReader>>),
    /// A slice of what all SSTables say together of a partition.
    Cached(Box<CachedReader>),
    /// What was read already.
    Held(VecDeque<Fragment>),
}

impl FragmentReader for Source {
    type Error = Error;

    #[inline]
    fn pop(&mut self) -> Result<Next> {
        match self {
            Source::Memtable(reader) => reader.pop(),
            Source::SSTable(reader) => Ok(reader.pop()?),
            Source::Scan(reader) => Ok(reader.pop()?),
            Source::Cached(reader) => reader.pop(),
            Source::Held(fragments) => Ok(fragments.pop_front().map_or(Next::End, Next::Fragment)),
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self {
            Source::Memtable(reader) => reader.fill().await,
            Source::SSTable(reader) => Ok(reader.fill().await?),
            Source::Scan(reader) => Ok(reader.fill().await?),
            Source::Cached(reader) => reader.fill().await,
            Source::Held(_) => Ok(()),
        }
    }
}
