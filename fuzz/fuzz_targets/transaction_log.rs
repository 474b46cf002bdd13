//! Transaction logs, most of whose lines have the right checksum, in a folder with SSTables: what a log does not name stays.

#![no_main]

use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use siltstone_fuzz::with_files;
use storage::transaction::{clean_up, passed_over};

const FOLDER: &str = "/d/ks/t-1";
const LOG: &str = "/d/ks/t-1/nb_txn_compaction_3f5a4d70-7e9f-11ee-b962-0242ac120002.log";
const COMPONENTS: [&str; 3] = ["Data.db", "Index.db", "TOC.txt"];
const WORDS: [&str; 5] = ["ADD", "REMOVE", "COMMIT", "ABORT", "add"];

fuzz_target!(|input: (Vec<(u8, u8, u8, u8)>, u16, Vec<u8>)| {
    let (lines, keep, tail) = input;
    let mut log: Vec<u8> = lines.iter().map(|line| of(*line)).collect::<String>().into_bytes();
    if keep > 0 {
        log.truncate(usize::from(keep));
    }
    log.extend(tail);
    let named = String::from_utf8_lossy(&log).into_owned();
    let mut files: Vec<(PathBuf, Vec<u8>)> = (1..=4)
        .flat_map(|generation| COMPONENTS.map(|component| format!("nb-{generation}-big-{component}")))
        .map(|name| (Path::new(FOLDER).join(name), b"sand".to_vec()))
        .collect();
    files.push((LOG.into(), log));
    with_files(files, async |shard| {
        let would = passed_over(shard.disk(), Path::new(FOLDER)).await;
        let done = clean_up(shard.disk(), Path::new(FOLDER)).await;
        for generation in 1..=4 {
            let is_named = named.contains(&format!("nb-{generation}-big-"));
            let path = |component| Path::new(FOLDER).join(format!("nb-{generation}-big-{component}"));
            let are_there = COMPONENTS.iter().all(|component| shard.disk().exists(&path(component)));
            assert!(are_there || is_named && done.is_ok(), "generation {generation} of {named:?}");
        }
        if let (Ok(done), Ok(would)) = (done, would) {
            assert_eq!(done.len(), would.len());
        }
    });
});

/// A line of a log.
fn of((word, generation, time, files): (u8, u8, u8, u8)) -> String {
    let word = WORDS[usize::from(word) % WORDS.len()];
    let name = match word {
        "COMMIT" | "ABORT" => String::new(),
        _ => format!("{FOLDER}/nb-{}-big-", generation % 6),
    };
    // Times and numbers of files that fit are the likely ones.
    let (time, files) = (if time < 200 { 0 } else { i64::from(time) << 24 }, i32::from(files % 5));
    let mut crc = crc32fast::Hasher::new();
    crc.update(name.as_bytes());
    crc.update(word.to_ascii_uppercase().as_bytes());
    crc.update(&(time as i32).to_be_bytes());
    crc.update(&((time >> 32) as i32).to_be_bytes());
    crc.update(&files.to_be_bytes());
    format!("{word}:[{name},{time},{files}][{}]\n", crc.finalize())
}
