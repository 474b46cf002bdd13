//! Flushes, compactions and writes that fail or are given up leave nothing behind that harms.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use model::{
    Bytes, Clustering, CqlType, DeletionTime, FragmentReader, Liveness, Mutation, PartitionKey, Row, Schema,
    Token, flat,
};
use runtime::{Cache, IoClass, Shard, SimOptions, run_simulated, sleep, timeout};
use siltstone_storage::commit_log::{EarlierLog, LogPosition, OnCorruption, SyncMode, TableId};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::table::clean_folder;
use siltstone_storage::{Context, Definition, Generations, Result, Store, StoreOptions, Table};
use sstable::Version;

const A: TableId = TableId([1; 16]);
const B: TableId = TableId([2; 16]);

fn schema() -> Rc<Schema> {
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), Vec::new()))
}

/// The write of a row.
fn row(number: i32) -> Vec<u8> {
    let clustering = std::iter::once(&number.to_be_bytes()[..]).collect::<Clustering>();
    let row = Row { liveness: Liveness { timestamp: 1, ..Liveness::NONE }, ..Row::new(clustering) };
    let key = PartitionKey::new(Bytes::from(&1_i32.to_be_bytes()[..]));
    let mut record = Vec::new();
    flat::put_mutation(&Mutation { rows: vec![row], ..Mutation::new(key) }, &mut record);
    record
}

/// Everything small.
fn options() -> StoreOptions {
    let mut options = StoreOptions { memtables: 2000, ..StoreOptions::default() };
    options.log.sync = SyncMode::Batch;
    options.log.segment_size = 300;
    options
}

async fn open(shard: &Shard, options: StoreOptions) -> (Store, Vec<Table>) {
    let disk = shard.disk();
    let earlier = EarlierLog::find(disk, Path::new("/log")).unwrap();
    let store = Store::open(shard, Path::new("/log"), options).await.unwrap();
    let mut tables = Vec::new();
    for (id, folder) in [(A, "/d/a"), (B, "/d/b")] {
        disk.create_dir_all(Path::new(folder)).await.unwrap();
        for above in ["/d", "/"] {
            disk.sync_dir(Path::new(above)).await.unwrap();
        }
        clean_folder(disk, Path::new(folder)).await.unwrap();
        let definition = Definition::new(id, &schema(), Version::Nb);
        tables.push(store.add_table(Path::new(folder), definition, &Generations::default()).await.unwrap());
    }
    store.recover(std::slice::from_ref(&earlier), |_| true, OnCorruption::Stop).await.unwrap();
    earlier.remove(disk).await.unwrap();
    (store, tables)
}

/// How many rows there are.
async fn rows(table: &Table) -> usize {
    let (mut stream, mut rows) = (table.scan(None, Token::MAX, None).await.unwrap(), 0);
    while let Some(fragment) = stream.next().await.unwrap() {
        rows += usize::from(matches!(fragment, model::Fragment::Row(_)));
    }
    rows
}

fn files(shard: &Shard, folder: &str, part: &str) -> usize {
    let files = shard.disk().list(Path::new(folder)).unwrap();
    files.iter().filter(|path| path.to_str().unwrap().contains(part)).count()
}

fn set(shard: &Shard, options: SimOptions) {
    shard.disk().as_simulated().unwrap().set_options(options);
}

#[test]
fn a_log_is_not_replayed_into_its_own_store() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, _) = open(&shard, options()).await;
        store.write(A, row(1)).await.unwrap();
        store.close().await.unwrap();
        let (store, tables) = open(&shard, options()).await;
        assert_eq!(files(&shard, "/log", "commitlog"), 1, "the log that is open");
        store.write(A, row(2)).await.unwrap();
        store.close().await.unwrap();
        drop(tables);
        let (_, tables) = open(&shard, options()).await;
        assert_eq!(rows(&tables[0]).await, 2);
    })
    .unwrap();
}

