//! Rows fetched from the only SSTable that may have them: what comes is what a read gives, for no more requests.

use std::path::Path;
use std::rc::Rc;

use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, Fragment, FragmentReader, Liveness, Mutation,
    PartitionKey, PartitionStart, Position, RangeTombstone, Row, Schema, Slice, time::NO_DELETION_TIME,
};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use siltstone_storage::commit_log::{LogPosition, TableId};
use siltstone_storage::row_cache::Known;
use siltstone_storage::{Caching, Context, Definition, Fetched, Generations, ReadRequest, Result, Table};
use sstable::Version;
use sstable::component::DATA_IO;
use testkit::generate::random::Random;
use testkit::int_rows::{self, deletion};
use testkit::selected::{Selected, Selection};

const NO_POSITION: LogPosition = LogPosition { segment: 0, offset: 0 };
const NOW: i64 = 1000;
/// So many that the blocks of their partition have fences.
const ROWS: i32 = 3000;

fn key() -> PartitionKey {
    int_rows::key(1)
}

/// What the clustering key of a table is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Int,
    Reversed,
    Text,
    Both,
}

impl Kind {
    fn schema(self) -> Rc<Schema> {
        let clustering = match self {
            Kind::Int => vec![CqlType::Int],
            Kind::Reversed => vec![CqlType::Reversed(Box::new(CqlType::BigInt))],
            Kind::Text => vec![CqlType::Text],
            Kind::Both => vec![CqlType::Int, CqlType::Text],
        };
        let column = |name: &str, data_type| Column { name: name.as_bytes().into(), data_type };
        let regulars = vec![column("a", CqlType::Int), column("b", CqlType::Blob)];
        Rc::new(Schema::new(CqlType::Int, clustering, Vec::new(), regulars))
    }

    fn clustering(self, number: i32) -> Clustering {
        let values: Vec<Vec<u8>> = match self {
            Kind::Int => vec![number.to_be_bytes().to_vec()],
            Kind::Reversed => vec![i64::from(number - ROWS / 2).to_be_bytes().to_vec()],
            Kind::Text => vec![format!("{number:04}").into_bytes()],
            Kind::Both => {
                vec![(number / 10).to_be_bytes().to_vec(), format!("t{}", number % 10).into_bytes()]
            }
        };
        values.into_iter().collect()
    }
}

fn cell(column: u16, timestamp: i64, value: Vec<u8>) -> Cell {
    let value = CellValue::Value(Bytes::from(value));
    Cell { column, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value }
}

/// A row with all its columns.
fn usual(clustering: Clustering, number: i32, len: usize) -> Row {
    let liveness = Liveness { timestamp: 10, ..Liveness::NONE };
    let cells = vec![cell(0, 10, number.to_be_bytes().to_vec()), cell(1, 10, vec![number as u8; len])];
    Row { liveness, cells, ..Row::new(clustering) }
}

/// Rows of all kinds, at even numbers.
fn random_mutation(random: &mut Random, kind: Kind) -> Mutation {
    let mut mutation = Mutation::new(key());
    let longest = *random.one_of(&[60, 60, 300, 3000]);
    for number in (0..ROWS).step_by(2) {
        let mut row = usual(kind.clustering(number), number, 1 + random.below(longest));
        match random.below(20) {
            0 => drop(row.cells.pop()),
            1 => row.cells[1].timestamp = 11,
            2 => row.liveness = Liveness::NONE,
            3 => row.deletion = deletion(5),
            4 => row = Row { deletion: deletion(5), ..Row::new(row.clustering) },
            5 => {
                let expires = *random.one_of(&[NOW - 1, NOW + 100]);
                row.cells[0].ttl = 50;
                row.cells[0].local_deletion_time = expires;
            }
            6 => continue,
            _ => {}
        }
        mutation.rows.push(row);
    }
    let schema = kind.schema();
    mutation.rows.sort_by(|a, b| schema.compare_rows(&a.clustering, &b.clustering));
    for _ in 0..*random.one_of(&[0, 0, 1, 5]) {
        let from = random.below(ROWS as usize) as i32;
        let (start, end) = (kind.clustering(from), kind.clustering(from + random.below(40) as i32));
        let (start, end) = (Position::before(start), Position::after(end));
        let (start, end) = if schema.compare(&start, &end).is_le() { (start, end) } else { continue };
        let deletion = deletion(*random.one_of(&[8, 12]));
        mutation.range_tombstones.push(RangeTombstone { start, end, deletion });
    }
    if random.percent(20) {
        mutation.deletion = deletion(*random.one_of(&[3, 20]));
    }
    mutation
}

