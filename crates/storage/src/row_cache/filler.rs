//! Makes parts of the rows that a reader comes across, as they come.

use std::rc::Rc;

use model::flat::FlatRow;
use model::{DeletionTime, Direction, Fragment, PartitionKey, Position, RangeTombstoneChange, Schema, Slice};

use sstable::SMALL_GAP;

use super::RowCache;
use super::part::{Part, behind};
use super::stretch::{Draft, Stretch};
use super::watch::Watch;
use super::whole;
use crate::table::ReadRequest;

/// How large parts are, in bytes of fragments, and how much one read may put into the cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// From here on a part is complete.
    pub(super) enough: usize,
    /// No part of several fragments is larger.
    pub(super) most: usize,
    /// No row that is larger is kept.
    pub(super) row: usize,
    /// What one read may put into the cache, with all that parts take.
    pub(super) read: usize,
    /// So many bytes of neighbouring parts are worth a request more of the SSTables: where they are fewer, a reader reads over them.
    pub(super) worth_a_stop: usize,
}

impl Limits {
    /// The limits of a cache of this capacity. A write makes a whole part untrue, and a slice looks each of its parts up: in
    /// large caches a part is larger.
    pub(super) fn of(capacity: usize) -> Limits {
        let enough = (capacity / 2048).clamp(8 << 10, 32 << 10).min(capacity / 32).max(256);
        let row = (capacity / 8).clamp(256, 64 << 10);
        // A small cache has little of anything.
        let worth_a_stop = (capacity / 256).min(SMALL_GAP as usize);
        Limits { enough, most: enough * 2, row, read: capacity / 4, worth_a_stop }
    }
}

/// Whose rows they are, and whether the cache still wants them.
#[derive(Clone)]
pub(super) struct Filling {
    pub(super) cache: RowCache,
    pub(super) key: PartitionKey,
    pub(super) watch: Rc<Watch>,
}

/// Gathers a part at a time.
///
/// Invariant: what is between `edge` and `at` has been given to it whole, and is in `draft`.
pub(super) struct Filler {
    filling: Filling,
    schema: Rc<Schema>,
    direction: Direction,
    head: Option<DeletionTime>,
    draft: Draft,
    /// Where the part at hand begins, as the stream runs, and what is in force there.
    edge: Position,
    open_at_edge: DeletionTime,
    /// Behind the last fragment; `None` if that is the last one of the draft, which tells it when it is asked for.
    at: Option<Position>,
    /// What is in force there.
    open: DeletionTime,
}

/// What became of a fragment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    Yes,
    /// It is to be given again once the part at hand is closed.
    Later,
    /// It is too large to be kept.
    Never,
}

impl Filler {
    /// At the start of a gap, as the stream runs.
    pub(super) fn new(filling: &Filling, schema: &Rc<Schema>, request: &ReadRequest) -> Filler {
        let Slice { start, end } = &request.slice;
        let edge = if request.direction == Direction::Forward { start } else { end };
        Filler {
            filling: filling.clone(),
            schema: schema.clone(),
            direction: request.direction,
            head: None,
            draft: filling.cache.take_scratch(),
            edge: edge.clone(),
            open_at_edge: DeletionTime::LIVE,
            at: Some(edge.clone()),
            open: DeletionTime::LIVE,
        }
    }

    /// All from an earlier position on is given to it, before anything else is. Of a forward stream.
    pub(super) fn begin_at(&mut self, position: &Position) {
        (self.edge, self.at) = (position.clone(), Some(position.clone()));
    }

    /// What was read says this of the partition's deletion.
    pub(super) fn head(&mut self, head: Option<DeletionTime>) {
        self.head = head;
    }

    /// What was read says this of the static row.
    pub(super) fn static_row(&self, row: Option<&Fragment>) -> Rc<Part> {
        let part = Rc::new(Part::of_static_row(self.head, row));
        self.filling.keep(&part);
        part
    }

    /// Takes the next row or range tombstone.
    pub(super) fn push(&mut self, fragment: &Fragment) -> Taken {
        let open = self.open;
        let fits = match fragment {
            Fragment::RangeTombstone(change) => {
                self.push_change(change);
                self.fits()
            }
            Fragment::Row(row) if self.is_out_of_place(row.value_bytes()) => false,
            Fragment::Row(_) => {
                self.draft.push(fragment);
                self.fits()
            }
            _ => return Taken::Never,
        };
        if fits {
            return Taken::Yes;
        }
        if self.draft.len() > 0 {
            self.open = open;
            return Taken::Later;
        }
        let behind = behind(fragment, self.direction).expect("it is a row or a range tombstone");
        (self.edge, self.at, self.open_at_edge) = (behind.clone(), Some(behind), self.open);
        Taken::Never
    }

