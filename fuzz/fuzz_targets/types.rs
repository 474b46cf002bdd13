//! Names of types, as the header of an SSTable has them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::CqlType;

fuzz_target!(|text: &str| {
    let Ok(parsed) = CqlType::parse(text) else { return };
    parsed.cql_name();
    parsed.fixed_len();
    parsed.cell_path_type();
    let name = parsed.to_string();
    assert_eq!(CqlType::parse(&name).ok().as_ref(), Some(&parsed), "{name}");
});
