//! What is known of something, once, as text and as JSON.
//!
//! A [`Fact`] has a name, which is its key in JSON and its label in text, and a value with a unit; so the
//! two cannot tell different things.

use std::fmt::Write as _;

use sstable::parts::statistics::{DropTimes, Histogram};

use crate::instants::Instants;
use crate::json::JsonWriter;

/// Something that is known.
#[derive(Clone, PartialEq, Debug)]
pub struct Fact {
    /// A label of words, or the name of a column or file.
    pub name: String,
    /// Whether `name` is a label: in JSON its spaces are underscores.
    pub is_label: bool,
    /// What is known.
    pub value: Value,
}

/// A value with its unit.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Words.
    Text(String),
    /// Yes or no.
    Bool(bool),
    /// How many there are of something.
    Count(u64),
    /// A number with a fraction, such as a share.
    Number(f64),
    /// A share of all, from 0 to 1.
    Share(f64),
    /// An integer of no unit.
    Integer(i64),
    /// A length in bytes.
    Bytes(u64),
    /// A time in microseconds since the epoch.
    Micros(i64),
    /// A time in milliseconds since the epoch.
    Millis(i64),
    /// A time in seconds since the epoch.
    Seconds(i64),
    /// A span of seconds.
    Span(u64),
    /// There is nothing, and why.
    None(&'static str),
    /// How many values there are of which size.
    Histogram(Box<Histogram>, Unit),
    /// How many tombstones become droppable when.
    DropTimes(Box<DropTimes>),
    /// Several facts.
    Group(Vec<Fact>),
    /// Several things of one kind, one a line.
    List(Vec<String>),
}

/// What the values of a histogram are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Lengths in bytes.
    Bytes,
    /// Numbers of cells.
    Cells,
}

/// Shares of the values of a histogram whose sizes are told.
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p75", 0.75), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// A histogram's lines of text; what has more buckets has some of them together.
const MOST_LINES: usize = 16;
/// The longest bar, in characters.
const BAR: u64 = 40;

impl Fact {
    /// A fact under a label.
    pub fn new(label: &str, value: Value) -> Fact {
        Fact { name: label.to_owned(), is_label: true, value }
    }

    /// A fact about something that has a name, which stays as it is.
    pub fn about(name: impl Into<String>, value: Value) -> Fact {
        Fact { name: name.into(), is_label: false, value }
    }
}

/// Appends facts as text, a line each, indented by so many spaces; groups have their facts below them.
pub fn write_text(facts: &[Fact], indent: usize, out: &mut String) {
    let is_simple = |fact: &&Fact| fact.value.is_simple();
    let width = facts.iter().filter(is_simple).map(|fact| fact.name.chars().count()).max().unwrap_or(0);
    for fact in facts {
        if fact.value.is_simple() {
            line(out, indent, format_args!("{:width$}  {}", fact.name, fact.value.to_text()));
            continue;
        }
        line(out, indent, format_args!("{}", fact.name));
        match &fact.value {
            Value::Group(facts) => write_text(facts, indent + 2, out),
            Value::List(items) => items.iter().for_each(|item| line(out, indent + 2, format_args!("{item}"))),
            Value::Histogram(histogram, unit) => write_histogram(histogram, *unit, indent + 2, out),
            Value::DropTimes(times) => write_drop_times(times, indent + 2, out),
            _ => {}
        }
    }
}

/// Writes facts as the members of the object that is open.
pub fn write_json(facts: &[Fact], json: &mut JsonWriter) {
    for fact in facts {
        match fact.is_label {
            true => json.any_key(&fact.name.replace(' ', "_")),
            false => json.any_key(&fact.name),
        }
        fact.value.write_json(json);
    }
}

impl Value {
    /// Whether its text is one line.
    fn is_simple(&self) -> bool {
        match self {
            Value::Group(facts) => facts.is_empty(),
            Value::List(items) => items.is_empty(),
            Value::Histogram(..) | Value::DropTimes(_) => false,
            _ => true,
        }
    }

