//! Where Siltstone is behind a peer, by the figures of the page, and which of its paragraphs says why.

use serde_json::Value;

use crate::pages::table;

/// Where it is behind: a part of the page, a line up to a comma, what is counted, and the paragraph. An empty text is any.
const REASONS: [(&str, &str, &str, &str); 15] = [
    ("disk", "a row", "requests", "Requests of a row"),
    ("disk", "an absent row", "requests", "Requests of a row"),
    ("disk", "read 64, skip 4096, the first time", "KiB", "KiB of skips, the first time"),
    ("disk", "all rows", "KiB", "KiB of all rows"),
    ("disk", "opening", "requests", "Requests to open"),
    ("disk", "peak memory with reads of a row", "MiB", "Peak memory"),
    ("many", "an absent row", "", "Requests of a row"),
    ("many", "peak memory with reads of a row", "MiB", "Peak memory"),
    ("disk-instructions", "an absent row", "", "Instructions of absent rows from disk"),
    ("disk-rates", "a row", "", "Rows a second of a row from disk"),
    ("disk-rates", "all rows", "", "Rows a second of all rows from disk"),
    ("disk-rates", "an absent row", "", "Rows a second of absent rows from disk"),
    ("at-once", "", "", "Rows a second by many at once"),
    ("rates", "an absent row", "", "Rows a second of absent rows in memory"),
    ("load", "", "", "Load"),
];

/// A figure that is behind that of a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Behind {
    /// The table.
    pub title: String,
    /// The line of it.
    pub of: String,
    /// What is counted.
    pub unit: String,
    /// Who is ahead.
    pub peer: String,
    /// Ours, and that of the peer, as they stand there.
    pub figures: [String; 2],
    /// The paragraph that says why; `None` where it has to be found out.
    pub why: Option<&'static str>,
}

/// All of them, in the order of the page.
pub fn found(figures: &Value) -> Vec<Behind> {
    let tables = figures["peers"].as_array().into_iter().flatten();
    tables.flat_map(|table| items(&table["lines"]).flat_map(move |line| behind_in(table, line))).collect()
}

/// The table of them.
pub fn listed(all: &[Behind]) -> String {
    let line = |behind: &Behind| {
        let Behind { title, of, unit, peer, figures: [ours, theirs], why } = behind;
        let texts = [title, of, unit].map(String::clone);
        let figures = [ours.clone(), format!("{theirs} ({peer})")];
        texts.into_iter().chain(figures).chain([why.unwrap_or("?").to_owned()]).collect()
    };
    let lines: Vec<Vec<String>> = all.iter().map(line).collect();
    table(&["table", "of", "what", "Siltstone", "ahead of it", "why: below"], &lines)
}

/// Those of a line: each figure of the first column is compared with those of other databases.
fn behind_in(table: &Value, line: &Value) -> Vec<Behind> {
    let [part, title, of] =
        [&table["part"], &table["title"], &line["of"]].map(|text| text.as_str().unwrap_or_default());
    let mut all = Vec::new();
    for (peer, cell) in items(&table["columns"]).zip(items(&line["cells"])) {
        let peer = peer.as_str().unwrap_or_default();
        for (unit, figure) in cell.as_object().into_iter().flatten() {
            let own = &line["cells"][0][unit];
            let (Some(ours), Some(theirs)) = (own.as_f64(), figure.as_f64()) else { continue };
            let is_ahead = if is_rate(unit) { theirs > ours } else { theirs < ours };
            if is_ahead && !peer.starts_with("Siltstone") {
                all.push(Behind {
                    title: title.to_owned(),
                    of: of.to_owned(),
                    unit: unit.clone(),
                    peer: peer.to_owned(),
                    figures: [own.to_string(), figure.to_string()],
                    why: why(part, of, unit),
                });
            }
        }
    }
    all
}

fn why(part: &str, of: &str, unit: &str) -> Option<&'static str> {
    let is_it = |(a_part, line, what, _): &&(&str, &str, &str, &str)| {
        let is_line = line.is_empty()
            || of.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(','));
        *a_part == part && is_line && (what.is_empty() || *what == unit)
    };
    REASONS.iter().find(is_it).map(|(.., paragraph)| *paragraph)
}

/// Of rates more is better.
fn is_rate(unit: &str) -> bool {
    unit.ends_with("a second")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::{FIGURES, PAGE};
    use super::*;
    use crate::workspace::root;

    #[test]
    fn what_is_behind_is_found() {
        let cell = |requests: f64, kib: f64| json!({ "requests": requests, "KiB": kib });
        let rate = |rate: f64| json!({ "thousands of rows a second": rate });
        let figures = json!({ "peers": [
            { "part": "disk", "title": "D", "columns": ["Siltstone", "Siltstone, else", "P"],
              "lines": [{ "of": "a row", "cells": [cell(1.0, 4.0), cell(0.5, 1.0), cell(0.9, 5.0)] }] },
            { "part": "rates", "title": "R", "columns": ["Siltstone", "P"],
              "lines": [{ "of": "a row", "cells": [rate(7.0), rate(8.0)] }, { "of": "b", "cells": [rate(2.0), rate(1.0)] }] },
        ] });
        let all = found(&figures);
        let short: Vec<_> = all.iter().map(|b| (&*b.title, &*b.unit, b.figures.join(" "), b.why)).collect();
        let requests = ("D", "requests", "1.0 0.9".to_owned(), Some("Requests of a row"));
        assert_eq!(short, [requests, ("R", "thousands of rows a second", "7.0 8.0".to_owned(), None)]);
        assert!(listed(&all).contains("| D | a row | requests | 1.0 | 0.9 (P) | Requests of a row |"));
        assert_eq!(why("disk", "a row of another kind", "requests"), None);
        assert_eq!(why("disk", "all rows, with what opening takes", "KiB"), Some("KiB of all rows"));
    }

    /// Wherever we are behind, the page says so and why.
    #[test]
    fn the_page_says_why() {
        let kept = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        let (page, figures) = (kept(PAGE), serde_json::from_str(&kept(FIGURES)).unwrap());
        let all = found(&figures);
        for behind in &all {
            assert!(behind.why.is_some(), "nothing says why: {behind:?}");
        }
        for (.., paragraph) in REASONS {
            assert!(page.contains(&format!("\n- **{paragraph}**")), "{paragraph} is not on the page");
        }
        assert_eq!(crate::pages::part_of(&page, "behind"), listed(&all));
    }
}
