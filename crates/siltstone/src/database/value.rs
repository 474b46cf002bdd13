//! Values as programs have them, made into the bytes of a column's type.

use std::ops::Deref;

use model::CqlType;
use model::hex::to_hex;
use model::types::TypeError;
use serde_json::{Number, Value as Json};
use smallvec::{SmallVec, smallvec};

use crate::keys::in_words;
use crate::{Error, Result};

/// A value that is to be written or looked for.
///
/// What it becomes depends on the column: an [`Value::Integer`] is four bytes for `int` and eight for `bigint`, a
/// [`Value::Text`] is itself for `text` and is parsed for `uuid`, `timestamp` or `inet`. What does not fit is refused.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Nothing: deletes the column.
    Null,
    /// The bytes as CQL has them, for any column; of a collection that is not frozen, those of a frozen one.
    Raw(Vec<u8>),
    /// For `boolean`.
    Boolean(bool),
    /// For all types of numbers, as far as it fits; for `timestamp`, milliseconds since 1970.
    Integer(i64),
    /// For `float`, `double` and `decimal`.
    Float(f64),
    /// For `text` and `ascii` as it is; for other types, what they are as text: `2024-01-31T12:00:00Z`.
    Text(String),
    /// For `blob`; 16 bytes for `uuid` and `timeuuid`.
    Blob(Vec<u8>),
    /// What JSON says: for collections, tuples and user types.
    Json(Box<Json>),
}

/// The bytes of a value: short ones, as most keys are, have no place of their own in memory.
pub(super) type Encoded = SmallVec<[u8; 16]>;

/// The bytes of a value: those that it has, or others that were made of it.
#[derive(Debug)]
pub(super) enum Coded<'a> {
    Given(&'a [u8]),
    Number(NumberBytes),
    Made(Encoded),
}

/// Types of which a number of the type's width is a value, whatever it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum NumberType {
    Int,
    BigInt,
    Float,
    Double,
}

/// The bytes of a number, the highest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberBytes {
    /// Its own, and zeros behind them.
    bytes: [u8; 8],
    len: usize,
}

/// The values of a key's columns, in their order. One or two, as most keys have, have no place of their own in memory.
#[derive(Clone, Debug)]
pub struct Values(Few);

/// One value is nothing but that: a key of several columns takes longer to be looked at and let go.
#[derive(Clone, Debug)]
enum Few {
    One(Value),
    Several(SmallVec<[Value; 2]>),
}

/// What the values of a key's columns are made of: one value, a tuple of two to five, or a `Vec` of [`Value`]s. `()` is none.
pub trait IntoValues {
    /// The values in the order of the columns.
    fn into_values(self) -> Values;
}

impl Value {
    /// The bytes of a value of this type; `None` is null.
    pub(super) fn encode(&self, column: &str, data_type: &CqlType) -> Result<Option<Coded<'_>>> {
        let encoded = match self.number(NumberType::of(data_type)) {
            Some(number) => Ok(Some(Coded::Number(number))),
            None => self.checked(data_type),
        };
        encoded.map_err(|error| Error::Usage(format!("{column}: {}", in_words(error))))
    }

    /// A number of the type's width: nothing of it need be checked.
    #[inline(always)]
    pub(super) fn number(&self, of: Option<NumberType>) -> Option<NumberBytes> {
        // Both widths are one number that is cut off: as bytes of their own they would be put together byte by byte.
        let short = |bits: u32| (u64::from(bits) << 32, size_of::<u32>());
        let (bits, len) = match (self, of?) {
            (Value::Integer(number), NumberType::Int) => short(i32::try_from(*number).ok()? as u32),
            (Value::Integer(number), NumberType::BigInt) => (*number as u64, size_of::<u64>()),
            (Value::Float(number), NumberType::Double) => (number.to_bits(), size_of::<u64>()),
            (Value::Float(number), NumberType::Float) => short((*number as f32).to_bits()),
            _ => return None,
        };
        Some(NumberBytes { bytes: bits.to_be_bytes(), len })
    }

    /// About how many bytes it takes.
    pub(super) fn about(&self) -> usize {
        match self {
            Value::Raw(bytes) | Value::Blob(bytes) => bytes.len(),
            Value::Text(text) => text.len(),
            _ => size_of::<i64>(),
        }
    }

    fn checked(&self, data_type: &CqlType) -> std::result::Result<Option<Coded<'_>>, TypeError> {
        let bytes = self.bytes(data_type.unreversed())?;
        bytes.iter().try_for_each(|bytes| data_type.validate(bytes))?;
        Ok(bytes)
    }

    fn bytes(&self, data_type: &CqlType) -> std::result::Result<Option<Coded<'_>>, TypeError> {
        Ok(Some(match (self, data_type) {
            (Value::Null, _) => return Ok(None),
            (Value::Raw(bytes), _) => Coded::Given(bytes),
            (Value::Text(text), CqlType::Text | CqlType::Ascii) => Coded::Given(text.as_bytes()),
            (Value::Blob(bytes), CqlType::Blob | CqlType::Custom(_)) => Coded::Given(bytes),
            (Value::Blob(_), CqlType::Text | CqlType::Ascii) => {
                let what = "bytes are no text: give it as text, or as raw bytes".to_owned();
                return Err(TypeError::Bytes { kind: "text", what });
            }
            (Value::Blob(bytes), CqlType::Uuid | CqlType::TimeUuid | CqlType::LexicalUuid) => {
                Coded::Given(bytes)
            }
            _ => Coded::Made(Encoded::from_vec(data_type.from_json(&self.to_json())?)),
        }))
    }

    /// As JSON, for types that look closer.
    fn to_json(&self) -> Json {
        match self {
            Value::Null => Json::Null,
            Value::Boolean(value) => Json::Bool(*value),
            Value::Integer(number) => Json::Number((*number).into()),
            Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
            Value::Text(text) => Json::String(text.clone()),
            Value::Raw(bytes) | Value::Blob(bytes) => Json::String(format!("0x{}", to_hex(bytes))),
            Value::Json(json) => (**json).clone(),
        }
    }
}

