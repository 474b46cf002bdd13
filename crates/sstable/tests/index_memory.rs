//! What a page of the partition index costs, by the allocator's own count: at most 28 bytes a partition with 16-byte
//! keys, and two allocations to drop, whatever the page holds.

use model::key::token_of;
use model::{Bytes, PartitionKey};
use siltstone_sstable::big::entry::EntryHead;
use siltstone_sstable::cache::index_page::{IndexPage, IndexPageBuilder};
use testkit::allocator::{self, Watched};

#[global_allocator]
static WATCHED: Watched = Watched;

/// A page of as many partitions with 16-byte keys; every `large`th has a promoted index.
fn page(partitions: u64, large: u64) -> IndexPage {
    let mut keys: Vec<_> = (0..partitions)
        .map(|i| {
            PartitionKey::new(Bytes::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().repeat(2)))
        })
        .collect();
    keys.sort();
    let mut builder = IndexPageBuilder::new(token_of);
    for (i, key) in (0..).zip(&keys) {
        let bytes = entry(&key.bytes, i, if i % large == 0 { 4000 } else { 0 });
        let entry = EntryHead::decode(&bytes, i * 5000).expect("the entry is whole");
        builder.push(&entry).expect("the entries are in order");
    }
    builder.build()
}

/// An entry as it stands in Index.db: the key, the position in nine bytes less two, the length in three.
fn entry(key: &[u8], number: u64, promoted_len: u32) -> Vec<u8> {
    let position = (number * 1_000_000).to_be_bytes();
    let promoted_len = promoted_len.to_be_bytes();
    let promoted_len = if promoted_len == [0; 4] { vec![0] } else { [&[0xc0], &promoted_len[2..]].concat() };
    [&(key.len() as u16).to_be_bytes(), key, &[0xf8], &position[3..], &promoted_len].concat()
}

/// One test, because the counts are those of the process.
#[test]
fn a_page_is_small_and_cheap_to_drop() {
    for partitions in [1, 128, 100_000] {
        for large in [u64::MAX, 10, 1] {
            let before = allocator::held();
            let page = page(partitions, large);
            let held = allocator::held() - before + size_of::<IndexPage>();
            if large == u64::MAX && partitions >= 128 {
                let each = held as f64 / partitions as f64;
                assert!(each <= 28.0, "{each} bytes for each of {partitions} partitions");
            }
            // The page says of itself what it weighs; the test's own thread may hold a little as well.
            assert!(page.memory().abs_diff(held) <= 1024, "{} bytes said, {held} held", page.memory());
            let freed = allocator::freed();
            drop(page);
            assert!(allocator::freed() - freed <= 2, "{partitions} partitions");
        }
    }
}
