//! A row that is not in memory, from the only SSTable that may have it: without a stream, if it is a usual row.

use std::rc::Rc;

use model::merge::{Mapped, Merge};
use model::{PartitionKey, Slice};
use sstable::{OneRow, WayToRow};

use super::Table;
use crate::Result;
use crate::row_cache::KeptRow;
use crate::slices;
use crate::source::Source;
use crate::sstable_set::{Member, SoughtSlice};

/// What has become of a row that was to be fetched.
pub enum Fetched {
    /// Nothing was read: it has to be [read](Table::read).
    Unread,
    /// There is none.
    Absent,
    /// This is all that there is of it.
    Row(KeptRow),
    /// It is in this stream.
    Stream(Merge<Source>),
}

impl Table {
    /// Reads the row that a slice is of, of which memory [has nothing](crate::row_cache::Known::OnDisk), with less than a read of a slice
    /// takes. That is where one SSTable may have it, of whose blocks memory tells, and where it is not to be kept.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn fetch_row(&self, key: &PartitionKey, slice: &Slice) -> Result<Fetched> {
        let Some((member, way)) = self.only_member(key, slice) else { return Ok(Fetched::Unread) };
        let read = member.sstable.read_row(way, key, slice, slices::options_of_row()).await?;
        if !matches!(read, OneRow::Unread) {
            self.0.row_cache.count_miss();
        }
        Ok(match read {
            OneRow::Unread => Fetched::Unread,
            OneRow::Absent => Fetched::Absent,
            OneRow::Usual { partition_deletion, bytes } => {
                Fetched::Row(KeptRow::alone(partition_deletion, bytes))
            }
            OneRow::Reader(reader) => {
                let source = Source::SSTable(Mapped::new(reader, member.columns.clone()));
                Fetched::Stream(Merge::of_one(source))
            }
        })
    }

    /// The only SSTable that may have a row, if it has the table's columns and nothing else knows of the row or is to.
    fn only_member(&self, key: &PartitionKey, slice: &Slice) -> Option<(Rc<Member>, WayToRow)> {
        let memtables = self.0.memtables.borrow();
        let has_key = |memtable: &Rc<_>| super::Memtable::has(memtable, key.token);
        if has_key(&memtables.active) || memtables.frozen.iter().any(has_key) {
            return None;
        }
        let definition = self.0.definition.borrow();
        let row = definition.schema.row_of(slice).filter(|row| !row.is_empty())?;
        let set = self.0.set.borrow();
        self.note_looks(&set);
        let sought = SoughtSlice::new(slice, &definition.schema);
        let candidates = set.of_slice(key, Some(sought));
        let [only] = candidates.members() else { return None };
        let way = only.sstable.way_to_row(key.view()).filter(|_| only.columns.is_identity())?;
        // Last, as it notes that the row was asked for.
        let is_kept = self.0.row_cache.wants_row(key.token, row.views().flatten(), &definition);
        (!is_kept).then(|| (only.clone(), way))
    }
}