impl NumberType {
    /// The same of a column's type, if it is one of these.
    #[inline]
    pub(super) fn of(data_type: &CqlType) -> Option<NumberType> {
        match data_type.unreversed() {
            CqlType::Int => Some(NumberType::Int),
            CqlType::BigInt | CqlType::Counter => Some(NumberType::BigInt),
            CqlType::Float => Some(NumberType::Float),
            CqlType::Double => Some(NumberType::Double),
            _ => None,
        }
    }
}

impl NumberBytes {
    /// The bytes as one's own.
    #[inline]
    pub(super) fn into_encoded(self) -> Encoded {
        let bytes = u128::from(u64::from_be_bytes(self.bytes)) << 64;
        Encoded::from_buf_and_len(bytes.to_be_bytes(), self.len)
    }
}

impl Deref for NumberBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Coded<'_> {
    /// The bytes as one's own.
    pub(super) fn into_encoded(self) -> Encoded {
        match self {
            Coded::Given(bytes) => bytes.into(),
            Coded::Number(number) => number.into_encoded(),
            Coded::Made(bytes) => bytes,
        }
    }
}

impl Deref for Coded<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match self {
            Coded::Given(bytes) => bytes,
            Coded::Number(number) => number,
            Coded::Made(bytes) => bytes,
        }
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl Deref for Values {
    type Target = [Value];

    #[inline]
    fn deref(&self) -> &[Value] {
        match &self.0 {
            Few::One(value) => std::slice::from_ref(value),
            Few::Several(values) => values,
        }
    }
}

impl Default for Values {
    fn default() -> Values {
        Values(Few::Several(SmallVec::new()))
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Values) -> bool {
        **self == **other
    }
}

impl IntoValues for Values {
    fn into_values(self) -> Values {
        self
    }
}

impl IntoValues for Vec<Value> {
    fn into_values(self) -> Values {
        Values(Few::Several(self.into()))
    }
}

impl IntoValues for () {
    fn into_values(self) -> Values {
        Values::default()
    }
}

macro_rules! from {
    ($($of:ty, $value:ident => $made:expr;)*) => {
        $(
            impl From<$of> for Value {
                fn from($value: $of) -> Value {
                    $made
                }
            }

            impl IntoValues for $of {
                #[inline]
                fn into_values(self) -> Values {
                    Values(Few::One(self.into()))
                }
            }
        )*
    };
}

