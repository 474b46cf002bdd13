//! Pages of the bloom filter change what of it is read, and nothing else.
//!
//! An SSTable of many partitions is written on a simulated disk and read with its pages, without them, with damaged ones,
//! with those of another SSTable, and with caches that keep nothing: all find the same partitions. No key that is there is
//! ever absent.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::key::murmur3;
use model::{
    Bytes, Clustering, CqlType, DeletionTime, Fragment, FragmentReader, Liveness, PartitionKey,
    PartitionStart, Row, Schema, Slice,
};
use runtime::{Cache, Disk, Shard, SimOptions, run_simulated};
use siltstone_sstable::component::{Component, Descriptor, FILTER_IO};
use siltstone_sstable::parts::bloom_pages::Probe;
use siltstone_sstable::parts::statistics::{EncodingStats, Partitioner};
use siltstone_sstable::parts::usage::Usage;
use siltstone_sstable::verify::{Findings, verify};
use siltstone_sstable::{OpenOptions, ReadOptions, SSTable, SSTableWriter, Version, WriteOptions};

/// Partitions of an SSTable: its filter has a few pages.
const PARTITIONS: u32 = 12_000;
const PAGE: usize = 4096;

fn run<T: Send>(test: impl AsyncFnOnce(Shard) -> T + Send) -> T {
    let options = SimOptions { seed: 5, short_read_chance: 0.05, ..SimOptions::default() };
    run_simulated(options, async |shard: Shard| {
        shard.disk().create_dir_all(Path::new("/t/.i")).await.unwrap();
        test(shard).await
    })
    .unwrap()
}

fn key(number: u32) -> PartitionKey {
    PartitionKey::new(Bytes::from(&number.to_be_bytes()[..]))
}

/// Writes an SSTable of the partitions with these numbers, each of a row; its Data.db.
async fn write(disk: &Disk, generation: u32, numbers: Range<u32>, options: WriteOptions) -> PathBuf {
    let schema = Rc::new(Schema::new(CqlType::Int, vec![], vec![], vec![]));
    let generation = generation.to_string();
    let descriptor = Descriptor { dir: "/t".into(), version: Version::Nb, generation };
    let encoding = EncodingStats { min_timestamp: 1, ..EncodingStats::NONE };
    let mut writer =
        SSTableWriter::create(disk, descriptor.clone(), &schema, encoding, options).await.unwrap();
    let mut keys: Vec<_> = numbers.map(key).collect();
    keys.sort();
    let liveness = Liveness { timestamp: 1, ..Liveness::NONE };
    for key in keys {
        let row = Row { liveness, ..Row::new(Clustering::empty()) };
        let start = PartitionStart { key, deletion: DeletionTime::LIVE };
        for fragment in [Fragment::PartitionStart(start), Fragment::Row(row), Fragment::PartitionEnd] {
            writer.push(&fragment).await.unwrap();
        }
    }
    writer.seal().await.unwrap();
    descriptor.path_of(&Component::Data)
}

fn with_pages() -> WriteOptions {
    WriteOptions { compression: None, ..WriteOptions::new(Version::Nb) }
}

async fn open(disk: &Disk, data: &Path, cache: usize, bloom_pages: bool) -> Rc<SSTable> {
    let options = OpenOptions { bloom_pages, ..OpenOptions::new(Cache::new(cache)) };
    SSTable::open(disk, data, &options).await.unwrap()
}

/// Which of these partitions have rows.
async fn found(table: &Rc<SSTable>, numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut found = Vec::new();
    for number in numbers {
        let reader = table.read(&key(number), &Slice::all(), ReadOptions::default()).await.unwrap();
        if let Some(mut reader) = reader {
            while let Some(fragment) = reader.next().await.unwrap() {
                if let Fragment::Row(_) = fragment {
                    found.push(number);
                }
            }
        }
    }
    found
}

/// Every so many keys that are there, and as many that are not.
fn some(step: usize) -> impl Iterator<Item = u32> {
    (0..2 * PARTITIONS).step_by(step)
}

fn present(step: usize) -> Vec<u32> {
    (0..PARTITIONS).step_by(step).collect()
}

fn bloom_pages(data: &Path) -> PathBuf {
    Descriptor::parse(data).unwrap().path_of(&Component::BloomPages)
}

