//! The same work by other databases: bars side by side, a chart for each thing that a table tells.

use serde_json::Value;

use super::super::chart::Chart;
use super::ours;

/// Each has one color in all charts, whatever way it is used in.
const PEERS: [&str; 5] = ["Siltstone", "RocksDB", "fjall", "Cassandra", "cqlite"];

/// The charts of a table; `None` if it is none.
pub(super) fn charts(table: &Value) -> Option<Vec<Chart>> {
    let title = table["title"].as_str()?;
    let columns = table["columns"].as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?;
    let lines = table["lines"].as_array()?;
    let table = Table { title, columns, lines };
    Some(table.measures().into_iter().map(|measure| table.chart(measure)).collect())
}

struct Table<'a> {
    title: &'a str,
    /// Who takes part.
    columns: Vec<&'a str>,
    lines: &'a [Value],
}

impl Table<'_> {
    /// What the cells tell, as it comes.
    fn measures(&self) -> Vec<&str> {
        let mut measures = Vec::new();
        for line in self.lines {
            let told = line["cells"].as_array().into_iter().flatten().filter_map(Value::as_object);
            for measure in told.flat_map(|cell| cell.keys()) {
                if !measures.contains(&measure.as_str()) {
                    measures.push(measure);
                }
            }
        }
        measures
    }

    /// A group for each line that tells it, a color for each who takes part.
    fn chart(&self, measure: &str) -> Chart {
        let has_it = |line: &&Value| {
            line["cells"].as_array().is_some_and(|cells| cells.iter().any(|cell| cell[measure].is_number()))
        };
        let lines: Vec<&Value> = self.lines.iter().filter(has_it).collect();
        let of = |column: usize| {
            let cells = (0..)
                .zip(&lines)
                .map(|(at, line)| Some((f64::from(at), line["cells"][column][measure].as_f64()?)));
            cells.flatten().collect::<Vec<_>>()
        };
        let bars = (0..).zip(&self.columns).map(|(at, column)| ours(column, color(column), of(at))).collect();
        let groups = lines.iter().map(|line| line["of"].as_str().unwrap_or_default().to_owned()).collect();
        let is_rate = measure.ends_with("a second");
        let better = if is_rate { "More is better; good for large ratios only." } else { "Less is better." };
        Chart::bars(format!("{}: {measure}", self.title), groups, measure, bars, better.to_owned())
    }
}

/// The color of who takes part, behind whose name may stand in what way.
fn color(column: &str) -> usize {
    let name = column.split(',').next();
    PEERS.iter().position(|peer| Some(*peer) == name).unwrap_or(PEERS.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_thing_that_is_told_has_a_chart() {
        let row = json!({ "of": "a row", "cells": [{ "requests": 1.0, "KiB": 4.7 }, { "requests": 0.002, "KiB": 4.3 }] });
        let memory = json!({ "of": "memory", "cells": [{ "MiB": 22 }, { "MiB": 28 }] });
        let table =
            json!({ "title": "From disk", "columns": ["Siltstone", "RocksDB"], "lines": [row, memory] });
        let drawn = charts(&table).unwrap();
        let titles: Vec<&str> = drawn.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["From disk: requests", "From disk: KiB", "From disk: MiB"]);
        assert_eq!(drawn[0].lines[1].points, [(0.0, 0.002)]);
        assert_eq!(drawn[2].x.names, ["memory"]);
        assert!(drawn[0].y.is_log && drawn[0].note.contains("ten times"));
        assert!(!drawn[1].y.is_log && drawn[1].note == "Less is better.");
        assert!(charts(&json!({ "title": "T" })).is_none());
        assert_eq!(["Siltstone, run_on", "fjall, 32 MiB in all", "others"].map(color), [0, 2, 5]);
    }
}
