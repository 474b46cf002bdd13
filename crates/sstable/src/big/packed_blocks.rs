//! The blocks of a group as they stay in memory: a quarter of what they take in Index.db.
//!
//! ```text
//! bytes     what all edges begin with
//!           n × 2 u32 LE end      of what else an edge has, where lengths differ
//!           n × (first, last)     what else an edge has
//!           n × start             from where the first block begins in the data, LE in as few bytes as the last one needs
//!           n × end               the same, left out where each block ends where the next one begins
//!           zeros                 so that eight bytes can be read where any of these numbers begins
//! open      the range tombstones that are open at the end of blocks, with the numbers of these
//! ```
//!
//! An *edge* is the encoded position of a block's first or last row or marker. Those of a group are near each other, so
//! that most of their bytes are alike. Where all are rows with one whole number as their key, they are kept as numbers: how far their
//! ranks are above the least one, LE in as few bytes as the greatest one needs. Any block is found without a look at others.

use std::ops::Range;

use model::types::NumberOrder;
use model::{Bytes, DeletionTime};

use super::promoted_cursor::{Block, decode_tail};
use crate::Version;
use crate::data::row::{RowCodec, Source};
use crate::decode::{Cursor, DecodeError, Decoded};

/// Bytes of the end of an edge.
const END: usize = 4;

/// Bytes that are read of a number, however few it has: at least as many stand behind where the last one begins.
const SLACK: usize = size_of::<u64>();

/// Few blocks have fewer bytes than these in Index.db, and few more than twice as many.
const USUAL: usize = 16;

/// An end of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Edge {
    First = 0,
    Last = 1,
}

/// The blocks of a group.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct PackedBlocks {
    bytes: Box<[u8]>,
    count: usize,
    /// How many bytes all edges begin with.
    common: usize,
    edges: Edges,
    /// Where in the bytes the starts are.
    starts: usize,
    /// Bytes of a start.
    width: usize,
    /// Where the first block begins, and where the last one ends, in bytes from the partition's start.
    reach: Range<u64>,
    /// Whether each block ends where the next one begins.
    is_whole: bool,
    open: Box<[(u32, DeletionTime)]>,
}

/// How edges are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edges {
    /// They are numbers.
    Numbers(Numbers),
    /// All have so many bytes besides the common ones.
    Fixed(usize),
    /// Their ends are listed.
    Ends,
}

/// Edges that are whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Numbers {
    order: NumberOrder,
    /// The least rank.
    least: u64,
    /// Bytes of a number.
    width: usize,
}

/// A block as it stands in Index.db.
struct Plain<'a> {
    edges: [&'a [u8]; 2],
    reach: Range<u64>,
    end_open: DeletionTime,
}

impl PackedBlocks {
    /// The blocks that these bytes of Index.db are.
    ///
    /// # Errors
    /// Bytes that are no blocks, or only a part of the last one.
    pub(super) fn new(codec: &RowCodec, version: Version, bytes: &[u8]) -> Decoded<PackedBlocks> {
        let mut blocks = Vec::with_capacity(bytes.len() / USUAL);
        let mut at = 0;
        while at < bytes.len() {
            let (block, len) =
                Plain::decode(codec, version, &bytes[at..]).map_err(|error| error.behind(at))?;
            blocks.push(block);
            at += len;
        }
        match blocks.first() {
            Some(_) => Ok(PackedBlocks::pack(codec, &blocks)),
            None => Err(DecodeError::Truncated { needed: 1 }),
        }
    }

