//! How many partitions there are, as an estimate that can be merged: a HyperLogLog of their keys.
//!
//! ```text
//! only ScyllaDB 3: u32 count, then u32 generation of each SSTable that this one was made of
//! u32 length, then the bytes of stream-lib's HyperLogLogPlus:
//! i32 −2     p   sp   kind                numbers without a fixed length are varints, 7 bits a
//! kind 0: length in bytes, registers      byte, least significant first
//! kind 1: count, then each hash, as the difference to the one before
//! registers: 2^p numbers of 5 bits, six to each big-endian u32, the first lowest; ScyllaDB: of 8 bits
//! hash       its first sp bits, 0; if the last sp − p of them are zero: these bits, 6 bits 63 − run, 1
//! ```
//!
//! A register has the longest run of its hashes: how many zeros follow the first p bits, plus 1.
//! Cassandra has p = 13 and sp = 25, and writes registers from about 6144 hashes on.

use super::Part;
use crate::Result;
use crate::decode::{Cursor, Decoded};
use crate::encode::Encode;

const VERSION: i32 = -2;
/// How many bits of a hash choose its register.
const P: u32 = 13;
/// How many bits of a hash are kept as long as there are few.
const SPARSE_P: u32 = 25;
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

/// Estimates how many different partitions a new SSTable has. It takes at most 36 KiB, and hashes each key
/// once.
#[derive(Clone, Debug)]
pub struct CardinalityBuilder {
    /// Those of [`SparseHashes`], until there are too many.
    sparse: Option<SparseHashes>,
    /// The longest run of each register. Empty as long as there are sparse hashes.
    registers: Vec<u8>,
}

impl Default for CardinalityBuilder {
    fn default() -> CardinalityBuilder {
        CardinalityBuilder { sparse: Some(SparseHashes::default()), registers: Vec::new() }
    }
}

impl CardinalityBuilder {
    /// Adds a serialized partition key.
    pub fn add(&mut self, key: &[u8]) {
        let hash = murmur2(key);
        let Some(sparse) = &mut self.sparse else {
            return raise(&mut self.registers, (hash >> (64 - P)) as usize, run_length(hash));
        };
        if sparse.is_full_with(sparse_hash(hash)) {
            self.registers = sparse.registers();
            self.sparse = None;
        }
    }

    /// The estimate of the keys so far.
    pub fn finish(self) -> Compaction {
        let mut bytes = Vec::new();
        bytes.put_i32(VERSION);
        put_varint(&mut bytes, P);
        put_varint(&mut bytes, SPARSE_P);
        match self.sparse {
            Some(sparse) => sparse.encode(&mut bytes),
            None => put_registers(&mut bytes, &self.registers),
        }
        Compaction { cardinality: bytes.into() }
    }
}

fn put_registers(bytes: &mut Vec<u8>, registers: &[u8]) {
    let words = registers.chunks(REGISTERS_PER_WORD);
    put_varint(bytes, 0);
    put_varint(bytes, 4 * words.len() as u32);
    for word in words {
        bytes.put_u32(word.iter().rev().fold(0, |word, &run| word << REGISTER_BITS | u32::from(run)));
    }
}

fn raise(registers: &mut [u8], register: usize, run: u32) {
    // A longer run does not fit; the chance of one is 2^-31.
    let run = run.min((1 << REGISTER_BITS) - 1) as u8;
    registers[register] = registers[register].max(run);
}

/// How many zeros follow the bits that choose the register, plus 1.
fn run_length(hash: u64) -> u32 {
    (hash << P | 1 << (P - 1)).leading_zeros() + 1
}

/// Hashes cut to [`SPARSE_P`] bits, and their runs where these bits do not tell them.
#[derive(Clone, Debug, Default)]
struct SparseHashes {
    /// One of each index, in the order of stream-lib's merges, which is not always that of the indexes.
    merged: Vec<i32>,
    recent: Vec<i32>,
}

impl SparseHashes {
    /// How many hashes are kept apart until they are merged.
    const RECENT: usize = 1537;
    /// With more hashes than these, registers are smaller.
    const MOST: usize = 6144;

    /// Adds a hash and tells whether that is too many.
    fn is_full_with(&mut self, hash: i32) -> bool {
        self.recent.push(hash);
        if self.recent.len() < SparseHashes::RECENT {
            return false;
        }
        self.merge();
        self.merged.len() > SparseHashes::MOST
    }

