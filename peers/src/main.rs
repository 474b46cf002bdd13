//! `peers`: one piece of work by one database, in a process of its own; `cargo xtask peers` lays them side by side.
//!
//! ```text
//! peers prepare PEER …      writes the rows as reads are to find them: in one sorted run
//! peers load PEER …         writes them as a user does, and says how long it takes
//! peers read PEER CASE …    opens, warms up, reads, and says what it found and how long it took
//! peers one-row FILES …     one row of any SSTable by cqlite, which has its own idea of what a database is
//! ```
//!
//! Each prints a line of JSON. What is measured stands between two marks, which a tracer of system calls sees.
//!
//! | module | idea |
//! |---|---|
//! | `rows` | the rows, the same for all, and what was found of them |
//! | `work` | the cases, and the peers that do them |
//! | `siltstone` | Siltstone as a program embeds it, from a thread of its own or on that of a shard |
//! | `rocksdb`, `fjall`, `cqlite` | the others |
//!
//! All of them allocate with mimalloc, what is written in C++ too: a program chooses its allocator, a library does not.

mod cqlite;
mod fjall;
mod rocksdb;
mod rows;
mod siltstone;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, Parser, Subcommand, ValueEnum};

use mimalloc::MiMalloc;
use rows::Rows;
use work::{Case, Measured, Plan, Result};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// One piece of work by one database.
#[derive(Debug, Parser)]
#[command(name = "peers", arg_required_else_help = true)]
struct Peers {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the rows in one sorted run.
    Prepare(Settings),
    /// Write the rows as a user does.
    Load(Settings),
    /// Open and read.
    Read(Reading),
    /// Read one row of the large fixture by cqlite.
    OneRow(cqlite::OneRow),
}

/// Who does it, and where.
#[derive(Clone, Debug, Args)]
struct Settings {
    #[arg(value_enum)]
    peer: PeerName,

    /// The folder of the database.
    #[arg(long)]
    folder: PathBuf,

    /// Rows of the large partition.
    #[arg(long, default_value = "1000000")]
    rows: u32,

    /// Bytes a value.
    #[arg(long, default_value = "200")]
    value_size: usize,

    /// Memory for all that is cached, in MiB.
    #[arg(long, default_value = "8")]
    memory: usize,

    /// Whether indexes and filters are in the cache as well, where that is a choice.
    #[arg(long)]
    bounded_index: bool,

    /// Read through the page cache of the operating system, where there is a choice.
    #[arg(long)]
    buffered: bool,

    /// Use io_uring, where there is a choice. Without it a request is a system call, which can be counted.
    #[arg(long)]
    io_uring: bool,

    /// Do not compare checksums of what is read, where there is a choice.
    #[arg(long)]
    unchecked: bool,

    /// What is prepared is what a load leaves, where that is another thing.
    #[arg(long)]
    as_loaded: bool,

    /// KiB of a block.
    #[arg(long, default_value = "4")]
    block: u32,
}

#[derive(Debug, Args)]
struct Reading {
    #[command(flatten)]
    settings: Settings,

    /// What is read.
    #[arg(long, value_enum)]
    case: Case,

    /// So many operations come first, from the first on.
    #[arg(long, default_value = "0")]
    warm: u64,

    /// The operation with which measuring begins.
    #[arg(long, default_value = "0")]
    from: u64,

    /// How many operations are measured.
    #[arg(long, default_value = "1000")]
    count: u64,

    /// How often these are done.
    #[arg(long, default_value = "1")]
    rounds: u64,

    /// How many rows a scan goes through at the most.
    #[arg(long, default_value = "4294967295")]
    scan_rows: usize,

    /// How many read at once, each its share of the operations.
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    readers: u64,
}

#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
enum PeerName {
    Siltstone,
    SiltstoneWithin,
    Rocksdb,
    Fjall,
    Cqlite,
}

impl Settings {
    fn of_rows(&self) -> Rows {
        Rows { count: self.rows, value_size: self.value_size }
    }

    fn cache_bytes(&self) -> usize {
        self.memory << 20
    }
}

fn main() -> ExitCode {
    match run(Peers::parse().command) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("peers: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<String> {
    let began = Instant::now();
    match command {
        Command::Prepare(settings) => match settings.peer {
            PeerName::Siltstone | PeerName::SiltstoneWithin | PeerName::Cqlite if !settings.as_loaded => {
                siltstone::prepare(&settings)
            }
            _ => load(&settings),
        }?,
        Command::Load(settings) => load(&settings)?,
        Command::Read(reading) => return Ok(read(&reading)?.to_json()),
        Command::OneRow(one) => return one.run(),
    }
    Ok(format!("{{\"seconds\":{}}}", began.elapsed().as_secs_f64()))
}

fn load(settings: &Settings) -> Result<()> {
    match settings.peer {
        PeerName::Siltstone | PeerName::SiltstoneWithin => siltstone::load(settings),
        PeerName::Rocksdb => rocksdb::load(settings),
        PeerName::Fjall => fjall::load(settings),
        PeerName::Cqlite => Err("cqlite is compared in reading only".into()),
    }
}

fn read(reading: &Reading) -> Result<Measured> {
    let Reading { settings, case, warm, from, count, rounds, scan_rows, readers } = reading;
    let (rows, case) = (settings.of_rows(), *case);
    let (warm, from, count, rounds) = (*warm, *from, *count, *rounds);
    let (scan_rows, readers) = (*scan_rows, *readers);
    let plan = Plan { case, rows, warm, from, count, rounds, scan_rows, readers };
    match settings.peer {
        PeerName::Siltstone => plan.run_alone(|| siltstone::Embedded::open(settings)),
        PeerName::SiltstoneWithin => siltstone::Embedded::run_within(settings, &plan),
        PeerName::Rocksdb => plan.run_alone(|| rocksdb::Rocks::open(settings)),
        PeerName::Fjall => plan.run_alone(|| fjall::Fjall::open(settings)),
        PeerName::Cqlite => plan.run_alone(|| cqlite::Cqlite::open(settings)),
    }
}
