//! A slice that has a limit, in two parts: SSTables that begin behind the first one are not asked unless that has too little.
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

use std::collections::VecDeque;
use std::rc::Rc;

use model::merge::{Direction, Merge};
use model::{PartitionKey, Position, Schema, Slice};

use super::{LaneSlice, lanes_of, open_as_lanes, rows_of};
use crate::Result;
use crate::chain::Links;
use crate::sstable_set::{Candidates, Member, SoughtSlice};
use crate::table::ReadRequest;

/// The first part has so many times the rows that are wanted, as far as can be told, as some may be elsewhere.
const SURE: f64 = 2.0;

/// So many places to part a slice are looked at.
const TRIED: usize = 4;

/// The parts of a slice that were not opened yet.
#[derive(Debug)]
pub(super) struct Parts {
    parts: VecDeque<(ReadRequest, Candidates)>,
    schema: Rc<Schema>,
    direction: Direction,
}

impl Parts {
    /// A slice in two parts, if that is worth while.
    pub(super) fn of(request: &ReadRequest, candidates: &Candidates, schema: &Rc<Schema>) -> Option<Parts> {
        request.sought(schema)?;
        let at = place_to_part(request, candidates, schema)?;
        let Slice { start, end } = request.slice.clone();
        let pieces = match request.direction {
            Direction::Forward => [Slice { start, end: at.clone() }, Slice { start: at, end }],
            Direction::Reverse => [Slice { start: at.clone(), end }, Slice { start, end: at }],
        };
        let parts = pieces.map(|slice| {
            let sought = SoughtSlice::new(&slice, schema).undeleted_since(candidates.undeleted());
            let candidates = candidates.clone().within(&sought);
            (ReadRequest { slice, ..request.clone() }, candidates)
        });
        Some(Parts { parts: parts.into(), schema: schema.clone(), direction: request.direction })
    }
}

/// Where an SSTable begins, as the stream runs, if those that begin before it have enough up to there.
fn place_to_part(request: &ReadRequest, candidates: &Candidates, schema: &Schema) -> Option<Position> {
    let (wanted, slice, is_forward) =
        (request.limit? as f64 * SURE, &request.slice, request.direction == Direction::Forward);
    // What may delete the partition is asked first in any case, and may have rows anywhere.
    let is_settled = |member: &&Rc<Member>| !member.may_delete_partitions(candidates.undeleted());
    let spans = candidates.members().iter().filter(is_settled);
    let spans: Vec<(&Slice, f64)> =
        spans.filter_map(|member| Some((member.rows()?, rows_of(member)))).collect();
    let is_inside =
        |at: &&Position| schema.compare(&slice.start, at).is_lt() && schema.compare(at, &slice.end).is_lt();
    let begins = spans.iter().map(|(rows, _)| if is_forward { &rows.start } else { &rows.end });
    let mut places: Vec<&Position> = begins.filter(is_inside).collect();
    places.sort_by(|a, b| schema.compare(a, b));
    if !is_forward {
        places.reverse();
    }
    let has_enough = |at: &&Position| {
        let [first, last] = if is_forward { [&slice.start, *at] } else { [*at, &slice.end] };
        let piece = [schema.rank(first), schema.rank(last)];
        let rows = spans.iter().map(|(rows, count)| count * share(rows, piece, schema));
        rows.sum::<f64>() >= wanted
    };
    places.into_iter().take(TRIED).find(has_enough).cloned()
}

/// Which share of an SSTable's rows is between two ranks, if they are spread evenly.
fn share(rows: &Slice, [first, last]: [u64; 2], schema: &Schema) -> f64 {
    let (start, end) = (schema.rank(&rows.start), schema.rank(&rows.end));
    match end.checked_sub(start) {
        // Ranks are of the beginnings of values, and tell nothing where these are the same.
        Some(0) if first <= start && end <= last => 0.5,
        None | Some(0) => 0.0,
        Some(all) => end.min(last).saturating_sub(start.max(first)) as f64 / all as f64,
    }
}

impl Links for Parts {
    type Reader = Merge<LaneSlice>;

    async fn open_next(&mut self, _: u32) -> Result<Option<Merge<LaneSlice>>> {
        while let Some((request, candidates)) = self.parts.front() {
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
        !self.parts.is_empty()
    }

    fn shared(&self) -> Option<&PartitionKey> {
        self.parts.front().map(|(request, _)| &request.key)
    }

    /// They are not wanted, or there are none.
    fn has_statics(&self) -> bool {
        false
    }
}
