//! What the row cache says that it takes is what it takes, and a hit takes little.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, FragmentReader, Liveness, Mutation, PartitionKey,
    Row, Schema, Slice,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::{Context, Definition, Generations, ReadRequest, Table};
use sstable::Version;
use testkit::allocator::{Watched, freed, held};

#[global_allocator]
static WATCHED: Watched = Watched;

const CAPACITY: usize = 2 << 20;

fn key(number: u32) -> PartitionKey {
    PartitionKey::new(Bytes::from([0; 12].into_iter().chain(number.to_be_bytes()).collect::<Vec<u8>>()))
}

fn row(number: u32, len: usize) -> Row {
    let value = CellValue::Value(Bytes::from(vec![7; len]));
    let (timestamp, local_deletion_time) = (1, NO_DELETION_TIME);
    let cell = Cell { column: 0, ttl: 0, timestamp, local_deletion_time, path: None, value };
    let clustering: Clustering = std::iter::once(number.to_be_bytes().to_vec()).collect();
    Row { liveness: Liveness { timestamp, ..Liveness::NONE }, cells: vec![cell], ..Row::new(clustering) }
}

async fn table(shard: &Shard, partitions: u32, rows: u32) -> Table {
    let value = Column { name: b"v".as_slice().into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Blob, vec![CqlType::Int], Vec::new(), vec![value]));
    let (disk, clock) = (shard.disk().clone(), shard.clock().clone());
    let context = Context::new(disk, clock, Cache::new(CAPACITY));
    let folder = Path::new("/d");
    shard.disk().create_dir_all(folder).await.unwrap();
    let definition = Definition::new(TableId([0; 16]), &schema, Version::Nb);
    let table = Table::open(&context, folder, definition, &Generations::default()).await.unwrap();
    for partition in 0..partitions {
        let rows = (0..rows).map(|number| row(number, 50)).collect();
        table.apply(&Mutation { rows, ..Mutation::new(key(partition)) }, LogPosition::default());
    }
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
    table
}

async fn read(table: &Table, request: &ReadRequest) -> usize {
    let (mut reader, mut count) = (table.read(request).await.unwrap(), 0);
    while reader.next().await.unwrap().is_some() {
        count += 1;
    }
    count
}

/// How much memory goes with what is cached, beside what the cache says of it.
async fn compare(table: &Table) {
    let cache = &table.context().cache;
    assert!(cache.used() <= CAPACITY);
    let stats = table.row_cache().stats();
    assert!(stats.bytes <= cache.used());
    let before = held();
    table.row_cache().clear();
    let freed = before - held();
    println!("{} parts were said to take {} bytes and took {freed}", stats.parts, stats.bytes);
    assert!(stats.bytes > CAPACITY / 5 && freed <= stats.bytes && freed > stats.bytes * 7 / 10);
    assert_eq!((table.row_cache().stats().parts, table.row_cache().stats().bytes), (0, 0));
}

#[test]
fn what_it_says_that_it_takes_is_what_it_takes() {
    run_simulated(SimOptions::default(), async |shard| {
        let small = table(&shard, 5000, 2).await;
        for partition in 0..5000 {
            assert_eq!(read(&small, &ReadRequest::new(key(partition), Slice::all())).await, 4);
        }
        assert!(small.row_cache().stats().insertions >= 5000);
        compare(&small).await;
        drop(small);

        shard.disk().remove_dir(Path::new("/d")).await.ok();
        let large = table(&shard, 40, 2000).await;
        for partition in 0..40 {
            assert_eq!(read(&large, &ReadRequest::new(key(partition), Slice::all())).await, 2002);
        }
        compare(&large).await;

        // A hit of a row among many.
        let request = ReadRequest::new(key(1), Slice::of_prefix(row(777, 0).clustering));
        read(&large, &ReadRequest::new(key(1), Slice::all())).await;
        let (before, hits) = (freed(), large.row_cache().stats().hits);
        for _ in 0..100 {
            assert_eq!(read(&large, &request).await, 3);
        }
        let allocations = (freed() - before) / 100;
        println!("{allocations} allocations a hit");
        assert_eq!(large.row_cache().stats().hits, hits + 100);
        assert!(allocations <= 20, "{allocations} allocations a hit");
    })
    .unwrap();
}
