//! The blocks of one partition's index, from the first one on, each read once and none kept.

use model::Bytes;

use super::entry::{OFFSET, Promoted};
use super::promoted_cursor::Block;
use crate::cache::cached_file::CachedFile;
use crate::data::row::{RowCodec, Source};
use crate::decode::DecodeError;
use crate::{Error, Result, Version};

/// Bytes of the index that are read at a time.
const STEP: u64 = 32 << 10;

/// Walks over the blocks that a promoted index lists.
#[derive(Debug)]
pub(crate) struct BlockWalk {
    promoted: Promoted,
    version: Version,
    number: u32,
    at: u64,
    /// The block that was walked over last.
    last: Bytes,
    window: Bytes,
    window_start: u64,
    map: Bytes,
    map_start: u64,
}

impl BlockWalk {
    /// At the first block.
    pub(crate) fn new(promoted: Promoted, version: Version) -> BlockWalk {
        let (at, map_start) = (promoted.blocks.start, promoted.map);
        let nothing = Bytes::default();
        let [last, window, map] = [nothing.clone(), nothing.clone(), nothing];
        BlockWalk { promoted, version, number: 0, at, last, window, window_start: at, map, map_start }
    }

    /// Where in Index.db the next block is.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// How many blocks were walked over.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The position of the first row or marker of the block that was walked over last, as its bytes have it.
    pub(crate) fn first_prefix(&self, codec: &RowCodec) -> Bytes {
        let (owner, range) = self.last.parts();
        let prefix = codec.clustering_prefix(Source { owner, end: range.end }, range.start);
        let (_, end) = prefix.expect("the block was decoded before");
        self.last.slice(0..end - range.start)
    }

    /// The next block; `None` behind the last one.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub(crate) async fn next(&mut self, file: &CachedFile, codec: &RowCodec) -> Result<Option<Block>> {
        if self.number == self.promoted.count {
            return Ok(None);
        }
        loop {
            let behind = ((self.at - self.window_start) as usize).min(self.window.len());
            let hand = self.window.slice(behind..self.window.len());
            match Block::decode(codec, self.version, &hand) {
                Ok((block, len)) => {
                    self.at += len as u64;
                    self.last = hand.slice(0..len);
                    self.number += 1;
                    return Ok(Some(block));
                }
                Err(DecodeError::Truncated { needed }) if self.window_end() < self.promoted.map => {
                    let end = self.promoted.map.min(self.at + STEP.max(needed as u64));
                    (self.window, self.window_start) = (file.read(self.at..end).await?, self.at);
                }
                Err(error) => {
                    let at = self.at + error.at() as u64;
                    return Err(Error::corrupt(file.path(), at, error.what()));
                }
            }
        }
    }

    /// Where in Index.db the offset map says that the next block is; `None` behind the last one.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) async fn mapped(&mut self, file: &CachedFile) -> Result<Option<u64>> {
        if self.number == self.promoted.count {
            return Ok(None);
        }
        let at = self.promoted.map + u64::from(self.number) * OFFSET;
        if at + OFFSET > self.map_start + self.map.len() as u64 {
            let end = (self.promoted.map + u64::from(self.promoted.count) * OFFSET).min(at + STEP);
            (self.map, self.map_start) = (file.read(at..end).await?, at);
        }
        let behind = (at - self.map_start) as usize;
        let offset = self.map[behind..behind + OFFSET as usize].try_into().expect("an offset has four bytes");
        Ok(Some(self.promoted.blocks.start + u64::from(u32::from_be_bytes(offset))))
    }

    fn window_end(&self) -> u64 {
        self.window_start + self.window.len() as u64
    }
}
