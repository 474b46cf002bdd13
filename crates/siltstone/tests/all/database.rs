//! A database gives back what was written to it, however many shards it has, and whatever happens in between.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use model::{CqlType, Schema};
use siltstone::Error;
use siltstone::database::{
    Batch, Bound, Database, Folded, Options, Page, Row, RowView, Scan, Slice, Table, Value, Write,
};
use sstable::Version;
use sstable::parts::statistics::Statistics;
use storage::commit_log::{CommitLogOptions, SyncMode};

use crate::scanned::{json, scanned};

/// The statements that make a table with what most tests need.
pub(crate) const CREATE: &str =
    "CREATE TABLE ks.t (k int, c int, s text static, v text, tags set<text>, PRIMARY KEY (k, c))";

pub(crate) fn options(shards: usize) -> Options {
    let log = CommitLogOptions { sync: SyncMode::Batch, ..CommitLogOptions::default() };
    Options { shards, log, cache: 8 << 20, memtables: 8 << 20, direct_io: false, ..Options::default() }
}

pub(crate) fn open(folder: &Path, shards: usize) -> Database {
    Database::open(folder, options(shards)).wait().unwrap()
}

/// What a metric of the database says, all of its lines together.
fn metric(database: &Database, name: &str) -> u64 {
    let text = database.metrics().wait().unwrap();
    let lines =
        text.lines().filter_map(|line| line.strip_prefix(name)?.rsplit(' ').next()?.parse::<u64>().ok());
    lines.sum()
}

/// Rows of the partition of [`large_partition`], of 220 bytes each.
const LARGE: i32 = 20_000;

/// A table of one partition, all of it in one SSTable.
fn large_partition(database: &Database) -> Table {
    let create = "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c)) WITH compression = {'enabled': 'false'}";
    let table = database.create_table(create).wait().unwrap();
    let value = "v".repeat(200);
    for first in (0..LARGE).step_by(100) {
        let row = |c| Write::insert(1, c).set("v", value.as_str());
        table.write((first..first + 100).map(row).collect::<Batch>()).wait().unwrap();
    }
    table.flush().wait().unwrap();
    table
}

#[test]
fn a_scan_reads_a_large_partition_about_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = large_partition(&database);
    let before = metric(&database, "siltstone_read_bytes_total");
    assert_eq!(scanned(&table, 5000).len(), LARGE as usize);
    let (read, all) = (metric(&database, "siltstone_read_bytes_total") - before, 220 * LARGE as u64);
    assert!(all / 2 < read && read < all * 5 / 4, "{read} bytes were read of {all}");
}

#[test]
fn a_row_of_a_large_partition_costs_half_a_block() {
    // From its beginning to the row: what is rounded to 512 bytes is at both ends.
    for (column_index_size, expected) in
        [(Options::default().column_index_size, 1800..3300), (64 << 10, 22_000..44_000)]
    {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { column_index_size, ..options(1) };
        let database = Database::open(folder.path(), options).wait().unwrap();
        let table = large_partition(&database);
        let read_bytes = || metric(&database, "siltstone_read_bytes_total");
        // First reads bring in what stays of the index; others, right behind them, then cost the data alone.
        let read = |behind: i32| {
            (0..40).for_each(|part| drop(table.get(1, LARGE / 40 * part + behind).wait().unwrap().unwrap()));
        };
        read(0);
        let before = read_bytes();
        read(1);
        let each = (read_bytes() - before) / 40;
        assert!(expected.contains(&each), "{each} bytes a row, blocks of {column_index_size}");
    }
}

