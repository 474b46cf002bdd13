//! CRC.db: the checksums of an uncompressed Data.db, stretch by stretch.
//!
//! ```text
//! u32 stretch length in bytes
//! u32 CRC32 of the first stretch, u32 CRC32 of the second, …; the last stretch may be shorter
//! ```
//!
//! At the end of a compaction Cassandra writes its buffer once more, empty: then the checksum of no data follows, which is 0.

use std::path::Path;

use crate::decode::{Cursor, DecodeError};
use crate::encode::Encode;
use crate::parts::digest::Digest;
use crate::{Error, Result, Version};

/// How many bytes of a new Data.db a checksum is of: Cassandra's choice.
pub const CHUNK_LEN: u32 = 64 << 10;

/// The CRC32 of no bytes.
pub(super) const OF_NOTHING: u32 = 0;

/// Bytes before the first checksum, and of each.
pub(super) const HEAD: u64 = 4;
pub(super) const SUM: u64 = 4;

/// The checksums of an uncompressed Data.db.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Crc {
    chunk_len: u32,
    checksums: Box<[u32]>,
}

impl Crc {
    /// What this holds in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Crc>() + size_of_val(&*self.checksums)
    }

    /// Decodes CRC.db.
    ///
    /// # Errors
    /// Where the bytes contradict the format.
    pub fn parse(path: &Path, bytes: &[u8], _version: Version) -> Result<Crc> {
        Crc::decode(&mut Cursor::new(bytes)).map_err(|error| error.in_file(path, 0))
    }

    /// The bytes of CRC.db.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(4 + 4 * self.checksums.len());
        bytes.put_u32(self.chunk_len);
        self.checksums.iter().for_each(|&checksum| bytes.put_u32(checksum));
        bytes
    }

    /// How many bytes of Data.db a checksum is of. Never 0.
    pub fn chunk_len(&self) -> u32 {
        self.chunk_len
    }

    /// How many checksums there are.
    pub fn len(&self) -> usize {
        self.checksums.len()
    }

    /// Whether there are no checksums, as there is no data.
    pub fn is_empty(&self) -> bool {
        self.checksums.is_empty()
    }

    /// The CRC32 of a stretch, counted from 0.
    pub fn get(&self, chunk: usize) -> Option<u32> {
        self.checksums.get(chunk).copied()
    }

    /// The checksums of a Data.db of this many bytes. Cassandra's compactions add one of nothing at the end, which
    /// goes.
    ///
    /// # Errors
    /// Where there are more or fewer than one for each stretch.
    pub fn of_data(self, path: &Path, data_len: u64) -> Result<Crc> {
        let wanted = data_len.div_ceil(u64::from(self.chunk_len));
        if wanted == self.len() as u64 {
            return Ok(self);
        }
        if let Some((&OF_NOTHING, checksums)) = self.checksums.split_last()
            && checksums.len() as u64 == wanted
        {
            return Ok(Crc { checksums: checksums.into(), ..self });
        }
        Err(wrong_count(path, data_len, wanted, self.len() as u64))
    }

    fn decode(cursor: &mut Cursor) -> std::result::Result<Crc, DecodeError> {
        let start = cursor.clone();
        let chunk_len = cursor.u32()?;
        if let Err(what) = check_chunk_len(chunk_len) {
            return start.invalid(what);
        }
        let mut checksums = Vec::with_capacity(cursor.remaining() / 4);
        while cursor.remaining() > 0 {
            checksums.push(cursor.u32()?);
        }
        Ok(Crc { chunk_len, checksums: checksums.into_boxed_slice() })
    }
}

/// What is wrong with the length of a stretch, if anything is.
pub(super) fn check_chunk_len(chunk_len: u32) -> std::result::Result<(), &'static str> {
    let is_positive = (1..=i32::MAX as u32).contains(&chunk_len);
    if is_positive { Ok(()) } else { Err("the length of a stretch is not a positive number") }
}

/// There are not as many checksums as the data needs.
pub(super) fn wrong_count(path: &Path, data_len: u64, wanted: u64, found: u64) -> Error {
    let what = format!(
        "Data.db has {data_len} bytes, which need {wanted} checksums, but there are {found}: \
         one of the two files is not whole"
    );
    Error::corrupt(path, HEAD, what)
}

/// Works out the checksums of a new Data.db as its bytes go by, [`CHUNK_LEN`] of them at a time. That of all of them follows from
/// these, so that each byte is looked at once.
#[derive(Clone, Debug, Default)]
pub struct CrcBuilder {
    checksums: Vec<u32>,
    /// Of all whole stretches.
    all: crc32fast::Hasher,
    hasher: crc32fast::Hasher,
    /// How many bytes the hasher has of a stretch that is not whole.
    pending: usize,
}

