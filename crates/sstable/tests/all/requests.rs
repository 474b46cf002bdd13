//! How many requests a read costs: the figures the project exists for, asserted.
//!
//! A row in the middle of a large partition, cold: a handful of requests to the index and exactly one to
//! the data, no longer than the chunks or the block that hold it. Its neighbour then: no request to the
//! index, one to the data.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{Bytes, Clustering, Fragment, FragmentReader, Position, Slice};
use runtime::{Cache, IoCount, Shard, ShardOptions};
use siltstone_sstable::component::{DATA_IO, INDEX_IO, METADATA_IO};
use siltstone_sstable::{OpenOptions, ReadOptions, SSTable, Search};

use super::fences;

/// The requests to the index for this row in the middle, cold, as docs/performance/reads.md has them: of 200,000 rows there are 68 KB of
/// blocks, of 20,000 so few that they come with the page of the entry.
fn index_requests(row: i32) -> u64 {
    if row > 10_000 { 4 } else { 1 }
}

/// Tables with a large partition, each with the clustering values of two neighbours in its middle.
fn tables() -> impl Iterator<Item = (PathBuf, [i32; 2])> {
    fences::tables().map(|(path, rows)| (path, [rows / 2 - 999, rows / 2 - 998]))
}

struct Read {
    rows: Vec<Fragment>,
    index: IoCount,
    data: IoCount,
}

async fn read(shard: &Shard, table: &Rc<SSTable>, row: i32, options: ReadOptions) -> Read {
    let before = shard.disk().stats();
    let key = table.key(Bytes::from(1i32.to_be_bytes().to_vec()));
    let clustering: Clustering = [row.to_be_bytes().to_vec()].into_iter().collect();
    let mut reader =
        table.read(&key, &Slice::of_prefix(clustering), options).await.unwrap().expect("it is there");
    let mut rows = Vec::new();
    while let Some(fragment) = reader.next().await.unwrap() {
        if matches!(fragment, Fragment::Row(_)) {
            rows.push(fragment);
        }
    }
    let stats = shard.disk().stats().since(&before);
    assert_eq!(stats.total().requests, stats.class(INDEX_IO).requests + stats.class(DATA_IO).requests);
    Read { rows, index: stats.class(INDEX_IO), data: stats.class(DATA_IO) }
}

async fn open(shard: &Shard, path: &Path) -> Rc<SSTable> {
    open_beside(Cache::new(64 << 20), shard, path).await
}

async fn open_beside(cache: Cache, shard: &Shard, path: &Path) -> Rc<SSTable> {
    SSTable::open(shard.disk(), path, &OpenOptions::new(cache)).await.unwrap()
}

/// The most bytes that may be read for one index block: the block, or the chunks that hold it, both
/// rounded outwards to what direct I/O needs.
fn most_data_bytes(table: &SSTable, row: &Read, block: u64) -> u64 {
    let alignment = table.data().file.file().alignment() as u64;
    let stored = match table.data().file.compression() {
        Some(info) => block.div_ceil(u64::from(info.chunk_len())) * 2 * u64::from(info.chunk_len()),
        None => block,
    };
    assert!(row.data.bytes > 0);
    stored + 2 * alignment
}

/// The width of the widest block of the partition, in bytes.
async fn widest_block(table: &SSTable) -> u64 {
    let mut entries = table.entries();
    let mut widest = 0;
    while let Some(entry) = entries.next().await.unwrap() {
        if let Some((_, blocks)) = table.blocks(&entry).await.unwrap() {
            widest = blocks.iter().map(|block| block.width).fold(widest, u64::max);
        }
    }
    widest
}

fn check(options: ShardOptions) {
    runtime::run(options, async |shard: Shard| {
        for (path, [row, neighbour]) in tables() {
            let block = widest_block(&*open(&shard, &path).await).await;
            for reverse in [false, true] {
                let options = ReadOptions { reverse, ..ReadOptions::default() };
                let table = open(&shard, &path).await;
                let first = read(&shard, &table, row, options).await;
                let name = path.display();
                assert_eq!(first.rows.len(), 1, "{name}");
                assert_eq!(first.index.requests, index_requests(row), "{name}: {:?}", first.index);
                assert_eq!(first.data.requests, 1, "{name}");
                assert!(
                    first.data.bytes <= most_data_bytes(&table, &first, block),
                    "{name}: {:?}",
                    first.data
                );

                let second = read(&shard, &table, neighbour, options).await;
                assert_eq!(
                    (second.rows.len(), second.index.requests, second.data.requests),
                    (1, 0, 1),
                    "{name}"
                );

                let scan = ReadOptions { search: Search::Scan, ..options };
                let scanned = read(&shard, &open(&shard, &path).await, row, scan).await;
                assert_eq!(scanned.rows, first.rows, "{name}");
            }
        }
    })
    .unwrap();
}

