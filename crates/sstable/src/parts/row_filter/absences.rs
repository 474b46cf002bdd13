//! Whether rows that were asked for one by one were there.
//!
//! ```text
//! share ← share + ⌈(255 − share) / 8⌉    a row was not there
//! share ← share − ⌈share / 8⌉            it was
//! ```
//!
//! A page that tells of rows costs the request that it spares, and spares it only where the row is not there. So one that is
//! not in memory is read once more than half of the rows were not there of late.

use std::cell::Cell;

/// The share of rows that were not there, in 255ths; that of the last ones counts most.
#[derive(Debug, Default)]
pub struct Absences(Cell<u8>);

impl Absences {
    /// A row was asked for.
    #[inline]
    pub fn note(&self, is_absent: bool) {
        let share = self.0.get();
        self.0.set(if is_absent { share + (u8::MAX - share).div_ceil(8) } else { share - share.div_ceil(8) });
    }

    /// Whether most were not there.
    #[inline]
    pub fn prevail(&self) -> bool {
        self.0.get() > 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lately_counts() {
        let absences = Absences::default();
        let mut noted = 0;
        while !absences.prevail() {
            absences.note(true);
            noted += 1;
        }
        assert_eq!(noted, 6, "a few rows are enough");
        (0..1000).for_each(|_| absences.note(true));
        assert_eq!(absences.0.get(), u8::MAX);
        (0..6).for_each(|_| absences.note(false));
        assert!(!absences.prevail());
        (0..1000).for_each(|_| absences.note(false));
        assert_eq!(absences.0.get(), 0);
        for turn in 0..1000 {
            absences.note(turn % 3 == 0);
        }
        assert!(!absences.prevail(), "one of three is not most");
        for turn in 0..1000 {
            absences.note(turn % 4 != 0);
        }
        assert!(absences.prevail(), "three of four are");
    }
}
