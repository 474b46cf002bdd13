//! The codec of rows and range tombstones in Data.db, the same for every index format.
//!
//! ```text
//! partition   u16 key length, key, deletion, static row (only where the header has static columns),
//!             unfiltereds, 01
//! unfiltered  flags: 01 end of partition   02 marker   04 timestamp   08 TTL   10 deletion
//!                    20 all columns        40 complex deletions       80 an extended byte follows
//!             extended: 01 static   02 the deletion is shadowable
//!                       80 a shadowable deletion follows the other one (ScyllaDB)
//! row         flags, clustering values, vint body size, { vint previous size,
//!             [timestamp [TTL, local expiration]] [deletion] [shadowable deletion]
//!             [column subset], columns }
//! cell        flags: 01 deleted  02 expiring  04 no value  08 row's timestamp  10 row's TTL
//!             [timestamp] [local deletion time] [TTL] [path] [value]
//! complex     [deletion], vint cells, cells
//! marker      flags, kind, u16 columns, values, vint body size, { vint previous size,
//!             deletion of the end, deletion of the start: whichever the kind has }
//! ```
//!
//! Timestamps, local deletion times and TTLs are vint deltas from the minima in the header.

use std::ops::Range;
use std::rc::Rc;

use model::time::{NO_DELETION_TIME, NO_TIMESTAMP};
use model::types::NumberOrder;
use model::{
    Bytes, Cell, CellValue, Clustering, CqlType, DeletionTime, Liveness, Position, Row, Schema, Weight,
};
use runtime::{ROWS_AHEAD, prefetch, prefetch_row};

use crate::Version;
use crate::decode::{Cursor, DecodeError};

mod alike;
mod compare;
mod encode;
mod usual;

pub(crate) use alike::{RowHabit, RowOutline};
pub(crate) use compare::{RowAt, Sought, Value, Values};

pub use encode::put_deletion_time;

/// No clustering value has more bytes: neither family takes a longer one.
const LONGEST_CLUSTERING_VALUE: usize = u16::MAX as usize;

/// No body of a marker has more bytes: five vints.
const LONGEST_MARKER: usize = 5 * 9;

const LONGER_THAN_ITS_SIZE: &str = "a row is longer than its size";
const SHORTER_THAN_ITS_SIZE: &str = "a row is shorter than its size";

/// What a local deletion time becomes where the bytes give one that cannot be.
pub const INVALID_DELETION_TIME: i64 = u32::MAX as i64 - 1;

mod flag {
    pub(super) const END_OF_PARTITION: u8 = 0x01;
    pub(super) const MARKER: u8 = 0x02;
    pub(super) const TIMESTAMP: u8 = 0x04;
    pub(super) const TTL: u8 = 0x08;
    pub(super) const DELETION: u8 = 0x10;
    pub(super) const ALL_COLUMNS: u8 = 0x20;
    pub(super) const COMPLEX_DELETION: u8 = 0x40;
    pub(super) const EXTENDED: u8 = 0x80;

    pub(super) const EXTENDED_STATIC: u8 = 0x01;
    pub(super) const EXTENDED_SHADOWABLE: u8 = 0x02;
    pub(super) const EXTENDED_SCYLLA_SHADOWABLE: u8 = 0x80;

    /// Whether they are those of a row that is not static.
    #[inline(always)]
    pub(super) fn are_of_row(flags: u8) -> bool {
        flags & (END_OF_PARTITION | MARKER | EXTENDED) == 0
    }
}

mod cell_flag {
    pub(super) const DELETED: u8 = 0x01;
    pub(super) const EXPIRING: u8 = 0x02;
    pub(super) const EMPTY: u8 = 0x04;
    pub(super) const ROW_TIMESTAMP: u8 = 0x08;
    pub(super) const ROW_TTL: u8 = 0x10;
}

type Decoded<T> = std::result::Result<T, DecodeError>;

/// The minima that rows of a file are written relative to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Minima {
    /// Microseconds.
    pub timestamp: i64,
    /// Seconds.
    pub local_deletion_time: i64,
    /// Seconds.
    pub ttl: i64,
}

