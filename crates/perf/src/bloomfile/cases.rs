//! What is measured: keys one by one from many threads, files larger than the cache, sorted keys over many files.

use std::sync::{Arc, Barrier};

use clap::ValueEnum;
use model::key::{murmur3, token_of_hash};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::Result;
use sstable::parts::bloom_pages::FilterPages;

use super::before::Shared;
use super::files::{Files, mixed};
use super::ways::{Asker, Common, Way};
use crate::clocks::{Clocks, Passed};

/// Threads that wait for nothing let others go on after so many lookups.
const TURN: u64 = 1 << 16;

/// Threads of which each has a part of the ring wait for each other after so many lookups: one whose part is in a cache
/// that all share would else run far ahead and keep it there.
const TOGETHER: u64 = 256;

/// A benchmark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Case {
    /// Absent keys one by one: one file, all of it in memory.
    Absent,
    /// The same of a file larger than the cache.
    Churning,
    /// Sorted keys, looked for in each of many files.
    Batches,
    /// The same with files far larger than the CPU's caches, beside Filter.db.
    Large,
    /// New rows, sorted, into a store of many SSTables that overlap.
    Inserts,
}

/// What a case is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) files: Files,
    pub(crate) threads: u32,
    /// Lookups of a thread.
    pub(crate) lookups: u64,
    /// So many sorted keys at a time; none if they come one by one.
    pub(crate) batch: Option<u64>,
    /// Whether each thread has a part of the ring, as shards do.
    pub(crate) has_parts: bool,
    /// Bytes of cache for all threads together.
    pub(crate) cache: usize,
    pub(crate) machine: ShardOptions,
}

/// What all threads together took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// Lookups: a key in a file.
    pub(crate) lookups: u64,
    /// Those that did not find the key absent.
    pub(crate) passed: u64,
    /// The time of the thread that took longest, and that of all on processors.
    pub(crate) time: Passed,
    /// Lookups in a cache of pages.
    pub(crate) of_cache: u64,
    /// Pages that were read.
    pub(crate) read: u64,
}

impl Taken {
    fn add(&mut self, other: &Taken) {
        self.lookups += other.lookups;
        self.passed += other.passed;
        self.time.wall = self.time.wall.max(other.time.wall);
        self.time.cpu += other.time.cpu;
        self.of_cache += other.of_cache;
        self.read += other.read;
    }
}

