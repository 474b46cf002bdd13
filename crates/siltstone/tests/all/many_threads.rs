//! Threads that read and write one table at once, while it is flushed and compacted: each read has what was answered before it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;

use siltstone::database::{Database, Options, Slice, Table, Write};
use testkit::generate::random::Random;

const PARTITIONS: i32 = 4;
const ROWS: i32 = 300;
const READERS: u64 = 3;
const ROUNDS: i64 = 12;

/// Of each row, the newest version whose write was answered.
struct Answered(Vec<AtomicI64>);

impl Answered {
    fn of(&self, partition: i32, row: i32) -> &AtomicI64 {
        &self.0[(partition * ROWS + row) as usize]
    }
}

fn number(bytes: Option<&[u8]>) -> i64 {
    bytes.map_or(-1, |bytes| i64::from_be_bytes(bytes.try_into().expect("eight bytes")))
}

/// Reads until it is over, and tells how many reads there were.
fn read(table: &Table, answered: &Answered, is_over: &AtomicBool, seed: u64) -> u64 {
    let (mut random, mut reads) = (Random::new(seed), 0);
    while !is_over.load(Ordering::Relaxed) {
        let [partition, row] = [PARTITIONS, ROWS].map(|count| random.below(count as usize) as i32);
        let least = answered.of(partition, row).load(Ordering::Acquire);
        let version = if random.percent(50) {
            let found = table.get(partition, row).wait().expect("it is read");
            number(found.as_ref().and_then(|row| row.get("version")))
        } else {
            let slice = Slice::all().from(siltstone::database::Bound::including(row)).limit(20);
            let first = table.fold(partition, slice, None, |first, row| {
                first.get_or_insert(number(row.get("version")));
                ControlFlow::Continue(())
            });
            first.wait().expect("it is read").state.unwrap_or(-1)
        };
        assert!(version >= least, "row {row} of {partition} has version {version}, written was {least}");
        reads += 1;
    }
    reads
}

/// Writes all rows again and again.
fn write(table: &Table, answered: &Answered) {
    for version in 0..ROUNDS {
        for partition in 0..PARTITIONS {
            for row in 0..ROWS {
                let row_of = Write::insert(partition, row).set("version", version);
                table.write(row_of).wait().expect("it is written");
                answered.of(partition, row).store(version, Ordering::Release);
            }
        }
        if version % 3 == 1 {
            table.flush().wait().expect("it is flushed");
        }
        if version % 6 == 5 {
            table.compact().wait().expect("it is compacted");
        }
    }
}

#[test]
fn reads_of_many_threads_have_what_was_answered() {
    for io_uring in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let options = Options { shards: 2, io_uring, ..Options::default() };
        let database = Database::open(folder.path(), options).wait().unwrap();
        let table = "CREATE TABLE ks.t (k int, c int, version bigint, PRIMARY KEY (k, c))";
        let table = database.create_table(table).wait().unwrap();
        let answered = (0..PARTITIONS * ROWS).map(|_| AtomicI64::new(-1)).collect();
        let (answered, is_over) = (Arc::new(Answered(answered)), Arc::new(AtomicBool::new(false)));
        let readers: Vec<_> = (0..READERS)
            .map(|seed| {
                let (table, answered, is_over) = (table.clone(), answered.clone(), is_over.clone());
                thread::spawn(move || read(&table, &answered, &is_over, seed))
            })
            .collect();
        write(&table, &answered);
        is_over.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
        database.close().wait().unwrap();
    }
}
