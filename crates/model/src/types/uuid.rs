//! UUIDs: three orders and one text.
//!
//! ```text
//! 50554d6e-29bb-11e5-b345-feff819cdc9f
//! │        │    ││    └ clock sequence and node, 8 bytes
//! │        │    │└ high 12 bits of the time
//! │        │    └ version
//! └ low 32 └ middle 16 bits of the time
//! ```

use std::cmp::Ordering;

use super::TypeError;
use crate::hex::push_hex;

/// All but the version.
const REST: u64 = u64::MAX >> 4;

/// The order of `uuid`: by version, then of version 1 by time, of others by bytes.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(a_bits), Some(b_bits)) = (bits(a), bits(b)) else { return compare_odd(a, b) };
    let version = |bits: u128| bits >> 76 & 0xf;
    let order = version(a_bits).cmp(&version(b_bits));
    order.then_with(|| match version(a_bits) {
        1 => time(a_bits).cmp(&time(b_bits)).then_with(|| a[8..].cmp(&b[8..])),
        _ => a_bits.cmp(&b_bits),
    })
}

/// The order of `timeuuid`: by time, then by the rest as signed bytes.
pub(super) fn compare_time(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(a_bits), Some(b_bits)) = (bits(a), bits(b)) else { return compare_odd(a, b) };
    // With its sign bit turned over, a signed byte is ordered as an unsigned one.
    let rest = |bits: u128| bits as u64 ^ 0x8080_8080_8080_8080;
    time(a_bits).cmp(&time(b_bits)).then_with(|| rest(a_bits).cmp(&rest(b_bits)))
}

/// The order of `LexicalUUIDType`: two signed numbers.
pub(super) fn compare_lexical(a: &[u8], b: &[u8]) -> Ordering {
    let (Some(a_bits), Some(b_bits)) = (bits(a), bits(b)) else { return compare_odd(a, b) };
    let halves = |bits: u128| ((bits >> 64) as i64, bits as i64);
    halves(a_bits).cmp(&halves(b_bits))
}

/// A number that no greater UUID has a smaller one than: see [`CqlType::rank`](super::CqlType::rank).
pub(super) fn rank(value: &[u8]) -> u64 {
    let Some(bits) = bits(value) else { return 0 };
    let version = bits >> 76 & 0xf;
    let rest = if version == 1 { time(bits) as u64 & REST } else { (bits >> 68) as u64 };
    (version as u64) << 60 | rest
}

/// The same in the order of time.
pub(super) fn rank_of_time(value: &[u8]) -> u64 {
    bits(value).map_or(0, |bits| time(bits) as u64 ^ 1 << 63)
}

/// Appends the text of a UUID.
pub(super) fn write(uuid: &[u8; 16], out: &mut String) {
    for (i, part) in [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]].into_iter().enumerate()
    {
        out.push_str(if i == 0 { "" } else { "-" });
        push_hex(part, out);
    }
}

/// Reads the text of a UUID.
pub(super) fn parse(kind: &'static str, text: &str) -> Result<[u8; 16], TypeError> {
    let parts = [8, 4, 4, 4, 12];
    let well_formed =
        text.split('-').map(str::len).eq(parts) && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    if !well_formed {
        return Err(TypeError::text(kind, text, "8-4-4-4-12 hexadecimal digits were expected"));
    }
    let bits = u128::from_str_radix(&text.replace('-', ""), 16);
    bits.map(u128::to_be_bytes).map_err(|error| TypeError::text(kind, text, error.to_string()))
}

/// The version of a UUID.
pub(super) fn version(uuid: &[u8; 16]) -> u8 {
    uuid[6] >> 4
}

fn bits(value: &[u8]) -> Option<u128> {
    value.try_into().ok().map(u128::from_be_bytes)
}

/// The version and the time, its high bits first; signed, as Cassandra compares it.
fn time(bits: u128) -> i64 {
    let high = (bits >> 64) as u64;
    (high << 48 | (high << 16 & 0xffff_0000_0000) | high >> 32) as i64
}

/// Values of other lengths come before all UUIDs.
fn compare_odd(a: &[u8], b: &[u8]) -> Ordering {
    (a.len() == 16).cmp(&(b.len() == 16)).then_with(|| a.cmp(b))
}
