//! Arguments that several benchmarks have.

use std::path::Path;
use std::time::Duration;

use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use runtime::{Shard, ShardOptions};
use siltstone::Error;
use sstable::Version;

use crate::room;

/// The version of the program, which stands in every document that it prints.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How results are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Args)]
pub struct Printing {
    /// How the results are printed on stdout; all else is told on stderr.
    #[arg(long = "output-format", value_enum, default_value = "text", value_name = "FORMAT")]
    pub(crate) format: Format,
}

/// What they are printed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Lines for people, each as soon as it is known.
    Text,
    /// One document of JSON, at the end.
    Json,
}

/// How the shard reaches the disk. Under tools that count instructions io_uring is not to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Args)]
pub struct Machine {
    /// Whether to use io_uring where it can be had; else a pool of threads reads.
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) io_uring: bool,

    /// Whether to read past the page cache of the operating system where the file system can.
    #[arg(long, value_name = "BOOL", default_value = "true", action = ArgAction::Set, value_parser = BoolishValueParser::new())]
    pub(crate) direct_io: bool,
}

impl Machine {
    /// What becomes of it on a shard, with a folder's files. Says so if reads of them do not go past the page cache, or the kernel has no
    /// io_uring, where that was asked for.
    pub(crate) async fn found(self, shard: &Shard, folder: &Path) -> Result<Machine, Error> {
        let direct_io = self.direct_io && !room::is_buffered(shard.disk(), folder).await?;
        let io_uring = shard.uses_io_uring();
        if self.io_uring && !io_uring {
            eprintln!("the kernel lacks io_uring, or forbids it: a pool of threads reads");
        }
        Ok(Machine { io_uring, direct_io })
    }

    /// What a shard is started with.
    pub fn shard(self) -> ShardOptions {
        ShardOptions { io_uring: self.io_uring, direct_io: self.direct_io, cpu: None }
    }
}

/// The largest memory that can be asked for.
const MOST_BYTES: usize = 1 << 40;

/// A version of the format by its name.
pub(crate) fn versions() -> impl TypedValueParser<Value = Version> {
    let named = |name: String| Version::parse(&name).expect("it is one of these names");
    PossibleValuesParser::new(Version::ALL.map(Version::name)).map(named)
}

/// A number of seconds, which may have decimals.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "a number of seconds was expected".to_owned())
}

/// A number of bytes of memory, such as `200M`; no more than some machine has, as room for it is made beforehand.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(1 << shift));
    match number {
        None => Err("a number of bytes was expected, such as 200M; units are K, M and G".to_owned()),
        Some(bytes) if bytes > MOST_BYTES => Err("1024G is the most".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

/// The memory of a store, which has room for a memtable: with less each row would be an SSTable of its own.
pub(crate) fn memory(text: &str) -> Result<usize, String> {
    const LEAST: usize = 96 << 10;
    match bytes(text)? {
        ..LEAST => Err("96K is the least".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A number of seconds in which there is something to measure.
pub(crate) fn some_seconds(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(10);
    let is_long = |seconds: &Duration| *seconds >= LEAST;
    seconds(text).and_then(|some| Some(some).filter(is_long).ok_or_else(|| "0.01 is the least".to_owned()))
}

/// How many operations a second, within what a machine does.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = positive(text).ok().filter(|rate| (1.0..=1e7).contains(rate));
    rate.ok_or_else(|| "a number between 1 and 10,000,000 was expected".to_owned())
}

/// A number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "a number above 0 was expected".to_owned())
}

/// A number between 0 and 1, which are not among them.
pub(crate) fn chance(text: &str) -> Result<f64, String> {
    let chance = positive(text).ok().filter(|chance| *chance < 1.0);
    chance.ok_or_else(|| "a number above 0 and below 1 was expected".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (text, expected) in
            [("7", 7), ("3k", 3072), ("200M", 200 << 20), ("1g", 1 << 30), ("1024G", 1 << 40), ("0", 0)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for text in ["", "M", "2T", "-1", "1.5G", "1025G", "17179869183G", "99999999999G"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_are_within_reason() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("-1").is_err() && seconds("soon").is_err());
        assert_eq!(positive("0.0005"), Ok(0.0005));
        assert!(some_seconds("0").is_err() && some_seconds("0.009").is_err() && some_seconds("0.01").is_ok());
        assert!(rate("1e-20").is_err() && rate("1e12").is_err() && rate("4000").is_ok());
        assert!(memory("95k").is_err() && memory("96k") == Ok(96 << 10));
        assert!(positive("0").is_err() && positive("inf").is_err() && positive("NaN").is_err());
        assert!(chance("0").is_err() && chance("1").is_err() && chance("0.01") == Ok(0.01));
    }
}
