//! The checks of one set of fixtures in one version, one table after the other, by a live node.
//!
//! Two threads share the work: one writes SSTables and dumps them, the other asks the node and compares.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use testkit::cassandra::{Node, TableName};
use testkit::command::checked;

use super::compare;
use super::report::{Check, Checked, Report, exception, refusal};
use super::sets::{Set, Table};
use super::writing::{Writing, copy, dump_to};
use crate::Result;
use crate::workspace::verify;

/// The keyspaces of originals end like this.
const THEIRS: &str = "theirs";

/// How many tables may be written before the node has looked at them.
const AHEAD: usize = 4;

/// What the checks need.
#[derive(Debug)]
pub struct Checks<'a> {
    /// Our command.
    pub siltstone: &'a Path,
    /// A live node.
    pub node: &'a mut Node,
    /// What went well.
    pub report: &'a mut Report,
}

/// A set whose originals were imported into a keyspace of their own, and what a SELECT of them returned.
#[derive(Debug)]
pub struct Twin<'a> {
    set: &'a Set,
    /// Where answers and dumps of the originals are, and SSTables as we write them.
    folder: PathBuf,
    keyspace: String,
    /// Whether Cassandra took the originals, by table.
    imported: Vec<bool>,
}

/// A table as we wrote it.
struct Written {
    /// The number of the table in its set.
    number: usize,
    sstables: Vec<Result<Sstable>>,
}

/// An SSTable as we wrote it, with our dump of it.
struct Sstable {
    data: PathBuf,
    dump: PathBuf,
}

impl<'a> Twin<'a> {
    /// Imports the originals of a set, asks for all their rows, and once more with extra rows.
    ///
    /// # Errors
    /// If the node fails.
    pub fn import(
        set: &'a Set,
        folder: PathBuf,
        keyspace: String,
        checks: &mut Checks<'_>,
    ) -> Result<Twin<'a>> {
        fs::create_dir_all(&folder)?;
        let mut twin = Twin { set, folder, keyspace, imported: vec![false; set.tables.len()] };
        twin.dump_originals(checks.siltstone)?;
        let keyspace = twin.keyspace(THEIRS);
        let Some(schema) = set.schema_in(&keyspace) else { return Ok(twin) };
        checks.node.schema(&schema)?;
        for (number, table) in set.tables.iter().enumerate().filter(|(_, table)| !table.is_index()) {
            let name = twin.originals(table);
            let went = twin.import_table(table, &name, checks.node);
            twin.imported[number] = went.is_ok();
            if went.is_err() {
                let of =
                    Checked { set: &set.name, table: &table.name, version: "theirs", check: Check::Import };
                checks.report.note(&of, table.data.len(), went);
            }
        }
        Ok(twin)
    }

    /// What was imported.
    pub fn set(&self) -> &Set {
        self.set
    }

    /// Where answers and dumps are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The keyspace of what was made of the originals in some way.
    pub fn keyspace(&self, way: &str) -> String {
        format!("{}_{way}", self.keyspace)
    }

    /// The tables whose originals Cassandra took.
    pub fn importable(&self) -> impl Iterator<Item = &'a Table> {
        self.set.tables.iter().zip(&self.imported).filter(|(_, imported)| **imported).map(|(table, _)| table)
    }

    /// The table that the originals were imported into.
    pub fn originals(&self, table: &Table) -> TableName {
        TableName { keyspace: self.keyspace(THEIRS), name: table.name.clone() }
    }

    /// The answer to a SELECT of the originals of a table.
    pub fn answer(&self, table: &str) -> PathBuf {
        self.folder.join(format!("{table}.theirs"))
    }

    fn answer_with_extra_rows(&self, table: &str) -> PathBuf {
        self.folder.join(format!("{table}.theirs_and_extra"))
    }

    fn original_dump(&self, table: &str, number: usize) -> PathBuf {
        self.folder.join(format!("{table}.{number}.json"))
    }

    fn dump_originals(&self, siltstone: &Path) -> Result<()> {
        for table in &self.set.tables {
            for (number, data) in table.data.iter().enumerate() {
                dump_to(siltstone, data, &self.original_dump(&table.name, number))?;
            }
        }
        Ok(())
    }

    fn import_table(&self, table: &Table, name: &TableName, node: &mut Node) -> Result<()> {
        let folder = self.folder.join("originals").join(&table.name);
        for data in &table.data {
            copy(data, &folder)?;
        }
        node.import(name, &[folder])?;
        node.select(name, self.set.now, &self.answer(&table.name))?;
        node.write_extra_rows(name)?;
        node.select(name, self.set.now, &self.answer_with_extra_rows(&table.name))?;
        match &table.expected {
            Some(expected) => compare::with_expected(&self.answer(&table.name), expected),
            None => Ok(()),
        }
    }
}

