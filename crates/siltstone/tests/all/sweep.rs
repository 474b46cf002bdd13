//! Every fixture through the command: what Cassandra dumps, we dump; what it cannot, we read or refuse.

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
    assert!(dumped >= 150, "{dumped}");
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

/// Members that only JSON lines have, where a dump for people does not tell all.
const MORE: [&str; 5] = ["bytes", "clustering_bytes", "key_bytes", "name_bytes", "path_bytes"];

/// Times that are numbers in JSON lines, where their text would tell another one.
const TIMES: [&str; 4] = ["tstamp", "expires_at", "marked_deleted", "local_delete_time"];

/// A line, or a part of it, without what it tells beyond a dump.
fn as_dumped(ours: Value, theirs: &Value) -> Value {
    match (ours, theirs) {
        (Value::Object(mut ours), Value::Object(theirs)) => {
            if let Some(deletion) = ours.shift_remove("shadowable_deletion_info")
                && theirs.get("deletion_info") == Some(&deletion)
            {
                ours.insert("deletion_info".to_owned(), deletion);
            }
            ours.retain(|name, _| {
                let is_inherited =
                    ["ttl", "expires_at"].contains(&name.as_str()) && !theirs.contains_key(name);
                !MORE.contains(&name.as_str()) && !is_inherited
            });
            let member = |(name, value): (String, Value)| {
                let value = match theirs.get(&name) {
                    Some(text @ Value::String(_)) if TIMES.contains(&name.as_str()) && value.is_number() => {
                        text.clone()
                    }
                    Some(theirs) => as_dumped(value, theirs),
                    None => value,
                };
                (name, value)
            };
            Value::Object(ours.into_iter().map(member).collect())
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            ours.into_iter().zip(theirs).map(|(ours, theirs)| as_dumped(ours, theirs)).collect()
        }
        (ours, _) => ours,
    }
}

#[test]
fn json_lines_lose_nothing() {
    for fixture in fixtures::all().iter().filter(|fixture| !fixture.name.contains("large")) {
        let Ok(whole) = dump(fixture, &[]) else { continue };
        let lines = dump(fixture, &["--format", "jsonl"]).unwrap();
        let whole: Value = without_expired(serde_json::from_str(&whole).unwrap());
        let expected: Value = whole.as_array().unwrap().iter().flat_map(lines_of).collect();
        let lines: Value =
            lines.lines().map(|line| without_expired(serde_json::from_str(line).unwrap())).collect();
        assert_eq!(difference(&as_dumped(lines, &expected), &expected), None, "{}", fixture.name);
    }
}
