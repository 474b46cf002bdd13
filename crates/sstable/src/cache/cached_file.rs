//! A file read through its pages, which stay in the shard's cache.
//!
//! Adjacent pages that are not cached are read with one request; concurrent misses of a page wait for the same request. A page is one
//! allocation, so that the cost of dropping it does not depend on its content.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use model::Bytes;
use runtime::{Cache, CacheKey, File, SingleFlight};

use crate::{Error, Result};

/// Bytes of a page; the last one of a file may be shorter.
pub const PAGE: u64 = 4096;

/// How reads found their pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PageStats {
    /// Pages that were cached.
    pub hits: u64,
    /// Pages that had to be read or waited for.
    pub misses: u64,
    /// Those of them that another read was bringing already.
    pub waits: u64,
}

impl PageStats {
    /// What was added since `earlier`.
    pub fn since(self, earlier: PageStats) -> PageStats {
        PageStats {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            waits: self.waits - earlier.waits,
        }
    }

    /// Both together.
    pub fn plus(self, other: PageStats) -> PageStats {
        PageStats {
            hits: self.hits + other.hits,
            misses: self.misses + other.misses,
            waits: self.waits + other.waits,
        }
    }
}

/// A file with its pages in a cache. Clones share both.
#[derive(Clone, Debug)]
pub struct CachedFile(Rc<Inner>);

type Page = Rc<Vec<u8>>;
type Loaded = Result<Rc<[Page]>>;

struct Inner {
    file: File,
    cache: Cache,
    is_sound: Option<fn(&[u8]) -> bool>,
    flights: SingleFlight<Range<u64>, Loaded>,
    /// The runs of pages that are being read: first page → end.
    running: RefCell<BTreeMap<u64, u64>>,
    stats: Cell<PageStats>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedFile").field("path", &self.file.path()).finish_non_exhaustive()
    }
}

impl CachedFile {
    /// The pages of `file`, kept in `cache` under the file's id.
    pub fn new(file: File, cache: Cache) -> CachedFile {
        CachedFile::with(file, cache, None)
    }

    /// The same, of which each page is checked when it is read; those in the cache are sound.
    pub fn checked(file: File, cache: Cache, is_sound: fn(&[u8]) -> bool) -> CachedFile {
        CachedFile::with(file, cache, Some(is_sound))
    }

    fn with(file: File, cache: Cache, is_sound: Option<fn(&[u8]) -> bool>) -> CachedFile {
        let (flights, running, stats) = (SingleFlight::new(), RefCell::default(), Cell::default());
        CachedFile(Rc::new(Inner { file, cache, is_sound, flights, running, stats }))
    }

    /// The name of the file, for errors.
    pub fn path(&self) -> &Path {
        self.0.file.path()
    }

