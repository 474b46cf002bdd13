//! CompressionInfo.db: how Data.db is compressed, and where its chunks stand.
//!
//! ```text
//! u16 length, name of the compressor's class     `LZ4Compressor`, at times with its package
//! u32 count, then each option: u16 length, name, u16 length, value
//! u32 chunk length, uncompressed: a power of two
//! n*+ u32 max compressed length: a chunk that would be as long or longer is kept raw
//! u64 length of the data, uncompressed
//! u32 count, then each chunk's u64 offset in Data.db; it ends where the next one begins
//! ```
//!
//! Where it compacts, Cassandra at times writes chunks of no data behind the last one. They are not kept,
//! nor written again.
//!
//! In memory the offsets take 4.06 bytes a chunk:
//!
//! ```text
//! bases   u64 for each 128 chunks: the offset of the first of them
//! deltas  u32 for each chunk: its offset, counted from the base
//! ```

use std::ops::{Range, RangeInclusive};
use std::path::Path;

use crate::decode::{Cursor, DecodeError};
use crate::encode::Encode;
use crate::{Error, Result, Version};

/// Chunks that share a base. A chunk takes at most 2^25 + 2^16 bytes on disk, so 127 of them fit 32 bits.
const GROUP: usize = 128;
/// The longest chunks that are read, in uncompressed bytes.
const MAX_CHUNK_LEN: u32 = 16 << 20;
/// The max compressed length of files in which no chunk is raw.
const NEVER_RAW: u32 = i32::MAX as u32;
/// The CRC32 behind each chunk, in bytes.
pub(crate) const CHUNK_CRC: u64 = 4;
/// The longest chunk of no data, in bytes on disk. LZ4 takes 9 of them, Zstd up to 17.
const MAX_EMPTY_CHUNK: u64 = 64;

/// What the chunks of Data.db are compressed with. Cassandra knows the last two from 4.0 on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Compressor {
    /// A length (u32 LE), then one LZ4 block.
    Lz4,
    /// One raw Snappy block.
    Snappy,
    /// One zlib stream.
    Deflate,
    /// One zstd frame.
    Zstd,
    /// The bytes as they are.
    Noop,
}

impl Compressor {
    /// The compressor of that Java class, with or without its package.
    pub fn parse(class_name: &str) -> Option<Compressor> {
        match class_name.rsplit('.').next() {
            Some("LZ4Compressor") => Some(Compressor::Lz4),
            Some("SnappyCompressor") => Some(Compressor::Snappy),
            Some("DeflateCompressor") => Some(Compressor::Deflate),
            Some("ZstdCompressor") => Some(Compressor::Zstd),
            Some("NoopCompressor") => Some(Compressor::Noop),
            _ => None,
        }
    }

    /// The name of the Java class, without its package.
    pub fn class_name(self) -> &'static str {
        match self {
            Compressor::Lz4 => "LZ4Compressor",
            Compressor::Snappy => "SnappyCompressor",
            Compressor::Deflate => "DeflateCompressor",
            Compressor::Zstd => "ZstdCompressor",
            Compressor::Noop => "NoopCompressor",
        }
    }
}

/// How the chunks of a Data.db are compressed.
///
/// Invariant: the chunk length is a power of two, at most 16 MiB.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compression {
    compressor: Compressor,
    options: Vec<(String, String)>,
    chunk_len: u32,
    max_compressed_len: u32,
}

impl Compression {
    /// What Cassandra does where the table tells no more than the compressor: chunks of 64 KiB, from 4.0
    /// on of 16 KiB, and none of them raw.
    pub fn new(compressor: Compressor, version: Version) -> Compression {
        let chunk_len = version.default_chunk_len();
        Compression { compressor, options: Vec::new(), chunk_len, max_compressed_len: NEVER_RAW }
    }

    /// The same with the compressor's options, such as `compression_level`, in the order of the file.
    pub fn with_options(self, options: Vec<(String, String)>) -> Compression {
        Compression { options, ..self }
    }

