//! One page from the results of many runs: what was counted, drawn, beside what was published.
//!
//! ```text
//! JSON of fast-forward, simple-query, single-key, growth, peers ──► charts ──► an HTML page with all of them, an SVG and a PNG of each
//! ```
//!
//! The page needs nothing but itself: the charts are in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use siltstone::{Error, Result};

mod chart;
mod charts;
mod draw;
mod png;
mod published;

use chart::Chart;

/// Draws the results of benchmarks, beside what was published of the same work and what other databases need for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf fast-forward --populate
  siltstone perf fast-forward --test-case-duration 0 --output-format json > fast-forward.json
  siltstone perf growth --output-format json > growth.json
  siltstone perf report --out report.html fast-forward.json growth.json
  siltstone perf report --png pictures docs/performance/growth.json docs/performance/peers.json

Exit codes: 0 if the page was written, 1 for files that are no results, 2 for wrong arguments.")]
pub struct Report {
    /// What fast-forward, simple-query, single-key and growth have printed by --output-format json, or cargo xtask peers and growth
    /// have kept. Of fast-forward all groups are drawn but sequences of ranges.
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,

    /// The page.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,

    /// A folder for each chart as an SVG of its own.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// A folder for each chart as a PNG of its own.
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
}

impl Report {
    /// Writes the page; says on `out` what is on it.
    ///
    /// # Errors
    /// Files that cannot be read or are no results of a benchmark; what the operating system says.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut charts = Vec::new();
        for path in &self.results {
            charts.extend(read(path)?.into_iter().map(|chart| (path, chart)));
        }
        let charts = told_apart(charts);
        let out_file = self.out.canonicalize().ok();
        if out_file.is_some() && self.results.iter().any(|path| path.canonicalize().ok() == out_file) {
            let what = format!("{}: --out would write over the results in it", self.out.display());
            return Err(Error::Usage(what));
        }
        let drawn: Vec<String> = charts.iter().map(|chart| chart.svg(false)).collect();
        write(&self.out, page(&charts, &drawn).as_bytes())?;
        if let Some(folder) = &self.svg {
            write_each(folder, "svg", charts.iter().map(|chart| (chart, chart.svg(true))))?;
        }
        if let Some(folder) = &self.png {
            write_each(folder, "png", charts.iter().map(|chart| (chart, chart.png())))?;
        }
        writeln!(out, "{}: {} charts", self.out.display(), charts.len())?;
        Ok(())
    }
}

/// The charts of these files: where several have one title, it tells the file too.
fn told_apart(charts: Vec<(&PathBuf, Chart)>) -> Vec<Chart> {
    let mut titles = BTreeMap::<String, usize>::new();
    for (_, chart) in &charts {
        *titles.entry(chart.title.clone()).or_default() += 1;
    }
    let title = |path: &Path, title: String| match titles[&title] {
        1 => title,
        _ => format!("{title} ({})", path.display()),
    };
    charts
        .into_iter()
        .map(|(path, chart)| Chart { title: title(path, chart.title.clone()), ..chart })
        .collect()
}

/// The charts of a file.
fn read(path: &Path) -> Result<Vec<Chart>> {
    let wrong = |what: String| Error::file(path, what);
    let text = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let results: Value = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    charts::of(&results).ok_or_else(|| {
        wrong(
            "it is not what fast-forward, simple-query, single-key, growth or peers print as JSON".to_owned(),
        )
    })
}

/// Writes charts into a folder, each by its number and its title.
fn write_each<'a>(
    folder: &Path,
    kind: &str,
    drawn: impl Iterator<Item = (&'a Chart, impl AsRef<[u8]>)>,
) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Error::file(folder, error.to_string()))?;
    for (number, (chart, content)) in (1..).zip(drawn) {
        write(&folder.join(format!("{number:02}-{}.{kind}", chart.file_name())), content.as_ref())?;
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).map_err(|error| Error::file(path, error.to_string()))
}

fn page(charts: &[Chart], drawn: &[String]) -> String {
    let mut body = String::new();
    for (chart, svg) in charts.iter().zip(drawn) {
        let (title, note) = (escaped(&chart.title), escaped(&chart.note));
        body += &format!("<section>\n<h2>{title}</h2>\n{svg}\n<p>{note}</p>\n</section>\n");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Siltstone, measured</title>\n<style>\n{STYLE}\
         </style>\n</head>\n<body>\n<h1>Siltstone, measured</h1>\n<p>Requests, bytes, allocations and instructions are counts, which \
         repeat on any machine; times are for comparing within one run. What was published by others is dashed or \
         pale.</p>\n{body}</body>\n</html>\n"
    )
}

