//! The pages of a file's partition index, each read and parsed once while it stays in the cache.
//!
//! A page holds the entries of Index.db between two entries of the summary.

use std::ops::Range;
use std::rc::Rc;

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

/// Parsed index pages of one Index.db.
pub struct PartitionIndexCache {
    file: CachedFile,
    cache: Cache,
    owner: u64,
    partitioner: Partitioner,
    flights: SingleFlight<u64, Result<Rc<IndexPage>>>,
}

impl std::fmt::Debug for PartitionIndexCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartitionIndexCache").field("file", &self.file).finish_non_exhaustive()
    }
}

impl PartitionIndexCache {
    /// No pages yet. `owner` is a number that nothing else in the cache has.
    pub fn new(file: CachedFile, cache: Cache, owner: u64, partitioner: Partitioner) -> PartitionIndexCache {
        PartitionIndexCache { file, cache, owner, partitioner, flights: SingleFlight::new() }
    }

    /// The file the pages are of.
    pub fn file(&self) -> &CachedFile {
        &self.file
    }

    /// The page of the entries in `range` of Index.db, which begins and ends between two.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn page(&self, range: Range<u64>) -> Result<Rc<IndexPage>> {
        let key = CacheKey { owner: self.owner, index: range.start };
        if let Some(page) = self.cache.get(key) {
            return Ok(page);
        }
        self.flights.run(range.start, self.load(key, range)).await
    }

    async fn load(&self, key: CacheKey, range: Range<u64>) -> Result<Rc<IndexPage>> {
        let len = range.end - range.start;
        let first = if len <= SMALL { len } else { PAGE - range.start % PAGE };
        let mut scanner = EntryScanner::new(IndexSource::Cached(self.file.clone()), range, first);
        let mut builder = IndexPageBuilder::default();
        while let Some(entry) = scanner.next().await? {
            builder
                .push(&entry, token_for(self.partitioner, &entry.key))
                .map_err(|what| Error::corrupt(self.file.path(), entry.at, what))?;
        }
        let page = Rc::new(builder.build());
        self.cache.insert(key, Rc::clone(&page), page.memory());
        Ok(page)
    }
}