/// For whom a file is written, where the two families differ within one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum Family {
    /// A row has one deletion, which may be shadowable. ScyllaDB refuses those that are.
    #[default]
    Cassandra,
    /// A shadowable deletion stands beside the row's other one. Cassandra cannot read it.
    Scylla,
}

/// How one file's rows are coded.
#[derive(Debug)]
pub struct RowCodec {
    minima: Minima,
    version: Version,
    family: Family,
    clustering: Vec<Width>,
    /// The order of the only clustering column, if it is of whole numbers and they have a width in files.
    only_number: Option<NumberOrder>,
    statics: Vec<ColumnCodec>,
    regulars: Vec<ColumnCodec>,
    /// How many of these have one cell: the first ones.
    simple_regulars: usize,
    can_be_usual: bool,
}

/// How long a value is: fixed by its type, or told by a vint before it.
type Width = Option<usize>;

#[derive(Debug)]
struct ColumnCodec {
    is_complex: bool,
    width: Width,
}

/// The head of a partition.
#[derive(Debug)]
pub struct Head {
    /// The serialized partition key.
    pub key: Bytes,
    /// The deletion of the partition.
    pub deletion: DeletionTime,
}

/// The part of a row or marker that decides whether it is wanted.
#[derive(Debug)]
pub enum Lead {
    /// No more in this partition.
    End,
    /// A clustered row; its body follows.
    Row(RowLead),
    /// A range tombstone's end, start or both.
    Marker(Marker),
}

/// The lead of a row, besides its clustering key.
#[derive(Debug)]
pub struct RowLead {
    flags: u8,
    extended: u8,
    /// Where the body lies in the buffer.
    pub body: Range<usize>,
}

impl RowLead {
    /// Where the clustering values are of the row that begins at `at`, or its size where it has none.
    pub(super) fn values_at(&self, at: usize) -> usize {
        at + 1 + usize::from(self.flags & flag::EXTENDED != 0)
    }

    /// The bytes of its clustering values, or of its size where it has none.
    pub(super) fn values<'a>(&self, source: &'a Source<'_>, at: usize) -> &'a [u8] {
        &source.owner[self.values_at(at)..self.body.start]
    }
}

/// A range tombstone marker.
#[derive(Debug)]
pub struct Marker {
    /// Where it stands.
    pub position: Position,
    /// The deletion that ends here.
    pub closes: Option<DeletionTime>,
    /// The deletion that begins here.
    pub opens: Option<DeletionTime>,
}

/// Bytes at hand: values that are decoded point into `owner`.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The buffer.
    pub owner: &'a Rc<Vec<u8>>,
    /// Decoding may not go past this place of the buffer.
    pub end: usize,
}

impl<'a> Source<'a> {
    /// Begins to [bring near](bring_near) the CPU the keys alone.
    #[inline]
    fn bring_key_near(&self, row: &Range<usize>) {
        if let Some(ahead) = self.owner.get(row.start + ROWS_AHEAD * row.len()) {
            prefetch(ahead);
        }
    }

    /// A cursor from `at` to the end of what may be decoded.
    fn cursor(&self, at: usize) -> Place<'a> {
        Place { cursor: Cursor::new(&self.owner[at..self.end]), start: at, owner: self.owner }
    }
}

/// Begins to bring near the CPU what stands in these bytes some rows behind one, if these are as long as it is
/// ([0036](../../../../docs/decisions/0036-rows-brought-near.md)).
#[inline]
pub(crate) fn bring_near(bytes: &[u8], row: &Range<usize>) {
    if let Some(ahead) = bytes.get(row.start + ROWS_AHEAD * row.len()..) {
        prefetch_row(ahead);
    }
}

/// A cursor that knows where it is in the buffer, so that values can share it.
struct Place<'a> {
    cursor: Cursor<'a>,
    start: usize,
    owner: &'a Rc<Vec<u8>>,
}

impl<'a> Place<'a> {
    fn at(&self) -> usize {
        self.start + self.cursor.position()
    }

