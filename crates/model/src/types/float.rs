//! Floating-point numbers as the text that Java 17 gives them.
//!
//! ```text
//! 1.5   100.0   1.0E10   1.0E-5   -0.0   NaN   -Infinity
//! ```
//!
//! Java before 19 does not always print the shortest digits that read back as the same number: 2.0E-3 is,
//! but 2.0E23 becomes 1.9999999999999998E23. The digits come from a free-format
//! generator whose last digit depends on the width of the integers it can work with, so this generator has
//! the same widths.

use std::cmp::Ordering;
use std::str::FromStr;

use num_bigint::BigUint;

use super::TypeError;
use super::time_format::append;

/// Appends the text of a double.
pub(super) fn write_double(value: f64, out: &mut String) {
    let bits = value.to_bits();
    write(value, Binary::new(bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32, 52, 1023), out);
}

/// Appends the text of a float.
pub(super) fn write_float(value: f32, out: &mut String) {
    let bits = value.to_bits();
    write(
        value.into(),
        Binary::new(u64::from(bits & ((1 << 23) - 1)), (bits >> 23 & 0xff) as i32, 23, 127),
        out,
    );
}

/// Reads a number as Java does: `1.5`, `-1e10`, `.5f`, `NaN`, `-Infinity`.
pub(super) fn parse<F: FromStr>(kind: &'static str, text: &str) -> Result<F, TypeError> {
    let trimmed = text.trim_matches(|c: char| c <= ' ');
    let magnitude = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    let number = match magnitude {
        "NaN" => magnitude,
        "Infinity" => trimmed,
        _ if magnitude.starts_with(|c: char| c == '.' || c.is_ascii_digit()) => {
            trimmed.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(trimmed)
        }
        _ => "",
    };
    number.parse().map_err(|_| TypeError::text(kind, text, "a number was expected"))
}

/// A positive number: `fraction` × 2^(`exponent` - 52), its highest bit being bit 52.
struct Binary {
    exponent: i32,
    fraction: u64,
    /// How many bits of the fraction its type keeps.
    significant: i32,
}

/// Digits behind an imaginary `0.`, times 10^`exponent`.
struct Decimal {
    digits: Vec<u8>,
    exponent: i32,
}

fn write(value: f64, binary: Binary, out: &mut String) {
    if value.is_nan() {
        return out.push_str("NaN");
    }
    out.push_str(if value.is_sign_negative() { "-" } else { "" });
    if value.is_infinite() {
        out.push_str("Infinity");
    } else if value == 0.0 {
        out.push_str("0.0");
    } else {
        binary.to_decimal().write(out);
    }
}

impl Binary {
    /// From the fields of a number whose fraction has `width` bits.
    fn new(fraction: u64, biased: i32, width: u32, bias: i32) -> Binary {
        let (fraction, exponent, significant) = match biased {
            // A subnormal number is brought to the same form, which it has fewer significant bits for.
            0 => {
                let shift = fraction.leading_zeros().saturating_sub(63 - width);
                (fraction << shift, 1 - shift as i32, 64 - fraction.leading_zeros() as i32)
            }
            _ => (fraction | 1 << width, biased, width as i32 + 1),
        };
        Binary { exponent: exponent - bias, fraction: fraction << (52 - width), significant }
    }

    fn to_decimal(&self) -> Decimal {
        match self.whole() {
            Some(whole) => self.whole_decimal(whole),
            None => self.generate(),
        }
    }

    /// The number, if it is an integer below 2^63.
    fn whole(&self) -> Option<u64> {
        let width = 53 - self.fraction.trailing_zeros() as i32;
        match self.exponent {
            exponent @ 52..=62 => Some(self.fraction << (exponent - 52)),
            exponent @ 0..52 if width <= exponent + 1 => Some(self.fraction >> (52 - exponent)),
            _ => None,
        }
    }

