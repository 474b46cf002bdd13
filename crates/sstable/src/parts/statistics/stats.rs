//! Least and greatest of everything in a file, and where it came from.
//!
//! ```text
//! partition sizes, cell counts    histograms
//! commit log position             i64 segment, i32 position: up to where the log is in this file
//! i64 least, i64 greatest timestamp
//! i32 least, i32 greatest local deletion time          oa+: u32
//! i32 least, i32 greatest TTL
//! f64 compression ratio
//! drop times                      histogram
//! i32 level   i64 repaired at
//! m*, n*  u32 count, then each value of the least clustering with a u16 length; the same for the greatest
//! oa+     vint count, then the types of the clustering columns; a start and an end bound
//!         bound: u8 kind, u16 number of values, values as in Data.db
//! u8 has legacy counter shards    i64 cells   i64 rows
//! commit log position             from where on the log is in this file
//! u32 count, then the stretches of the log in this file, each two positions
//! n*+     u8 flag, 16 bytes pending repair     u8 is transient
//! me, nb+ u8 flag, 16 bytes originating host
//! oa+     u8 has partition deletions
//! oa+     vint length, first key, vint length, last key
//! oa+     f64 share of the token space
//! oa+     4 zeros for each bin of the drop times: Cassandra makes room for 16 bytes a bin, and fills 12
//! ```
//!
//! What follows is skipped.

use model::time::NO_DELETION_TIME;
use model::{Bytes, Clustering, CqlType, Position, Slice, Weight};

use super::header::{parse_type_at, put_types};
use super::{DropTimes, Histogram, Part};
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::encode::Encode;
use crate::{Result, Version};

/// Clustering values that share one header.
const VALUES_PER_HEADER: usize = 32;

/// The bounds of a slice by their kinds.
mod kind {
    pub(super) const EXCLUSIVE_END: u8 = 0;
    pub(super) const INCLUSIVE_START: u8 = 1;
    pub(super) const INCLUSIVE_END: u8 = 6;
    pub(super) const EXCLUSIVE_START: u8 = 7;
}

/// A place in the commit log of the server that wrote the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct CommitLogPosition {
    /// Which segment of the log.
    pub segment: i64,
    /// Bytes from the segment's start.
    pub position: i32,
}

impl CommitLogPosition {
    /// That of a file whose data is in no commit log.
    pub const NONE: CommitLogPosition = CommitLogPosition { segment: -1, position: 0 };
}

/// Between which clusterings all rows and range tombstones of a file are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CoveredClustering {
    /// From the least to the greatest; all, where there are none.
    pub slice: Slice,
    /// Whether that is so. Old writers got it wrong where there are range tombstones: their slice
    /// must not be used to leave a file out.
    pub is_accurate: bool,
}

/// Least and greatest of everything in a file, and where it came from.
#[derive(Clone, PartialEq, Debug)]
pub struct Stats {
    /// How large the partitions are in Data.db, uncompressed, in bytes.
    pub partition_sizes: Histogram,
    /// How many cells the partitions have.
    pub cell_counts: Histogram,
    /// Up to where the commit log is in this file.
    pub commit_log_upper_bound: CommitLogPosition,
    /// The least timestamp of all, in microseconds since the epoch.
    pub min_timestamp: i64,
    /// The greatest timestamp of all, in microseconds since the epoch.
    pub max_timestamp: i64,
    /// When the oldest tombstone was made or the first cell expires, in seconds since the epoch;
    /// [`NO_DELETION_TIME`] where nothing does.
    pub min_local_deletion_time: i64,
    /// When the newest tombstone was made or the last cell expires, in seconds since the epoch;
    /// [`NO_DELETION_TIME`] where something never does.
    pub max_local_deletion_time: i64,
    /// The least TTL, in seconds; 0 where something has none.
    pub min_ttl: u32,
    /// The greatest TTL, in seconds.
    pub max_ttl: u32,
    /// Compressed length over uncompressed; −1 where the data is not compressed.
    pub compression_ratio: f64,
    /// When tombstones and expiring cells become droppable, save for the grace period.
    pub tombstone_drop_times: DropTimes,
    /// The level in leveled compaction.
    pub level: u32,
    /// When the file was repaired, in milliseconds since the epoch; 0 where it was not.
    pub repaired_at: i64,
    /// Between which clusterings all rows are.
    pub covered_clustering: CoveredClustering,
    /// Whether there are counter shards from before Cassandra 2.1.
    pub has_legacy_counter_shards: bool,
    /// How many cells there are. Cassandra counts a collection as one.
    pub cell_count: u64,
    /// How many rows there are.
    pub row_count: u64,
    /// From where on the commit log is in this file.
    pub commit_log_lower_bound: CommitLogPosition,
    /// The stretches of the commit log that are in this file, both ends included.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// The session of the repair that is not yet over, as the bytes of a UUID.
    pub pending_repair: Option<[u8; 16]>,
    /// Whether the data is here only until the next repair.
    pub is_transient: bool,
    /// The server that wrote the file, as the bytes of a UUID: the commit log is its.
    pub originating_host: Option<[u8; 16]>,
    /// Whether a partition may be deleted as a whole. Where the file does not tell, `true` if anything
    /// in it is deleted or expires.
    pub may_have_partition_deletions: bool,
    /// The first key of the file, where that is told.
    pub first_key: Option<Box<[u8]>>,
    /// The last key of the file, where that is told.
    pub last_key: Option<Box<[u8]>>,
    /// The share of the server's token space that the keys cover, from 0 to 1, where that is told.
    pub token_space_coverage: Option<f64>,
}

