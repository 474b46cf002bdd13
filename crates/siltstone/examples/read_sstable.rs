//! A program that reads SSTables as they are, without a database: the live rows of one partition, merged from all SSTables at a path.
//!
//! ```text
//! cargo run --example read_sstable -- fixtures/cassandra/me/large/sstables/large_none '["1"]'
//! ```

use std::error::Error;
use std::path::PathBuf;

use siltstone::model::{Bytes, Fragment, FragmentReader as _, LiveRows, Slice};
use siltstone::read::Tables;
use siltstone::runtime::{self, Cache, Shard, ShardOptions};
use siltstone::sstable::{OpenOptions, ReadOptions, SSTable};
use siltstone::{keys, paths};

/// Memory for parts of the indexes, in bytes.
const CACHE: usize = 16 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(key)) = (arguments.next(), arguments.next()) else {
        return Err("a path and a key are expected".into());
    };
    siltstone::allow_many_files()?;
    // Files are read on a shard: a thread with a disk.
    let rows = runtime::run(ShardOptions::default(), async |shard| rows(&shard, path.into(), &key).await)??;
    println!("{rows} live rows");
    Ok(())
}

async fn rows(shard: &Shard, path: PathBuf, key: &str) -> siltstone::Result<u64> {
    let (disk, options) = (shard.disk(), OpenOptions::new(Cache::new(CACHE)));
    let mut tables = Vec::new();
    for file in paths::data_files(disk, &path).await? {
        tables.push(SSTable::open(disk, &file, &options).await?);
    }
    let tables = Tables::new(tables)?;
    let key = tables.key(Bytes::from(keys::partition_key(tables.schema(), key)?));
    let Some(mut found) = tables.read(&key, &Slice::all(), ReadOptions::default()).await? else {
        return Ok(0);
    };
    let (mut live, mut rows) = (LiveRows::new(siltstone::now()), 0);
    // Fragments are rows, and what deletes others.
    while let Some(mut fragment) = found.next().await? {
        if live.keeps(&mut fragment) && matches!(fragment, Fragment::Row(_)) {
            rows += 1;
        }
    }
    Ok(rows)
}
