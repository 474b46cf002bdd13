//! The end of Fences.db: where its trees are, and which SSTable it is of.
//!
//! ```text
//! trailer   3 × tree: u64 place of the root, u8 levels, u64 entries      tokens, keys, groups
//!           u8 1 if there is a Digest.crc32, u32 its number, u64 length of Data.db, u64 length of Index.db
//!           2 bytes: the version of the SSTable, in letters
//!           u64 pages of this file, u8 format of this file (1), 8 bytes "siltfenc"
//! ```
//!
//! It stands right before the checksum of the last page.

use super::page::{PAGE, ROOM, is_sound};
use super::tree::Tree;
use crate::Version;
use crate::decode::{Cursor, Decoded};
use crate::encode::Encode;

/// Bytes of the trailer.
pub(super) const TRAILER: usize = 3 * 17 + 21 + 2 + 8 + 1 + 8;
/// The format that is written and read here.
const FORMAT: u8 = 1;
const MAGIC: &[u8; 8] = b"siltfenc";

/// Which SSTable fences are of: they hold for no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The number in Digest.crc32, if there is such a file.
    pub digest: Option<u32>,
    /// Bytes of Data.db, as it is on disk.
    pub data_len: u64,
    /// Bytes of Index.db.
    pub index_len: u64,
}

impl Binding {
    /// What is not as it should be.
    pub(super) fn difference(&self, expected: &Binding) -> Option<&'static str> {
        if self.digest != expected.digest {
            return Some("its digest is that of another Data.db");
        }
        if self.data_len != expected.data_len {
            return Some("it is of a Data.db of another length");
        }
        (self.index_len != expected.index_len).then_some("it is of an Index.db of another length")
    }
}

/// Appends a trailer.
pub(super) fn put_trailer(trees: &[Tree; 3], binding: &Binding, version: Version, pages: u64) -> Vec<u8> {
    let mut to = Vec::with_capacity(TRAILER);
    for tree in trees {
        to.put_u64(tree.root);
        to.put_u8(tree.levels);
        to.put_u64(tree.entries);
    }
    to.put_u8(u8::from(binding.digest.is_some()));
    to.put_u32(binding.digest.unwrap_or(0));
    to.put_u64(binding.data_len);
    to.put_u64(binding.index_len);
    to.put(version.name().as_bytes());
    to.put_u64(pages);
    to.put_u8(FORMAT);
    to.put(MAGIC);
    to
}

/// The trees of a file of this version and binding that has so many bytes and this last page; otherwise why it is of
/// no use.
pub(super) fn decode_trailer(
    page: &[u8],
    len: u64,
    binding: &Binding,
    version: Version,
) -> Result<[Tree; 3], &'static str> {
    let Some(trailer) = page.get(ROOM - TRAILER..ROOM).filter(|_| page.len() == PAGE) else {
        return Err("it is cut off");
    };
    if !trailer.ends_with(MAGIC) {
        return Err("it does not end as fences do");
    }
    if trailer[TRAILER - MAGIC.len() - 1] != FORMAT {
        return Err("its format is not known");
    }
    if !is_sound(page) {
        return Err("the checksum of its last page is wrong");
    }
    let (trees, found, name, pages) = decode(trailer).map_err(|error| error.what())?;
    if pages.checked_mul(PAGE as u64) != Some(len) {
        return Err("it is cut off");
    }
    if name != *version.name().as_bytes() {
        return Err("it is of an SSTable of another version");
    }
    match found.difference(binding) {
        Some(difference) => Err(difference),
        None => Ok(trees),
    }
}

/// Whether fences that have so many bytes and this last page are of that SSTable; otherwise why they are of no use.
pub(crate) fn is_of(page: &[u8], len: u64, binding: &Binding, version: Version) -> Result<(), &'static str> {
    decode_trailer(page, len, binding, version).map(drop)
}

fn decode(trailer: &[u8]) -> Decoded<([Tree; 3], Binding, [u8; 2], u64)> {
    let mut cursor = Cursor::new(trailer);
    let mut tree = || Ok(Tree { root: cursor.u64()?, levels: cursor.u8()?, entries: cursor.u64()? });
    let trees = [tree()?, tree()?, tree()?];
    let (has_digest, digest) = (cursor.u8()? == 1, cursor.u32()?);
    let digest = has_digest.then_some(digest);
    let binding = Binding { digest, data_len: cursor.u64()?, index_len: cursor.u64()? };
    let name = [cursor.u8()?, cursor.u8()?];
    Ok((trees, binding, name, cursor.u64()?))
}

#[cfg(test)]
mod tests {
    use super::super::page::Pages;
    use super::*;

    const BINDING: Binding = Binding { digest: Some(7), data_len: 1000, index_len: 60 };

    fn page() -> (Vec<u8>, [Tree; 3]) {
        let trees = [1, 2, 3].map(|n| Tree { root: n, levels: n as u8, entries: 9 * n });
        let put = |pages| put_trailer(&trees, &BINDING, Version::Me, pages);
        (Pages::default().finish(put, TRAILER), trees)
    }

    fn decode(page: &[u8]) -> Result<[Tree; 3], &'static str> {
        decode_trailer(page, page.len() as u64, &BINDING, Version::Me)
    }

    #[test]
    fn trailers_come_back() {
        let (page, trees) = page();
        assert_eq!(decode(&page), Ok(trees));
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
        let (mut page, _) = page();
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
