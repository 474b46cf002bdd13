//! Single key: rows that stand in three SSTables, read newest first or from all at once.
//!
//! ```text
//! rows      write ──► three SSTables with the same rows, thrice: one, two or three of them matter
//! load      a constant rate ──► latencies
//! cases     a threshold, a dataset ──► latencies, and how many SSTables each read touched
//! tables    one for a case, or one behind the other where none is to adapt
//! ```

pub mod cases;
pub mod load;
pub mod rows;
mod tables;

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use runtime::{Cache, Shard};
use serde_json::{Value, json};
use siltstone::{Error, Result};
use sstable::Version;
use storage::Table;

use self::cases::{Case, IN_KEYS, Touched};
use self::load::{Latencies, Run, at_rate};
use self::rows::{ROWS_OF_PARTITION, SSTABLES};
use self::tables::Tables;
use crate::arguments::{Format, Machine, Printing, VERSION, rate, some_seconds, versions};
use crate::interrupted;
use crate::numbers::{median, rounded};
use crate::progress::Progress;
use crate::random::Random;
use crate::room;
use crate::throughput::{self, Meters, Until};

/// Of what is sustained at the most, where one SSTable is enough, that share is the constant rate.
const SHARE: f64 = 1.0 / 3.0;

/// No more than this share of what is sustained where all are read at once: above it a stall of the disk, behind which their queues take
/// long to go, would be most of what is measured.
const SHARE_OF_OFF: f64 = 2.0 / 3.0;

/// How often it is found out what is sustained. The middle one of each case counts.
const SAMPLES: usize = 5;

/// For how long at the most, each time.
const SAMPLE: Duration = Duration::from_secs(1);

/// How many reads are under way at once while it is found out what is sustained.
const CONCURRENCY: u32 = 100;

/// Latencies of single rows that stand in three SSTables, at a constant rate.
///
/// The published optimization reads the newest SSTable first, and stops where nothing older can matter. Nothing is kept in
/// memory. Latencies are in milliseconds, from when a read was due; below them stand their ratios to the first case, and
/// how many SSTables a read touched, by the table's own counters, and how many requests the disk had for it. These are checked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf single-key
  siltstone perf single-key --rate 4000 --duration 60
  siltstone perf single-key --cases off,worst,worst-adapted --output-format json

Exit codes: 0 if all went well, 1 for bad data, I/O errors and other counts than there must be, 2 for wrong arguments,
130 or 143 for an interrupt.")]
pub struct SingleKey {
    /// Reads a second. Without it a third of the most that is sustained, which is where one SSTable is enough, and no more
    /// than two thirds of what is sustained where all are read.
    #[arg(long, value_name = "N", value_parser = rate)]
    rate: Option<f64>,

    /// For how long each case is measured.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = some_seconds)]
    duration: Duration,

    /// Rows of each SSTable.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(i64::from(IN_KEYS)..=1 << 24))]
    rows: u32,

    /// Only these cases, and the first one, which all are compared with.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    cases: Vec<Case>,

    /// The version of SSTables.
    #[arg(long, value_name = "VERSION", default_value = "me", value_parser = versions())]
    sstable_format: Version,

    #[command(flatten)]
    printing: Printing,

    #[command(flatten)]
    machine: Machine,
}

/// For how long a case is measured before it is the next one's turn.
const ROUND: Duration = Duration::from_millis(100);

/// A case that comes to less than this share of the rate does not sustain it.
const SUSTAINED: f64 = 0.9;

/// Of so much time it is told, or of all.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// One that comes to less than this share would take ten times as long as was asked for, and tell of nothing but its queue.
const MEASURABLE: f64 = 0.1;

/// Reads a second.
struct Rate {
    due: f64,
    /// What is sustained where one SSTable is enough, and where all are read at once, if that was found out.
    sustained: Option<[f64; 2]>,
}

/// A case that is being measured.
struct Bench<W> {
    case: Case,
    tables: Rc<Tables>,
    operation: Rc<W>,
    touched: Touched,
    run: Run,
    requests: u64,
}

