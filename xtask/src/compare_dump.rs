//! How long Cassandra's `sstabledump` and ours take for the same files, side by side.
//!
//! Both print to `/dev/null` and run in turn. Java's start is part of its time: the first line of the table, a file of a
//! few rows, shows what it is, and the last ratio leaves it out. Before that both must print the same rows.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::thread;

use clap::Args;
use serde_json::Value;
use testkit::cassandra::{Cassandra, VERSION};
use testkit::command::checked;
use testkit::json::{difference, without_expired};

use crate::measure::{median, peak_kib, seconds};
use crate::workspace::{dump, root, short_name, siltstone, target};
use crate::{Result, pages};

/// A file of a few rows: what a start costs.
const TINY: &str = "fixtures/cassandra/nb/small/sstables/t_decimal/nb-1-big-Data.db";

/// What is compared where it is there.
const LARGE: [&str; 2] = [
    "../shared/fixtures/cassandra/nb/many/sstables/many/nb-1-big-Data.db",
    "../shared/fixtures/cassandra/me/large/sstables/large/me-1-big-Data.db",
];

/// What is compared otherwise.
const COMMITTED: [&str; 2] = [
    "fixtures/cassandra/me/large/sstables/large_none/me-1-big-Data.db",
    "fixtures/cassandra/oa/large/sstables/large_rev/oa-1-big-Data.db",
];

/// The page that `--write` writes.
const PAGE: &str = "docs/performance/dump.md";

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// A folder with the jars of cassandra-all; without it Maven brings them.
    #[arg(long, value_name = "DIR")]
    cassandra: Option<PathBuf>,

    /// How often each is run.
    #[arg(long, value_name = "N", default_value = "5")]
    runs: NonZeroU32,

    /// Write the table to docs/performance/dump.md as well.
    #[arg(long)]
    write: bool,

    /// The Data.db files to dump; without them, the largest fixtures that are there.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// A line of the table.
#[derive(Debug)]
struct Line {
    name: String,
    rows: usize,
    theirs: f64,
    ours: f64,
    peak_kib: u64,
}

/// Both commands, ready to be started.
struct Dumpers {
    cassandra: Cassandra,
    siltstone: PathBuf,
}

/// Compares, and prints the table.
///
/// # Errors
/// If a dump fails, or the two are not equal.
pub fn run(options: &Options) -> Result<()> {
    let siltstone = siltstone()?;
    let dumpers =
        Dumpers { cassandra: Cassandra::prepare(&target(), options.cassandra.as_deref())?, siltstone };
    let mut lines = Vec::new();
    for file in files(options) {
        eprintln!("{}", short_name(&file));
        lines.push(dumpers.compare(&file, options.runs)?);
    }
    let table = table(&lines);
    print!("{table}");
    if options.write {
        pages::write(PAGE, [("settings", &*settings(options.runs)), ("files", &*table)])?;
    }
    Ok(())
}

fn files(options: &Options) -> Vec<PathBuf> {
    let there = |files: [&str; 2]| {
        let files = files.into_iter().filter_map(|file| root().join(file).canonicalize().ok());
        files.collect::<Vec<_>>()
    };
    let chosen = match &options.files[..] {
        [] if there(LARGE).is_empty() => there(COMMITTED),
        [] => there(LARGE),
        files => files.to_vec(),
    };
    [root().join(TINY)].into_iter().chain(chosen).collect()
}

impl Dumpers {
    fn compare(&self, data: &Path, runs: NonZeroU32) -> Result<Line> {
        let rows = self.equal_rows(data)?;
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..runs.get() {
            theirs.push(seconds(&mut self.cassandra.sstabledump(data)?)?);
            ours.push(seconds(&mut dump(&self.siltstone, data))?);
        }
        Ok(Line {
            name: short_name(data),
            rows,
            theirs: median(theirs),
            ours: median(ours),
            peak_kib: peak_kib(&mut dump(&self.siltstone, data))?,
        })
    }

    /// How many rows both print, if they print the same.
    fn equal_rows(&self, data: &Path) -> Result<usize> {
        let theirs = parse(&checked(&mut self.cassandra.sstabledump(data)?)?.stdout)?;
        let ours = parse(&checked(&mut dump(&self.siltstone, data))?.stdout)?;
        match difference(&ours, &theirs) {
            None => Ok(count_rows(&ours)),
            Some(difference) => Err(format!("{}: the dumps differ {difference}", data.display()).into()),
        }
    }
}

/// A dump, without what depends on when it was made.
fn parse(dump: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(dump).map(without_expired)
}

/// The rows of a dump, static rows included; range tombstones are none.
fn count_rows(dump: &Value) -> usize {
    let partitions = dump.as_array().into_iter().flatten();
    let fragments = partitions.filter_map(|partition| partition["rows"].as_array()).flatten();
    fragments.filter(|fragment| fragment["type"] == "row" || fragment["type"] == "static_block").count()
}

/// The table; its first line is taken for the start of Java.
fn table(lines: &[Line]) -> String {
    let mut table = "| file | rows | Cassandra, s | Siltstone, s | ratio | without Java's start | Siltstone's peak memory, KiB |\n\
                     |---|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    let start = lines.first().map_or(0.0, |line| line.theirs);
    for Line { name, rows, theirs, ours, peak_kib } in lines {
        let (ratio, without_start) = (theirs / ours, ratio_or_dash(theirs - start, *ours));
        writeln!(
            table,
            "| `{name}` | {rows} | {theirs:.3} | {ours:.4} | {ratio:.1}× | {without_start} | {peak_kib} |"
        )
        .expect("a string takes all");
    }
    table
}

fn ratio_or_dash(theirs: f64, ours: f64) -> String {
    if theirs > 0.0 { format!("{:.1}×", theirs / ours) } else { "–".to_owned() }
}

/// How it was run, as the page tells it.
fn settings(runs: NonZeroU32) -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!(
        "```sh\ncargo xtask compare-dump --runs {runs} --write\n```\n\n\
         Cassandra {VERSION}; the median of {runs} runs of each, in turn, on {cores} cores. Times are good for the ratio only.\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let parse = |text: &str| parse(text.as_bytes()).unwrap();
        assert_eq!(parse("[{\"expired\": true, \"a\": 1.50}]"), parse("[{\"expired\": false, \"a\": 1.50}]"));
        assert_ne!(parse("1.5"), parse("1.50"));
        assert_ne!(parse("12345678901234567890.1"), parse("12345678901234567890.2"));
    }

    #[test]
    fn rows_are_counted() {
        let dump = json!([
            {"partition": {}, "rows": [{"type": "static_block"}, {"type": "row"}, {"type": "range_tombstone_bound"}]},
            {"partition": {}, "rows": [{"type": "row"}]},
        ]);
        assert_eq!(count_rows(&dump), 3);
    }

    #[test]
    fn the_table_is_markdown() {
        let line = |name: &str, theirs: f64| Line {
            name: name.to_owned(),
            rows: 7,
            theirs,
            ours: 0.02,
            peak_kib: 900,
        };
        let table = table(&[line("a", 1.0), line("b", 1.5)]);
        let expected = "|\n| `a` | 7 | 1.000 | 0.0200 | 50.0× | – | 900 |\n\
                        | `b` | 7 | 1.500 | 0.0200 | 75.0× | 25.0× | 900 |\n";
        assert!(table.ends_with(expected), "{table}");
    }
}
