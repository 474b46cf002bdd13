//! Fences.db of a table with a large partition: sound fences with some bytes changed, and checksums that hold all the
//! same, so that what is behind them is reached.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use siltstone_fuzz::{LARGE, read_beside, with_files};

const DATA: &str = "/t/me-1-big-Data.db";
const CHANGED: &str = "/t/me-1-big-Fences.db";

fuzz_target!(|edits: Vec<(u16, u8)>| {
    with_files(LARGE.files(), async |shard| {
        read_beside(&shard, Path::new(DATA), Path::new(CHANGED), &edits).await;
    });
});
