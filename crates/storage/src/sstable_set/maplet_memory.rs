//! How much of a cache's memory maplets take, those of all tables of a shard together.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use runtime::{Cache, Reserved};

/// They take no more than one part of so many.
const SHARE: usize = 8;

/// The memory for maplets. Clones are the same.
#[derive(Clone)]
pub struct MapletMemory(Rc<Inner>);

struct Inner {
    cache: Cache,
    taken: Cell<usize>,
}

/// Memory of a maplet, or of one that is being made. Dropping it gives it back.
pub(super) struct Taken {
    memory: MapletMemory,
    bytes: usize,
    _reserved: Reserved,
}

impl MapletMemory {
    /// Memory within the budget of a cache.
    pub fn new(cache: &Cache) -> MapletMemory {
        MapletMemory(Rc::new(Inner { cache: cache.clone(), taken: Cell::new(0) }))
    }

    /// How many bytes are left.
    pub(crate) fn left(&self) -> usize {
        (self.0.cache.capacity() / SHARE).saturating_sub(self.0.taken.get())
    }

    /// Takes so many bytes, whether or not they are left, and beside them so many that are only needed for a while.
    pub(super) fn take(&self, bytes: usize, for_a_while: usize) -> Taken {
        self.0.taken.update(|taken| taken + bytes);
        Taken { memory: self.clone(), bytes, _reserved: self.0.cache.reserve(bytes + for_a_while) }
    }
}

impl Taken {
    /// The memory that it is of.
    pub(super) fn memory(&self) -> &MapletMemory {
        &self.memory
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
        let taken = memory.take(300, 500);
        assert_eq!((memory.left(), cache.reserved()), (700, 800));
        let more = taken.memory().take(900, 0);
        assert_eq!((memory.left(), cache.reserved()), (0, 1700), "there was not as much left");
        drop(taken);
        assert_eq!((memory.left(), cache.reserved()), (100, 900));
        drop(more);
        assert_eq!((memory.left(), cache.reserved()), (1000, 0));
    }
}
