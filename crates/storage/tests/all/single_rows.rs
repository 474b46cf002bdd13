//! Single rows, newest SSTable first: the same rows as ever, and no more SSTables than it takes.

use std::borrow::Cow;
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use model::merge::{Direction, Merge};
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, FragmentReader, Liveness, Mutation,
    PartitionKey, Position, RangeTombstone, Row, Schema, Slice, Token,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::cover::Wanted;
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::source::Source;
use siltstone_storage::{Begun, Caching, Context, Definition, Generations, ReadRequest, Table};
use sstable::Version;
use sstable::component::DATA_IO;
use testkit::generate::random::Random;
use testkit::oracle::Oracle;
use testkit::selected::{Selected, Selection};
use testkit::statements::{self, values::key_of};

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };

async fn open(shard: &Shard, schema: &Rc<Schema>, threshold: f64, fences: bool) -> Table {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(1 << 20));
    let folder = Path::new("/d");
    shard.disk().create_dir_all(folder).await.unwrap();
    let mut definition = Definition::new(TableId([0; 16]), schema, Version::Nb);
    definition.single_key_parallel_scan_threshold = threshold;
    definition.write.fences = fences;
    definition.write.column_index_size = 512;
    Table::open(&context, folder, definition, &Generations::default()).await.unwrap()
}

async fn flush(table: &Table) {
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
}

async fn selected(table: &Table, request: &ReadRequest, now: i64) -> Vec<Selected> {
    selected_of(table, request, table.read(request).await.unwrap(), now).await
}

async fn selected_of(
    table: &Table,
    request: &ReadRequest,
    mut rows: Merge<Source>,
    now: i64,
) -> Vec<Selected> {
    let schema = table.definition().schema.clone();
    let mut selection = Selection::new(&schema, now, request.slice.is_all());
    while let Some(fragment) = rows.next().await.unwrap() {
        selection.take(fragment);
    }
    selection.rows
}

/// What is found of many requests that are made at once.
async fn selected_at_once(table: &Table, requests: &[ReadRequest], now: i64) -> Vec<Vec<Selected>> {
    let begun = table.begin_all(requests.iter().map(Cow::Borrowed).collect()).await.unwrap();
    let opened = begun
        .into_iter()
        .zip(requests)
        .map(async |(begun, request)| selected_of(table, request, begun.open().await.unwrap(), now).await);
    runtime::join_all(opened).await
}

/// Random writes, flushes and compactions; then every row by itself, and slices, against the oracle.
async fn compare(shard: &Shard, seed: u64, threshold: f64, fences: bool) {
    let mut random = Random::new(seed);
    let made = statements::Table::random(&mut random, 0);
    let schema = Rc::new(made.schema.clone());
    let table = open(shard, &schema, threshold, fences).await;
    let mut writer = statements::Writer::new(&made, random.number());
    let mut oracle = Oracle::new(&schema);
    for _ in 0..random.between(3, 7) {
        for _ in 0..random.between(1, 40) {
            let mutation = writer.statement().to_mutation(&made);
            oracle.apply(&mutation);
            table.apply(&mutation, NO_POSITION);
        }
        if random.percent(80) {
            flush(&table).await;
        }
        if random.percent(20) {
            let mut rewrite = Rewrite::into_one(table.compactable());
            rewrite.job.max_output_bytes = random.percent(50).then_some(200);
            table.rewrite(&rewrite, &Control::default()).await.unwrap();
        }
    }
    let now = writer.now() + random.below(60) as i64;
    for key in &made.partitions {
        for _ in 0..12 {
            let row = made.random_row(&mut random);
            let mut request = ReadRequest::new(PartitionKey::new(key_of(key)), Slice::of_prefix(row));
            request.direction = *random.one_of(&[Direction::Forward, Direction::Reverse]);
            let found = selected(&table, &request, now).await;
            let expected = oracle.slice(&request.key, &request.slice, request.direction, now);
            assert_eq!(found, expected, "seed {seed}, threshold {threshold}, fences {fences}");
        }
        for caching in [Caching::Bypass, Caching::Look, Caching::Full, Caching::Full] {
            let static_row = random.percent(20);
            let request = |row| {
                let request = ReadRequest::new(PartitionKey::new(key_of(key)), Slice::of_prefix(row));
                ReadRequest { static_row, caching, ..request }
            };
            let requests: Vec<ReadRequest> =
                (0..random.between(2, 40)).map(|_| request(made.random_row(&mut random))).collect();
            let found = selected_at_once(&table, &requests, now).await;
            for (found, request) in found.into_iter().zip(&requests) {
                let mut expected = oracle.slice(&request.key, &request.slice, Direction::Forward, now);
                if !static_row && !request.slice.is_all() {
                    expected.iter_mut().for_each(|row| row.statics.fill(None));
                }
                assert_eq!(found, expected, "seed {seed}, threshold {threshold}, fences {fences}, at once");
            }
        }
    }
    scan_agrees(&table, &oracle, now, seed).await;
}

