//! The commit log of a shard: what is written is durable before it is in an SSTable.
//!
//! ```text
//! append ──► queue ──► one write, one sync ──► segment 7, 8, 9 …     a file each
//!   ▲                          │                     │ all in SSTables: removed
//!   └── waits until durable ◄──┘                     ▼
//!                                   after a crash: EarlierLog
//! ```
//!
//! One log serves all tables of a shard, and a record is just bytes to it. Appends that come while the disk is busy share
//! the next write and sync. A segment is removed once every table has flushed what it has in it; a table that
//! is seldom written would keep old ones for ever, so that [`CommitLog::pressure`] names the tables that have to flush.
//!
//! | module | idea |
//! |---|---|
//! | `format` | the bytes of a segment |
//! | `queue` | bytes on their way to the disk, and when they are due |
//! | `segments` | which tables have data in which segments |
//! | `writer` | the task that writes, syncs, and goes from segment to segment |
//! | `replay` | a log of before, read; what a crash leaves told from damage |

use std::cell::{Cell, RefCell};
use std::fmt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use runtime::{Clock, Disk, IoClass, IoError, Signal, Task, monotonic, spawn_vital};

use crate::{Error, Result};

mod format;
mod queue;
mod replay;
mod segments;
mod writer;

use queue::Queue;
pub use replay::{EarlierLog, Gap, LogReader, OnCorruption, Replayed};
use segments::{Segments, Unneeded};
use writer::Writer;

/// The longest record, in bytes: 256 MiB, as long as a request of CQL may be.
pub const MAX_RECORD: usize = 256 << 20;

/// The largest size of segments that can be asked for, in bytes: 1 GiB.
pub const MAX_SEGMENT_SIZE: usize = 1 << 30;

/// Counts the reads and writes of commit logs.
pub const COMMIT_LOG_IO: IoClass = IoClass::new(7);

/// A table, whatever is meant by these bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableId(pub [u8; 16]);

/// A place in a commit log: behind a record, or where a new memtable begins.
///
/// Positions ascend over the whole life of a folder, as long as its clock does not go back or its last segment is there
/// when it is opened again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct LogPosition {
    /// The number of the segment.
    pub segment: u64,
    /// Bytes from its start; below 2 GiB.
    pub offset: u64,
}

/// When appends are durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncMode {
    /// Some time after they have returned. A power cut loses at most what was appended in the last `period`: when the
    /// disk cannot keep up, appends wait. A process that is killed loses the last few milliseconds.
    Periodic {
        /// For how long a record may be not yet durable.
        period: Duration,
    },
    /// When they return. Those that come together are made durable together.
    Batch,
}

/// How a commit log is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitLogOptions {
    /// When appends are durable; every 10 s by default, as with Cassandra.
    pub sync: SyncMode,
    /// From how many bytes on a new segment begins, at most [`MAX_SEGMENT_SIZE`]; 32 MiB by default. A record that
    /// is longer has a segment for itself.
    pub segment_size: usize,
    /// From how many bytes of all segments on the tables with the oldest data must flush; 8 GiB by default.
    pub total_size: u64,
}

impl Default for CommitLogOptions {
    fn default() -> Self {
        let sync = SyncMode::Periodic { period: Duration::from_secs(10) };
        CommitLogOptions { sync, segment_size: 32 << 20, total_size: 8 << 30 }
    }
}

/// An open commit log. Dropping it without [`CommitLog::close`] loses what is not yet durable, as a power cut would.
///
/// After a write or a sync that failed, nobody knows what is on the disk, and a sync that went well later would not tell
/// either. So the first failure is the last: all that wait for the disk get the error, and so does every append after
/// them, until the log is opened again.
pub struct CommitLog {
    inner: Rc<Inner>,
    _writer: Task<()>,
}

/// What appends and the writer share.
struct Inner {
    disk: Disk,
    folder: PathBuf,
    options: CommitLogOptions,
    /// The number of the first segment.
    first: u64,
    queue: RefCell<Queue>,
    segments: RefCell<Segments>,
    state: RefCell<State>,
    is_removing: Cell<bool>,
    /// There may be something to do for the writer.
    work: Signal,
    /// Bytes became durable, the log failed, was closed, or a removal has ended.
    progress: Signal,
    /// A segment has begun.
    growth: Signal,
}

enum State {
    Open,
    Closing,
    Closed,
    Failed(IoError),
}

