//! Rows that are loaded from lines: which of several of one row counts, and what is refused.

use std::path::Path;

use siltstone::Error;
use siltstone::database::{Database, Options, Table, Value, Write};
use siltstone::load::{Form, LoadOptions, load};

use crate::scanned::scanned;

fn with_table(create: &str, test: impl FnOnce(&Table)) {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait().unwrap();
    let table = database.create_table(create).wait().unwrap();
    test(&table);
}

fn loaded(table: &Table, form: Form, lines: &str) -> Result<u64, Error> {
    let options = LoadOptions { form, ..LoadOptions::default() };
    load(table, Path::new("rows"), &mut lines.as_bytes(), options, &mut |_| ())
}

/// As with one statement after the other, however close the lines are: neither the greater value nor the deletion counts.
#[test]
fn of_two_lines_of_one_row_the_later_one_counts() {
    let lines = [
        r#"{"k":1,"v":9}"#,
        r#"{"k":1,"v":5}"#,
        r#"{"k":2,"v":null}"#,
        r#"{"k":2,"v":5}"#,
        r#"{"k":3,"l":[1]}"#,
        r#"{"k":3,"l":[1]}"#,
    ];
    with_table("CREATE TABLE ks.t (k int PRIMARY KEY, v int, l list<int>)", |table| {
        assert_eq!(loaded(table, Form::JsonLines, &lines.join("\n")).unwrap(), 6);
        let mut rows = scanned(table, 10);
        rows.sort();
        let expected =
            [r#"{"k":1,"l":null,"v":5}"#, r#"{"k":2,"l":null,"v":5}"#, r#"{"k":3,"l":[1],"v":null}"#];
        assert_eq!(rows, expected);
    });
}

/// In compact storage rows are there by their cells: one of which nothing is set would be no row.
#[test]
fn a_row_of_compact_storage_has_a_value() {
    for clustering in ["", ", c"] {
        let create = format!(
            "CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k{clustering})) WITH COMPACT STORAGE"
        );
        with_table(&create, |table| {
            let key: Vec<Value> = if clustering.is_empty() { Vec::new() } else { vec![2.into()] };
            let refused = table.write(Write::insert(1, key.clone())).wait().unwrap_err().to_string();
            assert!(refused.contains("compact storage"), "{refused}");
            table.write(Write::insert(1, key).set("v", 7)).wait().unwrap();
            assert_eq!(scanned(table, 10).len(), 1);
        });
    }
    with_table("CREATE TABLE ks.t (k int, c int, PRIMARY KEY (k, c)) WITH COMPACT STORAGE", |table| {
        table.write(Write::insert(1, 2)).wait().unwrap();
        assert_eq!(scanned(table, 10), [r#"{"k":1,"c":2}"#]);
    });
}

/// What would be the text of the bytes' digits is refused.
#[test]
fn bytes_are_no_text() {
    with_table("CREATE TABLE ks.t (k text PRIMARY KEY, v ascii, b blob)", |table| {
        let write = |write: Write| table.write(write).wait();
        for refused in [Write::insert(b"hi".to_vec(), ()), Write::insert("k", ()).set("v", b"hi".to_vec())] {
            assert!(matches!(write(refused), Err(Error::Usage(_))));
        }
        write(Write::insert("k", ()).set("b", b"hi".to_vec())).unwrap();
        assert_eq!(scanned(table, 10), [r#"{"k":"k","b":"0x6869","v":null}"#]);
    });
}
