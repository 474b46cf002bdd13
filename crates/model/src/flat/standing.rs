//! Rows left in the flat bytes of the mutation that they came with: what a memtable keeps of them.
//!
//! A row's times are told from those before it, so that a row that is looked at by itself has to know what those were.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::cursor::{Cursor, Decoded, share};
use super::mutation::{self, Parts};
use super::place::{Ends, visit_clustering};
use super::stamp::Base;
use super::view::{CellView, RowVisitor};
use super::{FlatError, FlatReader, kind, row};
use crate::{
    Bytes, Clustering, DeletionTime, Liveness, PartitionKey, PositionRef, RangeTombstone, Row, Schema, Weight,
};

/// A mutation whose clustered rows stay where they are. Rows of which nothing is said are left out.
#[derive(Clone, Debug)]
pub struct StandingMutation {
    /// The partition.
    pub key: PartitionKey,
    /// The deletion of the whole partition.
    pub deletion: DeletionTime,
    /// The static row.
    pub static_row: Option<Row>,
    /// Clustered rows, as they come.
    pub rows: Vec<StandingRow>,
    /// Deletions of ranges, in any order; they may overlap.
    pub range_tombstones: Vec<RangeTombstone>,
}

/// A clustered row that is left where it is, with a share of the buffer.
///
/// Invariant: its bytes were decoded before, so that they decode.
#[derive(Clone, Debug)]
pub struct StandingRow {
    /// They begin with the row.
    bytes: Bytes,
    /// What its times are told from.
    base: Base,
}

/// Passes a row on, and finds whether it says anything.
struct Noted<'v, V> {
    visitor: &'v mut V,
    says_something: bool,
}

/// The mutation that these bytes are, all of them. Its clustered rows are decoded once, and shown to the visitor.
///
/// # Errors
/// If they are not what [`put_mutation`](super::put_mutation) gave.
pub fn standing_mutation<'a>(
    bytes: &'a Bytes,
    visitor: &mut impl RowVisitor<'a>,
) -> Result<StandingMutation, FlatError> {
    let mut cursor = Cursor::new(bytes, 0);
    let taken = mutation::take_parts(&mut cursor, |base, cursor| StandingRow::take(visitor, base, cursor));
    let Parts { key, deletion, static_row, rows, range_tombstones } =
        taken.map_err(|fault| cursor.error(fault))?;
    FlatReader { bytes: bytes.clone(), at: cursor.at() }.only(|_| Ok(()))?;
    let rows = rows.into_iter().flatten().collect();
    Ok(StandingMutation { key, deletion, static_row, rows, range_tombstones })
}

impl StandingMutation {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live()
            && self.static_row.as_ref().is_none_or(Row::is_empty)
            && self.rows.is_empty()
            && self.range_tombstones.is_empty()
    }

    /// The [rank](Schema::rank) of each row, if they ascend, each key once, and every range tombstone begins before it ends.
    pub fn ranks_in_order(&self, schema: &Schema) -> Option<Vec<u64>> {
        let ranks = self.rows.iter().map(|row| row.rank(schema)).collect::<Vec<_>>();
        // Most rows need not be looked at again.
        let ascends = |(ranks, rows): (&[u64; 2], &[StandingRow; 2])| {
            let order = ranks[0].cmp(&ranks[1]).then_with(|| rows[0].compare_to(schema, &rows[1]));
            order.is_lt()
        };
        let rows_ascend = ranks.array_windows().zip(self.rows.array_windows()).all(ascends);
        let begins_first = |range: &RangeTombstone| schema.compare(&range.start, &range.end).is_lt();
        (rows_ascend && self.range_tombstones.iter().all(begins_first)).then_some(ranks)
    }
}

impl StandingRow {
    /// Whether nothing of it is deleted as a whole: neither the row nor a multi-cell column.
    pub fn is_plain(&self) -> bool {
        row::is_plain(self.bytes[0])
    }

    /// The row.
    pub fn to_row(&self) -> Row {
        let mut row = Row::new(Clustering::empty());
        self.decode(&mut row);
        row
    }

