//! The commands that write SSTables: what they say, what they refuse, and what they leave.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;
use testkit::command::{code, stderr, stdout};
use testkit::fixtures;

const SCHEMA: &str = "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c));";

/// `siltstone sstable …`, with a folder in place of what begins with `@`.
fn on(folder: &Path, arguments: &[&str]) -> Output {
    run_with_input(folder, arguments, "")
}

fn run_with_input(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let place = |argument: &&str| match argument.strip_prefix('@') {
        Some(name) => folder.join(name).into_os_string(),
        None => OsString::from(argument),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone"));
    command.arg("sstable").args(arguments.iter().map(place));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Who refuses the arguments does not read.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    child.wait_with_output().unwrap()
}

/// That the command was refused so, and has left nothing in `dest`.
fn assert_refused(output: &Output, exit: i32, what: &str, dest: &Path) {
    assert_eq!((code(output), stdout(output)), (exit, ""), "{}", stderr(output));
    assert!(stderr(output).contains(what), "{what}: {}", stderr(output));
    assert_eq!(names(dest), [""; 0], "{what}");
}

fn assert_good(output: &Output) {
    assert_eq!((code(output), stderr(output)), (0, ""));
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn row(key: i32, clustering: i32, value: &str) -> String {
    format!(
        r#"{{"type":"row","key":["{key}"],"clustering":[{clustering}],"cells":[{{"name":"v","value":"{value}","tstamp":5}}]}}"#
    )
}

/// A folder with a schema, and rows of ten partitions.
fn rows() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..100).map(|n| row(n % 10, n, &format!("value {n}"))).collect();
    std::fs::write(folder.path().join("rows"), lines.join("\n")).unwrap();
    std::fs::write(folder.path().join("schema"), SCHEMA).unwrap();
    folder
}

/// The same, and an SSTable of them in `old`.
fn table() -> TempDir {
    let folder = rows();
    assert_good(&on(folder.path(), &["write", "--schema", "@schema", "--in", "@rows", "@old"]));
    folder
}

/// The rows of SSTables, as lines without what tells where they stand.
fn dumped(folder: &Path, paths: &[&str]) -> Vec<String> {
    let mut lines = Vec::new();
    for path in paths {
        let output = on(folder, &["dump", "--format", "jsonl", path]);
        assert_good(&output);
        let strip = |line: &str| {
            let mut object: serde_json::Value = serde_json::from_str(line).unwrap();
            let members = object.as_object_mut().unwrap();
            members.shift_remove("position");
            members.shift_remove("sstable");
            object.to_string()
        };
        lines.extend(stdout(&output).lines().map(strip));
    }
    lines
}

#[test]
fn rows_are_written_and_told() {
    let folder = table();
    let whole = dumped(folder.path(), &["@old"]);
    assert_eq!(whole.len(), 100);
    let stdin = std::fs::read_to_string(folder.path().join("rows")).unwrap();
    let arguments = ["write", "--schema", "@schema", "--table", "ks.t", "--in", "-", "--to", "oa", "@new"];
    let output = run_with_input(folder.path(), &arguments, &stdin);
    assert_good(&output);
    let path = folder.path().join("new/oa-1-big-Data.db");
    assert!(
        stdout(&output).starts_with(&format!("{}: 10 partitions, 100 rows, ", path.display())),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).ends_with(" on disk\n") && stdout(&output).lines().count() == 1);
    assert_eq!(dumped(folder.path(), &["@new"]), whole);
    assert_good(&on(folder.path(), &["verify", "@new"]));
}

