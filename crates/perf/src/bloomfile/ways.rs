//! The ways in which a filter is asked, side by side.

use std::cell::Cell;
use std::sync::Arc;

use clap::ValueEnum;
use siltstone::Result;
use sstable::parts::bloom_pages::{BloomPages, FilterPages, Probe};
use sstable::parts::filter::Filter;

use super::before::Shared;

/// How filters are asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Way {
    /// By a cache that all threads lock, with iterators for each processor.
    Before,
    /// By the cache of each shard, which has no locks.
    PerShard,
    /// By the pages at hand of each shard, and its cache behind them; keys that are sorted all at once.
    AtHand,
    /// By Filter.db, which is in memory as a whole.
    Whole,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Before => "before",
            Way::PerShard => "per-shard",
            Way::AtHand => "at-hand",
            Way::Whole => "whole",
        }
    }
}

/// What a way needs that all threads share.
#[derive(Clone, Debug)]
pub(crate) enum Common {
    Nothing,
    Before(Arc<Shared>),
    Whole(Arc<[Filter]>),
}

/// One thread's side of a way.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) way: Way,
    pub(crate) common: Common,
    /// Where the thread runs: each has one to itself, as far as there are enough.
    pub(crate) processor: usize,
    /// The open files; none where filters are asked as a whole.
    pub(crate) files: Vec<BloomPages>,
    pub(crate) pages: FilterPages,
    /// Lookups in the cache that all share, and those for which a block had to be read.
    pub(crate) of_shared: Cell<(u64, u64)>,
}

impl Asker {
    /// Whether a key may be in a file.
    ///
    /// # Errors
    /// What cannot be read.
    #[inline]
    pub(crate) async fn may_contain(&self, file: u32, hash: [u64; 2]) -> Result<bool> {
        match &self.common {
            Common::Before(shared) => {
                let (may, was_read) =
                    shared.may_contain((file, self.processor), &self.files[file as usize], hash).await?;
                let (lookups, read) = self.of_shared.get();
                self.of_shared.set((lookups + 1, read + u64::from(was_read)));
                Ok(may)
            }
            Common::Nothing => match self.files[file as usize].probe(hash) {
                Probe::Unread => Ok(self.files[file as usize].may_contain(hash).await?),
                probe => Ok(probe == Probe::Maybe),
            },
            Common::Whole(filters) => Ok(filters[file as usize].may_contain(hash)),
        }
    }

    /// How many of these keys, sorted by their tokens, may be in a file.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) async fn sift(&self, file: u32, hashes: &[[u64; 2]], found: &mut Vec<usize>) -> Result<u64> {
        if self.way == Way::AtHand {
            found.clear();
            self.files[file as usize].sift(hashes, found).await?;
            return Ok(found.len() as u64);
        }
        let mut passed = 0;
        for &hash in hashes {
            passed += u64::from(self.may_contain(file, hash).await?);
        }
        Ok(passed)
    }

    /// Lookups in a cache, and those of them for which something had to be read, so far.
    pub(crate) fn of_cache(&self) -> (u64, u64) {
        let (shared, own) = (self.of_shared.get(), self.pages.lookups());
        (shared.0 + own.of_cache(), shared.1 + own.read)
    }
}
