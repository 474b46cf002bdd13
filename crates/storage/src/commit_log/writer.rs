//! The task that writes the log: one write for all that has come, one sync, and from segment to segment.
//!
//! Where many bytes come between two syncs, they are made durable along the way while the next ones are written: a sync of a whole
//! segment would have all writes wait for as long as the disk takes for it.
//!
//! A segment is followed by another one only once all of it is durable, its end too; and it gets records only once its
//! header and its name are durable. So where there is a later segment of the same session, a segment is whole.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use runtime::{Clock, Disk, IoError, NewFile, Task, monotonic, spawn, timeout};

use super::format::{Binding, HEADER_LEN, Header, Mark};
use super::queue::{Chunk, Due, Step};
use super::{COMMIT_LOG_IO, Inner, LogPosition, State, segment_number, segment_path};
use crate::Result;

/// What the disk did or refused.
type IoResult<T> = std::result::Result<T, IoError>;

/// A segment is made durable in so many steps, behind what is written.
const STEPS: u64 = 8;

/// Writes into one segment after the other.
///
/// Invariants:
/// 1. `file` is the segment `number`, and has its header.
/// 2. The first `synced` bytes of it, and its name, are durable. Behind them at most one sync is under way, of all bytes up to
///    some place.
pub(super) struct Writer {
    disk: Disk,
    folder: PathBuf,
    /// The number of the first segment.
    session: u64,
    salt: u64,
    number: u64,
    file: NewFile,
    synced: u64,
    behind: Option<(u64, Task<IoResult<u64>>)>,
}

impl Writer {
    /// Begins a segment whose number is above all that there are, and that there were.
    pub(super) async fn begin(disk: &Disk, clock: &Clock, folder: &Path) -> Result<Writer> {
        disk.create_dir_all(folder).await?;
        if let Some(parent) = folder.parent() {
            disk.sync_dir(parent).await?;
        }
        let last = disk.list(folder)?.iter().filter_map(|path| segment_number(path)).max().unwrap_or(0);
        // The clock sees to it that numbers are never used again, though all segments may have been removed.
        let number = (last + 1).max(clock.now().as_millis() as u64);
        let header = Header { segment: number, session: number, salt: clock.now().as_micros() as u64 };
        let file = begin_segment(disk, folder, header).await?;
        let (disk, folder, synced) = (disk.clone(), folder.to_path_buf(), HEADER_LEN as u64);
        let (session, salt) = (header.session, header.salt);
        Ok(Writer { disk, folder, session, salt, number, file, synced, behind: None })
    }

    /// The number of the segment.
    pub(super) fn segment(&self) -> u64 {
        self.number
    }

    /// What binds checksums to this session.
    pub(super) fn salt(&self) -> u64 {
        self.salt
    }

    /// Writes what comes, until the log is closed or has failed.
    pub(super) async fn run(mut self, log: Rc<Inner>) {
        let result = self.write_all(&log).await;
        log.state.replace(result.map_or_else(State::Failed, |()| State::Closed));
        log.progress.notify();
    }

    async fn write_all(&mut self, log: &Rc<Inner>) -> IoResult<()> {
        loop {
            let step = log.next_step().await;
            // An append comes after this or is included, whatever happens meanwhile.
            let is_last = matches!(*log.state.borrow(), State::Closing);
            let chunks = log.queue.borrow_mut().take();
            self.perform(log, step, chunks).await?;
            if is_last {
                return self.end(log).await;
            }
        }
    }

    async fn perform(&mut self, log: &Rc<Inner>, step: Step, chunks: VecDeque<Chunk>) -> IoResult<()> {
        for chunk in chunks {
            if chunk.segment != self.number {
                self.end_segment(log).await?;
                self.next_segment(chunk.segment).await?;
            }
            let (len, buffer) = self.write(chunk).await?;
            log.queue.borrow_mut().written(len, buffer);
            log.progress.notify();
            self.sync_behind(log).await?;
        }
        match step {
            Step::Write => Ok(()),
            Step::Sync => self.sync(log).await,
        }
    }

    /// Writes a chunk behind its mark; how many bytes, and their buffer.
    async fn write(&mut self, mut chunk: Chunk) -> IoResult<(usize, Vec<u8>)> {
        assert_eq!(chunk.start, self.file.len(), "invariant 1 of the queue: chunks are in order");
        let mark = Mark { is_end: false, synced: self.synced };
        let mark = mark.encode(&self.binding(), chunk.start);
        chunk.bytes[..mark.len()].copy_from_slice(&mark);
        let len = chunk.bytes.len();
        match self.file.append(chunk.bytes).await {
            Ok(buffer) => Ok((len, buffer)),
            Err(error) => {
                // Where a sync behind it has failed, that is why, and says more.
                self.settle().await?;
                Err(error)
            }
        }
    }

