//! The whole program over a few rows: the shape of what it prints, and counts. Never a time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Output};

use serde_json::Value;
use testkit::command::{code, complaints, stdout};

fn run(benchmark: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone-perf"));
    command.arg(benchmark).args(arguments);
    command.output().unwrap()
}

/// So many operations, as JSON.
fn operations(count: u32, options: &[&str]) -> Value {
    let count = count.to_string();
    let fixed = ["--operations", &count, "--partitions", "500", "--output-format", "json"];
    let output = run("simple-query", &[&fixed, options].concat());
    assert_eq!((code(&output), &*complaints(&output)), (0, ""), "{options:?}");
    let document: Value = serde_json::from_str(stdout(&output)).unwrap();
    let lines = document["lines"].as_array().unwrap();
    assert_eq!((lines.len(), &lines[0]["errors"]), (1, &Value::from(0)), "{options:?}");
    assert_eq!(lines[0]["operations"], count.parse::<u64>().unwrap());
    lines[0].clone()
}

fn number(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap_or_else(|| panic!("{name}: {line}"))
}

#[test]
fn all_modes_run_without_an_error() {
    for mode in [&[][..], &["--write"], &["--delete"], &["--counters"], &["--counters", "--write"]] {
        for more in [&[][..], &["--flush"], &["--query-single-key"], &["--concurrency", "1"]] {
            let line = operations(300, &[mode, more].concat());
            assert!(number(&line, "allocations") > 300 && number(&line, "tasks") >= 300, "{line}");
        }
    }
}

#[test]
fn what_is_in_memory_is_not_read() {
    assert_eq!(number(&operations(500, &[]), "requests"), 0);
    // Each row is read once at the most, and each page of the index.
    let cached = operations(5000, &["--flush", "--concurrency", "1"]);
    assert!((1..=600).contains(&number(&cached, "requests")), "{cached}");
    assert!(number(&cached, "insertions") >= 490, "{cached}");
}

#[test]
fn without_caches_each_read_is_of_index_and_data_or_by_fences_of_data_alone() {
    let off = ["--flush", "--enable-cache", "0", "--enable-index-cache", "0", "--concurrency", "1"];
    for (fences, ratio, requests) in
        [("true", "0.0005", 200..=210), ("false", "0.0005", 400..=600), ("false", "0.005", 400..=600)]
    {
        let line =
            operations(200, &[&off[..], &["--fences", fences, "--sstable-summary-ratio", ratio]].concat());
        assert_eq!(number(&line, "insertions"), 0, "{line}");
        assert!(requests.contains(&number(&line, "requests")), "{line}");
    }
    let bypassed = operations(200, &["--flush", "--bypass-cache", "--concurrency", "1"]);
    assert!((200..220).contains(&number(&bypassed, "requests")), "{bypassed}");
}

#[test]
fn memory_that_is_too_small_for_all_is_enough() {
    let line = operations(2000, &["--memory", "96k"]);
    assert!(number(&line, "requests") > 1000, "{line}");
}

/// More than a store lets wait by itself.
#[test]
fn many_reads_at_once_are_not_refused() {
    let off = ["--flush", "--enable-cache", "0", "--enable-index-cache", "0"];
    let line = operations(4000, &[&off[..], &["--concurrency", "2500"]].concat());
    assert!(number(&line, "requests") >= 4000, "{line}");
}

#[test]
fn documents_tell_the_version_of_the_program() {
    for benchmark in [&["simple-query", "--operations", "5", "--partitions", "5"][..], &["reads"]] {
        let output = run(benchmark[0], &[&benchmark[1..], &["--output-format", "json"]].concat());
        let document: Value = serde_json::from_str(stdout(&output)).unwrap();
        assert_eq!(document["version"], env!("CARGO_PKG_VERSION"), "{benchmark:?}");
    }
}

