//! The benchmarks of which something was published: run again, and laid beside it.
//!
//! ```text
//! docs/performance/published.json ───────────┐
//! siltstone perf … --output-format json ──► tables ──► their places on docs/performance/<benchmark>.md
//! ```
//!
//! | module | page |
//! |---|---|
//! | [`fast_forward`] | slices and skips |
//! | [`simple_query`] | point reads and writes |
//! | [`single_key`] | rows of several SSTables |

pub mod fast_forward;
pub mod simple_query;
pub mod single_key;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::Value;
use testkit::command::checked;

use crate::instructions::check_valgrind;
use crate::measure::check_direct;
use crate::workspace::{perf, root, target};
use crate::{Result, pages};

/// What was published, with the names of our columns.
const PUBLISHED: &str = "docs/performance/published.json";

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// Only these benchmarks.
    #[arg(long, value_enum, value_name = "NAMES", value_delimiter = ',')]
    only: Vec<Benchmark>,

    /// Where a folder is made for the rows, which take up to 20 GB and are removed at the end. Default in the folder of builds.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Write the tables to the pages in docs/performance as well.
    #[arg(long)]
    write: bool,
}

/// Benchmarks with a page each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Benchmark {
    /// Slices and skips, of ten million rows and fewer.
    FastForward,
    /// Point reads and writes; instructions by valgrind.
    SimpleQuery,
    /// Rows of three SSTables at a constant rate: on a machine that does nothing else.
    SingleKey,
}

/// A place on a page, and the text for it.
type Part = (&'static str, String);

/// Measures, and prints the tables.
///
/// # Errors
/// If a run fails, or a page has no place for a table.
pub fn run(options: &Options) -> Result<()> {
    let is_chosen = |of: &&Benchmark| options.only.is_empty() || options.only.contains(of);
    let chosen: Vec<&Benchmark> = Benchmark::value_variants().iter().filter(is_chosen).collect();
    // Before the others are run, which takes long.
    if chosen.contains(&&Benchmark::SimpleQuery) {
        check_valgrind()?;
    }
    let bench = Bench {
        program: perf()?,
        folder: options.data.clone().unwrap_or_else(target),
        published: serde_json::from_str(&fs::read_to_string(root().join(PUBLISHED))?)?,
    };
    fs::create_dir_all(&bench.folder)?;
    for benchmark in chosen {
        let parts = match benchmark {
            Benchmark::FastForward => fast_forward::parts(&bench)?,
            Benchmark::SimpleQuery => simple_query::parts(&bench)?,
            Benchmark::SingleKey => single_key::parts(&bench)?,
        };
        for (part, text) in &parts {
            println!("{part}\n\n{text}");
        }
        if options.write {
            pages::write(benchmark.page(), parts.iter().map(|(part, text)| (*part, text.as_str())))?;
        }
    }
    Ok(())
}

impl Benchmark {
    fn page(self) -> &'static str {
        match self {
            Benchmark::FastForward => "docs/performance/fast-forward.md",
            Benchmark::SimpleQuery => "docs/performance/simple-query.md",
            Benchmark::SingleKey => "docs/performance/single-key.md",
        }
    }
}

/// What benchmarks are run with.
struct Bench {
    program: PathBuf,
    /// Where rows are written.
    folder: PathBuf,
    published: Value,
}

impl Bench {
    /// The results of a benchmark; the words of its arguments are without spaces.
    fn perf(&self, arguments: &str, data: Option<&Path>) -> Result<Value> {
        let printed =
            serde_json::from_slice(&self.start(&format!("{arguments} --output-format json"), data)?)?;
        check_direct(&printed)?;
        Ok(printed)
    }

    /// What it prints.
    fn start(&self, arguments: &str, data: Option<&Path>) -> Result<Vec<u8>> {
        let begin = Instant::now();
        eprintln!("siltstone perf {arguments}");
        let mut command = Command::new(&self.program);
        command.args(arguments.split(' '));
        if let Some(data) = data {
            command.arg("--data-directory").arg(data);
        }
        let printed = checked(&mut command)?.stdout;
        eprintln!("  {:.0} s", begin.elapsed().as_secs_f64());
        Ok(printed)
    }

    /// The lines of a published table.
    fn lines(&self, table: &str) -> Result<&[Value]> {
        Ok(self.published[table].as_array().ok_or_else(|| format!("{PUBLISHED} has no {table}"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bench of tests runs nothing.
    pub(super) fn bench() -> Bench {
        let published = serde_json::from_str(&fs::read_to_string(root().join(PUBLISHED)).unwrap()).unwrap();
        Bench { program: PathBuf::new(), folder: PathBuf::new(), published }
    }

    #[test]
    fn pages_have_a_place_for_each_table() {
        let names = [fast_forward::PARTS, simple_query::PARTS, single_key::PARTS];
        for (benchmark, names) in Benchmark::value_variants().iter().zip(names) {
            let page = fs::read_to_string(root().join(benchmark.page())).unwrap();
            for name in names {
                assert!(crate::pages::part_of(&page, name).contains("|---"), "{benchmark:?}: {name}");
            }
            assert_eq!(page.matches("<!-- end of ").count(), names.len(), "{benchmark:?}");
        }
    }
}
