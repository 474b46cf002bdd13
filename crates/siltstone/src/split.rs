//! SSTables of one table into several new ones, cut between partitions: by size, by token, or into parts.
//!
//! ```text
//! by size      sources ──scan──► merge ──► writer │ writer │ …      the next one, once the file is large enough
//! by token     ranges ──index──► where each begins in each source ──scan──► merge ──► a writer a range
//! into parts   indexes ──► the ranges of tokens that have about the same size ──► by token
//! ```
//!
//! The new SSTables ascend by token as their numbers do, and no two have a partition in common. Of several sources, what
//! one of them shadows in another goes, as in a compaction; all else stays as it is.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::{Fragment, FragmentReader};
use runtime::Disk;
use sstable::component::{Component, Descriptor};
use sstable::parts::statistics::Partitioner;
use sstable::writer::{Finished, Written, remove_leftovers};
use sstable::{SSTable, SSTableWriter};

use crate::convert::{Step, Target, check, compression, encoding, options, prepare};
use crate::error::{Error, Result};
use crate::paths::next_descriptor;
use crate::read::Tables;

mod parts;
mod tokens;

pub use tokens::TokenRange;

/// Where to cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Behind the first partition with which Data.db comes to so many bytes on disk, about.
    Size(NonZeroU64),
    /// At the ends of these ranges, each of which becomes an SSTable if there is a partition in it.
    Tokens {
        /// They may come in any order, but have no token in common.
        ranges: Vec<TokenRange>,
        /// What becomes of partitions in none of the ranges.
        rest: Rest,
    },
    /// Into so many SSTables, of about as much data of the sources each; fewer where there are not as many partitions.
    Parts(NonZeroU64),
}

/// What becomes of partitions that are in none of the ranges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rest {
    /// They are an error, which is noticed before anything is written.
    Refused,
    /// They are in none of the new SSTables.
    LeftOut,
}

/// What was made.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Split {
    /// The new SSTables, in the order of their tokens.
    pub written: Vec<Written>,
    /// The ranges in which there is no partition.
    pub empty: Vec<TokenRange>,
}

/// Writes the SSTables of one table as several new ones into a folder, which is made where it is missing. Leftovers of
/// writers that were cut off there are removed first: no other writer may be at work in the folder.
///
/// `progress` is told now and then how many bytes of data it has come to, about.
///
/// # Errors
/// Sources that are not of one table; ranges that have tokens in common, or leave out what is not to be left out; what
/// the target cannot hold; what cannot be read or written. Then none of the new SSTables is left. They are there once the last one is
/// written: where the process is ended before, there is none of them.
pub async fn split(
    disk: &Disk,
    sources: Vec<Rc<SSTable>>,
    cut: &Cut,
    target: &Target,
    dir: &Path,
    progress: &mut dyn FnMut(Step, u64),
) -> Result<Split> {
    let tables = Tables::new(sources)?;
    let ranges = match cut {
        Cut::Size(_) => Vec::new(),
        Cut::Tokens { ranges, rest } => tokens::checked(ordered_by_token(&tables)?, ranges, *rest).await?,
        Cut::Parts(count) => parts::ranges(ordered_by_token(&tables)?, *count).await?,
    };
    check(disk, &tables, target, dir, progress).await?;
    prepare(disk, dir).await?;
    let next = next_descriptor(disk, dir, target.version).await?;
    let (writer, finished, before, empty) = (None, Vec::new(), 0, Vec::new());
    let mut cutter = Cutter { disk, tables: &tables, target, next, writer, finished, before, empty };
    let mut tell = |done| progress(Step::Writing, done);
    let done = match cut {
        Cut::Size(size) => cutter.by_size(size.get(), &mut tell).await,
        Cut::Tokens { .. } | Cut::Parts(_) => cutter.by_token(&ranges, &mut tell).await,
    };
    match done {
        Ok(()) => cutter.seal_all().await,
        Err(error) => {
            // The first error is the one to tell.
            drop(cutter.undo(Vec::new()).await);
            Err(error)
        }
    }
}

/// The tables, if what puts their partitions in order are tokens.
fn ordered_by_token(tables: &Tables) -> Result<&Tables> {
    let by_key = tables
        .tables()
        .iter()
        .find(|table| table.statistics().validation.partitioner != Partitioner::Murmur3);
    match by_key {
        Some(table) => {
            let path = table.descriptor().path_of(&Component::Data);
            Err(Error::file(&path, "the partitions of a secondary index have no tokens: split it by size"))
        }
        None => Ok(tables),
    }
}

/// Writes one SSTable after the other.
struct Cutter<'a> {
    disk: &'a Disk,
    tables: &'a Tables,
    target: &'a Target,
    /// The names of the next one.
    next: Descriptor,
    /// The one that is being written.
    writer: Option<SSTableWriter>,
    /// Those that are written, which are no SSTables before all are.
    finished: Vec<Finished>,
    /// Bytes of data of these.
    before: u64,
    empty: Vec<TokenRange>,
}

