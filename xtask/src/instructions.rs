//! How many instructions and allocations a read or a write takes, counted by valgrind.
//!
//! An operation is run *n* times, and three times as often; what the second run takes more is that of 2*n* operations. The
//! start of the program, what fills its tables and what warms them up is in both, and goes out.
//!
//! ```text
//! siltstone-perf … --operations n     ──►  a
//! siltstone-perf … --operations 3n    ──►  b        (b − a) / 2n  for one
//! ```

use std::fs;
use std::path::Path;
use std::process::Command;

use clap::Args;
use serde_json::Value;
use testkit::command::checked;

use crate::pages::grouped;
use crate::workspace::perf;
use crate::{Result, pages};

/// The page that `--write` writes.
const PAGE: &str = "docs/performance/instructions.md";

/// What valgrind is told: instructions alone are counted.
const VALGRIND: [&str; 3] = ["--quiet", "--tool=cachegrind", "--cache-sim=no"];

/// What each run is told: valgrind knows no io_uring, and data is at hand in the page cache of the operating system.
const MACHINE: &str = "--io-uring false --direct-io false";

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// Write the table to docs/performance/instructions.md as well.
    #[arg(long)]
    write: bool,

    /// Only operations whose line has this text.
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with = "write")]
    only: String,
}

/// An operation that is counted.
struct Operation {
    what: &'static str,
    /// The benchmark and its arguments.
    arguments: &'static str,
    /// How often it is run the first time.
    times: u64,
    /// Instructions and allocations of the published program, where there is one.
    published: &'static str,
}

const fn operation(
    what: &'static str,
    arguments: &'static str,
    times: u64,
    published: &'static str,
) -> Operation {
    Operation { what, arguments, times, published }
}

static OPERATIONS: [Operation; 25] = [
    operation("a row, row cache", "reads --from row-cache --what row", 5000, ""),
    operation("a row, memtable", "reads --from memtable --what row", 5000, ""),
    operation("a row, SSTable", "reads --from sstable --what row", 2000, ""),
    operation(
        "a row, SSTable, 1,000,000 rows in blocks of 1 KiB",
        "reads --from sstable --what row --rows 1000000 --column-index-size-in-kb 1",
        10_000,
        "313,882 / 110",
    ),
    operation("an absent row, row cache", "reads --from row-cache --what absent-row", 5000, ""),
    operation("an absent row, memtable", "reads --from memtable --what absent-row", 5000, ""),
    operation("an absent row, SSTable", "reads --from sstable --what absent-row", 2000, ""),
    operation("an absent partition, row cache", "reads --from row-cache --what absent-partition", 5000, ""),
    operation("an absent partition, SSTable", "reads --from sstable --what absent-partition", 5000, ""),
    operation("100 rows, row cache", "reads --from row-cache --what slice", 1000, ""),
    operation("100 rows, memtable", "reads --from memtable --what slice", 1000, ""),
    operation("100 rows, SSTable", "reads --from sstable --what slice", 500, ""),
    operation("100 rows reversed, row cache", "reads --from row-cache --what reversed-slice", 1000, ""),
    operation("100 rows reversed, memtable", "reads --from memtable --what reversed-slice", 1000, ""),
    operation("100 rows reversed, SSTable", "reads --from sstable --what reversed-slice", 500, ""),
    operation("simple-query, memtable", "simple-query --concurrency 1", 5000, ""),
    operation(
        "simple-query, more than memory has room for",
        "simple-query --concurrency 1 --memory 200M --partitions 1000000",
        200_000,
        "109,236 / 130.7",
    ),
    operation(
        "simple-query, more than memory has room for, without fences",
        "simple-query --concurrency 1 --memory 200M --partitions 1000000 --fences 0",
        200_000,
        "109,236 / 130.7",
    ),
    operation(
        "simple-query, more than memory has room for, while the cache fills",
        "simple-query --concurrency 1 --memory 200M --partitions 1000000",
        50_000,
        "109,236 / 130.7",
    ),
    operation(
        "simple-query, a tenth of partitions and memory",
        "simple-query --concurrency 1 --memory 20M --partitions 100000",
        10_000,
        "109,236 / 130.7",
    ),
    operation(
        "simple-query, a tenth of partitions and memory, without fences",
        "simple-query --concurrency 1 --memory 20M --partitions 100000 --fences 0",
        10_000,
        "109,236 / 130.7",
    ),
    operation(
        "simple-query, nothing in memory",
        "simple-query --concurrency 1 --memory 200M --partitions 100000 --flush --enable-cache 0 --enable-index-cache 0",
        1000,
        "396,164 / 150.7",
    ),
    operation(
        "simple-query, nothing in memory, without fences",
        "simple-query --concurrency 1 --memory 200M --partitions 100000 --flush --enable-cache 0 --enable-index-cache 0 --fences 0",
        1000,
        "396,164 / 150.7",
    ),
    operation(
        "simple-query, nothing in memory, more summary, without fences",
        "simple-query --concurrency 1 --memory 200M --partitions 100000 --flush --enable-cache 0 --enable-index-cache 0 --sstable-summary-ratio 0.005 --fences 0",
        1000,
        "121,047 / 148.2",
    ),
    operation("simple-query, a write", "simple-query --concurrency 1 --write", 5000, ""),
];

