//! A new SSTable, from a stream of fragments to its last component.
//!
//! ```text
//! push ──► data::writer   rows, encoded, packed into chunks              Data.db, CompressionInfo.db or CRC.db
//!      ├─► big::writer    every column_index_size bytes of a partition   Index.db, Fences.db, RowFilter.db
//!      ├─► a hash a key, a sample of the keys                            Filter.db, BloomPages.db, Summary.db
//!      └─► the collector: least and greatest of everything               Statistics.db
//! seal ──► names for all of them, TOC.txt last
//! ```
//!
//! Memory does not grow with a partition: what its index has no room for goes to a temporary file. It does grow
//! with the number of partitions, by what a reader holds of them too: the filter and the summary.

use std::rc::Rc;

use model::fragment::Validator;
use model::hex::to_hex;
use model::key::murmur3;
use model::{
    Clustering, DeletionTime, Fragment, FragmentReader, PartitionKey, PartitionStart, RangeTombstoneChange,
    Row, Schema,
};
use runtime::Disk;

use crate::big::spool::Spool;
use crate::big::writer::{IndexWriter, WrittenBlock, WrittenPartition};
use crate::component::{Component, Descriptor};
use crate::data::pack::Packer;
use crate::data::row::{Family, Minima, RowCodec};
use crate::data::writer::{Checks, DataWriter, Sealed};
use crate::encode::Encode;
use crate::parts::binding::Binding;
use crate::parts::compression_info::{Compression, CompressionInfoBuilder, Compressor};
use crate::parts::fences::FencesBuilder;
use crate::parts::filter::Filter;
use crate::parts::row_filter::{RowFilterBuilder, can_tell, hash_of};
use crate::parts::scylla::{self, SCYLLA};
use crate::parts::statistics::{Collector, EncodingStats, Header, Partitioner, Statistics, Validation};
use crate::parts::summary::SummaryBuilder;
use crate::{Error, Result, Version};

mod filters;
mod finished;
mod growing;
pub mod limits;
mod seal;
mod usual;

pub use finished::{Finished, Written};
pub use limits::Limits;
pub(crate) use seal::is_unsealed;
pub use seal::{remove_leftovers, unsealed};

use filters::Filters;
use growing::Growing;
use seal::{BLOCKS, HASHES, OFFSETS, Sealer};

/// How to write an SSTable. Named as Cassandra's options are.
#[derive(Clone, PartialEq, Debug)]
pub struct WriteOptions {
    /// How the data is compressed. Default LZ4 in the chunks of the version; `None` leaves it as it is.
    pub compression: Option<Compression>,
    /// After how many bytes of a partition its index has a new block; of 1, each row is one. Default 64 KiB. Twice as many after each 256 MiB
    /// of the partition's index, which cannot have more than 2 GiB.
    pub column_index_size: u32,
    /// Whether a block ends before the row that would make it larger than that, if rows go on as long as the last one.
    /// Default no: Cassandra's and ScyllaDB's end with the row that does. A block that is read with one request costs less
    /// by half a row.
    pub fits_blocks: bool,
    /// The chance that the filter lets a key pass that is not there, above 0.0000671; 1 for no filter. Default 0.01.
    pub bloom_filter_fp_chance: f64,
    /// Every how many partitions the summary has one, at least 1. Default 128.
    pub min_index_interval: u32,
    /// Whether to write fences, where they spare reads something. Default yes. Tables of a secondary index have none.
    pub fences: bool,
    /// Whether to write the filter once more in pages, where it is larger than one. Default yes. Tables of a secondary
    /// index have none.
    pub bloom_pages: bool,
    /// Whether to write RowFilter.db, which has the rows of large partitions. It needs fences, and blocks of no more than 8 KiB: larger
    /// blocks make groups of so many rows that their filters would take as long as writing the rows. Default yes.
    pub row_filter: bool,
    /// The level in leveled compaction that it belongs to. Default 0.
    pub level: u32,
    /// When what is in it was repaired, in milliseconds since the epoch. Default 0: it was not.
    pub repaired_at: i64,
    /// The pending repair that this SSTable belongs to, as the bytes of its UUID. Default none.
    pub pending_repair: Option<[u8; 16]>,
    /// For whom it is written. Default Cassandra.
    pub family: Family,
    /// For Cassandra, whose files hold one deletion per row: whether to keep the greater of a row's deletion and its shadowable deletion
    /// (of a materialized view). Default no: a row with both is refused.
    pub keeps_greater_deletion: bool,
    /// What puts the partitions in order. Default Murmur3.
    pub partitioner: Partitioner,
}

