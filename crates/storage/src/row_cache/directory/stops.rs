//! Where the reader of SSTables is to stop in a gap between parts.

use std::rc::Rc;

use model::{Direction, PartitionKey, Position};

use super::{Directory, Entry};
use crate::row_cache::part::Part;
use crate::sorted::Sorted;

/// Parts that adjoin each other.
struct Island {
    first: Rc<Part>,
    last: Rc<Part>,
    bytes: usize,
}

/// So many parts are looked at for what is worth a stop, in about the time of a request. What is behind them is found out when a reader
/// comes there.
const LOOKED_AT: u64 = 256;

/// So many are looked at by whoever wants but a few rows: some parts have none.
const LOOKED_AT_FOR_FEW: u64 = 64;

impl Directory {
    /// Of a slice from a position that no part covers to its end, as a stream runs: where the reader of SSTables is to stop. That is where parts
    /// begin that are worth it, or behind the last part that is looked at: of which there are more for who wants many rows, and none behind those that
    /// have enough. `None` at the end.
    ///
    /// Each stop is one more request. Parts that adjoin each other are worth one if they have so many bytes together, or all of the
    /// rest of the slice ([0077](../../../../docs/decisions/0077-parts-that-are-worth-a-stop.md)).
    pub(in crate::row_cache) fn end_of_gap(
        &self,
        key: &PartitionKey,
        (at, end): (&Position, &Position),
        direction: Direction,
        (worth_a_stop, limit): (usize, Option<u64>),
    ) -> Option<Position> {
        let most = limit.map_or(LOOKED_AT, |rows| rows.clamp(LOOKED_AT_FOR_FEW, LOOKED_AT));
        let mut rows_left = limit.map_or(usize::MAX, |rows| usize::try_from(rows).unwrap_or(usize::MAX));
        let partition = self.partition(key)?;
        let parts = partition.of_rows.borrow();
        let is_before_end = |position: &Position| {
            let order = self.schema.compare(position, end);
            if direction == Direction::Forward { order.is_lt() } else { order.is_gt() }
        };
        let mut island: Option<Island> = None;
        for (number, part) in (1..).zip(self.ahead(&parts, at, direction)) {
            let (near_end, far_end) = (part.near_end(direction), part.far_end(direction));
            if !is_before_end(near_end) {
                return None;
            }
            let adjoining = island
                .take()
                .filter(|island| self.schema.compare(island.last.far_end(direction), near_end).is_eq());
            let (first, before) =
                adjoining.map_or_else(|| (part.clone(), 0), |island| (island.first, island.bytes));
            let bytes = before + part.stretch.bytes.len();
            // Of what range tombstones or the partition's deletion hide SSTables may have far more than the part.
            let may_hide =
                !part.stretch.is_free_of_ranges() || part.stretch.head.is_some_and(|head| !head.is_live());
            if may_hide || bytes >= worth_a_stop || !is_before_end(far_end) {
                return Some(first.near_end(direction).clone());
            }
            rows_left = rows_left.saturating_sub(part.stretch.len());
            if number == most || rows_left == 0 {
                return Some(far_end.clone());
            }
            island = Some(Island { first, last: part, bytes });
        }
        None
    }

