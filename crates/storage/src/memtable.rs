//! What has been written and is not in an SSTable yet: partitions and rows in order, in memory.
//!
//! A memtable belongs to one shard, so it is two levels of plain `BTreeMap`. Values point into the buffers of the
//! mutations they came with, which are counted whole and until the end: what a memtable takes is never counted too low.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use model::merge::RowMerger;
use model::{DeletionTime, Mutation, PartitionKey, Row, Schema, Token};
use sstable::parts::statistics::EncodingStats;

use crate::commit_log::LogPosition;

mod extremes;
mod place;
mod ranges;
mod reader;
mod touched;

pub use reader::MemtableReader;

use extremes::Extremes;
use place::Place;
use ranges::Ranges;

/// What a map takes for an entry beside the entry itself, about: its nodes are on average three quarters full.
const SPARE: usize = 4;

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
    static_row: Option<Row>,
    rows: BTreeMap<Place, Row>,
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

    /// Adds a write. `buffer` is how many bytes the values of the mutation keep alive, `position` where the commit log has
    /// it.
    pub fn apply(&self, mutation: Mutation, buffer: usize, position: LogPosition) {
        self.position.set(position.max(self.position.get()));
        debug_assert!(mutation.is_in_order(&self.schema), "mutations are in order");
        self.extremes.borrow_mut().add(&mutation);
        let mut partitions = self.partitions.borrow_mut();
        let mut bytes = self.bytes.get() + buffer;
        let partition = partitions.entry(mutation.key).or_insert_with(|| {
            bytes += (size_of::<PartitionKey>() + size_of::<Partition>()) * SPARE / (SPARE - 1);
            Partition::new()
        });
        partition.deletion = partition.deletion.max(mutation.deletion);
        let merger = &mut self.merger.borrow_mut();
        if let Some(row) = mutation.static_row {
            bytes += weight(&row);
            partition.add_static_row(row, merger);
        }
        for row in mutation.rows {
            bytes += weight(&row);
            partition.add_row(&self.schema, row, merger);
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
            rows: BTreeMap::new(),
            ranges: Ranges::default(),
        }
    }

    fn add_static_row(&mut self, row: Row, merger: &mut RowMerger) {
        let mut rows = self.static_row.take().into_iter().chain([row]).collect();
        self.static_row = merger.merge(&mut rows, true, self.deletion);
    }

    fn add_row(&mut self, schema: &Rc<Schema>, row: Row, merger: &mut RowMerger) {
        use std::collections::btree_map::Entry;
        match self.rows.entry(Place::of_row(schema, row.clustering.clone())) {
            Entry::Vacant(vacant) => {
                if let Some(row) = merger.merge_one(row, false, self.deletion) {
                    vacant.insert(row);
                }
            }
            Entry::Occupied(mut occupied) => {
                let clustering = row.clustering.clone();
                let before = std::mem::replace(occupied.get_mut(), Row::new(clustering));
                match merger.merge(&mut vec![before, row], false, self.deletion) {
                    Some(merged) => *occupied.get_mut() = merged,
                    None => drop(occupied.remove()),
                }
            }
        }
    }

    fn visible_static_row(&self, merger: &mut RowMerger) -> Option<Row> {
        let row = self.static_row.as_ref()?;
        reader::unshadowed(row, self.deletion, merger, true)
    }
}

/// Bytes that a row takes in its map, without the buffer its values are in.
fn weight(row: &Row) -> usize {
    let entry = (size_of::<Place>() + size_of::<Row>()) * SPARE / (SPARE - 1);
    let cells = row.cells.capacity() * size_of::<model::Cell>();
    let deletions = row.complex_deletions.capacity() * size_of::<(u16, DeletionTime)>();
    entry + cells + deletions + 2 * row.clustering.spilled_bytes()
}

#[cfg(test)]
mod tests;
