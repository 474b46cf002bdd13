//! Usual rows as the values that they have, shown where these stand: by who has neither a [`Row`](crate::Row) of them nor flat bytes.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::place::{self, Ends};
use super::row;
use super::view::{CellView, RowVisitor, ValueVisitor};
use crate::clustering::{compare_ends, compare_values};
use crate::time::NO_DELETION_TIME;
use crate::{CqlType, DeletionTime, Liveness, Weight};

/// Bytes of a row without its values, and of the length of one with its flags: those of most, and of long ones.
const HEAD: usize = 16;
const LEN: usize = 4;

/// What there is of a [usual](super::is_usual) row.
#[derive(Clone, Copy, Debug)]
pub struct UsualRow<'a> {
    /// The values of its clustering key; `None` is null.
    pub clustering: &'a [Option<&'a [u8]>],
    /// Of its marker and of all of its cells, in microseconds: one that usual rows [can have](UsualRow::can_be_of).
    pub timestamp: i64,
    /// Of the first columns; each has a byte at least.
    pub cells: &'a [&'a [u8]],
}

/// The values of a usual row, taken from where they stand.
#[derive(Debug, Default)]
pub struct UsualValues<'a> {
    /// Of its clustering key; `None` is null.
    pub clustering: SmallVec<[Option<&'a [u8]>; 4]>,
    /// Of its marker and its cells, in microseconds.
    pub timestamp: i64,
    /// Of the first columns.
    pub cells: SmallVec<[&'a [u8]; 8]>,
}

/// A usual row that is shown by its values.
pub(super) trait ByValues<'a>: Copy {
    fn clustering(self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>>;

    /// Microseconds.
    fn timestamp(self) -> i64;

    fn cells(self) -> impl ExactSizeIterator<Item = &'a [u8]>;

    #[inline]
    fn value_bytes(self) -> usize {
        self.clustering().flatten().chain(self.cells()).map(<[u8]>::len).sum()
    }

    /// About so many bytes are put for it, or a few less.
    fn about(self) -> usize {
        let values = self.clustering().len() + self.cells().len();
        self.value_bytes() + values * LEN + HEAD
    }

    /// Appends the row's flat bytes: see [`UsualRow::put`].
    #[inline]
    fn put(self, out: &mut Vec<u8>) {
        debug_assert!(UsualRow::can_be_of(self.timestamp()), "no usual row has this timestamp");
        let (clustering, cells) = (self.clustering(), self.cells());
        row::begin_usual(clustering.len(), out);
        clustering.for_each(|value| place::put_value(value, out));
        row::put_usual_marker(self.timestamp(), cells.len(), out);
        for value in cells {
            assert!(!value.is_empty(), "the cells of a usual row have values");
            row::put_usual_cell(value, out);
        }
    }

    #[inline]
    fn visit(self, visitor: &mut impl RowVisitor<'a>) {
        let (timestamp, cells) = (self.timestamp(), self.cells());
        self.clustering().for_each(|value| visitor.clustering_value(value));
        visitor.marker(Liveness { timestamp, ..Liveness::NONE });
        visitor.cells(cells.len());
        for (column, value) in (0..=u16::MAX).zip(cells) {
            let (ttl, local_deletion_time, path, value) = (0, NO_DELETION_TIME, None, Some(value));
            visitor.cell(CellView { column, ttl, timestamp, local_deletion_time, path, value });
        }
    }

    #[inline(always)]
    fn visit_values(self, visitor: &mut impl ValueVisitor<'a>) {
        self.clustering().for_each(|value| visitor.clustering_value(value));
        (0..=u16::MAX).zip(self.cells()).for_each(|(column, value)| visitor.cell(column, value));
    }

    /// How the row stands to a position, of clustering columns of these types.
    #[inline]
    fn compare<'o>(
        self,
        types: &[CqlType],
        Ends(others, weight): Ends<impl ExactSizeIterator<Item = Option<&'o [u8]>>>,
    ) -> Ordering {
        let values = self.clustering();
        let ends = compare_ends((values.len(), Weight::At), (others.len(), weight));
        let mut orders = values.zip(others).zip(types).map(|((a, b), of)| compare_values(of, a, b));
        orders.find(|order| order.is_ne()).unwrap_or(ends)
    }
}

