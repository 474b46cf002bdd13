//! Where the values of a usual row stand. Rows of a table mostly stand alike: what is between their values is the same, and where it is,
//! so what was found in one of them need not be looked for in the next.
//!
//! ```text
//! row      kind, flags, how many, length, value … │ marker │ how many, flags, length, value …
//! frame    ^^^^  ^^^^^  ^^^^^^^^  ^^^^^^            ^        ^^^^^^^^  ^^^^^  ^^^^^^            the first byte of the marker
//! ```

use smallvec::SmallVec;

use super::frame::Frame;
use super::layout::{Layout, place_in};
use super::view::{FlatRow, ValueVisitor};

/// How a [usual](super::is_usual) row stands in flat bytes.
#[derive(Clone, Debug)]
pub struct Outline {
    frame: Frame,
    layout: Layout,
}

/// Most rows have no more values of a kind.
const FEW: usize = 4;

impl Outline {
    /// Of a row that is known as a usual one and stands in flat bytes; `None` of any other, and of one that is shorter than eight.
    pub fn of(row: FlatRow<'_>) -> Option<Outline> {
        let bytes = row.standing()?;
        let mut found = Found::default();
        row.visit_usual(&mut found).ok()?;
        let marker = place_in(bytes, found.marker);
        let layout = Layout::of(bytes, &found.clustering, &found.cells);
        let len = layout.cells().last().map_or(marker.end + 1, |last| last.end);
        let mut frame = Frame::of(bytes.get(..len)?)?;
        layout.clustering().iter().flatten().for_each(|value| frame.pass(value));
        frame.pass(&(marker.start + 1..marker.end));
        layout.cells().iter().for_each(|value| frame.pass(value));
        Some(Outline { frame: frame.finish(), layout })
    }

    /// The bytes of a row if it stands as the one that this is of, in which its values are where those of that one were.
    #[inline(always)]
    pub fn bytes_of<'a>(&self, row: FlatRow<'a>) -> Option<&'a [u8]> {
        self.frame.row(row.standing()?)
    }

    /// Where its values are.
    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// What a usual row shows.
#[derive(Default)]
struct Found<'a> {
    clustering: SmallVec<[Option<&'a [u8]>; FEW]>,
    marker: &'a [u8],
    cells: SmallVec<[&'a [u8]; FEW]>,
}

impl<'a> ValueVisitor<'a> for Found<'a> {
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.clustering.push(value);
    }

    fn marker(&mut self, bytes: &'a [u8]) {
        self.marker = bytes;
    }

    fn cell(&mut self, _: u16, value: &'a [u8]) {
        self.cells.push(value);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use proptest::prelude::*;

    use super::super::usual::UsualRow;
    use super::*;
    use crate::Bytes;

    type Values = (Vec<Option<Vec<u8>>>, i64, Vec<Vec<u8>>);

    type Read = (Vec<Option<Vec<u8>>>, Vec<Vec<u8>>);

    /// The flat bytes of a usual row of these, and of another one behind it.
    fn put((clustering, timestamp, cells): &Values) -> Bytes {
        let clustering: Vec<_> = clustering.iter().map(|value| value.as_deref()).collect();
        let cells: Vec<_> = cells.iter().map(|value| &**value).collect();
        let mut out = Vec::new();
        let row = UsualRow { clustering: &clustering, timestamp: *timestamp, cells: &cells };
        row.put(&mut out);
        row.put(&mut out);
        Bytes::from(out)
    }

    /// The row that they begin with.
    fn row(of: &Bytes) -> FlatRow<'_> {
        FlatRow::new(of, of).known_as(true)
    }

    /// The values of a row, found by the outline of another one.
    fn values_by(outline: &Outline, of: &Bytes) -> Option<Read> {
        let bytes = outline.bytes_of(row(of))?;
        let found = |range: &Range<usize>| bytes[range.clone()].to_vec();
        let clustering =
            outline.layout().clustering().iter().map(|value| value.as_ref().map(found)).collect();
        Some((clustering, outline.layout().cells().iter().map(found).collect()))
    }

    fn values() -> impl Strategy<Value = Values> {
        let value_of = |lengths: Vec<usize>| {
            let len = prop::sample::select(lengths);
            len.prop_flat_map(|len| prop::collection::vec(any::<u8>(), len))
        };
        let value = || value_of(vec![1, 2, 4, 63, 64, 200]);
        let clustering = prop::collection::vec(prop::option::of(value_of(vec![0, 1, 4, 64])), 0..3);
        let timestamp =
            prop::sample::select(vec![1_i64, -1, 200, 1_700_000_000_000_000, 1_800_000_000_000_000]);
        (clustering, timestamp, prop::collection::vec(value(), 0..4))
    }

    proptest! {
        /// A row is found to stand like another one if and only if it does, and its values are then its own.
        #[test]
        fn values_are_found_where_those_of_another_row_stood(
            first in values(), second in values(), flipped in any::<u8>(),
        ) {
            let bytes = put(&first);
            let Some(outline) = Outline::of(row(&bytes)) else {
                prop_assert!(bytes.len() < 16);
                return Ok(());
            };
            // Other values of the same lengths.
            let other = |value: &Vec<u8>| value.iter().map(|byte| byte ^ flipped).collect::<Vec<u8>>();
            let clustering = first.0.iter().map(|value| value.as_ref().map(other)).collect();
            let alike = (clustering, first.1, first.2.iter().map(other).collect::<Vec<_>>());
            prop_assert_eq!(values_by(&outline, &put(&alike)), Some((alike.0.clone(), alike.2.clone())));
            // Whatever is found in any row is what stands there.
            let of_second = (second.0.clone(), second.2.clone());
            if let Some(found) = values_by(&outline, &put(&second)) {
                prop_assert_eq!(found, of_second);
            } else {
                let lengths = |(clustering, _, cells): &Values| {
                    let of_key: Vec<_> = clustering.iter().map(|value| value.as_ref().map(Vec::len)).collect();
                    (of_key, cells.iter().map(Vec::len).collect::<Vec<_>>())
                };
                let stands_alike = lengths(&first) == lengths(&second) && first.1 == second.1;
                prop_assert!(!stands_alike);
            }
        }

        /// On no bytes does it panic, and it finds nothing beyond a row's end.
        #[test]
        fn any_bytes_are_looked_at(first in values(), any in prop::collection::vec(any::<u8>(), 0..300)) {
            let any = Bytes::from(any);
            _ = Outline::of(row(&any));
            if let Some(outline) = Outline::of(row(&put(&first))) {
                prop_assert!(outline.bytes_of(row(&any)).is_none_or(|bytes| bytes.len() == outline.frame.len));
            }
        }
    }

    #[test]
    fn rows_that_are_not_known_as_usual_have_none() {
        let bytes = put(&(vec![Some(vec![1; 4])], 7, vec![vec![2; 9]]));
        assert!(Outline::of(row(&bytes)).is_some());
        assert!(Outline::of(row(&bytes).known_as(false)).is_none());
        let outline = Outline::of(row(&bytes)).unwrap();
        assert!(outline.bytes_of(row(&bytes).known_as(false)).is_none());
    }
}
