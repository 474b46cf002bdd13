//! Values from their text: what [`CqlType::write_text`] writes, and other forms that Cassandra reads.

use super::composite::{Kinds, split};
use super::duration::Duration;
use super::parts::put_part;
use super::{CqlType, TypeError, date, decimal, float, inet, uuid, varint};
use crate::hex::parse_hex;

impl CqlType {
    /// The bytes of the value that `text` spells. Of most types that are not text, an empty one is the
    /// empty value.
    ///
    /// # Errors
    /// If it spells no value of this type.
    pub fn from_text(&self, text: &str) -> Result<Vec<u8>, TypeError> {
        match self {
            CqlType::Ascii if !text.is_ascii() => Err(self.refuse_text(text, "it is not ASCII")),
            CqlType::Ascii | CqlType::Text => Ok(text.as_bytes().to_vec()),
            CqlType::Boolean if text.is_empty() || text.eq_ignore_ascii_case("false") => Ok(vec![0]),
            CqlType::Boolean if text.eq_ignore_ascii_case("true") => Ok(vec![1]),
            CqlType::Boolean => Err(self.refuse_text(text, "true or false was expected")),
            CqlType::Date => date::parse_date(text).map(|days| days.to_be_bytes().to_vec()),
            CqlType::Time => date::parse_time(text).map(|nanos| nanos.to_be_bytes().to_vec()),
            CqlType::Tuple(fields) => self.fields_from_text(fields.iter(), text),
            CqlType::Udt(udt) => self.fields_from_text(udt.field_types(), text),
            CqlType::Reversed(base) => base.from_text(text),
            CqlType::Composite(kinds) => Kinds::Listed(kinds).parse_text(text),
            CqlType::DynamicComposite(aliases) => Kinds::Named(aliases).parse_text(text),
            hex if hex.is_written_in_hex() => parse_hex(text).ok_or_else(|| {
                self.refuse_text(text, "pairs of hexadecimal digits, without 0x, were expected")
            }),
            _ if text.is_empty() => Ok(Vec::new()),
            native => native.native_from_text(text),
        }
    }

    fn native_from_text(&self, text: &str) -> Result<Vec<u8>, TypeError> {
        let kind = self.kind();
        match self {
            CqlType::TinyInt => self.int_from_text(text, i8::to_be_bytes),
            CqlType::SmallInt => self.int_from_text(text, i16::to_be_bytes),
            CqlType::Int => self.int_from_text(text, i32::to_be_bytes),
            CqlType::BigInt => self.int_from_text(text, i64::to_be_bytes),
            CqlType::VarInt => varint::parse(kind, text),
            CqlType::Decimal => decimal::parse(text),
            CqlType::Float => float::parse::<f32>(kind, text).map(|value| value.to_be_bytes().to_vec()),
            CqlType::Double => float::parse::<f64>(kind, text).map(|value| value.to_be_bytes().to_vec()),
            CqlType::Timestamp | CqlType::LegacyTimestamp => {
                date::parse_timestamp(text).map(|millis| millis.to_be_bytes().to_vec())
            }
            CqlType::Duration => Duration::parse(text).map(|duration| duration.encode()),
            CqlType::Inet => inet::parse(text),
            CqlType::Uuid | CqlType::LexicalUuid => uuid::parse(kind, text).map(|uuid| uuid.to_vec()),
            CqlType::TimeUuid => match uuid::parse(kind, text)? {
                uuid if uuid::version(&uuid) == 1 => Ok(uuid.to_vec()),
                _ => Err(self.refuse_text(text, "its version is not 1")),
            },
            _ => Err(self.refuse_text(text, "only the empty text was expected")),
        }
    }

    fn int_from_text<const N: usize, I>(
        &self,
        text: &str,
        write: fn(I) -> [u8; N],
    ) -> Result<Vec<u8>, TypeError>
    where
        I: std::str::FromStr<Err = std::num::ParseIntError>,
    {
        let refuse = || self.refuse_text(text, &format!("an integer of {} bits was expected", 8 * N));
        let parsed = text.parse::<I>().map_err(|_| refuse())?;
        Ok(write(parsed).to_vec())
    }

    fn fields_from_text<'t>(
        &self,
        mut fields: impl Iterator<Item = &'t CqlType>,
        text: &str,
    ) -> Result<Vec<u8>, TypeError> {
        let mut out = Vec::new();
        for part in split(text) {
            let field = fields.next().ok_or_else(|| self.refuse_text(text, "there are too many fields"))?;
            match part {
                "@" => put_part(None, &mut out),
                part => {
                    let plain = part.replace("\\:", ":").replace("\\@", "@");
                    put_part(Some(&field.from_text(&plain)?), &mut out);
                }
            }
        }
        Ok(out)
    }

    pub(super) fn refuse_text(&self, text: &str, what: &str) -> TypeError {
        TypeError::text(self.kind(), text, what)
    }
}
