//! Where rows go that were read: into a page, or to a function that looks at them where they are.
//!
//! ```text
//!        ┌──usual rows together──► Straight, or Placer ─────────┐
//! Packer ┤──a row as it stands────► LiveRows::show ──► Straight ├──► PackedRows
//!        │                                        └──► Slotted ─┼──► Fold
//!        └──a decoded row─────────► Common::values_of ──────────┘
//! ```

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use model::flat::{FlatError, FlatRow, Habit, Outline, ValueVisitor};
use model::{Bytes, Cell, Column, CqlType, LiveRows, PartitionKey, Row, Schema, select};
use smallvec::SmallVec;

use super::rows::PackedRows;
use super::select::Selection;
use super::shape::{ColumnInfo, Place};
use super::slots::Slots;

/// The order of the first regular column; there are less clustering columns than this.
const FIRST_REGULAR: u32 = 1 << 16;

/// Takes rows.
pub(super) trait Sink {
    /// Whether it takes values of undecoded rows by their [`Slots`].
    const HAS_SLOTS: bool;

    /// Whether it mostly takes all rows up to the limit: not one that is full by their bytes.
    const READS_ON: bool;

    /// Rows will have these columns.
    fn select(&mut self, _columns: &Arc<[ColumnInfo]>) {}

    /// The columns are about to be others. Whether it has forgotten its rows, which are then read once more.
    fn begins_again(&mut self) -> bool;

    /// The rows behind these are of another partition.
    fn leave_partition(&mut self) {}

    /// Takes a row that is not decoded, if anything of it is live. Whether it was taken; `None` if it has to be decoded.
    ///
    /// # Errors
    /// If there is no row.
    fn take_flat<'a>(&mut self, of: &'a Common, live: &LiveRows, row: FlatRow<'a>) -> Shown;

    /// Takes a usual row and those that follow it as long as they are usual, up to so many, or until it is full: all of them are live. How
    /// many it took, and why no more.
    ///
    /// # Errors
    /// If there is no row.
    fn take_usual<'a, R: Iterator<Item = FlatRow<'a>>>(
        &mut self,
        of: &Common,
        rows: (FlatRow<'a>, &mut R),
        most: usize,
    ) -> TakenUsual<'a>;

    /// Takes a row of which only what is live is left; `None` for a partition that has no rows.
    fn take(&mut self, of: &Common, row: Option<&Row>);

    /// Whether no more are wanted.
    fn is_full(&self, selection: &Selection) -> bool;

    /// Where to go on behind the last row.
    fn go_on_at(&mut self, next: Vec<u8>);

    /// Where it is to be gone on, if that was said.
    fn take_next(&mut self) -> Option<Vec<u8>>;
}

/// Whether anything of a row was live; `None` if it has to be decoded to know.
pub(super) type Shown = Result<Option<bool>, FlatError>;

/// How many usual rows were taken, and why no more.
pub(super) type TakenUsual<'a> = Result<(usize, Stop<'a>), FlatError>;

/// Why no more usual rows were taken.
pub(super) enum Stop<'a> {
    /// There are none.
    End,
    /// This one comes next, and may not be usual.
    Other(FlatRow<'a>),
    /// This is the last one that is wanted now.
    Last(FlatRow<'a>),
}

/// What all rows have in common, and what those of the partition at hand have.
pub(super) struct Common {
    pub(super) schema: Rc<Schema>,
    pub(super) selection: Selection,
    /// How many columns of the partition key are selected first.
    pub(super) key_places: usize,
    pub(super) key: Option<PartitionKey>,
    /// The values of the columns of the key.
    pub(super) key_parts: Vec<Bytes>,
    /// The values of the static columns that are selected, if the partition has a static row.
    pub(super) statics: Option<Statics>,
    /// Of what all its rows have in common: where in the selection, and the value. For sinks that have slots.
    pub(super) shared: Vec<(usize, Bytes)>,
    pub(super) slots: Option<Slots>,
    pub(super) habit: Rc<Habit<Outline>>,
}

/// The values of static columns, each at its column's place.
pub(super) type Statics = Vec<Option<Bytes>>;

/// The values of a row that had to be made of what it has.
pub(super) type Made<'a> = SmallVec<[Option<Cow<'a, [u8]>>; 8]>;

/// Gives the values of a row on while it is visited.
struct Straight<'o, 'a> {
    out: &'o mut PackedRows,
    of: &'a Common,
    /// The columns that are left.
    places: &'a [Place],
    /// How many clustering columns were seen.
    clustering: u32,
}

