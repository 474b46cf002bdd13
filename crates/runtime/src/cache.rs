//! One budget of bytes a shard, for everything that it keeps in memory and could read again.
//!
//! Pages of files, index pages, rows: each is kept under the number of its owner and an index of the owner's choice,
//! with a weight in bytes, and what is least likely to be asked for again makes room. The policy is that of
//! `quick_cache` (Clock-PRO): one pass over much data does not push out what is asked for again and again.

use std::any::Any;
use std::cell::{Cell, Ref, RefCell};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use quick_cache::unsync::Cache as ClockPro;
use quick_cache::{OptionsBuilder, Weighter};

mod accounts;
mod recent;

use accounts::Accounts;
use recent::Recent;

pub use accounts::Account;

/// Names a thing in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey {
    /// Whose it is: a number that is never reused, from [`File::id`](crate::File::id) or
    /// [`Disk::unique_id`](crate::Disk::unique_id). One owner keeps values of one type.
    pub owner: u64,
    /// Which of the owner's things it is, such as the number of a page.
    pub index: u64,
}

/// In so many steps values make room for what is reserved.
const STEPS: usize = 128;

/// This share of the capacity is for values, whatever is reserved.
const FLOOR_SHARE: usize = 32;

/// So many bytes are at least, but no more than half of the capacity: two windows of an index, and what is parsed of them.
const FLOOR: usize = 128 << 10;

/// A cache is full once less than this share of it is free.
const FREE_SHARE: usize = 64;

/// What a cache has done, and how full it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Lookups that found something.
    pub hits: u64,
    /// Lookups that found nothing.
    pub misses: u64,
    /// Values that were taken in, replacements included.
    pub inserts: u64,
    /// Values that made room for others.
    pub evictions: u64,
    /// How many values there are now.
    pub items: usize,
    /// The memory of the cache's own tables, in bytes. [`Cache::PER_VALUE`] stands for it in the budget.
    pub table_bytes: usize,
}

/// A cache of values of any type, within one budget of bytes. Clones are the same cache.
///
/// A value that somebody still holds is not freed when it is evicted: it no longer counts here, and is the holder's to
/// account for. Dropping a value must not call the cache, save for dropping a [`Reserved`].
///
/// Invariants:
/// 1. The weights of all values together are never above what is left of the capacity by what is reserved, or above a 32nd of it, or the
///    lesser of 128 KiB and half of it, whichever of the three is most: the last two are for values in any case.
/// 2. A value that is heavier than 97 % of what is left to values is not kept; so a capacity of 0 keeps nothing.
#[derive(Clone)]
pub struct Cache(Rc<Inner>);

/// Memory within the budget of a [`Cache`] for what has to stay as long as this does. Dropping it gives it back.
pub struct Reserved {
    cache: Rc<Inner>,
    bytes: usize,
}

/// What is in a [`Cache`], for as long as nothing is put in or dropped: both panic while this is there. A value that is
/// only looked at need not be held, and its memory not be touched.
pub struct Look<'a> {
    entries: Ref<'a, Entries>,
    of: &'a Inner,
}

/// How often a value was used again since one came or went, up to a few times: what is put in beside it makes all begin anew. Who
/// [touches](Cache::touch) a value that is used all the time has this with it.
#[derive(Debug, Default)]
pub struct Uses(Cell<u64>);

/// Nothing is changed by more uses than these, unless values came or went meanwhile: a value is then as far from eviction as it can
/// be.
const FEW: u64 = 3;

type Entries = ClockPro<CacheKey, Entry, ByBytes, BuildHasherDefault<KeyHasher>, Accounts>;

struct Inner {
    capacity: usize,
    reserved: Cell<usize>,
    entries: RefCell<Entries>,
    accounts: Accounts,
    recent: Recent,
    hits: Cell<u64>,
    misses: Cell<u64>,
    inserts: Cell<u64>,
    evictions: Cell<u64>,
    /// How many evicted values the table remembers. With each change of the room for values it is rounded down.
    remembered: Cell<usize>,
    /// How often values have come, or the room for them has changed.
    changes: Cell<u64>,
}

