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
    /// [`Schema::rank`] of each of its rows.
    pub(super) ranks: Vec<u64>,
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
        let mutation =
            standing_mutation(bytes, &mut times).map_err(|error| Error::Invalid(error.to_string()))?;
        let Some(ranks) = mutation.ranks_in_order(schema) else {
            return Err(Error::Invalid("the rows of a mutation are out of order".to_owned()));
        };
        times.add_others(&mutation);
        Ok(Checked { mutation, ranks, times, buffer: bytes.parts().0.capacity() })
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