impl Common {
    /// The key of the partition at hand.
    pub(super) fn key(&self) -> &PartitionKey {
        self.key.as_ref().expect("rows stand in partitions")
    }

    /// Where the values of its rows go, for a sink that has slots where rows are not decoded.
    #[inline]
    pub(super) fn slots(&self) -> &Slots {
        self.slots.as_ref().expect("it has slots where rows are not decoded")
    }

    /// The rows that follow are of this partition.
    pub(super) fn enter(&mut self, key: &PartitionKey, types: &[CqlType]) {
        self.key_parts = parts_of(&key.bytes, types);
        (self.key, self.statics) = (Some(key.clone()), None);
        self.share();
    }

    /// Their partition has this static row.
    pub(super) fn enter_static_row(&mut self, row: &Row) {
        let mut statics = vec![None; self.schema.statics.len()];
        for place in self.selection.places.iter() {
            if let Place::Static(at) = *place {
                let value = value_of(row, &self.schema.statics, at);
                statics[usize::from(at)] = value.map(|value| Bytes::from(value.into_owned()));
            }
        }
        self.statics = Some(statics);
        self.share();
    }

    fn share(&mut self) {
        if self.slots.is_none() {
            return;
        }
        let mut shared = std::mem::take(&mut self.shared);
        shared.clear();
        let places = self.selection.places.iter().enumerate();
        shared.extend(places.filter_map(|(at, place)| Some((at, self.value_without(*place)?.clone()))));
        self.shared = shared;
    }

    /// The columns of the key that are selected first.
    #[inline]
    fn put_key(&self, out: &mut PackedRows) {
        let places = &self.selection.places[..self.key_places];
        places.iter().for_each(|place| out.push(self.value_without(*place).map(|value| &**value)));
    }

    /// All that is selected of a decoded row, or of a partition without rows.
    pub(super) fn values_of<'a>(&'a self, row: Option<&'a Row>) -> Made<'a> {
        let value = |place: &Place| match *place {
            Place::Clustering(at) => Some(Cow::Borrowed(&**row?.clustering.values.get(at)?.as_ref()?)),
            Place::Regular(at) => value_of(row?, &self.schema.regulars, at),
            of_partition => self.value_without(of_partition).map(|value| Cow::Borrowed(&**value)),
        };
        self.selection.places.iter().map(value).collect()
    }

    /// The value of a column that all rows of the partition have in common; null for one of the row's own.
    #[inline]
    fn value_without(&self, place: Place) -> Option<&Bytes> {
        match place {
            Place::PartitionKey(at) => self.key_parts.get(at),
            Place::Static(at) => self.statics.as_ref()?[usize::from(at)].as_ref(),
            Place::Clustering(_) | Place::Regular(_) => None,
        }
    }
}

/// Does the same with a usual row, which has the number 0, and each that follows it as long as they are usual, up to so many, or until it says that
/// it is full.
#[inline(always)]
pub(super) fn each_usual<'a>(
    (mut row, rows): (FlatRow<'a>, &mut impl Iterator<Item = FlatRow<'a>>),
    most: usize,
    mut take: impl FnMut(usize, FlatRow<'a>) -> Result<bool, FlatError>,
) -> TakenUsual<'a> {
    let mut taken = 0;
    loop {
        let is_full = take(taken, row)?;
        taken += 1;
        if is_full || taken == most {
            return Ok((taken, Stop::Last(row)));
        }
        match rows.next() {
            None => return Ok((taken, Stop::End)),
            Some(next) if !next.is_usual() => return Ok((taken, Stop::Other(next))),
            Some(next) => row = next,
        }
    }
}

impl Sink for PackedRows {
    const HAS_SLOTS: bool = false;
    const READS_ON: bool = false;

    /// The rows of a page have the same columns.
    fn begins_again(&mut self) -> bool {
        *self = PackedRows::default();
        true
    }

    fn leave_partition(&mut self) {
        self.head = 0;
    }

    #[inline]
    fn take_usual<'a, R: Iterator<Item = FlatRow<'a>>>(
        &mut self,
        of: &Common,
        rows: (FlatRow<'a>, &mut R),
        most: usize,
    ) -> TakenUsual<'a> {
        each_usual(rows, most, |_, row| {
            let head = self.begin_row(of);
            let mut straight = Straight::behind_key(of, self);
            row.visit_usual(&mut straight)?;
            straight.finish();
            self.head = head;
            Ok(self.is_full(&of.selection))
        })
    }

