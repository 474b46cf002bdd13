//! A ribbon filter: the solution of an equation for each row, in little more room than what the equations tell.
//!
//! ```text
//! ribbon   n strips, 64·n slots of 8 bits
//! strip    8 × u64, least significant byte first: bit i of word j is bit j of slot i
//! row      the slots from `start` on whose bit is set in 64 coefficients, added without carry, give 8 bits of its hash
//! ```
//!
//! Whoever asks adds the same slots: those of a row that went in give its 8 bits, those of another do by chance, one in 256.
//! Slots are found by elimination, row by row, and then from the last one to the first. Where two rows contradict each other, all
//! begins again with another seed, and after some with more strips: 3 % more slots than rows are mostly enough for some thousands of
//! them, 7 % for 100,000. (Dillinger and Walzer, *Ribbon filter:
//! practically smaller than Bloom and Xor*, 2021.)

/// Bits that a slot has.
const BITS: usize = 8;
/// Slots of a strip.
const SLOTS: usize = u64::BITS as usize;
/// Bytes of a strip.
pub(super) const STRIP: usize = 8 * BITS;
/// So many seeds are tried with as many strips.
const SEEDS: u16 = 4;
/// Spreads what is in 64 bits: 2⁶⁴ divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// A ribbon that is finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ribbon {
    pub(super) seed: u16,
    /// Its strips, one after the other.
    pub(super) words: Vec<[u64; BITS]>,
}

/// The equation of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equation {
    /// The first of its slots, the coefficient of which is 1.
    start: usize,
    coefficients: u64,
    sum: u8,
}

impl Equation {
    /// That of the row with this hash in a ribbon of so many strips, at least one.
    #[inline]
    pub(super) fn of(hash: [u64; 2], seed: u16, strips: usize) -> Equation {
        let offset = u64::from(seed).wrapping_mul(GOLDEN);
        let (low, high) = (mix(hash[0].wrapping_add(offset)), mix(hash[1] ^ offset));
        let starts = (strips * SLOTS - (SLOTS - 1)) as u128;
        let start = ((u128::from(low) * starts) >> 64) as usize;
        Equation { start, coefficients: high | 1, sum: low as u8 }
    }

    /// The strip of the first slot; the others are in that one and the next.
    #[inline]
    pub(super) fn strip(&self) -> usize {
        self.start / SLOTS
    }

    /// Whether slots of two strips are asked for.
    #[inline]
    pub(super) fn spans_two(&self) -> bool {
        !self.start.is_multiple_of(SLOTS)
    }

    /// Whether it holds for these strips: that of the first slot, and the next, if slots of it are asked for.
    #[inline]
    pub(super) fn holds(&self, first: &[u8; STRIP], next: Option<&[u8; STRIP]>) -> bool {
        let shift = self.start % SLOTS;
        let word = |strip: &[u8; STRIP], bit: usize| u64::from_le_bytes(strip.as_chunks().0[bit]);
        (0..BITS).all(|bit| {
            let above =
                next.map_or(0, |next| word(next, bit).checked_shl((SLOTS - shift) as u32).unwrap_or(0));
            let slots = word(first, bit) >> shift | above;
            (slots & self.coefficients).count_ones() & 1 == u32::from(self.sum >> bit & 1)
        })
    }
}

impl Ribbon {
    /// Of the rows with these hashes; there is at least one. `None` where it would take twice as many slots as there are rows, which
    /// does not happen by chance.
    pub(super) fn of(hashes: &[[u64; 2]]) -> Option<Ribbon> {
        // What is likely to be enough grows with the number of digits.
        let spare = hashes.len() * (hashes.len().ilog2() as usize).saturating_sub(7) / 128;
        let mut strips = (hashes.len() + spare).div_ceil(SLOTS);
        let most = 2 * strips;
        while strips <= most {
            if let Some(ribbon) = (0..SEEDS).find_map(|seed| Ribbon::solve(hashes, seed, strips)) {
                return Some(ribbon);
            }
            strips += 1 + strips / 64;
        }
        None
    }

    /// Its strips, encoded.
    pub(super) fn strips(&self) -> impl Iterator<Item = [u8; STRIP]> {
        self.words.iter().map(|words| {
            let mut strip = [0; STRIP];
            let (bytes, _) = strip.as_chunks_mut();
            bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
            strip
        })
    }

    /// With this seed, unless rows contradict each other.
    fn solve(hashes: &[[u64; 2]], seed: u16, strips: usize) -> Option<Ribbon> {
        let mut equations = vec![(0_u64, 0_u8); strips * SLOTS];
        for &hash in hashes {
            let Equation { mut start, mut coefficients, mut sum } = Equation::of(hash, seed, strips);
            loop {
                let there = &mut equations[start];
                if there.0 == 0 {
                    *there = (coefficients, sum);
                    break;
                }
                (coefficients, sum) = (coefficients ^ there.0, sum ^ there.1);
                if coefficients == 0 {
                    // It follows from those before it, or contradicts them.
                    if sum == 0 { break } else { return None }
                }
                // Slots without an equation of their own come later: the first coefficient stays 1.
                let zeros = coefficients.trailing_zeros();
                coefficients >>= zeros;
                start += zeros as usize;
            }
        }
        Some(Ribbon { seed, words: substitute(&equations, strips) })
    }
}

