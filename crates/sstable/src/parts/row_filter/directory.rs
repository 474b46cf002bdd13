//! The end of RowFilter.db: which strips tell of which rows, and which SSTable they are of.
//!
//! ```text
//! directory   of each stretch, then of each large partition, by its ordinal: 511 in a page, and behind
//!             them u32 the number of the page
//!             stretch     u32 its first strip, u16 how many strips it has, 0 where nothing is told, u16 the seed of its ribbon
//!             partition   u32 its first stretch, u32 how many it has
//! trailer     u32 pages of strips, u32 stretches, u32 partitions; the binding; the end of a file of pages
//! ```
//!
//! The trailer has a page of its own, the last one.

use std::ops::Range;

use crate::Version;
use crate::decode::{Cursor, Decoded};
use crate::encode::Encode;
use crate::parts::binding::Binding;
use crate::parts::fences::STRETCH;
use crate::parts::sealed_page::{END, Kind, PAGE, ROOM, is_sound, seal};

use super::STRIPS;

const ROW_FILTER: Kind = Kind { format: 1, magic: b"siltrows" };
/// Bytes of a stretch, and of a partition.
const PAIR: usize = 8;
/// How many of them are in a page.
const PAIRS: usize = ROOM / PAIR;
/// Bytes of the trailer before its end.
const HEAD: usize = 4 + 4 + 4 + Binding::BYTES;

/// Strips that tell of the rows of a stretch; none if nothing is told of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Strips {
    pub(super) first: u32,
    pub(super) count: u16,
    pub(super) seed: u16,
}

/// The stretches of a large partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stretches {
    pub(super) first: u32,
    pub(super) count: u32,
}

/// Which strips there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Directory {
    /// Pages of strips.
    pub(super) pages: u32,
    pub(super) stretches: Vec<Strips>,
    /// By their ordinals.
    pub(super) partitions: Vec<Stretches>,
}

/// What the trailer tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Trailer {
    pages: u32,
    stretches: u32,
    partitions: u32,
}

/// Whether a file of so many bytes and with this last page is of that SSTable; otherwise why it is of no use.
pub(crate) fn is_of(page: &[u8], len: u64, binding: &Binding, version: Version) -> Result<(), &'static str> {
    Trailer::decode(page, len, binding, version).map(drop)
}

impl Directory {
    /// The strips that tell of a group of the partition with this ordinal, if any do. The group has these bytes of the index, counted
    /// from its partition's first block, as fences say: nothing is told of one that has other stretches behind its own.
    #[inline]
    pub(super) fn strips(&self, ordinal: u64, group: &Range<u64>) -> Option<Strips> {
        let partition = self.partitions.get(usize::try_from(ordinal).ok()?)?;
        let all = partition.first as usize..partition.first as usize + partition.count as usize;
        let stretches = self.stretches.get(all)?;
        let first = usize::try_from(group.start / STRETCH).ok()?;
        let end = usize::try_from(group.end / STRETCH).unwrap_or(usize::MAX).min(stretches.len());
        let (strips, behind) = stretches.get(first..end)?.split_first()?;
        (strips.count > 0 && behind.iter().all(|strips| strips.count == 0)).then_some(*strips)
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&self.stretches[..]) + size_of_val(&self.partitions[..])
    }

    /// Appends it, and the trailer.
    pub(super) fn put(&self, binding: &Binding, version: Version, to: &mut Vec<u8>) {
        let stretches = self.stretches.iter().map(Strips::pair);
        let partitions = self.partitions.iter().map(|stretches| (stretches.first, stretches.count));
        let pairs: Vec<_> = stretches.chain(partitions).collect();
        for (number, pairs) in (self.pages..).zip(pairs.chunks(PAIRS)) {
            let start = to.len();
            for &(first, count) in pairs {
                to.put_u32(first);
                to.put_u32(count);
            }
            to.resize(start + PAIR * PAIRS, 0);
            to.put_u32(number);
            seal(to, start);
        }
        let start = to.len();
        to.resize(start + ROOM - HEAD - END, 0);
        to.put_u32(self.pages);
        to.put_u32(self.stretches.len() as u32);
        to.put_u32(self.partitions.len() as u32);
        binding.put(version, to);
        let pages = pages_of(self.stretches.len() + self.partitions.len());
        ROW_FILTER.put_end(u64::from(self.pages) + pages + 1, to);
        seal(to, start);
    }

    /// The directory in these pages, which stand before the trailer.
    pub(super) fn decode(trailer: Trailer, pages: &[u8]) -> Result<Directory, &'static str> {
        let is_right = |(number, page): (u32, &[u8])| {
            is_sound(page) && page[PAIR * PAIRS..].starts_with(&number.to_be_bytes())
        };
        if !(trailer.pages..).zip(pages.chunks(PAGE)).all(is_right) {
            return Err("a page of its directory is not as it was written");
        }
        let pair = |bytes: &[u8; PAIR]| {
            let both = u64::from_be_bytes(*bytes);
            ((both >> 32) as u32, both as u32)
        };
        let mut pairs = pages.chunks(PAGE).flat_map(|page| page[..PAIR * PAIRS].as_chunks().0).map(pair);
        // The pages have room for as many, so that no more memory is taken than they have.
        let mut stretches = Vec::with_capacity(trailer.stretches as usize);
        stretches.extend(pairs.by_ref().take(trailer.stretches as usize).map(Strips::of_pair));
        let mut partitions = Vec::with_capacity(trailer.partitions as usize);
        let of_pair = |(first, count)| Stretches { first, count };
        partitions.extend(pairs.take(trailer.partitions as usize).map(of_pair));
        let most = u64::from(trailer.pages) * u64::from(STRIPS);
        let is_within = |first: u32, count: u32, most: u64| u64::from(first) + u64::from(count) <= most;
        if !stretches.iter().all(|strips| is_within(strips.first, u32::from(strips.count), most))
            || !partitions.iter().all(|of| is_within(of.first, of.count, stretches.len() as u64))
        {
            return Err("its directory names strips that are not there");
        }
        Ok(Directory { pages: trailer.pages, stretches, partitions })
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
        let trailer = ROW_FILTER.bound_trailer((page, file_len), HEAD, (binding, version), Trailer::take)?;
        let is_whole = u64::from(trailer.pages) * PAGE as u64 + trailer.len() + PAGE as u64 == file_len;
        if is_whole { Ok(trailer) } else { Err("it is cut off") }
    }

    /// Bytes of the directory.
    pub(super) fn len(&self) -> u64 {
        pages_of(self.stretches as usize + self.partitions as usize) * PAGE as u64
    }

    fn take(cursor: &mut Cursor<'_>) -> Decoded<Trailer> {
        Ok(Trailer { pages: cursor.u32()?, stretches: cursor.u32()?, partitions: cursor.u32()? })
    }
}

