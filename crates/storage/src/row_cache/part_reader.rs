//! A slice that one stretch of the cache has whole, and no range tombstone touches: most reads of rows that are kept.
//!
//! What other reads need, the way from part to gap, the list of who waits, copies of the request, this one does without.

use model::flat::RowTaker;
use model::{DeletionTime, Fragment, Next, PartitionKey, PartitionStart};

use super::stretch::View;

/// Reads a slice of a stretch.
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
    /// What a view shows, which has all of the slice, of a stretch that is
    /// [free of ranges](super::stretch::Stretch::is_free_of_ranges).
    pub(super) fn new(key: &PartitionKey, view: View) -> PartReader {
        let state = if view.head().is_some() { State::AtHead } else { State::Ended };
        PartReader { key: key.clone(), view, state }
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
    pub(crate) fn pop_flat(&mut self, take: &mut impl RowTaker) {
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
