//! SSTables in which a partition has nothing near the rows that are asked for are not asked: nothing is read of them, and nothing
//! that they say is missed.

use std::path::Path;
use std::rc::Rc;

use model::merge::Direction;
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader, Liveness,
    Mutation, PartitionKey, Position, RangeTombstone, Row, Schema, Slice,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::row_cache::Known;
use siltstone_storage::{Caching, Context, Definition, Error, Generations, ReadRequest, Table};
use sstable::Version;
use testkit::int_rows;
pub(super) use testkit::int_rows::{clustering as prefix, deletion};

pub(super) const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };

/// Rows of a stretch.
pub(super) const STRETCH: i32 = 100;

/// How many SSTables have a stretch.
pub(super) const STRETCHES: i32 = 20;

pub(super) fn key() -> PartitionKey {
    int_rows::key(1)
}

pub(super) fn between(start: i32, end: i32) -> Slice {
    Slice { start: Position::before(prefix(start)), end: Position::before(prefix(end)) }
}

pub(super) fn row(clustering: Clustering, timestamp: i64) -> Row {
    let value = CellValue::Value(Bytes::from(vec![7; 100]));
    let cell =
        Cell { column: 0, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value };
    Row { liveness: Liveness { timestamp, ..Liveness::NONE }, cells: vec![cell], ..Row::new(clustering) }
}

pub(super) fn rows(numbers: impl IntoIterator<Item = i32>, timestamp: i64) -> Mutation {
    let rows = numbers.into_iter().map(|number| row(prefix(number), timestamp)).collect();
    Mutation { rows, ..Mutation::new(key()) }
}

/// A table without fences, in which an SSTable that is asked costs requests.
pub(super) async fn table(shard: &Shard, version: Version, statics: Vec<Column>) -> Table {
    table_in(Path::new("/d"), shard, version, statics, false).await
}

pub(super) async fn table_in(
    folder: &Path,
    shard: &Shard,
    version: Version,
    statics: Vec<Column>,
    fences: bool,
) -> Table {
    table_beside(Cache::new(4 << 20), folder, shard, version, statics, fences).await
}

/// The same with this cache.
pub(super) async fn table_beside(
    cache: Cache,
    folder: &Path,
    shard: &Shard,
    version: Version,
    statics: Vec<Column>,
    fences: bool,
) -> Table {
    table_of(cache, folder, shard, (version, fences), (vec![CqlType::Int], statics)).await
}

/// One with these clustering columns.
pub(super) async fn table_by(shard: &Shard, clustering: Vec<CqlType>) -> Table {
    let columns = (clustering, Vec::new());
    table_of(Cache::new(4 << 20), Path::new("/d"), shard, (Version::Oa, false), columns).await
}

/// One beside this cache, with these clustering and static columns.
pub(super) async fn table_of(
    cache: Cache,
    folder: &Path,
    shard: &Shard,
    (version, fences): (Version, bool),
    (clustering, statics): (Vec<CqlType>, Vec<Column>),
) -> Table {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), cache);
    shard.disk().create_dir_all(folder).await.unwrap();
    let value = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Int, clustering, statics, vec![value]));
    let mut definition = Definition::new(TableId([0; 16]), &schema, version);
    definition.write.column_index_size = 512;
    definition.write.fences = fences;
    Table::open(&context, folder, definition, &Generations::default()).await.unwrap()
}

/// Into an SSTable of its own.
pub(super) async fn write(table: &Table, mutation: Mutation) {
    table.apply(&mutation, NO_POSITION);
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
}

/// A stretch of one partition in each SSTable, as it is written by who measures something.
pub(super) async fn stretches(table: &Table) {
    for number in 0..STRETCHES {
        write(table, rows(number * STRETCH..(number + 1) * STRETCH, 1 + i64::from(number))).await;
    }
}

