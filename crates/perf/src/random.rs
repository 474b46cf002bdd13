//! Numbers that look random, and are the same in every run.

use std::cell::Cell;

/// A generator.
#[derive(Debug)]
pub(crate) struct Random(Cell<u64>);

impl Random {
    /// The generator of a seed.
    pub(crate) fn new(seed: u64) -> Random {
        Random(Cell::new(seed))
    }

    /// A number below `end`.
    pub(crate) fn below(&self, end: u32) -> u32 {
        let state = self.0.get();
        let state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0.set(state);
        // The upper bits are the better ones.
        (((state >> 32) * u64::from(end)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_come_about_as_often() {
        let random = Random::new(1);
        let mut counts = [0; 10];
        (0..10_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
