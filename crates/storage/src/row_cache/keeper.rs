//! A row that is read by itself: what is found goes into the cache, if all SSTables were read for it.

use std::collections::VecDeque;
use std::rc::Rc;

use model::{Fragment, Schema};

use super::RowCache;
use super::filler::{Filler, Filling, Taken};
use super::part_reader::PartReader;
use crate::table::ReadRequest;

/// Keeps a row. A flush of whatever partition that comes before it does is too much: it is kept the next time.
pub struct RowKeeper(Filling);

impl RowKeeper {
    /// From now on what SSTables say is noticed.
    pub(super) fn new(cache: &RowCache, request: &ReadRequest) -> RowKeeper {
        let watch = Rc::new(cache.watch());
        RowKeeper(Filling { cache: cache.clone(), key: request.key.clone(), watch })
    }

    /// Keeps what all SSTables together say of a row: all fragments of the read, or none if no SSTable has the partition.
    /// What was kept may be read in their place, if it is all.
    pub(crate) fn keep(
        self,
        request: &ReadRequest,
        schema: &Rc<Schema>,
        fragments: &VecDeque<Fragment>,
    ) -> Option<PartReader> {
        let RowKeeper(filling) = self;
        if !filling.is_wanted() {
            return None;
        }
        let mut filler = Filler::new(&filling, schema, request);
        let mut static_row = None;
        let mut is_whole = true;
        for fragment in fragments {
            match fragment {
                Fragment::PartitionStart(start) => filler.head(Some(start.deletion)),
                Fragment::StaticRow(_) => static_row = Some(fragment),
                // What the slice closes at its end is not said by the SSTables.
                Fragment::RangeTombstone(change)
                    if schema.compare(&change.position, request.end()).is_eq() => {}
                Fragment::Row(_) | Fragment::RangeTombstone(_) => {
                    is_whole = is_whole && filler.push(fragment) == Taken::Yes;
                }
                Fragment::PartitionEnd => {}
            }
        }
        let wants_static_row = request.static_row && !schema.statics.is_empty();
        if wants_static_row {
            filler.static_row(static_row);
        }
        let part = if is_whole { filler.close(request.end().clone()) } else { None };
        let part = part.filter(|part| !wants_static_row && part.is_free_of_ranges())?;
        Some(PartReader::new(&request.key, &part, &request.slice, schema, request.direction))
    }
}

impl std::fmt::Debug for RowKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RowKeeper").field(&self.0.key).finish()
    }
}
