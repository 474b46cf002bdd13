//! The pages of Fences.db, and the nodes in them.
//!
//! ```text
//! page   nodes, zeros, in the last page the trailer, u32 CRC32 of the 4092 bytes before it
//! node   u8 tree, u8 level, u16 n, n × u16 end of an entry, from the first entry's start; n entries
//! ```
//!
//! A node is named by its place in the file. Those that are full have a page of their own; what is left of each level
//! shares one.

use std::ops::Range;

use model::Bytes;

use super::STRETCH;
use crate::decode::{Cursor, DecodeError, Decoded};
use crate::encode::Encode;
use crate::parts::sealed_page::{PAGE, ROOM, seal};

/// Bytes of a node before the ends of its entries.
const HEAD: usize = 4;

const _: () = assert!(STRETCH == crate::cache::cached_file::PAGE && PAGE as u64 == STRETCH);

/// Collects the entries of a node.
#[derive(Debug)]
pub(super) struct NodeBuilder {
    tree: u8,
    level: u8,
    ends: Vec<u16>,
    entries: Vec<u8>,
}

impl NodeBuilder {
    /// A node without entries. Leaves are at level 0.
    pub(super) fn new(tree: u8, level: u8) -> NodeBuilder {
        NodeBuilder { tree, level, ends: Vec::new(), entries: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether a page still holds the node with one more entry of so many bytes.
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.encoded_len() + 2 + len <= ROOM
    }

    /// Adds an entry for which there is room.
    pub(super) fn push(&mut self, entry: &[u8]) {
        assert!(self.has_room(entry.len()), "a node lies within one page");
        self.entries.put(entry);
        self.ends.push(self.entries.len() as u16);
    }

    pub(super) fn encoded_len(&self) -> usize {
        HEAD + 2 * self.ends.len() + self.entries.len()
    }

    /// Appends the node, and is empty afterwards.
    pub(super) fn drain(&mut self, to: &mut Vec<u8>) {
        to.put_u8(self.tree);
        to.put_u8(self.level);
        to.put_u16(self.ends.len() as u16);
        self.ends.drain(..).for_each(|end| to.put_u16(end));
        to.put(&self.entries);
        self.entries.clear();
    }
}

/// A node of a page whose checksum holds.
#[derive(Debug)]
pub(super) struct Node {
    bytes: Bytes,
    count: usize,
}

impl Node {
    /// The node that begins at `at` of a page, if it is one of that tree and level.
    pub(super) fn decode(page: &Bytes, at: usize, tree: u8, level: u8) -> Decoded<Node> {
        if at >= ROOM || page.len() != PAGE {
            return Err(DecodeError::Invalid { at, what: "a node is outside of its page" });
        }
        let bytes = page.slice(at..ROOM);
        let mut cursor = Cursor::new(&bytes);
        if (cursor.u8()?, cursor.u8()?) != (tree, level) {
            return Err(DecodeError::Invalid { at, what: "this is not the node that it should be" });
        }
        let count = usize::from(cursor.u16()?);
        cursor.skip(2 * count)?;
        if count == 0 {
            return Err(DecodeError::Invalid { at, what: "a node has no entries" });
        }
        Ok(Node { bytes, count })
    }

    /// The same node by itself: without what else is in its page.
    pub(super) fn detached(&self) -> Decoded<Node> {
        let end = self.range(self.count - 1)?.end;
        Ok(Node { bytes: self.bytes.slice(0..end).detached(), count: self.count })
    }

    /// Bytes of a detached node.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many entries there are, at least one.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// An entry's bytes.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub(super) fn entry(&self, number: usize) -> Decoded<Bytes> {
        Ok(self.bytes.slice(self.range(number)?))
    }

    /// How many entries come before the first one that `is_after` says true of: looked for by halves, or from an entry on that is said to
    /// be near it, in steps that double until it is passed by. Far from there that looks at twice as many as halves do.
    #[inline]
    pub(super) fn count_until(
        &self,
        near: Option<usize>,
        mut is_after: impl FnMut(&[u8]) -> Decoded<bool>,
    ) -> Decoded<usize> {
        let (ends, entries) = self.parts();
        let (mut low, mut high) = (0, self.count);
        let (mut probe, mut step) = near.map_or((high / 2, 0), |near| (near.min(high - 1), 1));
        let mut way = None;
        while low < high {
            let Some(entry) = entries.get(range(ends, probe)) else { return Err(self.out_of_order()) };
            let is_down = is_after(entry)?;
            if is_down {
                high = probe
            } else {
                low = probe + 1
            }
            probe = low.midpoint(high);
            if step == 0 {
                continue;
            }
            let is_passed_by = way.replace(is_down).is_some_and(|way| way != is_down);
            if is_passed_by || high - low <= step {
                step = 0;
            } else {
                probe = if is_down { high - step } else { low + step - 1 };
                step *= 2;
            }
        }
        Ok(low)
    }

