//! The checksums of Data.db, worked out as its bytes go by.
//!
//! ```text
//! compressed    chunk, u32 CRC32, chunk, u32 CRC32, …
//! uncompressed  stretches, whose CRC32s stand in CRC.db
//! both          the CRC32 of every byte, those checksums included, stands in Digest.crc32
//! ```
//!
//! Readers hand on whatever they read; what was seen before is passed over, so that each byte counts
//! once however often it is read.

use std::rc::Rc;

use crc32fast::Hasher;

use crate::parts::compression_info::{CHUNK_CRC, CompressionInfo};
use crate::parts::crc::Crc;

/// What has a checksum of its own.
#[derive(Clone, Debug)]
pub(super) enum Units {
    /// Chunks, each with its checksum behind it.
    Chunks(Rc<CompressionInfo>),
    /// Stretches of a file of this length.
    Stretches(Rc<Crc>, u64),
    /// Nothing.
    None,
}

/// A chunk or stretch that is not what its checksum says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct BadSum {
    /// Where its data begins, uncompressed.
    pub(crate) offset: u64,
    /// What is wrong.
    pub(crate) what: String,
}

/// The checksums of a file's first bytes.
#[derive(Debug)]
pub(super) struct Sums {
    units: Units,
    /// All bytes before this place of the file have been seen.
    at: u64,
    whole: Hasher,
    number: usize,
    unit: Hasher,
    stored: u32,
    bad: Vec<BadSum>,
}

impl Sums {
    pub(super) fn new(units: Units) -> Sums {
        let (whole, unit) = (Hasher::new(), Hasher::new());
        Sums { units, at: 0, whole, number: 0, unit, stored: 0, bad: Vec::new() }
    }

    /// How far the file has been seen.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The CRC32 of all bytes so far.
    pub(super) fn digest(&self) -> u32 {
        self.whole.clone().finalize()
    }

    /// The bad ones that were found since this was last asked.
    pub(super) fn take_bad(&mut self) -> Vec<BadSum> {
        std::mem::take(&mut self.bad)
    }

    /// Takes bytes that stand at `offset` of the file. Those behind a gap are not taken.
    pub(super) fn see(&mut self, offset: u64, bytes: &[u8]) {
        let Some(seen) = self.at.checked_sub(offset) else { return };
        let mut bytes = bytes.get(seen as usize..).unwrap_or_default();
        while !bytes.is_empty() {
            bytes = self.step(bytes);
        }
    }

    /// Takes bytes up to the end of what they are part of.
    fn step<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let Some((body_end, end)) = self.units.ends(self.number) else {
            self.whole.update(bytes);
            self.at += bytes.len() as u64;
            return &[];
        };
        let until = if self.at < body_end { body_end } else { end };
        let (taken, rest) = bytes.split_at(bytes.len().min((until - self.at) as usize));
        self.whole.update(taken);
        if self.at < body_end {
            self.unit.update(taken);
        } else {
            self.stored = taken.iter().fold(self.stored, |sum, &byte| sum << 8 | u32::from(byte));
        }
        self.at += taken.len() as u64;
        if self.at == end {
            self.end_unit();
        }
        rest
    }

    fn end_unit(&mut self) {
        let found = std::mem::take(&mut self.unit).finalize();
        let (offset, expected) = match &self.units {
            Units::Chunks(info) => {
                (self.number as u64 * u64::from(info.chunks().chunk_len()), Some(self.stored))
            }
            Units::Stretches(crc, _) => {
                (self.number as u64 * u64::from(crc.chunk_len()), crc.get(self.number))
            }
            Units::None => (0, None),
        };
        if let Some(expected) = expected.filter(|&expected| expected != found) {
            let which = if matches!(self.units, Units::Chunks(_)) { "chunk" } else { "stretch" };
            let what = format!(
                "the checksum of {which} {}: computed {found:08x}, stored {expected:08x}",
                self.number
            );
            self.bad.push(BadSum { offset, what });
        }
        self.number += 1;
        self.stored = 0;
    }
}

impl Units {
    /// Where the bytes of a unit end, and where its checksum does, if that stands behind them.
    fn ends(&self, number: usize) -> Option<(u64, u64)> {
        match self {
            Units::Chunks(info) if number < info.chunk_count() => {
                let end = info.chunk(number).end;
                Some((end - CHUNK_CRC, end))
            }
            Units::Stretches(crc, len) if number < crc.len() => {
                let end = ((number as u64 + 1) * u64::from(crc.chunk_len())).min(*len);
                Some((end, end))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Version;

    /// Stretches of four bytes over `data`.
    fn stretches(data: &[u8]) -> Units {
        let sums = data.chunks(4).flat_map(|stretch| crc32fast::hash(stretch).to_be_bytes());
        let bytes: Vec<u8> = 4u32.to_be_bytes().into_iter().chain(sums).collect();
        let crc = Crc::parse(Path::new("CRC.db"), &bytes, Version::Nb).unwrap();
        Units::Stretches(Rc::new(crc), data.len() as u64)
    }

    #[test]
    fn pieces_of_any_size_and_overlap_add_up() {
        let data = b"sedimentary rock";
        for step in 1..=data.len() {
            let mut sums = Sums::new(stretches(data));
            for start in (0..data.len()).step_by(step) {
                sums.see(
                    start.saturating_sub(2) as u64,
                    &data[start.saturating_sub(2)..(start + step).min(data.len())],
                );
            }
            assert_eq!((sums.at(), sums.digest()), (16, crc32fast::hash(data)));
            assert_eq!(sums.take_bad(), []);
        }
    }

    #[test]
    fn a_changed_byte_is_found_where_it_is() {
        let data = b"sedimentary rocks";
        for at in 0..data.len() {
            let mut changed = data.to_vec();
            changed[at] ^= 0x10;
            let mut sums = Sums::new(stretches(data));
            sums.see(0, &changed);
            let bad: Vec<u64> = sums.take_bad().into_iter().map(|bad| bad.offset).collect();
            assert_eq!(bad, [at as u64 / 4 * 4]);
            assert_ne!(sums.digest(), crc32fast::hash(data));
        }
    }

    #[test]
    fn nothing_is_taken_behind_a_gap() {
        let mut sums = Sums::new(Units::None);
        sums.see(0, b"ab");
        sums.see(3, b"d");
        assert_eq!((sums.at(), sums.digest()), (2, crc32fast::hash(b"ab")));
    }
}
