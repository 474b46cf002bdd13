//! A table of both sides, which are told the same, and the plain one beside them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::slice;
use std::time::Duration;

use model::{Bytes, FragmentReader, Token, flat};
use runtime::Shard;
use siltstone::convert::Target;
use siltstone::table_options::write_options;
use siltstone::table_schema::TableSchema;
use sstable::writer::Limits;
use sstable::{Version, WriteOptions};
use storage::commit_log::{EarlierLog, OnCorruption, SyncMode, TableId};
use storage::compaction::Compaction;
use storage::{Definition, Generations, Store, StoreOptions};
use testkit::cassandra::{Node, TableName, Values};
use testkit::generate::KEYSPACE;
use testkit::generate::random::Random;
use testkit::oracle::Oracle;
use testkit::selected::{Selected, Selection};
use testkit::statements::values::key_of;
use testkit::statements::{Bound, Table, Writer};

/// Where Siltstone has the table.
const FOLDER: &str = "/data/table";

const TABLE: TableId = TableId([7; 16]);

/// So much of a statement is shown.
const SHOWN: usize = 400;

/// Both sides of a table.
pub(crate) struct Pair<'a> {
    pub(crate) seed: u64,
    pub(crate) table: &'a Table,
    /// Siltstone's table.
    pub(crate) own: storage::Table,
    shard: Shard,
    store: Store,
    definition: Definition,
    /// How often it was restarted.
    starts: usize,
    node: &'a mut Node,
    name: TableName,
    oracle: Oracle,
    writer: Writer<'a>,
    /// Whether both sides compact at the same moments.
    in_step: bool,
    /// What was done, to be told if it fails.
    done: Vec<String>,
}

impl<'a> Pair<'a> {
    /// Makes a table on both sides.
    pub(crate) async fn new(shard: &Shard, node: &'a mut Node, table: &'a Table, seed: u64) -> Pair<'a> {
        let mut random = Random::new(!seed);
        let schema: Vec<String> = table.create_types.iter().chain([&table.create]).cloned().collect();
        node.schema(&schema.join(";\n")).unwrap();
        let definition = definition(table, &mut random);
        let done = vec![format!("{}\n-- {definition:?}", schema.join(";\n"))];
        let (store, own) = open(shard, &definition, 0).await;
        Pair {
            seed,
            own,
            store,
            definition,
            starts: 0,
            shard: shard.clone(),
            node,
            name: TableName { keyspace: KEYSPACE.to_owned(), name: table.name.clone() },
            oracle: Oracle::new(&table.schema),
            writer: Writer::new(table, seed),
            in_step: random.percent(50),
            done,
            table,
        }
    }

    /// Writes statements to all.
    pub(crate) async fn write(&mut self, count: usize) {
        let mut bound: Vec<(i64, Bound)> = Vec::new();
        for _ in 0..count {
            let statement = self.writer.statement();
            let mutation = statement.to_mutation(self.table);
            self.oracle.apply(&mutation);
            let mut record = Vec::new();
            flat::put_mutation(&mutation, &mut record);
            self.store.write(TABLE, record).await.unwrap();
            let cql = statement.to_cql(self.table);
            self.done.push(format!("{} {cql}", statement.now));
            bound.push((statement.now, cql));
        }
        self.node.run(&bound).unwrap();
    }

    pub(crate) fn flush_cassandra(&mut self) {
        self.done.push("-- Cassandra flushes".to_owned());
        self.node.flush(&self.name).unwrap();
    }

    pub(crate) async fn flush_siltstone(&mut self) {
        self.done.push("-- Siltstone flushes".to_owned());
        self.store.flush(&self.own).await.unwrap();
    }

    /// In step both sides compact all they have; apart, one of them does.
    pub(crate) async fn compact(&mut self, random: &mut Random) {
        let (cassandra, siltstone) = match (self.in_step, random.percent(50)) {
            (true, _) => (true, true),
            (false, first) => (first, !first),
        };
        let now = self.writer.now();
        if cassandra {
            self.flush_cassandra();
            self.done.push(format!("-- Cassandra compacts at {now}"));
            self.node.compact_at(&self.name, now).unwrap();
        }
        if siltstone {
            self.flush_siltstone().await;
            self.done.push(format!("-- Siltstone compacts at {now}"));
            self.shard.clock().as_simulated().unwrap().set(Duration::from_secs(now as u64));
            self.store.compact(&self.own).await.unwrap();
        }
        if !self.in_step {
            self.writer.new_timestamps();
        }
    }

    /// Siltstone loses its power and starts again.
    pub(crate) async fn restart(&mut self) {
        self.done.push("-- Siltstone starts again".to_owned());
        self.shard.disk().as_simulated().unwrap().restart();
        self.starts += 1;
        (self.store, self.own) = open(&self.shard, &self.definition, self.starts).await;
        let log = EarlierLog::find(self.shard.disk(), &log_folder(self.starts - 1)).unwrap();
        self.store.recover(slice::from_ref(&log), |_| true, OnCorruption::Stop).await.unwrap();
    }

    /// Compares all rows at some seconds from now; what there are.
    pub(crate) async fn compare(&mut self, later: i64) -> Result<Vec<Selected>, String> {
        let now = self.now() + later;
        let found = self.scan(now).await;
        let expected = self.node.rows(&self.select(), now).unwrap();
        let values = self.all_values(&found);
        if let Some(difference) = self.difference(&values, &expected) {
            let plain = self.all_values(&self.oracle.rows(now));
            let with =
                |rows| if plain == rows { "so the plain table, too" } else { "otherwise the plain table" };
            let (own, others) = (with(values), with(expected));
            return Err(format!("at {now}, Siltstone ({own}) and Cassandra ({others}): {difference}"));
        }
        if !self.in_step && self.oracle.rows(now) != found {
            return Err(format!("at {now}, only the plain table has other rows"));
        }
        Ok(found)
    }

    /// The second of the last statement.
    pub(crate) fn now(&self) -> i64 {
        self.writer.now()
    }

    /// Removes the table, and tells what was done if it failed or is wanted anyway.
    pub(crate) async fn close(self, is_wanted: bool, done: Result<(), String>) -> Result<(), String> {
        self.store.close().await.unwrap();
        if is_wanted || done.is_err() {
            println!("what seed {} does:", self.seed);
            self.done.iter().for_each(|line| println!("{}", line.chars().take(SHOWN).collect::<String>()));
        }
        self.node.schema(&self.table.drop_all().join(";\n")).unwrap();
        done
    }

    async fn scan(&self, now: i64) -> Vec<Selected> {
        let mut scan = self.own.scan(None, Token::MAX, None).await.unwrap();
        let mut selection = Selection::new(&self.table.schema, now, true);
        while let Some(fragment) = scan.next().await.unwrap() {
            selection.take(fragment);
        }
        selection.rows
    }

    fn columns(&self) -> Vec<String> {
        let table = &self.table;
        let mut columns: Vec<String> = table.partition.iter().chain(&table.clustering).cloned().collect();
        let places = [true, false].map(|is_static| table.places(is_static)).concat();
        columns.extend(places.into_iter().map(|place| table.name_of(place)));
        columns
    }

    fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.columns().join(", "), self.table.full_name())
    }

    /// Rows as Cassandra gives them.
    pub(crate) fn all_values(&self, rows: &[Selected]) -> Vec<Values> {
        rows.iter().map(|row| self.values(row)).collect()
    }

    /// A row as Cassandra gives it.
    fn values(&self, row: &Selected) -> Values {
        let keys: BTreeMap<Vec<u8>, &Vec<Bytes>> =
            self.table.partitions.iter().map(|key| (key_of(key).to_vec(), key)).collect();
        let key = keys[&*row.key.bytes].iter().cloned().map(Some);
        let clustering = match &row.clustering {
            Some(clustering) => clustering.values.to_vec(),
            None => vec![None; self.table.clustering.len()],
        };
        key.chain(clustering).chain(row.statics.clone()).chain(row.regulars.clone()).collect()
    }

    /// What is not the same in both.
    pub(crate) fn difference(&self, found: &[Values], expected: &[Values]) -> Option<String> {
        let at = (0..found.len().max(expected.len())).find(|at| found.get(*at) != expected.get(*at))?;
        let (Some(own), Some(other)) = (found.get(at), expected.get(at)) else {
            let (own, other) = (found.get(at), expected.get(at));
            let counts = format!("{} rows, not {}", found.len(), expected.len());
            return Some(format!("{counts}; row {at} is {own:?}, not {other:?}"));
        };
        let column = (0..own.len()).find(|at| own[*at] != other[*at])?;
        let name = &self.columns()[column];
        let counts = format!("{} rows and {}", found.len(), expected.len());
        let (own_value, other_value) = (&own[column], &other[column]);
        Some(format!("{counts}; in row {at}, {name} is {own_value:?}, not {other_value:?}"))
    }
}

