//! A slice of a partition from its end to its start.
//!
//! Rows can only be decoded forward. The reader takes the index blocks from the last one on, a few at a
//! time, decodes each piece forward and hands its fragments out backwards; so it holds one piece, never
//! the partition. A partition without index blocks is one piece.
//!
//! In a reversed stream a range tombstone change says which deletion is in force *below* its position.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use model::{
    DeletionTime, Fragment, FragmentReader, Next, PartitionKey, PartitionStart, Position,
    RangeTombstoneChange, Slice,
};

use crate::big::entry::Promoted;
use crate::big::promoted_cursor::{Block, Found, Within};
use crate::data::reader::{Blocks, DataReader, Guess, Pace};
use crate::sstable::{ReadOptions, SSTable};
use crate::{Error, Result};

/// So many blocks are a piece at the most, as far as one request holds them.
const MOST_BLOCKS: u32 = 64;

/// Reads a slice backwards.
#[derive(Debug)]
pub struct ReverseReader {
    table: Rc<SSTable>,
    slice: Slice,
    ready: VecDeque<Fragment>,
    left: Left,
    /// How many bytes of rows the next piece is to have.
    wanted: u64,
    /// Where in the last block the rows seem to end, before the first piece.
    exit: Option<Within>,
    /// Whether the first piece is to have all that is wanted, as long as that is not known.
    is_guess: bool,
    /// The tombstone in force below the last fragment; `None` before the first piece.
    open: Option<DeletionTime>,
    /// The most bytes of data that one request brings in.
    read_buffer: u64,
}

/// Where a large partition is: its head in the data, its promoted index, and the blocks that are wanted.
#[derive(Debug)]
pub(crate) struct PlaceOfBlocks {
    pub(crate) head: Range<u64>,
    pub(crate) promoted: Promoted,
    pub(crate) found: Found,
}

/// Where the rows of a piece seem to end, in bytes from the partition's start.
struct Exit {
    at: u64,
    /// How many bytes more are to be read in front of them.
    slack: u64,
    /// Up to where the first request goes.
    end: u64,
}

/// What is still to be read.
#[derive(Debug)]
enum Left {
    /// All of a partition without index blocks.
    Partition { key: PartitionKey, range: Range<u64>, with_static: bool },
    /// Blocks, the last one first; before them the head of the partition, if it is wanted.
    Blocks {
        head: Option<Range<u64>>,
        partition: u64,
        promoted: Promoted,
        numbers: Range<u32>,
        open: DeletionTime,
    },
    /// Nothing.
    Nothing,
}

impl ReverseReader {
    pub(crate) fn whole(
        table: Rc<SSTable>,
        key: PartitionKey,
        range: Range<u64>,
        slice: Slice,
        options: ReadOptions,
    ) -> ReverseReader {
        let left = Left::Partition { key, range, with_static: options.static_row };
        ReverseReader::new(table, slice, left, options)
    }

    pub(crate) fn blocks(
        table: Rc<SSTable>,
        start: PartitionStart,
        place: PlaceOfBlocks,
        slice: Slice,
        options: ReadOptions,
    ) -> ReverseReader {
        let PlaceOfBlocks { head, promoted, found } = place;
        let partition = head.start;
        let mut reader = ReverseReader::new(table, slice, Left::Nothing, options);
        if !options.static_row {
            reader.ready.push_back(Fragment::PartitionStart(start));
        }
        let head = options.static_row.then_some(head);
        reader.exit = Some(found.exit);
        reader.left = Left::Blocks { head, partition, promoted, numbers: found.blocks, open: found.open };
        reader
    }

    fn new(table: Rc<SSTable>, slice: Slice, left: Left, options: ReadOptions) -> ReverseReader {
        let read_buffer = table.read_buffer(options);
        let wanted = options.limit.map_or(u64::MAX, |rows| table.len_of_rows(rows));
        ReverseReader {
            table,
            slice,
            ready: VecDeque::new(),
            left,
            wanted,
            exit: None,
            is_guess: options.limit.is_some(),
            open: None,
            read_buffer,
        }
    }

