//! The entries of Index.db, one a partition, in the order of the partitions.
//!
//! ```text
//! entry             u16 key length, key, vint position in the data, vint length L of what follows
//!                   L = 0: the partition has no promoted index
//! promoted index    vint length of the partition's head (key, deletion, static row), deletion,
//!                   vint number of blocks, blocks, offset map: u32 a block, from the first block
//! ```
//!
//! The map ends exactly where the entry does, so the place of each of its offsets is known without
//! reading anything else. Blocks are coded in [`super::promoted_cursor`].

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use model::{Bytes, DeletionTime};
use runtime::File;

use crate::cache::cached_file::CachedFile;
use crate::data::row::deletion_time;
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::{Error, Result, Version};

/// One entry of Index.db.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where the entry begins in Index.db.
    pub at: u64,
    /// The serialized partition key.
    pub key: Bytes,
    /// Where the partition begins in the uncompressed data.
    pub data: u64,
    /// Where in Index.db its promoted index is; empty where it has none.
    pub promoted: Range<u64>,
}

/// An entry as it stands in Index.db, up to its promoted index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryHead<'a> {
    /// Where the entry begins in Index.db.
    pub at: u64,
    /// The bytes before the promoted index, the key's among them.
    pub bytes: &'a [u8],
    /// The serialized partition key.
    pub key: &'a [u8],
    /// Where the partition begins in the uncompressed data.
    pub data: u64,
    /// Bytes of the promoted index, which follows; 0 where there is none.
    pub promoted_len: u64,
}

impl<'a> EntryHead<'a> {
    /// The entry at the start of `bytes`, whatever follows it. It begins at `at` of Index.db.
    ///
    /// # Errors
    /// How many bytes are needed, if these are too few.
    pub fn decode(bytes: &'a [u8], at: u64) -> Decoded<EntryHead<'a>> {
        let mut cursor = Cursor::new(bytes);
        let key_len = usize::from(cursor.u16()?);
        let key = cursor.take(key_len)?;
        let data = cursor.vint()?;
        let promoted_len = cursor.vint()?;
        Ok(EntryHead { at, bytes: &bytes[..cursor.position()], key, data, promoted_len })
    }

    /// What a search looks at of the entry at the start of `bytes`: its key, how many bytes it has, and how many its
    /// promoted index. `None` if it is not whole.
    #[inline]
    pub fn step(bytes: &'a [u8]) -> Option<(&'a [u8], usize, u64)> {
        let (len, rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let data = 1 + rest.first()?.leading_ones() as usize;
        let len = KEY + key.len() + data;
        match *rest.get(data)? {
            promoted_len @ 0..0x80 => Some((key, len + 1, u64::from(promoted_len))),
            _ => {
                let mut cursor = Cursor::new(&rest[data..]);
                let promoted_len = cursor.vint().ok()?;
                Some((key, len + cursor.position(), promoted_len))
            }
        }
    }

    /// Where in Index.db the promoted index is, if there is one. An [`EntryScanner`] gives none that reaches past the
    /// end of what it scans.
    pub fn promoted(&self) -> Option<Range<u64>> {
        let start = self.at + self.bytes.len() as u64;
        (self.promoted_len > 0).then(|| start..start.saturating_add(self.promoted_len))
    }
}

/// The head of a partition's promoted index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Promoted {
    /// Bytes of the partition before its first row: key, deletion, static row.
    pub head_len: u64,
    /// The deletion of the partition.
    pub deletion: DeletionTime,
    /// How many blocks there are, at least one.
    pub count: u32,
    /// Where in Index.db the blocks are.
    pub blocks: Range<u64>,
    /// Where in Index.db the offset map begins.
    pub map: u64,
    /// The partition's number among the large ones, if it is the fences that told all this.
    pub ordinal: Option<u64>,
}

/// Bytes of an entry before its key.
pub(crate) const KEY: usize = 2;

/// Bytes of the offset map for each block.
pub const OFFSET: u64 = 4;

/// The longest that a promoted index' head can be: two vints and a deletion.
const LONGEST_HEAD: u64 = 9 + 12 + 9;

impl Promoted {
    /// Where in Index.db the entry ends.
    pub fn end(&self) -> u64 {
        self.map + u64::from(self.count) * OFFSET
    }

    /// Reads the head of the promoted index at `range` of Index.db.
    ///
    /// # Errors
    /// What cannot be read, and lengths that contradict each other.
    pub async fn read(file: &CachedFile, range: Range<u64>, version: Version) -> Result<Promoted> {
        let bytes = file.read(range.start..range.end.min(range.start + LONGEST_HEAD)).await?;
        Promoted::decode(&bytes, &range, version)
            .map_err(|error| Error::corrupt(file.path(), range.start + error.at() as u64, error.what()))
    }

