//! When tokens are gathered, and of which SSTables.
//!
//! A run of SSTables costs each read one look at a filter. Where there are many runs, as many flushes and backups of several nodes leave
//! them, that is most of a read. To gather tokens takes about as long for a partition as a look among many filters does; so it is done
//! once as many looks were taken as there are partitions to gather: whatever comes then, no more than twice of what was needed
//! was done. What was gathered before and is not more than what comes is gathered again together with it, so there are few maplets:
//!
//! ```text
//! flushes    17          34               51      68                               …
//! maplets    |----|      |---------|              |-------------------|            each again as large as all before it
//! ```

use super::Member;
use super::maplet::{Maplet, MapletBuilder};
use super::maplet_memory::MapletMemory;

/// So many looks a read takes without much of an effect; more are too many.
pub(super) const MANY: usize = 16;

/// To gather so few runs would not help.
const LEAST: usize = MANY / 2;

/// To read so many bytes of Index.db takes about as long as a look at a filter: where large partitions have their blocks there.
const BYTES_OF_A_LOOK: u64 = 64;

/// SSTables for which a read takes one look: those of a run, or of a maplet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Group {
    places: Vec<u32>,
    partitions: u64,
    /// So many looks take as long as to gather it.
    cost: u64,
}

/// How many partitions maplets have room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// How many more there may be in maplets.
    more: u64,
    /// How many may be gathered at once.
    at_once: u64,
}

/// What is to be gathered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Plan {
    /// The places of SSTables in the set; none if it would not help, or there is no room.
    pub(super) places: Vec<u32>,
    /// How many partitions they have.
    pub(super) partitions: u64,
    /// So many looks take as long as to gather it.
    pub(super) cost: u64,
}

impl Group {
    /// The members at these places; `None` if the tokens of one of them cannot be gathered, so that a look has to be taken anyway.
    pub(super) fn of<'a>(members: impl Iterator<Item = (u32, &'a Member)>) -> Option<Group> {
        let mut group = Group::default();
        for (place, member) in members {
            if !member.sstable.has_tokens() || member.is_uncertain.get() {
                return None;
            }
            let (partitions, index_len) = (member.facts.partitions, member.sstable.index_len());
            // Each has some bytes of Index.db: Statistics.db is damaged, and before `na` nothing tells so.
            if partitions > index_len {
                return None;
            }
            group.places.push(place);
            group.partitions = group.partitions.checked_add(partitions)?;
            group.cost += partitions.max(index_len / BYTES_OF_A_LOOK);
        }
        Some(group)
    }
}

impl Room {
    /// No room.
    pub(crate) const NONE: Room = Room { more: 0, at_once: 0 };

    /// As much as there is now.
    pub(crate) fn of(memory: &MapletMemory) -> Room {
        let (for_maplets, not_reserved) = memory.left();
        let at_once = not_reserved / (Maplet::BYTES + MapletBuilder::BYTES);
        let more = for_maplets / Maplet::BYTES;
        Room { more: more as u64, at_once: (at_once as u64).min(Maplet::MOST_PARTITIONS) }
    }
}

impl Plan {
    /// For a set with these runs that are in no maplet, and these maplets.
    pub(super) fn new(mut runs: Vec<Group>, mut maplets: Vec<Group>, room: Room) -> Plan {
        runs.sort_by_key(|run| run.cost);
        maplets.sort_by_key(|maplet| maplet.partitions);
        let (mut plan, mut count) = (Plan::default(), 0);
        for run in runs {
            if plan.partitions + run.partitions > room.more || !plan.has_room(&run, room) {
                break;
            }
            plan.add(run);
            count += 1;
        }
        if count < LEAST {
            return Plan::default();
        }
        for maplet in maplets {
            if maplet.partitions > plan.partitions || !plan.has_room(&maplet, room) {
                break;
            }
            plan.add(maplet);
        }
        plan
    }

    fn has_room(&self, group: &Group, room: Room) -> bool {
        self.partitions + group.partitions <= room.at_once
            && self.places.len() + group.places.len() <= Maplet::MOST_SSTABLES
    }