    #[inline]
    fn shared(&mut self, len: usize) -> Decoded<Bytes> {
        let start = self.at();
        self.cursor.skip(len)?;
        Ok(Bytes::new(self.owner, start..start + len))
    }

    #[inline]
    fn value(&mut self, width: Width) -> Decoded<Bytes> {
        let len = len_of(&mut self.cursor, width)?;
        self.shared(len)
    }

    #[inline]
    fn clustering_value(&mut self, width: Width) -> Decoded<Bytes> {
        let len = len_of(&mut self.cursor, width)?;
        if width.is_none() && len > LONGEST_CLUSTERING_VALUE {
            return self.cursor.invalid("a clustering value is longer than 65535 bytes");
        }
        self.shared(len)
    }
}

/// The place of a row's or marker's body, whose size is next, and whether all of it is at hand. Goes to it.
#[inline]
fn body(place: &mut Place<'_>) -> Decoded<(Range<usize>, bool)> {
    let len = place.cursor.vint_len()?;
    let start = place.at();
    Ok((start..start + len, len <= place.cursor.remaining()))
}

/// How many bytes a value has; they follow.
#[inline]
fn len_of(cursor: &mut Cursor<'_>, width: Width) -> Decoded<usize> {
    match width {
        Some(len) => Ok(len),
        None => cursor.vint_len(),
    }
}

impl RowCodec {
    /// The codec of a file with this schema. The schema's columns are in the order of rows.
    pub fn new(schema: &Schema, minima: Minima, version: Version) -> RowCodec {
        let columns = |of_static| {
            let codec = |column: &model::Column| ColumnCodec {
                is_complex: column.data_type.is_multi_cell(),
                // A cell of a multi-cell column is coded by the column's own type, which has no fixed length.
                width: column.data_type.fixed_len(),
            };
            schema.columns(of_static).iter().map(codec).collect()
        };
        let clustering: Vec<Width> = schema.clustering.iter().map(CqlType::fixed_len).collect();
        let codec = RowCodec {
            minima,
            version,
            family: Family::default(),
            only_number: schema.number_order().filter(|order| clustering == [Some(order.len)]),
            clustering,
            statics: columns(true),
            regulars: columns(false),
            simple_regulars: 0,
            can_be_usual: false,
        };
        let simple = codec.regulars.iter().take_while(|column| !column.is_complex).count();
        RowCodec { simple_regulars: simple, can_be_usual: codec.has_usual_rows(), ..codec }
    }

    /// The same codec, writing for this family. What it reads does not depend on it.
    pub fn writing_for(self, family: Family) -> RowCodec {
        RowCodec { family, ..self }
    }

    /// Whether partitions have a static row, be it empty.
    pub fn has_static_row(&self) -> bool {
        !self.statics.is_empty()
    }

    /// The head of the partition at `at`, and where it ends.
    ///
    /// All errors here and below are relative to `at`.
    pub fn partition_head(&self, source: Source<'_>, at: usize) -> Decoded<(Head, usize)> {
        let mut place = source.cursor(at);
        let key_len = place.cursor.u16()? as usize;
        let key = place.shared(key_len)?;
        let deletion = deletion_time(&mut place.cursor, self.version)?;
        Ok((Head { key, deletion }, place.at()))
    }

    /// The static row at `at`, and where it ends. Empty where the partition has none.
    pub fn static_row(&self, source: Source<'_>, at: usize) -> Decoded<(Row, usize)> {
        let mut place = source.cursor(at);
        let flags = place.cursor.u8()?;
        if flags & flag::EXTENDED == 0 || flags & (flag::MARKER | flag::END_OF_PARTITION) != 0 {
            return place.cursor.invalid("a static row is expected here");
        }
        let extended = place.cursor.u8()?;
        if extended & flag::EXTENDED_STATIC == 0 {
            return place.cursor.invalid("a static row is expected here");
        }
        let (lead, end) = self.row_lead(place, flags, extended)?;
        let mut row = Row::new(Clustering::empty());
        self.row(source, at, &lead, &mut row)?;
        Ok((row, end))
    }

