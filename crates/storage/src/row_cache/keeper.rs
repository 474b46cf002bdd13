//! A row that is read by itself: what is found goes into the cache, if all SSTables were read for it.

use std::collections::VecDeque;
use std::rc::Rc;

use model::merge::Merge;
use model::{
    DeletionTime, Direction, Fragment, FragmentReader, Next, PartitionKey, PartitionStart, Position,
    RangeTombstoneChange, Row, Schema,
};

use super::RowCache;
use super::directory::Found;
use super::filler::{Filler, Filling, Taken};
use super::part_reader::PartReader;
use super::stretch::{Draft, View};
use super::watch::Watch;
use super::whole;
use crate::source::Source;
use crate::table::ReadRequest;
use crate::{Result, single_key};

/// Parts of so many bytes hold a row and those in front of it.
const ROOM_FOR_NEIGHBOURS: usize = 16 << 10;

/// Keeps a row. A flush of whatever partition that comes before it does is too much: it is kept the next time.
pub struct RowKeeper {
    cache: RowCache,
    watch: Watch,
}

impl RowKeeper {
    /// From now on what SSTables say is noticed.
    pub(super) fn new(cache: &RowCache) -> RowKeeper {
        RowKeeper { cache: cache.clone(), watch: cache.watch() }
    }

    /// Whether there is room for those in front of a row too.
    pub(crate) fn takes_neighbours(&self) -> bool {
        self.cache.limits().most >= ROOM_FOR_NEIGHBOURS
    }

    /// Keeps what all SSTables together say of a row, the fragments of this stream: none if no SSTable has the partition. In
    /// front of the row may be others, with all that there is between.
    ///
    /// Gives the row back, mostly out of what was kept: what was read is let go of only when nothing points into it any more, so
    /// that its buffer is used again.
    pub(crate) async fn keep(
        self,
        request: &ReadRequest,
        schema: &Rc<Schema>,
        mut stream: Merge<Source>,
    ) -> Result<Source> {
        if schema.clustering.is_empty() && schema.statics.is_empty() {
            return self.keep_whole(request, stream).await;
        }
        let mut fragments = single_key::gather(&mut stream).await?;
        // What is deleted in front of the row need not be kept.
        if fragments.iter().any(|fragment| matches!(fragment, Fragment::RangeTombstone(_))) {
            cut(&mut fragments, request, schema);
        }
        let filling = Filling { cache: self.cache, key: request.key.clone(), watch: Rc::new(self.watch) };
        let keep = |fragments: &_| match filling.is_wanted() {
            true => keep_part(&filling, request, schema, fragments),
            false => None,
        };
        let mut view = keep(&fragments);
        // Those in front of the row may be too large to be kept.
        if view.is_none() && cut(&mut fragments, request, schema) {
            view = keep(&fragments);
        }
        Ok(match view {
            Some(view) => Source::Part(PartReader::new(&request.key, view)),
            None => Source::Held(fragments),
        })
    }

    /// Of a table without clustering columns a row is all of its partition.
    async fn keep_whole(self, request: &ReadRequest, mut stream: Merge<Source>) -> Result<Source> {
        let RowKeeper { cache, watch } = self;
        let mut head = None;
        let mut draft = cache.take_scratch();
        let mut fragment = Fragment::default();
        loop {
            match stream.pop(&mut fragment)? {
                Next::Fill => {
                    stream.fill().await?;
                    continue;
                }
                Next::End => break,
                Next::Fragment => {}
            }
            match &fragment {
                Fragment::PartitionStart(start) => head = Some(start.deletion),
                Fragment::Row(row) if row.value_bytes() <= cache.limits().row => draft.push(&fragment),
                Fragment::PartitionEnd => {}
                // Too large, or nothing that such a table should have: it is given as it is.
                Fragment::Row(_) | Fragment::StaticRow(_) | Fragment::RangeTombstone(_) => {
                    let held = held(&request.key, head, draft, fragment);
                    return Ok(Source::Held(single_key::gather_behind(held, &mut stream).await?));
                }
            }
        }
        let whole = whole::of_partition(&request.key, head, &mut draft, request.direction);
        cache.give_back(draft);
        cache.keep_whole(&request.key, &whole, &watch);
        let stretch = whole::stretch_of(&whole);
        let view = stretch.view_of(0..stretch.len(), request.direction);
        Ok(Source::Part(PartReader::new(&request.key, view)))
    }
}

