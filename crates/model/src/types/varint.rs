//! Integers of any length: two's complement, big-endian.
//!
//! ```text
//! 00 80            128: the sign needs a byte of its own
//! 80              -128
//! ff ff 80        -128 as well: bytes that only repeat the sign are allowed
//! ```

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::TypeError;

/// The order of integers; no bytes at all come first.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    let (a, b) = (trim_sign(a), trim_sign(b));
    let negative = |value: &[u8]| value[0] >= 0x80;
    match (negative(a), negative(b)) {
        (false, false) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
        (a, b) => b.cmp(&a),
    }
}

/// Appends the decimal digits.
pub(super) fn write(value: &[u8], out: &mut String) {
    match small(value) {
        Some(small) => out.push_str(&small.to_string()),
        None => out.push_str(&BigInt::from_signed_bytes_be(value).to_string()),
    }
}

/// Reads decimal digits with an optional sign.
pub(super) fn parse(kind: &'static str, text: &str) -> Result<Vec<u8>, TypeError> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let value = text.parse::<BigInt>().ok().filter(|_| all_digits);
    let value = value.ok_or_else(|| TypeError::text(kind, text, "an integer was expected"))?;
    Ok(value.to_signed_bytes_be())
}

/// The value, if it has at most 16 bytes.
pub(super) fn small(value: &[u8]) -> Option<i128> {
    let sign = if value.first()? >= &0x80 { 0xff } else { 0 };
    let mut bytes = [sign; 16];
    bytes.get_mut(16usize.checked_sub(value.len())?..)?.copy_from_slice(value);
    Some(i128::from_be_bytes(bytes))
}

/// Without the leading bytes that only repeat the sign; `value` is not empty.
fn trim_sign(mut value: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = value
        && let [second, ..] = rest
        && matches!((first, second), (0, 0..0x80) | (0xff, 0x80..))
    {
        value = rest;
    }
    value
}
