//! JSON of values, as `sstabledump` prints it, and of rows.
//!
//! ```text
//! "2023-11-14 22:13:20.123Z"     a timestamp, not as in keys
//! {"1": ["a", "b"]}              keys of maps are strings, whatever they are
//! null                           what is not a number; it cannot be read back. In rows it is "NaN", "-Infinity"
//! ""                             a duration of zero; in rows it is "0s"
//! "0001-12-31 23:00:00.000Z"     a timestamp of the year 0, which looks like one of the year 1; in rows it is a number
//! ```
//!
//! Bytes behind a number are ignored, as Cassandra ignores them. Where it fails on an empty boolean, tinyint
//! or old date, this prints `""`, as for other empty values; and where it fails on a null element, `null`.

use super::duration::Duration;
use super::parts::{Part, head, take_count, take_element, take_part};
use super::time_format::append;
use super::{CqlType, TypeError, UserType, date, inet, uuid};
use crate::hex::push_hex;

/// Whose form of JSON it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// That of `sstabledump`, and of CQL's `SELECT JSON`.
    Dumped,
    /// That of rows, which tells all values so that they can be read back.
    Row,
}

impl CqlType {
    /// Appends the JSON of a value.
    ///
    /// Of a counter it is the number that the first eight bytes are, which is what `sstabledump` makes of a
    /// counter's cell; [`super::counter`] knows what was counted.
    ///
    /// # Errors
    /// If the bytes are no value of this type.
    pub fn write_json(&self, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        self.write_form(Form::Dumped, bytes, out)
    }

    /// The same, but that [`CqlType::from_json`] makes of it what the value was: numbers that are none, as `NaN`, are their names, a duration of zero
    /// is `"0s"`, and a timestamp before the year 1 or behind the year 9999 is the number of its milliseconds.
    ///
    /// What is read back as another value, though Cassandra lets them be written: an empty boolean, as `false`; an `inet` of 16 bytes that stands
    /// for one of four; a tuple with fewer fields, as one with nulls; other bits of a `NaN`; zeros in front of a `varint`. An empty `time` is not read back.
    ///
    /// # Errors
    /// If the bytes are no value of this type.
    pub fn write_row_json(&self, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        self.write_form(Form::Row, bytes, out)
    }

