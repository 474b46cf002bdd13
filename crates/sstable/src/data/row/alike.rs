//! Usual rows of a file that stand alike: what is between their values is the same, and where it is, so that they need not be taken apart
//! one by one.
//!
//! ```text
//! row      24, 0, [vint length] value … │ vint body size, vint previous size │ vint timestamp │ { 08, [vint length] value } …
//! frame    ^^  ^   ^^^^^^^^^^^            ^^^^^^^^^^^^^^  its length           its length         ^^   ^^^^^^^^^^^
//! ```
//!
//! Without clustering columns there is no 0. A row that has the frame of a usual one is a usual one: what is looked at is the frame and the timestamp,
//! and of a slice the key, before ([`Ascending`](super::super::passed)).

use std::ops::Range;

use model::flat::{FlatRow, Frame, FrameBuilder, Habit, Layout, UsualRow, UsualValues};

use super::RowCodec;
use super::usual::Ahead;

/// How usual rows of a file stood last.
pub(crate) type RowHabit = Habit<RowOutline>;

/// How a usual row stands in the bytes of a file.
#[derive(Debug)]
pub(crate) struct RowOutline {
    frame: Frame,
    layout: Layout,
    timestamp: Number,
}

/// Where a vint is whose length is known: in a word of the row.
#[derive(Debug)]
struct Number {
    at: u32,
    /// So many bits follow it in the word.
    shift: u32,
    mask: u64,
}

/// Bytes of a word.
const WIDE: usize = size_of::<u64>();

impl RowOutline {
    /// Of a [usual row](RowCodec::usual_row) that these bytes are, and which has these values. `None` if it is shorter than eight.
    pub(crate) fn of(row: &[u8], values: &UsualValues<'_>) -> Option<RowOutline> {
        let layout = Layout::of(row, &values.clustering, &values.cells);
        let mut frame = Frame::of(row)?;
        layout.clustering().iter().flatten().for_each(|value| frame.pass(value));
        let behind_key = layout.clustering().iter().flatten().last().map_or(1, |last| last.end);
        let mut ahead = Ahead::of(&row[behind_key..]);
        ahead.pass_vint()?;
        let previous = pass_number(row, row.len() - ahead.left(), &mut frame);
        let timestamp = pass_number(row, previous.end, &mut frame);
        layout.cells().iter().for_each(|value| frame.pass(value));
        Some(RowOutline { frame: frame.finish(), layout, timestamp: Number::at(timestamp) })
    }

    /// The usual row that stands at the start of these bytes, if it stands as the one that this is of. How many bytes it has.
    #[inline(always)]
    pub(crate) fn row<'a>(&'a self, codec: &RowCodec, bytes: &'a [u8]) -> Option<(FlatRow<'a>, usize)> {
        let row = self.frame.row(bytes)?;
        let timestamp = codec.minima.timestamp.wrapping_add(self.timestamp.of(row) as i64);
        UsualRow::can_be_of(timestamp).then(|| (FlatRow::laid_out(row, &self.layout, timestamp), row.len()))
    }
}

/// The place of the vint that stands there, of which nothing is of the frame but how long it is: that is told by as many bits of its first byte as
/// it has bytes.
fn pass_number(row: &[u8], at: usize, frame: &mut FrameBuilder<'_>) -> Range<usize> {
    let told = row[at].leading_ones() + 1;
    let place = at..at + told as usize;
    frame.up_to(at);
    frame.take_bits(!u8::MAX.checked_shr(told).unwrap_or(0));
    frame.pass(&(at + 1..place.end));
    place
}

impl Number {
    /// In these bytes of a row that has eight or more, eight at the most.
    fn at(place: Range<usize>) -> Number {
        let at = place.end.saturating_sub(WIDE);
        let shift = (at + WIDE - place.end) as u32 * u8::BITS;
        let at = u32::try_from(at).expect("a row with a frame is addressed by 32 bits");
        Number { at, shift, mask: u64::MAX >> (u64::BITS - 7 * place.len() as u32) }
    }

    #[inline(always)]
    fn of(&self, row: &[u8]) -> u64 {
        let at = self.at as usize;
        let word = row[at..at + WIDE].try_into().expect("a word is as wide");
        u64::from_be_bytes(word) >> self.shift & self.mask
    }
}

#[cfg(test)]
mod tests {
    use model::{Bytes, Column, CqlType, Schema};
    use proptest::prelude::*;

    use super::super::Minima;
    use super::*;
    use crate::Version;

    const MINIMUM: i64 = 1_700_000_000_000_000;

    fn schema() -> Schema {
        let column = |name: &str, data_type| Column { name: name.as_bytes().into(), data_type };
        let regulars = vec![column("a", CqlType::Int), column("b", CqlType::Blob)];
        Schema::new(CqlType::Int, vec![CqlType::Int, CqlType::Text], Vec::new(), regulars)
    }

    fn codec() -> RowCodec {
        let minima = Minima { timestamp: MINIMUM, local_deletion_time: 0, ttl: 0 };
        RowCodec::new(&schema(), minima, Version::Oa)
    }

    /// What a row has: two numbers, a text and a value, microseconds above the minimum, and how far the row before it is away.
    type Made = (i32, String, Vec<u8>, i64, u64);

