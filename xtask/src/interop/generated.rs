//! Sets that were made just now: random writes, which Cassandra flushes.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use testkit::cassandra::{Node, TableName};
use testkit::generate::{KEYSPACE, generate};

use super::now;
use super::sets::{Set, Table};
use super::writing::copy;
use crate::Result;

/// How many tables there are.
const TABLES: usize = 12;

/// How many SSTables each has.
const FLUSHES: usize = 3;

/// How many statements are run before each flush, for each table.
const STATEMENTS: usize = 100;

/// How many statements the node is given at once.
const AT_ONCE: usize = 200;

/// Has a node run what the seed says, and takes what it flushed.
///
/// # Errors
/// If the node fails, or refuses a statement.
pub fn set(node: &mut Node, seed: u64, folder: &Path, name: &str) -> Result<Set> {
    let generated = generate(seed, TABLES, FLUSHES, STATEMENTS);
    node.schema(&generated.schema)?;
    fs::create_dir_all(folder)?;
    fs::write(folder.join("schema.cql"), &generated.schema)?;
    let tables: Vec<TableName> = generated
        .tables
        .iter()
        .map(|name| TableName { keyspace: KEYSPACE.to_owned(), name: name.clone() })
        .collect();
    for part in &generated.parts {
        for statements in part.chunks(AT_ONCE) {
            node.cql(statements)?;
        }
        for table in &tables {
            node.flush(table)?;
        }
    }
    // What lives for a second is gone.
    thread::sleep(Duration::from_secs(2));
    let now = now();
    let tables = tables.iter().map(|table| flushed(node, table, &folder.join(&table.name), now));
    let mut tables = tables.collect::<Result<Vec<Table>>>()?;
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Set::new(format!("{name} of seed {seed}"), generated.schema, tables, now))
}

/// Copies the SSTables of a table; what a SELECT of them returns is not expected, but asked again.
fn flushed(node: &mut Node, table: &TableName, folder: &Path, now: u64) -> Result<Table> {
    let files = node.files(table)?;
    let data: Vec<PathBuf> = files.iter().map(|data| copy(data, folder)).collect::<Result<_>>()?;
    let written_by = folder.with_extension("rows");
    node.select(table, now, &written_by)?;
    Ok(Table { name: table.name.clone(), data, expected: Some(written_by) })
}
