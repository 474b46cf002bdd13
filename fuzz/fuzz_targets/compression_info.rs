//! CompressionInfo.db of any version beside a Data.db of any length.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sstable::parts::compression_info::CompressionInfo;

fuzz_target!(|input: (u8, u64, Vec<u8>)| {
    let (number, data_len, bytes) = input;
    let version = siltstone_fuzz::version(number);
    let parsed = CompressionInfo::parse(Path::new("CompressionInfo.db"), &bytes, version, data_len);
    let Ok(info) = parsed else { return };
    let mut end = 0;
    for number in 0..info.chunk_count() {
        let chunk = info.chunk(number);
        assert!(chunk.start == end && chunk.start < chunk.end && chunk.end <= data_len);
        end = chunk.end;
    }
    let chunks = info.chunks();
    assert_eq!(chunks.count(), info.chunk_count() as u64);
    if chunks.uncompressed_len() > 0 {
        assert!(chunks.chunk_of(chunks.uncompressed_len() - 1) < chunks.count());
    }
});
