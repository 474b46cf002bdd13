//! Fixtures by the set they were made in: tables of one keyspace, with its schema.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use testkit::fixtures::Fixture;

use crate::Result;

/// Options of tables that Cassandra 5 knows no more.
const GONE_OPTIONS: [&str; 2] = ["AND read_repair_chance", "AND dclocal_read_repair_chance"];

/// What became of the columns of a table over time, which the text of its schema does not tell: a column of the same
/// name was dropped before it was added again.
const CHANGES: [(&str, &str); 1] = [(
    "dropped",
    "ALTER TABLE @.dropped DROP a; ALTER TABLE @.dropped ADD s int static; \
     ALTER TABLE @.dropped DROP s; ALTER TABLE @.dropped ADD a int;",
)];

/// SSTables of the tables of one keyspace.
#[derive(Debug)]
pub struct Set {
    /// A short name for messages.
    pub name: String,
    /// The second as of which rows are compared; between two runs, what expires may differ.
    pub now: u64,
    /// The tables, indexes among them, in the order of their names.
    pub tables: Vec<Table>,
    /// The statements that make the keyspace with all that it has, if they are known.
    schema: Option<String>,
}

/// The SSTables of one table.
#[derive(Debug, Default)]
pub struct Table {
    /// Its name, as it is stored; that of an index is `table.index`.
    pub name: String,
    /// Its Data.db files.
    pub data: Vec<PathBuf>,
    /// All rows, as they were read from the one who wrote them, where they are known.
    pub expected: Option<PathBuf>,
}

impl Set {
    /// A set that was made just now.
    pub fn new(name: String, schema: String, tables: Vec<Table>, now: u64) -> Set {
        Set { name, now, tables, schema: Some(schema) }
    }

    /// Whether its tables can be made, which only the dumps can do without.
    pub fn has_schema(&self) -> bool {
        self.schema.is_some()
    }

    /// The statements that make the keyspace under another name; `None` where nobody knows them.
    pub fn schema_in(&self, keyspace: &str) -> Option<String> {
        let schema = self.schema.as_ref()?;
        let rest = schema.split_once("CREATE KEYSPACE ")?.1;
        let own = rest.split_whitespace().next()?;
        let schema = schema.replace(&format!("{own}."), &format!("{keyspace}."));
        let schema = schema.replace(&format!("KEYSPACE {own}"), &format!("KEYSPACE {keyspace}"));
        // Nothing here has to survive a crash.
        let schema = schema.replace("durable_writes = true", "durable_writes = false");
        let is_known = |line: &&str| !GONE_OPTIONS.iter().any(|gone| line.trim_start().starts_with(gone));
        let mut kept: Vec<&str> = schema.lines().filter(is_known).collect();
        // Where the last option is gone, its semicolon is missing.
        if schema.trim_end().ends_with(';') && !kept.last().is_some_and(|line| line.ends_with(';')) {
            kept.push(";");
        }
        let mut schema = kept.join("\n");
        for (table, changes) in CHANGES {
            if self.tables.iter().any(|other| other.name == table) {
                schema.push_str(&changes.replace('@', keyspace));
            }
        }
        Some(schema)
    }
}

impl Table {
    /// Whether it belongs to a secondary index.
    pub fn is_index(&self) -> bool {
        self.name.contains('.')
    }
}

/// The sets of fixtures; those that two collections have are taken once.
///
/// # Errors
/// If a file that is there cannot be read.
pub fn of_fixtures(fixtures: &[Fixture], now: u64) -> Result<Vec<Set>> {
    let mut sets: BTreeMap<(String, PathBuf), Set> = BTreeMap::new();
    let mut seen: BTreeMap<&str, &Path> = BTreeMap::new();
    // The larger collection comes last.
    for fixture in fixtures.iter().rev() {
        let Some((set, table)) = parts(&fixture.name) else { continue };
        if let Some(other) = seen.get(&*fixture.name)
            && fs::read(other)? == fs::read(&fixture.data)?
        {
            continue;
        }
        seen.insert(&fixture.name, &fixture.data);
        let folder = folder_of(&fixture.data, set);
        let set = match sets.entry((set.to_owned(), folder.clone())) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => entry.insert(open(set, &folder, now)),
        };
        set.add(table, &fixture.data, &folder);
    }
    Ok(sets.into_values().collect())
}

/// The set and the table of `cassandra/me/small/sstables/idx/.idx_v/me-1-big`.
fn parts(name: &str) -> Option<(&str, String)> {
    let (set, rest) = name.split_once("/sstables/")?;
    let (table, _) = rest.rsplit_once('/')?;
    Some((set, table.replace("/.", ".")))
}

/// The folder of a set, above its `sstables`.
fn folder_of(data: &Path, set: &str) -> PathBuf {
    data.ancestors().find(|folder| folder.ends_with(set)).unwrap_or(data).to_owned()
}

fn open(name: &str, folder: &Path, now: u64) -> Set {
    // What was compacted has the schema of the set that it belongs to.
    let of_set = if name.ends_with("/compacted") { folder.parent().unwrap_or(folder) } else { folder };
    let read_at = fs::read(of_set.join("info.json")).ok().and_then(|info| {
        let info: serde_json::Value = serde_json::from_slice(&info).ok()?;
        info["read_at"].as_u64()
    });
    let schema = fs::read_to_string(of_set.join("schema.cql")).ok();
    Set { name: name.to_owned(), now: read_at.unwrap_or(now), tables: Vec::new(), schema }
}

impl Set {
    fn add(&mut self, table: String, data: &Path, folder: &Path) {
        let at = match self.tables.binary_search_by(|other| other.name.cmp(&table)) {
            Ok(at) => at,
            Err(at) => {
                let expected = folder.join("expected").join(format!("{table}.jsonl.gz"));
                let expected = Some(expected).filter(|file| file.is_file());
                self.tables.insert(at, Table { name: table, data: Vec::new(), expected });
                at
            }
        };
        self.tables[at].data.push(data.to_owned());
        self.tables[at].data.sort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_set_and_the_table() {
        let of = |name| parts(name).map(|(set, table)| format!("{set} {table}"));
        assert_eq!(of("cassandra/me/small/sstables/a/me-1-big").unwrap(), "cassandra/me/small a");
        assert_eq!(of("cassandra/oa/small/sstables/a/.b/oa-1-big").unwrap(), "cassandra/oa/small a.b");
        assert_eq!(of("scylla/simple/me-1-big"), None);
    }

    #[test]
    fn a_schema_moves_to_another_keyspace() {
        let schema = "CREATE KEYSPACE a WITH x AND durable_writes = true;\nCREATE TABLE a.b (k int)\n\
                      AND crc = 1\n    AND read_repair_chance = 0.0;\n";
        let table = Table { name: "dropped".to_owned(), ..Table::default() };
        let set = Set::new("s".to_owned(), schema.to_owned(), vec![table], 1);
        let moved = set.schema_in("c").unwrap();
        let expected = "CREATE KEYSPACE c WITH x AND durable_writes = false;\nCREATE TABLE c.b (k int)\n\
                        AND crc = 1\n;ALTER TABLE c.dropped DROP a;";
        assert!(moved.starts_with(expected), "{moved}");
    }
}
