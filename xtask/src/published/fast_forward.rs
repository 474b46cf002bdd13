//! Slices and skips: what they cost by the programs that were published, and here.

use serde_json::{Value, json};

use super::{Bench, Part};
use crate::Result;
use crate::pages::{grouped, table};

/// The places on the page.
#[cfg(test)]
pub(super) const PARTS: &[&str] = &[
    "ten million",
    "four hundred",
    "every second row",
    "neighbours",
    "large-partition-skips",
    "large-partition-slicing",
    "large-partition-select-few-rows",
    "large-partition-select-missing-rows",
    "large-partition-forwarding",
    "large-partition-single-key-slice",
    "small-partition-skips",
    "small-partition-slicing",
];

/// A group of cases, and the columns of its table.
type Group = (&'static str, &'static [Column]);

/// The groups of a million rows that are printed as they are.
const GROUPS: [Group; 7] = [
    ("large-partition-skips", &[READ, SKIP, FOUND, REQUESTS, KIB, ALLOCATIONS, MEMORY, HELD]),
    ("large-partition-select-few-rows", &[STRIDE, ROWS, FOUND, REQUESTS, KIB, ALLOCATIONS, MEMORY]),
    ("large-partition-select-missing-rows", &[STRIDE, ROWS, FOUND, REQUESTS, KIB, ALLOCATIONS, MEMORY]),
    ("large-partition-forwarding", &[SCANNED, FOUND, REQUESTS, KIB, ALLOCATIONS, MEMORY]),
    (
        "large-partition-single-key-slice",
        &[SEQUENCE, RANGE, KNOWN, FOUND, REQUESTS, KIB, ALLOCATIONS, MEMORY],
    ),
    ("small-partition-skips", &[READ, SKIP, FOUND, REQUESTS, KIB, ALLOCATIONS, MEMORY]),
    ("small-partition-slicing", &[OFFSET, READ, FOUND, REQUESTS, KIB, ALLOCATIONS, MEMORY]),
];

/// Slices by a reader that goes on, whose table has two other groups as well.
const GOING_ON: &str = "large-partition-slicing";
/// The first of those: slices by readers that are made for them.
const SLICING: &str = "large-partition-slicing-clustering-keys";

/// The third in that table: reads of a table.
const OF_TABLE: &str = "large-partition-slicing-single-key-reader";

/// The other groups beside which something was published.
const SKIPPING: &str = "large-partition-skips";
const SELECTING: &str = "large-partition-select-few-rows";

/// How many rows those have of which slices were published, and how they are populated.
const MANY: (u64, &str) = (10_000_000, "--rows 10000000 --value-size 2000");
const FEW: (u64, &str) = (400, "--rows 400 --value-size 200");

/// How a row of it is found, in the order of the runs.
const WAYS: [&str; 3] = ["", " --fences false", " --fences false --index-search scan"];

/// A column as it was printed.
struct Column {
    head: &'static str,
    name: &'static str,
    /// What a number is divided by.
    unit: f64,
}

const fn column(head: &'static str, name: &'static str) -> Column {
    Column { head, name, unit: 1.0 }
}

const READ: Column = column("read", "read");
const SKIP: Column = column("skip", "skip");
const OFFSET: Column = column("offset", "offset");
const STRIDE: Column = column("stride", "stride");
const ROWS: Column = column("rows", "rows");
const SCANNED: Column = column("scan of all partitions", "pk-scan");
const SEQUENCE: Column = column("", "case");
const RANGE: Column = column("range", "range");
const KNOWN: Column = column("read before", "known");
const FOUND: Column = column("found", "frags");
const REQUESTS: Column = column("requests", "aio");
const KIB: Column = column("KiB", "(KiB)");
const ALLOCATIONS: Column = column("allocations", "allocs");
const MEMORY: Column = Column { head: "memory at the end, KiB", name: "mem", unit: 1024.0 };
const HELD: Column = column("beyond, bytes", "held");

