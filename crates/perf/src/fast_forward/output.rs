//! The tables: text as people read it, or one JSON document.
//!
//! Text is printed line by line as cases end. A column is as wide as its name, or as `WIDTHS` says.

use std::io::Write;

use serde_json::{Map, Value, json};
use siltstone::{Error, Result};
use sstable::parts::usage::Usage;

use super::bench::Reading;
use super::cases::{Case, Group};
use super::dataset::Shape;
use super::figures::Summary;
use crate::arguments::VERSION;
use crate::{fences, interrupted};

/// Columns that need more room than their names.
const WIDTHS: [(&str, usize); 24] = [
    ("read", 7),
    ("skip", 7),
    ("offset", 9),
    ("stride", 9),
    ("rows", 9),
    ("range", 20),
    ("time (s)", 10),
    ("frags", 9),
    ("frag/s", 9),
    ("mad f/s", 9),
    ("max f/s", 9),
    ("min f/s", 9),
    ("avg aio", 9),
    ("aio", 8),
    ("(KiB)", 10),
    ("blocked", 8),
    ("idx hit", 9),
    ("idx miss", 9),
    ("c blk", 9),
    ("allocs", 9),
    ("tasks", 8),
    (CPU, 6),
    ("mem", 10),
    ("held", 10),
];

/// The share of the time on a processor, which is told in percent.
const CPU: &str = "cpu";

/// Columns that are not of whole numbers, with how many digits of theirs stand behind the point.
const DECIMALS: [(&str, usize); 4] = [("time (s)", 6), ("avg aio", 1), ("(KiB)", 1), (CPU, 1)];

/// Where results go.
pub trait Output {
    /// Cases of a group follow.
    ///
    /// # Errors
    /// What the operating system says.
    fn group(&mut self, group: Group, shape: &Shape, reading: &Reading, fences: &Usage) -> Result<()>;

    /// A case of that group has ended.
    ///
    /// # Errors
    /// What the operating system says.
    fn case(&mut self, case: &Case, summary: &Summary) -> Result<()>;

    /// All have ended, or this has gone wrong in the group that was begun last.
    ///
    /// # Errors
    /// What the operating system says.
    fn finish(&mut self, wrong: Option<&Error>) -> Result<()>;
}

/// Tables of text.
pub struct Text<'a> {
    out: &'a mut dyn Write,
    needs_head: bool,
}

/// One document of JSON: an array of groups with their cases.
pub struct Json<'a> {
    out: &'a mut dyn Write,
    groups: Vec<Value>,
    cases: Vec<Value>,
}

impl<'a> Text<'a> {
    /// Tables on `out`.
    pub fn new(out: &'a mut dyn Write) -> Text<'a> {
        Text { out, needs_head: false }
    }
}

impl Output for Text<'_> {
    fn group(&mut self, group: Group, shape: &Shape, reading: &Reading, fences: &Usage) -> Result<()> {
        self.needs_head = true;
        writeln!(self.out, "running: {} on dataset {}", group.name(), group.dataset().name())?;
        writeln!(
            self.out,
            "rows: {}, value size: {}, column index: {} KiB, format: {}, compression: {}, fences: {}, \
             index search: {}, row cache: {}, memory: {} MiB, cache kept across groups: {}, across cases: {}, direct I/O: {}, \
             io_uring: {}",
            shape.rows,
            shape.value_size,
            shape.column_index_size_in_kb,
            shape.format.name(),
            shape.compression,
            text("fences", &fences::told(fences)),
            reading.search_name(),
            if reading.row_cache { "on" } else { "off" },
            reading.cache >> 20,
            reading.is_kept,
            reading.keeps_cache,
            reading.machine.direct_io,
            reading.machine.io_uring
        )?;
        Ok(writeln!(self.out, "{}:", group.title())?)
    }

    fn case(&mut self, case: &Case, summary: &Summary) -> Result<()> {
        let columns = columns(case, summary);
        if std::mem::take(&mut self.needs_head) {
            let names = columns.iter().map(|(name, _)| (*name, (*name).to_owned()));
            writeln!(self.out, "{}", line(names))?;
        }
        let cells = columns.iter().map(|(name, value)| (*name, text(name, value)));
        writeln!(self.out, "{}", line(cells))?;
        Ok(self.out.flush()?)
    }

    fn finish(&mut self, _wrong: Option<&Error>) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

impl<'a> Json<'a> {
    /// A document on `out`.
    pub fn new(out: &'a mut dyn Write) -> Json<'a> {
        Json { out, groups: Vec::new(), cases: Vec::new() }
    }

    fn close_group(&mut self, wrong: Option<&Error>) {
        if let Some(group) = self.groups.last_mut() {
            // Of an interrupt nobody is to be told that something went wrong.
            group["error"] =
                wrong.filter(|_| !interrupted::is_interrupted()).map(|error| error.in_words()).into();
            group["cases"] = Value::Array(std::mem::take(&mut self.cases));
            group["interrupted"] = interrupted::is_interrupted().into();
        }
    }
}

impl Output for Json<'_> {
    fn group(&mut self, group: Group, shape: &Shape, reading: &Reading, fences: &Usage) -> Result<()> {
        self.close_group(None);
        self.groups.push(json!({
            "version": VERSION,
            "group": group.name(),
            "dataset": group.dataset().name(),
            "made_of": shape.to_json(),
            "fences": fences::told(fences),
            "index_search": reading.search_name(),
            "row_cache": reading.row_cache,
            "keep_cache_across_test_cases": reading.keeps_cache,
            "keep_cache_across_test_groups": reading.is_kept,
            "cache_bytes": reading.cache,
            "direct_io": reading.machine.direct_io,
            "io_uring": reading.machine.io_uring,
        }));
        Ok(())
    }

