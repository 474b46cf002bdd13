//! Tables that are altered, dropped and flushed while others write, where a step fails, and where nobody waits for the end.

use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::Poll;
use std::time::Duration;

use model::{Bytes, Clustering, DeletionTime, Mutation, PartitionKey, Row};
use siltstone::Error;
use siltstone::database::{Batch, Database, Options, Pending, Write};
use siltstone::table_schema::TableSchema;

use crate::scanned::scanned;

const CREATE: &str = "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))";

fn open(folder: &Path, shards: usize) -> Database {
    let options = Options { shards, ..Options::default() };
    Database::open(folder, options).wait().unwrap()
}

/// Polls it so many times, while others go on, and drops it then.
async fn give_up_after<T>(polls: u32, mut pending: Pending<T>) {
    for _ in 0..polls {
        let ended = poll_fn(|context| Poll::Ready(Pin::new(&mut pending).poll(context).is_ready())).await;
        if ended {
            return;
        }
        runtime::sleep(Duration::from_micros(50)).await;
    }
}

/// What is begun on the shard's own thread, and given up there, comes to its end all the same: writes and later changes go on.
#[test]
fn what_is_given_up_on_its_own_shard_is_not_left_half_done() {
    for polls in [1, 2, 3, 5, 9, 17, 40] {
        let folder = tempfile::tempdir().unwrap();
        let database = Arc::new(open(folder.path(), 1));
        let table = database.create_table(CREATE).wait().unwrap();
        let (asked, again) = (database.clone(), table.clone());
        let work = async move || {
            for number in 0..4 {
                again.write(Write::insert(number, 1).set("v", "a")).await?;
                give_up_after(polls, again.flush()).await;
            }
            give_up_after(polls, asked.alter_table(&format!("ALTER TABLE ks.t ADD a{polls} int"))).await;
            give_up_after(polls, again.compact()).await;
            again.write(Write::insert(9, 1).set("v", "a")).await?;
            again.flush().await
        };
        database.run_on(0, work).wait().unwrap();
        assert_eq!(scanned(&table, 100).len(), 5, "{polls} polls");
        database.alter_table("ALTER TABLE ks.t ADD last int").wait().unwrap();
        table.write(Write::insert(9, 2).set("last", 1)).wait().unwrap();
        database.drop_table("ks.t").wait().unwrap();
    }
}

/// A step that fails is taken back: the table is as before. Where that cannot be done either, nothing more is written to it.
#[test]
fn a_change_that_fails_is_taken_back_or_ends_writes() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write(Write::insert(1, 1).set("v", "a")).wait().unwrap();
    // No file can take the place of a folder, nor its name.
    let [schema, dropped] = ["schema.new", "dropped.new"].map(|name| table.folder().join(name));
    std::fs::create_dir(&schema).unwrap();
    std::fs::create_dir(&dropped).unwrap();
    database.alter_table("ALTER TABLE ks.t DROP v").wait().unwrap_err();
    database.drop_table("ks.t").wait().unwrap_err();
    table.write(Write::insert(1, 2).set("v", "b")).wait().unwrap();
    assert_eq!(scanned(&table, 10).len(), 2);
    std::fs::remove_file(table.folder().join("schema.cql")).unwrap();
    database.alter_table("ALTER TABLE ks.t ADD a int").wait().unwrap_err();
    let refused = table.write(Write::insert(1, 3).set("v", "c")).wait().unwrap_err();
    assert!(matches!(refused, Error::Closed(_)), "{refused}");
    assert_eq!(scanned(&table, 10).len(), 2, "it is read all the same");
}

/// What keeps a table from being flushed, as a full disk does, does not keep it from being dropped: that is what makes room.
#[test]
fn a_table_that_cannot_be_flushed_can_be_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    let other = database.create_table(&CREATE.replace("ks.t", "ks.other")).wait().unwrap();
    for number in 0..50 {
        table.write(Write::insert(number, 1).set("v", "a")).wait().unwrap();
        other.write(Write::insert(number, 1).set("v", "a")).wait().unwrap();
    }
    // No file can be made where there is a folder.
    for number in 1..100 {
        std::fs::create_dir(table.folder().join(format!("me-{number}-big-Data.db"))).unwrap();
    }
    table.flush().wait().unwrap_err();
    database.drop_table("ks.t").wait().unwrap();
    other.write(Write::insert(50, 1).set("v", "a")).wait().unwrap();
    assert!(!table.folder().join("schema.cql").exists());
    std::fs::remove_dir_all(table.folder()).unwrap();
    drop((table, other, database));
    let database = open(folder.path(), 2);
    assert_eq!(scanned(&database.table("ks.other").unwrap(), 100).len(), 51);
    database.table("ks.t").unwrap_err();
}

/// A process that ends within the drop of a table leaves its writes in the log. The next open brings it to its end.
#[test]
fn a_drop_that_was_cut_off_is_brought_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    let rows: Batch = (0..50).map(|number| Write::insert(number, 1).set("v", "a")).collect();
    table.write(rows).wait().unwrap();
    let of_table = table.folder().to_path_buf();
    drop(table);
    database.close().wait().unwrap();
    std::fs::write(of_table.join("dropped"), "").unwrap();
    for read_only in [true, false, false] {
        let options = Options { shards: 2, read_only, ..Options::default() };
        let database = Database::open(folder.path(), options).wait().unwrap();
        assert!(database.table("ks.t").is_err());
        drop(database);
        assert_eq!(of_table.exists(), read_only);
    }
}

