//! A sorted list of any length in which a place is made or closed at the cost of a few hundred pointers.
//!
//! ```text
//! runs   [ a b c ] [ d e ] [ f g h i ]      each of at least one and at most MOST
//! ```
//!
//! The order is the business of who asks: a place is found by a predicate that holds up to it. A partition of which
//! millions of rows are kept has as many parts; in one vector, each that comes or goes would move half of them.

use smallvec::SmallVec;

/// How many a run has at the most.
const MOST: usize = 256;

/// Values in an order.
#[derive(Debug)]
pub(super) struct Sorted<T> {
    /// Mostly there is but one.
    runs: SmallVec<[Vec<T>; 1]>,
}

/// A place in the list: a value's, or behind the last one. It is good until the list changes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    run: usize,
    at: usize,
}

impl<T> Default for Sorted<T> {
    fn default() -> Sorted<T> {
        Sorted { runs: SmallVec::new() }
    }
}

impl<T> Sorted<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.runs.iter().flatten()
    }

    /// The first value that the predicate does not hold of; it holds of all before it.
    pub(super) fn partition_point(&self, mut holds: impl FnMut(&T) -> bool) -> Place {
        let behind = self.runs.partition_point(|run| holds(&run[0]));
        let Some(run) = behind.checked_sub(1) else { return Place { run: 0, at: 0 } };
        let at = 1 + self.runs[run][1..].partition_point(holds);
        self.there(Place { run, at })
    }

    /// The last value that the predicate holds of; it holds of all before it.
    #[inline]
    pub(super) fn last_such(&self, mut holds: impl FnMut(&T) -> bool) -> Option<&T> {
        let run = match &*self.runs {
            [only] => only,
            runs => &runs[runs.partition_point(|run| holds(&run[0])).checked_sub(1)?],
        };
        run[..run.partition_point(holds)].last()
    }

    pub(super) fn get(&self, place: Place) -> Option<&T> {
        self.runs.get(place.run)?.get(place.at)
    }

    /// The place before another.
    pub(super) fn place_before(&self, place: Place) -> Option<Place> {
        match place.at.checked_sub(1) {
            Some(at) => Some(Place { at, ..place }),
            None => {
                let run = place.run.checked_sub(1)?;
                Some(Place { run, at: self.runs[run].len() - 1 })
            }
        }
    }

    /// The values from a place up to another.
    pub(super) fn between(&self, from: Place, to: Place) -> impl Iterator<Item = &T> {
        let mut place = from;
        std::iter::from_fn(move || {
            let value = self.get(place).filter(|_| place < to)?;
            place = self.there(Place { at: place.at + 1, ..place });
            Some(value)
        })
    }

    /// Puts a value before that of a place.
    pub(super) fn insert(&mut self, place: Place, value: T) {
        // A value between two runs goes to the end of the first one.
        let Place { run, at } = match (place.at, place.run.checked_sub(1)) {
            (0, Some(before)) => Place { run: before, at: self.runs[before].len() },
            _ => place,
        };
        match self.runs.get_mut(run) {
            None => self.runs.push(vec![value]),
            Some(values) => {
                values.insert(at, value);
                if values.len() > MOST {
                    let rest = values.split_off(MOST / 2);
                    values.shrink_to_fit();
                    self.runs.insert(run + 1, rest);
                }
            }
        }
    }

    /// Takes a value out.
    ///
    /// # Panics
    /// If none is there.
    pub(super) fn remove(&mut self, place: Place) -> T {
        let values = &mut self.runs[place.run];
        let value = values.remove(place.at);
        if values.is_empty() {
            self.runs.remove(place.run);
        } else if values.len() < values.capacity() / 4 {
            let room = values.len() * 2;
            values.shrink_to(room);
        }
        value
    }

    /// A place behind the last value of a run is that of the next one's first.
    fn there(&self, place: Place) -> Place {
        match self.runs.get(place.run) {
            Some(run) if place.at == run.len() => Place { run: place.run + 1, at: 0 },
            _ => place,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(sorted: &Sorted<u32>, expected: &[u32]) {
        assert!(sorted.iter().eq(expected));
        assert_eq!(sorted.is_empty(), expected.is_empty());
        assert!(sorted.runs.iter().all(|run| (1..=MOST).contains(&run.len())));
        for wanted in [0, 1, 77, 500, 999, u32::MAX] {
            let place = sorted.partition_point(|value| *value < wanted);
            let behind = expected.partition_point(|value| *value < wanted);
            assert_eq!(sorted.get(place), expected.get(behind));
            assert_eq!(sorted.last_such(|value| *value < wanted), expected[..behind].last());
            let before = sorted.place_before(place).and_then(|before| sorted.get(before));
            assert_eq!(before, expected[..behind].last());
            let until = sorted.partition_point(|value| *value < wanted.saturating_add(300));
            let end = expected.partition_point(|value| *value < wanted.saturating_add(300));
            assert!(sorted.between(place, until).eq(&expected[behind..end]));
        }
    }

    /// Puts each value in, or takes it out where it is in.
    fn toggle(sorted: &mut Sorted<u32>, expected: &mut Vec<u32>, value: u32) {
        let place = sorted.partition_point(|other| *other < value);
        match expected.binary_search(&value) {
            Ok(at) => assert_eq!(sorted.remove(place), expected.remove(at)),
            Err(at) => {
                sorted.insert(place, value);
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

    proptest! {
        #[test]
        fn whatever_comes_and_goes(values in prop::collection::vec(0_u32..1000, 0..3000)) {
            let (mut sorted, mut expected) = (Sorted::default(), Vec::new());
            values.into_iter().for_each(|value| toggle(&mut sorted, &mut expected, value));
            check(&sorted, &expected);
        }
    }
}
