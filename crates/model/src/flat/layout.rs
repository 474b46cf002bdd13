//! Where the values of usual rows are that stand alike, in whatever bytes, and such a row shown by them.

use std::ops::Range;

use smallvec::SmallVec;

use super::usual::ByValues;

/// Where the values of a [usual](super::is_usual) row are in bytes that begin with it.
#[derive(Clone, Debug)]
pub struct Layout {
    clustering: SmallVec<[Option<Range<usize>>; FEW]>,
    cells: SmallVec<[Range<usize>; FEW]>,
    /// Of all values together.
    value_bytes: usize,
}

/// A usual row whose values are where those of another one were.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaidOut<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) layout: &'a Layout,
    pub(super) timestamp: i64,
}

/// Most rows have no more values of a kind.
const FEW: usize = 4;

impl Layout {
    /// Of the row with which `bytes` begin, whose values lie in them.
    ///
    /// # Panics
    /// If one does not.
    pub fn of(bytes: &[u8], clustering: &[Option<&[u8]>], cells: &[&[u8]]) -> Layout {
        let place = |value: &[u8]| place_in(bytes, value);
        let clustering: SmallVec<_> = clustering.iter().map(|value| value.map(place)).collect();
        let cells: SmallVec<[_; FEW]> = cells.iter().map(|value| place(value)).collect();
        let value_bytes = clustering.iter().flatten().chain(&cells).map(Range::len).sum();
        Layout { clustering, cells, value_bytes }
    }

    /// Where the values of the clustering key are; `None` is null.
    #[inline]
    pub fn clustering(&self) -> &[Option<Range<usize>>] {
        &self.clustering
    }

    /// Where those of the first regular columns are.
    #[inline]
    pub fn cells(&self) -> &[Range<usize>] {
        &self.cells
    }
}

/// Where in these bytes a slice of them is.
///
/// # Panics
/// If it is none of them.
#[inline]
pub(super) fn place_in(bytes: &[u8], slice: &[u8]) -> Range<usize> {
    let at = slice.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
    let range = at..at.saturating_add(slice.len());
    assert!(range.end <= bytes.len(), "a slice lies in the bytes that it is of");
    range
}

impl<'a> ByValues<'a> for LaidOut<'a> {
    #[inline(always)]
    fn clustering(self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> {
        self.layout.clustering.iter().map(move |range| Some(&self.bytes[range.clone()?]))
    }

    #[inline(always)]
    fn timestamp(self) -> i64 {
        self.timestamp
    }

    #[inline(always)]
    fn cells(self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.layout.cells.iter().map(move |range| &self.bytes[range.clone()])
    }

    #[inline]
    fn value_bytes(self) -> usize {
        self.layout.value_bytes
    }
}
