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

/// A row that is asked for, by the table as it was then.
struct Sought {
    shape: Arc<Shape>,
    of: Of,
    row: RowKey,
}

impl Table {
    /// Reads a row, in a span.
    pub(super) fn read_point(&self, span: Span, point: Point) -> Pending<Option<Row>> {
        let sought = self.sought(&point);
        if let Ok(sought) = &sought
            && let Some(known) = span.in_scope(|| self.known_point(sought))
        {
            return known;
        }
        let table = self.clone();
        Pending::asked(move || {
            let (shape, mut answer) = match span.in_scope(|| table.ask_point(sought?)) {
                Ok(asked) => asked,
                Err(error) => return Pending::answered(Err(error)),
            };
            let asked = match answer.at_hand() {
                Some(Ok(Answer::Rows(rows))) => return Pending::answered(Ok(rows.into_row(&shape.columns))),
                Some(Err(error)) => return Pending::answered(Err(error)),
                Some(Ok(Answer::Altered(_))) => None,
                None => Some((shape, answer)),
            };
            Pending::new(async move { table.await_point(asked, &point).await }.instrument(span))
        })
    }

    fn sought(&self, point: &Point) -> Result<Sought> {
        let shape = self.state.shape();
        let row = shape.row_key(&point.key, &point.clustering)?;
        let of = Of { table: self.state.id, version: shape.version };
        Ok(Sought { shape, of, row })
    }

    /// What memory says of a row, if it says all and the shard lets this thread look.
    fn known_point(&self, Sought { shape, of, row }: &Sought) -> Option<Pending<Option<Row>>> {
        self.check_there().ok()?;
        let look = |worker: &Worker| Some((worker.known(*of, row)?, worker.is_turn_over()));
        let (rows, is_turn_over) = self.inner.shard_of(row.token).look(look)??;
        let row = Ok(rows.into_row(&shape.columns));
        Some(if is_turn_over { Pending::after_others(row) } else { Pending::answered(row) })
    }

    /// Asks the shard of a row for it.
    fn ask_point(&self, Sought { shape, of, row }: Sought) -> Result<Asked> {
        self.check_there()?;
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
            asked = Some(self.ask_point(self.sought(point)?)?);
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
    /// What memory says of a row of the table as it is known to who asks, if it says all.
    fn known(&self, of: Of, row: &RowKey) -> Option<PackedRows> {
        let tables = self.tables.borrow();
        let key = row.key_in(self.spare_key.take());
        let known = self.known_row(tables.get(&of.table)?, of, &key, row);
        self.spare_key.set(Some(key));
        match known? {
            Answer::Rows(rows) => Some(rows),
            Answer::Altered(_) => None,
        }
    }

    /// A row by its key.
    fn read_row(self: &Rc<Self>, of: Of, row: &RowKey) -> Result<Work<Answer<PackedRows>>> {
        let table = self.table(of.table)?;
        let key = row.key();
        if let Some(answer) = self.known_row(&table, of, &key, row) {
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
