//! Sorted rows for which there was no room in memory: SSTables of their own for a while, merged at the end.
//!
//! ```text
//! DEST/.siltstone-write.7.tmp/me-1-big-Data.db, me-2-big-Data.db, …     until DEST/me-7-big-Data.db is whole
//! ```
//!
//! They are of the version that is wanted at the end, because what that can hold they must hold too.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::{Fragment, FragmentReader, Next};
use runtime::{Cache, Disk};
use sstable::component::{Component, Descriptor};
use sstable::parts::compression_info::{Compression, Compressor};
use sstable::writer::Written;
use sstable::{OpenOptions, SSTable, SSTableWriter, WriteOptions};

use super::columns::Narrowed;
use super::{Job, Outcome, Step, write_sorted};
use crate::convert::{encoding, prepare_folder, write_all};
use crate::error::Result;
use crate::paths::next_descriptor;
use crate::read::Tables;

/// The name of the folder of runs, around a number.
const NAME: (&str, &str) = (".siltstone-write.", ".tmp");

/// So many are merged at once: each has two files open, and bytes at hand.
const MOST_AT_ONCE: usize = 128;

/// How much of each run is read at a time, at the least and at the most. Bytes.
const READ_BUFFER: (usize, usize) = (16 << 10, 256 << 10);

/// For the little of the indexes that scans read. Bytes.
const CACHE: usize = 1 << 20;

/// The runs of one job.
pub(super) struct Runs<'a> {
    disk: &'a Disk,
    job: &'a Job,
    /// The folder of the new SSTable.
    dest: &'a Path,
    /// The folder of the runs, once it is made.
    dir: Option<PathBuf>,
    runs: Vec<Written>,
    /// How many there were, those merged into others too.
    count: u64,
}

/// Passes rows on and counts them.
struct Counted<R> {
    reader: R,
    rows: u64,
}

impl<'a> Runs<'a> {
    /// No runs yet, and nothing on the disk.
    pub(super) fn new(disk: &'a Disk, dest: &'a Path, job: &'a Job) -> Runs<'a> {
        Runs { disk, job, dest, dir: None, runs: Vec::new(), count: 0 }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Writes one. There may be no rows for it, where all that was told are single ends of range tombstones.
    ///
    /// # Errors
    /// What cannot be written.
    pub(super) async fn add(&mut self, mut rows: Narrowed) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let descriptor = self.next_run().await?;
        let written = write_sorted(self.disk, descriptor, &mut rows, self.options()).await?;
        self.runs.push(written);
        Ok(())
    }

    /// Merges all of them into the new SSTable.
    ///
    /// # Errors
    /// What cannot be read or written.
    pub(super) async fn finish(&mut self, progress: &mut dyn FnMut(Step)) -> Result<Outcome> {
        let runs = self.count;
        while self.runs.len() > MOST_AT_ONCE {
            let some: Vec<Written> = self.runs.drain(..MOST_AT_ONCE).collect();
            let descriptor = self.next_run().await?;
            let (merged, _) = self.merge(&some, descriptor, self.options(), progress).await?;
            for run in &some {
                self.remove_run(run).await?;
            }
            self.runs.push(merged);
        }
        let descriptor = next_descriptor(self.disk, self.dest, self.job.version).await?;
        let options = self.job.options.clone();
        let (written, rows) = self.merge(&self.runs, descriptor, options, progress).await?;
        Ok(Outcome { written, rows, runs })
    }

    /// Removes all that there is of them.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) async fn remove(self) -> Result<()> {
        match &self.dir {
            Some(dir) => remove_folder(self.disk, dir).await,
            None => Ok(()),
        }
    }