/// What was told of a partition up to a fragment, which is the last one.
fn held(
    key: &PartitionKey,
    head: Option<DeletionTime>,
    mut draft: Draft,
    last: Fragment,
) -> VecDeque<Fragment> {
    let stretch = whole::stretch_of(&whole::of_partition(key, head, &mut draft, Direction::Forward));
    let start = head.map(|deletion| PartitionStart { key: key.clone(), deletion });
    let rows = (0..stretch.len()).map(|at| stretch.fragment(at));
    start.map(Fragment::PartitionStart).into_iter().chain(rows).chain([last]).collect()
}

fn keep_part(
    filling: &Filling,
    request: &ReadRequest,
    schema: &Rc<Schema>,
    fragments: &VecDeque<Fragment>,
) -> Option<View> {
    let mut filler = Filler::new(filling, schema, request);
    let first = first_to_keep(filling, request, schema, fragments);
    if let Some(first) = &first {
        filler.begin_at(first);
    }
    let is_known =
        |row: &Row| first.as_ref().is_some_and(|first| schema.compare_row(&row.clustering, first).is_lt());
    let mut static_row = None;
    let mut is_whole = true;
    for fragment in fragments {
        match fragment {
            Fragment::Row(row) if is_known(row) => {}
            Fragment::PartitionStart(start) => filler.head(Some(start.deletion)),
            Fragment::StaticRow(_) => static_row = Some(fragment),
            // What the slice closes at its end is not said by the SSTables.
            Fragment::RangeTombstone(change) if schema.compare(&change.position, request.end()).is_eq() => {}
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
    let part = part.filter(|part| !wants_static_row && part.stretch.is_free_of_ranges())?;
    Some(part.view(&request.slice, schema, request.direction))
}

/// Where the first of the rows is that came in front of the row that was asked for, or where a part ends that has some of them
/// already.
fn first_to_keep(
    filling: &Filling,
    request: &ReadRequest,
    schema: &Schema,
    fragments: &VecDeque<Fragment>,
) -> Option<Position> {
    let first = fragments.iter().find_map(|fragment| match fragment {
        Fragment::Row(row) => Some(row),
        _ => None,
    })?;
    if schema.compare_row(&first.clustering, &request.slice.start).is_ge() {
        return None;
    }
    let first = Position::before(first.clustering.clone());
    match filling.cache.find(&filling.key, &request.slice.start, Direction::Reverse) {
        Found::Gap(Some(known)) if schema.compare(&known, &first).is_gt() => Some(known),
        Found::Gap(_) => Some(first),
        // It ends where the slice begins.
        Found::Part(_) => Some(request.slice.start.clone()),
    }
}

/// Leaves out what is in front of a slice, but for what is in force where it begins. Whether there were rows.
fn cut(fragments: &mut VecDeque<Fragment>, request: &ReadRequest, schema: &Schema) -> bool {
    let start = &request.slice.start;
    if request.direction == Direction::Reverse {
        return false;
    }
    let mut has_rows = false;
    let mut open = DeletionTime::LIVE;
    fragments.retain(|fragment| match fragment {
        Fragment::Row(row) => {
            let is_in_front = schema.compare_row(&row.clustering, start).is_lt();
            has_rows |= is_in_front;
            !is_in_front
        }
        Fragment::RangeTombstone(change) if schema.compare(&change.position, start).is_le() => {
            open = change.deletion;
            false
        }
        _ => true,
    });
    if !open.is_live() {
        let is_head =
            |fragment: &Fragment| matches!(fragment, Fragment::PartitionStart(_) | Fragment::StaticRow(_));
        let place = fragments.iter().take_while(|fragment| is_head(fragment)).count();
        let change = RangeTombstoneChange { position: start.clone(), deletion: open };
        fragments.insert(place, Fragment::RangeTombstone(change));
    }
    has_rows
}

impl std::fmt::Debug for RowKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowKeeper").finish_non_exhaustive()
    }
}
