//! Reads on a shard: the request, its admission, the read, and the rows made of it.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use model::{Bytes, Direction, Fragment, PartitionKey, Position, Slice, Token, flat};
use smallvec::SmallVec;
use storage::admission::Permit;
use storage::commit_log::TableId;
use storage::{Begun, Tokens};

use super::packer::{Packer, Taken};
use super::resume::Resume;
use super::shape::Place;
use super::shards::Work;
use super::sink::Sink;
use super::value::Encoded;
use super::worker::{ShardTable, Worker};
use crate::{Error, Result};

/// Bytes of memory that a read takes besides the page that it fills and what SSTables have at hand.
pub(super) const READ_MEMORY: usize = 64 << 10;

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

/// The bounds of a slice; those of most keys have no place of their own in memory.
pub(super) type FlatSlice = SmallVec<[u8; 64]>;

/// A slice of a partition.
#[derive(Clone, Debug)]
pub(super) struct SliceRead {
    pub(super) selection: Selection,
    pub(super) token: Token,
    pub(super) key: Encoded,
    /// As flat bytes.
    pub(super) slice: FlatSlice,
    pub(super) reverse: bool,
    /// Whether a partition of which only the static row is left is a row.
    pub(super) with_static_only: bool,
}

/// The same, as the shard reads it.
pub(super) struct PartitionRead {
    pub(super) key: PartitionKey,
    pub(super) slice: Slice,
    pub(super) direction: Direction,
    pub(super) with_static_only: bool,
    /// Whether memory was asked for the only row of the slice, and does not know.
    pub(super) is_looked_up: bool,
}

/// A part of the ring.
#[derive(Clone, Debug)]
pub(super) struct ScanRead {
    pub(super) selection: Selection,
    pub(super) tokens: Tokens,
    pub(super) resume: Option<Resume>,
}

/// What has become of a read.
#[derive(Debug)]
pub(super) enum Answer<S> {
    /// The sink has the rows.
    Rows(S),
    /// The table has changed since the read was made, and the sink has none of the rows from where it says that it is to be gone
    /// on; none at all if it does not say that.
    Altered(S),
}

