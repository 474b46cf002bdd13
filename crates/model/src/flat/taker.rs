//! Who takes rows as they stand.

use super::FlatRow;

/// Takes rows as they stand, one by one or side by side: any function of a row is one.
///
/// Who does the same before each row does it once for all that come together.
pub trait RowTaker {
    /// Takes a row; whether more are wanted.
    fn row(&mut self, row: FlatRow<'_>) -> bool;

    /// Takes rows until no more are wanted, and none behind that one; whether more are.
    #[inline]
    fn rows<'a>(&mut self, rows: &mut impl Iterator<Item = FlatRow<'a>>) -> bool {
        rows.all(|row| self.row(row))
    }
}

impl<F: FnMut(FlatRow<'_>) -> bool> RowTaker for F {
    #[inline(always)]
    fn row(&mut self, row: FlatRow<'_>) -> bool {
        self(row)
    }
}
