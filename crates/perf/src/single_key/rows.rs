//! The rows of single-key: each stands in three SSTables, whose timestamps decide how many have to be read.
//!
//! ```text
//! SSTable      rows at     another partition at    read newest first, it ends after
//! needs 1      1 2 3       –  –  –                 the third: the others are older
//! needs 2      1 2 3       –  11 12                the second: what the first has is older
//! needs 3      1 2 3       10 11 12                all: each may have something newer
//! ```

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use model::{Bytes, Fragment, FragmentReader, Row, Slice};
use runtime::{Cache, Shard, join_all};
use siltstone::{Error, Result};
use sstable::Version;
use storage::commit_log::{LogPosition, TableId};
use storage::{Context, Definition, Generations, ReadRequest, Table};

use crate::defaults::write_options;
use crate::int_rows::{self, apply, clustering, key, schema};
use crate::interrupted;

/// Rows of each partition.
pub const ROWS_OF_PARTITION: u32 = 100;

/// How many SSTables have each row.
pub const SSTABLES: u32 = 3;

/// Microseconds: the timestamp before that of the first SSTable.
const TIMESTAMP: i64 = 1_700_000_000_000_000;

/// By how much the other partition of an SSTable is newer than its rows.
const NEWER: i64 = 10;

/// Bytes of a value.
const VALUE: usize = 100;

/// The key of the partition that makes an SSTable newer than its rows.
const OTHER: u32 = u32::MAX;

/// Opens the table in a folder, with nothing kept in memory.
///
/// # Errors
/// What cannot be read.
pub async fn open(shard: &Shard, folder: &Path, format: Version, threshold: f64) -> Result<Table> {
    let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(0));
    let definition = Definition {
        single_key_parallel_scan_threshold: threshold,
        write: write_options(format),
        ..Definition::new(TableId([3; 16]), &schema(), format)
    };
    Ok(Table::open(&context, folder, definition, &Generations::default()).await?)
}

/// Writes so many rows into each of three SSTables, of which a read needs `needed` if it goes newest first.
///
/// # Errors
/// What cannot be written.
pub async fn write(shard: &Shard, folder: &Path, format: Version, rows: u32, needed: u32) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, error.to_string()))?;
    let table = open(shard, folder, format, 0.0).await?;
    for generation in 1..=SSTABLES {
        let timestamp = TIMESTAMP + i64::from(generation);
        for partition in 0..rows.div_ceil(ROWS_OF_PARTITION) {
            interrupted::check()?;
            let rows = of_partition(rows, partition).map(|number| row(number, timestamp)).collect();
            apply(&table, partition, rows);
        }
        if needed > 1 && generation > SSTABLES - needed {
            apply(&table, OTHER, vec![row(0, timestamp + NEWER)]);
        }
        table.flush(LogPosition::default, async |_, _| Ok(())).await?;
    }
    Ok(())
}

/// The rows that a partition has, of so many in all.
pub fn of_partition(rows: u32, partition: u32) -> Range<u32> {
    let first = partition * ROWS_OF_PARTITION;
    first..rows.min(first + ROWS_OF_PARTITION)
}

/// Reads a row by its full key, and compares it with what the last SSTable has of it.
///
/// # Errors
/// What cannot be read; another row.
pub async fn read_and_check(table: &Table, number: u32) -> Result<()> {
    let stream = table.read(&request(number)).await?;
    check(stream, number).await
}

/// Reads several rows at once, and compares them.
///
/// # Errors
/// What cannot be read; another row.
pub async fn read_and_check_all(table: &Table, numbers: &BTreeSet<u32>) -> Result<()> {
    let requests = numbers.iter().map(|&number| Cow::Owned(request(number))).collect();
    let begun = table.begin_all(requests).await?;
    let read = begun.into_iter().zip(numbers).map(async |(begun, &number)| {
        let stream = begun.open().await?;
        check(stream, number).await
    });
    join_all(read).await.into_iter().collect()
}

fn request(number: u32) -> ReadRequest {
    let request = ReadRequest::new(key(number / ROWS_OF_PARTITION), Slice::of_prefix(clustering(number)));
    ReadRequest { static_row: false, ..request }
}

/// Whether a read found what the last SSTable has of a row.
async fn check(mut stream: impl FragmentReader<Error = storage::Error>, number: u32) -> Result<()> {
    let expected = row(number, TIMESTAMP + i64::from(SSTABLES));
    let mut found = None;
    while let Some(fragment) = stream.next().await? {
        if let Fragment::Row(row) = fragment {
            found = Some(row);
        }
    }
    match found.is_some_and(|found| found == expected) {
        true => Ok(()),
        false => Err(Error::Closed(format!("row {number} is not what was written last"))),
    }
}

fn row(number: u32, timestamp: i64) -> Row {
    let value: Vec<u8> =
        (0..VALUE).map(|at| (number as usize * (at + 7) / 3 + timestamp as usize) as u8).collect();
    int_rows::row(clustering(number), timestamp, Bytes::from(value))
}

#[cfg(test)]
mod tests {
    use runtime::ShardOptions;

    use super::*;

    #[test]
    fn three_sstables_have_each_row() {
        let folder = tempfile::tempdir().unwrap();
        runtime::run(ShardOptions::default(), async |shard| {
            for needed in 1..=SSTABLES {
                let folder = folder.path().join(needed.to_string());
                write(&shard, &folder, Version::Me, 250, needed).await.unwrap();
                let table = open(&shard, &folder, Version::Me, 1.0).await.unwrap();
                let set = table.sstables();
                let newest: Vec<i64> =
                    set.members().iter().map(|member| member.max_timestamp - TIMESTAMP).collect();
                let expected = [[3, 2, 1], [13, 12, 1], [13, 12, 11]][needed as usize - 1];
                assert_eq!(newest, expected, "{needed}");
                for number in [0, 99, 100, 249] {
                    read_and_check(&table, number).await.unwrap();
                }
                let absent = read_and_check(&table, 250).await.unwrap_err().to_string();
                assert_eq!(absent, "row 250 is not what was written last");
                // No SSTable has rows around the last one.
                assert_eq!(table.single_key_stats().eligible, 4, "{needed}");
                read_and_check_all(&table, &[7, 99, 13].into()).await.unwrap();
                assert!(read_and_check_all(&table, &[249, 250].into()).await.is_err());
                assert_eq!(table.single_key_stats().eligible, 4 + 2, "{needed}");
            }
        })
        .unwrap();
    }
}
