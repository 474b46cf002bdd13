//! Fences from the entries and blocks of Index.db, as these go by.

use model::{DeletionTime, Token};

use super::entries::{Large, TokenFence, put_group, put_key};
use super::page::Pages;
use super::trailer::{TRAILER, put_trailer};
use super::tree::TreeBuilder;
use super::{LONGEST, STRETCH};
use crate::Version;
use crate::big::entry::Promoted;
use crate::parts::binding::Binding;

/// The numbers of the trees, in nodes.
pub(super) const TOKENS: u8 = 0;
pub(super) const KEYS: u8 = 1;
pub(super) const GROUPS: u8 = 2;

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
    last_token: Option<Token>,
    /// The stretch of Index.db that has the last fence.
    last_stretch: Option<u64>,
    /// The token of the last large partition.
    last_large: Option<Token>,
    /// The current entry.
    token: Token,
    key: Vec<u8>,
    at: u64,
    noted: Noted,
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
            last_token: None,
            last_stretch: None,
            last_large: None,
            token: 0,
            key: Vec::new(),
            at: 0,
            noted: Noted::default(),
        }
    }

    /// The current partition's entry begins at `at` of Index.db.
    ///
    /// # Panics
    /// If the partitions are out of order.
    pub fn entry(&mut self, token: Token, key: &[u8], at: u64) {
        assert!(self.last_token.is_none_or(|last| last <= token), "partitions ascend by their token");
        // Entries of one token never stand on two sides of a fence: the first entry of the next token is one.
        let is_new_token = self.last_token.replace(token) != Some(token);
        let stretch = at / STRETCH;
        if is_new_token && self.last_stretch.replace(stretch) != Some(stretch) {
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
    /// blocks are forgotten.
    pub fn end_entry(&mut self, promoted: Option<&Promoted>, data: u64) {
        let fits = !self.noted.is_unfit && self.key.len() <= LONGEST;
        if let Some(promoted) = promoted.filter(|promoted| fits && is_large(promoted)) {
            self.large(promoted, data);
        }
        self.noted.blocks.clear();
        self.noted.prefixes.clear();
        self.noted.is_unfit = false;
    }

    /// Whether fences would spare a read anything: there is a large partition, or Index.db is no single stretch.
    pub fn is_worthwhile(&self) -> bool {
        self.keys.len() > 0 || self.tokens.len() > 1
    }

    /// The pages that are finished, to be appended to the file.
    pub fn take_pages(&mut self) -> Vec<u8> {
        self.pages.take()
    }

    /// The rest of the file.
    pub fn finish(mut self, binding: Binding) -> Vec<u8> {
        let trees = [self.tokens, self.keys, self.groups].map(|tree| tree.finish(&mut self.pages));
        self.pages.finish(|pages| put_trailer(&trees, &binding, self.version, pages), TRAILER)
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

/// Whether a partition has fences of its own.
pub(super) fn is_large(promoted: &Promoted) -> bool {
    promoted.blocks.end - promoted.blocks.start > STRETCH
}