    fn decode(bytes: &[u8], range: &Range<u64>, version: Version) -> Decoded<Promoted> {
        let mut cursor = Cursor::new(bytes);
        let head_len = cursor.vint()?;
        let deletion = deletion_time(&mut cursor, version)?;
        let count = cursor.vint()?;
        let first = range.start + cursor.position() as u64;
        let map = count.checked_mul(OFFSET).and_then(|len| range.end.checked_sub(len));
        match map.filter(|&map| count > 0 && map > first) {
            Some(map) => {
                let (count, blocks, ordinal) = (count as u32, first..map, None);
                Ok(Promoted { head_len, deletion, count, blocks, map, ordinal })
            }
            None => cursor.invalid("a promoted index is too short for its blocks"),
        }
    }
}

/// Where entries are read from.
#[derive(Clone, Debug)]
pub enum IndexSource {
    /// Through the page cache: for lookups.
    Cached(CachedFile),
    /// Past it: for reading all of the file once.
    Streamed(File),
}

impl IndexSource {
    fn path(&self) -> &Path {
        match self {
            IndexSource::Cached(file) => file.path(),
            IndexSource::Streamed(file) => file.path(),
        }
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match self {
            IndexSource::Cached(file) => file.read(range).await,
            IndexSource::Streamed(file) => {
                let (buffer, bytes) =
                    file.read_exact_at(range.start, (range.end - range.start) as usize).await?.into_parts();
                Ok(Bytes::new(&Rc::new(buffer), bytes))
            }
        }
    }
}

/// Requests while scanning grow to this many bytes.
const LARGEST_STEP: u64 = 64 << 10;

/// Walks over the entries in a range of Index.db, stepping over their promoted indexes unread.
///
/// Invariant: `at` is the window's start or behind it, and not behind `end`.
#[derive(Debug)]
pub struct EntryScanner {
    source: IndexSource,
    at: u64,
    end: u64,
    first: u64,
    step: u64,
    /// How many bytes the next entry has at least, as far as that is known.
    needed: u64,
    /// The bytes at hand; none before the first are read.
    window: Option<Bytes>,
    window_start: u64,
}

impl EntryScanner {
    /// At the start of a range that begins with an entry. `first` is how many bytes to read to begin with.
    pub fn new(source: IndexSource, range: Range<u64>, first: u64) -> EntryScanner {
        EntryScanner {
            source,
            at: range.start,
            end: range.end,
            first,
            step: first,
            needed: 1,
            window: None,
            window_start: range.start,
        }
    }

