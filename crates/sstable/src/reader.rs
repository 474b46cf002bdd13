//! A slice of one partition of one SSTable, in either direction.

use model::flat::RowTaker;
use model::{Fragment, FragmentReader, Next};

use crate::data::reader::DataReader;
use crate::reverse::ReverseReader;
use crate::{Error, Result};

/// Reads a slice of a partition.
#[derive(Debug)]
pub enum PartitionReader {
    /// Rows ascend.
    Forward(Box<DataReader>),
    /// Rows descend.
    Reverse(Box<ReverseReader>),
}

impl PartitionReader {
    pub(crate) fn forward(reader: DataReader) -> PartitionReader {
        PartitionReader::Forward(Box::new(reader))
    }
}

impl FragmentReader for PartitionReader {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        match self {
            PartitionReader::Forward(reader) => reader.pop(place),
            PartitionReader::Reverse(reader) => reader.pop(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        match self {
            PartitionReader::Forward(reader) => reader.pop_flat(take),
            PartitionReader::Reverse(reader) => reader.pop_flat(take),
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match self {
            PartitionReader::Forward(reader) => reader.fill().await,
            PartitionReader::Reverse(reader) => reader.fill().await,
        }
    }
}