impl Stats {
    /// The compression ratio of data that is not compressed.
    pub const NOT_COMPRESSED: f64 = -1.0;

    /// The first and the last key of the file, where that is told.
    pub fn ends(&self) -> [Option<&[u8]>; 2] {
        [self.first_key.as_deref(), self.last_key.as_deref()]
    }

    pub(super) fn decode(part: &Part, version: Version) -> Result<Stats> {
        let mut cursor = part.cursor();
        let start = Start::decode(&mut cursor, version).map_err(|error| part.error(error))?;
        let slice = covered(part, &mut cursor, version)?;
        let covered = CoveredClustering { slice, is_accurate: version.has_accurate_min_max() };
        let end = End::decode(&mut cursor, version).map_err(|error| part.error(error))?;
        Ok(assemble(start, covered, end))
    }

    /// Leaves out what the version has no place for. `clustering` are the types of the clustering columns.
    pub(super) fn encode(&self, version: Version, clustering: &[CqlType]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(8 << 10);
        self.put_start(&mut bytes, version);
        let Slice { start, end } = &self.covered_clustering.slice;
        if version.has_improved_min_max() {
            put_types(&mut bytes, clustering);
            let is_exclusive = (start.weight == Weight::After, end.weight == Weight::Before);
            let start_kind = if is_exclusive.0 { kind::EXCLUSIVE_START } else { kind::INCLUSIVE_START };
            put_bound(&mut bytes, start_kind, &start.prefix, clustering);
            let end_kind = if is_exclusive.1 { kind::EXCLUSIVE_END } else { kind::INCLUSIVE_END };
            put_bound(&mut bytes, end_kind, &end.prefix, clustering);
        } else {
            let most = legacy_count(&start.prefix).min(legacy_count(&end.prefix));
            put_legacy_values(&mut bytes, &start.prefix, most);
            put_legacy_values(&mut bytes, &end.prefix, most);
        }
        self.put_end(&mut bytes, version);
        bytes
    }

    fn put_start(&self, bytes: &mut Vec<u8>, version: Version) {
        self.partition_sizes.encode(bytes);
        self.cell_counts.encode(bytes);
        put_position(bytes, self.commit_log_upper_bound);
        bytes.put_i64(self.min_timestamp);
        bytes.put_i64(self.max_timestamp);
        put_deletion_time(bytes, self.min_local_deletion_time, version);
        put_deletion_time(bytes, self.max_local_deletion_time, version);
        bytes.put_u32(self.min_ttl);
        bytes.put_u32(self.max_ttl);
        bytes.put_f64(self.compression_ratio);
        self.tombstone_drop_times.encode(bytes, version);
        bytes.put_u32(self.level);
        bytes.put_i64(self.repaired_at);
    }

