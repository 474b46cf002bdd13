//! Which rows were asked for a short while ago, as far as a few thousand bytes can tell.
//!
//! Many rows are asked for once and never again: those need not go into a cache, nor cost the reads of more SSTables than
//! the newest.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};

use model::{PartitionKey, Position};

/// How many rows are remembered at the most.
const PLACES: usize = 1024;

/// Remembers a mark of each row in the place that its hash tells, until another row needs it.
pub(super) struct Recent([Cell<u32>; PLACES]);

impl Default for Recent {
    fn default() -> Recent {
        Recent([const { Cell::new(0) }; PLACES])
    }
}

impl Recent {
    /// Whether the row was noted a short while ago. From now on it was.
    pub(super) fn note(&self, key: &PartitionKey, row: &Position) -> bool {
        let mut hasher = DefaultHasher::new();
        key.token.hash(&mut hasher);
        row.prefix.values.iter().for_each(|value| value.as_deref().hash(&mut hasher));
        let hash = hasher.finish();
        let mark = (hash >> 32) as u32;
        self.0[hash as usize % PLACES].replace(mark) == mark
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Clustering};

    use super::*;

    #[test]
    fn a_row_is_known_until_others_take_its_place() {
        let recent = Recent::default();
        let key = PartitionKey::new(Bytes::from(vec![1]));
        let row = |number: u32| {
            Position::at(std::iter::once(number.to_be_bytes().to_vec()).collect::<Clustering>())
        };
        assert!(!recent.note(&key, &row(1)));
        assert!(recent.note(&key, &row(1)));
        let known = (0..100_000).filter(|number| recent.note(&key, &row(number + 2))).count();
        assert!(known < 10, "{known} that were never there");
        assert!(!recent.note(&key, &row(1)));
    }
}