    async fn sync(&mut self, log: &Inner) -> IoResult<()> {
        log.queue.borrow_mut().sync_begins();
        self.sync_file(log).await?;
        log.queue.borrow_mut().sync_ended();
        // Who waits because it took too long may go on.
        log.progress.notify();
        Ok(())
    }

    /// Begins to make durable what was written, where that is much. Waits for the sync that was begun so before.
    async fn sync_behind(&mut self, log: &Rc<Inner>) -> IoResult<()> {
        let begun = self.behind.as_ref().map_or(self.synced, |(up_to, _)| *up_to);
        if self.file.len() - begun >= log.options.segment_size as u64 / STEPS {
            self.settle().await?;
            let (log, segment, sync) = (Rc::clone(log), self.number, self.file.sync_behind());
            let task = spawn(async move {
                let offset = sync.await?;
                log.is_durable(LogPosition { segment, offset });
                Ok(offset)
            });
            self.behind = Some((self.file.len(), task));
        }
        Ok(())
    }

    /// Waits for the sync that is under way behind what is written.
    async fn settle(&mut self) -> IoResult<()> {
        if let Some((_, sync)) = self.behind.take() {
            self.synced = sync.await?;
        }
        Ok(())
    }

    /// Makes all durable that was written to the file.
    async fn sync_file(&mut self, log: &Inner) -> IoResult<()> {
        self.settle().await?;
        if self.synced < self.file.len() {
            self.file.sync().await?;
            self.synced = self.file.len();
        }
        log.is_durable(LogPosition { segment: self.number, offset: self.synced });
        Ok(())
    }

    /// Makes the segment whole. Its end says that all before it is durable, which it has to be by then.
    async fn end_segment(&mut self, log: &Rc<Inner>) -> IoResult<()> {
        self.sync_file(log).await?;
        let end = Mark { is_end: true, synced: self.synced }.encode(&self.binding(), self.synced);
        self.file.append(end.to_vec()).await?;
        self.file.sync().await?;
        log.sealed(self.number);
        Ok(())
    }

    /// Ends the log. Where all of it is flushed, only the number of an empty segment is left.
    async fn end(&mut self, log: &Rc<Inner>) -> IoResult<()> {
        self.end_segment(log).await?;
        if self.synced > HEADER_LEN as u64 && log.segments.borrow().is_last_flushed() {
            let next = log.queue.borrow_mut().next_segment();
            log.segments.borrow_mut().begin(next.segment, next.offset);
            self.next_segment(next.segment).await?;
            self.end_segment(log).await?;
        }
        Ok(())
    }

    async fn next_segment(&mut self, number: u64) -> IoResult<()> {
        let header = Header { segment: number, session: self.session, salt: self.salt };
        self.file = begin_segment(&self.disk, &self.folder, header).await?;
        (self.number, self.synced) = (number, HEADER_LEN as u64);
        Ok(())
    }

    fn binding(&self) -> Binding {
        Binding::new(self.number, self.salt)
    }
}

impl Inner {
    /// A power cut leaves all before this position as it is.
    fn is_durable(&self, position: LogPosition) {
        self.queue.borrow_mut().is_durable(position);
        self.progress.notify();
    }

    /// Waits until the disk has something to do.
    async fn next_step(&self) -> Step {
        loop {
            if matches!(*self.state.borrow(), State::Closing) {
                return Step::Sync;
            }
            let now = monotonic();
            let due = self.queue.borrow().due(now);
            match due {
                Due::Now(step) => return step,
                Due::At(time) => {
                    timeout(time.saturating_sub(now), self.work.changed()).await;
                }
                Due::Never => self.work.changed().await,
            }
        }
    }
}

/// Makes a segment of nothing but its header, durable with its name.
async fn begin_segment(disk: &Disk, folder: &Path, header: Header) -> IoResult<NewFile> {
    let mut file = disk.create(&segment_path(folder, header.segment), COMMIT_LOG_IO).await?;
    file.append(header.encode()).await?;
    file.sync().await?;
    disk.sync_dir(folder).await?;
    Ok(file)
}
