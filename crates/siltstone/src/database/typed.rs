//! Values of rows as programs have them, made of the bytes of a column: the way back from [`Value`](super::Value).

use model::CqlType;
use model::types::TypeError;
use serde_json::Value as Json;

use super::shape::ColumnInfo;
use crate::error::ValueError;
use crate::keys::in_words;
use crate::{Error, Result};

/// What a column can be read as, by [`Row::get_as`](super::Row::get_as).
///
/// | type | of columns |
/// |---|---|
/// | `bool` | `boolean` |
/// | `i8`, `i16`, `i32`, `i64` | all types of whole numbers and counters, as far as the number fits; `timestamp` as milliseconds since 1970 |
/// | `f32` | `float` |
/// | `f64` | `float`, `double`; `decimal` as the nearest one |
/// | `String` | `text` and `ascii` as they are; of all others what stands for them in JSON, without its quotes: `2024-01-31 12:00:00.000Z` |
/// | `Vec<u8>` | `blob`, and types that only their owner knows |
/// | `[u8; 16]` | `uuid` and `timeuuid` |
/// | [`serde_json::Value`] | all, as [`Row::to_json`](super::Row::to_json) has them |
pub trait FromCql: Sized {
    /// The value that sound bytes of a type are, which are not empty unless the type is one of texts or bytes.
    ///
    /// # Errors
    /// If the type's values are of another kind, or this one is out of range.
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<Self, TypeError>;
}

/// A column's value as what a program wants; `None` where it is null, or of no bytes though the type has no such value.
pub(super) fn value_as<T: FromCql>(column: &ColumnInfo, bytes: Option<&[u8]>) -> Result<Option<T>> {
    let (name, data_type) = (&column.name, column.data_type.unreversed());
    let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty() || may_be_empty(data_type)) else {
        return Ok(None);
    };
    // Of a counter a row has just the total.
    let checked = if data_type.is_counter() { Ok(()) } else { data_type.validate(bytes) };
    checked.map_err(|source| corrupt(column, source))?;
    let value = T::from_cql(data_type, bytes);
    value.map(Some).map_err(|error| Error::Usage(format!("{name}: {}", in_words(error))))
}

/// The bytes of a column in a row are no value of its type.
pub(super) fn corrupt(column: &ColumnInfo, source: TypeError) -> Error {
    Error::Value {
        path: column.name.clone().into(),
        place: "in a row".to_owned(),
        value: Box::new(ValueError { what: column.name.clone(), source }),
    }
}

/// Whether no bytes are a value by themselves.
fn may_be_empty(data_type: &CqlType) -> bool {
    matches!(data_type, CqlType::Text | CqlType::Ascii | CqlType::Blob | CqlType::Custom(_))
}

fn refused(data_type: &CqlType, wanted: &str) -> TypeError {
    TypeError::Bytes {
        kind: "value that can be read so",
        what: format!("{} is no {wanted}", data_type.cql_name()),
    }
}

impl FromCql for bool {
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<bool, TypeError> {
        match (data_type, bytes) {
            (CqlType::Boolean, [byte]) => Ok(*byte != 0),
            _ => Err(refused(data_type, "boolean")),
        }
    }
}

