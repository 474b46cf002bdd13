//! Chunks of data, compressed: the writing side of [`super::chunk`], where the bytes are drawn.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

use crate::encode::Encode;
use crate::parts::compression_info::{Compression, Compressor};

/// Zstandard's level where none is asked for: Cassandra's.
const ZSTD_LEVEL: i32 = 3;

/// The option that has Zstandard's level.
pub(crate) const LEVEL: &str = "compression_level";

/// Compresses chunk after chunk; what an algorithm needs is made once.
pub(crate) struct Packer {
    compression: Compression,
    algorithm: Algorithm,
}

enum Algorithm {
    Lz4(CompressTable),
    Snappy(Box<snap::raw::Encoder>),
    Deflate(Box<flate2::Compress>),
    Zstd(zstd::bulk::Compressor<'static>),
    Noop,
}

impl Packer {
    /// For chunks compressed so. The level is taken from the options, as far as the algorithm has one here:
    /// LZ4 has but one.
    ///
    /// # Errors
    /// In words, if Zstandard does not have such a level.
    pub(crate) fn new(compression: Compression) -> Result<Packer, String> {
        let algorithm = match compression.compressor() {
            Compressor::Lz4 => Algorithm::Lz4(CompressTable::default()),
            Compressor::Snappy => Algorithm::Snappy(Box::new(snap::raw::Encoder::new())),
            Compressor::Deflate => {
                Algorithm::Deflate(Box::new(flate2::Compress::new(flate2::Compression::default(), true)))
            }
            Compressor::Zstd => {
                let packer = zstd::bulk::Compressor::new(zstd_level(&compression)?);
                Algorithm::Zstd(packer.map_err(|error| error.to_string())?)
            }
            Compressor::Noop => Algorithm::Noop,
        };
        Ok(Packer { compression, algorithm })
    }

    /// How many bytes of data make a chunk, save the last one.
    pub(crate) fn chunk_len(&self) -> usize {
        self.compression.chunk_len() as usize
    }

    /// How the chunks are compressed.
    pub(crate) fn compression(&self) -> &Compression {
        &self.compression
    }

    /// Appends a chunk with its checksum; how many bytes these are.
    ///
    /// What would not be compressed well enough is kept as it is. The last chunk of a file may then be shorter
    /// than the length from which on chunks are taken for raw, and is padded up to it with zeros.
    pub(crate) fn pack(&mut self, chunk: &[u8], to: &mut Vec<u8>) -> u64 {
        let start = to.len();
        self.algorithm.compress(chunk, to);
        let raw_from = self.compression.max_compressed_len() as usize;
        if to.len() - start >= raw_from {
            to.truncate(start);
            to.put(chunk);
            to.resize(start + chunk.len().max(raw_from), 0);
        }
        to.put_u32(crc32fast::hash(&to[start..]));
        (to.len() - start) as u64
    }
}

impl Algorithm {
    /// Appends the compressed chunk.
    fn compress(&mut self, chunk: &[u8], to: &mut Vec<u8>) {
        match self {
            Algorithm::Lz4(table) => {
                to.put_u32_le(chunk.len() as u32);
                within(to, get_maximum_output_size(chunk.len()), |room| {
                    compress_into_with_table(chunk, room, table).expect("the output has room")
                });
            }
            Algorithm::Snappy(encoder) => within(to, snap::raw::max_compress_len(chunk.len()), |room| {
                encoder.compress(chunk, room).expect("the output has room")
            }),
            Algorithm::Deflate(stream) => deflate(stream, chunk, to),
            Algorithm::Zstd(compressor) => within(to, zstd::zstd_safe::compress_bound(chunk.len()), |room| {
                compressor.compress_to_buffer(chunk, room).expect("the output has room")
            }),
            Algorithm::Noop => to.put(chunk),
        }
    }
}

/// Appends what `put` puts at the start of so much room, of which it says how many bytes it has used.
fn within(to: &mut Vec<u8>, room: usize, put: impl FnOnce(&mut [u8]) -> usize) {
    let start = to.len();
    to.resize(start + room, 0);
    let used = put(&mut to[start..]);
    to.truncate(start + used);
}

/// The level that Zstandard is to have.
///
/// # Errors
/// In words, if it does not have such a level.
pub(crate) fn zstd_level(compression: &Compression) -> Result<i32, String> {
    let option = compression.options().iter().find(|(name, _)| name == LEVEL);
    let Some((_, text)) = option else { return Ok(ZSTD_LEVEL) };
    let level = text.trim().parse().ok().filter(|level| zstd::compression_level_range().contains(level));
    level.ok_or_else(|| {
        format!("Zstandard has no {LEVEL} {text:?}: it has {:?}", zstd::compression_level_range())
    })
}

fn deflate(stream: &mut flate2::Compress, chunk: &[u8], packed: &mut Vec<u8>) {
    stream.reset();
    packed.reserve(chunk.len() + chunk.len() / 8 + 64);
    loop {
        let taken = stream.total_in() as usize;
        let status = stream.compress_vec(&chunk[taken..], packed, flate2::FlushCompress::Finish);
        match status.expect("memory is all that deflate needs") {
            flate2::Status::StreamEnd => return,
            _ => packed.reserve(chunk.len()),
        }
    }
}

impl std::fmt::Debug for Packer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packer").field("compression", &self.compression).finish_non_exhaustive()
    }
}
