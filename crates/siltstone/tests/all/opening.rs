//! How much is read when a database is opened, by how many shards.

use siltstone::database::{Batch, Database, Options, Write};

use crate::database::{open, options};
use crate::scanned::scanned;

/// Each of four shards has forty SSTables. One shard would read each once when it opens them; four read each twice, not four times.
#[test]
fn shards_do_not_open_what_is_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let create = "CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH compaction = \
        {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}";
    let database = open(folder.path(), 4);
    let table = database.create_table(create).wait().unwrap();
    for round in 0..40 {
        table
            .write((0..64).map(|k| Write::insert(k, ()).set("v", round.to_string())).collect::<Batch>())
            .wait()
            .unwrap();
        table.flush().wait().unwrap();
    }
    database.close().wait().unwrap();
    let opened = |shards| {
        let database = Database::open(folder.path(), Options { shards, ..options(shards) }).wait().unwrap();
        let text = database.metrics().wait().unwrap();
        let of = |name: &str| -> u64 {
            let lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
        };
        let rows = scanned(&database.table("t").unwrap(), 1000);
        (of("siltstone_read_requests_total{"), of("siltstone_sstables{"), rows)
    };
    let (by_one, sstables, rows) = opened(1);
    let (by_four, of_four, same) = opened(4);
    assert_eq!((sstables, of_four, rows.len(), rows == same), (160, 160, 64, true));
    assert!(by_four < by_one * 9 / 4, "{by_one} requests by one, {by_four} by four");
    // Other parts of the ring: some are of two shards.
    assert_eq!(opened(3).2, rows);
}
