//! Fences from the entries and blocks of Index.db, as these go by.

use model::{DeletionTime, Token};

use super::entries::{Large, PlaceFence, Spot, TokenFence, put_group, put_key};
use super::page::Pages;
use super::trailer::{TRAILER, Told, put_trailer};
use super::tree::TreeBuilder;
use super::{LONGEST, MOST_SPOTS, STRETCH};
use crate::Version;
use crate::big::entry::Promoted;
use crate::parts::binding::Binding;

/// The numbers of the trees, in nodes.
pub(super) const TOKENS: u8 = 0;
pub(super) const KEYS: u8 = 1;
pub(super) const GROUPS: u8 = 2;
pub(super) const PLACES: u8 = 3;

/// So many bytes of pages are a request. Bytes.
const FULL: usize = 64 << 10;

/// Builds fences.
///
/// For each partition, in the order of Index.db: [`FencesBuilder::entry`], once where its entry begins is known,
/// [`FencesBuilder::block`] for each of its blocks, if they are two or more, before that or after it, and
/// [`FencesBuilder::end_entry`].
///
/// Pages are finished as they fill. What is kept until the end is a key or prefix for each of them, and what is kept of
/// one partition is about a hundredth of its index.
#[derive(Debug)]
pub struct FencesBuilder {
    version: Version,
    pages: Pages,
    tokens: TreeBuilder,
    keys: TreeBuilder,
    groups: TreeBuilder,
    places: TreeBuilder,
    /// The last place, and its partitions, to which others are added yet.
    place: Option<PlaceFence>,
    spots: Vec<[u8; Spot::BYTES]>,
    last_token: Option<Token>,
    /// The stretch of Index.db that has the last fence.
    last_stretch: Option<u64>,
    /// The token of the last large partition.
    last_large: Option<Token>,
    /// The current entry.
    token: Token,
    /// Whether its token is another one than that of the entry before it.
    is_new_token: bool,
    key: Vec<u8>,
    at: u64,
    noted: Noted,
    is_undeleted: bool,
}

/// The first block of each stretch of the current partition's blocks.
#[derive(Debug, Default)]
struct Noted {
    blocks: Vec<NotedBlock>,
    /// Their first positions, encoded, one after the other.
    prefixes: Vec<u8>,
    /// One of them has no place among the fences.
    is_unfit: bool,
}

#[derive(Debug)]
struct NotedBlock {
    number: u32,
    at: u64,
    open: DeletionTime,
    prefix_end: usize,
}

impl FencesBuilder {
    /// Without fences. The version is that of the SSTable.
    pub fn new(version: Version) -> FencesBuilder {
        FencesBuilder {
            version,
            pages: Pages::default(),
            tokens: TreeBuilder::new(TOKENS),
            keys: TreeBuilder::new(KEYS),
            groups: TreeBuilder::new(GROUPS),
            places: TreeBuilder::new(PLACES),
            place: None,
            spots: Vec::new(),
            last_token: None,
            last_stretch: None,
            last_large: None,
            token: 0,
            is_new_token: true,
            key: Vec::new(),
            at: 0,
            noted: Noted::default(),
            is_undeleted: false,
        }
    }

    /// The fences are to tell that no partition is deleted as a whole. Index.db does not tell that of small ones, nor does Statistics.db
    /// before `oa`, if anything in it is deleted or expires.
    pub fn tell_undeleted(&mut self) {
        self.is_undeleted = true;
    }