impl Strips {
    fn pair(&self) -> (u32, u32) {
        (self.first, u32::from(self.count) << 16 | u32::from(self.seed))
    }

    fn of_pair((first, both): (u32, u32)) -> Strips {
        Strips { first, count: (both >> 16) as u16, seed: both as u16 }
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

    /// With stretches of two strips, and three of them in each partition but the last one.
    fn directory(stretches: u32) -> Directory {
        let partitions = stretches.div_ceil(3);
        Directory {
            pages: (2 * stretches).div_ceil(STRIPS),
            stretches: (0..stretches).map(|number| Strips { first: 2 * number, count: 2, seed: 3 }).collect(),
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

    fn group(stretch: u64) -> Range<u64> {
        stretch * STRETCH + 7..(stretch + 1) * STRETCH + 9
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
                let strips = Strips { first: 2 * stretch as u32, count: 2, seed: 3 };
                assert_eq!(directory.strips(stretch / 3, &group(stretch % 3)), Some(strips));
            }
            let partitions = directory.partitions.len() as u64;
            assert!(directory.strips(partitions, &group(0)).is_none());
            assert!(
                directory.strips(0, &group(3)).is_none() && directory.strips(u64::MAX, &group(0)).is_none()
            );
            assert!(directory.strips(0, &(u64::MAX..u64::MAX)).is_none());
            // To the end of the partition, or over the next stretch.
            assert_eq!(directory.strips(0, &(0..u64::MAX)).is_some(), stretches == 1);
            assert_eq!(directory.strips(0, &(0..2 * STRETCH)).is_some(), stretches == 1);
        }
        let untold = Directory { stretches: vec![Strips::default()], ..directory(1) };
        assert!(untold.strips(0, &group(0)).is_none());
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

    /// Each page is sound for itself, and would deny every row in the place of another.
    #[test]
    fn a_page_in_the_place_of_another_is_seen() {
        let directory = directory(1200);
        let bytes = encode(&directory);
        let (first, rest) = bytes.split_at(PAGE);
        let swapped = [&rest[..PAGE], first, &rest[PAGE..]].concat();
        assert_eq!(decode(&directory, &swapped), Err("a page of its directory is not as it was written"));
    }

    #[test]
    fn strips_that_are_not_there_are_refused() {
        let sound = directory(40);
        let beyond = sound.pages * STRIPS;
        let mut of_strips = sound.clone();
        of_strips.stretches[7] = Strips { first: beyond - 1, count: 2, seed: 0 };
        let mut of_stretches = sound;
        of_stretches.partitions[2] = Stretches { first: u32::MAX, count: u32::MAX };
        for directory in [of_strips, of_stretches] {
            let why = decode(&directory, &encode(&directory)).unwrap_err();
            assert_eq!(why, "its directory names strips that are not there");
        }
    }
}
