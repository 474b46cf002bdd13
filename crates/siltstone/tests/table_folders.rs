//! The folder of a table, opened as it was found, has just the rows that Cassandra's `SELECT` gave of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use flate2::read::GzDecoder;
use model::{Fragment, FragmentReader, LiveRows, PartitionKey, Row, Token, select};
use runtime::{Cache, Clock, Shard, ShardOptions, SimClock};
use serde_json::{Map, Value};
use siltstone::table_schema::TableSchema;
use sstable::Version;
use storage::commit_log::TableId;
use storage::definition::DroppedColumn;
use storage::rewrite::{Control, Rewrite};
use storage::{Context, Definition, Generations, Table};
use testkit::json::{self, without_members};

/// Columns that were dropped and added again: when, the schemas of the fixtures do not tell, but it was after all rows
/// with the old column had been written.
const DROPPED: [(&str, &str); 1] = [("dropped", "a")];

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
        let schema = TableSchema::parse(&schema_path, &text, Some(name)).unwrap();
        let rows = set.join("expected").join(format!("{name}.jsonl.gz"));
        Expected { rows, schema, read_at: info["read_at"].as_i64().unwrap(), folder }
    });
    expected.filter(|expected| expected.rows.is_file()).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The table in a folder that has its SSTables, at the time at which its rows were read.
async fn open(shard: &Shard, expected: &Expected, folder: &Path) -> Table {
    let clock = SimClock::default();
    clock.set(Duration::from_secs(expected.read_at as u64));
    let clock = Clock::Simulated(clock);
    let context = Context { disk: shard.disk().clone(), clock, cache: Cache::new(1 << 20) };
    let schema = Rc::new(expected.schema.schema.clone());
    let version = if folder_has(folder, "oa-") { Version::Oa } else { Version::Me };
    let mut definition = Definition::new(TableId([0; 16]), &schema, version);
    definition.dropped = DROPPED
        .iter()
        .filter(|(table, _)| *table == expected.schema.table)
        .map(|(_, column)| DroppedColumn { name: column.as_bytes().into(), at: expected.read_at * 1_000_000 })
        .collect();
    Table::open(&context, folder, definition, &Generations::default()).await.unwrap()
}

fn folder_has(folder: &Path, prefix: &str) -> bool {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|name| name.to_str().unwrap().starts_with(prefix))
}

/// The rows of a table as the lines of what is expected.
async fn rows_of(table: &Table, expected: &Expected) -> Vec<Map<String, Value>> {
    let mut scan = table.scan(None, Token::MAX).await.unwrap();
    let mut live = LiveRows::new(expected.read_at);
    let mut rows = Rows { expected, key: None, statics: None, has_rows: false, all: Vec::new() };
    while let Some(fragment) = scan.next().await.unwrap() {
        match &fragment {
            Fragment::PartitionStart(start) => rows.begin(&start.key),
            Fragment::PartitionEnd => rows.end(),
            _ => {}
        }
        match live.filter(fragment) {
            Some(Fragment::StaticRow(row)) => rows.statics = Some(row),
            Some(Fragment::Row(row)) => rows.row(&row),
            _ => {}
        }
    }
    rows.all
}

/// Makes lines of fragments.
struct Rows<'a> {
    expected: &'a Expected,
    key: Option<PartitionKey>,
    statics: Option<Row>,
    has_rows: bool,
    all: Vec<Map<String, Value>>,
}

