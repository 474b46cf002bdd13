//! SSTables whose tokens are gathered in one [`Maplet`]: one look tells which of them may have a partition.
//!
//! An SSTable costs each read one look at its filter, as long as tokens do not tell it from others. Where many overlap, as many
//! flushes and backups of many nodes leave them, that is most of a read. To gather their tokens costs about as much for a partition as a
//! look does; so it is done once as many looks were taken as there are partitions to gather: whatever comes then, no more than
//! twice of what was needed was done. What was gathered before and is not more than what comes is gathered again together with
//! it, so there are few maplets:
//!
//! ```text
//! flushes    16          32               48      64                               …
//! maplets    |----|      |---------|              |-------------------|            each again as large as all before it
//! ```

use std::collections::HashMap;
use std::fmt;
use std::rc::{Rc, Weak};

use model::Token;
use sstable::SSTable;

use super::Member;
use super::maplet::{Maplet, MapletBuilder};
use super::maplet_memory::{MapletMemory, Taken};
use crate::shared::Tokens;

/// In the places of a maplet: the SSTable is not in the set.
const GONE: u32 = u32::MAX;

/// The tokens of some SSTables.
pub(crate) struct Gathered {
    maplet: Maplet,
    /// The SSTables by their numbers, and how many partitions each has. They may be gone.
    sstables: Box<[(Weak<SSTable>, u64)]>,
    _memory: Taken,
}

/// What was gathered, as a set sees it.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    gathered: Rc<Gathered>,
    /// Where in the set each SSTable has its place.
    places: Rc<[u32]>,
}

/// Gathers the tokens of SSTables that are in a part of the ring.
pub(crate) struct Gatherer {
    tokens: Tokens,
    builder: MapletBuilder,
    sstables: Vec<(Weak<SSTable>, u64)>,
    /// For what is being built.
    memory: Taken,
}

/// A set's SSTable that is in no maplet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Alone {
    place: u32,
    partitions: u64,
    /// So many looks cost as much as to gather it.
    cost: u64,
}

/// When SSTables are to be gathered, and which.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Their places in the set; none if it would not help.
    pub(super) places: Vec<u32>,
    /// So many looks at filters cost as much.
    pub(super) cost: u64,
}

/// So many looks a read takes without much of an effect; more are too many.
const MANY: usize = 16;

/// So many indexes are read side by side.
const AT_ONCE: usize = 8;

/// To read so many bytes of Index.db costs about as much as a look at a filter: where large partitions have their blocks there.
const BYTES_OF_A_LOOK: u64 = 64;

/// To gather so few SSTables would not help.
const LEAST: usize = MANY / 2;

impl Gathered {
    /// In how many bytes of memory maplets have room for so many partitions.
    pub(crate) const BYTES: usize = Maplet::BYTES;
}

impl Covered {
    /// What of these was gathered is in a set with these members. Each member is in one of them at the most; of which it is said
    /// whether it is. What was gathered of SSTables that are gone for the most part is left out.
    pub(super) fn of<'a>(
        members: &[Rc<Member>],
        gathered: impl Iterator<Item = &'a Rc<Gathered>>,
    ) -> (Vec<Covered>, Vec<bool>) {
        let mut is_covered = vec![false; members.len()];
        let mut gathered = gathered.peekable();
        if gathered.peek().is_none() {
            return (Vec::new(), is_covered);
        }
        let mut places: HashMap<*const SSTable, u32> =
            members.iter().map(|member| Rc::as_ptr(&member.sstable)).zip(0..).collect();
        let mut covered = Vec::new();
        for gathered in gathered {
            let place = |(sstable, _): &(Weak<SSTable>, u64)| places.get(&sstable.as_ptr()).copied();
            let found: Rc<[u32]> = gathered.sstables.iter().map(|own| place(own).unwrap_or(GONE)).collect();
            let there = found.iter().zip(&gathered.sstables).filter(|(place, _)| **place != GONE);
            let partitions: u64 = there.map(|(_, (_, partitions))| partitions).sum();
            if 2 * partitions >= gathered.maplet.len() && found.iter().any(|place| *place != GONE) {
                for (sstable, _) in &gathered.sstables {
                    let place = places.remove(&sstable.as_ptr());
                    place.into_iter().for_each(|place| is_covered[place as usize] = true);
                }
                covered.push(Covered { gathered: gathered.clone(), places: found });
            }
        }
        (covered, is_covered)
    }

    /// The places of the SSTables that may have a token.
    #[inline]
    pub(super) fn find(&self, token: Token) -> impl Iterator<Item = u32> {
        let place = |number| self.places[usize::from(number)];
        self.gathered.maplet.find(token).map(place).filter(|place| *place != GONE)
    }

    pub(super) fn gathered(&self) -> &Rc<Gathered> {
        &self.gathered
    }

    fn len(&self) -> u64 {
        self.gathered.maplet.len()
    }

    /// The places of those that are in the set.
    pub(super) fn there(&self) -> impl Iterator<Item = u32> {
        self.places.iter().copied().filter(|place| *place != GONE)
    }
}

