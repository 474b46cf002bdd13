//! Random writes to a database give what they give to a plain table, whatever happens between them.

use std::ops::ControlFlow;
use std::path::Path;

use model::merge::Direction;
use model::{Bytes, PartitionKey};
use siltstone::database::{
    Bound, ColumnKind, Database, IntoValues, Options, Row, RowView, Scan, Slice, Table, Value,
};
use storage::commit_log::{CommitLogOptions, SyncMode};
use storage::compactor::CompactionOptions;
use testkit::generate::random::Random;
use testkit::oracle::Oracle;
use testkit::selected::Selected;
use testkit::statements::{Table as Statements, Writer};

/// How many tables are tried; more with `SILTSTONE_TEST_SEEDS`.
const SEEDS: u64 = 12;

fn open(folder: &Path, background: bool, random: &mut Random) -> Database {
    let log = CommitLogOptions { sync: SyncMode::Batch, ..CommitLogOptions::default() };
    let shards = random.between(1, 3);
    let leaves_from = if random.below(2) == 0 { 1 } else { u64::MAX };
    let options = Options {
        shards,
        log,
        cache: 1 << 20,
        memtables: if random.below(4) == 0 { 3 << 10 } else { 8 << 20 },
        compaction: CompactionOptions { background, leaves_from, ..CompactionOptions::default() },
        direct_io: false,
        version: sstable::Version::Oa,
        ..Options::default()
    };
    Database::open(folder, options).wait().unwrap()
}

/// A row as bytes by column, in the order of the table's columns.
type Values = Vec<Option<Vec<u8>>>;

/// What the oracle's rows are as those of a database.
fn expected(rows: &[Selected], table: &Table, statements: &Statements) -> Vec<Values> {
    let columns = table.columns();
    let row = |selected: &Selected| -> Values {
        let keys = key_parts(&selected.key, statements.partition.len());
        let value = |column: &siltstone::database::ColumnInfo| {
            let at = |names: &[String]| names.iter().position(|name| *name == column.name).unwrap();
            let of = |columns: &[model::Column], values: &[Option<Bytes>]| {
                let at = columns.iter().position(|known| *known.name == *column.name.as_bytes()).unwrap();
                values[at].as_ref().map(|value| value.to_vec())
            };
            match column.kind {
                ColumnKind::PartitionKey => Some(keys[at(&statements.partition)].clone()),
                ColumnKind::Clustering => {
                    let clustering = selected.clustering.as_ref()?;
                    clustering.values[at(&statements.clustering)].as_ref().map(|value| value.to_vec())
                }
                ColumnKind::Static => of(&statements.schema.statics, &selected.statics),
                ColumnKind::Regular => of(&statements.schema.regulars, &selected.regulars),
            }
        };
        columns.iter().map(value).collect()
    };
    rows.iter().map(row).collect()
}

fn key_parts(key: &PartitionKey, count: usize) -> Vec<Vec<u8>> {
    if count == 1 {
        return vec![key.bytes.to_vec()];
    }
    let mut rest = &key.bytes[..];
    let next = |_| {
        let (len, tail) = rest.split_first_chunk::<2>().unwrap();
        let (part, tail) = tail.split_at(usize::from(u16::from_be_bytes(*len)));
        rest = &tail[1..];
        part.to_vec()
    };
    (0..count).map(next).collect()
}

fn found(rows: &[Row]) -> Vec<Values> {
    rows.iter().map(|row| row.values().map(|value| value.map(<[u8]>::to_vec)).collect()).collect()
}

fn scanned(table: &Table, limit: usize, now: i64) -> Vec<Values> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = table.scan(Scan::all().limit(limit).resume(next).at(now)).wait().unwrap();
        all.extend(found(&page.rows));
        next = page.next;
        if next.is_none() {
            return all;
        }
    }
}

fn sliced(table: &Table, key: &[Value], slice: &Slice) -> Vec<Values> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let slice = slice.clone().resume(next);
        let page = table.slice(key.to_vec(), slice.clone()).wait().unwrap();
        let rows = found(&page.rows);
        let each = |rows: &mut Vec<Values>, row: RowView<'_>| {
            rows.push(row.values().map(|value| value.map(<[u8]>::to_vec)).collect());
            ControlFlow::Continue(())
        };
        let folded = table.fold(key.to_vec(), slice, Vec::new(), each).wait().unwrap();
        assert_eq!((&folded.state, &folded.next), (&rows, &page.next), "looked at, and in a page");
        all.extend(rows);
        next = page.next;
        if next.is_none() {
            return all;
        }
    }
}

/// A row by its key, once and again, asked for from another thread and on that of its shard.
fn got(database: &Database, key: &[Value], row: &[Value]) -> Vec<Vec<Values>> {
    let table = database.tables().remove(0);
    let point = (key.to_vec(), row.to_vec());
    let get = |table: &Table| table.get(point.0.clone(), point.1.clone());
    let mut rows: Vec<Option<Row>> = (0..2).map(|_| get(&table).wait().unwrap()).collect();
    rows.extend(table.get_many([point.clone(), point.clone()]).wait().unwrap());
    let shard = table.shard_of(key.to_vec()).unwrap();
    let within = (0..2).map(|_| get(&table)).collect::<Vec<_>>();
    let work = async move || {
        let mut rows = Vec::new();
        for pending in within {
            rows.push(pending.await?);
        }
        Ok(rows)
    };
    rows.extend(database.run_on(shard, work).wait().unwrap());
    rows.iter().map(|row| found(row.as_slice())).collect()
}

