//! The tables of a case: one, or one behind the other of which each has a few reads, so that those by which it adapts are a good part of all.
//!
//! They are opened before the reads that are measured, which go from table to table without waiting for each other.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use storage::Table;
use storage::single_key::SingleKeyStats;

use super::cases::Touched;

pub(super) struct Tables {
    /// How many reads each has.
    reads_of_each: u32,
    /// Each with its counters before the first read that counts.
    opened: RefCell<Vec<(Table, SingleKeyStats)>>,
    /// Which of them has the next read, and how many it has yet.
    at: Cell<usize>,
    left: Cell<u32>,
}

impl Tables {
    /// This one, for so many reads.
    pub(super) fn of(table: Table, reads_of_each: u32) -> Rc<Tables> {
        let (opened, at, left) = (RefCell::default(), Cell::new(0), Cell::new(reads_of_each));
        let tables = Tables { reads_of_each, opened, at, left };
        tables.add(table);
        Rc::new(tables)
    }

    /// Another one, behind the others.
    pub(super) fn add(&self, table: Table) {
        let before = table.single_key_stats();
        self.opened.borrow_mut().push((table, before));
    }

    /// Whether there are too few for so many reads.
    pub(super) fn are_few(&self, reads: u32) -> bool {
        let others = (self.opened.borrow().len() - 1 - self.at.get()) as u64;
        others * u64::from(self.reads_of_each) + u64::from(self.left.get()) < u64::from(reads)
    }

    /// The one that has the next read.
    ///
    /// # Panics
    /// If there [are few](Tables::are_few).
    pub(super) fn next(&self) -> Table {
        if self.left.get() == 0 {
            self.at.set(self.at.get() + 1);
            self.left.set(self.reads_of_each);
        }
        self.left.set(self.left.get() - 1);
        self.opened.borrow()[self.at.get()].0.clone()
    }

    /// Those that had all of their reads, which have ended, are let go. What these touched.
    pub(super) fn let_go(&self) -> Touched {
        touched(self.opened.borrow_mut().drain(..self.at.replace(0)))
    }

    /// What reads of all touched that are left.
    pub(super) fn touched(&self) -> Touched {
        touched(self.opened.borrow().iter().cloned())
    }
}

fn touched(tables: impl Iterator<Item = (Table, SingleKeyStats)>) -> Touched {
    tables.fold(Touched::default(), |mut sum, (table, before)| {
        sum += Touched::between(&before, &table.single_key_stats());
        sum
    })
}
