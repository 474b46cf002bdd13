//! The least and the greatest of the times in a memtable.

use model::time::NO_DELETION_TIME;
use model::{DeletionTime, Liveness, Mutation, Row};
use sstable::parts::statistics::EncodingStats;

/// The least and the greatest timestamp, and what else an SSTable is written relative to.
#[derive(Debug, Default)]
pub(super) struct Extremes {
    timestamps: Option<(i64, i64)>,
    min_local_deletion_time: Option<i64>,
    min_ttl: Option<u32>,
}

impl Extremes {
    pub(super) fn add(&mut self, mutation: &Mutation) {
        self.deletion(mutation.deletion);
        mutation.range_tombstones.iter().for_each(|range| self.deletion(range.deletion));
        mutation.static_row.iter().chain(&mutation.rows).for_each(|row| self.row(row));
    }

    pub(super) fn timestamps(&self) -> Option<(i64, i64)> {
        self.timestamps
    }

    pub(super) fn encoding(&self) -> EncodingStats {
        EncodingStats {
            min_timestamp: self.timestamps.map_or(EncodingStats::NONE.min_timestamp, |(least, _)| least),
            min_local_deletion_time: self
                .min_local_deletion_time
                .unwrap_or(EncodingStats::NONE.min_local_deletion_time),
            min_ttl: self.min_ttl.map_or(EncodingStats::NONE.min_ttl, i64::from),
        }
    }

    fn row(&mut self, row: &Row) {
        self.deletion(row.deletion);
        self.deletion(row.shadowable);
        row.complex_deletions.iter().for_each(|(_, deletion)| self.deletion(*deletion));
        if row.liveness != Liveness::NONE {
            self.times(row.liveness.timestamp, row.liveness.ttl, row.liveness.local_expiration_time);
        }
        for cell in &row.cells {
            self.times(cell.timestamp, cell.ttl, cell.local_deletion_time);
        }
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.times(deletion.marked_for_delete_at, 0, deletion.local_deletion_time);
        }
    }

    fn times(&mut self, timestamp: i64, ttl: u32, local: i64) {
        let (least, greatest) = self.timestamps.unwrap_or((timestamp, timestamp));
        self.timestamps = Some((least.min(timestamp), greatest.max(timestamp)));
        if local != NO_DELETION_TIME {
            self.min_local_deletion_time =
                Some(self.min_local_deletion_time.map_or(local, |least| least.min(local)));
        }
        if ttl != 0 {
            self.min_ttl = Some(self.min_ttl.map_or(ttl, |least| least.min(ttl)));
        }
    }
}