    /// Puts the row into one that has nothing but memory.
    #[inline]
    pub fn decode(&self, row: &mut Row) {
        debug_assert!(row.is_empty() && row.clustering.is_empty(), "nothing is overwritten");
        self.read(|base, cursor| row::take_into(row, base, cursor));
    }

    /// Appends the row as [`put_fragment`](super::put_fragment) does, if it is [usual](super::is_usual). Whether it is; what was
    /// appended is of no worth otherwise.
    #[inline]
    pub fn put_if_usual(&self, out: &mut Vec<u8>) -> bool {
        self.read(|base, cursor| row::put_if_usual(kind::ROW, base, cursor, out))
    }

    /// Shows the row to a visitor.
    #[inline]
    pub fn visit<'a>(&'a self, visitor: &mut impl RowVisitor<'a>) {
        self.read(|base, cursor| row::visit(visitor, base, cursor));
    }

    /// Its clustering key.
    pub fn clustering(&self) -> Clustering {
        let mut values = SmallVec::new();
        self.each_value(|value| values.push(value.map(|value| share(&self.bytes, value))));
        Clustering { values }
    }

    /// [`Schema::rank`] of its clustering key.
    #[inline]
    pub fn rank(&self, schema: &Schema) -> u64 {
        let mut first = None;
        self.each_value(|value| {
            first.get_or_insert(value);
        });
        schema.rank_of(first, Weight::At)
    }

    /// Where it stands beside a position.
    pub fn compare(&self, schema: &Schema, position: PositionRef<'_>) -> Ordering {
        let other = Ends(position.prefix.views(), position.weight);
        self.read(|_, cursor| row::compare_clustering(cursor, &schema.clustering, other))
    }

    /// Where it stands beside another row.
    pub fn compare_to(&self, schema: &Schema, other: &StandingRow) -> Ordering {
        let mut others = SmallVec::<[Option<&[u8]>; 4]>::new();
        other.each_value(|value| others.push(value));
        let other = Ends(others.iter().copied(), Weight::At);
        self.read(|_, cursor| row::compare_clustering(cursor, &schema.clustering, other))
    }

    /// The row that follows; `None` if it says nothing.
    #[inline]
    fn take<'a>(
        visitor: &mut impl RowVisitor<'a>,
        base: &mut Base,
        cursor: &mut Cursor<'a>,
    ) -> Decoded<Option<StandingRow>> {
        let (before, owner, at) = (*base, cursor.owner(), cursor.at());
        let mut noted = Noted { visitor, says_something: false };
        row::visit(&mut noted, base, cursor)?;
        let row = || StandingRow { bytes: owner.slice(at..cursor.at()), base: before };
        Ok(noted.says_something.then(row))
    }

    #[inline]
    fn each_value<'a>(&'a self, visit: impl FnMut(Option<&'a [u8]>)) {
        self.read(|_, cursor| {
            cursor.u8()?;
            visit_clustering(cursor, visit)
        });
    }

    #[inline]
    fn read<'a, T>(&'a self, read: impl FnOnce(&mut Base, &mut Cursor<'a>) -> Decoded<T>) -> T {
        let mut cursor = Cursor::new(&self.bytes, 0);
        let read = read(&mut self.base.clone(), &mut cursor);
        read.map_err(|fault| cursor.error(fault)).expect("a row that was decoded before")
    }
}

impl<'a, V: RowVisitor<'a>> RowVisitor<'a> for Noted<'_, V> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.visitor.clustering_value(value);
    }

    #[inline]
    fn marker(&mut self, liveness: Liveness) {
        self.says_something |= !liveness.is_none();
        self.visitor.marker(liveness);
    }

    fn deletions(&mut self, deletion: DeletionTime, shadowable: DeletionTime) {
        self.says_something = true;
        self.visitor.deletions(deletion, shadowable);
    }

    fn complex_deletions(&mut self, deletions: Vec<(u16, DeletionTime)>) {
        self.says_something = true;
        self.visitor.complex_deletions(deletions);
    }

    #[inline]
    fn cells(&mut self, about: usize) {
        self.visitor.cells(about);
    }

    #[inline]
    fn cell(&mut self, cell: CellView<'a>) {
        self.says_something = true;
        self.visitor.cell(cell);
    }
}
