//! The whole program for a moment: the shape of what it prints, and how many SSTables were read. Never a time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Output};

use serde_json::Value;
use testkit::command::{code, complaints, stdout};

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone-perf"));
    command.args(["single-key", "--rows", "300"]).args(arguments);
    command.output().unwrap()
}

#[test]
fn each_case_reads_as_many_sstables_as_it_must() {
    let output = run(&["--rate", "400", "--duration", "0.5", "--output-format", "json"]);
    assert_eq!((code(&output), &*complaints(&output)), (0, ""));
    let document: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(document["version"], env!("CARGO_PKG_VERSION"));
    let counts = |case: &Value| {
        ["reads", "newest_first", "sstables", "requests"].map(|name| case[name].as_u64().unwrap())
    };
    let cases: Vec<_> = document["cases"].as_array().unwrap().iter().map(counts).collect();
    assert_eq!(
        cases[..6],
        [
            [200, 0, 600, 600],
            [200, 200, 200, 200],
            [200, 200, 200, 200],
            [200, 200, 400, 400],
            [200, 200, 600, 600],
            [200, 200, 600, 600]
        ]
    );
    assert_eq!(cases[6], [200, 2, 600, 600]);
    for case in document["cases"].as_array().unwrap() {
        assert_eq!(case["queries"], 200);
        assert_eq!(case["latency"].as_object().unwrap().len(), 6);
    }
}

#[test]
fn text_has_the_published_lines() {
    let output = run(&["--duration", "0.1", "--cases", "in"]);
    // A machine that does other things too may not sustain what it did a moment before, and is told so.
    let is_of_queues = |line: &str| line.contains("its latencies are those of queues");
    let complaints = complaints(&output);
    assert!(code(&output) == 0 && complaints.lines().all(is_of_queues), "{complaints}");
    assert_eq!(stdout(&output).matches("latency ").count(), 2 * 6);
    assert_eq!(stdout(&output).matches("[simple_in: ").count(), 6);
    assert!(stdout(&output).contains("SSTables touched          :    1.000 a read"), "{}", stdout(&output));
}