impl<'a> UsualRow<'a> {
    /// Whether a usual row can have this timestamp.
    #[inline]
    pub fn can_be_of(timestamp: i64) -> bool {
        row::is_usual_marker(timestamp)
    }

    /// Appends the row's flat bytes, which are those that [`put_fragment`](super::put_fragment) gives of the same row.
    ///
    /// # Panics
    /// If a cell has no value: no usual row has such a cell.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        ByValues::put(*self, out);
    }
}

impl UsualValues<'_> {
    /// The row of these values.
    #[inline]
    pub fn row(&self) -> UsualRow<'_> {
        UsualRow { clustering: &self.clustering, timestamp: self.timestamp, cells: &self.cells }
    }
}

impl<'a> RowVisitor<'a> for UsualValues<'a> {
    #[inline]
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.clustering.push(value);
    }

    #[inline]
    fn marker(&mut self, liveness: Liveness) {
        self.timestamp = liveness.timestamp;
    }

    fn deletions(&mut self, _: DeletionTime, _: DeletionTime) {
        unreachable!("nothing of a usual row is deleted");
    }

    fn complex_deletions(&mut self, _: Vec<(u16, DeletionTime)>) {
        unreachable!("nothing of a usual row is deleted");
    }

    fn cells(&mut self, _: usize) {}

    #[inline]
    fn cell(&mut self, cell: CellView<'a>) {
        self.cells.push(cell.value.expect("the cells of a usual row have values"));
    }
}

