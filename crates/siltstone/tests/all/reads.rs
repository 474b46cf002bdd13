//! Reads of single partitions say what dumps say.

use std::rc::Rc;

use model::{Bytes, Slice};
use runtime::{Cache, Shard, ShardOptions};
use serde_json::{Value, json};
use siltstone::dump::{Dump, Format};
use siltstone::read::{Found, Query, Tables, print_rows};
use siltstone::{Result, keys};
use sstable::{OpenOptions, ReadOptions, SSTable, Search};
use testkit::fixtures::{self, Fixture};

/// Partitions of a fixture that are looked at.
const MOST_KEYS: usize = 12;

const NOW: i64 = 2_000_000_000;

/// The lines that a dump in JSON lines has, by key, without positions. That there is a partition is told where nothing else is of it.
async fn dumped(table: &Rc<SSTable>) -> Result<Vec<(String, Vec<Value>)>> {
    let mut text = Vec::new();
    Dump::new(table, Format::JsonLines, NOW).all(&mut text, &mut |_| {}).await?;
    let mut partitions: Vec<(String, Vec<Value>)> = Vec::new();
    for line in std::str::from_utf8(&text).unwrap().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let key = line["key"].to_string();
        if partitions.last().is_none_or(|last| last.0 != key) {
            partitions.push((key, Vec::new()));
        }
        if line["type"] != "partition" || line.get("deletion_info").is_some() {
            line.as_object_mut().unwrap().shift_remove("position");
            partitions.last_mut().unwrap().1.push(line);
        }
    }
    Ok(partitions)
}

async fn read(tables: &Tables, key: &str, options: ReadOptions, limit: Option<u64>) -> Vec<Value> {
    let key = keys::partition_key(tables.schema(), key).unwrap();
    let key = tables.key(Bytes::from(key));
    let query = Query { key, slice: Slice::all(), options, limit, live: false };
    let mut text = Vec::new();
    let found = print_rows(tables, &query, NOW, &mut text).await.unwrap();
    let lines = std::str::from_utf8(&text).unwrap().lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let has_rows = lines.iter().any(|line| is_row(line) || line["type"] == "static_block");
    assert_eq!(found, if has_rows { Found::Rows } else { Found::NoRows });
    lines
}

fn is_row(line: &Value) -> bool {
    line["type"] == "row"
}

/// The lines of a read up to its second row, and the end of the range tombstone that is open there.
fn up_to_the_second_row(lines: &[Value], reverse: bool) -> Vec<Value> {
    let end = lines.iter().enumerate().filter(|(_, line)| is_row(line)).nth(1);
    let Some((end, row)) = end else { return lines.to_vec() };
    let mut lines = lines[..=end].to_vec();
    let (opens, closes) = if reverse { ("end", "start") } else { ("start", "end") };
    let last = lines.iter().rev().find(|line| line.get(opens).is_some() || line.get(closes).is_some());
    if let Some(open) = last.and_then(|line| line.get(opens)) {
        let deletion = &open["deletion_info"];
        let bound = json!({"type": "inclusive", "clustering": row["clustering"], "deletion_info": deletion});
        lines.push(json!({"type": "range_tombstone_bound", "key": row["key"], closes: bound}));
    }
    lines
}

/// What is told of a partition before its rows, in either direction.
fn heads(lines: &[Value]) -> usize {
    let is_head = |line: &&Value| line["type"] == "partition" || line["type"] == "static_block";
    lines.iter().take_while(is_head).count()
}

/// The lines of a read in the other direction.
fn reversed(lines: &[Value]) -> Vec<Value> {
    let mut lines = lines.to_vec();
    let heads = heads(&lines);
    lines[heads..].reverse();
    lines
}

