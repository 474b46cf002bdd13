//! Operations a second of the simple query, second by second, and what an operation costs, beside what was published of the
//! same configuration.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Form, Line};
use super::super::published::{QUERIES, QUERY_MEMORY, Queries, Query};
use super::{ours, published};

/// What an operation costs: what it is called, its name in the results, and its published value.
type Cost = (&'static str, &'static str, fn(&Query) -> f64);

const COSTS: [Cost; 4] = [
    ("allocations", "allocs_per_op", |query| query.allocations),
    ("into caches", "logallocs_per_op", |query| query.into_caches),
    ("tasks", "tasks_per_op", |query| query.tasks),
    ("instructions", "instructions_per_op", |query| query.instructions),
];

/// The charts of a run; `None` if it is none.
pub(super) fn charts(results: &Value) -> Option<Vec<Chart>> {
    let (lines, parameters) = (results["lines"].as_array()?, &results["parameters"]);
    let others = QUERIES.iter().find(|queries| is_of(parameters, queries));
    let title =
        |what: &str| format!("simple-query, {}: {what}", parameters["mode"].as_str().unwrap_or("read"));
    let rates = seconds(lines.iter().map(|line| line["tps"].as_f64()));
    let of_others = |query: fn(&Queries) -> &Query| seconds(query_of(others, query).map(|rate| Some(*rate)));
    let rates = beside(ours("here", rates), others.is_some(), [of_others(before), of_others(after)]);
    let of_another = if others.is_some() { " What is published is of another machine." } else { "" };
    let costs = costs(&results["stats"], others);
    let chart = |title: String, x: Axis, y: Axis, lines: Vec<Line>| {
        let note = format!(
            "{} partitions, {} at a time, {} bytes of memory; {} requests an operation.{of_another}",
            parameters["partitions"],
            parameters["concurrency"],
            parameters["memory"],
            results["stats"]["requests_per_op"],
        );
        Chart { title, form: Form::Lines, x, y, lines, note }
    };
    let unit = "operations a second";
    let mut charts = vec![chart(title(unit), Axis::linear("second"), Axis::linear(unit), rates)];
    if costs.iter().any(|line| !line.points.is_empty()) {
        let names = COSTS.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let x = Axis { names, ..Axis::default() };
        let bars = chart(title("cost"), x, Axis::log("an operation"), costs);
        charts.push(Chart { form: Form::Bars, ..bars });
    }
    Some(charts)
}

/// Whether a run has the configuration of published ones.
fn is_of(parameters: &Value, queries: &Queries) -> bool {
    let is_plain = parameters["mode"] == "read"
        && ["counters", "query_single_key", "bypass_cache"].iter().all(|name| parameters[name] != true);
    is_plain
        && parameters["memory"] == QUERY_MEMORY
        && parameters["partitions"] == queries.partitions
        && ["enable_cache", "enable_index_cache"].iter().all(|name| parameters[name] == queries.is_cached)
        && parameters["sstable_summary_ratio"] == queries.summary_ratio
}

/// What an operation costs: here, and before and after the published change.
fn costs(stats: &Value, others: Option<&Queries>) -> Vec<Line> {
    let points = |value: &dyn Fn(&Cost) -> Option<f64>| {
        let points = (0..).zip(&COSTS).map(|(at, cost)| Some((f64::from(at), value(cost)?)));
        points.flatten().collect::<Vec<_>>()
    };
    let here = ours("here", points(&|(_, name, _)| stats[name].as_f64()));
    let of_others =
        |query: fn(&Queries) -> &Query| points(&|(.., value)| others.map(|queries| value(query(queries))));
    beside(here, others.is_some(), [of_others(before), of_others(after)])
}

fn beside(here: Line, has_others: bool, [before, after]: [Vec<(f64, f64)>; 2]) -> Vec<Line> {
    match has_others {
        true => vec![here, published("before", before), published("after", after)],
        false => vec![here],
    }
}

fn before(queries: &Queries) -> &Query {
    &queries.lines.before
}

fn after(queries: &Queries) -> &Query {
    &queries.lines.after
}

fn query_of(
    others: Option<&'static Queries>,
    query: fn(&Queries) -> &Query,
) -> impl Iterator<Item = &'static f64> {
    others.into_iter().flat_map(move |queries| query(queries).rates)
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
        parameters["memory"] = json!(1);
        let drawn = charts(&json!({ "parameters": parameters, "stats": {}, "lines": [] })).unwrap();
        assert_eq!((drawn.len(), drawn[0].lines.len()), (1, 1));
    }
}
