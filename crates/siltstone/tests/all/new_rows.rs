//! Rows by many keys at once, rows that are inserted if they are not there, and counters of many rows, beside what single
//! reads and writes say.

use std::collections::BTreeMap;
use std::path::Path;

use siltstone::database::{Batch, Bound, Database, Options, Slice, Table, Value, Write};
use testkit::generate::random::Random;

/// In the year 2100. Microseconds.
const AHEAD: i64 = 4_102_444_800_000_000;

const CREATE: &str = "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))";

fn open(folder: &Path, shards: usize, cache: usize) -> Database {
    let options = Options { shards, cache, memtables: 8 << 20, direct_io: false, ..Options::default() };
    Database::open(folder, options).wait().unwrap()
}

fn value_of(table: &Table, (k, c): (i32, i32)) -> Option<String> {
    table.get(k, c).wait().unwrap().map(|row| row.json_of("v").unwrap())
}

fn values_of(table: &Table, keys: &[(i32, i32)]) -> Vec<Option<String>> {
    let rows = table.get_many(keys.iter().copied()).wait().unwrap();
    rows.iter().map(|row| row.as_ref().map(|row| row.json_of("v").unwrap())).collect()
}

/// Random batches of new rows, deletions, flushes and compactions, against a map.
#[test]
fn only_rows_that_are_not_there_are_inserted() {
    for (seed, shards, cache) in [(1, 1, 0), (2, 3, 1 << 20), (3, 2, 8 << 20)] {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path(), shards, cache);
        let table = database.create_table(CREATE).wait().unwrap();
        let mut random = Random::new(seed);
        let mut known: BTreeMap<(i32, i32), String> = BTreeMap::new();
        let key = |random: &mut Random| (random.below(300) as i32, random.below(4) as i32);
        for round in 0..40 {
            let keys: Vec<(i32, i32)> = (0..random.between(1, 90)).map(|_| key(&mut random)).collect();
            let value = |at: usize| format!("{round}-{at}");
            let batch = keys.iter().enumerate().map(|(at, &(k, c))| Write::insert(k, c).set("v", value(at)));
            let inserted = table.insert_new(batch.collect::<Batch>()).wait().unwrap();
            for (at, (key, inserted)) in keys.iter().zip(&inserted).enumerate() {
                let is_new = !known.contains_key(key);
                assert_eq!(*inserted, is_new, "seed {seed}, round {round}: {key:?}");
                known.entry(*key).or_insert_with(|| format!("\"{}\"", value(at)));
            }
            for _ in 0..random.below(20) {
                let (k, c) = key(&mut random);
                table.write(Write::delete_row(k, c)).wait().unwrap();
                known.remove(&(k, c));
            }
            match random.below(4) {
                0 => table.flush().wait().unwrap(),
                1 if round % 10 == 9 => table.compact().wait().unwrap(),
                _ => {}
            }
            let asked: Vec<(i32, i32)> = (0..100).map(|_| key(&mut random)).collect();
            let expected: Vec<Option<String>> = asked.iter().map(|key| known.get(key).cloned()).collect();
            assert_eq!(values_of(&table, &asked), expected, "seed {seed}, round {round}");
            assert_eq!(value_of(&table, asked[0]), expected[0]);
        }
        database.close().wait().unwrap();
    }
}

/// Of all who insert the same row at the same time, one does.
#[test]
fn one_of_many_inserts_the_row() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2, 1 << 20);
    let table = database.create_table(CREATE).wait().unwrap();
    let insert = |by: usize| {
        // Each names the rows in another order.
        let rows = (0..50).map(|at| (at * 7 + by as i32 * 13) % 50);
        table.insert_new(rows.map(|k| Write::insert(k, 1).set("v", by.to_string())).collect::<Batch>())
    };
    let pending: Vec<_> = (0..8).map(insert).collect();
    let inserted: usize =
        pending.into_iter().map(|one| one.wait().unwrap().iter().filter(|is_new| **is_new).count()).sum();
    assert_eq!(inserted, 50);
    database.close().wait().unwrap();
}