#[test]
fn a_row_in_the_middle_costs_a_handful_of_requests() {
    check(ShardOptions::default());
}

#[test]
fn so_it_does_without_direct_io() {
    check(ShardOptions { direct_io: false, ..ShardOptions::default() });
}

/// However much of it is reserved, a cache has room for what a search goes back to.
#[test]
fn a_cache_that_is_reserved_makes_no_search_longer() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for (path, [row, _]) in tables() {
            for reverse in [false, true] {
                let options = ReadOptions { reverse, ..ReadOptions::default() };
                let roomy = read(&shard, &open(&shard, &path).await, row, options).await;
                let cache = Cache::new(256 << 10);
                let _reserved = cache.reserve(cache.capacity());
                let narrow = read(&shard, &open_beside(cache, &shard, &path).await, row, options).await;
                let name = path.display();
                assert_eq!(
                    (narrow.rows, narrow.data, narrow.index),
                    (roomy.rows, roomy.data, roomy.index),
                    "{name}"
                );
            }
        }
    })
    .unwrap();
}

/// Statistics.db, Summary.db, Filter.db, and where chunks stand, if there are any. Nothing is read that says nothing about where rows
/// are: the list of components, the checksums of the data, which the first scan reads.
#[test]
fn opening_reads_what_tells_where_rows_are() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for (path, _) in tables() {
            let before = shard.disk().stats();
            let table = open(&shard, &path).await;
            let opened = shard.disk().stats().since(&before);
            let is_compressed = table.data().file.compression().is_some();
            let name = path.display();
            assert_eq!(opened.total().requests, 3 + u64::from(is_compressed), "{name}");

            let before = shard.disk().stats();
            let mut scan = table.scan();
            while scan.next().await.unwrap().is_some() {}
            let scanned = shard.disk().stats().since(&before);
            assert_eq!(scanned.class(METADATA_IO).requests, u64::from(!is_compressed), "{name}");
        }
    })
    .unwrap();
}

#[test]
fn what_the_index_rules_out_costs_no_data() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for (path, _) in tables() {
            let table = open(&shard, &path).await;
            let absent = read(&shard, &table, -5, ReadOptions::default()).await;
            assert_eq!((absent.rows.len(), absent.data.requests), (0, 0), "{}", path.display());
            let before = shard.disk().stats();
            let key = table.key(Bytes::from(b"no such key".to_vec()));
            assert!(table.read(&key, &Slice::all(), ReadOptions::default()).await.unwrap().is_none());
            assert_eq!(shard.disk().stats().since(&before).class(DATA_IO).requests, 0);
        }
    })
    .unwrap();
}

/// However far a reader walks, the cache holds no more than its budget.
#[test]
fn a_walk_over_all_blocks_stays_within_the_budget() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for (path, [last, _]) in tables() {
            let cache = Cache::new(24 << 10);
            let options = OpenOptions::new(cache.clone());
            let table = SSTable::open(shard.disk(), &path, &options).await.unwrap();
            for row in (0..last).step_by(97) {
                read(&shard, &table, row, ReadOptions::default()).await;
                assert!(cache.used() <= cache.capacity(), "{}: {}", path.display(), cache.used());
            }
        }
    })
    .unwrap();
}

