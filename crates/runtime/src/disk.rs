//! The disk of a shard: opens, lists, makes and renames files, and counts what is asked of it; real or simulated.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use crate::error::{DiskAction, IoError};
use crate::file::File;
use crate::new_file::NewFile;
use crate::real::RealDisk;
use crate::sim::SimDisk;
use crate::stats::{IoClass, IoCounters, IoStats};

/// The disk of one shard. Clones are the same disk, with the same counters.
#[derive(Clone)]
pub struct Disk {
    backend: Backend,
    shared: Rc<Shared>,
}

#[derive(Clone)]
enum Backend {
    Real(RealDisk),
    Simulated(SimDisk),
}

#[derive(Default)]
struct Shared {
    counters: Rc<IoCounters>,
    next_id: Cell<u64>,
}

impl Disk {
    pub(crate) fn real(disk: RealDisk) -> Self {
        Self { backend: Backend::Real(disk), shared: Rc::default() }
    }

    pub(crate) fn simulated(disk: SimDisk) -> Self {
        Self { backend: Backend::Simulated(disk), shared: Rc::default() }
    }

    /// Opens a file for reading; its reads are counted under `class`.
    ///
    /// Direct I/O is used where the shard asks for it and the file system has it, and buffered I/O otherwise:
    /// [`File::alignment`] tells.
    ///
    /// # Errors
    /// [`IoError::Open`], with the kind `NotFound` if there is no such file and `IsADirectory` if it is a folder.
    pub async fn open(&self, path: &Path, class: IoClass) -> Result<File, IoError> {
        let opened = match &self.backend {
            Backend::Real(disk) => disk.open(path).await,
            Backend::Simulated(disk) => disk.open(path),
        };
        let opened = opened.map_err(|error| IoError::open(path, &error))?;
        Ok(File::new(self.unique_id(), path, class, Rc::clone(&self.shared.counters), opened))
    }

    /// Makes a new file, empty, to be appended to; its writes are counted under `class`.
    ///
    /// # Errors
    /// [`IoError::Refused`], with the kind `AlreadyExists` if there is a file or folder of this path, and `NotFound`
    /// if there is no such folder to put it in.
    pub async fn create(&self, path: &Path, class: IoClass) -> Result<NewFile, IoError> {
        self.create_as(path, class, false).await
    }

    /// The same for a file that nobody reads before it was synced, and few soon after: its bytes go past the page cache of the
    /// operating system, if the shard asks for direct I/O and the file system has it. So they are on their way to the disk as they
    /// are appended, and not all when it is synced, and what others have in that cache stays.
    ///
    /// # Errors
    /// Those of [`Disk::create`].
    pub async fn create_direct(&self, path: &Path, class: IoClass) -> Result<NewFile, IoError> {
        self.create_as(path, class, true).await
    }

    async fn create_as(&self, path: &Path, class: IoClass, is_direct: bool) -> Result<NewFile, IoError> {
        let created = match &self.backend {
            Backend::Real(disk) => disk.create(path, is_direct).await,
            Backend::Simulated(disk) => disk.create(path, is_direct).await,
        };
        let created = created.map_err(|error| IoError::refused(path, DiskAction::Create, &error))?;
        Ok(NewFile::new(path, class, Rc::clone(&self.shared.counters), created))
    }

