//! Point reads and writes: what they cost by the program that was published, and here.

use serde_json::Value;

use super::{Bench, Part};
use crate::Result;
use crate::instructions;
use crate::pages::{grouped, table};

/// The places on the page.
pub(super) const PARTS: &[&str] = &["beside", "all else"];

/// A configuration that was published: how it is called, its arguments, and for how many seconds it is run.
type Published = (&'static str, &'static str, u32);

/// In the order of the published lines. Until its cache is full the first one takes longest.
const PUBLISHED: [Published; 3] = [
    ("200 MiB for a million", "--memory 200M --partitions 1000000", 40),
    (
        "nothing in memory, summary 0.0005",
        "--memory 200M --partitions 100000 --flush --enable-cache 0 --enable-index-cache 0",
        10,
    ),
    (
        "the same, summary 0.005",
        "--memory 200M --partitions 100000 --flush --enable-cache 0 --enable-index-cache 0 --sstable-summary-ratio 0.005",
        10,
    ),
];

/// What everything that is in memory is asked for.
const OTHERS: [&str; 8] = [
    "",
    "--flush",
    "--flush --bypass-cache",
    "--flush --query-single-key",
    "--write",
    "--delete",
    "--counters",
    "--counters --write",
];

/// How their columns are named; the last one is counted by valgrind.
const COLUMNS: [&str; 4] = ["allocs_per_op", "logallocs_per_op", "tasks_per_op", "instructions_per_op"];

/// Runs all, and says what the tables are.
pub(super) fn parts(bench: &Bench) -> Result<Vec<Part>> {
    let published = bench.lines("queries")?;
    let mut lines = Vec::new();
    for ((name, arguments, seconds), of_others) in PUBLISHED.into_iter().zip(published) {
        let mut here = Vec::new();
        for (way, arguments) in ways(arguments) {
            here.push((way, costs(bench, &arguments, seconds)?));
        }
        lines.extend(beside(name, of_others, &here));
    }
    let heads = ["", "", "allocations", "into caches", "tasks", "instructions"];
    let beside = table(&heads, &lines);
    let mut lines = Vec::new();
    for arguments in OTHERS {
        let printed = bench.perf(format!("simple-query --duration 5 {arguments}").trim_end(), None)?;
        let name = if arguments.is_empty() { "(as it is)".to_owned() } else { format!("`{arguments}`") };
        lines.push([name].into_iter().chain(cells(&printed["stats"]).into_iter().take(3)).collect());
    }
    let all_else = table(&["`siltstone perf simple-query …`", "allocations", "into caches", "tasks"], &lines);
    Ok(PARTS.iter().copied().zip([beside, all_else]).collect())
}

/// A configuration with fences and without. With them a summary is not asked, so that with more of it there is the second way alone.
fn ways(arguments: &str) -> impl Iterator<Item = (&'static str, String)> {
    let ways = [("here, fences", ""), ("here, no fences", " --fences 0")];
    let is_of_summary = arguments.contains("summary");
    ways.into_iter()
        .skip(usize::from(is_of_summary))
        .map(move |(way, more)| (way, format!("{arguments}{more}")))
}

/// What a read costs, a hundred at once; its instructions, one after the other.
fn costs(bench: &Bench, arguments: &str, seconds: u32) -> Result<Value> {
    let printed = bench.perf(&format!("simple-query {arguments} --duration {seconds}"), None)?;
    let mut costs = printed["stats"].clone();
    if !costs.is_object() {
        return Err(format!("{arguments}: nothing was printed of what a read costs").into());
    }
    eprintln!("  and its instructions");
    costs["instructions_per_op"] =
        instructions::of(&bench.program, &one_at_a_time(arguments))?.round().into();
    Ok(costs)
}

fn one_at_a_time(arguments: &str) -> String {
    format!("simple-query --concurrency 1 {arguments}")
}

/// The lines of a configuration.
fn beside(name: &str, of_others: &Value, here: &[(&str, Value)]) -> Vec<Vec<String>> {
    let published = ["before", "after"].map(|change| (format!("published, {change}"), &of_others[change]));
    let here = here.iter().map(|(way, costs)| ((*way).to_owned(), costs));
    let lines = published.into_iter().chain(here).enumerate();
    let line = |(at, (who, costs))| {
        let name = if at == 0 { name.to_owned() } else { String::new() };
        [name, who].into_iter().chain(cells(costs)).collect()
    };
    lines.map(line).collect()
}

/// The figures of a line.
fn cells(costs: &Value) -> [String; 4] {
    COLUMNS.map(|name| match costs[name].as_f64() {
        Some(cost) if name == "instructions_per_op" => grouped(cost, 0),
        Some(cost) => format!("{cost:.1}"),
        None => "–".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::bench;
    use super::*;

    #[test]
    fn configurations_are_the_published_ones() {
        let bench = bench();
        let published = bench.lines("queries").unwrap();
        assert_eq!(published.len(), PUBLISHED.len());
        for ((_, arguments, _), line) in PUBLISHED.iter().zip(published) {
            assert!(arguments.contains(&format!("--partitions {}", line["partitions"])), "{arguments}");
            assert_eq!(!arguments.contains("--enable-cache 0"), line["is_cached"], "{arguments}");
            let summary =
                arguments.split_once("--sstable-summary-ratio ").map_or("0.0005", |(_, ratio)| ratio);
            assert_eq!(summary, line["summary_ratio"].to_string(), "{arguments}");
            assert!(ways(arguments).all(|(_, arguments)| instructions::counts(&one_at_a_time(&arguments))));
        }
    }

    #[test]
    fn a_line_stands_below_the_published_ones() {
        let costs = json!({ "allocs_per_op": 9.4, "logallocs_per_op": 0.0, "tasks_per_op": 2.66, "instructions_per_op": 14_133.2 });
        let lines = beside("N", &bench().lines("queries").unwrap()[0], &[("here, fences", costs)]);
        assert_eq!(lines[1], ["", "published, after", "130.7", "12.8", "36.1", "109,236"]);
        assert_eq!(lines[2], ["", "here, fences", "9.4", "0.0", "2.7", "14,133"]);
        assert_eq!((lines.len(), &*lines[0][0]), (3, "N"));
    }
}
