//! Lines of JSON, in any order, into a new SSTable.
//!
//! ```text
//! lines ──► SortedRows ──memory is full──► a run, an SSTable of its own ─┐
//!               │                          a run …                       ├─merge──► the new SSTable
//!               └──the lines end───────────────────────────────────────► ┘
//! ```
//!
//! What fits into memory goes straight into the new SSTable, as it was told: of several lines of one row one is made,
//! nothing else is dropped. Where there are runs, what one of them shadows in another goes, as in a compaction. No run
//! has anything that the new SSTable could not hold, because each line is asked before it is taken.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::Schema;
use runtime::Disk;
use sstable::component::Descriptor;
use sstable::parts::statistics::EncodingStats;
use sstable::writer::{Limits, Written, remove_leftovers};
use sstable::{SSTableWriter, Version, WriteOptions};

use crate::convert::{prepare_folder, write_all};
use crate::error::{Error, Result};
use crate::paths::next_descriptor;
use crate::sorted_rows::{Minima, Sorted, SortedRows};

mod columns;
mod lines;
mod runs;

use columns::{Narrowed, Occurring};
use lines::Lines;
use runs::Runs;

/// What to make of the lines.
#[derive(Clone, Debug)]
pub struct Job {
    /// The columns of the table.
    pub schema: Rc<Schema>,
    /// The version of the format.
    pub version: Version,
    /// How the SSTable is written; see [`crate::table_options`].
    pub options: WriteOptions,
    /// The timestamp of what has none, in microseconds. Default none: then that is an error.
    pub default_timestamp: Option<i64>,
    /// How many bytes of memory rows may take until they are written. Default 64 MiB. Range tombstones of which only
    /// one end was told stay in memory besides.
    pub memory: usize,
}

/// Where lines come from.
pub struct Input {
    /// The name of it, for messages.
    pub path: PathBuf,
    /// The lines. Reading them may block.
    pub lines: Box<dyn BufRead>,
}

/// How far the work is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// So many bytes of the lines are read.
    Reading(u64),
    /// So many bytes of data are written of all runs', about.
    Merging(u64, u64),
}

/// What was made.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// The SSTable.
    pub written: Written,
    /// How many rows it has, static ones not counted.
    pub rows: u64,
    /// In how many runs the lines were sorted; 0 if all fitted into memory.
    pub runs: u64,
}

impl Job {
    /// With the defaults.
    pub fn new(schema: Rc<Schema>, version: Version, options: WriteOptions) -> Job {
        // Several lines may tell of one row, each of them what the version can hold.
        let options = WriteOptions { keeps_greater_deletion: true, ..options };
        Job { schema, version, options, default_timestamp: None, memory: 64 << 20 }
    }
}

/// Writes the lines of all inputs as one new SSTable into a folder, which is made where it is missing. Leftovers of
/// writers that were cut off there are removed first; no other writer may be at work in the folder.
///
/// # Errors
/// Lines that are none, or that the version cannot hold, with file and line; no rows at all; what cannot be read or
/// written. Nothing is left behind then.
pub async fn write(
    disk: &Disk,
    job: &Job,
    inputs: Vec<Input>,
    dir: &Path,
    progress: &mut dyn FnMut(Step),
) -> Result<Outcome> {
    let limits = Limits::of(job.version, job.options.family);
    limits.check_table(&job.schema, &job.options).map_err(|what| Error::file(dir, what))?;
    let was_there = disk.exists(dir);
    if was_there {
        runs::remove_leftovers(disk, dir).await?;
        remove_leftovers(disk, dir).await?;
    }
    let runs = Runs::new(disk, dir, job);
    let mut work = Work {
        disk,
        job,
        dir,
        limits,
        rows: SortedRows::new(job.schema.clone()),
        occurring: Occurring::none(&job.schema),
        runs,
    };
    let done = work.run(inputs, progress).await;
    let removed = work.runs.remove().await;
    if done.is_err() && !was_there {
        // The folder is ours and empty. If it is not, somebody else has begun to use it.
        drop(disk.remove_dir(dir).await);
    }
    let outcome = done?;
    removed?;
    Ok(outcome)
}