#[test]
fn a_timestamp_is_given_where_there_is_none() {
    let folder = rows();
    let line = r#"{"type":"row","key":[1],"clustering":[2],"cells":[{"name":"v","value":"x"}]}"#;
    let write = |more: &[&str]| {
        let arguments = [&["write", "--schema", "@schema", "--in", "-"], more, &["@new"]].concat();
        run_with_input(folder.path(), &arguments, line)
    };
    assert_refused(&write(&[]), 1, "stdin:1", &folder.path().join("new"));
    assert_refused(&write(&["--timestamp", "noon"]), 2, "microseconds", &folder.path().join("new"));
    for time in ["1700000000000000", "2023-11-14T22:13:20Z"] {
        assert_good(&write(&["--timestamp", time]));
        let expected = "2023-11-14T22:13:20Z";
        let dumped = dumped(folder.path(), &["@new"]).concat();
        assert!(dumped.contains(expected), "{dumped}");
        std::fs::remove_dir_all(folder.path().join("new")).unwrap();
    }
}

#[test]
fn rows_that_cannot_be_written_leave_nothing() {
    let folder = rows();
    let (path, new) = (folder.path(), folder.path().join("new"));
    let put = |name: &str, text: &str| std::fs::write(path.join(name), text).unwrap();
    put("two", &format!("{SCHEMA} CREATE TABLE ks.u (k int PRIMARY KEY);"));
    put("vectors", "CREATE TABLE ks.t (k int, c int, v vector<float, 3>, PRIMARY KEY (k, c));");
    put("odd", &SCHEMA.replace(";", " WITH compression = {'class': 'OddCompressor'};"));
    put("empty", "\n\n");
    put("wrong", &[row(1, 1, "x"), row(1, 1, "y").replace("\"v\"", "\"u\"")].join("\n"));
    put("late", &row(1, 1, "x").replace("\"tstamp\":5", "\"tstamp\":5,\"ttl\":9,\"expires_at\":3000000000"));
    put("texts", "CREATE TABLE ks.t (k int, c text, PRIMARY KEY (k, c));");
    let end = |value: &str| format!(r#"{{"type":"inclusive","clustering":["{value}"]}}"#);
    let range = |start: &str, to: &str| {
        let deleted = r#""deletion_info":{"marked_deleted":5,"local_delete_time":5}"#;
        format!(
            r#"{{"type":"range_tombstone","key":["1"],"start":{},"end":{},{deleted}}}"#,
            end(start),
            end(to)
        )
    };
    put("long", &[range("a", "b"), range("c", &"d".repeat(70_000))].join("\n"));
    let refused = |arguments: &[&str], exit: i32, what: &str| {
        let output = on(path, &[&["write"], arguments, &["@new"]].concat());
        assert_refused(&output, exit, what, &new);
    };
    refused(&["--schema", "@schema", "--in", "@empty"], 1, "empty: there are no rows in it");
    refused(&["--schema", "@schema", "--in", "@wrong"], 1, "wrong:2:");
    refused(&["--schema", "@schema", "--in", "@late"], 1, "late:1: ");
    refused(
        &["--schema", "@texts", "--in", "@long"],
        1,
        "long:2: a value of a clustering key has 70000 bytes",
    );
    refused(&["--schema", "@schema", "--in", "@gone"], 1, "gone: it cannot be read");
    refused(&["--schema", "@gone", "--in", "@rows"], 1, "gone: it cannot be read");
    refused(&["--schema", "@two", "--in", "@rows"], 1, "two:");
    refused(&["--schema", "@odd", "--in", "@rows"], 1, "odd: table t: compression: ");
    refused(&["--schema", "@vectors", "--in", "@rows"], 1, "version me has no vectors");
    refused(&["--schema", "@schema", "--in", "@rows", "--to", "xy"], 2, "a version is one of");
    refused(&["--schema", "@schema", "--in", "@rows", "--compression", "zstd"], 1, "ZstdCompressor");
    refused(
        &["--schema", "@schema", "--in", "@rows", "--to", "oa", "--for", "scylla"],
        1,
        "does not read version oa",
    );
    refused(&["--schema", "@schema"], 2, "--in");
}

#[test]
fn parts_together_are_the_whole() {
    let folder = table();
    let whole = dumped(folder.path(), &["@old"]);
    for (cut, count) in [
        (&["--parts", "3"][..], 3),
        (&["--parts", "99"], 10),
        (&["--by-size", "1"], 10),
        (&["--by-size", "1MiB"], 1),
        (&["--by-token", "..0,0.."], 2),
        (&["--by-token", "-9223372036854775808..0", "--by-token", "0..9223372036854775807"], 2),
    ] {
        let output = on(folder.path(), &[&["split"], cut, &["@old", "@new"]].concat());
        assert_good(&output);
        assert_eq!(stdout(&output).lines().count(), count, "{cut:?}");
        let paths: Vec<String> = (1..=count).map(|number| format!("@new/me-{number}-big-Data.db")).collect();
        assert!(stdout(&output).contains("new/me-1-big-Data.db: "), "{}", stdout(&output));
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        assert_eq!(dumped(folder.path(), &paths), whole, "{cut:?}");
        assert_good(&on(folder.path(), &["verify", "@new"]));
        std::fs::remove_dir_all(folder.path().join("new")).unwrap();
    }
}

#[test]
fn cuts_that_cannot_be_meant_leave_nothing() {
    let folder = table();
    let new = folder.path().join("new");
    let refused = |arguments: &[&str], exit: i32, what: &str| {
        let output = on(folder.path(), &[&["split"], arguments, &["@old", "@new"]].concat());
        assert_refused(&output, exit, what, &new);
    };
    refused(&[], 2, "--by-size");
    refused(&["--parts", "2", "--by-size", "5"], 2, "cannot be used with");
    refused(&["--parts", "0"], 2, "at least 1");
    refused(&["--by-size", "0"], 2, "a number of bytes");
    refused(&["--by-size", "5MB"], 2, "a number of bytes");
    refused(&["--by-token", "5"], 2, "is no range of tokens");
    refused(&["--by-token", "5..-5"], 2, "5.. and ..-5");
    refused(&["--by-token", "..0,-5.."], 2, "have tokens in common");
    refused(&["--by-token", "..0"], 2, "--leave-out-rest");
    refused(&["--parts", "2", "--leave-out-rest"], 2, "cannot be used with");
    refused(&["--parts", "2", "--compression", "zstd"], 1, "ZstdCompressor");
    let output = on(folder.path(), &["split", "--by-token", "..0,5..6", "--leave-out-rest", "@old", "@new"]);
    assert_eq!((code(&output), stdout(&output).lines().count()), (0, 1));
    assert_eq!(stderr(&output), "siltstone: no partition has a token in 5..6\n");
}

#[test]
fn a_conversion_is_told_in_a_line() {
    let folder = table();
    let output = on(folder.path(), &["convert", "--to", "nb", "@old", "@new"]);
    assert_good(&output);
    let path = folder.path().join("new/nb-1-big-Data.db");
    let told = stdout(&output).strip_prefix(&format!("{}: 10 partitions, ", path.display())).unwrap();
    assert!(told.contains(" bytes of data, ") && told.ends_with(" on disk\n"), "{told}");
    assert_eq!(dumped(folder.path(), &["@new"]), dumped(folder.path(), &["@old"]));
}

/// What ScyllaDB wants to be told of a file, which says later for whom it was.
#[test]
fn what_is_for_scylla_says_so() {
    let folder = table();
    assert_good(&on(folder.path(), &["convert", "--to", "me", "--for", "scylla", "@old", "@new"]));
    assert_good(&on(folder.path(), &["split", "--parts", "2", "@new/me-1-big-Data.db", "@parts"]));
    for (place, number) in [("new", 1), ("parts", 1), ("parts", 2)] {
        let name = |component: &str| folder.path().join(place).join(format!("me-{number}-big-{component}"));
        assert_eq!(std::fs::read(name("Scylla.db")).unwrap()[..8], [0, 0, 0, 1, 0, 0, 0, 2]);
        assert!(std::fs::read_to_string(name("TOC.txt")).unwrap().contains("Scylla.db\n"));
    }
    assert_eq!(dumped(folder.path(), &["@parts"]), dumped(folder.path(), &["@old"]));
}

/// A file without static columns has no static rows.
#[test]
fn a_static_row_has_a_column_to_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let deletion = r#"{"type":"static_block","key":["1"],"deletion_info":{"marked_deleted":5}}"#;
    std::fs::write(folder.path().join("rows"), format!("{deletion}\n")).unwrap();
    let write = |columns: &str, dest: &str| {
        let schema = format!("CREATE TABLE ks.t (k int, c int, {columns}v text, PRIMARY KEY (k, c))");
        std::fs::write(folder.path().join("schema"), schema).unwrap();
        on(folder.path(), &["write", "--schema", "@schema", "--in", "@rows", dest])
    };
    let refused = write("", "@none");
    assert!(code(&refused) == 1 && stderr(&refused).contains("no static columns"), "{}", stderr(&refused));
    assert_good(&write("s int static, ", "@some"));
    assert_eq!(dumped(folder.path(), &["@some"]).len(), 1);
    assert_good(&on(folder.path(), &["verify", "@some"]));
}

