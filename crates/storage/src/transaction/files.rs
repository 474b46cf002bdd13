//! The files of an SSTable, when they were written, and their removal.
//!
//! A log tells its SSTables from others of the same name by the time at which the last file was written. That stays
//! as long as this file does, and so it goes last, behind a sync of the folder: a removal that was cut off can be
//! told and gone on with, by us and by Cassandra.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runtime::Disk;
use sstable::component::Component;

use crate::Result;

/// Files that are still being written.
const TEMPORARY: &str = ".tmp";

/// The files of one SSTable, in any state.
#[derive(Debug)]
pub(super) struct FilesOf(Vec<FileOf>);

#[derive(Debug)]
struct FileOf {
    path: PathBuf,
    /// Which one it is, or will be.
    component: Component,
    is_temporary: bool,
    /// Milliseconds since the Unix epoch.
    modified: i64,
}

impl FilesOf {
    /// Those of a folder, listed in order as a [`Disk`] does, whose names begin like this. Of thousands of SSTables that go
    /// at once the folder is listed once.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) fn among(disk: &Disk, listed: &[PathBuf], prefix: &str) -> Result<FilesOf> {
        let first = listed.partition_point(|path| name_of(path).as_encoded_bytes() < prefix.as_bytes());
        let begins = |path: &&PathBuf| name_of(path).as_encoded_bytes().starts_with(prefix.as_bytes());
        let mut files = Vec::new();
        for path in listed[first..].iter().take_while(begins) {
            let Some(name) = name_of(path).to_str().and_then(|name| name.strip_prefix(prefix)) else {
                continue;
            };
            let stem = name.strip_suffix(TEMPORARY);
            let (component, is_temporary) = (Component::parse(stem.unwrap_or(name)), stem.is_some());
            let modified = i64::try_from(disk.modified(path)?.as_millis()).unwrap_or(i64::MAX);
            files.push(FileOf { path: path.clone(), component, is_temporary, modified });
        }
        Ok(FilesOf(files))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// When the last file was written, in milliseconds since the Unix epoch; 0 without any. Statistics.db is left
    /// out, as Cassandra changes it at any time.
    pub(super) fn update_time(&self) -> i64 {
        let counted = self.0.iter().filter(|file| file.tells_the_time());
        counted.map(|file| file.modified).max().unwrap_or(0)
    }

    /// The same with all files, as Cassandra had it before.
    pub(super) fn update_time_of_all(&self) -> i64 {
        self.0.iter().map(|file| file.modified).max().unwrap_or(0)
    }

    /// How many files there are, without those still being written.
    pub(super) fn count(&self) -> i32 {
        let count = self.0.iter().filter(|file| !file.is_temporary).count();
        i32::try_from(count).unwrap_or(i32::MAX)
    }

    /// The files in two parts: what is removed first, and what is removed last. What is written and not yet whole
    /// goes by its TOC, which says so; what is whole, by the time at which its last file was written.
    pub(super) fn in_order(self) -> [Vec<PathBuf>; 2] {
        let mut files = self.0;
        let rank = |file: &FileOf| {
            let is_toc = file.component == Component::Toc;
            (is_toc && file.is_temporary, file.tells_the_time(), seconds(file.modified), is_toc)
        };
        let last = (0..files.len()).max_by_key(|&at| rank(&files[at]));
        let last = last.map(|at| files.remove(at).path).into_iter().collect();
        // Without Data.db nobody takes the rest for an SSTable.
        files.sort_by_key(|file| (file.component != Component::Data, file.modified));
        [files.into_iter().map(|file| file.path).collect(), last]
    }
}

impl FileOf {
    /// Whether it counts for when the last file was written.
    fn tells_the_time(&self) -> bool {
        !self.is_temporary && self.component != Component::Statistics
    }
}

fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// The resolution in which such times are compared: that of the Java which Cassandra 3 ran on.
pub(super) fn seconds(millis: i64) -> i64 {
    millis / 1000
}

/// Removes the files of several SSTables; what was removed. Nothing but them may be made or removed under their names
/// at the same time.
///
/// # Errors
/// What the operating system says.
pub(super) async fn remove_all(disk: &Disk, dir: &Path, sstables: Vec<FilesOf>) -> Result<Vec<PathBuf>> {
    let mut parts = [Vec::new(), Vec::new()];
    for files in sstables {
        for (part, paths) in std::iter::zip(&mut parts, files.in_order()) {
            part.extend(paths);
        }
    }
    for paths in &parts {
        for path in paths {
            disk.remove(path).await?;
        }
        if !paths.is_empty() {
            disk.sync_dir(dir).await?;
        }
    }
    Ok(parts.concat())
}

#[cfg(test)]
mod tests {
    use runtime::{SimOptions, run_simulated};

    use super::*;

    #[test]
    fn the_files_of_an_sstable_are_no_others() {
        run_simulated(SimOptions::default(), async |shard| {
            let (disk, dir) = (shard.disk(), Path::new("/t"));
            let names = [
                "a",
                "nb-1-big",
                "nb-1-big-Data.db",
                "nb-1-big-TOC.txt.tmp",
                "nb-10-big-Data.db",
                "nb-2-big-Data.db",
                "z",
            ];
            for name in names {
                disk.as_simulated().expect("the disk is simulated").add_file(dir.join(name), Vec::new());
            }
            let listed = disk.list(dir).unwrap();
            let named = |prefix| -> Vec<PathBuf> {
                FilesOf::among(disk, &listed, prefix).unwrap().0.into_iter().map(|file| file.path).collect()
            };
            assert_eq!(
                named("nb-1-big-"),
                ["nb-1-big-Data.db", "nb-1-big-TOC.txt.tmp"].map(|name| dir.join(name))
            );
            assert_eq!(named("nb-2-big-"), [dir.join("nb-2-big-Data.db")]);
            assert_eq!(FilesOf::among(disk, &listed, "nb-1-big-").unwrap().count(), 1);
            assert!(named("nb-3-big-").is_empty() && named("zz").is_empty());
        })
        .unwrap();
    }
}