impl Plan {
    /// Does it in this way.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub(crate) fn run(&self, way: Way) -> Result<Taken> {
        runtime::run(self.machine.clone(), async |shard: Shard| self.files.make(shard.disk()).await)??;
        let common = match way {
            Way::Before => Common::Before(Arc::new(Shared::new(self.files.count, processors(), self.cache))),
            Way::Whole => Common::Whole(self.files.whole()?.into()),
            Way::PerShard | Way::AtHand => Common::Nothing,
        };
        let ready = Barrier::new(self.threads as usize);
        let thread = |number| {
            let (common, ready) = (common.clone(), &ready);
            move || {
                let work = async |shard: Shard| self.thread(&shard, number, (way, common), ready).await;
                runtime::run(self.machine.clone(), work)?
            }
        };
        let mut all = Taken::default();
        let done: Vec<Result<Taken>> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..self.threads).map(|number| scope.spawn(thread(number))).collect();
            started
                .into_iter()
                .map(|thread| thread.join().expect("a thread of the benchmark panicked"))
                .collect()
        });
        for taken in done {
            all.add(&taken?);
        }
        Ok(all)
    }

    async fn thread(
        &self,
        shard: &Shard,
        number: u32,
        (way, common): (Way, Common),
        ready: &Barrier,
    ) -> Result<Taken> {
        let opened = self.open(shard, number as usize, (way, common)).await;
        let keys = Keys { thread: number, threads: self.has_parts.then_some(self.threads) };
        let opened = match opened {
            Ok(asker) => self.warm(&asker, &keys).await.map(|()| asker),
            failed => failed,
        };
        ready.wait();
        let asker = match opened {
            Ok(asker) => asker,
            Err(error) => {
                // Whoever cannot go on must not let the others wait.
                let waits = if self.has_parts { self.lookups.div_ceil(TOGETHER) } else { 0 };
                for _ in 0..waits {
                    ready.wait();
                }
                return Err(error);
            }
        };
        let before = asker.of_cache();
        let mut taken = match self.batch {
            None => self.one_by_one(&asker, &keys, ready).await?,
            Some(batch) => self.sorted(&asker, &keys, batch).await?,
        };
        let now = asker.of_cache();
        (taken.of_cache, taken.read) = (now.0 - before.0, now.1 - before.1);
        Ok(taken)
    }

    async fn open(&self, shard: &Shard, processor: usize, (way, common): (Way, Common)) -> Result<Asker> {
        let cache = Cache::new(self.cache / self.threads as usize);
        let pages =
            if way == Way::AtHand { FilterPages::new(&cache) } else { FilterPages::without_hand(&cache) };
        let files = match way {
            Way::Whole => Vec::new(),
            // The tokens are all that is needed of the open files.
            Way::Before => self.files.open(shard.disk(), &FilterPages::without_hand(&Cache::new(0))).await?,
            Way::PerShard | Way::AtHand => self.files.open(shard.disk(), &pages).await?,
        };
        Ok(Asker { way, common, processor, files, pages, of_shared: Default::default() })
    }

    /// Brings the cache to where it would be after a while: twice as many lookups as it has room for pages, or as there are.
    async fn warm(&self, asker: &Asker, keys: &Keys) -> Result<()> {
        let mut found = Vec::new();
        match self.batch {
            None => {
                let pages = (self.cache as u64 / 4096).min(self.files.keys / 1024 + 8);
                for number in 0..2 * pages / u64::from(self.threads) + 1 {
                    asker.may_contain(0, keys.hash(u64::MAX - number)).await?;
                }
            }
            Some(batch) => {
                let hashes = keys.sorted(u64::MAX - batch, batch);
                for file in 0..self.files.count {
                    asker.sift(file, &hashes, &mut found).await?;
                }
            }
        }
        Ok(())
    }

    async fn one_by_one(&self, asker: &Asker, keys: &Keys, together: &Barrier) -> Result<Taken> {
        let clocks = Clocks::now();
        let (mut passed, mut failed) = (0, None);
        for number in 0..self.lookups {
            match asker.may_contain(0, keys.hash(number)).await {
                Ok(may) => passed += u64::from(may),
                // The others wait for this thread all the same.
                Err(error) => failed = failed.or(Some(error)),
            }
            if self.has_parts && number % TOGETHER == 0 {
                together.wait();
            } else if number % TURN == 0 {
                runtime::yield_now().await;
            }
        }
        let time = clocks.passed();
        match failed {
            Some(error) => Err(error),
            None => Ok(Taken { lookups: self.lookups, passed, time, ..Taken::default() }),
        }
    }

    /// The time is that of lookups: sorting is left out.
    async fn sorted(&self, asker: &Asker, keys: &Keys, batch: u64) -> Result<Taken> {
        let (mut taken, mut found, mut from) = (Taken::default(), Vec::new(), 0);
        while taken.lookups < self.lookups {
            let hashes = keys.sorted(from, batch);
            from += batch;
            let clocks = Clocks::now();
            for file in 0..self.files.count {
                taken.passed += asker.sift(file, &hashes, &mut found).await?;
                taken.lookups += batch;
            }
            taken.time += clocks.passed();
        }
        Ok(taken)
    }
}

/// What a thread looks for: keys that are in no file.
struct Keys {
    thread: u32,
    /// Of how many threads each has a part of the ring, if they have.
    threads: Option<u32>,
}

impl Keys {
    #[inline]
    fn hash(&self, number: u64) -> [u64; 2] {
        let [token, half] = murmur3(&mixed(number ^ u64::from(self.thread) << 56).to_be_bytes());
        let Some(threads) = self.threads else { return [token, half] };
        // The same place in the thread's part of the ring, which begins at the least token.
        let width = u64::MAX / u64::from(threads);
        let place = ((u128::from(token) * u128::from(width)) >> 64) as u64;
        [(1_u64 << 63).wrapping_add(u64::from(self.thread) * width + place), half]
    }

    fn sorted(&self, from: u64, count: u64) -> Vec<[u64; 2]> {
        let mut hashes: Vec<_> = (from..from + count).map(|number| self.hash(number)).collect();
        hashes.sort_unstable_by_key(|&hash| token_of_hash(hash));
        hashes
    }
}

pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
