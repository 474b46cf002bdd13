//! Where a part is in memory, and its bytes: noted beside what tells that there is one, so that all of it can be brought near the CPU at once.
//! From the part on there are three waits one after the other: for it, for the owner of its bytes, and for these.

use std::rc::{Rc, Weak};

use model::Direction;
use runtime::{LINE, Whereabouts};

use super::part::Part;

/// So many lines of its rows are brought: the rest is on its way by the time that somebody comes there.
const ROWS: usize = 4;

/// The lines of a part.
const PART: usize = size_of::<Part>().div_ceil(LINE);

/// Where the bytes of a part are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Near {
    owner: Whereabouts,
    bytes: Whereabouts,
    numbers_at: u32,
    len: u32,
}

impl Near {
    pub(super) fn of(part: &Part) -> Near {
        let (owner, range) = part.stretch.bytes.parts();
        let bytes = Whereabouts::of(owner.as_ptr()).behind(range.start);
        let (numbers_at, len) = (part.stretch.numbers_at, range.len() as u32);
        Near { owner: Whereabouts::of(Rc::as_ptr(owner)), bytes, numbers_at, len }
    }

    /// Begins to bring the part, if it is there yet, and what a stream that enters it looks at: its ends, which its bytes begin with, and the rows
    /// and the number at the end at which it enters.
    #[inline]
    pub(super) fn bring(&self, part: &Weak<Part>, direction: Direction) {
        Whereabouts::of(part.as_ptr()).bring::<PART>();
        self.owner.bring::<1>();
        let (rows, number) = match direction {
            Direction::Forward => (0, self.numbers_at),
            Direction::Reverse => {
                self.bytes.bring::<1>();
                (self.numbers_at.saturating_sub((ROWS * LINE) as u32), self.len.saturating_sub(1))
            }
        };
        self.bytes.behind(rows as usize).bring::<ROWS>();
        self.bytes.behind(number as usize).bring::<1>();
    }

    /// The same of what a search for a row looks at first, behind the part itself, which is looked at next.
    #[inline]
    pub(super) fn bring_for_search(&self) {
        self.owner.bring::<1>();
        self.bytes.behind(self.numbers_at.midpoint(self.len) as usize).bring::<1>();
    }
}
