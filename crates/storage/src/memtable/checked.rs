//! A mutation that was looked through: all that a memtable needs to know of it, without a copy of its rows.

use std::rc::Rc;

use model::flat::{StandingMutation, standing_mutation};
use model::{Bytes, Mutation, PartitionKey, Schema, flat};

use super::extremes::Extremes;
use crate::{Error, Result};

/// A mutation that can be applied to memtables.
#[derive(Debug)]
pub struct Checked {
    pub(super) mutation: StandingMutation,
    pub(super) times: Extremes,
    /// Bytes of memory that the buffer takes which its rows stand in.
    pub(super) buffer: usize,
}

impl Checked {
    /// The mutation that these bytes are, as [`model::flat::put_mutation`] encodes it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for bytes that are none, and where rows or ranges are out of order.
    pub fn new(bytes: &Bytes, schema: &Rc<Schema>) -> Result<Checked> {
        let mut times = Extremes::default();
        let mutation = standing_mutation(bytes, schema, &mut times)
            .map_err(|error| Error::Invalid(error.to_string()))?;
        if !mutation.is_in_order(schema) {
            return Err(Error::Invalid("the rows of a mutation are out of order".to_owned()));
        }
        times.add_others(&mutation);
        Ok(Checked { mutation, times, buffer: bytes.parts().0.capacity() })
    }

    /// Whether it is a write to a table of these columns: what comes from a log may have been one when the table was another.
    ///
    /// # Errors
    /// [`Error::Invalid`], in words, if it is not.
    pub fn check(bytes: &Bytes, schema: &Schema) -> Result<()> {
        let mutation = flat::mutation(bytes).map_err(|error| Error::Invalid(error.to_string()))?;
        mutation.check(schema).map_err(Error::Invalid)
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
        let is_good = |schema: &Schema| Checked::check(&Bytes::from(bytes.clone()), schema).is_ok();
        assert!(is_good(&schema(&["s"], &["a", "b"])));
        assert!(!is_good(&schema(&["s"], &["a"])) && !is_good(&schema(&[], &["a", "b"])));
        let other = Schema { clustering: vec![CqlType::Int; 2], ..(*schema(&["s"], &["a", "b"])).clone() };
        assert!(!is_good(&other), "another number of clustering columns");
    }
}