    fn pack(codec: &RowCodec, blocks: &[Plain<'_>]) -> PackedBlocks {
        let edges = || blocks.iter().flat_map(|block| block.edges);
        let (reach, farthest, is_whole) = around(blocks);
        let width = width_of(farthest - reach.start);
        let places = blocks.len() * width * if is_whole { 1 } else { 2 };

        let (mut bytes, common, kind) = match Numbers::of(codec, edges()) {
            Some((numbers, ranks)) => (numbers.packed(&ranks, places + SLACK), 0, Edges::Numbers(numbers)),
            None => packed(edges(), places + SLACK),
        };
        let starts = bytes.len();
        put_all(blocks.iter().map(|block| block.reach.start - reach.start), width, &mut bytes);
        if !is_whole {
            put_all(blocks.iter().map(|block| block.reach.end - reach.start), width, &mut bytes);
        }
        bytes.extend_from_slice(&[0; SLACK]);
        let open = (0..).zip(blocks).filter(|(_, block)| !block.end_open.is_live());
        let open = open.map(|(number, block)| (number, block.end_open)).collect();
        let bytes = bytes.into_boxed_slice();
        PackedBlocks { bytes, count: blocks.len(), common, edges: kind, starts, width, reach, is_whole, open }
    }

    /// How many there are, at least one.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// All of their memory, in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of::<PackedBlocks>() + 2 * size_of::<usize>() + self.bytes.len() + size_of_val(&*self.open)
    }

    /// Puts an edge of a block into `place`. What is there is an edge of these blocks, or nothing.
    #[inline]
    pub(super) fn edge(&self, number: usize, edge: Edge, place: &mut Vec<u8>) {
        if let Edges::Numbers(numbers) = self.edges {
            place.clear();
            return RowCodec::put_prefix_of_rank(numbers.order, self.rank(numbers, number, edge), place);
        }
        place.truncate(self.common);
        if place.is_empty() {
            place.extend_from_slice(&self.bytes[..self.common]);
        }
        place.extend_from_slice(&self.bytes[self.rest_of(2 * number + edge as usize)]);
    }

    /// The ranks of the edges, if they are numbers.
    #[inline]
    pub(super) fn ranks(&self) -> Option<impl Fn(usize, Edge) -> u64> {
        let Edges::Numbers(numbers) = self.edges else { return None };
        Some(move |number, edge| self.rank(numbers, number, edge))
    }

    /// Where a block begins and ends, in bytes from the partition's start.
    pub(super) fn reach(&self, number: usize) -> Range<u64> {
        let place = |number| self.reach.start + self.number(self.starts, number, self.width);
        let end = match (self.is_whole, number + 1 == self.count) {
            (true, true) => self.reach.end,
            (true, false) => place(number + 1),
            (false, _) => place(self.count + number),
        };
        place(number)..end
    }

    /// The range tombstone that is open at the end of a block.
    pub(super) fn end_open(&self, number: usize) -> DeletionTime {
        let found = self.open.binary_search_by_key(&number, |&(number, _)| number as usize);
        found.map_or(DeletionTime::LIVE, |place| self.open[place].1)
    }

    /// A block with all that is known of it.
    ///
    /// # Errors
    /// Positions that are none.
    pub(super) fn block(&self, codec: &RowCodec, number: usize) -> Decoded<Block> {
        let mut place = Vec::new();
        let mut position = |edge| {
            self.edge(number, edge, &mut place);
            let bytes = Bytes::from(&place[..]);
            let (owner, range) = bytes.parts();
            codec
                .clustering_prefix(Source { owner, end: range.end }, range.start)
                .map(|(position, _)| position)
        };
        let (first, last) = (position(Edge::First)?, position(Edge::Last)?);
        let Range { start: offset, end } = self.reach(number);
        Ok(Block { first, last, offset, width: end - offset, end_open: self.end_open(number) })
    }

    /// Where what an edge has besides the common bytes is.
    #[inline]
    fn rest_of(&self, edge: usize) -> Range<usize> {
        match self.edges {
            Edges::Fixed(len) => self.common + edge * len..self.common + (edge + 1) * len,
            Edges::Ends => {
                let first = self.common + 2 * self.count * END;
                let start = if edge == 0 { 0 } else { self.end_of(edge - 1) };
                first + start..first + self.end_of(edge)
            }
            Edges::Numbers(_) => unreachable!("a number is no bytes"),
        }
    }

    fn end_of(&self, edge: usize) -> usize {
        self.number(self.common, edge, END) as usize
    }

    #[inline]
    fn rank(&self, numbers: Numbers, number: usize, edge: Edge) -> u64 {
        let above = self.number(0, 2 * number + edge as usize, numbers.width);
        numbers.least + (above << numbers.shift())
    }

