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
//! Cassandra 3 at times writes chunks of no data behind the last one. They are not kept.
//!
//! In memory the offsets take 4.06 bytes a chunk:
//!
//! ```text
//! bases   u64 for each 128 chunks: the offset of the first of them
//! deltas  u32 for each chunk: its offset, counted from the base
//! ```

use std::ops::Range;
use std::path::Path;

use crate::decode::{Cursor, DecodeError};
use crate::{Error, Result, Version};

/// Chunks that share a base. A chunk takes at most 2^25 + 2^16 bytes on disk, so 127 of them fit 32 bits.
const GROUP: usize = 128;
/// The longest chunks that are read, in uncompressed bytes.
const MAX_CHUNK_LEN: u32 = 16 << 20;
/// The CRC32 behind each chunk, in bytes.
const CHUNK_CRC: u64 = 4;
/// The longest chunk of no data, in bytes on disk. LZ4 takes 9 of them, Zstd up to 17.
const MAX_EMPTY_CHUNK: u64 = 64;

/// What the chunks of Data.db are compressed with.
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

/// How Data.db is compressed, and where its chunks stand.
///
/// Invariants:
/// 1. The chunk length is a power of two, at most 16 MiB.
/// 2. There are as many chunks as the data's length needs.
/// 3. Each chunk has room for its CRC32 and takes at most twice the chunk length and 64 KiB; the last
///    one ends within Data.db.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompressionInfo {
    compressor: Compressor,
    options: Vec<(String, String)>,
    chunk_len: u32,
    max_compressed_len: u32,
    uncompressed_len: u64,
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
        let head = Head::decode(&mut cursor, version).map_err(|error| error.in_file(path, 0))?;
        let compressor =
            Compressor::parse(&head.class_name).ok_or_else(|| refused(path, &head.class_name))?;
        let offsets = decode_offsets(path, cursor, &head, data_file_len)?;
        Ok(CompressionInfo {
            compressor,
            options: head.options,
            chunk_len: head.chunk_len,
            max_compressed_len: head.max_compressed_len,
            uncompressed_len: head.uncompressed_len,
            offsets,
        })
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

    /// Whether a chunk of this many bytes on disk, without its CRC32, holds the data as it is. Zeros
    /// may follow the data of the last chunk, up to [`CompressionInfo::max_compressed_len`].
    pub fn is_raw(&self, packed_len: usize) -> bool {
        packed_len >= self.max_compressed_len as usize
    }

    /// The length of the data, uncompressed, in bytes.
    pub fn uncompressed_len(&self) -> u64 {
        self.uncompressed_len
    }

    /// How many chunks there are.
    pub fn chunk_count(&self) -> usize {
        self.offsets.deltas.len()
    }

    /// The chunk that holds a position of the uncompressed data.
    #[inline]
    pub fn chunk_of(&self, position: u64) -> usize {
        (position >> self.chunk_len.trailing_zeros()) as usize
    }

    /// Where a chunk stands in Data.db; its CRC32 is the last four bytes of the range.
    ///
    /// # Panics
    /// If there is no such chunk.
    #[inline]
    pub fn chunk(&self, index: usize) -> Range<u64> {
        let end =
            if index + 1 == self.chunk_count() { self.offsets.end } else { self.offsets.get(index + 1) };
        self.offsets.get(index)..end
    }

    /// What this holds in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let options =
            self.options.iter().map(|(name, value)| size_of_val(&(name, value)) + name.len() + value.len());
        size_of::<CompressionInfo>() + options.sum::<usize>() + self.offsets.memory_bytes()
    }
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
            if version.has_max_compressed_length() { max_compressed_len(cursor)? } else { i32::MAX as u32 };
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

