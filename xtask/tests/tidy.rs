//! The project keeps its own habits.

use std::path::Path;

#[test]
fn the_project_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let found: Vec<String> = xtask::tidy::tidy(&root).iter().map(ToString::to_string).collect();
    assert!(found.is_empty(), "cargo xtask tidy finds:\n{}", found.join("\n"));
}