#[test]
fn a_flush_that_is_given_up_is_done_by_the_next() {
    for micros in 0..60 {
        run_simulated(SimOptions { max_delay: 5, seed: micros, ..SimOptions::default() }, async |shard| {
            let (store, tables) = open(&shard, options()).await;
            store.write(A, row(1)).await.unwrap();
            drop(timeout(Duration::from_micros(micros), store.flush(&tables[0])).await);
            store.write(A, row(2)).await.unwrap();
            let flushed = store.flush(&tables[0]).await;
            // It may have been given up while it was committed.
            assert!(flushed.is_ok() || micros > 20, "{flushed:?}");
            assert_eq!(rows(&tables[0]).await, 2);
            drop(store.close().await);
            sleep(Duration::from_secs(1)).await;
            let (_, tables) = open(&shard, options()).await;
            assert_eq!(rows(&tables[0]).await, 2);
        })
        .unwrap();
    }
}

#[test]
fn a_flush_that_fails_leaves_no_second_copy() {
    let mut failures = 0;
    for seed in 0..100 {
        failures += run_simulated(SimOptions::default(), async |shard| {
            let (store, tables) = open(&shard, options()).await;
            store.write(A, row(1)).await.unwrap();
            set(
                &shard,
                SimOptions { seed, write_error_chance: 0.02, io_error_chance: 0.1, ..SimOptions::default() },
            );
            let mut failures = 0;
            for _ in 0..3 {
                failures += usize::from(store.flush(&tables[0]).await.is_err());
            }
            set(&shard, SimOptions::default());
            drop(store.flush(&tables[0]).await);
            let sstables = tables[0].sstables().members().len();
            assert!(sstables <= 1);
            drop(store.close().await);
            shard.disk().as_simulated().unwrap().restart();
            clean_folder(shard.disk(), Path::new("/d/a")).await.unwrap();
            assert!(files(&shard, "/d/a", "Data.db") <= 1, "seed {seed}");
            let (_, tables) = open(&shard, options()).await;
            assert_eq!(rows(&tables[0]).await, 1);
            failures
        })
        .unwrap();
    }
    println!("{failures} of 300 flushes failed");
    assert!((100..300).contains(&failures), "some come to their ends");
}

#[test]
fn a_compaction_that_fails_is_no_obstacle() {
    let mut failures = 0;
    for seed in 0..100 {
        failures += run_simulated(SimOptions::default(), async |shard| {
            let (store, tables) = open(&shard, options()).await;
            for number in 0..3 {
                store.write(A, row(number)).await.unwrap();
                store.flush(&tables[0]).await.unwrap();
            }
            set(&shard, SimOptions { seed, write_error_chance: 0.05, ..SimOptions::default() });
            let mut failures = 0;
            for _ in 0..6 {
                let inputs = tables[0].compactable();
                let rewritten = tables[0].rewrite(&Rewrite::into_one(inputs), &Control::default()).await;
                failures += usize::from(rewritten.is_err());
            }
            set(&shard, SimOptions { seed, ..SimOptions::default() });
            drop(store.close().await);
            shard.disk().as_simulated().unwrap().restart();
            let (_, tables) = open(&shard, options()).await;
            assert_eq!(rows(&tables[0]).await, 3, "seed {seed}");
            failures
        })
        .unwrap();
    }
    println!("{failures} of 600 compactions failed");
    assert!((100..600).contains(&failures), "some come to their ends");
}

