//! `cargo xtask`: reads the arguments and starts a chore.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::tidy::tree::Tree;
use xtask::{
    Result, bloomfile, compare_dump, compare_write, golden, growth, instructions, interop, peers, published,
    tidy, workspace,
};

/// The chores of the project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_version_flag = true)]
struct Xtask {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check the habits of the house.
    Tidy,
    /// Write fixtures anew in each version, and have a live Cassandra dump, verify, import, select and compact them.
    Interop(interop::Options),
    /// Rewrite the golden texts whose answers are Cassandra's.
    Golden(golden::Options),
    /// Time Cassandra's sstabledump and ours side by side, on the same files.
    CompareDump(compare_dump::Options),
    /// Time Cassandra's CQLSSTableWriter and our writer side by side, with the same rows.
    CompareWrite(compare_write::Options),
    /// Count the instructions and allocations of reads and writes, with valgrind.
    Instructions(instructions::Options),
    /// Measure how the cost of a row grows with what it is in, with valgrind.
    Growth(growth::Options),
    /// Measure lookups in bloom filters by pages, in the ways of before and of now.
    Bloomfile(bloomfile::Options),
    /// Run the published benchmarks and lay them beside what was published; with valgrind.
    Published(published::Options),
    /// Measure the same work by Siltstone, RocksDB, fjall, cqlite and Cassandra side by side. Builds them first, which takes long.
    Peers(peers::Options),
}

fn main() -> ExitCode {
    let done = match Xtask::parse().chore {
        Chore::Tidy => print_findings(),
        Chore::Interop(options) => interop::run(&options),
        Chore::Golden(options) => golden::run(&options).map(|()| true),
        Chore::CompareDump(options) => compare_dump::run(&options).map(|()| true),
        Chore::CompareWrite(options) => compare_write::run(&options).map(|()| true),
        Chore::Instructions(options) => instructions::run(&options).map(|()| true),
        Chore::Growth(options) => growth::run(&options).map(|()| true),
        Chore::Bloomfile(options) => bloomfile::run(&options).map(|()| true),
        Chore::Published(options) => published::run(&options).map(|()| true),
        Chore::Peers(options) => peers::run(&options).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn print_findings() -> Result<bool> {
    let tree = Tree::read(&workspace::root())?;
    let findings = tidy::findings(&tree);
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("{}; {} findings", tidy::Sizes::of(&tidy::sources(&tree)), findings.len());
    Ok(findings.is_empty())
}
