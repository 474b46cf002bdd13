//! Whatever the row cache has, reads give the same; and it has what it should.

use std::cell::Cell as Shared;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use model::fragment::Validator;
use model::merge::Direction;
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, Fragment, FragmentReader, Liveness, Mutation,
    PartitionKey, PartitionStart, Position, Row, Schema, Slice,
};
use runtime::{Cache, Shard, SimOptions, join_all, run_simulated, sleep, spawn, yield_now};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::row_cache::{Known, RowCacheStats};
use siltstone_storage::{Caching, Context, Definition, Generations, ReadRequest, Table};
use sstable::Version;
use sstable::component::DATA_IO;
use testkit::gather::gather;
use testkit::generate::random::Random;
use testkit::int_rows::{clustering as prefix, deletion, key};
use testkit::oracle::Oracle;
use testkit::selected::{Selected, Selection};
use testkit::statements::{self, values::key_of};

mod gaps;
mod wholes;

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };
const MIB: usize = 1 << 20;

fn definition(schema: &Rc<Schema>) -> Definition {
    let mut definition = Definition::new(TableId([0; 16]), schema, Version::Nb);
    definition.write.column_index_size = 512;
    definition
}

async fn open(shard: &Shard, definition: Definition, capacity: usize) -> Table {
    let (disk, clock) = (shard.disk().clone(), shard.clock().clone());
    let context = Context::new(disk, clock, Cache::new(capacity));
    let folder = Path::new("/d");
    shard.disk().create_dir_all(folder).await.unwrap();
    Table::open(&context, folder, definition, &Generations::default()).await.unwrap()
}

async fn flush(table: &Table) {
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
}

async fn compact(table: &Table) {
    let rewrite = Rewrite::into_one(table.compactable());
    table.rewrite(&rewrite, &Control::default()).await.unwrap();
}

async fn selected(table: &Table, request: &ReadRequest, now: i64) -> Vec<Selected> {
    let schema = table.definition().schema.clone();
    let mut rows = table.read(request).await.unwrap();
    let mut selection = Selection::new(&schema, now, request.slice.is_all());
    let mut validator = Validator::new(&schema);
    // Rows as they stand are the same: half of all partitions are read so.
    for fragment in gather(&mut rows, request.key.token % 2 == 0).await.unwrap() {
        if request.direction == Direction::Forward {
            validator.check(&fragment).unwrap();
        }
        selection.take(fragment);
    }
    validator.finish().unwrap();
    selection.rows
}

/// What memory says of the row that a slice is of by itself, without its static row; `None` if it says nothing.
fn known(table: &Table, request: &ReadRequest, now: i64) -> Option<Vec<Selected>> {
    let schema = table.definition().schema.clone();
    let row = schema.row_of(&request.slice)?;
    let row: Vec<&[u8]> = row.values.iter().flatten().map(|value| &**value).collect();
    let mut selection = Selection::new(&schema, now, false);
    match table.known_row(request.key.view(), &row) {
        Known::Unknown | Known::OnDisk => return None,
        Known::Absent => {}
        Known::Row(row) => {
            let (key, deletion) = (request.key.clone(), row.partition_deletion());
            selection.take(Fragment::PartitionStart(PartitionStart { key, deletion }));
            let mut fragment = Fragment::default();
            row.flat().decode(&mut fragment).unwrap();
            selection.take(fragment);
        }
    }
    Some(selection.rows)
}

fn without_statics(mut rows: Vec<Selected>) -> Vec<Selected> {
    rows.iter_mut().for_each(|row| row.statics.clear());
    rows
}

/// A random table under random writes, and the rows it should have.
struct Trial {
    seed: u64,
    random: Random,
    made: Rc<statements::Table>,
    table: Table,
    oracle: Oracle,
    now: i64,
    /// Of how many rows memory said that they are there, or not.
    known: Rc<Shared<[u64; 2]>>,
}

