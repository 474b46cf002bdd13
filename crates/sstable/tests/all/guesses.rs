//! Of blocks no more is read than what is wanted seems to take, and next to no read has to go on.
//!
//! Rows of one size with keys at even distances, of which all guesses are right; and rows of any size whose keys are
//! anywhere, where guesses have to be learned from.

use std::path::Path;
use std::rc::Rc;

use model::key::murmur3;
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Column, CqlType, DeletionTime, Fragment, FragmentReader, Liveness, PartitionKey,
    PartitionStart, Position, Row, Schema, Slice,
};
use runtime::{Cache, Disk, IoCount, Shard, ShardOptions};
use siltstone_sstable::component::{Component, DATA_IO, Descriptor};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::{OpenOptions, ReadOptions, SSTable, SSTableWriter, Version, WriteOptions};
use testkit::int_rows::clustering;

const ROWS: usize = 20_000;

/// What direct reads are rounded to, at both ends. Bytes.
const ROUNDED: u64 = 2 * 512;

/// A row: its key, and the bytes of its value.
type Shape = (i32, usize);

fn mixed(number: usize) -> u64 {
    murmur3(&number.to_be_bytes())[0] as u64
}

/// Rows of 200 bytes at even distances.
fn even() -> Vec<Shape> {
    (0..ROWS as i32).map(|number| (2 * number, 200)).collect()
}

/// Rows of 1 to so many bytes, at distances of 1 to 2048, here and there much more.
fn uneven(longest: usize) -> Vec<Shape> {
    let mut key = 0;
    let row = |number| {
        let random = mixed(number);
        let far = if random.is_multiple_of(50) { 40_000 } else { 0 };
        key += 1 + (random >> 8 & 0x7ff) as i32 + far;
        (key, 1 + (random >> 32) as usize % longest)
    };
    (0..ROWS).map(row).collect()
}

fn key() -> PartitionKey {
    PartitionKey::new(Bytes::from(b"large".to_vec()))
}

fn row(&(key, len): &Shape) -> Fragment {
    let mut row = Row::new(clustering(key));
    row.liveness = Liveness { timestamp: 7, ..Liveness::NONE };
    let value = CellValue::Value(Bytes::from(vec![key as u8; len]));
    let local_deletion_time = NO_DELETION_TIME;
    row.cells = vec![Cell { column: 0, ttl: 0, timestamp: 7, local_deletion_time, path: None, value }];
    Fragment::Row(row)
}

/// One partition of these rows, opened.
async fn write(disk: &Disk, dir: &Path, rows: &[Shape], column_index_size: u32) -> Rc<SSTable> {
    let column = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Text, vec![CqlType::Int], Vec::new(), vec![column]));
    let descriptor = Descriptor::parse(&dir.join("oa-1-big-Data.db")).unwrap();
    let options = WriteOptions {
        compression: None,
        column_index_size,
        fits_blocks: true,
        ..WriteOptions::new(Version::Oa)
    };
    let mut writer =
        SSTableWriter::create(disk, descriptor, &schema, EncodingStats::NONE, options).await.unwrap();
    let start = PartitionStart { key: key(), deletion: DeletionTime::LIVE };
    writer.push(&Fragment::PartitionStart(start)).await.unwrap();
    for shape in rows {
        writer.push(&row(shape)).await.unwrap();
    }
    writer.push(&Fragment::PartitionEnd).await.unwrap();
    let data = writer.seal().await.unwrap().descriptor.path_of(&Component::Data);
    SSTable::open(disk, &data, &OpenOptions::new(Cache::new(64 << 20))).await.unwrap()
}

/// How rows are asked for.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// One by its key.
    Row,
    /// So many from a key on.
    Forward(usize),
    /// So many from a key back.
    Reverse(usize),
    /// All of so many from a key on, by the keys of the first and the last.
    Between(usize),
}

