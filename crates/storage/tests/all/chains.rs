//! SSTables whose rows follow each other are read one behind the other: those that a reader does not come to are not asked.

use std::path::Path;

use model::merge::Direction;
use model::{
    Bytes, CellValue, Clustering, Column, CqlType, Fragment, FragmentReader, Mutation, PartitionKey,
    Position, Row, Slice, Token,
};
use runtime::{Cache, SimOptions, monotonic, run_simulated};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::{Caching, ReadRequest, Table};
use sstable::Version;
use sstable::component::Component;

use super::spans::{
    NO_POSITION, STRETCH, STRETCHES, between, expiring, found, key, numbers, prefix, requests, row, rows,
    stretches, table, table_beside, table_by, table_in, write,
};

const LAST: i32 = STRETCHES * STRETCH - 1;

fn bypassing(slice: Slice) -> ReadRequest {
    ReadRequest { caching: Caching::Bypass, ..ReadRequest::new(key(), slice) }
}

fn from(number: i32) -> Slice {
    Slice { start: Position::before(prefix(number)), ..Slice::all() }
}

fn up_to(number: i32) -> Slice {
    Slice { end: Position::after(prefix(number)), ..Slice::all() }
}

/// Reads so many rows, which come in their order from this one on, and no more.
async fn take(table: &Table, request: &ReadRequest, first: i32, count: i32) {
    let mut reader = table.read(request).await.unwrap();
    let mut expected = (0..count).map(|number| match request.direction {
        Direction::Forward => first + number,
        Direction::Reverse => first - number,
    });
    while expected.len() > 0 {
        if let Fragment::Row(row) = reader.next().await.unwrap().unwrap() {
            assert_eq!(row.clustering, prefix(expected.next().unwrap()));
        }
    }
}

/// How many requests some rows take once they were read before.
async fn spent(table: &Table, request: &ReadRequest, first: i32, count: i32) -> u64 {
    take(table, request, first, count).await;
    let before = requests(table);
    take(table, request, first, count).await;
    requests(table) - before
}

#[test]
fn a_slice_asks_those_that_it_comes_to() {
    for (version, fences) in [(Version::Me, true), (Version::Oa, false), (Version::Oa, true)] {
        run_simulated(SimOptions::default(), async |shard| {
            let table = table_in(Path::new("/d"), &shard, version, Vec::new(), fences).await;
            stretches(&table).await;
            let limited = |slice, count: i32, direction| {
                let limit = Some(count as u64);
                ReadRequest { limit, direction, ..bypassing(slice) }
            };
            let of_one = spent(&table, &bypassing(between(520, 530)), 520, 10).await;
            for (first, count) in [(0, 10), (520, 10), (LAST - 20, 10)] {
                let forward = limited(from(first), count, Direction::Forward);
                assert!(spent(&table, &forward, first, count).await <= of_one, "{version:?}: {first}");
                let last = first + 20;
                let reverse = limited(up_to(last), count, Direction::Reverse);
                assert!(spent(&table, &reverse, last, count).await <= of_one + 1, "{version:?}: {last}");
            }
            // Over an end, and of all: each that it comes to as often as one by itself.
            let forward = limited(from(595), 10, Direction::Forward);
            assert!(spent(&table, &forward, 595, 10).await <= 2 * of_one, "{version:?}");
            let reverse = limited(up_to(604), 10, Direction::Reverse);
            assert!(spent(&table, &reverse, 604, 10).await <= 2 * (of_one + 1), "{version:?}");
            for (limit, reads_on) in [(None, false), (None, true), (Some(1000), true)] {
                let all = ReadRequest { limit, reads_on, ..bypassing(Slice::all()) };
                let most = 3 * of_one * STRETCHES as u64;
                assert!(spent(&table, &all, 0, LAST + 1).await <= most, "{version:?}: {limit:?}");
            }
        })
        .unwrap();
    }
}

/// Nor are those asked that it does not come to whether they have the partition at all.
#[test]
fn filters_are_asked_of_those_that_a_slice_comes_to() {
    for caching in [Caching::Bypass, Caching::Full] {
        run_simulated(SimOptions::default(), async |shard| {
            let written = table(&shard, Version::Oa, Vec::new()).await;
            for number in 0..STRETCHES {
                // Of so many partitions that a filter has pages, which come to memory as they are asked.
                let (first, end) = (number * STRETCH, (number + 1) * STRETCH);
                for other in 1000..6000_i32 {
                    let key = PartitionKey::new(Bytes::from(&other.to_be_bytes()[..]));
                    written.apply(&Mutation { key, ..rows([first, end - 1], 1) }, NO_POSITION);
                }
                write(&written, rows(first..end, 1)).await;
            }
            // Nothing is in memory, nor do filters stay there.
            let (small, folder) = (Cache::new(256 << 10), Path::new("/d"));
            let table = table_beside(small, folder, &shard, Version::Oa, Vec::new(), false).await;
            assert_eq!(table.sstables().members().len() as i32, STRETCHES);
            let asked = async |slice, direction, number, count: i32| {
                let limit = Some(count as u64);
                let request = ReadRequest { limit, direction, caching, ..ReadRequest::new(key(), slice) };
                let of_filters =
                    || table.context().disk.stats().class(Component::BloomPages.io_class()).requests;
                let before = of_filters();
                take(&table, &request, number, count).await;
                of_filters() - before
            };
            let forward = asked(from(150), Direction::Forward, 150, 2).await;
            let reverse = asked(up_to(1850), Direction::Reverse, 1850, 2).await;
            assert!(forward <= 3 && reverse <= 3, "{caching:?}: {forward}, {reverse}");
            // Where there are fewer rows than were to be expected, it goes on.
            let count = LAST + 1 - 450;
            assert!(asked(from(450), Direction::Forward, 450, count).await >= 10);
        })
        .unwrap();
    }
}

