//! The merge of several sources.
//!
//! The next fragment of each source is in a heap. All that stand at the least place are taken, become one fragment, or
//! none, and just those sources are asked for their next one. A partition that only one source has passes straight
//! through, at the price of a branch a fragment. So do rows as they stand, as long as one source has more of them before
//! the first of all others, and nothing around them is deleted.

use std::cmp::Ordering;
use std::rc::Rc;

use smallvec::SmallVec;

use super::heap::Heap;
use super::ranges::OpenRanges;
use super::{Direction, RowMerger, join};
use crate::clustering::{PositionRef, Weight, compare_positions};
use crate::flat::{FlatRow, GIVEN, RowTaker};
use crate::{
    Clustering, DeletionTime, Fragment, FragmentReader, Next, PartitionStart, RangeTombstoneChange, Row,
    Schema,
};

/// The merge of several sources, or of none.
///
/// Invariants, between two calls:
/// 1. A source is either ended, or in `heap`, or in `due`.
/// 2. Every source in `heap` has its next fragment at hand.
/// 3. A `solo` source is the only one in `due`.
#[derive(Debug)]
pub(super) struct Several<R> {
    sources: Vec<Source<R>>,
    heap: Heap,
    /// The sources whose next fragment decides about the next step.
    due: SmallVec<[u32; 8]>,
    /// The one source that has the current partition, where no other has it.
    solo: Option<usize>,
    /// Whether the last fragment came from the source that gave the one before it, and from no other.
    goes_on: bool,
    order: Order,
    partition: DeletionTime,
    ranges: OpenRanges,
    merger: RowMerger,
    /// The versions of the row at hand; empty between two calls.
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Source<R> {
    reader: R,
    state: State,
    /// The next fragment, if it is ready.
    head: Fragment,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The next fragment is to be popped from the reader.
    Due,
    Ready,
    Ended,
}

impl<R: FragmentReader> Several<R> {
    pub(super) fn new(schema: &Rc<Schema>, direction: Direction, sources: Vec<R>) -> Several<R> {
        let count = sources.len() as u32;
        Several {
            heap: Heap::default(),
            due: (0..count).collect(),
            solo: None,
            goes_on: false,
            order: Order { schema: schema.clone(), direction },
            partition: DeletionTime::LIVE,
            ranges: OpenRanges::new(),
            merger: RowMerger::new(schema.clone()),
            rows: Vec::new(),
            sources: sources.into_iter().map(Source::new).collect(),
        }
    }
}

impl<R: FragmentReader> FragmentReader for Several<R> {
    type Error = R::Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next, R::Error> {
        match self.solo {
            Some(solo) => self.pop_solo(solo, place),
            None => self.pop_merged(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        match self.solo {
            Some(solo) => self.sources[solo].reader.pop_flat(take),
            // To ask a source whose rows alternate with those of others would be for nothing.
            None if self.goes_on => self.pop_stretch(take),
            None => {}
        }
    }

    /// Fills the sources whose next fragment is needed, all at once.
    async fn fill(&mut self) -> Result<(), R::Error> {
        if let Some(solo) = self.solo {
            return self.sources[solo].reader.fill().await;
        }
        let mut numbers = self.due.clone();
        numbers.sort_unstable();
        let due = these(&mut self.sources, &numbers).filter(|source| source.state == State::Due);
        join::all(due.map(|source| source.reader.fill())).await
    }
}

impl<R: FragmentReader> Several<R> {
    #[inline]
    fn pop_solo(&mut self, solo: usize, place: &mut Fragment) -> Result<Next, R::Error> {
        let next = self.sources[solo].reader.pop(place)?;
        if next == Next::Fragment && matches!(place, Fragment::PartitionEnd) {
            self.solo = None;
        }
        Ok(next)
    }

    fn pop_merged(&mut self, place: &mut Fragment) -> Result<Next, R::Error> {
        loop {
            if !self.refill()? {
                return Ok(Next::Fill);
            }
            if !self.gather() {
                return Ok(Next::End);
            }
            if self.reduce(place) {
                return Ok(Next::Fragment);
            }
        }
    }

    /// Gives rows of the source that has given the last fragment, up to where another one has something.
    fn pop_stretch(&mut self, take: &mut impl RowTaker) {
        let Several { sources, heap, due, order, .. } = self;
        let around = self.ranges.in_force().max(self.partition);
        let &[number] = &**due else { return };
        let (source, next) = match heap.least() {
            Some(next) => match sources.get_disjoint_mut([number as usize, next as usize]) {
                Ok([source, next]) => (source, Some(&next.head)),
                Err(_) => unreachable!("invariant 1"),
            },
            None => (&mut sources[number as usize], None),
        };
        if !around.is_live() || source.state != State::Due || matches!(next, Some(Fragment::StaticRow(_))) {
            return;
        }
        // What has no place among the rows stands behind them all.
        let end = next.and_then(position_of);
        let Source { reader, state, head } = source;
        reader.pop_flat(&mut |row: FlatRow<'_>| {
            if end.is_none_or(|end| order.is_before(row, end)) {
                return take.row(row);
            }
            row.decode(head).expect(GIVEN);
            *state = State::Ready;
            false
        });
    }

    /// Pops the due sources; whether each has now given a fragment or its end.
    fn refill(&mut self) -> Result<bool, R::Error> {
        let (mut filled, mut ended) = (true, false);
        for &number in &self.due {
            let source = &mut self.sources[number as usize];
            if source.state == State::Due {
                match source.reader.pop(&mut source.head)? {
                    Next::Fragment => source.state = State::Ready,
                    Next::Fill => filled = false,
                    Next::End => (source.state, ended) = (State::Ended, true),
                }
            }
        }
        if ended {
            self.due.retain(|number| self.sources[*number as usize].state != State::Ended);
        }
        Ok(filled)
    }

    /// Leaves in `due` the sources whose fragments stand at the least place; whether there are any.
    fn gather(&mut self) -> bool {
        let Several { sources, order, heap, due, goes_on, .. } = self;
        let compare = |a: u32, b: u32| order.compare(head(sources, a), head(sources, b));
        let first;
        (first, *goes_on) = match (due.as_slice(), heap.least()) {
            (&[only], None) => (Some(only), true),
            // The source that gave the last fragment often gives the next one too.
            (&[only], Some(least)) if compare(only, least).is_le() => (Some(only), true),
            (&[only], Some(_)) => (heap.replace_least(only, compare), false),
            _ => {
                due.iter().for_each(|&number| heap.push(number, compare));
                (heap.pop(compare), false)
            }
        };
        due.clear();
        due.extend(first);
        while let (Some(first), Some(least)) = (first, heap.least()) {
            if compare(first, least).is_ne() {
                break;
            }
            due.extend(heap.pop(compare));
        }
        first.is_some()
    }

    /// Makes one fragment of those at the head of the due sources; whether anything is left of them.
    fn reduce(&mut self, place: &mut Fragment) -> bool {
        self.take_first(place);
        match place {
            Fragment::PartitionStart(start) => {
                self.start_partition(start);
                true
            }
            Fragment::StaticRow(row) => self.merge_rows(row, true),
            Fragment::Row(row) => self.merge_rows(row, false),
            Fragment::RangeTombstone(change) => self.change(change),
            Fragment::PartitionEnd => {
                (1..self.due.len()).for_each(|i| drop(self.take_head(i)));
                true
            }
        }
    }

    /// Takes the head of the first due source, and leaves it what was in `place`, to be used again.
    fn take_first(&mut self, place: &mut Fragment) {
        let source = &mut self.sources[self.due[0] as usize];
        debug_assert_eq!(source.state, State::Ready, "a gathered source has a fragment at hand");
        source.state = State::Due;
        std::mem::swap(place, &mut source.head);
    }

    fn take_head(&mut self, i: usize) -> Fragment {
        let mut head = Fragment::default();
        let source = &mut self.sources[self.due[i] as usize];
        debug_assert_eq!(source.state, State::Ready, "a gathered source has a fragment at hand");
        source.state = State::Due;
        std::mem::swap(&mut head, &mut source.head);
        head
    }

    fn start_partition(&mut self, start: &mut PartitionStart) {
        for i in 1..self.due.len() {
            if let Fragment::PartitionStart(other) = self.take_head(i) {
                start.deletion = start.deletion.max(other.deletion);
            }
        }
        if let [only] = *self.due {
            self.solo = Some(only as usize);
        }
        self.partition = start.deletion;
        self.ranges.clear();
    }

    fn merge_rows(&mut self, first: &mut Row, is_static: bool) -> bool {
        let active = self.ranges.in_force().max(self.partition);
        // A clustered row of one version passes as it is; a static one is always looked through.
        if self.due.len() == 1 && active.is_live() && !is_static {
            return true;
        }
        self.rows.push(std::mem::replace(first, Row::new(Clustering::empty())));
        for i in 1..self.due.len() {
            if let Fragment::Row(row) | Fragment::StaticRow(row) = self.take_head(i) {
                self.rows.push(row);
            }
        }
        let merged = self.merger.merge(&mut self.rows, is_static, active);
        merged.map(|row| *first = row).is_some()
    }

    fn change(&mut self, first: &mut RangeTombstoneChange) -> bool {
        self.ranges.set(self.due[0], first.deletion);
        for i in 1..self.due.len() {
            if let Fragment::RangeTombstone(change) = self.take_head(i) {
                self.ranges.set(self.due[i], change.deletion);
            }
        }
        let deletion = self.ranges.advance(self.partition);
        deletion.map(|deletion| first.deletion = deletion).is_some()
    }
}

/// Those of some ascending numbers: few of many.
fn these<'a, T>(all: &'a mut [T], numbers: &'a [u32]) -> impl Iterator<Item = &'a mut T> {
    let (mut rest, mut passed) = (all, 0);
    numbers.iter().map(move |&number| {
        let (this, behind) = std::mem::take(&mut rest)[number as usize - passed..]
            .split_first_mut()
            .expect("they ascend, and are numbers of sources");
        (rest, passed) = (behind, number as usize + 1);
        this
    })
}

impl<R> Source<R> {
    fn new(reader: R) -> Source<R> {
        Source { reader, state: State::Due, head: Fragment::default() }
    }
}

fn head<R>(sources: &[Source<R>], number: u32) -> &Fragment {
    let source = &sources[number as usize];
    debug_assert_eq!(source.state, State::Ready, "only sources with a fragment at hand are compared");
    &source.head
}

/// The order of the heads of all sources.
///
/// What belongs to the current partition comes before the start of any other one, so one heap serves both
/// orders: only sources that have the current partition can be inside of one.
#[derive(Debug)]
struct Order {
    schema: Rc<Schema>,
    direction: Direction,
}

impl Order {
    fn compare(&self, a: &Fragment, b: &Fragment) -> Ordering {
        if let (Fragment::PartitionStart(a), Fragment::PartitionStart(b)) = (a, b) {
            return a.key.cmp(&b.key);
        }
        match (position_of(a), position_of(b)) {
            (Some(a), Some(b)) => self.compare_positions(a, b),
            _ => rank(a).cmp(&rank(b)),
        }
    }