/// The slots, from the last one to the first: what an equation says of its first slot follows from those behind it.
fn substitute(equations: &[(u64, u8)], strips: usize) -> Vec<[u64; BITS]> {
    let mut words = vec![[0; BITS]; strips];
    // Of each bit, that of the 64 slots behind the one that is looked at, the next of them lowest.
    let mut behind = [0_u64; BITS];
    for (slot, &(coefficients, sum)) in equations.iter().enumerate().rev() {
        let strip = &mut words[slot / SLOTS];
        for (bit, (behind, word)) in behind.iter_mut().zip(strip).enumerate() {
            let others = (*behind & coefficients >> 1).count_ones() as u8;
            let value = u64::from((others ^ sum >> bit) & 1);
            *behind = *behind << 1 | value;
            *word |= value << (slot % SLOTS);
        }
    }
    words
}

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 32).wrapping_mul(GOLDEN);
    bits ^ bits >> 29
}

#[cfg(test)]
mod tests {
    use model::key::murmur3;
    use proptest::prelude::*;

    use super::*;

    fn hash(row: u64) -> [u64; 2] {
        murmur3(&row.to_be_bytes())
    }

    fn has(ribbon: &Ribbon, strips: &[[u8; STRIP]], row: u64) -> bool {
        let equation = Equation::of(hash(row), ribbon.seed, strips.len());
        let next = equation.spans_two().then(|| &strips[equation.strip() + 1]);
        equation.holds(&strips[equation.strip()], next)
    }

    /// Ribbon of so many rows: how many slots there are for each, and the share of others that pass.
    fn fill(count: u64) -> (f64, f64) {
        let hashes: Vec<_> = (0..count).map(hash).collect();
        let ribbon = Ribbon::of(&hashes).unwrap();
        let strips: Vec<_> = ribbon.strips().collect();
        assert!((0..count).all(|row| has(&ribbon, &strips, row)));
        let others = 20_000;
        let passed = (count..count + others).filter(|&row| has(&ribbon, &strips, row)).count();
        ((strips.len() * SLOTS) as f64 / count as f64, passed as f64 / others as f64)
    }

    #[test]
    fn all_rows_pass_and_one_of_256_others() {
        for (count, most_slots) in
            [(1, 64.0), (64, 2.0), (400, 1.3), (1000, 1.1), (2600, 1.06), (65_536, 1.09)]
        {
            let (slots, passed) = fill(count);
            assert!(slots <= most_slots, "{count} rows: {slots} slots each");
            assert!((0.0025..0.0055).contains(&passed), "{count} rows: {passed} of others");
        }
    }

    #[test]
    fn one_row_many_times_is_one_row() {
        let ribbon = Ribbon::of(&[hash(5); 500]).unwrap();
        let strips: Vec<_> = ribbon.strips().collect();
        assert!(has(&ribbon, &strips, 5));
        assert!((6..1006).filter(|&row| has(&ribbon, &strips, row)).count() < 30);
    }

    /// What [`mix`] makes this of, of numbers below 2²⁹.
    fn unmix(mixed: u64) -> u64 {
        // Newton: each step doubles how many bits of the inverse are right.
        let inverse = (0..6).fold(GOLDEN, |inverse, _| {
            inverse.wrapping_mul(2_u64.wrapping_sub(GOLDEN.wrapping_mul(inverse)))
        });
        let bits = mixed.wrapping_mul(inverse);
        bits ^ bits >> 32
    }

    /// Keys can be chosen so that no seed tells them apart: more rows than slots, all of which begin with the same one.
    #[test]
    fn what_cannot_be_solved_ends() {
        let begin_alike = |seed: u16| {
            let offset = u64::from(seed).wrapping_mul(GOLDEN);
            (0..300).map(move |row| [unmix(row).wrapping_sub(offset), hash(row)[1]])
        };
        let hashes: Vec<_> = (0..SEEDS).flat_map(begin_alike).collect();
        let equation = Equation::of(hashes[7], 0, 20);
        assert_eq!((equation.start, equation.sum), (0, 7));
        assert_eq!(Ribbon::of(&hashes), None);
    }

    /// What the format says, of numbers that were worked out by hand.
    #[test]
    fn equations_are_those_of_the_format() {
        assert_eq!(mix(1), GOLDEN ^ GOLDEN >> 29);
        let Equation { start, coefficients, sum } = Equation::of([0, 0], 0, 3);
        assert_eq!((start, coefficients, sum), (0, 1, 0));
        let Equation { start, coefficients, sum } = Equation::of([1, 1], 0, 3);
        let mixed = GOLDEN ^ GOLDEN >> 29;
        assert_eq!((coefficients, u64::from(sum)), (mixed | 1, mixed & 0xff));
        assert_eq!(start as u128, (u128::from(mixed) * 129) >> 64);
        // Slot 65 has the bits 0 and 6, which are in the second strip.
        let mut strips = [[0; STRIP]; 2];
        (strips[1][0], strips[1][48]) = (0b10, 0b10);
        let equation = Equation { start: 63, coefficients: 0b101, sum: 0b0100_0001 };
        assert!(equation.spans_two() && equation.strip() == 0);
        assert!(equation.holds(&strips[0], Some(&strips[1])));
        assert!(!Equation { coefficients: 0b001, ..equation }.holds(&strips[0], Some(&strips[1])));
        assert!(Equation { start: 64, coefficients: 0b10, ..equation }.holds(&strips[1], None));
    }

    proptest! {
        #[test]
        fn what_went_in_comes_out(rows in prop::collection::vec(any::<u64>(), 1..600)) {
            let hashes: Vec<_> = rows.iter().map(|&row| hash(row)).collect();
            let ribbon = Ribbon::of(&hashes).unwrap();
            let strips: Vec<_> = ribbon.strips().collect();
            prop_assert!(rows.iter().all(|&row| has(&ribbon, &strips, row)));
        }
    }
}
