//! How far a position is on the way between two others, as far as their values tell: a guess where to look for it.
//!
//! A guess may be wrong by any measure; whoever follows it compares. So values only have to be placed about right:
//! numbers and times by their distance, text by its first characters that differ, as digits of some base.

use model::{CqlType, Position, Schema, Weight};

use crate::data::row::{Value, Values};

/// How many characters of a text are looked at, behind those that all have.
const CHARACTERS: usize = 16;

/// What a value counts.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Image {
    Whole(i128),
    Real(f64),
}

/// Whether anything can be said of positions with values of these types.
pub(super) fn can_measure(schema: &Schema) -> bool {
    schema.clustering.iter().any(|data_type| is_text(data_type.unreversed()) || is_number(data_type))
}

/// The share of the way from `low` to `high` at which `position` stands, from 0 to 1; `None` where the first
/// clustering column in which the two differ does not tell.
pub(super) fn share(schema: &Schema, low: &Position, high: &Position, position: &Position) -> Option<f64> {
    share_of(schema, &values(low), &values(high), position)
}

/// The same of the values of both.
pub(super) fn share_of(
    schema: &Schema,
    low: &[Value<'_>],
    high: &[Value<'_>],
    position: &Position,
) -> Option<f64> {
    for (column, data_type) in schema.clustering.iter().enumerate() {
        let Some(value) = position.prefix.values.get(column).and_then(Option::as_deref) else {
            return Some(if position.weight == Weight::After { 1.0 } else { 0.0 });
        };
        let (low, high) = ((*low.get(column)?)?, (*high.get(column)?)?);
        if low != high {
            return share_of_values(data_type.unreversed(), low, high, value)
                .filter(|share| share.is_finite());
        }
        if value != low {
            return Some(if data_type.compare(value, low).is_lt() { 0.0 } else { 1.0 });
        }
    }
    None
}

/// The same of numbers, by their ranks.
pub(crate) fn share_of_ranks(low: u64, high: u64, rank: u64) -> Option<f64> {
    let rank = rank.clamp(low, high.max(low));
    (low < high).then(|| (rank - low) as f64 / (high - low) as f64)
}

fn values(position: &Position) -> Values<'_> {
    position.prefix.values.iter().map(Option::as_deref).collect()
}

fn share_of_values(data_type: &CqlType, low: &[u8], high: &[u8], value: &[u8]) -> Option<f64> {
    let share = if is_text(data_type) {
        share_of_texts(low, high, value)
    } else {
        match (image(data_type, low)?, image(data_type, high)?, image(data_type, value)?) {
            (Image::Whole(low), Image::Whole(high), Image::Whole(value)) => {
                value.checked_sub(low)? as f64 / high.checked_sub(low)? as f64
            }
            (Image::Real(low), Image::Real(high), Image::Real(value)) => (value - low) / (high - low),
            _ => return None,
        }
    };
    Some(share.clamp(0.0, 1.0))
}

/// Types whose values stand in the order of their bytes.
fn is_text(data_type: &CqlType) -> bool {
    matches!(
        data_type,
        CqlType::Text
            | CqlType::Ascii
            | CqlType::Blob
            | CqlType::Date
            | CqlType::Time
            | CqlType::Inet
            | CqlType::LegacyTimestamp
    )
}

fn is_number(data_type: &CqlType) -> bool {
    matches!(
        data_type.unreversed(),
        CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Timestamp
            | CqlType::VarInt
            | CqlType::Float
            | CqlType::Double
            | CqlType::Uuid
            | CqlType::TimeUuid
            | CqlType::LexicalUuid
    )
}

/// What a value of a number or UUID counts, in the order of its type.
fn image(data_type: &CqlType, value: &[u8]) -> Option<Image> {
    let bits = || <[u8; 16]>::try_from(value).ok().map(u128::from_be_bytes);
    Some(match data_type {
        CqlType::Float => Image::Real(f32::from_be_bytes(value.try_into().ok()?).into()),
        CqlType::Double => Image::Real(f64::from_be_bytes(value.try_into().ok()?)),
        CqlType::TimeUuid => Image::Whole(uuid_time(bits()?) as i128),
        CqlType::LexicalUuid => Image::Whole(bits()? as i128 >> 1),
        CqlType::Uuid => Image::Whole(uuid_image(bits()?)),
        _ if is_number(data_type) && (1..=15).contains(&value.len()) => Image::Whole(signed(value)),
        _ => return None,
    })
}

/// A signed big-endian number of at most 15 bytes.
fn signed(value: &[u8]) -> i128 {
    let sign = i128::from(value[0] as i8 >> 7);
    value.iter().fold(sign, |number, &byte| number << 8 | i128::from(byte))
}

/// By version, then of version 1 by time, of others by their bits.
fn uuid_image(bits: u128) -> i128 {
    let version = bits >> 76 & 0xf;
    let rest = if version == 1 { uuid_time(bits) << 60 } else { bits >> 8 };
    (version << 120 | rest) as i128
}

/// The 60 bits of time in a UUID of version 1.
fn uuid_time(bits: u128) -> u128 {
    (bits >> 64 & 0xfff) << 48 | (bits >> 80 & 0xffff) << 32 | bits >> 96
}

fn share_of_texts(low: &[u8], high: &[u8], value: &[u8]) -> f64 {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    if !value.starts_with(&low[..common]) {
        return if value < low { 0.0 } else { 1.0 };
    }
    let [low, high, value] =
        [low, high, value].map(|text| &text[common..text.len().min(common + CHARACTERS)]);
    let alphabet = Alphabet::of([low, high, value]);
    let [low, high, value] = [low, high, value].map(|text| alphabet.fraction(text));
    (value - low) / (high - low)
}

/// The characters that texts are taken to be made of. Those that only separate others count nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Alphabet {
    Decimal,
    Hexadecimal,
    Printable,
    Bytes,
}