impl Trial {
    async fn run(shard: &Shard, seed: u64) -> (RowCacheStats, [u64; 2]) {
        let mut random = Random::new(seed);
        let made = Rc::new(statements::Table::random(&mut random, 0));
        let schema = Rc::new(made.schema.clone());
        let mut definition = definition(&schema);
        definition.version = *random.one_of(&[Version::Nb, Version::Oa]);
        definition.single_key_parallel_scan_threshold = *random.one_of(&[0.0, 0.5, 1.0]);
        let capacity = *random.one_of(&[0, 3000, 10_000, 40_000, MIB, MIB]);
        let table = open(shard, definition, capacity).await;
        let oracle = Oracle::new(&schema);
        let known = Rc::default();
        let mut trial = Trial { seed, random, made, table, oracle, now: 0, known };
        trial.rounds().await;
        trial.forget(shard).await;
        (trial.table.row_cache().stats(), trial.known.get())
    }

    async fn rounds(&mut self) {
        let made = self.made.clone();
        let mut writer = statements::Writer::new(&made, self.random.number());
        let mut slow = Vec::new();
        for _ in 0..self.random.between(3, 8) {
            for _ in 0..self.random.between(1, 40) {
                let mutation = writer.statement().to_mutation(&made);
                self.oracle.apply(&mutation);
                self.table.apply(&mutation, NO_POSITION);
            }
            self.now = writer.now() + self.random.below(60) as i64;
            if self.random.percent(30) {
                flush(&self.table).await;
            }
            self.read_together().await;
            if self.random.percent(20) {
                compact(&self.table).await;
            }
            // Some begin now and go on after the next writes and flushes, or never.
            let request = self.request();
            let mut reader = self.table.read(&request).await.unwrap();
            for _ in 0..self.random.below(4) {
                reader.next().await.unwrap();
            }
            slow.push(reader);
            if self.random.percent(70) {
                let mut reader = slow.swap_remove(self.random.below(slow.len()));
                while self.random.percent(95) && reader.next().await.unwrap().is_some() {}
            }
        }
    }

    /// Much later a compaction forgets what is deleted, which parts of the cache have or have not.
    async fn forget(&mut self, shard: &Shard) {
        flush(&self.table).await;
        self.read_together().await;
        self.now += 400_000_000;
        let clock = shard.clock().as_simulated().unwrap();
        clock.set(Duration::from_secs(self.now.unsigned_abs()));
        let table = self.table.clone();
        let compaction = spawn(async move { compact(&table).await });
        self.read_together().await;
        compaction.await;
        self.read_together().await;
    }

    /// Several readers at once, and often a flush, while nothing is written.
    async fn read_together(&mut self) {
        let table = self.table.clone();
        let flushes = self.random.percent(60);
        let mut tasks = vec![spawn(async move {
            if flushes {
                flush(&table).await;
            }
        })];
        for _ in 0..self.random.between(1, 25) {
            let request = self.request();
            let mut expected = Vec::new();
            for _ in 0..self.random.between(1, 3) {
                let mut request = request.clone();
                request.caching = match self.random.below(20) {
                    0 => Caching::Bypass,
                    1..4 => Caching::Look,
                    _ => Caching::Full,
                };
                request.direction = *self.random.one_of(&[Direction::Forward, Direction::Reverse]);
                expected.push((
                    self.oracle.slice(&request.key, &request.slice, request.direction, self.now),
                    request,
                ));
            }
            let (table, seed, now, of_known) = (self.table.clone(), self.seed, self.now, self.known.clone());
            let longest = *self.random.one_of(&[1, 100, 1000, 4000]);
            let pause = Duration::from_micros(self.random.below(longest) as u64);
            tasks.push(spawn(async move {
                sleep(pause).await;
                for (expected, request) in expected {
                    let found = selected(&table, &request, now).await;
                    let wanted = |rows| if request.static_row { rows } else { without_statics(rows) };
                    assert_eq!(wanted(found), wanted(expected.clone()), "seed {seed}, {request:?}");
                    let Some(known) = known(&table, &request, now) else { continue };
                    let mut counts = of_known.get();
                    counts[usize::from(known.is_empty())] += 1;
                    of_known.set(counts);
                    assert_eq!(without_statics(known), without_statics(expected), "seed {seed}, {request:?}");
                }
            }));
            if self.random.percent(10) {
                drop(tasks.remove(self.random.below(tasks.len() - 1) + 1));
            }
        }
        join_all(tasks).await;
    }

