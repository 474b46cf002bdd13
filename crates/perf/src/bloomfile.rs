//! Bloomfile: lookups in bloom filters that are read by pages, in the ways of before and of now.
//!
//! ```text
//! files of made-up keys ──► a case, in one way after the other ──► a line each: time, lookups in the cache, reads
//! ```

mod before;
mod cases;
mod files;
mod inserts;
mod state;
mod ways;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use siltstone::{Error, Result};
use sstable::parts::filter::check_fp_chance;

use self::cases::{Case, Plan, Taken};
use self::files::Files;
use self::inserts::Inserts;
use self::state::State;
use self::ways::Way;
use crate::arguments::{Format, Machine, Printing, VERSION, bytes, chance};
use crate::interrupted;
use crate::numbers::rounded;
use crate::room;

/// Lookups of keys that are absent, in bloom filters in pages: mt-bloomfile-test, and what the published change was for.
///
/// Each case is done in several ways, in turns if the disk is asked, else one after the other: before, by a cache that all threads lock and with iterators for
/// each processor; per-shard, by a cache of each shard, without locks; at-hand, with pages at hand before that cache, and
/// sorted keys all at once; whole, by a Filter.db that is in memory.
///
/// Columns: lookups, of all threads, each of a key in a file; ns, from the first to the last lookup of the slowest thread, divided by the lookups of one; cpu ns, the time on
/// processors of all threads, divided by all lookups; passed, the share of absent keys that are not found absent; cache,
/// lookups in a cache of pages; read, pages read. In the case inserts a line is of rows, each looked for in all SSTables and
/// then written, and lookups are those rows.
///
/// State, below them, is what lookups keep in memory for 32,000 SSTables and 48 shards, beside pages and first tokens: before,
/// the iterators of all, measured together; now, what one shard keeps for its share of the SSTables, times the number of
/// shards.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone perf bloomfile
  siltstone perf bloomfile --case absent --threads 8
  siltstone perf bloomfile --case churning --churning-keys 150000000 --memory 100M
  siltstone perf bloomfile --case large --way whole --way at-hand --output-format json

Exit codes: 0 if all went well, 1 for I/O errors, 2 for wrong arguments, 130 or 143 for an interrupt.")]
pub struct Bloomfile {
    /// What is measured. Default all.
    #[arg(long, value_enum, value_name = "CASE")]
    case: Vec<Case>,

    /// How filters are asked. Default all ways; by Filter.db in the case large only. The case inserts has no such way.
    #[arg(long, value_enum, value_name = "WAY")]
    way: Vec<Way>,

    /// How many threads look up at once, in the cases absent and churning. The others have one.
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,

    /// Lookups of each thread; in the case churning a tenth of them, and in the case inserts as many rows. In the cases batches and
    /// large they are made up to batches that are looked for in all files, and in the case inserts to batches.
    #[arg(long, alias = "operations", value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u64).range(10..))]
    lookups: u64,

    /// Keys of the file in the case absent. Each thread has all of it in memory: where the 4 GiB that all threads share are less than
    /// twice what that takes, it is refused.
    #[arg(long, value_name = "N", default_value = "10000")]
    keys: u64,

    /// Keys of the file in the case churning.
    #[arg(long, value_name = "N", default_value = "150000000")]
    churning_keys: u64,

    /// Keys of each file in the case batches.
    #[arg(long, value_name = "N", default_value = "300000")]
    batch_keys: u64,

    /// Keys of each file in the case large.
    #[arg(long, value_name = "N", default_value = "4000000")]
    large_keys: u64,

    /// Files in the cases batches and large.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    files: u32,

    /// Sorted keys that are looked for at a time, in the cases batches and large.
    #[arg(long, value_name = "N", default_values = ["1000", "20000"], value_parser = clap::value_parser!(u64).range(1..))]
    batch: Vec<u64>,

    /// SSTables of the table in the case inserts; each has 20,000 partitions.
    #[arg(long, value_name = "N", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sstables: u32,

    /// The share of absent keys that may pass, above 0.0000671 as Cassandra has it.
    #[arg(long, value_name = "CHANCE", default_value = "0.01", value_parser = chance_of_tables)]
    fp_chance: f64,

    /// Bytes of cache in the case churning, for all threads together.
    #[arg(long, value_name = "BYTES", default_value = "100M", value_parser = bytes)]
    memory: usize,

