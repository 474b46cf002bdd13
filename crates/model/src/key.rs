//! Partition keys and their place on the ring.
//!
//! Partitions are ordered by token, then by the bytes of the key. The token is the first half of
//! Cassandra's `murmur3_x64_128` of the key, which is not the common one: it reads the bytes of the
//! tail as signed.

use std::cmp::Ordering;

use crate::Bytes;

/// A place on the ring of Murmur3Partitioner. `i64::MIN` belongs to no key: it is the ring's start.
pub type Token = i64;

/// A partition key with its token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartitionKey {
    /// The token of `bytes`.
    pub token: Token,
    /// The serialized key; several columns are joined as a composite.
    pub bytes: Bytes,
}

impl PartitionKey {
    /// The key with its token worked out.
    pub fn new(bytes: Bytes) -> PartitionKey {
        PartitionKey { token: token_of(&bytes), bytes }
    }
}

/// A partition key where it stands.
#[derive(Clone, Copy, Eq, PartialOrd, Ord, Debug)]
pub struct KeyView<'a> {
    /// The token of `bytes`.
    pub token: Token,
    /// The serialized key.
    pub bytes: &'a [u8],
}

impl PartitionKey {
    /// The same where it stands.
    #[inline]
    pub fn view(&self) -> KeyView<'_> {
        KeyView { token: self.token, bytes: &self.bytes }
    }
}

impl PartialEq for KeyView<'_> {
    #[inline(always)]
    fn eq(&self, other: &KeyView<'_>) -> bool {
        let (a, b) = (self.bytes, other.bytes);
        if self.token != other.token || a.len() != b.len() {
            return false;
        }
        // Most keys are a number: its two halves, which may overlap, are compared without a call.
        match a.len() {
            4..=8 => {
                let halves =
                    |bytes: &[u8]| (bytes.first_chunk::<4>().copied(), bytes.last_chunk::<4>().copied());
                halves(a) == halves(b)
            }
            _ => a == b,
        }
    }
}

