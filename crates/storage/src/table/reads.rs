//! How a table is read: rows in memory are available at once; only for rows on disk a read waits.
//!
//! ```text
//! begin ──► Ready: a stream of memtables and of the row cache
//!      └──► Unread ──open──► the same, with rows of SSTables
//! ```

use std::borrow::Cow;
use std::fmt;
use std::mem;
use std::rc::Rc;

use model::merge::{ColumnMap, Direction, Mapped, Merge};
use model::{KeyView, PartitionKey, Position, Schema, Slice, Token};
use runtime::boxed;

use super::Table;
use crate::Result;
use crate::cover::Wanted;
use crate::definition::Definition;
use crate::memtable::{Memtable, MemtableReader};
use crate::row_cache::{Cached, Known, RowKeeper};
use crate::scans::{self, Scans, Start};
use crate::single_key::{self, NewestFirst, OfRow};
use crate::slices;
use crate::source::{ScanReader, Source};
use crate::sstable_set::{Candidates, SSTableSet, SoughtSlice};

mod one_row;
mod teaching;
mod together;

pub use self::one_row::Fetched;
pub use self::teaching::Teaching;
use self::together::{Seat, bring_together};

/// What of a partition is to be read.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The partition.
    pub key: PartitionKey,
    /// The rows of it.
    pub slice: Slice,
    /// Which way they come.
    pub direction: Direction,
    /// Whether the static row is wanted too.
    pub static_row: bool,
    /// The columns that will be looked at. Others may be there or not.
    pub wanted: Wanted,
    /// After how many rows the reader will stop, if it knows: no more than about these are read at first.
    pub limit: Option<u64>,
    /// Whether the reader will not stop before that, or the slice's end: where what comes next is much, it is then read while rows are looked
    /// at.
    pub reads_on: bool,
    /// What it has to do with the row cache.
    pub caching: Caching,
}

/// What a read has to do with the row cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Caching {
    /// It takes rows from it, and puts into it what it has read.
    #[default]
    Full,
    /// It takes rows from it. For those that are about to change.
    Look,
    /// Neither.
    Bypass,
}

/// A read that has begun.
#[derive(Debug)]
pub enum Begun<'a> {
    /// Its first fragments, or all of them, are in memory.
    Ready(Merge<Source>),
    /// SSTables are asked first.
    Unread(Box<Unread<'a>>),
}

/// A read that has to ask SSTables before it has anything to tell.
pub struct Unread<'a> {
    table: Table,
    schema: Rc<Schema>,
    /// Ends beside rows.
    request: Cow<'a, ReadRequest>,
    members: Candidates,
    /// The set that learns from it whether SSTables delete the partition.
    teaches: Option<Rc<SSTableSet>>,
    keeper: Option<RowKeeper>,
    memtables: Vec<Source>,
    /// It is read with other rows of the partition.
    seat: Option<Seat>,
}

impl ReadRequest {
    /// A slice of a partition, forward, with its static row.
    pub fn new(key: PartitionKey, slice: Slice) -> ReadRequest {
        ReadRequest {
            key,
            slice,
            direction: Direction::Forward,
            static_row: true,
            wanted: Wanted::default(),
            limit: None,
            reads_on: false,
            caching: Caching::Full,
        }
    }

    /// Where the slice begins, as the stream runs.
    pub(crate) fn beginning(&self) -> &Position {
        if self.direction == Direction::Forward { &self.slice.start } else { &self.slice.end }
    }

    /// The slice, by which SSTables may be left out; `None` where there are no clustering keys, or the static row is wanted, which may be in
    /// any of them.
    pub(crate) fn sought<'a>(&'a self, schema: &'a Schema) -> Option<SoughtSlice<'a>> {
        let wants_static_row = self.static_row && !schema.statics.is_empty();
        (!wants_static_row && !schema.clustering.is_empty()).then(|| SoughtSlice::new(&self.slice, schema))
    }

    /// The same up to a place in the slice, as the stream runs, and from there on.
    pub(crate) fn parted(&self, at: &Position) -> [ReadRequest; 2] {
        let Slice { start, end } = self.slice.clone();
        let pieces = match self.direction {
            Direction::Forward => [Slice { start, end: at.clone() }, Slice { start: at.clone(), end }],
            Direction::Reverse => [Slice { start: at.clone(), end }, Slice { start, end: at.clone() }],
        };
        pieces.map(|slice| ReadRequest { slice, ..self.clone() })
    }

    /// Where it ends, as the stream runs.
    pub(crate) fn end(&self) -> &Position {
        if self.direction == Direction::Forward { &self.slice.end } else { &self.slice.start }
    }
}

