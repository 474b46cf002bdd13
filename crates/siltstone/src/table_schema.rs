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

use crate::error::{Error, Result};

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
        let parsed = match text.trim_start().starts_with('{') {
            true => json::parse(text, table),
            false => cql::parse(text, table, text.len()),
        };
        parsed.map_err(|wrong| wrong.in_file(path, text))
    }

    /// Whether a text is of a materialized view: of its columns it tells the names alone.
    pub(crate) fn is_of_view(text: &str) -> bool {
        cql::is_of_view(text)
    }

    /// The same of CQL with one statement behind it that alters the table now, of which more is asked than of what did so once.
    ///
    /// # Errors
    /// [`Error::Text`]; also for a column that was dropped and is to come back as another type.
    pub(crate) fn parse_altered(path: &Path, text: &str, alteration: &str) -> Result<TableSchema> {
        let whole = format!("{text}{alteration}");
        cql::parse(&whole, None, text.len()).map_err(|wrong| wrong.in_file(path, &whole))
    }
}

/// An `ALTER TABLE` statement, as it is to be written down behind the one that made the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Alteration {
    /// `keyspace.table`, or just the table where no keyspace is told.
    pub table: String,
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
struct Wanted<'a> {
    name: Option<&'a str>,
}

impl Wanted<'_> {
    fn is(&self, keyspace: Option<&str>, table: &str) -> bool {
        let quoted = model::types::maybe_quote(table);
        let is_named = |name: &str| {
            let is_table = |name: &str| name == table || name == quoted;
            let rest = keyspace.and_then(|keyspace| name.strip_prefix(keyspace)?.strip_prefix('.'));
            is_table(name) || rest.is_some_and(is_table)
        };
        self.name.is_none_or(is_named)
    }
}

#[cfg(test)]
mod tests;
