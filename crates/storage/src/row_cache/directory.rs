//! Which parts of which partitions are kept, in order.
//!
//! The parts themselves belong to the shard's cache, which drops them as it likes; a part that is dropped takes itself
//! out of here.

mod stops;

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use model::types::NumberOrder;
use model::{DeletionTime, Direction, KeyView, PartitionKey, Position, Schema, Slice, Token};

use runtime::Uses;

use super::near::Near;
use super::part::{Part, Scope};
use crate::memtable::Memtable;
use crate::sorted::{Place, Sorted};

/// The parts of a table.
///
/// Invariants:
/// 1. Every part that is told of here is alive, save for one that is just being dropped.
/// 2. The parts of a partition are in order and do not overlap; one is of its static row at the most.
/// 3. They agree about the deletion of their partition.
/// 4. No partition is without parts.
pub(super) struct Directory {
    schema: Rc<Schema>,
    /// That of the first clustering column.
    number_order: Option<NumberOrder>,
    /// By their tokens: of two partitions with one token the second is not kept.
    partitions: RefCell<BTreeMap<Token, Rc<Partition>>>,
    /// The one of these that was asked for a row last: where there are parts it is mostly asked again.
    last: RefCell<Option<Rc<Partition>>>,
    parts: Cell<usize>,
    bytes: Cell<usize>,
}

/// The parts of a partition.
pub(super) struct Partition {
    key: PartitionKey,
    of_static_row: RefCell<Weak<Part>>,
    of_rows: RefCell<Sorted<Entry>>,
}

/// A part of rows.
struct Entry {
    /// [`Schema::rank`] of its end. As with that of its start, by which it is in order, most comparisons of a search need no look
    /// at the part, which is mostly far from the CPU.
    end_rank: u64,
    part: Weak<Part>,
    near: Near,
}

/// A part's place here.
pub(super) struct Link {
    directory: Weak<Directory>,
    partition: Rc<Partition>,
    /// Under which number the cache has it.
    pub(super) number: u64,
    /// All that it takes, in bytes.
    pub(super) weight: usize,
    is_told: Cell<bool>,
    pub(super) uses: Uses,
}

/// What is known from a position on.
pub(super) enum Found {
    /// This part covers it.
    Part(Rc<Part>),
    /// Nothing up to here; `None` up to the end.
    Gap(Option<Position>),
}

/// Where a position is among the parts, as a stream runs.
enum Look {
    /// In the part of this place.
    Part(Place),
    /// In none. This is the place of the part that comes next: in front of all there is none in reverse, and there is no part at that
    /// behind all.
    Gap(Option<Place>),
}

/// Said of a part that is not the one that is just being dropped.
const ALIVE: &str = "invariant 1: it is alive";

/// What the place of a part takes: its pointer, and a partition with the first few ranks and pointers, an entry of the map and
/// the counts in front of three allocations. Each part pays for all of it, as it may be its partition's only one.
const PLACE: usize = size_of::<Partition>()
    + 4 * (size_of::<u64>() + size_of::<Entry>())
    + 2 * size_of::<(Token, Rc<Partition>)>()
    + size_of::<Vec<u8>>()
    + 4 * size_of::<usize>();

impl Directory {
    pub(super) fn new(schema: &Rc<Schema>) -> Directory {
        Directory {
            schema: schema.clone(),
            number_order: schema.number_order(),
            partitions: RefCell::default(),
            last: RefCell::default(),
            parts: Cell::new(0),
            bytes: Cell::new(0),
        }
    }

    pub(super) fn schema(&self) -> &Rc<Schema> {
        &self.schema
    }

