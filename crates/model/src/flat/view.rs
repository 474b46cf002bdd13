//! A row looked at where it stands, without a copy of anything: what goes from a cache, or from the bytes of a file, to a client is
//! little more than its values.

use std::cmp::Ordering;

use super::cursor::{Cursor, Decoded};
use super::layout::{LaidOut, Layout};
use super::place::Ends;
use super::stamp::Base;
use super::usual::{ByValues, UsualRow};
use super::{FlatError, compare_place, fragment_at, kind, place, row};
use crate::{Bytes, Cell, CellValue, Clustering, CqlType, DeletionTime, Fragment, Liveness, PositionRef};

/// A clustered row that is not decoded.
#[derive(Clone, Copy, Debug)]
pub struct FlatRow<'a>(Form<'a>);

#[derive(Clone, Copy, Debug)]
enum Form<'a> {
    /// In flat bytes, of which nothing has been read yet.
    Bytes(Standing<'a>),
    /// A usual one by its values.
    Values(&'a UsualRow<'a>),
    /// The same, whose values are where those of rows like it are.
    LaidOut(LaidOut<'a>),
}

/// Flat bytes that a row stands in.
#[derive(Clone, Copy, Debug)]
struct Standing<'a> {
    bytes: &'a Bytes,
    /// They begin with the row.
    rest: &'a [u8],
    is_usual: bool,
    /// Whether the row is all of them.
    is_alone: bool,
}

/// Is shown a row piece by piece, in the order in which it stands.
pub trait RowVisitor<'a> {
    /// The next value of the clustering key; `None` if it is null.
    fn clustering_value(&mut self, value: Option<&'a [u8]>);

    /// The row's marker, if it has one.
    fn marker(&mut self, liveness: Liveness);

    /// The row's deletion and its shadowable one, where there is either.
    fn deletions(&mut self, deletion: DeletionTime, shadowable: DeletionTime);

    /// Deletions of whole multi-cell columns, where there are any.
    fn complex_deletions(&mut self, deletions: Vec<(u16, DeletionTime)>);

    /// About so many cells follow, and perhaps more.
    fn cells(&mut self, about: usize);

    /// The next cell.
    fn cell(&mut self, cell: CellView<'a>);
}

/// Is shown what is live of a row that was not decoded.
pub trait ValueVisitor<'a> {
    /// The next value of the clustering key; `None` if it is null.
    fn clustering_value(&mut self, value: Option<&'a [u8]>);

    /// The bytes of the marker of a row in flat bytes that was put as a [usual](super::is_usual) one.
    #[inline(always)]
    fn marker(&mut self, bytes: &'a [u8]) {
        _ = bytes;
    }

    /// The next live cell: its column, and what it holds.
    fn cell(&mut self, column: u16, value: &'a [u8]);
}

/// A cell, with the fields of [`crate::Cell`].
#[derive(Clone, Copy, Debug)]
pub struct CellView<'a> {
    /// The column's place among the schema's static or regular columns.
    pub column: u16,
    /// Seconds to live; 0 where it does not expire.
    pub ttl: u32,
    /// Microseconds.
    pub timestamp: i64,
    /// When it expires or was deleted, in seconds.
    pub local_deletion_time: i64,
    /// Which element of a multi-cell column this is.
    pub path: Option<&'a [u8]>,
    /// What it holds; `None` if it was deleted.
    pub value: Option<&'a [u8]>,
}

impl Cell {
    /// The cell without a share of its buffers.
    #[inline]
    pub fn as_view(&self) -> CellView<'_> {
        let Cell { column, ttl, timestamp, local_deletion_time, .. } = *self;
        let value = match &self.value {
            CellValue::Value(value) => Some(&**value),
            CellValue::Tombstone => None,
        };
        CellView { column, ttl, timestamp, local_deletion_time, path: self.path.as_deref(), value }
    }
}