/// What a run took, or one operation.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Taken {
    instructions: f64,
    allocations: f64,
}

/// Counts, and prints the table.
///
/// # Errors
/// If there is no valgrind, or a run fails.
pub fn run(options: &Options) -> Result<()> {
    check_valgrind()?;
    let program = perf()?;
    let mut lines = Vec::new();
    for operation in OPERATIONS.iter().filter(|operation| operation.has(&options.only)) {
        eprintln!("{}", operation.what);
        lines.push((operation, operation.count(&program)?));
    }
    let table = table(&lines);
    print!("{table}");
    if options.write {
        pages::write(PAGE, [("operations", &*table)])?;
    }
    Ok(())
}

/// That valgrind is there.
///
/// # Errors
/// If it is not.
pub(crate) fn check_valgrind() -> Result<()> {
    check_tool("valgrind", "counts the instructions")
}

/// That a program is there, which does this, by the name of its package.
///
/// # Errors
/// If it is not.
pub(crate) fn check_tool(name: &str, does: &str) -> Result<()> {
    match Command::new(name).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        _ => {
            Err(format!("{name} {does}, and is not installed: most systems have it as the package `{name}`")
                .into())
        }
    }
}

/// The instructions of one operation: of the first one of the table with these arguments.
///
/// # Errors
/// If it is not there, or a run fails.
pub(crate) fn of(program: &Path, arguments: &str) -> Result<f64> {
    let operation = with_arguments(arguments);
    let operation = operation.ok_or_else(|| format!("nothing counts the instructions of {arguments}"))?;
    Ok(operation.count(program)?.instructions)
}

fn with_arguments(arguments: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.arguments == arguments)
}

/// Whether the table counts an operation with these arguments.
#[cfg(test)]
pub(crate) fn counts(arguments: &str) -> bool {
    with_arguments(arguments).is_some()
}

impl Operation {
    fn has(&self, text: &str) -> bool {
        self.what.contains(text) || self.arguments.contains(text)
    }

    /// What it takes once.
    fn count(&self, program: &Path) -> Result<Taken> {
        let (once, thrice) = (self.take(program, self.times)?, self.take(program, 3 * self.times)?);
        Ok(thrice.less(once).by((2 * self.times) as f64))
    }

    /// What so many of them take, with all that comes before.
    fn take(&self, program: &Path, times: u64) -> Result<Taken> {
        let (instructions, printed) = counted(program, self.arguments, None, times)?;
        let allocations = allocations(&printed).ok_or("the benchmark has counted no allocations")?;
        Ok(Taken { instructions, allocations })
    }
}

