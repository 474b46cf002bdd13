//! What a slice has come to: rows and range tombstones ascend, or bytes are wrong.
//!
//! Uncompressed data is compared with its checksums by scans alone, as these are of 64 KiB. A key of which a bit is another one would go
//! unnoticed in a slice, and whoever merges or keeps rows relies on their order: so each key is compared with the one before it.
//! Keys are compared as they are encoded, where they lie. Of rows side by side that tells too where the slice ends.

use std::cell::Cell;

use model::types::NumberOrder;
use model::{Position, Schema, Weight};
use smallvec::SmallVec;

use super::row::{RowCodec, Sought};

/// Said of a row whose values are asked for.
const DECODED: &str = "the row has been decoded";

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

/// Rows side by side of a slice: each stands behind the one before it, and before where the slice ends.
pub(super) struct Ascending<'w> {
    codec: &'w RowCodec,
    schema: &'w Schema,
    /// The clustering values of the row in front of them all, if there was one.
    first: Option<&'w [u8]>,
    /// Where the slice ends, unless that is where the partition does.
    end: Option<Sought<'w>>,
    /// Where the row begins that was passed last.
    last: Option<usize>,
    /// Where rows are in the order of numbers: those that may come next.
    numbers: Option<Numbers>,
    /// The rank of the row that was looked at.
    rank: Cell<u64>,
    /// Of the place that was looked at last, whether a row may come next there, where numbers do not tell: it may be asked twice.
    answer: Cell<Option<(usize, bool)>>,
}

/// Numbers that rows may have, which stand behind a row's head.
struct Numbers {
    order: NumberOrder,
    /// Which bits of eight bytes they are.
    bits: u64,
    /// The least and the greatest rank that may come; none where the first of these is above the other one.
    least: u64,
    most: u64,
}

impl Passed {
    /// The row whose clustering values these bytes begin with; they are known to have them.
    #[inline]
    pub(crate) fn row(codec: &RowCodec, bytes: &[u8]) -> Passed {
        let len = codec.values_len(bytes).expect(DECODED);
        Passed::Row(bytes[..len].into())
    }

    /// Goes on to the row whose clustering values these bytes begin with, if it stands behind what was passed; whether it does.
    #[inline]
    pub(crate) fn pass_row(&mut self, bytes: &[u8], codec: &RowCodec, schema: &Schema) -> bool {
        let Passed::Row(before) = self else { return self.pass(Passed::row(codec, bytes), codec, schema) };
        // Most keys are a number, which is neither empty nor null.
        if let (Some(order), [0, before @ ..], [0, value @ ..]) =
            (codec.number_order(), &mut before[..], bytes)
            && let Some(value) = value.get(..order.len)
        {
            let ascends = order.rank(before) < order.rank(value);
            if ascends {
                before.copy_from_slice(value);
            }
            return ascends;
        }
        if !codec.ascends(schema, before, bytes) {
            return false;
        }
        let values = &bytes[..codec.values_len(bytes).expect(DECODED)];
        // Most keys are as long as the one before.
        match before.len() == values.len() {
            true => before.copy_from_slice(values),
            false => *before = values.into(),
        }
        true
    }

    /// Goes on to what may come next, if it does; whether it does.
    pub(crate) fn pass(&mut self, next: Passed, codec: &RowCodec, schema: &Schema) -> bool {
        let is_behind = self.is_before(&next, codec, schema);
        if is_behind {
            *self = next;
        }
        is_behind
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
    /// Behind what was passed, and before that end. `None` where what was passed does not stand in bytes.
    #[inline]
    pub(super) fn behind(
        passed: &'w Passed,
        end: Option<Sought<'w>>,
        codec: &'w RowCodec,
        schema: &'w Schema,
    ) -> Option<Ascending<'w>> {
        let first = match passed {
            Passed::Nothing => None,
            Passed::Row(row) => Some(&row[..]),
            Passed::At(_) => return None,
        };
        let numbers = Numbers::between(first, end.as_ref(), codec);
        let (rank, answer) = (Cell::default(), Cell::default());
        Some(Ascending { codec, schema, first, end, last: None, numbers, rank, answer })
    }

