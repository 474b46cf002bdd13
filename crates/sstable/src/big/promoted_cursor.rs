//! The search in a large partition's index: which blocks can hold a slice.
//!
//! ```text
//! block   first clustering prefix, last clustering prefix, vint offset from the partition's start,
//!         signed vint (width − 65536), u8: a range tombstone is open at the block's end,
//!         [its deletion]
//! prefix  kind, [u16 number of columns, unless it is a row's], values
//! ```
//!
//! A slice that begins in the first block and ends soon is found in the page with the entry: see `front`. Otherwise the search goes through
//! the offset map, by interpolation and bisection: see `bracket`. Map and blocks are read by pages that all readers of the file share; once
//! the remaining blocks lie within a few pages, these are read with one request. Parsed blocks are shared too, under the same budget, so
//! that memory stays bounded however far a scan goes.
//!
//! Fences replace this search: see `fenced`.
//!
//! The linear scan reads the blocks from the first one on and exists for comparison.

use std::ops::Range;
use std::rc::Rc;

use model::{Bytes, DeletionTime, Position, Schema, Slice, Weight};
use runtime::{Cache, CacheKey};

use super::bracket::Goal;
use super::entry::{OFFSET, Promoted};
use super::fenced::Fenced;
use super::groups::GroupReads;
use super::onward::Onward;
use super::packed_blocks::PackedBlocks;
use super::ruler;
use crate::cache::cached_file::{CachedFile, PAGE};
use crate::data::row::{RowCodec, Source, deletion_time, put_deletion_time};
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::encode::Encode;
use crate::parts::fences::{Fences, Fencing};
use crate::parts::row_filter::RowFilter;
use crate::parts::usage::Usage;
use crate::{Error, Result, Version};

/// A width is written relative to this, whatever size of blocks was configured.
const WIDTH_BASE: i64 = 64 << 10;

/// Where what may hold the answer fits into this many bytes of the index, it is read as a whole.
pub(super) const SMALL: u64 = 8 * PAGE;

/// So many blocks behind the one where a slice begins it is looked where it ends, before the rest of the partition is searched: what the index
/// says of those is mostly in the pages that the beginning was found in, and the last of them is a page or two away.
const NEXT: [u32; 5] = [1, 5, 21, 85, 341];

/// A block has about as many bytes of data, or more, where it is not known. Where they are smaller, about as much as is wanted may be read
/// behind the partition. Bytes.
pub(crate) const USUAL_BLOCK: u64 = 4 << 10;

/// How blocks are searched for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Search {
    /// By fences where there are any; else through the offset map, by guesses and by halves.
    #[default]
    Binary,
    /// From the first block on.
    Scan,
}

/// A block of a partition, as its index tells.
#[derive(PartialEq, Eq, Debug)]
pub struct Block {
    /// Where its first row or tombstone stands.
    pub first: Position,
    /// Where its last row or tombstone stands.
    pub last: Position,
    /// Bytes from the partition's start in the data.
    pub offset: u64,
    /// Bytes in the data. In a partition's last block the writer may have counted the partition's end.
    pub width: u64,
    /// The range tombstone that is open at the block's end.
    pub end_open: DeletionTime,
}

/// Where a block stands, by itself: its positions take memory of their own, which who goes from block to block does not need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    /// From where to where, in bytes from the partition's start in the data.
    pub(crate) reach: Range<u64>,
    /// The range tombstone that is open at the block's end.
    pub(crate) end_open: DeletionTime,
}

impl Block {
    fn extent(&self) -> Extent {
        Extent { reach: self.offset..self.end(), end_open: self.end_open }
    }

    /// Where the block ends, in bytes from the partition's start.
    pub fn end(&self) -> u64 {
        self.offset + self.width
    }