    /// How many parts there are, and the bytes that they take with their places.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.parts.get(), self.bytes.get())
    }

    /// What a part of this partition will take with its place.
    pub(super) fn weight(key: &PartitionKey, part: &Part) -> usize {
        part.weight() + PLACE + key.bytes.len()
    }

    /// What is known of the rows from a position on, which is beside rows, in a direction.
    pub(super) fn find(&self, key: &PartitionKey, at: &Position, direction: Direction) -> Found {
        let Some(partition) = self.partition(key) else { return Found::Gap(None) };
        let parts = partition.of_rows.borrow();
        let part = |entry: &Entry| entry.part().expect(ALIVE);
        match self.look(&parts, at, direction) {
            Look::Part(place) => Found::Part(part(parts.get(place).expect("it was seen there"))),
            Look::Gap(next) => Found::Gap(next.and_then(|place| parts.get(place)).map(|entry| {
                entry.near.bring(&entry.part, direction);
                part(entry).near_end(direction).clone()
            })),
        }
    }

    /// Where a position is.
    fn look(&self, parts: &Sorted<Entry>, at: &Position, direction: Direction) -> Look {
        let rank = self.schema.rank(at);
        let last = self.last_started(parts, (at, rank), direction);
        let reaches = |place: &Place| {
            let Some(entry) = parts.get(*place) else { return false };
            let ends = self.end_compared(entry, (at, rank));
            if direction == Direction::Forward { ends.is_gt() } else { ends.is_ge() }
        };
        match (last.filter(reaches), direction) {
            (Some(place), _) => Look::Part(place),
            (None, Direction::Forward) => {
                Look::Gap(Some(last.map_or(parts.first(), |last| parts.place_behind(last))))
            }
            (None, Direction::Reverse) => Look::Gap(last),
        }
    }

    /// The last part that starts before a position of this rank; it may start there for who runs forward, as who comes from behind is not in it.
    fn last_started(
        &self,
        parts: &Sorted<Entry>,
        (at, rank): (&Position, u64),
        direction: Direction,
    ) -> Option<Place> {
        let has_started = |entry: &Entry| {
            let starts = self.start_compared(entry, at);
            if direction == Direction::Forward { starts.is_le() } else { starts.is_lt() }
        };
        let (place, start_rank, entry) = parts.last_up_to(rank)?;
        if entry.end_rank >= rank {
            entry.near.bring(&entry.part, direction);
        }
        if start_rank < rank || has_started(entry) {
            return Some(place);
        }
        // Mostly it is alone at its rank.
        let before = parts.place_before(place)?;
        match parts.rank(before) == Some(rank) {
            false => Some(before),
            true => parts.place_before(parts.partition_point(rank, has_started)),
        }
    }

    /// The place of a part of rows that no other one has anything in common with; `None` if one has, and for a static row.
    fn place_between(&self, parts: &Sorted<Entry>, part: &Part) -> Option<Place> {
        let Scope::Rows { start, end } = &part.scope else { return None };
        let Look::Gap(next) = self.look(parts, start, Direction::Forward) else { return None };
        let begins_before_end = |(rank, entry): (u64, &Entry)| {
            rank.cmp(&self.schema.rank(end)).then_with(|| self.start_compared(entry, end)).is_lt()
        };
        next.filter(|place| !parts.rank(*place).zip(parts.get(*place)).is_some_and(begins_before_end))
    }

    /// The part that has the row with this clustering key, or has that there is none; `None` if no part is of the row.
    #[inline]
    pub(super) fn find_row(&self, key: KeyView<'_>, row: &[&[u8]]) -> Option<Rc<Part>> {
        let mut last = self.last.borrow_mut();
        if last.as_ref().is_none_or(|partition| partition.key.token != key.token) {
            *last = self.partitions.borrow().get(&key.token).cloned();
        }
        let partition = last.as_ref().filter(|partition| partition.key.view() == key)?;
        let parts = partition.of_rows.borrow();
        let rank = self.schema.rank_of_row(self.number_order, row);
        // Ends of parts are beside rows: none is at this one. One whose rank tells nothing starts before it mostly.
        let (_, start_rank, mut entry) = parts.last_up_to(rank)?;
        entry.near.bring_for_search();
        let mut part = entry.part()?;
        if start_rank == rank && self.schema.compare_to_row(part.ends().0, row).is_gt() {
            entry = self.last_before(&parts, (row, rank))?;
            entry.near.bring_for_search();
            part = entry.part()?;
        }
        let is_behind = match entry.end_rank.cmp(&rank) {
            Ordering::Equal => self.schema.compare_to_row(part.ends().1, row),
            order => order,
        };
        is_behind.is_gt().then_some(part)
    }

    /// The last part that starts before a row of this rank.
    #[cold]
    fn last_before<'p>(&self, parts: &'p Sorted<Entry>, (row, rank): (&[&[u8]], u64)) -> Option<&'p Entry> {
        let is_before = |part: Rc<Part>| self.schema.compare_to_row(part.ends().0, row).is_lt();
        let behind = parts.partition_point(rank, |entry| entry.part().is_none_or(is_before));
        parts.get(parts.place_before(behind)?)
    }

    /// What is known of the static row.
    pub(super) fn find_static_row(&self, key: &PartitionKey) -> Option<Rc<Part>> {
        self.partition(key)?.of_static_row.borrow().upgrade()
    }

    /// What is to be kept of a part: all but what it has in common with parts that reach beyond it and say the same of the partition, which
    /// stay as they are. `None` if that is nothing.
    pub(super) fn apart(&self, key: &PartitionKey, part: &Rc<Part>) -> Option<Rc<Part>> {
        let Scope::Rows { start, end } = &part.scope else { return Some(part.clone()) };
        let Some([first, last]) = self.reaching_beyond(key, part) else { return Some(part.clone()) };
        let start = first.as_ref().map_or(start, |first| first.ends().1);
        let end = last.as_ref().map_or(end, |last| last.ends().0);
        if self.schema.compare(start, end).is_ge() {
            return None;
        }
        let slice = Slice { start: start.clone(), end: end.clone() };
        let view = part.view(&slice, &self.schema, Direction::Forward);
        let ends = (&slice.start, &slice.end);
        let (open, mut draft) = (view.entry(), view.draft());
        Some(Rc::new(Part::of_rows(part.stretch.head, ends, open, &mut draft, Direction::Forward)))
    }

    /// The parts that reach into a part of rows from before its start, and from behind its end, if any does and they agree with it.
    fn reaching_beyond(&self, key: &PartitionKey, part: &Part) -> Option<[Option<Rc<Part>>; 2]> {
        let (start, end) = part.ends();
        let partition = self.partition(key)?;
        let parts = partition.of_rows.borrow();
        if self.place_between(&parts, part).is_some() {
            return None;
        }
        let agreeing =
            |entry: &Entry| entry.part().filter(|known| agree(known.stretch.head, part.stretch.head));
        let around = |at, direction| match self.look(&parts, at, direction) {
            Look::Part(place) => parts.get(place),
            Look::Gap(_) => None,
        };
        let starts_before = |entry: &&Entry| self.start_compared(entry, start).is_lt();
        let first = around(start, Direction::Forward).filter(starts_before).and_then(agreeing);
        let rank = self.schema.rank(end);
        let ends_behind = |entry: &&Entry| self.end_compared(entry, (end, rank)).is_gt();
        let last = around(end, Direction::Reverse).filter(ends_behind).and_then(agreeing);
        (first.is_some() || last.is_some()).then_some([first, last])
    }

    /// Takes a part in, and gives back those whose place it takes; `None` if there is no use for it. The cache will have
    /// it under this number.
    pub(super) fn add(
        self: &Rc<Self>,
        key: &PartitionKey,
        part: &Rc<Part>,
        number: u64,
    ) -> Option<Vec<Rc<Part>>> {
        let partition = self.partition_to_be(key)?;
        let place = self.place_between(&partition.of_rows.borrow(), part);
        if place.is_none() && self.is_covered(key, part) {
            return None;
        }
        let mut gone = partition.disagreeing(part.stretch.head);
        if place.is_none() {
            gone.extend(self.overlapping(&partition, part));
        }
        self.remove_all(&gone);
        // Removing the last part has removed the partition.
        self.partitions.borrow_mut().entry(key.token).or_insert_with(|| partition.clone());
        self.put(&partition, part, place.filter(|_| gone.is_empty()));
        let weight = Directory::weight(key, part);
        let directory = Rc::downgrade(self);
        let (is_told, uses) = (Cell::new(true), Uses::default());
        let link = Link { directory, partition, number, weight, is_told, uses };
        assert!(part.link.set(link).is_ok(), "a part is taken in once");
        self.parts.set(self.parts.get() + 1);
        self.bytes.set(self.bytes.get() + weight);
        Some(gone)
    }

    /// These parts, those of a partition in order, are no longer told of.
    pub(super) fn remove_all(&self, parts: &[Rc<Part>]) {
        // At the end of a list of millions nothing has to move up.
        parts.iter().rev().for_each(|part| self.remove(part));
    }

    /// The part is no longer told of.
    pub(super) fn remove(&self, part: &Part) {
        let Some(link) = part.link.get().filter(|link| link.is_told.replace(false)) else { return };
        self.parts.set(self.parts.get() - 1);
        self.bytes.set(self.bytes.get() - link.weight);
        let partition = &link.partition;
        match &part.scope {
            Scope::Static => drop(partition.of_static_row.take()),
            Scope::Rows { start, .. } => self.take_out(partition, start),
        }
        if partition.is_empty() {
            self.last.take();
            self.partitions.borrow_mut().remove(&partition.key.token);
        }
    }

    /// All parts that a memtable says something about.
    pub(super) fn touched(&self, memtable: &Memtable) -> Vec<Rc<Part>> {
        let few = self.partitions.borrow().len() < memtable.partitions();
        let partitions: Vec<_> = match few {
            true => self.partitions.borrow().values().cloned().collect(),
            false => memtable.keys().iter().filter_map(|key| self.partition(key)).collect(),
        };
        partitions.iter().flat_map(|partition| self.touched_of(partition, memtable)).collect()
    }

    /// All parts.
    pub(super) fn all(&self) -> Vec<Rc<Part>> {
        self.partitions.borrow().values().flat_map(|partition| partition.parts()).collect()
    }

    /// All parts of a partition.
    pub(super) fn of_partition(&self, key: &PartitionKey) -> Vec<Rc<Part>> {
        self.partition(key).map_or_else(Vec::new, |partition| partition.parts())
    }

    fn touched_of(&self, partition: &Partition, memtable: &Memtable) -> Vec<Rc<Part>> {
        let key = &partition.key;
        let Some(touched) = memtable.touched(key) else { return Vec::new() };
        if touched.is_deleted {
            return partition.parts();
        }
        let of_static_row = partition.of_static_row.borrow().upgrade().filter(|_| touched.static_row);
        let mut found: Vec<_> = of_static_row.into_iter().collect();
        let parts = partition.of_rows.borrow();
        let mut at = Position::start();
        // From one to the next, whichever of the two has fewer.
        while let Some(next) = memtable.next_touched(key, &at) {
            let place = self.look(&parts, &next, Direction::Forward).place();
            let Some(part) = place.and_then(|place| parts.get(place)).and_then(Entry::part) else { break };
            let (start, end) = part.ends();
            if self.schema.compare(start, &next).is_gt() {
                at = start.clone();
                continue;
            }
            at = end.clone();
            found.push(part);
        }
        found
    }

    fn partition(&self, key: &PartitionKey) -> Option<Rc<Partition>> {
        self.partitions.borrow().get(&key.token).filter(|partition| partition.key == *key).cloned()
    }

    /// The partition, or a new one that is not told of yet; `None` if its token is taken.
    fn partition_to_be(&self, key: &PartitionKey) -> Option<Rc<Partition>> {
        match self.partitions.borrow().get(&key.token) {
            Some(partition) => (partition.key == *key).then(|| partition.clone()),
            None => Some(Rc::new(Partition::new(key))),
        }
    }

    fn is_covered(&self, key: &PartitionKey, part: &Part) -> bool {
        match &part.scope {
            Scope::Static => {
                self.find_static_row(key).is_some_and(|known| agree(known.stretch.head, part.stretch.head))
            }
            Scope::Rows { start, end } => match self.find(key, start, Direction::Forward) {
                Found::Part(known) => {
                    agree(known.stretch.head, part.stretch.head)
                        && self.schema.compare(known.ends().1, end).is_ge()
                }
                Found::Gap(_) => false,
            },
        }
    }

    fn overlapping(&self, partition: &Partition, part: &Part) -> Vec<Rc<Part>> {
        match &part.scope {
            Scope::Static => partition.of_static_row.borrow().upgrade().into_iter().collect(),
            Scope::Rows { start, end } => {
                let parts = partition.of_rows.borrow();
                let first = self.look(&parts, start, Direction::Forward).place();
                let behind = self.starting_from(&parts, end);
                let overlapping = first.into_iter().flat_map(|first| parts.between(first, behind));
                overlapping.filter_map(Entry::part).collect()
            }
        }
    }

    /// At this place of the rows, if it is known.
    fn put(&self, partition: &Partition, part: &Rc<Part>, place: Option<Place>) {
        match &part.scope {
            Scope::Static => drop(partition.of_static_row.replace(Rc::downgrade(part))),
            Scope::Rows { start, end } => {
                let mut parts = partition.of_rows.borrow_mut();
                let place = place.unwrap_or_else(|| self.starting_from(&parts, start));
                let [rank, end_rank] = [start, end].map(|end| self.schema.rank(end));
                parts.insert(place, rank, Entry::of(part, end_rank));
            }
        }
    }

    /// Takes out the part that starts here. If it is just being dropped, it is the only one that nobody can look at.
    fn take_out(&self, partition: &Partition, start: &Position) {
        let mut parts = partition.of_rows.borrow_mut();
        let place = self.starting_from(&parts, start);
        parts.remove(place);
    }

    /// The first part that starts at a position or behind it.
    fn starting_from(&self, parts: &Sorted<Entry>, at: &Position) -> Place {
        parts.partition_point(self.schema.rank(at), |entry| self.start_compared(entry, at).is_lt())
    }

    /// Where a part starts, beside a position of its rank. One that is just being dropped starts there.
    fn start_compared(&self, entry: &Entry, at: &Position) -> Ordering {
        entry.part().map_or(Ordering::Equal, |part| self.schema.compare(part.ends().0, at))
    }

    /// Where a part ends, beside a position of this rank.
    fn end_compared(&self, entry: &Entry, (at, rank): (&Position, u64)) -> Ordering {
        let compared = || self.schema.compare(entry.part().expect(ALIVE).ends().1, at);
        entry.end_rank.cmp(&rank).then_with(compared)
    }
}

