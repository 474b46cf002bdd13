//! Fragments as JSON, member for member what Cassandra's `sstabledump` prints.
//!
//! ```text
//! {"type":"row","position":18,"clustering":[1,"a"],"liveness_info":{"tstamp":"…"},
//!  "cells":[{"name":"v","value":7},{"name":"l","path":["…"],"value":"x","tstamp":"…"}]}
//! ```
//!
//! A cell has a timestamp of its own only where it differs from the row marker's, and so has a time to
//! live. Rows must be normalized, see [`Row::normalize`].
//!
//! What `sstabledump` prints does not tell all that a file holds. With [`Detail::Exact`] there are more members where
//! something would be lost: `bytes` beside a value, `clustering_bytes` beside a clustering and so on;
//! [`crate::json_rows`] reads them back.

use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::types::counter::CounterContext;
use model::types::{TypeError, maybe_quote, quote};
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Liveness, Position, Row, Schema,
    Weight,
};

use crate::error::ValueError;
use crate::instants::Instants;
use crate::json::{JsonWriter, Layout};
use crate::keys;

/// What the first two bytes of a composite are where it belongs to static columns.
const STATIC_COMPOSITE: [u8; 2] = [0xff, 0xff];

/// What stands for each value that a shorter prefix of a clustering does not have.
pub(crate) const NO_VALUE: &str = "\"*\"";

/// Writes the fragments of one table.
#[derive(Debug)]
pub struct FragmentJson {
    schema: Rc<Schema>,
    statics: Vec<ColumnJson>,
    regulars: Vec<ColumnJson>,
    /// Seconds; what expires earlier is said to have.
    now: i64,
    instants: Instants,
    scratch: String,
    counters: Counters,
    detail: Detail,
}

/// How much is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Detail {
    /// What `sstabledump` prints.
    #[default]
    AsDumped,
    /// All that is needed to write the same fragments again.
    Exact,
}

/// What is printed as the value of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Counters {
    /// What `sstabledump` takes for it: the first eight bytes of the context, as an integer.
    #[default]
    AsDumped,
    /// What a `SELECT` returns: the sum of what all nodes counted.
    Totals,
}

/// What is worth knowing of a column before any of its cells is written.
#[derive(Debug)]
struct ColumnJson {
    /// In quotes; and within those in CQL's quotes, where it needs them.
    name: Box<str>,
    /// The name's bytes as JSON, where it is not text.
    name_bytes: Option<Box<str>>,
    data_type: CqlType,
    path: PathKind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PathKind {
    /// The column has one cell.
    None,
    /// An element of a collection, by its key.
    Key,
    /// A field of a user defined type, by its name.
    Field,
}

/// Which end of a range a bound is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Start,
    End,
}

type Written = Result<(), ValueError>;

impl FragmentJson {
    /// For rows of this schema. `now` is in seconds since the epoch.
    pub fn new(schema: Rc<Schema>, now: i64) -> FragmentJson {
        FragmentJson {
            statics: schema.statics.iter().map(ColumnJson::new).collect(),
            regulars: schema.regulars.iter().map(ColumnJson::new).collect(),
            schema,
            now,
            instants: Instants::default(),
            scratch: String::new(),
            counters: Counters::default(),
            detail: Detail::default(),
        }
    }

    /// So much is printed from now on.
    pub fn print_detail(&mut self, detail: Detail) {
        self.detail = detail;
    }

    /// Counters are printed so from now on.
    pub fn print_counters(&mut self, counters: Counters) {
        self.counters = counters;
    }

    /// A partition key: the text of each of its columns.
    ///
    /// # Errors
    /// A value that is not of its type.
    pub fn write_key(&mut self, key: &[u8], json: &mut JsonWriter) -> Written {
        json.inline_objects(true);
        json.inline_arrays(true);
        json.begin_array();
        let schema = Rc::clone(&self.schema);
        match &schema.partition_key {
            CqlType::Composite(columns) => self.write_composite(columns, key, json)?,
            column => self.write_key_column(column, key, json)?,
        }
        json.end_array();
        json.inline_objects(false);
        json.inline_arrays(false);
        Ok(())
    }

    /// A partition key as JSON on one line.
    ///
    /// # Errors
    /// A value that is not of its type.
    pub fn key_text(&mut self, key: &[u8]) -> Result<String, ValueError> {
        let mut json = JsonWriter::new(Layout::Line);
        self.write_key(key, &mut json)?;
        Ok(json.into_text())
    }

