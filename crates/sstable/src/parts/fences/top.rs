//! What all nodes above the leaves of a tree tell, in one piece of memory: one search finds the leaf.
//!
//! It is for the trees of tokens and places, which every read of a small partition asks and whose keys are numbers; and
//! there only where those nodes are in memory when the file is opened.

use model::{Bytes, Token};

use super::entries::TokenFence;
use super::tree::{Descent, Tree};
use crate::decode::{Cursor, Decoded};

/// More leaves than what is in memory of a file can tell of are made up: nodes that share those below them.
const MOST: usize = 1 << 14;

/// The leaves of a tree.
#[derive(Debug)]
pub(super) struct Top {
    tree: u8,
    leaves: Box<[Leaf]>,
}

/// A leaf, and what the separator before it says.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    token: Token,
    /// The vint behind the token.
    lead: u64,
    /// Where it is.
    place: u64,
}

impl Top {
    /// The leaves of a tree in whose entries and separators a token stands first, and then a vint. `page` gives a page of the
    /// file by its number; `None` if that is not in memory for one of them, or there are too many leaves, or one at the most.
    pub(super) fn of(tree: &Tree, number: u8, page: impl Fn(u64) -> Option<Bytes>) -> Decoded<Option<Top>> {
        let Some(root) = Descent::new(number, tree).filter(|_| tree.levels > 1) else { return Ok(None) };
        let mut leaves = vec![Leaf { token: Token::MIN, lead: 0, place: root.place() }];
        for level in (1..tree.levels).rev() {
            let mut below = Vec::new();
            for node in leaves {
                let descent = Descent::at(number, node.place, level);
                let Some(page) = page(descent.page()) else { return Ok(None) };
                let node = descent.node_in(&page)?;
                if below.len() + node.len() > MOST {
                    return Ok(None);
                }
                for entry in 0..node.len() {
                    below.push(Leaf::decode(&node.entry(entry)?)?);
                }
            }
            leaves = below;
        }
        Ok(Some(Top { tree: number, leaves: leaves.into() }))
    }

    /// At the leaf that has the last entry not above a token, and the separator of the one behind it, if there is one; `None`
    /// if all entries are above the token.
    pub(super) fn find(&self, token: Token) -> Option<(Descent, Option<TokenFence>)> {
        let behind = self.leaves.partition_point(|leaf| leaf.token <= token);
        let place = self.leaves[behind.checked_sub(1)?].place;
        let next = self.leaves.get(behind).map(|leaf| TokenFence { token: leaf.token, at: leaf.lead });
        Some((Descent::at(self.tree, place, 0), next))
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.leaves)
    }
}

impl Leaf {
    /// The entry of a node above leaves: where the one below is, and its separator.
    fn decode(entry: &[u8]) -> Decoded<Leaf> {
        let mut cursor = Cursor::new(entry);
        let (place, token, lead) = (cursor.vint()?, cursor.i64()?, cursor.vint()?);
        Ok(Leaf { token, lead, place })
    }
}