impl Look {
    /// The place of the part that is there, or else of the one that comes next.
    fn place(self) -> Option<Place> {
        match self {
            Look::Part(place) => Some(place),
            Look::Gap(next) => next,
        }
    }
}

impl Entry {
    fn of(part: &Rc<Part>, end_rank: u64) -> Entry {
        Entry { end_rank, part: Rc::downgrade(part), near: Near::of(part) }
    }

    /// The part; `None` if it is just being dropped.
    #[inline]
    fn part(&self) -> Option<Rc<Part>> {
        self.part.upgrade()
    }
}

impl Partition {
    fn new(key: &PartitionKey) -> Partition {
        // The key that was asked for may keep a large buffer alive.
        let key = PartitionKey { token: key.token, bytes: key.bytes.detached() };
        Partition { key, of_static_row: RefCell::default(), of_rows: RefCell::default() }
    }

    fn parts(&self) -> Vec<Rc<Part>> {
        let of_rows = self.of_rows.borrow();
        let of_static_row = self.of_static_row.borrow();
        of_rows.iter().filter_map(Entry::part).chain(of_static_row.upgrade()).collect()
    }

    fn is_empty(&self) -> bool {
        self.of_rows.borrow().is_empty() && self.of_static_row.borrow().strong_count() == 0
    }

