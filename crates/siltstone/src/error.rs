//! What can go wrong above the SSTables themselves.

use std::error::Error as _;
use std::io;
use std::path::{Path, PathBuf};

use model::types::TypeError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was asked for cannot be meant.
    #[error("{0}")]
    Usage(String),
    /// An SSTable could not be opened or read.
    #[error(transparent)]
    SSTable(#[from] sstable::Error),
    /// The bytes of a value are not of its type.
    #[error("{}: corrupt {place}: {value}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Where in it, in words.
        place: String,
        /// What is wrong.
        value: Box<ValueError>,
    },
    /// Text that was given is not what it should be.
    #[error("{}:{place}: {what}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// Where in it: the line, and a column behind a colon where one is known. Both count from 1.
        place: String,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// Something is wrong with a file, or with several together, that is not corrupt bytes.
    #[error("{}: {what}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A verification found damage, which has been told.
    #[error("{damaged} of {of} SSTables are damaged or cannot be read")]
    NotSound {
        /// How many.
        damaged: usize,
        /// Of how many that were verified.
        of: usize,
    },
    /// The shard could not be started.
    #[error(transparent)]
    Runtime(#[from] runtime::RuntimeError),
    /// A table could not be read or written.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// The database is closed, or can no longer be used.
    #[error("{0}")]
    Closed(String),
    /// The output could not be written.
    #[error("the output cannot be written: {0}")]
    Output(#[from] io::Error),
}

#[doc(hidden)]
/// What is wrong with a line of JSON, and in which column; of which line it is, is told elsewhere.
pub fn json_words(error: &serde_json::Error) -> String {
    let (text, column) = (error.to_string(), error.column());
    let words = text.strip_suffix(&format!(" at line {} column {column}", error.line()));
    words.map_or(text.clone(), |words| format!("{words} (column {column})"))
}

/// A value whose bytes are not of its type.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct ValueError {
    /// Which value: the name of its column, or of a part of the key.
    pub what: String,
    /// What is wrong with the bytes.
    pub source: TypeError,
}

impl Error {
    /// Something is wrong with a file.
    pub fn file(path: &Path, what: impl Into<String>) -> Error {
        Error::File { path: path.to_path_buf(), what: what.into() }
    }

    /// Two SSTables that cannot be merged.
    pub fn merge(path: &Path, other: &Path, why: &str) -> Error {
        Error::file(path, format!("it cannot be merged with {}: {why}", other.display()))
    }

    /// Whether the reader of the output has gone away: no error, but an end.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Error::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What it says, and behind it why: what commands tell of it.
    pub fn in_words(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let why = error.to_string();
            // Some say it themselves.
            if !text.ends_with(&why) {
                text = format!("{text}: {why}");
            }
            cause = error.source();
        }
        text
    }

    /// What a command that ends with this error exits with: 2 where the arguments are wrong, 1 otherwise.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            _ => 1,
        }
    }
}

/// The result of all that the library does.
pub type Result<T> = std::result::Result<T, Error>;

#[cfg(test)]
mod tests {
    use runtime::RuntimeError;

    use super::*;

    #[test]
    fn a_cause_is_told_once() {
        let cause = || io::Error::other("no room");
        let thread = Error::Runtime(RuntimeError::Thread(cause())).in_words();
        assert_eq!(thread, "starting the thread of a shard: no room");
        assert_eq!(Error::Output(cause()).in_words(), "the output cannot be written: no room");
        assert_eq!(Error::Usage("that is nothing".to_owned()).in_words(), "that is nothing");
    }
}
