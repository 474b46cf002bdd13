//! Which values their JSON or their text tells to the byte.
//!
//! What `sstabledump` prints is for people: a float that is no number is `null`, an empty boolean looks like
//! false, a varint may have leading bytes that say nothing, a counter is not what it counts. Where printed
//! values are to be written again, these need their bytes beside them.

use serde_json::Value;

use super::date::PLAIN_MILLIS;
use super::parts::{take_count, take_element, take_part};
use super::{CqlType, float, uuid};

/// The date of 1970-01-01, and the first one of the year 10000.
const DATES: std::ops::Range<u32> = 1 << 31..(1 << 31) + 2_932_897;
/// Nanoseconds.
const DAY: i64 = 86_400_000_000_000;

impl CqlType {
    /// Whether `json`, which [`CqlType::write_json`] made of `bytes`, is read back as these bytes, and these are
    /// a valid value.
    pub fn is_exact_json(&self, bytes: &[u8], json: &str) -> bool {
        match self {
            CqlType::Float => {
                let double = json.parse::<f64>();
                double.is_ok_and(|double| (double as f32).to_be_bytes() == bytes)
            }
            CqlType::Reversed(base) => base.is_exact_json(bytes, json),
            _ if self.is_plain_json(bytes) => true,
            _ => serde_json::from_str::<Value>(json)
                .is_ok_and(|json| self.from_json(&json).is_ok_and(|back| self.is_same(&back, bytes))),
        }
    }

    /// Whether `text`, which [`CqlType::write_text`] made of `bytes`, is read back as these bytes, and these are
    /// a valid value.
    pub fn is_exact_text(&self, bytes: &[u8], text: &str) -> bool {
        self.is_plain(bytes) || self.from_text(text).is_ok_and(|back| self.is_same(&back, bytes))
    }

    fn is_same(&self, back: &[u8], bytes: &[u8]) -> bool {
        back == bytes && self.validate(bytes).is_ok()
    }

    /// Whether the JSON certainly tells the value: also where it is composed of values whose JSON does.
    fn is_plain_json(&self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        let is_plain = match self {
            CqlType::List { element, .. } => is_plain_list(element, &mut rest, |_, _| true),
            CqlType::Set { element, .. } => {
                is_plain_list(element, &mut rest, |last, next| element.compare(last, next).is_lt())
            }
            CqlType::Map { key, value, .. } => is_plain_map(key, value, &mut rest),
            CqlType::Tuple(fields) => fields.iter().all(|field| field.take_plain(&mut rest)),
            CqlType::Udt(udt) => {
                udt.fields.iter().all(|(name, field)| !name.contains('"') && field.take_plain(&mut rest))
            }
            // Where elements have lengths, these may be written in several ways.
            CqlType::Vector { element, dimension } if element.fixed_len().is_some() => (0..*dimension)
                .all(|_| take_element(element, &mut rest).is_some_and(|bytes| element.is_plain_json(bytes))),
            CqlType::Float => return is_plain_float(bytes),
            CqlType::Reversed(base) => return base.is_plain_json(bytes),
            native => return native.is_plain(bytes),
        };
        is_plain && rest.is_empty()
    }

    /// Takes a field of a tuple; whether its JSON certainly tells it. There is but one null that does.
    fn take_plain(&self, rest: &mut &[u8]) -> bool {
        let is_null = rest.starts_with(&[0xff; 4]);
        match take_part(rest) {
            Some(Some(bytes)) => self.is_plain_json(bytes),
            Some(None) => is_null,
            None => false,
        }
    }

    /// Whether both forms certainly tell the value, as they do for nearly all. It is known to have them.
    fn is_plain(&self, bytes: &[u8]) -> bool {
        match self {
            CqlType::Ascii | CqlType::Text | CqlType::Blob => true,
            CqlType::Boolean => matches!(bytes, [0 | 1]),
            CqlType::TinyInt => bytes.len() == 1,
            CqlType::SmallInt => bytes.len() == 2,
            CqlType::Int | CqlType::Inet => bytes.len() == 4,
            CqlType::BigInt => bytes.len() == 8,
            CqlType::Double => bytes.try_into().is_ok_and(|bytes| f64::from_be_bytes(bytes).is_finite()),
            CqlType::Uuid => bytes.len() == 16,
            CqlType::TimeUuid => bytes.try_into().is_ok_and(|bytes| uuid::version(bytes) == 1),
            CqlType::Timestamp => is_within(bytes, PLAIN_MILLIS.end),
            CqlType::Time => is_within(bytes, DAY),
            CqlType::Date => bytes.try_into().is_ok_and(|bytes| DATES.contains(&u32::from_be_bytes(bytes))),
            CqlType::VarInt => is_shortest(bytes),
            CqlType::Empty => bytes.is_empty(),
            CqlType::Reversed(base) => base.is_plain(bytes),
            _ => false,
        }
    }
}

