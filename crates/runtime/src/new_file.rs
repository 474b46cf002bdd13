//! A new file, written from its start to its end: what is appended is written in full, or the file is given up.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use crate::blocks::{Alignments, Blocks};
use crate::error::{DiskAction, IoError};
use crate::file::MAX_REQUEST;
use crate::real::RealNewFile;
use crate::sim::SimNewFile;
use crate::stats::{IoClass, IoCounters};

/// So many bytes at a time go past the page cache.
const PIECE: usize = 1 << 20;

const DIRECT: &str = "it is written past the page cache";

/// A file of one shard that was created empty and is appended to. Closed when it is dropped; not durable by that.
///
/// What was appended can be read at once, by who opens the file then; of one that goes [past the page
/// cache](crate::Disk::create_direct), once it was synced. It survives a power cut once
/// [`NewFile::sync`] has ended well, and so does its name after [`Disk::sync_dir`](crate::Disk::sync_dir) of its
/// folder.
///
/// An append or a sync that fails, or whose future is dropped, leaves open what is on the disk: a failed sync may have
/// thrown away what it could not write, and the next one would know nothing of it. From then on both fail, and all
/// there is to do with the file is to remove it.
///
/// Invariants:
/// 1. Unless `in_doubt`, the file has exactly `len` bytes, without those that wait in `blocks`.
/// 2. `in_doubt` is set from the beginning of an append or a sync until it has ended well, and `has_lost_sync` once a sync
///    [behind](NewFile::sync_behind) the appends did not.
pub struct NewFile {
    path: Rc<Path>,
    len: u64,
    in_doubt: bool,
    has_lost_sync: Rc<Cell<bool>>,
    class: IoClass,
    counters: Rc<IoCounters>,
    sink: Rc<Sink>,
    /// There as long as it is written past the page cache.
    blocks: Option<Blocks>,
}

/// A file that was made, and what its writes have to suit if they go past the page cache.
pub(crate) struct Created {
    pub(crate) sink: Sink,
    pub(crate) alignments: Option<Alignments>,
}

/// Where the bytes go.
pub(crate) enum Sink {
    Real(RealNewFile),
    Simulated(SimNewFile),
}

