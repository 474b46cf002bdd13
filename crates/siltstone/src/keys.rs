//! Partition keys and clusterings as people write them: JSON arrays, just as dumps print them.

use model::types::TypeError;
use model::{Bytes, Clustering, CqlType, Schema};
use serde_json::Value;

use crate::error::{Error, Result};

/// The bytes of the partition key that a JSON array spells: the text of each column, as dumps print it.
///
/// ```
/// # use model::{CqlType, Schema};
/// let schema = Schema::new(CqlType::Int, vec![], vec![], vec![]);
/// assert_eq!(siltstone::keys::partition_key(&schema, r#"["7"]"#)?, [0, 0, 0, 7]);
/// # Ok::<(), siltstone::Error>(())
/// ```
///
/// # Errors
/// [`Error::Usage`], which names what was expected.
pub fn partition_key(schema: &Schema, json: &str) -> Result<Vec<u8>> {
    parse_partition_key(schema, json).map_err(Error::Usage)
}

/// The same, with the error in words.
pub(crate) fn parse_partition_key(schema: &Schema, json: &str) -> std::result::Result<Vec<u8>, String> {
    let expected = expected_key(&schema.partition_key);
    let refuse = |what: String| format!("key {json}: {what}; expected a {expected}");
    let columns = key_columns(&schema.partition_key);
    let items = parse_array(json).ok_or_else(|| refuse(no_array("--key", columns.len())))?;
    if items.len() != columns.len() {
        return Err(refuse(count(items.len())));
    }
    let value = |(column, item): (&CqlType, &Value)| key_value(column, item);
    let values: Vec<Vec<u8>> =
        columns.iter().zip(&items).map(value).collect::<std::result::Result<_, String>>().map_err(&refuse)?;
    match &schema.partition_key {
        CqlType::Composite(_) => composite(&values).ok_or_else(|| refuse("a column is too long".to_owned())),
        _ => Ok(values.concat()),
    }
}

/// The clustering, or the beginning of one, that a JSON array spells: typed values, as dumps print them.
/// Numbers and the like may stand in strings.
///
/// # Errors
/// [`Error::Usage`], which names what was expected.
pub fn clustering(schema: &Schema, json: &str) -> Result<Clustering> {
    let refuse = |what: String| {
        let expected = expected_clustering(&schema.clustering);
        Error::Usage(format!("clustering {json}: {what}; expected {expected}"))
    };
    let columns = schema.clustering.len();
    let items = parse_array(json).ok_or_else(|| refuse(no_array("--from", columns)))?;
    if items.len() > schema.clustering.len() {
        return Err(refuse(count(items.len())));
    }
    let value = |(column, item): (&CqlType, &Value)| match item {
        Value::Null => Ok(None),
        item => typed_value(column, item).map(|bytes| Some(Bytes::from(bytes))),
    };
    let values =
        schema.clustering.iter().zip(&items).map(value).collect::<std::result::Result<_, TypeError>>();
    Ok(Clustering { values: values.map_err(|error| refuse(in_words(error)))? })
}

/// What a partition key consists of, in words: `partition key of type int`.
pub fn expected_key(data_type: &CqlType) -> String {
    match data_type {
        CqlType::Composite(columns) => format!("partition key of types {}", names(columns)),
        column => format!("partition key of type {}", column.cql_name()),
    }
}

/// The types of clustering columns, each with its order: `int, descending`.
pub fn clustering_types(columns: &[CqlType]) -> Vec<String> {
    let name = |column: &CqlType| {
        let order = if column.is_reversed() { ", descending" } else { "" };
        format!("{}{order}", column.cql_name())
    };
    columns.iter().map(name).collect()
}

pub(crate) fn expected_clustering(columns: &[CqlType]) -> String {
    match columns {
        [] => "an empty array, as there are no clustering columns".to_owned(),
        [column] => format!("a clustering of type {}", column.cql_name()),
        columns => format!("a clustering of types {}, or the first few of them", names(columns)),
    }
}

fn key_columns(data_type: &CqlType) -> &[CqlType] {
    match data_type {
        CqlType::Composite(columns) => columns,
        column => std::slice::from_ref(column),
    }
}

fn names(columns: &[CqlType]) -> String {
    let names: Vec<String> = columns.iter().map(CqlType::cql_name).collect();
    format!("({})", names.join(", "))
}

fn count(values: usize) -> String {
    match values {
        1 => "it has one value".to_owned(),
        values => format!("it has {values} values"),
    }
}

