//! Rows with their cells.
//!
//! The values of a row lie one after the other in a buffer of its own.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use model::types::counter::CounterContext;
use model::types::maybe_quote;
use model::{Bytes, Cell, CellValue, Column, CqlType, DeletionTime, Liveness, Row};
use serde_json::Value;

use super::JsonRows;
use super::positions::{Values, check_width};
use super::times::{Ttl, ttl};
use crate::json_members::{Members, Read, Refusal};
use crate::json_reader::JsonReader;
use crate::keys;

/// The static or the regular columns, found by their names.
#[derive(Debug)]
pub(super) struct Columns {
    types: Vec<CqlType>,
    /// As dumps print them, that is quoted where CQL has to quote them, and as they are.
    by_name: HashMap<String, u16>,
    by_bytes: HashMap<Box<[u8]>, u16>,
}

/// A cell whose bytes have no owner yet.
#[derive(Debug)]
struct Draft {
    column: u16,
    timestamp: i64,
    ttl: Ttl,
    path: Option<Range<usize>>,
    /// Nothing where the cell is deleted.
    value: Option<Range<usize>>,
}

/// What a row is made of while its line is read.
#[derive(Debug, Default)]
pub(super) struct Parts {
    values: Values,
    cells: Vec<Draft>,
    complex_deletions: Vec<(u16, DeletionTime)>,
}

impl Columns {
    pub(super) fn new(columns: &[Column]) -> Columns {
        let mut by_name = HashMap::new();
        for (place, column) in (0..).zip(columns) {
            by_name.insert(column.name_text().into_owned(), place);
        }
        // A quoted name wins over another one that happens to have quotes in it.
        for (place, column) in (0..).zip(columns) {
            by_name.insert(maybe_quote(&column.name_text()).into_owned(), place);
        }
        let by_bytes = (0..).zip(columns).map(|(place, column)| (column.name.clone(), place)).collect();
        let types = columns.iter().map(|column| column.data_type.clone()).collect();
        Columns { types, by_name, by_bytes }
    }

    fn find(&self, members: &mut Members<'_>) -> Read<u16> {
        let (name, bytes) = (members.take("name"), members.take("name_bytes"));
        if let Some(piece) = bytes {
            let found = self.by_bytes.get(&*members.hex(&piece)?).copied();
            return found.ok_or_else(|| Refusal::new("name_bytes: there is no such column"));
        }
        let piece = name.ok_or_else(|| Refusal::new("name is missing"))?;
        let name = members.string(&piece)?;
        self.by_name
            .get(&*name)
            .copied()
            .ok_or_else(|| Refusal::new(format!("there is no column {name} here")))
    }
}

impl JsonRows {
    pub(super) fn row(&mut self, members: &mut Members<'_>, is_static: bool) -> Read<Row> {
        // What one line needs, the next one will need too.
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        let row = self.read_row(members, is_static, &mut parts);
        self.parts = parts;
        row
    }

    fn read_row(&self, members: &mut Members<'_>, is_static: bool, parts: &mut Parts) -> Read<Row> {
        if !is_static {
            self.read_clustering(members, &mut parts.values)?;
        } else if self.schema.statics.is_empty() {
            return Err(Refusal::new("the table has no static columns"));
        }
        let liveness = self.times.liveness_info(members)?;
        let deletion = self.times.deletion_info(members)?.unwrap_or(DeletionTime::LIVE);
        let shadowable =
            self.times.deletion(members, "shadowable_deletion_info")?.unwrap_or(DeletionTime::LIVE);
        let columns = if is_static { &self.statics } else { &self.regulars };
        if let Some(piece) = members.take("cells") {
            let read = self.read_cells(members.line(), &piece, columns, &liveness, parts);
            read.and_then(|()| parts.sort(&columns.types)).map_err(|error| error.within("cells"))?;
        }
        let row = Row { liveness, deletion, shadowable, ..parts.to_row() };
        if row.is_empty() {
            return Err(Refusal::new("the row has neither liveness_info nor deletion_info nor cells"));
        }
        Ok(row)
    }