fn decode_offsets(path: &Path, mut cursor: Cursor, head: &Head, data_file_len: u64) -> Result<Offsets> {
    let start = cursor.clone();
    let (mut offsets, count) = listed_offsets(&mut cursor, head).map_err(|error| error.in_file(path, 0))?;
    let last = offsets.previous;
    if count > 0 && data_file_len.checked_sub(last).is_none_or(|len| len < CHUNK_CRC) {
        let what = format!(
            "Data.db has {data_file_len} bytes, but chunks are listed up to offset {last}: it seems cut short"
        );
        return Err(Error::corrupt(path, start.position() as u64, what));
    }
    // The end of the file is the offset of the chunk that is not there any more.
    offsets.push(&start, count, data_file_len).map_err(|error| error.in_file(path, 0))?;
    Ok(offsets.finish())
}

/// The offsets that are listed, and how many they are.
fn listed_offsets(
    cursor: &mut Cursor,
    head: &Head,
) -> std::result::Result<(OffsetsBuilder, usize), DecodeError> {
    let start = cursor.clone();
    let count = cursor.count(8)?;
    let needed = head.uncompressed_len.div_ceil(u64::from(head.chunk_len));
    if (count as u64) < needed {
        return start.invalid("there are fewer chunks than the data's length needs");
    }
    let needed = needed as usize;
    let mut offsets = OffsetsBuilder::new(needed, head.chunk_len);
    for index in 0..count {
        let here = cursor.clone();
        offsets.push(&here, index, cursor.u64()?)?;
    }
    cursor.end()?;
    Ok((offsets, count))
}

struct OffsetsBuilder {
    needed: usize,
    longest: u64,
    bases: Vec<u64>,
    deltas: Vec<u32>,
    previous: u64,
    end: u64,
}

impl OffsetsBuilder {
    fn new(needed: usize, chunk_len: u32) -> OffsetsBuilder {
        OffsetsBuilder {
            needed,
            // No compressor makes data twice as long.
            longest: 2 * u64::from(chunk_len) + (64 << 10),
            bases: Vec::with_capacity(needed.div_ceil(GROUP)),
            deltas: Vec::with_capacity(needed),
            previous: 0,
            end: 0,
        }
    }

    fn push(&mut self, here: &Cursor, index: usize, offset: u64) -> std::result::Result<(), DecodeError> {
        // How long the chunk before this offset may be.
        let (least, most) = match index {
            0 => (0, 0),
            _ if index <= self.needed => (CHUNK_CRC, self.longest),
            _ => (CHUNK_CRC, MAX_EMPTY_CHUNK),
        };
        if !offset.checked_sub(self.previous).is_some_and(|len| (least..=most).contains(&len)) {
            return here.invalid("a chunk does not end a chunk's length after its start");
        }
        if index < self.needed {
            if index.is_multiple_of(GROUP) {
                self.bases.push(offset);
            }
            self.deltas.push((offset - self.bases[index / GROUP]) as u32);
        } else if index == self.needed {
            self.end = offset;
        }
        self.previous = offset;
        Ok(())
    }

    fn finish(self) -> Offsets {
        Offsets {
            bases: self.bases.into_boxed_slice(),
            deltas: self.deltas.into_boxed_slice(),
            end: self.end,
        }
    }
}

