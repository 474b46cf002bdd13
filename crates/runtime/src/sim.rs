//! A disk made of memory and a seed: every fault it brings about repeats exactly.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use crate::blocks::Alignments;
use crate::clock::SimClock;
use crate::file::{Opened, Source};
use crate::new_file::{Created, Sink};

mod executor;
mod fate;
mod file;
mod files;
mod operation;
mod random;

pub(crate) use executor::{SimTask, in_simulation, run, try_now, try_sleep, try_spawn};
use fate::ChangeFate;
pub(crate) use file::{SimFile, SimNewFile};
use files::{Content, Files, SECTOR};
use operation::Operation;
use random::Random;

/// What a simulated disk does to what it is asked for. The default is a perfect disk: immediate, complete and correct.
///
/// Chances are between 0 (never) and 1 (always), for each request. *Operations* are the requests that change the disk
/// or make it durable: to create, append, sync, rename, remove, make or remove a folder, sync a folder. They are
/// numbered from 0 in the order in which they begin, over the life of the disk; an append that is short goes on with
/// another operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SimOptions {
    /// Where the random numbers start: equal seeds give equal runs.
    pub seed: u64,
    /// The chance, from 0 to 1 as all of these, that a read returns fewer bytes than there are. A read of one alignment unit is never short.
    pub short_read_chance: f64,
    /// The chance that a read fails.
    pub io_error_chance: f64,
    /// The chance that one bit of what a read returns is flipped, silently.
    pub corruption_chance: f64,
    /// The chance that an append takes fewer bytes than it was given. One of a single byte is never short.
    pub short_write_chance: f64,
    /// The chance that an operation fails, and changes nothing.
    pub write_error_chance: f64,
    /// How many bytes all files together have room for; `None` for as many as there are. An append beyond takes what
    /// fits, and the next one fails with the kind `StorageFull`.
    pub capacity: Option<u64>,
    /// The number of the operation at whose beginning the power is cut. It is done, done in part, or not done; it and
    /// all that comes after it fail, reads too, until [`SimDisk::restart`].
    pub crash_at: Option<u64>,
    /// A request takes a random time from 0 to this, in ticks of a microsecond; time passes only while nothing else
    /// can go on, so that concurrent requests complete in a random order.
    pub max_delay: u32,
    /// What offset and length of reads are rounded to, in bytes, as by direct I/O: a power of two; 0 is 1.
    pub alignment: usize,
}

/// What a simulated disk has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SimCounters {
    /// Reads that were served or failed.
    pub requests: u64,
    /// Reads and operations that took at least one tick.
    pub delayed: u64,
    /// Reads that returned fewer bytes than there were.
    pub short_reads: u64,
    /// Reads that failed.
    pub io_errors: u64,
    /// Reads that returned a flipped bit, which may lie outside of what the reader asked for before rounding.
    pub corruptions: u64,
    /// Operations that have begun, those that failed too: the number of the next one.
    pub operations: u64,
    /// Appends that took fewer bytes than they were given.
    pub short_writes: u64,
    /// Operations that failed by [`SimOptions::write_error_chance`].
    pub write_errors: u64,
}

/// The files of a simulated shard, in memory. Clones are the same disk.
///
/// A folder is there from when it is made, or a file is put into it, until it is removed.
#[derive(Clone)]
pub struct SimDisk(Rc<Inner>);

struct Inner {
    files: RefCell<Files>,
    options: RefCell<SimOptions>,
    random: RefCell<Random>,
    clock: SimClock,
    counters: Cell<SimCounters>,
    life: Cell<Life>,
    power: Cell<bool>,
}

/// How often the power came back. What was begun or opened in an earlier life is gone.
type Life = u64;

impl SimDisk {
    pub(crate) fn new(options: SimOptions, clock: SimClock) -> Self {
        let random = Random::new(options.seed);
        Self(Rc::new(Inner {
            files: RefCell::default(),
            options: RefCell::new(options),
            random: RefCell::new(random),
            clock,
            counters: Cell::default(),
            life: Cell::new(0),
            power: Cell::new(true),
        }))
    }

    /// Puts a file on the disk, durably, in the place of one with the same path; it counts as written now. Who has
    /// that open keeps reading the old one.
    ///
    /// # Panics
    /// If the path is that of a folder, or leads through a file.
    pub fn add_file(&self, path: impl Into<PathBuf>, content: Vec<u8>) {
        let content = self.0.files.borrow_mut().put(path.into(), content);
        content.touch(self.0.clock.now());
    }

    /// Takes a file off the disk, durably, if it is there. Who has it open keeps reading it.
    pub fn remove_file(&self, path: &Path) {
        self.0.files.borrow_mut().take_off(path);
    }

    /// Changes the faults from here on, and starts the random numbers anew from the seed given.
    ///
    /// The alignment of files that are open stays, and so does the count of operations.
    pub fn set_options(&self, options: SimOptions) {
        self.0.random.replace(Random::new(options.seed));
        self.0.options.replace(options);
    }

    /// What the disk has done so far.
    pub fn counters(&self) -> SimCounters {
        self.0.counters.get()
    }

    /// Whether the power was cut by [`SimOptions::crash_at`], and is not back.
    pub fn has_crashed(&self) -> bool {
        !self.0.power.get()
    }

    /// Turns the power on again, after cutting it where that was not done.
    ///
    /// There is left what a real disk may leave. Of each file there are the bytes that were synced, and of those after
    /// them a part, maybe with zeros in any sectors or garbage in its last ones. What was created, renamed or removed in a folder
    /// is so if the folder was synced after it; if not, by chance, but never a later change of a name without the
    /// earlier ones. What was opened before is of no use any more, and what was begun is not done. Who has not noticed
    /// and begins something new now, such as a task of before, does so on the new disk.
    pub fn restart(&self) {
        self.0.files.borrow_mut().lose_power(&mut self.0.random.borrow_mut());
        self.0.life.update(|life| life + 1);
        self.0.power.set(true);
    }

