//! `siltstone sstable verify`: whether SSTables are sound.

use std::path::Path;

use clap::Args;
use runtime::{Cache, Shard, ShardOptions};
use siltstone::paths::each_of_all_data_files;
use siltstone::verify::{refusal_json, report_json, report_text};
use siltstone::{Error, Result};
use sstable::OpenOptions;
use sstable::component::Descriptor;
use sstable::verify::{Report, verify};

use super::lines::Lines;
use super::progress::Progress;
use super::{Paths, complain, on_shard};

/// For the blocks of large partitions' indexes. Bytes.
const CACHE: usize = 8 << 20;

/// Check SSTables from end to end: every checksum, every order, and what each component says of the others.
///
/// Prints a line for each SSTable and one for each problem, with file and offset in bytes; for Data.db that
/// is the offset in the uncompressed data. Goes on behind a problem as far as that makes sense, and with the other
/// SSTables behind one that cannot be read: a missing path, a version or partitioner that is not read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable verify /backup/users-7b8c
  siltstone sstable verify --json /backup/users-7b8c/me-1-big-Data.db | jq .problems
  find /var/lib/cassandra/data -name '*-Data.db' -print0 | xargs -0 siltstone sstable verify

Exit codes: 0 if all are sound, 1 if one is not or cannot be read, 2 for wrong arguments.")]
pub(super) struct Verify {
    #[command(flatten)]
    paths: Paths,

    /// Print what is unusual but legal too. Without this, only how many such notes there are.
    #[arg(long)]
    notes: bool,

    /// Print a JSON object for each SSTable, one a line, with problems and notes; for a path or SSTable that
    /// cannot be read, with the error.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self) -> Result<()> {
        on_shard(ShardOptions::default(), async move |shard| self.verify_all(&shard).await)
    }

    async fn verify_all(&self, shard: &Shard) -> Result<()> {
        let options = OpenOptions::new(Cache::new(CACHE));
        self.paths.tell_passed_over(shard).await;
        let found = each_of_all_data_files(shard.disk(), &self.paths.paths).await;
        let mut lines = Lines::new();
        let (mut damaged, of) = (0, found.len());
        for (path, descriptor) in found {
            let (descriptor, verified) = match descriptor {
                Ok(descriptor) => {
                    let mut progress = Progress::always(&descriptor.to_string(), 0);
                    let tell = |done, total| progress.set_of(done, total);
                    let verified = verify(shard.disk(), &path, &options, tell).await;
                    (Some(descriptor), verified.map_err(Error::from))
                }
                Err(error) => (None, Err(error)),
            };
            let (is_sound, text) = self.told(&path, descriptor.as_ref(), verified);
            damaged += usize::from(!is_sound);
            lines.print(&text)?;
        }
        if damaged == 0 { Ok(()) } else { Err(Error::NotSound { damaged, of }) }
    }

    /// Whether something is sound, and what to print of it; what cannot be verified is told on stderr too.
    fn told(&self, path: &Path, descriptor: Option<&Descriptor>, verified: Result<Report>) -> (bool, String) {
        match verified {
            Ok(report) if self.json => (report.is_sound(), report_json(&report)),
            Ok(report) => (report.is_sound(), report_text(&report, self.notes)),
            Err(error) => {
                complain(&error);
                let why = error.in_words();
                let text = if self.json { refusal_json(path, descriptor, &why) } else { String::new() };
                (false, text)
            }
        }
    }
}
