//! The open files of the simulated disk: one to read, one to append to.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::rc::Rc;

use super::fate::Fate;
use super::files::Content;
use super::operation::Operation;
use super::{Life, SimDisk, executor};

/// An open file of the simulated disk, to be read.
pub(crate) struct SimFile {
    disk: SimDisk,
    life: Life,
    content: Rc<Content>,
    alignment: usize,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, life: Life, content: Rc<Content>, alignment: usize) -> Self {
        Self { disk, life, content, alignment }
    }

    /// One request: appends what it returns at `target.start` of `buf`, whose length is at least that.
    pub(crate) async fn read_at(
        &self,
        buf: &mut Vec<u8>,
        target: Range<usize>,
        offset: u64,
    ) -> io::Result<usize> {
        let len = self.content.bytes().len();
        let start = usize::try_from(offset).map_or(len, |offset| offset.min(len));
        let available = target.len().min(len - start);
        let fate = {
            let options = self.disk.0.options.borrow();
            Fate::draw(&options, &mut self.disk.0.random.borrow_mut(), available, self.alignment)
        };
        if fate.delay > 0 {
            self.disk.count(|counters| counters.delayed += 1);
            executor::sleep(u64::from(fate.delay)).await;
        }
        self.disk.expect_power(self.life)?;
        self.disk.count(|counters| {
            counters.requests += 1;
            counters.io_errors += u64::from(fate.fails);
            counters.short_reads += u64::from(!fate.fails && fate.count < available);
            counters.corruptions += u64::from(!fate.fails && fate.flip.is_some());
        });
        if fate.fails {
            return Err(io::Error::other("a simulated failure of the disk"));
        }
        buf.truncate(target.start);
        buf.extend_from_slice(&self.content.bytes()[start..start + fate.count]);
        if let Some(bit) = fate.flip {
            buf[target.start + bit / 8] ^= 1 << (bit % 8);
        }
        Ok(fate.count)
    }
}

/// A file of the simulated disk that is being written.
pub(crate) struct SimNewFile {
    disk: SimDisk,
    life: Life,
    content: Rc<Content>,
    /// What offset and length of appends are multiples of; 1 from [`SimNewFile::end_direct`] on.
    block: Cell<usize>,
}

impl SimNewFile {
    pub(super) fn new(disk: SimDisk, life: Life, content: Rc<Content>, block: usize) -> Self {
        Self { disk, life, content, block: Cell::new(block) }
    }

    pub(crate) fn end_direct(&self) {
        self.block.set(1);
    }

    /// One request: appends at `offset`, the end of the file; how many of the bytes it took.
    pub(crate) async fn append(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.expect_power(self.life)?;
        assert_eq!(self.content.len(), offset, "invariant 1 of a new file");
        let unit = self.block.get();
        let is_whole = offset.is_multiple_of(unit as u64) && bytes.len().is_multiple_of(unit);
        assert!(is_whole, "direct writes are of whole blocks");
        let operation = Operation::Append { content: Rc::clone(&self.content), bytes: bytes.to_vec(), unit };
        self.disk.operate(self.life, operation).await
    }

    pub(crate) async fn sync(&self) -> io::Result<()> {
        let sync = Operation::Sync(Rc::clone(&self.content), self.content.len() as usize);
        self.disk.operate(self.life, sync).await?;
        Ok(())
    }
}
