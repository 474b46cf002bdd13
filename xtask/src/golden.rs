//! Golden texts that come from Cassandra, asked for afresh: the answers about types.

use std::path::PathBuf;

use clap::Args;
use testkit::cassandra::Cassandra;
use testkit::command::checked;

use crate::Result;
use crate::workspace::{root, target};

/// The questions with their answers, beside the program that asks them.
const TYPES: [&str; 2] = ["crates/model/tests/types/Oracle.java", "crates/model/tests/types/golden.tsv"];

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// A folder with the jars of cassandra-all; without it Maven brings them.
    #[arg(long, value_name = "DIR")]
    cassandra: Option<PathBuf>,
}

/// Has Cassandra answer all questions anew, in place.
///
/// # Errors
/// If Cassandra cannot be had, or a question is none.
pub fn run(options: &Options) -> Result<()> {
    let cassandra = Cassandra::prepare(&target(), options.cassandra.as_deref())?;
    let [program, answers] = TYPES.map(|path| root().join(path));
    let mut java = cassandra.java(&program.display().to_string())?;
    checked(java.arg(&answers))?;
    println!("{} is as Cassandra answers now", TYPES[1]);
    Ok(())
}
