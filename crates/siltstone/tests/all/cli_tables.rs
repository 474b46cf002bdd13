//! `siltstone table …`: what it prints, and how it ends.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use siltstone::database::{Database, Options, Write};
use siltstone::table_schema::TableSchema;
use testkit::command::{code, json_lines as lines, stderr, stdout};
use testkit::fixtures;

const CREATE: &str = "CREATE TABLE ks.t (k text, c int, v text, tags set<int>, PRIMARY KEY (k, c))";

/// `siltstone table COMMAND DIR …`
fn table(command: &str, dir: &Path, arguments: &[&str]) -> Output {
    let mut siltstone = Command::new(env!("CARGO_BIN_EXE_siltstone"));
    siltstone.args([OsStr::new("table"), OsStr::new(command), dir.as_os_str()]).args(arguments);
    siltstone.output().unwrap()
}

#[test]
fn rows_go_in_and_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data-of-mine");
    let created = table("create", &dir, &["--schema", CREATE]);
    assert_eq!(code(&created), 0, "{}", stderr(&created));
    let rows = folder.path().join("rows.jsonl");
    let text = "{\"k\":\"a\",\"c\":1,\"v\":\"x\",\"tags\":[2,1]}\n\n{\"k\":\"a\",\"c\":2}\n\
        {\"type\":\"row\",\"key\":[\"b\"],\"clustering\":[7],\"cells\":[{\"name\":\"v\",\"value\":\"y\"}]}\n";
    std::fs::write(&rows, text).unwrap();
    let csv = folder.path().join("rows.csv");
    std::fs::write(&csv, "c,k,v\n3,a,\"with, comma\"\n4,a,\n").unwrap();
    let loaded = table("load", &dir, &["t", "--in", rows.to_str().unwrap(), "--in", csv.to_str().unwrap()]);
    assert_eq!((code(&loaded), stdout(&loaded)), (0, "5 rows\n"), "{}", stderr(&loaded));
    let row = lines(&table("get", &dir, &["ks.t", "a", "1"])).remove(0);
    assert_eq!(row, json!({"k": "a", "c": 1, "v": "x", "tags": [1, 2]}));
    let of = |output: &Output| -> Vec<i64> {
        lines(output).iter().map(|row| row["c"].as_i64().unwrap()).collect()
    };
    assert_eq!(of(&table("slice", &dir, &["t", "a", "--from", "2", "--reverse"])), [4, 3, 2]);
    assert_eq!(of(&table("slice", &dir, &["t", "[\"a\"]", "--to", "[2]", "--limit", "1"])), [1]);
    let all = lines(&table("scan", &dir, &["t", "--shards", "3"]));
    assert_eq!(all.len(), 5);
    assert_eq!(lines(&table("scan", &dir, &["t", "--limit", "2", "--columns", "c,k"])).len(), 2);
    let raw = lines(&table("scan", &dir, &["t", "--raw"]));
    assert!(raw.iter().any(|row| row["raw"]["c"] == "00000007" && row["raw"]["v"] == "79"), "{raw:?}");
    for command in ["compact", "flush"] {
        assert_eq!(code(&table(command, &dir, &["t"])), 0);
    }
    assert_eq!(lines(&table("scan", &dir, &["t"])), all);
    assert!(stdout(&table("stats", &dir, &[])).contains("siltstone_sstables{"));
    let snapshot = table("snapshot", &dir, &["t", "--name", "s"]);
    let copy = Path::new(stdout(&snapshot).trim_end()).to_path_buf();
    assert_eq!(lines(&table("scan", &copy, &[])), all);
    assert_eq!(lines(&table("scan", &copy, &["ks.t"])), all);
    let other = table("compact", &copy, &["ks.u"]);
    assert_eq!(code(&other), 2, "{}", stderr(&other));
    assert!(stderr(&other).contains("is the folder of the table ks.t, not of ks.u"), "{}", stderr(&other));
    assert_eq!(lines(&table("get", &copy, &["a", "2"])).len(), 1);
    assert_eq!(code(&table("drop", &dir, &["ks.t"])), 0);
    assert_eq!(code(&table("scan", &dir, &["t"])), 2);
    assert_eq!(lines(&table("scan", &copy, &[])), all);
}

