//! An open SSTable: its small components in memory, its two large files ready to be read.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use model::key::murmur3;
use model::{Bytes, KeyView, PartitionKey, PartitionStart, Position, Schema, Slice, Token};
use runtime::{Cache, Disk, File, Reserved};

use crate::big::entry::{Entry, EntryScanner, IndexSource, Promoted};
use crate::big::groups::GroupReads;
use crate::big::promoted_cursor::{Block, BlockIndex, Found, Search};
use crate::cache::cached_file::{CachedFile, PageStats};
use crate::cache::partition_index_cache::PartitionIndexCache;
use crate::component::{Component, Descriptor};
use crate::data::reader::{Blocks, Data, DataReader, Pace};
use crate::forwarding::ForwardingReader;
use crate::index::{INDEX_STEP, Index, Place};
use crate::key_filter::KeyFilter;
use crate::opener::Opener;
use crate::parts::binding::Binding;
use crate::parts::bloom_pages::{BloomPages, FilterPages, Probe};
use crate::parts::fences::{Fences, Fencing};
use crate::parts::row_filter::{self, Absences, RowFilter};
use crate::parts::statistics::{Partitioner, Statistics};
use crate::parts::summary::Summary;
use crate::parts::usage::Usage;
use crate::ranges::RangesReader;
use crate::reader::PartitionReader;
use crate::reverse::{PlaceOfBlocks, ReverseReader};
use crate::seek::Sought;
use crate::{Error, Result, Version};

mod rebuilding;

/// No request of data is larger, whatever buffer is asked for: values are addressed by 32 bits. Bytes.
const LARGEST_BUFFER: u64 = 1 << 30;

/// What is resident of an open SSTable beside what its components and files hold: the places of its parts in
/// memory. Bytes.
const RESIDENT: usize = 2048;

/// How to open an SSTable.
#[derive(Clone)]
pub struct OpenOptions {
    /// Where pages of the index are kept: the shard's budget.
    pub cache: Cache,
    /// The most bytes of data, uncompressed, that one request brings in. Default 256 KiB.
    pub read_buffer: u64,
    /// Whether Fences.db is used, if there is one. Default true.
    pub fences: bool,
    /// Whether BloomPages.db is used, if there is one. Default true.
    pub bloom_pages: bool,
    /// Whether RowFilter.db is used, if there is one, and fences are. Default true.
    pub row_filter: bool,
    /// The columns of the table, if they are known. Files of Cassandra 3.0 do not say that a column with a user defined type is frozen, and
    /// cannot be read without the columns. Default `None`.
    pub table: Option<Rc<Schema>>,
    /// Where the pages of filters are. Clones of these options share it. Default the cache, with some at hand.
    pub filter_pages: FilterPages,
}

impl OpenOptions {
    /// The defaults, with this cache.
    pub fn new(cache: Cache) -> OpenOptions {
        let filter_pages = FilterPages::new(&cache);
        OpenOptions {
            cache,
            read_buffer: 256 << 10,
            fences: true,
            bloom_pages: true,
            row_filter: true,
            table: None,
            filter_pages,
        }
    }
}

/// How to read a slice of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// How the blocks of a large partition are searched for.
    pub search: Search,
    /// Whether rows come from the slice's end to its start.
    pub reverse: bool,
    /// Whether the static row is wanted too. It stands at the partition's head and may cost a request.
    pub static_row: bool,
    /// After how many rows the reader will stop, if it knows: the first request then brings in about as much as these
    /// take, and further ones mostly twice as much each.
    pub limit: Option<u64>,
    /// Whether the read may also return earlier rows of the same block, which were read anyway: for callers that cache. It does so only for
    /// a forward slice of one row, without the static row, near the start of an index block at which no deletion is open. It then returns
    /// everything from the first of these rows on.
    pub neighbours: bool,
    /// Whether the filter need not be asked: it has let the key pass already (see [`KeyFilter`]), or the token is among the
    /// [tokens](SSTable::each_token) of the SSTable.
    pub is_filtered: bool,
    /// The most bytes of data, uncompressed, that one request brings in, if that is less than [`OpenOptions::read_buffer`]: for reads of
    /// many SSTables at once.
    pub read_buffer: Option<u64>,
    /// Whether all of the slice will be read. A forward read of several requests then has the next one under way while it decodes the rows
    /// of the last one, unless there is a limit.
    pub reads_on: bool,
    /// Set when the rows are merged with those of other SSTables: this one then serves only a part of `limit`, and the read must not train
    /// its estimate of the length of rows.
    pub is_among_others: bool,
}

