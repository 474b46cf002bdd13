//! How many rows a second Cassandra's CQLSSTableWriter writes and how many we do, side by side.
//!
//! The rows are the same and come in the order of the SSTable. Cassandra's writer is measured twice: as it is by itself, where
//! it gathers rows and sorts them, and told that they are sorted, where it writes them as they come, as a flush does. Java's
//! start is not part of its time, and neither are its first rounds, in which it is compiled. Both results are
//! dumped, and must be equal.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use clap::Args;
use testkit::cassandra::{Cassandra, VERSION};
use testkit::command::checked;

use crate::Result;
use crate::measure::{median, peak_kib, seconds};
use crate::workspace::{dump, root, siltstone, target};

/// Partitions, rows a partition, bytes a value.
const SHAPES: [[u32; 3]; 4] = [[1, 2_000_000, 100], [1000, 1000, 200], [200_000, 5, 50], [500_000, 1, 500]];

/// So many rounds warm Java up.
const WARM_UP: u32 = 2;

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
    /// Seconds of Cassandra's first round, and the medians of what follows.
    first: f64,
    theirs_gathered: f64,
    theirs: f64,
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
    let table = table(&lines);
    print!("{table}");
    if options.write {
        fs::write(root().join(PAGE), page(&table, options.runs))?;
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

/// Both writers, ready to be started.
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
        let (first, theirs_gathered) = self.cassandras(&theirs, shape, false)?;
        let (_, sorted) = self.cassandras(&theirs, shape, true)?;
        let mut written = Vec::new();
        let mut converted = Vec::new();
        for _ in 0..self.runs {
            empty(&ours)?;
            written.push(self.write(&ours, shape)?);
            let dest = folder.path().join("converted");
            empty(&dest)?;
            converted.push(seconds(&mut self.convert(&theirs, &dest))?);
        }
        self.check_equal(&theirs, &ours)?;
        empty(&ours)?;
        let peak_kib = peak_kib(&mut self.command(&ours, shape))?;
        Ok(Line {
            shape,
            first,
            theirs_gathered,
            theirs: sorted,
            ours: median(written),
            converted: median(converted),
            peak_kib,
        })
    }

    /// The seconds that Cassandra's writer takes the first time, and those it takes once Java is warm.
    fn cassandras(&self, folder: &Path, shape: [u32; 3], sorted: bool) -> Result<(f64, f64)> {
        let printed = checked(&mut self.cassandra.write_rows(folder, shape, WARM_UP + self.runs, sorted)?)?;
        let rounds = String::from_utf8(printed.stdout)?;
        let rounds: Vec<f64> = rounds.lines().map(str::parse).collect::<std::result::Result<_, _>>()?;
        Ok((rounds[0], median(rounds[WARM_UP as usize..].to_vec())))
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

    fn check_equal(&self, theirs: &Path, ours: &Path) -> Result<()> {
        let dumped = |folder: &Path| checked(&mut dump(&self.siltstone, folder)).map(|output| output.stdout);
        if dumped(theirs)? != dumped(ours)? {
            return Err("the rows that Cassandra wrote and ours differ".into());
        }
        Ok(())
    }
}

/// Leaves an empty folder.
fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}

fn table(lines: &[Line]) -> String {
    let mut table = "| partitions × rows × bytes | Cassandra's first round, rows/s | warm | warm, told they are sorted | Siltstone, rows/s | ratios | convert, rows/s | ratios | Siltstone's peak memory, KiB |\n\
                     |---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for line in lines {
        let [partitions, rows, bytes] = line.shape;
        let rate = |seconds: f64| f64::from(partitions * rows) / seconds;
        let ratios = |ours: f64| {
            [line.first, line.theirs_gathered, line.theirs]
                .map(|theirs| format!("{:.1}×", theirs / ours))
                .join(", ")
        };
        writeln!(
            table,
            "| {partitions} × {rows} × {bytes} | {:.0} | {:.0} | {:.0} | {:.0} | {} | {:.0} | {} | {} |",
            rate(line.first),
            rate(line.theirs_gathered),
            rate(line.theirs),
            rate(line.ours),
            ratios(line.ours),
            rate(line.converted),
            ratios(line.converted),
            line.peak_kib,
        )
        .expect("a string takes all");
    }
    table
}

fn page(table: &str, runs: u32) -> String {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    format!(
        "# Writing an SSTable\n\n\
         Cassandra {VERSION}'s `CQLSSTableWriter` and `SSTableWriter`, with the same rows. Printed by\n\n\
         ```sh\nTMPDIR=/dev/shm cargo xtask compare-write --runs {runs} --write\n```\n\n\
         {table}\n\
         - The median of {runs} rounds of each, on {cores} cores, one after the other. Times are good for the ratio only.\n\
         - The first round is that of a Java that has just started, whose start is not counted; the others are the median of the\n  \
           rounds behind the second. All are from the first row to the closed SSTable.\n\
         - By itself Cassandra's writer gathers rows and sorts them; told that they are sorted, it writes them as they come. The\n  \
           ratios are to all three. Against a warm Java most are below 5: our writer is one thread, Cassandra's are several.\n\
         - Both write version `oa`, LZ4 in chunks of 16 KiB; ours syncs every file.\n\
         - The files are in memory: a disk, for which both wait at the end, would be what is measured.\n\
         - *convert* reads what Cassandra wrote and writes it again, from the start of the process to its end.\n\
         - Both results were dumped and are equal.\n\
         - Half of each value does not compress. Memory is that of the whole process; in the last two lines it is mostly the\n  \
           list of keys of the program that makes the rows up.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_markdown() {
        let (shape, first, theirs_gathered, theirs) = ([2, 500, 7], 4.0, 2.0, 1.0);
        let line = Line { shape, first, theirs_gathered, theirs, ours: 0.1, converted: 0.2, peak_kib: 900 };
        let table = table(&[line]);
        assert!(
            table.ends_with(
                "|\n| 2 × 500 × 7 | 250 | 500 | 1000 | 10000 | 40.0×, 20.0×, 10.0× | 5000 | 20.0×, 10.0×, 5.0× | 900 |\n"
            ),
            "{table}"
        );
        assert!(page(&table, 3).contains(&table));
    }
}