/// The numbers of the rows of a slice that are there.
pub(super) async fn found(table: &Table, request: &ReadRequest) -> Vec<i32> {
    numbers(table.read(request).await.unwrap()).await
}

pub(super) async fn numbers(reader: impl FragmentReader<Error = Error>) -> Vec<i32> {
    let number = |clustering: Clustering| match &clustering.values[..] {
        // A static row has no number, but its place.
        [] => i32::MIN,
        values => i32::from_be_bytes(values[0].as_deref().unwrap().try_into().unwrap()),
    };
    clusterings(reader).await.into_iter().map(number).collect()
}

/// The clustering keys of the rows that are there; a static row has none.
pub(super) async fn clusterings(mut reader: impl FragmentReader<Error = Error>) -> Vec<Clustering> {
    let (mut deleted, mut open) = (i64::MIN, i64::MIN);
    let mut clusterings = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        match fragment {
            Fragment::PartitionStart(start) => deleted = start.deletion.marked_for_delete_at,
            Fragment::StaticRow(row) if row.cells[0].timestamp > deleted => clusterings.push(row.clustering),
            Fragment::RangeTombstone(change) => open = change.deletion.marked_for_delete_at,
            Fragment::Row(row) if row.liveness.timestamp > deleted.max(open) => {
                clusterings.push(row.clustering);
            }
            _ => {}
        }
    }
    clusterings
}

async fn of_slice(table: &Table, slice: Slice) -> Vec<i32> {
    found(table, &ReadRequest::new(key(), slice)).await
}

async fn is_there(table: &Table, number: i32) -> bool {
    !of_slice(table, Slice::of_prefix(prefix(number))).await.is_empty()
}

pub(super) fn requests(table: &Table) -> u64 {
    table.context().disk.stats().total().requests
}

#[test]
fn only_sstables_with_rows_around_a_slice_are_asked() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        run_simulated(SimOptions::default(), async |shard| {
            let table = table(&shard, version, Vec::new()).await;
            // What an SSTable costs the first time, when its index is not in memory, and there is no other.
            write(&table, rows(-STRETCH..0, 1)).await;
            let before = requests(&table);
            assert!(is_there(&table, -50).await);
            let of_one = requests(&table) - before;
            stretches(&table).await;
            for (number, stretch) in (0..STRETCHES).map(|stretch| (stretch * STRETCH + 50, stretch)) {
                let before = requests(&table);
                assert!(is_there(&table, number).await, "{stretch}");
                assert!(requests(&table) - before <= of_one, "{version:?}: {stretch}");
            }
            // Of no SSTable, and of two.
            let before = requests(&table);
            assert!(!is_there(&table, -STRETCH - 1).await && !is_there(&table, STRETCHES * STRETCH).await);
            assert_eq!(requests(&table), before);
            for caching in [Caching::Bypass, Caching::Look, Caching::Full] {
                let mut request = ReadRequest::new(key(), between(3 * STRETCH - 2, 3 * STRETCH + 2));
                request.caching = caching;
                assert_eq!(found(&table, &request).await, [298, 299, 300, 301]);
                request.direction = Direction::Reverse;
                assert_eq!(found(&table, &request).await, [301, 300, 299, 298]);
            }
            assert!(requests(&table) - before <= 10 * of_one, "{version:?}");
        })
        .unwrap();
    }
}

/// Rows that are asked for at once are read together of the SSTables that may have them.
#[test]
fn rows_are_asked_for_together_where_they_may_be() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = table(&shard, Version::Oa, Vec::new()).await;
        stretches(&table).await;
        let before = requests(&table);
        let numbers: Vec<i32> = (0..16).map(|number| 480 + 2 * number).collect();
        let of_row = |number: &i32| {
            std::borrow::Cow::Owned(ReadRequest::new(key(), Slice::of_prefix(prefix(*number))))
        };
        let begun = table.begin_all(numbers.iter().map(of_row).collect()).await.unwrap();
        for begun in begun {
            let mut reader = begun.open().await.unwrap();
            let mut rows = 0;
            while let Some(fragment) = reader.next().await.unwrap() {
                rows += usize::from(matches!(fragment, Fragment::Row(_)));
            }
            assert_eq!(rows, 1);
        }
        let spent = requests(&table) - before;
        assert!(spent <= 16, "{spent}: of two SSTables, and not of twenty");
    })
    .unwrap();
}

