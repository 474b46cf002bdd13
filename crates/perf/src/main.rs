//! The command `siltstone-perf`, which `siltstone perf` hands its arguments to. It is a program of its own so that the
//! product has neither the benchmarks nor an allocator that counts.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use siltstone_perf::allocations::Counted;
use siltstone_perf::bloomfile::Bloomfile;
use siltstone_perf::fast_forward::FastForward;
use siltstone_perf::growth::Growth;
use siltstone_perf::interrupted;
use siltstone_perf::reads::Reads;
use siltstone_perf::report::Report;
use siltstone_perf::simple_query::SimpleQuery;
use siltstone_perf::single_key::SingleKey;

#[global_allocator]
static COUNTED: Counted = Counted;

/// The published benchmarks of reads, on our files: requests, bytes and allocations are what they count.
///
/// Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments, 130 or 143 for an interrupt, behind which what was found by then is told.
#[derive(Debug, Parser)]
#[command(name = "siltstone perf", bin_name = "siltstone perf", version, arg_required_else_help = true)]
struct Perf {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    FastForward(FastForward),
    SimpleQuery(SimpleQuery),
    SingleKey(SingleKey),
    Reads(Reads),
    Growth(Growth),
    Bloomfile(Bloomfile),
    Report(Report),
}

fn main() -> ExitCode {
    interrupted::listen();
    // Where that is refused, a file that cannot be opened tells.
    drop(runtime::allow_many_files());
    let done = match Perf::parse().benchmark {
        Benchmark::FastForward(fast_forward) => fast_forward.run(&mut std::io::stdout()),
        Benchmark::SimpleQuery(simple_query) => simple_query.run(&mut std::io::stdout()),
        Benchmark::SingleKey(single_key) => single_key.run(&mut std::io::stdout()),
        Benchmark::Reads(reads) => reads.run(&mut std::io::stdout()),
        Benchmark::Bloomfile(bloomfile) => bloomfile.run(&mut std::io::stdout()),
        Benchmark::Growth(growth) => growth.run(&mut std::io::stdout()),
        Benchmark::Report(report) => report.run(&mut std::io::stdout()),
    };
    let code = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("siltstone perf: {}", error.in_words());
            ExitCode::from(error.exit_code())
        }
    };
    interrupted::exit_code().map_or(code, ExitCode::from)
}
