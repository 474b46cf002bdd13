//! Counter updates: a batch reads the current values of all of its rows together and writes the sums; meanwhile no other counter update or
//! insert-if-absent runs in their partitions.
//!
//! As with Cassandra, the written cell has one global shard, that of this database: how often it has counted, and its sum. Shards of other
//! nodes, from SSTables that were copied here, are kept with it by every merge.

use std::borrow::Cow;
use std::collections::BTreeMap;

use model::merge::counter::encode;
use model::time::NO_DELETION_TIME;
use model::types::counter::{CounterContext, Shard, ShardKind};
use model::{
    Bytes, Cell, CellValue, Clustering, Fragment, FragmentReader, LiveRows, Mutation, PartitionKey, Row,
    Slice, Token, flat, key,
};
use storage::{Begun, ReadRequest};

use super::encode::Encoder;
use super::shape::{Place, Shape};
use super::spread::{Share, same_rows};
use super::worker::{ShardTable, Worker};
use super::{Table, Values};
use crate::{Error, Result};

/// What is to be added to counters of a row, by their names.
#[derive(Clone, Debug)]
pub(super) struct Increments {
    pub(super) key: Values,
    pub(super) clustering: Values,
    pub(super) by: Vec<(String, i64)>,
}

/// The same, as it can go to its shard.
#[derive(Clone, Debug)]
struct Addition {
    row: CounterRow,
    /// Each column with its number.
    by: Vec<(u16, i64)>,
    /// Microseconds.
    timestamp: i64,
    host: [u8; 16],
}

/// A row of counters: the static one, or another.
#[derive(Clone, Debug)]
struct CounterRow {
    key: Vec<u8>,
    is_static: bool,
    clustering: Vec<Vec<u8>>,
}

impl Table {
    /// Adds to counters of rows. Those of one row, named twice, are added to twice.
    pub(super) async fn count(&self, all: &[Increments]) -> Result<()> {
        let host = self.inner.host_id;
        let encode = |encoder: &Encoder<'_>, at: usize| addition(encoder, &all[at], host);
        self.for_each_row(all.len(), encode, async |worker, share| worker.count(share).await).await?;
        Ok(())
    }
}

fn addition(encoder: &Encoder<'_>, increments: &Increments, host: [u8; 16]) -> Result<(Token, Addition)> {
    let shape = encoder.shape;
    let (by, is_static) = columns(shape, &increments.by)?;
    let row = shape.clustering(&increments.clustering)?;
    let needed = if is_static { 0 } else { shape.model().clustering.len() };
    if row.len() != needed {
        let (table, given) = (shape.name(), row.len());
        return Err(Error::Usage(format!("{table}: {given} clustering values were given, not {needed}")));
    }
    let key = shape.key_bytes(&increments.key)?;
    let token = key::token_of(&key);
    let clustering = row.values.iter().flatten().map(|value| value.to_vec()).collect();
    let row = CounterRow { key: key.into_vec(), is_static, clustering };
    Ok((token, Addition { row, by, timestamp: encoder.stamps.micros(), host }))
}

/// The numbers of columns, and whether they are static.
fn columns(shape: &Shape, by: &[(String, i64)]) -> Result<(Vec<(u16, i64)>, bool)> {
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
    columns.sort_unstable();
    Ok((columns, is_static))
}

impl Worker {
    /// Adds; `None` for those that are to be encoded anew, as the table was altered.
    async fn count(&self, share: Share<Addition>) -> Result<Vec<Option<()>>> {
        let Share { table: id, version, rows: additions } = share;
        let table = self.table(id)?;
        let _locks = self.lock_all(&table, additions.iter().map(|addition| &*addition.row.key)).await;
        if table.shape().version != version {
            return Ok(vec![None; additions.len()]);
        }
        let named = |Addition { row, .. }: &Addition| ((row.key.clone(), row.is_static), row.clustering());
        let named: Vec<_> = additions.iter().map(named).collect();
        let of_rows = same_rows(table.shape().model(), &named);
        let before = self.counted(&table, of_rows.iter().map(|of_row| &additions[of_row[0]].row)).await?;
        let mut records = Vec::with_capacity(before.len());
        for (of_row, cells) in of_rows.iter().zip(before) {
            let sums = sums(&cells, of_row.iter().map(|&at| &additions[at]))?;
            records.push(record(&additions[of_row[0]].row, sums));
        }
        let written = self.write_each((id, version), records.into_iter()).await?;
        let mut answers = vec![None; additions.len()];
        for (of_row, written) in of_rows.into_iter().zip(written) {
            of_row.into_iter().for_each(|at| answers[at] = written);
        }
        Ok(answers)
    }