/// Takes a list whose elements follow one another as `may_follow` says.
fn is_plain_list(element: &CqlType, rest: &mut &[u8], may_follow: impl Fn(&[u8], &[u8]) -> bool) -> bool {
    let mut last: Option<&[u8]> = None;
    take_count(rest).is_some_and(|count| {
        count >= 0
            && (0..count).all(|_| {
                let Some(Some(next)) = take_part(rest) else { return false };
                last.replace(next).is_none_or(|last| may_follow(last, next)) && element.is_plain_json(next)
            })
    })
}

/// An object of JSON that begins with this name is taken for a number by who reads it here.
const NUMBER: &[u8] = b"$serde_json::private::Number";

/// Takes a map. Its keys are strings in JSON, so they have to be plain whatever is made of them.
fn is_plain_map(key: &CqlType, value: &CqlType, rest: &mut &[u8]) -> bool {
    let mut last: Option<&[u8]> = None;
    take_count(rest).is_some_and(|count| {
        count >= 0
            && (0..count).all(|_| {
                let (Some(Some(next)), Some(Some(of))) = (take_part(rest), take_part(rest)) else {
                    return false;
                };
                let is_next = last.replace(next).is_none_or(|last| key.compare(last, next).is_lt());
                is_next && next != NUMBER && key.is_plain(next) && value.is_plain_json(of)
            })
    })
}

/// The way back is over a double, which could round twice.
fn is_plain_float(bytes: &[u8]) -> bool {
    let Ok(value) = bytes.try_into().map(f32::from_be_bytes) else { return false };
    let mut text = String::new();
    float::write_float(value, &mut text);
    value.is_finite() && text.parse::<f64>().is_ok_and(|double| (double as f32).to_bits() == value.to_bits())
}

fn is_within(bytes: &[u8], end: i64) -> bool {
    bytes.try_into().is_ok_and(|bytes| (0..end).contains(&i64::from_be_bytes(bytes)))
}

/// Whether an integer has no leading byte that only repeats its sign.
fn is_shortest(bytes: &[u8]) -> bool {
    !matches!(bytes, [] | [0, 0..0x80, ..] | [0xff, 0x80..=0xff, ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_exact(kind: &CqlType, bytes: &[u8]) -> (bool, bool) {
        let json = kind.to_json(bytes).unwrap();
        let text = kind.to_text(bytes).unwrap();
        (kind.is_exact_json(bytes, &json), kind.is_exact_text(bytes, &text))
    }

    #[test]
    fn what_is_lost_is_known() {
        assert_eq!(is_exact(&CqlType::Float, &f32::NAN.to_be_bytes()), (false, true));
        assert_eq!(is_exact(&CqlType::Double, &f64::INFINITY.to_be_bytes()), (false, true));
        assert_eq!(is_exact(&CqlType::Double, &0x7ff8_0000_0000_0001u64.to_be_bytes()), (false, false));
        assert_eq!(is_exact(&CqlType::Boolean, &[]), (false, false));
        assert_eq!(is_exact(&CqlType::Boolean, &[7]), (false, false));
        assert_eq!(is_exact(&CqlType::VarInt, &[0, 1]), (false, false));
        assert_eq!(is_exact(&CqlType::Timestamp, &i64::MIN.to_be_bytes()), (false, false));
        assert_eq!(is_exact(&CqlType::Int, &[]), (true, true));
        assert!(!is_exact(&CqlType::Inet, &[[0; 10], [0xff; 10]].concat()[..16]).0);
    }

    #[test]
    fn nested_values_count() {
        let list = CqlType::list(CqlType::Float, true);
        let of = |value: f32| [&[0, 0, 0, 1, 0, 0, 0, 4][..], &value.to_be_bytes()].concat();
        assert_eq!(is_exact(&list, &of(1.5)), (true, true));
        assert!(list.is_plain_json(&of(1.5)));
        assert!(!is_exact(&list, &of(f32::NAN)).0);
        let set = CqlType::set(CqlType::TinyInt, true);
        assert!(!is_exact(&set, &[0, 0, 0, 2, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1]).0, "not in order");
    }
}