struct Work<'a> {
    disk: &'a Disk,
    job: &'a Job,
    dir: &'a Path,
    limits: Limits,
    rows: SortedRows,
    /// The columns of `rows`.
    occurring: Occurring,
    runs: Runs<'a>,
}

impl Work<'_> {
    async fn run(&mut self, inputs: Vec<Input>, progress: &mut dyn FnMut(Step)) -> Result<Outcome> {
        let mut lines = Lines::new(inputs, &self.job.schema, self.job.default_timestamp);
        self.gather(&mut lines, progress).await?;
        if self.rows.is_empty() && self.runs.is_empty() {
            return Err(lines.empty());
        }
        let rows = std::mem::replace(&mut self.rows, SortedRows::new(self.job.schema.clone()));
        let has_runs = !self.runs.is_empty();
        let sorted = rows.finish().map_err(|unpaired| lines.unpaired(unpaired, has_runs))?;
        if !has_runs {
            return self.straight(sorted).await;
        }
        let rows = self.narrowed(sorted);
        self.runs.add(rows).await?;
        self.runs.finish(progress).await
    }

    /// Takes all lines in. What does not fit into memory becomes runs.
    async fn gather(&mut self, lines: &mut Lines, progress: &mut dyn FnMut(Step)) -> Result<()> {
        let mut kept = 0;
        while let Some(piece) = lines.next()? {
            piece.check(&self.limits).map_err(|what| lines.error(piece.line, what))?;
            self.occurring.count(&piece.part);
            self.rows.insert(piece);
            if self.rows.memory() - kept > self.job.memory {
                let sorted = self.rows.take();
                let rows = self.narrowed(sorted);
                self.runs.add(rows).await?;
                kept = self.rows.memory();
            }
            if lines.has_come_far() {
                progress(Step::Reading(lines.bytes()));
            }
        }
        Ok(())
    }

    /// Of the rows in memory, those that go together, with the columns that occur in them.
    fn narrowed(&mut self, sorted: Sorted) -> Narrowed {
        let occurring = std::mem::replace(&mut self.occurring, Occurring::none(&self.job.schema));
        Narrowed::new(sorted, &self.job.schema, &occurring)
    }

    /// Writes rows that all fitted into memory.
    async fn straight(&mut self, sorted: Sorted) -> Result<Outcome> {
        let mut rows = self.narrowed(sorted);
        prepare_folder(self.disk, self.dir).await?;
        let descriptor = next_descriptor(self.disk, self.dir, self.job.version).await?;
        let written = write_sorted(self.disk, descriptor, &mut rows, self.job.options.clone()).await?;
        Ok(Outcome { written, rows: rows.rows(), runs: 0 })
    }
}

/// Writes sorted rows as an SSTable.
async fn write_sorted(
    disk: &Disk,
    descriptor: Descriptor,
    rows: &mut Narrowed,
    options: WriteOptions,
) -> Result<Written> {
    let (schema, encoding) = (rows.schema().clone(), encoding(rows.minima()));
    let writer = SSTableWriter::create(disk, descriptor, &schema, encoding, options).await?;
    write_all(writer, rows, &mut |_| {}).await
}

/// What the numbers of a file with these least times are relative to.
fn encoding(minima: Minima) -> EncodingStats {
    let none = EncodingStats::NONE;
    EncodingStats {
        min_timestamp: minima.timestamp.unwrap_or(none.min_timestamp),
        min_local_deletion_time: minima.local_deletion_time.unwrap_or(none.min_local_deletion_time),
        min_ttl: minima.ttl.map_or(none.min_ttl, i64::from),
    }
}

#[cfg(test)]
mod tests;
