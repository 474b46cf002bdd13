//! A stretch of a partition, as all SSTables tell it together: its fragments, encoded, in one piece of memory.
//!
//! ```text
//! ...                what the stretch is of: a part, or a whole partition
//! fragments          as `model::flat` has them, ascending
//! 4 bytes each       where a fragment begins; the top bits: it is a range tombstone, it is a usual row
//! ```

use std::cmp::Ordering;
use std::ops::Range;

use model::flat::{FlatRow, RowTaker, SoughtRow, compare_at, fragment_at, is_usual, put_fragment};
use model::{Bytes, DeletionTime, Direction, Fragment, Position, Schema, Slice};
use runtime::{ROWS_AHEAD, prefetch, prefetch_row};

/// All that SSTables have of a stretch of a partition, whose ends stand beside rows.
///
/// Invariants:
/// 1. Its fragments are rows strictly between its ends, and range tombstones there or at them, ascending; of a static row they are that
///    row, or none if there is none.
/// 2. It holds no buffer but its own.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    /// The deletion of the partition; `None` if no SSTable has the partition.
    pub(super) head: Option<DeletionTime>,
    /// The range tombstone in force behind its start.
    pub(super) open: DeletionTime,
    /// Whether there are range tombstones among the fragments.
    pub(super) has_changes: bool,
    pub(super) bytes: Bytes,
    /// Where the numbers behind the fragments begin.
    pub(super) numbers_at: u32,
}

/// What a stretch is made of, encoded one after the other.
#[derive(Debug, Default)]
pub(super) struct Draft {
    bytes: Vec<u8>,
    numbers: Vec<u32>,
}

/// Bytes for the first few fragments.
const FIRST: usize = 512;

/// A draft with no more bytes than these is kept for the next row.
const SMALL: usize = 16 << 10;

/// The top bit of a number: the fragment is a range tombstone.
const IS_CHANGE: u32 = 1 << 31;

/// The next one: it is a row that [is usual](model::flat::is_usual).
const IS_USUAL: u32 = 1 << 30;

/// The others: where it begins.
const PLACE: u32 = IS_USUAL - 1;

/// Said of what this module wrote itself and nobody else could change.
pub(super) const OWN: &str = "a stretch decodes what was encoded for it";

impl Stretch {
    /// What it has of a slice, in a direction.
    pub(super) fn view(&self, slice: &Slice, schema: &Schema, direction: Direction) -> View {
        let first = self.first(0..self.len(), |at| self.compare(at, schema, &slice.start).is_gt());
        let end = self.first_from(first, |at| self.compare(at, schema, &slice.end).is_ge());
        self.view_of(first..end.max(first), direction)
    }

    /// These fragments of it, in a direction.
    pub(super) fn view_of(&self, fragments: Range<usize>, direction: Direction) -> View {
        View { stretch: self.clone(), left: (fragments.start, fragments.end), direction }
    }

    /// Where in the bytes the row with this clustering key begins, if there is one, and whether it is known as a usual one. The
    /// stretch is [free of ranges](Stretch::is_free_of_ranges).
    #[inline(always)]
    pub(super) fn place_of_row(&self, schema: &Schema, row: &[&[u8]]) -> Option<(usize, bool)> {
        if self.numbers_at as usize == self.bytes.len() { None } else { self.search(schema, row) }
    }

    /// The same of one that has fragments.
    #[inline(never)]
    fn search(&self, schema: &Schema, row: &[&[u8]]) -> Option<(usize, bool)> {
        let (_, numbers) = self.bytes.split_at(self.numbers_at as usize);
        let (mut numbers, _) = numbers.as_chunks();
        let sought = SoughtRow::new(&schema.clustering, row);
        while let Some(number) = numbers.get(numbers.len() / 2) {
            let number = u32::from_le_bytes(*number);
            let place = (number & PLACE) as usize;
            let (before, from) = numbers.split_at(numbers.len() / 2);
            numbers = match sought.compare_at(&self.bytes, place).expect(OWN) {
                Ordering::Less => &from[1..],
                Ordering::Equal => return Some((place, number & IS_USUAL != 0)),
                Ordering::Greater => before,
            };
        }
        None
    }

    /// Whether no range tombstone is open anywhere in it.
    #[inline]
    pub(super) fn is_free_of_ranges(&self) -> bool {
        !self.has_changes && self.open.is_live()
    }

    /// How many fragments there are.
    pub(super) fn len(&self) -> usize {
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
        (self.number(at) & PLACE) as usize
    }

