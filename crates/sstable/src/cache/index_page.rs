//! A page of the partition index: the entries between two of the summary, as they stand in Index.db.
//!
//! ```text
//! entries   u16 key length, key, vint position in the data, vint length of the promoted index   × n
//! samples   of every 16th entry: token, where it is in the page, where it is in Index.db        × n / 16
//! ```
//!
//! Entries are neither taken apart nor hashed when a page is read, save those of the samples: of an index that is
//! larger than its cache most pages serve one lookup, which would not pay for that. A lookup goes by halves among the
//! samples, and from there from key to key. Promoted indexes are left out.
//!
//! With 16-byte keys a partition takes 26.5 bytes where the data is less than 4 TiB, and a page is two allocations: what
//! it costs to drop does not depend on how many partitions it holds.
//!
//! A page may end early, before the entries that nobody asked for yet: to step over the index of a large
//! partition costs a request.

use std::ops::Range;

use model::{PartitionKey, Token};

use crate::big::entry::{EntryHead, KEY};

/// Said of entries that were whole when they were put in.
const WHOLE: &str = "invariant: a page has whole entries";

/// Every how many entries a page has a sample.
const STRIDE: usize = 16;

/// The entries of a part of Index.db.
///
/// Invariant: `entries` are whole entries, and each sample is the place of one of them.
#[derive(PartialEq, Eq, Debug)]
pub struct IndexPage {
    entries: Box<[u8]>,
    samples: Box<[Sample]>,
    count: usize,
    last_token: Token,
    /// Where in the data the last partition begins.
    last_data: u64,
    rest: Option<u64>,
}

/// The place of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sample {
    token: Token,
    /// Where it begins in Index.db.
    at: u64,
    /// Where it begins in the page.
    offset: u32,
}

/// What a page knows of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageEntry {
    /// Where the partition begins in the uncompressed data.
    pub data: u64,
    /// Where in Index.db its promoted index is.
    pub promoted: Option<Range<u64>>,
    /// Where the next partition begins in the uncompressed data, if it is in the page.
    pub next_data: Option<u64>,
}

/// Collects entries, in order, into a page.
#[derive(Debug)]
pub struct IndexPageBuilder<F> {
    token_of: F,
    entries: Vec<u8>,
    samples: Vec<Sample>,
    count: usize,
    last_data: u64,
    /// Where the last key is in `entries`.
    last_key: Range<usize>,
    rest: Option<u64>,
}

impl<F: Fn(&[u8]) -> Token> IndexPageBuilder<F> {
    /// A page without entries. `token_of` gives the token of a key.
    pub fn new(token_of: F) -> IndexPageBuilder<F> {
        IndexPageBuilder {
            token_of,
            entries: Vec::new(),
            samples: Vec::new(),
            count: 0,
            last_data: 0,
            last_key: 0..0,
            rest: None,
        }
    }

    /// Goes on where a page ended early.
    pub fn resume(page: &IndexPage, token_of: F) -> IndexPageBuilder<F> {
        IndexPageBuilder {
            entries: page.entries.to_vec(),
            samples: page.samples.to_vec(),
            count: page.count,
            last_data: page.last_data,
            ..IndexPageBuilder::new(token_of)
        }
    }

    /// Has room for so many bytes of entries.
    pub fn reserve(&mut self, len: usize) {
        self.entries.reserve_exact(len);
    }

