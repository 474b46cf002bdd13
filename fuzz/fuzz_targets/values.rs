//! Values of any type: their order, JSON and text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::CqlType;
use model::types::counter::CounterContext;

fuzz_target!(|input: (&str, &[u8], &[u8], &str)| {
    let (name, a, b, text) = input;
    if let Ok(context) = CounterContext::parse(a) {
        (context.total(), context.shards().count());
    }
    let Ok(data_type) = CqlType::parse(name) else { return };
    assert_eq!(data_type.compare(a, b), data_type.compare(b, a).reverse());
    let _ = (data_type.validate(a), data_type.validate_cell(a), data_type.to_text(a));
    if let Ok(json) = data_type.to_json(a) {
        let value: serde_json::Value = serde_json::from_str(&json).expect("JSON that is printed can be read");
        let _ = data_type.from_json(&value);
    }
    // As in Cassandra, not all that is read from text is a value of the type.
    if let Ok(bytes) = data_type.from_text(text) {
        let _ = (data_type.validate(&bytes), data_type.to_text(&bytes));
    }
});
