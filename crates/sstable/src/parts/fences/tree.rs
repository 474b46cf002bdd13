//! A static tree of sorted entries: built from its leaves up, as the entries come, and descended from its root.
//!
//! ```text
//! leaf    entries: a key, and what is known of it
//! inner   entries: vint place of a node one level below, then its separator: a key that is above all entries
//!         before that node, and not above any in it
//! ```
//!
//! Leaves go out as they fill. The separators of all others are kept until the end.

use std::ops::ControlFlow;

use model::Bytes;

use super::page::{Node, NodeBuilder, Pages};
use crate::decode::{Cursor, Decoded, behind_vint};
use crate::encode::Encode;
use crate::parts::sealed_page::PAGE;

/// Where a tree is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Tree {
    /// The place of its root in the file.
    pub(super) root: u64,
    /// How many levels it has; none where it has no entries.
    pub(super) levels: u8,
    /// How many entries its leaves have.
    pub(super) entries: u64,
}

/// Builds a tree.
#[derive(Debug)]
pub(super) struct TreeBuilder {
    tree: u8,
    leaf: NodeBuilder,
    /// The separator of the leaf that is being filled.
    first: Vec<u8>,
    /// Those of the leaves before it, and where these are.
    above: Vec<(Vec<u8>, u64)>,
    entries: u64,
}

impl TreeBuilder {
    /// A tree of this number, without entries.
    pub(super) fn new(tree: u8) -> TreeBuilder {
        TreeBuilder {
            tree,
            leaf: NodeBuilder::new(tree, 0),
            first: Vec::new(),
            above: Vec::new(),
            entries: 0,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.entries
    }

    /// Adds the next entry; `separator` is above the one before it, and not above this one.
    pub(super) fn push(&mut self, entry: &[u8], separator: &[u8], pages: &mut Pages) {
        if !self.leaf.has_room(entry.len()) {
            let place = pages.add(&mut self.leaf);
            self.above.push((std::mem::take(&mut self.first), place));
        }
        if self.leaf.is_empty() {
            self.first.extend_from_slice(separator);
        }
        self.leaf.push(entry);
        self.entries += 1;
    }

    /// Puts what is left into the pages.
    pub(super) fn finish(mut self, pages: &mut Pages) -> Tree {
        if self.leaf.is_empty() {
            return Tree::default();
        }
        let place = pages.add_shared(&mut self.leaf);
        self.above.push((self.first, place));
        let mut levels = 1;
        while self.above.len() > 1 {
            self.above = inner_level(self.tree, levels, &self.above, pages);
            levels += 1;
        }
        Tree { root: self.above[0].1, levels, entries: self.entries }
    }
}

/// Builds the nodes above those that are given with their separators; the same of the new ones.
fn inner_level(tree: u8, level: u8, below: &[(Vec<u8>, u64)], pages: &mut Pages) -> Vec<(Vec<u8>, u64)> {
    let mut nodes = Vec::new();
    let mut node = NodeBuilder::new(tree, level);
    let mut first = &below[0].0;
    let mut entry = Vec::new();
    for (separator, place) in below {
        entry.clear();
        entry.put_vint(*place);
        entry.put(separator);
        if !node.has_room(entry.len()) {
            nodes.push((first.clone(), pages.add(&mut node)));
            first = separator;
        }
        node.push(&entry);
    }
    nodes.push((first.clone(), pages.add_shared(&mut node)));
    nodes
}

/// On the way from the root of a tree to the last entry that is not after what is looked for.
///
/// [`Descent::place`] says which node to read; [`Descent::step`] goes down by it.
#[derive(Debug)]
pub(super) struct Descent {
    tree: u8,
    place: u64,
    level: u8,
    next: Option<Bytes>,
    /// How far through the entries of the next node what is looked for seems to be: 0 at the first one, 1 behind the last one. It may be
    /// anything where a file makes no sense.
    share: Option<f64>,
}

/// Where a descent ended.
#[derive(Debug, Default)]
pub(super) struct Landed {
    /// The last entry that is not after what is looked for.
    pub(super) floor: Option<Bytes>,
    /// The first entry that is; of one in the next leaf, its separator.
    pub(super) next: Option<Bytes>,
}

impl Descent {
    /// At the root of a tree that has entries.
    pub(super) fn new(number: u8, tree: &Tree) -> Option<Descent> {
        Some(Descent::at(number, tree.root, tree.levels.checked_sub(1)?))
    }