#[test]
fn several_sources_become_one_and_leftovers_go() {
    let folder = table();
    let more = folder.path().join("more");
    std::fs::write(&more, [row(1, 1, "newer").replace(":5}", ":6}"), row(99, 1, "x")].join("\n")).unwrap();
    assert_good(&on(folder.path(), &["write", "--schema", "@schema", "--in", "@more", "@old"]));
    let new = folder.path().join("new");
    std::fs::create_dir(&new).unwrap();
    for name in ["nb-7-big-Data.db", "nb-7-big-TOC.txt.tmp", "nb-8-big-Index.db.tmp", "notes.tmp"] {
        std::fs::write(new.join(name), "x").unwrap();
    }
    for command in [&["convert", "--to", "nb"][..], &["split", "--to", "nb", "--parts", "1"]] {
        let output = on(folder.path(), &[command, &["@old", "@new"]].concat());
        assert_good(&output);
        assert!(stdout(&output).contains(": 11 partitions, "), "{}", stdout(&output));
    }
    let is_other = |name: &&String| !name.starts_with("nb-1-big-") && !name.starts_with("nb-2-big-");
    assert_eq!(names(&new).iter().filter(is_other).collect::<Vec<_>>(), ["notes.tmp"]);
    let merged = dumped(folder.path(), &["@new/nb-1-big-Data.db"]);
    assert_eq!(merged.len(), 101);
    assert_eq!(merged.iter().filter(|line| line.contains("newer")).count(), 1);
    assert!(!merged.iter().any(|line| line.contains("\"value 1\"")));
}

