//! What a tracer of system calls saw: the reads of files in a folder, between marks.
//!
//! ```text
//! 731 statx(AT_FDCWD</x>, "peers-mark-begin", …) = -1 ENOENT       a mark
//! 732 pread64(9</x/data/1.sst>, ""..., 4608, 512) = 4608           a request
//! 732 pread64(9</x/data/1.sst>,  <unfinished ...>                  one that another thread's call stands in
//! 732 <... pread64 resumed>""..., 4608, 512) = 4608
//! ```

use std::collections::BTreeSet;

use super::tables::Cell;

/// The system calls that are looked at.
pub const CALLS: &str = "pread64,preadv,preadv2,read,readv,statx";

/// The most that a direct read asks for beyond the end of a file.
const ALIGNMENT: u64 = 4096;

/// Reads of files: how many, and their bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Reads {
    /// How many.
    pub requests: u64,
    /// The bytes that they gave.
    pub bytes: u64,
}

/// Reads between the marks.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Traced {
    /// While the database was opened.
    pub open: Reads,
    /// While it was measured.
    pub read: Reads,
}

impl Reads {
    /// Whether this counts the same requests, by what they asked for, as another by what they gave: at the end of a file
    /// that is less.
    pub fn agrees_with(self, given: Reads) -> bool {
        let missing = self.bytes.checked_sub(given.bytes);
        self.requests == given.requests
            && missing.is_some_and(|missing| missing < ALIGNMENT * self.requests.max(1))
    }

    /// Of one of so many operations.
    pub fn per(self, operations: f64) -> Cell {
        Cell::Reads(self.requests as f64 / operations, self.bytes as f64 / 1024.0 / operations)
    }
}

impl Traced {
    /// All that is read of a database that was closed.
    pub fn both(self) -> Reads {
        let Traced { open, read } = self;
        Reads { requests: open.requests + read.requests, bytes: open.bytes + read.bytes }
    }

    /// What the lines of a trace say of the files of a folder.
    pub fn parse(trace: &str, folder: &str) -> Traced {
        let mut traced = Traced::default();
        let (mut phase, mut begun) = (None, BTreeSet::new());
        for line in trace.lines() {
            let Some((thread, call)) = line.split_once(' ') else { continue };
            if let Some((_, mark)) = call.split_once("\"peers-mark-") {
                phase = mark.split('"').next();
                continue;
            }
            let is_ours = match call.trim_start().starts_with("<...") {
                true => begun.remove(thread),
                false => call.contains(folder),
            };
            if is_ours && call.ends_with("<unfinished ...>") {
                begun.insert(thread);
                continue;
            }
            let counted = match phase {
                Some("open") => &mut traced.open,
                Some("begin") => &mut traced.read,
                _ => continue,
            };
            if let Some(bytes) = bytes(call).filter(|_| is_ours) {
                *counted = Reads { requests: counted.requests + 1, bytes: counted.bytes + bytes };
            }
        }
        traced
    }
}

/// What a read gave; `None` for what gave nothing.
fn bytes(call: &str) -> Option<u64> {
    let is_read = call.contains("read");
    let (_, result) = call.rsplit_once(" = ").filter(|_| is_read)?;
    result.split(' ').next()?.parse().ok().filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "\
7 statx(AT_FDCWD</x>, \"peers-mark-open\", 0, 0, 0) = -1 ENOENT (No such file or directory)
7 read(3</x/data/1.sst>, \"\"..., 100) = 100
7 statx(AT_FDCWD</x>, \"peers-mark-opened\", 0, 0, 0) = -1 ENOENT (No such file or directory)
7 pread64(3</x/data/1.sst>, \"\"..., 9, 0) = 9
7 statx(AT_FDCWD</x>, \"peers-mark-begin\", 0, 0, 0) = -1 ENOENT (No such file or directory)
8 pread64(3</x/data/1.sst>,  <unfinished ...>
9 read(4</proc/x>, \"\"..., 100) = 100
8 <... pread64 resumed>\"\"..., 4608, 512) = 4608
9 pread64(3</x/data/1.sst>, \"\"..., 4096, 0) = 512
9 pread64(3</x/data/1.sst>, \"\"..., 4096, 512) = 0
7 statx(AT_FDCWD</x>, \"peers-mark-end\", 0, 0, 0) = -1 ENOENT (No such file or directory)
7 read(3</x/data/1.sst>, \"\"..., 100) = 100
";

    #[test]
    fn reads_between_marks_are_counted() {
        let open = Reads { requests: 1, bytes: 100 };
        let read = Reads { requests: 2, bytes: 5120 };
        assert_eq!(Traced::parse(TRACE, "/x/data/"), Traced { open, read });
        assert_eq!(Traced { open, read }.both(), Reads { requests: 3, bytes: 5220 });
        assert!(
            Reads { bytes: 5121, ..read }.agrees_with(read)
                && !Reads { bytes: 5119, ..read }.agrees_with(read)
        );
        assert_eq!(read.per(2.0).to_string(), "1.00 / 2.5");
    }
}
