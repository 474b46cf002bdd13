//! What lookups keep in memory beside the pages, as the allocator tells.

use std::path::Path;

use runtime::{Cache, Shard, ShardOptions};
use serde_json::{Value, json};
use siltstone::Result;
use sstable::parts::bloom_pages::{BloomPages, FilterPages, Probe};

use super::before::Shared;
use super::files::Files;
use crate::allocations;

/// SSTables and shards for which the state is told, each SSTable on one of the shards.
const SSTABLES: u32 = 32_000;
const SHARDS: u32 = 48;

/// Keys of a file: those of four pages.
const KEYS: u64 = 10_000;
/// So often each file is asked, each time for another key.
const ROUNDS: u64 = 8;
/// Bytes of cache for each of the pages that are to be in it.
const CACHE: usize = 4;

/// Bytes that lookups keep beside pages and first tokens; none where allocations are not counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    before: Option<u64>,
    now: Option<u64>,
}

impl State {
    /// Measures both. Files are made in this folder.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub(super) fn measured(folder: &Path, fp_chance: f64, machine: &ShardOptions) -> Result<State> {
        let files = Files { folder: folder.to_owned(), count: 1, keys: KEYS, fp_chance };
        let of_shard = runtime::run(machine.clone(), async |shard: Shard| {
            files.make(shard.disk()).await?;
            of_shard(&shard, &files).await
        })??;
        let before = grown(allocations::live(), || Shared::new(SSTABLES, SHARDS as usize, 0));
        Ok(State { before, now: of_shard.map(|bytes| bytes * u64::from(SHARDS)) })
    }

    pub(super) fn text(&self) -> String {
        let mib = |bytes: Option<u64>| match bytes {
            Some(bytes) => format!("{:.3} MiB", bytes as f64 / f64::from(1 << 20)),
            None => "-".to_owned(),
        };
        format!(
            "State for {SSTABLES} SSTables and {SHARDS} shards: before {}, now {}. First tokens take 8 bytes for each page \
             of 4 KiB.\n",
            mib(self.before),
            mib(self.now)
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({ "sstables": SSTABLES, "shards": SHARDS, "before": self.before, "now": self.now })
    }
}

/// What is added on a shard by lookups in its share of the files, all of whose pages are in its cache: by what knows the
/// pages at hand, by the lookups themselves, and by the place that each file has for its last page.
async fn of_shard(shard: &Shard, files: &Files) -> Result<Option<u64>> {
    let count = SSTABLES.div_ceil(SHARDS);
    let cache = Cache::new(CACHE * files.bytes()? as usize * count as usize);
    let start = allocations::live();
    let pages = FilterPages::new(&cache);
    let of_hand = grown(start, || ());
    let mut opened = Vec::new();
    for _ in 0..count {
        opened.append(&mut files.open(shard.disk(), &pages).await?);
    }
    let keys: Vec<[u64; 2]> = files.hashes(0).step_by((KEYS / ROUNDS) as usize).collect();
    let of_lookups = grown(allocations::live(), || {
        for &key in &keys {
            let found = opened.iter().all(|file| file.probe(key) == Probe::Maybe);
            assert!(found, "the pages are in the cache, and the key in the file");
        }
    });
    let of_files = (opened.len() * BloomPages::STATE) as u64;
    Ok(of_hand.zip(of_lookups).map(|(hand, lookups)| hand + lookups + of_files))
}

/// How many bytes more are allocated than were at the start, once something was done and before what it made is dropped.
fn grown<T>(start: Option<i64>, work: impl FnOnce() -> T) -> Option<u64> {
    let made = work();
    let now = allocations::live();
    drop(made);
    start.zip(now).map(|(start, now)| (now - start).max(0) as u64)
}
