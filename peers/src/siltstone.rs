//! Siltstone, as a program embeds it: one shard, which is a thread of its own.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use ::siltstone::Result as Done;
use ::siltstone::database::{Batch, Bound, Database, Options, Pending, RowView, Scan, Slice, Table, Write};
use model::time::NO_DELETION_TIME;
use model::{
    Bytes, Cell, CellValue, Clustering, DeletionTime, Fragment, Liveness, PartitionKey, PartitionStart,
    Schema,
};
use runtime::{Disk, ShardOptions};
use sstable::component::{Component, Descriptor};
use sstable::parts::statistics::EncodingStats;
use sstable::{SSTableWriter, Version, WriteOptions};

use crate::Settings;
use crate::rows::{Found, PARTITION};
use crate::work::{Measured, Peer, Plan, Result, Way};

/// The version that Cassandra 5.0 writes.
const VERSION: Version = Version::Oa;

/// Microseconds since the epoch.
const TIMESTAMP: i64 = 1_700_000_000_000_000;

/// The table. Nothing is compressed, with any peer.
const TABLE: &str = "CREATE TABLE peers.rows (k int, c int, v blob, PRIMARY KEY (k, c))
    WITH compression = {'enabled': 'false'}";

/// An open database with its table.
#[derive(Clone)]
pub(crate) struct Embedded {
    table: Table,
    /// None on the thread of a shard, where nobody may block.
    database: Option<Arc<Database>>,
}

/// Writes all rows, a batch while the next one is made up, and compacts them.
pub(crate) fn load(settings: &Settings) -> Result<()> {
    let database = Database::open(&settings.folder, options(settings)).wait()?;
    let table = database.create_table(TABLE).wait()?;
    let mut under_way: Option<Pending<()>> = None;
    for rows in settings.of_rows().batches() {
        let write = |(clustering, value)| Write::insert(PARTITION, clustering).set("v", value);
        let next = table.write(rows.into_iter().map(write).collect::<Batch>()).begun();
        under_way.replace(next).map_or(Ok(()), Pending::wait)?;
    }
    under_way.map_or(Ok(()), Pending::wait)?;
    table.flush().wait()?;
    table.compact().wait()?;
    Ok(database.close().wait()?)
}

/// Writes all rows into one SSTable with blocks of the size that is asked for.
pub(crate) fn prepare(settings: &Settings) -> Result<()> {
    let database = Database::open(&settings.folder, options(settings)).wait()?;
    let table = database.create_table(TABLE).wait()?;
    let (folder, schema) = (table.folder().to_owned(), table.schema());
    database.close().wait()?;
    let shard = ShardOptions::default();
    Ok(runtime::run(shard, async |shard| write(shard.disk(), &folder, &schema, settings).await)??)
}

async fn write(disk: &Disk, folder: &Path, schema: &Schema, settings: &Settings) -> Done<()> {
    let name = format!("{}-1-big-{}", VERSION.name(), Component::Data.name());
    let options = WriteOptions {
        compression: None,
        column_index_size: settings.block << 10,
        fits_blocks: true,
        ..WriteOptions::new(VERSION)
    };
    let encoding = EncodingStats { min_timestamp: TIMESTAMP, ..EncodingStats::NONE };
    let descriptor = Descriptor::parse(&folder.join(name))?;
    let mut writer =
        SSTableWriter::create(disk, descriptor, &schema.clone().into(), encoding, options).await?;
    let key = PartitionKey::new(Bytes::from(PARTITION.to_be_bytes().to_vec()));
    writer.push(&Fragment::PartitionStart(PartitionStart { key, deletion: DeletionTime::LIVE })).await?;
    for (clustering, value) in settings.of_rows().batches().flatten() {
        writer.push(&fragment(clustering, value)).await?;
    }
    writer.push(&Fragment::PartitionEnd).await?;
    writer.seal().await.map(drop).map_err(Into::into)
}

