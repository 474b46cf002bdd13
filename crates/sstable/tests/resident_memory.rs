//! What an open SSTable says that it keeps in memory is what it keeps, by the allocator's own count.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use runtime::{Cache, Shard, ShardOptions, run};
use siltstone_sstable::component::Descriptor;
use siltstone_sstable::parts::fences::write_fences;
use siltstone_sstable::parts::row_filter::write_row_filter;
use siltstone_sstable::{Error, OpenOptions, SSTable};
use testkit::allocator::{Watched, held};
use testkit::fixtures;

#[global_allocator]
static WATCHED: Watched = Watched;

/// Opens each SSTable and compares; how many there were.
async fn compare_all(shard: Shard) -> usize {
    let mut count = 0;
    // The first one opens what the process keeps.
    let all = fixtures::all();
    for fixture in all.iter().take(1).chain(&all) {
        count += usize::from(compare(&shard, &fixture.name, &fixture.data).await);
    }
    for fixture in all.iter().step_by(5) {
        compare_copies(&shard, &fixture.name, &fixture.data).await;
    }
    count
}

/// Compares copies of an SSTable with what is made beside it: the names of the files count, however deep the folder is.
async fn compare_copies(shard: &Shard, name: &str, data: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("d".repeat(250)).join("e".repeat(250));
    std::fs::create_dir_all(&deep).unwrap();
    for to in [folder.path(), &deep] {
        if let Some(copy) = with_fences(shard, data, to).await {
            compare(shard, &format!("{name}, with fences in {}", to.display()), &copy).await;
        }
    }
}

/// Opens an SSTable and compares; whether it could be opened.
async fn compare(shard: &Shard, name: &str, data: &Path) -> bool {
    let cache = Cache::new(0);
    let options = OpenOptions::new(cache.clone());
    // What the cache and the process keep once pages have been read is not the SSTable's.
    drop(SSTable::open(shard.disk(), data, &options).await);
    let before = held();
    let sstable = match SSTable::open(shard.disk(), data, &options).await {
        Err(Error::Unsupported { .. }) => return false,
        opened => opened.unwrap(),
    };
    let (is, said) = (held() - before, sstable.memory_bytes());
    assert_eq!(cache.reserved(), said);
    assert!(is <= said + said / 10, "{name}: {is} bytes are held, {said} were said");
    assert!(said <= is + is / 3, "{name}: {is} bytes are held, {said} were said");
    drop(sstable);
    assert_eq!(cache.reserved(), 0);
    true
}

/// A copy of an SSTable, with fences if they are of use, and then with which rows its large partitions have.
async fn with_fences(shard: &Shard, data: &Path, to: &Path) -> Option<PathBuf> {
    let descriptor = Descriptor::parse(data).unwrap();
    for component in descriptor.list(shard.disk()).unwrap() {
        let path = descriptor.path_of(&component);
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
    let data = to.join(data.file_name().unwrap());
    let table = SSTable::open(shard.disk(), &data, &OpenOptions::new(Cache::new(1 << 20))).await.ok()?;
    write_fences(shard.disk(), &table, |_| {}).await.ok()??;
    write_row_filter(shard.disk(), &table, |_| {}).await.unwrap();
    Some(data)
}

/// One test, because the counts are those of the process.
#[test]
fn an_open_sstable_keeps_what_it_says() {
    let count = run(ShardOptions::default(), compare_all).unwrap();
    assert!(count > 0);
    println!("{count} SSTables");
}
