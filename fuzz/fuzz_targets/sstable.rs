//! Whole SSTables: edits of a small real one, read in every way and verified.
//!
//! An edit is six bytes: which file, what to do, where (two bytes), and what with (two bytes).

#![no_main]

use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use siltstone_fuzz::{TABLES, read_everything, with_files};

fuzz_target!(|input: (u8, Vec<[u8; 6]>)| {
    let (number, edits) = input;
    let mut files = TABLES[usize::from(number) % TABLES.len()].files();
    let path: PathBuf = files[0].0.clone();
    for edit in edits {
        let which = usize::from(edit[0]) % files.len();
        apply(&mut files[which].1, edit);
    }
    with_files(files, async |shard| read_everything(&shard, Path::new(&path)).await);
});

fn apply(bytes: &mut Vec<u8>, [_, what, high, low, first, second]: [u8; 6]) {
    if bytes.is_empty() {
        return;
    }
    let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len();
    match what % 6 {
        0 => bytes[at] = first,
        1 => bytes[at] ^= 1 << (first % 8),
        2 => bytes.truncate(at),
        3 => bytes.insert(at, first),
        4 => drop(bytes.remove(at)),
        _ => {
            let len = usize::from(first).min(bytes.len() - at);
            bytes[at..at + len].fill(second);
        }
    }
}
