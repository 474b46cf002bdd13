//! Reading numbers and strings out of bytes at hand, without a panic on any input.
//!
//! ```text
//! unsigned vint   1xxxxxxx …: as many bytes follow as byte 0 has leading 1 bits, 0 to 8;
//!                 the bits after them and the bytes that follow are one big-endian number
//! signed vint     zigzag over that: 0, -1, 1, -2, … are 0, 1, 2, 3, …
//! ```
//!
//! All other integers are big-endian.

use std::path::Path;

use crate::Error;

/// Why bytes could not be decoded. The caller knows the file and adds it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The bytes at hand end too early: at least this many are needed from the cursor's start.
    Truncated {
        /// Bytes from the start of the cursor.
        needed: usize,
    },
    /// The bytes say something impossible.
    Invalid {
        /// Bytes from the start of the cursor.
        at: usize,
        /// What is wrong.
        what: &'static str,
    },
}

impl DecodeError {
    /// Where the bytes end or are wrong, from the start of the cursor.
    pub fn at(&self) -> usize {
        match *self {
            DecodeError::Truncated { needed } => needed,
            DecodeError::Invalid { at, .. } => at,
        }
    }

    /// The same error, told from `offset` bytes earlier.
    pub fn behind(self, offset: usize) -> DecodeError {
        match self {
            DecodeError::Truncated { needed } => DecodeError::Truncated { needed: offset + needed },
            DecodeError::Invalid { at, what } => DecodeError::Invalid { at: offset + at, what },
        }
    }

    /// In words.
    pub fn what(&self) -> &'static str {
        match self {
            DecodeError::Truncated { .. } => "the bytes end too early",
            DecodeError::Invalid { what, .. } => what,
        }
    }

    /// The error of a file, where the cursor began `base` bytes from the file's start.
    pub fn in_file(self, path: &Path, base: u64) -> Error {
        Error::corrupt(path, base.saturating_add(self.at() as u64), self.what())
    }
}

/// What a read of a [`Cursor`] gives.
pub type Decoded<T> = Result<T, DecodeError>;

/// What follows the vint that `bytes` begin with, whatever that says.
#[inline]
pub(crate) fn behind_vint(bytes: &[u8]) -> Decoded<&[u8]> {
    // The first byte of a vint begins with as many ones as bytes follow.
    let len = bytes.first().map_or(1, |first| 1 + first.leading_ones() as usize);
    bytes.get(len..).ok_or(DecodeError::Truncated { needed: len })
}

