//! Bytes on their way past the page cache of the operating system, which takes them in whole blocks.
//!
//! ```text
//! append   ── rest ──┬──────── bytes ────────┐
//!          │ block │ block │ block │ block │ rest
//!          └──────── one request ──────────┘
//! ```

use std::ops::Range;

use crate::buffer;

/// How much longer the spare buffer is made than it has to be, so that the next ones suit it too. Bytes.
const SLACK: usize = 64 << 10;

/// What direct writes have to suit, in bytes, both powers of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alignments {
    /// Offsets and lengths are multiples of it: those of the device, or the blocks of the file system, which would be read and
    /// written once more each where one is written in two parts.
    pub(crate) block: usize,
    /// Addresses in memory are.
    pub(crate) memory: usize,
}

/// What of a file does not fill a block yet.
#[derive(Debug)]
pub(crate) struct Blocks {
    alignments: Alignments,
    /// Shorter than a block.
    rest: Vec<u8>,
    /// What was written last, to be filled again.
    spare: Vec<u8>,
}

impl Blocks {
    pub(crate) fn new(alignments: Alignments) -> Self {
        Self { alignments, rest: Vec::new(), spare: Vec::new() }
    }

    /// How many of these bytes can be written as they are, because they begin at a block and at an address that suits. The others
    /// [wait](Blocks::keep).
    pub(crate) fn as_they_are(&self, bytes: &[u8]) -> Option<usize> {
        let Alignments { block, memory } = self.alignments;
        let suits = self.rest.is_empty() && bytes.as_ptr().addr().is_multiple_of(memory);
        Some(bytes.len() & !(block - 1)).filter(|&whole| suits && whole > 0)
    }

    /// Bytes that do not fill a block wait for more.
    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// Puts the rest and these bytes into a buffer whose address suits, and keeps what does not fill a block. Where in the buffer the
    /// whole blocks are.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> (Vec<u8>, Range<usize>) {
        let Alignments { block, memory } = self.alignments;
        let all = self.rest.len() + bytes.len();
        let whole = all & !(block - 1);
        if whole == 0 {
            self.keep(bytes);
            return (Vec::new(), 0..0);
        }
        let spare = std::mem::take(&mut self.spare);
        let slack = if whole > SLACK { SLACK } else { 0 };
        let (mut buffer, base) = buffer::realign(spare, whole, (whole + slack, memory));
        buffer.truncate(base);
        buffer.extend_from_slice(&self.rest);
        let (last, rest) = bytes.split_at(whole - self.rest.len());
        buffer.extend_from_slice(last);
        self.rest.clear();
        self.rest.extend_from_slice(rest);
        (buffer, base..base + whole)
    }

    /// Hands back what [`Blocks::take`] gave, if it gave any.
    pub(crate) fn put_back(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() > 0 {
            self.spare = buffer;
        }
    }

    /// What waits for more.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.rest
    }

    /// The same, for who writes it otherwise.
    pub(crate) fn into_rest(self) -> Vec<u8> {
        self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_come_in_whole_blocks_at_addresses_that_suit() {
        for (block, memory) in [(512, 1), (512, 512), (4096, 4), (4096, 4096)] {
            let mut blocks = Blocks::new(Alignments { block, memory });
            let (mut written, mut expected, mut number) = (Vec::new(), Vec::new(), 0_u8);
            for len in [0, 1, block - 2, 1, block + 1, 1, block, 3 * block + 7, 2 * block - 10, 100_000, 5] {
                let bytes: Vec<u8> = std::iter::repeat_with(|| {
                    number = number.wrapping_add(1);
                    number
                })
                .take(len)
                .collect();
                expected.extend_from_slice(&bytes);
                if let Some(whole) = blocks.as_they_are(&bytes) {
                    assert!(whole % block == 0 && bytes.as_ptr().addr().is_multiple_of(memory));
                    assert!(blocks.rest().is_empty(), "what waits goes first");
                    written.extend_from_slice(&bytes[..whole]);
                    blocks.keep(&bytes[whole..]);
                    assert!(expected == [&written, blocks.rest()].concat());
                    continue;
                }
                let (buffer, whole) = blocks.take(&bytes);
                assert!(whole.len() % block == 0 && blocks.rest().len() < block);
                assert!(whole.is_empty() || (buffer.as_ptr().addr() + whole.start) % memory == 0);
                written.extend_from_slice(&buffer[whole]);
                blocks.put_back(buffer);
                assert!(expected == [&written, blocks.rest()].concat());
            }
        }
    }
}