    /// One of the numbers of so many bytes that begin at `from`.
    #[inline]
    fn number(&self, from: usize, number: usize, width: usize) -> u64 {
        let at = from + number * width;
        let bytes = self.bytes[at..at + SLACK].try_into().expect("there is slack behind the last one");
        u64::from_le_bytes(bytes) & mask(width)
    }
}

impl Numbers {
    /// What all of these have in common if they are whole numbers, and the ranks of all.
    fn of<'a>(codec: &RowCodec, edges: impl Iterator<Item = &'a [u8]>) -> Option<(Numbers, Vec<u64>)> {
        let order = codec.number_order()?;
        let mut ranks = Vec::with_capacity(edges.size_hint().0);
        let (mut least, mut greatest) = (u64::MAX, 0);
        for edge in edges {
            let rank = RowCodec::rank_of_prefix(order, edge)?;
            (least, greatest) = (least.min(rank), greatest.max(rank));
            ranks.push(rank);
        }
        let numbers = Numbers { order, least, width: 0 };
        Some((Numbers { width: width_of((greatest - least) >> numbers.shift()), ..numbers }, ranks))
    }

    /// How far the ranks are above the least one, with room for so many more bytes.
    fn packed(self, ranks: &[u64], room: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ranks.len() * self.width + room);
        put_all(ranks.iter().map(|rank| (rank - self.least) >> self.shift()), self.width, &mut bytes);
        bytes
    }

    /// Bits below a number in its rank: they are alike in all.
    #[inline]
    fn shift(self) -> usize {
        8 * (size_of::<u64>() - self.order.len)
    }
}

impl<'a> Plain<'a> {
    /// The block that `bytes` begin with, and how many of them it has.
    fn decode(codec: &RowCodec, version: Version, bytes: &'a [u8]) -> Decoded<(Plain<'a>, usize)> {
        let first = codec.prefix_len(bytes)?;
        let last = codec.prefix_len(&bytes[first..]).map_err(|error| error.behind(first))?;
        let edges = [&bytes[..first], &bytes[first..first + last]];
        let mut cursor = Cursor::new(&bytes[first + last..]);
        let (offset, width, end_open) =
            decode_tail(&mut cursor, version).map_err(|error| error.behind(first + last))?;
        let block = Plain { edges, reach: offset..offset + width, end_open };
        Ok((block, first + last + cursor.position()))
    }
}

/// Edges that are no numbers, with room for so many more bytes: how many bytes all have in common, and how they are told apart.
fn packed<'a>(edges: impl Iterator<Item = &'a [u8]> + Clone, room: usize) -> (Vec<u8>, usize, Edges) {
    let first = edges.clone().next().unwrap_or_default();
    let common = common_of(edges.clone());
    let rests = || edges.clone().map(|edge| &edge[common..]);
    let is_fixed = edges.clone().all(|edge| edge.len() == first.len());
    let end = if is_fixed { 0 } else { END };
    let of_edges: usize = rests().map(|rest| end + rest.len()).sum();
    let mut bytes = Vec::with_capacity(common + of_edges + room);
    bytes.extend_from_slice(&first[..common]);
    if !is_fixed {
        put_ends(rests().map(<[u8]>::len), &mut bytes);
    }
    rests().for_each(|rest| bytes.extend_from_slice(rest));
    (bytes, common, if is_fixed { Edges::Fixed(first.len() - common) } else { Edges::Ends })
}

/// From where the first of these begins up to where the last one ends, the end that is farthest from there, and whether each ends where the next
/// one begins.
fn around(blocks: &[Plain<'_>]) -> (Range<u64>, u64, bool) {
    let (mut start, mut farthest, mut is_whole) = (u64::MAX, 0, true);
    let mut end = blocks[0].reach.start;
    for Plain { reach, .. } in blocks {
        (start, farthest) = (start.min(reach.start), farthest.max(reach.end));
        is_whole &= end == reach.start;
        end = reach.end;
    }
    (start..end, farthest, is_whole)
}

/// Appends numbers, LE in so many bytes each.
fn put_all(numbers: impl ExactSizeIterator<Item = u64>, width: usize, to: &mut Vec<u8>) {
    let mut at = to.len();
    to.resize(at + numbers.len() * width + SLACK, 0);
    for number in numbers {
        debug_assert!(number <= mask(width), "a number has room");
        // What is above its bytes is zero, and the next one stands there.
        to[at..at + SLACK].copy_from_slice(&number.to_le_bytes());
        at += width;
    }
    to.truncate(at);
}

/// Appends where each of these ends that stand one behind the other.
fn put_ends(lens: impl Iterator<Item = usize>, to: &mut Vec<u8>) {
    let mut end = 0;
    for len in lens {
        end += len as u32;
        to.extend_from_slice(&end.to_le_bytes());
    }
}

/// How many bytes a number needs.
fn width_of(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8) as usize
}

