//! Which crate may know which, as their manifests say; ARCHITECTURE.md draws it.
//!
//! ```text
//! perf ──► siltstone ──► storage ──► sstable ──► runtime
//!              │            │           │
//!              └────────────┴───────────┴──────► model ◄── testkit (for tests)
//! ```

use super::Finding;
use super::tree::Tree;

/// The crates of the house with those that each may depend on. In tests each may use [`TEST_CRATE`] as well.
const ARROWS: [(&str, &[&str]); 8] = [
    ("model", &[]),
    ("runtime", &[]),
    ("sstable", &["model", "runtime"]),
    ("storage", &["model", "runtime", "sstable"]),
    ("siltstone", &["model", "runtime", "sstable", "storage"]),
    ("perf", &["model", "runtime", "sstable", "storage", "siltstone"]),
    ("testkit", &["model", "runtime"]),
    ("xtask", &["testkit"]),
];

/// What tests share.
const TEST_CRATE: &str = "testkit";

/// The folder of the crates.
const CRATES: &str = "crates/";

/// Checks the manifests of all crates of the workspace.
pub fn check(tree: &Tree, found: &mut Vec<Finding>) {
    for (path, text) in tree.texts() {
        let Some(folder) = path.strip_suffix("/Cargo.toml") else { continue };
        let name = folder.strip_prefix(CRATES).unwrap_or(folder);
        // What is built apart from the workspace, such as fuzz/, has a workspace table of its own.
        if !text.lines().any(|line| line.trim() == "[workspace]") {
            check_manifest(path, name, text, found);
        }
    }
}

fn check_manifest(path: &str, name: &str, text: &str, found: &mut Vec<Finding>) {
    if !entries(text).any(|entry| entry.section == "lints" && entry.line == "workspace = true") {
        found.push(Finding::new(path, 0, "a crate has `[lints] workspace = true`"));
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        found.push(Finding::new(path, 0, format!("the plan has no crate {name}")));
        return;
    };
    for entry in entries(text) {
        let Some(dependency) = entry.house_dependency() else { continue };
        let is_for_tests = entry.section.contains("dev-dependencies") && dependency == TEST_CRATE;
        if !allowed.contains(&dependency) && !is_for_tests {
            let what = format!("an arrow that the plan does not draw: {name} → {dependency}");
            found.push(Finding::new(path, entry.number, what));
        }
    }
}

/// A line of a manifest, with the table that it is in.
pub(super) struct Entry<'a> {
    section: &'a str,
    line: &'a str,
    /// Its number, from 1 on.
    pub(super) number: usize,
}

/// The lines of a manifest, without comments.
pub(super) fn entries(text: &str) -> impl Iterator<Item = Entry<'_>> {
    let mut section = "";
    text.lines().enumerate().map(move |(index, line)| {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        }
        Entry { section, line, number: index + 1 }
    })
}

impl<'a> Entry<'a> {
    /// The crate of the house that is depended on here.
    fn house_dependency(&self) -> Option<&'static str> {
        let name = self.dependency()?;
        let name = name.strip_prefix("siltstone-").unwrap_or(name);
        ARROWS.iter().map(|(known, _)| *known).find(|known| *known == name)
    }

    /// The name of what is depended on here, as Cargo knows it.
    fn dependency(&self) -> Option<&'a str> {
        match self.line.split_once("package = \"") {
            Some((_, package)) => package.split('"').next(),
            None => self.dependency_key(),
        }
    }

    /// The name of what is depended on here, as the sources know it.
    pub(super) fn dependency_key(&self) -> Option<&'a str> {
        let is_head = self.line.starts_with('[');
        if let Some((_, name)) = self.section.split_once("dependencies.") {
            return is_head.then_some(name);
        }
        let is_dependency = self.section.ends_with("dependencies") && !is_head && !self.line.is_empty();
        is_dependency.then(|| self.line.split(['.', '=']).next().unwrap_or_default().trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found_in(path: &str, text: &str) -> Vec<String> {
        let mut found = Vec::new();
        check(&Tree::of(&[(path, text)]), &mut found);
        found.iter().map(|finding| format!("{}: {}", finding.line, finding.what)).collect()
    }

    #[test]
    fn arrows_run_one_way() {
        let manifest = |dependencies: &str| format!("[lints]\nworkspace = true\n{dependencies}");
        for (name, bad, arrow) in [
            ("model", "[dependencies]\nruntime.workspace = true\n", "model → runtime"),
            (
                "runtime",
                "[dependencies]\nx = { package = \"siltstone-model\", path = \"..\" }\n",
                "runtime → model",
            ),
            ("sstable", "[dependencies.siltstone]\npath = \"..\"\n", "sstable → siltstone"),
            ("sstable", "[dependencies]\ntestkit.workspace = true\n", "sstable → testkit"),
            (
                "testkit",
                "[target.'cfg(unix)'.dependencies]\nsiltstone-sstable = \"1\"\n",
                "testkit → sstable",
            ),
        ] {
            let found = found_in(&format!("crates/{name}/Cargo.toml"), &manifest(bad));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(arrow), "{found:?}");
        }
        let good = "[dependencies]\nmodel.workspace = true # runtime\nserde = \"1\"\n[dev-dependencies]\ntestkit.workspace = true\n";
        assert_eq!(found_in("crates/sstable/Cargo.toml", &manifest(good)), [""; 0]);
    }

    #[test]
    fn a_crate_is_in_the_plan_and_takes_its_lints() {
        let found = found_in("crates/attic/Cargo.toml", "[package]\nname = \"attic\"\n");
        assert_eq!(found, ["0: a crate has `[lints] workspace = true`", "0: the plan has no crate attic"]);
        assert_eq!(found_in("fuzz/Cargo.toml", "[workspace]\n[dependencies]\nsstable = \"1\"\n"), [""; 0]);
    }
}
