//! A partition that is read from the data directly: fences say where each one begins.
//!
//! ```text
//! token ──► fences: the place before it, and of each partition there two bytes of its token and where it begins
//!             no token there ends as this one         the partition is absent, and nothing is read
//!             one does                                its key is compared: mostly it is the one; if not, Index.db is asked
//! ```
//!
//! So a small partition is one request, and nothing of Index.db has to be read or kept. The same holds for a partition with blocks, if it
//! is read whole: it has a fence of its own, and another one follows it.

use std::ops::Range;

use model::{PartitionKey, Slice};

use crate::data::reader::DataReader;
use crate::parts::fences::Fences;
use crate::sstable::{ReadOptions, SSTable};
use crate::{Error, Result};

/// What became of looking for a partition.
pub(crate) enum Sought {
    /// It is there; nothing of it has been popped.
    There(Box<DataReader>),
    /// It is in none of the SSTable's data.
    Absent,
    /// Index.db is to be asked: the fences do not say where it would be, or are of no use.
    Unknown,
}

impl SSTable {
    /// Looks for a slice of a partition, whose rows ascend, where the fences say that it has to be. Where they contradict
    /// Index.db, they are given up.
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
        let near = match fences.near(key.token).await {
            Ok(Some(near)) => near,
            Ok(None) => return Ok(fences.if_absent()),
            Err(error) => return fencing.give_up(error).map(|()| Sought::Unknown),
        };
        let data_len = self.data().file.len();
        // Where one with blocks ends nothing else compares: that takes more than two lengths to be believed.
        let is_whole = slice.is_all() && fences.has_digest();
        let with_blocks = near.with_blocks(key.token, data_len).filter(|_| is_whole);
        if near.fence.has_blocks && with_blocks.is_none() {
            return Ok(Sought::Unknown);
        }
        let ranges = || with_blocks.clone().into_iter().chain(near.ranges(key.token, data_len));
        for range in ranges() {
            if let Some(reader) = self.at(key, range, slice, options).await? {
                return Ok(Sought::There(reader));
            }
        }
        if ranges().next().is_none() {
            return Ok(fences.if_absent());
        }
        // Another token ends as this one does, or the data is damaged, or the fences lie: Index.db knows.
        let place = self.index().look_up(key).await?;
        if place.is_some_and(|place| !near.has(key.token, place.start)) {
            fencing.give_up(fences.wrong("a partition is not where the fences send a reader"))?;
        }
        Ok(Sought::Unknown)
    }

    /// The reader of the partition that begins where this range does, if it is that of the key, and its beginning is sound.
    pub(crate) async fn at(
        &self,
        key: &PartitionKey,
        range: Range<u64>,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<Option<Box<DataReader>>> {
        if range.start >= range.end || range.end > self.data().file.len() {
            return Ok(None);
        }
        let mut reader = self.forward(key, range, slice, options);
        match reader.first_key().await {
            Ok(found) => Ok((found == key.bytes).then_some(reader)),
            Err(error @ Error::Io(_)) => Err(error),
            // Who reads by the index says what is wrong.
            Err(_) => Ok(None),
        }
    }
}

impl Fences {
    /// What it means that they know no such partition. Without a digest they may be those of another SSTable.
    fn if_absent(&self) -> Sought {
        if self.has_digest() { Sought::Absent } else { Sought::Unknown }
    }
}
