//! A row by its whole key: what is in memory is answered without a future, a task or a stream.
//!
//! ```text
//!     its shard is at rest, or this is its thread     else
//! get ──────────────┬──────────────────────────► queue of its shard
//!                   ▼                                   │
//!         what memory says of the row ◄─────────────────┘
//!                   │ nothing
//!                   ▼
//!         a slice of that row
//! ```

use std::rc::Rc;
use std::sync::Arc;

use model::{Direction, PartitionKey};
use smallvec::SmallVec;
use storage::commit_log::TableId;
use storage::row_cache::Known;
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

impl Table {
    /// Reads a row, in a span.
    pub(super) fn read_point(self, span: Span, point: Point) -> Pending<Option<Row>> {
        Pending::asked(move || {
            let (shape, mut answer) = match span.in_scope(|| self.ask_point(&point)) {
                Ok(asked) => asked,
                Err(error) => return Pending::answered(Err(error)),
            };
            let asked = match answer.at_hand() {
                Some(Ok(Answer::Rows(rows))) => return Pending::answered(Ok(rows.into_row(&shape.columns))),
                Some(Err(error)) => return Pending::answered(Err(error)),
                Some(Ok(Answer::Altered(_))) => None,
                None => Some((shape, answer)),
            };
            Pending::new(async move { self.await_point(asked, &point).await }.instrument(span))
        })
    }

    /// Asks the shard of a row for it, by the table as it is now.
    fn ask_point(&self, point: &Point) -> Result<Asked> {
        self.check_there()?;
        let shape = self.state.shape();
        let row = shape.row_key(&point.key, &point.clustering)?;
        let of = Of { table: self.state.id, version: shape.version };
        let shard = self.inner.shard_of(row.token);
        Ok((shape, shard.ask(move |worker| worker.read_row(of, &row))))
    }

    /// The row once the shard has answered; where the table was altered meanwhile, it is asked anew.
    async fn await_point(&self, mut asked: Option<Asked>, point: &Point) -> Result<Option<Row>> {
        loop {
            if let Some((shape, answer)) = asked
                && let Answer::Rows(rows) = answer.await?
            {
                return Ok(rows.into_row(&shape.columns));
            }
            self.until_altered().await;
            asked = Some(self.ask_point(point)?);
        }
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
    /// A row by its key.
    fn read_row(self: &Rc<Self>, of: Of, row: &RowKey) -> Result<Work<Answer<PackedRows>>> {
        let table = self.table(of.table)?;
        let key = row.key_in(self.spare_key.take());
        if let Some(answer) = self.known_row(&table, of, &key, row) {
            self.spare_key.set(Some(key));
            return Ok(Work::Done(answer));
        }
        let slice = row.slice();
        let with_static_only = slice.is_all();
        let (direction, is_looked_up) = (Direction::Forward, true);
        let read = PartitionRead { key, slice, direction, with_static_only, is_looked_up };
        self.read_partition(Selection::of_row(of.table, &table.shape()), read, PackedRows::default())
    }

    /// What memory says of a row, if it says all.
    pub(super) fn known_row(
        &self,
        table: &ShardTable,
        of: Of,
        key: &PartitionKey,
        row: &RowKey,
    ) -> Option<Answer<PackedRows>> {
        let shape = table.shape_here();
        if shape.version != of.version {
            return Some(Answer::Altered(PackedRows::default()));
        }
        if !shape.model().statics.is_empty() {
            return None;
        }
        let values: SmallVec<[&[u8]; 4]> = row.row.iter().map(|value| &**value).collect();
        match table.table.known_row(key, &values) {
            Known::Unknown => None,
            Known::Absent => Some(Answer::Rows(PackedRows::default())),
            Known::Row(kept) => {
                let mut packer =
                    self.packer(table, Selection::of_row(of.table, &shape), PackedRows::default()).ok()?;
                packer.take_row(key, &kept);
                Some(Answer::Rows(packer.finish()))
            }
        }
    }
}