/// How many values a cache of this capacity remembers after their eviction, to know what comes back: in pages of 4 KiB, as many as half
/// of the cache holds.
fn remembered(capacity: usize) -> usize {
    (capacity / 4096).max(16) / 2
}

/// What values have in any case, in bytes: enough for the pages that a search goes back to. Without it each of its steps would be a
/// request again.
fn floor(capacity: usize) -> usize {
    (capacity / FLOOR_SHARE).max(FLOOR.min(capacity / 2))
}

/// The table of a cache without values.
fn empty(capacity: usize, accounts: &Accounts) -> Entries {
    let options = OptionsBuilder::new()
        .weight_capacity(capacity as u64)
        .estimated_items_capacity(2 * remembered(capacity))
        .ghost_allocation(0.5)
        .build()
        .expect("both capacities are set");
    ClockPro::with_options(options, ByBytes, BuildHasherDefault::default(), accounts.clone())
}

struct Entry {
    value: Rc<dyn Any>,
    weight: u64,
}

impl Cache {
    /// What a value weighs beside its own weight, in bytes: its place in the cache's tables.
    pub const PER_VALUE: usize = 96;

    /// An empty cache for `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let accounts = Accounts::default();
        Self(Rc::new(Inner {
            capacity,
            reserved: Cell::default(),
            entries: RefCell::new(empty(capacity, &accounts)),
            remembered: Cell::new(remembered(capacity)),
            accounts,
            recent: Recent::new(capacity),
            hits: Cell::default(),
            misses: Cell::default(),
            inserts: Cell::default(),
            evictions: Cell::default(),
            changes: Cell::default(),
        }))
    }

    /// The value under this key, if it is still there.
    ///
    /// # Panics
    /// If it is of another type: two kinds of values share an owner.
    pub fn get<T: 'static>(&self, key: CacheKey) -> Option<Rc<T>> {
        let found = self.0.entries.borrow().get(&key).map(|entry| Rc::clone(&entry.value));
        count(if found.is_some() { &self.0.hits } else { &self.0.misses }, 1);
        found.map(|value| {
            value.downcast().unwrap_or_else(|_| panic!("values of two types are cached under {key:?}"))
        })
    }

    /// The same for who asks elsewhere, or again, if it is not there: that is no miss.
    ///
    /// # Panics
    /// If it is of another type.
    #[inline]
    pub fn find<T: 'static>(&self, key: CacheKey) -> Option<Rc<T>> {
        let value = Rc::clone(&self.0.entries.borrow().get(&key)?.value);
        count(&self.0.hits, 1);
        Some(value.downcast().unwrap_or_else(|_| panic!("values of two types are cached under {key:?}")))
    }

    /// The value under this key is used again, if it is still there, by somebody who has it already, and the count of its uses with
    /// it.
    #[inline]
    pub fn touch(&self, key: CacheKey, uses: &Uses) {
        let none = self.0.changes.get() * (FEW + 1);
        if uses.0.get() == none + FEW { count(&self.0.hits, 1) } else { self.touch_anew(key, uses, none) }
    }

    /// Touches what counts no use yet since `none`, or too few.
    #[inline(never)]
    fn touch_anew(&self, key: CacheKey, uses: &Uses, none: u64) {
        let is_there = self.0.entries.borrow().get(&key).is_some();
        uses.0.set(uses.0.get().max(none) + u64::from(is_there));
        count(if is_there { &self.0.hits } else { &self.0.misses }, 1);
    }

    /// A look at many values, of which none is taken out.
    pub fn look(&self) -> Look<'_> {
        Look { entries: self.0.entries.borrow(), of: &self.0 }
    }

    /// Whether what has this hash was asked for a short while ago, by this; from now on it was. Remembers about as many
    /// as the capacity has pages of 4 KiB, and is wrong about one in 256 of the others.
    ///
    /// It is for values that cost much to make or to take in: in a cache that [is full](Cache::is_full), what is asked for
    /// once need not take the place of another.
    pub fn was_asked_for(&self, hash: u64) -> bool {
        self.0.recent.note(hash)
    }

    /// Whether a new value takes the place of others.
    pub fn is_full(&self) -> bool {
        let entries = self.0.entries.borrow();
        entries.weight() + self.0.capacity as u64 / FREE_SHARE as u64 >= entries.capacity()
    }

    /// Keeps a value of `weight` bytes under this key, in the place of what was there, and evicts what it has to.
    ///
    /// The weight should be all of the memory the value holds; [`Cache::PER_VALUE`] is added for the cache's own. A value
    /// that is too heavy for the cache is not kept, and what was under its key is dropped.
    pub fn insert<T: 'static>(&self, key: CacheKey, value: Rc<T>, weight: usize) {
        let weight = (weight + Self::PER_VALUE) as u64;
        self.0.keep_to_budget();
        count(&self.0.changes, 1);
        let mut entries = self.0.entries.borrow_mut();
        // What is remembered of a key after its eviction must stay: only what is there is taken out.
        if entries.contains_key(&key)
            && let Some((_, entry)) = entries.remove(&key)
        {
            self.0.accounts.subtract(key.owner, entry.weight);
        }
        let before = entries.len();
        self.0.accounts.add(key.owner, weight);
        entries.insert(key, Entry { value, weight });
        assert!(entries.weight() <= entries.capacity(), "invariant 1 of the cache");
        let taken_in = usize::from(entries.contains_key(&key));
        count(&self.0.inserts, taken_in as u64);
        count(&self.0.evictions, (before + taken_in - entries.len()) as u64);
    }

    /// The same of what is of use for many reads, as a part of an index is: it counts as asked for twice, so that what is asked for once,
    /// as most rows are, does not push it out.
    pub fn insert_to_stay<T: 'static>(&self, key: CacheKey, value: Rc<T>, weight: usize) {
        self.insert(key, value, weight);
        self.0.entries.borrow().get(&key);
    }

    /// Drops the value under this key; whether there was one.
    pub fn remove(&self, key: CacheKey) -> bool {
        let removed = self.0.entries.borrow_mut().remove(&key);
        removed.iter().for_each(|(key, entry)| self.0.accounts.subtract(key.owner, entry.weight));
        removed.is_some()
    }

    /// Drops those values of an owner that are like this. Looks at every value of the cache, unless the owner has none.
    ///
    /// # Panics
    /// If the owner has values of another type.
    pub fn remove_all<T: 'static>(&self, owner: u64, is_like_this: impl Fn(u64, &T) -> bool) {
        if self.account(owner).values == 0 {
            return;
        }
        self.0.entries.borrow_mut().retain(|key, entry| {
            let goes = key.owner == owner && is_like_this(key.index, entry.value_of(*key));
            if goes {
                self.0.accounts.subtract(owner, entry.weight);
            }
            !goes
        });
    }

    /// What an owner has in the cache.
    pub fn account(&self, owner: u64) -> Account {
        self.0.accounts.of(owner)
    }

    /// Takes this much of the budget for what has to stay in memory, however much is left, and evicts what it has to, but for a little
    /// that is left to values in any case.
    pub fn reserve(&self, bytes: usize) -> Reserved {
        self.0.reserved.set(self.0.reserved.get() + bytes);
        self.0.keep_to_budget();
        Reserved { cache: Rc::clone(&self.0), bytes }
    }

    /// What is reserved, in bytes.
    pub fn reserved(&self) -> usize {
        self.0.reserved.get()
    }

    /// The weight of all values together, in bytes.
    pub fn used(&self) -> usize {
        self.0.entries.borrow().weight() as usize
    }

    /// The budget, in bytes.
    pub fn capacity(&self) -> usize {
        self.0.capacity
    }

    /// What the cache has done so far, and how full it is.
    pub fn stats(&self) -> CacheStats {
        let entries = self.0.entries.borrow();
        let tables = entries.memory_used();
        CacheStats {
            hits: self.0.hits.get(),
            misses: self.0.misses.get(),
            inserts: self.0.inserts.get(),
            evictions: self.0.evictions.get(),
            items: entries.len(),
            table_bytes: tables.entries + tables.map + self.0.recent.memory_bytes(),
        }
    }
}

