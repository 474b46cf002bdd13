//! One page from the results of many runs: what was counted, drawn, beside what was published.
//!
//! ```text
//! JSON of fast-forward, simple-query, single-key, growth ──► charts ──► an HTML page with all of them, and an SVG of each
//! ```
//!
//! The page needs nothing but itself: the charts are in it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use siltstone::{Error, Result};

mod chart;
mod charts;
mod published;

use chart::Chart;

/// Draws the results of benchmarks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf fast-forward --test-case-duration 0 --output-format json > fast-forward.json
  siltstone perf growth --output-format json > growth.json
  siltstone perf report --out report.html fast-forward.json growth.json

Exit codes: 0 if the page was written, 1 for files that are no results, 2 for wrong arguments.")]
pub struct Report {
    /// What `--output-format json` has printed.
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,

    /// The page.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,

    /// A folder for each chart as an SVG of its own.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
}

impl Report {
    /// Writes the page; says on `out` what is on it.
    ///
    /// # Errors
    /// Files that cannot be read or are no results of a benchmark; what the operating system says.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let mut charts = Vec::new();
        for path in &self.results {
            charts.extend(read(path)?);
        }
        let drawn: Vec<String> = charts.iter().map(Chart::svg).collect();
        write(&self.out, &page(&charts, &drawn))?;
        if let Some(folder) = &self.svg {
            fs::create_dir_all(folder).map_err(|error| Error::file(folder, error.to_string()))?;
            for (number, (chart, svg)) in (1..).zip(charts.iter().zip(&drawn)) {
                write(&folder.join(format!("{number:02}-{}.svg", chart.file_name())), svg)?;
            }
        }
        writeln!(out, "{}: {} charts", self.out.display(), charts.len())?;
        Ok(())
    }
}

/// The charts of a file.
fn read(path: &Path) -> Result<Vec<Chart>> {
    let wrong = |what: String| Error::file(path, what);
    let text = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let results: Value = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    charts::of(&results).ok_or_else(|| wrong("it is not what a benchmark prints as JSON".to_owned()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|error| Error::file(path, error.to_string()))
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
         repeat on any machine; times are for comparing within one run. What was published by others is dashed.</p>\n{body}</body>\n</html>\n"
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
    use super::*;

    #[test]
    fn a_page_has_its_charts_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (results, out, svg) =
            (folder.path().join("growth.json"), folder.path().join("page.html"), folder.path().join("svg"));
        let cost = |requests: f64| serde_json::json!({ "requests": requests, "kib": 9.5 });
        let point = |size: u64| serde_json::json!({ "size": size, "cold": cost(2.0), "warm": cost(1.0), "opening": cost(11.0) });
        let document =
            serde_json::json!({ "along": "rows", "fences": true, "points": [point(1000), point(10_000)] });
        fs::write(&results, document.to_string()).unwrap();
        let report = Report { results: vec![results.clone()], out: out.clone(), svg: Some(svg.clone()) };
        let mut said = Vec::new();
        report.run(&mut said).unwrap();
        let page = fs::read_to_string(&out).unwrap();
        assert!(page.contains("<svg") && page.contains("cold") && page.ends_with("</html>\n"));
        assert!(!page.contains("src=") && !page.contains("href="), "it needs nothing but itself");
        assert_eq!(fs::read_dir(svg).unwrap().count(), page.matches("<svg").count());
        assert!(String::from_utf8(said).unwrap().contains("charts"));
        fs::write(&results, "{\"what\": 1}").unwrap();
        assert!(report.run(&mut Vec::new()).is_err());
    }
}