impl Alphabet {
    /// The smallest alphabet that has all the characters.
    fn of(texts: [&[u8]; 3]) -> Alphabet {
        let all = |is: fn(&u8) -> bool| texts.iter().all(|text| text.iter().all(is));
        let separates = |byte: &u8| matches!(byte, b'-' | b'_' | b':' | b'.');
        if texts.iter().all(|text| text.iter().all(|byte| byte.is_ascii_digit() || separates(byte))) {
            Alphabet::Decimal
        } else if texts.iter().all(|text| text.iter().all(|byte| byte.is_ascii_hexdigit() || separates(byte)))
        {
            Alphabet::Hexadecimal
        } else if all(|byte| (b' '..=b'~').contains(byte)) {
            Alphabet::Printable
        } else {
            Alphabet::Bytes
        }
    }

    /// The text as digits behind a point.
    fn fraction(self, text: &[u8]) -> f64 {
        let (mut sum, mut weight) = (0.0, 1.0);
        for &byte in text {
            let digit = match self {
                Alphabet::Decimal | Alphabet::Hexadecimal => (byte as char).to_digit(16).unwrap_or(0),
                Alphabet::Printable => u32::from(byte - b' '),
                Alphabet::Bytes => u32::from(byte),
            };
            weight /= self.base();
            sum += f64::from(digit) * weight;
        }
        sum
    }

