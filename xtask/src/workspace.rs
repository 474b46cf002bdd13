//! Where things are, and the command under test.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::command::checked;

use crate::Result;

/// The root of the project.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize().unwrap_or(root)
}

/// Where Cargo builds, and what chores bring along is kept.
pub fn target() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Builds the command `siltstone` as it is shipped, and says where it is.
///
/// # Errors
/// If it does not build.
pub fn siltstone() -> Result<PathBuf> {
    built("siltstone")
}

/// Builds the program of the benchmarks, and says where it is.
///
/// # Errors
/// If it does not build.
pub fn perf() -> Result<PathBuf> {
    built("siltstone-perf")
}

/// A package whose program has its name.
fn built(package: &str) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.current_dir(root()).args(["build", "--quiet", "--release", "--package", package]);
    checked(&mut build)?;
    Ok(target().join("release").join(package))
}

/// `siltstone sstable dump` of a file.
pub fn dump(siltstone: &Path, data: &Path) -> Command {
    let mut command = Command::new(siltstone);
    command.args(["sstable", "dump"]).arg(data);
    command
}

/// `siltstone sstable verify` of a file.
pub fn verify(siltstone: &Path, data: &Path) -> Command {
    let mut command = Command::new(siltstone);
    command.args(["sstable", "verify"]).arg(data);
    command
}

/// A short name of an SSTable for tables and messages: its path below `fixtures`, if it is a fixture.
pub fn short_name(data: &Path) -> String {
    let path = data.canonicalize().unwrap_or_else(|_| data.to_owned()).display().to_string();
    path.rsplit_once("/fixtures/").map_or(path.clone(), |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixtures_have_short_names() {
        assert_eq!(short_name(Path::new("a/fixtures/nb/x-Data.db")), "nb/x-Data.db");
        assert_eq!(short_name(Path::new("a/x-Data.db")), "a/x-Data.db");
        assert!(root().join("xtask/Cargo.toml").is_file());
    }
}
