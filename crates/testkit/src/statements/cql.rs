//! A statement as CQL with values to bind.
//!
//! ```text
//! INSERT INTO t (p, c, v) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?
//! UPDATE t USING TIMESTAMP ? AND TTL ? SET v = ?, m[?] = ?, l = ? + l WHERE p = ? AND c = ?
//! DELETE v, m[?] FROM t USING TIMESTAMP ? WHERE p = ? AND c > ?
//! ```
//!
//! Statements of the same form are the same text, so Cassandra parses each form once.

use std::fmt;

use model::{Bytes, Clustering, CqlType};

use super::table::Table;
use super::values::{packed, put};
use super::{Change, Count, Element, End, New, Part, Place, Range, Statement, What};

/// A statement with a question mark for each value.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bound {
    /// The statement.
    pub text: String,
    /// The values in the order of the question marks; `None` is null.
    pub values: Vec<Option<Bytes>>,
}

impl Statement {
    /// As CQL.
    pub fn to_cql(&self, table: &Table) -> Bound {
        let mut cql = Cql { table, statement: self, bound: Bound::default() };
        match &self.what {
            What::Insert(row, changes) => cql.insert(row.as_ref(), changes),
            What::Update(row, changes) => {
                cql.update(row.as_ref(), changes, |cql, change| cql.change(change));
            }
            What::Count(row, counts) => {
                cql.update(row.as_ref(), counts, |cql, count| cql.count(count));
            }
            What::DeleteColumns(row, parts) => cql.delete(row.as_ref(), parts),
            What::DeleteRow(row) => cql.delete(Some(row), &[]),
            What::DeletePartition => cql.delete(None, &[]),
            What::DeleteRange(range) => {
                cql.delete(None, &[]);
                cql.range(range);
            }
        }
        cql.bound
    }
}

/// A statement that is being written.
struct Cql<'a> {
    table: &'a Table,
    statement: &'a Statement,
    bound: Bound,
}