/// Runs all, and says what the tables are.
pub(super) fn parts(bench: &Bench) -> Result<Vec<Part>> {
    let ten_million = sliced(bench, MANY.1, &format!("{SLICING},{SKIPPING}"))?;
    let four_hundred = sliced(bench, FEW.1, SLICING)?;
    let selected = neighbouring(bench)?;
    let (published, skips) = (bench.lines("slices")?, bench.lines("skips")?);
    let mut parts = vec![
        ("ten million", slices(published, MANY.0, in_each_way(&ten_million, SLICING)?)?),
        ("four hundred", slices(published, FEW.0, in_each_way(&four_hundred, SLICING)?)?),
        ("every second row", every_second_row(skips, cases(&ten_million[0], SKIPPING)?)?),
    ];
    parts.push(("neighbours", neighbours(bench.lines("neighbours")?, in_each_way(&selected, SELECTING)?)?));
    parts.extend(a_million(&a_million_rows(bench)?)?);
    Ok(parts)
}

/// The cases of a group in each run.
fn in_each_way<'a, const RUNS: usize>(runs: &'a [Value; RUNS], group: &str) -> Result<[&'a [Value]; RUNS]> {
    let mut ways = [[].as_slice(); RUNS];
    for (way, run) in ways.iter_mut().zip(runs) {
        *way = cases(run, group)?;
    }
    Ok(ways)
}

/// Slices of the same rows, in each way; with fences these groups.
fn sliced(bench: &Bench, made_of: &str, groups: &str) -> Result<[Value; 3]> {
    let data = tempfile::tempdir_in(&bench.folder)?;
    let run = |more: &str| {
        let arguments =
            format!("fast-forward --datasets large-part-ds1 --test-case-duration 0 --run-tests {more}");
        bench.perf(&arguments, Some(data.path()))
    };
    let [fences, no_fences, scan] = WAYS;
    Ok([
        run(&format!("{groups} --populate {made_of}{fences}"))?,
        run(&format!("{SLICING}{no_fences}"))?,
        run(&format!("{SLICING}{scan}"))?,
    ])
}

/// Two rows one after the other, with fences and without.
fn neighbouring(bench: &Bench) -> Result<[Value; 2]> {
    let data = tempfile::tempdir_in(&bench.folder)?;
    let run = |more: &str| {
        let arguments = format!(
            "fast-forward --datasets large-part-ds1 --run-tests {SELECTING} --keep-cache-across-test-cases \
             --test-case-duration 0 {more}"
        );
        bench.perf(&arguments, Some(data.path()))
    };
    Ok([run("--populate --column-index-size-in-kb 1")?, run("--fences false")?])
}

/// All groups of a million rows.
fn a_million_rows(bench: &Bench) -> Result<Value> {
    let data = tempfile::tempdir_in(&bench.folder)?;
    bench.start("fast-forward --populate --value-size 2000", Some(data.path()))?;
    bench.perf("fast-forward --test-case-duration 0", Some(data.path()))
}

/// Requests / KiB of slices of so many rows: as published, and in each way.
fn slices(published: &[Value], rows: u64, [fences, no_fences, scan]: [&[Value]; 3]) -> Result<String> {
    let heads = [
        "offset",
        "rows",
        "found",
        "published, scan",
        "published, binary search",
        "here, scan",
        "here, no fences",
        "here, fences",
    ];
    let line = |line: &Value| {
        let of = |cases| find(cases, &["offset", "read"], line);
        Ok(vec![
            number(&line["offset"]),
            number(&line["read"]),
            number(&of(fences)?["frags"]),
            reads(&line["scan"]),
            reads(&line["search"]),
            reads(of(scan)?),
            reads(of(no_fences)?),
            reads(of(fences)?),
        ])
    };
    let published = published.iter().filter(|line| line["rows"] == rows);
    Ok(table(&heads, &published.map(line).collect::<Result<Vec<_>>>()?))
}

/// Every second row, as published and here, and all of them.
fn every_second_row(published: &[Value], cases: &[Value]) -> Result<String> {
    let heads = ["read", "skip", "", "requests", "KiB", "`mem`, bytes", "`held`, bytes"];
    let line = |of: &Value, who: &str, costs: &Value| {
        let labels = [number(&of["read"]), number(&of["skip"]), who.to_owned()];
        let costs = ["aio", "(KiB)", "mem", "held"].map(|name| number(&costs[name]));
        labels.into_iter().chain(costs).collect::<Vec<_>>()
    };
    let mut lines = Vec::new();
    for of in published {
        lines.push(line(of, "published, scan", &of["scan"]));
        lines.push(line(of, "published, binary search", &of["search"]));
        lines.push(line(of, "here, fences", find(cases, &["read", "skip"], of)?));
    }
    let all_rows = json!({ "read": 1, "skip": 0 });
    lines.push(line(&all_rows, "here, all rows", find(cases, &["read", "skip"], &all_rows)?));
    Ok(table(&heads, &lines))
}

