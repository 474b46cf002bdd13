//! Reads on a shard: streams of rows made into pages.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use model::{
    Bytes, Cell, Column, CqlType, Direction, Fragment, FragmentReader, LiveRows, Next, PartitionKey,
    Position, Row, Schema, Slice, Token, flat, select,
};
use storage::admission::Permit;
use storage::commit_log::TableId;
use storage::cover::Wanted;
use storage::{Begun, ReadRequest, Tokens};

use super::resume::Resume;
use super::rows::PackedRows;
use super::shape::{Place, Shape};
use super::shards::Work;
use super::worker::{ShardTable, Worker};
use crate::{Error, Result};

/// Bytes of memory that a read takes besides the page that it fills and what SSTables have at hand.
pub(super) const READ_MEMORY: usize = 64 << 10;

/// After so many fragments others may go on.
const TURN: u32 = 512;

/// What is selected of the rows that are read, and how many of them.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pub(super) table: TableId,
    /// The version of the table that the places are of.
    pub(super) version: u64,
    pub(super) places: Arc<[Place]>,
    /// Whether those are all columns.
    pub(super) is_all: bool,
    pub(super) rows: usize,
    pub(super) bytes: usize,
    /// Seconds since 1970; `None` for the shard's clock.
    pub(super) now: Option<i64>,
    /// Whether it may be gone on behind the rows.
    pub(super) wants_next: bool,
}

/// A slice of a partition.
#[derive(Clone, Debug)]
pub(super) struct SliceRead {
    pub(super) selection: Selection,
    pub(super) token: Token,
    pub(super) key: Vec<u8>,
    /// As flat bytes.
    pub(super) slice: Vec<u8>,
    pub(super) reverse: bool,
    /// Whether a partition of which only the static row is left is a row.
    pub(super) with_static_only: bool,
}

/// A part of the ring.
#[derive(Clone, Debug)]
pub(super) struct ScanRead {
    pub(super) selection: Selection,
    pub(super) tokens: Tokens,
    pub(super) resume: Option<Resume>,
}

impl Worker {
    /// The rows of a slice; `None` if the table has changed since the read was made. What is in memory is there at once.
    pub(super) fn read_slice(self: &Rc<Self>, read: SliceRead) -> Result<Work<Option<PackedRows>>> {
        let table = self.table(read.selection.table)?;
        let memory = READ_MEMORY + table.table.slice_memory() + read.selection.bytes;
        let admission = self.admission()?;
        if let Some(permit) = admission.try_admit(memory) {
            return self.read_admitted(&table, read, permit);
        }
        let (worker, admission) = (self.clone(), admission.clone());
        Ok(Work::later(async move {
            let permit = admission.admit(memory).await?;
            worker.read_admitted(&table, read, permit)?.answer().await
        }))
    }

    fn read_admitted(
        &self,
        table: &ShardTable,
        read: SliceRead,
        permit: Permit,
    ) -> Result<Work<Option<PackedRows>>> {
        let Some(mut packer) = self.packer(table, read.selection)? else { return Ok(Work::Done(None)) };
        packer.with_static_only |= read.with_static_only;
        packer.direction = if read.reverse { Direction::Reverse } else { Direction::Forward };
        let slice = flat::slice(&Bytes::from(read.slice)).map_err(|error| Error::Usage(error.to_string()))?;
        let key = PartitionKey { token: read.token, bytes: Bytes::from(read.key) };
        let mut begun = table.table.begin(Cow::Owned(packer.request(key, slice)));
        if let Begun::Ready(stream) = &mut begun
            && packer.take_some(stream, &mut Fragment::default())? == Taken::All
        {
            return Ok(Work::Done(Some(packer.finish())));
        }
        Ok(Work::later(async move {
            let _permit = permit;
            let mut stream = match begun {
                Begun::Ready(stream) => stream,
                Begun::Unread(unread) => unread.open().await?,
            };
            packer.take_all(&mut stream).await?;
            Ok(Some(packer.finish()))
        }))
    }

