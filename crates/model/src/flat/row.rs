//! Rows and cells.
//!
//! ```text
//! row       flags: 07 the marker's stamp   08 marker   10 deletion   20 shadowable deletion   40 complex deletions
//!           clustering, [marker] [deletion] [shadowable deletion]
//!           [vint how many, { vint column, deletion } …] vint cells, cells
//! cell      flags: 07 its stamp   08 path
//!                  30 value: 00 follows   10 empty   20 a tombstone, which has none
//!                  C0 column: 00 the next one   40 the same as before   80 a distance follows
//!           [signed distance from the next column], [stamp], [path], [value]
//! path, value   bytes behind a vint length
//! ```
//!
//! The cell of the next column with the timestamp of the marker costs its flags and the length of its value.

use std::cmp::Ordering;

use super::cursor::{Cursor, Decoded, put_bytes, put_many, share};
use super::kind;
use super::place::{self, Ends, put_clustering};
use super::stamp::{self, Base, Expiry, Stamp};
use super::usual::UsualValues;
use super::view::{CellView, RowVisitor, ValueVisitor};
use crate::types::vint::{put_signed, put_unsigned};
use crate::{Bytes, Cell, CellValue, Clustering, CqlType, DeletionTime, Liveness, Row, Weight};

mod flag {
    pub(super) const MARKER: u8 = 0x08;
    /// A marker that does not expire, in a row without deletions: most rows have these.
    pub(super) const USUAL: u8 = MARKER | super::stamp::TIMESTAMP;
    pub(super) const DELETION: u8 = 0x10;
    pub(super) const SHADOWABLE: u8 = 0x20;
    pub(super) const COMPLEX_DELETIONS: u8 = 0x40;

    pub(super) const PATH: u8 = 0x08;
    pub(super) const VALUE: u8 = 0x30;
    pub(super) const EMPTY: u8 = 0x10;
    pub(super) const TOMBSTONE: u8 = 0x20;
    pub(super) const COLUMN: u8 = 0xc0;
    pub(super) const SAME_COLUMN: u8 = 0x40;
    pub(super) const DISTANT_COLUMN: u8 = 0x80;
}

/// The column before the first one.
const NO_COLUMN: u16 = u16::MAX;

/// Makes a row that points into the buffer it is visited in.
struct Copied<'r, 'a> {
    row: &'r mut Row,
    owner: &'a Bytes,
}

impl<'a> RowVisitor<'a> for Copied<'_, 'a> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.row.clustering.values.push(value.map(|value| share(self.owner, value)));
    }

    #[inline]
    fn marker(&mut self, liveness: Liveness) {
        self.row.liveness = liveness;
    }

    fn deletions(&mut self, deletion: DeletionTime, shadowable: DeletionTime) {
        (self.row.deletion, self.row.shadowable) = (deletion, shadowable);
    }

    fn complex_deletions(&mut self, deletions: Vec<(u16, DeletionTime)>) {
        self.row.complex_deletions = deletions;
    }

    #[inline]
    fn cells(&mut self, about: usize) {
        self.row.cells.reserve(about);
    }

    #[inline]
    fn cell(&mut self, cell: CellView<'a>) {
        let CellView { column, ttl, timestamp, local_deletion_time, path, value } = cell;
        let value = value.map_or(CellValue::Tombstone, |value| CellValue::Value(share(self.owner, value)));
        let path = path.map(|path| share(self.owner, path));
        self.row.cells.push(Cell { column, ttl, timestamp, local_deletion_time, path, value });
    }
}

/// Appends a row; its times are told from `base`.
pub(super) fn put(row: &Row, base: &mut Base, out: &mut Vec<u8>) {
    let flags = put_head(deletion_flags(row), row.clustering.views(), &row.liveness, base, out);
    if flags & flag::DELETION != 0 {
        base.put_deletion(&row.deletion, out);
    }
    if flags & flag::SHADOWABLE != 0 {
        base.put_deletion(&row.shadowable, out);
    }
    if flags & flag::COMPLEX_DELETIONS != 0 {
        put_many(row.complex_deletions.iter(), out, |(column, deletion), out| {
            put_unsigned(u64::from(*column), out);
            base.put_deletion(deletion, out);
        });
    }
    put_cells(row.cells.iter().map(Cell::as_view), base, out);
}

/// Appends a row without deletions of its own, of which there need be no [`Row`].
#[inline]
pub(super) fn put_plain<'v>(
    clustering: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
    marker: &Liveness,
    cells: impl ExactSizeIterator<Item = CellView<'v>>,
    base: &mut Base,
    out: &mut Vec<u8>,
) {
    put_head(0, clustering, marker, base, out);
    put_cells(cells, base, out);
}