impl WriteOptions {
    /// The defaults for a version.
    pub fn new(version: Version) -> WriteOptions {
        WriteOptions {
            compression: Some(Compression::new(Compressor::Lz4, version)),
            column_index_size: 64 << 10,
            fits_blocks: false,
            bloom_filter_fp_chance: 0.01,
            min_index_interval: 128,
            fences: true,
            bloom_pages: true,
            row_filter: true,
            level: 0,
            repaired_at: 0,
            pending_repair: None,
            family: Family::Cassandra,
            keeps_greater_deletion: false,
            partitioner: Partitioner::Murmur3,
        }
    }
}

/// Writes an SSTable.
///
/// After an error there is nothing to do but to [abandon](SSTableWriter::abandon) it. What is neither sealed nor
/// abandoned leaves temporary files, which [`remove_leftovers`] finds.
///
/// Invariants:
/// 1. What is pushed is in order, see [`Validator`], and within the [`Limits`] of the version.
/// 2. `partition` is there from a partition's start to its end.
#[derive(Debug)]
pub struct SSTableWriter {
    sealer: Sealer,
    schema: Rc<Schema>,
    encoding: EncodingStats,
    options: WriteOptions,
    limits: Limits,
    validator: Validator,
    codec: RowCodec,
    /// Whether its cells are counters, of which more is looked at than of others.
    has_counters: bool,
    /// The last row that came as it stands and had to be decoded: its memory is used again.
    decoded: Fragment,
    data: DataWriter,
    index: IndexWriter,
    summary: SummaryBuilder,
    /// Fences.db and RowFilter.db, once there is enough to begin them.
    fences: Growing,
    rows: Growing,
    /// The hash of each key: the filter's size is known only at the end.
    hashes: Spool,
    collector: Collector,
    /// Whether the collector does not know where the last row stands, which was a usual one.
    is_last_untold: bool,
    partitions: u64,
    partition: Option<Partition>,
    /// Where the first and the last item of the block stand that is being filled, encoded.
    first: Vec<u8>,
    last: Vec<u8>,
}

/// The partition that is being written.
#[derive(Debug)]
struct Partition {
    key: PartitionKey,
    deletion: DeletionTime,
    /// Where it begins in the data.
    start: u64,
    /// Bytes before its first row; 0 as long as the static row may come.
    head_len: u64,
    /// Where the last row or marker began, in bytes from the partition's start.
    previous: u64,
    /// The place in the partition of the block that is being filled, if there is one.
    block: Option<u64>,
    /// The range tombstone in force.
    open: DeletionTime,
    /// A change that may still be replaced by another one at the same position.
    change: Option<RangeTombstoneChange>,
}

