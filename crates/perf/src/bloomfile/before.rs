//! What the published change found: one cache that all threads lock, and iterators that each file has for each processor.
//!
//! A lookup locks the iterator of its processor, looks in the file's index for the block, and gives the iterator back. Then
//! it asks the cache for the block: locks a part of it, finds the block, counts it as used and as held, and lets go of the
//! lock. Blocks are read with the same requests, and hold the same, as those of the others: what differs is the way there.

use std::sync::{Arc, Mutex, PoisonError};

use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use siltstone::Result;
use sstable::parts::bloom_pages::{BloomPages, FilterPage, Probe};

/// Parts of the cache, each with a lock of its own.
const PARTS: usize = 16;
/// Bytes of a block in memory: with what counts its holders, in a line of its own, and its place in the cache.
const BLOCK: usize = size_of::<FilterPage>() + 64 + runtime::Cache::PER_VALUE;

/// What all threads share.
pub(crate) struct Shared {
    cache: [Padded<Mutex<Blocks>>; PARTS],
    /// For each file one for each processor.
    iterators: Vec<Box<[Padded<Mutex<Iterator>>]>>,
}

type Blocks = Cache<(u32, u32), Arc<FilterPage>, Alike>;

/// Blocks weigh the same.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike;

impl Weighter<(u32, u32), Arc<FilterPage>> for Alike {
    fn weight(&self, _: &(u32, u32), _: &Arc<FilterPage>) -> u64 {
        BLOCK as u64
    }
}

/// Has a line of the CPU's cache for itself.
#[repr(align(64))]
struct Padded<T>(T);

/// Where the last lookup of a processor ended: the state of an iterator over an index, which takes more than 100 bytes.
#[derive(Clone, Debug)]
struct Iterator {
    block: u32,
    _rest: [u64; 12],
}

impl Shared {
    /// For so many files, processors, and bytes of blocks.
    pub(crate) fn new(files: u32, processors: usize, capacity: usize) -> Shared {
        let part = || Cache::with_weighter(capacity / PARTS / BLOCK + 1, (capacity / PARTS) as u64, Alike);
        let iterator = || Padded(Mutex::new(Iterator { block: 0, _rest: [0; 12] }));
        Shared {
            cache: std::array::from_fn(|_| Padded(Mutex::new(part()))),
            iterators: (0..files).map(|_| (0..processors.max(1)).map(|_| iterator()).collect()).collect(),
        }
    }

    /// Whether a key may be in a file, as a thread of a processor asks; whether its block had to be read.
    ///
    /// # Errors
    /// What cannot be read.
    #[inline]
    pub(crate) async fn may_contain(
        &self,
        (file, processor): (u32, usize),
        pages: &BloomPages,
        hash: [u64; 2],
    ) -> Result<(bool, bool)> {
        let iterators = &self.iterators[file as usize];
        let iterator = &iterators[processor % iterators.len()].0;
        let block = {
            let mut iterator = iterator.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(block) = pages.page_number(hash) else { return Ok((false, false)) };
            iterator.block = block;
            block
        };
        let part = &self.cache[(block as usize ^ file as usize) % PARTS].0;
        let found = part.lock().unwrap_or_else(PoisonError::into_inner).get(&(file, block)).cloned();
        if let Some(page) = found {
            return Ok((page.probe(hash) == Probe::Maybe, false));
        }
        let page = Arc::new(pages.read_page(block).await?);
        let may = page.probe(hash) == Probe::Maybe;
        part.lock().unwrap_or_else(PoisonError::into_inner).insert((file, block), page);
        Ok((may, true))
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("files", &self.iterators.len()).finish_non_exhaustive()
    }
}
