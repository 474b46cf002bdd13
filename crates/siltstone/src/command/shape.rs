//! What can be chosen of new SSTables: the options that all commands have in common which write some.

use clap::{Args, ValueEnum};
use siltstone::convert::{Target, TargetCompression};
use siltstone::{Error, Result};
use sstable::Version;
use sstable::component::Component;
use sstable::data::row::Family;
use sstable::parts::compression_info::{Compression, Compressor};
use sstable::writer::Written;

/// What can be chosen of a new SSTable besides its version. Named as Cassandra's options are.
#[derive(Debug, Args)]
pub(super) struct Shape {
    /// For whom it is: within one version, the families differ in how they tell the deletions of materialized views.
    /// Default cassandra; for split that of the first source.
    #[arg(long = "for", value_enum, value_name = "FAMILY")]
    family: Option<FamilyArg>,

    /// How the data is compressed. Default as the first source or as the schema has it, or in LZ4 where the version does
    /// not know that.
    #[arg(long, value_enum, value_name = "CLASS")]
    compression: Option<CompressionArg>,

    /// How much data a compressed chunk holds: a power of two. Default 64, from na on 16. It goes with --compression.
    #[arg(long, value_name = "KIB", requires = "compression")]
    chunk_length_in_kb: Option<u32>,

    /// How hard Zstandard tries, 1 to 22. Default 3. It goes with --compression zstd.
    #[arg(long, value_name = "LEVEL", requires = "compression", value_parser = clap::value_parser!(i32).range(1..=22))]
    compression_level: Option<i32>,

    /// After how much of a partition its index has a new block.
    #[arg(long, value_name = "KIB", default_value = "64", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    column_index_size_in_kb: u32,

    /// The chance that the bloom filter lets a key pass that is not there; 1 for no filter. Default that of the first
    /// source or of the schema.
    #[arg(long, value_name = "CHANCE", value_parser = chance)]
    bloom_filter_fp_chance: Option<f64>,

    /// Every how many partitions the summary of the index has one. Default that of the first source or of the
    /// schema.
    #[arg(long, value_name = "PARTITIONS", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    min_index_interval: Option<u32>,

    /// Write no fences: a file beside the others by which siltstone finds rows with fewer requests. Other readers pass
    /// over it.
    #[arg(long)]
    no_fences: bool,

    /// Write no pages of the bloom filter: a file beside Filter.db, of which siltstone reads only what it asks for. Other
    /// readers pass over it.
    #[arg(long)]
    no_bloom_pages: bool,

    /// Do not write which rows large partitions have: a file beside the others, by which siltstone reads no data for a row
    /// that is not there. Other readers pass over it. It is only written with index blocks of 8 KiB or less; `sstable fences --rows`
    /// makes one for others.
    #[arg(long)]
    no_row_filter: bool,
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

/// What a share of reads may be.
fn chance(text: &str) -> std::result::Result<f64, String> {
    let chance = text.parse().ok().filter(|chance| *chance > 0.0 && *chance <= 1.0);
    chance.ok_or_else(|| "a number above 0, and 1 at the most, was expected".to_owned())
}

impl Shape {
    /// The target in that version, for that family where none is chosen.
    pub(super) fn target(&self, version: Version, family: Family) -> Result<Target> {
        Ok(Target {
            family: match self.family {
                None => family,
                Some(FamilyArg::Cassandra) => Family::Cassandra,
                Some(FamilyArg::Scylla) => Family::Scylla,
            },
            compression: self.compression(version)?,
            column_index_size: self.column_index_size_in_kb << 10,
            bloom_filter_fp_chance: self.bloom_filter_fp_chance,
            min_index_interval: self.min_index_interval,
            fences: !self.no_fences,
            bloom_pages: !self.no_bloom_pages,
            row_filter: !self.no_row_filter,
            ..Target::new(version)
        })
    }

    fn compression(&self, version: Version) -> Result<TargetCompression> {
        let has_more = self.compression_level.is_some() || self.chunk_length_in_kb.is_some();
        if matches!(self.compression, Some(CompressionArg::None)) && has_more {
            let what = "--compression none has neither a --compression-level nor a --chunk-length-in-kb";
            return Err(Error::Usage(what.to_owned()));
        }
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

/// A line about a new SSTable. The number of its rows is told where it is known.
pub(super) fn told(written: &Written, rows: Option<u64>) -> String {
    let path = written.descriptor.path_of(&Component::Data);
    let count = |count: u64, of: &str| format!("{count} {of}{}", if count == 1 { "" } else { "s" });
    let rows = rows.map(|rows| count(rows, "row") + ", ").unwrap_or_default();
    format!(
        "{}: {}, {rows}{} bytes of data, {} on disk",
        path.display(),
        count(written.partitions, "partition"),
        written.data_len,
        written.data_file_len
    )
}

/// The version of that name.
pub(super) fn version(text: &str) -> std::result::Result<Version, String> {
    let names = || Version::ALL.map(Version::name).join(", ");
    Version::parse(text).ok_or_else(|| format!("a version is one of {}", names()))
}
