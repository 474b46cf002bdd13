//! A slice of a partition as all SSTables tell it together, from the cache where it has it.
//!
//! The reader walks from one end of the slice to the other. Where a part of the cache covers the place it has come to,
//! the rows come from there; where none does, they are read up to where parts begin that are worth a stop, and become parts.

use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use model::flat::RowTaker;
use model::{
    DeletionTime, Direction, Fragment, FragmentReader, Next, PartitionKey, PartitionStart, Position, Row,
    Schema, Slice,
};

use super::RowCache;
use super::directory::Found;
use super::filler::{Filler, Filling};
use super::gap::{Gap, Step, nowhere};
use super::part::Part;
use super::stretch::View;
use super::watch::Watch;
use crate::sstable_set::{Candidates, SSTableSet};
use crate::table::ReadRequest;
use crate::{Error, Result};

/// Reads a slice of a partition from the cache and from SSTables.
///
/// Invariants:
/// 1. What lies between the slice's beginning and `at`, as the stream runs, was given to `teller`, and nothing else; but rows of a gap
///    that keeps nothing may have been given as they stand, from `at` on. So nobody reads on once a `fill` has failed or was let go.
/// 2. Once a flush has changed what the table's SSTables say of the partition, the cache is neither asked nor filled.
pub struct CachedReader {
    filling: Filling,
    schema: Rc<Schema>,
    set: Rc<SSTableSet>,
    members: Option<Candidates>,
    /// With ends beside rows.
    request: ReadRequest,
    at: Position,
    wants_static_row: bool,
    /// The part at `at`, if it is known already.
    known: Option<Rc<Part>>,
    state: State,
    /// The gap that the reader is in.
    gap: Option<Gap>,
    teller: Teller,
    sources: Sources,
    /// Whether it was asked for rows as they stand.
    takes_flat: bool,
    /// Whether it is known that the cache has nothing at `at`.
    is_at_gap: bool,
}

enum State {
    /// Where it goes on has to be found out.
    Between,
    /// In a part of the cache, and where the reader will be behind it.
    Inside(View, Position),
    Ended,
}

/// Where the rows came from.
#[derive(Clone, Copy, Default)]
struct Sources {
    cache: bool,
    sstables: bool,
}

/// Whoever waits for the same step of the same gap waits for the same read.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Flight {
    began_at: u64,
    key: PartitionKey,
    slice: Slice,
    is_reverse: bool,
    static_row: bool,
}

/// What came of a step.
enum Brought {
    /// The gap has gone it: the part that was made, if there is one.
    Own(Option<Step>),
    /// Another reader has.
    Shared(Step),
}

/// What a step has for others who wait for the same.
#[derive(Clone)]
pub(super) enum Shared {
    Step(Step),
    /// It found what is not kept.
    Nothing,
    Failed,
}

impl CachedReader {
    pub(super) fn new(
        cache: &RowCache,
        request: &ReadRequest,
        schema: &Rc<Schema>,
        (set, members): (&Rc<SSTableSet>, Option<Candidates>),
        (known, watch): (Option<Rc<Part>>, Watch),
    ) -> CachedReader {
        let watch = Rc::new(watch);
        let at = request.beginning().clone();
        CachedReader {
            filling: Filling { cache: cache.clone(), key: request.key.clone(), watch },
            schema: schema.clone(),
            set: set.clone(),
            members,
            wants_static_row: request.static_row && !schema.statics.is_empty(),
            teller: Teller::new(&request.key),
            request: request.clone(),
            at,
            known,
            state: State::Between,
            gap: None,
            sources: Sources::default(),
            takes_flat: false,
            is_at_gap: false,
        }
    }

