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
            write: WriteOptions::new(version),
            gc_grace_seconds: 864_000,
            compaction: Compaction::default(),
            single_key_parallel_scan_threshold: 0.5,
            caches_rows: true,
            caches_indexes: true,
        }
    }

    /// Whether SSTables may also be written as `oa`, which holds later times than the version that was asked for.
    pub(crate) fn may_become_oa(&self) -> bool {
        self.write.family == Family::Cassandra && !self.version.has_uint_deletion_time()
    }

    /// The version for what an SSTable of another one has, of which nothing is looked at beforehand.
    pub(crate) fn version_like(&self, other: Version) -> Version {
        if self.may_become_oa() && other.has_uint_deletion_time() { other } else { self.version }
    }

    /// When a column of that name was dropped last, in microseconds.
    pub fn dropped_at(&self, name: &[u8]) -> Option<i64> {
        self.dropped.iter().filter(|column| *column.name == *name).map(|column| column.at).max()
    }
}