pub(super) async fn bytes_of(disk: &Disk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, FILTER_IO).await.unwrap();
    file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec()
}

/// A file of pages, damaged in all ways: bits flipped, cut off, with pages that are sound but stand elsewhere.
pub(super) fn damaged(sound: &[u8]) -> Vec<Vec<u8>> {
    let flipped = |at: usize| {
        let mut bytes = sound.to_vec();
        bytes[at] ^= 1 << (at % 8);
        bytes
    };
    let mut damaged: Vec<Vec<u8>> = (0..sound.len()).step_by(PAGE / 3 + 7).map(flipped).collect();
    damaged.extend([0, 1, PAGE, sound.len() - PAGE, sound.len() - 1].map(|len| sound[..len].to_vec()));
    // Pages in the place of each other are sound, each for itself.
    let (first, rest) = sound.split_at(PAGE);
    damaged.push([&rest[..PAGE], first, &rest[PAGE..]].concat());
    damaged.push([sound, first].concat());
    damaged
}

/// The problems and notes of a verification that name the pages.
async fn findings(disk: &Disk, data: &Path) -> (usize, usize) {
    let report = verify(disk, data, &OpenOptions::new(Cache::new(1 << 20)), |_, _| {}).await.unwrap();
    let of_pages = |findings: &Findings| {
        findings.listed().iter().filter(|problem| problem.path == bloom_pages(data)).count()
    };
    (of_pages(&report.problems), of_pages(&report.notes))
}

#[test]
fn the_filter_is_read_by_pages_or_as_a_whole() {
    run(async |shard| {
        let disk = shard.disk();
        let data = write(disk, 1, 0..PARTITIONS, with_pages()).await;
        let table = open(disk, &data, 1 << 20, true).await;
        let len = bytes_of(disk, &bloom_pages(&data)).await.len() as u64;
        assert_eq!(table.filter().pages_usage(), Usage::InUse { bytes: len });
        assert!(
            table.filter().whole().is_none()
                && !table.components(disk).await.unwrap().contains(&Component::BloomPages)
        );
        let whole = open(disk, &data, 1 << 20, false).await;
        assert_eq!(whole.filter().pages_usage(), Usage::Off);
        assert_eq!(whole.filter().whole(), table.filter().read_whole().await.unwrap());
        assert!(table.memory_bytes() + 8000 < whole.memory_bytes(), "the filter is no longer in memory");
        assert_eq!(findings(disk, &data).await, (0, 0));
        let without = WriteOptions { bloom_pages: false, ..with_pages() };
        let data = write(disk, 2, 0..PARTITIONS, without).await;
        assert_eq!(open(disk, &data, 1 << 20, true).await.filter().pages_usage(), Usage::Absent);
        let data = write(disk, 3, 0..100, with_pages()).await;
        assert!(!disk.exists(&bloom_pages(&data)), "what fits a page is not cut into pages");
    });
}

#[test]
fn reads_answer_the_same() {
    run(async |shard| {
        let disk = shard.disk();
        let data = write(disk, 1, 0..PARTITIONS, with_pages()).await;
        for (cache, step) in [(0, 37), (30 << 10, 7), (16 << 20, 3)] {
            for bloom_pages in [true, false] {
                let table = open(disk, &data, cache, bloom_pages).await;
                assert_eq!(found(&table, some(step)).await, present(step), "{cache}, {bloom_pages}");
            }
        }
        let table = open(disk, &data, 16 << 20, true).await;
        let hash = |number: u32| murmur3(&number.to_be_bytes());
        assert!((0..PARTITIONS).all(|number| table.filter().probe(hash(number)) == Probe::Maybe));
    });
}

/// The index tells for the same request whether a partition is there; the filter is read for one that is not.
#[test]
fn a_cold_read_of_what_is_there_does_not_read_the_filter() {
    run(async |shard| {
        let disk = shard.disk();
        let data = write(disk, 1, 0..PARTITIONS, with_pages()).await;
        // Too little memory for the pages to be read when the SSTable is opened.
        let table = open(disk, &data, 256 << 10, true).await;
        let filter_reads = || disk.stats().class(FILTER_IO).requests;
        let opened = filter_reads();
        assert_eq!(found(&table, 0..20).await.len(), 20);
        assert_eq!(filter_reads(), opened);
        assert!(found(&table, PARTITIONS..PARTITIONS + 20).await.is_empty());
        assert!((1..=5).contains(&(filter_reads() - opened)), "a request for each page at the most");
    });
}

