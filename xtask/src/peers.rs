//! The same work by Siltstone and by its peers, side by side: requests to the disk, instructions, rows a second.
//!
//! ```text
//! peers/        a package of its own, built here ──► peers prepare | load | read, a process for each measurement
//!                 strace    what it reads between two marks                requests, KiB
//!                 callgrind the difference of some reads and thrice as many    instructions
//!                 by itself, again and again                               seconds: medians, ratios
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`contestants`] | who takes part, and how one is started |
//! | [`confined`] | processes with so much memory in all |
//! | [`trace`] | what a tracer of system calls saw |
//! | [`tables`] | figures side by side |
//! | [`figures`] | the page's figures as JSON |
//! | [`cassandra`] | a node of Cassandra, given the same SSTables |
//! | [`behind`] | where they are behind, and what says why |

pub mod behind;
pub mod cassandra;
pub mod confined;
pub mod contestants;
pub mod figures;
pub mod tables;
pub mod trace;

use std::path::PathBuf;
use std::{fs, io};

use clap::{Args, ValueEnum as _};
use serde_json::Value;

use self::behind::listed;
use self::confined::Confined;
use self::contestants::{Contestant, Dataset, Numbers, Program, Task};
use self::tables::{Cell, Table, settings};
use crate::instructions::{check_tool, check_valgrind};
use crate::measure::median;
use crate::workspace::{root, target};
use crate::{Result, pages};

/// The page and the figures that `--write` writes.
const PAGE: &str = "docs/performance/peers.md";
const FIGURES: &str = "docs/performance/peers.json";

/// MiB for caches where everything is to be in them.
const ALL_IN_MEMORY: u32 = 1024;

/// How often the instructions of a database of ours are counted.
const COUNTED: usize = 3;

/// Rows that a scan goes through, or that are loaded, where instructions are counted.
const SCANNED: u32 = 100_000;

/// Columns from disk, in this order.
const FROM_DISK: [Contestant; 6] = [
    Contestant::SILTSTONE,
    Contestant::AS_LOADED,
    Contestant {
        title: "Siltstone, 64 KiB blocks",
        peer: "siltstone",
        variant: "b64",
        flags: &["--block=64"],
        memory: None,
    },
    Contestant::ROCKSDB,
    Contestant::ROCKSDB_BOUNDED,
    Contestant::FJALL,
];

/// Columns where indexes do not fit into memory.
const OF_MANY: [Contestant; 5] = [
    Contestant::SILTSTONE,
    Contestant::AS_LOADED,
    Contestant::ROCKSDB,
    Contestant::ROCKSDB_BOUNDED,
    Contestant::FJALL,
];

/// Columns whose instructions from disk are counted.
const COUNTED_FROM_DISK: [Contestant; 5] = [
    Contestant::SILTSTONE,
    Contestant::WITHIN,
    Contestant::ROCKSDB,
    Contestant::ROCKSDB_UNCHECKED,
    Contestant::FJALL,
];

/// Columns in memory.
const IN_MEMORY: [Contestant; 4] =
    [Contestant::SILTSTONE, Contestant::WITHIN, Contestant::ROCKSDB, Contestant::FJALL];

/// Columns of loads.
const LOADED: [Contestant; 3] = [Contestant::SILTSTONE, Contestant::ROCKSDB, Contestant::FJALL];

/// Columns of loads whose instructions are counted. fjall's vary with how its threads wait for each other: where valgrind runs one at a
/// time, a load was counted at less than nothing, or did not end.
const COUNTED_LOADS: [Contestant; 2] = [Contestant::SILTSTONE, Contestant::ROCKSDB];

/// A case from disk, as the program and as the table has it: operations before, the first that is measured, how many are.
type DiskCase = (&'static str, &'static str, [u64; 3]);

/// Cases from disk. Caches are full before anything is measured: of single rows that takes the most reads.
const DISK_CASES: [DiskCase; 7] = [
    ("point", "a row", [60_000, 60_000, 2000]),
    ("absent", "an absent row", [6000, 6000, 2000]),
    ("slice", "slice of 100", [1500, 1500, 500]),
    ("reverse", "reverse slice of 100", [1500, 1500, 500]),
    ("skips", "read 64, skip 4096, the first time", [0, 0, 200]),
    // Each time through the partition the rows are others.
    ("skips", "read 64, skip 4096", [2400, 2400, 200]),
    ("scan", "all rows", [0, 0, 1]),
];

