//! Rows that were read from SSTables, kept for later reads: the layer between a table's SSTables and its memtables.
//!
//! ```text
//! read ◄── merge ◄── memtables
//!                └── CachedReader ◄── parts in the cache
//!                                 └── gaps ◄── merge of SSTables ──► become parts
//! ```
//!
//! The cache keeps what *all* SSTables of the table say together of a stretch of a partition, or of its static row: with tombstones and
//! expired cells, and also that a stretch has no rows. A large partition is kept in *parts* of a few KiB. Each part is one value of the
//! shard's cache, which weighs it against index pages and everything else; a directory lists the parts. A small partition that was read
//! whole is kept *whole*, and needs no directory: its token is its key in the cache.
//!
//! A write changes nothing here, because a row is in a memtable until it is in an SSTable. The cache changes when the set of SSTables is
//! replaced:
//!
//! - A **flush** adds an SSTable. Parts that overlap the memtable's data are dropped, and reads that began before cache nothing more of its
//!   partitions.
//! - A **compaction** leaves the same data in fewer SSTables. Parts stay. They may have tombstones and expired cells that the compaction
//!   purged: at that moment those shadow nothing in any SSTable or memtable, or they would not be purged. Only two later writes can show
//!   the difference: one with a timestamp below the tombstone's, which the part still hides, and one with exactly the timestamp of an
//!   expired cell. The cache then answers as if the compaction came later, which would be right too. Parts with different deletions of one
//!   partition do not stay together: the one that is read last wins.
//! - SSTables from **elsewhere**, other **columns**, another part of the ring: all parts are dropped.
//!
//! A single row often comes from the newest of several SSTables only ([`crate::single_key`]). That is not all that the SSTables say of it,
//! so it is not cached. If the same row is read again soon, it is read from all of them and cached. While the cache is full, a row, or the
//! rows of a slice, are cached only when they are read again. If only one SSTable can have the row, the rows in front of it that are read
//! with it are cached too.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use model::{Direction, KeyView, PartitionKey, Position, Schema, Slice, Token};
use runtime::{Account, Cache, CacheKey, SingleFlight};

use crate::definition::Definition;
use crate::memtable::Memtable;
use crate::single_key;
use crate::sstable_set::{Candidates, SSTableSet};
use crate::table::{Caching, Context, ReadRequest};

mod directory;
mod filler;
mod gap;
mod keeper;
mod known;
mod near;
mod part;
mod part_reader;
mod reader;
mod stretch;
mod watch;
mod whole;

pub use keeper::RowKeeper;
pub use known::{KeptRow, Known};
pub use part_reader::PartReader;
pub use reader::CachedReader;

use directory::{Directory, Found};
use filler::Limits;
use part::Part;
use reader::{Flight, Shared};
use stretch::Draft;
use watch::{Watch, Watchers};
use whole::Whole;

/// A full cache keeps one in so many of the slices that it was not asked for before: those that are asked for may never be the same
/// and yet be of the same rows, for which it would else never have room.
const KEPT_ANYWAY: u32 = 8;

/// The rows of one table that are kept. Clones are the same.
#[derive(Clone)]
pub struct RowCache(Rc<Inner>);

struct Inner {
    cache: Cache,
    /// Under which the parts are in the cache.
    owner: u64,
    next: Cell<u64>,
    /// The owner of the partitions that are kept whole, each at its token.
    wholes: u64,
    /// Whether there was any since all was dropped.
    has_wholes: Cell<bool>,
    limits: Limits,
    directory: RefCell<Rc<Directory>>,
    watchers: Watchers,
    flights: SingleFlight<Flight, Shared>,
    /// Memory for whoever encodes rows next.
    scratch: RefCell<Draft>,
    /// Reads of slices and rows that were there whole: most that there are.
    hits: Cell<u64>,
    /// Slices that a full cache was not asked for before.
    unwanted: Cell<u32>,
    /// All else that it has done.
    stats: Cell<RowCacheStats>,
}

/// How a slice is read that the cache may have.
pub(crate) enum Cached {
    /// From one part, which has all of it, or from the whole partition.
    Part(PartReader),
    /// It is a row that is not there: from those of these SSTables that matter, and to be kept if there is a keeper.
    Row(Candidates, Option<RowKeeper>),
    /// From part to part, and what is between from SSTables.
    Parts(Box<CachedReader>),
}