#[test]
fn rows_of_a_block_by_many_keys_cost_one_request() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), options(1)).wait().unwrap();
    let table = large_partition(&database);
    let first = |part: i32| LARGE / 40 * part;
    // What stays of the index, and of each block its first row.
    (0..40).for_each(|part| drop(table.get(1, first(part)).wait().unwrap().unwrap()));
    let before = metric(&database, "siltstone_read_requests_total");
    for part in 0..40 {
        let rows = table.get_many([2, 4, 3].map(|behind| (1, first(part) + behind))).wait().unwrap();
        let found = rows.iter().flatten().map(|row| row.to_json().unwrap()).collect::<Vec<_>>();
        for (row, behind) in found.iter().zip([2, 4, 3]) {
            assert!(row.contains(&format!(r#""c":{}"#, first(part) + behind)), "{row}");
        }
        assert_eq!(found.len(), 3);
    }
    let requests = metric(&database, "siltstone_read_requests_total") - before;
    // In some places a block ends among them.
    assert!((40..60).contains(&requests), "{requests} requests for 40 times three rows");

    // A hundred rows, which six blocks have, in no order: 32 of those that follow each other are read at a time.
    let before = metric(&database, "siltstone_read_requests_total");
    let some = (0..100).map(|number| first(20) + 100 + number * 37 % 100);
    let rows = table.get_many(some.clone().map(|number| (1, number))).wait().unwrap();
    for (row, number) in rows.iter().zip(some) {
        assert!(row.as_ref().unwrap().to_json().unwrap().contains(&format!(r#""c":{number},"#)));
    }
    let requests = metric(&database, "siltstone_read_requests_total") - before;
    assert!((5..12).contains(&requests), "{requests} requests for a hundred rows");
}

#[test]
fn what_is_written_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write(Write::insert(1, 2).set("v", "a").set("tags", serde_json::json!(["y", "x"]))).wait().unwrap();
    table
        .write(Write::update(1, 2).add("tags", serde_json::json!(["z"])).remove("tags", "y"))
        .wait()
        .unwrap();
    table.write(Write::update(1, ()).set("s", "static")).wait().unwrap();
    table.write(Write::update(2, ()).set("s", "alone")).wait().unwrap();
    let row = table.get(1, 2).wait().unwrap().unwrap();
    assert_eq!(row.to_json().unwrap(), r#"{"k":1,"c":2,"s":"static","tags":["x", "z"],"v":"a"}"#);
    assert!(table.get(1, 3).wait().unwrap().is_none());
    let alone = table.slice(2, Slice::all()).wait().unwrap();
    assert_eq!(json(&alone.rows), [r#"{"k":2,"c":null,"s":"alone","tags":null,"v":null}"#]);
    assert!(table.get(2, 1).wait().unwrap().is_none());
    assert_eq!(scanned(&table, 1).len(), 2);
    table.write(Write::delete_row(1, 2)).wait().unwrap();
    assert!(table.get(1, 2).wait().unwrap().is_none());
    database.close().wait().unwrap();
    assert!(matches!(table.get(1, 2).wait(), Err(Error::Closed(_))));
}

#[test]
fn slices_go_both_ways_page_by_page() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    let batch: Batch = (0..20).map(|c| Write::insert(1, c).set("v", format!("v{c}"))).collect();
    table.write(batch).wait().unwrap();
    let of = |page: &Page| -> Vec<i32> {
        page.rows.iter().map(|row| i32::from_be_bytes(row.get("c").unwrap().try_into().unwrap())).collect()
    };
    for (slice, expected) in [
        (Slice::all(), (0..20).collect::<Vec<_>>()),
        (Slice::all().reverse(), (0..20).rev().collect()),
        (Slice::all().from(Bound::including(3)).to(Bound::excluding(9)), (3..9).collect()),
        (Slice::all().from(Bound::excluding(3)).to(Bound::including(9)).reverse(), (4..10).rev().collect()),
    ] {
        for limit in [1, 7, 100] {
            let (mut found, mut next) = (Vec::new(), None);
            loop {
                let slice = slice.clone().columns(["c"]).limit(limit).resume(next);
                let page = table.slice(1, slice).wait().unwrap();
                found.extend(of(&page));
                next = page.next;
                if next.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "{limit}");
        }
    }
    let small = table.slice(1, Slice::all().limit_bytes(1)).wait().unwrap();
    assert_eq!(small.rows.len(), 1);
    table.write(Write::delete_range(1, Bound::including(5), Bound::Open)).wait().unwrap();
    assert_eq!(of(&table.slice(1, Slice::all()).wait().unwrap()), (0..5).collect::<Vec<_>>());
    table.write(Write::delete(1)).wait().unwrap();
    assert!(table.slice(1, Slice::all()).wait().unwrap().rows.is_empty());
}

#[test]
fn rows_are_looked_at_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    let tags = || serde_json::json!(["x", "y"]);
    let row = |c| Write::insert(1, c).set("v", format!("v{c}")).set("tags", tags());
    table.write((0..20).map(row).collect::<Batch>()).wait().unwrap();
    table
        .write([1, 2].map(|k| Write::update(k, ()).set("s", "static")).into_iter().collect::<Batch>())
        .wait()
        .unwrap();
    // From the memtable, from an SSTable, and from the cache.
    for round in 0..3 {
        let expected = json(&table.slice(1, Slice::all()).wait().unwrap().rows);
        assert_eq!(expected.len(), 20);
        for (break_off, limit) in [(3, 1000), (1000, 7), (1000, 1000)] {
            let (mut found, mut next) = (Vec::new(), None);
            loop {
                let each = move |rows: &mut Vec<String>, row: RowView<'_>| {
                    assert_eq!(row.columns().len(), 5);
                    rows.push(row.to_json().unwrap());
                    if rows.len() == break_off { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let slice = Slice::all().limit(limit).limit_bytes(1).resume(next);
                let folded = table.fold(1, slice, Vec::new(), each).wait().unwrap();
                assert!(folded.state.len() <= break_off.min(limit));
                found.extend(folded.state);
                next = folded.next;
                if next.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "round {round}");
        }
        let alone = table.fold(2, Slice::all(), 0, |count, row| {
            *count += usize::from(row.get("s") == Some(b"static") && row.get("c").is_none());
            ControlFlow::Continue(())
        });
        assert_eq!(alone.wait().unwrap(), Folded { state: 1, next: None });
        if round == 0 {
            table.flush().wait().unwrap();
        }
    }
    database.close().wait().unwrap();
    let closed = table.fold(1, Slice::all(), (), |_, _| ControlFlow::Continue(()));
    assert!(matches!(closed.wait(), Err(Error::Closed(_))));
}

#[test]
fn any_number_of_shards_opens_what_another_has_written() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 3);
    let table = database.create_table(CREATE).wait().unwrap();
    let write = |table: &Table, from: i32| {
        let batch: Batch = (from..from + 40).map(|k| Write::insert(k, k % 7).set("v", "v")).collect();
        table.write(batch).wait().unwrap();
    };
    write(&table, 0);
    table.flush().wait().unwrap();
    write(&table, 20);
    let mut expected = scanned(&table, 1000);
    assert_eq!(expected.len(), 60);
    drop(database);
    for shards in [1, 4, 2, 3, 1] {
        let database = open(folder.path(), shards);
        let table = database.table("ks.t").unwrap();
        for limit in [1000, 7] {
            assert_eq!(scanned(&table, limit), expected, "{shards}");
        }
        table.write(Write::insert(1000 + shards as i32, 1)).wait().unwrap();
        let is_there = |row: &String| expected.contains(row);
        let written = scanned(&table, 1000);
        // The last number of shards has been tried before, and its row is written again.
        let new: Vec<&str> = written.iter().filter(|row| !is_there(row)).map(String::as_str).collect();
        let row = format!(r#"{{"k":{},"c":1,"s":null,"tags":null,"v":null}}"#, 1000 + shards);
        assert!(written.contains(&row) && new.iter().all(|new| *new == row), "{new:?}");
        assert_eq!(written.len(), expected.len() + new.len());
        table.compact().wait().unwrap();
        assert_eq!(scanned(&table, 1000), written, "{shards}");
        expected = written;
        database.close().wait().unwrap();
    }
    assert_eq!(expected.len(), 64);
}

#[test]
fn only_one_opens_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let error = Database::open(folder.path(), options(1)).wait().unwrap_err().to_string();
    assert!(error.contains("the database is open already"), "{error}");
    drop(database);
    drop(open(folder.path(), 1));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    let error = |write: Write| table.write(write).wait().unwrap_err().to_string();
    assert_eq!(error(Write::insert("x", 1)), "k: x is not an int: an integer of 32 bits was expected");
    assert_eq!(error(Write::insert(1, 1).set("w", 1)), "the table ks.t has no column w");
    assert_eq!(
        error(Write::insert(1, ()).set("v", "a")),
        "ks.t has 1 clustering columns, of which 0 were given"
    );
    assert_eq!(error(Write::insert((1, 2), 1)), "the partition key of ks.t has 1 columns, not 2");
    assert_eq!(error(Write::insert(Value::Null, 1)), "k is a part of the key and cannot be null");
    assert!(database.create_table(CREATE).wait().is_err());
    assert!(database.table("t2").unwrap_err().to_string().ends_with("there is no table t2, but ks.t"));
}

/// SSTables have two bytes for the length of a value of a key.
#[test]
fn values_of_a_key_are_no_longer_than_their_lengths_have_room_for() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let create = "CREATE TABLE ks.t (k text, c text, v int, PRIMARY KEY (k, c))";
    let table = database.create_table(create).wait().unwrap();
    let [longest, longer] = [65_535, 65_536].map(|len| "x".repeat(len));
    table.write(Write::insert("k", &*longest).set("v", 1)).wait().unwrap();
    let refused = [
        table.write(Write::insert("k", &*longer).set("v", 1)).wait(),
        table.write(Write::delete_range("k", Bound::excluding(&*longer), Bound::Open)).wait(),
        table.write(Write::insert(&*longer, "c").set("v", 1)).wait(),
    ];
    for refused in refused {
        assert!(refused.unwrap_err().to_string().contains("65535"));
    }
    table.flush().wait().unwrap();
    database.close().wait().unwrap();
    let database = open(folder.path(), 1);
    let row = database.table("ks.t").unwrap().get("k", &*longest).wait().unwrap();
    assert!(row.is_some());
    database.close().wait().unwrap();
}

#[test]
fn an_altered_table_keeps_its_rows_and_drops_columns() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write(Write::insert(1, 1).set("v", "old")).wait().unwrap();
    table.write(Write::insert(2, 1).set("v", "old").set("tags", serde_json::json!(["a"]))).wait().unwrap();
    database.alter_table("ALTER TABLE ks.t DROP v").wait().unwrap();
    assert!(table.write(Write::insert(1, 1).set("v", "x")).wait().is_err());
    database.alter_table("ALTER TABLE ks.t ADD (a int, v text);").wait().unwrap();
    table.write(Write::insert(1, 2).set("v", "new").set("a", 7)).wait().unwrap();
    let expected = [
        r#"{"k":1,"c":1,"s":null,"a":null,"tags":null,"v":null}"#,
        r#"{"k":1,"c":2,"s":null,"a":7,"tags":null,"v":"new"}"#,
        r#"{"k":2,"c":1,"s":null,"a":null,"tags":["a"],"v":null}"#,
    ];
    assert_eq!(scanned(&table, 100), expected);
    assert!(database.alter_table("ALTER TABLE ks.t DROP nothing").wait().is_err());
    assert!(database.alter_table("ALTER TABLE ks.t DROP k").wait().is_err());
    assert!(database.alter_table("ALTER TABLE ks.t ADD v int").wait().is_err());
    drop(database);
    let database = open(folder.path(), 3);
    let table = database.table("t").unwrap();
    assert_eq!(scanned(&table, 100), expected);
    table.compact().wait().unwrap();
    assert_eq!(scanned(&table, 2), expected);
}

/// What a handle knows of the key is what every handle knows for ever.
#[test]
fn a_primary_key_is_not_altered() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let create = |what: &str| database.create_table(&format!("CREATE TABLE ks.{what}")).wait().unwrap();
    let rows = create("rows (k int, c int, v text, PRIMARY KEY (k, c))");
    let compact = create("compact (k int PRIMARY KEY, v int) WITH COMPACT STORAGE");
    let bare = create("bare (k int PRIMARY KEY)");
    rows.write(Write::insert(1, 1).set("v", "a")).wait().unwrap();
    compact.write(Write::insert(1, ()).set("v", 7)).wait().unwrap();
    bare.write(Write::insert(1, ())).wait().unwrap();
    for alter in [
        "rows WITH CLUSTERING ORDER BY (c DESC)",
        "rows DROP c",
        "rows ADD PRIMARY KEY (k)",
        "compact DROP v",
        "bare WITH COMPACT STORAGE",
    ] {
        assert!(database.alter_table(&format!("ALTER TABLE ks.{alter}")).wait().is_err(), "{alter}");
    }
    drop((rows, compact, bare, database));
    let database = open(folder.path(), 1);
    let json = |table: &str, row: Option<Row>| (table.to_owned(), row.unwrap().to_json().unwrap());
    let table = |name| database.table(name).unwrap();
    let found = [
        json("rows", table("rows").get(1, 1).wait().unwrap()),
        json("compact", table("compact").get(1, ()).wait().unwrap()),
        json("bare", table("bare").get(1, ()).wait().unwrap()),
    ];
    let expected =
        [("rows", r#"{"k":1,"c":1,"v":"a"}"#), ("compact", r#"{"k":1,"v":7}"#), ("bare", r#"{"k":1}"#)];
    assert_eq!(found, expected.map(|(table, row)| (table.to_owned(), row.to_owned())));
}

/// A partition of a hundred rows in an SSTable.
fn flushed_hundred(database: &Database) -> Table {
    let table =
        database.create_table("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))").wait().unwrap();
    table.write((0..100).map(|c| Write::insert(1, c).set("v", c)).collect::<Batch>()).wait().unwrap();
    table.flush().wait().unwrap();
    table
}

/// A row that memory has is given with the columns of its moment, whenever its handle was made.
#[test]
fn a_row_in_memory_has_the_columns_of_now() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = flushed_hundred(&database);
    let row = |c: i32| table.get(1, c).wait().unwrap().map(|row| row.to_json().unwrap());
    let twice = |c| {
        assert_eq!(row(c), row(c));
        row(c)
    };
    assert_eq!((twice(7), twice(700)), (Some(r#"{"k":1,"c":7,"v":7}"#.to_owned()), None));
    for (alter, expected) in [
        ("ADD a int", r#"{"k":1,"c":7,"a":null,"v":7}"#),
        ("ADD s int static", r#"{"k":1,"c":7,"s":null,"a":null,"v":7}"#),
        ("DROP v", r#"{"k":1,"c":7,"s":null,"a":null}"#),
    ] {
        database.alter_table(&format!("ALTER TABLE ks.t {alter}")).wait().unwrap();
        assert_eq!((twice(7), twice(700)), (Some(expected.to_owned()), None), "{alter}");
    }
}

#[test]
fn rows_in_memory_are_there_while_a_table_changes() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = flushed_hundred(&database);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let mut reads = 0;
            while reads < 1000 || !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let c = reads % 100;
                let row = table.get(1, c).wait().unwrap().expect("it is there");
                assert_eq!(row.json_of("v").unwrap(), c.to_string());
                assert!(table.get(1, 100 + c).wait().unwrap().is_none());
                reads += 1;
            }
        });
        for round in 0..10 {
            database.alter_table(&format!("ALTER TABLE ks.t ADD a{round} int")).wait().unwrap();
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        reads.join().unwrap();
    });
    assert_eq!(table.columns().len(), 13);
}

#[test]
fn a_dropped_table_stays_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write(Write::insert(1, 1)).wait().unwrap();
    table.snapshot("kept").wait().unwrap();
    let path = table.folder().to_path_buf();
    database.drop_table("ks.t").wait().unwrap();
    assert!(table.write(Write::insert(1, 1)).wait().unwrap_err().to_string().ends_with("was dropped"));
    assert!(path.join("snapshots/kept/schema.cql").is_file());
    database.create_table(CREATE).wait().unwrap();
    drop(database);
    let database = open(folder.path(), 2);
    assert_eq!(scanned(&database.table("ks.t").unwrap(), 10), [""; 0]);
}

/// SSTables from before a type of the clustering key got another field, or another name of one, are of the table.
#[test]
fn a_type_in_a_key_gets_a_field() {
    let folder = tempfile::tempdir().unwrap();
    let before = "CREATE TYPE ks.p (a int); ";
    let create = "CREATE TABLE ks.t (k int, c frozen<p>, v int, PRIMARY KEY (k, c))";
    // The length of each part, and an int of it.
    let key = |parts: &[i32]| -> Value {
        let parts = parts.iter().flat_map(|part| [4, *part]).flat_map(i32::to_be_bytes);
        Value::Raw(parts.collect())
    };
    let write = |table: &Table, keys: &[&[i32]]| {
        for parts in keys {
            table.write(Write::insert(1, key(parts)).set("v", parts.iter().sum::<i32>())).wait().unwrap();
        }
        table.flush().wait().unwrap();
    };
    let database = open(folder.path(), 1);
    let table = database.create_table(&format!("{before}{create}")).wait().unwrap();
    write(&table, &[&[1], &[2], &[3]]);
    let schema = table.folder().join("schema.cql");
    database.close().wait().unwrap();
    let text = std::fs::read_to_string(&schema).unwrap();
    let altered = text.replace("a int", "b int, more int");
    assert_ne!(altered, text);
    std::fs::write(&schema, altered).unwrap();

    let database = open(folder.path(), 1);
    let table = database.table("ks.t").unwrap();
    write(&table, &[&[1, 50], &[2, 0], &[2, 70]]);
    let found = |slice: Slice| -> Vec<i32> {
        let page = table.slice(1, slice).wait().unwrap();
        let number = |row: &Row| i32::from_be_bytes(row.get("v").unwrap().try_into().unwrap());
        page.rows.iter().map(number).collect()
    };
    for is_compacted in [false, true] {
        let all = found(Slice::all());
        assert_eq!(all, [1, 51, 2, 2, 72, 3], "{is_compacted}");
        let from = found(Slice::all().from(Bound::including(key(&[1, 50]))));
        assert_eq!(from, all[1..]);
        let until = found(Slice::all().to(Bound::excluding(key(&[2, 70]))));
        assert_eq!(until, all[..4]);
        table.compact().wait().unwrap();
    }
    database.close().wait().unwrap();
}

/// Cassandra 3.0 knew user defined types only as frozen ones, and does not say in its files that they are: the schema does.
#[test]
fn types_of_cassandra_3_0_are_frozen_by_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let create = "CREATE TYPE ks.p (a int); CREATE TABLE ks.t (k int, c int, a frozen<p>, b int, s frozen<p> static, \
                  tags set<text>, PRIMARY KEY (k, c))";
    let table = database.create_table(create).wait().unwrap();
    let part = |number: i32| Value::Raw([4, number].into_iter().flat_map(i32::to_be_bytes).collect());
    for c in 0..3 {
        let write = Write::insert(1, c).set("a", part(c)).set("b", c).set("s", part(7));
        table.write(write.set("tags", Value::Json(Box::new(serde_json::json!(["x"]))))).wait().unwrap();
    }
    table.flush().wait().unwrap();
    let files = std::fs::read_dir(table.folder()).unwrap().map(|entry| entry.unwrap().path());
    let statistics = files.into_iter().find(|path| path.ends_with("me-1-big-Statistics.db")).unwrap();
    database.close().wait().unwrap();

    let bytes = std::fs::read(&statistics).unwrap();
    let mut of_3_0 = Statistics::parse(&statistics, &bytes, Version::Me).unwrap();
    let Schema { statics, regulars, .. } = &mut of_3_0.header.schema;
    for column in statics.iter_mut().chain(regulars) {
        if let CqlType::Udt(of) = &mut column.data_type {
            of.frozen = false;
        }
    }
    let encoded = of_3_0.encode(Version::Me);
    assert!(encoded.len() + 2 * "org.apache.cassandra.db.marshal.FrozenType()".len() <= bytes.len());
    std::fs::write(&statistics, encoded).unwrap();

    let database = open(folder.path(), 1);
    let table = database.table("ks.t").unwrap();
    for is_compacted in [false, true] {
        let page = table.slice(1, Slice::all()).wait().unwrap();
        let rows: Vec<String> = page.rows.iter().map(|row| row.to_json().unwrap()).collect();
        assert_eq!(rows.len(), 3, "{is_compacted}");
        assert!(rows[2].contains(r#""s":{"a": 7},"a":{"a": 2},"b":2"#), "{}", rows[2]);
        table.compact().wait().unwrap();
    }
    database.close().wait().unwrap();
}

#[test]
fn a_snapshot_opens_as_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 3);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write((0..50).map(|k| Write::insert(k, 1).set("v", "v")).collect::<Batch>()).wait().unwrap();
    let snapshot = table.snapshot("one").wait().unwrap();
    assert!(table.snapshot("one").wait().is_err() && table.snapshot("../x").wait().is_err());
    let expected = scanned(&table, 100);
    table.write(Write::delete(7)).wait().unwrap();
    table.compact().wait().unwrap();
    assert_eq!(scanned(&table, 100).len(), 49);
    let read_only = Options { read_only: true, ..options(2) };
    let before = std::fs::read_dir(&snapshot).unwrap().count();
    let copy = Database::open_table_folder(&snapshot, None, read_only).wait().unwrap();
    let copied = copy.tables().remove(0);
    assert_eq!(scanned(&copied, 100), expected);
    assert!(copied.write(Write::delete(1)).wait().unwrap_err().to_string().contains("for reading only"));
    drop(copy);
    assert_eq!(std::fs::read_dir(&snapshot).unwrap().count(), before);
    let copy = Database::open_table_folder(&snapshot, None, options(2)).wait().unwrap();
    let copied = copy.tables().remove(0);
    copied.write(Write::delete(1)).wait().unwrap();
    copied.compact().wait().unwrap();
    assert_eq!(scanned(&copied, 100).len(), 49);
}

#[test]
fn counters_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let create =
        "CREATE TABLE ks.n (k int, c int, s counter static, a counter, b counter, PRIMARY KEY (k, c))";
    let database = open(folder.path(), 2);
    database.create_table(create).wait().unwrap();
    let mut database = Some(database);
    for round in 0..4 {
        let opened = database.take().unwrap_or_else(|| open(folder.path(), 1 + round % 3));
        let table = opened.table("n").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        table.add(1, 1, [("a", 2), ("b", -1)]).wait().unwrap();
                    }
                });
            }
        });
        table.add(1, (), [("s", 1)]).wait().unwrap();
        table.flush().wait().unwrap();
    }
    let database = open(folder.path(), 2);
    let table = database.table("n").unwrap();
    assert_eq!(scanned(&table, 9), [r#"{"k":1,"c":1,"s":4,"a":800,"b":-400}"#]);
    assert!(table.write(Write::insert(1, 1).set("a", 1)).wait().is_err());
    assert!(table.add(1, 1, [("c", 1)]).wait().is_err());
}

#[test]
fn what_expires_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let create = "CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH default_time_to_live = 100";
    let table = database.create_table(create).wait().unwrap();
    table.write(Write::insert(1, ()).set("v", "a")).wait().unwrap();
    table.write(Write::insert(2, ()).set("v", "a").ttl(0)).wait().unwrap();
    table.write(Write::insert(3, ()).set("v", "a").ttl(10)).wait().unwrap();
    let rows = |after: i64| {
        let scan = Scan::all().columns(["k"]).at(siltstone::now() + after);
        table.scan(scan).wait().unwrap().rows.len()
    };
    assert_eq!((rows(0), rows(50), rows(150)), (3, 2, 1));
}