    /// The same with this many bytes of data in a chunk.
    ///
    /// # Errors
    /// Where that is no power of two, or above 16 MiB.
    pub fn with_chunk_len(self, chunk_len: u32) -> std::result::Result<Compression, CompressionError> {
        match chunk_len.is_power_of_two() && chunk_len <= MAX_CHUNK_LEN {
            true => Ok(Compression { chunk_len, ..self }),
            false => Err(CompressionError::ChunkLen(chunk_len)),
        }
    }

    /// The same with chunks kept raw that are not at least this many times smaller when compressed; with
    /// 0, none. The chunk length is given before.
    ///
    /// # Errors
    /// Where the ratio is below 1 but not 0, and for versions whose files have no raw chunks.
    pub fn with_min_ratio(
        self,
        ratio: f64,
        version: Version,
    ) -> std::result::Result<Compression, CompressionError> {
        if ratio == 0.0 {
            return Ok(Compression { max_compressed_len: NEVER_RAW, ..self });
        }
        if ratio.is_nan() || ratio < 1.0 {
            return Err(CompressionError::MinRatio(ratio));
        }
        if !version.has_max_compressed_length() {
            return Err(CompressionError::NeverRaw(version));
        }
        let max_compressed_len = (f64::from(self.chunk_len) / ratio).ceil() as u32;
        Ok(Compression { max_compressed_len, ..self })
    }

    /// What the chunks are compressed with.
    pub fn compressor(&self) -> Compressor {
        self.compressor
    }

    /// The compressor's options, by name. Reading needs none of them.
    pub fn options(&self) -> &[(String, String)] {
        &self.options
    }

    /// How many bytes of data a chunk holds, save the last one, which may hold fewer.
    pub fn chunk_len(&self) -> u32 {
        self.chunk_len
    }

    /// From how many bytes on, without its CRC32, a chunk is raw; `i32::MAX` where none is.
    pub fn max_compressed_len(&self) -> u32 {
        self.max_compressed_len
    }
}

/// Why chunks cannot be compressed that way.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum CompressionError {
    /// No length of a chunk.
    #[error("the length of a chunk must be a power of two and at most 16 MiB, but is {0} bytes")]
    ChunkLen(u32),
    /// No ratio of compression.
    #[error("min_compress_ratio must be 0 or at least 1, but is {0}")]
    MinRatio(f64),
    /// The version has no raw chunks.
    #[error("min_compress_ratio must be 0 in version {0}, which keeps no chunk uncompressed")]
    NeverRaw(Version),
}

/// Compressed data, save for where its chunks stand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunks {
    compression: Compression,
    uncompressed_len: u64,
}

impl Chunks {
    /// What stands before the offsets, of which `bytes` need not have any: how many of them there are, and at which byte they begin.
    pub(super) fn parse(path: &Path, bytes: &[u8], version: Version) -> Result<(Chunks, u32, usize)> {
        let mut cursor = Cursor::new(bytes);
        let chunks = Chunks::decode(path, &mut cursor, version)?;
        let count = cursor.u32().map_err(|error| error.in_file(path, 0))?;
        Ok((chunks, count, cursor.position()))
    }

    fn decode(path: &Path, cursor: &mut Cursor, version: Version) -> Result<Chunks> {
        let head = Head::decode(cursor, version).map_err(|error| error.in_file(path, 0))?;
        let compressor =
            Compressor::parse(&head.class_name).ok_or_else(|| refused(path, &head.class_name))?;
        let (chunk_len, max_compressed_len) = (head.chunk_len, head.max_compressed_len);
        let compression = Compression { compressor, options: head.options, chunk_len, max_compressed_len };
        Ok(Chunks { compression, uncompressed_len: head.uncompressed_len })
    }

    /// How they are compressed.
    pub fn compression(&self) -> &Compression {
        &self.compression
    }

