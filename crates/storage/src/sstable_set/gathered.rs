//! SSTables whose tokens are gathered in one [`Maplet`]: one look tells which of them may have a partition.

use std::cell::{Cell, RefCell};
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
    builder: RefCell<MapletBuilder>,
    sstables: Vec<(Weak<SSTable>, u64)>,
    /// For what is being built.
    memory: Taken,
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

    /// The places of those that are in the set.
    pub(super) fn there(&self) -> impl Iterator<Item = u32> {
        self.places.iter().copied().filter(|place| *place != GONE)
    }
}

impl Gatherer {
    /// So many SSTables are to be added at once, side by side.
    pub(crate) const AT_ONCE: usize = 8;

    /// Of no more than so many partitions, in a part of the ring.
    pub(crate) fn new(tokens: Tokens, partitions: u64, memory: &MapletMemory) -> Gatherer {
        let builder = RefCell::new(MapletBuilder::with_capacity(partitions as usize));
        let memory = memory.take(partitions as usize * Maplet::BYTES);
        Gatherer { tokens, builder, sstables: Vec::new(), memory }
    }

    /// Reads the tokens of some SSTables, side by side. One that cannot be read is not among what is gathered; one whose tokens are
    /// [uncertain](SSTable::each_token) will not be either.
    pub(crate) async fn add(&mut self, some: &[Rc<Member>]) {
        let partitions: u64 = some.iter().map(|member| member.facts.partitions).sum();
        self.memory.reserve(partitions as usize * (Maplet::BYTES + MapletBuilder::BYTES));
        let first = self.sstables.len() as u16;
        let read = (first..).zip(some).map(|(number, member)| self.read(number, member));
        let read = runtime::join_all(read).await;
        for (member, partitions) in some.iter().zip(read) {
            let sstable = partitions.map_or_else(Weak::new, |_| Rc::downgrade(&member.sstable));
            self.sstables.push((sstable, partitions.unwrap_or_default()));
        }
    }

    /// How many partitions were added of an SSTable; `None` if not all were.
    async fn read(&self, number: u16, member: &Member) -> Option<u64> {
        let count = Cell::new(0);
        let push = |token| {
            if self.tokens.contain(token) {
                self.builder.borrow_mut().push(token, number);
                count.update(|count| count + 1);
            }
        };
        if let Err(error) = member.sstable.each_token(push).await {
            member.is_uncertain.set(matches!(error, sstable::Error::Corrupt { .. }));
            tracing::warn!(%error, "the tokens of an SSTable are not gathered: reads ask its filter");
            return None;
        }
        Some(count.get())
    }

    /// What was gathered.
    pub(crate) async fn finish(self) -> Gathered {
        let builder = self.builder.into_inner();
        let maplet = runtime::offload(move || builder.build()).await;
        let memory = self.memory.settle(maplet.memory_bytes() + size_of_val(&*self.sstables));
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
impl Gathered {
    /// Of so many SSTables, which are gone, with so many partitions each.
    fn of(sstables: u16, partitions: u64) -> Gathered {
        let mut builder = MapletBuilder::default();
        for number in 0..sstables {
            (0..partitions).for_each(|token| builder.push(token as Token, number));
        }
        let memory = MapletMemory::new(&runtime::Cache::new(1)).take(0);
        let sstables = (0..sstables).map(|_| (Weak::new(), partitions)).collect();
        Gathered { maplet: builder.build(), sstables, _memory: memory }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_gone_are_not_found() {
        let gathered = Rc::new(Gathered::of(3, 5));
        let places: Rc<[u32]> = [7, GONE, 2].into();
        let covered = Covered { gathered: gathered.clone(), places };
        assert_eq!(covered.find(4).collect::<Vec<_>>(), [7, 2]);
        assert_eq!(covered.there().collect::<Vec<_>>(), [7, 2]);
        let (none, is_covered) = Covered::of(&[], [&gathered].into_iter());
        assert!(none.is_empty() && is_covered.is_empty(), "what has nothing of a set is left out");
    }
}