/// Appends the beginning of a row that [is usual](is_usual) and has so many clustering values.
#[inline]
pub(super) fn begin_usual(clustering: usize, out: &mut Vec<u8>) {
    if clustering < 0x80 {
        return out.extend_from_slice(&[kind::ROW, flag::USUAL, clustering as u8]);
    }
    out.extend_from_slice(&[kind::ROW, flag::USUAL]);
    put_unsigned(clustering as u64, out);
}

/// Whether the marker of a usual row can have this timestamp.
#[inline]
pub(super) fn is_usual_marker(timestamp: i64) -> bool {
    let marker = Liveness { timestamp, ..Liveness::NONE };
    marker != Liveness::NONE && Base::at_start().flags_of(&marker_stamp(&marker)) == stamp::TIMESTAMP
}

/// Appends the marker of a usual row and how many cells it has.
#[inline]
pub(super) fn put_usual_marker(timestamp: i64, cells: usize, out: &mut Vec<u8>) {
    let marker = Liveness { timestamp, ..Liveness::NONE };
    Base::at_start().put(&marker_stamp(&marker), stamp::TIMESTAMP, out);
    put_unsigned(cells as u64, out);
}

/// Appends the next cell of a usual row.
#[inline]
pub(super) fn put_usual_cell(value: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    put_bytes(value, out);
}

/// A row whose times are told from `base`.
pub(super) fn take(base: &mut Base, cursor: &mut Cursor<'_>) -> Decoded<Row> {
    let mut row = Row::new(Clustering::empty());
    take_into(&mut row, base, cursor)?;
    Ok(row)
}

/// The same, into a row of nothing.
#[inline]
pub(super) fn take_into(row: &mut Row, base: &mut Base, cursor: &mut Cursor<'_>) -> Decoded<()> {
    let owner = cursor.owner();
    visit(&mut Copied { row, owner }, base, cursor)
}

/// Shows a row where it stands.
#[inline]
pub(super) fn visit<'a>(
    visitor: &mut impl RowVisitor<'a>,
    base: &mut Base,
    cursor: &mut Cursor<'a>,
) -> Decoded<()> {
    let flags = cursor.u8()?;
    cursor.check(flags & 0x80 == 0, &"a row has an unknown flag")?;
    place::visit_clustering(cursor, |value| visitor.clustering_value(value))?;
    // Told apart, so that the flags of most rows are not looked at again.
    match flags {
        flag::USUAL => visitor.marker(take_marker(flag::USUAL, base, cursor)?),
        _ => visitor.marker(take_marker(flags, base, cursor)?),
    }
    if !is_plain(flags) {
        base.apart(|base| cursor.apart(|cursor| visit_deletions(flags, visitor, base, cursor)))?;
    }
    visit_cells(visitor, base, cursor)
}

/// The values of a row that [is usual](is_usual).
#[inline(always)]
pub(super) fn visit_usual<'a>(visitor: &mut impl ValueVisitor<'a>, cursor: &mut Cursor<'a>) -> Decoded<()> {
    let flags = cursor.u8()?;
    cursor.check(flags == flag::USUAL, &"a row is not as usual as was said")?;
    place::visit_clustering(cursor, |value| visitor.clustering_value(value))?;
    visitor.marker(cursor.passed(Cursor::pass_vint)?);
    let (mut column, mut left) = (0, cursor.count()?);
    while left > 0 {
        left -= 1;
        let flags = cursor.u8()?;
        cursor.check(flags == 0, &"a cell is not as usual as was said")?;
        visitor.cell(column, cursor.bytes()?);
        column = column.wrapping_add(1);
    }
    Ok(())
}

/// Puts the values of the row that stands here into the place of those there, if it is usual. `false` if it is not: what is there is of
/// no worth then.
#[inline]
pub(super) fn take_usual<'a>(
    values: &mut UsualValues<'a>,
    base: &mut Base,
    cursor: &mut Cursor<'a>,
) -> Decoded<bool> {
    let flags = cursor.u8()?;
    if flags | stamp::TIMESTAMP != flag::USUAL {
        return Ok(false);
    }
    values.clustering.clear();
    place::visit_clustering(cursor, |value| values.clustering.push(value))?;
    values.timestamp = take_marker(flags, base, cursor)?.timestamp;
    values.cells.clear();
    let mut left = cursor.count()?;
    while left > 0 {
        left -= 1;
        if cursor.u8()? != 0 {
            return Ok(false);
        }
        values.cells.push(cursor.bytes()?);
    }
    Ok(is_usual_marker(values.timestamp))
}

