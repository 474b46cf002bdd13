//! A stretch that the cache does not have, read from SSTables and given to it on the way.

use std::collections::VecDeque;
use std::mem;
use std::rc::Rc;

use model::flat::{FlatRow, RowTaker};
use model::merge::Merge;
use model::{Clustering, DeletionTime, Fragment, FragmentReader, Next, Position, Schema, Slice};

use super::filler::{Filler, Taken};
use super::part::{Part, before, behind};
use super::stretch::OWN;
use crate::Result;
use crate::slices::{self, SliceReader};
use crate::sstable_set::Candidates;
use crate::table::ReadRequest;

/// Where nothing is kept, so many fragments are given out at once, if they have to be decoded.
const STEP: usize = 64;

/// A stream that so often in a row had no row to give as it stands has none: once may be where the bytes at hand end.
const DRY: u8 = 2;

/// Reads a gap step by step. A step ends where a part does.
///
/// Invariants:
/// 1. All between the gap's beginning and `at`, as the stream runs, is in the parts of steps and in the `items` of those without one. Where
///    nothing is kept, rows behind it may have been given as they stand.
/// 2. The first item of the gap, if no part comes before it, is a range tombstone change where the gap begins.
pub(super) struct Gap {
    request: ReadRequest,
    schema: Rc<Schema>,
    stream: Option<Merge<SliceReader>>,
    filler: Option<Filler>,
    /// Popped, and for the next step.
    held: Option<Fragment>,
    /// The partition's deletion, once the stream has told it.
    pub(super) head: Option<DeletionTime>,
    pub(super) static_row: Option<Fragment>,
    /// What a step has brought that is in no part.
    pub(super) items: VecDeque<Fragment>,
    pub(super) at: Position,
    /// Only the head of the partition is wanted.
    pub(super) is_of_head: bool,
    /// How many steps there were since the stream gave a row as it stands: it has none, or nobody asks for them.
    dry: u8,
    state: State,
}

/// What the last step brought, for whoever wants the same.
#[derive(Clone)]
pub(super) struct Step {
    /// From where the step began.
    pub(super) part: Rc<Part>,
    /// Where the static row was asked for.
    pub(super) of_static_row: Option<Rc<Part>>,
}

/// Takes rows as they stand, and notes that there are such.
struct Noted<'t, T> {
    take: &'t mut T,
    dry: &'t mut u8,
}

impl<T: RowTaker> RowTaker for Noted<'_, T> {
    #[inline(always)]
    fn row(&mut self, row: FlatRow<'_>) -> bool {
        *self.dry = 0;
        self.take.row(row)
    }

    #[inline(always)]
    fn rows<'a>(&mut self, rows: &mut impl Iterator<Item = FlatRow<'a>>) -> bool {
        self.take.rows(&mut NotedRows { rows, dry: self.dry })
    }
}

/// The same rows, noted.
struct NotedRows<'t, I> {
    rows: &'t mut I,
    dry: &'t mut u8,
}

impl<I: Iterator> Iterator for NotedRows<'_, I> {
    type Item = I::Item;

    // That of a reference is no part of its caller, and each row would go there and back.
    #[inline(always)]
    fn next(&mut self) -> Option<I::Item> {
        let row = I::next(self.rows)?;
        *self.dry = 0;
        Some(row)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    AtHead,
    InRows,
    Ended,
}

impl Gap {
    /// The slice of a request, whose ends stand beside rows; or [`nowhere`]. Who reads it takes rows as they stand, or does not.
    pub(super) fn new(
        request: ReadRequest,
        schema: &Rc<Schema>,
        filler: Option<Filler>,
        takes_flat: bool,
    ) -> Gap {
        Gap {
            is_of_head: request.slice == nowhere(),
            at: request.beginning().clone(),
            request,
            schema: schema.clone(),
            stream: None,
            filler,
            held: None,
            head: None,
            static_row: None,
            items: VecDeque::new(),
            dry: if takes_flat { 0 } else { DRY },
            state: State::AtHead,
        }
    }

    /// Nothing more is kept.
    pub(super) fn stop_filling(&mut self) {
        self.filler = None;
    }

    pub(super) fn is_filling(&self) -> bool {
        self.filler.is_some()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.stream.is_some()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state == State::Ended
    }

    pub(super) fn request(&self) -> &ReadRequest {
        &self.request
    }

    /// Reads on until there is something to give out, or the gap ends. The part that was completed, if there is one.
    pub(super) async fn step(&mut self, members: &Candidates) -> Result<Option<Step>> {
        if self.stream.is_none() {
            let sources = slices::open_all(&self.request, members, &self.schema).await?;
            self.stream = Some(Merge::new(&self.schema, self.request.direction, sources));
        }
        self.dry = self.dry.saturating_add(1);
        let was_at_head = self.state == State::AtHead;
        let part = loop {
            match self.gather()? {
                Gathered::Step(part) => break part,
                Gathered::Fill => self.stream().fill().await?,
            }
        };
        let of_static_row = if was_at_head { self.part_of_static_row() } else { None };
        Ok(part.map(|part| Step { part, of_static_row }))
    }

    /// Where nothing is kept, gives the next rows as they stand. How far it has come is then known at its next step, or its end.
    pub(super) fn pop_flat(&mut self, take: &mut impl RowTaker) {
        let is_among_rows = self.state == State::InRows && self.items.is_empty() && self.held.is_none();
        if let (None, true, Some(stream)) = (&self.filler, is_among_rows, &mut self.stream) {
            stream.pop_flat(&mut Noted { take, dry: &mut self.dry });
        }
    }

