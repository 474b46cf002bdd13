//! RowFilter.db of a table with a large partition: a sound one with some bytes changed, and checksums that hold all the
//! same, so that what is behind them is reached.

#![no_main]

use libfuzzer_sys::fuzz_target;
use siltstone_fuzz::read_beside;
use sstable::component::Component;

fuzz_target!(|edits: Vec<(u16, u8)>| read_beside(&Component::RowFilter, &edits));
