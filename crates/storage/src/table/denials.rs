//! Whether it pays to ask the filters of SSTables for a row before it is read.
//!
//! If most recent rows were absent by the filters, they are asked each time: an absent row then needs no read and no wait. Otherwise they
//! are asked for one row in sixteen, since the read asks them again.

use std::cell::Cell;

use sstable::parts::row_filter::Absences;

/// While it does not pay, one row of so many is asked for.
const PROBE_EVERY: u8 = 16;

/// How often the filters knew.
#[derive(Debug, Default)]
pub(super) struct Denials {
    known: Absences,
    /// Rows that memory did not know.
    rows: Cell<u8>,
}

impl Denials {
    /// Asks, if it pays to: what is answered if the row is denied.
    #[inline]
    pub(super) fn ask<T>(&self, ask: impl FnOnce() -> Option<T>) -> Option<T> {
        let rows = self.rows.get();
        self.rows.set(rows.wrapping_add(1));
        if !rows.is_multiple_of(PROBE_EVERY) && !self.known.prevail() {
            return None;
        }
        let denied = ask();
        self.known.note(denied.is_some());
        denied
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of so many rows were asked for.
    fn asked(denials: &Denials, rows: usize, is_denied: bool) -> usize {
        let asked = Cell::new(0);
        for _ in 0..rows {
            let answer = denials.ask(|| {
                asked.set(asked.get() + 1);
                is_denied.then_some(())
            });
            assert!(is_denied || answer.is_none());
        }
        asked.get()
    }

    #[test]
    fn they_are_asked_where_it_pays() {
        let denials = Denials::default();
        assert_eq!(asked(&denials, 160, false), 10, "one in sixteen");
        asked(&denials, 16 * 6, true);
        assert_eq!(asked(&denials, 160, true), 160, "six answers are enough");
        asked(&denials, 160, false);
        assert_eq!(asked(&denials, 160, false), 10);
    }
}