impl Entry {
    /// The value, which is under this key.
    fn value_of<T: 'static>(&self, key: CacheKey) -> &T {
        let value = self.value.downcast_ref();
        value.unwrap_or_else(|| panic!("values of two types are cached under {key:?}"))
    }
}

impl Look<'_> {
    /// The value under this key, if it is there.
    ///
    /// # Panics
    /// If it is of another type: two kinds of values share an owner.
    #[inline]
    pub fn get<T: 'static>(&self, key: CacheKey) -> Option<&T> {
        let found = self.entries.get(&key);
        count(if found.is_some() { &self.of.hits } else { &self.of.misses }, 1);
        found.map(|entry| entry.value_of(key))
    }
}

impl Inner {
    /// Leaves to the values what is not reserved, in steps: each change costs the memory of a few values that were
    /// evicted, by which it is known what comes back.
    fn keep_to_budget(&self) {
        let step = self.capacity.div_ceil(STEPS).max(1);
        let reserved = self.reserved.get().next_multiple_of(step);
        let left = self.capacity.saturating_sub(reserved).max(floor(self.capacity)) as u64;
        let mut entries = self.entries.borrow_mut();
        let is_much = left >= entries.capacity() + 2 * step as u64 || reserved == 0;
        if left < entries.capacity() || left > entries.capacity() && is_much {
            let before = entries.len();
            count(&self.changes, 1);
            self.resize(&mut entries, left);
            count(&self.evictions, (before - entries.len()) as u64);
        }
    }