/// What a case came to.
struct Measured {
    case: Case,
    latencies: Latencies,
    /// Reads a second that there were.
    rate: f64,
    touched: Touched,
    /// That the disk had of them.
    requests: u64,
}

impl SingleKey {
    /// Does what the arguments say; results go to `out`.
    ///
    /// # Errors
    /// What cannot be read or written; rows or counts that are not what they must be.
    pub fn run(&self, out: &mut (dyn Write + Send)) -> Result<()> {
        let folder = room::temporary()?;
        runtime::run(self.machine.shard(), async |shard| {
            let machine = self.machine.found(&shard, folder.path()).await?;
            let folder = folder.path();
            for needed in 1..=SSTABLES {
                rows::write(&shard, &dataset(folder, needed), self.sstable_format, self.rows, needed).await?;
            }
            let rate = match self.rate {
                Some(rate) => Rate { due: rate, sustained: None },
                None => self.constant_rate(&shard, folder).await?,
            };
            let all = self.measure(&shard, folder, rate.due).await?;
            match self.printing.format {
                Format::Text => out.write_all(self.text(&rate, &all).as_bytes())?,
                Format::Json => writeln!(out, "{:#}", self.document(machine, &rate, &all))?,
            }
            all.iter().try_for_each(Measured::check)
        })?
    }

    fn cases(&self) -> Vec<Case> {
        let all = <Case as clap::ValueEnum>::value_variants().iter().copied();
        all.filter(|case| *case == Case::Off || self.cases.is_empty() || self.cases.contains(case)).collect()
    }

    /// A third of the most that is sustained, as far as the first case comes with it.
    async fn constant_rate(&self, shard: &Shard, folder: &Path) -> Result<Rate> {
        let sustained = self.sustained(shard, folder, [Case::Best, Case::Off]).await?;
        let [most, all_at_once] = sustained;
        let due = (most * SHARE).min(all_at_once * SHARE_OF_OFF);
        Ok(Rate { due, sustained: Some(sustained) })
    }

    /// How many reads a second each of these sustains. They are run in turn.
    async fn sustained<const N: usize>(
        &self,
        shard: &Shard,
        folder: &Path,
        cases: [Case; N],
    ) -> Result<[f64; N]> {
        let meters = Meters { disk: shard.disk().clone(), cache: Cache::new(0) };
        let time = Until::Elapsed((self.duration / SAMPLES as u32).clamp(ROUND, SAMPLE));
        let mut benches = Vec::new();
        for case in cases {
            let table = self.open(shard, folder, case).await?;
            benches.push(Rc::new(self.reads(&Tables::of(table, u32::MAX), case)));
        }
        let mut rates = [[0.0; SAMPLES]; N];
        for sample in 0..SAMPLES {
            for (operation, rates) in benches.iter().zip(&mut rates) {
                interrupted::check()?;
                let (line, first_error) = throughput::run(operation, CONCURRENCY, time, &meters).await;
                throughput::check(&[line], first_error.as_ref())?;
                rates[sample] = line.rate().max(1.0);
            }
        }
        Ok(rates.map(|rates| median(rates.into())))
    }

