//! Compressed chunks with the right checksum, for every compressor.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use runtime::IoClass;
use siltstone_fuzz::with_files;
use sstable::Version;
use sstable::data::chunk::{Care, DataFile};
use sstable::parts::compression_info::CompressionInfo;

const COMPRESSORS: [&str; 5] =
    ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor", "NoopCompressor"];
const CHUNK_LEN: u32 = 4096;

fuzz_target!(|input: (u8, u16, u16, Vec<u8>)| {
    let (compressor, len, most, mut packed) = input;
    let len = u64::from(len) % u64::from(CHUNK_LEN) + 1;
    let crc = crc32fast::hash(&packed);
    packed.extend(crc.to_be_bytes());
    let info = info(COMPRESSORS[usize::from(compressor) % COMPRESSORS.len()], u32::from(most), len);
    let data_len = packed.len() as u64;
    let path = Path::new("/t/nb-1-big-Data.db");
    with_files(vec![(path.to_path_buf(), packed)], async |shard| {
        let Ok(info) = CompressionInfo::parse(Path::new("/t/i"), &info, Version::Nb, data_len) else {
            return;
        };
        let file = shard.disk().open(path, IoClass::new(1)).await.expect("the file is there");
        let data = DataFile::compressed(file, info);
        let part = data.read(&data.nothing_at(0), 0..len.div_ceil(3), Care::NoMore).await;
        if let Ok(stretch) = data.read(&data.nothing_at(0), 0..len, Care::Checked).await {
            assert_eq!(stretch.bytes.len() as u64, len);
            let part = part.expect("a chunk that can be unpacked can be in part");
            let found = &part.owner[part.bytes];
            assert!(found.len() as u64 >= len.div_ceil(3));
            assert!(stretch.owner[stretch.bytes].starts_with(found));
        }
    });
});

/// CompressionInfo.db of one chunk.
fn info(compressor: &str, most: u32, len: u64) -> Vec<u8> {
    let mut bytes = (compressor.len() as u16).to_be_bytes().to_vec();
    bytes.extend(compressor.as_bytes());
    bytes.extend(0u32.to_be_bytes());
    bytes.extend(CHUNK_LEN.to_be_bytes());
    bytes.extend(most.to_be_bytes());
    bytes.extend(len.to_be_bytes());
    bytes.extend(1u32.to_be_bytes());
    bytes.extend(0u64.to_be_bytes());
    bytes
}