/// Rows that expire one day.
pub(super) fn expiring(numbers: impl IntoIterator<Item = i32>, timestamp: i64) -> Mutation {
    let mut mutation = rows(numbers, timestamp);
    for row in &mut mutation.rows {
        let (ttl, local_deletion_time) = (1_000_000, 2_000_000_000);
        row.liveness = Liveness { timestamp, ttl, local_expiration_time: local_deletion_time };
        row.cells
            .iter_mut()
            .for_each(|cell| (cell.ttl, cell.local_deletion_time) = (ttl, local_deletion_time));
    }
    mutation
}

/// What expires may be a deletion of the partition, as far as `me` and `nb` tell: each SSTable is asked once whether it is.
#[test]
fn that_a_partition_is_not_deleted_is_asked_once() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        for caching in [Caching::Bypass, Caching::Look, Caching::Full] {
            run_simulated(SimOptions::default(), async |shard| {
                let table = table(&shard, version, Vec::new()).await;
                write(&table, expiring(-STRETCH..0, 1)).await;
                let before = requests(&table);
                assert!(is_there(&table, -50).await);
                let of_one = requests(&table) - before;
                for number in 0..STRETCHES {
                    write(&table, expiring(number * STRETCH..(number + 1) * STRETCH, 1)).await;
                }
                let spent = async |slice, expected: &[i32]| {
                    let before = requests(&table);
                    let request = ReadRequest { caching, ..ReadRequest::new(key(), slice) };
                    assert_eq!(found(&table, &request).await, expected);
                    requests(&table) - before
                };
                let row = |number| Slice::of_prefix(prefix(number));
                // By a row, or by a slice.
                let (slice, expected) = if version == Version::Me {
                    (row(1050), vec![1050])
                } else {
                    (between(1049, 1051), vec![1049, 1050])
                };
                let of_first = spent(slice, &expected).await;
                assert_eq!(of_first > of_one, version != Version::Oa, "{version:?} {caching:?}: {of_first}");
                for number in (0..STRETCHES).map(|stretch| stretch * STRETCH + 50) {
                    assert!(spent(row(number), &[number]).await <= of_one);
                    let two = [number + 10, number + 11];
                    assert!(spent(between(number + 10, number + 12), &two).await <= of_one);
                }
                // One that is new is asked, and no other; once it is merged it is old again, as what it was merged with.
                let end = STRETCHES * STRETCH;
                write(&table, expiring(end..end + 10, 1)).await;
                for most in [2 * of_one, 1] {
                    assert!(spent(between(222, 224), &[222, 223]).await <= most);
                    assert!(spent(between(333, 335), &[333, 334]).await <= of_one);
                    let some = table.sstables().members()[3..9].to_vec();
                    table.rewrite(&Rewrite::into_one(some), &Control::default()).await.unwrap();
                }
            })
            .unwrap();
        }
    }
}

/// Where SSTables are written with fences, these tell it, and nothing is asked.
#[test]
fn fences_tell_that_a_partition_is_not_deleted() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        run_simulated(SimOptions::default(), async |shard| {
            let table = table_in(Path::new("/d"), &shard, version, Vec::new(), true).await;
            let spent = async |number: i32| {
                let before = requests(&table);
                assert!(is_there(&table, number).await);
                requests(&table) - before
            };
            write(&table, expiring(-STRETCH..0, 1)).await;
            let of_one = spent(-50).await;
            for number in 0..STRETCHES {
                write(&table, expiring(number * STRETCH..(number + 1) * STRETCH, 1)).await;
            }
            for number in (0..STRETCHES).map(|stretch| stretch * STRETCH + 50) {
                assert!(spent(number).await <= of_one, "{version:?}: {number}");
            }
            write(&table, Mutation { deletion: deletion(50), ..expiring([5000], 60) }).await;
            assert!(!is_there(&table, 777).await && is_there(&table, 5000).await);
        })
        .unwrap();
    }
}