    /// The rows of this shard's part of some tokens; `None` if the table has changed since the read was made.
    pub(super) async fn read_scan(&self, read: ScanRead) -> Result<Option<PackedRows>> {
        let table = self.table(read.selection.table)?;
        let memory = READ_MEMORY + table.table.scan_memory() + read.selection.bytes;
        let _permit = self.admission()?.admit(memory).await?;
        let Some(mut packer) = self.packer(&table, read.selection)? else { return Ok(None) };
        let Some(tokens) = read.tokens.common(&table.table.tokens()) else {
            return Ok(Some(PackedRows::default()));
        };
        let Some(resume) = read.resume else {
            packer.with_static_only = true;
            packer.scan(&table, tokens, None).await?;
            return Ok(Some(packer.finish()));
        };
        let key = PartitionKey::new(Bytes::from(resume.key.as_slice()));
        if let Some(position) = resume.position()?.filter(|_| tokens.contain(key.token)) {
            let slice = Slice { start: position, end: Position::end() };
            packer.slice(&table, key.clone(), slice).await?;
        }
        packer.with_static_only = true;
        if !packer.is_full() {
            packer.scan(&table, tokens, Some(key)).await?;
        }
        Ok(Some(packer.finish()))
    }

    pub(super) fn packer(&self, table: &ShardTable, selection: Selection) -> Result<Option<Packer>> {
        let shape = table.shape();
        if shape.version != selection.version {
            return Ok(None);
        }
        let now = selection.now.unwrap_or_else(|| self.shard.clock().now_seconds());
        Ok(Some(Packer {
            schema: table.table.definition().schema.clone(),
            is_static_compact: shape.clustering_len() < shape.model().clustering.len(),
            with_static_only: shape.clustering_len() < shape.model().clustering.len(),
            direction: Direction::Forward,
            shape,
            selection,
            live: LiveRows::new(now),
            packed: PackedRows::default(),
            key: None,
            key_parts: Vec::new(),
            static_row: None,
            has_rows: false,
            behind: None,
            is_behind: true,
        }))
    }
}

/// Makes rows of fragments until the page is full.
pub(super) struct Packer {
    shape: Arc<Shape>,
    schema: Rc<Schema>,
    selection: Selection,
    is_static_compact: bool,
    with_static_only: bool,
    direction: Direction,
    live: LiveRows,
    packed: PackedRows,
    key: Option<PartitionKey>,
    key_parts: Vec<Bytes>,
    static_row: Option<Row>,
    has_rows: bool,
    /// Partitions up to this one are left out.
    behind: Option<PartitionKey>,
    /// Whether the partition at hand is behind it.
    is_behind: bool,
}

/// How far a turn has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// The page is full, or the stream at its end.
    All,
    /// The stream has to be filled.
    AtHand,
    /// So much that others may go on.
    Turn,
}

impl Packer {
    async fn slice(&mut self, table: &ShardTable, key: PartitionKey, slice: Slice) -> Result<()> {
        let mut stream = table.table.read(&self.request(key, slice)).await?;
        self.take_all(&mut stream).await
    }

    pub(super) fn request(&self, key: PartitionKey, slice: Slice) -> ReadRequest {
        let has_statics = !self.schema.statics.is_empty();
        ReadRequest {
            direction: self.direction,
            static_row: has_statics && (self.with_static_only || self.selects_statics()),
            wanted: self.wanted(),
            limit: (self.selection.rows < usize::MAX).then_some(self.selection.rows as u64),
            ..ReadRequest::new(key, slice)
        }
    }

    async fn scan(&mut self, table: &ShardTable, tokens: Tokens, behind: Option<PartitionKey>) -> Result<()> {
        let mut stream = match &behind {
            Some(key) if tokens.contain(key.token) => table.table.scan_behind(key, tokens.last).await?,
            _ => table.table.scan(tokens.after, tokens.last).await?,
        };
        self.behind = behind;
        self.take_all(&mut stream).await
    }

    /// Takes what comes until the page is full.
    pub(super) async fn take_all<R: FragmentReader<Error = storage::Error>>(
        &mut self,
        stream: &mut R,
    ) -> Result<()> {
        let mut place = Fragment::default();
        loop {
            match self.take_some(stream, &mut place)? {
                Taken::All => return Ok(()),
                Taken::AtHand => stream.fill().await?,
                Taken::Turn => runtime::yield_now().await,
            }
        }
    }

    /// Takes what comes until the page is full, the stream has no more at hand, or others are to go on.
    fn take_some<R: FragmentReader<Error = storage::Error>>(
        &mut self,
        stream: &mut R,
        place: &mut Fragment,
    ) -> Result<Taken> {
        for _ in 0..TURN {
            match stream.pop(place)? {
                Next::Fragment => {}
                Next::Fill => return Ok(Taken::AtHand),
                Next::End => return Ok(Taken::All),
            }
            if let (Fragment::PartitionStart(start), Some(behind)) = (&*place, &self.behind) {
                self.is_behind = start.key > *behind;
            }
            if self.is_behind {
                self.take(place);
            }
            if self.is_full() {
                return Ok(Taken::All);
            }
        }
        Ok(Taken::Turn)
    }

