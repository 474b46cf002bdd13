//! Rows, fragments and mutations as flat bytes.
//!
//! The payload of a commit log, rows that hop to another shard as a plain `Vec<u8>` (nothing else of the model is `Send`), and
//! many rows in one allocation of a cache. Items stand one after the other and tell their own end. What is decoded points
//! into the one buffer.
//!
//! ```text
//! fragment    kind 1  partition start   10 deleted   20 its token is not Murmur3's
//!                       key, [8 bytes token], [deletion]
//!                  2  static row        row
//!                  3  row               row
//!                  4  range tombstone   10 a deletion begins, not only ends
//!                       position, [deletion]
//!                  5  partition end
//! key         vint length, bytes
//! ```
//!
//! | file | draws |
//! |---|---|
//! | `mutation` | mutations |
//! | `row` | rows and cells |
//! | `rows` | mutations of rows alone, put together row by row |
//! | `standing` | mutations and rows that stay in the bytes they came in |
//! | `sought` | a row that is looked for among others |
//! | `usual` | usual rows by their values |
//! | `view` | rows and cells looked at where they stand |
//! | `taker` | who takes such rows |
//! | `frame` | what rows that stand alike have in common |
//! | `habit` | how rows stood last |
//! | `layout` | where values are in such rows |
//! | `outline` | both, of flat bytes |
//! | `place` | clustering keys, positions, slices |
//! | `stamp` | timestamps, deletions, expiry |
//! | `cursor` | numbers and byte strings |
//!
//! Invariants:
//! 1. Every value of the model has its bytes, even one that breaks its own invariants.
//! 2. It has them once: bytes that decode are the very bytes that the value is encoded to.
//! 3. Nothing panics on any bytes. On the word of a count no more memory is reserved than the bytes take, or a few items do.
//!
//! What a log keeps, a mutation, begins with a byte for the version. What lives no longer than its process
//! has none. Nothing is summed here; whoever stores the bytes does that.

mod cursor;
mod frame;
mod habit;
mod layout;
mod mutation;
mod outline;
mod place;
mod row;
mod rows;
mod sought;
mod stamp;
mod standing;
mod taker;
mod usual;
mod view;

use std::cmp::Ordering;
use std::future::{Future, ready};

use self::cursor::{Cursor, Decoded, put_bytes, share};
use self::place::Ends;
use self::stamp::Base;
use crate::key::token_of;
use crate::{
    Bytes, CqlType, Fragment, FragmentReader, Mutation, Next, PartitionKey, PartitionStart, Position,
    RangeTombstoneChange, Slice,
};

pub use self::frame::{Frame, FrameBuilder};
pub use self::habit::{Habit, Run};
pub use self::layout::Layout;
pub use self::mutation::put_mutation;
pub use self::outline::Outline;
pub use self::place::{put_position, put_slice};
pub use self::rows::PutRows;
pub use self::sought::SoughtRow;
pub use self::standing::{StandingMutation, StandingRow, standing_mutation};
pub use self::taker::RowTaker;
pub use self::usual::{UsualRow, UsualValues};
pub use self::view::{CellView, FlatRow, RowVisitor, ValueVisitor};

/// Why a row that is [given as it stands](FragmentReader::pop_flat) decodes: who gives it has read it. What to expect with.
pub const GIVEN: &str = "a row that is given as it stands is one";

/// What mutations begin with. Another byte is of a version that is not known here.
pub const VERSION: u8 = 1;