/// A table with these rows in one SSTable, whose rows are not kept.
async fn table_of(shard: &Shard, kind: Kind, mutation: &Mutation, caches_rows: bool) -> Table {
    let table = open(shard, kind, 4 << 20, caches_rows).await;
    table.apply(mutation, NO_POSITION);
    table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
    table
}

/// The table as it is on the disk.
async fn open(shard: &Shard, kind: Kind, cache: usize, caches_rows: bool) -> Table {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(cache));
    let folder = Path::new("/d");
    shard.disk().create_dir_all(folder).await.unwrap();
    let mut definition = Definition::new(TableId([0; 16]), &kind.schema(), Version::Oa);
    definition.write.column_index_size = 150;
    definition.write.compression = None;
    definition.caches_rows = caches_rows;
    Table::open(&context, folder, definition, &Generations::default()).await.unwrap()
}

/// The row as a read of its slice gives it, with nothing else around.
async fn try_read(table: &Table, slice: &Slice) -> Result<Vec<Selected>> {
    let request = ReadRequest {
        static_row: false,
        limit: Some(1),
        caching: Caching::Bypass,
        ..ReadRequest::new(key(), slice.clone())
    };
    let mut stream = table.read(&request).await?;
    selected(table, &mut stream).await
}

async fn selected(
    table: &Table,
    stream: &mut impl FragmentReader<Error = siltstone_storage::Error>,
) -> Result<Vec<Selected>> {
    let schema = table.definition().schema.clone();
    let mut selection = Selection::new(&schema, NOW, false);
    while let Some(fragment) = stream.next().await? {
        selection.take(fragment);
    }
    Ok(selection.rows)
}

/// How a row came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Unread,
    Absent,
    Row,
    Stream,
}

async fn read(table: &Table, slice: &Slice) -> Vec<Selected> {
    try_read(table, slice).await.unwrap()
}

async fn fetch(table: &Table, slice: &Slice) -> (How, Vec<Selected>) {
    try_fetch(table, slice).await.unwrap()
}

async fn try_fetch(table: &Table, slice: &Slice) -> Result<(How, Vec<Selected>)> {
    Ok(match table.fetch_row(&key(), slice).await? {
        Fetched::Unread => (How::Unread, Vec::new()),
        Fetched::Absent => (How::Absent, Vec::new()),
        Fetched::Row(row) => {
            let schema = table.definition().schema.clone();
            let mut selection = Selection::new(&schema, NOW, false);
            let (key, deletion) = (key(), row.partition_deletion());
            selection.take(Fragment::PartitionStart(PartitionStart { key, deletion }));
            let mut fragment = Fragment::default();
            row.flat().decode(&mut fragment).unwrap();
            selection.take(fragment);
            (How::Row, selection.rows)
        }
        Fetched::Stream(mut stream) => (How::Stream, selected(table, &mut stream).await?),
    })
}

#[test]
fn what_is_fetched_is_what_is_read() {
    let mut count = [0; 4];
    for seed in 0..60 {
        let options =
            SimOptions { seed, short_read_chance: 0.2, max_delay: seed as u32 % 20, ..SimOptions::default() };
        run_simulated(options, async |shard| {
            let mut random = Random::new(seed);
            let kind = *random.one_of(&[Kind::Int, Kind::Int, Kind::Reversed, Kind::Text, Kind::Both]);
            let mutation = random_mutation(&mut random, kind);
            let table = table_of(&shard, kind, &mutation, false).await;
            for _ in 0..100 {
                let number = random.below(ROWS as usize + 2) as i32 - 1;
                let mut slice = Slice::of_prefix(kind.clustering(number));
                if random.percent(30) {
                    slice.start = Position::at(slice.start.prefix);
                }
                // One in two is read before, and has the guess of where rows end learn.
                let before = if random.percent(50) { Some(read(&table, &slice).await) } else { None };
                let (how, fetched) = fetch(&table, &slice).await;
                let expected = match before {
                    Some(read) => read,
                    None => read(&table, &slice).await,
                };
                count[how as usize] += 1;
                if how == How::Unread {
                    continue;
                }
                assert_eq!(fetched, expected, "seed {seed}, {kind:?}, row {number}, {how:?}");
            }
        })
        .unwrap();
    }
    println!("{count:?}");
    // Small rows have few blocks, and then no fences.
    assert!(count[How::Unread as usize] < 1000, "{count:?}");
    assert!(count.iter().skip(1).all(|count| *count > 300), "{count:?}");
}