impl Table {
    /// Reads a slice of a partition: an empty stream if there is nothing of it.
    ///
    /// The stream has tombstones and expired cells; [`model::LiveRows`] leaves them out.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn read(&self, request: &ReadRequest) -> Result<Merge<Source>> {
        // Not `Begun::open`: its future has the 5 KB of a read of SSTables, and would be moved by reads of memory too.
        match self.begin(Cow::Borrowed(request)) {
            Begun::Ready(stream) => Ok(stream),
            Begun::Unread(unread) => unread.open().await,
        }
    }

    /// What memory says of one row by itself: of the partition the row with these values in all clustering columns. Where it
    /// says nothing, or the partition is in a memtable, the row has to be [read](Table::read), or [fetched](Table::fetch_row).
    ///
    /// That a row is not there may be known of the filters of SSTables; where they said so of late, they are asked here. The row cache
    /// is told while it has little of the table, or of a row that is asked for again and that many SSTables had to be asked for: it
    /// tells it in less.
    pub fn known_row(&self, key: KeyView<'_>, row: &[&[u8]]) -> Known {
        let memtables = self.0.memtables.borrow();
        if memtables.active.has(key.token) || memtables.frozen.iter().any(|memtable| memtable.has(key.token))
        {
            return Known::Unknown;
        }
        let known = self.0.row_cache.known_row(key, row, &self.0.definition.borrow());
        if matches!(known, Known::OnDisk | Known::Unknown) {
            self.known_by_filters(known, key, row)
        } else {
            known
        }
    }

    /// Where the cache has nothing, or not all.
    #[inline(never)]
    fn known_by_filters(&self, known: Known, key: KeyView<'_>, row: &[&[u8]]) -> Known {
        let set = self.0.set.borrow();
        let definition = self.0.definition.borrow();
        let denied = self.0.denials.ask(|| set.denies_row(key, row, &definition.schema));
        self.note_looks(&set);
        let Some(asked) = denied else { return known };
        if matches!(known, Known::OnDisk) {
            self.keep_denied(&set, asked, key, row);
        }
        Known::Absent
    }

    /// Keeps that a row is not there which the filters of so many SSTables deny, if it is worth it.
    fn keep_denied(&self, set: &SSTableSet, asked: u64, key: KeyView<'_>, row: &[&[u8]]) {
        let (cache, definition) = (&self.0.row_cache, self.0.definition.borrow());
        if !row.is_empty()
            && cache.wants_absent(key.token, row, asked, &definition)
            && let Some(head) = set.deletion_at_hand(key)
        {
            cache.keep_absent(key, row, head);
        }
    }

    /// How many bytes of data SSTables have of a partition, uncompressed, with those of others that share its token.
    ///
    /// # Errors
    /// What cannot be read of their indexes.
    pub async fn size_of(&self, key: &PartitionKey) -> Result<u64> {
        let mut candidates = self.sstables().of_key(key);
        candidates.settle(key).await?;
        let mut size = 0;
        for member in candidates.members() {
            let start = match key.token.checked_sub(1) {
                Some(before) => member.sstable.data_above(before).await?,
                None => 0,
            };
            size += member.sstable.data_behind(key).await?.saturating_sub(start);
        }
        Ok(size)
    }

    /// So many rows of one partition are read together at the most.
    pub const TOGETHER: usize = together::MOST;

    /// Begins the same read, without a wait.
    pub fn begin<'a>(&self, request: Cow<'a, ReadRequest>) -> Begun<'a> {
        self.begin_among(request, None)
    }

    /// Begins many reads, once the filters of all SSTables were asked for the keys of all of them. They come in the order
    /// of their requests. Rows of one partition whose requests are near each other are read together, when the first of them is
    /// opened.
    ///
    /// # Errors
    /// What cannot be read of the filters.
    pub async fn begin_all<'a>(&self, requests: Vec<Cow<'a, ReadRequest>>) -> Result<Vec<Begun<'a>>> {
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by(|&a, &b| requests[a].key.cmp(&requests[b].key));
        let keys: Vec<&PartitionKey> = order.iter().map(|&at| &requests[at].key).collect();
        let set = self.sstables();
        let mut known: Vec<Option<Candidates>> = vec![None; requests.len()];
        for (at, candidates) in order.into_iter().zip(set.of_keys(&keys).await?) {
            known[at] = Some(candidates);
        }
        // A flush meanwhile has made an SSTable of what these do not know.
        let is_of_now = Rc::ptr_eq(&set, &self.0.set.borrow());
        let among = |(request, known): (_, Option<_>)| self.begin_among(request, known.filter(|_| is_of_now));
        let mut begun: Vec<Begun<'a>> = requests.into_iter().zip(known).map(among).collect();
        bring_together(&mut begun);
        Ok(begun)
    }

    /// Begins a read, of which it may be known which SSTables can have the partition.
    fn begin_among<'a>(&self, request: Cow<'a, ReadRequest>, known: Option<Candidates>) -> Begun<'a> {
        let definition = self.0.definition.borrow();
        let (schema, direction) = (&definition.schema, request.direction);
        let of_memory = |sources| Begun::Ready(Merge::new(schema, direction, sources));
        if schema.is_empty_slice(&request.slice) {
            return of_memory(Vec::new());
        }
        let request = with_ends_beside_rows(request);
        let set = self.0.set.borrow();
        self.note_looks(&set);
        let among = |known| set.of_slice_among(known, &request.key, request.sought(schema));
        let known = known.map(among);
        let mut memtables = self.memtable_slices(&request, &definition);
        // The row cache has what all SSTables say together; else these are asked themselves.
        let (members, keeper) = match self.0.row_cache.reader(&request, &definition, &set, known.as_ref()) {
            Some(Cached::Part(reader)) => {
                memtables.push(Source::Part(reader));
                return of_memory(memtables);
            }
            Some(Cached::Parts(reader)) => {
                memtables.push(Source::Cached(reader));
                return of_memory(memtables);
            }
            Some(Cached::Row(members, keeper)) => (members, keeper),
            None => (known.unwrap_or_else(|| set.of_request(&request, schema)), None),
        };
        if members.is_empty() {
            return of_memory(memtables);
        }
        let teaches = members.asks_beside().then(|| set.clone());
        let (table, schema) = (self.clone(), schema.clone());
        let unread = Unread { table, schema, request, members, teaches, keeper, memtables, seat: None };
        Begun::Unread(Box::new(unread))
    }

    /// Reads all partitions whose tokens are above `after`, if it is given, and not above `last`. Who takes about so many rows as `limit`
    /// is not read as far ahead for as who takes all.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn scan(&self, after: Option<Token>, last: Token, limit: Option<u64>) -> Result<Merge<Source>> {
        self.scan_from(Start::Above(after), last, limit).await
    }

    /// Reads all partitions behind a key whose tokens are not above `last`.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn scan_behind(
        &self,
        key: &PartitionKey,
        last: Token,
        limit: Option<u64>,
    ) -> Result<Merge<Source>> {
        self.scan_from(Start::Behind(key.clone()), last, limit).await
    }

    async fn scan_from(&self, start: Start, last: Token, limit: Option<u64>) -> Result<Merge<Source>> {
        let definition = self.definition();
        let set = self.sstables();
        let mut sources = Vec::new();
        for memtable in self.memtables() {
            let reader = match &start {
                Start::Above(after) => MemtableReader::scan(&memtable, *after, last),
                Start::Behind(key) => MemtableReader::scan_behind(&memtable, key, last),
            };
            sources.push(mapped(reader, &memtable, &definition));
        }
        let scans = scans::open_all(&set, Scans { start, last, limit }, &definition.schema).await?;
        sources.extend(scans.into_iter().map(|scan| Source::Scan(Box::new(ScanReader(scan)))));
        Ok(Merge::new(&definition.schema, Direction::Forward, sources))
    }

    /// What the memtables have of a slice, the oldest first.
    fn memtable_slices(&self, request: &ReadRequest, definition: &Definition) -> Vec<Source> {
        let memtables = self.0.memtables.borrow();
        let all = memtables.frozen.iter().chain([&memtables.active]);
        let with_key = all.filter(|memtable| memtable.has(request.key.token));
        let slice = |memtable: &Rc<Memtable>| {
            let ReadRequest { key, slice, direction, static_row, .. } = request;
            let reader = MemtableReader::slice(memtable, key, slice, *direction, *static_row);
            mapped(reader, memtable, definition)
        };
        with_key.map(slice).collect()
    }
}