    /// Gives a file another path on the same file system, in the place of the file that has it, at once: nobody sees
    /// neither of them. Who has either open keeps what they have. The simulated disk does not rename folders.
    ///
    /// It survives a power cut after [`Disk::sync_dir`] of both folders. Before, the path has its old or its new file;
    /// between two folders it may also be that the new path has the file and the old one still has it too.
    ///
    /// # Errors
    /// [`IoError::Refused`] if the operating system refuses.
    pub async fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        match &self.backend {
            Backend::Real(disk) => disk.rename(from, to).await,
            Backend::Simulated(disk) => disk.rename(from, to).await,
        }
        .map_err(|error| IoError::refused(from, DiskAction::RenameTo(to.into()), &error))
    }

    /// Takes a file away. Who has it open keeps it.
    ///
    /// # Errors
    /// [`IoError::Refused`], with the kind `NotFound` if there is no such file and `IsADirectory` if it is a folder.
    pub async fn remove(&self, path: &Path) -> Result<(), IoError> {
        match &self.backend {
            Backend::Real(disk) => disk.remove(path).await,
            Backend::Simulated(disk) => disk.remove(path).await,
        }
        .map_err(|error| IoError::refused(path, DiskAction::Remove, &error))
    }

    /// Makes a folder and all that it lies in, as far as they are not there. Each of the new ones survives a power cut
    /// after [`Disk::sync_dir`] of the folder that it lies in.
    ///
    /// # Errors
    /// [`IoError::Refused`] if the operating system refuses, or one of them is a file.
    pub async fn create_dir_all(&self, path: &Path) -> Result<(), IoError> {
        match &self.backend {
            Backend::Real(disk) => disk.create_dir_all(path).await,
            Backend::Simulated(disk) => disk.create_dir_all(path).await,
        }
        .map_err(|error| IoError::refused(path, DiskAction::CreateFolder, &error))
    }

    /// Takes an empty folder away.
    ///
    /// # Errors
    /// [`IoError::Refused`], with the kind `NotFound` if there is no such folder, `NotADirectory` if it is a file,
    /// and `DirectoryNotEmpty`.
    pub async fn remove_dir(&self, path: &Path) -> Result<(), IoError> {
        match &self.backend {
            Backend::Real(disk) => disk.remove_dir(path).await,
            Backend::Simulated(disk) => disk.remove_dir(path).await,
        }
        .map_err(|error| IoError::refused(path, DiskAction::RemoveFolder, &error))
    }

    /// Waits until all files and folders that were made, renamed or removed right in this folder would be so after a
    /// power cut. What is in the files is not part of that.
    ///
    /// # Errors
    /// [`IoError::Refused`] if there is no such folder, or the operating system refuses.
    pub async fn sync_dir(&self, path: &Path) -> Result<(), IoError> {
        self.shared.counters.record_sync();
        match &self.backend {
            Backend::Real(disk) => disk.sync_dir(path).await,
            Backend::Simulated(disk) => disk.sync_dir(path).await,
        }
        .map_err(|error| IoError::refused(path, DiskAction::SyncFolder, &error))
    }

    /// The files and folders of a folder, as `dir` joined with their names, sorted.
    ///
    /// # Errors
    /// [`IoError::List`] if there is no such folder or it cannot be read.
    pub fn list(&self, dir: &Path) -> Result<Vec<PathBuf>, IoError> {
        match &self.backend {
            Backend::Real(disk) => disk.list(dir),
            Backend::Simulated(disk) => disk.list(dir),
        }
        .map_err(|error| IoError::list(dir, &error))
    }

    /// Whether there is a file or folder of this path; `true` also where it cannot be found out, as without
    /// the permission to look: opening it then tells why.
    pub fn exists(&self, path: &Path) -> bool {
        match &self.backend {
            Backend::Real(_) => path.try_exists().unwrap_or(true),
            Backend::Simulated(disk) => disk.exists(path),
        }
    }

    /// Whether there is a folder of this path; `false` also where it cannot be found out.
    pub fn is_dir(&self, path: &Path) -> bool {
        match &self.backend {
            Backend::Real(_) => path.is_dir(),
            Backend::Simulated(disk) => disk.is_dir(path),
        }
    }

    /// When the bytes of a file were changed last, since the Unix epoch; what is older than the
    /// epoch counts as of then.
    ///
    /// # Errors
    /// [`IoError::Open`], with the kind `NotFound` if there is no such file.
    pub fn modified(&self, path: &Path) -> Result<Duration, IoError> {
        match &self.backend {
            Backend::Real(_) => path.metadata().and_then(|metadata| metadata.modified()),
            Backend::Simulated(disk) => disk.modified(path).map(|since| UNIX_EPOCH + since),
        }
        .map(|time| time.duration_since(UNIX_EPOCH).unwrap_or_default())
        .map_err(|error| IoError::open(path, &error))
    }

    /// The path from the root that leads to a folder through no link and no `..`.
    ///
    /// # Errors
    /// [`IoError::List`] if there is no such folder.
    pub fn canonical(&self, dir: &Path) -> Result<PathBuf, IoError> {
        match &self.backend {
            Backend::Real(_) if dir.as_os_str().is_empty() => Path::new(".").canonicalize(),
            Backend::Real(_) => dir.canonicalize(),
            Backend::Simulated(disk) => disk.list(dir).map(|_| Path::new("/").join(dir)),
        }
        .map_err(|error| IoError::list(dir, &error))
    }

    /// What this shard has asked of the operating system since it started.
    pub fn stats(&self) -> IoStats {
        self.shared.counters.snapshot()
    }

    /// A number from the sequence of [`File::id`]: the owner of cached things that are not the pages of a file.
    pub fn unique_id(&self) -> u64 {
        let id = self.shared.next_id.get();
        self.shared.next_id.set(id + 1);
        id
    }

    /// The simulated disk, to put files on; `None` for the real one.
    pub fn as_simulated(&self) -> Option<&SimDisk> {
        match &self.backend {
            Backend::Real(_) => None,
            Backend::Simulated(disk) => Some(disk),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io;

    use super::*;
    use crate::shard::{ShardOptions, run, run_simulated};
    use crate::sim::SimOptions;

    #[test]
    fn lists_files_and_folders_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        fs::create_dir(folder.path().join("aa")).unwrap();
        let dir = folder.path();
        run(ShardOptions::default(), async |shard| {
            let disk = shard.disk();
            assert_eq!(disk.list(dir).unwrap(), ["a", "aa", "b"].map(|name| dir.join(name)));
            assert!(disk.exists(&dir.join("a")) && !disk.is_dir(&dir.join("a")));
            assert!(disk.exists(&dir.join("aa")) && disk.is_dir(&dir.join("aa")));
            assert!(!disk.exists(&dir.join("c")) && !disk.is_dir(&dir.join("c")));
            assert_eq!(disk.list(&dir.join("c")).unwrap_err().kind(), io::ErrorKind::NotFound);
            assert!(disk.as_simulated().is_none());
        })
        .unwrap();
    }

    #[test]
    fn files_tell_when_they_were_written_and_folders_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "a").unwrap();
        let time = UNIX_EPOCH + Duration::from_millis(1_600_000_000_123);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        run(ShardOptions::default(), async |shard| {
            let disk = shard.disk();
            assert_eq!(disk.modified(&path).unwrap().as_millis(), 1_600_000_000_123);
            assert_eq!(disk.modified(&folder.path().join("b")).unwrap_err().kind(), io::ErrorKind::NotFound);
            let through = folder.path().join("..").join(folder.path().file_name().unwrap());
            assert_eq!(disk.canonical(&through).unwrap(), folder.path().canonicalize().unwrap());
            assert!(disk.canonical(Path::new("")).unwrap().is_absolute());
            assert_eq!(disk.canonical(&path.join("b")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        })
        .unwrap();
        run_simulated(SimOptions::default(), async |shard| {
            let (disk, clock) = (shard.disk(), shard.clock().as_simulated().unwrap());
            disk.as_simulated().unwrap().add_file("/t/a", Vec::new());
            assert_eq!(disk.modified(Path::new("/t/a")).unwrap(), clock.now());
            let mut new = disk.create(Path::new("/t/b"), IoClass::default()).await.unwrap();
            clock.advance(Duration::from_millis(5));
            new.append(vec![1]).await.unwrap();
            assert_eq!(disk.modified(Path::new("/t/b")).unwrap(), clock.now());
            assert_eq!(disk.canonical(Path::new("/t")).unwrap(), Path::new("/t"));
            assert!(disk.canonical(Path::new("/u")).is_err());
        })
        .unwrap();
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        run(ShardOptions::default(), async |shard| {
            let missing = shard.disk().open(&dir.join("c"), IoClass::default()).await.unwrap_err();
            assert_eq!(missing.kind(), io::ErrorKind::NotFound);
            assert!(missing.to_string().starts_with(&dir.join("c").display().to_string()));
            let folder = shard.disk().open(dir, IoClass::default()).await.unwrap_err();
            assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
        })
        .unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_cannot_be_looked_at_is_not_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::os::unix::fs::symlink(&path, &path).unwrap();
        run(ShardOptions::default(), async |shard| {
            assert!(shard.disk().exists(&path) && !shard.disk().is_dir(&path));
            let error = shard.disk().open(&path, IoClass::default()).await.unwrap_err();
            assert_ne!(error.kind(), io::ErrorKind::NotFound);
        })
        .unwrap();
    }

    #[test]
    fn numbers_are_never_given_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "a").unwrap();
        run(ShardOptions::default(), async |shard| {
            let disk = shard.disk();
            let first = disk.open(&path, IoClass::default()).await.unwrap().id();
            let second = disk.open(&path, IoClass::default()).await.unwrap().id();
            let ids = [first, second, disk.unique_id(), disk.clone().unique_id()];
            assert_eq!(ids, [first, first + 1, first + 2, first + 3]);
        })
        .unwrap();
    }
}
