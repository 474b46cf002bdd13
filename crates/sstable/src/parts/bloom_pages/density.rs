//! How many keys share a line, and how many bits each of them sets.
//!
//! How many keys a line gets is chance: with a mean of λ it is n with the probability of Poisson, λⁿ·e^(−λ)/n!. With n keys
//! of k bits a bit of the 512 is set with 1 − (1 − 1/512)^(n·k), and another key passes with the k-th power of that. The
//! most keys for a chance are those with which the mean over all n does not exceed it, with the best k.
//!
//! | chance | k | λ | bits a key |
//! |---|---|---|---|
//! | 0.1 | 3 | 106.0 | 4.8 |
//! | 0.01 | 6 | 51.7 | 9.9 |
//! | 0.001 | 9 | 33.1 | 15.5 |

use super::line::{BITS, MAX_HASHES};

/// The mean of keys a line beyond which nothing is gained, whatever the chance.
const MOST_KEYS: f64 = 600.0;
/// λ is known to this, in keys.
const PRECISION: f64 = 0.01;

/// How a filter is filled.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Density {
    /// Bits that a key sets.
    pub(super) hashes: u8,
    /// The mean of keys a line.
    pub(super) keys: f64,
}

impl Density {
    /// The most keys that let others pass with a chance of no more than this, above 0 and below 1.
    pub(super) fn of(fp_chance: f64) -> Density {
        let mut best = Density { hashes: 1, keys: most_keys(1, fp_chance) };
        for hashes in 2..=MAX_HASHES {
            let keys = most_keys(hashes, fp_chance);
            // There is one best number, with fewer keys on both sides of it.
            if keys <= best.keys {
                break;
            }
            best = Density { hashes, keys };
        }
        best
    }
}

/// With so many bits a key, by halves.
fn most_keys(hashes: u8, fp_chance: f64) -> f64 {
    let (mut low, mut high) = (0.0, MOST_KEYS);
    while high - low > PRECISION {
        let keys = (low + high) / 2.0;
        if chance(hashes, keys) <= fp_chance {
            low = keys;
        } else {
            high = keys;
        }
    }
    low
}

/// With which chance another key passes.
fn chance(hashes: u8, mean: f64) -> f64 {
    let clear = 1.0 - 1.0 / f64::from(BITS);
    // Beyond ten standard deviations there is nothing.
    let most = (mean + 10.0 * mean.sqrt() + 20.0) as i32;
    let (mut probability, mut sum) = ((-mean).exp(), 0.0);
    for keys in 0..most {
        let set = 1.0 - clear.powi(keys * i32::from(hashes));
        sum += probability * set.powi(i32::from(hashes));
        probability *= mean / f64::from(keys + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn densities_are_those_of_the_table() {
        for (fp_chance, hashes, keys) in
            [(0.1, 3, 105.97), (0.01, 6, 51.74), (0.001, 9, 33.06), (0.0001, 12, 23.36)]
        {
            let density = Density::of(fp_chance);
            assert!(
                density.hashes == hashes && (density.keys - keys).abs() < 0.05,
                "{fp_chance}: {density:?}"
            );
        }
        assert!(Density::of(0.000_07).keys > 20.0);
        assert!((Density::of(0.99).hashes, Density::of(0.5).hashes) == (1, 1));
    }
}
