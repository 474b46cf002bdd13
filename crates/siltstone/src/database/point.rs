//! A row by its whole key: if memory has the answer, there is no future, task or stream.
//!
//! ```text
//!     the shard is idle, or this is its thread
//! get ──────────► memory has the row, or denies it ──► the answer
//!                   │ neither
//!                   ▼ when it is polled
//!         the shard, borrowed if it is idle, or by its queue
//!                   ▼
//!         memory, unless it was asked before; then the row from disk, or a slice with the row
//! ```

use std::rc::Rc;
use std::sync::Arc;

use model::merge::Merge;
use model::{Bytes, Direction, KeyView, PartitionKey, Slice, key};
use runtime::boxed;
use storage::Fetched;
use storage::commit_log::TableId;
use storage::row_cache::{KeptRow, Known};
use storage::source::Source;
use tracing::{Instrument as _, Span};

use super::keys::RowKey;
use super::read::PAGE_BYTES;
use super::rows::PackedRows;
use super::select::{Answer, PartitionRead, READ_MEMORY, Selection};
use super::shape::Shape;
use super::shards::Work;
use super::short_key::ShortBytes;
use super::worker::{ShardTable, Worker};
use super::{Pending, Row, Table, Value, Values};
use crate::Result;

/// The values of a row's whole key.
pub(super) struct Point {
    pub(super) key: Values,
    pub(super) clustering: Values,
}

/// A question for a row, and the table as it was then: the answer has its columns.
type Asked = (Arc<Shape>, Pending<Answer<PackedRows>>);

/// Which table, and which version of it, a row is asked of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Of {
    pub(super) table: TableId,
    pub(super) version: u64,
}

/// Whether memory was asked for a row.
#[derive(Clone, Copy, Debug)]
enum Memory {
    /// It was not: its shard was not at rest, or its key has to be looked at there, or the table was another one.
    Unasked,
    /// A moment ago it did not know, and is not asked again.
    Unaware,
    /// A moment ago it had nothing of the row.
    Empty,
}

/// What memory says of a row.
pub(super) enum Said {
    /// Not all.
    Unknown,
    /// Nothing: the row is on disk, or nowhere.
    OnDisk,
    /// The table is no longer the one that was asked.
    Altered,
    /// There is none.
    Absent,
    Row(PackedRows),
}

impl Table {
    /// Reads a row, in a span.
    pub(super) fn read_point(&self, span: Span, point: Point) -> Pending<Option<Row>> {
        let mut memory = Memory::Unasked;
        match span.in_scope(|| self.known_point(&point, &mut memory)) {
            Some(known) => known,
            None => self.unknown_point(span, point, memory),
        }
    }

    /// Reads a row of which memory does not say all, or not now.
    #[inline(never)]
    fn unknown_point(&self, span: Span, point: Point, memory: Memory) -> Pending<Option<Row>> {
        let table = self.clone();
        Pending::asked(move || {
            let (shape, mut answer) = match span.in_scope(|| table.ask_point(&point, memory)) {
                Ok(asked) => asked,
                Err(error) => return Pending::answered(Err(error)),
            };
            match answer.at_hand() {
                Some(Ok(Answer::Rows(rows))) => Pending::answered(Ok(rows.into_row(&shape.columns))),
                Some(Err(error)) => Pending::answered(Err(error)),
                Some(Ok(Answer::Altered(_))) => table.awaited_point(None, point, span),
                None => table.awaited_point(Some((shape, answer)), point, span),
            }
        })
    }

    /// What memory says of a row, if it says all and the shard lets this thread look.
    #[inline(always)]
    fn known_point(
        &self,
        Point { key, clustering }: &Point,
        memory: &mut Memory,
    ) -> Option<Pending<Option<Row>>> {
        self.check_there().ok()?;
        let Some(columns) = &self.state.short_key else {
            return self.known_of_any_key(key, clustering, memory);
        };
        let ShortBytes { key, row } = columns.bytes(key, clustering)?;
        let key = KeyView { token: key::token_of(&key), bytes: &key };
        let row = row.as_deref();
        let look = |worker: &Worker| worker.known(self.state.id, key, row.as_slice(), memory);
        self.inner.shard_of(key.token).look(look).flatten()
    }

