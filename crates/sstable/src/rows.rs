//! Several rows of one partition, read together: rows in one block, or not far from each other, are one request.
//!
//! ```text
//! rows       a   b   c         d  e  f          as they are asked for, ascending
//! blocks    |  1  |·|2|·······|   3    |        the index is asked for each
//! requests   —————————         ————————         side by side, each as far as the last of its rows seems to end
//! ```
//!
//! A partition without blocks is read like one block, from its head on.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use model::{Fragment, FragmentReader as _, Next, PartitionKey, PartitionStart, Slice};

use crate::Result;
use crate::big::entry::Promoted;
use crate::big::promoted_cursor::Found;
use crate::data::read_ahead::SMALL_GAP;
use crate::data::reader::{Blocks, DataReader};
use crate::forwarding::ForwardingReader;
use crate::seek::Sought;
use crate::sstable::{ReadOptions, SSTable};

/// What there is of a row: from the partition's start to its end, as [`SSTable::read`] gives it without the static row.
pub type RowFragments = VecDeque<Fragment>;

/// Rows that are read with one request, or one after the other where that is large.
struct Near {
    /// Which of those that were asked for, ascending.
    rows: Vec<usize>,
    /// Their blocks, from where the first row seems to begin to where the last one seems to end.
    found: Found,
}

impl SSTable {
    /// Rows of one partition, what there is of each in its place; `None` if the partition is not there. Each slice is of one row, and
    /// begins where the one before it ends or behind that. Of the options `reverse`, `static_row`, `limit` and `neighbours` say nothing
    /// here.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format, of any of the rows. Where fences lead to blocks that are not what they say, that is
    /// an error too: who reads the rows one by one does without the fences then.
    ///
    /// # Panics
    /// If there are no rows, or they do not ascend.
    pub async fn read_rows(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        rows: &[&Slice],
        options: ReadOptions,
    ) -> Result<Option<Vec<RowFragments>>> {
        let options = ReadOptions { reverse: false, static_row: false, limit: None, ..options };
        if !options.is_filtered && !self.filter().may_contain(key).await? {
            return Ok(None);
        }
        if let Some(large) = self.large_by_fences(key, options.search).await? {
            return self.rows_of_blocks(key, large, rows, options).await.map(Some);
        }
        let all = Slice { start: rows[0].start.clone(), end: rows[rows.len() - 1].end.clone() };
        let whole = ReadOptions { limit: Some(rows.len() as u64), ..options };
        let reader = match self.seek(key, &all, whole).await? {
            Sought::There(reader) => reader,
            Sought::Absent => return Ok(None),
            Sought::Unknown => {
                let Some(place) = self.index().look_up(key).await? else { return Ok(None) };
                if let Some(promoted) = self.index().promoted(&place).await? {
                    return self.rows_of_blocks(key, (place.start, promoted), rows, options).await.map(Some);
                }
                let range = self.index().range(&place).await?;
                self.check_range(&range)?;
                self.forward(key, range, &all, whole)
            }
        };
        let reader = ForwardingReader::whole(self, key, *reader, None, rows[0], options.search);
        gather(reader, rows.iter().copied()).await.map(Some)
    }

    async fn rows_of_blocks(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        (place, promoted): (u64, Promoted),
        rows: &[&Slice],
        options: ReadOptions,
    ) -> Result<Vec<RowFragments>> {
        let cursor = self.index().cursor(&self.data().codec, &promoted).with_rows();
        let found = runtime::join_all(rows.iter().map(|row| cursor.find(row, options.search))).await;
        let near = near(found.into_iter().collect::<Result<_>>()?, self.read_buffer(options));
        let read = near.iter().map(async |Near { rows: places, found }| {
            let reader = self.near_rows(key, (place, &promoted), found, rows[places[0]], options)?;
            gather(reader, places.iter().map(|&at| rows[at])).await
        });
        let mut all = vec![RowFragments::default(); rows.len()];
        for (near, read) in near.iter().zip(runtime::join_all(read).await) {
            let is_told = promoted.ordinal.is_some() && !near.found.blocks.is_empty();
            for (&at, fragments) in near.rows.iter().zip(read?) {
                if let Some(absences) = self.absences(rows[at]).filter(|_| is_told) {
                    absences.note(!fragments.iter().any(|fragment| matches!(fragment, Fragment::Row(_))));
                }
                all[at] = fragments;
            }
        }
        Ok(all)
    }

    /// Reads those rows of a large partition of which the first is this one, and which stand in these blocks.
    fn near_rows(
        self: &Rc<SSTable>,
        key: &PartitionKey,
        (place, promoted): (u64, &Promoted),
        found: &Found,
        first: &Slice,
        options: ReadOptions,
    ) -> Result<ForwardingReader> {
        let range = self.part_of_partition(place, found.bytes.clone())?;
        let pace = self.pace(options, found.bytes.start, found);
        let start = PartitionStart { key: key.clone(), deletion: promoted.deletion };
        let blocks = Blocks { range, open: found.open };
        let reader = DataReader::blocks(self.data().clone(), start.clone(), blocks, pace, first.clone());
        Ok(ForwardingReader::whole(self, key, reader.without_more(), Some(start), first, options.search))
    }
}

/// Which rows to read with one another, of whose blocks the index told this: those in the same blocks, and those in blocks that are no
/// farther apart than is read over, as long as all of that is one request of at most so many bytes: other requests are made side by side. A row
/// without blocks is not there, and is in nobody's way.
fn near(found: Vec<Found>, most: u64) -> Vec<Near> {
    let mut near: Vec<Near> = Vec::new();
    for (at, found) in found.into_iter().enumerate() {
        let last = near.iter_mut().rfind(|near| !near.found.blocks.is_empty());
        let is_near = |last: &&mut Near| {
            let Range { start, end } = last.found.bytes;
            let is_close = found.bytes.start <= end.saturating_add(SMALL_GAP);
            let is_one = found.bytes.end.saturating_sub(start) <= most;
            !found.blocks.is_empty() && (found.blocks.start < last.found.blocks.end || is_close && is_one)
        };
        match last.filter(is_near) {
            Some(last) => {
                last.rows.push(at);
                last.found.up_to(found);
            }
            None => near.push(Near { rows: vec![at], found }),
        }
    }
    near
}

/// Reads row after row; the reader is at the first of them.
async fn gather<'a>(
    mut reader: ForwardingReader,
    rows: impl Iterator<Item = &'a Slice>,
) -> Result<Vec<RowFragments>> {
    let mut read = Vec::new();
    let mut fragment = Fragment::default();
    for (at, row) in rows.enumerate() {
        if at > 0 {
            reader.fast_forward_to(row);
        }
        let mut fragments = RowFragments::new();
        loop {
            match reader.pop(&mut fragment)? {
                Next::Fragment => fragments.push_back(std::mem::take(&mut fragment)),
                Next::Fill => reader.fill().await?,
                Next::End => break,
            }
        }
        read.push(fragments);
    }
    Ok(read)
}
