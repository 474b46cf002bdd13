//! The root of the tree of groups as numbers, where it tells of one partition with a whole number as its clustering key.
//!
//! Every read of a large partition looks through that root, which has hundreds of entries: of each it would go over what stands before
//! the position that it compares. How far the position is from one of these numbers to the next tells about where it is in the node below.

use super::entries::GroupHead;
use super::page::Node;
use super::tree::Descent;
use crate::Version;
use crate::big::ruler::share_of_ranks;
use crate::data::row::{RowCodec, Sought};
use crate::decode::Decoded;

/// What the entries of a node begin with, by their ranks.
#[derive(Debug)]
pub(super) struct GroupRanks {
    /// The partition's.
    ordinal: u64,
    ranks: Box<[u64]>,
}

/// Where a position is among the entries of the root.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtRoot {
    /// How many are not after it.
    pub(super) count: usize,
    /// How far it seems to be from the last of these to the next one, between 0 and 1.
    pub(super) share: Option<f64>,
}

impl GroupRanks {
    /// Those of a node, if it is of that kind.
    pub(super) fn of(
        node: &Node,
        descent: &Descent,
        version: Version,
        codec: &RowCodec,
    ) -> Option<GroupRanks> {
        let order = codec.number_order()?;
        let mut ordinal = None;
        let mut rank = |number| -> Decoded<Option<u64>> {
            let entry = node.entry(number)?;
            let group = GroupHead::decode(descent.key(&entry)?)?;
            let is_same = *ordinal.get_or_insert(group.ordinal) == group.ordinal;
            Ok(RowCodec::rank_of_prefix(order, group.first(version)?).filter(|_| is_same))
        };
        let ranks =
            (0..node.len()).map(|number| rank(number).ok().flatten()).collect::<Option<Box<[u64]>>>()?;
        let is_sorted = ranks.is_sorted();
        Some(GroupRanks { ordinal: ordinal?, ranks }).filter(|_| is_sorted)
    }

    /// Where a position of a partition is among the entries, if they tell.
    #[inline]
    pub(super) fn place(&self, ordinal: u64, sought: &Sought<'_>) -> Option<AtRoot> {
        let number = sought.number().filter(|_| ordinal == self.ordinal)?;
        let count = self.ranks.partition_point(|rank| number.order_of_row(*rank).is_le());
        let share = match self.ranks.get(count.wrapping_sub(1)..=count) {
            Some(&[low, high]) => share_of_ranks(low, high, number.rank),
            _ => None,
        };
        Some(AtRoot { count, share })
    }

    /// Bytes of memory that so many entries take at the most.
    pub(super) fn memory_bytes(entries: usize) -> usize {
        entries * size_of::<u64>()
    }
}