    #[inline]
    fn take_flat<'a>(&mut self, of: &'a Common, live: &LiveRows, row: FlatRow<'a>) -> Shown {
        let head = self.begin_row(of);
        let mut straight = Straight::behind_key(of, self);
        let taken = live.show(row, &mut straight)?;
        if taken == Some(true) {
            straight.finish();
            self.head = head;
        } else {
            self.take_back();
        }
        Ok(taken)
    }

    fn take(&mut self, of: &Common, row: Option<&Row>) {
        self.begin(of.key().token, of.selection.rows);
        of.values_of(row).iter().for_each(|value| self.push(value.as_deref()));
    }

    #[inline]
    fn is_full(&self, selection: &Selection) -> bool {
        self.starts.len() >= selection.rows || self.bytes.len() >= selection.bytes
    }

    fn go_on_at(&mut self, next: Vec<u8>) {
        self.next = Some(next);
    }

    fn take_next(&mut self) -> Option<Vec<u8>> {
        self.next.take()
    }
}

impl PackedRows {
    /// Begins a row with the columns of the key that are selected first. Where the next one has the same.
    #[inline]
    fn begin_row(&mut self, of: &Common) -> usize {
        match self.head {
            0 => {
                self.begin(of.key().token, of.selection.rows);
                of.put_key(self);
                self.begun()
            }
            head => {
                self.begin_alike(head, of.selection.rows);
                head
            }
        }
    }
}

impl<'o, 'a> Straight<'o, 'a> {
    /// For a row of which the columns of the key that are selected first are there already.
    #[inline]
    fn behind_key(of: &'a Common, out: &'o mut PackedRows) -> Straight<'o, 'a> {
        Straight { out, of, places: &of.selection.places[of.key_places..], clustering: 0 }
    }

    /// Puts the value of a column, if it is selected, behind all that is selected before it.
    #[inline(always)]
    fn put(&mut self, column: u32, value: Option<&'a [u8]>) {
        while let [place, rest @ ..] = self.places {
            match order_of(*place) {
                Some(next) if next == column => {
                    self.places = rest;
                    return self.out.push(value);
                }
                Some(next) if next > column => return,
                _ => self.out.push(self.of.value_without(*place).map(|value| &**value)),
            }
            self.places = rest;
        }
    }

    /// Puts what is selected behind the last value.
    #[inline]
    fn finish(self) {
        let values = self.places.iter().map(|place| self.of.value_without(*place));
        values.for_each(|value| self.out.push(value.map(|value| &**value)));
    }
}

impl<'a> ValueVisitor<'a> for Straight<'_, 'a> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.put(self.clustering, value);
        self.clustering += 1;
    }

    #[inline]
    fn cell(&mut self, column: u16, value: &'a [u8]) {
        self.put(FIRST_REGULAR + u32::from(column), Some(value));
    }
}

/// Whether these columns of rows can be given on while a row is visited.
pub(super) fn are_straight(places: &[Place], schema: &Schema) -> bool {
    let is_one_cell = |place: &Place| {
        let Place::Regular(at) = *place else { return true };
        let data_type = &schema.regulars[usize::from(at)].data_type;
        !data_type.is_multi_cell() && !data_type.is_counter()
    };
    let of_rows = places.iter().filter_map(|place| order_of(*place));
    of_rows.is_sorted_by(|a, b| a < b) && places.iter().all(is_one_cell)
}

/// The number of a column of a row's own, in the order in which rows have them; `None` of a partition's.
#[inline]
fn order_of(place: Place) -> Option<u32> {
    match place {
        Place::Clustering(at) => Some(at as u32),
        Place::Regular(at) => Some(FIRST_REGULAR + u32::from(at)),
        Place::PartitionKey(_) | Place::Static(_) => None,
    }
}

/// The value of a column from the live cells of a row.
fn value_of<'a>(row: &'a Row, columns: &[Column], at: u16) -> Option<Cow<'a, [u8]>> {
    let cells = &row.cells;
    let first = cells.partition_point(|cell: &Cell| cell.column < at);
    let count = cells[first..].iter().take_while(|cell| cell.column == at).count();
    select::value_of(&columns[usize::from(at)].data_type, &cells[first..first + count])
}

/// The values of the columns of a partition key.
fn parts_of(key: &Bytes, types: &[CqlType]) -> Vec<Bytes> {
    if types.len() == 1 {
        return vec![key.clone()];
    }
    let mut at = 0;
    let next = |_: &CqlType| {
        let len = key.get(at..at + 2).map(|len| usize::from(u16::from_be_bytes([len[0], len[1]])))?;
        let part = (at + 2 + len <= key.len()).then(|| key.slice(at + 2..at + 2 + len));
        at += 2 + len + 1;
        part
    };
    types.iter().map_while(next).collect()
}
