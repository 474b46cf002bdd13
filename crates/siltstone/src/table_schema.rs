//! What CQL or JSON says of a table: its columns, with their names, and the options that matter to its files.
//!
//! ```text
//! CREATE TABLE ks.users (id int PRIMARY KEY, name text) WITH bloom_filter_fp_chance = 0.01;
//! {"keyspace":"ks","table":"users","partition_key":[{"name":"id","type":"int"}],
//!  "regular":[{"name":"name","type":"text"}],"options":{"bloom_filter_fp_chance":0.01}}
//! ```
//!
//! The CQL may be a whole schema as `DESCRIBE` prints it, or the `schema.cql` of a snapshot. `docs/formats/json-lines.md`
//! describes the JSON.

use std::path::Path;

use model::Schema;
use model::types::maybe_quote;

use crate::error::{Error, Result};
use crate::text_lines::without_mark;

mod cql;
mod draft;
mod json;
mod lexer;

/// A table.
#[derive(Clone, PartialEq, Debug)]
pub struct TableSchema {
    /// Its keyspace, where the text tells it.
    pub keyspace: Option<String>,
    /// Its name.
    pub table: String,
    /// The names of the columns of the partition key.
    pub partition_key: Vec<String>,
    /// The names of the clustering columns.
    pub clustering: Vec<String>,
    /// The columns as files have them. Tables of compact storage have some that CQL does not show.
    pub schema: Schema,
    /// Whether the table is `WITH COMPACT STORAGE`.
    pub is_compact: bool,
    /// Columns that were dropped, each with when that was, in microseconds: what was written up to then is no more, even
    /// if there is a column of that name again.
    pub dropped: Vec<(String, i64)>,
    /// What follows `WITH`, save for the order of rows and compact storage, which the columns tell.
    pub options: TableOptions,
}

/// The options of a table, as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableOptions {
    /// By their names, in the order in which they were written.
    pub all: Vec<(String, OptionValue)>,
}

/// The value of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// A number or a word as it is written, or what is in quotes.
    Text(String),
    /// Names with their values.
    Map(Vec<(String, String)>),
}

impl TableSchema {
    /// The table that the text of a file describes: JSON if it begins with a brace, CQL otherwise. `table` is its name,
    /// with or without its keyspace; it may be left out where there is but one. The path is for messages.
    ///
    /// # Errors
    /// [`Error::Text`], which names line and column.
    pub fn parse(path: &Path, text: &str, table: Option<&str>) -> Result<TableSchema> {
        let text = without_mark(text);
        let parsed = match is_json(text) {
            true => json::parse(text, table, None),
            false => cql::parse(text, table, None, text.len()),
        };
        parsed.map_err(|wrong| wrong.in_file(path, text))
    }

    /// The same for a text in, or for, the folder of a table. If the text has several tables and `table` is `None`, the one with the
    /// folder's table name is taken. Names without a keyspace are in that of the folder.
    ///
    /// # Errors
    /// Those of [`TableSchema::parse`].
    pub fn parse_of_folder(
        path: &Path,
        text: &str,
        folder: &FolderName,
        table: Option<&str>,
    ) -> Result<TableSchema> {
        let (text, keyspace) = (without_mark(text), folder.keyspace.as_deref());
        let parsed = match is_json(text) {
            true => json::parse(text, table, keyspace),
            false => cql::tables(text, keyspace).and_then(|tables| {
                let name = table.map(str::to_owned).or_else(|| folder.among(&tables));
                cql::parse(text, name.as_deref(), keyspace, text.len())
            }),
        };
        parsed.map_err(|wrong| wrong.in_file(path, text))
    }

    /// The statements of a text of CQL that tell what one of its tables is: the table's own, and the types of its keyspace.
    /// `table` is its name, with or without its keyspace; it may be left out where there is but one.
    ///
    /// # Errors
    /// [`Error::Text`] if it is no CQL, if there is no such table, or several where none is named.
    pub fn statements_of(path: &Path, text: &str, table: Option<&str>) -> Result<String> {
        let own = match is_json(text) {
            true => Err(Wrong::new(0, "this is JSON: a CREATE TABLE statement was expected")),
            false => cql::statements_of(text, table),
        };
        own.map_err(|wrong| wrong.in_file(path, text))
    }

    /// Whether statements of CQL create a table only if it is not there: `CREATE TABLE IF NOT EXISTS`.
    ///
    /// # Errors
    /// [`Error::Text`] if it is no CQL.
    pub(crate) fn may_be_there(path: &Path, statements: &str) -> Result<bool> {
        cql::may_be_there(statements).map_err(|wrong| wrong.in_file(path, statements))
    }

    /// Whether a text in the folder of a table is of a materialized view: of its columns it tells the names alone.
    pub(crate) fn is_of_view(text: &str, folder: &FolderName) -> bool {
        cql::is_of_view(text, folder)
    }

    /// The table, with one statement of CQL behind what there is of it, which alters it now: more is asked of that than of what did so once.
    /// And the text of both.
    ///
    /// # Errors
    /// [`Error::Text`]; also for a column that was dropped and is to come back as another type.
    pub(crate) fn altered(&self, path: &Path, text: &str, alteration: &str) -> Result<(TableSchema, String)> {
        let before = cql::ended(text).map_err(|wrong| wrong.in_file(path, text))?;
        let (whole, keyspace) = (format!("{before}{alteration}"), self.keyspace.as_deref());
        let name = FolderName { keyspace: self.keyspace.clone(), table: self.table.clone() };
        let parsed = cql::tables(&whole, keyspace)
            .and_then(|tables| cql::parse(&whole, name.among(&tables).as_deref(), keyspace, before.len()));
        match parsed {
            Ok(table) => Ok((table, whole)),
            Err(wrong) => Err(wrong.in_file(path, &whole)),
        }
    }
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// What the place of a folder tells of the table in it: `<keyspace>/<table>-<32 digits>`, maybe with `snapshots/<any>` or `backups` behind it,
/// or `<keyspace>/<table>`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderName {
    /// The folder above.
    pub keyspace: Option<String>,
    /// The name without an id.
    pub table: String,
}

