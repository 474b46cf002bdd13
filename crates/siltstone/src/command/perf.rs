//! `siltstone perf`: hands its arguments to the program of the benchmarks, which stands beside this one.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
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
        let error = run_instead(Command::new(&program).args(self.arguments));
        Err(Error::file(&program, format!("it cannot be run: {error}")))
    }
}

/// Runs another program in the place of this one, with its signals and how it ends. Why it could not be run, if this comes back.
#[cfg(unix)]
fn run_instead(command: &mut Command) -> std::io::Error {
    std::os::unix::process::CommandExt::exec(command)
}

/// Runs another program and ends as it does. Why it could not be run, if this comes back.
#[cfg(not(unix))]
fn run_instead(command: &mut Command) -> std::io::Error {
    match command.status() {
        // What went wrong, it has said itself.
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
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