    /// Runs the cases in turn, again and again, for a moment each: what else the machine does meets all of them.
    async fn measure(&self, shard: &Shard, folder: &Path, rate: f64) -> Result<Vec<Measured>> {
        let mut benches = Vec::new();
        for case in self.cases() {
            benches.push(self.begin(shard, folder, case).await?);
        }
        let reads_in = |time: Duration| rate * time.as_secs_f64();
        let (reads, of_round) = (reads_in(self.duration).round().max(1.0), reads_in(ROUND).ceil());
        let rounds = (reads / of_round).ceil() as u32;
        let patience = ROUND.div_f64(MEASURABLE).max(LONG_ENOUGH);
        let (mut told, mut progress) = (BTreeSet::new(), Progress::begin());
        interrupted::check()?;
        for round in 1..=rounds {
            if round > 1 && interrupted::is_interrupted() {
                break;
            }
            progress.tell(|| format!("{} of {rounds} rounds of each case are measured", round - 1));
            for bench in &mut benches {
                let count = of_round.min(reads - bench.run.taken.len() as f64) as u32;
                while bench.tables.are_few(count) {
                    bench.tables.add(self.open(shard, folder, bench.case).await?);
                }
                bench.read(shard, rate, count, patience).await?;
                let (case, run) = (bench.case, &bench.run);
                let is_judged = run.time >= LONG_ENOUGH || round == rounds;
                let (name, sustained) = (case.name(), run.rate());
                if is_judged && self.rate.is_some() && sustained < rate * MEASURABLE {
                    return Err(Error::Usage(format!(
                        "{name}: {sustained:.0} reads a second come to their end where {rate:.0} are due: --rate has to be lower"
                    )));
                }
                if is_judged && sustained < rate * SUSTAINED && told.insert(name) {
                    eprintln!(
                        "{name}: {sustained:.0} reads a second come to their end where {rate:.0} are due: its latencies are those of \
                         queues, and it takes {:.1} times as long",
                        rate / sustained.max(f64::MIN_POSITIVE)
                    );
                }
            }
        }
        Ok(benches.into_iter().map(Bench::end).collect())
    }

    /// A case with tables of its own.
    async fn begin(
        &self,
        shard: &Shard,
        folder: &Path,
        case: Case,
    ) -> Result<Bench<impl AsyncFn() -> Result<()> + 'static + use<>>> {
        let table = self.open(shard, folder, case).await?;
        let warm_up = self.reads(&Tables::of(table.clone(), u32::MAX), case);
        for _ in 0..case.warm_up() {
            interrupted::check()?;
            warm_up().await?;
        }
        let tables = Tables::of(table, case.reads_of_a_table());
        let operation = Rc::new(self.reads(&tables, case));
        let (touched, run, requests) = (Touched::default(), Run::default(), 0);
        Ok(Bench { case, tables, operation, touched, run, requests })
    }

    async fn open(&self, shard: &Shard, folder: &Path, case: Case) -> Result<Table> {
        rows::open(shard, &dataset(folder, case.needed()), self.sstable_format, case.threshold()).await
    }

    /// Reads rows by chance, as many of a partition as the case has at a time.
    fn reads(&self, tables: &Rc<Tables>, case: Case) -> impl AsyncFn() -> Result<()> + 'static + use<> {
        let (tables, rows, random) = (tables.clone(), self.rows, Random::new(1));
        async move || match (case.keys(), tables.next()) {
            (1, table) => rows::read_and_check(&table, random.below(rows)).await,
            (keys, table) => {
                let of_partition = rows::of_partition(rows, random.below(rows) / ROWS_OF_PARTITION);
                let count = of_partition.len() as u32;
                let mut numbers = BTreeSet::new();
                while numbers.len() < keys.min(count) as usize {
                    numbers.insert(of_partition.start + random.below(count));
                }
                rows::read_and_check_all(&table, &numbers).await
            }
        }
    }

    fn text(&self, rate: &Rate, all: &[Measured]) -> String {
        let (rows, Rate { due, sustained }) = (self.rows, rate);
        let mut head =
            format!("{due:.0} reads/s of {rows} rows in {SSTABLES} SSTables each, nothing in memory\n");
        if let Some([one, all]) = sustained {
            head += &format!("sustained: {one:.0} reads/s of one SSTable, {all:.0} of all at once\n");
        }
        let cases = all.iter().map(|measured| format!("\n{}\n", measured.text(&all[0].latencies)));
        head + &cases.collect::<String>()
    }

    fn document(&self, machine: Machine, rate: &Rate, all: &[Measured]) -> Value {
        let off = &all[0].latencies;
        let sustained =
            rate.sustained.map(|[one, all]| json!({ "best": rounded(one, 1), "off": rounded(all, 1) }));
        json!({
            "version": VERSION,
            "rate": rounded(rate.due, 1),
            "sustained": sustained,
            "rows": self.rows,
            "sstables": SSTABLES,
            "duration": self.duration.as_secs_f64(),
            "sstable_format": self.sstable_format.name(),
            "direct_io": machine.direct_io,
            "io_uring": machine.io_uring,
            "interrupted": interrupted::is_interrupted(),
            "cases": all.iter().map(|measured| measured.json(off)).collect::<Vec<Value>>(),
        })
    }
}

