//! Reads: a fixed number of rows or slices of one partition, from where they are: what a program that counts instructions
//! is pointed at.
//!
//! A partition of rows of 200 bytes, uncompressed, in index blocks of a few KiB. Files are read past the page cache of the
//! operating system; with `--direct-io false` through it, so that data is at hand too.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use clap::{Args, ValueEnum};
use model::merge::Direction;
use model::{Bytes, Fragment, PartitionKey, Position, Row, Slice};
use runtime::Cache;
use serde_json::json;
use siltstone::{Error, Result};
use sstable::{Version, WriteOptions};
use storage::commit_log::{LogPosition, TableId};
use storage::row_cache::Known;
use storage::{Caching, Context, Definition, Generations, ReadRequest, Table};

use crate::arguments::{Format, Machine, Printing, VERSION};
use crate::int_rows::{self, apply, clustering, key, schema};
use crate::interrupted;
use crate::random::Random;
use crate::room;
use crate::throughput::{self, Line, Meters, Until};

/// Rows of a slice.
const SLICE: u32 = 100;

/// So many rows, or gaps between them, are read again and again where they are in the row cache.
const HOT: u32 = 50;

/// Rows that are written at a time.
const BATCH: u32 = 1000;

/// Bytes of a value.
const VALUE: usize = 200;

/// Bytes for all that is cached: more than there is.
const CACHE: usize = 1 << 30;

/// The key of the partition.
const KEY: u32 = 7;

/// Partitions of a row each around it, so that an absent one is not known from the first and the last one.
const OTHERS: Range<u32> = 1 << 30..(1 << 30) + 100;

/// Reads of one partition, one after the other, of which each is checked. Columns are those of simple-query.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf reads --from row-cache --what row --operations 100000
  siltstone perf reads --from sstable --what reversed-slice --operations 1000 --output-format json

Exit codes: 0 if all went well, 1 for errors of operations, bad data and I/O errors, 2 for wrong arguments,
130 or 143 for an interrupt.")]
pub struct Reads {
    /// Where it is read from.
    #[arg(long, value_enum, default_value = "row-cache", value_name = "WHERE")]
    from: From,

    /// What is read.
    #[arg(long, value_enum, default_value = "row", value_name = "WHAT")]
    what: What,

    /// How many are read.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u64).range(1..))]
    operations: u64,

    /// Rows of the partition.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1000..=1 << 24))]
    rows: u32,

    /// After how many KiB the index of the partition has a block.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(1..=1024))]
    column_index_size_in_kb: u32,

    #[command(flatten)]
    printing: Printing,

    #[command(flatten)]
    machine: Machine,
}

/// Where rows are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum From {
    /// In the row cache, once they have been read.
    RowCache,
    /// In the memtable, and nowhere else.
    Memtable,
    /// In an SSTable, of which the index is cached, and not in the row cache.
    Sstable,
}

/// What of the partition is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum What {
    /// A row by its key.
    Row,
    /// A row that is not there, between two that are.
    AbsentRow,
    /// A partition that is not there.
    AbsentPartition,
    /// A hundred rows.
    Slice,
    /// A hundred rows, the last one first.
    ReversedSlice,
}

/// The table, and what is read of it.
struct Bench {
    from: From,
    what: What,
    rows: u32,
    random: Random,
    key: PartitionKey,
    table: Table,
}

impl Reads {
    /// Does what the arguments say; results go to `out`.
    ///
    /// # Errors
    /// What cannot be read or written; reads that went wrong.
    pub fn run(&self, out: &mut (dyn Write + Send)) -> Result<()> {
        let folder = room::temporary()?;
        runtime::run(self.machine.shard(), async |shard| {
            let machine = self.machine.found(&shard, folder.path()).await?;
            let context = Context::new(shard.disk().clone(), shard.clock().clone(), Cache::new(CACHE));
            let meters = Meters { disk: context.disk.clone(), cache: context.cache.clone() };
            let bench = self.open(&context, folder.path()).await?;
            let operation = Rc::new(async move || bench.read().await);
            let until = Until::Operations(self.operations);
            let (line, first_error) = throughput::run(&operation, 1, until, &meters).await;
            match self.printing.format {
                Format::Text => writeln!(out, "{}", line.text())?,
                Format::Json => writeln!(out, "{:#}", self.document(machine, &line))?,
            }
            throughput::check(&[line], first_error.as_ref())
        })?
    }

