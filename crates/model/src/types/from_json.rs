//! Values from JSON: what [`CqlType::write_json`] and [`CqlType::write_row_json`] write, and other forms that Cassandra reads.
//!
//! Numbers may stand in strings, and whatever is composed may be a string of JSON itself: so it is where it
//! is the key of a map. A decimal keeps the digits it is written with; Cassandra loses some on the way. A number that is too
//! large for a float is refused; Cassandra makes it infinite.

use std::str::FromStr;

use serde_json::{Map, Number, Value};

use super::parts::{pack, put_element, put_part};
use super::{CqlType, TypeError, UserType};
use crate::hex::parse_hex;

impl CqlType {
    /// The bytes of the value that `json` describes.
    ///
    /// # Errors
    /// If it describes no value of this type.
    pub fn from_json(&self, json: &Value) -> Result<Vec<u8>, TypeError> {
        match self {
            CqlType::List { element, .. } => self.list_from_json(element, json),
            CqlType::Set { element, .. } => self.set_from_json(element, json),
            CqlType::Map { key, value, .. } => self.map_from_json(key, value, json),
            CqlType::Tuple(fields) => self.tuple_from_json(fields, json),
            CqlType::Udt(udt) => self.udt_from_json(udt, json),
            CqlType::Vector { element, dimension } => self.vector_from_json(element, *dimension, json),
            CqlType::Reversed(base) => base.from_json(json),
            CqlType::PartitionerOrder { key: Some(key), .. } => key.from_json(json),
            native => match json {
                Value::String(text) => native.string_from_json(text, json),
                Value::Number(number) => native.number_from_json(number, json),
                Value::Bool(value) if *native == CqlType::Boolean => Ok(vec![u8::from(*value)]),
                _ => Err(native.refuse_json(json, "it is of another kind")),
            }
            .and_then(|bytes| native.refuse_overflow(bytes, json)),
        }
    }

    /// What is written with digits is a number: where it would become infinite, Cassandra lets it.
    fn refuse_overflow(&self, bytes: Vec<u8>, json: &Value) -> Result<Vec<u8>, TypeError> {
        let is_infinite = match self {
            CqlType::Float => {
                bytes.as_slice().try_into().is_ok_and(|bytes| f32::from_be_bytes(bytes).is_infinite())
            }
            CqlType::Double => {
                bytes.as_slice().try_into().is_ok_and(|bytes| f64::from_be_bytes(bytes).is_infinite())
            }
            _ => false,
        };
        let is_named = || json.as_str().is_some_and(|text| text.contains("Infinity"));
        match is_infinite && !is_named() {
            true => Err(self.refuse_json(json, "it is beyond what can be held")),
            false => Ok(bytes),
        }
    }

    /// Appends the bytes of the value that the text of some JSON describes.
    ///
    /// # Errors
    /// If it is no JSON, or describes no value of this type.
    pub fn put_json(&self, json: &str, out: &mut Vec<u8>) -> Result<(), TypeError> {
        match (self.unreversed(), plain_string(json)) {
            (CqlType::Text, Some(text)) => out.extend_from_slice(text.as_bytes()),
            (CqlType::Ascii, Some(text)) if text.is_ascii() => out.extend_from_slice(text.as_bytes()),
            (CqlType::Int, None) if let Some(number) = plain_integer(json) => {
                out.extend_from_slice(&i32::to_be_bytes(number));
            }
            (CqlType::BigInt, None) if let Some(number) = plain_integer(json) => {
                out.extend_from_slice(&i64::to_be_bytes(number));
            }
            (CqlType::Boolean, None) if json == "true" || json == "false" => {
                out.push(u8::from(json == "true"))
            }
            _ => {
                let parsed: Value = serde_json::from_str(json)
                    .map_err(|error| self.refuse_text(json, &format!("it is no JSON: {error}")))?;
                out.extend_from_slice(&self.from_json(&parsed)?);
            }
        }
        Ok(())
    }

    fn string_from_json(&self, text: &str, json: &Value) -> Result<Vec<u8>, TypeError> {
        match self {
            CqlType::Blob
            | CqlType::ColumnToCollection(_)
            | CqlType::Custom(_)
            | CqlType::PartitionerOrder { .. } => text
                .strip_prefix("0x")
                .and_then(parse_hex)
                .ok_or_else(|| self.refuse_json(json, "0x and hexadecimal digits were expected")),
            CqlType::Counter => Err(self.refuse_json(json, "a counter is not a value")),
            other => other.from_text(text),
        }
    }

