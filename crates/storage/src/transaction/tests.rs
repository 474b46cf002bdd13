//! Every operation of a transaction is tried as the one at which the power is cut: afterwards there are all old
//! SSTables or all new ones, and nothing else.

use std::time::Duration;

use model::{
    Bytes, CqlType, DeletionTime, Fragment, FragmentReader, Liveness, PartitionKey, PartitionStart, Row,
    Schema,
};
use runtime::{Cache, Shard, SimDisk, SimOptions, run_simulated};
use sstable::parts::statistics::EncodingStats;
use sstable::{OpenOptions, SSTable, SSTableWriter, WriteOptions};

use super::*;

const DIR: &str = "/d/ks/t-1";

fn descriptor(generation: u32) -> Descriptor {
    Descriptor { dir: DIR.into(), version: Version::Nb, generation: generation.to_string() }
}

/// A partition whose rows are of this timestamp.
fn fragments(timestamp: i64) -> Vec<Fragment> {
    let key = PartitionKey::new(Bytes::from(vec![0, 0, 0, 1]));
    let start = Fragment::PartitionStart(PartitionStart { key, deletion: DeletionTime::LIVE });
    let row = |number: i32| {
        let row = Row::new([number.to_be_bytes().to_vec()].into_iter().collect());
        Fragment::Row(Row { liveness: Liveness { timestamp, ..Liveness::NONE }, ..row })
    };
    [start].into_iter().chain((0..3).map(row)).chain([Fragment::PartitionEnd]).collect()
}

async fn write(disk: &Disk, generation: u32) -> Result<()> {
    let schema = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), Vec::new()).into();
    let options = WriteOptions::new(Version::Nb);
    let of = descriptor(generation);
    let mut writer = SSTableWriter::create(disk, of, &schema, EncodingStats::NONE, options).await?;
    for fragment in fragments(generation.into()) {
        if let Err(error) = writer.push(&fragment).await {
            drop(writer.abandon().await);
            return Err(error.into());
        }
    }
    Ok(writer.seal().await.map(drop)?)
}

async fn read(disk: &Disk, generation: u32) -> Result<Vec<Fragment>> {
    let path = descriptor(generation).path_of(&sstable::component::Component::Data);
    let table = SSTable::open(disk, &path, &OpenOptions::new(Cache::new(0))).await?;
    let (mut reader, mut fragments) = (table.scan(), Vec::new());
    while let Some(fragment) = reader.next().await? {
        fragments.push(fragment);
    }
    Ok(fragments)
}

fn simulated(shard: &Shard) -> &SimDisk {
    shard.disk().as_simulated().unwrap()
}

fn names(disk: &Disk) -> Vec<PathBuf> {
    disk.list(Path::new(DIR)).unwrap()
}

/// SSTables 1, 2 and 10, whose files were written at any time.
async fn with_old(shard: &Shard, seed: u64) {
    let (disk, clock) = (shard.disk(), shard.clock().as_simulated().unwrap());
    disk.create_dir_all(Path::new(DIR)).await.unwrap();
    for dir in ["/", "/d", "/d/ks"] {
        disk.sync_dir(Path::new(dir)).await.unwrap();
    }
    for generation in [1, 2, 10] {
        write(disk, generation).await.unwrap();
    }
    let start = clock.now();
    for (number, path) in names(disk).into_iter().enumerate() {
        let file = disk.open(&path, TRANSACTION_IO).await.unwrap();
        let content = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
        // A few seconds back and forth, most of them not whole.
        let millis = (number as u64 + 1) * (seed + 1) * 7919 % 5000;
        clock.set(start + Duration::from_millis(millis));
        simulated(shard).add_file(path, content);
    }
    clock.set(start + Duration::from_secs(60));
}

/// 1 and 2 become 3 and 4.
async fn compact(shard: &Shard) -> Result<Transaction> {
    let (disk, clock) = (shard.disk(), shard.clock());
    let mut transaction =
        Transaction::begin(disk, clock, Path::new(DIR), Version::Nb, TransactionKind::Compaction).await?;
    for generation in [3, 4] {
        transaction.add(&descriptor(generation)).await?;
        clock.as_simulated().unwrap().advance(Duration::from_millis(300));
        write(disk, generation).await?;
    }
    transaction.remove(&[1, 2].map(descriptor)).await?;
    Ok(transaction)
}

async fn flush(shard: &Shard) -> Result<Transaction> {
    let (disk, clock) = (shard.disk(), shard.clock());
    let mut transaction =
        Transaction::begin(disk, clock, Path::new(DIR), Version::Nb, TransactionKind::Flush).await?;
    transaction.add(&descriptor(3)).await?;
    write(disk, 3).await?;
    Ok(transaction)
}

