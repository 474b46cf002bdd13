//! What is written to a store is there: from memtables, from SSTables, after a compaction and after a crash.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Column, CqlType, DeletionTime, Fragment, FragmentReader, LiveRows, Liveness,
    Mutation, Position, Row, Schema, Slice, flat,
};
use runtime::{IoClass, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{EarlierLog, LogPosition, OnCorruption, SyncMode, TableId};
use siltstone_storage::compaction::options::SizeTiered;
use siltstone_storage::compaction::{Compaction, Strategy};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::store::{Store, StoreOptions};
use siltstone_storage::{Definition, Generations, ReadRequest, Table};
use sstable::Version;
pub(crate) use testkit::int_rows::{clustering, key};

pub(crate) const TABLE: TableId = TableId([7; 16]);
const OTHER: TableId = TableId([8; 16]);
const THIRD: TableId = TableId([9; 16]);

fn schema() -> Rc<Schema> {
    let value = Column { name: b"v".as_slice().into(), data_type: CqlType::Int };
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![value]))
}

/// A write of one row.
pub(crate) fn row(partition: i32, number: i32, value: i32, timestamp: i64) -> Vec<u8> {
    let cell = Cell {
        column: 0,
        ttl: 0,
        timestamp,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value: CellValue::Value(Bytes::from(&value.to_be_bytes()[..])),
    };
    let liveness = Liveness { timestamp, ..Liveness::NONE };
    let row = Row { liveness, cells: vec![cell], ..Row::new(clustering(number)) };
    let mutation = Mutation { rows: vec![row], ..Mutation::new(key(partition)) };
    let mut record = Vec::new();
    flat::put_mutation(&mutation, &mut record);
    record
}

/// A deletion of one row.
pub(crate) fn deletion(partition: i32, number: i32, timestamp: i64) -> Vec<u8> {
    let deletion = DeletionTime { marked_for_delete_at: timestamp, local_deletion_time: 1 };
    let row = Row { deletion, ..Row::new(clustering(number)) };
    let mutation = Mutation { rows: vec![row], ..Mutation::new(key(partition)) };
    let mut record = Vec::new();
    flat::put_mutation(&mutation, &mut record);
    record
}

/// A store with small segments and a table that forgets deletions at once.
async fn open(shard: &Shard, folder: &str, log: &str) -> (Store, Table) {
    open_with(shard, folder, log, StoreOptions::default()).await
}

pub(crate) async fn open_with(
    shard: &Shard,
    folder: &str,
    log: &str,
    mut options: StoreOptions,
) -> (Store, Table) {
    options.log.sync = SyncMode::Batch;
    options.log.segment_size = 1000;
    let store = Store::open(shard, Path::new(log), options).await.unwrap();
    let table = add_table(shard, &store, TABLE, folder).await;
    (store, table)
}

async fn add_table(shard: &Shard, store: &Store, id: TableId, folder: &str) -> Table {
    shard.disk().create_dir_all(Path::new(folder)).await.unwrap();
    for above in ["/d", "/"] {
        shard.disk().sync_dir(Path::new(above)).await.unwrap();
    }
    siltstone_storage::table::clean_folder(shard.disk(), Path::new(folder)).await.unwrap();
    let mut definition = Definition::new(id, &schema(), Version::Me);
    definition.gc_grace_seconds = 0;
    store.add_table(Path::new(folder), definition, &Generations::default()).await.unwrap()
}

/// The rows of a slice, as key and value.
pub(crate) async fn rows(table: &Table, partition: i32, slice: Slice) -> Vec<(i32, i32)> {
    let mut stream = table.read(&ReadRequest::new(key(partition), slice)).await.unwrap();
    let mut live = LiveRows::new(0);
    let mut rows = Vec::new();
    while let Some(mut fragment) = stream.next().await.unwrap() {
        if live.keeps(&mut fragment)
            && let Fragment::Row(row) = &fragment
        {
            let number = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().unwrap());
            let CellValue::Value(value) = &row.cells[0].value else { panic!("a value") };
            rows.push((number(row.clustering.values[0].as_ref().unwrap()), number(value)));
        }
    }
    rows
}

