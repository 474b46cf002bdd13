//! Rows as JSON lines or CSV, written to a table.
//!
//! ```text
//! {"k":7,"c":"a","v":[1,2]}                                     a row by the names of its columns
//! {"type":"row","key":["7"],"clustering":["a"],"cells":[…]}     a line of a dump, with its timestamps and tombstones
//! k,c,v                                                         CSV: the names first
//! 7,a,"[1,2]"
//! ```
//!
//! Both kinds of JSON lines may come mixed. What a row does not name stays as it was; `null` deletes it. In CSV an empty
//! field that is not in quotes is left out. [`LoadOptions::skip_nulls`] leaves out `null` too: what a scan prints has one for each column
//! without a value, which loaded into another table would be a tombstone.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use model::{Fragment, FragmentReader, Mutation, Next, Position, RangeTombstone, Schema};
use serde_core::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::{Map, Value as Json};

use crate::database::{Batch, ColumnKind, Pending, Table, Value, Write};
use crate::error::{Error, Result, json_words};
use crate::json_rows::JsonRows;
use crate::sorted_rows::{Sorted, SortedRows};
use crate::text_lines::{LONGEST_LINE, read_line, too_long, without_mark};

mod csv;

/// How many rows are written at once.
const AT_ONCE: usize = 256;

/// Bytes of memory that lines of dumps may take before they are written.
const MEMORY: usize = 16 << 20;

/// How rows are loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoadOptions {
    /// How the lines are to be read. Default as JSON.
    pub form: Form,
    /// Of what has no timestamp, in microseconds. Default that of the clock, a later one for each line.
    pub timestamp: Option<i64>,
    /// Whether a column of a row that is null is left as it was, in the place of being deleted. Default no.
    pub skip_nulls: bool,
}

/// How the lines are to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// A JSON object a line.
    #[default]
    JsonLines,
    /// Names of columns in the first line, values in all others.
    Csv,
}

impl Form {
    /// What a file's name tells: CSV if it ends so.
    pub fn of(path: &Path) -> Form {
        match path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv")) {
            true => Form::Csv,
            false => Form::JsonLines,
        }
    }
}

/// Writes all rows of an input, and waits for it; how many lines there were. `progress` is told how many bytes are read.
///
/// # Errors
/// [`Error::Text`], which names the line that is none, or of which the table says that it is none of its rows; what is before it is written.
pub fn load(
    table: &Table,
    path: &Path,
    lines: &mut dyn BufRead,
    options: LoadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let mut load = Load::new(table, path, options);
    let read = match options.form {
        Form::JsonLines => load.json_lines(lines, progress),
        Form::Csv => load.csv(lines, progress),
    };
    // What went wrong first is told.
    match load.written().and(read) {
        Ok(()) => load.finish(),
        Err(wrong) => {
            // What is before the line is written, but for what may belong to it.
            load.write_batch()?;
            load.written()?;
            let sorted = load.dump.sorted.take();
            load.write_sorted(sorted)?;
            Err(wrong)
        }
    }
}

/// The members of a JSON object, each name once.
struct Members(Map<String, Json>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Members, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object, as {\"k\":7}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> std::result::Result<Members, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Json>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format!("{name:?} is there twice")));
            }
            members.insert(name, value);
        }
        Ok(Members(members))
    }
}

struct Load<'a> {
    table: &'a Table,
    path: PathBuf,
    columns: BTreeMap<String, ColumnKind>,
    keys: Vec<(String, ColumnKind)>,
    options: LoadOptions,
    batch: Batch,
    /// Of each row of the batch its line.
    lines: Vec<u64>,
    /// The batch that is being written while lines are read for the next one.
    under_way: Option<UnderWay>,
    dump: Dump,
    line: u64,
    rows: u64,
}

struct UnderWay {
    batch: Arc<Batch>,
    lines: Vec<u64>,
    written: Pending<()>,
}

/// The lines of a dump.
struct Dump {
    rows: JsonRows,
    sorted: SortedRows,
    /// Bytes of memory that ends of range tombstones took which did not go together when all else was written.
    kept: usize,
}

impl Dump {
    fn new(schema: Schema, path: &Path, timestamp: i64) -> Dump {
        let schema = Rc::new(schema);
        let rows = JsonRows::new(path, schema.clone(), Some(timestamp));
        Dump { rows, sorted: SortedRows::new(schema), kept: 0 }
    }
}

