//! The whole program over small datasets: rows by arithmetic, requests by what the index promises. Never a time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;
use testkit::command::{code, complaints, stderr, stdout};

/// Rows of the datasets: about 60 blocks of 4 KiB.
const ROWS: u64 = 1200;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone-perf"));
    command.arg("fast-forward").arg("--data-directory").arg(folder).args(arguments);
    command.output().unwrap()
}

/// Datasets as the options say.
fn populated(options: &[&str]) -> TempDir {
    populated_with(ROWS, options)
}

/// Datasets of so many rows, and besides as the options say.
fn populated_with(rows: u64, options: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows = rows.to_string();
    let output = run(folder.path(), &[&["--populate", "--rows", &rows], options].concat());
    assert_eq!((code(&output), stdout(&output)), (0, ""), "{}", stderr(&output));
    folder
}

/// The cases of a group, each run once.
fn cases(folder: &TempDir, group: &str, options: &[&str]) -> Vec<Value> {
    cases_for("0", folder, group, options)
}

/// The cases of a group, each run for so many seconds.
fn cases_for(seconds: &str, folder: &TempDir, group: &str, options: &[&str]) -> Vec<Value> {
    let json = ["--test-case-duration", seconds, "--output-format", "json", "--run-tests", group];
    let output = run(folder.path(), &[&json, options].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let document: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(document[0]["group"], group);
    document[0]["cases"].as_array().unwrap().clone()
}

fn number(case: &Value, column: &str) -> u64 {
    case[column].as_u64().unwrap_or_else(|| panic!("{column}: {case}"))
}

#[test]
fn a_dataset_has_to_be_what_is_asked_for() {
    let folder = populated(&["--datasets", "large-part-ds1", "--column-index-size-in-kb", "4"]);
    let test = ["--run-tests", "large-partition-slicing", "--test-case-duration", "0"];
    for (other, told) in [
        (&["--rows", "7"][..], "--rows 1200"),
        (&["--value-size", "7"], "--value-size 200"),
        (&["--column-index-size-in-kb", "64"], "--column-index-size-in-kb 4"),
        (&["--sstable-format", "oa"], "--sstable-format me"),
        (&["--with-compression"], "no compression"),
    ] {
        let output = run(folder.path(), &[&test, other].concat());
        assert_eq!(code(&output), 2, "{other:?}");
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    let same = ["--rows", "1200", "--column-index-size-in-kb", "4", "--sstable-format", "me"];
    assert_eq!(code(&run(folder.path(), &[&test, &same[..]].concat())), 0);
}

#[test]
fn a_cold_row_is_few_requests() {
    let folder = populated(&["--datasets", "large-part-ds1", "--column-index-size-in-kb", "4"]);
    for (options, most) in
        [(&["--fences", "true"][..], 3), (&["--fences", "false"], 12), (&["--index-search", "scan"], 12)]
    {
        for group in ["large-partition-slicing", "large-partition-slicing-clustering-keys"] {
            let cases = cases(&folder, group, options);
            let frags: Vec<u64> = cases.iter().map(|case| number(case, "frags")).collect();
            assert_eq!(frags, [1, 32, 256, 1200, 1, 32, 256, 600], "{group} {options:?}");
            for case in cases.iter().filter(|case| case["read"] == 1) {
                assert!(number(case, "aio") <= most, "{group} {options:?}: {case}");
            }
        }
    }
}

#[test]
fn skips_find_what_they_must_and_read_no_more_than_all() {
    for options in [&["--with-compression"][..], &[]] {
        let folder = populated(&[options, &["--column-index-size-in-kb", "4"]].concat());
        for group in ["large-partition-skips", "small-partition-skips"] {
            let cases = cases(&folder, group, &[]);
            assert_eq!(cases.len(), 17);
            let whole = cases[0]["(KiB)"].as_f64().unwrap();
            for case in &cases {
                let (read, skip) = (number(case, "read"), number(case, "skip"));
                let rows = if skip == 0 { ROWS } else { kept(read, skip) };
                assert_eq!(number(case, "frags"), rows, "{group}: {case}");
                // Indexes come on top, and the ends of requests.
                assert!(case["(KiB)"].as_f64().unwrap() <= whole * 1.1 + 40.0, "{group}: {case}");
            }
            // A row of each 4097 is one row, in one block.
            let last = &cases[8];
            assert_eq!((number(last, "skip"), number(last, "frags")), (4096, 1));
            assert!(last["(KiB)"].as_f64().unwrap() <= 40.0, "{group}: {last}");
        }
    }
}

/// How many rows are read, if of each `read + skip` the first `read` are.
fn kept(read: u64, skip: u64) -> u64 {
    (0..ROWS).filter(|row| row % (read + skip) < read).count() as u64
}

#[test]
fn neighbours_and_absent_rows() {
    let folder = populated(&["--datasets", "large-part-ds1", "--column-index-size-in-kb", "4"]);
    let few = cases(&folder, "large-partition-select-few-rows", &["--keep-cache-across-test-cases"]);
    // The neighbour, with all of the index cached: its block alone, and what direct I/O adds at both ends.
    assert_eq!((number(&few[1], "stride"), number(&few[1], "aio")), (ROWS / 2 + 1, 1));
    assert!(few[1]["(KiB)"].as_f64().unwrap() <= 12.0, "{}", few[1]);
    let missing = cases(&folder, "large-partition-select-missing-rows", &[]);
    assert!(missing.iter().all(|case| case["frags"] == 0));
    // Right before the first row there is no block: the index knows, and no data is read.
    assert!(number(&missing[2], "aio") <= 2, "{}", missing[2]);
    assert!(missing[2]["(KiB)"].as_f64().unwrap() <= 16.0, "{}", missing[2]);
}

/// The rows around the middle one, by a reader of the partition and by one of all partitions.
#[test]
fn a_restricted_reader_finds_two_rows_where_it_is_told_to_go_on() {
    let folder = populated(&["--datasets", "large-part-ds1", "--column-index-size-in-kb", "4"]);
    for options in [&["--fences", "true"][..], &["--fences", "false"], &["--enable-cache"]] {
        let cases = cases(&folder, "large-partition-forwarding", options);
        let scans: Vec<&Value> = cases.iter().map(|case| &case["pk-scan"]).collect();
        assert_eq!(scans, ["yes", "no"], "{options:?}");
        assert!(cases.iter().all(|case| case["frags"] == 2), "{options:?}: {cases:?}");
        // What lies before the restriction and behind all is not read: of the data, one block or two.
        assert!(number(&cases[1], "aio") <= 8, "{options:?}: {}", cases[1]);
        assert!(cases[1]["(KiB)"].as_f64().unwrap() <= 48.0, "{options:?}: {}", cases[1]);
    }
}

#[test]
fn what_a_row_cache_has_is_not_asked_for_again() {
    let group = "large-partition-single-key-slice";
    for rows in [1, 7, 60, ROWS] {
        let folder = populated_with(rows, &["--datasets", "large-part-ds1"]);
        // Longer than most cases take: what goes on is run once all the same.
        for options in [&[][..], &["--keep-cache-across-test-groups"]] {
            let cases = cases_for("0.01", &folder, group, options);
            assert_eq!(cases.len(), 38);
            assert!(number(&cases[0], "aio") > 0 && number(&cases[0], "c miss") == 1, "{}", cases[0]);
            let (first, later): (Vec<&Value>, Vec<&Value>) =
                cases.iter().partition(|case| case["case"] == "->");
            assert_eq!(first.len(), 14);
            // Where the only row lies elsewhere, there is nothing to ask for.
            let is_cold = |case: &&Value| number(case, "aio") > 0 || number(case, "frags") == 0;
            assert!(first.iter().all(is_cold) && later.iter().all(|case| case["iterations"] == 1));
            for case in cases.iter().filter(|case| case["known"] == "yes") {
                // Of what lies behind the last row nothing has to be kept.
                assert!(number(case, "c hit") == 1 || number(case, "frags") == 0, "{rows} {case}");
                assert_eq!(number(case, "aio"), 0, "{rows} {case}");
                assert_eq!((number(case, "c blk"), number(case, "idx blk")), (0, 0), "{rows} {case}");
                assert!(number(case, "mem") > 0 || rows <= 100);
            }
            assert_eq!(number(&cases[4], "frags"), rows);
        }
    }
}

#[test]
fn a_group_of_the_row_cache_says_so() {
    let folder = populated(&["--datasets", "large-part-ds1"]);
    for (group, is_on) in [("large-partition-single-key-slice", "on"), ("large-partition-forwarding", "off")]
    {
        let output = run(folder.path(), &["--test-case-duration", "0", "--run-tests", group]);
        let said = format!("row cache: {is_on}, ");
        assert!(stdout(&output).contains(&said), "{}", stdout(&output));
    }
}

/// What is larger than the cache has room for is read again, and that is no error.
#[test]
fn rows_that_a_row_cache_has_no_room_for_are_asked_for_again() {
    let folder = populated(&["--datasets", "large-part-ds1", "--value-size", "2000"]);
    let cases = cases(&folder, "large-partition-single-key-slice", &["--cache-mib", "1"]);
    let is_of_all = |case: &&Value| case["range"] == format!("[0, {ROWS}]");
    let all: Vec<&Value> = cases.iter().filter(is_of_all).collect();
    assert!(all.len() == 2 && number(all[1], "aio") > 0 && all[1]["known"] == "yes", "{all:?}");
    let few = |case: &&Value| case["known"] == "yes" && number(case, "frags") <= 20;
    // Those from the hundredth on are more than it has room for.
    let few: Vec<&Value> =
        cases.iter().take_while(|case| case["range"] != "[100, +inf)").filter(few).collect();
    assert!(few.len() == 5 && few.iter().all(|case| case["aio"] == 0), "{few:?}");
}

/// However many rows by themselves are in the row cache, a scan of all takes about as many requests as without them.
#[test]
fn scans_behind_skips_have_what_these_have_left() {
    let folder = populated(&[]);
    for (group, is_kept) in [("large-partition-skips", true), ("small-partition-skips", false)] {
        let cases = cases(&folder, group, &["--enable-cache"]);
        assert_eq!(cases.len(), 17 + 8);
        let scan = |case: &Value| (number(case, "frags"), number(case, "skip")) == (ROWS, 0);
        assert!(cases[17..].iter().skip(1).step_by(2).all(scan), "{group}");
        let through_cache = number(&cases[18], "c hit") + number(&cases[18], "c miss");
        assert_eq!(through_cache, u64::from(is_kept), "{group}: {}", cases[18]);
        let asked: Vec<u64> = cases[17..].iter().skip(1).step_by(2).map(|scan| number(scan, "aio")).collect();
        let without = number(&cases[0], "aio");
        assert!(asked.iter().all(|requests| *requests <= without + 4), "{group}: {asked:?}, not {without}");
        // Of a partition 32 rows are read together; a partition is read by itself.
        let (skipped, most) = (number(&cases[1], "aio"), if is_kept { ROWS / 2 / 8 } else { ROWS / 2 });
        assert!(skipped <= most, "{group}: {skipped} requests where {most} are allowed");
    }
}

/// Where a range is larger than what one read may put into the cache, what it has left is not held to be all.
#[test]
fn a_range_that_the_row_cache_has_no_room_for_is_not_held_to_be_known() {
    let folder = populated_with(6000, &["--datasets", "large-part-ds1"]);
    let cases = cases(&folder, "large-partition-single-key-slice", &["--cache-mib", "1"]);
    let last = cases.iter().find(|case| case["range"] == "[5999]").unwrap();
    assert!(last["known"] == "yes" && number(last, "frags") == 1, "{last}");
}

/// A read gives back what it took, save for what the caches have.
#[test]
fn nothing_is_held_beyond_the_caches() {
    let folder = populated(&["--datasets", "large-part-ds1", "--column-index-size-in-kb", "4"]);
    for group in ["large-partition-slicing-clustering-keys", "large-partition-skips"] {
        for case in cases(&folder, group, &[]) {
            let held = case["held"].as_i64().unwrap();
            assert!(held <= 8 << 10, "{group}: {case}");
        }
    }
}

#[test]
fn all_groups_run_and_print_lines() {
    let folder = populated(&[]);
    let output = run(folder.path(), &["--test-case-duration", "0"]);
    assert_eq!((code(&output), &*complaints(&output)), (0, ""));
    assert_eq!(stdout(&output).matches("running: ").count(), 10);
    let heads = stdout(&output).lines().filter(|line| line.contains("avg aio"));
    assert!(heads.clone().count() == 10 && heads.clone().all(|head| head.contains(" allocs ")));
}

#[test]
fn what_can_be_counted_is_known() {
    let folder = populated(&[]);
    let output = run(folder.path(), &["--test-case-duration", "0", "--output-format", "json"]);
    let document: Value = serde_json::from_str(stdout(&output)).unwrap();
    let groups = document.as_array().unwrap();
    assert_eq!(groups.len(), 10);
    for case in groups.iter().flat_map(|group| group["cases"].as_array().unwrap()) {
        assert!(number(case, "allocs") > 0 && case["held"].is_i64(), "{case}");
    }
}

/// What the groups that are run do not read stays as it is.
#[test]
fn a_group_has_its_own_dataset_populated() {
    let folder = populated_with(50, &[]);
    let populate = ["--populate", "--rows", "60", "--test-case-duration", "0"];
    let rows = || {
        ["large-part-ds1", "small-part"].map(|dataset| {
            let path = folder.path().join(dataset).join("dataset.json");
            let shape: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            shape["rows"].as_u64().unwrap()
        })
    };
    let output = run(folder.path(), &[&populate[..], &["--run-tests", "small-partition-slicing"]].concat());
    assert_eq!((code(&output), rows()), (0, [50, 60]), "{}", stderr(&output));
    let both = ["--datasets", "large-part-ds1,small-part", "--run-tests", "small-partition-slicing"];
    assert_eq!((code(&run(folder.path(), &[&populate[..], &both].concat())), rows()), (0, [60, 60]));
}

/// A single row has no fences, whatever was asked for.
#[test]
fn fences_that_are_not_there_are_not_told() {
    for (rows, options, told) in [
        (1, &[][..], Value::from("none")),
        (4000, &["--fences", "true"], true.into()),
        (4000, &["--fences", "false"], false.into()),
    ] {
        let folder =
            populated_with(rows, &["--datasets", "large-part-ds1", "--column-index-size-in-kb", "1"]);
        let test = ["--run-tests", "large-partition-slicing", "--test-case-duration", "0"];
        let json = run(folder.path(), &[&test, options, &["--output-format", "json"]].concat());
        let document: Value = serde_json::from_str(stdout(&json)).unwrap();
        assert_eq!(document[0]["fences"], told, "{rows} {options:?}");
        let text = run(folder.path(), &[&test, options].concat());
        let said = format!(", fences: {}, ", told.as_str().map_or(told.to_string(), str::to_owned));
        assert!(stdout(&text).contains(&said), "{}", stdout(&text));
    }
}

#[test]
fn what_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("--populate"), "{}", stderr(&output));
    std::fs::create_dir(folder.path().join("small-part")).unwrap();
    std::fs::write(folder.path().join("small-part/letter.txt"), "dear").unwrap();
    for datasets in ["small-part", "large-part-ds1,small-part"] {
        let output = run(folder.path(), &["--populate", "--datasets", datasets, "--rows", "1"]);
        assert_eq!(code(&output), 1);
        assert!(stderr(&output).contains("letter.txt: this is no part of a dataset"), "{}", stderr(&output));
        assert!(!folder.path().join("large-part-ds1").exists(), "all are looked at before one is written");
    }
    assert_eq!(code(&run(folder.path(), &["--run-tests", "all"])), 2);
}

/// Results tell of the files that were read: what stands beside them is not believed.
#[test]
fn another_sstable_in_the_place_of_a_dataset_is_noticed() {
    let folder = populated_with(50, &["--datasets", "small-part"]);
    let path = folder.path().join("small-part").join("dataset.json");
    let described = std::fs::read_to_string(&path).unwrap();
    for (field, other) in [("sstable_format", Value::from("oa")), ("compression", true.into())] {
        let mut shape: Value = serde_json::from_str(&described).unwrap();
        assert_ne!(shape[field], other, "{shape}");
        shape[field] = other;
        if field == "compression" {
            shape["chunk_size"] = 4096.into();
        }
        std::fs::write(&path, shape.to_string()).unwrap();
        let test = ["--run-tests", "small-partition-slicing", "--test-case-duration", "0"];
        let output = run(folder.path(), &test);
        let said = stderr(&output);
        assert_eq!((code(&output), stdout(&output)), (1, ""), "{said}");
        assert!(said.contains("but it is one of me without compression"), "{said}");
    }
}
