//! Small partitions by fences: one request to the data, none to the index, and the same rows as without.
//!
//! Tables of all shapes are written here: partitions of nothing but a row, of many rows with static ones and range
//! tombstones, some of them with blocks; compressed and not. What is there and what is not is read with fences and
//! without; then the data is damaged, byte by byte.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader,
    PartitionStart, Position, RangeTombstoneChange, Row, Schema, Slice,
};
use runtime::{Cache, Disk, IoStats, Shard, SimOptions};
use siltstone_sstable::component::{Component, DATA_IO, Descriptor, FENCES_IO, INDEX_IO};
use siltstone_sstable::parts::compression_info::{Compression, Compressor};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::{OpenOptions, ReadOptions, Result, SSTable, SSTableWriter, Version, WriteOptions};
use testkit::int_rows::{clustering, key};

use super::fences::is_in_use;

const CACHE: usize = 64 << 20;

/// What partitions hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// No clustering, one row with a value of so many bytes.
    Rows(usize),
    /// From none to hundreds of clustered rows, static ones, range tombstones.
    Partitions,
}

fn cell(value: Vec<u8>) -> Cell {
    let value = CellValue::Value(Bytes::from(value));
    Cell { column: 0, ttl: 0, timestamp: 7, local_deletion_time: NO_DELETION_TIME, path: None, value }
}

fn row(clustering: Clustering, number: i32, len: usize) -> Row {
    let value = (0..len).map(|at| (number as usize * 7 + at * at) as u8).collect();
    Row { cells: vec![cell(value)], ..Row::new(clustering) }
}

impl Shape {
    fn schema(self) -> Rc<Schema> {
        let column = |name: &[u8]| Column { name: name.into(), data_type: CqlType::Blob };
        Rc::new(match self {
            Shape::Rows(_) => Schema::new(CqlType::Int, vec![], vec![], vec![column(b"v")]),
            Shape::Partitions => {
                Schema::new(CqlType::Int, vec![CqlType::Int], vec![column(b"s")], vec![column(b"v")])
            }
        })
    }

    /// What stands in the partition of this number.
    fn rows(self, number: i32) -> Vec<Fragment> {
        if let Shape::Rows(len) = self {
            return vec![Fragment::Row(row(Clustering::empty(), number, len))];
        }
        let change =
            |position, deletion| Fragment::RangeTombstone(RangeTombstoneChange { position, deletion });
        let deleted = DeletionTime { marked_for_delete_at: 3, local_deletion_time: 4 };
        let mut rows = Vec::new();
        if number % 3 == 0 {
            rows.push(Fragment::StaticRow(row(Clustering::empty(), number, number as usize % 50)));
        }
        let count = if number % 40 == 0 { 700 } else { number % 9 };
        for at in 0..count {
            rows.push(Fragment::Row(row(clustering(2 * at), at, (number * at) as usize % 90)));
        }
        if number % 5 == 1 {
            rows.push(change(Position::before(clustering(5000)), deleted));
            rows.push(change(Position::after(clustering(6000)), DeletionTime::LIVE));
        }
        if rows.is_empty() {
            rows.push(Fragment::Row(row(clustering(1), number, 9)));
        }
        rows
    }
}

/// An SSTable with the partitions of these numbers.
async fn write(
    disk: &Disk,
    dir: &Path,
    version: Version,
    shape: (Shape, i32),
    options: WriteOptions,
) -> PathBuf {
    let (shape, count) = shape;
    disk.create_dir_all(dir).await.unwrap();
    let descriptor = Descriptor::parse(&dir.join(format!("{}-1-big-Data.db", version.name()))).unwrap();
    let mut writer =
        SSTableWriter::create(disk, descriptor, &shape.schema(), EncodingStats::NONE, options).await.unwrap();
    let mut numbers: Vec<i32> = (0..count).collect();
    numbers.sort_by_key(|number| key(*number));
    for number in numbers {
        let start = PartitionStart { key: key(number), deletion: DeletionTime::LIVE };
        let start = std::iter::once(Fragment::PartitionStart(start));
        for fragment in start.chain(shape.rows(number)).chain([Fragment::PartitionEnd]) {
            writer.push(&fragment).await.unwrap();
        }
    }
    writer.seal().await.unwrap().descriptor.path_of(&Component::Data)
}

async fn open(disk: &Disk, data: &Path, fences: bool, cache: usize) -> Rc<SSTable> {
    let options = OpenOptions { fences, ..OpenOptions::new(Cache::new(cache)) };
    SSTable::open(disk, data, &options).await.unwrap()
}

async fn read(
    table: &Rc<SSTable>,
    number: i32,
    slice: &Slice,
    limit: Option<u64>,
) -> Result<Option<Vec<Fragment>>> {
    let options = ReadOptions { static_row: number % 2 == 0, limit, ..ReadOptions::default() };
    let Some(mut reader) = table.read(&key(number), slice, options).await? else { return Ok(None) };
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await? {
        fragments.push(fragment);
    }
    Ok(Some(fragments))
}

/// Runs on a simulated disk, whose reads are cut short now and then.
pub(super) fn in_simulation(seed: u64, test: impl AsyncFnOnce(&Shard) + Send) {
    let options = SimOptions { seed, short_read_chance: 0.02, alignment: 512, ..SimOptions::default() };
    runtime::run_simulated(options, async |shard: Shard| test(&shard).await).unwrap();
}

