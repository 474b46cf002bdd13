//! The entries of the three trees.
//!
//! ```text
//! tokens   i64 token, vint place of its first entry in Index.db
//! keys     i64 token, vint key length, key, vint ordinal, vint place of its entry in Index.db, vint position in the
//!          data, vint length of the partition's head, deletion, vint number of blocks, vint bytes from the entry's
//!          start to the first block, vint bytes of all blocks
//! groups   vint 2 · ordinal + 1 if a tombstone is open, vint number of the first block, vint place of it from the
//!          partition's first block, [deletion that is open before it], its first clustering prefix
//! ```
//!
//! Tokens ascend; keys ascend by token, then by bytes; groups by ordinal, then both by number and by prefix. The
//! separators of tokens and groups are whole entries, that of a key ends behind the key, which is empty where the token
//! tells enough. Deletions and prefixes are coded as in Index.db, so that the version of the SSTable decides.

use std::cmp::Ordering;

use model::{Bytes, DeletionTime, Position, Schema, Token};

use crate::Version;
use crate::big::entry::{OFFSET, Promoted};
use crate::data::row::{RowCodec, deletion_time, put_deletion_time};
use crate::decode::{Cursor, Decoded};
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
        Cursor::new(bytes).i64()
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
///
/// Searches look at many that are borrowed, and give out what lasts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group<P = Bytes> {
    /// The partition's ordinal.
    pub(crate) ordinal: u64,
    /// The number of the first block.
    pub(crate) number: u32,
    /// Where it is, in bytes from the partition's first block in Index.db.
    pub(crate) at: u64,
    /// The range tombstone that is open before it.
    pub(crate) open: DeletionTime,
    /// The encoded position of its first row or marker.
    pub(crate) first: P,
}

impl<'a> Group<&'a [u8]> {
    pub(super) fn decode(bytes: &'a [u8], version: Version) -> Decoded<Group<&'a [u8]>> {
        let mut cursor = Cursor::new(bytes);
        let lead = cursor.vint()?;
        let Ok(number) = u32::try_from(cursor.vint()?) else {
            return cursor.invalid("the number of a block is impossible");
        };
        let at = cursor.vint()?;
        let open = if lead & 1 == 1 { deletion_time(&mut cursor, version)? } else { DeletionTime::LIVE };
        Ok(Group { ordinal: lead >> 1, number, at, open, first: cursor.rest() })
    }
}

impl Group {
    /// The group of these bytes.
    pub(super) fn shared(bytes: &Bytes, version: Version) -> Decoded<Group> {
        let Group { ordinal, number, at, open, first } = Group::decode(bytes, version)?;
        let first = bytes.slice(bytes.len() - first.len()..bytes.len());
        Ok(Group { ordinal, number, at, open, first })
    }
}

impl<P: AsRef<[u8]>> Group<P> {
    /// How the beginning of the first block stands to a position.
    pub(crate) fn compare(
        &self,
        codec: &RowCodec,
        schema: &Schema,
        position: &Position,
    ) -> Decoded<Ordering> {
        codec.compare_prefix(self.first.as_ref(), schema, position)
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
    fn groups_come_back() {
        for version in Version::ALL {
            for open in [DeletionTime::LIVE, DELETED] {
                let mut bytes = Vec::new();
                put_group((3, 170, 4096), &open, b"first", version, &mut bytes);
                let group =
                    Group { ordinal: 3, number: 170, at: 4096, open, first: Bytes::from(&b"first"[..]) };
                assert_eq!(Group::shared(&Bytes::from(&bytes[..]), version), Ok(group));
                survives_corruption(&bytes, |bytes| drop(Group::decode(bytes, version)));
            }
        }
    }
}