    /// The parts from a position on, which no part covers, as a stream comes to them.
    fn ahead(
        &self,
        parts: &Sorted<Entry>,
        at: &Position,
        direction: Direction,
    ) -> impl Iterator<Item = Rc<Part>> {
        let first = self.look(parts, at, direction).place();
        let places = std::iter::successors(first, move |place| match direction {
            Direction::Forward => Some(parts.place_behind(*place)),
            Direction::Reverse => parts.place_before(*place),
        });
        let part = move |entry: &Entry| {
            entry.near.bring(&entry.part, direction);
            entry.part()
        };
        places.map_while(move |place| part(parts.get(place)?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{directory, key, part, position, with_rows};
    use super::*;

    /// Where a gap ends that begins at a place, of a slice that ends at another.
    fn end_of_gap(
        directory: &Directory,
        (at, end): (u8, u8),
        direction: Direction,
        asked: (usize, Option<u64>),
    ) -> Option<Position> {
        directory.end_of_gap(&key(1), (&position(at), &position(end)), direction, asked)
    }

    #[test]
    fn a_gap_ends_where_parts_are_worth_a_stop() {
        let directory = directory();
        // Two that adjoin each other, between two by themselves.
        let kept = [(10, 12), (20, 22), (22, 24), (30, 32)].map(|(start, end)| part(start, end, None));
        for (number, part) in (0..).zip(&kept) {
            directory.add(&key(1), part, number);
        }
        let one = kept[0].stretch.bytes.len();
        let forward = |at, end, worth| end_of_gap(&directory, (at, end), Direction::Forward, (worth, None));
        let reverse = |at, end, worth| end_of_gap(&directory, (at, end), Direction::Reverse, (worth, None));
        assert_eq!((forward(1, 50, one), reverse(50, 1, one)), (Some(position(10)), Some(position(32))));
        assert_eq!(
            (forward(1, 50, 2 * one), reverse(50, 1, 2 * one)),
            (Some(position(20)), Some(position(24)))
        );
        assert_eq!((forward(1, 50, 3 * one), reverse(50, 1, 3 * one)), (None, None));
        assert_eq!((forward(13, 50, 2 * one), forward(25, 50, 2 * one)), (Some(position(20)), None));
        // What has all of the rest is, however little it is.
        assert_eq!(
            (forward(1, 31, usize::MAX), reverse(50, 11, usize::MAX)),
            (Some(position(30)), Some(position(12)))
        );
        assert_eq!(
            (forward(1, 23, usize::MAX), reverse(50, 21, usize::MAX)),
            (Some(position(20)), Some(position(24)))
        );
        assert_eq!((forward(1, 10, 0), forward(1, 9, 0), reverse(50, 32, 0)), (None, None, None));
    }

    #[test]
    fn few_parts_are_looked_at_for_few_rows() {
        let directory = directory();
        let kept: Vec<Rc<Part>> = (0..=100).map(|at| part(2 * at + 1, 2 * at + 2, None)).collect();
        for (number, part) in (0..).zip(&kept) {
            directory.add(&key(1), part, number);
        }
        let most = u8::try_from(LOOKED_AT_FOR_FEW).unwrap();
        for (limit, behind) in [(1, Some(position(2 * most))), (100, Some(position(200))), (5000, None)] {
            let asked = (usize::MAX, Some(limit));
            assert_eq!(end_of_gap(&directory, (0, 255), Direction::Forward, asked), behind, "{limit}");
        }
        let reversed = end_of_gap(&directory, (255, 0), Direction::Reverse, (usize::MAX, Some(1)));
        assert_eq!(reversed, Some(position(2 * (100 - most + 1) + 1)));
    }

    #[test]
    fn no_parts_are_looked_at_behind_those_that_have_enough_rows() {
        let directory = directory();
        let kept: Vec<Rc<Part>> = (0..20).map(|at| with_rows(10 * at + 1, 10 * at + 5)).collect();
        for (number, part) in (0..).zip(&kept) {
            directory.add(&key(1), part, number);
        }
        for (limit, ends) in
            [(1, Some((5, 191))), (4, Some((5, 191))), (5, Some((15, 181))), (80, Some((195, 1))), (81, None)]
        {
            let asked = (usize::MAX, Some(limit));
            let forward = end_of_gap(&directory, (0, 255), Direction::Forward, asked);
            let reverse = end_of_gap(&directory, (255, 0), Direction::Reverse, asked);
            assert_eq!(
                forward.zip(reverse),
                ends.map(|(end, start)| (position(end), position(start))),
                "{limit}"
            );
        }
    }
}