    /// Gives the values this much room, and evicts what it has to. Where the table has come to remember less than half of what it should,
    /// the values move to a new one.
    fn resize(&self, entries: &mut Entries, left: u64) {
        let scaled = |remembered: usize, by: u64| match by {
            0 => remembered,
            by => (remembered as f64 * (left as f64 / by as f64)) as usize,
        };
        self.remembered.set(scaled(self.remembered.get(), entries.capacity()));
        entries.set_capacity(left);
        let should = scaled(remembered(self.capacity), self.capacity as u64);
        if 2 * self.remembered.get() < should {
            let mut old = std::mem::replace(entries, empty(self.capacity, &self.accounts));
            entries.set_capacity(left);
            old.drain().for_each(|(key, entry)| entries.insert(key, entry));
            self.remembered.set(should);
        }
    }
}

impl Reserved {
    /// How much it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // The values get it with the next one: this may be dropped along with one of them.
        self.cache.reserved.set(self.cache.reserved.get() - self.bytes);
    }
}

impl fmt::Debug for Look<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a look at {} values", self.entries.len())
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes reserved", self.bytes)
    }
}

fn count(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get() + by);
}

/// Entries weigh what they were said to.
struct ByBytes;

impl Weighter<CacheKey, Entry> for ByBytes {
    fn weight(&self, _: &CacheKey, entry: &Entry) -> u64 {
        entry.weight
    }
}