    fn request(&mut self) -> ReadRequest {
        let random = &mut self.random;
        let key: &Vec<Bytes> = random.one_of(&self.made.partitions);
        let key = PartitionKey::new(key_of(key));
        let slice = match random.below(10) {
            0..3 => Slice::all(),
            3..6 => Slice::of_prefix(self.made.random_row(random)),
            _ => self.made.random_slice(random),
        };
        let mut request = ReadRequest::new(key, slice);
        request.static_row = request.slice.is_all() || random.percent(60);
        request.limit = random.percent(20).then(|| 1 + random.below(10) as u64);
        request
    }
}

#[test]
fn whatever_is_cached_the_rows_are_the_same() {
    let (mut all, mut all_known) = (RowCacheStats::default(), [0; 2]);
    let mut with_wholes = [0; 2];
    for seed in 0..300 {
        let options = SimOptions {
            seed,
            short_read_chance: 0.2,
            max_delay: [0, 10, 100][seed as usize % 3],
            ..SimOptions::default()
        };
        let (stats, known) = run_simulated(options, async |shard| Trial::run(&shard, seed).await).unwrap();
        (0..2).for_each(|at| all_known[at] += known[at]);
        with_wholes[usize::from(stats.wholes > 0)] += 1;
        all.hits += stats.hits;
        all.partial_hits += stats.partial_hits;
        all.misses += stats.misses;
        all.shared += stats.shared;
        all.insertions += stats.insertions;
        all.invalidations += stats.invalidations;
    }
    println!("{all:?}, {all_known:?}, {with_wholes:?}");
    assert!(with_wholes.iter().all(|count| *count > 50), "{with_wholes:?}");
    assert!(all_known.iter().all(|count| *count > 300), "{all_known:?}");
    assert!(
        [all.hits, all.partial_hits, all.misses, all.insertions].iter().all(|count| *count > 1000),
        "{all:?}"
    );
    assert!([all.shared, all.invalidations].iter().all(|count| *count > 100), "{all:?}");
}

fn schema() -> Rc<Schema> {
    let column = |name: &str| Column { name: name.as_bytes().into(), data_type: CqlType::Blob };
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![column("s")], vec![column("v")]))
}

fn one(number: i32) -> Slice {
    Slice::of_prefix(prefix(number))
}

fn between(start: i32, end: i32) -> Slice {
    Slice { start: Position::before(prefix(start)), end: Position::before(prefix(end)) }
}

fn row(number: i32, timestamp: i64, len: usize) -> Row {
    let value = CellValue::Value(Bytes::from(vec![7; len]));
    let cell =
        Cell { column: 0, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value };
    Row { liveness: Liveness { timestamp, ..Liveness::NONE }, cells: vec![cell], ..Row::new(prefix(number)) }
}

fn rows(partition: i32, numbers: std::ops::Range<i32>, timestamp: i64) -> Mutation {
    let rows = numbers.map(|number| row(number, timestamp, 100)).collect();
    Mutation { rows, ..Mutation::new(key(partition)) }
}

/// A table with SSTables of these.
async fn table_of(shard: &Shard, capacity: usize, mutations: impl IntoIterator<Item = Mutation>) -> Table {
    let table = open(shard, definition(&schema()), capacity).await;
    for mutation in mutations {
        write(&table, mutation).await;
    }
    table
}

