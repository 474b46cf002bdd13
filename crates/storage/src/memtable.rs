//! What has been written and is not in an SSTable yet: partitions and rows in order, in memory.
//!
//! A memtable belongs to one shard, so it is a plain `BTreeMap` of partitions, each with its rows in a sorted list (`sorted.rs`). Rows stay in the flat bytes of the
//! mutations they came with, which are what the commit log has too; beside them a row takes its place in the list. What is written again or comes
//! with deletions is decoded and merged; its values stay where they came. Buffers are counted whole and until the end: what a
//! memtable takes is never counted too low.
//!
//! ```text
//! flat mutation   … row row row row …
//!                   ▲       ▲
//! rows            rank ∙  rank ∙        ascending
//! ```

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use model::flat::StandingRow;
use model::merge::RowMerger;
use model::{DeletionTime, PartitionKey, Position, Row, Schema, Token};
use sstable::parts::statistics::EncodingStats;

use crate::commit_log::LogPosition;
use crate::sorted::{self, Sorted};

mod checked;
mod extremes;
mod kept;
mod newer;
mod place;
mod ranges;
mod reader;
mod touched;

pub use checked::Checked;
pub use reader::MemtableReader;

use extremes::Extremes;
use kept::{KeptRow, weight};
use ranges::Ranges;

/// Entries that a node of a map has room for.
const NODE: usize = 11;

/// Entries that a node has where they came in ascending order; otherwise it has more.
const FILLED: usize = 6;

/// Bytes of an entry in the list of rows, which may have room for as many again, and what a run of them takes beside.
const ENTRY: usize = 2 * (size_of::<u64>() + size_of::<KeptRow>()) + 8;

/// Bytes of a partition in the map of partitions.
const PARTITION: usize = (size_of::<PartitionKey>() + size_of::<Partition>()) * NODE / FILLED + TOKEN;

/// Bytes of a token in the set of tokens, which may be half empty, and has a byte for each place.
const TOKEN: usize = 2 * (size_of::<Token>() + 1);

/// Bytes of a change in the map of ranges, the place of which is apart.
const CHANGE: usize = (size_of::<place::Place>() + size_of::<DeletionTime>()) * NODE / FILLED
    + size_of::<Position>()
    + OWNER / 4;

/// What a buffer takes beside its bytes: its owner, and what an allocator adds.
const OWNER: usize = 64;

/// Rows of one table.
#[derive(Debug)]
pub struct Memtable {
    schema: Rc<Schema>,
    is_of_counters: bool,
    partitions: RefCell<BTreeMap<PartitionKey, Partition>>,
    /// Those of the partitions: most reads are of others, and need no search among keys.
    tokens: RefCell<HashSet<Token, BuildHasherDefault<TokenHasher>>>,
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
    /// By [`Schema::rank`] of their places.
    rows: Sorted<KeptRow>,
    ranges: Ranges,
}

/// Tokens are hashes.
#[derive(Default)]
struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn write_i64(&mut self, token: Token) {
        self.0 = token as u64;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only tokens are hashed");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Memtable {
    /// An empty one.
    pub fn new(schema: &Rc<Schema>) -> Memtable {
        Memtable {
            schema: schema.clone(),
            is_of_counters: schema.is_counter(),
            partitions: RefCell::default(),
            tokens: RefCell::default(),
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
        let token = mutation.key.token;
        let partition = partitions.entry(mutation.key).or_insert_with(|| {
            bytes += PARTITION;
            self.tokens.borrow_mut().insert(token);
            Partition::new()
        });
        partition.deletion = partition.deletion.max(mutation.deletion);
        let merger = &mut self.merger.borrow_mut();
        if let Some(row) = mutation.static_row {
            bytes += weight(&row);
            partition.add_static_row(row, merger);
        }
        for (row, rank) in mutation.rows.into_iter().zip(mutation.ranks) {
            bytes += partition.add_row(self, row, rank, merger);
        }
        let changes = partition.ranges.len();
        mutation.range_tombstones.iter().for_each(|range| partition.ranges.add(&self.schema, range));
        let new_changes = partition.ranges.len().saturating_sub(changes);
        bytes += new_changes * CHANGE;
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

    /// Whether it has something of the partition with this token, or of another with the same.
    #[inline]
    pub fn has(&self, token: Token) -> bool {
        self.tokens.borrow().contains(&token)
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
            rows: Sorted::default(),
            ranges: Ranges::default(),
        }
    }

    fn add_static_row(&mut self, row: Row, merger: &mut RowMerger) {
        let before = self.static_row.take().map(|row| *row);
        let merged = merger.merge(&mut before.into_iter().chain([row]).collect(), true, self.deletion);
        self.static_row = merged.map(Box::new);
    }

    /// How many bytes of memory that takes, without the buffer of the row.
    fn add_row(&mut self, of: &Memtable, row: StandingRow, rank: u64, merger: &mut RowMerger) -> usize {
        let is_whole = row.is_plain() && self.deletion.is_live();
        let row = KeptRow::Standing(row);
        let schema = &of.schema;
        if is_whole && self.rows.ends_before(rank, |last| last.compare_to(schema, &row).is_lt()) {
            self.rows.push(rank, row);
            return ENTRY;
        }
        let place = self.rows.partition_point(rank, |other| other.compare_to(schema, &row).is_lt());
        let is_there = |other: &KeptRow| other.compare_to(schema, &row).is_eq();
        if self.rows.rank(place) == Some(rank) && self.rows.get(place).is_some_and(is_there) {
            return self.replace_row(of, place, row, merger);
        }
        let row = if is_whole { Some(row) } else { KeptRow::merged([row], merger, self.deletion) };
        row.map_or(0, |row| {
            let weight = row.weight();
            self.rows.insert(place, rank, row);
            ENTRY + weight
        })
    }

    /// Puts what becomes of an older version of a row with this one into its place. How many bytes that takes more than the older one.
    fn replace_row(
        &mut self,
        of: &Memtable,
        place: sorted::Place,
        row: KeptRow,
        merger: &mut RowMerger,
    ) -> usize {
        let kept = self.rows.get_mut(place).expect("it was seen there");
        // Nobody else has a share of it then, and it need not be copied.
        let before = std::mem::replace(kept, row.clone());
        if !of.is_of_counters && self.deletion.is_live() && row.voids(&before) {
            return 0;
        }
        let weight = before.weight();
        let Some(merged) = KeptRow::merged([before, row], merger, self.deletion) else {
            self.rows.remove(place);
            return 0;
        };
        let more = merged.weight().saturating_sub(weight);
        *kept = merged;
        more
    }

    /// Where the first row is that does not stand before a position.
    fn place_of(&self, schema: &Schema, position: &Position) -> sorted::Place {
        let rank = schema.rank(position);
        self.rows.partition_point(rank, |row| row.compare(schema, position.as_view()).is_lt())
    }

    /// The row with this clustering key.
    fn row_at(&self, schema: &Schema, position: &Position) -> Option<&KeptRow> {
        let row = self.rows.get(self.place_of(schema, position))?;
        row.compare(schema, position.as_view()).is_eq().then_some(row)
    }

    fn visible_static_row(&self, merger: &mut RowMerger) -> Option<Row> {
        let row = self.static_row.as_deref()?.clone();
        reader::unshadowed(row, self.deletion, merger, true)
    }
}

#[cfg(test)]
mod tests;