impl<'a> FlatRow<'a> {
    /// The row with which the rest of `bytes` begins.
    #[inline]
    pub fn new(bytes: &'a Bytes, rest: &'a [u8]) -> FlatRow<'a> {
        debug_assert!(bytes.as_ptr_range().end == rest.as_ptr_range().end, "they end where their rest ends");
        FlatRow(Form::Bytes(Standing { bytes, rest, is_usual: false, is_alone: false }))
    }

    /// The row that these bytes are, all of them.
    #[inline]
    pub fn alone(bytes: &'a Bytes) -> FlatRow<'a> {
        FlatRow(Form::Bytes(Standing { bytes, rest: bytes, is_usual: false, is_alone: true }))
    }

    /// The usual row of these values.
    #[inline]
    pub fn usual(values: &'a UsualRow<'a>) -> FlatRow<'a> {
        FlatRow(Form::Values(values))
    }

    /// The usual row with which `bytes` begin, with its values where the layout says, and with this timestamp in microseconds, one that usual
    /// rows [can have](UsualRow::can_be_of).
    #[inline]
    pub fn laid_out(bytes: &'a [u8], layout: &'a Layout, timestamp: i64) -> FlatRow<'a> {
        FlatRow(Form::LaidOut(LaidOut { bytes, layout, timestamp }))
    }

    /// The same row, which was [usual](super::is_usual) when it was put there, or may not have been. One that is shown by its values is.
    #[inline]
    pub fn known_as(self, is_usual: bool) -> FlatRow<'a> {
        match self.0 {
            Form::Bytes(standing) => FlatRow(Form::Bytes(Standing { is_usual, ..standing })),
            Form::Values(_) | Form::LaidOut(_) => self,
        }
    }

    /// Whether it is known as a usual row.
    #[inline]
    pub fn is_usual(&self) -> bool {
        match self.0 {
            Form::Bytes(Standing { is_usual, .. }) => is_usual,
            Form::Values(_) | Form::LaidOut(_) => true,
        }
    }

    /// The bytes that begin with it, if it is known as a usual row and stands in any.
    #[inline]
    pub(super) fn standing(&self) -> Option<&'a [u8]> {
        match self.0 {
            Form::Bytes(Standing { rest, is_usual: true, .. }) => Some(rest),
            _ => None,
        }
    }

    /// Its values, if it was given by them.
    #[inline]
    pub fn values(&self) -> Option<&'a UsualRow<'a>> {
        match self.0 {
            Form::Values(values) => Some(values),
            _ => None,
        }
    }

    /// The bytes that begin with it and where in them its values are, if it was given so.
    #[inline]
    pub fn layout(&self) -> Option<(&'a [u8], &'a Layout)> {
        match self.0 {
            Form::LaidOut(LaidOut { bytes, layout, .. }) => Some((bytes, layout)),
            _ => None,
        }
    }

    /// The bytes of its values, or of all of it, as far as that is known without reading it.
    #[inline]
    pub fn value_bytes(&self) -> usize {
        match self.0 {
            Form::Bytes(Standing { rest, is_alone: true, .. }) => rest.len(),
            Form::Bytes(_) => 0,
            Form::Values(values) => values.value_bytes(),
            Form::LaidOut(values) => values.value_bytes(),
        }
    }

    /// Appends the row's flat bytes.
    ///
    /// # Panics
    /// If it is not known where they end: it is neither [alone](FlatRow::alone) nor shown by its values, as a
    /// [usual](FlatRow::usual) or a [laid out](FlatRow::laid_out) one.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        match self.0 {
            Form::Bytes(Standing { rest, is_alone, .. }) => {
                assert!(is_alone, "it is known where the row ends");
                out.extend_from_slice(rest);
            }
            Form::Values(values) => values.put(out),
            Form::LaidOut(values) => values.put(out),
        }
    }

    /// Where the row stands beside a position, of clustering columns of these types.
    ///
    /// # Errors
    /// If none is there.
    #[inline]
    pub fn compare(&self, types: &[CqlType], position: PositionRef<'_>) -> Result<Ordering, FlatError> {
        let other = Ends(position.prefix.views(), position.weight);
        match self.0 {
            Form::Bytes(standing) => {
                let mut cursor = standing.cursor();
                compare_place(&mut cursor, types, other).map_err(|fault| cursor.error(fault))
            }
            Form::Values(values) => Ok(values.compare(types, other)),
            Form::LaidOut(values) => Ok(values.compare(types, other)),
        }
    }

    /// The row's clustering key, with a share of the bytes that it stands in, or of new ones if it is shown by its values.
    ///
    /// # Errors
    /// If none is there.
    pub fn clustering(&self) -> Result<Clustering, FlatError> {
        match self.0 {
            Form::Bytes(standing) => {
                let mut cursor = standing.cursor();
                clustering(&mut cursor).map_err(|fault| cursor.error(fault))
            }
            Form::Values(values) => Ok(clustering_of(*values)),
            Form::LaidOut(values) => Ok(clustering_of(values)),
        }
    }

    /// Puts the row into `place`, with a share of the bytes that it stands in, or of new ones if it is shown by its values.
    ///
    /// # Errors
    /// If none is there.
    pub fn decode(&self, place: &mut Fragment) -> Result<(), FlatError> {
        match self.0 {
            Form::Bytes(Standing { bytes, rest, .. }) => fragment_at(bytes, bytes.len() - rest.len(), place),
            Form::Values(values) => decode(*values, place),
            Form::LaidOut(values) => decode(values, place),
        }
    }

    /// Shows the row to a visitor.
    ///
    /// # Errors
    /// If none is there: what was shown then is of no worth.
    #[inline]
    pub fn visit(&self, visitor: &mut impl RowVisitor<'a>) -> Result<(), FlatError> {
        match self.0 {
            Form::Bytes(standing) => {
                let mut cursor = standing.cursor();
                visit(visitor, &mut cursor).map_err(|fault| cursor.error(fault))
            }
            Form::Values(values) => {
                values.visit(visitor);
                Ok(())
            }
            Form::LaidOut(values) => {
                values.visit(visitor);
                Ok(())
            }
        }
    }

    /// Shows the values of a row that is usual: all of it is live unless what is around it was deleted.
    ///
    /// # Errors
    /// If there is no such row: what was shown then is of no worth.
    #[inline(always)]
    pub fn visit_usual(&self, visitor: &mut impl ValueVisitor<'a>) -> Result<(), FlatError> {
        match self.0 {
            Form::Bytes(standing) => {
                let mut cursor = standing.cursor();
                visit_usual(visitor, &mut cursor).map_err(|fault| cursor.error(fault))
            }
            Form::Values(values) => {
                values.visit_values(visitor);
                Ok(())
            }
            Form::LaidOut(values) => {
                values.visit_values(visitor);
                Ok(())
            }
        }
    }
}

