//! Usual rows, one behind the other, as long as they are usual and before the end of what is read. Those that stand as the ones
//! before them are not taken apart.
//!
//! ```text
//! ··│row│row│row│row│row·row│row│row│···
//!    a   a   a   a   other   a   a        a: alike
//! ```
//!
//! They stand side by side in the bytes at hand, or were noted where they stand, for whoever reads them from the last one on.

use std::rc::Rc;

use model::flat::{FlatRow, RowTaker, Run, UsualValues};

use super::passed::Ascending;
use super::row::{RowCodec, RowHabit, RowOutline, Source, bring_near};

/// The rows that are ahead.
pub(crate) struct UsualRows<'w, A> {
    codec: &'w RowCodec,
    ahead: A,
    run: Run<'w, RowOutline>,
    /// How many were given.
    count: usize,
}

/// Where rows are.
pub(crate) trait Upcoming<'w> {
    /// The bytes that begin with the next row, if there is one.
    fn row_bytes(&self) -> Option<&'w [u8]>;

    /// That row was given; it has so many bytes.
    fn pass(&mut self, len: usize);
}

/// Rows side by side in a buffer.
pub(super) struct AtHand<'w> {
    buffer: &'w Rc<Vec<u8>>,
    /// Those of the buffer up to where rows may stand.
    bytes: &'w [u8],
    /// Where the next one begins.
    at: usize,
    /// A row that does not stand in this order is none.
    order: Option<Ascending<'w>>,
}

/// Those that stand in one way.
struct Alike<'r, 'w, A> {
    rows: &'r mut UsualRows<'w, A>,
    outline: &'r RowOutline,
}

impl<'w, A: Upcoming<'w>> UsualRows<'w, A> {
    /// Those of a file with this habit.
    #[inline]
    pub(crate) fn new(codec: &'w RowCodec, ahead: A, habit: &'w RowHabit) -> UsualRows<'w, A> {
        UsualRows { codec, ahead, run: habit.begin(), count: 0 }
    }

    /// Gives them as long as more are wanted. What is ahead then.
    #[inline]
    pub(crate) fn give(mut self, take: &mut impl RowTaker) -> A {
        let mut values = UsualValues::default();
        loop {
            if let Some(outline) = self.run.outline().cloned()
                && !take.rows(&mut Alike { rows: &mut self, outline: &outline })
            {
                break;
            }
            if !self.other(&mut values) || !take.row(FlatRow::usual(&values.row())) {
                break;
            }
        }
        self.end()
    }

    /// Takes one apart, however it stands; whether there is one. One that ends where its buffer does may be known by its outline alone: then
    /// there is none.
    #[inline]
    fn other(&mut self, values: &mut UsualValues<'w>) -> bool {
        let Some(bytes) = self.ahead.row_bytes() else { return false };
        let end = self.codec.usual_row(bytes, 0..bytes.len(), values);
        let Some(end) = end else { return false };
        self.ahead.pass(end);
        self.run.other(self.count, end, || RowOutline::of(&bytes[..end], values));
        self.count += 1;
        true
    }

    #[inline]
    fn end(self) -> A {
        self.run.finish(self.count);
        self.ahead
    }
}

impl<'w> UsualRows<'w, AtHand<'w>> {
    /// Passes by all of them, and tells in which buffer they stand, and where they begin there. What is ahead then.
    #[inline]
    pub(super) fn pass_all(mut self, mut tell: impl FnMut(&'w Rc<Vec<u8>>, usize)) -> AtHand<'w> {
        let mut values = UsualValues::default();
        loop {
            let AtHand { buffer, mut at, .. } = self.ahead;
            if let Some(outline) = self.run.outline().cloned() {
                let mut alike = Alike { rows: &mut self, outline: &outline };
                while alike.next().is_some() {
                    tell(buffer, at);
                    at = alike.rows.ahead.at;
                }
            }
            if !self.other(&mut values) {
                return self.end();
            }
            tell(buffer, at);
        }
    }
}

impl<'w> AtHand<'w> {
    /// From a place on.
    #[inline]
    pub(super) fn new((source, at): (Source<'w>, usize), order: Option<Ascending<'w>>) -> AtHand<'w> {
        let Source { owner: buffer, end } = source;
        AtHand { buffer, bytes: &buffer[..end], at, order }
    }

    /// Where in the buffer the row begins that was passed last, if any was and it matters, and where the next one does.
    #[inline]
    pub(super) fn place(&self) -> (Option<usize>, usize) {
        (self.order.as_ref().and_then(Ascending::last), self.at)
    }
}

impl<'w> Upcoming<'w> for AtHand<'w> {
    #[inline(always)]
    fn row_bytes(&self) -> Option<&'w [u8]> {
        let bytes = self.bytes.get(self.at..)?;
        self.order.as_ref().is_none_or(|order| order.admits(self.bytes, self.at)).then_some(bytes)
    }

    #[inline(always)]
    fn pass(&mut self, len: usize) {
        bring_near(self.bytes, &(self.at..self.at + len));
        if let Some(order) = &mut self.order {
            order.pass(self.at);
        }
        self.at += len;
    }
}

impl<'r, 'w: 'r, A: Upcoming<'w>> Iterator for Alike<'r, 'w, A> {
    type Item = FlatRow<'r>;

    #[inline(always)]
    fn next(&mut self) -> Option<FlatRow<'r>> {
        let UsualRows { codec, ahead, .. } = &*self.rows;
        let (row, len) = self.outline.row(codec, ahead.row_bytes()?)?;
        self.rows.ahead.pass(len);
        self.rows.count += 1;
        Some(row)
    }
}
