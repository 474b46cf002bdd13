//! What options bound: how many reads are let in at once, and where shards run.

use siltstone::Error;
use siltstone::database::{Batch, Database, Options, Slice, Write};

use crate::database::{CREATE, open, options};
use crate::scanned::scanned;

/// So many reads wait at the most.
const WAITING: usize = 1000;
/// So many are asked for at once. Where a file system has no direct I/O its page cache answers the first ones without a wait, but not that
/// many in a row.
const ASKED: usize = 3000;

/// One read after the other is let in, and of those that come in between no more wait than there is room for.
#[test]
fn reads_wait_for_memory_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let database = open(folder.path(), 1);
    let table = database.create_table(CREATE).wait().unwrap();
    let rows = (0..ASKED as i32).map(|k| Write::insert(k, 1).set("v", "v"));
    table.write(rows.collect::<Batch>()).wait().unwrap();
    table.flush().wait().unwrap();
    database.close().wait().unwrap();
    // A read that takes more than there is is let in alone.
    let database =
        Database::open(folder.path(), Options { reads: 1, direct_io: true, ..options(1) }).wait().unwrap();
    let table = database.table("t").unwrap();
    // On their shard they all ask before the first one of them has come back from the disk.
    let work = async move || {
        let reads = (0..ASKED as i32).map(|k| table.slice(k, Slice::all()));
        Ok(runtime::join_all(reads).await)
    };
    let answers = database.run_on(0, work).wait().unwrap();
    let mut refused = 0;
    for answer in answers {
        match answer {
            Ok(page) => assert_eq!(page.rows.len(), 1),
            Err(error) => {
                assert!(matches!(&error, Error::Storage(storage::Error::Overloaded(_))), "{error:?}");
                // A disk may be so slow that some have waited for too long.
                refused += usize::from(error.to_string().contains("1000 reads are waiting already"));
            }
        }
    }
    assert!((1..ASKED - WAITING).contains(&refused), "{refused} were refused");
    let metrics = database.metrics().wait().unwrap();
    for (name, value) in
        [("waited_total", WAITING), ("refused_total", refused), ("running", 0), ("memory_bytes", 0)]
    {
        let line = format!("siltstone_reads_{name}{{shard=\"0\"}} {value}\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
    let table = database.table("t").unwrap();
    assert_eq!(table.slice(ASKED as i32 - 1, Slice::all()).wait().unwrap().rows.len(), 1, "it has room now");
}

/// The CPUs that this thread may run on, as the operating system writes them.
fn allowed_cpus() -> String {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
}

/// Shards beyond the number of CPUs share them.
#[test]
fn shards_stay_where_they_are_pinned() {
    let (folder, cpus) = (tempfile::tempdir().unwrap(), runtime::cpus().unwrap());
    let shards = cpus.len() + 1;
    for pin in [true, false] {
        let options = Options { pin, ..options(shards) };
        let database = Database::open(folder.path(), options).wait().unwrap();
        for shard in 0..shards {
            let allowed = database.run_on(shard, async || Ok(allowed_cpus())).wait().unwrap();
            let expected = if pin { cpus[shard % cpus.len()].to_string() } else { allowed_cpus() };
            assert_eq!(allowed, expected, "shard {shard}");
        }
        let table = database.table("t").or_else(|_| database.create_table(CREATE).wait()).unwrap();
        table.write((0..100).map(|k| Write::insert(k, 1)).collect::<Batch>()).wait().unwrap();
        table.flush().wait().unwrap();
        assert_eq!(scanned(&table, 1000).len(), 100);
    }
}

/// A row is let in with what one SSTable takes. Each of these is in eight of them, for which there is room only once at a time: those that
/// have begun give their permits back, and wait for larger ones.
#[test]
fn rows_of_several_sstables_wait_for_the_memory_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let create = "CREATE TABLE ks.t (k int PRIMARY KEY, m map<int, int>) WITH caching = {'keys': 'NONE', \
        'rows_per_partition': 'NONE'} AND compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}";
    let database = open(folder.path(), 1);
    let table = database.create_table(create).wait().unwrap();
    for of in 0..8 {
        table
            .write((0..200).map(|k| Write::update(k, ()).put("m", of, k)).collect::<Batch>())
            .wait()
            .unwrap();
        table.flush().wait().unwrap();
    }
    database.close().wait().unwrap();
    let database = Database::open(folder.path(), Options { reads: 3 << 20, direct_io: true, ..options(1) })
        .wait()
        .unwrap();
    let table = database.table("t").unwrap();
    let work = async move || Ok(runtime::join_all((0..200).map(|k| table.get(k, ()))).await);
    for (k, row) in database.run_on(0, work).wait().unwrap().into_iter().enumerate() {
        let map: Vec<String> = (0..8).map(|of| format!("\"{of}\": {k}")).collect();
        let row = row.unwrap().expect("it is there").json_of("m").unwrap();
        assert_eq!(row, format!("{{{}}}", map.join(", ")));
    }
    let metrics = database.metrics().wait().unwrap();
    for ended in ["running", "memory_bytes"] {
        assert!(metrics.contains(&format!("siltstone_reads_{ended}{{shard=\"0\"}} 0\n")), "{metrics}");
    }
    let waited =
        metrics.lines().find_map(|line| line.strip_prefix("siltstone_reads_waited_total{shard=\"0\"} "));
    assert!(waited.is_some_and(|waited| waited.parse::<u32>().unwrap() > 100), "{waited:?}");
}
