//! Statistics.db: what the columns are, and what is in the file as a whole.
//!
//! ```text
//! u32 number of parts            n*+ u32 CRC32 of what is before
//! parts × {u32 type, u32 offset} n*+ u32 CRC32 of what is before, save that CRC32
//! each part, up to the next one  n*+ its last four bytes are the CRC32 of the others
//! ```
//!
//! | type | part | is for |
//! |---|---|---|
//! | 0 | [`Validation`] | the partitioner: other ones order their keys differently |
//! | 1 | [`Compaction`] | how many partitions there are |
//! | 2 | [`Stats`] | least and greatest of everything |
//! | 3 | [`Header`] | the columns, and the numbers to which Data.db adds its deltas |
//!
//! Parts of other types are skipped.

mod collector;
mod compaction;
mod drop_times;
mod header;
mod histogram;
mod stats;
mod validation;

use std::path::Path;

pub use collector::Collector;
pub use compaction::{CardinalityBuilder, Compaction};
pub use drop_times::DropTimesBuilder;
pub use header::{EncodingStats, Header};
pub use histogram::{DropTimes, Histogram};
pub use stats::{CommitLogPosition, CoveredClustering, Stats};
pub use validation::{Partitioner, Validation};

use model::Schema;

use crate::decode::{Cursor, DecodeError};
use crate::encode::Encode;
use crate::{Error, Result, Version};

const VALIDATION: u32 = 0;
const COMPACTION: u32 = 1;
const STATS: u32 = 2;
const HEADER: u32 = 3;

/// The CRC32 behind each part, in bytes.
const CRC_LEN: usize = 4;

/// What Statistics.db tells of an SSTable.
#[derive(Clone, PartialEq, Debug)]
pub struct Statistics {
    /// The partitioner and the bloom filter's chance of false positives.
    pub validation: Validation,
    /// The estimate of how many partitions there are.
    pub compaction: Compaction,
    /// Least and greatest of everything.
    pub stats: Stats,
    /// The columns.
    pub header: Header,
}

impl Statistics {
    /// What this holds in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let Stats { partition_sizes, cell_counts, tombstone_drop_times, first_key, last_key, .. } =
            &self.stats;
        let keys = first_key.iter().chain(last_key).map(|key| key.len()).sum::<usize>();
        size_of::<Statistics>()
            + self.compaction.cardinality.len()
            + partition_sizes.memory_bytes()
            + cell_counts.memory_bytes()
            + size_of_val(&*tombstone_drop_times.bins)
            + keys
            + self.header.memory_bytes()
    }

    /// Decodes Statistics.db.
    ///
    /// # Errors
    /// Where the bytes contradict the format or their checksums; where the keys are in the order of a
    /// partitioner that is not read.
    pub fn parse(path: &Path, bytes: &[u8], version: Version) -> Result<Statistics> {
        Statistics::parse_of(path, bytes, version, None)
    }

    /// Decodes Statistics.db of a table whose columns are known: where the version leaves open whether a user defined type is frozen,
    /// they tell.
    ///
    /// # Errors
    /// As [`Statistics::parse`].
    pub fn parse_of(
        path: &Path,
        bytes: &[u8],
        version: Version,
        table: Option<&Schema>,
    ) -> Result<Statistics> {
        let parts = Parts::find(path, bytes, version)?;
        // First of all: with another partitioner, the file is sound but not for us.
        let validation = Validation::decode(&parts.get(VALIDATION, "validation")?)?;
        let compaction = match parts.find_type(COMPACTION) {
            Some(part) => Compaction::decode(part)?,
            None => Compaction::default(),
        };
        let stats = Stats::decode(&parts.get(STATS, "stats")?, version)?;
        let header = Header::decode(&parts.get(HEADER, "header")?, version, table)?;
        Ok(Statistics { validation, compaction, stats, header })
    }

    /// The bytes of Statistics.db. What the version has no place for is left out.
    pub fn encode(&self, version: Version) -> Vec<u8> {
        let mut parts = vec![(VALIDATION, self.validation.encode())];
        // Where it was not there, there is nothing to merge an estimate with.
        if !self.compaction.cardinality.is_empty() {
            parts.push((COMPACTION, self.compaction.encode()));
        }
        parts.push((STATS, self.stats.encode(version, &self.header.schema.clustering)));
        parts.push((HEADER, self.header.encode()));
        encode_parts(&parts, version)
    }
}

/// The table of parts and the parts, in the order of their types.
fn encode_parts(parts: &[(u32, Vec<u8>)], version: Version) -> Vec<u8> {
    let crc_len = if version.has_metadata_checksum() { CRC_LEN } else { 0 };
    let mut bytes = Vec::new();
    bytes.put_u32(parts.len() as u32);
    let mut table = crc32fast::Hasher::new();
    table.update(&bytes);
    put_crc(&mut bytes, &table, version);
    let start = bytes.len();
    let mut offset = 4 + 8 * parts.len() + 2 * crc_len;
    for (kind, part) in parts {
        bytes.put_u32(*kind);
        bytes.put_u32(offset as u32);
        offset += part.len() + crc_len;
    }
    table.update(&bytes[start..]);
    put_crc(&mut bytes, &table, version);
    for (_, part) in parts {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(part);
        bytes.put(part);
        put_crc(&mut bytes, &hasher, version);
    }
    bytes
}

