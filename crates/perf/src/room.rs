//! Room for a dataset that is written: only what was written as one before, be it whole or not, makes room for it.

use std::fs::{self, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runtime::{Disk, IoClass};
use siltstone::{Error, Result};
use sstable::component::Descriptor;
use tempfile::TempDir;

/// Beside a dataset until all of it is there.
const BEGUN: &str = "begun";

/// Of a temporary folder that somebody uses the file that is locked.
const IN_USE: &str = "in-use";

/// How names of temporary folders begin.
const TEMPORARY: &str = "siltstone-perf-";

/// A dataset that is written. Nobody else writes it meanwhile.
#[derive(Debug)]
#[must_use]
pub(crate) struct Begun<'a> {
    folder: &'a Path,
    /// Locked until it is closed, which the end of the process does too.
    _locked: File,
}

/// An empty folder, in the place of a dataset that was there, which has a file of that name, or of one that was begun.
///
/// # Errors
/// A folder that holds something else; a dataset that is written or read at this moment; what the operating system says.
pub(crate) fn begin<'a>(folder: &'a Path, description: &str) -> Result<Begun<'a>> {
    let refused = |error: std::io::Error| Error::file(folder, error.to_string());
    fs::create_dir_all(folder).map_err(refused)?;
    files_of_dataset(folder, description)?;
    // There first: what is cut off here is one that was begun.
    let begun = File::create(folder.join(BEGUN)).map_err(refused)?;
    alone(&begun, folder)?;
    // Whoever had it before has removed it with its end.
    if !is_same_file(&begun, &folder.join(BEGUN)) {
        return Err(in_use(folder));
    }
    // No reader comes to a dataset without its description.
    let described = folder.join(description);
    if let Ok(file) = File::open(&described) {
        alone(&file, folder)?;
        fs::remove_file(&described).map_err(refused)?;
    }
    for file in files_of_dataset(folder, description)? {
        fs::remove_file(file).map_err(refused)?;
    }
    Ok(Begun { folder, _locked: begun })
}

/// That there is room for a dataset in a folder, or none yet: nothing is changed.
///
/// # Errors
/// A folder that holds something else; what the operating system says.
pub(crate) fn check(folder: &Path, description: &str) -> Result<()> {
    match folder.try_exists() {
        Ok(false) => Ok(()),
        _ => files_of_dataset(folder, description).map(drop),
    }
}

/// The files of a dataset, but for the one that says that it was begun.
fn files_of_dataset(folder: &Path, description: &str) -> Result<Vec<PathBuf>> {
    let refused = |error: std::io::Error| Error::file(folder, error.to_string());
    let is_dataset = folder.join(description).exists() || folder.join(BEGUN).exists();
    let entries: Vec<fs::DirEntry> = fs::read_dir(folder).and_then(Iterator::collect).map_err(refused)?;
    let is_of_dataset = |entry: &fs::DirEntry| {
        let (name, path) = (entry.file_name(), entry.path());
        // What is not whole yet has one more name.
        let component =
            if path.extension().is_some_and(|is| is == "tmp") { path.with_extension("") } else { path };
        is_dataset
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && (name == description || name == BEGUN || Descriptor::parse(&component).is_ok())
    };
    if let Some(other) = entries.iter().find(|entry| !is_of_dataset(entry)) {
        let what = "this is no part of a dataset: remove it, or choose another --data-directory";
        return Err(Error::file(&other.path(), what));
    }
    let others = entries.iter().filter(|entry| entry.file_name() != BEGUN);
    Ok(others.map(fs::DirEntry::path).collect())
}

impl Begun<'_> {
    /// All of the dataset is there.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn end(self) -> Result<()> {
        fs::remove_file(self.folder.join(BEGUN)).map_err(|error| Error::file(self.folder, error.to_string()))
    }
}

/// The file that describes a dataset, which is not written anew as long as somebody has it. `None` where there is none, or files cannot be
/// locked.
///
/// # Errors
/// A dataset that is written at this moment.
pub(crate) fn read(folder: &Path, description: &str) -> Result<Option<File>> {
    let shared = |name: &str| match File::open(folder.join(name)).map(|file| (file.try_lock_shared(), file)) {
        Ok((Ok(()), file)) => Ok(Some(file)),
        Ok((Err(TryLockError::WouldBlock), _)) => Err(in_use(folder)),
        Ok((Err(TryLockError::Error(_)), _)) | Err(_) => Ok(None),
    };
    match shared(description)? {
        None => shared(BEGUN).map(|_| None),
        file => Ok(file),
    }
}

/// Locks a file. Where files cannot be locked, that is left out.
fn alone(file: &File, folder: &Path) -> Result<()> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(in_use(folder)),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}

fn in_use(folder: &Path) -> Error {
    Error::file(folder, "somebody else writes or reads this dataset at this moment")
}

fn is_same_file(file: &File, path: &Path) -> bool {
    let (open, named) = (file.metadata(), fs::metadata(path));
    matches!((open, named), (Ok(open), Ok(named)) if (open.dev(), open.ino()) == (named.dev(), named.ino()))
}

/// A folder that goes with its handle.
pub(crate) struct Temporary {
    folder: TempDir,
    /// As long as somebody has it. It is closed with the process, however that ends. `None` where files cannot be locked: then the folder stays if
    /// the process is cut off.
    _in_use: Option<File>,
}

