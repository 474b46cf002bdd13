//! The search in a large partition's index with its fences: they name the group of blocks, which is read with one
//! request, and tell of the next group what is needed to know that it is not.
//!
//! Where RowFilter.db tells that a single row is not in the group, nothing is read at all.
//!
//! A group stays in memory as [`PackedBlocks`], and the pages of Index.db that it was read from do not. Positions of
//! blocks are compared as they are encoded. A group that is not what the fences say is an error that names them; who
//! asked gives them up then, and asks again without.

use std::cmp::Ordering;
use std::rc::Rc;

use model::{DeletionTime, Position, Slice};

use super::packed_blocks::{Edge, PackedBlocks};
use super::promoted_cursor::{Found, PromotedCursor, USUAL_BLOCK, Within};
use super::ruler;
use crate::Result;
use crate::data::row::{Sought, Values};
use crate::decode::Decoded;
use crate::parts::fences::{Fences, Group};
use crate::parts::row_filter::hash_of;

/// Most edges have no more bytes.
const EDGE: usize = 64;

/// The blocks of a group, at hand.
struct Blocks {
    /// The number of the first one.
    number: u32,
    /// The range tombstone that is open before it.
    open: DeletionTime,
    packed: Rc<PackedBlocks>,
    /// The edge that was looked at last.
    edge: Vec<u8>,
    /// The other edge of that block, where both are.
    other: Vec<u8>,
}

impl Blocks {
    fn new(group: &Group, packed: Rc<PackedBlocks>) -> Blocks {
        Blocks { number: group.number, open: group.open, packed, edge: Vec::new(), other: Vec::new() }
    }

    /// The range tombstone that is open before a block, or behind the last one.
    fn open_before(&self, number: usize) -> DeletionTime {
        number.checked_sub(1).map_or(self.open, |before| self.packed.end_open(before))
    }
}

/// The ends of a slice, for all that is compared with them.
struct Ends<'a> {
    start: Sought<'a>,
    end: Sought<'a>,
}

/// The fences, and the ordinal of the partition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fenced<'a> {
    pub(super) fences: &'a Fences,
    pub(super) ordinal: u64,
}

