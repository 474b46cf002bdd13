//! Lookups among fences, page by page, through the shard's cache.

use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::rc::Rc;

use model::{Bytes, KeyView, PartitionKey, Token};
use runtime::{Cache, File};

use super::TREES;
use super::builder::{GROUPS, KEYS, PLACES, TOKENS};
use super::entries::{Group, GroupHead, Large, Near, TokenFence, compare_key};
use super::group_ranks::{AtRoot, GroupRanks};
use super::page::Node;
use super::top::Top;
use super::trailer::{Told, decode_trailer};
use super::tree::{Descent, Landed, Tree};
use crate::cache::cached_file::CachedFile;
use crate::data::row::Sought;
use crate::decode::{DecodeError, Decoded};
use crate::parts::binding::Binding;
use crate::parts::sealed_page::{PAGE, is_sound};
use crate::parts::usage::Usage;
use crate::{Error, Result, Version};

/// So many bytes at their end are read when their SSTable is opened: there are the upper levels of the trees. Smaller ones are read whole.
const TAIL: u64 = 32 << 10;

/// What is resident of open fences beside roots, tops and the file: the places in memory. Bytes.
const RESIDENT: usize = 896;
/// And of one of those beside its bytes.
const ROOT: usize = 40;

/// The fences of an SSTable as long as they are to be trusted.
#[derive(Debug)]
pub(crate) struct Fencing {
    fences: RefCell<Option<Rc<Fences>>>,
    state: RefCell<Usage>,
}

impl Fencing {
    /// What opening them gave.
    pub(crate) fn new(opened: std::result::Result<Fences, Usage>) -> Fencing {
        let (fences, state) = match opened {
            Ok(fences) => {
                let bytes = fences.file.len();
                (Some(Rc::new(fences)), Usage::InUse { bytes })
            }
            Err(state) => (None, state),
        };
        Fencing { fences: RefCell::new(fences), state: RefCell::new(state) }
    }

    pub(crate) fn get(&self) -> Option<Rc<Fences>> {
        self.fences.borrow().clone()
    }

    pub(crate) fn state(&self) -> Usage {
        self.state.borrow().clone()
    }

    /// Gives the fences up, because of what following them led to. Only what the operating system says of another file
    /// is no reason: that is handed back.
    pub(crate) fn give_up(&self, error: Error) -> Result<()> {
        let is_theirs = |path: &Path| self.get().is_none_or(|fences| fences.file.path() == path);
        if let Error::Io(io) = &error
            && !is_theirs(io.path())
        {
            return Err(error);
        }
        if self.fences.take().is_some() {
            self.state.replace(Usage::Ignored { why: error.to_string() });
        }
        Ok(())
    }
}

/// An open Fences.db.
pub(crate) struct Fences {
    file: CachedFile,
    version: Version,
    index_len: u64,
    has_digest: bool,
    is_undeleted: bool,
    trees: [Tree; TREES],
    /// Of those by tokens the nodes above the leaves, as far as they were read when the file was opened.
    tops: [Option<Top>; TREES],
    /// The roots of the others, as far as they are in the page of the trailer: what every read looks at.
    roots: [Option<Node>; TREES],
    /// That of groups as numbers, once it was asked for; none if it has others.
    group_ranks: OnceCell<Option<GroupRanks>>,
    /// The group that was asked for last by a block of it, and the one behind it. They keep no page.
    last_groups: RefCell<Option<(Group, Option<Group>)>>,
}

impl fmt::Debug for Fences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fences").field("file", &self.file).field("trees", &self.trees).finish_non_exhaustive()
    }
}

impl Fences {
    /// Opens the fences in `file`, if they are of the SSTable of this version and binding; otherwise says why not.
    pub(crate) async fn open(
        file: File,
        cache: Cache,
        version: Version,
        binding: Binding,
    ) -> std::result::Result<Fences, String> {
        let len = file.len();
        let at_once = TAIL.min(cache.capacity() as u64 / 2);
        let file = CachedFile::checked(file, cache, is_sound);
        if len < PAGE as u64 || !len.is_multiple_of(PAGE as u64) {
            return Err("it is cut off".to_owned());
        }
        file.prefetch(len - at_once.min(len)..len).await.map_err(|error| error.to_string())?;
        let page = file.read(len - PAGE as u64..len).await.map_err(|error| error.to_string())?;
        let Told { trees, is_undeleted } = decode_trailer(&page, len, &binding, version)?;
        let mut tops = [const { None }; TREES];
        for number in [TOKENS, PLACES] {
            let tree = &trees[usize::from(number)];
            let top = Top::of(tree, number, |page| file.at_hand(page)).map_err(|error| error.what())?;
            tops[usize::from(number)] = top;
        }
        let mut roots = roots(&trees, &page, len - PAGE as u64).map_err(|error| error.what())?;
        roots.iter_mut().zip(&tops).filter(|(_, top)| top.is_some()).for_each(|(root, _)| *root = None);
        let (index_len, has_digest) = (binding.index_len, binding.digest.is_some());
        let (group_ranks, last_groups) = (OnceCell::new(), RefCell::default());
        Ok(Fences {
            file,
            version,
            index_len,
            has_digest,
            is_undeleted,
            trees,
            tops,
            roots,
            group_ranks,
            last_groups,
        })
    }

