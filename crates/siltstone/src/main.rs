//! The command `siltstone`.

mod command;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Where that is refused, a file that cannot be opened tells.
    drop(runtime::allow_many_files());
    match command::Siltstone::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            command::complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