    /// The block whose bytes these begin with, and how many of them it has.
    pub(super) fn decode(
        codec: &RowCodec,
        version: Version,
        bytes: &Bytes,
    ) -> std::result::Result<(Block, usize), DecodeError> {
        let (owner, range) = bytes.parts();
        let (source, start) = (Source { owner, end: range.end }, range.start);
        let (first, at) = codec.clustering_prefix(source, start)?;
        let (last, at) = codec.clustering_prefix(source, at).map_err(|error| error.behind(at - start))?;
        let mut cursor = Cursor::new(&owner[at..range.end]);
        let (offset, width, end_open) =
            decode_tail(&mut cursor, version).map_err(|error| error.behind(at - start))?;
        Ok((Block { first, last, offset, width, end_open }, at - start + cursor.position()))
    }
}

/// A block's offset, its width, and the tombstone that is open at its end.
pub(super) fn decode_tail(cursor: &mut Cursor<'_>, version: Version) -> Decoded<(u64, u64, DeletionTime)> {
    let offset = cursor.vint()?;
    let Some(width) = cursor.signed_vint()?.checked_add(WIDTH_BASE).filter(|&width| width >= 0) else {
        return cursor.invalid("a block's width is impossible");
    };
    if offset.checked_add(width as u64).is_none_or(|end| end == u64::MAX) {
        return cursor.invalid("a block's offset is impossible");
    }
    let end_open = match cursor.u8()? {
        0 => DeletionTime::LIVE,
        1 => deletion_time(cursor, version)?,
        _ => return cursor.invalid("a block's flag is neither 0 nor 1"),
    };
    Ok((offset, width as u64, end_open))
}

/// Appends what follows the two prefixes of a block: the other side of [`decode_tail`].
pub(super) fn put_block_tail(
    offset: u64,
    width: u64,
    end_open: &DeletionTime,
    version: Version,
    to: &mut Vec<u8>,
) {
    to.put_vint(offset);
    to.put_signed_vint(width as i64 - WIDTH_BASE);
    to.put_u8(u8::from(!end_open.is_live()));
    if !end_open.is_live() {
        put_deletion_time(end_open, version, to);
    }
}

/// The blocks that can hold a slice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Their numbers; empty where the index proves that nothing is there, and up to the last one of the partition where it was not asked
    /// where they end.
    pub blocks: Range<u32>,
    /// Where they are, in bytes from the partition's start; up to [`u64::MAX`] where it was not asked where they end.
    pub bytes: Range<u64>,
    /// Where in the first of them the slice seems to begin.
    pub entry: Within,
    /// Where in the last of them it seems to end; behind everything where it was not asked.
    pub exit: Within,
    /// The range tombstone that is open at their start.
    pub open: DeletionTime,
    /// Up to where they have data, as far as is known: to their end, if that was asked.
    pub(super) known_end: u64,
}

impl Found {
    /// All blocks from one to another, by their numbers.
    pub(super) fn between(
        (lower, first): (u32, &Block),
        (upper, last): (u32, &Block),
        schema: &Schema,
        slice: &Slice,
        open: DeletionTime,
    ) -> Found {
        Found {
            blocks: lower..upper + 1,
            bytes: first.offset..last.end(),
            entry: Within::of(schema, first, &slice.start),
            exit: Within::of(schema, last, &slice.end),
            open,
            known_end: last.end(),
        }
    }

    /// All from the first of them on, of a partition of so many: where the slice ends was not asked, but not before this place.
    pub(super) fn open_ended(self, count: u32, known_end: u64) -> Found {
        let (blocks, bytes) = (self.blocks.start..count, self.bytes.start..u64::MAX);
        Found { blocks, bytes, exit: Within::nowhere(), known_end, ..self }
    }

    /// Whether it was not asked where they end: in the partition, or with it.
    pub(crate) fn is_open_ended(&self) -> bool {
        self.bytes.end == u64::MAX
    }

    /// Up to where they have data, as far as is known, in bytes from the partition's start.
    pub(crate) fn known_end(&self) -> u64 {
        self.known_end
    }

    /// All up to the end of another slice that begins behind this one, and whose blocks end there or behind.
    pub(crate) fn up_to(&mut self, last: Found) {
        (self.blocks.end, self.bytes.end) = (last.blocks.end, last.bytes.end);
        (self.exit, self.known_end) = (last.exit, last.known_end);
    }

