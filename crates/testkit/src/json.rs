//! What Cassandra's dumps and ours have in common.

use serde_json::Value;

/// The same JSON without the members that depend on when it was printed: whether something has `expired`.
pub fn without_expired(json: Value) -> Value {
    without_members(json, &["expired"])
}

/// The same JSON without the members of some names, however deep they are.
pub fn without_members(json: Value, names: &[&str]) -> Value {
    match json {
        Value::Object(members) => {
            let members = members.into_iter().filter(|(name, _)| !names.contains(&name.as_str()));
            Value::Object(members.map(|(name, value)| (name, without_members(value, names))).collect())
        }
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| without_members(item, names)).collect())
        }
        other => other,
    }
}

/// Where two JSON values differ first, in words; `None` if they are equal.
pub fn difference(ours: &Value, theirs: &Value) -> Option<String> {
    if ours == theirs { None } else { Some(describe(ours, theirs, "")) }
}

fn describe(ours: &Value, theirs: &Value, at: &str) -> String {
    match (ours, theirs) {
        (Value::Array(a), Value::Array(b)) => match a.iter().zip(b).enumerate().find(|(_, (a, b))| a != b) {
            Some((index, (a, b))) => describe(a, b, &format!("{at}/{index}")),
            None => format!("at {at}: {} items, but {} are expected", a.len(), b.len()),
        },
        (Value::Object(a), Value::Object(b)) => {
            match a.iter().find(|(name, value)| b.get(*name) != Some(value)) {
                Some((name, value)) => match b.get(name) {
                    Some(other) => describe(value, other, &format!("{at}/{name}")),
                    None => format!("at {at}: {name} is not expected"),
                },
                None => {
                    let missing: Vec<&String> = b.keys().filter(|name| !a.contains_key(*name)).collect();
                    format!("at {at}: {missing:?} are missing")
                }
            }
        }
        _ => format!("at {at}: {ours}, but {theirs} is expected"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_found() {
        let value = |last: u8| json!({"a": [{"expired": true, "b": 1}, last]});
        assert_eq!(without_expired(value(2)), json!({"a": [{"b": 1}, 2]}));
        assert_eq!(difference(&value(2), &value(2)), None);
        assert_eq!(difference(&value(2), &value(3)).unwrap(), "at /a/1: 2, but 3 is expected");
        assert_eq!(difference(&json!({"a": 1}), &json!({"b": 1})).unwrap(), "at : a is not expected");
        assert_eq!(difference(&json!([1]), &json!([1, 2])).unwrap(), "at : 1 items, but 2 are expected");
    }
}
