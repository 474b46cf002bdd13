//! The end of Fences.db: where its trees are, and which SSTable it is of.
//!
//! ```text
//! trailer   4 × tree: u64 place of the root, u8 levels, u64 entries      tokens, keys, groups, places
//!           u8 flags: 1 there is a Digest.crc32, 2 no partition is deleted as a whole
//!           u32 the number in Digest.crc32, u64 length of Data.db, u64 length of Index.db
//!           2 bytes: the version of the SSTable, in letters
//!           u64 pages of this file, u8 format of this file (2), 8 bytes "siltfenc"
//! ```
//!
//! It stands right before the checksum of the last page.

use super::TREES;
use super::tree::Tree;
use crate::Version;
use crate::decode::{Cursor, Decoded};
use crate::encode::Encode;
use crate::parts::binding::Binding;
use crate::parts::sealed_page::{END, Kind};

/// Bytes of the trailer before its end.
const TREES_AND_BINDING: usize = TREES * 17 + Binding::BYTES;
/// Bytes of the trailer.
pub(super) const TRAILER: usize = TREES_AND_BINDING + END;
const FENCES: Kind = Kind { format: 2, magic: b"siltfenc" };

/// The flag, first of the binding, that no partition is deleted as a whole. Where it is missing that may be so all the same.
const UNDELETED: u8 = 2;

/// What the trailer tells beside the binding.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Told {
    pub(super) trees: [Tree; TREES],
    /// No partition is deleted as a whole.
    pub(super) is_undeleted: bool,
}

/// Appends a trailer.
pub(super) fn put_trailer(told: &Told, binding: &Binding, version: Version, pages: u64) -> Vec<u8> {
    let mut to = Vec::with_capacity(TRAILER);
    for tree in &told.trees {
        to.put_u64(tree.root);
        to.put_u8(tree.levels);
        to.put_u64(tree.entries);
    }
    let flags = to.len();
    binding.put(version, &mut to);
    to[flags] |= if told.is_undeleted { UNDELETED } else { 0 };
    FENCES.put_end(pages, &mut to);
    to
}

/// What a file of this version and binding tells that has so many bytes and this last page; otherwise why it is of no use.
pub(super) fn decode_trailer(
    page: &[u8],
    len: u64,
    binding: &Binding,
    version: Version,
) -> Result<Told, &'static str> {
    FENCES.bound_trailer((page, len), TREES_AND_BINDING, (binding, version), take)
}

/// Whether fences that have so many bytes and this last page are of that SSTable; otherwise why they are of no use.
pub(crate) fn is_of(page: &[u8], len: u64, binding: &Binding, version: Version) -> Result<(), &'static str> {
    decode_trailer(page, len, binding, version).map(drop)
}

/// Whether fences with this last page say of themselves that no partition is deleted.
pub(crate) fn is_undeleted(page: &[u8], len: u64, binding: &Binding, version: Version) -> bool {
    decode_trailer(page, len, binding, version).is_ok_and(|told| told.is_undeleted)
}

/// What stands before the binding, and in the first byte of that.
fn take(cursor: &mut Cursor<'_>) -> Decoded<Told> {
    let mut tree = || Ok(Tree { root: cursor.u64()?, levels: cursor.u8()?, entries: cursor.u64()? });
    let trees = [tree()?, tree()?, tree()?, tree()?];
    let is_undeleted = cursor.peek().is_some_and(|flags| flags & UNDELETED != 0);
    Ok(Told { trees, is_undeleted })
}

#[cfg(test)]
mod tests {
    use super::super::page::Pages;
    use super::*;

    const BINDING: Binding = Binding { digest: Some(7), data_len: 1000, index_len: 60 };

    fn page(is_undeleted: bool) -> (Vec<u8>, Told) {
        let trees = [1, 2, 3, 4].map(|n| Tree { root: n, levels: n as u8, entries: 9 * n });
        let told = Told { trees, is_undeleted };
        let put = |pages| put_trailer(&told, &BINDING, Version::Me, pages);
        (Pages::default().finish(put, TRAILER), told)
    }

    fn decode(page: &[u8]) -> Result<Told, &'static str> {
        decode_trailer(page, page.len() as u64, &BINDING, Version::Me)
    }

    #[test]
    fn trailers_come_back() {
        for is_undeleted in [false, true] {
            let (page, told) = page(is_undeleted);
            assert_eq!(decode(&page), Ok(told));
        }
        let (page, _) = page(true);
        let len = page.len() as u64;
        let other = |binding: Binding, version| decode_trailer(&page, len, &binding, version).unwrap_err();
        assert!(other(Binding { digest: Some(8), ..BINDING }, Version::Me).contains("digest"));
        assert!(other(Binding { digest: None, ..BINDING }, Version::Me).contains("digest"));
        assert!(
            other(Binding { data_len: 999, ..BINDING }, Version::Me).contains("Data.db of another length")
        );
        assert!(
            other(Binding { index_len: 61, ..BINDING }, Version::Me).contains("Index.db of another length")
        );
        assert!(other(BINDING, Version::Oa).contains("another version"));
        assert_eq!(decode_trailer(&page, 2 * len, &BINDING, Version::Me), Err("it is cut off"));
    }

    #[test]
    fn any_damage_is_seen() {
        let (mut page, _) = page(true);
        for len in 0..page.len() {
            assert_eq!(decode(&page[..len]), Err("it is cut off"));
        }
        for at in 0..page.len() {
            for flip in [1, 0x80, 0xff] {
                page[at] ^= flip;
                assert!(decode(&page).is_err(), "byte {at}");
                page[at] ^= flip;
            }
        }
    }
}