/// The bits of a number of so many bytes.
#[inline]
fn mask(width: usize) -> u64 {
    if width == SLACK { u64::MAX } else { (1 << (8 * width)) - 1 }
}

/// How many bytes all of these begin with.
fn common_of<'a>(mut edges: impl Iterator<Item = &'a [u8]>) -> usize {
    let Some(first) = edges.next() else { return 0 };
    edges.fold(first.len(), |common, edge| {
        first[..common].iter().zip(edge).take_while(|(a, b)| a == b).count()
    })
}

#[cfg(test)]
mod tests {
    use model::{Clustering, Column, CqlType, Position, Schema};
    use proptest::prelude::*;

    use super::super::promoted_cursor::put_block_tail;
    use super::*;
    use crate::data::row::Minima;
    use crate::parts::samples::survives_corruption;

    const VERSION: Version = Version::Oa;

    fn codec_of(clustering: CqlType) -> RowCodec {
        let column = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
        let schema = Schema::new(CqlType::Int, vec![clustering], Vec::new(), vec![column]);
        RowCodec::new(&schema, Minima { timestamp: 0, local_deletion_time: 0, ttl: 0 }, VERSION)
    }

    fn codec() -> RowCodec {
        codec_of(CqlType::Text)
    }

    fn encode(codec: &RowCodec, blocks: &[Block]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for block in blocks {
            for position in [&block.first, &block.last] {
                codec.put_row_prefix(&position.prefix, &mut bytes);
            }
            put_block_tail(block.offset, block.width, &block.end_open, VERSION, &mut bytes);
        }
        bytes
    }

    fn block((first, last): (&[u8], &[u8]), (offset, width): (u64, u64), open: i64) -> Block {
        let position = |text: &[u8]| Position::at(std::iter::once(text.to_vec()).collect::<Clustering>());
        let end_open = match open {
            0 => DeletionTime::LIVE,
            time => DeletionTime { marked_for_delete_at: time, local_deletion_time: time },
        };
        Block { first: position(first), last: position(last), offset, width, end_open }
    }

    fn check(blocks: &[Block]) -> PackedBlocks {
        check_with(&codec(), blocks)
    }

    fn check_with(codec: &RowCodec, blocks: &[Block]) -> PackedBlocks {
        let packed = PackedBlocks::new(codec, VERSION, &encode(codec, blocks)).unwrap();
        assert_eq!(packed.len(), blocks.len());
        let mut place = Vec::new();
        for (number, block) in blocks.iter().enumerate().rev() {
            assert_eq!(packed.block(codec, number).as_ref(), Ok(block));
            assert_eq!(packed.reach(number), block.offset..block.end());
            let mut encoded = Vec::new();
            codec.put_row_prefix(&block.last.prefix, &mut encoded);
            packed.edge(number, Edge::Last, &mut place);
            assert_eq!(place[..], encoded);
        }
        packed
    }

    #[test]
    fn a_quarter_of_the_bytes_for_keys_of_one_length() {
        let key = |number: u32| number.to_be_bytes();
        let blocks: Vec<_> = (0..170_u32)
            .map(|i| block((&key(i * 40), &key(i * 40 + 38)), (30 + u64::from(i) * 4100, 4100), 0))
            .collect();
        let packed = check(&blocks);
        let each = packed.memory() / packed.len();
        assert!(each <= 8, "{each} bytes a block");
        assert!(encode(&codec(), &blocks).len() / packed.len() >= 18);
    }