/// Only its own rows go with a table: those of another one that has its id, as one made after it may have, stay.
#[test]
fn a_drop_that_is_left_takes_no_rows_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    let rows: Batch = (0..50).map(|number| Write::insert(number, 1).set("v", "a")).collect();
    table.write(rows).wait().unwrap();
    let name = table.folder().file_name().unwrap().to_str().unwrap();
    let left = table.folder().with_file_name(name.replace("t-", "left-"));
    drop(table);
    database.close().wait().unwrap();
    std::fs::create_dir(&left).unwrap();
    std::fs::write(left.join("dropped"), "").unwrap();
    let database = open(folder.path(), 2);
    assert_eq!(scanned(&database.table("ks.t").unwrap(), 100).len(), 50);
    assert!(!left.exists());
}

/// So does that of a table which was opened by its folder, with the logs there.
#[test]
fn a_drop_of_a_single_table_is_brought_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let schema = TableSchema::parse(Path::new("schema"), CREATE, None).unwrap();
    let of_table = folder.path().join("t");
    std::fs::create_dir(&of_table).unwrap();
    let open = || {
        let options = Options { shards: 1, ..Options::default() };
        Database::open_table_folder(&of_table, Some(schema.clone()), options).wait()
    };
    let database = open().unwrap();
    database.table("ks.t").unwrap().write(Write::insert(1, 1).set("v", "a")).wait().unwrap();
    database.close().wait().unwrap();
    std::fs::write(of_table.join("dropped"), "").unwrap();
    let refused = open().unwrap_err().to_string();
    assert!(refused.contains("was dropped"), "{refused}");
    let database = open().unwrap();
    assert!(scanned(&database.table("ks.t").unwrap(), 10).is_empty());
}

/// What changes nothing is not written down either: who asks for it at each start would have it a thousand times.
#[test]
fn an_alteration_that_changes_nothing_leaves_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    let text = || std::fs::read_to_string(table.folder().join("schema.cql")).unwrap();
    let before = text();
    for nothing in ["IF EXISTS ks.other ADD x int", "ks.t ADD IF NOT EXISTS v text", "ks.t DROP IF EXISTS x"]
    {
        database.alter_table(&format!("ALTER TABLE {nothing}")).wait().unwrap();
        assert_eq!(text(), before, "{nothing}");
    }
    database.alter_table("ALTER TABLE IF EXISTS ks.t ADD IF NOT EXISTS x int").wait().unwrap();
    assert_ne!(text(), before);
}

/// A table that is not made leaves nothing that the next open would take for one, and what was there stays.
#[test]
fn a_table_that_cannot_be_made_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let id = "11111111111111111111111111111111";
    let create = format!("{CREATE} WITH ID = 11111111-1111-1111-1111-111111111111");
    let path = folder.path().join("data/ks").join(format!("t-{id}"));
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("me-1-big-Data.db"), "no data").unwrap();
    database.create_table(&create).wait().unwrap_err();
    std::fs::rename(path.join("me-1-big-Data.db"), path.join("kept")).unwrap();
    database.create_table("CREATE TABLE ks.t (k int PRIMARY KEY)").wait().unwrap();
    database.close().wait().unwrap();
    let database = open(folder.path(), 1);
    assert_eq!(database.tables().len(), 1);
    assert!(path.join("kept").is_file());
    let second = CREATE.replace("ks.t", "ks.other") + " WITH ID = 11111111-1111-1111-1111-111111111111";
    database.create_table(&second).wait().unwrap();
    let third = second.replace("ks.other", "ks.third");
    assert!(database.create_table(&third).wait().unwrap_err().to_string().ends_with("has that id already"));
}

/// What is written while a column is dropped does not come back with a column of that name, however the two meet.
#[test]
fn a_dropped_column_takes_all_of_its_values_along() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    let next = AtomicI32::new(0);
    for round in 0..20 {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                // Until there is no such column.
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if table.write(Write::insert(number, 1).set("v", "old")).wait().is_err() {
                            break;
                        }
                    }
                });
            }
            database.alter_table("ALTER TABLE ks.t DROP v").wait().unwrap();
        });
        database.alter_table("ALTER TABLE ks.t ADD v text").wait().unwrap();
        let left = scanned(&table, 1000).into_iter().filter(|row| row.contains("old")).count();
        assert_eq!(left, 0, "round {round}");
    }
}