async fn scan_agrees(table: &Table, oracle: &Oracle, now: i64, seed: u64) {
    let schema = table.definition().schema.clone();
    let mut scan = table.scan(None, Token::MAX, None).await.unwrap();
    let mut selection = Selection::new(&schema, now, true);
    while let Some(fragment) = scan.next().await.unwrap() {
        selection.take(fragment);
    }
    assert_eq!(selection.rows, oracle.rows(now), "seed {seed}");
}

#[test]
fn however_they_are_read_the_rows_are_the_same() {
    for seed in 0..120 {
        for (threshold, fences) in [(0.0, true), (0.5, false), (1.0, true)] {
            run_simulated(SimOptions { seed, ..SimOptions::default() }, async |shard| {
                compare(&shard, seed, threshold, fences).await;
            })
            .unwrap();
        }
    }
}

fn schema() -> Rc<Schema> {
    let column = |name: &str| Column { name: name.as_bytes().into(), data_type: CqlType::Int };
    let regulars = vec![column("a"), column("b")];
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![column("s")], regulars))
}

fn key() -> PartitionKey {
    PartitionKey::new(Bytes::from(&[0, 0, 0, 1][..]))
}

fn clustering() -> Clustering {
    std::iter::once(&[0, 0, 0, 7][..]).collect()
}

fn row(marker: Option<i64>, cells: &[(u16, i64)]) -> Mutation {
    let cell = |&(column, timestamp): &(u16, i64)| Cell {
        column,
        ttl: 0,
        timestamp,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value: CellValue::Value(Bytes::from(&[0, 0, 0, 9][..])),
    };
    let mut row = Row { cells: cells.iter().map(cell).collect(), ..Row::new(clustering()) };
    if let Some(timestamp) = marker {
        row.liveness = Liveness { timestamp, ..Liveness::NONE };
    }
    Mutation { rows: vec![row], ..Mutation::new(key()) }
}

/// How many SSTables' data a read of the row asks for, with a whole row in each of three older SSTables.
fn sstables_read(newest: Option<Mutation>, change: impl Fn(&mut ReadRequest)) -> u64 {
    run_simulated(SimOptions::default(), async |shard| {
        let table = open(&shard, &schema(), 1.0, true).await;
        let older = (1..=3).map(|timestamp| row(Some(timestamp), &[(0, timestamp), (1, timestamp)]));
        for mutation in older.chain(newest) {
            table.apply(&mutation, NO_POSITION);
            flush(&table).await;
        }
        let mut request = ReadRequest::new(key(), Slice::of_prefix(clustering()));
        request.static_row = false;
        change(&mut request);
        let before = shard.disk().stats();
        let rows = selected(&table, &request, 0).await;
        assert!(rows.len() <= 1);
        shard.disk().stats().since(&before).class(DATA_IO).requests
    })
    .unwrap()
}

