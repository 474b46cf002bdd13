//! What can go wrong below a shard, each error naming the file and the bytes it is about.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

/// Something that a disk was asked for could not be had or done.
///
/// Cheap to clone, because all readers that wait for one coalesced read share its error; and `Send`, because it is
/// what a shard most often hands back to the thread that started it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IoError {
    /// The read reaches past the end of the file.
    #[error("{}: {length} bytes at offset {offset} reach past the end of the file at {file_length}", path.display())]
    UnexpectedEnd {
        /// The file.
        path: Arc<Path>,
        /// Where the read begins, in bytes from the start of the file.
        offset: u64,
        /// How many bytes were asked for.
        length: usize,
        /// Where the file ends, in bytes: its length when it was opened, or where the operating system stopped.
        file_length: u64,
    },
    /// The operating system refused a read.
    #[error("{}: reading {length} bytes at offset {offset}: {message}", path.display())]
    Read {
        /// The file.
        path: Arc<Path>,
        /// Where the read begins, in bytes from the start of the file.
        offset: u64,
        /// How many bytes were asked for.
        length: usize,
        /// The reason, to be matched on.
        kind: io::ErrorKind,
        /// The reason, in the words of the operating system.
        message: Arc<str>,
    },
    /// The operating system refused a write, or took only a part of it.
    #[error("{}: writing {length} bytes at offset {offset}: {message}", path.display())]
    Write {
        /// The file.
        path: Arc<Path>,
        /// Where the write begins, in bytes from the start of the file.
        offset: u64,
        /// How many bytes were to be written.
        length: usize,
        /// The reason, to be matched on; `StorageFull` where the disk is.
        kind: io::ErrorKind,
        /// The reason, in the words of the operating system.
        message: Arc<str>,
    },
    /// The operating system refused to change a name, or to make something durable.
    #[error("{}: {action}: {message}", path.display())]
    Refused {
        /// The file or folder; the old path of one that was to be renamed.
        path: Arc<Path>,
        /// What was to be done with it.
        action: DiskAction,
        /// The reason, to be matched on.
        kind: io::ErrorKind,
        /// The reason, in the words of the operating system.
        message: Arc<str>,
    },
    /// The file could not be opened.
    #[error("{}: opening: {message}", path.display())]
    Open {
        /// The file.
        path: Arc<Path>,
        /// The reason, to be matched on.
        kind: io::ErrorKind,
        /// The reason, in the words of the operating system.
        message: Arc<str>,
    },
    /// The folder could not be listed.
    #[error("{}: listing the folder: {message}", path.display())]
    List {
        /// The folder.
        path: Arc<Path>,
        /// The reason, to be matched on.
        kind: io::ErrorKind,
        /// The reason, in the words of the operating system.
        message: Arc<str>,
    },
}

impl IoError {
    /// The file or folder the error is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::UnexpectedEnd { path, .. }
            | Self::Read { path, .. }
            | Self::Write { path, .. }
            | Self::Refused { path, .. }
            | Self::Open { path, .. }
            | Self::List { path, .. } => path,
        }
    }

    /// The reason as the standard library names it.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::UnexpectedEnd { .. } => io::ErrorKind::UnexpectedEof,
            Self::Read { kind, .. }
            | Self::Write { kind, .. }
            | Self::Refused { kind, .. }
            | Self::Open { kind, .. }
            | Self::List { kind, .. } => *kind,
        }
    }

    pub(crate) fn read(path: &Path, offset: u64, length: usize, error: &io::Error) -> Self {
        Self::Read {
            path: path.into(),
            offset,
            length,
            kind: error.kind(),
            message: error.to_string().into(),
        }
    }

    pub(crate) fn write(path: &Path, offset: u64, length: usize, error: &io::Error) -> Self {
        Self::Write {
            path: path.into(),
            offset,
            length,
            kind: error.kind(),
            message: error.to_string().into(),
        }
    }

    pub(crate) fn refused(path: &Path, action: DiskAction, error: &io::Error) -> Self {
        Self::Refused { path: path.into(), action, kind: error.kind(), message: error.to_string().into() }
    }

    pub(crate) fn open(path: &Path, error: &io::Error) -> Self {
        Self::Open { path: path.into(), kind: error.kind(), message: error.to_string().into() }
    }

    pub(crate) fn list(path: &Path, error: &io::Error) -> Self {
        Self::List { path: path.into(), kind: error.kind(), message: error.to_string().into() }
    }
}

