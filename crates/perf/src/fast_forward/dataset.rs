//! The datasets: one large partition, and many small ones; where each lies, and what it was made of.
//!
//! ```text
//! DATA_DIRECTORY/large-part-ds1/dataset.json     what it was made of
//!                               me-1-big-Data.db and so on
//! ```
//!
//! Rows have numbers, from 0 on. In the large partition row *i* has the clustering key 2*i* + 1, so that even keys are
//! absent; the small partitions are numbered in the order of the ring.

use std::fs;
use std::io::ErrorKind;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::ValueEnum;
use model::{Bytes, Clustering, Column, CqlType, PartitionKey, Position, Schema, Slice};
use serde_json::{Value, json};
use siltstone::{Error, Result};
use sstable::Version;
use sstable::component::Component;

use crate::defaults::CHUNK;

/// What it was made of, beside the SSTable.
pub const DESCRIPTION: &str = "dataset.json";

/// How many rows a dataset has at the most: the clustering keys of twice as many are numbers of 32 bits.
pub const MOST_ROWS: u32 = 1_000_000_000;

/// How large its values are at the most. Bytes.
pub const MOST_BYTES: u32 = 1 << 20;

/// How large blocks of its index are at the most. KiB.
pub const MOST_BLOCK: u32 = 1 << 20;

/// The key of the large partition.
const LARGE_KEY: i32 = 0;

/// Which rows there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Dataset {
    /// One partition: an int clustering key, of which only the odd ones are there, and a blob.
    LargePartDs1,
    /// One row a partition: an int key and a blob.
    SmallPart,
}

/// What a dataset is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// How many rows.
    pub rows: u32,
    /// Bytes of the value of each.
    pub value_size: u32,
    /// After how much of a partition its index has a new block. KiB.
    pub column_index_size_in_kb: u32,
    /// The version of the SSTable.
    pub format: Version,
    /// Whether it is compressed.
    pub compression: bool,
    /// Whether there are fences.
    pub fences: bool,
}

impl Dataset {
    /// Its name, as the command has it.
    pub fn name(self) -> &'static str {
        match self {
            Dataset::LargePartDs1 => "large-part-ds1",
            Dataset::SmallPart => "small-part",
        }
    }

    /// Its folder, in the folder of all.
    pub fn folder(self, all: &Path) -> PathBuf {
        all.join(self.name())
    }

    /// Its columns.
    pub fn schema(self) -> Rc<Schema> {
        let clustering = match self {
            Dataset::LargePartDs1 => vec![CqlType::Int],
            Dataset::SmallPart => Vec::new(),
        };
        let column = Column { name: b"value"[..].into(), data_type: CqlType::Blob };
        Rc::new(Schema::new(CqlType::Int, clustering, Vec::new(), vec![column]))
    }

    /// The keys of its partitions, in the order of the ring. Of small partitions that takes 16 bytes of memory each.
    pub fn keys(self, rows: u32) -> Vec<i32> {
        match self {
            Dataset::LargePartDs1 => vec![LARGE_KEY],
            Dataset::SmallPart => {
                let mut keys: Vec<(i64, i32)> =
                    (0..rows.cast_signed()).map(|number| (key(number).token, number)).collect();
                keys.sort_unstable();
                keys.into_iter().map(|(_, number)| number).collect()
            }
        }
    }
}

impl Shape {
    /// What the dataset in a folder was made of; `None` if there is none.
    ///
    /// # Errors
    /// A description that cannot be read or is none.
    pub fn read(folder: &Path) -> Result<Option<Shape>> {
        let path = folder.join(DESCRIPTION);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| Error::file(&path, error.to_string()))?,
        };
        let value: Value =
            serde_json::from_str(&text).map_err(|error| Error::file(&path, error.to_string()))?;
        Shape::of_json(&value).map(Some).ok_or_else(|| Error::file(&path, "it does not describe a dataset"))
    }

    /// Writes it down in the dataset's folder.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(DESCRIPTION);
        fs::write(&path, format!("{:#}\n", self.to_json()))
            .map_err(|error| Error::file(&path, error.to_string()))
    }

    /// The Data.db in the dataset's folder.
    pub fn data_file(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}-1-big-{}", self.format.name(), Component::Data.name()))
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "rows": self.rows,
            "value_size": self.value_size,
            "column_index_size_in_kb": self.column_index_size_in_kb,
            "sstable_format": self.format.name(),
            "compression": self.compression,
            "chunk_size": self.compression.then_some(CHUNK),
            "fences": self.fences,
        })
    }

    /// What it describes; `None` if no dataset of that can have been written.
    fn of_json(value: &Value) -> Option<Shape> {
        let number = |name: &str| value[name].as_u64().and_then(|number| u32::try_from(number).ok());
        let within =
            |name: &str, range: RangeInclusive<u32>| number(name).filter(|number| range.contains(number));
        let compression = value["compression"].as_bool()?;
        if compression && number("chunk_size") != Some(CHUNK) {
            return None;
        }
        Some(Shape {
            rows: within("rows", 1..=MOST_ROWS)?,
            value_size: within("value_size", 1..=MOST_BYTES)?,
            column_index_size_in_kb: within("column_index_size_in_kb", 1..=MOST_BLOCK)?,
            format: Version::parse(value["sstable_format"].as_str()?)?,
            compression,
            fences: value["fences"].as_bool()?,
        })
    }
}

