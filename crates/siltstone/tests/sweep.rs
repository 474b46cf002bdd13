//! Every fixture through the command: what Cassandra dumps, we dump; what it cannot, we read or refuse.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use serde_json::Value;
use testkit::fixtures::{self, Fixture};
use testkit::json::{difference, without_expired};

/// Fixtures that are refused, with what the error must say.
const REFUSED: [(&str, &str); 1] = [("random_partitioner", "only Murmur3Partitioner is read")];

/// The output, or what is on stderr.
fn dump(fixture: &Fixture, more: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone"));
    let output = command.args(["sstable", "dump"]).args(more).arg(&fixture.data).output().unwrap();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8(output.stdout).unwrap()),
        Some(1) => Err(String::from_utf8(output.stderr).unwrap()),
        other => panic!("{}: the exit code is {other:?}", fixture.name),
    }
}

/// The text without what depends on when it was printed.
fn timeless(text: &str) -> String {
    text.replace("\"expired\" : true", "").replace("\"expired\" : false", "")
}

/// What is wrong with the dump of a fixture.
fn check(fixture: &Fixture) -> Result<(), String> {
    if let Some((_, why)) = REFUSED.iter().find(|(name, _)| fixture.name.contains(name)) {
        let error = dump(fixture, &[]).err().ok_or("it is not refused")?;
        return if error.contains(why) {
            Ok(())
        } else {
            Err(format!("the error does not say why: {error}"))
        };
    }
    let ours = dump(fixture, &[])?;
    let Some(theirs) = fixture.dump_text() else {
        let parsed: Result<Value, _> = serde_json::from_str(&ours);
        return parsed.map(drop).map_err(|error| error.to_string());
    };
    if timeless(&ours).trim_end() == timeless(&theirs).trim_end() {
        return Ok(());
    }
    let parse =
        |text: &str| serde_json::from_str(text).map(without_expired).map_err(|error| error.to_string());
    match difference(&parse(&ours)?, &parse(&theirs)?) {
        Some(difference) => Err(difference),
        None => Err("the layout differs, though the JSON is equal".to_owned()),
    }
}

#[test]
fn dumps_are_cassandras() {
    let fixtures = fixtures::all();
    let failures: Vec<String> = fixtures
        .iter()
        .filter_map(|fixture| Some(format!("{}: {}", fixture.name, check(fixture).err()?)))
        .collect();
    let dumped = fixtures.iter().filter(|fixture| fixture.dump.is_some()).count();
    println!("{} fixtures, of which {dumped} are compared", fixtures.len());
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), fixtures.len(), failures.join("\n"));
}

/// The lines that a dump's partition should be in the format of JSON lines.
fn lines_of(partition: &Value) -> Vec<Value> {
    let key = &partition["partition"]["key"];
    let rows = partition["rows"].as_array().unwrap();
    let mut lines = Vec::new();
    if rows.is_empty() || partition["partition"].get("deletion_info").is_some() {
        let mut line = partition["partition"].clone();
        line["type"] = "partition".into();
        lines.push(line);
    }
    for row in rows {
        let mut line = row.clone();
        line["key"] = key.clone();
        lines.push(line);
    }
    lines
}

#[test]
fn json_lines_lose_nothing() {
    for fixture in fixtures::all().iter().filter(|fixture| !fixture.name.contains("large")) {
        let Ok(whole) = dump(fixture, &[]) else { continue };
        let lines = dump(fixture, &["--format", "jsonl"]).unwrap();
        let whole: Value = without_expired(serde_json::from_str(&whole).unwrap());
        let expected: Vec<Value> = whole.as_array().unwrap().iter().flat_map(lines_of).collect();
        let lines = lines.lines().map(|line| without_expired(serde_json::from_str(line).unwrap()));
        let lines: Vec<Value> = lines.collect();
        assert_eq!(difference(&lines.into(), &expected.into()), None, "{}", fixture.name);
    }
}