impl SSTableWriter {
    /// A new SSTable of these columns, under the names of `descriptor`. `encoding` are the least timestamp, local
    /// deletion time and TTL of all that will be pushed: everything is written relative to them.
    ///
    /// # Errors
    /// Options that are none; columns that the version cannot hold; names that are taken; what the operating system
    /// says.
    pub async fn create(
        disk: &Disk,
        descriptor: Descriptor,
        schema: &Rc<Schema>,
        encoding: EncodingStats,
        options: WriteOptions,
    ) -> Result<SSTableWriter> {
        let path = descriptor.path_of(&Component::Data);
        let unfit = |what: String| Error::unfit(&path, what);
        let limits = Limits::of(descriptor.version, options.family);
        limits.check_table(schema, &options).map_err(unfit)?;
        let packer = options.compression.clone().map(Packer::new).transpose().map_err(unfit)?;
        let mut sealer = Sealer::begin(disk, descriptor).await?;
        match Files::create(disk, &mut sealer, packer, schema, &options).await {
            Ok(files) => Ok(SSTableWriter::assemble(sealer, files, limits, schema, encoding, options)),
            Err(error) => {
                // Whatever is left says no more than the error.
                drop(sealer.abandon().await);
                Err(error)
            }
        }
    }

    fn assemble(
        sealer: Sealer,
        files: Files,
        limits: Limits,
        schema: &Rc<Schema>,
        encoding: EncodingStats,
        options: WriteOptions,
    ) -> SSTableWriter {
        let validator = match options.partitioner {
            Partitioner::Murmur3 => Validator::new(schema),
            Partitioner::Local => Validator::new(schema).by_key_order(schema),
        };
        let version = sealer.descriptor().version;
        let codec = RowCodec::new(schema, Minima::from(&encoding), version);
        SSTableWriter {
            sealer,
            schema: schema.clone(),
            encoding,
            limits,
            validator,
            codec: codec.writing_for(options.family),
            has_counters: schema.is_counter(),
            decoded: Fragment::default(),
            data: files.data,
            index: files.index,
            summary: SummaryBuilder::new(options.min_index_interval),
            fences: Growing::new(Component::Fences),
            rows: Growing::new(Component::RowFilter),
            hashes: files.hashes,
            collector: Collector::new(schema, version),
            is_last_untold: false,
            partitions: 0,
            partition: None,
            first: Vec::new(),
            last: Vec::new(),
            options,
        }
    }

    /// Takes the next fragment. Waits only where so much has gathered that a request is worth it.
    ///
    /// # Errors
    /// A fragment that is out of order, or that the version cannot hold; what the operating system says.
    pub async fn push(&mut self, fragment: &Fragment) -> Result<()> {
        match fragment {
            Fragment::Row(row) if self.is_to_lose_a_deletion(row) => {
                let mut row = row.clone();
                row.keep_greater_deletion();
                self.put(&Fragment::Row(row)).await?;
            }
            fragment => self.put(fragment).await?,
        }
        self.flush_if_full().await
    }

    async fn put(&mut self, fragment: &Fragment) -> Result<()> {
        self.check(fragment)?;
        match fragment {
            Fragment::PartitionStart(start) => self.start(start),
            Fragment::StaticRow(row) => self.static_row(row),
            Fragment::Row(row) => self.row(row),
            Fragment::RangeTombstone(change) => self.change(change),
            Fragment::PartitionEnd => self.end().await?,
        }
        Ok(())
    }

    /// Whether it was deleted twice, and its file has room for one deletion.
    fn is_to_lose_a_deletion(&self, row: &Row) -> bool {
        let is_for_one = self.options.keeps_greater_deletion && self.options.family == Family::Cassandra;
        is_for_one && row.has_two_deletions()
    }

    /// Takes all that a reader gives; `progress` is told now and then how far the data is, in bytes written.
    ///
    /// # Errors
    /// Those of the reader, and of [`SSTableWriter::push`].
    pub async fn push_all<R: FragmentReader>(
        &mut self,
        reader: &mut R,
        progress: &mut dyn FnMut(u64),
    ) -> std::result::Result<(), R::Error>
    where
        R::Error: From<Error>,
    {
        let (mut told, mut fragment) = (0, Fragment::default());
        while reader.advance(&mut fragment).await? {
            self.push(&fragment).await?;
            while self.push_flat(reader, usize::MAX).await? > 0 {}
            if self.data.position() - told >= PROGRESS_STEP {
                told = self.data.position();
                progress(told);
            }
        }
        Ok(())
    }

