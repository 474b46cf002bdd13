//! The whole program over a few rows, along all that grows: what it measures, and that datasets stay and are read again. Never a time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use testkit::command::{code, complaints, stdout};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone-perf"));
    command.args(["growth", "--operations", "40", "--data-directory"]).arg(folder).args(arguments);
    command.output().unwrap()
}

#[test]
fn a_row_costs_a_request_or_two_along_all_that_grows() {
    let folder = tempfile::tempdir().unwrap();
    for (along, sizes) in [
        ("rows", "300,3000"),
        ("partitions", "1,1500"),
        ("sstables", "1,3"),
        ("overlapping", "1,3"),
        ("stretches", "1,3"),
        ("expiring", "1,3"),
        ("slices", "1,3"),
    ] {
        let read = || {
            let output = run(folder.path(), &["--along", along, "--sizes", sizes, "--output-format", "json"]);
            assert_eq!((code(&output), &*complaints(&output)), (0, ""), "{along}");
            serde_json::from_str::<Value>(stdout(&output)).unwrap()
        };
        let document = read();
        assert_eq!(document["along"], along);
        let settings = ["operations", "cold_reads", "value_size", "cache_bytes"].map(|name| &document[name]);
        assert_eq!(settings, [40, 20, 8, 64 << 20], "{along}");
        assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
        let points = document["points"].as_array().unwrap();
        let told: Vec<String> = points.iter().map(|point| point["size"].to_string()).collect();
        assert_eq!(told.join(","), sizes);
        for point in points {
            let requests = |of: &str| point[of]["requests"].as_f64().unwrap();
            // Nothing is kept of the data, so that each read has a request for it, and one more at a seam.
            assert!((1.0..=2.0).contains(&requests("warm")), "{along}: {point}");
            assert!(requests("cold") >= 1.0 && requests("cold") <= 4.0, "{along}: {point}");
            assert!(requests("opening") >= 3.0, "{along}: {point}");
        }
        assert_eq!(read(), document, "{along}: the same files give the same counts");
    }
}

/// A single partition of a row has none, whatever was asked for.
#[test]
fn fences_are_told_as_the_files_have_them() {
    let folder = tempfile::tempdir().unwrap();
    for (asked, told) in
        [("true", [Value::from("none"), true.into()]), ("false", ["none".into(), "none".into()])]
    {
        let arguments = ["--along", "partitions", "--sizes", "1,1500", "--cold", "0", "--fences", asked];
        let json = run(folder.path(), &[&arguments[..], &["--output-format", "json"]].concat());
        let document: Value = serde_json::from_str(stdout(&json)).unwrap();
        assert_eq!([0, 1].map(|at| document["points"][at]["fences"].clone()), told, "{asked}");
        let text = run(folder.path(), &arguments);
        let words = told.map(|told| told.as_str().map_or(told.to_string(), str::to_owned));
        let lines = stdout(&text).lines().skip(1).zip(&words);
        assert_eq!(lines.filter(|(line, word)| line.ends_with(&format!("  {word}"))).count(), 2, "{asked}");
    }
}

#[test]
fn what_was_measured_is_told_where_a_later_size_fails() {
    let folder = tempfile::tempdir().unwrap();
    // No dataset has room where somebody else's file is.
    std::fs::create_dir(folder.path().join("rows-20")).unwrap();
    std::fs::write(folder.path().join("rows-20/letter.txt"), "dear").unwrap();
    let output = run(folder.path(), &["--sizes", "10,20,30", "--output-format", "json", "--cold", "false"]);
    assert_eq!(code(&output), 1);
    assert!(complaints(&output).contains("letter.txt: this is no part of a dataset"));
    let document: Value = serde_json::from_str(stdout(&output)).unwrap();
    let points = document["points"].as_array().unwrap();
    assert_eq!((points.len(), &points[0]["size"]), (1, &Value::from(10)));
    assert_eq!(document["cold_reads"], 0);
}

#[test]
fn sizes_that_are_too_large_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--along", "sstables", "--sizes", "200000"]);
    assert_eq!(code(&output), 2);
    assert!(complaints(&output).contains("--sizes 200000: along sstables there are up to 100000"));
}
