//! `siltstone sstable index`: where things are.

use std::io::{self, BufWriter, Write as _};

use clap::Args;
use model::Bytes;
use runtime::{Cache, Shard, ShardOptions};
use siltstone::index_list::IndexList;
use siltstone::{Result, keys};

use super::{Paths, note, on_shard};

/// For the pages of the index. Bytes.
const CACHE: usize = 16 << 20;

/// Print the index of an SSTable: its partitions, or the index blocks of one partition.
///
/// Positions and sizes are bytes of the uncompressed data; the offset of a block counts from the start of its
/// partition. Only partitions larger than the writer's column index size have blocks.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable index /backup/events-1f/oa-7-big-Data.db | sort -n -k 3 | tail   # the largest partitions
  siltstone sstable index /backup/events-1f/oa-7-big-Data.db --key '[\"42\"]'")]
pub(super) struct Index {
    #[command(flatten)]
    paths: Paths,

    /// Only the partition of this key, with its index blocks: a JSON array of the text of each of its columns.
    #[arg(long, value_name = "JSON")]
    key: Option<String>,

    /// Print a JSON object for each partition or block, one a line.
    #[arg(long)]
    json: bool,
}

impl Index {
    pub(super) fn run(self) -> Result<()> {
        on_shard(ShardOptions::default(), async move |shard| self.print(&shard).await)
    }

    async fn print(&self, shard: &Shard) -> Result<()> {
        let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
        for table in self.paths.open(shard, &Cache::new(CACHE)).await? {
            let mut list = IndexList::new(&table, self.json);
            let Some(json) = &self.key else {
                list.partitions(&mut out).await?;
                continue;
            };
            let key = table.key(Bytes::from(keys::partition_key(table.schema(), json)?));
            if !list.blocks(&key, &mut out).await? {
                let path = table.data().file.path().display();
                note(&format!("{path}: no partition has the key {json}"));
            }
        }
        Ok(out.flush()?)
    }
}
