//! Rows that are inserted if they are not there: whether they are is read first, of all of a batch together, while nobody
//! else does so in their partitions.

use std::borrow::Cow;

use model::{Fragment, FragmentReader, LiveRows, Token};
use storage::{Begun, Caching, ReadRequest};

use super::encode::{Encoder, Record};
use super::keys::RowKey;
use super::spread::{Share, same_rows};
use super::worker::{ShardTable, Worker};
use super::write::Target;
use super::{Batch, Table, Write};
use crate::{Error, Result};

/// A row with the mutation that inserts it, as flat bytes.
#[derive(Clone, Debug)]
struct NewRow {
    place: RowKey,
    record: Vec<u8>,
}

impl Table {
    /// Inserts those rows that are not there; of each whether it was inserted.
    pub(super) async fn insert_absent(&self, batch: &Batch) -> Result<Vec<bool>> {
        let encode = |encoder: &Encoder<'_>, at: usize| new_row(encoder, batch, &batch.writes[at]);
        self.for_each_row(batch.len(), encode, async |worker, new| worker.insert_absent(new).await).await
    }
}

fn new_row(encoder: &Encoder<'_>, batch: &Batch, write: &Write) -> Result<(Token, NewRow)> {
    let Target::Insert(clustering) = &write.target else {
        return Err(Error::Usage(
            "only what is inserted can be new: other writes have no row of their own".to_owned(),
        ));
    };
    let place = encoder.shape.row_key(&write.key, clustering)?;
    let one = Batch { writes: vec![write.clone()], timestamp: batch.timestamp };
    let Record { token, bytes } = encoder.records(&one)?.pop().expect("a write is of a partition");
    Ok((token, NewRow { place, record: bytes }))
}

impl Worker {
    /// Whether each row was inserted; `None` for those that are to be encoded anew, as the table was altered.
    async fn insert_absent(&self, new: Share<NewRow>) -> Result<Vec<Option<bool>>> {
        let Share { table: id, version, rows } = new;
        let table = self.table(id)?;
        let _locks = self.lock_all(&table, rows.iter().map(|row| &*row.place.key)).await;
        if table.shape().version != version {
            return Ok(vec![None; rows.len()]);
        }
        let absent = self.are_absent(&table, &rows).await?;
        let named: Vec<_> = rows.iter().map(|row| (&row.place.key, row.place.clustering())).collect();
        // Of the same row twice the first one is new.
        let first = same_rows(table.shape().model(), &named).into_iter().map(|same| same[0]);
        let mut due: Vec<usize> = first.filter(|&at| absent[at]).collect();
        due.sort_unstable();
        let mut answers = vec![Some(false); rows.len()];
        let written = self.write_each((id, version), due.iter().map(|&at| rows[at].record.clone())).await?;
        for (at, written) in due.into_iter().zip(written) {
            answers[at] = written.map(|()| true);
        }
        Ok(answers)
    }

    /// Of each of these rows whether there is none.
    async fn are_absent(&self, table: &ShardTable, rows: &[NewRow]) -> Result<Vec<bool>> {
        let request = |row: &NewRow| {
            let request = ReadRequest::new(row.place.key(), row.place.slice());
            Cow::Owned(ReadRequest { static_row: false, caching: Caching::Look, ..request })
        };
        let requests = rows.iter().map(request).collect();
        let begun = table.table.begin_all(requests).await?.into_iter();
        self.open_each(table, begun, async |begun| self.is_empty(begun).await).await
    }

    /// Whether a read finds no live row.
    async fn is_empty(&self, begun: Begun<'_>) -> Result<bool> {
        let mut stream = begun.open().await?;
        let mut live = LiveRows::new(self.shard.clock().now_seconds());
        let mut fragment = Fragment::default();
        while stream.advance(&mut fragment).await? {
            if live.keeps(&mut fragment) && matches!(fragment, Fragment::Row(_)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
