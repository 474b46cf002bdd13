//! Index.db of a table with index blocks: entries, promoted indexes, and reads that follow them.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use runtime::Cache;
use siltstone_fuzz::{TABLES, read_everything, with_files};
use sstable::{OpenOptions, SSTable};

fuzz_target!(|input: (bool, Vec<u8>)| {
    let (of_oa, bytes) = input;
    let table = &TABLES[if of_oa { 2 } else { 0 }];
    let path = if of_oa { Path::new("/t/oa-2-big-Index.db") } else { Path::new("/t/me-2-big-Index.db") };
    with_files(table.with("Index.db", &bytes), async |shard| {
        let options = OpenOptions::new(Cache::new(1 << 20));
        if let Ok(table) = SSTable::open(shard.disk(), path, &options).await {
            let mut entries = table.entries();
            while let Ok(Some(entry)) = entries.next().await {
                let _ = table.blocks(&entry).await;
            }
        }
        read_everything(&shard, path).await;
    });
});