/// Requests and bytes of the data.
fn spent(table: &Table) -> [u64; 2] {
    let count = table.context().disk.stats().class(DATA_IO);
    [count.requests, count.bytes]
}

#[test]
fn a_row_is_one_request_whether_it_is_usual_or_not() {
    run_simulated(SimOptions::default(), async |shard| {
        let kind = Kind::Int;
        let mut mutation = Mutation::new(key());
        for number in 0..ROWS {
            let mut row = usual(kind.clustering(2 * number), number, 80);
            if number % 3 == 0 {
                row.cells[1].timestamp = 11;
            }
            mutation.rows.push(row);
        }
        let table = table_of(&shard, kind, &mutation, false).await;
        for number in (10..ROWS - 10).step_by(10) {
            let slice = Slice::of_prefix(kind.clustering(2 * number));
            let before = spent(&table);
            assert_eq!(read(&table, &slice).await.len(), 1);
            let between = spent(&table);
            let (how, rows) = fetch(&table, &slice).await;
            assert_eq!((how, rows.len()), (if number % 3 == 0 { How::Stream } else { How::Row }, 1));
            let of = |from: [u64; 2], to: [u64; 2]| [to[0] - from[0], to[1] - from[1]];
            let (read, fetched) = (of(before, between), of(between, spent(&table)));
            assert_eq!((read[0], fetched[0]), (1, 1), "row {number}");
            assert!(fetched[1] <= read[1], "row {number}: {fetched:?}, {read:?}");
        }
    })
    .unwrap();
}

/// What memory or other SSTables have to say, or what is to be kept, is not fetched.
#[test]
fn only_what_one_sstable_alone_can_tell_is_fetched() {
    run_simulated(SimOptions::default(), async |shard| {
        let kind = Kind::Int;
        let rows = (0..ROWS).map(|number| usual(kind.clustering(number), number, 80)).collect();
        let mutation = Mutation { rows, ..Mutation::new(key()) };
        let table = table_of(&shard, kind, &mutation, false).await;
        let slice = |number| Slice::of_prefix(kind.clustering(number));
        let known = |number: i32| table.known_row(key().view(), &[&number.to_be_bytes()]);
        assert!(matches!(known(7), Known::OnDisk));
        assert_eq!(fetch(&table, &slice(7)).await.0, How::Row);
        assert_eq!(fetch(&table, &Slice { start: slice(7).start, end: slice(9).end }).await.0, How::Unread);
        assert_eq!(fetch(&table, &Slice::all()).await.0, How::Unread);
        let other = Slice::of_prefix(kind.clustering(7));
        let nowhere = table.fetch_row(&PartitionKey::new(Bytes::from(vec![0, 0, 0, 9])), &other).await;
        assert!(matches!(nowhere.unwrap(), Fetched::Unread));

        let newer = Mutation { rows: vec![usual(kind.clustering(7), 8, 9)], ..Mutation::new(key()) };
        table.apply(&newer, NO_POSITION);
        assert!(matches!(known(7), Known::Unknown));
        assert_eq!(fetch(&table, &slice(9)).await.0, How::Unread, "a memtable has the partition");
        table.flush(LogPosition::default, async |_, _| Ok(())).await.unwrap();
        assert!(matches!(known(7), Known::OnDisk));
        assert_eq!(fetch(&table, &slice(7)).await.0, How::Unread, "two SSTables have rows there");
        assert_eq!(fetch(&table, &slice(9)).await.0, How::Row, "one has, of the two that have the partition");

        let keeps = table_of(&shard, kind, &mutation, true).await;
        assert_eq!(fetch(&keeps, &slice(7)).await.0, How::Unread, "the cache has room for it");
    })
    .unwrap();
}

/// Data.db of the only SSTable.
async fn data_of(shard: &Shard) -> (std::path::PathBuf, Vec<u8>) {
    let paths = shard.disk().list(Path::new("/d")).unwrap();
    let path = paths.into_iter().find(|path| path.to_string_lossy().ends_with("Data.db")).unwrap();
    let file = shard.disk().open(&path, DATA_IO).await.unwrap();
    let bytes = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
    (path, bytes)
}

