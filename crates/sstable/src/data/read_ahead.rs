//! How much is read behind the wanted range, by readers to which the caller gives range after range.
//!
//! ```text
//! wanted   |—————|—————|          |—————|
//! read     |—————|—————|·····|    |—————|       behind it: nothing at first, then as much as went by without a gap
//! ```
//!
//! If ranges follow each other without a gap, everything is read in the end, and few large requests do it. Wanted bytes earn credit,
//! skipped bytes take twice as much away, and no request reads more behind a range than there is credit. So if a third is skipped, each
//! range soon has a request of its own.

use std::ops::Range;

/// A gap up to this size is wanted too: to read over it costs less time than another request. Bytes.
pub const SMALL_GAP: u64 = 16 << 10;

/// Where a request could as well end a little earlier, it ends at a multiple of this, so that no byte is asked for twice,
/// whatever direct I/O is rounded to. Bytes.
pub(crate) const PAGE: u64 = 4096;

/// What went by so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadAhead {
    /// Bytes that were wanted, less twice those that were skipped.
    credit: u64,
    /// Where the last range ended; 0 before the first.
    end: u64,
}

impl ReadAhead {
    /// The place up to which the next request may go, if this range of the data is wanted next and the bytes at hand
    /// end at `at_hand`: at most `most` bytes of it, and not beyond `limit`. Not behind the end of the range if nothing
    /// is to be read there.
    pub(crate) fn next(&mut self, range: &Range<u64>, at_hand: u64, most: u64, limit: u64) -> u64 {
        let gap = range.start.saturating_sub(self.end);
        let credit = match (self.end, gap) {
            (0, _) => 0,
            (_, ..=SMALL_GAP) => (self.credit + gap).min(most),
            _ => self.credit.saturating_sub(gap.saturating_mul(2)),
        };
        self.end = range.end;
        self.credit = (credit + (range.end - range.start)).min(most);
        let from = range.start.max(at_hand);
        match credit {
            0 => from,
            // Small ranges share a page.
            credit if from + credit.max(PAGE) < limit => (from + credit.max(PAGE)) / PAGE * PAGE,
            _ => limit,
        }
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
        // A small gap is none; a large one, and there is nothing left.
        assert_eq!(next(488, 1060), 1060 + 256);
        assert_eq!(next(1065, 1316), 1316);
    }

    #[test]
    fn what_is_skipped_takes_credit_away() {
        let mut ahead = ReadAhead::default();
        let mut next = |start: u64, len: u64| {
            let range = start * KIB..(start + len) * KIB;
            ahead.next(&range, range.start, 256 * KIB, 100_000 * KIB) / KIB - start
        };
        assert_eq!(next(4, 100), 0);
        assert_eq!(next(104, 100), 100);
        // Every second block.
        assert_eq!([next(264, 60), next(384, 60), next(504, 60)], [80, 20, 0]);
        // One of four.
        assert_eq!([next(744, 60), next(984, 60)], [0, 0]);
    }

    #[test]
    fn small_ranges_share_a_page() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.next(&(100..200), 0, 1 << 20, 1 << 30), 100);
        assert_eq!(ahead.next(&(300..400), 200, 1 << 20, 1 << 30), PAGE);
        assert_eq!(ahead.next(&(4400..4500), PAGE, 1 << 20, 1 << 30), 2 * PAGE);
    }

    #[test]
    fn nothing_is_read_behind_the_limit() {
        let mut ahead = ReadAhead::default();
        assert!(ahead.next(&(0..70_000), 0, 1 << 20, 100_001) < 70_000);
        assert_eq!(ahead.next(&(70_000..80_000), 70_000, 1 << 20, 100_001), 100_001);
    }
}
