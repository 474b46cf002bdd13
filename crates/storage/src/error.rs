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