impl From<IoError> for io::Error {
    fn from(error: IoError) -> Self {
        Self::new(error.kind(), error)
    }
}

/// What else than reading and writing a disk is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskAction {
    /// A new file.
    Create,
    /// Making what was written to a file durable.
    Sync,
    /// Giving a file this path instead of its own.
    RenameTo(Arc<Path>),
    /// Taking the name of a file away.
    Remove,
    /// A new folder, and those that it lies in.
    CreateFolder,
    /// Taking an empty folder away.
    RemoveFolder,
    /// Making the names in a folder durable.
    SyncFolder,
}

impl fmt::Display for DiskAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create => f.write_str("creating"),
            Self::Sync => f.write_str("syncing"),
            Self::RenameTo(to) => write!(f, "renaming to {}", to.display()),
            Self::Remove => f.write_str("removing"),
            Self::CreateFolder => f.write_str("creating the folder"),
            Self::RemoveFolder => f.write_str("removing the folder"),
            Self::SyncFolder => f.write_str("syncing the folder"),
        }
    }
}

/// A shard could not be started, or not be run to its end.
#[derive(Debug, Error)]
pub enum RuntimeError {
    /// The operating system gave no thread.
    #[error("starting the thread of a shard")]
    Thread(#[source] io::Error),
    /// Neither io_uring nor the polling driver could be set up.
    #[error("setting up the I/O driver of a shard")]
    Driver(#[source] io::Error),
    /// The thread could not be pinned: the CPU does not exist, or this process may not run on it.
    #[error("pinning a shard to CPU {cpu}")]
    Pin {
        /// The CPU asked for, counted from 0.
        cpu: usize,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// It cannot be told which CPUs this process may use.
    #[error("looking for the CPUs that shards may be pinned to")]
    Cpus(#[source] io::Error),
    /// A simulated shard was started from within a simulated shard of the same thread.
    #[error("a simulated shard is already running on this thread")]
    Nested,
    /// Every future of a simulated shard waits for something that nothing is left to bring about.
    #[error(
        "the simulated shard with seed {seed} is deadlocked: all its futures wait, and no request is under way"
    )]
    Deadlock {
        /// The seed that repeats it.
        seed: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_the_file_and_the_offset() {
        let path = Path::new("/data/ks/t/me-1-big-Data.db");
        let end = IoError::UnexpectedEnd { path: path.into(), offset: 4096, length: 512, file_length: 4200 };
        assert_eq!(
            end.to_string(),
            "/data/ks/t/me-1-big-Data.db: 512 bytes at offset 4096 reach past the end of the file at 4200"
        );
        let read = IoError::read(path, 7, 3, &io::Error::other("the disk is gone"));
        assert_eq!(
            read.to_string(),
            "/data/ks/t/me-1-big-Data.db: reading 3 bytes at offset 7: the disk is gone"
        );
        assert_eq!(io::Error::from(end).kind(), io::ErrorKind::UnexpectedEof);
        let write = IoError::write(path, 4096, 512, &io::Error::other("the disk is gone"));
        assert_eq!(
            write.to_string(),
            "/data/ks/t/me-1-big-Data.db: writing 512 bytes at offset 4096: the disk is gone"
        );
    }

    #[test]
    fn a_full_disk_keeps_its_kind() {
        let full = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        assert_eq!(IoError::write(Path::new("/a"), 0, 1, &full).kind(), io::ErrorKind::StorageFull);
        let refused = IoError::refused(Path::new("/a"), DiskAction::Create, &full);
        assert_eq!(io::Error::from(refused).kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn display_says_what_was_to_be_done() {
        let error = io::Error::other("the disk is gone");
        let words = |action| IoError::refused(Path::new("/a"), action, &error).to_string();
        assert_eq!(words(DiskAction::Sync), "/a: syncing: the disk is gone");
        let rename = DiskAction::RenameTo(Path::new("/b").into());
        assert_eq!(words(rename), "/a: renaming to /b: the disk is gone");
    }

    #[test]
    fn errors_may_leave_their_shard() {
        fn is_send<T: Send + Sync + 'static>() {}
        is_send::<IoError>();
        is_send::<RuntimeError>();
    }
}
