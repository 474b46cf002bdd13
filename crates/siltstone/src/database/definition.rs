//! What storage is to know of a table, from what its schema says.

use std::path::Path;
use std::rc::Rc;

use sstable::parts::compression_info::{Compression, Compressor};
use sstable::writer::limits::version_for;
use sstable::{Version, WriteOptions};
use storage::Definition;
use storage::commit_log::TableId;
use storage::compaction::Compaction;
use storage::definition::DroppedColumn;

use crate::convert::{Target, TargetCompression};
use crate::table_options::{unknown_compressor, write_options};
use crate::table_schema::TableSchema;
use crate::{Error, Result};

/// The table of a folder, which writes its SSTables in this version, or in the first one behind it that can hold it.
///
/// # Errors
/// [`Error::File`] where an option of the table is none.
pub(super) fn of(id: TableId, folder: &Path, schema: &TableSchema, version: Version) -> Result<Definition> {
    let (options, version) = (&schema.options, version_for(version, &schema.schema));
    let mut definition = Definition::new(id, &Rc::new(schema.schema.clone()), version);
    let mut target = Target::new(version);
    if unknown_compressor(options).is_some() {
        // Of which those that are there tell by themselves what they are.
        target.compression = TargetCompression::Some(Compression::new(Compressor::Lz4, version));
    }
    let write = write_options(folder, schema, &target)?;
    definition.write = WriteOptions { keeps_greater_deletion: true, ..write };
    if let Some(text) = options.text("gc_grace_seconds") {
        let wrong = |error| Error::file(folder, format!("gc_grace_seconds = {text}: {error}"));
        definition.gc_grace_seconds = text.trim().parse().map_err(wrong)?;
    }
    definition.compaction = compaction(schema)
        .map_err(|error| Error::file(folder, format!("table {}: {error}", schema.table)))?;
    let dropped = |(name, at): &(String, i64)| DroppedColumn { name: name.as_bytes().into(), at: *at };
    definition.dropped = schema.dropped.iter().map(dropped).collect();
    Ok(definition)
}

/// Tells in the log what of a table is not done as its options say.
pub(super) fn tell_notes(schema: &TableSchema) {
    if let Some(class) = unknown_compressor(&schema.options) {
        let what = "the compressor is not known here: what is written is compressed by LZ4";
        tracing::warn!(table = schema.table, compressor = class, "{what}");
    }
    // What is wrong with them is told where the table is opened.
    for note in compaction(schema).into_iter().flat_map(|compaction| compaction.notes) {
        tracing::warn!(table = schema.table, "{note}");
    }
}

fn compaction(schema: &TableSchema) -> storage::Result<Compaction> {
    let options = schema.options.map("compaction").unwrap_or_default();
    Compaction::parse(options.iter().map(|(name, value)| (name.as_str(), value.as_str())))
}
