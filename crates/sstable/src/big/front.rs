//! The first blocks of a partition: they mostly stand in the page of Index.db that has its entry, which was just read.
//!
//! ```text
//! page     ··· entry of another partition | entry, head of its index, block 0, block 1, block 2, ····  end of the page
//! slice                                              ├────────────────────┤  found: nothing is read for it
//! ```
//!
//! So a slice that begins in the first block needs neither the offset map nor a search, if it ends soon, as far as the page tells, or where it
//! ends does not matter.

use model::{Bytes, DeletionTime, Position, Slice};

use super::promoted_cursor::{Found, PromotedCursor};
use crate::cache::cached_file::PAGE;

/// So many blocks are walked over at the most. A search for the end of a longer slice costs more than what is walked over in vain then.
const MOST: u32 = 16;

impl PromotedCursor<'_> {
    /// The blocks of a slice that begins in the first one, or before it, if what is at hand tells all of them. What is wrong there is told
    /// by who searches.
    pub(super) fn find_at_front(&self, slice: &Slice) -> Option<Found> {
        let bytes = self.front_at_hand()?;
        let (schema, count, open) = (self.schema(), self.promoted().count, DeletionTime::LIVE);
        let (mut at, mut found, mut enough_at) = (0, None::<Found>, u64::MAX);
        for number in 0..count.min(MOST) {
            let (block, len) = self.decode(&bytes.slice(at..bytes.len())).ok()?;
            at += len;
            if schema.compare(&block.first, &slice.end).is_gt() {
                return Some(found.unwrap_or_else(|| Found::nothing(0, block.offset, open)));
            }
            let first = (number, &block);
            match &mut found {
                Some(_) if block.offset >= enough_at => {
                    return found.map(|found| found.open_ended(count, block.offset));
                }
                Some(begins) => begins.take(&block, schema, slice),
                None if schema.compare(&block.last, &slice.start).is_lt() => return None,
                None => {
                    let begins = Found::between(first, first, schema, slice, open);
                    if let Some(known_end) = self.has_enough(number, &begins.bytes, &slice.end) {
                        return Some(begins.open_ended(count, known_end));
                    }
                    if slice.end == Position::end() && count > MOST {
                        return None;
                    }
                    enough_at = self.enough_at(block.end());
                    found = Some(begins);
                }
            }
        }
        found.filter(|found| found.blocks.end == count)
    }

    /// What is at hand of the page that the first block begins in.
    fn front_at_hand(&self) -> Option<Bytes> {
        let (blocks, map) = (self.promoted().blocks.start, self.promoted().map);
        let page = self.index().file.at_hand(blocks / PAGE)?;
        let page_start = blocks - blocks % PAGE;
        let end = (map - page_start).min(page.len() as u64);
        Some(page.slice((blocks - page_start) as usize..end as usize))
    }
}
