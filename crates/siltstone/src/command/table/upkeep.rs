//! `siltstone table create`, `flush`, `compact`, `stats`, `snapshot` and `drop`.

use std::path::{Path, PathBuf};

use clap::Args;
use siltstone::database::{Database, Options};
use siltstone::paths::instead_of_database;
use siltstone::table_schema::TableSchema;
use siltstone::{Error, Result};

use super::{Opened, Place, check_database};
use crate::command::lines::{Lines, say};

/// Make a table. The folder becomes a database if it is none yet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table create /data --schema schema.cql
  siltstone table create /data --schema schema.cql ks.users
  siltstone table create /data --schema 'CREATE TABLE ks.users (name text PRIMARY KEY, age int)'

Exit codes: 0 if all went well, 1 for bad statements and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Create {
    /// The folder of the database; made where it is missing.
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The table, where the schema has several: with its keyspace, or without.
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// A file with the CREATE TABLE statement, and CREATE TYPE statements before it, or the statement itself. What DESCRIBE prints may be given as
    /// it is. With CREATE TABLE IF NOT EXISTS a table that is there is left as it is.
    #[arg(long, value_name = "FILE|CQL")]
    schema: String,
}

/// Write what is in the log into SSTables.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table flush /data ks.users

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Flush {
    #[command(flatten)]
    place: Place,

    /// The table, unless DIR is the folder of one.
    #[arg(value_name = "TABLE")]
    table: Option<String>,
}

/// Merge all SSTables of a table, and leave out what was deleted long enough ago.
///
/// The new SSTables are of version me, which Cassandra from 3.11.11 on and ScyllaDB from 5.1 on read, or of a later one where me cannot hold the rows; to have
/// them in another one there is sstable convert. Each thread writes one of its own part of the tokens: with --shards 1 there is
/// one of all, unless the options of the table say otherwise. What merging would not change, as the only SSTable of a table that this command has just
/// written from the log, is left as it is.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table compact /data ks.users
  siltstone table compact /backup/users-7b8c --shards 1

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Compact {
    #[command(flatten)]
    place: Place,

    /// The table, unless DIR is the folder of one.
    #[arg(value_name = "TABLE")]
    table: Option<String>,
}

/// Print what a database counts, in the text format of Prometheus: SSTables and their sizes, and of reads those that opening took. A program that has a
/// database open gets all of it from Database::metrics.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table stats /data

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Stats {
    #[command(flatten)]
    place: Place,
}

/// Make a snapshot of a table as Cassandra does: hard links of all of its SSTables, and schema.cql. Prints its folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table snapshot /data ks.users --name before-the-change
  siltstone table scan /data/data/ks/users-5a1c395eb41f11e59f22ba0be0483c18/snapshots/before-the-change

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Snapshot {
    #[command(flatten)]
    place: Place,

    /// The table, unless DIR is the folder of one.
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// What the snapshot is called.
    #[arg(long, value_name = "NAME")]
    name: String,
}

/// Remove a table and all of its files, save for its snapshots.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table drop /data ks.users

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Drop {
    /// The folder of the database.
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// The table.
    #[arg(value_name = "TABLE")]
    table: String,
}

impl Create {
    pub(super) fn run(self) -> Result<()> {
        if let Some(what) = instead_of_database(&self.dir).filter(|_| self.dir.exists()) {
            return Err(Error::file(&self.dir, what));
        }
        let path = Path::new(&self.schema);
        let text = match path.is_file() {
            true => std::fs::read_to_string(path)
                .map_err(|error| Error::file(path, format!("it cannot be read: {error}")))?,
            false if self.schema.contains(' ') => self.schema.clone(),
            false => return Err(Error::file(path, "there is no such file")),
        };
        let named = if path.is_file() { path } else { Path::new("statement") };
        let cql = TableSchema::statements_of(named, &text, self.table.as_deref())?;
        TableSchema::parse(named, &text, self.table.as_deref())?;
        let database = Database::open(&self.dir, Options::default()).wait()?;
        let table = database.create_table(&cql).wait()?;
        let folder = table.folder().display().to_string();
        database.close().wait()?;
        say(&folder)
    }
}

impl Flush {
    pub(super) fn run(self) -> Result<()> {
        let Opened { database, table, .. } = self.place.open_only(self.table, false)?;
        table.flush().wait()?;
        database.close().wait()
    }
}

impl Compact {
    pub(super) fn run(self) -> Result<()> {
        let Opened { database, table, .. } = self.place.open_only(self.table, false)?;
        table.flush().wait()?;
        table.compact().wait()?;
        database.close().wait()
    }
}

impl Stats {
    pub(super) fn run(self) -> Result<()> {
        let database = self.place.database(None, true)?;
        let metrics = database.metrics().wait()?;
        database.close().wait()?;
        Lines::new().print(&metrics)
    }
}

impl Snapshot {
    pub(super) fn run(self) -> Result<()> {
        let Opened { database, table, .. } = self.place.open_only(self.table, false)?;
        let folder = table.snapshot(&self.name).wait()?;
        database.close().wait()?;
        say(&folder.display().to_string())
    }
}

impl Drop {
    pub(super) fn run(self) -> Result<()> {
        check_database(&self.dir)?;
        let database = Database::open(&self.dir, Options::default()).wait()?;
        database.drop_table(&self.table).wait()?;
        database.close().wait()
    }
}