/// What the cache has done, and what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowCacheStats {
    /// Reads of slices, and of rows by their keys, that were there whole. What a filter answers is neither this nor a miss.
    pub hits: u64,
    /// Those that were there in part.
    pub partial_hits: u64,
    /// Those of which nothing was there.
    pub misses: u64,
    /// How often a read waited for another that read the same, instead of reading it again.
    pub shared: u64,
    /// Parts that were taken in.
    pub insertions: u64,
    /// Parts that were dropped because they were no longer true.
    pub invalidations: u64,
    /// How many parts there are.
    pub parts: usize,
    /// How many of them are whole partitions.
    pub wholes: usize,
    /// The bytes that they take, with the directory of them.
    pub bytes: usize,
}

impl RowCache {
    /// An empty one, in the cache of a shard.
    pub fn new(context: &Context, schema: &Rc<Schema>) -> RowCache {
        RowCache(Rc::new(Inner {
            cache: context.cache.clone(),
            owner: context.disk.unique_id(),
            next: Cell::new(0),
            wholes: context.disk.unique_id(),
            has_wholes: Cell::new(false),
            limits: Limits::of(context.cache.capacity()),
            directory: RefCell::new(Rc::new(Directory::new(schema))),
            watchers: Watchers::default(),
            flights: SingleFlight::new(),
            scratch: RefCell::default(),
            hits: Cell::default(),
            unwanted: Cell::default(),
            stats: Cell::default(),
        }))
    }

    /// Reads a slice, whose ends are beside rows, of what the SSTables of a set say, which is the table's at this moment.
    /// `None` if the read, the table or the shard has no use for a cache.
    pub(crate) fn reader(
        &self,
        request: &ReadRequest,
        definition: &Definition,
        set: &Rc<SSTableSet>,
        candidates: Option<&Candidates>,
    ) -> Option<Cached> {
        if request.caching == Caching::Bypass || !definition.caches_rows || self.0.cache.capacity() == 0 {
            return None;
        }
        let schema = &definition.schema;
        self.follow(schema);
        if let Some(reader) = self.whole_reader(request, schema) {
            return Some(Cached::Part(reader));
        }
        let first = match self.find(&request.key, request.beginning(), request.direction) {
            Found::Part(part) => Some(part),
            Found::Gap(_) => None,
        };
        let wants_static_row = request.static_row && !schema.statics.is_empty();
        let covers = |part: &&Rc<Part>| part.reaches(schema, request.end(), request.direction);
        let covering = first.as_ref().filter(covers);
        if let Some(part) = covering.filter(|part| !wants_static_row && part.stretch.is_free_of_ranges()) {
            self.count_read(true, false);
            let view = part.view(&request.slice, schema, request.direction);
            return Some(Cached::Part(PartReader::new(&request.key, view)));
        }
        let has_all =
            covering.is_some() && (!wants_static_row || self.find_static_row(&request.key).is_some());
        let parts = |first, members, keeps| {
            let watch = self.0.watchers.watch(if keeps { self.0.limits.read } else { 0 });
            let (from, kept) = ((set, members), (first, watch));
            Some(Cached::Parts(Box::new(CachedReader::new(self, request, schema, from, kept))))
        };
        if !has_all && single_key::is_one_row(request, schema) {
            let members = candidates.cloned();
            let members = members.unwrap_or_else(|| set.of_slice(&request.key, request.sought(schema)));
            if self.wants_lone_row(request, &members) {
                return parts(first, Some(members), true);
            }
            self.count_read(false, true);
            let keeper = self.keeper(request, &members);
            return Some(Cached::Row(members, keeper));
        }
        if !has_all && request.caching != Caching::Full {
            return None;
        }
        let keeps = first.is_some() || self.wants_slice(request);
        parts(first, candidates.cloned(), keeps)
    }

    /// Nothing is kept of a table as it was before it was altered.
    fn follow(&self, schema: &Rc<Schema>) {
        if !Rc::ptr_eq(self.directory().schema(), schema) {
            self.clear();
            self.0.directory.replace(Rc::new(Directory::new(schema)));
        }
    }

