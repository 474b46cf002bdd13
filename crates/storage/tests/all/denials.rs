//! Absent rows by the filters of SSTables: known without a read, and nothing is kept for them.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use model::{
    Bytes, Cell, CellValue, Column, CqlType, DeletionTime, FragmentReader, Liveness, Mutation, PartitionKey,
    Row, Schema, Slice, time::NO_DELETION_TIME,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::row_cache::Known;
use siltstone_storage::{Context, Definition, Generations, ReadRequest, Table};
use sstable::Version;
use testkit::int_rows::{self, clustering};

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };

fn key() -> PartitionKey {
    int_rows::key(1)
}

fn row(number: i32, timestamp: i64) -> Row {
    let value = CellValue::Value(Bytes::from(vec![7; 100]));
    let cell =
        Cell { column: 0, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value };
    let liveness = Liveness { timestamp, ..Liveness::NONE };
    Row { liveness, cells: vec![cell], ..Row::new(clustering(number)) }
}

/// Rows at even numbers.
fn even(numbers: Range<i32>, timestamp: i64) -> Mutation {
    let rows = numbers.map(|number| row(2 * number, timestamp)).collect();
    Mutation { rows, ..Mutation::new(key()) }
}

/// A table with an SSTable of each of these.
async fn table_of(shard: &Shard, mutations: impl IntoIterator<Item = Mutation>) -> Table {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(4 << 20));
    let folder = Path::new("/d");
    shard.disk().create_dir_all(folder).await.unwrap();
    let value = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![value]));
    let mut definition = Definition::new(TableId([0; 16]), &schema, Version::Nb);
    definition.write.column_index_size = 512;
    let table = Table::open(&context, folder, definition, &Generations::default()).await.unwrap();
    for mutation in mutations {
        table.apply(&mutation, NO_POSITION);
        flush(&table).await;
    }
    table
}

async fn flush(table: &Table) {
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
}

/// How many fragments a read of a row gives.
async fn read(table: &Table, number: i32) -> usize {
    let request = ReadRequest::new(key(), Slice::of_prefix(clustering(number)));
    let mut rows = table.read(&request).await.unwrap();
    let mut fragments = 0;
    while rows.next().await.unwrap().is_some() {
        fragments += 1;
    }
    fragments
}

fn known(table: &Table, number: i32) -> Known {
    table.known_row(key().view(), &[&number.to_be_bytes()])
}

/// What was asked of the disk so far, and how many parts went into the row cache.
fn spent(table: &Table) -> (u64, u64) {
    (table.context().disk.stats().total().requests, table.row_cache().stats().insertions)
}

/// Once looking for absent rows was in vain for a while, the filters of all SSTables tell of most of them.
#[test]
fn what_filters_deny_is_known_to_be_absent() {
    run_simulated(SimOptions { max_delay: 10, ..SimOptions::default() }, async |shard| {
        // Those before all rows of the newer SSTable are known from where its first group begins.
        let table = table_of(&shard, [even(0..2000, 1), even(500..2500, 2)]).await;
        for number in (1..4000).step_by(40) {
            read(&table, number).await;
        }
        // At first they are asked for one row in sixteen.
        (5..4000).step_by(40).for_each(|number| drop(known(&table, number)));
        let before = spent(&table);
        let is_denied = |number: &i32| matches!(known(&table, *number), Known::Absent);
        let denied = (3..4000).step_by(40).filter(is_denied).count();
        assert!(denied > 90, "{denied} of 100");
        assert_eq!((0..5000).step_by(2).filter(is_denied).count(), 0, "what is there is not denied");
        // The cache has room: it knows them from now on.
        assert_eq!(spent(&table), (before.0, before.1 + denied as u64), "nothing is read");
        assert_eq!((3..4000).step_by(40).filter(is_denied).count(), denied);
        assert_eq!(spent(&table), (before.0, before.1 + denied as u64));
        for number in (3..4000).step_by(400) {
            assert_eq!(read(&table, number).await, 2, "its partition begins and ends");
        }

        // A memtable knows more than filters do, and so does the SSTable that it becomes.
        table.apply(&Mutation { rows: vec![row(43, 3)], ..Mutation::new(key()) }, NO_POSITION);
        assert!(matches!(known(&table, 43), Known::Unknown));
        flush(&table).await;
        assert!(!is_denied(&43));
        assert_eq!(read(&table, 43).await, 3, "its partition begins and ends around it");
    })
    .unwrap();
}

/// What SSTables whose tokens are gathered say of a partition is kept with an absent row: a deletion hides what comes later and is older.
#[test]
fn deletions_are_known_of_what_was_gathered() {
    run_simulated(SimOptions { max_delay: 10, ..SimOptions::default() }, async |shard| {
        let deletion = DeletionTime { marked_for_delete_at: 100, local_deletion_time: 1 };
        let deleted = Mutation { deletion, ..even(0..2000, 101) };
        let table = table_of(&shard, (102..120).map(|at| even(0..2000, at)).chain([deleted])).await;
        for number in (1..4000).step_by(10) {
            read(&table, number).await;
        }
        runtime::sleep(Duration::from_secs(1)).await;
        assert_eq!(table.sstables().gathered(), 19);
        (5..4000).step_by(40).for_each(|number| drop(known(&table, number)));
        let before = spent(&table);
        let is_denied = |number: &i32| matches!(known(&table, *number), Known::Absent);
        let denied: Vec<i32> = (3..4000).step_by(40).filter(is_denied).collect();
        assert!(denied.len() > 50, "{} of 100", denied.len());
        // Most are kept, those that are asked for again at the latest.
        assert_eq!(denied.iter().copied().filter(is_denied).count(), denied.len());
        assert!(spent(&table).0 == before.0 && spent(&table).1 > before.1 + 50);
        assert_eq!((0..4000).step_by(2).filter(is_denied).count(), 0, "what is there is not denied");

        let rows = denied.iter().map(|number| row(*number, 99)).collect();
        table.apply(&Mutation { rows, ..Mutation::new(key()) }, NO_POSITION);
        for number in denied {
            assert_eq!(read(&table, number).await, 2, "its partition begins, with the deletion, and ends");
        }
    })
    .unwrap();
}

/// A few filters tell it in less time than a part of many takes to be found; many filters do not.
#[test]
fn what_filters_deny_is_kept_while_that_is_little_or_where_they_are_many() {
    for (sstables, is_kept) in [(1, false), (6, true)] {
        run_simulated(SimOptions::default(), async |shard| {
            let table = table_of(&shard, (1..=sstables).map(|at| even(0..2000, at))).await;
            for number in (1..4000).step_by(40) {
                read(&table, number).await;
            }
            let absent = || {
                let is_absent = |number: &i32| matches!(known(&table, *number), Known::Absent);
                (1..4000).step_by(2).filter(is_absent).count()
            };
            assert!(absent() > 1500);
            let stats = table.row_cache().stats();
            assert!((200 << 10..300 << 10).contains(&stats.bytes), "a sixteenth of the cache: {stats:?}");
            // The first are kept, and the last were asked for a short while ago.
            let reversed = (3001..4000).rev().step_by(2);
            reversed.for_each(|number| drop(known(&table, number)));
            let more = table.row_cache().stats().insertions - stats.insertions;
            assert!(if is_kept { more > 100 } else { more == 0 }, "of {sstables}: {more}");
            assert!(absent() > 1500);
        })
        .unwrap();
    }
}
