//! Rows in any order, put in order: what a memtable is, for lines that are to become an SSTable.
//!
//! [`SortedRows`] takes pieces of partitions as they come. Of a row that comes several times one is made, by the rules
//! of [`model::merge`]; nothing else is dropped, not even what a tombstone beside it deletes.
//!
//! Range tombstones are counted. Each one begins somewhere and ends somewhere; at a place, the greatest of those counts
//! that have begun more often than they have ended. So it does not matter in which order their ends come, nor which
//! end belongs to which start where several have the same deletion. Those that have not ended yet when the rows are
//! taken out stay behind.

use std::collections::VecDeque;
use std::collections::btree_map::{self, BTreeMap};
use std::convert::Infallible;
use std::fmt;
use std::rc::Rc;

use model::merge::RowMerger;
use model::time::NO_DELETION_TIME;
use model::{
    Cell, CellValue, DeletionTime, Fragment, FragmentReader, Liveness, Next, PartitionKey, PartitionStart,
    Row, Schema,
};

use crate::json_rows::{Part, Piece};

mod ranges;

use ranges::{End, Ends};

/// Rows of one table, in memory.
#[derive(Debug)]
pub struct SortedRows {
    schema: Rc<Schema>,
    partitions: BTreeMap<PartitionKey, Partition>,
    memory: usize,
    minima: Minima,
}

/// The least times of some rows, of what has one: what Cassandra takes as the base of the numbers in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Minima {
    /// Microseconds.
    pub timestamp: Option<i64>,
    /// Seconds: of what was deleted or expires.
    pub local_deletion_time: Option<i64>,
    /// Seconds: of what expires.
    pub ttl: Option<u32>,
}

/// A range tombstone that begins but does not end, or ends but does not begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unpaired {
    /// The line that tells it.
    pub line: u64,
}

impl fmt::Display for Unpaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this end of a range tombstone has no other end that goes with it")
    }
}

#[derive(Debug, Default)]
struct Partition {
    deletion: Option<DeletionTime>,
    /// Versions of the static row.
    statics: Vec<Row>,
    /// In the order in which they came.
    rows: Vec<Row>,
    ends: Ends,
}

/// The rows that were taken out, in order.
#[derive(Debug)]
pub struct Sorted {
    schema: Rc<Schema>,
    partitions: btree_map::IntoIter<PartitionKey, Partition>,
    merger: RowMerger,
    ready: VecDeque<Fragment>,
    minima: Minima,
}

impl SortedRows {
    /// No rows of this schema.
    pub fn new(schema: Rc<Schema>) -> SortedRows {
        SortedRows { schema, partitions: BTreeMap::new(), memory: 0, minima: Minima::default() }
    }

    /// Adds what a line says.
    pub fn insert(&mut self, piece: Piece) {
        let memory = &mut self.memory;
        let partition = self.partitions.entry(piece.key).or_insert_with_key(|key| {
            *memory += partition_memory(key);
            Partition::default()
        });
        match piece.part {
            Part::Partition(deletion) => {
                self.minima.deletion(&deletion);
                partition.deletion = partition.deletion.max(Some(deletion));
            }
            Part::Static(row) => {
                self.minima.row(&row);
                *memory += row_memory(&row) + push(&mut partition.statics, row);
            }
            Part::Row(row) => {
                self.minima.row(&row);
                *memory += row_memory(&row) + push(&mut partition.rows, row);
            }
            Part::Change { position, closes, opens } => {
                self.minima.deletion(&closes);
                self.minima.deletion(&opens);
                for (deletion, count) in [(opens, 1), (closes, -1)] {
                    if !deletion.is_live() {
                        let end = End { position: position.clone(), deletion, count, line: piece.line };
                        *memory += partition.ends.push(end);
                    }
                }
            }
            Part::Range { start, end, deletion } => {
                self.minima.deletion(&deletion);
                for (position, count) in [(start, 1), (end, -1)] {
                    *memory += partition.ends.push(End { position, deletion, count, line: piece.line });
                }
            }
        }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.partitions.is_empty()
    }

    /// Bytes of memory that the rows take, about.
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The least times of what is in it.
    pub fn minima(&self) -> Minima {
        self.minima
    }

    /// Takes the rows out. Range tombstones that are not whole yet stay.
    pub fn take(&mut self) -> Sorted {
        let mut partitions = std::mem::take(&mut self.partitions);
        let minima = std::mem::take(&mut self.minima);
        self.memory = 0;
        for (key, partition) in &mut partitions {
            let left = partition.ends.split_unpaired(&self.schema);
            if left.is_empty() {
                continue;
            }
            self.memory += partition_memory(key) + left.memory();
            left.deletions().for_each(|deletion| self.minima.deletion(&deletion));
            self.partitions.insert(key.clone(), Partition { ends: left, ..Partition::default() });
        }
        partitions.retain(|_, partition| !partition.is_nothing());
        let merger = RowMerger::new(self.schema.clone());
        let partitions = partitions.into_iter();
        Sorted { schema: self.schema.clone(), partitions, merger, ready: VecDeque::new(), minima }
    }

    /// Takes the last rows out.
    ///
    /// # Errors
    /// If a range tombstone is not whole.
    pub fn finish(mut self) -> Result<Sorted, Unpaired> {
        let sorted = self.take();
        self.unpaired().map_or(Ok(sorted), Err)
    }

    /// The first range tombstone that is not whole.
    pub fn unpaired(&self) -> Option<Unpaired> {
        let first_of = |partition: &Partition| partition.ends.first_unpaired(&self.schema);
        self.partitions.values().filter_map(first_of).min().map(|line| Unpaired { line })
    }
}

