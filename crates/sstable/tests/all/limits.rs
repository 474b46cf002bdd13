//! Where few rows are wanted of a large partition, where it ends is not looked for; and nothing is missed by that.

use std::rc::Rc;

use model::{Bytes, Fragment, PartitionKey, Position, Slice};
use runtime::{Shard, SimOptions};
use siltstone_sstable::component::{DATA_IO, FENCES_IO, INDEX_IO};
use siltstone_sstable::{ReadOptions, SSTable};

use super::fences::{all, build, is_in_use, lying, open, tables, trailer, with_table};

fn key(table: &SSTable) -> PartitionKey {
    table.key(Bytes::from(1_i32.to_be_bytes().to_vec()))
}

/// From the row of this number on.
fn from(row: i32) -> Slice {
    let clustering = std::iter::once(row.to_be_bytes().to_vec()).collect();
    Slice { start: Position::before(clustering), end: Position::end() }
}

/// From the row of this number on, to another one.
fn between(row: i32, last: i32) -> Slice {
    let clustering = std::iter::once(last.to_be_bytes().to_vec()).collect();
    Slice { end: Position::after(clustering), ..from(row) }
}

/// What is read of the data for so few rows has no more bytes: about two chunks, and the guess where rows may begin anywhere.
const MOST_BYTES: u64 = (2 * 64 + 24) << 10;

/// Requests to the index, the fences and the data for some rows of a slice.
async fn requests(shard: &Shard, table: &Rc<SSTable>, slice: &Slice, rows: u64) -> [u64; 3] {
    let before = shard.disk().stats();
    let options = ReadOptions { limit: Some(rows), ..ReadOptions::default() };
    let mut reader = table.read(&key(table), slice, options).await.unwrap().expect("it is there");
    let mut left = rows;
    while left > 0 {
        match model::FragmentReader::next(&mut reader).await.unwrap() {
            Some(Fragment::Row(_)) => left -= 1,
            fragment => assert!(fragment.is_some(), "the partition has more rows"),
        }
    }
    let stats = shard.disk().stats().since(&before);
    assert!(stats.class(DATA_IO).bytes <= MOST_BYTES, "{stats:?}");
    [INDEX_IO, FENCES_IO, DATA_IO].map(|class| stats.class(class).requests)
}

#[test]
fn the_first_rows_cost_no_look_at_the_end() {
    for (path, rows) in tables() {
        with_table(&path, async |shard, path| {
            let disk = shard.disk();
            disk.as_simulated().unwrap().set_options(SimOptions { alignment: 512, ..SimOptions::default() });
            let name = path.display();
            let cold = async |fences| open(disk, path, fences, 64 << 20).await;
            assert_eq!(requests(shard, &cold(false).await, &Slice::all(), 9).await, [1, 0, 1], "{name}");
            if path.to_string_lossy().contains("large_none") {
                let before = disk.stats();
                requests(shard, &cold(false).await, &Slice::all(), 1).await;
                let bytes = disk.stats().since(&before).class(DATA_IO).bytes;
                assert!(bytes <= 8 << 10, "{name}: {bytes} bytes for the first row");
            }
            // In front of all rows, which may descend.
            let descends = path.to_string_lossy().contains("large_rev");
            let fronts = match descends {
                true => [from(i32::MAX), between(i32::MAX, rows / 2)],
                false => [from(-7), between(-7, rows / 2)],
            };
            for front in fronts {
                assert_eq!(requests(shard, &cold(false).await, &front, 9).await, [1, 0, 1], "{name}");
            }
            build(disk, path).await;
            assert_eq!(requests(shard, &cold(true).await, &Slice::all(), 9).await, [0, 0, 1], "{name}");
            // All of it without a limit is no look at the index either.
            let table = cold(true).await;
            let opened = disk.stats();
            let whole = table.read(&key(&table), &Slice::all(), ReadOptions::default()).await.unwrap();
            let found = all(whole.expect("it is there")).await;
            assert!(found.len() > rows as usize / 2, "{name}: {} fragments", found.len());
            assert_eq!(disk.stats().since(&opened).class(INDEX_IO).requests, 0, "{name}");
            for row in [100, rows / 2] {
                // An end that is far away is none.
                let far = between(row, if descends { row / 9 } else { row + rows / 3 });
                for slice in [from(row), far] {
                    let of_slice = requests(shard, &cold(true).await, &slice, 9).await;
                    assert_eq!(of_slice, [1, 0, 1], "{name}: {slice:?}");
                }
            }
        });
    }
}

