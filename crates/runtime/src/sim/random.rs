//! Random numbers that a seed repeats: splitmix64.

/// A sequence of random numbers, the same for the same seed.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number out of all.
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 up to and without `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The upper half of the product: even enough for faults, and never as many as `bound`.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether something with this chance, from 0 to 1, happens.
    pub(crate) fn chance(&mut self, chance: f64) -> bool {
        // The upper 53 bits are a fraction that is exact in a double, and always below 1.
        let fraction = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        fraction < chance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_published_sequence() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn bounds_and_chances_are_kept() {
        let mut random = Random::new(7);
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert!((0..1000).all(|_| random.below(1) == 0));
        assert!((0..1000).all(|_| random.chance(1.0)));
        assert!((0..1000).all(|_| !random.chance(0.0)));
        let hits = (0..10_000).filter(|_| random.chance(0.25)).count();
        assert!((2300..2700).contains(&hits), "{hits} of 10000");
    }
}
