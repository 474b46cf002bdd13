//! Lookups in RowFilter.db: at once where the page is in memory.
//!
//! Nothing is read when the SSTable is opened. The directory comes with the first row that is worth a request, see
//! [`Absences`], and stays.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use runtime::{Cache, File, Reserved};

use super::directory::{Directory, Strips, Trailer};
use super::ribbon::{Equation, STRIP};
use super::{Absences, NUMBER_AT, STRIPS};
use crate::cache::cached_file::CachedFile;
use crate::parts::binding::Binding;
use crate::parts::bloom_pages::Probe;
use crate::parts::sealed_page::{PAGE, is_sound};
use crate::parts::usage::Usage;
use crate::{Result, Version};

/// What is read first of the directory and the trailer: strips of 2,500 stretches. Bytes.
const TAIL: u64 = 24 << 10;
/// A directory takes no more than this share of the cache, so that its pages have room there.
const LARGEST_SHARE: usize = 16;

/// An open RowFilter.db, as long as it is to be trusted.
pub(crate) struct RowFilter {
    file: CachedFile,
    cache: Cache,
    version: Version,
    binding: Binding,
    directory: OnceCell<Resident>,
    /// Why it is not used any more.
    ignored: RefCell<Option<String>>,
    absences: Rc<Absences>,
}

/// What is resident before anything is read beside the file: its places in memory. Bytes.
const RESIDENT: usize = 240;

struct Resident {
    directory: Directory,
    _reserved: Reserved,
}

impl fmt::Debug for RowFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowFilter").field("file", &self.file).finish_non_exhaustive()
    }
}

