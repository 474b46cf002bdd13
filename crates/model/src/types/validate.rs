//! Which bytes are a value of a type: the lengths and the contents that Cassandra accepts.

use super::composite::Kinds;
use super::counter::CounterContext;
use super::duration::Duration;
use super::parts::{take_count, take_element, take_part};
use super::{CqlType, TypeError, uuid};

impl CqlType {
    /// Checks that `bytes` are a value of this type.
    ///
    /// A counter is checked as the number that clients see; its cells hold a context, see
    /// [`CqlType::validate_cell`].
    ///
    /// # Errors
    /// If they are none.
    pub fn validate(&self, bytes: &[u8]) -> Result<(), TypeError> {
        match self {
            CqlType::Boolean => self.expect_len(bytes, &[0, 1]),
            CqlType::TinyInt => self.expect_len(bytes, &[1]),
            CqlType::SmallInt => self.expect_len(bytes, &[2]),
            CqlType::Date => self.expect_len(bytes, &[4]),
            CqlType::Time => self.expect_len(bytes, &[8]),
            CqlType::Empty => self.expect_len(bytes, &[0]),
            CqlType::Int | CqlType::Float => self.expect_len(bytes, &[0, 4]),
            CqlType::BigInt
            | CqlType::Counter
            | CqlType::Double
            | CqlType::Timestamp
            | CqlType::LegacyTimestamp => self.expect_len(bytes, &[0, 8]),
            CqlType::Inet => self.expect_len(bytes, &[0, 4, 16]),
            CqlType::Uuid | CqlType::LexicalUuid => self.expect_len(bytes, &[0, 16]),
            CqlType::TimeUuid => self.validate_time_uuid(bytes),
            CqlType::Ascii if !bytes.is_ascii() => Err(self.refuse("a byte is not ASCII")),
            CqlType::Text if !is_text(bytes) => Err(self.refuse("it is not UTF-8")),
            CqlType::Decimal if (1..4).contains(&bytes.len()) => Err(self.refuse("the scale is cut")),
            CqlType::Duration => validate_duration(bytes),
            composed => composed.validate_composed(bytes),
        }
    }

    /// Checks the value of a cell of a column of this type: of a multi-cell collection, one element; of a
    /// counter, a context.
    ///
    /// # Errors
    /// If it is none.
    pub fn validate_cell(&self, bytes: &[u8]) -> Result<(), TypeError> {
        match self {
            CqlType::Counter => CounterContext::parse(bytes).map(|_| ()),
            CqlType::Udt(udt) if !udt.frozen => Ok(()),
            other => other.cell_value_type(None).unwrap_or(other).validate(bytes),
        }
    }

    fn validate_composed(&self, bytes: &[u8]) -> Result<(), TypeError> {
        match self {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                self.validate_collection(&[element], bytes)
            }
            CqlType::Map { key, value, .. } => self.validate_collection(&[key, value], bytes),
            CqlType::Tuple(fields) => self.validate_tuple(fields.iter(), bytes),
            CqlType::Udt(udt) => self.validate_tuple(udt.field_types(), bytes),
            CqlType::Vector { element, dimension } => self.validate_vector(element, *dimension, bytes),
            CqlType::Reversed(base) => base.validate(bytes),
            CqlType::Composite(kinds) => Kinds::Listed(kinds).validate(bytes),
            CqlType::DynamicComposite(aliases) => Kinds::Named(aliases).validate(bytes),
            _ => Ok(()),
        }
    }

    fn validate_time_uuid(&self, bytes: &[u8]) -> Result<(), TypeError> {
        self.expect_len(bytes, &[0, 16])?;
        match bytes.try_into() {
            Ok(uuid) if uuid::version(uuid) != 1 => Err(self.refuse("its version is not 1")),
            _ => Ok(()),
        }
    }

    fn validate_collection(&self, entry: &[&CqlType], bytes: &[u8]) -> Result<(), TypeError> {
        let mut rest = bytes;
        let count = take_count(&mut rest).ok_or_else(|| self.refuse("the number of elements is cut"))?;
        for part in (0..count).flat_map(|_| entry) {
            match take_part(&mut rest) {
                Some(Some(bytes)) => part.validate(bytes)?,
                Some(None) => return Err(self.refuse("an element is null")),
                None => return Err(self.refuse("it is cut")),
            }
        }
        self.expect_end(rest)
    }

    fn validate_tuple<'t>(
        &self,
        fields: impl Iterator<Item = &'t CqlType>,
        bytes: &[u8],
    ) -> Result<(), TypeError> {
        let mut rest = bytes;
        for field in fields {
            if rest.is_empty() {
                return Ok(());
            }
            if let Some(part) = take_part(&mut rest).ok_or_else(|| self.refuse("it is cut"))? {
                field.validate(part)?;
            }
        }
        self.expect_end(rest)
    }

    fn validate_vector(&self, element: &CqlType, dimension: u32, bytes: &[u8]) -> Result<(), TypeError> {
        let mut rest = bytes;
        for _ in 0..dimension {
            element.validate(take_element(element, &mut rest).ok_or_else(|| self.refuse("it is cut"))?)?;
        }
        self.expect_end(rest)
    }

    fn expect_end(&self, rest: &[u8]) -> Result<(), TypeError> {
        if rest.is_empty() { Ok(()) } else { Err(self.refuse(&format!("{} bytes follow it", rest.len()))) }
    }

    fn expect_len(&self, bytes: &[u8], lens: &[usize]) -> Result<(), TypeError> {
        if lens.contains(&bytes.len()) {
            return Ok(());
        }
        let lens: Vec<String> = lens.iter().map(usize::to_string).collect();
        Err(self.refuse(&format!("{} bytes where {} are needed", bytes.len(), lens.join(" or "))))
    }

    fn refuse(&self, what: &str) -> TypeError {
        TypeError::bytes(self.kind(), what)
    }
}

fn validate_duration(bytes: &[u8]) -> Result<(), TypeError> {
    if Duration::decode(bytes)?.has_one_sign() {
        return Ok(());
    }
    Err(TypeError::bytes("duration", "its parts have different signs"))
}

/// Whether Cassandra takes the bytes for UTF-8. It is laxer than the standard: it lets code points of
/// surrogates through, those above the last one, and some bytes that are no continuation.
fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() || is_lax_text(bytes)
}

fn is_lax_text(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let more = match first {
            0..0x80 => 0,
            0xc0 | 0xc2..0xe0 => 1,
            0xe0..0xf0 => 2,
            0xf0..0xf8 => 3,
            _ => return false,
        };
        let Some((continuation, tail)) = tail.split_at_checked(more) else { return false };
        let second_is_good = match (first, continuation.first()) {
            (_, None) => true,
            (0xc0, Some(second)) => *second == 0x80,
            (0xe0, Some(second)) => second & 0xe0 != 0x80,
            (0xf0, Some(second)) => second & 0x30 != 0,
            (_, Some(second)) => second & 0xc0 == 0x80,
        };
        if !second_is_good || continuation.iter().skip(1).any(|byte| byte & 0xc0 != 0x80) {
            return false;
        }
        rest = tail;
    }
    true
}
