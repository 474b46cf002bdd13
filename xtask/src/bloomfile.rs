//! What lookups in bloom filters cost: `siltstone perf bloomfile` a few times, and the medians of that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::Value;
use testkit::command::checked;

use crate::instructions::{check_valgrind, counted};
use crate::measure::median;
use crate::pages::grouped;
use crate::workspace::{perf, target};
use crate::{Result, pages};

/// Of each case its name, its batches, and its ways. Those of a case are done in this order in each round, a process each,
/// or in turns by one process: see [`IN_TURNS`].
const CASES: [(&str, &[u64], &[&str]); 5] = [
    ("absent", &[0], &["before", "per-shard", "at-hand"]),
    ("churning", &[0], &["before", "per-shard", "at-hand"]),
    ("batches", &[1000, 20_000], &["before", "per-shard", "at-hand"]),
    ("large", &[1000, 20_000], &["per-shard", "at-hand", "whole"]),
    ("inserts", &[1000, 20_000], &["before", "per-shard", "at-hand"]),
];

/// The case that is mostly the disk's, which is not alike from one minute to the next: its ways are done in turns of some
/// milliseconds.
const IN_TURNS: &str = "churning";

/// The cases whose instructions are counted, with two numbers of lookups: what is between them is the difference. In the
/// others what is waited for is what matters, which valgrind does not know.
const COUNTED: [(&str, [u64; 2]); 3] =
    [("absent", [10_000, 60_000]), ("churning", [50_000, 150_000]), ("batches", [1_280_000, 5_120_000])];

/// The page that `--write` writes.
const PAGE: &str = "docs/performance/bloomfile.md";

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// The folder of the filters, which stay there: 600 MB.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// How often each is run; of times the median is told.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Count instructions too, by valgrind.
    #[arg(long)]
    instructions: bool,

    /// Write the tables to docs/performance/bloomfile.md as well.
    #[arg(long)]
    write: bool,
}

/// A case, a batch and a way.
type Which = (&'static str, u64, &'static str);

/// What all runs printed of one of them.
#[derive(Default)]
struct Lines(Vec<Value>);

/// Measures, and prints the tables.
///
/// # Errors
/// If a run fails.
pub fn run(options: &Options) -> Result<()> {
    if options.instructions {
        check_valgrind()?;
    }
    let program = perf()?;
    let data = options.data.clone().unwrap_or_else(|| target().join("perf-bloomfile"));
    let (mut lines, mut state): (BTreeMap<Which, Lines>, Value) = Default::default();
    for round in 1..=options.runs {
        for (case, batch, ways) in processes() {
            eprintln!("round {round}: {case} {batch} {}", ways.join(" "));
            let mut command = Command::new(&program);
            command.args(arguments((case, batch, &ways)).split(' ')).arg("--data-directory").arg(&data);
            command.args(["--lookups", &lookups(case).to_string(), "--output-format", "json"]);
            let printed: Value = serde_json::from_slice(&checked(&mut command)?.stdout)?;
            for (number, way) in ways.into_iter().enumerate() {
                lines.entry((case, batch, way)).or_default().0.push(printed["bloomfile"][number].clone());
            }
            state = printed["state"].clone();
        }
    }
    let mut instructions: BTreeMap<Which, f64> = BTreeMap::new();
    for which in all().filter(|_| options.instructions) {
        if let Some((_, lookups)) = COUNTED.iter().find(|(case, _)| *case == which.0) {
            eprintln!("instructions: {} {} {}", which.0, which.1, which.2);
            instructions.insert(which, per_lookup(&program, which, &data, *lookups)?);
        }
    }
    let text = format!("{}\n{}", table(&lines, &instructions), of_state(&state));
    print!("{text}");
    if options.write {
        pages::write(PAGE, [("cases", &*text)])?;
    }
    Ok(())
}

/// What one process does: a case, a batch, and the ways.
fn processes() -> impl Iterator<Item = (&'static str, u64, Vec<&'static str>)> {
    CASES.into_iter().flat_map(|(case, batches, ways)| {
        let of_process = if case == IN_TURNS { ways.len() } else { 1 };
        batches
            .iter()
            .flat_map(move |&batch| ways.chunks(of_process).map(move |ways| (case, batch, ways.to_vec())))
    })
}

fn all() -> impl Iterator<Item = Which> {
    CASES.into_iter().flat_map(|(case, batches, ways)| {
        batches.iter().flat_map(move |&batch| ways.iter().map(move |&way| (case, batch, way)))
    })
}

/// The instructions of a lookup, with all that a benchmark does for it.
fn per_lookup(program: &Path, (case, batch, way): Which, data: &Path, lookups: [u64; 2]) -> Result<f64> {
    let arguments = arguments((case, batch, &[way]));
    let [few, more] = lookups.map(|lookups| {
        let (instructions, printed) = counted(program, &arguments, Some(data), lookups)?;
        let lookups =
            printed["bloomfile"][0]["lookups"].as_f64().ok_or("it does not say how many lookups")?;
        crate::Result::Ok((instructions, lookups))
    });
    let (few, more) = (few?, more?);
    Ok((more.0 - few.0) / (more.1 - few.1))
}

