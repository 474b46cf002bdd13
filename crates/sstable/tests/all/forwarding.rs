//! One reader that goes on at later slices gives what a read of each gives, and skips what lies between.
//!
//! A large partition with range tombstones, between two others, compressed and not, with fences and without.

use std::path::Path;
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader, Liveness,
    PartitionKey, PartitionStart, Position, RangeTombstoneChange, Row, Schema, Slice,
};
use runtime::{Cache, IoStats, Shard, SimOptions, run_simulated};
use siltstone_sstable::component::{DATA_IO, Descriptor};
use siltstone_sstable::parts::compression_info::{Compression, Compressor};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::{OpenOptions, ReadOptions, SSTable, SSTableWriter, Search, Version, WriteOptions};
use testkit::generate::random::Random;

const ROWS: i32 = 3000;
/// Bytes of a row's value.
const VALUE: usize = 100;
/// Bytes of an index block.
const BLOCK: u32 = 2048;

fn prefix(number: i32) -> Clustering {
    [number.to_be_bytes().to_vec()].into_iter().collect()
}

/// The rows `first..end`.
fn slice(first: i32, end: i32) -> Slice {
    Slice { start: Position::before(prefix(first)), end: Position::after(prefix(end - 1)) }
}

fn row(number: i32) -> Fragment {
    let mut row = Row::new(prefix(number));
    row.liveness = Liveness { timestamp: 7, ..Liveness::NONE };
    let value = CellValue::Value(Bytes::from(vec![number as u8; VALUE]));
    let (ttl, local_deletion_time, path) = (0, NO_DELETION_TIME, None);
    row.cells = vec![Cell { column: 0, ttl, timestamp: 7, local_deletion_time, path, value }];
    Fragment::Row(row)
}

/// Rows, and range tombstones over some of them, of up to a few blocks.
fn fragments(random: &mut Random) -> Vec<Fragment> {
    let (mut fragments, mut closes) = (Vec::new(), None);
    let change = |position, deletion| Fragment::RangeTombstone(RangeTombstoneChange { position, deletion });
    for number in 0..ROWS {
        if closes.is_none() && random.percent(3) {
            let deletion = DeletionTime { marked_for_delete_at: 5, local_deletion_time: 6 };
            fragments.push(change(Position::before(prefix(number)), deletion));
            closes = Some(number + random.below(80) as i32);
        }
        fragments.push(row(number));
        if closes.take_if(|last| *last <= number || number == ROWS - 1).is_some() {
            fragments.push(change(Position::after(prefix(number)), DeletionTime::LIVE));
        }
    }
    fragments
}

/// Three partitions in the order of their tokens, the second of them large.
fn keys() -> [PartitionKey; 3] {
    let mut keys = [1, 2, 3].map(|number: i32| PartitionKey::new(Bytes::from(number.to_be_bytes().to_vec())));
    keys.sort();
    keys
}

async fn open(shard: &Shard, compressed: bool, fences: bool) -> Rc<SSTable> {
    let path = Path::new("/t/me-1-big-Data.db");
    shard.disk().create_dir_all(Path::new("/t")).await.unwrap();
    let column = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![column]));
    let compression = Compression::new(Compressor::Lz4, Version::Me).with_chunk_len(4096).unwrap();
    let options = WriteOptions {
        compression: Some(compression).filter(|_| compressed),
        column_index_size: BLOCK,
        ..WriteOptions::new(Version::Me)
    };
    let descriptor = Descriptor::parse(path).unwrap();
    let mut writer =
        SSTableWriter::create(shard.disk(), descriptor, &schema, EncodingStats::NONE, options).await.unwrap();
    for (number, key) in keys().into_iter().enumerate() {
        let start = PartitionStart { key, deletion: DeletionTime::LIVE };
        writer.push(&Fragment::PartitionStart(start)).await.unwrap();
        let rows = if number == 1 { fragments(&mut Random::new(3)) } else { vec![row(5), row(7)] };
        for fragment in rows {
            writer.push(&fragment).await.unwrap();
        }
        writer.push(&Fragment::PartitionEnd).await.unwrap();
    }
    writer.seal().await.unwrap();
    let options = OpenOptions { fences, ..OpenOptions::new(Cache::new(1 << 20)) };
    SSTable::open(shard.disk(), path, &options).await.unwrap()
}

async fn all(reader: &mut impl FragmentReader<Error = siltstone_sstable::Error>) -> Vec<Fragment> {
    let mut fragments = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        fragments.push(fragment);
    }
    fragments
}