    fn is_full(&self) -> bool {
        let PackedRows { starts, bytes, .. } = &self.packed;
        starts.len() >= self.selection.rows || bytes.len() >= self.selection.bytes
    }

    fn take(&mut self, fragment: &mut Fragment) {
        match fragment {
            Fragment::PartitionStart(start) => {
                self.key_parts = key_parts(&start.key.bytes, self.shape.key_types());
                (self.key, self.static_row, self.has_rows) = (Some(start.key.clone()), None, false);
            }
            Fragment::PartitionEnd
                if !self.has_rows && self.with_static_only && self.static_row.is_some() =>
            {
                self.pack(None);
            }
            _ => {}
        }
        if !self.live.keeps(fragment) {
            return;
        }
        match fragment {
            Fragment::Row(row) if !self.is_static_compact => self.pack(Some(row)),
            Fragment::StaticRow(row) => self.static_row = Some(row.clone()),
            _ => {}
        }
    }

    fn pack(&mut self, row: Option<&Row>) {
        self.has_rows = true;
        let key = self.key.as_ref().expect("rows stand in partitions");
        self.packed.begin(key.token, self.selection.rows);
        for place in self.selection.places.iter() {
            match *place {
                Place::PartitionKey(at) => self.packed.push(self.key_parts.get(at).map(|part| &**part)),
                Place::Clustering(at) => {
                    let value = row.and_then(|row| row.clustering.values.get(at)?.as_ref());
                    self.packed.push(value.map(|value| &**value));
                }
                Place::Static(at) => {
                    let value = value_of(self.static_row.as_ref(), &self.schema.statics, at);
                    self.packed.push(value.as_deref());
                }
                Place::Regular(at) => {
                    let value = value_of(row, &self.schema.regulars, at);
                    self.packed.push(value.as_deref());
                }
            }
        }
        if self.is_full() && self.selection.wants_next {
            self.packed.next = Some(self.behind(row).to_bytes());
        }
    }

    /// The place behind a row, or behind the partition.
    fn behind(&self, row: Option<&Row>) -> Resume {
        let key = self.key.as_ref().expect("rows stand in partitions");
        let position = row.map(|row| match self.direction {
            Direction::Forward => Position::after(row.clustering.clone()),
            Direction::Reverse => Position::before(row.clustering.clone()),
        });
        Resume::at(key, position.as_ref())
    }

    pub(super) fn finish(self) -> PackedRows {
        self.packed
    }

    fn selects_statics(&self) -> bool {
        self.selection.places.iter().any(|place| matches!(place, Place::Static(_)))
    }

    /// The columns that are looked at.
    fn wanted(&self) -> Wanted {
        if self.selection.is_all {
            return Wanted::default();
        }
        let of = |take: fn(&Place) -> Option<u16>| {
            let mut columns: Vec<u16> = self.selection.places.iter().filter_map(take).collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        let regulars = of(|place| if let Place::Regular(at) = place { Some(*at) } else { None });
        let statics = of(|place| if let Place::Static(at) = place { Some(*at) } else { None });
        Wanted {
            regulars: Some(regulars),
            // Whether a static row is there at all is told by all of its columns.
            statics: (!self.with_static_only).then_some(statics),
        }
    }
}

/// The value of a column from the live cells of a row.
fn value_of<'a>(row: Option<&'a Row>, columns: &[Column], at: u16) -> Option<Cow<'a, [u8]>> {
    let cells = &row?.cells;
    let first = cells.partition_point(|cell: &Cell| cell.column < at);
    let count = cells[first..].iter().take_while(|cell| cell.column == at).count();
    select::value_of(&columns[usize::from(at)].data_type, &cells[first..first + count])
}

/// The values of the columns of a partition key.
fn key_parts(key: &Bytes, types: &[CqlType]) -> Vec<Bytes> {
    if types.len() == 1 {
        return vec![key.clone()];
    }
    let mut at = 0;
    let next = |_: &CqlType| {
        let len = key.get(at..at + 2).map(|len| usize::from(u16::from_be_bytes([len[0], len[1]])))?;
        let part = (at + 2 + len <= key.len()).then(|| key.slice(at + 2..at + 2 + len));
        at += 2 + len + 1;
        part
    };
    types.iter().map_while(next).collect()
}

/// The token before the first one of a range.
pub(super) fn after(first: Token) -> Option<Token> {
    first.checked_sub(1)
}
