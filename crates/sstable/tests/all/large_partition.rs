//! A row of a very large partition: how many requests it costs, cold, with fences and without.
//!
//! A million rows of 2000 bytes, in blocks of 64 KiB and of 4 KiB, uncompressed, written here. With
//! `SILTSTONE_LARGE_ROWS=10000000` it is ten million rows, twenty gigabytes each, under the system's temporary folder
//! (`TMPDIR`); `-- --nocapture` prints the table of docs/performance/reads.md.

use std::path::Path;
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader, Liveness,
    PartitionKey, PartitionStart, Row, Schema, Slice,
};
use runtime::{Cache, Disk, IoCount, Shard, ShardOptions};
use siltstone_sstable::component::{Component, DATA_IO, Descriptor, FENCES_IO, INDEX_IO};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::parts::usage::Usage;
use siltstone_sstable::{OpenOptions, ReadOptions, SSTable, SSTableWriter, Version, WriteOptions};

/// The requests that a cold row costs at the most with fences: for a group of blocks and for the data.
const MOST_WITH_FENCES: u64 = 2;
/// The same without: for the page with the entry, the search among the blocks, and the data.
const MOST_WITHOUT: u64 = 6;
/// Bytes of a row's value.
const VALUE: usize = 2000;
/// Memory for what is kept of the index between reads.
const CACHE: usize = 64 << 20;

fn rows() -> i32 {
    std::env::var("SILTSTONE_LARGE_ROWS").map_or(1_000_000, |rows| rows.parse().unwrap())
}

fn key() -> PartitionKey {
    PartitionKey::new(Bytes::from(b"large".to_vec()))
}

/// Every other number has a row, so that there are gaps to look into.
fn clustering(number: i32) -> Clustering {
    [(2 * number + 1).to_be_bytes().to_vec()].into_iter().collect()
}

fn row(number: i32, value: &Bytes) -> Fragment {
    let mut row = Row::new(clustering(number));
    row.liveness = Liveness { timestamp: 7, ..Liveness::NONE };
    row.cells = vec![Cell {
        column: 0,
        ttl: 0,
        timestamp: 7,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value: CellValue::Value(value.clone()),
    }];
    Fragment::Row(row)
}

/// One partition of so many rows; the path of its data.
async fn write(disk: &Disk, dir: &Path, column_index_size: u32) -> Descriptor {
    let column = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Text, vec![CqlType::Int], Vec::new(), vec![column]));
    let descriptor = Descriptor::parse(&dir.join("me-1-big-Data.db")).unwrap();
    let options = WriteOptions { compression: None, column_index_size, ..WriteOptions::new(Version::Me) };
    let mut writer =
        SSTableWriter::create(disk, descriptor, &schema, EncodingStats::NONE, options).await.unwrap();
    let start = PartitionStart { key: key(), deletion: DeletionTime::LIVE };
    writer.push(&Fragment::PartitionStart(start)).await.unwrap();
    let value = Bytes::from(vec![0x5a; VALUE]);
    for number in 0..rows() {
        writer.push(&row(number, &value)).await.unwrap();
    }
    writer.push(&Fragment::PartitionEnd).await.unwrap();
    writer.seal().await.unwrap().descriptor
}

/// What one cold read of a single row costs.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    rows: usize,
    index: IoCount,
    data: IoCount,
}

impl Cost {
    fn requests(&self) -> u64 {
        self.index.requests + self.data.requests
    }

    fn kib(&self) -> f64 {
        (self.index.bytes + self.data.bytes) as f64 / 1024.0
    }
}

/// Reads one row of an SSTable that has just been opened.
async fn read_cold(shard: &Shard, data: &Path, fences: bool, clustering: Clustering) -> Cost {
    let options = OpenOptions { fences, ..OpenOptions::new(Cache::new(CACHE)) };
    let table = SSTable::open(shard.disk(), data, &options).await.unwrap();
    assert_eq!(matches!(table.fences_state(), Usage::InUse { .. }), fences);
    let before = shard.disk().stats();
    let slice = Slice::of_prefix(clustering);
    let mut reader = table.read(&key(), &slice, ReadOptions::default()).await.unwrap().unwrap();
    let mut rows = 0;
    while let Some(fragment) = reader.next().await.unwrap() {
        rows += usize::from(matches!(fragment, Fragment::Row(_)));
    }
    let stats = shard.disk().stats().since(&before);
    let mut index = stats.class(INDEX_IO);
    index += stats.class(FENCES_IO);
    let data = stats.class(DATA_IO);
    assert_eq!(stats.total().requests, index.requests + data.requests);
    Cost { rows, index, data }
}

/// Rows at the front, in the middle, at the end and in between.
fn places() -> Vec<i32> {
    let last = rows() - 1;
    let mut places: Vec<i32> = (0..40).map(|part| (i64::from(last) * part / 39) as i32).collect();
    places.extend([1, 31, 32, 33, last / 2 + 1, last - 1, last - 32]);
    places
}

/// Checks what a row costs at all places, and prints that of some and between which all are.
async fn check(shard: &Shard, data: &Path, fences: bool, most: u64) {
    let (mut requests, mut kib) = (0, (f64::INFINITY, 0.0_f64));
    for number in places() {
        let cost = read_cold(shard, data, fences, clustering(number)).await;
        assert_eq!(cost.rows, 1, "row {number}");
        assert!(cost.requests() <= most, "row {number}: {cost:?}");
        requests = requests.max(cost.requests());
        kib = (kib.0.min(cost.kib()), kib.1.max(cost.kib()));
    }
    for (name, number) in [("front", 0), ("middle", rows() / 2), ("end", rows() - 1)] {
        let cost = read_cold(shard, data, fences, clustering(number)).await;
        println!("  fences {fences:5}  {name:6}  {} requests, {:.1} KiB", cost.requests(), cost.kib());
    }
    assert_eq!(requests, most, "fences {fences}");
    let (least, most) = kib;
    println!("  fences {fences:5}  any     {requests} requests at the most, {least:.1} to {most:.1} KiB");
}