    /// The same where a key has several columns.
    #[inline(never)]
    fn known_of_any_key(
        &self,
        key: &[Value],
        clustering: &[Value],
        memory: &mut Memory,
    ) -> Option<Pending<Option<Row>>> {
        let row = self.state.shape().row_key(key, clustering).ok()?;
        let look =
            |worker: &Worker| row.with_bytes(|key, values| worker.known(self.state.id, key, values, memory));
        self.inner.shard_of(row.token).look(look).flatten()
    }

    /// Asks the shard of a row for it.
    fn ask_point(&self, point: &Point, memory: Memory) -> Result<Asked> {
        self.check_there()?;
        let shape = self.state.shape();
        let row = shape.row_key(&point.key, &point.clustering)?;
        let of = Of { table: self.state.id, version: shape.version };
        let shard = self.inner.shard_of(row.token);
        Ok((shape, shard.ask(move |worker| worker.read_row(of, row, memory))))
    }

    /// The row once the shard has answered; where the table was altered meanwhile, it is asked anew.
    fn awaited_point(self, mut asked: Option<Asked>, point: Point, span: Span) -> Pending<Option<Row>> {
        let answer = async move {
            loop {
                if let Some((shape, answer)) = asked
                    && let Answer::Rows(rows) = answer.await?
                {
                    return Ok(rows.into_row(&shape.columns));
                }
                self.until_altered().await?;
                asked = Some(self.ask_point(&point, Memory::Unasked)?);
            }
        };
        Pending::new(answer.instrument(span))
    }
}

impl Selection {
    /// One row of a table as it is, with all columns.
    pub(super) fn of_row(table: TableId, shape: &Shape) -> Selection {
        let (version, places) = (shape.version, shape.places.clone());
        let (rows, bytes, now) = (1, PAGE_BYTES, None);
        Selection { table, version, places, is_all: true, rows, bytes, now, wants_next: false }
    }
}

impl Worker {
    /// The row of a table for who asks, or that there is none, if memory says all of it.
    fn known(
        &self,
        of: TableId,
        key: KeyView<'_>,
        row: &[&[u8]],
        memory: &mut Memory,
    ) -> Option<Pending<Option<Row>>> {
        self.look_at_table(of, |table| {
            let shape = table.shape_here();
            let row = match known_row(table, &shape, key, row) {
                Known::Unknown => {
                    *memory = Memory::Unaware;
                    return None;
                }
                Known::OnDisk => {
                    *memory = Memory::Empty;
                    return None;
                }
                Known::Absent => None,
                Known::Row(kept) => self.kept_row(table, &shape, key, &kept)?.into_row(&shape.columns),
            };
            Some(self.in_turn(Ok(row)))
        })?
    }

    /// A row by its key.
    fn read_row(self: &Rc<Self>, of: Of, row: RowKey, memory: Memory) -> Result<Work<Answer<PackedRows>>> {
        let table = self.table(of.table)?;
        let done = |rows| Ok(Work::Done(Answer::Rows(rows)));
        let said = match memory {
            Memory::Unasked => row.with_bytes(|key, values| self.known_row(&table, of, key, values)),
            _ if table.shape_here().version != of.version => Said::Altered,
            Memory::Unaware => Said::Unknown,
            Memory::Empty => Said::OnDisk,
        };
        match said {
            Said::OnDisk if can_fetch(&table, &row) => self.fetch_row(of, table, row),
            Said::OnDisk | Said::Unknown => self.read_row_slice(of, &table, (row.key(), row.slice())),
            Said::Altered => Ok(Work::Done(Answer::Altered(PackedRows::default()))),
            Said::Absent => done(PackedRows::default()),
            Said::Row(rows) => done(rows),
        }
    }

