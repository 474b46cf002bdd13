//! Least and greatest of everything, collected while an SSTable is written.
//!
//! What counts, and as what, is Cassandra's habit:
//!
//! | of | timestamp | local deletion time | TTL | cells |
//! |---|---|---|---|---|
//! | a row marker | its own | when it expires; [`NO_DELETION_TIME`] where it does not | its own, be it 0 | |
//! | a cell | its own | when it expires or was deleted; [`NO_DELETION_TIME`] where neither | its own, be it 0 | 1 |
//! | a deletion of anything | its own | its own | | |
//!
//! A row has as many columns as it has cells in different ones; those with a deletion only do not count.
//! Local deletion times that come make up the drop times too.

use model::time::NO_DELETION_TIME;
use model::types::counter::{CounterContext, ShardKind};
use model::{CellValue, CqlType, DeletionTime, Liveness, Position, PositionBuf, Row, Schema, Slice, Weight};

use super::{
    CardinalityBuilder, CommitLogPosition, Compaction, CoveredClustering, DropTimesBuilder, Histogram, Stats,
};
use crate::Version;
use crate::data::row::Value;

/// Collects what Statistics.db tells of a new SSTable. It must be shown all that is written, in its order.
///
/// A row costs no allocation, whatever is in it; a partition costs one hash.
#[derive(Clone, Debug)]
pub struct Collector {
    version: Version,
    is_counter: bool,
    timestamps: Bounds<i64>,
    local_deletion_times: Bounds<i64>,
    ttls: Bounds<u32>,
    drop_times: DropTimesBuilder,
    partition_sizes: Tally,
    cell_counts: Tally,
    cells_of_partition: u64,
    columns: u64,
    rows: u64,
    covered: Covered,
    has_legacy_counter_shards: bool,
    has_partition_deletion: bool,
    /// The first key and the last one.
    keys: Option<(Box<[u8]>, Vec<u8>)>,
    cardinality: CardinalityBuilder,
}

impl Collector {
    /// For a file of that version.
    pub fn new(schema: &Schema, version: Version) -> Collector {
        Collector {
            version,
            is_counter: schema.is_counter(),
            timestamps: Bounds::new(i64::MAX, i64::MIN),
            local_deletion_times: Bounds::new(i64::MAX, i64::MIN),
            ttls: Bounds::new(u32::MAX, u32::MIN),
            drop_times: DropTimesBuilder::new(version),
            partition_sizes: Tally::new(version.partition_size_steps()),
            cell_counts: Tally::new(version.cell_count_steps()),
            cells_of_partition: 0,
            columns: 0,
            rows: 0,
            covered: Covered::new(&schema.clustering, version),
            has_legacy_counter_shards: false,
            has_partition_deletion: false,
            keys: None,
            cardinality: CardinalityBuilder::default(),
        }
    }

    /// A partition begins.
    pub fn partition_start(&mut self, key: &[u8], deletion: DeletionTime) {
        self.cardinality.add(key);
        let (_, last) = self.keys.get_or_insert_with(|| (key.into(), Vec::new()));
        replace(last, key);
        self.has_partition_deletion |= !deletion.is_live();
        self.deletion(deletion);
    }

    /// The next row of the partition, or its static one. An empty row counts for nothing but its place.
    pub fn row(&mut self, row: &Row, is_static: bool) {
        if !is_static {
            self.covered.add(row.clustering.views(), Weight::At);
        }
        if row.is_empty() {
            return;
        }
        self.rows += 1;
        self.liveness(&row.liveness);
        self.deletion(row.deletion);
        self.deletion(row.shadowable);
        row.complex_deletions.iter().for_each(|&(_, deletion)| self.deletion(deletion));
        self.cells(row);
    }