fn parse_array(json: &str) -> Option<Vec<Value>> {
    match serde_json::from_str(json) {
        Ok(Value::Array(items)) => Some(items),
        _ => None,
    }
}

/// What is wrong with something that is no array, and how one of so many values is written.
fn no_array(option: &str, values: usize) -> String {
    let items = vec!["\"1\""; values].join(", ");
    format!("it is not a JSON array, as in {option} '[{items}]'")
}

/// An error in words, with the article that the type's name has.
pub(crate) fn in_words(error: TypeError) -> String {
    match error {
        TypeError::Text { kind, text, what } => {
            let article = if kind.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            format!("{text} is not {article} {kind}: {what}")
        }
        other => other.to_string(),
    }
}

/// The text of a column; numbers and booleans stand for their text.
pub(crate) fn key_value(column: &CqlType, item: &Value) -> std::result::Result<Vec<u8>, String> {
    let text = match item {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => item.to_string(),
        other => return Err(format!("{other} is not a string")),
    };
    let bytes = column.from_text(&text).map_err(in_words)?;
    column.validate(&bytes).map_err(in_words)?;
    Ok(bytes)
}

fn typed_value(column: &CqlType, item: &Value) -> std::result::Result<Vec<u8>, TypeError> {
    let bytes = column.from_json(item)?;
    column.validate(&bytes)?;
    Ok(bytes)
}

pub(crate) fn composite(values: &[impl AsRef<[u8]>]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for value in values.iter().map(AsRef::as_ref) {
        bytes.extend(u16::try_from(value.len()).ok()?.to_be_bytes());
        bytes.extend(value);
        bytes.push(0);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(partition_key: CqlType) -> Schema {
        let descending = CqlType::Reversed(Box::new(CqlType::Text));
        Schema::new(partition_key, vec![CqlType::Int, descending], Vec::new(), Vec::new())
    }

    fn error(json: &str) -> String {
        partition_key(&schema(CqlType::Int), json).unwrap_err().to_string()
    }

    #[test]
    fn a_key_is_the_text_of_its_columns() {
        assert_eq!(partition_key(&schema(CqlType::Int), "[\"-2\"]").unwrap(), (-2i32).to_be_bytes());
        assert_eq!(partition_key(&schema(CqlType::Int), "[7]").unwrap(), 7i32.to_be_bytes());
        let composite = CqlType::Composite(vec![CqlType::Text, CqlType::Boolean]);
        assert_eq!(
            partition_key(&schema(composite), "[\"a:b\", \"true\"]").unwrap(),
            b"\0\x03a:b\0\0\x01\x01\0"
        );
    }

    #[test]
    fn a_wrong_key_says_what_is_expected() {
        for wrong in ["7", "[", "[\"x\"]", "[\"1\", \"2\"]", "[]", "[null]"] {
            let error = error(wrong);
            assert!(error.ends_with("expected a partition key of type int"), "{error}");
        }
        let composite = schema(CqlType::Composite(vec![CqlType::Text, CqlType::Int]));
        let error = partition_key(&composite, "[\"a\"]").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.to_string().ends_with("it has one value; expected a partition key of types (text, int)")
        );
    }

    #[test]
    fn messages_say_what_is_wrong_and_how_it_is_written() {
        let integer = "abc is not an int: an integer of 32 bits was expected";
        assert!(error("[\"abc\"]").contains(integer), "{}", error("[\"abc\"]"));
        assert!(error("[").contains("it is not a JSON array, as in --key '[\"1\"]'"), "{}", error("["));
        let clustering = clustering(&schema(CqlType::Int), "-1").unwrap_err().to_string();
        assert!(clustering.contains("as in --from '[\"1\", \"1\"]'"), "{clustering}");
    }

    #[test]
    fn a_clustering_may_be_a_prefix() {
        let schema = schema(CqlType::Int);
        assert_eq!(clustering(&schema, "[]").unwrap(), Clustering::empty());
        let both: Clustering = [7i32.to_be_bytes().to_vec(), b"b".to_vec()].into_iter().collect();
        assert_eq!(clustering(&schema, "[\"7\", \"b\"]").unwrap(), both);
        assert_eq!(clustering(&schema, "[null]").unwrap().values[0], None);
        let error = clustering(&schema, "[1, \"b\", 3]").unwrap_err().to_string();
        assert!(
            error.ends_with("expected a clustering of types (int, text), or the first few of them"),
            "{error}"
        );
    }
}