    /// A row of which memory has nothing: by itself, or else as a slice.
    fn fetch_row(
        self: &Rc<Self>,
        of: Of,
        table: Rc<ShardTable>,
        row: RowKey,
    ) -> Result<Work<Answer<PackedRows>>> {
        let (key, slice) = (row.key(), row.slice());
        let memory = READ_MEMORY + table.table.least_memory(false);
        let Some(permit) = self.admission()?.try_admit(memory) else {
            return self.read_row_slice(of, &table, (key, slice));
        };
        let worker = self.clone();
        Ok(Work::later(move || async move {
            let fetched = table.table.fetch_row(&key, &slice).await?;
            let shape = table.shape();
            let rows = match fetched {
                _ if shape.version != of.version => None,
                Fetched::Absent => Some(PackedRows::default()),
                Fetched::Row(row) => worker.kept_row(&table, &shape, key.view(), &row),
                Fetched::Stream(stream) => boxed(|| worker.streamed_row(&table, &shape, stream)).await?,
                Fetched::Unread => {
                    drop(permit);
                    return worker.read_row_slice(of, &table, (key, slice))?.answer().await;
                }
            };
            Ok(rows.map_or_else(|| Answer::Altered(PackedRows::default()), Answer::Rows))
        }))
    }

    /// A row of a stream; `None` if this is not the shape that the table has.
    async fn streamed_row(
        &self,
        table: &ShardTable,
        shape: &Shape,
        mut stream: Merge<Source>,
    ) -> Result<Option<PackedRows>> {
        let packer = self.packer(table, Selection::of_row(table.id, shape), PackedRows::default());
        let Ok(mut packer) = packer else { return Ok(None) };
        packer.take_all(&mut stream).await?;
        Ok(Some(packer.finish()))
    }

    /// A row by a read of the slice that it is.
    fn read_row_slice(
        self: &Rc<Self>,
        of: Of,
        table: &ShardTable,
        (key, slice): (PartitionKey, Slice),
    ) -> Result<Work<Answer<PackedRows>>> {
        let with_static_only = slice.is_all();
        let (direction, is_looked_up) = (Direction::Forward, true);
        let read = PartitionRead { key, slice, direction, with_static_only, is_looked_up };
        self.read_partition(Selection::of_row(of.table, &table.shape()), read, PackedRows::default())
    }

    /// What memory says of a row.
    pub(super) fn known_row(&self, table: &ShardTable, of: Of, key: KeyView<'_>, row: &[&[u8]]) -> Said {
        let shape = table.shape_here();
        if shape.version != of.version {
            return Said::Altered;
        }
        match known_row(table, &shape, key, row) {
            Known::Unknown => Said::Unknown,
            Known::OnDisk => Said::OnDisk,
            Known::Absent => Said::Absent,
            Known::Row(kept) => self.kept_row(table, &shape, key, &kept).map_or(Said::Altered, Said::Row),
        }
    }

    /// A row that memory has, if anything of it is live; `None` if this is not the shape that the table has.
    #[inline(never)]
    fn kept_row(
        &self,
        table: &ShardTable,
        shape: &Shape,
        key: KeyView<'_>,
        kept: &KeptRow,
    ) -> Option<PackedRows> {
        let key = key_in(self.spare_key.take(), key);
        let mut packer =
            self.packer(table, Selection::of_row(table.id, shape), PackedRows::default()).ok()?;
        packer.take_row(&key, kept);
        self.spare_key.set(Some(key));
        Some(packer.finish())
    }
}

/// Whether a row may be fetched by itself: it has a key of its own, and no static row beside it. There may be one by now, if memory
/// was asked before.
fn can_fetch(table: &ShardTable, row: &RowKey) -> bool {
    !row.row.is_empty() && table.shape_here().model().statics.is_empty()
}

/// What memory has of a row. It does not know the static one, which would be a part of it.
#[inline]
fn known_row(table: &ShardTable, shape: &Shape, key: KeyView<'_>, row: &[&[u8]]) -> Known {
    if shape.model().statics.is_empty() { table.table.known_row(key, row) } else { Known::Unknown }
}

/// A key, in the memory of one that is no longer needed.
fn key_in(spare: Option<PartitionKey>, KeyView { token, bytes }: KeyView<'_>) -> PartitionKey {
    let Some(mut key) = spare else { return PartitionKey { token, bytes: Bytes::from(bytes) } };
    key.token = token;
    key.bytes.refill(bytes);
    key
}