    /// Takes the next row, which is a usual one, unless the part at hand has no room for it: then it is to be [pushed](Filler::push).
    #[inline]
    pub(super) fn push_flat(&mut self, row: FlatRow<'_>) -> bool {
        debug_assert!(row.is_usual(), "it is noted as a usual one");
        if self.is_out_of_place(row.value_bytes()) {
            return false;
        }
        self.draft.push_usual(row);
        self.fits()
    }

    /// Whether a row with so many bytes in its values fits into no part: it is not even put into the draft, which would keep the memory.
    #[inline]
    fn is_out_of_place(&self, bytes: usize) -> bool {
        let limits = self.filling.cache.limits();
        bytes > limits.row.max(limits.most)
    }

    /// Whether the last fragment that came into the draft, if any has, may stay there; else it is taken out again.
    #[inline]
    fn fits(&mut self) -> bool {
        let limits = self.filling.cache.limits();
        let is_too_much = match self.draft.len() {
            // A change that stands at the edge is not in it.
            0 => return true,
            1 => self.draft.bytes() > limits.row,
            _ => self.draft.bytes() > limits.most,
        };
        if is_too_much {
            self.draft.pop();
        } else {
            self.at = None;
        }
        !is_too_much
    }

    /// Behind the last fragment that was given.
    pub(super) fn at(&self) -> Position {
        let last = || behind(&self.draft.last()?, self.direction);
        self.at.clone().or_else(last).expect("the draft has something where nothing else tells")
    }

    /// Whether the part at hand has nothing yet.
    pub(super) fn is_empty(&self) -> bool {
        self.draft.len() == 0
    }

    /// Whether the part at hand is large enough.
    pub(super) fn has_enough(&self) -> bool {
        self.draft.bytes() >= self.filling.cache.limits().enough
    }

    /// Whether the part at hand is worth to be closed when going on costs a request.
    pub(super) fn has_something(&self) -> bool {
        self.draft.bytes() >= self.filling.cache.limits().enough / 4
    }

    /// All up to `edge` has been given: it becomes a part and is kept. `None` if there is nothing between.
    pub(super) fn close(&mut self, edge: Position) -> Option<Rc<Part>> {
        let order = self.schema.compare(&self.edge, &edge);
        if order.is_eq() {
            assert!(self.is_empty(), "nothing is where nothing is between");
            return None;
        }
        assert!(order.is_lt() == (self.direction == Direction::Forward), "streams run in their direction");
        let from = std::mem::replace(&mut self.edge, edge.clone());
        self.at = Some(edge.clone());
        let (ends, open) = match self.direction {
            Direction::Forward => ((&from, &edge), self.open_at_edge),
            Direction::Reverse => ((&edge, &from), self.open),
        };
        let is_whole = !self.draft.has_changes()
            && open.is_live()
            && self.schema.statics.is_empty()
            && self.schema.is_all(ends);
        self.open_at_edge = self.open;
        if is_whole {
            let stretch = self.filling.keep_whole(self.head, &mut self.draft, self.direction);
            return Some(Rc::new(Part::of_all(stretch)));
        }
        let part = Rc::new(Part::of_rows(self.head, ends, open, &mut self.draft, self.direction));
        self.filling.keep(&part);
        Some(part)
    }

    /// The same up to the last fragment that was given.
    pub(super) fn close_here(&mut self) -> Option<Rc<Part>> {
        self.close(self.at())
    }

    /// In a reversed stream a change says what is in force below it; a part says what is above it.
    fn push_change(&mut self, change: &RangeTombstoneChange) {
        let before = std::mem::replace(&mut self.open, change.deletion);
        if self.draft.len() == 0 && self.schema.compare(&change.position, &self.edge).is_eq() {
            self.open_at_edge = change.deletion;
            return;
        }
        let change = match self.direction {
            Direction::Forward => change.clone(),
            Direction::Reverse => RangeTombstoneChange { deletion: before, ..change.clone() },
        };
        self.draft.push(&Fragment::RangeTombstone(change));
    }
}

/// A reader that goes away leaves what it has completed.
impl Drop for Filler {
    fn drop(&mut self) {
        self.close_here();
        self.filling.cache.give_back(std::mem::take(&mut self.draft));
    }
}

impl Filling {
    /// Whether what the read finds may still go into the cache.
    pub(super) fn is_wanted(&self) -> bool {
        self.watch.allowance.get() > 0 && !self.is_stale()
    }

    /// Whether a flush has changed the partition since the read began.
    pub(super) fn is_stale(&self) -> bool {
        self.cache.is_stale(&self.watch)
    }

    /// Keeps what came in this direction as all of the partition.
    fn keep_whole(&self, head: Option<DeletionTime>, draft: &mut Draft, direction: Direction) -> Stretch {
        let whole = whole::of_partition(&self.key, head, draft, direction);
        self.cache.keep_whole(&self.key, &whole, &self.watch);
        whole::stretch_of(&whole)
    }

    fn keep(&self, part: &Rc<Part>) {
        self.cache.keep(&self.key, part, &self.watch);
    }
}
