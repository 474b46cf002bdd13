//! `siltstone sstable convert`: SSTables into another version of the format.

use std::path::PathBuf;

use clap::Args;
use runtime::ShardOptions;
use siltstone::Result;
use siltstone::convert::{Step, convert};
use sstable::Version;
use sstable::data::row::Family;

use super::claim::Claim;
use super::lines::say;
use super::progress::Progress;
use super::shape::{Shape, told, version};
use super::{on_shard, open_for_scans};

/// Write SSTables anew in another version of the format: Cassandra's for ScyllaDB, ScyllaDB's for Cassandra, or
/// one for an older server. Several are merged into one.
///
/// All rows stay as they are, with timestamps, expiry and tombstones of every kind. Nothing is purged; of several SSTables, what
/// one shadows in another goes, as in a compaction. Not kept is that data was repaired, its level, and the size of index blocks. What the version cannot hold, such as a deletion after January 2038
/// before oa, is refused before anything is written. The new files appear together, or not at all; of several writers to one
/// folder one waits for the other.
///
/// Memory stays small whatever the size.
#[derive(Debug, Args)]
#[command(after_help = "\
Which version is read by whom:
  mc           Cassandra 3.0 to 5.0, ScyllaDB 3 and later
  md           Cassandra 3.11.8 to 5.0, ScyllaDB 4.3 and later
  me           Cassandra 3.11.11 to 5.0, ScyllaDB 5.1 and later: for both of today
  na           Cassandra 4.0 to 5.0; its own are those of its betas
  nb           Cassandra 4.0 to 5.0
  oa           Cassandra 5.0 with storage_compatibility_mode NONE

Examples:
  siltstone sstable convert --to me --for scylla /backup/users-7b8c /new/users
  siltstone sstable convert --to nb --compression zstd --compression-level 9 me-1-big-Data.db /new
  siltstone sstable convert --to oa --compression none --column-index-size-in-kb 4 /backup/users-7b8c /new

Exit codes: 0 if all went well, 1 for bad data, I/O errors and what the version cannot hold, 2 for wrong arguments.")]
pub(super) struct Convert {
    /// A file of an SSTable, such as its Data.db, or a folder: the SSTables in it. All are of one table.
    #[arg(required = true, value_name = "SRC")]
    sources: Vec<PathBuf>,

    /// The folder of the new SSTable; made where it is missing.
    #[arg(value_name = "DEST")]
    dest: PathBuf,

    /// The version of the new SSTable.
    #[arg(long, value_name = "VERSION", value_parser = version)]
    to: Version,

    #[command(flatten)]
    shape: Shape,
}

impl Convert {
    pub(super) fn run(self) -> Result<()> {
        let target = self.shape.target(self.to, Family::Cassandra)?;
        on_shard(ShardOptions::default(), async move |shard| {
            let sources = open_for_scans(&shard, &self.sources).await?;
            let _claim = Claim::of(&self.dest)?;
            let total = sources.iter().map(|table| table.data().file.len()).sum();
            let mut progress = Progress::always("converting", total);
            let mut tell = |step: Step, done: u64| match step {
                Step::Checking => progress.set_named("checking", done),
                Step::Writing => progress.set_named("writing", done),
            };
            let written = convert(shard.disk(), sources, &target, &self.dest, &mut tell).await?;
            drop(progress);
            say(&told(&written, None))
        })
    }
}