#[test]
fn it_stops_as_soon_as_nothing_older_can_matter() {
    let same = |_: &mut ReadRequest| ();
    assert_eq!(sstables_read(None, same), 1);
    assert_eq!(sstables_read(Some(row(Some(4), &[(0, 4), (1, 4)])), same), 1);
    // A deletion is enough, also of a range or the partition, and of the same timestamp.
    let deletion = DeletionTime { marked_for_delete_at: 3, local_deletion_time: 1 };
    assert_eq!(sstables_read(Some(Mutation { deletion, ..Mutation::new(key()) }), same), 1);
    let range = RangeTombstone { start: Position::start(), end: Position::end(), deletion };
    assert_eq!(
        sstables_read(Some(Mutation { range_tombstones: vec![range], ..Mutation::new(key()) }), same),
        1
    );
}

#[test]
fn it_reads_the_rest_where_something_older_may_matter() {
    let same = |_: &mut ReadRequest| ();
    // Without a marker, without a column, with the timestamp of another one.
    assert_eq!(sstables_read(Some(row(None, &[(0, 4), (1, 4)])), same), 4);
    assert_eq!(sstables_read(Some(row(Some(4), &[(0, 4)])), same), 4);
    assert_eq!(sstables_read(Some(row(Some(4), &[(0, 4), (1, 3)])), same), 4);
    let one = |request: &mut ReadRequest| request.wanted = Wanted { regulars: Some(vec![0]), statics: None };
    assert_eq!(sstables_read(Some(row(Some(4), &[(0, 4)])), one), 1);
    let with_static = |request: &mut ReadRequest| request.static_row = true;
    assert_eq!(sstables_read(None, with_static), 3);
}

#[test]
fn a_slice_that_ends_at_a_row_has_it_whatever_is_deleted_around() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = open(&shard, &schema(), 1.0, true).await;
        let deletion = DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 };
        let range = RangeTombstone { start: Position::start(), end: Position::end(), deletion };
        table.apply(&Mutation { range_tombstones: vec![range], ..Mutation::new(key()) }, NO_POSITION);
        flush(&table).await;
        table.apply(&row(Some(2), &[(0, 2)]), NO_POSITION);
        flush(&table).await;
        let at = Position::at(clustering());
        for (start, end) in [(at.clone(), at.clone()), (at.clone(), Position::end()), (Position::start(), at)]
        {
            for direction in [Direction::Forward, Direction::Reverse] {
                let slice = Slice { start: start.clone(), end: end.clone() };
                let mut request = ReadRequest { direction, ..ReadRequest::new(key(), slice) };
                for caching in [Caching::Bypass, Caching::Look, Caching::Full] {
                    request.caching = caching;
                    assert_eq!(selected(&table, &request, 0).await.len(), 1, "{request:?}");
                }
            }
        }
    })
    .unwrap();
}

/// A partition in six SSTables, each row in one of them: the others know that they do not have it.
#[test]
fn a_row_of_one_of_many_sstables_is_one_request() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = open(&shard, &schema(), 0.5, true).await;
        let (sstables, rows) = (6, 8000);
        for sstable in 0..sstables {
            for number in (0..rows).map(|number| number * sstables + sstable) {
                // All of one timestamp: each may have a say.
                let mut mutation = row(Some(1), &[(0, 1), (1, 1)]);
                mutation.rows[0].clustering = place(number);
                table.apply(&mutation, NO_POSITION);
            }
            flush(&table).await;
        }
        let read = async |numbers: std::ops::Range<u32>| {
            let before = shard.disk().stats();
            for number in numbers {
                let slice = Slice::of_prefix(place(number * 7919 % (sstables * rows)));
                let mut request = ReadRequest { caching: Caching::Bypass, ..ReadRequest::new(key(), slice) };
                request.static_row = false;
                assert_eq!(selected(&table, &request, 0).await.len(), 1);
            }
            shard.disk().stats().since(&before).class(DATA_IO).requests
        };
        // Some are looked for in vain until pages are asked first.
        assert!((60..100).contains(&read(0..30).await));
        read(30..1000).await;
        let requests = read(1000..2000).await;
        assert!((1000..1060).contains(&requests), "{requests} requests for 1000 rows");
    })
    .unwrap();
}

