//! All files of a new SSTable, or none: what a crash leaves is either not yet an SSTable or a whole one.
//!
//! ```text
//! me-1-big-TOC.txt.tmp        there first and renamed last: as long as it is there, the SSTable is not
//! me-1-big-Data.db.tmp, …     written under temporary names
//! 1. every file is synced, side by side, then the folder   all names and bytes are durable, as temporary ones
//! 2. all but TOC.txt get their names, folder synced   they have names, but TOC.txt.tmp says: not yet
//! 3. TOC.txt gets its name, folder synced             from here on there is an SSTable
//! ```

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use runtime::{Disk, DiskAction, IoError, NewFile, Task, join_all, spawn};

use crate::Result;
use crate::component::{Component, Descriptor, SEALING_ORDER};
use crate::parts::scylla::SCYLLA;

/// The end of the name of a file that is being written.
const TEMPORARY: &str = ".tmp";

/// What stands before that in the names of files which hold a part of a component for a while.
pub(super) const BLOCKS: &str = ".blocks";
pub(super) const OFFSETS: &str = ".offsets";
pub(super) const HASHES: &str = ".hashes";

/// The files of an SSTable that is being written.
pub(crate) struct Sealer {
    disk: Disk,
    descriptor: Descriptor,
    /// TOC.txt, until it is written.
    toc: Option<NewFile>,
    components: Vec<Component>,
    /// Of files that are written, and become durable.
    syncs: Vec<Task<std::result::Result<(), IoError>>>,
}

impl Sealer {
    /// Takes the descriptor's names for a new SSTable.
    ///
    /// # Errors
    /// Of the kind `AlreadyExists` if there is such an SSTable, or another one is being written under these names;
    /// what the operating system says.
    pub(crate) async fn begin(disk: &Disk, mut descriptor: Descriptor) -> Result<Sealer> {
        if descriptor.dir.as_os_str().is_empty() {
            // As lists of the folder name it.
            descriptor.dir = PathBuf::from(".");
        }
        let toc = disk.create(&temporary(&descriptor, &Component::Toc), Component::Toc.io_class()).await?;
        let (toc, components, syncs) = (Some(toc), Vec::new(), Vec::new());
        let sealer = Sealer { disk: disk.clone(), descriptor, toc, components, syncs };
        let scylla = Component::Other(SCYLLA.to_owned());
        let taken =
            SEALING_ORDER.iter().chain([&scylla]).map(|component| sealer.descriptor.path_of(component));
        if let Some(path) = taken.into_iter().find(|path| disk.exists(path)) {
            disk.remove(&temporary(&sealer.descriptor, &Component::Toc)).await?;
            let (kind, message) = (ErrorKind::AlreadyExists, "it is there already".into());
            return Err(
                IoError::Refused { path: path.into(), action: DiskAction::Create, kind, message }.into()
            );
        }
        Ok(sealer)
    }