fn fragment(clustering: i32, value: Vec<u8>) -> Fragment {
    let mut row = model::Row::new(clustering_of(clustering));
    row.liveness = Liveness { timestamp: TIMESTAMP, ..Liveness::NONE };
    let (ttl, local_deletion_time, path) = (0, NO_DELETION_TIME, None);
    let value = CellValue::Value(Bytes::from(value));
    row.cells = vec![Cell { column: 0, ttl, timestamp: TIMESTAMP, local_deletion_time, path, value }];
    Fragment::Row(row)
}

/// The defaults, but for what is told to all peers.
fn options(settings: &Settings) -> Options {
    Options {
        shards: 1,
        cache: settings.cache_bytes(),
        version: VERSION,
        column_index_size: settings.block << 10,
        io_uring: settings.io_uring,
        direct_io: !settings.buffered,
        ..Options::default()
    }
}

impl Embedded {
    /// Opens what was prepared.
    pub(crate) fn open(settings: &Settings) -> Result<Embedded> {
        let database = Database::open(&settings.folder, options(settings)).wait()?;
        let table = database.table("peers.rows")?;
        Ok(Embedded { table, database: Some(Arc::new(database)) })
    }

    /// Does the work on the thread of the shard.
    pub(crate) fn run_within(settings: &Settings, plan: &Plan) -> Result<Measured> {
        let (plan, folder) = (*plan, &settings.folder);
        let database = Database::open(folder, options(settings)).wait()?;
        let table = database.table("peers.rows")?;
        let open = async move || Ok(Embedded { table, database: None });
        let measured = database.run_on(0, async move || Ok(plan.run_within(open).await)).wait()?;
        database.close().wait()?;
        measured
    }

    async fn answer<T>(&self, pending: Pending<T>) -> Result<T> {
        Ok(if self.database.is_some() { pending.wait()? } else { pending.await? })
    }
}

impl Peer for Embedded {
    async fn point(&mut self, clustering: i32, found: &mut Found) -> Result<()> {
        // A future of its own for the answer would be a part of what is measured.
        let pending = self.table.get(PARTITION, clustering);
        if let Some(row) = if self.database.is_some() { pending.wait()? } else { pending.await? } {
            take(row.values(), found);
        }
        Ok(())
    }

    async fn slice(&mut self, from: i32, rows: usize, way: Way, found: &mut Found) -> Result<()> {
        let (all, from) = (Slice::all().limit(rows), Bound::including(from));
        let slice = match way {
            Way::Forward => all.from(from),
            Way::Reverse => all.to(from).reverse(),
        };
        let each = |found: &mut Found, row: RowView<'_>| {
            take(row.values(), found);
            ControlFlow::Continue(())
        };
        *found = self.answer(self.table.fold(PARTITION, slice, *found, each)).await?.state;
        Ok(())
    }

    async fn scan(&mut self, rows: usize, found: &mut Found) -> Result<()> {
        let each = |found: &mut Found, row: RowView<'_>| {
            take(row.values(), found);
            ControlFlow::Continue(())
        };
        *found = self.answer(self.table.fold_scan(Scan::all().limit(rows), *found, each)).await?.state;
        Ok(())
    }

    fn counted(&self) -> Option<[u64; 2]> {
        let text = self.database.as_ref()?.metrics().wait().ok()?;
        let value = |name: &str| {
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
        };
        Some(["siltstone_read_requests_total{", "siltstone_read_bytes_total{"].map(value))
    }
}

/// Notes a row by the values of its columns.
fn take<'a>(values: impl Iterator<Item = Option<&'a [u8]>>, found: &mut Found) {
    let mut values = values.skip(1);
    let (clustering, value) = (values.next().flatten(), values.next().flatten());
    let clustering = clustering.and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    found.row(clustering.unwrap_or_default(), value.unwrap_or_default());
}

/// A clustering key.
fn clustering_of(number: i32) -> Clustering {
    [number.to_be_bytes().to_vec()].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Rows;

    #[test]
    fn rows_have_one_cell() {
        let Fragment::Row(row) = fragment(Rows::clustering(7), vec![1]) else { panic!("a row was expected") };
        assert_eq!((row.clustering, row.cells.len()), (clustering_of(14), 1));
    }
}