impl Rows<'_> {
    fn begin(&mut self, key: &PartitionKey) {
        (self.key, self.statics, self.has_rows) = (Some(key.clone()), None, false);
    }

    fn row(&mut self, row: &Row) {
        if !self.is_static_compact() {
            self.line(Some(row));
        }
    }

    /// A partition of which only the static row is left is a row too.
    fn end(&mut self) {
        if !self.has_rows && self.statics.is_some() {
            self.line(None);
        }
    }

    /// In tables of compact storage without clustering columns, the columns are static ones in the files.
    fn is_static_compact(&self) -> bool {
        let schema = &self.expected.schema;
        schema.is_compact && schema.clustering.is_empty() && !schema.schema.clustering.is_empty()
    }

    fn line(&mut self, row: Option<&Row>) {
        self.has_rows = true;
        let TableSchema { partition_key, clustering, schema, .. } = &self.expected.schema;
        let key = self.key.as_ref().unwrap();
        let mut raw = BTreeMap::new();
        for (name, value) in partition_key.iter().zip(parts(&key.bytes, partition_key.len())) {
            raw.insert(name.clone(), Some(value.to_vec()));
        }
        for (at, name) in clustering.iter().enumerate() {
            let value = row.and_then(|row| row.clustering.values.get(at)?.as_ref());
            raw.insert(name.clone(), value.map(|value| value.to_vec()));
        }
        for (columns, row) in [(&schema.statics, self.statics.as_ref()), (&schema.regulars, row)] {
            for (at, column) in columns.iter().enumerate() {
                let cells: Vec<_> = row
                    .iter()
                    .flat_map(|row| &row.cells)
                    .filter(|cell| usize::from(cell.column) == at)
                    .cloned()
                    .collect();
                let value = select::value_of(&column.data_type, &cells);
                raw.insert(column.name_text().into_owned(), value.map(|value| value.to_vec()));
            }
        }
        let mut line = Map::new();
        line.insert("token".to_owned(), key.token.into());
        line.insert("raw".to_owned(), raw.into_iter().map(|(name, value)| (name, shown(value))).collect());
        self.all.push(line);
    }
}

/// The columns of a partition key.
fn parts(key: &[u8], count: usize) -> Vec<&[u8]> {
    if count == 1 {
        return vec![key];
    }
    let mut rest = key;
    let next = |_| {
        let (len, tail) = rest.split_first_chunk::<2>().unwrap();
        let (part, tail) = tail.split_at(usize::from(u16::from_be_bytes(*len)));
        rest = &tail[1..];
        part
    };
    (0..count).map(next).collect()
}

fn shown(value: Option<Vec<u8>>) -> Value {
    value.map_or(Value::Null, |value| {
        value.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
    })
}

/// What of a table is not as it should be.
fn difference(found: &[Map<String, Value>], expected: &[Value]) -> Option<String> {
    if found.len() != expected.len() {
        return Some(format!("{} rows, not {}", found.len(), expected.len()));
    }
    found.iter().zip(expected).find_map(|(found, expected)| {
        if found["token"] != expected["token"] {
            return Some(format!("{found:?}\n  not {expected}"));
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

#[test]
fn a_scan_gives_what_a_select_gave() {
    let tables: Vec<Expected> =
        testkit::fixtures::sets_with_rows().iter().flat_map(|set| tables_of(set)).collect();
    runtime::run(ShardOptions { direct_io: false, ..ShardOptions::default() }, async move |shard: Shard| {
        let mut failures = Vec::new();
        for expected in &tables {
            let table = open(&shard, expected, &expected.folder).await;
            let found = rows_of(&table, expected).await;
            let wrong = difference(&found, &lines(&expected.rows));
            failures.extend(wrong.map(|what| format!("{}: {what}", expected.folder.display())));
        }
        println!("{} tables are compared", tables.len());
        assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    })
    .unwrap();
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

/// What is wrong with the table once it is compacted.
async fn check_compacted(shard: &Shard, expected: &Expected) -> Option<String> {
    let copy = copy(&expected.folder);
    let table = open(shard, expected, copy.path()).await;
    let rewrite = Rewrite::into_one(table.compactable());
    let new = table.rewrite(&rewrite, &Control::default()).await.unwrap();
    if let Some(wrong) = difference(&rows_of(&table, expected).await, &lines(&expected.rows)) {
        return Some(wrong);
    }
    let theirs = dump_of_compacted(expected)?;
    let timeless = |dump| without_members(dump, &["expired", "position", "table kind"]);
    let ours = new.first().map_or(Value::Array(Vec::new()), |new| dump(new.sstable.data().file.path()));
    json::difference(&timeless(ours), &timeless(theirs))
}

#[test]
fn a_compaction_leaves_the_rows_and_what_cassandras_leaves() {
    let tables: Vec<Expected> =
        testkit::fixtures::sets_with_rows().iter().flat_map(|set| tables_of(set)).collect();
    runtime::run(ShardOptions { direct_io: false, ..ShardOptions::default() }, async move |shard: Shard| {
        let mut failures = Vec::new();
        for expected in &tables {
            let wrong = check_compacted(&shard, expected).await;
            failures.extend(wrong.map(|what| format!("{}: {what}", expected.folder.display())));
        }
        let dumps = tables.iter().filter(|expected| dump_of_compacted(expected).is_some()).count();
        println!("{} tables are compacted, {dumps} of them compared with Cassandra's", tables.len());
        assert!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    })
    .unwrap();
}