/// A limit is what is expected, and no promise.
#[test]
fn who_reads_on_behind_a_limit_gets_all() {
    for (path, rows) in tables().filter(|(_, rows)| *rows <= 20_000) {
        with_table(&path, async |shard, path| {
            let disk = shard.disk();
            build(disk, path).await;
            let slices = [
                Slice::all(),
                from(-7),
                from(i32::MAX),
                from(0),
                from(rows / 3),
                from(rows - 700),
                from(rows + 9),
            ];
            let ends = [0, 50, 300, 1000, rows / 2].map(|far| between(rows / 3, rows / 3 + far));
            let descending = [50, 300, 1000].map(|far| between(rows / 3, rows / 3 - far));
            let schema = open(disk, path, false, 1 << 20).await.schema().clone();
            let between = ends.iter().chain(&descending).filter(|slice| !schema.is_empty_slice(slice));
            for slice in slices.iter().chain(between) {
                for (static_row, reads_on, is_among_others) in [(false, false, true), (true, true, false)] {
                    let options = ReadOptions { static_row, reads_on, ..ReadOptions::default() };
                    let whole = ReadOptions { is_among_others, ..options };
                    let table = open(disk, path, false, 1 << 20).await;
                    let expected = all(table.read(&key(&table), slice, whole).await.unwrap().unwrap()).await;
                    for (fences, limit, read_buffer) in [
                        (true, 1, None),
                        (false, 1, Some(3000)),
                        (true, 100, Some(20_000)),
                        (false, 100, None),
                        (true, 5000, None),
                    ] {
                        let options = ReadOptions { limit: Some(limit), read_buffer, ..whole };
                        let table = open(disk, path, fences, 1 << 20).await;
                        let found =
                            all(table.read(&key(&table), slice, options).await.unwrap().unwrap()).await;
                        assert!(found == expected, "{}: {slice:?} {options:?}", path.display());
                    }
                }
            }
        });
    }
}

/// Where fences send who wants all of a partition elsewhere, that is a request in vain, but not each time.
#[test]
fn where_fences_lead_astray_they_are_given_up() {
    let (path, _) = tables().next().unwrap();
    with_table(&path, async |shard, path| {
        let disk = shard.disk();
        let simulated = disk.as_simulated().unwrap();
        simulated.set_options(SimOptions { alignment: 512, ..SimOptions::default() });
        let (fences, bytes) = build(disk, path).await;
        let mut given_up = 0;
        let told = (0..trailer(&bytes)).filter(|at| bytes[*at] != 0);
        for (at, bit) in told.flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            simulated.add_file(&fences, lying(&bytes, at, bit));
            let table = open(disk, path, true, 64 << 20).await;
            for is_first in [true, false] {
                let before = disk.stats();
                let mut reader =
                    table.read(&key(&table), &Slice::all(), ReadOptions::default()).await.unwrap();
                // That there is no such token is believed.
                let Some(reader) = &mut reader else { continue };
                let start = model::FragmentReader::next(reader).await.unwrap();
                assert!(matches!(start, Some(Fragment::PartitionStart(_))), "{at}: {start:?}");
                let requests = disk.stats().since(&before).class(DATA_IO).requests;
                assert!(requests == 1 || is_first, "{at}: {requests} requests");
            }
            given_up += usize::from(!is_in_use(&table));
        }
        assert!(given_up > 0, "nothing of the fences was looked at");
    });
}