/// An open SSTable.
#[derive(Debug)]
pub struct SSTable {
    descriptor: Descriptor,
    statistics: Statistics,
    data: Rc<Data>,
    index_file: File,
    index: Index,
    read_buffer: u64,
    reserved: Reserved,
}

impl SSTable {
    /// Opens the SSTable that the file at `path`, any of its components, belongs to.
    ///
    /// Reads the small components. Not read: TOC.txt, CRC.db, a large CompressionInfo.db, and, if there are fences, a large Summary.db;
    /// these are read when they are first needed. A missing summary is rebuilt from Index.db.
    ///
    /// # Errors
    /// Names that are not an SSTable's, versions and partitioners that are not read, components that
    /// are missing or corrupt.
    pub async fn open(disk: &Disk, path: &Path, options: &OpenOptions) -> Result<Rc<SSTable>> {
        let descriptor = Descriptor::parse(path)?;
        let opener = Opener { disk, descriptor: &descriptor };
        opener.check_sealed()?;
        let statistics = opener.statistics(options.table.as_deref()).await?;
        let partitioner = statistics.validation.partitioner;
        let data = Rc::new(opener.data(&statistics, &options.cache).await?);
        let schema = data.schema.clone();

        let index_file = opener.open(&Component::Index, "it tells where the partitions are").await?;
        let pages = CachedFile::new(index_file.clone(), options.cache.clone());
        let own = Own::open(&opener, options, &data, index_file.len()).await;
        let own_bytes = own.memory_bytes();
        let summary = opener.key_summary(&index_file, &statistics, &options.cache, &own).await?;
        let fencing = Rc::new(Fencing::new(own.fences));
        let index = Index {
            filter: KeyFilter::open(&opener, &options.cache, own.bloom_pages).await?,
            summary,
            pages: index_pages(disk, &pages, &options.cache, partitioner),
            fenced_pages: index_pages(disk, &pages, &options.cache, partitioner),
            fencing: fencing.clone(),
            last_large: Default::default(),
            blocks: BlockIndex {
                file: pages,
                cache: options.cache.clone(),
                owner: disk.unique_id(),
                version: descriptor.version,
                groups: disk.unique_id(),
                reads: GroupReads::new(),
                fencing,
                rows: own.row_filter,
            },
            partitioner,
            schema,
            data_len: data.file.len(),
        };
        let read_buffer = options.read_buffer.clamp(1, LARGEST_BUFFER);
        let bytes = RESIDENT
            + statistics.memory_bytes()
            + descriptor.memory_bytes()
            + data.file.memory_bytes()
            + index_file.memory_bytes()
            + index.summary.memory_bytes()
            + index.filter.memory_bytes()
            + own_bytes;
        Ok(Rc::new(SSTable {
            reserved: options.cache.reserve(bytes),
            descriptor,
            statistics,
            data,
            index_file,
            index,
            read_buffer,
        }))
    }

    /// The names of the SSTable's files.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The version of the format.
    pub fn version(&self) -> Version {
        self.descriptor.version
    }

    /// The components that TOC.txt lists, or that the folder has where there is none. Reads them.
    ///
    /// # Errors
    /// What cannot be read; a list with names that are none.
    pub async fn components(&self, disk: &Disk) -> Result<Vec<Component>> {
        Opener { disk, descriptor: &self.descriptor }.components().await
    }

