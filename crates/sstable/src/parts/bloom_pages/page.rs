//! A page: 63 lines, and the tokens whose keys are in them.
//!
//! ```text
//! page   63 × line of 64 bytes, i64 first token, i64 last token, zeros, u32 CRC32 of the 4092 bytes before it
//! ```
//!
//! A token's line is its part of the tokens from the first to the last, in 63 parts. The last token is the one before the
//! first of the next page; that of the last page is the last there is.

use std::rc::Weak;

use model::Token;
use model::key::token_of_hash;

use super::line::{LINE, Line};
use super::reader::{Inner, Probe};
use super::span::Span;
use crate::decode::Cursor;
use crate::encode::Encode;
use crate::parts::sealed_page::{PAGE, is_sound, seal};

/// Lines of a page.
pub(super) const LINES: usize = 63;

/// What a page holds, and what is noted of it: as much as fits behind the lines costs no memory.
#[derive(Clone, Debug)]
pub struct FilterPage<N = ()> {
    lines: [Line; LINES],
    span: Span,
    hashes: u8,
    note: N,
}

impl<N> FilterPage<N> {
    /// The page in these bytes, with a note, if it is sound and of this span.
    pub(super) fn decode(bytes: &[u8], span: Span, hashes: u8, note: N) -> Option<FilterPage<N>> {
        if !is_sound(bytes) || span_of(bytes)? != (span.first(), span.last()) {
            return None;
        }
        let (lines, _) = bytes.as_chunks();
        let lines = std::array::from_fn(|line| Line::decode(&lines[line]));
        Some(FilterPage { lines, span, hashes, note })
    }

    /// What the page says of the key with this hash, if its token is one of the page's: those of others are absent here.
    #[inline]
    pub fn probe(&self, hash: [u64; 2]) -> Probe {
        let line = self.line(token_of_hash(hash));
        if line.is_some_and(|line| line.has(hash[1], self.hashes)) { Probe::Maybe } else { Probe::Absent }
    }

    /// The line with this number.
    #[inline]
    pub(super) fn line_at(&self, part: usize) -> &Line {
        &self.lines[part]
    }

    /// The line of a token, if it is one of the page's.
    #[inline]
    pub(super) fn line(&self, token: Token) -> Option<&Line> {
        self.span.part(token).map(|part| &self.lines[part])
    }
}

/// A page in memory.
pub(super) type Page = FilterPage<Origin>;

/// What a page is of.
pub(super) struct Origin {
    /// The number of the file.
    owner: u64,
    file: Weak<Inner>,
}

impl Origin {
    /// An open file, and its number.
    pub(super) fn new(owner: u64, file: Weak<Inner>) -> Origin {
        Origin { owner, file }
    }
}

impl Page {
    /// All of its memory, in bytes: with the counts of an `Rc`, which take a line.
    pub(super) const WEIGHT: usize = size_of::<Page>() + LINE;

    /// The number of the file that it is a page of.
    #[inline]
    pub(super) fn owner(&self) -> u64 {
        self.note.owner
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if let Some(file) = self.file.upgrade() {
            file.page_goes();
        }
    }
}

/// The tokens of a page, in 63 parts.
pub(super) fn span(first: Token, last: Token) -> Span {
    Span::new(first, last, LINES as u32)
}

/// Appends the page with these tokens and the hashes of its keys.
pub(super) fn put_page(span: Span, hashes: u8, keys: &[(Token, u64)], to: &mut Vec<u8>) {
    let mut lines = [Line::default(); LINES];
    for &(token, half) in keys {
        let part = span.part(token).expect("the keys of a page are of its span");
        lines[part].add(half, hashes);
    }
    let start = to.len();
    lines.iter().for_each(|line| to.put(&line.encode()));
    to.put_i64(span.first());
    to.put_i64(span.last());
    seal(to, start);
}

/// The first and the last token that a page says it has.
fn span_of(page: &[u8]) -> Option<(Token, Token)> {
    let mut cursor = Cursor::new(page.get(LINES * LINE..PAGE)?);
    Some((cursor.i64().ok()?, cursor.i64().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(span: Span, keys: &[(Token, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_page(span, 6, keys, &mut bytes);
        bytes
    }

    #[test]
    fn pages_come_back() {
        let keys: Vec<(Token, u64)> =
            (0..3000_u64).map(|key| (1000 * key as i64, key.wrapping_mul(0x1234_5678_9ABC_DEF1))).collect();
        let span = span(0, 2_999_999);
        let bytes = page(span, &keys);
        assert_eq!(bytes.len(), PAGE);
        let page = FilterPage::decode(&bytes, span, 6, ()).unwrap();
        for (token, half) in keys {
            assert_eq!(page.probe([token as u64, half]), Probe::Maybe);
        }
        assert!(page.line(-1).is_none() && page.line(3_000_000).is_none());
        assert_eq!(align_of::<FilterPage>(), 64, "a line of the page is one of the CPU's cache");
        assert_eq!(size_of::<Page>(), PAGE, "a page takes no more memory than on disk");
    }

    #[test]
    fn damage_and_other_pages_are_seen() {
        let own = span(0, 100);
        let mut bytes = page(own, &[(5, 5)]);
        let is_taken = |bytes: &[u8], span| FilterPage::decode(bytes, span, 6, ()).is_some();
        assert!(is_taken(&bytes, own));
        assert!(!is_taken(&bytes, span(0, 99)) && !is_taken(&bytes, span(1, 100)));
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert!(!is_taken(&bytes, own), "byte {at}");
            bytes[at] ^= 1;
        }
        assert!(!is_taken(&bytes[..PAGE - 1], own) && !is_taken(&[], own));
    }
}
