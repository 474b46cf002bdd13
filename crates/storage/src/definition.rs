//! What a table is: its columns, and how it wants its rows kept.

use std::rc::Rc;

use model::Schema;
use sstable::data::row::Family;
use sstable::{Version, WriteOptions};

use crate::commit_log::TableId;
use crate::compaction::Compaction;

/// A table.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// Its id, a UUID: it stays the same through all changes of the table.
    pub id: TableId,
    /// Its columns.
    pub schema: Rc<Schema>,
    /// Columns that it had once.
    pub dropped: Vec<DroppedColumn>,
    /// In which version its SSTables are written.
    pub version: Version,
    /// How its SSTables are written.
    pub write: WriteOptions,
    /// For how many seconds tombstones are kept. Cassandra's default is ten days.
    pub gc_grace_seconds: u32,
    /// How its SSTables are merged.
    pub compaction: Compaction,
    /// Up to which share of reads that find the newest SSTable not to be enough single rows are read newest first: 0 is
    /// never, 1 is always. Default 0.5.
    pub single_key_parallel_scan_threshold: f64,
    /// Whether rows that were read are kept in memory. Default true.
    pub caches_rows: bool,
    /// Whether what was read of indexes is kept in memory; of SSTables that are opened from then on. Default true.
    pub caches_indexes: bool,
}

/// A column that a table had once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DroppedColumn {
    /// Its name.
    pub name: Box<[u8]>,
    /// When it was dropped, in microseconds: what was written up to then is no more.
    pub at: i64,
}

impl Definition {
    /// A table of these columns, with the defaults of everything else.
    pub fn new(id: TableId, schema: &Rc<Schema>, version: Version) -> Definition {
        Definition {
            id,
            schema: schema.clone(),
            dropped: Vec::new(),
            version,
            write: WriteOptions { keeps_greater_deletion: true, ..WriteOptions::new(version) },
            gc_grace_seconds: 864_000,
            compaction: Compaction::default(),
            single_key_parallel_scan_threshold: 0.5,
            caches_rows: true,
            caches_indexes: true,
        }
    }

    /// The version of SSTables for what the one that was asked for cannot hold: `oa` has later times than those before, and those have negative timestamps
    /// of deletions. ScyllaDB reads neither.
    pub(crate) fn fallback(&self) -> Option<Version> {
        let fallback = if self.version.has_uint_deletion_time() { Version::Nb } else { Version::Oa };
        (self.write.family == Family::Cassandra).then_some(fallback)
    }

    /// The version for what an SSTable of another one has, of which nothing is looked at beforehand.
    pub(crate) fn version_like(&self, other: Version) -> Version {
        let has_later_times = other.has_uint_deletion_time() && !self.version.has_uint_deletion_time();
        if has_later_times && self.write.family == Family::Cassandra { other } else { self.version }
    }

    /// The version for all that an SSTable of another one may have, of those that are written for Cassandra.
    pub(crate) fn version_of_all(other: Version) -> Version {
        if other.has_uint_deletion_time() { Version::Oa } else { Version::Nb }
    }

    /// When a column of that name was dropped last, in microseconds.
    pub fn dropped_at(&self, name: &[u8]) -> Option<i64> {
        self.dropped.iter().filter(|column| *column.name == *name).map(|column| column.at).max()
    }
}