    async fn open(&self, context: &Context, folder: &Path) -> Result<Bench> {
        let definition = Definition::new(TableId([1; 16]), &schema(), Version::Me);
        let column_index_size = self.column_index_size_in_kb << 10;
        let write = WriteOptions { compression: None, column_index_size, ..definition.write };
        let definition = Definition { write, ..definition };
        let table = Table::open(context, folder, definition, &Generations::default()).await?;
        for first in (0..self.rows).step_by(BATCH as usize) {
            interrupted::check()?;
            let rows = (first..self.rows.min(first + BATCH)).map(row).collect();
            apply(&table, KEY, rows);
        }
        for other in OTHERS {
            apply(&table, other, vec![row(0)]);
        }
        if self.from != From::Memtable {
            table.flush(LogPosition::default, async |_, _| Ok(())).await?;
        }
        let (from, what, rows, random) = (self.from, self.what, self.rows, Random::new(1));
        Ok(Bench { from, what, rows, random, key: key(KEY), table })
    }

    fn document(&self, machine: Machine, line: &Line) -> serde_json::Value {
        let name =
            |value: Option<clap::builder::PossibleValue>| value.map(|value| value.get_name().to_owned());
        json!({
            "version": VERSION,
            "from": name(self.from.to_possible_value()),
            "what": name(self.what.to_possible_value()),
            "rows": self.rows,
            "column_index_size_in_kb": self.column_index_size_in_kb,
            "value_size": VALUE,
            "cache_bytes": CACHE,
            "direct_io": machine.direct_io,
            "io_uring": machine.io_uring,
            "line": line.json(),
        })
    }
}

impl Bench {
    async fn read(&self) -> Result<()> {
        let is_hot = self.from == From::RowCache && self.what.rows() < SLICE;
        let first = self.random.below(if is_hot { HOT } else { self.rows - SLICE });
        let found = match self.known(first) {
            Some(found) => found,
            None => self.find(first).await?,
        };
        match found == u64::from(self.what.rows()) {
            true => Ok(()),
            false => Err(Error::Closed(format!("{found} rows were found from {first} on"))),
        }
    }

    /// How many rows have the key of the one that is read, if memory says it: who reads one row asks that first.
    fn known(&self, first: u32) -> Option<u64> {
        let number = match (self.from, self.what) {
            (From::Sstable, _) => return None,
            (_, What::Row) => 2 * first,
            (_, What::AbsentRow) => 2 * first + 1,
            _ => return None,
        };
        match self.table.known_row(self.key.view(), &[&number.to_be_bytes()]) {
            Known::Unknown | Known::OnDisk => None,
            Known::Absent => Some(0),
            Known::Row(row) => {
                let mut place = Fragment::default();
                row.flat().decode(&mut place).is_ok().then_some(1)
            }
        }
    }

    async fn find(&self, first: u32) -> Result<u64> {
        let mut request = ReadRequest::new(self.key.clone(), self.slice(first));
        request.static_row = false;
        if self.from == From::Sstable {
            request.caching = Caching::Bypass;
        }
        match self.what {
            What::AbsentPartition => request.key = key(first + KEY + 1),
            What::ReversedSlice => request.direction = Direction::Reverse,
            What::Row | What::AbsentRow | What::Slice => {}
        }
        let mut stream = self.table.read(&request).await?;
        Ok(int_rows::count(&mut stream, None).await?)
    }

    fn slice(&self, first: u32) -> Slice {
        match self.what {
            What::Row | What::AbsentPartition => Slice::of_prefix(clustering(2 * first)),
            What::AbsentRow => Slice::of_prefix(clustering(2 * first + 1)),
            What::Slice | What::ReversedSlice => Slice {
                start: Position::before(clustering(2 * first)),
                end: Position::after(clustering(2 * (first + SLICE - 1))),
            },
        }
    }
}

impl What {
    /// How many rows are found.
    fn rows(self) -> u32 {
        match self {
            What::Row => 1,
            What::AbsentRow | What::AbsentPartition => 0,
            What::Slice | What::ReversedSlice => SLICE,
        }
    }
}

/// Rows have even clustering keys, so that odd ones are absent.
fn row(number: u32) -> Row {
    int_rows::row(clustering(2 * number), 1, Bytes::from(vec![number as u8; VALUE]))
}
