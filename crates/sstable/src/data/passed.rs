//! What a slice has come to: rows and range tombstones ascend, or bytes are wrong.
//!
//! Uncompressed data is compared with its checksums by scans alone, as these are of 64 KiB. A key of which a bit is another one would go
//! unnoticed in a slice, and whoever merges or keeps rows relies on their order: so each key is compared with the one before it.
//! Keys are compared as they are encoded, where they lie.

use std::cell::Cell;

use model::types::NumberOrder;
use model::{Position, Schema, Weight};
use smallvec::SmallVec;

use super::row::{RowCodec, Sought};

/// The row or range tombstone that was passed last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum Passed {
    /// None yet.
    #[default]
    Nothing,
    /// A row: its clustering values, as they are encoded.
    Row(SmallVec<[u8; 24]>),
    /// What stands there.
    At(Position),
}

/// In which order rows side by side may come.
pub(super) trait Order<'w> {
    /// Whether what begins at `at` of the bytes, if it is a row, may come next.
    fn admits(&self, bytes: &'w [u8], at: usize) -> bool;

    /// The row that was looked at, which begins there, was passed.
    fn pass(&mut self, at: usize);

    /// Where the row begins that was passed last, if any was, and if it matters.
    fn last(&self) -> Option<usize>;
}

/// In any.
pub(super) struct Any;

/// So that each stands behind the one before it.
#[derive(Debug)]
pub(super) struct Ascending<'w> {
    codec: &'w RowCodec,
    schema: &'w Schema,
    /// The clustering values of the row in front of them all, if there was one.
    first: Option<&'w [u8]>,
    /// Which bits of the eight bytes behind a row's head are a number, and which of these are turned over: in that order rows are, if they have one.
    number: Option<(u64, u64)>,
    /// Where the row begins that was passed last, and its rank.
    last: Option<usize>,
    before: Option<u64>,
    /// That of the one which was looked at.
    next: Cell<Option<u64>>,
}

impl Passed {
    /// The row whose clustering values these bytes begin with; they are known to have them.
    #[inline]
    pub(crate) fn row(codec: &RowCodec, bytes: &[u8]) -> Passed {
        let len = codec.values_len(bytes).expect("the row has been decoded");
        Passed::Row(bytes[..len].into())
    }

    /// Whether `next` may come behind it. Range tombstones may stand at one place.
    pub(crate) fn is_before(&self, next: &Passed, codec: &RowCodec, schema: &Schema) -> bool {
        let order_of_row = |row: &[u8], position| Sought::new(codec, schema, position).order_of_row(row);
        match (self, next) {
            (Passed::Nothing, _) | (_, Passed::Nothing) => true,
            (Passed::Row(row), Passed::Row(next)) => codec.ascends(schema, row, next),
            (Passed::Row(row), Passed::At(next)) => order_of_row(row, next).is_ok_and(|order| order.is_lt()),
            (Passed::At(place), Passed::Row(next)) => {
                order_of_row(next, place).is_ok_and(|order| order.is_gt())
            }
            (Passed::At(place), Passed::At(next)) => {
                let order = schema.compare(place, next);
                order.is_lt() || order.is_eq() && place.weight != Weight::At
            }
        }
    }
}

impl<'w> Ascending<'w> {
    /// Behind that. `None` where it does not stand in bytes.
    #[inline]
    pub(super) fn behind(
        passed: &'w Passed,
        codec: &'w RowCodec,
        schema: &'w Schema,
    ) -> Option<Ascending<'w>> {
        let first = match passed {
            Passed::Nothing => None,
            Passed::Row(row) => Some(&row[..]),
            Passed::At(_) => return None,
        };
        let bits = |order: NumberOrder| u64::MAX << (u64::BITS - u8::BITS * order.len as u32);
        let number = codec.number_order().map(|order| (bits(order), order.turned));
        Some(Ascending { codec, schema, first, number, last: None, before: None, next: Cell::new(None) })
    }

    /// The rank of a plain row that has one, if there are eight bytes behind its head.
    #[inline(always)]
    fn rank(&self, bytes: &[u8]) -> Option<u64> {
        let (bits, turned) = self.number?;
        let [_, 0, value @ ..] = bytes else { return None };
        Some(u64::from_be_bytes(*value.first_chunk()?) & bits ^ turned)
    }

    #[inline(never)]
    fn admits_any(&self, bytes: &[u8], at: usize) -> bool {
        let before = self.last.map(|last| &bytes[last + 1..]);
        match (before.or(self.first), bytes.get(at + 1..)) {
            (Some(before), Some(row)) => self.codec.ascends(self.schema, before, row),
            _ => true,
        }
    }
}