/// Runs over an SSTable that is compressed or not, with each way to search.
fn with_tables(test: impl AsyncFn(&Shard, Rc<SSTable>, Search)) {
    for compressed in [false, true] {
        for (fences, search) in [(true, Search::Binary), (false, Search::Binary), (false, Search::Scan)] {
            let options = SimOptions { seed: 5, alignment: 512, ..SimOptions::default() };
            run_simulated(options, async |shard| {
                let table = open(&shard, compressed, fences).await;
                test(&shard, table, search).await;
            })
            .unwrap();
        }
    }
}

/// Slices of up to `read` rows with gaps of up to `skip`, in order.
fn random_slices(random: &mut Random, read: usize, skip: usize) -> Vec<Slice> {
    let (mut slices, mut at) = (Vec::new(), random.below(skip + 1) as i32 - 5);
    while at < ROWS + 5 {
        let end = at + 1 + random.below(read) as i32;
        slices.push(slice(at, end));
        at = end + random.below(skip + 1) as i32;
    }
    slices
}

#[test]
fn slice_after_slice_is_what_reads_of_each_give() {
    with_tables(async |_, table, search| {
        let mut random = Random::new(17);
        for (read, skip) in [(1, 1), (1, 60), (30, 30), (100, 0), (500, 1000), (3, 3000)] {
            for key in keys() {
                let mut reader = None;
                for slice in random_slices(&mut random, read, skip) {
                    match &mut reader {
                        None => reader = table.read_forwarding(&key, &slice, search).await.unwrap(),
                        Some(reader) => reader.fast_forward_to(&slice),
                    }
                    let found = all(reader.as_mut().unwrap()).await;
                    let options = ReadOptions { search, ..ReadOptions::default() };
                    let expected = all(&mut table.read(&key, &slice, options).await.unwrap().unwrap()).await;
                    assert!(found == expected, "{slice:?} {found:?} {expected:?}");
                }
            }
        }
        let absent = PartitionKey::new(Bytes::from(4_i32.to_be_bytes().to_vec()));
        assert!(table.read_forwarding(&absent, &Slice::all(), search).await.unwrap().is_none());
    });
}

/// What every `step`th row of the large partition costs.
async fn cost_of_skips(shard: &Shard, table: &Rc<SSTable>, step: i32, search: Search) -> IoStats {
    let before = shard.disk().stats();
    let [_, key, _] = keys();
    let mut reader = table.read_forwarding(&key, &slice(0, 1), search).await.unwrap().unwrap();
    let mut rows = 0;
    for first in (step..ROWS + step).step_by(step as usize) {
        rows += all(&mut reader).await.iter().filter(|found| matches!(found, Fragment::Row(_))).count();
        reader.fast_forward_to(&slice(first, first + 1));
    }
    assert_eq!(rows as i32, (ROWS + step - 1) / step);
    shard.disk().stats().since(&before)
}

#[test]
fn rows_read_together_are_what_each_is_by_itself() {
    with_tables(async |_, table, search| {
        let options = ReadOptions { search, ..ReadOptions::default() };
        let mut random = Random::new(19);
        for skip in [0, 1, 10, 200] {
            for key in keys() {
                let rows: Vec<Slice> = random_slices(&mut random, 1, skip);
                for rows in rows.chunks(1 + random.below(40)) {
                    let rows: Vec<&Slice> = rows.iter().collect();
                    let found = table.read_rows(&key, &rows, options).await.unwrap().unwrap();
                    assert_eq!(found.len(), rows.len());
                    for (found, row) in found.into_iter().zip(rows) {
                        let expected = all(&mut table.read(&key, row, options).await.unwrap().unwrap()).await;
                        assert!(found == expected, "{row:?} {found:?} {expected:?}");
                    }
                }
            }
        }
        let absent = PartitionKey::new(Bytes::from(4_i32.to_be_bytes().to_vec()));
        assert_eq!(table.read_rows(&absent, &[&slice(5, 6)], options).await.unwrap(), None);
    });
}

