//! Where in Index.db a key would be, by Summary.db. If fences say the same, Summary.db is read only when it is first needed.
//!
//! Fences are read by pages. With them only the first and the last key have to be in memory; the whole summary takes 30 to 50 bytes for
//! every 128 partitions. Since `oa` these two keys are in Statistics.db. Before, they are at the end of Summary.db, which has no checksum:
//! they are believed if the pages of the filter begin and end with their tokens. Summary.db is opened with the SSTable even so, because its
//! name may be gone later, and is read if the fences turn out to be wrong.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::rc::Rc;

use model::Token;
use model::key::token_of;
use runtime::{Cache, File, Reserved, SingleFlight};

use crate::big::entry::{EntryScanner, IndexSource};
use crate::index::{INDEX_STEP, token_for};
use crate::parts::statistics::Partitioner;
use crate::parts::summary::{Summary, SummaryBuilder};
use crate::{Error, Result, Version};

/// A Summary.db of up to so many bytes is read when its SSTable is opened, and so many at the end of a larger one may be. Bytes.
const SMALL: u64 = 4 << 10;

/// Every how many partitions a summary that is rebuilt has an entry: Cassandra's default.
const INTERVAL: u32 = 128;

/// The summary of an SSTable.
pub(crate) struct KeySummary {
    /// The first and the last key.
    ends: [Box<[u8]>; 2],
    was_missing: bool,
    read: OnceCell<Rc<Summary>>,
    /// Where it comes from, if it was not read when the SSTable was opened.
    later: Option<Box<Later>>,
}

struct Later {
    source: SummarySource,
    reading: SingleFlight<(), Result<Rc<Summary>>>,
    reserved: Cell<Option<Reserved>>,
}

/// Where a summary comes from, and what it has to be of.
pub(crate) struct SummarySource {
    /// Summary.db, if there is one.
    pub(crate) file: Option<File>,
    pub(crate) index: File,
    pub(crate) version: Version,
    pub(crate) partitioner: Partitioner,
    /// The first and the last key, where Statistics.db tells them.
    pub(crate) ends: [Option<Box<[u8]>>; 2],
    /// Their tokens, where the pages of the filter tell them and are bound to the data by its digest.
    pub(crate) tokens: Option<[Token; 2]>,
    pub(crate) cache: Cache,
}

impl KeySummary {
    /// Reads Summary.db, unless it can wait and is not small; rebuilds it from Index.db where there is none.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format, or the rest of the SSTable.
    pub(crate) async fn open(mut source: SummarySource, can_wait: bool) -> Result<KeySummary> {
        let was_missing = source.file.is_none();
        if can_wait && let Some(ends) = source.ends_alone().await? {
            source.ends = ends.clone().map(Some);
            let later = Later { source, reading: SingleFlight::new(), reserved: Cell::default() };
            return Ok(KeySummary { ends, was_missing, read: OnceCell::new(), later: Some(Box::new(later)) });
        }
        let summary = source.read().await?;
        let ends = [summary.first_key().into(), summary.last_key().into()];
        Ok(KeySummary { ends, was_missing, read: OnceCell::from(summary), later: None })
    }

    /// The key of the first partition.
    pub(crate) fn first_key(&self) -> &[u8] {
        &self.ends[0]
    }

    /// The key of the last partition.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.ends[1]
    }

    /// Whether there was no Summary.db, so that it was rebuilt in memory.
    pub(crate) fn was_missing(&self) -> bool {
        self.was_missing
    }

    /// The summary: read, if it is not in memory.
    ///
    /// # Errors
    /// What cannot be read or contradicts the format, or the rest of the SSTable.
    pub(crate) async fn get(&self) -> Result<&Summary> {
        let (None, Some(later)) = (self.read.get(), &self.later) else {
            return Ok(self.read.get().expect("what is not read later was read when it was opened"));
        };
        let summary = later.reading.run((), || later.source.read()).await?;
        Ok(self.read.get_or_init(|| {
            later.reserved.set(Some(later.source.cache.reserve(summary.memory_bytes())));
            summary
        }))
    }

    /// What it has in memory right after it was opened, in bytes; what is read later it reserves itself.
    pub(crate) fn memory_bytes(&self) -> usize {
        let ends = self.ends.iter().map(|key| key.len()).sum::<usize>();
        let read = self.read.get().map_or(0, |summary| summary.memory_bytes());
        ends + read + self.later.as_ref().map_or(0, |later| size_of::<Later>() + later.source.memory_bytes())
    }
}

impl SummarySource {
    fn memory_bytes(&self) -> usize {
        let ends = self.ends.iter().flatten().map(|key| key.len()).sum::<usize>();
        ends + self.file.as_ref().map_or(0, File::memory_bytes)
    }

    /// The first and the last key, if it is less to read these than the whole.
    async fn ends_alone(&self) -> Result<Option<[Box<[u8]>; 2]>> {
        let Some(file) = self.file.as_ref().filter(|file| file.len() > SMALL) else { return Ok(None) };
        if let [Some(first), Some(last)] = &self.ends
            && !first.is_empty()
            && !last.is_empty()
        {
            return Ok(Some([first.clone(), last.clone()]));
        }
        let Some(tokens) = self.tokens else { return Ok(None) };
        let tail = file.read_exact_at(file.len() - SMALL, SMALL as usize).await?;
        Ok(Summary::ends_in(&tail, tokens).map(|ends| ends.map(Box::from)))
    }

    async fn read(&self) -> Result<Rc<Summary>> {
        let Some(file) = &self.file else { return self.rebuild().await.map(Rc::new) };
        let bytes = file.read_exact_at(0, file.len() as usize).await?;
        let parsed = Summary::parse(file.path(), &bytes, self.version, self.partitioner);
        let summary = parsed.map_err(Error::of_spare)?;
        summary.check_index_len(self.index.path(), self.index.len())?;
        summary.check_ends(file.path(), self.ends.each_ref().map(Option::as_deref))?;
        let tokens = [summary.first_key(), summary.last_key()].map(token_of);
        if self.tokens.is_some_and(|told| told != tokens) {
            let what = "its first or its last key is not the one that the filter in BloomPages.db has: one of the two files is wrong";
            return Err(Error::corrupt(file.path(), 0, what).of_spare());
        }
        Ok(Rc::new(summary))
    }

    async fn rebuild(&self) -> Result<Summary> {
        let source = IndexSource::Streamed(self.index.clone());
        let mut entries = EntryScanner::new(source, 0..self.index.len(), INDEX_STEP);
        let mut builder = SummaryBuilder::new(INTERVAL);
        let mut last = None;
        while let Some(entry) = entries.next().await? {
            let token = token_for(self.partitioner, &entry.key);
            if last.replace(token).is_some_and(|last| last > token) {
                let what = "the partitions of the index are out of order";
                return Err(Error::corrupt(self.index.path(), entry.at, what));
            }
            builder.push(&entry.key, entry.at);
        }
        Ok(builder.finish())
    }
}

impl fmt::Debug for KeySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySummary").field("is_read", &self.read.get().is_some()).finish_non_exhaustive()
    }
}