    /// What is held in memory beside what the cache has, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Inner>() + self.0.file.memory_bytes()
    }

    /// The length of the file, in bytes.
    pub fn len(&self) -> u64 {
        self.0.file.len()
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pages found and not found so far.
    pub fn stats(&self) -> PageStats {
        self.0.stats.get()
    }

    /// The bytes of a range. Within one page they are that page's own, else a copy.
    ///
    /// # Errors
    /// If the file ends before the range does, or cannot be read.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if range.end > self.len() {
            let what = format!("the file ends before offset {}", range.end);
            return Err(Error::corrupt(self.path(), self.len(), what));
        }
        if range.is_empty() {
            return Ok(Bytes::default());
        }
        let (first, end) = (range.start / PAGE, (range.end - 1) / PAGE + 1);
        let skipped = (range.start - first * PAGE) as usize;
        let len = (range.end - range.start) as usize;
        if end == first + 1 {
            // Most reads are of one page that is there.
            if let Some(page) = self.at_hand(first) {
                return Ok(page.slice(skipped..skipped + len));
            }
            let page = self.pages(first..end).await?.next().expect("one page was asked for");
            return Ok(Bytes::new(&page, skipped..skipped + len));
        }
        let mut joined = Vec::with_capacity(((end - first) * PAGE) as usize);
        self.pages(first..end).await?.for_each(|page| joined.extend_from_slice(&page));
        Ok(Bytes::new(&Rc::new(joined), skipped..skipped + len))
    }

    /// A page that is cached, whole.
    #[inline]
    pub fn at_hand(&self, number: u64) -> Option<Bytes> {
        let page: Page = self.0.cache.find(self.key(number))?;
        self.count(PageStats { hits: 1, ..PageStats::default() });
        Some(Bytes::new(&page, 0..page.len()))
    }

    /// The bytes of a range that somebody else keeps: its pages are taken from the cache if all are there, and are not
    /// put into it. Not for files whose pages are checked.
    ///
    /// # Errors
    /// If the file ends before the range does, or cannot be read.
    pub async fn read_once(&self, range: Range<u64>) -> Result<Bytes> {
        assert!(self.0.is_sound.is_none(), "only whole pages can be checked");
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        if range.end > self.len() || pages.clone().all(|number| self.cached(number).is_some()) {
            return self.read(range).await;
        }
        self.count(PageStats { misses: pages.end - pages.start, ..PageStats::default() });
        let (buffer, bytes) =
            self.0.file.read_exact_at(range.start, (range.end - range.start) as usize).await?.into_parts();
        Ok(Bytes::new(&Rc::new(buffer), bytes))
    }

    /// Brings the pages of a range into the cache.
    ///
    /// # Errors
    /// If the file ends before the range does, or cannot be read.
    pub async fn prefetch(&self, range: Range<u64>) -> Result<()> {
        if range.end > self.len() {
            return self.read(range).await.map(drop);
        }
        self.pages(range.start / PAGE..range.end.div_ceil(PAGE)).await.map(drop)
    }

    async fn pages(&self, numbers: Range<u64>) -> Result<impl Iterator<Item = Page> + use<>> {
        let mut pages = Vec::with_capacity((numbers.end - numbers.start) as usize);
        let mut number = numbers.start;
        while number < numbers.end {
            if let Some(page) = self.cached(number) {
                self.count(PageStats { hits: 1, ..PageStats::default() });
                pages.push(page);
                number += 1;
                continue;
            }
            let run = self.missing(number, numbers.end);
            let is_read_already = self.0.running.borrow().contains_key(&run.start);
            let loaded = self.0.flights.run(run.clone(), || self.load(run.clone())).await?;
            let wanted = &loaded[(number - run.start) as usize..];
            let wanted = &wanted[..wanted.len().min((numbers.end - number) as usize)];
            let misses = wanted.len() as u64;
            self.count(PageStats { hits: 0, misses, waits: if is_read_already { misses } else { 0 } });
            pages.extend_from_slice(wanted);
            number += wanted.len() as u64;
        }
        Ok(pages.into_iter())
    }

    fn cached(&self, number: u64) -> Option<Page> {
        self.0.cache.get(self.key(number))
    }

    fn key(&self, number: u64) -> CacheKey {
        CacheKey { owner: self.0.file.id(), index: number }
    }

    fn count(&self, added: PageStats) {
        self.0.stats.set(self.0.stats.get().plus(added));
    }

    /// The run of pages to read or wait for, because `number` is not cached.
    fn missing(&self, number: u64, end: u64) -> Range<u64> {
        let running = self.0.running.borrow();
        if let Some((&start, &running_end)) = running.range(..=number).next_back()
            && number < running_end
        {
            return start..running_end;
        }
        let next_running = running.range(number..).next().map_or(end, |(&start, _)| start);
        let stop = (number + 1..end.min(next_running)).find(|&next| self.cached(next).is_some());
        number..stop.unwrap_or(end.min(next_running))
    }

    async fn load(&self, run: Range<u64>) -> Loaded {
        let _running = Running::begin(&self.0.running, &run);
        let start = run.start * PAGE;
        let end = (run.end * PAGE).min(self.len());
        let window = self.0.file.read_exact_at(start, (end - start) as usize).await?;
        let pages: Rc<[Page]> = window.chunks(PAGE as usize).map(|page| Rc::new(page.to_vec())).collect();
        for (number, page) in run.zip(pages.iter()) {
            if self.0.is_sound.is_some_and(|is_sound| !is_sound(page)) {
                return Err(Error::corrupt(self.path(), number * PAGE, "the checksum of a page is wrong"));
            }
            let (key, page, weight) = (self.key(number), Rc::clone(page), weight(page));
            match self.0.is_sound {
                // Of Index.db pages come along that nobody asks for.
                None => self.0.cache.insert(key, page, weight),
                Some(_) => self.0.cache.insert_to_stay(key, page, weight),
            }
        }
        window.let_go();
        Ok(pages)
    }
}