    /// What they are compressed with.
    pub fn compressor(&self) -> Compressor {
        self.compression.compressor
    }

    /// The compressor's options, by name. Reading needs none of them.
    pub fn options(&self) -> &[(String, String)] {
        &self.compression.options
    }

    /// How many bytes of data a chunk holds, save the last one, which may hold fewer.
    pub fn chunk_len(&self) -> u32 {
        self.compression.chunk_len
    }

    /// From how many bytes on, without its CRC32, a chunk is raw; `i32::MAX` where none is.
    pub fn max_compressed_len(&self) -> u32 {
        self.compression.max_compressed_len
    }

    /// Whether a chunk of this many bytes on disk, without its CRC32, holds the data as it is. Zeros
    /// may follow the data of the last chunk, up to [`Chunks::max_compressed_len`].
    pub fn is_raw(&self, packed_len: usize) -> bool {
        packed_len >= self.compression.max_compressed_len as usize
    }

    /// The length of the data, uncompressed, in bytes.
    pub fn uncompressed_len(&self) -> u64 {
        self.uncompressed_len
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.uncompressed_len.div_ceil(u64::from(self.compression.chunk_len))
    }

    /// The chunk that holds a position of the uncompressed data.
    #[inline]
    pub fn chunk_of(&self, position: u64) -> u64 {
        position >> self.compression.chunk_len.trailing_zeros()
    }

    /// How many bytes one may take on disk, its CRC32 included: no compressor makes data twice as long.
    pub(super) fn lengths_on_disk(&self) -> RangeInclusive<u64> {
        chunk_lengths(self.compression.chunk_len)
    }

    /// What this holds in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let of_option = |option: &(String, String)| size_of_val(option) + option.0.len() + option.1.len();
        size_of::<Chunks>() + self.compression.options.iter().map(of_option).sum::<usize>()
    }
}

/// How Data.db is compressed, and where its chunks stand.
///
/// Invariants:
/// 1. There are as many chunks as the data's length needs.
/// 2. Each chunk has room for its CRC32 and takes at most twice the chunk length and 64 KiB; the last
///    one ends within Data.db.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompressionInfo {
    chunks: Chunks,
    offsets: Offsets,
}

impl CompressionInfo {
    /// Decodes CompressionInfo.db. `data_file_len` is the length of Data.db on disk, in bytes.
    ///
    /// # Errors
    /// Where the bytes contradict the format or do not fit that Data.db; for compressors that are not
    /// known.
    pub fn parse(path: &Path, bytes: &[u8], version: Version, data_file_len: u64) -> Result<CompressionInfo> {
        let mut cursor = Cursor::new(bytes);
        let chunks = Chunks::decode(path, &mut cursor, version)?;
        let offsets = decode_offsets(path, cursor, &chunks, data_file_len)?;
        Ok(CompressionInfo { chunks, offsets })
    }

    /// The bytes of CompressionInfo.db.
    ///
    /// # Panics
    /// If chunks may be raw, but not in that version.
    pub fn encode(&self, version: Version) -> Vec<u8> {
        let Compression { compressor, options, chunk_len, max_compressed_len } = &self.chunks.compression;
        let mut bytes = Vec::with_capacity(64 + 8 * self.chunk_count());
        bytes.put_short_bytes(compressor.class_name().as_bytes());
        bytes.put_u32(options.len() as u32);
        for (name, value) in options {
            bytes.put_short_bytes(name.as_bytes());
            bytes.put_short_bytes(value.as_bytes());
        }
        bytes.put_u32(*chunk_len);
        if version.has_max_compressed_length() {
            bytes.put_u32(*max_compressed_len);
        } else {
            assert_eq!(*max_compressed_len, NEVER_RAW, "raw chunks could not be told from others");
        }
        bytes.put_u64(self.chunks.uncompressed_len);
        bytes.put_u32(self.chunk_count() as u32);
        (0..self.chunk_count()).for_each(|index| bytes.put_u64(self.offsets.get(index)));
        bytes
    }

