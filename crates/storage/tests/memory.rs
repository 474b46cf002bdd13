//! What a store takes of the machine's memory stays within what its options say, however large its partitions are.
//!
//! In a process of its own, as the resident set is that of the process. The allocator of glibc is told to give large
//! buffers back at once and to keep one arena: by itself it keeps what threads and buffers of 256 KiB leave, which
//! `docs/performance/memory.md` has figures of.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, FragmentReader, Liveness, Mutation, PartitionKey,
    Row, Schema, Slice, flat,
};
use runtime::{Shard, ShardOptions};
use siltstone_storage::admission::AdmissionOptions;
use siltstone_storage::commit_log::TableId;
use siltstone_storage::{Definition, Generations, ReadRequest, Store, StoreOptions, Table};
use sstable::Version;
use testkit::generate::random::Random;

const TABLE: TableId = TableId([7; 16]);
const CACHE: usize = 24 << 20;
const MEMTABLES: usize = 8 << 20;
/// What is in hand for a while: buffers of 256 KiB, a few for each read, flush and compaction.
const READS: usize = 8 << 20;

/// Bytes of one value, and how many rows are written in all: many times what memory is for.
const VALUE: usize = 2000;
const ROWS: usize = 150_000;

/// How often as many are written, if it is to be longer.
const TIMES: &str = "SILTSTONE_CHURN";

/// What all of it may take: the caches, reads and compactions, twice the memtables, as one is flushed while the next is
/// filled, and a tenth more.
const BUDGET: usize = (CACHE + READS + 2 * MEMTABLES) / 10 * 11;

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn schema() -> Rc<Schema> {
    let value = Column { name: b"v".as_slice().into(), data_type: CqlType::Blob };
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![value]))
}

fn key(number: usize) -> PartitionKey {
    PartitionKey::new(Bytes::from(&(number as i32).to_be_bytes()[..]))
}

fn clustering(number: usize) -> Clustering {
    std::iter::once(&(number as i32).to_be_bytes()[..]).collect()
}

/// Half of the value does not compress.
fn value(random: &mut Random) -> Vec<u8> {
    (0..VALUE).map(|at| if at.is_multiple_of(2) { random.below(256) as u8 } else { 7 }).collect()
}

fn write(random: &mut Random, timestamp: usize) -> Vec<u8> {
    let cell = Cell {
        column: 0,
        ttl: 0,
        timestamp: timestamp as i64,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value: CellValue::Value(Bytes::from(value(random))),
    };
    let liveness = Liveness { timestamp: timestamp as i64, ..Liveness::NONE };
    let row = Row { liveness, cells: vec![cell], ..Row::new(clustering(random.below(ROWS))) };
    let mutation = Mutation { rows: vec![row], ..Mutation::new(key(random.below(3))) };
    let mut record = Vec::new();
    flat::put_mutation(&mutation, &mut record);
    record
}

async fn read(store: &Store, table: &Table, random: &mut Random) {
    let _permit = store.admission().admit(1 << 20).await.unwrap();
    let first = random.below(ROWS);
    let slice = Slice {
        start: model::Position::before(clustering(first)),
        end: model::Position::after(clustering(first + random.below(300))),
    };
    let mut rows = table.read(&ReadRequest::new(key(random.below(3)), slice)).await.unwrap();
    while rows.next().await.unwrap().is_some() {}
}

async fn churn(shard: Shard, folder: &Path) -> usize {
    let admission = AdmissionOptions { memory: READS, ..AdmissionOptions::default() };
    let options = StoreOptions { cache: CACHE, memtables: MEMTABLES, admission, ..StoreOptions::default() };
    let store = Store::open(&shard, &folder.join("log"), options).await.unwrap();
    let table_folder = folder.join("table");
    shard.disk().create_dir_all(&table_folder).await.unwrap();
    let definition = Definition::new(TABLE, &schema(), Version::Me);
    let table = store.add_table(&table_folder, definition, &Generations::default()).await.unwrap();
    store.begin_compactions();
    let mut random = Random::new(1);
    let before = resident();
    let mut most = 0;
    let times = std::env::var(TIMES).map_or(1, |times| times.parse().unwrap());
    for timestamp in 0..times * ROWS {
        store.write(TABLE, write(&mut random, timestamp)).await.unwrap();
        if timestamp.is_multiple_of(100) {
            read(&store, &table, &mut random).await;
            most = most.max(resident().saturating_sub(before));
        }
    }
    assert!(store.compaction_stats().done > 0, "{:?}", store.compaction_stats());
    store.close().await.unwrap();
    most
}

/// What the allocator of glibc is told by the environment.
const ALLOCATOR: [(&str, &str); 3] =
    [("MALLOC_ARENA_MAX", "1"), ("MALLOC_MMAP_THRESHOLD_", "65536"), ("MALLOC_TRIM_THRESHOLD_", "131072")];

#[test]
fn a_long_churn_stays_within_the_budget() {
    if ALLOCATOR.iter().any(|(name, _)| std::env::var_os(name).is_none()) {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        let status = again.args(["--nocapture"]).envs(ALLOCATOR).status().unwrap();
        return assert!(status.success(), "the churn in a process of its own");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    let options = ShardOptions { direct_io: false, ..ShardOptions::default() };
    let most = runtime::run(options, async move |shard| churn(shard, &path).await).unwrap();
    println!("{} MiB at the most, of {}", most >> 20, BUDGET >> 20);
    assert!(most <= BUDGET, "{most} bytes, which is more than {BUDGET}");
}