    /// Whether what begins at `at` of the bytes, if it is a usual row, may come next.
    #[inline(always)]
    pub(super) fn admits(&self, bytes: &[u8], at: usize) -> bool {
        if let Some(numbers) = &self.numbers
            && let [_, 0, value @ ..] = &bytes[at..]
            && let Some(word) = value.first_chunk()
        {
            return self.admits_rank(numbers, numbers.rank(*word));
        }
        self.admits_any(bytes, at)
    }

    /// The row that was looked at, which begins there, was passed.
    #[inline(always)]
    pub(super) fn pass(&mut self, at: usize) {
        self.last = Some(at);
        if let Some(numbers) = &mut self.numbers {
            numbers.pass(self.rank.get());
        }
    }

    /// Where the row begins that was passed last, if any was.
    #[inline]
    pub(super) fn last(&self) -> Option<usize> {
        self.last
    }

    #[inline(always)]
    fn admits_rank(&self, numbers: &Numbers, rank: u64) -> bool {
        self.rank.set(rank);
        numbers.least <= rank && rank <= numbers.most
    }

    #[inline(never)]
    fn admits_any(&self, bytes: &[u8], at: usize) -> bool {
        let row = bytes.get(at + 1..).unwrap_or_default();
        if let Some(numbers) = &self.numbers {
            // Fewer than eight bytes are left. Without a value it is no usual row.
            let [0, value @ ..] = row else { return false };
            let value = value.get(..numbers.order.len);
            return value.is_some_and(|value| self.admits_rank(numbers, numbers.order.rank(value)));
        }
        if let Some((_, answer)) = self.answer.get().filter(|(of, _)| *of == at) {
            return answer;
        }
        let before = self.last.map(|last| &bytes[last + 1..]).or(self.first);
        let admits = before.is_none_or(|before| self.codec.ascends(self.schema, before, row))
            && self.end.as_ref().is_none_or(|end| end.is_behind_row(row).unwrap_or(false));
        self.answer.set(Some((at, admits)));
        admits
    }
}

impl Numbers {
    /// Those behind a row and before an end. `None` where these are not numbers as well.
    #[inline]
    fn between(first: Option<&[u8]>, end: Option<&Sought<'_>>, codec: &RowCodec) -> Option<Numbers> {
        let order = codec.number_order()?;
        let bits = u64::MAX << (u64::BITS - u8::BITS * order.len as u32);
        let mut numbers = Numbers { order, bits, least: 0, most: u64::MAX };
        if let Some(end) = end {
            match end.number()?.last_before() {
                Some(most) => numbers.most = most,
                None => numbers.admit_none(),
            }
        }
        if let Some(first) = first {
            let [0, value @ ..] = first else { return None };
            numbers.pass(order.rank(value.get(..order.len)?));
        }
        Some(numbers)
    }

    /// The rank of the number that eight bytes begin with.
    #[inline(always)]
    fn rank(&self, word: [u8; size_of::<u64>()]) -> u64 {
        u64::from_be_bytes(word) & self.bits ^ self.order.turned
    }

    /// Only those behind this one may come.
    #[inline(always)]
    fn pass(&mut self, rank: u64) {
        match rank.checked_add(1) {
            Some(least) => self.least = least,
            None => self.admit_none(),
        }
    }