    /// A partition key as JSON on one line, and its bytes where that would not be read back as them: a value that is not of its type is
    /// null.
    pub fn exact_key(&mut self, key: &[u8]) -> (String, Option<String>) {
        let Ok(text) = self.key_text(key) else { return ("[null]".to_owned(), Some(hex(key))) };
        let is_exact = match &self.schema.partition_key {
            CqlType::Composite(_) => keys::partition_key(&self.schema, &text).is_ok_and(|back| back == key),
            // The text of the one column is at hand still.
            column => column.is_exact_text(key, &self.scratch),
        };
        (text, (!is_exact).then(|| hex(key)))
    }

    fn write_composite(&mut self, columns: &[CqlType], key: &[u8], json: &mut JsonWriter) -> Written {
        let mut rest = key.strip_prefix(&STATIC_COMPOSITE).unwrap_or(key);
        for column in columns {
            if rest.is_empty() {
                break;
            }
            let Some((value, end)) = take_component(&mut rest) else {
                let what = "a column's length is beyond its end".to_owned();
                return Err(key_error(TypeError::Bytes { kind: "composite", what }));
            };
            self.write_key_column(column, value, json)?;
            if end != 0 {
                break;
            }
        }
        Ok(())
    }

    fn write_key_column(&mut self, column: &CqlType, value: &[u8], json: &mut JsonWriter) -> Written {
        self.scratch.clear();
        column.write_text(value, &mut self.scratch).map_err(key_error)?;
        json.string(&self.scratch);
        Ok(())
    }

    /// The members of a row, from its type on. `position` is where it stands in the data, if that matters.
    ///
    /// # Errors
    /// A value that is not of its type.
    pub fn write_row(
        &mut self,
        row: &Row,
        is_static: bool,
        position: Option<u64>,
        json: &mut JsonWriter,
    ) -> Written {
        if let Some(position) = position {
            json.key("position");
            json.integer(position);
        }
        if !is_static {
            self.write_clustering(&row.clustering, json)?;
        }
        self.write_liveness(&row.liveness, json);
        self.write_row_deletions(row, json);
        json.key("cells");
        json.begin_array();
        self.write_cells(row, is_static, json)?;
        json.end_array();
        Ok(())
    }

    /// `sstabledump` knows but one deletion of a row.
    fn write_row_deletions(&mut self, row: &Row, json: &mut JsonWriter) {
        match self.detail {
            Detail::AsDumped => self.write_deletion(&row.row_deletion(), json),
            Detail::Exact => {
                self.write_deletion(&row.deletion, json);
                self.write_deletion_as("shadowable_deletion_info", &row.shadowable, json);
            }
        }
    }

    /// The deletion of a partition, a row, a range or a collection; nothing where there is none.
    pub fn write_deletion(&mut self, deletion: &DeletionTime, json: &mut JsonWriter) {
        self.write_deletion_as("deletion_info", deletion, json);
    }

    fn write_deletion_as(&mut self, name: &str, deletion: &DeletionTime, json: &mut JsonWriter) {
        if deletion.is_live() {
            return;
        }
        json.key(name);
        json.inline_objects(true);
        json.begin_object();
        json.key("marked_deleted");
        self.write_micros(deletion.marked_for_delete_at, json);
        json.key("local_delete_time");
        self.write_seconds(deletion.local_deletion_time, json);
        json.end_object();
        json.inline_objects(false);
    }

    /// The type and the ends of a change from one range tombstone to the next.
    ///
    /// # Errors
    /// A value that is not of its type.
    pub fn write_change(
        &mut self,
        position: &Position,
        closes: &DeletionTime,
        opens: &DeletionTime,
        json: &mut JsonWriter,
    ) -> Written {
        if !opens.is_live() {
            self.write_bound(End::Start, position, opens, json)?;
        }
        if !closes.is_live() {
            self.write_bound(End::End, position, closes, json)?;
        }
        Ok(())
    }

    fn write_bound(
        &mut self,
        end: End,
        position: &Position,
        deletion: &DeletionTime,
        json: &mut JsonWriter,
    ) -> Written {
        json.key(if end == End::Start { "start" } else { "end" });
        json.begin_object();
        json.key("type");
        let is_inclusive = (end == End::Start) == (position.weight == Weight::Before);
        json.literal(if is_inclusive { "\"inclusive\"" } else { "\"exclusive\"" });
        self.write_clustering(&position.prefix, json)?;
        self.write_deletion(deletion, json);
        json.end_object();
        Ok(())
    }

