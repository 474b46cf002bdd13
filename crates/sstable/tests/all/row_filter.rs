//! Rows of large partitions by RowFilter.db: those that are not there cost no request, and all others are read as without.
//!
//! Partitions of all kinds are written here, with rows at even numbers: of nothing but rows, with static ones, deleted as a whole,
//! full of range tombstones, with a single one. Then the file is damaged, forged, and taken from another SSTable.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::key::murmur3;
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader,
    PartitionKey, PartitionStart, Position, RangeTombstoneChange, Row, Schema, Slice,
};
use runtime::{Cache, Disk, IoStats, SimOptions};
use siltstone_sstable::component::{Component, DATA_IO, Descriptor, FILTER_IO};
use siltstone_sstable::parts::compression_info::{Compression, Compressor};
use siltstone_sstable::parts::row_filter::write_row_filter;
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::parts::usage::Usage;
use siltstone_sstable::verify::{Findings, verify};
use siltstone_sstable::{OpenOptions, ReadOptions, SSTable, SSTableWriter, Search, Version, WriteOptions};

use super::bloom_pages::{bytes_of, damaged};
use super::places::in_simulation;

const CACHE: usize = 64 << 20;
const PAGE: usize = 4096;
/// Rows of each partition, at even numbers.
const ROWS: i32 = 2500;

/// What is special of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Plain,
    Static,
    Deleted,
    /// A range tombstone around each hundredth row.
    Tombstones,
    /// One over a fifth of the rows, from the middle on.
    Tombstone,
    /// A few rows, without fences.
    Small,
}

const KINDS: [Kind; 6] =
    [Kind::Plain, Kind::Static, Kind::Deleted, Kind::Tombstones, Kind::Tombstone, Kind::Small];
const DELETED: DeletionTime = DeletionTime { marked_for_delete_at: 3, local_deletion_time: 4 };

fn key(kind: Kind) -> PartitionKey {
    PartitionKey::new(Bytes::from((kind as i32).to_be_bytes().to_vec()))
}

/// The clustering key of a number; two columns, of which the first is text.
fn clustering(number: i32) -> Clustering {
    [format!("{:06}", number / 10).into_bytes(), number.to_be_bytes().to_vec()].into_iter().collect()
}

fn row(clustering: Clustering, number: i32, len: usize) -> Row {
    let value = (0..len).map(|at| (number as usize * 7 + at * at) as u8).collect::<Vec<_>>();
    let value = CellValue::Value(Bytes::from(value));
    let cell =
        Cell { column: 0, ttl: 0, timestamp: 7, local_deletion_time: NO_DELETION_TIME, path: None, value };
    Row { cells: vec![cell], ..Row::new(clustering) }
}

fn change(position: Position, deletion: DeletionTime) -> Fragment {
    Fragment::RangeTombstone(RangeTombstoneChange { position, deletion })
}

fn schema(last: CqlType) -> Rc<Schema> {
    let column = |name: &[u8]| Column { name: name.into(), data_type: CqlType::Blob };
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Text, last], vec![column(b"s")], vec![column(b"v")]))
}

fn partition(kind: Kind) -> Vec<Fragment> {
    let deletion = if kind == Kind::Deleted { DELETED } else { DeletionTime::LIVE };
    let mut all = vec![Fragment::PartitionStart(PartitionStart { key: key(kind), deletion })];
    if kind == Kind::Static {
        all.push(Fragment::StaticRow(row(Clustering::empty(), 9, 300)));
    }
    let rows = if kind == Kind::Small { 20 } else { ROWS };
    for number in (0..rows).map(|number| 2 * number) {
        let opens = kind == Kind::Tombstones && number % 200 == 100;
        if opens || kind == Kind::Tombstone && number == rows {
            all.push(change(Position::before(clustering(number)), DELETED));
        }
        all.push(Fragment::Row(row(clustering(number), number, 20 + number as usize % 50)));
        if opens || kind == Kind::Tombstone && number == rows + rows / 5 {
            all.push(change(Position::after(clustering(number)), DeletionTime::LIVE));
        }
    }
    all.push(Fragment::PartitionEnd);
    all
}