    fn admit_none(&mut self) {
        (self.least, self.most) = (u64::MAX, 0);
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
                    let mut ascending = Ascending::behind(&Passed::Nothing, None, &codec, &schema).unwrap();
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

    /// Numbers come between what was passed, which may have none, and an end, which may have none.
    #[test]
    fn numbers_come_between_what_was_passed_and_the_end() {
        for (name, len) in [("Int32Type", 4), ("ReversedType(Int32Type)", 4), ("LongType", 8)] {
            let (schema, codec) = of(&[name]);
            let numbers = [i64::MIN >> (64 - 8 * len), -7, 0, 7, i64::MAX >> (64 - 8 * len)];
            let value = |number: i64| number.to_be_bytes()[8 - len..].to_vec();
            let row = |value: &[u8]| [&[u8::from(value.is_empty())], value, b"behind it"].concat();
            let some = || numbers.map(value).into_iter().chain([Vec::new()]);
            let ends = some().flat_map(|end| {
                let end: Clustering = [end].into_iter().collect();
                [Weight::Before, Weight::At, Weight::After]
                    .map(|weight| Some(Position { prefix: end.clone(), weight }))
            });
            let ends: Vec<_> = ends.chain([None, Some(Position::start())]).collect();
            let firsts = some().map(|first| Passed::row(&codec, &row(&first))).chain([Passed::Nothing]);
            for (first, number) in firsts.flat_map(|first| numbers.map(|number| (first.clone(), number))) {
                let bytes = row(&value(number));
                let next = Passed::row(&codec, &bytes);
                let is_behind = first.is_before(&next, &codec, &schema);
                let mut passed = first.clone();
                assert_eq!(passed.pass_row(&bytes, &codec, &schema), is_behind, "{name}: {first:?} {number}");
                assert_eq!(passed, if is_behind { next } else { first.clone() });
                for end in &ends {
                    let key: Clustering = [value(number)].into_iter().collect();
                    let is_before_end = end.as_ref().is_none_or(|end| schema.compare_row(&key, end).is_lt());
                    let sought = end.as_ref().map(|end| Sought::new(&codec, &schema, end));
                    let ascending = Ascending::behind(&first, sought, &codec, &schema).unwrap();
                    let bytes = [&[0x24], &bytes[..]].concat();
                    let expected = is_behind && is_before_end;
                    assert_eq!(ascending.admits(&bytes, 0), expected, "{name}: {first:?} {number} {end:?}");
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
                if let Passed::Row(row) = second {
                    let (mut passed, row) = (first.clone(), [row, &b"behind it"[..]].concat());
                    assert_eq!(passed.pass_row(&row, &codec, &schema), is_before, "{first:?} {second:?}");
                    assert_eq!(&passed, if is_before { second } else { first });
                }
                if let (Passed::Row(row), Some(ascending)) =
                    (second, Ascending::behind(first, None, &codec, &schema))
                {
                    let row = [&[0x24], &row[..]].concat();
                    assert_eq!(ascending.admits(&row, 0), is_before, "{first:?} {second:?}");
                }
            }
            assert!(Passed::Nothing.is_before(first, &codec, &schema));
        }
    }
    /// Rows come as long as they stand before the end, on either side of keys and of their beginnings.
    #[test]
    fn rows_come_up_to_the_end() {
        for types in [&["Int32Type"][..], &["ReversedType(LongType)"], &["Int32Type", "UTF8Type"]] {
            let (schema, codec) = of(types);
            let len = schema.clustering[0].fixed_len().unwrap();
            let values = |number: i64| {
                let text = (types.len() == 2).then(|| b"text".to_vec());
                [number.to_be_bytes()[8 - len..].to_vec()].into_iter().chain(text).collect::<Vec<_>>()
            };
            let least = if len == 4 { i64::from(i32::MIN) } else { i64::MIN };
            for (row, end) in [least, -1, 0, 1, !least]
                .into_iter()
                .flat_map(|row| [least, -1, 0, 1, !least].map(|end| (row, end)))
            {
                let key: Clustering = values(row).into_iter().collect();
                let mut bytes = vec![0x24];
                bytes.extend_from_slice(&prefix_of(&codec, &key)[1..]);
                for (kept, side) in (0..=types.len()).flat_map(|kept| (0..3).map(move |side| (kept, side))) {
                    let end: Clustering = values(end).into_iter().take(kept).collect();
                    let weight = [Weight::Before, Weight::At, Weight::After][side];
                    let end = Position { prefix: end, weight };
                    let expected = schema.compare_row(&key, &end).is_lt();
                    for behind in [&b""[..], b"behind it"] {
                        let sought = Sought::new(&codec, &schema, &end);
                        let ascending =
                            Ascending::behind(&Passed::Nothing, Some(sought), &codec, &schema).unwrap();
                        let bytes = [&bytes, behind].concat();
                        assert_eq!(ascending.admits(&bytes, 0), expected, "{key:?} {end:?}");
                    }
                }
            }
        }
    }

    fn prefix_of(codec: &RowCodec, key: &Clustering) -> Vec<u8> {
        let mut prefix = Vec::new();
        codec.put_row_prefix(key, &mut prefix);
        prefix
    }
}
