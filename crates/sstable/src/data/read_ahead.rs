//! How much is read behind what is wanted, by readers that are told where to go on.
//!
//! ```text
//! wanted   |—————|—————|          |—————|
//! read     |—————|—————|·····|    |—————|       behind it: nothing at first, then as much as went by without a gap
//! ```
//!
//! Where range after range follows without a gap, all is read in the end, and few large requests do it. Where something
//! is skipped that is not at hand, the next range is read by itself. So no request brings in more in vain than went by
//! before it, or a page.

use std::ops::Range;

/// A gap up to this size is none: to read over it costs less than another request. Read-ahead ends at a multiple of it,
/// so that no byte is asked for twice, whatever direct I/O is rounded to. Bytes.
const PAGE: u64 = 4096;

/// What went by so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadAhead {
    /// Where in the data what went by without a gap begins; `None` at first.
    start: Option<u64>,
}

impl ReadAhead {
    /// The place up to which the next request may go, if this range of the data is wanted next and the bytes at hand
    /// end at `at_hand`: at most `most` bytes of it, and not beyond `limit`. Less than the end of the range if nothing
    /// is to be read behind it.
    pub(crate) fn next(&mut self, range: &Range<u64>, at_hand: u64, most: u64, limit: u64) -> u64 {
        let from = range.start.max(at_hand);
        let start = match self.start {
            Some(start) if range.start <= at_hand.saturating_add(PAGE) => start,
            _ => *self.start.insert(range.start),
        };
        let run = match range.start.saturating_sub(start) {
            0 => return from,
            run => run.max(PAGE).min(most),
        };
        let ahead = from.saturating_add(run);
        if ahead >= limit { limit } else { ahead / PAGE * PAGE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    #[test]
    fn what_follows_without_a_gap_is_read_ahead() {
        let mut ahead = ReadAhead::default();
        let mut next = |start: u64, at_hand: u64| {
            ahead.next(&(start * KIB..(start + 64) * KIB), at_hand * KIB, 256 * KIB, 100_000 * KIB) / KIB
        };
        // The first range by itself; then as much as went by.
        assert_eq!(next(100, 0), 100);
        assert_eq!(next(164, 164), 228);
        assert_eq!(next(228, 228), 356);
        assert_eq!(next(292, 356), 356 + 192);
        assert_eq!(next(356, 548), 548 + 256);
        assert_eq!(next(420, 804), 804 + 256);
        // A gap, and a small one that is none.
        assert_eq!(next(1065, 1060), 1065);
        assert_eq!(next(1132, 1129), 1196);
    }

    #[test]
    fn small_ranges_share_a_page() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.next(&(100..200), 0, 1 << 20, 1 << 30), 100);
        assert_eq!(ahead.next(&(300..400), 200, 1 << 20, 1 << 30), PAGE);
        assert_eq!(ahead.next(&(5000..5100), PAGE, 1 << 20, 1 << 30), 2 * PAGE);
    }

    #[test]
    fn nothing_is_read_behind_the_limit() {
        let mut ahead = ReadAhead::default();
        assert!(ahead.next(&(0..70_000), 0, 1 << 20, 100_001) < 70_000);
        assert_eq!(ahead.next(&(70_000..80_000), 70_000, 1 << 20, 100_001), 100_001);
    }
}
