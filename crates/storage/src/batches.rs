//! The SSTables of a lane, opened one behind the other; where they are small, some at once.
//!
//! ```text
//! rows ──────────────────────────────────────────────►
//! [────────── a ──────────)[b)[c)[d)[────── e ──────)
//! |          first         | second  |    third      |    batches
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use model::merge::{Direction, Mapped, Merge};
use model::{FragmentReader, PartitionKey, Schema};

use crate::Result;
use crate::chain::{Chain, Links};
use crate::lanes::Lane;
use crate::sstable_set::Member;

/// So many are opened at once at the most beyond one of each lane, however small they are.
pub(crate) const MOST_AT_ONCE: usize = 32;

/// How SSTables are opened.
pub(crate) trait Opens {
    /// What is read of one.
    type Reader: FragmentReader<Error = sstable::Error> + fmt::Debug;

    /// What an SSTable, one of so many that are read at once, has of what is wanted; `None` if it has nothing.
    fn open(
        &self,
        member: &Rc<Member>,
        at_once: usize,
    ) -> impl Future<Output = Result<Option<Mapped<Self::Reader>>>>;

    /// How much of what is worth a read an SSTable will bring: those that bring 1 together are opened at once, and no more.
    fn worth(&self, member: &Member) -> f64;

    /// Whether that is known, as of whoever reads all of an SSTable, or is what an average tells.
    fn is_certain(&self) -> bool {
        true
    }

    /// The partition in which one ends and the next one begins, if there may be such a one.
    fn shared(&self, before: &Member, next: &Member) -> Option<PartitionKey> {
        (before.last == next.first).then(|| next.first.clone())
    }
}

/// What a lane has, one batch behind the other.
pub(crate) type LaneReader<O> = Chain<Batches<O>>;

/// The SSTables of a lane that were not opened yet.
pub(crate) struct Batches<O> {
    opener: Rc<O>,
    schema: Rc<Schema>,
    direction: Direction,
    members: VecDeque<Rc<Member>>,
    /// How many lanes there are.
    lanes: usize,
    /// How many are read now.
    batch: usize,
    /// How many batches there were.
    batches: usize,
    shared: Option<PartitionKey>,
}

/// Opens the first ones of each lane, all at once; none for lanes that have nothing.
///
/// # Errors
/// What cannot be read.
pub(crate) async fn open_lanes<O: Opens>(
    opener: O,
    lanes: Vec<Lane>,
    direction: Direction,
    schema: &Rc<Schema>,
) -> Result<Vec<LaneReader<O>>> {
    let (opener, count) = (Rc::new(opener), lanes.len());
    let batches = lanes.into_iter().map(|lane| Batches {
        opener: opener.clone(),
        schema: schema.clone(),
        direction,
        members: lane.into(),
        lanes: count,
        batch: 0,
        batches: 0,
        shared: None,
    });
    let chains = runtime::join_all(batches.map(Chain::begin)).await;
    chains.into_iter().filter_map(Result::transpose).collect()
}

impl<O: Opens> Batches<O> {
    /// How many are opened next: as many as are worth a read, by what is known of them. Where that is an average, and those before were read
    /// with hardly more waits than SSTables, they were smaller than it said, and twice as many come next, so that there are never many
    /// waits for little. The first ones say nothing, as a slice may begin where they end.
    fn size_of_next(&self, fills: u32) -> usize {
        let were_small = !self.opener.is_certain() && self.batches > 1 && fills as usize <= self.batch + 1;
        let most = (MOST_AT_ONCE / self.lanes).max(1);
        let least = if were_small { 2 * self.batch } else { 1 };
        let mut worth = 0.0;
        let is_wanted = |(before, member): &(usize, &Rc<Member>)| {
            let is_wanted = *before < least || worth < 1.0;
            worth += self.opener.worth(member);
            is_wanted
        };
        (0..).zip(self.members.iter().take(most)).take_while(is_wanted).count()
    }
}

impl<O: Opens> Links for Batches<O> {
    type Reader = Merge<Mapped<O::Reader>>;

    async fn open_next(&mut self, fills: u32) -> Result<Option<Self::Reader>> {
        while self.has_more() {
            self.batch = self.size_of_next(fills);
            // Small ones of other lanes have no more at hand together than a large one, if it is certain that they are small.
            let at_once =
                if self.opener.is_certain() { self.lanes - 1 + self.batch } else { self.lanes * self.batch };
            let opened = self.members.iter().take(self.batch).map(|member| self.opener.open(member, at_once));
            let mut readers = Vec::new();
            for reader in runtime::join_all(opened).await {
                readers.extend(reader?);
            }
            let last = self.members.drain(..self.batch).next_back().expect("no batch is empty");
            self.shared = self.members.front().and_then(|next| self.opener.shared(&last, next));
            self.batches += 1;
            if !readers.is_empty() {
                return Ok(Some(Merge::new(&self.schema, self.direction, readers)));
            }
        }
        Ok(None)
    }

    fn nothing(&self) -> Self::Reader {
        Merge::new(&self.schema, self.direction, Vec::new())
    }

    fn has_more(&self) -> bool {
        !self.members.is_empty()
    }

    fn shared(&self) -> Option<&PartitionKey> {
        self.shared.as_ref()
    }

    fn has_statics(&self) -> bool {
        !self.schema.statics.is_empty()
    }
}