/// Batches of additions, by several at once, and what was counted in the end.
#[test]
fn many_counters_are_added_to_at_once() {
    for (seed, shards, cache) in [(1, 1, 0), (2, 3, 1 << 20)] {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path(), shards, cache);
        let create =
            "CREATE TABLE ks.n (k int, c int, s counter static, a counter, b counter, PRIMARY KEY (k, c))";
        let table = database.create_table(create).wait().unwrap();
        let mut random = Random::new(seed);
        let mut known: BTreeMap<(i32, i32, &str), i64> = BTreeMap::new();
        for round in 0..20 {
            let mut pending = Vec::new();
            for _ in 0..4 {
                let additions: Vec<(i32, i32, &str, i64)> = (0..random.between(1, 60))
                    .map(|_| {
                        let column = ["s", "a", "b"][random.below(3)];
                        let c = if column == "s" { -1 } else { random.below(3) as i32 };
                        (random.below(40) as i32, c, column, random.below(100) as i64 - 30)
                    })
                    .collect();
                for &(k, c, column, by) in &additions {
                    *known.entry((k, c, column)).or_default() += by;
                }
                let clustering = |c: i32| if c < 0 { vec![] } else { vec![Value::from(c)] };
                let all = additions.iter().map(|&(k, c, column, by)| (k, clustering(c), [(column, by)]));
                pending.push(table.add_many(all.collect::<Vec<_>>()));
            }
            pending.into_iter().for_each(|added| added.wait().unwrap());
            if round % 5 == 4 {
                table.flush().wait().unwrap();
            }
        }
        for (&(k, c, column), sum) in &known {
            let row = match c {
                -1 => table.slice(k, Slice::all().limit(1)).wait().unwrap().rows.remove(0),
                c => table.get(k, c).wait().unwrap().unwrap(),
            };
            assert_eq!(row.json_of(column).unwrap(), sum.to_string(), "seed {seed}: {k}, {c}, {column}");
        }
        assert!(table.add_many([(1, 1, [("a", 1)]), (2, 1, [("none", 1)])]).wait().is_err());
        let before = known.get(&(1, 1, "a")).map(i64::to_string);
        let now = table.get(1, 1).wait().unwrap().map(|row| row.json_of("a").unwrap());
        assert_eq!(now.filter(|now| now != "null"), before, "nothing was added");
        database.close().wait().unwrap();
    }
}

/// The same row by many at the same time.
#[test]
fn no_addition_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2, 1 << 20);
    let table = database.create_table("CREATE TABLE ks.n (k int PRIMARY KEY, n counter)").wait().unwrap();
    std::thread::scope(|scope| {
        for by in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for _ in 0..25 {
                    // Each names the rows in another order, and one of them twice.
                    let rows = (0..21).map(|at| ((at * 3 + by) % 20, (), [("n", 1)]));
                    table.add_many(rows).wait().unwrap();
                }
            });
        }
    });
    let rows = table.get_many((0..20).map(|k| (k, ()))).wait().unwrap();
    let sum: i64 = rows.iter().flatten().map(|row| row.json_of("n").unwrap().parse::<i64>().unwrap()).sum();
    assert_eq!(sum, 4 * 25 * 21);
    database.close().wait().unwrap();
}

