//! Values against their types.
//!
//! A value that its type does not allow is a note and no problem: a column may have been dropped and
//! made anew with another type, and old versions of Cassandra let clients store such values. They are
//! read, merged and kept like any other.

use std::collections::BTreeSet;
use std::path::Path;

use model::types::TypeError;
use model::{Cell, CellValue, Clustering, CqlType, Row, Schema};

use super::report::Report;

/// Notes the first odd value of each column.
#[derive(Debug, Default)]
pub(super) struct ValueCheck {
    noted: BTreeSet<Column>,
}

/// Whose value it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Column {
    Key,
    Clustering(usize),
    Static(u16),
    Regular(u16),
}

impl ValueCheck {
    pub(super) fn key(&mut self, path: &Path, at: u64, schema: &Schema, key: &[u8], report: &mut Report) {
        self.note(Column::Key, schema.partition_key.validate(key), path, at, schema, report);
    }

    pub(super) fn clustering(
        &mut self,
        path: &Path,
        at: u64,
        schema: &Schema,
        prefix: &Clustering,
        report: &mut Report,
    ) {
        for (number, (value, data_type)) in prefix.values.iter().zip(&schema.clustering).enumerate() {
            // Any column may be empty in tables of compact storage.
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                let found = data_type.validate(value);
                self.note(Column::Clustering(number), found, path, at, schema, report);
            }
        }
    }

    pub(super) fn row(
        &mut self,
        path: &Path,
        at: u64,
        schema: &Schema,
        of_static: bool,
        row: &Row,
        report: &mut Report,
    ) {
        let columns = schema.columns(of_static);
        for cell in &row.cells {
            let found = validate(&columns[usize::from(cell.column)].data_type, cell);
            let column = if of_static { Column::Static(cell.column) } else { Column::Regular(cell.column) };
            self.note(column, found, path, at, schema, report);
        }
    }

    fn note(
        &mut self,
        column: Column,
        found: Result<(), TypeError>,
        path: &Path,
        at: u64,
        schema: &Schema,
        report: &mut Report,
    ) {
        let Err(error) = found else { return };
        if self.noted.insert(column) {
            let name = column.name(schema);
            report.note(path, Some(at), format!("{name} has a value that its type does not allow: {error}"));
        }
    }
}

impl Column {
    fn name(self, schema: &Schema) -> String {
        match self {
            Column::Key => "the partition key".to_owned(),
            Column::Clustering(number) => format!("clustering column {}", number + 1),
            Column::Static(column) => format!("column {:?}", schema.statics[usize::from(column)].name_text()),
            Column::Regular(column) => {
                format!("column {:?}", schema.regulars[usize::from(column)].name_text())
            }
        }
    }
}

fn validate(data_type: &CqlType, cell: &Cell) -> Result<(), TypeError> {
    if let (Some(path), Some(path_type)) = (&cell.path, data_type.cell_path_type()) {
        path_type.validate(path)?;
    }
    let value_type = data_type.cell_value_type(cell.path.as_deref()).ok_or_else(TypeError::no_such_field)?;
    match &cell.value {
        CellValue::Tombstone => Ok(()),
        CellValue::Value(value) if data_type.is_counter() => data_type.validate_cell(value),
        CellValue::Value(value) => value_type.validate(value),
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;
    use model::time::NO_DELETION_TIME;
    use model::types::UserType;

    use super::*;

    #[test]
    fn cells_are_of_elements_that_there_can_be() {
        let cell = |path: Option<&[u8]>, value: CellValue| Cell {
            column: 0,
            ttl: 0,
            timestamp: 1,
            local_deletion_time: NO_DELETION_TIME,
            path: path.map(Bytes::from),
            value,
        };
        let value = |bytes: &[u8]| CellValue::Value(Bytes::from(bytes));
        let is_sound = |of: &CqlType, cell: Cell| validate(of, &cell).is_ok();
        assert!(is_sound(&CqlType::Int, cell(None, value(&[0; 4]))));
        assert!(!is_sound(&CqlType::Int, cell(None, value(&[0; 3]))));
        let map = CqlType::map(CqlType::Int, CqlType::Text, false);
        assert!(is_sound(&map, cell(Some(&[0; 4]), value(b"x"))));
        assert!(!is_sound(&map, cell(Some(&[0; 4]), value(b"\xff"))));
        assert!(!is_sound(&map, cell(Some(&[0; 3]), CellValue::Tombstone)));
        let fields = vec![("a".to_owned(), CqlType::Int)];
        let of = UserType { keyspace: "k".into(), name: "t".into(), fields, frozen: false };
        let udt = CqlType::Udt(Box::new(of));
        assert!(is_sound(&udt, cell(Some(&[0, 0]), value(&[0; 4]))));
        for path in [&[0, 1][..], &[0xff, 0xff]] {
            assert!(!is_sound(&udt, cell(Some(path), value(&[0; 4]))));
            assert!(!is_sound(&udt, cell(Some(path), CellValue::Tombstone)));
        }
    }
}
