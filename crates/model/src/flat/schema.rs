//! Schemas: what the columns are that the rows of a log name by their places.
//!
//! ```text
//! schema   01 version, type of the partition key, vint how many, types of the clustering columns,
//!          static columns, regular columns
//! columns  vint how many, { name, type } …
//! type     the class name that Cassandra gives it, as bytes behind a vint length; so is a column's name
//! ```
//!
//! The order of the columns is kept as it is.

use super::VERSION;
use super::cursor::{Cursor, Decoded, put_bytes, put_many};
use crate::{Column, CqlType, Schema};

/// Why a schema has no bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SchemaError {
    /// The name of a type does not say which type it is, or is nested too deep.
    #[error("the type '{0}' cannot be told by its name")]
    Type(String),
    /// The schema breaks its invariant.
    #[error("columns of one cell do not come before multi-cell ones")]
    Order,
}

/// Appends a schema.
///
/// # Errors
/// If it could not be restored; nothing is appended then.
pub fn put_schema(schema: &Schema, out: &mut Vec<u8>) -> Result<(), SchemaError> {
    check(schema)?;
    out.push(VERSION);
    put_type(&schema.partition_key, out);
    put_many(schema.clustering.iter(), out, put_type);
    for columns in [&schema.statics, &schema.regulars] {
        put_many(columns.iter(), out, |column, out| {
            put_bytes(&column.name, out);
            put_type(&column.data_type, out);
        });
    }
    Ok(())
}

pub(super) fn take(cursor: &mut Cursor<'_>) -> Decoded<Schema> {
    let version = cursor.u8()?;
    cursor.check(version == VERSION, &"this version of a schema is not known")?;
    Ok(Schema {
        partition_key: take_type(cursor)?,
        clustering: cursor.many(take_type)?,
        statics: take_columns(cursor)?,
        regulars: take_columns(cursor)?,
    })
}

fn check(schema: &Schema) -> Result<(), SchemaError> {
    let columns = schema.statics.iter().chain(&schema.regulars).map(|column| &column.data_type);
    for data_type in [&schema.partition_key].into_iter().chain(&schema.clustering).chain(columns) {
        let name = data_type.to_string();
        if parse_exactly(&name).as_ref() != Some(data_type) {
            return Err(SchemaError::Type(name));
        }
    }
    if is_ordered(&schema.statics) && is_ordered(&schema.regulars) { Ok(()) } else { Err(SchemaError::Order) }
}

fn is_ordered(columns: &[Column]) -> bool {
    columns.is_sorted_by_key(|column| column.data_type.is_multi_cell())
}

fn put_type(data_type: &CqlType, out: &mut Vec<u8>) {
    put_bytes(data_type.to_string().as_bytes(), out);
}

fn take_type(cursor: &mut Cursor<'_>) -> Decoded<CqlType> {
    let name = cursor.bytes()?;
    match std::str::from_utf8(name).ok().and_then(parse_exactly) {
        Some(data_type) => Ok(data_type),
        None => cursor.invalid(&"the name of a type cannot be read"),
    }
}

/// The type that is called so, and not in another way too.
fn parse_exactly(name: &str) -> Option<CqlType> {
    CqlType::parse(name).ok().filter(|data_type| data_type.to_string() == name)
}

fn take_columns(cursor: &mut Cursor<'_>) -> Decoded<Vec<Column>> {
    let columns =
        cursor.many(|cursor| Ok(Column { name: cursor.bytes()?.into(), data_type: take_type(cursor)? }))?;
    cursor.check(is_ordered(&columns), &"a column of one cell comes after a multi-cell one")?;
    Ok(columns)
}
