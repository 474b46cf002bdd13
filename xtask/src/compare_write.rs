//! How many rows a second Cassandra's CQLSSTableWriter writes, how many its flush, and how many we do, side by side.
//!
//! The rows are the same and come in the order of the SSTable. Cassandra's writer is measured twice: as it is by itself, where
//! it gathers rows and sorts them, and told that they are sorted, where it writes them as they come. The third rival is a
//! whole node, which has the rows in a memtable and flushes it. Java's start is not part of its time, and neither are its
//! first rounds, in which it is compiled. All results are dumped, and must be equal.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, thread};

use clap::Args;
use testkit::cassandra::{Cassandra, Node, TableName, VERSION, Work, Writes};
use testkit::command::checked;

use crate::measure::{median, peak_kib, seconds};
use crate::workspace::{dump, root, siltstone, target};
use crate::{Result, pages};

/// Partitions, rows a partition, bytes a value.
const SHAPES: [[u32; 3]; 4] = [[1, 2_000_000, 100], [1000, 1000, 200], [200_000, 5, 50], [500_000, 1, 500]];

/// So many rounds warm Java up.
const WARM_UP: u32 = 2;

/// What of Cassandra's is measured, in the order of the columns.
const RIVALS: [&str; 5] = [
    "Cassandra's writer, first round",
    "warm",
    "warm, told they are sorted",
    "flush, first round",
    "flush, warm",
];

/// The options are those that the writers take by themselves. Nothing goes to the commit log, nothing is compacted.
const TABLE: [&str; 2] = [
    "CREATE KEYSPACE lab WITH durable_writes = false
     AND replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE lab.rows (k int, c int, v blob, PRIMARY KEY (k, c))
     WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': false}",
];

/// The page that `--write` writes.
const PAGE: &str = "docs/performance/write.md";

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// A folder with the jars of cassandra-all; without it Maven brings them.
    #[arg(long, value_name = "DIR")]
    cassandra: Option<PathBuf>,

    /// How often each is run.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Write the table to docs/performance/write.md as well.
    #[arg(long)]
    write: bool,
}

/// A line of the table.
#[derive(Debug)]
struct Line {
    shape: [u32; 3],
    /// Seconds of each of [`RIVALS`].
    rivals: [f64; 5],
    ours: f64,
    converted: f64,
    peak_kib: u64,
}

/// Compares, and prints the table.
///
/// # Errors
/// If one of them fails, or the results are not equal.
pub fn run(options: &Options) -> Result<()> {
    let cassandra = Cassandra::prepare(&target(), options.cassandra.as_deref())?;
    let writers = Writers { cassandra, siltstone: siltstone()?, example: example()?, runs: options.runs };
    let mut lines = Vec::new();
    for shape in SHAPES {
        eprintln!("{shape:?}");
        lines.push(writers.compare(shape)?);
    }
    let tables = tables(&lines);
    print!("{tables}");
    if options.write {
        pages::write(PAGE, [("settings", &*settings(options.runs)), ("rows", &*tables)])?;
    }
    Ok(())
}

/// The program that writes the rows with our library.
fn example() -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root());
    checked(cargo.args([
        "build",
        "--release",
        "--quiet",
        "-p",
        "siltstone-sstable",
        "--example",
        "write_rows",
    ]))?;
    Ok(target().join("release/examples/write_rows"))
}

/// All writers, ready to be started.
struct Writers {
    cassandra: Cassandra,
    siltstone: PathBuf,
    example: PathBuf,
    runs: u32,
}

