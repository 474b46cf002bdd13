//! `siltstone perf`: hands its arguments to the program of the benchmarks, which stands beside this one.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use siltstone::{Error, Result};

/// Run the published benchmarks on our files; siltstone-perf, beside this program, does it.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(super) struct Perf {
    /// The benchmark with its options: --help names them.
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

impl Perf {
    pub(super) fn run(self) -> Result<()> {
        let program = program()?;
        // With its signals, and how it ends; this comes back only if it cannot be run.
        let error = Command::new(&program).args(self.arguments).exec();
        Err(Error::file(&program, format!("it cannot be run: {error}")))
    }
}

/// The program, which is installed beside this one.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let program = own.with_file_name(format!("siltstone-perf{EXE_SUFFIX}"));
    if program.exists() {
        return Ok(program);
    }
    let what = "the benchmarks are a program of their own, which is not here: `cargo install --path crates/perf` puts it beside an \
                installed siltstone, and `cargo build --release -p siltstone-perf` beside a built one";
    Err(Error::file(&program, what))
}
