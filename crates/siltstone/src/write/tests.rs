//! Lines that become SSTables on a simulated disk, in memory and in runs.

use std::io::Cursor;

use model::{Column, CqlType, Fragment, FragmentReader};
use runtime::{Cache, Shard, SimOptions, run_simulated};
use sstable::component::Component;
use sstable::{OpenOptions, SSTable};

use super::*;
use crate::dump::{Dump, Format};

const DEST: &str = "/new/table";

fn job(version: Version) -> Job {
    let column = |name: &str, data_type| Column { name: name.as_bytes().into(), data_type };
    let regulars = vec![column("v", CqlType::Int), column("w", CqlType::Int)];
    let schema = Schema::new(CqlType::Int, vec![CqlType::Int], vec![column("s", CqlType::Int)], regulars);
    Job::new(Rc::new(schema), version, WriteOptions::new(version))
}

fn row(key: i32, clustering: i32, timestamp: i64) -> String {
    format!(
        r#"{{"type":"row","key":["{key}"],"clustering":[{clustering}],"cells":[{{"name":"v","value":1,"tstamp":{timestamp}}}]}}"#
    )
}

fn range_end(key: i32, which: &str, clustering: i32, local_delete_time: i64) -> String {
    format!(
        r#"{{"type":"range_tombstone_bound","key":["{key}"],"{which}":{{"type":"inclusive","clustering":[{clustering}],"deletion_info":{{"marked_deleted":5,"local_delete_time":{local_delete_time}}}}}}}"#
    )
}

fn input(path: &str, lines: &[String]) -> Input {
    Input { path: PathBuf::from(path), lines: Box::new(Cursor::new(lines.join("\n"))) }
}

async fn written(shard: &Shard, job: &Job, lines: &[String]) -> Result<Outcome> {
    write(shard.disk(), job, vec![input("rows", lines)], Path::new(DEST), &mut |_| {}).await
}

async fn refused(shard: &Shard, job: &Job, lines: &[String]) -> String {
    written(shard, job, lines).await.unwrap_err().to_string()
}

async fn dumped(shard: &Shard, outcome: &Outcome) -> String {
    let path = outcome.written.descriptor.path_of(&Component::Data);
    let options = OpenOptions::new(Cache::new(1 << 20));
    let table = SSTable::open(shard.disk(), &path, &options).await.unwrap();
    let mut text = Vec::new();
    Dump::new(&table, Format::JsonLines, 0).all(&mut text, &mut |_| {}).await.unwrap();
    String::from_utf8(text).unwrap()
}

fn simulated<T>(main: impl AsyncFnOnce(Shard) -> T) -> T {
    run_simulated(SimOptions::default(), main).unwrap()
}

