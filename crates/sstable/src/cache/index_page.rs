//! A page of the partition index: the entries between two of the summary, flat.
//!
//! ```text
//! token    u32 LE × n   how far the key's token is from the first one's, scaled to 32 bits
//! data     LE × n       how far the partition is from the first one in the data, in as few bytes as the last needs
//! ends     u32 LE × n   where each key ends; left out where all keys have one length
//! keys     the bytes of the keys
//! ```
//!
//! All of that is one allocation, and the few partitions with a promoted index are another: what a
//! page costs to drop does not depend on how many partitions it holds. With 16-byte keys a partition
//! takes at most 24 bytes where the page's data is less than 4 GiB.
//!
//! A page may end early, before the entries that nobody asked for yet: to step over the index of a large
//! partition costs a request.

use std::ops::Range;

use model::{PartitionKey, Token};

use crate::big::entry::Entry;

/// The entries of a part of Index.db.
#[derive(PartialEq, Eq, Debug)]
pub struct IndexPage {
    bytes: Box<[u8]>,
    promoted: Box<[PromotedPlace]>,
    count: usize,
    first_token: Token,
    /// Tokens are scaled by dropping this many of their distance's low bits.
    shift: u32,
    first_data: u64,
    data_width: usize,
    keys: Keys,
    last_token: Token,
    rest: Option<u64>,
}

/// How the page's keys are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Keys {
    /// All of this many bytes.
    Fixed(usize),
    /// Their ends are listed.
    Ends,
}

#[derive(PartialEq, Eq, Debug)]
struct PromotedPlace {
    entry: u32,
    len: u32,
    start: u64,
}

/// What a page knows of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageEntry {
    /// Where the partition begins in the uncompressed data.
    pub data: u64,
    /// Where in Index.db its promoted index is.
    pub promoted: Option<Range<u64>>,
}

/// Collects entries, in order, into a page.
#[derive(Default, Debug)]
pub struct IndexPageBuilder {
    tokens: Vec<Token>,
    data: Vec<u64>,
    key_ends: Vec<u32>,
    keys: Vec<u8>,
    promoted: Vec<PromotedPlace>,
    rest: Option<u64>,
}

impl IndexPageBuilder {
    /// Goes on where a page ended early. `token_of` gives the token of a key.
    pub fn resume(page: &IndexPage, token_of: impl Fn(&[u8]) -> Token) -> IndexPageBuilder {
        let mut builder = IndexPageBuilder::default();
        for number in 0..page.len() {
            let PageEntry { data, promoted } = page.entry(number);
            let key = page.key(number);
            builder
                .add(key, token_of(key), data, promoted.unwrap_or_default())
                .expect("it was in a page before");
        }
        builder
    }