#[test]
fn what_a_version_cannot_hold_is_not_converted() {
    let folder = table();
    let new = folder.path().join("new");
    let convert = |arguments: &[&str], exit: i32, what: &str| {
        let output = on(folder.path(), &[&["convert"], arguments, &["@new"]].concat());
        assert_refused(&output, exit, what, &new);
    };
    convert(&["--to", "xy", "@old"], 2, "a version is one of mc, md, me, na, nb, oa");
    convert(&["@old"], 2, "--to");
    convert(
        &["--to", "me", "--compression", "zstd", "@old"],
        1,
        "new: Cassandra has ZstdCompressor from version na on: version me with it is ScyllaDB's alone",
    );
    convert(&["--to", "oa", "--for", "scylla", "@old"], 1, "new: ScyllaDB does not read version oa");
    convert(&["--to", "nb", "--chunk-length-in-kb", "16", "@old"], 2, "--compression");
    convert(
        &["--to", "nb", "--compression", "lz4", "--chunk-length-in-kb", "5", "@old"],
        2,
        "--chunk-length-in-kb 5",
    );
    convert(&["--to", "nb", "--compression", "lz4", "--compression-level", "5", "@old"], 2, "for zstd only");
    convert(&["--to", "nb", "@gone"], 1, "there is no such file or folder");
    let vectors = SCHEMA.replace("v text", "v vector<int, 2>");
    std::fs::write(folder.path().join("vectors"), vectors).unwrap();
    let line = row(1, 1, "x").replace("\"x\"", "[1,2]");
    let arguments = ["write", "--schema", "@vectors", "--in", "-", "--to", "nb", "@vec"];
    assert_good(&run_with_input(folder.path(), &arguments, &line));
    convert(&["--to", "me", "@vec"], 1, "version me has no vectors, such as vector<int, 2>");
    let late = row(1, 1, "x").replace("\"tstamp\":5", "\"tstamp\":5,\"ttl\":9,\"expires_at\":3000000000");
    let arguments = ["write", "--schema", "@schema", "--in", "-", "--to", "oa", "@late"];
    assert_good(&run_with_input(folder.path(), &arguments, &late));
    convert(&["--to", "nb", "@late"], 1, "version nb ends at");
}

