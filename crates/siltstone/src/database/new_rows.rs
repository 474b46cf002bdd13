//! Rows that are inserted if they are not there: whether they are is read first, of all of a batch together, while nobody
//! else does so in their partitions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;

use model::{Fragment, FragmentReader, LiveRows};
use storage::commit_log::TableId;
use storage::{Begun, ReadRequest};

use super::many::RowKey;
use super::select::READ_MEMORY;
use super::worker::{ShardTable, Worker};
use super::write::Target;
use super::{Batch, Table, Write};
use crate::{Error, Result};

/// So many rows are read and written at once.
const AT_ONCE: usize = 32;

/// New rows of a shard.
#[derive(Clone, Debug)]
struct NewRows {
    table: TableId,
    version: u64,
    rows: Vec<NewRow>,
}

/// A row with the mutation that inserts it, as flat bytes.
#[derive(Clone, Debug)]
struct NewRow {
    place: RowKey,
    record: Vec<u8>,
}

impl Table {
    /// Inserts those rows that are not there; of each whether it was inserted.
    pub(super) async fn insert_absent(&self, batch: &Batch) -> Result<Vec<bool>> {
        let mut inserted: Vec<Option<bool>> = vec![None; batch.writes.len()];
        loop {
            let due: Vec<usize> = (0..inserted.len()).filter(|&at| inserted[at].is_none()).collect();
            if due.is_empty() {
                return Ok(inserted.into_iter().flatten().collect());
            }
            let shape = self.state.shape();
            let rows = due.iter().map(|&at| self.new_row(&shape, batch, &batch.writes[at]));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            let (table, version) = (self.state.id, shape.version);
            let of_shards =
                self.by_shard(rows, |row| row.place.token).into_iter().map(|(shard, places, rows)| {
                    let new = NewRows { table, version, rows };
                    let call =
                        self.inner.shards[shard].call(async move |worker| worker.insert_absent(new).await);
                    async move { call.await.map(|answers| (places, answers)) }
                });
            let mut is_altered = false;
            for answer in runtime::join_all(of_shards).await {
                let (places, answers) = answer?;
                for (place, answer) in places.into_iter().zip(answers) {
                    inserted[due[place]] = answer;
                    is_altered |= answer.is_none();
                }
            }
            if is_altered {
                self.until_altered().await;
            }
        }
    }

    fn new_row(&self, shape: &super::shape::Shape, batch: &Batch, write: &Write) -> Result<NewRow> {
        let Target::Insert(clustering) = &write.target else {
            return Err(Error::Usage(
                "only what is inserted can be new: other writes have no row of their own".to_owned(),
            ));
        };
        let encoder = self.encoder(shape);
        let place = encoder.row_key(&write.key, clustering)?;
        let one = Batch { writes: vec![write.clone()], timestamp: batch.timestamp };
        let mut mutations = encoder.mutations(&one)?;
        let mutation = mutations.pop().expect("a write is of a partition");
        let mut record = Vec::new();
        model::flat::put_mutation(&mutation, &mut record);
        Ok(NewRow { place, record })
    }
}

impl Worker {
    /// Whether each row was inserted; `None` for those that are to be encoded anew, as the table was altered.
    async fn insert_absent(&self, new: NewRows) -> Result<Vec<Option<bool>>> {
        let table = self.table(new.table)?;
        let keys: BTreeSet<&[u8]> = new.rows.iter().map(|row| &*row.place.key).collect();
        let mut locks = Vec::with_capacity(keys.len());
        // Everybody takes them in the same order.
        for key in keys {
            locks.push(table.locks.lock(key).await);
        }
        if table.shape().version != new.version {
            return Ok(vec![None; new.rows.len()]);
        }
        let mut answers: Vec<Option<bool>> =
            self.are_absent(&table, &new.rows).await?.into_iter().map(Some).collect();
        let mut seen = BTreeSet::new();
        for (row, answer) in new.rows.iter().zip(&mut answers) {
            // Of the same row twice the first one is new.
            if *answer == Some(true) && !seen.insert((&row.place.key, &row.place.slice)) {
                *answer = Some(false);
            }
        }
        let due: Vec<usize> = (0..answers.len()).filter(|&at| answers[at] == Some(true)).collect();
        for some in due.chunks(AT_ONCE) {
            let written =
                some.iter().map(|&at| self.write(new.table, new.version, new.rows[at].record.clone()));
            for (written, &at) in runtime::join_all(written).await.into_iter().zip(some) {
                answers[at] = written?.map(|()| true);
            }
        }
        Ok(answers)
    }

    /// Of each of these rows whether there is none.
    async fn are_absent(&self, table: &Rc<ShardTable>, rows: &[NewRow]) -> Result<Vec<bool>> {
        let request = |row: &NewRow| {
            let request = ReadRequest::new(row.place.key(), row.place.slice()?);
            Ok(Cow::Owned(ReadRequest { static_row: false, ..request }))
        };
        let requests = rows.iter().map(request).collect::<Result<Vec<_>>>()?;
        let memory = READ_MEMORY + table.table.slice_memory();
        let mut begun = table.table.begin_all(requests).await?.into_iter();
        let mut absent = Vec::with_capacity(rows.len());
        while begun.len() > 0 {
            let some = begun.by_ref().take(AT_ONCE).map(async |begun| {
                let _permit = self.admission()?.admit(memory).await?;
                self.is_empty(begun).await
            });
            for answer in runtime::join_all(some).await {
                absent.push(answer?);
            }
        }
        Ok(absent)
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