async fn commit(transaction: Result<Transaction>) -> Result<()> {
    transaction?.commit().await?.remove_old().await.map(drop)
}

/// The SSTables of the folder, all of them whole; panics if there is anything else.
async fn whole(disk: &Disk) -> Vec<u32> {
    let mut generations = Vec::new();
    for path in names(disk) {
        let of = Descriptor::parse(&path).unwrap();
        let generation: u32 = of.generation.parse().unwrap();
        assert_eq!(of, descriptor(generation));
        if !generations.contains(&generation) {
            assert_eq!(read(disk, generation).await.unwrap(), fragments(generation.into()));
            generations.push(generation);
        }
    }
    generations.sort_unstable();
    generations
}

/// Cuts the power in a transaction, then in each attempt to clean up, each time a few operations later.
fn cut(seed: u64, operation: u64, run: impl AsyncFnOnce(&Shard) -> Result<()>, ends: &[&[u32]]) -> bool {
    run_simulated(SimOptions { seed, ..SimOptions::default() }, async |shard| {
        let (disk, simulated) = (shard.disk(), simulated(&shard));
        with_old(&shard, seed).await;
        let crash_in = |operations: u64| {
            let crash_at = Some(simulated.counters().operations + operations);
            simulated.set_options(SimOptions { seed: seed + operations, crash_at, ..SimOptions::default() });
        };
        crash_in(operation);
        let result = run(&shard).await;
        let has_crashed = simulated.has_crashed();
        assert_eq!(result.is_err(), has_crashed, "{result:?}");
        for later in (0..).step_by(1 + operation as usize % 4) {
            simulated.restart();
            crash_in(later);
            if let Err(error) = clean_up(disk, Path::new(DIR)).await {
                assert!(simulated.has_crashed(), "seed {seed}, operation {operation}, {later}: {error}");
                continue;
            }
            break;
        }
        simulated.set_options(SimOptions::default());
        let found = whole(disk).await;
        assert!(ends.contains(&&found[..]), "seed {seed}, operation {operation}: {found:?}");
        assert!(has_crashed || found == ends[0], "{found:?}");
        has_crashed
    })
    .unwrap()
}

const OLD: &[u32] = &[1, 2, 10];

#[test]
fn a_power_cut_leaves_all_old_or_all_new() {
    for seed in 0..12 {
        let run = async |shard: &Shard| commit(compact(shard).await).await;
        let cuts = (0..).take_while(|&operation| cut(seed, operation, run, &[&[3, 4, 10], OLD])).count();
        assert!(cuts > 90, "{cuts} operations");
    }
}

#[test]
fn a_power_cut_in_a_flush_leaves_it_or_nothing_of_it() {
    for seed in 0..8 {
        let run = async |shard: &Shard| commit(flush(shard).await).await;
        let cuts = (0..).take_while(|&operation| cut(seed, operation, run, &[&[1, 2, 3, 10], OLD])).count();
        assert!(cuts > 40, "{cuts} operations");
    }
}

#[test]
fn a_power_cut_in_what_is_aborted_leaves_nothing_of_it() {
    for seed in 0..8 {
        let run = async |shard: &Shard| compact(shard).await?.abort().await;
        let cuts = (0..).take_while(|&operation| cut(seed, operation, run, &[OLD])).count();
        assert!(cuts > 90, "{cuts} operations");
    }
}

#[test]
fn the_log_says_what_is_done_and_goes_last() {
    run_simulated(SimOptions::default(), async |shard| {
        with_old(&shard, 3).await;
        let disk = shard.disk();
        let transaction = compact(&shard).await.unwrap();
        let log = transaction.log_path().to_path_buf();
        let name = log.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with("nb_txn_compaction_") && name.ends_with(".log"), "{name}");
        assert_eq!(name.len(), "nb_txn_compaction_.log".len() + 36);
        let committed = transaction.commit().await.unwrap();
        let file = disk.open(&log, TRANSACTION_IO).await.unwrap();
        let text = file.read_exact_at(0, file.len() as usize).await.unwrap().to_vec();
        let text = String::from_utf8(text).unwrap();
        let words: Vec<&str> = text.lines().map(|line| line.split_once(',').unwrap().0).collect();
        let of = |word: &str, generation: u32| format!("{word}:[{DIR}/nb-{generation}-big-");
        let expected = [of("ADD", 3), of("ADD", 4), of("REMOVE", 1), of("REMOVE", 2), "COMMIT:[".into()];
        assert_eq!(words, expected);
        let files = names(disk).len();
        let removed = committed.remove_old().await.unwrap();
        assert_eq!(names(disk).len(), files - removed.len() - 1);
        assert_eq!(whole(disk).await, [3, 4, 10]);
        assert_eq!(clean_up(disk, Path::new(DIR)).await.unwrap(), []);
    })
    .unwrap();
}