impl Checks<'_> {
    /// Writes all SSTables of a set, and has Cassandra look at them.
    ///
    /// # Errors
    /// If the node fails.
    pub fn check(&mut self, twin: &Twin<'_>, writing: Writing<'_>) -> Result<()> {
        let keyspace = twin.keyspace(writing.name());
        // Keyspaces stay: to drop one takes Cassandra longer than to make it, fill it and compact it.
        if let Some(schema) = twin.set.schema_in(&keyspace) {
            self.node.schema(&schema)?;
        }
        let (sender, written) = sync_channel(AHEAD);
        let siltstone = self.siltstone;
        thread::scope(|scope| {
            scope.spawn(move || write_all(siltstone, twin, writing, &sender));
            self.check_all(twin, writing, &keyspace, &written)
        })?;
        Ok(fs::remove_dir_all(twin.folder.join(writing.name()))?)
    }

    fn check_all(
        &mut self,
        twin: &Twin<'_>,
        writing: Writing<'_>,
        keyspace: &str,
        written: &Receiver<Written>,
    ) -> Result<()> {
        for Written { number, sstables } in written {
            let table = &twin.set.tables[number];
            let of =
                |check| Checked { set: &twin.set.name, table: &table.name, version: writing.name(), check };
            let name = TableName { keyspace: keyspace.to_owned(), name: table.name.clone() };
            let mut good = Vec::new();
            for (number, sstable) in sstables.into_iter().enumerate() {
                match sstable {
                    Err(error) => match refusal(&error.to_string()) {
                        Some(reason) => self.report.except(&of(Check::Rows), reason),
                        None => self.report.note(&of(Check::Rows), 1, Err(error)),
                    },
                    Ok(sstable) => {
                        let original = twin.original_dump(&table.name, number);
                        let rows = compare::rows_of_dumps(&sstable.dump, &original);
                        self.report.note(&of(Check::Rows), 1, rows);
                        self.check_dump(&of(Check::Dump), &table.data[number], &sstable);
                        if twin.set.has_schema() {
                            let verified = self.node.verify(&name, &sstable.data);
                            self.report.note(&of(Check::Verify), 1, verified);
                        }
                        good.push(sstable);
                    }
                }
            }
            self.check_table(twin, number, &name, &good, of);
        }
        Ok(())
    }

    fn check_dump(&mut self, of: &Checked<'_>, original: &Path, sstable: &Sstable) {
        if let Some(reason) = exception(of.check, of.table, file_name(original)) {
            return self.report.except(of, reason);
        }
        let theirs = sstable.dump.with_extension("theirs");
        let dumped = self.node.dump(&sstable.data, &theirs);
        self.report.note(of, 1, dumped.and_then(|()| compare::dumps(&sstable.dump, &theirs)));
    }

    /// What concerns all SSTables of a table at once: they are imported, asked for, and compacted.
    fn check_table<'c>(
        &mut self,
        twin: &Twin<'_>,
        number: usize,
        name: &TableName,
        sstables: &[Sstable],
        of: impl Fn(Check) -> Checked<'c>,
    ) {
        let table = &twin.set.tables[number];
        for check in [Check::Import, Check::Compact] {
            if let Some(reason) = exception(check, &table.name, "") {
                return self.report.except(&of(check), reason);
            }
        }
        if !twin.imported[number] || sstables.len() < table.data.len() {
            return;
        }
        let imported = self.import(twin, table, name, sstables);
        let is_there = imported.is_ok();
        self.report.note(&of(Check::Import), sstables.len(), imported);
        if is_there {
            let compacted = self.compact(twin, table, name);
            self.report.note(&of(Check::Compact), sstables.len(), compacted);
        }
    }

    fn import(
        &mut self,
        twin: &Twin<'_>,
        table: &Table,
        name: &TableName,
        sstables: &[Sstable],
    ) -> Result<()> {
        let folders = sstables.iter().filter_map(|sstable| sstable.data.parent().map(Path::to_owned));
        let imported = self.node.import(name, &folders.collect::<Vec<_>>())?;
        if imported != sstables.len() {
            return Err(format!("{imported} of {} SSTables were imported", sstables.len()).into());
        }
        let answer = twin.folder.join("answer");
        self.node.select(name, twin.set.now, &answer)?;
        compare::selects(&answer, &twin.answer(&table.name))?;
        match &table.expected {
            Some(expected) => compare::with_expected(&answer, expected),
            None => Ok(()),
        }
    }

    fn compact(&mut self, twin: &Twin<'_>, table: &Table, name: &TableName) -> Result<()> {
        self.node.write_extra_rows(name)?;
        self.node.flush(name)?;
        self.node.maintain("compact", name)?;
        let answer = twin.folder.join("answer");
        self.node.select(name, twin.set.now, &answer)?;
        compare::selects(&answer, &twin.answer_with_extra_rows(&table.name))?;
        let files = self.node.files(name)?;
        if files.len() != 1 {
            return Err(format!("{} SSTables after a major compaction", files.len()).into());
        }
        checked(&mut verify(self.siltstone, &files[0]))?;
        if exception(Check::Dump, &table.name, file_name(&files[0])).is_some() {
            return Ok(());
        }
        let [ours, theirs] = ["compacted.json", "compacted.theirs"].map(|name| twin.folder.join(name));
        self.node.dump(&files[0], &theirs)?;
        dump_to(self.siltstone, &files[0], &ours)?;
        compare::dumps(&ours, &theirs)
    }
}

fn file_name(data: &Path) -> &str {
    data.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Writes and dumps the tables of a set until nobody asks for more.
fn write_all(siltstone: &Path, twin: &Twin<'_>, writing: Writing<'_>, sender: &SyncSender<Written>) {
    for (number, table) in twin.set.tables.iter().enumerate() {
        // Cassandra takes names of keyspaces and tables from folders: letters and digits are good for both.
        let folder = twin.folder.join(writing.name()).join(number.to_string());
        let sstables = table.data.iter().enumerate().map(|(number, original)| {
            let dump = folder.join(format!("{number}.json"));
            // Only the folder tells that a table is an index's.
            let folder = folder.join(number.to_string()).join(if table.is_index() { ".index" } else { "" });
            let data = writing.written_by_us(siltstone, original, &folder)?;
            dump_to(siltstone, &data, &dump)?;
            Ok(Sstable { data, dump })
        });
        if sender.send(Written { number, sstables: sstables.collect() }).is_err() {
            return;
        }
    }
}
