//! Figures side by side.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{fmt, fs, thread};

use super::Options;
use super::contestants::ROCKSDB_VERSION;
use crate::pages::grouped;

/// A figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell {
    /// Requests, and KiB.
    Reads(f64, f64),
    /// Thousands of something.
    Thousands(f64),
    /// Memory.
    MiB(f64),
    /// A time, and the peak of memory.
    SecondsAndMiB(f64, f64),
}

/// Figures of a group of cases; a column for each who takes part.
#[derive(Debug)]
pub struct Table {
    title: String,
    heads: Vec<String>,
    lines: Vec<(String, Vec<Cell>)>,
    has_ratios: bool,
}

impl Table {
    /// No line yet.
    pub fn new<'a>(title: String, of: &'a str, columns: impl IntoIterator<Item = &'a str>) -> Table {
        let heads = [of].into_iter().chain(columns).map(str::to_owned).collect();
        Table { title, heads, lines: Vec::new(), has_ratios: false }
    }

    /// A line more.
    pub fn line(&mut self, name: &str, cells: Vec<Cell>) {
        self.lines.push((name.to_owned(), cells));
    }

    /// Says beside each figure how large it is beside the first of its line.
    pub fn with_ratios(self) -> Table {
        Table { has_ratios: true, ..self }
    }

    fn text_of(&self, cells: &[Cell], at: usize) -> String {
        match (cells[0], cells[at]) {
            (Cell::Thousands(first), Cell::Thousands(this)) if self.has_ratios && at > 0 => {
                format!("{} ({:.2}×)", cells[at], this / first)
            }
            (_, cell) => cell.to_string(),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n\n| {} |", self.title, self.heads.join(" | "))?;
        writeln!(f, "|---|{}", "---:|".repeat(self.heads.len() - 1))?;
        for (name, cells) in &self.lines {
            let texts: Vec<String> = (0..cells.len()).map(|at| self.text_of(cells, at)).collect();
            writeln!(f, "| {name} | {} |", texts.join(" | "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Cell::Reads(requests, kib) => write!(f, "{} / {}", digits(requests), kib_of(kib)),
            Cell::Thousands(thousands) => f.write_str(&digits(thousands)),
            Cell::MiB(mib) => write!(f, "{mib:.0} MiB"),
            Cell::SecondsAndMiB(seconds, mib) => write!(f, "{seconds:.4} s, {mib:.0} MiB"),
        }
    }
}

/// Three digits or more.
fn digits(number: f64) -> String {
    match number {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        _ => format!("{number:.2}"),
    }
}

fn kib_of(kib: f64) -> String {
    if kib < 100.0 { format!("{kib:.1}") } else { format!("{kib:.0}") }
}

/// How it was run, as the page tells it.
pub fn settings(options: &Options) -> String {
    let Options { memory_mib, runs, published_rocksdb, .. } = options;
    let [rows, large_rows, many_rows] =
        [options.rows, options.large_rows, options.many_rows].map(|rows| grouped(rows.into(), 0));
    let flag = if *published_rocksdb { " --published-rocksdb" } else { "" };
    let fixture = if options.fixture.is_some() { " --fixture …/oa/large" } else { "" };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let rocksdb = match published_rocksdb {
        true => {
            "is the library that the project publishes for Java, used from Rust by its interface for C, which was compiled for any x86-64"
        }
        false => "is built by the crate",
    };
    let read_ahead = read_ahead_kib(&options.data()).map_or(String::new(), |kib| {
        format!("Who reads through the page cache has up to {kib} KiB read ahead by this machine. ")
    });
    format!(
        "```sh\ncargo xtask peers --runs {runs}{flag}{fixture} --write\n```\n\n\
         With {rows}, {large_rows} and {many_rows} rows, and from disk {memory_mib} MiB for all caches together. Rates are medians of {runs} runs in\n\
         turn, those of loads of three at the most, on {cores} cores. {read_ahead}RocksDB {ROCKSDB_VERSION} {rocksdb}.\n"
    )
}

/// How far the operating system reads ahead in the files of a folder, where it tells. KiB.
fn read_ahead_kib(folder: &Path) -> Option<u64> {
    let device = fs::metadata(folder).ok()?.dev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    let told = fs::read_to_string(format!("/sys/class/bdi/{}:{}/read_ahead_kb", device.0, device.1)).ok()?;
    told.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_markdown() {
        let mut table = Table::new("T".to_owned(), "of", ["a", "b"]);
        table.line("row", vec![Cell::Thousands(2.0), Cell::Thousands(5.0)]);
        let expected = "## T\n\n| of | a | b |\n|---|---:|---:|\n| row | 2.00 | 5.00 (2.50×) |\n";
        assert_eq!(table.with_ratios().to_string(), expected);
    }

    #[test]
    fn figures_have_three_digits() {
        let texts = [0.96, 12.34, 123.4].map(|number| Cell::Thousands(number).to_string());
        assert_eq!(texts, ["0.96", "12.3", "123"]);
        assert_eq!(Cell::Reads(1.0, 4.53).to_string(), "1.00 / 4.5");
    }
}