    /// The next row of the partition, which is a [usual](model::flat::is_usual) one with this timestamp and so many cells. Where the
    /// last of several in a row stands is [told](Collector::last_usual_row) before anything else is.
    #[inline]
    pub(crate) fn usual_row(&mut self, clustering: &[Value<'_>], timestamp: i64, cells: usize) {
        debug_assert!(!self.is_counter, "what counters have is looked at");
        self.covered.add_one_of_several(clustering);
        self.rows += 1;
        self.columns += cells as u64;
        self.cells_of_partition += cells as u64;
        self.liveness(&Liveness { timestamp, ..Liveness::NONE });
    }

    /// The usual row that came last stands here.
    pub(crate) fn last_usual_row(&mut self, position: &PositionBuf) {
        self.covered.end_several(position);
    }

    /// The next end or start of a range tombstone, or both.
    pub fn range_tombstone(
        &mut self,
        position: &Position,
        closes: Option<DeletionTime>,
        opens: Option<DeletionTime>,
    ) {
        self.covered.add(position.prefix.views(), position.weight);
        closes.into_iter().chain(opens).for_each(|deletion| self.deletion(deletion));
    }

    /// The partition ends. It takes that many bytes of Data.db, uncompressed, its end included.
    pub fn partition_end(&mut self, size_in_bytes: u64) {
        self.partition_sizes.add(size_in_bytes);
        self.cell_counts.add(std::mem::take(&mut self.cells_of_partition));
        self.covered.end_partition();
    }

    /// Whether no partition was deleted as a whole, though the version does not tell that, as something else was, or expires; of
    /// tables and versions for which it matters, as the place of rows is told.
    pub fn denies_deletions_untold(&self) -> bool {
        let (least, _) = self.local_deletion_times.or((NO_DELETION_TIME, NO_DELETION_TIME));
        let is_told = self.version.has_partition_deletion_flag() || least == NO_DELETION_TIME;
        let matters = self.version.has_accurate_min_max() && !self.covered.types.is_empty();
        matters && !is_told && !self.has_partition_deletion
    }

    /// What there was. Nothing is known of compression, the commit log, levels and repairs: what the fields
    /// of these say is that there were none.
    pub fn finish(self) -> (Stats, Compaction) {
        let (min_timestamp, max_timestamp) = self.timestamps.or((i64::MIN, i64::MAX));
        let (min_local_deletion_time, max_local_deletion_time) =
            self.local_deletion_times.or((NO_DELETION_TIME, NO_DELETION_TIME));
        let (min_ttl, max_ttl) = self.ttls.or((0, 0));
        let keys = self.keys.filter(|_| self.version.has_key_range());
        let (first_key, last_key) = keys.map(|(first, last)| (first, last.into_boxed_slice())).unzip();
        let stats = Stats {
            partition_sizes: self.partition_sizes.histogram,
            cell_counts: self.cell_counts.histogram,
            commit_log_upper_bound: CommitLogPosition::NONE,
            min_timestamp,
            max_timestamp,
            min_local_deletion_time,
            max_local_deletion_time,
            min_ttl,
            max_ttl,
            compression_ratio: Stats::NOT_COMPRESSED,
            tombstone_drop_times: self.drop_times.finish(),
            level: 0,
            repaired_at: 0,
            covered_clustering: CoveredClustering {
                slice: self.covered.slice(),
                is_accurate: self.version.has_accurate_min_max(),
            },
            has_legacy_counter_shards: self.has_legacy_counter_shards,
            cell_count: self.columns,
            row_count: self.rows,
            commit_log_lower_bound: CommitLogPosition::NONE,
            commit_log_intervals: Vec::new(),
            pending_repair: None,
            is_transient: false,
            originating_host: None,
            may_have_partition_deletions: match self.version.has_partition_deletion_flag() {
                true => self.has_partition_deletion,
                false => min_local_deletion_time != NO_DELETION_TIME,
            },
            first_key,
            last_key,
            token_space_coverage: None,
        };
        (stats, self.cardinality.finish())
    }

    #[inline]
    fn cells(&mut self, row: &Row) {
        self.cells_of_partition += row.cells.len() as u64;
        let mut column = None;
        for cell in &row.cells {
            self.columns += u64::from(column.replace(cell.column) != Some(cell.column));
            self.timestamps.add(cell.timestamp);
            self.ttls.add(cell.ttl);
            self.local_deletion_time(cell.local_deletion_time);
            if self.is_counter
                && let CellValue::Value(value) = &cell.value
            {
                self.has_legacy_counter_shards |= has_legacy_shards(value);
            }
        }
    }

    fn liveness(&mut self, liveness: &Liveness) {
        if !liveness.is_none() {
            self.timestamps.add(liveness.timestamp);
            self.ttls.add(liveness.ttl);
            self.local_deletion_time(liveness.local_expiration_time);
        }
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.timestamps.add(deletion.marked_for_delete_at);
            self.local_deletion_time(deletion.local_deletion_time);
        }
    }