    /// All digits of an integer but those that its type does not keep.
    fn whole_decimal(&self, whole: u64) -> Decimal {
        let spare_bits = (self.exponent - self.significant - 1).max(0);
        let spare_digits = spare_bits as u32 * 30_103 / 100_000;
        let unit = 10u64.pow(spare_digits);
        let kept = if spare_digits == 0 { whole } else { (whole + unit / 2) / unit };
        let all = kept.to_string();
        let digits = all.trim_end_matches('0').as_bytes().iter().map(|digit| digit - b'0').collect();
        Decimal { digits, exponent: (all.len() as u32 + spare_digits) as i32 }
    }

    fn generate(&self) -> Decimal {
        let mut exponent = self.estimate_exponent();
        let mut generator = Generator::new(self, exponent);
        let mut digits = Vec::new();
        let mut step = generator.next();
        if step.digit == 0 && !step.high {
            // The estimate was one too high.
            exponent -= 1;
        } else {
            digits.push(step.digit);
        }
        if !(-3..8).contains(&exponent) {
            // With an exponent there are always two digits.
            (step.low, step.high) = (false, false);
        }
        while !step.low && !step.high {
            step = generator.next();
            digits.push(step.digit);
        }
        let odd = digits.last().is_some_and(|digit| digit % 2 == 1);
        let round_up = match (step.low, generator.compare_half()) {
            (true, Ordering::Less) => false,
            (true, Ordering::Equal) => odd,
            _ => true,
        };
        let mut decimal = Decimal { digits, exponent: exponent + 1 };
        if step.high && round_up {
            decimal.round_up();
        }
        decimal
    }

    /// The exponent of the first digit, or one more.
    fn estimate_exponent(&self) -> i32 {
        let one_to_two = f64::from_bits(0x3ff0_0000_0000_0000 | (self.fraction & ((1 << 52) - 1)));
        let log = (one_to_two - 1.5) * 0.289_529_654 + 0.176_091_259 + f64::from(self.exponent) * LOG10_OF_2;
        log.floor() as i32
    }
}

#[expect(clippy::approx_constant, reason = "Java's estimate has these digits, and no others give its result")]
const LOG10_OF_2: f64 = 0.301_029_995_663_981;

impl Decimal {
    fn round_up(&mut self) {
        match self.digits.iter().rposition(|digit| *digit != 9) {
            Some(last) => {
                self.digits[last] += 1;
                self.digits[last + 1..].fill(0);
            }
            None => {
                self.digits.fill(0);
                self.digits[0] = 1;
                self.exponent += 1;
            }
        }
    }

    fn write(&self, out: &mut String) {
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        match self.exponent {
            point @ 1..8 => {
                let point = point as usize;
                let padded = format!("{digits:0<width$}", width = point + 1);
                let (whole, fraction) = padded.split_at(point);
                append(out, format_args!("{whole}.{fraction}"));
            }
            point @ -2..1 => append(out, format_args!("0.{}{digits}", "0".repeat(-point as usize))),
            point => {
                let (first, others) = digits.split_at(1);
                append(
                    out,
                    format_args!("{first}.{}E{}", if others.is_empty() { "0" } else { others }, point - 1),
                );
            }
        }
    }
}

/// One digit, and whether the number may end with it: rounded down, or up.
#[derive(Clone, Copy)]
struct Step {
    digit: u8,
    low: bool,
    high: bool,
}

/// Gives the digits of `value / unit` one by one; `margin` is how far the text may be from the number.
///
/// Java works in 32 or 64 bits where it takes everything to fit, in which it may overflow and rounds up only
/// above the margin, and in any number of bits elsewhere, where it rounds up at the margin.
enum Generator {
    Small { value: i64, unit: i64, margin: i64, bits: u32 },
    Large { value: BigUint, unit: BigUint, margin: BigUint },
}