    fn add(&mut self, group: Group) {
        self.places.extend(group.places);
        self.partitions += group.partitions;
        self.cost += group.cost;
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// Groups of one SSTable each, with so many partitions.
    fn alone(places: Range<u32>, partitions: u64) -> Vec<Group> {
        places.map(|place| group(place..place + 1, partitions)).collect()
    }

    fn group(places: Range<u32>, partitions: u64) -> Group {
        let count = u64::from(places.end - places.start);
        Group { places: places.collect(), partitions: count * partitions, cost: count * partitions }
    }

    fn room(more: u64) -> Room {
        Room { more, at_once: 1_000_000 }
    }

    #[test]
    fn nothing_is_gathered_where_it_does_not_help() {
        assert_eq!(
            Plan::new(alone(0..17, 10), vec![], room(79)),
            Plan::default(),
            "there is room for too few"
        );
        let plan = Plan::new(alone(0..17, 10), vec![], room(89));
        assert_eq!((&plan.places[..], plan.cost), (&[0, 1, 2, 3, 4, 5, 6, 7][..], 80));
        assert_eq!(
            Plan::new(alone(0..7, 10), vec![], room(1000)),
            Plan::default(),
            "the others have no tokens"
        );
        assert_eq!(Plan::new(alone(0..17, 10), vec![], Room { more: 1000, at_once: 79 }), Plan::default());
        assert_eq!(Plan::new(alone(0..17, 10), vec![], Room::NONE), Plan::default());
    }

    #[test]
    fn the_smallest_runs_are_gathered_first() {
        let runs = [alone(0..10, 100), alone(10..30, 10)].concat();
        let plan = Plan::new(runs, vec![], room(450));
        assert!(plan.places.iter().copied().eq((10..30).chain(0..2)), "{:?}", plan.places);
        assert_eq!((plan.cost, plan.partitions), (400, 400));
    }

    /// A run that is gathered in part would cost a look all the same.
    #[test]
    fn runs_are_gathered_whole() {
        let runs = [alone(0..17, 10), vec![group(17..1000, 5)]].concat();
        assert_eq!(Plan::new(runs.clone(), vec![], room(5000)).places.len(), 17);
        assert_eq!(Plan::new(runs, vec![], room(6000)).places.len(), 1000);
    }

    #[test]
    fn what_is_to_be_gathered_costs_what_its_index_takes() {
        let costly = (0..9).map(|place| Group { cost: 1000, ..group(place..place + 1, 1) });
        let plan = Plan::new(costly.chain(alone(9..17, 50)).collect(), vec![], room(405));
        assert_eq!(plan.places, [9, 10, 11, 12, 13, 14, 15, 16, 0, 1, 2, 3, 4]);
        assert_eq!((plan.cost, plan.partitions), (5400, 405));
    }

    #[test]
    fn what_was_gathered_is_gathered_again_with_as_much() {
        let old = || vec![group(0..10, 20), group(10..20, 50)];
        let plan = |partitions, at_once| {
            let plan = Plan::new(alone(20..40, partitions), old(), Room { more: 1000, at_once });
            (plan.places.len(), plan.cost)
        };
        assert_eq!(plan(9, 1000), (20, 180), "less than any of them");
        assert_eq!(plan(10, 1000), (30, 400));
        assert_eq!(plan(15, 1000), (40, 1000), "and what that is as much as");
        assert_eq!(plan(15, 999), (30, 500), "as far as there is room");
    }

    /// As flushes come and are gathered, each partition is gathered again no more often than their number doubles.
    #[test]
    fn maplets_are_as_many_as_doublings() {
        let (mut maplets, mut flushed, mut cost): (Vec<Group>, _, _) = (Vec::new(), 0_u32, 0);
        for _ in 0..256 {
            flushed += 17;
            let plan = Plan::new(alone(flushed - 17..flushed, 10), maplets.clone(), room(1_000_000));
            assert!(plan.cost >= 170);
            cost += plan.cost;
            maplets.retain(|maplet| !plan.places.contains(&maplet.places[0]));
            maplets.push(Group { places: plan.places, partitions: plan.partitions, cost: plan.cost });
            let there: usize = maplets.iter().map(|maplet| maplet.places.len()).sum();
            assert_eq!(there as u32, flushed, "none is left out");
            assert!(maplets.len() <= 9, "{}", maplets.len());
        }
        assert!(cost <= u64::from(flushed) * 10 * 9, "{cost}");
    }
}