    /// What begins at `at`, and where it ends: a row with its body, a marker, or the partition's end. The key of a row goes
    /// into `key`, which has nothing in it.
    #[inline]
    pub fn lead(&self, source: Source<'_>, at: usize, key: &mut Clustering) -> Decoded<(Lead, usize)> {
        let mut place = source.cursor(at);
        let flags = place.cursor.u8()?;
        if flags & flag::END_OF_PARTITION != 0 {
            return if flags == flag::END_OF_PARTITION {
                Ok((Lead::End, place.at()))
            } else {
                place.cursor.invalid("the flags of the partition's end have other bits")
            };
        }
        let extended = if flags & flag::EXTENDED != 0 { place.cursor.u8()? } else { 0 };
        if extended & flag::EXTENDED_STATIC != 0 {
            return place.cursor.invalid("a static row stands among the clustered rows");
        }
        if flags & flag::MARKER != 0 {
            return self.marker(source, &mut place);
        }
        self.clustering_values(&mut place, self.clustering.len(), key)?;
        let (lead, end) = self.row_lead(place, flags, extended)?;
        Ok((Lead::Row(lead), end))
    }

    /// The lead of a row whose size is next, and where the row ends.
    #[inline]
    fn row_lead(&self, mut place: Place<'_>, flags: u8, extended: u8) -> Decoded<(RowLead, usize)> {
        let (body, is_at_hand) = body(&mut place)?;
        let lead = RowLead { flags, extended, body };
        if !is_at_hand {
            return Err(self.cut_off(place, &lead));
        }
        let end = lead.body.end;
        Ok((lead, end))
    }

    /// What is wrong with a row of whose body, which is next, only the beginning is at hand, or else what it lacks: a size that
    /// is damaged is found by what has to end before it, not by reading gigabytes.
    #[cold]
    fn cut_off(&self, mut place: Place<'_>, lead: &RowLead) -> DecodeError {
        let needed = place.cursor.position() + lead.body.len();
        let mut row = Row::new(Clustering::empty());
        match self.row_body(&mut place, lead, &mut row) {
            Ok(()) => DecodeError::Invalid { at: place.cursor.position(), what: SHORTER_THAN_ITS_SIZE },
            Err(DecodeError::Truncated { needed: inner }) if inner <= needed => {
                DecodeError::Truncated { needed }
            }
            Err(DecodeError::Truncated { .. }) => {
                DecodeError::Invalid { at: needed, what: LONGER_THAN_ITS_SIZE }
            }
            Err(invalid) => invalid,
        }
    }

    /// The rest of the row of a lead that began at `at`, into a row that has nothing but its key.
    #[inline]
    pub fn row(&self, source: Source<'_>, at: usize, lead: &RowLead, row: &mut Row) -> Decoded<()> {
        let within = Source { owner: source.owner, end: lead.body.end };
        let mut place = within.cursor(lead.body.start);
        let body_start = lead.body.start - at;
        self.row_body(&mut place, lead, row).map_err(|error| match error {
            DecodeError::Truncated { .. } => {
                let at = body_start + lead.body.len();
                DecodeError::Invalid { at, what: LONGER_THAN_ITS_SIZE }
            }
            DecodeError::Invalid { at, what } => DecodeError::Invalid { at: body_start + at, what },
        })?;
        if place.cursor.remaining() != 0 {
            let at = body_start + place.cursor.position();
            return Err(DecodeError::Invalid { at, what: SHORTER_THAN_ITS_SIZE });
        }
        Ok(())
    }

    /// A clustering prefix with its kind, as the promoted index has it.
    pub fn clustering_prefix(&self, source: Source<'_>, at: usize) -> Decoded<(Position, usize)> {
        let mut place = source.cursor(at);
        let (columns, weight) = self.kind_of_prefix(&mut place.cursor)?;
        let prefix = self.prefix(&mut place, columns)?;
        Ok((Position { prefix, weight }, place.at()))
    }