/// Why bytes could not be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("flat bytes, at {at}: {what}")]
pub struct FlatError {
    /// Bytes from the start of the buffer.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

/// Appends a fragment.
pub fn put_fragment(fragment: &Fragment, out: &mut Vec<u8>) {
    match fragment {
        Fragment::PartitionStart(start) => put_start(start, out),
        Fragment::StaticRow(row) => {
            out.push(kind::STATIC_ROW);
            row::put(row, &mut Base::at_start(), out);
        }
        Fragment::Row(row) => {
            out.push(kind::ROW);
            row::put(row, &mut Base::at_start(), out);
        }
        Fragment::RangeTombstone(change) => put_change(change, out),
        Fragment::PartitionEnd => out.push(kind::END),
    }
}

/// Whether a fragment is a row as most are: it was inserted for good, all at one time and with nothing deleted, and has a value
/// in each of the first regular columns, as many as it has, none of them empty. Whoever keeps its bytes may note that, as
/// its values are found there with less work.
pub fn is_usual(fragment: &Fragment) -> bool {
    matches!(fragment, Fragment::Row(row) if row::is_usual(row))
}

/// The mutation that these bytes are, all of them.
///
/// # Errors
/// If they are not what [`put_mutation`] gave.
pub fn mutation(bytes: &Bytes) -> Result<Mutation, FlatError> {
    FlatReader::new(bytes.clone()).only(FlatReader::mutation)
}

/// The partition of the mutation that these bytes begin with; nothing behind it is looked at.
///
/// # Errors
/// If no mutation begins so.
pub fn mutation_key(bytes: &Bytes) -> Result<PartitionKey, FlatError> {
    FlatReader::new(bytes.clone()).read(|cursor| mutation::take_head(cursor).map(|(_, key)| key))
}

/// The position that these bytes are, all of them.
///
/// # Errors
/// If they are not what [`put_position`] gave.
pub fn position(bytes: &Bytes) -> Result<Position, FlatError> {
    FlatReader::new(bytes.clone()).only(FlatReader::position)
}

/// The slice that these bytes are, all of them.
///
/// # Errors
/// If they are not what [`put_slice`] gave.
pub fn slice(bytes: &Bytes) -> Result<Slice, FlatError> {
    FlatReader::new(bytes.clone()).only(FlatReader::slice)
}

/// Puts the fragment that begins at `at` into `place`.
///
/// # Errors
/// If no fragment is there.
///
/// # Panics
/// If `at` is past the end.
#[inline]
pub fn fragment_at(bytes: &Bytes, at: usize, place: &mut Fragment) -> Result<(), FlatError> {
    let mut cursor = Cursor::new(bytes, at);
    take_fragment(place, &mut cursor).map_err(|fault| cursor.error(fault))
}

/// Where the fragment stands that begins at `at`, which is a row or a range tombstone, beside a position of clustering
/// columns of these types: what a search among fragments asks, without decoding them.
///
/// # Errors
/// If neither is there.
///
/// # Panics
/// If `at` is past the end.
#[inline]
pub fn compare_at(
    bytes: &Bytes,
    at: usize,
    types: &[CqlType],
    position: &Position,
) -> Result<Ordering, FlatError> {
    let mut cursor = Cursor::new(bytes, at);
    let other = Ends(position.prefix.values.iter().map(Option::as_deref), position.weight);
    compare_place(&mut cursor, types, other).map_err(|fault| cursor.error(fault))
}

/// Decodes items, one after the other; whoever reads them knows which kind comes next.
///
/// As a [`FragmentReader`] it is the stream of fragments up to the end of the bytes, and never asks to be filled.
#[derive(Clone, Debug)]
pub struct FlatReader {
    bytes: Bytes,
    at: usize,
}

impl FlatReader {
    /// At the start of `bytes`.
    pub fn new(bytes: Bytes) -> FlatReader {
        FlatReader { bytes, at: 0 }
    }

    /// Bytes from the start to the next item. An error leaves it where the item began.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Whether no item is left.
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Puts the next fragment into `place`; whether there is one.
    ///
    /// # Errors
    /// If no fragment is here.
    #[inline]
    pub fn take_fragment(&mut self, place: &mut Fragment) -> Result<bool, FlatError> {
        if self.is_at_end() {
            return Ok(false);
        }
        self.read(|cursor| take_fragment(place, cursor))?;
        Ok(true)
    }

    /// The next fragment; `None` at the end.
    ///
    /// # Errors
    /// If no fragment is here.
    pub fn next_fragment(&mut self) -> Result<Option<Fragment>, FlatError> {
        let mut fragment = Fragment::default();
        Ok(self.take_fragment(&mut fragment)?.then_some(fragment))
    }

    /// The next item, which is a mutation.
    ///
    /// # Errors
    /// If none is here.
    pub fn mutation(&mut self) -> Result<Mutation, FlatError> {
        self.read(mutation::take)
    }

    /// The next item, which is a position.
    ///
    /// # Errors
    /// If none is here.
    pub fn position(&mut self) -> Result<Position, FlatError> {
        self.read(place::take_position)
    }

    /// The next item, which is a slice.
    ///
    /// # Errors
    /// If none is here.
    pub fn slice(&mut self) -> Result<Slice, FlatError> {
        self.read(place::take_slice)
    }

    #[inline]
    fn read<T>(&mut self, take: impl FnOnce(&mut Cursor<'_>) -> Decoded<T>) -> Result<T, FlatError> {
        let mut cursor = Cursor::new(&self.bytes, self.at);
        let item = take(&mut cursor).map_err(|fault| cursor.error(fault))?;
        self.at = cursor.at();
        Ok(item)
    }

    fn only<T>(mut self, take: impl FnOnce(&mut FlatReader) -> Result<T, FlatError>) -> Result<T, FlatError> {
        let item = take(&mut self)?;
        if self.is_at_end() {
            return Ok(item);
        }
        Err(FlatError { at: self.at, what: "more bytes follow than there should be" })
    }
}

impl FragmentReader for FlatReader {
    type Error = FlatError;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next, FlatError> {
        Ok(if self.take_fragment(place)? { Next::Fragment } else { Next::End })
    }