/// Into an SSTable of its own.
async fn write(table: &Table, mutation: Mutation) {
    table.apply(&mutation, NO_POSITION);
    flush(table).await;
}

/// How many rows a read gives, and how many requests it makes.
async fn read(table: &Table, request: &ReadRequest) -> (usize, u64) {
    let before = table.context().disk.stats();
    let rows = selected(table, request, 0).await;
    (rows.len(), table.context().disk.stats().since(&before).total().requests)
}

async fn read_slice(table: &Table, slice: Slice) -> (usize, u64) {
    read(table, &ReadRequest::new(key(1), slice)).await
}

fn simulated(run: impl AsyncFnOnce(Shard)) {
    run_simulated(SimOptions { max_delay: 10, ..SimOptions::default() }, run).unwrap();
}

#[test]
fn what_was_read_is_not_read_again() {
    simulated(async |shard| {
        let written = [rows(1, 0..1000, 1), rows(1, 500..700, 2), rows(2, 0..3, 1)];
        let table = table_of(&shard, 4 * MIB, written).await;
        for slice in [between(0, 10), Slice::all(), between(2000, 3000), between(100, 900)] {
            for direction in [Direction::Reverse, Direction::Forward] {
                for number in [1, 2, 3] {
                    let request = ReadRequest { direction, ..ReadRequest::new(key(number), slice.clone()) };
                    let (count, _) = read(&table, &request).await;
                    assert_eq!(read(&table, &request).await, (count, 0), "{request:?}");
                }
            }
        }
        assert_eq!(read_slice(&table, between(40, 60)).await, (20, 0));
        assert_eq!(read_slice(&table, one(650)).await, (1, 0));
        assert_eq!(read_slice(&table, one(1650)).await, (0, 0));
    });
}

#[test]
fn only_gaps_are_read() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..1000, 1)]).await;
        read_slice(&table, between(100, 200)).await;
        read_slice(&table, between(300, 400)).await;
        let before = table.row_cache().stats();
        let (count, requests) = read_slice(&table, between(150, 350)).await;
        assert_eq!(count, 200);
        assert!((1..=4).contains(&requests), "{requests} requests");
        let stats = table.row_cache().stats();
        assert_eq!((stats.partial_hits, stats.misses), (before.partial_hits + 1, before.misses));
        assert_eq!(read_slice(&table, between(100, 400)).await, (300, 0));
    });
}

#[test]
fn a_row_by_itself_is_kept_when_all_of_it_was_read() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..100, 1), rows(1, 0..50, 2)]).await;
        let request = |number| ReadRequest { static_row: false, ..ReadRequest::new(key(1), one(number)) };
        // The newest SSTable is enough, which is not all that they say: only who asks again gets it kept.
        assert_eq!(read(&table, &request(5)).await.0, 1);
        assert_eq!(table.row_cache().stats().insertions, 0);
        assert!(read(&table, &request(5)).await.1 > 0);
        assert_eq!(read(&table, &request(5)).await, (1, 0));
        // For this one the older one is: the newer one has no rows there.
        assert_eq!(read(&table, &request(75)).await.0, 1);
        assert_eq!(read(&table, &request(75)).await, (1, 0));
        assert_eq!(table.row_cache().stats().insertions, 2);
    });
}

/// They were read with it, from the beginning of its index block on.
#[test]
fn a_row_brings_those_in_front_of_it_along() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..1000, 1)]).await;
        let request = |number| ReadRequest { static_row: false, ..ReadRequest::new(key(1), one(number)) };
        let mut requests = 0;
        for number in (500..600).rev() {
            requests += read(&table, &request(number)).await.1;
            assert_eq!(read(&table, &request(number)).await, (1, 0), "{number}");
        }
        assert!(requests <= 30, "{requests} requests for a hundred rows, five to a block");
        // They are kept from behind what is known, if the block does not begin behind that.
        let mut joined = 0;
        for end in [702, 713, 724, 735] {
            read_slice(&table, between(end - 10, end)).await;
            let before = table.row_cache().stats().parts;
            assert_eq!(read(&table, &request(end + 1)).await.0, 1);
            assert_eq!(table.row_cache().stats().parts, before + 1);
            let slice = Slice { end: Position::after(prefix(end + 1)), ..between(end - 10, end) };
            joined += u64::from(read_slice(&table, slice).await == (12, 0));
        }
        assert!(joined >= 3, "{joined} of 4");
    });
}

