//! Numbers and byte strings, read without a panic on any bytes, in one way only.
//!
//! ```text
//! vint     as in [`crate::types`]: 7 bits in one byte, 14 in two, …; a longer one than needed is refused
//! signed   zigzag over that
//! bytes    vint length, bytes
//! ```

use super::FlatError;
use super::layout::place_in;
use crate::Bytes;
use crate::types::vint::{put_unsigned, take_unsigned};

/// What decoding gives.
pub(super) type Decoded<T> = Result<T, Fault>;

/// What is wrong where the cursor is. It is as small as a pointer: results of numbers go through registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fault(pub(super) &'static &'static str);

/// So many things are reserved for whatever the bytes are.
const FEW: usize = 32;

/// A place in bytes; what is taken points into them.
///
/// It stays in registers where rows are visited, as long as nobody out of line is given a reference to it: such work is done
/// [apart](Cursor::apart).
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    owner: &'a Bytes,
    /// The owner's from some place on. What moves is one number: that costs a register less than a shrinking slice.
    bytes: &'a [u8],
    /// Where in these it is; not behind their end.
    at: usize,
}

impl<'a> Cursor<'a> {
    /// At `at` in `owner`.
    #[inline]
    pub(super) fn new(owner: &'a Bytes, at: usize) -> Cursor<'a> {
        Cursor::of(owner, &owner[at..])
    }

    /// Where the rest of `owner` begins.
    #[inline]
    pub(super) fn of(owner: &'a Bytes, rest: &'a [u8]) -> Cursor<'a> {
        Cursor { owner, bytes: rest, at: 0 }
    }

    /// Bytes from the start of the owner.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.owner.len() - self.left()
    }

    /// How many bytes are left.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// A fault here, with the place of it.
    #[inline]
    pub(super) fn error(&self, fault: Fault) -> FlatError {
        FlatError { at: self.at(), what: fault.0 }
    }

    /// Has something done that is seldom, or long enough for a call, with a copy that takes the place of this.
    #[inline]
    pub(super) fn apart<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mut copy = *self;
        let done = work(&mut copy);
        *self = copy;
        done
    }

    /// What is wrong here.
    #[inline]
    pub(super) fn invalid<T>(&self, what: &'static &'static str) -> Decoded<T> {
        Err(Fault(what))
    }

    /// A fault here unless `holds`.
    #[inline]
    pub(super) fn check(&self, holds: bool, what: &'static &'static str) -> Decoded<()> {
        if holds { Ok(()) } else { self.invalid(what) }
    }

    #[inline(always)]
    pub(super) fn u8(&mut self) -> Decoded<u8> {
        let Some(byte) = self.bytes.get(self.at) else {
            return self.invalid(&"the bytes end too early");
        };
        self.at += 1;
        Ok(*byte)
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let Some(array) = self.bytes[self.at..].first_chunk() else {
            return self.invalid(&"the bytes end too early");
        };
        self.at += N;
        Ok(*array)
    }

    #[inline(always)]
    pub(super) fn vint(&mut self) -> Decoded<u64> {
        // Most numbers are lengths and counts.
        match self.bytes.get(self.at) {
            Some(first) if *first < 0x80 => {
                self.at += 1;
                Ok(u64::from(*first))
            }
            _ => self.long_vint(),
        }
    }

    /// The same of a number that is not of one byte.
    #[inline(always)]
    fn long_vint(&mut self) -> Decoded<u64> {
        match self.bytes.get(self.at..self.at + 2) {
            Some(&[first, second]) if first < 0xc0 && (first > 0x80 || second >= 0x80) => {
                self.at += 2;
                Ok(u64::from(first & 0x3f) << 8 | u64::from(second))
            }
            _ => self.apart(Cursor::any_vint_called),
        }
    }

    #[inline(never)]
    fn any_vint_called(&mut self) -> Decoded<u64> {
        self.any_vint()
    }

    /// The same, for numbers that are seldom small.
    #[inline(always)]
    fn any_vint(&mut self) -> Decoded<u64> {
        let before = &self.bytes[self.at..];
        let mut rest = before;
        let Some(number) = take_unsigned(&mut rest) else {
            return self.invalid(&"the bytes end within a number");
        };
        let more = before.len() - rest.len() - 1;
        self.at += more + 1;
        self.check(more == 0 || number >> (7 * more) != 0, &"a number is longer than it need be")?;
        Ok(number)
    }

    /// Passes by a vint of which nobody wants to know more.
    #[inline(always)]
    pub(super) fn pass_vint(&mut self) -> Decoded<()> {
        let more = self.u8()?.leading_ones() as usize;
        self.check(more <= self.left(), &"the bytes end within a number")?;
        self.at += more;
        Ok(())
    }

    /// Zigzag undone.
    #[inline(always)]
    pub(super) fn signed(&mut self) -> Decoded<i64> {
        self.any_vint().map(|coded| (coded >> 1) as i64 ^ -((coded & 1) as i64))
    }

    /// A vint that fits its type.
    #[inline(always)]
    pub(super) fn fitting<T: TryFrom<u64>>(&mut self) -> Decoded<T> {
        let number = self.vint()?;
        T::try_from(number).or_else(|_| self.invalid(&"a number is too large for what it is"))
    }

    /// How many things follow. Each takes a byte at least, so that this is not more than there are bytes.
    #[inline(always)]
    pub(super) fn count(&mut self) -> Decoded<usize> {
        let count = self.fitting()?;
        self.check(count <= self.left(), &"more is promised than the rest of the bytes can hold")?;
        Ok(count)
    }

    /// How many things may be reserved for where `count` are promised: no more memory than there are bytes, or a few.
    #[inline]
    pub(super) fn reserved<T>(&self, count: usize) -> usize {
        count.min(FEW.max(self.left() / size_of::<T>().max(1)))
    }

    /// Bytes behind their length.
    #[inline(always)]
    pub(super) fn bytes(&mut self) -> Decoded<&'a [u8]> {
        let len = self.count()?;
        Ok(self.taken(len))
    }

    /// So many bytes, which a [`Cursor::count`] has found to be there.
    #[inline(always)]
    pub(super) fn taken(&mut self, len: usize) -> &'a [u8] {
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
        taken
    }

    /// The bytes that something is passed by in.
    #[inline]
    pub(super) fn passed(&mut self, pass: impl FnOnce(&mut Self) -> Decoded<()>) -> Decoded<&'a [u8]> {
        let before = self.at;
        pass(self)?;
        Ok(&self.bytes[before..self.at])
    }

    /// What all that is taken points into.
    #[inline]
    pub(super) fn owner(&self) -> &'a Bytes {
        self.owner
    }

    /// As many things as a count says.
    pub(super) fn many<T>(&mut self, mut take: impl FnMut(&mut Self) -> Decoded<T>) -> Decoded<Vec<T>> {
        let count = self.count()?;
        let mut things = Vec::with_capacity(self.reserved::<T>(count));
        for _ in 0..count {
            things.push(take(self)?);
        }
        Ok(things)
    }
}

