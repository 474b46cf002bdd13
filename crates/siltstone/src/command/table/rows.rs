//! `siltstone table get`, `slice` and `scan`: rows as a `SELECT` gives them.

use std::io::{self, BufWriter, Write as _};
use std::num::NonZeroU64;

use clap::Args;
use model::hex::to_hex;
use siltstone::database::{Bound, ColumnKind, Page, Row, Table, Value};
use siltstone::{Error, Result, database};

use super::{Opened, Place, count, named, time, values};
use crate::command::{note, positive};

/// Print a row by its whole key, as a JSON object by column.
///
/// Where there is no such row, a note on stderr says so, and the exit code is 0.
#[derive(Debug, Args)]
#[command(
    override_usage = "siltstone table get [OPTIONS] <DIR> [TABLE] <KEY> [CLUSTERING]",
    after_help = "\
Examples:
  siltstone table get /data ks.users alice
  siltstone table get /data ks.events alice '[\"2024-01-31T12:00:00Z\"]' --columns what,size
  siltstone table get /backup/users-7b8c '[\"alice\", 7]'

A key of one column is written as its text, one of several as a JSON array. A blob is hexadecimal, with 0x.

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments."
)]
pub(in crate::command) struct Get {
    #[command(flatten)]
    place: Place,

    /// The table, unless DIR is the folder of one; the partition key; the clustering key, if the table has one.
    #[arg(value_name = "[TABLE] KEY [CLUSTERING]", required = true, num_args = 1..=3, allow_negative_numbers = true)]
    arguments: Vec<String>,

    #[command(flatten)]
    shape: Shape,
}

/// Print rows of a partition, as JSON objects by column.
#[derive(Debug, Args)]
#[command(
    override_usage = "siltstone table slice [OPTIONS] <DIR> [TABLE] <KEY>",
    after_help = "\
Examples:
  siltstone table slice /data ks.events alice --limit 10
  siltstone table slice /data ks.events alice --from 2024-01-01 --to 2024-01-31 --reverse
  siltstone table slice /backup/events-1f alice --from '[\"2024-01-01\", 7]'

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments."
)]
pub(in crate::command) struct Slice {
    #[command(flatten)]
    place: Place,

    /// The table, unless DIR is the folder of one; the partition key.
    #[arg(value_name = "[TABLE] KEY", required = true, num_args = 1..=2, allow_negative_numbers = true)]
    arguments: Vec<String>,

    /// The first row, or the first columns of its clustering key: one value as text, or a JSON array. The order is that of
    /// the table: where a column descends, the greatest value comes first.
    #[arg(long, value_name = "CLUSTERING", allow_hyphen_values = true)]
    from: Option<String>,

    /// The last row, included; written as --from is.
    #[arg(long, value_name = "CLUSTERING", allow_hyphen_values = true)]
    to: Option<String>,

    /// From the last row to the first.
    #[arg(long)]
    reverse: bool,

    /// At most so many rows.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    limit: Option<NonZeroU64>,

    #[command(flatten)]
    shape: Shape,
}

/// Print all rows of a table in the order of their tokens, as JSON objects by column.
///
/// Timestamps and expiry are not told: sstable dump --format jsonl tells them. table load reads what is printed; a column without a value is null, which it
/// would delete, so that --skip-nulls goes with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone table scan /data ks.users > users.jsonl
  siltstone table scan /backup/users-7b8c --limit 10
  siltstone table scan /data users --from-token -100 --to-token 100 --raw

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(in crate::command) struct Scan {
    #[command(flatten)]
    place: Place,

    /// The table, unless DIR is the folder of one.
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// Partitions from this token on.
    #[arg(long, value_name = "TOKEN", default_value_t = i64::MIN, hide_default_value = true, allow_hyphen_values = true, value_parser = token)]
    from_token: i64,

    /// Partitions up to this token, included.
    #[arg(long, value_name = "TOKEN", default_value_t = i64::MAX, hide_default_value = true, allow_hyphen_values = true, value_parser = token)]
    to_token: i64,

    /// At most so many rows.
    #[arg(long, value_name = "N", value_parser = positive, allow_negative_numbers = true)]
    limit: Option<NonZeroU64>,

    #[command(flatten)]
    shape: Shape,
}

/// What of a row is printed, and how.
#[derive(Debug, Args)]
struct Shape {
    /// These columns only, with commas between them. Default all.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Option<Vec<String>>,

    /// Print values as the hexadecimal digits of their bytes, and each row with its token:
    /// {"token":7,"raw":{"k":"00000001","v":null}}.
    #[arg(long)]
    raw: bool,

    /// What has expired by this time, in seconds since 1970 or as 2023-11-14T22:13:20Z, is left out. Default now.
    #[arg(long, value_name = "TIME", allow_negative_numbers = true, value_parser = seconds)]
    at: Option<i64>,
}

impl Get {
    pub(super) fn run(self) -> Result<()> {
        let Opened { database, table, rest } = self.place.open(self.arguments, true)?;
        let columns = count(&table, ColumnKind::Clustering);
        let clustering = |text: &String| values("CLUSTERING", text, columns);
        let (key, clustering) = match &rest[..] {
            [key] => (key_of(&table, key)?, Vec::new()),
            [key, given] => (key_of(&table, key)?, clustering(given)?),
            _ => return Err(not_one_key(&rest)),
        };
        if clustering.len() != columns {
            let what = format!("{} has {columns} clustering columns, not {}", table.name(), clustering.len());
            return Err(Error::Usage(what));
        }
        let at = if columns == 0 { Bound::Open } else { Bound::including(clustering) };
        let slice = self.shape.of_slice(&table, database::Slice::all().from(at.clone()).to(at));
        let mut printer = Printer::new(Some(1), self.shape.raw);
        printer.print(&table.slice(key, slice.limit(1)).wait()?)?;
        printer.finish()?;
        if printer.rows == 0 {
            note("there is no such row");
        }
        database.close().wait()
    }
}

