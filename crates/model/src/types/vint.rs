//! Variable-length integers.
//!
//! ```text
//! 0xxxxxxx                      7 bits
//! 10xxxxxx xxxxxxxx            14 bits: as many leading ones as bytes follow the first
//! 11111111 xxxxxxxx × 8        64 bits
//! ```
//!
//! Signed ones are zigzag-coded first: 0, -1, 1, -2, … become 0, 1, 2, 3, ….

/// Takes an unsigned vint off the front of `rest`; `None` if it is cut.
#[inline(always)]
pub(crate) fn take_unsigned(rest: &mut &[u8]) -> Option<u64> {
    if let Some(word) = rest.first_chunk() {
        let word = u64::from_be_bytes(*word);
        let more = word.leading_ones() as usize;
        if more < 8 {
            *rest = &rest[more + 1..];
            // First the leading ones and the zero behind them go, then what stands behind the number.
            return Some(word << (more + 1) >> (57 - 7 * more));
        }
    }
    take_any(rest)
}

/// The same of nine bytes, or where the bytes end soon.
#[inline(never)]
fn take_any(rest: &mut &[u8]) -> Option<u64> {
    let (&first, after) = rest.split_first()?;
    let more = first.leading_ones() as usize;
    let (bytes, tail) = after.split_at_checked(more)?;
    *rest = tail;
    // Of nine bytes, the first one has no bits of the number.
    let high = u64::from(first) & (0xff_u64 >> more.min(7));
    Some(bytes.iter().fold(if more < 8 { high } else { 0 }, |value, byte| value << 8 | u64::from(*byte)))
}

/// Takes a signed vint off the front of `rest`; `None` if it is cut.
#[inline]
pub(crate) fn take_signed(rest: &mut &[u8]) -> Option<i64> {
    take_unsigned(rest).map(|coded| (coded >> 1) as i64 ^ -((coded & 1) as i64))
}

/// Appends an unsigned vint, in as few bytes as hold it.
#[inline(always)]
pub(crate) fn put_unsigned(value: u64, out: &mut Vec<u8>) {
    // Most numbers are lengths and counts.
    if value < 0x80 { out.push(value as u8) } else { put_long(value, out) }
}

/// The same of a number that takes two bytes or more.
///
/// Eight bytes are put in any case, and those behind the number taken off again: a copy of fixed length is one instruction.
#[inline]
fn put_long(value: u64, out: &mut Vec<u8>) {
    let bits = 64 - value.leading_zeros() as usize;
    let more = (bits - 1) / 7;
    if more >= 8 {
        out.push(0xff);
        return out.extend_from_slice(&value.to_be_bytes());
    }
    let (end, leading_ones) = (out.len() + more + 1, !(u64::MAX >> more));
    out.extend_from_slice(&(value << (56 - 8 * more) | leading_ones).to_be_bytes());
    out.truncate(end);
}

/// Appends a signed vint.
#[inline]
pub(crate) fn put_signed(value: i64, out: &mut Vec<u8>) {
    put_unsigned((value << 1 ^ value >> 63) as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn as_few_bytes_as_hold_it() {
        for (value, bytes) in [
            (0u64, vec![0]),
            (127, vec![0x7f]),
            (128, vec![0x80, 0x80]),
            (0x3fff, vec![0xbf, 0xff]),
            (0x4000, vec![0xc0, 0x40, 0]),
            (1 << 56, vec![0xff, 1, 0, 0, 0, 0, 0, 0, 0]),
            ((1 << 56) - 1, vec![0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (u64::MAX, vec![0xff; 9]),
        ] {
            let mut out = Vec::new();
            put_unsigned(value, &mut out);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn numbers_of_every_length_stand_behind_each_other() {
        let (mut out, mut numbers) = (b"before".to_vec(), Vec::new());
        for bits in 0..64 {
            for value in [1 << bits, (1 << bits) - 1, u64::MAX >> bits] {
                let start = out.len();
                put_unsigned(value, &mut out);
                let fewest = (1..9).find(|bytes| value >> (7 * bytes) == 0).unwrap_or(9);
                assert_eq!(out.len() - start, fewest, "{value}");
                numbers.push(value);
            }
        }
        let mut rest = &out[6..];
        assert!(numbers.iter().all(|value| take_unsigned(&mut rest) == Some(*value)));
        assert!(out.starts_with(b"before") && rest.is_empty());
    }

    #[test]
    fn cut_vints_are_refused() {
        assert_eq!(take_unsigned(&mut &[][..]), None);
        assert_eq!(take_unsigned(&mut &[0xff, 1, 2][..]), None);
    }

    proptest! {
        #[test]
        fn signed_round_trip(value: i64) {
            let mut out = Vec::new();
            put_signed(value, &mut out);
            let mut rest = &out[..];
            prop_assert_eq!(take_signed(&mut rest), Some(value));
            prop_assert!(rest.is_empty());
        }
    }
}
