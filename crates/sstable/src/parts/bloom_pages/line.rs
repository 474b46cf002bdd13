//! A bloom filter of one line of the CPU's cache.
//!
//! ```text
//! line   8 × u64, least significant byte first: bit i is bit i%64 of word i/64
//! ```
//!
//! The bits of a key are numbers of nine bits, taken from the top of the second half of its hash, seven of them; then seven
//! from the top of that half times 0x9E3779B97F4A7C15, and so on.

/// Bytes of a line.
pub(super) const LINE: usize = 64;
/// Bits of a line.
pub(super) const BITS: u32 = 8 * LINE as u32;
/// The most bits that a key sets.
pub(super) const MAX_HASHES: u8 = 20;
/// How many numbers of nine bits are in 64.
const AT_ONCE: u8 = 7;
/// Spreads what is in 64 bits anew: 2⁶⁴ divided by the golden ratio.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// 512 bits, which lie in one line of the CPU's cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(align(64))]
pub(super) struct Line([u64; 8]);

impl Line {
    /// Sets the bits of a key, from the second half of its hash.
    pub(super) fn add(&mut self, half: u64, hashes: u8) {
        each_bit(half, hashes, |word, bit| {
            self.0[word] |= bit;
            true
        });
    }

    /// Whether the bits of a key are set.
    #[inline]
    pub(super) fn has(&self, half: u64, hashes: u8) -> bool {
        each_bit(half, hashes, |word, bit| self.0[word] & bit != 0)
    }

    /// The line in these bytes.
    pub(super) fn decode(bytes: &[u8; LINE]) -> Line {
        let (words, _) = bytes.as_chunks();
        Line(std::array::from_fn(|word| u64::from_le_bytes(words[word])))
    }

    /// Its bytes.
    pub(super) fn encode(&self) -> [u8; LINE] {
        let mut bytes = [0; LINE];
        let (words, _) = bytes.as_chunks_mut();
        words.iter_mut().zip(self.0).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
        bytes
    }
}

/// Calls with the word and the bit in it for each bit of a key, as long as that returns true; whether it always did.
#[inline]
fn each_bit(half: u64, hashes: u8, mut visit: impl FnMut(usize, u64) -> bool) -> bool {
    let (mut group, mut left) = (half, hashes);
    loop {
        let mut numbers = group;
        for _ in 0..left.min(AT_ONCE) {
            if !visit((numbers >> 61) as usize, 1 << (numbers >> 55 & 63)) {
                return false;
            }
            numbers <<= 9;
        }
        if left <= AT_ONCE {
            return true;
        }
        left -= AT_ONCE;
        group = group.wrapping_mul(GOLDEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_that_the_format_says() {
        let mut line = Line::default();
        // 0b000000001, 0b000000010, …: the bits 1, 2, 4, 8, 16, 32 and 64.
        let half = (0..7).fold(0_u64, |half, number| half | 1 << (55 - 9 * number + number));
        line.add(half, 7);
        assert_eq!(line.0, [1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16 | 1 << 32, 1, 0, 0, 0, 0, 0, 0]);
        let mut eighth = Line::default();
        eighth.add(half, 8);
        let number = half.wrapping_mul(GOLDEN) >> 55;
        assert!(eighth.0[number as usize / 64] >> (number % 64) & 1 == 1);
        assert!(line.has(half, 7) && line.has(half, 3) && !line.has(half, 8) && !line.has(!half, 7));
        let bytes = line.encode();
        assert_eq!(bytes[..10], [0b0001_0110, 1, 1, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(Line::decode(bytes[..].try_into().unwrap()), line);
        assert_eq!((size_of::<Line>(), align_of::<Line>()), (LINE, LINE));
    }
}