    /// The names of the SSTable.
    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// A new component's file. Whoever has written it [hands it back](Sealer::put), and does not read it before.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn create(&mut self, component: Component) -> Result<NewFile> {
        let path = temporary(&self.descriptor, &component);
        let file = self.disk.create_direct(&path, component.io_class()).await?;
        self.components.push(component);
        Ok(file)
    }

    /// Takes a component's file that is written. It becomes durable while others are written.
    pub(crate) fn put(&mut self, mut file: NewFile) {
        self.syncs.push(spawn(async move { file.sync().await }));
    }

    /// Where such a part of a component may go.
    pub(crate) fn spool_path(&self, component: &Component, part: &str) -> PathBuf {
        self.descriptor.dir.join(self.descriptor.file_name(component) + part + TEMPORARY)
    }

    /// Writes a whole component.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn write(&mut self, component: Component, bytes: Vec<u8>) -> Result<()> {
        let mut file = self.create(component).await?;
        file.append(bytes).await?;
        self.put(file);
        Ok(())
    }

    /// Gives the components, each of which is written, their names, all but TOC.txt: all is durable, and it is no SSTable yet.
    ///
    /// # Errors
    /// What the operating system says. Nothing is left then.
    pub(crate) async fn name_components(mut self) -> Result<Sealer> {
        let place = |component: &Component| SEALING_ORDER.iter().position(|known| known == component);
        self.components.sort_by_key(place);
        match self.name_all().await {
            Ok(()) => Ok(self),
            Err(error) => {
                // The first error is the one to tell.
                drop(self.abandon().await);
                Err(error)
            }
        }
    }

    /// Makes it an SSTable, whose components have their names; their list.
    ///
    /// # Errors
    /// What the operating system says. Nothing is left then, save where only the last sync failed: the SSTable is
    /// there, but may not survive a power cut.
    pub(crate) async fn seal(mut self) -> Result<Vec<Component>> {
        if let Err(error) = self.name(&Component::Toc).await {
            // The first error is the one to tell.
            drop(self.abandon().await);
            return Err(error);
        }
        self.disk.sync_dir(&self.descriptor.dir).await?;
        self.components.push(Component::Toc);
        Ok(self.components)
    }

    /// Gives all components but TOC.txt their names.
    async fn name_all(&mut self) -> Result<()> {
        let mut toc = self.toc.take().expect("components are named once");
        toc.append(Component::toc_text(&self.components).into_bytes()).await?;
        toc.sync().await?;
        drop(toc);
        for sync in self.syncs.drain(..) {
            sync.await?;
        }
        let dir = &self.descriptor.dir;
        self.disk.sync_dir(dir).await?;
        let named = join_all(self.components.iter().map(|component| self.name(component))).await;
        named.into_iter().collect::<Result<()>>()?;
        Ok(self.disk.sync_dir(dir).await?)
    }

    /// Gives a component its name.
    async fn name(&self, component: &Component) -> Result<()> {
        let (from, to) = (temporary(&self.descriptor, component), self.descriptor.path_of(component));
        Ok(self.disk.rename(&from, &to).await?)
    }

    /// Removes what is there of the SSTable, as far as that is possible.
    ///
    /// # Errors
    /// What the operating system says of what could not be removed.
    pub(crate) async fn abandon(self) -> Result<()> {
        let Sealer { disk, descriptor, toc, .. } = self;
        drop(toc);
        let names = disk.list(&descriptor.dir)?;
        let mine = |path: &PathBuf| parse(path).is_some_and(|name| name.descriptor == descriptor);
        remove(&disk, &descriptor.dir, names.into_iter().filter(mine).collect()).await
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("descriptor", &self.descriptor).finish_non_exhaustive()
    }
}

/// Removes what writers that were cut off have left in a folder: files with temporary names, and those of SSTables
/// that did not become whole. What was removed is returned. No other writer may be at work in the folder.
///
/// # Errors
/// What the operating system says.
pub async fn remove_leftovers(disk: &Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    let paths = disk.list(dir)?;
    let unsealed = unsealed(&paths);
    let is_leftover = |path: &&PathBuf| {
        parse(path).is_some_and(|name| name.is_temporary || unsealed.contains(&name.descriptor))
    };
    let leftovers: Vec<PathBuf> = paths.iter().filter(is_leftover).cloned().collect();
    remove(disk, dir, leftovers.clone()).await?;
    Ok(leftovers)
}

/// The SSTables among the files of a folder that are not whole: still being written, or cut off.
pub fn unsealed(paths: &[PathBuf]) -> Vec<Descriptor> {
    let names: Vec<Name> = paths.iter().filter_map(|path| parse(path)).collect();
    let has_toc = |descriptor: &Descriptor| {
        names.iter().any(|name| name.is_toc && !name.is_temporary && name.descriptor == *descriptor)
    };
    let unsealed = names.iter().filter(|name| name.is_toc && name.is_temporary && !has_toc(&name.descriptor));
    unsealed.map(|name| name.descriptor.clone()).collect()
}

/// Whether an SSTable is not whole: still being written, or cut off.
pub(crate) fn is_unsealed(disk: &Disk, descriptor: &Descriptor) -> bool {
    !disk.exists(&descriptor.path_of(&Component::Toc)) && disk.exists(&temporary(descriptor, &Component::Toc))
}

/// Removes files, TOC.txt.tmp after all others: as long as one of these is there, it says that they are no SSTable.
async fn remove(disk: &Disk, dir: &Path, paths: Vec<PathBuf>) -> Result<()> {
    let (tocs, others): (Vec<_>, Vec<_>) =
        paths.into_iter().partition(|path| parse(path).is_some_and(|name| name.is_toc));
    for paths in [others, tocs] {
        for path in &paths {
            disk.remove(path).await?;
        }
        if !paths.is_empty() {
            disk.sync_dir(dir).await?;
        }
    }
    Ok(())
}