    /// Reads a slice of a partition that is kept whole.
    fn whole_reader(&self, request: &ReadRequest, schema: &Schema) -> Option<PartReader> {
        if !self.0.has_wholes.get() {
            return None;
        }
        let whole = self.find_whole(request.key.view())?;
        self.count_read(true, false);
        let view = whole::stretch_of(&whole).view(&request.slice, schema, request.direction);
        Some(PartReader::new(&request.key, view))
    }

    /// Whether all that these SSTables say of a row by itself is to be read, and kept.
    fn wants_lone_row(&self, request: &ReadRequest, members: &Candidates) -> bool {
        let values = request.slice.start.prefix.values.iter().flatten().map(|value| &**value);
        request.caching == Caching::Full
            && !members.is_empty()
            && self.was_asked_for(request.key.token, values)
    }

    /// Keeps a row by itself as it is read from some of these SSTables, if that is to be kept.
    fn keeper(&self, request: &ReadRequest, members: &Candidates) -> Option<RowKeeper> {
        let is_kept = request.caching == Caching::Full && !members.is_empty() && !self.0.cache.is_full();
        is_kept.then(|| RowKeeper::new(self))
    }

    /// Whether what is read of a slice, of whose beginning nothing is kept, is to be kept.
    fn wants_slice(&self, request: &ReadRequest) -> bool {
        if !self.0.cache.is_full() {
            return true;
        }
        let (Slice { start, end }, direction) = (&request.slice, [request.direction as u8]);
        let values = start.prefix.views().chain(end.prefix.views()).flatten().chain([&direction[..]]);
        if self.was_asked_for(request.key.token, values) {
            return true;
        }
        let number = self.0.unwanted.replace(self.0.unwanted.get().wrapping_add(1));
        number.is_multiple_of(KEPT_ANYWAY)
    }

    /// An SSTable has taken a memtable's place. To be called when the set is replaced, without a wait between.
    pub fn flushed(&self, memtable: &Memtable) {
        self.0.watchers.changed(|key| memtable.has(key.token));
        let touched = self.directory().touched(memtable);
        self.invalidate(touched);
        self.drop_wholes(|| memtable.tokens());
    }

    /// The SSTables of the table say less now of these partitions, of all if there are no keys: deletions were purged, with
    /// what they deleted. What is older than these may be written yet, and is seen then. To be called when the set is
    /// replaced, without a wait between.
    pub(crate) fn purged(&self, keys: Option<&BTreeSet<PartitionKey>>) {
        let Some(keys) = keys else { return self.clear() };
        if keys.is_empty() {
            return;
        }
        self.0.watchers.changed(|key| keys.contains(key));
        let parts = keys.iter().flat_map(|key| self.directory().of_partition(key)).collect();
        self.invalidate(parts);
        self.drop_wholes(|| keys.iter().map(|key| key.token).collect());
    }

    /// The SSTables of the table say something else now: some came from elsewhere, or their rows have other columns. To
    /// be called when the set is replaced, without a wait between.
    pub fn clear(&self) {
        self.0.watchers.changed(|_| true);
        let all = self.directory().all();
        self.invalidate(all);
        self.count(|stats| stats.invalidations += self.0.cache.account(self.0.wholes).values as u64);
        self.0.cache.remove_all(self.0.wholes, |_, _: &Whole| true);
        self.0.has_wholes.set(false);
    }

    /// What the cache has done so far, and what it has.
    pub fn stats(&self) -> RowCacheStats {
        let (parts, bytes) = self.directory().size();
        let Account { values: wholes, bytes: of_wholes } = self.0.cache.account(self.0.wholes);
        let (parts, bytes) = (parts + wholes, bytes + of_wholes - wholes * Cache::PER_VALUE);
        RowCacheStats { hits: self.0.hits.get(), parts, wholes, bytes, ..self.0.stats.get() }
    }

    fn directory(&self) -> Rc<Directory> {
        self.0.directory.borrow().clone()
    }

    fn limits(&self) -> Limits {
        self.0.limits
    }

    fn flights(&self) -> &SingleFlight<Flight, Shared> {
        &self.0.flights
    }