impl Alone {
    /// A member at its place; `None` if it is no use to gather it.
    pub(super) fn of(place: u32, member: &Member) -> Option<Alone> {
        if !member.sstable.has_tokens() || member.is_uncertain.get() {
            return None;
        }
        let partitions = member.facts.partitions;
        Some(Alone { place, partitions, cost: partitions.max(member.sstable.index_len() / BYTES_OF_A_LOOK) })
    }
}

impl Plan {
    /// For a set of which these are in no maplet, and of which each read looks at `looks`. There is room for so many more partitions
    /// in maplets.
    pub(super) fn new(
        looks: usize,
        alone: impl Iterator<Item = Alone>,
        covered: &[Covered],
        room: u64,
    ) -> Plan {
        if looks <= MANY {
            return Plan::default();
        }
        let mut covered: Vec<&Covered> = covered.iter().collect();
        covered.sort_by_key(|covered| covered.len());
        let mut alone: Vec<Alone> = alone.collect();
        alone.sort_by_key(|alone| (alone.cost, alone.place));
        let mut left = room.min(Maplet::MOST_PARTITIONS);
        let mut plan = Plan::default();
        for alone in alone.into_iter().take(Maplet::MOST_SSTABLES) {
            let Some(rest) = left.checked_sub(alone.partitions) else { break };
            left = rest;
            plan.places.push(alone.place);
            plan.cost += alone.cost;
        }
        if plan.places.len() < LEAST {
            return Plan::default();
        }
        for covered in covered {
            let is_small = covered.len() <= plan.cost;
            if !is_small || plan.places.len() + covered.places.len() > Maplet::MOST_SSTABLES {
                break;
            }
            plan.places.extend(covered.there());
            plan.cost += covered.len();
        }
        plan
    }
}

impl Gatherer {
    /// Of about so many partitions in a part of the ring.
    pub(crate) fn new(tokens: Tokens, partitions: u64, memory: &MapletMemory) -> Gatherer {
        let partitions = partitions as usize;
        let memory = memory.take(partitions * Maplet::BYTES, partitions * MapletBuilder::BYTES);
        Gatherer { tokens, builder: MapletBuilder::default(), sstables: Vec::new(), memory }
    }

    /// Reads the tokens of SSTables; those of which they are [uncertain](SSTable::tokens) are not among what is gathered, nor will
    /// they be.
    pub(crate) async fn gather(&mut self, members: &[Rc<Member>]) {
        for some in members.chunks(AT_ONCE) {
            let read = runtime::join_all(some.iter().map(|member| member.sstable.tokens())).await;
            for (tokens, member) in read.into_iter().zip(some) {
                match tokens {
                    Ok(tokens) => self.add(&member.sstable, &tokens),
                    Err(error) => {
                        tracing::warn!(%error, "an SSTable has to be asked by its filter: its tokens are uncertain");
                        member.is_uncertain.set(true);
                    }
                }
            }
        }
    }

    fn add(&mut self, sstable: &Rc<SSTable>, tokens: &[Token]) {
        let before = self.builder.len();
        tokens
            .iter()
            .filter(|token| self.tokens.contain(**token))
            .for_each(|token| self.builder.push(*token));
        self.builder.end_sstable();
        self.sstables.push((Rc::downgrade(sstable), (self.builder.len() - before) as u64));
    }

    /// What was gathered.
    pub(crate) async fn finish(self) -> Gathered {
        let builder = self.builder;
        let maplet = runtime::offload(move || builder.build()).await;
        let all = self.memory.memory().clone();
        drop(self.memory);
        let memory = all.take(maplet.memory_bytes() + size_of_val(&*self.sstables), 0);
        Gathered { maplet, sstables: self.sstables.into(), _memory: memory }
    }
}

