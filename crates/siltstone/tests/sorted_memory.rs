//! What sorted rows say of their memory is about what they hold.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::rc::Rc;

use model::{Column, CqlType, Schema};
use siltstone::json_rows::JsonRows;
use siltstone::sorted_rows::SortedRows;
use testkit::allocator::{Watched, held};

#[global_allocator]
static WATCHED: Watched = Watched;

/// What is held for each byte that is told, in percent, once `rows` lines of `partitions` partitions are in.
fn held_percent(rows: usize, partitions: usize) -> usize {
    let value = Column { name: b"v"[..].into(), data_type: CqlType::Text };
    let schema = Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![], vec![value]));
    let mut lines = JsonRows::new(Path::new("rows"), schema.clone(), Some(1));
    let mut sorted = SortedRows::new(schema);
    let before = held();
    for row in 0..rows {
        let key = row % partitions;
        let cell = r#"{"name":"v","value":"some text"}"#;
        let line = format!(r#"{{"type":"row","key":["{key}"],"clustering":[{row}],"cells":[{cell}]}}"#);
        sorted.insert(lines.parse_line(&line).unwrap().unwrap());
    }
    100 * (held() - before) / sorted.memory()
}

#[test]
fn memory_is_told() {
    for (rows, partitions) in [(20_000, 1), (20_000, 20_000), (20_000, 700)] {
        let percent = held_percent(rows, partitions);
        assert!((80..120).contains(&percent), "{rows} rows, {partitions} partitions: {percent} %");
    }
}
