//! A folder of new SSTables, which one writer at a time has to itself.
//!
//! Each writer first removes what writers that were cut off have left there, which is what another one that is at work has as well. So
//! those that come later wait. A lock is the operating system's, on the folder itself: it leaves no file, and goes with its process.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use siltstone::{Error, Result};

use super::note;

/// The folder, until this is dropped. One that was made for it goes with it if nothing came into it.
pub(super) struct Claim {
    made: Option<PathBuf>,
    _lock: File,
}

impl Claim {
    /// Waits for the folder, which is made where it is missing.
    ///
    /// # Errors
    /// If a database is open there, whose SSTables no other program adds to; what the operating system says.
    pub(super) fn of(folder: &Path) -> Result<Claim> {
        let io = |error: io::Error| Error::file(folder, error.to_string());
        check_no_database(folder)?;
        loop {
            let made = (!folder.exists()).then(|| folder.to_path_buf());
            make_durably(folder).map_err(io)?;
            let lock = File::open(folder).map_err(io)?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    note(&format!(
                        "{}: another writer is at work there, which is waited for",
                        folder.display()
                    ));
                    lock.lock().map_err(io)?;
                }
                // A file system without locks.
                Err(TryLockError::Error(_)) => return Ok(Claim { made, _lock: lock }),
            }
            check_no_database(folder)?;
            // The one that was waited for may have removed its folder.
            if is_at(&lock, folder) {
                return Ok(Claim { made, _lock: lock });
            }
        }
    }
}

/// Whether the open folder is the one that has this path now.
fn is_at(open: &File, path: &Path) -> bool {
    let place = |facts: io::Result<fs::Metadata>| facts.map(|facts| (facts.dev(), facts.ino())).ok();
    let there = place(fs::metadata(path));
    there.is_some() && there == place(open.metadata())
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            // That is refused where it has files.
            drop(fs::remove_dir(made));
        }
    }
}

/// Makes a folder and all that it lies in.
fn make_durably(folder: &Path) -> io::Result<()> {
    let folder = std::path::absolute(folder)?;
    let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.is_dir()).collect();
    fs::create_dir_all(&folder)?;
    let mut parents = missing.iter().filter_map(|folder| folder.parent());
    parents.try_for_each(|parent| File::open(parent)?.sync_all())
}

/// A database locks a file in its own folder, of which this one may be that of a table: `data/keyspace/table`, or the table alone.
fn check_no_database(folder: &Path) -> Result<()> {
    let folder = resolved(folder).map_err(|error| Error::file(folder, error.to_string()))?;
    let of_database = folder.ancestors().nth(3).map(|own| own.join("lock"));
    for lock in of_database.into_iter().chain([folder.join(".siltstone").join("lock")]) {
        let is_taken = File::open(lock)
            .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)));
        if is_taken {
            let what = "it belongs to a database that is open: write to another folder, and add the files while it is closed";
            return Err(Error::file(&folder, what));
        }
    }
    Ok(())
}

/// The path without links, as far as it is there.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let there = path.ancestors().find_map(|folder| Some((folder.canonicalize().ok()?, folder)));
    let Some((resolved, there)) = there else { return Ok(path) };
    Ok(path.strip_prefix(there).map_or(path.clone(), |rest| resolved.join(rest)))
}
