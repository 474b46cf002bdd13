//! A file opened for reading: exactly the bytes asked for, in as few requests as the operating system allows.
//!
//! With direct I/O a read is rounded outwards to the alignment of the device, and the bytes asked for are a window of
//! what was read:
//! ```text
//!            offset          offset + len
//! ├──── lead ──┼─── asked for ──┼── rest ──┤
//! └ multiple of the alignment              └ multiple of the alignment
//! ```

use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::path::Path;
use std::rc::Rc;

use crate::buffer;
use crate::error::IoError;
use crate::real::RealFile;
use crate::sim::SimFile;
use crate::stats::{IoClass, IoCounters};

/// The largest single request, in bytes; larger ones are split. A multiple of every alignment, and below what the
/// system calls can express.
pub(crate) const MAX_REQUEST: usize = 1 << 30;

/// An open file of one shard, for reading. Clones are the same open file; it is closed with the last of them.
#[derive(Clone)]
pub struct File(Rc<Inner>);

/// Invariants:
/// 1. `alignment` and `memory_alignment` are powers of two; both are 1 when the file is buffered.
/// 2. `len` is the length at opening. A file may grow later, but what it has does not change.
struct Inner {
    id: u64,
    path: Rc<Path>,
    len: u64,
    alignment: usize,
    memory_alignment: usize,
    class: IoClass,
    counters: Rc<IoCounters>,
    source: Source,
}

/// Where the bytes come from, once opened.
pub(crate) enum Source {
    Real(RealFile),
    Simulated(SimFile),
}

/// What opening found out about a file.
pub(crate) struct Opened {
    pub(crate) source: Source,
    pub(crate) len: u64,
    pub(crate) alignment: usize,
    pub(crate) memory_alignment: usize,
}

impl File {
    pub(crate) fn new(
        id: u64,
        path: &Path,
        class: IoClass,
        counters: Rc<IoCounters>,
        opened: Opened,
    ) -> Self {
        let Opened { source, len, alignment, memory_alignment } = opened;
        assert!(
            alignment.is_power_of_two() && memory_alignment.is_power_of_two(),
            "invariant 1 of an open file"
        );
        Self(Rc::new(Inner {
            id,
            path: path.into(),
            len,
            alignment,
            memory_alignment,
            class,
            counters,
            source,
        }))
    }

    /// The length in bytes, as it was when the file was opened.
    #[expect(clippy::len_without_is_empty, reason = "a file is no collection")]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// The path the file was opened by.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// What the open file takes in memory, with its path, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Inner>() + size_of_val(&*self.0.path) + 4 * size_of::<usize>()
    }

    /// The number of bytes that offset and length of a request are multiples of; 1 when the file is buffered, that
    /// is, when direct I/O was not asked for or the file system has none.
    pub fn alignment(&self) -> usize {
        self.0.alignment
    }

    /// A number that no other file opened by this shard has or will have: the owner of its pages in a cache.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// Reads exactly `len` bytes at `offset`, both in bytes.
    ///
    /// Goes to the operating system once, and again only where it returned fewer bytes, was interrupted by a signal,
    /// or where more than 1 GiB is asked for.
    ///
    /// # Errors
    /// [`IoError::UnexpectedEnd`] if the file ends before, without asking the operating system where that is known;
    /// [`IoError::Read`] if the operating system refuses.
    pub async fn read_exact_at(&self, offset: u64, len: usize) -> Result<Window, IoError> {
        self.read_behind_room_at(offset, len, 0).await
    }

    /// The same, with room for so many bytes before those that are read: who has what comes before them puts it there.
    ///
    /// # Errors
    /// As there.
    pub async fn read_behind_room_at(&self, offset: u64, len: usize, room: usize) -> Result<Window, IoError> {
        let file = &*self.0;
        if offset.checked_add(len as u64).is_none_or(|end| end > file.len) {
            return Err(self.unexpected_end(offset, len, file.len));
        }
        if len == 0 {
            return Ok(Window::default());
        }
        let span = Span::around(offset, len, file.alignment);
        let room = room.next_multiple_of(file.memory_alignment);
        let (mut buf, base) = buffer::allocate(room + span.len, file.memory_alignment);
        let base = base + room;
        if buf.len() < base {
            buf.resize(base, 0);
        }
        let mut filled = 0;
        loop {
            let target = base + filled..base + filled + (span.len - filled).min(MAX_REQUEST);
            file.counters.record_read(file.class, target.len());
            let result;
            (result, buf) = file.source.read_at(buf, target, span.offset + filled as u64).await;
            match result {
                Ok(count) if filled + count >= span.lead + len => break,
                Ok(count) => {
                    // A request must begin at the alignment again, so that the odd rest is read a second time.
                    let whole = (filled + count) & !(file.alignment - 1);
                    if whole == filled {
                        return Err(self.unexpected_end(offset, len, span.offset + (filled + count) as u64));
                    }
                    filled = whole;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(IoError::read(&file.path, offset, len, &error)),
            }
        }
        Ok(Window::new(buf, base + span.lead, len))
    }

    pub(crate) fn counters(&self) -> &IoCounters {
        &self.0.counters
    }

    fn unexpected_end(&self, offset: u64, length: usize, file_length: u64) -> IoError {
        IoError::UnexpectedEnd { path: self.path().into(), offset, length, file_length }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").field("path", &self.0.path).field("len", &self.0.len).finish_non_exhaustive()
    }
}

impl Source {
    /// One request: reads into `target` of `buf`, whose length is at least `target.start` and capacity `target.end`.
    async fn read_at(
        &self,
        mut buf: Vec<u8>,
        target: Range<usize>,
        offset: u64,
    ) -> (io::Result<usize>, Vec<u8>) {
        match self {
            Self::Real(file) => file.read_at(buf, target, offset).await,
            Self::Simulated(file) => {
                let result = file.read_at(&mut buf, target, offset).await;
                (result, buf)
            }
        }
    }
}

/// A read rounded outwards to the alignment.
#[derive(Debug, PartialEq, Eq)]
struct Span {
    /// Where the rounded read begins, in bytes.
    offset: u64,
    /// How many bytes it has.
    len: usize,
    /// How many of them lie before the bytes asked for.
    lead: usize,
}

impl Span {
    fn around(offset: u64, len: usize, alignment: usize) -> Self {
        let lead = (offset & (alignment as u64 - 1)) as usize;
        Self { offset: offset - lead as u64, len: (lead + len).next_multiple_of(alignment), lead }
    }
}

/// The bytes of one read, and the buffer they lie in. Dereferences to the bytes.
#[derive(Debug, Default)]
pub struct Window {
    buf: Vec<u8>,
    start: usize,
    len: usize,
}

impl Window {
    fn new(buf: Vec<u8>, start: usize, len: usize) -> Self {
        assert!(start + len <= buf.len(), "a window lies within the bytes that were read");
        Self { buf, start, len }
    }

    /// The buffer and where in it the bytes are, so that it can be kept reference-counted without a copy.
    ///
    /// What lies outside of the range are neighbours of the bytes in the file, or whatever was there.
    pub fn into_parts(self) -> (Vec<u8>, Range<usize>) {
        (self.buf, self.start..self.start + self.len)
    }

    /// Hands the buffer on to whoever wants one next.
    pub fn let_go(self) {
        buffer::reuse(self.buf);
    }
}

impl Deref for Window {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buf[self.start..self.start + self.len]
    }
}

impl AsRef<[u8]> for Window {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