#[test]
fn a_flush_drops_what_it_says_something_of() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..1000, 1), rows(2, 0..10, 1)]).await;
        let all = async || {
            let counts = read_slice(&table, Slice::all()).await;
            (counts, read(&table, &ReadRequest::new(key(2), Slice::all())).await)
        };
        all().await;
        let parts = table.row_cache().stats().parts;
        assert!(parts > 10, "{parts} parts");

        write(&table, rows(1, 500..501, 2)).await;
        assert_eq!(table.row_cache().stats().parts, parts - 1);
        let ((count, requests), (_, others)) = all().await;
        assert_eq!((count, others), (1000, 0));
        assert!((1..=4).contains(&requests), "{requests} requests");

        let (start, end) = (Position::after(prefix(100)), Position::before(prefix(900)));
        let range = model::RangeTombstone { start, end, deletion: deletion(3) };
        write(&table, Mutation { range_tombstones: vec![range], ..Mutation::new(key(1)) }).await;
        assert_eq!(all().await.0.0, 201);
        assert_eq!(all().await, ((201, 0), (10, 0)));

        let static_row = Some(Row { clustering: Clustering::empty(), ..row(0, 1, 3) });
        write(&table, Mutation { static_row, ..Mutation::new(key(1)) }).await;
        let before = table.row_cache().stats();
        assert!(all().await.0.1 > 0);
        assert_eq!(table.row_cache().stats().insertions, before.insertions + 1);

        write(&table, Mutation { deletion: deletion(2), ..Mutation::new(key(1)) }).await;
        assert_eq!(all().await.0.0, 0);
        assert_eq!(all().await, ((0, 0), (10, 0)));
    });
}

#[test]
fn a_read_from_before_a_flush_keeps_nothing_after_it() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..1000, 1), rows(2, 0..1000, 1)]).await;
        let readers = [1, 2].map(|number| ReadRequest::new(key(number), Slice::all()));
        let mut readers = join_all(readers.iter().map(|request| table.read(request))).await;
        for reader in &mut readers {
            reader.as_mut().unwrap().next().await.unwrap();
        }
        write(&table, rows(1, 990..1010, 2)).await;
        for reader in readers {
            let (mut reader, mut count) = (reader.unwrap(), 0);
            while let Some(fragment) = reader.next().await.unwrap() {
                count += usize::from(matches!(fragment, Fragment::Row(_)));
            }
            assert_eq!(count, 1000);
        }
        assert_eq!(read(&table, &ReadRequest::new(key(2), Slice::all())).await, (1000, 0));
        assert_eq!(read_slice(&table, Slice::all()).await.0, 1010);
    });
}

#[test]
fn a_flush_may_come_at_any_moment_of_a_read() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..100, 1)]).await;
        let request = ReadRequest::new(key(1), Slice::all());
        for round in 1..400 {
            table.row_cache().clear();
            // What is read first is what the flush changes.
            table.apply(&rows(1, -round..1 - round, 2), NO_POSITION);
            let flushed = table.clone();
            let flush = spawn(async move { flush(&flushed).await });
            sleep(Duration::from_micros(round.unsigned_abs().into())).await;
            let count = 100 + round as usize;
            assert_eq!(read(&table, &request).await.0, count);
            flush.await;
            assert_eq!(read(&table, &request).await.0, count);
            if table.sstables().members().len() > 4 {
                compact(&table).await;
            }
        }
    });
}

