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
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};
use runtime::Shard;
use serde_json::{Map, Value, json};
use siltstone::{Error, Result};
use sstable::Version;

use self::bench::{Bench, Mode, Setup};
use crate::arguments::{Format, Machine, Printing, VERSION, memory, positive, some_seconds, versions};
use crate::numbers::rounded;
use crate::progress::Progress;
use crate::throughput::{self, Line, Summary, Until};
use crate::{interrupted, room};

/// So many operations are under way at once, as in the published runs, unless another number is asked for.
pub(crate) const CONCURRENCY: u32 = 100;

/// Point reads or writes of rows of five columns with 34 bytes each.
///
/// A store of one shard is filled in a temporary folder, TMPDIR, and used by many at once; what a read finds is compared
/// with what was written. A line a second, and their median at the end: of two the upper one.
///
/// Columns: tps, operations a second that went well; allocs, allocations of the shard's thread; logallocs, values that were taken into the
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

Exit codes: 0 if all went well, 1 for errors of operations, bad data and I/O errors, 2 for wrong arguments,
130 or 143 for an interrupt.")]
pub struct SimpleQuery {
    /// Measure writes. Where memory has no room for them, SSTables are compacted meanwhile.
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

    #[command(flatten)]
    printing: Printing,

    #[command(flatten)]
    machine: Machine,
}

/// What came of it.
struct Measured {
    lines: Vec<Line>,
    /// Of an operation.
    first_error: Option<Error>,
    /// Whether reads went by fences, as the SSTables had them at the end.
    fences: Value,
    /// How many of these there were then, and bytes of data in them.
    sstables: (usize, u64),
}

impl SimpleQuery {
    /// Does what the arguments say; results go to `out`.
    ///
    /// # Errors
    /// What cannot be read or written; operations that went wrong.
    pub fn run(&self, out: &mut (dyn Write + Send)) -> Result<()> {
        let folder = room::temporary()?;
        runtime::run(self.machine.shard(), async |shard| {
            let machine = self.machine.found(&shard, folder.path()).await?;
            let measured = self.measure(&shard, (folder.path(), machine), out).await?;
            if self.printing.format == Format::Json {
                writeln!(out, "{:#}", self.document(machine, &measured))?;
            }
            throughput::check(&measured.lines, measured.first_error.as_ref())
        })?
    }