    /// How many values a prefix with its kind has, and its weight; the values follow.
    #[inline]
    fn kind_of_prefix(&self, cursor: &mut Cursor<'_>) -> Decoded<(usize, Weight)> {
        let kind = cursor.u8()?;
        if kind == KIND_ROW {
            return Ok((self.clustering.len(), Weight::At));
        }
        let columns = self.bound_size(cursor)?;
        match bound(kind) {
            Some(bound) => Ok((columns, bound.weight)),
            None => cursor.invalid("an unknown kind of clustering prefix"),
        }
    }

    fn bound_size(&self, cursor: &mut Cursor<'_>) -> Decoded<usize> {
        let columns = cursor.u16()? as usize;
        if columns > self.clustering.len() {
            return cursor.invalid("a bound has more columns than the clustering key");
        }
        Ok(columns)
    }

    /// The first `count` clustering values.
    #[inline]
    fn prefix(&self, place: &mut Place<'_>, count: usize) -> Decoded<Clustering> {
        let mut prefix = Clustering::empty();
        self.clustering_values(place, count, &mut prefix)?;
        Ok(prefix)
    }

    /// The first `count` clustering values: a vint of two bits a value for every 32, then the values.
    #[inline]
    fn clustering_values(&self, place: &mut Place<'_>, count: usize, to: &mut Clustering) -> Decoded<()> {
        let mut bits = 0;
        for (i, &width) in self.clustering[..count].iter().enumerate() {
            if i % 32 == 0 {
                bits = place.cursor.vint()?;
            }
            let value = match (bits >> (2 * (i % 32))) & 0b11 {
                0b00 => Some(place.clustering_value(width)?),
                0b01 => Some(place.shared(0)?),
                _ => None,
            };
            to.values.push(value);
        }
        let used = 2 * (count % 32);
        if used != 0 && bits >> used != 0 {
            return place.cursor.invalid("a clustering prefix tells of values that it does not have");
        }
        Ok(())
    }

    fn marker(&self, source: Source<'_>, place: &mut Place<'_>) -> Decoded<(Lead, usize)> {
        let kind = place.cursor.u8()?;
        let Some(bound) = bound(kind) else {
            return place.cursor.invalid("an unknown kind of range tombstone bound");
        };
        let columns = self.bound_size(&mut place.cursor)?;
        let prefix = self.prefix(place, columns)?;
        let (body, is_at_hand) = body(place)?;
        if body.len() > LONGEST_MARKER {
            return place.cursor.invalid("a range tombstone is longer than two deletions");
        }
        if !is_at_hand {
            return Err(DecodeError::Truncated { needed: place.cursor.position() + body.len() });
        }
        let mut inner = Source { owner: source.owner, end: body.end }.cursor(body.start);
        let size_is_off = DecodeError::Invalid {
            at: place.cursor.position() + body.len(),
            what: "a range tombstone's size is not that of its content",
        };
        let (closes, opens) = self.marker_body(&mut inner.cursor, bound).map_err(|_| size_is_off)?;
        if inner.cursor.remaining() != 0 {
            return Err(size_is_off);
        }
        let position = Position { prefix, weight: bound.weight };
        Ok((Lead::Marker(Marker { position, closes, opens }), body.end))
    }

    fn marker_body(
        &self,
        cursor: &mut Cursor<'_>,
        bound: Bound,
    ) -> Decoded<(Option<DeletionTime>, Option<DeletionTime>)> {
        cursor.vint()?;
        let closes = if bound.closes { Some(self.row_deletion(cursor)?) } else { None };
        let opens = if bound.opens { Some(self.row_deletion(cursor)?) } else { None };
        Ok((closes, opens))
    }

