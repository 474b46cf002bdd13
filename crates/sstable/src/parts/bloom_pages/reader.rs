//! Lookups in BloomPages.db: at once where the page is in memory.
//!
//! ```text
//! token → at hand? → the page that was asked last? → first tokens → the cache → one request for the page
//! ```

use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::rc::{Rc, Weak};

use model::Token;
use model::key::token_of_hash;
use runtime::{CacheKey, File};

use super::directory::{Directory, Trailer};
use super::hand::FilterPages;
use super::page::{FilterPage, Origin, Page, span};
use super::span::Span;
use crate::parts::binding::Binding;
use crate::parts::sealed_page::PAGE;
use crate::{Error, Result, Version};

/// So many bytes at the end of a file are read when its SSTable is opened: the tokens of 8,000 pages, or all of a small file.
const TAIL: u64 = 64 << 10;
/// Of one that takes more than this share of the cache the pages are not kept then, however small it is.
const SMALL_SHARE: u64 = 64;

/// What a filter says of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// It is surely not there.
    Absent,
    /// It may be there.
    Maybe,
    /// What tells is not in memory.
    Unread,
}

/// An open BloomPages.db.
pub struct BloomPages(pub(super) Rc<Inner>);

/// What is in memory of it. One word of it, `latest`, is there for lookups; it lets go of a page that goes, so that of
/// those nothing stays.
pub(super) struct Inner {
    pub(super) file: File,
    pub(super) hand: FilterPages,
    pub(super) directory: Directory,
    /// The tokens, in as many parts as there are pages: about where a page is.
    pub(super) span: Span,
    latest: Cell<Weak<Page>>,
}

pub(super) type Loaded = Result<Rc<[Rc<Page>]>>;

impl BloomPages {
    /// Opens the pages in `file`, if they are of the SSTable of this version and binding; otherwise says why not. Those
    /// that are few beside the cache are read now, with the same request.
    ///
    /// # Errors
    /// Why they are not used, in words: they cannot be read, are damaged, or are of another SSTable.
    pub async fn open(
        file: File,
        hand: FilterPages,
        version: Version,
        binding: Binding,
    ) -> std::result::Result<BloomPages, String> {
        let len = file.len();
        if len < PAGE as u64 || !len.is_multiple_of(PAGE as u64) {
            return Err("it is cut off".to_owned());
        }
        let is_small = len <= TAIL.min(hand.cache().capacity() as u64 / SMALL_SHARE);
        let start = len.saturating_sub(TAIL);
        let read = async |start: u64| {
            let bytes = file.read_exact_at(start, (len - start) as usize).await;
            bytes.map_err(|error| error.to_string())
        };
        let mut tail = read(start).await?;
        let trailer = Trailer::decode(&tail[tail.len() - PAGE..], len, &binding, version)?;
        let of_directory = trailer.len() as usize * PAGE;
        if of_directory > tail.len() {
            tail = read(len - of_directory as u64).await?;
        }
        let (pages, directory) = tail.split_at(tail.len() - of_directory);
        let directory = Directory::decode(trailer, directory)?;
        let count = u32::try_from(directory.firsts.len()).map_err(|_| "it has too many pages".to_owned())?;
        let span = Span::new(directory.firsts[0], directory.last, count);
        let latest = Cell::default();
        let opened = BloomPages(Rc::new(Inner { file: file.clone(), hand, directory, span, latest }));
        if is_small {
            opened.take_in(0, pages).map_err(|error| error.to_string())?;
        }
        Ok(opened)
    }

    /// What lookups keep in memory of an open file, beside its first tokens: which page was asked last. Bytes.
    pub const STATE: usize = size_of::<Cell<Weak<Page>>>();