/// Backwards, a whole partition costs a request more than forward at the most: pieces grow to what a request holds.
#[test]
fn a_whole_partition_backwards() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for (path, _) in tables() {
            let (mut requests, mut found) = (Vec::new(), Vec::new());
            for reverse in [false, true] {
                let table = open(&shard, &path).await;
                let before = shard.disk().stats();
                let key = table.key(Bytes::from(1i32.to_be_bytes().to_vec()));
                let options = ReadOptions { reverse, ..ReadOptions::default() };
                let mut reader =
                    table.read(&key, &Slice::all(), options).await.unwrap().expect("it is there");
                let mut rows = Vec::new();
                while let Some(fragment) = reader.next().await.unwrap() {
                    if let Fragment::Row(row) = fragment {
                        rows.push(row);
                    }
                }
                requests.push(shard.disk().stats().since(&before).class(DATA_IO).requests);
                found.push(rows);
            }
            found[1].reverse();
            assert!(!found[0].is_empty() && found[0] == found[1], "{}", path.display());
            assert!(requests[1] <= requests[0] + 1, "{}: {requests:?}", path.display());
        }
    })
    .unwrap();
}

/// The static row and the first block lie side by side: they are one request, as far as rows are wanted.
#[test]
fn the_head_comes_with_the_first_block() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for ((path, _), limit) in
            tables().flat_map(|table| [None, Some(1)].map(|limit| (table.clone(), limit)))
        {
            let table = open(&shard, &path).await;
            let entry = table.entries().next().await.unwrap().expect("the first partition is the large one");
            let (_, blocks) = table.blocks(&entry).await.unwrap().expect("it has blocks");
            let slice =
                Slice { start: Position::start(), end: Position::after(blocks[0].last.prefix.clone()) };
            let options = ReadOptions { static_row: true, limit, ..ReadOptions::default() };
            let before = shard.disk().stats();
            let key = table.key(entry.key);
            let mut reader = table.read(&key, &slice, options).await.unwrap().expect("it is there");
            let mut rows = 0;
            while let Some(fragment) = reader.next().await.unwrap() {
                rows += u64::from(matches!(fragment, Fragment::Row(_)));
                if limit == Some(rows) {
                    break;
                }
            }
            assert_eq!(shard.disk().stats().since(&before).class(DATA_IO).requests, 1, "{}", path.display());
        }
    })
    .unwrap();
}

/// All from a row on, or so many rows of it; and what was asked of the data.
async fn read_from(shard: &Shard, path: &Path, row: i32, options: ReadOptions) -> (usize, IoCount) {
    let open = OpenOptions { read_buffer: 16 << 10, ..OpenOptions::new(Cache::new(64 << 20)) };
    let table = SSTable::open(shard.disk(), path, &open).await.unwrap();
    let key = table.key(Bytes::from(1i32.to_be_bytes().to_vec()));
    let clustering: Clustering = [row.to_be_bytes().to_vec()].into_iter().collect();
    let slice = Slice { start: Position::before(clustering), end: Position::end() };
    let before = shard.disk().stats();
    let mut reader = table.read(&key, &slice, options).await.unwrap().expect("it is there");
    let mut rows = 0;
    while options.limit.is_none_or(|limit| rows < limit as usize)
        && let Some(fragment) = reader.next().await.unwrap()
    {
        rows += usize::from(matches!(fragment, Fragment::Row(_)));
    }
    drop(reader);
    (rows, shard.disk().stats().since(&before).class(DATA_IO))
}

/// The next request is under way: it ends at a page, of which a row may have needed the next one. So the same bytes are read by about as
/// many requests; and where a limit ends the read before, nothing is under way.
#[test]
fn who_reads_on_makes_the_same_requests() {
    runtime::run(ShardOptions::default(), async |shard: Shard| {
        for (path, [row, _]) in tables() {
            for limit in [None, Some(1), Some(500)] {
                let steady = ReadOptions { limit, ..ReadOptions::default() };
                let (rows, asked) = read_from(&shard, &path, row, steady).await;
                let reads_on = ReadOptions { reads_on: true, ..steady };
                let name = path.display();
                let (same, again) = read_from(&shard, &path, row, reads_on).await;
                assert_eq!(same, rows, "{name}, {limit:?}");
                let has_few = again.requests <= asked.requests + asked.requests / 16 + 1;
                let is_alike = has_few && again.bytes <= asked.bytes + asked.bytes / 100;
                assert!(is_alike && (limit.is_none() || again == asked), "{name}: {again:?}, {asked:?}");
                assert!(limit.is_some() || asked.requests > 2, "{name}: {asked:?}");
            }
        }
    })
    .unwrap();
}
