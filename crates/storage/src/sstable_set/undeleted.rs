//! Partitions that no SSTable deletes as a whole, though some could: what was read of them tells.
//!
//! ```text
//! version of the set     1     2     3     4        a flush, or a compaction, makes the next
//! SSTables               a     ab    abc   dc       of which d is made of a and b
//! read in full                 │
//!                        ab have no deletion        of 4 there is c to be asked, and not d
//! ```
//!
//! Before `oa` Statistics.db does not tell whether partitions are deleted, only that something is deleted or expires. Fences do, where there are
//! any. Where there are none and all expires, as what is measured often does, each would be asked for each slice of its partitions. A read
//! that did ask them all keeps what it found, by which later ones leave out those without rows around their slice.
//!
//! Each SSTable has the version of the set with which it came. What a compaction makes has the greatest one of its inputs: it deletes nothing
//! that these did not.

use std::fmt;
use std::rc::Rc;

use model::{DeletionTime, KeyView, PartitionKey};
use runtime::{Cache, CacheKey, Disk};

/// What is known of the partitions of a table, as one version of its set sees it. In the cache of the shard.
#[derive(Clone, Default)]
pub(crate) struct Undeleted {
    /// The cache, and under which owner it has what is known.
    memory: Option<(Cache, u64)>,
    version: u64,
}

/// What is known of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Deletion {
    /// No SSTable deletes it that came with this version or before; 0 where nothing is known.
    pub(super) none_since: u64,
    /// One of those that are there does: it is not looked for again until there are others.
    pub(super) is_somewhere: bool,
}

/// A partition that was read in full, at least once.
struct Known {
    key: PartitionKey,
    /// The last version in which no SSTable deleted it, and in which one did; 0 for none.
    undeleted: u64,
    deleted: u64,
}

impl Undeleted {
    /// Nothing is known yet.
    pub(crate) fn new(cache: &Cache, disk: &Disk) -> Undeleted {
        Undeleted { memory: Some((cache.clone(), disk.unique_id())), version: 0 }
    }

    /// The same for the version behind this one.
    pub(super) fn next(&self) -> Undeleted {
        Undeleted { memory: self.memory.clone(), version: self.version + 1 }
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// What is known of a partition. What later versions found says nothing of this one, which may have what was purged since.
    pub(super) fn of(&self, key: KeyView<'_>) -> Deletion {
        let Some(known) = self.find(key) else { return Deletion::default() };
        let none_since = if known.undeleted <= self.version { known.undeleted } else { 0 };
        Deletion { none_since, is_somewhere: known.deleted == self.version }
    }

    /// All SSTables of this version that may delete a partition say this together.
    pub(super) fn note(&self, key: &PartitionKey, deletion: DeletionTime) {
        let Some((cache, owner)) = &self.memory else { return };
        // Who reads an earlier version may come later.
        let (undeleted, deleted) =
            self.find(key.view()).map_or((0, 0), |known| (known.undeleted, known.deleted));
        let (undeleted, deleted) = match deletion.is_live() {
            true => (undeleted.max(self.version), deleted),
            false => (undeleted, deleted.max(self.version)),
        };
        let key = PartitionKey { token: key.token, bytes: key.bytes.detached() };
        let place = CacheKey { owner: *owner, index: key.token as u64 };
        let weight = size_of::<Known>() + key.bytes.len();
        cache.insert(place, Rc::new(Known { key, undeleted, deleted }), weight);
    }

    fn find(&self, key: KeyView<'_>) -> Option<Rc<Known>> {
        let (cache, owner) = self.memory.as_ref()?;
        let known = cache.find::<Known>(CacheKey { owner: *owner, index: key.token as u64 })?;
        (*known.key.bytes == *key.bytes).then_some(known)
    }
}

impl fmt::Debug for Undeleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undeleted").field("version", &self.version).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;
    use runtime::{SimOptions, run_simulated};

    use super::*;

    fn key(number: u8) -> PartitionKey {
        PartitionKey::new(Bytes::from(vec![number]))
    }

    const DELETED: DeletionTime = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };

    #[test]
    fn what_is_known_holds_from_its_version_on() {
        run_simulated(SimOptions::default(), async |shard| {
            let first = Undeleted::new(&Cache::new(1 << 20), shard.disk()).next();
            let (second, third) = (first.next(), first.next().next());
            second.note(&key(1), DeletionTime::LIVE);
            let none_since =
                |number| [&first, &second, &third].map(|set| set.of(key(number).view()).none_since);
            let is_somewhere =
                |number| [&first, &second, &third].map(|set| set.of(key(number).view()).is_somewhere);
            assert_eq!(none_since(1), [0, 2, 2]);
            assert_eq!(none_since(2), [0; 3]);
            first.note(&key(1), DeletionTime::LIVE);
            assert_eq!(none_since(1), [0, 2, 2], "the later version knows more");
            third.note(&key(1), DELETED);
            assert_eq!((none_since(1), is_somewhere(1)), ([0, 2, 2], [false, false, true]));
            second.note(&key(2), DELETED);
            assert_eq!((none_since(2), is_somewhere(2)), ([0; 3], [false, true, false]));
            third.note(&key(2), DeletionTime::LIVE);
            assert_eq!((none_since(2), is_somewhere(2)), ([0, 0, 3], [false, true, false]));
        })
        .unwrap();
    }

    #[test]
    fn another_partition_of_the_same_token_is_another() {
        run_simulated(SimOptions::default(), async |shard| {
            let set = Undeleted::new(&Cache::new(1 << 20), shard.disk()).next();
            set.note(&key(1), DeletionTime::LIVE);
            let other = PartitionKey { token: key(1).token, bytes: Bytes::from(vec![2]) };
            assert_eq!(set.of(other.view()), Deletion::default());
        })
        .unwrap();
    }

    #[test]
    fn without_memory_nothing_is_known() {
        let set = Undeleted::default().next();
        set.note(&key(1), DeletionTime::LIVE);
        assert_eq!(set.of(key(1).view()), Deletion::default());
    }
}
