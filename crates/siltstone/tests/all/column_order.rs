//! Columns in an order of their own: a file lists them as its writer orders names, and not every writer does it as
//! Cassandra does.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/cassandra/mc/small/sstables/alltypes")
}

/// A copy of a table whose last column got a name that Cassandra would put first. Statistics.db of `mc` has no checksum.
fn renamed() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for file in std::fs::read_dir(fixture()).expect("the fixture is there") {
        let path = file.expect("it can be listed").path();
        let name = path.file_name().expect("files have names");
        let mut bytes = std::fs::read(&path).expect("it can be read");
        if name == "mc-1-big-Statistics.db" {
            let at =
                bytes.windows(8).rposition(|window| window == b"c_varint").expect("the column is listed");
            bytes[at..at + 8].copy_from_slice("évarint".as_bytes());
        }
        std::fs::write(folder.path().join(name), bytes).expect("it can be written");
    }
    let data = folder.path().join("mc-1-big-Data.db");
    (folder, data)
}

fn run(arguments: &[&str], data: &Path) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_siltstone"))
        .args(["sstable", arguments[0]])
        .arg(data)
        .args(&arguments[1..])
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Each row's cells, by the names of their columns.
fn cells(row: &Value) -> Vec<(String, Value)> {
    let cells = row["cells"].as_array().expect("a row has cells");
    let mut cells: Vec<_> =
        cells.iter().map(|cell| (cell["name"].to_string(), cell["value"].clone())).collect();
    cells.sort_by(|a, b| a.0.cmp(&b.0));
    cells
}

#[test]
fn a_read_names_the_columns_as_a_dump_does() {
    let (_folder, data) = renamed();
    let dump: Value =
        serde_json::from_slice(&run(&["dump", "--key", "[\"1\"]"], &data)).expect("a dump is JSON");
    let dumped: Vec<_> = dump[0]["rows"].as_array().expect("there are rows").iter().map(cells).collect();
    let read = run(&["read", "--key", "[\"1\"]"], &data);
    let lines = std::str::from_utf8(&read).expect("lines are text").lines();
    let read: Vec<_> =
        lines.map(|line| cells(&serde_json::from_str(line).expect("a line is JSON"))).collect();
    assert!(!read.is_empty());
    assert_eq!(read, dumped);
}