    /// What Statistics.db tells.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The columns.
    pub fn schema(&self) -> &Rc<Schema> {
        &self.data.schema
    }

    /// The key of the first partition. Empty where there is none.
    pub fn first_key(&self) -> &[u8] {
        self.index.summary.first_key()
    }

    /// The key of the last partition. Empty where there is none.
    pub fn last_key(&self) -> &[u8] {
        self.index.summary.last_key()
    }

    /// Summary.db: read, if nobody needed it so far.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format, or the rest of the SSTable.
    pub async fn summary(&self) -> Result<&Summary> {
        self.index.summary.get().await
    }

    /// Whether there was no Summary.db, so that the summary was rebuilt in memory.
    pub fn summary_was_missing(&self) -> bool {
        self.index.summary.was_missing()
    }

    /// Which keys may be there.
    pub fn filter(&self) -> &KeyFilter {
        self.index.filter()
    }

    /// Data.db.
    pub fn data(&self) -> &Rc<Data> {
        &self.data
    }

    /// Where things are.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// How reads of Index.db found its pages so far.
    pub fn page_stats(&self) -> PageStats {
        self.index.page_stats()
    }

    /// What stays in memory as long as the SSTable is open, in bytes; reserved within the budget of
    /// [`OpenOptions::cache`].
    pub fn memory_bytes(&self) -> usize {
        self.reserved.bytes()
    }

    /// Whether Fences.db tells that no partition is deleted as a whole. Of `oa` Statistics.db does:
    /// [`Stats::may_have_partition_deletions`](crate::parts::statistics::Stats::may_have_partition_deletions).
    pub fn denies_partition_deletions(&self) -> bool {
        self.index.fencing.get().is_some_and(|fences| fences.deny_deletions())
    }

    /// What became of Fences.db.
    pub fn fences_state(&self) -> Usage {
        self.index.fencing.state()
    }

    /// What became of RowFilter.db. Reads the end of the file, if no row was asked for yet that is worth it.
    pub async fn row_filter_state(&self) -> Usage {
        match &self.index.blocks.rows {
            Ok(rows) => rows.usage().await,
            Err(usage) => usage.clone(),
        }
    }

    /// A partition key of this table, from its serialized bytes.
    pub fn key(&self, bytes: Bytes) -> PartitionKey {
        self.index.decorate(bytes)
    }

    /// All partitions, in order. Uncompressed data is checked against CRC.db, if there is one.
    pub fn scan(&self) -> DataReader {
        self.scan_with(0..self.data.file.len(), self.read_buffer)
    }

    /// The partitions of a range of the data, which begins and ends between two, read and checked as a scan does. A request
    /// brings in `read_buffer` bytes of data, and not more than [`OpenOptions::read_buffer`].
    ///
    /// # Errors
    /// A range that is not within the data: the index may be corrupt.
    pub fn scan_range(&self, range: Range<u64>, read_buffer: u64) -> Result<DataReader> {
        self.check_range(&range)?;
        Ok(self.scan_with(range, read_buffer.clamp(1, self.read_buffer)))
    }

    fn scan_with(&self, range: Range<u64>, read_buffer: u64) -> DataReader {
        let is_to_the_end = range.end == self.data.file.len() && (!range.is_empty() || range.end == 0);
        let reader = DataReader::scan(self.data.clone(), range, Pace::overlapping(read_buffer, true));
        // Checksums, where there are any, tell how much data there is.
        let is_told = self.data.file.has_checksums() || self.last_key().is_empty();
        if is_to_the_end && !is_told { reader.ending_with(self.last_key()) } else { reader }
    }

    /// The error for data that ends before its last partition.
    pub fn cut_short(&self) -> Error {
        self.data.cut_short()
    }

    /// Ranges of partitions that follow each other; none yet.
    pub fn scan_ranges(self: &Rc<SSTable>) -> RangesReader {
        RangesReader::new(self)
    }