    fn made() -> impl Strategy<Value = Made> {
        let len = || prop::sample::select(vec![1_usize, 2, 63, 64, 300]);
        let text = len().prop_map(|len| "t".repeat(len));
        let value = len().prop_flat_map(|len| prop::collection::vec(any::<u8>(), len));
        let bits = prop::sample::select(vec![0_u32, 6, 7, 13, 14, 27, 48, 55]);
        let above = bits.prop_flat_map(|bits| 0..1_i64 << bits);
        (any::<i32>(), text, value, above, prop::sample::select(vec![7_u64, 70, 700, 800, 1 << 40, u64::MAX]))
    }

    /// The bytes of a row, with others behind them.
    fn bytes_of((number, text, value, above, previous): &Made) -> Vec<u8> {
        let (codec, number) = (codec(), number.to_be_bytes());
        let values = UsualValues {
            clustering: [Some(&number[..]), Some(text.as_bytes())].into_iter().collect(),
            timestamp: MINIMUM + above,
            cells: [&number[..], value].into_iter().collect(),
        };
        let (mut place, mut bytes) = (Vec::new(), Vec::new());
        codec.put_prefix_of_values(&values.clustering, &mut place);
        codec.put_values_of_row(&values.row(), &place, *previous, &mut bytes);
        bytes.extend_from_slice(b"\x01behind it");
        bytes
    }

    /// The flat bytes of the row there and where it ends, taken apart.
    fn apart(codec: &RowCodec, bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        let (mut values, mut flat) = (UsualValues::default(), Vec::new());
        let end = codec.usual_row(bytes, 0..bytes.len(), &mut values)?;
        values.row().put(&mut flat);
        Some((flat, end))
    }

    /// The same by an outline.
    fn alike(outline: &RowOutline, codec: &RowCodec, bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
        let (row, end) = outline.row(codec, bytes)?;
        let mut flat = Vec::new();
        row.put(&mut flat);
        Some((flat, end))
    }

    fn outline_of(codec: &RowCodec, bytes: &[u8]) -> RowOutline {
        let mut values = UsualValues::default();
        let end = codec.usual_row(bytes, 0..bytes.len(), &mut values).expect("it is usual");
        RowOutline::of(&bytes[..end], &values).expect("it is long enough")
    }

    /// Bytes of a vint.
    fn vint_len(number: u64) -> u32 {
        (u64::BITS - number.leading_zeros()).max(1).div_ceil(7).min(9)
    }

    proptest! {
        /// A row is found to stand like another one if and only if it does, and is what it is when it is taken apart.
        #[test]
        fn rows_that_stand_alike_are_read_as_those_taken_apart(
            first in made(), other in made(), number in any::<i32>(), fill in any::<u8>(), time in any::<u64>(),
            cut in 1_usize..400,
        ) {
            let codec = codec();
            let outline = outline_of(&codec, &bytes_of(&first));
            // Another row of the same lengths, and any other one.
            let (_, text, value, above, previous) = &first;
            let len = vint_len(*above as u64);
            let least = if len == 1 { 0 } else { 1 << (7 * (len - 1)) };
            let above = least + time % ((1 << (7 * len)) - least);
            let alike_it = (number, "u".repeat(text.len()), vec![fill; value.len()], above as i64, *previous);
            for row in [&first, &alike_it, &other] {
                let bytes = bytes_of(row);
                let found = alike(&outline, &codec, &bytes);
                let lengths =
                    |row: &Made| (row.1.len(), row.2.len(), vint_len(row.3 as u64), vint_len(row.4));
                let expected = (lengths(row) == lengths(&first)).then(|| apart(&codec, &bytes)).flatten();
                prop_assert_eq!(&found, &expected);
                let left = &bytes[..bytes.len() - cut.min(bytes.len())];
                let is_whole = found.is_some_and(|(_, end)| end <= left.len());
                prop_assert_eq!(alike(&outline, &codec, left).is_some(), is_whole);
            }
        }

        /// On bytes that were changed anywhere it finds nothing that is not found when they are taken apart.
        #[test]
        fn changed_bytes_are_read_as_those_taken_apart(first in made(), at in any::<usize>(), by in 1_u8..) {
            let (codec, mut bytes) = (codec(), bytes_of(&first));
            let outline = outline_of(&codec, &bytes);
            let at = at % bytes.len();
            bytes[at] ^= by;
            if let Some(found) = alike(&outline, &codec, &bytes) {
                prop_assert_eq!(Some(found), apart(&codec, &bytes));
            }
        }
    }

    #[test]
    fn short_rows_have_no_outline() {
        let regulars = vec![Column { name: b"a"[..].into(), data_type: CqlType::Boolean }];
        let schema = Schema::new(CqlType::Int, Vec::new(), Vec::new(), regulars);
        let codec =
            RowCodec::new(&schema, Minima { timestamp: 5, local_deletion_time: 0, ttl: 0 }, Version::Oa);
        let values = UsualValues {
            timestamp: 5,
            cells: [&b"\x01"[..]].into_iter().collect(),
            ..UsualValues::default()
        };
        let (mut place, mut bytes) = (Vec::new(), Vec::new());
        codec.put_prefix_of_values(&values.clustering, &mut place);
        codec.put_values_of_row(&values.row(), &place, 7, &mut bytes);
        let end = bytes.len();
        bytes.extend_from_slice(&[1; 9]);
        let mut found = UsualValues::default();
        assert_eq!(codec.usual_row(&bytes, 0..bytes.len(), &mut found), Some(end));
        assert!(end < 8 && RowOutline::of(&bytes[..end], &found).is_none());
        assert_eq!(Bytes::from(found.cells[0]), Bytes::from(&b"\x01"[..]));
    }
}
