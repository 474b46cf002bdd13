//! Clustering keys, positions and slices.
//!
//! ```text
//! clustering   vint columns, values
//! value        vint: 0 null, otherwise length + 1; bytes
//! position     vint: columns * 4 + weight (0 before, 1 at, 2 after), values
//! slice        position of the start, position of the end
//!              or a position of weight 3: before and after this prefix
//! ```

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::cursor::{Cursor, Decoded, share};
use crate::clustering::{self, compare_ends};
use crate::types::vint::put_unsigned;
use crate::{Bytes, Clustering, CqlType, Position, Slice, Weight};

/// The weight of a slice that is a prefix.
const BOTH: u64 = 3;

/// Appends a position.
pub fn put_position(position: &Position, out: &mut Vec<u8>) {
    put_weighted(&position.prefix, weight_code(position.weight), out);
}

/// Appends a slice.
pub fn put_slice(slice: &Slice, out: &mut Vec<u8>) {
    put_ends(&slice.start, &slice.end, out);
}

pub(super) fn take_position(cursor: &mut Cursor<'_>) -> Decoded<Position> {
    let (prefix, code) = take_weighted(cursor)?;
    position_of(prefix, code, cursor)
}

pub(super) fn take_slice(cursor: &mut Cursor<'_>) -> Decoded<Slice> {
    let (prefix, code) = take_weighted(cursor)?;
    if code == BOTH {
        return Ok(Slice::of_prefix(prefix));
    }
    let slice = Slice { start: position_of(prefix, code, cursor)?, end: take_position(cursor)? };
    cursor.check(!is_prefix(&slice.start, &slice.end), &"a slice has two ends where one prefix will do")?;
    Ok(slice)
}

/// Appends the ends of a slice or a range tombstone.
pub(super) fn put_ends(start: &Position, end: &Position, out: &mut Vec<u8>) {
    if is_prefix(start, end) {
        return put_weighted(&start.prefix, BOTH, out);
    }
    put_position(start, out);
    put_position(end, out);
}

#[inline]
pub(super) fn put_clustering<'v>(values: impl ExactSizeIterator<Item = Option<&'v [u8]>>, out: &mut Vec<u8>) {
    put_unsigned(values.len() as u64, out);
    values.for_each(|value| put_value(value, out));
}

/// A clustering key.
pub(super) fn take_clustering(cursor: &mut Cursor<'_>) -> Decoded<Clustering> {
    let count = cursor.count()?;
    take_values(count, cursor)
}

/// Shows the values of a clustering key where they stand.
#[inline(always)]
pub(super) fn visit_clustering<'a>(
    cursor: &mut Cursor<'a>,
    mut visit: impl FnMut(Option<&'a [u8]>),
) -> Decoded<()> {
    let mut left = cursor.count()?;
    while left > 0 {
        left -= 1;
        visit(take_value(cursor)?);
    }
    Ok(())
}

/// Where the position stands that follows, beside another one.
pub(super) fn compare_position<'o>(
    cursor: &mut Cursor<'_>,
    types: &[CqlType],
    other: Ends<impl ExactSizeIterator<Item = Option<&'o [u8]>>>,
) -> Decoded<Ordering> {
    let head = cursor.vint()?;
    let weight = weight_of(head % 4, cursor)?;
    let columns = usize::try_from(head / 4).unwrap_or(usize::MAX);
    compare_values(cursor, (columns, weight), types, other)
}

/// What is compared with the bytes: the values of a position or a row, and on which side of them it stands.
pub(super) struct Ends<V>(pub(super) V, pub(super) Weight);

/// Where the position of so many columns whose values follow, and of this weight, stands beside another one.
#[inline]
pub(super) fn compare_values<'o>(
    cursor: &mut Cursor<'_>,
    (columns, weight): (usize, Weight),
    types: &[CqlType],
    Ends(others, other_weight): Ends<impl ExactSizeIterator<Item = Option<&'o [u8]>>>,
) -> Decoded<Ordering> {
    let of_other = (others.len(), other_weight);
    for (other, data_type) in others.zip(types).take(columns) {
        let order = clustering::compare_values(data_type, take_value(cursor)?, other);
        if order.is_ne() {
            return Ok(order);
        }
    }
    Ok(compare_ends((columns, weight), of_other))
}

/// Whether the slice is all rows with a prefix.
fn is_prefix(start: &Position, end: &Position) -> bool {
    (start.weight, end.weight) == (Weight::Before, Weight::After) && start.prefix == end.prefix
}

fn put_weighted(prefix: &Clustering, code: u64, out: &mut Vec<u8>) {
    put_unsigned(prefix.len() as u64 * 4 + code, out);
    prefix.values.iter().for_each(|value| put_value(value.as_deref(), out));
}

fn take_weighted(cursor: &mut Cursor<'_>) -> Decoded<(Clustering, u64)> {
    let head = cursor.vint()?;
    Ok((take_values(usize::try_from(head / 4).unwrap_or(usize::MAX), cursor)?, head % 4))
}

#[inline]
pub(super) fn put_value(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) => {
            put_unsigned(value.len() as u64 + 1, out);
            out.extend_from_slice(value);
        }
        None => out.push(0),
    }
}

fn take_values(count: usize, cursor: &mut Cursor<'_>) -> Decoded<Clustering> {
    let mut values = SmallVec::with_capacity(cursor.reserved::<Option<Bytes>>(count));
    for _ in 0..count {
        let value = take_value(cursor)?;
        values.push(value.map(|value| share(cursor.owner(), value)));
    }
    Ok(Clustering { values })
}

/// A value; `None` if it is null.
#[inline(always)]
fn take_value<'a>(cursor: &mut Cursor<'a>) -> Decoded<Option<&'a [u8]>> {
    let len = cursor.vint()?;
    cursor.check(len <= cursor.left() as u64 + 1, &"a value is longer than the rest of the bytes")?;
    Ok(len.checked_sub(1).map(|len| cursor.taken(len as usize)))
}

fn weight_code(weight: Weight) -> u64 {
    match weight {
        Weight::Before => 0,
        Weight::At => 1,
        Weight::After => 2,
    }
}

fn position_of(prefix: Clustering, code: u64, cursor: &Cursor<'_>) -> Decoded<Position> {
    Ok(Position { prefix, weight: weight_of(code, cursor)? })
}

fn weight_of(code: u64, cursor: &Cursor<'_>) -> Decoded<Weight> {
    match code {
        0 => Ok(Weight::Before),
        1 => Ok(Weight::At),
        2 => Ok(Weight::After),
        _ => cursor.invalid(&"a position stands on both sides of its prefix"),
    }
}
