//! Room for a dataset that is written: only what was written as one before, be it whole or not, makes room for it.

use std::fs;
use std::path::Path;

use runtime::{Disk, IoClass};
use siltstone::{Error, Result};
use tempfile::TempDir;

/// Beside a dataset until all of it is there.
const BEGUN: &str = "begun";

/// An empty folder, in the place of a dataset that was there, `is_dataset`, or of one that was begun.
///
/// # Errors
/// A folder that holds something else; what the operating system says.
pub(crate) fn begin(folder: &Path, is_dataset: bool) -> Result<()> {
    let refused = |error: std::io::Error| Error::file(folder, error.to_string());
    if is_dataset || folder.join(BEGUN).exists() {
        fs::remove_dir_all(folder).map_err(refused)?;
    }
    fs::create_dir_all(folder).map_err(refused)?;
    if fs::read_dir(folder).map_err(refused)?.next().is_some() {
        let what = "something is here that is no dataset: remove it, or choose another --data-directory";
        return Err(Error::file(folder, what));
    }
    fs::write(folder.join(BEGUN), "").map_err(refused)
}

/// A folder that goes with its handle, where the operating system wants such.
///
/// # Errors
/// What the operating system says, with where that is.
pub(crate) fn temporary() -> Result<TempDir> {
    tempfile::tempdir().map_err(|error| Error::file(&std::env::temp_dir(), error.to_string()))
}

/// Says so where reads of a folder's files go through the page cache, though the shard is to read past it: they may tell of memory then.
/// A folder that cannot be written to is not asked.
///
/// # Errors
/// What the operating system says.
pub(crate) async fn tell_if_buffered(disk: &Disk, folder: &Path) -> Result<()> {
    let Ok(probe) = tempfile::NamedTempFile::new_in(folder) else { return Ok(()) };
    let file = disk.open(probe.path(), IoClass::default()).await.map_err(sstable::Error::from)?;
    if file.alignment() == 1 {
        let folder = folder.display();
        eprintln!(
            "{folder}: requests go through the page cache of the operating system: there is no direct I/O here"
        );
    }
    Ok(())
}

/// All of the dataset is there.
///
/// # Errors
/// What the operating system says.
pub(crate) fn end(folder: &Path) -> Result<()> {
    fs::remove_file(folder.join(BEGUN)).map_err(|error| Error::file(folder, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_dataset_makes_room() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("letter.txt");
        fs::write(&file, "dear").unwrap();
        assert!(begin(folder.path(), false).is_err());
        assert!(file.exists());
    }

    #[test]
    fn one_that_was_begun_is_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("set");
        begin(&folder, false).unwrap();
        fs::write(folder.join("half"), "of it").unwrap();
        begin(&folder, false).unwrap();
        assert!(!folder.join("half").exists());
        end(&folder).unwrap();
        fs::write(folder.join("whole"), "").unwrap();
        assert!(begin(&folder, false).is_err(), "it might be anything");
        begin(&folder, true).unwrap();
        assert!(!folder.join("whole").exists());
    }
}
