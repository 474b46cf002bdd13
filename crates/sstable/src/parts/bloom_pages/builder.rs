//! BloomPages.db from the hashes of keys, in the order of their tokens.

use model::Token;
use model::key::token_of_hash;

use super::density::Density;
use super::directory::Directory;
use super::page::{LINES, put_page, span};
use crate::Version;
use crate::parts::binding::Binding;

/// With so many bytes of pages, a request is worth it.
const FULL: usize = 256 << 10;

/// Builds the pages as keys go by.
///
/// Invariants:
/// 1. Keys come in the order of their tokens.
/// 2. Keys of one token are in one page: who looks for a token looks into one.
#[derive(Debug)]
pub struct BloomPagesBuilder {
    hashes: u8,
    /// How many keys a page gets, save for those of the same token as the last of them.
    keys_per_page: usize,
    /// Tokens and second halves of the hashes of the page that is being filled.
    keys: Vec<(Token, u64)>,
    firsts: Vec<Token>,
    pages: Vec<u8>,
}

impl BloomPagesBuilder {
    /// A builder for so many keys. Another key passes with this chance at most. `None` if one page would hold all keys, because a filter in
    /// memory is then no larger than what a lookup would read, and if the chance is 1, by which all keys pass.
    pub fn new(keys: u64, fp_chance: f64) -> Option<BloomPagesBuilder> {
        if keys <= LINES as u64 || fp_chance >= 1.0 {
            return None;
        }
        let density = Density::of(fp_chance);
        let most = ((density.keys * LINES as f64) as u64).max(1);
        let pages = keys.div_ceil(most);
        if pages == 1 {
            return None;
        }
        Some(BloomPagesBuilder {
            hashes: density.hashes,
            keys_per_page: keys.div_ceil(pages) as usize,
            keys: Vec::new(),
            firsts: Vec::new(),
            pages: Vec::new(),
        })
    }

    /// Adds the key with this hash ([`model::key::murmur3`]).
    ///
    /// # Panics
    /// If its token is below that of the key before it.
    pub fn add(&mut self, hash: [u64; 2]) {
        let token = token_of_hash(hash);
        if let Some(&(before, _)) = self.keys.last() {
            assert!(before <= token, "invariant 1");
            if self.keys.len() >= self.keys_per_page && before < token {
                self.end_page(token - 1);
            }
        }
        self.keys.push((token, hash[1]));
    }

    /// Those pages that are done.
    pub fn take_pages(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pages)
    }

    /// Whether so many pages are done, and not taken, that a request is worth it.
    pub fn is_full(&self) -> bool {
        self.pages.len() >= FULL
    }

    /// The pages that were not taken, and the end of the file.
    ///
    /// # Panics
    /// If there was no key.
    pub fn finish(mut self, binding: &Binding, version: Version) -> Vec<u8> {
        let (last, _) = *self.keys.last().expect("there are keys");
        self.end_page(last);
        let directory = Directory { hashes: self.hashes, firsts: self.firsts.into(), last };
        directory.put(binding, version, &mut self.pages);
        self.pages
    }

    /// Ends the page, which has keys, at this token.
    fn end_page(&mut self, last: Token) {
        let (first, _) = self.keys[0];
        put_page(span(first, last), self.hashes, &self.keys, &mut self.pages);
        self.firsts.push(first);
        self.keys.clear();
    }
}
