//! Clusterings, and the ends of range tombstones.

use std::ops::Range;

use model::{Bytes, Clustering, CqlType, DeletionTime, Position};

use super::{JsonRows, Part};
use crate::fragment_json::NO_VALUE;
use crate::json_members::{Members, Read, Refusal};
use crate::json_reader::JsonReader;
use crate::keys;

/// Where the values of a row are put one after the other, before they become pieces of one buffer.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) bytes: Vec<u8>,
    /// Those of the clustering; nothing is null.
    clustering: Vec<Option<Range<usize>>>,
}

/// Which end of a range is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Start,
    End,
}

/// One end of a range.
struct Bound {
    position: Position,
    deletion: Option<DeletionTime>,
}

impl Values {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.clustering.clear();
    }

    /// The clustering of a row, once the bytes have an owner.
    pub(super) fn clustering(&self, owner: &std::rc::Rc<Vec<u8>>) -> Clustering {
        let values = self.clustering.iter().map(|value| value.clone().map(|value| Bytes::new(owner, value)));
        Clustering { values: values.collect() }
    }

    /// Reads the clustering of a row, or as much of it as a bound has.
    fn read(&mut self, columns: &[CqlType], members: &mut Members<'_>) -> Read<()> {
        let (values, bytes) = (members.take("clustering"), members.take("clustering_bytes"));
        let (name, Some(piece)) = (match &bytes {
            Some(_) => ("clustering_bytes", bytes),
            None => ("clustering", values),
        }) else {
            return Ok(());
        };
        let is_bytes = name == "clustering_bytes";
        self.read_array(columns, members.line(), &piece, is_bytes).map_err(|error| error.within(name))
    }

    fn read_array(
        &mut self,
        columns: &[CqlType],
        line: &str,
        piece: &Range<usize>,
        is_bytes: bool,
    ) -> Read<()> {
        let mut reader = JsonReader::within(line, piece);
        let (mut is_first, mut is_over) = (true, false);
        let mut columns = columns.iter();
        reader.begin_array()?;
        while reader.item(&mut is_first)? {
            let item = &line[reader.value()?];
            let Some(column) = columns.next() else {
                return Err(Refusal::new("it has more values than there are clustering columns"));
            };
            match item {
                NO_VALUE if !is_bytes => is_over = true,
                _ if is_over => return Err(Refusal::new("a value stands behind an asterisk")),
                "null" => self.clustering.push(None),
                item => self.read_value(column, item, is_bytes)?,
            }
        }
        Ok(())
    }

    fn read_value(&mut self, column: &CqlType, item: &str, is_bytes: bool) -> Read<()> {
        let start = self.bytes.len();
        let kind = if is_bytes { &CqlType::Blob } else { column };
        let put = kind.put_json(item, &mut self.bytes);
        let value = &self.bytes[start..];
        let checked = match is_bytes {
            true => check_width(column, value),
            false => column.validate(value).map_err(|error| Refusal::new(keys::in_words(error))),
        };
        put.map_err(|error| Refusal::new(keys::in_words(error)))?;
        checked?;
        self.clustering.push(Some(start..self.bytes.len()));
        Ok(())
    }
}

/// Checks that bytes can be written: values of some types have no length before them.
pub(super) fn check_width(kind: &CqlType, value: &[u8]) -> Read<()> {
    match kind.fixed_len() {
        Some(len) if !value.is_empty() && value.len() != len => {
            let what = format!("{} bytes where a {} has {len}", value.len(), kind.cql_name());
            Err(Refusal::new(what))
        }
        _ => Ok(()),
    }
}

impl JsonRows {
    /// The clustering of a row, which has a value for each column.
    pub(super) fn read_clustering(&self, members: &mut Members<'_>, values: &mut Values) -> Read<()> {
        let columns = &self.schema.clustering;
        let read = values.read(columns, members);
        let missing = || Refusal::new(format!("clustering: it has {} values", values.clustering.len()));
        let checked = read.and_then(|()| match values.clustering.len() == columns.len() {
            true => Ok(()),
            false => Err(missing()),
        });
        checked.map_err(|error| self.expecting(error))
    }

