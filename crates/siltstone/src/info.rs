//! What the small components of an SSTable tell: Statistics.db, Summary.db, CompressionInfo.db, Filter.db
//! and TOC.txt.

use std::rc::Rc;

use model::time::NO_DELETION_TIME;
use model::{Column, CqlType, Position, Schema, Weight};
use runtime::Disk;
use sstable::data::chunk::DataFile;
use sstable::parts::filter::Filter;
use sstable::parts::statistics::{CommitLogPosition, Statistics, Stats};
use sstable::parts::summary::Summary;
use sstable::{SSTable, Version};

use crate::error::Result;
use crate::facts::{Fact, Unit, Value};
use crate::fragment_json::FragmentJson;
use crate::keys;

/// Everything about an SSTable that can be told without reading its rows.
///
/// Sizes are asked of `disk`. The facts are printed by [`crate::facts::write_text`] and
/// [`crate::facts::write_json`].
///
/// # Errors
/// If a component cannot be opened.
pub async fn facts(disk: &Disk, table: &Rc<SSTable>) -> Result<Vec<Fact>> {
    let statistics = table.statistics();
    let mut facts = vec![
        Fact::new("sstable", Value::Text(table.descriptor().to_string())),
        Fact::new("folder", Value::Text(table.descriptor().dir.display().to_string())),
        Fact::new("version", Value::Text(version_text(table.version()).to_owned())),
        group("components", components(disk, table).await?),
        group("columns", columns(table.schema())),
        group("contents", contents(table)),
        group("times", times(&statistics.stats)),
        group("state", state(&statistics.stats)),
        group("commit log", commit_log(&statistics.stats)),
        group("encoding", encoding(statistics)),
        group("compression", compression(&table.data().file)),
        group("filter", filter(table.filter().read_whole().await?.as_deref(), statistics)),
        group("summary", summary(table, table.summary().await?)),
        Fact::new("fences", Value::Text(table.fences_state().to_string())),
        Fact::new("bloom pages", Value::Text(table.filter().pages_usage().to_string())),
        Fact::new("row filter", Value::Text(table.row_filter_state().await.to_string())),
    ];
    facts.extend(histograms(&statistics.stats));
    Ok(facts)
}

/// Which servers write this version.
fn version_text(version: Version) -> &'static str {
    match version {
        Version::Mc => "mc (Cassandra 3.0.8 to 3.11, ScyllaDB 3)",
        Version::Md => "md (Cassandra 3.11, ScyllaDB 4)",
        Version::Me => "me (since Cassandra 3.11.11, ScyllaDB 5)",
        Version::Na => "na (Cassandra 4.0 before its release)",
        Version::Nb => "nb (Cassandra 4.0 to 5.0)",
        Version::Oa => "oa (Cassandra 5.0)",
    }
}

fn group(name: &str, facts: Vec<Fact>) -> Fact {
    Fact::new(name, Value::Group(facts))
}

/// The size of each component on disk.
async fn components(disk: &Disk, table: &SSTable) -> Result<Vec<Fact>> {
    let mut facts = Vec::new();
    for component in table.components(disk).await? {
        let path = table.descriptor().path_of(&component);
        let size = if disk.exists(&path) {
            let file = disk.open(&path, component.io_class()).await.map_err(sstable::Error::from)?;
            Value::Bytes(file.len())
        } else {
            Value::None("missing")
        };
        facts.push(Fact::about(component.name(), size));
    }
    Ok(facts)
}

fn columns(schema: &Schema) -> Vec<Fact> {
    let key = match &schema.partition_key {
        CqlType::Composite(columns) => columns.iter().map(CqlType::cql_name).collect(),
        column => vec![column.cql_name()],
    };
    vec![
        Fact::new("partition key", Value::List(key)),
        Fact::new("clustering", Value::List(keys::clustering_types(&schema.clustering))),
        group("static", schema.statics.iter().map(column).collect()),
        group("regular", schema.regulars.iter().map(column).collect()),
    ]
}

fn column(column: &Column) -> Fact {
    Fact::about(column.name_text(), Value::Text(column.data_type.cql_name()))
}