impl Generator {
    fn new(binary: &Binary, exponent: i32) -> Generator {
        let width = 53 - binary.fraction.trailing_zeros() as i32;
        let fraction = binary.fraction >> binary.fraction.trailing_zeros();
        // The number of bits behind the point.
        let tiny = (width - binary.exponent - 1).max(0);
        let (value_fives, unit_fives) = ((-exponent).max(0), exponent.max(0));
        let mut value_twos = value_fives + tiny + binary.exponent;
        let mut margin_twos = value_twos - binary.significant;
        let mut unit_twos = unit_fives + tiny;
        value_twos -= width - 1;
        let common = value_twos.min(unit_twos);
        value_twos -= common;
        unit_twos -= common;
        margin_twos -= common;
        // Below a power of two numbers are twice as close.
        margin_twos -= i32::from(width == 1);
        let up = (-margin_twos).max(0);
        let (value_twos, unit_twos, margin_twos) = (value_twos + up, unit_twos + up, margin_twos + up);

        let value_bits = width + value_twos + bits_of_fives(value_fives);
        let ten_units_bits = unit_twos + 1 + bits_of_fives(unit_fives + 1);
        let bits = match value_bits.max(ten_units_bits) {
            ..32 => 32,
            32..64 => 64,
            _ => {
                return Self::large(
                    fraction,
                    [value_fives, unit_fives],
                    [value_twos, unit_twos, margin_twos],
                );
            }
        };
        let small = |factor: i64, fives: i32, twos: i32| {
            narrow(factor.wrapping_mul(5i64.pow(fives as u32)) << twos, bits)
        };
        Generator::Small {
            value: small(fraction as i64, value_fives, value_twos),
            unit: small(1, unit_fives, unit_twos),
            margin: small(1, value_fives, margin_twos),
            bits,
        }
    }

    fn large(fraction: u64, [value_fives, unit_fives]: [i32; 2], twos: [i32; 3]) -> Generator {
        let large =
            |factor: u64, fives: i32, twos: i32| (BigUint::from(5u8).pow(fives as u32) * factor) << twos;
        Generator::Large {
            value: large(fraction, value_fives, twos[0]),
            unit: large(1, unit_fives, twos[1]),
            margin: large(1, value_fives, twos[2]),
        }
    }

    fn next(&mut self) -> Step {
        match self {
            Generator::Small { value, unit, margin, bits } => {
                let digit = *value / *unit;
                *value = narrow(10 * (*value % *unit), *bits);
                *margin = narrow(margin.wrapping_mul(10), *bits);
                let overflown = *margin <= 0;
                let low = overflown || *value < *margin;
                let high =
                    overflown || narrow(value.wrapping_add(*margin), *bits) > narrow(*unit * 10, *bits);
                Step { digit: digit as u8, low, high }
            }
            Generator::Large { value, unit, margin } => {
                let digit = &*value / &*unit;
                *value = (&*value - &digit * &*unit) * 10u8;
                *margin *= 10u8;
                let high = &*value + &*margin >= &*unit * 10u8;
                Step { digit: digit.iter_u32_digits().next().unwrap_or(0) as u8, low: *value < *margin, high }
            }
        }
    }

    /// How what is left compares with half a digit.
    fn compare_half(&self) -> Ordering {
        match self {
            Generator::Small { value, unit, .. } => (i128::from(*value) * 2).cmp(&(i128::from(*unit) * 10)),
            Generator::Large { value, unit, .. } => (value * 2u8).cmp(&(unit * 10u8)),
        }
    }
}

/// How many bits 5^`power` has; more than that for large powers.
fn bits_of_fives(power: i32) -> i32 {
    match power {
        0 => 0,
        1..27 => 64 - 5u64.pow(power as u32).leading_zeros() as i32,
        _ => power * 3,
    }
}

/// The low bits of `value`, with their sign.
fn narrow(value: i64, bits: u32) -> i64 {
    if bits == 32 { i64::from(value as i32) } else { value }
}
