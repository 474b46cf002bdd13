//! Decimals: an unscaled integer and how many of its digits stand behind the point.
//!
//! ```text
//! scale:i32 unscaled:varint        123, -2 is 12300 and prints as 1.23E+4
//! ```

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::compare::compare_ranked;
use super::{TypeError, varint};

/// The order of numbers: 1.5 and 1.50 are equal. Empty values come first.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    compare_ranked(
        a,
        b,
        |value| value.len() > 4,
        |a, b| match (split(a), split(b)) {
            (Some(a), Some(b)) => compare_split(a, b),
            _ => a.cmp(b),
        },
    )
}

/// Appends the text of a number, in Java's form.
pub(super) fn write(value: &[u8], out: &mut String) -> Result<(), TypeError> {
    let (scale, unscaled) =
        split(value).ok_or_else(|| TypeError::bytes("decimal", "5 bytes or more were expected"))?;
    let mut digits = String::new();
    varint::write(unscaled, &mut digits);
    let digits = match digits.strip_prefix('-') {
        Some(magnitude) => {
            out.push('-');
            magnitude
        }
        None => &digits,
    };
    write_scaled(digits, i64::from(scale), out);
    Ok(())
}

/// Reads a number: a sign, digits with a point somewhere, an exponent.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, TypeError> {
    let refuse = |what: &str| TypeError::text("decimal", text, what);
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, parse_exponent(exponent).ok_or_else(|| refuse("a bad exponent"))?)
        }
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale =
        i32::try_from(fraction.len() as i64 - exponent).map_err(|_| refuse("the exponent is too large"))?;
    let unscaled =
        varint::parse("decimal", &format!("{whole}{fraction}")).map_err(|_| refuse("not a number"))?;
    Ok([&scale.to_be_bytes()[..], &unscaled].concat())
}

/// The scale and the unscaled integer.
fn split(value: &[u8]) -> Option<(i32, &[u8])> {
    let (scale, unscaled) = value.split_first_chunk::<4>()?;
    (!unscaled.is_empty()).then(|| (i32::from_be_bytes(*scale), unscaled))
}

fn compare_split((a_scale, a): (i32, &[u8]), (b_scale, b): (i32, &[u8])) -> Ordering {
    if a_scale == b_scale {
        return varint::compare(a, b);
    }
    compare_small((a_scale, a), (b_scale, b)).unwrap_or_else(|| compare_large((a_scale, a), (b_scale, b)))
}

/// The order of numbers that fit 128 bits once they have the same scale.
fn compare_small((a_scale, a): (i32, &[u8]), (b_scale, b): (i32, &[u8])) -> Option<Ordering> {
    let apart = a_scale.abs_diff(b_scale);
    let (mut a, mut b) = (varint::small(a)?, varint::small(b)?);
    let coarser = if a_scale < b_scale { &mut a } else { &mut b };
    *coarser = coarser.checked_mul(10i128.checked_pow(apart)?)?;
    Some(a.cmp(&b))
}

/// The order of any numbers: by sign, by the place of the first digit, by the digits.
fn compare_large((a_scale, a): (i32, &[u8]), (b_scale, b): (i32, &[u8])) -> Ordering {
    let (a, b) = (BigInt::from_signed_bytes_be(a), BigInt::from_signed_bytes_be(b));
    if a.sign() != b.sign() || a.sign() == Sign::NoSign {
        return a.sign().cmp(&b.sign());
    }
    let (a_digits, b_digits) = (a.magnitude().to_string(), b.magnitude().to_string());
    let place = |digits: &str, scale: i32| digits.len() as i64 - i64::from(scale);
    let significant = |digits: &str| digits.trim_end_matches('0').to_owned();
    let order = place(&a_digits, a_scale)
        .cmp(&place(&b_digits, b_scale))
        .then_with(|| significant(&a_digits).cmp(&significant(&b_digits)));
    if a.sign() == Sign::Minus { order.reverse() } else { order }
}

/// Digits as they are, with a point, or with an exponent where there would be many zeros.
fn write_scaled(digits: &str, scale: i64, out: &mut String) {
    let exponent = digits.len() as i64 - 1 - scale;
    if scale == 0 {
        out.push_str(digits);
    } else if scale > 0 && exponent >= -6 {
        let zeros = usize::try_from(scale + 1 - digits.len() as i64).unwrap_or(0);
        let padded = "0".repeat(zeros) + digits;
        let (whole, fraction) = padded.split_at(padded.len() - scale as usize);
        out.push_str(&format!("{whole}.{fraction}"));
    } else {
        let (first, others) = digits.split_at(1);
        out.push_str(first);
        out.push_str(if others.is_empty() { "" } else { "." });
        out.push_str(others);
        if exponent != 0 {
            out.push_str(&format!("E{exponent:+}"));
        }
    }
}

/// A sign and at most ten digits that are not leading zeros.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let valid = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && digits.trim_start_matches('0').len() <= 10;
    text.parse().ok().filter(|_| valid)
}
