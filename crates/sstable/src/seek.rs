//! A small partition, looked for in the data itself: fences tell where each one without blocks begins.
//!
//! ```text
//! token ──► fences: the place before it, and of each partition there two bytes of its token and where it begins
//!             none ends as this token does            it is not there, and nothing is read
//!             one does                                its key is compared: mostly it is the one
//! ```
//!
//! So such a partition is one request, and nothing of Index.db has to be read or kept.

use model::{PartitionKey, Slice};

use crate::Result;
use crate::data::reader::DataReader;
use crate::index::token_for;
use crate::parts::fences::{Fences, Near};
use crate::sstable::{ReadOptions, SSTable};

/// What became of looking for a partition.
pub(crate) enum Sought {
    /// It is there; nothing of it has been popped.
    There(Box<DataReader>),
    /// It is in none of the SSTable's data.
    Absent,
    /// The fences do not say where it would be, or are of no use.
    Unknown,
}

impl SSTable {
    /// Looks for a slice of a partition, whose rows ascend, where the fences say that it has to be. Where they lead to
    /// something else, they are given up.
    ///
    /// # Errors
    /// What the operating system says of the data.
    pub(crate) async fn seek(
        &self,
        key: &PartitionKey,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<Sought> {
        let fencing = &self.index().fencing;
        let Some(fences) = fencing.get() else { return Ok(Sought::Unknown) };
        match self.seek_by(&fences, key, slice, options).await {
            Ok(sought) => Ok(sought),
            Err(error) => fencing.give_up(error).map(|()| Sought::Unknown),
        }
    }

    async fn seek_by(
        &self,
        fences: &Fences,
        key: &PartitionKey,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<Sought> {
        let Some(near) = fences.near(key.token).await? else {
            return Ok(Sought::Absent);
        };
        if near.fence.has_blocks {
            return Ok(Sought::Unknown);
        }
        for range in near.ranges(key.token, self.data().file.len()) {
            if range.is_empty() || range.end > self.data().file.len() {
                return Err(fences.wrong("the places of partitions do not ascend"));
            }
            let mut reader = self.forward(key, range, slice, options);
            let found = reader.first_key().await?;
            if found == key.bytes {
                return Ok(Sought::There(Box::new(reader)));
            }
            if !Near::is_alike(key.token, token_for(self.data().partitioner, &found)) {
                return Err(fences.wrong("another partition stands where the fences send a reader"));
            }
        }
        Ok(Sought::Absent)
    }
}
