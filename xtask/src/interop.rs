//! What Cassandra dumps, we dump: asked of Cassandra's own `sstabledump` afresh, not of kept dumps.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;
use testkit::fixtures::{self, Fixture};
use testkit::json::{difference, without_expired};

use crate::Result;
use crate::cassandra::{Cassandra, VERSION};
use crate::measure::checked;
use crate::workspace::{dump, siltstone, target};

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// A folder with the jars of cassandra-all; without it Maven brings them.
    #[arg(long, value_name = "DIR")]
    cassandra: Option<PathBuf>,

    /// Only the fixtures whose name contains this.
    #[arg(value_name = "PART", default_value = "cassandra/")]
    part: String,
}

/// Compares the dumps of all fixtures that Cassandra can dump, and prints how many are equal; whether all are.
///
/// # Errors
/// If Cassandra or our command cannot be had.
pub fn run(options: &Options) -> Result<bool> {
    let siltstone = siltstone()?;
    let cassandra = Cassandra::prepare(options.cassandra.as_deref())?;
    let (fixtures, without): (Vec<Fixture>, Vec<Fixture>) = fixtures::all()
        .into_iter()
        .filter(|fixture| fixture.name.contains(&options.part))
        .partition(|fixture| fixture.dump.is_some());
    println!("{} SSTables, dumped by Cassandra {VERSION} and by us", fixtures.len());
    println!("{} more that Cassandra cannot dump are left out", without.len());
    let theirs = their_dumps(&cassandra, &fixtures)?;
    let mut failed = 0;
    for (fixture, theirs) in fixtures.iter().zip(&theirs) {
        if let Err(error) = compare(&siltstone, &fixture.data, theirs) {
            println!("{}: {error}", fixture.name);
            failed += 1;
        }
    }
    println!("{} passed, {failed} failed", fixtures.len() - failed);
    Ok(failed == 0 && !fixtures.is_empty())
}

/// Dumps all with Cassandra; the files of the dumps.
fn their_dumps(cassandra: &Cassandra, fixtures: &[Fixture]) -> Result<Vec<PathBuf>> {
    let folder = target().join("cassandra/interop");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let dumps: Vec<PathBuf> =
        (0..fixtures.len()).map(|number| folder.join(format!("{number}.json"))).collect();
    let mut list = String::new();
    for (fixture, dump) in fixtures.iter().zip(&dumps) {
        writeln!(list, "{}\t{}", fixture.data.display(), dump.display())?;
    }
    let list_file = folder.join("list");
    fs::write(&list_file, list)?;
    let output = checked(&mut cassandra.many_dumps(&list_file)?)?;
    let said = String::from_utf8_lossy(&output.stderr);
    said.lines().filter(|line| line.contains("-Data.db: ")).for_each(|line| println!("Cassandra: {line}"));
    Ok(dumps)
}

fn compare(siltstone: &Path, data: &Path, theirs: &Path) -> Result<()> {
    let ours = checked(&mut dump(siltstone, data))?.stdout;
    let ours = parse(&ours).map_err(|error| format!("our dump: {error}"))?;
    let theirs = parse(&fs::read(theirs)?).map_err(|error| format!("Cassandra's dump: {error}"))?;
    difference(&ours, &theirs).map_or(Ok(()), |difference| Err(difference.into()))
}

/// A dump, without what depends on when it was made.
pub(crate) fn parse(dump: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(dump).map(without_expired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_digits() {
        let parse = |text: &str| parse(text.as_bytes()).unwrap();
        assert_eq!(parse("[{\"expired\": true, \"a\": 1.50}]"), parse("[{\"expired\": false, \"a\": 1.50}]"));
        assert_ne!(parse("1.5"), parse("1.50"));
        assert_ne!(parse("12345678901234567890.1"), parse("12345678901234567890.2"));
    }
}
