//! Scans of short and of long partitions: as pages, and looked at row by row.

use std::ops::ControlFlow;

use siltstone::database::{Batch, Database, Options, RowView, Scan, Slice, Table, Write};
use tempfile::TempDir;

use crate::scanned::{json, scanned};

const CREATE: &str = "CREATE TABLE ks.t (k int, c int, v text, s text static, PRIMARY KEY (k, c))";

/// How many rows the partitions have. A scan leaves those of more than 256 rows and 4 MiB to slices.
const ROWS: [i32; 10] = [1, 3000, 0, 255, 256, 257, 2500, 5001, 7, 600];

/// How many bytes their values have: three partitions have more than 4 MiB, and one nearly as much.
const BYTES: [usize; 10] = [10, 1500, 0, 10, 20_000, 20_000, 1500, 5, 10, 10];

/// A database with the table and all its rows, in a folder that goes with the guard.
fn filled(shards: usize) -> (TempDir, Database, Table) {
    let folder = tempfile::tempdir().unwrap();
    let options =
        Options { shards, cache: 8 << 20, memtables: 64 << 20, direct_io: false, ..Options::default() };
    let database = Database::open(folder.path(), options).wait().unwrap();
    let table = database.create_table(CREATE).wait().unwrap();
    fill(&table);
    (folder, database, table)
}

/// Rows in SSTables that overlap and in the memtable, of which some are deleted; one partition has a static row only.
fn fill(table: &Table) {
    for part in 0..3 {
        for ((k, rows), bytes) in (0..).zip(ROWS).zip(BYTES) {
            table.write(Write::update(k, ()).set("s", format!("s{k}"))).wait().unwrap();
            let row = |c: i32| Write::insert(k, c).set("v", format!("{c:0bytes$}"));
            let rows: Vec<i32> = (0..rows).filter(|c| c % 3 == part).collect();
            for some in rows.chunks(100) {
                table.write(some.iter().copied().map(row).collect::<Batch>()).wait().unwrap();
            }
        }
        if part < 2 {
            table.flush().wait().unwrap();
        }
    }
    table.write((500..600).map(|c| Write::delete_row(1, c)).collect::<Batch>()).wait().unwrap();
}

/// A row by its token and its clustering key.
type Place = (i64, Option<Vec<u8>>);

/// All rows, partition by partition, in the order of tokens.
fn sliced(table: &Table) -> Vec<String> {
    let mut partitions = Vec::new();
    for k in (0..).zip(ROWS).map(|(k, _)| k) {
        let page = table.slice(k, Slice::all().limit(usize::MAX).limit_bytes(usize::MAX)).wait().unwrap();
        partitions.push((page.rows[0].token(), json(&page.rows)));
    }
    partitions.sort();
    partitions.into_iter().flat_map(|(_, rows)| rows).collect()
}

/// All rows, each time so many, or less if it is broken off.
fn folded(table: &Table, limit: usize, break_off: usize) -> Vec<String> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let each = move |rows: &mut Vec<String>, row: RowView<'_>| {
            rows.push(row.to_json().unwrap());
            if rows.len() == break_off { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let scan = Scan::all().limit(limit).resume(next);
        let folded = table.fold_scan(scan, Vec::new(), each).wait().unwrap();
        assert!(folded.state.len() <= limit.min(break_off));
        all.extend(folded.state);
        next = folded.next;
        if next.is_none() {
            return all;
        }
    }
}

#[test]
fn pages_and_rows_looked_at_are_those_of_all_partitions() {
    for shards in [1, 3] {
        let (_folder, _database, table) = filled(shards);
        let expected = sliced(&table);
        // One row stands for the partition that has none.
        assert_eq!(expected.len() as i32, ROWS.iter().sum::<i32>() + 1 - 100);
        // What memory has, then what is in an SSTable by itself, then what the row cache has of it.
        for round in 0..3 {
            for limit in [256, 1500, usize::MAX] {
                assert!(
                    scanned(&table, limit) == expected,
                    "{shards} shards, round {round}, pages of {limit}"
                );
                assert!(folded(&table, limit, usize::MAX) == expected, "round {round}, {limit} a time");
            }
            assert!(folded(&table, usize::MAX, 257) == expected, "{shards} shards, round {round}");
            if round == 0 {
                table.compact().wait().unwrap();
            }
        }
    }
}

#[test]
fn a_part_of_the_ring_is_looked_at() {
    let (_folder, _database, table) = filled(3);
    let all = table.scan(Scan::all().limit(usize::MAX).limit_bytes(usize::MAX)).wait().unwrap().rows;
    let (first, last) = (all[all.len() / 4].token(), all[all.len() / 2].token());
    let count = |tokens| {
        let scan = Scan::all().tokens(tokens).columns(["c"]).limit(usize::MAX);
        let each = |count: &mut usize, _: RowView<'_>| {
            *count += 1;
            ControlFlow::Continue(())
        };
        table.fold_scan(scan, 0, each).wait().unwrap().state
    };
    let within = all.iter().filter(|row| (first..=last).contains(&row.token())).count();
    assert_eq!(count(first..=last), within);
    assert_eq!(count(first + 1..=first), 0);
    assert_eq!(count(i64::MIN..=i64::MAX), all.len());
}

#[test]
fn rows_are_shown_once_while_the_table_is_altered() {
    let (_folder, database, table) = filled(3);
    table.flush().wait().unwrap();
    let rows = sliced(&table).len();
    std::thread::scope(|scope| {
        let altering = scope.spawn(|| {
            for number in 0..40 {
                database.alter_table(&format!("ALTER TABLE ks.t ADD a{number} int")).wait().unwrap();
            }
        });
        loop {
            let is_last = altering.is_finished();
            let each = |seen: &mut (Vec<Place>, usize), row: RowView<'_>| {
                // Columns of one row are those of one table.
                assert_eq!(row.columns().len(), row.values().count());
                assert!(row.columns().len() >= seen.1, "no column is taken away");
                seen.1 = row.columns().len();
                seen.0.push((row.token(), row.get("c").map(<[u8]>::to_vec)));
                ControlFlow::Continue(())
            };
            let scan = Scan::all().limit(usize::MAX);
            let (seen, columns) = table.fold_scan(scan, (Vec::new(), 0), each).wait().unwrap().state;
            assert_eq!(seen.len(), rows);
            assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "in order, each once");
            assert_eq!(scanned(&table, usize::MAX).len(), rows);
            if is_last {
                assert_eq!(columns, 4 + 40, "all that were added are there");
                break;
            }
        }
        altering.join().unwrap();
    });
}
