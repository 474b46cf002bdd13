//! Tests of the collector: what Cassandra told of its files is collected from them again.

use model::time::EXPIRED_LIVENESS_TTL;
use model::{Bytes, Cell, Clustering, Column};
use runtime::{Cache, Shard, ShardOptions};

use super::*;
use crate::data::walk::{Item, Step, Walk};
use crate::parts::samples::{self, RealFile};
use crate::parts::statistics::{Statistics, Validation};
use crate::{OpenOptions, SSTable};

/// What is collected from a file, and what its writer told.
async fn collected(shard: &Shard, file: &RealFile) -> (Stats, Compaction, Statistics) {
    let options = OpenOptions::new(Cache::new(1 << 20));
    let sstable = SSTable::open(shard.disk(), &file.path, &options).await.unwrap();
    let mut collector = Collector::new(sstable.schema(), sstable.version());
    let mut walk = Walk::new(sstable.data().clone(), 0..sstable.data().file.len(), 1 << 20);
    let mut start = 0;
    loop {
        match walk.pop().unwrap() {
            Step::Fill => walk.fill().await.unwrap(),
            Step::End => break,
            Step::Item(item, place) => match item {
                Item::Head { key, deletion, static_row } => {
                    start = place.start;
                    collector.partition_start(&key, deletion);
                    static_row.iter().for_each(|row| collector.row(row, true));
                }
                Item::Row(row) => collector.row(&row, false),
                Item::Marker(marker) => {
                    collector.range_tombstone(&marker.position, marker.closes, marker.opens);
                }
                Item::End => collector.partition_end(place.end - start),
            },
        }
    }
    let (stats, compaction) = collector.finish();
    (stats, compaction, sstable.statistics().clone())
}

/// Statistics.db, from nothing but the data and what the data cannot tell: the schema, the numbers that the
/// writer took for its deltas, the commit log, the server, the chance of false positives and how well the
/// data was compressed. All that Cassandra wrote comes out as it wrote it, compacted files included.
#[test]
fn real_files_are_collected_again() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for file in samples::real_files("Statistics.db").iter().filter(|file| !file.is_scyllas()) {
            let name = file.path.display();
            let (found, compaction, told) = collected(&shard, file).await;
            let stats = Stats {
                commit_log_upper_bound: told.stats.commit_log_upper_bound,
                commit_log_lower_bound: told.stats.commit_log_lower_bound,
                commit_log_intervals: told.stats.commit_log_intervals.clone(),
                originating_host: told.stats.originating_host,
                compression_ratio: told.stats.compression_ratio,
                ..found
            };
            assert_eq!(stats, told.stats, "{name}");
            assert_eq!(compaction, told.compaction, "{name}");
            let validation = Validation::new(told.validation.partitioner, told.validation.filter_fp_chance);
            let statistics = Statistics { validation, compaction, stats, header: told.header };
            assert!(statistics.encode(file.version) == file.bytes, "{name}");
        }
    })
    .unwrap();
}

fn schema(value: CqlType) -> Schema {
    let column = Column { name: b"v"[..].into(), data_type: value };
    Schema::new(CqlType::Int, vec![CqlType::Int, CqlType::Int], vec![], vec![column])
}

fn ints(values: &[i32]) -> Clustering {
    values.iter().map(|value| value.to_be_bytes().to_vec()).collect()
}

fn row(clustering: &[i32], value: CellValue) -> Row {
    let cell =
        Cell { column: 0, ttl: 0, timestamp: 5, local_deletion_time: NO_DELETION_TIME, path: None, value };
    Row { cells: vec![cell], ..Row::new(ints(clustering)) }
}

fn value(bytes: &[u8]) -> CellValue {
    CellValue::Value(Bytes::from(bytes))
}

/// What is collected from one partition.
fn stats_of(version: Version, value: CqlType, fill: impl FnOnce(&mut Collector)) -> Stats {
    let mut collector = Collector::new(&schema(value), version);
    collector.partition_start(b"k", DeletionTime::LIVE);
    fill(&mut collector);
    collector.partition_end(10);
    collector.finish().0
}

#[test]
fn nothing_at_all() {
    for version in Version::ALL {
        let (stats, compaction) = Collector::new(&schema(CqlType::Int), version).finish();
        assert_eq!((stats.min_timestamp, stats.max_timestamp), (i64::MIN, i64::MAX));
        assert_eq!(stats.min_local_deletion_time, NO_DELETION_TIME);
        assert_eq!(stats.max_local_deletion_time, NO_DELETION_TIME);
        assert_eq!((stats.min_ttl, stats.max_ttl, stats.row_count, stats.cell_count), (0, 0, 0, 0));
        assert_eq!(stats.partition_sizes.count() + stats.cell_counts.count(), 0);
        assert_eq!((stats.first_key, stats.may_have_partition_deletions), (None, false));
        assert_eq!(compaction.estimated_partitions(), Some(0));
        let none = Slice { start: Position::end(), end: Position::start() };
        let expected = if version.has_improved_min_max() { none } else { Slice::all() };
        assert_eq!(stats.covered_clustering.slice, expected);
    }
}

#[test]
fn histograms_are_as_fine_as_the_versions() {
    let steps = Version::ALL.map(|version| {
        let (stats, _) = Collector::new(&schema(CqlType::Int), version).finish();
        (stats.partition_sizes.offsets.len(), stats.cell_counts.offsets.len())
    });
    assert_eq!(steps, [(150, 114), (150, 118), (150, 118), (150, 118), (150, 118), (155, 118)]);
}