    async fn merge(
        &self,
        runs: &[Written],
        descriptor: Descriptor,
        options: WriteOptions,
        progress: &mut dyn FnMut(Step),
    ) -> Result<(Written, u64)> {
        let tables = Tables::new(self.open(runs).await?)?;
        let total = runs.iter().map(|run| run.data_len).sum();
        let writer =
            SSTableWriter::create(self.disk, descriptor, tables.schema(), encoding(&tables), options).await?;
        let mut rows = Counted { reader: tables.scan(), rows: 0 };
        let written = write_all(writer, &mut rows, &mut |done| progress(Step::Merging(done, total))).await?;
        Ok((written, rows.rows))
    }

    async fn open(&self, runs: &[Written]) -> Result<Vec<std::rc::Rc<SSTable>>> {
        let (least, most) = READ_BUFFER;
        let mut options = OpenOptions::new(Cache::new(CACHE));
        options.read_buffer = (self.job.memory / runs.len()).clamp(least, most) as u64;
        let mut tables = Vec::new();
        for run in runs {
            let path = run.descriptor.path_of(&Component::Data);
            tables.push(SSTable::open(self.disk, &path, &options).await?);
        }
        Ok(tables)
    }

    /// The names of the next run. Makes the folder where it is missing.
    async fn next_run(&mut self) -> Result<Descriptor> {
        let dir = match &self.dir {
            Some(dir) => dir.clone(),
            None => self.make_folder().await?,
        };
        self.count += 1;
        Ok(Descriptor { dir, version: self.job.version, generation: self.count.to_string() })
    }

    async fn make_folder(&mut self) -> Result<PathBuf> {
        prepare_folder(self.disk, self.dest).await?;
        let generation = next_descriptor(self.disk, self.dest, self.job.version).await?.generation;
        let dir = self.dest.join(format!("{}{generation}{}", NAME.0, NAME.1));
        self.disk.create_dir_all(&dir).await.map_err(sstable::Error::from)?;
        self.dir = Some(dir.clone());
        Ok(dir)
    }

    /// How runs are written: quickly, and without what only looking for single keys needs.
    fn options(&self) -> WriteOptions {
        WriteOptions {
            compression: Some(Compression::new(Compressor::Lz4, self.job.version)),
            column_index_size: u32::MAX,
            bloom_filter_fp_chance: 1.0,
            fences: false,
            row_filter: false,
            family: self.job.options.family,
            keeps_greater_deletion: self.job.options.keeps_greater_deletion,
            ..WriteOptions::new(self.job.version)
        }
    }

    async fn remove_run(&self, run: &Written) -> Result<()> {
        for component in &run.components {
            let path = run.descriptor.path_of(component);
            self.disk.remove(&path).await.map_err(sstable::Error::from)?;
        }
        Ok(())
    }
}

impl<R: FragmentReader<Error = sstable::Error>> FragmentReader for Counted<R> {
    type Error = sstable::Error;

    fn pop(&mut self, place: &mut Fragment) -> sstable::Result<Next> {
        let next = self.reader.pop(place)?;
        self.rows += u64::from(next == Next::Fragment && matches!(place, Fragment::Row(_)));
        Ok(next)
    }

    async fn fill(&mut self) -> sstable::Result<()> {
        self.reader.fill().await
    }
}

/// Removes the runs that jobs which were cut off have left in a folder.
///
/// # Errors
/// What the operating system says.
pub(super) async fn remove_leftovers(disk: &Disk, dest: &Path) -> Result<()> {
    for path in disk.list(dest).map_err(sstable::Error::from)? {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let number = name.strip_prefix(NAME.0).and_then(|rest| rest.strip_suffix(NAME.1));
        if number.is_some_and(|number| number.parse::<u64>().is_ok()) && disk.is_dir(&path) {
            remove_folder(disk, &path).await?;
        }
    }
    Ok(())
}

async fn remove_folder(disk: &Disk, dir: &Path) -> Result<()> {
    for path in disk.list(dir).map_err(sstable::Error::from)? {
        disk.remove(&path).await.map_err(sstable::Error::from)?;
    }
    Ok(disk.remove_dir(dir).await.map_err(sstable::Error::from)?)
}
