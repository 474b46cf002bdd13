//! The codec of rows: Data.db that is not compressed, without checksums in the way, for several tables.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use model::FragmentReader;
use runtime::Cache;
use siltstone_fuzz::{TABLES, with_files};
use sstable::{OpenOptions, SSTable};

/// The names of the tables' files.
const NAMES: [&str; 4] = ["me-2-big", "mc-2-big", "oa-2-big", "nb-1-big"];

fuzz_target!(|input: (u8, u16, Vec<u8>)| {
    let (number, buffer, bytes) = input;
    let number = usize::from(number) % TABLES.len();
    let mut files = TABLES[number].with("Data.db", &bytes);
    let left_out = ["CompressionInfo.db", "CRC.db", "Digest.crc32", "TOC.txt"];
    files.retain(|(path, _)| !left_out.iter().any(|name| path.to_string_lossy().ends_with(name)));
    with_files(files, async |shard| {
        let path = format!("/t/{}-Data.db", NAMES[number]);
        let options = OpenOptions { read_buffer: buffer.into(), ..OpenOptions::new(Cache::new(1 << 20)) };
        let Ok(table) = SSTable::open(shard.disk(), Path::new(&path), &options).await else { return };
        let mut scan = table.scan();
        for _ in 0..10 * bytes.len() + 10 {
            match scan.next().await {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return,
            }
        }
        panic!("the scan does not come to an end");
    });
});