    /// All but where they stand.
    pub fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// What Statistics.db tells of a new file: the length of its chunks on disk without their CRC32 over
    /// that of the data. `None` where there is no data.
    pub fn ratio(&self) -> Option<f64> {
        let packed = self.offsets.end - CHUNK_CRC * self.chunk_count() as u64;
        let len = self.chunks.uncompressed_len;
        (len > 0).then(|| packed as f64 / len as f64)
    }

    /// How many chunks there are.
    pub fn chunk_count(&self) -> usize {
        self.offsets.deltas.len()
    }

    /// Where a chunk stands in Data.db; its CRC32 is the last four bytes of the range.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[inline]
    pub fn chunk(&self, index: usize) -> Range<u64> {
        self.offsets.get(index)..self.end_of(index)
    }

    fn end_of(&self, index: usize) -> u64 {
        if index + 1 == self.chunk_count() { self.offsets.end } else { self.offsets.get(index + 1) }
    }

    /// What this holds in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.chunks.memory_bytes() + size_of::<Offsets>() + self.offsets.memory_bytes()
    }
}

/// Takes down the chunks of a new Data.db as they are written.
#[derive(Clone, Debug)]
pub struct CompressionInfoBuilder {
    compression: Compression,
    offsets: OffsetsBuilder,
    end: u64,
}

impl CompressionInfoBuilder {
    /// For a Data.db that has nothing in it yet.
    pub fn new(compression: Compression) -> CompressionInfoBuilder {
        CompressionInfoBuilder { compression, offsets: OffsetsBuilder::default(), end: 0 }
    }

    /// The next chunk, which takes that many bytes on disk, its CRC32 included.
    ///
    /// # Panics
    /// If no chunk is as short or as long.
    pub fn push(&mut self, disk_len: u64) {
        let lengths = chunk_lengths(self.compression.chunk_len);
        assert!(lengths.contains(&disk_len), "a chunk of {disk_len} bytes is not within {lengths:?}");
        self.offsets.push(self.end);
        self.end += disk_len;
    }

    /// The chunks so far, which hold that many bytes of data.
    ///
    /// # Panics
    /// If that data needs more chunks or fewer.
    pub fn finish(self, uncompressed_len: u64) -> CompressionInfo {
        let chunks = Chunks { compression: self.compression, uncompressed_len };
        let count = self.offsets.deltas.len();
        assert_eq!(chunks.count(), count as u64, "chunks of {uncompressed_len} bytes of data");
        CompressionInfo { chunks, offsets: self.offsets.finish(self.end) }
    }
}

/// How many bytes a chunk may take on disk: no compressor makes data twice as long.
fn chunk_lengths(chunk_len: u32) -> RangeInclusive<u64> {
    CHUNK_CRC..=2 * u64::from(chunk_len) + (64 << 10)
}

/// Offsets that ascend, packed.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Offsets {
    bases: Box<[u64]>,
    deltas: Box<[u32]>,
    /// Where the last chunk ends.
    end: u64,
}

impl Offsets {
    #[inline]
    fn get(&self, index: usize) -> u64 {
        self.bases[index / GROUP] + u64::from(self.deltas[index])
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.bases) + size_of_val(&*self.deltas)
    }
}

/// What stands before the offsets.
struct Head {
    class_name: String,
    options: Vec<(String, String)>,
    chunk_len: u32,
    max_compressed_len: u32,
    uncompressed_len: u64,
}

impl Head {
    fn decode(cursor: &mut Cursor, version: Version) -> std::result::Result<Head, DecodeError> {
        let class_name = string(cursor)?;
        let options = (0..cursor.count(4)?)
            .map(|_| Ok((string(cursor)?, string(cursor)?)))
            .collect::<std::result::Result<Vec<_>, DecodeError>>()?;
        let chunk_len = chunk_len(cursor)?;
        let max_compressed_len =
            if version.has_max_compressed_length() { max_compressed_len(cursor)? } else { NEVER_RAW };
        let uncompressed_len = cursor.u64()?;
        Ok(Head { class_name, options, chunk_len, max_compressed_len, uncompressed_len })
    }
}

