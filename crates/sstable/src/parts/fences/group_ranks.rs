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
    /// How far it is from the last of these to the next one, between 0 and 1.
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

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use model::{Bytes, CqlType, DeletionTime, Position, Schema};

    use super::super::builder::GROUPS;
    use super::super::entries::put_group;
    use super::super::page::Pages;
    use super::super::tree::TreeBuilder;
    use super::*;
    use crate::data::row::Minima;
    use crate::parts::sealed_page::PAGE;

    const VERSION: Version = Version::Oa;

    /// Each group of the partition begins with so many times its number.
    const GAP: i32 = 350;

    /// Where rows are spread evenly, two or three entries of a leaf are looked at in the place of eight.
    #[test]
    fn ranks_tell_where_in_a_leaf_a_position_is() {
        let schema = Schema::new(CqlType::Int, vec![CqlType::Int], vec![], vec![]);
        let minima = Minima { timestamp: 0, local_deletion_time: 0, ttl: 0 };
        let codec = RowCodec::new(&schema, minima, VERSION);
        let at = |number: i32| std::iter::once(&number.to_be_bytes()[..]).collect::<model::Clustering>();
        let (mut pages, mut builder) = (Pages::default(), TreeBuilder::new(GROUPS));
        for number in 0..2000 {
            let (mut first, mut entry) = (Vec::new(), Vec::new());
            codec.put_row_prefix(&at(number * GAP), &mut first);
            let place = (0, number as u32 * 180, number as u64 * 4090);
            put_group(place, &DeletionTime::LIVE, &first, VERSION, &mut entry);
            builder.push(&entry, &entry, &mut pages);
        }
        let tree = builder.finish(&mut pages);
        let file = pages.finish(|_| Vec::new(), 0);
        let node_of = |descent: &Descent| {
            let start = descent.page() as usize * PAGE;
            descent.node_in(&Bytes::from(&file[start..start + PAGE])).unwrap()
        };
        let descent = || Descent::new(GROUPS, &tree).unwrap();
        let root = node_of(&descent());
        let ranks = GroupRanks::of(&root, &descent(), VERSION, &codec).expect("they are numbers");

        let (mut looks, mut searches) = (0, 0);
        for number in (0..2000 * GAP).step_by(97) {
            let position = Position::at(at(number));
            let sought = Sought::new(&codec, &schema, &position);
            let place = ranks.place(0, &sought).expect("it is a number");
            // Nothing tells where the last leaf ends.
            assert_eq!(place.share.is_none(), place.count == root.len());
            let ControlFlow::Continue(below) = descent().step_behind(&root, place.count).unwrap() else {
                panic!("there are leaves below");
            };
            if place.share.is_none() {
                continue;
            }
            let (leaf, mut count) = (node_of(&below), 0);
            let landed = below.at_share(place.share).step(&leaf, |entry| {
                count += 1;
                Ok(sought.compare_prefix(GroupHead::decode(entry)?.first(VERSION)?)?.is_gt())
            });
            let ControlFlow::Break(landed) = landed.unwrap() else { panic!("it is a leaf") };
            let floor = GroupHead::decode(&landed.floor.unwrap()).unwrap().number().unwrap();
            assert_eq!(floor, (number / GAP) as u32 * 180);
            (looks, searches) = (looks + count, searches + 1);
        }
        assert!(searches > 5000, "{searches} searches");
        assert!(looks <= 3 * searches, "{looks} looks in {searches} searches");
    }
}
