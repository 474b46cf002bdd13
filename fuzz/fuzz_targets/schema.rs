//! What CQL and JSON say of tables, and statements that alter them.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use siltstone::table_schema::{Alteration, FolderName, TableSchema};

fuzz_target!(|text: &str| {
    let path = Path::new("schema.cql");
    let folder = FolderName::of(Path::new("/data/ks/t-5a1c395eb41f11e59f22ba0be0483c18"));
    let parsed = TableSchema::parse(path, text, None);
    let _ = TableSchema::parse_of_folder(path, text, &folder, None);
    let _ = Alteration::parse(path, text);
    if let (Ok(schema), Ok(statements)) = (parsed, TableSchema::statements_of(path, text, None)) {
        let again = TableSchema::parse(path, &statements, None).expect("its own statements are CQL");
        assert_eq!(again, schema, "of {statements:?}");
    }
});
