//! What is dumped as JSON lines is written again as it was: the dump of the new SSTable is equal, and what one flush of
//! Cassandra wrote is the same data, byte for byte.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::{Cache, Disk, Shard, SimOptions, run_simulated};
use siltstone::convert::Target;
use siltstone::table_options::write_options;
use siltstone::table_schema::TableSchema;
use siltstone::write::{Input, Job, write};
use sstable::component::Component;
use sstable::data::chunk::Care;
use sstable::{OpenOptions, SSTable, WriteOptions};
use testkit::fixtures::{self, Fixture};

use crate::json_rows::lines;
use crate::schemas::described;

/// Fixtures that are not written again, each for a reason.
const LEFT_OUT: [(&str, &str); 2] = [
    ("random_partitioner", "it is refused"),
    ("idx_v", "the partitions of an index are in the order of its key, not of tokens"),
];

/// Tables whose schema does not know all columns of their SSTables, because one was dropped since.
const DROPPED: &str = "/dropped/";

/// SSTables whose header has a column of which no row tells anything: a statement has named it, with a null.
const UNTOLD: [&str; 2] = ["/dropped/??-3", "/nock/??-2"];

/// Cassandra flushes in LZ4 what is to be compressed harder later.
const FLUSHED_FAST: &str = "/comp_zstd/";

/// Of the larger collection beside the project, one in so many is enough, and none with more data.
const ONE_OF: usize = 4;
const MOST_DATA: u64 = 2 << 20;

/// The size of index blocks that all nodes were told to use, in bytes.
const COLUMN_INDEX_SIZE: u32 = 4 << 10;

/// Copies the files of a fixture to the disk of the shard, which is simulated: that makes nothing durable, and is fast.
fn put_on_disk(shard: &Shard, fixture: &Fixture) {
    let disk = shard.disk().as_simulated().unwrap();
    let files = std::fs::read_dir(fixture.data.parent().unwrap()).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|file| file.is_file() && !shard.disk().exists(file)) {
        disk.add_file(&file, std::fs::read(&file).unwrap());
    }
}

async fn open(shard: &Shard, data: &Path) -> Rc<SSTable> {
    SSTable::open(shard.disk(), data, &OpenOptions::new(Cache::new(1 << 20))).await.unwrap()
}

/// The lines without the member that tells where each stands.
fn without_positions(lines: &str) -> Vec<String> {
    let strip = |line: &str| {
        let Some(at) = line.find(",\"position\":") else { return line.to_owned() };
        let digits = at + ",\"position\":".len();
        let end = line[digits..].find(|c: char| !c.is_ascii_digit()).unwrap_or(0) + digits;
        format!("{}{}", &line[..at], &line[end..])
    };
    lines.lines().map(strip).collect()
}

async fn uncompressed(table: &SSTable) -> Vec<u8> {
    let file = &table.data().file;
    let stretch = file.read(&file.nothing_at(0), 0..file.len(), Care::Usual).await.unwrap();
    stretch.owner[stretch.bytes].to_vec()
}

/// How the fixture is written again: as its schema tells, or as it was written where there is none.
async fn job(disk: &Disk, fixture: &Fixture, table: &SSTable) -> Job {
    let version = table.version();
    let target = Target { column_index_size: COLUMN_INDEX_SIZE, ..Target::new(version) };
    let described = described(fixture).filter(|_| !fixture.name.contains(DROPPED));
    if let Some((path, name)) = described {
        let text = std::fs::read_to_string(&path).unwrap();
        let schema = TableSchema::parse(&path, &text, Some(&name)).unwrap();
        let options = write_options(&path, &schema, &target).unwrap();
        return Job::new(Rc::new(schema.schema), version, options);
    }
    let options = WriteOptions {
        compression: table.data().file.compression().map(|info| info.compression().clone()),
        column_index_size: COLUMN_INDEX_SIZE,
        bloom_filter_fp_chance: table.statistics().validation.filter_fp_chance,
        min_index_interval: table.summary().await.unwrap().min_index_interval(),
        family: siltstone::convert::family_of(disk, table),
        ..WriteOptions::new(version)
    };
    Job::new(table.schema().clone(), version, options)
}