    /// Whether a row stands before a place of its partition.
    #[inline]
    fn is_before(&self, row: FlatRow<'_>, place: PositionRef<'_>) -> bool {
        let order = row.compare(&self.schema.clustering, place).expect(GIVEN);
        match self.direction {
            Direction::Forward => order.is_lt(),
            Direction::Reverse => order.is_gt(),
        }
    }

    fn compare_positions(&self, a: PositionRef<'_>, b: PositionRef<'_>) -> Ordering {
        match self.direction {
            Direction::Forward => compare_positions(&self.schema.clustering, a, b),
            Direction::Reverse => compare_positions(&self.schema.clustering, b, a),
        }
    }
}

fn rank(fragment: &Fragment) -> u8 {
    match fragment {
        Fragment::StaticRow(_) => 0,
        Fragment::Row(_) | Fragment::RangeTombstone(_) => 1,
        Fragment::PartitionEnd => 2,
        Fragment::PartitionStart(_) => 3,
    }
}

/// Where a row or a change stands.
fn position_of(fragment: &Fragment) -> Option<PositionRef<'_>> {
    match fragment {
        Fragment::Row(row) => Some(PositionRef { prefix: &row.clustering, weight: Weight::At }),
        Fragment::RangeTombstone(change) => Some(change.position.as_view()),
        _ => None,
    }
}

#[cfg(test)]
impl<R> Several<R> {
    pub(super) fn readers(&self) -> impl Iterator<Item = &R> {
        self.sources.iter().map(|source| &source.reader)
    }
}