    /// The tokens of the first key and the last one.
    pub(crate) fn ends(&self) -> [Token; 2] {
        [self.0.span.first(), self.0.span.last()]
    }

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.0.file.len()
    }

    /// The file, for errors.
    pub fn path(&self) -> &Path {
        self.0.file.path()
    }

    /// What stays in memory as long as this is open, in bytes: the file, and the first tokens.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Inner>() + self.0.file.memory_bytes() + size_of_val(&*self.0.directory.firsts)
    }

    /// What the filter says of the key with this hash, as far as that is in memory.
    #[inline]
    pub fn probe(&self, hash: [u64; 2]) -> Probe {
        let token = token_of_hash(hash);
        let ask = |page: &Rc<Page>| page.probe(hash);
        if let Some(probe) = self.0.hand.ask(self.0.file.id(), token, ask) {
            return probe;
        }
        if self.0.span.part(token).is_none() {
            return Probe::Absent;
        }
        match self.in_memory(token) {
            Some(page) => ask(&page),
            None => Probe::Unread,
        }
    }

    /// Whether the key with this hash may be there. Reads the page that tells, if it is not in memory.
    ///
    /// # Errors
    /// What cannot be read, or is not as it was written.
    pub async fn may_contain(&self, hash: [u64; 2]) -> Result<bool> {
        match self.probe(hash) {
            Probe::Absent => Ok(false),
            Probe::Maybe => Ok(true),
            Probe::Unread => {
                let token = token_of_hash(hash);
                let number = self.page_of(token);
                let pages = self.read(number..number + 1).await?;
                self.put_at_hand(&pages[0]);
                Ok(pages[0].probe(hash) == Probe::Maybe)
            }
        }
    }

    /// The page of a token that is in the span, if it is in memory but not at hand.
    fn in_memory(&self, token: Token) -> Option<Rc<Page>> {
        let inner = &*self.0;
        if let Some(page) =
            inner.latest().filter(|page| inner.hand.keeps_at_hand() && page.line(token).is_some())
        {
            // It is as near as one at hand: among many SSTables those would only take each other's places.
            inner.hand.count(|lookups| lookups.latest += 1);
            return Some(page);
        }
        let key = CacheKey { owner: inner.file.id(), index: u64::from(self.page_of(token)) };
        let page = inner.hand.cache().get::<Page>(key)?;
        inner.hand.count(|lookups| lookups.cached += 1);
        self.put_at_hand(&page);
        Some(page)
    }

    fn put_at_hand(&self, page: &Rc<Page>) {
        if self.0.hand.keeps_at_hand() {
            self.0.latest.set(Rc::downgrade(page));
            self.0.hand.keep(page);
        }
    }

    /// The number of the page that tells of the key with this hash; `None` if none does, as it is absent.
    pub fn page_number(&self, hash: [u64; 2]) -> Option<u32> {
        let token = token_of_hash(hash);
        self.0.span.part(token).map(|_| self.page_of(token))
    }

    /// Reads a page past everything that is in memory.
    ///
    /// # Errors
    /// What cannot be read, or is not as it was written.
    pub async fn read_page(&self, number: u32) -> Result<FilterPage> {
        let start = u64::from(number) * PAGE as u64;
        let bytes = self.0.file.read_exact_at(start, PAGE).await?;
        self.decode(number, &bytes, ())
    }

    /// The page of a token that is in the span: not far from where it would be if all pages had as many tokens.
    pub(super) fn page_of(&self, token: Token) -> u32 {
        let firsts = &self.0.directory.firsts;
        let guess = self.0.span.part(token).expect("the token is in the span");
        let (mut low, mut high, mut step) = (guess, guess + 1, 1);
        while low > 0 && firsts[low] > token {
            high = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        while high < firsts.len() && firsts[high] <= token {
            low = high;
            high = (high + step).min(firsts.len());
            step *= 2;
        }
        (low + firsts[low..high].partition_point(|&first| first <= token) - 1) as u32
    }

    /// Reads pages that lie side by side.
    pub(super) async fn read(&self, numbers: Range<u32>) -> Loaded {
        let read = async || {
            let start = u64::from(numbers.start) * PAGE as u64;
            let bytes = self.0.file.read_exact_at(start, numbers.len() * PAGE).await?;
            let pages = self.take_in(numbers.start, &bytes)?;
            bytes.let_go();
            Ok(pages)
        };
        let count = numbers.len() as u64;
        let loaded = self.0.hand.flights().run((self.0.file.id(), numbers.clone()), read).await;
        self.0.hand.count(|lookups| lookups.read += count);
        loaded
    }

    /// Puts pages into the cache, of which `first` is the number of the first.
    fn take_in(&self, first: u32, bytes: &[u8]) -> Loaded {
        let owner = self.0.file.id();
        let mut pages = Vec::with_capacity(bytes.len() / PAGE);
        for (number, bytes) in (first..).zip(bytes.chunks(PAGE)) {
            let page = Rc::new(self.decode(number, bytes, Origin::new(owner, Rc::downgrade(&self.0)))?);
            let key = CacheKey { owner, index: u64::from(number) };
            self.0.hand.cache().insert(key, page.clone(), Page::WEIGHT);
            pages.push(page);
        }
        Ok(pages.into())
    }

    /// The page with this number, from its bytes.
    fn decode<N>(&self, number: u32, bytes: &[u8], note: N) -> Result<FilterPage<N>> {
        let page = FilterPage::decode(bytes, self.span_of(number), self.0.directory.hashes, note);
        page.ok_or_else(|| {
            let start = u64::from(number) * PAGE as u64;
            Error::corrupt(self.path(), start, "a page is not as it was written")
        })
    }

    /// The tokens of a page, in as many parts as it has lines.
    pub(super) fn span_of(&self, number: u32) -> Span {
        let Directory { firsts, last, .. } = &self.0.directory;
        let number = number as usize;
        let last = firsts.get(number + 1).map_or(*last, |next| next - 1);
        span(firsts[number], last)
    }
}

impl Inner {
    /// The page that was asked last, if it is in memory.
    fn latest(&self) -> Option<Rc<Page>> {
        let latest = self.latest.take();
        let page = latest.upgrade();
        self.latest.set(latest);
        page
    }

    /// A page of this file is being dropped: nothing is kept of it.
    pub(super) fn page_goes(&self) {
        let latest = self.latest.take();
        if latest.strong_count() > 0 {
            self.latest.set(latest);
        }
    }
}

#[cfg(test)]
impl BloomPages {
    /// Whether something is kept of the page that was asked last, be it gone or not.
    pub(super) fn knows_a_page(&self) -> bool {
        let latest = self.0.latest.take();
        let knows = !latest.ptr_eq(&Weak::new());
        self.0.latest.set(latest);
        knows
    }

    /// Where in memory the line of a token is, if it has one in memory.
    pub(super) fn line_of(&self, token: Token) -> Option<Range<usize>> {
        self.0.span.part(token)?;
        let page = self.in_memory(token)?;
        let line = std::ptr::from_ref(page.line(token)?).addr();
        Some(line..line + size_of_val(page.line(token)?))
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.hand.forget(self.file.id());
    }
}

impl fmt::Debug for BloomPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pages = self.0.directory.firsts.len();
        f.debug_struct("BloomPages")
            .field("path", &self.path())
            .field("pages", &pages)
            .finish_non_exhaustive()
    }
}