    fn case(&mut self, case: &Case, summary: &Summary) -> Result<()> {
        let columns = columns(case, summary).into_iter().map(|(name, value)| (name.to_owned(), value));
        self.cases.push(Value::Object(columns.collect::<Map<String, Value>>()));
        Ok(())
    }

    fn finish(&mut self, wrong: Option<&Error>) -> Result<()> {
        self.close_group(wrong);
        writeln!(self.out, "{:#}", Value::Array(std::mem::take(&mut self.groups)))?;
        Ok(self.out.flush()?)
    }
}

/// The labels and the figures.
fn columns(case: &Case, summary: &Summary) -> Vec<(&'static str, Value)> {
    let labels = case.labels.iter().map(|(name, value)| {
        let number = value.parse::<u64>().map(Value::from);
        (*name, number.unwrap_or_else(|_| Value::from(value.as_str())))
    });
    labels.chain(summary.columns()).collect()
}

fn line(cells: impl Iterator<Item = (&'static str, String)>) -> String {
    let padded = cells.map(|(name, cell)| {
        let width = WIDTHS.iter().find(|(wide, _)| *wide == name).map_or(name.len(), |(_, width)| *width);
        format!("{cell:>width$}")
    });
    padded.collect::<Vec<String>>().join(" ")
}

fn text(name: &str, value: &Value) -> String {
    let decimals = DECIMALS.iter().find(|(of, _)| *of == name);
    match (value, decimals, value.as_f64()) {
        (Value::Null, ..) => "-".to_owned(),
        (Value::String(text), ..) => text.clone(),
        (_, Some((_, decimals)), Some(number)) => {
            let sign = if name == CPU { "%" } else { "" };
            format!("{number:.decimals$}{sign}")
        }
        (other, ..) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sstable::{Search, Version};

    use super::*;
    use crate::arguments::Machine;
    use crate::fast_forward::figures::Figures;

    fn print(output: &mut dyn Output, fences: &Usage) {
        let shape = Shape {
            rows: 400,
            value_size: 200,
            column_index_size_in_kb: 64,
            format: Version::parse("me").unwrap(),
            compression: false,
            fences: true,
        };
        let group = Group::LargePartitionSlicing;
        let figures =
            Figures { time: Duration::from_millis(2), fragments: 1, requests: 3, ..Figures::default() };
        let reading = Reading {
            search: Search::Scan,
            fences: false,
            row_cache: false,
            cache: 0,
            keeps_cache: true,
            is_kept: false,
            machine: Machine { io_uring: true, direct_io: false },
        };
        output.group(group, &shape, &reading, fences).unwrap();
        for case in &group.cases(shape.rows, false)[..2] {
            output.case(case, &Summary::new(vec![figures])).unwrap();
        }
        output.finish(None).unwrap();
    }

    #[test]
    fn text_has_a_head_and_a_line_a_case() {
        let mut out = Vec::new();
        print(&mut Text::new(&mut out), &Usage::Absent);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[0].join(" "), "running: large-partition-slicing on dataset large-part-ds1");
        let settings = lines[1].join(" ");
        assert!(settings.contains("compression: false, fences: none, index search: scan,"), "{settings}");
        let kept = "cache kept across groups: false, across cases: true, direct I/O: false, io_uring: true";
        assert!(settings.ends_with(kept), "{settings}");
        assert_eq!(lines[3][..3], ["offset", "read", "time"]);
        assert_eq!(lines[4][..7], ["0", "1", "0.002000", "1", "1", "500", "0"]);
        assert!(text.lines().skip(3).all(|line| line.len() == text.lines().nth(3).unwrap().len()));
    }

    #[test]
    fn json_is_one_document() {
        let mut out = Vec::new();
        print(&mut Json::new(&mut out), &Usage::Off);
        let document: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(document[0]["group"], "large-partition-slicing");
        assert_eq!(document[0]["made_of"]["rows"], 400);
        assert_eq!((&document[0]["fences"], &document[0]["index_search"]), (&false.into(), &"scan".into()));
        assert_eq!(document[0]["version"], VERSION);
        assert_eq!(document[0]["row_cache"], false);
        assert_eq!((&document[0]["io_uring"], &document[0]["direct_io"]), (&true.into(), &false.into()));
        assert_eq!(document[0]["keep_cache_across_test_cases"], true);
        assert_eq!(document[0]["cases"][1]["read"], 32);
        assert_eq!(document[0]["cases"][1]["aio"], 3);
        assert_eq!(document[0]["cases"][1]["insns/f"], Value::Null);
    }
}
