//! Counters are added to: what is there is read, and the sum written, while nobody else does so in the partition.
//!
//! As with Cassandra, the cell that is written has one global shard, that of this database: how often it has counted, and
//! its sum. Shards of other nodes, which SSTables that were copied here have, are kept beside it by every merge.

use std::rc::Rc;
use std::sync::Arc;

use model::merge::counter::encode;
use model::time::NO_DELETION_TIME;
use model::types::counter::{CounterContext, Shard, ShardKind};
use model::{
    Bytes, Cell, CellValue, Clustering, Fragment, FragmentReader, LiveRows, Mutation, PartitionKey, Row,
    Slice, flat, key,
};
use storage::ReadRequest;
use storage::commit_log::TableId;

use super::encode::Encoder;
use super::shape::{Place, Shape};
use super::worker::{ShardTable, Worker};
use super::{Inner, TableState, Value};
use crate::{Error, Result};

/// What is to be added, as it can go to its shard.
#[derive(Clone, Debug)]
struct Addition {
    table: TableId,
    version: u64,
    key: Vec<u8>,
    clustering: Vec<Vec<u8>>,
    /// Each column with its number; all are static, or none.
    by: Vec<(u16, i64)>,
    is_static: bool,
    /// Microseconds.
    timestamp: i64,
    host: [u8; 16],
}

/// Adds to counters of a row.
pub(super) async fn add(
    inner: &Inner,
    state: &TableState,
    key: &[Value],
    clustering: &[Value],
    by: &[(String, i64)],
) -> Result<()> {
    loop {
        let shape = state.shape();
        let addition = addition(inner, state, &shape, key, clustering, by)?;
        let shard = inner.shard_of(key::token_of(&addition.key));
        if shard.call(async move |worker| worker.count(addition).await).await?.is_some() {
            return Ok(());
        }
        drop(state.upkeep.take().await);
    }
}

fn addition(
    inner: &Inner,
    state: &TableState,
    shape: &Arc<Shape>,
    key: &[Value],
    clustering: &[Value],
    by: &[(String, i64)],
) -> Result<Addition> {
    let encoder = Encoder { shape, stamps: &inner.stamps, limits: &inner.limits, now: crate::now() };
    let (mut columns, mut are_static) = (Vec::new(), Vec::new());
    for (name, by) in by {
        let at = shape.find(name)?;
        if !shape.columns[at].data_type.is_counter() {
            return Err(Error::Usage(format!("{name} is no counter")));
        }
        let (column, is_static) = match shape.places[at] {
            Place::Static(column) => (column, true),
            Place::Regular(column) => (column, false),
            Place::PartitionKey(_) | Place::Clustering(_) => unreachable!("no key is a counter"),
        };
        columns.push((column, *by));
        are_static.push(is_static);
    }
    let is_static = are_static.first().copied().unwrap_or(false);
    if are_static.iter().any(|other| *other != is_static) {
        return Err(Error::Usage("static counters and others are added to one after the other".to_owned()));
    }
    let row = encoder.clustering(clustering)?;
    let needed = if is_static { 0 } else { shape.model().clustering.len() };
    if row.len() != needed {
        let (table, given) = (shape.name(), row.len());
        return Err(Error::Usage(format!("{table}: {given} clustering values were given, not {needed}")));
    }
    columns.sort_unstable();
    Ok(Addition {
        table: state.id,
        version: shape.version,
        key: encoder.key(key)?.bytes.to_vec(),
        clustering: row.values.iter().flatten().map(|value| value.to_vec()).collect(),
        by: columns,
        is_static,
        timestamp: inner.stamps.micros(),
        host: inner.host_id,
    })
}

impl Worker {
    /// Adds; `None` if the table has been altered meanwhile.
    async fn count(&self, addition: Addition) -> Result<Option<()>> {
        let table = self.table(addition.table)?;
        let _lock = table.locks.lock(&addition.key).await;
        if table.shape().version != addition.version {
            return Ok(None);
        }
        let key = PartitionKey::new(Bytes::from(addition.key.as_slice()));
        let clustering: Clustering = addition.clustering.iter().map(Vec::as_slice).collect();
        let before = self.counted(&table, &key, &clustering, addition.is_static).await?;
        let mut row = Row::new(clustering);
        for (column, by) in &addition.by {
            // A column that is named twice is added to twice.
            let known = row.cells.iter().rfind(|cell| cell.column == *column);
            let known = known.or_else(|| before.iter().find(|cell| cell.column == *column));
            let cell = sum(known, *column, *by, &addition)?;
            row.cells.retain(|cell| cell.column != *column);
            row.cells.push(cell);
        }
        let mut mutation = Mutation::new(key);
        match addition.is_static {
            true => mutation.static_row = Some(row),
            false => mutation.rows.push(row),
        }
        let mut record = Vec::new();
        flat::put_mutation(&mutation, &mut record);
        self.write(addition.table, addition.version, record).await
    }

    /// The cells that are there.
    async fn counted(
        &self,
        table: &Rc<ShardTable>,
        key: &PartitionKey,
        clustering: &Clustering,
        is_static: bool,
    ) -> Result<Vec<Cell>> {
        let slice = Slice::of_prefix(clustering.clone());
        let request = ReadRequest { static_row: is_static, ..ReadRequest::new(key.clone(), slice) };
        let mut stream = table.table.read(&request).await?;
        let mut live = LiveRows::new(self.shard.clock().now_seconds());
        while let Some(mut fragment) = stream.next().await? {
            let is_live = live.keeps(&mut fragment);
            match fragment {
                Fragment::StaticRow(row) if is_live && is_static => return Ok(row.cells),
                Fragment::Row(row) if is_live && !is_static => return Ok(row.cells),
                _ => {}
            }
        }
        Ok(Vec::new())
    }
}

/// The cell of this database's shard once it has counted.
fn sum(before: Option<&Cell>, column: u16, by: i64, addition: &Addition) -> Result<Cell> {
    let own = match before.map(|cell| &cell.value) {
        Some(CellValue::Value(context)) => {
            let context = CounterContext::parse(context).map_err(|error| Error::Usage(error.to_string()))?;
            context.shards().find(|shard| shard.id == addition.host)
        }
        _ => None,
    };
    let (clock, count) = own.map_or((0, 0), |shard| (shard.clock, shard.count));
    let (clock, count) = (clock + 1, count.wrapping_add(by));
    let shard = Shard { id: addition.host, clock, count, kind: ShardKind::Global };
    let value = CellValue::Value(encode(&[shard]).expect("one shard can be numbered"));
    Ok(Cell {
        column,
        ttl: 0,
        timestamp: addition.timestamp,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value,
    })
}
