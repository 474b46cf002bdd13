//! Processes with so much memory in all, what the page cache keeps for them included: for those who read through it.
//!
//! ```text
//! /sys/fs/cgroup/memory/siltstone-peers-…/memory.limit_in_bytes    control groups of the kernel, the first version
//! /sys/fs/cgroup/siltstone-peers-…/memory.max                      the second
//! sh -c 'echo $$ > cgroup.procs && exec "$@"'                      a process goes in before it becomes the program
//! ```

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::{Advice, fadvise};

use crate::Result;

/// Where groups are made, and the files of the limits: of memory, and of memory and swap together or of swap alone, which not every kernel has.
const GROUPS: [(&str, &str, &str, u64); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", 1),
    ("/sys/fs/cgroup", "memory.max", "memory.swap.max", 0),
];

/// A group with a limit. It goes with this.
#[derive(Debug)]
pub struct Confined {
    group: PathBuf,
}

impl Confined {
    /// A group with so many MiB.
    ///
    /// # Errors
    /// If none can be made: it takes root, or a folder of groups that was handed over.
    pub fn to(mib: u32) -> io::Result<Confined> {
        let bytes = u64::from(mib) << 20;
        let [first, second] = GROUPS.map(|(groups, memory, swap, with_memory)| {
            let confined = Confined::new(Path::new(groups))?;
            confined.set(memory, bytes)?;
            // Where swap is not limited there is mostly none.
            let _ = confined.set(swap, bytes * with_memory);
            Ok(confined)
        });
        first.or(second)
    }

    /// A group of this process's own, if the kernel makes groups in that folder.
    fn new(groups: &Path) -> io::Result<Confined> {
        static GROUPS_MADE: AtomicU32 = AtomicU32::new(0);
        let number = GROUPS_MADE.fetch_add(1, Ordering::Relaxed);
        let group = groups.join(format!("siltstone-peers-{}-{number}", process::id()));
        fs::create_dir(&group)?;
        let confined = Confined { group };
        match confined.group.join("cgroup.procs").exists() {
            true => Ok(confined),
            false => Err(io::Error::other(format!("{} is no folder of control groups", groups.display()))),
        }
    }

    /// Writes to a file that the kernel has put there.
    fn set(&self, file: &str, number: u64) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(self.group.join(file))?;
        file.write_all(number.to_string().as_bytes())
    }

    /// Takes in a process that runs: what it has already counts for nobody, what it takes from now on is limited.
    ///
    /// # Errors
    /// If there is no such process, or the kernel refuses.
    pub fn adopt(&self, process: u32) -> io::Result<()> {
        self.set("cgroup.procs", process.into())
    }

    /// A program that is started within.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.group.join("cgroup.procs")).arg(program);
        command
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        // It is empty, as its processes have ended; where it is not, the error that ends the run says more.
        let _ = fs::remove_dir(&self.group);
    }
}

/// Lets go of what the page cache has of the files in a folder: pages that are there already count for nobody's limit.
///
/// # Errors
/// What the operating system says.
pub fn forget(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            forget(&entry.path())?;
        } else {
            let file = fs::File::open(entry.path())?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use testkit::command::checked;

    use super::*;

    #[test]
    fn a_process_knows_its_group() {
        // Not everybody may make one.
        let Ok(confined) = Confined::to(64) else { return };
        let mut cat = confined.command(Path::new("cat"));
        let printed = checked(cat.arg("/proc/self/cgroup")).unwrap();
        let group = confined.group.clone();
        let name = group.file_name().unwrap().to_str().unwrap();
        assert!(String::from_utf8_lossy(&printed.stdout).contains(name));
        drop(confined);
        assert!(!group.exists());
    }

    #[test]
    fn a_plain_folder_makes_no_groups() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Confined::new(folder.path()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Confined::new(&folder.path().join("none")).is_err());
    }

    #[test]
    fn folders_are_forgotten_with_all_that_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/b"), [7; 10_000]).unwrap();
        forget(folder.path()).unwrap();
        assert_eq!(fs::read(folder.path().join("a/b")).unwrap(), [7; 10_000]);
        assert!(forget(&folder.path().join("c")).is_err());
    }
}
