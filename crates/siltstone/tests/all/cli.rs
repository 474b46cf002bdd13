//! The command's arguments, exit codes and messages, on a few small tables.

use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use testkit::command::{code, json_lines as lines, stderr, stdout};
use testkit::fixtures;

fn run<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Output {
    let arguments = arguments.into_iter().map(Into::into);
    Command::new(env!("CARGO_BIN_EXE_siltstone")).args(arguments).output().unwrap()
}

/// `siltstone sstable …`, with the folder in place of `@`.
fn on(folder: &Path, arguments: &[&str]) -> Output {
    let place = |argument: &&str| if *argument == "@" { folder.into() } else { OsString::from(argument) };
    run([OsString::from("sstable")].into_iter().chain(arguments.iter().map(place)))
}

fn clusterings(output: &Output) -> Vec<i64> {
    let rows = lines(output);
    rows.iter().filter(|row| row["type"] == "row").map(|row| row["clustering"][0].as_i64().unwrap()).collect()
}

/// A table of `PRIMARY KEY (k int, c int)` with static columns; the folder has two SSTables.
fn statics() -> PathBuf {
    fixtures::table("cassandra/nb/small/sstables/statics")
}

#[test]
fn wrong_arguments_exit_with_2() {
    let nothing: [&[&str]; 7] = [
        &[],
        &["sstable"],
        &["sstable", "dump"],
        &["sstable", "fold", "x"],
        &["sstable", "dump", "x", "--format", "yaml"],
        &["sstable", "read", "x"],
        &["sstable", "convert", "--to", "oa", "--bloom-filter-fp-chance", "0", "x", "y"],
    ];
    for arguments in nothing {
        assert_eq!(code(&run(arguments)), 2, "{arguments:?}");
    }
    let folder = statics();
    let wrong: [(&[&str], &str); 10] = [
        (&["dump", "@", "--key", "[\"x\"]"], "expected a partition key of type int"),
        (&["dump", "@", "--key", "[\"1\", \"2\"]"], "it has 2 values; expected a partition key of type int"),
        (&["dump", "@", "--key", "1"], "it is not a JSON array"),
        (&["read", "@", "--key", "[\"1\"]", "--from", "[1, 2]"], "expected a clustering of type int"),
        (&["read", "@", "--key", "[\"1\"]", "--from", "[\"x\"]"], "expected a clustering of type int"),
        (
            &["read", "@", "--key", "[\"1\"]", "--from", "-1"],
            "it is not a JSON array, as in --from '[\"1\"]'",
        ),
        (&["dump", "@", "--key", "[\"abc\"]"], "abc is not an int: an integer of 32 bits was expected"),
        (&["read", "@", "--key", "[\"1\"]", "--limit", "0"], "an integer of at least 1 was expected"),
        (&["read", "@", "--key", "[\"1\"]", "--limit", "-1"], "an integer of at least 1 was expected"),
        (&["index", "@", "--key", "[]"], "expected a partition key of type int"),
    ];
    for (arguments, message) in wrong {
        let output = on(&folder, arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn bad_data_exits_with_1_and_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["dump", "info", "index"] {
        let output = on(folder.path(), &[command, "@"]);
        assert_eq!((code(&output), stdout(&output)), (1, ""));
        let expected =
            format!("siltstone: {}: there is no SSTable in this folder\n", folder.path().display());
        assert_eq!(stderr(&output), expected);
        let output = on(&folder.path().join("me-1-big-Data.db"), &[command, "@"]);
        assert_eq!(code(&output), 1);
        assert!(stderr(&output).ends_with("me-1-big-Data.db: there is no such file or folder\n"));
    }
    let table = statics();
    for file in std::fs::read_dir(&table).unwrap().map(|file| file.unwrap()) {
        let mut bytes = std::fs::read(file.path()).unwrap();
        if file.file_name() == "nb-1-big-Data.db" {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0xff;
        }
        std::fs::write(folder.path().join(file.file_name()), bytes).unwrap();
    }
    let output = on(folder.path(), &["dump", "@"]);
    assert_eq!(code(&output), 1);
    let message = stderr(&output);
    assert!(message.contains("nb-1-big-Data.db: corrupt at offset "), "{message}");
    let output = on(folder.path(), &["verify", "@"]);
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("nb-1-big: DAMAGED: "), "{}", stdout(&output));
    assert!(stdout(&output).contains("nb-2-big: sound: "), "{}", stdout(&output));
    assert_eq!(stderr(&output), "siltstone: 1 of 2 SSTables are damaged or cannot be read\n");
}

#[test]
fn sound_tables_verify() {
    let folder = statics();
    assert_eq!(code(&on(&folder, &["verify", "@"])), 0);
    let reports = lines(&on(&folder, &["verify", "@", "--json"]));
    assert_eq!(reports.len(), 2);
    for report in reports {
        assert_eq!((&report["sound"], &report["problems"]), (&true.into(), &Value::Array(Vec::new())));
    }
}

#[test]
fn help_of_all_commands_has_examples_and_exit_codes() {
    assert_eq!(code(&run(["--version"])), 0);
    assert_eq!(code(&run(["help"])), 0);
    for (above, expected) in [
        ("sstable", "convert dump fences index info read split verify write"),
        ("table", "compact create drop flush get load scan slice snapshot stats"),
    ] {
        let output = run([above, "--help"]);
        let list = stdout(&output).split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
        let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
        let mut names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
        names.retain(|name| *name != "help");
        names.sort_unstable();
        assert_eq!(names.join(" "), expected);
        for command in names {
            let output = run([above, command, "--help"]);
            assert_eq!((code(&output), stderr(&output)), (0, ""));
            let example = format!("Examples:\n  siltstone {above} {command} ");
            assert!(stdout(&output).contains(&example), "{}", stdout(&output));
            assert!(stdout(&output).contains("\nExit codes: 0 if all "), "{}", stdout(&output));
        }
    }
}

#[test]
fn a_closed_pipe_is_a_quiet_end() {
    let folder = fixtures::table("cassandra/nb/small/sstables/comp_lz4");
    for arguments in [&["dump"][..], &["dump", "--format", "jsonl"], &["index"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_siltstone"));
        command.arg("sstable").args(arguments).arg(&folder).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdout.take());
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn keys_are_picked_in_the_order_of_the_file() {
    let folder = statics();
    let file = folder.join("nb-1-big-Data.db");
    let keys_of = |output: &Output| -> Vec<String> {
        let dump: Value = serde_json::from_slice(&output.stdout).unwrap();
        dump.as_array()
            .unwrap()
            .iter()
            .map(|p| p["partition"]["key"][0].as_str().unwrap().to_owned())
            .collect()
    };
    let all = keys_of(&on(&file, &["dump", "@"]));
    assert!(all.len() > 2);
    let (first, last) = (format!("[\"{}\"]", all[0]), format!("[\"{}\"]", all[all.len() - 1]));
    let output =
        on(&file, &["dump", "@", "--key", &last, "--key", "[\"12345\"]", "--key", &first, "--key", &last]);
    assert_eq!(code(&output), 0);
    assert_eq!(keys_of(&output), [all[0].as_str(), all[all.len() - 1].as_str()]);
    assert!(stderr(&output).contains("no partition has the key [\"12345\"]"), "{}", stderr(&output));
    let whole: Value = serde_json::from_slice(&on(&file, &["dump", "@"]).stdout).unwrap();
    let picked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(picked[1], whole[all.len() - 1]);
}

#[test]
fn a_folder_gives_an_array_for_each_sstable() {
    let folder = statics();
    let both = on(&folder, &["dump", "@"]);
    let each = ["nb-1-big-Data.db", "nb-2-big-TOC.txt"].map(|file| on(&folder.join(file), &["dump", "@"]));
    assert_eq!(stdout(&both), format!("{}{}", stdout(&each[0]), stdout(&each[1])));
}

#[test]
fn slices_limits_and_directions() {
    let folder = statics();
    let file = folder.join("nb-1-big-Data.db");
    let read = |more: &[&str]| on(&file, &[&["read", "@", "--key", "[\"5\"]"], more].concat());
    let all = clusterings(&read(&[]));
    assert!(all.len() > 3 && all.is_sorted(), "{all:?}");
    let (from, to) = (format!("[{}]", all[1]), format!("[\"{}\"]", all[2]));
    assert_eq!(clusterings(&read(&["--from", &from])), all[1..]);
    assert_eq!(clusterings(&read(&["--to", &from])), all[..2]);
    assert_eq!(clusterings(&read(&["--from", &from, "--to", &to])), all[1..3]);
    assert_eq!(clusterings(&read(&["--from", &to, "--to", &from])), [0; 0]);
    assert_eq!(clusterings(&read(&["--limit", "2"])), all[..2]);
    assert_eq!(clusterings(&read(&["--reverse", "--limit", "1"])), all[all.len() - 1..]);
    assert_eq!(clusterings(&read(&["--repeat", "2", "--limit", "1"])), [all[0], all[0]]);
    assert_eq!(clusterings(&read(&["--index-search", "scan"])), all);
    assert_eq!(clusterings(&read(&["--no-io-uring", "--no-direct-io", "--cache-mib", "0"])), all);
    let missing = on(&file, &["read", "@", "--key", "[\"12345\"]"]);
    assert_eq!((code(&missing), stdout(&missing)), (0, ""));
}

#[test]
fn the_static_row_comes_first_where_it_is_wanted() {
    let folder = fixtures::table("cassandra/nb/small/sstables/statics");
    let whole = lines(&on(&folder, &["dump", "@", "--format", "jsonl"]));
    let with_static = whole.iter().find(|line| line["type"] == "static_block").unwrap();
    let key = with_static["key"].to_string();
    let kinds = |more: &[&str]| -> Vec<bool> {
        let rows = lines(&on(&folder, &[&["read", "@", "--key", &key], more].concat()));
        rows.iter().map(|row| row["type"] == "static_block").collect()
    };
    for more in [
        &["--limit", "1"][..],
        &["--reverse", "--limit", "1"],
        &["--static", "--from", "[0]", "--limit", "1"],
    ] {
        let kinds = kinds(more);
        assert!(kinds[0] && kinds[1..].iter().all(|is_static| !is_static), "{more:?}: {kinds:?}");
    }
    assert!(kinds(&["--from", "[0]"]).iter().all(|is_static| !is_static));
}

#[test]
fn statistics_are_one_line_a_repetition() {
    let folder = statics();
    let output = on(&folder, &["read", "@", "--key", "[\"5\"]", "--stats", "--repeat", "2"]);
    let stats: Vec<Value> = stderr(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(stats.len(), 2);
    let names = "requests bytes index_requests index_bytes data_requests data_bytes fences_requests fences_bytes \
                 filter_requests filter_bytes summary_requests summary_bytes metadata_requests metadata_bytes \
                 page_hits page_misses fences";
    for line in &stats {
        for what in ["requests", "bytes"] {
            let of = |name: &str| line[name].as_u64().unwrap();
            let parts = line.as_object().unwrap().keys().filter(|name| name.ends_with(&format!("_{what}")));
            assert_eq!(parts.map(|name| of(name)).sum::<u64>(), of(what), "all of it is of one of the files");
        }
        let members: Vec<&str> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(members.join(" "), names);
    }
    assert!(stats[0]["index_requests"].as_u64().unwrap() > 0);
    assert_eq!(stats[1]["index_requests"], 0);
    assert_eq!(stats[0]["data_requests"], stats[1]["data_requests"]);
}

#[test]
fn only_what_is_live() {
    let folder = fixtures::table("cassandra/nb/small/sstables/tombs");
    let dead = ["deletion_info", "marked_deleted"];
    let mut shown = [0; 2];
    for key in 0..30 {
        let key = format!("[\"{key}\"]");
        let stored = lines(&on(&folder, &["read", "@", "--key", &key]));
        let live = lines(&on(&folder, &["read", "@", "--key", &key, "--live"]));
        assert!(live.iter().all(|row| dead.iter().all(|member| !row.to_string().contains(member))), "{key}");
        assert!(live.len() <= stored.len());
        let rows = |lines: &[Value]| lines.iter().filter(|line| line["type"] == "row").count();
        shown[0] += rows(&stored);
        shown[1] += rows(&live);
    }
    assert!(shown[1] > 0 && shown[1] < shown[0], "{shown:?}");
}

#[test]
fn the_index_names_every_partition() {
    let folder = statics();
    let file = folder.join("nb-1-big-Data.db");
    let dump: Value = serde_json::from_slice(&on(&file, &["dump", "@"]).stdout).unwrap();
    let keys: Vec<String> =
        dump.as_array().unwrap().iter().map(|p| p["partition"]["key"].to_string()).collect();
    let listed = lines(&on(&file, &["index", "@", "--json"]));
    assert_eq!(listed.iter().map(|line| line["key"].to_string()).collect::<Vec<_>>(), keys);
    let text = on(&file, &["index", "@"]);
    let last: Vec<&str> =
        stdout(&text).lines().skip(1).map(|line| line.rsplit("  ").next().unwrap()).collect();
    assert_eq!(last, keys);
    let one = lines(&on(&file, &["index", "@", "--json", "--key", &keys[0]]));
    assert_eq!(one[0], listed[0]);
}

/// Index.db has no checksum: what is listed of it is at least possible.
#[test]
fn an_index_of_zeros_is_no_list() {
    let table = statics();
    let folder = tempfile::tempdir().unwrap();
    copy(&table, folder.path());
    let index = folder.path().join("nb-1-big-Index.db");
    let len = std::fs::metadata(&index).unwrap().len();
    std::fs::write(&index, vec![0; len as usize]).unwrap();
    let output = on(&folder.path().join("nb-1-big-Data.db"), &["index", "@"]);
    assert_eq!((code(&output), stdout(&output).lines().count()), (1, 1), "the titles alone");
    let message = stderr(&output);
    assert!(message.contains("nb-1-big-Index.db") && message.contains("do not ascend"), "{message}");
}

#[test]
fn info_is_text_and_json() {
    let folder = statics();
    let output = on(&folder.join("nb-1-big-Data.db"), &["info", "@", "--json"]);
    assert_eq!(code(&output), 0);
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(info["columns"]["partition_key"][0], "int");
    assert_eq!(info["compression"]["compressor"], "LZ4Compressor");
    let text = on(&folder, &["info", "@"]);
    for piece in [
        "version      nb (Cassandra 4.0 to 5.0)",
        "Data.db",
        "least timestamp  ",
        "partition sizes\n  count ",
    ] {
        assert!(stdout(&text).contains(piece), "{piece} is missing from {}", stdout(&text));
    }
}

fn copy(from: &Path, to: &Path) {
    for file in std::fs::read_dir(from).unwrap().map(|file| file.unwrap()) {
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[test]
fn a_verification_goes_on_behind_what_is_refused() {
    let table = fixtures::table("cassandra/me/small/sstables/statics");
    let folder = tempfile::tempdir().unwrap();
    copy(&table, folder.path());
    std::fs::write(folder.path().join("da-1-bti-Data.db"), "").unwrap();
    let empty = tempfile::tempdir().unwrap();
    let paths = [empty.path().join("gone"), empty.path().into(), folder.path().into()];
    let verify = |more: &[&str]| {
        let arguments = ["sstable", "verify"].iter().chain(more).map(OsString::from);
        run(arguments.chain(paths.iter().map(OsString::from)))
    };
    let output = verify(&[]);
    assert_eq!(code(&output), 1);
    assert!(stdout(&output).contains("me-1-big: sound"), "{}", stdout(&output));
    let reasons = [
        "gone: there is no such file or folder",
        "there is no SSTable in this folder",
        "da-1-bti-Data.db: ",
        " SSTables are damaged or cannot be read",
    ];
    for (line, reason) in stderr(&output).lines().zip(reasons) {
        assert!(line.contains(reason), "{line} has no {reason}");
    }
    assert_eq!(stderr(&output).lines().count(), reasons.len(), "{}", stderr(&output));
    let output = verify(&["--json"]);
    let objects: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let refused: Vec<&Value> = objects.iter().filter(|object| object["sound"] == false).collect();
    assert_eq!((code(&output), refused.len()), (1, 3), "{}", stdout(&output));
    assert!(refused.iter().all(|object| object["path"].is_string() && object["error"].is_string()));
    assert!(objects.iter().any(|object| object["sstable"] == "me-1-big" && object["sound"] == true));
}

#[test]
fn another_partitioner_does_not_end_a_verification() {
    let mut fixtures = fixtures::all();
    fixtures.retain(|fixture| fixture.name.contains("random_partitioner"));
    // The repository has none: that of the larger collection is ScyllaDB's.
    let Some(refused) = fixtures.first() else {
        println!("skipped: no fixture has another partitioner");
        return;
    };
    let paths = [refused.data.clone(), statics()].map(OsString::from);
    let output = run(["sstable", "verify", "--json"].map(OsString::from).into_iter().chain(paths));
    let objects: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((code(&output), objects.len()), (1, 3), "{}", stdout(&output));
    assert!(objects[0]["sstable"].is_string() && objects[0]["error"].is_string(), "{}", objects[0]);
    assert_eq!([&objects[1]["sound"], &objects[2]["sound"]], [&Value::Bool(true); 2]);
}

#[test]
fn a_missing_component_is_not_passed_over_in_silence() {
    let table = fixtures::table("cassandra/me/small/sstables/comp_none");
    let folder = tempfile::tempdir().unwrap();
    copy(&table, folder.path());
    let path = folder.path().join("me-1-big-Data.db");
    for component in ["CRC.db", "Digest.crc32"] {
        std::fs::remove_file(folder.path().join(format!("me-1-big-{component}"))).unwrap();
    }
    let output = on(&path, &["verify", "@"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("me-1-big: sound; 2 notes, see --notes: "), "{}", stdout(&output));
    let output = on(&path, &["verify", "@", "--notes"]);
    assert!(stdout(&output).contains("me-1-big: sound: "), "{}", stdout(&output));
    assert_eq!(stdout(&output).matches("  note: ").count(), 2);
}

#[test]
fn what_cannot_be_opened_is_told_once() {
    let table = fixtures::table("cassandra/me/small/sstables/comp_none");
    let folder = tempfile::tempdir().unwrap();
    copy(&table, folder.path());
    let path = folder.path().join("me-1-big-Data.db");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    let output = on(&folder.path().join("me-1-big-TOC.txt"), &["verify", "@"]);
    assert_eq!(code(&output), 1);
    let problems: Vec<&str> =
        stdout(&output).lines().filter(|line| line.contains("me-1-big-Data.db")).collect();
    assert_eq!(problems.len(), 1, "{}", stdout(&output));
}

#[test]
fn nothing_found_is_said_and_no_error() {
    let folder = statics();
    let read = |more: &[&str]| on(&folder, &[&["read", "@", "--key"], more].concat());
    let cases: [(&[&str], &str); 3] = [
        (&["[\"12345\"]"], "siltstone: no partition has the key [\"12345\"]\n"),
        (
            &["[\"5\"]", "--from", "[99999999]"],
            "siltstone: the partition is there, but it has no such rows\n",
        ),
        (&["[\"5\"]", "--from", "[2]", "--to", "[1]"], "siltstone: no rows: --from lies behind --to "),
    ];
    for (arguments, message) in cases {
        let output = read(arguments);
        assert_eq!((code(&output), stdout(&output)), (0, ""), "{arguments:?}");
        assert!(stderr(&output).starts_with(message), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(stderr(&read(&["[\"5\"]"])), "");
}

#[test]
fn a_live_counter_is_its_total() {
    let folder = fixtures::table("cassandra/me/small/sstables/counters");
    let values = |more: &[&str], name: &str| -> Vec<Value> {
        let rows = lines(&on(&folder, &[&["read", "@", "--key", "[\"1\"]"], more].concat()));
        let cells = rows.iter().flat_map(|row| row["cells"].as_array().unwrap());
        cells.filter(|cell| cell["name"] == name).map(|cell| cell["value"].clone()).collect()
    };
    // What Cassandra answers to a SELECT of this partition, in counters.jsonl.gz beside the fixtures.
    for (name, totals) in [("n", &[4, 4, 5][..]), ("m", &[-1, -1, -1]), ("sc", &[1])] {
        assert_eq!(values(&["--live"], name), totals, "{name}");
        assert!(values(&[], name).iter().all(|value| value.as_i64().unwrap() > 1 << 32), "{name}");
    }
}

#[test]
fn lists_of_several_sstables_name_each() {
    let folder = statics();
    let file = folder.join("nb-1-big-Data.db");
    let names = |output: &Output| -> Vec<String> {
        let mut names: Vec<String> =
            lines(output).iter().map(|line| line["sstable"].as_str().unwrap_or("none").to_owned()).collect();
        names.dedup();
        names
    };
    assert_eq!(names(&on(&folder, &["index", "@", "--json"])), ["nb-1-big", "nb-2-big"]);
    assert_eq!(names(&on(&folder, &["dump", "@", "--format", "jsonl"])), ["nb-1-big", "nb-2-big"]);
    assert_eq!(names(&on(&file, &["dump", "@", "--format", "jsonl"])), ["none"]);
    let heads = |output: &Output| stdout(output).lines().filter(|line| line.ends_with("-big:")).count();
    assert_eq!((heads(&on(&folder, &["index", "@"])), heads(&on(&file, &["index", "@"]))), (2, 0));
}

#[test]
fn a_merge_that_is_refused_names_both() {
    let (folder, other) = (statics(), fixtures::table("cassandra/me/small/sstables/tombs_rev"));
    let arguments = ["sstable", "read", "--key", "[\"1\"]"].map(OsString::from);
    let paths = [folder.join("nb-1-big-Data.db"), other.join("me-1-big-Data.db")];
    let output = run(arguments.into_iter().chain(paths.iter().map(OsString::from)));
    assert_eq!(code(&output), 1);
    let message = stderr(&output);
    assert!(paths.iter().all(|path| message.contains(&path.display().to_string())), "{message}");
    assert!(message.contains(", descending") && !message.contains("Type"), "{message}");
}

#[test]
fn fences_are_written_beside_an_sstable() {
    let table = fixtures::table("cassandra/me/large/sstables/large_none");
    let folder = tempfile::tempdir().unwrap();
    copy(&table, folder.path());
    let data = folder.path().join("me-1-big-Data.db");
    let fences = folder.path().join("me-1-big-Fences.db");
    let row: &[&str] = &["read", "@", "--key", "[\"1\"]", "--from", "[9001]", "--to", "[9001]", "--stats"];
    let plain = on(&data, row);
    assert!(stderr(&plain).contains("\"fences\":[\"none\"]"), "{}", stderr(&plain));

    let output = on(folder.path(), &["fences", "@"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("me-1-big-Fences.db: 4 KiB\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("me-2-big-Fences.db: 4 KiB\n"), "{}", stdout(&output));
    let fenced = on(&data, row);
    assert_eq!(stdout(&fenced), stdout(&plain));
    let stats: Value = serde_json::from_str(stderr(&fenced)).unwrap();
    assert_eq!(stats["fences"][0], "4 KiB, in use");
    assert_eq!((&stats["index_requests"], &stats["data_requests"]), (&Value::from(1), &Value::from(1)));
    let off = on(&data, &[row, &["--no-fences"]].concat());
    assert!(stderr(&off).contains("\"fences\":[\"not wanted\"]"), "{}", stderr(&off));
    assert!(stdout(&on(&data, &["info", "@"])).contains("fences       4 KiB, in use\n"));
    assert!(stdout(&on(&data, &["verify", "@"])).contains("me-1-big: sound: "));

    assert!(stdout(&on(&data, &["fences", "@"])).contains("4 KiB, in use already"));
    std::fs::write(&fences, "damaged").unwrap();
    let output = on(&data, &["fences", "@"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("ignored: it is cut off; --force replaces it"), "{}", stderr(&output));
    assert_eq!(stdout(&on(&data, row)), stdout(&plain));
    assert_eq!(code(&on(&data, &["fences", "@", "--force"])), 0);
    assert!(stderr(&on(&data, row)).contains("4 KiB, in use"));
}

#[test]
fn rows_are_told_beside_an_sstable() {
    let table = fixtures::table("cassandra/me/large/sstables/large_none");
    let (source, folder) = (table.join("me-1-big-Data.db"), tempfile::tempdir().unwrap());
    let to = folder.path().to_str().unwrap();
    let small_blocks = ["--column-index-size-in-kb", "1", "--no-row-filter"];
    let converted = on(&source, &[&["convert", "--to", "me"], &small_blocks[..], &["@", to]].concat());
    assert_eq!(code(&converted), 0, "{}", stderr(&converted));
    let data = folder.path().join("me-1-big-Data.db");
    let row: &[&str] = &["read", "@", "--key", "[\"1\"]", "--from", "[9001]", "--to", "[9001]"];
    let plain = on(&data, row);
    let output = on(folder.path(), &["fences", "--rows", "@"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("me-1-big-RowFilter.db: 16 KiB\n"), "{}", stdout(&output));
    assert_eq!(stdout(&on(&data, row)), stdout(&plain));
    let info = on(&data, &["info", "@"]);
    assert!(stdout(&info).contains("row filter   16 KiB, in use\n"), "{}", stdout(&info));
    assert!(stdout(&on(&data, &["verify", "@"])).contains("me-1-big: sound: "));
    let again = on(&data, &["fences", "--rows", "@"]);
    assert_eq!(stdout(&again).matches("in use already").count(), 2, "{}", stdout(&again));
}

#[test]
fn tables_of_indexes_have_no_fences() {
    let table = fixtures::table("cassandra/me/small/sstables/idx/.idx_v");
    let folder = tempfile::tempdir().unwrap();
    let hidden = folder.path().join(".idx_v");
    std::fs::create_dir(&hidden).unwrap();
    copy(&table, &hidden);
    let output = on(&hidden, &["fences", "@"]);
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("has no tokens, and so no Fences.db"), "{}", stderr(&output));
}
