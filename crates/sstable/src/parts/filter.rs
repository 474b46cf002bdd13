//! Filter.db: a bloom filter that says which keys are surely not in the file.
//!
//! ```text
//! u32 k, how many bits a key sets     u32 w, how many words of 64 bits follow
//! m*   w × u64 big-endian: bit i is bit i%64 of word i/64, counted from the least significant
//! n*+  8·w bytes: bit i is bit i%8 of byte i/8
//! ```
//!
//! With h the 128-bit hash of the key and m = 64·w, key bit i is |(h1 + i·h0) mod m|, in signed 64-bit
//! numbers that wrap around. Both layouts are read and written where they lie: a big-endian word turns
//! the eight bytes around, so that byte b stands at b XOR 7.
//!
//! A new filter has as many bits as Cassandra gives it: the fewest whole ones a key that keep the chance
//! of false positives, and 20 more. A chance of 1 is kept by no filter at all, and then there is no file.

use std::path::Path;

use crate::decode::{Cursor, DecodeError};
use crate::encode::Encode;
use crate::{Result, Version};

/// Bytes before the bits.
const HEADER: usize = 8;
/// Far above any that a false-positive chance leads to: Cassandra stops at 20.
const MAX_HASHES: u32 = 128;
/// The most bits for each key in a new filter.
const MAX_BITS_PER_KEY: u32 = 20;
/// Bits that a new filter has besides those for its keys.
const SPARE_BITS: u64 = 20;
/// The greatest number of words that Java counts, 16 GiB.
const MAX_WORDS: u64 = i32::MAX as u64;

/// A bloom filter, as the bytes of its file.
///
/// Invariant: the file is a header and whole words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    file: Box<[u8]>,
    hash_count: u32,
    /// 7 where words are big-endian, 0 where the bits are bytes.
    turn: usize,
    /// 2⁶⁴ divided by the number of bits: remainders by multiplication. 0 where there are no bits.
    reciprocal: u64,
}

impl Filter {
    /// Takes over the bytes of Filter.db.
    ///
    /// # Errors
    /// Where the bytes contradict the format.
    pub fn parse(path: &Path, bytes: impl Into<Box<[u8]>>, version: Version) -> Result<Filter> {
        let file = bytes.into();
        let hash_count = check(&file).map_err(|error| error.in_file(path, 0))?;
        Ok(Filter::new(file, hash_count, version))
    }

    fn new(file: Box<[u8]>, hash_count: u32, version: Version) -> Filter {
        let turn = if version.has_bytewise_filter() { 0 } else { 7 };
        let filter = Filter { file, hash_count, turn, reciprocal: 0 };
        let reciprocal = (1_u128 << 64).checked_div(u128::from(filter.bits())).unwrap_or(0);
        Filter { reciprocal: reciprocal as u64, ..filter }
    }

    /// Whether the key with this hash ([`model::key::murmur3`]) can be in the file. `false` is certain.
    /// A filter of no bits lets all keys pass.
    #[inline]
    pub fn may_contain(&self, hash: [u64; 2]) -> bool {
        self.bits() == 0 || self.places(hash).all(|(at, bit)| self.file[at] & bit != 0)
    }

    /// How many bits the filter has.
    #[inline]
    pub fn bits(&self) -> u64 {
        (self.file.len() - HEADER) as u64 * 8
    }

    /// How many bits a key sets.
    pub fn hash_count(&self) -> u32 {
        self.hash_count
    }

    /// What the filter holds in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Filter>() + self.file.len()
    }

    /// The share of keys not in the file that pass, from 0 to 1, worked out from the bits that are set.
    /// It reads every bit.
    pub fn false_positive_rate(&self) -> f64 {
        if self.bits() == 0 {
            return 1.0;
        }
        let set: u64 = self.file[HEADER..].iter().map(|byte| u64::from(byte.count_ones())).sum();
        (set as f64 / self.bits() as f64).powi(self.hash_count as i32)
    }

    /// The bytes of Filter.db.
    pub fn as_bytes(&self) -> &[u8] {
        &self.file
    }

    /// The bits that belong to this hash: the byte in the file and the bit in it. There must be bits.
    #[inline]
    fn places(&self, [step, first]: [u64; 2]) -> impl Iterator<Item = (usize, u8)> + use<> {
        let (bits, reciprocal, turn, step) = (self.bits(), self.reciprocal, self.turn, step as i64);
        let mut probe = first as i64;
        (0..self.hash_count).map(move |_| {
            let bit = remainder(probe.unsigned_abs(), bits, reciprocal) as usize;
            probe = probe.wrapping_add(step);
            (HEADER + ((bit >> 3) ^ turn), 1 << (bit & 7))
        })
    }
}