/// Numbers without a row that stand between two blocks: the index alone proves that they have none.
async fn gaps(shard: &Shard, data: &Path) -> Vec<i32> {
    let options = OpenOptions { fences: false, ..OpenOptions::new(Cache::new(CACHE)) };
    let table = SSTable::open(shard.disk(), data, &options).await.unwrap();
    let place = table.index().find(&key()).await.unwrap().unwrap();
    let promoted = table.index().promoted(&place).await.unwrap().unwrap();
    let cursor = table.index().cursor(&table.data().codec, &promoted);
    let mut gaps = Vec::new();
    for part in 0..20 {
        let block = cursor.block((promoted.count - 2) / 19 * part).await.unwrap();
        let last = block.last.prefix.values[0].as_deref().unwrap().try_into().unwrap();
        gaps.push(i32::from_be_bytes(last) + 1);
    }
    gaps
}

/// Rows that are not there: before all, behind all, between two blocks.
async fn check_absent(shard: &Shard, data: &Path) {
    let mut absent = gaps(shard, data).await;
    absent.extend([i32::MIN, -1, 2 * rows() + 1, i32::MAX]);
    for (fences, most) in [(true, MOST_WITH_FENCES), (false, MOST_WITHOUT)] {
        for &number in &absent {
            let clustering = [number.to_be_bytes().to_vec()].into_iter().collect();
            let cost = read_cold(shard, data, fences, clustering).await;
            assert_eq!((cost.rows, cost.data.requests), (0, 0), "{number}: {cost:?}");
            assert!(cost.requests() < most, "the same without the data, {number}: {cost:?}");
        }
    }
}

fn measure(column_index_size: u32) {
    let folder = tempfile::tempdir().unwrap();
    runtime::run(ShardOptions::default(), async |shard| {
        let descriptor = write(shard.disk(), folder.path(), column_index_size).await;
        let len = |component| std::fs::metadata(descriptor.path_of(&component)).unwrap().len();
        let (index, fences) = (len(Component::Index), len(Component::Fences));
        println!("{} rows, blocks of {} KiB", rows(), column_index_size >> 10);
        println!("  index {index} bytes, fences {fences} bytes");
        // 40 KB for 7 MB, the offset map aside.
        assert!(fences <= 4096 + index * 40 / 7000, "{fences} bytes of fences for {index} of index");
        let data = descriptor.path_of(&Component::Data);
        check(&shard, &data, true, MOST_WITH_FENCES).await;
        check(&shard, &data, false, MOST_WITHOUT).await;
        check_absent(&shard, &data).await;
    })
    .unwrap();
}

#[test]
fn a_cold_row_costs_few_requests_in_blocks_of_64_kib() {
    measure(64 << 10);
}

#[test]
fn a_cold_row_costs_few_requests_in_blocks_of_4_kib() {
    measure(4 << 10);
}

/// A partition that is not there costs nothing that the filter can spare, and one page of the index else.
#[test]
fn an_absent_partition_costs_at_most_a_page_of_the_index() {
    let folder = tempfile::tempdir().unwrap();
    runtime::run(ShardOptions::default(), async |shard| {
        let column = Column { name: b"v"[..].into(), data_type: CqlType::Int };
        let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![column]));
        let mut keys: Vec<PartitionKey> =
            (0_i32..20_000).map(|key| PartitionKey::new(Bytes::from(key.to_be_bytes().to_vec()))).collect();
        keys.sort();
        let descriptor = Descriptor::parse(&folder.path().join("me-1-big-Data.db")).unwrap();
        let options = WriteOptions::new(Version::Me);
        let mut writer =
            SSTableWriter::create(shard.disk(), descriptor, &schema, EncodingStats::NONE, options)
                .await
                .unwrap();
        let value = Bytes::from(vec![0; 4]);
        for key in keys {
            let start = PartitionStart { key, deletion: DeletionTime::LIVE };
            for fragment in [Fragment::PartitionStart(start), row(1, &value), Fragment::PartitionEnd] {
                writer.push(&fragment).await.unwrap();
            }
        }
        let data = writer.seal().await.unwrap().descriptor.path_of(&Component::Data);
        let (mut passed, mut requests) = (0, 0);
        for key in 1_000_000_i32..1_002_000 {
            let options = OpenOptions::new(Cache::new(CACHE));
            let table = SSTable::open(shard.disk(), &data, &options).await.unwrap();
            let before = shard.disk().stats();
            let key = table.key(Bytes::from(key.to_be_bytes().to_vec()));
            let found = table.read(&key, &Slice::all(), ReadOptions::default()).await.unwrap();
            assert!(found.is_none());
            let cost = shard.disk().stats().since(&before);
            let of_index = cost.class(INDEX_IO).requests + cost.class(FENCES_IO).requests;
            assert_eq!(cost.total().requests, of_index, "only the index is asked");
            assert!(cost.total().requests <= 1);
            let may = table.filter().may_contain(&key).await.unwrap();
            assert!(may || cost.total().requests == 0);
            passed += u64::from(may);
            requests += cost.total().requests;
        }
        assert!(requests <= passed && passed < 60, "{passed} of 2000 pass the filter, {requests} requests");
    })
    .unwrap();
}
