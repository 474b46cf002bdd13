//! Of the columns of a table those that occur: others are not in the header of a file, as Cassandra writes it, and so
//! cost nothing in each row.

use std::borrow::Cow;
use std::rc::Rc;

use model::{Column, Fragment, FragmentReader, Next, Row, Schema};

use crate::json_rows::Part;
use crate::sorted_rows::{Minima, Sorted};

/// Which columns occur in some rows.
#[derive(Debug)]
pub(super) struct Occurring {
    statics: Vec<bool>,
    regulars: Vec<bool>,
    has_static_row: bool,
}

/// Sorted rows with the columns that occur in them, and a count of them.
#[derive(Debug)]
pub(super) struct Narrowed {
    sorted: Sorted,
    schema: Rc<Schema>,
    statics: Places,
    regulars: Places,
    rows: u64,
}

/// The new place of each column that occurs.
#[derive(Debug)]
struct Places {
    places: Vec<u16>,
    is_identity: bool,
}

impl Occurring {
    /// No columns of this schema.
    pub(super) fn none(schema: &Schema) -> Occurring {
        let none = |columns: &[Column]| vec![false; columns.len()];
        let (statics, regulars) = (none(&schema.statics), none(&schema.regulars));
        Occurring { statics, regulars, has_static_row: false }
    }

    /// Counts in what a line has.
    pub(super) fn count(&mut self, part: &Part) {
        let (row, columns) = match part {
            Part::Static(row) => (row, &mut self.statics),
            Part::Row(row) => (row, &mut self.regulars),
            Part::Partition(_) | Part::Change { .. } | Part::Range { .. } => return,
        };
        let deleted = row.complex_deletions.iter().map(|(column, _)| *column);
        deleted.chain(row.cells.iter().map(|cell| cell.column)).for_each(|column| {
            columns[usize::from(column)] = true;
        });
        self.has_static_row |= matches!(part, Part::Static(_));
    }

    /// The static columns: one at least where there are static rows, as a file without has none.
    fn statics(&self) -> Cow<'_, [bool]> {
        match self.has_static_row && !self.statics.contains(&true) {
            true => Cow::Owned((0..self.statics.len()).map(|column| column == 0).collect()),
            false => Cow::Borrowed(&self.statics),
        }
    }
}

impl Narrowed {
    /// Rows of a schema in which only these columns occur.
    pub(super) fn new(sorted: Sorted, schema: &Schema, occurring: &Occurring) -> Narrowed {
        let (statics, regulars) =
            (kept(&schema.statics, &occurring.statics()), kept(&schema.regulars, &occurring.regulars));
        let narrow = Schema::new(schema.partition_key.clone(), schema.clustering.clone(), statics, regulars);
        Narrowed {
            sorted,
            schema: Rc::new(narrow),
            statics: Places::of(&occurring.statics()),
            regulars: Places::of(&occurring.regulars),
            rows: 0,
        }
    }

    /// The columns.
    pub(super) fn schema(&self) -> &Rc<Schema> {
        &self.schema
    }

    /// The least times of the rows.
    pub(super) fn minima(&self) -> Minima {
        self.sorted.minima()
    }

    /// Whether there is nothing to read.
    pub(super) fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// How many rows have been read, static ones not counted.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    fn narrow(&mut self, fragment: &mut Fragment) {
        match fragment {
            Fragment::StaticRow(row) => self.statics.apply(row),
            Fragment::Row(row) => {
                self.rows += 1;
                self.regulars.apply(row);
            }
            Fragment::PartitionStart(_) | Fragment::RangeTombstone(_) | Fragment::PartitionEnd => {}
        }
    }
}

impl FragmentReader for Narrowed {
    type Error = sstable::Error;

    fn pop(&mut self, place: &mut Fragment) -> sstable::Result<Next> {
        let Ok(next) = self.sorted.pop(place);
        if next == Next::Fragment {
            self.narrow(place);
        }
        Ok(next)
    }

    async fn fill(&mut self) -> sstable::Result<()> {
        let Ok(()) = self.sorted.fill().await;
        Ok(())
    }
}

impl Places {
    fn of(occurring: &[bool]) -> Places {
        let mut next = 0;
        let places = occurring.iter().map(|&occurs| {
            let place = next;
            next += u16::from(occurs);
            place
        });
        Places { places: places.collect(), is_identity: occurring.iter().all(|&occurs| occurs) }
    }

    fn apply(&self, row: &mut Row) {
        if self.is_identity {
            return;
        }
        row.complex_deletions.iter_mut().for_each(|(column, _)| *column = self.places[usize::from(*column)]);
        row.cells.iter_mut().for_each(|cell| cell.column = self.places[usize::from(cell.column)]);
    }
}

fn kept(columns: &[Column], occurring: &[bool]) -> Vec<Column> {
    columns.iter().zip(occurring).filter(|(_, occurs)| **occurs).map(|(column, _)| column.clone()).collect()
}