/// Whether nothing but its rows decides on the bytes of an SSTable.
fn is_told(fixture: &Fixture) -> bool {
    let is_flushed = fixture.name.starts_with("cassandra/") && !fixture.name.contains("compacted");
    let (name, generation) = fixture.name.rsplit_once('/').unwrap();
    let table = name.rsplit_once('/').unwrap().1;
    let version = &generation[..2];
    is_flushed
        && !UNTOLD
            .iter()
            .any(|untold| format!("/{table}/{generation}-").starts_with(&untold.replace("??", version)))
}

/// Writes lines as an SSTable; its dump too.
async fn write_lines(
    shard: &Shard,
    job: &Job,
    lines_in: &str,
    dir: &Path,
) -> Result<(Rc<SSTable>, String, u64), String> {
    let input = Input { path: PathBuf::from("dump"), lines: Box::new(Cursor::new(lines_in.to_owned())) };
    let written = write(shard.disk(), job, vec![input], dir, &mut |_| {}).await;
    let outcome = written.map_err(|error| error.to_string())?;
    let table = open(shard, &outcome.written.descriptor.path_of(&Component::Data)).await;
    let dumped = lines(&table).await;
    Ok((table, dumped, outcome.runs))
}

/// Where two dumps differ first.
fn difference(new: &str, old: &str) -> Option<String> {
    let (old, new) = (without_positions(old), without_positions(new));
    match old.iter().zip(&new).find(|(old, new)| old != new) {
        Some((old, new)) => Some(format!("line {new}\n    expected {old}")),
        None if old.len() != new.len() => Some(format!("{} lines, expected {}", new.len(), old.len())),
        None => None,
    }
}

/// What is not as it was, of an SSTable that is written again from its dump into `dir`.
async fn check(shard: &Shard, fixture: &Fixture, dir: &Path) -> Result<Vec<String>, String> {
    let theirs = open(shard, &fixture.data).await;
    let (mut job, dumped) = (job(shard.disk(), fixture, &theirs).await, lines(&theirs).await);
    let (ours, new, _) = write_lines(shard, &job, &dumped, dir).await?;
    let mut wrong: Vec<String> = difference(&new, &dumped).into_iter().collect();
    if is_told(fixture) {
        if uncompressed(&ours).await != uncompressed(&theirs).await {
            wrong.push("the data is not the same".to_owned());
        }
        let compression =
            |table: &SSTable| table.data().file.compression().map(|info| info.compression().clone());
        if compression(&ours) != compression(&theirs) && !fixture.name.contains(FLUSHED_FAST) {
            wrong.push(format!("{:?}, expected {:?}", compression(&ours), compression(&theirs)));
        }
    }
    job.memory = dumped.len() / 3;
    let (_, new, runs) = write_lines(shard, &job, &dumped, dir).await?;
    wrong.extend(difference(&new, &dumped).map(|what| format!("in {runs} runs: {what}")));
    Ok(wrong)
}

#[test]
fn dumps_are_written_as_they_were() {
    let is_read = |fixture: &Fixture| LEFT_OUT.iter().all(|(name, _)| !fixture.name.contains(name));
    let is_ours = |fixture: &Fixture| !fixture.data.components().any(|part| part.as_os_str() == "shared");
    let (ours, beside): (Vec<_>, Vec<_>) = fixtures::all().into_iter().filter(is_read).partition(is_ours);
    let fixtures: Vec<Fixture> = ours.into_iter().chain(beside.into_iter().step_by(ONE_OF)).collect();
    let (mut failures, mut count, mut told) = (Vec::new(), 0, 0);
    for fixture in
        fixtures.iter().filter(|fixture| std::fs::metadata(&fixture.data).unwrap().len() <= MOST_DATA)
    {
        let wrong = run_simulated(SimOptions::default(), async |shard: Shard| {
            put_on_disk(&shard, fixture);
            check(&shard, fixture, Path::new("/new")).await.unwrap_or_else(|error| vec![error])
        });
        failures.extend(wrong.unwrap().iter().map(|what| format!("{}: {what}", fixture.name)));
        count += 1;
        told += usize::from(is_told(fixture));
    }
    println!("{count} SSTables are written again, {told} of them byte for byte");
    assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}
