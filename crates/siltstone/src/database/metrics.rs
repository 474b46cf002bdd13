//! What a database counts, as Prometheus reads it.
//!
//! ```text
//! # HELP siltstone_memtable_bytes Memory that memtables take.
//! # TYPE siltstone_memtable_bytes gauge
//! siltstone_memtable_bytes{shard="0"} 4096
//! ```
//!
//! The counts lie on the shards, where they cost no atomics; they are asked for when somebody looks.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Inner;
use super::worker::Worker;
use crate::Result;

/// Name, kind and meaning of each metric.
const METRICS: [(&str, &str, &str); 28] = [
    ("siltstone_memtable_bytes", "gauge", "Memory that memtables take."),
    ("siltstone_commit_log_bytes", "gauge", "Bytes of the commit log's segments."),
    ("siltstone_cache_bytes", "gauge", "Memory that cached rows and parts of indexes and files take."),
    (
        "siltstone_cache_reserved_bytes",
        "gauge",
        "What open SSTables, and tokens gathered of them, take of the cache's budget.",
    ),
    ("siltstone_cache_hits_total", "counter", "Lookups in the cache that found something."),
    ("siltstone_cache_misses_total", "counter", "Lookups in the cache that found nothing."),
    ("siltstone_read_requests_total", "counter", "Reads asked of the operating system."),
    ("siltstone_read_bytes_total", "counter", "Bytes of these reads."),
    (
        "siltstone_reads_dropped_total",
        "counter",
        "Reads that were begun ahead, and whose bytes nobody wanted.",
    ),
    ("siltstone_write_requests_total", "counter", "Writes asked of the operating system."),
    ("siltstone_write_bytes_total", "counter", "Bytes of these writes."),
    ("siltstone_syncs_total", "counter", "Files and folders that were synced."),
    ("siltstone_reads_running", "gauge", "Reads that were let in and have not ended."),
    ("siltstone_reads_memory_bytes", "gauge", "Memory that these reads take."),
    ("siltstone_reads_waited_total", "counter", "Reads that had to wait to be let in."),
    ("siltstone_reads_refused_total", "counter", "Reads that were turned away."),
    ("siltstone_sstables", "gauge", "SSTables of a table, those that several shards share counted by each."),
    (
        "siltstone_sstables_gathered",
        "gauge",
        "Those of a table that are asked for a partition by one look at all of them, as many overlap.",
    ),
    (
        "siltstone_newest_first_total",
        "counter",
        "Reads of single rows that went to the newest SSTable first.",
    ),
    ("siltstone_newest_first_hits_total", "counter", "Those of them that did not have to read all SSTables."),
    ("siltstone_row_cache_bytes", "gauge", "Memory that cached rows of a table take."),
    ("siltstone_row_cache_hits_total", "counter", "Reads of slices that were cached whole."),
    ("siltstone_row_cache_partial_hits_total", "counter", "Those that were cached in part."),
    ("siltstone_row_cache_misses_total", "counter", "Those of which nothing was cached."),
    ("siltstone_compactions_total", "counter", "Compactions that ended well."),
    ("siltstone_compactions_failed_total", "counter", "Compactions that did not, cancelled ones too."),
    ("siltstone_compacted_bytes_total", "counter", "Bytes on disk of the SSTables that went by them."),
    ("siltstone_compacted_into_bytes_total", "counter", "Bytes on disk of the SSTables that came by them."),
];

/// What one shard has counted: by the name of the metric, and the table if it is one of a table.
type Counts = Vec<(&'static str, Option<String>, u64)>;

/// The text of all metrics.
pub(super) async fn text(inner: &Inner) -> Result<String> {
    let shards = inner.each(async |worker, ()| worker.counts(), &()).await?;
    let mut samples: BTreeMap<&str, String> = BTreeMap::new();
    for (shard, counts) in shards.iter().enumerate() {
        for (name, table, value) in counts {
            let table = table.as_ref().map(|table| format!(",table={table:?}")).unwrap_or_default();
            let line = samples.entry(name).or_default();
            writeln!(line, "{name}{{shard=\"{shard}\"{table}}} {value}").expect("a string takes all");
        }
    }
    let mut text = String::new();
    for (name, kind, help) in METRICS {
        if let Some(samples) = samples.get(name) {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a string takes all");
            text.push_str(samples);
        }
    }
    Ok(text)
}

impl Worker {
    fn counts(&self) -> Result<Counts> {
        let mut counts = Counts::new();
        let mut add = |name, value| counts.push((name, None, value));
        let (context, admission) = (self.context()?, self.admission()?.stats());
        let memtables: usize = self.tables().iter().map(|table| table.table.memtable_bytes()).sum();
        add("siltstone_memtable_bytes", memtables as u64);
        if let Ok(store) = self.store() {
            let compactions = store.compaction_stats();
            add("siltstone_commit_log_bytes", store.log().size());
            add("siltstone_compactions_total", compactions.done);
            add("siltstone_compactions_failed_total", compactions.failed);
            add("siltstone_compacted_bytes_total", compactions.bytes_in);
            add("siltstone_compacted_into_bytes_total", compactions.bytes_out);
        }
        let (cache, disk) = (context.cache.stats(), context.disk.stats());
        add("siltstone_cache_bytes", context.cache.used() as u64);
        add("siltstone_cache_reserved_bytes", context.cache.reserved() as u64);
        add("siltstone_cache_hits_total", cache.hits);
        add("siltstone_cache_misses_total", cache.misses);
        add("siltstone_read_requests_total", disk.total().requests);
        add("siltstone_read_bytes_total", disk.total().bytes);
        add("siltstone_reads_dropped_total", disk.dropped());
        add("siltstone_write_requests_total", disk.total_writes().requests);
        add("siltstone_write_bytes_total", disk.total_writes().bytes);
        add("siltstone_syncs_total", disk.syncs());
        add("siltstone_reads_running", admission.reads as u64);
        add("siltstone_reads_memory_bytes", admission.memory as u64);
        add("siltstone_reads_waited_total", admission.waited);
        add("siltstone_reads_refused_total", admission.refused);
        for table in self.tables() {
            let (name, single) = (table.shape().name(), table.table.single_key_stats());
            let sstables = table.table.sstables();
            let rows = table.table.row_cache().stats();
            let mut add = |metric, value| counts.push((metric, Some(name.clone()), value));
            add("siltstone_sstables", sstables.members().len() as u64);
            add("siltstone_sstables_gathered", sstables.gathered() as u64);
            add("siltstone_newest_first_total", single.newest_first);
            add("siltstone_newest_first_hits_total", single.hits);
            add("siltstone_row_cache_bytes", rows.bytes as u64);
            add("siltstone_row_cache_hits_total", rows.hits);
            add("siltstone_row_cache_partial_hits_total", rows.partial_hits);
            add("siltstone_row_cache_misses_total", rows.misses);
        }
        Ok(counts)
    }
}