fn compressions(version: Version) -> Vec<Option<Compression>> {
    let compressed =
        |compressor, len| Some(Compression::new(compressor, version).with_chunk_len(len).unwrap());
    vec![
        None,
        compressed(Compressor::Lz4, 4 << 10),
        compressed(Compressor::Lz4, 64 << 10),
        compressed(Compressor::Snappy, 16 << 10),
    ]
}

/// All partitions, and as many that are not there, by fences and without: whole and in slices, whatever is kept.
#[test]
fn with_fences_and_without() {
    for (seed, version) in [(1, Version::Me), (2, Version::Oa)] {
        in_simulation(seed, async |shard| {
            let disk = shard.disk();
            for (shape, count) in [(Shape::Rows(10), 900), (Shape::Rows(300), 300), (Shape::Partitions, 300)]
            {
                for (number, compression) in compressions(version).into_iter().enumerate() {
                    let dir = PathBuf::from(format!("/{version:?}-{shape:?}-{number}"));
                    let options = WriteOptions {
                        compression,
                        column_index_size: 4 << 10,
                        // Nothing is sifted out before.
                        bloom_filter_fp_chance: 1.0,
                        ..WriteOptions::new(version)
                    };
                    let data = write(disk, &dir, version, (shape, count), options).await;
                    let plain = open(disk, &data, false, CACHE).await;
                    for cache in [CACHE, 0] {
                        agree(&plain, &open(disk, &data, true, cache).await, count).await;
                    }
                }
            }
        });
    }
}

async fn agree(plain: &Rc<SSTable>, fenced: &Rc<SSTable>, count: i32) {
    let slices = [
        Slice::all(),
        Slice::of_prefix(clustering(4)),
        Slice { start: Position::after(clustering(5)), end: Position::end() },
        Slice { start: Position::before(clustering(5500)), end: Position::end() },
    ];
    for number in -count / 4..count + count / 4 {
        let is_there = (0..count).contains(&number);
        let has_clustering = !plain.schema().clustering.is_empty();
        for slice in slices.iter().take(if has_clustering { 4 } else { 1 }) {
            for limit in [None, Some(1)] {
                let expected = read(plain, number, slice, limit).await.unwrap();
                assert_eq!(expected.is_some(), is_there);
                assert_eq!(read(fenced, number, slice, limit).await.unwrap(), expected, "{number} {slice:?}");
            }
        }
    }
    assert!(is_in_use(fenced), "{}", fenced.fences_state());
}

/// A cold row of a small partition is one request, mostly of a page; what is not there is none, even without a filter.
#[test]
fn a_small_partition_is_one_request() {
    for (compression, most_bytes) in [(None, 4900), (compressions(Version::Me).remove(1), 5700)] {
        in_simulation(3, async |shard| {
            let disk = shard.disk();
            disk.as_simulated().unwrap().set_options(SimOptions { alignment: 512, ..SimOptions::default() });
            let count = 20_000;
            let options =
                WriteOptions { compression, bloom_filter_fp_chance: 1.0, ..WriteOptions::new(Version::Me) };
            let data = write(disk, Path::new("/t"), Version::Me, (Shape::Rows(200), count), options).await;
            let table = open(disk, &data, true, CACHE).await;
            let cost = async |numbers: std::ops::Range<i32>| {
                let before = disk.stats();
                let reads = numbers.len() as u64;
                for number in numbers {
                    drop(read(&table, number, &Slice::all(), None).await.unwrap());
                }
                (reads, disk.stats().since(&before))
            };
            let counts =
                |stats: &IoStats| [INDEX_IO, DATA_IO, FENCES_IO].map(|class| stats.class(class).requests);
            let (reads, stats) = cost(0..count).await;
            let [index, data, fences] = counts(&stats);
            assert!(index == 0 && data >= reads && data < reads + reads / 50, "{stats:?}");
            assert!(
                stats.class(DATA_IO).bytes / reads < most_bytes,
                "{}",
                stats.class(DATA_IO).bytes / reads
            );
            // Its pages are kept: four bytes and a half for each partition.
            assert!(fences * 4096 < reads * 9 / 2, "{fences} pages of fences");

            let (reads, stats) = cost(count..2 * count).await;
            let [index, data, fences] = counts(&stats);
            // A few tokens of those near by end alike.
            assert!(data < reads / 1000 && index <= 2 * data && fences < 9, "{stats:?}");
            assert!(is_in_use(&table));
        });
    }
}

/// Data of which no checksum is looked at, damaged: the rows are those that are read without fences, which are exact.
#[test]
fn damage_nearby_hides_nothing() {
    in_simulation(4, async |shard| {
        let disk = shard.disk();
        let (count, version) = (60, Version::Me);
        let options =
            WriteOptions { compression: None, bloom_filter_fp_chance: 1.0, ..WriteOptions::new(version) };
        let data = write(disk, Path::new("/t"), version, (Shape::Rows(110), count), options).await;
        let file = disk.open(&data, DATA_IO).await.unwrap();
        let sound = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 1 << (at % 8);
            disk.as_simulated().unwrap().add_file(&data, damaged);
            let plain = open(disk, &data, false, CACHE).await;
            let fenced = open(disk, &data, true, CACHE).await;
            for number in [0, 7, 31, count + 1] {
                let [plain, fenced] = [
                    read(&plain, number, &Slice::all(), None).await,
                    read(&fenced, number, &Slice::all(), None).await,
                ];
                match (plain, fenced) {
                    (Ok(plain), Ok(fenced)) => assert_eq!(fenced, plain, "byte {at}, partition {number}"),
                    (Err(_), Err(_)) => {}
                    (plain, fenced) => panic!("byte {at}, partition {number}: {plain:?}, {fenced:?}"),
                }
            }
        }
    });
}