impl Writers {
    fn compare(&self, shape: [u32; 3]) -> Result<Line> {
        let folder = tempfile::tempdir()?;
        let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
        let [first, gathered] = self.cassandras(&theirs, shape, false)?;
        let [_, sorted] = self.cassandras(&theirs, shape, true)?;
        let node = folder.path().join("node");
        let ([flushed_first, flushed], theirs_flushed) = self.flushes(&node, shape)?;
        let mut written = Vec::new();
        let mut converted = Vec::new();
        for _ in 0..self.runs {
            empty(&ours)?;
            written.push(self.write(&ours, shape)?);
            let dest = folder.path().join("converted");
            empty(&dest)?;
            converted.push(seconds(&mut self.convert(&theirs, &dest))?);
        }
        self.check_equal(&theirs, &theirs_flushed, &ours)?;
        empty(&ours)?;
        let peak_kib = peak_kib(&mut self.command(&ours, shape))?;
        let rivals = [first, gathered, sorted, flushed_first, flushed];
        Ok(Line { shape, rivals, ours: median(written), converted: median(converted), peak_kib })
    }

    /// The seconds that Cassandra's writer takes the first time, and those it takes once Java is warm.
    fn cassandras(&self, folder: &Path, shape: [u32; 3], sorted: bool) -> Result<[f64; 2]> {
        let printed = checked(&mut self.cassandra.write_rows(folder, shape, WARM_UP + self.runs, sorted)?)?;
        let rounds = String::from_utf8(printed.stdout)?;
        let rounds: Vec<f64> = rounds.lines().map(str::parse).collect::<std::result::Result<_, _>>()?;
        Ok(first_and_warm(&rounds))
    }

    /// The same of a node's flush, and the SSTable that it leaves.
    fn flushes(&self, folder: &Path, shape: [u32; 3]) -> Result<([f64; 2], PathBuf)> {
        let mut node = self.cassandra.node(folder, Writes::Oa, Work::Flushes)?;
        let table = TableName { keyspace: "lab".to_owned(), name: "rows".to_owned() };
        node.cql(&TABLE)?;
        let mut rounds = Vec::new();
        loop {
            let (seconds, data) = flush(&mut node, &table, shape)?;
            rounds.push(seconds);
            if rounds.len() == (WARM_UP + self.runs) as usize {
                node.quit()?;
                return Ok((first_and_warm(&rounds), data));
            }
            node.maintain("truncate", &table)?;
        }
    }

    fn command(&self, folder: &Path, shape: [u32; 3]) -> Command {
        let mut command = Command::new(&self.example);
        command.arg(folder).args(shape.map(|number| number.to_string()));
        command
    }

    /// The seconds that our writer says it took.
    fn write(&self, folder: &Path, shape: [u32; 3]) -> Result<f64> {
        let printed = checked(&mut self.command(folder, shape))?.stdout;
        Ok(String::from_utf8(printed)?.trim().parse()?)
    }

    /// Reads what Cassandra wrote, and writes it again.
    fn convert(&self, theirs: &Path, dest: &Path) -> Command {
        let mut command = Command::new(&self.siltstone);
        command.args(["sstable", "convert", "--to", "oa"]).arg(theirs).arg(dest);
        command
    }

    /// A flush knows the earliest timestamp before it writes, and takes fewer bytes for each: only its positions differ.
    fn check_equal(&self, theirs: &Path, flushed: &Path, ours: &Path) -> Result<()> {
        let dumped = |data: &Path| checked(&mut dump(&self.siltstone, data)).map(|output| output.stdout);
        let ours = dumped(ours)?;
        if dumped(theirs)? != ours {
            return Err("the rows that Cassandra wrote and ours differ".into());
        }
        if !without_positions(&dumped(flushed)?).eq(without_positions(&ours)) {
            return Err("the rows that Cassandra flushed and ours differ".into());
        }
        Ok(())
    }
}

/// Fills the memtable of a table that is empty and flushes it: the seconds of the flush, and its only SSTable.
fn flush(node: &mut Node, table: &TableName, shape: [u32; 3]) -> Result<(f64, PathBuf)> {
    node.fill(table, shape)?;
    if !node.files(table)?.is_empty() {
        return Err("the memtable was flushed before it was full".into());
    }
    let seconds = node.flush(table)?;
    match <[PathBuf; 1]>::try_from(node.files(table)?) {
        Ok([data]) => Ok((seconds, data)),
        Err(files) => Err(format!("the flush left {} SSTables", files.len()).into()),
    }
}