impl<'w> Order<'w> for Ascending<'w> {
    #[inline(always)]
    fn admits(&self, bytes: &'w [u8], at: usize) -> bool {
        let rank = self.rank(&bytes[at..]);
        self.next.set(rank);
        match (self.before, rank) {
            (Some(before), Some(rank)) => before < rank,
            _ => self.admits_any(bytes, at),
        }
    }

    #[inline(always)]
    fn pass(&mut self, at: usize) {
        (self.last, self.before) = (Some(at), self.next.get());
    }

    #[inline]
    fn last(&self) -> Option<usize> {
        self.last
    }
}

impl<'w> Order<'w> for Any {
    #[inline(always)]
    fn admits(&self, _: &'w [u8], _: usize) -> bool {
        true
    }

    #[inline(always)]
    fn pass(&mut self, _: usize) {}

    #[inline]
    fn last(&self) -> Option<usize> {
        None
    }
}

#[cfg(test)]
mod tests {
    use model::{Clustering, CqlType};

    use super::super::row::Minima;
    use super::*;
    use crate::Version;

    fn clustering(number: i32, text: &str) -> Clustering {
        [number.to_be_bytes().to_vec(), text.as_bytes().to_vec()].into_iter().collect()
    }

    fn of(types: &[&str]) -> (Schema, RowCodec) {
        let types = types.iter().map(|name| CqlType::parse(name).unwrap()).collect();
        let schema = Schema::as_listed(CqlType::Int, types, Vec::new(), Vec::new());
        let minima = Minima { timestamp: 0, local_deletion_time: 0, ttl: 0 };
        let codec = RowCodec::new(&schema, minima, Version::Oa);
        (schema, codec)
    }

    /// Numbers side by side, in rows with and without eight bytes behind the key's head.
    #[test]
    fn numbers_ascend_by_their_rank() {
        for (name, len) in
            [("Int32Type", 4), ("ReversedType(Int32Type)", 4), ("LongType", 8), ("TimestampType", 8)]
        {
            let (schema, codec) = of(&[name]);
            let rows = |behind: &'static [u8]| {
                let numbers = [i64::MIN, -1 << 33, -77, -1, 0, 1, 300, 1 << 40, i64::MAX];
                numbers.map(|number| {
                    let number =
                        if len == 4 { number.clamp(i32::MIN.into(), i32::MAX.into()) } else { number };
                    [&[0x24, 0], &number.to_be_bytes()[8 - len..], behind].concat()
                })
            };
            for rows in [rows(b""), rows(b"\x07\x01behind it")] {
                for (first, second) in
                    rows.iter().flat_map(|first| rows.iter().map(move |other| (first, other)))
                {
                    let mut ascending = Ascending::behind(&Passed::Nothing, &codec, &schema).unwrap();
                    let both = [&first[..], second].concat();
                    assert!(ascending.admits(&both, 0), "nothing is before it");
                    ascending.pass(0);
                    let [value, other] = [first, second].map(|row| &row[2..2 + len]);
                    let order = schema.clustering[0].compare(value, other);
                    let is_next = ascending.admits(&both, first.len());
                    assert_eq!(is_next, order.is_lt(), "{name}: {first:?} {second:?}");
                }
            }
        }
    }

    /// All that stand in an order stand in it, whatever they are, and in no other one.
    #[test]
    fn what_ascends_is_told_from_what_does_not() {
        let (schema, codec) = of(&["Int32Type", "ReversedType(UTF8Type)"]);
        let row = |number: i32, text: &str| {
            let head: &[u8] = if text.is_empty() { &[0b0100] } else { &[0] };
            let text =
                if text.is_empty() { Vec::new() } else { [&[text.len() as u8], text.as_bytes()].concat() };
            let bytes = [head, &number.to_be_bytes(), &text, b"behind it"].concat();
            Passed::row(&codec, &bytes)
        };
        let at = |clustering, weight| Passed::At(Position { prefix: clustering, weight });
        let number = |number: i32| -> Clustering { [number.to_be_bytes().to_vec()].into_iter().collect() };
        let all = [
            at(number(-1), Weight::Before),
            row(-1, "b"),
            at(clustering(-1, "b"), Weight::After),
            row(-1, "a"),
            row(-1, ""),
            at(number(-1), Weight::After),
            row(7, "a"),
            at(clustering(8, "x"), Weight::At),
            at(clustering(8, "x"), Weight::After),
        ];
        for (i, first) in all.iter().enumerate() {
            for (j, second) in all.iter().enumerate() {
                let is_before = first.is_before(second, &codec, &schema);
                let may_be_same = matches!(first, Passed::At(place) if place.weight != Weight::At);
                assert_eq!(is_before, i < j || i == j && may_be_same, "{first:?} {second:?}");
                if let (Passed::Row(row), Some(ascending)) =
                    (second, Ascending::behind(first, &codec, &schema))
                {
                    let row = [&[0x24], &row[..]].concat();
                    assert_eq!(ascending.admits(&row, 0), is_before, "{first:?} {second:?}");
                }
            }
            assert!(Passed::Nothing.is_before(first, &codec, &schema));
        }
    }
}
