//! The least and the greatest of the times in a memtable.

use model::flat::{CellView, RowVisitor, StandingMutation};
use model::time::NO_DELETION_TIME;
use model::{DeletionTime, Liveness, Row};
use sstable::parts::statistics::EncodingStats;

/// The least and the greatest timestamp, and what else an SSTable is written relative to. It looks at rows where they stand.
#[derive(Clone, Debug, Default)]
pub(super) struct Extremes {
    timestamps: Option<(i64, i64)>,
    min_local_deletion_time: Option<i64>,
    min_ttl: Option<u32>,
}

impl Extremes {
    /// All of a mutation but its clustered rows.
    pub(super) fn add_others(&mut self, mutation: &StandingMutation) {
        self.deletion(mutation.deletion);
        mutation.range_tombstones.iter().for_each(|range| self.deletion(range.deletion));
        mutation.static_row.iter().for_each(|row| self.row(row));
    }

    /// Those of both.
    pub(super) fn join(&mut self, other: &Extremes) {
        let Extremes { timestamps, min_local_deletion_time, min_ttl } = *other;
        self.timestamps = match (self.timestamps, timestamps) {
            (Some((least, greatest)), Some((low, high))) => Some((least.min(low), greatest.max(high))),
            (own, others) => own.or(others),
        };
        self.min_local_deletion_time = lesser(self.min_local_deletion_time, min_local_deletion_time);
        self.min_ttl = lesser(self.min_ttl, min_ttl);
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
        self.liveness(row.liveness);
        for cell in &row.cells {
            self.times(cell.timestamp, cell.ttl, cell.local_deletion_time);
        }
    }

    #[inline]
    fn liveness(&mut self, Liveness { timestamp, ttl, local_expiration_time }: Liveness) {
        if (Liveness { timestamp, ttl, local_expiration_time }) != Liveness::NONE {
            self.times(timestamp, ttl, local_expiration_time);
        }
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        if !deletion.is_live() {
            self.times(deletion.marked_for_delete_at, 0, deletion.local_deletion_time);
        }
    }

    #[inline]
    fn times(&mut self, timestamp: i64, ttl: u32, local: i64) {
        let (least, greatest) = self.timestamps.unwrap_or((timestamp, timestamp));
        self.timestamps = Some((least.min(timestamp), greatest.max(timestamp)));
        if local != NO_DELETION_TIME {
            self.min_local_deletion_time = lesser(self.min_local_deletion_time, Some(local));
        }
        if ttl != 0 {
            self.min_ttl = lesser(self.min_ttl, Some(ttl));
        }
    }
}

impl<'a> RowVisitor<'a> for Extremes {
    #[inline]
    fn clustering_value(&mut self, _: Option<&'a [u8]>) {}

    #[inline]
    fn marker(&mut self, liveness: Liveness) {
        self.liveness(liveness);
    }

    fn deletions(&mut self, deletion: DeletionTime, shadowable: DeletionTime) {
        self.deletion(deletion);
        self.deletion(shadowable);
    }

    fn complex_deletions(&mut self, deletions: Vec<(u16, DeletionTime)>) {
        deletions.into_iter().for_each(|(_, deletion)| self.deletion(deletion));
    }

    #[inline]
    fn cells(&mut self, _: usize) {}

    #[inline]
    fn cell(&mut self, cell: CellView<'a>) {
        self.times(cell.timestamp, cell.ttl, cell.local_deletion_time);
    }
}

fn lesser<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