/// Nothing checks bytes that are not compressed: both say the same of what they have become, or that it is none.
#[test]
fn what_is_damaged_is_the_same_for_both() {
    run_simulated(SimOptions::default(), async |shard| {
        let (kind, mut random, mut errors, mut others) = (Kind::Int, Random::new(1), 0, 0);
        let rows = (0..ROWS / 2).map(|number| usual(kind.clustering(2 * number), number, 20)).collect();
        table_of(&shard, kind, &Mutation { rows, ..Mutation::new(key()) }, false).await;
        let (path, whole) = data_of(&shard).await;
        let mean = whole.len() / (ROWS as usize / 2);
        for _ in 0..600 {
            let (at, bit) = (random.below(whole.len() - 100), random.below(8));
            let mut damaged = whole.clone();
            damaged[at] ^= 1 << bit;
            shard.disk().as_simulated().unwrap().add_file(path.to_str().unwrap(), damaged);
            let table = open(&shard, kind, 4 << 20, false).await;
            let near = (at / mean) as i32 * 2;
            for number in near - 4..near + 5 {
                let slice = Slice::of_prefix(kind.clustering(number));
                let fetched = try_fetch(&table, &slice).await.map(|(how, rows)| {
                    // Nothing has to be read of where there are no rows.
                    assert_eq!(how == How::Unread, !(0..ROWS - 1).contains(&number));
                    rows
                });
                let read = try_read(&table, &slice).await;
                match (fetched, read) {
                    (Err(_), Err(_)) => errors += 1,
                    (fetched, read) => {
                        others += usize::from(number % 2 == 0 && fetched.as_ref().is_ok_and(Vec::is_empty));
                        assert_eq!(fetched.ok(), read.ok(), "bit {bit} of byte {at}, row {number}");
                    }
                }
            }
        }
        assert!(errors > 100 && others > 10, "{errors} errors, {others} rows that are gone");
    })
    .unwrap();
}

/// What is asked for twice takes the place of what was asked for once.
#[test]
fn a_full_cache_keeps_the_row_that_is_asked_for_again() {
    run_simulated(SimOptions::default(), async |shard| {
        let kind = Kind::Int;
        let rows = (0..ROWS).map(|number| usual(kind.clustering(number), number, 2000)).collect();
        table_of(&shard, kind, &Mutation { rows, ..Mutation::new(key()) }, true).await;
        let table = open(&shard, kind, 2 << 20, true).await;
        let read = async |slice: Slice| {
            let request = ReadRequest { static_row: false, ..ReadRequest::new(key(), slice) };
            let mut stream = table.read(&request).await.unwrap();
            selected(&table, &mut stream).await.unwrap().len()
        };
        let between = |from, to| Slice {
            start: Position::before(kind.clustering(from)),
            end: Position::before(kind.clustering(to)),
        };
        let kept = || table.row_cache().stats().insertions;
        for from in (0..ROWS / 2).step_by(50) {
            assert_eq!(read(between(from, from + 50)).await, 50);
        }
        assert!(table.context().cache.is_full());

        let one = |number| Slice::of_prefix(kind.clustering(number));
        for number in (ROWS - 100..ROWS - 2).step_by(7) {
            let before = kept();
            assert_eq!((read(one(number)).await, kept()), (1, before), "row {number} once");
            assert_eq!((read(one(number)).await, kept()), (1, before + 1), "row {number} again");
            assert_eq!(fetch(&table, &one(number + 1)).await.0, How::Row);
            assert_eq!(fetch(&table, &one(number + 1)).await.0, How::Unread, "it is to be kept");
            assert_eq!((read(one(number + 1)).await, kept()), (1, before + 2), "row {} again", number + 1);
        }

        // Of slices one of eight is kept, and those that are asked for again.
        let before = kept();
        for from in (ROWS / 2..ROWS - 200).step_by(20) {
            assert_eq!(read(between(from, from + 3)).await, 3);
        }
        let once = kept() - before;
        assert!((3..20).contains(&once), "{once} of 65 slices");
        let mut late = 0;
        for from in (ROWS - 190..ROWS - 110).step_by(10) {
            let (before, again) = (kept(), between(from, from + 5));
            read(again.clone()).await;
            late += u64::from(kept() == before);
            read(again.clone()).await;
            assert!(kept() > before, "from {from}");
            let before = spent(&table);
            assert_eq!((read(again).await, spent(&table)), (5, before), "from {from}");
        }
        assert!(late > 4, "{late} of 8 were kept because they were asked for again");
    })
    .unwrap();
}
