//! The end of BloomPages.db: the first token of each page, and which SSTable they are of.
//!
//! ```text
//! tokens    one for each page, i64, ascending: 511 in a page
//! trailer   u32 pages of lines, u8 bits that a key sets, i64 last token; the binding; the end of a file of pages
//! ```
//!
//! The trailer is in the page of the last tokens, or in one of its own if there is no room.

use model::Token;

use crate::Version;
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::encode::Encode;
use crate::parts::binding::Binding;
use crate::parts::sealed_page::{END, Kind, PAGE, ROOM, is_sound, seal};

use super::line::MAX_HASHES;

const BLOOM: Kind = Kind { format: 1, magic: b"siltblom" };
/// Tokens in a page of them.
const TOKENS: usize = ROOM / 8;
/// Bytes of the trailer before its end.
const HEAD: usize = 4 + 1 + 8 + Binding::BYTES;
/// Tokens for which there is room beside the trailer.
const TOKENS_BESIDE: usize = (ROOM - HEAD - END) / 8;

/// Which pages there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Directory {
    /// Bits that a key sets.
    pub(super) hashes: u8,
    /// The first token of each page, ascending; at least one.
    pub(super) firsts: Box<[Token]>,
    /// The last token of the last page.
    pub(super) last: Token,
}

/// What the trailer tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trailer {
    pages: u32,
    hashes: u8,
    last: Token,
}

impl Directory {
    /// Appends it.
    pub(super) fn put(&self, binding: &Binding, version: Version, to: &mut Vec<u8>) {
        let rest = self.firsts.len() % TOKENS;
        let (full, beside) = match rest <= TOKENS_BESIDE {
            true => self.firsts.split_at(self.firsts.len() - rest),
            false => (&self.firsts[..], &[][..]),
        };
        for tokens in full.chunks(TOKENS) {
            put_tokens(tokens, to);
            let start = to.len() - 8 * tokens.len();
            seal(to, start);
        }
        let start = to.len();
        put_tokens(beside, to);
        to.resize(start + ROOM - HEAD - END, 0);
        to.put_u32(self.firsts.len() as u32);
        to.put_u8(self.hashes);
        to.put_i64(self.last);
        binding.put(version, to);
        BLOOM.put_end(self.firsts.len() as u64 + pages_of(self.firsts.len()), to);
        seal(to, start);
    }

    /// The directory in these pages, the last ones of the file.
    pub(super) fn decode(trailer: Trailer, pages: &[u8]) -> Result<Directory, &'static str> {
        if !pages.chunks(PAGE).all(is_sound) {
            return Err("the checksum of a page of its tokens is wrong");
        }
        let count = trailer.pages as usize;
        let tokens = pages.chunks(PAGE).flat_map(|page| page[..8 * TOKENS].as_chunks().0);
        let firsts: Box<[Token]> = tokens.take(count).map(|token| Token::from_be_bytes(*token)).collect();
        let ascends = firsts.is_sorted_by(|a, b| a < b) && firsts.last() <= Some(&trailer.last);
        if firsts.len() != count || !ascends {
            return Err("the tokens of its pages do not ascend");
        }
        Ok(Directory { hashes: trailer.hashes, firsts, last: trailer.last })
    }
}

impl Trailer {
    /// The trailer of a file of that version and binding that has so many bytes and this last page; otherwise why it is
    /// of no use.
    pub(super) fn decode(
        page: &[u8],
        file_len: u64,
        binding: &Binding,
        version: Version,
    ) -> Result<Trailer, &'static str> {
        let trailer = BLOOM.bound_trailer((page, file_len), HEAD, (binding, version), Trailer::take)?;
        let is_whole = (trailer.len() + u64::from(trailer.pages)) * PAGE as u64 == file_len;
        if is_whole { Ok(trailer) } else { Err("it is cut off") }
    }

    /// How many pages the directory has.
    pub(super) fn len(&self) -> u64 {
        pages_of(self.pages as usize)
    }

    fn take(cursor: &mut Cursor<'_>) -> Decoded<Trailer> {
        let trailer = Trailer { pages: cursor.u32()?, hashes: cursor.u8()?, last: cursor.i64()? };
        if trailer.pages == 0 || trailer.pages >= 1 << 31 || !(1..=MAX_HASHES).contains(&trailer.hashes) {
            return Err(DecodeError::Invalid { at: 0, what: "it has no pages, or its keys have no bits" });
        }
        Ok(trailer)
    }
}

/// How many pages the directory of so many pages has.
fn pages_of(pages: usize) -> u64 {
    let (full, rest) = ((pages / TOKENS) as u64, pages % TOKENS);
    if rest <= TOKENS_BESIDE { full + 1 } else { full + 2 }
}

fn put_tokens(tokens: &[Token], to: &mut Vec<u8>) {
    tokens.iter().for_each(|&token| to.put_i64(token));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: Binding = Binding { digest: Some(7), data_len: 1000, index_len: 60 };

    fn directory(pages: usize) -> (Directory, Vec<u8>, u64) {
        let firsts = (0..pages as i64).map(|page| page * 10 - 4000).collect();
        let directory = Directory { hashes: 6, firsts, last: pages as i64 * 10 };
        let mut bytes = Vec::new();
        directory.put(&BINDING, Version::Me, &mut bytes);
        let file_len = (pages * PAGE + bytes.len()) as u64;
        (directory, bytes, file_len)
    }

    fn decode(bytes: &[u8], file_len: u64) -> Result<Directory, &'static str> {
        let last = &bytes[bytes.len().saturating_sub(PAGE)..];
        let trailer = Trailer::decode(last, file_len, &BINDING, Version::Me)?;
        assert_eq!(trailer.len() as usize * PAGE, bytes.len());
        Directory::decode(trailer, bytes)
    }

    #[test]
    fn directories_come_back() {
        for pages in [1, 2, TOKENS_BESIDE, TOKENS_BESIDE + 1, TOKENS, TOKENS + 1, 3 * TOKENS - 1, 5000] {
            let (directory, bytes, file_len) = directory(pages);
            assert_eq!(decode(&bytes, file_len), Ok(directory), "{pages}");
            assert_eq!(decode(&bytes, file_len + PAGE as u64), Err("it is cut off"));
        }
    }

    #[test]
    fn any_damage_is_seen() {
        let (_, mut bytes, file_len) = directory(TOKENS + 3);
        for at in 0..bytes.len() {
            bytes[at] ^= 0x40;
            assert!(decode(&bytes, file_len).is_err(), "byte {at}");
            bytes[at] ^= 0x40;
        }
        let other =
            Trailer::decode(&bytes[PAGE..], file_len, &Binding { digest: None, ..BINDING }, Version::Me);
        assert_eq!(other, Err("its digest is that of another Data.db"));
    }

    #[test]
    fn tokens_ascend() {
        for firsts in [vec![], vec![5, 5], vec![5, 4], vec![200]] {
            let directory = Directory { hashes: 6, firsts: firsts.clone().into(), last: 100 };
            let mut bytes = Vec::new();
            directory.put(&BINDING, Version::Me, &mut bytes);
            let file_len = (firsts.len() * PAGE + bytes.len()) as u64;
            assert!(decode(&bytes, file_len).is_err(), "{firsts:?}");
        }
        let (mut directory, ..) = directory(3);
        directory.hashes = 21;
        let mut bytes = Vec::new();
        directory.put(&BINDING, Version::Me, &mut bytes);
        assert!(decode(&bytes, 4 * PAGE as u64).is_err());
    }
}