/// Decimals that are equal name the same row, whatever their bytes.
#[test]
fn rows_are_the_same_if_their_values_are() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1, 1 << 20);
    let create = |name, v| format!("CREATE TABLE ks.{name} (k int, c decimal, v {v}, PRIMARY KEY (k, c))");
    let (rows, counters) = (create("rows", "text"), create("counters", "counter"));
    let rows = database.create_table(&rows).wait().unwrap();
    let batch = ["1.5", "2", "1.50"].map(|c| Write::insert(1, c).set("v", c));
    assert_eq!(rows.insert_new(batch.into_iter().collect::<Batch>()).wait().unwrap(), [true, true, false]);
    let row = rows.get(1, "1.500").wait().unwrap().unwrap();
    assert_eq!(row.json_of("v").unwrap(), "\"1.5\"");
    let counters = database.create_table(&counters).wait().unwrap();
    counters.add_many([("1.5", 5), ("1.50", 3)].map(|(c, by)| (1, c, [("v", by)]))).wait().unwrap();
    let row = counters.get(1, "1.5").wait().unwrap().unwrap();
    assert_eq!(row.json_of("v").unwrap(), "8");
    database.close().wait().unwrap();
}

/// Writers and readers of many rows while columns come and go, and then the table goes.
#[test]
fn a_table_may_be_altered_and_dropped_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2, 0);
    let create = "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b int)";
    let table = database.create_table(create).wait().unwrap();
    table.write((0..8000).map(|k| Write::insert(k, ()).set("b", k)).collect::<Batch>()).wait().unwrap();
    table.flush().wait().unwrap();
    std::thread::scope(|scope| {
        for by in 0..3 {
            let table = &table;
            scope.spawn(move || {
                for round in 0.. {
                    let keys = (0..40).map(|at| (at * 197 + by * 31 + round) % 8000);
                    let Ok(rows) = table.get_many(keys.clone().map(|k| (k, ()))).wait() else { return };
                    for (row, k) in rows.iter().zip(keys) {
                        let b = row.as_ref().unwrap().json_of("b").unwrap();
                        assert_eq!(b, k.to_string(), "round {round}");
                    }
                    let new =
                        (0..20).map(|at| Write::insert(10_000 + at * 3 + round * 60 + by, ()).set("b", 1));
                    match table.insert_new(new.collect::<Batch>()).wait() {
                        Ok(inserted) => assert!(inserted.iter().all(|is_new| *is_new)),
                        Err(_) => return,
                    }
                }
            });
        }
        for _ in 0..6 {
            database.alter_table("ALTER TABLE ks.t DROP a").wait().unwrap();
            database.alter_table("ALTER TABLE ks.t ADD aa int").wait().unwrap();
            database.alter_table("ALTER TABLE ks.t DROP aa").wait().unwrap();
            database.alter_table("ALTER TABLE ks.t ADD a int").wait().unwrap();
        }
        database.drop_table("ks.t").wait().unwrap();
    });
    database.close().wait().unwrap();
}

#[test]
fn only_inserts_can_be_new() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1, 1 << 20);
    let table = database.create_table(CREATE).wait().unwrap();
    let refused =
        table.insert_new([Write::insert(1, 1), Write::delete(2)].into_iter().collect::<Batch>()).wait();
    assert!(refused.unwrap_err().to_string().contains("only what is inserted can be new"));
    assert!(table.insert_new(Write::insert(1, ())).wait().unwrap_err().to_string().contains("clustering"));
    assert_eq!(values_of(&table, &[(1, 1), (2, 1)]), [None, None], "nothing was written");
    assert!(table.insert_new(Batch::new()).wait().unwrap().is_empty() && values_of(&table, &[]).is_empty());
    // A row that expired, or was deleted, is not there.
    table.write(Write::insert(1, 1).set("v", "a").timestamp(1)).wait().unwrap();
    assert_eq!(table.insert_new(Write::insert(1, 1).set("v", "b")).wait().unwrap(), [false]);
    assert_eq!(value_of(&table, (1, 1)).as_deref(), Some("\"a\""));
    database.close().wait().unwrap();
}

