//! A mutation that was looked through: all that a memtable needs to know of it, without a copy of its rows.

use std::rc::Rc;

use model::flat::{CellView, RowVisitor, StandingMutation, standing_mutation};
use model::{Bytes, DeletionTime, Liveness, Mutation, PartitionKey, Schema, flat};

use super::extremes::Extremes;
use crate::{Error, Result};

/// A mutation that can be applied to memtables.
#[derive(Debug)]
pub struct Checked {
    pub(super) mutation: StandingMutation,
    /// [`Schema::rank`] of each of its rows.
    pub(super) ranks: Vec<u64>,
    pub(super) times: Extremes,
    /// Bytes of memory that the buffer takes which its rows stand in.
    pub(super) buffer: usize,
}

/// How many columns a table has at the least that has these rows.
struct Columns(usize);

impl Columns {
    fn has(&mut self, column: u16) {
        self.0 = self.0.max(usize::from(column) + 1);
    }
}

impl<'a> RowVisitor<'a> for Columns {
    fn clustering_value(&mut self, _: Option<&'a [u8]>) {}
    fn marker(&mut self, _: Liveness) {}
    fn deletions(&mut self, _: DeletionTime, _: DeletionTime) {}
    fn cells(&mut self, _: usize) {}

    fn complex_deletions(&mut self, deletions: Vec<(u16, DeletionTime)>) {
        deletions.into_iter().for_each(|(column, _)| self.has(column));
    }

    fn cell(&mut self, cell: CellView<'a>) {
        self.has(cell.column);
    }
}

impl Checked {
    /// The mutation that these bytes are, as [`model::flat::put_mutation`] encodes it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for bytes that are none, and where rows or ranges are out of order.
    pub fn new(bytes: &Bytes, schema: &Rc<Schema>) -> Result<Checked> {
        let mut times = Extremes::default();
        let mutation =
            standing_mutation(bytes, &mut times).map_err(|error| Error::Invalid(error.to_string()))?;
        let Some(ranks) = mutation.ranks_in_order(schema) else {
            return Err(Error::Invalid("the rows of a mutation are out of order".to_owned()));
        };
        times.add_others(&mutation);
        Ok(Checked { mutation, ranks, times, buffer: bytes.parts().0.capacity() })
    }

    /// The same of bytes that come from a log, whose columns may be those that the table had when it was written.
    ///
    /// # Errors
    /// Those of [`Checked::new`], and for a column that the table does not have.
    pub fn of_log(bytes: &Bytes, schema: &Rc<Schema>) -> Result<Checked> {
        let checked = Checked::new(bytes, schema)?;
        let (mut of_rows, mut of_static) = (Columns(0), Columns(0));
        let is_read = standing_mutation(bytes, &mut of_rows).is_ok();
        if let Some(row) = &checked.mutation.static_row {
            row.cells.iter().for_each(|cell| of_static.has(cell.column));
            row.complex_deletions.iter().for_each(|(column, _)| of_static.has(*column));
        }
        match is_read && of_rows.0 <= schema.regulars.len() && of_static.0 <= schema.statics.len() {
            true => Ok(checked),
            false => Err(Error::Invalid("a mutation has columns that its table does not have".to_owned())),
        }
    }

    /// A mutation, encoded.
    ///
    /// # Panics
    /// If its rows or ranges are out of order.
    pub fn of(mutation: &Mutation, schema: &Rc<Schema>) -> Checked {
        let mut bytes = Vec::new();
        flat::put_mutation(mutation, &mut bytes);
        Checked::new(&Bytes::from(bytes), schema).expect("mutations are in order")
    }

    /// The partition.
    pub fn key(&self) -> &PartitionKey {
        &self.mutation.key
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.mutation.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use model::{Cell, CellValue, Column, CqlType, Row};

    use super::*;

    #[test]
    fn what_comes_from_a_log_has_columns_that_there_are() {
        let columns = |names: &[&str]| {
            names
                .iter()
                .map(|name| Column { name: name.as_bytes().into(), data_type: CqlType::Int })
                .collect()
        };
        let schema = |statics: &[&str], regulars: &[&str]| {
            Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], columns(statics), columns(regulars)))
        };
        let row = |clustering: &[i32], column| {
            let value = CellValue::Value(Bytes::from(vec![0; 4]));
            let times =
                Cell { column, ttl: 0, timestamp: 1, local_deletion_time: i64::MAX, path: None, value };
            let clustering = clustering.iter().map(|value| value.to_be_bytes().to_vec()).collect();
            Row { cells: vec![times], ..Row::new(clustering) }
        };
        let mut mutation = Mutation::new(PartitionKey::new(Bytes::from(vec![0; 4])));
        mutation.rows.push(row(&[7], 1));
        mutation.static_row = Some(row(&[], 0));
        let mut bytes = Vec::new();
        flat::put_mutation(&mutation, &mut bytes);
        let is_good = |schema: &Rc<Schema>| Checked::of_log(&Bytes::from(bytes.clone()), schema).is_ok();
        assert!(is_good(&schema(&["s"], &["a", "b"])));
        assert!(!is_good(&schema(&["s"], &["a"])) && !is_good(&schema(&[], &["a", "b"])));
    }
}