    /// The parts that say something else of the partition's deletion, which a compaction has forgotten meanwhile.
    fn disagreeing(&self, head: Option<DeletionTime>) -> Vec<Rc<Part>> {
        let of_static_row = self.of_static_row.borrow().upgrade();
        let any = of_static_row.or_else(|| self.of_rows.borrow().iter().next().and_then(Entry::part));
        if any.is_none_or(|part| agree(part.stretch.head, head)) { Vec::new() } else { self.parts() }
    }
}

impl Part {
    /// The start and the end of a part of rows.
    ///
    /// # Panics
    /// If it is of a static row, which has neither.
    pub(super) fn ends(&self) -> (&Position, &Position) {
        match &self.scope {
            Scope::Rows { start, end } => (start, end),
            Scope::Static => unreachable!("a static row is not among the rows"),
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(directory) = self.link.get().and_then(|link| link.directory.upgrade()) {
            directory.remove(self);
        }
    }
}

/// A partition that is not there is not deleted.
fn agree(a: Option<DeletionTime>, b: Option<DeletionTime>) -> bool {
    a.unwrap_or(DeletionTime::LIVE) == b.unwrap_or(DeletionTime::LIVE)
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Clustering, CqlType, Fragment, RangeTombstoneChange, Row};
    use testkit::generate::random::Random;