/// Makes the filter of a new SSTable.
#[derive(Clone, Debug)]
pub struct FilterBuilder {
    filter: Filter,
}

impl FilterBuilder {
    /// A filter for about this many keys that lets others pass with a chance of `fp_chance`; `None` where
    /// that is 1, as then all may pass.
    ///
    /// # Errors
    /// Those of [`check_fp_chance`], and where the filter would be larger than Cassandra can read.
    pub fn new(
        keys: u64,
        fp_chance: f64,
        version: Version,
    ) -> std::result::Result<Option<FilterBuilder>, FilterError> {
        check_fp_chance(fp_chance)?;
        if fp_chance == 1.0 {
            return Ok(None);
        }
        let (hash_count, bits_per_key) = hashes_and_bits(fp_chance);
        let bits = keys.saturating_mul(u64::from(bits_per_key)).saturating_add(SPARE_BITS);
        let words = bits.div_ceil(64);
        if words > MAX_WORDS {
            return Err(FilterError::TooLarge { keys, fp_chance });
        }
        let mut file = Vec::with_capacity(HEADER + words as usize * 8);
        file.put_u32(hash_count);
        file.put_u32(words as u32);
        file.resize(HEADER + words as usize * 8, 0);
        Ok(Some(FilterBuilder { filter: Filter::new(file.into_boxed_slice(), hash_count, version) }))
    }

    /// Adds the key with this hash ([`model::key::murmur3`]).
    #[inline]
    pub fn add(&mut self, hash: [u64; 2]) {
        for (at, bit) in self.filter.places(hash) {
            self.filter.file[at] |= bit;
        }
    }

    /// Adds all of these.
    pub fn add_all(&mut self, hashes: &[[u64; 2]]) {
        hashes.iter().for_each(|&hash| self.add(hash));
    }

    /// The filter of the keys so far.
    pub fn finish(self) -> Filter {
        self.filter
    }
}

/// The remainder of a number that is divided by another one, of which the reciprocal is known. Several of these are worked
/// out at a time, where divisions would wait for each other.
#[inline]
fn remainder(number: u64, by: u64, reciprocal: u64) -> u64 {
    // As the reciprocal is rounded down, the quotient may be too small by one.
    let quotient = ((u128::from(number) * u128::from(reciprocal)) >> 64) as u64;
    let rest = number - quotient * by;
    if rest >= by { rest - by } else { rest }
}

/// Why no filter can be made.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum FilterError {
    /// The chance is not one that Cassandra takes.
    #[error(
        "the bloom filter's false-positive chance must be above {least} and at most 1, but is {0}",
        least = least_fp_chance()
    )]
    Chance(f64),
    /// There are too many keys.
    #[error("a bloom filter of {keys} keys with a false-positive chance of {fp_chance} is above 16 GiB")]
    TooLarge {
        /// How many keys there should be.
        keys: u64,
        /// The chance that another key passes.
        fp_chance: f64,
    },
}

/// That a table may have this chance of false positives, from 0 to 1.
///
/// # Errors
/// Where Cassandra refuses the table: a chance of 0.0000671 and less is more than 20 bits a key keep.
pub fn check_fp_chance(fp_chance: f64) -> std::result::Result<(), FilterError> {
    let is_kept = fp_chance > least_fp_chance() && fp_chance <= 1.0;
    if is_kept { Ok(()) } else { Err(FilterError::Chance(fp_chance)) }
}

/// The chance that cannot be gone below: that of the most bits for each key.
fn least_fp_chance() -> f64 {
    fp_chance(MAX_BITS_PER_KEY, best_hashes(MAX_BITS_PER_KEY))
}

/// How many bits a key sets, and how many there are for each: the fewest bits that keep the chance, then
/// the fewest hashes. The chance is above the least one.
fn hashes_and_bits(wanted: f64) -> (u32, u32) {
    // Two hashes over one bit a key make no good filter, but it is Cassandra's.
    if wanted >= fp_chance(2, 1) {
        return (2, 1);
    }
    let keeps = |bits: &u32| fp_chance(*bits, best_hashes(*bits)) <= wanted;
    let bits = (2..=MAX_BITS_PER_KEY).find(keeps).expect("the chance is above the least one");
    let least = (1..=best_hashes(bits)).rev().take_while(|&hashes| fp_chance(bits, hashes) <= wanted).last();
    (least.expect("the best number of hashes keeps the chance"), bits)
}