/// Those of them that are steady, and of which time and instructions are counted too.
const STEADY_CASES: [DiskCase; 6] =
    [DISK_CASES[0], DISK_CASES[1], DISK_CASES[2], DISK_CASES[3], DISK_CASES[5], DISK_CASES[6]];

/// Rows from the beginning of an operation with skips to that of the next one.
const SKIPS: u64 = 64 + 4096;

/// Columns of rates from disk. The last one reads by the page cache, and is timed where that is limited too.
const TIMED_FROM_DISK: [Contestant; 5] = [
    Contestant::SILTSTONE,
    Contestant::WITHIN,
    Contestant::ROCKSDB,
    Contestant::ROCKSDB_BOUNDED,
    FJALL_CONFINED,
];

const FJALL_CONFINED: Contestant =
    Contestant { title: "fjall, 32 MiB in all", memory: Some(32), ..Contestant::FJALL };

/// Columns where many read at once: who embeds Siltstone has them on the threads of shards, of which one has the partition.
const AT_ONCE: [Contestant; 4] =
    [Contestant::WITHIN, Contestant::ROCKSDB, Contestant::ROCKSDB_BOUNDED, FJALL_CONFINED];

/// So many do: a queue of requests is with the disk all the time.
const READERS: u32 = 64;

/// Cases in which they do, and so many times the operations that are traced.
const AT_ONCE_CASES: [DiskCase; 4] = [DISK_CASES[0], DISK_CASES[1], DISK_CASES[2], DISK_CASES[3]];
const TIMED_AT_ONCE: u64 = 20;

/// What asks no disk is done so many times as often: else it would be over in some hundredths of a second.
const TIMED_IN_FILTERS: u64 = 25;

/// What a rate is of, as the program names it, and as titles do.
const CLOCKS: [(&str, &str); 2] = [("seconds", ""), ("cpu_seconds", ", per core")];

/// So many times the operations that are traced take a tenth of a second at least.
const TIMED: u64 = 10;

/// The cases of single rows and slices where indexes are larger than memory. What is to stay of them has been read once
/// after so many other reads.
const MANY_CASES: [DiskCase; 4] = [
    ("point", "a row", [20_000, 20_000, 2000]),
    ("absent", "an absent row", [20_000, 20_000, 2000]),
    ("slice", "slice of 100", [15_000, 15_000, 500]),
    ("reverse", "reverse slice of 100", [15_000, 15_000, 500]),
];

/// Cases of which each operation takes seconds, and how many operations. Of a scan cqlite has not come to the end in five minutes.
const CQLITE_CASES: [(&str, &str, u64); 5] = [
    ("point", "a row", 3),
    ("absent", "an absent row", 3),
    ("slice", "slice of 100", 3),
    ("reverse", "reverse slice of 100", 3),
    ("skips", "read 64, skip 4096", 3),
];

/// Cases in memory: operations of which instructions are counted, how often, and operations that are timed. What warming up
/// takes differs by a little from process to process, so that it has to be small beside what is counted; what is timed takes a
/// tenth of a second and more.
const MEMORY_CASES: [(&str, &str, [u64; 3]); 6] = [
    ("point", "a row", [1000, 10, 200_000]),
    ("absent", "an absent row", [1000, 10, 200_000]),
    ("slice", "slice of 100", [100, 20, 40_000]),
    ("reverse", "reverse slice of 100", [100, 20, 40_000]),
    ("skips", "read 64, skip 4096", [60, 20, 40_000]),
    ("scan", "a row of 100,000 in order", [1, 3, 30]),
];

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// Rows of the partition with values of 200 bytes.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = clap::value_parser!(u32).range(100_000..1 << 30))]
    rows: u32,

    /// Rows of the partition with values of 2000 bytes.
    #[arg(long, value_name = "N", default_value = "200000", value_parser = clap::value_parser!(u32).range(100_000..1 << 30))]
    large_rows: u32,

    /// Rows of the partition of which indexes do not fit into the memory for caches.
    #[arg(long, value_name = "N", default_value = "10000000", value_parser = clap::value_parser!(u32).range(100_000..1 << 30))]
    many_rows: u32,

    /// MiB for caches, where reads are to go to the disk.
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u32).range(1..))]
    memory_mib: u32,

    /// How often what is timed is run.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,

    /// Only these tables.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Part>,

    /// Where the databases are made, and kept for the next run. Default in the folder of builds.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// The folder of a fixture with schema.cql and sstables/large/, of which cqlite reads a row.
    #[arg(long, value_name = "DIR")]
    fixture: Option<PathBuf>,

    /// Take the library that RocksDB publishes for x86-64, which Maven brings, in the place of building it.
    #[arg(long)]
    published_rocksdb: bool,

    /// A folder with the jars of cassandra-all; without it Maven brings them.
    #[arg(long, value_name = "DIR")]
    cassandra: Option<PathBuf>,

    /// Write the tables to docs/performance/peers.md as well, and their figures beside them.
    #[arg(long)]
    write: bool,
}

