//! One page from the results of many runs: what was counted, drawn, beside what was published.
//!
//! ```text
//! JSON of fast-forward, simple-query, single-key, growth, peers ──► charts ──► an HTML page with all of them, an SVG and a PNG of each
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
mod draw;
mod png;
mod published;

use chart::Chart;
use png::MARK;

/// Draws the results of benchmarks, beside what was published of the same work and what other databases need for it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf fast-forward --populate
  siltstone perf fast-forward --test-case-duration 0 --output-format json > fast-forward.json
  siltstone perf growth --output-format json > growth.json
  siltstone perf report --out report.html fast-forward.json growth.json
  siltstone perf report --png pictures docs/performance/growth.json docs/performance/peers.json

Exit codes: 0 if the page was written, 1 for files that are no results or have nothing of which a chart is drawn, and for I/O errors,
2 for wrong arguments. Then no page is written.")]
pub struct Report {
    /// What fast-forward, simple-query, single-key and growth have printed by --output-format json, or cargo xtask peers and growth
    /// have kept. Of fast-forward all groups are drawn but sequences of ranges. A file that is named twice is drawn once.
    #[arg(required = true, value_name = "FILE")]
    results: Vec<PathBuf>,

    /// The page.
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,

    /// A folder for each chart as an SVG of its own, named by its number and its title. Such pictures that an earlier report has
    /// left there are removed; nothing else is. Which files a title tells by their numbers stands on the page.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,

    /// A folder for each chart as a PNG of its own, in the same way.
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
}

/// Letters of what tells a file that have room in a title.
const LONGEST_LABEL: usize = 40;

impl Report {
    /// Writes the page; says on `out` what is on it.
    ///
    /// # Errors
    /// Files that cannot be read or are no results of a benchmark; what the operating system says.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        let files = self.files();
        let charts = told_apart(self.charts(&files, out)?);
        self.check_out(&files)?;
        let folders = [(&self.svg, "svg"), (&self.png, "png")];
        let folders: Vec<(&Path, &str)> =
            folders.into_iter().filter_map(|(folder, kind)| Some((folder.as_deref()?, kind))).collect();
        // Before the page: where there is no room for pictures, nothing is written.
        for (folder, _) in &folders {
            fs::create_dir_all(folder).map_err(|error| Error::file(folder, error.to_string()))?;
        }
        let drawn: Vec<String> = charts.iter().map(|chart| chart.svg(false)).collect();
        write(&self.out, page(&charts, &drawn, &numbered(&files)).as_bytes())?;
        for (folder, kind) in folders {
            write_each(folder, kind, &charts)?;
        }
        writeln!(out, "{}: {}", self.out.display(), counted(charts.len()))?;
        Ok(())
    }

    /// The charts of all files, each with the label of its file; of what there is none is said on `out`.
    fn charts(&self, files: &[&Path], out: &mut dyn Write) -> Result<Vec<(String, Chart)>> {
        let mut charts = Vec::new();
        for (number, &path) in (1..).zip(files) {
            let (of_file, left_out) = read(path)?;
            if !left_out.is_empty() {
                writeln!(out, "{}: no chart is drawn of {}", path.display(), left_out.join(", "))?;
            }
            let label = label(files, number);
            charts.extend(of_file.into_iter().map(|chart| (label.clone(), chart)));
        }
        if charts.is_empty() {
            let what = "there is nothing in it of which a chart is drawn, and so no page is written";
            return Err(Error::file(files[0], what));
        }
        Ok(charts)
    }

    /// Whether the page would be in the place of none of the files that it is made from.
    fn check_out(&self, files: &[&Path]) -> Result<()> {
        let out = self.out.canonicalize().ok();
        if out.is_some() && files.iter().any(|path| path.canonicalize().ok() == out) {
            let what = format!("{}: --out would write over the results in it", self.out.display());
            return Err(Error::Usage(what));
        }
        Ok(())
    }

    /// The files, each once.
    fn files(&self) -> Vec<&Path> {
        let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut files: Vec<&Path> = Vec::new();
        for path in &self.results {
            if !files.iter().any(|file| place(file) == place(path)) {
                files.push(path);
            }
        }
        files
    }
}

