//! A log as it is found, compared with the files that it is about.
//!
//! Everything here is as strict as Cassandra, which would rather not start than remove what is not meant:
//!
//! 1. Each line is a record with the right checksum, none stands there twice, and nothing follows COMMIT or ABORT.
//! 2. The last line may be torn, as by a power cut. Then it has not happened, provided that no old SSTable lacks a
//!    file.
//! 3. The files of an old SSTable, as far as they are there, were written when the log says: to the second, because
//!    not every Java told more. They are others otherwise, as from a backup, or were changed since.

use std::path::{Path, PathBuf};

use runtime::Disk;
use sstable::component::Component;

use super::TRANSACTION_IO;
use super::files::{FilesOf, seconds};
use super::record::{self, Record};
use crate::{Error, Result};

/// The records of a log.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    pub(super) records: Vec<Record>,
    /// What is wrong with its end.
    torn: Option<String>,
}

impl Log {
    /// Reads a log and its files, and makes sure that they may be removed as it says.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where a line is damaged; [`Error::Invalid`] where the log and the files contradict each
    /// other. What the operating system says.
    pub(super) async fn read(disk: &Disk, dir: &Path, path: &Path) -> Result<Log> {
        let log = Log::read_alone(disk, path).await?;
        let (canonical, listed) = (disk.canonical(dir)?, disk.list(dir)?);
        for record in log.records.iter().filter(|record| !record.is_last()) {
            log.check_folder(&canonical, record)?;
            if record.is_remove() {
                log.check_files(record, &FilesOf::among(disk, &listed, record::file_prefix(record.name()))?)?;
            }
        }
        Ok(log)
    }

    /// Reads a log, and does not look at the files that it is about.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where a line is damaged; what the operating system says.
    pub(super) async fn read_alone(disk: &Disk, path: &Path) -> Result<Log> {
        let file = disk.open(path, TRANSACTION_IO).await?;
        let bytes = file.read_exact_at(0, file.len() as usize).await?;
        Log::parse(path, &bytes)
    }

    /// The SSTables that go: the old ones, or the new ones.
    pub(super) fn going(&self) -> impl Iterator<Item = &Record> {
        let committed = self.is_committed();
        let goes = move |record: &&Record| if committed { record.is_remove() } else { record.is_add() };
        self.records.iter().filter(goes)
    }

    /// What the names of the files begin with of the SSTables that go, among those of the folder.
    ///
    /// # Errors
    /// [`Error::Invalid`] if new SSTables are to stay that are not there.
    pub(super) fn passed_over(&self, listed: &[PathBuf]) -> Result<Vec<String>> {
        let is_there = |prefix: &str| {
            let data = format!("{prefix}{}", Component::Data.name());
            listed.iter().any(|path| path.file_name().is_some_and(|name| *name == *data))
        };
        let added = self.records.iter().filter(|record| record.is_add() && self.is_committed());
        for prefix in added.map(|record| record::file_prefix(record.name())) {
            if !is_there(prefix) {
                return Err(self.contradiction(&format!(
                    "by it the rows of other SSTables are in {prefix}{}, which is not there",
                    Component::Data.name()
                )));
            }
        }
        Ok(self.going().map(|record| record::file_prefix(record.name()).to_owned()).collect())
    }

    /// Whether the new SSTables are to stay, and the old ones to go.
    pub(super) fn is_committed(&self) -> bool {
        self.torn.is_none() && self.records.last().is_some_and(Record::is_commit)
    }

    /// Decodes the lines; a torn end is left out.
    fn parse(path: &Path, bytes: &[u8]) -> Result<Log> {
        let mut log = Log { path: path.to_path_buf(), records: Vec::new(), torn: None };
        let mut rest = bytes;
        while !rest.is_empty() {
            let end = rest.iter().position(|&byte| byte == b'\n').map_or(rest.len(), |end| end + 1);
            let offset = (bytes.len() - rest.len()) as u64;
            let parsed = std::str::from_utf8(&rest[..end])
                .map_err(|_| "this is not UTF-8".to_owned())
                .and_then(|line| Record::parse(line.trim_end_matches(['\n', '\r'])));
            match parsed {
                Ok(record) => log.push(offset, record)?,
                Err(what) if is_torn_end(&rest[end..]) => {
                    log.torn = Some(what);
                    break;
                }
                Err(what) => return Err(Error::corrupt(path, offset, what)),
            }
            rest = &rest[end..];
        }
        Ok(log)
    }

    fn push(&mut self, offset: u64, record: Record) -> Result<()> {
        if self.records.iter().any(|known| known.is_about_the_same(&record)) {
            return Err(Error::corrupt(&self.path, offset, format!("this stands there twice: {record}")));
        }
        if let Some(last) = self.records.last().filter(|record| record.is_last()) {
            return Err(Error::corrupt(&self.path, offset, format!("nothing should follow {last}")));
        }
        self.records.push(record);
        Ok(())
    }

    /// The SSTable lies in the folder of the log, by this or a former path, or in the one of the same table on another
    /// disk, and none of its files here: the keyspace and the table, which end the path, are the same.
    fn check_folder(&self, canonical: &Path, record: &Record) -> Result<()> {
        let dir = Path::new(record.name()).parent().unwrap_or(Path::new(""));
        let of_table = |dir: &Path| dir.iter().rev().take(2).map(ToOwned::to_owned).collect::<Vec<_>>();
        if of_table(dir) == of_table(canonical) {
            return Ok(());
        }
        Err(self.contradiction(&format!(
            "it is about the table in {}, and lies in {}: if it belongs to neither, remove it",
            dir.display(),
            canonical.display()
        )))
    }

    /// Rules 2 and 3.
    fn check_files(&self, record: &Record, files: &FilesOf) -> Result<()> {
        let (name, expected) = (record::file_prefix(record.name()), record.update_time());
        let found = files.update_time();
        let is_meant = |found: i64| seconds(found) == seconds(expected);
        if found > 0 && !is_meant(found) && !is_meant(files.update_time_of_all()) {
            return Err(self.contradiction(&format!(
                "the last of {name}* was written {found} ms after the epoch and not {expected}: they are not the files \
                 that it removes; if they are to stay, remove it"
            )));
        }
        if let Some(what) = &self.torn
            && files.count() < record.files()
        {
            return Err(self.contradiction(&format!(
                "its last line is damaged ({what}), and of {} files {name}* there are {}: whether they are to go \
                 cannot be told",
                record.files(),
                files.count()
            )));
        }
        Ok(())
    }

    fn contradiction(&self, what: &str) -> Error {
        Error::Invalid(format!("{}: {what}", self.path.display()))
    }
}

/// Whether what follows a damaged line may be of the same write: that of a line, which has no other record in it.
/// What was to be written there before the power went may have become anything.
fn is_torn_end(rest: &[u8]) -> bool {
    let mut lines = rest.split(|&byte| byte == b'\n');
    !lines.any(|line| record::looks_like_one(&String::from_utf8_lossy(line)))
}

#[cfg(test)]
mod tests;