/// Before it begins, and once some of it is written.
#[test]
fn a_compaction_that_is_cancelled_changes_nothing() {
    /// Some turns of a rewrite: a turn is 512 fragments.
    const ROWS: i32 = 2000;
    run_simulated(SimOptions::default(), async |shard| {
        let mut options = StoreOptions { memtables: 1 << 20, ..options() };
        options.log.segment_size = 1 << 20;
        let (store, tables) = open(&shard, options).await;
        for half in [0..ROWS / 2, ROWS / 2..ROWS] {
            for number in half {
                store.write(A, row(number)).await.unwrap();
            }
            store.flush(&tables[0]).await.unwrap();
        }
        let before = shard.disk().list(Path::new("/d/a")).unwrap();
        let rewritten = async |control: &Control| {
            tables[0].rewrite(&Rewrite::into_one(tables[0].compactable()), control).await
        };
        let control = Control::default();
        control.cancel();
        assert!(matches!(rewritten(&control).await, Err(siltstone_storage::Error::Cancelled)));

        // So slow that it is held back behind its first turn.
        let control = Control::throttled(Some(1));
        let cancelling = control.clone();
        let cancels = runtime::spawn(async move {
            while cancelling.progress().0 == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            cancelling.cancel();
        });
        assert!(matches!(rewritten(&control).await, Err(siltstone_storage::Error::Cancelled)));
        cancels.await;
        let (done, total) = control.progress();
        assert!(0 < done && done < total, "{done} of {total}");

        assert_eq!(shard.disk().list(Path::new("/d/a")).unwrap(), before);
        assert_eq!((tables[0].compactable().len(), rows(&tables[0]).await), (2, ROWS as usize));
        assert_eq!(rewritten(&Control::default()).await.unwrap().len(), 1);
        assert_eq!(rows(&tables[0]).await, ROWS as usize);
    })
    .unwrap();
}

/// A log of nothing but marks has nothing to flush, and is let go of all the same.
#[test]
fn a_log_that_is_too_long_becomes_shorter_by_itself() {
    run_simulated(SimOptions::default(), async |shard| {
        let mut options = StoreOptions { memtables: 1 << 20, ..options() };
        options.log.total_size = 1500;
        let (store, tables) = open(&shard, options).await;
        store.write(A, row(1)).await.unwrap();
        store.flush(&tables[0]).await.unwrap();
        for number in 0..100 {
            store.write(B, row(number)).await.unwrap();
        }
        sleep(Duration::from_secs(1)).await;
        assert!(store.log().pressure().is_empty() && store.log().size() < 2000, "{}", store.log().size());
    })
    .unwrap();
}

/// Whoever waits for memory is told when there is none to come.
#[test]
fn no_write_waits_for_ever() {
    for (seed, is_given_up) in (0..20).flat_map(|seed| [(seed, false), (seed, true)]) {
        let disk = SimOptions { seed, max_delay: 50, ..SimOptions::default() };
        run_simulated(disk.clone(), async |shard| {
            let (store, _tables) = open(&shard, StoreOptions { memtables: 100, ..options() }).await;
            if is_given_up {
                assert!(timeout(Duration::ZERO, store.write(A, row(1))).await.is_none());
            } else {
                let crash_at = Some(shard.disk().as_simulated().unwrap().counters().operations);
                set(&shard, SimOptions { crash_at, ..disk });
                store.write(A, row(1)).await.unwrap_err();
            }
            let second: Option<Result<()>> = timeout(Duration::from_secs(60), store.write(A, row(2))).await;
            assert!(second.is_some_and(|second| second.is_ok() == is_given_up));
        })
        .unwrap();
    }
}

