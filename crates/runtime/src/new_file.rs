//! A new file, written from its start to its end: what is appended is written in full, or the file is given up.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use crate::error::{DiskAction, IoError};
use crate::file::MAX_REQUEST;
use crate::real::RealNewFile;
use crate::sim::SimNewFile;
use crate::stats::{IoClass, IoCounters};

/// A file of one shard that was created empty and is appended to. Closed when it is dropped; not durable by that.
///
/// What was appended can be read at once, by who opens the file then. It survives a power cut once
/// [`NewFile::sync`] has ended well, and so does its name after [`Disk::sync_dir`](crate::Disk::sync_dir) of its
/// folder.
///
/// An append or a sync that fails, or whose future is dropped, leaves open what is on the disk: a failed sync may have
/// thrown away what it could not write, and the next one would know nothing of it. From then on both fail, and all
/// there is to do with the file is to remove it.
///
/// Invariants:
/// 1. Unless `in_doubt`, the file has exactly `len` bytes.
/// 2. `in_doubt` is set from the beginning of an append or a sync until it has ended well.
pub struct NewFile {
    path: Rc<Path>,
    len: u64,
    in_doubt: bool,
    class: IoClass,
    counters: Rc<IoCounters>,
    sink: Sink,
}

/// Where the bytes go.
pub(crate) enum Sink {
    Real(RealNewFile),
    Simulated(SimNewFile),
}

impl NewFile {
    pub(crate) fn new(path: &Path, class: IoClass, counters: Rc<IoCounters>, sink: Sink) -> Self {
        Self { path: path.into(), len: 0, in_doubt: false, class, counters, sink }
    }

    /// How many bytes were appended, without those of an append that did not end well.
    #[expect(clippy::len_without_is_empty, reason = "a file is no collection")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The path the file was created under; it may have been renamed since.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of `bytes` to the end of the file, and hands the buffer back, empty, to be filled again.
    ///
    /// Goes to the operating system once, and again only where it took fewer bytes, was interrupted by a signal, or
    /// where more than 1 GiB is written. A request that has begun is seen to its end even if this future is dropped.
    ///
    /// # Errors
    /// [`IoError::Write`] if the operating system refuses, with the kind `StorageFull` where the disk is; also if an
    /// append or a sync has failed or was dropped before.
    pub async fn append(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>, IoError> {
        let (path, offset, length) = (Rc::clone(&self.path), self.len, bytes.len());
        let refused = |error| IoError::write(&path, offset, length, &error);
        self.begin().map_err(refused)?;
        let mut written = 0;
        while written < length {
            let part = written..length.min(written + MAX_REQUEST);
            self.counters.record_write(self.class, part.len());
            let result;
            (result, bytes) = self.sink.write_at(bytes, part, offset + written as u64).await;
            match result {
                Ok(0) => return Err(refused(io::ErrorKind::WriteZero.into())),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(refused(error)),
            }
        }
        self.len += length as u64;
        self.in_doubt = false;
        bytes.clear();
        Ok(bytes)
    }

    /// Waits until all that was appended would survive a power cut. The name of the file is not part of that.
    ///
    /// # Errors
    /// [`IoError::Refused`] if the operating system refuses; also if an append or a sync has failed or was dropped
    /// before.
    pub async fn sync(&mut self) -> Result<(), IoError> {
        let path = Rc::clone(&self.path);
        let refused = |error| IoError::refused(&path, DiskAction::Sync, &error);
        self.begin().map_err(refused)?;
        self.counters.record_sync();
        self.sink.sync().await.map_err(refused)?;
        self.in_doubt = false;
        Ok(())
    }

    /// Sets `in_doubt`, unless it is set already.
    fn begin(&mut self) -> io::Result<()> {
        if self.in_doubt {
            return Err(io::Error::other("an earlier append or sync of the file did not end well"));
        }
        self.in_doubt = true;
        Ok(())
    }
}

impl fmt::Debug for NewFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewFile").field("path", &self.path).field("len", &self.len).finish_non_exhaustive()
    }
}

impl Sink {
    /// One request: writes the bytes in `part` of `buf` at `offset`, the end of the file; how many of them it took.
    async fn write_at(&self, buf: Vec<u8>, part: Range<usize>, offset: u64) -> (io::Result<usize>, Vec<u8>) {
        match self {
            Self::Real(file) => file.write_at(buf, part, offset).await,
            Self::Simulated(file) => (file.append(&buf[part], offset).await, buf),
        }
    }

    async fn sync(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.sync().await,
            Self::Simulated(file) => file.sync().await,
        }
    }
}

#[cfg(test)]
#[path = "new_file_tests.rs"]
mod tests;
