//! One of the stretches in which a partition is kept, or its static row.
//!
//! ```text
//! start position, end position      not of a static row
//! fragments and their numbers       as a `Stretch` has them
//! ```

use std::cell::OnceCell;
use std::cmp::Ordering;

use model::flat::{FlatReader, put_position};
use model::{Bytes, DeletionTime, Direction, Fragment, Position, Row, Schema, Slice, Weight};

use super::directory::Link;
use super::stretch::{Draft, OWN, Stretch, View};

/// A stretch of a partition between two positions that stand beside rows, the end behind the start; or its static row.
pub(super) struct Part {
    pub(super) scope: Scope,
    pub(super) stretch: Stretch,
    /// Its place in the directory, if it came there.
    pub(super) link: OnceCell<Link>,
}

/// What a part is of.
pub(super) enum Scope {
    Static,
    Rows { start: Position, end: Position },
}

impl Part {
    /// The partition's static row, or that there is none.
    pub(super) fn of_static_row(head: Option<DeletionTime>, row: Option<&Fragment>) -> Part {
        let mut draft = Draft::default();
        row.iter().for_each(|row| draft.push(row));
        let (bytes, numbers_at) = draft.seal(&[], Direction::Forward);
        let (open, bytes) = (DeletionTime::LIVE, Bytes::from(bytes));
        let stretch = Stretch { head, open, has_changes: false, bytes, numbers_at };
        Part { scope: Scope::Static, stretch, link: OnceCell::new() }
    }

    /// The fragments of a draft, which came in this direction, as all that there is between two positions. Leaves the
    /// draft empty.
    pub(super) fn of_rows(
        head: Option<DeletionTime>,
        (start, end): (&Position, &Position),
        open: DeletionTime,
        draft: &mut Draft,
        direction: Direction,
    ) -> Part {
        let mut ends = Vec::new();
        put_position(start, &mut ends);
        put_position(end, &mut ends);
        let has_changes = draft.has_changes();
        let (bytes, numbers_at) = draft.seal(&ends, direction);
        let bytes = Bytes::from(bytes);
        let mut reader = FlatReader::new(bytes.clone());
        // These point into the part's own bytes.
        let [start, end] = [(); 2].map(|()| reader.position().expect(OWN));
        let stretch = Stretch { head, open, has_changes, bytes, numbers_at };
        Part { scope: Scope::Rows { start, end }, stretch, link: OnceCell::new() }
    }

    /// All of a partition, for whoever waits for it.
    pub(super) fn of_all(stretch: Stretch) -> Part {
        let scope = Scope::Rows { start: Position::start(), end: Position::end() };
        Part { scope, stretch, link: OnceCell::new() }
    }

    /// The static row, if this is of it and there is one.
    pub(super) fn static_row(&self) -> Option<Row> {
        match (self.stretch.len() > 0).then(|| self.stretch.fragment(0)) {
            Some(Fragment::StaticRow(row)) => Some(row),
            _ => None,
        }
    }

    /// Bytes of memory that it takes, with its link and without what the directory has of it.
    pub(super) fn weight(&self) -> usize {
        let spilled = match &self.scope {
            Scope::Static => 0,
            Scope::Rows { start, end } => start.prefix.spilled_bytes() + end.prefix.spilled_bytes(),
        };
        // Both it and its buffer are counted by two numbers in front of them.
        let counts = 4 * size_of::<usize>();
        counts + size_of::<Part>() + size_of::<Vec<u8>>() + self.stretch.bytes.len() + spilled
    }

    /// What it has of a slice, in a direction.
    pub(super) fn view(&self, slice: &Slice, schema: &Schema, direction: Direction) -> View {
        let ((start, end), stretch) = (self.ends(), &self.stretch);
        let beside_start = |at| stretch.compare(at, schema, &slice.start);
        let lies_within = || schema.compare(start, &slice.start).is_ge();
        let first = match direction {
            // Its first row is far from where the stream enters.
            Direction::Reverse if lies_within() => 0,
            // Of a slice of many parts, most lie within it. Their first row is looked at rather than their start, as it is read then.
            _ => match (stretch.len() > 0).then(|| beside_start(0)) {
                None | Some(Ordering::Greater) => 0,
                // The range tombstone that changes there is told by whoever begins there.
                Some(Ordering::Equal) if lies_within() => 0,
                Some(_) => stretch.first(1..stretch.len(), |at| beside_start(at).is_gt()),
            },
        };
        let is_behind = |at| stretch.compare(at, schema, &slice.end).is_ge();
        let end = match schema.compare(end, &slice.end).is_le() {
            true => stretch.len(),
            // Of one that comes from before it nothing tells how far it goes; the others are mostly short.
            false if first == 0 => stretch.first(0..stretch.len(), is_behind),
            false => stretch.first_from(first, is_behind),
        };
        stretch.view_of(first..end.max(first), direction)
    }

    /// The end at which a stream leaves it.
    pub(super) fn far_end(&self, direction: Direction) -> &Position {
        let (start, end) = self.ends();
        if direction == Direction::Forward { end } else { start }
    }

    /// The end at which a stream comes to it.
    pub(super) fn near_end(&self, direction: Direction) -> &Position {
        let (start, end) = self.ends();
        if direction == Direction::Forward { start } else { end }
    }

    /// Whether a stream that is in it finds in it all up to a position.
    pub(super) fn reaches(&self, schema: &Schema, position: &Position, direction: Direction) -> bool {
        let order = schema.compare(self.far_end(direction), position);
        if direction == Direction::Forward { order.is_ge() } else { order.is_le() }
    }
}

/// The position just behind a row or a range tombstone, as the stream runs.
pub(super) fn behind(fragment: &Fragment, direction: Direction) -> Option<Position> {
    let weight = match direction {
        Direction::Forward => Weight::After,
        Direction::Reverse => Weight::Before,
    };
    beside(fragment, weight)
}

/// The position just before a row or a range tombstone, as the stream runs.
pub(super) fn before(fragment: &Fragment, direction: Direction) -> Option<Position> {
    let weight = match direction {
        Direction::Forward => Weight::Before,
        Direction::Reverse => Weight::After,
    };
    beside(fragment, weight)
}

fn beside(fragment: &Fragment, weight: Weight) -> Option<Position> {
    match fragment {
        Fragment::Row(row) => Some(Position { prefix: row.clustering.clone(), weight }),
        Fragment::RangeTombstone(change) => Some(change.position.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::Clustering;

    use super::*;

    const LIVE: DeletionTime = DeletionTime::LIVE;

    #[test]
    fn a_static_row_is_there_or_is_not() {
        let fragment = Fragment::StaticRow(Row::new(Clustering::empty()));
        let part = Part::of_static_row(Some(LIVE), Some(&fragment));
        assert_eq!(part.static_row().map(Fragment::StaticRow), Some(fragment));
        assert_eq!(Part::of_static_row(None, None).static_row(), None);
    }
}