    #[inline]
    fn row_body(&self, place: &mut Place<'_>, lead: &RowLead, row: &mut Row) -> Decoded<()> {
        let flags = lead.flags;
        place.cursor.vint()?;
        if flags & flag::TIMESTAMP != 0 {
            row.liveness = self.liveness(&mut place.cursor, flags & flag::TTL != 0)?;
        }
        if flags & flag::DELETION != 0 {
            let deletion = self.row_deletion(&mut place.cursor)?;
            let is_shadowable = lead.extended & flag::EXTENDED_SHADOWABLE != 0;
            *(if is_shadowable { &mut row.shadowable } else { &mut row.deletion }) = deletion;
        }
        if lead.extended & flag::EXTENDED_SCYLLA_SHADOWABLE != 0 {
            row.shadowable = self.row_deletion(&mut place.cursor)?;
        }
        let of_static = lead.extended & flag::EXTENDED_STATIC != 0;
        let columns = if of_static { &self.statics } else { &self.regulars };
        let has_complex_deletion = flags & flag::COMPLEX_DELETION != 0;
        if flags & flag::ALL_COLUMNS == 0 {
            return self.subset(place, columns, has_complex_deletion, row);
        }
        row.cells.reserve(columns.len().min(place.cursor.remaining()));
        (0..columns.len()).try_for_each(|index| self.column(place, columns, index, has_complex_deletion, row))
    }

    fn liveness(&self, cursor: &mut Cursor<'_>, has_ttl: bool) -> Decoded<Liveness> {
        let timestamp = self.timestamp(cursor)?;
        if !has_ttl {
            return Ok(Liveness { timestamp, ..Liveness::NONE });
        }
        let ttl = self.ttl(cursor)?;
        let local = self.local_deletion_time(cursor)?;
        Ok(Liveness { timestamp, ttl, local_expiration_time: sane_local_deletion_time(local, ttl) })
    }

    /// Columns of a row that lacks some: see [`present_columns`].
    fn subset(
        &self,
        place: &mut Place<'_>,
        columns: &[ColumnCodec],
        has_complex_deletion: bool,
        row: &mut Row,
    ) -> Decoded<()> {
        if columns.len() < 64 {
            let missing = place.cursor.vint()?;
            if missing >> columns.len() != 0 {
                return place.cursor.invalid("a row lacks columns that the table does not have");
            }
            return (0..columns.len())
                .filter(|index| missing >> index & 1 == 0)
                .try_for_each(|index| self.column(place, columns, index, has_complex_deletion, row));
        }
        let present = present_columns(&mut place.cursor, columns.len())?;
        present
            .into_iter()
            .try_for_each(|index| self.column(place, columns, index, has_complex_deletion, row))
    }

    #[inline]
    fn column(
        &self,
        place: &mut Place<'_>,
        columns: &[ColumnCodec],
        index: usize,
        has_complex_deletion: bool,
        row: &mut Row,
    ) -> Decoded<()> {
        let column = &columns[index];
        if !column.is_complex {
            // Most cells by far are one value that was written with its row, or by itself.
            let flags = place.cursor.peek().unwrap_or(cell_flag::EMPTY);
            let cell = match flags & !cell_flag::ROW_TIMESTAMP {
                0 => self.plain_cell(place, column, index as u16, &row.liveness)?,
                _ => self.cell(place, column, index as u16, &row.liveness)?,
            };
            row.cells.push(cell);
            return Ok(());
        }
        if has_complex_deletion && let Some(deletion) = self.complex_deletion(&mut place.cursor)? {
            row.complex_deletions.push((index as u16, deletion));
        }
        let count = place.cursor.vint_len()?;
        for _ in 0..count {
            let cell = self.cell(place, column, index as u16, &row.liveness)?;
            row.cells.push(cell);
        }
        Ok(())
    }

    /// A cell with a value that neither expires nor is deleted.
    #[inline]
    fn plain_cell(
        &self,
        place: &mut Place<'_>,
        column: &ColumnCodec,
        index: u16,
        row: &Liveness,
    ) -> Decoded<Cell> {
        let timestamp = match place.cursor.u8()? & cell_flag::ROW_TIMESTAMP != 0 {
            true => row.timestamp,
            false => self.timestamp(&mut place.cursor)?,
        };
        let value = CellValue::Value(place.value(column.width)?);
        let local_deletion_time = NO_DELETION_TIME;
        Ok(Cell { column: index, ttl: 0, timestamp, local_deletion_time, path: None, value })
    }

