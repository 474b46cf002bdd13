//! The names and bytes on the simulated disk: as everybody sees them, and as a power cut would leave them.
//!
//! Nothing is promised but what POSIX promises: the bytes of a file survive once the file was synced, its name once the
//! folder was. What was not made durable survives or not by chance, as far as a file system would have it in order.
//! ```text
//! durable ── pending changes, in order ──► names        a synced folder moves its changes into `durable`
//! synced bytes ── the rest ──► bytes                    of each file
//! ```

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use super::random::Random;

/// What a power cut tears at the end of a file, in bytes.
pub(super) const SECTOR: usize = 512;

type Names = BTreeMap<PathBuf, Node>;

/// All files and folders of a simulated disk.
///
/// Invariants:
/// 1. `durable`, changed by all of `pending` from the first on, is `names`.
/// 2. What a name in `names` lies in is a folder in `names`, or the root: `/`, or the current folder for relative paths.
///    `durable` may have names whose folder it lacks; they are lost with it.
/// 3. A change becomes durable, or survives a power cut, only together with or after all that it follows.
#[derive(Default)]
pub(super) struct Files {
    names: Names,
    durable: Names,
    pending: Vec<Change>,
}

/// What has a name.
#[derive(Clone)]
enum Node {
    Folder,
    File(Rc<Content>),
}

/// What happens to names of one folder at once.
struct Change {
    /// What the names stand for from then on; `None` for nothing.
    sets: Vec<(PathBuf, Option<Node>)>,
    /// Further names whose earlier changes this one follows.
    follows: Vec<PathBuf>,
}