    fn number_from_json(&self, number: &Number, json: &Value) -> Result<Vec<u8>, TypeError> {
        let text = number.to_string();
        match self {
            CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::VarInt
            | CqlType::Decimal
            | CqlType::Double => self.from_text(&text),
            CqlType::Float => {
                // The way there is over a double, and may round twice.
                let double = number.as_f64().ok_or_else(|| self.refuse_json(json, "it is too large"))?;
                Ok((double as f32).to_be_bytes().to_vec())
            }
            CqlType::Timestamp | CqlType::LegacyTimestamp => CqlType::BigInt.from_text(&text),
            _ => Err(self.refuse_json(json, "it is a number")),
        }
    }

    fn list_from_json(&self, element: &CqlType, json: &Value) -> Result<Vec<u8>, TypeError> {
        let elements = self.elements_from_json(element, json)?;
        Ok(pack(elements.iter().map(Vec::as_slice), 1))
    }

    /// As a list, but in order, and without what is in it twice.
    fn set_from_json(&self, element: &CqlType, json: &Value) -> Result<Vec<u8>, TypeError> {
        let mut elements = self.elements_from_json(element, json)?;
        elements.sort_by(|a, b| element.compare(a, b));
        elements.dedup_by(|a, b| element.compare(a, b).is_eq());
        Ok(pack(elements.iter().map(Vec::as_slice), 1))
    }

    /// In order, and each key once, though it may be there in several words.
    fn map_from_json(&self, key: &CqlType, value: &CqlType, json: &Value) -> Result<Vec<u8>, TypeError> {
        let parsed = self.unquoted(json)?;
        let Some(object) = parsed.as_ref().unwrap_or(json).as_object() else {
            return Err(self.refuse_json(json, "an object was expected"));
        };
        let mut entries = Vec::with_capacity(object.len());
        for (name, json) in object {
            self.refuse_null(json)?;
            entries.push((key.from_json(&Value::String(name.clone()))?, value.from_json(json)?));
        }
        entries.sort_by(|a, b| key.compare(&a.0, &b.0));
        entries.dedup_by(|next, kept| {
            let is_same = key.compare(&next.0, &kept.0).is_eq();
            if is_same {
                std::mem::swap(&mut next.1, &mut kept.1);
            }
            is_same
        });
        Ok(pack(entries.iter().flat_map(|(key, value)| [key.as_slice(), value]), 2))
    }

    fn tuple_from_json(&self, fields: &[CqlType], json: &Value) -> Result<Vec<u8>, TypeError> {
        let parsed = self.unquoted(json)?;
        let Some(values) =
            parsed.as_ref().unwrap_or(json).as_array().filter(|values| values.len() == fields.len())
        else {
            return Err(self.refuse_json(json, "a list of as many items as it has fields was expected"));
        };
        let mut out = Vec::new();
        for (field, value) in fields.iter().zip(values) {
            field.put_from_json(Some(value), &mut out)?;
        }
        Ok(out)
    }

    fn udt_from_json(&self, udt: &UserType, json: &Value) -> Result<Vec<u8>, TypeError> {
        let parsed = self.unquoted(json)?;
        let Some(object) = parsed.as_ref().unwrap_or(json).as_object() else {
            return Err(self.refuse_json(json, "an object was expected"));
        };
        let values: Map<String, Value> =
            object.iter().map(|(name, value)| (field_name(name), value.clone())).collect();
        if let Some(unknown) = values.keys().find(|name| udt.fields.iter().all(|field| field.0 != **name)) {
            return Err(self.refuse_json(json, &format!("it has no field '{unknown}'")));
        }
        let mut out = Vec::new();
        for (name, field) in &udt.fields {
            field.put_from_json(values.get(name), &mut out)?;
        }
        Ok(out)
    }