fn put_crc(bytes: &mut Vec<u8>, hasher: &crc32fast::Hasher, version: Version) {
    if version.has_metadata_checksum() {
        bytes.put_u32(hasher.clone().finalize());
    }
}

/// The bytes of one part, without its checksum, and where they stand in the file.
#[derive(Clone, Copy, Debug)]
struct Part<'a> {
    path: &'a Path,
    kind: u32,
    base: usize,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.bytes)
    }

    /// The error of a cursor over this part.
    fn error(&self, error: DecodeError) -> Error {
        error.in_file(self.path, self.base as u64)
    }

    /// What is wrong `at` bytes from the start of this part.
    fn corrupt(&self, at: usize, what: impl Into<String>) -> Error {
        Error::corrupt(self.path, (self.base + at) as u64, what)
    }
}

/// All parts of a file, in the order in which they stand.
struct Parts<'a> {
    path: &'a Path,
    parts: Vec<Part<'a>>,
}

impl<'a> Parts<'a> {
    fn find(path: &'a Path, bytes: &'a [u8], version: Version) -> Result<Parts<'a>> {
        let with_checksum = version.has_metadata_checksum();
        let mut places = decode_places(path, bytes, with_checksum)?;
        places.sort_by_key(|place| place.offset);
        let ends = places.iter().skip(1).map(|place| place.offset).chain([bytes.len()]);
        let parts = places.iter().zip(ends).map(|(place, end)| {
            let part = Part { path, kind: place.kind, base: place.offset, bytes: &bytes[place.offset..end] };
            if with_checksum { check_part(part) } else { Ok(part) }
        });
        Ok(Parts { path, parts: parts.collect::<Result<_>>()? })
    }

    fn find_type(&self, kind: u32) -> Option<&Part<'a>> {
        self.parts.iter().find(|part| part.kind == kind)
    }

    fn get(&self, kind: u32, name: &str) -> Result<Part<'a>> {
        let missing = || Error::corrupt(self.path, 0, format!("the {name} part is missing"));
        self.find_type(kind).copied().ok_or_else(missing)
    }
}

struct Place {
    kind: u32,
    offset: usize,
}

/// The table of parts: every offset is behind the table and within the file, no type comes twice.
fn decode_places(path: &Path, bytes: &[u8], with_checksum: bool) -> Result<Vec<Place>> {
    let mut cursor = Cursor::new(bytes);
    let places = read_places(&mut cursor, bytes, with_checksum).map_err(|error| error.in_file(path, 0))?;
    let first = cursor.position();
    for (index, place) in places.iter().enumerate() {
        let wrong = |what: &str| {
            let what = format!("part {index}, of type {}, {what} ({})", place.kind, place.offset);
            Err(Error::corrupt(path, 4, what))
        };
        if place.offset < first || place.offset > bytes.len() {
            return wrong("has an offset that is not within the file");
        }
        if places[..index].iter().any(|other| other.kind == place.kind) {
            return wrong("is there twice");
        }
    }
    Ok(places)
}

fn read_places(
    cursor: &mut Cursor,
    bytes: &[u8],
    with_checksum: bool,
) -> std::result::Result<Vec<Place>, DecodeError> {
    let count = cursor.count(8)?;
    if count > 64 {
        return Err(DecodeError::Invalid { at: 0, what: "there are more than 64 parts" });
    }
    let mut hasher = crc32fast::Hasher::new();
    if with_checksum {
        hasher.update(&bytes[..4]);
        check_crc(cursor, &hasher, "the number of parts does not match its checksum")?;
    }
    let table = cursor.position();
    let places = (0..count)
        .map(|_| Ok(Place { kind: cursor.u32()?, offset: cursor.u32()? as usize }))
        .collect::<std::result::Result<Vec<_>, DecodeError>>()?;
    if with_checksum {
        hasher.update(&bytes[table..cursor.position()]);
        check_crc(cursor, &hasher, "the table of parts does not match its checksum")?;
    }
    Ok(places)
}

fn check_crc(
    cursor: &mut Cursor,
    hasher: &crc32fast::Hasher,
    what: &'static str,
) -> std::result::Result<(), DecodeError> {
    let here = cursor.clone();
    if cursor.u32()? == hasher.clone().finalize() { Ok(()) } else { here.invalid(what) }
}

/// The part without its checksum, once that is found right.
fn check_part(part: Part<'_>) -> Result<Part<'_>> {
    let Some((bytes, crc)) = part.bytes.split_last_chunk::<CRC_LEN>() else {
        return Err(part.corrupt(0, "a part is too short for its checksum"));
    };
    let (expected, found) = (u32::from_be_bytes(*crc), crc32fast::hash(bytes));
    if expected != found {
        let what = format!("the part of type {} has checksum {found:08x}, not {expected:08x}", part.kind);
        return Err(part.corrupt(0, what));
    }
    Ok(Part { bytes, ..part })
}

#[cfg(test)]
mod tests;
