//! Whether what a read found in SSTables may still be kept.
//!
//! A read sees the SSTables as they were when it began. Once a flush has added one that says something of the same
//! partition, what the read finds is no longer all, and what others keep is more than the read should see.
//!
//! A read that finds everything in the cache only remembers how many such changes there had been. One that has to read
//! is put on a list, where a flush finds it: so flushes of other partitions do not trouble it.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

use model::PartitionKey;

/// All reads that are watched.
#[derive(Default)]
pub(super) struct Watchers {
    changes: Cell<u64>,
    listed: RefCell<Vec<Weak<Listed>>>,
}

/// One read.
pub(super) struct Watch {
    /// How many changes there had been when it began.
    began_at: u64,
    listed: OnceCell<Rc<Listed>>,
    /// How many more bytes it may put into the cache.
    pub(super) allowance: Cell<usize>,
}

struct Listed {
    key: PartitionKey,
    is_stale: Cell<bool>,
}

impl Watchers {
    /// Watches a read that begins now.
    pub(super) fn watch(&self, allowance: usize) -> Watch {
        Watch { began_at: self.changes.get(), listed: OnceCell::new(), allowance: Cell::new(allowance) }
    }

    /// Puts a read on the list, which it stays on.
    pub(super) fn list(&self, watch: &Watch, key: &PartitionKey) {
        let is_stale = self.is_stale(watch);
        watch.listed.get_or_init(|| {
            let listed = Rc::new(Listed { key: key.clone(), is_stale: Cell::new(is_stale) });
            self.push(Rc::downgrade(&listed));
            listed
        });
    }

    /// Whether what the read sees is no longer what the table has.
    pub(super) fn is_stale(&self, watch: &Watch) -> bool {
        match watch.listed.get() {
            Some(listed) => listed.is_stale.get(),
            None => watch.began_at != self.changes.get(),
        }
    }

    /// The SSTables say something else now of some partitions.
    pub(super) fn changed(&self, has_changed: impl Fn(&PartitionKey) -> bool) {
        self.changes.set(self.changes.get() + 1);
        self.listed.borrow_mut().retain(|listed| {
            let listed = listed.upgrade();
            listed
                .iter()
                .filter(|listed| has_changed(&listed.key))
                .for_each(|listed| listed.is_stale.set(true));
            listed.is_some()
        });
    }

    fn push(&self, listed: Weak<Listed>) {
        let mut all = self.listed.borrow_mut();
        if all.len() == all.capacity() {
            all.retain(|listed| listed.strong_count() > 0);
        }
        all.push(listed);
    }
}

impl Watch {
    /// How many changes there had been when the read began: reads of one number see the same.
    pub(super) fn began_at(&self) -> u64 {
        self.began_at
    }
}
