//! The entries of the four trees.
//!
//! ```text
//! tokens   i64 token, vint place of its first entry in Index.db
//! keys     i64 token, vint key length, key, vint ordinal, vint place of its entry in Index.db, vint position in the
//!          data, vint length of the partition's head, deletion, vint number of blocks, vint bytes from the entry's
//!          start to the first block, vint bytes of all blocks
//! places   i64 token, vint 2 · position in the data of its first partition + 1 if Index.db has to be asked; otherwise, of each
//!          partition up to the next place, u16 the last two bytes of its token, u16 where it begins, counted from the first
//! groups   vint 2 · ordinal + 1 if a tombstone is open, vint number of the first block, vint place of it from the
//!          partition's first block, [deletion that is open before it], its first clustering prefix
//! ```
//!
//! Tokens ascend; keys ascend by token, then by bytes; groups by ordinal, then both by number and by prefix. The
//! separators of tokens and groups are whole entries, those of places end before the partitions, that of a key ends behind the key, which is empty where the token
//! tells enough. Deletions and prefixes are coded as in Index.db, so that the version of the SSTable decides.

use std::cmp::Ordering;
use std::ops::Range;

use model::{Bytes, DeletionTime, Token};

use crate::Version;
use crate::big::entry::{OFFSET, Promoted};
use crate::data::row::{Sought, deletion_time, put_deletion_time};
use crate::decode::{Cursor, Decoded, behind_vint};
use crate::encode::Encode;

/// From which place of Index.db on the partitions of a token and of those after it have their entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TokenFence {
    /// The token. All entries before the place have lower ones.
    pub(crate) token: Token,
    /// The place of the first entry with this token.
    pub(crate) at: u64,
}

impl TokenFence {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        to.put_i64(self.token);
        to.put_vint(self.at);
    }

    pub(super) fn decode(bytes: &[u8]) -> Decoded<TokenFence> {
        let mut cursor = Cursor::new(bytes);
        Ok(TokenFence { token: cursor.i64()?, at: cursor.vint()? })
    }

    /// The token alone, of an entry or separator: all that a search looks at.
    #[inline]
    pub(super) fn token_of(bytes: &[u8]) -> Decoded<Token> {
        match bytes.first_chunk() {
            Some(token) => Ok(Token::from_be_bytes(*token)),
            None => Cursor::new(bytes).i64(),
        }
    }
}

/// From which place of the data on the partitions of a token and of those after it are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlaceFence {
    /// The token. All partitions before the place have lower ones.
    pub(crate) token: Token,
    /// Where in the uncompressed data the first partition with this token begins.
    pub(crate) data: u64,
    /// Whether Index.db has to be asked: because the first partition has blocks there, or one of several of that token has,
    /// or these do not fit. Otherwise no partition up to the next fence has blocks.
    pub(crate) has_blocks: bool,
}

impl PlaceFence {
    pub(super) fn put(&self, to: &mut Vec<u8>) {
        to.put_i64(self.token);
        to.put_vint(self.data << 1 | u64::from(self.has_blocks));
    }

    /// The fence, and how many bytes it takes; the partitions follow.
    pub(super) fn decode(bytes: &[u8]) -> Decoded<(PlaceFence, usize)> {
        let mut cursor = Cursor::new(bytes);
        let (token, lead) = (cursor.i64()?, cursor.vint()?);
        Ok((PlaceFence { token, data: lead >> 1, has_blocks: lead & 1 == 1 }, cursor.position()))
    }
}

/// One of the partitions of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Spot {
    /// What of its token tells it from most others.
    tag: u16,
    /// Where it begins, in bytes from the place.
    at: u16,
}

impl Spot {
    pub(super) const BYTES: usize = 4;

    pub(super) fn new(token: Token, at: u16) -> Spot {
        Spot { tag: Spot::tag(token), at }
    }

    fn tag(token: Token) -> u16 {
        token as u16
    }

    pub(super) fn encode(self) -> [u8; Spot::BYTES] {
        (u32::from(self.tag) << 16 | u32::from(self.at)).to_be_bytes()
    }

    fn decode(bytes: [u8; Spot::BYTES]) -> Spot {
        let both = u32::from_be_bytes(bytes);
        Spot { tag: (both >> 16) as u16, at: both as u16 }
    }
}

/// Where in the data the partitions of a token are, if there are any.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Near {
    /// Before them.
    pub(crate) fence: PlaceFence,
    /// The partitions up to the end.
    spots: Bytes,
    /// Where the next fence is, if there is one.
    pub(crate) end: Option<u64>,
}

