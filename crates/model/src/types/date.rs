//! Timestamps, dates and times of day.
//!
//! ```text
//! timestamp   millis:i64     2023-11-14T22:13:20.123Z      in keys; in JSON with a blank for the T
//! date        days:u32       2023-11-14                    1970-01-01 is 2^31
//! time        nanos:i64      22:13:20.123000000
//! ```
//!
//! A timestamp is printed with the year of its era, so that a year before Christ looks like one after; a
//! date is not.

use super::TypeError;
use super::time_format::{Civil, append, write_clock};

const MILLIS_PER_DAY: i64 = 86_400_000;
const SECONDS_PER_DAY: i64 = 86_400;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Timestamps of the years 1 to 9999.
pub(super) const PLAIN_MILLIS: std::ops::Range<i64> = -62_135_596_800_000..253_402_300_800_000;
/// The date whose days are 0 is this many days before 1970.
const DATE_SHIFT: i64 = 1 << 31;

/// Appends a timestamp, with `between` between date and time.
pub(super) fn write_timestamp(millis: i64, between: char, out: &mut String) {
    let day = Civil::from_days(millis.div_euclid(MILLIS_PER_DAY));
    let millis = millis.rem_euclid(MILLIS_PER_DAY);
    Civil { year: if day.year > 0 { day.year } else { 1 - day.year }, ..day }.write(out);
    out.push(between);
    write_clock(millis / 1_000, out);
    append(out, format_args!(".{:03}Z", millis % 1_000));
}

/// Appends a date.
pub(super) fn write_date(days: u32, out: &mut String) {
    Civil::from_days(i64::from(days) - DATE_SHIFT).write(out);
}

/// Appends a time of day; whole days are left out.
pub(super) fn write_time(nanos: i64, out: &mut String) {
    let parts = [
        (nanos / (3_600 * NANOS_PER_SECOND) % 24, 2, ""),
        (nanos / (60 * NANOS_PER_SECOND) % 60, 2, ":"),
        (nanos / NANOS_PER_SECOND % 60, 2, ":"),
        (nanos / 1_000_000 % 1_000, 3, "."),
        (nanos / 1_000 % 1_000, 3, ""),
        (nanos % 1_000, 3, ""),
    ];
    for (part, digits, before) in parts {
        out.push_str(before);
        // A negative part, which no valid time has, is padded as if it were 0, as Cassandra does.
        let zeros = (1..digits).filter(|power| part < 10i64.pow(*power)).count();
        append(out, format_args!("{}{part}", "0".repeat(zeros)));
    }
}

/// Reads a timestamp: milliseconds, or a date, maybe a time, maybe an offset from UTC, which is assumed.
///
/// Years with a sign are read as well. Days that do not exist are not moved, as Cassandra moves them.
pub(super) fn parse_timestamp(text: &str) -> Result<i64, TypeError> {
    let refuse = || TypeError::text("timestamp", text, "milliseconds or a date and time were expected");
    if text.strip_prefix('-').unwrap_or(text).bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| refuse());
    }
    let instant = Reader { rest: text }.read_instant();
    instant
        .and_then(|(seconds, nanos)| seconds.checked_mul(1_000)?.checked_add(nanos / 1_000_000))
        .ok_or_else(refuse)
}

/// Reads a time as a timestamp may be written, in microseconds since 1970; `None` if it is none, or finer.
pub fn parse_instant(text: &str) -> Option<i64> {
    let (seconds, nanos) = Reader { rest: text }.read_instant()?;
    let micros = (nanos % 1_000 == 0).then_some(nanos / 1_000)?;
    seconds.checked_mul(1_000_000)?.checked_add(micros)
}

/// Reads a date: days as they are stored, or `year-month-day`.
pub(super) fn parse_date(text: &str) -> Result<u32, TypeError> {
    let refuse = || TypeError::text("date", text, "year-month-day was expected");
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| refuse());
    }
    Reader { rest: text }.read_date().and_then(|days| u32::try_from(days).ok()).ok_or_else(refuse)
}

/// Reads a time of day: nanoseconds, or `hour:minute:second` with up to nine digits behind a point.
pub(super) fn parse_time(text: &str) -> Result<i64, TypeError> {
    let refuse = || TypeError::text("time", text, "hour:minute:second was expected");
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        let nanos = text.parse().ok().filter(|nanos| (0..86_400 * NANOS_PER_SECOND).contains(nanos));
        return nanos.ok_or_else(refuse);
    }
    Reader { rest: text.trim() }.read_time_of_day().ok_or_else(refuse)
}

