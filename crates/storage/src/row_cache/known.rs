//! A row that the cache has, or of which it has that it is not there: found without a request, a stream or a copy.
//!
//! ```text
//! key ──► the partition, if it is kept whole ─────────────────────────────► the row in it
//!    └──► else the parts of its partition ──► the part around the row ──┘
//! ```

use std::rc::Rc;

use model::flat::FlatRow;
use model::{Bytes, Clustering, DeletionTime, KeyView, Schema, Token};

use super::RowCache;
use super::stretch::Stretch;
use super::whole;
use crate::definition::Definition;

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
        if !definition.caches_rows {
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

    /// Whether a row of which nothing is kept is to be kept once it is read.
    pub(crate) fn wants_row(&self, token: Token, row: &Clustering, definition: &Definition) -> bool {
        let keeps = definition.caches_rows && self.0.cache.capacity() > 0;
        let values = || row.values.iter().flatten().map(|value| &**value);
        keeps && (!self.0.cache.is_full() || self.was_asked_for(token, values()))
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
