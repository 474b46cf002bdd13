//! A stretch of a partition, as all SSTables tell it together, in one piece of memory.
//!
//! ```text
//! start position, end position      not of a static row
//! fragments                         as `model::flat` has them, ascending
//! 4 bytes a fragment                where it begins; the top bit: it is a range tombstone
//! ```

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::ops::Range;
use std::rc::Rc;

use model::flat::{
    FlatReader, FlatRow, compare_at, compare_to_row_at, fragment_at, put_fragment, put_position,
};
use model::{Bytes, DeletionTime, Direction, Fragment, Position, Row, Schema, Slice, Weight};

use runtime::prefetch;

use super::directory::Link;

/// A stretch of a partition, or its static row.
///
/// Invariants:
/// 1. It tells all that SSTables have between its start and its end, which stand beside rows, the end behind the start.
/// 2. Its fragments are rows and range tombstones strictly between the two, ascending; of a static row they are that
///    row, or none if there is none.
/// 3. It holds no buffer but its own.
pub(super) struct Part {
    /// The deletion of the partition; `None` if no SSTable has the partition.
    pub(super) head: Option<DeletionTime>,
    pub(super) scope: Scope,
    bytes: Bytes,
    /// Where the numbers behind the fragments begin.
    numbers_at: u32,
    has_changes: bool,
    /// Its place in the directory, if it came there.
    pub(super) link: OnceCell<Link>,
}

/// What a part is of.
pub(super) enum Scope {
    Static,
    Rows {
        start: Position,
        end: Position,
        /// The range tombstone in force behind the start.
        open: DeletionTime,
    },
}

/// What a part is made of, encoded one after the other.
#[derive(Debug, Default)]
pub(super) struct Draft {
    bytes: Vec<u8>,
    numbers: Vec<u32>,
}

/// Bytes for the first few fragments.
const FIRST: usize = 512;

/// So many rows before it is looked at, a row is brought near the CPU: there are too many instructions between two rows for a
/// CPU to see the next one by itself.
const AHEAD: usize = 4;

/// So many lines of a row are brought. Who looks at the end of a longer one goes there line by line, which a CPU foresees.
const LINES: usize = 4;

/// Bytes of a line of the CPU's caches.
const LINE: usize = 64;

/// The top bit of a number.
const IS_CHANGE: u32 = 1 << 31;

/// Said of what this module wrote itself and nobody else could change.
const OWN: &str = "a part decodes what it encoded";

impl Part {
    /// The partition's static row, or that there is none.
    pub(super) fn of_static_row(head: Option<DeletionTime>, row: Option<&Fragment>) -> Part {
        let mut draft = Draft::default();
        row.iter().for_each(|row| draft.push(row));
        let (bytes, numbers_at) = draft.seal(Vec::new(), Direction::Forward);
        Part { head, scope: Scope::Static, bytes, numbers_at, has_changes: false, link: OnceCell::new() }
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
        let (bytes, numbers_at) = draft.seal(ends, direction);
        let mut reader = FlatReader::new(bytes.clone());
        // These point into the part's own bytes.
        let [start, end] = [(); 2].map(|()| reader.position().expect(OWN));
        let scope = Scope::Rows { start, end, open };
        Part { head, scope, bytes, numbers_at, has_changes, link: OnceCell::new() }
    }

    /// The static row, if this is of it and there is one.
    pub(super) fn static_row(&self) -> Option<Row> {
        match (self.len() > 0).then(|| self.fragment(0)) {
            Some(Fragment::StaticRow(row)) => Some(row),
            _ => None,
        }
    }

    /// Bytes of memory that it takes, without its place in the directory.
    pub(super) fn weight(&self) -> usize {
        let spilled = match &self.scope {
            Scope::Static => 0,
            Scope::Rows { start, end, .. } => start.prefix.spilled_bytes() + end.prefix.spilled_bytes(),
        };
        // Both it and its buffer are counted by two numbers in front of them.
        let counts = 4 * size_of::<usize>();
        counts + size_of::<Part>() + size_of::<Vec<u8>>() + self.bytes.len() + spilled
    }

