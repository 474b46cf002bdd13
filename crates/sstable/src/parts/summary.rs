//! Summary.db: a sample of the partition keys, in memory where it is needed, and where each stands in Index.db.
//!
//! ```text
//! u32 min index interval   u32 n   u64 size of positions and entries, in bytes
//! u32 sampling level, of 128       u32 number of entries at full sampling
//! n × u32 LE position of an entry, counted from the first position, which stands at byte 24
//! n × entry: key bytes, u64 LE offset in Index.db; it ends where the next one begins
//! u32 length, first key    u32 length, last key
//! ```
//!
//! In memory the entries stay one buffer as they are; beside it stand a start (4 bytes) and a token
//! (8 bytes) for each. Cassandra samples every 128th key, ScyllaDB one for a number of bytes of
//! data: nothing here relies on either.

use std::cmp::Ordering;
use std::path::Path;

use model::Token;
use model::key::token_of;

use crate::decode::{Cursor, DecodeError};
use crate::encode::Encode;
use crate::parts::statistics::Partitioner;
use crate::{Error, Result, Version};

/// Cassandra's default interval, and the level of a summary that is not thinned out.
const BASE_SAMPLING_LEVEL: u32 = 128;
/// Bytes before the positions.
const HEADER: usize = 24;
/// The offset in Index.db, behind each key.
const OFFSET_LEN: usize = 8;
/// Up to how many bytes of entries are sampled: Java counts no more.
const MAX_ENTRIES_LEN: usize = i32::MAX as usize;

/// A sample of the partition keys of an SSTable, in their order.
///
/// Invariants:
/// 1. `starts` ascend and are one more than the entries; `tokens` are as many as the entries.
/// 2. Each entry has at least the bytes of its offset.
/// 3. The offsets in Index.db ascend.
/// 4. With [`Partitioner::Murmur3`], the keys ascend by token, then by bytes, and none of an entry is after the last one.
/// 5. The first entry is that of the first key, and its offset is 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    min_index_interval: u32,
    sampling_level: u32,
    size_at_full_sampling: u32,
    entries: Box<[u8]>,
    starts: Box<[u32]>,
    tokens: Box<[Token]>,
    first_key: Box<[u8]>,
    last_key: Box<[u8]>,
}

impl Summary {
    /// Decodes Summary.db of a file whose keys that partitioner has put in order.
    ///
    /// # Errors
    /// Where the bytes contradict the format or the keys are not in order.
    pub fn parse(path: &Path, bytes: &[u8], _version: Version, partitioner: Partitioner) -> Result<Summary> {
        let summary = Summary::decode(bytes).map_err(|error| error.in_file(path, 0))?;
        if let Some(index) = summary.disorder(partitioner) {
            let at = HEADER + 4 * summary.len() + summary.starts[index] as usize;
            let what = format!("entry {index} is not after the one before it");
            return Err(Error::corrupt(path, at as u64, what));
        }
        let behind_entries = HEADER + 4 * summary.len() + summary.entries.len();
        if !summary.begins_with_first() {
            return Err(Error::corrupt(
                path,
                behind_entries as u64,
                "the first entry is not that of the first key",
            ));
        }
        if partitioner == Partitioner::Murmur3 && !summary.ends_with_last() {
            let at = behind_entries + 4 + summary.first_key.len();
            return Err(Error::corrupt(path, at as u64, "the last key is before another one"));
        }
        Ok(summary)
    }

    /// The first and the last key, which have these tokens, by the last bytes of Summary.db: `None` if they are not all there, or are others.
    ///
    /// Where they begin stands in front of all entries; from behind, it is where lengths and tokens are right.
    pub(crate) fn ends_in(tail: &[u8], [first, last]: [Token; 2]) -> Option<[&[u8]; 2]> {
        let (before, last) = long_bytes_at_end(tail, last)?;
        let (_, first) = long_bytes_at_end(before, first)?;
        Some([first, last])
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The key of an entry and the offset of its partition in Index.db, in bytes.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn entry(&self, index: usize) -> (&[u8], u64) {
        let entry = &self.entries[self.starts[index] as usize..self.starts[index + 1] as usize];
        let (key, offset) = entry.split_last_chunk::<OFFSET_LEN>().expect("an entry ends with its offset");
        (key, u64::from_le_bytes(*offset))
    }

    /// The token of an entry's key.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn token(&self, index: usize) -> Token {
        self.tokens[index]
    }

    /// The last entry at or before a key: its stretch of Index.db is the only one that can hold the key.
    /// `None` where the key is before all. To find where a token begins, ask with an empty key.
    ///
    /// For keys in the order of Murmur3Partitioner only; see [`Summary::floor_by`].
    pub fn floor(&self, token: Token, key: &[u8]) -> Option<usize> {
        let not_after = self.tokens.partition_point(|&candidate| candidate <= token);
        // Different keys of one token are next to never sampled.
        let equals =
            self.tokens[..not_after].iter().rev().take_while(|&&candidate| candidate == token).count();
        (not_after - equals..not_after)
            .rev()
            .find(|&index| self.entry(index).0 <= key)
            .or_else(|| (not_after - equals).checked_sub(1))
    }