#[test]
fn rows_are_the_same_from_memtables_sstables_and_after_a_compaction() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        for round in 0..3 {
            for number in 0..50 {
                store.write(TABLE, row(1, number * (round + 1), round, i64::from(round))).await.unwrap();
            }
            store.flush(&table).await.unwrap();
        }
        store.write(TABLE, row(1, 0, 9, 9)).await.unwrap();
        let before = rows(&table, 1, Slice::all()).await;
        assert_eq!((before.len(), before[0], before[2]), (100, (0, 9), (2, 1)));
        assert_eq!(rows(&table, 1, Slice::of_prefix(clustering(4))).await, [(4, 1)]);
        assert_eq!(table.sstables().members().len(), 3);
        let rewrite = Rewrite::into_one(table.compactable());
        table.rewrite(&rewrite, &Control::default()).await.unwrap();
        assert_eq!(table.sstables().members().len(), 1);
        assert_eq!(rows(&table, 1, Slice::all()).await, before);
        assert_eq!(rows(&table, 2, Slice::all()).await, []);
    })
    .unwrap();
}

/// A compaction in the background holds back; one that somebody waits for does not, and one of a part of it is given up.
#[test]
fn compactions_hold_back_as_long_as_nobody_waits() {
    run_simulated(SimOptions::default(), async |shard| {
        let mut options = StoreOptions::default();
        options.compaction.bytes_per_second = Some(1);
        let (store, table) = open_with(&shard, "/d/t", "/log", options).await;
        // What is larger than others is not merged with them unless somebody asks.
        let strategy =
            Strategy::SizeTiered(SizeTiered { bucket_low: 0.5, bucket_high: 1.5, min_sstable_size: 0 });
        let compaction = Compaction { strategy, ..Compaction::default() };
        let definition = Definition { compaction, ..(*table.definition()).clone() };
        store.set_definition(&table, definition).await.unwrap();
        for round in 0..4 {
            for number in 0..1000 {
                store.write(TABLE, row(1, number, round, i64::from(round))).await.unwrap();
            }
            store.flush(&table).await.unwrap();
        }
        let begun = runtime::monotonic();
        store.begin_compactions();
        runtime::sleep(Duration::from_secs(600)).await;
        assert_eq!(store.compaction_stats().done, 0, "a byte a second takes hours");
        for number in 0..10_000 {
            store.write(TABLE, row(2, number, 1, 1)).await.unwrap();
        }
        store.flush(&table).await.unwrap();
        store.compact(&table).await.unwrap();
        assert!(
            runtime::monotonic() - begun < Duration::from_secs(2000),
            "{:?}",
            runtime::monotonic() - begun
        );
        let stats = store.compaction_stats();
        assert_eq!((stats.done, stats.failed, table.sstables().members().len()), (1, 1, 1));
        let counts = [rows(&table, 1, Slice::all()).await.len(), rows(&table, 2, Slice::all()).await.len()];
        assert_eq!(counts, [1000, 10_000]);
    })
    .unwrap();
}

/// What cannot be merged is left alone, also where all that a job has is what can go unread.
#[test]
fn a_compaction_of_what_has_expired_fails_once() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        let compaction = Compaction::parse([("class", "TimeWindowCompactionStrategy")]).unwrap();
        let definition = Definition { compaction, ..(*table.definition()).clone() };
        store.set_definition(&table, definition).await.unwrap();
        store.write(TABLE, deletion(1, 1, 1)).await.unwrap();
        store.flush(&table).await.unwrap();
        for path in shard.disk().list(Path::new("/d/t")).unwrap() {
            shard.disk().as_simulated().unwrap().remove_file(&path);
        }
        store.begin_compactions();
        runtime::sleep(Duration::from_secs(600)).await;
        assert_eq!(store.compaction_stats().failed, 1);
    })
    .unwrap();
}