/// Mixes the two numbers of a key: quick, and the same in every run, as the keys are not chosen by an adversary.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9E37_79B9_7F4A_7C15) * 0xA076_1D64_78BD_642F_u128;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, Hash};

    use super::*;

    fn key(index: u64) -> CacheKey {
        CacheKey { owner: 1, index }
    }

    #[test]
    fn gives_back_what_was_put_in() {
        let cache = Cache::new(1000);
        assert_eq!(cache.get::<u32>(key(1)), None);
        cache.insert(key(1), Rc::new(7_u32), 10);
        cache.insert(CacheKey { owner: 2, index: 1 }, Rc::new("row".to_owned()), 20);
        assert_eq!(cache.get::<u32>(key(1)).as_deref(), Some(&7));
        assert_eq!(cache.get::<String>(CacheKey { owner: 2, index: 1 }).as_deref(), Some(&"row".to_owned()));
        assert_eq!(cache.used(), 30 + 2 * Cache::PER_VALUE);
        let CacheStats { hits, misses, inserts, evictions, items, .. } = cache.stats();
        assert_eq!((hits, misses, inserts, evictions, items), (2, 1, 2, 0, 2));
    }

    #[test]
    fn a_look_finds_what_is_there_and_keeps_it_there() {
        let cache = Cache::new(1000);
        cache.insert(key(1), Rc::new(7_u32), 10);
        let look = cache.look();
        assert_eq!((look.get::<u32>(key(1)), look.get::<u32>(key(2))), (Some(&7), None));
        drop(look);
        cache.insert(key(2), Rc::new(8_u32), 10);
        assert_eq!(cache.look().get::<u32>(key(2)), Some(&8));
        assert_eq!((cache.stats().hits, cache.stats().misses), (2, 1));
    }

    #[test]
    #[should_panic(expected = "two types")]
    fn an_owner_with_two_types_is_found_out() {
        let cache = Cache::new(1000);
        cache.insert(key(1), Rc::new(7_u32), 10);
        cache.get::<u64>(key(1));
    }

    #[test]
    fn replacing_and_removing_keep_the_account() {
        let cache = Cache::new(1000);
        cache.insert(key(1), Rc::new(1), 100);
        cache.insert(key(1), Rc::new(2), 300);
        assert_eq!((cache.used(), cache.stats().evictions), (300 + Cache::PER_VALUE, 0));
        cache.insert(key(1), Rc::new(3), 2000);
        assert_eq!((cache.used(), cache.get::<i32>(key(1))), (0, None));
        cache.insert(key(1), Rc::new(4), 5);
        assert!(cache.remove(key(1)));
        assert!(!cache.remove(key(1)));
        assert_eq!(cache.used(), 0);
    }

    #[test]
    fn values_of_an_owner_go_together() {
        let cache = Cache::new(10_000);
        for index in 0..10 {
            cache.insert(CacheKey { owner: index % 2, index }, Rc::new(index), 10);
        }
        cache.remove_all(0, |index, value: &u64| index == *value && index != 4);
        let bytes = 10 + Cache::PER_VALUE;
        assert_eq!((cache.used(), cache.stats().items), (6 * bytes, 6));
        assert_eq!(cache.account(0), Account { values: 1, bytes });
        assert_eq!(cache.account(1), Account { values: 5, bytes: 5 * bytes });
        assert_eq!(cache.get::<u64>(CacheKey { owner: 0, index: 2 }), None);
        assert_eq!(cache.get::<u64>(CacheKey { owner: 1, index: 3 }).as_deref(), Some(&3));
        cache.remove_all(2, |_, _: &String| unreachable!("nobody has any"));
    }

    #[test]
    fn no_capacity_keeps_nothing() {
        let cache = Cache::new(0);
        cache.insert(key(1), Rc::new(1), 0);
        cache.insert(key(2), Rc::new(1), 1);
        assert_eq!((cache.used(), cache.capacity(), cache.stats().items), (0, 0, 0));
    }

    #[test]
    fn a_small_cache_is_filled_to_its_last_page() {
        let capacity = 16 * (4096 + Cache::PER_VALUE);
        let cache = Cache::new(capacity);
        for index in 0..16 {
            cache.insert(key(index), Rc::new(index), 4096);
        }
        assert_eq!((cache.used(), cache.stats().items), (capacity, 16));
        assert!((0..16).all(|index| cache.get::<u64>(key(index)).is_some()));
        cache.insert(key(16), Rc::new(16_u64), 4096);
        assert_eq!((cache.used(), cache.stats().items, cache.stats().evictions), (capacity, 16, 1));
        assert!(cache.get::<u64>(key(16)).is_some());
    }

    #[test]
    fn the_budget_is_kept_under_any_weights() {
        for capacity in [1, 100, 4096, 64 << 10, 1 << 20] {
            let cache = Cache::new(capacity);
            let mut state = 1_u64;
            for _ in 0..20_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (index, weight) = ((state >> 33) % 500, (state >> 20) as usize % (capacity / 4 + 2));
                if cache.get::<usize>(key(index)).is_none_or(|kept| *kept % 3 == 0) {
                    cache.insert(key(index), Rc::new(weight), weight);
                }
                assert!(cache.used() <= capacity);
            }
            let kept: Vec<_> = (0..500).filter_map(|index| cache.get::<usize>(key(index))).collect();
            let bytes = kept.iter().map(|weight| **weight + Cache::PER_VALUE).sum();
            assert_eq!(bytes, cache.used());
            assert_eq!(cache.account(1), Account { values: kept.len(), bytes });
            let reserved = cache.reserve(capacity / 2);
            assert_eq!(cache.account(1), Account { values: cache.stats().items, bytes: cache.used() });
            drop(reserved);
            cache.remove_all(1, |_, _: &usize| true);
            assert_eq!((cache.account(1), cache.used()), (Account::default(), 0));
        }
    }

    #[test]
    fn what_is_reserved_is_not_for_values_but_for_a_little() {
        for (capacity, floor) in [(10_000, 5000), (1 << 20, 128 << 10), (100 << 20, (100 << 20) / 32)] {
            let cache = Cache::new(capacity);
            let weight = capacity / 200;
            let mut next = 0..;
            let mut fill = || {
                next.by_ref().take(300).for_each(|index| cache.insert(key(index), Rc::new(index), weight));
            };
            fill();
            assert!(cache.used() > capacity / 10 * 9);
            let (some, more) = (cache.reserve(capacity / 10), cache.reserve(capacity / 5));
            let left = capacity - cache.reserved();
            let items = cache.used() / (weight + Cache::PER_VALUE);
            assert!(cache.used() <= left.max(floor) && cache.stats().items == items);
            let all = cache.reserve(capacity);
            assert!(cache.used() <= floor);
            fill();
            assert!(cache.used() <= floor && cache.used() > floor / 5 * 3, "{}", cache.used());
            drop((more, all));
            fill();
            assert!(cache.used() <= capacity / 10 * 9 && cache.used() > capacity / 4 * 3, "{}", cache.used());
            drop(some);
            assert_eq!((cache.reserved(), cache.capacity()), (0, capacity));
            let stats = cache.stats();
            assert_eq!(stats.inserts - stats.evictions, stats.items as u64);
        }
    }

    #[test]
    fn a_reservation_may_go_with_a_value() {
        let cache = Cache::new(10_000);
        cache.insert(key(1), Rc::new(cache.reserve(4000)), 2000);
        cache.insert(key(2), Rc::new(1), 5000);
        assert_eq!((cache.reserved(), cache.stats().items), (0, 1));
        cache.insert(key(3), Rc::new(1), 4000);
        assert_eq!(cache.stats().items, 2);
    }

    #[test]
    fn the_tables_take_no_more_than_what_is_counted_for_them() {
        let cache = Cache::new(64 << 20);
        for index in 0..100_000 {
            cache.insert(key(index), Rc::new(index), 300);
            let stats = cache.stats();
            // Tables double their size.
            let most = 2 * stats.items.max(4096) * Cache::PER_VALUE;
            assert!(stats.table_bytes <= most, "{} bytes for {}", stats.table_bytes, stats.items);
        }
    }

    #[test]
    fn one_pass_over_much_does_not_push_out_what_is_used_again() {
        let cache = Cache::new(100 * (4096 + Cache::PER_VALUE));
        let used_again = || (0..50).filter(|index| cache.get::<u64>(key(*index)).is_some()).count();
        for index in 0..50 {
            cache.insert(key(index), Rc::new(index), 4096);
        }
        assert_eq!(used_again(), 50);
        for index in 1000..2000_u64 {
            cache.insert(key(index), Rc::new(index), 4096);
            if index % 100 == 0 {
                used_again();
            }
        }
        assert!(used_again() >= 45, "only {} of 50 are left", used_again());
    }

    /// Even if nobody asks for it until they have passed.
    #[test]
    fn one_pass_does_not_push_out_what_is_to_stay() {
        let left = |insert: fn(&Cache, CacheKey, Rc<u64>, usize)| {
            let cache = Cache::new(100 * (4096 + Cache::PER_VALUE));
            for index in 0..1000_u64 {
                if index.is_multiple_of(20) {
                    insert(&cache, key(index), Rc::new(index), 4096);
                } else {
                    cache.insert(key(index), Rc::new(index), 4096);
                }
            }
            (0..50).filter(|number| cache.get::<u64>(key(20 * number)).is_some()).count()
        };
        let (to_stay, others) = (left(Cache::insert_to_stay), left(Cache::insert));
        assert!(to_stay >= 45 && others < 25, "{to_stay} of 50 are left, and of others {others}");
    }

    #[test]
    fn what_comes_back_after_its_eviction_is_known_again() {
        comes_back(&Cache::new(100 * (4096 + Cache::PER_VALUE)));
    }

    /// Fills a cache of a hundred pages, and asks for some again that it has evicted.
    fn comes_back(cache: &Cache) {
        let insert = |index: u64| cache.insert(key(index), Rc::new(index), 4096);
        let is_there = |index: u64| cache.find::<u64>(key(index)).is_some();
        (0..300).for_each(insert);
        let gone: Vec<u64> = (0..300).filter(|index| !is_there(*index)).collect();
        let back = &gone[gone.len() - 10..];
        back.iter().for_each(|index| insert(*index));
        // It was asked for twice, and what comes next is asked for once.
        (1000..1300).for_each(insert);
        let left = back.iter().filter(|index| is_there(**index)).count();
        assert!(left >= 8, "{left} of 10 are left");
    }

    /// What is reserved and let go of again takes nothing of what is remembered, for long.
    #[test]
    fn room_that_comes_and_goes_is_remembered_in() {
        for share in [1, 2] {
            let cache = Cache::new(100 * (4096 + Cache::PER_VALUE));
            for round in 0..1000 {
                drop(cache.reserve(cache.capacity() / share));
                cache.insert(key(round), Rc::new(round), 4096);
                assert!(cache.find::<u64>(key(round)).is_some());
            }
            drop(cache.reserve(cache.capacity() / share));
            comes_back(&cache);
            assert_eq!(cache.account(1).values, cache.stats().items);
        }
    }

    #[test]
    fn values_are_freed_when_they_are_evicted() {
        let cache = Cache::new(4096);
        let value = Rc::new(1_u64);
        cache.insert(key(1), Rc::clone(&value), 3000);
        assert_eq!(Rc::strong_count(&value), 2);
        cache.insert(key(2), Rc::new(2_u64), 3000);
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    fn a_cache_is_full_once_values_make_room_for_others() {
        let cache = Cache::new(100_000);
        let mut index = 0;
        while !cache.is_full() {
            assert_eq!(cache.stats().evictions, 0);
            cache.insert(key(index), Rc::new(index), 900);
            index += 1;
        }
        assert!(cache.used() > 95_000);
        (0..10).for_each(|more| cache.insert(key(index + more), Rc::new(more), 900));
        assert!(cache.is_full() && cache.stats().evictions > 0);
        assert!((0..20).filter(|gone| cache.remove(key(index - gone))).count() > 10);
        assert!(!cache.is_full());
        assert!(Cache::new(0).is_full());
        let reserved = cache.reserve(90_000);
        assert!(cache.is_full());
        drop(reserved);
    }

    #[test]
    fn what_is_touched_stays() {
        let cache = Cache::new(64 << 10);
        let uses = Uses::default();
        cache.insert(key(0), Rc::new(0_u64), 1000);
        for index in 1..1000 {
            (0..index % 9).for_each(|_| cache.touch(key(0), &uses));
            cache.touch(key(0), &uses);
            cache.insert(key(index), Rc::new(index), 1000);
        }
        assert_eq!((cache.stats().hits, cache.stats().misses), (999 + 111 * 36, 0));
        assert!(cache.get::<u64>(key(0)).is_some(), "it was used again before each of the others came");
        cache.touch(key(1000), &Uses::default());
        assert_eq!(cache.stats().misses, 1);
    }

    #[test]
    fn neighbouring_keys_hash_apart() {
        let hash = |key: CacheKey| BuildHasherDefault::<KeyHasher>::default().hash_one(key);
        let mut tops = [0_u32; 128];
        let mut lows = [0_u32; 128];
        for owner in 0..64 {
            for index in 0..128 {
                let hash = hash(CacheKey { owner, index });
                tops[(hash >> 57) as usize] += 1;
                lows[(hash & 127) as usize] += 1;
            }
        }
        // Each of 128 places is met 64 times on average.
        assert!(tops.iter().chain(&lows).all(|count| (20..130).contains(count)), "{tops:?} {lows:?}");
        let mut bytes = KeyHasher::default();
        [1_u8, 2].hash(&mut bytes);
        assert_ne!(bytes.finish(), 0);
    }
}
