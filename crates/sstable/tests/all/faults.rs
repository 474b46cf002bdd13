//! Writing on a disk that fails: whatever happens, there is the old state or the whole new SSTable.
//!
//! Every operation of a writer is tried as the one at which the power is cut, every size of disk as the one that is
//! full. The SSTable that is there already is never touched.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader, Liveness,
    PartitionKey, PartitionStart, Row, Schema,
};
use runtime::{Cache, Disk, SimOptions, run_simulated};
use siltstone_sstable::component::Descriptor;
use siltstone_sstable::parts::statistics::EncodingStats;
use siltstone_sstable::writer::{remove_leftovers, unsealed};
use siltstone_sstable::{Error, OpenOptions, Result, SSTable, SSTableWriter, Version, WriteOptions};

const DIR: &str = "/t";
const OLD: &str = "/t/me-1-big-Data.db";
const NEW: &str = "/t/nb-2-big-Data.db";

fn schema() -> Rc<Schema> {
    let column = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![column]))
}

fn row(number: i32) -> Fragment {
    let mut row = Row::new([number.to_be_bytes().to_vec()].into_iter().collect::<Clustering>());
    row.liveness = Liveness { timestamp: 7, ..Liveness::NONE };
    let value = CellValue::Value(Bytes::from(vec![number as u8; 20]));
    let (ttl, timestamp, local_deletion_time) = (0, 7, NO_DELETION_TIME);
    row.cells = vec![Cell { column: 0, ttl, timestamp, local_deletion_time, path: None, value }];
    Fragment::Row(row)
}

/// Partitions of so many rows each.
fn fragments(rows: &[i32]) -> Vec<Fragment> {
    let mut keys: Vec<(PartitionKey, i32)> = (0_i32..)
        .zip(rows)
        .map(|(key, &rows)| (PartitionKey::new(Bytes::from(key.to_be_bytes().to_vec())), rows))
        .collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    let partition = |(key, rows): (PartitionKey, i32)| {
        let start = Fragment::PartitionStart(PartitionStart { key, deletion: DeletionTime::LIVE });
        [start].into_iter().chain((0..rows).map(row)).chain([Fragment::PartitionEnd])
    };
    keys.into_iter().flat_map(partition).collect()
}

async fn write(disk: &Disk, path: &str, fragments: &[Fragment]) -> Result<()> {
    let options = WriteOptions { column_index_size: 1, ..WriteOptions::new(Version::Nb) };
    let descriptor = Descriptor::parse(Path::new(path))?;
    let mut writer = SSTableWriter::create(disk, descriptor, &schema(), EncodingStats::NONE, options).await?;
    for fragment in fragments {
        if let Err(error) = writer.push(fragment).await {
            drop(writer.abandon().await);
            return Err(error);
        }
    }
    writer.seal().await.map(drop)
}

async fn read(disk: &Disk, path: &str) -> Result<Vec<Fragment>> {
    let table = SSTable::open(disk, Path::new(path), &OpenOptions::new(Cache::new(0))).await?;
    let (mut reader, mut fragments) = (table.scan(), Vec::new());
    while let Some(fragment) = reader.next().await? {
        fragments.push(fragment);
    }
    Ok(fragments)
}

async fn with_old(disk: &Disk, old: &[Fragment]) {
    disk.create_dir_all(Path::new(DIR)).await.unwrap();
    disk.sync_dir(Path::new("/")).await.unwrap();
    write(disk, OLD, old).await.unwrap();
}

fn names(disk: &Disk) -> Vec<PathBuf> {
    disk.list(Path::new(DIR)).unwrap()
}