fn refused(path: &Path, class_name: &str) -> Error {
    let what = match class_name.rsplit('.').next() {
        Some("LZ4WithDictsCompressor" | "ZstdWithDictsCompressor") => {
            format!("it is compressed with {class_name}: shared dictionaries are not read yet")
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

    /// CompressionInfo.db of chunks at these offsets.
    fn encode(class_name: &str, version: Version, chunk_len: u32, len: u64, offsets: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as u16).to_be_bytes());
            bytes.extend(text.as_bytes());
        };
        text(&mut bytes, class_name);
        bytes.extend(1u32.to_be_bytes());
        text(&mut bytes, "level");
        text(&mut bytes, "3");
        bytes.extend(chunk_len.to_be_bytes());
        if version.has_max_compressed_length() {
            bytes.extend(3000u32.to_be_bytes());
        }
        bytes.extend(len.to_be_bytes());
        bytes.extend((offsets.len() as u32).to_be_bytes());
        bytes.extend(offsets.iter().flat_map(|offset| offset.to_be_bytes()));
        bytes
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
            let bytes = encode(
                "org.apache.cassandra.io.compress.ZstdCompressor",
                version,
                4096,
                9000,
                &[0, 100, 250],
            );
            let info = parse(&bytes, version, 300).unwrap();
            assert_eq!(
                (info.compressor(), info.chunk_len(), info.chunk_count()),
                (Compressor::Zstd, 4096, 3)
            );
            assert_eq!(info.options(), [("level".to_owned(), "3".to_owned())]);
            assert_eq!([info.chunk_of(0), info.chunk_of(4095), info.chunk_of(4096)], [0, 0, 1]);
            assert_eq!([info.chunk(0), info.chunk(1), info.chunk(2)], [0..100, 100..250, 250..300]);
            assert_eq!(info.is_raw(3000), version.has_max_compressed_length());
            assert!(!info.is_raw(2999));
        }
    }

    #[test]
    fn a_chunk_costs_at_most_five_bytes() {
        let offsets: Vec<u64> = (0..100_000).map(|i| i * (16 << 20)).collect();
        let bytes = encode("LZ4Compressor", Version::Me, 16 << 20, 100_000 << 24, &offsets);
        let info = parse(&bytes, Version::Me, 100_000 << 24).unwrap();
        assert!(info.offsets.memory_bytes() <= 5 * offsets.len(), "{} bytes", info.offsets.memory_bytes());
        assert!(info.memory_bytes() <= info.offsets.memory_bytes() + 256);
        for (index, offset) in offsets.into_iter().enumerate() {
            assert_eq!(info.chunk(index).start, offset);
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let with = |offsets: &[u64]| encode("LZ4Compressor", Version::Me, 4096, 9000, offsets);
        let me = Version::Me;
        let off = "a chunk does not end a chunk's length after its start";
        assert!(error_of(&with(&[0, 100]), me, 300).contains("fewer chunks"));
        assert!(error_of(&with(&[0, 100, 100]), me, 300).contains(off));
        assert!(error_of(&with(&[0, 100, 99]), me, 300).contains(&format!("offset 61: {off}")));
        assert!(error_of(&with(&[7, 100, 200]), me, 300).contains(&format!("offset 45: {off}")));
        let cut = "offset 41: Data.db has 200 bytes, but chunks are listed up to offset 200";
        assert!(error_of(&with(&[0, 100, 200]), me, 200).contains(cut));
        assert!(error_of(&with(&[0, 100, 1 << 40]), me, 1 << 41).contains(off));
        assert!(error_of(&encode("LZ4Compressor", me, 4095, 10, &[0]), me, 50).contains("power of two"));
        assert!(error_of(&encode("LZ4Compressor", me, 32 << 20, 10, &[0]), me, 50).contains("16 MiB"));
    }

    #[test]
    fn chunks_of_no_data_are_left_out() {
        let bytes = encode("LZ4Compressor", Version::Me, 4096, 9000, &[0, 100, 250, 300, 309]);
        let info = parse(&bytes, Version::Me, 318).unwrap();
        assert_eq!((info.chunk_count(), info.chunk(2)), (3, 250..300));
        assert!(parse(&bytes, Version::Me, 1000).is_err(), "the last chunk holds data");
        let none = parse(&encode("NoopCompressor", Version::Nb, 4096, 0, &[]), Version::Nb, 0).unwrap();
        assert_eq!(none.chunk_count(), 0);
    }

    #[test]
    fn unknown_compressors_are_named() {
        let me = Version::Me;
        let of = |name: &str| error_of(&encode(name, me, 4096, 10, &[0]), me, 50);
        assert!(of("com.example.Brotli").contains("\"com.example.Brotli\", which is not known"));
        assert!(of("ZstdWithDictsCompressor").contains("dictionaries are not read"));
    }

    #[test]
    fn broken_bytes_never_panic() {
        for version in [Version::Me, Version::Nb] {
            let sample = encode("LZ4Compressor", version, 4096, 9000, &[0, 100, 250]);
            survives_corruption(&sample, |bytes| {
                if let Ok(info) = parse(bytes, version, 300) {
                    (0..info.chunk_count()).for_each(|i| assert!(info.chunk(i).end <= 300));
                }
            });
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
