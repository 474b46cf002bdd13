//! The open files of the simulated disk.

use std::io;
use std::ops::Range;
use std::rc::Rc;

use super::fate::Fate;
use super::{SimDisk, executor};

/// An open file of a simulated disk: its content as it was at opening.
pub(crate) struct SimFile {
    disk: SimDisk,
    content: Rc<Vec<u8>>,
    alignment: usize,
}

impl SimFile {
    pub(super) fn new(disk: SimDisk, content: Rc<Vec<u8>>, alignment: usize) -> Self {
        Self { disk, content, alignment }
    }

    /// One request: appends what it returns at `target.start` of `buf`, whose length is at least that.
    pub(crate) async fn read_at(
        &self,
        buf: &mut Vec<u8>,
        target: Range<usize>,
        offset: u64,
    ) -> io::Result<usize> {
        let len = self.content.len();
        let start = usize::try_from(offset).map_or(len, |offset| offset.min(len));
        let available = target.len().min(len - start);
        let fate = {
            let options = self.disk.0.options.borrow();
            Fate::draw(&options, &mut self.disk.0.random.borrow_mut(), available, self.alignment)
        };
        if fate.delay > 0 {
            self.disk.count(|counters| counters.delayed += 1);
            executor::sleep(fate.delay).await;
        }
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
        buf.extend_from_slice(&self.content[start..start + fate.count]);
        if let Some(bit) = fate.flip {
            buf[target.start + bit / 8] ^= 1 << (bit % 8);
        }
        Ok(fate.count)
    }
}
