//! SSTables into another version of the format, several merged into one.
//!
//! ```text
//! sources ──scan──► merge ──► writer ──► one new SSTable
//! ```
//!
//! All rows stay as they are, with timestamps, expiry and tombstones; what is known of files, as their level and whether they were repaired, does
//! not. Of several sources, what one of them shadows in another
//! goes, as in a compaction; nothing is purged. What the target cannot hold is refused before anything is written.

use std::path::Path;
use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{Fragment, FragmentReader};
use runtime::Disk;
use sstable::component::Component;
use sstable::data::row::Family;
use sstable::parts::compression_info::{Compression, Compressor};
use sstable::parts::scylla::SCYLLA;
use sstable::parts::statistics::{EncodingStats, Partitioner};
use sstable::writer::{Limits, Written, remove_leftovers};
use sstable::{SSTable, SSTableWriter, Version, WriteOptions};

use crate::error::{Error, Result};
use crate::paths::next_descriptor;
use crate::read::Tables;

/// Seconds since 1970 that versions with deletion times of 32 bits and a sign do not reach.
const LEGACY_END: i64 = i32::MAX as i64;

/// What to write, where it differs from the sources, or from what is known of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct Target {
    /// The version of the format.
    pub version: Version,
    /// For whom it is written. Default Cassandra.
    pub family: Family,
    /// How the data is compressed. Default as the first source, or as the table has it.
    pub compression: TargetCompression,
    /// After how many bytes of a partition its index has a new block. Default 64 KiB.
    pub column_index_size: u32,
    /// The chance that the filter lets a key pass that is not there. Default that of the first source or
    /// the table.
    pub bloom_filter_fp_chance: Option<f64>,
    /// Every how many partitions the summary has one. Default that of the first source or the table.
    pub min_index_interval: Option<u32>,
    /// Whether to write fences. Default yes.
    pub fences: bool,
    /// Whether to write the filter in pages too, where it is larger than one. Default yes.
    pub bloom_pages: bool,
    /// Whether to write which rows large partitions have, where there are fences, and blocks of no more than 8 KiB. Default yes.
    pub row_filter: bool,
}

/// How the data of the target is compressed.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum TargetCompression {
    /// As that of the first source, or as the table has it.
    #[default]
    AsSource,
    /// Not at all.
    None,
    /// So.
    Some(Compression),
}

impl Target {
    /// All as in the sources, in this version.
    pub fn new(version: Version) -> Target {
        Target {
            version,
            family: Family::Cassandra,
            compression: TargetCompression::AsSource,
            column_index_size: 64 << 10,
            bloom_filter_fp_chance: None,
            min_index_interval: None,
            fences: true,
            bloom_pages: true,
            row_filter: true,
        }
    }

    /// How it is written, as far as no source and no table says: without them, as a new SSTable of this version is.
    pub(crate) fn write_options(&self) -> WriteOptions {
        WriteOptions {
            column_index_size: self.column_index_size,
            fences: self.fences,
            bloom_pages: self.bloom_pages,
            row_filter: self.row_filter,
            family: self.family,
            ..WriteOptions::new(self.version)
        }
    }
}

/// How far a conversion is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Looking for what the target cannot hold.
    Checking,
    /// Writing.
    Writing,
}

/// Writes the SSTables of one table as a new one into a folder, which is made where it is missing. Leftovers of
/// writers that were cut off there are removed first: no other writer may be at work in the folder.
///
/// `progress` is told now and then what is done and how many bytes of the sources' data it has come to, about.
///
/// # Errors
/// Sources that are not of one table; what the target cannot hold; what cannot be read or written. Nothing is left
/// behind then.
pub async fn convert(
    disk: &Disk,
    sources: Vec<Rc<SSTable>>,
    target: &Target,
    dir: &Path,
    progress: &mut dyn FnMut(Step, u64),
) -> Result<Written> {
    let tables = Tables::new(sources)?;
    check(disk, &tables, target, dir, progress).await?;
    prepare(disk, dir).await?;
    let descriptor = next_descriptor(disk, dir, target.version).await?;
    let options = options(&tables, target).await?;
    let writer = SSTableWriter::create(disk, descriptor, tables.schema(), encoding(&tables), options).await?;
    let mut rows = tables.scan();
    write_all(writer, &mut rows, &mut |done| progress(Step::Writing, done)).await
}

