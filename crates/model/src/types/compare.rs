//! The order of values.
//!
//! Every order is total over all bytes there are. Values of most types are ranked as empty, then valid, then
//! malformed, and the malformed ones stand in the order of their bytes; integers and booleans of a length that they do not have stand among the others. Cassandra
//! throws where we do that.
//!
//! Types that are compared in a binary search, integers and text, take a path without branches on length.

use std::cmp::Ordering;

use super::parts::{Part, take_count, take_element, take_part};
use super::{CqlType, UserType, composite, decimal, uuid, varint};
use crate::key::token_of;

impl CqlType {
    /// Orders two values as Cassandra orders them where they are clustering columns or cell paths.
    // Searches do little else: a call would take longer than comparing two numbers.
    #[inline(always)]
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            CqlType::Text | CqlType::Ascii | CqlType::Blob => a.cmp(b),
            CqlType::Int => compare_ints(a, b, i32::from_be_bytes),
            CqlType::BigInt | CqlType::Timestamp => compare_ints(a, b, i64::from_be_bytes),
            other => other.compare_others(a, b),
        }
    }

    /// Whether values that are equal in this order are the same bytes, whatever bytes they are.
    pub fn is_equal_by_bytes(&self) -> bool {
        match self {
            CqlType::Reversed(base) => base.is_equal_by_bytes(),
            CqlType::Text
            | CqlType::Ascii
            | CqlType::Blob
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::SmallInt
            | CqlType::TinyInt
            | CqlType::Timestamp
            | CqlType::Date
            | CqlType::Time
            | CqlType::Inet
            | CqlType::Uuid
            | CqlType::TimeUuid
            | CqlType::LexicalUuid => true,
            // A number has many forms, a truth too, and all that is composed of others may have such.
            _ => false,
        }
    }

    fn compare_others(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            CqlType::SmallInt => compare_ints(a, b, i16::from_be_bytes),
            CqlType::TinyInt => compare_ints(a, b, i8::from_be_bytes),
            CqlType::TimeUuid => uuid::compare_time(a, b),
            CqlType::Uuid => uuid::compare(a, b),
            CqlType::LexicalUuid => uuid::compare_lexical(a, b),
            CqlType::Reversed(base) => base.compare(b, a),
            CqlType::Boolean => first_is_set(a).cmp(&first_is_set(b)),
            CqlType::Empty => Ordering::Equal,
            CqlType::Float => compare_floats(a, b),
            CqlType::Double => compare_doubles(a, b),
            CqlType::VarInt => varint::compare(a, b),
            CqlType::Decimal => decimal::compare(a, b),
            CqlType::Date
            | CqlType::Time
            | CqlType::Inet
            | CqlType::Duration
            | CqlType::LegacyTimestamp
            | CqlType::Counter
            | CqlType::ColumnToCollection(_)
            | CqlType::Custom(_) => a.cmp(b),
            composed => composed.compare_composed(a, b),
        }
    }

    fn compare_composed(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            CqlType::List { element, .. } | CqlType::Set { element, .. } => {
                compare_collections(&[element], a, b)
            }
            CqlType::Map { key, value, .. } => compare_collections(&[key, value], a, b),
            CqlType::Tuple(fields) => compare_tuples(fields.iter(), a, b),
            CqlType::Udt(udt) => compare_tuples(udt.field_types(), a, b),
            CqlType::Vector { element, dimension } => compare_vectors(element, *dimension, a, b),
            CqlType::Composite(parts) => composite::compare(parts, a, b),
            CqlType::DynamicComposite(aliases) => composite::compare_dynamic(aliases, a, b),
            CqlType::PartitionerOrder { partitioner, .. } => compare_keys(partitioner, a, b),
            _ => a.cmp(b),
        }
    }
}

impl UserType {
    /// The types of the fields.
    pub(super) fn field_types(&self) -> impl ExactSizeIterator<Item = &CqlType> {
        self.fields.iter().map(|(_, field)| field)
    }
}

/// Orders by `order` what `is_valid` accepts; empty values come before, malformed ones after.
pub(super) fn compare_ranked(
    a: &[u8],
    b: &[u8],
    is_valid: impl Fn(&[u8]) -> bool,
    order: impl FnOnce(&[u8], &[u8]) -> Ordering,
) -> Ordering {
    let rank = |value: &[u8]| match value {
        [] => 0,
        value if is_valid(value) => 1,
        _ => 2,
    };
    match (rank(a), rank(b)) {
        (1, 1) => order(a, b),
        (2, 2) => a.cmp(b),
        (a, b) => a.cmp(&b),
    }
}

/// Orders parts of one type; null comes first.
pub(super) fn compare_parts(part: &CqlType, a: Part<'_>, b: Part<'_>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => part.compare(a, b),
        (a, b) => a.is_some().cmp(&b.is_some()),
    }
}