/// What tells a file from the others, by its number from 1 on: as much of its path as no other ends with, or that number where this is long.
fn label(files: &[&Path], number: usize) -> String {
    end_of_its_own(files, files[number - 1]).unwrap_or_else(|| format!("file {number}"))
}

/// The shortest end of a file's path that is not that of another, if there is room for it.
fn end_of_its_own(files: &[&Path], own: &Path) -> Option<String> {
    let end = |path: &Path, parts: usize| -> PathBuf {
        let all = path.components().count();
        path.components().skip(all.saturating_sub(parts)).collect()
    };
    let is_of_one =
        |parts: &usize| files.iter().filter(|path| end(path, *parts) == end(own, *parts)).count() == 1;
    // One more than it has: all of it may be the end of another.
    let parts = (1..=own.components().count() + 1).find(is_of_one)?;
    let told = end(own, parts).to_string_lossy().into_owned();
    (told.chars().count() <= LONGEST_LABEL).then_some(told)
}

/// The files that are told by their numbers, each with its number and all of its path.
fn numbered(files: &[&Path]) -> Vec<String> {
    let told = (1..).zip(files).filter(|_| files.len() > 1);
    let told = told.filter(|(_, path)| end_of_its_own(files, path).is_none());
    told.map(|(number, path)| format!("file {number}: {}", path.display())).collect()
}

/// Charts with the labels of their files: where several have one title, it tells the file too, and which it is among those of the file.
fn told_apart(charts: Vec<(String, Chart)>) -> Vec<Chart> {
    let title = |at: usize| {
        let (label, chart) = &charts[at];
        let alike: Vec<usize> = (0..charts.len()).filter(|&of| charts[of].1.title == chart.title).collect();
        let of_file: Vec<usize> = alike.iter().copied().filter(|&of| charts[of].0 == *label).collect();
        let number = of_file.iter().filter(|&&of| of <= at).count();
        let told = [
            (of_file.len() < alike.len()).then(|| label.clone()),
            (of_file.len() > 1).then(|| number.to_string()),
        ];
        match told.into_iter().flatten().collect::<Vec<_>>().join(", ") {
            told if told.is_empty() => chart.title.clone(),
            told => format!("{} ({told})", chart.title),
        }
    };
    let titles: Vec<String> = (0..charts.len()).map(title).collect();
    charts.into_iter().zip(titles).map(|((_, chart), title)| Chart { title, ..chart }).collect()
}

/// The charts of a file, and what is in it of which there are none.
fn read(path: &Path) -> Result<(Vec<Chart>, Vec<String>)> {
    let wrong = |what: String| Error::file(path, what);
    let text = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let results: Value = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    charts::of(&results).ok_or_else(|| {
        wrong(
            "it is not what fast-forward, simple-query, single-key, growth or peers print as JSON".to_owned(),
        )
    })
}

/// So many charts, in words.
fn counted(charts: usize) -> String {
    format!("{charts} {}", if charts == 1 { "chart" } else { "charts" })
}

/// Writes charts into a folder that is there, each by its number and its title, and removes what an earlier report has left there beside
/// them. All numbers have as many digits as the last one, so that they stand in order.
fn write_each(folder: &Path, kind: &str, charts: &[Chart]) -> Result<()> {
    let failed = |error: std::io::Error| Error::file(folder, error.to_string());
    let digits = charts.len().to_string().len().max(2);
    let mut written = Vec::new();
    for (number, chart) in (1..).zip(charts) {
        let path = folder.join(format!("{number:0digits$}-{}.{kind}", chart.file_name()));
        let content = if kind == "svg" { chart.svg(true).into_bytes() } else { chart.png() };
        write(&path, &content)?;
        written.push(path);
    }
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if !written.contains(&path) && is_picture(&path, kind) {
            fs::remove_file(&path).map_err(|error| Error::file(&path, error.to_string()))?;
        }
    }
    Ok(())
}

