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
use storage::row_cache::Known;
use tracing::{Instrument as _, Span};

use super::keys::RowKey;
use super::read::PageOptions;
use super::rows::PackedRows;
use super::select::{Answer, PartitionRead, Selection};
use super::shape::Shape;
use super::shards::Work;
use super::worker::{ShardTable, Worker};
use super::{ColumnInfo, Pending, Row, Table, Values};
use crate::Result;

/// The values of a row's whole key.
pub(super) struct Point {
    pub(super) key: Values,
    pub(super) clustering: Values,
}

/// A question for a row, and the columns that the answer has.
type Asked = (Arc<[ColumnInfo]>, Pending<Answer<PackedRows>>);

impl Table {
    /// Reads a row, in a span.
    pub(super) fn read_point(self, span: Span, point: Point) -> Pending<Option<Row>> {
        Pending::asked(move || {
            let (columns, mut answer) = match span.in_scope(|| self.ask_point(&point)) {
                Ok(asked) => asked,
                Err(error) => return Pending::answered(Err(error)),
            };
            let asked = match answer.at_hand() {
                Some(Ok(Answer::Rows(rows))) => return Pending::answered(Ok(rows.into_row(&columns))),
                Some(Err(error)) => return Pending::answered(Err(error)),
                Some(Ok(Answer::Altered(_))) => None,
                None => Some((columns, answer)),
            };
            Pending::new(async move { self.await_point(asked, &point).await }.instrument(span))
        })
    }

    /// Asks the shard of a row for it, with the columns that the table has now.
    fn ask_point(&self, point: &Point) -> Result<Asked> {
        self.check_there()?;
        let shape = self.state.shape();
        let row = shape.row_key(&point.key, &point.clustering)?;
        let (columns, selection) = self.selection_of_rows(&shape)?;
        let shard = self.inner.shard_of(row.token);
        Ok((columns, shard.ask(move |worker| worker.read_row(selection, &row))))
    }

    /// The row once the shard has answered; where the table was altered meanwhile, it is asked anew.
    async fn await_point(&self, mut asked: Option<Asked>, point: &Point) -> Result<Option<Row>> {
        loop {
            if let Some((columns, answer)) = asked
                && let Answer::Rows(rows) = answer.await?
            {
                return Ok(rows.into_row(&columns));
            }
            self.until_altered().await;
            asked = Some(self.ask_point(point)?);
        }
    }

    /// One row, with all columns.
    pub(super) fn selection_of_rows(&self, shape: &Shape) -> Result<(Arc<[ColumnInfo]>, Selection)> {
        let (columns, selection) =
            self.selection(shape, &PageOptions { rows: 1, ..PageOptions::default() })?;
        Ok((columns, Selection { wants_next: false, ..selection }))
    }
}

impl Worker {
    /// A row by its key.
    fn read_row(self: &Rc<Self>, selection: Selection, row: &RowKey) -> Result<Work<Answer<PackedRows>>> {
        let table = self.table(selection.table)?;
        let key = row.key();
        if let Some(answer) = self.known_row(&table, &selection, &key, row) {
            return Ok(Work::Done(answer));
        }
        let slice = row.slice();
        let with_static_only = slice.is_all();
        let (direction, is_looked_up) = (Direction::Forward, true);
        let read = PartitionRead { key, slice, direction, with_static_only, is_looked_up };
        self.read_partition(selection, read, PackedRows::default())
    }

    /// What memory says of a row, if it says all.
    pub(super) fn known_row(
        &self,
        table: &ShardTable,
        selection: &Selection,
        key: &PartitionKey,
        row: &RowKey,
    ) -> Option<Answer<PackedRows>> {
        let shape = table.shape();
        if shape.version != selection.version {
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
                let mut packer = self.packer(table, selection.clone(), PackedRows::default()).ok()?;
                packer.take_row(key, &kept);
                Some(Answer::Rows(packer.finish()))
            }
        }
    }
}
