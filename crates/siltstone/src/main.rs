//! The command `siltstone`.

mod command;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // Where that is refused, a file that cannot be opened tells.
    drop(runtime::allow_many_files());
    match command::Siltstone::parse_from(asked(std::env::args_os().collect())).run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_closed_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            command::complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

/// What is asked for. The program of the benchmarks knows its own help: `help perf …` is asked of it as `perf … --help` is.
fn asked(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1..3).is_some_and(|words| words == ["help", "perf"]) {
        arguments.remove(1);
        arguments.push("--help".into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_benchmarks_are_asked_for_their_help() {
        let asked = |words: &str| asked(words.split(' ').map(OsString::from).collect()).join(" ".as_ref());
        for (words, expected) in [
            ("siltstone help perf", "siltstone perf --help"),
            ("siltstone help perf growth", "siltstone perf growth --help"),
            ("siltstone help sstable", "siltstone help sstable"),
            ("siltstone perf help", "siltstone perf help"),
            ("siltstone", "siltstone"),
        ] {
            assert_eq!(asked(words), expected);
        }
    }
}