/// The tables that there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Part {
    /// Requests and KiB, with little memory.
    Disk,
    /// The same with so many rows that indexes do not fit into it.
    Many,
    /// Instructions, with little memory.
    DiskInstructions,
    /// Operations a second, with little memory.
    DiskRates,
    /// The same by many readers at once.
    AtOnce,
    /// Instructions, with everything in memory.
    Instructions,
    /// Operations a second, with everything in memory.
    Rates,
    /// Rows a second of a load.
    Load,
    /// Instructions of one.
    LoadInstructions,
    /// Beside cqlite, on the same files.
    Cqlite,
    /// Beside a node of Cassandra, on the same files.
    Cassandra,
}

impl Options {
    /// Where the databases are.
    fn data(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| target().join("peers-data"))
    }
}

/// Compares, and prints the tables.
///
/// # Errors
/// If a program does not build or fails, a tracer is missing, or two peers find other rows.
pub fn run(options: &Options) -> Result<()> {
    let is_chosen = |part: &&Part| options.only.is_empty() || options.only.contains(part);
    let parts: Vec<Part> = Part::value_variants().iter().filter(is_chosen).copied().collect();
    // Before anything is built and written.
    parts.iter().try_for_each(|part| part.check_tools(options))?;
    let data = options.data();
    fs::create_dir_all(&data)?;
    let data = data.canonicalize()?;
    let comparison =
        Comparison { program: Program::build(data.clone(), options.published_rocksdb)?, options };
    // What is not measured stays on the page as it was.
    for part in &parts {
        let text: String = comparison.tables(*part)?.iter().map(|table| format!("{table}\n")).collect();
        print!("{text}");
        if options.write {
            write(&part.name(), &text)?;
        }
    }
    if options.write && options.only.is_empty() {
        pages::write(PAGE, [("settings", &*settings(options))])?;
    }
    Ok(())
}

/// Writes a part of the page, and what follows from its tables.
fn write(part: &str, text: &str) -> Result<()> {
    pages::write(PAGE, [(part, text)])?;
    let figures = figures_of(&fs::read_to_string(root().join(PAGE))?);
    fs::write(root().join(FIGURES), format!("{figures:#}\n"))?;
    let [behind, ahead] = listed(&behind::found(&figures));
    pages::write(PAGE, [("behind", &*behind), ("short of the aims", &*ahead)])
}

/// The figures of all tables of a page.
fn figures_of(page: &str) -> Value {
    let parts: Vec<String> = Part::value_variants().iter().map(|part| part.name()).collect();
    figures::figures(page, parts.iter().map(String::as_str))
}

impl Part {
    /// Its name, as the command and the page have it.
    fn name(self) -> String {
        self.to_possible_value().expect("none is hidden").get_name().to_owned()
    }

    /// That what it takes is there.
    fn check_tools(self, options: &Options) -> Result<()> {
        match self {
            Part::DiskRates | Part::AtOnce => check_groups(options),
            Part::Cassandra => check_groups(options).and_then(|()| cassandra::check_java(options)),
            Part::Disk | Part::Many => check_tool("strace", "counts the requests"),
            Part::Cqlite if options.write && options.fixture.is_none() => {
                Err("the page has a row of a fixture that cqlite reads: --fixture names its folder".into())
            }
            Part::DiskInstructions | Part::Instructions | Part::LoadInstructions => check_valgrind(),
            _ => Ok(()),
        }
    }
}

