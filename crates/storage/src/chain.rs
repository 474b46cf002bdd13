//! SSTables that follow each other, as one stream: each is opened when the ones in front of it have been read.
//!
//! ```text
//! now      ├── a ──┤
//! next                 ├ b ┤├ c ┤              small ones together, as many as are worth a request
//! later                            ├── d ──┤
//! ```
//!
//! Where a partition is in two that follow each other, its rows in one stand before those in the other: its end in the first one and
//! its beginning in the second are left out. The second one does not delete it ([`crate::lanes`]).

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::rc::Rc;

use model::flat::FlatRow;
use model::merge::{Direction, Mapped, Merge};
use model::{Fragment, FragmentReader, Next, PartitionKey, Schema};

use crate::lanes::Lane;
use crate::sstable_set::Member;
use crate::{Error, Result};

/// So many are opened at once at the most, however small they are.
pub(crate) const MOST_AT_ONCE: usize = 32;

/// Those that were read to their end with so few requests were small.
const FEW_FILLS: u32 = 2;

/// How SSTables of chains are opened.
pub(crate) trait Opens {
    /// What is read of one.
    type Reader: FragmentReader<Error = sstable::Error> + fmt::Debug;

    /// What an SSTable, one of so many that are read at once, has of what is wanted; `None` if it has nothing.
    fn open(
        &self,
        member: &Rc<Member>,
        at_once: usize,
    ) -> impl Future<Output = Result<Option<Mapped<Self::Reader>>>>;

    /// How much of what is worth a read an SSTable will probably bring: those that bring 1 together are opened at once, and no more.
    fn worth(&self, member: &Member) -> f64;

    /// The partition in which one ends and the next one begins, if there may be such a one.
    fn shared(&self, before: &Member, next: &Member) -> Option<PartitionKey>;
}

/// What SSTables of one lane have, one behind the other.
pub(crate) struct Chain<O: Opens> {
    /// What is read now.
    now: Merge<Mapped<O::Reader>>,
    /// What follows, and what is left to be told of the seam: nothing for those that are the last.
    rest: Option<Box<Rest<O>>>,
}

/// SSTables that were not opened yet.
struct Rest<O> {
    opener: Rc<O>,
    schema: Rc<Schema>,
    direction: Direction,
    members: VecDeque<Rc<Member>>,
    /// How many SSTables are read in other lanes meanwhile.
    beside: usize,
    /// How many are read now, how many batches there were, and how often what is read now had to wait.
    batch: usize,
    batches: usize,
    fills: u32,
    /// The partition in which `now` ends and the next one begins.
    shared: Option<PartitionKey>,
    seam: Seam,
}

/// Where the stream is, as seen from the partition that SSTables share.
#[derive(Debug)]
enum Seam {
    /// Not in it.
    Outside,
    /// Among the rows that the first one has.
    Inside,
    /// At their end, which is not told as long as the next SSTable may go on with it.
    AtEnd(PartitionKey),
    /// All of `now` was read, and the next one is to be opened.
    Opening(Option<PartitionKey>),
    /// Another partition begins than the one whose end was told last.
    Beginning(Fragment),
}

impl<O: Opens> Chain<O> {
    /// Opens the first ones of each lane, all at once; none for lanes that have nothing.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) async fn open_lanes(
        opener: Rc<O>,
        lanes: Vec<Lane>,
        direction: Direction,
        schema: &Rc<Schema>,
    ) -> Result<Vec<Chain<O>>> {
        let rest = |lane: Lane| Rest {
            opener: opener.clone(),
            schema: schema.clone(),
            direction,
            members: lane.into(),
            beside: 0,
            batch: 0,
            batches: 0,
            fills: 0,
            shared: None,
            seam: Seam::Outside,
        };
        let mut rests: Vec<Rest<O>> = lanes.into_iter().map(rest).collect();
        let firsts: usize = rests.iter().map(Rest::size_of_batch).sum();
        for rest in &mut rests {
            rest.beside = firsts - rest.size_of_batch();
        }
        let chains = runtime::join_all(rests.into_iter().map(Chain::begin)).await;
        chains.into_iter().filter_map(Result::transpose).collect()
    }

    async fn begin(mut rest: Rest<O>) -> Result<Option<Chain<O>>> {
        let Some(now) = rest.open_next().await? else { return Ok(None) };
        Ok(Some(Chain { now, rest: rest.has_members().then(|| Box::new(rest)) }))
    }

    /// The next fragment of several that follow each other.
    fn pop_of_several(&mut self, place: &mut Fragment) -> Result<Next> {
        let Some(rest) = &mut self.rest else { return Ok(self.now.pop(place)?) };
        loop {
            match mem::replace(&mut rest.seam, Seam::Outside) {
                Seam::Opening(due) => {
                    rest.seam = Seam::Opening(due);
                    return Ok(Next::Fill);
                }
                Seam::Beginning(start) => {
                    rest.enter(&start);
                    *place = start;
                    return Ok(Next::Fragment);
                }
                seam => rest.seam = seam,
            }
            let next = self.now.pop(place)?;
            match (next, &mut *place) {
                (Next::Fragment, Fragment::PartitionStart(_)) => {
                    if !rest.goes_on(place)? {
                        return Ok(rest.begin_partition(place));
                    }
                }
                (Next::Fragment, Fragment::PartitionEnd) if rest.ends_shared() => {}
                (Next::End, _) if rest.has_members() => rest.opens_next(),
                (Next::End, _) => {
                    let is_due = matches!(rest.seam, Seam::AtEnd(_));
                    self.rest = None;
                    if is_due {
                        *place = Fragment::PartitionEnd;
                        return Ok(Next::Fragment);
                    }
                    return Ok(Next::End);
                }
                _ => return Ok(next),
            }
        }
    }
}

