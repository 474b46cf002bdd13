//! The partitioner of a file, which says in which order its keys are.
//!
//! ```text
//! u16 length, class name of the partitioner    f64 chance of false positives of the bloom filter
//! ```

use super::Part;
use crate::decode::{Cursor, DecodeError};
use crate::encode::Encode;
use crate::{Error, Result};

/// What puts the partitions of a file in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Partitioner {
    /// By the token of the key, then by its bytes.
    Murmur3,
    /// By the key as a value of its type: the table of a secondary index.
    Local,
}

impl Partitioner {
    /// The partitioner of that Java class, with or without its package.
    pub fn parse(class_name: &str) -> Option<Partitioner> {
        match class_name.rsplit('.').next() {
            Some("Murmur3Partitioner") => Some(Partitioner::Murmur3),
            Some("LocalPartitioner") => Some(Partitioner::Local),
            _ => None,
        }
    }

    /// The Java class, with its package, as files name it.
    pub fn class_name(self) -> &'static str {
        match self {
            Partitioner::Murmur3 => "org.apache.cassandra.dht.Murmur3Partitioner",
            Partitioner::Local => "org.apache.cassandra.dht.LocalPartitioner",
        }
    }
}

/// What a file must have in common with whoever reads it.
#[derive(Clone, PartialEq, Debug)]
pub struct Validation {
    /// What puts the partitions in order.
    pub partitioner: Partitioner,
    /// The class name of the partitioner, as the file has it.
    pub partitioner_class: String,
    /// The chance that a key which is not there passes the bloom filter, from 0 to 1.
    pub filter_fp_chance: f64,
}

impl Validation {
    /// That of a new file.
    pub fn new(partitioner: Partitioner, filter_fp_chance: f64) -> Validation {
        Validation { partitioner, partitioner_class: partitioner.class_name().to_owned(), filter_fp_chance }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_short_bytes(self.partitioner_class.as_bytes());
        bytes.put_f64(self.filter_fp_chance);
        bytes
    }

    pub(super) fn decode(part: &Part) -> Result<Validation> {
        let (class, filter_fp_chance) = decode_fields(part.cursor()).map_err(|error| part.error(error))?;
        match Partitioner::parse(class) {
            Some(partitioner) => {
                Ok(Validation { partitioner, partitioner_class: class.to_owned(), filter_fp_chance })
            }
            None => {
                let what = format!("its partitioner is {class:?}: only Murmur3Partitioner is read");
                Err(Error::unsupported(part.path, what))
            }
        }
    }
}

fn decode_fields(mut cursor: Cursor<'_>) -> std::result::Result<(&str, f64), DecodeError> {
    let start = cursor.clone();
    let Ok(class) = std::str::from_utf8(cursor.short_bytes()?) else {
        return start.invalid("the partitioner's name is not UTF-8");
    };
    let filter_fp_chance = cursor.f64()?;
    cursor.end()?;
    Ok((class, filter_fp_chance))
}