fn small_blocks(version: Version) -> WriteOptions {
    WriteOptions { compression: None, column_index_size: 512, ..WriteOptions::new(version) }
}

/// An SSTable with these partitions.
async fn write(disk: &Disk, dir: &str, kinds: &[Kind], options: WriteOptions) -> PathBuf {
    write_of(disk, dir, kinds, &schema(CqlType::Int), (Version::Oa, options)).await
}

async fn write_of(
    disk: &Disk,
    dir: &str,
    kinds: &[Kind],
    schema: &Rc<Schema>,
    (version, options): (Version, WriteOptions),
) -> PathBuf {
    let dir = Path::new(dir);
    disk.create_dir_all(dir).await.unwrap();
    let descriptor = Descriptor::parse(&dir.join(format!("{}-1-big-Data.db", version.name()))).unwrap();
    let mut writer =
        SSTableWriter::create(disk, descriptor, schema, EncodingStats::NONE, options).await.unwrap();
    let mut kinds = kinds.to_vec();
    kinds.sort_by_key(|kind| key(*kind));
    for kind in kinds {
        for fragment in partition(kind) {
            writer.push(&fragment).await.unwrap();
        }
    }
    writer.seal().await.unwrap().descriptor.path_of(&Component::Data)
}

async fn open(disk: &Disk, data: &Path, row_filter: bool, cache: usize) -> Rc<SSTable> {
    let options = OpenOptions { row_filter, ..OpenOptions::new(Cache::new(cache)) };
    SSTable::open(disk, data, &options).await.unwrap()
}

async fn read(table: &Rc<SSTable>, kind: Kind, slice: &Slice, options: ReadOptions) -> Vec<Fragment> {
    let mut reader = table.read(&key(kind), slice, options).await.unwrap().unwrap();
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        fragments.push(fragment);
    }
    fragments
}

async fn read_row(table: &Rc<SSTable>, kind: Kind, number: i32) -> Vec<Fragment> {
    read(table, kind, &Slice::of_prefix(clustering(number)), ReadOptions::default()).await
}

/// Whether memory alone tells that a row is not there.
fn denies(table: &Rc<SSTable>, kind: Kind, clustering: &Clustering) -> bool {
    let (key, row) = (key(kind), clustering.values.iter().flatten().map(|value| &value[..]));
    table.denies_row(key.view(), || murmur3(&key.bytes), &row.collect::<Vec<_>>())
}

/// Asks for rows that are not there, until looking for them is worth a request.
async fn ask_in_vain(table: &Rc<SSTable>, kind: Kind) {
    for number in 0..20 {
        read_row(table, kind, 501 + 2 * number).await;
    }
}

fn row_filter(data: &Path) -> PathBuf {
    Descriptor::parse(data).unwrap().path_of(&Component::RowFilter)
}

/// The problems and notes of a verification, and what they say.
async fn findings(disk: &Disk, data: &Path) -> (usize, usize, String) {
    let report = verify(disk, data, &OpenOptions::new(Cache::new(1 << 20)), |_, _| {}).await.unwrap();
    let count = |findings: &Findings| findings.listed().len();
    let all = [&report.problems, &report.notes].map(|findings| format!("{:?}", findings.listed()));
    (count(&report.problems), count(&report.notes), all.concat())
}

