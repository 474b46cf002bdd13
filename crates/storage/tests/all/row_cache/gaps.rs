//! What is read where the cache has some of a slice.

use super::*;

/// So many rows of 100 bytes have blocks of their own, and more bytes than are read at once.
const ROWS: i32 = 4000;

/// A table of one partition, which is not compressed.
async fn table(shard: &Shard) -> Table {
    let mut definition = definition(&schema());
    definition.write.compression = None;
    let table = open(shard, definition, 16 * MIB).await;
    write(&table, rows(1, 0..ROWS, 1)).await;
    table
}

/// What a read of a slice asked the disk for.
async fn asked(table: &Table, slice: Slice, direction: Direction) -> (usize, u64, u64) {
    let before = table.context().disk.stats();
    let request = ReadRequest { direction, ..ReadRequest::new(key(1), slice) };
    let rows = selected(table, &request, 0).await;
    let asked = table.context().disk.stats().since(&before).total();
    (rows.len(), asked.requests, asked.bytes)
}

#[test]
fn rows_here_and_there_are_read_over() {
    for direction in [Direction::Forward, Direction::Reverse] {
        simulated(async |shard| {
            let table = table(&shard).await;
            let slice = || between(500, ROWS - 500);
            let (found, without, _) = asked(&table, slice(), direction).await;
            table.row_cache().clear();
            for number in (0..ROWS).step_by(40) {
                assert_eq!(read_slice(&table, one(number)).await.0, 1);
            }
            assert!(table.row_cache().stats().parts >= ROWS as usize / 40);
            let (again, with, _) = asked(&table, slice(), direction).await;
            assert_eq!((again, found), (found, ROWS as usize - 1000));
            assert!(with <= without + 2, "{with} requests instead of {without}");
            assert_eq!(asked(&table, slice(), direction).await, (found, 0, 0));
        });
    }
}

#[test]
fn what_is_worth_it_is_not_read_again() {
    for direction in [Direction::Forward, Direction::Reverse] {
        simulated(async |shard| {
            let table = table(&shard).await;
            let (_, _, all) = asked(&table, Slice::all(), direction).await;
            table.row_cache().clear();
            // A stretch in the middle, of several parts; and a few rows at either end, which no stop is needed for.
            let (_, _, known) = asked(&table, between(1000, 2000), direction).await;
            for rows in [between(0, 10), between(ROWS - 10, ROWS)] {
                asked(&table, rows, direction).await;
            }
            let (found, _, rest) = asked(&table, between(0, ROWS), direction).await;
            assert_eq!(found, ROWS as usize);
            assert!(rest < all - known * 3 / 4, "{rest} bytes of {all}, of which {known} were known");
        });
    }
}

/// What reads that go only so far have read over gives way to what they keep no further than they went.
#[test]
fn reads_that_overlap_leave_each_other_what_they_have() {
    for direction in [Direction::Forward, Direction::Reverse] {
        simulated(async |shard| {
            let table = table(&shard).await;
            let read = async |at: i32| {
                let before = table.context().disk.stats();
                let slice = match direction {
                    Direction::Forward => between(at, ROWS),
                    Direction::Reverse => between(0, at),
                };
                let request = ReadRequest { direction, limit: Some(50), ..ReadRequest::new(key(1), slice) };
                let mut rows = table.read(&request).await.unwrap();
                let mut found = 0;
                while found < 50
                    && let Some(fragment) = rows.next().await.unwrap()
                {
                    found += i32::from(matches!(fragment, Fragment::Row(_)));
                }
                table.context().disk.stats().since(&before).total().requests
            };
            let places = || (0..300).map(|number| 100 + number * 1237 % (ROWS - 200));
            for at in places() {
                read(at).await;
            }
            for at in places() {
                assert_eq!(read(at).await, 0, "from {at} on");
            }
        });
    }
}
