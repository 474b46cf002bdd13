//! Values as numbers, for a search that compares many with one.
//!
//! A greater value never has a smaller number; equal numbers say nothing. What a type's order begins with is in the
//! number, as far as eight bytes reach; of a type that is not known here all values have one number.

use super::{CqlType, uuid};
use crate::Weight;

/// The first of 64 bits.
const TOP: u64 = 1 << 63;

/// Those that say where beside a value a place is.
const BESIDE: u64 = 3;

/// The longest of which places beside them are told apart, in bytes.
const SHORT: usize = 4;

/// How a type of whole numbers orders values of its own length: by their [rank](CqlType::rank) and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NumberOrder {
    /// How long its values are: 1, 2, 4 or 8 bytes.
    pub len: usize,
    /// The rank of a value is its bytes as a number, the first one on top, with these bits turned over.
    pub turned: u64,
}

impl NumberOrder {
    /// The rank of a value of this length.
    #[inline]
    pub fn rank(self, value: &[u8]) -> u64 {
        lead(value) ^ self.turned
    }

    /// Whether greater values come first: then zeros behind a value are turned over too.
    fn is_reversed(self) -> bool {
        self.turned & 1 != 0
    }
}

impl CqlType {
    /// The number of a value, in the order of [`CqlType::compare`].
    #[inline]
    pub fn rank(&self, value: &[u8]) -> u64 {
        match self {
            // Signed: with its first bit turned over, a number is ordered as bytes are, and so are bytes of other lengths.
            CqlType::Int | CqlType::BigInt | CqlType::Timestamp | CqlType::SmallInt | CqlType::TinyInt => {
                if_any(value, lead(value) ^ TOP)
            }
            CqlType::Text
            | CqlType::Ascii
            | CqlType::Blob
            | CqlType::Date
            | CqlType::Time
            | CqlType::Inet
            | CqlType::LegacyTimestamp => lead(value),
            other => other.rank_of_others(value),
        }
    }

    /// The number of a place before all rows with this value, among them or behind them: of a type whose values have four bytes or
    /// less no two places have the same one, and what is at its value need not be looked at.
    ///
    /// ```text
    /// the rank's upper 62 bits   2 bits: 0 before, 1 among, 2 behind
    /// ```
    #[inline]
    pub fn rank_beside(&self, value: &[u8], weight: Weight) -> u64 {
        self.rank_beside_in(self.number_order(), value, weight)
    }

    /// The same for who has the type's [order](CqlType::number_order) at hand.
    #[inline(always)]
    pub(crate) fn rank_beside_in(&self, order: Option<NumberOrder>, value: &[u8], weight: Weight) -> u64 {
        let Some(order) = order else { return self.rank(value) };
        if value.len() == order.len {
            let rank = order.rank(value);
            return if order.len <= SHORT { rank & !BESIDE | weight as u64 } else { rank };
        }
        self.rank_of_malformed(order, value)
    }

    /// The rank of a value of another length may be that of one of the type's: all places beside it are one.
    #[cold]
    fn rank_of_malformed(&self, order: NumberOrder, value: &[u8]) -> u64 {
        let rank = self.rank(value);
        match (order.len <= SHORT, (value.len() > order.len) != order.is_reversed()) {
            (true, true) => rank | BESIDE,
            (true, false) => rank & !BESIDE,
            (false, _) => rank,
        }
    }

    /// The order of values of the type's length, if they are whole numbers.
    #[inline]
    pub fn number_order(&self) -> Option<NumberOrder> {
        let (len, turned) = match self {
            CqlType::Int => (4, TOP),
            CqlType::BigInt | CqlType::Timestamp => (8, TOP),
            CqlType::SmallInt => (2, TOP),
            CqlType::TinyInt => (1, TOP),
            CqlType::Date => (4, 0),
            CqlType::Time => (8, 0),
            CqlType::Reversed(base) => return base.reversed_number_order(),
            _ => return None,
        };
        Some(NumberOrder { len, turned })
    }

    fn reversed_number_order(&self) -> Option<NumberOrder> {
        let NumberOrder { len, turned } = self.number_order()?;
        Some(NumberOrder { len, turned: !turned })
    }

    fn rank_of_others(&self, value: &[u8]) -> u64 {
        match self {
            CqlType::Reversed(base) => !base.rank(value),
            CqlType::Float => match value.try_into() {
                Ok(bytes) => rank_of_real(f32::from_be_bytes(bytes).into()),
                Err(_) => if_any(value, u64::MAX),
            },
            CqlType::Double => match value.try_into() {
                Ok(bytes) => rank_of_real(f64::from_be_bytes(bytes)),
                Err(_) => if_any(value, u64::MAX),
            },
            CqlType::Uuid => uuid::rank(value),
            CqlType::TimeUuid => uuid::rank_of_time(value),
            _ => 0,
        }
    }
}

/// The first eight bytes, as if zeros followed.
#[inline]
fn lead(value: &[u8]) -> u64 {
    match value {
        &[a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])) << 32,
        _ => match value.first_chunk() {
            Some(first) => u64::from_be_bytes(*first),
            None => value.iter().rev().fold(0, |rest, byte| u64::from(*byte) << 56 | rest >> 8),
        },
    }
}