/// All kinds of partitions, compressed and not: every row that is there, and others, alone and in slices, in both directions.
#[test]
fn with_the_rows_told_and_without() {
    for (seed, version) in [(1, Version::Me), (2, Version::Oa)] {
        in_simulation(seed, async |shard| {
            let disk = shard.disk();
            let lz4 = Compression::new(Compressor::Lz4, version).with_chunk_len(4 << 10).unwrap();
            for (dir, compression) in [("/plain", None), ("/lz4", Some(lz4))] {
                let options = WriteOptions { compression, ..small_blocks(version) };
                let data = write_of(disk, dir, &KINDS, &schema(CqlType::Int), (version, options)).await;
                let plain = open(disk, &data, false, CACHE).await;
                assert_eq!(plain.row_filter_state().await, Usage::Off);
                for cache in [CACHE, 1 << 20, 0] {
                    let told = open(disk, &data, true, cache).await;
                    for kind in KINDS {
                        ask_in_vain(&told, kind).await;
                        agree(&plain, &told, kind).await;
                    }
                    let is_used = matches!(told.row_filter_state().await, Usage::InUse { .. });
                    assert_eq!(is_used, cache > 0, "{}", told.row_filter_state().await);
                }
            }
        });
    }
}

async fn agree(plain: &Rc<SSTable>, told: &Rc<SSTable>, kind: Kind) {
    for number in -1..2 * ROWS + 3 {
        let slice = Slice::of_prefix(clustering(number));
        let options = ReadOptions {
            static_row: number % 3 == 0,
            reverse: number % 7 == 0,
            limit: (number % 2 == 0).then_some(1),
            ..ReadOptions::default()
        };
        let expected = read(plain, kind, &slice, options).await;
        assert_eq!(read(told, kind, &slice, options).await, expected, "{kind:?}, row {number}");
        let rows = if kind == Kind::Small { 20 } else { ROWS };
        let is_there = number >= 0 && number % 2 == 0 && number < 2 * rows;
        let has_row = expected.iter().any(|fragment| matches!(fragment, Fragment::Row(_)));
        assert_eq!(has_row, is_there, "{kind:?}, row {number}");
        let is_covered = expected.iter().any(|fragment| matches!(fragment, Fragment::RangeTombstone(_)));
        let is_denied = denies(told, kind, &clustering(number));
        assert!(!is_denied || !has_row && !is_covered, "{kind:?}, row {number}");
        assert!(!denies(plain, kind, &clustering(number)), "{kind:?}, row {number}");
    }
    for start in [-5, 0, 777, 2 * ROWS - 9] {
        let slice =
            Slice { start: Position::after(clustering(start)), end: Position::at(clustering(start + 9)) };
        let options = ReadOptions::default();
        assert_eq!(read(told, kind, &slice, options).await, read(plain, kind, &slice, options).await);
    }
}

/// What is not there costs nothing once some of it was asked for in vain; what is there never costs a request more.
#[test]
fn an_absent_row_is_no_request() {
    in_simulation(3, async |shard| {
        let disk = shard.disk();
        disk.as_simulated().unwrap().set_options(SimOptions { alignment: 512, ..SimOptions::default() });
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let table = open(disk, &data, true, CACHE).await;
        let cost = async |numbers: Vec<i32>| {
            let before = disk.stats();
            for &number in &numbers {
                read_row(&table, Kind::Plain, number).await;
            }
            disk.stats().since(&before)
        };
        let counts = |stats: &IoStats| [DATA_IO, FILTER_IO].map(|class| stats.class(class).requests);
        let there: Vec<i32> = (0..ROWS).map(|number| 2 * number).collect();
        let [data_requests, filter] = counts(&cost(there.clone()).await);
        assert!(data_requests >= ROWS as u64 && filter == 0, "{data_requests}, {filter}");
        // Six blocks are read in vain, then pages of four thousand slots.
        let absent: Vec<i32> = there.iter().map(|number| number + 1).collect();
        let [data_requests, filter] = counts(&cost(absent.clone()).await);
        assert!((1..60).contains(&data_requests) && (1..5).contains(&filter), "{data_requests}, {filter}");
        let [data_requests, filter] = counts(&cost(absent).await);
        assert!(data_requests < 50 && filter == 0, "{data_requests}, {filter}");
        // Memory tells nearly all of it without a read.
        let is_denied = |number: &i32| denies(&table, Kind::Plain, &clustering(*number));
        let [denied, lost] =
            [1, 0].map(|odd| (0..ROWS).map(|number| 2 * number + odd).filter(is_denied).count());
        assert!(denied > ROWS as usize * 95 / 100 && lost == 0, "{denied}, {lost}");
        let other = PartitionKey::new(Bytes::from(77_i32.to_be_bytes().to_vec()));
        assert!(table.denies_row(other.view(), || murmur3(&other.bytes), &[]), "the filter of keys tells");
        assert!(matches!(table.row_filter_state().await, Usage::InUse { .. }));
    });
}

