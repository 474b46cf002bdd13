//! A memtable as a stream of fragments.
//!
//! A reader takes a few rows at a time and remembers where it stands. Writes may come in between: what is behind the
//! reader stays as it was, and what is before it is as it is now. A deletion that comes meanwhile is told as a range
//! tombstone change where the reader stands, so the stream is sound all the same.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::rc::Rc;

use model::flat::{FlatRow, RowTaker, UsualValues};
use model::merge::{Direction, RowMerger};
use model::{
    Bytes, DeletionTime, Fragment, FragmentReader, Next, PartitionKey, PartitionStart, Position, Row, Slice,
};

use smallvec::SmallVec;

use super::kept::KeptRow;
use super::place::Place;
use super::{Memtable, Partition};
use crate::{Error, Result};

/// How many rows and changes are taken at once.
const STEP: usize = 64;

/// Reads a slice of one partition of a memtable, or all of its partitions.
#[derive(Debug)]
pub struct MemtableReader {
    memtable: Rc<Memtable>,
    scope: Scope,
    state: State,
    ready: Ready,
    merger: RowMerger,
}

/// What of the memtable is read.
#[derive(Debug)]
enum Scope {
    One {
        slice: Slice,
        direction: Direction,
        static_row: bool,
    },
    /// All partitions up to this token.
    All {
        last: model::Token,
    },
}

#[derive(Debug)]
enum State {
    /// The next partition is the first one from here on.
    Between(Option<PartitionKey>, Edge),
    /// Apart, as who reads one row has no way to go.
    Inside(Box<Walk>),
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Edge {
    At,
    Behind,
}

/// The way through a partition.
#[derive(Debug)]
struct Walk {
    key: PartitionKey,
    slice: Slice,
    direction: Direction,
    /// All before it, as the stream runs, has been taken.
    at: Position,
    /// The deletion that the stream has in force.
    open: DeletionTime,
    /// The partition's deletion as the stream has told it.
    told: DeletionTime,
}

impl MemtableReader {
    /// A slice of a partition. Gives nothing if the memtable does not have it.
    pub fn slice(
        memtable: &Rc<Memtable>,
        key: &PartitionKey,
        slice: &Slice,
        direction: Direction,
        static_row: bool,
    ) -> MemtableReader {
        let scope = Scope::One { slice: slice.beside_rows().into_owned(), direction, static_row };
        MemtableReader::new(memtable, scope, State::Between(Some(key.clone()), Edge::At))
    }

    /// All partitions whose tokens are above `after`, if it is given, and not above `last`.
    pub fn scan(memtable: &Rc<Memtable>, after: Option<model::Token>, last: model::Token) -> MemtableReader {
        let state = match after.map(|after| after.checked_add(1)) {
            None => State::Between(None, Edge::At),
            Some(None) => State::Ended,
            Some(Some(token)) => {
                let least = PartitionKey { token, bytes: Bytes::default() };
                State::Between(Some(least), Edge::At)
            }
        };
        MemtableReader::new(memtable, Scope::All { last }, state)
    }

    /// All partitions behind a key whose tokens are not above `last`.
    pub fn scan_behind(memtable: &Rc<Memtable>, key: &PartitionKey, last: model::Token) -> MemtableReader {
        let state = State::Between(Some(key.clone()), Edge::Behind);
        MemtableReader::new(memtable, Scope::All { last }, state)
    }

    fn new(memtable: &Rc<Memtable>, scope: Scope, state: State) -> MemtableReader {
        let merger = RowMerger::new(memtable.schema.clone());
        MemtableReader { memtable: memtable.clone(), scope, state, ready: Ready::default(), merger }
    }