    /// Where the files are, and stay. Default a temporary folder, in TMPDIR; the case inserts is always in one.
    #[arg(long, value_name = "DIR")]
    data_directory: Option<PathBuf>,

    #[command(flatten)]
    printing: Printing,

    #[command(flatten)]
    machine: Machine,
}

/// A share that a table may have, as Cassandra has it.
fn chance_of_tables(text: &str) -> std::result::Result<f64, String> {
    let chance = chance(text)?;
    check_fp_chance(chance).map(|()| chance).map_err(|error| error.to_string())
}

/// Partitions of an SSTable in the case inserts.
const PARTITIONS: u32 = 20_000;

/// Lookups of a turn in the case churning: some milliseconds.
const CHURNING_TURN: u64 = 256;

/// Room for all files that are not to be read again. Bytes, for all threads together.
const ALL: usize = 4 << 30;

impl Bloomfile {
    /// Does what the arguments say; results go to `out`.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub fn run(&self, out: &mut dyn Write) -> Result<()> {
        if self.case.contains(&Case::Inserts) && self.way.contains(&Way::Whole) {
            return Err(Error::Usage("--way whole: the case inserts has no such way".to_owned()));
        }
        let temporary = self.data_directory.is_none().then(room::temporary).transpose()?;
        let temporary_path = temporary.as_ref().map(|folder| folder.path().to_owned());
        let folder = self.data_directory.clone().or(temporary_path).unwrap_or_default();
        std::fs::create_dir_all(&folder).map_err(|error| Error::file(&folder, error.to_string()))?;
        let mut printed = Printed::begin(out, self.printing.format)?;
        self.look_up(&folder, &mut printed)?;
        self.insert(&mut printed)?;
        let state = State::measured(&folder, self.fp_chance, &self.machine.shard())?;
        printed.end(self.parameters(), &state)
    }

    /// The cases of lookups alone. After an interrupt what was measured is told.
    fn look_up(&self, folder: &Path, printed: &mut Printed<'_>) -> Result<()> {
        for (case, plan) in self.plans(folder) {
            let ways = self.ways(case);
            let taken = match plan.run(&ways) {
                Err(_) if interrupted::is_interrupted() => return Ok(()),
                taken => taken?,
            };
            for (taken, way) in taken.into_iter().zip(ways) {
                printed.take(Line { case, batch: plan.batch, threads: plan.threads, way, taken })?;
            }
        }
        Ok(())
    }

    fn insert(&self, printed: &mut Printed<'_>) -> Result<()> {
        for inserts in self.inserts().into_iter().filter(|_| !interrupted::is_interrupted()) {
            for way in self.ways(Case::Inserts) {
                let (batch, taken) = (Some(inserts.batch), inserts.run(way)?);
                printed.take(Line { case: Case::Inserts, batch, threads: 1, way, taken })?;
            }
        }
        Ok(())
    }

    /// What decides beside a line's own case, batch and way; requests as they were asked for.
    fn parameters(&self) -> Value {
        json!({
            "threads": self.threads,
            "lookups": self.lookups,
            "keys": self.keys,
            "churning_keys": self.churning_keys,
            "batch_keys": self.batch_keys,
            "large_keys": self.large_keys,
            "files": self.files,
            "sstables": self.sstables,
            "fp_chance": self.fp_chance,
            "memory": self.memory,
            "direct_io": self.machine.direct_io,
            "io_uring": self.machine.io_uring,
        })
    }

    fn plans(&self, folder: &Path) -> Vec<(Case, Plan)> {
        let plan = |count: u32, keys: u64| Plan {
            files: Files { folder: folder.to_owned(), count, keys, fp_chance: self.fp_chance },
            threads: self.threads,
            lookups: self.lookups,
            batch: None,
            turn: self.lookups,
            has_parts: false,
            cache: ALL,
            machine: self.machine.shard(),
        };
        let batches = |case, keys| {
            self.batch
                .iter()
                .map(move |&batch| (case, Plan { threads: 1, batch: Some(batch), ..plan(self.files, keys) }))
        };
        let churning = Plan {
            lookups: self.lookups / 10,
            turn: CHURNING_TURN,
            has_parts: true,
            cache: self.memory,
            ..plan(1, self.churning_keys)
        };
        let all = [(Case::Absent, plan(1, self.keys)), (Case::Churning, churning)].into_iter();
        all.chain(batches(Case::Batches, self.batch_keys))
            .chain(batches(Case::Large, self.large_keys))
            .filter(|(case, _)| self.case.is_empty() || self.case.contains(case))
            .collect()
    }

    fn inserts(&self) -> Vec<Inserts> {
        let inserts = |&batch: &u64| Inserts {
            sstables: self.sstables,
            partitions: PARTITIONS,
            rows: (self.lookups / 10).next_multiple_of(batch),
            batch,
            fp_chance: self.fp_chance,
            cache: self.memory,
            machine: self.machine.shard(),
        };
        let is_wanted = self.case.is_empty() || self.case.contains(&Case::Inserts);
        self.batch.iter().filter(|_| is_wanted).map(inserts).collect()
    }

    fn ways(&self, case: Case) -> Vec<Way> {
        if !self.way.is_empty() {
            // A table asks no Filter.db that has pages.
            let has_it = |way: &&Way| case != Case::Inserts || **way != Way::Whole;
            return self.way.iter().filter(has_it).copied().collect();
        }
        let mut ways = vec![Way::Before, Way::PerShard, Way::AtHand];
        if case == Case::Large {
            ways.push(Way::Whole);
        }
        ways
    }
}