/// The first of some rounds, and the median of those in which Java is warm.
fn first_and_warm(rounds: &[f64]) -> [f64; 2] {
    [rounds[0], median(rounds[WARM_UP as usize..].to_vec())]
}

/// The lines of a dump that do not say where something stands.
fn without_positions(dump: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = dump.split(|byte| *byte == b'\n');
    lines.filter(|line| !line.trim_ascii_start().starts_with(br#""position" : "#))
}

/// Leaves an empty folder.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

/// Rows a second of all; below, how many times faster ours are than each of the rivals.
fn tables(lines: &[Line]) -> String {
    let mut tables = format!("| rows/s | {} | Siltstone | convert |\n", RIVALS.join(" | "));
    tables += "|---|---:|---:|---:|---:|---:|---:|---:|\n";
    lines.iter().for_each(|line| tables += &line.rates());
    tables += &format!("\n| Siltstone, convert: ratios to | {} | peak memory, KiB |\n", RIVALS.join(" | "));
    tables += "|---|---:|---:|---:|---:|---:|---:|\n";
    lines.iter().for_each(|line| tables += &line.ratios());
    tables
}

impl Line {
    fn rates(&self) -> String {
        let [partitions, rows, bytes] = self.shape;
        let all = self.rivals.iter().chain([&self.ours, &self.converted]);
        let rates = all.map(|seconds| format!(" {:.0} |", f64::from(partitions * rows) / seconds));
        format!("| {partitions} × {rows} × {bytes} |{}\n", rates.collect::<String>())
    }

    fn ratios(&self) -> String {
        let [partitions, rows, bytes] = self.shape;
        let ratio = |rival: &f64| format!(" {:.1}×, {:.1}× |", rival / self.ours, rival / self.converted);
        let ratios: String = self.rivals.iter().map(ratio).collect();
        format!("| {partitions} × {rows} × {bytes} |{ratios} {} |\n", self.peak_kib)
    }
}

/// How it was run, as the page tells it.
fn settings(runs: u32) -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let place = env::var("TMPDIR").map_or_else(|_| String::new(), |folder| format!("TMPDIR={folder} "));
    format!(
        "```sh\n{place}cargo xtask compare-write --runs {runs} --write\n```\n\n\
         Cassandra {VERSION}; the median of {runs} rounds of each, on {cores} cores, one after the other. Times are good for the ratio only.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_markdown() {
        let rivals = [4.0, 2.0, 1.0, 0.5, 0.4];
        let line = Line { shape: [2, 500, 7], rivals, ours: 0.1, converted: 0.2, peak_kib: 900 };
        let tables = tables(&[line]);
        let rates = "|\n| 2 × 500 × 7 | 250 | 500 | 1000 | 2000 | 2500 | 10000 | 5000 |\n\n|";
        assert!(tables.contains(rates), "{tables}");
        let ratios =
            "| 2 × 500 × 7 | 40.0×, 20.0× | 20.0×, 10.0× | 10.0×, 5.0× | 5.0×, 2.5× | 4.0×, 2.0× | 900 |\n";
        assert!(tables.ends_with(ratios), "{tables}");
        for table in tables.split("\n\n") {
            let columns = |line: &str| line.matches('|').count();
            assert!(table.lines().all(|line| columns(line) == columns(table.lines().next().unwrap())));
        }
    }

    #[test]
    fn rows_may_stand_elsewhere() {
        let dump = |at: u32, value: u32| format!("{{\n  \"position\" : {at},\n  \"value\" : {value}\n}}");
        let equal =
            |a: String, b: String| without_positions(a.as_bytes()).eq(without_positions(b.as_bytes()));
        assert!(equal(dump(7, 1), dump(8, 1)));
        assert!(!equal(dump(7, 1), dump(7, 2)));
    }

    #[test]
    fn rounds_that_warm_java_up_are_left_out() {
        assert_eq!(first_and_warm(&[9.0, 8.0, 3.0, 1.0, 2.0]), [9.0, 2.0]);
    }
}
