//! Lookups in BloomRows.db: at once where the page is in memory.
//!
//! Nothing is read when the SSTable is opened. The directory comes with the first row that is worth a request, see
//! [`Absences`], and stays.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;

use runtime::{Cache, File, Reserved};

use super::directory::{Directory, Trailer};
use super::{Absences, LINES, NUMBER_AT, line_of};
use crate::cache::cached_file::CachedFile;
use crate::parts::binding::Binding;
use crate::parts::bloom_pages::{LINE, Line, Probe};
use crate::parts::fences::STRETCH;
use crate::parts::sealed_page::{PAGE, is_sound};
use crate::parts::usage::Usage;
use crate::{Result, Version};

/// What is read first of the directory and the trailer: lines of 2,500 stretches. Bytes.
const TAIL: u64 = 24 << 10;
/// A directory takes no more than this share of the cache, so that its pages have room there.
const LARGEST_SHARE: usize = 16;

/// An open BloomRows.db, as long as it is to be trusted.
pub(crate) struct BloomRows {
    file: CachedFile,
    cache: Cache,
    version: Version,
    binding: Binding,
    directory: OnceCell<Resident>,
    /// Why it is not used any more.
    ignored: RefCell<Option<String>>,
    absences: Rc<Absences>,
}

struct Resident {
    directory: Directory,
    _reserved: Reserved,
}

impl fmt::Debug for BloomRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomRows").field("file", &self.file).finish_non_exhaustive()
    }
}

impl BloomRows {
    /// What is resident before anything is read: the file, its name. Bytes.
    pub(crate) const RESIDENT: usize = 600;

    /// The lines in `file`, if they turn out to be of the SSTable of this version and binding.
    pub(crate) fn new(file: File, cache: Cache, version: Version, binding: Binding) -> BloomRows {
        BloomRows {
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

    /// Whether the row of this hash is surely not in the group that begins `at` bytes behind its partition's first block in
    /// Index.db. Waits for a request where rows are mostly not there and what tells is not in memory.
    #[inline]
    pub(crate) async fn denies(&self, ordinal: u64, at: u64, hash: [u64; 2]) -> bool {
        let probe = match self.probe(ordinal, at, hash) {
            Probe::Unread if self.absences.prevail() => self.ask(ordinal, at, hash).await,
            probe => probe,
        };
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
    fn probe(&self, ordinal: u64, at: u64, hash: [u64; 2]) -> Probe {
        if self.ignored.borrow().is_some() {
            return Probe::Maybe;
        }
        let Some(Resident { directory, .. }) = self.directory.get() else { return Probe::Unread };
        let Some(lines) = directory.lines(ordinal, at / STRETCH) else { return Probe::Maybe };
        let line = lines.first + line_of(hash, lines.count);
        match self.file.at_hand(u64::from(line / LINES)) {
            Some(page) => self.in_line(&page, line, directory.hashes, hash),
            None => Probe::Unread,
        }
    }

    /// The same, with what has to be read for it. What cannot be read tells nothing, now and later.
    #[cold]
    async fn ask(&self, ordinal: u64, at: u64, hash: [u64; 2]) -> Probe {
        if self.directory.get().is_none() {
            self.load().await;
        }
        let Some(Resident { directory, .. }) = self.directory.get() else { return Probe::Maybe };
        let Some(lines) = directory.lines(ordinal, at / STRETCH) else { return Probe::Maybe };
        let line = lines.first + line_of(hash, lines.count);
        let start = u64::from(line / LINES) * PAGE as u64;
        match self.file.read(start..start + PAGE as u64).await {
            Ok(page) => self.in_line(&page, line, directory.hashes, hash),
            Err(error) => {
                self.give_up(error.to_string());
                Probe::Maybe
            }
        }
    }

    /// What the page with this line says of a row.
    fn in_line(&self, page: &[u8], line: u32, hashes: u8, hash: [u64; 2]) -> Probe {
        let (lines, rest) = page.split_at(NUMBER_AT);
        if !rest.starts_with(&(line / LINES).to_be_bytes()) {
            self.give_up("a page of it is not where it belongs".to_owned());
            return Probe::Maybe;
        }
        let (lines, _) = lines.as_chunks::<LINE>();
        let has = Line::decode(&lines[(line % LINES) as usize]).has(hash[1], hashes);
        if has { Probe::Maybe } else { Probe::Absent }
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
        // The directory is mostly among it, and the last lines.
        self.file.prefetch(len.saturating_sub(TAIL)..len).await?;
        let last = self.file.read(len - page..len).await?;
        Ok(Trailer::decode(&last, len, &self.binding, self.version))
    }

    /// From now on all rows pass.
    fn give_up(&self, why: String) {
        self.ignored.replace(Some(why));
    }
}