#[test]
fn what_is_wrong_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert_eq!(code(&table("create", dir, &["--schema", CREATE])), 0);
    let pairs = "CREATE TABLE ks.pairs (a int, b int, c int, d int, PRIMARY KEY ((a, b), c, d))";
    assert_eq!(code(&table("create", dir, &["--schema", pairs])), 0);
    let wrong: [(&str, &[&str], u8, &str); 13] = [
        ("create", &["--schema", CREATE], 2, "there is a table ks.t already"),
        ("create", &["--schema", "CREATE TABLE x"], 1, "statement:1:"),
        ("get", &["ks.t", "a"], 2, "ks.t has 1 clustering columns, not 0"),
        ("get", &["ks.t", "a", "x"], 2, "c: x is not an int"),
        ("get", &["pairs", "[1,2", "[1,2]"], 2, "KEY [1,2 is no JSON array: "),
        ("slice", &["pairs", "[1,2]", "--from", "[1,"], 2, "--from [1, is no JSON array: "),
        ("scan", &[], 2, "TABLE is missing: one of ks.pairs, ks.t"),
        ("scan", &["t", "--shards", "0"], 2, "0 is not in 1..=1024"),
        ("scan", &["t", "--at", "now"], 2, "seconds since 1970 were expected, or a time as"),
        ("slice", &["t", ""], 2, "k: a partition key has 1 to 65535 bytes"),
        ("snapshot", &["t", "--name", "../x"], 2, "\"../x\" is no name of a snapshot"),
        ("scan", &["t", "--columns", "w"], 2, "the table ks.t has no column w"),
        ("slice", &["ks.u", "a"], 2, "there is no table ks.u, but ks.pairs, ks.t"),
    ];
    for (command, arguments, exit, message) in wrong {
        let output = table(command, dir, arguments);
        assert_eq!(code(&output), i32::from(exit), "{command} {arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{command} {arguments:?}: {}", stderr(&output));
    }
    let rows = dir.join("rows.jsonl");
    std::fs::write(&rows, "{\"k\":\"a\",\"c\":1}\n{\"k\":\"a\"").unwrap();
    let output = table("load", dir, &["t", "--in", rows.to_str().unwrap()]);
    assert!(stderr(&output).contains("rows.jsonl:2: "), "{}", stderr(&output));
    assert_eq!(code(&output), 1);
    assert_eq!(code(&table("scan", &dir.join("nowhere"), &["t"])), 1);
}

#[test]
fn a_copy_of_cassandras_folder_is_read() {
    let folder = fixtures::table("cassandra/nb/small/sstables/statics");
    let schema = folder.ancestors().nth(2).unwrap().join("schema.cql");
    // Without a schema the names of the keys are made up.
    let rows = lines(&table("scan", &folder, &[]));
    assert!(!rows.is_empty() && rows[0].get("key").is_some() && rows[0].get("column1").is_some());
    // Nor do those of a view, whose types are those of its table.
    let view = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()) {
        std::fs::copy(&file, view.path().join(file.file_name().unwrap())).unwrap();
    }
    let create =
        "CREATE MATERIALIZED VIEW fx_small.by_c AS SELECT * FROM fx_small.statics PRIMARY KEY (c, k);";
    std::fs::write(view.path().join("schema.cql"), create).unwrap();
    assert_eq!(lines(&table("scan", view.path(), &[])), rows);
    // Nobody says for how long its tombstones are to be kept.
    let compacted = table("compact", view.path(), &[]);
    assert!(
        code(&compacted) == 1 && stderr(&compacted).contains("it is only read"),
        "{}",
        stderr(&compacted)
    );
    assert_eq!(lines(&table("scan", view.path(), &[])), rows);
    let whole = std::fs::read_to_string(&schema).unwrap();
    let create = whole.split("CREATE TABLE ").find(|text| text.starts_with("fx_small.statics ")).unwrap();
    let own = tempfile::tempdir().unwrap();
    let own = own.path().join("schema.cql");
    std::fs::write(&own, format!("CREATE TABLE {create}")).unwrap();
    let named = lines(&table("scan", &folder, &["--schema", own.to_str().unwrap()]));
    assert_eq!(named.len(), rows.len());
    assert!(named[0].get("k").is_some());
}

