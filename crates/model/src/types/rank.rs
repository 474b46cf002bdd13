//! Values as numbers, for a search that compares many with one.
//!
//! A greater value never has a smaller number; equal numbers say nothing. What a type's order begins with is in the
//! number, as far as eight bytes reach; of a type that is not known here all values have one number.

use super::{CqlType, uuid};

/// The first of 64 bits.
const TOP: u64 = 1 << 63;

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

    fn check(data_type: &CqlType, a: &[u8], b: &[u8]) {
        let (order, ranks) = (data_type.compare(a, b), data_type.rank(a).cmp(&data_type.rank(b)));
        assert!(ranks.is_eq() || ranks == order, "{data_type:?}: {a:02x?}, {b:02x?}: {order:?}, {ranks:?}");
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
