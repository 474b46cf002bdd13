//! Simple query: one row, read or written again and again by its key, and what that costs.
//!
//! ```text
//! fill      partitions ──► memtables, SSTables
//! measure   bench, by many workers at once ──► a line a second ──► median
//! ```

pub mod bench;
pub mod rows;

use std::io::Write;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use runtime::Shard;
use serde_json::{Value, json};
use siltstone::{Error, Result};
use sstable::Version;

use self::bench::{Bench, Mode, Setup};
use crate::arguments::{Format, Machine, memory, positive, some_seconds, versions};
use crate::throughput::{self, Line, Summary, Until};
use crate::{interrupted, room};

/// How often it is told how far the table is filled in, which takes long where memory has room for a few rows only.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many operations are under way at once, as in the published runs, unless another number is asked for.
pub(crate) const CONCURRENCY: u32 = 100;

/// Point reads or writes of rows of five columns with 34 bytes each.
///
/// A store of one shard is filled in a temporary folder, TMPDIR, and used by many at once; what a read finds is compared
/// with what was written. A line a second, and their median at the end.
///
/// Columns: tps, operations a second; allocs, allocations of the shard's thread; logallocs, values that were taken into the
/// caches; tasks, how often the shard turned to an operation; errors, operations that failed or found something else.
/// insns and cycles, instructions and cycles of that thread outside of the kernel, by the counters of the processor. What
/// is not known is -: most virtual machines have no such counters, and cargo xtask instructions counts without them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf simple-query --flush
  siltstone perf simple-query --memory 200M --partitions 1000000
  siltstone perf simple-query --memory 200M --partitions 100000 --flush --enable-cache 0 --enable-index-cache 0
  siltstone perf simple-query --write --operations 100000 --concurrency 1 --output-format json

Exit codes: 0 if all went well, 1 for errors of operations, bad data and I/O errors, 2 for wrong arguments.")]
pub struct SimpleQuery {
    /// Measure writes.
    #[arg(long, conflicts_with = "delete")]
    write: bool,

    /// Measure deletions of all columns. There are none of counters.
    #[arg(long, conflicts_with = "counters")]
    delete: bool,

    /// Have counters in the columns; a write adds to them.
    #[arg(long)]
    counters: bool,

    /// Flush what was filled in to SSTables before it is measured. What memory has no room for is there anyhow. For --write nothing is
    /// filled in.
    #[arg(long)]
    flush: bool,

    /// Neither take rows from the row cache nor put them into it.
    #[arg(long)]
    bypass_cache: bool,

    /// Use one partition only.
    #[arg(long)]
    query_single_key: bool,

    /// How many partitions there are.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..))]
    partitions: u32,

    /// How many operations are under way at once.
    #[arg(long, value_name = "N", default_value_t = CONCURRENCY, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: u32,

    /// Memory of the store, from 96K on: a half for caches, a third for memtables, a sixth for reads under way.
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = memory)]
    memory: usize,

    /// Whether rows are kept in memory.
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    enable_cache: bool,

    /// Whether indexes are kept in memory.
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    enable_index_cache: bool,

    /// Bytes of summary for each byte of data: how large the pages of the index are, where there are no fences.
    #[arg(long, value_name = "RATIO", default_value = "0.0005", value_parser = positive)]
    sstable_summary_ratio: f64,

    /// Whether fences are written. Where there are any, the summary is not asked.
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    fences: bool,

    /// The version of SSTables.
    #[arg(long, value_name = "VERSION", default_value = "me", value_parser = versions())]
    sstable_format: Version,

    /// For how many seconds it is measured.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = some_seconds)]
    duration: Duration,

    /// Measure so many operations instead, on one line.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with = "duration")]
    operations: Option<u64>,

    /// How the results are printed. JSON is printed at the end.
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    output_format: Format,

    #[command(flatten)]
    machine: Machine,
}

impl SimpleQuery {
    /// Does what the arguments say; results go to `out`.
    ///
    /// # Errors
    /// What cannot be read or written; operations that went wrong.
    pub fn run(&self, out: &mut (dyn Write + Send)) -> Result<()> {
        let folder = room::temporary()?;
        runtime::run(self.machine.shard(), async |shard| {
            let machine = self.machine.found(shard.disk(), folder.path()).await?;
            let lines = self.measure(&shard, (folder.path(), machine), out).await?;
            if self.output_format == Format::Json {
                writeln!(out, "{:#}", self.document(machine, &lines))?;
            }
            match lines.iter().map(|line| line.errors).sum::<u64>() {
                0 => Ok(()),
                wrong => Err(Error::file(folder.path(), format!("{wrong} operations went wrong"))),
            }
        })?
    }