    fn to_text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Bool(true) => "yes".to_owned(),
            Value::Bool(false) => "no".to_owned(),
            Value::Count(count) => count.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Share(share) => percent_text(*share),
            Value::Integer(number) => number.to_string(),
            Value::Bytes(bytes) => bytes_text(*bytes),
            Value::Micros(micros) => format!("{}  ({micros} µs)", self.time_text()),
            Value::Millis(millis) => format!("{}  ({millis} ms)", self.time_text()),
            Value::Seconds(seconds) => format!("{}  ({seconds} s)", self.time_text()),
            Value::Span(seconds) => span_text(*seconds),
            Value::None(why) => (*why).to_owned(),
            Value::Group(_) | Value::List(_) => "none".to_owned(),
            Value::Histogram(..) | Value::DropTimes(_) => String::new(),
        }
    }

    /// A time, as dumps print it.
    fn time_text(&self) -> String {
        let (mut instants, mut text) = (Instants::default(), String::new());
        match self {
            Value::Micros(micros) => instants.write_micros(*micros, &mut text),
            Value::Millis(millis) => instants.write_micros(millis.saturating_mul(1_000), &mut text),
            Value::Seconds(seconds) => instants.write_seconds(*seconds, &mut text),
            _ => {}
        }
        text
    }

    fn write_json(&self, json: &mut JsonWriter) {
        match self {
            Value::Text(text) => json.string(text),
            Value::Bool(value) => json.boolean(*value),
            Value::Count(number) | Value::Bytes(number) | Value::Span(number) => json.integer(*number),
            Value::Number(number) | Value::Share(number) => json.float(*number),
            Value::Integer(number) => json.integer(*number),
            Value::Micros(micros) => self.write_time("micros", *micros, json),
            Value::Millis(millis) => self.write_time("millis", *millis, json),
            Value::Seconds(seconds) => self.write_time("seconds", *seconds, json),
            Value::None(_) => json.null(),
            Value::Histogram(histogram, _) => write_histogram_json(histogram, json),
            Value::DropTimes(times) => write_drop_times_json(times, json),
            Value::Group(facts) => {
                json.begin_object();
                write_json(facts, json);
                json.end_object();
            }
            Value::List(items) => {
                json.begin_array();
                items.iter().for_each(|item| json.string(item));
                json.end_array();
            }
        }
    }

    fn write_time(&self, unit: &str, number: i64, json: &mut JsonWriter) {
        json.begin_object();
        json.key(unit);
        json.integer(number);
        json.key("time");
        json.string(&self.time_text());
        json.end_object();
    }
}

/// A length in bytes and, if it is a long one, in a unit that says more.
pub fn bytes_text(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    let (mut amount, mut unit) = (bytes as f64 / 1024.0, units[0]);
    for larger in &units[1..] {
        if amount < 1024.0 {
            break;
        }
        (amount, unit) = (amount / 1024.0, larger);
    }
    if bytes < 1024 { format!("{bytes} bytes") } else { format!("{bytes} bytes ({amount:.1} {unit})") }
}

