//! A table as plain as can be, for others to be compared with: slow, and obviously right.
//!
//! Nothing is merged. What is deleted up to when is kept beside the cells, and each question looks at all of it:
//!
//! ```text
//! partition   deleted up to, ranges that are deleted, static row, rows
//! row         deleted up to, markers, collections deleted up to, cells of each column and path
//! ```
//!
//! It shares neither the merge nor the reading of live rows with the rest of the house.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::clustering::compare_positions;
use model::merge::Direction;
use model::time::{NO_DELETION_TIME, NO_TIMESTAMP};
use model::types::counter::CounterContext;
use model::{
    Cell, CellValue, Clustering, CqlType, DeletionTime, Liveness, Mutation, PartitionKey, Position,
    RangeTombstone, Row, Schema, Slice,
};

use crate::selected::{Selected, values};

/// A table.
#[derive(Clone, Debug)]
pub struct Oracle {
    schema: Schema,
    partitions: BTreeMap<PartitionKey, Partition>,
}

#[derive(Clone, Debug, Default)]
struct Partition {
    deletions: Vec<DeletionTime>,
    ranges: Vec<RangeTombstone>,
    static_row: Versions,
    /// In order.
    rows: Vec<(Clustering, Versions)>,
}

/// All that was written to a row.
#[derive(Clone, Debug, Default)]
struct Versions {
    deletions: Vec<DeletionTime>,
    markers: Vec<Liveness>,
    complex_deletions: Vec<(u16, DeletionTime)>,
    cells: BTreeMap<(u16, Option<Vec<u8>>), Vec<Cell>>,
}

impl Oracle {
    /// A table with nothing in it.
    pub fn new(schema: &Schema) -> Oracle {
        Oracle { schema: schema.clone(), partitions: BTreeMap::new() }
    }

    /// Adds a write. The order in which they come does not matter.
    ///
    /// # Panics
    /// If a row has a shadowable deletion, which tables do not.
    pub fn apply(&mut self, mutation: &Mutation) {
        let partition = self.partitions.entry(mutation.key.clone()).or_default();
        if !mutation.deletion.is_live() {
            partition.deletions.push(mutation.deletion);
        }
        partition.ranges.extend_from_slice(&mutation.range_tombstones);
        if let Some(row) = &mutation.static_row {
            partition.static_row.add(row);
        }
        for row in &mutation.rows {
            partition.row(&self.schema, &row.clustering).add(row);
        }
    }

    /// The partitions that were ever written to.
    pub fn keys(&self) -> impl Iterator<Item = &PartitionKey> {
        self.partitions.keys()
    }

    /// What `SELECT *` gives at `now`, in seconds.
    pub fn rows(&self, now: i64) -> Vec<Selected> {
        let all = |key| self.slice(key, &Slice::all(), Direction::Forward, now);
        self.partitions.keys().flat_map(all).collect()
    }

    /// What a `SELECT` of some rows of a partition gives. One of all rows gives the static row by itself where there is
    /// no other.
    pub fn slice(&self, key: &PartitionKey, slice: &Slice, way: Direction, now: i64) -> Vec<Selected> {
        let Some(partition) = self.partitions.get(key) else { return Vec::new() };
        let statics =
            partition.static_row.live(&self.schema, true, partition.deleted(None, &self.schema), now);
        let row = |clustering: Option<&Clustering>, live: &Live| Selected {
            key: key.clone(),
            clustering: clustering.cloned(),
            statics: values(&self.schema.statics, &statics.cells),
            regulars: values(&self.schema.regulars, &live.cells),
        };
        let mut selected = Vec::new();
        for (clustering, versions) in &partition.rows {
            let is_in = self.schema.compare_row(clustering, &slice.start).is_ge()
                && self.schema.compare_row(clustering, &slice.end).is_le();
            let deleted = partition.deleted(Some(clustering), &self.schema);
            let live = versions.live(&self.schema, false, deleted, now);
            if is_in && live.exists() {
                selected.push(row(Some(clustering), &live));
            }
        }
        if way == Direction::Reverse {
            selected.reverse();
        }
        if selected.is_empty() && slice.is_all() && statics.exists() {
            selected.push(row(None, &Live::default()));
        }
        selected
    }
}

impl Partition {
    fn row(&mut self, schema: &Schema, clustering: &Clustering) -> &mut Versions {
        let at = self.rows.binary_search_by(|(known, _)| schema.compare_rows(known, clustering));
        let at = at.unwrap_or_else(|at| {
            self.rows.insert(at, (clustering.clone(), Versions::default()));
            at
        });
        &mut self.rows[at].1
    }

    /// Up to which timestamp everything is deleted in a row by what is around it; ranges leave the static row alone.
    fn deleted(&self, row: Option<&Clustering>, schema: &Schema) -> i64 {
        let mut deletions = self.deletions.clone();
        if let Some(row) = row {
            let at = Position::at(row.clone());
            let compare =
                |a: &Position, b: &Position| compare_positions(&schema.clustering, a.as_view(), b.as_view());
            let covers = |range: &&RangeTombstone| {
                compare(&range.start, &at).is_lt() && compare(&at, &range.end).is_lt()
            };
            deletions.extend(self.ranges.iter().filter(covers).map(|range| range.deletion));
        }
        last_of(&deletions)
    }
}