    /// The last entry whose key is not greater than what is looked for. `compare` tells how an entry's
    /// key stands to that, in the order of the file.
    pub fn floor_by(&self, mut compare: impl FnMut(&[u8]) -> Ordering) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if compare(self.entry(middle).0) == Ordering::Greater {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low.checked_sub(1)
    }

    /// The stretch of Index.db from an entry's partition up to the next entry's, in bytes. It has no
    /// end for the last entry: there it is the file's.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn stretch(&self, index: usize) -> (u64, Option<u64>) {
        let end = (index + 1 < self.len()).then(|| self.entry(index + 1).1);
        (self.entry(index).1, end)
    }

    /// That all entries point into the Index.db of this many bytes that is there.
    ///
    /// # Errors
    /// Where one does not: most likely the index was cut.
    pub fn check_index_len(&self, index: &Path, index_len: u64) -> Result<()> {
        // Invariant 3: the last one points farthest.
        let Some(last) = self.len().checked_sub(1).filter(|&last| self.entry(last).1 >= index_len) else {
            return Ok(());
        };
        let at = self.entry(last).1;
        let what = format!(
            "it ends here, but entry {last} of Summary.db points to {at}: it is cut short, or Summary.db is wrong, \
             without which all can be read as well"
        );
        Err(Error::corrupt(index, index_len, what))
    }

    /// That its first and last key are those that Statistics.db tells, where that does: what is told of keys beyond these is that
    /// they are not there, and Summary.db has no checksum.
    ///
    /// # Errors
    /// Names the key that is another one.
    pub fn check_ends(&self, path: &Path, [first, last]: [Option<&[u8]>; 2]) -> Result<()> {
        let is_other =
            |own: &[u8], told: Option<&[u8]>| told.is_some_and(|key| !key.is_empty() && key != own);
        let ends = HEADER + 4 * self.len() + self.entries.len();
        let (at, which) = match () {
            () if is_other(&self.first_key, first) => (ends, "first"),
            () if is_other(&self.last_key, last) => (ends + 4 + self.first_key.len(), "last"),
            () => return Ok(()),
        };
        let what = format!(
            "the {which} key is not the one that Statistics.db tells: one of them is wrong; if it is Summary.db, all can be read \
             without it"
        );
        Err(Error::corrupt(path, at as u64, what))
    }

    /// The first key of the file. Empty where there are no entries.
    pub fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    /// The last key of the file. Empty where there are no entries.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Partitions between two entries, at full sampling. ScyllaDB writes it, but does not keep to it.
    pub fn min_index_interval(&self) -> u32 {
        self.min_index_interval
    }

    /// How many of 128 entries were kept when the summary was thinned out.
    pub fn sampling_level(&self) -> u32 {
        self.sampling_level
    }

    /// How many entries there were before the summary was thinned out.
    pub fn size_at_full_sampling(&self) -> u32 {
        self.size_at_full_sampling
    }

    /// The bytes of Summary.db.
    pub fn encode(&self) -> Vec<u8> {
        let positions_len = 4 * self.len();
        let ends_len = 8 + self.first_key.len() + self.last_key.len();
        let mut bytes = Vec::with_capacity(HEADER + positions_len + self.entries.len() + ends_len);
        bytes.put_u32(self.min_index_interval);
        bytes.put_u32(self.len() as u32);
        bytes.put_u64((positions_len + self.entries.len()) as u64);
        bytes.put_u32(self.sampling_level);
        bytes.put_u32(self.size_at_full_sampling);
        for start in &self.starts[..self.len()] {
            bytes.put_u32_le(positions_len as u32 + start);
        }
        bytes.put(&self.entries);
        bytes.put_long_bytes(&self.first_key);
        bytes.put_long_bytes(&self.last_key);
        bytes
    }

    /// What the summary holds in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let keys = self.entries.len() + self.first_key.len() + self.last_key.len();
        size_of::<Summary>() + keys + size_of_val(&*self.starts) + size_of_val(&*self.tokens)
    }

    fn decode(bytes: &[u8]) -> std::result::Result<Summary, DecodeError> {
        let mut cursor = Cursor::new(bytes);
        let min_index_interval = cursor.u32()?;
        let count_at = cursor.clone();
        let count = cursor.u32()? as usize;
        let size = cursor.u64()?;
        let sampling_level = cursor.u32()?;
        let size_at_full_sampling = cursor.u32()?;
        if size > cursor.remaining() as u64 || (count as u64) * (4 + OFFSET_LEN as u64) > size {
            return count_at.invalid("the entries do not fit the size that they should have");
        }
        let starts = decode_starts(&mut cursor, count, size as usize)?;
        let entries = cursor.take(size as usize - 4 * count)?.into();
        let first_key = cursor.long_bytes()?.into();
        let last_key = cursor.long_bytes()?.into();
        cursor.end()?;
        let mut summary = Summary {
            min_index_interval,
            sampling_level,
            size_at_full_sampling,
            entries,
            starts,
            tokens: Box::default(),
            first_key,
            last_key,
        };
        summary.tokens = (0..count).map(|index| token_of(summary.entry(index).0)).collect();
        Ok(summary)
    }

    /// Whether the first entry is that of the first key, at the start of Index.db: all who sample keys keep it.
    fn begins_with_first(&self) -> bool {
        self.is_empty() || self.entry(0) == (self.first_key(), 0)
    }

    /// Whether no key that is told of is after the last one.
    fn ends_with_last(&self) -> bool {
        let Some(last) = self.len().checked_sub(1) else { return true };
        (self.tokens[last], self.entry(last).0) <= (token_of(&self.last_key), &self.last_key)
    }

    /// The first entry that is not after the one before it.
    fn disorder(&self, partitioner: Partitioner) -> Option<usize> {
        (1..self.len()).find(|&index| {
            let (before, here) = (self.entry(index - 1), self.entry(index));
            let keys_ascend = (self.tokens[index - 1], before.0) < (self.tokens[index], here.0);
            before.1 >= here.1 || (partitioner == Partitioner::Murmur3 && !keys_ascend)
        })
    }
}

