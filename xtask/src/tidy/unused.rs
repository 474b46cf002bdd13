//! Every dependency of a manifest is named by some file of its crate.

use super::Finding;
use super::arrows::entries;
use super::mask::words;
use super::source::Source;
use super::tree::Tree;

/// Checks the manifests of all crates. The workspace's own lists what crates may choose from.
pub fn check(tree: &Tree, sources: &[Source<'_>], found: &mut Vec<Finding>) {
    for (path, text) in tree.texts() {
        let Some(folder) = path.strip_suffix("Cargo.toml").filter(|folder| !folder.is_empty()) else {
            continue;
        };
        for entry in entries(text) {
            let Some(key) = entry.dependency_key() else { continue };
            let name = key.replace('-', "_");
            let mut sources = sources.iter().filter(|source| source.path.starts_with(folder));
            if !sources.any(|source| words(&source.masked.code, &name).next().is_some()) {
                found.push(Finding::new(path, entry.number, format!("the dependency {key} is not used")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_not_used() {
        let manifest =
            "[package]\nname = \"a\"\n\n[dependencies]\nnum-bigint.workspace = true\nsnap = \"1\"\n";
        let text = "//! snap\nuse num_bigint::BigInt;\n";
        let tree = Tree::of(&[("crates/a/Cargo.toml", manifest), ("crates/b/src/lib.rs", "use snap::x;")]);
        let mut found = Vec::new();
        check(&tree, &[Source::new("crates/a/src/lib.rs", text)], &mut found);
        assert_eq!(found, [Finding::new("crates/a/Cargo.toml", 6, "the dependency snap is not used")]);
    }
}