/// Whether a report has drawn it: it is named by a number and a title, and says so.
fn is_picture(path: &Path, kind: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let title = name.strip_suffix(kind).and_then(|name| name.strip_suffix('.')?.split_once('-'));
    let is_numbered = title.is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    let says_so = || {
        let content = fs::read(path).unwrap_or_default();
        content.windows(MARK.len()).any(|part| part == MARK.as_bytes())
    };
    is_numbered && path.is_file() && says_so()
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, content).map_err(|error| Error::file(path, error.to_string()))
}

/// The page: which files their numbers stand for, and the charts.
fn page(charts: &[Chart], drawn: &[String], numbered: &[String]) -> String {
    let mut body = String::new();
    if !numbered.is_empty() {
        let files: String = numbered.iter().map(|file| format!("<li>{}</li>\n", escaped(file))).collect();
        body += &format!("<ul>\n{files}</ul>\n");
    }
    for (chart, svg) in charts.iter().zip(drawn) {
        let (title, note) = (escaped(&chart.title), escaped(&chart.told()));
        body += &format!("<section>\n<h2>{title}</h2>\n{svg}\n<p>{note}</p>\n</section>\n");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Siltstone, measured</title>\n<style>\n{STYLE}\
         </style>\n</head>\n<body>\n<h1>Siltstone, measured</h1>\n<p>Requests, bytes, allocations and instructions are counts, which \
         repeat on any machine; times are for comparing within one run. What was published by others is pale, \
         and its lines are dashed.</p>\n{body}</body>\n</html>\n"
    )
}