impl PromotedCursor<'_> {
    /// The blocks that can hold rows of the slice.
    pub(super) async fn find_by_fences(&self, fenced: Fenced<'_>, slice: &Slice) -> Result<Found> {
        let sought = self.sought_ends(slice);
        let (group, next) = self.around(fenced, &sought.start).await?;
        let nothing = match group {
            None => Found::nothing(0, self.promoted().head_len, DeletionTime::LIVE),
            Some(group) => {
                if self.is_denied(fenced, &group, next.as_ref(), (slice, &sought)).await? {
                    return Ok(Found::nothing(group.number, self.promoted().head_len, DeletionTime::LIVE));
                }
                let mut blocks = self.first_blocks(fenced, &group, next.as_ref(), (slice, &sought)).await?;
                let before = self.count_while(&mut blocks, Edge::Last, &sought.start, Ordering::is_lt)?;
                if before < blocks.packed.len() {
                    return self.found(fenced, (blocks, next), before, (slice, &sought)).await;
                }
                let end = blocks.packed.reach(before - 1).end;
                Found::nothing(blocks.number + before as u32, end, blocks.open_before(before))
            }
        };
        // The slice begins between two groups: where the second begins is known before it is read.
        let Some(group) = next else { return Ok(nothing) };
        if self.is_behind(fenced, &group, &sought.end)? {
            return Ok(nothing);
        }
        let (group, next) = fenced.fences.group_of(fenced.ordinal, group.number).await?;
        let blocks = self.blocks(fenced, &group, next.as_ref()).await?;
        self.found(fenced, (blocks, next), 0, (slice, &sought)).await
    }

    /// The group that the slice begins in, read with the next one if the slice needs that too.
    async fn first_blocks(
        &self,
        fenced: Fenced<'_>,
        group: &Group,
        next: Option<&Group>,
        (slice, sought): (&Slice, &Ends<'_>),
    ) -> Result<Blocks> {
        let needs_next = match next {
            None => false,
            // The slice ends with the partition, and where that is does not matter.
            Some(next) if self.has_enough(next.number, &(0..USUAL_BLOCK), &slice.end).is_some() => false,
            Some(next) => !self.is_behind(fenced, next, &sought.end)?,
        };
        let packed = self.groups_from(fenced, group, next, 1 + usize::from(needs_next)).await?;
        Ok(Blocks::new(group, packed))
    }

    /// Whether the slice is of a single row, which the group is known not to have; nor has it a range tombstone.
    async fn is_denied(
        &self,
        fenced: Fenced<'_>,
        group: &Group,
        next: Option<&Group>,
        (slice, sought): (&Slice, &Ends<'_>),
    ) -> Result<bool> {
        let Some(rows) = self.rows().filter(|rows| rows.is_worth_asking()) else { return Ok(false) };
        let Some(row) = self.schema().row_of(slice) else { return Ok(false) };
        // The slice begins before its row, with which the next group may begin.
        if let Some(next) = next
            && !self.is_behind(fenced, next, &sought.end)?
        {
            return Ok(false);
        }
        let mut place = Vec::with_capacity(EDGE);
        if !self.codec().try_put_row_prefix(&row.values, Option::as_deref, &mut place) {
            return Ok(false);
        }
        let stretch = group.at..next.map_or(u64::MAX, |next| next.at);
        let is_denied = rows.denies(fenced.ordinal, stretch, hash_of(&place)).await;
        // Who gave them up meanwhile knows that they lie.
        Ok(is_denied && self.index().fencing.get().is_some())
    }

    /// Whether memory alone tells that a row is not in the partition, nor a range tombstone around it.
    pub(super) fn is_denied_at_hand(&self, fenced: Fenced<'_>, row: &[&[u8]]) -> bool {
        let Some(rows) = self.rows().filter(|rows| rows.is_worth_asking()) else { return false };
        if row.len() != self.schema().clustering.len() {
            return false;
        }
        let mut place = Vec::with_capacity(EDGE);
        if !self.codec().try_put_row_prefix(row, |value| Some(*value), &mut place) {
            return false;
        }
        let sought = Sought::row(self.codec(), self.schema(), row);
        let group = fenced.fences.group_of_row_at_hand(fenced.ordinal, &sought);
        let denies = |group| rows.denies_at_hand(fenced.ordinal, &group, hash_of(&place));
        group.is_some_and(|group| group.is_empty() || denies(group))
    }

    /// What is told of the block of this number, from its group and its place there.
    pub(super) async fn block_by_fences<T>(
        &self,
        fenced: Fenced<'_>,
        number: u32,
        tell: impl FnOnce(&PackedBlocks, usize) -> Decoded<T>,
    ) -> Result<T> {
        let (group, next) = fenced.fences.group_of(fenced.ordinal, number).await?;
        let blocks = self.blocks(fenced, &group, next.as_ref()).await?;
        let behind = (number - group.number) as usize;
        if behind >= blocks.packed.len() {
            return Err(fenced.fences.wrong("a group has fewer blocks than it should"));
        }
        tell(&blocks.packed, behind).map_err(|error| fenced.fences.wrong(error.what()))
    }

    /// The blocks of the slice, the first of which that ends in it or behind it is the block `number` of a group.
    async fn found(
        &self,
        fenced: Fenced<'_>,
        (mut blocks, next): (Blocks, Option<Group>),
        number: usize,
        (slice, Ends { start, end }): (&Slice, &Ends<'_>),
    ) -> Result<Found> {
        let (lower, first) = (blocks.number + number as u32, blocks.packed.reach(number));
        let open = blocks.open_before(number);
        if self.order_of(&mut blocks, number, Edge::First, end)?.is_gt() {
            return Ok(Found::nothing(lower, first.start, open));
        }
        let entry = self.within(&mut blocks, number, (start, &slice.start))?;
        let to = |upper: u32, exit: Within, end: u64| {
            let (blocks, bytes) = (lower..upper + 1, first.start..end);
            Found { blocks, bytes, entry: entry.clone(), exit, open, known_end: end }
        };
        if self.order_of(&mut blocks, number, Edge::Last, end)?.is_ge() {
            let is_of_row = slice.start.prefix.len() == self.schema().clustering.len()
                && slice.start.prefix == slice.end.prefix;
            let exit = match is_of_row {
                true => entry.clone(),
                false => self.within(&mut blocks, number, (end, &slice.end))?,
            };
            return Ok(to(lower, exit, first.end));
        }
        let reaches = self.reaches_enough(fenced, (&mut blocks, next.as_ref()), number, (end, &slice.end));
        if let Some(known_end) = reaches.await? {
            let found = to(lower, Within::nowhere(), first.end);
            return Ok(found.open_ended(self.promoted().count, known_end));
        }
        let (upper, exit, end) = self.last_of(fenced, (blocks, next), (end, &slice.end)).await?;
        Ok(to(upper, exit, end))
    }

    /// A place that the slice reaches to, if all that is wanted of it is in front of that: then its last block need not be looked for.
    /// The slice begins in the block `number` of a group. In a partition's last group the end itself is known.
    ///
    /// ```text
    /// group   ··[ number |   |   ][ next group   ][ group `behind` ···
    ///                    ├── enough ──┤ enough_at: all that is wanted is in front of it
    ///            1, 2: is that in this group?   3: if not, the fences tell whether the slice goes on in the group that has it
    /// ```
    async fn reaches_enough(
        &self,
        fenced: Fenced<'_>,
        (blocks, next): (&mut Blocks, Option<&Group>),
        number: usize,
        (end, position): (&Sought<'_>, &Position),
    ) -> Result<Option<u64>> {
        let Some(next) = next else { return Ok(None) };
        let (reach, count) = (|number| blocks.packed.reach(number), blocks.packed.len());
        let (first, last) = (reach(number), reach(count - 1));
        // 1. A slice to the partition's end, with as many blocks behind this one as are enough.
        if let Some(known_end) = self.has_enough(blocks.number + number as u32, &first, position) {
            return Ok(Some(known_end));
        }
        let enough_at = self.enough_at(first.end);
        if enough_at == u64::MAX {
            return Ok(None);
        }
        // 2. A block of this group begins behind what is enough: does the slice reach it?
        let within = halve(count, |number| Ok(reach(number).start < enough_at))?;
        if within < count {
            let known_end = reach(within).start;
            return Ok(self.order_of(blocks, within, Edge::First, end)?.is_le().then_some(known_end));
        }
        // 3. The slice goes on behind this group, or else its end is in it.
        if self.is_behind(fenced, next, end)? {
            return Ok(None);
        }
        if last.end >= enough_at {
            return Ok(Some(last.end));
        }
        // Blocks behind it are taken to be as wide as those of this group are on average.
        let width = (last.end.saturating_sub(reach(0).start) / count as u64).max(1);
        let more = u32::try_from((enough_at - last.end).div_ceil(width)).unwrap_or(u32::MAX);
        let behind = next.number.saturating_add(more);
        if behind >= self.promoted().count {
            return Ok(None);
        }
        let (group, behind_it) = fenced.fences.group_of(fenced.ordinal, behind).await?;
        let group = Some(group).filter(|group| group.number == behind).or(behind_it);
        let is_behind = group.map(|group| self.is_behind(fenced, &group, end)).transpose()?;
        Ok((is_behind == Some(false)).then_some(enough_at))
    }

    /// Where in a block a position seems to be.
    fn within(
        &self,
        blocks: &mut Blocks,
        number: usize,
        (sought, position): (&Sought<'_>, &Position),
    ) -> Result<Within> {
        let Blocks { packed, edge, other, .. } = blocks;
        if let (Some(ranks), Some(sought)) = (packed.ranks(), sought.number()) {
            let share =
                ruler::share_of_ranks(ranks(number, Edge::First), ranks(number, Edge::Last), sought.rank);
            return Ok(Within::new(packed.reach(number), share));
        }
        let (mut low, mut high) = (Values::new(), Values::new());
        if !position.prefix.is_empty() {
            packed.edge(number, Edge::First, edge);
            packed.edge(number, Edge::Last, other);
            let values = |edge| self.codec().values_of_prefix(edge);
            let values = values(edge).and_then(|low| Ok((low, values(other)?)));
            (low, high) = values.map_err(|error| self.corrupt(self.promoted().blocks.start, error))?;
        }
        let share = ruler::share_of(self.schema(), &low, &high, position);
        Ok(Within::new(packed.reach(number), share.filter(|_| Within::can_tell(self.schema(), position))))
    }

    /// The last block that does not begin behind `end`, from a group on that has one: its number, where in it that seems to
    /// be, and where it ends.
    async fn last_of(
        &self,
        fenced: Fenced<'_>,
        (mut blocks, next): (Blocks, Option<Group>),
        (end, position): (&Sought<'_>, &Position),
    ) -> Result<(u32, Within, u64)> {
        if let Some(next) = next
            && !self.is_behind(fenced, &next, end)?
        {
            let (Some(group), next) = self.around(fenced, end).await? else {
                return Err(fenced.fences.wrong("a group is not found again"));
            };
            blocks = self.blocks(fenced, &group, next.as_ref()).await?;
        }
        let before = self.count_while(&mut blocks, Edge::First, end, Ordering::is_le)?;
        let Some(last) = before.checked_sub(1) else {
            return Err(fenced.fences.wrong("a group begins elsewhere than it should"));
        };
        let exit = self.within(&mut blocks, last, (end, position))?;
        Ok((blocks.number + last as u32, exit, blocks.packed.reach(last).end))
    }

    async fn around(
        &self,
        fenced: Fenced<'_>,
        sought: &Sought<'_>,
    ) -> Result<(Option<Group>, Option<Group>)> {
        fenced.fences.groups_around(fenced.ordinal, sought).await
    }

    fn sought_ends<'a>(&'a self, slice: &'a Slice) -> Ends<'a> {
        let sought = |position| Sought::new(self.codec(), self.schema(), position);
        Ends { start: sought(&slice.start), end: sought(&slice.end) }
    }

    fn is_behind(&self, fenced: Fenced<'_>, group: &Group, end: &Sought<'_>) -> Result<bool> {
        let order = group.compare(end);
        order.map(Ordering::is_gt).map_err(|error| fenced.fences.wrong(error.what()))
    }

    async fn blocks(&self, fenced: Fenced<'_>, group: &Group, next: Option<&Group>) -> Result<Blocks> {
        Ok(Blocks::new(group, self.groups_from(fenced, group, next, 1).await?))
    }

    /// How many blocks of a group come before the first one whose edge does not stand like this to a position.
    fn count_while(
        &self,
        blocks: &mut Blocks,
        edge: Edge,
        sought: &Sought<'_>,
        is: impl Fn(Ordering) -> bool,
    ) -> Result<usize> {
        let count = blocks.packed.len();
        if let (Some(ranks), Some(number)) = (blocks.packed.ranks(), sought.number()) {
            return halve(count, |middle| Ok(is(number.order_of_row(ranks(middle, edge)))));
        }
        halve(count, |middle| Ok(is(self.order_of(blocks, middle, edge, sought)?)))
    }

    /// How an edge of a block stands to a position.
    fn order_of(
        &self,
        blocks: &mut Blocks,
        number: usize,
        edge: Edge,
        sought: &Sought<'_>,
    ) -> Result<Ordering> {
        if let (Some(ranks), Some(sought)) = (blocks.packed.ranks(), sought.number()) {
            return Ok(sought.order_of_row(ranks(number, edge)));
        }
        blocks.packed.edge(number, edge, &mut blocks.edge);
        let order = sought.compare_prefix(&blocks.edge);
        order.map_err(|error| self.corrupt(self.promoted().blocks.start, error))
    }
}

/// How many of so many come before the first one that is not before something.
#[inline]
fn halve(count: usize, mut is_before: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}