    /// Where in the data the first partition above a token begins: its end where there is none. Reads a stretch of the
    /// index between two fences, or two entries of the summary, which the cache may have. Tables of a secondary index have no tokens.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn data_above(&self, token: Token) -> Result<u64> {
        let Some(next) = token.checked_add(1) else { return Ok(self.data.file.len()) };
        let from = KeyView { token: next, bytes: &[] };
        self.index.data_from(from, |key| key.token > token).await
    }

    /// Where in the data the first partition behind a key begins, whether that one is there or not: its end where there
    /// is none. Reads a stretch of the index as [`SSTable::data_above`] does.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn data_behind(&self, key: &PartitionKey) -> Result<u64> {
        let own = key.view();
        let is_behind = |key: KeyView<'_>| (key.token, key.bytes) > (own.token, own.bytes);
        self.index.data_from(own, is_behind).await
    }

    /// One whole partition, read and checked as a scan does; `None` if it is not there.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn scan_partition(&self, key: &PartitionKey) -> Result<Option<DataReader>> {
        let Some(place) = self.index.find(key).await? else {
            return Ok(None);
        };
        let range = self.index.range(&place).await?;
        self.check_range(&range)?;
        let pace = Pace::overlapping(self.read_buffer, true);
        let reader = DataReader::partition(self.data.clone(), range, pace, Slice::all());
        Ok(Some(reader.expecting(key).to_its_end()))
    }

    /// Whether memory alone proves that the SSTable has neither the row with these values in all clustering columns, nor a range tombstone
    /// around it. It may still delete the partition. `hash` is that of the key ([`model::key::murmur3`]), for the filter of keys.
    pub fn denies_row(&self, key: KeyView<'_>, hash: impl FnOnce() -> [u64; 2], row: &[&[u8]]) -> bool {
        let denies = || self.filter().probe(hash()) == Probe::Absent;
        self.index.denies_row(&self.data.codec, key, row, denies)
    }

    /// A slice of one partition; `None` if the partition is not there, or the slice ends before it begins.
    ///
    /// Reads the index as far as it must, or the beginning of the partition if it is a small one. Of the data, the result reads only the
    /// blocks that can hold rows of the slice. If the limit is expected to be met long before the slice ends, the end of the slice is not
    /// located; reading past the limit may then fetch bytes behind the partition.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn read(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<Option<PartitionReader>> {
        if self.schema().is_empty_slice(slice) {
            return Ok(None);
        }
        let probe = if options.is_filtered { Probe::Maybe } else { self.filter().probe(murmur3(&key.bytes)) };
        if probe == Probe::Absent {
            return Ok(None);
        }
        let found = self.read_filtered(key, slice, options).await?;
        if found.is_none() && probe == Probe::Unread {
            // The index or the fences have told. What the filter says is there from now on.
            self.filter().may_contain(key).await?;
        }
        Ok(found)
    }

    /// The same of a partition that the filter has let pass, as far as it was asked.
    async fn read_filtered(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<Option<PartitionReader>> {
        // A deletion that is open where the slice begins is told there, which may not be at a row.
        let slice = &*slice.beside_rows();
        let whole = slice.is_all() && !options.reverse;
        if !whole && let Some(reader) = self.read_by_fences(key, slice, options).await? {
            return Ok(Some(reader));
        }
        if !options.reverse {
            match self.seek(key, slice, options).await? {
                Sought::There(reader) => return Ok(Some(PartitionReader::Forward(reader))),
                Sought::Absent => return Ok(None),
                Sought::Unknown => {}
            }
        }
        let Some(place) = self.index.look_up(key).await? else {
            return Ok(None);
        };
        let promoted = if whole { None } else { self.index.promoted(&place).await? };
        let reader = match promoted {
            Some(promoted) => self.read_blocks(key, place.start, promoted, slice, options).await?,
            None => self.read_partition(key, place, slice, options).await?,
        };
        Ok(Some(reader))
    }

    /// Slices of one partition that follow each other, beginning with this one; `None` if the partition is not there.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn read_forwarding(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        slice: &Slice,
        search: Search,
    ) -> Result<Option<ForwardingReader>> {
        if !self.filter().may_contain(key).await? {
            return Ok(None);
        }
        if let Some(large) = self.large_by_fences(key, search).await? {
            return Ok(Some(ForwardingReader::blocks(self, key, large, slice, search)));
        }
        let Some(place) = self.index.look_up(key).await? else {
            return Ok(None);
        };
        if let Some(promoted) = self.index.promoted(&place).await? {
            return Ok(Some(ForwardingReader::blocks(self, key, (place.start, promoted), slice, search)));
        }
        let range = self.index.range(&place).await?;
        self.check_range(&range)?;
        let reader = DataReader::partition(self.data.clone(), range, self.pace_of_first(), Slice::all());
        let reader = reader.expecting(key).to_its_end().without_static_row();
        Ok(Some(ForwardingReader::whole(self, key, reader, None, slice, search)))
    }

    /// Where a partition with blocks begins in the data, and the head of its promoted index; `None` if it is not there
    /// or has no blocks.
    pub(crate) async fn large(&self, key: &PartitionKey, search: Search) -> Result<Option<(u64, Promoted)>> {
        if let Some(large) = self.large_by_fences(key, search).await? {
            return Ok(Some(large));
        }
        let Some(place) = self.index.find(key).await? else {
            return Ok(None);
        };
        let promoted = self.index.promoted(&place).await?;
        Ok(promoted.map(|promoted| (place.start, promoted)))
    }

    /// The same by the fences, if there are any and they are to be used, of a partition that the filter has let pass.
    pub(crate) async fn large_by_fences(
        &self,
        key: &PartitionKey,
        search: Search,
    ) -> Result<Option<(u64, Promoted)>> {
        let Some(fences) = self.index.fencing.get().filter(|_| search == Search::Binary) else {
            return Ok(None);
        };
        match self.index.look_up_large(&fences, key).await {
            Ok(large) => Ok(large.map(|large| (large.data, large.promoted))),
            Err(error) => self.index.fencing.give_up(error).map(|()| None),
        }
    }

    /// Bytes of Index.db.
    pub fn index_len(&self) -> u64 {
        self.index_file.len()
    }

    /// The entries of Index.db, read once from end to end.
    pub fn entries(&self) -> EntryScanner {
        EntryScanner::new(
            IndexSource::Streamed(self.index_file.clone()),
            0..self.index_file.len(),
            INDEX_STEP,
        )
    }

    /// The blocks of a partition's promoted index, by their numbers; empty where it has none.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn blocks(&self, entry: &Entry) -> Result<Option<(Promoted, Vec<Rc<Block>>)>> {
        if entry.promoted.is_empty() {
            return Ok(None);
        }
        let promoted =
            Promoted::read(&self.index.blocks.file, entry.promoted.clone(), self.version()).await?;
        let mut blocks = Vec::new();
        let cursor = self.index.cursor(&self.data.codec, &promoted);
        for number in 0..promoted.count {
            blocks.push(cursor.block(number).await?);
        }
        Ok(Some((promoted, blocks)))
    }

    /// A slice of a large partition, if the fences know it. Whatever they lead to that is not what they say, they are
    /// given up, and the read goes without.
    async fn read_by_fences(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<Option<PartitionReader>> {
        let Some(fences) = self.index.fencing.get().filter(|_| options.search == Search::Binary) else {
            return Ok(None);
        };
        let read = match self.index.look_up_large(&fences, key).await {
            Ok(None) => return Ok(None),
            Ok(Some(large)) => self.read_blocks(key, large.data, large.promoted, slice, options).await,
            Err(error) => Err(error),
        };
        match read {
            Ok(reader) => Ok(Some(reader)),
            Err(error) => self.index.fencing.give_up(error).map(|()| None),
        }
    }

    async fn read_partition(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        place: Place,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<PartitionReader> {
        let range = match self.is_beginning(&place, options).await? {
            true => self.from(place.start)?,
            false => self.index.range(&place).await?,
        };
        self.check_range(&range)?;
        if options.reverse {
            let reader = ReverseReader::whole(self.clone(), key.clone(), range, slice.clone(), options);
            return Ok(PartitionReader::Reverse(Box::new(reader)));
        }
        Ok(PartitionReader::Forward(self.forward(key, range, slice, options)))
    }

    /// Reads a slice of the partition that has this range, from its head on.
    pub(crate) fn forward(
        &self,
        key: &PartitionKey,
        range: Range<u64>,
        slice: &Slice,
        options: ReadOptions,
    ) -> Box<DataReader> {
        let pace = self.pace_of_whole(&range, slice, options);
        let reader = DataReader::partition(self.data.clone(), range, pace, slice.clone());
        let reader = reader.expecting(key).to_its_end().without_more();
        Box::new(if options.static_row { reader } else { reader.without_static_row() })
    }

    async fn read_blocks(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        partition: u64,
        promoted: Promoted,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<PartitionReader> {
        let enough = self.enough(options);
        let cursor = self.index.cursor(&self.data.codec, &promoted).with_rows().without_end(enough);
        let found = cursor.find(slice, options.search).await?;
        let bytes = match found.is_open_ended() {
            true => self.from(partition.saturating_add(found.bytes.start))?,
            false => self.part_of_partition(partition, found.bytes.clone())?,
        };
        let head = self.part_of_partition(partition, 0..promoted.head_len)?;
        let start = PartitionStart { key: key.clone(), deletion: promoted.deletion };
        let static_row = options.static_row && self.data.codec.has_static_row();
        let options = ReadOptions { static_row, ..options };
        if options.reverse {
            let place = PlaceOfBlocks { head, promoted, found };
            let reader = ReverseReader::blocks(self.clone(), start, place, slice.clone(), options);
            return Ok(PartitionReader::Reverse(Box::new(reader)));
        }
        let is_told = promoted.ordinal.is_some() && !bytes.is_empty();
        let absences = if is_told { self.absences(slice) } else { None };
        let reader = self.forward_blocks(start, head, bytes, &found, slice, options);
        let reader = if found.is_open_ended() { reader.to_its_end() } else { reader };
        Ok(PartitionReader::forward(reader.noting(absences)))
    }

    /// Reads a slice of the partition from the blocks that were found, which are in `bytes` of the data; from its head first, if the static
    /// row is wanted.
    fn forward_blocks(
        &self,
        start: PartitionStart,
        head: Range<u64>,
        bytes: Range<u64>,
        found: &Found,
        slice: &Slice,
        options: ReadOptions,
    ) -> DataReader {
        let data = self.data.clone();
        if options.static_row && head.end == bytes.start && !bytes.is_empty() {
            let (range, pace) = (head.start..bytes.end, self.pace(options, 0, found));
            return DataReader::partition(data, range, pace, slice.clone())
                .expecting(&start.key)
                .without_more();
        }
        let pace = self.pace(options, found.bytes.start, found);
        let blocks = Blocks { range: bytes, open: found.open };
        if options.static_row {
            return DataReader::head_and_blocks(data, head, blocks, pace, slice.clone())
                .expecting(&start.key);
        }
        let slice = match options.neighbours && self.has_near_neighbours(found, slice) {
            true => Slice { start: Position::start(), end: slice.end.clone() },
            false => slice.clone(),
        };
        DataReader::blocks(data, start, blocks, pace, slice).without_more()
    }

    /// What wants to know whether the row of a slice is there, if the slice is of one.
    pub(crate) fn absences(&self, slice: &Slice) -> Option<Rc<Absences>> {
        let rows = self.index.blocks.rows.as_ref().ok()?;
        self.schema().row_of(slice).map(|_| rows.absences().clone())
    }

    /// A range that is relative to a partition's start. What the index says must lie within the data.
    pub(crate) fn part_of_partition(&self, partition: u64, part: Range<u64>) -> Result<Range<u64>> {
        let range = partition.saturating_add(part.start)..partition.saturating_add(part.end);
        self.check_range(&range)?;
        Ok(range)
    }

    /// All data from there on, for who sees where a partition ends.
    pub(crate) fn from(&self, start: u64) -> Result<Range<u64>> {
        let range = start..self.data.file.len().max(start);
        self.check_range(&range)?;
        Ok(range)
    }

    /// The index may be corrupt: what it says must lie within the data.
    pub(crate) fn check_range(&self, range: &Range<u64>) -> Result<()> {
        if range.start <= range.end && range.end <= self.data.file.len() {
            return Ok(());
        }
        let what = format!(
            "the index points to {}..{} of the data, which has {} bytes: one of the two is cut short, Data.db most likely",
            range.start,
            range.end,
            self.data.file.len()
        );
        Err(Error::corrupt(self.index_file.path(), 0, what))
    }

    /// The most bytes of data that one request brings in.
    pub(crate) fn read_buffer(&self, options: ReadOptions) -> u64 {
        options.read_buffer.map_or(self.read_buffer, |most| most.clamp(1, self.read_buffer))
    }
}

/// The components of our own, or what became of them.
pub(crate) struct Own {
    /// Whether they are bound to the data by its digest.
    pub(crate) has_digest: bool,
    pub(crate) fences: std::result::Result<Fences, Usage>,
    row_filter: std::result::Result<RowFilter, Usage>,
    pub(crate) bloom_pages: std::result::Result<BloomPages, Usage>,
}

impl Own {
    async fn open(opener: &Opener<'_>, options: &OpenOptions, data: &Data, index_len: u64) -> Own {
        let binding = opener.binding((data.file.file().len(), index_len)).await;
        let has_tokens = data.partitioner == Partitioner::Murmur3;
        let cache = || options.cache.clone();
        let open = async |file, version, of| Fences::open(file, cache(), version, of).await;
        let fences = opener.own(&Component::Fences, options.fences && has_tokens, &binding, open).await;
        let is_wanted = options.row_filter && options.fences && has_tokens;
        let open = async |file, version, of: Binding| {
            if fences.is_err() {
                return Err("there are no fences, which lead to it".to_owned());
            }
            if !row_filter::can_tell(&data.schema) {
                return Err("one row's clustering key may have several forms".to_owned());
            }
            // What is not there is believed: that takes more than two lengths.
            if of.digest.is_none() {
                return Err("without a digest it may be that of another SSTable".to_owned());
            }
            Ok(RowFilter::new(file, cache(), version, of))
        };
        let row_filter = opener.own(&Component::RowFilter, is_wanted, &binding, open).await;
        let is_wanted = options.bloom_pages && has_tokens;
        let open =
            async |file, version, of| BloomPages::open(file, options.filter_pages.clone(), version, of).await;
        let bloom_pages = opener.own(&Component::BloomPages, is_wanted, &binding, open).await;
        let has_digest = binding.is_ok_and(|binding| binding.digest.is_some());
        Own { has_digest, fences, row_filter, bloom_pages }
    }

    /// What stays in memory of fences and rows; the filter counts its pages itself. Bytes.
    fn memory_bytes(&self) -> usize {
        let rows = self.row_filter.as_ref().map_or(0, RowFilter::memory_bytes);
        self.fences.as_ref().map_or(0, Fences::memory_bytes) + rows
    }
}

/// Parsed pages of Index.db, under an owner of their own.
fn index_pages(
    disk: &Disk,
    file: &CachedFile,
    cache: &Cache,
    partitioner: Partitioner,
) -> PartitionIndexCache {
    PartitionIndexCache::new(file.clone(), cache.clone(), disk.unique_id(), partitioner)
}