impl fmt::Debug for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (partitions, sstables) = (self.maplet.len(), self.sstables.len());
        f.debug_struct("Gathered")
            .field("partitions", &partitions)
            .field("sstables", &sstables)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use runtime::Cache;

    use super::*;

    /// What was gathered of SSTables that have their places in the set, one behind the other from this one on.
    fn covered(from: u32, sstables: u32, partitions: u64) -> Covered {
        let mut builder = MapletBuilder::default();
        for _ in 0..sstables {
            (0..partitions).for_each(|token| builder.push(token as Token));
            builder.end_sstable();
        }
        let sstables: Box<[_]> = (0..sstables).map(|_| (Weak::new(), partitions)).collect();
        let places = (from..).take(sstables.len()).collect();
        let gathered = Gathered {
            maplet: builder.build(),
            sstables,
            _memory: MapletMemory::new(&Cache::new(1)).take(0, 0),
        };
        Covered { gathered: Rc::new(gathered), places }
    }

    fn alone(places: std::ops::Range<u32>, partitions: u64) -> impl Iterator<Item = Alone> {
        places.map(move |place| Alone { place, partitions, cost: partitions })
    }

    #[test]
    fn nothing_is_gathered_where_it_does_not_help() {
        assert_eq!(
            Plan::new(MANY, alone(0..16, 10), &[], 1000).places.len(),
            0,
            "a read has few looks to take"
        );
        assert_eq!(Plan::new(17, alone(0..17, 10), &[], 79).places.len(), 0, "there is room for too few");
        let plan = Plan::new(17, alone(0..17, 10), &[], 89);
        assert_eq!((&plan.places[..], plan.cost), (&[0, 1, 2, 3, 4, 5, 6, 7][..], 80));
        assert_eq!(Plan::new(20, alone(0..7, 10), &[], 1000).places.len(), 0, "the others have no tokens");
    }

    #[test]
    fn the_smallest_are_gathered_first() {
        let plan = Plan::new(30, alone(0..10, 100).chain(alone(10..30, 10)), &[], 450);
        assert!(plan.places.iter().copied().eq((10..30).chain(0..2)), "{:?}", plan.places);
        assert_eq!(plan.cost, 400);
    }

    #[test]
    fn what_is_to_be_gathered_costs_what_its_index_takes() {
        let costly = (0..9).map(|place| Alone { place, partitions: 1, cost: 1000 });
        let plan = Plan::new(17, costly.chain(alone(9..17, 50)), &[], 405);
        assert_eq!(plan.places, [9, 10, 11, 12, 13, 14, 15, 16, 0, 1, 2, 3, 4]);
        assert_eq!(plan.cost, 5400);
    }

    #[test]
    fn what_was_gathered_is_gathered_again_with_as_much() {
        let old = [covered(0, 10, 20), covered(10, 10, 50)];
        let plan = Plan::new(20, alone(20..40, 9), &old, 1000);
        assert!(plan.places.iter().copied().eq(20..40), "less than any of them: {:?}", plan.places);
        let plan = Plan::new(20, alone(20..40, 10), &old, 1000);
        assert_eq!((plan.places.len(), plan.cost), (30, 400));
        let plan = Plan::new(20, alone(20..40, 15), &old, 1000);
        assert_eq!((plan.places.len(), plan.cost), (40, 1000), "and what that is as much as");
    }

    /// As flushes come and are gathered, each partition is gathered again no more often than their number doubles.
    #[test]
    fn maplets_are_as_many_as_doublings() {
        let (mut gathered, mut flushed, mut cost): (Vec<Covered>, _, _) = (Vec::new(), 0_u32, 0);
        for _ in 0..256 {
            flushed += 17;
            let plan = Plan::new(17, alone(flushed - 17..flushed, 10), &gathered, u64::MAX);
            assert!(plan.cost >= 170);
            cost += plan.cost;
            let is_old = |covered: &Covered| !plan.places.contains(&covered.places[0]);
            gathered.retain(is_old);
            gathered.push(covered(flushed - plan.places.len() as u32, plan.places.len() as u32, 10));
            let there: usize = gathered.iter().map(|covered| covered.there().count()).sum();
            assert_eq!(there as u32, flushed, "none is left out");
            assert!(gathered.len() <= 9, "{}", gathered.len());
        }
        assert!(cost <= u64::from(flushed) * 10 * 9, "{cost}");
    }
}
