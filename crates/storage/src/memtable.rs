//! What has been written and is not in an SSTable yet: partitions and rows in order, in memory.
//!
//! A memtable belongs to one shard, so it is two levels of plain `BTreeMap`. Rows stay in the flat bytes of the mutations they
//! came with, which are what the commit log has too; beside them a row takes its entry in a map. Only what is written again or
//! deleted is decoded, merged, and encoded anew. Buffers are counted whole and until the end: what a memtable takes is never
//! counted too low.
//!
//! ```text
//! flat mutation   … row row row row …
//!                   ▲       ▲
//! rows            rank ∙  rank ∙        ascending
//! ```

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::flat::StandingRow;
use model::merge::RowMerger;
use model::{DeletionTime, PartitionKey, Row, Schema, Token};
use sstable::parts::statistics::EncodingStats;

use crate::commit_log::LogPosition;

mod checked;
mod extremes;
mod newer;
mod place;
mod ranges;
mod reader;
mod touched;

pub use checked::Checked;
pub use reader::MemtableReader;

use extremes::Extremes;
use place::Place;
use ranges::Ranges;

/// What a map takes for an entry beside the entry itself, about: its nodes are on average three quarters full.
const SPARE: usize = 4;

/// Entries that the smallest node of a map has room for: what the one row of a partition takes.
const NODE: usize = 11;

/// Bytes of an entry in the map of rows.
const ENTRY: usize = size_of::<Place>() * SPARE / (SPARE - 1);

/// What a buffer takes beside its bytes: its owner, and what an allocator adds.
const OWNER: usize = 64;

/// Rows of one table.
#[derive(Debug)]
pub struct Memtable {
    schema: Rc<Schema>,
    partitions: RefCell<BTreeMap<PartitionKey, Partition>>,
    merger: RefCell<RowMerger>,
    extremes: RefCell<Extremes>,
    bytes: Cell<usize>,
    position: Cell<LogPosition>,
}

#[derive(Debug)]
struct Partition {
    deletion: DeletionTime,
    /// Few tables have static columns.
    static_row: Option<Box<Row>>,
    /// Places of rows, which have the rows with them.
    rows: BTreeSet<Place>,
    ranges: Ranges,
}

impl Memtable {
    /// An empty one.
    pub fn new(schema: &Rc<Schema>) -> Memtable {
        Memtable {
            schema: schema.clone(),
            partitions: RefCell::default(),
            merger: RefCell::new(RowMerger::new(schema.clone())),
            extremes: RefCell::default(),
            bytes: Cell::new(0),
            position: Cell::default(),
        }
    }

    /// The columns of its rows.
    pub fn schema(&self) -> &Rc<Schema> {
        &self.schema
    }

    /// Adds a write; `position` is where the commit log has it.
    pub fn apply(&self, checked: Checked, position: LogPosition) {
        let Checked { mutation, times, buffer } = checked;
        self.position.set(position.max(self.position.get()));
        self.extremes.borrow_mut().join(&times);
        let mut partitions = self.partitions.borrow_mut();
        let mut bytes = self.bytes.get() + buffer + OWNER;
        let partition = partitions.entry(mutation.key).or_insert_with(|| {
            bytes += (size_of::<PartitionKey>() + size_of::<Partition>()) * SPARE / (SPARE - 1);
            bytes += NODE * size_of::<Place>();
            Partition::new()
        });
        partition.deletion = partition.deletion.max(mutation.deletion);
        let merger = &mut self.merger.borrow_mut();
        if let Some(row) = mutation.static_row {
            bytes += weight(&row);
            partition.add_static_row(row, merger);
        }
        for row in mutation.rows {
            bytes += ENTRY + partition.add_row(&self.schema, row, merger);
        }
        let changes = partition.ranges.len();
        mutation.range_tombstones.iter().for_each(|range| partition.ranges.add(&self.schema, range));
        let new_changes = partition.ranges.len().saturating_sub(changes);
        bytes += new_changes * (size_of::<Place>() + size_of::<DeletionTime>()) * SPARE / (SPARE - 1);
        self.bytes.set(bytes);
    }

    /// Bytes of memory that it takes, about, and rather too many than too few.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Up to where it has what the commit log has of the table.
    pub fn position(&self) -> LogPosition {
        self.position.get()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.partitions.borrow().is_empty()
    }

    /// How many partitions it has.
    pub fn partitions(&self) -> usize {
        self.partitions.borrow().len()
    }

    /// Whether it has something of a partition.
    pub fn has(&self, key: &PartitionKey) -> bool {
        self.partitions.borrow().contains_key(key)
    }

    /// The least and the greatest timestamp of all that was written; `None` if nothing has one.
    pub fn timestamps(&self) -> Option<(i64, i64)> {
        self.extremes.borrow().timestamps()
    }

    /// What an SSTable of it is written relative to.
    pub fn encoding(&self) -> EncodingStats {
        self.extremes.borrow().encoding()
    }

    /// The keys of its partitions, in order.
    pub fn keys(&self) -> Vec<PartitionKey> {
        self.partitions.borrow().keys().cloned().collect()
    }

    /// Their tokens, ascending.
    pub fn tokens(&self) -> Vec<Token> {
        self.partitions.borrow().keys().map(|key| key.token).collect()
    }
}

impl Partition {
    fn new() -> Partition {
        Partition {
            deletion: DeletionTime::LIVE,
            static_row: None,
            rows: BTreeSet::new(),
            ranges: Ranges::default(),
        }
    }

    fn add_static_row(&mut self, row: Row, merger: &mut RowMerger) {
        let before = self.static_row.take().map(|row| *row);
        let merged = merger.merge(&mut before.into_iter().chain([row]).collect(), true, self.deletion);
        self.static_row = merged.map(Box::new);
    }

    /// Bytes of the buffer that was made for it.
    fn add_row(&mut self, schema: &Rc<Schema>, row: StandingRow, merger: &mut RowMerger) -> usize {
        let is_whole = row.is_plain() && self.deletion.is_live();
        let place = Place::of_row(schema, row);
        let before = self.rows.replace(place.clone());
        let is_void = |before: &Place| !schema.is_counter() && newer::is_void(before.row(), place.row());
        if is_whole && before.as_ref().is_none_or(is_void) {
            return 0;
        }
        let versions = before.iter().chain([&place]).map(|place| place.row().to_row());
        let merged = merger.merge(&mut versions.collect(), false, self.deletion);
        let merged = merged.map(|row| StandingRow::of(&row));
        let bytes = merged.as_ref().map_or(0, |row| row.size() + OWNER);
        match merged {
            Some(row) => drop(self.rows.replace(Place::of_row(schema, row))),
            None => drop(self.rows.remove(&place)),
        }
        bytes
    }

    fn visible_static_row(&self, merger: &mut RowMerger) -> Option<Row> {
        let row = self.static_row.as_deref()?.clone();
        reader::unshadowed(row, self.deletion, merger, true)
    }
}

/// Bytes that a static row takes beside its partition, without the buffer its values are in.
fn weight(row: &Row) -> usize {
    let cells = row.cells.capacity() * size_of::<model::Cell>();
    size_of::<Row>() + cells + row.complex_deletions.capacity() * size_of::<(u16, DeletionTime)>()
}

#[cfg(test)]
mod tests;