    fn read_cells(
        &self,
        line: &str,
        piece: &Range<usize>,
        columns: &Columns,
        row: &Liveness,
        parts: &mut Parts,
    ) -> Read<()> {
        let mut reader = JsonReader::within(line, piece);
        let mut is_first = true;
        reader.begin_array()?;
        while reader.item(&mut is_first)? {
            let piece = reader.value()?;
            let mut cell = Members::of_piece(line, &piece)?;
            let name = cell.piece_of("name");
            let read = self.read_cell(&mut cell, columns, row, parts).and_then(|()| cell.finish("a cell"));
            read.map_err(|error| match name {
                Some(name) => error.within(&line[name]),
                None => error,
            })?;
        }
        Ok(())
    }

    fn read_cell(
        &self,
        cell: &mut Members<'_>,
        columns: &Columns,
        row: &Liveness,
        parts: &mut Parts,
    ) -> Read<()> {
        let column = columns.find(cell)?;
        let kind = &columns.types[usize::from(column)];
        let path = read_path(kind, cell, &mut parts.values.bytes)?;
        if kind.is_multi_cell() && path.is_none() {
            return match self.times.deletion_info(cell)? {
                Some(deletion) => {
                    parts.complex_deletions.push((column, deletion));
                    Ok(())
                }
                None => {
                    Err(Refusal::new(format!("path is missing: each cell of a {} has one", kind.cql_name())))
                }
            };
        }
        let place = path.clone().map(|path| &parts.values.bytes[path]);
        let of = kind.cell_value_type(place).ok_or_else(|| Refusal::new("path: there is no such field"))?;
        let timestamp = self.times.timestamp(cell, "tstamp", row)?;
        let told_ttl = ttl(cell, timestamp)?;
        if let Some(deletion) = cell.take_object("deletion_info")? {
            let end = self
                .times
                .cell_deletion(deletion, timestamp)
                .map_err(|error| error.within("deletion_info"))?;
            let ttl = Ttl { seconds: told_ttl.map_or(0, |ttl| ttl.seconds), end };
            parts.cells.push(Draft { column, timestamp, ttl, path, value: None });
            return Ok(());
        }
        let value = read_value(of, cell, &mut parts.values.bytes)?;
        let ttl = told_ttl.unwrap_or(Ttl::of(row));
        parts.cells.push(Draft { column, timestamp, ttl, path, value: Some(value) });
        Ok(())
    }
}

/// Which element or field of its column a cell is; nothing where the column has one cell.
fn read_path(kind: &CqlType, cell: &mut Members<'_>, out: &mut Vec<u8>) -> Read<Option<Range<usize>>> {
    let (path, bytes) = (cell.take("path"), cell.take("path_bytes"));
    let Some(of) = kind.cell_path_type() else {
        return match path.or(bytes) {
            Some(_) => Err(Refusal::new(format!("path: a {} has but one cell", kind.cql_name()))),
            None => Ok(None),
        };
    };
    let start = out.len();
    match (bytes, path) {
        (Some(piece), _) => out.extend(cell.hex(&piece)?),
        (None, Some(piece)) => {
            let text = &cell.line()[piece];
            out.extend(parse_path(kind, of, text).map_err(|error| error.within("path"))?);
        }
        (None, None) => return Ok(None),
    }
    Ok(Some(start..out.len()))
}

/// The bytes of a path: an array of the text of an element's key, or of the name of a field.
fn parse_path(kind: &CqlType, of: &CqlType, text: &str) -> Read<Vec<u8>> {
    let parsed = serde_json::from_str(text).map_err(|error| Refusal::new(error.to_string()))?;
    let Value::Array(items) = parsed else { return Err(Refusal::new("an array was expected")) };
    let [item] = &items[..] else { return Err(Refusal::new("an array of one item was expected")) };
    match (kind, item) {
        (CqlType::Udt(udt), Value::String(name)) => {
            let place = udt.fields.iter().position(|field| field.0 == *name);
            let place = place.and_then(|place| u16::try_from(place).ok());
            let place = place.ok_or_else(|| Refusal::new(format!("there is no field {name}")))?;
            Ok(place.to_be_bytes().to_vec())
        }
        _ => keys::key_value(of, item).map_err(Refusal::new),
    }
}

