//! A row that the cache has, or of which it has that it is not there: found without a request, a stream or a copy.
//!
//! ```text
//! key ──► the partition, if it is kept whole ─────────────────────────────► the row in it
//!    └──► else the parts of its partition ──► the part around the row ──┘
//! ```

use std::rc::Rc;

use model::flat::FlatRow;
use model::{Bytes, DeletionTime, Direction, KeyView, PartitionKey, Schema, Slice, Token};

use super::RowCache;
use super::part::Part;
use super::stretch::{Draft, Stretch};
use super::whole;
use crate::definition::Definition;

/// One of so many parts of a cache is little.
const LITTLE: usize = 16;
/// What lies near the CPU as long as it is used. A part that does not takes longer to find than a few filters take to tell the same:
/// rows have some ten bits there. Bytes.
const NEAR: usize = 2 << 20;
/// So many SSTables take longer to ask than a part does to be found anywhere.
const MANY: u64 = 4;

/// What memory says of a row.
#[derive(Debug)]
pub enum Known {
    /// Not all: the row has to be read.
    Unknown,
    /// Nothing: what SSTables say of it is all.
    OnDisk,
    /// There is none, neither live nor deleted by itself.
    Absent,
    /// This is all that there is of it.
    Row(KeptRow),
}

/// A row where it stands in the cache, or was just read.
pub struct KeptRow {
    partition_deletion: DeletionTime,
    bytes: Bytes,
    /// Where it begins in the bytes.
    at: usize,
    is_usual: bool,
}

impl KeptRow {
    /// The deletion of its partition, which may hide it.
    pub fn partition_deletion(&self) -> DeletionTime {
        self.partition_deletion
    }

    /// The row with all that is in it, be it deleted or expired.
    #[inline]
    pub fn flat(&self) -> FlatRow<'_> {
        FlatRow::new(&self.bytes, &self.bytes[self.at..]).known_as(self.is_usual)
    }
}

impl RowCache {
    /// What the SSTables of the table say of the row with these values in all clustering columns, if that is kept and no
    /// range tombstone has to be looked for.
    pub(crate) fn known_row(&self, key: KeyView<'_>, row: &[&[u8]], definition: &Definition) -> Known {
        let directory = self.0.directory.borrow();
        let schema = &definition.schema;
        if !definition.caches_rows || self.0.cache.capacity() == 0 {
            return Known::OnDisk;
        }
        if !Rc::ptr_eq(directory.schema(), schema) {
            return Known::Unknown;
        }
        if self.0.has_wholes.get()
            && let Some(whole) = self.find_whole(key)
        {
            self.count_read(true, false);
            return Known::of(&whole::stretch_of(&whole), schema, row);
        }
        match directory.find_row(key, row) {
            Some(part) if part.stretch.is_free_of_ranges() => {
                self.touch(&part);
                self.count_read(true, false);
                Known::of(&part.stretch, schema, row)
            }
            Some(_) => Known::Unknown,
            None => Known::OnDisk,
        }
    }

    /// Whether a row of which nothing is kept is to be kept once it is known. It was asked for from now on.
    pub(crate) fn wants_row<'v>(
        &self,
        token: Token,
        row: impl Iterator<Item = &'v [u8]>,
        definition: &Definition,
    ) -> bool {
        let keeps = definition.caches_rows && self.0.cache.capacity() > 0;
        keeps && (!self.0.cache.is_full() || self.was_asked_for(token, row))
    }

    /// Whether it is to be kept that a row is not there which the filters of so many SSTables deny: they tell it again, if in more
    /// instructions. While little is kept of the table; later where many were asked, for who asks again. It was asked for from now
    /// on, or is kept.
    pub(crate) fn wants_absent(
        &self,
        token: Token,
        row: &[&[u8]],
        asked: u64,
        definition: &Definition,
    ) -> bool {
        let capacity = self.0.cache.capacity();
        if !definition.caches_rows || capacity == 0 {
            return false;
        }
        let has_little = self.0.cache.account(self.0.owner).bytes < NEAR.min(capacity / LITTLE);
        has_little || asked >= MANY && self.was_asked_for(token, row.iter().copied())
    }

    /// Keeps that a row is not there, neither live nor deleted by itself or in a range, and what SSTables say of its partition's
    /// deletion.
    pub(crate) fn keep_absent(&self, key: KeyView<'_>, row: &[&[u8]], head: Option<DeletionTime>) {
        let key = PartitionKey { token: key.token, bytes: Bytes::from(key.bytes) };
        let Slice { start, end } = Slice::of_prefix(row.iter().copied().collect());
        let (mut nothing, open) = (Draft::default(), DeletionTime::LIVE);
        let part = Part::of_rows(head, (&start, &end), open, &mut nothing, Direction::Forward);
        self.keep(&key, &Rc::new(part), &self.watch());
    }

    /// A row was read, and is not kept.
    pub(crate) fn count_miss(&self) {
        self.count_read(false, true);
    }
}

impl KeptRow {
    /// A [usual](model::flat::is_usual) row that is kept nowhere: the bytes are all of it.
    pub(crate) fn alone(partition_deletion: DeletionTime, bytes: Bytes) -> KeptRow {
        KeptRow { partition_deletion, bytes, at: 0, is_usual: true }
    }
}

impl Known {
    /// What a stretch that covers the row and is [free of ranges](Stretch::is_free_of_ranges) says of it.
    #[inline(always)]
    fn of(stretch: &Stretch, schema: &Schema, row: &[&[u8]]) -> Known {
        match stretch.place_of_row(schema, row) {
            Some((at, is_usual)) => {
                let partition_deletion = stretch.head.unwrap_or(DeletionTime::LIVE);
                Known::Row(KeptRow { partition_deletion, bytes: stretch.bytes.clone(), at, is_usual })
            }
            None => Known::Absent,
        }
    }
}

impl std::fmt::Debug for KeptRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptRow").field("at", &self.at).finish_non_exhaustive()
    }
}