    /// At a node of a tree, which is at this place and of this level. Leaves are of level 0.
    pub(super) fn at(number: u8, place: u64, level: u8) -> Descent {
        Descent { tree: number, place, level, next: None, share: None }
    }

    /// The same, which looks for its goal about here in the next node.
    pub(super) fn at_share(self, share: Option<f64>) -> Descent {
        Descent { share, ..self }
    }

    /// Where in the file the next node is.
    pub(super) fn place(&self) -> u64 {
        self.place
    }

    /// The number of the page that it is in.
    pub(super) fn page(&self) -> u64 {
        self.place / PAGE as u64
    }

    /// The node, in the page that it is in.
    pub(super) fn node_in(&self, page: &Bytes) -> Decoded<Node> {
        Node::decode(page, (self.place % PAGE as u64) as usize, self.tree, self.level)
    }

    /// Goes one level down, by the node. `is_after` says of a key, with whatever follows it, whether it is after what is
    /// looked for.
    #[inline]
    pub(super) fn step(
        mut self,
        node: &Node,
        mut is_after: impl FnMut(&[u8]) -> Decoded<bool>,
    ) -> Decoded<ControlFlow<Landed, Descent>> {
        // One place where it is called, so that it can stand there.
        // What is no share becomes a number all the same, and one behind the last entry is looked for from there.
        let near = self.share.take().map(|share| (share * node.len() as f64) as usize);
        let count = node.count_until(near, |entry| is_after(self.key(entry)?))?;
        self.step_behind(node, count)
    }

