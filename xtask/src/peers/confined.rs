//! Processes with so much memory in all, what the page cache keeps for them included: for those who read through it.
//!
//! ```text
//! /sys/fs/cgroup/memory/siltstone-peers/memory.limit_in_bytes      control groups of the kernel, the first version
//! /sys/fs/cgroup/siltstone-peers/memory.max                        the second
//! sh -c 'echo $$ > cgroup.procs && exec "$@"'                      a process goes in before it becomes the program
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Advice, fadvise};

use crate::Result;

/// Where groups are made, and the file of the limit.
const GROUPS: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// The group.
const NAME: &str = "siltstone-peers";

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
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for (groups, limit) in GROUPS {
            let group = Path::new(groups).join(NAME);
            let made = fs::create_dir_all(&group)
                .and_then(|()| fs::write(group.join(limit), (u64::from(mib) << 20).to_string()));
            // What else could be there is not what the kernel puts into a new group.
            let confined = Confined { group };
            match made {
                Ok(()) => return Ok(confined),
                Err(error) => refused = error,
            }
        }
        Err(refused)
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
        // It is empty once its processes have ended; if one has not, the next run takes the group over.
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
        assert!(String::from_utf8_lossy(&printed.stdout).contains(NAME));
        let group = confined.group.clone();
        drop(confined);
        assert!(!group.exists());
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