    fn write_form(&self, form: Form, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        match self {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                self.write_list(form, element, bytes, out)
            }
            CqlType::Map { key, value, .. } => self.write_map(form, key, value, bytes, out),
            CqlType::Tuple(fields) => self.write_tuple(form, fields, bytes, out),
            CqlType::Udt(udt) => self.write_udt(form, udt, bytes, out),
            CqlType::Vector { element, dimension } => {
                self.write_vector(form, element, *dimension, bytes, out)
            }
            CqlType::Reversed(base) => base.write_form(form, bytes, out),
            CqlType::PartitionerOrder { key: Some(key), .. } => key.write_form(form, bytes, out),
            CqlType::Composite(_) | CqlType::DynamicComposite(_) => {
                quote(&self.to_text(bytes)?, out);
                Ok(())
            }
            native => native.write_native_json(form, bytes, out),
        }
    }

    /// The JSON of a value.
    ///
    /// # Errors
    /// If the bytes are no value of this type.
    pub fn to_json(&self, bytes: &[u8]) -> Result<String, TypeError> {
        let mut json = String::new();
        self.write_json(bytes, &mut json)?;
        Ok(json)
    }

    fn write_native_json(&self, form: Form, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        match self {
            CqlType::Ascii | CqlType::Text => quote(self.read_str(bytes)?, out),
            CqlType::Float | CqlType::Double if !bytes.is_empty() && !self.is_finite(bytes)? => match form {
                Form::Dumped => out.push_str("null"),
                Form::Row => {
                    out.push('"');
                    self.write_number(bytes, out)?;
                    out.push('"');
                }
            },
            CqlType::Boolean
            | CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Counter
            | CqlType::Float
            | CqlType::Double
            | CqlType::VarInt
            | CqlType::Decimal
                if !bytes.is_empty() =>
            {
                self.write_number(bytes, out)?;
            }
            CqlType::Timestamp | CqlType::LegacyTimestamp
                if form == Form::Row
                    && let Some(millis) = far_millis(bytes) =>
            {
                append(out, format_args!("{millis}"));
            }
            _ => {
                out.push('"');
                self.write_inside_quotes(form, bytes, out)?;
                out.push('"');
            }
        }
        Ok(())
    }

    /// Appends what needs no escapes; empty values are nothing.
    fn write_inside_quotes(&self, form: Form, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        let kind = self.kind();
        match self {
            CqlType::Empty => {}
            CqlType::Time if bytes.is_empty() => out.push_str("null"),
            CqlType::Blob
            | CqlType::ColumnToCollection(_)
            | CqlType::Custom(_)
            | CqlType::PartitionerOrder { .. } => {
                out.push_str("0x");
                push_hex(bytes, out);
            }
            _ if bytes.is_empty() => {}
            CqlType::Timestamp | CqlType::LegacyTimestamp => {
                date::write_timestamp(i64::from_be_bytes(head(kind, bytes)?), ' ', out);
            }
            CqlType::Date => date::write_date(u32::from_be_bytes(head(kind, bytes)?), out),
            CqlType::Time => date::write_time(i64::from_be_bytes(head(kind, bytes)?), out),
            CqlType::Duration => {
                let before = out.len();
                Duration::decode(bytes)?.write(out);
                if form == Form::Row && out.len() == before {
                    out.push_str("0s");
                }
            }
            CqlType::Inet => inet::write(bytes, out)?,
            CqlType::Uuid | CqlType::LexicalUuid => uuid::write(&head(kind, bytes)?, out),
            CqlType::TimeUuid => {
                let mut uuid = head::<16>(kind, bytes)?;
                // Of a wrong version, the bit of the right one is printed as well.
                uuid[6] |= 0x10;
                uuid::write(&uuid, out);
            }
            _ => return Err(TypeError::bytes(kind, "it has no JSON")),
        }
        Ok(())
    }

    fn is_finite(&self, bytes: &[u8]) -> Result<bool, TypeError> {
        match self {
            CqlType::Float => Ok(f32::from_be_bytes(head("float", bytes)?).is_finite()),
            _ => Ok(f64::from_be_bytes(head("double", bytes)?).is_finite()),
        }
    }

    fn write_list(
        &self,
        form: Form,
        element: &CqlType,
        bytes: &[u8],
        out: &mut String,
    ) -> Result<(), TypeError> {
        let mut rest = bytes;
        let count = self.count(&mut rest)?;
        out.push('[');
        for i in 0..count {
            out.push_str(if i == 0 { "" } else { ", " });
            element.write_part(form, self.part(&mut rest)?, out)?;
        }
        out.push(']');
        Ok(())
    }

    fn write_map(
        &self,
        form: Form,
        key: &CqlType,
        value: &CqlType,
        bytes: &[u8],
        out: &mut String,
    ) -> Result<(), TypeError> {
        let mut rest = bytes;
        let count = self.count(&mut rest)?;
        out.push('{');
        for i in 0..count {
            out.push_str(if i == 0 { "" } else { ", " });
            let mut name = String::new();
            key.write_part(form, self.part(&mut rest)?, &mut name)?;
            if name.starts_with('"') {
                out.push_str(&name);
            } else {
                quote(&name, out);
            }
            out.push_str(": ");
            value.write_part(form, self.part(&mut rest)?, out)?;
        }
        out.push('}');
        Ok(())
    }

    fn write_tuple(
        &self,
        form: Form,
        fields: &[CqlType],
        bytes: &[u8],
        out: &mut String,
    ) -> Result<(), TypeError> {
        let mut rest = bytes;
        out.push('[');
        for (i, field) in fields.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            let part = if rest.is_empty() { None } else { self.part(&mut rest)? };
            field.write_part(form, part, out)?;
        }
        out.push(']');
        Ok(())
    }

    fn write_udt(&self, form: Form, udt: &UserType, bytes: &[u8], out: &mut String) -> Result<(), TypeError> {
        let mut rest = bytes;
        out.push('{');
        for (i, (name, field)) in udt.fields.iter().enumerate() {
            out.push_str(if i == 0 { "" } else { ", " });
            if *name == name.to_lowercase() {
                quote(name, out);
            } else {
                quote(&format!("\"{name}\""), out);
            }
            out.push_str(": ");
            let part = if rest.is_empty() { None } else { self.part(&mut rest)? };
            field.write_part(form, part, out)?;
        }
        if !rest.is_empty() {
            return Err(TypeError::bytes(self.kind(), "there are more fields than it has"));
        }
        out.push('}');
        Ok(())
    }

    fn write_vector(
        &self,
        form: Form,
        element: &CqlType,
        dimension: u32,
        bytes: &[u8],
        out: &mut String,
    ) -> Result<(), TypeError> {
        let mut rest = bytes;
        out.push('[');
        for i in 0..dimension {
            out.push_str(if i == 0 { "" } else { ", " });
            let part =
                take_element(element, &mut rest).ok_or_else(|| TypeError::bytes("vector", "it is cut"))?;
            element.write_form(form, part, out)?;
        }
        if !rest.is_empty() {
            return Err(TypeError::bytes("vector", format!("{} bytes follow it", rest.len())));
        }
        out.push(']');
        Ok(())
    }

    fn write_part(&self, form: Form, part: Part<'_>, out: &mut String) -> Result<(), TypeError> {
        match part {
            Some(bytes) => self.write_form(form, bytes, out),
            None => {
                out.push_str("null");
                Ok(())
            }
        }
    }

    fn count(&self, rest: &mut &[u8]) -> Result<i32, TypeError> {
        take_count(rest).ok_or_else(|| TypeError::bytes(self.kind(), "the number of elements is cut"))
    }

    fn part<'v>(&self, rest: &mut &'v [u8]) -> Result<Part<'v>, TypeError> {
        take_part(rest).ok_or_else(|| TypeError::bytes(self.kind(), "it is cut"))
    }
}

/// The milliseconds of a timestamp whose year does not have four digits, or is one before Christ.
fn far_millis(bytes: &[u8]) -> Option<i64> {
    let millis = i64::from_be_bytes(bytes.try_into().ok()?);
    (!date::PLAIN_MILLIS.contains(&millis)).then_some(millis)
}

/// Appends a JSON string, with the escapes that Cassandra's writer uses.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    // Most texts need no escape; that all bytes are looked at lets them be looked at together.
    if text.bytes().fold(false, |any, byte| any | needs_escape(byte)) {
        escape(text, out);
    } else {
        out.push_str(text);
    }
    out.push('"');
}

#[inline]
fn needs_escape(byte: u8) -> bool {
    (byte < b' ') | (byte == b'"') | (byte == b'\\')
}

fn escape(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(needs_escape) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x8 => out.push_str("\\b"),
            0xc => out.push_str("\\f"),
            control => out.push_str(&format!("\\u{control:04X}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}