impl<O: Opens> Rest<O> {
    fn has_members(&self) -> bool {
        !self.members.is_empty()
    }

    /// Whether the partition that begins is the one whose end was not told.
    fn goes_on(&mut self, fragment: &Fragment) -> Result<bool> {
        let (Seam::AtEnd(due), Fragment::PartitionStart(start)) = (&self.seam, fragment) else {
            return Ok(false);
        };
        if *due != start.key {
            return Ok(false);
        }
        if !start.deletion.is_live() {
            let what = "a partition is deleted in an SSTable whose statistics say that none is";
            return Err(Error::Invalid(what.to_owned()));
        }
        self.enter(fragment);
        Ok(true)
    }

    /// A partition begins that is another one than before. The end of that comes first, if it was not told.
    fn begin_partition(&mut self, place: &mut Fragment) -> Next {
        if matches!(self.seam, Seam::AtEnd(_)) {
            self.seam = Seam::Beginning(mem::replace(place, Fragment::PartitionEnd));
        } else {
            self.enter(place);
        }
        Next::Fragment
    }

    /// A partition begins, or goes on.
    fn enter(&mut self, start: &Fragment) {
        let Fragment::PartitionStart(start) = start else {
            unreachable!("partitions begin with their start")
        };
        self.seam = if self.shared.as_ref() == Some(&start.key) { Seam::Inside } else { Seam::Outside };
    }

    /// Whether the partition that ends may go on in the next SSTable.
    fn ends_shared(&mut self) -> bool {
        match (&self.seam, &self.shared) {
            (Seam::Inside, Some(key)) => {
                self.seam = Seam::AtEnd(key.clone());
                true
            }
            _ => false,
        }
    }

    fn opens_next(&mut self) {
        let due = match mem::replace(&mut self.seam, Seam::Outside) {
            Seam::AtEnd(key) => Some(key),
            _ => None,
        };
        self.seam = Seam::Opening(due);
    }

    /// Opens the next ones that have something; `None` if none has.
    async fn open_next(&mut self) -> Result<Option<Merge<Mapped<O::Reader>>>> {
        while self.has_members() {
            let count = self.size_of_batch();
            let at_once = self.beside + count;
            let opened = self.members.iter().take(count).map(|member| self.opener.open(member, at_once));
            let mut readers = Vec::new();
            for reader in runtime::join_all(opened).await {
                readers.extend(reader?);
            }
            let last = self.members.drain(..count).next_back().expect("no batch is empty");
            self.shared = self.members.front().and_then(|next| self.opener.shared(&last, next));
            (self.batch, self.batches, self.fills) = (count, self.batches + 1, 0);
            if !readers.is_empty() {
                return Ok(Some(Merge::new(&self.schema, self.direction, readers)));
            }
        }
        Ok(None)
    }

    /// How many are opened next: as many as are enough, by what is known of them. Where those before had less than that, twice as many, so
    /// that there are never many waits for little. The first ones say nothing of that, as a slice may begin where they end.
    fn size_of_batch(&self) -> usize {
        let were_small = self.batches > 1 && self.fills <= FEW_FILLS;
        let least = if were_small { (2 * self.batch).min(MOST_AT_ONCE) } else { 1 };
        let mut worth = 0.0;
        let is_wanted = |(before, member): &(usize, &Rc<Member>)| {
            let is_wanted = *before < least || worth < 1.0;
            worth += self.opener.worth(member);
            is_wanted
        };
        (0..).zip(self.members.iter().take(MOST_AT_ONCE)).take_while(is_wanted).count()
    }
}

impl<O: Opens> FragmentReader for Chain<O> {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        match self.rest {
            None => Ok(self.now.pop(place)?),
            Some(_) => self.pop_of_several(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl FnMut(FlatRow<'_>) -> bool) {
        match &self.rest {
            Some(rest) if !matches!(rest.seam, Seam::Outside | Seam::Inside) => {}
            _ => self.now.pop_flat(take),
        }
    }

    async fn fill(&mut self) -> Result<()> {
        let Some(rest) = &mut self.rest else { return Ok(self.now.fill().await?) };
        let Seam::Opening(due) = &rest.seam else {
            rest.fills += 1;
            return Ok(self.now.fill().await?);
        };
        let due = due.clone();
        // The next ones take a way of their own, which is longer than that of most reads.
        if let Some(next) = Box::pin(rest.open_next()).await? {
            self.now = next;
        }
        rest.seam = due.map_or(Seam::Outside, Seam::AtEnd);
        Ok(())
    }
}

impl<O: Opens> fmt::Debug for Chain<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let later = self.rest.as_ref().map_or(0, |rest| rest.members.len());
        f.debug_struct("Chain").field("now", &self.now).field("later", &later).finish()
    }
}