    fn merge(&mut self) {
        // The longest run of an index comes first, and is the one that stays.
        self.recent.sort_unstable_by_key(|&hash| (sparse_index(hash), hash << (31 - SPARSE_P + P)));
        self.recent.dedup_by_key(|hash| sparse_index(*hash));
        let (mut old, mut new) = (&self.merged[..], &self.recent[..]);
        let mut merged = Vec::with_capacity(old.len() + new.len());
        while let (Some(&a), Some(&b)) = (old.first(), new.first()) {
            let is_same = sparse_index(a) == sparse_index(b);
            merged.push(a.min(b));
            old = if is_same || a < b { &old[1..] } else { old };
            new = if is_same || b < a { &new[1..] } else { new };
        }
        merged.extend_from_slice(old);
        merged.extend_from_slice(new);
        self.merged = merged;
        self.recent.clear();
    }

    fn registers(&self) -> Vec<u8> {
        let mut registers = vec![0; 1 << P];
        for &hash in &self.merged {
            raise(&mut registers, sparse_index(hash) as usize >> (SPARSE_P - P), sparse_run(hash));
        }
        registers
    }

    fn encode(mut self, bytes: &mut Vec<u8>) {
        self.merge();
        put_varint(bytes, 1);
        put_varint(bytes, self.merged.len() as u32);
        let mut before = 0;
        for &hash in &self.merged {
            put_varint(bytes, hash.wrapping_sub(before) as u32);
            before = hash;
        }
    }
}

fn sparse_hash(hash: u64) -> i32 {
    let index = (hash >> (64 - SPARSE_P)) as i32;
    match index & ((1 << (SPARSE_P - P)) - 1) {
        0 => (index << 6 | (run_length(hash) ^ 63) as i32) << 1 | 1,
        _ => index << 1,
    }
}

/// The first bits of a hash.
fn sparse_index(hash: i32) -> u32 {
    let has_run = hash & 1 == 1;
    hash as u32 >> if has_run { 7 } else { 1 }
}

fn sparse_run(hash: i32) -> u32 {
    match hash & 1 {
        1 => (hash as u32 >> 1 & 63) ^ 63,
        _ => (hash << (31 - SPARSE_P + P)).leading_zeros() + 1,
    }
}

/// MurmurHash2's 64-bit hash with seed 0, the tail's bytes sign-extended as Cassandra does.
fn murmur2(key: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    const R: u32 = 47;
    let (words, tail) = key.as_chunks::<8>();
    let mut hash = M.wrapping_mul(key.len() as u64);
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(M);
        hash = (hash ^ (word ^ word >> R).wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let signed = |(at, &byte): (usize, &u8)| (byte as i8 as i64 as u64) << (8 * at);
        hash = tail.iter().enumerate().map(signed).fold(hash, |hash, bits| hash ^ bits).wrapping_mul(M);
    }
    hash = (hash ^ hash >> R).wrapping_mul(M);
    hash ^ hash >> R
}

/// Seven bits a byte, least significant first.
fn put_varint(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.put_u8(number as u8);
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

    fn compaction_of(count: u64) -> Compaction {
        let mut builder = CardinalityBuilder::default();
        (0..count).for_each(|i| builder.add(format!("key {i}").as_bytes()));
        builder.finish()
    }

    #[test]
    fn many_keys_are_estimated() {
        for n in [1_000, 6_000, 7_000, 20_000, 1_000_000] {
            let found = compaction_of(n).estimated_partitions().unwrap();
            assert!(found.abs_diff(n) < n / 25, "{found} for {n}");
        }
    }

    /// Length and CRC32 of what stream-lib 2.5.2's `HyperLogLogPlus(13, 25)` gives for these keys, and
    /// Cassandra 5.0.5's `hash2_64`.
    #[test]
    fn estimates_are_cassandras() {
        for (count, len, crc) in [
            (0, 8, 0x3a19_a72c),
            (1, 12, 0x1c34_a0f5),
            (1_536, 4_180, 0x5728_7ca5),
            (1_537, 4_182, 0xb016_1315),
            (1_538, 4_185, 0x5577_1ced),
            (4_000, 9_492, 0x2ff2_c627),
            (6_148, 5_473, 0xaccc_b4ec),
            (7_000, 5_473, 0x8fd7_c5a5),
            (100_000, 5_473, 0x1ac7_39c9),
        ] {
            let bytes = compaction_of(count).cardinality;
            assert_eq!((bytes.len(), crc32fast::hash(&bytes)), (len, crc), "{count} keys");
        }
        let hashes = [
            (&b""[..], 0),
            (b"\xff", 0x69b8_b619_127c_8fd4),
            (&[1, 2, 3, 4, 5, 6, 7], 0x9b33_2455_2555_b9f4),
            (&[1, 2, 3, 4, 5, 6, 7, 8], 0x88b2_a580_3544_86b7),
            (b"\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a", 0xc166_a3cd_8ca3_9152),
        ];
        for (key, hash) in hashes {
            assert_eq!(murmur2(key), hash, "{key:02x?}");
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
