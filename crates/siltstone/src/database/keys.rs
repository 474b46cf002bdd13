//! Keys, and bounds of slices, by the values of their columns.

use model::{Bytes, Clustering, CqlType, KeyView, PartitionKey, Position, Slice, Token, key};
use smallvec::SmallVec;

use super::shape::Shape;
use super::value::{Coded, Encoded, NumberType, Value};
use super::write::Bound;
use crate::keys::composite;
use crate::{Error, Result};

/// No key is longer, in bytes.
pub(super) const LONGEST_KEY: usize = u16::MAX as usize;

/// The key of a row, as it can go to its shard.
#[derive(Clone, Debug)]
pub(super) struct RowKey {
    pub(super) token: Token,
    pub(super) key: Encoded,
    /// The values of its clustering columns; none where the table has none.
    pub(super) row: SmallVec<[Encoded; 2]>,
}

impl RowKey {
    /// Shows the partition's key, where it stands, and the values of the clustering columns to a function.
    #[inline]
    pub(super) fn with_bytes<R>(&self, look: impl FnOnce(KeyView<'_>, &[&[u8]]) -> R) -> R {
        let key = KeyView { token: self.token, bytes: &self.key };
        look(key, &self.row.iter().map(|value| &**value).collect::<SmallVec<[&[u8]; 4]>>())
    }

    /// The partition's key.
    pub(super) fn key(&self) -> PartitionKey {
        PartitionKey { token: self.token, bytes: Bytes::from(&*self.key) }
    }

    /// The clustering key.
    pub(super) fn clustering(&self) -> Clustering {
        self.row.iter().map(|value| &**value).collect()
    }

    /// The row alone.
    pub(super) fn slice(&self) -> Slice {
        if self.row.is_empty() { Slice::all() } else { Slice::of_prefix(self.clustering()) }
    }
}

impl Shape {
    /// The key of these values.
    pub(super) fn key(&self, values: &[Value]) -> Result<PartitionKey> {
        Ok(PartitionKey::new(Bytes::from(self.key_bytes(values)?.into_vec())))
    }

    /// The bytes of the same.
    pub(super) fn key_bytes(&self, values: &[Value]) -> Result<Encoded> {
        let (names, types) = (&self.schema.partition_key, self.key_types());
        if values.len() != types.len() {
            let (table, columns, given) = (self.name(), types.len(), values.len());
            let what = format!("the partition key of {table} has {columns} columns, not {given}");
            return Err(Error::Usage(what));
        }
        let part = |at: usize| part(&values[at], &names[at], &types[at]);
        let bytes = match &self.model().partition_key {
            CqlType::Composite(_) => {
                composite(&(0..types.len()).map(part).collect::<Result<Vec<_>>>()?).map(Encoded::from_vec)
            }
            _ => Some(part(0)?),
        };
        bytes.filter(|bytes| is_key(bytes)).ok_or_else(|| {
            let names = names.join(", ");
            Error::Usage(format!(
                "{names}: a partition key has 1 to {LONGEST_KEY} bytes, this one none or more"
            ))
        })
    }

    /// The clustering of these values, which may be fewer than there are columns.
    pub(super) fn clustering(&self, values: &[Value]) -> Result<Clustering> {
        Ok(self.clustering_bytes(values)?.into_iter().map(Encoded::into_vec).collect())
    }

    /// The bytes of the same.
    pub(super) fn clustering_bytes(&self, values: &[Value]) -> Result<SmallVec<[Encoded; 2]>> {
        let columns = self.clustering_len();
        if values.len() > columns {
            let table = self.name();
            let what = format!("{table} has {columns} clustering columns, not {}", values.len());
            return Err(Error::Usage(what));
        }
        let columns = self.model().clustering.iter().zip(&self.schema.clustering);
        let mut bytes = SmallVec::new();
        for (value, (of, name)) in values.iter().zip(columns) {
            bytes.push(part(value, name, of)?);
        }
        Ok(bytes)
    }

    /// The key of the one row of these values: of all clustering columns that there are.
    pub(super) fn row_key(&self, key: &[Value], clustering: &[Value]) -> Result<RowKey> {
        let key = self.key_bytes(key)?;
        let (columns, given) = (self.clustering_len(), clustering.len());
        if given != columns {
            let table = self.name();
            return Err(Error::Usage(format!("{table} has {columns} clustering columns, not {given}")));
        }
        let row = self.clustering_bytes(clustering)?;
        Ok(RowKey { token: key::token_of(&key), key, row })
    }

    /// Where a range begins.
    pub(super) fn start(&self, bound: &Bound) -> Result<Position> {
        Ok(match bound {
            Bound::Open => Position::start(),
            Bound::Including(values) => Position::before(self.clustering(values)?),
            Bound::Excluding(values) => Position::after(self.clustering(values)?),
        })
    }

    /// Where a range ends.
    pub(super) fn end(&self, bound: &Bound) -> Result<Position> {
        Ok(match bound {
            Bound::Open => Position::end(),
            Bound::Including(values) => Position::after(self.clustering(values)?),
            Bound::Excluding(values) => Position::before(self.clustering(values)?),
        })
    }
}

/// Whether there can be a partition with such a key.
pub(super) fn is_key(bytes: &[u8]) -> bool {
    (1..=LONGEST_KEY).contains(&bytes.len())
}

/// A value of a key.
#[inline]
fn part(value: &Value, name: &str, of: &CqlType) -> Result<Encoded> {
    match value.number(NumberType::of(of)) {
        Some(number) => Ok(number.into_encoded()),
        None => any_part(value, name, of),
    }
}

fn any_part(value: &Value, name: &str, of: &CqlType) -> Result<Encoded> {
    let Some(bytes) = value.encode(name, of)?.map(Coded::into_encoded) else {
        return Err(Error::Usage(format!("{name} is a part of the key and cannot be null")));
    };
    match bytes.len() {
        ..=LONGEST_KEY => Ok(bytes),
        len => {
            Err(Error::Usage(format!("{name} has {len} bytes; a part of the key has at most {LONGEST_KEY}")))
        }
    }
}