async fn check(shard: &Shard, fixture: &Fixture) -> Result<()> {
    let options = OpenOptions::new(Cache::new(1 << 20));
    let table = SSTable::open(shard.disk(), &fixture.data, &options).await?;
    let tables = Tables::new(vec![table.clone()])?;
    for (key, rows) in dumped(&table).await?.into_iter().take(MOST_KEYS) {
        let name = &fixture.name;
        let forward = ReadOptions { static_row: true, search: Search::Binary, ..ReadOptions::default() };
        for reverse in [false, true] {
            let rows = if reverse { reversed(&rows) } else { rows.clone() };
            let all = ReadOptions { reverse, ..forward };
            assert_eq!(read(&tables, &key, all, None).await, rows, "{name} {key} {reverse}");
            let limited = ReadOptions { limit: Some(2), ..all };
            assert_eq!(
                read(&tables, &key, limited, Some(2)).await,
                up_to_the_second_row(&rows, reverse),
                "{name} {key} {reverse}"
            );
        }
    }
    Ok(())
}

#[test]
fn a_partition_reads_as_it_is_dumped() {
    let fixtures: Vec<Fixture> =
        fixtures::all().into_iter().filter(|fixture| !fixture.name.contains("/large")).collect();
    runtime::run(ShardOptions::default(), async |shard| {
        for fixture in &fixtures {
            match check(&shard, fixture).await {
                Ok(()) => {}
                Err(error) if fixture.name.contains("random_partitioner") => println!("{error}"),
                Err(error) => panic!("{}: {error}", fixture.name),
            }
        }
    })
    .unwrap();
}

/// The folders of tables that Cassandra compacted, each with that of the SSTables it made it from. Only the
/// server's schema knows of columns that were dropped in between, so the table of those is left out. Only the larger collection has
/// any.
fn compacted() -> Vec<(std::path::PathBuf, std::path::PathBuf)> {
    let mut folders = Vec::new();
    for set in ["cassandra/me/small", "cassandra/oa/small"] {
        let Some(after) = fixtures::optional(&format!("{set}/compacted/sstables")) else { continue };
        let Some(before) = fixtures::optional(&format!("{set}/sstables")) else { continue };
        let entries = std::fs::read_dir(&after).unwrap().map(|entry| entry.unwrap());
        for entry in entries.filter(|entry| entry.file_name() != "dropped") {
            folders.push((before.join(entry.file_name()), entry.path()));
        }
    }
    folders.sort();
    folders
}

async fn open(shard: &Shard, folder: &std::path::Path) -> Result<Tables> {
    let options = OpenOptions::new(Cache::new(1 << 20));
    let mut tables = Vec::new();
    for file in siltstone::paths::data_files(shard.disk(), folder).await? {
        tables.push(SSTable::open(shard.disk(), &file, &options).await?);
    }
    Tables::new(tables)
}

/// What is live of a partition, from its start or its end.
async fn live(tables: &Tables, key: &str, reverse: bool) -> Result<String> {
    let key = tables.key(Bytes::from(keys::partition_key(tables.schema(), key)?));
    let options = ReadOptions { static_row: true, reverse, ..ReadOptions::default() };
    let query = Query { key, slice: Slice::all(), options, limit: None, live: true };
    let mut text = Vec::new();
    print_rows(tables, &query, NOW, &mut text).await?;
    Ok(String::from_utf8(text).unwrap())
}

#[test]
fn a_merged_read_is_what_compaction_made() {
    runtime::run(ShardOptions::default(), async |shard| {
        for (before, after) in compacted() {
            let (many, one) = (open(&shard, &before).await.unwrap(), open(&shard, &after).await.unwrap());
            let mut keys = Vec::new();
            for table in many.tables() {
                keys.extend(dumped(table).await.unwrap().into_iter().map(|partition| partition.0));
            }
            for key in keys {
                for reverse in [false, true] {
                    let (merged, compacted) =
                        (live(&many, &key, reverse).await, live(&one, &key, reverse).await);
                    assert_eq!(merged.unwrap(), compacted.unwrap(), "{} {key} {reverse}", before.display());
                }
                let forward = ReadOptions { static_row: true, ..ReadOptions::default() };
                let stored = read(&many, &key, forward, None).await;
                let backward = ReadOptions { reverse: true, ..forward };
                assert_eq!(read(&many, &key, backward, None).await, reversed(&stored), "{key}");
            }
        }
    })
    .unwrap();
}