    /// What it has of a slice, in a direction.
    pub(super) fn view(self: &Rc<Part>, slice: &Slice, schema: &Schema, direction: Direction) -> View {
        let (start, end) = self.ends();
        // Of a slice of many parts, most lie within it.
        let first = match schema.compare(start, &slice.start).is_ge() {
            true => 0,
            false => self.first(0..self.len(), |at| self.compare(at, schema, &slice.start).is_gt()),
        };
        let end = match schema.compare(end, &slice.end).is_le() {
            true => self.len(),
            false => self.first_from(first, |at| self.compare(at, schema, &slice.end).is_ge()),
        };
        View { part: self.clone(), left: (first, end.max(first)), direction }
    }

    /// The place of the row with this clustering key, if there is one. The part is [free of ranges](Part::is_free_of_ranges).
    pub(super) fn place_of_row(&self, schema: &Schema, row: &[&[u8]]) -> Option<usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            match compare_to_row_at(&self.bytes, self.place(middle), &schema.clustering, row).expect(OWN) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The row that has this place.
    #[inline]
    pub(super) fn flat_row(&self, at: usize) -> FlatRow<'_> {
        FlatRow::new(&self.bytes, &self.bytes[self.place(at)..])
    }

    /// The end at which a stream leaves it.
    pub(super) fn far_end(&self, direction: Direction) -> &Position {
        let (start, end) = self.ends();
        if direction == Direction::Forward { end } else { start }
    }

    /// Whether a stream that is in it finds in it all up to a position.
    pub(super) fn reaches(&self, schema: &Schema, position: &Position, direction: Direction) -> bool {
        let order = schema.compare(self.far_end(direction), position);
        if direction == Direction::Forward { order.is_ge() } else { order.is_le() }
    }

    /// Whether no range tombstone is open anywhere in it.
    pub(super) fn is_free_of_ranges(&self) -> bool {
        !self.has_changes && !matches!(self.scope, Scope::Rows { open, .. } if !open.is_live())
    }

    fn len(&self) -> usize {
        (self.bytes.len() - self.numbers_at as usize) / size_of::<u32>()
    }

    fn number(&self, at: usize) -> u32 {
        let at = self.numbers_at as usize + at * size_of::<u32>();
        let bytes = self.bytes[at..at + size_of::<u32>()].try_into();
        u32::from_le_bytes(bytes.expect("the slice has the length"))
    }

    /// Where a fragment begins.
    #[inline]
    fn place(&self, at: usize) -> usize {
        (self.number(at) & !IS_CHANGE) as usize
    }

    fn fragment(&self, at: usize) -> Fragment {
        let mut fragment = Fragment::default();
        self.take_fragment(at, &mut fragment);
        fragment
    }

    #[inline]
    fn take_fragment(&self, at: usize, place: &mut Fragment) {
        fragment_at(&self.bytes, self.place(at), place).expect(OWN);
    }

    /// Where a fragment stands beside a position.
    #[inline]
    fn compare(&self, at: usize, schema: &Schema, position: &Position) -> Ordering {
        compare_at(&self.bytes, self.place(at), &schema.clustering, position).expect(OWN)
    }

    /// The first fragment of these that is like this, as all after it are; the one behind them if none is.
    fn first(&self, among: Range<usize>, is_like_this: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (among.start, among.end);
        while low < high {
            let middle = low.midpoint(high);
            match is_like_this(middle) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// The same from a fragment on, near which it is expected.
    fn first_from(&self, from: usize, is_like_this: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut step) = (from, 1);
        while low + step <= self.len() && !is_like_this(low + step - 1) {
            low += step;
            step *= 2;
        }
        self.first(low..self.len().min(low + step - 1), is_like_this)
    }

    /// The range tombstone in force just before a fragment.
    fn open_before(&self, at: usize) -> DeletionTime {
        let changes = if self.has_changes { at } else { 0 };
        let change = (0..changes).rev().find(|before| self.number(*before) & IS_CHANGE != 0);
        match (change.map(|change| self.fragment(change)), &self.scope) {
            (Some(Fragment::RangeTombstone(change)), _) => change.deletion,
            (_, Scope::Rows { open, .. }) => *open,
            (_, Scope::Static) => DeletionTime::LIVE,
        }
    }
}

/// Gives out what a part has of a slice.
pub(super) struct View {
    part: Rc<Part>,
    /// The fragments that are left: the first one, and the one behind the last.
    left: (usize, usize),
    direction: Direction,
}

impl View {
    /// The deletion of the partition, if there is one.
    pub(super) fn head(&self) -> Option<DeletionTime> {
        self.part.head
    }