impl<'a> ByValues<'a> for UsualRow<'a> {
    #[inline(always)]
    fn clustering(self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> {
        self.clustering.iter().copied()
    }

    #[inline(always)]
    fn timestamp(self) -> i64 {
        self.timestamp
    }

    #[inline(always)]
    fn cells(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.cells.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{FlatRow, Outline, is_usual, put_fragment};
    use super::*;
    use crate::time::NO_TIMESTAMP;
    use crate::{Bytes, Cell, CellValue, Clustering, Fragment, Position, Row};

    /// The same row by itself.
    fn row(of: &UsualRow<'_>) -> Fragment {
        let cell = |(column, value): (u16, &&[u8])| Cell {
            column,
            ttl: 0,
            timestamp: of.timestamp,
            local_deletion_time: NO_DELETION_TIME,
            path: None,
            value: CellValue::Value(Bytes::from(*value)),
        };
        let values = of.clustering.iter().map(|value| value.map(Bytes::from)).collect();
        Fragment::Row(Row {
            liveness: Liveness { timestamp: of.timestamp, ..Liveness::NONE },
            cells: (0..).zip(of.cells).map(cell).collect(),
            ..Row::new(Clustering { values })
        })
    }

    #[test]
    fn the_bytes_are_those_of_the_same_row() {
        let long = vec![7; 300];
        let mut usual = 0;
        for timestamp in [NO_TIMESTAMP, super::super::stamp::EPOCH, -1, 0, 1_700_000_000_000_000, i64::MAX] {
            for (clustering, cells) in [
                (&[][..], &[][..]),
                (&[Some(&b"a"[..]), Some(b""), None], &[&long[..]]),
                (&[Some(&long), Some(b"b"), Some(b"c")], &[b"x", &long, b"yz"]),
            ] {
                let values = UsualRow { clustering, timestamp, cells };
                let fragment = row(&values);
                assert_eq!(UsualRow::can_be_of(timestamp), is_usual(&fragment), "{fragment:?}");
                if is_usual(&fragment) {
                    let (mut expected, mut out) = (b"before".to_vec(), b"before".to_vec());
                    put_fragment(&fragment, &mut expected);
                    values.put(&mut out);
                    assert_eq!(out, expected);
                    usual += 1;
                }
            }
        }
        assert_eq!(usual, 4 * 3);
    }

    /// Notes all that it is shown.
    #[derive(Default, PartialEq, Debug)]
    struct Seen(Vec<String>);

    impl<'a> RowVisitor<'a> for Seen {
        fn clustering_value(&mut self, value: Option<&'a [u8]>) {
            self.0.push(format!("{value:?}"));
        }

        fn marker(&mut self, liveness: Liveness) {
            self.0.push(format!("{liveness:?}"));
        }

        fn deletions(&mut self, _: crate::DeletionTime, _: crate::DeletionTime) {
            unreachable!("nothing of a usual row is deleted");
        }

        fn complex_deletions(&mut self, _: Vec<(u16, crate::DeletionTime)>) {
            unreachable!("nothing of a usual row is deleted");
        }

        fn cells(&mut self, _: usize) {}

        fn cell(&mut self, cell: CellView<'a>) {
            self.0.push(format!("{cell:?}"));
        }
    }

    impl<'a> ValueVisitor<'a> for Seen {
        fn clustering_value(&mut self, value: Option<&'a [u8]>) {
            self.0.push(format!("{value:?}"));
        }

        fn cell(&mut self, column: u16, value: &'a [u8]) {
            self.0.push(format!("{column} {value:?}"));
        }
    }

    proptest! {
        /// Whatever is asked of a row shown by its values is answered as by its flat bytes.
        #[test]
        fn values_tell_what_flat_bytes_tell(
            key in prop::collection::vec(prop::option::of(prop::collection::vec(0_u8..3, 4)), 2),
            prefix in prop::collection::vec(prop::option::of(prop::collection::vec(0_u8..3, 4)), 0..=2),
            weight in prop::sample::select(vec![Weight::Before, Weight::At, Weight::After]),
            timestamp in -9_i64..9,
            cells in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..9), 0..3),
        ) {
            let clustering: Vec<_> = key.iter().map(|value| value.as_deref()).collect();
            let cells: Vec<_> = cells.iter().map(|value| &**value).collect();
            let values = UsualRow { clustering: &clustering, timestamp, cells: &cells };
            let mut flat = Vec::new();
            put_fragment(&row(&values), &mut flat);
            let bytes = Bytes::from(flat);
            let (shown, flat) = (FlatRow::usual(&values), FlatRow::alone(&bytes).known_as(true));
            prop_assert!(shown.is_usual());
            let seen = |of: FlatRow<'_>| {
                let (mut all, mut live, mut place) = (Seen::default(), Seen::default(), Fragment::default());
                of.visit(&mut all).unwrap();
                of.visit_usual(&mut live).unwrap();
                of.decode(&mut place).unwrap();
                let mut put = b"before".to_vec();
                of.put(&mut put);
                (all, live, place, put)
            };
            prop_assert_eq!(seen(shown), seen(flat));
            // And as by the places of the values in them.
            let outline = Outline::of(flat).expect("it is long enough");
            let laid_out = FlatRow::laid_out(&bytes, outline.layout(), timestamp);
            prop_assert!(laid_out.is_usual() && laid_out.value_bytes() == shown.value_bytes());
            prop_assert_eq!(seen(laid_out), seen(flat));
            let types = [CqlType::Int, CqlType::Blob];
            let values = prefix.iter().map(|value| value.as_deref().map(Bytes::from)).collect();
            let position = Position { prefix: Clustering { values }, weight };
            let compared = |row: FlatRow<'_>| row.compare(&types, position.as_view()).unwrap();
            prop_assert_eq!([shown, laid_out].map(compared), [compared(flat); 2]);
            let keys = [shown, laid_out, flat].map(|row| row.clustering().unwrap());
            prop_assert!(keys[0] == keys[2] && keys[1] == keys[2]);
        }
    }
}
