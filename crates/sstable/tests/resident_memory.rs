//! What an open SSTable says that it keeps in memory is what it keeps, by the allocator's own count.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use runtime::{Cache, Shard, ShardOptions, run};
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
        let cache = Cache::new(0);
        let options = OpenOptions::new(cache.clone());
        let before = held();
        let sstable = match SSTable::open(shard.disk(), &fixture.data, &options).await {
            Err(Error::Unsupported { .. }) => continue,
            opened => opened.unwrap(),
        };
        let (is, said) = (held() - before, sstable.memory_bytes());
        assert_eq!(cache.reserved(), said);
        let name = &fixture.name;
        assert!(is <= said + said / 10, "{name}: {is} bytes are held, {said} were said");
        assert!(said <= is + is / 3, "{name}: {is} bytes are held, {said} were said");
        drop(sstable);
        assert_eq!(cache.reserved(), 0);
        count += 1;
    }
    count
}

/// One test, because the counts are those of the process.
#[test]
fn an_open_sstable_keeps_what_it_says() {
    let count = run(ShardOptions::default(), compare_all).unwrap();
    assert!(count > 0);
    println!("{count} SSTables");
}