    /// Bytes of data so far, uncompressed.
    pub fn position(&self) -> u64 {
        self.data.position()
    }

    /// How many bytes of data are packed, and how many bytes of Data.db on disk they are. What is packed is behind the
    /// [position](SSTableWriter::position) by a few megabytes; the same fragments give the same answer in every run.
    pub fn packed(&self) -> (u64, u64) {
        self.data.packed()
    }

    /// How many partitions have been written to their end.
    pub fn partitions(&self) -> u64 {
        self.partitions
    }

    /// Writes what is left, makes all durable and gives the files their names. From then on there is an SSTable.
    ///
    /// # Errors
    /// A stream that ended within a partition, or had none; what the operating system says. Then nothing is left.
    pub async fn seal(self) -> Result<Written> {
        self.finish().await?.seal().await
    }

    /// The same up to the last step, which makes an SSTable of it: where several are to be there together or not at all, each is
    /// finished first. What a crash leaves of it before that is found by [`remove_leftovers`].
    ///
    /// # Errors
    /// As of [`seal`](SSTableWriter::seal).
    pub async fn finish(self) -> Result<Finished> {
        let done = self.validator.finish().map_err(|error| self.unfit(error.to_string()));
        let done = match done {
            Ok(()) if self.partitions == 0 => {
                Err(self.unfit("an SSTable has at least one partition".to_owned()))
            }
            other => other,
        };
        match done {
            Ok(()) => self.finish_all().await,
            Err(error) => {
                drop(self.abandon().await);
                Err(error)
            }
        }
    }

