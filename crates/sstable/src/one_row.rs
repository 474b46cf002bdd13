//! One row of a large partition that has fences: found in the index pages that are in memory, and read with one request.

use std::rc::Rc;

use model::{Bytes, DeletionTime, KeyView, PartitionKey, PartitionStart, Slice};

use crate::big::promoted_cursor::Found;
use crate::data::one_row::InBlocks;
use crate::data::reader::Blocks;
use crate::parts::fences::Large;
use crate::reader::PartitionReader;
use crate::sstable::{ReadOptions, SSTable};
use crate::{Result, Search};

/// What the fences tell of the partition that a row is in.
#[derive(Debug)]
pub struct WayToRow(Large);

/// What has become of the search for a row.
#[derive(Debug)]
pub enum OneRow {
    /// Nothing was read of it: the way was wrong. It is to be [read](SSTable::read) as slices are.
    Unread,
    /// It is not there, nor is anything that deletes it but a deletion of its partition.
    Absent,
    /// A [usual](model::flat::is_usual) row.
    Usual {
        /// The deletion of its partition, which may hide it.
        partition_deletion: DeletionTime,
        /// The row, as [`model::flat`] has it, alone.
        bytes: Bytes,
    },
    /// What there is, to be decoded.
    Reader(PartitionReader),
}

impl WayToRow {
    /// The deletion of the partition.
    pub fn partition_deletion(&self) -> DeletionTime {
        self.0.promoted.deletion
    }
}

impl SSTable {
    /// The way to rows of a partition that the filter has let pass, as far as it is in memory: if it is a large one that the fences
    /// know.
    pub fn way_to_row(&self, key: KeyView<'_>) -> Option<WayToRow> {
        self.index().large_at_hand(key).map(WayToRow)
    }

    /// Reads the row that a slice is of, without the static row. Less is done for it than by [`SSTable::read`], and what comes is the
    /// same.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn read_row(
        self: &Rc<SSTable>,
        WayToRow(large): WayToRow,
        key: &PartitionKey,
        slice: &Slice,
        options: ReadOptions,
    ) -> Result<OneRow> {
        let slice = &*slice.beside_rows();
        let (found, blocks) = match self.find_row(&large, slice).await {
            Ok(found) => found,
            Err(error) => return self.index().fencing.give_up(error).map(|()| OneRow::Unread),
        };
        let absences = self.absences(slice).filter(|_| !blocks.range.is_empty());
        let deletion = large.promoted.deletion;
        let start = || PartitionStart { key: key.clone(), deletion };
        let pace = self.pace(options, found.bytes.start, &found);
        let read = self.data().row_in_blocks(start, blocks, pace, slice).await?;
        let note = |is_absent| absences.iter().for_each(|absences| absences.note(is_absent));
        Ok(match read {
            InBlocks::Absent => {
                note(true);
                OneRow::Absent
            }
            InBlocks::Usual(bytes) => {
                note(false);
                OneRow::Usual { partition_deletion: deletion, bytes }
            }
            InBlocks::Other(reader) => {
                let reader = Box::new(reader.noting(absences));
                OneRow::Reader(PartitionReader::Forward(reader))
            }
        })
    }

    /// The blocks that can hold a row, as the index counts and where they are.
    async fn find_row(&self, large: &Large, slice: &Slice) -> Result<(Found, Blocks)> {
        let cursor = self.index().cursor(&self.data().codec, &large.promoted).with_rows();
        let found = cursor.find(slice, Search::Binary).await?;
        let range = self.part_of_partition(large.data, found.bytes.clone())?;
        let open = found.open;
        Ok((found, Blocks { range, open }))
    }
}
