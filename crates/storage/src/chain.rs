//! Streams that follow each other as one, as of SSTables whose rows do: each is opened when the one in front of it has been read.
//!
//! ```text
//! now     ├──────── a ────────┤
//! next                         ├────── b ──────┤ …
//!                              ^ seam: where both have the partition, its end in a and its beginning in b are left out
//! ```
//!
//! The rows that the next one has of a partition stand behind those before them, and it deletes nothing of it that was not told at its
//! beginning. What was told there may hide rows that come later: that is for who reads them.

use std::fmt;
use std::mem;

use model::flat::RowTaker;
use model::{DeletionTime, Fragment, FragmentReader, Next, PartitionKey};
use runtime::boxed;

use crate::{Error, Result};

/// Streams that follow each other, and how each is opened.
pub(crate) trait Links {
    /// One of them.
    type Reader: FragmentReader<Error: Into<Error>> + fmt::Debug;

    /// Opens the next one that has something; `None` if none has. Who read the last one waited so often.
    fn open_next(&mut self, fills: u32) -> impl Future<Output = Result<Option<Self::Reader>>>;

    /// One that has nothing.
    fn nothing(&self) -> Self::Reader;

    /// Whether there may be another one.
    fn has_more(&self) -> bool;

    /// The partition in which the one that was opened last ends, and the next one begins, if there may be such a one.
    fn shared(&self) -> Option<&PartitionKey>;

    /// Whether there are static rows. Where there are none, what a stream says of one is of a column that is gone.
    fn has_statics(&self) -> bool;
}

/// What streams have that follow each other.
pub(crate) struct Chain<L: Links> {
    /// What is read now.
    now: L::Reader,
    /// What follows, and what is left to be told of the seam: nothing behind the last one.
    rest: Option<Box<Rest<L>>>,
}

/// What was not opened yet.
struct Rest<L> {
    links: L,
    /// How often `now` had to wait.
    fills: u32,
    /// What was told of the deletion of the partition.
    deletion: DeletionTime,
    seam: Seam,
}

/// Where the stream is, as seen from the partition that two of them share.
#[derive(Debug)]
enum Seam {
    /// Not in it.
    Outside,
    /// Among the rows that the first one has.
    Inside,
    /// At their end, which is not told as long as the next one may go on with it.
    AtEnd(PartitionKey),
    /// All of `now` was read, and the next one is to be opened; the end that was not told.
    Opening(Option<PartitionKey>),
    /// The end was told, as another partition begins.
    Beginning(Fragment),
}

impl<L: Links> Chain<L> {
    /// Opens the first one that has something; `None` if none has.
    ///
    /// # Errors
    /// What cannot be read.
    pub(crate) async fn begin(mut links: L) -> Result<Option<Chain<L>>> {
        let Some(now) = links.open_next(0).await? else { return Ok(None) };
        let rest = Rest { links, fills: 0, deletion: DeletionTime::LIVE, seam: Seam::Outside };
        Ok(Some(Chain { now, rest: rest.links.has_more().then(|| Box::new(rest)) }))
    }

    /// The next fragment, where there is something to follow: as [`Chain::now`] has it, but that a partition which goes on in the next
    /// link neither ends in this one nor begins there again.
    fn pop_in_front(&mut self, place: &mut Fragment) -> Result<Next> {
        let Some(rest) = &mut self.rest else { return self.now.pop(place).map_err(Into::into) };
        loop {
            if let Seam::Opening(_) = rest.seam {
                return Ok(Next::Fill);
            }
            if let Seam::Beginning(start) = &mut rest.seam {
                *place = mem::take(start);
                rest.enter(place);
                return Ok(Next::Fragment);
            }
            let next = self.now.pop(place).map_err(Into::into)?;
            match (next, &*place) {
                (Next::Fragment, Fragment::PartitionStart(_)) => {
                    if !rest.goes_on(place)? {
                        rest.begin_partition(place);
                        return Ok(next);
                    }
                }
                // Whether it ends shows in the next link.
                (Next::Fragment, Fragment::PartitionEnd) if rest.ends_shared() => {}
                (Next::Fragment, Fragment::StaticRow(_)) if !rest.links.has_statics() => {}
                (Next::End, _) if rest.links.has_more() => rest.open_next(),
                // The last link: from now on nothing is in front of it.
                (Next::End, _) => {
                    let is_due = matches!(rest.seam, Seam::AtEnd(_));
                    self.rest = None;
                    if is_due {
                        *place = Fragment::PartitionEnd;
                        return Ok(Next::Fragment);
                    }
                    return Ok(next);
                }
                _ => return Ok(next),
            }
        }
    }
}