    #[inline]
    fn local_deletion_time(&mut self, time: i64) {
        self.local_deletion_times.add(time);
        if time != NO_DELETION_TIME {
            self.drop_times.add(time);
        }
    }
}

/// Shards from before Cassandra 2.1 are all that are not global.
fn has_legacy_shards(context: &[u8]) -> bool {
    let shards = CounterContext::parse(context).ok();
    shards.is_some_and(|context| context.shards().any(|shard| shard.kind != ShardKind::Global))
}

/// The least and the greatest of numbers.
///
/// Invariant: the least is above the greatest as long as there were none.
#[derive(Clone, Copy, Debug)]
struct Bounds<T> {
    min: T,
    max: T,
}

impl<T: Ord + Copy> Bounds<T> {
    fn new(greatest: T, least: T) -> Bounds<T> {
        Bounds { min: greatest, max: least }
    }

    #[inline]
    fn add(&mut self, value: T) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Both, or `none` where there were no numbers.
    fn or(self, none: (T, T)) -> (T, T) {
        if self.min > self.max { none } else { (self.min, self.max) }
    }
}

/// Counts sizes that often are like the one before.
#[derive(Clone, Debug)]
struct Tally {
    histogram: Histogram,
    /// The bucket of the size before, and the sizes that it counts: those above the first, up to the second.
    last: (usize, u64, u64),
}

impl Tally {
    fn new(steps: usize) -> Tally {
        Tally { histogram: Histogram::with_steps(steps), last: (0, 0, 0) }
    }

    #[inline]
    fn add(&mut self, size: u64) {
        let (bucket, above, up_to) = self.last;
        if above < size && size <= up_to {
            self.histogram.buckets[bucket] += 1;
        } else {
            self.add_elsewhere(size);
        }
    }

    fn add_elsewhere(&mut self, size: u64) {
        let bucket = self.histogram.add(size);
        let offset = |at: Option<usize>| at.and_then(|at| self.histogram.offsets.get(at));
        let (above, up_to) = (offset(bucket.checked_sub(1)), offset(Some(bucket)));
        self.last = (bucket, above.copied().unwrap_or(0), up_to.copied().unwrap_or(u64::MAX));
    }
}

/// Between which clusterings everything is.
#[derive(Clone, Debug)]
struct Covered {
    types: Vec<CqlType>,
    extent: Extent,
}

/// What the version calls least and greatest.
#[derive(Clone, Debug)]
enum Extent {
    /// The positions themselves.
    Positions(Box<Positions>),
    /// The least and the greatest value of each column for itself. Those who read `mc` take them for that,
    /// and leave a file out where a slice has no value of a later column between them.
    Values(Vec<Option<(Vec<u8>, Vec<u8>)>>),
}

impl Covered {
    fn new(types: &[CqlType], version: Version) -> Covered {
        let extent = match version.has_accurate_min_max() {
            true => Extent::Positions(Box::new(Positions::new(version.has_improved_min_max()))),
            false => Extent::Values(vec![None; types.len()]),
        };
        Covered { types: types.to_vec(), extent }
    }

