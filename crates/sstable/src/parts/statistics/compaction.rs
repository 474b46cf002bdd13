//! How many partitions there are, as an estimate that can be merged: a HyperLogLog of their keys.
//!
//! ```text
//! only ScyllaDB 3: u32 count, then u32 generation of each SSTable that this one was made of
//! u32 length, then the bytes of stream-lib's HyperLogLogPlus:
//! i32 −2     p   sp   kind                numbers without a fixed length are varints, 7 bits a
//! kind 0: length in bytes, registers      byte, least significant first
//! kind 1: count, then each hash, as the difference to the one before
//! registers: 2^p numbers of 5 bits, six to each big-endian u32, the first lowest; ScyllaDB: of 8 bits
//! ```

use super::Part;
use crate::Result;
use crate::decode::{Cursor, Decoded};
use crate::encode::Encode;

const VERSION: i32 = -2;
const REGISTER_BITS: usize = 5;
const REGISTERS_PER_WORD: usize = 6;

/// What helps to foretell how many partitions a compaction will write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Compaction {
    /// The estimate's bytes, a serialized HyperLogLogPlus. Empty where the file has no such part.
    pub cardinality: Box<[u8]>,
}

impl Compaction {
    pub(super) fn decode(part: &Part) -> Result<Compaction> {
        let bytes = cardinality(part.cursor()).or_else(|error| {
            let mut cursor = part.cursor();
            let ancestors = cursor.count(4).and_then(|count| cursor.skip(4 * count));
            ancestors.and_then(|()| cardinality(cursor)).map_err(|_| part.error(error))
        });
        Ok(Compaction { cardinality: bytes?.into() })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + self.cardinality.len());
        bytes.put_long_bytes(&self.cardinality);
        bytes
    }

    /// About how many partitions there are. `None` where the bytes are not in the format known here.
    ///
    /// Files of some thousand partitions and fewer give the same number as Cassandra. Larger ones give
    /// one that is as close to the truth, but need no tables of corrections.
    pub fn estimated_partitions(&self) -> Option<u64> {
        estimate(&mut Cursor::new(&self.cardinality)).ok().flatten()
    }
}

fn cardinality(mut cursor: Cursor<'_>) -> Decoded<&[u8]> {
    let bytes = cursor.long_bytes()?;
    cursor.end().map(|()| bytes)
}

fn estimate(cursor: &mut Cursor) -> Decoded<Option<u64>> {
    if cursor.i32()? != VERSION {
        return Ok(None);
    }
    let (p, sparse_p, kind, count) = (varint(cursor)?, varint(cursor)?, varint(cursor)?, varint(cursor)?);
    match kind {
        0 if (4..=25).contains(&p) => {
            Ok(registers(cursor.take(count as usize)?, 1 << p).map(|counts| dense(&counts)))
        }
        1 if (4..=31).contains(&sparse_p) => {
            Ok(Some(linear_count(f64::from(1u32 << sparse_p), f64::from(count))))
        }
        _ => Ok(None),
    }
}

/// Seven bits a byte, least significant first.
fn varint(cursor: &mut Cursor) -> Decoded<u32> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let byte = cursor.u8()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number as u32);
        }
    }
    cursor.invalid("a varint does not end")
}

/// How many keys there are if that many of `m` slots are taken.
fn linear_count(m: f64, taken: f64) -> u64 {
    (m * (m / (m - taken).max(1.0)).ln()).round() as u64
}

/// How many of the `m` registers have each value, or `None` where the bytes are not so many registers.
fn registers(bytes: &[u8], m: usize) -> Option<[u32; 1 << REGISTER_BITS]> {
    let mut counts = [0; 1 << REGISTER_BITS];
    if bytes.len() == m {
        bytes.iter().for_each(|&value| counts[usize::from(value).min((1 << REGISTER_BITS) - 1)] += 1);
        return Some(counts);
    }
    let words = bytes.as_chunks::<4>().0;
    if bytes.len() != 4 * m.div_ceil(REGISTERS_PER_WORD) {
        return None;
    }
    for register in 0..m {
        let word = u32::from_be_bytes(words[register / REGISTERS_PER_WORD]);
        let value = word >> (REGISTER_BITS * (register % REGISTERS_PER_WORD));
        counts[value as usize % counts.len()] += 1;
    }
    Some(counts)
}

