//! Filter.db: a bloom filter that says which keys are surely not in the file.
//!
//! ```text
//! u32 k, how many bits a key sets     u32 w, how many words of 64 bits follow
//! m*   w × u64 big-endian: bit i is bit i%64 of word i/64, counted from the least significant
//! n*+  8·w bytes: bit i is bit i%8 of byte i/8
//! ```
//!
//! With h the 128-bit hash of the key and m = 64·w, key bit i is |(h1 + i·h0) mod m|, in signed 64-bit
//! numbers that wrap around. Both layouts are read where they lie: a big-endian word turns the eight
//! bytes around, so that byte b stands at b XOR 7.

use std::path::Path;

use crate::decode::{Cursor, DecodeError};
use crate::{Result, Version};

/// Bytes before the bits.
const HEADER: usize = 8;
/// Far above any that a false-positive chance leads to: Cassandra stops at 20.
const MAX_HASHES: u32 = 128;

/// A bloom filter, as the bytes of its file.
///
/// Invariant: the file is a header and whole words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Filter {
    file: Box<[u8]>,
    hash_count: u32,
    /// 7 where words are big-endian, 0 where the bits are bytes.
    turn: usize,
}

impl Filter {
    /// Takes over the bytes of Filter.db.
    ///
    /// # Errors
    /// Where the bytes contradict the format.
    pub fn parse(path: &Path, bytes: impl Into<Box<[u8]>>, version: Version) -> Result<Filter> {
        let file = bytes.into();
        let hash_count = check(&file).map_err(|error| error.in_file(path, 0))?;
        let turn = if version.has_bytewise_filter() { 0 } else { 7 };
        Ok(Filter { file, hash_count, turn })
    }

    /// Whether the key with this hash ([`model::key::murmur3`]) can be in the file. `false` is certain.
    /// A filter of no bits lets all keys pass.
    #[inline]
    pub fn may_contain(&self, hash: [u64; 2]) -> bool {
        let bits = self.bits() as i64;
        if bits == 0 {
            return true;
        }
        let mut probe = hash[1] as i64;
        for _ in 0..self.hash_count {
            let bit = (probe % bits).unsigned_abs() as usize;
            if self.file[HEADER + ((bit >> 3) ^ self.turn)] & (1 << (bit & 7)) == 0 {
                return false;
            }
            probe = probe.wrapping_add(hash[0] as i64);
        }
        true
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

    /// Filter.db of these keys.
    fn encode(keys: &[&[u8]], hash_count: u32, words: u32, version: Version) -> Vec<u8> {
        let mut bits = vec![0u64; words as usize];
        let m = i64::from(words) * 64;
        for key in keys {
            let [step, mut probe] = murmur3(key).map(|half| half as i64);
            for _ in 0..hash_count {
                let bit = (probe % m).unsigned_abs();
                bits[(bit / 64) as usize] |= 1 << (bit % 64);
                probe = probe.wrapping_add(step);
            }
        }
        let word_bytes = |word: &u64| match version.has_bytewise_filter() {
            true => word.to_le_bytes(),
            false => word.to_be_bytes(),
        };
        let header = [hash_count.to_be_bytes(), words.to_be_bytes()].concat();
        [header, bits.iter().flat_map(word_bytes).collect()].concat()
    }

    #[test]
    fn both_layouts_find_what_is_there() {
        for version in Version::ALL {
            let filter = parse(&encode(&[b"a", b"bcd", b"\xff"], 5, 3, version), version).unwrap();
            assert_eq!((filter.bits(), filter.hash_count()), (192, 5));
            assert!([&b"a"[..], b"bcd", b"\xff"].iter().all(|key| filter.may_contain(murmur3(key))));
            let passed = (0..10_000u32).filter(|n| filter.may_contain(murmur3(&n.to_be_bytes()))).count();
            assert!(passed < 50, "{passed} of 10000 pass a filter of 15 bits in 192");
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
        let sample = encode(&[b"a"], 5, 2, Version::Nb);
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