    /// Where in Index.db the next entry begins.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The next entry; `None` at the end of the range.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format, with its offset in Index.db.
    pub async fn next(&mut self) -> Result<Option<Entry>> {
        loop {
            let skipped = self.skipped();
            if let Some(head) = self.pop()? {
                let EntryHead { at, key, data, .. } = head;
                let promoted_start = at + head.bytes.len() as u64;
                let promoted = promoted_start..promoted_start + head.promoted_len;
                let key = skipped + KEY..skipped + KEY + key.len();
                let window = self.window.as_ref().expect("an entry was decoded from it");
                return Ok(Some(Entry { at, key: window.slice(key), data, promoted }));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next entry, if it is among the bytes at hand. Otherwise [`EntryScanner::fill`] tells whether there is one.
    ///
    /// # Errors
    /// What contradicts the format, with its offset in Index.db.
    pub fn pop(&mut self) -> Result<Option<EntryHead<'_>>> {
        let skipped = self.skipped();
        let EntryScanner { source, window, at, end, needed, .. } = self;
        let bytes = window.as_ref().and_then(|window| window.get(skipped..));
        let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { return Ok(None) };
        match EntryHead::decode(bytes, *at) {
            Ok(head) => {
                let next = *at + head.bytes.len() as u64;
                let Some(next) = next.checked_add(head.promoted_len).filter(|next| next <= end) else {
                    let what = "a promoted index reaches past the end of the index";
                    return Err(Error::corrupt(source.path(), next, what));
                };
                (*at, *needed) = (next, 1);
                Ok(Some(head))
            }
            Err(DecodeError::Truncated { needed: more }) => {
                *needed = more as u64;
                Ok(None)
            }
            Err(error) => Err(error.in_file(source.path(), *at)),
        }
    }

    /// Brings in more bytes of the next entry; `false` if there is none.
    ///
    /// # Errors
    /// What cannot be read; an entry that the range has only a part of.
    pub async fn fill(&mut self) -> Result<bool> {
        if self.at >= self.end {
            return Ok(false);
        }
        if self.at + self.needed > self.end {
            return Err(Error::corrupt(self.source.path(), self.end, "the index ends inside an entry"));
        }
        if self.at > self.window_start + self.window.as_ref().map_or(0, |window| window.len()) as u64 {
            // A promoted index was stepped over: what follows it is not near.
            self.step = self.first;
        }
        let end = self.end.min(self.at + self.step.max(self.needed));
        self.window = Some(self.source.read(self.at..end).await?);
        self.window_start = self.at;
        self.step = (self.step * 2).min(LARGEST_STEP);
        Ok(true)
    }

    /// How many bytes of the window, or more than it has, lie before the next entry.
    fn skipped(&self) -> usize {
        usize::try_from(self.at - self.window_start).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use runtime::{Cache, IoClass, Shard, SimOptions};

    use super::*;

    /// Entries of these keys; where a promoted index is given, it is of as many bytes.
    fn encode(entries: &[(&[u8], u64, u16)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(key, data, promoted) in entries {
            bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
            bytes.extend_from_slice(key);
            bytes.push(0xff);
            bytes.extend_from_slice(&data.to_be_bytes());
            bytes.push(0xff);
            bytes.extend_from_slice(&u64::from(promoted).to_be_bytes());
            bytes.resize(bytes.len() + usize::from(promoted), 0xee);
        }
        bytes
    }

    async fn scan(source: IndexSource, len: u64, first: u64) -> Result<Vec<Entry>> {
        let mut scanner = EntryScanner::new(source, 0..len, first);
        let mut found = Vec::new();
        while let Some(entry) = scanner.next().await? {
            found.push(entry);
        }
        Ok(found)
    }

    fn with_file(bytes: Vec<u8>, test: impl AsyncFnOnce(&Shard, File)) {
        runtime::run_simulated(SimOptions::default(), async |shard: Shard| {
            let path = Path::new("/me-1-big-Index.db");
            shard.disk().as_simulated().expect("the disk is simulated").add_file(path, bytes);
            let file = shard.disk().open(path, IoClass::new(2)).await.expect("the file is there");
            test(&shard, file).await;
        })
        .expect("the shard runs");
    }

    #[test]
    fn entries_are_found_whatever_is_read_at_a_time() {
        let entries: [(&[u8], u64, u16); 4] =
            [(b"a", 0, 0), (b"long key", 1 << 40, 60_000), (b"", 1 << 41, 0), (b"last", 1 << 42, 1)];
        let bytes = encode(&entries);
        let len = bytes.len() as u64;
        with_file(bytes, async |shard, file| {
            let cached = CachedFile::new(file.clone(), Cache::new(1 << 20));
            for source in [IndexSource::Cached(cached), IndexSource::Streamed(file)] {
                for first in [1, 7, 4096, 1 << 20] {
                    let found = scan(source.clone(), len, first).await.expect("the index is sound");
                    for (entry, (key, data, promoted)) in found.iter().zip(entries) {
                        let promoted_len = entry.promoted.end - entry.promoted.start;
                        assert_eq!((&*entry.key, entry.data, promoted_len), (key, data, u64::from(promoted)));
                    }
                    assert_eq!(found.len(), entries.len());
                }
            }
            assert!(shard.disk().stats().total().bytes > 0);
        });
    }

    #[test]
    fn an_index_that_is_cut_off_is_an_error() {
        let bytes = encode(&[(b"a", 5, 0), (b"b", 6, 9)]);
        let first = encode(&[(b"a", 5, 0)]).len();
        for len in 1..bytes.len() {
            with_file(bytes[..len].to_vec(), async |_, file| {
                let found = scan(IndexSource::Streamed(file), len as u64, 4096).await;
                assert_eq!(found.is_ok(), len == first, "{len} bytes");
            });
        }
    }

    #[test]
    fn the_head_of_a_promoted_index() {
        let blocks = [0xbb; 20];
        let head = [&[17, 0x80, 2][..], &blocks, &0u32.to_be_bytes(), &12u32.to_be_bytes()].concat();
        let range = 100..100 + head.len() as u64;
        let promoted = Promoted::decode(&head, &range, Version::Oa).expect("it is sound");
        assert_eq!(
            (promoted.head_len, promoted.count, promoted.blocks, promoted.map),
            (17, 2, 103..123, 123)
        );
        for count in [0, 8, 0x7f] {
            let mut bent = head.clone();
            bent[2] = count;
            assert!(Promoted::decode(&bent, &range, Version::Oa).is_err(), "{count} blocks do not fit");
        }
    }
}
