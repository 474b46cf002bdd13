//! The end of BloomRows.db: which lines tell of which rows, and which SSTable they are of.
//!
//! ```text
//! directory   of each stretch, then of each large partition, by its ordinal: 511 in a page
//!             stretch     u32 its first line, u32 how many lines it has, 0 where nothing is told
//!             partition   u32 its first stretch, u32 how many it has
//! trailer     u32 pages of lines, u32 stretches, u32 partitions, u8 bits that a row sets; the binding; the end of a file
//!             of pages
//! ```
//!
//! The trailer has a page of its own, the last one.

use crate::Version;
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::encode::Encode;
use crate::parts::binding::Binding;
use crate::parts::bloom_pages::MAX_HASHES;
use crate::parts::sealed_page::{END, Kind, PAGE, ROOM, is_sound, seal};

use super::LINES;

const BLOOM_ROWS: Kind = Kind { format: 1, magic: b"siltrows" };
/// Bytes of a stretch, and of a partition.
const PAIR: usize = 8;
/// How many of them are in a page.
const PAIRS: usize = ROOM / PAIR;
/// Bytes of the trailer before its end.
const HEAD: usize = 4 + 4 + 4 + 1 + Binding::BYTES;

/// Lines that tell of the rows of a stretch; none if nothing is told of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Lines {
    pub(super) first: u32,
    pub(super) count: u32,
}

/// The stretches of a large partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretches {
    pub(super) first: u32,
    pub(super) count: u32,
}

/// Which lines there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Directory {
    /// Pages of lines.
    pub(super) pages: u32,
    /// Bits that a row sets.
    pub(super) hashes: u8,
    pub(super) stretches: Vec<Lines>,
    /// By their ordinals.
    pub(super) partitions: Vec<Stretches>,
}

/// What the trailer tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trailer {
    pages: u32,
    stretches: u32,
    partitions: u32,
    hashes: u8,
}

/// Whether a file of so many bytes and with this last page is of that SSTable; otherwise why it is of no use.
pub(crate) fn is_of(page: &[u8], len: u64, binding: &Binding, version: Version) -> Result<(), &'static str> {
    Trailer::decode(page, len, binding, version).map(drop)
}

impl Directory {
    /// The lines of a stretch of the partition with this ordinal, if anything is told of it.
    #[inline]
    pub(super) fn lines(&self, ordinal: u64, stretch: u64) -> Option<Lines> {
        let partition = self.partitions.get(usize::try_from(ordinal).ok()?)?;
        let is_there = stretch < u64::from(partition.count);
        let lines = *self.stretches.get(partition.first as usize + stretch as usize).filter(|_| is_there)?;
        (lines.count > 0).then_some(lines)
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&self.stretches[..]) + size_of_val(&self.partitions[..])
    }

    /// Appends it, and the trailer.
    pub(super) fn put(&self, binding: &Binding, version: Version, to: &mut Vec<u8>) {
        let stretches = self.stretches.iter().map(|lines| (lines.first, lines.count));
        let partitions = self.partitions.iter().map(|stretches| (stretches.first, stretches.count));
        let mut start = to.len();
        for (number, (first, count)) in stretches.chain(partitions).enumerate() {
            if number > 0 && number.is_multiple_of(PAIRS) {
                seal(to, start);
                start = to.len();
            }
            to.put_u32(first);
            to.put_u32(count);
        }
        if to.len() > start {
            seal(to, start);
        }
        let start = to.len();
        to.resize(start + ROOM - HEAD - END, 0);
        to.put_u32(self.pages);
        to.put_u32(self.stretches.len() as u32);
        to.put_u32(self.partitions.len() as u32);
        to.put_u8(self.hashes);
        binding.put(version, to);
        let pages = pages_of(self.stretches.len() + self.partitions.len());
        BLOOM_ROWS.put_end(u64::from(self.pages) + pages + 1, to);
        seal(to, start);
    }

    /// The directory in these pages, which stand before the trailer.
    pub(super) fn decode(trailer: Trailer, pages: &[u8]) -> Result<Directory, &'static str> {
        if !pages.chunks(PAGE).all(is_sound) {
            return Err("the checksum of a page of its directory is wrong");
        }
        let pair = |bytes: &[u8; PAIR]| {
            let both = u64::from_be_bytes(*bytes);
            ((both >> 32) as u32, both as u32)
        };
        let mut pairs = pages.chunks(PAGE).flat_map(|page| page[..PAIR * PAIRS].as_chunks().0).map(pair);
        let stretches: Vec<_> = pairs
            .by_ref()
            .take(trailer.stretches as usize)
            .map(|(first, count)| Lines { first, count })
            .collect();
        let partitions: Vec<_> = pairs
            .take(trailer.partitions as usize)
            .map(|(first, count)| Stretches { first, count })
            .collect();
        let most = u64::from(trailer.pages) * u64::from(LINES);
        let is_within = |first: u32, count: u32, most: u64| u64::from(first) + u64::from(count) <= most;
        if !stretches.iter().all(|lines| is_within(lines.first, lines.count, most))
            || !partitions.iter().all(|of| is_within(of.first, of.count, stretches.len() as u64))
        {
            return Err("its directory names lines that are not there");
        }
        Ok(Directory { pages: trailer.pages, hashes: trailer.hashes, stretches, partitions })
    }
}

