//! Random values, as bytes.
//!
//! Of values that are equal in the order of their type there is only one: decimals end in no zero, integers have no
//! byte too many. So which of two equal keys stays is never the question.

use model::{Bytes, CqlType};

use crate::generate::random::Random;

/// How long the longest texts and blobs are, in bytes; they span pages and chunks.
const LONGEST: usize = 20_000;

/// So long may an element of a vector be, so that its length is one byte.
const LONGEST_IN_VECTOR: usize = 127;

/// Nanoseconds of a day.
const DAY: u64 = 86_400_000_000_000;

/// Makes values of numbers.
#[derive(Debug)]
pub struct Values<'a> {
    /// Where they come from.
    pub random: &'a mut Random,
    /// Whether texts and blobs may be empty.
    pub may_be_empty: bool,
}

/// A value out of a few: the same seed, type and count give the same few.
pub fn one_of_few(random: &mut Random, of: &CqlType, seed: u64, count: usize) -> Bytes {
    let number = seed.wrapping_mul(1000).wrapping_add(random.below(count) as u64);
    Values { random: &mut Random::new(number), may_be_empty: true }.value(of)
}

/// The type of a partition key of these columns.
pub fn composite(types: &[CqlType]) -> CqlType {
    match types {
        [one] => one.clone(),
        several => CqlType::Composite(several.to_vec()),
    }
}

/// A partition key of these columns.
pub fn key_of(columns: &[Bytes]) -> Bytes {
    if let [one] = columns {
        return one.clone();
    }
    let mut key = Vec::new();
    for column in columns {
        key.extend_from_slice(&(column.len() as u16).to_be_bytes());
        key.extend_from_slice(column);
        key.push(0);
    }
    Bytes::from(key)
}

/// Elements, or keys and values in turn, as one value.
pub fn packed<'a>(count: usize, parts: impl IntoIterator<Item = &'a [u8]>) -> Bytes {
    let mut bytes = (count as i32).to_be_bytes().to_vec();
    parts.into_iter().for_each(|part| put(Some(part), &mut bytes));
    Bytes::from(bytes)
}

/// Appends a part of a value with its length, or null.
pub fn put(part: Option<&[u8]>, to: &mut Vec<u8>) {
    match part {
        Some(part) => {
            to.extend_from_slice(&(part.len() as i32).to_be_bytes());
            to.extend_from_slice(part);
        }
        None => to.extend_from_slice(&(-1_i32).to_be_bytes()),
    }
}

impl Values<'_> {
    /// A value of a type, which is not `counter`.
    pub fn value(&mut self, of: &CqlType) -> Bytes {
        Bytes::from(self.bytes(of))
    }

    /// Values in the order of their type, each once.
    pub fn distinct(&mut self, of: &CqlType, count: usize) -> Vec<Bytes> {
        let mut values: Vec<Bytes> = (0..count).map(|_| self.value(of)).collect();
        values.sort_by(|a, b| of.compare(a, b));
        values.dedup_by(|a, b| of.compare(a, b).is_eq());
        values
    }

    fn bytes(&mut self, of: &CqlType) -> Vec<u8> {
        match of {
            CqlType::List { element, .. } => {
                let count = self.random.below(4);
                let elements: Vec<Bytes> = (0..count).map(|_| self.value(element)).collect();
                packed(count, elements.iter().map(|part| &**part)).to_vec()
            }
            CqlType::Set { element, .. } => {
                let count = self.random.below(4);
                let elements = self.distinct(element, count);
                packed(elements.len(), elements.iter().map(|part| &**part)).to_vec()
            }
            CqlType::Map { key, value, .. } => {
                let count = self.random.below(4);
                let keys = self.distinct(key, count);
                let entries: Vec<Bytes> = keys.into_iter().flat_map(|key| [key, self.value(value)]).collect();
                packed(entries.len() / 2, entries.iter().map(|part| &**part)).to_vec()
            }
            CqlType::Tuple(parts) => self.parts(parts.iter()),
            CqlType::Udt(udt) => self.parts(udt.fields.iter().map(|(_, field)| field)),
            CqlType::Vector { element, dimension } => self.vector(element, *dimension),
            CqlType::Reversed(base) => self.bytes(base),
            simple => self.simple(simple),
        }
    }

    fn parts<'t>(&mut self, types: impl Iterator<Item = &'t CqlType>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for of in types {
            let part = if self.random.percent(10) { None } else { Some(self.bytes(of)) };
            put(part.as_deref(), &mut bytes);
        }
        bytes
    }

    fn vector(&mut self, element: &CqlType, dimension: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..dimension {
            let part = loop {
                let part = self.bytes(element);
                if part.len() <= LONGEST_IN_VECTOR {
                    break part;
                }
            };
            if element.fixed_len().is_none() {
                bytes.push(part.len() as u8);
            }
            bytes.extend_from_slice(&part);
        }
        bytes
    }

    fn simple(&mut self, of: &CqlType) -> Vec<u8> {
        let number = self.edge_or_any();
        let signed = number.cast_signed();
        match of {
            CqlType::Ascii | CqlType::Text | CqlType::Blob => self.text(of),
            CqlType::BigInt | CqlType::Timestamp => number.to_be_bytes().to_vec(),
            CqlType::Boolean => vec![u8::from(signed % 2 == 0)],
            CqlType::Date | CqlType::Int => (number as u32).to_be_bytes().to_vec(),
            CqlType::SmallInt => (number as u16).to_be_bytes().to_vec(),
            CqlType::TinyInt => vec![number as u8],
            CqlType::Double => double(f64::from_bits(number)).to_be_bytes().to_vec(),
            CqlType::Float => float(f32::from_bits(number as u32)).to_be_bytes().to_vec(),
            CqlType::VarInt => varint(i128::from(signed) * if signed % 3 == 0 { 1 << 40 } else { 1 }),
            CqlType::Decimal => decimal(signed >> (number % 60)),
            CqlType::Time => (number % DAY).to_be_bytes().to_vec(),
            CqlType::Inet if number.is_multiple_of(2) => (number as u32).to_be_bytes().to_vec(),
            CqlType::Inet | CqlType::Uuid => {
                [number.to_be_bytes(), self.random.number().to_be_bytes()].concat()
            }
            CqlType::TimeUuid => time_uuid(number % (1 << 60), self.random.number()).to_vec(),
            CqlType::Duration => {
                let sign = if signed < 0 { "-" } else { "" };
                let (months, days, seconds) = (number % 20, (number >> 8) % 40, (number >> 16) % 4000);
                let text = format!("{sign}{months}mo{days}d{seconds}s");
                of.from_text(&text).expect("a duration is written so")
            }
            other => unreachable!("no table has a column of {other:?}"),
        }
    }

    /// Any number, of any length; often one of the few least or greatest.
    fn edge_or_any(&mut self) -> u64 {
        let shift = self.random.below(64);
        match self.random.below(8) {
            0 => *self.random.one_of(&[0, 1, u64::MAX, i64::MAX as u64, 1 << 63, 1 << 31]),
            1..4 => self.random.number(),
            _ => self.random.number() >> shift,
        }
    }

    fn text(&mut self, of: &CqlType) -> Vec<u8> {
        let len = match self.random.below(100) {
            0 => self.random.below(LONGEST),
            1..10 => self.random.below(600),
            _ => self.random.below(30),
        };
        if self.may_be_empty && self.random.percent(5) {
            return Vec::new();
        }
        match of {
            CqlType::Blob => std::iter::repeat_with(|| self.random.number() as u8).take(len + 1).collect(),
            CqlType::Text if self.random.percent(10) => format!("żółć 𝄞 {len}").into_bytes(),
            _ => format!("{} {}", self.random.below(1000), "value ".repeat(len / 6)).into_bytes(),
        }
    }
}