impl Sorted {
    /// Whether there are none left.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.partitions.len() == 0
    }

    /// The least times of the rows.
    pub fn minima(&self) -> Minima {
        self.minima
    }

    fn load(&mut self, key: PartitionKey, partition: Partition) {
        let deletion = partition.deletion.unwrap_or(DeletionTime::LIVE);
        self.ready.push_back(Fragment::PartitionStart(PartitionStart { key, deletion }));
        let statics = self.merge(partition.statics, true);
        self.ready.extend(statics.into_iter().map(Fragment::StaticRow));
        let rows = self.merge(partition.rows, false);
        let mut changes = partition.ends.into_changes(&self.schema).into_iter().peekable();
        for row in rows {
            while let Some(change) =
                changes.next_if(|change| self.schema.compare_row(&row.clustering, &change.position).is_gt())
            {
                self.ready.push_back(Fragment::RangeTombstone(change));
            }
            self.ready.push_back(Fragment::Row(row));
        }
        self.ready.extend(changes.map(Fragment::RangeTombstone));
        self.ready.push_back(Fragment::PartitionEnd);
    }

    /// The rows in order, one of each clustering.
    fn merge(&mut self, mut rows: Vec<Row>, is_static: bool) -> Vec<Row> {
        let order = |a: &Row, b: &Row| self.schema.compare_rows(&a.clustering, &b.clustering);
        if rows.is_sorted_by(|a, b| order(a, b).is_lt()) {
            return rows;
        }
        rows.sort_by(order);
        let mut merged = Vec::with_capacity(rows.len());
        let mut versions: Vec<Row> = Vec::new();
        for row in rows {
            if versions.last().is_some_and(|last| order(last, &row).is_ne()) {
                merged.extend(merge_versions(&mut self.merger, &mut versions, is_static));
            }
            versions.push(row);
        }
        merged.extend(merge_versions(&mut self.merger, &mut versions, is_static));
        merged
    }
}

impl FragmentReader for Sorted {
    type Error = Infallible;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next, Infallible> {
        if self.ready.is_empty() {
            match self.partitions.next() {
                Some((key, partition)) => self.load(key, partition),
                None => return Ok(Next::End),
            }
        }
        Ok(place.pop_from(&mut self.ready))
    }

    async fn fill(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// One row of all versions, which are at least one. A single one stays as it is.
fn merge_versions(merger: &mut RowMerger, versions: &mut Vec<Row>, is_static: bool) -> Option<Row> {
    match versions.len() {
        1 => versions.pop(),
        _ => merger.merge(versions, is_static, DeletionTime::LIVE),
    }
}

impl Partition {
    fn is_nothing(&self) -> bool {
        self.deletion.is_none() && self.statics.is_empty() && self.rows.is_empty() && self.ends.is_empty()
    }
}

impl Minima {
    /// Counts in what a row has.
    fn row(&mut self, row: &Row) {
        self.liveness(&row.liveness);
        self.deletion(&row.deletion);
        self.deletion(&row.shadowable);
        row.complex_deletions.iter().for_each(|(_, deletion)| self.deletion(deletion));
        for cell in &row.cells {
            self.timestamp(cell.timestamp);
            if cell.is_expiring() {
                self.expiry(cell.ttl, cell.local_deletion_time);
            } else if cell.local_deletion_time != NO_DELETION_TIME {
                self.local_deletion_time(cell.local_deletion_time);
            }
        }
    }

    fn liveness(&mut self, liveness: &Liveness) {
        if !liveness.is_none() {
            self.timestamp(liveness.timestamp);
        }
        if liveness.is_expiring() {
            self.expiry(liveness.ttl, liveness.local_expiration_time);
        }
    }

    fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.timestamp(deletion.marked_for_delete_at);
            self.local_deletion_time(deletion.local_deletion_time);
        }
    }

    fn timestamp(&mut self, timestamp: i64) {
        self.timestamp = Some(self.timestamp.map_or(timestamp, |least| least.min(timestamp)));
    }

    fn local_deletion_time(&mut self, time: i64) {
        self.local_deletion_time = Some(self.local_deletion_time.map_or(time, |least| least.min(time)));
    }

    fn expiry(&mut self, ttl: u32, end: i64) {
        self.ttl = Some(self.ttl.map_or(ttl, |least| least.min(ttl)));
        self.local_deletion_time(end);
    }
}

/// What the buffer of a value takes besides its bytes: counts, a vector, and what an allocator adds to both.
const BUFFER: usize = size_of::<[usize; 2]>() + size_of::<Vec<u8>>() + size_of::<[usize; 4]>();

fn partition_memory(key: &PartitionKey) -> usize {
    // The nodes of the tree are about two thirds full.
    (size_of::<PartitionKey>() + size_of::<Partition>()) * 3 / 2 + BUFFER + key.bytes.len()
}

/// Adds to a list, of which many have but one item; how many bytes the list has grown by.
fn push<T>(list: &mut Vec<T>, item: T) -> usize {
    let before = list.capacity();
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(item);
    (list.capacity() - before) * size_of::<T>()
}

/// What a row has besides itself: if it was read from a line, one buffer for all its values.
fn row_memory(row: &Row) -> usize {
    let values = row.clustering.values.iter().flatten().map(|value| value.len()).sum::<usize>();
    let cells = row.cells.iter().map(|cell| {
        let value = match &cell.value {
            CellValue::Value(value) => value.len(),
            CellValue::Tombstone => 0,
        };
        value + cell.path.as_ref().map_or(0, |path| path.len())
    });
    row.clustering.spilled_bytes()
        + row.complex_deletions.capacity() * size_of::<(u16, DeletionTime)>()
        + row.cells.capacity() * size_of::<Cell>()
        + values
        + cells.sum::<usize>()
        + BUFFER
}

#[cfg(test)]
mod tests;