    /// The SSTables that may have something of a gap, as far as their filters tell.
    async fn members_near(&mut self, gap: &Gap) -> Result<Candidates> {
        let (key, sought) = (&self.request.key, self.request.sought(&self.schema));
        if self.members.is_none()
            && !gap.is_of_head
            && let Some(mut beginning) = self.set.of_beginning(gap.request(), &self.schema)
        {
            beginning.ask_all(key).await?;
            return Ok(beginning);
        }
        let members = self.members.get_or_insert_with(|| self.set.of_slice(key, sought));
        members.ask_all(key).await?;
        let sought = gap.request().sought(&self.schema).filter(|_| !gap.is_of_head);
        Ok(self.set.of_slice_among(members.clone(), key, sought))
    }

    /// Goes on without waiting; whether that was possible.
    fn advance(&mut self) -> bool {
        if self.gap.is_some() || self.is_at_gap || (self.wants_static_row && !self.take_static_row()) {
            return false;
        }
        if self.is_at_end(&self.at) {
            self.teller.end(&self.at);
            self.state = State::Ended;
            return true;
        }
        match self.find() {
            Found::Part(part) => {
                self.sources.cache = true;
                self.enter(&part);
                true
            }
            Found::Gap(_) => {
                self.is_at_gap = true;
                false
            }
        }
    }

    fn take_static_row(&mut self) -> bool {
        if self.filling.is_stale() {
            return false;
        }
        let Some(part) = self.filling.cache.find_static_row(&self.filling.key) else { return false };
        self.sources.cache = true;
        self.tell_static_row(part.stretch.head, part.static_row());
        true
    }

    fn tell_static_row(&mut self, head: Option<DeletionTime>, row: Option<Row>) {
        self.teller.head(head);
        self.teller.static_row(row);
        self.wants_static_row = false;
    }

    /// What the cache has from here on.
    fn find(&mut self) -> Found {
        let known = self.known.take();
        let Filling { cache, key, .. } = &self.filling;
        match (self.filling.is_stale(), known) {
            (true, _) => Found::Gap(None),
            (false, Some(part)) => Found::Part(part),
            (false, None) => cache.find(key, &self.at, self.request.direction),
        }
    }

    /// Goes on in a part that covers the place.
    fn enter(&mut self, part: &Rc<Part>) {
        self.is_at_gap = false;
        let behind = self.clipped(part.far_end(self.request.direction));
        let view = part.view(&self.ahead(&behind), &self.schema, self.request.direction);
        self.teller.head(part.stretch.head);
        self.teller.change(&self.at, view.entry());
        self.state = State::Inside(view, behind);
    }

    /// The gap that begins here. `None` if others have filled it meanwhile, and it has gone on there.
    fn gap_here(&mut self) -> Option<Gap> {
        self.is_at_gap = false;
        self.filling.cache.list(&self.filling.watch, &self.filling.key);
        match self.find() {
            Found::Gap(next) if !self.is_at_end(&self.at) => {
                let is_within = next.is_some_and(|next| self.ends_before(&next));
                let until = is_within.then(|| self.end_of_gap()).flatten();
                Some(self.gap_of(self.ahead(until.as_ref().unwrap_or(self.end()))))
            }
            Found::Part(part) if !self.wants_static_row && !self.is_at_end(&self.at) => {
                self.sources.cache = true;
                self.enter(&part);
                None
            }
            _ => Some(self.gap_of(nowhere())),
        }
    }

    /// Up to where it is better to read than to look here; `None` up to the end.
    fn end_of_gap(&self) -> Option<Position> {
        let Filling { cache, key, .. } = &self.filling;
        let ReadRequest { direction, limit, .. } = self.request;
        let asked = (cache.limits().worth_a_stop, limit);
        cache.directory().end_of_gap(key, (&self.at, self.end()), direction, asked)
    }

    fn gap_of(&self, slice: Slice) -> Gap {
        let request = ReadRequest { slice, static_row: self.wants_static_row, ..self.request.clone() };
        let filler = self.filling.is_wanted().then(|| Filler::new(&self.filling, &self.schema, &request));
        Gap::new(request, &self.schema, filler, self.takes_flat)
    }