/// A place in bytes that are at hand. A failed read leaves it where it was.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    /// Bytes from the start.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The bytes that are left.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// An error at the place of the cursor.
    pub fn invalid<T>(&self, what: &'static str) -> Decoded<T> {
        Err(DecodeError::Invalid { at: self.at, what })
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Decoded<&'a [u8]> {
        match self.rest().get(..len) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => Err(DecodeError::Truncated { needed: self.at.saturating_add(len) }),
        }
    }

    /// Steps over `len` bytes.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Decoded<()> {
        self.take(len).map(|_| ())
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// The next byte, which stays; `None` at the end.
    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Decoded<u8> {
        self.array().map(|[byte]| byte)
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self) -> Decoded<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Four bytes, signed.
    #[inline]
    pub fn i32(&mut self) -> Decoded<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self) -> Decoded<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Eight bytes, signed.
    #[inline]
    pub fn i64(&mut self) -> Decoded<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Eight bytes of IEEE 754.
    pub fn f64(&mut self) -> Decoded<f64> {
        self.array().map(f64::from_be_bytes)
    }

    /// Four bytes, least significant first.
    pub fn u32_le(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// An unsigned vint.
    #[inline]
    pub fn vint(&mut self) -> Decoded<u64> {
        let rest = &self.bytes[self.at..];
        let Some(&first) = rest.first() else {
            return Err(DecodeError::Truncated { needed: self.at + 1 });
        };
        if first < 0x80 {
            self.at += 1;
            return Ok(u64::from(first));
        }
        self.long_vint(first)
    }

    fn long_vint(&mut self, first: u8) -> Decoded<u64> {
        let extra = first.leading_ones() as usize;
        let rest = &self.bytes[self.at..];
        if let (0..8, Some(word)) = (extra, rest.first_chunk()) {
            // Behind as many bits as there are bytes, which tell how many these are, each byte leaves seven.
            let bytes = extra as u32 + 1;
            self.at += bytes as usize;
            return Ok(u64::from_be_bytes(*word) << bytes >> (u64::BITS - 7 * bytes));
        }
        let Some(tail) = rest.get(1..=extra) else {
            return Err(DecodeError::Truncated { needed: self.at + 1 + extra });
        };
        let head = u64::from(first) & (0xff_u64 >> extra);
        self.at += 1 + extra;
        Ok(tail.iter().fold(head, |number, &byte| (number << 8) | u64::from(byte)))
    }

    /// A signed vint.
    #[inline]
    pub fn signed_vint(&mut self) -> Decoded<i64> {
        self.vint().map(|n| (n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// An unsigned vint that counts bytes or things which must be at hand in memory.
    #[inline]
    pub fn vint_len(&mut self) -> Decoded<usize> {
        let before = self.at;
        let len = self.vint()?;
        if len > i32::MAX as u64 {
            self.at = before;
            return self.invalid("a length is above 2 GiB");
        }
        Ok(len as usize)
    }

    /// How many things follow, from a u32. Each of them takes at least `least` bytes, so that a count
    /// which passes may be reserved for.
    pub fn count(&mut self, least: usize) -> Decoded<usize> {
        let mut probe = self.clone();
        let count = probe.u32()? as usize;
        if count.saturating_mul(least) > probe.remaining() {
            return self.invalid("a count is above what the rest of the bytes can hold");
        }
        *self = probe;
        Ok(count)
    }

    /// How many things follow, from a vint. Each of them takes at least `least` bytes.
    pub fn vint_count(&mut self, least: usize) -> Decoded<usize> {
        let mut probe = self.clone();
        let count = probe.vint_len()?;
        if count.saturating_mul(least) > probe.remaining() {
            return self.invalid("a count is above what the rest of the bytes can hold");
        }
        *self = probe;
        Ok(count)
    }

    /// That nothing is left.
    pub fn end(&self) -> Decoded<()> {
        if self.remaining() == 0 { Ok(()) } else { self.invalid("more bytes follow than there should be") }
    }

    /// Bytes behind a u16 length.
    pub fn short_bytes(&mut self) -> Decoded<&'a [u8]> {
        let mut probe = self.clone();
        let len = probe.u16()? as usize;
        let bytes = probe.take(len)?;
        *self = probe;
        Ok(bytes)
    }

    /// Bytes behind a u32 length.
    pub fn long_bytes(&mut self) -> Decoded<&'a [u8]> {
        let mut probe = self.clone();
        let len = probe.u32()? as usize;
        let bytes = probe.take(len)?;
        *self = probe;
        Ok(bytes)
    }

    /// Bytes behind a vint length.
    pub fn vint_bytes(&mut self) -> Decoded<&'a [u8]> {
        let mut probe = self.clone();
        let len = probe.vint_len()?;
        let bytes = probe.take(len)?;
        *self = probe;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vint(bytes: &[u8]) -> Decoded<u64> {
        Cursor::new(bytes).vint()
    }

    #[test]
    fn vints_of_every_length() {
        assert_eq!(vint(&[0x00]), Ok(0));
        assert_eq!(vint(&[0x7f]), Ok(127));
        assert_eq!(vint(&[0x80, 0x80]), Ok(128));
        assert_eq!(vint(&[0xbf, 0xff]), Ok(0x3fff));
        assert_eq!(vint(&[0xc0, 0x40, 0x00]), Ok(0x4000));
        assert_eq!(vint(&[0xfe, 1, 2, 3, 4, 5, 6, 7]), Ok(0x0001_0203_0405_0607));
        assert_eq!(vint(&[0xff; 9]), Ok(u64::MAX));
    }

    /// Whether what follows is at hand or not, the number is the same.
    #[test]
    fn vints_before_other_bytes() {
        let lens = [
            &[0xbf, 0xff][..],
            &[0xc0, 0x40, 0x00],
            &[0xfe, 1, 2, 3, 4, 5, 6, 7],
            &[0xff; 9],
            &[0xf0, 9, 8, 7, 6],
        ];
        for bytes in lens {
            let longer = [bytes, &[0xaa; 9]].concat();
            let mut cursor = Cursor::new(&longer);
            assert_eq!(cursor.vint(), vint(bytes));
            assert_eq!(cursor.position(), bytes.len());
            assert_eq!(behind_vint(&longer), Ok(&[0xaa; 9][..]));
            assert_eq!(behind_vint(bytes), Ok(&[][..]));
            let cut = &bytes[..bytes.len() - 1];
            assert_eq!(behind_vint(cut), Err(DecodeError::Truncated { needed: bytes.len() }));
        }
        assert_eq!(behind_vint(&[]), Err(DecodeError::Truncated { needed: 1 }));
    }

    #[test]
    fn signed_vints_zigzag() {
        let of = |bytes: &[u8]| Cursor::new(bytes).signed_vint();
        assert_eq!([of(&[0]), of(&[1]), of(&[2]), of(&[3])], [Ok(0), Ok(-1), Ok(1), Ok(-2)]);
        assert_eq!(of(&[0xff; 9]), Ok(i64::MIN));
    }

    #[test]
    fn what_is_cut_off_says_how_much_it_needs() {
        assert_eq!(vint(&[]), Err(DecodeError::Truncated { needed: 1 }));
        assert_eq!(vint(&[0xff, 1]), Err(DecodeError::Truncated { needed: 9 }));
        let mut cursor = Cursor::new(&[0, 3, b'a', b'b']);
        assert_eq!(cursor.short_bytes(), Err(DecodeError::Truncated { needed: 5 }));
        assert_eq!(cursor.position(), 0, "a failed read does not move");
    }
}