    fn cell(&self, place: &mut Place<'_>, column: &ColumnCodec, index: u16, row: &Liveness) -> Decoded<Cell> {
        let flags = place.cursor.u8()?;
        let is_deleted = flags & cell_flag::DELETED != 0;
        let is_expiring = flags & cell_flag::EXPIRING != 0;
        let row_ttl = flags & cell_flag::ROW_TTL != 0;
        let timestamp = match flags & cell_flag::ROW_TIMESTAMP != 0 {
            true => row.timestamp,
            false => self.timestamp(&mut place.cursor)?,
        };
        let local_deletion_time = match (row_ttl, is_deleted || is_expiring) {
            (true, _) => row.local_expiration_time,
            (false, true) => self.local_deletion_time(&mut place.cursor)?,
            (false, false) => NO_DELETION_TIME,
        };
        let ttl = match (row_ttl, is_expiring) {
            (true, _) => row.ttl,
            (false, true) => self.ttl(&mut place.cursor)?,
            (false, false) => 0,
        };
        let path = if column.is_complex { Some(place.value(None)?) } else { None };
        let has_value = flags & cell_flag::EMPTY == 0;
        let value = if has_value { place.value(column.width)? } else { place.shared(0)? };
        // One that ends and lived for no time is a tombstone, whatever it says: so Cassandra takes it.
        let is_dead = is_deleted || (ttl == 0 && local_deletion_time != NO_DELETION_TIME);
        let value = if is_dead { CellValue::Tombstone } else { CellValue::Value(value) };
        let local_deletion_time = sane_local_deletion_time(local_deletion_time, ttl);
        Ok(Cell { column: index, ttl, timestamp, local_deletion_time, path, value })
    }

    #[inline]
    fn timestamp(&self, cursor: &mut Cursor<'_>) -> Decoded<i64> {
        Ok(self.minima.timestamp.wrapping_add(cursor.vint()? as i64))
    }

    /// Seconds. Writers before `oa` kept 32 bits with a sign, and what they wrote may have overflowed. Since then
    /// the 32 bits have no sign; the delta is still written as if they had, in nine bytes where it is negative.
    fn local_deletion_time(&self, cursor: &mut Cursor<'_>) -> Decoded<i64> {
        let delta = cursor.vint()? as i64;
        let sum = self.minima.local_deletion_time.wrapping_add(delta);
        if !self.version.has_uint_deletion_time() {
            return Ok(i64::from(sum as i32));
        }
        if (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&delta) {
            return Ok(i64::from(sum as u32));
        }
        cursor.invalid("a deletion time is out of range")
    }

    /// A TTL may be below the least one of the header, if that is of other files: the delta is negative then, and has nine bytes.
    fn ttl(&self, cursor: &mut Cursor<'_>) -> Decoded<u32> {
        let delta = cursor.vint()? as i64;
        match self.minima.ttl.checked_add(delta) {
            Some(ttl) if (0..=i64::from(i32::MAX)).contains(&ttl) => Ok(ttl as u32),
            _ => cursor.invalid("a TTL is out of range"),
        }
    }

    /// The deletion of a multi-cell column. All such columns of a row have one as soon as one of them has: with
    /// the least of all timestamps it is live, whatever its local time, which is then of no meaning.
    fn complex_deletion(&self, cursor: &mut Cursor<'_>) -> Decoded<Option<DeletionTime>> {
        let marked_for_delete_at = self.timestamp(cursor)?;
        if marked_for_delete_at == NO_TIMESTAMP {
            cursor.vint()?;
            return Ok(None);
        }
        let local = self.local_deletion_time(cursor)?;
        Ok(Some(deletion_of(marked_for_delete_at, local)))
    }

    fn row_deletion(&self, cursor: &mut Cursor<'_>) -> Decoded<DeletionTime> {
        let marked_for_delete_at = self.timestamp(cursor)?;
        let local = self.local_deletion_time(cursor)?;
        Ok(deletion_of(marked_for_delete_at, local))
    }
}

