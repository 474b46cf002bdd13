//! A sorted list in which a place is made or closed at the cost of a few KiB at the most; where a run is split, which is once in some
//! sixty of them, of as many bytes as there are values from there on.
//!
//! ```text
//! heads   1           5       7             the first rank of each run, side by side
//! runs  [ 1 3 4 ]   [ 5 7 ] [ 7 8 8 9 ]     ranks, each run of at least one and at most MOST
//!       [ a b c ]   [ d e ] [ f g h i ]     and their values
//! ```
//!
//! A value stands at a rank, and beside others of its rank as whoever asks says: a place is found by a predicate that holds up
//! to it. Rows of a memtable stand so, and parts of the row cache: of either, a partition may have millions; in one vector, each that comes
//! or goes would move half of them.
//!
//! What comes behind all others begins a run of its own where the last one is full: runs of what comes in order are full.
//!
//! A search looks at ranks and nothing else until it has come to its own: eight of them are in a line of the CPU's cache, the heads
//! are mostly there from the search before, and the ranks of a run are brought together.

use runtime::{LINE, Whereabouts};
use smallvec::SmallVec;

/// How many a run has at the most.
const MOST: usize = 128;

/// The lines of the ranks of such a run, and how many ranks no two waits are needed for.
const RANKS: usize = MOST * size_of::<u64>() / LINE;
const FEW: usize = MOST / 4;

/// Values in an order.
#[derive(Debug)]
pub(crate) struct Sorted<T> {
    /// Of each run its first rank.
    heads: SmallVec<[u64; 1]>,
    /// Mostly there is but one.
    runs: SmallVec<[Run<T>; 1]>,
}

/// Neighbours.
#[derive(Debug)]
struct Run<T> {
    ranks: Vec<u64>,
    /// As many.
    values: Vec<T>,
}

/// A place in the list: a value's, or behind the last one. It is good until the list changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place {
    run: usize,
    at: usize,
}

/// The values from a place up to another, from either end.
#[derive(Debug)]
pub(crate) struct Between<'a, T> {
    sorted: &'a Sorted<T>,
    from: Place,
    to: Place,
}

impl<T> Default for Sorted<T> {
    fn default() -> Sorted<T> {
        Sorted { heads: SmallVec::new(), runs: SmallVec::new() }
    }
}

