//! A partition's index against its rows: the head, the offset map, and for each block where it begins
//! and ends, its first and last position, and the tombstone that is open at its end.

use std::ops::Range;

use model::{DeletionTime, Position};

use super::report::Report;
use crate::Version;
use crate::big::block_walk::BlockWalk;
use crate::big::entry::{Entry, Promoted};
use crate::big::promoted_cursor::Block;
use crate::cache::cached_file::CachedFile;
use crate::data::row::RowCodec;

/// Walks over the blocks of a partition beside its rows. Places in the data are relative to the
/// partition's start.
pub(super) struct BlockCheck {
    file: CachedFile,
    walk: BlockWalk,
    /// Where in Index.db the promoted index is.
    range: Range<u64>,
    /// Where the blocks must end.
    map: u64,
    current: Option<Current>,
    /// Where the rows so far end.
    end: u64,
    is_broken: bool,
}

struct Current {
    at: u64,
    block: Block,
    last: Option<(Position, DeletionTime)>,
}

impl BlockCheck {
    /// At the first block of an entry that has blocks.
    pub(super) async fn new(
        file: CachedFile,
        codec: &RowCodec,
        version: Version,
        entry: &Entry,
        head: (u64, DeletionTime),
        report: &mut Report,
    ) -> Option<BlockCheck> {
        let promoted = match Promoted::read(&file, entry.promoted.clone(), version).await {
            Ok(promoted) => promoted,
            Err(error) => {
                report.error(error);
                return None;
            }
        };
        let range = entry.promoted.clone();
        if promoted.head_len != head.0 {
            let what =
                format!("the partition's head has {} bytes, the index says {}", head.0, promoted.head_len);
            report.wrong(file.path(), range.start, what);
        }
        if promoted.deletion != head.1 {
            let what = "the partition's deletion is not the one that the index tells";
            report.wrong(file.path(), range.start, what);
        }
        let (map, walk) = (promoted.map, BlockWalk::new(promoted, version));
        let (current, end, is_broken) = (None, head.0, false);
        let mut check = BlockCheck { file, walk, range, map, current, end, is_broken };
        check.advance(codec, report).await;
        Some(check)
    }

    /// The next row or marker: its place, where it stands, and what is open behind it.
    pub(super) async fn item(
        &mut self,
        codec: &RowCodec,
        place: Range<u64>,
        position: &Position,
        open: DeletionTime,
        report: &mut Report,
    ) {
        if self.is_broken {
            return;
        }
        self.end = place.end;
        let Some(current) = &mut self.current else {
            return self.wrong(self.range.start, "rows follow behind the last block", report);
        };
        let at = current.at;
        if current.last.is_none() && current.block.offset != place.start {
            let what = format!(
                "a block begins at {} of its partition, not at {}",
                place.start, current.block.offset
            );
            return self.wrong(at, what, report);
        }
        if current.last.is_none() && current.block.first != *position {
            return self.wrong(at, "a block's first position is not that of its first row", report);
        }
        current.last = Some((position.clone(), open));
        if place.end > current.block.end() {
            let what = format!("a block ends inside the row at {} of its partition", place.start);
            return self.wrong(at, what, report);
        }
        if place.end == current.block.end() {
            self.end_block(report);
            self.advance(codec, report).await;
        }
    }

    /// The partition has ended.
    pub(super) fn finish(mut self, report: &mut Report) {
        if self.is_broken {
            return;
        }
        if let Some(current) = &self.current {
            // Cassandra counts the byte that ends the partition in the last block, ScyllaDB does not.
            if current.last.is_none() || current.block.end() != self.end + 1 {
                let at = current.at;
                return self.wrong(at, "a block ends behind the last row of its partition", report);
            }
            self.end_block(report);
        }
        if self.walk.position() != self.map {
            self.wrong(self.walk.position(), "the blocks do not end where the offset map begins", report);
        }
    }

    fn end_block(&mut self, report: &mut Report) {
        let Some(Current { at, block, last: Some((position, open)) }) = self.current.take() else { return };
        if block.last != position {
            report.wrong(self.file.path(), at, "a block's last position is not that of its last row");
        }
        if block.end_open != open {
            report.wrong(
                self.file.path(),
                at,
                "a block's open tombstone is not the one that is open at its end",
            );
        }
    }

    async fn advance(&mut self, codec: &RowCodec, report: &mut Report) {
        if let Err(error) = self.load(codec, report).await {
            self.is_broken = true;
            report.error(error);
        }
    }

    async fn load(&mut self, codec: &RowCodec, report: &mut Report) -> crate::Result<()> {
        let at = self.walk.position();
        if self.walk.mapped(&self.file).await?.is_some_and(|mapped| mapped != at) {
            let what = format!("the offset map is wrong about block {}, which is here", self.walk.number());
            report.wrong(self.file.path(), at, what);
        }
        let block = self.walk.next(&self.file, codec).await?;
        self.current = block.map(|block| Current { at, block, last: None });
        Ok(())
    }

    /// What follows in this partition cannot be told any more.
    fn wrong(&mut self, at: u64, what: impl Into<String>, report: &mut Report) {
        self.is_broken = true;
        report.wrong(self.file.path(), at, what);
    }
}