    async fn measure(
        &self,
        shard: &Shard,
        (folder, machine): (&std::path::Path, Machine),
        out: &mut (dyn Write + Send),
    ) -> Result<Measured> {
        let is_text = self.printing.format == Format::Text;
        if is_text {
            writeln!(out, "Running test with config: {}", self.config(machine))?;
        }
        let bench = Rc::new(Bench::open(shard, folder, &self.setup()).await?);
        if self.is_filled() {
            self.fill(&bench).await?;
            if is_text {
                writeln!(out, "{}", self.filled(&bench))?;
            }
        }
        bench.begin_compactions();
        let (operated, meters) = (bench.clone(), bench.meters());
        let operation = Rc::new(async move || operated.operate().await);
        let (mut lines, mut first_error) = (Vec::new(), None);
        interrupted::check()?;
        for until in self.untils() {
            let (line, error) = throughput::run(&operation, self.concurrency, until, &meters).await;
            first_error = first_error.or(error);
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
        let (fences, sstables) = (bench.fences(), bench.sstables());
        bench.close().await?;
        Ok(Measured { lines, first_error, fences, sstables })
    }

    /// Fills the table in, which takes long where memory has room for a few rows only.
    async fn fill(&self, bench: &Bench) -> Result<()> {
        let mut progress = Progress::begin();
        let told = |filled: u32| format!("{filled} of {} partitions are filled in", self.partitions);
        bench.fill(|filled| progress.tell(|| told(filled))).await
    }

    /// What was filled in, and where it is.
    fn filled(&self, bench: &Bench) -> String {
        let (count, bytes) = bench.sstables();
        let fences = match bench.fences() {
            Value::Null => {
                ": they are in memtables, where no option of SSTables or caches matters".to_owned()
            }
            Value::String(told) => format!(", fences: {told}"),
            told => format!(", fences: {told}"),
        };
        format!("Created {} partitions, {bytes} bytes of data in {count} SSTables{fences}", self.partitions)
    }

    /// Writes begin with an empty table.
    fn is_filled(&self) -> bool {
        !self.write
    }

    /// A line is of a second, the last one with what is left of a second behind it.
    fn untils(&self) -> impl Iterator<Item = Until> + use<> {
        let (whole, last) = match self.operations {
            Some(count) => (0, Until::Operations(count)),
            None => {
                let whole = self.duration.as_secs().saturating_sub(1);
                (whole, Until::Elapsed(self.duration - Duration::from_secs(whole)))
            }
        };
        (0..whole).map(|_| Until::Elapsed(Duration::from_secs(1))).chain([last])
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
            concurrency: self.concurrency,
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

    /// The parameters and what else decides, all but direct I/O as it was asked for: how each is called in text, as the published program prints it, and in JSON. Null is
    /// what was not asked for.
    fn parameters(&self, machine: Machine) -> [(&'static str, &'static str, Value); 17] {
        let seconds = self.operations.is_none().then(|| rounded(self.duration.as_secs_f64(), 9));
        [
            ("partitions", "partitions", self.partitions.into()),
            ("concurrency", "concurrency", self.concurrency.into()),
            ("mode", "mode", self.mode().1.into()),
            ("query_single_key", "query_single_key", self.query_single_key.into()),
            ("counters", "counters", self.counters.into()),
            ("flush", "flush", self.flush.into()),
            ("memory", "memory", self.memory.into()),
            ("cache", "enable_cache", self.enable_cache.into()),
            ("bypass_cache", "bypass_cache", self.bypass_cache.into()),
            ("index_cache", "enable_index_cache", self.enable_index_cache.into()),
            ("summary_ratio", "sstable_summary_ratio", self.sstable_summary_ratio.into()),
            ("fences", "fences", self.fences.into()),
            ("format", "sstable_format", self.sstable_format.name().into()),
            ("direct_io", "direct_io", machine.direct_io.into()),
            ("io_uring", "io_uring", machine.io_uring.into()),
            ("operations", "operations", self.operations.into()),
            ("duration", "duration", seconds.into()),
        ]
    }

    /// The parameters as text.
    fn config(&self, machine: Machine) -> String {
        let told = |(name, _, value): (&str, &str, Value)| match value {
            Value::Null => None,
            Value::Bool(is) => Some(format!("{name}={}", if is { "yes" } else { "no" })),
            Value::String(text) => Some(format!("{name}={text}")),
            number => Some(format!("{name}={number}")),
        };
        let told: Vec<String> = self.parameters(machine).into_iter().filter_map(told).collect();
        format!("{{{}}}", told.join(", "))
    }

    fn document(&self, machine: Machine, measured: &Measured) -> Value {
        let parameters = self.parameters(machine).map(|(_, name, value)| (name.to_owned(), value));
        let checked = throughput::check(&measured.lines, measured.first_error.as_ref());
        json!({
            "version": VERSION,
            "parameters": parameters.into_iter().collect::<Map<String, Value>>(),
            "fences": measured.fences,
            "sstables": measured.sstables.0,
            "data_bytes": measured.sstables.1,
            "interrupted": interrupted::is_interrupted(),
            "error": checked.err().map(|error| error.in_words()),
            "stats": Summary::new(&measured.lines).json(),
            "lines": measured.lines.iter().map(Line::json).collect::<Vec<Value>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        simple_query: SimpleQuery,
    }

    fn parsed(arguments: &[&str]) -> SimpleQuery {
        Command::parse_from([&["simple-query"], arguments].concat()).simple_query
    }

    #[test]
    fn less_than_a_second_is_no_line_of_its_own() {
        let seconds = |arguments: &[&str]| -> Vec<f64> {
            let seconds = |until: Until| match until {
                Until::Elapsed(time) => time.as_secs_f64(),
                Until::Operations(count) => panic!("{count} operations"),
            };
            parsed(arguments).untils().map(seconds).collect()
        };
        for (duration, lines) in
            [("3", &[1.0, 1.0, 1.0][..]), ("3.25", &[1.0, 1.0, 1.25]), ("1.5", &[1.5]), ("0.25", &[0.25])]
        {
            assert_eq!(seconds(&["--duration", duration]), lines, "{duration}");
        }
        let operations: Vec<Until> = parsed(&["--operations", "7"]).untils().collect();
        assert_eq!(operations, [Until::Operations(7)]);
    }

    #[test]
    fn parameters_are_the_same_as_text_and_as_json() {
        let machine = Machine { io_uring: true, direct_io: false };
        let lines = vec![Line { operations: 1, ..Line::default() }];
        let measured = Measured { lines, first_error: None, fences: json!("none"), sstables: (1, 700) };
        let of_time =
            parsed(&["--duration", "2.5", "--enable-cache", "0", "--sstable-summary-ratio", "0.005"]);
        let text = "{partitions=10000, concurrency=100, mode=read, query_single_key=no, counters=no, flush=no, memory=1073741824, \
                    cache=no, bypass_cache=no, index_cache=yes, summary_ratio=0.005, fences=yes, format=me, direct_io=no, \
                    io_uring=yes, duration=2.5}";
        assert_eq!(of_time.config(machine), text);
        let json = of_time.document(machine, &measured)["parameters"].clone();
        assert_eq!((&json["enable_cache"], &json["direct_io"]), (&false.into(), &false.into()));
        assert_eq!((&json["operations"], &json["duration"]), (&Value::Null, &json!(2.5)));
        let document = of_time.document(machine, &measured);
        assert_eq!((&document["sstables"], &document["data_bytes"]), (&1.into(), &700.into()));
        let of_count = parsed(&["--operations", "7"]);
        assert!(of_count.config(machine).ends_with(", operations=7}"));
        assert_eq!(of_count.document(machine, &measured)["parameters"]["duration"], Value::Null);
    }
}
