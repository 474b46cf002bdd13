//! What is the same in all rows that stand alike: the bytes between their values, and where they are.
//!
//! ```text
//! row      ····════····════════════····      ═ values
//! frame    ^^^^    ^^^^            ^^^^      as words of eight bytes with a mask
//! ```

use std::ops::Range;

use smallvec::SmallVec;

/// The frame of a row: its bytes without its values.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Bytes of each row that has it.
    pub(super) len: usize,
    windows: SmallVec<[Window; FEW]>,
}

/// Some bytes of a frame.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Of 32 bits, so that a word behind it is one comparison with the row's end.
    at: u32,
    /// Which bits they are of the bytes from there on.
    mask: u64,
    is: u64,
}

/// A frame as it is found, of a row of eight bytes or more.
#[derive(Debug)]
pub struct FrameBuilder<'b> {
    row: &'b [u8],
    /// What is before this is in windows, or not of the frame.
    at: usize,
    windows: SmallVec<[Window; FEW]>,
}

/// Bytes that are compared at once.
const WIDE: usize = size_of::<u64>();

/// Most rows have no more windows than these.
const FEW: usize = 4;

impl Frame {
    /// Of the row that these bytes are; `None` if it has less than eight, or 4 GiB.
    pub fn of(row: &[u8]) -> Option<FrameBuilder<'_>> {
        let has_one = row.len() >= WIDE && u32::try_from(row.len()).is_ok();
        has_one.then(|| FrameBuilder { row, at: 0, windows: SmallVec::new() })
    }

    /// The bytes of the row that these begin with, if it has this frame.
    #[inline(always)]
    pub fn row<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let row = bytes.get(..self.len)?;
        let is_same = |window: &Window| word(row, window.at) & window.mask == window.is;
        self.windows.iter().all(is_same).then_some(row)
    }
}

impl FrameBuilder<'_> {
    /// The frame goes on up to a value, and behind it.
    pub fn pass(&mut self, value: &Range<usize>) {
        self.up_to(value.start);
        self.at = value.end;
    }

    /// Of the byte that comes next, these bits alone are of the frame.
    pub fn take_bits(&mut self, bits: u8) {
        self.up_to(self.at + 1);
        let last = self.windows.last_mut().expect("a byte was put there");
        let others = u64::from(!bits) << (u8::BITS as usize * (self.at - 1 - last.at as usize));
        last.mask &= !others;
    }

    /// The frame, to the end of the row.
    pub fn finish(mut self) -> Frame {
        self.up_to(self.row.len());
        for window in &mut self.windows {
            window.is = word(self.row, window.at) & window.mask;
        }
        Frame { len: self.row.len(), windows: self.windows }
    }

    /// All bytes up to here are of the frame.
    pub fn up_to(&mut self, end: usize) {
        while self.at < end {
            if self.windows.last().is_none_or(|last| last.at as usize + WIDE <= self.at) {
                // The last ones are compared with those before them.
                let at = self.at.min(self.row.len() - WIDE) as u32;
                self.windows.push(Window { at, mask: 0, is: 0 });
            }
            let window = self.windows.last_mut().expect("there is one");
            let at = window.at as usize;
            let to = end.min(at + WIDE);
            window.mask |= first_bytes(to - at) & !first_bytes(self.at - at);
            self.at = to;
        }
    }
}

#[inline(always)]
fn word(bytes: &[u8], at: u32) -> u64 {
    let at = at as usize;
    u64::from_le_bytes(bytes[at..at + WIDE].try_into().expect("a word is as wide"))
}

/// The first bytes of a word, eight at the most.
fn first_bytes(count: usize) -> u64 {
    u64::MAX.checked_shr(64 - 8 * count as u32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A row has the frame of another one if and only if it differs from it in nothing but what was passed by.
        #[test]
        fn rows_with_the_same_frame_differ_in_values_alone(
            row in prop::collection::vec(any::<u8>(), 8..80),
            // Of each byte: whether it is of the frame, and which bits.
            kinds in prop::collection::vec((0_u8..3, any::<u8>()), 80),
            changed in 0_usize..80,
            by in any::<u8>(),
            behind in any::<u8>(),
        ) {
            let mut builder = Frame::of(&row).unwrap();
            let mut bits_of = Vec::new();
            for (at, (kind, bits)) in kinds.into_iter().enumerate().take(row.len()) {
                match kind {
                    0 => bits_of.push(u8::MAX),
                    1 => {
                        builder.up_to(at);
                        builder.take_bits(bits);
                        bits_of.push(bits);
                    }
                    _ => {
                        builder.pass(&(at..at + 1));
                        bits_of.push(0);
                    }
                }
            }
            let frame = builder.finish();
            prop_assert_eq!(frame.len, row.len());
            prop_assert_eq!(frame.row(&row[1..]), None);
            let mut other = row.clone();
            let at = changed % row.len();
            other[at] ^= by;
            other.push(behind);
            let expected = (by & bits_of[at] == 0).then(|| &other[..row.len()]);
            prop_assert_eq!(frame.row(&other), expected);
        }
    }

    #[test]
    fn short_rows_have_none() {
        assert!(Frame::of(&[7; 7]).is_none());
        assert!(Frame::of(&[7; 8]).is_some());
    }
}