#[test]
fn rows_near_each_other_are_one_request() {
    with_tables(async |shard, table, search| {
        let [small, large, _] = keys();
        let options = ReadOptions { search, ..ReadOptions::default() };
        let requests = async |key: &PartitionKey, rows: &[i32]| {
            let rows: Vec<Slice> = rows.iter().map(|&number| slice(number, number + 1)).collect();
            let before = shard.disk().stats();
            let found =
                table.read_rows(key, &rows.iter().collect::<Vec<_>>(), options).await.unwrap().unwrap();
            let rows = found.iter().flatten().filter(|found| matches!(found, Fragment::Row(_))).count();
            (shard.disk().stats().since(&before).class(DATA_IO).requests, rows)
        };
        assert_eq!(requests(&small, &[5, 6, 7]).await, (1, 2));
        // Blocks have some twenty rows: of three neighbours that follow each other one block at the most ends among.
        let mut requests_of_each = 0;
        for first in [1500, 1503, 1506] {
            let (data, rows) = requests(&large, &[first, first + 1, first + 2]).await;
            assert_eq!(rows, 3);
            requests_of_each += data;
        }
        assert!(requests_of_each <= 4, "{requests_of_each} requests for thrice three rows");
        // Blocks between them are read over, of two kilobytes each.
        let apart: Vec<i32> = (200..600).step_by(40).collect();
        assert_eq!(requests(&large, &apart).await, (1, 10));
        // As far as that is one request: where these have to be small, several are made side by side.
        let rows: Vec<Slice> = apart.iter().map(|&number| slice(number, number + 1)).collect();
        let small = ReadOptions { read_buffer: Some(8 << 10), ..options };
        let before = shard.disk().stats();
        table.read_rows(&large, &rows.iter().collect::<Vec<_>>(), small).await.unwrap().unwrap();
        assert!(shard.disk().stats().since(&before).class(DATA_IO).requests >= 5);
        let in_turns: Vec<i32> = (0..10).flat_map(|block| [300 * block + 7, 300 * block + 9]).collect();
        let (data, rows) = requests(&large, &in_turns).await;
        assert!((10..13).contains(&data) && rows == 20, "{data} requests for {rows} rows");
        assert_eq!(requests(&large, &[ROWS + 1, ROWS + 2, ROWS + 3]).await, (0, 0));
    });
}

#[test]
fn what_is_skipped_is_not_read() {
    with_tables(async |shard, table, search| {
        let len = table.data().file.file().len();
        // All blocks are wanted: they are read once, in requests that grow.
        let data = cost_of_skips(shard, &table, 2, search).await.class(DATA_IO);
        assert!(data.bytes <= len + 16 * 512, "{} of {len}", data.bytes);
        assert!(data.requests <= 12, "{data:?}");
        // One block of about fifty: each by itself, with the chunks that it is in.
        let data = cost_of_skips(shard, &table, 1000, search).await.class(DATA_IO);
        assert_eq!(data.requests, 3, "{data:?}");
        assert!(data.bytes <= 3 * (2 * 4096 + 1024), "{data:?}");
    });
}

#[test]
fn what_is_empty_or_behind_costs_no_data() {
    with_tables(async |shard, table, search| {
        let [_, key, _] = keys();
        let mut reader = table.read_forwarding(&key, &slice(ROWS - 1, ROWS), search).await.unwrap().unwrap();
        assert!(all(&mut reader).await.iter().any(|found| matches!(found, Fragment::Row(_))));
        let before = shard.disk().stats();
        reader.fast_forward_to(&slice(ROWS + 5, ROWS + 9));
        assert_eq!(all(&mut reader).await.len(), 2);
        let empty =
            Slice { start: Position::after(prefix(ROWS + 20)), end: Position::before(prefix(ROWS + 20)) };
        reader.fast_forward_to(&empty);
        assert_eq!(all(&mut reader).await, []);
        assert_eq!(shard.disk().stats().since(&before).class(DATA_IO).requests, 0);
    });
}

#[test]
fn a_slice_may_follow_an_empty_first_one() {
    with_tables(async |_, table, search| {
        for key in keys() {
            let empty = Slice { start: Position::before(prefix(5)), end: Position::before(prefix(3)) };
            let mut reader = table.read_forwarding(&key, &empty, search).await.unwrap().unwrap();
            assert_eq!(all(&mut reader).await, []);
            reader.fast_forward_to(&slice(5, 6));
            let found = all(&mut reader).await;
            assert_eq!(found.iter().filter(|found| matches!(found, Fragment::Row(_))).count(), 1);
        }
    });
}

#[test]
#[should_panic(expected = "slices of a partition ascend")]
fn no_slice_begins_before_the_last_one_ended() {
    with_tables(async |_, table, search| {
        let [_, key, _] = keys();
        let mut reader = table.read_forwarding(&key, &slice(10, 20), search).await.unwrap().unwrap();
        reader.fast_forward_to(&slice(19, 30));
    });
}

#[test]
fn ranges_of_partitions_follow_each_other() {
    with_tables(async |_, table, _| {
        let mut places = Vec::new();
        for key in keys() {
            let place = table.index().find(&key).await.unwrap().unwrap();
            places.push(table.index().range(&place).await.unwrap());
        }
        let mut reader = table.scan_ranges();
        assert_eq!(all(&mut reader).await, []);
        for (place, key) in [(&places[0], &keys()[0]), (&places[2], &keys()[2])] {
            reader.fast_forward_to(place.clone()).unwrap();
            let found = all(&mut reader).await;
            assert!(matches!(&found[0], Fragment::PartitionStart(start) if start.key == *key));
            assert_eq!(found.len(), 4);
        }
        assert!(reader.fast_forward_to(places[0].clone()).is_err());
        let end = places[2].end;
        assert!(reader.fast_forward_to(end..end + 1).is_err());
    });
}
