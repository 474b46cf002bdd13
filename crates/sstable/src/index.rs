//! From a position to the exact range of data that holds it.
//!
//! ```text
//! key → bloom filter → summary → index page → where the partition is
//! key → fences: as the summary; for a large partition also all that the index page has; a small one is then read from the data
//!       directly (`seek.rs`)
//! slice → promoted index → which of its blocks, where they are, which tombstone is open there
//! ```

use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use model::key::{murmur3, token_of_hash};
use model::{Bytes, KeyView, PartitionKey, Schema, Slice, Token};

use crate::big::entry::{Entry, EntryScanner, IndexSource, Promoted};
use crate::big::promoted_cursor::{BlockIndex, Found, PromotedCursor, Search};
use crate::cache::cached_file::{CachedFile, PAGE, PageStats};
use crate::cache::index_page::IndexPage;
use crate::cache::partition_index_cache::PartitionIndexCache;
use crate::data::row::RowCodec;
use crate::key_filter::KeyFilter;
use crate::key_summary::KeySummary;
use crate::parts::fences::{Fences, Fencing, Large};
use crate::parts::statistics::Partitioner;
use crate::parts::summary::Summary;
use crate::{Error, Result, Version};

/// While Index.db is read from entry to entry, this many bytes at a time at the most.
pub(crate) const INDEX_STEP: u64 = 64 << 10;

/// The index of one SSTable.
#[derive(Debug)]
pub struct Index {
    pub(crate) filter: KeyFilter,
    pub(crate) summary: KeySummary,
    pub(crate) pages: PartitionIndexCache,
    /// Pages between two fences: their ends are not those of the summary.
    pub(crate) fenced_pages: PartitionIndexCache,
    pub(crate) fencing: Rc<Fencing>,
    /// The large partition that was asked for last: where there is one, it is mostly asked for again.
    pub(crate) last_large: RefCell<Option<(PartitionKey, Large)>>,
    pub(crate) blocks: BlockIndex,
    pub(crate) partitioner: Partitioner,
    pub(crate) schema: Rc<Schema>,
    pub(crate) data_len: u64,
}

/// Where a partition is.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where it begins in the uncompressed data.
    pub start: u64,
    /// Where in Index.db its promoted index is.
    pub promoted: Option<Range<u64>>,
    /// Where it ends in the data, if the index page told.
    end: OnceCell<u64>,
    /// Where in Index.db the next entry is, if there is one and the page did not tell.
    next_entry: Option<u64>,
}

/// A stretch of Index.db: who looks for a key has all of its entries there that may be of it.
struct Stretch {
    start: u64,
    /// Where the one behind it begins, if there is one.
    next: Option<u64>,
    /// The token of its first entry.
    first: Token,
    /// The token of the first entry of the one behind it.
    next_first: Option<Token>,
}

impl Place {
    /// Whether it is known where the partition ends: the last one does where the data does.
    pub(crate) fn has_end(&self) -> bool {
        self.end.get().is_some() || self.next_entry.is_none()
    }
}

impl Index {
    /// The key with what the partitioner makes of it. Tables of a secondary index have no tokens: their
    /// partitions stand in the order of the key's type.
    pub fn decorate(&self, bytes: Bytes) -> PartitionKey {
        PartitionKey { token: token_for(self.partitioner, &bytes), bytes }
    }

    /// Which partitions may be there.
    #[inline]
    pub fn filter(&self) -> &KeyFilter {
        &self.filter
    }

