//! What a store takes of the machine's memory stays within what its options say, however large its partitions are.
//!
//! In a process of its own, as the resident set is that of the process, with the allocator as it comes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::cell;
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
const CACHE: usize = 64 << 20;
const MEMTABLES: usize = 16 << 20;
const READS: usize = 16 << 20;

/// How many reads want to be let in at a time: more than there is memory for.
const READERS: u64 = 16;

/// Bytes of one value, and how many rows are written in all: many times what memory is for.
const VALUE: usize = 2000;
const ROWS: usize = 150_000;

/// How often as many are written, if it is to be longer.
const TIMES: &str = "SILTSTONE_CHURN";

/// After so many writes there are reads.
const READ_EVERY: usize = 400;

/// The most of the resident set so far, in bytes.
#[derive(Default)]
struct Peak(cell::Cell<usize>);

impl Peak {
    fn look(&self) {
        self.0.set(self.0.get().max(resident()));
    }
}

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

async fn read(store: Store, table: Table, mut random: Random, peak: Rc<Peak>) {
    let _permit = store.admission().admit(table.slice_memory(false)).await.unwrap();
    let first = random.below(ROWS);
    let slice = Slice {
        start: model::Position::before(clustering(first)),
        end: model::Position::after(clustering(first + random.below(300))),
    };
    let mut rows = table.read(&ReadRequest::new(key(random.below(3)), slice)).await.unwrap();
    let mut count = 0;
    while rows.next().await.unwrap().is_some() {
        count += 1;
        if count % 16 == 0 {
            // Others come in between, so that many have something at hand.
            runtime::yield_now().await;
            peak.look();
        }
    }
}

/// By how much the resident set grew at the most, and how much it may.
async fn churn(shard: Shard, folder: &Path) -> [usize; 2] {
    let admission = AdmissionOptions { memory: READS, ..AdmissionOptions::default() };
    let options = StoreOptions { cache: CACHE, memtables: MEMTABLES, admission, ..StoreOptions::default() };
    let allowed = options.memory() / 10 * 11;
    let store = Store::open(&shard, &folder.join("log"), options).await.unwrap();
    let table_folder = folder.join("table");
    shard.disk().create_dir_all(&table_folder).await.unwrap();
    let definition = Definition::new(TABLE, &schema(), Version::Me);
    let table = store.add_table(&table_folder, definition, &Generations::default()).await.unwrap();
    store.begin_compactions();
    let mut random = Random::new(1);
    let (before, peak) = (resident(), Rc::new(Peak::default()));
    let times = std::env::var(TIMES).map_or(1, |times| times.parse().unwrap());
    for timestamp in 0..times * ROWS {
        store.write(TABLE, write(&mut random, timestamp)).await.unwrap();
        if timestamp.is_multiple_of(READ_EVERY) {
            let seeds = (0..READERS).map(|reader| timestamp as u64 * READERS + reader);
            let read = |seed| read(store.clone(), table.clone(), Random::new(seed), peak.clone());
            let reads: Vec<_> = seeds.map(|seed| runtime::spawn(read(seed))).collect();
            for read in reads {
                read.await;
            }
            peak.look();
        }
    }
    assert!(store.compaction_stats().done > 0, "{:?}", store.compaction_stats());
    store.close().await.unwrap();
    [peak.0.get() - before, allowed]
}

#[test]
fn a_long_churn_stays_within_the_budget() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    let options = ShardOptions { direct_io: false, ..ShardOptions::default() };
    let [most, allowed] = runtime::run(options, async move |shard| churn(shard, &path).await).unwrap();
    println!("{} MiB at the most, of {}", most >> 20, allowed >> 20);
    assert!(most <= allowed, "{most} bytes, which is more than {allowed}");
}