#[test]
fn metrics_are_text() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write((0..40).map(|k| Write::insert(k, 1)).collect::<Batch>()).wait().unwrap();
    table.flush().wait().unwrap();
    let text = database.metrics().wait().unwrap();
    let sstables = "# TYPE siltstone_sstables gauge\nsiltstone_sstables{shard=\"0\",table=\"ks.t\"} 1\n\
        siltstone_sstables{shard=\"1\",table=\"ks.t\"} 1\n";
    assert!(text.contains(sstables), "{text}");
    assert_eq!(text.matches("siltstone_commit_log_bytes{").count(), 2);
    let mut told = "";
    for line in text.lines() {
        match line.strip_prefix("# TYPE ").and_then(|rest| rest.split(' ').next()) {
            Some(name) => told = name,
            None if line.starts_with("# HELP ") => {}
            None => {
                let (name, value) = line.strip_prefix(told).and_then(|rest| rest.rsplit_once(' ')).unwrap();
                assert!(name.starts_with("{shard=\"") && value.parse::<u64>().is_ok(), "{line}");
            }
        }
    }
}

/// What they are before something is done, and after it.
#[test]
fn metrics_count_what_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    let of = |name: &str| metric(&database, &format!("siltstone_{name}{{"));
    let rows = |from: i32| (from..from + 40).map(|k| Write::insert(k, 1)).collect::<Batch>();
    assert_eq!((of("memtable_bytes"), of("sstables")), (0, 0));
    let synced = of("syncs_total");
    table.write(rows(0)).wait().unwrap();
    assert!(of("memtable_bytes") > 0 && of("syncs_total") > synced);
    let written = of("write_bytes_total");
    table.flush().wait().unwrap();
    assert!(of("write_bytes_total") > written && of("write_requests_total") > 0);
    table.write(rows(20)).wait().unwrap();
    table.flush().wait().unwrap();
    assert_eq!((of("memtable_bytes"), of("sstables"), of("compactions_total")), (0, 2, 0));

    let slice = || assert_eq!(table.slice(7, Slice::all()).wait().unwrap().rows.len(), 1);
    let row_cache = || ["hits", "misses"].map(|what| of(&format!("row_cache_{what}_total")));
    let (read, before) = (of("read_requests_total"), row_cache());
    slice();
    let (cold, missed) = (of("read_requests_total"), row_cache());
    assert!(cold > read && of("row_cache_bytes") > 0);
    slice();
    assert_eq!((of("read_requests_total"), of("reads_running"), of("reads_memory_bytes")), (cold, 0, 0));
    assert_eq!((missed, row_cache()), ([before[0], before[1] + 1], [before[0] + 1, before[1] + 1]));

    table.compact().wait().unwrap();
    assert_eq!((of("sstables"), of("compactions_total"), of("compactions_failed_total")), (1, 1, 0));
    let (from, into) = (of("compacted_bytes_total"), of("compacted_into_bytes_total"));
    assert!(0 < into && into < from, "{from} bytes became {into}");
    assert_eq!((of("reads_waited_total"), of("reads_refused_total")), (0, 0));
}