/// Who asks for all of a table to be merged while just that is under way waits for it, and nothing is written twice. What is under way
/// is given up for another definition. Whoever asks later gets a compaction.
#[test]
fn what_is_under_way_is_not_done_again() {
    for is_altered in [false, true] {
        run_simulated(SimOptions::default(), async |shard| {
            let mut options = StoreOptions::default();
            options.compaction.bytes_per_second = Some(1);
            let (store, table) = open_with(&shard, "/d/t", "/log", options).await;
            for number in 0..4000 {
                store.write(TABLE, row(1, number, number, 1)).await.unwrap();
                if number % 1000 == 999 {
                    store.flush(&table).await.unwrap();
                }
            }
            let stats = || store.compaction_stats();
            let state = || (stats().done, table.sstables().members().len());
            store.begin_compactions();
            runtime::sleep(Duration::from_secs(10)).await;
            assert_eq!(state(), (0, 4), "it holds back");
            let altered = async {
                let definition = Definition { gc_grace_seconds: 7, ..(*table.definition()).clone() };
                if is_altered { store.set_definition(&table, definition).await } else { Ok(()) }
            };
            let both = [Box::pin(altered) as Awaited<'_>, Box::pin(store.compact(&table))];
            runtime::join_all(both).await.into_iter().collect::<Result<(), _>>().unwrap();
            assert_eq!((state(), stats().failed), ((1, 1), u64::from(is_altered)), "altered: {is_altered}");
            store.compact(&table).await.unwrap();
            assert_eq!(state(), (1, 1), "there is nothing to merge it with");
            store.write(TABLE, row(2, 1, 1, 1)).await.unwrap();
            store.flush(&table).await.unwrap();
            store.compact(&table).await.unwrap();
            assert_eq!(state(), (2, 1), "altered: {is_altered}");
            assert_eq!(rows(&table, 1, Slice::all()).await.len(), 4000);
        })
        .unwrap();
    }
}

/// Whoever alters a table waits for no compaction of another one.
#[test]
fn a_table_is_altered_beside_compactions_of_others() {
    run_simulated(SimOptions::default(), async |shard| {
        let mut options = StoreOptions::default();
        options.compaction.bytes_per_second = Some(1);
        let (store, table) = open_with(&shard, "/d/t", "/log", options).await;
        let other = add_table(&shard, &store, OTHER, "/d/other").await;
        for number in 0..4000 {
            store.write(OTHER, row(1, number, number, 1)).await.unwrap();
            if number % 1000 == 999 {
                store.flush(&other).await.unwrap();
            }
        }
        store.begin_compactions();
        runtime::sleep(Duration::from_secs(10)).await;
        let begun = runtime::monotonic();
        let definition = Definition { gc_grace_seconds: 7, ..(*table.definition()).clone() };
        store.set_definition(&table, definition).await.unwrap();
        assert!(runtime::monotonic() - begun < Duration::from_secs(1));
        assert_eq!((store.compaction_stats().failed, store.compaction_stats().done), (0, 0), "it goes on");
    })
    .unwrap();
}

/// A table that is dropped and made again with the same id has none of the rows of before, though the log still has some of them: the
/// segments from when it was dropped are kept behind those.
#[test]
fn rows_of_a_table_that_was_dropped_are_not_those_of_one_made_again() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        let _other = add_table(&shard, &store, OTHER, "/d/other").await;
        let third = add_table(&shard, &store, THIRD, "/d/third").await;
        let fill_segments = async || {
            let segment = store.log().position().segment;
            while store.log().position().segment < segment + 2 {
                store.write(THIRD, row(1, 1, 1, 1)).await.unwrap();
            }
        };
        // The row of the other table keeps the first segment; the mark of this one is in a later one.
        store.write(TABLE, row(1, 1, 1, 1)).await.unwrap();
        store.write(OTHER, row(1, 1, 1, 1)).await.unwrap();
        fill_segments().await;
        store.flush(&table).await.unwrap();
        store.remove_table(TABLE).await.unwrap();
        fill_segments().await;
        store.flush(&third).await.unwrap();
        runtime::sleep(Duration::from_secs(1)).await;
        let _again = add_table(&shard, &store, TABLE, "/d/again").await;
        store.close().await.unwrap();
        let earlier = [EarlierLog::find(shard.disk(), Path::new("/log")).unwrap()];
        let (store, again) = open(&shard, "/d/again", "/log2").await;
        let _other = add_table(&shard, &store, OTHER, "/d/other").await;
        let _third = add_table(&shard, &store, THIRD, "/d/third").await;
        store.recover(&earlier, |_| true, OnCorruption::Stop).await.unwrap();
        assert_eq!(rows(&again, 1, Slice::all()).await, []);
    })
    .unwrap();
}