/// Of what stands before a wrong line all is there.
#[test]
fn what_is_before_a_wrong_line_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert_eq!(code(&table("create", dir, &["--schema", CREATE])), 0);
    let load = |name: &str, text: String| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        let output = table("load", dir, &["t", "--in", path.to_str().unwrap()]);
        assert_eq!(code(&output), 1);
        stderr(&output).to_owned()
    };
    let of_dump = |c| {
        format!(
            "{{\"type\":\"row\",\"key\":[\"a\"],\"clustering\":[{c}],\"cells\":[{{\"name\":\"v\",\"value\":\"y\"}}]}}\n"
        )
    };
    let lines: String = (0..300).map(of_dump).collect();
    let told = load("a.jsonl", lines + "{");
    assert!(told.contains("a.jsonl:301: "), "{told}");
    let lines: String = (0..300).map(|c| format!("b,{c}\n")).collect();
    assert!(load("b.csv", format!("k,c\n{lines}b,1\n\"c,7\n8\n")).contains("b.csv:303: a field in quotes"));
    assert!(
        load("c.jsonl", "{\"k\":\"c\",\"c\":1}\n{\"k\":\"c\"}".to_owned()).contains("c.jsonl:2: neither")
    );
    assert_eq!(lines_of(dir), 300 + 300 + 1);
    let forgotten = load("c.jsonl", "{\"k\":\"c\",\"c\":null,\"typo\":null}".to_owned());
    assert!(forgotten.contains("c.jsonl:1: neither"), "{forgotten}");
    let twice = load("c.jsonl", "{\"k\":\"c\",\"c\":1,\"c\":2}".to_owned());
    assert!(twice.contains("c.jsonl:1: \"c\" is there twice"), "{twice}");
    let wrong = |header: &str| load("e.csv", format!("{header}\n1,2\n"));
    assert!(wrong("k;c").contains("e.csv:1: there is no column \"k;c\""));
    assert!(wrong("k,c,k").contains("e.csv:1: the column k is there twice"));
    // A row that is one, but not of this table, is only noticed with others; what is behind it is not written.
    let row = |c: u32| if c == 400 { "d,many\n".to_owned() } else { format!("d,{c}\n") };
    let told = load("d.csv", format!("k,c\n{}", (0..900).map(row).collect::<String>()));
    assert!(told.contains("d.csv:402: ") && told.contains("many"), "{told}");
    assert_eq!(lines_of(dir), 300 + 300 + 1 + 400);
    // What the SSTables of the table cannot hold, and half a range tombstone.
    let late = "{\"type\":\"row\",\"key\":[\"e\"],\"clustering\":[1],\"cells\":[{\"name\":\"v\",\"value\":\"y\",\
        \"tstamp\":5,\"ttl\":60,\"expires_at\":4000000000}]}";
    let told = load("g.jsonl", of_dump(302) + late);
    assert!(told.contains("g.jsonl:2: ") && told.contains("2038"), "{told}");
    let half = "{\"type\":\"range_tombstone_bound\",\"key\":[\"e\"],\"start\":{\"type\":\"inclusive\",\"clustering\":[1],\
        \"deletion_info\":{\"marked_deleted\":5,\"local_delete_time\":5}}}\n";
    let told = load("h.jsonl", half.to_owned() + &of_dump(303));
    assert!(told.contains("h.jsonl:1: this end of a range tombstone"), "{told}");
    assert_eq!(lines_of(dir), 300 + 300 + 1 + 400 + 2);
}

/// Each of two lines tells a deletion of one row: the table has room for the greater one.
#[test]
fn two_deletions_of_a_row_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert_eq!(code(&table("create", dir, &["--schema", CREATE])), 0);
    let line = |name: &str, at: i64| {
        format!(
            "{{\"type\":\"row\",\"key\":[\"a\"],\"clustering\":[1],\"{name}\":{{\"marked_deleted\":{at},\"local_delete_time\":1}},\"cells\":[]}}\n"
        )
    };
    let lines = line("deletion_info", 5) + &line("shadowable_deletion_info", 9);
    let rows = dir.join("rows.jsonl");
    std::fs::write(&rows, lines + "{\"type\":\"row\",\"key\":[\"b\"],\"clustering\":[1],\"cells\":[{\"name\":\"v\",\"value\":\"x\",\"tstamp\":5}]}").unwrap();
    let loaded = table("load", dir, &["t", "--in", rows.to_str().unwrap()]);
    assert_eq!(code(&loaded), 0, "{}", stderr(&loaded));
    assert_eq!(lines_of(dir), 1);
}

#[test]
fn a_mark_of_byte_order_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let schema = dir.join("schema.cql");
    std::fs::write(&schema, format!("\u{feff}{CREATE}")).unwrap();
    let created = table("create", dir, &["--schema", schema.to_str().unwrap()]);
    assert_eq!(code(&created), 0, "{}", stderr(&created));
    let quoted = "\u{feff}\"k\",\"c\"\r\n\"a\",\"1\"\r\n";
    for (name, text) in [("a.csv", quoted), ("b.jsonl", "\u{feff}{\"k\":\"a\",\"c\":2}\n")] {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        let loaded = table("load", dir, &["t", "--in", path.to_str().unwrap()]);
        assert_eq!(code(&loaded), 0, "{}", stderr(&loaded));
    }
    assert_eq!(lines_of(dir), 2);
    std::fs::write(dir.join("latin.jsonl"), b"{\"k\":\"a\",\"c\":3}\n{\"k\":\"\xe9\"}").unwrap();
    let loaded = table("load", dir, &["t", "--in", dir.join("latin.jsonl").to_str().unwrap()]);
    assert!(stderr(&loaded).contains("latin.jsonl:2: it is not UTF-8"), "{}", stderr(&loaded));
    assert_eq!((code(&loaded), lines_of(dir)), (1, 3));
}

