//! Rows by many keys at once: each filter is asked for all keys of its shard together, and then rows are read side by side.

use std::borrow::Cow;
use std::sync::Arc;

use model::{Bytes, PartitionKey, Token, flat};

use super::read::PageOptions;
use super::rows::PackedRows;
use super::select::{READ_MEMORY, Selection};
use super::worker::Worker;
use super::{ColumnInfo, Row, Table, Value};
use crate::{Error, Result};

/// So many rows are read at once.
const AT_ONCE: usize = 32;

/// Rows of a shard.
#[derive(Clone, Debug)]
struct ManyRead {
    selection: Selection,
    keys: Vec<RowKey>,
}

/// The key of a row, as it can go to its shard.
#[derive(Clone, Debug)]
pub(super) struct RowKey {
    pub(super) token: Token,
    pub(super) key: Vec<u8>,
    /// The row alone, as a flat slice.
    pub(super) slice: Vec<u8>,
}

impl RowKey {
    pub(super) fn key(&self) -> PartitionKey {
        PartitionKey { token: self.token, bytes: Bytes::from(self.key.as_slice()) }
    }

    pub(super) fn slice(&self) -> Result<model::Slice> {
        flat::slice(&Bytes::from(self.slice.as_slice())).map_err(|error| Error::Usage(error.to_string()))
    }
}

impl Table {
    /// Reads rows by their keys, in any order; each where it was asked for.
    pub(super) async fn read_many(&self, keys: &[(Vec<Value>, Vec<Value>)]) -> Result<Vec<Option<Row>>> {
        loop {
            let shape = self.state.shape();
            let encoder = self.encoder(&shape);
            let page = PageOptions { rows: 1, ..PageOptions::default() };
            let (columns, mut selection) = self.selection(&shape, &page)?;
            selection.wants_next = false;
            let keys = keys.iter().map(|(key, clustering)| encoder.row_key(key, clustering));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            match self.read_many_of(&columns, &selection, keys).await? {
                Some(rows) => return Ok(rows),
                None => self.until_altered().await,
            }
        }
    }

    /// `None` if the table was altered meanwhile.
    async fn read_many_of(
        &self,
        columns: &Arc<[ColumnInfo]>,
        selection: &Selection,
        keys: Vec<RowKey>,
    ) -> Result<Option<Vec<Option<Row>>>> {
        let mut rows: Vec<Option<Row>> = Vec::new();
        rows.resize_with(keys.len(), || None);
        let of_shards = self.by_shard(keys, |key| key.token).into_iter().map(|(shard, places, keys)| {
            let read = ManyRead { selection: selection.clone(), keys };
            let call = self.inner.shards[shard].call(async move |worker| worker.read_many(read).await);
            async move { call.await.map(|packed| (places, packed)) }
        });
        for answer in runtime::join_all(of_shards).await {
            let (places, Some(packed)) = answer? else { return Ok(None) };
            for (place, packed) in places.into_iter().zip(packed) {
                rows[place] = packed.into_page(columns).rows.pop();
            }
        }
        Ok(Some(rows))
    }

    /// What goes to each shard, and at which places it stood.
    pub(super) fn by_shard<T>(
        &self,
        all: Vec<T>,
        token: impl Fn(&T) -> Token,
    ) -> Vec<(usize, Vec<usize>, Vec<T>)> {
        let mut shards: Vec<(usize, Vec<usize>, Vec<T>)> =
            (0..self.inner.shards.len()).map(|shard| (shard, Vec::new(), Vec::new())).collect();
        for (place, one) in all.into_iter().enumerate() {
            let (_, places, of_shard) = &mut shards[self.inner.ring.shard_of(token(&one))];
            places.push(place);
            of_shard.push(one);
        }
        shards.retain(|(_, places, _)| !places.is_empty());
        shards
    }
}

impl Worker {
    /// The rows of keys, in their order; `None` if the table has changed since the read was made.
    async fn read_many(&self, read: ManyRead) -> Result<Option<Vec<PackedRows>>> {
        let table = self.table(read.selection.table)?;
        let memory = READ_MEMORY + table.table.slice_memory();
        let (mut packers, mut requests) = (Vec::new(), Vec::new());
        for key in &read.keys {
            let Some(packer) = self.packer(&table, read.selection.clone())? else { return Ok(None) };
            requests.push(Cow::Owned(packer.request(key.key(), key.slice()?)));
            packers.push(packer);
        }
        let mut begun = table.table.begin_all(requests).await?.into_iter().zip(packers);
        let mut rows = Vec::with_capacity(read.keys.len());
        while begun.len() > 0 {
            let some = begun.by_ref().take(AT_ONCE).map(async |(begun, mut packer)| {
                let _permit = self.admission()?.admit(memory).await?;
                packer.take_all(&mut begun.open().await?).await?;
                Ok::<_, Error>(packer.finish())
            });
            for packed in runtime::join_all(some).await {
                rows.push(packed?);
            }
        }
        Ok(Some(rows))
    }
}
