//! What CQL says of the tables of all fixtures is what the headers of their SSTables say.

use std::path::{Path, PathBuf};

use model::{Column, Schema};
use runtime::{Cache, Shard, ShardOptions};
use siltstone::table_schema::TableSchema;
use sstable::{OpenOptions, SSTable};
use testkit::fixtures::{self, Fixture};

use crate::schemas::described;

/// Tables with columns that were dropped once their SSTables were written: only there are they known.
const DROPPED: [(&str, &[&str]); 1] = [("dropped", &["s"])];

/// What of a header is not so in the table.
fn difference(table: &str, ours: &Schema, header: &Schema) -> Option<String> {
    if ours.partition_key != header.partition_key {
        return Some(format!("partition key {}, not {}", ours.partition_key, header.partition_key));
    }
    if ours.clustering != header.clustering {
        return Some(format!("clustering {:?}, not {:?}", ours.clustering, header.clustering));
    }
    let is_dropped = |column: &Column| {
        DROPPED.iter().any(|(dropped, columns)| *dropped == table && columns.contains(&&*column.name_text()))
    };
    for of_static in [true, false] {
        let mut columns = ours.columns(of_static).iter();
        for column in header.columns(of_static).iter().filter(|column| !is_dropped(column)) {
            // The order is the same too: whatever is looked for stands behind what was found before.
            if !columns.any(|ours| ours == column) {
                return Some(format!("no column {} of type {}", column.name_text(), column.data_type));
            }
        }
    }
    None
}

async fn check(shard: &Shard, fixture: &Fixture, schema: &Path, table: &str) -> Option<String> {
    let text = std::fs::read_to_string(schema).unwrap();
    let parsed = match TableSchema::parse(schema, &text, Some(table)) {
        Ok(parsed) => parsed,
        Err(error) => return Some(error.to_string()),
    };
    let options = OpenOptions::new(Cache::new(1 << 20));
    let sstable = SSTable::open(shard.disk(), &fixture.data, &options).await.unwrap();
    assert_eq!(parsed.clustering.len(), parsed.schema.clustering.len());
    // A CREATE TABLE that a person has written may have no options; those that a server prints have all.
    if !parsed.options.all.is_empty() {
        assert_eq!(parsed.options.text("gc_grace_seconds"), Some("864000"));
        assert!(parsed.options.map("compression").is_some());
    }
    difference(table, &parsed.schema, sstable.schema())
}

#[test]
fn headers_have_the_columns_of_their_tables() {
    let described: Vec<(Fixture, (PathBuf, String))> = fixtures::all()
        .into_iter()
        .filter(|fixture| !fixture.name.contains("idx_v"))
        .filter_map(|fixture| described(&fixture).map(|described| (fixture, described)))
        .collect();
    runtime::run(ShardOptions { direct_io: false, ..ShardOptions::default() }, async move |shard: Shard| {
        let mut failures = Vec::new();
        for (fixture, (schema, table)) in &described {
            let wrong = check(&shard, fixture, schema, table).await;
            failures.extend(wrong.map(|what| format!("{}: {what}", fixture.name)));
        }
        let count = described.len();
        println!("{count} headers are compared");
        assert!(count >= 150, "{count}");
        assert!(failures.is_empty(), "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
    })
    .unwrap();
}