    fn put_end(&self, bytes: &mut Vec<u8>, version: Version) {
        bytes.put_u8(u8::from(self.has_legacy_counter_shards));
        bytes.put_u64(self.cell_count);
        bytes.put_u64(self.row_count);
        put_position(bytes, self.commit_log_lower_bound);
        bytes.put_u32(self.commit_log_intervals.len() as u32);
        for &(from, to) in &self.commit_log_intervals {
            put_position(bytes, from);
            put_position(bytes, to);
        }
        if version.has_pending_repair() {
            put_uuid(bytes, self.pending_repair);
        }
        if version.has_is_transient() {
            bytes.put_u8(u8::from(self.is_transient));
        }
        if version.has_originating_host() {
            put_uuid(bytes, self.originating_host);
        }
        if version.has_partition_deletion_flag() {
            bytes.put_u8(u8::from(self.may_have_partition_deletions));
        }
        if version.has_key_range() {
            bytes.put_vint_bytes(self.first_key.as_deref().unwrap_or_default());
            bytes.put_vint_bytes(self.last_key.as_deref().unwrap_or_default());
        }
        if version.has_token_space_coverage() {
            bytes.put_f64(self.token_space_coverage.unwrap_or(NOT_A_NUMBER));
        }
        if version.has_uint_deletion_time() {
            bytes.resize(bytes.len() + 4 * self.tombstone_drop_times.bins.len(), 0);
        }
    }
}

/// Java's `NaN`, bit by bit.
const NOT_A_NUMBER: f64 = f64::from_bits(0x7ff8 << 48);

fn put_position(bytes: &mut Vec<u8>, position: CommitLogPosition) {
    bytes.put_i64(position.segment);
    bytes.put_i32(position.position);
}

/// Times past the version's last one become that, as Cassandra does where it writes older versions.
fn put_deletion_time(bytes: &mut Vec<u8>, time: i64, version: Version) {
    match version.has_uint_deletion_time() {
        true if time == NO_DELETION_TIME => bytes.put_u32(u32::MAX),
        true => bytes.put_u32(time.clamp(0, i64::from(u32::MAX - 1)) as u32),
        false if time == NO_DELETION_TIME => bytes.put_i32(i32::MAX),
        false => bytes.put_i32(time.clamp(i64::from(i32::MIN), i64::from(i32::MAX - 1)) as i32),
    }
}

fn put_uuid(bytes: &mut Vec<u8>, uuid: Option<[u8; 16]>) {
    bytes.put_u8(u8::from(uuid.is_some()));
    bytes.put(uuid.as_ref().map_or(&[], <[u8; 16]>::as_slice));
}

/// How many values can be listed at the most: those before one whose length has no room. Nobody takes such a value in, but a file that
/// has one is told of by less, and not refused.
fn legacy_count(prefix: &Clustering) -> usize {
    let is_too_long =
        |value: &Option<Bytes>| value.as_ref().is_some_and(|value| u16::try_from(value.len()).is_err());
    prefix.values.iter().position(is_too_long).unwrap_or(usize::MAX)
}

/// The values up to the first that is null, and no more than so many.
fn put_legacy_values(bytes: &mut Vec<u8>, prefix: &Clustering, most: usize) {
    let values = || prefix.values.iter().take(most).map_while(Option::as_ref);
    bytes.put_u32(values().count() as u32);
    values().for_each(|value| bytes.put_short_bytes(value));
}

fn put_bound(bytes: &mut Vec<u8>, kind: u8, prefix: &Clustering, types: &[CqlType]) {
    bytes.put_u8(kind);
    bytes.put_u16(prefix.len() as u16);
    for (values, types) in prefix.values.chunks(VALUES_PER_HEADER).zip(types.chunks(VALUES_PER_HEADER)) {
        put_values(bytes, values, types);
    }
}

/// A header of two bits for each value, then those that are neither empty nor null.
fn put_values(bytes: &mut Vec<u8>, values: &[Option<Bytes>], types: &[CqlType]) {
    let state = |value: &Option<Bytes>| match value {
        None => 2,
        Some(value) => u64::from(value.is_empty()),
    };
    bytes.put_vint(values.iter().rev().fold(0, |header, value| header << 2 | state(value)));
    for (value, data_type) in values.iter().zip(types) {
        match value.as_deref().filter(|value| !value.is_empty()) {
            None => {}
            Some(value) if data_type.fixed_len().is_some() => bytes.put(value),
            Some(value) => bytes.put_vint_bytes(value),
        }
    }
}

