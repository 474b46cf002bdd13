//! One at a time for each key: counters, and rows that may be new, are read before they are written.

use std::cell::RefCell;
use std::collections::BTreeSet;

use runtime::Signal;

/// The keys that somebody has.
#[derive(Debug, Default)]
pub(super) struct Locks {
    taken: RefCell<BTreeSet<Vec<u8>>>,
    given: Signal,
}

/// Whoever has this has the key.
#[derive(Debug)]
pub(super) struct Lock<'a> {
    locks: &'a Locks,
    key: Vec<u8>,
}

impl Locks {
    /// Waits until nobody else has the key.
    pub(super) async fn lock(&self, key: &[u8]) -> Lock<'_> {
        self.given.until(|| self.taken.borrow_mut().insert(key.to_vec()).then_some(())).await;
        Lock { locks: self, key: key.to_vec() }
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        self.locks.taken.borrow_mut().remove(&self.key);
        self.locks.given.notify();
    }
}