impl Slice {
    pub(super) fn run(self) -> Result<()> {
        let Opened { database, table, rest } = self.place.open(self.arguments, true)?;
        let [key] = &rest[..] else {
            return Err(not_one_key(&rest));
        };
        let columns = count(&table, ColumnKind::Clustering);
        let bound = |what: &str, text: &Option<String>| match text {
            Some(text) => Ok::<_, Error>(Bound::including(values(what, text, columns)?)),
            None => Ok(Bound::Open),
        };
        let (from, to) = (bound("--from", &self.from)?, bound("--to", &self.to)?);
        let key = key_of(&table, key)?;
        let mut slice = self.shape.of_slice(&table, database::Slice::all().from(from).to(to));
        if self.reverse {
            slice = slice.reverse();
        }
        let mut printer = Printer::new(self.limit.map(NonZeroU64::get), self.shape.raw);
        let mut next = None;
        loop {
            let page = slice.clone().limit(printer.due()).resume(next);
            let page = table.slice(key.clone(), page).wait()?;
            printer.print(&page)?;
            next = page.next.filter(|_| !printer.is_done());
            if next.is_none() {
                break;
            }
        }
        printer.finish()?;
        if printer.rows == 0 {
            note(match (&self.from, &self.to) {
                (Some(_), Some(_)) => "there are no such rows, from --from to --to in the order of the table",
                _ => "there are no such rows",
            });
        }
        database.close().wait()
    }
}

impl Scan {
    pub(super) fn run(self) -> Result<()> {
        let Opened { database, table, .. } = self.place.open_only(self.table, true)?;
        let mut scan = database::Scan::all().tokens(self.from_token..=self.to_token);
        if let Some(columns) = &self.shape.columns {
            scan = scan.columns(named(&table, columns));
        }
        if let Some(at) = self.shape.at {
            scan = scan.at(at);
        }
        let mut printer = Printer::new(self.limit.map(NonZeroU64::get), self.shape.raw);
        let mut next = None;
        loop {
            let page = table.scan(scan.clone().limit(printer.due()).resume(next)).wait()?;
            printer.print(&page)?;
            next = page.next.filter(|_| !printer.is_done());
            if next.is_none() {
                break;
            }
        }
        printer.finish()?;
        if self.from_token > self.to_token {
            note("no rows: --from-token lies behind --to-token");
        }
        database.close().wait()
    }
}

impl Shape {
    fn of_slice(&self, table: &Table, mut slice: database::Slice) -> database::Slice {
        if let Some(columns) = &self.columns {
            slice = slice.columns(named(table, columns));
        }
        if let Some(at) = self.at {
            slice = slice.at(at);
        }
        slice
    }
}

/// What is wrong with the arguments behind DIR and TABLE.
fn not_one_key(rest: &[String]) -> Error {
    Error::Usage(match rest {
        [] => "KEY is missing".to_owned(),
        _ => {
            let all = rest.join(" ");
            format!(
                "there is too much behind DIR and TABLE: {all}. TABLE is left out where DIR is the folder of one, and a key of several columns is a JSON array"
            )
        }
    })
}

/// The partition key that an argument spells.
fn key_of(table: &Table, text: &str) -> Result<Vec<Value>> {
    values("KEY", text, count(table, ColumnKind::PartitionKey))
}

fn token(text: &str) -> std::result::Result<i64, String> {
    text.parse().map_err(|_| "a token is an integer of 64 bits".to_owned())
}

/// Seconds since 1970, as a number or as text.
fn seconds(text: &str) -> std::result::Result<i64, String> {
    time(text, "seconds", 1_000_000)
}

/// Prints rows, up to a limit.
struct Printer {
    out: BufWriter<io::StdoutLock<'static>>,
    limit: Option<u64>,
    is_raw: bool,
    rows: u64,
}

impl Printer {
    fn new(limit: Option<u64>, is_raw: bool) -> Printer {
        Printer { out: BufWriter::with_capacity(64 << 10, io::stdout().lock()), limit, is_raw, rows: 0 }
    }

    /// How many rows the next page may have.
    fn due(&self) -> usize {
        let left = self.limit.map_or(u64::MAX, |limit| limit - self.rows);
        usize::try_from(left).unwrap_or(usize::MAX).min(database::PAGE_ROWS)
    }

    fn is_done(&self) -> bool {
        self.limit.is_some_and(|limit| self.rows >= limit)
    }

    fn print(&mut self, page: &Page) -> Result<()> {
        for row in &page.rows {
            let line = if self.is_raw { raw(row) } else { row.to_json()? };
            writeln!(self.out, "{line}")?;
            self.rows += 1;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }
}

/// A row with the bytes of its values.
fn raw(row: &Row) -> String {
    let mut line = format!("{{\"token\":{},\"raw\":{{", row.token());
    for (at, (column, value)) in row.columns().iter().zip(row.values()).enumerate() {
        line.push_str(if at == 0 { "" } else { "," });
        model::types::quote(&column.name, &mut line);
        match value {
            Some(value) => line.push_str(&format!(":\"{}\"", to_hex(value))),
            None => line.push_str(":null"),
        }
    }
    line.push_str("}}");
    line
}
