//! A slice that has a limit, in parts: SSTables that begin behind the first one are not asked unless that has too little.
//!
//! ```text
//! rows ────────────────────────────────────────────►
//!         ├── slice, LIMIT 100 ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ►
//! [────────── a ──────────)
//!                     [───────── b ─────────)
//!         |   first   |            rest
//! ```
//!
//! So windows of time that overlap by a little, as they do where some rows come late, cost no more than those that do not. Where the
//! first part probably has less than is wanted, there are none: an SSTable that is in both is opened twice.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::rc::Rc;

use model::merge::{Direction, Merge};
use model::{PartitionKey, Position, Schema, Slice};

use super::{LaneSlice, lanes_of, open_as_lanes};
use crate::Result;
use crate::chain::Links;
use crate::sstable_set::{Candidates, Member, SSTableSet, SURE, SoughtSlice};
use crate::table::ReadRequest;

/// So many places to part a slice are looked at.
const TRIED: usize = 4;

/// The parts of a slice that were not opened yet.
#[derive(Debug)]
pub(super) struct Parts {
    parts: VecDeque<(ReadRequest, Candidates)>,
    /// What is behind them, and who has it, which is not gathered yet.
    rest: Option<Rest>,
    schema: Rc<Schema>,
    direction: Direction,
}

/// What is left of a slice, of which nobody was gathered yet.
#[derive(Debug)]
struct Rest {
    request: ReadRequest,
    set: Rc<SSTableSet>,
    /// What was known of the partition's deletion: [`Candidates::undeleted`].
    undeleted: u64,
}

impl Parts {
    /// A slice in two parts, if the first one is in fewer lanes than all of it, which is in so many.
    pub(super) fn of(
        request: &ReadRequest,
        candidates: &Candidates,
        lanes: usize,
        schema: &Rc<Schema>,
    ) -> Option<Parts> {
        request.sought(schema)?;
        let at = place_to_part(request, candidates, schema)?;
        // What may delete the partition is asked for the first one, and then has told it.
        let [first, second] = request.parted(&at);
        let parts = [(first, candidates.undeleted()), (second, u64::MAX)].map(|(request, undeleted)| {
            let sought = SoughtSlice::new(&request.slice, schema).undeleted_since(undeleted);
            let candidates = candidates.clone().within(&sought);
            (request, candidates)
        });
        let [(first, of_first), _] = &parts;
        let pays = lanes_of(first, of_first, schema).len() < lanes;
        pays.then(|| Parts::new(parts.into(), schema, request.direction))
    }

    /// A slice as it is.
    pub(super) fn of_one(request: ReadRequest, candidates: Candidates, schema: &Rc<Schema>) -> Parts {
        let direction = request.direction;
        Parts::new(VecDeque::from([(request, candidates)]), schema, direction)
    }

    /// The same, and behind it another one, of which these have something.
    pub(super) fn and(self, request: ReadRequest, set: Rc<SSTableSet>, undeleted: u64) -> Parts {
        Parts { rest: Some(Rest { request, set, undeleted }), ..self }
    }

    fn new(parts: VecDeque<(ReadRequest, Candidates)>, schema: &Rc<Schema>, direction: Direction) -> Parts {
        Parts { parts, rest: None, schema: schema.clone(), direction }
    }

    /// Gathers who has something of what is left.
    async fn gather_rest(&mut self) -> Result<()> {
        let Some(Rest { request, set, undeleted }) = &self.rest else { return Ok(()) };
        let mut candidates = set.of_rest(request, *undeleted, &self.schema);
        candidates.settle(&request.key).await?;
        self.parts.extend(self.rest.take().map(|rest| (rest.request, candidates)));
        Ok(())
    }
}

/// Where an SSTable begins, as the stream runs, if those that begin before it have enough up to there.
fn place_to_part(request: &ReadRequest, candidates: &Candidates, schema: &Schema) -> Option<Position> {
    // What may delete the partition is asked first in any case, and may have rows anywhere.
    let is_settled = |member: &&Rc<Member>| !member.may_delete_partitions(candidates.undeleted());
    let spans = candidates.members().iter().filter(is_settled);
    let spans = spans.filter_map(|member| Some((member.rows()?, member.rows_of_partition())));
    let run = Run { slice: &request.slice, direction: request.direction, schema };
    run.place_to_part(&spans.collect::<Vec<_>>(), request.limit? as f64 * SURE)
}

/// A slice, and how the stream runs.
struct Run<'a> {
    slice: &'a Slice,
    direction: Direction,
    schema: &'a Schema,
}

