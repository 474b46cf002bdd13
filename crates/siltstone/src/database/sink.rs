//! Where rows go that were read: into a page, or to a function that looks at them where they are.
//!
//! ```text
//! Packer ──a row as it stands──► Straight ──► values, one by one ──┐
//!        └──a decoded row────────────────────────────────────────┴──► Sink
//! ```

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use model::flat::{FlatError, FlatRow};
use model::{Bytes, Cell, Column, LiveRows, LiveVisitor, PartitionKey, Row, Schema, select};

use super::rows::PackedRows;
use super::select::Selection;
use super::shape::{ColumnInfo, Place};

/// The order of the first regular column; there are less clustering columns than this.
const FIRST_REGULAR: u32 = 1 << 16;

/// Takes rows.
pub(super) trait Sink {
    /// Rows will have these columns.
    fn select(&mut self, _columns: &Arc<[ColumnInfo]>) {}

    /// The rows behind these are of another partition.
    fn leave_partition(&mut self) {}

    /// Takes a row that is not decoded, if anything of it is live. Whether it was taken; `None` if it has to be decoded.
    ///
    /// # Errors
    /// If there is no row.
    fn take_flat<'a>(&mut self, of: &'a Common, live: &LiveRows, row: FlatRow<'a>) -> Shown;

    /// Takes a row of which only what is live is left; `None` for a partition that has no rows.
    fn take(&mut self, of: &Common, row: Option<&Row>);

    /// Whether no more are wanted.
    fn is_full(&self, selection: &Selection) -> bool;

    /// Where to go on behind the last row.
    fn go_on_at(&mut self, next: Vec<u8>);
}

/// Whether anything of a row was live; `None` if it has to be decoded to know.
pub(super) type Shown = Result<Option<bool>, FlatError>;

/// What all rows have in common, and what those of the partition at hand have.
pub(super) struct Common {
    pub(super) schema: Rc<Schema>,
    pub(super) selection: Selection,
    /// How many columns of the partition key are selected first.
    pub(super) key_places: usize,
    pub(super) key: Option<PartitionKey>,
    /// The values of the columns of the key.
    pub(super) key_parts: Vec<Bytes>,
    pub(super) static_row: Option<Row>,
}

/// Is given the values of a row, in the order in which they are selected.
pub(super) trait Put<'a> {
    fn put(&mut self, value: Option<&'a [u8]>);

    /// The same of one that had to be made.
    fn put_made(&mut self, value: Option<Cow<'a, [u8]>>);
}

/// Gives the values of a row on while it is visited.
pub(super) struct Straight<'o, 'a, O> {
    out: &'o mut O,
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

    /// The columns of the key that are selected first.
    #[inline]
    pub(super) fn put_key<'a>(&'a self, out: &mut impl Put<'a>) {
        self.selection.places[..self.key_places].iter().for_each(|place| self.put_without(*place, out));
    }

    /// All that is selected of a decoded row, or of a partition without rows.
    pub(super) fn put_all<'a>(&'a self, row: Option<&'a Row>, out: &mut impl Put<'a>) {
        for place in self.selection.places.iter() {
            match *place {
                Place::Clustering(at) => {
                    let value = row.and_then(|row| row.clustering.values.get(at)?.as_ref());
                    out.put(value.map(|value| &**value));
                }
                Place::Regular(at) => out.put_made(value_of(row, &self.schema.regulars, at)),
                of_partition => self.put_without(of_partition, out),
            }
        }
    }

    /// The value of a column that all rows of the partition have in common; null for one of the row's own.
    #[inline]
    fn put_without<'a>(&'a self, place: Place, out: &mut impl Put<'a>) {
        match place {
            Place::PartitionKey(at) => out.put(self.key_parts.get(at).map(|part| &**part)),
            Place::Static(at) => out.put_made(value_of(self.static_row.as_ref(), &self.schema.statics, at)),
            Place::Clustering(_) | Place::Regular(_) => out.put(None),
        }
    }
}

impl Sink for PackedRows {
    fn leave_partition(&mut self) {
        self.head = 0;
    }

    #[inline]
    fn take_flat<'a>(&mut self, of: &'a Common, live: &LiveRows, row: FlatRow<'a>) -> Shown {
        let head = match self.head {
            0 => {
                self.begin(of.key().token, of.selection.rows);
                of.put_key(self);
                self.begun()
            }
            head => {
                self.begin_alike(head, of.selection.rows);
                head
            }
        };
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
        of.put_all(row, self);
    }

    #[inline]
    fn is_full(&self, selection: &Selection) -> bool {
        self.starts.len() >= selection.rows || self.bytes.len() >= selection.bytes
    }

    fn go_on_at(&mut self, next: Vec<u8>) {
        self.next = Some(next);
    }
}

impl<'a> Put<'a> for PackedRows {
    #[inline(always)]
    fn put(&mut self, value: Option<&'a [u8]>) {
        self.push(value);
    }

    fn put_made(&mut self, value: Option<Cow<'a, [u8]>>) {
        self.push(value.as_deref());
    }
}

impl<'o, 'a, O: Put<'a>> Straight<'o, 'a, O> {
    /// For a row of which the columns of the key that are selected first are there already.
    #[inline]
    pub(super) fn behind_key(of: &'a Common, out: &'o mut O) -> Straight<'o, 'a, O> {
        Straight { out, of, places: &of.selection.places[of.key_places..], clustering: 0 }
    }

    /// Puts the value of a column, if it is selected, behind all that is selected before it.
    #[inline(always)]
    fn put(&mut self, column: u32, value: Option<&'a [u8]>) {
        while let [place, rest @ ..] = self.places {
            match order_of(*place) {
                Some(next) if next == column => {
                    self.places = rest;
                    return self.out.put(value);
                }
                Some(next) if next > column => return,
                _ => self.of.put_without(*place, self.out),
            }
            self.places = rest;
        }
    }

    /// Puts what is selected behind the last value.
    #[inline]
    pub(super) fn finish(self) {
        self.places.iter().for_each(|place| self.of.put_without(*place, self.out));
    }
}

impl<'a, O: Put<'a>> LiveVisitor<'a> for Straight<'_, 'a, O> {
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
fn value_of<'a>(row: Option<&'a Row>, columns: &[Column], at: u16) -> Option<Cow<'a, [u8]>> {
    let cells = &row?.cells;
    let first = cells.partition_point(|cell: &Cell| cell.column < at);
    let count = cells[first..].iter().take_while(|cell| cell.column == at).count();
    select::value_of(&columns[usize::from(at)].data_type, &cells[first..first + count])
}