/// A key with this token that ends the bytes, with its length before it, and what is in front of that.
fn long_bytes_at_end(bytes: &[u8], token: Token) -> Option<(&[u8], &[u8])> {
    (0..bytes.len()).find_map(|len| {
        let (before, key) = bytes.split_at(bytes.len() - len);
        let (before, told) = before.split_last_chunk::<4>()?;
        let is_right = u32::from_be_bytes(*told) as usize == len && token_of(key) == token;
        is_right.then_some((before, key))
    })
}

/// The starts of `count` entries from the first entry's, and the end of the last one.
fn decode_starts(
    cursor: &mut Cursor,
    count: usize,
    size: usize,
) -> std::result::Result<Box<[u32]>, DecodeError> {
    let entries_len = size - 4 * count;
    if entries_len > u32::MAX as usize {
        return cursor.invalid("the entries are above 4 GiB");
    }
    let mut starts: Vec<u32> = Vec::with_capacity(count + 1);
    for index in 0..count {
        let here = cursor.clone();
        let position = cursor.u32_le()? as usize;
        let least = starts.last().map_or(0, |&start| start as usize + OFFSET_LEN);
        match position.checked_sub(4 * count) {
            Some(start) if start != 0 && index == 0 => {
                return here.invalid("the first entry is not at its place");
            }
            Some(start) if start >= least && start + OFFSET_LEN <= entries_len => starts.push(start as u32),
            _ => {
                return here
                    .invalid("an entry's position is not within the entries or before the previous one");
            }
        }
    }
    starts.push(entries_len as u32);
    Ok(starts.into_boxed_slice())
}

/// Samples keys as they go by: makes the summary of a new file, or of one that has none. It holds no
/// more than what it keeps.
#[derive(Clone, Debug)]
pub struct SummaryBuilder {
    interval: u32,
    seen: u64,
    entries: Vec<u8>,
    starts: Vec<u32>,
    tokens: Vec<Token>,
    first_key: Box<[u8]>,
    last_key: Vec<u8>,
}

impl Default for SummaryBuilder {
    /// With Cassandra's default interval, 128.
    fn default() -> SummaryBuilder {
        SummaryBuilder::new(BASE_SAMPLING_LEVEL)
    }
}

impl SummaryBuilder {
    /// Keeps every `interval`-th key.
    ///
    /// # Panics
    /// If the interval is 0.
    pub fn new(interval: u32) -> SummaryBuilder {
        assert!(interval > 0, "an interval between keys is at least 1");
        SummaryBuilder {
            interval,
            seen: 0,
            entries: Vec::new(),
            starts: Vec::new(),
            tokens: Vec::new(),
            first_key: Box::default(),
            last_key: Vec::new(),
        }
    }

    /// The next key of Index.db and the offset of its entry there, in bytes. Past 2 GiB of entries none is
    /// sampled any more: the last one then stands for all that follow.
    pub fn push(&mut self, key: &[u8], index_offset: u64) {
        if self.seen == 0 {
            self.first_key = key.into();
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        let is_sampled = self.seen.is_multiple_of(u64::from(self.interval));
        if is_sampled && self.entries.len() + key.len() + OFFSET_LEN <= MAX_ENTRIES_LEN {
            self.starts.push(self.entries.len() as u32);
            self.tokens.push(token_of(key));
            self.entries.extend_from_slice(key);
            self.entries.extend_from_slice(&index_offset.to_le_bytes());
        }
        self.seen += 1;
    }

    /// The summary of the keys so far.
    pub fn finish(mut self) -> Summary {
        self.starts.push(self.entries.len() as u32);
        Summary {
            min_index_interval: self.interval,
            sampling_level: BASE_SAMPLING_LEVEL,
            size_at_full_sampling: self.seen.div_ceil(u64::from(self.interval)) as u32,
            entries: self.entries.into_boxed_slice(),
            starts: self.starts.into_boxed_slice(),
            tokens: self.tokens.into_boxed_slice(),
            first_key: self.first_key,
            last_key: self.last_key.into_boxed_slice(),
        }
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