/// A column comes back as it was, or as something that holds its values: files have it as it was.
#[test]
fn a_column_does_not_come_back_as_another() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    // Newer than any drop of today.
    table.write(Write::insert(1, 1).set("v", "hello").timestamp(i64::MAX / 2)).wait().unwrap();
    database.alter_table("ALTER TABLE ks.t DROP v").wait().unwrap();
    let refused =
        |with: &str| database.alter_table(&format!("ALTER TABLE ks.t ADD v {with}")).wait().unwrap_err();
    assert!(refused("int").to_string().ends_with("v was dropped as a text: it cannot come back as a int"));
    refused("set<text>");
    refused("text static");
    database.alter_table("ALTER TABLE ks.t ADD v blob").wait().unwrap();
    table.compact().wait().unwrap();
    assert_eq!(scanned(&table, 10), [r#"{"k":1,"c":1,"v":"0x68656c6c6f"}"#]);
}

/// An SSTable with a column of another type than its table says is no part of it: its bytes would be taken for something else.
#[test]
fn files_of_another_table_are_not_taken_for_rows() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write(Write::insert(1, 1).set("v", "hello")).wait().unwrap();
    table.flush().wait().unwrap();
    let schema = table.folder().join("schema.cql");
    database.close().wait().unwrap();
    let text = std::fs::read_to_string(&schema).unwrap();
    std::fs::write(&schema, text.replace("v text", "v int")).unwrap();
    let options = Options { shards: 1, ..Options::default() };
    let refused = Database::open(folder.path(), options).wait().unwrap_err().to_string();
    assert!(refused.contains("the column v is of two types that do not go together"), "{refused}");
    std::fs::write(&schema, text.replace("v text", "v blob")).unwrap();
    assert_eq!(scanned(&open(folder.path(), 1).table("t").unwrap(), 10).len(), 1);
}

/// So many writes that wait for a change keep no shard from being told that it is over.
#[test]
fn a_table_is_altered_under_very_many_writes() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..10 {
                let rows = (0..5000).map(|k| Write::insert(k, round).set("v", "a"));
                table.write(rows.collect::<Batch>()).wait().unwrap();
            }
        });
        for number in 0..20 {
            database.alter_table(&format!("ALTER TABLE ks.t ADD a{number} int")).wait().unwrap();
        }
    });
    assert_eq!(scanned(&table, 100_000).len(), 50_000);
}

/// A write that was begun and is not waited for yet stands in nobody's way.
#[test]
fn a_write_that_is_not_waited_for_holds_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    let again = table.clone();
    let writes = database.run_on(0, async move || {
        for number in 0..2000 {
            let first = again.write(Write::insert(number, 1).set("v", "a")).begun();
            again.write(Write::insert(number, 2).set("v", "b")).await?;
            first.await?;
        }
        Ok(())
    });
    std::thread::scope(|scope| {
        let writing = scope.spawn(|| writes.wait().unwrap());
        for number in 0..20 {
            database.alter_table(&format!("ALTER TABLE ks.t ADD a{number} int")).wait().unwrap();
        }
        writing.join().unwrap();
    });
    assert_eq!(scanned(&table, 100_000).len(), 4000);
}

/// What is left of a static row whose columns were dropped says nothing.
#[test]
fn a_static_row_goes_with_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let create = "CREATE TABLE ks.t (k int, c int, s int static, v int, PRIMARY KEY (k, c))";
    let table = database.create_table(create).wait().unwrap();
    let deletion = DeletionTime { marked_for_delete_at: 5, local_deletion_time: 7 };
    let static_row = Some(Row { deletion, ..Row::new(Clustering::empty()) });
    let key = PartitionKey::new(Bytes::from(&1_i32.to_be_bytes()[..]));
    table.write_mutation(&Mutation { static_row, ..Mutation::new(key) }).wait().unwrap();
    table.flush().wait().unwrap();
    database.alter_table("ALTER TABLE ks.t DROP s").wait().unwrap();
    table.write(Write::insert(1, 1).set("v", 2)).wait().unwrap();
    table.flush().wait().unwrap();
    table.compact().wait().unwrap();
    assert_eq!(table.get(1, 1).wait().unwrap().unwrap().to_json().unwrap(), r#"{"k":1,"c":1,"v":2}"#);
    database.close().wait().unwrap();
}

/// It would be passed over when the database is opened again.
#[test]
fn a_table_of_a_server_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    for keyspace in ["system", "system_auth"] {
        let create = format!("CREATE TABLE {keyspace}.t (k int PRIMARY KEY)");
        let error = database.create_table(&create).wait().unwrap_err();
        assert!(matches!(&error, Error::Usage(what) if what.contains(keyspace)), "{error}");
    }
    database.close().wait().unwrap();
}

/// Who has made the table may know it.
#[test]
fn a_compressor_that_is_not_known_is_not_asked_for_anew() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let create = format!("{CREATE} WITH compression = {{'class': 'ZstdWithDictsCompressor'}}");
    let table = database.create_table(&create).wait().unwrap();
    let alter = "ALTER TABLE ks.t WITH compression = {'class': 'LZ4Compresor'}";
    let error = database.alter_table(alter).wait().unwrap_err().to_string();
    assert!(error.contains("there is no compressor \"LZ4Compresor\""), "{error}");
    database.alter_table("ALTER TABLE ks.t ADD w int").wait().unwrap();
    table.write(Write::insert(1, 1).set("w", 1)).wait().unwrap();
    table.flush().wait().unwrap();
    assert_eq!(scanned(&table, 100).len(), 1);
}
