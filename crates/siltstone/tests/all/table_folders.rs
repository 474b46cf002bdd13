//! The folder of a table, opened as it was found, has just the rows that Cassandra's `SELECT` gave of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use flate2::read::GzDecoder;
use model::hex::to_hex;
use runtime::{Cache, Clock, Shard, ShardOptions, SimClock};
use serde_json::{Map, Value};
use siltstone::database::{Database, Options, Row, Scan};
use siltstone::table_schema::TableSchema;
use sstable::Version;
use storage::commit_log::TableId;
use storage::definition::DroppedColumn;
use storage::rewrite::{Control, Rewrite};
use storage::{Context, Definition, Generations, Table};
use testkit::json::{self, without_members};

/// Columns that were dropped and added again: when, the schemas of the fixtures do not tell, but it was after all rows
/// with the old column had been written.
const DROPPED: [(&str, &str); 2] = [("dropped", "a"), ("dropped", "s")];

/// A table of a fixture whose rows are known.
struct Expected {
    folder: PathBuf,
    schema: TableSchema,
    rows: PathBuf,
    read_at: i64,
}

/// All tables of one set of fixtures.
fn tables_of(set: &Path) -> Vec<Expected> {
    let schema_path = set.join("schema.cql");
    let text = std::fs::read_to_string(&schema_path).unwrap();
    let info: Value = serde_json::from_str(&std::fs::read_to_string(set.join("info.json")).unwrap()).unwrap();
    let mut tables: Vec<PathBuf> =
        std::fs::read_dir(set.join("sstables")).unwrap().map(|e| e.unwrap().path()).collect();
    tables.sort();
    let expected = tables.into_iter().map(|folder| {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let mut schema = TableSchema::parse(&schema_path, &text, Some(name)).unwrap();
        let read_at = info["read_at"].as_i64().unwrap();
        let dropped = DROPPED.iter().filter(|(table, _)| *table == name);
        schema.dropped = dropped.map(|(_, column)| (column.to_string(), read_at * 1_000_000)).collect();
        let rows = set.join("expected").join(format!("{name}.jsonl.gz"));
        Expected { rows, schema, read_at, folder }
    });
    expected.filter(|expected| expected.rows.is_file()).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn open(expected: &Expected, folder: &Path, shards: usize) -> Database {
    let schema = expected.schema.clone();
    let options = Options { shards, read_only: true, direct_io: false, cache: 4 << 20, ..Options::default() };
    Database::open_table_folder(folder, Some(schema), options).wait().unwrap()
}

/// The rows of a table as the lines of what is expected.
fn rows_of(database: &Database, expected: &Expected) -> Vec<Value> {
    let table = database.tables().remove(0);
    let (mut rows, mut next) = (Vec::new(), None);
    loop {
        let page = table.scan(Scan::all().at(expected.read_at).resume(next)).wait().unwrap();
        rows.extend(page.rows.iter().map(line));
        next = page.next;
        if next.is_none() {
            return rows;
        }
    }
}

fn line(row: &Row) -> Value {
    let value = |value: Option<&[u8]>| value.map_or(Value::Null, |value| to_hex(value).into());
    let raw: Map<String, Value> = row
        .columns()
        .iter()
        .zip(row.values())
        .map(|(column, bytes)| (column.name.clone(), value(bytes)))
        .collect();
    serde_json::json!({ "token": row.token(), "raw": raw })
}

/// What of a table is not as it should be.
fn difference(found: &[Value], expected: &[Value]) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} rows, not {}", found.len(), expected.len()));
    }
    found.iter().zip(expected).find_map(|(found, expected)| {
        if found["token"] != expected["token"] {
            return Some(format!("{found}\n  not {expected}"));
        }
        let columns = |row: &Value| row["raw"].as_object().map_or(0, Map::len);
        if columns(found) != columns(expected) {
            return Some(format!("other columns: {found}\n  not {expected}"));
        }
        // Long values are given by their length and a checksum.
        let raw = expected["raw"].as_object().unwrap();
        let is_same = |(name, value): (&String, &Value)| match value {
            Value::Object(long) => {
                let hex = found["raw"][name].as_str().unwrap_or_default();
                long["len"].as_u64() == Some(hex.len() as u64 / 2)
            }
            value => found["raw"].get(name) == Some(value),
        };
        let wrong = raw.iter().find(|column| !is_same(*column))?;
        Some(format!("{wrong:?}, not {}, in {expected}", found["raw"].get(wrong.0).unwrap_or(&Value::Null)))
    })
}

/// So many tables whose rows are known are in the repository, or more. Only the larger collection has dumps of what Cassandra compacted.
const TABLES: usize = 80;

#[test]
fn a_scan_gives_what_a_select_gave() {
    let tables: Vec<Expected> =
        testkit::fixtures::sets_with_rows().iter().flat_map(|set| tables_of(set)).collect();
    let mut failures = Vec::new();
    for (number, expected) in tables.iter().enumerate() {
        // Whether one shard reads an SSTable or several share it makes no difference.
        let database = open(expected, &expected.folder, 1 + number % 3);
        let wrong = difference(&rows_of(&database, expected), &lines(&expected.rows));
        failures.extend(wrong.map(|what| format!("{}: {what}", expected.folder.display())));
    }
    println!("{} tables are compared", tables.len());
    assert!(tables.len() >= TABLES, "{}", tables.len());
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}