    /// Where the entries end, and the entries.
    #[inline]
    fn parts(&self) -> (&[[u8; 2]], &[u8]) {
        let (ends, entries) = self.bytes[HEAD..].split_at(2 * self.count);
        (ends.as_chunks().0, entries)
    }

    /// Where an entry is in the node's bytes.
    #[inline]
    fn range(&self, number: usize) -> Decoded<Range<usize>> {
        assert!(number < self.count, "an entry that the node has");
        let (ends, entries) = self.parts();
        let range = range(ends, number);
        if range.start > range.end || range.end > entries.len() {
            return Err(self.out_of_order());
        }
        let first = HEAD + 2 * self.count;
        Ok(first + range.start..first + range.end)
    }

    #[cold]
    fn out_of_order(&self) -> DecodeError {
        let at = self.bytes.parts().1.start;
        DecodeError::Invalid { at, what: "the entries of a node are out of order" }
    }
}

/// Where an entry is among the entries, by their ends; they may lie.
#[inline]
fn range(ends: &[[u8; 2]], number: usize) -> Range<usize> {
    let end = |number: usize| usize::from(u16::from_be_bytes(ends[number]));
    let start = if number == 0 { 0 } else { end(number - 1) };
    start..end(number)
}

/// Pages on their way to the file.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Whole pages that nobody has taken yet.
    out: Vec<u8>,
    /// How many pages were taken.
    taken: u64,
    /// Where in `out` the page begins that several nodes share, and how many of its bytes are used.
    shared: Option<(usize, usize)>,
}

impl Pages {
    /// How many pages there are, those that were taken too.
    pub(super) fn len(&self) -> u64 {
        self.taken + (self.out.len() / PAGE) as u64
    }

    /// Bytes of the pages that nobody has taken yet.
    pub(super) fn ready(&self) -> usize {
        self.out.len()
    }

    /// The bytes of the pages so far, to be appended to the file.
    ///
    /// # Panics
    /// If nodes share the last page: it is not finished.
    pub(super) fn take(&mut self) -> Vec<u8> {
        assert!(self.shared.is_none(), "a page is taken when it is whole");
        self.taken = self.len();
        std::mem::take(&mut self.out)
    }

    /// Gives the node a page; where in the file it is.
    pub(super) fn add(&mut self, node: &mut NodeBuilder) -> u64 {
        let start = self.out.len();
        node.drain(&mut self.out);
        seal(&mut self.out, start);
        self.place(start)
    }

    /// Puts the node into the page that nodes share; where in the file it is.
    pub(super) fn add_shared(&mut self, node: &mut NodeBuilder) -> u64 {
        let (page, used) = self.shared_with_room(node.encoded_len());
        let mut bytes = Vec::with_capacity(node.encoded_len());
        node.drain(&mut bytes);
        self.put(page, used, &bytes);
        self.shared = Some((page, used + bytes.len()));
        self.place(page + used)
    }

    /// All pages that were not taken, with the trailer at the end of the last one.
    pub(super) fn finish(mut self, trailer: impl FnOnce(u64) -> Vec<u8>, trailer_len: usize) -> Vec<u8> {
        let (page, _) = match self.shared {
            // The trailer stands in the last page of the file.
            Some((page, used)) if page + PAGE == self.out.len() && used + trailer_len <= ROOM => (page, used),
            _ => self.open_shared(),
        };
        let trailer = trailer(self.len());
        assert!(trailer.len() == trailer_len, "a trailer has one length");
        self.put(page, ROOM - trailer_len, &trailer);
        self.out
    }

    fn shared_with_room(&mut self, len: usize) -> (usize, usize) {
        match self.shared {
            Some((page, used)) if used + len <= ROOM => (page, used),
            _ => self.open_shared(),
        }
    }

    fn open_shared(&mut self) -> (usize, usize) {
        let page = self.out.len();
        self.out.resize(page + PAGE, 0);
        self.put(page, 0, &[]);
        self.shared = Some((page, 0));
        (page, 0)
    }

    /// Overwrites a part of a page, and seals the page again.
    fn put(&mut self, page: usize, at: usize, bytes: &[u8]) {
        self.out[page + at..][..bytes.len()].copy_from_slice(bytes);
        let sum = crc32fast::hash(&self.out[page..][..ROOM]);
        self.out[page + ROOM..][..4].copy_from_slice(&sum.to_be_bytes());
    }