impl FolderName {
    /// That of a folder whose path is whole.
    pub fn of(folder: &Path) -> FolderName {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let is_id = |id: &str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let before_id = |path: &Path| {
            let name = name(path)?;
            name.rsplit_once('-').filter(|(_, id)| is_id(id)).map(|(table, _)| table.to_owned())
        };
        // A folder of somebody's may be called so too: that of a table has an id, or tells what it is.
        let is_table =
            |folder: &Path| before_id(folder).is_some() || folder.join(crate::paths::SCHEMA).is_file();
        let below = ["snapshots", "backups"].iter().find_map(|inner| {
            let inner = folder.ancestors().take(2).find(|above| above.ends_with(inner))?;
            inner.parent().filter(|own| is_table(own))
        });
        let below = below.filter(|_| before_id(folder).is_none());
        let own = below.unwrap_or(folder);
        let table = before_id(own).or_else(|| name(own)).unwrap_or_default();
        FolderName { keyspace: own.parent().and_then(name), table }
    }

    /// How the one of several tables is named that is called so; `None` if there is no such one, or if there is but one anyway.
    fn among(&self, tables: &[cql::Qualified]) -> Option<String> {
        if tables.len() < 2 || !tables.iter().any(|(_, table)| *table == self.table) {
            return None;
        }
        let whole = |(keyspace, table): &cql::Qualified| *table == self.table && *keyspace == self.keyspace;
        let table = maybe_quote(&self.table);
        match &self.keyspace {
            Some(keyspace) if tables.iter().any(whole) => Some(format!("{}.{table}", maybe_quote(keyspace))),
            _ => Some(table.into_owned()),
        }
    }
}

/// An `ALTER TABLE` statement, as it is to be written down behind the one that made the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alteration {
    /// `keyspace.table`, or just the table where no keyspace is told.
    pub table: String,
    /// Whether nothing is wrong if there is no such table.
    pub may_be_missing: bool,
    text: String,
    /// Whether it drops columns without telling when.
    needs_timestamp: bool,
}

impl Alteration {
    /// The statement in a text. The path is for messages.
    ///
    /// # Errors
    /// [`Error::Text`] if it is not just one such statement.
    pub fn parse(path: &Path, text: &str) -> Result<Alteration> {
        cql::parse_alteration(text).map_err(|wrong| wrong.in_file(path, text))
    }

    /// The statement; columns that it drops are dropped at this time, in microseconds, if it does not tell another one.
    pub fn text_at(&self, micros: i64) -> String {
        match self.needs_timestamp {
            true => format!("{} USING TIMESTAMP {micros}", self.text),
            false => self.text.clone(),
        }
    }
}

impl TableOptions {
    /// The text of an option, if there is such a one and it is no map.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            OptionValue::Text(text) => Some(text),
            OptionValue::Map(_) => None,
        }
    }

    /// The entries of an option that is a map, if there is such a one.
    pub fn map(&self, name: &str) -> Option<&[(String, String)]> {
        match self.get(name)? {
            OptionValue::Text(_) => None,
            OptionValue::Map(entries) => Some(entries),
        }
    }

    fn get(&self, name: &str) -> Option<&OptionValue> {
        self.all.iter().find(|option| option.0 == name).map(|option| &option.1)
    }

    /// Sets an option, also where it is there already.
    fn set(&mut self, name: String, value: OptionValue) {
        self.all.retain(|option| option.0 != name);
        self.all.push((name, value));
    }
}

/// What is wrong with a text, and where: bytes from its start.
#[derive(Debug)]
struct Wrong {
    at: usize,
    what: String,
}

type Parsed<T> = std::result::Result<T, Wrong>;

impl Wrong {
    fn new(at: usize, what: impl Into<String>) -> Wrong {
        Wrong { at, what: what.into() }
    }

    fn in_file(self, path: &Path, text: &str) -> Error {
        let before = &text[..text.floor_char_boundary(self.at)];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        Error::Text { path: path.to_path_buf(), place: format!("{line}:{column}"), what: self.what }
    }
}

/// Which of several tables is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Its name, with or without its keyspace. Either may be in quotes, as in CQL.
    pub(crate) name: Option<&'a str>,
}

impl Wanted<'_> {
    pub(crate) fn is(&self, keyspace: Option<&str>, table: &str) -> bool {
        let is_named = |given: &str| {
            let mut dots = given.match_indices('.').map(|(at, _)| (&given[..at], &given[at + 1..]));
            let is_both = |(left, right): (&str, &str)| {
                keyspace.is_some_and(|keyspace| is_name(left, keyspace)) && is_name(right, table)
            };
            is_name(given, table) || dots.any(is_both)
        };
        self.name.is_none_or(is_named)
    }
}

/// Whether a name is given as it is, or in quotes as in CQL: `"MixedCase"`.
pub fn is_name(given: &str, name: &str) -> bool {
    let quoted = given.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    given == name || quoted.is_some_and(|inside| inside.replace("\"\"", "\"") == name)
}

#[cfg(test)]
mod tests;