fn string(cursor: &mut Cursor) -> std::result::Result<String, DecodeError> {
    let start = cursor.clone();
    let bytes = cursor.short_bytes()?;
    std::str::from_utf8(bytes).map(str::to_owned).or_else(|_| start.invalid("a name is not UTF-8"))
}

fn chunk_len(cursor: &mut Cursor) -> std::result::Result<u32, DecodeError> {
    let start = cursor.clone();
    match cursor.u32()? {
        len if !len.is_power_of_two() => start.invalid("the chunk length is not a power of two"),
        len if len > MAX_CHUNK_LEN => start.invalid("the chunk length is above 16 MiB"),
        len => Ok(len),
    }
}

fn max_compressed_len(cursor: &mut Cursor) -> std::result::Result<u32, DecodeError> {
    let start = cursor.clone();
    match cursor.u32()? {
        len if len > i32::MAX as u32 => start.invalid("the max compressed length is negative"),
        len => Ok(len),
    }
}

fn decode_offsets(path: &Path, mut cursor: Cursor, chunks: &Chunks, data_file_len: u64) -> Result<Offsets> {
    let start = cursor.clone();
    let (mut offsets, count) = listed_offsets(&mut cursor, chunks).map_err(|error| error.in_file(path, 0))?;
    let last = offsets.previous;
    if count > 0 && data_file_len.checked_sub(last).is_none_or(|len| len < CHUNK_CRC) {
        let what = format!(
            "Data.db has {data_file_len} bytes, but chunks are listed up to offset {last}: one of the two files is cut short, Data.db most likely"
        );
        return Err(Error::corrupt(path, start.position() as u64, what));
    }
    // The end of the file is the offset of the chunk that is not there any more.
    offsets.push(&start, count, data_file_len).map_err(|error| error.in_file(path, 0))?;
    Ok(offsets.offsets.finish(offsets.end))
}

/// The offsets that are listed, and how many they are.
fn listed_offsets(
    cursor: &mut Cursor,
    chunks: &Chunks,
) -> std::result::Result<(ListedOffsets, usize), DecodeError> {
    let start = cursor.clone();
    let count = cursor.count(8)?;
    let needed = chunks.count();
    if (count as u64) < needed {
        return start.invalid("there are fewer chunks than the data's length needs");
    }
    let needed = needed as usize;
    let mut offsets = ListedOffsets::new(needed, chunks.chunk_len());
    for index in 0..count {
        let here = cursor.clone();
        offsets.push(&here, index, cursor.u64()?)?;
    }
    cursor.end()?;
    Ok((offsets, count))
}

/// The offsets of a file, checked one by one.
struct ListedOffsets {
    needed: usize,
    lengths: RangeInclusive<u64>,
    offsets: OffsetsBuilder,
    previous: u64,
    end: u64,
}

impl ListedOffsets {
    fn new(needed: usize, chunk_len: u32) -> ListedOffsets {
        let offsets = OffsetsBuilder {
            bases: Vec::with_capacity(needed.div_ceil(GROUP)),
            deltas: Vec::with_capacity(needed),
        };
        ListedOffsets { needed, lengths: chunk_lengths(chunk_len), offsets, previous: 0, end: 0 }
    }

    fn push(&mut self, here: &Cursor, index: usize, offset: u64) -> std::result::Result<(), DecodeError> {
        // How long the chunk before this offset may be.
        let lengths = match index {
            0 => 0..=0,
            _ if index <= self.needed => self.lengths.clone(),
            _ => CHUNK_CRC..=MAX_EMPTY_CHUNK,
        };
        if !offset.checked_sub(self.previous).is_some_and(|len| lengths.contains(&len)) {
            return here.invalid("a chunk does not end a chunk's length after its start");
        }
        if index < self.needed {
            self.offsets.push(offset);
        } else if index == self.needed {
            self.end = offset;
        }
        self.previous = offset;
        Ok(())
    }
}