/// The log has its rows and says that nobody wants them; without that word who reads the log is told which tables are gone.
#[test]
fn what_was_never_flushed_of_a_table_that_was_removed_is_not_replayed() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, _) = open(&shard, "/d/t", "/log").await;
        let _other = add_table(&shard, &store, OTHER, "/d/other").await;
        for id in [TABLE, OTHER] {
            store.write(id, row(1, 1, 1, 1)).await.unwrap();
        }
        store.log().sync().await.unwrap();
        // As a crash leaves it now.
        let before = EarlierLog::find(shard.disk(), Path::new("/log")).unwrap();
        let (wanted, gone) = (before.clone(), before.without(vec![TABLE]));
        let replayed = async |log: &EarlierLog| {
            let mut ids = Vec::new();
            let note = async |id, _: &[u8]| {
                ids.push(id);
                Ok(())
            };
            siltstone_storage::store::replay(shard.disk(), log, OnCorruption::Stop, note).await.unwrap();
            ids
        };
        assert_eq!(replayed(&wanted).await, [TABLE, OTHER]);
        assert_eq!(replayed(&gone).await, [OTHER]);
        store.remove_table(TABLE).await.unwrap();
        assert_eq!(replayed(&wanted).await, [OTHER]);
        store.close().await.unwrap();
    })
    .unwrap();
}

/// What it has in memory counts for nothing from then on, however long somebody has the table, and whatever becomes of it.
#[test]
fn the_memtable_of_a_table_that_was_removed_is_not_among_those_of_all() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        let other = add_table(&shard, &store, OTHER, "/d/other").await;
        for number in 0..20 {
            store.write(TABLE, row(number, 1, 1, 1)).await.unwrap();
        }
        store.write(OTHER, row(1, 1, 1, 1)).await.unwrap();
        let of_other = other.memtable_bytes();
        assert_eq!(store.memtable_bytes(), table.memtable_bytes() + of_other);
        store.remove_table(TABLE).await.unwrap();
        assert_eq!(store.memtable_bytes(), of_other);
        table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
        drop(table);
        assert_eq!(store.memtable_bytes(), of_other);
        store.flush(&other).await.unwrap();
        assert_eq!(store.memtable_bytes(), 0);
    })
    .unwrap();
}

/// Nothing is left for the next start to read once all is in SSTables; what is not stays, with the marks of the others.
#[test]
fn a_log_that_is_flushed_is_closed_without_its_records() {
    run_simulated(SimOptions::default(), async |shard| {
        for (log, flushes_all) in [("/flushed", true), ("/held", false)] {
            let (store, table) = open(&shard, &format!("/d{log}"), log).await;
            let other = add_table(&shard, &store, OTHER, &format!("/other{log}")).await;
            store.write(OTHER, row(1, 1, 1, 1)).await.unwrap();
            for number in 0..100 {
                store.write(TABLE, row(number, 1, 1, 1)).await.unwrap();
            }
            store.flush(&table).await.unwrap();
            if flushes_all {
                store.flush(&other).await.unwrap();
            }
            store.close().await.unwrap();
            let earlier = [EarlierLog::find(shard.disk(), Path::new(log)).unwrap()];
            let mut bytes = 0;
            for path in earlier[0].paths() {
                bytes += shard.disk().open(path, IoClass::default()).await.unwrap().len();
            }
            assert_eq!(bytes < 200, flushes_all, "{bytes} bytes");
            let next = format!("{log}-next");
            let (store, table) = open(&shard, &format!("/d{log}"), &next).await;
            let other = add_table(&shard, &store, OTHER, &format!("/other{log}")).await;
            let replayed = store.recover(&earlier, |_| true, OnCorruption::Stop).await.unwrap();
            assert_eq!(replayed[0].records == 0, flushes_all);
            assert_eq!(table.sstables().members().len(), 1, "what the mark covers is not there again");
            assert_eq!(rows(&other, 1, Slice::all()).await.len(), 1);
        }
    })
    .unwrap();
}

