//! The files of the project: the texts that rules look at, and the names of all others.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

/// Endings of files that are texts of the project. What tests compare with is data, not text.
const TEXTS: [&str; 5] = [".rs", ".md", ".toml", ".java", ".gitignore"];

/// Texts without an ending.
const NAMED_TEXTS: [&str; 2] = ["LICENSE", ".ci/run"];

/// The files of a project, by their path from its root on.
#[derive(Debug, Default)]
pub struct Tree {
    texts: BTreeMap<String, String>,
    /// All files and folders, texts included.
    paths: BTreeSet<String>,
}

impl Tree {
    /// Reads a project: all that its `.gitignore` does not name.
    ///
    /// # Errors
    /// If a file or folder cannot be read, or a text is not UTF-8.
    pub fn read(root: &Path) -> io::Result<Tree> {
        let ignored = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
        let ignored: Vec<&str> =
            ignored.lines().filter_map(|line| line.trim_end().strip_prefix('/')).collect();
        let mut tree = Tree::default();
        tree.collect(root, "", &ignored)?;
        Ok(tree)
    }

    /// A project of these files, for tests.
    pub fn of(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            let folders = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
            tree.paths.extend(folders.chain([(*path).to_owned()]));
            tree.texts.insert((*path).to_owned(), (*text).to_owned());
        }
        tree
    }

    /// The texts, with their paths.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Whether there is a file or folder of this path.
    pub fn has(&self, path: &str) -> bool {
        path.is_empty() || self.paths.contains(path)
    }

    fn collect(&mut self, root: &Path, folder: &str, ignored: &[&str]) -> io::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
            if name == ".git" || ignored.contains(&path.as_str()) {
                continue;
            }
            if entry.file_type()?.is_dir() {
                self.collect(root, &path, ignored)?;
            } else if TEXTS.iter().any(|ending| path.ends_with(ending))
                || NAMED_TEXTS.contains(&path.as_str())
            {
                let text = fs::read_to_string(entry.path())
                    .map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
                self.texts.insert(path.clone(), text);
            }
            self.paths.insert(path);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            (".gitignore", "/target\n/fuzz/corpus\n"),
            ("target/a.rs", ""),
            ("fuzz/corpus/b", ""),
            ("fuzz/c.rs", "c"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let tree = Tree::read(folder.path()).unwrap();
        let texts: Vec<&str> = tree.texts().map(|(path, _)| path).collect();
        assert_eq!(texts, [".gitignore", "fuzz/c.rs"]);
        assert!(tree.has("fuzz") && tree.has("fuzz/c.rs") && !tree.has("target"));
    }
}
