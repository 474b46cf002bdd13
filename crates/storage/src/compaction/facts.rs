//! What is known of an SSTable, and of all of them at a time.

use std::collections::{BTreeMap, BTreeSet};

use model::Token;
use runtime::Disk;
use sstable::SSTable;
use sstable::component::{Component, Descriptor};
use sstable::parts::statistics::DropTimes;

use crate::Result;

/// Which SSTable of a folder: its version, and its number or its id. Two versions may have the same number.
pub type Generation = String;

/// What decides about an SSTable.
#[derive(Clone, PartialEq, Debug)]
pub struct SSTableFacts {
    /// Which one it is.
    pub generation: Generation,
    /// How large Data.db is on disk, in bytes.
    pub bytes_on_disk: u64,
    /// The level that Statistics.db names. That it has its place there is not certain.
    pub level: u32,
    /// The least timestamp, in microseconds since the epoch, or whatever unit the writers use.
    pub min_timestamp: i64,
    /// The greatest timestamp, in the same unit.
    pub max_timestamp: i64,
    /// When the first tombstone was made or the first cell expires, in seconds since the epoch.
    pub min_local_deletion_time: i64,
    /// When all of it is deleted or expired, in seconds since the epoch; [`model::time::NO_DELETION_TIME`] for never.
    pub max_local_deletion_time: i64,
    /// The token of the first partition.
    pub first_token: Token,
    /// The token of the last partition.
    pub last_token: Token,
    /// When its tombstones and expiring cells become droppable, save for the grace period.
    pub drop_times: DropTimes,
    /// About how many cells there are.
    pub cells: u64,
    /// About how many partitions there are.
    pub partitions: u64,
    /// When Data.db was written, in milliseconds since the epoch.
    pub written_at: i64,
    /// When it was repaired, in milliseconds since the epoch; 0 where it was not.
    pub repaired_at: i64,
    /// The repair that has not yet ended, as the bytes of a UUID.
    pub pending_repair: Option<[u8; 16]>,
}

impl SSTableFacts {
    /// The facts about an open SSTable.
    ///
    /// # Errors
    /// What the operating system says of when it was written.
    pub fn of(disk: &Disk, sstable: &SSTable) -> Result<SSTableFacts> {
        let stats = &sstable.statistics().stats;
        let written_at = disk.modified(&sstable.descriptor().path_of(&Component::Data))?;
        let token_of = |key: &[u8]| sstable.key(key.to_vec().into()).token;
        // As Cassandra counts: the mean is a whole number.
        let mean_cells = stats.cell_counts.mean().unwrap_or(0.0).ceil() as u64;
        Ok(SSTableFacts {
            generation: name_of(sstable.descriptor()),
            bytes_on_disk: sstable.data().file.file().len(),
            level: stats.level,
            min_timestamp: stats.min_timestamp,
            max_timestamp: stats.max_timestamp,
            min_local_deletion_time: stats.min_local_deletion_time,
            max_local_deletion_time: stats.max_local_deletion_time,
            first_token: token_of(sstable.first_key()),
            last_token: token_of(sstable.last_key()),
            drop_times: stats.tombstone_drop_times.clone(),
            cells: mean_cells.saturating_mul(stats.cell_counts.count()),
            partitions: stats.partition_sizes.count(),
            written_at: i64::try_from(written_at.as_millis()).unwrap_or(i64::MAX),
            repaired_at: stats.repaired_at,
            pending_repair: stats.pending_repair,
        })
    }

    /// Whether keys of both may lie between the same tokens.
    pub fn overlaps(&self, other: &SSTableFacts) -> bool {
        self.is_within(other.first_token, other.last_token)
    }

    /// Whether any of its tokens may be among these, both ends included.
    pub fn is_within(&self, first: Token, last: Token) -> bool {
        self.first_token <= last && first <= self.last_token
    }

    /// Which share of the cells could be dropped if all tombstones from before `gc_before`, in seconds since the epoch,
    /// were. An estimate; 0 without cells.
    pub fn droppable_ratio(&self, gc_before: i64) -> f64 {
        if self.cells == 0 { 0.0 } else { self.drop_times.sum_until(gc_before) / self.cells as f64 }
    }

    /// What orders SSTables by age: when they were written, and where that is the same, by their names.
    pub(super) fn age(&self) -> (i64, usize, &str) {
        (self.written_at, self.generation.len(), &self.generation)
    }

    /// Only SSTables of the same kind are merged.
    fn kind(&self) -> (Option<[u8; 16]>, bool) {
        (self.pending_repair, self.repaired_at != 0)
    }
}

fn name_of(descriptor: &Descriptor) -> Generation {
    format!("{}-{}", descriptor.version.name(), descriptor.generation)
}

/// All SSTables of a table at a time, and what else decides.
#[derive(Clone, Debug)]
pub struct View<'a> {
    /// Those that may be merged with each other.
    pub facts: Vec<&'a SSTableFacts>,
    /// All of the table.
    pub all: &'a [SSTableFacts],
    /// Those that somebody is at work on.
    pub compacting: &'a BTreeSet<Generation>,
    /// Seconds since the epoch.
    pub now: i64,
    /// Tombstones made before this second may go: `now` less the table's `gc_grace_seconds`.
    pub gc_before: i64,
    /// The least timestamp in the memtables, in the unit of those of SSTables; `None` where they are empty.
    pub memtable_min_timestamp: Option<i64>,
}

