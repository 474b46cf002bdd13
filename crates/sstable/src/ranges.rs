//! Ranges of partitions that follow each other: the caller tells the reader which range comes next.
//!
//! Data between two ranges is not read, except where a request for a range includes it: see `data::read_ahead`. As in slices, uncompressed
//! data is not compared with CRC.db.

use std::ops::Range;
use std::rc::Rc;

use model::{Fragment, FragmentReader, Next};

use crate::data::read_ahead::ReadAhead;
use crate::data::reader::{DataReader, Pace};
use crate::sstable::{ReadOptions, SSTable};
use crate::{Error, Result};

/// Reads ranges of partitions.
#[derive(Debug)]
pub struct RangesReader {
    sstable: Rc<SSTable>,
    ahead: ReadAhead,
    reader: DataReader,
}

impl RangesReader {
    pub(crate) fn new(sstable: &Rc<SSTable>) -> RangesReader {
        let pace = Pace::steady(sstable.read_buffer(ReadOptions::default()), false);
        let reader = DataReader::scan(sstable.data().clone(), 0..0, pace);
        RangesReader { sstable: sstable.clone(), ahead: ReadAhead::default(), reader }
    }

    /// Goes on with the partitions of another range of the data, which begins and ends between two; what was not read
    /// of the last one is left out.
    ///
    /// # Errors
    /// A range that is not within the data, or begins before what was read: the index may be corrupt.
    pub fn fast_forward_to(&mut self, range: Range<u64>) -> Result<()> {
        self.sstable.check_range(&range)?;
        if range.start < self.reader.position() {
            let what = "the partitions of the index are out of order";
            return Err(Error::corrupt(self.sstable.index().blocks.file.path(), 0, what));
        }
        let buffer = self.sstable.read_buffer(ReadOptions::default());
        let limit = self.sstable.data().file.len();
        let ahead = self.ahead.next(&range, self.reader.end_at_hand(), buffer, limit);
        self.reader.scan_on(range, Pace::steady(buffer, false), ahead);
        Ok(())
    }
}

impl FragmentReader for RangesReader {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        self.reader.pop(place)
    }

    async fn fill(&mut self) -> Result<()> {
        self.reader.fill().await
    }
}