/// Damaged pages are noticed where they are used, and Filter.db takes their place: every answer is as it was.
#[test]
fn damaged_pages_change_no_answer() {
    run(async |shard| {
        let (disk, files) = (shard.disk(), shard.disk().as_simulated().unwrap());
        let data = write(disk, 1, 0..PARTITIONS, with_pages()).await;
        let path = bloom_pages(&data);
        let sound = bytes_of(disk, &path).await;
        for (number, bytes) in damaged(&sound).into_iter().enumerate() {
            files.add_file(&path, bytes);
            for cache in [0, 30 << 10, 4 << 20] {
                let table = open(disk, &data, cache, true).await;
                assert_eq!(found(&table, some(61)).await, present(61), "{number}");
                let usage = table.filter().pages_usage();
                assert!(matches!(usage, Usage::Ignored { .. }), "{number}: {usage}");
                assert!(table.filter().whole().is_some());
            }
            let (problems, notes) = findings(disk, &data).await;
            assert!(problems + notes > 0, "{number}");
        }
    });
}

#[test]
fn pages_of_another_sstable_are_not_used() {
    run(async |shard| {
        let (disk, files) = (shard.disk(), shard.disk().as_simulated().unwrap());
        let own = write(disk, 1, 0..PARTITIONS, with_pages()).await;
        let other = write(disk, 2, PARTITIONS..2 * PARTITIONS, with_pages()).await;
        files.add_file(bloom_pages(&own), bytes_of(disk, &bloom_pages(&other)).await);
        let table = open(disk, &own, 1 << 20, true).await;
        let why = "its digest is that of another Data.db".to_owned();
        assert_eq!(table.filter().pages_usage(), Usage::Ignored { why });
        assert_eq!(found(&table, some(11)).await, present(11));
        assert_eq!(findings(disk, &own).await, (0, 1), "a note: reads do well without");
    });
}

/// Whoever forges the binding is found out by `verify`, which asks the pages for every key.
#[test]
fn pages_that_deny_a_key_are_a_problem() {
    run(async |shard| {
        let (disk, files) = (shard.disk(), shard.disk().as_simulated().unwrap());
        let own = write(disk, 1, 0..PARTITIONS, with_pages()).await;
        let other = write(disk, 2, PARTITIONS..2 * PARTITIONS, with_pages()).await;
        let (mut forged, sound) =
            (bytes_of(disk, &bloom_pages(&other)).await, bytes_of(disk, &bloom_pages(&own)).await);
        // The binding stands before the 17 bytes of the end, the checksum behind it.
        let binding = |file: &[u8]| file.len() - 4 - 17 - 23..file.len() - 4 - 17;
        let (to, from) = (binding(&forged), binding(&sound));
        forged[to].copy_from_slice(&sound[from]);
        let last = forged.len() - PAGE;
        let sum = crc32fast::hash(&forged[last..][..PAGE - 4]);
        forged[last + PAGE - 4..].copy_from_slice(&sum.to_be_bytes());
        files.add_file(bloom_pages(&own), forged);
        assert_eq!(findings(disk, &own).await, (1, 0));
    });
}

#[test]
fn a_table_of_an_index_has_no_pages() {
    run(async |shard| {
        let options = WriteOptions { partitioner: Partitioner::Local, ..with_pages() };
        let mut keys: Vec<u32> = (0..PARTITIONS).collect();
        keys.sort_unstable();
        let schema = Rc::new(Schema::new(CqlType::Int, vec![], vec![], vec![]));
        let descriptor = Descriptor { dir: "/t/.i".into(), version: Version::Nb, generation: "1".to_owned() };
        let disk = shard.disk();
        let mut writer =
            SSTableWriter::create(disk, descriptor.clone(), &schema, EncodingStats::NONE, options)
                .await
                .unwrap();
        for number in keys {
            let key = PartitionKey { token: 0, bytes: key(number).bytes };
            let start = PartitionStart {
                key,
                deletion: DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 },
            };
            writer.push(&Fragment::PartitionStart(start)).await.unwrap();
            writer.push(&Fragment::PartitionEnd).await.unwrap();
        }
        writer.seal().await.unwrap();
        assert!(!disk.exists(&descriptor.path_of(&Component::BloomPages)));
    });
}