    fn advance(&mut self) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Between(from, edge) => self.state = self.enter(from, edge),
            State::Inside(walk) => self.state = self.walk(walk),
            State::Ended => {}
        }
    }

    fn enter(&mut self, from: Option<PartitionKey>, edge: Edge) -> State {
        let partitions = self.memtable.partitions.borrow();
        let (slice, direction, static_row, found) = match &self.scope {
            Scope::One { slice, direction, static_row } => {
                let found = from.and_then(|key| partitions.get_key_value(&key));
                (slice.clone(), *direction, *static_row, found)
            }
            Scope::All { last } => {
                let from = match (&from, edge) {
                    (None, _) => Unbounded,
                    (Some(key), Edge::At) => Included(key),
                    (Some(key), Edge::Behind) => Excluded(key),
                };
                let next = partitions.range((from, Unbounded)).next();
                let next = next.filter(|(key, _)| key.token <= *last);
                (Slice::all(), Direction::Forward, true, next)
            }
        };
        let Some((key, partition)) = found else { return State::Ended };
        let start = PartitionStart { key: key.clone(), deletion: partition.deletion };
        self.ready.push(Made::Start(start));
        if static_row && let Some(row) = partition.visible_static_row(&mut self.merger) {
            self.ready.push(Made::Other(Box::new(Fragment::StaticRow(row))));
        }
        let is_one = matches!(self.scope, Scope::One { .. }) && partition.ranges.is_empty();
        if let (true, Some(row)) = (is_one, self.memtable.schema.row_of(&slice)) {
            if let Some(row) = partition.row_at(&self.memtable.schema, &Position::at(row.clone())) {
                self.ready.push(Made::Row(row.clone(), partition.deletion));
            }
            self.ready.push(Made::End);
            return State::Ended;
        }
        let at = match direction {
            Direction::Forward => slice.start.clone(),
            Direction::Reverse => slice.end.clone(),
        };
        let open = DeletionTime::LIVE;
        let walk = Walk { key: key.clone(), slice, direction, at, open, told: partition.deletion };
        State::Inside(Box::new(walk))
    }

    fn walk(&mut self, mut walk: Box<Walk>) -> State {
        let partitions = self.memtable.partitions.borrow();
        let partition = partitions.get(&walk.key).expect("partitions stay in their memtable");
        let ended = walk.step(&self.memtable, partition, &mut self.ready);
        match (ended, &self.scope) {
            (false, _) => State::Inside(walk),
            (true, Scope::One { .. }) => State::Ended,
            (true, Scope::All { .. }) => State::Between(Some(walk.key), Edge::Behind),
        }
    }
}

impl FragmentReader for MemtableReader {
    type Error = Error;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        while !self.ready.pop(place, &mut self.merger) {
            if matches!(self.state, State::Ended) {
                return Ok(Next::End);
            }
            self.advance();
        }
        Ok(Next::Fragment)
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        loop {
            if !self.ready.pop_usual(take) || !matches!(self.state, State::Inside(_)) {
                return;
            }
            self.advance();
        }
    }

    async fn fill(&mut self) -> Result<()> {
        Ok(())
    }
}

impl Walk {
    /// Takes the next few rows and changes; whether the partition is at its end.
    fn step<'a>(&mut self, memtable: &Memtable, partition: &'a Partition, to: &mut Ready) -> bool {
        let schema = &memtable.schema;
        let (start, end) = self.rest(memtable);
        // A partition deletion that came after the stream told its head is in force from here on.
        let later = if partition.deletion > self.told { partition.deletion } else { DeletionTime::LIVE };
        let here = match self.direction {
            Direction::Forward => partition.ranges.at(&start),
            Direction::Reverse => partition.ranges.before(&end),
        };
        self.change(self.at.clone(), here.max(later), to);
        let place_of = |place: &Place| partition.place_of(schema, place.position());
        let rows = partition.rows.between(place_of(&start), place_of(&end)).map(Item::Row);
        let changes = partition.ranges.between(&start, &end);
        let (direction, mut left, mut last) = (self.direction, STEP, None);
        let mut take = |item: Item<'a>| {
            left -= 1;
            last = self.take(item, partition.deletion, later, to);
            left > 0
        };
        let ended = match direction {
            Direction::Forward => {
                let changes = changes.map(|(position, deletion)| Item::Change(position, deletion));
                in_turn(rows, changes, |a, b| a.is_before(b, schema), &mut take)
            }
            Direction::Reverse => {
                let before =
                    |position: &Position| partition.ranges.before(&Place::new(schema, position.clone()));
                let changes = changes.rev().map(|(position, _)| (before(&position), position));
                let changes = changes.map(|(deletion, position)| Item::Change(position, deletion));
                in_turn(rows.rev(), changes, |a, b| b.is_before(a, schema), &mut take)
            }
        };
        if let Some(row) = last {
            self.at = match direction {
                Direction::Forward => Position::after(row.clustering()),
                Direction::Reverse => Position::before(row.clustering()),
            };
        }
        if ended {
            self.end(to);
        }
        ended
    }

    /// Hands out a row or a change; a row is returned, as the stream stands behind it then.
    fn take<'a>(
        &mut self,
        item: Item<'a>,
        partition: DeletionTime,
        later: DeletionTime,
        to: &mut Ready,
    ) -> Option<&'a KeptRow> {
        match item {
            Item::Row(row) => {
                to.push(Made::Row(row.clone(), self.open.max(partition)));
                Some(row)
            }
            Item::Change(position, deletion) => {
                self.at = position.clone();
                self.change(position, deletion.max(later), to);
                None
            }
        }
    }

    /// What is left of the slice, from the lesser position to the greater one.
    fn rest(&self, memtable: &Memtable) -> (Place, Place) {
        let (start, end) = match self.direction {
            Direction::Forward => (&self.at, &self.slice.end),
            Direction::Reverse => (&self.slice.start, &self.at),
        };
        (Place::new(&memtable.schema, start.clone()), Place::new(&memtable.schema, end.clone()))
    }

    fn end(&mut self, to: &mut Ready) {
        let last = match self.direction {
            Direction::Forward => self.slice.end.clone(),
            Direction::Reverse => self.slice.start.clone(),
        };
        self.change(last, DeletionTime::LIVE, to);
        to.push(Made::End);
    }

    fn change(&mut self, position: Position, deletion: DeletionTime, to: &mut Ready) {
        if std::mem::replace(&mut self.open, deletion) != deletion {
            to.push(Made::Other(Box::new(Fragment::change(position, deletion))));
        }
    }
}

