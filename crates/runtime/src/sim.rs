//! A disk made of memory and a seed: every fault it brings about repeats exactly.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::file::{Opened, Source};

mod executor;
mod fate;
mod file;
mod random;

pub(crate) use executor::{SimTask, run, try_spawn};
pub(crate) use file::SimFile;
use random::Random;

/// What a simulated disk does to reads. The default is a perfect disk: immediate, complete and correct.
///
/// Chances are between 0 (never) and 1 (always), for each request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SimOptions {
    /// Where the random numbers start: equal seeds give equal runs.
    pub seed: u64,
    /// The chance that a request returns fewer bytes than there are. A request of one alignment unit is never short.
    pub short_read_chance: f64,
    /// The chance that a request fails.
    pub io_error_chance: f64,
    /// The chance that one bit of what a request returns is flipped, silently.
    pub corruption_chance: f64,
    /// A request takes a random time from 0 to this, in ticks; time passes only while nothing else can go on, so
    /// that concurrent requests complete in a random order.
    pub max_delay: u32,
    /// What offset and length of requests are rounded to, in bytes, as by direct I/O: a power of two; 0 is 1.
    pub alignment: usize,
}

/// What a simulated disk has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimCounters {
    /// Requests that were served or failed.
    pub requests: u64,
    /// Requests that took at least one tick.
    pub delayed: u64,
    /// Requests that returned fewer bytes than there were.
    pub short_reads: u64,
    /// Requests that failed.
    pub io_errors: u64,
    /// Requests that returned a flipped bit, which may lie outside of what the reader asked for before rounding.
    pub corruptions: u64,
}

/// The files of a simulated shard, in memory. Clones are the same disk.
///
/// Folders are not stored: a folder is there as long as a file is in it.
#[derive(Clone)]
pub struct SimDisk(Rc<Inner>);

struct Inner {
    files: RefCell<BTreeMap<PathBuf, Rc<Vec<u8>>>>,
    options: RefCell<SimOptions>,
    random: RefCell<Random>,
    counters: Cell<SimCounters>,
}

impl SimDisk {
    pub(crate) fn new(options: SimOptions) -> Self {
        let random = Random::new(options.seed);
        Self(Rc::new(Inner {
            files: RefCell::default(),
            options: RefCell::new(options),
            random: RefCell::new(random),
            counters: Cell::default(),
        }))
    }

    /// Puts a file on the disk, in the place of one with the same path. Who has that open keeps reading the old one.
    pub fn add_file(&self, path: impl Into<PathBuf>, content: Vec<u8>) {
        self.0.files.borrow_mut().insert(path.into(), Rc::new(content));
    }

    /// Takes a file off the disk, if it is there. Who has it open keeps reading it.
    pub fn remove_file(&self, path: &Path) {
        self.0.files.borrow_mut().remove(path);
    }

    /// Changes the faults from here on, and starts the random numbers anew from the seed given.
    ///
    /// The alignment of files that are open stays.
    pub fn set_options(&self, options: SimOptions) {
        self.0.random.replace(Random::new(options.seed));
        self.0.options.replace(options);
    }

    /// What the disk has done so far.
    pub fn counters(&self) -> SimCounters {
        self.0.counters.get()
    }

    pub(crate) fn open(&self, path: &Path) -> io::Result<Opened> {
        let Some(content) = self.0.files.borrow().get(path).cloned() else {
            let kind = if self.is_dir(path) { io::ErrorKind::IsADirectory } else { io::ErrorKind::NotFound };
            return Err(kind.into());
        };
        let alignment = self.0.options.borrow().alignment.max(1);
        Ok(Opened {
            len: content.len() as u64,
            source: Source::Simulated(SimFile::new(self.clone(), content, alignment)),
            alignment,
            memory_alignment: 1,
        })
    }

    pub(crate) fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.0.files.borrow();
        let children: BTreeSet<PathBuf> = files
            .keys()
            .filter_map(|path| path.strip_prefix(dir).ok()?.components().next())
            .map(|name| dir.join(name))
            .collect();
        if files.contains_key(dir) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if children.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(children.into_iter().collect())
    }

    pub(crate) fn is_file(&self, path: &Path) -> bool {
        self.0.files.borrow().contains_key(path)
    }

    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        self.0.files.borrow().keys().any(|file| file != path && file.starts_with(path))
    }

    fn count(&self, change: impl FnOnce(&mut SimCounters)) {
        let mut counters = self.0.counters.get();
        change(&mut counters);
        self.0.counters.set(counters);
    }
}

#[cfg(test)]
#[path = "sim/tests.rs"]
mod tests;