impl<'a> View<'a> {
    /// The view of these SSTables at `now`, in seconds since the epoch, with the table's `gc_grace_seconds` and the least
    /// timestamp of all its memtables, those too that are being flushed; `None` where they are empty. What is said of
    /// the memtables must be of the same time as the SSTables: what is in neither may be forgotten.
    pub fn new(
        all: &'a [SSTableFacts],
        compacting: &'a BTreeSet<Generation>,
        now: i64,
        gc_grace_seconds: u32,
        memtable_min_timestamp: Option<i64>,
    ) -> View<'a> {
        let (facts, gc_before) = (all.iter().collect(), now - i64::from(gc_grace_seconds));
        View { facts, all, compacting, now, gc_before, memtable_min_timestamp }
    }

    /// Those that nobody is at work on, in the order of their age.
    pub fn free(&self) -> impl Iterator<Item = &'a SSTableFacts> {
        let mut free: Vec<_> =
            self.facts.iter().filter(|sstable| !self.is_compacting(sstable)).copied().collect();
        free.sort_by(|a, b| a.age().cmp(&b.age()));
        free.into_iter()
    }

    /// Whether somebody is at work on it.
    pub fn is_compacting(&self, sstable: &SSTableFacts) -> bool {
        self.compacting.contains(&sstable.generation)
    }

    /// The same for each kind of SSTables alone.
    pub(super) fn groups(&self) -> Vec<View<'a>> {
        let mut groups: BTreeMap<_, Vec<&SSTableFacts>> = BTreeMap::new();
        for sstable in &self.facts {
            groups.entry(sstable.kind()).or_default().push(sstable);
        }
        groups.into_values().map(|facts| View { facts, ..self.clone() }).collect()
    }
}

/// How large they are together, in bytes on disk.
pub(super) fn total_bytes<'a>(sstables: impl IntoIterator<Item = &'a SSTableFacts>) -> u64 {
    sstables.into_iter().map(|sstable| sstable.bytes_on_disk).sum()
}

/// Which ones they are.
pub(super) fn generations(sstables: &[&SSTableFacts]) -> Vec<Generation> {
    sstables.iter().map(|sstable| sstable.generation.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use model::time::NO_DELETION_TIME;
    use model::{
        Bytes, Cell, CellValue, Column, CqlType, DeletionTime, Fragment, Liveness, PartitionKey,
        PartitionStart, Row, Schema,
    };
    use runtime::{Cache, SimOptions, run_simulated};
    use sstable::component::Descriptor;
    use sstable::parts::statistics::EncodingStats;
    use sstable::{OpenOptions, SSTableWriter, Version, WriteOptions};

    use super::*;

    /// A partition with a marker, an expiring cell and a tombstone, of three timestamps.
    fn partition(key: PartitionKey) -> [Fragment; 3] {
        let cell = |column, timestamp, ttl, local_deletion_time, value| Cell {
            column,
            ttl,
            timestamp,
            local_deletion_time,
            path: None,
            value,
        };
        let row = Row {
            liveness: Liveness { timestamp: 5, ..Liveness::NONE },
            cells: vec![
                cell(0, 7, 60, 1060, CellValue::Value(Bytes::default())),
                cell(1, 3, 0, 400, CellValue::Tombstone),
            ],
            ..Row::new([vec![0; 4]].into_iter().collect())
        };
        let start = PartitionStart { key, deletion: DeletionTime::LIVE };
        [Fragment::PartitionStart(start), Fragment::Row(row), Fragment::PartitionEnd]
    }

    #[test]
    fn facts_are_those_of_the_file() {
        let column = |name: &[u8]| Column { name: name.into(), data_type: CqlType::Blob };
        let regulars = vec![column(b"a"), column(b"b")];
        let schema = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), regulars).into();
        let of = Descriptor { dir: "/t".into(), version: Version::Nb, generation: "7".into() };
        let mut keys: Vec<PartitionKey> =
            (0..4i32).map(|key| PartitionKey::new(Bytes::from(key.to_be_bytes().to_vec()))).collect();
        keys.sort();
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk();
            disk.create_dir_all(Path::new("/t")).await.unwrap();
            let options = WriteOptions::new(Version::Nb);
            let stats = EncodingStats::NONE;
            let mut writer = SSTableWriter::create(disk, of.clone(), &schema, stats, options).await.unwrap();
            for fragment in keys.iter().flat_map(|key| partition(key.clone())) {
                writer.push(&fragment).await.unwrap();
            }
            writer.seal().await.unwrap();
            let path = of.path_of(&Component::Data);
            let table = SSTable::open(disk, &path, &OpenOptions::new(Cache::new(0))).await.unwrap();
            let facts = SSTableFacts::of(disk, &table).unwrap();
            let expected = SSTableFacts {
                generation: "nb-7".into(),
                bytes_on_disk: disk.open(&path, runtime::IoClass::default()).await.unwrap().len(),
                level: 0,
                min_timestamp: 3,
                max_timestamp: 7,
                min_local_deletion_time: 400,
                max_local_deletion_time: NO_DELETION_TIME,
                first_token: keys[0].token,
                last_token: keys[3].token,
                drop_times: facts.drop_times.clone(),
                cells: 8,
                partitions: 4,
                written_at: shard.clock().now_seconds() * 1000,
                repaired_at: 0,
                pending_repair: None,
            };
            assert_eq!(facts, expected);
            assert_eq!([300, 2000].map(|time| facts.droppable_ratio(time)), [0.0, 1.0]);
        })
        .unwrap();
    }
}