/// Cuts the power at an operation of writing `new`; whether there was such an operation.
fn cut(seed: u64, operation: u64, old: &[Fragment], new: &[Fragment]) -> bool {
    run_simulated(SimOptions { seed, ..SimOptions::default() }, async |shard| {
        let disk = shard.disk();
        let simulated = disk.as_simulated().unwrap();
        with_old(disk, old).await;
        let before = names(disk);
        let crash_at = Some(simulated.counters().operations + operation);
        simulated.set_options(SimOptions { seed, crash_at, ..SimOptions::default() });
        let written = write(disk, NEW, new).await;
        let has_crashed = simulated.has_crashed();
        assert_eq!(written.is_err(), has_crashed);
        simulated.set_options(SimOptions { seed, ..SimOptions::default() });
        simulated.restart();

        assert_eq!(read(disk, OLD).await.unwrap(), old, "the old SSTable is as it was");
        let names_after = names(disk);
        let is_unsealed = unsealed(&names_after).contains(&Descriptor::parse(Path::new(NEW)).unwrap());
        let is_whole = match read(disk, NEW).await {
            Ok(fragments) => {
                assert!(fragments == new, "a half SSTable is not taken for a whole one");
                true
            }
            Err(Error::Missing { .. }) => false,
            Err(error) => panic!("seed {seed}, operation {operation}: {error}"),
        };
        assert!(!(is_whole && is_unsealed));
        assert!(is_whole || has_crashed);

        remove_leftovers(disk, Path::new(DIR)).await.unwrap();
        let is_temporary = |path: &PathBuf| path.extension().is_some_and(|end| end == "tmp");
        assert!(!names(disk).iter().any(is_temporary), "{:?}", names(disk));
        if !is_whole {
            assert_eq!(names(disk), before, "nothing is left");
            write(disk, NEW, new).await.unwrap();
        }
        assert!(read(disk, NEW).await.unwrap() == new);
        has_crashed
    })
    .unwrap()
}

#[test]
fn a_power_cut_leaves_the_old_or_the_whole_new() {
    let (old, new) = (fragments(&[3]), fragments(&[2, 0, 40]));
    for seed in 0..8 {
        let cuts = (0..).take_while(|&operation| cut(seed, operation, &old, &new)).count();
        assert!(cuts > 30, "{cuts} operations");
    }
}

/// An index that has no room in memory, in a file for a while.
#[test]
fn a_power_cut_while_an_index_is_spilled_leaves_the_old() {
    let (old, new) = (fragments(&[3]), fragments(&[60_000, 1]));
    let cuts = (0..).step_by(3).take_while(|&operation| cut(operation, operation, &old, &new)).count();
    assert!(cuts > 12, "{cuts} operations");
}

#[test]
fn a_full_disk_is_an_error_that_leaves_nothing() {
    let (old, new) = (fragments(&[3]), fragments(&[2, 0, 400, 7]));
    let mut refusals = 0;
    for spare in (0..).step_by(97) {
        let fits = run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk();
            with_old(disk, &old).await;
            let before = names(disk);
            let lens: Vec<u64> = {
                let mut lens = Vec::new();
                for path in &before {
                    lens.push(disk.open(path, runtime::IoClass::default()).await.unwrap().len());
                }
                lens
            };
            let capacity = Some(lens.iter().sum::<u64>() + spare);
            disk.as_simulated().unwrap().set_options(SimOptions { capacity, ..SimOptions::default() });
            match write(disk, NEW, &new).await {
                Ok(()) => true,
                Err(Error::Io(error)) => {
                    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
                    assert!(error.to_string().starts_with("/t/nb-2-big-"), "{error}");
                    assert_eq!(names(disk), before);
                    assert_eq!(read(disk, OLD).await.unwrap(), old);
                    false
                }
                Err(error) => panic!("{error}"),
            }
        });
        if fits.unwrap() {
            break;
        }
        refusals += 1;
    }
    assert!(refusals > 20, "{refusals} sizes of disk were too small");
}

#[test]
fn an_operation_that_fails_is_an_error_that_leaves_nothing() {
    let (old, new) = (fragments(&[3]), fragments(&[2, 0, 400, 7]));
    let mut failures = 0;
    for seed in 0..60 {
        let failed = run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk();
            with_old(disk, &old).await;
            let before = names(disk);
            let simulated = disk.as_simulated().unwrap();
            simulated.set_options(SimOptions {
                seed,
                write_error_chance: 0.03,
                short_write_chance: 0.3,
                ..SimOptions::default()
            });
            let written = write(disk, NEW, &new).await;
            simulated.set_options(SimOptions::default());
            if written.is_err() {
                // What could not be removed, because that failed too, is a leftover.
                remove_leftovers(disk, Path::new(DIR)).await.unwrap();
                let is_whole = read(disk, NEW).await.is_ok_and(|fragments| fragments == new);
                assert!(is_whole || names(disk) == before, "{:?}", names(disk));
            } else {
                assert!(read(disk, NEW).await.unwrap() == new);
            }
            assert_eq!(read(disk, OLD).await.unwrap(), old);
            written.is_err()
        });
        failures += usize::from(failed.unwrap());
    }
    assert!((20..60).contains(&failures), "{failures} of 60 failed");
}
