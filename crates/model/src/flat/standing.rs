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
use super::{FlatError, FlatReader, UsualValues, row};
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
    /// [`Schema::rank`] of each of them.
    pub ranks: Vec<u64>,
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

/// Passes a row on, and finds whether it says anything, and the first value of its clustering key.
struct Noted<'v, 'a, V> {
    visitor: &'v mut V,
    says_something: bool,
    first: FirstValue<'a>,
}

/// The first value of a clustering key, if it has any; `None` in it is null.
type FirstValue<'a> = Option<Option<&'a [u8]>>;

/// The mutation that these bytes are, all of them, of a table of these columns. Its clustered rows are decoded once, and shown to the
/// visitor.
///
/// # Errors
/// If they are not what [`put_mutation`](super::put_mutation) gave.
pub fn standing_mutation<'a>(
    bytes: &'a Bytes,
    schema: &Schema,
    visitor: &mut impl RowVisitor<'a>,
) -> Result<StandingMutation, FlatError> {
    let mut cursor = Cursor::new(bytes, 0);
    let (mut rows, mut ranks) = (Vec::new(), Vec::new());
    let taken = mutation::take_parts(&mut cursor, |base, cursor| {
        if let Some((row, first)) = StandingRow::take(visitor, base, cursor)? {
            rows.push(row);
            ranks.push(schema.rank_of(first, Weight::At));
        }
        Ok(())
    });
    let Parts { key, deletion, static_row, rows: _, range_tombstones } =
        taken.map_err(|fault| cursor.error(fault))?;
    FlatReader { bytes: bytes.clone(), at: cursor.at() }.only(|_| Ok(()))?;
    Ok(StandingMutation { key, deletion, static_row, rows, ranks, range_tombstones })
}

impl StandingMutation {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.deletion.is_live()
            && self.static_row.as_ref().is_none_or(Row::is_empty)
            && self.rows.is_empty()
            && self.range_tombstones.is_empty()
    }

    /// Whether the rows ascend, each key once, and every range tombstone begins before it ends.
    pub fn is_in_order(&self, schema: &Schema) -> bool {
        // Most rows need not be looked at again.
        let ascends = |(ranks, rows): (&[u64; 2], &[StandingRow; 2])| {
            let order = ranks[0].cmp(&ranks[1]).then_with(|| rows[0].compare_to(schema, &rows[1]));
            order.is_lt()
        };
        let rows_ascend = self.ranks.array_windows().zip(self.rows.array_windows()).all(ascends);
        let begins_first = |range: &RangeTombstone| schema.compare(&range.start, &range.end).is_lt();
        rows_ascend && self.range_tombstones.iter().all(begins_first)
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

    /// Puts its values into the place of those there, if it is [usual](super::is_usual). Whether it is; what is there is of no worth
    /// otherwise.
    #[inline]
    pub fn take_usual<'a>(&'a self, values: &mut UsualValues<'a>) -> bool {
        self.read(|base, cursor| row::take_usual(values, base, cursor))
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

    /// The row that follows, with the first value of its clustering key; `None` if it says nothing.
    #[inline]
    fn take<'a>(
        visitor: &mut impl RowVisitor<'a>,
        base: &mut Base,
        cursor: &mut Cursor<'a>,
    ) -> Decoded<Option<(StandingRow, FirstValue<'a>)>> {
        let (before, owner, at) = (*base, cursor.owner(), cursor.at());
        let mut noted = Noted { visitor, says_something: false, first: None };
        row::visit(&mut noted, base, cursor)?;
        let row = || StandingRow { bytes: owner.slice(at..cursor.at()), base: before };
        Ok(noted.says_something.then(|| (row(), noted.first)))
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

impl<'a, V: RowVisitor<'a>> RowVisitor<'a> for Noted<'_, 'a, V> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.first.get_or_insert(value);
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
