//! `siltstone table …`: tables in the folder of a database, or the folder of one table.

mod load;
mod rows;
mod upkeep;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use model::types::parse_instant;
use serde_json::Value as Json;
use siltstone::database::{ColumnKind, Database, OnCorruption, Options, Table, Value};
use siltstone::error::json_words;
use siltstone::paths::{instead_of_database, is_of_table};
use siltstone::table_schema::{FolderName, TableSchema, is_name};
use siltstone::{Error, Result};

#[derive(Debug, Subcommand)]
pub(super) enum TableCommand {
    Create(upkeep::Create),
    Load(load::Load),
    Get(rows::Get),
    Slice(rows::Slice),
    Scan(rows::Scan),
    Flush(upkeep::Flush),
    Compact(upkeep::Compact),
    Stats(upkeep::Stats),
    Snapshot(upkeep::Snapshot),
    Drop(upkeep::Drop),
}

/// Where a table is, and how it is opened.
#[derive(Debug, Args)]
struct Place {
    /// The folder of a database, such as a copy of Cassandra's, with data/ in it; or the folder of one table, such as a
    /// snapshot: then TABLE is left out. Never that of a running node, unless the command only reads.
    #[arg(value_name = "DIR")]
    dir: PathBuf,

    /// What the table is, where its folder has no schema.cql: CQL, or JSON if it begins with a brace. Only for the folder
    /// of one table. Without either, the columns of its keys are called key, key2, column1 and so on, and it can only be read.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// How many threads share the work, up to 1024. Default one for each CPU, up to 16.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    shards: Option<u16>,

    /// Open although the commit log is damaged, or has writes of a table whose folder is gone. What is intact and has its table is kept. The
    /// rest is told on stderr, and lost with the first command that does more than read.
    #[arg(long)]
    salvage: bool,
}

/// An open table.
struct Opened {
    database: Database,
    table: Table,
    /// The arguments behind DIR and TABLE.
    rest: Vec<String>,
}

impl TableCommand {
    pub(super) fn run(self) -> Result<()> {
        match self {
            TableCommand::Create(command) => command.run(),
            TableCommand::Load(command) => command.run(),
            TableCommand::Get(command) => command.run(),
            TableCommand::Slice(command) => command.run(),
            TableCommand::Scan(command) => command.run(),
            TableCommand::Flush(command) => command.run(),
            TableCommand::Compact(command) => command.run(),
            TableCommand::Stats(command) => command.run(),
            TableCommand::Snapshot(command) => command.run(),
            TableCommand::Drop(command) => command.run(),
        }
    }
}

impl Place {
    /// Opens the database, or the one table, whose name tells which of several in --schema it is. Who only reads a table of a database opens no
    /// other.
    fn database(&self, table: Option<&str>, read_only: bool) -> Result<Database> {
        let shards = self.shards.map_or(Options::default().shards, usize::from);
        let on_corruption = if self.salvage { OnCorruption::Salvage } else { OnCorruption::Stop };
        let options = Options { read_only, shards, on_corruption, ..Options::default() };
        if !self.is_table() {
            check_database(&self.dir)?;
            if self.schema.is_some() {
                return Err(Error::Usage("--schema is for the folder of one table".to_owned()));
            }
            return match table.filter(|_| read_only) {
                Some(table) => Database::open_table(&self.dir, table, options).wait(),
                None => Database::open(&self.dir, options).wait(),
            };
        }
        let schema = self.schema.as_deref().map(|path| schema_of(path, &self.dir, table)).transpose()?;
        Database::open_table_folder(&self.dir, schema, options).wait()
    }

    /// Opens a table, the name of which is the first argument unless the folder is that of one.
    fn open(&self, arguments: Vec<String>, read_only: bool) -> Result<Opened> {
        // In front of a key there is no name where the folder is that of a table.
        let named = arguments.first().filter(|_| !self.is_table());
        let database = self.database(named.map(String::as_str), read_only)?;
        self.opened(database, arguments)
    }

