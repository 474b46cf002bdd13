//! How much of a cache's memory maplets take, those of all tables of a shard together.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use runtime::{Cache, Reserved};

/// They take no more than one part of so many, with those that are being made.
const SHARE: usize = 8;

/// The memory for maplets. Clones are the same.
#[derive(Clone)]
pub struct MapletMemory(Rc<Inner>);

struct Inner {
    cache: Cache,
    taken: Cell<usize>,
}

/// Memory of a maplet. Dropping it gives it back.
pub(super) struct Taken {
    memory: MapletMemory,
    bytes: usize,
    /// What of it, and beside it, was reserved in the cache.
    reserved: Vec<Reserved>,
}

impl MapletMemory {
    /// Memory within the budget of a cache.
    pub fn new(cache: &Cache) -> MapletMemory {
        MapletMemory(Rc::new(Inner { cache: cache.clone(), taken: Cell::new(0) }))
    }

    /// How many bytes are left for maplets, and how many of the cache are not reserved for anything else.
    pub(crate) fn left(&self) -> (usize, usize) {
        let capacity = self.0.cache.capacity();
        let for_maplets = (capacity / SHARE).saturating_sub(self.0.taken.get());
        (for_maplets, capacity.saturating_sub(self.0.cache.reserved()))
    }

    /// Takes so many bytes of what is left for maplets; it is not [reserved](Taken::reserve) yet.
    pub(super) fn take(&self, bytes: usize) -> Taken {
        self.0.taken.update(|taken| taken + bytes);
        Taken { memory: self.clone(), bytes, reserved: Vec::new() }
    }
}

impl Taken {
    /// Reserves bytes in the cache: in steps, as each makes room for itself at once.
    pub(super) fn reserve(&mut self, bytes: usize) {
        self.reserved.push(self.memory.0.cache.reserve(bytes));
    }

    /// In the end it is so many bytes, all reserved.
    pub(super) fn settle(mut self, bytes: usize) -> Taken {
        self.reserved.clear();
        let mut settled = self.memory.take(bytes);
        settled.reserve(bytes);
        settled
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.memory.0.taken.update(|taken| taken - self.bytes);
    }
}

impl fmt::Debug for MapletMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapletMemory").field("taken", &self.0.taken.get()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let cache = Cache::new(8000);
        let memory = MapletMemory::new(&cache);
        let mut taken = memory.take(300);
        taken.reserve(500);
        taken.reserve(300);
        assert_eq!((memory.left(), cache.reserved()), ((700, 7200), 800));
        let taken = taken.settle(200);
        assert_eq!((memory.left(), cache.reserved()), ((800, 7800), 200));
        let more = memory.take(900);
        assert_eq!(memory.left(), (0, 7800), "there was not as much left");
        drop((taken, more));
        assert_eq!((memory.left(), cache.reserved()), ((1000, 8000), 0));
    }
}