from! {
    bool, value => Value::Boolean(value);
    i8, value => Value::Integer(value.into());
    i16, value => Value::Integer(value.into());
    i32, value => Value::Integer(value.into());
    i64, value => Value::Integer(value);
    u8, value => Value::Integer(value.into());
    u16, value => Value::Integer(value.into());
    u32, value => Value::Integer(value.into());
    f32, value => Value::Float(value.into());
    f64, value => Value::Float(value);
    &str, value => Value::Text(value.to_owned());
    &String, value => Value::Text(value.clone());
    String, value => Value::Text(value);
    Vec<u8>, value => Value::Blob(value);
    &[u8], value => Value::Blob(value.to_vec());
    &Vec<u8>, value => Value::Blob(value.clone());
    Json, value => if value.is_null() { Value::Null } else { Value::Json(Box::new(value)) };
}

impl<const LEN: usize> From<[u8; LEN]> for Value {
    fn from(value: [u8; LEN]) -> Value {
        Value::Blob(value.to_vec())
    }
}

impl<const LEN: usize> From<&[u8; LEN]> for Value {
    fn from(value: &[u8; LEN]) -> Value {
        Value::Blob(value.to_vec())
    }
}

impl<const LEN: usize> IntoValues for [u8; LEN] {
    fn into_values(self) -> Values {
        Values(Few::One(self.into()))
    }
}

impl IntoValues for Value {
    fn into_values(self) -> Values {
        Values(Few::One(self))
    }
}

macro_rules! tuples {
    ($($name:ident),*) => {
        impl<$($name: Into<Value>),*> IntoValues for ($($name,)*) {
            fn into_values(self) -> Values {
                #[expect(non_snake_case, reason = "the names of the types serve for their values too")]
                let ($($name,)*) = self;
                Values(Few::Several(smallvec![$($name.into()),*]))
            }
        }
    };
}

tuples!(A);
tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
tuples!(A, B, C, D, E);

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(value: impl Into<Value>, data_type: &str) -> std::result::Result<Option<Vec<u8>>, String> {
        let data_type = CqlType::parse(data_type).unwrap();
        let value = value.into();
        let bytes = value.encode("c", &data_type).map_err(|error| error.to_string())?;
        Ok(bytes.map(|bytes| bytes.to_vec()))
    }

    #[test]
    fn numbers_are_as_wide_as_their_column() {
        assert_eq!(bytes(7, "Int32Type"), Ok(Some(vec![0, 0, 0, 7])));
        assert_eq!(bytes(-1, "ByteType"), Ok(Some(vec![0xff])));
        assert_eq!(bytes(7, "ReversedType(LongType)"), Ok(Some(vec![0, 0, 0, 0, 0, 0, 0, 7])));
        assert_eq!(bytes(256, "IntegerType"), Ok(Some(vec![1, 0])));
        assert!(bytes(300, "ByteType").unwrap_err().starts_with("c: "));
        assert!(bytes(1_i64 << 40, "Int32Type").is_err());
        assert_eq!(bytes(0.5_f32, "FloatType"), bytes(0.5, "FloatType"));
        assert!(bytes(1, "UTF8Type").is_err());
    }

    #[test]
    fn text_is_parsed_where_it_must_be() {
        assert_eq!(bytes("é", "UTF8Type"), Ok(Some("é".as_bytes().to_vec())));
        assert!(bytes("é", "AsciiType").is_err());
        let uuid = "5a1c395e-b41f-11e5-9f22-ba0be0483c18";
        assert_eq!(bytes(uuid, "UUIDType").unwrap().unwrap().len(), 16);
        assert_eq!(bytes(bytes(uuid, "UUIDType").unwrap().unwrap(), "UUIDType"), bytes(uuid, "UUIDType"));
        assert_eq!(bytes([7; 16], "UUIDType"), Ok(Some(vec![7; 16])));
        assert_eq!(bytes(b"x", "BytesType"), bytes(vec![b'x'], "BytesType"));
        let text = uuid.to_owned();
        assert_eq!(bytes(&text, "UUIDType"), bytes(uuid, "UUIDType"));
        assert_eq!(bytes("127.0.0.1", "InetAddressType"), Ok(Some(vec![127, 0, 0, 1])));
        assert_eq!(bytes(None::<i32>, "UTF8Type"), Ok(None));
        let list = serde_json::json!([1, 2]);
        assert_eq!(bytes(list, "ListType(ByteType)").unwrap().unwrap().len(), 14);
        assert!(bytes(Value::Raw(vec![1]), "Int32Type").is_err());
    }

    #[test]
    fn keys_are_one_value_or_several() {
        assert_eq!(*7.into_values(), [Value::Integer(7)]);
        assert_eq!(*("a", 1_i64).into_values(), [Value::Text("a".to_owned()), Value::Integer(1)]);
        assert_eq!(*().into_values(), []);
    }
}