fn assemble(start: Start, covered_clustering: CoveredClustering, end: End) -> Stats {
    let anything_is_deleted = start.local_deletion_times[0] != NO_DELETION_TIME;
    let (first_key, last_key) = end.keys.map(<(_, _)>::from).unzip();
    Stats {
        partition_sizes: start.partition_sizes,
        cell_counts: start.cell_counts,
        commit_log_upper_bound: start.commit_log_upper_bound,
        min_timestamp: start.timestamps[0],
        max_timestamp: start.timestamps[1],
        min_local_deletion_time: start.local_deletion_times[0],
        max_local_deletion_time: start.local_deletion_times[1],
        min_ttl: start.ttls[0],
        max_ttl: start.ttls[1],
        compression_ratio: start.compression_ratio,
        tombstone_drop_times: start.tombstone_drop_times,
        level: start.level,
        repaired_at: start.repaired_at,
        covered_clustering,
        has_legacy_counter_shards: end.has_legacy_counter_shards,
        cell_count: end.cell_count,
        row_count: end.row_count,
        commit_log_lower_bound: end.commit_log_lower_bound,
        commit_log_intervals: end.commit_log_intervals,
        pending_repair: end.pending_repair,
        is_transient: end.is_transient,
        originating_host: end.originating_host,
        may_have_partition_deletions: end.has_partition_deletions.unwrap_or(anything_is_deleted),
        first_key,
        last_key,
        token_space_coverage: end.token_space_coverage,
    }
}

/// What is before the covered clustering.
struct Start {
    partition_sizes: Histogram,
    cell_counts: Histogram,
    commit_log_upper_bound: CommitLogPosition,
    timestamps: [i64; 2],
    local_deletion_times: [i64; 2],
    ttls: [u32; 2],
    compression_ratio: f64,
    tombstone_drop_times: DropTimes,
    level: u32,
    repaired_at: i64,
}

impl Start {
    fn decode(cursor: &mut Cursor, version: Version) -> Decoded<Start> {
        Ok(Start {
            partition_sizes: Histogram::decode(cursor)?,
            cell_counts: Histogram::decode(cursor)?,
            commit_log_upper_bound: commit_log_position(cursor)?,
            timestamps: [cursor.i64()?, cursor.i64()?],
            local_deletion_times: [deletion_time(cursor, version)?, deletion_time(cursor, version)?],
            ttls: [cursor.u32()?, cursor.u32()?],
            compression_ratio: cursor.f64()?,
            tombstone_drop_times: DropTimes::decode(cursor, version)?,
            level: cursor.u32()?,
            repaired_at: cursor.i64()?,
        })
    }
}

/// What is after the covered clustering.
struct End {
    has_legacy_counter_shards: bool,
    cell_count: u64,
    row_count: u64,
    commit_log_lower_bound: CommitLogPosition,
    commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    pending_repair: Option<[u8; 16]>,
    is_transient: bool,
    originating_host: Option<[u8; 16]>,
    has_partition_deletions: Option<bool>,
    keys: Option<[Box<[u8]>; 2]>,
    token_space_coverage: Option<f64>,
}

impl End {
    fn decode(cursor: &mut Cursor, version: Version) -> Decoded<End> {
        Ok(End {
            has_legacy_counter_shards: flag(cursor)?,
            cell_count: cursor.u64()?,
            row_count: cursor.u64()?,
            commit_log_lower_bound: commit_log_position(cursor)?,
            commit_log_intervals: commit_log_intervals(cursor)?,
            pending_repair: when(version.has_pending_repair(), || uuid(cursor))?.flatten(),
            is_transient: when(version.has_is_transient(), || flag(cursor))?.unwrap_or(false),
            originating_host: when(version.has_originating_host(), || uuid(cursor))?.flatten(),
            has_partition_deletions: when(version.has_partition_deletion_flag(), || flag(cursor))?,
            keys: when(version.has_key_range(), || key_range(cursor))?,
            token_space_coverage: when(version.has_token_space_coverage(), || cursor.f64())?
                .filter(|share| !share.is_nan()),
        })
    }
}

/// Decodes what only some versions have.
fn when<T>(has: bool, decode: impl FnOnce() -> Decoded<T>) -> Decoded<Option<T>> {
    if has { decode().map(Some) } else { Ok(None) }
}

fn flag(cursor: &mut Cursor) -> Decoded<bool> {
    cursor.u8().map(|byte| byte != 0)
}