/// An SSTable that has nothing but a deletion of the partition has it everywhere, and its rows nowhere.
#[test]
fn a_deletion_alone_hides_whatever_is_asked_for() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        for caching in [Caching::Bypass, Caching::Full] {
            run_simulated(SimOptions::default(), async |shard| {
                let table = table(&shard, version, Vec::new()).await;
                let other = PartitionKey::new(Bytes::from(&2_i32.to_be_bytes()[..]));
                let of_other = Mutation { deletion: deletion(1), ..Mutation::new(other) };
                table.apply(&of_other, NO_POSITION);
                stretches(&table).await;
                let request = |slice| ReadRequest { caching, ..ReadRequest::new(key(), slice) };
                assert_eq!(found(&table, &request(between(250, 252))).await, [250, 251]);
                write(&table, Mutation { deletion: deletion(50), ..Mutation::new(key()) }).await;
                for direction in [Direction::Forward, Direction::Reverse] {
                    for slice in [Slice::all(), between(250, 252), Slice::of_prefix(prefix(777))] {
                        let request = ReadRequest { direction, ..request(slice) };
                        assert_eq!(found(&table, &request).await, [0; 0], "{version:?} {request:?}");
                    }
                }
            })
            .unwrap();
        }
    }
}

/// A deletion that a compaction has purged goes on to hide rows from who reads what there was before.
#[test]
fn what_is_known_of_later_sstables_is_not_believed_of_earlier_ones() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = table(&shard, Version::Me, Vec::new()).await;
        write(&table, expiring(0..10, 1)).await;
        write(&table, expiring(100..110, 1)).await;
        write(&table, Mutation { deletion: deletion(5), ..expiring(200..210, 9) }).await;
        let request = |slice, caching| ReadRequest { caching, ..ReadRequest::new(key(), slice) };
        // It comes to what lies there before the deletion is purged, with what that hides, and reads it behind that.
        assert_eq!(of_slice(&table, between(3, 5)).await, [0; 0]);
        let mut early = table.read(&request(between(0, 150), Caching::Full)).await.unwrap();
        let all = table.sstables().members().to_vec();
        table.rewrite(&Rewrite::into_one(all), &Control::default()).await.unwrap();
        write(&table, expiring(300..310, 9)).await;
        for caching in [Caching::Bypass, Caching::Full] {
            assert_eq!(found(&table, &request(between(204, 206), caching)).await, [204, 205]);
            assert_eq!(found(&table, &request(between(104, 106), caching)).await, [0; 0]);
        }
        let mut deleted = DeletionTime::LIVE;
        let mut rows = 0;
        while let Some(fragment) = early.next().await.unwrap() {
            match fragment {
                Fragment::PartitionStart(start) => deleted = start.deletion,
                Fragment::Row(_) => rows += 1,
                _ => {}
            }
        }
        assert!(rows == 0 || deleted == deletion(5), "{rows} rows are there again");
    })
    .unwrap();
}

/// A row is read with those in front of it, which are kept: others may have rows between them.
#[test]
fn what_is_kept_with_a_row_is_what_all_sstables_say() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = table(&shard, Version::Oa, Vec::new()).await;
        write(&table, rows((0..200).map(|number| 2 * number), 1)).await;
        write(&table, rows([101, 103, 105], 2)).await;
        assert!(is_there(&table, 108).await);
        for number in 98..108 {
            assert_eq!(is_there(&table, number).await, number % 2 == 0 || number > 100 && number < 107);
        }
        assert_eq!(of_slice(&table, between(99, 109)).await, [100, 101, 102, 103, 104, 105, 106, 108]);
    })
    .unwrap();
}