    /// Reads on in the gap that the reader is in, or that begins here.
    async fn step(&mut self) -> Result<()> {
        let Some(mut gap) = self.gap.take().or_else(|| self.gap_here()) else { return Ok(()) };
        let near = if gap.has_begun() { None } else { Some(self.members_near(&gap).await?) };
        // That there is nothing costs nothing to find out again, where filters tell, or where rows are.
        let has_members = near.as_ref().is_none_or(|near| !near.is_empty());
        if gap.is_filling() && !(has_members && self.filling.is_wanted()) {
            gap.stop_filling();
        }
        self.sources.sstables |= has_members || !self.sources.cache;
        let none = Candidates::default();
        let members = near.as_ref().unwrap_or(&none);
        match self.step_with_others(&mut gap, members).await? {
            Brought::Own(step) => {
                if near.is_some_and(|near| near.asks_beside()) {
                    let deletion = gap.head.unwrap_or(DeletionTime::LIVE);
                    self.set.note_deletion(&self.request.key, deletion);
                }
                self.take(gap, step);
            }
            Brought::Shared(step) => self.take_shared(&step),
        }
        Ok(())
    }

    /// Goes a step in the gap: by itself, or with others that are at the same place of the same gap, one of which reads for all.
    ///
    /// - A gap that will not be kept is read by everybody for himself: it has nothing to share.
    /// - Who has begun to read goes on, though another one has come to the same place.
    /// - Who waits gets what the other one has kept. If that one kept nothing, or was given up, he reads for himself.
    async fn step_with_others(&self, gap: &mut Gap, members: &Candidates) -> Result<Brought> {
        let flights = self.filling.cache.flights();
        loop {
            if !gap.is_filling() {
                return gap.step(members).await.map(Brought::Own);
            }
            let flight = self.flight(gap);
            if gap.has_begun() && flights.contains(&flight) {
                return gap.step(members).await.map(Brought::Own);
            }
            let own = Cell::new(None);
            let read = async || {
                let read = gap.step(members).await;
                let shared = Shared::of(&read);
                own.set(Some(read));
                shared
            };
            let shared = flights.run(flight, read).await;
            match (own.take(), shared) {
                (Some(read), _) => return read.map(Brought::Own),
                (None, Shared::Step(step)) => return Ok(Brought::Shared(step)),
                (None, Shared::Nothing) => return gap.step(members).await.map(Brought::Own),
                // Its error is its own; who waited tries again, one of them for all.
                (None, Shared::Failed) => {}
            }
        }
    }

    fn flight(&self, gap: &Gap) -> Flight {
        let request = gap.request();
        let rest = match request.direction {
            Direction::Forward => Slice { start: gap.at.clone(), end: request.slice.end.clone() },
            Direction::Reverse => Slice { start: request.slice.start.clone(), end: gap.at.clone() },
        };
        Flight {
            began_at: self.filling.watch.began_at(),
            key: request.key.clone(),
            slice: rest,
            is_reverse: request.direction == Direction::Reverse,
            static_row: request.static_row && self.wants_static_row,
        }
    }

    /// Tells what a step of the gap has brought: rows that were kept are looked at where they are now.
    fn take(&mut self, mut gap: Gap, step: Option<Step>) {
        self.teller.head(gap.head);
        if self.wants_static_row {
            let row = match gap.static_row.take() {
                Some(Fragment::StaticRow(row)) => Some(row),
                _ => None,
            };
            self.tell_static_row(gap.head, row);
        }
        if gap.is_of_head {
            return;
        }
        match step {
            Some(step) => self.enter(&step.part),
            None => {
                gap.items.drain(..).for_each(|item| self.teller.tell(item));
                self.at = gap.at.clone();
            }
        }
        self.gap = (!gap.has_ended()).then_some(gap);
    }