/// What the name of a file tells.
struct Name {
    descriptor: Descriptor,
    is_toc: bool,
    is_temporary: bool,
}

/// The name of a file that may be ours: of a component that we write, or on its way to one.
fn parse(path: &Path) -> Option<Name> {
    let name = path.file_name().and_then(OsStr::to_str)?;
    let stem = name.strip_suffix(TEMPORARY).map(|stem| {
        let spooled = [BLOCKS, OFFSETS, HASHES].iter().find_map(|spool| stem.strip_suffix(*spool));
        spooled.unwrap_or(stem)
    });
    let whole = path.with_file_name(stem.unwrap_or(name));
    let (descriptor, component) = Descriptor::parse_component(&whole).ok()?;
    // Others have temporary files too: Cassandra's end in .tmp as well, with something else before.
    let is_ours = stem.is_none() || is_written(&component);
    is_ours.then_some(Name { descriptor, is_toc: component == Component::Toc, is_temporary: stem.is_some() })
}

/// Whether it is one of those that are written here.
fn is_written(component: &Component) -> bool {
    SEALING_ORDER.contains(component) || component.name() == SCYLLA
}

fn temporary(descriptor: &Descriptor, component: &Component) -> PathBuf {
    descriptor.dir.join(descriptor.file_name(component) + TEMPORARY)
}

#[cfg(test)]
mod tests {
    use runtime::{SimOptions, run_simulated};

    use super::*;

    fn descriptor() -> Descriptor {
        Descriptor::parse(Path::new("/t/me-7-big-Data.db")).unwrap()
    }

    async fn begin(disk: &Disk) -> Result<Sealer> {
        disk.create_dir_all(Path::new("/t")).await?;
        let mut sealer = Sealer::begin(disk, descriptor()).await?;
        sealer.write(Component::Statistics, vec![2; 10]).await?;
        sealer.write(Component::Data, vec![1; 10]).await?;
        Ok(sealer)
    }

    #[test]
    fn names_come_with_the_seal() {
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk();
            let sealer = begin(disk).await.unwrap();
            let names = ["Data.db", "Statistics.db", "TOC.txt"].map(|name| format!("/t/me-7-big-{name}"));
            let temporary = names.clone().map(|name| PathBuf::from(name + ".tmp"));
            assert_eq!(disk.list(Path::new("/t")).unwrap(), temporary);
            assert!(is_unsealed(disk, &descriptor()));
            assert!(begin(disk).await.is_err(), "the names are taken");
            sealer.name_components().await.unwrap().seal().await.unwrap();
            assert_eq!(disk.list(Path::new("/t")).unwrap(), names.map(PathBuf::from));
            assert!(!is_unsealed(disk, &descriptor()));
            assert!(begin(disk).await.unwrap_err().to_string().ends_with("it is there already"));
            assert_eq!(disk.list(Path::new("/t")).unwrap().len(), 3, "and nothing is left of the attempt");
        })
        .unwrap();
    }

    #[test]
    fn what_is_abandoned_is_gone() {
        run_simulated(SimOptions::default(), async |shard| {
            begin(shard.disk()).await.unwrap().abandon().await.unwrap();
            assert_eq!(shard.disk().list(Path::new("/t")).unwrap(), Vec::<PathBuf>::new());
        })
        .unwrap();
    }

    #[test]
    fn leftovers_are_told_from_others() {
        run_simulated(SimOptions::default(), async |shard| {
            let disk = shard.disk().as_simulated().unwrap();
            let left = [
                "me-1-big-Data.db",
                "me-1-big-TOC.txt.tmp",
                "nb-2-big-Index.db.blocks.tmp",
                "nb-2-big-Index.db.tmp",
                "nb-2-big-Scylla.db.tmp",
            ];
            let kept = [
                "me-3-big-Data.db",
                "me-4-big-Data.db",
                "me-4-big-TOC.txt",
                "mc-1-big-Data.db",
                "notes.tmp",
                "nb-5-big-Statistics.db.57f0.tmp",
                "me-4-big-Data.db.of-monday.tmp",
            ];
            left.iter().chain(&kept).for_each(|name| disk.add_file(format!("/t/{name}"), vec![1]));
            let removed = remove_leftovers(shard.disk(), Path::new("/t")).await.unwrap();
            assert_eq!(removed, left.map(|name| Path::new("/t").join(name)));
            assert_eq!(shard.disk().list(Path::new("/t")).unwrap().len(), kept.len());
        })
        .unwrap();
    }
}
