//! `siltstone sstable write`: lines of JSON into a new SSTable.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use clap::Args;
use model::types::parse_instant;
use runtime::ShardOptions;
use siltstone::table_options::write_options;
use siltstone::table_schema::TableSchema;
use siltstone::write::{Input, Job, Step, write};
use siltstone::{Error, Result};
use sstable::Version;
use sstable::data::row::Family;

use super::claim::Claim;
use super::lines::say;
use super::on_shard;
use super::progress::Progress;
use super::shape::{Shape, told, version};

/// How much of a file of lines is read at a time. Bytes.
const READ_BUFFER: usize = 256 << 10;

/// The path that stands for the standard input.
const STDIN: &str = "-";

/// Write rows that come as JSON lines into a new SSTable.
///
/// A line is a row, a static row, a partition or a range tombstone, as dump --format jsonl prints them, with or without
/// all that a dump tells; docs/formats/json-lines.md says what stands for what is missing. The lines may come in any order,
/// and several of one row are merged. The columns come from a schema: CQL, such as that of DESCRIBE or the schema.cql
/// of a snapshot, or JSON. Its compression, bloom_filter_fp_chance and min_index_interval are the defaults of the options
/// below.
///
/// What the version cannot hold is refused with file and line. The new files appear together, or not at all. Memory stays
/// small whatever the size: rows beyond 64 MiB are sorted in temporary files in DEST.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable write --schema schema.cql --table users --in users.jsonl /new/users
  siltstone sstable dump --format jsonl /backup/users-7b8c | siltstone sstable write --schema schema.cql --in - --to nb /new
  siltstone sstable write --schema users.json --in rows.jsonl --timestamp 2024-01-01T00:00:00Z --for scylla /new

Exit codes: 0 if all went well, 1 for bad lines, I/O errors and what the version cannot hold, 2 for wrong arguments.")]
pub(super) struct Write {
    /// What the table is: CQL, or JSON if it begins with a brace.
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,

    /// Which table of the schema, with or without its keyspace. May be left out where there is but one.
    #[arg(long, value_name = "NAME")]
    table: Option<String>,

    /// The lines, - for the standard input. May be given several times: the lines of all go into one SSTable.
    #[arg(long = "in", required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,

    /// The folder of the new SSTable; made where it is missing.
    #[arg(value_name = "DEST")]
    dest: PathBuf,

    /// The version of the new SSTable.
    #[arg(long, value_name = "VERSION", default_value = "me", value_parser = version)]
    to: Version,

    /// The timestamp of what has none, in microseconds or as 2023-11-14T22:13:20Z. Default none: then that is an error.
    #[arg(long, value_name = "TIME", value_parser = timestamp, allow_hyphen_values = true)]
    timestamp: Option<i64>,

    #[command(flatten)]
    shape: Shape,
}

impl Write {
    pub(super) fn run(self) -> Result<()> {
        let target = self.shape.target(self.to, Family::Cassandra)?;
        let text = std::fs::read_to_string(&self.schema).map_err(|error| unreadable(&self.schema, &error))?;
        let table = TableSchema::parse(&self.schema, &text, self.table.as_deref())?;
        let options = write_options(&self.schema, &table, &target)?;
        on_shard(ShardOptions::default(), async move |shard| {
            let job = Job {
                default_timestamp: self.timestamp,
                ..Job::new(Rc::new(table.schema), self.to, options)
            };
            let (inputs, total) = open(&self.inputs)?;
            let _claim = Claim::of(&self.dest)?;
            let mut reading = Some(Progress::always("reading", total));
            let mut merging: Option<Progress> = None;
            let mut tell = |step: Step| match step {
                Step::Reading(done) => reading.iter_mut().for_each(|progress| progress.set(done)),
                Step::Merging(done, total) => {
                    reading = None;
                    merging.get_or_insert_with(|| Progress::always("merging", total)).set_of(done, total);
                }
            };
            let outcome = write(shard.disk(), &job, inputs, &self.dest, &mut tell).await?;
            drop((reading, merging));
            say(&told(&outcome.written, Some(outcome.rows)))
        })
    }
}

/// The inputs, and how many bytes they have; 0 where that is not known.
fn open(paths: &[PathBuf]) -> Result<(Vec<Input>, u64)> {
    let mut inputs = Vec::new();
    let mut total = Some(0);
    for path in paths {
        if path == Path::new(STDIN) {
            let lines = Box::new(BufReader::with_capacity(READ_BUFFER, io::stdin()));
            inputs.push(Input { path: PathBuf::from("stdin"), lines });
            total = None;
            continue;
        }
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let len = file.metadata().ok().filter(|facts| facts.is_file()).map(|facts| facts.len());
        total = total.zip(len).map(|(total, len)| total + len);
        let lines = Box::new(BufReader::with_capacity(READ_BUFFER, file));
        inputs.push(Input { path: path.clone(), lines });
    }
    Ok((inputs, total.unwrap_or(0)))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::file(path, format!("it cannot be read: {error}"))
}

/// Microseconds, as a number or as text.
fn timestamp(text: &str) -> std::result::Result<i64, String> {
    let micros = text.parse().ok().or_else(|| parse_instant(text));
    micros
        .ok_or_else(|| "microseconds since 1970 were expected, or a time as 2023-11-14T22:13:20Z".to_owned())
}