    /// Adds the next entry.
    ///
    /// # Errors
    /// Says what is wrong where the entries are out of order, as far as that shows without hashing each key, or one is
    /// beyond all measure.
    pub fn push(&mut self, entry: &EntryHead<'_>) -> Result<(), &'static str> {
        if self.count > 0 && self.last_data >= entry.data {
            return Err("the positions in the index do not ascend");
        }
        let start = self.entries.len();
        if self.count.is_multiple_of(STRIDE) {
            self.sample(entry)?;
        }
        self.entries.extend_from_slice(entry.bytes);
        let key_end = start + KEY + entry.key.len();
        self.last_key = start + KEY..key_end;
        self.last_data = entry.data;
        self.count += 1;
        Ok(())
    }

    fn sample(&mut self, entry: &EntryHead<'_>) -> Result<(), &'static str> {
        let token = (self.token_of)(entry.key);
        if self.samples.last().is_some_and(|last| last.token > token) {
            return Err("the partitions of the index are out of order");
        }
        let Ok(offset) = u32::try_from(self.entries.len()) else {
            return Err("the keys between two summary entries exceed 4 GiB");
        };
        self.samples.push(Sample { token, at: entry.at, offset });
        Ok(())
    }

    /// The entries behind the last one, from this place of Index.db on, are left to whoever asks for them.
    pub fn end_early(&mut self, rest: u64) {
        self.rest = Some(rest);
    }

    /// The page of the entries so far.
    pub fn build(self) -> IndexPage {
        let last_token = (self.token_of)(&self.entries[self.last_key]);
        IndexPage {
            entries: self.entries.into_boxed_slice(),
            samples: self.samples.into_boxed_slice(),
            count: self.count,
            last_token,
            last_data: self.last_data,
            rest: self.rest,
        }
    }
}

impl IndexPage {
    /// How many partitions the page has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The token of its first partition.
    pub(crate) fn first_token(&self) -> Option<Token> {
        self.samples.first().map(|sample| sample.token)
    }

    /// Where in Index.db the entries begin that the page leaves out because it ends early.
    pub fn rest(&self) -> Option<u64> {
        self.rest
    }

    /// Whether the page tells if there is a partition with this key.
    pub fn decides(&self, key: &PartitionKey) -> bool {
        self.rest.is_none() || key.token < self.last_token || self.find(key).is_some()
    }

    /// All of the page's memory, in bytes.
    pub fn memory(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        size_of::<IndexPage>() + counts + self.entries.len() + size_of_val(&*self.samples)
    }

    /// What the page knows of the partition with this key.
    pub fn find(&self, key: &PartitionKey) -> Option<PageEntry> {
        let after = self.samples.partition_point(|sample| sample.token <= key.token);
        let end = self.samples.get(after).map_or(self.entries.len(), |sample| sample.offset as usize);
        let floor =
            self.samples[..after].partition_point(|sample| sample.token < key.token).saturating_sub(1);
        let floor = self.samples[..after].get(floor)?;
        let (mut offset, mut at) = (floor.offset as usize, floor.at);
        while offset < end {
            let (found, len, promoted_len) = EntryHead::step(&self.entries[offset..]).expect(WHOLE);
            if found == &*key.bytes {
                let (head, next) = (self.head(offset, at), offset + len);
                let next_data = (next < self.entries.len()).then(|| self.head(next, 0).data);
                return Some(PageEntry { data: head.data, promoted: head.promoted(), next_data });
            }
            offset += len;
            at += len as u64 + promoted_len;
        }
        None
    }

    /// Whether the keys are in order where this token's would be: asked where a key was not found, as one that is damaged
    /// is not. The token is none of those before the page, and the page behind begins with `next_page`, if there is one.
    pub(crate) fn is_in_order_at(
        &self,
        token: Token,
        next_page: Option<Token>,
        token_of: impl Fn(&[u8]) -> Token,
    ) -> bool {
        let after = self.samples.partition_point(|sample| sample.token <= token);
        let next = self.samples.get(after);
        let end = next.map_or(self.entries.len(), |sample| sample.offset as usize);
        let Some(floor) = after.checked_sub(1) else { return false };
        let (mut offset, mut last) = (self.samples[floor].offset as usize, Token::MIN);
        while offset < end {
            let head = self.head(offset, 0);
            let before = std::mem::replace(&mut last, token_of(head.key));
            if before > last {
                return false;
            }
            offset += head.bytes.len();
        }
        next.map(|next| next.token).or(next_page).is_none_or(|next| last <= next)
    }

    #[inline]
    fn head(&self, offset: usize, at: u64) -> EntryHead<'_> {
        EntryHead::decode(&self.entries[offset..], at).expect(WHOLE)
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;
    use model::key::token_of;

    use super::*;
    use crate::encode::Encode;

    /// Keys in token order.
    fn sorted(keys: impl IntoIterator<Item = Vec<u8>>) -> Vec<PartitionKey> {
        let mut keys: Vec<_> = keys.into_iter().map(|key| PartitionKey::new(Bytes::from(key))).collect();
        keys.sort();
        keys
    }

    /// The entries of these keys, of which every 50th has a promoted index, with their places in Index.db.
    fn encode(keys: &[PartitionKey], data_step: u64) -> Vec<(u64, Vec<u8>)> {
        let mut at = 1_000;
        let each = keys.iter().zip(0_u64..).map(|(key, i)| {
            let mut bytes = Vec::new();
            bytes.put_short_bytes(&key.bytes);
            bytes.put_vint(500 + i * data_step);
            bytes.put_vint(if i % 50 == 3 { 777 } else { 0 });
            let start = at;
            at += bytes.len() as u64 + if i % 50 == 3 { 777 } else { 0 };
            (start, bytes)
        });
        each.collect()
    }

    fn push<F: Fn(&[u8]) -> Token>(builder: &mut IndexPageBuilder<F>, entries: &[(u64, Vec<u8>)]) {
        for (at, bytes) in entries {
            builder.push(&EntryHead::decode(bytes, *at).unwrap()).unwrap();
        }
    }

    fn page(keys: &[PartitionKey], data_step: u64) -> IndexPage {
        let mut builder = IndexPageBuilder::new(token_of);
        push(&mut builder, &encode(keys, data_step));
        builder.build()
    }

    fn check(page: &IndexPage, keys: &[PartitionKey], data_step: u64) {
        let entries = encode(keys, data_step);
        for (i, key) in (0_u64..).zip(keys) {
            let (at, bytes) = &entries[i as usize];
            let promoted = at + bytes.len() as u64..at + bytes.len() as u64 + 777;
            let entry = PageEntry {
                data: 500 + i * data_step,
                promoted: (i % 50 == 3).then_some(promoted),
                next_data: (i as usize + 1 < keys.len()).then_some(500 + (i + 1) * data_step),
            };
            assert_eq!(page.find(key), Some(entry));
        }
    }

    #[test]
    fn finds_every_key_and_no_other() {
        for data_step in [1, 60_000_000] {
            for count in [1, 15, 16, 17, 128] {
                let keys = sorted((0..count).map(|i: u64| i.to_be_bytes().repeat(2)));
                let page = page(&keys, data_step);
                check(&page, &keys, data_step);
                for absent in 1000..2000_u64 {
                    let key = PartitionKey::new(Bytes::from(absent.to_be_bytes().repeat(2)));
                    assert_eq!(page.find(&key), None);
                }
            }
            let keys = sorted((0..300_usize).map(|i| vec![b'k'; i % 97 + 3 * i]));
            check(&page(&keys, data_step), &keys, data_step);
        }
    }

    /// More of them than between two samples, before others and behind others.
    #[test]
    fn keys_of_one_token_are_told_apart() {
        for count in [1_u8, 3, 16, 40, 100] {
            let token_of = |key: &[u8]| i64::from(key[0] / 20);
            let mut builder = IndexPageBuilder::new(token_of);
            let keys: Vec<_> = (0..count)
                .map(|i| PartitionKey { token: token_of(&[i]), bytes: Bytes::from(vec![i]) })
                .collect();
            push(&mut builder, &encode(&keys, 1));
            let page = builder.build();
            check(&page, &keys, 1);
            for key in &keys {
                let absent = Bytes::from(vec![key.bytes[0], 7]);
                assert_eq!(page.find(&PartitionKey { bytes: absent, ..*key }), None);
                let elsewhere = PartitionKey { token: key.token - 1, bytes: key.bytes.clone() };
                assert!(page.find(&elsewhere).is_none_or(|entry| entry.data >= 500));
            }
        }
    }

    #[test]
    fn tokens_from_end_to_end_of_the_ring() {
        let tokens = [i64::MIN + 1, -5, 0, 7, i64::MAX];
        let mut builder = IndexPageBuilder::new(|key: &[u8]| tokens[usize::from(key[0])]);
        let keys: Vec<_> =
            (0..).zip(tokens).map(|(i, token)| PartitionKey { token, bytes: Bytes::from(vec![i]) }).collect();
        push(&mut builder, &encode(&keys, 1));
        check(&builder.build(), &keys, 1);
    }

    #[test]
    fn at_most_28_bytes_a_partition_with_16_byte_keys() {
        let keys = sorted((0..128).map(|i: u64| (u128::from(i) << 64 | 7).to_be_bytes().to_vec()));
        let page = page(&keys, 1 << 33);
        let each = page.memory() as f64 / page.len() as f64;
        assert!(each <= 28.0, "{each} bytes a partition");
    }

    #[test]
    fn a_page_that_ended_early_goes_on() {
        let keys = sorted((0..100_u64).map(|i| i.to_be_bytes().to_vec()));
        let (whole, entries) = (page(&keys, 9), encode(&keys, 9));
        for early in [1, 15, 16, 40] {
            let mut builder = IndexPageBuilder::new(token_of);
            push(&mut builder, &entries[..early]);
            builder.end_early(777);
            let page = builder.build();
            assert_eq!(page.rest(), Some(777));
            assert!(page.decides(&keys[early - 1]) && !page.decides(&keys[early]));
            check(&page, &keys[..early], 9);
            let mut builder = IndexPageBuilder::resume(&page, token_of);
            push(&mut builder, &entries[early..]);
            assert_eq!(builder.build(), whole);
        }
    }

    /// A bit of a key between two samples is wrong: that key is not found, and it shows why.
    #[test]
    fn a_damaged_key_is_told_from_an_absent_one() {
        let keys = sorted((0..100_u64).map(|i| i.to_be_bytes().to_vec()));
        let mut entries = encode(&keys, 1);
        let mut told = 0;
        for number in [5, 20, 40, 70] {
            assert!(page(&keys, 1).is_in_order_at(keys[number].token, None, token_of));
            entries[number].1[KEY + 3] ^= 1;
            let mut builder = IndexPageBuilder::new(token_of);
            push(&mut builder, &entries);
            let page = builder.build();
            assert_eq!(page.find(&keys[number]), None);
            told += u32::from(!page.is_in_order_at(keys[number].token, None, token_of));
            entries[number].1[KEY + 3] ^= 1;
        }
        assert_eq!(told, 4);
    }

    /// Those in front of a first key that has become greater, and a last one that has, are not found either.
    #[test]
    fn a_damaged_key_at_an_end_shows_too() {
        let keys = sorted((0..15_u64).map(|i| i.to_be_bytes().to_vec()));
        let next = keys[14].token + 1;
        for (number, lost) in [(0, 1), (14, 14)] {
            let mut entries = encode(&keys, 1);
            let key = KEY..KEY + 8;
            while token_of(&entries[number].1[key.clone()]) <= keys[number].token.max(next) {
                entries[number].1[key.start] += 1;
            }
            let mut builder = IndexPageBuilder::new(token_of);
            push(&mut builder, &entries);
            let (page, lost) = (builder.build(), &keys[lost]);
            assert_eq!(page.find(lost), None);
            assert!(!page.is_in_order_at(lost.token, Some(next), token_of));
        }
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        let keys = sorted((0..40_u64).map(|i| i.to_be_bytes().to_vec()));
        let entries = encode(&keys, 1);
        let mut builder = IndexPageBuilder::new(token_of);
        push(&mut builder, &entries[..3]);
        assert!(builder.push(&EntryHead::decode(&entries[2].1, 5000).unwrap()).is_err(), "positions");
        let mut builder = IndexPageBuilder::new(|key: &[u8]| -token_of(key));
        push(&mut builder, &entries[..STRIDE]);
        assert!(builder.push(&EntryHead::decode(&entries[STRIDE].1, 5000).unwrap()).is_err(), "tokens");
    }
}