/// Of each kind of partition, in both directions, with the static row and without.
#[test]
fn rows_are_denied_in_all_partitions_but_small_ones() {
    in_simulation(11, async |shard| {
        let disk = shard.disk();
        disk.as_simulated().unwrap().set_options(SimOptions { alignment: 512, ..SimOptions::default() });
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let table = open(disk, &data, true, CACHE).await;
        for (kind, most) in KINDS.into_iter().zip([20, 20, 20, 1000, 300, 1000]) {
            for reverse in [false, true] {
                for static_row in [false, true] {
                    let mut requests = 0;
                    for number in 0..200 {
                        let slice = Slice::of_prefix(clustering(24 * number + 1));
                        ask_in_vain(&table, Kind::Plain).await;
                        let before = disk.stats();
                        let options = ReadOptions { reverse, static_row, ..ReadOptions::default() };
                        read(&table, kind, &slice, options).await;
                        requests += disk.stats().since(&before).class(DATA_IO).requests;
                    }
                    // The static row takes one of its own, wherever there may be one.
                    let heads = if static_row { 200 } else { 0 };
                    assert!(requests <= heads + most, "{kind:?}, {reverse}, {static_row}: {requests}");
                    assert!(requests >= heads, "{kind:?}, {reverse}, {static_row}: {requests}");
                }
            }
        }
    });
}

/// A reader that goes on from slice to slice comes from elsewhere: it has to know what is open where the row would be.
#[test]
fn readers_that_go_on_see_no_tombstone_of_another_place() {
    in_simulation(12, async |shard| {
        let disk = shard.disk();
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let (plain, told) = (open(disk, &data, false, CACHE).await, open(disk, &data, true, CACHE).await);
        for kind in KINDS {
            ask_in_vain(&told, Kind::Plain).await;
            for start in (0..2 * ROWS).step_by(62) {
                // The first is there, the second is not, and far behind it; the third is next to that.
                let rows = [start, start + 1501, start + 1502];
                let mut found = Vec::new();
                for table in [&plain, &told] {
                    found.push(read_on(table, kind, &rows).await);
                }
                assert_eq!(found[1], found[0], "{kind:?}, rows {rows:?}");
            }
        }
    });
}

/// Rows that are there and rows that are not, many at once: what each is by itself, whatever is told of them.
#[test]
fn rows_at_once_are_what_each_is() {
    in_simulation(13, async |shard| {
        let disk = shard.disk();
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let (plain, told) = (open(disk, &data, false, CACHE).await, open(disk, &data, true, CACHE).await);
        for kind in KINDS {
            for (at, start) in (-3..2 * ROWS).step_by(61).enumerate() {
                let rows = || (start..).step_by(1 + at % 7).take(2 + at % 23);
                let slices: Vec<Slice> = rows().map(|number| Slice::of_prefix(clustering(number))).collect();
                let slices: Vec<&Slice> = slices.iter().collect();
                let mut expected = Vec::new();
                for number in rows() {
                    expected.push(read_row(&plain, kind, number).await);
                }
                if at % 3 == 0 {
                    ask_in_vain(&told, Kind::Plain).await;
                }
                for table in [&plain, &told] {
                    let found = table.read_rows(&key(kind), &slices, ReadOptions::default()).await;
                    assert_eq!(found.unwrap().unwrap(), expected, "{kind:?}, rows from {start}");
                }
            }
        }
    });
}

