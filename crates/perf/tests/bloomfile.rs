//! Bloomfile with small files: every way finds the same, and what is at hand spares lookups in the cache.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use clap::Parser;
use serde_json::Value;
use siltstone_perf::allocations::Counted;
use siltstone_perf::bloomfile::Bloomfile;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    bloomfile: Bloomfile,
}

#[global_allocator]
static COUNTED: Counted = Counted;

fn run(arguments: &str) -> Vec<Value> {
    printed(arguments)["bloomfile"].as_array().unwrap().clone()
}

fn printed(arguments: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let fixed = ["bloomfile", "--output-format", "json", "--data-directory", data, "--direct-io", "false"];
    let command = Command::parse_from(fixed.into_iter().chain(arguments.split(' ')));
    let mut out = Vec::new();
    command.bloomfile.run(&mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn column(lines: &[Value], name: &str) -> Vec<u64> {
    lines.iter().map(|line| line[name].as_u64().unwrap()).collect()
}

#[test]
fn pages_at_hand_spare_the_cache() {
    let lines = run("--case absent --threads 2 --lookups 5000");
    assert_eq!(lines.len(), 3);
    let [before, per_shard, at_hand] = column(&lines, "cache")[..] else { panic!("three ways") };
    assert!(before == 10_000 && per_shard > 9990 && at_hand < 10, "{before} {per_shard} {at_hand}");
    assert_eq!(column(&lines, "lookups"), [10_000; 3]);
    assert!(lines.iter().all(|line| line["passed"] == lines[0]["passed"]));
}

/// Even one too large to be read whole when it is opened.
#[test]
fn a_file_in_memory_is_not_read_while_it_is_measured() {
    let lines = run("--case absent --threads 64 --keys 2000000 --lookups 1000");
    assert_eq!(column(&lines, "read"), [0; 3]);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let arguments = "bloomfile --case absent --threads 256 --keys 8000000 --lookups 10 --data-directory";
    let refused = Command::parse_from(arguments.split(' ').chain([data])).bloomfile.run(&mut Vec::new());
    assert!(refused.unwrap_err().to_string().contains("--keys 8000000"));
}

#[test]
fn sorted_keys_ask_once_a_page() {
    let lines = run("--case batches --files 4 --batch-keys 20000 --batch 2000 --lookups 8000");
    let [before, _, at_hand] = column(&lines, "cache")[..] else { panic!("three ways") };
    assert!(at_hand > 0 && before >= 50 * at_hand, "{before} lookups before, {at_hand} now");
    assert!(lines.iter().all(|line| line["passed"] == lines[0]["passed"]));
}

#[test]
fn a_file_larger_than_the_cache_is_read_alike() {
    let lines = run("--case churning --threads 2 --churning-keys 200000 --memory 200k --lookups 20000");
    let read = column(&lines, "read");
    assert!(read.iter().all(|read| (200..4000).contains(read)), "{read:?}");
    assert!(lines.iter().all(|line| line["passed"] == lines[0]["passed"]));
}

#[test]
fn filters_as_a_whole_pass_about_as_many() {
    let lines = run("--case large --files 2 --large-keys 20000 --batch 5000 --lookups 10000");
    assert_eq!(lines.len(), 4);
    for line in &lines {
        let passed = line["passed"].as_f64().unwrap();
        assert!((0.004..0.016).contains(&passed), "{line}");
    }
}

#[test]
fn new_rows_are_inserted_in_every_way() {
    let lines = run("--case inserts --sstables 3 --batch 500 --lookups 10000");
    assert_eq!(column(&lines, "lookups"), [1000; 3]);
    let [before, _, at_hand] = column(&lines, "cache")[..] else { panic!("three ways") };
    assert!(before == 3000 && at_hand < 100, "{before} {at_hand}");
}

/// As the allocator tells it: less than 1 MiB for 32,000 SSTables on 48 shards.
#[test]
fn lookups_keep_next_to_nothing() {
    let printed = printed("--case absent --way at-hand --threads 1 --lookups 1000");
    assert_eq!(printed["version"], env!("CARGO_PKG_VERSION"));
    let [before, now] = ["before", "now"].map(|of| printed["state"][of].as_u64().unwrap());
    assert!(before > 180 << 20, "{before}: each processor has an iterator for each file");
    assert!(
        (32_000 * 8..1 << 20).contains(&now),
        "{now}: a word for each file, and what a shard has at hand"
    );
}

/// Filters of the least chance have more pages than usual ones.
#[test]
fn chances_are_those_that_tables_may_have() {
    let printed = printed("--case absent --way at-hand --threads 1 --lookups 1000 --fp-chance 0.0000672");
    assert!(printed["state"]["now"].is_u64(), "{printed}");
    for chance in ["0.0000671", "0.0000001", "0", "1"] {
        let refused = Command::try_parse_from(["bloomfile", "--fp-chance", chance]).unwrap_err().to_string();
        assert!(refused.contains("--fp-chance"), "{refused}");
    }
}

#[test]
fn json_tells_what_decided() {
    let document = printed("--case absent --threads 2 --lookups 500 --fp-chance 0.02");
    let parameters = &document["parameters"];
    assert_eq!((&parameters["threads"], &parameters["lookups"]), (&2.into(), &500.into()));
    assert_eq!((&parameters["fp_chance"], &parameters["direct_io"]), (&0.02.into(), &false.into()));
    assert_eq!(document["interrupted"], false);
}