/// As one that is newer.
#[test]
fn a_table_with_a_compressor_that_is_not_known_is_read_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let create = format!("{CREATE} WITH compression = {{'sstable_compression': 'ZstdWithDictsCompressor'}}");
    let created = table("create", dir, &["--schema", &create]);
    assert_eq!(code(&created), 0, "{}", stderr(&created));
    let rows = dir.join("rows.csv");
    std::fs::write(&rows, "k,c\na,1\n").unwrap();
    let loaded = table("load", dir, &["t", "--in", rows.to_str().unwrap()]);
    assert_eq!(code(&loaded), 0, "{}", stderr(&loaded));
    assert_eq!(lines_of(dir), 1);
}

/// What DESCRIBE prints of a keyspace makes each of its tables, and stands as it is in the folder of one.
#[test]
fn one_of_several_tables_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, path) = (folder.path().join("db"), folder.path().join("schema.cql"));
    let text = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy'};\n\
                CREATE TYPE ks.point (x int, y int);\nCREATE TYPE other.point (z int);\n\
                CREATE TABLE ks.t (k text PRIMARY KEY, p frozen<point>);\n\
                CREATE TABLE ks.\"Mixed\" (k int, \"Key\" int, v int, PRIMARY KEY (k, \"Key\"));\n\
                CREATE INDEX i ON ks.t (p);\nALTER TABLE ks.t ADD v int;\n";
    std::fs::write(&path, text).unwrap();
    let schema = path.to_str().unwrap();
    let unnamed = table("create", &dir, &["--schema", schema]);
    assert_eq!(code(&unnamed), 1);
    let told = stderr(&unnamed);
    assert!(told.contains("schema.cql:5:1: one of several tables has to be named: ks.t, ks.Mixed"), "{told}");
    let made = table("create", &dir, &["t", "--schema", schema]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let own = std::fs::read_to_string(Path::new(stdout(&made).trim()).join("schema.cql")).unwrap();
    assert_eq!(
        own,
        "CREATE TYPE ks.point (x int, y int);\nCREATE TABLE ks.t (k text PRIMARY KEY, p frozen<point>);\n\
         ALTER TABLE ks.t ADD v int;\n"
    );
    let made = table("create", &dir, &["ks.\"Mixed\"", "--schema", schema]);
    assert_eq!(code(&made), 0, "{}", stderr(&made));
    let mixed = Path::new(stdout(&made).trim()).to_path_buf();
    std::fs::write(mixed.join("schema.cql"), text).unwrap();
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(&rows, r#"{"k":1,"Key":2,"v":3}"#).unwrap();
    for name in ["\"Mixed\"", "ks.Mixed"] {
        assert_eq!(code(&table("load", &dir, &[name, "--in", rows.to_str().unwrap()])), 0);
        let row = lines(&table("scan", &dir, &[name, "--columns", "\"Key\", v"]));
        assert_eq!(row, [json!({"Key": 2, "v": 3})]);
    }
    assert_eq!(lines(&table("get", &mixed, &["1", "2"])).len(), 1);
}

/// One that cannot be read is no matter to who reads another, but for who writes: the log is of both.
#[test]
fn tables_are_read_beside_one_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert_eq!(code(&table("create", dir, &["--schema", CREATE])), 0);
    let rows = dir.join("rows.jsonl");
    std::fs::write(&rows, r#"{"k":"a","c":1}"#).unwrap();
    assert_eq!(code(&table("load", dir, &["t", "--in", rows.to_str().unwrap()])), 0);
    let bad = dir.join("data/ks/bad-00000000000000000000000000000001");
    std::fs::create_dir(&bad).unwrap();
    std::fs::write(bad.join("schema.cql"), "CREATE TABLE ks.bad (").unwrap();
    assert_eq!(lines_of(dir), 1);
    assert_eq!(lines(&table("get", dir, &["ks.t", "a", "1"])).len(), 1);
    for (command, arguments) in [("scan", &["ks.bad"][..]), ("flush", &["ks.t"]), ("stats", &[])] {
        let output = table(command, dir, arguments);
        assert_eq!(code(&output), 1, "{command}");
        assert!(
            stderr(&output).contains("bad-00000000000000000000000000000001/schema.cql:"),
            "{}",
            stderr(&output)
        );
    }
    let none = table("scan", dir, &["ks.none"]);
    assert_eq!(code(&none), 2);
    assert!(stderr(&none).contains("there is no table ks.none, but ks.bad, ks.t"), "{}", stderr(&none));
    // Another folder may say that it has the table, while the one that is called so is empty.
    let left = dir.join("data/ks/gone-00000000000000000000000000000002");
    std::fs::create_dir_all(left.join("snapshots")).unwrap();
    let restored = dir.join("data/ks/restored");
    std::fs::create_dir(&restored).unwrap();
    std::fs::write(restored.join("schema.cql"), "CREATE TABLE gone (k int PRIMARY KEY)").unwrap();
    assert_eq!(lines(&table("scan", dir, &["ks.gone"])).len(), 0);
    std::fs::remove_dir_all(&bad).unwrap();
    // What is no database says what it is.
    let flushed = table("flush", &dir.join("data/ks"), &["t"]);
    assert!(code(&flushed) == 1 && !dir.join("data/ks/commitlog").exists(), "{}", stderr(&flushed));
    for (given, told) in [
        ("data/ks", "it has no data/, so it is no database: give the folder of one table, such as"),
        ("data", "it is the data of a database: give the folder that it is in"),
        ("commitlog", "neither a database nor a table"),
    ] {
        let output = table("scan", &dir.join(given), &["t"]);
        assert!(code(&output) == 1 && stderr(&output).contains(told), "{given}: {}", stderr(&output));
    }
}

/// Of a row without clustering columns nothing is left out but what a scan says of the rows that are not there.
#[test]
fn static_rows_are_what_they_say() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let create =
        "CREATE TABLE ks.t (key list<int>, c int, type text, s int STATIC, v int, PRIMARY KEY (type, c))"
            .replace("(type, c)", "(v, c)");
    assert_eq!(code(&table("create", dir, &["--schema", &create])), 0);
    let rows = dir.join("rows.jsonl");
    let load = |text: &str| {
        std::fs::write(&rows, text).unwrap();
        let loaded = table("load", dir, &["t", "--in", rows.to_str().unwrap()]);
        (code(&loaded), stderr(&loaded).to_owned())
    };
    assert_eq!(load(r#"{"v":1,"c":null,"s":2,"type":null,"key":null}"#).0, 0);
    let (exit, told) = load(r#"{"v":1,"s":2,"type":null}"#);
    assert!(exit == 1 && told.contains("has 1 clustering columns, of which 0 were given"), "{told}");
    let (exit, told) = load(r#"{"v":1,"c":null,"s":2,"typo":null}"#);
    assert!(exit == 1 && told.contains("typo"), "{told}");
    // Rows of columns that are called as the members of a dump's lines are.
    assert_eq!(load(r#"{"v":2,"c":1,"type":"row","key":[1,2]}"#), (0, String::new()));
    assert_eq!(lines_of(dir), 2);
}

/// A table is written by one at a time, and what is in a log is seen, whether it is opened as a part of its database or by its folder.
#[test]
fn a_table_and_its_database_are_not_written_apart() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    let made = table("create", &dir, &["--schema", CREATE]);
    let own = Path::new(stdout(&made).trim()).to_path_buf();
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(&rows, r#"{"k":"a","c":1}"#).unwrap();
    let database = Database::open(&dir, Options::default()).wait().unwrap();
    database.table("t").unwrap().write(Write::insert("b", 2)).wait().unwrap();
    let around = own.join("../").join(own.file_name().unwrap());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    for way in [&around, &link] {
        let load = table("load", way, &["--in", rows.to_str().unwrap()]);
        assert!(stderr(&load).contains("it is a table of the database in"), "{}", stderr(&load));
    }
    let load = table("load", &own, &["--in", rows.to_str().unwrap()]);
    assert!(
        code(&load) == 1 && stderr(&load).contains("it is a table of the database in"),
        "{}",
        stderr(&load)
    );
    assert!(stderr(&table("scan", &own, &[])).contains("is open already"));
    database.close().wait().unwrap();
    assert_eq!(lines(&table("scan", &own, &[])).len(), 1, "it is in the log");
}

/// What was written by the folder of a table, before that became one of a database, is that table's, whatever it is called there.
#[test]
fn what_was_written_by_a_folder_is_found_by_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let (copy, other) = (folder.path().join("copy"), folder.path().join("other"));
    std::fs::create_dir_all(other.join("data/ks")).unwrap();
    std::fs::write(other.join("data/ks/README"), "whatever").unwrap();
    std::fs::create_dir(&copy).unwrap();
    std::fs::write(copy.join("schema.cql"), CREATE).unwrap();
    let alone = Database::open_table_folder(&copy, None, Options::default()).wait().unwrap();
    alone.tables()[0].write(Write::insert("c", 3)).wait().unwrap();
    let moved = other.join("data/ks/t-0123456789abcdef0123456789abcdef");
    std::fs::rename(&copy, &moved).unwrap();
    let opened = Database::open(&other, Options::default()).wait().map(drop).unwrap_err().to_string();
    assert!(opened.contains("the table is open already"), "{opened}");
    alone.close().wait().unwrap();
    // Of which columns its rows are, nothing tells.
    std::fs::rename(moved.join("schema.cql"), moved.join("schema.gone")).unwrap();
    let told = stderr(&table("flush", &other, &["t"])).to_owned();
    assert!(told.contains("there are rows in its log"), "{told}");
    std::fs::rename(moved.join("schema.gone"), moved.join("schema.cql")).unwrap();
    for command in ["scan", "flush", "scan", "scan"] {
        let output = table(command, &other, &["ks.t"]);
        assert_eq!(code(&output), 0, "{command}: {}", stderr(&output));
        assert!(command == "flush" || lines(&output).len() == 1);
    }
    assert!(std::fs::read_dir(moved.join(".siltstone/commitlog/shard-0")).unwrap().next().is_none());
    let again = Database::open_table_folder(&moved, None, Options::default()).wait().map(drop);
    assert!(again.unwrap_err().to_string().contains("it is a table of the database in"));
    // With other columns the log of the database is left alone.
    let database = Database::open(&other, Options::default()).wait().unwrap();
    database.table("t").unwrap().write(Write::insert("d", 4)).wait().unwrap();
    database.close().wait().unwrap();
    let schema = folder.path().join("old.cql");
    std::fs::write(&schema, "CREATE TABLE ks.t (k text, c int, PRIMARY KEY (k, c))").unwrap();
    let scanned = table("scan", &moved, &["--schema", schema.to_str().unwrap()]);
    assert_eq!(lines(&scanned), [json!({"k": "c", "c": 3})]);
    assert!(
        stderr(&scanned).contains("what is in the log of the database is not read"),
        "{}",
        stderr(&scanned)
    );
    assert_eq!(lines(&table("scan", &moved, &[])).len(), 2);
}

/// Rows in the log of a folder are of its table, whatever that is called by now, and of no other columns than it had.
#[test]
fn what_was_written_by_a_folder_is_of_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let write = |folder: &Path, schema: &str, write: Write| {
        let parsed = TableSchema::parse(Path::new("schema"), schema, None).unwrap();
        let options = Options { shards: 3, ..Options::default() };
        let database = Database::open_table_folder(folder, Some(parsed), options).wait()?;
        database.tables()[0].write(write).wait().unwrap();
        database.close().wait()
    };
    std::fs::create_dir(&first).unwrap();
    let wide =
        "CREATE TABLE ks.t (k int PRIMARY KEY, a int, b bigint) WITH id = 0123456789abcdef0123456789abcdef";
    write(&first, wide, Write::insert(1, ()).set("b", 5)).unwrap();
    // Another name, and another id.
    std::fs::rename(&first, &second).unwrap();
    let told = |output: &Output| {
        assert_eq!(code(output), 1);
        stderr(output).to_owned()
    };
    assert!(told(&table("flush", &second, &[])).contains("there is no SSTable"));
    let schema = folder.path().join("schema.cql");
    let with = |columns: &str| {
        let text = format!("CREATE TABLE ks.t (k int PRIMARY KEY, {columns})");
        std::fs::write(&schema, &text).unwrap();
        text
    };
    let given = ["--schema", schema.to_str().unwrap()];
    for columns in ["a int", "a int, b int", "a int, b set<int>"] {
        with(columns);
        let output = told(&table("flush", &second, &given));
        assert!(
            output.contains("/commitlog/shard-") && output.contains("corrupt at offset"),
            "{columns}: {output}"
        );
    }
    with("a int, b bigint");
    let rows = [json!({"k": 1, "a": null, "b": 5})];
    assert_eq!(lines(&table("scan", &second, &given)), rows);
    assert_eq!(code(&table("flush", &second, &given)), 0);
    assert_eq!(lines(&table("scan", &second, &[])), [json!({"key": 1, "a": null, "b": 5})]);
    // SSTables tell columns too, but not of which the rows in the log are.
    write(&second, wide, Write::insert(2, ()).set("a", 6)).unwrap();
    assert!(told(&table("flush", &second, &[])).contains("there are rows in its log"));
    assert_eq!(lines(&table("scan", &second, &given)).len(), 2);
    // Nor are other columns given where some are known.
    std::fs::write(second.join("schema.cql"), with("a int, b bigint")).unwrap();
    let other = "CREATE TABLE ks.t (k int PRIMARY KEY, a int, c bigint)";
    let refused = write(&second, other, Write::insert(3, ())).unwrap_err().to_string();
    assert!(refused.contains("it tells of other columns"), "{refused}");
    // In a database the folder by itself shows what is in its own log.
    let database = folder.path().join("db");
    std::fs::create_dir_all(database.join("data/ks")).unwrap();
    assert_eq!(
        code(&table("create", &database, &["--schema", CREATE.replace("ks.t", "ks.other").as_str()])),
        0
    );
    let inside = database.join("data/ks/t");
    std::fs::rename(&second, &inside).unwrap();
    assert_eq!(lines(&table("scan", &inside, &[])).len(), 2);
    assert_eq!(code(&table("flush", &database, &["t"])), 0);
    assert_eq!(lines(&table("scan", &inside, &[])).len(), 2);
}

/// What a copy lacks that is not whole is told, and no command makes a database of a folder that is another thing.
#[test]
fn folders_that_are_not_what_they_should_be() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    let own = Path::new(stdout(&table("create", &dir, &["--schema", CREATE])).trim()).to_path_buf();
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(&rows, r#"{"k":"a","c":1}"#).unwrap();
    assert_eq!(code(&table("load", &dir, &["t", "--in", rows.to_str().unwrap()])), 0);
    for (given, told) in [
        (own.clone(), "it is the folder of one table"),
        (dir.join("data/ks"), "give the folder of one table"),
        (dir.join("data"), "it is the data of a database"),
        (rows.clone(), "it is a file"),
    ] {
        for (command, arguments) in [("create", &["--schema", CREATE][..]), ("drop", &["t"])] {
            let output = table(command, &given, arguments);
            assert!(code(&output) == 1 && stderr(&output).contains(told), "{command}: {}", stderr(&output));
        }
    }
    let data = |path: &Path| path.to_string_lossy().ends_with("-Data.db");
    let files = std::fs::read_dir(&own).unwrap().map(|file| file.unwrap().path());
    let lost = files.filter(|file| data(file)).inspect(|file| std::fs::remove_file(file).unwrap()).count();
    assert!(lost > 0);
    for command in ["scan", "compact"] {
        let output = table(command, &dir, &["t"]);
        assert!(code(&output) == 1 && stderr(&output).contains("its rows are missed"), "{}", stderr(&output));
    }
}

/// The version of new SSTables is one that can hold the table.
#[test]
fn a_table_of_vectors_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let create = "CREATE TABLE ks.v (k int PRIMARY KEY, v vector<float, 2>)";
    assert_eq!(code(&table("create", dir, &["--schema", create])), 0);
    let rows = dir.join("rows.jsonl");
    std::fs::write(&rows, r#"{"k":1,"v":[1.5,"NaN"]}"#).unwrap();
    assert_eq!(code(&table("load", dir, &["v", "--in", rows.to_str().unwrap()])), 0);
    assert_eq!(lines(&table("scan", dir, &["v"])), [json!({"k": 1, "v": [1.5, "NaN"]})]);
}

/// What is in the files and not in the schema is told, once.
#[test]
fn columns_that_the_schema_does_not_have_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("db");
    let create = "CREATE TABLE ks.t (k int, c int, s int STATIC, v int, w int, x int, PRIMARY KEY (k, c))";
    let made = table("create", &dir, &["--schema", create]);
    let own = Path::new(stdout(&made).trim()).to_path_buf();
    let rows = folder.path().join("rows.jsonl");
    std::fs::write(
        &rows,
        "{\"k\":1,\"c\":1,\"s\":1,\"v\":2,\"w\":3}\n{\"k\":5,\"c\":1,\"s\":1,\"v\":2,\"w\":3}",
    )
    .unwrap();
    let many = (10..200).map(|k| format!("{{\"k\":{k},\"c\":1,\"s\":1,\"x\":3}}\n")).collect::<String>();
    let others = folder.path().join("others.jsonl");
    std::fs::write(&others, many).unwrap();
    for rows in [&rows, &others] {
        assert_eq!(code(&table("load", &dir, &["t", "--shards", "3", "--in", rows.to_str().unwrap()])), 0);
    }
    assert_eq!(stderr(&table("scan", &own, &["--shards", "3"])), "");
    std::fs::write(
        own.join("schema.cql"),
        "CREATE TABLE ks.t (k int, c int, s int, v int, PRIMARY KEY (k, c))",
    )
    .unwrap();
    let scanned = table("scan", &own, &["--shards", "3"]);
    let told = stderr(&scanned);
    assert_eq!(
        told.matches("SSTables have columns that the schema of their table does not have").count(),
        1,
        "{told}"
    );
    assert!(told.contains("columns: s (static), w, x"), "{told}");
    let two: Vec<Value> = lines(&scanned).into_iter().filter(|row| row["k"].as_i64() < Some(10)).collect();
    assert_eq!(two, [json!({"k": 5, "c": 1, "s": null, "v": 2}), json!({"k": 1, "c": 1, "s": null, "v": 2})]);
}

/// What a scan prints is loaded as it was: numbers that are none, no time at all, partitions without rows.
#[test]
fn what_a_scan_prints_is_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let create = "CREATE TABLE ks.t (k int, c int, s text STATIC, f float, d duration, l list<double>, \
                  m map<text, frozen<list<float>>>, b blob, n int, t timestamp, v tuple<int, timestamp>, \
                  PRIMARY KEY (k, c))";
    for dir in [&from, &to] {
        assert_eq!(code(&table("create", dir, &["--schema", create])), 0);
    }
    let rows = folder.path().join("rows.jsonl");
    let load = |dir: &Path| {
        let loaded = table("load", dir, &["t", "--in", rows.to_str().unwrap(), "--skip-nulls"]);
        assert_eq!(code(&loaded), 0, "{}", stderr(&loaded));
    };
    let raw = |dir: &Path| stdout(&table("scan", dir, &["t", "--raw"])).to_owned();
    let given = r#"{"k":1,"s":"alone"}
{"k":2,"c":1,"s":"x","f":"NaN","d":"0s","l":["-Infinity",1.5,"NaN"],"m":{"a":["NaN"],"b":[]},"b":"0x","n":""}
{"k":2,"c":2,"t":-62135596800001,"v":[1,-9223372036854775808]}
{"k":2,"c":3,"t":9223372036854775807,"v":[1,null]}
{"k":2,"c":4,"t":-62135596800000,"v":[null,"9999-12-31 23:59:59.999Z"]}"#;
    std::fs::write(&rows, given).unwrap();
    load(&from);
    let scanned = table("scan", &from, &["t"]);
    let all = lines(&scanned);
    assert_eq!(all.len(), 5);
    std::fs::write(&rows, &scanned.stdout).unwrap();
    load(&to);
    assert_eq!(lines(&table("scan", &to, &["t"])), all);
    assert_eq!(raw(&to), raw(&from));
    // No null has become a tombstone: there are those in front of the two collections that were set.
    let dumped = Command::new(env!("CARGO_BIN_EXE_siltstone"))
        .args(["sstable", "dump", "--format", "jsonl"])
        .arg(std::fs::read_dir(to.join("data/ks")).unwrap().next().unwrap().unwrap().path())
        .output()
        .unwrap();
    assert!(code(&dumped) == 0 && stdout(&dumped).contains("alone"), "{}", stderr(&dumped));
    assert_eq!(stdout(&dumped).matches("local_delete_time").count(), 2, "{}", stdout(&dumped));
    let with_n = all.iter().find(|row| row["c"] == 1).unwrap();
    for (column, value) in
        [("f", r#""NaN""#), ("d", r#""0s""#), ("l", r#"["-Infinity",1.5,"NaN"]"#), ("n", r#""""#)]
    {
        assert_eq!(with_n[column].to_string(), value);
    }
}

/// Each command begins compactions, and ends before these do.
#[test]
fn what_a_command_leaves_under_way_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    assert_eq!(code(&table("create", dir, &["--schema", CREATE])), 0);
    for number in 1..=10 {
        let path = dir.join("row.csv");
        std::fs::write(&path, format!("\u{feff}k,c\nk,{number}\n")).unwrap();
        let loaded = table("load", dir, &["t", "--in", path.to_str().unwrap()]);
        assert_eq!(code(&loaded), 0, "{}", stderr(&loaded));
        assert_eq!(lines_of(dir), number);
    }
}

fn lines_of(dir: &Path) -> usize {
    lines(&table("scan", dir, &["t"])).len()
}

/// What is lost by it is told, by file and place: after the first command that writes the log is gone.
#[test]
fn a_damaged_log_is_salvaged_aloud() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait().unwrap();
    let table_t = database.create_table(CREATE).wait().unwrap();
    for c in 0..3 {
        table_t.write(Write::insert("k", c).set("v", format!("value {c}"))).wait().unwrap();
        database.sync().wait().unwrap();
    }
    database.close().wait().unwrap();
    let mut logs = std::fs::read_dir(folder.path().join("commitlog/shard-0")).unwrap();
    let log = logs.next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(7).position(|bytes| bytes == b"value 1").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let stopped = table("scan", folder.path(), &["t"]);
    assert_eq!(code(&stopped), 1);
    assert!(stderr(&stopped).contains("corrupt at offset"), "{}", stderr(&stopped));
    for shards in ["1", "3"] {
        let salvaged = table("scan", folder.path(), &["t", "--salvage", "--shards", shards]);
        let told = stderr(&salvaged);
        assert_eq!((code(&salvaged), lines(&salvaged).len()), (0, 2), "{told}");
        assert_eq!(
            told.matches("a part of the log is damaged: the writes in it are lost").count(),
            1,
            "{told}"
        );
        assert!(told.contains(&log.display().to_string()) && told.contains("offset: "), "{told}");
        assert!(log.exists(), "who reads changes nothing");
    }
    let flushed = table("flush", folder.path(), &["t", "--salvage"]);
    assert!(stderr(&flushed).contains("the writes in it are lost") && !log.exists());
    assert_eq!(lines_of(folder.path()), 2);
}
