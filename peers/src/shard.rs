//! Siltstone's storage on one thread: what a read takes without the hop to its shard, and before rows become pages.

use std::rc::Rc;

use model::{
    Bytes, CellValue, Column, CqlType, Direction, Fragment, FragmentReader, Next, PartitionKey, Position,
    Schema, Slice,
};
use runtime::{Cache, Shard, ShardOptions};
use sstable::Version;
use storage::commit_log::TableId;
use storage::row_cache::Known;
use storage::{Context, Definition, Generations, ReadRequest, Table};

use crate::Settings;
use crate::rows::{Found, PARTITION};
use crate::siltstone::{clustering_of, table_folder};
use crate::work::{Measured, Peer, Plan, Result, Way};

/// A table on a shard.
struct OnShard {
    shard: Shard,
    table: Table,
    key: PartitionKey,
}

/// Does the work on a shard.
pub(crate) fn run(settings: &Settings, plan: &Plan) -> Result<Measured> {
    let options = ShardOptions {
        io_uring: settings.io_uring,
        direct_io: !settings.buffered,
        ..ShardOptions::default()
    };
    runtime::run(options, async |shard| plan.run(async || OnShard::open(settings, shard).await).await)?
}

impl OnShard {
    async fn open(settings: &Settings, shard: Shard) -> Result<OnShard> {
        let cache = Cache::new(settings.cache_bytes());
        let context = Context::new(shard.disk().clone(), shard.clock().clone(), cache);
        let column = Column { name: b"v"[..].into(), data_type: CqlType::Blob };
        let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![column]));
        let definition = Definition::new(TableId([0; 16]), &schema, Version::Oa);
        let folder = table_folder(settings)?;
        let table = Table::open(&context, &folder, definition, &Generations::default()).await?;
        let key = PartitionKey::new(Bytes::from(PARTITION.to_be_bytes().to_vec()));
        Ok(OnShard { shard, table, key })
    }

    async fn read(&self, slice: Slice, rows: usize, way: Way, found: &mut Found) -> Result<()> {
        let request = ReadRequest {
            direction: if way == Way::Reverse { Direction::Reverse } else { Direction::Forward },
            static_row: false,
            limit: Some(rows as u64),
            ..ReadRequest::new(self.key.clone(), slice)
        };
        take(&mut self.table.read(&request).await?, rows, found).await
    }
}

impl Peer for OnShard {
    async fn point(&mut self, clustering: i32, found: &mut Found) -> Result<()> {
        match self.table.known_row(self.key.view(), &[&clustering.to_be_bytes()]) {
            Known::Absent => Ok(()),
            Known::Row(row) => {
                let mut place = Fragment::default();
                row.flat().decode(&mut place)?;
                note(&place, found);
                Ok(())
            }
            Known::Unknown => {
                self.read(Slice::of_prefix(clustering_of(clustering)), 1, Way::Forward, found).await
            }
        }
    }

    async fn slice(&mut self, from: i32, rows: usize, way: Way, found: &mut Found) -> Result<()> {
        let from = clustering_of(from);
        let slice = match way {
            Way::Forward => Slice { start: Position::before(from), end: Position::end() },
            Way::Reverse => Slice { start: Position::start(), end: Position::after(from) },
        };
        self.read(slice, rows, way, found).await
    }

    async fn scan(&mut self, rows: usize, found: &mut Found) -> Result<()> {
        take(&mut self.table.scan(None, i64::MAX).await?, rows, found).await
    }

    fn counted(&self) -> Option<[u64; 2]> {
        let total = self.shard.disk().stats().total();
        Some([total.requests, total.bytes])
    }
}

async fn take<R: FragmentReader<Error = storage::Error>>(
    reader: &mut R,
    rows: usize,
    found: &mut Found,
) -> Result<()> {
    let (mut left, mut fragment) = (rows, Fragment::default());
    while left > 0 {
        match reader.pop(&mut fragment)? {
            Next::Fragment => {}
            Next::Fill => {
                reader.fill().await?;
                continue;
            }
            Next::End => break,
        }
        left -= usize::from(note(&fragment, found));
    }
    Ok(())
}

/// Notes a fragment, if it is a row; whether it is.
fn note(fragment: &Fragment, found: &mut Found) -> bool {
    let Fragment::Row(row) = fragment else { return false };
    let clustering = row.clustering.values.first().and_then(|value| value.as_ref()?[..].try_into().ok());
    let value = match row.cells.first().map(|cell| &cell.value) {
        Some(CellValue::Value(value)) => &value[..],
        _ => &[],
    };
    found.row(clustering.map(i32::from_be_bytes).unwrap_or_default(), value);
    true
}