    /// Reads the next piece. An error ends the stream.
    async fn next_piece(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.left, Left::Nothing) {
            Left::Nothing => Ok(()),
            Left::Partition { key, range, with_static } => {
                let pace = Pace::steady(self.read_buffer, false);
                let data = self.table.data().clone();
                let piece = DataReader::whole_piece(data, range, pace, self.slice.clone())
                    .expecting(&key)
                    .to_its_end();
                self.take(if with_static { piece } else { piece.without_static_row() }).await?;
                self.finish(DeletionTime::LIVE);
                Ok(())
            }
            Left::Blocks { head, partition, promoted, numbers, open } => {
                if let Some(head) = head {
                    self.read_head(head).await?;
                }
                if numbers.is_empty() {
                    self.finish(open);
                    return Ok(());
                }
                let first = self.read_blocks(partition, &promoted, numbers.clone()).await?;
                let numbers = numbers.start..first;
                self.left = Left::Blocks { head: None, partition, promoted, numbers, open };
                Ok(())
            }
        }
    }

    async fn read_head(&mut self, head: Range<u64>) -> Result<()> {
        let pace = Pace::steady((head.end - head.start).min(self.read_buffer), false);
        let data = self.table.data().clone();
        let mut reader = DataReader::whole_piece(data, head, pace, self.slice.clone());
        while let Some(fragment) = reader.next().await? {
            self.ready.push_back(fragment);
        }
        Ok(())
    }

    /// Reads the last few of the blocks; the number of the first one read.
    async fn read_blocks(&mut self, partition: u64, promoted: &Promoted, numbers: Range<u32>) -> Result<u32> {
        let table = self.table.clone();
        let cursor = table.index().cursor(&table.data().codec, promoted);
        let last = cursor.block(numbers.end - 1).await?;
        let (mut first, mut start) = (numbers.end - 1, last.offset);
        let Exit { at: exit, slack, end } = self.exit_of_piece(&last);
        let wanted = self.wanted.saturating_add(slack);
        while first > numbers.start
            && exit.saturating_sub(start) < wanted
            && numbers.end - first < MOST_BLOCKS
        {
            let before = cursor.block(first - 1).await?.offset;
            if last.end().saturating_sub(before) > self.read_buffer {
                break;
            }
            (first, start) = (first - 1, before);
        }
        // More is wanted than a piece has.
        self.is_guess &= exit.saturating_sub(start) >= wanted;
        let len = last.end().saturating_sub(start);
        self.wanted = if self.is_guess { len / 4 } else { len.saturating_mul(2) };

        let open = cursor.open_before(first).await?;
        let range = table.part_of_partition(partition, start..last.end())?;
        let steady = Pace::steady(self.read_buffer, false);
        let pace = match end < last.end() {
            true => {
                let first = end.saturating_sub(start).clamp(1, self.read_buffer);
                Pace { first, guess: Some(Guess::Reverse), ..steady }
            }
            false => steady,
        };
        let piece = DataReader::piece(table.data().clone(), Blocks { range, open }, pace, self.slice.clone());
        self.take(piece).await?;
        Ok(first)
    }

    /// Where in its last block the rows of the next piece seem to end.
    fn exit_of_piece(&mut self, last: &Block) -> Exit {
        let (slack, row) = (&self.table.data().slack, self.table.len_of_rows(1));
        let Some(exit) = self.exit.take() else {
            if std::mem::take(&mut self.is_guess) {
                slack.fell_short(Guess::Reverse);
            }
            return Exit { at: last.end(), slack: 0, end: last.end() };
        };
        match slack.of(Guess::Reverse, row) {
            Some(slack) => {
                let at = exit.row(row).end;
                Exit { at, slack, end: at.saturating_add(slack) }
            }
            // The last block may have none of the rows.
            None => Exit { at: last.offset, slack: 0, end: last.end() },
        }
    }

    /// Decodes a piece forward and queues it backwards.
    async fn take(&mut self, mut piece: DataReader) -> Result<()> {
        let mut rows = Vec::new();
        while let Some(fragment) = piece.next().await? {
            match fragment {
                Fragment::PartitionStart(_) | Fragment::StaticRow(_) => self.ready.push_back(fragment),
                fragment => rows.push(fragment),
            }
        }
        let at_end = piece.open();
        if self.open.is_none() && !at_end.is_live() {
            self.ready.push_back(change(self.slice.end.clone(), at_end));
        }
        let mut above = piece.open_at_entry();
        for fragment in &mut rows {
            if let Fragment::RangeTombstone(change) = fragment {
                std::mem::swap(&mut change.deletion, &mut above);
            }
        }
        self.ready.extend(rows.into_iter().rev());
        self.open = Some(piece.open_at_entry());
        Ok(())
    }

    /// Closes the slice at its start. `between` is what is in force where no block holds any of it.
    fn finish(&mut self, between: DeletionTime) {
        if self.open.is_none() && !between.is_live() {
            self.ready.push_back(change(self.slice.end.clone(), between));
        }
        if !self.open.unwrap_or(between).is_live() {
            self.ready.push_back(change(self.slice.start.clone(), DeletionTime::LIVE));
        }
        self.ready.push_back(Fragment::PartitionEnd);
    }
}

impl FragmentReader for ReverseReader {
    type Error = Error;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        Ok(match (place.pop_from(&mut self.ready), &self.left) {
            (Next::Fragment, _) => Next::Fragment,
            (_, Left::Nothing) => Next::End,
            _ => Next::Fill,
        })
    }

    async fn fill(&mut self) -> Result<()> {
        self.next_piece().await
    }
}

fn change(position: Position, deletion: DeletionTime) -> Fragment {
    Fragment::RangeTombstone(RangeTombstoneChange { position, deletion })
}