/// What is left to read.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// `year-month-day [T| ] hour:minute[:second][.fraction] [offset]`, or without a time: the seconds since 1970
    /// and the nanoseconds of the last one.
    fn read_instant(mut self) -> Option<(i64, i64)> {
        let day = self.read_day()?.to_days()?;
        let (seconds, nanos) =
            match self.rest.strip_prefix(['T', ' ']).filter(|rest| rest.starts_with(is_digit)) {
                Some(rest) => {
                    self.rest = rest;
                    self.read_clock()?
                }
                None => (0, 0),
            };
        let offset = self.read_offset()?;
        Some((day.checked_mul(SECONDS_PER_DAY)?.checked_add(seconds)?.checked_sub(offset)?, nanos))
    }

    /// `hour:minute[:second][.fraction]`: seconds and nanoseconds.
    fn read_clock(&mut self) -> Option<(i64, i64)> {
        let hour = self.read_number(1, 2).filter(|hour| *hour < 24)?;
        self.eat(":")?;
        let minute = self.read_number(1, 2).filter(|minute| *minute < 60)?;
        let second = match self.eat(":") {
            Some(()) => self.read_number(1, 2).filter(|second| *second < 60)?,
            None => 0,
        };
        let nanos = match self.eat(".") {
            Some(()) => self.read_fraction()?,
            None => 0,
        };
        Some((hour * 3_600 + minute * 60 + second, nanos))
    }

    /// The rest, an offset from UTC, in seconds: nothing, `Z`, `UTC`, `+01`, `+0100` or `+01:00`.
    fn read_offset(mut self) -> Option<i64> {
        let zone = self.rest.trim_start();
        if ["", "Z", "UTC", "GMT"].contains(&zone) {
            return Some(0);
        }
        let sign = if zone.starts_with('-') { -1 } else { 1 };
        self.rest = zone.strip_prefix(['+', '-'])?;
        let hours = self.read_number(2, 2).filter(|hours| *hours <= 18)?;
        let has_colon = self.eat(":").is_some();
        let minutes = match self.rest {
            "" if !has_colon => 0,
            _ => self.read_number(2, 2).filter(|minutes| *minutes < 60)?,
        };
        self.rest.is_empty().then_some(sign * (hours * 60 + minutes) * 60)
    }

    /// A date and nothing else, as it is stored.
    fn read_date(mut self) -> Option<i64> {
        let text = self.rest;
        let day = self.read_day().filter(|_| self.rest.is_empty())?;
        // Signs and padding must be those that it is printed with.
        let mut printed = String::new();
        day.write(&mut printed);
        day.to_days()?.checked_add(DATE_SHIFT).filter(|_| printed == text)
    }

    fn read_time_of_day(mut self) -> Option<i64> {
        let hour = self.read_number(1, 2).filter(|hour| *hour < 24)?;
        self.eat(":")?;
        let minute = self.read_number(1, 2).filter(|minute| *minute < 60)?;
        self.eat(":")?;
        let second = self.read_number(1, 2).filter(|second| *second < 60)?;
        let nanos = match self.eat(".") {
            Some(()) => self.read_fraction()?,
            None => 0,
        };
        self.rest.is_empty().then_some((hour * 3_600 + minute * 60 + second) * NANOS_PER_SECOND + nanos)
    }

    fn read_day(&mut self) -> Option<Civil> {
        let negative = self.rest.starts_with('-');
        self.rest = self.rest.strip_prefix(['+', '-']).unwrap_or(self.rest);
        let year = self.read_number(1, 10)?;
        self.eat("-")?;
        let month = self.read_number(1, 2)?;
        self.eat("-")?;
        let day = self.read_number(1, 2)?;
        Some(Civil { year: if negative { -year } else { year }, month, day })
    }

    /// One to nine digits behind a point, in billionths.
    fn read_fraction(&mut self) -> Option<i64> {
        let before = self.rest.len();
        let number = self.read_number(1, 9)?;
        let digits = (before - self.rest.len()) as u32;
        Some(number * 10i64.pow(9 - digits))
    }

    fn read_number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.rest.find(|c| !is_digit(c)).unwrap_or(self.rest.len()).min(most);
        let (number, rest) = self.rest.split_at(digits);
        self.rest = rest;
        number.parse().ok().filter(|_| digits >= least)
    }

    fn eat(&mut self, wanted: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_to_the_microsecond() {
        assert_eq!(parse_instant("2023-11-14T22:13:20.001970Z"), Some(1_700_000_000_001_970));
        assert_eq!(parse_instant("2023-11-14T23:13:20+01:00"), Some(1_700_000_000_000_000));
        assert_eq!(parse_instant("1969-12-31T23:59:59.999999Z"), Some(-1));
        assert_eq!(parse_instant("1970-01-02"), Some(86_400_000_000));
        for wrong in
            ["", "1970", "1970-01-01T00:00:00.0000001Z", "1970-13-01", "+999999-01-01", "1970-01-01Tx"]
        {
            assert_eq!(parse_instant(wrong), None, "{wrong}");
        }
    }
}