    /// What is held in memory beside what the cache has, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let tops = self.tops.iter().flatten().map(|top| ROOT + top.memory_bytes()).sum::<usize>();
        let roots = self.roots.iter().flatten().map(|root| ROOT + root.memory_bytes()).sum::<usize>();
        // Those of groups are counted before they are there.
        let groups = self.roots[usize::from(GROUPS)].as_ref().map_or(0, Node::len);
        RESIDENT + self.file.memory_bytes() + tops + roots + GroupRanks::memory_bytes(groups)
    }

    /// Whether they are bound to the data by its digest.
    pub(crate) fn has_digest(&self) -> bool {
        self.has_digest
    }

    /// Whether it is certain that no partition of the SSTable is deleted as a whole. That is believed of what is bound to the data by
    /// its digest.
    pub(crate) fn deny_deletions(&self) -> bool {
        self.is_undeleted && self.has_digest
    }

    /// The file, for errors.
    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The fence before all entries with this token, and the one behind them, if there is one: no entry with the token
    /// is elsewhere. `None` if all tokens are above it.
    pub(crate) async fn token(&self, token: Token) -> Result<Option<(TokenFence, Option<TokenFence>)>> {
        let landed = self.find_token(TOKENS, token).await?;
        let Some(floor) = landed.floor else { return Ok(None) };
        let decode = |entry: &Bytes| self.decoded(TokenFence::decode(entry));
        Ok(Some((decode(&floor)?, landed.next.as_ref().map(decode).transpose()?)))
    }

    /// Between which places of the data all partitions with this token are. `None` if all tokens are above it.
    pub(crate) async fn near(&self, token: Token) -> Result<Option<Near>> {
        let landed = self.find_token(PLACES, token).await?;
        let near = landed.floor.map(|floor| Near::shared(&floor, landed.next.as_ref()));
        self.decoded(near.transpose())
    }

    /// What Index.db tells of a partition, if it is a large one.
    pub(crate) async fn large(&self, key: &PartitionKey) -> Result<Option<Large>> {
        let is_after = |entry: &[u8]| Ok(compare_key(entry, key.token, &key.bytes)?.is_gt());
        let Landed { floor, .. } = self.find(KEYS, is_after).await?;
        let Some(entry) = floor else { return Ok(None) };
        self.decoded(self.large_of(&entry, key.view()))
    }

    /// The same, as far as it is in memory.
    pub(crate) fn large_at_hand(&self, key: KeyView<'_>) -> Option<Large> {
        let is_after = |entry: &[u8]| Ok(compare_key(entry, key.token, key.bytes)?.is_gt());
        let Landed { floor, .. } = self.find_at_hand(KEYS, is_after)?;
        self.large_of(&floor?, key).ok().flatten()
    }

    /// The large partition of an entry, if it is that of a key.
    fn large_of(&self, entry: &[u8], key: KeyView<'_>) -> Decoded<Option<Large>> {
        match compare_key(entry, key.token, key.bytes)?.is_eq() {
            true => Large::decode(entry, self.version, self.index_len).map(Some),
            false => Ok(None),
        }
    }

    /// The last group of the partition that does not begin after `position`, and the first one that does.
    pub(crate) async fn groups_around(
        &self,
        ordinal: u64,
        sought: &Sought<'_>,
    ) -> Result<(Option<Group>, Option<Group>)> {
        let at_root = self.place_at_root(ordinal, sought);
        self.groups(ordinal, at_root, |group| sought.compare_prefix(group.first(self.version)?)).await
    }

    /// Where a position is among the entries of the groups' root, where they are numbers.
    #[inline]
    fn place_at_root(&self, ordinal: u64, sought: &Sought<'_>) -> Option<AtRoot> {
        let ranks = self.group_ranks.get_or_init(|| {
            let root = self.roots[usize::from(GROUPS)].as_ref()?;
            let descent = Descent::new(GROUPS, &self.trees[usize::from(GROUPS)])?;
            GroupRanks::of(root, &descent, self.version, sought.codec())
        });
        ranks.as_ref()?.place(ordinal, sought)
    }

    /// Where in the partition's blocks the group is that has a row if any has: in bytes from the first one, and empty where the row is
    /// before them all. `None` if that is not in memory. What is wrong is not told here; who reads finds it.
    pub(crate) fn group_of_row_at_hand(&self, ordinal: u64, row: &Sought<'_>) -> Option<Range<u64>> {
        let is_after = is_group_after(ordinal, |group| row.compare_prefix(group.first(self.version)?));
        let at_root = self.place_at_root(ordinal, row);
        let Landed { floor, next } = self.begin_behind(GROUPS, at_root, &is_after).ok()?.break_value()?;
        let floor = floor.as_ref().map(|floor| GroupHead::decode(floor)).transpose().ok()?;
        let Some(floor) = floor.filter(|group| group.ordinal == ordinal) else { return Some(0..0) };
        let next = next.as_ref().map(|next| GroupHead::decode(next)).transpose().ok()?;
        let end = match next.filter(|next| next.ordinal == ordinal) {
            Some(next) => next.at().ok()?,
            None => u64::MAX,
        };
        let start = floor.at().ok()?;
        (start < end).then_some(start..end)
    }

    /// The group with the block of this number, and the one behind it, if there is one. Who goes from block to block asks for the same
    /// one again.
    pub(crate) async fn group_of(&self, ordinal: u64, number: u32) -> Result<(Group, Option<Group>)> {
        let has = |(group, next): &&(Group, Option<Group>)| {
            let ends_behind = next.as_ref().is_none_or(|next| number < next.number);
            group.ordinal == ordinal && group.number <= number && ends_behind
        };
        if let Some(groups) = self.last_groups.borrow().as_ref().filter(has) {
            return Ok(groups.clone());
        }
        match self.groups(ordinal, None, |group| Ok(group.number()?.cmp(&number))).await? {
            (Some(group), next) => {
                let of = |group: &Group| Group { first: group.first.detached(), ..group.clone() };
                self.last_groups.replace(Some((of(&group), next.as_ref().map(of))));
                Ok((group, next))
            }
            (None, _) => Err(self.wrong("a large partition has no group for its first block")),
        }
    }

    /// What the fences said has turned out to be wrong.
    pub(crate) fn wrong(&self, what: &str) -> Error {
        Error::corrupt(self.path(), 0, what)
    }

    async fn groups(
        &self,
        ordinal: u64,
        at_root: Option<AtRoot>,
        compare: impl Fn(GroupHead<'_>) -> Decoded<Ordering>,
    ) -> Result<(Option<Group>, Option<Group>)> {
        let is_after = is_group_after(ordinal, compare);
        let begun = self.begin_behind(GROUPS, at_root, &is_after)?;
        let Landed { floor, next } = self.end(begun, is_after).await?;
        let decode = |entry: Bytes| self.decoded(Group::shared(&entry, self.version));
        let of_partition = |group: &Group| group.ordinal == ordinal;
        let floor = floor.map(decode).transpose()?.filter(of_partition);
        Ok((floor, next.map(decode).transpose()?.filter(of_partition)))
    }

    async fn find_token(&self, number: u8, token: Token) -> Result<Landed> {
        let is_after = |entry: &[u8]| Ok(TokenFence::token_of(entry)? > token);
        let Some(top) = &self.tops[usize::from(number)] else { return self.find(number, is_after).await };
        let Some((descent, next)) = top.find(token) else { return Ok(Landed::default()) };
        let begun = self.descend(descent, None, &is_after)?;
        let mut landed = self.end(begun, is_after).await?;
        if let (None, Some(next)) = (&landed.next, next) {
            let mut separator = Vec::new();
            next.put(&mut separator);
            landed.next = Some(Bytes::from(separator));
        }
        Ok(landed)
    }

    async fn find(&self, number: u8, is_after: impl Fn(&[u8]) -> Decoded<bool>) -> Result<Landed> {
        let begun = self.begin_behind(number, None, &is_after)?;
        self.end(begun, is_after).await
    }

    /// The same without a wait; `None` if a page is not in memory, or something is wrong.
    fn find_at_hand(&self, number: u8, is_after: impl Fn(&[u8]) -> Decoded<bool>) -> Option<Landed> {
        self.begin_behind(number, None, &is_after).ok()?.break_value()
    }

    /// Reads what is not in memory of the way down.
    async fn end(
        &self,
        mut came: ControlFlow<Landed, Descent>,
        is_after: impl Fn(&[u8]) -> Decoded<bool>,
    ) -> Result<Landed> {
        loop {
            let descent = match came {
                ControlFlow::Break(landed) => return Ok(landed),
                ControlFlow::Continue(descent) => descent,
            };
            let start = descent.page() * PAGE as u64;
            let page = self.file.read(start..start.saturating_add(PAGE as u64)).await?;
            came = self.descend(descent, Some(page), &is_after)?;
        }
    }

    /// From the root of a tree down, as far as nodes are in memory; with where it is among the root's entries what is looked for, if that
    /// is known.
    fn begin_behind(
        &self,
        number: u8,
        at_root: Option<AtRoot>,
        is_after: &impl Fn(&[u8]) -> Decoded<bool>,
    ) -> Result<ControlFlow<Landed, Descent>> {
        let Some(descent) = Descent::new(number, &self.trees[usize::from(number)]) else {
            return Ok(ControlFlow::Break(Landed::default()));
        };
        let stepped = match (&self.roots[usize::from(number)], at_root) {
            (None, _) => ControlFlow::Continue(descent),
            (Some(root), None) => self.step(descent, root, is_after)?,
            (Some(root), Some(AtRoot { count, share })) => {
                let start = descent.page() * PAGE as u64;
                descent
                    .at_share(share)
                    .step_behind(root, count)
                    .map_err(|error| self.corrupt(start, error))?
            }
        };
        match stepped {
            ControlFlow::Continue(descent) => self.descend(descent, None, is_after),
            landed => Ok(landed),
        }
    }

    /// Further down, as far as nodes are in memory, the first one maybe in a page that was read.
    fn descend(
        &self,
        mut descent: Descent,
        mut read: Option<Bytes>,
        is_after: &impl Fn(&[u8]) -> Decoded<bool>,
    ) -> Result<ControlFlow<Landed, Descent>> {
        while let Some(page) = read.take().or_else(|| self.file.at_hand(descent.page())) {
            let start = descent.page() * PAGE as u64;
            let node = descent.node_in(&page).map_err(|error| self.corrupt(start, error))?;
            descent = match self.step(descent, &node, is_after)? {
                ControlFlow::Continue(descent) => descent,
                landed => return Ok(landed),
            };
        }
        Ok(ControlFlow::Continue(descent))
    }

    /// One level down, by its node.
    #[inline(never)]
    fn step(
        &self,
        descent: Descent,
        node: &Node,
        is_after: &impl Fn(&[u8]) -> Decoded<bool>,
    ) -> Result<ControlFlow<Landed, Descent>> {
        let start = descent.page() * PAGE as u64;
        descent.step(node, is_after).map_err(|error| self.corrupt(start, error))
    }

    fn decoded<T>(&self, decoded: Decoded<T>) -> Result<T> {
        decoded.map_err(|error| self.corrupt(0, error))
    }

    fn corrupt(&self, start: u64, error: DecodeError) -> Error {
        error.in_file(self.path(), start)
    }
}

/// Whether an entry of groups is after what is looked for, which compares the groups of its partition.
fn is_group_after(
    ordinal: u64,
    compare: impl Fn(GroupHead<'_>) -> Decoded<Ordering>,
) -> impl Fn(&[u8]) -> Decoded<bool> {
    move |entry| {
        let group = GroupHead::decode(entry)?;
        Ok(match group.ordinal.cmp(&ordinal) {
            Ordering::Equal => compare(group)?.is_gt(),
            order => order.is_gt(),
        })
    }
}

/// The roots of trees that are in a page, which begins at `start` of the file.
fn roots(trees: &[Tree; TREES], page: &Bytes, start: u64) -> Decoded<[Option<Node>; TREES]> {
    let mut roots = [const { None }; TREES];
    for (number, (tree, root)) in (0..).zip(trees.iter().zip(&mut roots)) {
        let descent = Descent::new(number, tree).filter(|descent| descent.page() == start / PAGE as u64);
        *root = descent.map(|descent| descent.node_in(page)?.detached()).transpose()?;
    }
    Ok(roots)
}