/// How the page looks.
const STYLE: &str = "\
body { font-family: sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
section { margin: 2.5rem 0; }
h2 { font-size: 1.1rem; }
svg { width: 100%; height: auto; }
p, ul { color: #555; overflow-wrap: anywhere; }
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
                "cases": [{ "case": "best", "latency": latency, "curve": [[1.0, 0.5], [2.0, 1.5]], "ratio_to_off": latency }] }),
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
            assert!(size.0 == 1760 && size.1 > 840, "{}: below it stands its note", picture.display());
        }
    }

    /// The names of the files in a folder, in order.
    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn runs_of_one_benchmark_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let [_, _, simple_query, single_key, _] = documents();
        let mut report = report(folder.path(), &[simple_query.clone(), simple_query, single_key]);
        report.results.push(report.results[2].clone());
        report.run(&mut Vec::new()).unwrap();
        let page = fs::read_to_string(&report.out).unwrap();
        for text in ["cost (0.json)</h2>", "cost (1.json)</h2>", "single-key: latency</h2>"] {
            assert!(page.contains(text), "{text}");
        }
        assert_eq!(page.matches("latency</h2>").count(), 1, "a file that is named twice is drawn once");
    }

    /// Neither titles nor the names of pictures are as long as paths may be.
    #[test]
    fn files_are_told_by_their_paths_or_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d&".repeat(100)).join("e".repeat(200));
        fs::create_dir_all(&deep).unwrap();
        let [_, fast_forward, ..] = documents();
        let long = format!("{}.json", "f".repeat(200));
        let mut report = report(folder.path(), &[fast_forward]);
        for path in [deep.join("0.json"), deep.join("other.json"), deep.join(&long)] {
            fs::copy(&report.results[0], &path).unwrap();
            report.results.push(path);
        }
        report.run(&mut Vec::new()).unwrap();
        let page = fs::read_to_string(&report.out).unwrap();
        let first = format!("({}/0.json)</h2>", folder.path().file_name().unwrap().display());
        for told in [&*first, "(file 2)</h2>", "(other.json)</h2>", "(file 4)</h2>"] {
            assert_eq!(page.matches(told).count(), 3, "{told}");
        }
        let legend = |number: usize| {
            format!("<li>file {number}: {}</li>", escaped(&report.results[number - 1].display().to_string()))
        };
        assert!(page.contains(&legend(2)) && page.contains(&legend(4)) && page.contains("d&amp;d"), "{page}");
        assert_eq!(page.matches("<li>").count(), 2, "the others are told where they stand");
    }

    #[test]
    fn files_of_one_name_are_told_by_what_differs() {
        let files = ["a/before/ff.json", "a/after/ff.json", "ff.json", "growth.json"].map(Path::new);
        let labels = [1, 2, 3, 4].map(|number| label(&files, number));
        assert_eq!(labels, ["before/ff.json", "after/ff.json", "ff.json", "growth.json"]);
        assert_eq!(numbered(&files), [""; 0]);
    }

    #[test]
    fn charts_of_one_file_are_told_apart_too() {
        let chart = |label: &str, title: &str| {
            (label.to_owned(), Chart { title: title.to_owned(), ..Chart::default() })
        };
        let charts = told_apart(vec![chart("a", "T"), chart("a", "T"), chart("b", "T"), chart("b", "U")]);
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["T (a, 1)", "T (a, 2)", "T (b)", "U"]);
    }

    #[test]
    fn pictures_of_an_earlier_report_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let documents = documents();
        let pictures = folder.path().join("png");
        report(folder.path(), &documents).run(&mut Vec::new()).unwrap();
        let of_others =
            ["01-a-sunset.png", "notes.png", "2-rows.png", "02-Rows.png", "01-rows.svg", "03-.png"];
        for name in of_others {
            fs::write(pictures.join(name), "a picture of somebody else's").unwrap();
        }
        let drawn = fs::read(pictures.join("01-a-row-by-rows-requests.png")).unwrap();
        fs::write(pictures.join("99-rows.png"), &drawn).unwrap();
        fs::write(pictures.join("my-rows.png"), &drawn).unwrap();
        report(folder.path(), &documents[2..3]).run(&mut Vec::new()).unwrap();
        let mut left: Vec<String> = of_others.map(str::to_owned).to_vec();
        let new = ["01-simple-query-read-operations-a-second.png", "02-simple-query-read-cost.png"];
        left.extend(["my-rows.png", new[0], new[1]].map(str::to_owned));
        left.sort();
        assert_eq!(names(&pictures), left);
    }

    #[test]
    fn what_is_not_drawn_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let [_, mut fast_forward, ..] = documents();
        let range =
            json!({ "case": "->", "range": "[0, 1]", "known": "no", "aio": 2, "(KiB)": 73.0, "frag/s": 9 });
        let ranges = json!({ "group": "large-partition-single-key-slice", "made_of": {}, "cases": [range] });
        let alone = report(folder.path(), &[json!([ranges])]);
        let mut said = Vec::new();
        let refused = alone.run(&mut said).unwrap_err().to_string();
        assert!(refused.contains("nothing in it of which a chart is drawn"), "{refused}");
        assert!(!alone.out.exists());
        fast_forward.as_array_mut().unwrap().push(ranges);
        report(folder.path(), &[fast_forward]).run(&mut said).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert_eq!(
            said.matches("no chart is drawn of large-partition-single-key-slice\n").count(),
            2,
            "{said}"
        );
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
    fn nothing_is_written_where_there_is_no_room_for_pictures() {
        let folder = tempfile::tempdir().unwrap();
        let report = report(folder.path(), &documents()[..1]);
        fs::write(folder.path().join("png"), "a file of somebody else's").unwrap();
        assert!(report.run(&mut Vec::new()).is_err());
        assert_eq!(names(folder.path()), ["0.json", "png", "svg"]);
        assert_eq!(names(&folder.path().join("svg")), [""; 0]);
    }

    #[test]
    fn numbers_of_pictures_have_as_many_digits() {
        let folder = tempfile::tempdir().unwrap();
        let table = |title: usize| {
            json!({ "title": title.to_string(), "columns": ["Siltstone"],
            "lines": [{ "of": "a row", "cells": [{ "MiB": 5 }] }] })
        };
        let tables = |count: usize| json!({ "peers": (0..count).map(table).collect::<Vec<_>>() });
        for (count, first) in [(1, "01-0-mib.svg"), (100, "001-0-mib.svg")] {
            let mut said = Vec::new();
            let report = Report { png: None, ..report(folder.path(), &[tables(count)]) };
            report.run(&mut said).unwrap();
            let names = names(&folder.path().join("svg"));
            assert_eq!((names.len(), &*names[0]), (count, first));
            let told = if count == 1 { "page.html: 1 chart\n" } else { "page.html: 100 charts\n" };
            assert!(String::from_utf8(said).unwrap().ends_with(told));
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