/// What a version cannot hold, as what expires after 2038, is merged into `oa`. What no version holds is left alone, and keeps no other
/// compaction back.
#[test]
fn what_cannot_be_merged_keeps_nothing_back() {
    const AFTER_2038: i64 = 1 << 31;
    let of_version = |shard: &Shard, store: &Store, table: &Table, version| {
        let (store, table, _) = (store.clone(), table.clone(), shard);
        async move {
            let definition = Definition { version, ..(*table.definition()).clone() };
            store.set_definition(&table, definition).await.unwrap();
        }
    };
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        of_version(&shard, &store, &table, Version::Oa).await;
        for partition in 1..=4 {
            store.write(TABLE, expiring(partition, AFTER_2038)).await.unwrap();
            store.flush(&table).await.unwrap();
        }
        of_version(&shard, &store, &table, Version::Me).await;
        store.begin_compactions();
        runtime::sleep(Duration::from_secs(100)).await;
        let versions: Vec<Version> =
            table.sstables().members().iter().map(|member| member.sstable.version()).collect();
        assert_eq!((versions, store.compaction_stats().failed), (vec![Version::Oa], 0));
        // A deletion of a partition before 1970 goes into no `oa`, and this is no longer in anything else.
        for partition in 1..=3 {
            store.write(TABLE, deleted_before_1970(partition)).await.unwrap();
            store.flush(&table).await.unwrap();
        }
        runtime::sleep(Duration::from_secs(200)).await;
        assert_eq!(store.compaction_stats().failed, 1, "and not again and again");
        for number in 0..4 {
            store.write(TABLE, row(9, number, 1, 1)).await.unwrap();
            store.flush(&table).await.unwrap();
        }
        runtime::sleep(Duration::from_secs(200)).await;
        assert_eq!((store.compaction_stats().failed, table.sstables().members().len()), (1, 5));
        store.compact(&table).await.unwrap_err();
        assert_eq!(rows(&table, 9, Slice::all()).await.len(), 4);
    })
    .unwrap();
}

/// A write of one row, of which the value expires at this second.
fn expiring(partition: i32, at: i64) -> Vec<u8> {
    let value = CellValue::Value(Bytes::from(&1_i32.to_be_bytes()[..]));
    let cell = Cell { column: 0, ttl: 60, timestamp: 1, local_deletion_time: at, path: None, value };
    let row = Row { cells: vec![cell], ..Row::new(clustering(1)) };
    let mutation = Mutation { rows: vec![row], ..Mutation::new(key(partition)) };
    let mut record = Vec::new();
    flat::put_mutation(&mutation, &mut record);
    record
}

/// A deletion of a partition of which `oa` cannot tell the timestamp.
fn deleted_before_1970(partition: i32) -> Vec<u8> {
    let deletion = DeletionTime { marked_for_delete_at: -5, local_deletion_time: i64::from(i32::MAX - 5) };
    let mutation = Mutation { deletion, ..Mutation::new(key(partition)) };
    let mut record = Vec::new();
    flat::put_mutation(&mutation, &mut record);
    record
}

/// What is awaited beside something else.
type Awaited<'a> = std::pin::Pin<Box<dyn Future<Output = siltstone_storage::Result<()>> + 'a>>;

#[test]
fn a_crash_loses_nothing_that_was_answered() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        for number in 0..50 {
            store.write(TABLE, row(1, number, 1, 1)).await.unwrap();
            if number == 20 {
                store.flush(&table).await.unwrap();
            }
        }
        let before = rows(&table, 1, Slice::all()).await;
        drop((store, table));
        shard.disk().as_simulated().unwrap().restart();
        let (store, table) = open(&shard, "/d/t", "/log2").await;
        let logs = [EarlierLog::find(shard.disk(), Path::new("/log")).unwrap()];
        let replayed = store.recover(&logs, |_| true, OnCorruption::Stop).await.unwrap();
        assert_eq!(rows(&table, 1, Slice::all()).await, before);
        // What was flushed before is not applied again; it would be a third SSTable.
        assert_eq!((replayed.len(), table.sstables().members().len()), (1, 2));
    })
    .unwrap();
}