#[test]
fn real_tables_are_split_as_they_were_written() {
    let source = fixtures::table("cassandra/me/small/sstables/comp_deflate");
    let folder = tempfile::tempdir().unwrap();
    let source = source.join("me-1-big-Data.db");
    let source = source.to_str().unwrap();
    assert_good(&on(folder.path(), &["split", "--parts", "4", source, "@new"]));
    let info = on(folder.path(), &["info", "--json", "@new/me-2-big-Data.db"]);
    assert!(stdout(&info).contains("DeflateCompressor"), "{}", stdout(&info));
    let paths = [1, 2, 3, 4].map(|number| format!("@new/me-{number}-big-Data.db"));
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    assert_eq!(dumped(folder.path(), &paths), dumped(folder.path(), &[source]));
}

/// Writers to one folder come one after the other: each has its own SSTable, whole.
#[test]
fn writers_to_one_folder_wait_for_each_other() {
    let folder = table();
    let whole = dumped(folder.path(), &["@old"]);
    let outputs: Vec<Output> = std::thread::scope(|scope| {
        let convert = || on(folder.path(), &["convert", "--to", "nb", "@old", "@new"]);
        let writers: Vec<_> = (0..6).map(|_| scope.spawn(convert)).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    for output in &outputs {
        assert_eq!(code(output), 0, "{}", stderr(output));
    }
    for number in 1..=6 {
        assert_eq!(dumped(folder.path(), &[&format!("@new/nb-{number}-big-Data.db")]), whole);
    }
    assert_good(&on(folder.path(), &["verify", "@new"]));
    assert!(!names(&folder.path().join("new")).iter().any(|name| name.ends_with(".tmp")));
}

#[test]
fn the_folder_of_an_open_database_is_left_alone() {
    let folder = table();
    let path = folder.path().join("db");
    let options = || siltstone::database::Options { shards: 1, ..siltstone::database::Options::default() };
    let database = siltstone::database::Database::open(&path, options()).wait().unwrap();
    let of_it = database.create_table(SCHEMA.trim_end_matches(';')).wait().unwrap().folder().to_path_buf();
    let to = of_it.to_str().unwrap();
    let refused = on(folder.path(), &["convert", "--to", "me", "@old", to]);
    assert_eq!(code(&refused), 1);
    assert!(stderr(&refused).contains("a database that is open"), "{}", stderr(&refused));
    database.close().wait().unwrap();
    assert_good(&on(folder.path(), &["convert", "--to", "me", "@old", to]));
    let database = siltstone::database::Database::open(&path, options()).wait().unwrap();
    assert_eq!(crate::scanned::scanned(&database.table("t").unwrap(), 1000).len(), 100);
}

/// Files of one SSTable are one SSTable, by whatever way they are named.
#[test]
fn an_sstable_is_taken_once() {
    let folder = table();
    let whole = dumped(folder.path(), &["@old"]);
    let paths = ["@old/me-1-big-Data.db", "@old/../old/me-1-big-TOC.txt", "@old"];
    let dump = on(folder.path(), &[&["dump", "--format", "jsonl"][..], &paths].concat());
    assert_eq!(stdout(&dump).lines().count(), whole.len());
    let verified = on(folder.path(), &[&["verify"][..], &paths].concat());
    assert_eq!((code(&verified), stdout(&verified).lines().count()), (0, 1));
    assert_good(&on(folder.path(), &[&["convert", "--to", "oa"][..], &paths, &["@new"]].concat()));
    assert_eq!(dumped(folder.path(), &["@new"]), whole);
}

/// What a command does beside printing goes on when nobody reads it, and how it ends does not depend on that.
#[test]
fn who_reads_one_line_gets_all_of_the_work() {
    let folder = table();
    for _ in 0..3 {
        assert_good(&on(folder.path(), &["convert", "--to", "nb", "--no-fences", "@old", "@new"]));
    }
    let unread = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone"));
        command.arg("sstable").args(arguments).arg(folder.path().join("new"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    };
    let fences = unread(&["fences", "--force"]);
    assert_good(&fences);
    assert_good(&unread(&["verify"]));
    let damaged = folder.path().join("new/nb-1-big-Data.db");
    let mut bytes = std::fs::read(&damaged).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&damaged, bytes).unwrap();
    assert_eq!(code(&unread(&["verify"])), 1, "damage is told by how it ends");
}

/// As Cassandra takes in texts with halves of characters. They are told by their bytes, and nothing behind them is missing.
#[test]
fn values_that_are_not_of_their_type_are_dumped_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE ks.t (k text, c ascii, m map<text, text>, v text, PRIMARY KEY (k, c));";
    std::fs::write(folder.path().join("schema"), schema).unwrap();
    let rows = [
        r#"{"type":"row","key":[null],"key_bytes":"0xeda080","clustering":[null],"clustering_bytes":["0xff"],"cells":["#,
        r#"{"name":"m","path":[null],"path_bytes":"0xeda080","value":"x","tstamp":5},"#,
        r#"{"name":"v","value":null,"bytes":"0xeda081","tstamp":5}]}"#,
        "\n",
        r#"{"type":"row","key":["sound"],"clustering":["a"],"cells":[{"name":"v","value":"x","tstamp":5}]}"#,
    ];
    std::fs::write(folder.path().join("rows"), rows.concat()).unwrap();
    assert_good(&on(folder.path(), &["write", "--schema", "@schema", "--in", "@rows", "@first"]));
    let first = on(folder.path(), &["dump", "--format", "jsonl", "@first"]);
    assert_good(&first);
    assert_eq!(stdout(&first).lines().count(), 2, "{}", stdout(&first));
    for told in
        [r#""key_bytes":"0xeda080""#, r#"["0xff"]"#, r#""path_bytes":"0xeda080""#, r#""bytes":"0xeda081""#]
    {
        assert!(stdout(&first).replace(' ', "").contains(told), "{told}: {}", stdout(&first));
    }
    std::fs::write(folder.path().join("again"), stdout(&first)).unwrap();
    assert_good(&on(folder.path(), &["write", "--schema", "@schema", "--in", "@again", "@second"]));
    let second = on(folder.path(), &["dump", "--format", "jsonl", "@second"]);
    assert_eq!(stdout(&second).replace("second", "first"), stdout(&first));
    // As sstabledump, which has no place for bytes.
    let dumped = on(folder.path(), &["dump", "@first"]);
    assert!(code(&dumped) == 1 && stderr(&dumped).contains("is not"), "{}", stderr(&dumped));
}
