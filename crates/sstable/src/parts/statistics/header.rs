//! The columns of a file, and the numbers to which Data.db adds its deltas.
//!
//! ```text
//! vint least timestamp − 1442880000000000     vint least local deletion time − 1442880000
//! vint least TTL
//! type of the partition key     vint count, then the type of each clustering column
//! vint count, then each static column: vint length, name, type; the same for the regular ones
//! type: vint length, class name     `org.apache.cassandra.db.marshal.Int32Type`
//! ```
//!
//! The clustering columns and those of the partition key are nowhere named.

use std::collections::HashSet;

use model::time::{NO_DELETION_TIME, NO_TIMESTAMP};
use model::{Column, CqlType, Schema};

use super::{Part, Stats};
use crate::data::row::Minima;
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::encode::Encode;
use crate::{Error, Result, Version};

/// 2015-09-22, in seconds since the epoch.
const DELETION_TIME_EPOCH: i64 = 1_442_880_000;
/// The same in microseconds.
const TIMESTAMP_EPOCH: i64 = DELETION_TIME_EPOCH * 1_000_000;

/// The numbers that Data.db's timestamps, deletion times and TTLs are deltas to. Where nothing in
/// the file has one, it is the epoch of the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EncodingStats {
    /// Microseconds since the epoch.
    pub min_timestamp: i64,
    /// Seconds since the epoch.
    pub min_local_deletion_time: i64,
    /// Seconds.
    pub min_ttl: i64,
}

impl From<&EncodingStats> for Minima {
    fn from(encoding: &EncodingStats) -> Minima {
        Minima {
            timestamp: encoding.min_timestamp,
            local_deletion_time: encoding.min_local_deletion_time,
            ttl: encoding.min_ttl,
        }
    }
}

impl EncodingStats {
    /// Those of a file in which nothing has a timestamp, a deletion time or a TTL.
    pub const NONE: EncodingStats = EncodingStats {
        min_timestamp: TIMESTAMP_EPOCH,
        min_local_deletion_time: DELETION_TIME_EPOCH,
        min_ttl: 0,
    };

    /// Those of a file that is made of others, of which this is known: as Cassandra takes them. Times that a file has none of do not count; a TTL of 0
    /// does, as there may be shorter ones than those of the other files behind it.
    pub fn of_all<'a>(inputs: impl Iterator<Item = &'a Stats> + Clone) -> EncodingStats {
        let least = |of: fn(&Stats) -> i64, nothing: &[i64], otherwise: i64| {
            inputs.clone().map(of).filter(|time| !nothing.contains(time)).min().unwrap_or(otherwise)
        };
        let none = EncodingStats::NONE;
        EncodingStats {
            min_timestamp: least(|stats| stats.min_timestamp, &[NO_TIMESTAMP, i64::MAX], none.min_timestamp),
            min_local_deletion_time: least(
                |stats| stats.min_local_deletion_time,
                &[NO_DELETION_TIME],
                none.min_local_deletion_time,
            ),
            min_ttl: least(|stats| i64::from(stats.min_ttl), &[], none.min_ttl),
        }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.put_vint(self.min_timestamp.wrapping_sub(TIMESTAMP_EPOCH) as u64);
        // What does not fit 31 bits wraps around and becomes a negative number of 64 bits.
        let seconds = self.min_local_deletion_time.wrapping_sub(DELETION_TIME_EPOCH) as i32;
        bytes.put_vint(i64::from(seconds) as u64);
        bytes.put_vint(i64::from(self.min_ttl as i32) as u64);
    }
}

/// The columns of a file, as it was written: those of the table may have changed since.
#[derive(Clone, PartialEq, Debug)]
pub struct Header {
    /// What Data.db's numbers are deltas to.
    pub encoding: EncodingStats,
    /// The columns, in the order in which rows hold them.
    pub schema: Schema,
}

impl Header {
    /// What the columns hold in memory, in bytes, about: a type takes as much as its name. Rows are read by a copy.
    pub(super) fn memory_bytes(&self) -> usize {
        let columns = self.schema.statics.len() + self.schema.regulars.len();
        2 * (self.encode().len() + columns * size_of::<Column>())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encoding.encode(&mut bytes);
        put_type(&mut bytes, &self.schema.partition_key);
        put_types(&mut bytes, &self.schema.clustering);
        for columns in [&self.schema.statics, &self.schema.regulars] {
            bytes.put_vint(columns.len() as u64);
            for column in columns {
                bytes.put_vint_bytes(&column.name);
                put_type(&mut bytes, &column.data_type);
            }
        }
        bytes
    }

    pub(super) fn decode(part: &Part, version: Version, table: Option<&Schema>) -> Result<Header> {
        let raw = Raw::decode(part.cursor(), version).map_err(|error| part.error(error))?;
        // Types of keys are frozen, whether or not the file says so.
        let of_key = |text| parse_type(part, text).map(frozen_key);
        let clustering = raw.clustering.iter().map(of_key).collect::<Result<_>>()?;
        let (mut statics, mut regulars) = (columns(part, &raw.statics)?, columns(part, &raw.regulars)?);
        if let Some(table) = table.filter(|_| version.may_leave_frozen_out()) {
            freeze_as(&mut statics, &table.statics);
            freeze_as(&mut regulars, &table.regulars);
        }
        let schema = Schema::as_listed(of_key(&raw.partition_key)?, clustering, statics, regulars);
        match schema.clustering.iter().find_map(unknown_order) {
            None => Ok(Header { encoding: raw.encoding, schema }),
            Some(order) => {
                let what =
                    format!("its rows stand in the order of {order:?}: only Murmur3Partitioner is read");
                Err(Error::unsupported(part.path, what))
            }
        }
    }
}