impl Load<'_> {
    fn new<'a>(table: &'a Table, path: &Path, options: LoadOptions) -> Load<'a> {
        let columns = table.columns();
        let is_key = |kind| matches!(kind, ColumnKind::PartitionKey | ColumnKind::Clustering);
        let keys = columns.iter().filter(|column| is_key(column.kind));
        let now = options.timestamp.unwrap_or_else(|| table.next_micros());
        Load {
            table,
            path: path.to_path_buf(),
            keys: keys.map(|column| (column.name.clone(), column.kind)).collect(),
            columns: columns.iter().map(|column| (column.name.clone(), column.kind)).collect(),
            options,
            batch: Batch::new(),
            lines: Vec::new(),
            under_way: None,
            dump: Dump::new(table.schema(), path, now),
            line: 0,
            rows: 0,
        }
    }

    fn json_lines(&mut self, lines: &mut dyn BufRead, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let (mut buffer, mut bytes) = (Vec::new(), 0);
        loop {
            let len = read_line(lines, &mut buffer).map_err(|error| self.unreadable(&error))?;
            if len == 0 {
                return Ok(());
            }
            self.line += 1;
            if len > LONGEST_LINE {
                return Err(self.wrong(&too_long()));
            }
            let text = std::str::from_utf8(&buffer).map_err(|_| self.wrong(&"it is not UTF-8"))?;
            bytes += len;
            self.json_line(if self.line == 1 { without_mark(text) } else { text })?;
            progress(bytes);
        }
    }

    fn json_line(&mut self, text: &str) -> Result<()> {
        if text.trim_ascii().is_empty() {
            return self.skip_dump_line();
        }
        let Members(json) = serde_json::from_str(text).map_err(|error| self.wrong(&json_words(&error)))?;
        self.rows += 1;
        if !self.is_of_dump(&json) {
            self.skip_dump_line()?;
            let values = json.into_iter().map(|(name, json)| (name, Value::from(json)));
            return self.row(values.collect());
        }
        if let Some(piece) = self.dump.rows.parse_line(text.trim_ascii_end())? {
            piece.check(self.table.limits()).map_err(|what| self.wrong(&what))?;
            self.dump.sorted.insert(piece);
        }
        if self.dump.sorted.memory() - self.dump.kept > MEMORY {
            let sorted = self.dump.sorted.take();
            self.write_sorted(sorted)?;
            self.dump.kept = self.dump.sorted.memory();
        }
        Ok(())
    }

    /// Whether an object is a line of a dump. One is a row of columns that happen to be called so, if the table has all that it names.
    fn is_of_dump(&self, json: &Map<String, Json>) -> bool {
        let is_so =
            json.get("type").is_some_and(Json::is_string) && json.get("key").is_some_and(Json::is_array);
        is_so && !json.keys().all(|name| self.columns.contains_key(name))
    }

    /// Keeps the number of the line right in messages.
    fn skip_dump_line(&mut self) -> Result<()> {
        self.dump.rows.parse_line("").map(drop)
    }

    fn csv(&mut self, lines: &mut dyn BufRead, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut reader = csv::Reader::new(lines);
        let names = reader.next().map_err(|error| self.wrong_at(reader.line(), &error))?;
        let names: Vec<String> = names.into_iter().flatten().map(|name| name.unwrap_or_default()).collect();
        let names = self.checked(names).map_err(|what| self.wrong_at(reader.line(), &what))?;
        loop {
            let fields = reader.next();
            self.line = reader.line();
            let Some(fields) = fields.map_err(|error| self.wrong(&error))? else { return Ok(()) };
            if fields.len() != names.len() {
                return Err(self.wrong(&format!("{} fields, not {}", fields.len(), names.len())));
            }
            let given = names.iter().zip(fields).filter_map(|(name, field)| Some((name.clone(), field?)));
            let values = given.map(|(name, field)| (name, Value::Text(field))).collect();
            self.rows += 1;
            self.row(values)?;
            progress(reader.bytes());
        }
    }

    /// The names of columns in the first line of CSV.
    fn checked(&self, names: Vec<String>) -> std::result::Result<Vec<String>, String> {
        for (number, name) in names.iter().enumerate() {
            if !self.columns.contains_key(name) {
                return Err(format!("there is no column {name:?} in {}", self.table.name()));
            }
            if names[..number].contains(name) {
                return Err(format!("the column {name} is there twice"));
            }
        }
        Ok(names)
    }

    /// Writes a row of these columns.
    fn row(&mut self, mut values: Vec<(String, Value)>) -> Result<()> {
        let (mut key, mut clustering, mut are_told) = (Vec::new(), Vec::new(), true);
        for (name, kind) in &self.keys {
            let at = values.iter().position(|(known, _)| known == name);
            let value = at.map(|at| values.swap_remove(at).1);
            are_told &= value.is_some();
            let value = value.filter(|value| !matches!(value, Value::Null));
            match (kind, value) {
                (ColumnKind::PartitionKey, Some(value)) => key.push(value),
                (ColumnKind::PartitionKey, None) => return Err(self.wrong(&format!("{name} is missing"))),
                // A row that has none of them is a static one.
                (_, value) => clustering.extend(value),
            }
        }
        let has_clustering = self.keys.iter().any(|(_, kind)| *kind == ColumnKind::Clustering);
        if has_clustering && clustering.is_empty() {
            let is = |name: &String, kind| self.columns.get(name) == Some(&kind);
            if !values.iter().any(|(name, _)| is(name, ColumnKind::Static)) {
                return Err(
                    self.wrong(&"neither clustering columns nor static ones are given: no row is named")
                );
            }
            // A scan gives a partition that has static columns alone as a row of which all else is null.
            let is_none = |(name, value): &(String, Value)| {
                are_told && matches!(value, Value::Null) && is(name, ColumnKind::Regular)
            };
            values.retain(|column| !is_none(column));
        }
        if self.options.skip_nulls {
            values.retain(|(name, value)| !matches!(value, Value::Null) || !self.columns.contains_key(name));
        }
        let mut write = values
            .into_iter()
            .fold(Write::insert(key, clustering), |write, (name, value)| write.set(&name, value));
        if self.options.timestamp.is_none() {
            // Of two lines of one row the later one counts, in one batch too.
            write = write.timestamp(self.table.next_micros());
        }
        self.batch.push(write);
        self.lines.push(self.line);
        if self.batch.len() == AT_ONCE { self.write_batch() } else { Ok(()) }
    }

    /// Begins to write the batch, once the one before is written.
    fn write_batch(&mut self) -> Result<()> {
        self.written()?;
        let mut batch = std::mem::take(&mut self.batch);
        if let Some(timestamp) = self.options.timestamp {
            batch = batch.timestamp(timestamp);
        }
        let (batch, lines) = (Arc::new(batch), std::mem::take(&mut self.lines));
        let written = self.table.write_kept(batch.clone()).begun();
        self.under_way = Some(UnderWay { batch, lines, written });
        Ok(())
    }

    /// Waits for the batch that is being written. Where a row of it is refused, those before it are written, and none behind it.
    fn written(&mut self) -> Result<()> {
        let Some(UnderWay { batch, lines, written }) = self.under_way.take() else { return Ok(()) };
        match written.wait() {
            Err(Error::Usage(_)) => self.table.check_open()?,
            written => return written,
        }
        for (row, line) in batch.one_by_one().zip(lines) {
            if let Err(error) = self.table.write(row).wait() {
                (self.batch, self.lines) = (Batch::new(), Vec::new());
                return Err(match error {
                    Error::Usage(what) => self.wrong_at(line, &what),
                    other => other,
                });
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<u64> {
        self.write_batch()?;
        self.written()?;
        let sorted = self.dump.sorted.take();
        self.write_sorted(sorted)?;
        match self.dump.sorted.unpaired() {
            None => Ok(self.rows),
            Some(unpaired) => Err(self.wrong_at(unpaired.line, &unpaired)),
        }
    }

    /// Writes each partition as a mutation.
    fn write_sorted(&self, mut sorted: Sorted) -> Result<()> {
        let mut mutation: Option<Mutation> = None;
        let mut open: Option<(Position, model::DeletionTime)> = None;
        let mut fragment = Fragment::default();
        loop {
            let Ok(next) = sorted.pop(&mut fragment);
            if next != Next::Fragment {
                return Ok(());
            }
            match (std::mem::take(&mut fragment), &mut mutation) {
                (Fragment::PartitionStart(start), _) => {
                    let deletion = start.deletion;
                    mutation = Some(Mutation { deletion, ..Mutation::new(start.key) });
                }
                (Fragment::StaticRow(row), Some(mutation)) => mutation.static_row = Some(row),
                (Fragment::Row(mut row), Some(mutation)) => {
                    // Of several lines, as the table does where it flushes several writes.
                    row.keep_greater_deletion();
                    mutation.rows.push(row);
                }
                (Fragment::RangeTombstone(change), Some(mutation)) => {
                    if let Some((start, deletion)) = open.take() {
                        let end = change.position.clone();
                        mutation.range_tombstones.push(RangeTombstone { start, end, deletion });
                    }
                    open = (!change.deletion.is_live()).then_some((change.position, change.deletion));
                }
                (Fragment::PartitionEnd, _) => {
                    if let Some(mutation) = mutation.take().filter(|mutation| !mutation.is_empty()) {
                        self.table.write_mutation(&mutation).wait()?;
                    }
                }
                (_, None) => unreachable!("a partition begins with its start"),
            }
        }
    }

    fn wrong(&self, what: &dyn std::fmt::Display) -> Error {
        self.wrong_at(self.line, what)
    }

    fn wrong_at(&self, line: u64, what: &dyn std::fmt::Display) -> Error {
        Error::Text { path: self.path.clone(), place: line.to_string(), what: what.to_string() }
    }

    fn unreadable(&self, error: &std::io::Error) -> Error {
        Error::file(&self.path, format!("it cannot be read: {error}"))
    }
}
