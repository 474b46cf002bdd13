//! `siltstone sstable split`: SSTables into several, cut between partitions.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;
use runtime::ShardOptions;
use siltstone::convert::{Step, family_of};
use siltstone::split::{Cut, Rest, TokenRange, split};
use siltstone::{Error, Result};
use sstable::Version;
use sstable::data::row::Family;

use super::claim::Claim;
use super::lines::Lines;
use super::progress::Progress;
use super::shape::{Shape, told, version};
use super::{note, on_shard, open_for_scans, positive};

/// Cut the SSTables of a table, merged where there are several, into several new ones: by size, by token, or into parts.
///
/// The new SSTables ascend by token as their numbers do; no two have a partition in common, and no partition is cut. All rows
/// stay as they are, as with convert. Without further options they are written as the first source is, but for the size of index
/// blocks, which is 64 KiB unless --column-index-size-in-kb says otherwise. They appear one after the other once the last one is written: if one cannot be, or the process is ended before, there is none of them.
///
/// Memory stays small whatever the size. With --by-token only the part of the sources that is in a range is read.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  siltstone sstable split --by-size 10GiB /backup/users-7b8c /new/users
  siltstone sstable split --by-token ..-3074457345618258603,-3074457345618258603..3074457345618258602,3074457345618258602.. /backup/users-7b8c /new
  siltstone sstable split --by-token 0..1000 --leave-out-rest me-1-big-Data.db /new
  siltstone sstable split --parts 8 --to nb --compression zstd /backup/users-7b8c /new

Exit codes: 0 if all went well, 1 for bad data, I/O errors and what the version cannot hold, 2 for wrong arguments.")]
pub(super) struct Split {
    #[command(flatten)]
    cut: CutArgs,

    /// With --by-token: partitions that are in none of the ranges are left out. Without this they are an error.
    #[arg(long, conflicts_with_all = ["by_size", "parts"])]
    leave_out_rest: bool,

    /// A file of an SSTable, such as its Data.db, or a folder: the SSTables in it. All are of one table.
    #[arg(required = true, value_name = "SRC")]
    sources: Vec<PathBuf>,

    /// The folder of the new SSTables; made where it is missing.
    #[arg(value_name = "DEST")]
    dest: PathBuf,

    /// The version of the new SSTables. Default that of the first source.
    #[arg(long, value_name = "VERSION", value_parser = version)]
    to: Option<Version>,

    #[command(flatten)]
    shape: Shape,
}

/// Where to cut.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct CutArgs {
    /// Begin a new SSTable once the Data.db of one has come to so much on disk: bytes, or a number with KiB, MiB or GiB.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    by_size: Option<NonZeroU64>,

    /// Make an SSTable of each of these ranges of tokens, from above FROM up to TO. An end that is left out is that of
    /// the ring. A range without partitions gives none.
    #[arg(long, value_name = "FROM..TO", value_delimiter = ',', allow_hyphen_values = true)]
    by_token: Vec<TokenRange>,

    /// Make so many SSTables, each of about as much data; fewer where there are not as many partitions.
    #[arg(long, value_name = "N", value_parser = positive)]
    parts: Option<NonZeroU64>,
}

impl Split {
    pub(super) fn run(self) -> Result<()> {
        let cut = self.cut();
        // Wrong options are told before anything is read.
        self.shape.target(self.to.unwrap_or(Version::Oa), Family::Cassandra)?;
        on_shard(ShardOptions::default(), async move |shard| {
            let sources = open_for_scans(&shard, &self.sources).await?;
            let Some(first) = sources.first() else {
                return Err(Error::Usage("there is no SSTable to split".to_owned()));
            };
            let to = self.to.unwrap_or(first.version());
            let family = if to.may_be_scyllas() { family_of(shard.disk(), first) } else { Family::Cassandra };
            let target = self.shape.target(to, family)?;
            let _claim = Claim::of(&self.dest)?;
            let total = sources.iter().map(|table| table.data().file.len()).sum();
            let mut progress = Progress::always("splitting", total);
            let mut tell = |step: Step, done: u64| match step {
                Step::Checking => progress.set_named("checking", done),
                Step::Writing => progress.set_named("writing", done),
            };
            let split = split(shard.disk(), sources, &cut, &target, &self.dest, &mut tell).await?;
            drop(progress);
            let mut lines = Lines::new();
            split.written.iter().try_for_each(|written| lines.say(&told(written, None)))?;
            split.empty.iter().for_each(|range| note(&format!("no partition has a token in {range}")));
            Ok(())
        })
    }

    fn cut(&self) -> Cut {
        let rest = if self.leave_out_rest { Rest::LeftOut } else { Rest::Refused };
        match (self.cut.by_size, self.cut.parts) {
            (Some(size), _) => Cut::Size(size),
            (_, Some(count)) => Cut::Parts(count),
            _ => Cut::Tokens { ranges: self.cut.by_token.clone(), rest },
        }
    }
}

/// A number of bytes.
fn size(text: &str) -> std::result::Result<NonZeroU64, String> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("", 1)];
    let read = |(unit, bytes): (&str, u64)| {
        text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(bytes)
    };
    let size = units.into_iter().find_map(read).and_then(NonZeroU64::new);
    size.ok_or_else(|| "a number of bytes was expected, such as 1048576 or 1MiB".to_owned())
}