    /// Adds the next entry, whose key has this token.
    ///
    /// # Errors
    /// Says what is wrong where the entries are out of order or one is beyond all measure.
    pub fn push(&mut self, entry: &Entry, token: Token) -> Result<(), &'static str> {
        self.add(&entry.key, token, entry.data, entry.promoted.clone())
    }

    /// The entries behind the last one, from this place of Index.db on, are left to whoever asks for them.
    pub fn end_early(&mut self, rest: u64) {
        self.rest = Some(rest);
    }

    fn add(&mut self, key: &[u8], token: Token, data: u64, promoted: Range<u64>) -> Result<(), &'static str> {
        if self.tokens.last().is_some_and(|&last| last > token) {
            return Err("the partitions of the index are out of order");
        }
        if self.data.last().is_some_and(|&last| last >= data) {
            return Err("the positions in the index do not ascend");
        }
        let Ok(end) = u32::try_from(self.keys.len() + key.len()) else {
            return Err("the keys between two summary entries exceed 4 GiB");
        };
        if !promoted.is_empty() {
            let Ok(len) = u32::try_from(promoted.end - promoted.start) else {
                return Err("a promoted index exceeds 4 GiB");
            };
            let entry = self.tokens.len() as u32;
            self.promoted.push(PromotedPlace { entry, len, start: promoted.start });
        }
        self.tokens.push(token);
        self.data.push(data);
        self.keys.extend_from_slice(key);
        self.key_ends.push(end);
        Ok(())
    }

    /// The page of the entries so far.
    pub fn build(self) -> IndexPage {
        let first_token = self.tokens.first().copied().unwrap_or(0);
        let span = self.tokens.last().map_or(0, |&last| distance(first_token, last));
        let shift = (u64::BITS - span.leading_zeros()).saturating_sub(u32::BITS);
        let first_data = self.data.first().copied().unwrap_or(0);
        let reach = self.data.last().map_or(0, |&last| last - first_data);
        let data_width = (u64::BITS - reach.leading_zeros()).div_ceil(8).max(1) as usize;
        let keys = self.key_form();

        let mut bytes = Vec::with_capacity(self.tokens.len() * (4 + data_width + 4) + self.keys.len());
        for &token in &self.tokens {
            bytes.extend_from_slice(&((distance(first_token, token) >> shift) as u32).to_le_bytes());
        }
        for &data in &self.data {
            bytes.extend_from_slice(&(data - first_data).to_le_bytes()[..data_width]);
        }
        if keys == Keys::Ends {
            self.key_ends.iter().for_each(|end| bytes.extend_from_slice(&end.to_le_bytes()));
        }
        bytes.extend_from_slice(&self.keys);
        IndexPage {
            bytes: bytes.into_boxed_slice(),
            promoted: self.promoted.into_boxed_slice(),
            count: self.tokens.len(),
            first_token,
            shift,
            first_data,
            data_width,
            keys,
            last_token: self.tokens.last().copied().unwrap_or(Token::MAX),
            rest: self.rest,
        }
    }

    fn key_form(&self) -> Keys {
        let len = self.key_ends.first().map_or(0, |&end| end as usize);
        let all_alike = self.key_ends.iter().enumerate().all(|(i, &end)| end as usize == len * (i + 1));
        if all_alike { Keys::Fixed(len) } else { Keys::Ends }
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
        (!self.is_empty()).then_some(self.first_token)
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
        size_of::<IndexPage>() + counts + self.bytes.len() + size_of_val(&*self.promoted)
    }

    /// The number of the partition with this key.
    pub fn find(&self, key: &PartitionKey) -> Option<usize> {
        if self.is_empty() || key.token < self.first_token {
            return None;
        }
        let scaled = distance(self.first_token, key.token) >> self.shift;
        let scaled = u32::try_from(scaled).ok()?;
        let start = self.first_at_or_above(scaled);
        (start..self.count)
            .take_while(|&i| self.scaled_token(i) == scaled)
            .find(|&i| self.key(i) == &*key.bytes)
    }

    /// What the page knows of its partition of this number.
    ///
    /// # Panics
    /// If it has no such partition.
    pub fn entry(&self, number: usize) -> PageEntry {
        let place = self.promoted.binary_search_by_key(&(number as u32), |place| place.entry);
        let promoted = place.ok().map(|i| {
            let place = &self.promoted[i];
            place.start..place.start + u64::from(place.len)
        });
        PageEntry { data: self.data(number), promoted }
    }

    /// The key of the partition of this number.
    ///
    /// # Panics
    /// If the page has no such partition.
    pub fn key(&self, number: usize) -> &[u8] {
        assert!(number < self.count);
        let before_ends = self.count * (4 + self.data_width);
        match self.keys {
            Keys::Fixed(len) => &self.bytes[before_ends + number * len..][..len],
            Keys::Ends => {
                let keys = &self.bytes[before_ends + self.count * 4..];
                let end = |i: usize| self.u32_at(before_ends + i * 4) as usize;
                &keys[if number == 0 { 0 } else { end(number - 1) }..end(number)]
            }
        }
    }

    fn data(&self, number: usize) -> u64 {
        let mut wide = [0; 8];
        let at = self.count * 4 + number * self.data_width;
        wide[..self.data_width].copy_from_slice(&self.bytes[at..at + self.data_width]);
        self.first_data + u64::from_le_bytes(wide)
    }

    fn first_at_or_above(&self, scaled: u32) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.scaled_token(middle) < scaled { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn scaled_token(&self, number: usize) -> u32 {
        self.u32_at(number * 4)
    }

    fn u32_at(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("four bytes"))
    }
}