    /// The range tombstone in force where the slice begins, as the view runs.
    pub(super) fn entry(&self) -> DeletionTime {
        match self.direction {
            Direction::Forward => self.part.open_before(self.left.0),
            Direction::Reverse => self.part.open_before(self.left.1),
        }
    }

    /// Puts the next row or range tombstone into `place`; whether there is one.
    #[inline]
    pub(super) fn next(&mut self, place: &mut Fragment) -> bool {
        let (first, end) = &mut self.left;
        if first == end {
            return false;
        }
        match self.direction {
            Direction::Forward => {
                self.part.take_fragment(*first, place);
                *first += 1;
            }
            Direction::Reverse => {
                *end -= 1;
                self.part.take_fragment(*end, place);
                if let Fragment::RangeTombstone(change) = place {
                    change.deletion = self.part.open_before(*end);
                }
            }
        }
        true
    }

    /// Whether nothing is left.
    pub(super) fn is_at_end(&self) -> bool {
        self.left.0 == self.left.1
    }

    /// Gives the next rows as they stand, up to a range tombstone, as long as `take` wants more. Whether it does.
    #[inline]
    pub(super) fn next_flat(&mut self, take: &mut impl FnMut(FlatRow<'_>) -> bool) -> bool {
        let (first, end) = &mut self.left;
        let is_forward = self.direction == Direction::Forward;
        let all: &[u8] = &self.part.bytes;
        let (numbers, _) = all[self.part.numbers_at as usize..].as_chunks();
        let bring = |first: usize, end: usize, ahead: usize| {
            let at = if is_forward { first + ahead } else { end.wrapping_sub(1 + ahead) };
            if let Some(number) = numbers.get(at) {
                let row = &all[(u32::from_le_bytes(*number) & !IS_CHANGE) as usize..];
                row.chunks(LINE).take(LINES).for_each(|line| prefetch(&line[0]));
            }
        };
        (1..AHEAD).for_each(|ahead| bring(*first, *end, ahead));
        while first < end {
            bring(*first, *end, AHEAD);
            let number = u32::from_le_bytes(numbers[if is_forward { *first } else { *end - 1 }]);
            if number & IS_CHANGE != 0 {
                return true;
            }
            if is_forward {
                *first += 1;
            } else {
                *end -= 1;
            }
            if !take(FlatRow::new(&self.part.bytes, &all[number as usize..])) {
                return false;
            }
        }
        true
    }
}

impl Draft {
    /// Appends a fragment.
    pub(super) fn push(&mut self, fragment: &Fragment) {
        let is_change = matches!(fragment, Fragment::RangeTombstone(_));
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(FIRST);
        }
        let at = u32::try_from(self.bytes.len()).expect("parts are smaller than 2 GiB");
        self.numbers.push(at | if is_change { IS_CHANGE } else { 0 });
        put_fragment(fragment, &mut self.bytes);
    }

    /// Takes the last fragment out again.
    pub(super) fn pop(&mut self) {
        if let Some(number) = self.numbers.pop() {
            self.bytes.truncate((number & !IS_CHANGE) as usize);
        }
    }

    fn has_changes(&self) -> bool {
        self.numbers.iter().any(|number| number & IS_CHANGE != 0)
    }

    /// Bytes of fragments.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many fragments there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// All of it behind a head, ascending; and where the numbers begin. Leaves it empty.
    fn seal(&mut self, head: Vec<u8>, direction: Direction) -> (Bytes, u32) {
        let mut out =
            Vec::with_capacity(head.len() + self.bytes.len() + self.numbers.len() * size_of::<u32>());
        out.extend_from_slice(&head);
        match direction {
            Direction::Forward => {
                self.numbers.iter_mut().for_each(|number| *number += head.len() as u32);
                out.extend_from_slice(&self.bytes);
            }
            Direction::Reverse => self.reverse(&mut out),
        }
        let numbers_at = out.len() as u32;
        self.numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        self.bytes.clear();
        self.numbers.clear();
        (Bytes::from(out), numbers_at)
    }