    pub(crate) fn open(&self, path: &Path) -> io::Result<Opened> {
        let life = self.life()?;
        let content = self.0.files.borrow().file(path)?;
        let alignment = self.0.options.borrow().alignment.max(1);
        Ok(Opened {
            len: content.len(),
            source: Source::Simulated(SimFile::new(self.clone(), life, content, alignment)),
            alignment,
            memory_alignment: 1,
        })
    }

    pub(crate) async fn create(&self, path: &Path, is_direct: bool) -> io::Result<Created> {
        let (life, content) = (self.life()?, Content::empty());
        self.operate(life, Operation::Create(path.to_owned(), Rc::clone(&content))).await?;
        let block = if is_direct { self.0.options.borrow().alignment.max(SECTOR) } else { 1 };
        let sink = Sink::Simulated(SimNewFile::new(self.clone(), life, content, block));
        Ok(Created { sink, alignments: is_direct.then_some(Alignments { block, memory: 1 }) })
    }

    pub(crate) async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.operate_now(Operation::Rename(from.to_owned(), to.to_owned())).await
    }

    pub(crate) async fn remove(&self, path: &Path) -> io::Result<()> {
        self.operate_now(Operation::Remove(path.to_owned())).await
    }

    pub(crate) async fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.operate_now(Operation::CreateFolders(path.to_owned())).await
    }

    pub(crate) async fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.operate_now(Operation::RemoveFolder(path.to_owned())).await
    }

    pub(crate) async fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.operate_now(Operation::SyncFolder(path.to_owned())).await
    }

    pub(crate) fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.life()?;
        self.0.files.borrow().list(dir)
    }

    /// Whether there is a file or folder; `true` also while the power is off.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        let files = self.0.files.borrow();
        self.has_crashed() || files.is_dir(path) || files.file(path).is_ok()
    }

    pub(crate) fn is_dir(&self, path: &Path) -> bool {
        !self.has_crashed() && self.0.files.borrow().is_dir(path)
    }

    pub(crate) fn modified(&self, path: &Path) -> io::Result<Duration> {
        self.life()?;
        Ok(self.0.files.borrow().file(path)?.modified())
    }

    async fn operate_now(&self, operation: Operation) -> io::Result<()> {
        self.operate(self.life()?, operation).await?;
        Ok(())
    }

    /// Does an operation that was asked for in this life, to its end even if the caller is dropped; how many bytes
    /// were appended.
    async fn operate(&self, life: Life, operation: Operation) -> io::Result<usize> {
        let (number, fate) = self.begin(life, &operation)?;
        if self.0.options.borrow().crash_at == Some(number) {
            return self.interrupt(operation);
        }
        if fate.delay == 0 {
            return self.finish(life, &fate, operation);
        }
        self.count(|counters| counters.delayed += 1);
        let disk = self.clone();
        let task = try_spawn(async move {
            executor::sleep(u64::from(fate.delay)).await;
            disk.finish(life, &fate, operation)
        });
        let Ok(task) = task else { panic!("delays pass only within run_simulated") };
        task.uncancelled().await
    }

    /// Gives an operation its number and its fate.
    fn begin(&self, life: Life, operation: &Operation) -> io::Result<(u64, ChangeFate)> {
        self.expect_power(life)?;
        let number = self.counters().operations;
        self.count(|counters| counters.operations += 1);
        let options = self.0.options.borrow();
        Ok((
            number,
            ChangeFate::draw(&options, &mut self.0.random.borrow_mut(), operation.len(), operation.unit()),
        ))
    }

    fn finish(&self, life: Life, fate: &ChangeFate, mut operation: Operation) -> io::Result<usize> {
        self.expect_power(life)?;
        if fate.fails {
            self.count(|counters| counters.write_errors += 1);
            return Err(io::Error::other("a simulated failure of the disk"));
        }
        let asked = operation.len();
        operation.cut(fate.count);
        let capacity = self.0.options.borrow().capacity;
        let appended = operation.run(&mut self.0.files.borrow_mut(), capacity, self.0.clock.now())?;
        self.count(|counters| counters.short_writes += u64::from(appended < asked));
        Ok(appended)
    }

    /// Cuts the power during an operation: it is done or not, of which the loss of power then leaves a part.
    fn interrupt(&self, operation: Operation) -> io::Result<usize> {
        self.0.power.set(false);
        if self.0.random.borrow_mut().chance(0.5) {
            let capacity = self.0.options.borrow().capacity;
            // Whether it went well is what nobody will know.
            drop(operation.run(&mut self.0.files.borrow_mut(), capacity, self.0.clock.now()));
        }
        Err(power_cut())
    }

    fn life(&self) -> io::Result<Life> {
        let life = self.0.life.get();
        self.expect_power(life).map(|()| life)
    }

    /// Makes sure that what belongs to this life has not ended with it.
    fn expect_power(&self, life: Life) -> io::Result<()> {
        if self.has_crashed() || life != self.0.life.get() { Err(power_cut()) } else { Ok(()) }
    }

    fn count(&self, change: impl FnOnce(&mut SimCounters)) {
        let mut counters = self.0.counters.get();
        change(&mut counters);
        self.0.counters.set(counters);
    }
}

fn power_cut() -> io::Error {
    io::Error::other("the power of the simulated disk was cut")
}

#[cfg(test)]
#[path = "sim/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "sim/crash_tests.rs"]
mod crash_tests;