/// A share in percent, with four significant digits at the most.
fn percent_text(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_normal() {
        return format!("{percent} %");
    }
    let digits = (3.0 - percent.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{percent:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

/// A span of seconds and, if it is a long one, in a unit that says more.
pub fn span_text(seconds: u64) -> String {
    let units = [(86_400, "days"), (3_600, "hours"), (60, "minutes")];
    match units.into_iter().find(|(unit, _)| seconds >= 2 * unit) {
        Some((unit, name)) => format!("{seconds} s ({:.1} {name})", seconds as f64 / unit as f64),
        None => format!("{seconds} s"),
    }
}

fn line(out: &mut String, indent: usize, text: std::fmt::Arguments<'_>) {
    let start = out.len();
    write!(out, "{:indent$}{text}", "").expect("a String can always be appended to");
    out.truncate(out.trim_end_matches(' ').len().max(start));
    out.push('\n');
}

fn write_histogram(histogram: &Histogram, unit: Unit, indent: usize, out: &mut String) {
    let Some(mean) = histogram.mean() else {
        return line(out, indent, format_args!("no values"));
    };
    let show = |value: u64| if unit == Unit::Bytes { bytes_text(value) } else { value.to_string() };
    line(out, indent, format_args!("count {}, mean {mean:.1}", histogram.count()));
    let shares = PERCENTILES.map(|(name, share)| format!("{name} {}", histogram.percentile(share)));
    line(
        out,
        indent,
        format_args!("least {}, {}, greatest {}", histogram.min(), shares.join(", "), histogram.max()),
    );
    let rows: Vec<(u64, u64)> = filled(histogram).collect();
    let rows: Vec<(String, u64)> = rows
        .chunks(rows.len().div_ceil(MOST_LINES).max(1))
        .map(|rows| (show(rows[rows.len() - 1].0), rows.iter().map(|row| row.1).sum()))
        .collect();
    bars("up to", &rows, indent, out);
    if histogram.overflow() > 0 {
        line(out, indent, format_args!("above that  {}", histogram.overflow()));
    }
}

/// The buckets that have any values: the greatest value of each, and how many it has.
fn filled(histogram: &Histogram) -> impl Iterator<Item = (u64, u64)> {
    let buckets = histogram.offsets.iter().copied().zip(histogram.buckets.iter().copied());
    buckets.filter(|(_, count)| *count > 0)
}

fn write_drop_times(times: &DropTimes, indent: usize, out: &mut String) {
    if times.bins.is_empty() {
        return line(out, indent, format_args!("none"));
    }
    let bins = times.bins.chunks(times.bins.len().div_ceil(MOST_LINES).max(1));
    let rows: Vec<(String, u64)> = bins
        .map(|bins| {
            let last = Value::Seconds(bins[bins.len() - 1].0).time_text();
            (last, bins.iter().map(|bin| bin.1).sum())
        })
        .collect();
    bars("up to about", &rows, indent, out);
}

/// A bar for each row, as long as its count is large; a count that is not 0 has one.
fn bars(what: &str, rows: &[(String, u64)], indent: usize, out: &mut String) {
    let width = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0);
    let digits = rows.iter().map(|row| row.1.to_string().len()).max().unwrap_or(0);
    let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1);
    for (label, count) in rows {
        let len = (u128::from(*count) * u128::from(BAR)).div_ceil(u128::from(most)) as usize;
        line(out, indent, format_args!("{what} {label:>width$}  {count:>digits$}  {}", "#".repeat(len)));
    }
}

fn write_histogram_json(histogram: &Histogram, json: &mut JsonWriter) {
    json.begin_object();
    for (name, value) in [("count", histogram.count()), ("min", histogram.min()), ("max", histogram.max())] {
        json.key(name);
        json.integer(value);
    }
    json.key("mean");
    json.float(histogram.mean().unwrap_or(f64::NAN));
    for (name, share) in PERCENTILES {
        json.key(name);
        json.integer(histogram.percentile(share));
    }
    json.key("overflow");
    json.integer(histogram.overflow());
    json.key("buckets");
    json.begin_array();
    filled(histogram).for_each(|(up_to, count)| write_pair(i128::from(up_to), count, json));
    json.end_array();
    json.end_object();
}

fn write_drop_times_json(times: &DropTimes, json: &mut JsonWriter) {
    json.begin_array();
    times.bins.iter().for_each(|(seconds, count)| write_pair(i128::from(*seconds), *count, json));
    json.end_array();
}

fn write_pair(value: i128, count: u64, json: &mut JsonWriter) {
    json.inline_arrays(true);
    json.begin_array();
    json.integer(value);
    json.integer(count);
    json.end_array();
    json.inline_arrays(false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Layout;

    fn facts() -> Vec<Fact> {
        let histogram = Histogram { offsets: [1, 2, 3].into(), buckets: [4, 0, 8, 1].into() };
        vec![
            Fact::new("least timestamp", Value::Micros(1_700_000_000_000_000)),
            Fact::new("ttl", Value::Span(172_800)),
            Fact::new("repaired", Value::None("never")),
            Fact::new("sizes", Value::Histogram(Box::new(histogram), Unit::Cells)),
            Fact::new("files", Value::Group(vec![Fact::about("a b", Value::Bytes(2048))])),
        ]
    }

    #[test]
    fn as_text() {
        let mut text = String::new();
        write_text(&facts(), 0, &mut text);
        let expected = "\
least timestamp  2023-11-14T22:13:20Z  (1700000000000000 µs)
ttl              172800 s (2.0 days)
repaired         never
sizes
  count 13, mean 2.3
  least 0, p50 3, p75 3, p95 3, p99 3, p999 3, greatest 18446744073709551615
  up to 1  4  ####################
  up to 3  8  ########################################
  above that  1
files
  a b  2048 bytes (2.0 KiB)
";
        assert_eq!(text, expected);
    }

    #[test]
    fn as_json() {
        let mut json = JsonWriter::new(Layout::Line);
        json.begin_object();
        write_json(&facts()[..3], &mut json);
        write_json(&facts()[4..], &mut json);
        json.end_object();
        let expected = "{\"least_timestamp\":{\"micros\":1700000000000000,\"time\":\"2023-11-14T22:13:20Z\"},\
             \"ttl\":172800,\"repaired\":null,\"files\":{\"a b\":2048}}";
        assert_eq!(json.into_text(), expected);
    }

    #[test]
    fn what_is_empty_says_so() {
        let mut text = String::new();
        let empty = [Fact::new("static", Value::Group(vec![])), Fact::new("list", Value::List(vec![]))];
        write_text(&empty, 0, &mut text);
        assert_eq!(text, "static  none\nlist    none\n");
    }

    #[test]
    fn shares_have_four_digits() {
        let texts = [0.01, 0.010_234_567, 0.000_123_456, 1.0, 0.0].map(percent_text);
        assert_eq!(texts, ["1 %", "1.023 %", "0.01235 %", "100 %", "0 %"]);
    }

    #[test]
    fn spans_and_lengths_say_more_when_long() {
        assert_eq!([span_text(59), span_text(600)], ["59 s", "600 s (10.0 minutes)"]);
        assert_eq!([bytes_text(1023), bytes_text(3 << 30)], ["1023 bytes", "3221225472 bytes (3.0 GiB)"]);
    }
}
