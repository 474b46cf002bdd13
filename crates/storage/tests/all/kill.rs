//! A process that writes is killed at any moment: every write that it was told is done is there afterwards.
//!
//! The process is this test itself, started anew with a folder to write to. It tells the numbers of the rows that are
//! written. `SILTSTONE_KILLS=100` kills it so often.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell as RowCell, CellValue, Clustering, Column, CqlType, Fragment, FragmentReader, Liveness,
    Mutation, PartitionKey, Row, Schema, Token, flat,
};
use runtime::{Shard, ShardOptions, join_all, run};
use siltstone_storage::commit_log::{EarlierLog, OnCorruption, SyncMode, TableId};
use siltstone_storage::{Definition, Generations, Result, Store, StoreOptions, Table, table};
use sstable::Version;
use sstable::component::{Component, Descriptor};
use testkit::generate::random::Random;

/// Where the process that is killed writes to.
const FOLDER: &str = "SILTSTONE_KILL_FOLDER";

/// The number of its first row.
const FIRST: &str = "SILTSTONE_KILL_FIRST";

/// How often it is killed unless something else is asked for.
const KILLS: u64 = 5;

/// How many rows are written at once.
const WRITERS: usize = 8;

const TABLE: TableId = TableId([1; 16]);

#[test]
fn what_a_killed_process_has_written_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let kills = std::env::var("SILTSTONE_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let (mut random, mut told, mut next) = (Random::new(7), BTreeSet::new(), 0);
    for round in 0..kills {
        let alive = Duration::from_millis(random.between(20, 400) as u64);
        told.extend(rows_told(start(folder.path(), next), alive));
        let found = found_in(folder.path());
        let lost: Vec<&u64> = told.difference(&found).collect();
        assert!(lost.is_empty(), "lost by kill {round} after {alive:?}: {lost:?}");
        next = found.last().map_or(0, |last| last + 1);
    }
    assert!(!told.is_empty(), "something was written");
}

/// What the other process runs; nothing where there is no folder.
#[test]
fn writes_until_it_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    run(ShardOptions::default(), async |shard| {
        let (store, _) = open(&shard, Path::new(&folder)).await.unwrap();
        store.begin_compactions();
        let next = Rc::new(Cell::new(first));
        let writers = (0..WRITERS).map(|_| write_for_ever(store.clone(), next.clone()));
        join_all(writers).await;
    })
    .unwrap();
}

async fn write_for_ever(store: Store, next: Rc<Cell<u64>>) {
    loop {
        let number = next.replace(next.get() + 1);
        store.write(TABLE, record(number)).await.unwrap();
        let told = format!("told {number}\n");
        std::io::stdout().write_all(told.as_bytes()).unwrap();
    }
}

fn start(folder: &Path, first: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::writes_until_it_is_killed", "--nocapture"]);
    command.env(FOLDER, folder).env(FIRST, first.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills a process some time after it has begun to write; the rows that it told until then.
fn rows_told(mut process: Child, alive: Duration) -> Vec<u64> {
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let number = |line: String| line.strip_prefix("told ").and_then(|number| number.parse().ok());
    let first = lines.by_ref().map(|line| line.unwrap()).find_map(number);
    assert!(first.is_some(), "the process that writes ended by itself");
    let killer = thread::spawn(move || {
        thread::sleep(alive);
        process.kill().unwrap();
        process.wait().unwrap();
    });
    // A line that is cut off was not told.
    let rest: Vec<u64> = lines.map_while(std::result::Result::ok).filter_map(number).collect();
    killer.join().unwrap();
    first.into_iter().chain(rest).collect()
}

/// The rows that are there when the folder is opened, with no file that nobody needs.
fn found_in(folder: &Path) -> BTreeSet<u64> {
    run(ShardOptions::default(), async |shard| {
        let (store, table) = open(&shard, folder).await.unwrap();
        let found = rows(&table).await;
        check_files(&shard, folder, &table);
        store.close().await.unwrap();
        found
    })
    .unwrap()
}

async fn open(shard: &Shard, folder: &Path) -> Result<(Store, Table)> {
    let (disk, tables, log) = (shard.disk(), folder.join("t"), folder.join("log"));
    disk.create_dir_all(&tables).await?;
    table::clean_folder(disk, &tables).await?;
    let mut options = StoreOptions { memtables: 50_000, ..StoreOptions::default() };
    options.log.sync = SyncMode::Batch;
    options.log.segment_size = 10_000;
    options.log.total_size = 100_000;
    let earlier = EarlierLog::find(disk, &log)?;
    let store = Store::open(shard, &log, options).await?;
    let definition = Definition::new(TABLE, &schema(), Version::Nb);
    let table = store.add_table(&tables, definition, &Generations::default()).await?;
    store.recover(std::slice::from_ref(&earlier), |_| true, OnCorruption::Stop).await?;
    earlier.remove(disk).await?;
    Ok((store, table))
}

async fn rows(table: &Table) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    let mut stream = table.scan(None, Token::MAX, None).await.unwrap();
    while let Some(fragment) = stream.next().await.unwrap() {
        if let Fragment::Row(row) = fragment {
            let number =
                u64::from_be_bytes(row.clustering.values[0].as_ref().unwrap()[..].try_into().unwrap());
            assert_eq!(row.cells[0].value, CellValue::Value(value(number)), "row {number}");
            found.insert(number);
        }
    }
    found
}

fn check_files(shard: &Shard, folder: &Path, table: &Table) {
    let mut needed: BTreeSet<PathBuf> = BTreeSet::new();
    for member in table.sstables().members() {
        let descriptor: &Descriptor = member.sstable.descriptor();
        let components = descriptor.list(shard.disk()).unwrap();
        assert!(components.contains(&Component::Toc));
        needed.extend(components.iter().map(|component| descriptor.path_of(component)));
    }
    let there = shard.disk().list(&folder.join("t")).unwrap();
    assert_eq!(there.into_iter().collect::<BTreeSet<_>>(), needed);
    assert_eq!(shard.disk().list(&folder.join("log")).unwrap().len(), 1, "one segment of the log");
}

fn schema() -> Rc<Schema> {
    let value = Column { name: b"v".as_slice().into(), data_type: CqlType::Blob };
    Rc::new(Schema::new(CqlType::BigInt, vec![CqlType::BigInt], Vec::new(), vec![value]))
}

/// Of any length, so that records and rows end anywhere.
fn value(number: u64) -> Bytes {
    Bytes::from(vec![number as u8; (number * 37 % 500) as usize])
}

/// The write of a row.
fn record(number: u64) -> Vec<u8> {
    let cell = RowCell {
        column: 0,
        ttl: 0,
        timestamp: 1,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value: CellValue::Value(value(number)),
    };
    let clustering = std::iter::once(&number.to_be_bytes()[..]).collect::<Clustering>();
    let liveness = Liveness { timestamp: 1, ..Liveness::NONE };
    let row = Row { liveness, cells: vec![cell], ..Row::new(clustering) };
    let key = PartitionKey::new(Bytes::from(&(number % 16).to_be_bytes()[..]));
    let mutation = Mutation { rows: vec![row], ..Mutation::new(key) };
    let mut record = Vec::new();
    flat::put_mutation(&mutation, &mut record);
    record
}