/// The instructions of a benchmark with so many operations, on the data in a folder if it is told one, and what it prints. The words of
/// its arguments are without spaces.
///
/// # Errors
/// If a run fails.
pub(crate) fn counted(
    program: &Path,
    arguments: &str,
    data: Option<&Path>,
    operations: u64,
) -> Result<(f64, Value)> {
    let folder = tempfile::tempdir()?;
    let counts = folder.path().join("counts");
    let mut command = Command::new("valgrind");
    command.args(VALGRIND).arg(format!("--cachegrind-out-file={}", counts.display())).arg(program);
    command.args(full(arguments, operations).split(' ')).args(["--output-format", "json"]);
    if let Some(data) = data {
        command.arg("--data-directory").arg(data);
    }
    let printed = serde_json::from_slice(&checked(&mut command)?.stdout)?;
    let counts = fs::read_to_string(counts)?;
    Ok((instructions(&counts).ok_or("valgrind has counted nothing")?, printed))
}

/// All that a run is told and that its counts depend on.
fn full(arguments: &str, operations: u64) -> String {
    format!("{arguments} {MACHINE} --operations {operations}")
}

impl Taken {
    fn less(self, other: Taken) -> Taken {
        Taken {
            instructions: self.instructions - other.instructions,
            allocations: self.allocations - other.allocations,
        }
    }

    fn by(self, count: f64) -> Taken {
        Taken { instructions: self.instructions / count, allocations: self.allocations / count }
    }
}

/// What the file of valgrind says at its end.
fn instructions(counts: &str) -> Option<f64> {
    counts.lines().find_map(|line| line.strip_prefix("summary:")?.trim().parse().ok())
}

/// Of the one line of a benchmark.
fn allocations(printed: &Value) -> Option<f64> {
    let line = printed.get("line").or_else(|| printed.get("lines")?.get(0))?;
    line.get("allocations")?.as_f64()
}

fn table(lines: &[(&Operation, Taken)]) -> String {
    let mut table =
        "| operation | instructions | allocations | published | `siltstone perf …` |\n".to_owned();
    table += "|---|---:|---:|---:|---|\n";
    for (Operation { what, arguments, times, published }, taken) in lines {
        let (instructions, allocations) = (grouped(taken.instructions, 0), taken.allocations);
        let published = if published.is_empty() { "–" } else { published };
        let command = full(arguments, *times);
        table += &format!("| {what} | {instructions} | {allocations:.1} | {published} | `{command}` |\n");
    }
    table
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_are_found() {
        assert_eq!(instructions("events: Ir\nfn=a\n3 4\nsummary: 1234\n"), Some(1234.0));
        assert_eq!(instructions("events: Ir\n"), None);
        assert_eq!(allocations(&json!({ "lines": [{ "allocations": 7 }] })), Some(7.0));
        assert_eq!(allocations(&json!({ "line": { "allocations": 8 } })), Some(8.0));
        assert_eq!(allocations(&json!({ "line": { "allocations": null } })), None);
    }

    #[test]
    fn what_is_in_both_runs_goes_out() {
        let taken = |instructions, allocations| Taken { instructions, allocations };
        let one = taken(1000.0 + 3.0 * 70.0, 50.0 + 3.0 * 2.0).less(taken(1000.0 + 70.0, 50.0 + 2.0)).by(2.0);
        assert_eq!(one, taken(70.0, 2.0));
    }

    #[test]
    fn the_table_is_markdown() {
        let taken = Taken { instructions: 1_234_567.4, allocations: 12.34 };
        let lines: Vec<_> = OPERATIONS.iter().map(|operation| (operation, taken)).collect();
        let table = table(&lines);
        assert!(
            table.contains(
                "| a row, row cache | 1,234,567 | 12.3 | – | `reads --from row-cache --what row --io-uring false --direct-io false \
                 --operations 5000` |\n"
            )
        );
        assert!(table.lines().all(|line| line.matches('|').count() == 6), "{table}");
    }
}
