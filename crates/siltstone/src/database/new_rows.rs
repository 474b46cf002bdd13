//! Rows that are inserted if they are absent. A batch first reads all of its rows together, and until it has written no other
//! insert-if-absent or counter update runs in their partitions. Plain writes to them may come before or after.

use std::borrow::Cow;

use model::time::NO_TIMESTAMP;
use model::{Bytes, DeletionTime, Fragment, FragmentReader, LiveRows, Row, Token, flat};
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
    /// Microseconds, where nobody has chosen it.
    stamp: Option<i64>,
}

/// What is known of a row that is to be inserted. Timestamps are in microseconds.
#[derive(Clone, Copy, Debug)]
struct Before {
    /// Whether it is there.
    is_there: bool,
    /// The greatest timestamp of what was there: of the row, and of deletions around it.
    newest: i64,
    /// That of what hides static columns: of the partition's deletion, or of the row, if that is a static one.
    newest_static: i64,
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
    let chosen = write.timestamp.or(batch.timestamp);
    let stamp = chosen.is_none().then(|| encoder.stamps.micros());
    let one = Batch { writes: vec![write.clone()], timestamp: chosen.or(stamp) };
    let Record { token, bytes } = encoder.records(&one)?.pop().expect("a write is of a partition");
    Ok((token, NewRow { place, record: bytes, stamp }))
}

impl NewRow {
    /// What is written, behind all that was there: the row may have been deleted since it was encoded, or by a clock that was ahead, and would
    /// be hidden.
    fn record(&self, before: Before) -> Vec<u8> {
        let Some(stamp) = self.stamp.filter(|stamp| *stamp <= before.newest) else {
            return self.record.clone();
        };
        let mut mutation = flat::mutation(&Bytes::from(&*self.record)).expect("it was encoded here");
        let later = |newest: i64| i64::max(0, newest.saturating_add(1).saturating_sub(stamp));
        mutation.rows.iter_mut().for_each(|row| put_off(row, later(before.newest)));
        mutation.static_row.iter_mut().for_each(|row| put_off(row, later(before.newest_static)));
        Record::of(&mutation).bytes
    }
}

/// Makes a row later, by so many microseconds.
fn put_off(row: &mut Row, by: i64) {
    if !row.liveness.is_none() {
        row.liveness.timestamp += by;
    }
    row.cells.iter_mut().for_each(|cell| cell.timestamp += by);
    row.complex_deletions.iter_mut().for_each(|(_, older)| older.marked_for_delete_at += by);
}

impl Before {
    /// Nothing was there yet.
    const NOTHING: Before = Before { is_there: false, newest: NO_TIMESTAMP, newest_static: NO_TIMESTAMP };

    /// Looks at what is there before it is known what of it is live.
    fn note(&mut self, fragment: &Fragment) {
        let deletion = |deletion: &DeletionTime| deletion.marked_for_delete_at;
        let newest = match fragment {
            Fragment::PartitionStart(start) => deletion(&start.deletion),
            Fragment::RangeTombstone(change) => deletion(&change.deletion),
            Fragment::StaticRow(row) | Fragment::Row(row) => {
                let cells = row.cells.iter().map(|cell| cell.timestamp);
                let of_columns = row.complex_deletions.iter().map(|(_, older)| deletion(older));
                let own = [row.liveness.timestamp, deletion(&row.deletion), deletion(&row.shadowable)];
                own.into_iter().chain(cells).chain(of_columns).max().unwrap_or(NO_TIMESTAMP)
            }
            Fragment::PartitionEnd => NO_TIMESTAMP,
        };
        self.newest = self.newest.max(newest);
        if matches!(fragment, Fragment::PartitionStart(_) | Fragment::StaticRow(_)) {
            self.newest_static = self.newest_static.max(newest);
        }
    }
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
        let before = self.what_is_there(&table, &rows).await?;
        let named: Vec<_> = rows.iter().map(|row| (&row.place.key, row.place.clustering())).collect();
        // Of the same row twice the first one is new.
        let first = same_rows(table.shape().model(), &named).into_iter().map(|same| same[0]);
        let mut due: Vec<usize> = first.filter(|&at| !before[at].is_there).collect();
        due.sort_unstable();
        let mut answers = vec![Some(false); rows.len()];
        let records = due.iter().map(|&at| rows[at].record(before[at]));
        let written = self.write_each((id, version), records).await?;
        for (at, written) in due.into_iter().zip(written) {
            answers[at] = written.map(|()| true);
        }
        Ok(answers)
    }

    /// What there is of each of these rows.
    async fn what_is_there(&self, table: &ShardTable, rows: &[NewRow]) -> Result<Vec<Before>> {
        let shape = table.shape();
        // In compact storage a partition of one row has it as its static one.
        let is_static = shape.clustering_len() < shape.model().clustering.len();
        let limit = is_static.then_some(1);
        let request = |row: &NewRow| {
            let request = ReadRequest::new(row.place.key(), row.place.slice());
            Cow::Owned(ReadRequest { static_row: is_static, limit, caching: Caching::Look, ..request })
        };
        let requests = rows.iter().map(request).collect();
        let begun = table.table.begin_all(requests).await?.into_iter().map(|begun| (begun, ()));
        self.open_each(table, begun, async |begun, ()| self.before(begun, is_static).await).await
    }

    async fn before(&self, begun: Begun<'_>, is_static: bool) -> Result<Before> {
        let mut stream = begun.open().await?;
        let mut live = LiveRows::new(self.shard.clock().now_seconds());
        let (mut before, mut fragment) = (Before::NOTHING, Fragment::default());
        while stream.advance(&mut fragment).await? {
            before.note(&fragment);
            let is_row = matches!(fragment, Fragment::Row(_));
            let is_it = if is_static { matches!(fragment, Fragment::StaticRow(_)) } else { is_row };
            if live.keeps(&mut fragment) && is_it {
                return Ok(Before { is_there: true, ..before });
            }
            if is_static && is_row {
                break;
            }
        }
        Ok(before)
    }
}