impl PartialOrd for PartitionKey {
    fn partial_cmp(&self, other: &PartitionKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PartitionKey {
    fn cmp(&self, other: &PartitionKey) -> Ordering {
        self.view().cmp(&other.view())
    }
}

/// The token of a serialized partition key.
#[inline]
pub fn token_of(key: &[u8]) -> Token {
    token_of_hash(murmur3(key))
}

/// The token of a hash that [`murmur3`] gave: one hash serves token and bloom filter.
pub fn token_of_hash(hash: [u64; 2]) -> Token {
    match hash[0] as i64 {
        i64::MIN => i64::MAX,
        token => token,
    }
}

const C1: u64 = 0x87c3_7b91_1142_53d5;
const C2: u64 = 0x4cf5_ad43_2745_937f;

/// `murmur3_x64_128` with seed 0, the tail's bytes sign-extended as Cassandra does.
#[inline]
pub fn murmur3(key: &[u8]) -> [u64; 2] {
    // Most keys are a number. Of an empty one nothing is mixed in, which is what becomes of 0.
    if key.len() <= 8 { finish(mix_k1(signed_tail(key)), 0, key.len() as u64) } else { murmur3_of_long(key) }
}

fn murmur3_of_long(key: &[u8]) -> [u64; 2] {
    let (mut h1, mut h2) = (0u64, 0u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        let k = u128::from_le_bytes(*block);
        h1 = (h1 ^ mix_k1(k as u64)).rotate_left(27).wrapping_add(h2);
        h1 = h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 = (h2 ^ mix_k2((k >> 64) as u64)).rotate_left(31).wrapping_add(h1);
        h2 = h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let (low, high) = tail.split_at(tail.len().min(8));
    h2 ^= mix_k2(signed_tail(high));
    h1 ^= mix_k1(signed_tail(low));
    finish(h1, h2, key.len() as u64)
}

#[inline]
fn mix_k1(k: u64) -> u64 {
    k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

fn mix_k2(k: u64) -> u64 {
    k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

/// At most 8 bytes, least significant first; each is widened with its sign before it is shifted into place and XORed. So a
/// byte is inverted where an odd number of negative ones are before it.
#[inline]
fn signed_tail(bytes: &[u8]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let plain = little_endian(bytes);
    let negative = (plain >> 7) & ONES;
    let negative_before = (negative << 8).wrapping_mul(ONES);
    plain ^ (negative_before & ONES).wrapping_mul(0xff)
}

/// At most 8 bytes, without a loop.
#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let shift = 8 * (bytes.len() - 4);
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << shift
        }
        _ => match *bytes {
            [] => 0,
            [a] => u64::from(a),
            [a, b] => u64::from(u16::from_le_bytes([a, b])),
            [a, b, c, ..] => u64::from(u32::from_le_bytes([a, b, c, 0])),
        },
    }
}

#[inline]
fn finish(h1: u64, h2: u64, len: u64) -> [u64; 2] {
    let (h1, h2) = (h1 ^ len, h2 ^ len);
    let h1 = h1.wrapping_add(h2);
    let h2 = h2.wrapping_add(h1);
    let (h1, h2) = (avalanche(h1), avalanche(h2));
    let h1 = h1.wrapping_add(h2);
    [h1, h2.wrapping_add(h1)]
}

#[inline]
fn avalanche(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Tokens that Cassandra's `SELECT token(k)` gives.
    #[test]
    fn tokens_are_cassandras() {
        assert_eq!(token_of(&1i32.to_be_bytes()), -4_069_959_284_402_364_209);
        assert_eq!(token_of(&2i32.to_be_bytes()), -3_248_873_570_005_575_792);
        assert_eq!(token_of(b""), 0);
    }

    #[test]
    fn keys_of_all_lengths_are_hashed_alike() {
        let key: Vec<u8> = (0..40_u8).map(|byte| byte.wrapping_mul(0x6d) ^ byte << 4).collect();
        for (from, len) in (0..16).flat_map(|from| (0..=24).map(move |len| (from, len))) {
            let key = &key[from..from + len];
            assert_eq!(murmur3(key), murmur3_of_long(key), "{key:02x?}");
        }
    }

    /// Against the definition: byte by byte.
    #[test]
    fn tails_are_widened_with_their_signs() {
        let mut bytes = [0_u8; 8];
        for round in 0..1_u32 << 16 {
            // Each bit of a round is the sign of a byte.
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = (round >> at << 7) as u8 | (round.wrapping_mul(0x9e37_79b9) >> at) as u8 & 0x7f;
            }
            let tail = &bytes[..1 + (round >> 8) as usize % 8];
            let widened = tail.iter().enumerate().map(|(at, &byte)| (byte as i8 as i64 as u64) << (8 * at));
            assert_eq!(signed_tail(tail), widened.fold(0, |tail, byte| tail ^ byte), "{tail:02x?}");
        }
    }

    #[test]
    fn keys_stand_in_the_order_of_their_tokens() {
        let keys: BTreeSet<PartitionKey> =
            (0..50_u8).map(|key| PartitionKey::new(Bytes::from(vec![key]))).collect();
        assert!(keys.iter().zip(keys.iter().skip(1)).all(|(a, b)| a.token < b.token && a.view() < b.view()));
        let [one, other] = [&b"a"[..], b"b"].map(|bytes| KeyView { token: 7, bytes });
        assert!(one < other);
        let bytes: Vec<u8> = (0..20).collect();
        for (len, at) in (0..=20).flat_map(|len| (0..len).map(move |at| (len, at))) {
            let [same, mut changed] = [(); 2].map(|()| bytes[..len].to_vec());
            changed[at] ^= 1;
            let [key, same, changed] =
                [&bytes[..len], &same, &changed].map(|bytes| KeyView { token: 7, bytes });
            let shorter = KeyView { bytes: &key.bytes[1..], ..key };
            assert!(key == same && key != changed && key != shorter && key != KeyView { token: 8, ..key });
        }
    }

    #[test]
    fn the_rings_start_belongs_to_no_key() {
        assert_eq!(token_of_hash([1 << 63, 0]), i64::MAX);
    }
}
