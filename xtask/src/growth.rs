//! How the cost of a row grows: `siltstone perf growth` at all sizes, and the instructions of each by valgrind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::{Value, json};
use testkit::command::checked;

use crate::instructions::{check_valgrind, counted};
use crate::measure::check_direct;
use crate::pages::grouped;
use crate::workspace::{perf, root, target};
use crate::{Result, pages};

/// What grows, its sizes, and how many reads are counted; a run makes each number of them twice. To open a thousand SSTables is not to the
/// million the same number of instructions each time, and among those that overlap reads go on while their tokens are gathered.
const CURVES: [(&str, &[u32], u64); 7] = [
    ("rows", &[10_000, 100_000, 1_000_000, 10_000_000, 100_000_000], 5000),
    ("partitions", &[1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000], 5000),
    ("sstables", &[1, 10, 100, 1000], 50_000),
    ("overlapping", &[1, 10, 100, 1000], 100_000),
    ("stretches", &[1, 10, 100, 1000], 20_000),
    ("expiring", &[1, 10, 100, 1000], 20_000),
    ("slices", &[1, 10, 100, 1000], 20_000),
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

    /// The largest size of each curve. The page has them all.
    #[arg(long, value_name = "N", default_value = "100000000", conflicts_with = "write")]
    most: u32,

    /// One curve alone; the others stay as they were written.
    #[arg(long, value_name = "CURVE", value_parser = CURVES.map(|(along, ..)| along))]
    only: Option<String>,

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
        if options.only.as_ref().is_some_and(|only| only != along) {
            curves.extend(written(along)?);
            continue;
        }
        let mut printed = Vec::new();
        for size in sizes.iter().filter(|size| **size <= options.most) {
            eprintln!("{along}: {size}");
            printed.push(measured(&program, &data, (along, *size), operations)?);
        }
        curves.extend(curve(printed));
    }
    let tables: String = curves.iter().map(table).collect();
    print!("{tables}");
    if options.write {
        pages::write(PAGE, [("curves", &*tables)])?;
        fs::write(root().join(FIGURES), format!("{:#}\n", json!({ "growth": curves })))?;
        draw(&program)?;
    }
    Ok(())
}

/// A curve as it was written, if it was.
fn written(along: &str) -> Result<Option<Value>> {
    let figures: Value = serde_json::from_str(&fs::read_to_string(root().join(FIGURES))?)?;
    let mut curves = figures["growth"].as_array().into_iter().flatten();
    Ok(curves.find(|curve| curve["along"] == along).cloned())
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

/// What is printed of one size, with the instructions of its point, and of how many operations these are.
fn measured(program: &Path, data: &Path, (along, size): (&str, u32), operations: u64) -> Result<Value> {
    let arguments = format!("growth --along {along} --sizes {size}");
    let mut command = Command::new(program);
    command.args(arguments.split(' ')).args(["--output-format", "json", "--data-directory"]).arg(data);
    let mut printed: Value = serde_json::from_slice(&checked(&mut command)?.stdout)?;
    check_direct(&printed)?;
    let warm = format!("{arguments} --cold false");
    let (once, _) = counted(program, &warm, Some(data), operations)?;
    let (thrice, _) = counted(program, &warm, Some(data), 3 * operations)?;
    // Each run reads as many rows before as those that it counts.
    printed["points"][0]["instructions"] = json!(((thrice - once) / (4 * operations) as f64).round());
    printed["counted_operations"] = json!([operations, 3 * operations]);
    Ok(printed)
}

/// What is printed of several sizes as one curve: all points, and the settings, which are those of each; `None` of no size.
fn curve(printed: Vec<Value>) -> Option<Value> {
    let points: Vec<Value> = printed.iter().map(|of_size| of_size["points"][0].clone()).collect();
    let mut curve = printed.into_iter().next()?;
    curve["points"] = points.into();
    Some(curve)
}

fn table(curve: &Value) -> String {
    let along = curve["along"].as_str().unwrap_or_default();
    let mut table = format!("## By {along}\n\n| {along} | cold | warm | instructions, warm | opening |\n");
    table += "|---:|---:|---:|---:|---:|\n";
    for point in curve["points"].as_array().into_iter().flatten() {
        let [cold, warm, opening] = ["cold", "warm", "opening"].map(|of| cost(&point[of]));
        let [size, instructions] =
            ["size", "instructions"].map(|of| grouped(point[of].as_f64().unwrap_or_default(), 0));
        table += &format!("| {size} | {cold} | {warm} | {instructions} | {opening} |\n");
    }
    let read = if along == "slices" { "100 rows" } else { "A row" };
    let picture = |shown: &str| format!("![{read} by {along}: {shown}](growth/{along}-{shown}.svg)\n");
    table + "\n" + &SHOWN.map(picture).concat() + "\n"
}

fn cost(cost: &Value) -> String {
    let number = |of: &str| cost[of].as_f64().unwrap_or_default();
    format!("{:.2} / {:.1}", number("requests"), number("kib"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_the_settings_of_its_points() {
        let printed =
            [10, 100].map(|size| json!({ "version": "1", "along": "rows", "points": [{ "size": size }] }));
        let points = json!([{ "size": 10 }, { "size": 100 }]);
        let expected = json!({ "version": "1", "along": "rows", "points": points });
        assert_eq!((curve(printed.into()), curve(Vec::new())), (Some(expected), None));
    }

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