/// What nobody has popped yet. Rows are decoded when they are, into the memory of the row before.
#[derive(Debug, Default)]
struct Ready {
    /// What a read of one row takes has no place of its own in memory.
    waiting: SmallVec<[Made; 3]>,
    /// The first one that is to be popped.
    next: usize,
}

#[derive(Debug)]
enum Made {
    Start(PartitionStart),
    /// With the deletion around it.
    Row(KeptRow, DeletionTime),
    Other(Box<Fragment>),
    End,
}

impl Ready {
    fn push(&mut self, made: Made) {
        self.waiting.push(made);
    }

    /// Gives the first ones where they stand, as long as these are usual rows of one version with nothing deleted around them. Whether
    /// all were, and more are wanted.
    #[inline]
    fn pop_usual(&mut self, take: &mut impl RowTaker) -> bool {
        let mut values = UsualValues::default();
        while let Some(made) = self.waiting.get(self.next) {
            let Made::Row(KeptRow::Standing(row), active) = made else { return false };
            if !active.is_live() || !row.take_usual(&mut values) {
                return false;
            }
            self.next += 1;
            if !take.row(FlatRow::usual(&values.row())) {
                return false;
            }
        }
        drop(values);
        self.clear();
        true
    }

    fn clear(&mut self) {
        self.waiting.clear();
        self.next = 0;
    }

    /// Puts the first one into `place`; whether there was one.
    #[inline]
    fn pop(&mut self, place: &mut Fragment, merger: &mut RowMerger) -> bool {
        while let Some(first) = self.waiting.get_mut(self.next) {
            self.next += 1;
            match std::mem::replace(first, Made::End) {
                Made::Row(row, active) if active.is_live() => row.decode(place.as_new_row()),
                Made::Row(row, active) => match unshadowed(row.into_row(), active, merger, false) {
                    Some(left) => *place = Fragment::Row(left),
                    None => continue,
                },
                Made::Start(start) => *place = Fragment::PartitionStart(start),
                Made::Other(other) => *place = *other,
                Made::End => *place = Fragment::PartitionEnd,
            }
            return true;
        }
        self.clear();
        false
    }
}

/// What stands in a partition.
enum Item<'a> {
    Row(&'a KeptRow),
    /// With the deletion behind it, as the stream runs.
    Change(Position, DeletionTime),
}

impl Item<'_> {
    /// Of a row and a change, which are never at the same place.
    fn is_before(&self, other: &Item<'_>, schema: &model::Schema) -> bool {
        match (self, other) {
            (Item::Row(row), Item::Change(position, _)) => row.compare(schema, position.as_view()).is_lt(),
            (Item::Change(position, _), Item::Row(row)) => row.compare(schema, position.as_view()).is_gt(),
            _ => unreachable!("rows come from one list and changes from the other"),
        }
    }
}

/// Hands out the items of two lists in one order until `take` says that it is enough; whether all were taken.
fn in_turn<'a>(
    rows: impl Iterator<Item = Item<'a>>,
    changes: impl Iterator<Item = Item<'a>>,
    is_first: impl Fn(&Item<'a>, &Item<'a>) -> bool,
    take: &mut impl FnMut(Item<'a>) -> bool,
) -> bool {
    let (mut rows, mut changes) = (rows.peekable(), changes.peekable());
    loop {
        let row_first = match (rows.peek(), changes.peek()) {
            (None, None) => return true,
            (Some(row), Some(change)) => is_first(row, change),
            (row, _) => row.is_some(),
        };
        let next = if row_first { rows.next() } else { changes.next() };
        if next.is_some_and(|item| !take(item)) {
            return false;
        }
    }
}

/// A row without what a deletion around it covers; `None` if nothing is left.
pub(super) fn unshadowed(
    row: Row,
    active: DeletionTime,
    merger: &mut RowMerger,
    is_static: bool,
) -> Option<Row> {
    if active.is_live() {
        return Some(row);
    }
    merger.merge(&mut vec![row], is_static, active)
}