/// Signed integers of `N` bytes.
#[inline]
fn compare_ints<const N: usize, I: Ord>(a: &[u8], b: &[u8], read: fn([u8; N]) -> I) -> Ordering {
    match (<[u8; N]>::try_from(a), <[u8; N]>::try_from(b)) {
        (Ok(a), Ok(b)) => read(a).cmp(&read(b)),
        _ => compare_signed_bytes(a, b),
    }
}

/// The order of signed integers of one length, extended to any lengths: a signed byte, then unsigned ones.
fn compare_signed_bytes(a: &[u8], b: &[u8]) -> Ordering {
    match (a.split_first(), b.split_first()) {
        (Some((a, a_rest)), Some((b, b_rest))) => {
            (*a as i8).cmp(&(*b as i8)).then_with(|| a_rest.cmp(b_rest))
        }
        _ => a.len().cmp(&b.len()),
    }
}

fn first_is_set(value: &[u8]) -> Option<bool> {
    value.first().map(|first| *first != 0)
}

fn compare_floats(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 4]>::try_from(a), <[u8; 4]>::try_from(b)) {
        (Ok(a), Ok(b)) => compare_as_java(f32::from_be_bytes(a).into(), f32::from_be_bytes(b).into()),
        _ => compare_ranked(a, b, |value| value.len() == 4, |a, b| a.cmp(b)),
    }
}

fn compare_doubles(a: &[u8], b: &[u8]) -> Ordering {
    match (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => compare_as_java(f64::from_be_bytes(a), f64::from_be_bytes(b)),
        _ => compare_ranked(a, b, |value| value.len() == 8, |a, b| a.cmp(b)),
    }
}

/// All not-a-numbers are one, and the greatest; minus zero comes before zero.
fn compare_as_java(a: f64, b: f64) -> Ordering {
    let one_nan = |value: f64| if value.is_nan() { f64::NAN.abs() } else { value };
    one_nan(a).total_cmp(&one_nan(b))
}

/// Element by element, each of which has parts of the given types; then the longer one is the greater.
fn compare_collections(types: &[&CqlType], a: &[u8], b: &[u8]) -> Ordering {
    let is_valid = |value: &[u8]| is_collection(value, types.len());
    compare_ranked(a, b, is_valid, |mut a, mut b| {
        let counts = (take_count(&mut a), take_count(&mut b));
        let types = types.iter().cycle();
        for part in types {
            let (Some(a), Some(b)) = (take_part(&mut a), take_part(&mut b)) else { break };
            let order = compare_parts(part, a, b);
            if order != Ordering::Equal {
                return order;
            }
        }
        counts.0.cmp(&counts.1)
    })
}

/// Whether the bytes are a collection of elements of `per_entry` parts, and nothing else.
fn is_collection(value: &[u8], per_entry: usize) -> bool {
    let mut rest = value;
    let Some(count) = take_count(&mut rest).and_then(|count| usize::try_from(count).ok()) else {
        return false;
    };
    (0..count * per_entry).all(|_| take_part(&mut rest).is_some()) && rest.is_empty()
}

/// Part by part, of which those that are missing are null. There may be more than the type has fields: it had more of them, or has by
/// now, as a user defined type gets new ones.
fn compare_tuples<'t>(types: impl Iterator<Item = &'t CqlType>, a: &[u8], b: &[u8]) -> Ordering {
    compare_ranked(a, b, is_tuple, |mut a, mut b| {
        for field in types {
            let order = compare_parts(field, take_part(&mut a).flatten(), take_part(&mut b).flatten());
            if order != Ordering::Equal {
                return order;
            }
        }
        while !(a.is_empty() && b.is_empty()) {
            let order = take_part(&mut a).flatten().cmp(&take_part(&mut b).flatten());
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    })
}

/// Whether the bytes are parts, and nothing else.
fn is_tuple(value: &[u8]) -> bool {
    let mut rest = value;
    while !rest.is_empty() {
        if take_part(&mut rest).is_none() {
            return false;
        }
    }
    true
}

fn compare_vectors(element: &CqlType, dimension: u32, a: &[u8], b: &[u8]) -> Ordering {
    let is_valid = |value: &[u8]| {
        let mut rest = value;
        (0..dimension).all(|_| take_element(element, &mut rest).is_some()) && rest.is_empty()
    };
    compare_ranked(a, b, is_valid, |mut a, mut b| {
        for _ in 0..dimension {
            let order = compare_parts(element, take_element(element, &mut a), take_element(element, &mut b));
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    })
}

/// Partition keys, in the order of their partitioner where we know it.
fn compare_keys(partitioner: &str, a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() || !partitioner.ends_with("Murmur3Partitioner") {
        return a.cmp(b);
    }
    token_of(a).cmp(&token_of(b)).then_with(|| a.cmp(b))
}
