//! Lines of JSON, as `sstable dump` prints them and `sstable write` reads them.

#![no_main]

use std::path::Path;
use std::rc::Rc;

use libfuzzer_sys::fuzz_target;
use siltstone::json_rows::JsonRows;
use siltstone::table_schema::TableSchema;

/// A column of every kind that lines are read for in a way of their own.
const SCHEMA: &str = "
    CREATE TYPE ks.place (street text, number int);
    CREATE TABLE ks.t (
        a int, b text, c timestamp, d decimal,
        s text STATIC, t set<int> STATIC,
        v int, w blob, l list<text>, m map<text, int>, u place, f frozen<tuple<int, text>>,
        PRIMARY KEY ((a, b), c, d)
    ) WITH CLUSTERING ORDER BY (c DESC, d ASC)";

const COUNTERS: &str = "CREATE TABLE ks.t (a int, b int, n counter, PRIMARY KEY (a, b))";

fuzz_target!(|input: (bool, bool, &str)| {
    let (is_of_counters, has_default, lines) = input;
    let (path, text) = (Path::new("rows.json"), if is_of_counters { COUNTERS } else { SCHEMA });
    let table = TableSchema::parse(path, text, None).expect("the schema is sound");
    let mut rows = JsonRows::new(path, Rc::new(table.schema), has_default.then_some(1_700_000_000_000_000));
    for line in lines.split('\n') {
        let _ = rows.parse_line(line);
    }
});
