//! One row in the blocks that can hold it: a usual row becomes flat bytes, without a reader in between.
//!
//! ```text
//! blocks ──request──► rows before it, skipped ──► a usual row ──► flat bytes
//!                                            └──► anything else: a reader that continues at the same bytes
//! ```

use std::cmp::Ordering;
use std::rc::Rc;

use model::flat::UsualValues;
use model::{Bytes, Clustering, PartitionStart, Slice, Weight};

use super::passed::Passed;
use super::reader::{Blocks, Data, DataReader, Pace};
use super::row::{Lead, RowAt, Sought};
use super::window::Window;
use crate::Result;
use crate::decode::DecodeError;

/// What has become of the search for a row.
pub(crate) enum InBlocks {
    /// It is not there.
    Absent,
    /// A [usual](model::flat::is_usual) row, as [`model::flat`] has it, alone.
    Usual(Bytes),
    /// Something has to be decoded.
    Other(Box<DataReader>),
}

/// How a search goes on.
enum Step {
    Fill,
    Absent,
    Usual(Bytes),
    Other,
}

impl Data {
    /// Looks for the row that a slice, whose ends are beside it, is of. `start` tells of its partition.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub(crate) async fn row_in_blocks(
        self: &Rc<Data>,
        start: impl FnOnce() -> PartitionStart,
        blocks: Blocks,
        pace: Pace,
        slice: &Slice,
    ) -> Result<InBlocks> {
        let mut window = Window::new(&self.file, blocks.range, pace);
        window.no_more();
        loop {
            let step = if blocks.open.is_live() { self.step(&mut window, slice)? } else { Step::Other };
            match step {
                Step::Absent => return Ok(InBlocks::Absent),
                Step::Usual(row) => return Ok(InBlocks::Usual(row)),
                Step::Other => {
                    let data = self.clone();
                    let reader = DataReader::behind(data, window, start(), blocks.open, slice.clone());
                    return Ok(InBlocks::Other(Box::new(reader)));
                }
                Step::Fill => {
                    if let Some(guess) = window.fill(&self.file).await? {
                        self.slack.fell_short(guess);
                    }
                }
            }
        }
    }

    /// Looks at the bytes at hand.
    fn step(&self, window: &mut Window, slice: &Slice) -> Result<Step> {
        let Data { codec, schema, .. } = self;
        let (source, at) = window.source();
        if !window.is_done() && at == source.end {
            return Ok(Step::Fill);
        }
        let at = codec.rows_before(source, at, schema, &slice.start);
        window.advance_to(at);
        if window.is_done() {
            return Ok(Step::Absent);
        }
        let row = Sought::new(codec, schema, &slice.start).with_weight(Weight::At);
        let (source, _) = window.source();
        match codec.row_at(source, at, &row) {
            Ok(RowAt::End) => Ok(Step::Absent),
            // It is worth to be looked at twice: nothing was decoded yet of what tells that there is no row.
            Ok(RowAt::Row(Ordering::Greater, end)) => {
                let is_sound = match codec.lead(source, at, &mut Clustering::default()) {
                    Ok((Lead::Row(lead), _)) => {
                        let row = || Passed::row(codec, lead.values(&source, at));
                        self.may_follow(source, end, row)
                    }
                    _ => false,
                };
                Ok(if is_sound { Step::Absent } else { Step::Other })
            }
            Ok(RowAt::Row(Ordering::Equal, end)) => {
                let mut values = UsualValues::default();
                if codec.usual_row(source.owner, at..source.end, &mut values) != Some(end) {
                    return Ok(Step::Other);
                }
                let mut bytes = Vec::with_capacity(2 * (end - at));
                values.row().put(&mut bytes);
                Ok(Step::Usual(Bytes::from(bytes)))
            }
            Ok(RowAt::Row(Ordering::Less, _) | RowAt::Other) => Ok(Step::Other),
            // What there is of a row that is cut off is looked at before more is asked for.
            Err(DecodeError::Truncated { .. }) => {
                match codec.lead(source, at, &mut Clustering::default()) {
                    Err(error @ DecodeError::Truncated { .. }) => {
                        window.wants(&self.file, error)?;
                        Ok(Step::Fill)
                    }
                    // A reader says what is wrong.
                    _ => Ok(Step::Other),
                }
            }
            Err(_) => Ok(Step::Other),
        }
    }
}