/// Those too tell whether looking for rows is worth a request.
#[test]
fn rows_at_once_bring_the_filter_in() {
    in_simulation(14, async |shard| {
        let disk = shard.disk();
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let table = open(disk, &data, true, CACHE).await;
        let cost = async |first: i32| {
            let slices: Vec<Slice> =
                (0..20).map(|at| Slice::of_prefix(clustering(first + 100 * at))).collect();
            let slices: Vec<&Slice> = slices.iter().collect();
            let before = disk.stats();
            let options = ReadOptions::default();
            table.read_rows(&key(Kind::Plain), &slices, options).await.unwrap().unwrap();
            disk.stats().since(&before).class(DATA_IO).requests
        };
        assert!(cost(1).await > 0, "nobody knows yet");
        assert_eq!(cost(3).await, 0, "rows that are not there");
        assert!(cost(4).await > 0);
    });
}

/// What a reader says of one row after the other.
async fn read_on(table: &Rc<SSTable>, kind: Kind, rows: &[i32]) -> Vec<Fragment> {
    let slices: Vec<_> = rows.iter().map(|&number| Slice::of_prefix(clustering(number))).collect();
    let reader = table.read_forwarding(&key(kind), &slices[0], Search::Binary).await.unwrap();
    let (mut reader, mut fragments) = (reader.unwrap(), Vec::new());
    for (number, slice) in slices.iter().enumerate() {
        if number > 0 {
            reader.fast_forward_to(slice);
        }
        while let Some(fragment) = reader.next().await.unwrap() {
            fragments.push(fragment);
        }
    }
    fragments
}

/// A value that no SSTable has, as its type has another length.
#[test]
fn a_value_of_a_wrong_length_is_not_there() {
    in_simulation(13, async |shard| {
        let disk = shard.disk();
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let table = open(disk, &data, true, CACHE).await;
        ask_in_vain(&table, Kind::Plain).await;
        let short: Clustering = [b"000010".to_vec(), vec![0, 0, 100]].into_iter().collect();
        let found = read(&table, Kind::Plain, &Slice::of_prefix(short.clone()), ReadOptions::default()).await;
        assert_eq!(found.len(), 2, "start and end of the partition");
        assert!(!denies(&table, Kind::Plain, &short), "nothing is told of it");
        let part: Clustering = [b"000010".to_vec()].into_iter().collect();
        assert!(!denies(&table, Kind::Plain, &part), "nor of many rows");
    });
}

/// Rows that are there are worth no page: nothing of the file is read for them, not even its end.
#[test]
fn rows_that_are_there_bring_no_page_in() {
    in_simulation(4, async |shard| {
        let disk = shard.disk();
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let table = open(disk, &data, true, 0).await;
        let before = disk.stats();
        for number in 0..ROWS {
            // One of three is not there.
            read_row(&table, Kind::Plain, 2 * number).await;
            if number % 2 == 0 {
                read_row(&table, Kind::Plain, 2 * number + 1).await;
            }
        }
        assert_eq!(disk.stats().since(&before).class(FILTER_IO).requests, 0);
    });
}

/// Whatever is wrong with the file, every row is found, and `verify` has something to say.
#[test]
fn damage_hides_no_row() {
    in_simulation(5, async |shard| {
        let (disk, files) = (shard.disk(), shard.disk().as_simulated().unwrap());
        let kinds = [Kind::Plain, Kind::Tombstone, Kind::Static];
        let data = write(disk, "/t", &kinds, small_blocks(Version::Oa)).await;
        let path = row_filter(&data);
        let sound = bytes_of(disk, &path).await;
        let (problems, notes, what) = findings(disk, &data).await;
        assert_eq!((problems, notes), (0, 0), "{what}");
        assert!(sound.len() >= 4 * PAGE, "there are two pages of strips");
        for (number, bytes) in damaged(&sound).into_iter().enumerate() {
            files.add_file(&path, bytes);
            for cache in [0, CACHE] {
                let table = open(disk, &data, true, cache).await;
                for kind in kinds {
                    ask_in_vain(&table, kind).await;
                    for row in (0..ROWS).step_by(13) {
                        let found = read_row(&table, kind, 2 * row).await;
                        let has_row = found.iter().any(|fragment| matches!(fragment, Fragment::Row(_)));
                        assert!(has_row, "damage {number}, {kind:?}, row {row}");
                        let is_denied = denies(&table, kind, &clustering(2 * row));
                        assert!(!is_denied, "damage {number}, {kind:?}, row {row}");
                        ask_in_vain(&table, kind).await;
                    }
                }
            }
            let (problems, notes, _) = findings(disk, &data).await;
            assert!(problems + notes > 0, "damage {number}");
        }
    });
}