impl Run<'_> {
    /// Where one of these begins before which the others have so many rows, by where each has how many.
    fn place_to_part(&self, spans: &[(&Slice, f64)], wanted: f64) -> Option<Position> {
        let is_inside = |at: &&Position| {
            self.schema.compare(&self.slice.start, at).is_lt()
                && self.schema.compare(at, &self.slice.end).is_lt()
        };
        let mut places: Vec<&Position> =
            spans.iter().map(|(rows, _)| self.beginning(rows)).filter(is_inside).collect();
        places.sort_by(|a, b| self.compare(a, b));
        places.dedup();
        let has_enough = |at: &&Position| {
            let in_front = spans.iter().filter(|(rows, _)| self.compare(self.beginning(rows), at).is_lt());
            in_front.map(|(rows, count)| count * self.share(rows, at)).sum::<f64>() >= wanted
        };
        places.into_iter().take(TRIED).find(has_enough).cloned()
    }

    /// Which share of an SSTable's rows the slice has up to a place, if they are spread evenly. Ranks are of the beginnings of values, and
    /// where these are the same nothing is told.
    fn share(&self, rows: &Slice, at: &Position) -> f64 {
        let rank = |position: &Position| self.schema.rank(position);
        let [first, last] = match self.direction {
            Direction::Forward => [rank(&self.slice.start), rank(at)],
            Direction::Reverse => [rank(at), rank(&self.slice.end)],
        };
        let (start, end) = (rank(&rows.start), rank(&rows.end));
        if first == last || end <= start {
            return 0.0;
        }
        end.min(last).saturating_sub(start.max(first)) as f64 / (end - start) as f64
    }

    /// Where rows begin, as the stream runs.
    fn beginning<'b>(&self, rows: &'b Slice) -> &'b Position {
        if self.direction == Direction::Forward { &rows.start } else { &rows.end }
    }

    fn compare(&self, a: &Position, b: &Position) -> Ordering {
        match self.direction {
            Direction::Forward => self.schema.compare(a, b),
            Direction::Reverse => self.schema.compare(b, a),
        }
    }
}

impl Links for Parts {
    type Reader = Merge<LaneSlice>;

    async fn open_next(&mut self, _: u32) -> Result<Option<Merge<LaneSlice>>> {
        while self.has_more() {
            if self.parts.is_empty() {
                self.gather_rest().await?;
            }
            let Some((request, candidates)) = self.parts.front() else { break };
            let lanes = lanes_of(request, candidates, &self.schema);
            let opened = open_as_lanes(request, lanes, &self.schema).await?;
            self.parts.pop_front();
            if !opened.is_empty() {
                return Ok(Some(Merge::new(&self.schema, self.direction, opened)));
            }
        }
        Ok(None)
    }

    fn nothing(&self) -> Merge<LaneSlice> {
        Merge::new(&self.schema, self.direction, Vec::new())
    }

    fn has_more(&self) -> bool {
        !self.parts.is_empty() || self.rest.is_some()
    }

    fn shared(&self) -> Option<&PartitionKey> {
        let rest = self.rest.as_ref().map(|rest| &rest.request.key);
        self.parts.front().map(|(request, _)| &request.key).or(rest)
    }

    /// They are not wanted, or there are none.
    fn has_statics(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use model::{Clustering, CqlType};

    use super::*;

    fn between(start: i32, end: i32) -> Slice {
        let at = |number: i32| std::iter::once(&number.to_be_bytes()[..]).collect::<Clustering>();
        Slice { start: Position::before(at(start)), end: Position::after(at(end)) }
    }

    /// Where a slice is parted of which so many rows are wanted, of SSTables with these rows, of which each has as many as there are numbers.
    fn parted(slice: Slice, direction: Direction, spans: &[(i32, i32)], wanted: f64) -> Option<Position> {
        let schema = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), Vec::new());
        let slices: Vec<Slice> = spans.iter().map(|(start, end)| between(*start, *end)).collect();
        let counts = spans.iter().map(|(start, end)| f64::from(end - start + 1));
        let spans: Vec<(&Slice, f64)> = slices.iter().zip(counts).collect();
        Run { slice: &slice, direction, schema: &schema }.place_to_part(&spans, wanted)
    }

    #[test]
    fn a_slice_is_parted_where_there_is_enough_in_front() {
        let windows = [(0, 104), (100, 204), (200, 304)];
        let from = |number| Slice { start: between(number, 0).start, ..Slice::all() };
        let up_to = |number| Slice { end: between(0, number).end, ..Slice::all() };
        let forward = |number, wanted| parted(from(number), Direction::Forward, &windows, wanted);
        let reverse = |number, wanted| parted(up_to(number), Direction::Reverse, &windows, wanted);
        assert_eq!(forward(20, 70.0), Some(between(100, 0).start));
        assert_eq!(forward(20, 120.0), Some(between(200, 0).start), "with what the second one has");
        assert_eq!(forward(20, 1000.0), None);
        assert_eq!(forward(102, 90.0), Some(between(200, 0).start));
        assert_eq!(forward(205, 10.0), None, "there is but one");
        assert_eq!(reverse(280, 70.0), Some(between(0, 204).end));
        assert_eq!(reverse(280, 120.0), Some(between(0, 104).end));
        assert_eq!(reverse(90, 10.0), None);
        assert_eq!(parted(between(20, 90), Direction::Forward, &windows, 10.0), None, "none begins in it");
    }

    #[test]
    fn where_ranks_tell_nothing_it_is_not_parted() {
        let schema = Schema::new(CqlType::Int, vec![CqlType::Int; 2], Vec::new(), Vec::new());
        let at = |number: i32| {
            [&7_i32.to_be_bytes()[..], &number.to_be_bytes()].into_iter().collect::<Clustering>()
        };
        let between =
            |start, end| Slice { start: Position::before(at(start)), end: Position::after(at(end)) };
        let (a, b) = (between(0, 1000), between(900, 2000));
        let run = Run { slice: &between(10, 5000), direction: Direction::Forward, schema: &schema };
        assert_eq!(run.place_to_part(&[(&a, 1000.0), (&b, 1000.0)], 1.0), None);
    }
}
