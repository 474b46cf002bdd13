//! Filter.db of any version, asked for a few keys.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sstable::parts::filter::Filter;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (version, bytes) = input;
    if let Ok(filter) = Filter::parse(Path::new("Filter.db"), bytes, siltstone_fuzz::version(version)) {
        for key in 0u32..8 {
            filter.may_contain(model::key::murmur3(&key.to_be_bytes()));
        }
        filter.may_contain([u64::MAX, 1 << 63]);
        filter.false_positive_rate();
    }
});