/// The partition of this number.
pub fn key(number: i32) -> PartitionKey {
    PartitionKey::new(Bytes::from(number.to_be_bytes().to_vec()))
}

/// The clustering key of a row of the large partition, or of one that would be in front of the first or behind the last.
pub fn clustering(row: impl Into<i64>) -> Clustering {
    clustering_of(clustering_key(row.into()))
}

/// The slice that has these rows of the large partition and no other.
pub fn slice(rows: &Range<u32>) -> Slice {
    let last = rows.end.saturating_sub(1).max(rows.start);
    Slice { start: Position::before(clustering(rows.start)), end: Position::after(clustering(last)) }
}

/// The slice of the absent key right before a row.
pub fn absent(row: u32) -> Slice {
    Slice::of_prefix(clustering_of(i64::from(row) * 2))
}

/// The slice that has all rows of the large partition from this one on.
pub fn from(row: u32) -> Slice {
    Slice { start: Position::before(clustering(row)), end: Position::end() }
}

/// Where a reader goes that is to give all rows from `row` on, of so many: to what lies before, to two keys on either side
/// of the row's, and behind all.
pub fn around(row: u32, rows: u32) -> [Slice; 3] {
    let beside = |distance: i64| clustering_of(clustering_key(row.into()) + distance);
    [
        Slice { start: Position::start(), end: Position::before(beside(-2)) },
        Slice { start: Position::before(beside(-2)), end: Position::after(beside(2)) },
        Slice { start: Position::after(clustering(rows.max(row + 2) - 1)), end: Position::end() },
    ]
}

/// The slice that has what two have in common.
pub fn common(schema: &Schema, one: Slice, other: Slice) -> Slice {
    let is_later = schema.compare(&one.start, &other.start).is_gt();
    let is_earlier = schema.compare(&one.end, &other.end).is_lt();
    Slice {
        start: if is_later { one.start } else { other.start },
        end: if is_earlier { one.end } else { other.end },
    }
}

fn clustering_key(row: i64) -> i64 {
    row * 2 + 1
}

fn clustering_of(number: i64) -> Clustering {
    let number = i32::try_from(number).expect("so many rows are refused");
    [number.to_be_bytes().to_vec()].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Shape::read(folder.path()).unwrap(), None);
        let shape = Shape {
            rows: 400,
            value_size: 200,
            column_index_size_in_kb: 64,
            format: Version::parse("oa").unwrap(),
            compression: true,
            fences: false,
        };
        shape.write(folder.path()).unwrap();
        assert_eq!(Shape::read(folder.path()).unwrap(), Some(shape));
        assert!(shape.data_file(folder.path()).ends_with("oa-1-big-Data.db"));
        let mut other = shape.to_json();
        for rows in [0, u64::from(MOST_ROWS) + 1, u64::from(u32::MAX) + 1] {
            other["rows"] = rows.into();
            fs::write(folder.path().join(DESCRIPTION), other.to_string()).unwrap();
            assert!(Shape::read(folder.path()).is_err(), "{rows}");
        }
        fs::write(folder.path().join(DESCRIPTION), "{}").unwrap();
        assert!(Shape::read(folder.path()).is_err());
    }

    #[test]
    fn small_partitions_stand_in_the_order_of_the_ring() {
        let keys = Dataset::SmallPart.keys(100);
        assert_eq!(keys.len(), 100);
        assert!(keys.windows(2).all(|pair| key(pair[0]).token < key(pair[1]).token));
    }

    #[test]
    fn absent_keys_stand_between_rows() {
        let schema = Dataset::LargePartDs1.schema();
        let before = slice(&(4..5));
        let behind = slice(&(5..9));
        let gap = absent(5);
        assert!(schema.compare(&before.end, &gap.start).is_lt());
        assert!(schema.compare(&gap.end, &behind.start).is_lt());
        assert_eq!(behind.end, Position::after(clustering(8)));
    }

    #[test]
    fn only_the_middle_range_has_rows_of_the_later_half() {
        let schema = Dataset::LargePartDs1.schema();
        for rows in [1, 2, 3, 1000] {
            let [before, around, behind] =
                around(rows / 2, rows).map(|range| common(&schema, range, from(rows / 2)));
            assert!(schema.is_empty_slice(&before));
            assert_eq!(around, slice(&(rows / 2..rows / 2 + 2)));
            assert!(schema.compare(&around.end, &behind.start).is_le());
            assert!(schema.compare(&Position::at(clustering(rows - 1)), &behind.start).is_lt());
        }
    }
}