#[test]
fn what_lies_elsewhere_is_missed_only_where_it_hides_nothing() {
    for version in [Version::Me, Version::Nb, Version::Oa] {
        run_simulated(SimOptions::default(), async |shard| {
            let table = table(&shard, version, Vec::new()).await;
            stretches(&table).await;
            // A range that begins and ends between stretches.
            let (start, end) = (Position::before(prefix(250)), Position::after(prefix(349)));
            let range = RangeTombstone { start, end, deletion: deletion(50) };
            write(&table, Mutation { range_tombstones: vec![range], ..Mutation::new(key()) }).await;
            for (number, is_left) in [(249, true), (250, false), (300, false), (349, false), (350, true)] {
                assert_eq!(is_there(&table, number).await, is_left, "{version:?}: {number}");
            }
            assert_eq!(of_slice(&table, between(248, 352)).await, [248, 249, 350, 351]);
            // The partition is deleted where its rows are elsewhere.
            let deleted = Mutation { deletion: deletion(60), ..rows([5000], 70) };
            write(&table, deleted).await;
            for number in [10, 777, 1999] {
                assert!(!is_there(&table, number).await, "{version:?}: {number}");
                let row = number.to_be_bytes();
                assert!(!matches!(table.known_row(key().view(), &[&row]), Known::Row(row)
                    if row.partition_deletion().is_live()));
            }
            assert_eq!(of_slice(&table, Slice::all()).await, [5000]);
        })
        .unwrap();
    }
}

/// Such an SSTable has rows nowhere, which `oa` tells as an end before the start.
#[test]
fn sstables_without_rows_are_never_in_the_way() {
    run_simulated(SimOptions::default(), async |shard| {
        let column = Column { name: b"s"[..].into(), data_type: CqlType::Blob };
        let table = table(&shard, Version::Oa, vec![column]).await;
        write(&table, rows(0..100, 1)).await;
        for timestamp in 2..6 {
            let static_row = Some(row(Clustering::empty(), timestamp));
            write(&table, Mutation { static_row, ..Mutation::new(key()) }).await;
            let request = |slice| ReadRequest {
                static_row: false,
                caching: Caching::Bypass,
                ..ReadRequest::new(key(), slice)
            };
            assert_eq!(found(&table, &request(Slice::of_prefix(prefix(50)))).await, [50]);
            assert_eq!(found(&table, &request(between(98, 200))).await, [98, 99]);
        }
        write(&table, rows(100..200, 9)).await;
        let request = ReadRequest { static_row: false, ..ReadRequest::new(key(), between(95, 105)) };
        assert!(found(&table, &request).await.into_iter().eq(95..105));
    })
    .unwrap();
}

#[test]
fn a_static_row_may_be_in_any() {
    run_simulated(SimOptions::default(), async |shard| {
        let column = Column { name: b"s"[..].into(), data_type: CqlType::Blob };
        let table = table(&shard, Version::Oa, vec![column]).await;
        stretches(&table).await;
        let mut other = rows([5000], 90);
        other.static_row = Some(row(Clustering::empty(), 90));
        write(&table, other).await;
        let mut request = ReadRequest::new(key(), Slice::of_prefix(prefix(7)));
        for wants_static_row in [true, false, true] {
            request.static_row = wants_static_row;
            let mut reader = table.read(&request).await.unwrap();
            let mut has_static_row = false;
            while let Some(fragment) = reader.next().await.unwrap() {
                has_static_row |= matches!(fragment, Fragment::StaticRow(_));
            }
            assert_eq!(has_static_row, wants_static_row);
        }
    })
    .unwrap();
}