impl Files {
    /// The file of this path.
    pub(super) fn file(&self, path: &Path) -> io::Result<Rc<Content>> {
        match self.names.get(path) {
            Some(Node::File(content)) => Ok(Rc::clone(content)),
            None if !is_root(path) => Err(io::ErrorKind::NotFound.into()),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn is_dir(&self, path: &Path) -> bool {
        self.expect_folder(path).is_ok()
    }

    /// What lies in a folder, as `dir` joined with the names, sorted.
    pub(super) fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        self.expect_folder(dir)?;
        Ok(children(&self.names, dir).filter_map(|path| Some(dir.join(path.file_name()?))).collect())
    }

    /// How many bytes all files have.
    pub(super) fn used(&self) -> u64 {
        let len = |node: &Node| if let Node::File(content) = node { content.len() } else { 0 };
        self.names.values().map(len).sum()
    }

    /// Puts a durable file in the place of what was there, and durable folders around it.
    ///
    /// # Panics
    /// If the path is that of a folder, or leads through a file.
    pub(super) fn put(&mut self, path: PathBuf, content: Vec<u8>) -> Rc<Content> {
        assert!(!self.is_dir(&path), "{} is a folder", path.display());
        let folders: Vec<_> = path.ancestors().skip(1).filter(|folder| !is_root(folder)).collect();
        for folder in folders.into_iter().rev() {
            assert!(self.file(folder).is_err(), "{} is a file", folder.display());
            self.set_durably(folder.to_owned(), Some(Node::Folder));
        }
        let content = Content::durable(content);
        self.set_durably(path, Some(Node::File(Rc::clone(&content))));
        content
    }

    /// Takes a file off, durably.
    pub(super) fn take_off(&mut self, path: &Path) {
        if self.file(path).is_ok() {
            self.set_durably(path.to_owned(), None);
        }
    }

    pub(super) fn create(&mut self, path: PathBuf, content: Rc<Content>) -> io::Result<()> {
        self.expect_folder(folder_of(&path))?;
        if self.names.contains_key(&path) || is_root(&path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.change(vec![(path, Some(Node::File(content)))], Vec::new());
        Ok(())
    }

    pub(super) fn rename(&mut self, from: PathBuf, to: PathBuf) -> io::Result<()> {
        if self.is_dir(&from) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the simulated disk renames only files"));
        }
        let file = Node::File(self.file(&from)?);
        self.expect_folder(folder_of(&to))?;
        if self.is_dir(&to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if from == to {
            return Ok(());
        }
        if folder_of(&from) == folder_of(&to) {
            self.change(vec![(to, Some(file)), (from, None)], Vec::new());
        } else {
            // Each folder has its part. The old name does not go before the new one is there.
            self.change(vec![(to.clone(), Some(file))], Vec::new());
            self.change(vec![(from, None)], vec![to]);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: PathBuf) -> io::Result<()> {
        self.file(&path)?;
        self.change(vec![(path, None)], Vec::new());
        Ok(())
    }

    pub(super) fn create_folders(&mut self, path: &Path) -> io::Result<()> {
        let mut folders: Vec<_> = path.ancestors().filter(|folder| !is_root(folder)).collect();
        while let Some(folder) = folders.pop() {
            match self.names.get(folder) {
                Some(Node::Folder) => {}
                // As the operating system has it: a file in the way of the last one, and one within the path.
                Some(Node::File(_)) if folders.is_empty() => return Err(io::ErrorKind::AlreadyExists.into()),
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => self.change(vec![(folder.to_owned(), Some(Node::Folder))], Vec::new()),
            }
        }
        Ok(())
    }

    pub(super) fn remove_folder(&mut self, path: PathBuf) -> io::Result<()> {
        self.expect_folder(&path)?;
        if is_root(&path) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        if children(&self.names, &path).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        // Nothing that was in this folder may come back in a later one of the same name.
        let inside = self.pending.iter().flat_map(Change::names).filter(|name| folder_of(name) == path);
        let follows = inside.map(Path::to_owned).collect();
        self.change(vec![(path, None)], follows);
        Ok(())
    }

    /// Makes the names in a folder durable.
    pub(super) fn sync_folder(&mut self, path: &Path) -> io::Result<()> {
        self.expect_folder(path)?;
        self.persist(|change| change.names().any(|name| folder_of(name) == path));
        Ok(())
    }

    /// Leaves what a power cut leaves.
    pub(super) fn lose_power(&mut self, random: &mut Random) {
        self.lose_names(random);
        let mut found = Names::new();
        for (path, node) in mem::take(&mut self.durable) {
            let folder = folder_of(&path);
            if is_root(folder) || matches!(found.get(folder), Some(Node::Folder)) {
                found.insert(path, node);
            }
        }
        for node in found.values() {
            if let Node::File(content) = node {
                content.lose_power(random);
            }
        }
        self.names = found.clone();
        self.durable = found;
    }

    /// Whether invariants 1 and 2 hold; slow.
    #[cfg(test)]
    pub(super) fn assert_sound(&self) {
        let mut names = self.durable.clone();
        self.pending.iter().for_each(|change| change.apply(&mut names));
        assert!(names.keys().eq(self.names.keys()), "invariant 1 of the simulated files");
        for (path, node) in &self.names {
            let same = match (node, &names[path]) {
                (Node::File(content), Node::File(other)) => Rc::ptr_eq(content, other),
                (Node::Folder, Node::Folder) => true,
                _ => false,
            };
            assert!(same, "invariant 1 of the simulated files: {}", path.display());
            assert!(self.is_dir(folder_of(path)), "invariant 2 of the simulated files: {}", path.display());
        }
    }

    /// Of the changes that were not made durable, keeps all, none, or about half.
    fn lose_names(&mut self, random: &mut Random) {
        let chance = random.below(3) as f64 / 2.0;
        let mut lost: Vec<Change> = Vec::new();
        for change in mem::take(&mut self.pending) {
            let kept = random.chance(chance);
            if kept && !lost.iter().any(|lost| change.comes_after(lost)) {
                change.apply(&mut self.durable);
            } else {
                lost.push(change);
            }
        }
    }

    fn change(&mut self, sets: Vec<(PathBuf, Option<Node>)>, follows: Vec<PathBuf>) {
        let change = Change { sets, follows };
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn set_durably(&mut self, path: PathBuf, node: Option<Node>) {
        self.persist(|change| change.names().any(|name| name == path));
        let change = Change { sets: vec![(path, node)], follows: Vec::new() };
        change.apply(&mut self.names);
        change.apply(&mut self.durable);
    }

    /// Makes the changes durable that are wanted, and those that they follow.
    fn persist(&mut self, wanted: impl Fn(&Change) -> bool) {
        let mut goes: Vec<bool> = self.pending.iter().map(wanted).collect();
        for at in (0..goes.len()).rev() {
            let change = &self.pending[at];
            let later = self.pending.iter().zip(&goes).skip(at + 1);
            goes[at] |= later.into_iter().any(|(later, goes)| *goes && later.comes_after(change));
        }
        for (change, goes) in mem::take(&mut self.pending).into_iter().zip(goes) {
            if goes {
                change.apply(&mut self.durable);
            } else {
                self.pending.push(change);
            }
        }
    }

    fn expect_folder(&self, path: &Path) -> io::Result<()> {
        match self.names.get(path) {
            Some(Node::Folder) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None if is_root(path) => Ok(()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Change {
    fn apply(&self, names: &mut Names) {
        for (path, node) in &self.sets {
            match node {
                Some(node) => names.insert(path.clone(), node.clone()),
                None => names.remove(path),
            };
        }
    }

    fn names(&self) -> impl Iterator<Item = &Path> {
        self.sets.iter().map(|(path, _)| path.as_path())
    }

    /// Whether it follows `earlier`, which was made before it.
    fn comes_after(&self, earlier: &Self) -> bool {
        let mut followed = self.names().chain(self.follows.iter().map(PathBuf::as_path));
        followed.any(|name| earlier.names().any(|other| other == name))
    }
}

/// What is always there: `/`, and the folder that relative paths begin in.
fn is_root(path: &Path) -> bool {
    path.parent().is_none()
}

fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn children<'names>(names: &'names Names, folder: &Path) -> impl Iterator<Item = &'names PathBuf> {
    names.keys().filter(move |path| path.parent() == Some(folder))
}

/// The bytes of a file, under whatever name. Only appended to.
///
/// Invariant: the first `synced` of `bytes` are durable; there are as many.
pub(super) struct Content {
    bytes: RefCell<Vec<u8>>,
    synced: Cell<usize>,
    modified: Cell<Duration>,
}

impl Content {
    pub(super) fn empty() -> Rc<Self> {
        Self::durable(Vec::new())
    }

    fn durable(bytes: Vec<u8>) -> Rc<Self> {
        let (synced, modified) = (Cell::new(bytes.len()), Cell::default());
        Rc::new(Self { bytes: RefCell::new(bytes), synced, modified })
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.borrow().len() as u64
    }

    pub(super) fn bytes(&self) -> Ref<'_, Vec<u8>> {
        self.bytes.borrow()
    }

    pub(super) fn append(&self, bytes: &[u8]) {
        self.bytes.borrow_mut().extend_from_slice(bytes);
    }

    /// When it was written last, since the Unix epoch.
    pub(super) fn modified(&self) -> Duration {
        self.modified.get()
    }

    /// It is written now.
    pub(super) fn touch(&self, now: Duration) {
        self.modified.set(now);
    }

    /// The first `len` bytes are durable from now on.
    pub(super) fn sync(&self, len: usize) {
        self.synced.update(|synced| synced.max(len));
    }

    /// Leaves what was synced and a random part of what was not, of which the last sectors, or any, may never have been
    /// written.
    fn lose_power(&self, random: &mut Random) {
        let (mut bytes, synced) = (self.bytes.borrow_mut(), self.synced.get());
        assert!(synced <= bytes.len(), "the invariant of simulated bytes");
        let unsynced = (bytes.len() - synced) as u64;
        // None and all of them are as likely as everything between.
        let kept = match random.below(3) {
            0 => 0,
            1 => unsynced,
            _ => random.below(unsynced + 1),
        };
        bytes.truncate(synced + kept as usize);
        let sectors = bytes.len().div_ceil(SECTOR) - synced / SECTOR;
        let first = synced / SECTOR + random.below(sectors.max(1) as u64) as usize;
        let unwritten = (first * SECTOR).max(synced)..bytes.len();
        match random.below(4) {
            0 => bytes[unwritten].fill(0),
            1 => bytes[unwritten].fill_with(|| random.next() as u8),
            2 => lose_sectors(&mut bytes, synced, random),
            _ => {}
        }
        self.synced.set(bytes.len());
    }
}

/// Makes zeros of about half of the sectors, as far as they were not synced.
fn lose_sectors(bytes: &mut [u8], synced: usize, random: &mut Random) {
    for start in (synced / SECTOR * SECTOR..bytes.len()).step_by(SECTOR) {
        let end = bytes.len().min(start + SECTOR);
        if random.chance(0.5) {
            bytes[start.max(synced)..end].fill(0);
        }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
