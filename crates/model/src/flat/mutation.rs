//! Mutations.
//!
//! ```text
//! mutation   01 version, flags: 01 deletion   02 static row   04 range tombstones   08 the token is not Murmur3's
//!            key, [8 bytes token], [deletion] [static row] vint rows, rows
//!            [vint how many, { slice, deletion } …]
//! ```
//!
//! Times are told from the one before them throughout, so that rows written at once share their timestamp.

use super::cursor::{Cursor, Decoded, put_many};
use super::place::{put_ends, take_slice};
use super::stamp::Base;
use super::{VERSION, has_own_token, put_key, row, take_key};
use crate::{DeletionTime, Mutation, PartitionKey, RangeTombstone, Row};

mod flag {
    pub(super) const DELETION: u8 = 0x01;
    pub(super) const STATIC_ROW: u8 = 0x02;
    pub(super) const RANGE_TOMBSTONES: u8 = 0x04;
    pub(super) const OWN_TOKEN: u8 = 0x08;
    pub(super) const ALL: u8 = 0x0f;
}

/// Appends a mutation.
pub fn put_mutation(mutation: &Mutation, out: &mut Vec<u8>) {
    let flags = flags_of(mutation);
    out.extend_from_slice(&[VERSION, flags]);
    put_key(&mutation.key, flags & flag::OWN_TOKEN != 0, out);
    let mut base = Base::at_start();
    if flags & flag::DELETION != 0 {
        base.put_deletion(&mutation.deletion, out);
    }
    if let Some(static_row) = &mutation.static_row {
        row::put(static_row, &mut base, out);
    }
    put_many(mutation.rows.iter(), out, |row, out| row::put(row, &mut base, out));
    if flags & flag::RANGE_TOMBSTONES != 0 {
        put_many(mutation.range_tombstones.iter(), out, |range, out| {
            put_ends(&range.start, &range.end, out);
            base.put_deletion(&range.deletion, out);
        });
    }
}

/// What a mutation consists of, with rows of one kind or another.
pub(super) struct Parts<R> {
    pub(super) key: PartitionKey,
    pub(super) deletion: DeletionTime,
    pub(super) static_row: Option<Row>,
    pub(super) rows: Vec<R>,
    pub(super) range_tombstones: Vec<RangeTombstone>,
}

pub(super) fn take(cursor: &mut Cursor<'_>) -> Decoded<Mutation> {
    let Parts { key, deletion, static_row, rows, range_tombstones } = take_parts(cursor, row::take)?;
    Ok(Mutation { key, deletion, static_row, rows, range_tombstones })
}

/// The parts of a mutation, with what becomes of each clustered row.
#[inline]
pub(super) fn take_parts<'a, R>(
    cursor: &mut Cursor<'a>,
    mut take_row: impl FnMut(&mut Base, &mut Cursor<'a>) -> Decoded<R>,
) -> Decoded<Parts<R>> {
    let (flags, key) = take_head(cursor)?;
    let mut base = Base::at_start();
    Ok(Parts {
        key,
        deletion: base.take_deletion_if(flags & flag::DELETION != 0, cursor)?,
        static_row: match flags & flag::STATIC_ROW {
            0 => None,
            _ => Some(row::take(&mut base, cursor)?),
        },
        rows: cursor.many(|cursor| take_row(&mut base, cursor))?,
        range_tombstones: match flags & flag::RANGE_TOMBSTONES {
            0 => Vec::new(),
            _ => take_ranges(&mut base, cursor)?,
        },
    })
}

/// Its flags and its partition.
#[inline]
pub(super) fn take_head(cursor: &mut Cursor<'_>) -> Decoded<(u8, PartitionKey)> {
    let version = cursor.u8()?;
    cursor.check(version == VERSION, &"this version of a mutation is not known")?;
    let flags = cursor.u8()?;
    cursor.check(flags & !flag::ALL == 0, &"a mutation has an unknown flag")?;
    Ok((flags, take_key(flags & flag::OWN_TOKEN != 0, cursor)?))
}

fn flags_of(mutation: &Mutation) -> u8 {
    let flag_if = |is: bool, flag: u8| if is { flag } else { 0 };
    flag_if(!mutation.deletion.is_live(), flag::DELETION)
        | flag_if(mutation.static_row.is_some(), flag::STATIC_ROW)
        | flag_if(!mutation.range_tombstones.is_empty(), flag::RANGE_TOMBSTONES)
        | flag_if(has_own_token(&mutation.key), flag::OWN_TOKEN)
}

fn take_ranges(base: &mut Base, cursor: &mut Cursor<'_>) -> Decoded<Vec<RangeTombstone>> {
    let ranges = cursor.many(|cursor| {
        let ends = take_slice(cursor)?;
        Ok(RangeTombstone { start: ends.start, end: ends.end, deletion: base.take_deletion(cursor)? })
    })?;
    cursor.check(!ranges.is_empty(), &"range tombstones are told where there are none")?;
    Ok(ranges)
}