    use super::super::stretch::Draft;

    use super::*;

    pub(super) fn position(at: u8) -> Position {
        Position::before(std::iter::once(vec![at]).collect::<Clustering>())
    }

    pub(super) fn key(number: u8) -> PartitionKey {
        PartitionKey::new(Bytes::from(vec![number]))
    }

    pub(super) fn part(start: u8, end: u8, head: Option<DeletionTime>) -> Rc<Part> {
        let ends = (&position(start), &position(end));
        Rc::new(Part::of_rows(head, ends, DeletionTime::LIVE, &mut Draft::default(), Direction::Forward))
    }

    pub(super) fn directory() -> Rc<Directory> {
        let schema = Schema::new(CqlType::Blob, vec![CqlType::Blob], Vec::new(), Vec::new());
        Rc::new(Directory::new(&Rc::new(schema)))
    }

    /// What is known from each place on: where the part ends, or else where the gap does.
    fn found(directory: &Directory, at: u8, direction: Direction) -> (bool, Option<Position>) {
        match directory.find(&key(1), &position(at), direction) {
            Found::Gap(until) => (false, until),
            Found::Part(part) => {
                let (start, end) = part.ends();
                let end = if direction == Direction::Forward { end } else { start };
                (true, Some(end.clone()))
            }
        }
    }