    /// The values of a clustering; an asterisk for each that a shorter prefix does not have.
    fn write_clustering(&mut self, clustering: &Clustering, json: &mut JsonWriter) -> Written {
        if clustering.is_empty() {
            return Ok(());
        }
        json.key("clustering");
        let is_exact = self.write_values(clustering, self.schema.clustering.len(), json)?;
        if !is_exact && self.detail == Detail::Exact {
            self.write_clustering_bytes(clustering, json);
        }
        Ok(())
    }

    /// The bytes of each value, and only of those that the prefix has.
    fn write_clustering_bytes(&self, clustering: &Clustering, json: &mut JsonWriter) {
        json.key("clustering_bytes");
        json.begin_array();
        for value in &clustering.values {
            match value {
                Some(value) => json.literal(&hex(value)),
                None => json.null(),
            }
        }
        json.end_array();
    }

    /// A clustering, or the beginning of one, as JSON on one line.
    ///
    /// # Errors
    /// A value that is not of its type.
    pub fn clustering_text(&self, clustering: &Clustering) -> Result<String, ValueError> {
        let mut json = JsonWriter::new(Layout::Line);
        self.write_values(clustering, clustering.len(), &mut json)?;
        Ok(json.into_text())
    }

    /// As many values as that; an asterisk for each that the clustering does not have. Whether all of it would be
    /// read back as it is, if it is to be exact.
    fn write_values(
        &self,
        clustering: &Clustering,
        count: usize,
        json: &mut JsonWriter,
    ) -> Result<bool, ValueError> {
        let mut is_exact = true;
        json.inline_objects(true);
        json.begin_array();
        json.inline_arrays(true);
        for (index, column) in self.schema.clustering.iter().take(count).enumerate() {
            match clustering.values.get(index) {
                Some(Some(value)) => {
                    let written = self.write_clustering_value(column, value, json);
                    is_exact &= written.map_err(|source| ValueError {
                        what: format!("clustering column {}", index + 1),
                        source,
                    })?;
                }
                Some(None) => json.null(),
                None => json.literal(NO_VALUE),
            }
        }
        json.end_array();
        json.inline_objects(false);
        json.inline_arrays(false);
        Ok(is_exact)
    }

    /// A value; whether it would be read back as it is, if it is to be exact. An asterisk would not be.
    fn write_clustering_value(
        &self,
        column: &CqlType,
        value: &[u8],
        json: &mut JsonWriter,
    ) -> Result<bool, TypeError> {
        json.raw(|out| {
            let start = out.len();
            if let Err(error) = column.write_json(value, out) {
                return self.without_value(error, start, out);
            }
            let written = &out[start..];
            let is_exact = || written != NO_VALUE && column.is_exact_json(value, written);
            Ok(self.detail == Detail::AsDumped || is_exact())
        })
    }

    /// In the place of a value that is not of its type stands null, where its bytes stand beside it. It is not read back from that.
    fn without_value(&self, error: TypeError, start: usize, out: &mut String) -> Result<bool, TypeError> {
        match self.detail {
            Detail::AsDumped => Err(error),
            Detail::Exact => {
                out.truncate(start);
                out.push_str("null");
                Ok(false)
            }
        }
    }

    fn write_liveness(&mut self, liveness: &Liveness, json: &mut JsonWriter) {
        if liveness.is_none() {
            return;
        }
        json.inline_objects(false);
        json.key("liveness_info");
        json.inline_objects(true);
        json.begin_object();
        json.key("tstamp");
        self.write_micros(liveness.timestamp, json);
        if liveness.is_expiring() {
            let expired = liveness.local_expiration_time < self.now;
            self.write_ttl(liveness.ttl, liveness.local_expiration_time, expired, json);
        }
        json.end_object();
        json.inline_objects(false);
    }

    fn write_ttl(&mut self, ttl: u32, expires_at: i64, expired: bool, json: &mut JsonWriter) {
        json.key("ttl");
        json.integer(ttl);
        json.key("expires_at");
        self.write_seconds(expires_at, json);
        json.key("expired");
        json.boolean(expired);
    }