    /// Removes what was written.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn abandon(self) -> Result<()> {
        let SSTableWriter { sealer, data, index, fences, rows, hashes, .. } = self;
        drop((data, index, fences, rows, hashes));
        sealer.abandon().await
    }

    fn check(&mut self, fragment: &Fragment) -> Result<()> {
        if std::mem::take(&mut self.is_last_untold) {
            self.collector.last_usual_row(self.validator.last().expect("a row was checked"));
        }
        self.validator.check(fragment).map_err(|error| self.unfit(error.to_string()))?;
        if let Fragment::StaticRow(row) = fragment
            && !self.codec.has_static_row()
            && !(row.cells.is_empty() && row.complex_deletions.is_empty())
        {
            return Err(self.unfit("a static row in a table without static columns".to_owned()));
        }
        self.limits.check(fragment).map_err(|what| self.unfit(what))
    }

    fn unfit(&self, what: String) -> Error {
        let path = self.sealer.descriptor().path_of(&Component::Data);
        match &self.partition {
            Some(partition) => {
                Error::unfit(&path, format!("{what} (partition {})", beginning_of(&partition.key.bytes)))
            }
            None => Error::unfit(&path, what),
        }
    }

    fn start(&mut self, start: &PartitionStart) {
        let at = self.data.position();
        self.codec.put_partition_head(&start.key.bytes, &start.deletion, self.data.buffer());
        self.collector.partition_start(&start.key.bytes, start.deletion);
        let head_len = if self.codec.has_static_row() { 0 } else { self.data.position() - at };
        self.partition = Some(Partition {
            key: start.key.clone(),
            deletion: start.deletion,
            start: at,
            head_len,
            previous: 0,
            block: None,
            open: DeletionTime::LIVE,
            change: None,
        });
    }

    fn static_row(&mut self, row: &Row) {
        if !self.codec.has_static_row() {
            // It has no columns, as those that it had were dropped: the file has no static rows.
            return;
        }
        self.codec.put_static_row(row, self.data.buffer());
        self.collector.row(row, true);
        let position = self.data.position();
        let partition = self.partition.as_mut().expect("invariant 2");
        partition.head_len = position - partition.start;
    }

    /// Where the table has static rows, each partition has one.
    fn end_head(&mut self) {
        if self.partition.as_ref().expect("invariant 2").head_len == 0 {
            self.static_row(&Row::new(Clustering::empty()));
        }
    }

    fn row(&mut self, row: &Row) {
        self.end_head();
        self.settle_change();
        if row.is_empty() {
            return;
        }
        let at = self.begin_item(|codec, to| codec.put_row_prefix(&row.clustering, to));
        if let Some(rows) = self.index.rows() {
            rows.row(hash_of(&self.last));
        }
        let previous = self.since_previous(at);
        self.codec.put_row(row, &self.last, previous, self.data.buffer());
        self.collector.row(row, false);
        self.end_item();
    }

    fn change(&mut self, change: &RangeTombstoneChange) {
        self.end_head();
        let partition = self.partition.as_mut().expect("invariant 2");
        if partition.change.as_ref().is_some_and(|pending| pending.position != change.position) {
            self.settle_change();
        }
        self.partition.as_mut().expect("invariant 2").change = Some(change.clone());
    }

    /// Writes the change that is held back, if it changes anything.
    fn settle_change(&mut self) {
        let partition = self.partition.as_mut().expect("invariant 2");
        // It is large, and mostly none.
        if partition.change.is_none() {
            return;
        }
        let Some(RangeTombstoneChange { position, deletion }) = partition.change.take() else { return };
        let before = std::mem::replace(&mut partition.open, deletion);
        if before == deletion {
            return;
        }
        let closes = (!before.is_live()).then_some(before);
        let opens = (!deletion.is_live()).then_some(deletion);
        let kinds = (closes.is_some(), opens.is_some());
        let at = self.begin_item(|codec, to| codec.put_marker_prefix(&position, kinds.0, kinds.1, to));
        if let Some(rows) = self.index.rows() {
            rows.marker();
        }
        let previous = self.since_previous(at);
        self.codec.put_marker(&position, closes.as_ref(), opens.as_ref(), previous, self.data.buffer());
        self.collector.range_tombstone(&position, closes, opens);
        self.end_item();
    }

    /// Notes where a row or marker begins; how many bytes that is from the partition's start.
    fn begin_item(&mut self, put_prefix: impl FnOnce(&RowCodec, &mut Vec<u8>)) -> u64 {
        let position = self.data.position();
        let partition = self.partition.as_mut().expect("invariant 2");
        let at = position - partition.start;
        self.last.clear();
        put_prefix(&self.codec, &mut self.last);
        if partition.block.is_none() {
            partition.block = Some(at);
            self.first.clone_from(&self.last);
        }
        at
    }

    /// How far before `at` the last item began.
    fn since_previous(&mut self, at: u64) -> u64 {
        let partition = self.partition.as_mut().expect("invariant 2");
        at - std::mem::replace(&mut partition.previous, at)
    }

    /// Ends the block if it is large enough.
    fn end_item(&mut self) {
        let partition = self.partition.as_ref().expect("invariant 2");
        let at = self.data.position() - partition.start;
        let limit = self.index.width_of_next(self.options.column_index_size);
        let is_full = |len: u64| match self.options.fits_blocks {
            true => len + (at - partition.previous) > limit,
            false => len >= limit,
        };
        if partition.block.is_some_and(|start| is_full(at - start)) {
            self.cut_block();
        }
    }

    fn cut_block(&mut self) {
        let position = self.data.position();
        let partition = self.partition.as_mut().expect("invariant 2");
        let Some(offset) = partition.block.take() else { return };
        self.index.block(WrittenBlock {
            first: &self.first,
            last: &self.last,
            offset,
            width: position - partition.start - offset,
            end_open: partition.open,
        });
    }

    async fn end(&mut self) -> Result<()> {
        self.end_head();
        self.settle_change();
        // A single block has no place in an index.
        if self.index.has_blocks() {
            self.cut_block();
        }
        let partition = self.partition.take().expect("invariant 2");
        self.codec.put_end_of_partition(self.data.buffer());
        self.collector.partition_end(self.data.position() - partition.start);
        let key = &partition.key.bytes;
        self.summary.push(key, self.index.position());
        let [low, high] = murmur3(key);
        self.hashes.append(|to| {
            to.put_u64_le(low);
            to.put_u64_le(high);
        });
        self.partitions += 1;
        let Partition { deletion, start, head_len, .. } = partition;
        let token = partition.key.token;
        self.index.end(WrittenPartition { token, key, data: start, head_len, deletion }).await
    }

    fn is_full(&self) -> bool {
        self.data.is_full() || self.index.is_full()
    }

    async fn flush_if_full(&mut self) -> Result<()> {
        if self.is_full() { self.flush().await } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<()> {
        if self.data.is_full() {
            self.data.flush().await?;
        }
        if self.hashes.is_full() {
            self.hashes.spill().await?;
        }
        self.index.flush().await?;
        self.flush_own().await
    }

    /// Writes pages of our own components, where they are many.
    async fn flush_own(&mut self) -> Result<()> {
        if let Some(builder) = self.index.fences().filter(|builder| builder.is_full()) {
            self.fences.append(&mut self.sealer, builder.take_pages()).await?;
        }
        if let Some(builder) = self.index.rows()
            && let Some(pages) = builder.full_pages().await
        {
            self.rows.append(&mut self.sealer, pages).await?;
        }
        Ok(())
    }

    async fn finish_all(self) -> Result<Finished> {
        let SSTableWriter {
            mut sealer,
            data,
            index,
            fences,
            rows,
            summary,
            mut hashes,
            collector,
            partitions,
            ..
        } = self;
        let facts = Facts { schema: &self.schema, encoding: self.encoding, options: &self.options };
        let end = async {
            // The last batches of the data are packed meanwhile.
            let filters = Filters::build(&mut sealer, &mut hashes, partitions, &self.options).await?;
            let (data, sealed) = data.finish().await?;
            sealer.put(data);
            let (index, mut of_fences, of_rows) = index.finish().await?;
            let binding = binding(&sealed, index.len());
            sealer.put(index);
            if collector.denies_deletions_untold() {
                of_fences.iter_mut().for_each(FencesBuilder::tell_undeleted);
            }
            write_fences(&mut sealer, fences, of_fences, binding).await?;
            write_row_filter(&mut sealer, rows, of_rows, &binding).await?;
            let filter = filters.finish(&mut sealer, &binding).await?;
            let statistics = facts.statistics(collector, &sealed);
            write_parts(&mut sealer, &sealed, filter, summary, statistics).await?;
            if self.options.family == Family::Scylla {
                sealer.write(Component::Other(SCYLLA.to_owned()), scylla::encode()).await?;
            }
            Ok(sealed)
        };
        let sealed = match end.await {
            Ok(sealed) => sealed,
            Err(error) => {
                drop(sealer.abandon().await);
                return Err(error);
            }
        };
        let (descriptor, components) = (sealer.descriptor().clone(), Vec::new());
        let Sealed { data_len, file_len: data_file_len, .. } = sealed;
        let written = Written { descriptor, components, partitions, data_len, data_file_len };
        Ok(Finished { sealer: sealer.name_components().await?, written })
    }
}

