//! A row by its whole key: what is in memory is answered without a future, a task or a stream.
//!
//! ```text
//!     its shard is at rest, or this is its thread
//! get ──────────► what memory says of the row ──► the answer
//!                   │ nothing
//!                   ▼ once it is polled           else
//!         the shard, by a loan ─────────────► or by its queue
//!                   ▼
//!         what memory says of the row, or a slice of it
//! ```

use std::rc::Rc;
use std::sync::Arc;

use model::{Bytes, Direction, KeyView, PartitionKey};
use storage::commit_log::TableId;
use storage::row_cache::{KeptRow, Known};
use tracing::{Instrument as _, Span};

use super::keys::RowKey;
use super::read::PAGE_BYTES;
use super::rows::PackedRows;
use super::select::{Answer, PartitionRead, Selection};
use super::shape::Shape;
use super::shards::Work;
use super::worker::{ShardTable, Worker};
use super::{Pending, Row, Table, Values};
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

/// What memory says of a row.
pub(super) enum Said {
    /// Not all.
    Unknown,
    /// The table is no longer the one that was asked.
    Altered,
    /// There is none.
    Absent,
    Row(PackedRows),
}

impl Table {
    /// Reads a row, in a span.
    pub(super) fn read_point(&self, span: Span, point: Point) -> Pending<Option<Row>> {
        if let Some(known) = span.in_scope(|| self.known_point(&point)) {
            return known;
        }
        let table = self.clone();
        Pending::asked(move || {
            let (shape, mut answer) = match span.in_scope(|| table.ask_point(&point)) {
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
    #[inline]
    fn known_point(&self, point: &Point) -> Option<Pending<Option<Row>>> {
        self.check_there().ok()?;
        let known = self.state.with_shape(|shape| {
            let of = Of { table: self.state.id, version: shape.version };
            shape.with_row_key(&point.key, &point.clustering, |key, row| {
                let look = |worker: &Worker| Some((worker.known(of, key, row)?, worker.is_turn_over()));
                self.inner.shard_of(key.token).look(look)?
            })
        });
        let (row, is_turn_over) = known??;
        Some(if is_turn_over { Pending::after_others(Ok(row)) } else { Pending::answered(Ok(row)) })
    }

    /// Asks the shard of a row for it.
    fn ask_point(&self, point: &Point) -> Result<Asked> {
        self.check_there()?;
        let shape = self.state.shape();
        let row = shape.row_key(&point.key, &point.clustering)?;
        let of = Of { table: self.state.id, version: shape.version };
        let shard = self.inner.shard_of(row.token);
        Ok((shape, shard.ask(move |worker| worker.read_row(of, &row))))
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
                self.until_altered().await;
                asked = Some(self.ask_point(&point)?);
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
    /// The row of the table as it is known to who asks, or that there is none, if memory says all of it.
    fn known(&self, of: Of, key: KeyView<'_>, row: &[&[u8]]) -> Option<Option<Row>> {
        let tables = self.tables.borrow();
        let table = tables.get(&of.table)?;
        match self.known_row(table, of, key, row) {
            Said::Absent => Some(None),
            Said::Row(rows) => Some(rows.into_row(&table.shape_here().columns)),
            Said::Unknown | Said::Altered => None,
        }
    }

    /// A row by its key.
    fn read_row(self: &Rc<Self>, of: Of, row: &RowKey) -> Result<Work<Answer<PackedRows>>> {
        let table = self.table(of.table)?;
        let done = |rows| Ok(Work::Done(Answer::Rows(rows)));
        match row.with_bytes(|key, values| self.known_row(&table, of, key, values)) {
            Said::Unknown => {}
            Said::Altered => return Ok(Work::Done(Answer::Altered(PackedRows::default()))),
            Said::Absent => return done(PackedRows::default()),
            Said::Row(rows) => return done(rows),
        }
        let (key, slice) = (row.key(), row.slice());
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
        if !shape.model().statics.is_empty() {
            return Said::Unknown;
        }
        match table.table.known_row(key, row) {
            Known::Unknown => Said::Unknown,
            Known::Absent => Said::Absent,
            Known::Row(kept) => self.kept_row(table, Selection::of_row(of.table, &shape), key, &kept),
        }
    }

    /// A row that memory has, if anything of it is live.
    fn kept_row(&self, table: &ShardTable, selection: Selection, key: KeyView<'_>, kept: &KeptRow) -> Said {
        let key = key_in(self.spare_key.take(), key);
        let packer = self.packer(table, selection, PackedRows::default());
        let Ok(mut packer) = packer else { return Said::Altered };
        packer.take_row(&key, kept);
        self.spare_key.set(Some(key));
        Said::Row(packer.finish())
    }
}

/// A key, in the memory of one that is no longer needed.
fn key_in(spare: Option<PartitionKey>, KeyView { token, bytes }: KeyView<'_>) -> PartitionKey {
    let Some(mut key) = spare else { return PartitionKey { token, bytes: Bytes::from(bytes) } };
    key.token = token;
    key.bytes.refill(bytes);
    key
}