impl<T> Sorted<T> {
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.runs.iter().flat_map(|run| &run.values)
    }

    /// The first value of a higher rank, or of this one that the predicate does not hold of; it holds of all of this rank before it.
    pub(crate) fn partition_point(&self, rank: u64, mut holds: impl FnMut(&T) -> bool) -> Place {
        let behind = point(&self.heads, &self.runs, rank, |run| holds(&run.values[0]));
        let Some(run) = behind.checked_sub(1) else { return Place { run: 0, at: 0 } };
        let Run { ranks, values } = &self.runs[run];
        self.there(Place { run, at: point(ranks, values, rank, holds) })
    }

    /// The last value of this rank or a lower one, where it is, and its rank.
    #[inline]
    pub(crate) fn last_up_to(&self, rank: u64) -> Option<(Place, u64, &T)> {
        let (number, run) = match &*self.runs {
            [only] => (0, only),
            runs => {
                let number = behind(&self.heads, rank).checked_sub(1)?;
                (number, &runs[number])
            }
        };
        if run.ranks.len() > FEW {
            // At once, in the time of one: each that a search comes to may be far from the CPU. Of two neighbours most searches need one.
            let ranks = Whereabouts::of(run.ranks.as_ptr());
            (0..RANKS).step_by(2).for_each(|line| ranks.behind(line * LINE).bring::<1>());
        }
        let last = behind(&run.ranks, rank).checked_sub(1)?;
        Some((Place { run: number, at: last }, run.ranks[last], &run.values[last]))
    }

    pub(crate) fn get(&self, place: Place) -> Option<&T> {
        self.runs.get(place.run)?.values.get(place.at)
    }

    /// The rank of the value at a place.
    pub(crate) fn rank(&self, place: Place) -> Option<u64> {
        self.runs.get(place.run)?.ranks.get(place.at).copied()
    }

    /// The first place.
    pub(crate) fn first(&self) -> Place {
        Place { run: 0, at: 0 }
    }

    /// The place before another.
    pub(crate) fn place_before(&self, place: Place) -> Option<Place> {
        match place.at.checked_sub(1) {
            Some(at) => Some(Place { at, ..place }),
            None => {
                let run = place.run.checked_sub(1)?;
                Some(Place { run, at: self.runs[run].ranks.len() - 1 })
            }
        }
    }

    /// The place behind another, which has a value.
    pub(crate) fn place_behind(&self, place: Place) -> Place {
        self.there(Place { at: place.at + 1, ..place })
    }

    /// The value of a place, to be changed to another one that stands there.
    pub(crate) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.runs.get_mut(place.run)?.values.get_mut(place.at)
    }

    /// The values from a place up to another.
    pub(crate) fn between(&self, from: Place, to: Place) -> Between<'_, T> {
        Between { sorted: self, from, to }
    }

    /// Whether what has this rank is behind all values; of the last one, if that has it too, it is told whether it is before.
    #[inline]
    pub(crate) fn ends_before(&self, rank: u64, is_before: impl FnOnce(&T) -> bool) -> bool {
        let Some(Run { ranks, values }) = self.runs.last() else { return true };
        let (Some(last), Some(value)) = (ranks.last(), values.last()) else { return false };
        *last < rank || (*last == rank && is_before(value))
    }

    /// Puts a value behind all others.
    pub(crate) fn push(&mut self, rank: u64, value: T) {
        debug_assert!(self.ends_before(rank, |_| true), "it comes behind the others");
        match self.runs.last_mut().filter(|run| run.ranks.len() < MOST) {
            Some(run) => {
                run.ranks.push(rank);
                run.values.push(value);
            }
            None => {
                self.heads.push(rank);
                self.runs.push(Run { ranks: vec![rank], values: vec![value] });
            }
        }
    }

    /// Puts a value of this rank before that of a place.
    pub(crate) fn insert(&mut self, place: Place, rank: u64, value: T) {
        // A value between two runs goes to the end of the first one.
        let Place { run, at } = match (place.at, place.run.checked_sub(1)) {
            (0, Some(before)) => Place { run: before, at: self.runs[before].ranks.len() },
            _ => place,
        };
        let Some(values) = self.runs.get_mut(run) else {
            self.heads.push(rank);
            return self.runs.push(Run { ranks: vec![rank], values: vec![value] });
        };
        values.ranks.insert(at, rank);
        values.values.insert(at, value);
        self.heads[run] = values.ranks[0];
        if values.ranks.len() > MOST {
            let rest = values.split();
            self.heads.insert(run + 1, rest.ranks[0]);
            self.runs.insert(run + 1, rest);
        }
    }

    /// Takes a value out.
    ///
    /// # Panics
    /// If none is there.
    pub(crate) fn remove(&mut self, place: Place) -> T {
        let values = &mut self.runs[place.run];
        values.ranks.remove(place.at);
        let value = values.values.remove(place.at);
        match values.ranks.first() {
            Some(first) => {
                self.heads[place.run] = *first;
                values.shrink();
            }
            None => {
                self.heads.remove(place.run);
                self.runs.remove(place.run);
            }
        }
        value
    }

    /// A place behind the last value of a run is that of the next one's first.
    fn there(&self, place: Place) -> Place {
        match self.runs.get(place.run) {
            Some(run) if place.at == run.ranks.len() => Place { run: place.run + 1, at: 0 },
            _ => place,
        }
    }
}

impl<'a, T> Iterator for Between<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        let value = self.sorted.get(self.from).filter(|_| self.from < self.to)?;
        self.from = self.sorted.place_behind(self.from);
        Some(value)
    }
}

impl<T> DoubleEndedIterator for Between<'_, T> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.from >= self.to {
            return None;
        }
        self.to = self.sorted.place_before(self.to)?;
        self.sorted.get(self.to)
    }
}

impl<T> Run<T> {
    /// Gives its second half away.
    fn split(&mut self) -> Run<T> {
        let rest = Run { ranks: self.ranks.split_off(MOST / 2), values: self.values.split_off(MOST / 2) };
        self.ranks.shrink_to_fit();
        self.values.shrink_to_fit();
        rest
    }

    /// Gives memory back that it has no use for.
    fn shrink(&mut self) {
        if self.values.len() < self.values.capacity() / 4 {
            let room = self.values.len() * 2;
            self.ranks.shrink_to(room);
            self.values.shrink_to(room);
        }
    }
}

/// How many of a list are at this rank or before it.
#[inline]
fn behind(ranks: &[u64], rank: u64) -> usize {
    ranks.partition_point(|other| *other <= rank)
}