fn raw(values: impl IntoIterator<Item = Vec<u8>>) -> siltstone::database::Values {
    values.into_iter().map(Value::Raw).collect::<Vec<_>>().into_values()
}

fn check(database: &Database, statements: &Statements, oracle: &Oracle, now: i64, random: &mut Random) {
    let table = &database.tables().remove(0);
    let limit = *random.one_of(&[1, 3, 1000]);
    assert_eq!(
        scanned(table, limit, now),
        expected(&oracle.rows(now), table, statements),
        "a scan by {limit}"
    );
    for key in oracle.keys() {
        let values = raw(key_parts(key, statements.partition.len()));
        check_a_row(database, statements, oracle, key, random);
        for way in [Direction::Forward, Direction::Reverse] {
            let mut slice = Slice::all().limit(limit).at(now);
            if way == Direction::Reverse {
                slice = slice.reverse();
            }
            let all = oracle.slice(key, &model::Slice::all(), way, now);
            assert_eq!(
                sliced(table, &values, &slice),
                expected(&all, table, statements),
                "{way:?} by {limit}"
            );
            if statements.clustering.is_empty() {
                continue;
            }
            let clustering = statements.random_row(random);
            let prefix: Vec<Vec<u8>> = clustering.values.iter().flatten().map(|v| v.to_vec()).collect();
            let of_row = model::Slice::of_prefix(clustering);
            let row = oracle.slice(key, &of_row, way, now);
            let at = Bound::Including(raw(prefix));
            let slice = slice.from(at.clone()).to(at);
            assert_eq!(sliced(table, &values, &slice), expected(&row, table, statements), "a row, {way:?}");
        }
    }
}

/// Rows by their keys are as of the machine's clock.
fn check_a_row(
    database: &Database,
    statements: &Statements,
    oracle: &Oracle,
    key: &PartitionKey,
    random: &mut Random,
) {
    let all = oracle.slice(key, &model::Slice::all(), Direction::Forward, siltstone::now());
    let some = (!all.is_empty()).then(|| random.one_of(&all).clustering.clone()).flatten();
    for clustering in [some.unwrap_or_else(|| statements.random_row(random)), statements.random_row(random)] {
        let row: Vec<Vec<u8>> = clustering.values.iter().flatten().map(|value| value.to_vec()).collect();
        if row.len() < statements.clustering.len() {
            continue;
        }
        let is_it = |selected: &&Selected| {
            row.is_empty() || selected.clustering.as_ref().is_some_and(|at| *at == clustering)
        };
        let one: Vec<Selected> = all.iter().filter(is_it).cloned().collect();
        let one = expected(&one, &database.tables()[0], statements);
        let rows = got(database, &raw(key_parts(key, statements.partition.len())), &raw(row));
        rows.iter().for_each(|row| assert_eq!(*row, one, "a row by its key"));
    }
}

fn try_seed(seed: u64) {
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let random = &mut Random::new(seed);
    let statements = Statements::random(random, 0);
    let mut writer = Writer::new(&statements, random.number());
    let mut oracle = Oracle::new(&statements.schema);
    let background = random.below(2) == 0;
    let mut database = open(folder.path(), background, random);
    // Statements are of a time long ago, and may write what an older tombstone deletes: nothing is forgotten.
    let grace = format!("gc_grace_seconds = {}", statements.gc_grace_seconds);
    let create = statements.create.replace(&grace, "gc_grace_seconds = 2000000000");
    let cql = format!("{};\n{create}", statements.create_types.join(";\n"));
    database.create_table(&cql).wait().unwrap();
    let mut may_be_compacted = background;
    for _ in 0..6 {
        let table = database.tables().remove(0);
        assert_eq!(table.schema(), statements.schema);
        for _ in 0..random.between(1, 40) {
            // What was compacted meanwhile is a tombstone: it wins over what expires later and has the same timestamp.
            if may_be_compacted {
                writer.new_timestamps();
            }
            let mutation = writer.statement().to_mutation(&statements);
            oracle.apply(&mutation);
            table.write_mutation(&mutation).wait().unwrap();
        }
        match random.below(4) {
            0 => table.flush().wait().unwrap(),
            1 => {
                // Of what has one timestamp, all is compacted or nothing.
                table.flush().wait().unwrap();
                table.compact().wait().unwrap();
                may_be_compacted = true;
            }
            2 => {
                drop(database);
                database = open(folder.path(), background, random);
            }
            _ => {}
        }
        // A compaction makes tombstones of what has expired by the machine's clock.
        let now = if may_be_compacted { siltstone::now() } else { writer.now() };
        check(&database, &statements, &oracle, now, random);
    }
    database.close().wait().unwrap();
}

#[test]
fn random_writes_give_what_a_plain_table_gives() {
    let seeds = std::env::var("SILTSTONE_TEST_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    (0..seeds.unwrap_or(SEEDS)).for_each(try_seed);
}
