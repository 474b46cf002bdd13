//! The search in a large partition's index with its fences: they name the group of blocks, which is read with one
//! request, and tell of the next group what is needed to know that it is not.
//!
//! ```text
//! group, as it is cached   n × u32 LE place of a block in these bytes; the blocks as Index.db has them
//! place                    the top bit: a range tombstone is open at the block's end
//! ```
//!
//! The first place tells how many there are. Positions of blocks are compared as they are encoded. A group that is not what the fences say is an error that names them; who
//! asked gives them up then, and asks again without.

use std::cmp::Ordering;
use std::rc::Rc;

use model::{Bytes, DeletionTime, Position, Slice};
use runtime::CacheKey;

use super::promoted_cursor::{Block, Found, PromotedCursor, SMALL};
use crate::Result;
use crate::data::row::Source;
use crate::parts::fences::{Fences, Group};

/// Bytes of a place.
const PLACE: usize = 4;

/// The top bit of a place.
const IS_OPEN: u32 = 1 << 31;

/// An end of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    First,
    Last,
}

/// The blocks of a group, at hand.
struct Blocks {
    /// The number of the first one.
    number: u32,
    /// The range tombstone that is open before it.
    open: DeletionTime,
    buffer: Rc<Vec<u8>>,
}

/// The fences, and the ordinal of the partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fenced<'a> {
    pub(super) fences: &'a Fences,
    pub(super) ordinal: u64,
}