impl<'a> Standing<'a> {
    #[inline(always)]
    fn cursor(&self) -> Cursor<'a> {
        Cursor::of(self.bytes, self.rest)
    }
}

impl CellView<'_> {
    /// Whether a `SELECT` at `now` (seconds) would see the cell.
    #[inline]
    pub fn is_live(&self, now: i64) -> bool {
        self.value.is_some() && (self.ttl == 0 || now < self.local_deletion_time)
    }
}

/// The clustering key of a row shown by its values, in bytes of its own.
fn clustering_of<'a>(row: impl ByValues<'a>) -> Clustering {
    Clustering { values: row.clustering().map(|value| value.map(Bytes::from)).collect() }
}

/// Puts a row shown by its values into `place`.
fn decode<'a>(row: impl ByValues<'a>, place: &mut Fragment) -> Result<(), FlatError> {
    let mut bytes = Vec::with_capacity(row.about());
    row.put(&mut bytes);
    fragment_at(&Bytes::from(bytes), 0, place)
}

fn clustering(cursor: &mut Cursor<'_>) -> Decoded<Clustering> {
    let head = cursor.u8()?;
    cursor.check(head == kind::ROW, &"this is no row")?;
    cursor.u8()?;
    place::take_clustering(cursor)
}

#[inline]
fn visit<'a>(visitor: &mut impl RowVisitor<'a>, cursor: &mut Cursor<'a>) -> Decoded<()> {
    let head = cursor.u8()?;
    cursor.check(head == kind::ROW, &"this is no row")?;
    row::visit(visitor, &mut Base::at_start(), cursor)
}

#[inline(always)]
fn visit_usual<'a>(visitor: &mut impl ValueVisitor<'a>, cursor: &mut Cursor<'a>) -> Decoded<()> {
    let head = cursor.u8()?;
    cursor.check(head == kind::ROW, &"this is no row")?;
    row::visit_usual(visitor, cursor)
}