#[derive(Clone, Debug, Default)]
struct OffsetsBuilder {
    bases: Vec<u64>,
    deltas: Vec<u32>,
}

impl OffsetsBuilder {
    fn push(&mut self, offset: u64) {
        let index = self.deltas.len();
        if index.is_multiple_of(GROUP) {
            self.bases.push(offset);
        }
        self.deltas.push((offset - self.bases[index / GROUP]) as u32);
    }

    fn finish(self, end: u64) -> Offsets {
        Offsets { bases: self.bases.into_boxed_slice(), deltas: self.deltas.into_boxed_slice(), end }
    }
}

fn refused(path: &Path, class_name: &str) -> Error {
    let what = match class_name.rsplit('.').next() {
        Some("LZ4WithDictsCompressor" | "ZstdWithDictsCompressor") => {
            format!("it is compressed with {class_name}: shared dictionaries are not read")
        }
        _ => format!("it is compressed with {class_name:?}, which is not known"),
    };
    Error::unsupported(path, what)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parts::samples::{self, survives_corruption};

    /// CompressionInfo.db of chunks at these offsets, be they sound or not.
    fn encode(
        compressor: Compressor,
        version: Version,
        chunk_len: u32,
        len: u64,
        offsets: &[u64],
    ) -> Vec<u8> {
        let max_compressed_len = if version.has_max_compressed_length() { 3000 } else { NEVER_RAW };
        let options = vec![("level".to_owned(), "3".to_owned())];
        let compression = Compression { compressor, options, chunk_len, max_compressed_len };
        let mut builder = OffsetsBuilder::default();
        offsets.iter().for_each(|&offset| builder.push(offset));
        let chunks = Chunks { compression, uncompressed_len: len };
        let info = CompressionInfo { chunks, offsets: builder.finish(0) };
        info.encode(version)
    }

    /// The same bytes with another compressor's class.
    fn renamed(bytes: &[u8], class_name: &str) -> Vec<u8> {
        let mut renamed = Vec::new();
        renamed.put_short_bytes(class_name.as_bytes());
        renamed.put(&bytes[2 + usize::from(bytes[1])..]);
        renamed
    }

    fn parse(bytes: &[u8], version: Version, data_file_len: u64) -> Result<CompressionInfo> {
        CompressionInfo::parse(Path::new("nb-1-big-CompressionInfo.db"), bytes, version, data_file_len)
    }

    fn error_of(bytes: &[u8], version: Version, data_file_len: u64) -> String {
        parse(bytes, version, data_file_len).unwrap_err().to_string()
    }

    #[test]
    fn chunks_end_where_the_next_begin() {
        for version in Version::ALL {
            let bytes = encode(Compressor::Lz4, version, 4096, 9000, &[0, 100, 250]);
            let bytes = renamed(&bytes, "org.apache.cassandra.io.compress.ZstdCompressor");
            let info = parse(&bytes, version, 300).unwrap();
            assert_eq!(
                (info.chunks.compressor(), info.chunks.chunk_len(), info.chunk_count()),
                (Compressor::Zstd, 4096, 3)
            );
            assert_eq!(info.chunks.options(), [("level".to_owned(), "3".to_owned())]);
            assert_eq!([0, 4095, 4096].map(|position| info.chunks.chunk_of(position)), [0, 0, 1]);
            assert_eq!([info.chunk(0), info.chunk(1), info.chunk(2)], [0..100, 100..250, 250..300]);
            assert_eq!(info.chunks.is_raw(3000), version.has_max_compressed_length());
            assert!(!info.chunks.is_raw(2999));
        }
    }

    #[test]
    fn a_chunk_costs_at_most_five_bytes() {
        let offsets: Vec<u64> = (0..100_000).map(|i| i * (16 << 20)).collect();
        let bytes = encode(Compressor::Lz4, Version::Me, 16 << 20, 100_000 << 24, &offsets);
        let info = parse(&bytes, Version::Me, 100_000 << 24).unwrap();
        assert!(info.offsets.memory_bytes() <= 5 * offsets.len(), "{} bytes", info.offsets.memory_bytes());
        assert!(info.memory_bytes() <= info.offsets.memory_bytes() + 256);
        for (index, offset) in offsets.into_iter().enumerate() {
            assert_eq!(info.chunk(index).start, offset);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |offsets: &[u64]| encode(Compressor::Lz4, Version::Me, 4096, 9000, offsets);
        let me = Version::Me;
        let off = "a chunk does not end a chunk's length after its start";
        assert!(error_of(&with(&[0, 100]), me, 300).contains("fewer chunks"));
        assert!(error_of(&with(&[0, 100, 100]), me, 300).contains(off));
        assert!(error_of(&with(&[0, 100, 99]), me, 300).contains(&format!("offset 61: {off}")));
        assert!(error_of(&with(&[7, 100, 200]), me, 300).contains(&format!("offset 45: {off}")));
        let cut = "offset 41: Data.db has 200 bytes, but chunks are listed up to offset 200";
        assert!(error_of(&with(&[0, 100, 200]), me, 200).contains(cut));
        let mut far = with(&[0, 100, 200]);
        far.splice(61.., (1_u64 << 40).to_be_bytes());
        assert!(error_of(&far, me, 1 << 41).contains(off));
        assert!(error_of(&encode(Compressor::Lz4, me, 4095, 10, &[0]), me, 50).contains("power of two"));
        assert!(error_of(&encode(Compressor::Lz4, me, 32 << 20, 10, &[0]), me, 50).contains("16 MiB"));
    }

    #[test]
    fn chunks_of_no_data_are_left_out() {
        let bytes = encode(Compressor::Lz4, Version::Me, 4096, 9000, &[0, 100, 250, 300, 309]);
        let info = parse(&bytes, Version::Me, 318).unwrap();
        assert_eq!((info.chunk_count(), info.chunk(2)), (3, 250..300));
        assert!(parse(&bytes, Version::Me, 1000).is_err(), "the last chunk holds data");
        let none = parse(&encode(Compressor::Noop, Version::Nb, 4096, 0, &[]), Version::Nb, 0).unwrap();
        assert_eq!(none.chunk_count(), 0);
    }

    #[test]
    fn unknown_compressors_are_named() {
        let me = Version::Me;
        let of = |name: &str| error_of(&renamed(&encode(Compressor::Lz4, me, 4096, 10, &[0]), name), me, 50);
        assert!(of("com.example.Brotli").contains("\"com.example.Brotli\", which is not known"));
        assert!(of("ZstdWithDictsCompressor").contains("dictionaries are not read"));
    }

    #[test]
    fn broken_bytes_never_panic() {
        for version in [Version::Me, Version::Nb] {
            let sample = encode(Compressor::Lz4, version, 4096, 9000, &[0, 100, 250]);
            survives_corruption(&sample, |bytes| {
                if let Ok(info) = parse(bytes, version, 300) {
                    (0..info.chunk_count()).for_each(|i| assert!(info.chunk(i).end <= 300));
                }
            });
        }
    }

    #[test]
    fn chunks_are_taken_down_as_they_are_written() {
        let compression = Compression::new(Compressor::Snappy, Version::Nb);
        let compression = compression.with_chunk_len(4096).unwrap().with_min_ratio(1.1, Version::Nb).unwrap();
        assert_eq!(compression.max_compressed_len(), 3724);
        let mut builder = CompressionInfoBuilder::new(compression);
        [100, 150, 50].iter().for_each(|&len| builder.push(len));
        let info = builder.finish(9000);
        assert_eq!([info.chunk(0), info.chunk(1), info.chunk(2)], [0..100, 100..250, 250..300]);
        assert_eq!(parse(&info.encode(Version::Nb), Version::Nb, 300).unwrap(), info);
        assert_eq!(info.ratio(), Some(288.0 / 9000.0));
    }

    #[test]
    fn compression_that_cannot_be_is_refused() {
        let with = |version| Compression::new(Compressor::Lz4, version);
        assert_eq!([with(Version::Me), with(Version::Na)].map(|new| new.chunk_len()), [65536, 16384]);
        for len in [0, 4095, 32 << 20] {
            assert_eq!(with(Version::Nb).with_chunk_len(len), Err(CompressionError::ChunkLen(len)));
        }
        for ratio in [0.5, -1.0, f64::NEG_INFINITY] {
            let error = with(Version::Nb).with_min_ratio(ratio, Version::Nb).unwrap_err();
            assert_eq!(error, CompressionError::MinRatio(ratio));
        }
        let never = with(Version::Me).with_min_ratio(0.0, Version::Me).unwrap();
        assert_eq!(never.max_compressed_len(), NEVER_RAW);
        let error = with(Version::Me).with_min_ratio(1.1, Version::Me).unwrap_err().to_string();
        assert!(error.contains("version me, which keeps no chunk uncompressed"), "{error}");
    }

    #[test]
    #[should_panic(expected = "raw chunks could not be told")]
    fn old_versions_have_no_raw_chunks() {
        let compression = Compression::new(Compressor::Lz4, Version::Nb);
        let compression = compression.with_min_ratio(2.0, Version::Nb).unwrap();
        CompressionInfoBuilder::new(compression).finish(0).encode(Version::Me);
    }

    /// Save for the chunk of no data behind those of compacted files, which is not kept.
    #[test]
    fn real_files_come_back() {
        for file in samples::real_files("CompressionInfo.db") {
            let data_len = std::fs::metadata(file.sibling_path("Data.db")).unwrap().len();
            let info = CompressionInfo::parse(&file.path, &file.bytes, file.version, data_len).unwrap();
            let name = file.path.display().to_string();
            let mut builder = CompressionInfoBuilder::new(info.chunks.compression.clone());
            for chunk in (0..info.chunk_count()).map(|index| info.chunk(index)) {
                builder.push(chunk.end - chunk.start);
            }
            assert_eq!(builder.finish(info.chunks.uncompressed_len), info, "{name}");
            let bytes = info.encode(file.version);
            if name.contains("/compacted/") && bytes.len() + 8 == file.bytes.len() {
                assert_eq!(parse(&bytes, file.version, info.offsets.end).unwrap(), info, "{name}");
                continue;
            }
            assert_eq!(bytes, file.bytes, "{name}");
            if !file.is_scyllas() {
                let told = samples::statistics(&file).stats.compression_ratio;
                assert_eq!(info.ratio(), Some(told), "{name}");
            }
        }
    }

    #[test]
    fn real_files_cut_their_data_into_sound_chunks() {
        for file in samples::real_files("CompressionInfo.db") {
            let data = file.sibling("Data.db").unwrap();
            let len = data.len() as u64;
            let info = CompressionInfo::parse(&file.path, &file.bytes, file.version, len).unwrap();
            for index in 0..info.chunk_count() {
                let range = info.chunk(index);
                let chunk = &data[range.start as usize..range.end as usize];
                let (packed, crc) = chunk.split_last_chunk::<4>().unwrap();
                assert_eq!(crc32fast::hash(packed), u32::from_be_bytes(*crc), "{}", file.path.display());
            }
        }
    }

    proptest! {
        #[test]
        fn never_panics(tail: Vec<u8>, data_file_len: u64) {
            drop(parse(&tail, Version::Nb, data_file_len));
            let bytes = [&[0, 1, b'x', 0, 0, 0, 0, 0, 0, 16, 0][..], &tail].concat();
            drop(parse(&bytes, Version::Nb, data_file_len));
        }
    }
}
