//! What a verification found: problems, and notes that are none.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::component::Descriptor;
use crate::{Error, Result};

/// How many findings of a kind are kept; the others are only counted.
const MOST_LISTED: usize = 1000;

/// Something that was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The file.
    pub path: PathBuf,
    /// Bytes from the start of the file, for Data.db of the uncompressed data; `None` where it is about
    /// the file as a whole.
    pub offset: Option<u64>,
    /// What was found there.
    pub what: String,
}

/// Findings of a kind. Memory stays bounded however many there are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Findings {
    listed: Vec<Problem>,
    left_out: u64,
}

/// What a verification found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// The SSTable.
    pub descriptor: Descriptor,
    /// What is wrong. An SSTable without problems is sound.
    pub problems: Findings,
    /// What is unusual, or could not be checked because a component that may be missing is.
    pub notes: Findings,
    /// Partitions that were read, at least their heads.
    pub partitions: u64,
    /// Partitions that the index knows and that were not read, because the data is damaged there.
    pub unread_partitions: u64,
    /// Clustered rows.
    pub rows: u64,
    /// Static rows with something in them.
    pub static_rows: u64,
    /// Range tombstone markers.
    pub range_tombstones: u64,
    /// Cells, each element of a collection counted.
    pub cells: u64,
    /// Bytes of Data.db, uncompressed.
    pub data_bytes: u64,
    /// Bytes of Data.db on disk.
    pub file_bytes: u64,
}

impl Findings {
    /// The first thousand.
    pub fn listed(&self) -> &[Problem] {
        &self.listed
    }

    /// How many there are besides.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    fn push(&mut self, problem: Problem) {
        if self.listed.len() < MOST_LISTED { self.listed.push(problem) } else { self.left_out += 1 }
    }
}

impl Report {
    pub(super) fn new(descriptor: Descriptor) -> Report {
        Report {
            descriptor,
            problems: Findings::default(),
            notes: Findings::default(),
            partitions: 0,
            unread_partitions: 0,
            rows: 0,
            static_rows: 0,
            range_tombstones: 0,
            cells: 0,
            data_bytes: 0,
            file_bytes: 0,
        }
    }

    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn wrong(&mut self, path: &Path, offset: u64, what: impl Into<String>) {
        self.problems.push(Problem { path: path.to_path_buf(), offset: Some(offset), what: what.into() });
    }

    pub(super) fn wrong_file(&mut self, path: &Path, what: impl Into<String>) {
        self.problems.push(Problem { path: path.to_path_buf(), offset: None, what: what.into() });
    }

    pub(super) fn note(&mut self, path: &Path, offset: Option<u64>, what: impl Into<String>) {
        self.notes.push(Problem { path: path.to_path_buf(), offset, what: what.into() });
    }

    /// Adds an error, unless what is wrong at its place has been said.
    pub(super) fn error(&mut self, error: Error) {
        let problem = Problem::from(error);
        let is_place = |other: &Problem| problem.offset.is_some() && other.offset == problem.offset;
        let known =
            |other: &Problem| other.path == problem.path && (is_place(other) || other.what == problem.what);
        if !self.problems.listed.iter().any(known) {
            self.problems.push(problem);
        }
    }

    /// What was read, or `None` with its error added. What is not read by this library at all is an
    /// error of the verification itself.
    pub(super) fn take<T>(&mut self, read: Result<T>) -> Result<Option<T>> {
        match read {
            Ok(read) => Ok(Some(read)),
            Err(error @ Error::Unsupported { .. }) => Err(error),
            Err(error) => {
                self.error(error);
                Ok(None)
            }
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match self.offset {
            Some(offset) => write!(f, "at offset {offset}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        match error {
            Error::Corrupt { path, offset, what } => Problem { path, offset: Some(offset), what },
            Error::Unsupported { path, what }
            | Error::Missing { path, what }
            | Error::Unfit { path, what } => Problem { path, offset: None, what },
            Error::Io(error) => {
                let (path, text) = (error.path().to_path_buf(), error.to_string());
                let what = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text).to_owned();
                Problem { path, offset: None, what }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        Report::new(Descriptor::parse(Path::new("t/me-1-big-Data.db")).unwrap())
    }

    #[test]
    fn findings_stay_bounded() {
        let mut report = report();
        (0..5000).for_each(|at| report.wrong(Path::new("Data.db"), at, "odd"));
        assert_eq!((report.problems.listed().len(), report.problems.left_out()), (1000, 4000));
        assert!(!report.is_sound());
    }

    #[test]
    fn a_place_is_told_once() {
        let mut report = report();
        report.wrong(Path::new("Data.db"), 7, "a checksum is off");
        report.error(Error::corrupt(Path::new("Data.db"), 7, "the same"));
        report.error(Error::corrupt(Path::new("Data.db"), 8, "another"));
        let texts: Vec<String> = report.problems.listed().iter().map(Problem::to_string).collect();
        assert_eq!(texts, ["Data.db: at offset 7: a checksum is off", "Data.db: at offset 8: another"]);
    }
}