/// What is in memory alone has no SSTable, and a single partition no fences, whatever was asked for.
#[test]
fn fences_are_told_as_the_files_have_them() {
    for (options, told) in [
        (&[][..], Value::Null),
        (&["--flush"], true.into()),
        (&["--flush", "--fences", "false"], "none".into()),
        (&["--flush", "--partitions", "1"], "none".into()),
    ] {
        let partitions = if options.contains(&"--partitions") { &[][..] } else { &["--partitions", "1500"] };
        let arguments = [&["--operations", "5"], partitions, options].concat();
        let json = run("simple-query", &[&arguments[..], &["--output-format", "json"]].concat());
        let document: Value = serde_json::from_str(stdout(&json)).unwrap();
        assert_eq!(document["fences"], told, "{options:?}");
        assert_eq!(document["parameters"]["fences"], !options.contains(&"--fences"));
        let text = run("simple-query", &arguments);
        let created = stdout(&text).lines().nth(1).unwrap();
        let words = told.as_str().map_or(told.to_string(), str::to_owned);
        let (count, end) = match told {
            Value::Null => (
                0,
                " 0 SSTables: they are in memtables, where no option of SSTables or caches matters"
                    .to_owned(),
            ),
            _ => (1, format!(" 1 SSTables, fences: {words}")),
        };
        assert!(created.starts_with("Created ") && created.ends_with(&end), "{created}");
        assert_eq!((&document["sstables"], document["data_bytes"] == 0), (&count.into(), count == 0));
    }
}

#[test]
fn text_is_a_line_a_second_and_a_summary() {
    let output = run("simple-query", &["--partitions", "100", "--duration", "2", "--write"]);
    assert_eq!((code(&output), &*complaints(&output)), (0, ""));
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert!(lines[0].starts_with("Running test with config: {partitions=100, concurrency=100, mode=write"));
    for line in &lines[1..3] {
        assert!(line.contains(" tps (") && line.ends_with(" 0 errors)"), "{line}");
        assert!(line.contains("logallocs/op") && line.contains(" insns/op"), "{line}");
    }
    assert_eq!(lines[3], "");
    let summary = ["median ", "median absolute deviation: ", "maximum: ", "minimum: "];
    assert!(lines[4..].iter().zip(summary).all(|(line, head)| line.starts_with(head)), "{lines:?}");
    assert_eq!(lines.len(), 8);
}

#[test]
fn reads_find_what_they_must_wherever_it_is() {
    for from in ["row-cache", "memtable", "sstable"] {
        for what in ["row", "absent-row", "absent-partition", "slice", "reversed-slice"] {
            let arguments = ["--from", from, "--what", what, "--operations", "200", "--rows", "1000"];
            let output = run("reads", &[&arguments[..], &["--output-format", "json"]].concat());
            assert_eq!((code(&output), &*complaints(&output)), (0, ""), "{from} {what}");
            let document: Value = serde_json::from_str(stdout(&output)).unwrap();
            assert_eq!((&document["from"], &document["what"]), (&from.into(), &what.into()));
            assert_eq!((&document["column_index_size_in_kb"], &document["rows"]), (&4.into(), &1000.into()));
            assert!(document["direct_io"].is_boolean() && document["io_uring"] == true, "{document}");
            let line = &document["line"];
            assert_eq!((number(line, "operations"), number(line, "errors")), (200, 0));
            match (from, what) {
                ("memtable", _) => assert_eq!(number(line, "requests"), 0),
                ("sstable", "row") => assert!((200..=210).contains(&number(line, "requests")), "{line}"),
                _ => {}
            }
        }
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for arguments in [
        &["simple-query", "--write", "--delete"][..],
        &["simple-query", "--counters", "--delete"],
        &["simple-query", "--memory", "much"],
        &["simple-query", "--memory", "1"],
        &["simple-query", "--memory", "17179869183G"],
        &["simple-query", "--duration", "0.009"],
        &["simple-query", "--sstable-summary-ratio", "0"],
        &["simple-query", "--operations", "5", "--duration", "5"],
        &["reads", "--from", "disk"],
        &["single-key", "--rate", "0"],
        &["single-key", "--cases", "good"],
    ] {
        assert_eq!(code(&run(arguments[0], &arguments[1..])), 2, "{arguments:?}");
    }
}
