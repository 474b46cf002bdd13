//! The example in README.md, as a program has it.

use std::path::Path;

use siltstone::Result;

/// Its lines are those of README.md, save for where the database is.
#[rustfmt::skip]
fn example(folder: &Path) -> Result<siltstone::database::Page> {
    // Begin.
use siltstone::database::{Database, Options, Slice, Write};

let database = Database::open(folder, Options::default()).wait()?;
let create = "CREATE TABLE IF NOT EXISTS app.events (user text, at timestamp, what text, PRIMARY KEY (user, at))";
let events = database.create_table(create).wait()?;
events.write(Write::insert("alice", "2024-01-31T12:00:00Z").set("what", "login")).wait()?;
let page = events.slice("alice", Slice::all().reverse().limit(10)).wait()?;
    // End.
    Ok(page)
}

/// What stands between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let text = text.split_once(from).unwrap().1;
    text.split_once(to).unwrap().0.trim()
}

#[test]
fn the_example_in_the_readme_is_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let ours = between(include_str!("readme.rs"), "// Begin.\n", "// End.\n");
    assert_eq!(between(&readme, "```rust\n", "```\n").replace("\"events.db\"", "folder"), ours);
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let page = example(folder.path()).unwrap();
        let rows: Vec<String> = page.rows.iter().map(|row| row.to_json().unwrap()).collect();
        assert_eq!(rows, [r#"{"user":"alice","at":"2024-01-31 12:00:00.000Z","what":"login"}"#]);
    }
}
