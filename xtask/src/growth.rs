//! How the cost of a row grows: `siltstone perf growth` at all sizes, and the instructions of each by valgrind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};
use testkit::command::checked;

use crate::Result;
use crate::instructions::{check_valgrind, counted, grouped};
use crate::workspace::{perf, root, target};

/// What grows, its sizes, and how many reads are counted; a run makes each number of them twice. To open a thousand SSTables is not to the
/// million the same number of instructions each time, and among those that overlap reads go on while their tokens are gathered.
const CURVES: [(&str, &[u32], u64); 4] = [
    ("rows", &[10_000, 100_000, 1_000_000, 10_000_000, 100_000_000], 5000),
    ("partitions", &[1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000], 5000),
    ("sstables", &[1, 10, 100, 1000], 50_000),
    ("overlapping", &[1, 10, 100, 1000], 100_000),
];

/// The page and the figures that `--write` writes.
const PAGE: &str = "docs/performance/growth.md";
const FIGURES: &str = "docs/performance/growth.json";

/// The pictures on the page, and what they show of each curve.
const PICTURES: &str = "docs/performance/growth";
const SHOWN: [&str; 2] = ["requests", "instructions"];

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// The folder of the datasets, which stay there: 3 GB at full size.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The largest size of each curve.
    #[arg(long, value_name = "N", default_value = "100000000")]
    most: u32,

    /// Write the tables to docs/performance/growth.md, and the figures beside them.
    #[arg(long)]
    write: bool,
}

/// Measures, and prints the tables.
///
/// # Errors
/// If there is no valgrind, or a run fails.
pub fn run(options: &Options) -> Result<()> {
    check_valgrind()?;
    let (program, data) = (perf()?, options.data.clone().unwrap_or_else(|| target().join("perf-growth")));
    let mut curves = Vec::new();
    for (along, sizes, operations) in CURVES {
        let mut points = Vec::new();
        for size in sizes.iter().filter(|size| **size <= options.most) {
            eprintln!("{along}: {size}");
            points.push(point(&program, &data, (along, *size), operations)?);
        }
        curves.push(json!({ "along": along, "points": points }));
    }
    let tables: String = curves.iter().map(table).collect();
    print!("{tables}");
    if options.write {
        fs::write(root().join(PAGE), page(&tables))?;
        fs::write(root().join(FIGURES), format!("{:#}\n", json!({ "growth": curves })))?;
        draw(&program)?;
    }
    Ok(())
}

/// Draws the pictures of the figures as they were written.
fn draw(program: &Path) -> Result<()> {
    let (drawn, pictures) = (tempfile::tempdir()?, root().join(PICTURES));
    let mut report = Command::new(program);
    report.arg("report").arg("--out").arg(drawn.path().join("report.html"));
    checked(report.arg("--svg").arg(drawn.path()).arg(root().join(FIGURES)))?;
    fs::create_dir_all(&pictures)?;
    for file in fs::read_dir(drawn.path())? {
        let file = file?.path();
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        for (along, shown) in CURVES.iter().flat_map(|(along, ..)| SHOWN.map(|shown| (along, shown))) {
            if name.ends_with(&format!("-by-{along}-{shown}.svg")) {
                fs::copy(&file, pictures.join(format!("{along}-{shown}.svg")))?;
            }
        }
    }
    Ok(())
}

/// What a row costs at one size.
fn point(program: &Path, data: &Path, (along, size): (&str, u32), operations: u64) -> Result<Value> {
    let arguments = format!("growth --along {along} --sizes {size} --data-directory {}", data.display());
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).args(["--output-format", "json"]);
    let printed: Value = serde_json::from_slice(&checked(&mut command)?.stdout)?;
    let mut point = printed["points"][0].clone();
    let warm = format!("{arguments} --cold false");
    let (once, _) = counted(program, &warm, operations)?;
    let (thrice, _) = counted(program, &warm, 3 * operations)?;
    // Each run reads as many rows before as those that it counts.
    point["instructions"] = json!(((thrice - once) / (4 * operations) as f64).round());
    Ok(point)
}

fn table(curve: &Value) -> String {
    let along = curve["along"].as_str().unwrap_or_default();
    let mut table = format!("## By {along}\n\n| {along} | cold | warm | instructions, warm | opening |\n");
    table += "|---:|---:|---:|---:|---:|\n";
    for point in curve["points"].as_array().into_iter().flatten() {
        let [cold, warm, opening] = ["cold", "warm", "opening"].map(|of| cost(&point[of]));
        let [size, instructions] =
            ["size", "instructions"].map(|of| grouped(point[of].as_f64().unwrap_or_default()));
        table += &format!("| {size} | {cold} | {warm} | {instructions} | {opening} |\n");
    }
    let picture = |shown: &str| format!("![A row by {along}: {shown}](growth/{along}-{shown}.svg)\n");
    table + "\n" + &SHOWN.map(picture).concat() + "\n"
}

fn cost(cost: &Value) -> String {
    let number = |of: &str| cost[of].as_f64().unwrap_or_default();
    format!("{:.2} / {:.1}", number("requests"), number("kib"))
}

fn page(tables: &str) -> String {
    format!(
        "# How cost grows\n\n\
         Requests / KiB of a row that is there, by the size of what it is in, and instructions by valgrind. Printed by\n\n\
         ```sh\ncargo xtask growth --write\n```\n\n\
         {tables}\
         - *Cold* is a read right after all was opened with empty caches, the mean of 20. *Warm* is the mean of 2,000 behind as many\n  \
           others, with 64 MiB for caches, of which neither rows nor data take any. Instructions are of some thousands to a hundred thousand, the most\n  \
           of those among many SSTables: the difference between so many and thrice as many.\n\
         - Values have 8 bytes; nothing is compressed; index blocks of 64 KiB; fences. **By rows** most instructions step over the rows of half a block,\n  \
           which are so small that it has thousands.\n\
         - **Partitions**: up to a million all that tells where one is stays in the 64 MiB; of ten million the fences are larger than that, and three\n  \
           of four reads bring in a page of them first. From one size to the next, ten times as many, a cold read takes a\n  \
           request more, within a twentieth.\n\
         - The SSTables have 1,000 partitions each. **By sstables** their tokens do not overlap, as leveled compaction leaves them: the one is\n  \
           found by halves. **By overlapping** each has tokens of the whole ring, as many flushes leave them: requests stay as they are,\n  \
           as filters tell which SSTables have not got the key. Each filter is asked, in memory, until as many were asked as there are\n  \
           partitions: then the tokens of all are gathered, and one look tells which SSTables have the key\n  \
           ([0060](../decisions/0060-tokens-gathered.md)). That is among the reads before those that are counted; until then, and where an eighth of the cache\n  \
           has no room for five bytes a partition, a read takes 160 instructions a filter: 172 thousand among a thousand SSTables.\n\
         - Opening is that of all SSTables, in requests and KiB. It is in proportion to the SSTables and, by their filters and\n  \
           summaries, to their partitions. Fences of up to 512 KiB are read whole then; of larger ones it is the last 32 KiB.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_a_table() {
        let cost = json!({ "requests": 2.0, "kib": 9.25 });
        let point =
            json!({ "size": 1000, "cold": cost, "warm": cost, "opening": cost, "instructions": 20500 });
        let table = table(&json!({ "along": "rows", "points": [point] }));
        assert!(table.contains("| 1,000 | 2.00 / 9.2 | 2.00 / 9.2 | 20,500 | 2.00 / 9.2 |"), "{table}");
        assert!(table.contains("](growth/rows-requests.svg)"), "{table}");
    }
}
