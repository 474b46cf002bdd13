//! What is measured: keys one by one from many threads, files larger than the cache, sorted keys over many files.

use std::ops::Range;
use std::sync::{Arc, Barrier};

use clap::ValueEnum;
use model::key::{murmur3, token_of_hash};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::{Error, Result};
use sstable::parts::bloom_pages::FilterPages;

use super::before::Shared;
use super::files::{Files, mixed};
use super::ways::{Asker, Common, Way};
use crate::clocks::{Clocks, Passed};
use crate::interrupted;

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
    /// So many lookups are done in one way before it is the turn of the next. What a disk or a processor does by itself
    /// meanwhile is shared by all ways if turns are short.
    pub(crate) turn: u64,
    /// Whether each thread has a part of the ring, as shards do.
    pub(crate) has_parts: bool,
    /// Bytes of cache for all threads together.
    pub(crate) cache: usize,
    pub(crate) machine: ShardOptions,
}

/// What all threads together took in a way.
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
    /// Does it in these ways, in turns: the same lookups in each. What they took is in the order of the ways.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub(crate) fn run(&self, ways: &[Way]) -> Result<Vec<Taken>> {
        runtime::run(self.machine.clone(), async |shard: Shard| self.files.make(shard.disk()).await)??;
        self.check_room()?;
        let common = ways.iter().map(|&way| self.common(way)).collect::<Result<Vec<_>>>()?;
        let ready = Barrier::new(self.threads as usize);
        let thread = |number| {
            let ways: Vec<_> = ways.iter().copied().zip(common.iter().cloned()).collect();
            let ready = &ready;
            move || {
                let work = async |shard: Shard| self.thread(&shard, number, ways, ready).await;
                runtime::run(self.machine.clone(), work)?
            }
        };
        let done: Vec<Result<Vec<Taken>>> = std::thread::scope(|scope| {
            let started: Vec<_> = (0..self.threads).map(|number| scope.spawn(thread(number))).collect();
            started
                .into_iter()
                .map(|thread| thread.join().expect("a thread of the benchmark panicked"))
                .collect()
        });
        let mut all = vec![Taken::default(); ways.len()];
        for of_thread in done {
            all.iter_mut().zip(of_thread?).for_each(|(all, taken)| all.add(&taken));
        }
        Ok(all)
    }

    /// That there is room for a file that all threads have in memory: each has pages of its own.
    fn check_room(&self) -> Result<()> {
        let room = self.cache as u64 / u64::from(self.threads) / ROOM;
        let bytes = self.files.bytes()?;
        if self.is_in_memory() && bytes > room {
            return Err(Error::Usage(format!(
                "--keys {}: the file has {bytes} bytes, and each of {} threads has memory for one of {room}; fewer keys or fewer \
                 --threads are needed",
                self.files.keys, self.threads
            )));
        }
        Ok(())
    }

    /// Whether every page of the file is in memory before it is measured.
    fn is_in_memory(&self) -> bool {
        self.batch.is_none() && !self.has_parts
    }

    fn common(&self, way: Way) -> Result<Common> {
        Ok(match way {
            Way::Before => Common::Before(Arc::new(Shared::new(self.files.count, processors(), self.cache))),
            Way::Whole => Common::Whole(self.files.whole()?.into()),
            Way::PerShard | Way::AtHand => Common::Nothing,
        })
    }

    /// One of the threads. Each waits for the others at the end of a turn, whatever has become of its own lookups; one whose
    /// part of the ring is in a cache that all share would else run far ahead and keep it there.
    async fn thread(
        &self,
        shard: &Shard,
        number: u32,
        ways: Vec<(Way, Common)>,
        together: &Barrier,
    ) -> Result<Vec<Taken>> {
        let keys = Keys { thread: number, threads: self.has_parts.then_some(self.threads) };
        let count = ways.len();
        let mut lanes = self.lanes(shard, number as usize, &keys, ways).await;
        together.wait();
        for part in 0..self.lookups.div_ceil(self.turn) * count as u64 {
            let (turn, step) = (part / count as u64, part as usize % count);
            // Another way begins each turn.
            let lane = (turn as usize + step) % count;
            let clocks = Clocks::now();
            lanes = match lanes {
                Ok(mut lanes) => self.take_turn(&mut lanes[lane], &keys, turn).await.map(|()| lanes),
                failed => failed,
            };
            together.wait();
            // Who is done waits for the others; with batches, the time is that of lookups, and sorting is left out.
            if let (Ok(lanes), None) = (&mut lanes, self.batch) {
                lanes[lane].taken.time += clocks.passed();
            }
        }
        Ok(lanes?.into_iter().map(Lane::into_taken).collect())
    }

    async fn lanes(
        &self,
        shard: &Shard,
        processor: usize,
        keys: &Keys,
        ways: Vec<(Way, Common)>,
    ) -> Result<Vec<Lane>> {
        let mut lanes = Vec::new();
        for way in ways {
            let asker = self.open(shard, processor, way).await?;
            self.warm(&asker, keys).await?;
            lanes.push(Lane { before: asker.of_cache(), asker, taken: Taken::default() });
        }
        Ok(lanes)
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

    /// Brings the cache to where it would be after a while: all pages, or twice as many lookups as it has room for pages, or as there are.
    async fn warm(&self, asker: &Asker, keys: &Keys) -> Result<()> {
        let mut found = Vec::new();
        match self.batch {
            None if self.is_in_memory() => {
                for (number, hash) in self.files.hashes(0).step_by(APART).enumerate() {
                    if (number as u64).is_multiple_of(LOOKED) {
                        interrupted::check()?;
                    }
                    asker.may_contain(0, hash).await?;
                }
            }
            None => {
                let pages = (self.cache as u64 / 4096).min(self.files.keys / 1024 + 8);
                for number in 0..2 * pages / u64::from(self.threads) + 1 {
                    interrupted::check()?;
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

    async fn take_turn(&self, lane: &mut Lane, keys: &Keys, turn: u64) -> Result<()> {
        let (from, to) = (turn * self.turn, self.lookups.min((turn + 1) * self.turn));
        match self.batch {
            None => lane.one_by_one(keys, from..to).await,
            Some(batch) => lane.sorted(keys, batch, from..to, self.files.count).await,
        }
    }
}

/// Each page of a file has more keys than this: it has as many lines, and each has several keys, whatever the chance.
const APART: usize = 64;

/// A cache has room for all pages of a file for certain if it has so many times the bytes of the file.
const ROOM: u64 = 2;

/// After so many lookups it is asked whether the run is to end.
const LOOKED: u64 = 1024;

/// One thread's side of a way, and what it took so far.
struct Lane {
    asker: Asker,
    /// What the cache had been asked before it began.
    before: (u64, u64),
    taken: Taken,
}

impl Lane {
    async fn one_by_one(&mut self, keys: &Keys, numbers: Range<u64>) -> Result<()> {
        for number in numbers {
            if number % LOOKED == 0 {
                interrupted::check()?;
            }
            let may = self.asker.may_contain(0, keys.hash(number)).await?;
            self.taken.passed += u64::from(may);
            self.taken.lookups += 1;
        }
        Ok(())
    }

    /// So many keys at a time, until there were as many lookups as numbers.
    async fn sorted(&mut self, keys: &Keys, batch: u64, numbers: Range<u64>, files: u32) -> Result<()> {
        let mut found = Vec::new();
        for from in numbers.step_by((batch * u64::from(files)) as usize) {
            interrupted::check()?;
            let hashes = keys.sorted(from, batch);
            let clocks = Clocks::now();
            for file in 0..files {
                self.taken.passed += self.asker.sift(file, &hashes, &mut found).await?;
                self.taken.lookups += batch;
            }
            self.taken.time += clocks.passed();
        }
        Ok(())
    }

    fn into_taken(self) -> Taken {
        let (of_cache, read) = self.asker.of_cache();
        Taken { of_cache: of_cache - self.before.0, read: read - self.before.1, ..self.taken }
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