impl RowFilter {
    /// What is resident before anything is read, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        RESIDENT + self.file.memory_bytes()
    }

    /// The ribbons in `file`, if they turn out to be of the SSTable of this version and binding.
    pub(crate) fn new(file: File, cache: Cache, version: Version, binding: Binding) -> RowFilter {
        RowFilter {
            file: CachedFile::checked(file, cache.clone(), is_sound),
            cache,
            version,
            binding,
            directory: OnceCell::new(),
            ignored: RefCell::default(),
            absences: Rc::default(),
        }
    }

    /// Whether asking may be of use: something of the file is in memory, or worth a request.
    #[inline]
    pub(crate) fn is_worth_asking(&self) -> bool {
        self.directory.get().is_some() || self.absences.prevail()
    }

    /// Whether the row of this hash is surely not in a group, which has these bytes of the index, counted from its partition's first
    /// block. Waits for a request where rows are mostly not there and what tells is not in memory.
    #[inline]
    pub(crate) async fn denies(&self, ordinal: u64, group: Range<u64>, hash: [u64; 2]) -> bool {
        let probe = match self.probe(ordinal, &group, hash) {
            Probe::Unread if self.absences.prevail() => self.ask(ordinal, &group, hash).await,
            probe => probe,
        };
        self.noted(probe)
    }

    /// The same, as far as that is in memory.
    #[inline]
    pub(crate) fn denies_at_hand(&self, ordinal: u64, group: &Range<u64>, hash: [u64; 2]) -> bool {
        self.noted(self.probe(ordinal, group, hash))
    }

    #[inline]
    fn noted(&self, probe: Probe) -> bool {
        let is_absent = probe == Probe::Absent;
        if is_absent {
            self.absences.note(true);
        }
        is_absent
    }

    /// What takes note of whether rows that were not denied were there.
    pub(crate) fn absences(&self) -> &Rc<Absences> {
        &self.absences
    }

    /// What became of the file. Reads its end, if nothing of it has been read.
    pub(crate) async fn usage(&self) -> Usage {
        if let Some(why) = self.ignored.borrow().clone() {
            return Usage::Ignored { why };
        }
        match self.trailer().await {
            Ok(Ok(_)) => Usage::InUse { bytes: self.file.len() },
            Ok(Err(why)) => Usage::Ignored { why: why.to_owned() },
            Err(error) => Usage::Ignored { why: error.to_string() },
        }
    }

    /// What is told of a row, as far as that is in memory.
    fn probe(&self, ordinal: u64, group: &Range<u64>, hash: [u64; 2]) -> Probe {
        if self.ignored.borrow().is_some() {
            return Probe::Maybe;
        }
        let Some(Resident { directory, .. }) = self.directory.get() else { return Probe::Unread };
        let Some(strips) = directory.strips(ordinal, group) else { return Probe::Maybe };
        let (equation, first, next) = sought(strips, hash);
        let Some(page) = self.file.at_hand(u64::from(first / STRIPS)) else { return Probe::Unread };
        match next {
            None => self.settle(equation, (&page, first), None),
            Some(next) if next / STRIPS == first / STRIPS => {
                self.settle(equation, (&page, first), Some((&page, next)))
            }
            Some(next) => match self.file.at_hand(u64::from(next / STRIPS)) {
                Some(behind) => self.settle(equation, (&page, first), Some((&behind, next))),
                None => Probe::Unread,
            },
        }
    }

    /// The same, with what has to be read for it. What cannot be read tells nothing, now and later.
    #[cold]
    async fn ask(&self, ordinal: u64, group: &Range<u64>, hash: [u64; 2]) -> Probe {
        if self.directory.get().is_none() {
            self.load().await;
        }
        let Some(Resident { directory, .. }) = self.directory.get() else { return Probe::Maybe };
        let Some(strips) = directory.strips(ordinal, group) else { return Probe::Maybe };
        let (equation, first, next) = sought(strips, hash);
        let (page, end) = (first / STRIPS, next.unwrap_or(first) / STRIPS + 1);
        match self.file.read(u64::from(page) * PAGE as u64..u64::from(end) * PAGE as u64).await {
            Ok(pages) => {
                let of = |strip: u32| (&pages[(strip / STRIPS - page) as usize * PAGE..][..PAGE], strip);
                self.settle(equation, of(first), next.map(of))
            }
            Err(error) => {
                self.give_up(error.to_string());
                Probe::Maybe
            }
        }
    }

    /// What strips say of a row, each by its page and its number.
    fn settle(&self, equation: Equation, first: (&[u8], u32), next: Option<(&[u8], u32)>) -> Probe {
        let holds = match (strip_of(first), next.map(strip_of)) {
            (Some(first), None) => equation.holds(first, None),
            (Some(first), Some(Some(next))) => equation.holds(first, Some(next)),
            _ => {
                self.give_up("a page of it is not where it belongs".to_owned());
                true
            }
        };
        if holds { Probe::Maybe } else { Probe::Absent }
    }

    async fn load(&self) {
        match self.read_directory().await {
            Ok(Ok(directory)) => {
                let reserved = self.cache.reserve(directory.memory_bytes());
                // Who read it at the same time read the same.
                drop(self.directory.set(Resident { directory, _reserved: reserved }));
            }
            Ok(Err(why)) => self.give_up(why.to_owned()),
            Err(error) => self.give_up(error.to_string()),
        }
    }

    async fn read_directory(&self) -> Result<std::result::Result<Directory, &'static str>> {
        let trailer = match self.trailer().await? {
            Ok(trailer) => trailer,
            Err(why) => return Ok(Err(why)),
        };
        if trailer.len() as usize > self.cache.capacity() / LARGEST_SHARE {
            return Ok(Err("its directory is large beside the cache"));
        }
        let end = self.file.len() - PAGE as u64;
        let pages = self.file.read(end - trailer.len()..end).await?;
        Ok(Directory::decode(trailer, &pages))
    }

    async fn trailer(&self) -> Result<std::result::Result<Trailer, &'static str>> {
        let (len, page) = (self.file.len(), PAGE as u64);
        if len < page || !len.is_multiple_of(page) {
            return Ok(Err("it is cut off"));
        }
        // The directory is mostly among it, and the last strips.
        self.file.prefetch(len.saturating_sub(TAIL)..len).await?;
        let last = self.file.read(len - page..len).await?;
        Ok(Trailer::decode(&last, len, &self.binding, self.version))
    }

    /// From now on all rows pass.
    fn give_up(&self, why: String) {
        self.ignored.replace(Some(why));
    }
}

/// What to ask of a ribbon about a row, and the numbers of the strips to ask: one or two.
#[inline]
fn sought(strips: Strips, hash: [u64; 2]) -> (Equation, u32, Option<u32>) {
    let equation = Equation::of(hash, strips.seed, usize::from(strips.count));
    let first = strips.first + equation.strip() as u32;
    (equation, first, equation.spans_two().then_some(first + 1))
}

/// The strip of this number in its page, if it is the right page.
fn strip_of((page, strip): (&[u8], u32)) -> Option<&[u8; STRIP]> {
    let (strips, rest) = page.split_at(NUMBER_AT);
    let is_right = rest.starts_with(&(strip / STRIPS).to_be_bytes());
    is_right.then(|| &strips.as_chunks().0[(strip % STRIPS) as usize])
}