/// The partitioner in whose order keys stand as clustering values, in the table of a secondary index, if that order is none of those that are known here.
fn unknown_order(data_type: &CqlType) -> Option<&str> {
    match data_type.unreversed() {
        CqlType::PartitionerOrder { partitioner, .. } if partitioner.ends_with("RandomPartitioner") => {
            Some(partitioner)
        }
        _ => None,
    }
}

/// A count, then each type's class name.
pub(super) fn put_types(bytes: &mut Vec<u8>, types: &[CqlType]) {
    bytes.put_vint(types.len() as u64);
    types.iter().for_each(|data_type| put_type(bytes, data_type));
}

fn put_type(bytes: &mut Vec<u8>, data_type: &CqlType) {
    bytes.put_vint_bytes(data_type.to_string().as_bytes());
}

/// A type's class name and where it stands in the part.
struct Text<'a> {
    at: usize,
    bytes: &'a [u8],
}

impl<'a> Text<'a> {
    fn decode(cursor: &mut Cursor<'a>) -> Decoded<Text<'a>> {
        let at = cursor.position();
        Ok(Text { at, bytes: cursor.vint_bytes()? })
    }
}

/// A column's name and type, both not yet understood.
struct RawColumn<'a> {
    name: Text<'a>,
    data_type: Text<'a>,
}

struct Raw<'a> {
    encoding: EncodingStats,
    partition_key: Text<'a>,
    clustering: Vec<Text<'a>>,
    statics: Vec<RawColumn<'a>>,
    regulars: Vec<RawColumn<'a>>,
}

impl<'a> Raw<'a> {
    fn decode(mut cursor: Cursor<'a>, version: Version) -> Decoded<Raw<'a>> {
        let encoding = decode_encoding(&mut cursor, version)?;
        let partition_key = Text::decode(&mut cursor)?;
        let count = cursor.vint_count(1)?;
        let clustering =
            (0..count).map(|_| Text::decode(&mut cursor)).collect::<std::result::Result<_, _>>()?;
        let statics = raw_columns(&mut cursor)?;
        let regulars = raw_columns(&mut cursor)?;
        cursor.end()?;
        Ok(Raw { encoding, partition_key, clustering, statics, regulars })
    }
}

fn decode_encoding(cursor: &mut Cursor, version: Version) -> Decoded<EncodingStats> {
    let min_timestamp = TIMESTAMP_EPOCH.wrapping_add(cursor.vint()? as i64);
    // What is before the epoch is a delta that wraps around at 32 bits, with or without sign extension.
    let seconds = DELETION_TIME_EPOCH.wrapping_add(cursor.vint()? as i64);
    let min_local_deletion_time =
        if version.has_uint_deletion_time() { i64::from(seconds as u32) } else { i64::from(seconds as i32) };
    let min_ttl = i64::from(cursor.vint()? as i32);
    Ok(EncodingStats { min_timestamp, min_local_deletion_time, min_ttl })
}

fn raw_columns<'a>(cursor: &mut Cursor<'a>) -> Decoded<Vec<RawColumn<'a>>> {
    let count = cursor.vint_count(2)?;
    (0..count)
        .map(|_| Ok(RawColumn { name: Text::decode(cursor)?, data_type: Text::decode(cursor)? }))
        .collect::<std::result::Result<_, DecodeError>>()
}

fn columns(part: &Part, raw: &[RawColumn]) -> Result<Vec<Column>> {
    check_names(part, raw)?;
    let column = |raw: &RawColumn| {
        Ok(Column { name: raw.name.bytes.into(), data_type: parse_type(part, &raw.data_type)? })
    };
    raw.iter().map(column).collect()
}

fn frozen_key(of: CqlType) -> CqlType {
    match of {
        CqlType::Composite(parts) => CqlType::Composite(parts.into_iter().map(frozen_key).collect()),
        CqlType::Reversed(of) => CqlType::Reversed(Box::new(frozen_key(*of))),
        of => of.freeze(),
    }
}

/// Freezes the user defined types that are frozen in the table.
fn freeze_as(columns: &mut [Column], table: &[Column]) {
    let is_udt = |of: &CqlType| matches!(of, CqlType::Udt(_));
    for column in columns.iter_mut().filter(|column| is_udt(&column.data_type)) {
        let of_table = table.iter().find(|of| of.name == column.name).map(|of| &of.data_type);
        if of_table.is_some_and(|of| is_udt(of) && !of.is_multi_cell()) {
            column.data_type = column.data_type.clone().freeze();
        }
    }
}

pub(super) fn parse_type_at(part: &Part, at: usize, bytes: &[u8]) -> Result<CqlType> {
    let text = std::str::from_utf8(bytes).map_err(|_| part.corrupt(at, "a type's name is not UTF-8"))?;
    CqlType::parse(text).map_err(|error| part.corrupt(at, error.to_string()))
}

fn parse_type(part: &Part, text: &Text) -> Result<CqlType> {
    parse_type_at(part, text.at, text.bytes)
}

/// No name may be there twice.
fn check_names(part: &Part, raw: &[RawColumn]) -> Result<()> {
    if raw.len() > usize::from(u16::MAX) {
        return Err(
            part.corrupt(raw[0].name.at, format!("{} columns are more than a table can have", raw.len()))
        );
    }
    let mut names = HashSet::new();
    match raw.iter().find(|column| !names.insert(column.name.bytes)) {
        None => Ok(()),
        Some(twice) => {
            let name = String::from_utf8_lossy(twice.name.bytes).into_owned();
            Err(part.corrupt(twice.name.at, format!("the column {name:?} is listed twice")))
        }
    }
}