impl<L: Links> Rest<L> {
    /// Whether the partition that begins is the one whose end was not told.
    fn goes_on(&mut self, fragment: &Fragment) -> Result<bool> {
        let (Seam::AtEnd(due), Fragment::PartitionStart(start)) = (&self.seam, fragment) else {
            return Ok(false);
        };
        if *due != start.key {
            return Ok(false);
        }
        if start.deletion > self.deletion {
            let token = start.key.token;
            let what =
                format!("an SSTable deletes the partition of token {token}, which it was known not to do");
            return Err(Error::Invalid(what));
        }
        let told = self.deletion;
        self.enter(fragment);
        self.deletion = told;
        Ok(true)
    }

    /// A partition begins that is another one than before. The end of that comes first, if it was not told.
    fn begin_partition(&mut self, place: &mut Fragment) {
        if matches!(self.seam, Seam::AtEnd(_)) {
            self.seam = Seam::Beginning(mem::replace(place, Fragment::PartitionEnd));
        } else {
            self.enter(place);
        }
    }

    /// A partition begins, or goes on.
    fn enter(&mut self, start: &Fragment) {
        let Fragment::PartitionStart(start) = start else {
            unreachable!("partitions begin with their start")
        };
        self.deletion = start.deletion;
        self.seam = if self.links.shared() == Some(&start.key) { Seam::Inside } else { Seam::Outside };
    }

    /// Whether the partition that ends may go on in the next one.
    fn ends_shared(&mut self) -> bool {
        match (&self.seam, self.links.shared()) {
            (Seam::Inside, Some(key)) => {
                self.seam = Seam::AtEnd(key.clone());
                true
            }
            _ => false,
        }
    }

    /// The next one is to be opened.
    fn open_next(&mut self) {
        let due = match mem::replace(&mut self.seam, Seam::Outside) {
            Seam::AtEnd(key) => Some(key),
            _ => None,
        };
        self.seam = Seam::Opening(due);
    }
}

impl<L: Links> FragmentReader for Chain<L> {
    type Error = Error;

    #[inline]
    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        match self.rest {
            None => self.now.pop(place).map_err(Into::into),
            Some(_) => self.pop_in_front(place),
        }
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        match &self.rest {
            Some(rest) if !matches!(rest.seam, Seam::Outside | Seam::Inside) => {}
            _ => self.now.pop_flat(take),
        }
    }

    async fn fill(&mut self) -> Result<()> {
        let Some(rest) = &mut self.rest else { return self.now.fill().await.map_err(Into::into) };
        let Seam::Opening(due) = &rest.seam else {
            rest.fills += 1;
            return self.now.fill().await.map_err(Into::into);
        };
        let due = due.clone();
        // Its memory is for the next one.
        self.now = rest.links.nothing();
        // That takes a way of its own, which is longer than that of most reads.
        if let Some(next) = boxed(|| rest.links.open_next(rest.fills)).await? {
            self.now = next;
        }
        rest.fills = 0;
        rest.seam = due.map_or(Seam::Outside, Seam::AtEnd);
        Ok(())
    }
}

impl<L: Links> fmt::Debug for Chain<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("now", &self.now).finish_non_exhaustive()
    }
}