    /// This block as well, which is the next one.
    pub(super) fn take(&mut self, block: &Block, schema: &Schema, slice: &Slice) {
        self.blocks.end += 1;
        (self.bytes.end, self.known_end) = (block.end(), block.end());
        self.exit = Within::of(schema, block, &slice.end);
    }

    /// The index proves that nothing of the slice is there: it would stand before the block `number`.
    pub(super) fn nothing(number: u32, at: u64, open: DeletionTime) -> Found {
        let nowhere = Within::new(at..at, None);
        let entry = nowhere.clone();
        Found { blocks: number..number, bytes: at..at, entry, exit: nowhere, open, known_end: at }
    }
}

/// About where in a block a position is: a guess, by the values of the block's ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Within {
    /// Where the block is, in bytes from the partition's start.
    block: Range<u64>,
    /// How far from its first row to its last one, in so many [`SHARES`].
    share: u64,
}

/// The shares of a block: finer than its bytes.
const SHARES: u64 = 1 << 20;

impl Within {
    /// At a share of the block between 0 and 1; where nothing tells, at its last row.
    pub(super) fn new(block: Range<u64>, share: Option<f64>) -> Within {
        let share = share.map_or(SHARES, |share| (share * SHARES as f64) as u64);
        Within { block, share }
    }

    /// Behind all that may be wanted.
    pub(super) fn nowhere() -> Within {
        Within::new(u64::MAX..u64::MAX, None)
    }

    fn of(schema: &Schema, block: &Block, position: &Position) -> Within {
        let share = ruler::share(schema, &block.first, &block.last, position);
        Within::new(block.offset..block.end(), share.filter(|_| Within::can_tell(schema, position)))
    }

    /// Whether a position is where its values are: one behind all rows that begin with some is as far behind as there are such
    /// rows.
    pub(super) fn can_tell(schema: &Schema, position: &Position) -> bool {
        let len = position.prefix.len();
        len == 0 || len == schema.clustering.len() || position.weight != Weight::After
    }

    /// Where the row there is, if rows have so many bytes; from the partition's start.
    pub(crate) fn row(&self, len: u64) -> Range<u64> {
        let Range { start, end } = self.block;
        let room = end.saturating_sub(start).saturating_sub(len);
        let at = start + (u128::from(room) * u128::from(self.share) / u128::from(SHARES)) as u64;
        at..at.saturating_add(len).min(end)
    }
}

/// Where a slice ends.
enum Upper {
    /// In this block.
    Block(u32),
    /// Behind what is wanted of it, and not before this place.
    NotAsked { known_end: u64 },
}

/// What the cursors of one file share.
pub struct BlockIndex {
    /// Index.db.
    pub file: CachedFile,
    /// Where parsed blocks are kept.
    pub cache: Cache,
    /// A number that nothing else in the cache has.
    pub owner: u64,
    /// The version of the file.
    pub version: Version,
    /// Whose the groups of blocks are that fences tell of, in the cache.
    pub(crate) groups: u64,
    /// How they are read.
    pub(crate) reads: GroupReads,
    /// What is told of the blocks besides.
    pub(crate) fencing: Rc<Fencing>,
    /// And of their rows; otherwise why nothing is.
    pub(crate) rows: std::result::Result<RowFilter, Usage>,
}

impl std::fmt::Debug for BlockIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockIndex").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Searches the blocks of one partition.
#[derive(Clone, Copy, Debug)]
pub struct PromotedCursor<'a> {
    index: &'a BlockIndex,
    codec: &'a RowCodec,
    schema: &'a Schema,
    promoted: &'a Promoted,
    /// What tells of single rows, for who begins to read where the blocks of the slice do.
    rows: Option<&'a RowFilter>,
    /// So many bytes from the first block on have all that is wanted, and where others end does not matter.
    enough: Option<u64>,
    /// What is looked for is not in front of this block.
    from: u32,
}