/// How far apart two tokens in ascending order are; it may take all 64 bits.
fn distance(from: Token, to: Token) -> u64 {
    to.wrapping_sub(from) as u64
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::*;

    /// A page of keys in token order; every 50th has a promoted index.
    fn page(keys: impl IntoIterator<Item = Vec<u8>>, data_step: u64) -> (IndexPage, Vec<PartitionKey>) {
        let mut keys: Vec<_> = keys.into_iter().map(|key| PartitionKey::new(Bytes::from(key))).collect();
        keys.sort();
        let mut builder = IndexPageBuilder::default();
        for (i, key) in keys.iter().enumerate() {
            let i = i as u64;
            let promoted = if i % 50 == 3 { i * 1000..i * 1000 + 77 } else { 0..0 };
            let entry = Entry { at: 0, key: key.bytes.clone(), data: 500 + i * data_step, promoted };
            builder.push(&entry, key.token).unwrap();
        }
        (builder.build(), keys)
    }

    fn check(page: &IndexPage, keys: &[PartitionKey], data_step: u64) {
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(page.find(key), Some(i));
            assert_eq!(page.key(i), &*key.bytes);
            let promoted = (i % 50 == 3).then(|| i as u64 * 1000..i as u64 * 1000 + 77);
            assert_eq!(page.entry(i), PageEntry { data: 500 + i as u64 * data_step, promoted });
        }
    }

    #[test]
    fn finds_every_key_and_no_other() {
        for data_step in [1, 60_000_000] {
            let (fixed, keys) = page((0..128u64).map(|i| i.to_be_bytes().repeat(2)), data_step);
            assert_eq!(fixed.keys, Keys::Fixed(16));
            check(&fixed, &keys, data_step);
            let (varied, keys) =
                page((0..300u64).map(|i| vec![b'k'; i as usize % 97 + 3 * i as usize]), data_step);
            assert_eq!(varied.keys, Keys::Ends);
            check(&varied, &keys, data_step);
            for absent in 1000..2000u64 {
                assert_eq!(fixed.find(&PartitionKey::new(Bytes::from(absent.to_be_bytes().repeat(2)))), None);
            }
        }
    }

    #[test]
    fn keys_of_one_token_are_told_apart() {
        let mut builder = IndexPageBuilder::default();
        for (i, key) in [b"aa", b"bb", b"cc"].iter().enumerate() {
            let entry = Entry { at: 0, key: Bytes::from(key.to_vec()), data: i as u64, promoted: 0..0 };
            builder.push(&entry, 42).unwrap();
        }
        let page = builder.build();
        assert_eq!(page.find(&PartitionKey { token: 42, bytes: Bytes::from(b"cc".to_vec()) }), Some(2));
        assert_eq!(page.find(&PartitionKey { token: 42, bytes: Bytes::from(b"dd".to_vec()) }), None);
        assert_eq!(page.find(&PartitionKey { token: 43, bytes: Bytes::from(b"cc".to_vec()) }), None);
    }

    #[test]
    fn tokens_from_end_to_end_of_the_ring() {
        let mut builder = IndexPageBuilder::default();
        let tokens = [i64::MIN + 1, -5, 0, 7, i64::MAX];
        for (i, &token) in tokens.iter().enumerate() {
            let entry = Entry { at: 0, key: Bytes::from(vec![i as u8]), data: i as u64, promoted: 0..0 };
            builder.push(&entry, token).unwrap();
        }
        let page = builder.build();
        for (i, &token) in tokens.iter().enumerate() {
            assert_eq!(page.find(&PartitionKey { token, bytes: Bytes::from(vec![i as u8]) }), Some(i));
        }
    }

    #[test]
    fn at_most_28_bytes_a_partition_with_16_byte_keys() {
        let (page, _) = page((0..128u64).map(|i| (u128::from(i) << 64 | 7).to_be_bytes().to_vec()), 900);
        let each = page.memory() as f64 / page.len() as f64;
        assert!(each <= 28.0, "{each} bytes a partition");
    }

    #[test]
    fn a_page_that_ended_early_goes_on() {
        let (whole, keys) = page((0..100u64).map(|i| i.to_be_bytes().to_vec()), 9);
        let entry = |number: usize| {
            let PageEntry { data, promoted } = whole.entry(number);
            Entry { at: 0, key: keys[number].bytes.clone(), data, promoted: promoted.unwrap_or_default() }
        };
        let mut builder = IndexPageBuilder::default();
        (0..40).for_each(|number| builder.push(&entry(number), keys[number].token).unwrap());
        builder.end_early(777);
        let early = builder.build();
        assert_eq!(early.rest(), Some(777));
        assert!(early.decides(&keys[3]) && early.decides(&keys[39]) && !early.decides(&keys[40]));

        let mut builder = IndexPageBuilder::resume(&early, model::key::token_of);
        (40..100).for_each(|number| builder.push(&entry(number), keys[number].token).unwrap());
        assert_eq!(builder.build(), whole);
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        let entry = |data| Entry { at: 0, key: Bytes::from(vec![1]), data, promoted: 0..0 };
        let mut builder = IndexPageBuilder::default();
        builder.push(&entry(5), 10).unwrap();
        assert!(builder.push(&entry(6), 9).is_err());
        assert!(builder.push(&entry(5), 11).is_err());
    }
}