/// How the page looks.
const STYLE: &str = "\
body { font-family: sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
section { margin: 2.5rem 0; }
h2 { font-size: 1.1rem; }
svg { width: 100%; height: auto; }
p { color: #555; }
";

/// Text as HTML has it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::png::tests::decoded;
    use super::*;

    /// A report of these documents, in a folder.
    fn report(folder: &Path, documents: &[Value]) -> Report {
        let write = |(number, document): (usize, &Value)| {
            let path = folder.join(format!("{number}.json"));
            fs::write(&path, document.to_string()).unwrap();
            path
        };
        Report {
            results: documents.iter().enumerate().map(write).collect(),
            out: folder.join("page.html"),
            svg: Some(folder.join("svg")),
            png: Some(folder.join("png")),
        }
    }

    /// What each benchmark prints, in short.
    fn documents() -> [Value; 5] {
        let cost = json!({ "requests": 2.0, "kib": 9.5 });
        let point = |size: u64| json!({ "size": size, "cold": cost, "warm": cost, "opening": cost });
        let case = |offset: u64, read: u64| json!({ "offset": offset, "read": read, "aio": 2, "(KiB)": 73.0, "frag/s": 5000 });
        let made_of = json!({ "rows": 10_000_000, "value_size": 2000 });
        let latency = json!({ "mean": 1.5, "median": 1.0 });
        let cells =
            |number: f64| json!([{ "requests": number, "KiB": 4.7 }, { "requests": 0.02, "KiB": 4.3 }]);
        [
            json!({ "along": "rows", "fences": true, "points": [point(1000), point(10_000)] }),
            json!([{ "group": "large-partition-slicing-clustering-keys", "made_of": made_of, "fences": true, "index_search": "binary",
                "cases": [case(0, 1), case(0, 32), case(5_000_000, 1)] }]),
            json!({ "parameters": { "mode": "read" }, "stats": { "allocs_per_op": 7.6 }, "lines": [{ "tps": 5.0 }] }),
            json!({ "rate": 7, "rows": 9, "sstables": 3,
                "cases": [{ "case": "best", "latency": latency, "ratio_to_off": latency }] }),
            json!({ "peers": [{ "title": "From disk", "columns": ["Siltstone", "RocksDB & co"],
                "lines": [{ "of": "a row", "cells": cells(1.0) }, { "of": "all rows", "cells": cells(1084.0) }] }] }),
        ]
    }

    #[test]
    fn a_page_has_its_charts_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut said = Vec::new();
        let report = report(folder.path(), &documents());
        report.run(&mut said).unwrap();
        let page = fs::read_to_string(&report.out).unwrap();
        assert!(!page.contains("src=") && !page.contains("href="), "it needs nothing but itself");
        for text in [
            "A row, by rows: requests",
            "large-partition-slicing-clustering-keys: rows a second",
            "published, offset 5,000,000, binary search",
            "simple-query, read: cost",
            "single-key: latency beside that of off",
            "From disk: KiB",
            "RocksDB &amp; co",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.ends_with("</html>\n"));
        let charts = 2 + 3 + 2 + 2 + 2;
        assert_eq!(page.matches("<svg").count(), charts);
        assert!(String::from_utf8(said).unwrap().ends_with(&format!("page.html: {charts} charts\n")));
        assert_eq!(fs::read_dir(folder.path().join("svg")).unwrap().count(), charts);
        let pictures: Vec<_> =
            fs::read_dir(folder.path().join("png")).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(pictures.len(), charts);
        for picture in pictures {
            let (size, _) = decoded(&fs::read(&picture).unwrap());
            assert_eq!(size, (1760, 840), "{}", picture.display());
        }
    }

    #[test]
    fn runs_of_one_benchmark_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let [_, _, simple_query, single_key, _] = documents();
        let report = report(folder.path(), &[simple_query.clone(), simple_query, single_key]);
        report.run(&mut Vec::new()).unwrap();
        let page = fs::read_to_string(&report.out).unwrap();
        for text in ["/0.json)</h2>", "/1.json)</h2>", "single-key: latency</h2>"] {
            assert!(page.contains(text), "{text}");
        }
    }

    #[test]
    fn the_figures_that_are_kept_can_be_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance");
        let results = ["growth.json", "peers.json"].map(|name| kept.join(name)).to_vec();
        let report = Report { results, ..report(folder.path(), &[]) };
        report.run(&mut Vec::new()).unwrap();
        let page = fs::read_to_string(&report.out).unwrap();
        for peer in ["RocksDB, indexes in the cache", "fjall", "cqlite", "Cassandra, warm"] {
            assert!(page.contains(peer), "{peer}");
        }
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut over_itself = report(folder.path(), &documents()[..1]);
        over_itself.out = folder.path().join("../").join(folder.path().file_name().unwrap()).join("0.json");
        assert!(matches!(over_itself.run(&mut Vec::new()), Err(Error::Usage(_))));
        assert!(report(folder.path(), &[json!({ "what": 1 })]).run(&mut Vec::new()).is_err());
        assert!(!folder.path().join("page.html").exists());
    }
}