fn uuid(cursor: &mut Cursor) -> Decoded<Option<[u8; 16]>> {
    if !flag(cursor)? {
        return Ok(None);
    }
    let mut uuid = [0; 16];
    uuid.copy_from_slice(cursor.take(16)?);
    Ok(Some(uuid))
}

fn deletion_time(cursor: &mut Cursor, version: Version) -> Decoded<i64> {
    Ok(match version.has_uint_deletion_time() {
        true => Some(cursor.u32()?).filter(|&time| time != u32::MAX).map(i64::from),
        false => Some(cursor.i32()?).filter(|&time| time != i32::MAX).map(i64::from),
    }
    .unwrap_or(NO_DELETION_TIME))
}

fn commit_log_position(cursor: &mut Cursor) -> Decoded<CommitLogPosition> {
    Ok(CommitLogPosition { segment: cursor.i64()?, position: cursor.i32()? })
}

fn commit_log_intervals(cursor: &mut Cursor) -> Decoded<Vec<(CommitLogPosition, CommitLogPosition)>> {
    let count = cursor.count(24)?;
    (0..count).map(|_| Ok((commit_log_position(cursor)?, commit_log_position(cursor)?))).collect()
}

fn key_range(cursor: &mut Cursor) -> Decoded<[Box<[u8]>; 2]> {
    Ok([cursor.vint_bytes()?.into(), cursor.vint_bytes()?.into()])
}

fn covered(part: &Part, cursor: &mut Cursor, version: Version) -> Result<Slice> {
    match version.has_improved_min_max() {
        true => improved_covered(part, cursor),
        false => legacy_covered(cursor).map_err(|error| part.error(error)),
    }
}

fn legacy_covered(cursor: &mut Cursor) -> Decoded<Slice> {
    let (min, max) = (legacy_values(cursor)?, legacy_values(cursor)?);
    Ok(Slice { start: Position::before(min), end: Position::after(max) })
}

fn legacy_values(cursor: &mut Cursor) -> Decoded<Clustering> {
    let count = cursor.count(2)?;
    (0..count).map(|_| Ok(Bytes::from(cursor.short_bytes()?))).collect()
}

fn improved_covered(part: &Part, cursor: &mut Cursor) -> Result<Slice> {
    let located = |error: DecodeError| part.error(error);
    let count = cursor.vint_count(1).map_err(located)?;
    let mut types = Vec::with_capacity(count);
    for _ in 0..count {
        let at = cursor.position();
        let name = cursor.vint_bytes().map_err(located)?;
        types.push(parse_type_at(part, at, name)?);
    }
    let start = bound(cursor, &types).map_err(located)?;
    let end = bound(cursor, &types).map_err(located)?;
    Ok(Slice { start, end })
}

fn bound(cursor: &mut Cursor, types: &[CqlType]) -> Decoded<Position> {
    let here = cursor.clone();
    let kind = cursor.u8()?;
    let len = cursor.u16()? as usize;
    let Some(types) = types.get(..len) else {
        return here.invalid("a bound has more values than there are clustering columns");
    };
    let prefix = clustering_values(cursor, types)?;
    match kind {
        // Those two and a boundary of both.
        kind::EXCLUSIVE_END | kind::INCLUSIVE_START | 2 => Ok(Position::before(prefix)),
        // A boundary of both, and those two.
        5 | kind::INCLUSIVE_END | kind::EXCLUSIVE_START => Ok(Position::after(prefix)),
        _ => here.invalid("a bound is of no known kind"),
    }
}

/// The values of a prefix: a header of two bits each, then those that are neither empty nor null.
fn clustering_values(cursor: &mut Cursor, types: &[CqlType]) -> Decoded<Clustering> {
    let mut clustering = Clustering::default();
    for group in types.chunks(VALUES_PER_HEADER) {
        let header = cursor.vint()?;
        for (index, data_type) in group.iter().enumerate() {
            clustering.values.push(match header >> (2 * index) & 3 {
                0 => Some(Bytes::from(clustering_value(cursor, data_type)?)),
                1 => Some(Bytes::default()),
                _ => None,
            });
        }
    }
    Ok(clustering)
}

fn clustering_value<'a>(cursor: &mut Cursor<'a>, data_type: &CqlType) -> Decoded<&'a [u8]> {
    match data_type.fixed_len() {
        Some(len) => cursor.take(len),
        None => cursor.vint_bytes(),
    }
}
