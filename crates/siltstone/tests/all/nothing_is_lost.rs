//! What was answered is there, after a kill, and where the folder of its table was out of sight for a while; what could not be kept is refused.

use std::path::Path;

use siltstone::database::{Batch, Database, OnCorruption, Options, Value, Write};

use crate::database::{CREATE, open, options};
use crate::scanned::scanned;

/// The folder that a child is to write to until it is killed.
const KILLED: &str = "SILTSTONE_TEST_KILLED";

#[test]
fn a_child_writes_until_it_is_killed() {
    let Ok(folder) = std::env::var(KILLED) else { return };
    let database = open(Path::new(&folder), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    for number in 0.. {
        table.write(Write::insert(number, 1).set("v", "answered")).wait().unwrap();
        println!("answered {number}");
        if number % 50 == 49 {
            table.flush().wait().unwrap();
        }
    }
}

#[test]
fn a_kill_loses_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "nothing_is_lost::a_child_writes_until_it_is_killed", "--nocapture"])
        .env(KILLED, folder.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap());
    let is_answer = |line: &String| line.starts_with("answered ");
    let answered =
        std::io::BufRead::lines(lines).map(|line| line.unwrap()).filter(is_answer).take(180).count();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(answered, 180);
    let database = open(folder.path(), 3);
    let table = database.table("t").unwrap();
    for number in 0..answered as i32 {
        assert!(table.get(number, 1).wait().unwrap().is_some(), "{number} was answered");
    }
}

/// As where its disk is not mounted.
#[test]
fn rows_of_a_table_that_is_out_of_sight_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 2);
    let table = database.create_table(CREATE).wait().unwrap();
    table.write((0..20).map(|k| Write::insert(k, 0)).collect::<Batch>()).wait().unwrap();
    let (own, away) = (table.folder().to_path_buf(), folder.path().join("away"));
    database.close().wait().unwrap();
    std::fs::rename(&own, &away).unwrap();
    let error = Database::open(folder.path(), options(3)).wait().unwrap_err().to_string();
    assert!(error.contains("writes of a table"), "{error}");
    std::fs::rename(&away, &own).unwrap();
    let database = open(folder.path(), 3);
    assert_eq!(scanned(&database.table("ks.t").unwrap(), 100).len(), 20);
    database.table("ks.t").unwrap().write(Write::insert(20, 0)).wait().unwrap();
    database.close().wait().unwrap();
    std::fs::rename(&own, &away).unwrap();
    let salvaging = Options { on_corruption: OnCorruption::Salvage, ..options(1) };
    Database::open(folder.path(), salvaging).wait().unwrap().close().wait().unwrap();
    std::fs::rename(&away, &own).unwrap();
    assert_eq!(scanned(&open(folder.path(), 1).table("ks.t").unwrap(), 100).len(), 20, "one was given up");
}

#[test]
fn a_database_is_where_its_path_can_stand_in_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let error = Database::open(folder.path().join("a,b"), options(1)).wait().unwrap_err().to_string();
    assert!(error.contains("without commas"), "{error}");
    // Nor may the folder of a table be a link to such a place.
    let database = open(folder.path(), 1);
    let own = database.create_table(CREATE).wait().unwrap().folder().to_path_buf();
    database.close().wait().unwrap();
    let elsewhere = folder.path().join("else,where");
    std::fs::rename(&own, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &own).unwrap();
    let error = Database::open(folder.path(), options(1)).wait().unwrap_err().to_string();
    assert!(error.contains("else,where") && error.contains("without commas"), "{error}");
}

#[test]
fn a_field_that_is_not_there_is_refused_by_whatever_name() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let create = "CREATE TYPE ks.p (a int, b int); CREATE TABLE ks.t (k int PRIMARY KEY, u p)";
    let table = database.create_table(create).wait().unwrap();
    let write = |field: Value, value: i32| table.write(Write::update(1, ()).put("u", field, value)).wait();
    write(Value::from("a"), 5).unwrap();
    write(Value::from(1), 6).unwrap();
    for (field, named) in [(Value::from("c"), "c"), (Value::from(2), "2"), (Value::from(-1), "-1")] {
        let error = write(field.clone(), 7).unwrap_err().to_string();
        assert!(error.contains(&format!("u has no field {named}")), "{error}");
        let removed = table.write(Write::update(1, ()).remove("u", field)).wait();
        assert_eq!(removed.unwrap_err().to_string(), error);
    }
    let row = table.get(1, ()).wait().unwrap().unwrap().to_json().unwrap();
    assert!(row.contains(r#""u":{"a": 5, "b": 6}"#), "{row}");
}
