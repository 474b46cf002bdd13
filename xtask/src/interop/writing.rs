//! SSTables as Siltstone writes them: each original is rewritten in a version, by the command itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::command::checked;

use crate::Result;
use crate::workspace::dump;

/// How the SSTables come about that are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writing<'a> {
    /// The originals are taken as they are: this checks the checks.
    AsIs,
    /// `siltstone sstable convert --to` a version.
    To(&'a str),
}

impl Writing<'_> {
    /// A name for messages, which a keyspace can have as well.
    pub fn name(&self) -> &str {
        match self {
            Writing::AsIs => "as_is",
            Writing::To(version) => version,
        }
    }

    /// Writes an SSTable anew into a folder, which is made; its Data.db.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn written_by_us(&self, siltstone: &Path, original: &Path, folder: &Path) -> Result<PathBuf> {
        fs::create_dir_all(folder)?;
        match self {
            Writing::AsIs => copy(original, folder),
            Writing::To(version) => {
                let mut convert = Command::new(siltstone);
                convert.args(["sstable", "convert", "--to", version]).arg(original).arg(folder);
                checked(&mut convert)?;
                data_in(folder)
            }
        }
    }
}

/// Writes our dump of an SSTable to a file.
///
/// # Errors
/// If it cannot be dumped.
pub fn dump_to(siltstone: &Path, data: &Path, output: &Path) -> Result<()> {
    let dumped = checked(dump(siltstone, data).stdout(std::process::Stdio::piped()))?;
    Ok(fs::write(output, dumped.stdout)?)
}

/// Copies all components of an SSTable; the Data.db of the copy.
///
/// # Errors
/// If one cannot be copied.
pub fn copy(data: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let name = data.file_name().and_then(|name| name.to_str()).ok_or("an SSTable has a name")?;
    let prefix = name.strip_suffix("Data.db").ok_or_else(|| format!("{name} is no Data.db"))?;
    let parent = data.parent().ok_or("a file is in a folder")?;
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|other| other.starts_with(prefix)) {
            // The content alone: a fixture may be read-only, and Cassandra changes Statistics.db as it imports.
            fs::write(folder.join(entry.file_name()), fs::read(entry.path())?)?;
        }
    }
    Ok(folder.join(name))
}

fn data_in(folder: &Path) -> Result<PathBuf> {
    let mut data = data_files(folder)?;
    match data.len() {
        1 => Ok(data.remove(0)),
        count => Err(format!("{count} SSTables were written to {}", folder.display()).into()),
    }
}

/// The Data.db files in a folder.
///
/// # Errors
/// If it cannot be listed.
pub fn data_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut data = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.as_os_str().as_encoded_bytes().ends_with(b"-Data.db") {
            data.push(path);
        }
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_components_are_copied() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["me-1-big-Data.db", "me-1-big-TOC.txt", "me-11-big-Data.db"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let to = folder.path().join("a/b");
        let original = folder.path().join("me-1-big-Data.db");
        let copy = Writing::AsIs.written_by_us(Path::new("none"), &original, &to).unwrap();
        assert_eq!(data_in(&to).unwrap(), copy);
        assert_eq!(fs::read_dir(&to).unwrap().count(), 2);
        assert!(data_in(folder.path()).unwrap_err().to_string().starts_with("2 SSTables"));
    }
}