impl Cql<'_> {
    fn insert(&mut self, row: Option<&Clustering>, changes: &[Change]) {
        let table = self.table;
        let clustering = if row.is_some() { &table.clustering[..] } else { &[] };
        let mut names: Vec<String> = table.partition.iter().chain(clustering).cloned().collect();
        names.extend(changes.iter().map(|change| table.name_of(change.column)));
        let marks = vec!["?"; names.len()].join(", ");
        let text = format!("INSERT INTO {} ({}) VALUES ({marks})", table.full_name(), names.join(", "));
        self.bound.text.push_str(&text);
        self.bound.values.extend(self.statement.key.iter().cloned().map(Some));
        self.bound.values.extend(row.into_iter().flat_map(|row| row.values.clone()));
        for change in changes {
            let value = whole(&table.column(change.column).data_type, &change.to);
            self.bound.values.push(value);
        }
        self.using();
    }

    fn update<T>(&mut self, row: Option<&Clustering>, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.text(&format!("UPDATE {}", self.table.full_name()));
        self.using();
        for (at, item) in items.iter().enumerate() {
            self.text(if at == 0 { " SET " } else { ", " });
            write(self, item);
        }
        self.condition(row);
    }

    fn change(&mut self, change: &Change) {
        let name = self.table.name_of(change.column);
        let of = &self.table.column(change.column).data_type;
        match &change.to {
            New::Null | New::Value(_) | New::Elements(_) => {
                self.text(&format!("{name} = "));
                self.bind(whole(of, &change.to));
            }
            New::Add(elements) => {
                self.text(&format!("{name} = {name} + "));
                self.bind(Some(collection(of, elements)));
            }
            New::Prepend(elements) => {
                self.text(&format!("{name} = "));
                self.bind(Some(collection(of, elements)));
                self.text(&format!(" + {name}"));
            }
            New::Remove(paths) => {
                self.text(&format!("{name} = {name} - "));
                self.bind(Some(packed(paths.len(), paths.iter().map(|path| &**path))));
            }
            New::Put(path, value) => {
                self.part(change.column, path);
                self.text(" = ");
                self.bind(value.clone());
            }
        }
    }

    fn count(&mut self, count: &Count) {
        let name = self.table.name_of(count.column);
        self.text(&format!("{name} = {name} + "));
        self.bind(Some(Bytes::from(&count.by.to_be_bytes()[..])));
    }

    fn delete(&mut self, row: Option<&Clustering>, parts: &[(Place, Part)]) {
        self.text("DELETE");
        for (at, (column, part)) in parts.iter().enumerate() {
            self.text(if at == 0 { " " } else { ", " });
            match part {
                Part::Whole => self.text(&self.table.name_of(*column)),
                Part::Cell(path) => self.part(*column, path),
            }
        }
        self.text(&format!(" FROM {}", self.table.full_name()));
        self.using();
        self.condition(row);
    }

    /// An element or a field.
    fn part(&mut self, column: Place, path: &Bytes) {
        let name = self.table.name_of(column);
        match &self.table.column(column).data_type {
            CqlType::Udt(udt) => {
                let (field, _) = udt.field_at(path).expect("the path is that of a field");
                self.text(&format!("{name}.{field}"));
            }
            _ => {
                self.text(&format!("{name}["));
                self.bind(Some(path.clone()));
                self.text("]");
            }
        }
    }

    /// Counters have neither a timestamp of one's own nor a time to live.
    fn using(&mut self) {
        if self.table.schema.is_counter() {
            return;
        }
        self.text(" USING TIMESTAMP ");
        self.bind(Some(Bytes::from(&self.statement.timestamp.to_be_bytes()[..])));
        if self.statement.ttl != 0 {
            self.text(" AND TTL ");
            self.bind(Some(Bytes::from(&self.statement.ttl.to_be_bytes()[..])));
        }
    }

    fn condition(&mut self, row: Option<&Clustering>) {
        self.text(" WHERE ");
        let table = self.table;
        let values = self.statement.key.iter().cloned().map(Some);
        let values = values.chain(row.into_iter().flat_map(|row| row.values.clone()));
        for (at, (name, value)) in table.partition.iter().chain(&table.clustering).zip(values).enumerate() {
            self.text(if at == 0 { "" } else { " AND " });
            self.text(&format!("{name} = "));
            self.bind(value);
        }
    }

    fn range(&mut self, range: &Range) {
        for (name, value) in self.table.clustering.iter().zip(&range.prefix) {
            self.text(&format!(" AND {name} = "));
            self.bind(Some(value.clone()));
        }
        let ends = [(&range.lower, ">"), (&range.upper, "<")];
        let is_tuple = ends.iter().any(|(end, _)| end.as_ref().is_some_and(|end| end.values.len() > 1));
        for (end, operator) in ends {
            if let Some(end) = end {
                self.end(range.prefix.len(), end, operator, is_tuple);
            }
        }
    }

    fn end(&mut self, depth: usize, end: &End, operator: &str, is_tuple: bool) {
        let equals = if end.is_inclusive { "=" } else { "" };
        let names = self.table.clustering[depth..][..end.values.len()].join(", ");
        let (open, close) = if is_tuple { ("(", ")") } else { ("", "") };
        self.text(&format!(" AND {open}{names}{close} {operator}{equals} {open}"));
        for (at, value) in end.values.iter().enumerate() {
            self.text(if at == 0 { "" } else { ", " });
            self.bind(Some(value.clone()));
        }
        self.text(close);
    }

    fn text(&mut self, text: &str) {
        self.bound.text.push_str(text);
    }

    fn bind(&mut self, value: Option<Bytes>) {
        self.bound.text.push('?');
        self.bound.values.push(value);
    }
}

/// A value that takes the place of all that the column has.
fn whole(of: &CqlType, new: &New) -> Option<Bytes> {
    match new {
        New::Value(value) => Some(value.clone()),
        New::Elements(elements) => Some(collection(of, elements)),
        _ => None,
    }
}

/// The elements of a column of many cells as one value.
fn collection(of: &CqlType, elements: &[Element]) -> Bytes {
    let count = elements.len();
    match of {
        CqlType::List { .. } => packed(count, elements.iter().map(|element| &*element.value)),
        CqlType::Set { .. } => packed(count, elements.iter().map(|element| &*element.path)),
        CqlType::Udt(udt) => {
            let mut bytes = Vec::new();
            for field in 0..udt.fields.len() as u16 {
                let element = elements.iter().find(|element| *element.path == field.to_be_bytes());
                put(element.map(|element| &*element.value), &mut bytes);
            }
            Bytes::from(bytes)
        }
        _ => packed(count, elements.iter().flat_map(|element| [&*element.path, &*element.value])),
    }
}

impl fmt::Display for Bound {
    /// With the values in hexadecimal where their question marks are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.iter();
        for (at, part) in self.text.split('?').enumerate() {
            match if at == 0 { None } else { values.next() } {
                Some(Some(value)) => write!(f, "{value:?}")?,
                Some(None) => f.write_str("null")?,
                None => {}
            }
            f.write_str(part)?;
        }
        Ok(())
    }
}
