//! One partition, slice after slice: the caller tells the reader which slice comes next.
//!
//! ```text
//! data   ····|—— at hand ——|···· skipped, never read ····|—— blocks of the next slice ——|····
//! ```
//!
//! A slice is looked for in the bytes at hand, and in the index only once these end. So slices close to each other cost one search for each
//! stretch of bytes, and slices far from each other cost the bytes of their own blocks.
//!
//! If slice after slice begins in the next block, requests also read what follows: see `data::read_ahead`.

use std::rc::Rc;

use model::{Fragment, FragmentReader, Next, PartitionKey, PartitionStart, Position, Slice};

use crate::big::entry::Promoted;
use crate::big::onward::Onward;
use crate::big::promoted_cursor::{Found, Search};
use crate::data::read_ahead::ReadAhead;
use crate::data::reader::{Blocks, DataReader, Pace};
use crate::sstable::{ReadOptions, SSTable};
use crate::{Error, Result};

/// Reads slices of one partition that follow each other. Each is given as [`SSTable::read`] gives it without the static
/// row: from the partition's start to its end.
///
/// Invariants:
/// 1. No slice begins before the last one ended.
/// 2. As long as `is_found` is false, nothing more is read of the data.
#[derive(Debug)]
pub struct ForwardingReader {
    sstable: Rc<SSTable>,
    key: PartitionKey,
    search: Search,
    /// What the index tells of a partition with blocks. Without it the reader has all that is wanted for its range.
    large: Option<Large>,
    slice: Slice,
    /// Whether the slice ends before it begins: there is nothing to give then.
    is_nothing: bool,
    /// Whether the blocks of the slice are known.
    is_found: bool,
    ahead: ReadAhead,
    start: Option<PartitionStart>,
    reader: DataReader,
}

#[derive(Debug)]
struct Large {
    /// Where the partition begins in the data.
    place: u64,
    promoted: Promoted,
    /// Where the linear scan is, if that is how blocks are searched for.
    onward: Option<Onward>,
    /// The block in which the last slice began.
    last: u32,
}

impl ForwardingReader {
    /// Of a partition with blocks.
    pub(crate) fn blocks(
        sstable: &Rc<SSTable>,
        key: &PartitionKey,
        (place, promoted): (u64, Promoted),
        slice: &Slice,
        search: Search,
    ) -> ForwardingReader {
        let start = PartitionStart { key: key.clone(), deletion: promoted.deletion };
        let blocks = Blocks { range: place..place, open: model::DeletionTime::LIVE };
        let pace = Pace::steady(sstable.read_buffer(ReadOptions::default()), false);
        let reader = DataReader::blocks(sstable.data().clone(), start.clone(), blocks, pace, Slice::all());
        let mut reader = ForwardingReader::new(sstable, key, search, reader);
        reader.large = Some(Large::new(sstable, (place, promoted), search));
        reader.start = Some(start);
        reader.begin(slice);
        reader
    }

    /// Of all that `reader` reads: a partition from its head on, or blocks of one that starts with `start`.
    pub(crate) fn whole(
        sstable: &Rc<SSTable>,
        key: &PartitionKey,
        reader: DataReader,
        start: Option<PartitionStart>,
        slice: &Slice,
        search: Search,
    ) -> ForwardingReader {
        let mut reader = ForwardingReader::new(sstable, key, search, reader);
        reader.start = start;
        reader.begin(slice);
        reader
    }

    fn new(
        sstable: &Rc<SSTable>,
        key: &PartitionKey,
        search: Search,
        reader: DataReader,
    ) -> ForwardingReader {
        ForwardingReader {
            sstable: sstable.clone(),
            key: key.clone(),
            search,
            large: None,
            // None yet: the first one may begin anywhere.
            slice: Slice { start: Position::start(), end: Position::start() },
            is_nothing: true,
            is_found: false,
            ahead: ReadAhead::default(),
            start: None,
            reader,
        }
    }

    /// Goes on with another slice; what was not read of the last one is left out.
    ///
    /// # Panics
    /// If the slice begins before the last one ended.
    pub fn fast_forward_to(&mut self, slice: &Slice) {
        let schema = self.sstable.schema();
        let ascends = schema.compare(&self.slice.end, &slice.beside_rows().start).is_le();
        assert!(ascends || schema.is_empty_slice(slice), "slices of a partition ascend");
        self.begin(slice);
    }

    fn begin(&mut self, slice: &Slice) {
        self.is_nothing = self.sstable.schema().is_empty_slice(slice);
        if self.is_nothing {
            return;
        }
        self.slice = slice.beside_rows().into_owned();
        self.is_found = self.large.is_none();
        self.reader.go_on(self.slice.clone(), self.start.clone(), !self.is_found);
    }

    /// Asks the index for the blocks of the slice.
    async fn find(&mut self) -> Result<()> {
        let Found { blocks, bytes, open, .. } = self.search().await?;
        let large = self.large.as_ref().expect("another partition is known as a whole");
        let range = self.sstable.part_of_partition(large.place, bytes.clone())?;
        let left = u64::from(large.promoted.count.saturating_sub(blocks.end));
        // Blocks are about as large as those before them; behind the last one is another partition.
        let left = left * bytes.end.checked_div(u64::from(blocks.end)).unwrap_or(0);
        let limit = range.end.saturating_add(left).min(self.sstable.data().file.len());
        let buffer = self.sstable.read_buffer(ReadOptions::default());
        let ahead = self.ahead.next(&range, self.reader.end_at_hand(), buffer, limit);
        self.reader.read_blocks(Blocks { range, open }, Pace::steady(buffer, false), ahead);
        self.is_found = true;
        Ok(())
    }

    /// The blocks of the slice. Where the fences lead to something that is not what they say, they are given up.
    async fn search(&mut self) -> Result<Found> {
        let sstable = self.sstable.clone();
        let (index, data) = (sstable.index(), sstable.data());
        loop {
            let large = self.large.as_mut().expect("another partition is known as a whole");
            if let Some(onward) = &mut large.onward {
                let file = &index.blocks.file;
                return onward.find(file, &data.codec, &data.schema, &self.slice).await;
            }
            let promoted = &large.promoted;
            match index.find_blocks(&data.codec, promoted, (&self.slice, large.last), self.search).await {
                Err(error) if promoted.ordinal.is_some() => index.fencing.give_up(error)?,
                found => {
                    large.last = found.as_ref().map_or(large.last, |found| found.blocks.start);
                    return found;
                }
            }
            let (place, promoted) = sstable.large(&self.key, self.search).await?.ok_or_else(|| {
                Error::corrupt(index.blocks.file.path(), 0, "a partition is there by its fences only")
            })?;
            *large = Large::new(&sstable, (place, promoted), self.search);
        }
    }
}

impl Large {
    fn new(sstable: &SSTable, (place, promoted): (u64, Promoted), search: Search) -> Large {
        let is_scan = search == Search::Scan;
        let onward = is_scan.then(|| Onward::new(promoted.clone(), sstable.version()));
        Large { place, promoted, onward, last: 0 }
    }
}

impl FragmentReader for ForwardingReader {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        if self.is_nothing {
            return Ok(Next::End);
        }
        let next = self.reader.pop(place)?;
        if self.start.is_none()
            && let (Next::Fragment, Fragment::PartitionStart(start)) = (next, &*place)
        {
            self.start = Some(start.clone());
        }
        Ok(next)
    }

    async fn fill(&mut self) -> Result<()> {
        if self.is_found { self.reader.fill().await } else { self.find().await }
    }
}