#[test]
fn wakes_come_from_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    // An executor that is none of ours: the one of another shard.
    let count = runtime::run(runtime::ShardOptions::default(), async move |_| {
        let writes = (0..200).map(|k| table.write(Write::insert(k, 1).set("v", "v")));
        for written in runtime::join_all(writes).await {
            written.unwrap();
        }
        runtime::sleep(Duration::from_millis(5)).await;
        table.scan(Scan::all()).await.unwrap().rows.len()
    });
    assert_eq!(count.unwrap(), 200);
}

#[test]
fn who_only_reads_sees_the_log_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    let batch = |from: i32| (from..from + 20).map(|k| Write::insert(k, 1)).collect::<Batch>();
    table.write(batch(0)).wait().unwrap();
    table.flush().wait().unwrap();
    table.write(batch(10)).wait().unwrap();
    drop((database, table));
    let files = || {
        let mut all: Vec<String> = Vec::new();
        let mut folders = vec![folder.path().to_path_buf()];
        while let Some(next) = folders.pop() {
            for entry in std::fs::read_dir(next).unwrap().map(|entry| entry.unwrap()) {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false => all.push(format!("{:?} {}", entry.path(), entry.metadata().unwrap().len())),
                }
            }
        }
        all.sort();
        all
    };
    let before = files();
    let read_only = |shards| Options { read_only: true, ..options(shards) };
    let first = Database::open(folder.path(), read_only(3)).wait().unwrap();
    let second = Database::open(folder.path(), read_only(1)).wait().unwrap();
    for database in [&first, &second] {
        let table = database.table("t").unwrap();
        assert_eq!(scanned(&table, 7).len(), 30);
        assert!(table.flush().wait().is_err() && table.compact().wait().is_err());
        assert!(database.drop_table("t").wait().is_err());
    }
    assert!(Database::open(folder.path(), options(1)).wait().is_err());
    drop((first, second));
    assert_eq!(files(), before);
}

