//! A read that asks SSTables, or asks them first, only because they may delete the partition: what they say of that is noted on the way, and asked once.

use std::fmt;
use std::rc::Rc;

use model::merge::Merge;
use model::{DeletionTime, Fragment, FragmentReader, Next, PartitionKey};
use runtime::boxed;

use crate::source::Source;
use crate::sstable_set::SSTableSet;
use crate::{Error, Result};

/// A stream of all SSTables that may delete a partition.
pub struct Teaching {
    stream: Merge<Source>,
    /// Who learns of which partition, until it has.
    learner: Option<(Rc<SSTableSet>, PartitionKey)>,
}

impl Teaching {
    /// The stream of what SSTables of a set say of a partition.
    pub(super) fn new(stream: Merge<Source>, set: Rc<SSTableSet>, key: PartitionKey) -> Teaching {
        Teaching { stream, learner: Some((set, key)) }
    }

    fn teach(&mut self, deletion: DeletionTime) {
        if let Some((set, key)) = self.learner.take() {
            set.note_deletion(&key, deletion);
        }
    }
}

/// Rows are not given as they stand: a stream of streams would have no end of types, and the next read is another.
impl FragmentReader for Teaching {
    type Error = Error;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        let next = self.stream.pop(place)?;
        match (next, &*place) {
            (Next::Fragment, Fragment::PartitionStart(start)) => {
                let deletion = start.deletion;
                self.teach(deletion);
            }
            (Next::End, _) => self.teach(DeletionTime::LIVE),
            _ => {}
        }
        Ok(next)
    }

    async fn fill(&mut self) -> Result<()> {
        boxed(|| self.stream.fill()).await
    }
}

impl fmt::Debug for Teaching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Teaching").finish_non_exhaustive()
    }
}