    /// Of a read that may keep what a read may.
    fn watch(&self) -> Watch {
        self.0.watchers.watch(self.0.limits.read)
    }

    fn list(&self, watch: &Watch, key: &PartitionKey) {
        self.0.watchers.list(watch, key);
    }

    fn is_stale(&self, watch: &Watch) -> bool {
        self.0.watchers.is_stale(watch)
    }

    /// Whether the row with these values was asked for a short while ago and not found here; from now on it was.
    pub(crate) fn was_asked_for<'v>(&self, token: Token, values: impl Iterator<Item = &'v [u8]>) -> bool {
        let hash = values.fold(mix(self.0.owner, token as u64), |hash, value| {
            let chunk = |chunk: &[u8]| chunk.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            let hash = value.chunks(8).fold(hash, |hash, bytes| mix(hash, chunk(bytes)));
            mix(hash, value.len() as u64)
        });
        self.0.cache.was_asked_for(hash)
    }

    /// What is known of the rows from a position on.
    fn find(&self, key: &PartitionKey, at: &Position, direction: Direction) -> Found {
        let found = self.directory().find(key, at, direction);
        if let Found::Part(part) = &found {
            self.touch(part);
        }
        found
    }

    fn find_static_row(&self, key: &PartitionKey) -> Option<Rc<Part>> {
        let part = self.directory().find_static_row(key)?;
        self.touch(&part);
        Some(part)
    }

    /// The partition, if it is kept whole.
    fn find_whole(&self, key: KeyView<'_>) -> Option<Rc<Whole>> {
        let whole = self.0.cache.find(self.key_of_whole(key.token))?;
        whole::is_of(&whole, key.bytes).then_some(whole)
    }

    /// The part is used again. It may have been evicted while somebody still holds it, and is as true as before.
    #[inline]
    fn touch(&self, part: &Part) {
        if let Some(link) = part.link.get() {
            self.0.cache.touch(self.key_of(link.number), &link.uses);
        }
    }

    /// Takes a part in, if the read that made it still sees what the table has, and has not put in too much.
    fn keep(&self, key: &PartitionKey, part: &Rc<Part>, watch: &Watch) {
        if self.is_stale(watch) {
            return;
        }
        let Some(part) = &self.directory().apart(key, part) else { return };
        let weight = Directory::weight(key, part);
        let Some(left) = self.allowance_left(weight, watch) else { return };
        if self.0.has_wholes.get() && self.find_whole(key.view()).is_some() {
            return;
        }
        let number = self.0.next.get();
        self.0.next.set(number + 1);
        let Some(gone) = self.directory().add(key, part, number) else { return };
        watch.allowance.set(left);
        self.remove(gone);
        self.0.cache.insert(self.key_of(number), part.clone(), weight);
        self.count(|stats| stats.insertions += 1);
    }

    /// Takes a partition in, in the place of all that is kept of it, on the same conditions.
    fn keep_whole(&self, key: &PartitionKey, whole: &Rc<Whole>, watch: &Watch) {
        let weight = whole::weight(whole);
        let Some(left) = self.allowance_left(weight, watch) else { return };
        watch.allowance.set(left);
        let parts = self.directory().of_partition(key);
        self.directory().remove_all(&parts);
        self.remove(parts);
        self.0.has_wholes.set(true);
        self.0.cache.insert(self.key_of_whole(key.token), whole.clone(), weight);
        self.count(|stats| stats.insertions += 1);
    }

    /// What a read may put in after something of this weight; `None` if that is too much, or no longer true.
    fn allowance_left(&self, weight: usize, watch: &Watch) -> Option<usize> {
        let left = watch.allowance.get().checked_sub(weight);
        if left.is_none() {
            watch.allowance.set(0);
        }
        left.filter(|_| !self.is_stale(watch))
    }

    /// Drops the partitions that are kept whole and have one of these tokens, which ascend.
    fn drop_wholes(&self, tokens: impl FnOnce() -> Vec<Token>) {
        let (cache, owner) = (&self.0.cache, self.0.wholes);
        let before = cache.account(owner).values;
        if before == 0 {
            return;
        }
        let tokens = tokens();
        if tokens.len() < cache.stats().items {
            for token in tokens {
                cache.remove(self.key_of_whole(token));
            }
        } else {
            cache.remove_all(owner, |index, _: &Whole| tokens.binary_search(&(index as Token)).is_ok());
        }
        let dropped = before - cache.account(owner).values;
        self.count(|stats| stats.invalidations += dropped as u64);
    }

    fn invalidate(&self, parts: Vec<Rc<Part>>) {
        self.count(|stats| stats.invalidations += parts.len() as u64);
        self.directory().remove_all(&parts);
        self.remove(parts);
    }

    /// Takes parts out of the cache, which nobody is told of any more.
    fn remove(&self, parts: Vec<Rc<Part>>) {
        for link in parts.iter().filter_map(|part| part.link.get()) {
            self.0.cache.remove(self.key_of(link.number));
        }
    }

    fn key_of(&self, number: u64) -> CacheKey {
        CacheKey { owner: self.0.owner, index: number }
    }

    fn key_of_whole(&self, token: Token) -> CacheKey {
        CacheKey { owner: self.0.wholes, index: token as u64 }
    }

    /// An empty draft, with the memory of an earlier one.
    fn take_scratch(&self) -> Draft {
        self.0.scratch.take()
    }

    /// Its memory is used again, unless it is large.
    fn give_back(&self, draft: Draft) {
        if let Some(draft) = draft.emptied() {
            self.0.scratch.replace(draft);
        }
    }

    fn count_read(&self, from_cache: bool, from_sstables: bool) {
        match (from_cache, from_sstables) {
            (true, false) => self.0.hits.set(self.0.hits.get() + 1),
            (true, true) => self.count(|stats| stats.partial_hits += 1),
            (false, true) => self.count(|stats| stats.misses += 1),
            (false, false) => {}
        }
    }

    fn count_shared(&self) {
        self.count(|stats| stats.shared += 1);
    }

    fn count(&self, change: impl FnOnce(&mut RowCacheStats)) {
        let mut stats = self.0.stats.get();
        change(&mut stats);
        self.0.stats.set(stats);
    }
}