#[test]
fn the_file_of_another_sstable_is_not_used() {
    in_simulation(6, async |shard| {
        let (disk, files) = (shard.disk(), shard.disk().as_simulated().unwrap());
        let own = write(disk, "/own", &[Kind::Plain], small_blocks(Version::Oa)).await;
        let other = write(disk, "/other", &[Kind::Static, Kind::Plain], small_blocks(Version::Oa)).await;
        files.add_file(row_filter(&own), bytes_of(disk, &row_filter(&other)).await);
        let table = open(disk, &own, true, CACHE).await;
        let why = "its digest is that of another Data.db".to_owned();
        assert_eq!(table.row_filter_state().await, Usage::Ignored { why });
        ask_in_vain(&table, Kind::Plain).await;
        assert_eq!(read_row(&table, Kind::Plain, 100).await.len(), 3);
        let (problems, notes, what) = findings(disk, &own).await;
        assert_eq!((problems, notes), (0, 1), "a note, as reads do well without: {what}");
    });
}

/// What denies a row that is there is found by `verify`, which makes the file anew.
#[test]
fn strips_that_deny_a_row_are_a_problem() {
    in_simulation(7, async |shard| {
        let (disk, files) = (shard.disk(), shard.disk().as_simulated().unwrap());
        let data = write(disk, "/t", &KINDS, small_blocks(Version::Oa)).await;
        let mut forged = bytes_of(disk, &row_filter(&data)).await;
        forged[..64].fill(0);
        let sum = crc32fast::hash(&forged[..PAGE - 4]);
        forged[PAGE - 4..PAGE].copy_from_slice(&sum.to_be_bytes());
        files.add_file(row_filter(&data), forged);
        let (problems, notes, what) = findings(disk, &data).await;
        assert_eq!((problems, notes), (1, 0));
        assert!(what.contains("a page is not what the SSTable makes of it"), "{what}");
    });
}

/// Written later, the file is the same; so it is with blocks as Cassandra writes them.
#[test]
fn it_can_be_written_for_an_sstable_that_is_there() {
    in_simulation(8, async |shard| {
        let disk = shard.disk();
        for (dir, size) in [("/small", 512), ("/medium", 4 << 10)] {
            let options = WriteOptions { column_index_size: size, ..small_blocks(Version::Oa) };
            let data = write(disk, dir, &KINDS, options).await;
            let path = row_filter(&data);
            let is_there = disk.exists(&path);
            assert_eq!(is_there, size == 512, "{size}: with fewer blocks no partition has groups");
            let table = open(disk, &data, true, CACHE).await;
            assert!(!table.components(disk).await.unwrap().contains(&Component::RowFilter));
            let written = if is_there { Some(bytes_of(disk, &path).await) } else { None };
            let again = write_row_filter(disk, &table, |_| {}).await.unwrap();
            assert_eq!(again, written.as_ref().map(|bytes| bytes.len() as u64));
            if let Some(written) = written {
                assert_eq!(bytes_of(disk, &path).await, written);
            }
            assert!(!disk.exists(&path.with_extension("db.tmp")));
        }
    });
}

