//! Many keys at once, in the order of their tokens: each page is looked for once, and those that have to be read are read
//! together.
//!
//! ```text
//! keys → first tokens → 16 pages in the cache → 16 lines on their way → looked at
//!                              └─ not there ──► one request for pages side by side
//! ```
//!
//! What is waited for is memory: tables of the cache, then lines. Neither needs the other's result but for the same key, so
//! that the CPU has many of them under way where they are asked for one right behind the other.

use std::ops::Range;

use model::key::token_of_hash;
use runtime::{CacheKey, prefetch};
use smallvec::SmallVec;

use super::line::Line;
use super::page::Page;
use super::reader::BloomPages;
use super::span::Span;
use crate::{Error, Result};

/// As many pages are looked for before the first of them is looked at, and as many lines.
const AHEAD: usize = 16;
/// The most pages of one request.
const RUN: usize = 64;
/// So many requests are under way at once.
const AT_ONCE: usize = 16;

/// A page with those keys, by their numbers, that are of its tokens.
#[derive(Clone, Debug)]
struct Asked {
    page: u32,
    keys: Range<usize>,
}

/// Lines that are on their way to the CPU, each with the number of its key.
struct Lines<'a> {
    hashes: &'a [[u64; 2]],
    /// Bits of a key.
    bits: u8,
    sent_for: SmallVec<[(&'a Line, usize); AHEAD]>,
}

impl BloomPages {
    /// Adds to `found` which of these keys may be there, by their numbers: hashes in the order of their tokens. Pages at
    /// hand stay as they are, as sorted keys do not come back to a page.
    ///
    /// # Errors
    /// What cannot be read, or is not as it was written.
    pub async fn sift(&self, hashes: &[[u64; 2]], found: &mut Vec<usize>) -> Result<()> {
        let from = found.len();
        let unread = self.sift_cached(hashes, self.by_page(hashes), found);
        if !unread.is_empty() {
            self.sift_unread(hashes, &unread, found).await?;
            found[from..].sort_unstable();
        }
        Ok(())
    }

    /// The pages that tell of these keys; those outside of the tokens are absent.
    fn by_page(&self, hashes: &[[u64; 2]]) -> Vec<Asked> {
        let (span, firsts) = (&self.0.span, &self.0.directory.firsts);
        let token = |key: usize| token_of_hash(hashes[key]);
        let mut asked = Vec::with_capacity(hashes.len().min(firsts.len()));
        let mut at = hashes.partition_point(|&hash| token_of_hash(hash) < span.first());
        while at < hashes.len() && token(at) <= span.last() {
            let page = self.page_of(token(at));
            let last = firsts.get(page as usize + 1).map_or(span.last(), |next| next - 1);
            let behind = (at + 1..hashes.len()).find(|&key| token(key) > last).unwrap_or(hashes.len());
            asked.push(Asked { page, keys: at..behind });
            at = behind;
        }
        asked
    }

    /// Looks at the pages that are in the cache; returns the others.
    fn sift_cached(&self, hashes: &[[u64; 2]], asked: Vec<Asked>, found: &mut Vec<usize>) -> Vec<Asked> {
        let (owner, count) = (self.0.file.id(), asked.len());
        let cache = self.0.hand.cache().look();
        let page = |asked: &Asked| cache.get::<Page>(CacheKey { owner, index: u64::from(asked.page) });
        let mut lines = Lines::new(hashes, self.0.directory.hashes);
        let mut unread = Vec::new();
        for some in asked.chunks(AHEAD) {
            let pages: SmallVec<[_; AHEAD]> = some.iter().map(page).collect();
            for (asked, page) in some.iter().zip(pages) {
                match page {
                    // That the page has these tokens was seen when it was read: asking it would be a line more.
                    Some(page) => lines.send_for(page, self.span_of(asked.page), asked.keys.clone(), found),
                    None => unread.push(asked.clone()),
                }
            }
        }
        lines.settle(found);
        self.0.hand.count(|lookups| lookups.cached += (count - unread.len()) as u64);
        unread
    }

    /// Reads pages and looks at them.
    async fn sift_unread(&self, hashes: &[[u64; 2]], unread: &[Asked], found: &mut Vec<usize>) -> Result<()> {
        let runs = unread.chunk_by(|a, b| a.page + 1 == b.page).flat_map(|run| run.chunks(RUN));
        let read = runs.map(async |run: &[Asked]| {
            let pages = self.read(run[0].page..run[0].page + run.len() as u32).await?;
            let mut passed = Vec::new();
            let mut lines = Lines::new(hashes, self.0.directory.hashes);
            for (page, asked) in pages.iter().zip(run) {
                lines.send_for(page, self.span_of(asked.page), asked.keys.clone(), &mut passed);
            }
            lines.settle(&mut passed);
            Ok::<_, Error>(passed)
        });
        let mut read = read.peekable();
        while read.peek().is_some() {
            for passed in runtime::join_all(read.by_ref().take(AT_ONCE)).await {
                found.extend(passed?);
            }
        }
        Ok(())
    }
}

impl<'a> Lines<'a> {
    fn new(hashes: &'a [[u64; 2]], bits: u8) -> Lines<'a> {
        Lines { hashes, bits, sent_for: SmallVec::new() }
    }

    /// Sends for the lines of keys, all of one page of this span, and looks at those before them that are here by then.
    fn send_for(&mut self, page: &'a Page, span: Span, keys: Range<usize>, found: &mut Vec<usize>) {
        for key in keys {
            if self.sent_for.len() == AHEAD {
                self.settle(found);
            }
            let part = span.part(token_of_hash(self.hashes[key])).expect("the key is of the page");
            let line = page.line_at(part);
            prefetch(line);
            self.sent_for.push((line, key));
        }
    }

    /// Looks at the lines that were sent for.
    fn settle(&mut self, found: &mut Vec<usize>) {
        for (line, key) in self.sent_for.drain(..) {
            if line.has(self.hashes[key][1], self.bits) {
                found.push(key);
            }
        }
    }
}
