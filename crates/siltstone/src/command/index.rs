//! `siltstone sstable index`: where things are.

use std::io::{self, BufWriter, Write as _};

use clap::Args;
use model::Bytes;
use runtime::{Cache, Shard, ShardOptions};
use siltstone::index_list::IndexList;
use siltstone::{Result, keys};
use sstable::OpenOptions;

use super::{Paths, note, on_shard};

/// For the pages of the index. Bytes.
const CACHE: usize = 16 << 20;

/// Print the index of an SSTable: its partitions, or the index blocks of one partition.
///
/// Positions and sizes are bytes of the uncompressed data; the offset of a block counts from the start of its
/// partition. Only partitions larger than the writer's column index size have blocks. Partitions of a secondary
/// index's table have no token. Where there are several SSTables, a line names each.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable index /backup/events-1f/oa-7-big-Data.db | sort -n -k 3 | tail   # the largest partitions
  siltstone sstable index /backup/events-1f/oa-7-big-Data.db --key '[\"42\"]'

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(super) struct Index {
    #[command(flatten)]
    paths: Paths,

    /// Only the partition of this key, with its index blocks: a JSON array of the text of each of its columns.
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    key: Option<String>,

    /// Print a JSON object for each partition or block, one a line, which names its SSTable.
    #[arg(long)]
    json: bool,
}

impl Index {
    pub(super) fn run(self) -> Result<()> {
        on_shard(ShardOptions::default(), async move |shard| self.print(&shard).await)
    }

    async fn print(&self, shard: &Shard) -> Result<()> {
        let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
        let tables = self.paths.open(shard, &OpenOptions::new(Cache::new(CACHE))).await?;
        for table in &tables {
            let mut list = IndexList::new(table, self.json);
            if tables.len() > 1 {
                list.name_sstable();
            }
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