/// An SSTable for each of these timestamps, with the same hundred rows of a partition, all of that timestamp.
async fn hundred_rows(shard: &Shard, timestamps: &[i64]) -> Table {
    let table = open(shard, &schema(), 1.0, true).await;
    for &timestamp in timestamps {
        for number in 0..100 {
            let mut mutation = row(Some(timestamp), &[(0, timestamp), (1, timestamp)]);
            mutation.rows[0].clustering = place(number);
            table.apply(&mutation, NO_POSITION);
        }
        flush(&table).await;
    }
    table
}

fn place(number: u32) -> Clustering {
    std::iter::once(&number.to_be_bytes()[..]).collect()
}

fn requests_of(numbers: &[u32], caching: Caching) -> Vec<ReadRequest> {
    let request = |&number| {
        let request = ReadRequest::new(key(), Slice::of_prefix(place(number)));
        ReadRequest { static_row: false, caching, ..request }
    };
    numbers.iter().map(request).collect()
}

/// How many requests of data it takes to read these rows at once.
fn requests_at_once(timestamps: [i64; 3], numbers: &[u32], caching: Caching) -> u64 {
    run_simulated(SimOptions::default(), async |shard| {
        let table = hundred_rows(&shard, &timestamps).await;
        let before = shard.disk().stats();
        let found = selected_at_once(&table, &requests_of(numbers, caching), 0).await;
        for (found, &number) in found.iter().zip(numbers) {
            assert_eq!(found.len(), usize::from(number < 100), "row {number}");
        }
        shard.disk().stats().since(&before).class(DATA_IO).requests
    })
    .unwrap()
}

#[test]
fn rows_of_a_block_that_are_read_at_once_are_one_request() {
    for caching in [Caching::Bypass, Caching::Full] {
        // A block has some twenty rows. The newest SSTable is enough, or all have to be asked.
        assert_eq!(requests_at_once([1, 2, 3], &[4, 2, 3], caching), 1);
        assert_eq!(requests_at_once([1, 1, 1], &[4, 2, 3], caching), 3);
        // So are those of blocks that are near each other.
        assert_eq!(requests_at_once([1, 2, 3], &[2, 60], caching), 1);
    }
    // A row that is named twice is read twice.
    assert_eq!(requests_at_once([1, 2, 3], &[4, 2, 3, 2], Caching::Bypass), 2);
}

#[test]
fn who_is_dropped_while_it_reads_for_all_leaves_it_to_the_next() {
    run_simulated(SimOptions { max_delay: 10, ..SimOptions::default() }, async |shard| {
        let table = hundred_rows(&shard, &[1]).await;
        let requests = requests_of(&[1, 2, 3], Caching::Bypass);
        let begun = table.begin_all(requests.iter().map(Cow::Borrowed).collect()).await.unwrap();
        let mut begun = begun.into_iter().zip(&requests);
        {
            let (first, _) = begun.next().unwrap();
            let mut open = pin!(first.open());
            assert!(poll_fn(|context| Poll::Ready(open.as_mut().poll(context).is_pending())).await);
        }
        for (begun, request) in begun {
            assert_eq!(selected_of(&table, request, begun.open().await.unwrap(), 0).await.len(), 1);
        }
    })
    .unwrap();
}