/// Equal keys may have different bytes there, so that a hash of them tells nothing.
#[test]
fn tables_with_numbers_of_many_forms_have_none() {
    in_simulation(9, async |shard| {
        let disk = shard.disk();
        let schema = schema(CqlType::VarInt);
        let options = (Version::Oa, small_blocks(Version::Oa));
        let data = write_of(disk, "/t", &[Kind::Plain], &schema, options).await;
        assert!(!disk.exists(&row_filter(&data)));
        let table = open(disk, &data, true, CACHE).await;
        assert_eq!(write_row_filter(disk, &table, |_| {}).await.unwrap(), None);
        ask_in_vain(&table, Kind::Plain).await;
        let other_form =
            [b"000010".to_vec(), [&[0], &100_i32.to_be_bytes()[..]].concat()].into_iter().collect();
        let found = read(&table, Kind::Plain, &Slice::of_prefix(other_form), ReadOptions::default()).await;
        assert_eq!(found.len(), 3, "a number with a zero in front is the same one");
    });
}

/// A writer of large blocks has no time for it; it can be made later.
#[test]
fn rows_of_large_blocks_are_told_later() {
    in_simulation(14, async |shard| {
        let disk = shard.disk();
        let wide = |size| WriteOptions { column_index_size: size, ..small_blocks(Version::Oa) };
        let rows: Vec<_> =
            (0..150_000).map(|number| Fragment::Row(row(clustering(number), number, 40))).collect();
        for (dir, size, is_told) in [("/8", 8 << 10, true), ("/9", 9 << 10, false)] {
            let dir = Path::new(dir);
            disk.create_dir_all(dir).await.unwrap();
            let descriptor = Descriptor::parse(&dir.join("oa-1-big-Data.db")).unwrap();
            let schema = schema(CqlType::Int);
            let created =
                SSTableWriter::create(disk, descriptor, &schema, EncodingStats::NONE, wide(size)).await;
            let mut writer = created.unwrap();
            let start = PartitionStart { key: key(Kind::Plain), deletion: DeletionTime::LIVE };
            writer.push(&Fragment::PartitionStart(start)).await.unwrap();
            for row in &rows {
                writer.push(row).await.unwrap();
            }
            writer.push(&Fragment::PartitionEnd).await.unwrap();
            let data = writer.seal().await.unwrap().descriptor.path_of(&Component::Data);
            assert_eq!(disk.exists(&row_filter(&data)), is_told, "{size}");
            let table = open(disk, &data, true, CACHE).await;
            assert!(write_row_filter(disk, &table, |_| {}).await.unwrap().is_some());
            let table = open(disk, &data, true, CACHE).await;
            let absent = |number: i32| {
                let value = (150_000 + number).to_be_bytes().to_vec();
                Slice::of_prefix([format!("{number:06}").into_bytes(), value].into_iter().collect())
            };
            for number in 0..20 {
                read(&table, Kind::Plain, &absent(number), ReadOptions::default()).await;
            }
            let before = disk.stats();
            for number in 100..300 {
                read(&table, Kind::Plain, &absent(number), ReadOptions::default()).await;
            }
            assert!(disk.stats().since(&before).class(DATA_IO).requests < 10, "{size}");
            for number in (0..150_000).step_by(997) {
                assert_eq!(read_row(&table, Kind::Plain, number).await.len(), 3, "{size}, row {number}");
            }
        }
    });
}

#[test]
fn nobody_has_to_have_it() {
    in_simulation(10, async |shard| {
        let disk = shard.disk();
        let options = WriteOptions { row_filter: false, ..small_blocks(Version::Oa) };
        let data = write(disk, "/none", &KINDS, options).await;
        assert!(!disk.exists(&row_filter(&data)));
        assert_eq!(open(disk, &data, true, CACHE).await.row_filter_state().await, Usage::Absent);
        let options = WriteOptions { fences: false, ..small_blocks(Version::Oa) };
        let data = write(disk, "/no-fences", &KINDS, options).await;
        assert!(!disk.exists(&row_filter(&data)), "without fences nobody asks");
    });
}