/// Where the disk is full nothing is written; once there is room again, all goes on by itself.
#[test]
fn writes_go_on_once_the_disk_has_room_again() {
    run_simulated(SimOptions::default(), async |shard| {
        let (store, tables) = open(&shard, options()).await;
        let mut written = 0;
        while tables[0].memtable_bytes() < 1800 {
            store.write(A, row(written)).await.unwrap();
            written += 1;
        }
        // There is room for the record of the write that begins a flush, and for no SSTable.
        let capacity = Some(bytes(&shard, &["/log", "/d/a", "/d/b"]).await + 500);
        set(&shard, SimOptions { capacity, ..SimOptions::default() });
        let refused = loop {
            match store.write(A, row(written)).await {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
            sleep(Duration::from_millis(1)).await;
        };
        assert!(refused.to_string().contains("no storage space"), "{refused}");
        sleep(Duration::from_secs(100)).await;
        store.write(A, row(written)).await.unwrap_err();
        set(&shard, SimOptions::default());
        sleep(Duration::from_secs(100)).await;
        store.write(A, row(written)).await.unwrap();
        assert_eq!((rows(&tables[0]).await, tables[0].sstables().members().len()), (written as usize + 1, 1));
    })
    .unwrap();
}

/// How large all files of these folders are.
async fn bytes(shard: &Shard, folders: &[&str]) -> u64 {
    let mut bytes = 0;
    for path in folders.iter().flat_map(|folder| shard.disk().list(Path::new(folder)).unwrap()) {
        bytes += shard.disk().open(&path, IoClass::default()).await.unwrap().len();
    }
    bytes
}

/// As the logs of old may have one.
#[test]
fn a_key_that_no_file_holds_is_told_by_the_flush() {
    run_simulated(SimOptions::default(), async |shard| {
        let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(1 << 20));
        let folder = Path::new("/d");
        shard.disk().create_dir_all(folder).await.unwrap();
        let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Blob], Vec::new(), Vec::new()));
        let definition = Definition::new(A, &schema, Version::Oa);
        let table = Table::open(&context, folder, definition, &Generations::default()).await.unwrap();
        for (len, is_held) in [(65_535, true), (65_536, false)] {
            let clustering = std::iter::once(&vec![7; len][..]).collect::<Clustering>();
            let row = Row { liveness: Liveness { timestamp: 1, ..Liveness::NONE }, ..Row::new(clustering) };
            let key = PartitionKey::new(Bytes::from(&1_i32.to_be_bytes()[..]));
            let mutation = Mutation { rows: vec![row], ..Mutation::new(key) };
            table.apply(&mutation, LogPosition { segment: 0, offset: 0 });
            let flushed = table.flush(LogPosition::default, async |_, _| Ok(())).await;
            assert_eq!(flushed.is_ok(), is_held);
            assert!(flushed.err().is_none_or(|error| error.to_string().contains("has 65536 bytes")));
        }
    })
    .unwrap();
}

/// Each write fits by itself, or did when the table had another version.
#[test]
fn what_its_version_cannot_hold_is_flushed_all_the_same() {
    run_simulated(SimOptions::default(), async |shard| {
        let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(1 << 20));
        let key = || PartitionKey::new(Bytes::from(&1_i32.to_be_bytes()[..]));
        let of_row = |change: &dyn Fn(&mut Row)| {
            let mut row = Row::new(std::iter::once(&1_i32.to_be_bytes()[..]).collect::<Clustering>());
            change(&mut row);
            Mutation { rows: vec![row], ..Mutation::new(key()) }
        };
        let at = |marked_for_delete_at, local_deletion_time| DeletionTime {
            marked_for_delete_at,
            local_deletion_time,
        };
        let (now, far) = (1_700_000_000, 3_000_000_000);
        let both = [of_row(&|row| row.deletion = at(5, now)), of_row(&|row| row.shadowable = at(6, now))];
        let late = [of_row(&|row| row.deletion = at(5, far))];
        let early = [Mutation { deletion: at(-5, now), ..Mutation::new(key()) }];
        let tried: [(&str, Version, &[Mutation], &str); 3] = [
            ("/a", Version::Me, &both, "/a/me-1-big-Data.db"),
            ("/b", Version::Me, &late, "/b/oa-2-big-Data.db"),
            ("/c", Version::Oa, &early, "/c/nb-2-big-Data.db"),
        ];
        for (folder, version, mutations, file) in tried {
            let folder = Path::new(folder);
            shard.disk().create_dir_all(folder).await.unwrap();
            let definition = Definition::new(A, &schema(), version);
            let table = Table::open(&context, folder, definition, &Generations::default()).await.unwrap();
            for mutation in mutations {
                table.apply(mutation, LogPosition { segment: 0, offset: 0 });
            }
            table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
            assert!(shard.disk().exists(Path::new(file)), "{file}: {:?}", shard.disk().list(folder).unwrap());
        }
    })
    .unwrap();
}