/// Its folder may only be out of sight.
#[test]
fn writes_to_a_table_that_is_not_there_are_not_left_out_unasked() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, _) = open(&shard, "/d/t", "/log").await;
        let other = add_table(&shard, &store, OTHER, "/d/other").await;
        store.write(TABLE, row(1, 1, 1, 1)).await.unwrap();
        store.write(OTHER, row(1, 1, 1, 1)).await.unwrap();
        store.flush(&other).await.unwrap();
        let logs = || [EarlierLog::find(shard.disk(), Path::new("/log")).unwrap()];
        let (later, _) = open(&shard, "/d/t", "/log2").await;
        later.recover(&logs(), |_| true, OnCorruption::Stop).await.expect("what was flushed nobody misses");
        drop(later);
        store.write(OTHER, row(1, 2, 1, 1)).await.unwrap();
        let (later, table) = open(&shard, "/d/t", "/log3").await;
        let error = later.recover(&logs(), |_| true, OnCorruption::Stop).await.unwrap_err().to_string();
        assert!(error.contains("1 writes of a table"), "{error}");
        later.recover(&logs(), |_| true, OnCorruption::Salvage).await.unwrap();
        assert_eq!(rows(&table, 1, Slice::all()).await, [(1, 1)]);
    })
    .unwrap();
}

/// Writes rows of another table until the log has gone on to the next segment: the one of before stays for them.
async fn hold_segment(store: &Store) {
    let segment = store.log().position().segment;
    while store.log().position().segment == segment {
        store.write(OTHER, row(1, 1, 1, 1)).await.unwrap();
    }
}

/// What a compaction has forgotten together with its deletion does not come back, whenever the power fails while the log
/// is removed that has both.
#[test]
fn a_log_that_is_removed_in_part_brings_nothing_back() {
    for (seed, operation) in (0..100).flat_map(|seed| (0..10).map(move |operation| (seed, operation))) {
        let options = SimOptions { seed, ..SimOptions::default() };
        run_simulated(options.clone(), async |shard| {
            let (store, table) = open(&shard, "/d/t", "/log").await;
            let _other = add_table(&shard, &store, OTHER, "/d/other").await;
            for record in [row(1, 1, 1, 1), deletion(1, 1, 2), row(1, 2, 1, 1)] {
                store.write(TABLE, record).await.unwrap();
                hold_segment(&store).await;
            }
            store.flush(&table).await.unwrap();
            store.compact(&table).await.unwrap();
            drop((store, table));
            let earlier = [EarlierLog::find(shard.disk(), Path::new("/log")).unwrap()];
            assert!(earlier[0].paths().count() >= 4);
            let (store, table) = open(&shard, "/d/t", "/log2").await;
            let _other = add_table(&shard, &store, OTHER, "/d/other").await;
            store.recover(&earlier, |_| true, OnCorruption::Stop).await.unwrap();
            let disk = shard.disk().as_simulated().unwrap();
            let crash_at = Some(disk.counters().operations + operation);
            disk.set_options(SimOptions { crash_at, ..options.clone() });
            drop(earlier[0].remove(shard.disk()).await);
            drop((store, table));
            disk.set_options(options);
            disk.restart();
            let left = [EarlierLog::find(shard.disk(), Path::new("/log")).unwrap()];
            let (store, table) = open(&shard, "/d/t", "/log3").await;
            let _other = add_table(&shard, &store, OTHER, "/d/other").await;
            store.recover(&left, |_| true, OnCorruption::Stop).await.unwrap();
            assert_eq!(rows(&table, 1, Slice::all()).await, [(2, 1)], "seed {seed}, operation {operation}");
        })
        .unwrap();
    }
}