/// Rows whose first value is the same are apart by the second one alone: what begins behind a slice is no place to cut it.
#[test]
fn a_slice_ends_where_it_ends() {
    run_simulated(SimOptions::default(), async |shard| {
        let at = |day: i32, time: i32| {
            [&day.to_be_bytes()[..], &time.to_be_bytes()].into_iter().collect::<Clustering>()
        };
        let rows = |day, times: std::ops::Range<i32>| {
            let rows = times.map(|time| row(at(day, time), 1)).collect();
            Mutation { rows, ..Mutation::new(key()) }
        };
        let table = table_by(&shard, vec![CqlType::Int; 2]).await;
        for day in 1..=10 {
            write(&table, rows(day, 500..501)).await;
        }
        for first in [100, 200] {
            write(&table, rows(10, first..first + 100)).await;
            write(&table, rows(1, first + 500..first + 600)).await;
        }
        let slice = Slice { start: Position::before(at(1, 900)), end: Position::after(at(10, 3)) };
        for direction in [Direction::Forward, Direction::Reverse] {
            for (caching, limit) in
                [(Caching::Bypass, None), (Caching::Bypass, Some(20)), (Caching::Full, Some(20))]
            {
                let request = ReadRequest {
                    direction,
                    caching,
                    limit,
                    static_row: false,
                    ..ReadRequest::new(key(), slice.clone())
                };
                let mut days = found(&table, &request).await;
                days.sort_unstable();
                assert!(days.into_iter().eq(2..10), "{direction:?}, {caching:?}, {limit:?}");
            }
        }
    })
    .unwrap();
}

/// Through the row cache the same are asked, and what it has is asked for nowhere.
#[test]
fn what_is_kept_is_read_in_the_same_way() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = table(&shard, Version::Oa, Vec::new()).await;
        stretches(&table).await;
        let request = |limit| ReadRequest { limit: Some(limit), ..ReadRequest::new(key(), from(520)) };
        let before = requests(&table);
        take(&table, &bypassing(between(520, 530)), 520, 10).await;
        let of_one = requests(&table) - before;
        let before = requests(&table);
        take(&table, &request(10), 520, 10).await;
        assert!(requests(&table) - before <= of_one);
        take(&table, &request(300), 520, 300).await;
        let before = requests(&table);
        take(&table, &request(300), 520, 300).await;
        assert_eq!(requests(&table), before);
    })
    .unwrap();
}

/// What may delete the partition is asked first, until it is known that it does not.
#[test]
fn what_hides_rows_comes_first() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = table(&shard, Version::Me, Vec::new()).await;
        for number in 0..STRETCHES {
            write(&table, expiring(number * STRETCH..(number + 1) * STRETCH, 1)).await;
        }
        let request = ReadRequest { limit: Some(10), ..bypassing(from(520)) };
        let before = requests(&table);
        take(&table, &request, 520, 10).await;
        assert!(requests(&table) - before >= (STRETCHES - 5) as u64, "all behind it are asked");
        let of_one = spent(&table, &bypassing(between(520, 530)), 520, 10).await;
        assert!(spent(&table, &request, 520, 10).await <= of_one);
    })
    .unwrap();
}

/// A static row stands in front of all rows, whichever SSTable has it.
#[test]
fn a_static_row_comes_first() {
    run_simulated(SimOptions::default(), async |shard| {
        let statics = vec![Column { name: b"s"[..].into(), data_type: CqlType::Blob }];
        let table = table(&shard, Version::Oa, statics).await;
        write(&table, rows(0..50, 1)).await;
        write(&table, Mutation { static_row: Some(row(Clustering::empty(), 1)), ..rows(50..100, 1) }).await;
        let expected: Vec<i32> = [i32::MIN].into_iter().chain(0..100).collect();
        assert_eq!(numbers(table.scan(None, Token::MAX, None).await.unwrap()).await, expected);
        for (static_row, limit) in [(true, None), (true, Some(5)), (false, None), (false, Some(5))] {
            let request = ReadRequest { static_row, limit, ..bypassing(Slice::all()) };
            assert_eq!(found(&table, &request).await, expected[usize::from(!static_row)..]);
        }
        let inputs = table.sstables().members().to_vec();
        table.rewrite(&Rewrite::into_one(inputs), &Control::default()).await.unwrap();
        assert_eq!(numbers(table.scan(None, Token::MAX, None).await.unwrap()).await, expected);
    })
    .unwrap();
}