/// Writes all that a reader gives and seals it. Nothing is left where that fails.
pub(crate) async fn write_all<R: FragmentReader<Error = sstable::Error>>(
    mut writer: SSTableWriter,
    reader: &mut R,
    progress: &mut dyn FnMut(u64),
) -> Result<Written> {
    match writer.push_all(reader, progress).await {
        Ok(()) => Ok(writer.seal().await?),
        Err(error) => {
            // The first error is the one to tell.
            drop(writer.abandon().await);
            Err(error.into())
        }
    }
}

/// Makes the folder of new SSTables where it is missing, and removes the leftovers of writers that were cut off there.
///
/// # Errors
/// What the operating system says.
pub async fn prepare(disk: &Disk, dir: &Path) -> Result<()> {
    prepare_folder(disk, dir).await?;
    remove_leftovers(disk, dir).await?;
    Ok(())
}

/// Makes a folder where it is missing, durably.
pub(crate) async fn prepare_folder(disk: &Disk, dir: &Path) -> Result<()> {
    if !disk.is_dir(dir) {
        let is_missing = |dir: &&Path| !dir.as_os_str().is_empty() && !disk.is_dir(dir);
        let missing: Vec<&Path> = dir.ancestors().take_while(is_missing).collect();
        disk.create_dir_all(dir).await.map_err(sstable::Error::from)?;
        // The names of the folders are not durable before.
        for made in missing {
            disk.sync_dir(made.parent().unwrap_or(Path::new("/"))).await.map_err(sstable::Error::from)?;
        }
    }
    Ok(())
}

/// For whom an SSTable was written, as far as its files tell: ScyllaDB writes one that Cassandra does not know,
/// and its early releases wrote no list of them.
pub fn family_of(disk: &Disk, table: &SSTable) -> Family {
    let has = |component: Component| disk.exists(&table.descriptor().path_of(&component));
    match has(Component::Other(SCYLLA.to_owned())) || !has(Component::Toc) {
        true => Family::Scylla,
        false => Family::Cassandra,
    }
}

/// Refuses what the target cannot hold. Reads the sources only where their statistics leave it open.
pub(crate) async fn check(
    disk: &Disk,
    tables: &Tables,
    target: &Target,
    dir: &Path,
    progress: &mut dyn FnMut(Step, u64),
) -> Result<()> {
    let limits = Limits::of(target.version, target.family);
    let unfit = |what| Error::file(dir, what);
    limits.check_table(tables.schema(), &options(tables, target).await?).map_err(unfit)?;
    let mut before = 0;
    for table in tables.tables() {
        check_order(table, tables.tables().len())?;
        if may_not_fit(disk, table, target) {
            check_fragments(table, limits, &mut |done| progress(Step::Checking, before + done)).await?;
        }
        before += table.data().file.len();
    }
    Ok(())
}

/// The keys of index tables are in an order of their own, by which nothing is merged.
fn check_order(table: &SSTable, of: usize) -> Result<()> {
    if of > 1 && table.statistics().validation.partitioner != Partitioner::Murmur3 {
        let path = table.descriptor().path_of(&Component::Data);
        return Err(Error::file(&path, "the SSTables of a secondary index are converted one by one"));
    }
    Ok(())
}

/// Whether something in an SSTable may be more than the target can hold, as far as is known without reading it.
fn may_not_fit(disk: &Disk, table: &SSTable, target: &Target) -> bool {
    let (stats, from) = (&table.statistics().stats, table.version());
    let has_far_times = (LEGACY_END + 1..NO_DELETION_TIME).contains(&stats.min_local_deletion_time)
        || stats.tombstone_drop_times.bins.iter().any(|&(seconds, _)| seconds >= LEGACY_END - 1)
        || from.has_uint_deletion_time() && !stats.tombstone_drop_times.bins.is_empty();
    !target.version.has_uint_deletion_time() && has_far_times
        || target.version.has_uint_deletion_time() && stats.min_timestamp < 0
        || target.family == Family::Cassandra && family_of(disk, table) == Family::Scylla
}

async fn check_fragments(table: &SSTable, limits: Limits, progress: &mut dyn FnMut(u64)) -> Result<()> {
    let (mut reader, mut fragment) = (table.scan(), Fragment::default());
    while reader.advance(&mut fragment).await? {
        if let Err(what) = limits.check(&fragment) {
            let path = table.descriptor().path_of(&Component::Data);
            let place = format!("{what} (at offset {} of the data)", reader.position());
            return Err(Error::file(&path, place));
        }
        if matches!(fragment, Fragment::PartitionStart(_)) {
            progress(reader.position());
        }
    }
    Ok(())
}