impl Cutter<'_> {
    async fn by_size(&mut self, most: u64, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut reader = self.tables.scan();
        let mut size = DiskSize::new(self.tables, self.target);
        let mut fragment = Fragment::default();
        while reader.advance(&mut fragment).await? {
            let writer = self.writer().await?;
            writer.push(&fragment).await?;
            if matches!(fragment, Fragment::PartitionEnd) {
                let is_full = size.of(writer) >= most;
                self.tell(progress);
                if is_full {
                    self.finish().await?;
                }
            }
        }
        self.finish().await
    }

    async fn by_token(&mut self, ranges: &[TokenRange], progress: &mut dyn FnMut(u64)) -> Result<()> {
        for range in ranges {
            let before = self.finished.len();
            self.one_range(range, progress).await?;
            self.finish().await?;
            if self.finished.len() == before {
                self.empty.push(*range);
            }
        }
        Ok(())
    }

    async fn one_range(&mut self, range: &TokenRange, progress: &mut dyn FnMut(u64)) -> Result<()> {
        let mut stretches = Vec::new();
        for table in self.tables.tables() {
            stretches.push(range.stretch_of(table).await?);
        }
        let mut reader = self.tables.scan_ranges(&stretches)?;
        let mut fragment = Fragment::default();
        while reader.advance(&mut fragment).await? {
            if let Fragment::PartitionStart(start) = &fragment {
                self.check_token(range, start.key.token)?;
            }
            self.writer().await?.push(&fragment).await?;
            if matches!(fragment, Fragment::PartitionEnd) {
                self.tell(progress);
            }
        }
        Ok(())
    }

    /// The index may be corrupt: what it points to must be what was looked for.
    fn check_token(&self, range: &TokenRange, token: model::Token) -> Result<()> {
        if range.contains(token) {
            return Ok(());
        }
        let path = self.tables.tables()[0].descriptor().path_of(&Component::Data);
        let what =
            format!("its index, or that of an SSTable merged with it, points from {range} to token {token}");
        Err(Error::file(&path, what))
    }

    /// The SSTable that is being written, or a new one.
    async fn writer(&mut self) -> Result<&mut SSTableWriter> {
        if self.writer.is_none() {
            let (schema, encoding) = (self.tables.schema(), encoding(self.tables));
            let options = options(self.tables, self.target).await?;
            let descriptor = self.next.clone();
            self.next.generation = following(&self.next.generation);
            self.writer =
                Some(SSTableWriter::create(self.disk, descriptor, schema, encoding, options).await?);
        }
        Ok(self.writer.as_mut().expect("it was made where it was missing"))
    }

    fn tell(&self, progress: &mut dyn FnMut(u64)) {
        progress(self.before + self.writer.as_ref().map_or(0, SSTableWriter::position));
    }

    /// Writes what is left of the SSTable that is being written, if there is one.
    async fn finish(&mut self) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            let finished = writer.finish().await?;
            self.before += finished.data_len();
            self.finished.push(finished);
        }
        Ok(())
    }

    /// Makes SSTables of all that is written.
    async fn seal_all(mut self) -> Result<Split> {
        let mut written = Vec::new();
        for finished in std::mem::take(&mut self.finished) {
            match finished.seal().await {
                Ok(sealed) => written.push(sealed),
                Err(error) => {
                    // The first error is the one to tell.
                    drop(self.undo(written).await);
                    return Err(error.into());
                }
            }
        }
        Ok(Split { written, empty: self.empty })
    }

    /// Removes all that was written. What is whole is made one that is not first: then a process that is ended in
    /// between leaves nothing that looks like an SSTable.
    async fn undo(self, sealed: Vec<Written>) -> Result<()> {
        if let Some(writer) = self.writer {
            drop(writer.abandon().await);
        }
        for written in &sealed {
            let toc = written.descriptor.path_of(&Component::Toc);
            let mut unsealed = toc.clone().into_os_string();
            unsealed.push(".tmp");
            self.disk.rename(&toc, &PathBuf::from(unsealed)).await.map_err(sstable::Error::from)?;
        }
        for finished in self.finished {
            finished.abandon().await?;
        }
        self.disk.sync_dir(&self.next.dir).await.map_err(sstable::Error::from)?;
        remove_leftovers(self.disk, &self.next.dir).await?;
        Ok(())
    }
}

/// The number behind one.
fn following(generation: &str) -> String {
    generation.parse().map_or(1, |number: u64| number.saturating_add(1)).to_string()
}

/// How large Data.db is on disk, with what is not compressed yet: that is taken to shrink as what was before.
struct DiskSize {
    is_compressed: bool,
    /// Bytes on disk for a byte of data.
    ratio: f64,
}

impl DiskSize {
    fn new(tables: &Tables, target: &Target) -> DiskSize {
        let files = tables.tables().iter().map(|table| &table.data().file);
        let (disk, data) =
            files.fold((0, 0), |(disk, data), file| (disk + file.file().len(), data + file.len()));
        let is_compressed = compression(tables, target).is_some();
        DiskSize { is_compressed, ratio: disk as f64 / (data.max(1)) as f64 }
    }

    fn of(&mut self, writer: &SSTableWriter) -> u64 {
        if !self.is_compressed {
            return writer.position();
        }
        let (data, disk) = writer.packed();
        if data > 0 {
            self.ratio = disk as f64 / data as f64;
        }
        disk + ((writer.position() - data) as f64 * self.ratio) as u64
    }
}

#[cfg(test)]
mod tests;
