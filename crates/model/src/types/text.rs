//! The text of values, as it stands in partition keys and cell paths that `sstabledump` prints.
//!
//! ```text
//! 2023-11-14T22:13:20.123Z       a timestamp, not as in JSON
//! 0000000200000004…              collections and vectors are their bytes
//! 1:a\:b:@                       the fields of a tuple; the last one is null
//! ```

use super::composite::Kinds;
use super::duration::Duration;
use super::parts::{head, take_part};
use super::{CqlType, TypeError, date, decimal, float, inet, uuid, varint};
use crate::hex::push_hex;

impl CqlType {
    /// Whether the text of a value is that of its bytes.
    pub(super) fn is_written_in_hex(&self) -> bool {
        matches!(
            self,
            CqlType::Blob
                | CqlType::Counter
                | CqlType::List { .. }
                | CqlType::Set { .. }
                | CqlType::Map { .. }
                | CqlType::Vector { .. }
                | CqlType::PartitionerOrder { .. }
                | CqlType::ColumnToCollection(_)
                | CqlType::Custom(_)
        )
    }

    /// Appends the text of a value; what is not valid has none.
    ///
    /// # Errors
    /// If the bytes are no value of this type.
    pub fn write_text(&self, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        match self {
            CqlType::Tuple(fields) => return self.write_fields(fields.iter(), bytes, out),
            CqlType::Udt(udt) => return self.write_fields(udt.field_types(), bytes, out),
            CqlType::Reversed(base) => return base.write_text(bytes, out),
            CqlType::Composite(kinds) => return Kinds::Listed(kinds).write_text(bytes, out),
            CqlType::DynamicComposite(aliases) => return Kinds::Named(aliases).write_text(bytes, out),
            hex if hex.is_written_in_hex() => push_hex(bytes, out),
            CqlType::Empty => {}
            native => {
                native.validate(bytes)?;
                return if bytes.is_empty() { Ok(()) } else { native.write_native_text(bytes, out) };
            }
        }
        Ok(())
    }

    /// The text of a value.
    ///
    /// # Errors
    /// If the bytes are no value of this type.
    pub fn to_text(&self, bytes: &[u8]) -> Result<String, TypeError> {
        let mut text = String::new();
        self.write_text(bytes, &mut text)?;
        Ok(text)
    }

    /// Appends the text of a valid value that is not empty.
    fn write_native_text(&self, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        let kind = self.kind();
        match self {
            CqlType::Ascii | CqlType::Text => out.push_str(self.read_str(bytes)?),
            CqlType::Timestamp | CqlType::LegacyTimestamp => {
                date::write_timestamp(i64::from_be_bytes(head(kind, bytes)?), 'T', out);
            }
            CqlType::Date => date::write_date(u32::from_be_bytes(head(kind, bytes)?), out),
            CqlType::Time => date::write_time(i64::from_be_bytes(head(kind, bytes)?), out),
            CqlType::Duration => Duration::decode(bytes)?.write(out),
            CqlType::Inet => inet::write(bytes, out)?,
            CqlType::Uuid | CqlType::TimeUuid | CqlType::LexicalUuid => uuid::write(&head(kind, bytes)?, out),
            number => number.write_number(bytes, out)?,
        }
        Ok(())
    }

    /// Appends the text of a boolean or a number that is not empty; bytes that follow it are ignored.
    pub(super) fn write_number(&self, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        let kind = self.kind();
        match self {
            CqlType::Boolean => out.push_str(if head::<1>(kind, bytes)? == [0] { "false" } else { "true" }),
            CqlType::TinyInt => push_integer(i8::from_be_bytes(head(kind, bytes)?), out),
            CqlType::SmallInt => push_integer(i16::from_be_bytes(head(kind, bytes)?), out),
            CqlType::Int => push_integer(i32::from_be_bytes(head(kind, bytes)?), out),
            CqlType::BigInt | CqlType::Counter => push_integer(i64::from_be_bytes(head(kind, bytes)?), out),
            CqlType::Float => float::write_float(f32::from_be_bytes(head(kind, bytes)?), out),
            CqlType::Double => float::write_double(f64::from_be_bytes(head(kind, bytes)?), out),
            CqlType::VarInt => varint::write(bytes, out),
            CqlType::Decimal => decimal::write(bytes, out)?,
            _ => return Err(TypeError::bytes(kind, "it has no text")),
        }
        Ok(())
    }

    /// The bytes of `ascii` or `text`, once they are known to be it.
    pub(super) fn read_str<'v>(&self, bytes: &'v [u8]) -> Result<&'v str, TypeError> {
        let is_good = matches!(self, CqlType::Text) || bytes.is_ascii();
        let text = std::str::from_utf8(bytes).ok().filter(|_| is_good);
        text.ok_or_else(|| TypeError::bytes(self.kind(), "it is not text"))
    }

    fn write_fields<'t>(
        &self,
        fields: impl Iterator<Item = &'t CqlType>,
        bytes: &[u8],
        out: &mut String,
    ) -> Result<(), TypeError> {
        let mut rest = bytes;
        for (i, field) in fields.enumerate() {
            if rest.is_empty() {
                break;
            }
            out.push_str(if i == 0 { "" } else { ":" });
            match take_part(&mut rest) {
                Some(Some(part)) => {
                    out.push_str(&field.to_text(part)?.replace(':', "\\:").replace('@', "\\@"))
                }
                Some(None) => out.push('@'),
                None => return Err(TypeError::bytes(self.kind(), "it is cut")),
            }
        }
        Ok(())
    }
}

/// Appends an integer's digits.
fn push_integer(number: impl itoa::Integer, out: &mut String) {
    out.push_str(itoa::Buffer::new().format(number));
}
