//! What one flush of Cassandra wrote, we write byte for byte: the data, the index and the filter.
//!
//! Not determined by the rows, and therefore not compared:
//!
//! | where | why |
//! |---|---|
//! | the width of a partition's last index block | Cassandra counts the byte that ends the partition, unless a block ends just before it; we never do |
//! | the bytes of compressed chunks, and with them CompressionInfo.db and Digest.crc32 | another implementation of the same algorithm chooses other matches |
//! | Statistics.db | it names the host and the place in its commit log; its parts are compared on their own |

use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::{Cache, Disk, Shard, ShardOptions};
use siltstone_sstable::component::{Component, Descriptor};
use siltstone_sstable::data::chunk::Care;
use siltstone_sstable::decode::Cursor;
use siltstone_sstable::encode::Encode;
use siltstone_sstable::{OpenOptions, Result, SSTable, SSTableWriter, WriteOptions};
use testkit::fixtures::{self, Fixture};

/// The size of index blocks that all nodes were told to use, in bytes.
const COLUMN_INDEX_SIZE: u32 = 4 << 10;

/// Whether one flush of Cassandra wrote it.
fn is_flushed(fixture: &Fixture) -> bool {
    fixture.name.starts_with("cassandra/") && !fixture.name.contains("compacted")
}

async fn open(disk: &Disk, data: &Path) -> Result<Rc<SSTable>> {
    SSTable::open(disk, data, &OpenOptions::new(Cache::new(1 << 20))).await
}

/// Writes the fragments of an SSTable again, with the options it was written with.
async fn write_again(disk: &Disk, table: &SSTable, dir: &Path) -> Result<Descriptor> {
    let validation = &table.statistics().validation;
    let options = WriteOptions {
        compression: table.data().file.compression().map(|info| info.compression().clone()),
        column_index_size: COLUMN_INDEX_SIZE,
        bloom_filter_fp_chance: validation.filter_fp_chance,
        min_index_interval: table.summary().await?.min_index_interval(),
        partitioner: validation.partitioner,
        ..WriteOptions::new(table.version())
    };
    let descriptor = Descriptor { dir: dir.to_path_buf(), ..table.descriptor().clone() };
    let encoding = table.statistics().header.encoding;
    let mut writer = SSTableWriter::create(disk, descriptor, table.schema(), encoding, options).await?;
    writer.push_all(&mut table.scan(), &mut |_| {}).await?;
    Ok(writer.seal().await?.descriptor)
}

async fn uncompressed(table: &SSTable) -> Result<Vec<u8>> {
    let file = &table.data().file;
    let stretch = file.read(&file.nothing_at(0), 0..file.len(), Care::Usual).await?;
    Ok(stretch.owner[stretch.bytes].to_vec())
}

fn component(descriptor: &Descriptor, component: Component) -> Option<Vec<u8>> {
    std::fs::read(descriptor.path_of(&component)).ok()
}

/// Index.db as it would be if the byte that ends a partition were never counted.
async fn index_without_ends(table: &SSTable) -> Result<Vec<u8>> {
    let theirs = component(table.descriptor(), Component::Index).expect("there is an index");
    let mut entries = Vec::new();
    let mut scanner = table.entries();
    while let Some(entry) = scanner.next().await? {
        entries.push(entry);
    }
    let ends = entries.iter().skip(1).map(|entry| entry.data).chain([table.data().file.len()]);
    let mut expected = Vec::new();
    for (entry, end) in entries.iter().zip(ends.collect::<Vec<_>>()) {
        expected.put_short_bytes(&entry.key);
        expected.put_vint(entry.data);
        let promoted = &theirs[entry.promoted.start as usize..entry.promoted.end as usize];
        let Some((head, blocks)) = table.blocks(entry).await? else {
            expected.put_vint(0);
            continue;
        };
        let last = blocks.last().expect("there is a block");
        let is_counted = entry.data + last.end() == end;
        let map = (head.map - entry.promoted.start) as usize;
        let tail = |width: u64| {
            let mut tail = Vec::new();
            tail.put_vint(last.offset);
            tail.put_signed_vint(width as i64 - (64 << 10));
            tail
        };
        // Behind the width there is only the flag: no range tombstone is open at a partition's end.
        let (old, new) = (tail(last.width), tail(last.width - u64::from(is_counted)));
        let before = map - 1 - old.len();
        assert_eq!(promoted[before..map - 1], old, "the last block ends with its width");
        expected.put_vint((promoted.len() - old.len() + new.len()) as u64);
        expected.put(&promoted[..before]);
        expected.put(&new);
        expected.put(&promoted[map - 1..]);
    }
    assert_eq!(Cursor::new(&theirs).remaining() == 0, entries.is_empty());
    Ok(expected)
}

/// What is not equal, of an SSTable written again.
async fn compare(shard: &Shard, fixture: &Fixture, dir: &Path) -> Result<Vec<&'static str>> {
    let theirs = open(shard.disk(), &fixture.data).await?;
    let descriptor = write_again(shard.disk(), &theirs, dir).await?;
    let ours = open(shard.disk(), &descriptor.path_of(&Component::Data)).await?;
    let mut different = Vec::new();
    let mut check = |name, equal: bool| {
        if !equal {
            different.push(name)
        }
    };
    check("Data.db", uncompressed(&theirs).await? == uncompressed(&ours).await?);
    check("Index.db", Some(index_without_ends(&theirs).await?) == component(&descriptor, Component::Index));
    let same =
        |of: &Component| component(&descriptor, of.clone()) == component(theirs.descriptor(), of.clone());
    check("Filter.db", same(&Component::Filter));
    if theirs.data().file.compression().is_none() {
        check("CRC.db", same(&Component::Crc));
        check("Digest.crc32", same(&Component::Digest));
    }
    check("Summary.db", same(&Component::Summary) || index_has_blocks(&theirs).await?);
    Ok(different)
}

/// Whether the index has blocks, whose last widths may move what the summary points to.
async fn index_has_blocks(table: &SSTable) -> Result<bool> {
    let mut scanner = table.entries();
    while let Some(entry) = scanner.next().await? {
        if !entry.promoted.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

#[test]
fn what_one_flush_wrote_is_written_byte_for_byte() {
    let fixtures: Vec<Fixture> = fixtures::all().into_iter().filter(is_flushed).collect();
    let folder = tempfile::tempdir().unwrap();
    let wrong = runtime::run(ShardOptions::default(), async |shard| {
        let mut wrong = Vec::new();
        for (number, fixture) in fixtures.iter().enumerate() {
            let dir: PathBuf = folder.path().join(number.to_string());
            std::fs::create_dir(&dir).unwrap();
            match compare(&shard, fixture, &dir).await {
                Ok(different) if different.is_empty() => {}
                Ok(different) => wrong.push(format!("{}: {}", fixture.name, different.join(", "))),
                Err(error) => wrong.push(format!("{}: {error}", fixture.name)),
            }
            std::fs::remove_dir_all(&dir).unwrap();
        }
        wrong
    });
    assert_eq!(wrong.unwrap(), Vec::<String>::new(), "of {} SSTables", fixtures.len());
}