    #[test]
    fn parts_are_found_and_gaps_end_at_them() {
        let directory = directory();
        let kept = [part(4, 6, None), part(2, 4, None), part(8, 9, None)];
        for (number, part) in (0..).zip(&kept) {
            assert!(directory.add(&key(1), part, number).is_some_and(|gone| gone.is_empty()));
        }
        let forward = |at| found(&directory, at, Direction::Forward);
        assert_eq!(forward(1), (false, Some(position(2))));
        assert_eq!(forward(2), (true, Some(position(4))));
        assert_eq!(forward(4), (true, Some(position(6))));
        assert_eq!(forward(6), (false, Some(position(8))));
        assert_eq!(forward(9), (false, None));
        let reverse = |at| found(&directory, at, Direction::Reverse);
        assert_eq!(reverse(10), (false, Some(position(9))));
        assert_eq!(reverse(6), (true, Some(position(4))));
        assert_eq!(reverse(5), (true, Some(position(4))));
        assert_eq!(reverse(4), (true, Some(position(2))));
        assert_eq!(reverse(2), (false, None));
        assert!(directory.add(&key(1), &part(4, 5, None), 9).is_none(), "it is known");
    }

    /// Of keys whose first eight bytes are the same, so that all parts have one rank, and of others.
    #[test]
    fn the_part_around_a_position_is_found_among_those_of_its_rank() {
        let long = |at: u8| Position::before(std::iter::once([&b"the same"[..], &[at]].concat()).collect());
        for ends in [position, long] {
            let directory = directory();
            let kept = [(2, 4), (4, 6), (8, 9), (12, 20)];
            let part = |(start, end): &(u8, u8)| {
                let ends = (&ends(*start), &ends(*end));
                let mut draft = Draft::default();
                Rc::new(Part::of_rows(None, ends, DeletionTime::LIVE, &mut draft, Direction::Forward))
            };
            let parts: Vec<_> = kept.iter().map(part).collect();
            for (number, part) in (0..).zip(&parts) {
                directory.add(&key(1), part, number);
            }
            for at in 0..22 {
                let found = |direction| match directory.find(&key(1), &ends(at), direction) {
                    Found::Part(part) => Ok(part.ends().0.clone()),
                    Found::Gap(until) => Err(until),
                };
                let around = |covers: &dyn Fn(&(u8, u8)) -> bool| kept.iter().find(|part| covers(part));
                let forward = around(&|(start, end)| *start <= at && at < *end).map(|part| ends(part.0));
                let next = kept.iter().map(|part| part.0).find(|start| *start > at).map(ends);
                assert_eq!(found(Direction::Forward), forward.ok_or(next), "{at}");
                let reverse = around(&|(start, end)| *start < at && at <= *end).map(|part| ends(part.0));
                let next = kept.iter().rev().map(|part| part.1).find(|end| *end < at).map(ends);
                assert_eq!(found(Direction::Reverse), reverse.ok_or(next), "{at}");
            }
        }
    }