/// A version 1 UUID of a time in units of 100 ns since 1582; the other bytes are any.
pub fn time_uuid(time: u64, rest: u64) -> [u8; 16] {
    let high = (time << 32) | ((time >> 16) & 0xffff_0000) | 0x1000 | (time >> 48);
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&high.to_be_bytes());
    uuid[8..].copy_from_slice(&((rest & (u64::MAX >> 2)) | (1 << 63)).to_be_bytes());
    uuid
}

/// The number, or the one NaN there is.
fn double(number: f64) -> f64 {
    if number.is_nan() { f64::NAN } else { number }
}

/// The number, or the one NaN there is.
fn float(number: f32) -> f32 {
    if number.is_nan() { f32::NAN } else { number }
}

/// As few bytes as hold the number and its sign.
fn varint(number: i128) -> Vec<u8> {
    let bytes = number.to_be_bytes();
    let is_spare = |at: &usize| {
        let (byte, next) = (bytes[*at], bytes[*at + 1]);
        (byte == 0 && next < 0x80) || (byte == 0xff && next >= 0x80)
    };
    let spare = (0..bytes.len() - 1).take_while(is_spare).count();
    bytes[spare..].to_vec()
}

/// A number without zeros at its end, with a scale that depends on it.
fn decimal(mut number: i64) -> Vec<u8> {
    while number != 0 && number % 10 == 0 {
        number /= 10;
    }
    let scale = if number == 0 { 0 } else { (number % 9) as i32 };
    [scale.to_be_bytes().to_vec(), varint(i128::from(number))].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_of_their_types_and_equal_ones_are_the_same() {
        let types = [
            "AsciiType",
            "LongType",
            "BytesType",
            "BooleanType",
            "SimpleDateType",
            "DecimalType",
            "DoubleType",
            "FloatType",
            "InetAddressType",
            "Int32Type",
            "ShortType",
            "UTF8Type",
            "TimeType",
            "TimestampType",
            "TimeUUIDType",
            "ByteType",
            "UUIDType",
            "IntegerType",
            "DurationType",
            "FrozenType(SetType(DecimalType))",
            "FrozenType(MapType(Int32Type,UTF8Type))",
            "TupleType(Int32Type,UTF8Type)",
            "VectorType(UTF8Type,2)",
        ];
        for name in types {
            let of = CqlType::parse(name).unwrap();
            let mut random = Random::new(1);
            let values: Vec<Bytes> =
                (0..300).map(|_| Values { random: &mut random, may_be_empty: true }.value(&of)).collect();
            for (a, b) in values.iter().zip(&values[1..]) {
                of.validate(a).unwrap_or_else(|error| panic!("{name} {a:?}: {error}"));
                assert_eq!(of.compare(a, b).is_eq(), a == b, "{name}: {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn time_uuids_are_in_the_order_of_their_times() {
        let times = [0, 1, 0xffff_ffff, 0x1_0000_0000, 0xffff_ffff_ffff, 0x1_0000_0000_0000, (1 << 60) - 1];
        let uuids = times.map(|time| time_uuid(time, 7));
        assert!(uuids.windows(2).all(|pair| CqlType::TimeUuid.compare(&pair[0], &pair[1]).is_lt()));
        assert!(uuids.iter().all(|uuid| CqlType::TimeUuid.validate(uuid).is_ok()));
    }
}
