//! Operations a second of the simple query, second by second, and what an operation costs, beside what was published of the
//! same configuration.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Form, Line};
use super::super::published::{self, QUERIES};
use super::ours;
use crate::simple_query::CONCURRENCY;

/// What an operation costs: what it is called, and its name in the results.
const COSTS: [(&str, &str); 4] = [
    ("allocations", "allocs_per_op"),
    ("into caches", "logallocs_per_op"),
    ("tasks", "tasks_per_op"),
    ("instructions", "instructions_per_op"),
];

/// The charts of a run; `None` if it is none.
pub(super) fn charts(results: &Value) -> Option<Vec<Chart>> {
    let (lines, parameters) = (results["lines"].as_array()?, &results["parameters"]);
    let others = published::lines(QUERIES).iter().find(|line| is_of(parameters, line));
    let title =
        |what: &str| format!("simple-query, {}: {what}", parameters["mode"].as_str().unwrap_or("read"));
    let rates = seconds(lines.iter().map(|line| line["tps"].as_f64()));
    let of_others = |query: &Value| seconds(query["tps"].as_array().into_iter().flatten().map(Value::as_f64));
    let rates = beside(ours("here", rates), others, of_others);
    let of_another = if others.is_some() { " What is published is of another machine." } else { "" };
    let costs = costs(&results["stats"], others);
    let uncounted = match results["stats"]["instructions_per_op"].is_null() {
        true => " This processor does not count instructions.",
        false => "",
    };
    let note = format!(
        "{} partitions, {} at a time, {} bytes of memory; {} requests an operation{}.{of_another}",
        parameters["partitions"],
        parameters["concurrency"],
        parameters["memory"],
        results["stats"]["requests_per_op"],
        if is_buffered(parameters) { ", of the page cache" } else { "" },
    );
    let unit = "operations a second";
    let (x, y) = (Axis::linear("second"), Axis::linear(unit));
    let mut charts =
        vec![Chart { title: title(unit), form: Form::Lines, x, y, lines: rates, note: note.clone() }];
    if costs.iter().any(|line| !line.points.is_empty()) {
        let names = COSTS.iter().map(|(name, ..)| (*name).to_owned()).collect();
        charts.push(Chart::bars(title("cost"), names, "an operation", costs, note + uncounted));
    }
    Some(charts)
}

/// Whether a run has the configuration of a published one.
fn is_of(parameters: &Value, line: &Value) -> bool {
    let is_plain = parameters["mode"] == "read"
        && ["counters", "query_single_key", "bypass_cache"].iter().all(|name| parameters[name] != true);
    is_plain
        && ["memory", "partitions"].iter().all(|name| parameters[name] == line[name])
        && parameters["concurrency"].as_u64().is_none_or(|readers| readers == u64::from(CONCURRENCY))
        && ["enable_cache", "enable_index_cache"].iter().all(|name| parameters[name] == line["is_cached"])
        && parameters["sstable_summary_ratio"] == line["summary_ratio"]
        && !is_buffered(parameters)
}

/// Whether files are read through the page cache, which nobody counts.
fn is_buffered(parameters: &Value) -> bool {
    parameters["direct_io"] == false
}

/// What an operation costs: here, and before and after the published change.
fn costs(stats: &Value, others: Option<&Value>) -> Vec<Line> {
    let points = |query: &Value| {
        let points = (0..).zip(COSTS).map(|(at, (_, name))| Some((f64::from(at), query[name].as_f64()?)));
        points.flatten().collect::<Vec<_>>()
    };
    beside(ours("here", points(stats)), others, points)
}

/// A line of ours, and the published ones before and after the change, if there are any.
fn beside(here: Line, others: Option<&Value>, points: impl Fn(&Value) -> Vec<(f64, f64)>) -> Vec<Line> {
    let changes =
        |line: &Value| ["before", "after"].map(|change| super::published(change, points(&line[change])));
    [here].into_iter().chain(others.map(changes).into_iter().flatten()).collect()
}

/// One number a second.
fn seconds(numbers: impl Iterator<Item = Option<f64>>) -> Vec<(f64, f64)> {
    (1..).zip(numbers).filter_map(|(second, number)| Some((f64::from(second), number?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_stand_beside_those_of_the_same_configuration() {
        let mut parameters = json!({ "mode": "read", "memory": 200 << 20, "partitions": 100_000, "enable_cache": false,
            "enable_index_cache": false, "sstable_summary_ratio": 0.005 });
        let stats = json!({ "allocs_per_op": 31.1, "instructions_per_op": null });
        let results =
            json!({ "parameters": parameters, "stats": stats, "lines": [{ "tps": 5.0 }, { "tps": 6.0 }] });
        let drawn = charts(&results).unwrap();
        assert_eq!(drawn[0].lines[0].points, [(1.0, 5.0), (2.0, 6.0)]);
        assert_eq!(drawn[0].lines[2].points[0], (1.0, 40_081.51));
        assert_eq!(drawn[1].lines[0].points, [(0.0, 31.1)]);
        assert_eq!(drawn[1].lines[1].points[3], (3.0, 170_553.0));
        assert!(
            drawn[1].note.contains("does not count instructions.") && !drawn[0].note.contains("processor")
        );
        parameters["concurrency"] = json!(1);
        let alone =
            charts(&json!({ "parameters": parameters, "stats": {}, "lines": [{ "tps": 5.0 }] })).unwrap();
        assert_eq!(alone[0].lines.len(), 1, "others had a hundred at a time");
        parameters["memory"] = json!(1);
        let drawn = charts(&json!({ "parameters": parameters, "stats": {}, "lines": [] })).unwrap();
        assert_eq!((drawn.len(), drawn[0].lines.len()), (1, 1));
    }
}
