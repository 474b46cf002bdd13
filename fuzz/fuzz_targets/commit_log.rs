//! A commit log with edits: what is replayed of it are records that were appended, in their order; all in front of the damage where that is
//! not an error.
//!
//! An edit is five bytes: what to do, where (two bytes), and what with (two bytes).

#![no_main]

use std::path::Path;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use runtime::{IoClass, Shard};
use siltstone_fuzz::with_files;
use storage::Result;
use storage::commit_log::{CommitLog, CommitLogOptions, EarlierLog, OnCorruption, SyncMode, TableId};

const FOLDER: &str = "/log";
const TABLE: TableId = TableId([7; 16]);

fuzz_target!(|input: (Vec<u8>, Vec<[u8; 5]>)| {
    let (lengths, edits) = input;
    // Each record differs from the others.
    let records: Vec<Vec<u8>> = lengths
        .iter()
        .take(64)
        .enumerate()
        .map(|(number, len)| [&[number as u8][..], &vec![*len; usize::from(*len)]].concat())
        .collect();
    with_files(Vec::new(), async |shard| {
        write(&shard, &records).await.expect("a simulated disk takes them");
        let path = Path::new(FOLDER);
        let earlier = EarlierLog::find(shard.disk(), path).expect("the folder is there");
        let segment = earlier.paths().next().expect("there is a segment").to_path_buf();
        let file = shard.disk().open(&segment, IoClass::new(0)).await.expect("it can be opened");
        let mut bytes = file.read_exact_at(0, file.len() as usize).await.expect("it can be read").to_vec();
        drop(file);
        edits.iter().for_each(|edit| apply(&mut bytes, *edit));
        shard.disk().as_simulated().expect("the disk is simulated").add_file(&segment, bytes);
        if let Ok(found) = replay(&shard, &earlier, OnCorruption::Stop).await {
            assert!(records.starts_with(&found), "what is no error is all up to a torn end");
            if edits.is_empty() {
                assert_eq!(found, records);
            }
        }
        if let Ok(found) = replay(&shard, &earlier, OnCorruption::Salvage).await {
            let mut left = records.iter();
            assert!(found.iter().all(|record| left.any(|other| other == record)), "in their order");
        }
    });
});

async fn write(shard: &Shard, records: &[Vec<u8>]) -> Result<()> {
    let sync = SyncMode::Periodic { period: Duration::from_secs(1) };
    let options = CommitLogOptions { sync, ..CommitLogOptions::default() };
    let log = CommitLog::open(shard.disk(), shard.clock(), Path::new(FOLDER), options).await?;
    for (number, record) in records.iter().enumerate() {
        log.append(TABLE, record).await?;
        if number % 8 == 7 {
            log.sync().await?;
        }
    }
    log.close().await
}

async fn replay(shard: &Shard, log: &EarlierLog, on_corruption: OnCorruption) -> Result<Vec<Vec<u8>>> {
    let mut found = Vec::new();
    let mut reader = log.reader(shard.disk(), on_corruption);
    let replayed = reader
        .replay(async |_, table, record| {
            assert_eq!(table, TABLE);
            found.push(record.to_vec());
            Ok(())
        })
        .await?;
    assert_eq!(replayed.records, found.len() as u64);
    Ok(found)
}

fn apply(bytes: &mut Vec<u8>, [what, high, low, first, second]: [u8; 5]) {
    if bytes.is_empty() {
        return;
    }
    let at = usize::from(u16::from_be_bytes([high, low])) % bytes.len();
    let len = usize::from(first).min(bytes.len() - at);
    match what % 5 {
        0 => bytes[at] ^= first,
        1 => bytes.truncate(at),
        2 => bytes[at..at + len].fill(second),
        3 => drop(bytes.drain(at..at + len)),
        _ => {
            let piece = bytes[at..at + len].to_vec();
            let to = usize::from(second) * bytes.len() / 256;
            bytes.splice(to..to, piece);
        }
    }
}
