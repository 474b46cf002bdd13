//! Which keys an SSTable may have: by its filter in pages, or by Filter.db, or by nothing.
//!
//! If a page is wrong, the pages are no longer used and Filter.db is read: no key counts as absent because of a wrong page.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use model::PartitionKey;
use model::key::murmur3;
use runtime::{Cache, Disk, Reserved, SingleFlight};

use crate::component::Descriptor;
use crate::opener::Opener;
use crate::parts::bloom_pages::{BloomPages, Probe};
use crate::parts::filter::Filter;
use crate::parts::usage::Usage;
use crate::{Error, Result};

/// The filter of an SSTable.
pub struct KeyFilter {
    way: RefCell<Way>,
    pages_usage: RefCell<Usage>,
    /// For the filter that was read since.
    reserved: Cell<Option<Reserved>>,
}

#[derive(Clone)]
enum Way {
    /// All keys may be there.
    Nothing,
    Whole(Rc<Filter>),
    Pages(Rc<Paged>),
}

/// Pages, and where Filter.db is if they are given up.
struct Paged {
    pages: BloomPages,
    disk: Disk,
    descriptor: Descriptor,
    cache: Cache,
    giving_up: SingleFlight<(), Result<Way>>,
}

impl KeyFilter {
    /// By these pages, if they are to be used; otherwise by Filter.db, which is read.
    ///
    /// # Errors
    /// A Filter.db that cannot be read or contradicts the format.
    pub(crate) async fn open(
        opener: &Opener<'_>,
        cache: &Cache,
        pages: std::result::Result<BloomPages, Usage>,
    ) -> Result<KeyFilter> {
        let (way, usage) = match pages {
            Ok(pages) => {
                let usage = Usage::InUse { bytes: pages.file_len() };
                let (disk, descriptor) = (opener.disk.clone(), opener.descriptor.clone());
                let (cache, giving_up) = (cache.clone(), SingleFlight::new());
                (Way::Pages(Rc::new(Paged { pages, disk, descriptor, cache, giving_up })), usage)
            }
            Err(usage) => (whole(opener).await?, usage),
        };
        let (way, pages_usage) = (RefCell::new(way), RefCell::new(usage));
        Ok(KeyFilter { way, pages_usage, reserved: Cell::default() })
    }

    /// What it says of the key with this hash ([`model::key::murmur3`]), as far as that is in memory.
    #[inline]
    pub fn probe(&self, hash: [u64; 2]) -> Probe {
        match &*self.way.borrow() {
            Way::Pages(paged) => paged.pages.probe(hash),
            Way::Whole(filter) if !filter.may_contain(hash) => Probe::Absent,
            Way::Whole(_) | Way::Nothing => Probe::Maybe,
        }
    }

    /// Whether the key may be there. May read a page.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn may_contain(&self, key: &PartitionKey) -> Result<bool> {
        self.may_contain_hash(murmur3(&key.bytes)).await
    }

    /// The same of the key with this hash ([`model::key::murmur3`]).
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn may_contain_hash(&self, hash: [u64; 2]) -> Result<bool> {
        loop {
            match self.probe(hash) {
                Probe::Absent => return Ok(false),
                Probe::Maybe => return Ok(true),
                Probe::Unread => {}
            }
            let Way::Pages(paged) = self.way() else { continue };
            match paged.pages.may_contain(hash).await {
                Ok(may) => return Ok(may),
                Err(error) => self.give_up(&paged, error).await?,
            }
        }
    }

    /// Adds to `found` which of these keys may be there, by their numbers: hashes in the order of their tokens. Pages that
    /// are not in memory are read together.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn sift(&self, hashes: &[[u64; 2]], found: &mut Vec<usize>) -> Result<()> {
        let from = found.len();
        loop {
            match self.way() {
                Way::Nothing => found.extend(0..hashes.len()),
                Way::Whole(filter) => {
                    found.extend((0..hashes.len()).filter(|&at| filter.may_contain(hashes[at])))
                }
                Way::Pages(paged) => {
                    if let Err(error) = paged.pages.sift(hashes, found).await {
                        found.truncate(from);
                        self.give_up(&paged, error).await?;
                        continue;
                    }
                }
            }
            return Ok(());
        }
    }

    /// Filter.db, if there is one and it is in memory.
    pub fn whole(&self) -> Option<Rc<Filter>> {
        match self.way() {
            Way::Whole(filter) => Some(filter),
            Way::Nothing | Way::Pages(_) => None,
        }
    }

    /// Filter.db, if there is one: read, if it is not in memory.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format.
    pub async fn read_whole(&self) -> Result<Option<Rc<Filter>>> {
        match self.way() {
            Way::Whole(filter) => Ok(Some(filter)),
            Way::Nothing => Ok(None),
            Way::Pages(paged) => Ok(paged.opener().filter().await?.map(Rc::new)),
        }
    }

    /// What became of BloomPages.db.
    pub fn pages_usage(&self) -> Usage {
        self.pages_usage.borrow().clone()
    }

    /// What it had in memory when it was opened, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &*self.way.borrow() {
            Way::Nothing => 0,
            Way::Whole(filter) => filter.memory_bytes(),
            Way::Pages(paged) => {
                size_of::<Paged>() + paged.descriptor.memory_bytes() + paged.pages.memory_bytes()
            }
        }
    }

    /// Goes by Filter.db from now on, because of what reading these pages led to.
    async fn give_up(&self, paged: &Rc<Paged>, error: Error) -> Result<()> {
        let is_used = || matches!(&*self.way.borrow(), Way::Pages(now) if Rc::ptr_eq(now, paged));
        if !is_used() {
            return Ok(());
        }
        // Many may have read the same page; all wait for one Filter.db.
        let opener = paged.opener();
        let way = paged.giving_up.run((), || whole(&opener)).await?;
        if is_used() {
            let bytes = if let Way::Whole(filter) = &way { filter.memory_bytes() } else { 0 };
            self.reserved.set(Some(paged.cache.reserve(bytes)));
            self.way.replace(way);
            self.pages_usage.replace(Usage::Ignored { why: error.to_string() });
        }
        Ok(())
    }

    fn way(&self) -> Way {
        self.way.borrow().clone()
    }
}

impl Paged {
    fn opener(&self) -> Opener<'_> {
        Opener { disk: &self.disk, descriptor: &self.descriptor }
    }
}

impl fmt::Debug for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFilter").field("pages", &self.pages_usage).finish_non_exhaustive()
    }
}

async fn whole(opener: &Opener<'_>) -> Result<Way> {
    Ok(opener.filter().await?.map_or(Way::Nothing, |filter| Way::Whole(Rc::new(filter))))
}
