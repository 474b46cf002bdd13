//! Where a slice that has a limit is cut before any SSTable is asked for it, be it of its filter: what begins behind that is left for later.
//!
//! ```text
//! rows ──────────────────────────────────────────────────────────────►
//! [──── a ────)[──── b ────)[──── c ────)[──── d ────)[──── e ────) …
//!       ├── slice, LIMIT 100 ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ─ ►
//!       |                   ^ b has enough: c, d, e … are gathered if rows are missing there
//! ```
//!
//! So a page of a partition in a thousand SSTables looks at as many of them as may have its rows.

use model::merge::Direction;
use model::{Position, Schema, Slice};

use super::SSTableSet;
use crate::ends;
use crate::table::ReadRequest;

/// So many SSTables of each run are looked at first. Slices of fewer are not cut: to ask them all costs less than to be wrong.
const NEAR: usize = 4;

/// There are so many times the rows that are wanted in front of the cut, as far as can be told, as some may be elsewhere.
pub(crate) const SURE: f64 = 2.0;

/// Where an SSTable begins and ends, as the stream runs, and how many rows it has.
#[derive(Clone, Copy, Debug)]
struct Piece<'a> {
    start: ends::Ranked<'a>,
    end: ends::Ranked<'a>,
    rows: f64,
}

impl SSTableSet {
    /// Where the slice of a request is cut; `None` where all that may have something of it is gathered at once.
    pub(super) fn cut(&self, request: &ReadRequest, schema: &Schema) -> Option<Position> {
        let wanted = request.limit? as f64 * SURE;
        let by_rows = self.by_rows.as_ref()?;
        let sought = self.knowing(request.sought(schema)?, &request.key);
        let [first, last] = sought.ranks();
        if first == last || !self.finds_by_rows(&sought) {
            return None;
        }
        let (is_forward, token) = (request.direction == Direction::Forward, request.key.token);
        let mut most = NEAR;
        loop {
            let (near, has_more) = by_rows.nearest(sought.ranks(), is_forward, most);
            if !has_more && most == NEAR {
                return None;
            }
            let members = near.iter().map(|place| &*self.members[*place as usize]);
            let pieces = members.filter(|member| member.has_token(token)).filter_map(|member| {
                let (Slice { start, end }, [first, last]) = member.ranked_rows()?;
                let (start, end) = ((first, start), (last, end));
                let (start, end) = if is_forward { (start, end) } else { (end, start) };
                Some(Piece { start, end, rows: member.rows_of_partition() })
            });
            let run = Run { schema, is_forward };
            let cut = run.cut(pieces.collect(), [request.beginning(), request.end()], wanted);
            if cut.is_some() || !has_more {
                return cut;
            }
            most *= 4;
        }
    }
}

/// How the stream runs.
#[derive(Clone, Copy)]
struct Run<'a> {
    schema: &'a Schema,
    is_forward: bool,
}

impl Run<'_> {
    /// Where one of these begins, between the ends of the slice, in front of which there are so many rows, of those that begin behind the
    /// slice's beginning and have ended. What is near by its rank may be behind the slice.
    fn cut(self, mut pieces: Vec<Piece<'_>>, ends: [&Position; 2], wanted: f64) -> Option<Position> {
        let [beginning, end] = ends.map(|position| (self.schema.rank(position), position));
        let is_inside = |at: ends::Ranked<'_>| self.is_before(beginning, at) && self.is_before(at, end);
        pieces.retain(|piece| is_inside(piece.start));
        if pieces.iter().map(|piece| piece.rows).sum::<f64>() < wanted {
            return None;
        }
        let mut by_end = pieces.clone();
        pieces.sort_by(|a, b| self.compare(a.start, b.start));
        by_end.sort_by(|a, b| self.compare(a.end, b.end));
        let (mut ended, mut rows) = (by_end.iter().peekable(), 0.0);
        let has_enough = |next: &&Piece<'_>| {
            while let Some(piece) = ended.next_if(|piece| self.is_before(piece.end, next.start)) {
                rows += piece.rows;
            }
            rows >= wanted
        };
        let next = pieces.iter().find(has_enough)?;
        Some(next.start.1.clone())
    }

    fn is_before(self, a: ends::Ranked<'_>, b: ends::Ranked<'_>) -> bool {
        self.compare(a, b).is_lt()
    }

    fn compare(self, a: ends::Ranked<'_>, b: ends::Ranked<'_>) -> std::cmp::Ordering {
        let order = ends::compare(self.schema, a, b);
        if self.is_forward { order } else { order.reverse() }
    }
}

#[cfg(test)]
mod tests {
    use model::{Clustering, CqlType};

    use super::*;

    fn at(number: i32) -> Clustering {
        std::iter::once(&number.to_be_bytes()[..]).collect()
    }

    /// Slices end here, or at the same below zero.
    const LAST: i32 = 950;

    /// Where a slice from this number on is cut of which so many rows are wanted, of SSTables with these rows.
    fn cut(from: i32, is_forward: bool, spans: &[(i32, i32)], wanted: f64) -> Option<Position> {
        let schema = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), Vec::new());
        let ends = |(start, end): (i32, i32)| [Position::before(at(start)), Position::after(at(end))];
        let ends: Vec<_> = spans.iter().copied().map(ends).collect();
        let ranked = |position| (schema.rank(position), position);
        let pieces = ends.iter().zip(spans).map(|([start, end], (first, last))| {
            let (start, end) = if is_forward { (start, end) } else { (end, start) };
            Piece { start: ranked(start), end: ranked(end), rows: f64::from(last - first + 1) }
        });
        let (start, end) = match is_forward {
            true => (Position::before(at(from)), Position::after(at(LAST))),
            false => (Position::after(at(from)), Position::before(at(-LAST))),
        };
        Run { schema: &schema, is_forward }.cut(pieces.collect(), [&start, &end], wanted)
    }

    #[test]
    fn a_slice_is_cut_where_whole_sstables_have_enough() {
        let windows: Vec<_> = (0..10).map(|number| (number * 100, number * 100 + 99)).collect();
        let (start, end) =
            (|number| Some(Position::before(at(number))), |number| Some(Position::after(at(number))));
        assert_eq!(cut(20, true, &windows, 100.0), start(200));
        assert_eq!(cut(20, true, &windows, 101.0), start(300));
        assert_eq!(cut(20, true, &windows, 1000.0), None);
        assert_eq!(cut(-5, true, &windows, 100.0), start(100), "it begins in front of all");
        assert_eq!(cut(-5, true, &windows, 900.0), start(900));
        assert_eq!(cut(-5, true, &[(0, 900), (LAST + 1, 2000)], 10.0), None, "that begins behind the end");
        assert_eq!(cut(-5, true, &[(0, 900), (LAST, 2000)], 10.0), start(LAST));
        assert_eq!(cut(980, false, &windows, 100.0), end(799));
        assert_eq!(cut(980, false, &windows, 101.0), end(699));
    }

    #[test]
    fn what_goes_on_behind_the_cut_does_not_count() {
        let windows: Vec<_> = (0..10).map(|number| (number * 100, number * 100 + 104)).collect();
        assert_eq!(cut(20, true, &windows, 100.0), Some(Position::before(at(300))));
        assert_eq!(cut(20, true, &[(10, 30), (40, 900), (100, 110), (500, 510)], 20.0), None);
    }
}
