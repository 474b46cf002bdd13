//! Many rows at once: each goes to its shard, together with the others of it, and there they are opened side by side.
//!
//! ```text
//! rows ──by token──► shard 0: rows ──begin_all──► 32 at a time, each with its permit ──► answers, each at its place
//!               └──► shard 1: …
//! ```

use std::collections::BTreeSet;

use model::{Clustering, Schema, Token};
use storage::Begun;
use storage::commit_log::TableId;

use super::Table;
use super::encode::Encoder;
use super::locks::Lock;
use super::select::READ_MEMORY;
use super::worker::{ShardTable, Worker};
use crate::Result;

/// So many rows are read or written at once.
const AT_ONCE: usize = 32;

/// What a shard is to do with some rows of a table, and of which version of its columns they are.
#[derive(Clone, Debug)]
pub(super) struct Share<T> {
    pub(super) table: TableId,
    pub(super) version: u64,
    pub(super) rows: Vec<T>,
}

impl Table {
    /// Does something with each of so many rows on its shard; the answers stand where the rows did. `work` leaves out those
    /// of a table that was altered meanwhile: they are encoded anew, and done again.
    pub(super) async fn for_each_row<T: Send + 'static, A: Send + 'static>(
        &self,
        count: usize,
        encode: impl Fn(&Encoder<'_>, usize) -> Result<(Token, T)>,
        work: impl AsyncFnOnce(&Worker, Share<T>) -> Result<Vec<Option<A>>> + Copy + Send + 'static,
    ) -> Result<Vec<A>> {
        let mut answers: Vec<Option<A>> = Vec::new();
        answers.resize_with(count, || None);
        loop {
            let due: Vec<usize> = (0..count).filter(|&at| answers[at].is_none()).collect();
            if due.is_empty() {
                return Ok(answers.into_iter().flatten().collect());
            }
            let shape = self.state.shape();
            let encoder = self.encoder(&shape);
            let rows = due.iter().map(|&at| encode(&encoder, at)).collect::<Result<Vec<_>>>()?;
            let (table, version) = (self.state.id, shape.version);
            let of_shards = self.by_shard(rows, |row| row.0).into_iter().map(|(shard, places, rows)| {
                let share = Share { table, version, rows: rows.into_iter().map(|(_, row)| row).collect() };
                let call = self.inner.shards[shard].call(async move |worker| work(&worker, share).await);
                async move { call.await.map(|answers| (places, answers)) }
            });
            let mut is_altered = false;
            for answer in runtime::join_all(of_shards).await {
                let (places, of_shard) = answer?;
                for (place, answer) in places.into_iter().zip(of_shard) {
                    is_altered |= answer.is_none();
                    answers[due[place]] = answer;
                }
            }
            if is_altered {
                self.until_altered().await?;
            }
        }
    }

    /// What goes to each shard, and at which places it stood.
    pub(super) fn by_shard<T>(
        &self,
        all: Vec<T>,
        token: impl Fn(&T) -> Token,
    ) -> Vec<(usize, Vec<usize>, Vec<T>)> {
        let mut shards: Vec<(usize, Vec<usize>, Vec<T>)> =
            (0..self.inner.shards.len()).map(|shard| (shard, Vec::new(), Vec::new())).collect();
        for (place, one) in all.into_iter().enumerate() {
            let (_, places, of_shard) = &mut shards[self.inner.ring.shard_of(token(&one))];
            places.push(place);
            of_shard.push(one);
        }
        shards.retain(|(_, places, _)| !places.is_empty());
        shards
    }
}

impl Worker {
    /// Waits until nobody else has any of these keys. Everybody takes them in the same order.
    pub(super) async fn lock_all<'a>(
        &self,
        table: &'a ShardTable,
        keys: impl Iterator<Item = &[u8]>,
    ) -> Vec<Lock<'a>> {
        let mut locks = Vec::new();
        for key in keys.collect::<BTreeSet<_>>() {
            locks.push(table.locks.lock(key).await);
        }
        locks
    }

    /// Does something with reads of slices that have begun, a few at a time, as there is memory for them.
    pub(super) async fn open_each<'b, B, T>(
        &self,
        table: &ShardTable,
        begun: impl ExactSizeIterator<Item = (Begun<'b>, B)>,
        open: impl AsyncFn(Begun<'b>, B) -> Result<T>,
    ) -> Result<Vec<T>> {
        let admission = self.admission()?;
        let opened = begun.map(async |(begun, of_caller)| {
            let memory = READ_MEMORY + table.table.memory_of(&begun, false);
            let _permit = admission.admit(memory).await?;
            open(begun, of_caller).await
        });
        in_turns(opened).await
    }

    /// Writes each of these mutations; `None` for those of a table that was altered meanwhile.
    pub(super) async fn write_each(
        &self,
        (table, version): (TableId, u64),
        records: impl ExactSizeIterator<Item = Vec<u8>>,
    ) -> Result<Vec<Option<()>>> {
        in_turns(records.map(|record| self.write(table, version, record))).await
    }
}

/// The places of those that name the same row, of each row together and in their order: equal values need not be equal
/// bytes. Rows are named by what tells partitions apart, and their clustering key.
pub(super) fn same_rows<K: Ord>(schema: &Schema, rows: &[(K, Clustering)]) -> Vec<Vec<usize>> {
    let compare = |&a: &usize, &b: &usize| {
        let ((a_key, a), (b_key, b)) = (&rows[a], &rows[b]);
        a_key.cmp(b_key).then_with(|| schema.compare_rows(a, b))
    };
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(compare);
    order.chunk_by(|a, b| compare(a, b).is_eq()).map(<[usize]>::to_vec).collect()
}

/// Does it all, a few at a time.
async fn in_turns<T>(
    mut work: impl ExactSizeIterator<Item = impl Future<Output = Result<T>>>,
) -> Result<Vec<T>> {
    let mut done = Vec::with_capacity(work.len());
    while work.len() > 0 {
        for one in runtime::join_all(work.by_ref().take(AT_ONCE)).await {
            done.push(one?);
        }
    }
    Ok(done)
}