impl Temporary {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A folder that goes with its handle, where the operating system wants such. Those of runs that were interrupted go now.
///
/// # Errors
/// What the operating system says, with where that is.
pub(crate) fn temporary() -> Result<Temporary> {
    let all = std::env::temp_dir();
    let refused = |error: std::io::Error| Error::file(&all, error.to_string());
    for folder in fs::read_dir(&all).map_err(refused)?.flatten() {
        let is_ours = folder.file_name().to_string_lossy().starts_with(TEMPORARY);
        if is_ours && is_left(&folder.path()) {
            // That of somebody else stays.
            drop(fs::remove_dir_all(folder.path()));
        }
    }
    let folder = tempfile::Builder::new().prefix(TEMPORARY).tempdir().map_err(refused)?;
    let in_use = lock_in(folder.path()).ok();
    Ok(Temporary { folder, _in_use: in_use })
}

/// The file that says that a folder is in use, which has its name once it is locked.
fn lock_in(folder: &Path) -> std::io::Result<File> {
    let new = folder.join("new");
    let in_use = File::create(&new)?;
    in_use.try_lock()?;
    fs::rename(&new, folder.join(IN_USE))?;
    Ok(in_use)
}

/// Whether nobody uses a temporary folder any more. One that was only just made has no such file yet.
fn is_left(folder: &Path) -> bool {
    File::open(folder.join(IN_USE)).is_ok_and(|file| file.try_lock().is_ok())
}

/// Whether reads of a folder's files go through the page cache, though the shard is to read past it: they may tell of memory then, which is
/// said. One that cannot be written to is asked by a file that is there.
///
/// # Errors
/// What the operating system says.
pub(crate) async fn is_buffered(disk: &Disk, folder: &Path) -> Result<bool> {
    let probe = tempfile::NamedTempFile::new_in(folder).ok();
    let Some(path) = probe.as_ref().map(|probe| probe.path().to_owned()).or_else(|| any_file(folder)) else {
        return Ok(false);
    };
    let file = disk.open(&path, IoClass::default()).await.map_err(sstable::Error::from)?;
    let is_buffered = file.alignment() == 1;
    if is_buffered {
        let folder = folder.display();
        eprintln!(
            "{folder}: requests go through the page cache of the operating system: there is no direct I/O here"
        );
    }
    Ok(is_buffered)
}

/// A file in a folder, or in one of its folders.
fn any_file(folder: &Path) -> Option<PathBuf> {
    let entries =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let with_those_within = |path: PathBuf| if path.is_dir() { entries(&path).collect() } else { vec![path] };
    entries(folder).flat_map(with_those_within).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dataset_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("letter.txt");
        fs::write(&file, "dear").unwrap();
        assert!(begin(folder.path(), "whole").is_err());
        // Nor does one with something else beside it.
        fs::write(folder.path().join("whole"), "").unwrap();
        fs::write(folder.path().join("me-1-big-Data.db"), "rows").unwrap();
        assert!(begin(folder.path(), "whole").unwrap_err().to_string().contains("letter.txt"));
        fs::rename(&file, folder.path().join("a-big-letter.txt")).unwrap();
        assert!(begin(folder.path(), "whole").unwrap_err().to_string().contains("a-big-letter.txt"));
        fs::rename(folder.path().join("a-big-letter.txt"), &file).unwrap();
        assert!(file.exists() && folder.path().join("me-1-big-Data.db").exists());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(begin(folder.path(), "whole").is_err(), "a folder is no part of it");
        fs::remove_dir(&file).unwrap();
        drop(begin(folder.path(), "whole").unwrap());
    }

    #[test]
    fn one_that_is_written_or_read_is_not_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let refusal = || begin(folder, "whole").map(drop).unwrap_err().to_string();
        let first = begin(folder, "whole").unwrap();
        assert!(refusal().contains("at this moment"), "{}", refusal());
        assert!(read(folder, "whole").is_err(), "nor can it be read");
        fs::write(folder.join("whole"), "").unwrap();
        first.end().unwrap();
        let (reader, another) = (read(folder, "whole").unwrap(), read(folder, "whole").unwrap());
        assert!(reader.is_some() && another.is_some());
        drop(reader);
        assert!(refusal().contains("at this moment"), "{}", refusal());
        assert!(folder.join("whole").exists());
        drop(another);
        drop(begin(folder, "whole").unwrap());
    }

    #[test]
    fn one_that_was_begun_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("set");
        drop(begin(&folder, "whole").unwrap());
        fs::write(folder.join("me-1-big-Data.db.tmp"), "half of it").unwrap();
        let again = begin(&folder, "whole").unwrap();
        assert!(!folder.join("me-1-big-Data.db.tmp").exists());
        again.end().unwrap();
        fs::write(folder.join("me-1-big-Data.db"), "").unwrap();
        assert!(begin(&folder, "whole").is_err(), "it might be anything");
        fs::write(folder.join("whole"), "").unwrap();
        drop(begin(&folder, "whole").unwrap());
        assert!(!folder.join("whole").exists() && !folder.join("me-1-big-Data.db").exists());
    }

    #[test]
    fn temporary_folders_that_nobody_uses_go() {
        let used = temporary().unwrap();
        let left = tempfile::Builder::new().prefix(TEMPORARY).tempdir().unwrap();
        drop(temporary().unwrap());
        assert!(left.path().exists(), "it may have been made this moment");
        fs::write(left.path().join(IN_USE), "").unwrap();
        drop(temporary().unwrap());
        assert!(!left.path().exists() && used.path().exists());
    }
}