/// With how many hashes that many bits a key let the fewest other keys pass: the least such number.
fn best_hashes(bits: u32) -> u32 {
    let best = |a: &u32, b: &u32| fp_chance(bits, *a).total_cmp(&fp_chance(bits, *b));
    (1..=MAX_BITS_PER_KEY).min_by(best).expect("there are numbers to choose from")
}

/// The chance of false positives with that many bits for each key and that many hashes: (1 − e^(−k/b))^k.
/// Cassandra has a table of it with three significant digits, by which it decides.
fn fp_chance(bits: u32, hashes: u32) -> f64 {
    if (bits, hashes) == (5, 3) {
        // The one entry of which the table has two digits.
        return 0.092;
    }
    let ratio = f64::from(hashes) / f64::from(bits);
    let chance = (1.0 - (-ratio).exp()).powi(hashes as i32);
    format!("{chance:.2e}").parse().expect("a number that was just printed is one")
}

/// The number of hashes, from the header of a file that is sound.
fn check(file: &[u8]) -> std::result::Result<u32, DecodeError> {
    let mut cursor = Cursor::new(file);
    let hash_count = cursor.u32()?;
    if hash_count == 0 || hash_count > MAX_HASHES {
        return Err(DecodeError::Invalid {
            at: 0,
            what: "the number of hashes of a key is not within 1 to 128",
        });
    }
    let words = cursor.count(8)?;
    cursor.skip(words * 8)?;
    cursor.end()?;
    Ok(hash_count)
}

#[cfg(test)]
mod tests {
    use model::key::murmur3;
    use proptest::prelude::*;

    use super::*;
    use crate::parts::samples::{self, survives_corruption};

    fn parse(bytes: &[u8], version: Version) -> Result<Filter> {
        Filter::parse(Path::new("me-1-big-Filter.db"), bytes, version)
    }

    /// The filter of these keys with a chance of 0.01.
    fn filter_of(keys: &[&[u8]], version: Version) -> Filter {
        let mut builder = FilterBuilder::new(keys.len() as u64, 0.01, version).unwrap().unwrap();
        keys.iter().for_each(|key| builder.add(murmur3(key)));
        builder.finish()
    }

    #[test]
    fn both_layouts_find_what_is_there() {
        for version in Version::ALL {
            let made = filter_of(&[b"a", b"bcd", b"\xff"], version);
            let filter = parse(made.as_bytes(), version).unwrap();
            assert_eq!(filter, made);
            assert_eq!((filter.bits(), filter.hash_count()), (64, 5));
            assert!([&b"a"[..], b"bcd", b"\xff"].iter().all(|key| filter.may_contain(murmur3(key))));
            let passed = (0..10_000u32).filter(|n| filter.may_contain(murmur3(&n.to_be_bytes()))).count();
            assert!(passed < 100, "{passed} of 10000 pass a filter of 15 bits in 64");
        }
    }

    proptest! {
        #[test]
        fn remainders_are_those_of_a_division(number in any::<u64>(), words in 1..=MAX_WORDS, few in 1..100_u64) {
            for by in [64 * words, 64 * few] {
                let reciprocal = ((1_u128 << 64) / u128::from(by)) as u64;
                for number in [number, number / by * by, (number / by * by).wrapping_sub(1), 1 << 63, u64::MAX] {
                    prop_assert_eq!(remainder(number, by, reciprocal), number % by);
                }
            }
        }
    }

    #[test]
    fn a_filter_without_bits_lets_all_pass() {
        let filter = parse(&[0, 0, 0, 5, 0, 0, 0, 0], Version::Me).unwrap();
        assert!(filter.may_contain([1, 2]));
        assert_eq!(filter.false_positive_rate(), 1.0);
    }