/// That control groups can be made, if a page is written: that is done with all of its columns only, some of which take one.
fn check_groups(options: &Options) -> Result<()> {
    match options.write.then(|| Confined::to(1024)) {
        Some(Err(error)) => {
            let what =
                "no control group can be made, and without one not all columns are there to be written";
            Err(format!("{what}: {error}").into())
        }
        Some(Ok(_)) | None => Ok(()),
    }
}

struct Comparison<'a> {
    program: Program,
    options: &'a Options,
}

impl Comparison<'_> {
    fn tables(&self, part: Part) -> Result<Vec<Table>> {
        let small = Dataset { rows: self.options.rows, value_size: 200 };
        let large = Dataset { rows: self.options.large_rows, value_size: 2000 };
        let many = Dataset { rows: self.options.many_rows, value_size: 200 };
        let both = [small, large];
        match part {
            Part::Disk => both
                .map(|dataset| self.disk("From disk", dataset, &FROM_DISK, &DISK_CASES))
                .into_iter()
                .collect(),
            Part::Many => {
                let title = "Indexes larger than memory";
                Ok(vec![self.disk(title, many, &OF_MANY, &MANY_CASES)?])
            }
            Part::DiskInstructions => Ok(vec![self.disk_instructions(small)?]),
            Part::DiskRates => both.map(|dataset| self.disk_rates(dataset)).into_iter().collect(),
            Part::AtOnce => self.at_once(small),
            Part::Instructions => Ok(vec![self.instructions(small)?]),
            Part::Rates => both.map(|dataset| self.rates(dataset)).into_iter().collect(),
            Part::Load => Ok(vec![self.load(&both)?]),
            Part::LoadInstructions => Ok(vec![self.load_instructions()?]),
            Part::Cqlite => Ok(vec![self.cqlite(small)?]),
            Part::Cassandra => self.cassandra(small, many, &both),
        }
    }

    /// Requests and KiB of one operation.
    fn disk(
        &self,
        what: &str,
        dataset: Dataset,
        contestants: &[Contestant],
        cases: &[DiskCase],
    ) -> Result<Table> {
        let title = format!("{what}: {dataset}, requests / KiB");
        let mut table =
            Table::new(title, "one read of", contestants.iter().map(|contestant| contestant.title));
        let (mut opened, mut resident) = (Vec::new(), Vec::new());
        for (case, name, numbers) in cases {
            let (mut line, mut from_closed, mut sums) = (Vec::new(), Vec::new(), Vec::new());
            let [warm, from, count] = *numbers;
            // Where nothing was read before, nothing is read twice.
            let is_first = *case == "skips" && warm == 0;
            let count = if is_first { count.min(u64::from(dataset.rows) / SKIPS).max(1) } else { count };
            for contestant in contestants {
                let (traced, numbers) = self.traced(*contestant, dataset, case, [warm, from, count])?;
                line.push(traced.read.per(numbers.operations()));
                from_closed.push(traced.both().per(numbers.operations()));
                if *case == "point" {
                    opened.push(traced.open.per(1.0));
                    resident.push(Cell::MiB(numbers.number("peak_kib") / 1024.0));
                }
                sums.push((contestant.title, numbers.sums()));
            }
            all_equal(case, &sums)?;
            table.line(name, line);
            if warm == 0 {
                table.line(&format!("{name}, with what opening takes"), from_closed);
            }
        }
        table.line("opening, in all", opened);
        table.line("peak memory with reads of a row", resident);
        Ok(table)
    }

    fn traced(
        &self,
        contestant: Contestant,
        dataset: Dataset,
        case: &'static str,
        numbers: [u64; 3],
    ) -> Result<(trace::Traced, Numbers)> {
        self.program.prepare(contestant, dataset)?;
        let work = self.disk_task(contestant, dataset, case, numbers);
        eprintln!("{}: {dataset}, {case}, traced", contestant.title);
        let (traced, numbers) = self.program.traced(&work)?;
        if let Some(own) = numbers.own_counts()
            && !own.agrees_with(traced.read)
        {
            return Err(format!("{} counts {own:?}, the tracer {:?}", contestant.title, traced.read).into());
        }
        Ok((traced, numbers))
    }

    /// What is done with little memory: operations before, the first that is measured, how many are.
    fn disk_task(
        &self,
        contestant: Contestant,
        dataset: Dataset,
        case: &'static str,
        [warm, from, count]: [u64; 3],
    ) -> Task {
        let memory = self.options.memory_mib;
        Task { contestant, dataset, case, memory, warm, from, count, rounds: 1, scan: u32::MAX, readers: 1 }
    }

    /// Instructions of one operation where most go to the disk: the difference of so many of them and of thrice as many.
    fn disk_instructions(&self, dataset: Dataset) -> Result<Table> {
        let title = format!("From disk: {dataset}, thousands of instructions");
        let heads = COUNTED_FROM_DISK.map(|contestant| contestant.title);
        let mut table = Table::new(title, "one read of", heads);
        for (case, name, numbers) in STEADY_CASES {
            let (mut line, mut sums) = (Vec::new(), Vec::new());
            for contestant in COUNTED_FROM_DISK {
                let few = self.disk_task(contestant, dataset, case, numbers);
                let (few, many, counted) = match case {
                    "scan" => {
                        let few = Task { scan: SCANNED, ..few };
                        (few, Task { scan: 3 * SCANNED, ..few }, 2 * u64::from(SCANNED))
                    }
                    _ => (few, Task { count: 3 * few.count, ..few }, 2 * few.count),
                };
                let (instructions, found) = self.counted(few, many)?;
                line.push(Cell::Thousands(instructions / counted as f64 / 1000.0));
                sums.push((contestant.title, found));
            }
            all_equal(case, &sums)?;
            table.line(if case == "scan" { "a row, of all in order" } else { name }, line);
        }
        Ok(table)
    }

    /// Instructions of one operation: the difference of doing some once and again and again, all of them warm.
    fn instructions(&self, dataset: Dataset) -> Result<Table> {
        let title = format!("All in memory: {dataset}, thousands of instructions");
        let mut table = Table::new(title, "one read of", IN_MEMORY.map(|contestant| contestant.title));
        for (case, name, [count, rounds, _]) in MEMORY_CASES {
            let (mut line, mut sums) = (Vec::new(), Vec::new());
            for contestant in IN_MEMORY {
                let few = in_memory(contestant, dataset, case, count);
                let (instructions, found) = self.counted(few, Task { rounds: 1 + rounds, ..few })?;
                let rows = if case == "scan" { u64::from(SCANNED) } else { count };
                line.push(Cell::Thousands(instructions / (rounds * rows) as f64 / 1000.0));
                sums.push((contestant.title, found));
            }
            all_equal(case, &sums)?;
            table.line(name, line);
        }
        Ok(table)
    }

    /// How many instructions more one task takes than the other, and what it found. What the two threads of a database of ours do
    /// while they wait for each other is by chance: there it is the median of some differences.
    fn counted(&self, few: Task, many: Task) -> Result<(f64, [String; 2])> {
        let Task { contestant, dataset, case, .. } = few;
        self.program.prepare(contestant, dataset)?;
        eprintln!("{}: {dataset}, {case}, instructions counted", contestant.title);
        let mut differences = Vec::new();
        loop {
            let (fewer, _) = self.program.counted(&few)?;
            let (more, numbers) = self.program.counted(&many)?;
            differences.push(more - fewer);
            if contestant != Contestant::SILTSTONE || differences.len() == COUNTED {
                return Ok((median(differences), numbers.sums()));
            }
        }
    }

    /// Operations a second where most go to the disk, and ratios to Siltstone's.
    fn disk_rates(&self, dataset: Dataset) -> Result<Table> {
        let title = format!("From disk: {dataset}, thousands of rows a second");
        let tasks = STEADY_CASES.map(|(case, name, [warm, from, count])| {
            let count = match case {
                "scan" => count,
                "absent" => TIMED * TIMED_IN_FILTERS * count,
                _ => TIMED * count,
            };
            (name, move |contestant| self.disk_task(contestant, dataset, case, [warm, from, count]))
        });
        let contestants = self.those_timed(&TIMED_FROM_DISK);
        let [table] = self.rates_of([("seconds", title)], contestants, tasks)?;
        Ok(table)
    }

    /// The same where many read at once, by the clock and per core.
    fn at_once(&self, dataset: Dataset) -> Result<Vec<Table>> {
        let tables = CLOCKS.map(|(clock, of)| {
            let title = format!("From disk, {READERS} at once: {dataset}{of}, thousands of rows a second");
            (clock, title)
        });
        let tasks = AT_ONCE_CASES.map(|(case, name, [warm, from, count])| {
            let often = if case == "absent" { TIMED_IN_FILTERS } else { 1 };
            let numbers = [warm, from, TIMED_AT_ONCE * often * count];
            let task = move |contestant| Task {
                readers: READERS,
                ..self.disk_task(contestant, dataset, case, numbers)
            };
            (name, task)
        });
        self.rates_of(tables, self.those_timed(&AT_ONCE), tasks).map(Vec::from)
    }

    /// Operations a second, and ratios to Siltstone's.
    fn rates(&self, dataset: Dataset) -> Result<Table> {
        let title = format!("All in memory: {dataset}, thousands of rows a second");
        let tasks = MEMORY_CASES.map(|(case, name, [_, _, count])| {
            (name, move |contestant| in_memory(contestant, dataset, case, count))
        });
        let [table] = self.rates_of([("seconds", title)], &IN_MEMORY, tasks)?;
        Ok(table)
    }

    /// The medians of tasks that all of these do: a table for each clock, with its title.
    fn rates_of<const TABLES: usize>(
        &self,
        titles: [(&str, String); TABLES],
        contestants: &[Contestant],
        tasks: impl IntoIterator<Item = (&'static str, impl Fn(Contestant) -> Task)>,
    ) -> Result<[Table; TABLES]> {
        let mut tables = titles.map(|(clock, title)| {
            let heads = contestants.iter().map(|contestant| contestant.title);
            (clock, Table::new(title, "reads of", heads))
        });
        for (name, task) in tasks {
            let mut all = vec![Vec::new(); contestants.len()];
            let mut sums = Vec::new();
            // In turn, so that a machine that is busy for a while is so for all.
            for _ in 0..self.options.runs {
                for (contestant, all) in contestants.iter().zip(&mut all) {
                    let numbers = self.timed(&task(*contestant))?;
                    sums.push((contestant.title, numbers.sums()));
                    all.push(numbers);
                }
            }
            eprintln!("{name}, timed");
            all_equal(name, &sums)?;
            for (clock, table) in &mut tables {
                let rates = |all: &Vec<Numbers>| all.iter().map(|numbers| numbers.rows_in(clock)).collect();
                let cell = |all| Cell::Thousands(median(rates(all)) / 1000.0);
                table.line(name, all.iter().map(cell).collect());
            }
        }
        Ok(tables.map(|(_, table)| table.with_ratios()))
    }

    /// Rows a second from the first batch to the one sorted run.
    fn load(&self, datasets: &[Dataset]) -> Result<Table> {
        let title = "Load: thousands of rows a second".to_owned();
        let mut table = Table::new(title, "rows", LOADED.map(|contestant| contestant.title));
        for dataset in datasets {
            let mut rates = vec![Vec::new(); LOADED.len()];
            for _ in 0..self.options.runs.min(3) {
                for (contestant, rates) in LOADED.into_iter().zip(&mut rates) {
                    eprintln!("{}: {dataset}, loaded", contestant.title);
                    let seconds = self.program.load(contestant, *dataset)?;
                    rates.push(f64::from(dataset.rows) / seconds);
                }
            }
            let medians = rates.into_iter().map(|rates| Cell::Thousands(median(rates) / 1000.0));
            table.line(&dataset.to_string(), medians.collect());
        }
        Ok(table.with_ratios())
    }

    /// Instructions of a row that is loaded: what so many take more than half of them, to the sorted run.
    fn load_instructions(&self) -> Result<Table> {
        let title = "Load: thousands of instructions a row".to_owned();
        let mut table = Table::new(title, "rows", COUNTED_LOADS.map(|contestant| contestant.title));
        for value_size in [200, 2000] {
            let [half, all] = [SCANNED, 2 * SCANNED].map(|rows| Dataset { rows, value_size });
            let of_row = |contestant: Contestant| {
                eprintln!("{}: {all}, loaded, instructions counted", contestant.title);
                let counted = |dataset| -> Result<f64> {
                    let loads =
                        (0..self.options.runs).map(|_| self.program.counted_load(contestant, dataset));
                    Ok(median(loads.collect::<Result<_>>()?))
                };
                let more = counted(all)? - counted(half)?;
                Ok(Cell::Thousands(more / f64::from(all.rows - half.rows) / 1000.0))
            };
            table.line(&all.to_string(), COUNTED_LOADS.into_iter().map(of_row).collect::<Result<_>>()?);
        }
        Ok(table)
    }

    /// Few operations: each takes seconds there.
    fn cqlite(&self, dataset: Dataset) -> Result<Table> {
        let contestants = [Contestant::SILTSTONE, Contestant::CQLITE];
        let title = format!("Beside cqlite: {dataset}, the same files; seconds of one read, peak MiB");
        let mut table = Table::new(title, "one read of", contestants.map(|contestant| contestant.title));
        for (case, name, count) in CQLITE_CASES {
            let (mut line, mut sums) = (Vec::new(), Vec::new());
            for contestant in contestants {
                self.program.prepare(contestant, dataset)?;
                let (memory, warm, from) = (256, 0, 0);
                let (rounds, scan, readers) = (1, u32::MAX, 1);
                let work =
                    Task { contestant, dataset, case, memory, warm, from, count, rounds, scan, readers };
                eprintln!("{}: {dataset}, {case}", contestant.title);
                let numbers = self.program.timed(&work)?;
                line.push(numbers.seconds_and_memory(numbers.number("seconds") / count as f64));
                sums.push((contestant.title, numbers.sums()));
            }
            all_equal(case, &sums)?;
            table.line(name, line);
        }
        if let Some(fixture) = &self.options.fixture {
            let line = [true, false].map(|by_siltstone| self.program.one_row(fixture, by_siltstone));
            let line = line.into_iter().collect::<Result<_>>()?;
            table.line("a row of the fixture, opening included", line);
        }
        Ok(table)
    }

    /// Those who can be timed here: not everybody may limit what a process has, as that of the last one is.
    fn those_timed<'c>(&self, all: &'c [Contestant]) -> &'c [Contestant] {
        let (Err(error), [others @ .., last]) = (Confined::to(1024), all) else { return all };
        self.leave_out(last.title, &error);
        others
    }

    /// Says what is not measured, as no control group can be made.
    fn leave_out(&self, what: &str, error: &io::Error) {
        eprintln!("{what} is not timed: no control group can be made: {error}");
    }

    /// What a process of its own says of a task.
    fn timed(&self, task: &Task) -> Result<Numbers> {
        self.program.prepare(task.contestant, task.dataset)?;
        self.program.timed(task)
    }
}