    fn opened(&self, database: Database, mut arguments: Vec<String>) -> Result<Opened> {
        let table = match self.is_table() {
            true => database.tables().remove(0),
            false if arguments.is_empty() => {
                return Err(Error::Usage(format!("TABLE is missing: {}", tables_of(&database))));
            }
            false => database.table(&arguments.remove(0))?,
        };
        Ok(Opened { database, table, rest: arguments })
    }

    /// The same where nothing stands behind TABLE. It may be named beside its folder too, but no other may.
    fn open_only(&self, table: Option<String>, read_only: bool) -> Result<Opened> {
        let database = self.database(table.as_deref(), read_only)?;
        let opened = self.opened(database, table.into_iter().collect())?;
        let name = opened.table.name();
        let is_it = |given: &String| opened.database.table(given).is_ok();
        match opened.rest.iter().find(|given| !is_it(given)) {
            None => Ok(opened),
            Some(other) => Err(Error::Usage(format!(
                "{} is the folder of the table {name}, not of {other}",
                self.dir.display()
            ))),
        }
    }

    /// Whether this is the folder of one table.
    fn is_table(&self) -> bool {
        is_table(&self.dir)
    }
}

/// Only `create` makes a database: others are told what the folder is.
fn check_database(dir: &Path) -> Result<()> {
    if dir.join("data").is_dir() {
        return Ok(());
    }
    let none = || "it has no data/ and no SSTables: it is neither a database nor a table".to_owned();
    Err(Error::file(dir, instead_of_database(dir).unwrap_or_else(none)))
}

fn is_table(dir: &Path) -> bool {
    // Of one that was only written to by its folder there may be nothing but a log yet.
    let is_part = |name: &std::ffi::OsStr| name == ".siltstone" || is_of_table(&name.to_string_lossy());
    let mut names = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.file_name());
    !dir.join("data").is_dir() && names.any(|name| is_part(&name))
}

fn tables_of(database: &Database) -> String {
    let names: Vec<String> = database.tables().iter().map(Table::name).collect();
    if names.is_empty() { "there are no tables".to_owned() } else { format!("one of {}", names.join(", ")) }
}

/// The schema of the table in a folder. Where the file has several, its name tells which, or that of the folder.
fn schema_of(path: &Path, folder: &Path, table: Option<&str>) -> Result<TableSchema> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::file(path, format!("it cannot be read: {error}")))?;
    let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    TableSchema::parse_of_folder(path, &text, &FolderName::of(&whole), table)
}

/// The values of a key of so many columns: a JSON array, or the text of the one value. `what` is how the arguments call it.
///
/// # Errors
/// [`Error::Usage`] for what begins as an array of several columns and is none.
fn values(what: &str, text: &str, columns: usize) -> Result<Vec<Value>> {
    match serde_json::from_str(text) {
        Ok(Json::Array(items)) => Ok(items.into_iter().map(Value::from).collect()),
        Err(error) if columns > 1 && text.trim_start().starts_with('[') => {
            Err(Error::Usage(format!("{what} {text} is no JSON array: {}", json_words(&error))))
        }
        _ => Ok(vec![Value::Text(text.to_owned())]),
    }
}

/// A time: a number of units since 1970, each of so many microseconds, or as text.
fn time(text: &str, units: &str, micros: i64) -> std::result::Result<i64, String> {
    let instant = || Some(parse_instant(text)?.div_euclid(micros));
    let number = text.parse().ok().or_else(instant);
    number.ok_or_else(|| format!("{units} since 1970 were expected, or a time as 2023-11-14T22:13:20Z"))
}

/// How many columns of a table are of a kind.
fn count(table: &Table, kind: ColumnKind) -> usize {
    table.columns().iter().filter(|column| column.kind == kind).count()
}

/// Columns by their names, which may be in quotes as in CQL. Those that the table does not have are left to it.
fn named(table: &Table, names: &[String]) -> Vec<String> {
    let columns = table.columns();
    let of = |given: &str| columns.iter().find(|column| is_name(given, &column.name));
    let name = |given: &String| of(given.trim()).map_or(given.trim(), |column| &column.name).to_owned();
    names.iter().map(name).collect()
}
