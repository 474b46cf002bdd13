//! A slice that one part of the cache has whole, and no range tombstone touches: most reads of rows that are kept.
//!
//! What other reads need, the way from part to gap, the list of who waits, copies of the request, this one does without.

use std::rc::Rc;

use model::flat::FlatRow;
use model::{DeletionTime, Direction, Fragment, Next, PartitionKey, PartitionStart, Schema, Slice};

use super::part::{Part, View};

/// Reads a slice of a part.
pub struct PartReader {
    key: PartitionKey,
    view: View,
    state: State,
}

enum State {
    AtHead,
    InRows,
    Ended,
}

impl PartReader {
    /// The slice of the partition in a part that covers it and is [free of ranges](Part::is_free_of_ranges).
    pub(super) fn new(
        key: &PartitionKey,
        part: &Rc<Part>,
        slice: &Slice,
        schema: &Schema,
        direction: Direction,
    ) -> PartReader {
        let state = if part.head.is_some() { State::AtHead } else { State::Ended };
        PartReader { key: key.clone(), view: part.view(slice, schema, direction), state }
    }

    /// Puts the next fragment into `place`. There is nothing to wait for.
    #[inline]
    pub(crate) fn pop(&mut self, place: &mut Fragment) -> Next {
        match self.state {
            State::InRows if self.view.next(place) => {}
            State::InRows => {
                self.state = State::Ended;
                *place = Fragment::PartitionEnd;
            }
            State::AtHead => {
                self.state = State::InRows;
                let deletion = self.view.head().unwrap_or(DeletionTime::LIVE);
                *place = Fragment::PartitionStart(PartitionStart { key: self.key.clone(), deletion });
            }
            State::Ended => return Next::End,
        }
        Next::Fragment
    }

    /// Gives the next rows as they stand, as long as `take` wants more.
    #[inline]
    pub(crate) fn pop_flat(&mut self, take: &mut impl FnMut(FlatRow<'_>) -> bool) {
        if matches!(self.state, State::InRows) {
            self.view.next_flat(take);
        }
    }
}

impl std::fmt::Debug for PartReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartReader").field("key", &self.key).finish_non_exhaustive()
    }
}
