//! A position that orders itself: what a memtable sorts rows and ranges by.

use std::cmp::Ordering;
use std::rc::Rc;

use model::{Position, Schema};

use super::kept::KeptRow;

/// A position among the rows of a table: a row itself, or another one.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// [`Schema::rank`] of the position: most comparisons need no look at the position itself.
    rank: u64,
    at: At,
    schema: Rc<Schema>,
}

#[derive(Clone, Debug)]
enum At {
    /// A row, which is all that the map of rows keeps of it.
    Row(KeptRow),
    /// Positions are few, and large.
    Position(Box<Position>),
}

impl Place {
    pub(super) fn new(schema: &Rc<Schema>, position: Position) -> Place {
        Place { rank: schema.rank(&position), at: At::Position(Box::new(position)), schema: schema.clone() }
    }

    /// Where a row of this rank stands, with the row.
    #[inline]
    pub(super) fn of_row(schema: &Rc<Schema>, rank: u64, row: KeptRow) -> Place {
        Place { rank, at: At::Row(row), schema: schema.clone() }
    }

    /// The row.
    ///
    /// # Panics
    /// If it is no place of a row.
    pub(super) fn row(&self) -> &KeptRow {
        match &self.at {
            At::Row(row) => row,
            At::Position(position) => panic!("no row is kept at {position:?}"),
        }
    }

    /// The same, when the place is not needed any more.
    pub(super) fn into_row(self) -> KeptRow {
        match self.at {
            At::Row(row) => row,
            At::Position(position) => panic!("no row is kept at {position:?}"),
        }
    }

    /// The position.
    pub(super) fn position(&self) -> Position {
        match &self.at {
            At::Row(row) => Position::at(row.clustering()),
            At::Position(position) => (**position).clone(),
        }
    }

    fn compare(&self, other: &Place) -> Ordering {
        match (&self.at, &other.at) {
            (At::Row(row), At::Row(other)) => row.compare_to(&self.schema, other),
            (At::Row(row), At::Position(position)) => row.compare(&self.schema, position.as_view()),
            (At::Position(position), At::Row(row)) => row.compare(&self.schema, position.as_view()).reverse(),
            (At::Position(position), At::Position(other)) => self.schema.compare(position, other),
        }
    }
}

impl Ord for Place {
    #[inline]
    fn cmp(&self, other: &Place) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| self.compare(other))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Place {}
