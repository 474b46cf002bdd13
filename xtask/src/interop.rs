//! What Siltstone writes, a live Cassandra takes: each fixture is rewritten in each version of the format, and then dumped,
//! verified, imported, asked for and compacted by Cassandra itself.
//!
//! | file | idea |
//! |---|---|
//! | [`sets`] | fixtures by the set they were made in, with its schema |
//! | [`generated`] | sets that were made just now, of random writes |
//! | [`writing`] | SSTables as Siltstone writes them |
//! | [`checks`] | what a live node is asked about them |
//! | [`compacting`] | tables that Siltstone compacts, and what is left of them |
//! | [`tools`] | the command-line tools themselves, end to end |
//! | [`compare`] | dumps and rows, compared |
//! | [`report`] | what passed, what failed, and what cannot be checked |

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use testkit::cassandra::{Cassandra, Node, VERSION, Work, Writes};
use testkit::fixtures::{self, Fixture};

use crate::Result;
use crate::workspace::{siltstone, target};
use checks::{Checks, Twin};
use report::Report;
use sets::Set;
use tools::Imported;
use writing::Writing;

pub mod checks;
pub mod compacting;
pub mod compare;
pub mod generated;
pub mod report;
pub mod sets;
pub mod tools;
pub mod writing;

/// The versions of the format that we write.
const VERSIONS: [&str; 5] = ["mc", "md", "me", "nb", "oa"];

/// What can be chosen.
#[derive(Debug, Args)]
pub struct Options {
    /// A folder with the jars of cassandra-all; without it Maven brings them.
    #[arg(long, value_name = "DIR")]
    cassandra: Option<PathBuf>,

    /// Check the fixtures as they are instead of writing them anew: checks the checks.
    #[arg(long, hide = true)]
    as_is: bool,

    /// The versions to write.
    #[arg(long, value_name = "VERSION", value_delimiter = ',', default_values = VERSIONS)]
    to: Vec<String>,

    /// The seed of the tables and rows that are made up; without it, another one each time.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Only the fixtures whose name contains this; `generated` for what is made up.
    #[arg(value_name = "PART")]
    part: Option<String>,
}

/// Checks all fixtures, and prints how many SSTables passed; whether all did.
///
/// # Errors
/// If Cassandra or our command cannot be had, or the node fails.
pub fn run(options: &Options) -> Result<bool> {
    let siltstone = siltstone()?;
    let cassandra = Cassandra::prepare(&target(), options.cassandra.as_deref())?;
    let folder = target().join("cassandra/interop");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut sets = sets::of_fixtures(&chosen_fixtures(options), now())?;
    let writings: Vec<Writing<'_>> = match options.as_is {
        true => vec![Writing::AsIs],
        false => options.to.iter().map(|version| Writing::To(version)).collect(),
    };
    let seed = options.seed.unwrap_or_else(now);
    let makes_up = options.part.as_ref().is_none_or(|part| "generated".contains(&**part));
    if makes_up {
        println!("the seed of what is made up: {seed}");
        let mut node = cassandra.node(&folder.join("older_node"), Writes::Nb, Work::Questions)?;
        sets.push(generated::set(&mut node, seed, &folder.join("nb"), "generated nb")?);
    }
    let started = Instant::now();
    let mut node = cassandra.node(&folder.join("node"), Writes::Oa, Work::Questions)?;
    println!("Cassandra {VERSION} is up after {:.1} s", started.elapsed().as_secs_f64());
    if makes_up {
        let seed = seed.wrapping_add(1);
        sets.push(generated::set(&mut node, seed, &folder.join("oa"), "generated oa")?);
    }
    let mut report = Report::default();
    let mut imported = None;
    for (number, set) in sets.iter().enumerate() {
        let mut checks = Checks { siltstone: &siltstone, node: &mut node, report: &mut report };
        let twin = check(&mut checks, set, &folder.join(format!("set{number}")), &writings)?;
        if imported.is_none() && tools::has_tables(set) {
            imported = Some(tools::import((&cassandra, &mut node), &siltstone, (set, &twin), &writings)?);
        }
    }
    for (verb, (times, elapsed)) in node.times() {
        println!("{verb:9} {times:5} times, {:6.1} s", elapsed.as_secs_f64());
    }
    println!("{report}");
    end(&cassandra, node, imported.as_ref())?;
    Ok(report.is_good())
}

/// Fixtures of Cassandra's, or those that the name says; others have no schema to import them with.
fn chosen_fixtures(options: &Options) -> Vec<Fixture> {
    let part = options.part.as_deref().unwrap_or("cassandra/");
    fixtures::all().into_iter().filter(|fixture| fixture.name.contains(part)).collect()
}

fn check<'a>(
    checks: &mut Checks<'_>,
    set: &'a Set,
    folder: &Path,
    writings: &[Writing<'_>],
) -> Result<Twin<'a>> {
    let started = Instant::now();
    let name = folder.file_name().and_then(|name| name.to_str()).ok_or("a folder has a name")?;
    let twin = Twin::import(set, folder.to_owned(), name.to_owned(), checks)?;
    for writing in writings {
        checks.check(&twin, *writing)?;
    }
    checks.check_compactions(&twin)?;
    let sstables: usize = set.tables.iter().map(|table| table.data.len()).sum();
    let seconds = started.elapsed().as_secs_f64();
    println!("{}: {sstables} SSTables of {} tables, {seconds:.1} s", set.name, set.tables.len());
    Ok(twin)
}

/// Ends the node, and asks the tool that wants it so.
fn end(cassandra: &Cassandra, node: Node, imported: Option<&Imported>) -> Result<()> {
    let Some(imported) = imported else { return Ok(()) };
    let folder = node.folder().to_owned();
    node.quit()?;
    let tables = tools::verify(cassandra, &folder, imported)?;
    println!("{tables} tables imported by nodetool and verified by sstableverify");
    Ok(())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
