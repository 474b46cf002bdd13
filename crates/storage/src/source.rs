//! What a read merges: memtables and SSTables behind one face.

use std::collections::VecDeque;

use model::merge::Mapped;
use model::{Fragment, FragmentReader, Next};
use sstable::PartitionReader;
use sstable::data::reader::DataReader;

use crate::memtable::MemtableReader;
use crate::row_cache::CachedReader;
use crate::{Error, Result};

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