    /// Forwards and reversed, as far apart as they can be, with one that is no number between them.
    #[test]
    fn numbers_are_kept_as_such() {
        let types = [CqlType::Int, CqlType::BigInt, CqlType::Timestamp];
        let reversed = types.clone().map(|data_type| CqlType::Reversed(Box::new(data_type)));
        for data_type in types.into_iter().chain(reversed) {
            let (len, codec) = (data_type.fixed_len().unwrap(), codec_of(data_type.clone()));
            let value = |number: i64| (number << (64 - 8 * len)).to_be_bytes()[..len].to_vec();
            let top = i64::MAX >> (64 - 8 * len);
            let mut numbers = [!top, -100, -1, 0, 1, 7, top - 1, top];
            numbers.sort_by(|a, b| data_type.compare(&value(*a), &value(*b)));
            let all = numbers.chunks(2).zip(0..).map(|(pair, i)| {
                block((&value(pair[0]), &value(pair[1])), (30 + i * 4100, 4100), i as i64 % 2)
            });
            let mut blocks: Vec<_> = all.collect();
            let packed = check_with(&codec, &blocks);
            let ranks = packed.ranks().expect("they are numbers");
            let ranks = (0..blocks.len()).flat_map(|i| [ranks(i, Edge::First), ranks(i, Edge::Last)]);
            assert!(ranks.is_sorted_by(|a, b| a < b), "{data_type:?}");
            check_with(&codec, &blocks[1..2]);
            blocks[1].last = Position::at(std::iter::once(Vec::<u8>::new()).collect());
            assert!(check_with(&codec, &blocks).ranks().is_none());
        }
    }

    #[test]
    fn numbers_near_each_other_take_few_bytes() {
        let value = |number: u32| number.to_be_bytes();
        let blocks: Vec<_> = (0..170_u32)
            .map(|i| block((&value(i * 40), &value(i * 40 + 38)), (30 + u64::from(i) * 4100, 4100), 0))
            .collect();
        let packed = check_with(&codec_of(CqlType::Int), &blocks);
        let each = packed.memory() / packed.len();
        assert!(each <= 8, "{each} bytes a block");
    }

    #[test]
    fn blocks_of_any_kind_come_back() {
        check(&[block((b"", b""), (0, 0), 0)]);
        check(&[block((b"a", b"a"), (10, 1 << 40), 7), block((b"b", b"longer"), ((1 << 40) + 10, 5), 0)]);
        let apart = [block((b"a", b"b"), (10, 20), 0), block((b"c", b"d"), (35, 20), 9)];
        assert!(!check(&apart).is_whole);
        let backwards = [block((b"a", b"b"), (500, 20), 0), block((b"c", b"d"), (35, 20), 0)];
        check(&backwards);
    }

    #[test]
    fn bytes_that_are_no_blocks_are_refused() {
        let codec = codec();
        let bytes =
            encode(&codec, &[block((b"abc", b"abd"), (10, 20), 7), block((b"abe", b"abf"), (30, 9), 0)]);
        assert!(PackedBlocks::new(&codec, VERSION, &[]).is_err());
        let whole = encode(&codec, &[block((b"abc", b"abd"), (10, 20), 7)]).len();
        for len in (1..bytes.len()).filter(|&len| len != whole) {
            assert!(PackedBlocks::new(&codec, VERSION, &bytes[..len]).is_err(), "{len}");
        }
        survives_corruption(&bytes, |bytes| {
            if let Ok(packed) = PackedBlocks::new(&codec, VERSION, bytes) {
                (0..packed.len()).for_each(|number| drop(packed.block(&codec, number)));
            }
        });
    }

    proptest! {
        #[test]
        fn whatever_is_packed_comes_back(
            blocks in prop::collection::vec(
                (
                    (prop::collection::vec(0_u8..3, 0..5), prop::collection::vec(0_u8..3, 0..5)),
                    (0_u64..1 << 50, 0_u64..1 << 20),
                    prop_oneof![3 => Just(0_i64), 1 => 1_i64..100],
                ),
                1..30,
            ),
        ) {
            let blocks: Vec<_> =
                blocks.iter().map(|((first, last), place, open)| block((first, last), *place, *open)).collect();
            check(&blocks);
        }
    }
}