    fn base(self) -> f64 {
        match self {
            Alphabet::Decimal => 10.0,
            Alphabet::Hexadecimal => 16.0,
            Alphabet::Printable => 95.0,
            Alphabet::Bytes => 256.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Clustering;

    use super::*;

    fn schema(clustering: Vec<CqlType>) -> Schema {
        Schema::new(CqlType::Int, clustering, vec![], vec![])
    }

    fn at(values: &[&[u8]]) -> Position {
        Position::at(values.iter().copied().collect::<Clustering>())
    }

    /// The share of the third value on the way from the first to the second.
    fn of(data_type: CqlType, values: [&[u8]; 3]) -> Option<f64> {
        let schema = schema(vec![data_type]);
        assert!(can_measure(&schema));
        let [low, high, value] = values.map(|value| at(&[value]));
        share(&schema, &low, &high, &value)
    }

    fn is_near(found: Option<f64>, expected: f64) {
        assert!(found.is_some_and(|found| (found - expected).abs() < 1e-3), "{found:?}, not {expected}");
    }

    #[test]
    fn numbers_by_their_distance() {
        let int = |n: i32| n.to_be_bytes();
        let reversed = || CqlType::Reversed(Box::new(CqlType::Int));
        is_near(of(CqlType::Int, [&int(-100), &int(300), &int(200)]), 0.75);
        is_near(of(reversed(), [&int(300), &int(-100), &int(200)]), 0.25);
        is_near(of(CqlType::Int, [&int(0), &int(10), &int(-5)]), 0.0);
        is_near(of(CqlType::Int, [&int(0), &int(10), &int(50)]), 1.0);
        let big = |n: i64| n.to_be_bytes();
        is_near(of(CqlType::BigInt, [&big(i64::MIN), &big(i64::MAX), &big(0)]), 0.5);
        is_near(of(CqlType::Timestamp, [&big(1 << 62), &big((1 << 62) + 8), &big((1 << 62) + 2)]), 0.25);
        is_near(of(CqlType::VarInt, [&[0xff], &[1, 0], &[0x7f]]), 128.0 / 257.0);
        let double = |n: f64| n.to_be_bytes();
        is_near(of(CqlType::Double, [&double(-1.0), &double(3.0), &double(0.0)]), 0.25);
        assert_eq!(of(CqlType::Double, [&double(f64::NAN), &double(3.0), &double(0.0)]), None);
        assert_eq!(of(CqlType::Int, [&[], &int(3), &int(2)]), None);
    }

    #[test]
    fn texts_by_their_first_characters() {
        is_near(of(CqlType::Text, [b"user-00100", b"user-00900", b"user-00500"]), 0.5);
        is_near(of(CqlType::Text, [b"2024-01-01", b"2024-12-31", b"2024-07-01"]), 6000.0 / 11030.0);
        is_near(of(CqlType::Ascii, [b"00ff", b"ff00", b"7fff"]), 0.5);
        is_near(of(CqlType::Blob, [&[1, 0, 0], &[1, 255, 255], &[1, 128, 0]]), 0.5);
        is_near(of(CqlType::Text, [b"prefix-a", b"prefix-z", b"other"]), 0.0);
        is_near(of(CqlType::Text, [b"prefix-a", b"prefix-z", b"query"]), 1.0);
    }

    #[test]
    fn uuids_by_their_time() {
        let uuid = |time: u64, version: u128| {
            let time = u128::from(time);
            let bits =
                (time & 0xffff_ffff) << 96 | (time >> 32 & 0xffff) << 80 | version << 76 | (time >> 48) << 64;
            bits.to_be_bytes()
        };
        for data_type in [CqlType::TimeUuid, CqlType::Uuid] {
            is_near(of(data_type, [&uuid(1 << 50, 1), &uuid(3 << 50, 1), &uuid(2 << 50, 1)]), 0.5);
        }
        let random = |n: u8| [[n; 6].as_slice(), &[0x4f; 10]].concat();
        is_near(of(CqlType::Uuid, [&random(0), &random(200), &random(50)]), 0.25);
        is_near(of(CqlType::Uuid, [&uuid(9, 1), &random(200), &uuid(9, 1)]), 0.0);
    }

    #[test]
    fn the_first_column_that_differs_tells() {
        let schema = schema(vec![CqlType::Text, CqlType::Int]);
        let int = |n: i32| n.to_be_bytes();
        let (low, high) = (at(&[b"same", &int(0)]), at(&[b"same", &int(100)]));
        is_near(share(&schema, &low, &high, &at(&[b"same", &int(25)])), 0.25);
        is_near(share(&schema, &low, &high, &at(&[b"other", &int(25)])), 0.0);
        is_near(share(&schema, &low, &high, &at(&[b"upper", &int(25)])), 1.0);
        let prefix: Clustering = [&b"same"[..]].into_iter().collect();
        is_near(share(&schema, &low, &high, &Position::before(prefix.clone())), 0.0);
        is_near(share(&schema, &low, &high, &Position::after(prefix)), 1.0);
        assert_eq!(share(&schema, &low, &low, &low), None);
    }

    #[test]
    fn values_that_say_nothing() {
        let types = [CqlType::Boolean, CqlType::Decimal, CqlType::Tuple(vec![CqlType::Int])];
        for data_type in types {
            let schema = schema(vec![data_type]);
            assert!(!can_measure(&schema));
            assert_eq!(share(&schema, &at(&[&[0]]), &at(&[&[1]]), &at(&[&[1]])), None);
        }
        assert!(!can_measure(&schema(vec![])));
    }
}