impl Begun<'_> {
    /// How many SSTables are asked at the most; `None` where that is not known yet.
    pub(crate) fn sstables(&self) -> Option<usize> {
        match self {
            Begun::Ready(_) => None,
            Begun::Unread(unread) if unread.members.rest().is_some() => None,
            Begun::Unread(unread) => Some(unread.members.members().len()),
        }
    }

    /// The stream, once SSTables were asked if they have to be.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn open(self) -> Result<Merge<Source>> {
        match self {
            Begun::Ready(stream) => Ok(stream),
            Begun::Unread(unread) => unread.open().await,
        }
    }
}

impl Unread<'_> {
    /// Asks the SSTables: those that matter for a single row, or each of them.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn open(mut self: Box<Self>) -> Result<Merge<Source>> {
        // A future is as large as the largest way through it: that to a row in one SSTable is not to be as large as the others.
        if let Some(seat) = self.seat.take()
            && let Some(read) = seat.take().await
        {
            return boxed(|| self.merged(read)).await;
        }
        self.members.settle(&self.request.key).await?;
        if self.teaches.is_some() {
            return boxed(|| self.open_teaching()).await;
        }
        let is_in_one = self.members.members().len() == 1 && self.memtables.is_empty();
        if is_in_one && single_key::is_one_row(&self.request, &self.schema) {
            self.open_row().await
        } else {
            boxed(|| self.open_several()).await
        }
    }

    /// Asks the only SSTable for the only row.
    async fn open_row(&mut self) -> Result<Merge<Source>> {
        let (request, schema, only) = (&self.request, &self.schema, &self.members.members()[0]);
        let source = match &self.keeper {
            Some(keeper) if keeper.takes_neighbours() && self.members.are_all_of_partition() => {
                slices::open_with_neighbours(request, only).await?
            }
            _ => slices::open(request, only, 1).await?,
        };
        let source = source.map(Source::SSTable);
        if source.is_none() {
            self.members.note_absent(&request.key).await?;
        }
        let stream = source.map_or_else(|| Merge::new(schema, request.direction, Vec::new()), Merge::of_one);
        Ok(match self.keeper.take() {
            Some(keeper) => Merge::of_one(keeper.keep(request, schema, stream).await?),
            None => stream,
        })
    }

    /// Asks as many SSTables as otherwise, and notes on the way what they say of the partition's deletion.
    async fn open_teaching(&mut self) -> Result<Merge<Source>> {
        let stream = self.open_several().await?;
        let Some(set) = self.teaches.take() else { return Ok(stream) };
        let teaching = Teaching::new(stream, set, self.request.key.clone());
        Ok(Merge::of_one(Source::Teaching(Box::new(teaching))))
    }

    /// Asks all SSTables, or as many of the newest as matter.
    async fn open_several(&mut self) -> Result<Merge<Source>> {
        let (request, schema) = (&self.request, &self.schema);
        let (adaptive, members) = (&self.table.0.adaptive, self.members.members());
        if self.members.is_empty() {
            return Ok(Merge::new(schema, request.direction, mem::take(&mut self.memtables)));
        }
        let memtables = &mut self.memtables;
        let read = single_key::read_newest_first(request, adaptive, members, memtables, schema).await?;
        let read = match read {
            Some(NewestFirst { memtables, of_row }) => {
                self.memtables.extend(memtables);
                of_row
            }
            None => {
                let opened = slices::open_all(request, &self.members, schema).await?;
                OfRow { sstables: opened.into_iter().map(Source::from).collect(), is_all: true }
            }
        };
        if read.is_all && read.sstables.is_empty() {
            self.members.note_absent(&request.key).await?;
        }
        self.merged(read).await
    }

    /// What SSTables and memtables say, the former out of the row cache if it keeps it from now on.
    async fn merged(&mut self, OfRow { mut sstables, is_all }: OfRow) -> Result<Merge<Source>> {
        let (request, schema) = (&self.request, &self.schema);
        // Those that were not asked teach nothing.
        self.teaches.take_if(|_| !is_all);
        if let (Some(keeper), true) = (self.keeper.take(), is_all) {
            let stream = Merge::new(schema, request.direction, sstables);
            let row = keeper.keep(request, schema, stream).await?;
            if self.memtables.is_empty() {
                return Ok(Merge::of_one(row));
            }
            sstables = vec![row];
        }
        sstables.append(&mut self.memtables);
        Ok(Merge::new(schema, request.direction, sstables))
    }
}

impl fmt::Debug for Unread<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unread").field("request", &self.request).finish_non_exhaustive()
    }
}

/// The same request, whose slice ends beside rows: what one source closes at a slice's end must not stand where another one has a row.
fn with_ends_beside_rows(request: Cow<'_, ReadRequest>) -> Cow<'_, ReadRequest> {
    match request.slice.beside_rows() {
        Cow::Borrowed(_) => request,
        Cow::Owned(slice) => Cow::Owned(ReadRequest { slice, ..request.into_owned() }),
    }
}

/// A memtable's rows with the table's columns.
fn mapped(reader: MemtableReader, memtable: &Memtable, definition: &Definition) -> Source {
    // Nearly always: each read would compare the types of all columns else.
    let is_as_defined = Rc::ptr_eq(memtable.schema(), &definition.schema) && definition.dropped.is_empty();
    let map = if is_as_defined {
        ColumnMap::IDENTITY
    } else {
        ColumnMap::onto(memtable.schema(), &definition.schema, |name| definition.dropped_at(name))
            .expect("a table is flushed before a column of it gets another type")
    };
    Source::Memtable(Box::new(Mapped::new(reader, map)))
}