/// Relative to what times are written: as in the source, or as Cassandra has it of several.
pub(crate) fn encoding(tables: &Tables) -> EncodingStats {
    match tables.tables() {
        [only] => only.statistics().header.encoding,
        all => EncodingStats::of_all(all.iter().map(|table| &table.statistics().stats)),
    }
}

/// How the target is compressed.
pub(crate) fn compression(tables: &Tables, target: &Target) -> Option<Compression> {
    match &target.compression {
        TargetCompression::None => None,
        TargetCompression::Some(compression) => Some(compression.clone()),
        TargetCompression::AsSource => {
            tables.tables()[0].data().file.compression().map(|info| fitting(info.compression(), target))
        }
    }
}

/// How to write the target.
///
/// # Errors
/// A summary of the source that cannot be read.
pub(crate) async fn options(tables: &Tables, target: &Target) -> Result<WriteOptions> {
    let first = &tables.tables()[0];
    let validation = &first.statistics().validation;
    let min_index_interval = match target.min_index_interval {
        Some(interval) => interval,
        None => first.summary().await?.min_index_interval(),
    };
    Ok(WriteOptions {
        compression: compression(tables, target),
        bloom_filter_fp_chance: target.bloom_filter_fp_chance.unwrap_or(validation.filter_fp_chance),
        min_index_interval: min_index_interval.max(1),
        // A row of a single SSTable is never changed: what cannot be told of it is refused.
        keeps_greater_deletion: tables.tables().len() > 1,
        partitioner: validation.partitioner,
        ..target.write_options()
    })
}

