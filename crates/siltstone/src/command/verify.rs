//! `siltstone sstable verify`: whether SSTables are sound.

use std::io::{self, Write as _};

use clap::Args;
use runtime::{Cache, Shard, ShardOptions};
use siltstone::verify::{report_json, report_text};
use siltstone::{Error, Result};
use sstable::OpenOptions;
use sstable::component::Descriptor;
use sstable::verify::verify;

use super::progress::Progress;
use super::{Paths, complain, on_shard};

/// For the blocks of large partitions' indexes. Bytes.
const CACHE: usize = 8 << 20;

/// Check SSTables from end to end: every checksum, every order, and what each component says of the others.
///
/// Prints a line for each SSTable and one for each problem, with file and offset in bytes; for Data.db that
/// is the offset in the uncompressed data. Goes on behind a problem as far as that makes sense.
///
/// Exits with 0 if all are sound, with 1 if one is not or cannot be read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable verify /backup/users-7b8c
  siltstone sstable verify --json /backup/users-7b8c/me-1-big-Data.db | jq .problems")]
pub(super) struct Verify {
    #[command(flatten)]
    paths: Paths,

    /// Print what is unusual but legal too.
    #[arg(long)]
    notes: bool,

    /// Print a JSON object for each SSTable, one a line, with problems and notes.
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) fn run(self) -> Result<()> {
        on_shard(ShardOptions::default(), async move |shard| self.verify_all(&shard).await)
    }

    async fn verify_all(&self, shard: &Shard) -> Result<()> {
        let options = OpenOptions::new(Cache::new(CACHE));
        let files = siltstone::paths::all_data_files(shard.disk(), &self.paths.paths)?;
        let mut out = io::stdout().lock();
        let mut damaged = 0;
        for file in &files {
            let name = Descriptor::parse(file)?.to_string();
            let mut progress = Progress::new(&name, 0);
            let verified =
                verify(shard.disk(), file, &options, |done, total| progress.set_of(done, total)).await;
            drop(progress);
            match verified {
                Ok(report) => {
                    damaged += usize::from(!report.is_sound());
                    let text =
                        if self.json { report_json(&report) } else { report_text(&report, self.notes) };
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
                Err(error) => {
                    damaged += 1;
                    complain(&error.into());
                }
            }
        }
        if damaged == 0 { Ok(()) } else { Err(Error::NotSound { damaged, of: files.len() }) }
    }
}