/// A deletion as partitions and index blocks have it.
///
/// ```text
/// before oa   i32 local deletion time, i64 marked for delete at; live: i32::MAX, i64::MIN
/// oa          80 where live; otherwise i64 marked for delete at (never negative), u32 local deletion time
/// ```
pub fn deletion_time(cursor: &mut Cursor<'_>, version: Version) -> Decoded<DeletionTime> {
    if !version.has_uint_deletion_time() {
        let local = i64::from(cursor.i32()?);
        let marked = cursor.i64()?;
        let live = local == i64::from(i32::MAX) && marked == i64::MIN;
        return Ok(if live { DeletionTime::LIVE } else { deletion_of(marked, local) });
    }
    let first = cursor.u8()?;
    if first & 0x80 != 0 {
        return if first == 0x80 {
            Ok(DeletionTime::LIVE)
        } else {
            cursor.invalid("the flags of a deletion have other bits than live")
        };
    }
    let rest = cursor.take(7)?;
    let marked = rest.iter().fold(i64::from(first), |sum, &byte| sum << 8 | i64::from(byte));
    let local = match cursor.u32()? {
        u32::MAX => NO_DELETION_TIME,
        seconds => i64::from(seconds),
    };
    Ok(DeletionTime { marked_for_delete_at: marked, local_deletion_time: local })
}

fn deletion_of(marked_for_delete_at: i64, local: i64) -> DeletionTime {
    let possible = (0..INVALID_DELETION_TIME).contains(&local);
    let local_deletion_time = if possible { local } else { INVALID_DELETION_TIME };
    DeletionTime { marked_for_delete_at, local_deletion_time }
}

/// A cell cannot have expired before it was written, save for a dead row marker.
#[inline]
fn sane_local_deletion_time(local: i64, ttl: u32) -> i64 {
    if local >= i64::from(ttl) || (local >= 0 && ttl == model::time::EXPIRED_LIVENESS_TTL) {
        local
    } else {
        INVALID_DELETION_TIME
    }
}

/// The columns of a row in a table of 64 and more, where it lacks some.
///
/// ```text
/// vint count of the missing; then, as vints, the places of the present ones if those are fewer than
/// half of all, else of the missing ones; ascending
/// ```
fn present_columns(cursor: &mut Cursor<'_>, all: usize) -> Decoded<Vec<usize>> {
    let missing = cursor.vint_len()?;
    if missing > all {
        return cursor.invalid("a row lacks more columns than the table has");
    }
    if missing == 0 {
        return Ok((0..all).collect());
    }
    let present = all - missing;
    if present < all / 2 {
        return ascending(cursor, present, all);
    }
    let missing = ascending(cursor, missing, all)?;
    Ok((0..all).filter(|index| missing.binary_search(index).is_err()).collect())
}

fn ascending(cursor: &mut Cursor<'_>, count: usize, all: usize) -> Decoded<Vec<usize>> {
    let mut places: Vec<usize> = Vec::with_capacity(count);
    for _ in 0..count {
        let place = cursor.vint_len()?;
        if place >= all || places.last().is_some_and(|&last| last >= place) {
            return cursor.invalid("the columns of a row are out of order");
        }
        places.push(place);
    }
    Ok(places)
}

/// The kind byte of a row's clustering key.
const KIND_ROW: u8 = 4;

#[derive(Clone, Copy)]
struct Bound {
    weight: Weight,
    closes: bool,
    opens: bool,
}

/// The kinds of bounds, as bytes have them.
fn bound(kind: u8) -> Option<Bound> {
    let of = |weight, closes, opens| Some(Bound { weight, closes, opens });
    match kind {
        0 => of(Weight::Before, true, false), // exclusive end
        1 => of(Weight::Before, false, true), // inclusive start
        2 => of(Weight::Before, true, true),  // exclusive end, inclusive start
        5 => of(Weight::After, true, true),   // inclusive end, exclusive start
        6 => of(Weight::After, true, false),  // inclusive end
        7 => of(Weight::After, false, true),  // exclusive start
        _ => None,
    }
}

#[cfg(test)]
#[path = "row_tests.rs"]
mod tests;
