//! Writes an SSTable of made-up rows, and says how long that took.
//!
//! ```sh
//! cargo run --release -p siltstone-sstable --example write_rows -- FOLDER PARTITIONS ROWS BYTES
//! ```
//!
//! The rows are those of `WriteRows.java` in `testkit`, which lets Cassandra write them: `cargo xtask compare-write`.

use std::error::Error;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use model::key::token_of;
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Column, CqlType, DeletionTime, Fragment, Liveness, PartitionKey, PartitionStart,
    Row, Schema,
};
use runtime::{Shard, ShardOptions};
use siltstone_sstable::component::{Component, Descriptor};
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::{SSTableWriter, Version, WriteOptions};

const TIMESTAMP: i64 = 1_700_000_000_000_000;

/// How many different values there are: together more than a compressor looks back.
const VALUES: usize = 4096;

/// What is to be written.
struct Shape {
    partitions: i32,
    rows: i32,
    bytes: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, partitions, rows, bytes] = &arguments[..] else {
        return Err("folder, partitions, rows a partition and bytes a value are expected".into());
    };
    let shape = Shape { partitions: partitions.parse()?, rows: rows.parse()?, bytes: bytes.parse()? };
    let path = Path::new(folder).join("oa-1-big-Data.db");
    let seconds = runtime::run(ShardOptions::default(), async |shard| write(&shard, &path, &shape).await)?;
    println!("{}", seconds?);
    Ok(())
}

/// Writes all, and says how many seconds it took from the first row to the sealed SSTable.
async fn write(shard: &Shard, path: &Path, shape: &Shape) -> Result<f64, siltstone_sstable::Error> {
    let column = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![column]));
    let (descriptor, options) = (Descriptor::parse(path)?, WriteOptions::new(Version::Oa));
    let (keys, numbers, values) = (keys(shape.partitions), numbers(0..shape.rows), values(shape.bytes));
    let start = Instant::now();
    let mut writer =
        SSTableWriter::create(shard.disk(), descriptor, &schema, EncodingStats::NONE, options).await?;
    let mut fragment = Fragment::default();
    for at in 0..shape.partitions as usize {
        let key = PartitionKey::new(nth(&keys, at, 4));
        let number = i32::from_be_bytes(key.bytes[..].try_into().expect("a key has 4 bytes"));
        let start = PartitionStart { key, deletion: DeletionTime::LIVE };
        writer.push(&Fragment::PartitionStart(start)).await?;
        for row in 0..shape.rows as usize {
            let value = nth(&values, (number as usize * 31 + row) % VALUES, shape.bytes);
            fill(fragment.as_new_row(), nth(&numbers, row, 4), value);
            writer.push(&fragment).await?;
        }
        writer.push(&Fragment::PartitionEnd).await?;
    }
    let written = writer.seal().await?;
    assert_eq!(written.components.last(), Some(&Component::Toc));
    Ok(start.elapsed().as_secs_f64())
}

/// The keys one after the other, in the order of their tokens.
fn keys(count: i32) -> Bytes {
    let mut keys: Vec<i32> = (0..count).collect();
    keys.sort_by_cached_key(|number| token_of(&number.to_be_bytes()));
    numbers(keys)
}

/// Fills a row of nothing, whose memory is that of the row before.
fn fill(row: &mut Row, number: Bytes, value: Bytes) {
    row.clustering.values.push(Some(number));
    row.liveness = Liveness { timestamp: TIMESTAMP, ..Liveness::NONE };
    let value = CellValue::Value(value);
    let (ttl, local_deletion_time, path) = (0, NO_DELETION_TIME, None);
    row.cells.push(Cell { column: 0, ttl, timestamp: TIMESTAMP, local_deletion_time, path, value });
}

/// Numbers as CQL has them, one after the other.
fn numbers(numbers: impl IntoIterator<Item = i32>) -> Bytes {
    Bytes::from(numbers.into_iter().flat_map(i32::to_be_bytes).collect::<Vec<u8>>())
}

/// One of those that stand one after the other, each of so many bytes.
fn nth(all: &Bytes, at: usize, bytes: usize) -> Bytes {
    all.slice(bytes * at..bytes * (at + 1))
}

/// Values of which half repeats and half does not: compressors find something, but not everything. They are made
/// beforehand, so that making them is not what is measured, and are parts of one buffer, as those of a block that was read.
fn values(bytes: usize) -> Bytes {
    let mut random = 1_i64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 56) as u8
    };
    let mut byte = |at: usize| if at % bytes < bytes / 2 { next() } else { 0 };
    Bytes::from((0..VALUES * bytes).map(&mut byte).collect::<Vec<u8>>())
}
