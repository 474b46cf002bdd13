//! Durations: months, days and nanoseconds, which are not convertible into one another.
//!
//! ```text
//! months:vint days:vint nanoseconds:vint       signed vints, all of one sign
//! 1y2mo3d4h5m6s7ms8us9ns    -1d                what is printed
//! P1Y2M3DT4H5M6S   P3W   P0001-02-03T04:05:06  what is read as well
//! ```

use super::time_format::append;
use super::{TypeError, vint};

/// A duration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Duration {
    months: i32,
    days: i32,
    nanos: i64,
}

/// The units, largest first, in the order in which they must be written: symbol, what it counts, how many.
const UNITS: [(&str, Counts, i64); 10] = [
    ("y", Counts::Months, 12),
    ("mo", Counts::Months, 1),
    ("w", Counts::Days, 7),
    ("d", Counts::Days, 1),
    ("h", Counts::Nanos, 3_600_000_000_000),
    ("m", Counts::Nanos, 60_000_000_000),
    ("s", Counts::Nanos, 1_000_000_000),
    ("ms", Counts::Nanos, 1_000_000),
    ("us", Counts::Nanos, 1_000),
    ("ns", Counts::Nanos, 1),
];

#[derive(Clone, Copy, PartialEq)]
enum Counts {
    Months,
    Days,
    Nanos,
}

impl Duration {
    /// The duration in `value`, and whether anything that it should not be is.
    pub(super) fn decode(value: &[u8]) -> Result<Duration, TypeError> {
        let mut rest = value;
        let mut next =
            || vint::take_signed(&mut rest).ok_or_else(|| TypeError::bytes("duration", "it is cut"));
        let (months, days, nanos) = (next()?, next()?, next()?);
        match (i32::try_from(months), i32::try_from(days)) {
            (Ok(months), Ok(days)) => Ok(Duration { months, days, nanos }),
            _ => Err(TypeError::bytes("duration", "months and days must fit 32 bits")),
        }
    }

    /// Whether no part is negative, or none is positive.
    pub(super) fn has_one_sign(&self) -> bool {
        let parts = [i64::from(self.months), i64::from(self.days), self.nanos];
        parts.iter().all(|part| *part >= 0) || parts.iter().all(|part| *part <= 0)
    }

    /// The bytes of the duration.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for part in [i64::from(self.months), i64::from(self.days), self.nanos] {
            vint::put_signed(part, &mut out);
        }
        out
    }

    /// Appends the text: every unit but weeks that is not zero.
    pub(super) fn write(&self, out: &mut String) {
        if self.months < 0 || self.days < 0 || self.nanos < 0 {
            out.push('-');
        }
        // The least numbers have no magnitude in Java, where nothing is printed for them.
        self.write_units(Counts::Months, self.months.wrapping_abs().into(), out);
        self.write_units(Counts::Days, self.days.wrapping_abs().into(), out);
        self.write_units(Counts::Nanos, self.nanos.wrapping_abs(), out);
    }

    fn write_units(&self, counts: Counts, magnitude: i64, out: &mut String) {
        let mut left = magnitude.max(0);
        for (symbol, _, size) in UNITS.iter().filter(|unit| unit.1 == counts && unit.0 != "w") {
            if left >= *size {
                append(out, format_args!("{}{symbol}", left / size));
                left %= size;
            }
        }
    }

    /// Reads any of the forms.
    pub(super) fn parse(text: &str) -> Result<Duration, TypeError> {
        let (negative, magnitude) =
            text.strip_prefix('-').map_or((false, text), |magnitude| (true, magnitude));
        let mut builder = Builder::default();
        let parsed = match magnitude.strip_prefix('P') {
            None => builder.parse_units(magnitude),
            Some(iso) if iso.ends_with('W') => builder.parse_iso_units(iso, &["w"]),
            Some(iso) if iso.contains('-') => builder.parse_iso_date(iso),
            Some(iso) => match iso.split_once('T') {
                Some((date, time)) => builder
                    .parse_iso_units(date, &["y", "mo", "d"])
                    .and_then(|()| builder.parse_iso_units(time, &["h", "m", "s"])),
                None => builder.parse_iso_units(iso, &["y", "mo", "d"]),
            },
        };
        parsed.ok_or_else(|| TypeError::text("duration", text, "not a duration, or too long a one"))?;
        let Duration { months, days, nanos } = builder.sum;
        Ok(if negative { Duration { months: -months, days: -days, nanos: -nanos } } else { builder.sum })
    }
}

/// Adds up units, each of which must be smaller than the one before it.
#[derive(Default)]
struct Builder {
    sum: Duration,
    /// The index of the first unit that may still come.
    next_unit: usize,
}

impl Builder {
    /// `1y2mo…`, in any case.
    fn parse_units(&mut self, mut text: &str) -> Option<()> {
        loop {
            let (number, rest) = take_number(text)?;
            let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let symbol = rest[..end].to_lowercase();
            self.add(number, if symbol == "µs" { "us" } else { &symbol })?;
            text = &rest[end..];
            if text.is_empty() {
                return Some(());
            }
        }
    }

    /// Numbers with upper-case letters behind them, which are the first ones of `units`.
    fn parse_iso_units(&mut self, mut text: &str, units: &[&str]) -> Option<()> {
        while !text.is_empty() {
            let (number, rest) = take_number(text)?;
            let letter = rest.chars().next().filter(char::is_ascii_uppercase)?;
            let unit = units.iter().find(|unit| unit.starts_with(letter.to_ascii_lowercase()))?;
            self.add(number, unit)?;
            text = &rest[1..];
        }
        Some(())
    }

    /// `0001-02-03T04:05:06`.
    fn parse_iso_date(&mut self, text: &str) -> Option<()> {
        let widths = [(4, "-"), (2, "-"), (2, "T"), (2, ":"), (2, ":"), (2, "")];
        let mut rest = text;
        for ((width, end), unit) in widths.into_iter().zip(["y", "mo", "d", "h", "m", "s"]) {
            let (number, tail) = rest.split_at_checked(width)?;
            let (number, "") = take_number(number)? else { return None };
            self.add(number, unit)?;
            rest = tail.strip_prefix(end)?;
        }
        rest.is_empty().then_some(())
    }

    fn add(&mut self, number: i64, symbol: &str) -> Option<()> {
        let index = UNITS.iter().position(|unit| unit.0 == symbol)?;
        let (_, counts, size) = UNITS[index];
        if index < self.next_unit {
            return None;
        }
        self.next_unit = index + 1;
        let more = number.checked_mul(size)?;
        let sum = &mut self.sum;
        match counts {
            Counts::Months => sum.months = sum.months.checked_add(i32::try_from(more).ok()?)?,
            Counts::Days => sum.days = sum.days.checked_add(i32::try_from(more).ok()?)?,
            Counts::Nanos => sum.nanos = sum.nanos.checked_add(more)?,
        }
        Some(())
    }
}

fn take_number(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}
