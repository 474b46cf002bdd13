//! Tables that Siltstone compacts: Cassandra reads what is left of all their SSTables, and finds what it finds in the
//! originals.
//!
//! The clock of a compaction is today's, and so is that of both questions: by then most of what expires in the
//! fixtures has expired, and its tombstones are purged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::cassandra::TableName;
use testkit::command::checked;

use super::checks::{Checks, Twin};
use super::compare;
use super::now;
use super::report::{Check, Checked, exception};
use super::sets::Table;
use super::writing::{copy, data_files, dump_to};
use crate::Result;

/// What stands for a version of the format in messages, and in the name of a keyspace.
const VERSION: &str = "compacted";

/// Each leaves one SSTable.
const SHARDS: &str = "2";

impl Checks<'_> {
    /// Compacts each table of a set, and has Cassandra look at what comes of it.
    ///
    /// # Errors
    /// If the node fails.
    pub fn check_compactions(&mut self, twin: &Twin<'_>) -> Result<()> {
        let keyspace = twin.keyspace(VERSION);
        let Some(schema) = twin.set().schema_in(&keyspace) else { return Ok(()) };
        self.node.schema(&schema)?;
        let folder = twin.folder().join(VERSION);
        fs::create_dir_all(&folder)?;
        let schema_file = folder.join("schema.cql");
        fs::write(&schema_file, schema)?;
        for table in twin.importable() {
            let name = TableName { keyspace: keyspace.clone(), name: table.name.clone() };
            let of = |check| Checked { set: &twin.set().name, table: &table.name, version: VERSION, check };
            match compact(self.siltstone, table, &schema_file, &folder.join(&table.name)) {
                Err(error) => self.report.note(&of(Check::Rows), table.data.len(), Err(error)),
                Ok(left) => {
                    for data in &left {
                        self.check_one(&of, &name, data);
                    }
                    let rows = self.check_rows(twin, table, &left);
                    self.report.note(&of(Check::Import), table.data.len(), rows);
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
        for file in [ours, theirs] {
            // Those that are left are in nobody's way.
            fs::remove_file(file).unwrap_or_default();
        }
    }

    /// The answers as of today to a SELECT of what is left, if anything is, and of the originals.
    fn check_rows(&mut self, twin: &Twin<'_>, table: &Table, left: &[PathBuf]) -> Result<()> {
        let name = TableName { keyspace: twin.keyspace(VERSION), name: table.name.clone() };
        let folder = left.first().and_then(|data| data.parent()).map(Path::to_owned);
        let imported = self.node.import(&name, folder.as_slice())?;
        if imported != left.len() {
            return Err(format!("{imported} of {} SSTables were imported", left.len()).into());
        }
        // The originals have them, too.
        self.node.write_extra_rows(&name)?;
        let [ours, theirs] = ["compacted.ours", "compacted.theirs"].map(|file| twin.folder().join(file));
        let now = now();
        self.node.select(&name, now, &ours)?;
        self.node.select(&twin.originals(table), now, &theirs)?;
        compare::selects(&ours, &theirs)
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