fn arguments((case, batch, ways): (&str, u64, &[&str])) -> String {
    let batch = if batch > 0 { format!(" --batch {batch}") } else { String::new() };
    let ways: String = ways.iter().map(|way| format!(" --way {way}")).collect();
    format!("bloomfile --case {case}{ways}{batch}")
}

/// Lookups where time is measured.
fn lookups(case: &str) -> u64 {
    match case {
        "batches" | "large" => 10_000_000,
        "inserts" => 2_000_000,
        _ => 1_000_000,
    }
}

impl Lines {
    /// The median of a column.
    fn median(&self, column: &str) -> f64 {
        median(self.0.iter().filter_map(|line| line[column].as_f64()).collect())
    }

    /// How many times as much these took of a column as others of the same rounds: the median of the rounds.
    fn ratio(&self, others: &Lines, column: &str) -> f64 {
        let of_round = |(own, other): (&Value, &Value)| Some(own[column].as_f64()? / other[column].as_f64()?);
        median(self.0.iter().zip(&others.0).filter_map(of_round).collect())
    }
}

fn table(lines: &BTreeMap<Which, Lines>, instructions: &BTreeMap<Which, f64>) -> String {
    let mut text =
        "| case | batch | way | ns | CPU ns | instructions | passed | cache lookups | pages read | \
                    CPU, of before | of per-shard | of whole |\n\
                    |---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"
            .to_owned();
    for which @ (case, batch, way) in all() {
        let Some(line) = lines.get(&which) else { continue };
        let share = |of: &'static str| match lines.get(&(case, batch, of)) {
            Some(other) => format!("{:.2}", line.ratio(other, "cpu ns")),
            None => "–".to_owned(),
        };
        let batch = if batch == 0 { "–".to_owned() } else { grouped(batch as f64, 0) };
        text += &format!(
            "| {case} | {batch} | {way} | {:.0} | {:.0} | {} | {:.2} % | {} | {} | {} | {} | {} |\n",
            line.median("ns"),
            line.median("cpu ns"),
            instructions.get(&which).map_or("–".to_owned(), |count| grouped(*count, 0)),
            100.0 * line.median("passed"),
            grouped(line.median("cache"), 0),
            grouped(line.median("read"), 0),
            share("before"),
            share("per-shard"),
            share("whole"),
        );
    }
    text
}

fn of_state(state: &Value) -> String {
    let kib = |column: &str| state[column].as_f64().unwrap_or_default() / 1024.0;
    let now = kib("now");
    format!(
        "State that lookups keep, for {} SSTables and {} shards: before {:.1} MiB (published: about 246 MB, for 32k and 48), now {now:.0} KiB; the first \
         tokens of pages besides, 8 bytes for each 4 KiB of filter.\n",
        state["sstables"],
        state["shards"],
        kib("before") / 1024.0,
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_way_is_done_once_a_round() {
        let mut done: Vec<Which> = processes()
            .flat_map(|(case, batch, ways)| ways.into_iter().map(move |way| (case, batch, way)))
            .collect();
        assert!(processes().any(|(case, _, ways)| case == IN_TURNS && ways.len() == 3));
        assert!(done.iter().copied().eq(all()), "{done:?}");
        done.dedup();
        assert_eq!(done.len(), all().count());
    }

    #[test]
    fn the_table_is_markdown() {
        let line = |cpu: f64| json!({ "ns": 2.0 * cpu, "cpu ns": cpu, "passed": 0.0091, "cache": 1000, "read": 0, "lookups": 1 });
        let mut lines: BTreeMap<Which, Lines> = BTreeMap::new();
        for which in all() {
            let cpu = if which.2 == "at-hand" { 50.0 } else { 100.0 };
            lines.insert(which, Lines(vec![line(cpu), line(cpu + 10.0), line(cpu - 10.0)]));
        }
        let table = table(&lines, &BTreeMap::from([(("absent", 0, "at-hand"), 1234.0)]));
        assert!(
            table.contains(
                "| absent | – | at-hand | 100 | 50 | 1,234 | 0.91 % | 1,000 | 0 | 0.50 | 0.50 | – |\n"
            ),
            "{table}"
        );
        assert_eq!(table.lines().count(), 2 + all().count());
        assert!(table.lines().all(|line| line.matches('|').count() == 13), "{table}");
        let state = of_state(&json!({ "sstables": 32_000, "shards": 48, "before": 1 << 28, "now": 1 << 18 }));
        assert!(state.contains("before 256.0 MiB") && state.contains("now 256 KiB"), "{state}");
    }
}
