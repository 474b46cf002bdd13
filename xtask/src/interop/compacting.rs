//! Tables that Siltstone compacts: what is left of all their SSTables, Cassandra dumps as we do, and finds nothing wrong in.
//!
//! The clock of a compaction is today's: by then most of what expires in the fixtures has expired, and its tombstones are
//! purged. That the rows are right is a matter of tests that set the clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::cassandra::TableName;
use testkit::command::checked;

use super::checks::{Checks, Twin};
use super::compare;
use super::report::{Check, Checked, exception};
use super::sets::Table;
use super::writing::{copy, data_files, dump_to};
use crate::Result;

/// What stands for a version of the format in messages, and for the keyspace in folders.
const VERSION: &str = "compacted";

/// Each leaves one SSTable.
const SHARDS: &str = "2";

impl Checks<'_> {
    /// Compacts each table of a set, and has Cassandra look at what comes of it.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn check_compactions(&mut self, twin: &Twin<'_>) -> Result<()> {
        let Some(schema) = twin.set().schema_in(VERSION) else { return Ok(()) };
        let folder = twin.folder().join(VERSION);
        fs::create_dir_all(&folder)?;
        let schema_file = folder.join("schema.cql");
        fs::write(&schema_file, schema)?;
        for table in twin.importable() {
            let of = |check| Checked { set: &twin.set().name, table: &table.name, version: VERSION, check };
            match compact(self.siltstone, table, &schema_file, &folder.join(&table.name)) {
                Err(error) => self.report.note(&of(Check::Compacted), table.data.len(), Err(error)),
                Ok(left) => {
                    self.report.note(&of(Check::Compacted), table.data.len(), Ok::<(), String>(()));
                    for data in &left {
                        self.check_one(&of, &twin.originals(table), data);
                    }
                }
            }
        }
        Ok(fs::remove_dir_all(folder)?)
    }

    fn check_one<'c>(&mut self, of: &impl Fn(Check) -> Checked<'c>, name: &TableName, data: &Path) {
        let verified = self.node.verify(name, data);
        self.report.note(&of(Check::Verify), 1, verified);
        if let Some(reason) = exception(Check::Dump, &name.name, "") {
            return self.report.except(&of(Check::Dump), reason);
        }
        let [ours, theirs] = ["ours.json", "theirs.json"].map(|file| data.with_file_name(file));
        let dumped = self.node.dump(data, &theirs).and_then(|()| dump_to(self.siltstone, data, &ours));
        self.report.note(&of(Check::Dump), 1, dumped.and_then(|()| compare::dumps(&ours, &theirs)));
    }
}

/// Compacts copies of a table's SSTables; what is left, one for each shard at the most.
fn compact(siltstone: &Path, table: &Table, schema: &Path, place: &Path) -> Result<Vec<PathBuf>> {
    for data in &table.data {
        copy(data, place)?;
    }
    let mut compact = Command::new(siltstone);
    checked(compact.args(["table", "compact", "--shards", SHARDS, "--schema"]).arg(schema).arg(place))?;
    let left = data_files(place)?;
    match left.len() {
        0..=2 => Ok(left),
        count => Err(format!("{count} SSTables after a major compaction").into()),
    }
}