#[test]
fn a_compaction_changes_nothing() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..300, 1), rows(1, 100..200, 2)]).await;
        read_slice(&table, between(0, 150)).await;
        let before = table.row_cache().stats();
        compact(&table).await;
        assert_eq!(table.row_cache().stats(), before);
        assert_eq!(read_slice(&table, between(0, 150)).await, (150, 0));
        assert_eq!(read_slice(&table, Slice::all()).await.0, 300);
    });
}

#[test]
fn other_columns_are_other_rows() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..300, 1), rows(1, 0..1, 2)]).await;
        let request = ReadRequest::new(key(1), between(0, 100));
        let values = async || selected(&table, &request, 0).await[1].regulars.clone();
        let value = Some(Bytes::from(vec![7; 100]));
        assert_eq!(values().await, std::slice::from_ref(&value));
        let mut reader = table.read(&ReadRequest::new(key(1), Slice::all())).await.unwrap();
        for _ in 0..20 {
            reader.next().await.unwrap();
        }
        let old = schema();
        let (mut regulars, data_type) = (old.regulars.clone(), CqlType::Blob);
        regulars.push(Column { name: b"a".as_slice().into(), data_type });
        let (keys, clustering) = (old.partition_key.clone(), old.clustering.clone());
        let altered = Rc::new(Schema::new(keys, clustering, old.statics.clone(), regulars));
        table.set_definition(definition(&altered)).await.unwrap();
        assert_eq!(table.row_cache().stats().parts, 0);
        while reader.next().await.unwrap().is_some() {}
        assert_eq!(table.row_cache().stats().parts, 0);
        for _ in 0..2 {
            assert_eq!(values().await, [None, value.clone()]);
        }
    });
}

#[test]
fn a_reader_that_goes_away_leaves_what_it_gave() {
    simulated(async |shard| {
        for direction in [Direction::Forward, Direction::Reverse] {
            let table = table_of(&shard, 4 * MIB, [rows(1, 0..1000, 1)]).await;
            let request = ReadRequest { direction, ..ReadRequest::new(key(1), Slice::all()) };
            let mut reader = table.read(&request).await.unwrap();
            for _ in 0..400 {
                reader.next().await.unwrap();
            }
            drop(reader);
            let given = if direction == Direction::Forward { between(0, 390) } else { between(610, 1000) };
            assert_eq!(read_slice(&table, given).await, (390, 0), "{direction:?}");
            table.row_cache().clear();
            assert_eq!(table.row_cache().stats().parts, 0);
            assert!(read_slice(&table, one(100)).await.1 > 0);
        }
    });
}

#[test]
fn concurrent_reads_of_the_same_are_one_read() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..1000, 1)]).await;
        for slice in [one(7), between(100, 120), between(200, 600)] {
            let request = ReadRequest::new(key(1), slice);
            let data = || table.context().disk.stats().class(DATA_IO).requests;
            table.row_cache().clear();
            let before = data();
            let (count, _) = read(&table, &request).await;
            let alone = data() - before;
            table.row_cache().clear();
            let before = data();
            let all = join_all((0..20).map(|_| selected(&table, &request, 0))).await;
            assert!(all.iter().all(|rows| rows.len() == count));
            assert_eq!(data() - before, alone, "{request:?}");
        }
        // The others wait for the first one, or come once it is there.
        let stats = table.row_cache().stats();
        assert!(stats.shared >= 19 && stats.shared + stats.hits >= 57, "{stats:?}");
    });
}