    fn reverse(&mut self, out: &mut Vec<u8>) {
        let mut end = self.bytes.len();
        for number in self.numbers.iter_mut().rev() {
            let start = (*number & !IS_CHANGE) as usize;
            *number = out.len() as u32 | (*number & IS_CHANGE);
            out.extend_from_slice(&self.bytes[start..end]);
            end = start;
        }
        self.numbers.reverse();
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
    use model::{Clustering, CqlType, RangeTombstoneChange};

    use super::*;

    const LIVE: DeletionTime = DeletionTime::LIVE;

    fn prefix(at: u8) -> Clustering {
        std::iter::once(vec![at]).collect()
    }

    fn row(at: u8) -> Fragment {
        Fragment::Row(Row::new(prefix(at)))
    }

    fn deletion(at: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at: at, local_deletion_time: at }
    }

    fn change(position: Position, deletion: DeletionTime) -> Fragment {
        Fragment::RangeTombstone(RangeTombstoneChange { position, deletion })
    }

    /// A deletion is in force from the start on up to 2, and another from 4 to 6.
    fn fragments() -> Vec<Fragment> {
        let (from, to) = (Position::before(prefix(4)), Position::after(prefix(6)));
        let until = Position::after(prefix(2));
        vec![row(1), change(until, LIVE), row(3), change(from, deletion(2)), row(5), change(to, LIVE), row(9)]
    }

    fn part(direction: Direction) -> Rc<Part> {
        let mut draft = Draft::default();
        match direction {
            Direction::Forward => fragments().iter().for_each(|fragment| draft.push(fragment)),
            Direction::Reverse => fragments().iter().rev().for_each(|fragment| draft.push(fragment)),
        }
        draft.push(&row(200));
        draft.pop();
        let (start, end) = (Position::start(), Position::end());
        Rc::new(Part::of_rows(None, (&start, &end), deletion(1), &mut draft, direction))
    }

    fn given(slice: &Slice, direction: Direction) -> (DeletionTime, Vec<Fragment>) {
        let schema = Schema::new(CqlType::Blob, vec![CqlType::Blob], Vec::new(), Vec::new());
        let both = [Direction::Forward, Direction::Reverse].map(|drafted| {
            let mut view = part(drafted).view(slice, &schema, direction);
            let entry = view.entry();
            let next = || {
                let mut place = Fragment::default();
                view.next(&mut place).then_some(place)
            };
            (entry, std::iter::from_fn(next).collect())
        });
        assert_eq!(both[0], both[1], "it does not matter how it was drafted");
        both[0].clone()
    }

    #[test]
    fn a_view_tells_what_is_in_force_either_way() {
        let all = Slice::all();
        assert_eq!(given(&all, Direction::Forward), (deletion(1), fragments()));
        let mut reversed = fragments();
        let below = [deletion(1), LIVE, deletion(2)];
        let changes = reversed.iter_mut().filter_map(|fragment| match fragment {
            Fragment::RangeTombstone(change) => Some(change),
            _ => None,
        });
        changes.zip(below).for_each(|(change, below)| change.deletion = below);
        reversed.reverse();
        assert_eq!(given(&all, Direction::Reverse), (LIVE, reversed));
    }

    #[test]
    fn a_view_of_a_slice_begins_with_what_is_in_force_there() {
        let slice = Slice { start: Position::before(prefix(3)), end: Position::before(prefix(5)) };
        let from = Position::before(prefix(4));
        let forward = vec![row(3), change(from.clone(), deletion(2))];
        assert_eq!(given(&slice, Direction::Forward), (LIVE, forward));
        let reverse = vec![change(from.clone(), LIVE), row(3)];
        assert_eq!(given(&slice, Direction::Reverse), (deletion(2), reverse));
        // A change at an end is outside, and in force behind it.
        let inside = Slice { start: from, end: Position::after(prefix(6)) };
        assert_eq!(given(&inside, Direction::Forward), (deletion(2), vec![row(5)]));
        assert_eq!(given(&inside, Direction::Reverse), (deletion(2), vec![row(5)]));
        let nothing = Slice::of_prefix(prefix(7));
        assert_eq!(given(&nothing, Direction::Forward), (LIVE, Vec::new()));
    }

    #[test]
    fn a_static_row_is_there_or_is_not() {
        let fragment = Fragment::StaticRow(Row::new(Clustering::empty()));
        let part = Part::of_static_row(Some(LIVE), Some(&fragment));
        assert_eq!(part.static_row().map(Fragment::StaticRow), Some(fragment));
        assert_eq!(Part::of_static_row(None, None).static_row(), None);
    }
}