/// A compression that nobody asked for, as far as the target has it: before `na` no chunk is kept raw, and Cassandra had
/// fewer compressors. LZ4 stands in for those, in chunks of the same length.
pub(crate) fn fitting(compression: &Compression, target: &Target) -> Compression {
    let version = target.version;
    let has_raw_chunks = compression.max_compressed_len() < i32::MAX as u32;
    let is_known = version.has_compressor(compression.compressor()) || target.family == Family::Scylla;
    if version.has_max_compressed_length() || is_known && !has_raw_chunks {
        return compression.clone();
    }
    let (compressor, options) = match is_known {
        true => (compression.compressor(), compression.options().to_vec()),
        false => (Compressor::Lz4, Vec::new()),
    };
    let fitting = Compression::new(compressor, version).with_options(options);
    fitting.with_chunk_len(compression.chunk_len()).expect("the length is one of a chunk")
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Liveness, PartitionKey,
        PartitionStart, Row, Schema,
    };
    use runtime::{Cache, SimOptions, run_simulated};
    use sstable::OpenOptions;
    use sstable::component::Descriptor;

    use super::*;

    /// An SSTable of one row.
    async fn table(disk: &Disk, path: &str, change: impl FnOnce(&mut Row)) -> Rc<SSTable> {
        table_of(disk, path, EncodingStats::NONE, change).await
    }

    /// The same, with times that are relative to these.
    async fn table_of(
        disk: &Disk,
        path: &str,
        encoding: EncodingStats,
        change: impl FnOnce(&mut Row),
    ) -> Rc<SSTable> {
        disk.create_dir_all(Path::new("/t")).await.unwrap();
        let column = Column { name: b"v"[..].into(), data_type: CqlType::Int };
        let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![column]));
        let descriptor = Descriptor::parse(Path::new(path)).unwrap();
        let options = WriteOptions::new(descriptor.version);
        let mut writer = SSTableWriter::create(disk, descriptor, &schema, encoding, options).await.unwrap();
        let key = PartitionKey::new(Bytes::from(vec![0, 0, 0, 1]));
        let mut row = Row::new([vec![0, 0, 0, 1]].into_iter().collect::<Clustering>());
        change(&mut row);
        let start = PartitionStart { key, deletion: DeletionTime::LIVE };
        for fragment in [Fragment::PartitionStart(start), Fragment::Row(row), Fragment::PartitionEnd] {
            writer.push(&fragment).await.unwrap();
        }
        writer.seal().await.unwrap();
        SSTable::open(disk, Path::new(path), &OpenOptions::new(Cache::new(1 << 20))).await.unwrap()
    }

    /// Cassandra's compaction keeps the greater deletion of a row, and so does a conversion of several for it.
    #[test]
    fn deletions_of_several_sources_become_one() {
        let at = |at| DeletionTime { marked_for_delete_at: at, local_deletion_time: 7 };
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk();
            let lasting = table(disk, "/t/me-1-big-Data.db", |row| row.deletion = at(5)).await;
            let lifted = table(disk, "/t/me-2-big-Data.db", |row| row.shadowable = at(6)).await;
            let (dir, target) = (Path::new("/u"), Target::new(Version::Nb));
            convert(disk, vec![lasting, lifted], &target, dir, &mut |_, _| {}).await.unwrap();
            let options = OpenOptions::new(Cache::new(1 << 20));
            let merged = SSTable::open(disk, Path::new("/u/nb-1-big-Data.db"), &options).await.unwrap();
            let mut rows = merged.scan();
            while let Some(fragment) = rows.next().await.unwrap() {
                if let Fragment::Row(row) = fragment {
                    assert_eq!((row.deletion, row.shadowable), (DeletionTime::LIVE, at(6)));
                }
            }
        })
        .unwrap();
    }

    /// Where something does not expire, the least TTL is 0, and not that of others.
    #[test]
    fn short_lives_are_merged_with_long_ones() {
        let cell = |column, ttl: u32| {
            let value = CellValue::Value(Bytes::from(vec![0, 0, 0, 1]));
            let local_deletion_time = if ttl > 0 { 2_000_000_000 } else { NO_DELETION_TIME };
            Cell { column, ttl, timestamp: 7, local_deletion_time, path: None, value }
        };
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk();
            let some = table(disk, "/t/me-1-big-Data.db", |row| {
                row.liveness = Liveness { timestamp: 7, ..Liveness::NONE };
                row.cells = vec![cell(0, 60)];
            });
            let long = EncodingStats { min_ttl: 3600, ..EncodingStats::NONE };
            let all = table_of(disk, "/t/me-2-big-Data.db", long, |row| {
                row.clustering = [vec![0, 0, 0, 2]].into_iter().collect::<Clustering>();
                row.cells = vec![cell(0, 3600)];
            });
            let (sources, dir) = (vec![some.await, all.await], Path::new("/u"));
            convert(disk, sources, &Target::new(Version::Oa), dir, &mut |_, _| {}).await.unwrap();
            let options = OpenOptions::new(Cache::new(1 << 20));
            let merged = SSTable::open(disk, Path::new("/u/oa-1-big-Data.db"), &options).await.unwrap();
            assert_eq!(merged.statistics().header.encoding.min_ttl, 0);
            let (mut rows, mut ttls) = (merged.scan(), Vec::new());
            while let Some(fragment) = rows.next().await.unwrap() {
                if let Fragment::Row(row) = fragment {
                    ttls.extend(row.cells.iter().map(|cell| cell.ttl));
                }
            }
            assert_eq!(ttls, [60, 3600]);
            // As files that were written before have them.
            let base = EncodingStats { min_ttl: 3600, ..EncodingStats::NONE };
            let below =
                table_of(disk, "/t/me-3-big-Data.db", base, |row| row.cells = vec![cell(0, 60)]).await;
            let mut rows = below.scan();
            let is_row =
                |fragment: &Fragment| matches!(fragment, Fragment::Row(row) if row.cells[0].ttl == 60);
            let mut found = false;
            while let Some(fragment) = rows.next().await.unwrap() {
                found |= is_row(&fragment);
            }
            assert!(found);
        })
        .unwrap();
    }

    #[test]
    fn folders_are_made_to_last() {
        for seed in 0..20 {
            run_simulated(SimOptions { seed, ..SimOptions::default() }, async |shard| {
                let dir = Path::new("/new/a/b");
                prepare(shard.disk(), dir).await.unwrap();
                shard.disk().as_simulated().unwrap().restart();
                assert!(shard.disk().is_dir(dir), "seed {seed}");
            })
            .unwrap();
        }
    }

    #[test]
    fn what_never_expires_is_read_once() {
        run_simulated(SimOptions::default(), async |shard| {
            let source = table(shard.disk(), "/t/oa-1-big-Data.db", |row| {
                row.liveness = Liveness { timestamp: 7, ..Liveness::NONE };
                let value = CellValue::Value(Bytes::from(vec![0, 0, 0, 1]));
                let (ttl, timestamp, local_deletion_time) = (0, 7, NO_DELETION_TIME);
                row.cells = vec![Cell { column: 0, ttl, timestamp, local_deletion_time, path: None, value }];
            });
            let sources = vec![source.await];
            let mut tell = |step, _| assert_eq!(step, Step::Writing);
            convert(shard.disk(), sources, &Target::new(Version::Me), Path::new("/new"), &mut tell)
                .await
                .unwrap();
        })
        .unwrap();
    }
}
