//! Dumps and rows are compared as texts first, which is fast, and as JSON where these differ, to say where.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use serde_json::Value;
use testkit::json::{difference, without_members};

use crate::Result;

/// What a dump says that depends on when it was made.
const EXPIRED: [&str; 1] = ["expired"];

/// What depends on the version as well.
const PLACES: [&str; 2] = ["expired", "position"];

/// Compares two dumps of the same file.
///
/// # Errors
/// If they differ.
pub fn dumps(ours: &Path, theirs: &Path) -> Result<()> {
    compare(ours, theirs, &EXPIRED)
}

/// Compares the dumps of two files that have the same rows.
///
/// # Errors
/// If they differ.
pub fn rows_of_dumps(ours: &Path, original: &Path) -> Result<()> {
    compare(ours, original, &PLACES)
}

/// Compares two answers to a SELECT.
///
/// # Errors
/// If they differ.
pub fn selects(ours: &Path, theirs: &Path) -> Result<()> {
    let (ours, theirs) = (fs::read(ours)?, fs::read(theirs)?);
    if ours == theirs {
        return Ok(());
    }
    let (ours, theirs) = (lines(&ours)?, lines(&theirs)?);
    Err(described(&ours.into(), &theirs.into()))
}

/// Compares an answer to a SELECT with the rows that were read by the one who wrote them. When something was
/// written is compared where it is known, and whether it expires, but not when.
///
/// # Errors
/// If they differ.
pub fn with_expected(ours: &Path, expected: &Path) -> Result<()> {
    let ours = lines(&fs::read(ours)?)?;
    let mut text = Vec::new();
    match expected.extension().is_some_and(|extension| extension == "gz") {
        true => GzDecoder::new(File::open(expected)?).read_to_end(&mut text)?,
        false => File::open(expected)?.read_to_end(&mut text)?,
    };
    let expected = lines(&text)?;
    if ours.len() != expected.len() {
        return Err(format!("{} rows, but {} are expected", ours.len(), expected.len()).into());
    }
    for (number, (ours, expected)) in ours.iter().zip(&expected).enumerate() {
        let at = |error| format!("row {number}: {error}");
        for name in ["token", "raw"] {
            difference(&ours[name], &expected[name]).map_or(Ok(()), Err).map_err(at)?;
        }
        for (name, written) in expected["writetime"].as_object().into_iter().flatten() {
            difference(&ours["writetime"][name], written).map_or(Ok(()), Err).map_err(at)?;
        }
        for (name, _) in expected["ttl"].as_object().into_iter().flatten() {
            if ours["ttl"][name].is_null() {
                return Err(at(format!("{name} does not expire")).into());
            }
        }
    }
    Ok(())
}

fn compare(ours: &Path, theirs: &Path, left_out: &[&str]) -> Result<()> {
    let [our_text, their_text] = [fs::read_to_string(ours)?, fs::read_to_string(theirs)?];
    // The tool ends without a line break.
    let [our_text, their_text] = [our_text.trim_end(), their_text.trim_end()];
    if our_text == their_text || without_values(our_text, left_out) == without_values(their_text, left_out) {
        return Ok(());
    }
    let ours = without_members(parse(ours, "our dump")?, left_out);
    let theirs = without_members(parse(theirs, "the dump to compare with")?, left_out);
    // Both are the same JSON, but we follow the tool to the letter.
    if ours == theirs {
        return Err("the dumps differ in white space, or the order of members".into());
    }
    Err(described(&ours, &theirs))
}

/// The text of a dump without the values of some members; quotes within strings are escaped, so that a match is none.
fn without_values(dump: &str, names: &[&str]) -> String {
    let mut kept = String::with_capacity(dump.len());
    let marks: Vec<String> = names.iter().map(|name| format!("\"{name}\" : ")).collect();
    for line in dump.split_inclusive('\n') {
        let mut rest = line;
        while let Some(end) =
            marks.iter().filter_map(|mark| Some(rest.find(mark.as_str())? + mark.len())).min()
        {
            kept.push_str(&rest[..end]);
            rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        }
        kept.push_str(rest);
    }
    kept
}

fn parse(dump: &Path, what: &str) -> Result<Value> {
    let text = fs::read(dump)?;
    serde_json::from_slice(&text).map_err(|error| format!("{what}: {error}").into())
}

fn lines(answer: &[u8]) -> Result<Vec<Value>> {
    let lines = answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.map(serde_json::from_slice).collect::<serde_json::Result<_>>()?)
}

fn described(ours: &Value, theirs: &Value) -> Box<dyn std::error::Error + Send + Sync> {
    difference(ours, theirs).unwrap_or_else(|| "the texts differ".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_left_out() {
        let dump =
            "{ \"position\" : 17,\n\"a\" : { \"expired\" : false, \"b\" : \"\\\"position\\\" : 1\" } }\n";
        assert_eq!(without_values(dump, &EXPIRED), dump.replace("false", ""));
        assert_eq!(without_values(dump, &PLACES), dump.replace("false", "").replace("17", ""));
    }

    #[test]
    fn dumps_are_compared() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            file
        };
        let a = file("a", "[ { \"position\" : 1, \"c\" : 1.50, \"expired\" : true } ]");
        let b = file("b", "[ { \"position\" : 2, \"c\" : 1.50, \"expired\" : false } ]");
        let c = file("c", "[ { \"position\" : 2, \"c\" : 1.5, \"expired\" : false } ]");
        assert!(rows_of_dumps(&a, &b).is_ok());
        assert!(dumps(&a, &b).unwrap_err().to_string().contains("/0/position: 1"));
        assert!(dumps(&b, &c).unwrap_err().to_string().contains("/0/c: 1.50"));
        assert!(selects(&a, &a).is_ok() && selects(&a, &b).is_err());
    }
}