/// What is timed and counted with everything in memory: it is done once before.
fn in_memory(contestant: Contestant, dataset: Dataset, case: &'static str, count: u64) -> Task {
    let (memory, warm, from) = (ALL_IN_MEMORY, count, 0);
    Task { contestant, dataset, case, memory, warm, from, count, rounds: 1, scan: SCANNED, readers: 1 }
}

/// All have to find the same rows.
fn all_equal(case: &str, sums: &[(&str, [String; 2])]) -> Result<()> {
    let Some(((first, expected), others)) = sums.split_first() else { return Ok(()) };
    match others.iter().find(|(_, sums)| sums != expected) {
        None => Ok(()),
        Some((other, sums)) => {
            Err(format!("{case}: {first} found {expected:?}, {other} found {sums:?}").into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::part_of;

    /// The file was written with the page: it has every table of it, and nothing else.
    #[test]
    fn the_figures_kept_are_those_of_the_page() {
        let kept = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        let (page, figures) = (kept(PAGE), kept(FIGURES));
        assert_eq!(figures, format!("{:#}\n", figures_of(&page)));
        let told = ["behind", "short of the aims"].map(|part| part_of(&page, part));
        let tables = told.into_iter().fold(page.clone(), |page, part| page.replace(part, ""));
        let rows = tables.lines().filter(|line| line.starts_with("| ")).count();
        let heads = tables.lines().filter(|line| line.starts_with("|---")).count();
        assert_eq!(figures.matches("\"of\":").count(), rows - heads);
    }

    /// Nothing is told of tables that are not there.
    #[test]
    fn every_part_of_the_page_is_printed() {
        let page = fs::read_to_string(root().join(PAGE)).unwrap();
        for part in Part::value_variants() {
            assert!(part_of(&page, &part.name()).contains("\n|---"), "{part:?} has no table");
        }
    }

    #[test]
    fn other_rows_are_an_error() {
        let sums = |full: &str| ["1".to_owned(), full.to_owned()];
        assert!(all_equal("point", &[("a", sums("2")), ("b", sums("2"))]).is_ok());
        assert!(all_equal("point", &[("a", sums("2")), ("b", sums("3"))]).is_err());
    }
}
