//! Times as text, quickly: rows that were written together share all but the fraction of a second.

use model::types::{instant_micros, instant_seconds};

use crate::json::push_digits;

/// Microseconds from here on, in the year 2262, are printed in a way of their own.
const FAR: i64 = 9_000_000_000_000_000;

/// How many seconds are kept: more than one, because writes and deletions alternate.
const KEPT: usize = 16;

/// Bytes of a second's text, without the `Z` at its end, up to the year 9999.
const LEN: usize = "1970-01-01T00:00:00".len();

/// Prints times as `sstabledump` does, and keeps the text of the last few seconds.
#[derive(Debug)]
pub struct Instants {
    /// Each in the place that its remainder gives.
    seconds: [i64; KEPT],
    texts: [[u8; LEN]; KEPT],
}

impl Default for Instants {
    fn default() -> Instants {
        Instants { seconds: [0; KEPT], texts: [*b"1970-01-01T00:00:00"; KEPT] }
    }
}

impl Instants {
    /// Whether the text of a time in microseconds tells it and no other one: those before 1970 and far from it
    /// are printed as `sstabledump` prints them.
    #[inline]
    pub fn is_exact_micros(micros: i64) -> bool {
        (0..FAR).contains(&micros)
    }

    /// The same of a time in seconds.
    #[inline]
    pub fn is_exact_seconds(seconds: i64) -> bool {
        (0..FAR / 1_000_000).contains(&seconds)
    }

    /// Appends a time in microseconds since the epoch.
    #[inline]
    pub fn write_micros(&mut self, micros: i64, out: &mut String) {
        if !Instants::is_exact_micros(micros) {
            return instant_micros(micros, out);
        }
        self.write_second(micros / 1_000_000, out);
        match (micros % 1_000_000) as u32 {
            0 => {}
            fraction => {
                let is_millis = fraction.is_multiple_of(1_000);
                let (digits, count) = if is_millis { (fraction / 1_000, 3) } else { (fraction, 6) };
                out.push('.');
                push_digits(digits, count, out);
            }
        }
        out.push('Z');
    }

    /// Appends a time in seconds since the epoch.
    #[inline]
    pub fn write_seconds(&mut self, seconds: i64, out: &mut String) {
        if !Instants::is_exact_seconds(seconds) {
            return instant_seconds(seconds, out);
        }
        self.write_second(seconds, out);
        out.push('Z');
    }

    #[inline]
    fn write_second(&mut self, second: i64, out: &mut String) {
        let place = second as usize % KEPT;
        if second != self.seconds[place] {
            self.keep(second, place);
        }
        out.push_str(std::str::from_utf8(&self.texts[place]).expect("the text of a second is ASCII"));
    }

    #[cold]
    fn keep(&mut self, second: i64, place: usize) {
        let mut text = String::new();
        instant_seconds(second, &mut text);
        self.texts[place].copy_from_slice(&text.as_bytes()[..LEN]);
        self.seconds[place] = second;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortcut_changes_nothing() {
        let mut instants = Instants::default();
        let second = 1_700_000_000_000_000;
        let edges = [0, 1, 999_999, -1, i64::MIN, i64::MAX, FAR - 1, FAR, FAR + 1];
        let near = [second, second + 1, second + 1_970, second + 120_000, second + 20, second - 1];
        for micros in edges.into_iter().chain(near) {
            let (mut quick, mut plain) = (String::new(), String::new());
            instants.write_micros(micros, &mut quick);
            instant_micros(micros, &mut plain);
            instants.write_seconds(micros / 1_000, &mut quick);
            instant_seconds(micros / 1_000, &mut plain);
            assert_eq!(quick, plain, "{micros}");
        }
    }
}