    #[test]
    fn wrong_bytes_are_refused() {
        let sample = filter_of(&[b"a", b"b", b"c", b"d", b"e"], Version::Nb).as_bytes().to_vec();
        let error = parse(&sample[..16], Version::Nb).unwrap_err().to_string();
        assert_eq!(
            error,
            "me-1-big-Filter.db: corrupt at offset 4: a count is above what the rest of the bytes can hold"
        );
        assert!(parse(&[&sample[..], b"x"].concat(), Version::Nb).is_err());
        assert!(parse(&[0; 8], Version::Nb).is_err());
        survives_corruption(&sample, |bytes| {
            if let Ok(filter) = parse(bytes, Version::Nb) {
                filter.may_contain([u64::MAX, 1 << 63]);
            }
        });
    }

    /// What `BloomCalculations` chooses, worked out by hand from its table.
    #[test]
    fn a_chance_decides_bits_and_hashes() {
        let chosen = [
            (1.0 - 1e-9, (2, 1)),
            (0.393, (2, 1)),
            (0.3, (1, 3)),
            (0.237, (2, 3)),
            (0.1, (3, 5)),
            (0.092, (3, 5)),
            (0.0919, (2, 6)),
            (0.01, (5, 10)),
            (0.001, (7, 15)),
            (0.0001, (10, 20)),
            (0.000_067_2, (14, 20)),
        ];
        for (chance, expected) in chosen {
            assert_eq!(hashes_and_bits(chance), expected, "{chance}");
        }
    }

    #[test]
    fn some_filters_are_none() {
        let of = |chance| FilterBuilder::new(10, chance, Version::Oa).map(|builder| builder.is_some());
        assert_eq!((of(1.0), of(0.01)), (Ok(false), Ok(true)));
        for chance in [0.0, -1.0, 6.71e-5, 1.5, f64::NAN] {
            let expected = format!(
                "the bloom filter's false-positive chance must be above 0.0000671 and at most 1, but is {chance}"
            );
            assert_eq!(of(chance).unwrap_err().to_string(), expected);
        }
        let error = FilterBuilder::new(u64::MAX, 0.01, Version::Oa).unwrap_err().to_string();
        assert!(error.contains("18446744073709551615 keys") && error.contains("16 GiB"), "{error}");
        // 15 bits a key and 20 more: 65 bits are two words, 320 bits are five.
        let words =
            |keys| FilterBuilder::new(keys, 0.001, Version::Oa).unwrap().unwrap().finish().bits() / 64;
        assert_eq!([words(3), words(20)], [2, 5]);
        let empty = FilterBuilder::new(0, 0.1, Version::Oa).unwrap().unwrap().finish();
        assert_eq!(empty.as_bytes(), [0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    /// Filters that Cassandra wrote, from nothing but their keys and the chance that Statistics.db tells.
    #[test]
    fn real_filters_are_made_again() {
        for file in samples::real_files("Filter.db").iter().filter(|file| !file.is_scyllas()) {
            let name = file.path.display();
            let keys = samples::index_entries(&file.sibling("Index.db").unwrap());
            let chance = samples::statistics(file).validation.filter_fp_chance;
            let mut builder = FilterBuilder::new(keys.len() as u64, chance, file.version).unwrap().unwrap();
            keys.iter().for_each(|(key, _)| builder.add(murmur3(key)));
            assert!(builder.finish().as_bytes() == &file.bytes[..], "{name}");
        }
    }

    /// Every key of Index.db passes; of other keys, about as many as the bits that are set foretell.
    #[test]
    fn real_files_know_their_keys() {
        let (mut passed, mut expected, mut files) = (0, 0.0, 0);
        for file in samples::real_files("Filter.db") {
            let filter = Filter::parse(&file.path, &file.bytes[..], file.version).unwrap();
            for (key, _) in samples::index_entries(&file.sibling("Index.db").unwrap()) {
                assert!(filter.may_contain(murmur3(&key)), "{}: {key:02x?}", file.path.display());
            }
            // In very small filters the bits of a key are far from independent.
            if filter.bits() < 1000 {
                continue;
            }
            let strange = |n: &u32| filter.may_contain(murmur3(format!("strange key {n}").as_bytes()));
            passed += (0..20_000).filter(strange).count();
            expected += 20_000.0 * filter.false_positive_rate();
            files += 1;
        }
        // Only many keys say something about a rate.
        if expected > 500.0 {
            let ratio = passed as f64 / expected;
            assert!((0.8..1.25).contains(&ratio), "{passed} passed in {files} files, {expected} expected");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>, hash: [u64; 2]) {
            if let Ok(filter) = parse(&bytes, Version::Mc) {
                filter.may_contain(hash);
            }
        }
    }
}