/// The names of what is in the folder.
fn names(shard: &Shard) -> Vec<String> {
    let paths = shard.disk().list(Path::new(DEST)).unwrap();
    paths.iter().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn runs_are_merged_to_what_memory_would_have_made() {
    let mut lines: Vec<String> = (0..300).map(|n| row(n * 7 % 50, n * 11 % 40, 10 + i64::from(n))).collect();
    // The two ends of a range come far from each other, the later one first.
    lines.insert(3, range_end(5, "end", 9, 7));
    lines.insert(250, range_end(5, "start", 2, 7));
    simulated(async |shard| {
        let whole = written(&shard, &job(Version::Me), &lines).await.unwrap();
        let expected = dumped(&shard, &whole).await;
        assert_eq!(whole.runs, 0);
        assert_eq!(expected.matches("\"row\"").count() as u64, whole.rows);
        assert_eq!(expected.matches("range_tombstone_bound").count(), 2);
        for memory in [1, 20_000] {
            let job = Job { memory, ..job(Version::Me) };
            let mut steps = Vec::new();
            let inputs = vec![input("rows", &lines)];
            let outcome =
                write(shard.disk(), &job, inputs, Path::new(DEST), &mut |step| steps.push(step)).await;
            let outcome = outcome.unwrap();
            assert!(outcome.runs > 1 && (memory > 1 || outcome.runs > 300), "{} runs", outcome.runs);
            assert_eq!((outcome.rows, outcome.written.partitions), (whole.rows, whole.written.partitions));
            assert_eq!(outcome.written.data_len, whole.written.data_len, "all is relative to the same times");
            assert_eq!(dumped(&shard, &outcome).await, expected);
            assert!(names(&shard).iter().all(|name| name.starts_with("me-")), "{:?}", names(&shard));
        }
    });
}

#[test]
fn only_columns_that_occur_are_in_the_header() {
    simulated(async |shard| {
        let outcome = written(&shard, &job(Version::Nb), &[row(1, 1, 5)]).await.unwrap();
        let path = outcome.written.descriptor.path_of(&Component::Data);
        let table = SSTable::open(shard.disk(), &path, &OpenOptions::new(Cache::new(1 << 20))).await.unwrap();
        assert_eq!((table.schema().statics.len(), table.schema().regulars.len()), (0, 1));
        assert_eq!(table.statistics().header.encoding.min_timestamp, 5);
        let mut rows = table.scan();
        assert!(matches!(rows.next().await.unwrap(), Some(Fragment::PartitionStart(_))));
    });
}

#[test]
fn errors_name_file_and_line_and_leave_nothing() {
    let good = [row(1, 1, 5), row(2, 2, 6), String::new()];
    let with = |line: &str| [&good[..], &[line.to_owned()], &good[..]].concat();
    simulated(async |shard| {
        for memory in [1, 64 << 20] {
            let job = Job { memory, ..job(Version::Me) };
            for (line, expected) in [
                ("{", "rows:4:2: "),
                (r#"{"type":"row","key":["1"],"clustering":[1],"cells":[{"name":"x","value":1}]}"#, "rows:4"),
                (&range_end(1, "start", 5, 7), "rows:4: this end of a range tombstone has no other end"),
                (&range_end(1, "start", 5, i64::from(u32::MAX) - 2), "rows:4: a range of rows"),
                (&row(1, 1, 5).replace("5", "null"), "rows:4"),
            ] {
                let error = refused(&shard, &job, &with(line)).await;
                assert!(error.starts_with(expected) || error.contains("version me ends at"), "{error}");
                assert!(error.starts_with("rows:4"), "{error}");
                assert!(!shard.disk().exists(Path::new(DEST)), "{error}");
            }
        }
    });
}

#[test]
fn several_inputs_become_one() {
    simulated(async |shard| {
        let inputs = || vec![input("a", &[row(1, 1, 5)]), input("b", &[row(2, 1, 5), row(1, 2, 5)])];
        let (job, dest) = (job(Version::Oa), Path::new(DEST));
        let outcome = write(shard.disk(), &job, inputs(), dest, &mut |_| {}).await.unwrap();
        assert_eq!((outcome.written.partitions, outcome.rows), (2, 3));
        let wrong = [inputs(), vec![input("c", &[row(1, 1, 5), "[]".to_owned()])]].into_iter().flatten();
        let error = write(shard.disk(), &job, wrong.collect(), dest, &mut |_| {}).await.unwrap_err();
        assert!(error.to_string().starts_with("c:2:"), "{error}");
        assert!(names(&shard).iter().all(|name| name.starts_with("oa-1-")), "{:?}", names(&shard));
    });
}

#[test]
fn what_is_empty_or_no_text_is_refused() {
    simulated(async |shard| {
        let job = job(Version::Me);
        assert_eq!(refused(&shard, &job, &[]).await, "rows: there are no rows in it");
        assert_eq!(
            refused(&shard, &job, &[String::new(), " ".to_owned()]).await,
            "rows: there are no rows in it"
        );
        let bytes = Input { path: PathBuf::from("rows"), lines: Box::new(&b"\n\xff\xfe\n"[..]) };
        let error = write(shard.disk(), &job, vec![bytes], Path::new(DEST), &mut |_| {}).await.unwrap_err();
        assert_eq!(error.to_string(), "rows:2: it is not UTF-8");
        assert!(write(shard.disk(), &job, Vec::new(), Path::new(DEST), &mut |_| {}).await.is_err());
        assert!(!shard.disk().exists(Path::new(DEST)));
    });
}

#[test]
fn leftovers_are_removed() {
    simulated(async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        let kept = [".siltstone-write.x.tmp/a", "notes.tmp"];
        let left = [".siltstone-write.9.tmp/me-1-big-Data.db", "me-4-big-Data.db", "me-4-big-TOC.txt.tmp"];
        kept.iter().chain(&left).for_each(|name| disk.add_file(format!("{DEST}/{name}"), vec![1]));
        written(&shard, &job(Version::Me), &[row(1, 1, 5)]).await.unwrap();
        let names = names(&shard);
        assert_eq!(
            names.iter().filter(|name| !name.starts_with("me-1-")).collect::<Vec<_>>(),
            [".siltstone-write.x.tmp", "notes.tmp"]
        );
    });
}

#[test]
fn a_full_disk_is_left_as_it_was() {
    let lines: Vec<String> = (0..60).map(|n| row(n, n, 5)).collect();
    simulated(async |shard| {
        let disk = shard.disk().as_simulated().unwrap();
        disk.add_file(format!("{DEST}/notes"), vec![1]);
        let mut failures = 0;
        for memory in [8_000, 64 << 20] {
            let job = Job { memory, ..job(Version::Me) };
            for capacity in (100..).step_by(700) {
                disk.set_options(SimOptions { capacity: Some(capacity), ..SimOptions::default() });
                let Err(_) = written(&shard, &job, &lines).await else { break };
                assert_eq!(names(&shard), ["notes"], "{capacity} bytes");
                failures += 1;
            }
            names(&shard).iter().filter(|name| *name != "notes").for_each(|name| {
                disk.remove_file(&Path::new(DEST).join(name));
            });
        }
        assert!(failures > 10, "{failures}");
    });
}

#[test]
fn what_a_power_cut_leaves_is_cleared_by_the_next_one() {
    let lines: Vec<String> = (0..20).map(|n| row(n, n, 5)).collect();
    let job = Job { memory: 4_000, ..job(Version::Me) };
    let cut = |at: u64| {
        simulated(async |shard| {
            let disk = shard.disk().as_simulated().unwrap();
            disk.set_options(SimOptions { crash_at: Some(at), seed: at, ..SimOptions::default() });
            let is_cut = written(&shard, &job, &lines).await.is_err();
            disk.restart();
            disk.set_options(SimOptions::default());
            let outcome = written(&shard, &job, &lines).await.unwrap();
            assert_eq!(outcome.rows, 20);
            assert!(
                names(&shard).iter().all(|name| name.starts_with("me-") && !name.ends_with(".tmp")),
                "{at}"
            );
            is_cut
        })
    };
    assert!((0..).step_by(5).take_while(|&at| cut(at)).count() > 10);
}
