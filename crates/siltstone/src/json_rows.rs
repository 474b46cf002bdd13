//! The lines of a dump, read back: each is a row, a tombstone or a partition.
//!
//! ```text
//! {"type":"row","key":["7"],"clustering":[1],"liveness_info":{"tstamp":"…"},"cells":[{"name":"v","value":7}]}
//! ```
//!
//! What `siltstone sstable dump --format jsonl` prints is read without loss. Lines that people write may leave out much;
//! what stands for what is missing is said where it is read, and in `docs/formats/json-lines.md`.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{Bytes, DeletionTime, PartitionKey, Position, Row, Schema};
use sstable::writer::Limits;

use crate::error::{Error, Result};
use crate::json_members::{Members, Read, Refusal};
use crate::keys;

mod cells;
mod positions;
mod times;

use cells::{Columns, Parts};
use times::Times;

/// What a line says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The number of the line, from 1.
    pub line: u64,
    /// The partition that it is about.
    pub key: PartitionKey,
    /// What it says of it.
    pub part: Part,
}

/// What a line says of its partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// That it is there, and how it was deleted, if it was.
    Partition(DeletionTime),
    /// Its static row.
    Static(Row),
    /// A clustered row.
    Row(Row),
    /// A range tombstone ends, begins, or does both.
    Change {
        /// Where.
        position: Position,
        /// The deletion that ends; live where none does.
        closes: DeletionTime,
        /// The deletion that begins; live where none does.
        opens: DeletionTime,
    },
    /// A whole range tombstone.
    Range {
        /// Where it begins.
        start: Position,
        /// Where it ends.
        end: Position,
        /// What it deletes.
        deletion: DeletionTime,
    },
}

/// Reads lines of rows of one table.
#[derive(Debug)]
pub struct JsonRows {
    path: PathBuf,
    line: u64,
    schema: Rc<Schema>,
    statics: Columns,
    regulars: Columns,
    times: Times,
    /// The members of the last line that tell its key, and the key: most lines are of the same one.
    last_key: Option<(String, PartitionKey)>,
    parts: Parts,
}

/// What kinds of lines there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Partition,
    StaticBlock,
    Row,
    Bound,
    Boundary,
    Range,
}

impl Piece {
    /// Whether an SSTable can hold it.
    ///
    /// # Errors
    /// In words, what it cannot.
    pub(crate) fn check(&self, limits: &Limits) -> std::result::Result<(), String> {
        match &self.part {
            Part::Static(row) | Part::Row(row) => limits.check_row(row),
            Part::Partition(deletion) => limits.check_partition(&self.key, deletion),
            Part::Change { position, closes, opens } => {
                [closes, opens].into_iter().try_for_each(|deletion| limits.check_end(position, deletion))
            }
            Part::Range { start, end, deletion } => {
                [start, end].into_iter().try_for_each(|position| limits.check_end(position, deletion))
            }
        }
    }
}

impl JsonRows {
    /// Reads rows of this schema from a file, which only messages name. What has no timestamp gets the default one,
    /// in microseconds; without a default it is refused.
    pub fn new(path: &Path, schema: Rc<Schema>, default_timestamp: Option<i64>) -> JsonRows {
        JsonRows {
            path: path.to_path_buf(),
            line: 0,
            statics: Columns::new(&schema.statics),
            regulars: Columns::new(&schema.regulars),
            schema,
            times: Times::new(default_timestamp),
            last_key: None,
            parts: Parts::default(),
        }
    }

    /// What the file's next line says; nothing where it is blank.
    ///
    /// # Errors
    /// [`Error::Text`], which names the line, what is wrong with it and what was expected.
    pub fn parse_line(&mut self, line: &str) -> Result<Option<Piece>> {
        self.line += 1;
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        match self.piece(line) {
            Ok(piece) => Ok(Some(piece)),
            Err(refusal) => {
                let place = match refusal.at() {
                    Some(at) => {
                        format!("{}:{}", self.line, line[..line.floor_char_boundary(at)].chars().count() + 1)
                    }
                    None => self.line.to_string(),
                };
                Err(Error::Text { path: self.path.clone(), place, what: refusal.in_words() })
            }
        }
    }

    /// That something is wrong with a line.
    pub fn error(&self, line: u64, what: String) -> Error {
        Error::Text { path: self.path.clone(), place: line.to_string(), what }
    }

    fn piece(&mut self, line: &str) -> Read<Piece> {
        let mut members = Members::of_line(line)?;
        let kind = kind(&mut members)?;
        let key = self.key(&mut members).map_err(|error| error.within("key"))?;
        members.take("position");
        members.take("sstable");
        let part = self.part(kind, &mut members)?;
        members.finish(kind.name())?;
        Ok(Piece { line: self.line, key, part })
    }

    fn part(&mut self, kind: Kind, members: &mut Members<'_>) -> Read<Part> {
        Ok(match kind {
            Kind::Partition => {
                Part::Partition(self.times.deletion_info(members)?.unwrap_or(DeletionTime::LIVE))
            }
            Kind::StaticBlock => Part::Static(self.row(members, true)?),
            Kind::Row => Part::Row(self.row(members, false)?),
            Kind::Bound => self.bound(members)?,
            Kind::Boundary => self.boundary(members)?,
            Kind::Range => self.range(members)?,
        })
    }

    fn key(&mut self, members: &mut Members<'_>) -> Read<PartitionKey> {
        let (text, bytes) = (members.take("key"), members.take("key_bytes"));
        let Some(told) = bytes.as_ref().or(text.as_ref()) else {
            return Err(Refusal::new("it is missing"));
        };
        let told = &members.line()[told.clone()];
        if let Some((last, key)) = &self.last_key
            && last == told
        {
            return Ok(key.clone());
        }
        let key = match bytes {
            Some(bytes) => members.hex(&bytes)?,
            None => keys::parse_partition_key(&self.schema, told).map_err(Refusal::new)?,
        };
        if key.is_empty() || key.len() > usize::from(u16::MAX) {
            return Err(Refusal::new("it has no bytes, or more than 65535"));
        }
        let key = PartitionKey::new(Bytes::from(key));
        self.last_key = Some((told.to_owned(), key.clone()));
        Ok(key)
    }
}

/// What the line is.
fn kind(members: &mut Members<'_>) -> Read<Kind> {
    let names = || Kind::ALL.map(Kind::name).join(", ");
    let Some(piece) = members.take("type") else {
        return Err(Refusal::new(format!("it has no type, which is one of {}", names())));
    };
    let name = members.string(&piece).map_err(|error| error.within("type"))?;
    let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    kind.ok_or_else(|| Refusal::new(format!("the type {name} is none of {}", names())))
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Row, Kind::StaticBlock, Kind::Partition, Kind::Bound, Kind::Boundary, Kind::Range];

    fn name(self) -> &'static str {
        match self {
            Kind::Partition => "partition",
            Kind::StaticBlock => "static_block",
            Kind::Row => "row",
            Kind::Bound => "range_tombstone_bound",
            Kind::Boundary => "range_tombstone_boundary",
            Kind::Range => "range_tombstone",
        }
    }
}

#[cfg(test)]
mod tests;