/// The value of a cell. Its bytes win over how they are printed.
fn read_value(of: &CqlType, cell: &mut Members<'_>, out: &mut Vec<u8>) -> Read<Range<usize>> {
    let (value, bytes) = (cell.take("value"), cell.take("bytes"));
    let start = out.len();
    let read = match (bytes, value) {
        (Some(piece), _) => read_bytes(of, cell, &piece, out).map_err(|error| error.within("bytes")),
        (None, Some(piece)) => read_json(of, &cell.line()[piece], out).map_err(|error| error.within("value")),
        // The value of a set's cell says nothing.
        (None, None) if *of == CqlType::Empty => Ok(()),
        (None, None) => Err(Refusal::new("value is missing; a deleted cell has deletion_info")),
    };
    read?;
    Ok(start..out.len())
}

fn read_bytes(of: &CqlType, cell: &Members<'_>, piece: &Range<usize>, out: &mut Vec<u8>) -> Read<()> {
    let bytes = cell.hex(piece)?;
    check_width(of, &bytes)?;
    if of.is_counter() && !bytes.is_empty() {
        CounterContext::parse(&bytes).map_err(|error| Refusal::new(keys::in_words(error)))?;
    }
    out.extend(bytes);
    Ok(())
}

fn read_json(of: &CqlType, json: &str, out: &mut Vec<u8>) -> Read<()> {
    if json == "null" {
        return Err(Refusal::new("null is no value; a deleted cell has deletion_info"));
    }
    if of.is_counter() {
        return Err(Refusal::new("a counter is not told by its value: its context was expected, as bytes"));
    }
    let start = out.len();
    let put = of.put_json(json, out).and_then(|()| of.validate(&out[start..]));
    put.map_err(|error| Refusal::new(keys::in_words(error)))
}

impl Parts {
    /// Puts cells and deletions into their order, and checks that none is there twice.
    fn sort(&mut self, types: &[CqlType]) -> Read<()> {
        let bytes = &self.values.bytes;
        let compare = |a: &Draft, b: &Draft| a.compare(b, types, bytes);
        if !self.cells.is_sorted_by(|a, b| compare(a, b).is_lt()) {
            self.cells.sort_by(compare);
            if self.cells.windows(2).any(|pair| compare(&pair[0], &pair[1]).is_eq()) {
                return Err(Refusal::new("a cell is there twice"));
            }
        }
        self.complex_deletions.sort_by_key(|(column, _)| *column);
        if self.complex_deletions.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(Refusal::new("a collection is deleted twice"));
        }
        Ok(())
    }

    /// The row, in memory of its own that is as large as it has to be.
    fn to_row(&self) -> Row {
        let owner = Rc::new(self.values.bytes.clone());
        let mut cells = Vec::with_capacity(self.cells.len());
        cells.extend(self.cells.iter().map(|draft| draft.to_cell(&owner)));
        let complex_deletions = self.complex_deletions.clone();
        Row { cells, complex_deletions, ..Row::new(self.values.clustering(&owner)) }
    }

    fn clear(&mut self) {
        self.values.clear();
        self.cells.clear();
        self.complex_deletions.clear();
    }
}

impl Draft {
    fn compare(&self, other: &Draft, types: &[CqlType], bytes: &[u8]) -> Ordering {
        self.column.cmp(&other.column).then_with(|| {
            let path = types[usize::from(self.column)].cell_path_type();
            match (path, &self.path, &other.path) {
                (Some(path), Some(a), Some(b)) => path.compare(&bytes[a.clone()], &bytes[b.clone()]),
                _ => Ordering::Equal,
            }
        })
    }

    fn to_cell(&self, owner: &Rc<Vec<u8>>) -> Cell {
        let value = match self.value.clone() {
            Some(value) => CellValue::Value(Bytes::new(owner, value)),
            None => CellValue::Tombstone,
        };
        Cell {
            column: self.column,
            ttl: self.ttl.seconds,
            timestamp: self.timestamp,
            local_deletion_time: self.ttl.end,
            path: self.path.clone().map(|path| Bytes::new(owner, path)),
            value,
        }
    }
}