#[test]
fn writes_and_reads_go_on_while_tables_change() {
    let folder = tempfile::tempdir().unwrap();
    drop(open(folder.path(), 3).create_table(CREATE).wait().unwrap());
    let database = open(folder.path(), 3);
    let table = database.table("t").unwrap();
    table.write((0..100).map(|k| Write::insert(k, 0)).collect::<Batch>()).wait().unwrap();
    drop((table, database));
    let database = open(folder.path(), 2);
    let table = database.table("t").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let table = table.clone();
            scope.spawn(move || {
                for number in 1..100 {
                    let write = Write::insert(number % 10, 1 + thread * 1000 + number).set("v", "v");
                    table.write(write).wait().unwrap();
                    if number % 10 == 0 {
                        assert!(scanned(&table, 1000).len() >= 100);
                    }
                }
            });
        }
        for round in 0..5 {
            table.flush().wait().unwrap();
            table.compact().wait().unwrap();
            let alter = format!("ALTER TABLE ks.t ADD a{round} int");
            database.alter_table(&alter).wait().unwrap();
        }
    });
    assert_eq!(scanned(&table, 50).len(), 100 + 2 * 99);
    assert!(table.columns().iter().any(|column| column.name == "a4"));
}

#[test]
fn what_nobody_waits_for_any_more_is_not_left_half_done() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    for number in 0..20 {
        let cql = format!("ALTER TABLE ks.t ADD a{number} int");
        let mut alter = database.alter_table(&cql);
        // Begun, and then given up.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        drop(std::pin::Pin::new(&mut alter).poll(&mut context));
        drop(alter);
        table.write(Write::insert(number, 1).set("v", "v")).wait().unwrap();
    }
    assert_eq!(scanned(&table, 7).len(), 20);
    assert_eq!(database.snapshot("all").wait().unwrap().len(), 1);
    database.compact().wait().unwrap();
}