impl Trailer {
    /// The trailer of a file of that version and binding that has so many bytes and this last page; otherwise why it is of
    /// no use.
    pub(super) fn decode(
        page: &[u8],
        file_len: u64,
        binding: &Binding,
        version: Version,
    ) -> Result<Trailer, &'static str> {
        let mut cursor = Cursor::new(BLOOM_ROWS.trailer(page, file_len, HEAD)?);
        let trailer = Trailer::take(&mut cursor).map_err(|error| error.what())?;
        let difference = binding.difference(version, &mut cursor).map_err(|error| error.what())?;
        match difference {
            Some(difference) => Err(difference),
            None if u64::from(trailer.pages) * PAGE as u64 + trailer.len() + PAGE as u64 != file_len => {
                Err("it is cut off")
            }
            None => Ok(trailer),
        }
    }

    /// Bytes of the directory.
    pub(super) fn len(&self) -> u64 {
        pages_of(self.stretches as usize + self.partitions as usize) * PAGE as u64
    }

    fn take(cursor: &mut Cursor<'_>) -> Decoded<Trailer> {
        let [pages, stretches, partitions] = [cursor.u32()?, cursor.u32()?, cursor.u32()?];
        let trailer = Trailer { pages, stretches, partitions, hashes: cursor.u8()? };
        if !(1..=MAX_HASHES).contains(&trailer.hashes) {
            return Err(DecodeError::Invalid { at: 0, what: "its rows have no bits" });
        }
        Ok(trailer)
    }
}

/// How many pages so many pairs take.
fn pages_of(pairs: usize) -> u64 {
    pairs.div_ceil(PAIRS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: Binding = Binding { digest: Some(7), data_len: 1000, index_len: 60 };

    /// With stretches of two lines, and three of them in each partition but the last one.
    fn directory(stretches: u32) -> Directory {
        let partitions = stretches.div_ceil(3);
        Directory {
            pages: (2 * stretches).div_ceil(LINES),
            hashes: 6,
            stretches: (0..stretches).map(|number| Lines { first: 2 * number, count: 2 }).collect(),
            partitions: (0..partitions)
                .map(|number| Stretches { first: 3 * number, count: 3.min(stretches - 3 * number) })
                .collect(),
        }
    }

    fn decode(directory: &Directory, bytes: &[u8]) -> Result<Directory, &'static str> {
        let file_len = u64::from(directory.pages) * PAGE as u64 + bytes.len() as u64;
        let (pages, last) = bytes.split_at(bytes.len() - PAGE);
        let trailer = Trailer::decode(last, file_len, &BINDING, Version::Me)?;
        assert_eq!(trailer.len() as usize, pages.len());
        Directory::decode(trailer, pages)
    }

    fn encode(directory: &Directory) -> Vec<u8> {
        let mut bytes = Vec::new();
        directory.put(&BINDING, Version::Me, &mut bytes);
        bytes
    }

    #[test]
    fn directories_come_back() {
        for stretches in [0, 1, 2, 3, 300, 383, 384, 385, PAIRS as u32, PAIRS as u32 + 1, 5000] {
            let directory = directory(stretches);
            let bytes = encode(&directory);
            assert_eq!(decode(&directory, &bytes), Ok(directory.clone()), "{stretches}");
            for stretch in 0..u64::from(stretches) {
                let lines = Lines { first: 2 * stretch as u32, count: 2 };
                assert_eq!(directory.lines(stretch / 3, stretch % 3), Some(lines));
            }
            let partitions = directory.partitions.len() as u64;
            assert!(directory.lines(partitions, 0).is_none() && directory.lines(0, 3).is_none());
            assert!(directory.lines(u64::MAX, 0).is_none() && directory.lines(0, u64::MAX).is_none());
        }
        let untold = Directory { stretches: vec![Lines::default()], ..directory(1) };
        assert!(untold.lines(0, 0).is_none());
    }

    #[test]
    fn any_damage_is_seen() {
        let directory = directory(600);
        let mut bytes = encode(&directory);
        for at in 0..bytes.len() {
            bytes[at] ^= 0x40;
            assert!(decode(&directory, &bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x40;
        }
        let last = &bytes[bytes.len() - PAGE..];
        let len = u64::from(directory.pages) * PAGE as u64 + bytes.len() as u64;
        let of = |binding, version| is_of(last, len, &binding, version);
        assert_eq!(of(BINDING, Version::Me), Ok(()));
        assert!(of(Binding { digest: None, ..BINDING }, Version::Me).is_err());
        assert!(of(Binding { data_len: 999, ..BINDING }, Version::Me).is_err());
        assert!(of(Binding { index_len: 61, ..BINDING }, Version::Me).is_err());
        assert!(of(BINDING, Version::Oa).is_err());
        assert_eq!(is_of(last, len + PAGE as u64, &BINDING, Version::Me), Err("it is cut off"));
    }

    #[test]
    fn lines_that_are_not_there_are_refused() {
        let sound = directory(40);
        let beyond = u64::from(sound.pages) as u32 * LINES;
        let mut of_lines = sound.clone();
        of_lines.stretches[7] = Lines { first: beyond - 1, count: 2 };
        let mut of_stretches = sound.clone();
        of_stretches.partitions[2] = Stretches { first: u32::MAX, count: u32::MAX };
        let no_bits = Directory { hashes: 0, ..sound.clone() };
        for (directory, what) in [
            (of_lines, "lines that are not there"),
            (of_stretches, "lines that are not there"),
            (no_bits, "no bits"),
        ] {
            assert!(decode(&directory, &encode(&directory)).is_err_and(|why| why.contains(what)), "{what}");
        }
    }
}