impl CommitLog {
    /// Begins a segment in a folder, which is made if it is not there. Segments of before stay as they are: they are
    /// for an [`EarlierLog`] that is found first. No other log may be open in the folder.
    ///
    /// # Errors
    /// [`Error::Invalid`] if segments would be too large; [`Error::Io`] if the segment cannot be made durable.
    pub async fn open(
        disk: &Disk,
        clock: &Clock,
        folder: &Path,
        options: CommitLogOptions,
    ) -> Result<CommitLog> {
        if options.segment_size > MAX_SEGMENT_SIZE {
            let what = format!("segments of a commit log have at most {MAX_SEGMENT_SIZE} bytes");
            return Err(Error::Invalid(what));
        }
        let writer = Writer::begin(disk, clock, folder).await?;
        let (number, salt) = (writer.segment(), writer.salt());
        let mut segments = Segments::default();
        segments.begin(number, format::HEADER_LEN as u64);
        let queue = Queue::new(options.sync, options.segment_size as u64, number, salt);
        let inner = Rc::new(Inner {
            disk: disk.clone(),
            folder: folder.to_path_buf(),
            options,
            first: number,
            queue: RefCell::new(queue),
            segments: RefCell::new(segments),
            state: RefCell::new(State::Open),
            is_removing: Cell::new(false),
            work: Signal::new(),
            progress: Signal::new(),
            growth: Signal::new(),
        });
        let task = spawn_vital(writer.run(Rc::clone(&inner)));
        Ok(CommitLog { inner, _writer: task })
    }

    /// Appends a record of a table; the position behind it.
    ///
    /// With [`SyncMode::Batch`] it is durable then, with [`SyncMode::Periodic`] soon. Waits while many bytes wait for the
    /// disk already. When the future is dropped, the record is in the log or it is not.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is longer than [`MAX_RECORD`] or the log was closed; [`Error::LogFailed`] if the log has
    /// failed: whether the record will be replayed is open then.
    pub async fn append(&self, table: TableId, record: &[u8]) -> Result<LogPosition> {
        self.append_with(table, record, |_| ()).await
    }

    /// Appends a record as [`CommitLog::append`] does, and calls `placed` as soon as its place is known, which is before
    /// it is durable: whoever applies it there applies all records in the order of their positions.
    ///
    /// # Errors
    /// Those of [`CommitLog::append`]; `placed` may have been called.
    pub async fn append_with(
        &self,
        table: TableId,
        record: &[u8],
        placed: impl FnOnce(LogPosition),
    ) -> Result<LogPosition> {
        if record.len() > MAX_RECORD {
            let what =
                format!("a record of {} bytes; the commit log takes at most {MAX_RECORD}", record.len());
            return Err(Error::Invalid(what));
        }
        let inner = &*self.inner;
        inner.progress.until(|| inner.admits()).await?;
        let end = inner.push(table, record, Segments::record);
        placed(end);
        if inner.options.sync == SyncMode::Batch {
            inner.durable(end).await?;
        }
        Ok(end)
    }

    /// Appends a mark: a record of a table that says something of those in front of it. It is kept until a newer mark of the table is
    /// durable, which [`CommitLog::flushed`] tells, or there is nothing in front of it.
    ///
    /// # Errors
    /// Those of [`CommitLog::append`].
    pub async fn append_mark(&self, table: TableId, mark: &[u8]) -> Result<()> {
        let inner = &*self.inner;
        inner.progress.until(|| inner.admits()).await?;
        inner.push(table, mark, Segments::mark);
        Ok(())
    }

    /// Waits until all is durable that was appended so far, and returns up to where that is.
    ///
    /// # Errors
    /// [`Error::LogFailed`] if the log has failed.
    pub async fn sync(&self) -> Result<LogPosition> {
        let wanted = self.inner.queue.borrow_mut().want_all();
        self.inner.work.notify();
        self.inner.durable(wanted).await?;
        Ok(wanted)
    }

    /// All records of a table up to this position are in SSTables that are sealed, or not wanted any more, and its last mark is durable. Segments that
    /// no table needs are removed in the background; one that cannot be removed is tried again the next time.
    pub fn flushed(&self, table: TableId, up_to: LogPosition) {
        self.inner.segments.borrow_mut().flushed(table, up_to);
        self.inner.remove_unneeded();
    }

    /// A table is gone: nothing of it is wanted any more, and nothing comes. What the log says of that last stays as long as
    /// there are segments before it, so that no other table of the same id finds its records.
    pub fn forget(&self, table: TableId) {
        let end = self.position();
        self.inner.segments.borrow_mut().forget(table, end);
        self.inner.remove_unneeded();
    }

    /// The end of the log: records that are appended from now on are behind it, all others not.
    pub fn position(&self) -> LogPosition {
        self.inner.queue.borrow().end()
    }

    /// The segment that the log began with when it was opened.
    pub fn first_segment(&self) -> u64 {
        self.inner.first
    }

    /// Up to where a power cut leaves all as it is.
    pub fn durable_position(&self) -> LogPosition {
        self.inner.queue.borrow().durable()
    }

    /// How many bytes the segments have.
    pub fn size(&self) -> u64 {
        self.inner.segments.borrow().bytes()
    }

    /// The tables to flush, those with the oldest data first, because the log is larger than
    /// [`CommitLogOptions::total_size`]; none if it is not, or if flushing does not help.
    pub fn pressure(&self) -> Vec<TableId> {
        self.inner.segments.borrow().to_flush(self.inner.options.total_size)
    }

