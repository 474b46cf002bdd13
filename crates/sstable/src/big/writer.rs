//! Index.db, written partition by partition: the writing side of [`super::entry`] and [`super::promoted_cursor`],
//! where the bytes are drawn.
//!
//! The blocks of a partition are collected while its rows are written. Only a partition with two or more gets a
//! promoted index.

use model::{DeletionTime, Token};
use runtime::NewFile;

use super::entry::{OFFSET, Promoted};
use super::promoted_cursor::put_block_tail;
use super::spool::Spool;
use crate::appending::Appending;
use crate::data::row::put_deletion_time;
use crate::encode::Encode;
use crate::parts::fences::FencesBuilder;
use crate::parts::row_filter::RowFilterBuilder;
use crate::{Error, Result, Version};

/// With so many bytes at hand, a request is worth it.
const FULL: usize = 256 << 10;

/// Cassandra counts the bytes of a promoted index with a Java int.
const LONGEST_PROMOTED: u64 = i32::MAX as u64;

/// After so many bytes of a partition's index its blocks become twice as large: 256 MiB. So a partition of a hundred GB can be written in
/// small blocks, whose index would else be too long at its end, and one of less than some ten GB is as it was asked for.
const BEFORE_WIDER: u64 = 256 << 20;

/// Writes Index.db.
#[derive(Debug)]
pub(crate) struct IndexWriter {
    file: Appending,
    version: Version,
    out: Vec<u8>,
    blocks: Spool,
    offsets: Spool,
    count: u32,
    /// The range tombstone that is open where the next block begins.
    open: DeletionTime,
    fences: Option<FencesBuilder>,
    rows: Option<RowFilterBuilder>,
}

/// A partition that is written to its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenPartition<'a> {
    /// The token of the key.
    pub(crate) token: Token,
    /// The serialized key.
    pub(crate) key: &'a [u8],
    /// Where it begins in the uncompressed data.
    pub(crate) data: u64,
    /// Bytes before its first row: key, deletion, static row.
    pub(crate) head_len: u64,
    /// The deletion of the partition.
    pub(crate) deletion: DeletionTime,
}

/// A stretch of rows that a promoted index tells of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WrittenBlock<'a> {
    /// Where its first row or marker stands, encoded.
    pub(crate) first: &'a [u8],
    /// Where its last row or marker stands, encoded.
    pub(crate) last: &'a [u8],
    /// Bytes from the partition's start.
    pub(crate) offset: u64,
    /// Bytes in the data; the byte that ends the partition is none of them.
    pub(crate) width: u64,
    /// The range tombstone that is open at its end.
    pub(crate) end_open: DeletionTime,
}

impl IndexWriter {
    /// Writes to `file`, shows the entries to `fences`, and their blocks to `rows`, which are of no use without fences. What
    /// of a partition's blocks and their offsets has no room in memory is spooled for a while.
    pub(crate) fn new(
        file: NewFile,
        [blocks, offsets]: [Spool; 2],
        version: Version,
        fences: Option<FencesBuilder>,
        rows: Option<RowFilterBuilder>,
    ) -> IndexWriter {
        IndexWriter {
            file: Appending::new(file),
            version,
            out: Vec::new(),
            blocks,
            offsets,
            count: 0,
            open: DeletionTime::LIVE,
            rows: rows.filter(|_| fences.is_some()),
            fences,
        }
    }

    /// Where in Index.db the next entry begins.
    pub(crate) fn position(&self) -> u64 {
        self.file.len() + self.out.len() as u64
    }

    /// Whether the partition that is being written has blocks yet.
    pub(crate) fn has_blocks(&self) -> bool {
        self.count > 0
    }

    /// The least bytes of the next block of the partition that is being written, where so many are asked for.
    pub(crate) fn width_of_next(&self, asked: u32) -> u64 {
        wider(asked, self.blocks.len() + self.offsets.len())
    }

    /// The next block of the partition that is being written. Its last one is not needed if it is the only one.
    pub(crate) fn block(&mut self, block: WrittenBlock<'_>) {
        let at = self.blocks.len();
        if let Some(fences) = &mut self.fences {
            fences.block(self.count, at, block.first, self.open);
        }
        if let Some(rows) = &mut self.rows {
            rows.block(at, !self.open.is_live());
        }
        // An offset that does not fit is part of an index that is refused in the end.
        self.offsets.append(|to| to.put_u32(at as u32));
        let version = self.version;
        self.blocks.append(|to| {
            to.put(block.first);
            to.put(block.last);
            put_block_tail(block.offset, block.width, &block.end_open, version, to);
        });
        self.count += 1;
        self.open = block.end_open;
    }