    fn vector_from_json(
        &self,
        element: &CqlType,
        dimension: u32,
        json: &Value,
    ) -> Result<Vec<u8>, TypeError> {
        let elements = self.elements_from_json(element, json)?;
        if elements.len() != dimension as usize {
            return Err(self.refuse_json(json, &format!("{dimension} items were expected")));
        }
        let mut out = Vec::new();
        for bytes in &elements {
            if element.fixed_len().is_some_and(|len| len != bytes.len()) {
                return Err(self.refuse_json(json, "an item is empty"));
            }
            put_element(element, bytes, &mut out);
        }
        Ok(out)
    }

    fn elements_from_json(&self, element: &CqlType, json: &Value) -> Result<Vec<Vec<u8>>, TypeError> {
        let parsed = self.unquoted(json)?;
        let Some(values) = parsed.as_ref().unwrap_or(json).as_array() else {
            return Err(self.refuse_json(json, "a list was expected"));
        };
        let read = |value| {
            self.refuse_null(value)?;
            element.from_json(value)
        };
        values.iter().map(read).collect()
    }

    /// Appends the part of a tuple; nothing and null are null.
    fn put_from_json(&self, json: Option<&Value>, out: &mut Vec<u8>) -> Result<(), TypeError> {
        match json {
            None | Some(Value::Null) => put_part(None, out),
            Some(value) => put_part(Some(&self.from_json(value)?), out),
        }
        Ok(())
    }

    /// The JSON in a string; `None` if it is none.
    fn unquoted(&self, json: &Value) -> Result<Option<Value>, TypeError> {
        let Value::String(text) = json else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|error| self.refuse_json(json, &error.to_string()))
    }

    fn refuse_null(&self, json: &Value) -> Result<(), TypeError> {
        if json.is_null() { Err(self.refuse_json(json, "an element is null")) } else { Ok(()) }
    }

    fn refuse_json(&self, json: &Value, what: &str) -> TypeError {
        self.refuse_text(&json.to_string(), what)
    }
}

/// What is in the quotes of a JSON string that needs no look at its escapes.
fn plain_string(json: &str) -> Option<&str> {
    let text = json.strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    text.bytes().all(is_plain).then_some(text)
}

/// An integer without anything that JSON would refuse.
fn plain_integer<I: FromStr>(json: &str) -> Option<I> {
    let digits = json.strip_prefix('-').unwrap_or(json);
    let is_plain = json == "0" || digits.starts_with(|c: char| c.is_ascii_digit() && c != '0');
    if is_plain { json.parse().ok() } else { None }
}

/// The name of a field: as it is in quotes, in lower case without them.
fn field_name(name: &str) -> String {
    match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
        Some(exact) => exact.to_owned(),
        None => name.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Different words may be one value, and different bytes too.
    #[test]
    fn sets_and_maps_have_each_element_once() {
        let bytes = |kind: &str, json: &str| {
            let kind = CqlType::parse_cql(kind, &|_, _| None).unwrap();
            (kind.from_json(&serde_json::from_str(json).unwrap()).unwrap(), kind)
        };
        for (kind, twice, once) in [
            ("frozen<set<decimal>>", "[1.0, 1.00, 2]", "[1.0, 2]"),
            ("frozen<map<int, text>>", r#"{"1":"a","01":"a","2":"b"}"#, r#"{"1":"a","2":"b"}"#),
        ] {
            let (twice, kind) = bytes(kind, twice);
            assert_eq!(twice, bytes(&kind.cql_name(), once).0, "{kind}");
        }
    }

    #[test]
    fn the_shortcuts_change_nothing() {
        let kinds =
            [CqlType::Text, CqlType::Ascii, CqlType::Int, CqlType::BigInt, CqlType::Boolean, CqlType::Blob];
        let texts = [
            "0",
            "-7",
            "01",
            "+1",
            "-",
            "1.0",
            "1e3",
            "2147483648",
            "true",
            "null",
            "\"\"",
            "\"a\"",
            "\"7\"",
            "\"ż\"",
            "\"\\n\"",
            "\"\n\"",
            "\"a\"b\"",
            "\"0x00\"",
            "\"",
            "",
            "[]",
        ];
        for (kind, text) in kinds.iter().flat_map(|kind| texts.map(|text| (kind, text))) {
            let mut put = vec![9];
            let slow = serde_json::from_str(text).ok().and_then(|json| kind.from_json(&json).ok());
            let quick = kind.put_json(text, &mut put).is_ok().then(|| put.split_off(1));
            assert_eq!(quick, slow, "{kind:?} {text}");
        }
    }
}