/// All of a page's memory: its bytes, its vector and the counts.
fn weight(page: &Page) -> usize {
    page.capacity() + size_of::<Vec<u8>>() + 2 * size_of::<usize>()
}

/// Notes a run of pages as being read until it is dropped, read or not.
struct Running<'a> {
    runs: &'a RefCell<BTreeMap<u64, u64>>,
    first: u64,
}

impl<'a> Running<'a> {
    fn begin(runs: &'a RefCell<BTreeMap<u64, u64>>, run: &Range<u64>) -> Running<'a> {
        runs.borrow_mut().insert(run.start, run.end);
        Running { runs, first: run.start }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.runs.borrow_mut().remove(&self.first);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use runtime::{IoClass, Shard, SimOptions};

    use super::*;

    fn content() -> Vec<u8> {
        (0..5 * PAGE + 100).map(|i| (i % 251) as u8).collect()
    }

    /// Runs over a simulated file whose reads complete in a random order.
    fn with_file<T: Send>(capacity: usize, test: impl AsyncFnOnce(Shard, CachedFile) -> T + Send) -> T {
        let options = SimOptions { seed: 7, max_delay: 5, ..SimOptions::default() };
        runtime::run_simulated(options, async move |shard: Shard| {
            let disk = shard.disk().as_simulated().expect("the disk is simulated");
            disk.add_file(Path::new("/Index.db"), content());
            let file =
                shard.disk().open(Path::new("/Index.db"), IoClass::new(0)).await.expect("the file is there");
            test(shard, CachedFile::new(file, Cache::new(capacity))).await
        })
        .expect("the shard runs")
    }

    #[test]
    fn every_range_reads_as_the_file() {
        with_file(64 << 10, async |_, file| {
            let content = content();
            for start in [0, 1, PAGE - 1, PAGE, 3 * PAGE + 7] {
                for len in [0, 1, 2, PAGE, PAGE + 1, 2 * PAGE + 93] {
                    let bytes = file.read(start..start + len).await.unwrap();
                    assert_eq!(*bytes, content[start as usize..(start + len) as usize]);
                }
            }
            assert!(file.read(0..content.len() as u64 + 1).await.is_err());
        });
    }

    #[test]
    fn pages_side_by_side_are_one_request() {
        with_file(64 << 10, async |shard, file| {
            file.read(2 * PAGE..3 * PAGE).await.unwrap();
            file.read(0..5 * PAGE).await.unwrap();
            assert_eq!(shard.disk().stats().total().requests, 3, "pages 0 and 1, then 3 and 4");
            assert_eq!(file.stats(), PageStats { hits: 1, misses: 5, waits: 0 });
        });
    }

    #[test]
    fn concurrent_misses_of_a_page_are_one_read() {
        with_file(64 << 10, async |shard, file| {
            let ranges = [0..4 * PAGE, PAGE..PAGE + 1, 2 * PAGE..6 * PAGE - PAGE, 3 * PAGE..3 * PAGE + 9];
            let reads = ranges.map(|range| async { file.read(range).await.unwrap() });
            runtime::join_all(reads).await;
            assert_eq!(shard.disk().stats().total().requests, 2, "pages 0 to 3, then 4");
            assert_eq!(file.stats(), PageStats { hits: 0, misses: 9, waits: 4 }, "1; 2 and 3; 3");
        });
    }

    /// Who waited for a run of pages goes on when its reader is dropped, even if a third one reads a part of it.
    #[test]
    fn a_dropped_reader_leaves_the_others_whole() {
        with_file(64 << 10, async |_, file| {
            let (a, b) = (file.clone(), file.clone());
            let leader = runtime::spawn(async move { a.read(0..4 * PAGE).await });
            let waiter = runtime::spawn(async move { b.read(3 * PAGE..3 * PAGE + 9).await });
            runtime::yield_now().await;
            runtime::yield_now().await;
            drop(leader);
            assert_eq!(*file.read(0..9).await.unwrap(), content()[..9]);
            let at = 3 * PAGE as usize;
            assert_eq!(*waiter.await.unwrap(), content()[at..at + 9]);
        });
    }

    #[test]
    fn without_a_budget_nothing_is_kept() {
        with_file(0, async |shard, file| {
            file.read(0..10).await.unwrap();
            file.read(0..10).await.unwrap();
            assert_eq!(shard.disk().stats().total().requests, 2);
        });
    }
}
