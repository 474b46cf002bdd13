//! The figures of the page as JSON, for whoever draws them: just what stands there, digit for digit.
//!
//! ```text
//! <!-- disk -->                                         a part
//! ## From disk: 1,000 rows, requests / KiB              a title, and what numbers are of
//! | one read of | Siltstone | RocksDB |                 who takes part
//! |---|---:|---:|
//! | a row | 1.00 / 4.7 | 0.96 / 4.3 |                   what is read, and its figures
//! ```

use serde_json::{Map, Number, Value, json};

use crate::pages::part_of;

/// How titles end, from where numbers are told of.
const UNITS: [&str; 3] = ["requests / KiB", "seconds of one read, peak MiB", "thousands of "];

/// The tables of these parts of a page.
pub fn figures<'a>(page: &str, parts: impl IntoIterator<Item = &'a str>) -> Value {
    let tables = parts.into_iter().flat_map(|part| {
        let tables = part_of(page, part).split("## ").filter(|table| table.contains('|'));
        tables.filter_map(|text| table(part, text)).collect::<Vec<_>>()
    });
    json!({ "peers": tables.collect::<Vec<Value>>() })
}

/// A table from its title on; `None` for text that is none.
fn table(part: &str, text: &str) -> Option<Value> {
    let mut lines = text.lines().filter(|line| !line.is_empty());
    let (title, unit) = titled(lines.next()?);
    let [_, columns @ ..] = &*cells(lines.next()?) else { return None };
    let lines = lines.skip(1).filter_map(|line| {
        let [of, figures @ ..] = &*cells(line) else { return None };
        let figures = figures.iter().map(|cell| figure(cell, unit)).collect::<Option<Vec<Value>>>()?;
        Some(json!({ "of": of, "cells": figures }))
    });
    let lines: Vec<Value> = lines.collect();
    Some(json!({ "part": part, "title": title, "columns": columns, "lines": lines }))
}

/// A title without what its numbers are of, and that.
fn titled(title: &str) -> (String, &str) {
    let Some(at) = UNITS.iter().find_map(|unit| title.find(unit)) else { return (title.to_owned(), "") };
    let name = title[..at].trim_end_matches([' ', ',', ':', ';']).to_owned();
    let unit = &title[at..];
    match unit.split_once(", ").filter(|_| unit.starts_with("thousands")) {
        Some((unit, behind)) => (format!("{name}, {behind}"), unit),
        None => (name, unit),
    }
}

/// The cells of a line, as text without marks.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim().trim_matches('|');
    line.split('|').map(|cell| cell.trim().replace('`', "")).collect()
}

/// What a cell tells. A ratio in brackets follows from the others.
fn figure(cell: &str, unit: &str) -> Option<Value> {
    let told: Vec<(&str, &str)> = if let Some((requests, kib)) = cell.split_once(" / ") {
        vec![("requests", requests), ("KiB", kib)]
    } else if let Some((seconds, mib)) = cell.split_once(" s, ") {
        vec![("seconds", seconds), ("MiB", mib.strip_suffix(" MiB")?)]
    } else if let Some(mib) = cell.strip_suffix(" MiB") {
        vec![("MiB", mib)]
    } else {
        vec![(unit, cell.split(" (").next()?)]
    };
    let told = told.into_iter().map(|(what, text)| {
        let number: Number = text.parse().ok()?;
        Some((what.to_owned(), Value::Number(number)))
    });
    told.collect::<Option<Map<String, Value>>>().map(Value::Object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::marked;

    #[test]
    fn tables_become_figures() {
        let disk = "## From disk: 1,000 rows, requests / KiB\n\n| one read of | A | B, `c` |\n|---|---:|---:|\n\
                    | a row | 1.00 / 4.7 | 0.96 / 4.3 |\n| memory | 22 MiB | 28 MiB |\n\n";
        let rates = "## Load: thousands of rows a second, warm\n\n| rows | A |\n|---|---:|\n| 2 rows | 491 (2.00×) |\n\n";
        let page = format!("{}{}", marked("disk", disk), marked("rates", rates));
        let found = figures(&page, ["disk", "many", "rates"]);
        assert_eq!(found["peers"].as_array().unwrap().len(), 2);
        let (disk, rates) = (&found["peers"][0], &found["peers"][1]);
        assert_eq!(disk["title"], "From disk: 1,000 rows");
        assert_eq!(disk["columns"], json!(["A", "B, c"]));
        assert_eq!(disk["lines"][0]["cells"][1].to_string(), r#"{"requests":0.96,"KiB":4.3}"#);
        assert_eq!(disk["lines"][1]["cells"][1].to_string(), r#"{"MiB":28}"#);
        assert_eq!((&rates["title"], &rates["part"]), (&json!("Load, warm"), &json!("rates")));
        assert_eq!(rates["lines"][0]["cells"][0].to_string(), r#"{"thousands of rows a second":491}"#);
    }

    #[test]
    fn seconds_and_memory_are_told_apart() {
        let told = figure("0.0003 s, 17 MiB", "").unwrap();
        assert_eq!(told.to_string(), r#"{"seconds":0.0003,"MiB":17}"#);
        assert_eq!(
            titled("Beside cqlite: 9 rows, the same files; seconds of one read, peak MiB").0,
            "Beside cqlite: 9 rows, the same files"
        );
        assert!(figure("none", "").is_none());
    }
}