    fn place(&self, at: usize) -> u64 {
        self.taken * PAGE as u64 + at as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::sealed_page::is_sound;

    fn node(entries: &[&[u8]]) -> NodeBuilder {
        let mut node = NodeBuilder::new(1, 2);
        entries.iter().for_each(|entry| node.push(entry));
        node
    }

    #[test]
    fn nodes_come_back() {
        let mut pages = Pages::default();
        let full = pages.add(&mut node(&[b"a", b"", b"ccc"]));
        let taken = pages.take();
        let shared = [pages.add_shared(&mut node(&[b"x"])), pages.add_shared(&mut node(&[b"yy", b"z"]))];
        let rest = pages.finish(|count| vec![count as u8; 9], 9);
        assert_eq!((full, shared, taken.len(), rest.len()), (0, [4096, 4103], PAGE, PAGE));
        assert_eq!(rest[ROOM - 9..ROOM], [2; 9]);
        for (file, at, entries) in
            [(&taken, 0, &[&b"a"[..], b"", b"ccc"][..]), (&rest, 0, &[b"x"]), (&rest, 7, &[b"yy", b"z"])]
        {
            assert!(is_sound(file));
            let node = Node::decode(&Bytes::from(&file[..]), at, 1, 2).unwrap();
            let found: Vec<_> = (0..node.len()).map(|i| node.entry(i).unwrap()).collect();
            assert!(found.iter().map(|entry| &**entry).eq(entries.iter().copied()));
            for near in [None, Some(0), Some(2), Some(9)] {
                let count = node.count_until(near, |entry| Ok(*entry > b"b"[..]));
                assert_eq!(count, Ok(if at == 0 && entries.len() == 3 { 2 } else { 0 }));
            }
        }
    }

    /// From wherever it is looked for, the same is found; and soon, where that is near.
    #[test]
    fn entries_are_found_from_near_them() {
        for count in 1..=200_u8 {
            let mut pages = Pages::default();
            let entries: Vec<[u8; 1]> = (0..count).map(|entry| [entry]).collect();
            pages.add(&mut node(&entries.iter().map(|entry| &entry[..]).collect::<Vec<_>>()));
            let node = Node::decode(&Bytes::from(&pages.take()[..]), 0, 1, 2).unwrap();
            for wanted in 0..=count {
                for near in [None].into_iter().chain((0..count + 3).step_by(7).map(Some)) {
                    let mut looks = 0;
                    let found = node.count_until(near.map(usize::from), |entry| {
                        looks += 1;
                        Ok(entry[0] >= wanted)
                    });
                    assert_eq!(found, Ok(usize::from(wanted)));
                    let halves = count.ilog2() + 1;
                    let distance = near.map(|near| wanted.abs_diff(near.min(count - 1)));
                    let most = distance.map_or(halves, |distance| 2 * (u32::from(distance) + 1).ilog2() + 2);
                    assert!(looks <= most, "{count} {wanted} {near:?}: {looks} looks");
                }
            }
        }
    }

    #[test]
    fn a_page_that_is_full_is_followed_by_another() {
        let mut pages = Pages::default();
        let large = [7_u8; 3000];
        let places = [(); 3].map(|()| pages.add_shared(&mut node(&[&large])));
        assert_eq!(places, [0, 4096, 8192]);
        let file = pages.finish(|_| vec![1; 2000], 2000);
        assert_eq!(file.len(), 4 * PAGE, "the trailer has no room beside a large node");
        assert!(file.chunks(PAGE).all(is_sound));
    }

    /// Whatever bytes a page has, its node is an error or has entries within the page.
    #[test]
    fn nodes_that_make_no_sense_are_refused() {
        let mut pages = Pages::default();
        pages.add(&mut node(&[b"abc", b"d", b"efg"]));
        let page = pages.take();
        for at in 0..16 {
            for flip in 1..=255 {
                let mut page = page.clone();
                page[at] ^= flip;
                let Ok(node) = Node::decode(&Bytes::from(page), 0, 1, 2) else { continue };
                for near in [None, Some(0), Some(1), Some(usize::MAX)] {
                    let count = node.count_until(near, |entry| Ok(*entry > b"d"[..]));
                    assert!(count.is_err() || count.is_ok_and(|count| count <= node.len()));
                }
                (0..node.len()).for_each(|number| drop(node.entry(number)));
            }
        }
        assert!(Node::decode(&Bytes::from(&page[..]), PAGE, 1, 2).is_err());
        assert!(Node::decode(&Bytes::from(&page[..]), 0, 1, 1).is_err());
        assert!(Node::decode(&Bytes::from(&page[..]), 100, 0, 0).is_err(), "zeros are no node");
    }
}