/// A number of two in which every bit depends on all of both.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9E37_79B9_7F4A_7C15) * u128::from(b ^ 0xA076_1D64_78BD_642F);
    product as u64 ^ (product >> 64) as u64
}

/// What is kept of a table goes with it.
impl Drop for Inner {
    fn drop(&mut self) {
        let parts = self.directory.borrow().all();
        self.directory.borrow().remove_all(&parts);
        for part in parts {
            let number = part.link.get().map_or(0, |link| link.number);
            self.cache.remove(CacheKey { owner: self.owner, index: number });
        }
        self.cache.remove_all(self.wholes, |_, _: &Whole| true);
    }
}

impl std::fmt::Debug for RowCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RowCache").field(&self.stats()).finish()
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, CqlType, DeletionTime};
    use runtime::{SimOptions, run_simulated};

    use super::*;

    #[test]
    fn of_two_keys_with_one_token_the_later_one_is_kept() {
        run_simulated(SimOptions::default(), async |shard| {
            let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(1 << 20));
            let schema = Rc::new(Schema::new(CqlType::Blob, Vec::new(), Vec::new(), Vec::new()));
            let cache = RowCache::new(&context, &schema);
            let [silt, clay] =
                [b"silt", b"clay"].map(|bytes| PartitionKey { token: 7, bytes: Bytes::from(&bytes[..]) });
            for (key, other) in [(&silt, &clay), (&clay, &silt), (&clay, &silt)] {
                let (watch, head) = (cache.watch(), Some(DeletionTime::LIVE));
                let whole = whole::of_partition(key, head, &mut Draft::default(), Direction::Forward);
                cache.keep_whole(key, &whole, &watch);
                assert!(cache.find_whole(key.view()).is_some() && cache.find_whole(other.view()).is_none());
                assert_eq!(cache.stats().wholes, 1);
            }
            cache.drop_wholes(|| vec![6, 8]);
            assert_eq!(cache.stats().wholes, 1);
            cache.purged(Some(&BTreeSet::from([silt])));
            assert_eq!((cache.stats().wholes, cache.stats().invalidations), (0, 1));
        })
        .unwrap();
    }
}
