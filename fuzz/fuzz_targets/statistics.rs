//! Statistics.db of any version. Its checksums are made right first, or nothing would come past them.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use sstable::parts::statistics::Statistics;

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (number, mut bytes) = input;
    let version = siltstone_fuzz::version(number);
    if version.has_metadata_checksum() {
        seal(&mut bytes);
    }
    let Ok(statistics) = Statistics::parse(Path::new("Statistics.db"), &bytes, version) else { return };
    statistics.compaction.estimated_partitions();
    let stats = &statistics.stats;
    for histogram in [&stats.partition_sizes, &stats.cell_counts] {
        (histogram.mean(), histogram.percentile(0.99), histogram.min(), histogram.max());
    }
    for time in [i64::MIN, 0, 1_500_000_000, i64::MAX] {
        stats.tombstone_drop_times.sum_until(time);
    }
});

/// Makes the checksums right, as far as the table of parts can be followed.
fn seal(bytes: &mut [u8]) {
    let Some(count) = u32_at(bytes, 0).filter(|&count| count <= 8) else { return };
    let table = 8 + 8 * count as usize;
    if bytes.len() < table + 4 {
        return;
    }
    let mut places: Vec<usize> =
        (0..count as usize).filter_map(|part| u32_at(bytes, 12 + 8 * part)).map(|at| at as usize).collect();
    places.sort_unstable();
    put(bytes, 4, crc32fast::hash(&bytes[..4]));
    let head = [&bytes[..4], &bytes[8..table]].concat();
    put(bytes, table, crc32fast::hash(&head));
    places.push(bytes.len());
    for part in places.windows(2) {
        if part[0] >= table + 4 && part[0] + 4 <= part[1] && part[1] <= bytes.len() {
            put(bytes, part[1] - 4, crc32fast::hash(&bytes[part[0]..part[1] - 4]));
        }
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
}