/// An empty value comes before all others.
#[inline]
fn if_any(value: &[u8], rank: u64) -> u64 {
    if value.is_empty() { 0 } else { rank }
}

/// As Java orders them: the bits of a negative number descend, and what is not a number is the greatest.
fn rank_of_real(value: f64) -> u64 {
    let bits = value.to_bits();
    match (value.is_nan(), bits & TOP != 0) {
        (true, _) => u64::MAX,
        (false, true) => !bits,
        (false, false) => bits | TOP,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn types() -> Vec<CqlType> {
        let mut types = vec![
            CqlType::Int,
            CqlType::BigInt,
            CqlType::SmallInt,
            CqlType::TinyInt,
            CqlType::Timestamp,
            CqlType::Date,
            CqlType::Time,
            CqlType::Text,
            CqlType::Blob,
            CqlType::Inet,
            CqlType::Float,
            CqlType::Double,
            CqlType::Uuid,
            CqlType::TimeUuid,
            CqlType::VarInt,
            CqlType::Boolean,
        ];
        types.extend(types.clone().into_iter().map(|base| CqlType::Reversed(Box::new(base))));
        types
    }

    const WEIGHTS: [Weight; 3] = [Weight::Before, Weight::At, Weight::After];

    fn check(data_type: &CqlType, a: &[u8], b: &[u8]) {
        let (order, ranks) = (data_type.compare(a, b), data_type.rank(a).cmp(&data_type.rank(b)));
        assert!(ranks.is_eq() || ranks == order, "{data_type:?}: {a:02x?}, {b:02x?}: {order:?}, {ranks:?}");
        if let Some(number) = data_type.number_order()
            && (a.len(), b.len()) == (number.len, number.len)
        {
            assert_eq!((ranks, data_type.rank(a)), (order, number.rank(a)), "{data_type:?}: {a:02x?}");
        }
        for (of_a, of_b) in WEIGHTS.into_iter().flat_map(|a| WEIGHTS.map(|b| (a, b))) {
            let order = order.then(of_a.cmp(&of_b));
            let ranks = data_type.rank_beside(a, of_a).cmp(&data_type.rank_beside(b, of_b));
            assert!(ranks.is_eq() || ranks == order, "{data_type:?}: {of_a:?} {a:02x?}, {of_b:?} {b:02x?}");
        }
    }

    #[test]
    fn no_two_places_beside_short_numbers_have_the_same_rank() {
        let values = [i32::MIN, -1, 0, 1, 2, 1 << 8, 1 << 16, i32::MAX].map(i32::to_be_bytes);
        for data_type in types() {
            let Some(len) = data_type.number_order().map(|order| order.len).filter(|len| *len <= SHORT)
            else {
                continue;
            };
            let values = values.iter().map(|value| &value[4 - len..]);
            let places = values.flat_map(|value| WEIGHTS.map(|weight| (value, weight)));
            let mut all: Vec<_> =
                places.map(|(value, weight)| data_type.rank_beside(value, weight)).collect();
            all.sort_unstable();
            all.dedup();
            let expected = if len == 4 { 8 } else { 4 };
            assert!(all.len() >= 3 * expected, "{data_type:?}: {all:x?}");
        }
    }

    #[test]
    fn a_greater_value_has_no_smaller_rank() {
        let reals = [f64::NEG_INFINITY, -1.5, -0.0, 0.0, f64::MIN_POSITIVE, 2.0, f64::INFINITY, f64::NAN];
        let bytes: Vec<Vec<u8>> = reals
            .iter()
            .flat_map(|real| [real.to_be_bytes().to_vec(), (*real as f32).to_be_bytes().to_vec()])
            .chain([vec![], vec![0], vec![0x80], vec![0xff; 16], vec![0xff; 4], vec![0; 4], vec![0, 0, 0, 1]])
            .collect();
        for data_type in types() {
            bytes.iter().for_each(|a| bytes.iter().for_each(|b| check(&data_type, a, b)));
        }
    }

    #[test]
    fn most_values_are_told_apart() {
        let int = |value: i32| CqlType::Int.rank(&value.to_be_bytes());
        assert!(int(-5) < int(-4) && int(-1) < int(0) && int(0) < int(1));
        let text = |value: &str| CqlType::Text.rank(value.as_bytes());
        assert!(text("a") < text("ab") && text("ab") < text("b"));
        let reversed = |value: i32| CqlType::Reversed(Box::new(CqlType::Int)).rank(&value.to_be_bytes());
        assert!(reversed(2) < reversed(1));
    }

    proptest! {
        #[test]
        fn of_any_bytes(a: Vec<u8>, b: Vec<u8>, of_one_len: [[u8; 16]; 2], len in 0..=16_usize) {
            for data_type in types() {
                check(&data_type, &a, &b);
                check(&data_type, &of_one_len[0][..len], &of_one_len[1][..len]);
                for whole in [1, 2, 4, 8, 16] {
                    check(&data_type, &of_one_len[0][..whole], &of_one_len[1][..whole]);
                }
            }
        }
    }
}
