//! The range tombstones of a partition as one sequence of changes, as streams have them.
//!
//! ```text
//! added      [a, d) @1        [b, c) @2
//! changes    a: @1   b: @2   c: @1   d: live
//! ```

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::rc::Rc;

use model::{DeletionTime, Position, RangeTombstone, Schema};

use super::place::Place;

/// What is deleted from where on.
///
/// Invariants: the last change is to live; no two neighbours are equal, and the first one is not live.
#[derive(Debug, Default)]
pub(super) struct Ranges {
    changes: BTreeMap<Place, DeletionTime>,
}

impl Ranges {
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Of overlapping range tombstones the greater one counts.
    pub(super) fn add(&mut self, schema: &Rc<Schema>, range: &RangeTombstone) {
        let start = Place::new(schema, range.start.clone());
        let end = Place::new(schema, range.end.clone());
        if start >= end {
            return;
        }
        let after = self.at(&end);
        let first = self.at(&start).max(range.deletion);
        for (_, deletion) in self.changes.range_mut((Excluded(&start), Excluded(&end))) {
            *deletion = (*deletion).max(range.deletion);
        }
        self.changes.insert(start.clone(), first);
        self.changes.insert(end.clone(), after);
        self.join(&start, &end);
    }

    /// The deletion in force at a place, a change there included.
    pub(super) fn at(&self, place: &Place) -> DeletionTime {
        last(self.changes.range((Unbounded, Included(place))))
    }

    /// The changes from one place on.
    pub(super) fn changes_from(
        &self,
        start: std::ops::Bound<&Place>,
    ) -> impl Iterator<Item = (&Place, DeletionTime)> {
        self.changes.range((start, Unbounded)).map(|(place, deletion)| (place, *deletion))
    }

    /// The deletion in force just before a place.
    pub(super) fn before(&self, place: &Place) -> DeletionTime {
        last(self.changes.range((Unbounded, Excluded(place))))
    }

    /// The changes between two places, neither included.
    pub(super) fn between<'a>(
        &'a self,
        start: &Place,
        end: &Place,
    ) -> impl DoubleEndedIterator<Item = (Position, DeletionTime)> + use<'a> {
        let bounds = (Excluded(start), Excluded(end));
        // A range that ends where it begins has no inside, which the map will not be asked for.
        let changes = (start < end).then(|| self.changes.range::<Place, _>(bounds));
        changes.into_iter().flatten().map(|(place, deletion)| (place.position().clone(), *deletion))
    }

    /// Takes out what changes nothing, from one place to another.
    fn join(&mut self, start: &Place, end: &Place) {
        let mut before = self.before(start);
        let mut idle = Vec::new();
        for (place, deletion) in self.changes.range((Included(start), Included(end))) {
            if std::mem::replace(&mut before, *deletion) == *deletion {
                idle.push(place.clone());
            }
        }
        for place in &idle {
            self.changes.remove(place);
        }
    }
}

fn last<'a>(mut changes: impl DoubleEndedIterator<Item = (&'a Place, &'a DeletionTime)>) -> DeletionTime {
    changes.next_back().map_or(DeletionTime::LIVE, |(_, deletion)| *deletion)
}

#[cfg(test)]
mod tests {
    use model::{Clustering, CqlType};
    use testkit::generate::random::Random;

    use super::*;

    fn schema() -> Rc<Schema> {
        Rc::new(Schema::new(CqlType::Blob, vec![CqlType::Blob], Vec::new(), Vec::new()))
    }

    fn position(at: usize) -> Position {
        let prefix: Clustering = std::iter::once(vec![(at / 2) as u8]).collect();
        if at.is_multiple_of(2) { Position::before(prefix) } else { Position::after(prefix) }
    }

    #[test]
    fn each_place_has_the_greatest_of_what_covers_it() {
        let schema = schema();
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let mut ranges = Ranges::default();
            let mut model = [DeletionTime::LIVE; 40];
            for _ in 0..random.below(12) {
                let (start, end) = (random.below(40), random.below(40));
                let at = random.below(5) as i64;
                let deletion = DeletionTime { marked_for_delete_at: at, local_deletion_time: at };
                ranges.add(&schema, &RangeTombstone { start: position(start), end: position(end), deletion });
                for slot in model.iter_mut().take(end).skip(start) {
                    *slot = (*slot).max(deletion);
                }
            }
            let found: Vec<_> = (0..40).map(|at| ranges.at(&Place::new(&schema, position(at)))).collect();
            assert_eq!(found, model, "seed {seed}");
            check_invariants(&ranges);
        }
    }

    fn check_invariants(ranges: &Ranges) {
        let values: Vec<_> = ranges.changes.values().collect();
        assert!(values.windows(2).all(|pair| pair[0] != pair[1]));
        assert!(values.first().is_none_or(|first| !first.is_live()));
        assert!(values.last().is_none_or(|last| last.is_live()));
    }
}