/// How many of a list are before this rank, or are at it and the predicate holds of them.
fn point<V>(ranks: &[u64], values: &[V], rank: u64, holds: impl FnMut(&V) -> bool) -> usize {
    let end = behind(ranks, rank);
    let before = ranks[..end].partition_point(|other| *other < rank);
    before + values[before..end].partition_point(holds)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Of the numbers that are tested with, several have one rank.
    fn rank(value: u32) -> u64 {
        u64::from(value / 4)
    }

    fn place_of(sorted: &Sorted<u32>, wanted: u32) -> Place {
        sorted.partition_point(rank(wanted), |value| *value < wanted)
    }

    fn check(sorted: &Sorted<u32>, expected: &[u32]) {
        assert!(sorted.iter().eq(expected));
        assert_eq!(sorted.is_empty(), expected.is_empty());
        assert!(sorted.heads.iter().eq(sorted.runs.iter().map(|run| &run.ranks[0])));
        for Run { ranks, values } in &sorted.runs {
            assert!((1..=MOST).contains(&values.len()));
            assert!(ranks.iter().copied().eq(values.iter().map(|value| rank(*value))));
        }
        for wanted in [0, 1, 77, 500, 999, u32::MAX] {
            let place = place_of(sorted, wanted);
            let behind = expected.partition_point(|value| *value < wanted);
            assert_eq!(sorted.get(place), expected.get(behind));
            let before = sorted.place_before(place).and_then(|before| sorted.get(before));
            assert_eq!(before, expected[..behind].last());
            let last = expected[..expected.partition_point(|value| rank(*value) <= rank(wanted))].last();
            let found = sorted.last_up_to(rank(wanted));
            assert_eq!(found.map(|(_, rank, value)| (rank, value)), last.map(|last| (rank(*last), last)));
            assert!(found.is_none_or(|(at, rank, last)| {
                (sorted.rank(at), sorted.get(at)) == (Some(rank), Some(last))
            }));
            assert_eq!(sorted.get(sorted.first()), expected.first());
            let until = place_of(sorted, wanted.saturating_add(300));
            let end = expected.partition_point(|value| *value < wanted.saturating_add(300));
            assert!(sorted.between(place, until).eq(&expected[behind..end]));
            assert!(sorted.between(place, until).rev().eq(expected[behind..end].iter().rev()));
            assert_eq!(sorted.between(until, place).next_back(), None);
        }
    }

    /// Puts each value in, or takes it out where it is in.
    fn toggle(sorted: &mut Sorted<u32>, expected: &mut Vec<u32>, value: u32) {
        let place = place_of(sorted, value);
        match expected.binary_search(&value) {
            Ok(at) => assert_eq!(sorted.remove(place), expected.remove(at)),
            Err(at) => {
                sorted.insert(place, rank(value), value);
                expected.insert(at, value);
            }
        }
    }

    #[test]
    fn a_list_of_many_runs_is_one_list() {
        let (mut sorted, mut expected) = (Sorted::default(), Vec::new());
        check(&sorted, &expected);
        for round in 0..4 {
            for number in 0..5000_u32 {
                toggle(&mut sorted, &mut expected, number.wrapping_mul(0x9e37_79b1) >> 8);
                if number % 1000 == round {
                    check(&sorted, &expected);
                }
            }
            check(&sorted, &expected);
        }
        assert!(sorted.is_empty());
    }

    /// What comes in order stands in full runs, and what comes between is put there.
    #[test]
    fn what_comes_behind_all_others_fills_runs() {
        let (mut sorted, mut expected) = (Sorted::default(), Vec::new());
        for value in (0..4000).filter(|value| value % 4 < 2) {
            assert!(sorted.ends_before(rank(value), |last| *last < value));
            sorted.push(rank(value), value);
            expected.push(value);
            assert!(!sorted.ends_before(rank(value), |last| *last < value));
            assert!(!sorted.ends_before(rank(value).wrapping_sub(1), |_| true) || value < 4);
        }
        assert_eq!(sorted.runs.len(), expected.len().div_ceil(MOST));
        check(&sorted, &expected);
        (0..4000).step_by(7).for_each(|value| toggle(&mut sorted, &mut expected, value));
        check(&sorted, &expected);
        let place = place_of(&sorted, expected[500]);
        assert_eq!(sorted.get_mut(place).copied(), Some(expected[500]));
        assert_eq!(sorted.get_mut(place_of(&sorted, u32::MAX)), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_and_goes(values in prop::collection::vec(0_u32..1000, 0..3000)) {
            let (mut sorted, mut expected) = (Sorted::default(), Vec::new());
            values.into_iter().for_each(|value| toggle(&mut sorted, &mut expected, value));
            check(&sorted, &expected);
        }
    }
}
