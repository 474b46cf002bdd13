//! Summary.db, in both orders of keys, searched.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use model::key::token_of;
use sstable::Version;
use sstable::parts::statistics::Partitioner;
use sstable::parts::summary::Summary;

fuzz_target!(|bytes: &[u8]| {
    for partitioner in [Partitioner::Murmur3, Partitioner::Local] {
        let Ok(summary) = Summary::parse(Path::new("Summary.db"), bytes, Version::Me, partitioner) else {
            continue;
        };
        let _ = summary.check_index_len(Path::new("Summary.db"), 1000);
        for number in 0..summary.len() {
            let (key, _) = summary.entry(number);
            let floor = summary.floor(token_of(key), key);
            assert!(partitioner == Partitioner::Local || floor == Some(number));
            summary.stretch(number);
        }
        summary.floor_by(|key| key.cmp(b"k"));
    }
});