/// What is live of a row.
#[derive(Debug, Default)]
struct Live {
    has_marker: bool,
    /// In the order of a row's.
    cells: Vec<Cell>,
}

impl Live {
    fn exists(&self) -> bool {
        self.has_marker || !self.cells.is_empty()
    }
}

impl Versions {
    fn add(&mut self, row: &Row) {
        assert!(row.shadowable.is_live(), "rows of tables have no shadowable deletion");
        if !row.deletion.is_live() {
            self.deletions.push(row.deletion);
        }
        if !row.liveness.is_none() {
            self.markers.push(row.liveness);
        }
        self.complex_deletions.extend_from_slice(&row.complex_deletions);
        for cell in &row.cells {
            let path = cell.path.as_ref().map(|path| path.to_vec());
            self.cells.entry((cell.column, path)).or_default().push(cell.clone());
        }
    }

    fn live(&self, schema: &Schema, is_static: bool, around: i64, now: i64) -> Live {
        let deleted = around.max(last_of(&self.deletions));
        let markers = self.markers.iter().filter(|marker| marker.timestamp > deleted);
        let marker = markers.max_by(|a, b| compare_markers(a, b));
        let columns = schema.columns(is_static);
        let mut cells: Vec<Cell> = Vec::new();
        for ((column, _), versions) in &self.cells {
            let of = &columns[usize::from(*column)].data_type;
            let deleted = deleted.max(self.column_deleted(*column));
            let versions = versions.iter().filter(|cell| cell.timestamp > deleted);
            cells.extend(winner(of, versions.cloned().collect()).filter(|cell| is_live(cell, now)));
        }
        cells.sort_by(|a, b| compare_places(&columns[usize::from(a.column)].data_type, a, b));
        let has_marker = marker.is_some_and(|marker| marker.ttl == 0 || marker.local_expiration_time > now);
        Live { has_marker, cells }
    }

    fn column_deleted(&self, column: u16) -> i64 {
        let own = self.complex_deletions.iter().filter(|(of, _)| *of == column);
        last_of(&own.map(|(_, deletion)| *deletion).collect::<Vec<_>>())
    }
}

/// All up to this timestamp is deleted.
fn last_of(deletions: &[DeletionTime]) -> i64 {
    deletions.iter().map(|deletion| deletion.marked_for_delete_at).max().unwrap_or(NO_TIMESTAMP)
}

fn is_live(cell: &Cell, now: i64) -> bool {
    matches!(cell.value, CellValue::Value(_)) && (cell.ttl == 0 || cell.local_deletion_time > now)
}

/// The order of columns, and of the paths of one.
fn compare_places(of: &CqlType, a: &Cell, b: &Cell) -> Ordering {
    let paths = || match (of.cell_path_type(), &a.path, &b.path) {
        (Some(order), Some(a), Some(b)) => order.compare(a, b),
        _ => Ordering::Equal,
    };
    a.column.cmp(&b.column).then_with(paths)
}

/// Of two markers the greater one counts.
fn compare_markers(a: &Liveness, b: &Liveness) -> Ordering {
    let by_times = a.timestamp.cmp(&b.timestamp).then((a.ttl != 0).cmp(&(b.ttl != 0)));
    by_times.then(a.local_expiration_time.cmp(&b.local_expiration_time)).then(b.ttl.cmp(&a.ttl))
}

/// What remains of all cells of one place, none of which is deleted.
fn winner(of: &CqlType, versions: Vec<Cell>) -> Option<Cell> {
    match of.is_counter() {
        true => counted(versions),
        false => versions.into_iter().max_by(compare_cells),
    }
}

fn compare_cells(a: &Cell, b: &Cell) -> Ordering {
    let by_times = a.timestamp.cmp(&b.timestamp).then_with(|| mortality(a).cmp(&mortality(b)));
    let by_expiry = by_times.then_with(|| a.local_deletion_time.cmp(&b.local_deletion_time));
    by_expiry.then(b.ttl.cmp(&a.ttl)).then_with(|| bytes_of(a).cmp(bytes_of(b)))
}

/// What is dead wins over what dies, and that over what does not.
fn mortality(cell: &Cell) -> u8 {
    match cell.value {
        CellValue::Tombstone => 2,
        CellValue::Value(_) if cell.local_deletion_time != NO_DELETION_TIME => 1,
        CellValue::Value(_) => 0,
    }
}

fn bytes_of(cell: &Cell) -> &[u8] {
    match &cell.value {
        CellValue::Value(value) => value,
        CellValue::Tombstone => &[],
    }
}

/// The last state of a counter that one node counts: its shard of the latest clock. A tombstone ends it for good.
fn counted(versions: Vec<Cell>) -> Option<Cell> {
    if versions.iter().any(Cell::is_tombstone) {
        return None;
    }
    let clock = |cell: &Cell| {
        let context = CounterContext::parse(bytes_of(cell)).expect("the writer's contexts are well formed");
        context.shards().map(|shard| shard.clock).max()
    };
    versions.into_iter().max_by_key(clock)
}