/// Cassandra 3.11.3 looks at the columns one by one, later ones at whole clusterings.
#[test]
fn the_least_clustering_is_what_readers_take_it_for() {
    let slice_of = |version| {
        let mut collector = Collector::new(&schema(CqlType::Int), version);
        for rows in [[[1, 9], [2, 1]], [[1, 8], [1, 10]]] {
            collector.partition_start(b"k", DeletionTime::LIVE);
            rows.iter().for_each(|clustering| collector.row(&row(clustering, value(b"")), false));
            collector.partition_end(1);
        }
        collector.finish().0.covered_clustering.slice
    };
    let slice = |min: &[i32], max: &[i32]| Slice {
        start: Position::before(ints(min)),
        end: Position::after(ints(max)),
    };
    assert_eq!(slice_of(Version::Mc), slice(&[1, 1], &[2, 10]));
    for version in [Version::Md, Version::Me, Version::Na, Version::Nb, Version::Oa] {
        assert_eq!(slice_of(version), slice(&[1, 8], &[2, 1]));
    }
}

#[test]
fn range_tombstones_are_covered_with_their_sides() {
    let deletion = DeletionTime { marked_for_delete_at: 7, local_deletion_time: 100 };
    let stats_of = |version| {
        stats_of(version, CqlType::Int, |collector| {
            collector.range_tombstone(&Position::after(ints(&[1])), None, Some(deletion));
            collector.row(&row(&[2, 5], value(b"")), false);
            collector.range_tombstone(&Position::before(ints(&[3])), Some(deletion), None);
        })
    };
    let expected = Slice { start: Position::after(ints(&[1])), end: Position::before(ints(&[3])) };
    let stats = stats_of(Version::Oa);
    assert_eq!(stats.covered_clustering.slice, expected);
    assert_eq!((stats.min_timestamp, stats.max_timestamp), (5, 7));
    assert_eq!((stats.min_local_deletion_time, stats.max_local_deletion_time), (100, NO_DELETION_TIME));
    assert_eq!(stats.tombstone_drop_times.bins[..], [(120, 2)]);
    assert!(!stats.may_have_partition_deletions && stats_of(Version::Nb).may_have_partition_deletions);
    let expected = Slice { start: Position::before(ints(&[1])), end: Position::after(ints(&[3])) };
    assert_eq!(stats_of(Version::Nb).covered_clustering.slice, expected);
    // In mc, the second column is told only by rows.
    let expected = Slice { start: Position::before(ints(&[1, 5])), end: Position::after(ints(&[3, 5])) };
    assert_eq!(stats_of(Version::Mc).covered_clustering.slice, expected);
}

#[test]
fn what_counts_in_a_row() {
    let stats = stats_of(Version::Oa, CqlType::Int, |collector| {
        let mut expiring = row(&[1, 1], value(b"x"));
        expiring.liveness = Liveness { timestamp: 3, ttl: 60, local_expiration_time: 1_000 };
        expiring.cells.push(Cell { column: 1, timestamp: 9, ..expiring.cells[0].clone() });
        expiring.cells.push(expiring.cells[1].clone());
        expiring.complex_deletions =
            vec![(2, DeletionTime { marked_for_delete_at: 2, local_deletion_time: 900 })];
        collector.row(&expiring, false);
        collector.row(&Row::new(ints(&[1, 2])), false);
        collector.row(&Row::new(Clustering::empty()), true);
    });
    assert_eq!((stats.row_count, stats.cell_count), (1, 2), "two columns, of which one has two cells");
    assert_eq!((stats.min_timestamp, stats.max_timestamp), (2, 9));
    assert_eq!((stats.min_ttl, stats.max_ttl), (0, 60));
    assert_eq!((stats.min_local_deletion_time, stats.max_local_deletion_time), (900, NO_DELETION_TIME));
    assert_eq!(stats.cell_counts.buckets[2], 1, "three cells");
    assert_eq!(stats.partition_sizes.buckets[8], 1, "ten bytes");
    assert_eq!(stats.covered_clustering.slice.end, Position::after(ints(&[1, 2])));
    assert_eq!((stats.first_key.as_deref(), stats.last_key.as_deref()), (Some(&b"k"[..]), Some(&b"k"[..])));
    let dead = stats_of(Version::Oa, CqlType::Int, |collector| {
        let liveness = Liveness { timestamp: 3, ttl: EXPIRED_LIVENESS_TTL, local_expiration_time: 1_000 };
        collector.row(&Row { liveness, ..Row::new(ints(&[1, 1])) }, false);
    });
    assert_eq!((dead.min_ttl, dead.max_ttl), (EXPIRED_LIVENESS_TTL, EXPIRED_LIVENESS_TTL));
}

#[test]
fn shards_that_are_not_global_are_legacy() {
    let shard = [7; 32];
    let contexts =
        [(&[0, 1, 0x80, 0][..], false, "global"), (&[0, 1, 0, 0], true, "local"), (&[0, 0], true, "remote")];
    for (header, expected, kind) in contexts {
        let context = [header, &shard].concat();
        let of = |data_type| {
            stats_of(Version::Nb, data_type, |collector| {
                collector.row(&row(&[1, 1], CellValue::Tombstone), false);
                collector.row(&row(&[1, 2], value(&context)), false);
            })
        };
        assert_eq!(of(CqlType::Counter).has_legacy_counter_shards, expected, "{kind}");
        assert!(!of(CqlType::Blob).has_legacy_counter_shards, "{kind}");
    }
}