    /// The static row as a part, if it was asked for.
    fn part_of_static_row(&mut self) -> Option<Rc<Part>> {
        let filler = self.filler.as_mut().filter(|_| self.request.static_row)?;
        Some(filler.static_row(self.static_row.as_ref()))
    }

    fn stream(&mut self) -> &mut Merge<SliceReader> {
        self.stream.as_mut().expect("it is opened before anything else is done")
    }

    fn gather(&mut self) -> Result<Gathered> {
        let mut fragment = Fragment::default();
        loop {
            if self.held.is_none() && self.has_enough_flat() {
                return Ok(self.end_step());
            }
            match self.held.take() {
                Some(held) => fragment = held,
                None => match self.stream().pop(&mut fragment)? {
                    Next::Fragment => {}
                    Next::Fill if self.ends_before_waiting() => return Ok(self.end_step()),
                    Next::Fill => return Ok(Gathered::Fill),
                    Next::End => return Ok(self.end()),
                },
            }
            if let Some(gathered) = self.take(&mut fragment) {
                return Ok(gathered);
            }
        }
    }

    /// Gives the next rows to the filler as they stand, until the part at hand has enough; whether it has. A row for which there is no
    /// room in it is held.
    fn has_enough_flat(&mut self) -> bool {
        let (Some(filler), Some(stream)) = (&mut self.filler, &mut self.stream) else { return false };
        let held = &mut self.held;
        stream.pop_flat(&mut |row: FlatRow<'_>| {
            let is_taken = filler.push_flat(row);
            if !is_taken {
                row.decode(held.insert(Fragment::default())).expect(OWN);
            }
            is_taken && !filler.has_enough()
        });
        filler.has_enough()
    }

    /// Takes a fragment, or leaves its memory for the next one; what the step has brought if it ends with it.
    fn take(&mut self, fragment: &mut Fragment) -> Option<Gathered> {
        match fragment {
            Fragment::PartitionStart(start) => {
                self.head = Some(start.deletion);
                self.filler.iter_mut().for_each(|filler| filler.head(Some(start.deletion)));
                None
            }
            Fragment::StaticRow(_) => {
                self.static_row = Some(mem::take(fragment));
                None
            }
            Fragment::PartitionEnd => None,
            Fragment::RangeTombstone(_) | Fragment::Row(_) => self.take_item(fragment),
        }
    }

    fn take_item(&mut self, item: &mut Fragment) -> Option<Gathered> {
        if let Fragment::RangeTombstone(change) = item
            && self.schema.compare(&change.position, self.request.end()).is_eq()
        {
            return None;
        }
        let taken = self.filler.as_mut().map(|filler| filler.push(item));
        if taken == Some(Taken::Later) {
            let before = before(item, self.request.direction).unwrap_or_else(Position::end);
            self.held = Some(mem::take(item));
            return Some(self.close(before));
        }
        // The part has the row. Of changes in front of a row that no part takes there will be none.
        if taken != Some(Taken::Yes) || matches!(item, Fragment::RangeTombstone(_)) {
            self.keep(mem::take(item));
        }
        let is_enough = match &self.filler {
            Some(filler) => filler.has_enough() || taken == Some(Taken::Never),
            None => self.items.len() >= if self.dry <= DRY { 1 } else { STEP },
        };
        is_enough.then(|| self.end_step())
    }

    fn keep(&mut self, item: Fragment) {
        let behind = behind(&item, self.request.direction).unwrap_or_else(Position::end);
        self.enter(matches!(item, Fragment::RangeTombstone(_)).then_some(&behind));
        self.items.push_back(item);
        if self.filler.is_none() {
            self.at = behind;
        }
    }

    /// What is in force where the gap begins is said first, unless the stream says it here.
    fn enter(&mut self, change_at: Option<&Position>) {
        if mem::replace(&mut self.state, State::InRows) != State::AtHead {
            return;
        }
        if change_at.is_none_or(|position| self.schema.compare(position, &self.at).is_ne()) {
            self.items.push_back(Fragment::change(self.at.clone(), DeletionTime::LIVE));
        }
    }

    fn end(&mut self) -> Gathered {
        let end = self.request.end().clone();
        self.enter(None);
        self.state = State::Ended;
        self.close(end)
    }

    fn end_step(&mut self) -> Gathered {
        let here = self.filler.as_ref().map_or_else(|| self.at.clone(), Filler::at);
        self.close(here)
    }

    /// The step ends at `edge`. Of a part all that it has is told from there.
    fn close(&mut self, edge: Position) -> Gathered {
        let filler = self.filler.as_mut().filter(|_| !self.is_of_head);
        let part = filler.and_then(|filler| filler.close(edge.clone()));
        self.at = edge;
        if part.is_some() {
            self.items.clear();
            if self.state == State::AtHead {
                self.state = State::InRows;
            }
        }
        Gathered::Step(part)
    }

    /// Whether what was gathered is given out before more is read.
    fn ends_before_waiting(&self) -> bool {
        match &self.filler {
            Some(filler) if self.request.limit.is_none() => filler.has_something(),
            Some(filler) => !filler.is_empty() || !self.items.is_empty(),
            None => !self.items.is_empty(),
        }
    }
}

/// How far it went.
enum Gathered {
    /// As far as a step goes.
    Step(Option<Rc<Part>>),
    /// As far as the bytes at hand go.
    Fill,
}

/// A slice that is not empty and has no rows: what is read for the partition's head alone. Null stands before all values,
/// and no row begins with it where there are static columns.
pub(super) fn nowhere() -> Slice {
    let null = Clustering { values: [None].into_iter().collect() };
    Slice { start: Position::start(), end: Position::before(null) }
}
