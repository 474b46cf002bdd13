//! What is done with the logs of a folder before it is used: each ends as its last line says.
//!
//! To be called before any SSTable of the folder is looked at, and by one process only. It may be cut off, and is
//! then done again.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runtime::{Disk, IoError};

use super::TRANSACTION_IO;
use super::files::{FilesOf, remove_all};
use super::log::Log;
use super::record::{self, Record};
use crate::{Error, Result};

/// The end of a log's name.
const EXTENSION: &str = ".log";

/// What stands behind that while a log is being written anew.
const REPLACEMENT: &str = ".tmp";

/// A change that somebody did not bring to its end, and that was brought to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CleanedUp {
    /// Its log, which is no more.
    pub log: PathBuf,
    /// Whether its new SSTables have taken the place of the old ones, or none of it has happened.
    pub committed: bool,
    /// The files that were removed: of the old SSTables, or of the new ones.
    pub removed: Vec<PathBuf>,
}

/// Brings all changes to their end that were under way in a folder when its process ended, ours or Cassandra's.
///
/// # Errors
/// [`crate::Error::Corrupt`] where a log is damaged and [`crate::Error::Invalid`] where it does not fit the files
/// that it is about, as if these were brought back from a backup. Nothing that this log is about is removed then, and
/// somebody has to look. What the operating system says.
pub async fn clean_up(disk: &Disk, dir: &Path) -> Result<Vec<CleanedUp>> {
    let paths = disk.list(dir)?;
    for path in paths.iter().filter(|path| is_replacement(path)) {
        disk.remove(path).await?;
    }
    let logs: Vec<&PathBuf> = paths.iter().filter(|path| is_log(path)).collect();
    if !logs.is_empty() {
        // What was removed before the crash must not be seen now and be gone after another one.
        disk.sync_dir(dir).await?;
    }
    let mut done = Vec::new();
    for path in logs {
        let log = Log::read(disk, dir, path).await?;
        let committed = log.is_committed();
        if committed {
            // Its end may have been read before it was durable. The old SSTables do not go before it is.
            replace_log(disk, dir, path, &log.records).await?;
        }
        let records: Vec<Record> = log.going().cloned().collect();
        done.push(CleanedUp {
            log: path.clone(),
            committed,
            removed: finish(disk, dir, path, &records).await?,
        });
    }
    Ok(done)
}

/// What of the SSTables of a folder does not count, by one of its logs.
#[derive(Debug)]
pub struct PassedOver {
    /// The log.
    pub log: PathBuf,
    /// What the names of the files of those SSTables begin with, or why that cannot be told: the log is damaged, or new SSTables are not there which it
    /// says to be whole, as in a copy that was made meanwhile.
    pub prefixes: Result<Vec<String>>,
}

/// What [`clean_up`] would remove of a folder, in which nothing is changed. Whether files are still as they were when their log was written does not
/// matter, as it would not for a copy.
///
/// # Errors
/// What the operating system says.
pub async fn passed_over(disk: &Disk, dir: &Path) -> Result<Vec<PassedOver>> {
    let listed = disk.list(dir)?;
    let mut all = Vec::new();
    for path in listed.iter().filter(|path| is_log(path)) {
        let prefixes = match Log::read_alone(disk, path).await {
            // It has ended meanwhile.
            Err(Error::Io(error)) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => Err(error),
            Ok(log) => log.passed_over(&listed),
        };
        all.push(PassedOver { log: path.clone(), prefixes });
    }
    Ok(all)
}

/// Removes the files of these records, then the log. What was removed is returned, without the log.
///
/// # Errors
/// What the operating system says.
pub(super) async fn finish(disk: &Disk, dir: &Path, log: &Path, records: &[Record]) -> Result<Vec<PathBuf>> {
    let listed = if records.is_empty() { Vec::new() } else { disk.list(dir)? };
    let files = |record: &Record| FilesOf::among(disk, &listed, record::file_prefix(record.name()));
    let sstables = records.iter().map(files).collect::<Result<Vec<FilesOf>>>()?;
    let removed = remove_all(disk, dir, sstables).await?;
    disk.remove(log).await?;
    disk.sync_dir(dir).await?;
    Ok(removed)
}

/// Puts a log of these records in the place of one, durably.
///
/// # Errors
/// What the operating system says; which of the two is there is not known then.
pub(super) async fn replace_log(
    disk: &Disk,
    dir: &Path,
    log: &Path,
    records: &[Record],
) -> std::result::Result<(), IoError> {
    let mut path = log.as_os_str().to_owned();
    path.push(REPLACEMENT);
    let path = Path::new(&path);
    let mut file = disk.create(path, TRANSACTION_IO).await?;
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    file.append(lines.into_bytes()).await?;
    file.sync().await?;
    disk.rename(path, log).await?;
    disk.sync_dir(dir).await
}

fn is_replacement(path: &Path) -> bool {
    let stem = path.to_str().and_then(|path| path.strip_suffix(REPLACEMENT));
    stem.is_some_and(|stem| is_log(Path::new(stem)))
}

/// Whether a file has the name of a log: `nb_txn_compaction_3f5a4d70-….log`, or with the format before the version, or
/// with neither.
pub fn is_log(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let stem = name.strip_suffix(EXTENSION);
    let rest = stem.and_then(|stem| match stem.split_once("txn_")? {
        ("", rest) => Some(rest),
        (version, rest) => is_version(version.strip_suffix('_')?).then_some(rest),
    });
    rest.is_some_and(|rest| rest.contains('_'))
}

/// Two characters, maybe behind the name of a format.
fn is_version(version: &str) -> bool {
    let (format, version) = version.rsplit_once('-').unwrap_or(("big", version));
    version.chars().count() == 2 && !format.is_empty() && format.bytes().all(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_told_by_their_names() {
        let id = "3f5a4d70-1b7c-11ee-8000-000000000000";
        for name in ["nb_txn_compaction", "oa_txn_flush", "bti-da_txn_compaction", "txn_write", "nb_txn_a_b"]
        {
            assert!(is_log(Path::new(&format!("/t/{name}_{id}.log"))), "{name}");
            assert!(is_replacement(Path::new(&format!("/t/{name}_{id}.log.tmp"))), "{name}");
        }
        for name in
            ["nb-1-big-TOC.txt", "nb_txn_flush.log", "nb_txn_flush_1.log.tmp", "x_txn_flush_1.log", "a.log"]
        {
            assert!(!is_log(Path::new(name)), "{name}");
        }
    }
}