/// Requests / KiB of a row, and of the next one.
fn neighbours(published: &[Value], [fences, no_fences]: [&[Value]; 2]) -> Result<String> {
    let heads = ["row", "published, before", "published, after", "here, no fences", "here, fences"];
    let line = |line: &Value| {
        let of = |cases| find(cases, &["stride", "rows"], &json!({ "stride": line["stride"], "rows": 1 }));
        let row = number(&line["stride"]);
        let of_others = [reads(&line["before"]), reads(&line["after"])];
        let ours = [reads(of(no_fences)?), reads(of(fences)?)];
        Ok([row].into_iter().chain(of_others).chain(ours).collect())
    };
    Ok(table(&heads, &published.iter().map(line).collect::<Result<Vec<_>>>()?))
}

/// The tables of a million rows.
fn a_million(run: &Value) -> Result<Vec<Part>> {
    let (going_on, made_for_it, of_table) =
        (cases(run, GOING_ON)?, cases(run, SLICING)?, cases(run, OF_TABLE)?);
    let mut parts = vec![(GOING_ON, slices_by_readers(going_on, made_for_it, of_table)?)];
    for (name, columns) in GROUPS {
        let cells = |case: &Value| columns.iter().map(|column| column.of(case)).collect::<Vec<_>>();
        let heads: Vec<&str> = columns.iter().map(|column| column.head).collect();
        let lines: Vec<_> = cases(run, name)?.iter().map(cells).collect();
        parts.push((name, table(&heads, &lines)));
    }
    Ok(parts)
}

/// Slices by a reader that goes on, by one that is made for it, and by a read of the table.
fn slices_by_readers(going_on: &[Value], made_for_it: &[Value], of_table: &[Value]) -> Result<String> {
    let heads = [
        "offset",
        "read",
        "found",
        "going on, requests / KiB",
        "made for it",
        "of the table",
        "allocations",
        "memory at the end, KiB",
    ];
    let line = |case: &Value| {
        let of = |cases| find(cases, &["offset", "read"], case);
        let slice = of(made_for_it)?;
        let labels = [OFFSET, READ, FOUND].map(|column| column.of(case));
        let readers = [reads(case), reads(slice), reads(of(of_table)?)];
        let costs = [ALLOCATIONS, MEMORY].map(|column| column.of(slice));
        Ok(labels.into_iter().chain(readers).chain(costs).collect())
    };
    Ok(table(&heads, &going_on.iter().map(line).collect::<Result<Vec<_>>>()?))
}

impl Column {
    fn of(&self, case: &Value) -> String {
        let value = &case[self.name];
        match value.as_f64() {
            Some(value) => grouped(value / self.unit, if self.unit == 1.0 { 1 } else { 0 }),
            None if self.name == RANGE.name => format!("`{}`", value.as_str().unwrap_or_default()),
            None => value.as_str().unwrap_or("–").to_owned(),
        }
    }
}

/// The cases of a group.
fn cases<'a>(run: &'a Value, group: &str) -> Result<&'a [Value]> {
    let groups = run.as_array().into_iter().flatten();
    let cases = groups.filter(|found| found["group"] == group).find_map(|found| found["cases"].as_array());
    Ok(cases.ok_or_else(|| format!("nothing was printed of {group}"))?)
}

/// The first case with the same labels.
fn find<'a>(cases: &'a [Value], labels: &[&str], line: &Value) -> Result<&'a Value> {
    let found = cases.iter().find(|case| labels.iter().all(|label| case[label] == line[label]));
    Ok(found.ok_or_else(|| format!("nothing was printed of a case with the {labels:?} of {line}"))?)
}

/// Requests / KiB.
fn reads(costs: &Value) -> String {
    format!("{} / {}", number(&costs["aio"]), number(&costs["(KiB)"]))
}

