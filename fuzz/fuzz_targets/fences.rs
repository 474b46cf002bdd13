//! Fences.db of a table with a large partition: sound fences with some bytes changed, and checksums that hold all the
//! same, so that what is behind them is reached.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use model::{Bytes, Clustering, FragmentReader, Position, Slice};
use runtime::{Cache, IoClass, Shard};
use siltstone_fuzz::{LARGE, with_files};
use sstable::parts::fences::write_fences;
use sstable::{OpenOptions, ReadOptions, SSTable};

const DATA: &str = "/t/me-1-big-Data.db";
const FENCES: &str = "/t/me-1-big-Fences.db";
const PAGE: usize = 4096;

fuzz_target!(|edits: Vec<(u16, u8)>| {
    with_files(LARGE.files(), async |shard| {
        let mut bytes = fences(&shard).await;
        for (at, bits) in edits {
            let at = usize::from(at) % bytes.len();
            bytes[at] ^= bits;
        }
        for page in bytes.chunks_mut(PAGE) {
            let (content, sum) = page.split_at_mut(PAGE - 4);
            sum.copy_from_slice(&crc32fast::hash(content).to_be_bytes());
        }
        shard.disk().as_simulated().expect("the disk is simulated").add_file(FENCES, bytes);
        read(&shard).await;
    });
});

async fn fences(shard: &Shard) -> Vec<u8> {
    let options = OpenOptions::new(Cache::new(1 << 20));
    let table = SSTable::open(shard.disk(), Path::new(DATA), &options).await.expect("the table is sound");
    write_fences(shard.disk(), &table, |_| {}).await.expect("they can be written");
    let file = shard.disk().open(Path::new(FENCES), IoClass::new(0)).await.expect("they are there");
    file.read_exact_at(0, file.len() as usize).await.expect("they can be read").to_vec()
}

async fn read(shard: &Shard) {
    let options = OpenOptions::new(Cache::new(1 << 20));
    let table = SSTable::open(shard.disk(), Path::new(DATA), &options).await.expect("fences do no harm");
    for key in [1_i32, 2, 77] {
        let key = table.key(Bytes::from(key.to_be_bytes().to_vec()));
        if let Ok(Some(mut reader)) = table.read(&key, &Slice::all(), ReadOptions::default()).await {
            while let Ok(Some(_)) = reader.next().await {}
        }
        for (row, reverse) in [(0_i32, false), (9000, false), (9001, true), (30_000, true)] {
            let at: Clustering = [row.to_be_bytes().to_vec()].into_iter().collect();
            let slice = Slice { start: Position::before(at.clone()), end: Position::after(at) };
            let options = ReadOptions { reverse, ..ReadOptions::default() };
            let Ok(Some(mut reader)) = table.read(&key, &slice, options).await else { continue };
            while let Ok(Some(_)) = reader.next().await {}
        }
    }
}
