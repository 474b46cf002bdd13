//! What changes the simulated disk or makes it durable, as a thing that can fail, wait, or be cut short.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use super::files::{Content, Files};

/// One operation, not yet done.
pub(super) enum Operation {
    Create(PathBuf, Rc<Content>),
    /// Where it is short, it takes a multiple of `unit` all the same.
    Append {
        content: Rc<Content>,
        bytes: Vec<u8>,
        unit: usize,
    },
    /// Of so many bytes: those that are appended while it is under way may be lost.
    Sync(Rc<Content>, usize),
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    CreateFolders(PathBuf),
    RemoveFolder(PathBuf),
    SyncFolder(PathBuf),
}

impl Operation {
    /// How many bytes it appends.
    pub(super) fn len(&self) -> usize {
        if let Self::Append { bytes, .. } = self { bytes.len() } else { 0 }
    }

    /// What it may append multiples of.
    pub(super) fn unit(&self) -> usize {
        if let Self::Append { unit, .. } = self { *unit } else { 1 }
    }

    /// Makes it append no more than `len` bytes.
    pub(super) fn cut(&mut self, len: usize) {
        if let Self::Append { bytes, .. } = self {
            bytes.truncate(len);
        }
    }

    /// Does it, on a disk for `capacity` bytes, at this time; how many bytes were appended.
    pub(super) fn run(self, files: &mut Files, capacity: Option<u64>, now: Duration) -> io::Result<usize> {
        match self {
            Self::Create(path, content) => {
                content.touch(now);
                files.create(path, content)?;
            }
            Self::Append { content, bytes, unit } => {
                content.touch(now);
                return append((&content, unit), &bytes, files, capacity);
            }
            Self::Sync(content, len) => content.sync(len),
            Self::Rename(from, to) => files.rename(from, to)?,
            Self::Remove(path) => files.remove(path)?,
            Self::CreateFolders(path) => files.create_folders(&path)?,
            Self::RemoveFolder(path) => files.remove_folder(path)?,
            Self::SyncFolder(path) => files.sync_folder(&path)?,
        }
        Ok(0)
    }
}

/// Appends what there is room for, in such units.
fn append(
    (content, unit): (&Content, usize),
    bytes: &[u8],
    files: &Files,
    capacity: Option<u64>,
) -> io::Result<usize> {
    let room = capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(files.used()));
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let count = if bytes.len() <= room { bytes.len() } else { room / unit * unit };
    if count == 0 && !bytes.is_empty() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    content.append(&bytes[..count]);
    Ok(count)
}