/// Of the rows of larger blocks none are told. Bytes.
const LARGEST_TOLD_BLOCK: u32 = 8 << 10;

/// Progress is told every so many bytes.
const PROGRESS_STEP: u64 = 1 << 20;

/// The files that are written from the first fragment on.
struct Files {
    data: DataWriter,
    index: IndexWriter,
    hashes: Spool,
}

impl Files {
    async fn create(
        disk: &Disk,
        sealer: &mut Sealer,
        packer: Option<Packer>,
        schema: &Schema,
        options: &WriteOptions,
    ) -> Result<Files> {
        let version = sealer.descriptor().version;
        let data = sealer.create(Component::Data).await?;
        let data = match packer.zip(options.compression.clone()) {
            Some((packer, compression)) => {
                DataWriter::compressed(data, packer, CompressionInfoBuilder::new(compression))
            }
            None => DataWriter::plain(data),
        };
        let fences = options.fences && options.partitioner == Partitioner::Murmur3;
        let fences = fences.then(|| FencesBuilder::new(version));
        let has_small_blocks = options.column_index_size <= LARGEST_TOLD_BLOCK;
        let rows = options.row_filter && has_small_blocks && can_tell(schema);
        let rows = rows.then(RowFilterBuilder::default);
        let file = sealer.create(Component::Index).await?;
        let spools =
            [BLOCKS, OFFSETS].map(|part| Spool::new(disk, sealer.spool_path(&Component::Index, part)));
        let index = IndexWriter::new(file, spools, version, fences, rows);
        let hashes = Spool::new(disk, sealer.spool_path(&Component::Filter, HASHES));
        Ok(Files { data, index, hashes })
    }
}

