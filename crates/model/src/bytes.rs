//! A piece of a shared buffer: what rows and cells hold instead of copies.
//!
//! A chunk or block read from disk becomes one reference-counted buffer; every value decoded from
//! it is a [`Bytes`] of 16 bytes: the owner, a start and a length. Counting is not atomic: data
//! stays on the shard that read it.

use std::fmt;
use std::ops::{Deref, Range};
use std::rc::Rc;

/// The largest buffer that values may point into, in bytes.
pub const MAX_BUFFER: usize = u32::MAX as usize;

/// A range of a reference-counted buffer.
///
/// Invariant: `start + len` is within the owner's length.
pub struct Bytes {
    owner: Rc<Vec<u8>>,
    start: u32,
    len: u32,
}

impl Bytes {
    /// The given range of `owner`.
    ///
    /// # Panics
    /// If the range is not within the buffer, or the buffer exceeds [`MAX_BUFFER`].
    pub fn new(owner: &Rc<Vec<u8>>, range: Range<usize>) -> Bytes {
        assert!(range.start <= range.end && range.end <= owner.len(), "a value lies within its buffer");
        assert!(owner.len() <= MAX_BUFFER, "buffers are addressed by 32 bits");
        Bytes { owner: Rc::clone(owner), start: range.start as u32, len: (range.end - range.start) as u32 }
    }

    /// A part of these bytes, sharing the buffer.
    ///
    /// # Panics
    /// If the range is not within these bytes.
    pub fn slice(&self, range: Range<usize>) -> Bytes {
        assert!(range.start <= range.end && range.end <= self.len(), "a slice lies within its bytes");
        Bytes {
            owner: Rc::clone(&self.owner),
            start: self.start + range.start as u32,
            len: (range.end - range.start) as u32,
        }
    }

    /// The shared buffer, and where in it these bytes are.
    pub fn parts(&self) -> (&Rc<Vec<u8>>, Range<usize>) {
        (&self.owner, self.start as usize..(self.start + self.len) as usize)
    }

    /// Takes other bytes in the place of its own, in the same memory if nobody else has a share of it.
    ///
    /// # Panics
    /// If there are more than [`MAX_BUFFER`].
    pub fn refill(&mut self, bytes: &[u8]) {
        self.rewrite(|buffer| buffer.extend_from_slice(bytes));
    }

    /// Has other bytes written in the place of its own, into the same memory if nobody else has a share of it; what `write` gives.
    ///
    /// # Panics
    /// If there are more than [`MAX_BUFFER`].
    #[inline]
    pub fn rewrite<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        if Rc::get_mut(&mut self.owner).is_none() {
            self.owner = Rc::default();
        }
        let buffer = Rc::get_mut(&mut self.owner).expect("nobody else has a share of it");
        buffer.clear();
        let written = write(buffer);
        let len = u32::try_from(buffer.len()).expect("buffers are addressed by 32 bits");
        (self.start, self.len) = (0, len);
        written
    }

    /// A copy with a buffer of its own, so that it no longer keeps a larger one alive.
    pub fn detached(&self) -> Bytes {
        Bytes::from(self.to_vec())
    }
}

impl Clone for Bytes {
    #[inline]
    fn clone(&self) -> Bytes {
        Bytes { owner: Rc::clone(&self.owner), start: self.start, len: self.len }
    }

    /// Values that follow each other mostly have the same owner, which then is not counted anew.
    #[inline]
    fn clone_from(&mut self, other: &Bytes) {
        if !Rc::ptr_eq(&self.owner, &other.owner) {
            self.owner = Rc::clone(&other.owner);
        }
        (self.start, self.len) = (other.start, other.len);
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(buffer: Vec<u8>) -> Bytes {
        let range = 0..buffer.len();
        Bytes::new(&Rc::new(buffer), range)
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Bytes {
        Bytes::from(bytes.to_vec())
    }
}

impl Default for Bytes {
    /// None at all, in a buffer of their own: one that all of a thread share would be counted by two threads where a shard is lent.
    fn default() -> Bytes {
        Bytes { owner: Rc::default(), start: 0, len: 0 }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.owner[self.start as usize..(self.start + self.len) as usize]
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Bytes {
    #[inline]
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_share_their_buffer() {
        let all = Bytes::from(b"siltstone".to_vec());
        let part = all.slice(0..4);
        assert_eq!(&*part.slice(1..3), b"il");
        assert_eq!(Rc::strong_count(&all.owner), 2);
        assert_eq!(Rc::strong_count(&part.detached().owner), 1);
    }

    #[test]
    fn bytes_are_refilled_unless_somebody_else_has_them() {
        let mut bytes = Bytes::from(b"siltstone".to_vec()).slice(4..9);
        let memory = bytes.as_ptr().addr();
        bytes.refill(b"sand");
        assert_eq!((&*bytes, bytes.as_ptr().addr()), (&b"sand"[..], memory - 4));
        let share = bytes.clone();
        bytes.refill(b"chalk");
        assert_eq!((&*bytes, &*share), (&b"chalk"[..], &b"sand"[..]));
    }

    #[test]
    fn nothing_is_shared_with_nobody() {
        let [one, other] = [Bytes::default(), Bytes::default()];
        assert!(one.is_empty() && one == other && !Rc::ptr_eq(&one.owner, &other.owner));
    }

    #[test]
    fn a_copy_in_the_place_of_another_counts_its_owner() {
        let (silt, stone) = (Bytes::from(b"silt".to_vec()), Bytes::from(b"stone".to_vec()));
        let mut copy = silt.slice(0..2);
        copy.clone_from(&silt);
        assert_eq!((&*copy, Rc::strong_count(&silt.owner)), (&b"silt"[..], 2));
        copy.clone_from(&stone);
        assert_eq!(
            (&*copy, Rc::strong_count(&silt.owner), Rc::strong_count(&stone.owner)),
            (&b"stone"[..], 1, 2)
        );
    }

    #[test]
    #[should_panic(expected = "within its bytes")]
    fn a_slice_past_the_end_panics() {
        Bytes::from(vec![1, 2, 3]).slice(2..4);
    }

    #[test]
    fn sixteen_bytes_and_a_niche() {
        assert_eq!(size_of::<Bytes>(), 16);
        assert_eq!(size_of::<Option<Bytes>>(), 16);
    }
}
