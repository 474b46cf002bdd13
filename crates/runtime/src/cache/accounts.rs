//! What each owner has in the cache.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::rc::Rc;

use quick_cache::Lifecycle;

use super::{CacheKey, Entry, KeyHasher};

/// What an owner has in a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// How many values.
    pub values: usize,
    /// What they weigh together, with [`super::Cache::PER_VALUE`] for each.
    pub bytes: usize,
}

/// The accounts of those who have anything. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Accounts(Rc<RefCell<HashMap<u64, Account, BuildHasherDefault<KeyHasher>>>>);

impl Accounts {
    pub(super) fn of(&self, owner: u64) -> Account {
        self.0.borrow().get(&owner).copied().unwrap_or_default()
    }

    /// An owner has a value more.
    pub(super) fn add(&self, owner: u64, weight: u64) {
        let mut accounts = self.0.borrow_mut();
        let account = accounts.entry(owner).or_default();
        account.values += 1;
        account.bytes += weight as usize;
    }

    /// An owner has a value less.
    pub(super) fn subtract(&self, owner: u64, weight: u64) {
        let mut accounts = self.0.borrow_mut();
        let account = accounts.get_mut(&owner).expect("what goes was added");
        account.values -= 1;
        account.bytes -= weight as usize;
        if account.values == 0 {
            accounts.remove(&owner);
        }
    }
}

/// Is told what makes room for others, and of what is too heavy to be kept.
impl Lifecycle<CacheKey, Entry> for Accounts {
    type RequestState = ();

    fn begin_request(&self) {}

    fn on_evict(&self, _: &mut (), key: CacheKey, entry: Entry) {
        self.subtract(key.owner, entry.weight);
    }
}
