//! The linear scan of a large partition's blocks, which goes on where it stopped.
//!
//! ```text
//! blocks   ····|  last one that was in the slice  |  first one behind it  |  not walked over yet ····
//! ```
//!
//! The next slice begins no earlier than the one before ended: in one of the two that are kept, or behind them. Nothing
//! else is kept of what was walked over.

use model::{DeletionTime, Schema, Slice};

use super::block_walk::BlockWalk;
use super::entry::Promoted;
use super::promoted_cursor::{Block, Found};
use crate::cache::cached_file::CachedFile;
use crate::data::row::RowCodec;
use crate::{Result, Version};

/// Finds the blocks of slices that follow each other.
#[derive(Debug)]
pub(crate) struct Onward {
    walk: BlockWalk,
    /// The last block that was not behind the last slice.
    before: Option<Numbered>,
    /// The one that was.
    behind: Option<Numbered>,
    /// The range tombstone that is open where the walk is.
    open: DeletionTime,
}

/// A block that was walked over.
#[derive(Debug)]
struct Numbered {
    block: Block,
    number: u32,
    /// The range tombstone that is open at its start.
    open: DeletionTime,
}

impl Onward {
    /// At the first block.
    pub(crate) fn new(promoted: Promoted, version: Version) -> Onward {
        let walk = BlockWalk::new(promoted, version);
        Onward { walk, before: None, behind: None, open: DeletionTime::LIVE }
    }

    /// The blocks that can hold rows of a slice that begins no earlier than the last one ended.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub(crate) async fn find(
        &mut self,
        file: &CachedFile,
        codec: &RowCodec,
        schema: &Schema,
        slice: &Slice,
    ) -> Result<Found> {
        let mut found = Found::nothing(0, 0, DeletionTime::LIVE);
        let mut kept = [self.before.take(), self.behind.take()].into_iter().flatten();
        loop {
            let next = match kept.next() {
                Some(block) => Some(block),
                None => self.step(file, codec).await?,
            };
            let Some(Numbered { block, number, open }) = next else { return Ok(found) };
            if schema.compare(&block.last, &slice.start).is_lt() {
                found = Found::nothing(number + 1, block.end(), block.end_open);
            } else if schema.compare(&block.first, &slice.end).is_gt() {
                self.behind = Some(Numbered { block, number, open });
                return Ok(found);
            } else {
                match found.blocks.is_empty() {
                    true => found = Found::between((number, &block), (number, &block), schema, slice, open),
                    false => found.take(&block, schema, slice),
                }
            }
            self.before = Some(Numbered { block, number, open });
        }
    }

    async fn step(&mut self, file: &CachedFile, codec: &RowCodec) -> Result<Option<Numbered>> {
        let open = self.open;
        let number = self.walk.number();
        let Some(block) = self.walk.next(file, codec).await? else { return Ok(None) };
        self.open = block.end_open;
        Ok(Some(Numbered { block, number, open }))
    }
}
