//! Where the values of a usual row stand. Rows of a table mostly stand alike: what is between their values is the same, and where it is,
//! so what was found in one of them need not be looked for in the next.
//!
//! ```text
//! row      kind, flags, how many, length, value … │ marker │ how many, flags, length, value …
//! frame    ^^^^  ^^^^^  ^^^^^^^^  ^^^^^^            ^        ^^^^^^^^  ^^^^^  ^^^^^^            the first byte of the marker
//! ```

use std::ops::Range;

use smallvec::SmallVec;

use super::view::{FlatRow, ValueVisitor};

/// The frame of a [usual](super::is_usual) row in flat bytes.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Bytes of the row.
    len: usize,
    frame: SmallVec<[Window; FEW]>,
    clustering: SmallVec<[Option<Range<usize>>; FEW]>,
    cells: SmallVec<[Range<usize>; FEW]>,
}

/// Some bytes of a frame.
#[derive(Clone, Copy, Debug)]
struct Window {
    at: usize,
    /// Which bytes they are of those from there on.
    mask: u64,
    is: u64,
}

/// Bytes that are compared at once.
const WIDE: usize = size_of::<u64>();

/// Most rows have no more values, or windows, than these.
const FEW: usize = 4;

impl Outline {
    /// Of a row that is known as a usual one and stands in flat bytes; `None` of any other, and of one that is shorter than eight.
    pub fn of(row: FlatRow<'_>) -> Option<Outline> {
        let bytes = row.standing()?;
        let mut found = Found::default();
        row.visit_usual(&mut found).ok()?;
        // What lies in the bytes is told by where it is: all that was shown does.
        let place = |of: &[u8]| {
            let at = of.as_ptr().addr() - bytes.as_ptr().addr();
            at..at + of.len()
        };
        let clustering: SmallVec<_> = found.clustering.iter().map(|value| value.map(place)).collect();
        let cells: SmallVec<[_; FEW]> = found.cells.iter().map(|value| place(value)).collect();
        let marker = place(found.marker);
        let len = cells.last().map_or(marker.end + 1, |last| last.end);
        let mut frame = Frame::of(bytes.get(..len).filter(|bytes| bytes.len() >= WIDE)?);
        clustering.iter().flatten().for_each(|value| frame.pass(value));
        frame.pass(&(marker.start + 1..marker.end));
        cells.iter().for_each(|value| frame.pass(value));
        Some(Outline { len, frame: frame.finish(), clustering, cells })
    }

    /// The bytes of a row if it stands as the one that this is of, in which its values are where those of that one were.
    #[inline]
    pub fn bytes_of<'a>(&self, row: FlatRow<'a>) -> Option<&'a [u8]> {
        let bytes = row.standing()?.get(..self.len)?;
        let is_same = |window: &Window| word(bytes, window.at) & window.mask == window.is;
        self.frame.iter().all(is_same).then_some(bytes)
    }

    /// Where the values of the clustering key are; `None` is null.
    pub fn clustering(&self) -> &[Option<Range<usize>>] {
        &self.clustering
    }

    /// Where those of the first regular columns are.
    pub fn cells(&self) -> &[Range<usize>] {
        &self.cells
    }
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + WIDE].try_into().expect("a word is as wide"))
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

/// The windows of a frame as they are found, of a row of eight bytes or more.
struct Frame<'b> {
    bytes: &'b [u8],
    /// What is before this is in windows, or not of the frame.
    at: usize,
    windows: SmallVec<[Window; FEW]>,
}

impl<'b> Frame<'b> {
    fn of(bytes: &'b [u8]) -> Frame<'b> {
        Frame { bytes, at: 0, windows: SmallVec::new() }
    }

    /// The frame goes on up to a value, and behind it.
    fn pass(&mut self, value: &Range<usize>) {
        self.up_to(value.start);
        self.at = value.end;
    }

    fn finish(mut self) -> SmallVec<[Window; FEW]> {
        self.up_to(self.bytes.len());
        for window in &mut self.windows {
            window.is = word(self.bytes, window.at) & window.mask;
        }
        self.windows
    }

    /// All bytes up to here are of the frame.
    fn up_to(&mut self, end: usize) {
        while self.at < end {
            if self.windows.last().is_none_or(|last| last.at + WIDE <= self.at) {
                // The last ones are compared with those before them.
                let at = self.at.min(self.bytes.len() - WIDE);
                self.windows.push(Window { at, mask: 0, is: 0 });
            }
            let window = self.windows.last_mut().expect("there is one");
            let to = end.min(window.at + WIDE);
            window.mask |= first_bytes(to - window.at) & !first_bytes(self.at - window.at);
            self.at = to;
        }
    }
}

/// The first bytes of a word, eight at the most.
fn first_bytes(count: usize) -> u64 {
    u64::MAX.checked_shr(64 - 8 * count as u32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
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
        let clustering = outline.clustering().iter().map(|value| value.as_ref().map(found)).collect();
        Some((clustering, outline.cells().iter().map(found).collect()))
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
                prop_assert!(bytes.len() < 2 * WIDE);
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
                prop_assert!(outline.bytes_of(row(&any)).is_none_or(|bytes| bytes.len() == outline.len));
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