    /// Waits until there is [`CommitLog::pressure`], and returns it. Who comes back without having flushed gets the same
    /// again.
    pub async fn pressed(&self) -> Vec<TableId> {
        let tables = || Some(self.pressure()).filter(|tables| !tables.is_empty());
        self.inner.growth.until(tables).await
    }

    /// Whether a table has records, or marks, that keep another segment than the last one.
    pub(crate) fn is_held_by(&self, table: TableId) -> bool {
        self.inner.segments.borrow().is_held_by(table)
    }

    /// Makes all durable, ends the segment and waits for removals that are under way. The log takes no records from now
    /// on. Segments with something that is not flushed stay, to be replayed; if there are none, an empty one does.
    ///
    /// # Errors
    /// [`Error::LogFailed`] if the log has failed.
    pub async fn close(&self) -> Result<()> {
        let inner = &*self.inner;
        let is_open = matches!(*inner.state.borrow(), State::Open);
        if is_open {
            inner.state.replace(State::Closing);
            inner.work.notify();
        }
        inner.progress.until(|| inner.is_closed()).await
    }
}

impl fmt::Debug for CommitLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let position = self.position();
        f.debug_struct("CommitLog").field("folder", &self.inner.folder).field("position", &position).finish()
    }
}

impl Inner {
    /// Whether an append may go on; `None` to wait.
    fn admits(&self) -> Option<Result<()>> {
        match &*self.state.borrow() {
            State::Open => self.queue.borrow().admits(monotonic()).then_some(Ok(())),
            State::Closing | State::Closed => Some(Err(closed())),
            State::Failed(error) => Some(Err(Error::LogFailed(error.clone()))),
        }
    }

    fn push(
        &self,
        table: TableId,
        record: &[u8],
        note: fn(&mut Segments, TableId, LogPosition),
    ) -> LogPosition {
        let now = monotonic();
        let mut queue = self.queue.borrow_mut();
        let (before, due) = (queue.end(), queue.due(now));
        let end = queue.push(now, table, record);
        if end.segment != before.segment {
            self.segments.borrow_mut().begin(end.segment, format::HEADER_LEN as u64);
            self.growth.notify();
        }
        note(&mut self.segments.borrow_mut(), table, end);
        if queue.due(now) != due {
            self.work.notify();
        }
        end
    }

    /// Waits until all before a position is durable.
    async fn durable(&self, position: LogPosition) -> Result<()> {
        let look = || match &*self.state.borrow() {
            State::Failed(error) => Some(Err(Error::LogFailed(error.clone()))),
            _ => (self.queue.borrow().durable() >= position).then_some(Ok(())),
        };
        self.progress.until(look).await
    }

    fn is_closed(&self) -> Option<Result<()>> {
        match &*self.state.borrow() {
            State::Open | State::Closing => None,
            State::Closed => (!self.is_removing.get()).then_some(Ok(())),
            State::Failed(error) => Some(Err(Error::LogFailed(error.clone()))),
        }
    }

    /// The segment's bytes are all durable, and no more come.
    fn sealed(self: &Rc<Self>, segment: u64) {
        self.segments.borrow_mut().seal(segment);
        self.remove_unneeded();
    }

    /// Begins to remove segments that nobody needs, unless that is under way.
    fn remove_unneeded(self: &Rc<Self>) {
        if self.is_removing.get() {
            return;
        }
        let Some(first) = self.segments.borrow_mut().take_removable() else { return };
        self.is_removing.set(true);
        let inner = Rc::clone(self);
        spawn_vital(async move {
            inner.remove_all(first).await;
            inner.is_removing.set(false);
            inner.progress.notify();
        })
        .detach();
    }

    /// Removes this segment and all others that nobody needs, up to the first that cannot be removed.
    async fn remove_all(&self, first: Unneeded) {
        let mut next = Some(first);
        while let Some(unneeded) = next {
            if self.remove(unneeded).await.is_err() {
                self.segments.borrow_mut().put_back(unneeded);
                break;
            }
            next = self.segments.borrow_mut().take_removable();
        }
        // A segment that a power cut brings back is replayed once more, which the folder is synced against: records
        // that come back without the later ones that they lost to would be seen again. Should it fail, they may.
        drop(self.disk.sync_dir(&self.folder).await);
    }

    async fn remove(&self, unneeded: Unneeded) -> std::result::Result<(), IoError> {
        if unneeded.is_behind_others {
            self.disk.sync_dir(&self.folder).await?;
        }
        self.disk.remove(&segment_path(&self.folder, unneeded.number)).await
    }
}

fn closed() -> Error {
    Error::Invalid("the commit log is closed".to_owned())
}

/// The file of a segment.
fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("commitlog-{number:020}.log"))
}

/// The number of the segment that a file is, if it is one.
fn segment_number(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_prefix("commitlog-")?.strip_suffix(".log")?;
    let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
#[path = "commit_log/tests.rs"]
mod tests;

#[cfg(test)]
#[path = "commit_log/crash_tests.rs"]
mod crash_tests;

#[cfg(test)]
#[path = "commit_log/corruption_tests.rs"]
mod corruption_tests;