#[test]
fn whoever_waits_is_not_let_down() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..1000, 1)]).await;
        let request = ReadRequest::new(key(1), between(5, 25));
        let start = || {
            let (table, request) = (table.clone(), request.clone());
            spawn(async move { table.read(&request).await?.next().await.map(|_| ()) })
        };
        let first = start();
        yield_now().await;
        let others = [start(), start()];
        yield_now().await;
        drop(first);
        assert!(join_all(others).await.into_iter().all(|read| read.is_ok()));

        // Whoever reads itself gets the error; one of the others tries again.
        let disk = shard.disk().as_simulated().unwrap();
        let mut failed = 0;
        for seed in 0..20 {
            table.row_cache().clear();
            let options = SimOptions { seed, io_error_chance: 0.5, max_delay: 10, ..SimOptions::default() };
            disk.set_options(options);
            let outcomes = join_all((0..10).map(|_| start())).await;
            let errors = outcomes.iter().filter(|outcome| outcome.is_err()).count();
            assert!(errors < 10);
            failed += errors;
        }
        disk.set_options(SimOptions::default());
        assert!((5..50).contains(&failed), "{failed} failed");
        assert_eq!(read_slice(&table, between(5, 25)).await.0, 20);
    });
}

#[test]
fn a_look_takes_from_it_and_puts_nothing_in() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..100, 1)]).await;
        let of =
            |slice: &Slice| ReadRequest { caching: Caching::Look, ..ReadRequest::new(key(1), slice.clone()) };
        let (row, few) = (Slice::of_prefix(prefix(7)), between(5, 8));
        for slice in [&row, &few] {
            for _ in 0..2 {
                assert!(read(&table, &of(slice)).await.1 > 0);
            }
        }
        assert_eq!(table.row_cache().stats().insertions, 0);
        read_slice(&table, Slice::all()).await;
        let filled = table.row_cache().stats();
        for (slice, count) in [(&row, 1), (&few, 3)] {
            assert_eq!(read(&table, &of(slice)).await, (count, 0), "no request");
        }
        let looked = table.row_cache().stats();
        assert_eq!((looked.hits, looked.insertions), (filled.hits + 2, filled.insertions));
    });
}

#[test]
fn it_may_be_switched_off() {
    simulated(async |shard| {
        let table = table_of(&shard, 4 * MIB, [rows(1, 0..100, 1)]).await;
        let past = ReadRequest { caching: Caching::Bypass, ..ReadRequest::new(key(1), Slice::all()) };
        assert_eq!(read(&table, &past).await.0, 100);
        assert_eq!(table.row_cache().stats(), RowCacheStats::default());
        read_slice(&table, Slice::all()).await;
        assert!(read(&table, &past).await.1 > 0);

        let definition = Definition { caches_rows: false, ..definition(&schema()) };
        let table = open(&shard, definition, MIB).await;
        assert_eq!(read_slice(&table, Slice::all()).await.0, 100);
        let table = open(&shard, self::definition(&schema()), 0).await;
        assert_eq!(read_slice(&table, Slice::all()).await.0, 100);
        assert_eq!(table.row_cache().stats(), RowCacheStats::default());
    });
}

#[test]
fn one_read_does_not_take_the_whole_cache() {
    simulated(async |shard| {
        let table = table_of(&shard, MIB, [rows(1, 0..20_000, 1)]).await;
        assert_eq!(read_slice(&table, Slice::all()).await.0, 20_000);
        let stats = table.row_cache().stats();
        assert!((MIB / 5..=MIB / 4).contains(&stats.bytes), "{stats:?}");
    });
}

#[test]
fn large_rows_are_not_kept() {
    simulated(async |shard| {
        let mut large = rows(1, 0..30, 1);
        large.rows[10] = row(10, 1, 200_000);
        let table = table_of(&shard, 4 * MIB, [large]).await;
        for direction in [Direction::Forward, Direction::Reverse] {
            let request = ReadRequest { direction, ..ReadRequest::new(key(1), Slice::all()) };
            assert_eq!(read(&table, &request).await.0, 30);
            assert_eq!(read(&table, &request).await.0, 30);
        }
        assert!(table.row_cache().stats().bytes < 20_000);
        assert_eq!(read_slice(&table, between(0, 10)).await, (10, 0));
        assert_eq!(read_slice(&table, between(11, 40)).await, (19, 0));
        assert!(read_slice(&table, one(10)).await.1 > 0);
    });
}