/// What Cassandra's dump of its own compaction of the table is, if there is one.
fn dump_of_compacted(expected: &Expected) -> Option<Value> {
    let name = expected.folder.file_name()?.to_str()?;
    let dumps = expected.folder.parent()?.parent()?.join("compacted/dump");
    let mut files = std::fs::read_dir(dumps).ok()?.map(|entry| entry.unwrap().path());
    let is_of_table = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .strip_prefix(name)
            .is_some_and(|rest| rest.starts_with("__") && !rest.starts_with("__."))
    };
    let mut text = String::new();
    let file = std::fs::File::open(files.find(is_of_table)?).unwrap();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn dump(data: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone"));
    let output = command.args(["sstable", "dump"]).arg(data).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A copy of a table's files, to be changed. Folders whose names begin with a dot are those of indexes.
fn copy(folder: &Path) -> tempfile::TempDir {
    let copy = tempfile::Builder::new().prefix("table").tempdir().unwrap();
    for file in
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file())
    {
        std::fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    copy
}

/// Merges all SSTables of a folder into one, at the second at which its rows were read; its Data.db, if any is left.
async fn compact(shard: &Shard, expected: &Expected, folder: &Path) -> Option<PathBuf> {
    let clock = SimClock::default();
    clock.set(Duration::from_secs(expected.read_at as u64));
    let clock = Clock::Simulated(clock);
    let context = Context::new(shard.disk().clone(), clock, Cache::new(1 << 20));
    let version = if has_oa(folder) { Version::Oa } else { Version::Me };
    let mut definition = Definition::new(TableId([0; 16]), &Rc::new(expected.schema.schema.clone()), version);
    let dropped = |(name, at): &(String, i64)| DroppedColumn { name: name.as_bytes().into(), at: *at };
    definition.dropped = expected.schema.dropped.iter().map(dropped).collect();
    let table = Table::open(&context, folder, definition, &Generations::default()).await.unwrap();
    let rewrite = Rewrite::into_one(table.compactable());
    let new = table.rewrite(&rewrite, &Control::default()).await.unwrap();
    new.first().map(|new| new.sstable.data().file.path().to_path_buf())
}

/// A schema that is older than the SSTables says nothing of what is to go.
#[test]
fn a_compaction_keeps_columns_that_the_schema_does_not_have() {
    let tables = testkit::fixtures::sets_with_rows().into_iter().flat_map(|set| tables_of(&set));
    let (mut tried, mut failures) = (0, Vec::new());
    for expected in tables {
        let Expected { folder, rows, read_at, .. } = &expected;
        let mut older = expected.schema.clone();
        let Some(column) = older.schema.regulars.pop().or_else(|| older.schema.statics.pop()) else {
            continue;
        };
        let older = Expected { folder: folder.clone(), schema: older, rows: rows.clone(), read_at: *read_at };
        let copy = copy(folder);
        let options = ShardOptions { direct_io: false, ..ShardOptions::default() };
        runtime::run(options, async |shard: Shard| compact(&shard, &older, copy.path()).await).unwrap();
        let found = rows_of(&open(&expected, copy.path(), 2), &expected);
        if let Some(wrong) = difference(&found, &lines(rows)) {
            failures.push(format!("{} without {}: {wrong}", folder.display(), column.name_text()));
        }
        tried += 1;
    }
    assert!(tried > 10, "{tried} tables");
    assert!(failures.is_empty(), "{} of {tried} fail:\n{}", failures.len(), failures.join("\n"));
}

fn has_oa(folder: &Path) -> bool {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|name| name.to_str().unwrap().starts_with("oa-"))
}

/// What is wrong with a table once it is compacted.
fn check_compacted(expected: &Expected) -> Option<String> {
    let copy = copy(&expected.folder);
    let options = ShardOptions { direct_io: false, ..ShardOptions::default() };
    let compacted =
        runtime::run(options, async |shard: Shard| compact(&shard, expected, copy.path()).await).unwrap();
    let rows = rows_of(&open(expected, copy.path(), 2), expected);
    if let Some(wrong) = difference(&rows, &lines(&expected.rows)) {
        return Some(wrong);
    }
    let theirs = dump_of_compacted(expected)?;
    let timeless = |dump| without_members(dump, &["expired", "position", "table kind"]);
    let ours = compacted.map_or(Value::Array(Vec::new()), |data| dump(&data));
    json::difference(&timeless(ours), &timeless(theirs))
}

#[test]
fn a_compaction_leaves_the_rows_and_what_cassandras_leaves() {
    let tables: Vec<Expected> =
        testkit::fixtures::sets_with_rows().iter().flat_map(|set| tables_of(set)).collect();
    let wrong =
        |expected: &Expected| Some(format!("{}: {}", expected.folder.display(), check_compacted(expected)?));
    let failures: Vec<String> = tables.iter().filter_map(wrong).collect();
    let dumps = tables.iter().filter(|expected| dump_of_compacted(expected).is_some()).count();
    println!("{} tables are compacted, {dumps} of them compared with Cassandra's", tables.len());
    assert!(tables.len() >= TABLES, "{}", tables.len());
    assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
}
