//! `siltstone table load`: rows as JSON lines or CSV into a table.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use siltstone::load::{Form, LoadOptions, load};
use siltstone::{Error, Result};

use super::{Opened, Place, time};
use crate::command::lines::say;
use crate::command::progress::Progress;

/// How much of a file is read at a time. Bytes.
const READ_BUFFER: usize = 256 << 10;

/// Write rows that come as JSON lines or CSV.
///
/// A JSON line is an object by column, or a line as sstable dump --format jsonl prints it. CSV has the names of the columns
/// in its first line; a file whose name ends with .csv is read so.
///
/// When the command ends well, all rows are durable. Where a line is wrong, it is named; the rows before it are written then, but for
/// range tombstones of which only one end has come. In CSV an empty field without quotes is left out: it deletes nothing, as null does in JSON.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table load /data ks.users --in users.jsonl
  siltstone table load /data ks.users --in users.csv --timestamp 2024-01-01T00:00:00Z
  siltstone table scan /backup/users-7b8c | siltstone table load /data ks.users --skip-nulls --in -
  siltstone sstable dump --format jsonl /backup/users-7b8c | siltstone table load /data ks.users --in -

Exit codes: 0 if all went well, 1 for bad lines and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Load {
    #[command(flatten)]
    place: Place,

    /// The table, unless DIR is the folder of one.
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// The rows, - for the standard input. May be given several times.
    #[arg(long = "in", required = true, value_name = "FILE")]
    inputs: Vec<PathBuf>,

    /// Read CSV, whatever the names of the files are.
    #[arg(long)]
    csv: bool,

    /// The timestamp of what has none, in microseconds or as 2023-11-14T22:13:20Z. Default now.
    #[arg(long, value_name = "TIME", value_parser = timestamp, allow_hyphen_values = true)]
    timestamp: Option<i64>,

    /// Leave columns that are null as they are, in the place of deleting them: for rows that a scan has printed, which have null for each column without a value.
    /// Lines of dumps say themselves what is deleted.
    #[arg(long)]
    skip_nulls: bool,
}

impl Load {
    pub(super) fn run(self) -> Result<()> {
        let Opened { database, table, .. } = self.place.open_only(self.table, false)?;
        let mut rows = 0;
        for path in &self.inputs {
            let (mut lines, bytes) = open(path)?;
            let mut progress = Progress::always("loading", bytes);
            let form = if self.csv { Form::Csv } else { Form::of(path) };
            let options = LoadOptions { form, timestamp: self.timestamp, skip_nulls: self.skip_nulls };
            rows += load(&table, path, &mut *lines, options, &mut |done| progress.set(done))?;
        }
        table.flush().wait()?;
        database.close().wait()?;
        say(&format!("{rows} rows"))
    }
}

/// The lines of a file, and how many bytes they have; 0 where that is not known.
fn open(path: &Path) -> Result<(Box<dyn BufRead>, u64)> {
    if path == Path::new("-") {
        return Ok((Box::new(BufReader::with_capacity(READ_BUFFER, io::stdin())), 0));
    }
    let unreadable = |error: io::Error| Error::file(path, format!("it cannot be read: {error}"));
    let file = File::open(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
    let bytes = if facts.is_file() { facts.len() } else { 0 };
    Ok((Box::new(BufReader::with_capacity(READ_BUFFER, file)), bytes))
}

/// Microseconds, as a number or as text.
fn timestamp(text: &str) -> std::result::Result<i64, String> {
    time(text, "microseconds", 1)
}