#[test]
fn what_is_dropped_is_told_and_undone() {
    run_simulated(SimOptions::default(), async |shard| {
        with_old(&shard, 3).await;
        let disk = shard.disk();
        let log = compact(&shard).await.unwrap().log_path().to_path_buf();
        assert_eq!(whole_but_logs(disk).await, [1, 2, 3, 4, 10]);
        let done = clean_up(disk, Path::new(DIR)).await.unwrap();
        let [CleanedUp { log: of, committed: false, removed }] = &done[..] else { panic!("{done:?}") };
        assert_eq!(*of, log);
        assert!(
            removed.iter().all(|path| [3, 4].map(descriptor).contains(&Descriptor::parse(path).unwrap()))
        );
        assert_eq!(whole(disk).await, OLD);
        let committed = compact(&shard).await.unwrap().commit().await.unwrap();
        drop(committed);
        let done = clean_up(disk, Path::new(DIR)).await.unwrap();
        assert!(done[0].committed);
        assert_eq!(whole(disk).await, [3, 4, 10]);
    })
    .unwrap();
}

async fn whole_but_logs(disk: &Disk) -> Vec<u32> {
    let mut generations: Vec<u32> = Vec::new();
    for path in names(disk) {
        generations.extend(Descriptor::parse(&path).ok().map(|of| of.generation.parse::<u32>().unwrap()));
    }
    generations.sort_unstable();
    generations.dedup();
    generations
}

#[test]
fn what_makes_no_sense_is_refused() {
    run_simulated(SimOptions::default(), async |shard| {
        with_old(&shard, 3).await;
        let (disk, clock) = (shard.disk(), shard.clock());
        let begin = async |dir: &str| {
            disk.create_dir_all(Path::new(dir)).await.unwrap();
            Transaction::begin(disk, clock, Path::new(dir), Version::Oa, TransactionKind::Flush).await
        };
        let error = begin("/d/a,b").await.unwrap_err().to_string();
        assert!(error.starts_with("/d/a,b: its path must be UTF-8 without commas"), "{error}");
        let mut transaction = begin(DIR).await.unwrap();
        let elsewhere = Descriptor { dir: "/d/ks".into(), ..descriptor(1) };
        let error = transaction.add(&elsewhere).await.unwrap_err().to_string();
        assert_eq!(error, format!("a transaction in {DIR} is not about nb-1-big in /d/ks"));
        let error = transaction.remove([&descriptor(7)]).await.unwrap_err().to_string();
        assert_eq!(error, format!("{DIR}/nb-7-big-: there is no such SSTable"));
        transaction.add(&descriptor(7)).await.unwrap();
        let error = transaction.add(&descriptor(7)).await.unwrap_err().to_string();
        assert!(error.ends_with("is in the transaction already"), "{error}");
        transaction.abort().await.unwrap();
        assert_eq!(whole(disk).await, OLD);
    })
    .unwrap();
}

#[test]
fn an_operation_that_fails_leaves_what_the_error_says() {
    let mut outcomes = [0; 4];
    for seed in 0..300 {
        let outcome = run_simulated(SimOptions::default(), async |shard| {
            with_old(&shard, seed).await;
            let disk = shard.disk();
            let transaction = compact(&shard).await.unwrap();
            let write_error_chance = if seed % 2 == 0 { 0.1 } else { 0.5 };
            simulated(&shard).set_options(SimOptions { seed, write_error_chance, ..SimOptions::default() });
            let result = match transaction.commit().await {
                Ok(committed) => Ok(committed.remove_old().await),
                Err(error) => Err(error),
            };
            simulated(&shard).set_options(SimOptions::default());
            clean_up(disk, Path::new(DIR)).await.unwrap();
            let found = whole(disk).await;
            match result {
                Ok(removed) => {
                    assert_eq!(found, [3, 4, 10]);
                    usize::from(removed.is_err())
                }
                Err(Error::InDoubt { .. }) => 2,
                Err(error) => {
                    assert_eq!(found, OLD, "{error}");
                    3
                }
            }
        });
        outcomes[outcome.unwrap()] += 1;
    }
    assert!(outcomes.iter().all(|&count| count > 10), "{outcomes:?}");
}
