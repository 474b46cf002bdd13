//! What a program that embeds the database may count on: when writes are durable, where it may wait, and how a database is closed.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runtime::ShardOptions;
use siltstone::Error;
use siltstone::database::{
    Batch, CommitLogOptions, Database, Options, Page, Row, Scan, Slice, SyncMode, Table, Write,
};

use crate::database::{CREATE, open, options};
use crate::scanned::scanned;

/// All of it is for several threads.
const _: () = {
    const fn all_threads<T: Send + Sync>() {}
    all_threads::<(Database, Table, Page, Row, Batch, Scan, Slice, Error)>();
};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

/// What the folder has at that moment is what a crash would leave.
#[test]
fn what_was_synced_is_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    // By itself the log would be durable after a minute.
    let sync = SyncMode::Periodic { period: Duration::from_secs(60) };
    let log = CommitLogOptions { sync, ..CommitLogOptions::default() };
    let database = Database::open(folder.path(), Options { log, ..options(2) }).wait().unwrap();
    let table = database.create_table(CREATE).wait().unwrap();
    for round in 0..5 {
        table
            .write((0..20).map(|k| Write::insert(k, round).set("v", "v")).collect::<Batch>())
            .wait()
            .unwrap();
        database.sync().wait().unwrap();
        let left = tempfile::tempdir().unwrap();
        copy(folder.path(), left.path());
        let later = open(left.path(), 2);
        assert_eq!(scanned(&later.table("t").unwrap(), 1000).len(), 20 * (round as usize + 1));
    }
    database.close().wait().unwrap();
    let readers = Options { read_only: true, ..options(2) };
    Database::open(folder.path(), readers).wait().unwrap().sync().wait().unwrap();
}

/// On a shard's thread nothing may block: not only where it would wait for ever, but always, so that a first try tells.
#[test]
fn a_wait_on_a_shard_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write((0..3).map(|c| Write::insert(1, c).set("v", "v")).collect::<Batch>()).wait().unwrap();
    let is_refused =
        |error: Error| matches!(&error, Error::Usage(what) if what.contains("await the answer instead"));
    let work = {
        let table = table.clone();
        async move || {
            let waits = [
                table.get(1, 1).wait().err(),
                table.write(Write::insert(2, 2).set("v", "v")).wait().err(),
                table.slice(1, Slice::all()).wait().err(),
            ];
            Ok((waits, table.get(2, 2).await?.is_some()))
        }
    };
    let (waits, is_written) = database.run_on(0, work).wait().unwrap();
    assert!(waits.into_iter().all(|error| error.is_some_and(is_refused)));
    assert!(!is_written, "what is refused is not done");
    // Who borrows a shard to show rows does its work too.
    let again = table.clone();
    let each = move |refused: &mut usize, _: siltstone::database::RowView<'_>| {
        *refused += usize::from(again.get(1, 1).wait().is_err_and(is_refused));
        ControlFlow::Continue(())
    };
    assert_eq!(table.fold(1, Slice::all(), 0, each).wait().unwrap().state, 3);
}

/// Services have their database in an `Arc`, and several of them may want to end it.
#[test]
fn a_database_is_closed_by_whoever_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let database = Arc::new(open(folder.path(), 2));
    let table = database.create_table(CREATE).wait().unwrap();
    table.write(Write::insert(1, 1).set("v", "v")).wait().unwrap();
    database.close().wait().unwrap();
    database.close().wait().unwrap();
    assert!(matches!(table.slice(1, Slice::all()).wait(), Err(Error::Closed(_))));
    assert!(matches!(database.sync().wait(), Err(Error::Closed(_))));
    // It is nobody's any more.
    assert_eq!(scanned(&open(folder.path(), 1).table("t").unwrap(), 10).len(), 1);
}

/// Who comes second waits as long as who came first, be it by a drop.
#[test]
fn all_who_close_a_database_wait_for_its_end() {
    for is_dropped in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(open(folder.path(), 2));
        let (sender, receiver) = async_channel::bounded(1);
        let work = database.run_on(1, async move || Ok(receiver.recv().await.unwrap_or(0))).begun();
        // It has begun, and nobody waits for it.
        let first = database.close().begun();
        let sends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            sender.send_blocking(7)
        });
        if is_dropped {
            drop(first);
            drop(Arc::into_inner(database));
        } else {
            database.close().wait().unwrap();
            first.wait().unwrap();
        }
        drop(open(folder.path(), 1));
        assert_eq!(work.wait().unwrap(), 7);
        sends.join().unwrap().unwrap();
    }
}

/// What a shard still has to do may wait for something that the closing thread does.
#[test]
fn a_thread_that_closes_goes_on_with_others() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let (sender, receiver) = async_channel::bounded(1);
    let work = database.run_on(0, async move || Ok(receiver.recv().await.unwrap_or(0))).begun();
    let both = async |_| {
        let send = async {
            sender.send(7).await.unwrap();
            Ok(())
        };
        let closes: [std::pin::Pin<Box<dyn Future<Output = siltstone::Result<()>>>>; 2] =
            [Box::pin(database.close()), Box::pin(send)];
        runtime::join_all(closes).await
    };
    let ended = runtime::run(ShardOptions::default(), both).unwrap();
    assert!(ended.into_iter().all(|end| end.is_ok()));
    assert_eq!(work.wait().unwrap(), 7);
}

#[test]
fn a_table_that_may_be_there_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let text = |table: &Table| std::fs::read_to_string(table.folder().join("schema.cql")).unwrap();
    let once = CREATE.replacen("TABLE", "TABLE IF NOT EXISTS", 1);
    let table = database.create_table(&once).wait().unwrap();
    table.write(Write::insert(1, 1).set("v", "v")).wait().unwrap();
    let before = text(&table);
    for again in [once.as_str(), "CREATE COLUMNFAMILY if not exists ks.t (other text PRIMARY KEY)"] {
        let same = database.create_table(again).wait().unwrap();
        assert_eq!((same.folder(), text(&same)), (table.folder(), before.clone()), "{again}");
        assert_eq!(scanned(&same, 10).len(), 1);
    }
    let error = database.create_table(CREATE).wait().unwrap_err();
    assert!(error.to_string().contains("there is a table ks.t already"), "{error}");
    assert_eq!(database.tables().len(), 1);
    database.close().wait().unwrap();
    assert_eq!(open(folder.path(), 1).tables().len(), 1, "its text is read again");
}

/// A copied table whose columns are those of its SSTables does not keep others from being compacted.
#[test]
fn tables_that_are_only_read_are_passed_over_by_a_compaction_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    for name in ["ks.a", "ks.b"] {
        let table = database.create_table(&CREATE.replace("ks.t", name)).wait().unwrap();
        for c in 0..2 {
            table.write(Write::insert(1, c).set("v", "v")).wait().unwrap();
            table.flush().wait().unwrap();
        }
    }
    let of_a = database.table("ks.a").unwrap().folder().to_path_buf();
    database.close().wait().unwrap();
    std::fs::remove_file(of_a.join("schema.cql")).unwrap();
    let database = open(folder.path(), 1);
    database.compact().wait().unwrap();
    let sstables = |folder: &Path| {
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with("-Data.db")).count()
    };
    assert_eq!((sstables(&of_a), sstables(database.table("ks.b").unwrap().folder())), (2, 1));
    assert!(database.table("ks.a").unwrap().compact().wait().is_err(), "one by itself says why");
}