    /// Where the partition of this key is, if it is there.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn find(&self, key: &PartitionKey) -> Result<Option<Place>> {
        match self.filter.may_contain(key).await? {
            true => self.look_up(key).await,
            false => Ok(None),
        }
    }

    /// The same of a key that the filter has let pass, or that is there for sure: the filter is not asked.
    ///
    /// # Errors
    /// Those of [`Index::find`].
    pub async fn look_up(&self, key: &PartitionKey) -> Result<Option<Place>> {
        if let Some(fences) = self.fencing.get() {
            match self.find_by_fences(&fences, key).await {
                // Without a digest they may be those of another SSTable: then their word is not the last one on what is absent.
                Ok(found) if found.is_some() || fences.has_digest() => return Ok(found),
                Ok(_) => {}
                Err(error) => self.fencing.give_up(error)?,
            }
        }
        let Some(stretch) = self.by_summary(self.summary.get().await?, key.view()) else {
            return Ok(None);
        };
        let page = self.pages.page(self.bytes(&stretch), key).await?;
        self.place_in(&page, key, &stretch)
    }

    /// Where in the data the first wanted partition begins: its end where there is none. None before the given place is wanted.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub(crate) async fn data_from(
        &self,
        place: KeyView<'_>,
        is_wanted: impl Fn(KeyView<'_>) -> bool,
    ) -> Result<u64> {
        // Only what is bound to the data by a digest is believed of what is in front of a stretch.
        if let Some(fences) = self.fencing.get().filter(|fences| fences.has_digest()) {
            let found = match self.by_fences(&fences, place.token).await {
                Ok(stretch) => self.first_in(stretch, &is_wanted).await,
                Err(error) => Err(error),
            };
            match found {
                Ok(found) => return Ok(found),
                Err(error) => self.fencing.give_up(error)?,
            }
        }
        let summary = self.summary.get().await?;
        self.first_in(self.by_summary(summary, place), &is_wanted).await
    }

    /// What the fences tell of the partition of a key that the filter has let pass, if it is a large one. It is to be
    /// trusted as soon as a block is found by it, or the row filter knows the group.
    pub(crate) async fn look_up_large(&self, fences: &Fences, key: &PartitionKey) -> Result<Option<Large>> {
        if let Some((_, large)) = self.last_large.borrow().as_ref().filter(|(last, _)| last == key) {
            return Ok(Some(large.clone()));
        }
        let found = fences.large(key).await?;
        found.iter().for_each(|large| self.note_large(key.view(), large));
        Ok(found)
    }

    /// The same, as far as it is in memory and there are fences.
    pub(crate) fn large_at_hand(&self, key: KeyView<'_>) -> Option<Large> {
        let fences = self.fencing.get()?;
        if let Some((_, large)) = self.last_large.borrow().as_ref().filter(|(last, _)| last.view() == key) {
            return Some(large.clone());
        }
        let found = fences.large_at_hand(key)?;
        self.note_large(key, &found);
        Some(found)
    }

    /// Mostly it is asked for again.
    fn note_large(&self, key: KeyView<'_>, large: &Large) {
        let key = PartitionKey { token: key.token, bytes: Bytes::from(key.bytes) };
        self.last_large.replace(Some((key, large.clone())));
    }

    /// Whether memory alone tells that the row with these values in all clustering columns is not in a partition, nor a range tombstone
    /// around it. The filter of keys is asked whether it denies the partition, if that is not the one that was found last.
    pub(crate) fn denies_row(
        &self,
        codec: &RowCodec,
        key: KeyView<'_>,
        row: &[&[u8]],
        filter: impl FnOnce() -> bool,
    ) -> bool {
        let Some(fences) = self.fencing.get() else { return filter() };
        let denies = |large: &Large| {
            let cursor = self.cursor(codec, &large.promoted).with_rows();
            cursor.denies_at_hand(&fences, row)
        };
        if let Some((_, large)) = self.last_large.borrow().as_ref().filter(|(last, _)| last.view() == key) {
            return denies(large);
        }
        filter() || fences.large_at_hand(key).is_some_and(|large| denies(&large))
    }

    /// The partition's range in the data.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn range(&self, place: &Place) -> Result<Range<u64>> {
        if let Some(&end) = place.end.get() {
            return Ok(place.start..end);
        }
        let end = match place.next_entry {
            Some(next) => self.first_data_from(next).await?,
            None => self.data_len,
        };
        Ok(place.start..*place.end.get_or_init(|| end))
    }

    /// The head of the partition's promoted index, if it has one.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn promoted(&self, place: &Place) -> Result<Option<Promoted>> {
        match &place.promoted {
            Some(range) => Promoted::read(self.file(), range.clone(), self.version()).await.map(Some),
            None => Ok(None),
        }
    }

    /// The same of an entry: no key is looked for.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn promoted_of(&self, entry: &Entry) -> Result<Option<Promoted>> {
        if entry.promoted.is_empty() {
            return Ok(None);
        }
        Promoted::read(self.file(), entry.promoted.clone(), self.version()).await.map(Some)
    }

    /// The blocks of a partition that can hold rows of the slice, the last slice before which began in block `from`.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn find_blocks(
        &self,
        codec: &RowCodec,
        promoted: &Promoted,
        (slice, from): (&Slice, u32),
        search: Search,
    ) -> Result<Found> {
        self.cursor(codec, promoted).looking_from(from).find(slice, search).await
    }

    /// A cursor over the blocks of a partition.
    pub fn cursor<'a>(&'a self, codec: &'a RowCodec, promoted: &'a Promoted) -> PromotedCursor<'a> {
        PromotedCursor::new(&self.blocks, codec, &self.schema, promoted)
    }

    /// How reads of Index.db found its pages.
    pub fn page_stats(&self) -> PageStats {
        self.file().stats()
    }

    async fn find_by_fences(&self, fences: &Fences, key: &PartitionKey) -> Result<Option<Place>> {
        let Some(stretch) = self.by_fences(fences, key.token).await? else {
            return Ok(None);
        };
        let page = self.fenced_pages.page(self.bytes(&stretch), key).await?;
        if page.first_token() != Some(stretch.first) {
            return Err(fences.wrong("another token stands where the fences send a reader"));
        }
        self.place_in(&page, key, &stretch)
    }

    /// The place of a key's partition, if the page of that stretch has it.
    fn place_in(&self, page: &IndexPage, key: &PartitionKey, stretch: &Stretch) -> Result<Option<Place>> {
        let Some(entry) = page.find(key) else {
            // The filter has let the key pass, so this is rare.
            let token_of = |key: &[u8]| token_for(self.partitioner, key);
            let is_in_order = page.first_token() == Some(stretch.first)
                && page.is_in_order_at(key.token, stretch.next_first, token_of);
            return if is_in_order { Ok(None) } else { Err(self.out_of_order(stretch.start)) };
        };
        let end = entry.next_data.map_or_else(OnceCell::new, OnceCell::from);
        let next_entry = page.rest().or(stretch.next);
        Ok(Some(Place { start: entry.data, promoted: entry.promoted, end, next_entry }))
    }

    /// Where in the data the first wanted partition of a stretch begins, or that of the first entry behind it. Without a stretch, what
    /// is wanted is the first of all.
    async fn first_in(
        &self,
        stretch: Option<Stretch>,
        is_wanted: impl Fn(KeyView<'_>) -> bool,
    ) -> Result<u64> {
        let stretch = stretch.unwrap_or_else(|| {
            let first = token_for(self.partitioner, self.summary.first_key());
            Stretch { start: 0, next: Some(0), first, next_first: Some(first) }
        });
        // Who asks where a range begins asks where it ends next, which is mostly in the same pages.
        let end = self.file().len();
        // What is wanted may be the first entry of the next stretch.
        let behind = stretch.next.map_or(end, |next| end.min((next + 1).next_multiple_of(PAGE)));
        let step = (behind - stretch.start).min(INDEX_STEP);
        let source = IndexSource::Cached(self.file().clone());
        let mut entries = EntryScanner::new(source, stretch.start..end, step);
        let (mut at, mut least) = (stretch.start, stretch.first);
        while let Some(entry) = entries.next().await? {
            let token = token_for(self.partitioner, &entry.key);
            let is_first = at == stretch.start;
            let is_above = stretch.next_first.is_some_and(|most| token > most);
            if token < least || is_above || (is_first && token != stretch.first) {
                return Err(self.out_of_order(at));
            }
            if is_wanted(KeyView { token, bytes: &entry.key }) {
                return Ok(entry.data);
            }
            (at, least) = (entries.position(), token);
        }
        Ok(self.data_len)
    }

    /// The stretch between two fences that has all entries with a token; `None` if all tokens are above it.
    async fn by_fences(&self, fences: &Fences, token: Token) -> Result<Option<Stretch>> {
        let Some((fence, next)) = fences.token(token).await? else {
            return Ok(None);
        };
        let (at, next_first) = (next.as_ref().map(|next| next.at), next.map(|next| next.token));
        let stretch = Stretch { start: fence.at, next: at, first: fence.token, next_first };
        let bytes = self.bytes(&stretch);
        if bytes.is_empty() || bytes.end > self.file().len() {
            return Err(fences.wrong("the places of tokens do not ascend"));
        }
        Ok(Some(stretch))
    }

    /// The stretch between two entries of the summary that alone can have a key; `None` if that is before all.
    fn by_summary(&self, summary: &Summary, key: KeyView<'_>) -> Option<Stretch> {
        let token_of = |sample: usize| match self.partitioner {
            Partitioner::Murmur3 => summary.token(sample),
            // The summary has a token of each key, also where the partitioner has none.
            Partitioner::Local => token_for(self.partitioner, summary.entry(sample).0),
        };
        let sample = match self.partitioner {
            Partitioner::Murmur3 => summary.floor(key.token, key.bytes)?,
            Partitioner::Local => {
                summary.floor_by(|sample| self.schema.partition_key.compare(sample, key.bytes))?
            }
        };
        let (start, next) = summary.stretch(sample);
        let next_first = next.map(|_| token_of(sample + 1));
        Some(Stretch { start, next, first: token_of(sample), next_first })
    }

    fn bytes(&self, stretch: &Stretch) -> Range<u64> {
        stretch.start..stretch.next.unwrap_or_else(|| self.file().len())
    }

    fn out_of_order(&self, at: u64) -> Error {
        Error::corrupt(self.file().path(), at, "the partitions of the index from here on are out of order")
    }

    fn file(&self) -> &CachedFile {
        self.pages.file()
    }

    fn version(&self) -> Version {
        self.blocks.version
    }

    /// Where in the data the partition of the entry at `at` begins.
    async fn first_data_from(&self, at: u64) -> Result<u64> {
        let source = IndexSource::Cached(self.file().clone());
        let end = self.file().len();
        let first = PAGE - at % PAGE;
        let entry = EntryScanner::new(source, at..end, first.min(64)).next().await?;
        Ok(entry.map_or(self.data_len, |entry| entry.data))
    }
}

/// The token of a key, or 0 where the partitioner has none.
pub(crate) fn token_for(partitioner: Partitioner, key: &[u8]) -> i64 {
    match partitioner {
        Partitioner::Murmur3 => token_of_hash(murmur3(key)),
        Partitioner::Local => 0,
    }
}
