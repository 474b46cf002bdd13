//! What Statistics.db says of the file as a whole against what is in it.
//!
//! Readers leave files out by these bounds, so one that is too narrow hides data. Bounds that are too
//! wide are legal: compaction takes them over from its inputs.

use std::path::Path;

use model::time::{EXPIRED_LIVENESS_TTL, NO_DELETION_TIME};
use model::{Bytes, DeletionTime, Liveness, Position, Row, Schema};

use super::report::Report;
use crate::Version;
use crate::data::row::INVALID_DELETION_TIME;
use crate::parts::statistics::Statistics;

/// What Statistics.db says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told<'a> {
    pub(super) path: &'a Path,
    pub(super) version: Version,
    pub(super) statistics: &'a Statistics,
}

/// Least and greatest of everything that was found.
#[derive(Debug, Default)]
pub(super) struct Totals {
    timestamps: Bounds<i64>,
    local_deletion_times: Bounds<i64>,
    ttls: Bounds<u32>,
    clustering: Option<(Position, Position)>,
    keys: Option<(Bytes, Bytes)>,
    rows: u64,
    /// Columns with something in them, a collection counted once.
    columns: u64,
    partitions: u64,
    pub(super) has_partition_deletion: bool,
}

#[derive(Debug)]
struct Bounds<T>(Option<(T, T)>);

impl<T> Default for Bounds<T> {
    fn default() -> Bounds<T> {
        Bounds(None)
    }
}

impl<T: Ord + Copy> Bounds<T> {
    fn add(&mut self, value: T) {
        self.0 = Some(self.0.map_or((value, value), |(min, max)| (min.min(value), max.max(value))));
    }

    fn within(&self, min: T, max: T) -> bool {
        self.0.is_none_or(|(least, greatest)| min <= least && greatest <= max)
    }
}

impl Totals {
    pub(super) fn partition(&mut self, key: &Bytes, deletion: DeletionTime) {
        self.partitions += 1;
        self.has_partition_deletion |= !deletion.is_live();
        self.deletion(deletion);
        // Keys outlive the buffer they were read from, but only two of them.
        match &mut self.keys {
            Some((_, last)) => *last = key.clone(),
            None => self.keys = Some((key.detached(), key.clone())),
        }
    }

    /// A row with something in it, be it static.
    pub(super) fn row(&mut self, row: &Row) {
        self.rows += 1;
        self.liveness(&row.liveness);
        self.deletion(row.deletion);
        self.deletion(row.shadowable);
        row.complex_deletions.iter().for_each(|&(_, deletion)| self.deletion(deletion));
        let mut column = None;
        for cell in &row.cells {
            self.columns += u64::from(column.replace(cell.column) != Some(cell.column));
            self.timestamps.add(cell.timestamp);
            self.ttls.add(cell.ttl);
            self.local_deletion_time(cell.local_deletion_time);
        }
    }

    /// A row or range tombstone stands here.
    pub(super) fn position(&mut self, schema: &Schema, position: &Position) {
        let Some((least, greatest)) = &mut self.clustering else {
            self.clustering = Some((position.detached(), position.detached()));
            return;
        };
        if schema.compare(position, least).is_lt() {
            *least = position.detached();
        } else if schema.compare(position, greatest).is_gt() {
            *greatest = position.detached();
        }
    }

    pub(super) fn deletion(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.timestamps.add(deletion.marked_for_delete_at);
            self.local_deletion_time(deletion.local_deletion_time);
        }
    }

    fn liveness(&mut self, liveness: &Liveness) {
        if liveness.is_none() {
            return;
        }
        self.timestamps.add(liveness.timestamp);
        self.local_deletion_time(liveness.local_expiration_time);
        // That of a dead marker is no time to live.
        if liveness.ttl != EXPIRED_LIVENESS_TTL {
            self.ttls.add(liveness.ttl);
        }
    }

    fn local_deletion_time(&mut self, time: i64) {
        // One that cannot be has become what it is while it was decoded; and what never goes away does
        // not make a file one that does.
        if time != INVALID_DELETION_TIME && time != NO_DELETION_TIME {
            self.local_deletion_times.add(time);
        }
    }

    /// Compares all bounds, and where all of the data was read, all counts.
    pub(super) fn compare(&self, told: Told<'_>, all: bool, report: &mut Report) {
        let stats = &told.statistics.stats;
        let mut check = |holds: bool, what: &str| {
            if !holds {
                report.wrong_file(told.path, what);
            }
        };
        let (min, max) = (stats.min_timestamp, stats.max_timestamp);
        check(self.timestamps.within(min, max), "there are timestamps beyond the least or the greatest");
        check(
            self.ttls.within(stats.min_ttl, stats.max_ttl),
            "there are TTLs beyond the least or the greatest",
        );
        check(self.is_covered(told.statistics), "there are rows beyond the least or the greatest clustering");
        let flag = stats.may_have_partition_deletions || !self.has_partition_deletion;
        check(flag, "there are deleted partitions, though it says there are none");
        self.compare_deletion_times(&told, report);
        if all {
            self.compare_keys(&told, report);
            self.compare_counts(&told, report);
        }
    }

    fn compare_deletion_times(&self, told: &Told<'_>, report: &mut Report) {
        let stats = &told.statistics.stats;
        let (min, max) = (stats.min_local_deletion_time, stats.max_local_deletion_time);
        if self.local_deletion_times.within(min, max) {
            return;
        }
        let what = "there are local deletion times beyond the least or the greatest";
        if told.version.may_be_scyllas() && min == NO_DELETION_TIME {
            report.note(told.path, None, what);
        } else {
            report.wrong_file(told.path, what);
        }
    }

    fn compare_keys(&self, told: &Told<'_>, report: &mut Report) {
        let stats = &told.statistics.stats;
        let keys = self.keys.as_ref().zip(stats.first_key.as_ref().zip(stats.last_key.as_ref()));
        let Some(((first, last), (told_first, told_last))) = keys else { return };
        if **first != **told_first {
            report.wrong_file(told.path, "the first key is not that of the data");
        }
        if **last != **told_last {
            report.wrong_file(told.path, "the last key is not that of the data");
        }
    }

    /// Nothing is read by the counts: where their writer is known to count amiss, they make a note.
    fn compare_counts(&self, told: &Told<'_>, report: &mut Report) {
        let stats = &told.statistics.stats;
        let counts = [
            ("rows", stats.row_count, self.rows),
            ("cells", stats.cell_count, self.columns),
            ("sizes of partitions", stats.partition_sizes.count(), self.partitions),
            ("cell counts of partitions", stats.cell_counts.count(), self.partitions),
        ];
        for (of, counted, found) in counts.into_iter().filter(|(_, counted, found)| counted != found) {
            let what = format!("it counts {counted} {of}, there are {found}");
            if told.version.may_be_scyllas() {
                report.note(told.path, None, what);
            } else {
                report.wrong_file(told.path, what);
            }
        }
    }

    fn is_covered(&self, statistics: &Statistics) -> bool {
        let covered = &statistics.stats.covered_clustering;
        let schema = &statistics.header.schema;
        let Some((least, greatest)) = self.clustering.as_ref().filter(|_| covered.is_accurate) else {
            return true;
        };
        schema.compare(&covered.slice.start, least).is_le()
            && schema.compare(greatest, &covered.slice.end).is_le()
    }
}
