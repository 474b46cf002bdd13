//! What was asked for a short while ago, as far as a byte a place can tell.
//!
//! Much is asked for once and never again: that need not take the place of something else in a cache that is full.

use std::cell::RefCell;

/// Bytes of a cache for each place. Small rows come back, to be remembered, while some share of a full cache is replaced.
const BYTES_A_PLACE: usize = 4096;

/// The fewest places.
const FEWEST: usize = 1024;

/// Remembers a mark of each thing in the place that its hash tells, until another thing needs it. One in 256 of those that
/// were never there is taken for one that was.
pub(super) struct Recent(RefCell<Vec<u8>>);

impl Recent {
    /// For a cache of so many bytes.
    pub(super) fn new(capacity: usize) -> Recent {
        let places = (capacity / BYTES_A_PLACE).max(FEWEST).next_power_of_two();
        Recent(RefCell::new(vec![0; places]))
    }

    /// Whether the thing of this hash was noted a short while ago. From now on it was.
    pub(super) fn note(&self, hash: u64) -> bool {
        let mut places = self.0.borrow_mut();
        let at = hash as usize & (places.len() - 1);
        let mark = (hash >> 56) as u8;
        std::mem::replace(&mut places[at], mark) == mark
    }

    /// The memory that it takes, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.0.borrow().len()
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{DefaultHasher, Hasher};

    use super::*;

    /// Hashes of numbers.
    fn hash(number: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(number);
        hasher.finish()
    }

    #[test]
    fn a_thing_is_known_until_others_take_its_place() {
        let recent = Recent::new(1 << 20);
        assert_eq!(recent.memory_bytes(), FEWEST);
        assert!(!recent.note(hash(3)));
        assert!(recent.note(hash(3)));
        let known = (0..100_000).filter(|number| recent.note(hash(number + 8))).count();
        assert!((200..800).contains(&known), "{known} that were never there");
        assert!(!recent.note(hash(3)));
    }

    #[test]
    fn a_larger_cache_remembers_more() {
        let recent = Recent::new(256 << 20);
        assert_eq!(recent.memory_bytes(), 64 << 10);
        (0..10_000).for_each(|number| {
            recent.note(hash(number));
        });
        let known = (0..10_000).filter(|number| recent.note(hash(*number))).count();
        assert!(known > 8000, "{known} of 10,000");
    }
}