impl<'a> PromotedCursor<'a> {
    /// A cursor over the blocks that `promoted` lists.
    pub fn new(
        index: &'a BlockIndex,
        codec: &'a RowCodec,
        schema: &'a Schema,
        promoted: &'a Promoted,
    ) -> PromotedCursor<'a> {
        PromotedCursor { index, codec, schema, promoted, rows: None, enough: None, from: 0 }
    }

    /// The same, which answers that there is nothing where a single row is known not to be there. It does not say then where the row
    /// would be, nor what is open there, which a reader that comes from elsewhere has to know.
    pub(crate) fn with_rows(self) -> PromotedCursor<'a> {
        PromotedCursor { rows: self.index.rows.as_ref().ok(), ..self }
    }

    /// The same for who has all that is wanted in so many bytes of the slice, if that is known, and sees where it ends, or the partition: of a
    /// slice with more the last block is not looked for.
    pub(crate) fn without_end(self, enough: Option<u64>) -> PromotedCursor<'a> {
        PromotedCursor { enough, ..self }
    }

    /// The same for who looks for slices that follow each other: the last one began in this block. It is looked there first.
    pub(crate) fn looking_from(self, from: u32) -> PromotedCursor<'a> {
        PromotedCursor { from: from.min(self.promoted.count.saturating_sub(1)), ..self }
    }

    /// Where all that is wanted of a slice is in front of, if its first block ends at `first_end`: [`u64::MAX`] where that is not known.
    pub(super) fn enough_at(&self, first_end: u64) -> u64 {
        self.enough.map_or(u64::MAX, |enough| first_end.saturating_add(enough))
    }

    /// A block that stands behind that, if they have about so many bytes each.
    fn behind_enough(&self, lower: u32, width: u64) -> Option<u32> {
        u32::try_from(self.enough?.div_ceil(width.max(1))).ok()?.checked_add(lower)?.checked_add(2)
    }

    /// For a slice that ends with the partition, up to where there is data, if blocks from this one on are as wide, and if that is enough. Of the
    /// last block it is known where it ends.
    pub(super) fn has_enough(&self, lower: u32, first: &Range<u64>, end: &Position) -> Option<u64> {
        let left =
            u64::from(self.promoted.count.saturating_sub(lower)).saturating_mul(first.end - first.start);
        let is_last = lower.saturating_add(1) >= self.promoted.count;
        let is_enough = self.enough.is_some_and(|enough| enough <= left);
        (*end == Position::end() && !is_last && is_enough).then(|| first.start.saturating_add(left))
    }

    /// The blocks that can hold rows of the slice.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn find(&self, slice: &Slice, search: Search) -> Result<Found> {
        match (search, self.promoted.ordinal) {
            (Search::Scan, _) => self.find_by_scan(slice).await,
            (Search::Binary, None) => self.find_by_halves(slice).await,
            (Search::Binary, Some(ordinal)) => match self.index.fencing.get() {
                Some(fences) => self.find_by_fences(Fenced { fences: &fences, ordinal }, slice).await,
                // What they said of the partition was not compared with Index.db yet.
                None => Err(Error::corrupt(self.index.file.path(), 0, "the fences were given up meanwhile")),
            },
        }
    }

    /// Whether memory alone tells that the row with these values in all clustering columns is not in the partition, nor a range
    /// tombstone around it.
    pub(crate) fn denies_at_hand(&self, fences: &Fences, row: &[&[u8]]) -> bool {
        let fenced = self.promoted.ordinal.map(|ordinal| Fenced { fences, ordinal });
        fenced.is_some_and(|fenced| self.is_denied_at_hand(fenced, row))
    }

    /// The block of this number.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    ///
    /// # Panics
    /// If there is no such block.
    pub async fn block(&self, number: u32) -> Result<Rc<Block>> {
        self.told_of(number, |packed, at| packed.block(self.codec, at).map(Rc::new), |block| block).await
    }

    /// Where the block of this number stands.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    ///
    /// # Panics
    /// If there is no such block.
    pub(crate) async fn extent(&self, number: u32) -> Result<Extent> {
        let of_packed =
            |packed: &PackedBlocks, at| Ok(Extent { reach: packed.reach(at), end_open: packed.end_open(at) });
        self.told_of(number, of_packed, |block| block.extent()).await
    }

    /// What is told of a block, by its group where fences name that, or else by itself.
    async fn told_of<T>(
        &self,
        number: u32,
        of_packed: impl FnOnce(&PackedBlocks, usize) -> Decoded<T>,
        of_block: impl FnOnce(Rc<Block>) -> T,
    ) -> Result<T> {
        if let (Some(ordinal), Some(fences)) = (self.promoted.ordinal, self.index.fencing.get()) {
            match self.block_by_fences(Fenced { fences: &fences, ordinal }, number, of_packed).await {
                Ok(told) => return Ok(told),
                Err(error) => self.index.fencing.give_up(error)?,
            }
        }
        self.block_at(self.place(number).await?).await.map(of_block)
    }

    /// The range tombstone that is open at the start of the block of this number.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn open_before(&self, number: u32) -> Result<DeletionTime> {
        match number {
            0 => Ok(DeletionTime::LIVE),
            _ => Ok(self.extent(number - 1).await?.end_open),
        }
    }

    pub(super) fn index(&self) -> &'a BlockIndex {
        self.index
    }

    pub(super) fn codec(&self) -> &'a RowCodec {
        self.codec
    }

    pub(super) fn rows(&self) -> Option<&'a RowFilter> {
        self.rows
    }

    pub(super) fn schema(&self) -> &'a Schema {
        self.schema
    }

    pub(super) fn promoted(&self) -> &'a Promoted {
        self.promoted
    }

    async fn find_by_halves(&self, slice: &Slice) -> Result<Found> {
        if let Some(found) = self.find_at_front(slice).filter(|_| self.from == 0) {
            return Ok(found);
        }
        let lower = self.first_ending_at_or_after(&slice.start).await?;
        let open = self.open_before(lower).await?;
        if lower == self.promoted.count {
            let end = self.extent(lower - 1).await?.reach.end;
            return Ok(Found::nothing(lower, end, open));
        }
        let first = self.block(lower).await?;
        if self.schema.compare(&first.first, &slice.end).is_gt() {
            return Ok(Found::nothing(lower, first.offset, open));
        }
        let begins = |last| Found::between((lower, &first), last, self.schema, slice, open);
        let upper = match self.has_enough(lower, &(first.offset..first.end()), &slice.end) {
            Some(known_end) => Upper::NotAsked { known_end },
            None => self.last_beginning_at_or_before(lower, &first, &slice.end).await?,
        };
        let upper = match upper {
            Upper::Block(upper) => upper,
            Upper::NotAsked { known_end } => {
                return Ok(begins((lower, &first)).open_ended(self.promoted.count, known_end));
            }
        };
        let last = if upper == lower { first.clone() } else { self.block(upper).await? };
        Ok(begins((upper, &last)))
    }

    /// The first block whose last position is not before `position`.
    async fn first_ending_at_or_after(&self, position: &Position) -> Result<u32> {
        if *position == Position::start() {
            return Ok(0);
        }
        let (goal, count) = (Goal::End(position), self.promoted.count);
        let mut low = self.from;
        for probe in [self.from, self.from.saturating_add(NEXT[0]), self.from.saturating_add(NEXT[1])] {
            if self.from == 0 || probe >= count {
                break;
            }
            if !self.is_before(goal, &*self.block(probe).await?) {
                return self.first_not_before(goal, low, probe).await;
            }
            low = probe + 1;
        }
        self.first_not_before(goal, low, count).await
    }

    /// The last block, from `lower` on, whose first position is not after `position`, unless all that is wanted is in front of it. Looks next to `lower` first: most slices end soon after they begin.
    async fn last_beginning_at_or_before(
        &self,
        lower: u32,
        first: &Block,
        position: &Position,
    ) -> Result<Upper> {
        let count = self.promoted.count;
        if self.schema.compare(&first.last, position).is_ge() {
            return Ok(Upper::Block(lower));
        }
        if *position == Position::end() {
            return Ok(Upper::Block(count - 1));
        }
        let goal = Goal::Begin(position);
        let enough_at = self.enough_at(first.end());
        let behind = self.behind_enough(lower, first.width).unwrap_or(u32::MAX);
        let mut low = lower;
        let mut probes = [behind; NEXT.len() + 1];
        probes.iter_mut().zip(NEXT).for_each(|(probe, next)| *probe = lower.saturating_add(next));
        probes.sort_unstable();
        for probe in probes {
            if probe <= low || probe >= count {
                continue;
            }
            let block = self.block(probe).await?;
            if self.schema.compare(&block.first, position).is_gt() {
                return Ok(Upper::Block(self.first_not_before(goal, low + 1, probe).await? - 1));
            }
            if block.offset >= enough_at {
                return Ok(Upper::NotAsked { known_end: block.offset });
            }
            low = probe;
        }
        Ok(Upper::Block(self.first_not_before(goal, low + 1, count).await? - 1))
    }

    /// Reads the map and the blocks that are left, each with one request, if they are small.
    pub(super) async fn read_if_small(&self, low: u32, high: u32) -> Result<bool> {
        let map = self.promoted.map + u64::from(low) * OFFSET..self.promoted.map + u64::from(high) * OFFSET;
        if map.end - map.start > SMALL {
            return Ok(false);
        }
        self.index.file.prefetch(map).await?;
        let start = self.place(low).await?;
        let end = if high == self.promoted.count { self.promoted.map } else { self.place(high).await? };
        let is_small = start < end && end - start <= SMALL;
        if is_small {
            self.index.file.prefetch(start..end).await?;
        }
        Ok(is_small)
    }

    /// Where in Index.db the block of this number is.
    async fn place(&self, number: u32) -> Result<u64> {
        assert!(number < self.promoted.count, "a block that the partition has");
        if number == 0 {
            // Offsets count from the first block.
            return Ok(self.promoted.blocks.start);
        }
        let at = self.promoted.map + u64::from(number) * OFFSET;
        let bytes = self.index.file.read(at..at + OFFSET).await?;
        let offset = u32::from_be_bytes(bytes[..].try_into().expect("four bytes"));
        let place = self.promoted.blocks.start + u64::from(offset);
        if place >= self.promoted.map {
            return Err(Error::corrupt(
                self.index.file.path(),
                at,
                "a block's offset points past the blocks",
            ));
        }
        Ok(place)
    }

    async fn block_at(&self, at: u64) -> Result<Rc<Block>> {
        let key = CacheKey { owner: self.index.owner, index: at };
        if let Some(block) = self.index.cache.get(key) {
            return Ok(block);
        }
        let mut end = (at / PAGE + 1) * PAGE;
        loop {
            end = end.min(self.promoted.map);
            let bytes = self.index.file.read(at..end).await?;
            match self.decode(&bytes) {
                Ok((_, len)) => return self.keep(key, at, &bytes[..len]),
                Err(DecodeError::Truncated { needed }) if end < self.promoted.map => end = at + needed as u64,
                Err(error) => return Err(self.corrupt(at, error)),
            }
        }
    }

    /// Caches a block that has its bytes for itself, so that it does not keep a page alive.
    fn keep(&self, key: CacheKey, at: u64, bytes: &[u8]) -> Result<Rc<Block>> {
        let own = Bytes::from(bytes);
        let (block, _) = self.decode(&own).map_err(|error| self.corrupt(at, error))?;
        let block = Rc::new(block);
        let counts = 4 * size_of::<usize>();
        let spilled: usize =
            [&block.first, &block.last].map(|position| position.prefix.spilled_bytes()).iter().sum();
        let memory = size_of::<Block>() + size_of::<Vec<u8>>() + counts + own.len() + spilled;
        self.index.cache.insert(key, Rc::clone(&block), memory);
        Ok(block)
    }

    /// Walks over all blocks up to the last one that can hold rows of the slice.
    async fn find_by_scan(&self, slice: &Slice) -> Result<Found> {
        let mut onward = Onward::new(self.promoted.clone(), self.index.version);
        onward.find(&self.index.file, self.codec, self.schema, slice).await
    }

    pub(super) fn decode(&self, bytes: &Bytes) -> std::result::Result<(Block, usize), DecodeError> {
        Block::decode(self.codec, self.index.version, bytes)
    }

    pub(super) fn corrupt(&self, at: u64, error: DecodeError) -> Error {
        Error::corrupt(self.index.file.path(), at + error.at() as u64, error.what())
    }
}
