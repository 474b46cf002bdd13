//! What can be wrong with an SSTable: each error names the file, and the place in it where there is one.

use std::path::{Path, PathBuf};

use runtime::IoError;

/// Why an SSTable could not be opened or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// The bytes contradict the format or their checksum.
    #[error("{}: corrupt at offset {offset}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Bytes from the start of the file; for compressed data, from the start of the uncompressed data.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The file is sound, but nothing that this library reads.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What is not supported.
        what: String,
    },
    /// A component without which nothing can be read is not there.
    #[error("{}: {what}", path.display())]
    Missing {
        /// The file that is missing.
        path: PathBuf,
        /// Why it is needed.
        what: String,
    },
    /// What is to be written has no place in the format or the version that was chosen.
    #[error("{}: {what}", path.display())]
    Unfit {
        /// The file that was to be written.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl Error {
    /// The file that it is about; `None` where the operating system refused.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Error::Corrupt { path, .. }
            | Error::Unsupported { path, .. }
            | Error::Missing { path, .. }
            | Error::Unfit { path, .. } => Some(path),
            Error::Io(_) => None,
        }
    }

    /// Bytes that contradict the format.
    pub fn corrupt(path: &Path, offset: u64, what: impl Into<String>) -> Error {
        Error::Corrupt { path: path.to_path_buf(), offset, what: what.into() }
    }

    /// The same error of a file without which all is read as well, only slower.
    pub(crate) fn of_spare(self) -> Error {
        match self {
            Error::Corrupt { path, offset, what } => {
                let what = format!("{what}. All can be read without this file: take it away");
                Error::Corrupt { path, offset, what }
            }
            other => other,
        }
    }

    /// Something this library does not read.
    pub fn unsupported(path: &Path, what: impl Into<String>) -> Error {
        Error::Unsupported { path: path.to_path_buf(), what: what.into() }
    }

    /// Something that the chosen version cannot hold.
    pub fn unfit(path: &Path, what: impl Into<String>) -> Error {
        Error::Unfit { path: path.to_path_buf(), what: what.into() }
    }

    /// A component that is not there.
    pub fn missing(path: &Path, what: impl Into<String>) -> Error {
        Error::Missing { path: path.to_path_buf(), what: what.into() }
    }
}

/// The result of all that reads SSTables.
pub type Result<T> = std::result::Result<T, Error>;