/// Whenever it was deleted, by whose clock soever: who is told that a row is new finds it.
#[test]
fn a_row_that_was_deleted_later_is_inserted_behind_that() {
    for is_flushed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let database = open(folder.path(), 2, 1 << 20);
        let create = "CREATE TABLE ks.t (k int, c int, s int static, v text, w set<int>, PRIMARY KEY (k, c))";
        let table = database.create_table(create).wait().unwrap();
        let of_range = Write::delete_range(3, Bound::Open, Bound::Open);
        let deletions = [Write::delete_row(1, 1), Write::delete(2), of_range];
        table.write(deletions.into_iter().collect::<Batch>().timestamp(AHEAD)).wait().unwrap();
        if is_flushed {
            table.flush().wait().unwrap();
        }
        let set = || Value::from(serde_json::json!([5]));
        let new = |k| Write::insert(k, 1).set("v", "a").set("w", set()).set("s", k);
        let all = || (1..4).flat_map(|k| [new(k), new(k)]).collect::<Batch>();
        assert_eq!(table.insert_new(all()).wait().unwrap(), [true, false, true, false, true, false]);
        assert_eq!(table.insert_new(all()).wait().unwrap(), [false; 6]);
        for k in 1..4 {
            let found = table.get(k, 1).wait().unwrap().expect("it was inserted").to_json().unwrap();
            assert_eq!(found, format!(r#"{{"k":{k},"c":1,"s":{k},"v":"a","w":[5]}}"#), "{is_flushed}");
        }
        // Only what deletes static columns too puts them off.
        table.write((1..4).map(|k| Write::update(k, ()).set("s", 9)).collect::<Batch>()).wait().unwrap();
        let now = |k: i32| table.get(k, 1).wait().unwrap().unwrap().json_of("s").unwrap();
        assert_eq!([now(1), now(2), now(3)], ["9", "2", "9"]);
        database.close().wait().unwrap();
    }
}

/// Their row is kept as a static one.
#[test]
fn rows_of_compact_tables_are_new_once() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1, 1 << 20);
    let create = "CREATE TABLE ks.compact (k int PRIMARY KEY, v int) WITH COMPACT STORAGE";
    let table = database.create_table(create).wait().unwrap();
    let new = |value: i32| table.insert_new(Write::insert(1, ()).set("v", value)).wait().unwrap();
    assert_eq!([new(7), new(8)], [[true], [false]]);
    let row = |table: &Table| table.get(1, ()).wait().unwrap().map(|row| row.json_of("v").unwrap());
    assert_eq!(row(&table).as_deref(), Some("7"));
    let deletion = Write::delete_range(1, Bound::Open, Bound::Open);
    table.write(deletion.timestamp(AHEAD)).wait().unwrap();
    assert_eq!(row(&table), None);
    assert_eq!(new(9), [true]);
    assert_eq!(row(&table).as_deref(), Some("9"));
    database.close().wait().unwrap();
}

#[test]
fn a_counter_that_was_deleted_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1, 1 << 20);
    let create = "CREATE TABLE ks.n (k int, c int, s counter static, n counter, PRIMARY KEY (k, c))";
    let table = database.create_table(create).wait().unwrap();
    let counted = |c: i32| table.get(1, c).wait().unwrap().map(|row| row.json_of("n").unwrap());
    for _ in 0..20 {
        table.add(1, 1, [("n", 5)]).wait().unwrap();
    }
    table.write(Write::delete_row(1, 1)).wait().unwrap();
    table.add(1, 1, [("n", 1)]).wait().unwrap();
    assert_eq!(counted(1).as_deref(), Some("1"));
    // A static counter that is not there yet is not looked for in the rows.
    table.add(1, (), [("s", 3)]).wait().unwrap();
    table.add(1, (), [("s", 4)]).wait().unwrap();
    assert_eq!(table.get(1, 1).wait().unwrap().unwrap().json_of("s").unwrap(), "7");
    for write in [Write::insert(1, 2), Write::update(1, 2).set("n", 5), Write::update(1, 2).ttl(5)] {
        let refused = table.write(write).wait().unwrap_err().to_string();
        assert!(refused.contains("they are added to"), "{refused}");
    }
    database.close().wait().unwrap();
}