impl Near {
    pub(super) fn shared(bytes: &Bytes, next: Option<&Bytes>) -> Decoded<Near> {
        let (fence, len) = PlaceFence::decode(bytes)?;
        let end = next.map(|next| PlaceFence::decode(next)).transpose()?.map(|(next, _)| next.data);
        Ok(Near { fence, spots: bytes.slice(len..bytes.len()), end })
    }

    /// Whether a partition that begins at `data` can be of a token.
    pub(crate) fn has(&self, token: Token, data: u64) -> bool {
        let is_within = self.end.is_none_or(|end| data < end);
        let Some(at) = data.checked_sub(self.fence.data).filter(|_| is_within) else { return false };
        if self.fence.has_blocks {
            return token == self.fence.token;
        }
        let spots = self.spots.as_chunks().0;
        let found = spots.binary_search_by_key(&at, |bytes| u64::from(Spot::decode(*bytes).at));
        found.is_ok_and(|number| Spot::decode(spots[number]).tag == Spot::tag(token))
    }

    /// Where a partition of a token begins, in data of so many bytes, if it is the first one of those for which Index.db has to be
    /// asked, and where they end: mostly it alone, and it has blocks.
    pub(crate) fn with_blocks(&self, token: Token, data_len: u64) -> Option<Range<u64>> {
        let PlaceFence { token: first, data, has_blocks } = self.fence;
        (has_blocks && first == token).then(|| data..self.end.unwrap_or(data_len))
    }

    /// The ranges of those without blocks that can be of a token, in data of so many bytes: none, or mostly one.
    pub(crate) fn ranges(&self, token: Token, data_len: u64) -> impl Iterator<Item = Range<u64>> {
        let spots = self.spots.as_chunks().0;
        let start = |bytes: &[u8; 4]| self.fence.data + u64::from(Spot::decode(*bytes).at);
        let end = self.end.unwrap_or(data_len);
        (0..)
            .zip(spots)
            .filter(move |(_, bytes)| Spot::decode(**bytes).tag == Spot::tag(token))
            .map(move |(number, bytes): (usize, _)| start(bytes)..spots.get(number + 1).map_or(end, start))
    }
}

/// Appends the key of a large partition: also a separator.
pub(super) fn put_key(token: Token, key: &[u8], to: &mut Vec<u8>) {
    to.put_i64(token);
    to.put_vint_bytes(key);
}

/// How the key of an entry or separator stands to another.
pub(super) fn compare_key(bytes: &[u8], token: Token, key: &[u8]) -> Decoded<Ordering> {
    let mut cursor = Cursor::new(bytes);
    Ok((cursor.i64()?, cursor.vint_bytes()?).cmp(&(token, key)))
}

/// What Index.db tells of a large partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Large {
    /// Its number among the large ones.
    pub(crate) ordinal: u64,
    /// Where its entry begins in Index.db.
    pub(crate) at: u64,
    /// Where it begins in the uncompressed data.
    pub(crate) data: u64,
    /// The head of its promoted index.
    pub(crate) promoted: Promoted,
}

impl Large {
    /// Appends what follows the key.
    pub(super) fn put(&self, version: Version, to: &mut Vec<u8>) {
        let Promoted { head_len, deletion, count, blocks, .. } = &self.promoted;
        for number in [self.ordinal, self.at, self.data, *head_len] {
            to.put_vint(number);
        }
        put_deletion_time(deletion, version, to);
        for number in [u64::from(*count), blocks.start - self.at, blocks.end - blocks.start] {
            to.put_vint(number);
        }
    }

    /// The partition of an entry, in an Index.db of so many bytes.
    pub(super) fn decode(bytes: &[u8], version: Version, index_len: u64) -> Decoded<Large> {
        let mut cursor = Cursor::new(bytes);
        cursor.i64()?;
        cursor.vint_bytes()?;
        let [ordinal, at, data, head_len] = [cursor.vint()?, cursor.vint()?, cursor.vint()?, cursor.vint()?];
        let deletion = deletion_time(&mut cursor, version)?;
        let [count, before, len] = [cursor.vint()?, cursor.vint()?, cursor.vint()?];
        let start = at.checked_add(before);
        let map = start.and_then(|start| start.checked_add(len));
        let end = map.and_then(|map| map.checked_add(count.checked_mul(OFFSET)?));
        let (Some(start), Some(map), Ok(count)) = (start, map, u32::try_from(count)) else {
            return cursor.invalid("the place of a promoted index is impossible");
        };
        if count == 0 || len == 0 || end.is_none_or(|end| end > index_len) {
            return cursor.invalid("a promoted index lies outside of Index.db");
        }
        let promoted =
            Promoted { head_len, deletion, count, blocks: start..map, map, ordinal: Some(ordinal) };
        Ok(Large { ordinal, at, data, promoted })
    }
}