/// Where the SSTables are of which so many are needed.
fn dataset(folder: &Path, needed: u32) -> std::path::PathBuf {
    folder.join(format!("needs-{needed}"))
}

impl<W: AsyncFn() -> Result<()> + 'static> Bench<W> {
    /// Reads so many times more, at this rate.
    async fn read(&mut self, shard: &Shard, rate: f64, count: u32, patience: Duration) -> Result<()> {
        let before = shard.disk().stats();
        self.run.extend(at_rate(&self.operation, (rate, self.run.late), count, patience).await?);
        self.requests += shard.disk().stats().since(&before).total().requests;
        self.touched += self.tables.let_go();
        Ok(())
    }

    fn end(self) -> Measured {
        let mut touched = self.touched;
        touched += self.tables.touched();
        Measured {
            case: self.case,
            requests: self.requests,
            rate: self.run.rate(),
            latencies: Latencies::of(self.run.taken),
            touched,
        }
    }
}

impl Measured {
    /// The lines, with their ratios to those of `off`.
    fn text(&self, off: &Latencies) -> String {
        let mut text = format!("{}: {:.0} reads/s\n", self.case.title(), self.rate);
        for ((name, value), (_, of_off)) in self.latencies.lines().into_iter().zip(off.lines()) {
            let (millis, ratio) = (value.as_secs_f64() * 1e3, ratio(value, of_off));
            text +=
                &format!("latency {name:<17} : {millis:>8.3} [{}: {ratio:.2} of off]\n", self.case.query());
        }
        let Touched { reads, newest_first, sstables } = self.touched;
        let each = |all: u64| all as f64 / reads.max(1) as f64;
        text + &format!(
            "SSTables touched          : {:>8.3} a read ({reads} reads, {newest_first} newest first)\n\
             requests                  : {:>8.3} a read",
            each(sstables),
            each(self.requests)
        )
    }

    fn json(&self, off: &Latencies) -> Value {
        let ratios = self.latencies.lines().into_iter().zip(off.lines());
        let ratios =
            ratios.map(|((name, value), (_, of_off))| (name.to_owned(), rounded(ratio(value, of_off), 3)));
        json!({
            "case": self.case.name(),
            "keys": self.case.keys(),
            "queries": self.latencies.len(),
            "rate": rounded(self.rate, 1),
            "latency": self.latencies.json(),
            "curve": self.latencies.curve(),
            "ratio_to_off": ratios.collect::<serde_json::Map<String, Value>>(),
            "reads": self.touched.reads,
            "newest_first": self.touched.newest_first,
            "sstables": self.touched.sstables,
            "requests": self.requests,
        })
    }

    /// Whether the reads touched what they must, and the disk was asked for as much.
    fn check(&self) -> Result<()> {
        let (reads, Touched { sstables, .. }) = (self.latencies.len() as u64, self.touched);
        let asked = match self.requests < sstables {
            true => Err(format!("{} requests for reads of {sstables} SSTables", self.requests)),
            false => Ok(()),
        };
        let is_right = self.case.check(reads, &self.touched).and(asked);
        is_right.map_err(|what| Error::Closed(format!("{}: {what}", self.case.name())))
    }
}

fn ratio(value: Duration, off: Duration) -> f64 {
    value.as_secs_f64() / off.as_secs_f64().max(f64::MIN_POSITIVE)
}