/// Otmar Ertl's estimator ("New cardinality estimation algorithms for HyperLogLog sketches", 2017). It
/// has no bias at either end, and so needs no tables.
fn dense(counts: &[u32; 1 << REGISTER_BITS]) -> u64 {
    let m = counts.iter().map(|&count| f64::from(count)).sum::<f64>();
    let [zeros, middle @ .., full] = counts.map(f64::from);
    let mut z = m * tau(1.0 - full / m);
    for &count in middle.iter().rev() {
        z = 0.5 * (z + count);
    }
    z += m * sigma(zeros / m);
    (m * m / (2.0 * std::f64::consts::LN_2) / z).round() as u64
}

/// The share of registers that are zero, x + Σ x^(2^k)·2^(k−1).
fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

/// The share of registers that are full, (1 − x − Σ (1 − x^(2^−k))²·2^−k) / 3.
fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate_of(bytes: &[u8]) -> Option<u64> {
        Compaction { cardinality: bytes.into() }.estimated_partitions()
    }

    #[test]
    fn few_keys_are_counted() {
        let head = [0xff, 0xff, 0xff, 0xfe, 13, 25, 1];
        assert_eq!(estimate_of(&[&head[..], &[3, 1, 2, 3]].concat()), Some(3));
        assert_eq!(estimate_of(&[&head[..], &[0xe8, 0x07]].concat()), Some(1000));
        assert_eq!(estimate_of(&[&head[..], &[0]].concat()), Some(0));
    }

    /// Registers as `n` well mixed numbers set them.
    #[test]
    fn many_keys_are_estimated() {
        for n in [1_000u64, 20_000, 1_000_000] {
            let m = 1usize << 13;
            let mut values = vec![0u32; m];
            for i in 0..n {
                let hash = model::key::murmur3(&i.to_be_bytes())[0];
                let value = &mut values[(hash >> 51) as usize];
                *value = (*value).max((hash << 13 | 1 << 12).leading_zeros() + 1);
            }
            let word = |six: &[u32]| six.iter().rev().fold(0u32, |word, value| word << 5 | value);
            let words: Vec<u8> = values.chunks(6).flat_map(|six| word(six).to_be_bytes()).collect();
            let len = words.len();
            let varint = [len as u8 | 0x80, (len >> 7) as u8];
            let head = [0xff, 0xff, 0xff, 0xfe, 13, 25, 0];
            let found = estimate_of(&[&head[..], &varint, &words].concat()).unwrap();
            assert!(found.abs_diff(n) < n / 25, "{found} for {n}");
        }
    }

    #[test]
    fn scylla_has_a_byte_for_each_register() {
        let head = [0xff, 0xff, 0xff, 0xfe, 4, 0, 0, 16];
        assert_eq!(estimate_of(&[&head[..], &[0; 16]].concat()), Some(0));
        let five = [2, 1, 0, 0, 0, 4, 0, 0, 0, 0, 3, 0, 0, 0, 0, 1];
        assert_eq!(estimate_of(&[&head[..], &five].concat()), Some(6));
    }

    #[test]
    fn other_formats_give_no_estimate() {
        assert_eq!(estimate_of(&[]), None);
        assert_eq!(estimate_of(&[0, 0, 0, 13, 0, 0, 0, 25]), None);
        assert_eq!(estimate_of(&[0xff, 0xff, 0xff, 0xfe, 13, 25, 0, 4, 1, 2, 3, 4]), None);
        assert_eq!(estimate_of(&[0xff, 0xff, 0xff, 0xfe, 40, 40, 1, 1]), None);
    }
}