fn contents(table: &Rc<SSTable>) -> Vec<Fact> {
    let Statistics { stats, compaction, .. } = table.statistics();
    let mut fragments = FragmentJson::new(table.schema().clone(), 0);
    let mut key = |bytes: &[u8]| match fragments.key_text(bytes) {
        Ok(text) => Value::Text(text),
        Err(_) => Value::None("not a value of its type"),
    };
    let partitions = compaction.estimated_partitions();
    let tombstones = stats.tombstone_drop_times.bins.iter().fold(0u64, |sum, bin| sum.saturating_add(bin.1));
    let mut facts = vec![
        Fact::new("estimated partitions", partitions.map_or(Value::None("not told"), Value::Count)),
        Fact::new("rows", Value::Count(stats.row_count)),
        Fact::new("cells", Value::Count(stats.cell_count)),
        Fact::new("estimated tombstones and expiring cells", Value::Count(tombstones)),
        Fact::new("uncompressed data", Value::Bytes(table.data().file.len())),
        Fact::new("first key", key(table.first_key())),
        Fact::new("last key", key(table.last_key())),
    ];
    let covered = &stats.covered_clustering;
    let end = |position: &Position| Value::Text(position_text(&fragments, position));
    facts.extend([
        Fact::new("rows from", end(&covered.slice.start)),
        Fact::new("rows to", end(&covered.slice.end)),
        Fact::new("rows from and to are accurate", Value::Bool(covered.is_accurate)),
        Fact::new("may have partition deletions", Value::Bool(stats.may_have_partition_deletions)),
        Fact::new("has legacy counter shards", Value::Bool(stats.has_legacy_counter_shards)),
        Fact::new(
            "share of the token space",
            stats.token_space_coverage.map_or(Value::None("not told"), Value::Number),
        ),
    ]);
    facts
}

/// A place among rows, in words and JSON: `before [1,"a"]`.
pub fn position_text(fragments: &FragmentJson, position: &Position) -> String {
    let prefix = match fragments.clustering_text(&position.prefix) {
        Ok(text) => text,
        Err(error) => format!("[{error}]"),
    };
    match position.weight {
        Weight::Before if position.prefix.is_empty() => "before all".to_owned(),
        Weight::After if position.prefix.is_empty() => "after all".to_owned(),
        Weight::Before => format!("before {prefix}"),
        Weight::At => prefix,
        Weight::After => format!("after {prefix}"),
    }
}

fn times(stats: &Stats) -> Vec<Fact> {
    let deletion = |time: i64| match time {
        NO_DELETION_TIME => Value::None("never"),
        time => Value::Seconds(time),
    };
    vec![
        Fact::new("least timestamp", Value::Micros(stats.min_timestamp)),
        Fact::new("greatest timestamp", Value::Micros(stats.max_timestamp)),
        Fact::new("first deletion or expiry", deletion(stats.min_local_deletion_time)),
        Fact::new("last deletion or expiry", deletion(stats.max_local_deletion_time)),
        Fact::new("least ttl", Value::Span(u64::from(stats.min_ttl))),
        Fact::new("greatest ttl", Value::Span(u64::from(stats.max_ttl))),
    ]
}

fn state(stats: &Stats) -> Vec<Fact> {
    let id = |id: Option<[u8; 16]>, none| id.map_or(Value::None(none), |id| Value::Text(uuid_text(id)));
    let repaired =
        if stats.repaired_at == 0 { Value::None("never") } else { Value::Millis(stats.repaired_at) };
    vec![
        Fact::new("level", Value::Count(u64::from(stats.level))),
        Fact::new("repaired at", repaired),
        Fact::new("pending repair", id(stats.pending_repair, "none")),
        Fact::new("transient", Value::Bool(stats.is_transient)),
        Fact::new("originating host", id(stats.originating_host, "not told")),
    ]
}

fn uuid_text(id: [u8; 16]) -> String {
    let text = CqlType::Uuid.to_text(&id);
    text.unwrap_or_else(|error| error.to_string())
}

