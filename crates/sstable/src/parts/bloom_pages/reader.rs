//! Lookups in BloomPages.db: at once where the page is in memory, many at a time where it is not.
//!
//! ```text
//! token → at hand? → the page that was asked last? → first tokens → the cache → one request for pages side by side
//! ```

use std::cell::Cell;
use std::fmt;
use std::hint::black_box;
use std::ops::Range;
use std::path::Path;
use std::rc::{Rc, Weak};

use model::Token;
use model::key::token_of_hash;
use runtime::{CacheKey, File};

use super::directory::{Directory, Trailer};
use super::hand::FilterPages;
use super::page::{FilterPage, Page, span};
use super::span::Span;
use crate::parts::binding::Binding;
use crate::parts::sealed_page::PAGE;
use crate::{Error, Result, Version};

/// A file that takes no more than this share of the cache is read whole when its SSTable is opened.
const SMALL_SHARE: u64 = 64;
/// What is read first of other files: the tokens of 8,000 pages. Bytes.
const TAIL: u64 = 64 << 10;
/// The most pages of one request.
const RUN: u32 = 64;
/// As many lines are brought near the CPU before the first of them is looked at.
const AHEAD: usize = 16;

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
pub struct BloomPages(Rc<Inner>);

/// What is in memory of it. One word of it, `latest`, is there for lookups; it lets go of a page that goes, so that of
/// those nothing stays.
pub(super) struct Inner {
    file: File,
    hand: FilterPages,
    directory: Directory,
    /// The tokens, in as many parts as there are pages: about where a page is.
    span: Span,
    latest: Cell<Weak<Page>>,
}

pub(super) type Loaded = Result<Rc<[Rc<Page>]>>;

/// Lines that are on their way to the CPU.
type Window = Vec<(Rc<Page>, usize)>;

impl BloomPages {
    /// Opens the pages in `file`, if they are of the SSTable of this version and binding; otherwise says why not. Those
    /// that are few beside the cache are read now, with the same request.
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
        let is_small = len <= hand.cache().capacity() as u64 / SMALL_SHARE;
        let start = if is_small { 0 } else { len.saturating_sub(TAIL) };
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

    /// Bytes of the file.
    pub fn file_len(&self) -> u64 {
        self.0.file.len()
    }

    /// The file, for errors.
    pub fn path(&self) -> &Path {
        self.0.file.path()
    }

    /// What stays in memory as long as this is open, in bytes: the first tokens.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Inner>() + size_of_val(&*self.0.directory.firsts)
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

    /// Adds to `found` which of these keys may be there, by their numbers: hashes in the order of their tokens. A page is
    /// looked for once, and pages that are not in memory are read together.
    ///
    /// # Errors
    /// What cannot be read, or is not as it was written.
    pub async fn sift(&self, hashes: &[[u64; 2]], found: &mut Vec<usize>) -> Result<()> {
        let from = found.len();
        let mut missing: Vec<(u32, Range<usize>)> = Vec::new();
        let mut window = Window::with_capacity(AHEAD);
        let mut at = hashes.partition_point(|&hash| token_of_hash(hash) < self.0.span.first());
        while at < hashes.len() && token_of_hash(hashes[at]) <= self.0.span.last() {
            let token = token_of_hash(hashes[at]);
            let number = self.page_of(token);
            let behind = self.0.directory.firsts.get(number as usize + 1);
            let is_on_page = |hash: &&[u64; 2]| behind.is_none_or(|&behind| token_of_hash(**hash) < behind);
            let end = at + hashes[at..].iter().take_while(is_on_page).count();
            match self.at_hand_or_in_memory(token) {
                Some(page) => look(&page, hashes, at..end, &mut window, found),
                None => missing.push((number, at..end)),
            }
            at = end;
        }
        settle(hashes, &mut window, found);
        if !missing.is_empty() {
            self.sift_unread(hashes, &missing, found).await?;
            found[from..].sort_unstable();
        }
        Ok(())
    }

    /// The same of keys whose pages have to be read, as ranges of their numbers.
    async fn sift_unread(
        &self,
        hashes: &[[u64; 2]],
        missing: &[(u32, Range<usize>)],
        found: &mut Vec<usize>,
    ) -> Result<()> {
        let follow = |a: &(u32, Range<usize>), b: &(u32, Range<usize>)| a.0 + 1 == b.0;
        let runs = missing.chunk_by(follow).flat_map(|run| run.chunks(RUN as usize));
        let read = runs.map(async |run: &[(u32, Range<usize>)]| {
            let pages = self.read(run[0].0..run[0].0 + run.len() as u32).await?;
            let mut passed = Vec::new();
            let mut window = Window::with_capacity(AHEAD);
            for (page, (_, keys)) in pages.iter().zip(run) {
                look(page, hashes, keys.clone(), &mut window, &mut passed);
            }
            settle(hashes, &mut window, &mut passed);
            Ok::<_, Error>(passed)
        });
        for passed in runtime::join_all(read).await {
            found.extend(passed?);
        }
        Ok(())
    }

    fn at_hand_or_in_memory(&self, token: Token) -> Option<Rc<Page>> {
        self.0.hand.ask(self.0.file.id(), token, Rc::clone).or_else(|| self.in_memory(token))
    }

    /// The page of a token that is in the span, if it is in memory but not at hand.
    fn in_memory(&self, token: Token) -> Option<Rc<Page>> {
        let inner = &*self.0;
        if let Some(page) =
            inner.latest().filter(|page| inner.hand.keeps_at_hand() && page.line(token).is_some())
        {
            inner.hand.count(|lookups| lookups.latest += 1);
            inner.hand.keep(&page);
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
        self.decode(number, &bytes)
    }

    /// The page of a token that is in the span: not far from where it would be if all pages had as many tokens.
    fn page_of(&self, token: Token) -> u32 {
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
    async fn read(&self, numbers: Range<u32>) -> Loaded {
        let read = async {
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
            let page = Rc::new(Page::new(self.decode(number, bytes)?, owner, Rc::downgrade(&self.0)));
            let key = CacheKey { owner, index: u64::from(number) };
            self.0.hand.cache().insert(key, page.clone(), Page::WEIGHT);
            pages.push(page);
        }
        Ok(pages.into())
    }

    /// The page with this number, from its bytes.
    fn decode(&self, number: u32, bytes: &[u8]) -> Result<FilterPage> {
        let Directory { hashes, firsts, last } = &self.0.directory;
        let number = number as usize;
        let last = firsts.get(number + 1).map_or(*last, |next| next - 1);
        let page = FilterPage::decode(bytes, span(firsts[number], last), *hashes);
        page.ok_or_else(|| {
            Error::corrupt(self.path(), (number * PAGE) as u64, "a page is not as it was written")
        })
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

/// Sends for the lines of these keys, all of one page, and looks at those before them that are here by then.
fn look(
    page: &Rc<Page>,
    hashes: &[[u64; 2]],
    keys: Range<usize>,
    window: &mut Window,
    found: &mut Vec<usize>,
) {
    for key in keys {
        if window.len() == AHEAD {
            settle(hashes, window, found);
        }
        if let Some(line) = page.line(token_of_hash(hashes[key])) {
            black_box(line.touch());
            window.push((page.clone(), key));
        }
    }
}

/// Looks at the lines that were sent for.
fn settle(hashes: &[[u64; 2]], window: &mut Window, found: &mut Vec<usize>) {
    for (page, key) in window.drain(..) {
        if page.probe(hashes[key]) == Probe::Maybe {
            found.push(key);
        }
    }
}