/// Bytes that were taken of these, with a share of the buffer.
#[inline]
pub(super) fn share(owner: &Bytes, taken: &[u8]) -> Bytes {
    owner.slice(place_in(owner, taken))
}

/// Appends bytes behind their length.
#[inline]
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_unsigned(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Appends how many, then each.
pub(super) fn put_many<'a, T: 'a>(
    things: impl ExactSizeIterator<Item = &'a T>,
    out: &mut Vec<u8>,
    mut put: impl FnMut(&'a T, &mut Vec<u8>),
) {
    put_unsigned(things.len() as u64, out);
    things.for_each(|thing| put(thing, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(bytes: &[u8]) -> Bytes {
        Bytes::from(bytes)
    }

    #[test]
    fn a_number_has_one_form() {
        for long in [&[0x80, 0x7f][..], &[0xc0, 0x3f, 0xff], &[0xff, 0, 1, 2, 3, 4, 5, 6, 7]] {
            let fault = Cursor::new(&bytes(long), 0).vint().unwrap_err();
            assert_eq!(*fault.0, "a number is longer than it need be");
        }
        assert_eq!(Cursor::new(&bytes(&[0xff; 9]), 0).vint(), Ok(u64::MAX));
        assert_eq!(Cursor::new(&bytes(&[0xff; 9]), 0).signed(), Ok(i64::MIN));
    }

    #[test]
    fn promises_are_checked_before_memory_is_taken() {
        let owner = bytes(&[3, 1, 2]);
        let mut cursor = Cursor::new(&owner, 0);
        assert!(cursor.bytes().is_err());
        assert_eq!(cursor.at(), 1);
        let cursor = Cursor::new(&owner, 0);
        assert_eq!((cursor.reserved::<u64>(9), cursor.reserved::<u64>(1000)), (9, FEW));
        assert!(Cursor::new(&bytes(&[0xff; 9]), 0).bytes().is_err());
    }
}