    fn fill(&mut self) -> impl Future<Output = Result<(), FlatError>> {
        ready(Ok(()))
    }
}

mod kind {
    pub(super) const START: u8 = 1;
    pub(super) const STATIC_ROW: u8 = 2;
    pub(super) const ROW: u8 = 3;
    pub(super) const RANGE_TOMBSTONE: u8 = 4;
    pub(super) const END: u8 = 5;

    pub(super) const DELETED: u8 = 0x10;
    pub(super) const OWN_TOKEN: u8 = 0x20;
}

#[inline]
fn take_fragment(place: &mut Fragment, cursor: &mut Cursor<'_>) -> Decoded<()> {
    let head = cursor.u8()?;
    if head == kind::ROW {
        return row::take_into(place.as_new_row(), &mut Base::at_start(), cursor);
    }
    *place = take_other(head, cursor)?;
    Ok(())
}

/// A fragment that begins like this and is not a row.
fn take_other(head: u8, cursor: &mut Cursor<'_>) -> Decoded<Fragment> {
    match head & 0x0f {
        kind::START => take_start(head & 0xf0, cursor).map(Fragment::PartitionStart),
        kind::RANGE_TOMBSTONE => take_change(head & 0xf0, cursor).map(Fragment::RangeTombstone),
        _ => match head {
            kind::STATIC_ROW => row::take(&mut Base::at_start(), cursor).map(Fragment::StaticRow),
            kind::END => Ok(Fragment::PartitionEnd),
            _ => cursor.invalid(&"this is no kind of fragment"),
        },
    }
}

#[inline]
fn compare_place<'o>(
    cursor: &mut Cursor<'_>,
    types: &[CqlType],
    other: Ends<impl ExactSizeIterator<Item = Option<&'o [u8]>>>,
) -> Decoded<Ordering> {
    match cursor.u8()? & 0x0f {
        kind::ROW => row::compare_clustering(cursor, types, other),
        kind::RANGE_TOMBSTONE => place::compare_position(cursor, types, other),
        _ => cursor.invalid(&"this is neither a row nor a range tombstone"),
    }
}

fn put_start(start: &PartitionStart, out: &mut Vec<u8>) {
    let deleted = if start.deletion.is_live() { 0 } else { kind::DELETED };
    let own_token = has_own_token(&start.key);
    out.push(kind::START | deleted | if own_token { kind::OWN_TOKEN } else { 0 });
    put_key(&start.key, own_token, out);
    if deleted != 0 {
        Base::at_start().put_deletion(&start.deletion, out);
    }
}

fn take_start(flags: u8, cursor: &mut Cursor<'_>) -> Decoded<PartitionStart> {
    cursor
        .check(flags & !(kind::DELETED | kind::OWN_TOKEN) == 0, &"a partition start has an unknown flag")?;
    let key = take_key(flags & kind::OWN_TOKEN != 0, cursor)?;
    let deletion = Base::at_start().take_deletion_if(flags & kind::DELETED != 0, cursor)?;
    Ok(PartitionStart { key, deletion })
}

/// A change says whether a deletion begins, because most that end one begin none.
fn put_change(change: &RangeTombstoneChange, out: &mut Vec<u8>) {
    let deleted = if change.deletion.is_live() { 0 } else { kind::DELETED };
    out.push(kind::RANGE_TOMBSTONE | deleted);
    put_position(&change.position, out);
    if deleted != 0 {
        Base::at_start().put_deletion(&change.deletion, out);
    }
}

fn take_change(flags: u8, cursor: &mut Cursor<'_>) -> Decoded<RangeTombstoneChange> {
    cursor.check(flags & !kind::DELETED == 0, &"a range tombstone has an unknown flag")?;
    let position = place::take_position(cursor)?;
    let deletion = Base::at_start().take_deletion_if(flags != 0, cursor)?;
    Ok(RangeTombstoneChange { position, deletion })
}

/// Whether the token cannot be worked out from the key: tables of secondary indexes have a partitioner of their own.
fn has_own_token(key: &PartitionKey) -> bool {
    key.token != token_of(&key.bytes)
}

fn put_key(key: &PartitionKey, own_token: bool, out: &mut Vec<u8>) {
    put_bytes(&key.bytes, out);
    if own_token {
        out.extend_from_slice(&key.token.to_be_bytes());
    }
}

fn take_key(own_token: bool, cursor: &mut Cursor<'_>) -> Decoded<PartitionKey> {
    let mut key = PartitionKey::new(share(cursor.owner(), cursor.bytes()?));
    if own_token {
        let murmur3 = std::mem::replace(&mut key.token, i64::from_be_bytes(cursor.array()?));
        cursor.check(key.token != murmur3, &"a token is stored that can be worked out")?;
    }
    Ok(key)
}

#[cfg(test)]
mod tests;
