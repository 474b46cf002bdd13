//! Logs that a crash left, and some that no crash leaves: what Cassandra would not touch stays.

use std::time::Duration;

use runtime::{SimOptions, run_simulated};

use super::*;
use crate::clean_up;

const DIR: &str = "/d/ks/t-1";
const LOG: &str = "nb_txn_compaction_3f5a4d70-1b7c-11ee-8000-000000000000.log";

/// When the files of nb-1 were written, in milliseconds since the epoch.
const WRITTEN: i64 = 1_577_836_800_250;

fn name(generation: u32) -> String {
    format!("{DIR}/nb-{generation}-big-")
}

fn add() -> String {
    Record::add(name(2)).to_string()
}

fn remove() -> String {
    Record::remove(name(1), WRITTEN, 3).to_string()
}

fn commit() -> String {
    Record::commit().to_string()
}

/// What is left of nb-1 and nb-2, of which there are these files and this log, or why nothing was done.
fn cleaned(dir: &str, files: &[&str], log: &[u8]) -> Result<Vec<String>> {
    run_simulated(SimOptions::default(), async |shard| {
        let (disk, clock) = (shard.disk(), shard.clock().as_simulated().unwrap());
        let simulated = disk.as_simulated().unwrap();
        let dir = Path::new(dir);
        simulated.add_file(dir.join(LOG), log.to_vec());
        for file in files {
            let (file, late) = file.split_once(" +").unwrap_or((file, "0"));
            let written = WRITTEN as u64 + late.parse::<u64>().unwrap();
            clock.set(Duration::from_millis(written));
            simulated.add_file(dir.join(file), vec![1]);
        }
        let before = disk.list(dir).unwrap();
        let result = clean_up(disk, dir).await;
        let after = disk.list(dir).unwrap();
        assert!(result.is_ok() || before == after, "{after:?}");
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        result.map(|_| after.iter().map(name).collect())
    })
    .unwrap()
}

const BOTH: [&str; 6] = [
    "nb-1-big-Data.db",
    "nb-1-big-Statistics.db +70000",
    "nb-1-big-TOC.txt",
    "nb-2-big-Data.db +5000",
    "nb-2-big-TOC.txt.tmp",
    "nb-22-big-Data.db",
];

fn error_of(files: &[&str], lines: &[String]) -> String {
    cleaned(DIR, files, lines.join("\n").as_bytes()).unwrap_err().to_string()
}

fn left(files: &[&str], lines: &[String]) -> Vec<String> {
    cleaned(DIR, files, (lines.join("\n") + "\n").as_bytes()).unwrap()
}

const OLD: [&str; 4] =
    ["nb-1-big-Data.db", "nb-1-big-Statistics.db", "nb-1-big-TOC.txt", "nb-22-big-Data.db"];
const NEW: [&str; 3] = ["nb-2-big-Data.db", "nb-2-big-TOC.txt.tmp", "nb-22-big-Data.db"];

#[test]
fn the_last_line_decides() {
    let abort = Record::abort().to_string();
    assert_eq!(left(&BOTH, &[add(), remove()]), OLD);
    assert_eq!(left(&BOTH, &[add(), remove(), abort]), OLD);
    assert_eq!(left(&BOTH, &[add(), remove(), commit()]), NEW);
    assert_eq!(left(&BOTH[3..], &[add(), remove(), commit()]), NEW, "some were removed before");
    assert_eq!(left(&BOTH, &[remove(), add(), commit().to_lowercase()]), NEW);
    // As it is while nothing is written yet.
    let all = BOTH.map(|name| name.split(' ').next().unwrap());
    let mut all = all.to_vec();
    all.sort_unstable();
    assert_eq!(cleaned(DIR, &BOTH, b"").unwrap(), all);
}

#[test]
fn a_torn_line_has_not_happened() {
    let commit = commit();
    let torn = (1..commit.len()).map(|len| commit.as_bytes()[..len].to_vec());
    let garbage = [b"\0\0\0\0".to_vec(), b"COMMIT:[\xff\n\n\x80\n".to_vec(), b"COM\n\x01\n".to_vec()];
    for end in torn.chain(garbage) {
        let log = [add().as_bytes(), b"\n", remove().as_bytes(), b"\n", &end].concat();
        assert_eq!(cleaned(DIR, &BOTH, &log).unwrap(), OLD, "{end:?}");
        // It may have been a COMMIT, as a file is gone that nobody removes before it.
        let error = cleaned(DIR, &BOTH[1..], &log).unwrap_err().to_string();
        assert!(error.contains("of 3 files nb-1-big-* there are 2: whether they are to go"), "{error}");
    }
    // A last line that has all but its end is whole.
    let log = [add(), remove(), commit].join("\n");
    assert_eq!(cleaned(DIR, &BOTH, log.as_bytes()).unwrap(), NEW);
}

#[test]
fn other_files_than_those_that_are_meant_stay() {
    let changed = ["nb-1-big-Data.db +1000", "nb-2-big-Data.db"];
    for lines in [vec![add(), remove()], vec![add(), remove(), commit()]] {
        let error = error_of(&changed, &lines);
        assert!(error.starts_with(&format!("{DIR}/{LOG}: the last of nb-1-big-* was written 1577836801250")));
        // Only the second counts.
        let late = ["nb-1-big-Data.db +700", "nb-2-big-Data.db"];
        assert!(!left(&late, &lines).is_empty());
    }
    // Cassandra once counted Statistics.db too.
    let remove = Record::remove(name(1), WRITTEN + 70_000, 3).to_string();
    assert_eq!(left(&BOTH, &[add(), remove, commit()]), NEW);
}

#[test]
fn a_log_that_no_crash_leaves_is_refused() {
    let broken = remove().replace("nb-1", "nb-7");
    let cases = [
        (vec![broken, add()], "its checksum should be"),
        (vec!["PATH:[,0,0][1]".into(), add()], "this is not a record"),
        (vec![add(), add()], "this stands there twice"),
        (vec![remove(), Record::remove(name(1), WRITTEN, 2).to_string()], "this stands there twice"),
        (
            vec![add(), Record::add(name(2).replace(DIR, "/former/ks/t-1")).to_string()],
            "this stands there twice",
        ),
        (vec![commit(), add()], "nothing should follow COMMIT"),
        (vec![Record::abort().to_string(), commit()], "nothing should follow ABORT"),
    ];
    for (lines, what) in cases {
        let error = error_of(&BOTH, &lines);
        assert!(error.starts_with(&format!("{DIR}/{LOG}: corrupt at offset ")), "{error}");
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn a_folder_may_move_but_not_become_another_table() {
    let log = [add(), remove(), commit()].join("\n");
    assert_eq!(cleaned("/elsewhere/ks/t-1", &BOTH, log.as_bytes()).unwrap(), NEW);
    let error = cleaned("/d/ks/t-2", &BOTH, log.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("it is about the table in /d/ks/t-1, and lies in /d/ks/t-2"), "{error}");
}

#[test]
fn what_is_being_written_anew_was_not_there() {
    run_simulated(SimOptions::default(), async |shard| {
        let disk = shard.disk();
        let path = Path::new(DIR).join(format!("{LOG}.tmp"));
        disk.as_simulated().unwrap().add_file(path, commit().into_bytes());
        assert_eq!(clean_up(disk, Path::new(DIR)).await.unwrap(), []);
        assert_eq!(disk.list(Path::new(DIR)).unwrap(), Vec::<PathBuf>::new());
    })
    .unwrap();
}