    /// The current partition's entry begins at `at` of Index.db.
    ///
    /// # Panics
    /// If the partitions are out of order.
    pub fn entry(&mut self, token: Token, key: &[u8], at: u64) {
        assert!(self.last_token.is_none_or(|last| last <= token), "partitions ascend by their token");
        // Entries of one token never stand on two sides of a fence: the first entry of the next token is one.
        self.is_new_token = self.last_token.replace(token) != Some(token);
        let stretch = at / STRETCH;
        if self.is_new_token && self.last_stretch.replace(stretch) != Some(stretch) {
            let mut entry = Vec::new();
            TokenFence { token, at }.put(&mut entry);
            self.tokens.push(&entry, &entry, &mut self.pages);
        }
        (self.token, self.at) = (token, at);
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    /// The next block of the current partition's promoted index begins `at` bytes behind its first one. `first` is the
    /// position of its first row or marker, as the index has it, and `open` the range tombstone that is open there.
    pub fn block(&mut self, number: u32, at: u64, first: &[u8], open: DeletionTime) {
        let noted = &mut self.noted;
        if noted.blocks.last().is_some_and(|last| last.at / STRETCH == at / STRETCH) {
            return;
        }
        noted.is_unfit |= first.len() > LONGEST;
        if !noted.is_unfit {
            noted.prefixes.extend_from_slice(first);
            noted.blocks.push(NotedBlock { number, at, open, prefix_end: noted.prefixes.len() });
        }
    }

    /// The current partition, which begins at `data` of the uncompressed data, is at its end. If it is not large, its
    /// blocks are forgotten. Whether it is, and has fences of its own.
    pub fn end_entry(&mut self, promoted: Option<&Promoted>, data: u64) -> bool {
        self.add_place(data, promoted.is_some());
        let fits = !self.noted.is_unfit && self.key.len() <= LONGEST;
        let large = promoted.filter(|promoted| fits && is_large(promoted));
        if let Some(promoted) = large {
            self.large(promoted, data);
        }
        self.noted.blocks.clear();
        self.noted.prefixes.clear();
        self.noted.is_unfit = false;
        large.is_some()
    }

    /// Whether fences would spare a read anything: there is a large partition, Index.db or the data is no single
    /// stretch, or they tell that nothing is deleted as a whole.
    pub fn is_worthwhile(&self) -> bool {
        // The last place is not among them yet.
        self.keys.len() > 0 || self.tokens.len() > 1 || self.places.len() > 0 || self.is_undeleted
    }

    /// Whether so many pages are finished that appending them to the file is worth a request.
    pub fn is_full(&self) -> bool {
        self.pages.ready() >= FULL
    }

    /// The pages that are finished, to be appended to the file.
    pub fn take_pages(&mut self) -> Vec<u8> {
        self.pages.take()
    }

    /// The rest of the file.
    pub fn finish(mut self, binding: Binding) -> Vec<u8> {
        self.end_place();
        let trees = [self.tokens, self.keys, self.groups, self.places];
        let trees = trees.map(|tree| tree.finish(&mut self.pages));
        let told = Told { trees, is_undeleted: self.is_undeleted };
        self.pages.finish(|pages| put_trailer(&told, &binding, self.version, pages), TRAILER)
    }

    /// Adds the current partition to the last place, or begins another one with it.
    fn add_place(&mut self, data: u64, has_blocks: bool) {
        let is_near = |place: &PlaceFence| place.data <= data && data / STRETCH == place.data / STRETCH;
        let has_room = self.spots.len() < MOST_SPOTS;
        match &mut self.place {
            Some(place) if is_near(place) && has_room && !has_blocks && !place.has_blocks => {}
            // Those of one token are never on two sides of a fence. What does not fit is told of none: Index.db has all.
            Some(place) if !self.is_new_token => place.has_blocks = true,
            _ => {
                self.end_place();
                self.place = Some(PlaceFence { token: self.token, data, has_blocks });
            }
        }
        if let Some(place) = &self.place
            && !place.has_blocks
        {
            // Both lie within one stretch.
            self.spots.push(Spot::new(self.token, (data - place.data) as u16).encode());
        }
    }

    fn end_place(&mut self) {
        if let Some(place) = self.place.take() {
            let mut entry = Vec::new();
            place.put(&mut entry);
            let separator = entry.len();
            if !place.has_blocks {
                entry.extend_from_slice(self.spots.as_flattened());
            }
            self.places.push(&entry, &entry[..separator], &mut self.pages);
        }
        self.spots.clear();
    }

    fn large(&mut self, promoted: &Promoted, data: u64) {
        let ordinal = self.keys.len();
        let (mut entry, mut separator) = (Vec::new(), Vec::new());
        put_key(self.token, &self.key, &mut entry);
        let key: &[u8] = if self.last_large == Some(self.token) { &self.key } else { &[] };
        put_key(self.token, key, &mut separator);
        let large = Large { ordinal, at: self.at, data, promoted: promoted.clone() };
        large.put(self.version, &mut entry);
        self.keys.push(&entry, &separator, &mut self.pages);
        self.last_large = Some(self.token);

        let mut start = 0;
        for block in &self.noted.blocks {
            entry.clear();
            let first = &self.noted.prefixes[start..block.prefix_end];
            put_group((ordinal, block.number, block.at), &block.open, first, self.version, &mut entry);
            self.groups.push(&entry, &entry, &mut self.pages);
            start = block.prefix_end;
        }
    }
}

/// Whether a partition has fences of its own, if what they tell of it is not too long.
pub(crate) fn is_large(promoted: &Promoted) -> bool {
    promoted.blocks.end - promoted.blocks.start > STRETCH
}