    /// The cells in the order of the columns, each collection's deletion before its cells.
    fn write_cells(&mut self, row: &Row, is_static: bool, json: &mut JsonWriter) -> Written {
        let columns = std::mem::take(if is_static { &mut self.statics } else { &mut self.regulars });
        let written = self.write_cells_of(&columns, row, json);
        *(if is_static { &mut self.statics } else { &mut self.regulars }) = columns;
        written
    }

    fn write_cells_of(&mut self, columns: &[ColumnJson], row: &Row, json: &mut JsonWriter) -> Written {
        let mut deletions = row.complex_deletions.iter().peekable();
        for cell in &row.cells {
            while let Some((column, deletion)) = deletions.next_if(|deletion| deletion.0 <= cell.column) {
                self.write_complex_deletion(&columns[usize::from(*column)], deletion, json);
            }
            self.write_cell(&columns[usize::from(cell.column)], cell, &row.liveness, json)?;
        }
        for (column, deletion) in deletions {
            self.write_complex_deletion(&columns[usize::from(*column)], deletion, json);
        }
        Ok(())
    }

    fn write_complex_deletion(
        &mut self,
        column: &ColumnJson,
        deletion: &DeletionTime,
        json: &mut JsonWriter,
    ) {
        json.inline_objects(true);
        json.begin_object();
        self.write_name(column, json);
        self.write_deletion(deletion, json);
        json.inline_objects(true);
        json.end_object();
        json.inline_objects(false);
    }

    fn write_cell(
        &mut self,
        column: &ColumnJson,
        cell: &Cell,
        liveness: &Liveness,
        json: &mut JsonWriter,
    ) -> Written {
        json.begin_object();
        json.inline_objects(true);
        self.write_name(column, json);
        let path = cell.path.as_ref().filter(|_| column.path != PathKind::None);
        if let Some(path) = path {
            self.write_path(column, path, json).map_err(|source| column.error(source))?;
        }
        self.write_cell_value(column, path, cell, json).map_err(|source| column.error(source))?;
        if liveness.is_none() || cell.timestamp != liveness.timestamp {
            json.key("tstamp");
            self.write_micros(cell.timestamp, json);
        }
        self.write_cell_ttl(cell, liveness, json);
        json.end_object();
        json.inline_objects(false);
        Ok(())
    }

    fn write_name(&self, column: &ColumnJson, json: &mut JsonWriter) {
        json.key("name");
        json.literal(&column.name);
        if let (Some(bytes), Detail::Exact) = (&column.name_bytes, self.detail) {
            json.key("name_bytes");
            json.literal(bytes);
        }
    }

    /// `sstabledump` leaves out a time to live that is the row's, even if it began at another time, and that a
    /// cell has none where its row has one.
    fn write_cell_ttl(&mut self, cell: &Cell, liveness: &Liveness, json: &mut JsonWriter) {
        let is_told = match self.detail {
            Detail::AsDumped => cell.is_expiring() && (liveness.is_none() || cell.ttl != liveness.ttl),
            Detail::Exact => (cell.ttl, cell.local_deletion_time) != expected_ttl(cell, liveness),
        };
        if is_told && (cell.ttl, cell.local_deletion_time) == (0, NO_DELETION_TIME) {
            json.key("ttl");
            json.integer(0);
        } else if is_told {
            let expired = cell.is_tombstone() || self.now >= cell.local_deletion_time;
            self.write_ttl(cell.ttl, cell.local_deletion_time, expired, json);
        }
    }

    fn write_path(
        &mut self,
        column: &ColumnJson,
        path: &Bytes,
        json: &mut JsonWriter,
    ) -> Result<(), TypeError> {
        let mut is_exact = true;
        json.key("path");
        json.inline_arrays(true);
        json.begin_array();
        if let (PathKind::Field, CqlType::Udt(udt)) = (column.path, &column.data_type) {
            json.string(&udt.field_at(path).ok_or_else(TypeError::no_such_field)?.0);
        } else if let Some(path_type) = column.data_type.cell_path_type() {
            self.scratch.clear();
            match path_type.write_text(path, &mut self.scratch) {
                Ok(()) => {
                    json.string(&self.scratch);
                    is_exact =
                        self.detail == Detail::AsDumped || path_type.is_exact_text(path, &self.scratch);
                }
                Err(error) => is_exact = json.raw(|out| self.without_value(error, out.len(), out))?,
            }
        }
        json.end_array();
        json.inline_arrays(false);
        if !is_exact {
            json.key("path_bytes");
            json.literal(&hex(path));
        }
        Ok(())
    }