impl Worker {
    /// Gives the rows of a slice to a sink. What is in memory is there at once.
    pub(super) fn read_slice<S: Sink + 'static>(
        self: &Rc<Self>,
        read: SliceRead,
        sink: S,
    ) -> Result<Work<Answer<S>>> {
        let SliceRead { selection, token, key, slice, reverse, with_static_only } = read;
        let key = PartitionKey { token, bytes: Bytes::from(&*key) };
        let slice = flat::slice(&Bytes::from(&*slice)).map_err(|error| Error::Usage(error.to_string()))?;
        let direction = if reverse { Direction::Reverse } else { Direction::Forward };
        let is_looked_up = false;
        let read = PartitionRead { key, slice, direction, with_static_only, is_looked_up };
        self.read_partition(selection, read, sink)
    }

    /// Gives the rows of a part of a partition to a sink.
    pub(super) fn read_partition<S: Sink + 'static>(
        self: &Rc<Self>,
        selection: Selection,
        read: PartitionRead,
        sink: S,
    ) -> Result<Work<Answer<S>>> {
        let table = self.table(selection.table)?;
        // Of a slice rows may be shown before it is known which SSTables it asks.
        let of_sstables = match read.is_looked_up {
            true => table.table.least_memory(S::READS_ON),
            false => table.table.slice_memory(S::READS_ON),
        };
        let memory = page_memory(&selection).saturating_add(of_sstables);
        let admission = self.admission()?;
        if let Some(permit) = admission.try_admit(memory) {
            return self.read_admitted(&table, selection, read, sink, permit);
        }
        let (worker, admission) = (self.clone(), admission.clone());
        Ok(Work::later(move || async move {
            let permit = admission.admit(memory).await?;
            worker.read_admitted(&table, selection, read, sink, permit)?.answer().await
        }))
    }

    fn read_admitted<S: Sink + 'static>(
        &self,
        table: &ShardTable,
        selection: Selection,
        read: PartitionRead,
        sink: S,
        mut permit: Permit,
    ) -> Result<Work<Answer<S>>> {
        let page = page_memory(&selection);
        let mut packer = match self.packer(table, selection, sink) {
            Ok(packer) => packer,
            Err(sink) => return Ok(Work::Done(Answer::Altered(sink))),
        };
        packer.with_static_only |= read.with_static_only;
        packer.direction = read.direction;
        if !read.is_looked_up && packer.take_known(&table.table, &read.key, &read.slice) {
            return Ok(Work::Done(Answer::Rows(packer.finish())));
        }
        let mut begun = table.table.begin(Cow::Owned(packer.request(read.key, read.slice)));
        if let Begun::Ready(stream) = &mut begun
            && packer.take_some(stream, &mut Fragment::default())? == Taken::All
        {
            return Ok(Work::Done(Answer::Rows(packer.finish())));
        }
        let memory = page.saturating_add(table.table.memory_of(&begun, S::READS_ON));
        let admission = self.admission()?.clone();
        Ok(Work::later(move || async move {
            let _permit = if permit.try_grow(memory) {
                permit
            } else {
                drop(permit);
                admission.admit(memory).await?
            };
            let mut stream = begun.open().await?;
            packer.take_all(&mut stream).await?;
            Ok(Answer::Rows(packer.finish()))
        }))
    }

    /// Gives the rows of this shard's part of some tokens to a sink. If the table has changed since the read was made, or does
    /// so between two partitions, the sink knows where to go on.
    pub(super) async fn read_scan<S: Sink>(&self, read: ScanRead, sink: S) -> Result<Answer<S>> {
        let table = self.table(read.selection.table)?;
        let memory = page_memory(&read.selection).saturating_add(table.table.scan_memory());
        let _permit = self.admission()?.admit(memory).await?;
        let version = read.selection.version;
        let mut packer = match self.packer(&table, read.selection, sink) {
            Ok(packer) => packer,
            Err(sink) => return Ok(Answer::Altered(sink)),
        };
        let Some(tokens) = read.tokens.common(&table.table.tokens()) else {
            return Ok(Answer::Rows(packer.finish()));
        };
        let mut at = match read.resume {
            Some(resume) => {
                let position = resume.position()?;
                Some((PartitionKey::new(Bytes::from(resume.key)), position))
            }
            None => None,
        };
        while !packer.is_full() {
            if table.shape().version != version {
                at.iter().for_each(|(key, position)| packer.go_on_at(key, position.as_ref()));
                return Ok(Answer::Altered(packer.finish()));
            }
            at = match at {
                Some((key, Some(start))) if tokens.contain(key.token) => {
                    packer.slice(&table, key.clone(), Slice { start, end: Position::end() }).await?;
                    Some((key, None))
                }
                behind => {
                    packer.with_static_only = true;
                    let large = packer.scan(&table, tokens, behind.map(|(key, _)| key)).await?;
                    let Some((key, position)) = large else { break };
                    packer.with_static_only = false;
                    Some((key, Some(position)))
                }
            };
        }
        Ok(Answer::Rows(packer.finish()))
    }

    /// What makes rows of what is read; the sink again if the table has changed since the read was made.
    pub(super) fn packer<S: Sink>(
        &self,
        table: &ShardTable,
        selection: Selection,
        sink: S,
    ) -> std::result::Result<Packer<S>, S> {
        let shape = table.shape();
        if shape.version != selection.version {
            return Err(sink);
        }
        let now = selection.now.unwrap_or_else(|| self.shard.clock().now_seconds());
        let schema = table.table.definition().schema.clone();
        Ok(Packer::new(shape, schema, selection, sink, (now, table.habit.clone())))
    }
}

/// What a read takes beside its SSTables: the page that it fills, among others. Bytes.
fn page_memory(selection: &Selection) -> usize {
    READ_MEMORY.saturating_add(selection.bytes)
}

/// The token before the first one of a range.
pub(super) fn after(first: Token) -> Option<Token> {
    first.checked_sub(1)
}
