//! What can go wrong in a table.

use std::path::{Path, PathBuf};

use runtime::IoError;

/// Why something could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// An SSTable.
    #[error(transparent)]
    SSTable(#[from] sstable::Error),
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The commit log could not be written once, and takes nothing more until it is opened again.
    #[error("the commit log has failed and must be opened again: {0}")]
    LogFailed(IoError),
    /// It was asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A file of the database's own whose bytes contradict its format or its checksum.
    #[error("{}: corrupt at offset {offset}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Bytes from its start.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// What is asked for makes no sense for this table.
    #[error("{0}")]
    Invalid(String),
    /// Whether SSTables took the place of others is known only once the folder is cleaned up again: until then,
    /// nothing may be written to the table, and no file of either may be removed.
    #[error("{}: it may or may not have been committed: {error}", log.display())]
    InDoubt {
        /// The log of the transaction.
        log: PathBuf,
        /// Why it could not be taken back.
        error: IoError,
    },
    /// Whether the last flush was committed is known only once the folder is cleaned up again, as when it is opened: until
    /// then nothing more of the table is flushed, and the commit log keeps it.
    #[error("{}: a flush may or may not have been committed: the table must be opened again", folder.display())]
    Unsettled {
        /// The folder of the table.
        folder: PathBuf,
    },
    /// So much is being read or written already that this must wait for too long.
    #[error("overloaded: {0}")]
    Overloaded(String),
}

impl Error {
    /// Bytes that contradict their format.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { path: path.to_path_buf(), offset, what: what.into() }
    }
}

/// The result of all that a table does.
pub type Result<T> = std::result::Result<T, Error>;