    fn write_cell_value(
        &mut self,
        column: &ColumnJson,
        path: Option<&Bytes>,
        cell: &Cell,
        json: &mut JsonWriter,
    ) -> Result<(), TypeError> {
        match &cell.value {
            CellValue::Tombstone => {
                json.key("deletion_info");
                json.inline_objects(true);
                json.begin_object();
                json.key("local_delete_time");
                self.write_seconds(cell.local_deletion_time, json);
                json.end_object();
                json.inline_objects(false);
                Ok(())
            }
            CellValue::Value(value) => {
                let value_type = column.data_type.cell_value_type(path.map(|path| &path[..]));
                json.key("value");
                self.write_value(value_type.ok_or_else(TypeError::no_such_field)?, value, json)
            }
        }
    }

    /// What `sstabledump` takes for the value of a counter is not there where it has no shards: then its total is
    /// printed, which is 0.
    fn write_value(&self, data_type: &CqlType, value: &[u8], json: &mut JsonWriter) -> Result<(), TypeError> {
        let is_exact = match data_type {
            CqlType::Counter if self.counters == Counters::Totals || value.len() < 8 => {
                json.integer(CounterContext::parse(value)?.total());
                self.counters == Counters::Totals
            }
            other => json.raw(|out| {
                let start = out.len();
                match other.write_json(value, out) {
                    Ok(()) => {
                        Ok(self.detail == Detail::AsDumped || other.is_exact_json(value, &out[start..]))
                    }
                    Err(error) => self.without_value(error, start, out),
                }
            })?,
        };
        if !is_exact && self.detail == Detail::Exact {
            json.key("bytes");
            json.literal(&hex(value));
        }
        Ok(())
    }

    /// A time whose text would tell another one is a number, if it is to be exact.
    fn write_micros(&mut self, micros: i64, json: &mut JsonWriter) {
        if self.detail == Detail::Exact && !Instants::is_exact_micros(micros) {
            return json.integer(micros);
        }
        self.write_quoted(|instants, out| instants.write_micros(micros, out), json);
    }

    fn write_seconds(&mut self, seconds: i64, json: &mut JsonWriter) {
        if self.detail == Detail::Exact && !Instants::is_exact_seconds(seconds) {
            return json.integer(seconds);
        }
        self.write_quoted(|instants, out| instants.write_seconds(seconds, out), json);
    }

    fn write_quoted(&mut self, write: impl FnOnce(&mut Instants, &mut String), json: &mut JsonWriter) {
        json.append(|out| {
            out.push('"');
            write(&mut self.instants, out);
            out.push('"');
        });
    }
}

impl ColumnJson {
    fn new(column: &Column) -> ColumnJson {
        let mut name = String::new();
        quote(&maybe_quote(&column.name_text()), &mut name);
        let path = match &column.data_type {
            data_type if !data_type.is_multi_cell() => PathKind::None,
            CqlType::Udt(_) => PathKind::Field,
            _ => PathKind::Key,
        };
        let name_bytes = std::str::from_utf8(&column.name).is_err().then(|| hex(&column.name).into());
        ColumnJson { name: name.into(), name_bytes, data_type: column.data_type.clone(), path }
    }

    fn error(&self, source: TypeError) -> ValueError {
        ValueError { what: format!("column {}", self.name), source }
    }
}

/// The time to live of a cell that tells none, and when it ends: none of a tombstone, else that of its row.
fn expected_ttl(cell: &Cell, liveness: &Liveness) -> (u32, i64) {
    match cell.value {
        CellValue::Tombstone => (0, cell.local_deletion_time),
        CellValue::Value(_) => (liveness.ttl, liveness.local_expiration_time),
    }
}

/// Bytes as JSON.
fn hex(bytes: &[u8]) -> String {
    CqlType::Blob.to_json(bytes).expect("any bytes are a blob")
}

fn key_error(source: TypeError) -> ValueError {
    ValueError { what: "partition key".to_owned(), source }
}

/// Takes a column of a composite and the byte behind it.
fn take_component<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], u8)> {
    let (len, tail) = rest.split_first_chunk::<2>()?;
    let (value, tail) = tail.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
    let (&end, tail) = tail.split_first()?;
    *rest = tail;
    Some((value, end))
}