/// SSTables that overlap a little are asked where their rows begin.
#[test]
fn ends_that_overlap_cost_nothing_elsewhere() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = table(&shard, Version::Oa, Vec::new()).await;
        for number in 0..STRETCHES {
            write(&table, rows(number * STRETCH..(number + 1) * STRETCH + 5, i64::from(number))).await;
        }
        // The first time, each in another SSTable, whose index is not in memory.
        let first = async |request: &ReadRequest, number| {
            let before = requests(&table);
            take(&table, request, number, 10).await;
            requests(&table) - before
        };
        let limited = |slice| ReadRequest { limit: Some(10), ..bypassing(slice) };
        let of_one = first(&bypassing(between(320, 330)), 320).await;
        assert!(first(&limited(from(720)), 720).await <= of_one);
        let reverse = ReadRequest { direction: Direction::Reverse, ..limited(up_to(980)) };
        assert!(first(&reverse, 980).await <= of_one + 1);
        let of_one = spent(&table, &bypassing(between(520, 530)), 520, 10).await;
        let forward = ReadRequest { limit: Some(10), ..bypassing(from(520)) };
        assert_eq!(spent(&table, &forward, 520, 10).await, of_one);
        let direction = Direction::Reverse;
        let reverse = ReadRequest { limit: Some(10), direction, ..bypassing(up_to(580)) };
        assert_eq!(spent(&table, &reverse, 580, 10).await, of_one);
        // On where two are, and from there.
        let hundred = |request: &ReadRequest| ReadRequest { limit: Some(100), ..request.clone() };
        let most = 5 * of_one;
        assert!(spent(&table, &hundred(&forward), 520, 100).await <= most);
        assert!(spent(&table, &hundred(&reverse), 580, 100).await <= most);
        let both = ReadRequest { limit: Some(10), ..bypassing(from(601)) };
        assert!(spent(&table, &both, 601, 10).await <= 3 * of_one);
        assert_eq!(found(&table, &bypassing(Slice::all())).await.len() as i32, LAST + 1 + 5);
    })
    .unwrap();
}

/// Where each has little, there are fewer waits than SSTables.
#[test]
fn small_ones_are_asked_together() {
    const DELAY: u32 = 1000;
    run_simulated(SimOptions { max_delay: DELAY, ..SimOptions::default() }, async |shard| {
        let waited = async |table: &Table, request: &ReadRequest| {
            let before = monotonic();
            let rows = found(table, request).await.len();
            (rows, (monotonic() - before).as_micros() as u64 / u64::from(DELAY))
        };
        let few = table(&shard, Version::Oa, Vec::new()).await;
        let many = table_in(Path::new("/e"), &shard, Version::Oa, Vec::new(), false).await;
        for number in 0..200 {
            write(&few, rows([number], 1)).await;
            // Few rows of a partition, in SSTables of large ones.
            let mut other = rows(300 * number..300 * number + 200, 1);
            other.key = PartitionKey::new(Bytes::from(&7_i32.to_be_bytes()[..]));
            many.apply(&other, NO_POSITION);
            write(&many, rows([300 * number], 1)).await;
        }
        let request = ReadRequest { limit: Some(200), ..bypassing(Slice::all()) };
        let (rows, waits) = waited(&few, &request).await;
        assert_eq!(rows, 200);
        assert!(waits <= 15, "{waits}");
        let (rows, waits) = waited(&many, &ReadRequest { limit: Some(1000), ..request }).await;
        assert_eq!(rows, 200);
        assert!(waits <= 20, "{waits}");
    })
    .unwrap();
}

/// A scan, and a compaction, read them one behind the other.
#[test]
fn scans_have_as_much_at_hand_of_many_as_of_one() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = table(&shard, Version::Oa, Vec::new()).await;
        let mut large = rows([], 1);
        large.rows = (0..4800).map(|number| with_value(number, 1000)).collect();
        write(&table, large).await;
        let all = async |table: &Table| {
            let before = requests(table);
            let rows = numbers(table.scan(None, Token::MAX, None).await.unwrap()).await;
            assert!(rows.into_iter().eq(0..4800));
            requests(table) - before
        };
        let of_one = all(&table).await;
        let several = table_in(Path::new("/e"), &shard, Version::Oa, Vec::new(), false).await;
        for part in 0..8 {
            let mut mutation = rows([], 1);
            mutation.rows = (part * 600..(part + 1) * 600).map(|number| with_value(number, 1000)).collect();
            write(&several, mutation).await;
        }
        let of_eight = all(&several).await;
        assert!(of_eight <= of_one + 2 * 8, "{of_eight} requests, and {of_one} of one");
        let inputs = several.sstables().members().to_vec();
        several.rewrite(&Rewrite::into_one(inputs), &Control::default()).await.unwrap();
        assert_eq!((several.sstables().members().len(), all(&several).await), (1, of_one));
    })
    .unwrap();
}

fn with_value(number: i32, len: usize) -> Row {
    let mut row = row(prefix(number), 1);
    row.cells[0].value = CellValue::Value(Bytes::from(vec![number as u8; len]));
    row
}
