//! Data.db item by item, with the place of each: for whoever compares it with something else.
//!
//! Unlike a [`super::reader::DataReader`] it hands out what a reader steps over, such as rows of
//! nothing, and judges no order.

use std::ops::Range;
use std::rc::Rc;

use model::{Clustering, DeletionTime, Row};

use super::reader::Data;
use super::row::{Lead, Marker};
use super::window::{Pace, Window};
use crate::decode::DecodeError;
use crate::{Error, Result};

/// Something that stands in the data.
#[derive(Debug)]
pub(crate) enum Item {
    /// The head of a partition with its static row, where the table has one.
    Head { key: model::Bytes, deletion: DeletionTime, static_row: Option<Row> },
    /// A row, be it empty.
    Row(Row),
    /// A range tombstone marker.
    Marker(Marker),
    /// The byte that ends a partition.
    End,
}

/// What [`Walk::pop`] has to give.
#[derive(Debug)]
pub(crate) enum Step {
    /// The next item, and its place in the uncompressed data.
    Item(Item, Range<u64>),
    /// Nothing at hand: fill, then pop again.
    Fill,
    /// The range is at its end.
    End,
}

/// Walks over whole partitions.
#[derive(Debug)]
pub(crate) struct Walk {
    data: Rc<Data>,
    window: Window,
    in_partition: bool,
}

impl Walk {
    /// Over the partitions of a range, which begins and ends between two.
    pub(crate) fn new(data: Rc<Data>, range: Range<u64>, step: u64) -> Walk {
        let window = Window::new(&data.file, range, Pace::overlapping(step, false));
        Walk { data, window, in_partition: false }
    }

    /// The place in the data of the next item.
    pub(crate) fn position(&self) -> u64 {
        self.window.at()
    }

    /// The next item, if its bytes are at hand.
    pub(crate) fn pop(&mut self) -> Result<Step> {
        if self.window.is_done() {
            return match self.in_partition {
                false => Ok(Step::End),
                true => Err(self.corrupt("the data ends inside a partition")),
            };
        }
        let start = self.window.at();
        let decoded = if self.in_partition { self.unfiltered() } else { self.head() };
        match decoded {
            Ok((item, end)) => {
                self.window.advance_to(end);
                self.in_partition = !matches!(item, Item::End);
                Ok(Step::Item(item, start..self.window.at()))
            }
            Err(error) => {
                self.window.wants(&self.data.file, error)?;
                Ok(Step::Fill)
            }
        }
    }

    /// Reads on.
    pub(crate) async fn fill(&mut self) -> Result<()> {
        self.window.fill(&self.data.file).await.map(drop)
    }

    fn head(&self) -> std::result::Result<(Item, usize), DecodeError> {
        let (source, at) = self.window.source();
        let codec = &self.data.codec;
        let (head, end) = codec.partition_head(source, at)?;
        let (static_row, end) = match codec.has_static_row() {
            false => (None, end),
            true => {
                let (row, row_end) = codec.static_row(source, end).map_err(|error| error.behind(end - at))?;
                (Some(row), row_end)
            }
        };
        Ok((Item::Head { key: head.key, deletion: head.deletion, static_row }, end))
    }

    fn unfiltered(&self) -> std::result::Result<(Item, usize), DecodeError> {
        let (source, at) = self.window.source();
        let mut row = Row::new(Clustering::empty());
        let (lead, end) = self.data.codec.lead(source, at, &mut row.clustering)?;
        let item = match lead {
            Lead::End => Item::End,
            Lead::Row(lead) => {
                self.data.codec.row(source, at, &lead, &mut row)?;
                Item::Row(row)
            }
            Lead::Marker(marker) => Item::Marker(marker),
        };
        Ok((item, end))
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.data.file.path(), self.window.at(), what)
    }
}