    /// Tells what another reader's step has brought.
    fn take_shared(&mut self, step: &Step) {
        self.filling.cache.count_shared();
        if self.wants_static_row {
            let of_static_row = step.of_static_row.as_ref();
            self.tell_static_row(step.part.stretch.head, of_static_row.and_then(|part| part.static_row()));
        }
        self.enter(&step.part);
    }

    fn is_forward(&self) -> bool {
        self.request.direction == Direction::Forward
    }

    /// Where the slice ends, as the stream runs.
    fn end(&self) -> &Position {
        self.request.end()
    }

    fn is_at_end(&self, position: &Position) -> bool {
        self.schema.compare(position, self.end()).is_eq()
    }

    /// Whether a position is before the end of the slice, as the stream runs.
    fn ends_before(&self, position: &Position) -> bool {
        let order = self.schema.compare(position, self.end());
        if self.is_forward() { order.is_lt() } else { order.is_gt() }
    }

    /// A position, but not one behind the slice.
    fn clipped(&self, position: &Position) -> Position {
        if self.ends_before(position) { position.clone() } else { self.end().clone() }
    }

    /// From here to there.
    fn ahead(&self, to: &Position) -> Slice {
        match self.request.direction {
            Direction::Forward => Slice { start: self.at.clone(), end: to.clone() },
            Direction::Reverse => Slice { start: to.clone(), end: self.at.clone() },
        }
    }
}

impl FragmentReader for CachedReader {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        loop {
            if !self.teller.ready.is_empty() {
                return Ok(place.pop_from(&mut self.teller.ready));
            }
            match &mut self.state {
                State::Inside(view, behind) => {
                    if !view.next(place) {
                        std::mem::swap(&mut self.at, behind);
                        self.state = State::Between;
                    } else if let Fragment::RangeTombstone(change) = place {
                        self.teller.change(&change.position, change.deletion);
                    } else {
                        return Ok(Next::Fragment);
                    }
                }
                State::Ended => return Ok(Next::End),
                State::Between => {
                    if !self.advance() {
                        return Ok(Next::Fill);
                    }
                }
            }
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        self.takes_flat = true;
        while self.teller.ready.is_empty() {
            match &mut self.state {
                State::Inside(view, behind) => {
                    if !view.next_flat(take) || !view.is_at_end() {
                        return;
                    }
                    std::mem::swap(&mut self.at, behind);
                    self.state = State::Between;
                }
                State::Between => {
                    if let Some(gap) = &mut self.gap {
                        return gap.pop_flat(take);
                    }
                    if !self.advance() {
                        return;
                    }
                }
                State::Ended => return,
            }
        }
    }

    async fn fill(&mut self) -> Result<()> {
        // Others that stand at the head of the same merge may be what it waits for.
        if self.teller.ready.is_empty() && matches!(self.state, State::Between) && !self.advance() {
            self.step().await?;
        }
        Ok(())
    }
}

impl Drop for CachedReader {
    fn drop(&mut self) {
        self.filling.cache.count_read(self.sources.cache, self.sources.sstables);
    }
}

impl std::fmt::Debug for CachedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedReader")
            .field("request", &self.request)
            .field("at", &self.at)
            .finish_non_exhaustive()
    }
}

impl Shared {
    fn of(read: &Result<Option<Step>>) -> Shared {
        match read {
            Ok(Some(step)) => Shared::Step(step.clone()),
            Ok(None) => Shared::Nothing,
            Err(_) => Shared::Failed,
        }
    }
}

impl Hash for Flight {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.token.hash(state);
        for position in [&self.slice.start, &self.slice.end] {
            position.weight.hash(state);
            position.prefix.values.iter().for_each(|value| value.as_deref().hash(state));
        }
    }
}

/// Makes one stream of stretches that come one after the other.
struct Teller {
    key: PartitionKey,
    /// The deletion of the partition as the stream has told it.
    told: Option<DeletionTime>,
    /// A deletion of the partition that the stretch at hand tells and the stream has not: a read that goes on among
    /// changing SSTables may find different ones. It counts as one of the stretch.
    later: DeletionTime,
    /// The range tombstone that the stream has in force.
    open: DeletionTime,
    ready: VecDeque<Fragment>,
}

