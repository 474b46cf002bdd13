//! Whether reads went by fences, as results tell it: by what the files have, whatever was asked for.

use serde_json::Value;
use sstable::parts::usage::Usage;
use storage::Table;

/// Whether reads of an SSTable go by them; where they cannot, why.
pub(crate) fn told(fences: &Usage) -> Value {
    match fences {
        Usage::InUse { .. } => true.into(),
        Usage::Off => false.into(),
        // Too little has none, and what was written without them.
        Usage::Absent | Usage::Ignored { .. } => fences.to_string().into(),
    }
}

/// The same of a table, whose SSTables are mostly alike; null if it has none.
pub(crate) fn told_of(table: &Table) -> Value {
    let set = table.sstables();
    common(set.members().iter().map(|member| told(&member.sstable.fences_state())).collect())
}

/// Whether it is told that no reads went by them, or only some.
pub(crate) fn are_missing(told: &Value) -> bool {
    !told.is_null() && *told != true
}

/// What is told of each SSTable as one: how many have them, where some have not.
fn common(told: Vec<Value>) -> Value {
    let with = told.iter().filter(|told| !are_missing(told)).count();
    match told.first() {
        Some(_) if with > 0 && with < told.len() => format!("in {with} of {} SSTables", told.len()).into(),
        first => first.cloned().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fences_are_told_as_they_are() {
        let ignored = Usage::Ignored { why: "it is of others".to_owned() };
        let told = [Usage::InUse { bytes: 7 }, Usage::Off, Usage::Absent, ignored].map(|of| told(&of));
        assert_eq!(told, [json!(true), json!(false), json!("none"), json!("ignored: it is of others")]);
        assert_eq!(told.map(|told| are_missing(&told)), [false, true, true, true]);
    }

    #[test]
    fn sstables_that_are_not_alike_are_counted() {
        let (some, none) = (json!(true), json!("none"));
        for (each, told) in [
            (vec![], Value::Null),
            (vec![some.clone(); 3], json!(true)),
            (vec![none.clone(); 2], json!("none")),
            (vec![none, some.clone(), some], json!("in 2 of 3 SSTables")),
        ] {
            assert_eq!(common(each), told);
        }
        assert!(!are_missing(&Value::Null), "where there is no SSTable nothing is missing");
    }
}