fn definition(table: &Table, random: &mut Random) -> Definition {
    let path = Path::new("statements.cql");
    let text = format!("{};\n{};", table.create_types.join(";\n"), table.create);
    let parsed = TableSchema::parse(path, &text, Some(&table.name)).unwrap();
    assert_eq!(parsed.schema, table.schema, "the schema that is read is the one that was made up");
    let holds = |version: &Version| {
        let options = WriteOptions::new(*version);
        Limits::of(*version, options.family).check_table(&table.schema, &options).is_ok()
    };
    let versions: Vec<Version> = Version::ALL.into_iter().filter(holds).collect();
    let version = *random.one_of(&versions);
    let mut target = Target::new(version);
    target.column_index_size = *random.one_of(&[200, 4 << 10, 64 << 10]);
    target.fences = random.percent(50);
    let mut definition = Definition::new(TABLE, &Rc::new(parsed.schema.clone()), version);
    definition.write = write_options(path, &parsed, &target).unwrap();
    // It is not enabled: nothing is compacted unless it is asked for.
    let compaction = parsed.options.map("compaction").unwrap().iter();
    definition.compaction = Compaction::parse(compaction.map(|(name, value)| (&**name, &**value))).unwrap();
    definition.gc_grace_seconds = table.gc_grace_seconds;
    definition.single_key_parallel_scan_threshold = *random.one_of(&[0.0, 0.5, 1.0]);
    definition
}

async fn open(shard: &Shard, definition: &Definition, starts: usize) -> (Store, storage::Table) {
    let mut options = StoreOptions::default();
    options.log.sync = SyncMode::Batch;
    let store = Store::open(shard, &log_folder(starts), options).await.unwrap();
    shard.disk().create_dir_all(Path::new(FOLDER)).await.unwrap();
    for folder in ["/data", "/"] {
        shard.disk().sync_dir(Path::new(folder)).await.unwrap();
    }
    storage::table::clean_folder(shard.disk(), Path::new(FOLDER)).await.unwrap();
    let (definition, generations) = (definition.clone(), Generations::default());
    let table = store.add_table(Path::new(FOLDER), definition, &generations).await.unwrap();
    (store, table)
}

fn log_folder(starts: usize) -> PathBuf {
    PathBuf::from(format!("/log{starts}"))
}
