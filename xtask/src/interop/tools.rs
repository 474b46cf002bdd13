//! The command-line tools themselves, end to end: `nodetool import` over JMX, and `sstableverify` of a node that is down.
//!
//! The other checks ask the same of a node from within; this shows that it is the same. A few tables of each version are
//! enough for that.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::cassandra::{Cassandra, Node, Run, TableName};

use super::checks::Twin;
use super::compare;
use super::report::refusal;
use super::sets::Set;
use super::writing::Writing;
use crate::Result;

/// What is imported in each version, of a set that has it.
const TABLES: [&str; 5] = ["coll", "counters", "t0", "tombs", "udts"];

/// Tables that the tools took.
#[derive(Debug)]
pub struct Imported {
    tables: Vec<TableName>,
}

/// Whether a set has what the tools are tried with.
pub fn has_tables(set: &Set) -> bool {
    set.has_schema() && set.tables.iter().any(|table| TABLES.contains(&&*table.name))
}

/// Imports a few tables of a set in each version with `nodetool import`; a SELECT must return what it returns of the
/// originals.
///
/// # Errors
/// If the tool fails, or rows are not the same.
pub fn import(
    (cassandra, node): (&Cassandra, &mut Node),
    siltstone: &Path,
    (set, twin): (&Set, &Twin<'_>),
    writings: &[Writing<'_>],
) -> Result<Imported> {
    let (mut runs, mut tables) = (Vec::new(), Vec::new());
    let folder = node.folder().join("nodetool");
    for writing in writings {
        let keyspace = format!("tools_{}", writing.name());
        let schema = set.schema_in(&keyspace).ok_or("a set for the tools has a schema")?;
        node.schema(&schema)?;
        for table in set.tables.iter().filter(|table| TABLES.contains(&&*table.name)) {
            let name = TableName { keyspace: keyspace.clone(), name: table.name.clone() };
            let folder = folder.join(writing.name()).join(&table.name);
            let sources: Result<Vec<PathBuf>> = table
                .data
                .iter()
                .enumerate()
                .map(|(number, data)| {
                    let folder = folder.join(number.to_string());
                    writing.written_by_us(siltstone, data, &folder).map(|_| folder)
                })
                .collect();
            let sources = match sources {
                Err(error) if refusal(&error.to_string()).is_some() => continue,
                sources => sources?,
            };
            runs.push(nodetool_import(node, &name, &sources, folder.join("output")));
            tables.push(name);
        }
    }
    cassandra.tools(node.folder(), &runs)?;
    let answer = folder.join("answer");
    for table in &tables {
        node.select(table, set.now, &answer)?;
        compare::selects(&answer, &twin.answer(&table.name))
            .map_err(|error| format!("{}.{}: {error}", table.keyspace, table.name))?;
    }
    Ok(Imported { tables })
}

fn nodetool_import(node: &Node, table: &TableName, sources: &[PathBuf], output: PathBuf) -> Run {
    let port = node.jmx_port().to_string();
    let words = ["-h", "127.0.0.1", "-p", &port, "import", "--extended-verify", &table.keyspace, &table.name];
    let sources = sources.iter().map(|source| source.display().to_string());
    let arguments = words.into_iter().map(str::to_owned).chain(sources).collect();
    Run { tool: "NodeTool", output, arguments }
}

/// `sstableverify --extended` of what was imported, after the node has ended; how many tables there are.
///
/// # Errors
/// If it finds something.
pub fn verify(cassandra: &Cassandra, folder: &Path, imported: &Imported) -> Result<usize> {
    let outputs = folder.join("sstableverify");
    fs::create_dir_all(&outputs)?;
    let runs: Vec<Run> = imported
        .tables
        .iter()
        .enumerate()
        .map(|(number, table)| {
            let words = ["--force", "--extended", "--verbose", &table.keyspace, &table.name];
            let arguments = words.map(str::to_owned).to_vec();
            Run { tool: "StandaloneVerifier", output: outputs.join(number.to_string()), arguments }
        })
        .collect();
    cassandra.tools(folder, &runs)?;
    for (table, run) in imported.tables.iter().zip(&runs) {
        let said = fs::read_to_string(&run.output)?;
        // It says nothing of a table that it finds no SSTables of, and is content.
        if !said.contains("succeeded. All ") {
            return Err(format!("{}.{}: sstableverify said\n{said}", table.keyspace, table.name).into());
        }
    }
    Ok(imported.tables.len())
}
