//! The arguments of the command, a file a subcommand.

mod claim;
mod convert;
mod dump;
mod fences;
mod index;
mod info;
mod lines;
mod perf;
mod progress;
mod read;
mod shape;
mod split;
mod table;
mod verify;
mod warnings;
mod write;

use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::rc::Rc;

use clap::{Args, Parser, Subcommand};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::Result;
use siltstone::error::Error;
use sstable::{OpenOptions, SSTable};

/// For the little of the indexes that scans read. Bytes.
const SCAN_CACHE: usize = 4 << 20;

/// A wide-column database over the SSTables of Cassandra and ScyllaDB.
///
/// Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Siltstone {
    #[command(subcommand)]
    group: Group,
}

#[derive(Debug, Subcommand)]
enum Group {
    /// Look into SSTable files: no cluster and no JVM are needed.
    #[command(subcommand, arg_required_else_help = true)]
    Sstable(Command),
    /// Write and read tables, in the folder of a database or of one table.
    #[command(subcommand, arg_required_else_help = true)]
    Table(table::TableCommand),
    Perf(perf::Perf),
}

#[derive(Debug, Subcommand)]
enum Command {
    Dump(dump::Dump),
    Convert(convert::Convert),
    Split(split::Split),
    Write(write::Write),
    Read(read::Read),
    Info(info::Info),
    Index(index::Index),
    Verify(verify::Verify),
    Fences(fences::Fences),
}

/// The SSTables that a command is about.
#[derive(Debug, Args)]
struct Paths {
    /// A file of an SSTable, such as its Data.db, or what their names begin with, such as oa-7-big, or a folder: the SSTables in
    /// it, by their generations, but not those of the folders inside.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl Siltstone {
    /// Does what the arguments say.
    pub(crate) fn run(self) -> Result<()> {
        warnings::tell();
        let command = match self.group {
            Group::Sstable(command) => command,
            Group::Table(command) => return command.run(),
            Group::Perf(command) => return command.run(),
        };
        match command {
            Command::Dump(command) => command.run(),
            Command::Convert(command) => command.run(),
            Command::Split(command) => command.run(),
            Command::Write(command) => command.run(),
            Command::Read(command) => command.run(),
            Command::Info(command) => command.run(),
            Command::Index(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Fences(command) => command.run(),
        }
    }
}

impl Paths {
    /// The data files, in order. What is passed over is told.
    async fn files(&self, shard: &Shard) -> Result<Vec<PathBuf>> {
        self.tell_passed_over(shard).await;
        siltstone::paths::all_data_files(shard.disk(), &self.paths).await
    }

    async fn tell_passed_over(&self, shard: &Shard) {
        for path in &self.paths {
            // What is wrong with a log is told with the files.
            for file in siltstone::paths::passed_over(shard.disk(), path).await.unwrap_or_default().files {
                let why = "the log of a change of SSTables that was cut off here says that it does not count";
                note(&format!("{} is passed over: {why}", file.display()));
            }
        }
    }

    /// Opens all the SSTables, in order.
    async fn open(&self, shard: &Shard, options: &OpenOptions) -> Result<Vec<Rc<SSTable>>> {
        let mut tables = Vec::new();
        for file in self.files(shard).await? {
            tables.push(SSTable::open(shard.disk(), &file, options).await?);
        }
        Ok(tables)
    }
}

/// Opens the SSTables that paths name, to be read once from end to end.
async fn open_for_scans(shard: &Shard, paths: &[PathBuf]) -> Result<Vec<Rc<SSTable>>> {
    let paths = Paths { paths: paths.to_vec() };
    paths.open(shard, &OpenOptions::new(Cache::new(SCAN_CACHE))).await
}

/// Runs on a shard.
fn on_shard(options: ShardOptions, main: impl AsyncFnOnce(Shard) -> Result<()> + Send) -> Result<()> {
    runtime::run(options, main)?
}

/// Says on stderr what went wrong, and why.
pub(crate) fn complain(error: &Error) {
    note(&error.in_words());
}

/// The number of an option that counts something.
fn positive(text: &str) -> std::result::Result<NonZeroU64, String> {
    text.parse().map_err(|_| "an integer of at least 1 was expected".to_owned())
}

/// A note on stderr that is no error.
fn note(text: &str) {
    // Who has closed stderr does not want to know.
    drop(writeln!(std::io::stderr(), "siltstone: {text}"));
}