/// What Statistics.db tells besides what was collected.
struct Facts<'a> {
    schema: &'a Schema,
    encoding: EncodingStats,
    options: &'a WriteOptions,
}

impl Facts<'_> {
    fn statistics(&self, collector: Collector, sealed: &Sealed) -> Statistics {
        let (mut stats, compaction) = collector.finish();
        stats.level = self.options.level;
        (stats.repaired_at, stats.pending_repair) = (self.options.repaired_at, self.options.pending_repair);
        if let Checks::Compressed(info) = &sealed.checks {
            stats.compression_ratio = info.ratio().expect("there is data");
        }
        Statistics {
            validation: Validation::new(self.options.partitioner, self.options.bloom_filter_fp_chance),
            compaction,
            stats,
            header: Header { encoding: self.encoding, schema: self.schema.clone() },
        }
    }
}

/// What fences are bound to.
fn binding(sealed: &Sealed, index_len: u64) -> Binding {
    Binding { digest: Some(sealed.digest.0), data_len: sealed.file_len, index_len }
}

/// The rest of Fences.db, or all of it, if it spares reads anything.
async fn write_fences(
    sealer: &mut Sealer,
    file: Growing,
    builder: Option<FencesBuilder>,
    binding: Binding,
) -> Result<()> {
    match builder.filter(|builder| file.has_begun() || builder.is_worthwhile()) {
        Some(builder) => file.finish(sealer, builder.finish(binding)).await,
        None => Ok(()),
    }
}

/// The rest of RowFilter.db, or all of it, if it tells of any row.
async fn write_row_filter(
    sealer: &mut Sealer,
    file: Growing,
    builder: Option<RowFilterBuilder>,
    binding: &Binding,
) -> Result<()> {
    let Some(builder) = builder else { return Ok(()) };
    let (rest, is_of_use) = builder.finish(binding, sealer.descriptor().version).await;
    if file.has_begun() || is_of_use { file.finish(sealer, rest).await } else { Ok(()) }
}

async fn write_parts(
    sealer: &mut Sealer,
    sealed: &Sealed,
    filter: Option<Filter>,
    summary: SummaryBuilder,
    statistics: Statistics,
) -> Result<()> {
    let version = sealer.descriptor().version;
    if let Some(filter) = filter {
        sealer.write(Component::Filter, filter.as_bytes().to_vec()).await?;
    }
    match &sealed.checks {
        Checks::Compressed(info) => sealer.write(Component::CompressionInfo, info.encode(version)).await?,
        Checks::Plain(crc) => sealer.write(Component::Crc, crc.encode()).await?,
    }
    sealer.write(Component::Digest, sealed.digest.encode()).await?;
    sealer.write(Component::Summary, summary.finish().encode()).await?;
    sealer.write(Component::Statistics, statistics.encode(version)).await
}

fn beginning_of(bytes: &[u8]) -> String {
    let shown = to_hex(&bytes[..bytes.len().min(32)]);
    if bytes.len() > 32 { format!("0x{shown}…") } else { format!("0x{shown}") }
}