fn commit_log(stats: &Stats) -> Vec<Fact> {
    let place = |place: &CommitLogPosition| format!("segment {} at {}", place.segment, place.position);
    let intervals = stats.commit_log_intervals.iter();
    let intervals = intervals.map(|(from, to)| format!("{} to {}", place(from), place(to)));
    vec![
        Fact::new("lower bound", Value::Text(place(&stats.commit_log_lower_bound))),
        Fact::new("upper bound", Value::Text(place(&stats.commit_log_upper_bound))),
        Fact::new("intervals", Value::List(intervals.collect())),
    ]
}

fn encoding(statistics: &Statistics) -> Vec<Fact> {
    let encoding = &statistics.header.encoding;
    vec![
        Fact::new("partitioner", Value::Text(statistics.validation.partitioner_class.clone())),
        Fact::new("timestamps count from", Value::Micros(encoding.min_timestamp)),
        Fact::new("deletion times count from", Value::Seconds(encoding.min_local_deletion_time)),
        Fact::new("ttls count from", Value::Integer(encoding.min_ttl)),
    ]
}

fn compression(file: &DataFile) -> Vec<Fact> {
    let Some(chunks) = file.compression() else {
        return vec![Fact::new("compressor", Value::None("none: the data is not compressed"))];
    };
    let max = chunks.max_compressed_len();
    let raw_from = if max >= i32::MAX as u32 { Value::None("never") } else { Value::Bytes(u64::from(max)) };
    let options = chunks.options().iter().map(|(name, value)| format!("{name} = {value}"));
    vec![
        Fact::new("compressor", Value::Text(chunks.compressor().class_name().to_owned())),
        Fact::new("options", Value::List(options.collect())),
        Fact::new("chunk length", Value::Bytes(u64::from(chunks.chunk_len()))),
        Fact::new("chunks", Value::Count(chunks.count())),
        Fact::new("chunks are kept raw from", raw_from),
        Fact::new("uncompressed data", Value::Bytes(chunks.uncompressed_len())),
        Fact::new("memory", Value::Bytes(file.memory_bytes() as u64)),
    ]
}

fn filter(filter: Option<&Filter>, statistics: &Statistics) -> Vec<Fact> {
    let wanted =
        Fact::new("wanted chance of false positives", Value::Share(statistics.validation.filter_fp_chance));
    let Some(filter) = filter else {
        return vec![Fact::new("filter", Value::None("none: every key may be there")), wanted];
    };
    vec![
        wanted,
        Fact::new("chance of false positives as filled", Value::Share(filter.false_positive_rate())),
        Fact::new("hashes", Value::Count(u64::from(filter.hash_count()))),
        Fact::new("bits", Value::Count(filter.bits())),
        Fact::new("memory", Value::Bytes(filter.memory_bytes() as u64)),
    ]
}

fn summary(table: &SSTable, summary: &Summary) -> Vec<Fact> {
    vec![
        Fact::new("rebuilt", Value::Bool(table.summary_was_missing())),
        Fact::new("entries", Value::Count(summary.len() as u64)),
        Fact::new("least index interval", Value::Count(u64::from(summary.min_index_interval()))),
        Fact::new("sampling level", Value::Count(u64::from(summary.sampling_level()))),
        Fact::new("entries at full sampling", Value::Count(u64::from(summary.size_at_full_sampling()))),
        Fact::new("memory", Value::Bytes(summary.memory_bytes() as u64)),
    ]
}

fn histograms(stats: &Stats) -> [Fact; 3] {
    [
        Fact::new("partition sizes", Value::Histogram(Box::new(stats.partition_sizes.clone()), Unit::Bytes)),
        Fact::new("cells a partition", Value::Histogram(Box::new(stats.cell_counts.clone()), Unit::Cells)),
        Fact::new(
            "tombstones become droppable",
            Value::DropTimes(Box::new(stats.tombstone_drop_times.clone())),
        ),
    ]
}

/// What to print of one SSTable: its facts, each group under its name.
pub fn to_text(facts: &[Fact]) -> String {
    let mut text = String::new();
    crate::facts::write_text(facts, 0, &mut text);
    text.push('\n');
    text
}