impl Way {
    /// Reads from the row of this number on; what it has to be.
    async fn read(self, table: &Rc<SSTable>, rows: &[Shape], from: usize) {
        let at = Position::at(clustering(rows[from].0));
        let to = |count: usize| Position::after(clustering(rows[from + count - 1].0));
        let (slice, count) = match self {
            Way::Row => (Slice::of_prefix(clustering(rows[from].0)), 1),
            Way::Forward(count) => (Slice { start: at, end: Position::end() }, count),
            Way::Reverse(count) => (Slice { start: Position::start(), end: to(count) }, count),
            Way::Between(count) => (Slice { start: at, end: to(count) }, count),
        };
        let limit = matches!(self, Way::Forward(_) | Way::Reverse(_)).then_some(count as u64);
        let reverse = matches!(self, Way::Reverse(_));
        let options = ReadOptions { limit, reverse, ..ReadOptions::default() };
        let mut reader = table.read(&key(), &slice, options).await.unwrap().unwrap();
        let mut found = Vec::new();
        // Who has what was asked for does not read on; others read to the end.
        while limit.is_none() || found.len() < count {
            match reader.next().await.unwrap() {
                None => break,
                Some(fragment) if matches!(fragment, Fragment::Row(_)) => found.push(fragment),
                Some(_) => {}
            }
        }
        let mut expected: Vec<Fragment> = rows[from..from + count].iter().map(row).collect();
        if reverse {
            expected.reverse();
        }
        assert!(found == expected, "{self:?} from {from}: {} rows", found.len());
    }
}

/// What so many reads here and there take, behind as many others.
async fn cost(shard: &Shard, table: &Rc<SSTable>, rows: &[Shape], way: Way, reads: usize) -> IoCount {
    let mut before = shard.disk().stats();
    for number in 0..2 * reads {
        if number == reads {
            before = shard.disk().stats();
        }
        way.read(table, rows, mixed(number) as usize % (ROWS - 200)).await;
    }
    shard.disk().stats().since(&before).class(DATA_IO)
}

const WAYS: [Way; 5] = [Way::Row, Way::Forward(20), Way::Forward(100), Way::Reverse(100), Way::Between(100)];

fn run(rows: &[Shape], block: u32, check: impl Fn(Way, u64, IoCount) + Sync) {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        let dir = tempfile::tempdir().unwrap();
        let table = write(shard.disk(), dir.path(), rows, block).await;
        for way in WAYS {
            let cost = cost(&shard, &table, rows, way, READS).await;
            let row = table.data().file.len() / ROWS as u64;
            check(way, row, cost);
        }
    })
    .unwrap();
}

const READS: usize = 1000;

#[test]
fn where_guesses_are_right_half_a_block_is_left_out() {
    for block in [1024, 4096, 65_536] {
        run(&even(), block, |way, row, cost| {
            assert!(cost.requests <= READS as u64 * 101 / 100, "{way:?}: {cost:?}");
            let rows = match way {
                Way::Row => 1,
                Way::Forward(count) | Way::Reverse(count) | Way::Between(count) => count,
            };
            let most = (rows as u64 + 1) * row + u64::from(block) / 2 + ROUNDED;
            let mean = cost.bytes / READS as u64;
            assert!(mean <= most, "{way:?}, blocks of {block} bytes: {mean} bytes, not {most}");
        });
    }
}

#[test]
fn where_they_are_not_hardly_a_read_goes_on() {
    for (longest, block) in [(800, 4096), (800, 65_536), (3000, 65_536)] {
        run(&uneven(longest), block, |way, _, cost| {
            assert!(cost.requests <= READS as u64 * 102 / 100, "{way:?}: {cost:?}");
        });
    }
}

/// The first rows of a partition, large ones and small ones, are one request.
#[test]
fn the_first_rows_come_at_once() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for (len, block) in [(200, 4096), (3000, 4096), (10_000, 4096), (10_000, 65_536)] {
            let dir = tempfile::tempdir().unwrap();
            let rows: Vec<Shape> = (0..1000).map(|number| (number, len)).collect();
            let table = write(shard.disk(), dir.path(), &rows, block).await;
            for limit in [1, 2, 7, 20] {
                let before = shard.disk().stats();
                let options = ReadOptions { limit: Some(limit), ..ReadOptions::default() };
                let mut reader = table.read(&key(), &Slice::all(), options).await.unwrap().unwrap();
                let mut left = limit;
                while left > 0 {
                    let fragment = reader.next().await.unwrap().expect("there are more");
                    left -= u64::from(matches!(fragment, Fragment::Row(_)));
                }
                let cost = shard.disk().stats().since(&before).class(DATA_IO);
                let wanted = limit * (len as u64 + 20);
                let is_small = cost.bytes <= wanted + wanted.clamp(4 << 10, 16 << 10) + (8 << 10);
                assert!(cost.requests == 1 && is_small, "{limit} rows of {len} bytes: {cost:?}");
            }
        }
    })
    .unwrap();
}
