//! A table as the face shows it: columns by their names, each with the place where the rows have it.
//!
//! The order is that of `SELECT *`: partition key, clustering columns, static columns, regular ones. Columns that only
//! the files of compact storage have are not shown.

use std::sync::Arc;

use model::{Column, CqlType, Schema};

use crate::table_schema::TableSchema;
use crate::{Error, Result};

/// A column of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnInfo {
    /// Its name, without quotes.
    pub name: String,
    /// The type of its values.
    pub data_type: CqlType,
    /// What it is for.
    pub kind: ColumnKind,
}

/// What a column is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnKind {
    /// A part of the partition key.
    PartitionKey,
    /// A part of the clustering key.
    Clustering,
    /// One value a partition.
    Static,
    /// One value a row.
    Regular,
}

/// A table as it is between two changes of it.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Counts the changes of the table since the database was opened.
    pub(super) version: u64,
    pub(super) schema: TableSchema,
    /// Those that are shown.
    pub(super) columns: Arc<[ColumnInfo]>,
    /// Where the rows have each of them.
    pub(super) places: Arc<[Place]>,
    /// How long a value lives if the write does not say, in seconds; 0 for ever.
    pub(super) default_ttl: u32,
}

/// Columns of a table that a read selects, in its order.
pub(super) struct Selected {
    /// Whether they are all.
    pub(super) is_all: bool,
    pub(super) columns: Arc<[ColumnInfo]>,
    pub(super) places: Arc<[Place]>,
}

/// Where a column is: its place among those of its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    PartitionKey(usize),
    Clustering(usize),
    Static(u16),
    Regular(u16),
}

impl Shape {
    pub(super) fn new(schema: TableSchema, version: u64) -> Shape {
        let (mut columns, mut places) = (Vec::new(), Vec::new());
        let mut show = |name: String, data_type: &CqlType, kind: ColumnKind, place: Place| {
            columns.push(ColumnInfo { name, data_type: data_type.clone(), kind });
            places.push(place);
        };
        let keys = key_types(&schema.schema).iter().zip(&schema.partition_key).enumerate();
        keys.for_each(|(at, (of, name))| {
            show(name.clone(), of, ColumnKind::PartitionKey, Place::PartitionKey(at));
        });
        let is_static_compact = is_static_compact(&schema);
        if !is_static_compact {
            let clustering = schema.schema.clustering.iter().zip(&schema.clustering).enumerate();
            clustering.for_each(|(at, (of, name))| {
                show(name.clone(), of, ColumnKind::Clustering, Place::Clustering(at));
            });
        }
        for (at, column) in by_name(&schema.schema.statics) {
            // Compact storage without clustering columns keeps in the static row what CQL shows as the one row.
            let kind = if is_static_compact { ColumnKind::Regular } else { ColumnKind::Static };
            show(column.name_text().into_owned(), &column.data_type, kind, Place::Static(at));
        }
        for (at, column) in by_name(&schema.schema.regulars) {
            let is_hidden = schema.is_compact && column.data_type == CqlType::Empty;
            if !is_static_compact && !is_hidden {
                let name = column.name_text().into_owned();
                show(name, &column.data_type, ColumnKind::Regular, Place::Regular(at));
            }
        }
        let default_ttl = schema.options.text("default_time_to_live").and_then(|text| text.parse().ok());
        let (columns, places, default_ttl) = (columns.into(), places.into(), default_ttl.unwrap_or(0));
        Shape { version, schema, columns, places, default_ttl }
    }

    /// `keyspace.table`, or just the table where no keyspace is known.
    pub(super) fn name(&self) -> String {
        full_name(&self.schema)
    }

    /// Whether a row is there by its key alone. In compact storage the cells make it exist, if only one without a value.
    pub(super) fn is_marked_by_key(&self) -> bool {
        let is_empty = |column: &model::Column| column.data_type == CqlType::Empty;
        !self.schema.is_compact || self.model().regulars.first().is_some_and(is_empty)
    }

    /// The columns as the files have them.
    pub(super) fn model(&self) -> &Schema {
        &self.schema.schema
    }

    /// The type of each column of the partition key.
    pub(super) fn key_types(&self) -> &[CqlType] {
        key_types(self.model())
    }

    /// How many clustering columns are shown.
    pub(super) fn clustering_len(&self) -> usize {
        if is_static_compact(&self.schema) { 0 } else { self.model().clustering.len() }
    }

    /// Where a column is among those that are shown.
    pub(super) fn find(&self, name: &str) -> Result<usize> {
        let found = self.columns.iter().position(|column| column.name == name);
        found.ok_or_else(|| Error::Usage(format!("the table {} has no column {name}", self.name())))
    }

    /// All columns, or those of these names, with the places where the rows have them.
    pub(super) fn select(&self, names: Option<&[String]>) -> Result<Selected> {
        let Some(names) = names else {
            let (columns, places) = (self.columns.clone(), self.places.clone());
            return Ok(Selected { is_all: true, columns, places });
        };
        let found = names.iter().map(|name| self.find(name)).collect::<Result<Vec<_>>>()?;
        Ok(Selected {
            is_all: false,
            columns: found.iter().map(|&at| self.columns[at].clone()).collect(),
            places: found.iter().map(|&at| self.places[at]).collect(),
        })
    }
}

/// Columns with their places, by their names: unlike files, `SELECT *` does not put those of many cells last.
fn by_name(columns: &[Column]) -> Vec<(u16, &Column)> {
    let mut all: Vec<(u16, &Column)> = (0..).zip(columns).collect();
    all.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
    all
}

/// `keyspace.table`, or just the table where no keyspace is known.
pub(super) fn full_name(schema: &TableSchema) -> String {
    match &schema.keyspace {
        Some(keyspace) => format!("{keyspace}.{}", schema.table),
        None => schema.table.clone(),
    }
}

fn key_types(schema: &Schema) -> &[CqlType] {
    match &schema.partition_key {
        CqlType::Composite(columns) => columns,
        column => std::slice::from_ref(column),
    }
}

/// Whether all that CQL shows is in the static row: tables of compact storage have no other static columns.
fn is_static_compact(schema: &TableSchema) -> bool {
    schema.is_compact && !schema.schema.statics.is_empty()
}