/// Whether the row has its marker's flags alone, and cells of the first columns without flags.
#[inline]
pub(super) fn is_usual(row: &Row) -> bool {
    let stamp = marker_stamp(&row.liveness);
    let has_usual_head = row.liveness != Liveness::NONE
        && deletion_flags(row) == 0
        && Base::at_start().flags_of(&stamp) == stamp::TIMESTAMP;
    let is_usual = |(column, cell): (usize, &Cell)| {
        let CellView { ttl, timestamp, local_deletion_time, path, value, .. } = cell.as_view();
        let expiry = Expiry { ttl, local_time: local_deletion_time };
        usize::from(cell.column) == column
            && Stamp { timestamp, expiry } == stamp
            && path.is_none()
            && value.is_some_and(|value| !value.is_empty())
    };
    has_usual_head && row.cells.iter().enumerate().all(is_usual)
}

#[inline(never)]
fn visit_deletions<'a>(
    flags: u8,
    visitor: &mut impl RowVisitor<'a>,
    base: &mut Base,
    cursor: &mut Cursor<'a>,
) -> Decoded<()> {
    if flags & (flag::DELETION | flag::SHADOWABLE) != 0 {
        let deletion = base.take_deletion_if(flags & flag::DELETION != 0, cursor)?;
        visitor.deletions(deletion, base.take_deletion_if(flags & flag::SHADOWABLE != 0, cursor)?);
    }
    if flags & flag::COMPLEX_DELETIONS != 0 {
        visitor.complex_deletions(take_complex_deletions(base, cursor)?);
    }
    Ok(())
}

/// Where a row stands beside a position; what follows its clustering key is left.
#[inline]
pub(super) fn compare_clustering<'o>(
    cursor: &mut Cursor<'_>,
    types: &[CqlType],
    other: Ends<impl ExactSizeIterator<Item = Option<&'o [u8]>>>,
) -> Decoded<Ordering> {
    cursor.u8()?;
    let columns = cursor.count()?;
    place::compare_values(cursor, (columns, Weight::At), types, other)
}

/// Appends flags, the clustering key and the marker.
#[inline]
fn put_head<'v>(
    deletions: u8,
    clustering: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
    marker: &Liveness,
    base: &mut Base,
    out: &mut Vec<u8>,
) -> u8 {
    let stamp = marker_stamp(marker);
    let flags = match *marker {
        Liveness::NONE => deletions,
        _ => deletions | flag::MARKER | base.flags_of(&stamp),
    };
    out.push(flags);
    put_clustering(clustering, out);
    if flags & flag::MARKER != 0 {
        base.put(&stamp, flags, out);
    }
    flags
}

/// Whether a row of these flags has no deletions of its own.
pub(super) fn is_plain(flags: u8) -> bool {
    flags & (flag::DELETION | flag::SHADOWABLE | flag::COMPLEX_DELETIONS) == 0
}

fn deletion_flags(row: &Row) -> u8 {
    let flag_if = |is: bool, flag: u8| if is { flag } else { 0 };
    flag_if(!row.deletion.is_live(), flag::DELETION)
        | flag_if(!row.shadowable.is_live(), flag::SHADOWABLE)
        | flag_if(!row.complex_deletions.is_empty(), flag::COMPLEX_DELETIONS)
}

fn marker_stamp(liveness: &Liveness) -> Stamp {
    let expiry = Expiry { ttl: liveness.ttl, local_time: liveness.local_expiration_time };
    Stamp { timestamp: liveness.timestamp, expiry }
}

#[inline(always)]
fn take_marker(flags: u8, base: &mut Base, cursor: &mut Cursor<'_>) -> Decoded<Liveness> {
    if flags & flag::MARKER == 0 {
        cursor.check(flags & stamp::FLAGS == 0, &"a row without a marker has the marker's flags")?;
        return Ok(Liveness::NONE);
    }
    let Stamp { timestamp, expiry } = base.take(flags, cursor)?;
    let marker = Liveness { timestamp, ttl: expiry.ttl, local_expiration_time: expiry.local_time };
    cursor.check(marker != Liveness::NONE, &"a marker is told where there is none")?;
    Ok(marker)
}

fn take_complex_deletions(base: &mut Base, cursor: &mut Cursor<'_>) -> Decoded<Vec<(u16, DeletionTime)>> {
    let deletions = cursor.many(|cursor| Ok((cursor.fitting()?, base.take_deletion(cursor)?)))?;
    cursor.check(!deletions.is_empty(), &"complex deletions are told where there are none")?;
    Ok(deletions)
}