/// What was measured, as it is told: text a line at a time, JSON at the end.
struct Printed<'a> {
    out: &'a mut dyn Write,
    format: Format,
    lines: Vec<Line>,
}

impl<'a> Printed<'a> {
    fn begin(out: &'a mut dyn Write, format: Format) -> Result<Printed<'a>> {
        if format == Format::Text {
            writeln!(
                out,
                "{:<9} {:>6} {:<10} {:>10} {:>8} {:>8} {:>9} {:>12} {:>10}",
                "case", "batch", "way", "lookups", "ns", "cpu ns", "passed", "cache", "read"
            )?;
        }
        Ok(Printed { out, format, lines: Vec::new() })
    }

    fn take(&mut self, line: Line) -> Result<()> {
        if self.format == Format::Text {
            writeln!(self.out, "{}", line.text())?;
            self.out.flush()?;
        }
        self.lines.push(line);
        Ok(())
    }

    fn end(self, parameters: Value, state: &State) -> Result<()> {
        if self.format == Format::Text {
            write!(self.out, "\n{}", state.text())?;
            return Ok(());
        }
        let document = json!({
            "version": VERSION,
            "parameters": parameters,
            "interrupted": interrupted::is_interrupted(),
            "bloomfile": self.lines.iter().map(Line::json).collect::<Vec<_>>(),
            "state": state.json(),
        });
        writeln!(self.out, "{document:#}")?;
        Ok(())
    }
}

/// A case done in one way.
struct Line {
    case: Case,
    batch: Option<u64>,
    threads: u32,
    way: Way,
    taken: Taken,
}

impl Line {
    fn text(&self) -> String {
        let Taken { lookups, of_cache, read, .. } = self.taken;
        let batch = self.batch.map_or("-".to_owned(), |batch| batch.to_string());
        let (ns, cpu, passed) = (self.ns(), self.cpu_ns(), 100.0 * self.passed());
        format!(
            "{:<9} {batch:>6} {:<10} {lookups:>10} {ns:>8.1} {cpu:>8.1} {passed:>8.3}% {of_cache:>12} {read:>10}",
            self.case_name(),
            self.way.name(),
        )
    }

    fn json(&self) -> Value {
        json!({
            "case": self.case_name(),
            "batch": self.batch,
            "threads": self.threads,
            "way": self.way.name(),
            "lookups": self.taken.lookups,
            "ns": rounded(self.ns(), 1),
            "cpu ns": rounded(self.cpu_ns(), 1),
            "passed": rounded(self.passed(), 6),
            "cache": self.taken.of_cache,
            "read": self.taken.read,
        })
    }

    fn case_name(&self) -> &'static str {
        match self.case {
            Case::Absent => "absent",
            Case::Churning => "churning",
            Case::Batches => "batches",
            Case::Large => "large",
            Case::Inserts => "inserts",
        }
    }

    fn ns(&self) -> f64 {
        self.taken.time.wall.as_nanos() as f64 / (self.taken.lookups as f64 / f64::from(self.threads))
    }

    fn cpu_ns(&self) -> f64 {
        self.taken.time.cpu.as_nanos() as f64 / self.taken.lookups as f64
    }

    fn passed(&self) -> f64 {
        self.taken.passed as f64 / self.taken.lookups as f64
    }
}
