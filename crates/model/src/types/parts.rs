//! How the bytes of a composed value are cut into those of its parts.
//!
//! ```text
//! list, set   count:i32 (len:i32 bytes)*            a negative length is null
//! map         count:i32 (len:i32 key len:i32 value)*
//! tuple, UDT  (len:i32 bytes)*                      missing ones at the end are null
//! vector      bytes*                                if all elements have one length
//!             (len:vint bytes)*                     otherwise
//! composite   [0xffff] (len:u16 bytes end:i8)*      0xffff marks what belongs to static columns
//! ```
//!
//! The `take_` functions take a piece off the front of a slice, and are `None` where it is cut short.

use super::{CqlType, TypeError, vint};

/// What a composite of static columns begins with.
const STATIC_MARKER: [u8; 2] = [0xff, 0xff];

/// One part of a value; `None` is null.
pub(super) type Part<'a> = Option<&'a [u8]>;

/// Takes the number of elements of a collection.
pub(super) fn take_count(rest: &mut &[u8]) -> Option<i32> {
    take_array(rest).map(i32::from_be_bytes)
}

/// Takes a part with a four-byte length.
pub(super) fn take_part<'a>(rest: &mut &'a [u8]) -> Option<Part<'a>> {
    match usize::try_from(take_count(rest)?) {
        Ok(len) => take(rest, len).map(Some),
        Err(_) => Some(None),
    }
}

/// Takes a part with a two-byte length.
pub(super) fn take_short<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u16::from_be_bytes(take_array(rest)?);
    take(rest, usize::from(len))
}

/// Takes one element of a vector.
pub(super) fn take_element<'a>(element: &CqlType, rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = match element.fixed_len() {
        Some(len) => len,
        None => usize::try_from(vint::take_unsigned(rest)?).ok()?,
    };
    take(rest, len)
}

/// Takes the mark of static columns, if the composite begins with it; whether it does.
pub(super) fn take_static_marker(rest: &mut &[u8]) -> bool {
    match rest.strip_prefix(&STATIC_MARKER) {
        Some(tail) => {
            *rest = tail;
            true
        }
        None => false,
    }
}

/// Takes `N` bytes.
pub(super) fn take_array<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*bytes)
}

/// The first `N` bytes of a number, which may have others behind it, as Cassandra reads one.
pub(super) fn head<const N: usize>(kind: &'static str, bytes: &[u8]) -> Result<[u8; N], TypeError> {
    let head = bytes.first_chunk::<N>();
    head.copied().ok_or_else(|| TypeError::bytes(kind, format!("{} bytes where {N} are needed", bytes.len())))
}

/// Appends a part with a four-byte length, or null.
pub(super) fn put_part(part: Part<'_>, out: &mut Vec<u8>) {
    match part {
        Some(bytes) => {
            out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
        None => out.extend_from_slice(&(-1i32).to_be_bytes()),
    }
}

/// Appends a part with a two-byte length; `None` if it is too long for one.
pub(super) fn put_short(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let len = u16::try_from(bytes.len()).ok()?;
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
    Some(())
}

/// Appends one element of a vector.
pub(super) fn put_element(element: &CqlType, bytes: &[u8], out: &mut Vec<u8>) {
    if element.fixed_len().is_none() {
        vint::put_unsigned(bytes.len() as u64, out);
    }
    out.extend_from_slice(bytes);
}

/// A collection of `parts`, of which `per_entry` make one element.
pub(super) fn pack<'a>(parts: impl IntoIterator<Item = &'a [u8]>, per_entry: usize) -> Vec<u8> {
    let mut out = vec![0; 4];
    let mut count = 0usize;
    for part in parts {
        put_part(Some(part), &mut out);
        count += 1;
    }
    out[..4].copy_from_slice(&((count / per_entry) as i32).to_be_bytes());
    out
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (bytes, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    Some(bytes)
}
