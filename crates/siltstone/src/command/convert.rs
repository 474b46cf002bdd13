//! `siltstone sstable convert`: SSTables into another version of the format.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::convert::{Step, Target, TargetCompression, convert};
use siltstone::{Error, Result};
use sstable::component::Component;
use sstable::data::row::Family;
use sstable::parts::compression_info::{Compression, Compressor};
use sstable::writer::Written;
use sstable::{OpenOptions, SSTable, Version};

use super::on_shard;
use super::progress::Progress;

/// For the little of the indexes that scans read. Bytes.
const CACHE: usize = 4 << 20;

/// Write SSTables anew in another version of the format: Cassandra's for ScyllaDB, ScyllaDB's for Cassandra, or
/// one for an older server. Several are merged into one.
///
/// Everything stays as it is: timestamps, expiry, tombstones of every kind. Nothing is purged; of several SSTables, what
/// one shadows in another goes, as in a compaction. What the version cannot hold, such as a deletion after January 2038
/// before oa, is refused before anything is written. The new files appear together, or not at all.
///
/// Memory stays small whatever the size.
#[derive(Debug, Args)]
#[command(after_help = "\
Which version is read by whom:
  mc, md, me   Cassandra 3.0 to 5.0, ScyllaDB 3 and later: me is for both of today
  nb           Cassandra 4.0 to 5.0
  oa           Cassandra 5.0

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

/// What can be chosen of a new SSTable besides its version. Named as Cassandra's options are.
#[derive(Debug, Args)]
pub(super) struct Shape {
    /// For whom it is: within one version, the families differ in how they tell the deletions of materialized views.
    #[arg(long = "for", value_enum, default_value = "cassandra", value_name = "FAMILY")]
    family: FamilyArg,

    /// How the data is compressed. Without this as the first source, or in LZ4 where the version does not know that.
    #[arg(long, value_enum, value_name = "CLASS")]
    compression: Option<CompressionArg>,

    /// How much data a compressed chunk holds: a power of two. Default 64, from na on 16.
    #[arg(long, value_name = "KIB", requires = "compression")]
    chunk_length_in_kb: Option<u32>,

    /// How hard Zstandard tries, 1 to 22. Default 3.
    #[arg(long, value_name = "LEVEL", requires = "compression", allow_hyphen_values = true)]
    compression_level: Option<i32>,

    /// After how much of a partition its index has a new block.
    #[arg(long, value_name = "KIB", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    column_index_size_in_kb: u32,

    /// The chance that the bloom filter lets a key pass that is not there; 1 for no filter. Default that of the first
    /// source.
    #[arg(long, value_name = "CHANCE")]
    bloom_filter_fp_chance: Option<f64>,

    /// Every how many partitions the summary of the index has one. Default that of the first source.
    #[arg(long, value_name = "PARTITIONS", value_parser = clap::value_parser!(u32).range(1..))]
    min_index_interval: Option<u32>,

    /// Write no fences: a file beside the others by which siltstone finds rows with fewer requests. Other readers pass
    /// over it.
    #[arg(long)]
    no_fences: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FamilyArg {
    /// Apache Cassandra, and ScyllaDB where there are no such deletions.
    Cassandra,
    /// ScyllaDB.
    Scylla,
}

#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
enum CompressionArg {
    /// Not at all.
    None,
    /// LZ4Compressor.
    #[value(alias = "LZ4Compressor")]
    Lz4,
    /// SnappyCompressor.
    #[value(alias = "SnappyCompressor")]
    Snappy,
    /// DeflateCompressor.
    #[value(alias = "DeflateCompressor")]
    Deflate,
    /// ZstdCompressor: from na on, and ScyllaDB.
    #[value(alias = "ZstdCompressor")]
    Zstd,
}

impl Convert {
    pub(super) fn run(self) -> Result<()> {
        let target = self.shape.target(self.to)?;
        on_shard(ShardOptions::default(), async move |shard| {
            let sources = open(&shard, &self.sources).await?;
            let total = sources.iter().map(|table| table.data().file.len()).sum();
            let mut progress = Progress::always("converting", total);
            let mut tell = |step: Step, done: u64| match step {
                Step::Checking => progress.set_named("checking", done),
                Step::Writing => progress.set_named("writing", done),
            };
            let written = convert(shard.disk(), sources, &target, &self.dest, &mut tell).await?;
            drop(progress);
            println!("{}", told(&written));
            Ok(())
        })
    }
}

impl Shape {
    /// The target in that version.
    fn target(&self, version: Version) -> Result<Target> {
        Ok(Target {
            family: match self.family {
                FamilyArg::Cassandra => Family::Cassandra,
                FamilyArg::Scylla => Family::Scylla,
            },
            compression: self.compression(version)?,
            column_index_size: self.column_index_size_in_kb << 10,
            bloom_filter_fp_chance: self.bloom_filter_fp_chance,
            min_index_interval: self.min_index_interval,
            fences: !self.no_fences,
            ..Target::new(version)
        })
    }

    fn compression(&self, version: Version) -> Result<TargetCompression> {
        let compressor = match self.compression {
            None => return Ok(TargetCompression::AsSource),
            Some(CompressionArg::None) => return Ok(TargetCompression::None),
            Some(CompressionArg::Lz4) => Compressor::Lz4,
            Some(CompressionArg::Snappy) => Compressor::Snappy,
            Some(CompressionArg::Deflate) => Compressor::Deflate,
            Some(CompressionArg::Zstd) => Compressor::Zstd,
        };
        let mut compression = Compression::new(compressor, version);
        if let Some(level) = self.compression_level {
            if compressor != Compressor::Zstd {
                return Err(Error::Usage("--compression-level is for zstd only".to_owned()));
            }
            compression = compression.with_options(vec![("compression_level".to_owned(), level.to_string())]);
        }
        if let Some(kib) = self.chunk_length_in_kb {
            let len = kib.saturating_mul(1 << 10);
            let refused = |error| Error::Usage(format!("--chunk-length-in-kb {kib}: {error}"));
            compression = compression.with_chunk_len(len).map_err(refused)?;
        }
        Ok(TargetCompression::Some(compression))
    }
}

async fn open(shard: &Shard, sources: &[PathBuf]) -> Result<Vec<std::rc::Rc<SSTable>>> {
    let options = OpenOptions::new(Cache::new(CACHE));
    let mut tables = Vec::new();
    for file in siltstone::paths::all_data_files(shard.disk(), sources)? {
        tables.push(SSTable::open(shard.disk(), &file, &options).await?);
    }
    Ok(tables)
}

/// A line about a new SSTable.
fn told(written: &Written) -> String {
    let path = written.descriptor.path_of(&Component::Data);
    let plural = if written.partitions == 1 { "" } else { "s" };
    format!(
        "{}: {} partition{plural}, {} bytes of data, {} on disk",
        path.display(),
        written.partitions,
        written.data_len,
        written.data_file_len
    )
}

fn version(text: &str) -> std::result::Result<Version, String> {
    let names = || Version::ALL.map(Version::name).join(", ");
    Version::parse(text).ok_or_else(|| format!("a version is one of {}", names()))
}