impl CrcBuilder {
    /// The next bytes of Data.db, any number of them.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_LEN as usize - self.pending));
            self.hasher.update(now);
            self.pending += now.len();
            if self.pending == CHUNK_LEN as usize {
                self.seal();
            }
            bytes = later;
        }
    }

    /// The checksums of all bytes so far, and the one that Digest.crc32 has.
    pub fn finish(mut self) -> (Crc, Digest) {
        if self.pending > 0 {
            self.seal();
        }
        let crc = Crc { chunk_len: CHUNK_LEN, checksums: self.checksums.into_boxed_slice() };
        (crc, Digest(self.all.finalize()))
    }

    fn seal(&mut self) {
        let hasher = std::mem::take(&mut self.hasher);
        self.all.combine(&hasher);
        self.checksums.push(hasher.finalize());
        self.pending = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parts::samples::{self, survives_corruption};

    fn parse(bytes: &[u8]) -> Result<Crc> {
        Crc::parse(Path::new("nb-1-big-CRC.db"), bytes, Version::Nb)
    }

    #[test]
    fn checksums_follow_the_length() {
        let crc = parse(&[0, 1, 0, 0, 0, 0, 0, 7, 0xff, 0, 0, 1]).unwrap();
        assert_eq!((crc.chunk_len(), crc.len()), (65536, 2));
        assert_eq!([crc.get(0), crc.get(1), crc.get(2)], [Some(7), Some(0xff00_0001), None]);
        assert_eq!(crc.clone().of_data(Path::new("x"), 65537).unwrap(), crc);
        let error = crc.of_data(Path::new("x"), 65536).unwrap_err().to_string();
        assert!(error.contains("65536 bytes, which need 1 checksums, but there are 2"), "{error}");
    }

    #[test]
    fn a_checksum_of_nothing_says_nothing() {
        let with = |last: u32| Crc { chunk_len: 65536, checksums: [7, last].into() };
        let of = |crc: Crc, len| crc.of_data(Path::new("x"), len).map(|crc| crc.len());
        assert_eq!(of(with(0), 65536).unwrap(), 1);
        assert_eq!(of(with(0), 65537).unwrap(), 2, "where there is data, it is its checksum");
        assert!(of(with(9), 65536).is_err() && of(with(0), 0).is_err());
    }

    #[test]
    fn wrong_bytes_are_refused() {
        assert!(parse(&[0, 0, 0, 0]).unwrap_err().to_string().contains("offset 0"));
        assert!(parse(&[0, 0, 1, 0, 1]).is_err(), "a part of a checksum");
        let mut builder = CrcBuilder::default();
        builder.update(&[7; CHUNK_LEN as usize + 1]);
        survives_corruption(&builder.finish().0.encode(), |bytes| drop(parse(bytes)));
    }

    #[test]
    fn real_files_match_their_data() {
        for file in samples::real_files("CRC.db") {
            let crc = Crc::parse(&file.path, &file.bytes, file.version).unwrap();
            let data = file.sibling("Data.db").unwrap();
            crc.clone().of_data(&file.path, data.len() as u64).unwrap();
            for (i, chunk) in data.chunks(crc.chunk_len() as usize).enumerate() {
                assert_eq!(crc.get(i), Some(crc32fast::hash(chunk)), "{} stretch {i}", file.path.display());
            }
            assert_eq!(crc.encode(), file.bytes, "{}", file.path.display());
            let mut builder = CrcBuilder::default();
            data.chunks(1000).for_each(|bytes| builder.update(bytes));
            let (built, digest) = builder.finish();
            assert!(built == crc || file.is_scyllas(), "{}", file.path.display());
            assert_eq!(digest, Digest(crc32fast::hash(&data)));
        }
    }

    #[test]
    fn data_may_come_in_any_pieces() {
        let data: Vec<u8> = (0..3 * CHUNK_LEN).map(|i| (i % 251) as u8).collect();
        let crc_of = |data: &[u8], piece: usize| {
            let mut builder = CrcBuilder::default();
            data.chunks(piece).for_each(|bytes| builder.update(bytes));
            let (crc, digest) = builder.finish();
            assert_eq!(digest, Digest(crc32fast::hash(data)));
            crc
        };
        let expected: Vec<u32> = data.chunks(CHUNK_LEN as usize).map(crc32fast::hash).collect();
        for piece in [1, 65_535, 65_536, 65_537, data.len()] {
            assert_eq!(*crc_of(&data, piece).checksums, expected[..], "{piece}");
        }
        assert_eq!(crc_of(&data[..CHUNK_LEN as usize + 1], 100).len(), 2);
        assert_eq!(crc_of(&[], 1).encode(), [0, 1, 0, 0]);
    }

    proptest! {
        #[test]
        fn never_panics(bytes: Vec<u8>) {
            drop(parse(&bytes));
        }
    }
}
