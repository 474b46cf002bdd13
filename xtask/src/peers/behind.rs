//! Where Siltstone is behind a peer, or not as far ahead as it aims to be, by the figures of the page, and which of its paragraphs says why.

use serde_json::Value;

use crate::pages::table;

/// Lines of slices and scans, up to a comma.
const SLICES_AND_SCANS: [&str; 5] =
    ["slice of 100", "reverse slice of 100", "read 64, skip 4096", "all rows", "a row of 100,000 in order"];

/// How many times the rate of RocksDB and fjall these are to have, and all reads and loads that of Cassandra.
const AIM: f64 = 1.5;
const AIM_BESIDE_CASSANDRA: f64 = 10.0;

/// Where it is behind: a part of the page, a line up to a comma, what is counted, and the paragraph. An empty text is any.
const REASONS: [(&str, &str, &str, &str); 16] = [
    ("cassandra", "", "", "Beside Cassandra"),
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

/// A figure that is behind that of a peer, or not as far ahead as it is to be.
#[derive(Clone, PartialEq, Debug)]
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
    /// How many times as good ours is.
    pub times: f64,
    /// How many times as good it is to be.
    pub aim: f64,
    /// The paragraph that says why; `None` where it has to be found out.
    pub why: Option<&'static str>,
}

/// All of them, in the order of the page.
pub fn found(figures: &Value) -> Vec<Behind> {
    let tables = figures["peers"].as_array().into_iter().flatten();
    tables.flat_map(|table| items(&table["lines"]).flat_map(move |line| behind_in(table, line))).collect()
}

/// The table of those that are behind, and that of those that are ahead, but not as far as they are to be.
pub fn listed(all: &[Behind]) -> [String; 2] {
    let (behind, ahead): (Vec<&Behind>, Vec<&Behind>) = all.iter().partition(|behind| behind.times < 1.0);
    let names = ["table", "of", "what", "Siltstone", "ahead of it", "why: below"];
    let ahead_names = ["table", "of", "what", "Siltstone", "the other", "times", "aim", "why: below"];
    let told = |behind: &Behind| vec![format!("{:.2}", behind.times), behind.aim.to_string()];
    [
        table(&names, &behind.into_iter().map(|behind| line(behind, Vec::new())).collect::<Vec<_>>()),
        table(&ahead_names, &ahead.into_iter().map(|behind| line(behind, told(behind))).collect::<Vec<_>>()),
    ]
}

fn line(behind: &Behind, told: Vec<String>) -> Vec<String> {
    let Behind { title, of, unit, peer, figures: [ours, theirs], why, .. } = behind;
    let texts = [title, of, unit].map(String::clone);
    let figures = [ours.clone(), format!("{theirs} ({peer})")];
    texts.into_iter().chain(figures).chain(told).chain([why.unwrap_or("?").to_owned()]).collect()
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
            let (times, aim) =
                (if is_rate(unit) { ours / theirs } else { theirs / ours }, aim(part, of, unit));
            if times < aim && !peer.starts_with("Siltstone") {
                all.push(Behind {
                    title: title.to_owned(),
                    of: of.to_owned(),
                    unit: unit.clone(),
                    peer: peer.to_owned(),
                    figures: [own.to_string(), figure.to_string()],
                    times,
                    aim,
                    why: why(part, of, unit),
                });
            }
        }
    }
    all
}

/// How many times as good as that of a peer a figure is to be.
fn aim(part: &str, of: &str, unit: &str) -> f64 {
    match part {
        _ if !is_rate(unit) => 1.0,
        "cassandra" => AIM_BESIDE_CASSANDRA,
        "rates" | "disk-rates" | "at-once" if SLICES_AND_SCANS.iter().any(|line| is_line(of, line)) => AIM,
        _ => 1.0,
    }
}

fn why(part: &str, of: &str, unit: &str) -> Option<&'static str> {
    let is_it = |(a_part, line, what, _): &&(&str, &str, &str, &str)| {
        *a_part == part && (line.is_empty() || is_line(of, line)) && (what.is_empty() || *what == unit)
    };
    REASONS.iter().find(is_it).map(|(.., paragraph)| *paragraph)
}

/// Whether a line is this one, which may have more behind a comma.
fn is_line(of: &str, line: &str) -> bool {
    of.strip_prefix(line).is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
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
        let of_cassandra = json!([{ "of": "a row", "cells": [rate(90.0), rate(10.0)] }]);
        let scans = json!([{ "of": "all rows", "cells": [rate(14.0), rate(10.0)] }]);
        let figures = json!({ "peers": [
            { "part": "disk", "title": "D", "columns": ["Siltstone", "Siltstone, else", "P"],
              "lines": [{ "of": "a row", "cells": [cell(1.0, 4.0), cell(0.5, 1.0), cell(0.9, 5.0)] }] },
            { "part": "rates", "title": "R", "columns": ["Siltstone", "P"],
              "lines": [{ "of": "a row", "cells": [rate(7.0), rate(8.0)] }, { "of": "b", "cells": [rate(2.0), rate(1.0)] }] },
            { "part": "cassandra", "title": "C", "columns": ["Siltstone", "Cassandra"], "lines": of_cassandra },
            { "part": "disk-rates", "title": "S", "columns": ["Siltstone", "P"], "lines": scans },
        ] });
        let all = found(&figures);
        let short: Vec<_> = all.iter().map(|b| (&*b.title, &*b.unit, b.figures.join(" "), b.why)).collect();
        let requests = ("D", "requests", "1.0 0.9".to_owned(), Some("Requests of a row"));
        let rate = |title, figures: &str, why| (title, "thousands of rows a second", figures.to_owned(), why);
        let of_scans = Some("Rows a second of all rows from disk");
        assert_eq!(
            short,
            [
                requests,
                rate("R", "7.0 8.0", None),
                rate("C", "90.0 10.0", Some("Beside Cassandra")),
                rate("S", "14.0 10.0", of_scans),
            ]
        );
        let [behind, ahead] = listed(&all);
        assert!(behind.contains("| D | a row | requests | 1.0 | 0.9 (P) | Requests of a row |"));
        let lines = ["90.0 | 10.0 (Cassandra) | 9.00 | 10 |", "14.0 | 10.0 (P) | 1.40 | 1.5 |"];
        assert!(lines.into_iter().all(|line| ahead.contains(line) && !behind.contains(line)), "{ahead}");
        assert_eq!(why("disk", "a row of another kind", "requests"), None);
        assert_eq!(why("disk", "all rows, with what opening takes", "KiB"), Some("KiB of all rows"));
    }

    /// Wherever we are behind, or not as far ahead as we are to be, the page says so and why.
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
        assert_eq!(
            ["behind", "short of the aims"].map(|part| crate::pages::part_of(&page, part)),
            listed(&all)
        );
    }
}