    #[test]
    fn a_part_takes_the_place_of_those_it_overlaps_or_disagrees_with() {
        let directory = directory();
        let deleted = Some(DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 });
        let kept = [part(1, 3, None), part(3, 5, None), part(5, 7, Some(DeletionTime::LIVE))];
        for (number, part) in (0..).zip(&kept) {
            directory.add(&key(1), part, number);
        }
        let wide = part(2, 5, None);
        assert_eq!(directory.add(&key(1), &wide, 3).map(|gone| gone.len()), Some(2));
        assert_eq!(directory.size().0, 2);
        let other = part(8, 9, deleted);
        assert_eq!(directory.add(&key(1), &other, 4).map(|gone| gone.len()), Some(2));
        assert_eq!(directory.size(), (1, Directory::weight(&key(1), &other)));
    }

    /// A part with a row at each place from its start to its end.
    pub(super) fn with_rows(start: u8, end: u8) -> Rc<Part> {
        let mut draft = Draft::default();
        (start..end).for_each(|at| draft.push(&Fragment::Row(Row::new(position(at).prefix))));
        let ends = (&position(start), &position(end));
        Rc::new(Part::of_rows(None, ends, DeletionTime::LIVE, &mut draft, Direction::Forward))
    }

    #[test]
    fn parts_that_reach_beyond_another_stay_whole() {
        let directory = directory();
        let kept = [with_rows(10, 20), with_rows(30, 40)];
        for (number, part) in (0..).zip(&kept) {
            directory.add(&key(1), part, number);
        }
        let apart = |start, end| {
            let part = directory.apart(&key(1), &with_rows(start, end))?;
            let ends = part.ends();
            Some((ends.0.clone(), ends.1.clone(), part.stretch.len()))
        };
        let of = |start: u8, end: u8| Some((position(start), position(end), usize::from(end - start)));
        assert_eq!([apart(15, 25), apart(25, 35), apart(15, 35)], [of(20, 25), of(25, 30), of(20, 30)]);
        // Neither those that are within it, nor those that end where it begins.
        assert_eq!(
            [apart(5, 45), apart(10, 25), apart(20, 30), apart(50, 60)],
            [of(5, 45), of(10, 25), of(20, 30), of(50, 60)]
        );
        assert_eq!([apart(12, 18), apart(10, 20)], [None, of(10, 20)]);
        let deleted = Some(DeletionTime { marked_for_delete_at: 1, local_deletion_time: 1 });
        let other = part(15, 25, deleted);
        assert!(Rc::ptr_eq(&directory.apart(&key(1), &other).unwrap(), &other), "it disagrees");
    }

    /// Whatever parts come, of keys of two columns whose rank tells the first alone: they are in order, do not overlap, and are found.
    #[test]
    fn parts_that_come_in_any_order_do_not_overlap_and_are_found() {
        let schema = Schema::new(CqlType::Blob, vec![CqlType::Blob; 2], Vec::new(), Vec::new());
        let schema = Rc::new(schema);
        let mut positions = vec![Position::start(), Position::end()];
        for first in [None, Some(0_u8), Some(1), Some(2)] {
            let value = |of: u8| Bytes::from(vec![of]);
            let prefix = |second: Option<u8>| Clustering {
                values: std::iter::once(first.map(value)).chain(second.map(|of| Some(value(of)))).collect(),
            };
            for prefix in [None, Some(0), Some(1)].map(prefix) {
                positions.extend([Position::before(prefix.clone()), Position::after(prefix)]);
            }
        }
        positions.sort_by(|a, b| schema.compare(a, b));
        positions.dedup_by(|a, b| schema.compare(a, b).is_eq());
        let count = positions.len();
        let place_of =
            |of: &Position| positions.iter().position(|at| schema.compare(at, of).is_eq()).unwrap();
        for seed in 0..200 {
            let (directory, random) = (Rc::new(Directory::new(&schema)), &mut Random::new(seed));
            let mut kept: Vec<Rc<Part>> = Vec::new();
            for number in 0..12 {
                let start = random.below(count - 1);
                let end = start + 1 + random.below((count - start - 1).min(6));
                let ends = (&positions[start], &positions[end]);
                let mut draft = Draft::default();
                let part = Part::of_rows(None, ends, DeletionTime::LIVE, &mut draft, Direction::Forward);
                if let Some(part) = directory.apart(&key(1), &Rc::new(part))
                    && let Some(gone) = directory.add(&key(1), &part, number)
                {
                    kept.retain(|known| !gone.iter().any(|gone| Rc::ptr_eq(known, gone)));
                    kept.push(part);
                }
                let mut places: Vec<_> =
                    kept.iter().map(|part| (place_of(part.ends().0), place_of(part.ends().1))).collect();
                places.sort_unstable();
                assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].0), "seed {seed}: {places:?}");
                assert!((start..end).all(|at| places.iter().any(|part| part.0 <= at && at < part.1)));
                for (at, position) in positions.iter().enumerate() {
                    let found = |direction| match directory.find(&key(1), position, direction) {
                        Found::Part(part) => Ok(place_of(part.ends().0)),
                        Found::Gap(next) => Err(next.as_ref().map(place_of)),
                    };
                    let around = places.iter().find(|part| part.0 <= at && at < part.1).map(|part| part.0);
                    let next = places.iter().map(|part| part.0).find(|start| *start > at);
                    assert_eq!(
                        found(Direction::Forward),
                        around.ok_or(next),
                        "seed {seed}: {at} of {places:?}"
                    );
                    let around = places.iter().find(|part| part.0 < at && at <= part.1).map(|part| part.0);
                    let next = places.iter().rev().map(|part| part.1).find(|end| *end < at);
                    assert_eq!(
                        found(Direction::Reverse),
                        around.ok_or(next),
                        "seed {seed}: {at} of {places:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_cut_has_the_range_tombstones_that_are_in_force_there() {
        let deletion = |at: i64| DeletionTime { marked_for_delete_at: at, local_deletion_time: at };
        let change = |at: u8, in_force: DeletionTime| {
            Fragment::RangeTombstone(RangeTombstoneChange { position: position(at), deletion: in_force })
        };
        let row = |at: u8| Fragment::Row(Row::new(position(at).prefix));
        // One tombstone is open at the start and ends at 20, another one begins at 30.
        let fragments = [row(15), change(20, DeletionTime::LIVE), row(25), change(30, deletion(2)), row(35)];
        let schema = directory().schema().clone();
        for direction in [Direction::Forward, Direction::Reverse] {
            let mut draft = Draft::default();
            match direction {
                Direction::Forward => fragments.iter().for_each(|fragment| draft.push(fragment)),
                Direction::Reverse => fragments.iter().rev().for_each(|fragment| draft.push(fragment)),
            }
            let ends = (&position(10), &position(40));
            let whole = Rc::new(Part::of_rows(None, ends, deletion(1), &mut draft, direction));
            for (known, open, rest) in [
                ((5, 12), deletion(1), &fragments[..]),
                ((5, 20), DeletionTime::LIVE, &fragments[2..]),
                ((5, 22), DeletionTime::LIVE, &fragments[2..]),
                ((5, 30), deletion(2), &fragments[4..]),
                ((5, 38), deletion(2), &[]),
                ((30, 45), deletion(1), &fragments[..3]),
                ((20, 45), deletion(1), &fragments[..1]),
            ] {
                let directory = Rc::new(Directory::new(&schema));
                let known = part(known.0, known.1, None);
                directory.add(&key(1), &known, 0);
                let cut = directory.apart(&key(1), &whole).unwrap();
                let all: Vec<Fragment> = (0..cut.stretch.len()).map(|at| cut.stretch.fragment(at)).collect();
                assert_eq!((cut.stretch.open, &all[..]), (open, rest), "{direction:?}");
                let has_changes = rest.iter().any(|fragment| matches!(fragment, Fragment::RangeTombstone(_)));
                assert_eq!(cut.stretch.has_changes, has_changes);
            }
        }
    }

    #[test]
    fn what_is_dropped_leaves_nothing_behind() {
        let directory = directory();
        let mut kept = Vec::new();
        for (number, partition) in (0..200).map(|number| (number, number as u8 % 50)) {
            let at = (number / 50) as u8;
            let part = part(at, at + 1, None);
            directory.add(&key(partition), &part, number);
            kept.push(part);
        }
        let row = Fragment::StaticRow(Row::new(Clustering::empty()));
        let of_static_row = Rc::new(Part::of_static_row(None, Some(&row)));
        directory.add(&key(7), &of_static_row, 200);
        assert_eq!((directory.size().0, directory.partitions.borrow().len()), (201, 50));
        while !kept.is_empty() {
            drop(kept.swap_remove(kept.len() * 7 % 11 % kept.len()));
        }
        assert_eq!((directory.size().0, directory.partitions.borrow().len()), (1, 1));
        assert!(directory.find_static_row(&key(7)).is_some());
        drop(of_static_row);
        assert_eq!((directory.size(), directory.partitions.borrow().len()), ((0, 0), 0));
    }
}
