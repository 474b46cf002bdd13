//! Usual rows at hand, one behind the other, as long as they are usual and before the end of what is read. Those that stand as the ones
//! before them are not taken apart.
//!
//! ```text
//! ··│row│row│row│row│row·row│row│row│···
//!    a   a   a   a   other   a   a        a: alike
//! ```

use std::rc::Rc;

use model::flat::{FlatRow, RowTaker, Run};

use super::row::{RowCodec, RowHabit, RowOutline, Sought, Source, UsualValues, bring_near};

/// The rows from a place on.
pub(super) struct UsualRows<'w> {
    codec: &'w RowCodec,
    buffer: &'w Rc<Vec<u8>>,
    /// Those of the buffer up to where rows may stand.
    bytes: &'w [u8],
    at: usize,
    before: Option<Sought<'w>>,
    run: Run<'w, RowOutline>,
    /// How many were given.
    count: usize,
}

/// Those that stand in one way.
struct RowsAlike<'r, 'w> {
    rows: &'r mut UsualRows<'w>,
    outline: &'r RowOutline,
}

impl<'w> UsualRows<'w> {
    /// Those that stand there, before a position, of a file with this habit.
    #[inline]
    pub(super) fn new(
        codec: &'w RowCodec,
        (source, at): (Source<'w>, usize),
        before: Option<Sought<'w>>,
        habit: &'w RowHabit,
    ) -> UsualRows<'w> {
        let Source { owner: buffer, end } = source;
        let bytes = &buffer[..end];
        UsualRows { codec, buffer, bytes, at, before, run: habit.begin(), count: 0 }
    }

    /// Gives them as long as more are wanted. Behind which place of the buffer they end.
    #[inline]
    pub(super) fn give(mut self, take: &mut impl RowTaker) -> usize {
        let mut values = UsualValues::default();
        loop {
            if let Some(outline) = self.run.outline().cloned()
                && !take.rows(&mut self.alike(&outline))
            {
                break;
            }
            if !self.other(&mut values) || !take.row(FlatRow::usual(&values.row())) {
                break;
            }
        }
        self.end()
    }

    /// Passes by all of them, and tells where they begin. Behind which place of the buffer they end.
    #[inline]
    pub(super) fn pass(mut self, mut tell: impl FnMut(&'w Rc<Vec<u8>>, usize)) -> usize {
        let (buffer, mut values) = (self.buffer, UsualValues::default());
        loop {
            let mut at = self.at;
            if let Some(outline) = self.run.outline().cloned() {
                let mut alike = self.alike(&outline);
                while alike.next().is_some() {
                    tell(buffer, at);
                    at = alike.rows.at;
                }
            }
            if !self.other(&mut values) {
                return self.end();
            }
            tell(buffer, at);
        }
    }

    #[inline(always)]
    fn alike<'r>(&'r mut self, outline: &'r RowOutline) -> RowsAlike<'r, 'w> {
        RowsAlike { rows: self, outline }
    }

    /// Takes one apart, however it stands; whether there is one.
    #[inline]
    fn other(&mut self, values: &mut UsualValues<'w>) -> bool {
        let ahead = self.at..self.bytes.len();
        let row = self.codec.usual_row(self.bytes, ahead, self.before.as_ref(), values);
        let Some(behind) = row else { return false };
        let row = self.at..behind;
        bring_near(self.bytes, &row);
        self.at = behind;
        self.count += 1;
        self.run.other(|| RowOutline::of(&self.bytes[row], values));
        true
    }

    #[inline]
    fn end(self) -> usize {
        self.run.finish(self.count);
        self.at
    }
}

impl<'r> Iterator for RowsAlike<'r, '_> {
    type Item = FlatRow<'r>;

    #[inline(always)]
    fn next(&mut self) -> Option<FlatRow<'r>> {
        let UsualRows { codec, bytes, at, before, .. } = &*self.rows;
        let (row, len) = self.outline.row(codec, bytes.get(*at..)?, before.as_ref())?;
        bring_near(bytes, &(*at..*at + len));
        self.rows.at += len;
        self.rows.count += 1;
        Some(row)
    }
}