/// A number, or nothing where there is none.
fn number(value: &Value) -> String {
    value.as_f64().map_or_else(String::new, |value| grouped(value, 1))
}

#[cfg(test)]
mod tests {
    use super::super::tests::bench;
    use super::*;

    fn case(labels: Value, requests: u64, kib: f64) -> Value {
        let mut case = labels;
        let costs =
            json!({ "frags": 1, "aio": requests, "(KiB)": kib, "allocs": 1234, "mem": 10_300, "held": -44 });
        case.as_object_mut().unwrap().extend(costs.as_object().unwrap().clone());
        case
    }

    #[test]
    fn slices_stand_beside_the_published_ones() {
        let bench = bench();
        let published = bench.lines("slices").unwrap();
        let ways = [2, 6, 95].map(|requests| {
            let labels = |line: &Value| json!({ "offset": line["offset"], "read": line["read"] });
            published.iter().map(|line| case(labels(line), requests, 17.5)).collect::<Vec<_>>()
        });
        let table = slices(published, 10_000_000, ways.each_ref().map(Vec::as_slice)).unwrap();
        assert_eq!(table.lines().count(), 2 + 8);
        let line = "| 5,000,000 | 1 | 1 | 29 / 3,520 | 21 / 172 | 95 / 17.5 | 6 / 17.5 | 2 / 17.5 |\n";
        assert!(table.contains(line), "{table}");
        assert!(slices(published, 10_000_000, [&ways[0], &ways[1], &[]]).is_err(), "a case is missing");
    }

    #[test]
    fn skips_stand_below_the_published_ones() {
        let cases =
            [case(json!({ "read": 1, "skip": 0 }), 7, 8.0), case(json!({ "read": 1, "skip": 1 }), 9, 10.0)];
        let table = every_second_row(bench().lines("skips").unwrap(), &cases).unwrap();
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| 1 | 1 | published, scan | 153,932 | 19,703,260 | 502,690 |  |",
                "| 1 | 1 | published, binary search | 155,651 | 19,704,088 | 0 |  |",
                "| 1 | 1 | here, fences | 9 | 10 | 10,300 | -44 |",
                "| 1 | 0 | here, all rows | 7 | 8 | 10,300 | -44 |",
            ]
        );
    }

    #[test]
    fn neighbours_stand_beside_the_published_ones() {
        let cases = |requests: u64, kib: f64| {
            [500_000, 500_001].map(|row| case(json!({ "stride": row, "rows": 1 }), requests, kib))
        };
        let (fences, no_fences) = (cases(1, 1.5), cases(2, 3.0));
        let bench = bench();
        let table = neighbours(bench.lines("neighbours").unwrap(), [&fences, &no_fences]).unwrap();
        assert!(table.ends_with("| 500,001 | 2 / 64 | 1 / 2 | 2 / 3 | 1 / 1.5 |\n"), "{table}");
    }

    #[test]
    fn each_group_has_its_table() {
        let labels = json!({ "read": 1, "skip": 0, "offset": 3, "stride": 2, "rows": 5, "pk-scan": "yes", "case": "->", "range": "[1, 2]",
            "known": "no" });
        let names = GROUPS.iter().map(|(name, _)| *name).chain([GOING_ON, SLICING, OF_TABLE]);
        let groups = names.map(|name| json!({ "group": name, "cases": [case(labels.clone(), 2, 7.5)] }));
        let parts = a_million(&Value::Array(groups.collect())).unwrap();
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        assert!(PARTS[4..].iter().all(|part| names.contains(part)) && names.len() == PARTS.len() - 4);
        let text_of = |name: &str| parts.iter().find(|(part, _)| *part == name).unwrap().1.as_str();
        assert!(text_of(GOING_ON).ends_with("| 3 | 1 | 1 | 2 / 7.5 | 2 / 7.5 | 2 / 7.5 | 1,234 | 10 |\n"));
        assert!(text_of("large-partition-skips").ends_with("| 1 | 0 | 1 | 2 | 7.5 | 1,234 | 10 | -44 |\n"));
        assert!(text_of("large-partition-single-key-slice").contains("| -> | `[1, 2]` | no | 1 |"));
        assert!(a_million(&json!([])).unwrap_err().to_string().contains("large-partition"));
    }
}