#[inline]
fn put_cells<'v>(cells: impl ExactSizeIterator<Item = CellView<'v>>, base: &mut Base, out: &mut Vec<u8>) {
    put_unsigned(cells.len() as u64, out);
    let mut column = NO_COLUMN;
    for cell in cells {
        put_cell(&cell, column, base, out);
        column = cell.column;
    }
}

#[inline]
fn put_cell(cell: &CellView<'_>, before: u16, base: &mut Base, out: &mut Vec<u8>) {
    let expiry = Expiry { ttl: cell.ttl, local_time: cell.local_deletion_time };
    let stamp = Stamp { timestamp: cell.timestamp, expiry };
    let flags = base.flags_of(&stamp) | cell_flags(cell, before);
    out.push(flags);
    if flags & flag::COLUMN == flag::DISTANT_COLUMN {
        let distance = cell.column.wrapping_sub(before.wrapping_add(1)) as i16;
        put_signed(i64::from(distance), out);
    }
    base.put(&stamp, flags, out);
    if let Some(path) = cell.path {
        put_bytes(path, out);
    }
    if let (Some(value), 0) = (cell.value, flags & flag::VALUE) {
        put_bytes(value, out);
    }
}

#[inline]
fn cell_flags(cell: &CellView<'_>, before: u16) -> u8 {
    let column = match cell.column {
        column if column == before.wrapping_add(1) => 0,
        column if column == before => flag::SAME_COLUMN,
        _ => flag::DISTANT_COLUMN,
    };
    let value = match cell.value {
        Some([]) => flag::EMPTY,
        Some(_) => 0,
        None => flag::TOMBSTONE,
    };
    column | value | if cell.path.is_some() { flag::PATH } else { 0 }
}

#[inline(always)]
fn visit_cells<'a>(
    visitor: &mut impl RowVisitor<'a>,
    base: &mut Base,
    cursor: &mut Cursor<'a>,
) -> Decoded<()> {
    let count = cursor.count()?;
    visitor.cells(cursor.reserved::<Cell>(count));
    let (mut column, mut left) = (NO_COLUMN, count);
    while left > 0 {
        left -= 1;
        // Most are of the next column and of the last time: told apart, so that their flags are not looked at again.
        column = match cursor.u8()? {
            0 => visit_cell(0, column, visitor, base, cursor)?,
            flags => visit_cell(flags, column, visitor, base, cursor)?,
        };
    }
    Ok(())
}

/// Shows a cell of these flags; its column.
#[inline(always)]
fn visit_cell<'a>(
    flags: u8,
    before: u16,
    visitor: &mut impl RowVisitor<'a>,
    base: &mut Base,
    cursor: &mut Cursor<'a>,
) -> Decoded<u16> {
    let column = take_column(flags, before, cursor)?;
    let Stamp { timestamp, expiry: Expiry { ttl, local_time } } = base.take(flags, cursor)?;
    let path = if flags & flag::PATH == 0 { None } else { Some(cursor.apart(take_path)?) };
    let value = take_value(flags, cursor)?;
    visitor.cell(CellView { column, ttl, timestamp, local_deletion_time: local_time, path, value });
    Ok(column)
}

#[inline(never)]
fn take_path<'a>(cursor: &mut Cursor<'a>) -> Decoded<&'a [u8]> {
    cursor.bytes()
}

#[inline(always)]
fn take_column(flags: u8, before: u16, cursor: &mut Cursor<'_>) -> Decoded<u16> {
    let next = before.wrapping_add(1);
    match flags & flag::COLUMN {
        0 => Ok(next),
        flag::SAME_COLUMN => Ok(before),
        flag::DISTANT_COLUMN => {
            let distance = cursor.apart(Cursor::signed)?;
            match i16::try_from(distance) {
                Ok(-1 | 0) => cursor.invalid(&"a distance is told to a column that is near"),
                Ok(distance) => Ok(next.wrapping_add_signed(distance)),
                Err(_) => cursor.invalid(&"a column is too far away"),
            }
        }
        _ => cursor.invalid(&"a cell has unknown flags"),
    }
}

/// The value; `None` if the cell is a tombstone.
#[inline(always)]
fn take_value<'a>(flags: u8, cursor: &mut Cursor<'a>) -> Decoded<Option<&'a [u8]>> {
    match flags & flag::VALUE {
        0 => {
            let value = cursor.bytes()?;
            cursor.check(!value.is_empty(), &"an empty value has a length")?;
            Ok(Some(value))
        }
        flag::EMPTY => Ok(Some(cursor.taken(0))),
        flag::TOMBSTONE => Ok(None),
        _ => cursor.invalid(&"a cell is both empty and deleted"),
    }
}