    /// A range tombstone that begins or ends.
    pub(super) fn bound(&self, members: &mut Members<'_>) -> Read<Part> {
        let (start, end) = (self.end(members, End::Start)?, self.end(members, End::End)?);
        let live = DeletionTime::LIVE;
        match (start, end) {
            (Some(start), None) => {
                let opens = start.deletion.ok_or_else(|| no_deletion(End::Start))?;
                Ok(Part::Change { position: start.position, closes: live, opens })
            }
            (None, Some(end)) => {
                let closes = end.deletion.ok_or_else(|| no_deletion(End::End))?;
                Ok(Part::Change { position: end.position, closes, opens: live })
            }
            _ => Err(Refusal::new("either start or end was expected")),
        }
    }

    /// A range tombstone that ends where another one begins.
    pub(super) fn boundary(&self, members: &mut Members<'_>) -> Read<Part> {
        let (Some(start), Some(end)) = (self.end(members, End::Start)?, self.end(members, End::End)?) else {
            return Err(Refusal::new("both start and end were expected"));
        };
        if start.position != end.position {
            return Err(Refusal::new("start and end do not stand at one place"));
        }
        let opens = start.deletion.ok_or_else(|| no_deletion(End::Start))?;
        let closes = end.deletion.ok_or_else(|| no_deletion(End::End))?;
        Ok(Part::Change { position: start.position, closes, opens })
    }

    /// A whole range tombstone; an end that is missing is that of the partition.
    pub(super) fn range(&self, members: &mut Members<'_>) -> Read<Part> {
        let (start, end) = (self.end(members, End::Start)?, self.end(members, End::End)?);
        let Some(deletion) = self.times.deletion_info(members)? else {
            return Err(Refusal::new("deletion_info is missing"));
        };
        let is_told = |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| bound.deletion.is_some());
        if is_told(&start) || is_told(&end) {
            return Err(Refusal::new("the deletion_info of a whole range stands beside its ends"));
        }
        let start = start.map_or_else(Position::start, |bound| bound.position);
        let end = end.map_or_else(Position::end, |bound| bound.position);
        if self.schema.compare(&start, &end).is_ge() {
            return Err(Refusal::new("the range ends before it begins"));
        }
        Ok(Part::Range { start, end, deletion })
    }

    fn end(&self, members: &mut Members<'_>, end: End) -> Read<Option<Bound>> {
        let Some(members) = members.take_object(end.name())? else { return Ok(None) };
        let bound = self.read_bound(members, end);
        bound.map(Some).map_err(|error| error.within(end.name()))
    }

    fn read_bound(&self, mut members: Members<'_>, end: End) -> Read<Bound> {
        let kind = members.take("type").ok_or_else(|| Refusal::new("type is missing"))?;
        let is_inclusive = match &*members.string(&kind)? {
            "inclusive" => true,
            "exclusive" => false,
            _ => return Err(Refusal::new("type: inclusive or exclusive was expected")),
        };
        let mut values = Values::default();
        let read = values.read(&self.schema.clustering, &mut members);
        read.map_err(|error| self.expecting(error))?;
        let deletion = self.times.deletion_info(&mut members)?;
        members.finish(end.name())?;
        let owner = std::rc::Rc::new(std::mem::take(&mut values.bytes));
        let prefix = values.clustering(&owner);
        let is_before = (end == End::Start) == is_inclusive;
        let position = if is_before { Position::before(prefix) } else { Position::after(prefix) };
        Ok(Bound { position, deletion })
    }

    /// What is wrong with a clustering, and what was expected.
    fn expecting(&self, refusal: Refusal) -> Refusal {
        let expected = keys::expected_clustering(&self.schema.clustering);
        refusal.with(&format!("; expected {expected}"))
    }
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Start => "start",
            End::End => "end",
        }
    }
}

fn no_deletion(end: End) -> Refusal {
    Refusal::new("deletion_info is missing").within(end.name())
}