    /// Whether so much is at hand that [`IndexWriter::flush`] is worth it.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() >= FULL || self.blocks.is_full() || self.offsets.is_full()
    }

    /// Writes what is at hand.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn flush(&mut self) -> Result<()> {
        for spool in [&mut self.blocks, &mut self.offsets] {
            if spool.is_full() {
                spool.spill().await?;
            }
        }
        if self.out.len() >= FULL {
            self.write().await?;
        }
        Ok(())
    }

    /// Ends the partition: its entry, with the promoted index of its blocks if they are two or more.
    ///
    /// # Errors
    /// What the operating system says; an index that is too large for Cassandra.
    pub(crate) async fn end(&mut self, partition: WrittenPartition<'_>) -> Result<()> {
        let at = self.position();
        if let Some(fences) = &mut self.fences {
            fences.entry(partition.token, partition.key, at);
        }
        self.out.put_short_bytes(partition.key);
        self.out.put_vint(partition.data);
        if self.count < 2 {
            self.out.put_vint(0);
            self.end_entry(None, partition.data);
            // One block of very long keys may have been spilled.
            self.blocks.discard().await?;
            self.offsets.discard().await?;
        } else {
            self.promoted(partition).await?;
        }
        self.count = 0;
        self.open = DeletionTime::LIVE;
        Ok(())
    }

    async fn promoted(&mut self, partition: WrittenPartition<'_>) -> Result<()> {
        let mut head = Vec::new();
        head.put_vint(partition.head_len);
        put_deletion_time(&partition.deletion, self.version, &mut head);
        head.put_vint(u64::from(self.count));
        let len = head.len() as u64 + self.blocks.len() + self.offsets.len();
        if len > LONGEST_PROMOTED {
            let what = format!(
                "the index of one partition would have {len} bytes, more than 2 GiB: a larger column_index_size makes it smaller"
            );
            return Err(Error::unfit(self.file.idle().await?.path(), what));
        }
        assert_eq!(self.offsets.len(), u64::from(self.count) * OFFSET, "every block has an offset");
        self.out.put_vint(len);
        self.out.put(&head);
        let WrittenPartition { head_len, deletion, data, .. } = partition;
        let (count, start) = (self.count, self.position());
        let map = start + self.blocks.len();
        let promoted = Promoted { head_len, deletion, count, blocks: start..map, map, ordinal: None };
        self.end_entry(Some(&promoted), data);
        let IndexWriter { file, out, blocks, offsets, .. } = self;
        for spool in [blocks, offsets] {
            spool
                .drain(async |piece| {
                    out.put(piece);
                    if out.len() >= FULL {
                        *out = file.append(std::mem::take(out)).await?;
                    }
                    Ok(())
                })
                .await?;
        }
        Ok(())
    }

    /// The fences so far, where there are to be any.
    pub(crate) fn fences(&mut self) -> Option<&mut FencesBuilder> {
        self.fences.as_mut()
    }

    /// The rows so far, where they are to be told.
    #[inline]
    pub(crate) fn rows(&mut self) -> Option<&mut RowFilterBuilder> {
        self.rows.as_mut()
    }

    /// Writes all that is left; the file, which is to be made durable, its fences, and its rows.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn finish(
        mut self,
    ) -> Result<(NewFile, Option<FencesBuilder>, Option<RowFilterBuilder>)> {
        self.write().await?;
        Ok((self.file.end().await?, self.fences, self.rows))
    }

    fn end_entry(&mut self, promoted: Option<&Promoted>, data: u64) {
        let is_large = self.fences.as_mut().is_some_and(|fences| fences.end_entry(promoted, data));
        if let Some(rows) = &mut self.rows {
            rows.end(is_large);
        }
    }

    async fn write(&mut self) -> Result<()> {
        self.out = self.file.append(std::mem::take(&mut self.out)).await?;
        Ok(())
    }
}

/// How many bytes a block has at least, if so many are asked for and the partition's index has that many bytes so far.
fn wider(asked: u32, index: u64) -> u64 {
    u64::from(asked).saturating_mul(1 << (index / BEFORE_WIDER).min(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many bytes of data a partition may have whose blocks take so many bytes of its index each.
    fn largest_partition(asked: u32, of_block: u64) -> u64 {
        let (mut index, mut data) = (0, 0);
        while index + of_block < LONGEST_PROMOTED {
            (index, data) = (index + of_block, data + wider(asked, index));
        }
        data
    }

    #[test]
    fn blocks_become_wider_where_the_index_would_be_too_long() {
        assert_eq!([0, BEFORE_WIDER - 1, BEFORE_WIDER].map(|index| wider(4096, index)), [4096, 4096, 8192]);
        assert_eq!(wider(4096, LONGEST_PROMOTED), 4096 << 7);
        assert_eq!(wider(u32::MAX, u64::MAX), u64::from(u32::MAX) << 16);
        // Clustering keys of 40 bytes.
        let of_block = 2 * 40 + 20 + OFFSET;
        assert!(LONGEST_PROMOTED / of_block * 4096 < 90 << 30, "without it");
        assert!(largest_partition(4096, of_block) > 2 << 40);
        assert!(BEFORE_WIDER / of_block * 4096 > 10_000_000_000, "so far they are as wide as asked for");
    }
}
