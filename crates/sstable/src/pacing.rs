//! How much of the data a read asks for at first, and how far it may go: by the number of wanted rows, and the length of rows.
//!
//! ```text
//! data    ···[ partition                                                    end ]···
//!               ├─ wanted rows, estimated ──────┤
//!            [──── at least this much, by its blocks ───────]
//! ```
//!
//! If a slice has more rows than are wanted, the index is not searched for its end, which may take requests. A reader that goes so far sees
//! the end in the data: a byte ends the partition, and a row behind the slice ends the slice.

use std::ops::Range;

use model::Slice;

use crate::Result;
use crate::big::promoted_cursor::{Found, USUAL_BLOCK};
use crate::data::read_ahead::PAGE;
use crate::data::reader::{Guess, Pace};
use crate::index::Place;
use crate::sstable::{ReadOptions, SSTable};

/// How much of a partition to read from its head on where little may be wanted. Bytes.
const FIRST_GUESS: u64 = 16 << 10;

/// The same beside the rows, where these are the first ones: for the head, a static row, and rows that are longer than others. Bytes.
const LEAST_GUESS: u64 = 4 << 10;

/// How many bytes in front of a row may be rows that are given out with it: a block of a database.
const MOST_BEFORE: u64 = 4 << 10;
/// And how many these may be: they are decoded, which is to cost less than a request.
const MOST_ROWS_BEFORE: u64 = 32;

impl SSTable {
    /// Whether a slice of one row is worth to be read from the beginning of its block on.
    pub(crate) fn has_near_neighbours(&self, found: &Found, slice: &Slice) -> bool {
        let row = self.len_of_rows(1).max(1);
        let before = found.entry.row(row).start.saturating_sub(found.bytes.start);
        let is_near = before <= MOST_BEFORE && before / row <= MOST_ROWS_BEFORE;
        is_near && found.open.is_live() && self.schema().row_of(slice).is_some()
    }

    /// From the head on of the partition that has this range. The rows of a slice may begin anywhere.
    pub(crate) fn pace_of_whole(&self, range: &Range<u64>, slice: &Slice, options: ReadOptions) -> Pace {
        let most = self.read_buffer(options);
        let is_small = range.end.saturating_sub(range.start) <= FIRST_GUESS;
        let first = match options.limit.filter(|_| !is_small) {
            None => most,
            // A request ends at the multiple of a page before where it may.
            Some(rows) if slice.is_all() && !options.is_among_others => {
                let len = self.len_of_rows(rows.max(1));
                len.saturating_add(len.clamp(LEAST_GUESS, FIRST_GUESS)).saturating_add(PAGE - 1)
            }
            Some(rows) => {
                FIRST_GUESS.saturating_add(self.len_of_rows(rows.saturating_sub(1))).saturating_add(PAGE - 1)
            }
        };
        let overlaps = options.reads_on && options.limit.is_none();
        Pace { first: first.min(most), overlaps, ..Pace::steady(most, false) }
    }

    /// From `start` on, counted as the blocks that were found are, as far as the wanted rows seem to reach.
    ///
    /// ```text
    /// start        entry            end                        known end
    ///   ├ in front ──┼─ wanted rows ──┼─ slack: a row, or two ──····──┤
    ///   └────────────── first request ────────────────┘
    /// ```
    ///
    /// Where rows begin and end within a block is estimated; how far that is wrong, [`Slack`](crate::data::guess::Slack) has learned from
    /// the reads before.
    pub(crate) fn pace(&self, options: ReadOptions, start: u64, found: &Found) -> Pace {
        let steady = Pace::steady(self.read_buffer(options), false);
        let row = self.len_of_rows(1);
        // Where the first row of the slice seems to begin, the last one to end, and as many as are wanted to end.
        let (entry, exit) = (found.entry.row(row).start, found.exit.row(row).end);
        let enough =
            options.limit.map_or(u64::MAX, |rows| entry.saturating_add(self.len_of_rows(rows.max(1))));
        let end = exit.min(enough);
        let len = end.saturating_sub(start);
        // All blocks that were found, or more than a request: there is nothing to guess.
        if end >= found.bytes.end || len >= steady.most {
            // What is under way is not to be let go at a limit.
            return Pace { overlaps: options.reads_on && enough >= exit && len > steady.most, ..steady };
        }
        let guess = match options.is_among_others {
            false if end.saturating_sub(entry) <= row => Guess::Row,
            true if exit.saturating_sub(entry) <= row => Guess::Row,
            false => Guess::Rows,
            true => Guess::Share,
        };
        // Behind that the partition may end.
        let known = found.known_end().saturating_sub(start);
        let Some(slack) = self.data().slack.of(guess, row) else {
            // Nothing was learned yet: all that is known to be there, or of a slice without a known end what is enough for sure.
            let enough = self.enough(options).filter(|_| found.is_open_ended());
            let first = enough.map_or(known, |enough| entry.saturating_sub(start).saturating_add(enough));
            return Pace { first: first.min(known).clamp(1, steady.most), ..steady };
        };
        let first = len.saturating_add(slack);
        // What was cut is no guess that could be wrong.
        let guess = Some(guess).filter(|_| first <= known);
        Pace { first: first.min(known).clamp(1, steady.most), guess, ..steady }
    }

    /// How many bytes of data so many rows take, going by the mean of all.
    pub(crate) fn len_of_rows(&self, rows: u64) -> u64 {
        let (len, count) = (self.data().file.len(), self.statistics().stats.row_count.max(1));
        rows.checked_mul(len).map_or_else(|| rows.saturating_mul(len / count), |all| all / count)
    }

    /// So many bytes from where a scan begins have that many rows, if these are about as long as others are.
    pub fn len_of_scanned(&self, rows: u64) -> u64 {
        FIRST_GUESS.saturating_add(self.len_of_rows(rows))
    }

    /// So many bytes from where a slice begins have all rows of it that are wanted, if rows are about as long as others are. `None` where
    /// all may be wanted, or rows from the end on.
    pub(crate) fn enough(&self, options: ReadOptions) -> Option<u64> {
        let rows = options.limit.filter(|_| !options.reverse)?;
        Some(self.len_of_scanned(rows))
    }

    /// Whether what is wanted of a partition is its beginning, of which it need not be known where it ends, and is not.
    pub(crate) async fn is_beginning(&self, place: &Place, options: ReadOptions) -> Result<bool> {
        let Some(enough) = self.enough(options).filter(|_| !place.has_end()) else { return Ok(false) };
        let promoted = self.index().promoted(place).await?;
        Ok(promoted.is_some_and(|promoted| enough <= u64::from(promoted.count) * USUAL_BLOCK))
    }

    /// The pace of a partition without blocks, of which little may be wanted.
    pub(crate) fn pace_of_first(&self) -> Pace {
        let most = self.read_buffer(ReadOptions::default());
        Pace { first: FIRST_GUESS.min(most), ..Pace::steady(most, false) }
    }
}
