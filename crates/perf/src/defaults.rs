//! What ScyllaDB does where a table says nothing else: the published programs ran on that.

use sstable::parts::compression_info::{Compression, Compressor};
use sstable::{Version, WriteOptions};

/// Bytes of a chunk.
pub(crate) const CHUNK: u32 = 4 << 10;

/// How SSTables are written: LZ4 in chunks of 4 KiB.
pub(crate) fn write_options(version: Version) -> WriteOptions {
    let compression = Compression::new(Compressor::Lz4, version);
    let compression = compression.with_chunk_len(CHUNK).expect("4 KiB is a power of two");
    WriteOptions { compression: Some(compression), ..WriteOptions::new(version) }
}