#[test]
fn what_goes_wrong_with_one_row_is_not_told_of_another() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = hundred_rows(&shard, &[1, 1]).await;
        let disk = shard.disk().as_simulated().unwrap();
        let requests = requests_of(&[3, 40, 90], Caching::Bypass);
        let [mut rows, mut errors] = [0, 0];
        for seed in 0..100 {
            disk.set_options(SimOptions { seed, io_error_chance: 0.2, ..SimOptions::default() });
            let begun = table.begin_all(requests.iter().map(Cow::Borrowed).collect()).await.unwrap();
            let opened = runtime::join_all(begun.into_iter().map(Begun::open)).await;
            disk.set_options(SimOptions::default());
            for (stream, request) in opened.into_iter().zip(&requests) {
                match stream {
                    Ok(stream) => {
                        assert_eq!(selected_of(&table, request, stream, 0).await.len(), 1);
                        rows += 1;
                    }
                    Err(error) => {
                        assert!(error.to_string().contains("Data.db"), "{error}");
                        errors += 1;
                    }
                }
            }
        }
        // All six requests succeed at once with a chance of a quarter; each row has two of its own otherwise.
        assert!(rows > 150 && errors > 20, "{rows} rows, {errors} errors");
    })
    .unwrap();
}

/// Where two SSTables are read at once, because that is what rows take, and the newer one has all that is wanted of a row: what
/// else there is of it is found when it is wanted.
#[test]
fn what_is_not_wanted_of_a_row_is_not_lost() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = open(&shard, &schema(), 1.0, true).await;
        let with = |number, mut mutation: Mutation| {
            mutation.rows[0].clustering = place(number);
            table.apply(&mutation, NO_POSITION);
        };
        // Column b of all rows, and column a: that of half of them before it is wanted, that of the others now.
        (0..200).for_each(|number| with(number, row(Some(1), &[(0, 1), (1, 1)])));
        flush(&table).await;
        (0..200).for_each(|number| with(number, row((number < 100).then_some(2), &[(0, 2)])));
        flush(&table).await;
        let request = |number, wanted: Vec<u16>| {
            let wanted = Wanted { regulars: Some(wanted), statics: None };
            let request = ReadRequest::new(key(), Slice::of_prefix(place(number)));
            ReadRequest { static_row: false, wanted, ..request }
        };
        for number in 100..200 {
            assert_eq!(selected(&table, &request(number, vec![0]), 0).await.len(), 1);
        }
        for first in (0..100).step_by(3) {
            assert_eq!(selected(&table, &request(first, vec![0]), 0).await.len(), 1);
            let others = [first + 1, first + 2].map(|number| request(number, vec![0]));
            assert!(selected_at_once(&table, &others, 0).await.iter().all(|rows| rows.len() == 1));
            for number in first..first + 3 {
                let rows = selected(&table, &request(number, vec![0, 1]), 0).await;
                assert!(rows[0].regulars.iter().all(Option::is_some), "row {number}: {rows:?}");
            }
        }
    })
    .unwrap();
}

#[test]
fn it_adapts_and_tries_again_now_and_then() {
    run_simulated(SimOptions::default(), async |shard| {
        let table = open(&shard, &schema(), 0.5, true).await;
        // Each SSTable has one of the columns, so none is enough.
        for timestamp in 1..=3 {
            table.apply(&row(Some(timestamp), &[((timestamp % 2) as u16, timestamp)]), NO_POSITION);
            flush(&table).await;
        }
        let request = ReadRequest {
            caching: Caching::Bypass,
            ..ReadRequest::new(key(), Slice::of_prefix(clustering()))
        };
        for _ in 0..1000 {
            assert_eq!(selected(&table, &request, 0).await.len(), 1);
        }
        let stats = table.single_key_stats();
        assert_eq!((stats.eligible, stats.hits), (1000, 0));
        assert!((10..80).contains(&stats.newest_first), "{stats:?}");
        assert_eq!(stats.extra_reads[2], stats.newest_first);
    })
    .unwrap();
}