/// Some blocks of a large partition: those that begin in one stretch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    /// The partition's ordinal.
    pub(crate) ordinal: u64,
    /// The number of the first block.
    pub(crate) number: u32,
    /// Where it is, in bytes from the partition's first block in Index.db.
    pub(crate) at: u64,
    /// The range tombstone that is open before it.
    pub(crate) open: DeletionTime,
    /// The encoded position of its first row or marker.
    pub(crate) first: Bytes,
}

/// What a search looks at first in a group, and where it finds more: in the middle of a tree that is all.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupHead<'a> {
    /// The partition's ordinal.
    pub(super) ordinal: u64,
    is_open: bool,
    /// From the number of the first block on.
    rest: &'a [u8],
}

impl<'a> GroupHead<'a> {
    #[inline]
    pub(super) fn decode(bytes: &'a [u8]) -> Decoded<GroupHead<'a>> {
        let mut cursor = Cursor::new(bytes);
        let lead = cursor.vint()?;
        Ok(GroupHead { ordinal: lead >> 1, is_open: lead & 1 == 1, rest: cursor.rest() })
    }

    /// The number of the first block.
    pub(super) fn number(self) -> Decoded<u32> {
        let mut cursor = Cursor::new(self.rest);
        match u32::try_from(cursor.vint()?) {
            Ok(number) => Ok(number),
            Err(_) => cursor.invalid("the number of a block is impossible"),
        }
    }

    /// Where it is, in bytes from the partition's first block in Index.db.
    pub(super) fn at(self) -> Decoded<u64> {
        Cursor::new(behind_vint(self.rest)?).vint()
    }

    /// The encoded position of its first row or marker.
    #[inline]
    pub(super) fn first(self, version: Version) -> Decoded<&'a [u8]> {
        let behind_places = behind_vint(behind_vint(self.rest)?)?;
        if !self.is_open {
            return Ok(behind_places);
        }
        let mut cursor = Cursor::new(behind_places);
        deletion_time(&mut cursor, version)?;
        Ok(cursor.rest())
    }
}

impl Group {
    /// The group of these bytes.
    pub(super) fn shared(bytes: &Bytes, version: Version) -> Decoded<Group> {
        let mut cursor = Cursor::new(bytes);
        let head = GroupHead::decode(bytes)?;
        let (GroupHead { ordinal, is_open, rest }, number) = (head, head.number()?);
        cursor.skip(bytes.len() - behind_vint(rest)?.len())?;
        let at = cursor.vint()?;
        let open = if is_open { deletion_time(&mut cursor, version)? } else { DeletionTime::LIVE };
        Ok(Group { ordinal, number, at, open, first: bytes.slice(cursor.position()..bytes.len()) })
    }

    /// How the beginning of the first block stands to a position.
    pub(crate) fn compare(&self, sought: &Sought<'_>) -> Decoded<Ordering> {
        sought.compare_prefix(&self.first)
    }
}