impl PromotedCursor<'_> {
    /// The blocks that can hold rows of the slice.
    pub(super) async fn find_by_fences(&self, fenced: Fenced<'_>, slice: &Slice) -> Result<Found> {
        let (lower, mut next) = match self.around(fenced, &slice.start).await? {
            (Some(group), next) => {
                self.prefetch_both(fenced, &group, next.as_ref(), &slice.end).await?;
                let blocks = self.blocks(fenced, &group, next.as_ref()).await?;
                let number = self.count_while(&blocks, Edge::Last, &slice.start, Ordering::is_lt)?;
                if number < blocks.len() {
                    return self.found(fenced, (blocks, next), number, slice).await;
                }
                let last = self.block_of(&blocks, number - 1)?;
                (Found::nothing(blocks.number + number as u32, last.end(), last.end_open), next)
            }
            (None, next) => (Found::nothing(0, self.promoted().head_len, DeletionTime::LIVE), next),
        };
        // The slice begins between two groups: where the second begins is known before it is read.
        let Some(group) = next.take() else { return Ok(lower) };
        if self.is_behind(fenced, &group, &slice.end)? {
            return Ok(lower);
        }
        let (group, next) = fenced.fences.group_of(fenced.ordinal, group.number).await?;
        let blocks = self.blocks(fenced, &group, next.as_ref()).await?;
        self.found(fenced, (blocks, next), 0, slice).await
    }

    /// The block of this number.
    pub(super) async fn block_by_fences(&self, fenced: Fenced<'_>, number: u32) -> Result<Rc<Block>> {
        let (group, next) = fenced.fences.group_of(fenced.ordinal, number).await?;
        let blocks = self.blocks(fenced, &group, next.as_ref()).await?;
        let behind = (number - group.number) as usize;
        if behind >= blocks.len() {
            return Err(fenced.fences.wrong("a group has fewer blocks than it should"));
        }
        self.block_of(&blocks, behind).map(Rc::new)
    }

    /// The blocks of the slice, the first of which that ends in it or behind it is the block `number` of a group.
    async fn found(
        &self,
        fenced: Fenced<'_>,
        (blocks, next): (Blocks, Option<Group>),
        number: usize,
        slice: &Slice,
    ) -> Result<Found> {
        let first = self.block_of(&blocks, number)?;
        let open = match number.checked_sub(1) {
            Some(before) if blocks.is_open_behind(before) => self.block_of(&blocks, before)?.end_open,
            Some(_) => DeletionTime::LIVE,
            None => blocks.open,
        };
        let lower = blocks.number + number as u32;
        if self.schema().compare(&first.first, &slice.end).is_gt() {
            return Ok(Found::nothing(lower, first.offset, open));
        }
        let (mut upper, mut end) = (lower, first.end());
        if self.schema().compare(&first.last, &slice.end).is_lt() {
            let (last, block) = self.last_of(fenced, (blocks, next), &slice.end).await?;
            (upper, end) = (last, block.end());
        }
        Ok(Found { blocks: lower..upper + 1, bytes: first.offset..end, first_end: first.end(), open })
    }

    /// The last block that does not begin behind `end`, from a group on that has one.
    async fn last_of(
        &self,
        fenced: Fenced<'_>,
        (mut blocks, next): (Blocks, Option<Group>),
        end: &Position,
    ) -> Result<(u32, Block)> {
        if let Some(next) = next
            && !self.is_behind(fenced, &next, end)?
        {
            let (Some(group), next) = self.around(fenced, end).await? else {
                return Err(fenced.fences.wrong("a group is not found again"));
            };
            blocks = self.blocks(fenced, &group, next.as_ref()).await?;
        }
        let before = self.count_while(&blocks, Edge::First, end, Ordering::is_le)?;
        let Some(last) = before.checked_sub(1) else {
            return Err(fenced.fences.wrong("a group begins elsewhere than it should"));
        };
        Ok((blocks.number + last as u32, self.block_of(&blocks, last)?))
    }

    async fn around(
        &self,
        fenced: Fenced<'_>,
        position: &Position,
    ) -> Result<(Option<Group>, Option<Group>)> {
        fenced.fences.groups_around(fenced.ordinal, position, self.codec(), self.schema()).await
    }

    fn is_behind(&self, fenced: Fenced<'_>, group: &Group, end: &Position) -> Result<bool> {
        let order = group.compare(self.codec(), self.schema(), end);
        order.map(Ordering::is_gt).map_err(|error| fenced.fences.wrong(error.what()))
    }

    /// Where the slice reaches into the next group, brings both into the cache with one request.
    async fn prefetch_both(
        &self,
        fenced: Fenced<'_>,
        group: &Group,
        next: Option<&Group>,
        end: &Position,
    ) -> Result<()> {
        let Some(next) = next else { return Ok(()) };
        if self.is_behind(fenced, next, end)? {
            return Ok(());
        }
        let (_, behind) = fenced.fences.group_of(fenced.ordinal, next.number).await?;
        let (start, end) =
            (self.place_of(group), behind.map_or(self.promoted().map, |group| self.place_of(&group)));
        if start < end && end - start <= SMALL && end <= self.promoted().map {
            self.index().file.prefetch(start..end).await?;
        }
        Ok(())
    }

    /// Where in Index.db a group is.
    fn place_of(&self, group: &Group) -> u64 {
        self.promoted().blocks.start.saturating_add(group.at)
    }

    /// The blocks of a group, from the cache or from Index.db.
    async fn blocks(&self, fenced: Fenced<'_>, group: &Group, next: Option<&Group>) -> Result<Blocks> {
        let start = self.place_of(group);
        let key = CacheKey { owner: self.index().groups, index: start };
        let buffer = match self.index().cache.get::<Vec<u8>>(key) {
            Some(buffer) => buffer,
            None => {
                let buffer = Rc::new(self.load(fenced, group, next).await?);
                let memory = buffer.capacity() + size_of::<Vec<u8>>() + 2 * size_of::<usize>();
                self.index().cache.insert(key, Rc::clone(&buffer), memory);
                buffer
            }
        };
        Ok(Blocks { number: group.number, open: group.open, buffer })
    }

    /// Reads a group and compares it with what the fences say of it and of the next one.
    async fn load(&self, fenced: Fenced<'_>, group: &Group, next: Option<&Group>) -> Result<Vec<u8>> {
        let wrong = |what| Err(fenced.fences.wrong(what));
        let (start, end) =
            (self.place_of(group), next.map_or(self.promoted().map, |next| self.place_of(next)));
        let end_number = next.map_or(self.promoted().count, |next| next.number);
        if start >= end || end > self.promoted().map || group.number >= end_number {
            return wrong("the groups of a partition are out of order");
        }
        let bytes = self.index().file.read(start..end).await?;
        if !bytes.starts_with(&group.first) {
            return wrong("a group begins elsewhere than it should");
        }
        let (mut places, mut at, mut open) = (Vec::new(), 0, group.open);
        while at < bytes.len() {
            let Ok((block, len)) = self.decode(&bytes.slice(at..bytes.len())) else {
                return wrong("a group does not end where it should");
            };
            places.push((at as u32, if block.end_open.is_live() { 0 } else { IS_OPEN }));
            (at, open) = (at + len, block.end_open);
        }
        if places.len() as u32 != end_number - group.number || next.is_some_and(|next| next.open != open) {
            return wrong("a group has other blocks than it should");
        }
        let first = PLACE * places.len();
        let mut buffer = Vec::with_capacity(first + bytes.len());
        for (place, is_open) in places {
            buffer.extend_from_slice(&((first as u32 + place) | is_open).to_le_bytes());
        }
        buffer.extend_from_slice(&bytes);
        Ok(buffer)
    }

    /// How many blocks of a group come before the first one whose edge does not stand like this to a position.
    fn count_while(
        &self,
        blocks: &Blocks,
        edge: Edge,
        position: &Position,
        is: fn(Ordering) -> bool,
    ) -> Result<usize> {
        let (mut low, mut high) = (0, blocks.len());
        while low < high {
            let middle = low.midpoint(high);
            if is(self.compare(blocks, middle, edge, position)?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// How an edge of a block stands to a position.
    fn compare(&self, blocks: &Blocks, number: usize, edge: Edge, position: &Position) -> Result<Ordering> {
        let source = Source { owner: &blocks.buffer, end: blocks.buffer.len() };
        let compare = |at| self.codec().compare_prefix(source, at, self.schema(), position);
        let compared = compare(blocks.place(number)).and_then(|(order, end)| match edge {
            Edge::First => Ok(order),
            Edge::Last => compare(end).map(|(order, _)| order),
        });
        compared.map_err(|error| self.corrupt(self.promoted().blocks.start, error))
    }

    fn block_of(&self, blocks: &Blocks, number: usize) -> Result<Block> {
        let bytes = Bytes::new(&blocks.buffer, blocks.place(number)..blocks.buffer.len());
        let decoded = self.decode(&bytes).map_err(|error| self.corrupt(self.promoted().blocks.start, error));
        decoded.map(|(block, _)| block)
    }
}

impl Blocks {
    fn len(&self) -> usize {
        self.place(0) / PLACE
    }

    fn place(&self, number: usize) -> usize {
        (self.coded_place(number) & !IS_OPEN) as usize
    }

    /// Whether a range tombstone is open at the block's end.
    fn is_open_behind(&self, number: usize) -> bool {
        self.coded_place(number) & IS_OPEN != 0
    }

    fn coded_place(&self, number: usize) -> u32 {
        let place = self.buffer[number * PLACE..][..PLACE].try_into().expect("a place has four bytes");
        u32::from_le_bytes(place)
    }
}
