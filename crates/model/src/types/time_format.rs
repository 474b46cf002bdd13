//! A civil calendar, and instants as Java's `Instant.toString()` prints them.
//!
//! ```text
//! 2023-11-14T22:13:20.001970Z      0, 3, 6 or 9 digits of a second, as many as are needed
//! +12345-01-01T00:00:00Z           a sign before years that have more than four digits
//! -0001-12-31T23:59:59Z            year 0 is 1 BC
//! ```
//!
//! The calendar is the proleptic Gregorian one and covers all days that fit an `i64` of seconds.

use std::fmt::Write as _;

const SECONDS_PER_DAY: i64 = 86_400;
const NANOS_PER_SECOND: i64 = 1_000_000_000;
/// Days of 400 years, after which the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, where the era of 1970 begins, to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

/// Appends a time in microseconds since 1970 as `sstabledump` prints it.
///
/// Its seconds are rounded towards 1970, not down, and its nanoseconds saturate: what it prints for times
/// before 1970 or far from it is not always that time, and is reproduced as it is.
pub fn instant_micros(micros: i64, out: &mut String) {
    write_instant(micros / 1_000_000, micros.saturating_mul(1_000).rem_euclid(NANOS_PER_SECOND), out);
}

/// Appends a time in seconds since 1970 as `sstabledump` prints it.
///
/// Its nanoseconds saturate: far from 1970 it prints a fraction that is not there, which is reproduced.
pub fn instant_seconds(seconds: i64, out: &mut String) {
    write_instant(seconds, seconds.saturating_mul(NANOS_PER_SECOND).rem_euclid(NANOS_PER_SECOND), out);
}

/// A day of the calendar; `year` 0 is 1 BC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

impl Civil {
    /// The day that is `days` after 1970-01-01.
    pub(super) fn from_days(days: i64) -> Civil {
        let days = days + EPOCH_DAYS;
        let era = days.div_euclid(DAYS_PER_ERA);
        let day_of_era = days.rem_euclid(DAYS_PER_ERA);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months are counted from March, so that the odd day is the last one of the year.
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        Civil { year: year_of_era + era * 400 + i64::from(month <= 2), month, day }
    }

    /// How many days after 1970-01-01 it is; `None` if there is no such day, or if it is out of range.
    pub(super) fn to_days(self) -> Option<i64> {
        if !(1..=12).contains(&self.month) || !(1..=self.days_of_month()).contains(&self.day) {
            return None;
        }
        let year = self.year - i64::from(self.month <= 2);
        let year_of_era = year.rem_euclid(400);
        let month_from_march = (self.month + 9) % 12;
        let day_of_year = (153 * month_from_march + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        year.div_euclid(400).checked_mul(DAYS_PER_ERA)?.checked_add(day_of_era - EPOCH_DAYS)
    }

    fn days_of_month(self) -> i64 {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 => 28 + i64::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }

    /// Appends `year-month-day`, with the sign that Java gives the year.
    pub(super) fn write(self, out: &mut String) {
        let sign = match self.year {
            ..0 => "-",
            0..=9999 => "",
            _ => "+",
        };
        append(out, format_args!("{sign}{:04}-{:02}-{:02}", self.year.abs(), self.month, self.day));
    }
}

/// Appends `hour:minute:second` of a second of the day.
pub(super) fn write_clock(second_of_day: i64, out: &mut String) {
    let (minutes, second) = (second_of_day / 60, second_of_day % 60);
    append(out, format_args!("{:02}:{:02}:{second:02}", minutes / 60, minutes % 60));
}

/// Appends formatted text; a `String` takes all of it.
pub(super) fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String can always be appended to");
}

fn write_instant(seconds: i64, nanos: i64, out: &mut String) {
    Civil::from_days(seconds.div_euclid(SECONDS_PER_DAY)).write(out);
    out.push('T');
    write_clock(seconds.rem_euclid(SECONDS_PER_DAY), out);
    match nanos {
        0 => {}
        _ if nanos % 1_000_000 == 0 => append(out, format_args!(".{:03}", nanos / 1_000_000)),
        _ if nanos % 1_000 == 0 => append(out, format_args!(".{:06}", nanos / 1_000)),
        _ => append(out, format_args!(".{nanos:09}")),
    }
    out.push('Z');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn micros(value: i64) -> String {
        let mut out = String::new();
        instant_micros(value, &mut out);
        out
    }

    fn seconds(value: i64) -> String {
        let mut out = String::new();
        instant_seconds(value, &mut out);
        out
    }

    #[test]
    fn instants_print_as_java_prints_them() {
        assert_eq!(micros(1_700_000_000_001_970), "2023-11-14T22:13:20.001970Z");
        assert_eq!(micros(1_700_000_000_120_000), "2023-11-14T22:13:20.120Z");
        assert_eq!(micros(0), "1970-01-01T00:00:00Z");
        assert_eq!(seconds(1_795_220_015), "2026-11-21T00:13:35Z");
        assert_eq!(seconds(i64::from(i32::MAX)), "2038-01-19T03:14:07Z");
        assert_eq!(seconds(-62_167_219_201), "-0001-12-31T23:59:59.145224192Z");
    }

    #[test]
    fn seconds_are_rounded_towards_1970() {
        assert_eq!(micros(-1), "1970-01-01T00:00:00.999999Z");
        assert_eq!(micros(-1_000_000), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn the_ends_of_the_range_print() {
        assert_eq!(micros(i64::MIN), "-290308-12-21T19:59:06.145224192Z");
        assert_eq!(micros(i64::MAX), "+294247-01-10T04:00:54.854775807Z");
        assert_eq!(seconds(i64::MAX), "+292277026596-12-04T15:30:07.854775807Z");
        assert_eq!(seconds(i64::MIN), "-292277022657-01-27T08:29:52.145224192Z");
    }

    proptest! {
        #[test]
        fn days_round_trip(days in -4_000_000_000_000i64..4_000_000_000_000) {
            let civil = Civil::from_days(days);
            prop_assert_eq!(civil.to_days(), Some(days));
        }
    }
}