impl NewFile {
    pub(crate) fn new(path: &Path, class: IoClass, counters: Rc<IoCounters>, created: Created) -> Self {
        let Created { sink, alignments } = created;
        let blocks = alignments.map(Blocks::new);
        let (path, sink, has_lost_sync) = (path.into(), Rc::new(sink), Rc::default());
        Self { path, len: 0, in_doubt: false, has_lost_sync, class, counters, sink, blocks }
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
    /// where more than 1 GiB is written. Past the page cache go whole blocks: a megabyte of them at a time, by way of another buffer, or
    /// as they are, if nothing waits and their address suits; the rest goes with those
    /// of a later append, or as the file is synced. A request that has begun is seen to its end even if this future is dropped.
    ///
    /// # Errors
    /// [`IoError::Write`] if the operating system refuses, with the kind `StorageFull` where the disk is; also if an
    /// append or a sync has failed or was dropped before.
    pub async fn append(&mut self, mut bytes: Vec<u8>) -> Result<Vec<u8>, IoError> {
        let (path, offset, length) = (Rc::clone(&self.path), self.len, bytes.len());
        let refused = |error| IoError::write(&path, offset, length, &error);
        self.begin().map_err(refused)?;
        match self.blocks.as_ref().map(|blocks| blocks.as_they_are(&bytes)) {
            None => bytes = self.write(bytes, 0..length, offset).await.map_err(refused)?,
            Some(None) => self.write_blocks(&bytes).await.map_err(refused)?,
            Some(Some(whole)) => {
                bytes = self.write(bytes, 0..whole, offset).await.map_err(refused)?;
                self.blocks.as_mut().expect(DIRECT).keep(&bytes[whole..]);
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
    ///
    /// # Panics
    /// If a [sync behind](NewFile::sync_behind) is under way: of an error the kernel tells but one of the two.
    pub async fn sync(&mut self) -> Result<(), IoError> {
        assert_eq!(Rc::strong_count(&self.has_lost_sync), 1, "syncs behind are waited for first");
        let path = Rc::clone(&self.path);
        let refused = |error| IoError::refused(&path, DiskAction::Sync, &error);
        self.begin().map_err(refused)?;
        self.write_rest().await?;
        self.counters.record_sync();
        self.sink.sync().await.map_err(refused)?;
        self.in_doubt = false;
        Ok(())
    }

    /// Waits until what was appended by now would survive a power cut, while more is appended; how many bytes that is, from the
    /// start. What [waits for its block](crate::Disk::create_direct) is not among them.
    ///
    /// # Errors
    /// Those of [`NewFile::sync`]. If it fails, or is dropped before its end, so do later appends and syncs.
    ///
    /// # Panics
    /// If another one is under way, as with [`NewFile::sync`].
    pub fn sync_behind(&self) -> impl Future<Output = Result<u64, IoError>> + 'static {
        assert_eq!(Rc::strong_count(&self.has_lost_sync), 1, "one sync behind at a time");
        let (path, sink) = (Rc::clone(&self.path), Rc::clone(&self.sink));
        let len = self.len - self.blocks.as_ref().map_or(0, |blocks| blocks.rest().len() as u64);
        let refused = move |error| IoError::refused(&path, DiskAction::Sync, &error);
        let (known, counters) = (self.expect_no_doubt(), Rc::clone(&self.counters));
        let has_lost_sync = Rc::clone(&self.has_lost_sync);
        async move {
            known.map_err(&refused)?;
            let mut doubt = Doubt { is_dispelled: false, has_lost_sync };
            counters.record_sync();
            sink.sync().await.map_err(refused)?;
            doubt.is_dispelled = true;
            Ok(len)
        }
    }

    /// Writes the whole blocks that there are with these bytes.
    async fn write_blocks(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mut end, mut left) = (self.len, bytes);
        while !left.is_empty() {
            let piece;
            // A little more than a piece is one.
            (piece, left) = left.split_at(if left.len() <= PIECE + PIECE / 2 { left.len() } else { PIECE });
            let blocks = self.blocks.as_mut().expect(DIRECT);
            let at = end - blocks.rest().len() as u64;
            let (buffer, whole) = blocks.take(piece);
            let buffer = self.write(buffer, whole, at).await?;
            self.blocks.as_mut().expect(DIRECT).put_back(buffer);
            end += piece.len() as u64;
        }
        Ok(())
    }

    /// Writes what fills no block. The file goes on in the page cache from there.
    async fn write_rest(&mut self) -> Result<(), IoError> {
        let Some(blocks) = self.blocks.take_if(|blocks| !blocks.rest().is_empty()) else { return Ok(()) };
        let rest = blocks.into_rest();
        let (path, len) = (Rc::clone(&self.path), rest.len());
        let offset = self.len - len as u64;
        let refused = |error| IoError::write(&path, offset, len, &error);
        self.sink.end_direct().map_err(refused)?;
        self.write(rest, 0..len, offset).await.map_err(refused)?;
        Ok(())
    }

    /// Writes a part of a buffer to the end of the file, and gives it back.
    async fn write(&self, mut bytes: Vec<u8>, whole: Range<usize>, offset: u64) -> io::Result<Vec<u8>> {
        let mut written = 0;
        while written < whole.len() {
            let start = whole.start + written;
            let part = start..whole.end.min(start + MAX_REQUEST);
            self.counters.record_write(self.class, part.len());
            let result;
            (result, bytes) = self.sink.write_at(bytes, part, offset + written as u64).await;
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bytes)
    }

    /// Sets `in_doubt`, unless it is set already.
    fn begin(&mut self) -> io::Result<()> {
        self.expect_no_doubt()?;
        self.in_doubt = true;
        Ok(())
    }

    fn expect_no_doubt(&self) -> io::Result<()> {
        if self.in_doubt || self.has_lost_sync.get() {
            return Err(io::Error::other("an earlier append or sync of the file did not end well"));
        }
        Ok(())
    }
}

/// A sync behind the appends that has begun: lost, unless it is seen to end well.
struct Doubt {
    is_dispelled: bool,
    has_lost_sync: Rc<Cell<bool>>,
}

impl Drop for Doubt {
    fn drop(&mut self) {
        if !self.is_dispelled {
            self.has_lost_sync.set(true);
        }
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

    /// Lets the page cache have what is written from here on.
    fn end_direct(&self) -> io::Result<()> {
        match self {
            Self::Real(file) => file.end_direct(),
            Self::Simulated(file) => {
                file.end_direct();
                Ok(())
            }
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