    #[inline]
    fn add<'v>(&mut self, prefix: impl Iterator<Item = Option<&'v [u8]>> + Clone, weight: Weight) {
        match &mut self.extent {
            Extent::Positions(positions) => positions.add(prefix, weight),
            Extent::Values(bounds) => add_values(bounds, prefix, &self.types),
        }
    }

    /// The same of the place of a row, unless only that of the last one matters.
    #[inline]
    fn add_one_of_several(&mut self, row: &[Value<'_>]) {
        match &mut self.extent {
            Extent::Positions(positions) if positions.has_any => {}
            _ => self.add(row.iter().copied(), Weight::At),
        }
    }

    fn end_several(&mut self, last: &PositionBuf) {
        if let Extent::Positions(positions) = &mut self.extent {
            positions.last.set_to(last);
        }
    }

    fn end_partition(&mut self) {
        if let Extent::Positions(positions) = &mut self.extent {
            positions.end_partition(&self.types);
        }
    }

    fn slice(self) -> Slice {
        match self.extent {
            Extent::Positions(positions) => positions.slice(),
            Extent::Values(bounds) => {
                let (min, max): (Vec<_>, Vec<_>) = bounds.into_iter().map_while(|bounds| bounds).unzip();
                Slice {
                    start: Position::before(min.into_iter().collect()),
                    end: Position::after(max.into_iter().collect()),
                }
            }
        }
    }
}

fn add_values<'v>(
    bounds: &mut [Option<(Vec<u8>, Vec<u8>)>],
    prefix: impl Iterator<Item = Option<&'v [u8]>>,
    types: &[CqlType],
) {
    let values = prefix.zip(bounds).zip(types);
    for ((value, bounds), data_type) in values {
        let Some(value) = value else { continue };
        let (min, max) = bounds.get_or_insert_with(|| (value.to_vec(), value.to_vec()));
        if data_type.compare(value, min).is_lt() {
            replace(min, value);
        }
        if data_type.compare(value, max).is_gt() {
            replace(max, value);
        }
    }
}

/// The least and the greatest position. Within a partition positions ascend, so that only its first one
/// and its last one are compared with others.
#[derive(Clone, Debug)]
struct Positions {
    /// Those of all partitions that are over.
    of_all: Option<(Position, Position)>,
    /// Those of this partition, if there are any yet.
    first: PositionBuf,
    last: PositionBuf,
    has_any: bool,
    /// Whether the version tells on which side of its prefix a position is.
    has_sides: bool,
}

impl Positions {
    fn new(has_sides: bool) -> Positions {
        Positions {
            of_all: None,
            first: PositionBuf::start(),
            last: PositionBuf::start(),
            has_any: false,
            has_sides,
        }
    }

    #[inline]
    fn add<'v>(&mut self, prefix: impl Iterator<Item = Option<&'v [u8]>> + Clone, weight: Weight) {
        if !self.has_any {
            self.has_any = true;
            self.first.set(prefix.clone(), weight);
        }
        self.last.set(prefix, weight);
    }

    fn end_partition(&mut self, types: &[CqlType]) {
        if !std::mem::take(&mut self.has_any) {
            return;
        }
        let Some((least, greatest)) = &mut self.of_all else {
            self.of_all = Some((self.first.to_position(), self.last.to_position()));
            return;
        };
        if self.first.compare(types, least.prefix.views(), least.weight).is_lt() {
            *least = self.first.to_position();
        }
        if self.last.compare(types, greatest.prefix.views(), greatest.weight).is_gt() {
            *greatest = self.last.to_position();
        }
    }

    fn slice(self) -> Slice {
        match self.of_all {
            // No slice has anything of a file without rows, not even that of all rows.
            None if self.has_sides => Slice { start: Position::end(), end: Position::start() },
            None => Slice::all(),
            Some((least, greatest)) if self.has_sides => {
                let is_exclusive = (least.weight == Weight::After, greatest.weight == Weight::Before);
                Slice {
                    start: if is_exclusive.0 { least } else { Position::before(least.prefix) },
                    end: if is_exclusive.1 { greatest } else { Position::after(greatest.prefix) },
                }
            }
            Some((least, greatest)) => {
                let told = |position: Position| position.prefix.values.into_iter().map_while(|value| value);
                Slice {
                    start: Position::before(told(least).collect()),
                    end: Position::after(told(greatest).collect()),
                }
            }
        }
    }
}

/// The same bytes in a buffer that is there already.
fn replace(buffer: &mut Vec<u8>, bytes: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(bytes);
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
