//! The pages of a file's partition index, each read and parsed once while it stays in the cache.
//!
//! A page holds the entries of Index.db between two fences, or two entries of the summary. A reader that goes from partition to partition
//! comes to one page after the other. So if a page begins close behind the one that was read last, the bytes behind it are read with it,
//! twice as many each time.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use model::PartitionKey;
use runtime::{Cache, CacheKey, SingleFlight};

use super::cached_file::{CachedFile, PAGE};
use super::index_page::{IndexPage, IndexPageBuilder};
use crate::big::entry::{EntryScanner, IndexSource};
use crate::index::token_for;
use crate::parts::statistics::Partitioner;
use crate::{Error, Result};

/// Up to this many bytes of Index.db are read with the first request of a page. Where there are more,
/// a promoted index is likely among them, and a page of the file is enough to begin with.
const SMALL: u64 = 4 * PAGE;

/// So much is read ahead at the most, if the cache has room for as much many times over. Bytes.
const MOST_AHEAD: u64 = 8 * PAGE;

/// How far reads of pages that follow each other have come.
#[derive(Clone, Copy, Debug, Default)]
struct Sequence {
    /// Where the last page ended, and up to where Index.db was read then.
    end: u64,
    read_to: u64,
    /// How much the last request brought.
    step: u64,
}

/// Parsed index pages of one Index.db.
pub struct PartitionIndexCache {
    file: CachedFile,
    cache: Cache,
    owner: u64,
    partitioner: Partitioner,
    flights: SingleFlight<(u64, usize), Result<Rc<IndexPage>>>,
    sequence: Cell<Sequence>,
}

impl std::fmt::Debug for PartitionIndexCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionIndexCache").field("file", &self.file).finish_non_exhaustive()
    }
}

impl PartitionIndexCache {
    /// No pages yet. `owner` is a number that nothing else in the cache has.
    pub fn new(file: CachedFile, cache: Cache, owner: u64, partitioner: Partitioner) -> PartitionIndexCache {
        let (flights, sequence) = (SingleFlight::new(), Cell::default());
        PartitionIndexCache { file, cache, owner, partitioner, flights, sequence }
    }

    /// The file the pages are of.
    pub fn file(&self) -> &CachedFile {
        &self.file
    }

    /// The page of the entries in `range` of Index.db, which begins and ends between two. It may end early,
    /// but not before it is decided whether the key is there.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn page(&self, range: Range<u64>, key: &PartitionKey) -> Result<Rc<IndexPage>> {
        let mut page: Option<Rc<IndexPage>> = self.cache.get(self.place(&range));
        loop {
            let known = match page {
                Some(page) if page.decides(key) => return Ok(page),
                other => other,
            };
            let flight = (range.start, known.as_ref().map_or(0, |page| page.len()));
            let load = || self.load(range.clone(), known.as_deref(), key);
            // Whoever waited for a load by another key looks again.
            page = Some(self.flights.run(flight, load).await?);
        }
    }

    fn place(&self, range: &Range<u64>) -> CacheKey {
        CacheKey { owner: self.owner, index: range.start }
    }

    /// Reads the entries that a known page leaves out, up to the key's and as far as they come for free.
    async fn load(
        &self,
        range: Range<u64>,
        known: Option<&IndexPage>,
        key: &PartitionKey,
    ) -> Result<Rc<IndexPage>> {
        let token_of = |key: &[u8]| token_for(self.partitioner, key);
        let start = known.and_then(IndexPage::rest).unwrap_or(range.start);
        let len = range.end - start;
        let first = if len <= SMALL { len } else { PAGE - start % PAGE };
        if known.is_none() && first == len {
            self.read_ahead(&range).await;
        }
        let source = IndexSource::Cached(self.file.clone());
        let mut scanner = EntryScanner::new(source, start..range.end, first);
        let mut builder = match known {
            Some(page) => IndexPageBuilder::resume(page, token_of),
            None => IndexPageBuilder::new(token_of),
        };
        builder.reserve(len.min(SMALL) as usize);
        while scanner.fill().await? {
            let mut may_end = false;
            while let Some(entry) = scanner.pop()? {
                builder.push(&entry).map_err(|what| Error::corrupt(self.file.path(), entry.at, what))?;
                may_end =
                    entry.promoted_len > 0 && (entry.key == &*key.bytes || token_of(entry.key) > key.token);
            }
            if may_end && scanner.position() < range.end {
                builder.end_early(scanner.position());
                break;
            }
        }
        // Not before it is there: reads side by side are no sequence.
        self.sequence.update(|sequence| Sequence { end: range.end, ..sequence });
        let page = Rc::new(builder.build());
        self.cache.insert(self.place(&range), Rc::clone(&page), page.memory());
        Ok(page)
    }

    /// Brings what stands behind a page with it if it is close behind the last one. What is wrong there is told to who wants it.
    async fn read_ahead(&self, page: &Range<u64>) {
        let Sequence { end, read_to, step } = self.sequence.get();
        let len = page.end - page.start;
        let is_next = (end..=end + PAGE).contains(&page.start);
        if !is_next || (self.cache.capacity() as u64) < 64 * MOST_AHEAD {
            self.sequence.set(Sequence { end, read_to: page.end, step: len });
            return;
        }
        if page.end <= read_to {
            return;
        }
        let step = (2 * step).clamp(len.max(PAGE), MOST_AHEAD.max(len));
        let to = (page.start + step).next_multiple_of(PAGE).min(self.file.len());
        self.sequence.set(Sequence { end, read_to: to, step });
        let _ = self.file.prefetch(page.start..to).await;
    }
}
