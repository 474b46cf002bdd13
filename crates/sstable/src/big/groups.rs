//! The groups of blocks that fences name: from the cache, or from Index.db, and then with those that are asked for next.
//!
//! ```text
//! Index.db   ···| group | group | group | group | group | group | group |···
//! requests       ───1───
//!                        ───────2───────
//!                                        ───────────────3───────────────
//! ```
//!
//! Who reads here and there from a partition's beginning to its end comes to one group after the other. So where a group stands behind
//! those that were read last, the next ones come with it, twice as many each time.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use runtime::{CacheKey, SingleFlight};

use super::fenced::Fenced;
use super::packed_blocks::PackedBlocks;
use super::promoted_cursor::{PromotedCursor, SMALL};
use crate::Result;
use crate::parts::fences::Group;

/// So many groups are read at once at the most, if they are within [`SMALL`] bytes.
const MOST: usize = 8;

/// Reads of the groups of one Index.db.
pub(crate) struct GroupReads {
    /// Those that are under way, by where they begin.
    flights: SingleFlight<u64, Result<Rc<PackedBlocks>>>,
    /// Where the last one ended, and how many groups it brought.
    last: Cell<(u64, usize)>,
}

/// A group, and the one behind it.
struct Step {
    group: Group,
    next: Option<Group>,
    /// Where in Index.db it is.
    range: Range<u64>,
}

impl GroupReads {
    /// None yet.
    pub(crate) fn new() -> GroupReads {
        GroupReads { flights: SingleFlight::new(), last: Cell::default() }
    }

    /// How many groups to read from this place on.
    fn count_from(&self, start: u64) -> usize {
        match self.last.get() {
            (end, count) if end == start => (2 * count).min(MOST),
            _ => 1,
        }
    }
}

impl PromotedCursor<'_> {
    /// The blocks of a group. Where it is not in memory so many groups are read, and those behind it are kept for who asks for them.
    pub(super) async fn groups_from(
        &self,
        fenced: Fenced<'_>,
        group: &Group,
        next: Option<&Group>,
        count: usize,
    ) -> Result<Rc<PackedBlocks>> {
        let start = self.place_of(group);
        match self.index().cache.get(self.key_of(start)) {
            Some(packed) => Ok(packed),
            None => {
                let count = count.max(self.index().reads.count_from(start));
                let read = async || {
                    let first = self.step(fenced, group.clone(), next.cloned())?;
                    self.read_groups(fenced, first, count).await
                };
                self.index().reads.flights.run(start, read).await
            }
        }
    }

    /// Reads a group and those behind it, so many in all; the blocks of the first one.
    async fn read_groups(&self, fenced: Fenced<'_>, first: Step, count: usize) -> Result<Rc<PackedBlocks>> {
        let start = first.range.start;
        let mut steps = vec![first];
        // What is wrong behind the group is told to who wants that.
        while steps.len() < count
            && let Some(step) = self.step_behind(fenced, &steps[steps.len() - 1]).await
            && step.range.end - start <= SMALL
        {
            steps.push(step);
        }
        let mut bytes = self.index().file.read_once(start..steps[steps.len() - 1].range.end).await;
        if bytes.is_err() && steps.len() > 1 {
            steps.truncate(1);
            bytes = self.index().file.read_once(steps[0].range.clone()).await;
        }
        let bytes = bytes?;
        // Not before they are there: reads side by side are no sequence.
        self.index().reads.last.set((start + bytes.len() as u64, steps.len()));
        let pack = |step: &Step| {
            let within = (step.range.start - start) as usize..(step.range.end - start) as usize;
            self.pack(fenced, step, &bytes[within]).map(Rc::new)
        };
        let packed = pack(&steps[0])?;
        let (cache, key) = (&self.index().cache, self.key_of(start));
        cache.insert_to_stay(key, Rc::clone(&packed), packed.memory());
        for step in &steps[1..] {
            let Ok(packed) = pack(step) else { break };
            let memory = packed.memory();
            cache.insert(self.key_of(step.range.start), packed, memory);
        }
        Ok(packed)
    }

    /// The group behind one, if it is as it should be, and not in memory.
    async fn step_behind(&self, fenced: Fenced<'_>, before: &Step) -> Option<Step> {
        let (group, next) =
            fenced.fences.group_of(fenced.ordinal, before.next.as_ref()?.number).await.ok()?;
        let step = self.step(fenced, group, next).ok()?;
        let is_there = self.index().cache.find::<PackedBlocks>(self.key_of(step.range.start)).is_some();
        (step.range.start == before.range.end && !is_there).then_some(step)
    }

    fn step(&self, fenced: Fenced<'_>, group: Group, next: Option<Group>) -> Result<Step> {
        let start = self.place_of(&group);
        let end = next.as_ref().map_or(self.promoted().map, |next| self.place_of(next));
        if start >= end || end > self.promoted().map {
            return Err(fenced.fences.wrong("the groups of a partition are out of order"));
        }
        Ok(Step { group, next, range: start..end })
    }

    /// The blocks that are these bytes, if they are what the fences say of the group and of the next one.
    fn pack(&self, fenced: Fenced<'_>, step: &Step, bytes: &[u8]) -> Result<PackedBlocks> {
        let Step { group, next, .. } = step;
        let wrong = |what| Err(fenced.fences.wrong(what));
        if !bytes.starts_with(&group.first) {
            return wrong("a group begins elsewhere than it should");
        }
        let Ok(packed) = PackedBlocks::new(self.codec(), self.index().version, bytes) else {
            return wrong("a group does not end where it should");
        };
        let end_number = next.as_ref().map_or(self.promoted().count, |next| next.number);
        let is_as_told = end_number.checked_sub(group.number) == u32::try_from(packed.len()).ok();
        if !is_as_told || next.as_ref().is_some_and(|next| next.open != packed.end_open(packed.len() - 1)) {
            return wrong("a group has other blocks than it should");
        }
        Ok(packed)
    }

    /// Where in Index.db a group is.
    fn place_of(&self, group: &Group) -> u64 {
        self.promoted().blocks.start.saturating_add(group.at)
    }

    fn key_of(&self, start: u64) -> CacheKey {
        CacheKey { owner: self.index().groups, index: start }
    }
}