/// A whole number, or milliseconds.
fn integer(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<i128, TypeError> {
    match data_type {
        CqlType::TinyInt
        | CqlType::SmallInt
        | CqlType::Int
        | CqlType::BigInt
        | CqlType::Counter
        | CqlType::Timestamp
        | CqlType::LegacyTimestamp
        | CqlType::VarInt => {}
        _ => return Err(refused(data_type, "whole number")),
    }
    let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
    // Bytes in front of a varint that only repeat its sign.
    let surplus = bytes.len().saturating_sub(size_of::<i128>());
    if bytes[..surplus].iter().any(|&byte| byte != sign) {
        return Err(out_of_range(data_type));
    }
    let mut number = [sign; size_of::<i128>()];
    let tail = &bytes[surplus..];
    number[size_of::<i128>() - tail.len()..].copy_from_slice(tail);
    Ok(i128::from_be_bytes(number))
}

fn out_of_range(data_type: &CqlType) -> TypeError {
    TypeError::Bytes {
        kind: "number of that size",
        what: format!("the {} is out of range", data_type.cql_name()),
    }
}

macro_rules! integers {
    ($($of:ty)*) => {
        $(
            impl FromCql for $of {
                fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<$of, TypeError> {
                    integer(data_type, bytes)?.try_into().map_err(|_| out_of_range(data_type))
                }
            }
        )*
    };
}

integers!(i8 i16 i32 i64);

impl FromCql for f32 {
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<f32, TypeError> {
        match (data_type, bytes.first_chunk()) {
            (CqlType::Float, Some(bytes)) => Ok(f32::from_be_bytes(*bytes)),
            _ => Err(refused(data_type, "float")),
        }
    }
}

impl FromCql for f64 {
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<f64, TypeError> {
        match (data_type, bytes.first_chunk()) {
            (CqlType::Double, Some(bytes)) => Ok(f64::from_be_bytes(*bytes)),
            (CqlType::Float, _) => f32::from_cql(data_type, bytes).map(f64::from),
            (CqlType::Decimal, _) => {
                let number = data_type.to_text(bytes)?.parse().ok();
                // What is too large is parsed as infinite.
                number.filter(|number: &f64| number.is_finite()).ok_or_else(|| out_of_range(data_type))
            }
            _ => Err(refused(data_type, "number with a fraction")),
        }
    }
}

impl FromCql for String {
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<String, TypeError> {
        if let (CqlType::Text | CqlType::Ascii, Ok(text)) = (data_type, std::str::from_utf8(bytes)) {
            return Ok(text.to_owned());
        }
        Ok(match Json::from_cql(data_type, bytes)? {
            Json::String(text) => text,
            other => other.to_string(),
        })
    }
}

impl FromCql for Vec<u8> {
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<Vec<u8>, TypeError> {
        match data_type {
            CqlType::Blob | CqlType::Custom(_) => Ok(bytes.to_vec()),
            _ => Err(refused(data_type, "blob")),
        }
    }
}

impl FromCql for [u8; 16] {
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<[u8; 16], TypeError> {
        match (data_type, bytes.try_into()) {
            (CqlType::Uuid | CqlType::TimeUuid | CqlType::LexicalUuid, Ok(uuid)) => Ok(uuid),
            _ => Err(refused(data_type, "uuid")),
        }
    }
}

impl FromCql for Json {
    fn from_cql(data_type: &CqlType, bytes: &[u8]) -> std::result::Result<Json, TypeError> {
        let mut json = String::new();
        data_type.write_row_json(bytes, &mut json)?;
        serde_json::from_str(&json).map_err(|error| TypeError::Text {
            kind: "JSON",
            text: json,
            what: error.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::ColumnKind;
    use super::super::value::Value;
    use super::*;

    fn column(data_type: &str) -> ColumnInfo {
        let data_type = CqlType::parse(data_type).unwrap();
        ColumnInfo { name: "c".to_owned(), data_type, kind: ColumnKind::Regular }
    }

    /// What is written as a value of a type, and read as this.
    fn read<T: FromCql>(
        written: impl Into<Value>,
        data_type: &str,
    ) -> std::result::Result<Option<T>, String> {
        let (column, written) = (column(data_type), written.into());
        let bytes = written.encode("c", &column.data_type).unwrap();
        value_as(&column, bytes.as_deref()).map_err(|error| error.to_string())
    }

    #[test]
    fn numbers_are_what_they_were_where_they_fit() {
        for data_type in ["ByteType", "ShortType", "Int32Type", "LongType", "TimestampType", "IntegerType"] {
            for number in [-128, -1, 0, 1, 127] {
                assert_eq!(read::<i64>(number, data_type), Ok(Some(number.into())), "{data_type}");
                assert_eq!(read::<i8>(number, data_type), Ok(Some(number as i8)), "{data_type}");
                let reversed = format!("ReversedType({data_type})");
                assert_eq!(read::<i32>(number, &reversed), Ok(Some(number)), "{reversed}");
            }
        }
        for number in [i64::MIN, i64::MAX] {
            assert_eq!(read::<i64>(number, "IntegerType"), Ok(Some(number)));
            assert!(read::<i32>(number, "LongType").unwrap_err().contains("the bigint is out of range"));
        }
        let long = |bytes: &[u8]| value_as::<i64>(&column("IntegerType"), Some(bytes)).map_err(drop);
        assert_eq!(long(&[&[0xff; 20][..], &[0x80]].concat()), Ok(Some(-128)));
        assert_eq!(long(&[&[1][..], &[0; 20]].concat()), Err(()));
        assert_eq!(long(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0]), Err(()));
        assert_eq!(value_as(&column("CounterColumnType"), Some(&7_i64.to_be_bytes())).unwrap(), Some(7_i64));
        assert_eq!(read::<f32>(0.5, "FloatType"), Ok(Some(0.5)));
        assert_eq!(read::<f64>(0.5, "FloatType"), Ok(Some(0.5)));
        assert_eq!(read::<f64>(0.1, "DoubleType"), Ok(Some(0.1)));
        assert_eq!(read::<f64>("-12.50", "DecimalType"), Ok(Some(-12.5)));
        assert!(read::<f64>("1E+400", "DecimalType").unwrap_err().contains("out of range"));
        assert!(read::<f32>(0.1, "DoubleType").is_err());
        assert!(read::<f64>(1, "Int32Type").is_err());
    }

    #[test]
    fn everything_is_text_and_json() {
        for (json, data_type, text) in [
            (r#""é""#, "UTF8Type", "é"),
            (r#""""#, "UTF8Type", ""),
            ("true", "BooleanType", "true"),
            ("-7", "LongType", "-7"),
            (r#""127.0.0.1""#, "InetAddressType", "127.0.0.1"),
            (r#""5a1c395e-b41f-11e5-9f22-ba0be0483c18""#, "UUIDType", "5a1c395e-b41f-11e5-9f22-ba0be0483c18"),
            (r#""0xcafe""#, "BytesType", "0xcafe"),
            ("[1,2]", "ListType(ByteType)", "[1,2]"),
        ] {
            let json: Json = serde_json::from_str(json).unwrap();
            let written = || match &json {
                Json::String(text) if data_type == "UTF8Type" => Value::Text(text.clone()),
                other => Value::from(other.clone()),
            };
            assert_eq!(read::<Json>(written(), data_type), Ok(Some(json.clone())));
            assert_eq!(read::<String>(written(), data_type), Ok(Some(text.to_owned())));
        }
        let uuid = [7; 16];
        assert_eq!(read::<[u8; 16]>(uuid.to_vec(), "UUIDType"), Ok(Some(uuid)));
        assert_eq!(read::<Vec<u8>>(vec![1, 2], "BytesType"), Ok(Some(vec![1, 2])));
        assert_eq!(read::<bool>(true, "BooleanType"), Ok(Some(true)));
    }

    #[test]
    fn what_is_null_is_none_and_what_does_not_fit_says_so() {
        assert_eq!(read::<String>(None::<&str>, "UTF8Type"), Ok(None));
        assert_eq!(value_as::<i32>(&column("Int32Type"), Some(b"")).unwrap(), None);
        assert_eq!(value_as::<Vec<u8>>(&column("BytesType"), Some(b"")).unwrap(), Some(Vec::new()));
        let wrong = read::<i64>("a", "UTF8Type").unwrap_err();
        assert!(wrong.starts_with("c: ") && wrong.contains("text is no whole number"), "{wrong}");
        assert!(read::<bool>(1, "Int32Type").is_err());
        assert!(read::<Vec<u8>>("a", "UTF8Type").is_err());
        assert!(read::<[u8; 16]>(vec![0; 16], "BytesType").is_err());
        let corrupt = value_as::<i32>(&column("Int32Type"), Some(b"abc")).unwrap_err();
        assert!(matches!(corrupt, Error::Value { .. }), "{corrupt}");
    }
}
