//! Rows by many keys at once: each filter is asked for all keys of its shard together, and then rows are read side by side, those that
//! follow each other in a partition together.

use std::borrow::Cow;
use std::sync::Arc;

use super::keys::RowKey;
use super::point::{Of, Said};
use super::rows::PackedRows;
use super::select::Selection;
use super::worker::Worker;
use super::{ColumnInfo, Row, Table, Values};
use crate::Result;

/// Rows of a shard.
#[derive(Clone, Debug)]
struct ManyRead {
    selection: Selection,
    keys: Vec<RowKey>,
}

impl Table {
    /// Reads rows by their keys, in any order; each where it was asked for.
    pub(super) async fn read_many(&self, keys: &[(Values, Values)]) -> Result<Vec<Option<Row>>> {
        loop {
            let shape = self.state.shape();
            let selection = Selection::of_row(self.state.id, &shape);
            let keys = keys.iter().map(|(key, clustering)| shape.row_key(key, clustering));
            let keys = keys.collect::<Result<Vec<_>>>()?;
            match self.read_many_of(&shape.columns, &selection, keys).await? {
                Some(rows) => return Ok(rows),
                None => self.until_altered().await?,
            }
        }
    }

    /// `None` if the table was altered meanwhile: what was read before has other columns.
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
                rows[place] = packed.into_row(columns);
            }
        }
        Ok(Some(rows))
    }
}

impl Worker {
    /// The rows of keys, in their order; `None` if the table has changed since the read was made.
    async fn read_many(&self, read: ManyRead) -> Result<Option<Vec<PackedRows>>> {
        let table = self.table(read.selection.table)?;
        let mut rows: Vec<PackedRows> = read.keys.iter().map(|_| PackedRows::default()).collect();
        let mut unknown = Vec::new();
        let of = Of { table: read.selection.table, version: read.selection.version };
        for (at, row) in read.keys.iter().enumerate() {
            match row.with_bytes(|key, values| self.known_row(&table, of, key, values)) {
                Said::Row(known) => rows[at] = known,
                Said::Absent => {}
                Said::Altered => return Ok(None),
                Said::Unknown | Said::OnDisk => unknown.push((at, row.key(), row.slice())),
            }
            if self.is_turn_over() {
                runtime::yield_now().await;
            }
        }
        // Rows that follow each other in a partition are read together.
        let shape = table.shape();
        unknown.sort_by(|(_, a_key, a), (_, b_key, b)| {
            a_key.cmp(b_key).then_with(|| shape.model().compare(&a.start, &b.start))
        });
        let (mut packers, mut requests) = (Vec::new(), Vec::new());
        for (at, key, slice) in unknown {
            let packer = self.packer(&table, read.selection.clone(), PackedRows::default());
            let Ok(packer) = packer else { return Ok(None) };
            requests.push(Cow::Owned(packer.request(key, slice)));
            packers.push((at, packer));
        }
        let begun = table.table.begin_all(requests).await?.into_iter().zip(packers);
        if table.shape().version != read.selection.version {
            // What has begun has the columns of now, the packers those of before.
            return Ok(None);
        }
        let opened = self.open_each(&table, begun, async |begun, (at, mut packer)| {
            packer.take_all(&mut begun.open().await?).await?;
            Ok((at, packer.finish()))
        });
        for (at, row) in opened.await? {
            rows[at] = row;
        }
        Ok(Some(rows))
    }
}
