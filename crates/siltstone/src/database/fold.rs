//! Rows looked at where they are: by who has their shard, in the cache that has them, without a copy of anything.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use model::flat::FlatRow;
use model::{LiveRows, Row, Token};
use smallvec::SmallVec;

use super::rows::{place_of, to_json};
use super::select::Selection;
use super::shape::ColumnInfo;
use super::sink::{Common, Shown, Sink, TakenUsual, each_usual};
use super::slots::{FEW, Placer, Slotted, Values, values_of_all};
use super::typed::{FromCql, value_as};
use crate::Result;

/// A row while it is looked at, as a `SELECT` gives it.
#[derive(Clone, Copy)]
pub struct RowView<'r> {
    columns: &'r [ColumnInfo],
    token: Token,
    values: &'r [Option<&'r [u8]>],
}

/// What has become of a state by the rows that it was shown, and where to go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folded<A> {
    /// The state.
    pub state: A,
    /// Where the rows behind the last one begin: for the next read of the same kind. `None` where there are none.
    pub next: Option<Vec<u8>>,
}

/// Shows rows to a function.
pub(super) struct Fold<A, F> {
    state: A,
    each: F,
    columns: Arc<[ColumnInfo]>,
    rows: usize,
    has_enough: bool,
    next: Option<Vec<u8>>,
}

impl<'r> RowView<'r> {
    /// The columns that were selected, in the order of the values.
    pub fn columns(&self) -> &'r [ColumnInfo] {
        self.columns
    }

    /// The token of its partition.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The bytes of a column as CQL has them; `None` where it is null or was not selected: see [`super::Row::get`].
    pub fn get(&self, column: &str) -> Option<&'r [u8]> {
        let at = self.columns.iter().position(|info| info.name == column)?;
        self.values[at]
    }

    /// A column as what a program wants: see [`super::Row::get_as`].
    ///
    /// # Errors
    /// Those of [`super::Row::get_as`].
    pub fn get_as<T: FromCql>(&self, column: &str) -> Result<Option<T>> {
        let at = place_of(self.columns, column)?;
        value_as(&self.columns[at], self.values[at])
    }

    /// The bytes of all columns, `None` where null.
    pub fn values(&self) -> impl Iterator<Item = Option<&'r [u8]>> + use<'r> {
        self.values.iter().copied()
    }

    /// All columns as an object of JSON: see [`super::Row::to_json`].
    ///
    /// # Errors
    /// Bytes that are no value of their column's type: a file that was not damaged has none.
    pub fn to_json(&self) -> Result<String> {
        to_json(self.columns, self.values())
    }
}

impl fmt::Debug for RowView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_json() {
            Ok(json) => f.write_str(&json),
            Err(error) => write!(f, "{error}"),
        }
    }
}

impl<A, F: FnMut(&mut A, RowView<'_>) -> ControlFlow<()>> Fold<A, F> {
    pub(super) fn new(start: A, each: F) -> Fold<A, F> {
        Fold { state: start, each, columns: Arc::default(), rows: 0, has_enough: false, next: None }
    }

    pub(super) fn finish(self) -> Folded<A> {
        Folded { state: self.state, next: self.next }
    }

    #[inline]
    fn show(&mut self, token: Token, values: &Values<'_>) {
        let row = RowView { columns: &self.columns, token, values };
        self.has_enough = (self.each)(&mut self.state, row).is_break();
        self.rows += 1;
    }
}

impl<A, F: FnMut(&mut A, RowView<'_>) -> ControlFlow<()>> Sink for Fold<A, F> {
    const HAS_SLOTS: bool = true;
    const READS_ON: bool = true;

    fn select(&mut self, columns: &Arc<[ColumnInfo]>) {
        self.columns = columns.clone();
    }

    /// What was shown was shown.
    fn begins_again(&mut self) -> bool {
        false
    }

    #[inline]
    fn take_flat<'a>(&mut self, of: &'a Common, live: &LiveRows, row: FlatRow<'a>) -> Shown {
        let (mut few, mut many) = ([None; FEW], Vec::new());
        let values = values_of_all(of, &mut few, &mut many);
        let taken = live.show(row, &mut Slotted::new(of.slots(), values))?;
        if taken == Some(true) {
            self.show(of.key().token, values);
        }
        Ok(taken)
    }

    #[inline]
    fn take_usual<'a, R: Iterator<Item = FlatRow<'a>>>(
        &mut self,
        of: &Common,
        rows: (FlatRow<'a>, &mut R),
        most: usize,
    ) -> TakenUsual<'a> {
        let (mut few, mut many) = ([None; FEW], Vec::new());
        let values = values_of_all(of, &mut few, &mut many);
        let mut placer = Placer::new(of.slots(), &of.habit, rows.0);
        let token = of.key().token;
        let taken = each_usual(rows, most, |number, row| {
            placer.put(number, row, values)?;
            self.show(token, values);
            Ok(self.is_full(&of.selection))
        })?;
        placer.finish(taken.0);
        Ok(taken)
    }

    fn take(&mut self, of: &Common, row: Option<&Row>) {
        let made = of.values_of(row);
        let values: SmallVec<[_; FEW]> = made.iter().map(Option::as_deref).collect();
        self.show(of.key().token, &values);
    }

    #[inline]
    fn is_full(&self, selection: &Selection) -> bool {
        self.has_enough || self.rows >= selection.rows
    }

    fn go_on_at(&mut self, next: Vec<u8>) {
        self.next = Some(next);
    }

    fn take_next(&mut self) -> Option<Vec<u8>> {
        self.next.take()
    }
}