    /// The cells that are there of each of these rows.
    async fn counted(
        &self,
        table: &ShardTable,
        rows: impl Iterator<Item = &CounterRow>,
    ) -> Result<Vec<Vec<Cell>>> {
        let requests = rows.map(|row| {
            let request = ReadRequest::new(row.key(), Slice::of_prefix(row.clustering()));
            Cow::Owned(ReadRequest { static_row: row.is_static, limit: Some(1), ..request })
        });
        let requests: Vec<Cow<'_, ReadRequest>> = requests.collect();
        let are_static: Vec<bool> = requests.iter().map(|request| request.static_row).collect();
        let begun = table.table.begin_all(requests).await?.into_iter().zip(are_static);
        let cells = async |begun, is_static| self.cells_of(begun, is_static).await;
        self.open_each(table, begun, cells).await
    }

    async fn cells_of(&self, begun: Begun<'_>, is_static: bool) -> Result<Vec<Cell>> {
        let mut stream = begun.open().await?;
        let mut live = LiveRows::new(self.shard.clock().now_seconds());
        while let Some(mut fragment) = stream.next().await? {
            let is_live = live.keeps(&mut fragment);
            match fragment {
                Fragment::StaticRow(row) if is_live && is_static => return Ok(row.cells),
                // The static row stands in front of all others.
                Fragment::Row(_) if is_static => return Ok(Vec::new()),
                Fragment::Row(row) if is_live => return Ok(row.cells),
                _ => {}
            }
        }
        Ok(Vec::new())
    }
}

impl CounterRow {
    fn key(&self) -> PartitionKey {
        PartitionKey::new(Bytes::from(self.key.as_slice()))
    }

    fn clustering(&self) -> Clustering {
        self.clustering.iter().map(Vec::as_slice).collect()
    }
}

/// The cells of a row that change, once all of these were added.
fn sums<'a>(before: &[Cell], additions: impl Iterator<Item = &'a Addition>) -> Result<Vec<Cell>> {
    let mut sums: BTreeMap<u16, Cell> = BTreeMap::new();
    for addition in additions {
        for (column, by) in &addition.by {
            let known = sums.get(column).or_else(|| before.iter().find(|cell| cell.column == *column));
            let sum = sum(known, *column, *by, addition)?;
            sums.insert(*column, sum);
        }
    }
    Ok(sums.into_values().collect())
}

/// The mutation that writes these cells of a row, as flat bytes.
fn record(row: &CounterRow, cells: Vec<Cell>) -> Vec<u8> {
    let mut mutation = Mutation::new(row.key());
    let written = Row { cells, ..Row::new(row.clustering()) };
    match row.is_static {
        true => mutation.static_row = Some(written),
        false => mutation.rows.push(written),
    }
    let mut record = Vec::new();
    flat::put_mutation(&mutation, &mut record);
    record
}

/// The cell of this database's shard once it has counted. Its clock is the time, as with Cassandra: where a counter was deleted and is counted again from 0,
/// the new count takes the place of the old one in whatever order they are merged.
fn sum(before: Option<&Cell>, column: u16, by: i64, addition: &Addition) -> Result<Cell> {
    let own = match before.map(|cell| &cell.value) {
        Some(CellValue::Value(context)) => {
            let context = CounterContext::parse(context).map_err(|error| Error::Usage(error.to_string()))?;
            context.shards().find(|shard| shard.id == addition.host)
        }
        _ => None,
    };
    let (clock, count) = own.map_or((0, 0), |shard| (shard.clock, shard.count));
    let clock = clock.checked_add(1).map(|next| next.max(addition.timestamp));
    let clock =
        clock.ok_or_else(|| Error::Usage("a counter was added to as often as it can be".to_owned()))?;
    let count = count.wrapping_add(by);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What was counted before it was deleted has a clock below that of what is counted behind it, so that it does not come back where the two are merged
    /// without the deletion.
    #[test]
    fn the_clock_of_a_count_is_the_time() {
        let addition = |timestamp| Addition {
            row: CounterRow { key: vec![1], is_static: false, clustering: Vec::new() },
            by: Vec::new(),
            timestamp,
            host: [7; 16],
        };
        let added = |before: Option<&Cell>, timestamp| sum(before, 0, 5, &addition(timestamp)).unwrap();
        let told = |cell: &Cell| {
            let CellValue::Value(context) = &cell.value else { panic!("it was counted") };
            let context = CounterContext::parse(context).unwrap();
            context.shards().map(|shard| (shard.clock, shard.count)).collect::<Vec<_>>()
        };
        let first = added(None, 1000);
        let (second, earlier) = (added(Some(&first), 2000), added(Some(&first), 10));
        assert_eq!([&first, &second, &earlier].map(told), [[(1000, 5)], [(2000, 10)], [(1001, 10)]]);
        assert_eq!(told(&added(None, 3000)), [(3000, 5)], "it was deleted meanwhile");
    }
}
