//! `siltstone sstable info`: what is known of an SSTable as a whole.

use std::io::{self, Write as _};

use clap::Args;
use runtime::{Cache, Shard, ShardOptions};
use siltstone::json::{JsonWriter, Layout};
use siltstone::{Result, facts, info};
use sstable::{OpenOptions, SSTable};

use super::{Paths, on_shard};

/// Print what an SSTable tells about itself: columns, sizes, times, histograms, compression, filter, summary.
///
/// Times are UTC, sizes are bytes. No row is read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable info /backup/users-7b8c/me-1-big-Data.db
  siltstone sstable info --json /backup/users-7b8c | jq '.contents.rows'

Exit codes: 0 if all went well, 1 for bad data and I/O errors, 2 for wrong arguments.")]
pub(super) struct Info {
    #[command(flatten)]
    paths: Paths,

    /// Print a JSON object for each SSTable, with everything that the text has, and more buckets.
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(super) fn run(self) -> Result<()> {
        on_shard(ShardOptions::default(), async move |shard| self.print(&shard).await)
    }

    async fn print(&self, shard: &Shard) -> Result<()> {
        let options = OpenOptions::new(Cache::new(0));
        let mut out = io::stdout().lock();
        for file in self.paths.files(shard).await? {
            let table = SSTable::open(shard.disk(), &file, &options).await?;
            let facts = info::facts(shard.disk(), &table).await?;
            if self.json {
                let mut json = JsonWriter::new(Layout::Pretty);
                json.begin_object();
                facts::write_json(&facts, &mut json);
                json.end_object();
                json.end_line();
                json.drain(&mut out)?;
            } else {
                out.write_all(info::to_text(&facts).as_bytes())?;
            }
        }
        Ok(out.flush()?)
    }
}