/// What is older than a deletion that a compaction has forgotten is seen, as it is without the cache.
#[test]
fn the_row_cache_forgets_what_a_compaction_does() {
    let some = Slice { start: Position::before(clustering(0)), end: Position::after(clustering(9)) };
    for (slice, wholes) in [(Slice::all(), [2, 1]), (some, [0, 0])] {
        run_simulated(SimOptions::default(), async |shard| {
            let (store, table) = open(&shard, "/d/t", "/log").await;
            for number in [1, 2] {
                store.write(TABLE, row(number, 1, 1, 1)).await.unwrap();
                store.write(TABLE, row(number, 2, 1, 1)).await.unwrap();
            }
            store.write(TABLE, deletion(1, 1, 10)).await.unwrap();
            store.flush(&table).await.unwrap();
            for number in [1, 2, 1, 2] {
                assert_eq!(rows(&table, number, slice.clone()).await.len(), number as usize);
            }
            let stats = table.row_cache().stats();
            assert_eq!((stats.parts, stats.wholes), (2, wholes[0]));
            store.compact(&table).await.unwrap();
            let stats = table.row_cache().stats();
            assert_eq!((stats.parts, stats.wholes), (1, wholes[1]), "what stays true stays");
            store.write(TABLE, row(1, 1, 7, 5)).await.unwrap();
            assert_eq!(rows(&table, 1, slice.clone()).await, [(1, 7), (2, 1)]);
        })
        .unwrap();
    }
}

/// A compaction that somebody waits for is not given up because there is more to merge by the time that another one asks,
/// whenever that is.
#[test]
fn who_waits_for_a_compaction_gets_it() {
    let asked_again = |later: u64| {
        run_simulated(SimOptions::default(), async move |shard| {
            let (store, table) = open(&shard, "/d/t", "/log").await;
            for partition in 1..=2 {
                for number in 0..3000 {
                    store.write(TABLE, row(partition, number, partition, 1)).await.unwrap();
                }
                store.flush(&table).await.unwrap();
            }
            store.write(TABLE, row(3, 1, 3, 1)).await.unwrap();
            let (first, other) = (store.clone(), table.clone());
            let first = runtime::spawn(async move {
                runtime::sleep(Duration::from_micros(later)).await;
                first.compact(&other).await
            });
            store.flush(&table).await.unwrap();
            store.compact(&table).await.unwrap();
            first.await.unwrap();
            assert_eq!((store.compaction_stats().failed, table.sstables().members().len()), (0, 1));
            for (partition, count) in [(1, 3000), (2, 3000), (3, 1)] {
                assert_eq!(rows(&table, partition, Slice::all()).await.len(), count);
            }
        })
        .unwrap();
    };
    (0..20).for_each(|step| asked_again(step * 500));
}

#[test]
fn compactions_are_run_by_themselves() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        store.begin_compactions();
        for round in 0..20 {
            store.write(TABLE, row(1, round, round, i64::from(round))).await.unwrap();
            store.flush(&table).await.unwrap();
        }
        runtime::sleep(std::time::Duration::from_secs(100)).await;
        let stats = store.compaction_stats();
        assert!(table.sstables().members().len() < 4 && stats.done >= 5 && stats.failed == 0, "{stats:?}");
        assert_eq!((rows(&table, 1, Slice::all()).await.len(), table.pending_compactions()), (20, 0));
        store.compact(&table).await.unwrap();
        assert_eq!(table.sstables().members().len(), 1);
        assert_eq!(rows(&table, 1, Slice::all()).await.len(), 20);
        store.close().await.unwrap();
    })
    .unwrap();
}

/// Each of many SSTables is opened by a few small reads, many at a time, and all that stays of them is counted.
#[test]
fn many_sstables_are_opened_by_little() {
    const COUNT: u64 = 300;
    run_simulated(SimOptions { max_delay: 100, ..SimOptions::default() }, async |shard| {
        let (store, table) = open(&shard, "/d/t", "/log").await;
        for number in 0..COUNT {
            store.write(TABLE, row(number as i32, number as i32, number as i32, 1)).await.unwrap();
            store.flush(&table).await.unwrap();
        }
        store.close().await.unwrap();
        drop((store, table));
        let before = shard.disk().stats().total();
        let (store, table) = open(&shard, "/d/t", "/log").await;
        let read = shard.disk().stats().total().since(&before);
        let (requests, bytes) = (read.requests / COUNT, read.bytes / COUNT);
        let each = store.context().cache.reserved() / COUNT as usize;
        println!("{requests} requests and {bytes} bytes an SSTable, {each} bytes stay");
        assert!(requests <= 5 && bytes <= 8192 && each <= 8192);
        assert_eq!(table.sstables().members().len(), COUNT as usize);
        assert_eq!(rows(&table, 77, Slice::all()).await, [(77, 77)]);
    })
    .unwrap();
}
