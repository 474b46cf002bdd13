//! `siltstone sstable fences`: Fences.db and RowFilter.db for SSTables that have none.

use std::path::Path;

use clap::Args;
use runtime::{Cache, Shard, ShardOptions};
use siltstone::{Error, Result};
use sstable::component::Component;
use sstable::parts::fences::write_fences;
use sstable::parts::row_filter::write_row_filter;
use sstable::parts::usage::Usage;
use sstable::{OpenOptions, SSTable};

use super::lines::Lines;
use super::progress::Progress;
use super::{Paths, on_shard};

/// For the pages of the fences that are there. Bytes.
const CACHE: usize = 2 << 20;

/// Write Fences.db beside SSTables: with it, a read of few rows needs fewer requests.
///
/// It tells where small partitions begin in Data.db, and of large ones where in their index to look: then a cold read of
/// one row is one request to Data.db, of a large partition one to Index.db before. Where something is deleted or expires, it also tells that no
/// partition is deleted as a whole, if that is so: then an SSTable is not asked for rows that lie elsewhere. Index.db is read once, and
/// for that, if there are up to a thousand partitions, the first bytes of small ones. No other file is changed, and none is
/// needed to read an SSTable: what Cassandra and ScyllaDB do not know they pass over. Fences are bound to their
/// SSTable by its digest, and are not used for another.
///
/// Nothing is written where fences would not help: where there is next to no data and no partition with a large index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable fences /backup/events-1f
  siltstone sstable fences --rows /backup/events-1f
  siltstone sstable fences --force /backup/events-1f/oa-7-big-Data.db

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(super) struct Fences {
    #[command(flatten)]
    paths: Paths,

    /// Write them anew where there are fences already; those that would not help are removed.
    #[arg(long)]
    force: bool,

    /// Write RowFilter.db as well: which rows large partitions have. With it, a row that is not there costs no request to the data.
    /// The data of large partitions is read for it. Nothing is written where none is large, or where they are full of range tombstones.
    #[arg(long)]
    rows: bool,
}

impl Fences {
    pub(super) fn run(self) -> Result<()> {
        on_shard(ShardOptions::default(), async move |shard| self.write_all(&shard).await)
    }

    async fn write_all(&self, shard: &Shard) -> Result<()> {
        let options = OpenOptions::new(Cache::new(CACHE));
        let mut lines = Lines::new();
        for file in self.paths.files(shard).await? {
            let table = SSTable::open(shard.disk(), &file, &options).await?;
            let path = table.descriptor().path_of(&Component::Fences);
            let none = "not needed";
            let written = self.write((&path, none), &table, table.fences_state(), async |progress| {
                write_fences(shard.disk(), &table, |done| progress.set(done)).await
            });
            lines.say(&format!("{}: {}", path.display(), written.await?))?;
            if !self.rows {
                continue;
            }
            // Rows are not looked for without fences, which may be new.
            let table = SSTable::open(shard.disk(), &file, &options).await?;
            let path = table.descriptor().path_of(&Component::RowFilter);
            let none = "none: there is no large partition, or only such that are full of range tombstones, or values of the clustering key may have several forms";
            let written =
                self.write((&path, none), &table, table.row_filter_state().await, async |progress| {
                    write_row_filter(shard.disk(), &table, |done| progress.set(done)).await
                });
            lines.say(&format!("{}: {}", path.display(), written.await?))?;
        }
        Ok(())
    }

    /// Writes a component of an SSTable, of which that much is known; what became of it, and why if there is to be none.
    async fn write(
        &self,
        (path, none): (&Path, &str),
        table: &SSTable,
        state: Usage,
        write: impl AsyncFnOnce(&mut Progress) -> sstable::Result<Option<u64>>,
    ) -> Result<String> {
        match state {
            state @ Usage::InUse { .. } if !self.force => return Ok(format!("{state} already")),
            Usage::Ignored { why } if !self.force => {
                let what = format!("there is one, which is ignored: {why}; --force replaces it");
                return Err(Error::file(path, what));
            }
            _ => {}
        }
        let mut progress = Progress::always(&table.descriptor().to_string(), table.index_len());
        Ok(match write(&mut progress).await? {
            Some(bytes) => format!("{} KiB", bytes.div_ceil(1024)),
            None => none.to_owned(),
        })
    }
}