impl Teller {
    fn new(key: &PartitionKey) -> Teller {
        let (later, open) = (DeletionTime::LIVE, DeletionTime::LIVE);
        Teller { key: key.clone(), told: None, later, open, ready: VecDeque::new() }
    }

    /// A stretch begins whose SSTables tell this deletion of the partition; `None` if they do not have it.
    fn head(&mut self, deletion: Option<DeletionTime>) {
        self.later = DeletionTime::LIVE;
        match (deletion, self.told) {
            (None, _) => {}
            (Some(deletion), None) => {
                self.told = Some(deletion);
                let start = PartitionStart { key: self.key.clone(), deletion };
                self.ready.push_back(Fragment::PartitionStart(start));
            }
            (Some(deletion), Some(told)) if deletion > told => self.later = deletion,
            _ => {}
        }
    }

    fn static_row(&mut self, row: Option<Row>) {
        self.ready.extend(row.map(Fragment::StaticRow));
    }

    fn tell(&mut self, item: Fragment) {
        match item {
            Fragment::RangeTombstone(change) => self.change(&change.position, change.deletion),
            item => self.ready.push_back(item),
        }
    }

    fn change(&mut self, position: &Position, deletion: DeletionTime) {
        let deletion = deletion.max(self.later);
        if std::mem::replace(&mut self.open, deletion) != deletion {
            self.ready.push_back(Fragment::change(position.clone(), deletion));
        }
    }

    fn end(&mut self, at: &Position) {
        self.later = DeletionTime::LIVE;
        self.change(at, DeletionTime::LIVE);
        if self.told.is_some() {
            self.ready.push_back(Fragment::PartitionEnd);
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, RangeTombstoneChange};

    use super::*;

    fn deletion(at: i64) -> DeletionTime {
        DeletionTime { marked_for_delete_at: at, local_deletion_time: at }
    }

    fn position(at: u8) -> Position {
        Position::before(std::iter::once(vec![at]).collect())
    }

    #[test]
    fn a_deletion_that_only_later_stretches_know_is_one_of_these() {
        let key = PartitionKey::new(Bytes::default());
        let mut teller = Teller::new(&key);
        let mut stretch = |at: u8, head: Option<i64>, open: i64| {
            teller.head(head.map(deletion));
            teller.change(&position(at), deletion(open));
            teller.ready.drain(..).collect::<Vec<_>>()
        };
        let change = |at: u8, open: i64| {
            Fragment::RangeTombstone(RangeTombstoneChange {
                position: position(at),
                deletion: deletion(open),
            })
        };
        let start = Fragment::PartitionStart(PartitionStart { key: key.clone(), deletion: deletion(5) });
        assert_eq!(stretch(1, Some(5), 3), [start, change(1, 3)]);
        assert_eq!(stretch(2, Some(7), 3), [change(2, 7)]);
        assert_eq!(stretch(3, Some(7), 9), [change(3, 9)]);
        assert_eq!(stretch(4, Some(7), 6), [change(4, 7)]);
        assert_eq!(stretch(5, Some(4), 6), [change(5, 6)]);
        assert_eq!(stretch(6, None, 6), []);
        teller.end(&position(7));
        let live = RangeTombstoneChange { position: position(7), deletion: DeletionTime::LIVE };
        assert_eq!(teller.ready, [Fragment::RangeTombstone(live), Fragment::PartitionEnd]);
    }

    #[test]
    fn a_partition_that_is_nowhere_is_not_told() {
        let mut teller = Teller::new(&PartitionKey::new(Bytes::default()));
        teller.head(None);
        teller.change(&Position::start(), DeletionTime::LIVE);
        teller.end(&Position::end());
        assert!(teller.ready.is_empty());
    }
}