    async fn measure(
        &self,
        shard: &Shard,
        (folder, machine): (&std::path::Path, Machine),
        out: &mut (dyn Write + Send),
    ) -> Result<Vec<Line>> {
        let is_text = self.output_format == Format::Text;
        if is_text {
            writeln!(out, "Running test with config: {}", self.config(machine))?;
        }
        let bench = Rc::new(Bench::open(shard, folder, &self.setup()).await?);
        if self.is_filled() {
            self.fill(&bench).await?;
            if is_text {
                let (count, bytes) = bench.sstables();
                writeln!(
                    out,
                    "Created {} partitions, {bytes} bytes of data in {count} SSTables",
                    self.partitions
                )?;
            }
        }
        let (operated, meters) = (bench.clone(), bench.meters());
        let operation = Rc::new(async move || operated.operate().await);
        let mut lines = Vec::new();
        interrupted::check()?;
        for until in self.untils() {
            let line = throughput::run(&operation, self.concurrency, until, &meters).await;
            if is_text {
                writeln!(out, "{}", line.text())?;
                out.flush()?;
            }
            lines.push(line);
            if interrupted::is_interrupted() {
                break;
            }
        }
        if is_text {
            write!(out, "\n{}", Summary::new(&lines).text())?;
        }
        bench.close().await?;
        Ok(lines)
    }

    /// Fills the table in; how far that is, is told every few seconds.
    async fn fill(&self, bench: &Bench) -> Result<()> {
        let mut told = Instant::now();
        let tell = |filled: u32| {
            if told.elapsed() >= PATIENCE {
                told = Instant::now();
                eprintln!("{filled} of {} partitions are filled in", self.partitions);
            }
        };
        bench.fill(tell).await
    }

    /// Writes begin with an empty table.
    fn is_filled(&self) -> bool {
        !self.write
    }

    fn untils(&self) -> impl Iterator<Item = Until> + use<> {
        let time = if self.operations.is_none() { self.duration } else { Duration::ZERO };
        let rest = time - Duration::from_secs(time.as_secs());
        let seconds = (0..time.as_secs()).map(|_| Duration::from_secs(1));
        let lines = seconds.chain((!rest.is_zero()).then_some(rest)).map(Until::Elapsed);
        self.operations.map(Until::Operations).into_iter().chain(lines)
    }

    fn mode(&self) -> (Mode, &'static str) {
        match (self.write, self.delete) {
            (true, _) => (Mode::Write, "write"),
            (_, true) => (Mode::Delete, "delete"),
            _ => (Mode::Read, "read"),
        }
    }

    fn setup(&self) -> Setup {
        Setup {
            mode: self.mode().0,
            counters: self.counters,
            partitions: self.partitions,
            query_single_key: self.query_single_key,
            flush: self.flush,
            bypass_cache: self.bypass_cache,
            row_cache: self.enable_cache,
            index_cache: self.enable_index_cache,
            memory: self.memory,
            summary_ratio: self.sstable_summary_ratio,
            fences: self.fences,
            format: self.sstable_format,
        }
    }

    /// The parameters, as the published program prints them, and what else decides.
    fn config(&self, machine: Machine) -> String {
        let yes = |is: bool| if is { "yes" } else { "no" };
        format!(
            "{{partitions={}, concurrency={}, mode={}, query_single_key={}, counters={}, flush={}, memory={}, cache={}, bypass_cache={}, \
             index_cache={}, summary_ratio={}, fences={}, format={}, direct_io={}, io_uring={}, {}}}",
            self.partitions,
            self.concurrency,
            self.mode().1,
            yes(self.query_single_key),
            yes(self.counters),
            yes(self.flush),
            self.memory,
            yes(self.enable_cache),
            yes(self.bypass_cache),
            yes(self.enable_index_cache),
            self.sstable_summary_ratio,
            yes(self.fences),
            self.sstable_format.name(),
            yes(machine.direct_io),
            yes(machine.io_uring),
            match self.operations {
                Some(count) => format!("operations={count}"),
                None => format!("duration={}", self.duration.as_secs_f64()),
            }
        )
    }

    fn document(&self, machine: Machine, lines: &[Line]) -> Value {
        json!({
            "parameters": {
                "partitions": self.partitions,
                "concurrency": self.concurrency,
                "mode": self.mode().1,
                "query_single_key": self.query_single_key,
                "counters": self.counters,
                "flush": self.flush,
                "bypass_cache": self.bypass_cache,
                "memory": self.memory,
                "enable_cache": self.enable_cache,
                "enable_index_cache": self.enable_index_cache,
                "sstable_summary_ratio": self.sstable_summary_ratio,
                "fences": self.fences,
                "sstable_format": self.sstable_format.name(),
                "direct_io": machine.direct_io,
                "io_uring": machine.io_uring,
                "duration": self.operations.is_none().then_some(self.duration.as_secs_f64()),
                "operations": self.operations,
            },
            "stats": Summary::new(lines).json(),
            "lines": lines.iter().map(Line::json).collect::<Vec<Value>>(),
        })
    }
}