/// Appends a group.
pub(super) fn put_group(
    (ordinal, number, at): (u64, u32, u64),
    open: &DeletionTime,
    first: &[u8],
    version: Version,
    to: &mut Vec<u8>,
) {
    to.put_vint(ordinal << 1 | u64::from(!open.is_live()));
    to.put_vint(u64::from(number));
    to.put_vint(at);
    if !open.is_live() {
        put_deletion_time(open, version, to);
    }
    to.put(first);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::samples::survives_corruption;

    const DELETED: DeletionTime = DeletionTime { marked_for_delete_at: 77, local_deletion_time: 9 };

    #[test]
    fn tokens_come_back() {
        for fence in [TokenFence { token: i64::MIN + 1, at: 0 }, TokenFence { token: 5, at: u64::MAX }] {
            let mut bytes = Vec::new();
            fence.put(&mut bytes);
            assert_eq!(TokenFence::decode(&Bytes::from(bytes)), Ok(fence));
        }
    }

    #[test]
    fn large_partitions_come_back() {
        for version in Version::ALL {
            for deletion in [DeletionTime::LIVE, DELETED] {
                let promoted = Promoted {
                    head_len: 40,
                    deletion,
                    count: 3,
                    blocks: 150..950,
                    map: 950,
                    ordinal: Some(8),
                };
                let large = Large { ordinal: 8, at: 100, data: 1 << 40, promoted };
                let mut bytes = Vec::new();
                put_key(-3, b"key", &mut bytes);
                large.put(version, &mut bytes);
                let decode = |bytes: &[u8], len| Large::decode(&Bytes::from(bytes), version, len);
                assert_eq!(decode(&bytes, 962), Ok(large));
                assert!(decode(&bytes, 961).is_err(), "the offset map ends outside of Index.db");
                let compare = |token, key| compare_key(&Bytes::from(&bytes[..]), token, key).unwrap();
                assert_eq!(compare(-3, b"key"), Ordering::Equal);
                assert_eq!(compare(-3, b"ke"), Ordering::Greater);
                assert_eq!(compare(-2, b"a"), Ordering::Less);
                survives_corruption(&bytes, |bytes| {
                    if let Ok(large) = decode(bytes, 962) {
                        let Promoted { blocks, map, count, .. } = large.promoted;
                        assert!(blocks.start < blocks.end && blocks.end == map);
                        assert!(count > 0 && map + u64::from(count) * OFFSET <= 962);
                    }
                });
            }
        }
    }

    #[test]
    fn places_come_back() {
        for has_blocks in [false, true] {
            let (fence, behind) = (
                PlaceFence { token: -3, data: 70_000, has_blocks },
                PlaceFence { token: 9, data: 1 << 50, has_blocks },
            );
            let (mut bytes, mut next) = (Vec::new(), Vec::new());
            fence.put(&mut bytes);
            behind.put(&mut next);
            let spots = [Spot::new(-3, 0), Spot::new(0x1_0007, 30), Spot::new(7, 5), Spot::new(8, 60_000)];
            bytes.extend(spots.map(Spot::encode).as_flattened());
            let next = Bytes::from(&next[..]);
            let near = Near::shared(&Bytes::from(&bytes[..]), Some(&next)).unwrap();
            assert_eq!((near.fence, near.end), (fence, Some(1 << 50)));
            let ends = |near: &Near, token| {
                near.ranges(token, 131_000).map(|range| (range.start, range.end)).collect::<Vec<_>>()
            };
            assert_eq!(ends(&near, -3), [(70_000, 70_030)]);
            assert_eq!(
                ends(&near, 7),
                [(70_030, 70_005), (70_005, 130_000)],
                "who reads it refuses the first"
            );
            assert_eq!(
                (near.has(-3, 70_000), near.has(-3, 1 << 50), near.has(-3, 69_999)),
                (true, false, false)
            );
            assert_eq!((near.has(8, 130_000), near.has(8, 130_001)), (!has_blocks, false));
            assert_eq!((ends(&near, 8), ends(&near, 9)), (vec![(130_000, 1 << 50)], vec![]));
            let last = Near::shared(&Bytes::from(&bytes[..]), None).unwrap();
            assert_eq!(ends(&last, 8), [(130_000, 131_000)]);
            survives_corruption(&bytes, |bytes| drop(Near::shared(&Bytes::from(bytes), Some(&next))));
            survives_corruption(&next, |next| {
                drop(Near::shared(&Bytes::from(&bytes[..]), Some(&Bytes::from(next))));
            });
        }
    }

    #[test]
    fn groups_come_back() {
        for version in Version::ALL {
            for open in [DeletionTime::LIVE, DELETED] {
                let mut bytes = Vec::new();
                put_group((3, 170, 4096), &open, b"first", version, &mut bytes);
                let group =
                    Group { ordinal: 3, number: 170, at: 4096, open, first: Bytes::from(&b"first"[..]) };
                assert_eq!(Group::shared(&Bytes::from(&bytes[..]), version), Ok(group));
                let head = GroupHead::decode(&bytes).unwrap();
                assert_eq!(
                    (head.ordinal, head.number(), head.at(), head.first(version)),
                    (3, Ok(170), Ok(4096), Ok(&b"first"[..]))
                );
                survives_corruption(&bytes, |bytes| {
                    let head = GroupHead::decode(bytes);
                    let _ = head.map(|head| (head.number(), head.at(), head.first(version).map(<[u8]>::len)));
                    drop(Group::shared(&Bytes::from(bytes), version));
                });
            }
        }
    }
}