    /// The key in an entry of the node, with whatever follows it.
    #[inline]
    pub(super) fn key<'e>(&self, entry: &'e [u8]) -> Decoded<&'e [u8]> {
        if self.level == 0 { Ok(entry) } else { behind_vint(entry) }
    }

    /// The same where it is known how many entries of the node come before those that are after what is looked for.
    pub(super) fn step_behind(mut self, node: &Node, count: usize) -> Decoded<ControlFlow<Landed, Descent>> {
        if self.level == 0 {
            let floor = count.checked_sub(1).map(|number| node.entry(number)).transpose()?;
            let next = if count < node.len() { Some(node.entry(count)?) } else { self.next };
            return Ok(ControlFlow::Break(Landed { floor, next }));
        }
        if count < node.len() {
            let entry = node.entry(count)?;
            let separator = behind_vint(&entry)?.len();
            self.next = Some(entry.slice(entry.len() - separator..entry.len()));
        }
        let Some(number) = count.checked_sub(1) else {
            return Ok(ControlFlow::Break(Landed { floor: None, next: self.next }));
        };
        let place = Cursor::new(&node.entry(number)?).vint()?;
        Ok(ControlFlow::Continue(Descent { place, level: self.level - 1, ..self }))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use proptest::prelude::*;

    use super::*;
    use crate::parts::sealed_page::is_sound;

    /// Keys and values as a file; keys are short bytes, values longer ones.
    fn build(entries: &BTreeMap<Vec<u8>, Vec<u8>>, take: bool) -> (Vec<u8>, Tree) {
        let (mut pages, mut file) = (Pages::default(), Vec::new());
        let mut builder = TreeBuilder::new(7);
        for (key, value) in entries {
            let mut entry = Vec::new();
            entry.put_vint_bytes(key);
            let separator = entry.clone();
            entry.put(value);
            builder.push(&entry, &separator, &mut pages);
            if take {
                file.extend(pages.take());
            }
        }
        let tree = builder.finish(&mut pages);
        file.extend(pages.finish(|_| Vec::new(), 0));
        (file, tree)
    }

    fn key(entry: &[u8]) -> Decoded<Vec<u8>> {
        Ok(Cursor::new(entry).vint_bytes()?.to_vec())
    }

    /// Floor and next by the tree, and how many nodes were read.
    fn find(file: &[u8], tree: &Tree, wanted: &[u8], share: Option<f64>) -> (Landed, usize) {
        let Some(mut descent) = Descent::new(7, tree) else { return (Landed::default(), 0) };
        for reads in 1.. {
            let start = descent.place() as usize / PAGE * PAGE;
            let page = Bytes::from(&file[start..start + PAGE]);
            let node = descent.node_in(&page).unwrap();
            match descent.at_share(share).step(&node, |entry| Ok(&key(entry)?[..] > wanted)).unwrap() {
                ControlFlow::Break(landed) => return (landed, reads),
                ControlFlow::Continue(further) => descent = further,
            }
        }
        unreachable!("a tree has a bottom");
    }

    fn check(entries: &BTreeMap<Vec<u8>, Vec<u8>>, wanted: &[u8], take: bool) {
        let (file, tree) = build(entries, take);
        assert_eq!(tree.entries, entries.len() as u64);
        for share in [None, Some(0.4), Some(1.0), Some(-3.0), Some(f64::NAN), Some(f64::INFINITY)] {
            check_landed(entries, wanted, find(&file, &tree, wanted, share), &tree);
        }
    }

    fn check_landed(
        entries: &BTreeMap<Vec<u8>, Vec<u8>>,
        wanted: &[u8],
        (landed, reads): (Landed, usize),
        tree: &Tree,
    ) {
        let floor = entries.range::<[u8], _>((Bound::Unbounded, Bound::Included(wanted))).next_back();
        let next = entries.range::<[u8], _>((Bound::Excluded(wanted), Bound::Unbounded)).next();
        let of = |entry: Option<Bytes>| entry.map(|entry| key(&entry).unwrap());
        assert_eq!(of(landed.floor.clone()), floor.map(|(key, _)| key.clone()));
        assert_eq!(of(landed.next), next.map(|(key, _)| key.clone()));
        if let (Some(entry), Some((key, value))) = (landed.floor, floor) {
            assert!(entry.ends_with(value) && entry.len() > key.len() + value.len());
        }
        assert!(reads <= usize::from(tree.levels));
    }

    #[test]
    fn trees_of_many_levels() {
        for (key_len, count, levels) in [(4, 60_000, 2), (900, 1000, 5)] {
            let key = |i: u32| [vec![5; key_len - 4], i.to_be_bytes().to_vec()].concat();
            let entries: BTreeMap<_, _> = (0..count).map(|i| (key(2 * i), vec![i as u8; 3])).collect();
            let (file, tree) = build(&entries, true);
            assert_eq!((tree.levels, tree.entries), (levels, u64::from(count)));
            assert!(file.chunks(PAGE).all(is_sound));
            for wanted in [0, 1, 2, 777, 2 * count - 2, 2 * count - 1, u32::MAX] {
                check(&entries, &key(wanted), false);
            }
            check(&entries, &[], true);
        }
    }

    #[test]
    fn a_tree_without_entries() {
        check(&BTreeMap::new(), b"a", false);
    }

    proptest! {
        #[test]
        fn lookups_agree_with_a_map(
            entries in prop::collection::btree_map(prop::collection::vec(0_u8..4, 0..6), 0_usize..1000, 0..200),
            wanted in prop::collection::vec(prop::collection::vec(0_u8..4, 0..7), 1..20),
            take: bool,
        ) {
            let entries = entries.into_iter().map(|(key, len)| (key, vec![9; len])).collect();
            wanted.iter().for_each(|wanted| check(&entries, wanted, take));
        }
    }
}