    pub(super) fn fragment(&self, at: usize) -> Fragment {
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
    pub(super) fn compare(&self, at: usize, schema: &Schema, position: &Position) -> Ordering {
        compare_at(&self.bytes, self.place(at), &schema.clustering, position).expect(OWN)
    }

    /// The first fragment of these that is like this, as all after it are; the one behind them if none is.
    pub(super) fn first(&self, among: Range<usize>, is_like_this: impl Fn(usize) -> bool) -> usize {
        let (mut low, mut high) = (among.start, among.end);
        while low < high {
            let middle = low.midpoint(high);
            // One of these is next: it is on its way while this one is.
            if high - low > 2 {
                self.bring(low.midpoint(middle));
                self.bring((middle + 1).midpoint(high));
            }
            match is_like_this(middle) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    }

    /// Begins to bring the beginning of a fragment near the CPU.
    #[inline]
    fn bring(&self, at: usize) {
        if let Some(byte) = self.bytes.get(self.place(at)) {
            prefetch(byte);
        }
    }

    /// The same from a fragment on, near which it is expected.
    pub(super) fn first_from(&self, from: usize, is_like_this: impl Fn(usize) -> bool) -> usize {
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
        match change.map(|change| self.fragment(change)) {
            Some(Fragment::RangeTombstone(change)) => change.deletion,
            _ => self.open,
        }
    }
}

/// Gives out what a stretch has of a slice.
pub(super) struct View {
    stretch: Stretch,
    /// The fragments that are left: the first one, and the one behind the last.
    left: (usize, usize),
    direction: Direction,
}

impl View {
    /// The deletion of the partition, if there is one.
    pub(super) fn head(&self) -> Option<DeletionTime> {
        self.stretch.head
    }

    /// The range tombstone in force where the slice begins, as the view runs.
    pub(super) fn entry(&self) -> DeletionTime {
        match self.direction {
            Direction::Forward => self.stretch.open_before(self.left.0),
            Direction::Reverse => self.stretch.open_before(self.left.1),
        }
    }

    /// What is left, ascending, as it stands.
    pub(super) fn draft(&self) -> Draft {
        let (stretch, (first, end)) = (&self.stretch, self.left);
        let place =
            |at: usize| if at < stretch.len() { stretch.place(at) } else { stretch.numbers_at as usize };
        let (from, to) = (place(first), place(end));
        // A number keeps its top bits: none is less than the first.
        let numbers = (first..end).map(|at| stretch.number(at) - from as u32).collect();
        Draft { bytes: stretch.bytes[from..to].to_vec(), numbers }
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
                self.stretch.take_fragment(*first, place);
                *first += 1;
            }
            Direction::Reverse => {
                *end -= 1;
                self.stretch.take_fragment(*end, place);
                if let Fragment::RangeTombstone(change) = place {
                    change.deletion = self.stretch.open_before(*end);
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
    pub(super) fn next_flat(&mut self, take: &mut impl RowTaker) -> bool {
        let mut rows = Rows::of(self);
        let wants_more = take.rows(&mut rows);
        self.left = rows.left;
        wants_more
    }
}

/// The next rows of a view, up to a range tombstone.
struct Rows<'v> {
    bytes: &'v Bytes,
    all: &'v [u8],
    numbers: &'v [[u8; size_of::<u32>()]],
    left: (usize, usize),
    is_forward: bool,
}

impl<'v> Rows<'v> {
    #[inline]
    fn of(view: &'v View) -> Rows<'v> {
        let View { stretch, left, direction } = view;
        let all: &[u8] = &stretch.bytes;
        let (numbers, _) = all[stretch.numbers_at as usize..].as_chunks();
        let is_forward = *direction == Direction::Forward;
        let rows = Rows { bytes: &stretch.bytes, all, numbers, left: *left, is_forward };
        (0..ROWS_AHEAD.min(left.1 - left.0)).for_each(|ahead| rows.bring(ahead));
        rows
    }

    /// Where the number of a row is, so many behind the next one.
    #[inline]
    fn place(&self, ahead: usize) -> usize {
        let (first, end) = self.left;
        if self.is_forward { first + ahead } else { end.wrapping_sub(1 + ahead) }
    }

    /// Begins to bring a row near the CPU.
    #[inline]
    fn bring(&self, ahead: usize) {
        if let Some(number) = self.numbers.get(self.place(ahead)) {
            prefetch_row(&self.all[(u32::from_le_bytes(*number) & PLACE) as usize..]);
        }
    }
}

impl<'v> Iterator for Rows<'v> {
    type Item = FlatRow<'v>;

    #[inline(always)]
    fn next(&mut self) -> Option<FlatRow<'v>> {
        if self.left.0 == self.left.1 {
            return None;
        }
        self.bring(ROWS_AHEAD);
        let number = u32::from_le_bytes(self.numbers[self.place(0)]);
        if number & IS_CHANGE != 0 {
            return None;
        }
        match self.is_forward {
            true => self.left.0 += 1,
            false => self.left.1 -= 1,
        }
        let row = FlatRow::new(self.bytes, &self.all[(number & PLACE) as usize..]);
        Some(row.known_as(number & IS_USUAL != 0))
    }
}

impl Draft {
    /// Appends a fragment.
    pub(super) fn push(&mut self, fragment: &Fragment) {
        let about = match fragment {
            Fragment::RangeTombstone(_) => IS_CHANGE,
            _ if is_usual(fragment) => IS_USUAL,
            _ => 0,
        };
        self.begin(about);
        put_fragment(fragment, &mut self.bytes);
    }

    /// Appends a usual row.
    #[inline]
    pub(super) fn push_usual(&mut self, row: FlatRow<'_>) {
        self.begin(IS_USUAL);
        row.put(&mut self.bytes);
    }

    /// A fragment begins here, of which this is to be noted.
    #[inline]
    fn begin(&mut self, about: u32) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(FIRST);
        }
        let at = u32::try_from(self.bytes.len()).ok().filter(|at| *at <= PLACE);
        self.numbers.push(at.expect("stretches are smaller than 1 GiB") | about);
    }

    /// The last fragment, if there is one.
    pub(super) fn last(&self) -> Option<Fragment> {
        let at = (self.numbers.last()? & PLACE) as usize;
        let mut fragment = Fragment::default();
        fragment_at(&Bytes::from(&self.bytes[at..]), 0, &mut fragment).expect(OWN);
        Some(fragment)
    }

    /// Takes the last fragment out again.
    pub(super) fn pop(&mut self) {
        if let Some(number) = self.numbers.pop() {
            self.bytes.truncate((number & PLACE) as usize);
        }
    }

    /// Whether there are range tombstones.
    pub(super) fn has_changes(&self) -> bool {
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

    /// All of it behind so many bytes of something else, ascending; and where the numbers begin. Leaves it empty.
    pub(super) fn seal(&mut self, before: &[u8], direction: Direction) -> (Vec<u8>, u32) {
        let length = before.len() + self.bytes.len() + self.numbers.len() * size_of::<u32>();
        let mut out = Vec::with_capacity(length);
        out.extend_from_slice(before);
        match direction {
            Direction::Forward => {
                self.numbers.iter_mut().for_each(|number| *number += before.len() as u32);
                out.extend_from_slice(&self.bytes);
            }
            Direction::Reverse => self.reverse(&mut out),
        }
        let numbers_at = out.len() as u32;
        self.numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        self.bytes.clear();
        self.numbers.clear();
        (out, numbers_at)
    }

    /// The draft without what is in it, if its memory is not too large to be kept for the next one.
    pub(super) fn emptied(mut self) -> Option<Draft> {
        self.bytes.clear();
        self.numbers.clear();
        (self.bytes.capacity() <= SMALL).then_some(self)
    }

    fn reverse(&mut self, out: &mut Vec<u8>) {
        let mut end = self.bytes.len();
        for number in self.numbers.iter_mut().rev() {
            let start = (*number & PLACE) as usize;
            *number = out.len() as u32 | (*number & !PLACE);
            out.extend_from_slice(&self.bytes[start..end]);
            end = start;
        }
        self.numbers.reverse();
    }
}

#[cfg(test)]
mod tests {
    use model::{Clustering, CqlType, RangeTombstoneChange, Row};

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

    fn stretch(direction: Direction) -> Stretch {
        let mut draft = Draft::default();
        match direction {
            Direction::Forward => fragments().iter().for_each(|fragment| draft.push(fragment)),
            Direction::Reverse => fragments().iter().rev().for_each(|fragment| draft.push(fragment)),
        }
        draft.push(&row(200));
        draft.pop();
        let has_changes = draft.has_changes();
        let (bytes, numbers_at) = draft.seal(b"before", direction);
        Stretch { head: None, open: deletion(1), has_changes, bytes: bytes.into(), numbers_at }
    }

    fn given(slice: &Slice, direction: Direction) -> (DeletionTime, Vec<Fragment>) {
        let schema = Schema::new(CqlType::Blob, vec![CqlType::Blob], Vec::new(), Vec::new());
        let both = [Direction::Forward, Direction::Reverse].map(|drafted| {
            let mut view = stretch(drafted).view(slice, &schema, direction);
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
}
