//! Operations a second of the simple query, second by second, and what an operation costs, beside what was published of the
//! same configuration.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Form, Line};
use super::super::published::{self, QUERIES};
use super::{grouped, ours};
use crate::fences;
use crate::numbers::median;
use crate::simple_query::CONCURRENCY;

/// What is not told of a run, as it is so unless something else is asked for.
const SUMMARY_RATIO: f64 = 0.0005;
const FORMAT: &str = "me";

/// What an operation costs: what it is called, and its name in the results. Where one was not counted here, it is left out.
const COSTS: [(&str, &str); 4] = [
    ("allocations", "allocs_per_op"),
    ("into caches", "logallocs_per_op"),
    ("tasks", "tasks_per_op"),
    ("instructions", "instructions_per_op"),
];

/// What is said where costs stand beside published ones.
const UNLIKE: &str = " What is published is of a whole query, here it is the read of a store. Into caches: here the values that were put into \
     them, there allocations in their memory and that of memtables. Tasks: here how often the shard turned to an operation, there what \
     the reactor ran.";

/// The charts of a run; `None` if it is none.
pub(super) fn charts(results: &Value) -> Option<Vec<Chart>> {
    let (lines, parameters) = (results["lines"].as_array()?, &parameters(results));
    let others = published::lines(QUERIES).iter().find(|line| is_of(parameters, line));
    let title =
        |what: &str| format!("simple-query, {}: {what}", parameters["mode"].as_str().unwrap_or("read"));
    let stats = &results["stats"];
    let counted: Vec<(&str, &str)> = COSTS.into_iter().filter(|(_, name)| stats[name].is_number()).collect();
    let uncounted = match stats["instructions_per_op"].is_null() {
        true => " This processor does not count instructions.",
        false => "",
    };
    let requests = stats["requests_per_op"].as_f64();
    let requests = requests.map(|requests| format!("; {requests} requests an operation")).unwrap_or_default();
    let note = format!("{}{requests}.{}", settings(parameters), super::reading(parameters));
    let mut charts = vec![rates(lines, parameters, others, title("operations a second"), note.clone())];
    if !counted.is_empty() {
        let names = counted.iter().map(|(name, _)| (*name).to_owned()).collect();
        let note = note + uncounted + if others.is_some() { UNLIKE } else { "" };
        charts.push(Chart::bars(title("cost"), names, "an operation", costs(stats, &counted, others), note));
    }
    Some(charts)
}

/// The parameters, with the fences that the SSTables had in the place of those that were asked for, and how many operations and seconds there
/// were if it was interrupted.
fn parameters(results: &Value) -> Value {
    let mut parameters = results["parameters"].clone();
    let Some(fields) = parameters.as_object_mut() else { return parameters };
    let mut put = |name: &str, value: &Value| drop(fields.insert(name.to_owned(), value.clone()));
    if !results["fences"].is_null() {
        put("fences", &results["fences"]);
    }
    if results["interrupted"] == true {
        put("interrupted", &results["interrupted"]);
        let alone = results["lines"].as_array().and_then(|lines| <&[Value; 1]>::try_from(&lines[..]).ok());
        if let Some([line]) = alone {
            let (asked_for, were) = match results["parameters"]["operations"].is_null() {
                true => ("duration", "seconds"),
                false => ("operations", "operations"),
            };
            put(asked_for, &line[were]);
        }
    }
    parameters
}

/// Second by second; a bar where it is one line, of a second or of a number of operations.
fn rates(lines: &[Value], parameters: &Value, others: Option<&Value>, title: String, note: String) -> Chart {
    let unit = "operations a second";
    let note = note + if others.is_some() { " What is published is of another machine." } else { "" };
    let of_others = |query: &Value| -> Vec<f64> {
        query["tps"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let here: Vec<f64> = lines.iter().filter_map(|line| line["tps"].as_f64()).collect();
    if lines.len() == 1 {
        let operations = parameters["operations"].as_u64();
        let of = match (operations, parameters["duration"].as_f64().filter(|seconds| *seconds != 1.0)) {
            (Some(count), _) => format!("{} operations", grouped(count)),
            (None, Some(seconds)) => format!("{seconds} seconds"),
            (None, None) => "a second".to_owned(),
        };
        let bar = |rates| vec![(0.0, median(rates))];
        let bars = beside(ours("here", 0, bar(here)), others, |query| bar(of_others(query)));
        return Chart::bars(title, vec![of], unit, bars, note);
    }
    let lines = beside(ours("here", 0, seconds(here)), others, |query| seconds(of_others(query)));
    Chart { title, form: Form::Lines, x: Axis::linear("second"), y: Axis::linear(unit), lines, note }
}

/// What is read or written, and what else tells a run from one that is as usual.
fn settings(parameters: &Value) -> String {
    let is = |name: &str, value: Value| parameters[name] == value;
    let number = |name: &str| parameters[name].as_u64().map_or("?".to_owned(), grouped);
    let always = ["partitions", "at a time", "bytes of memory"]
        .into_iter()
        .zip(["partitions", "concurrency", "memory"])
        .map(|(unit, name)| format!("{} {unit}", number(name)));
    let told = |(is_so, what): (bool, &str)| is_so.then(|| what.to_owned());
    let unusual = [
        (is("query_single_key", true.into()), "one of them asked for"),
        (is("counters", true.into()), "counters"),
        (is("flush", true.into()), "flushed"),
        (is("bypass_cache", true.into()), "past the row cache"),
        (is("enable_cache", false.into()), "no row cache"),
        (is("enable_index_cache", false.into()), "no index cache"),
        (fences::are_missing(&parameters["fences"]), "no fences"),
    ];
    let ratio = &parameters["sstable_summary_ratio"];
    let others = [
        ratio.as_f64().filter(|ratio| *ratio != SUMMARY_RATIO).map(|ratio| format!("summary ratio {ratio}")),
        parameters["sstable_format"].as_str().filter(|name| *name != FORMAT).map(str::to_owned),
        parameters["operations"].as_u64().map(|count| format!("{} operations", grouped(count))),
    ];
    always
        .chain(unusual.into_iter().filter_map(told))
        .chain(others.into_iter().flatten())
        .collect::<Vec<String>>()
        .join(", ")
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
        && (line["summary_ratio"] == SUMMARY_RATIO || is_of_summary(parameters))
        && !super::is_buffered(parameters)
}

/// Whether the summary is asked, of which there was more: where there are fences it is not.
fn is_of_summary(parameters: &Value) -> bool {
    fences::are_missing(&parameters["fences"])
}

/// What an operation costs: here, and before and after the published change.
fn costs(stats: &Value, counted: &[(&str, &str)], others: Option<&Value>) -> Vec<Line> {
    let points = |query: &Value| {
        let points = (0..).zip(counted).map(|(at, (_, name))| Some((f64::from(at), query[name].as_f64()?)));
        points.flatten().collect::<Vec<_>>()
    };
    beside(ours("here", 0, points(stats)), others, points)
}

/// A line of ours, and the published ones before and after the change, if there are any.
fn beside(here: Line, others: Option<&Value>, points: impl Fn(&Value) -> Vec<(f64, f64)>) -> Vec<Line> {
    let changes =
        |line: &Value| ["before", "after"].map(|change| super::published(change, 0, points(&line[change])));
    [here].into_iter().chain(others.map(changes).into_iter().flatten()).collect()
}

/// One number a second.
fn seconds(numbers: Vec<f64>) -> Vec<(f64, f64)> {
    (1..).map(f64::from).zip(numbers).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn runs_stand_beside_those_of_the_same_configuration() {
        let mut parameters = json!({ "mode": "read", "memory": 200 << 20, "partitions": 100_000, "enable_cache": false,
            "enable_index_cache": false, "sstable_summary_ratio": 0.005, "fences": false });
        let stats = json!({ "allocs_per_op": 31.1, "instructions_per_op": null });
        let mut results =
            json!({ "parameters": parameters, "stats": stats, "lines": [{ "tps": 5.0 }, { "tps": 6.0 }] });
        let drawn = charts(&results).unwrap();
        assert_eq!(drawn[0].lines[0].points, [(1.0, 5.0), (2.0, 6.0)]);
        assert_eq!(drawn[0].lines[2].points[0], (1.0, 40_081.51));
        assert!(drawn[0].note.ends_with("of another machine."), "{}", drawn[0].note);
        assert_eq!(drawn[1].lines[0].points, [(0.0, 31.1)]);
        assert_eq!(drawn[1].lines[1].points, [(0.0, 146.1)], "what was not counted here has no room");
        assert_eq!(drawn[1].x.names, ["allocations"]);
        assert!(drawn[1].note.contains("does not count instructions. What is published is of a whole query"));
        assert!(drawn[1].note.contains("there what the reactor ran") && !drawn[0].note.contains("processor"));
        results["stats"]["instructions_per_op"] = json!(7);
        assert_eq!(charts(&results).unwrap()[1].lines[1].points[1], (1.0, 170_553.0));
        let mut with_fences = results.clone();
        with_fences["parameters"]["fences"] = json!(true);
        let drawn = charts(&with_fences).unwrap();
        assert!(drawn[0].lines.len() == 1 && drawn[0].note.contains("summary ratio 0.005"), "{drawn:?}");
        with_fences["fences"] = json!("none");
        let drawn = charts(&with_fences).unwrap();
        assert!(
            drawn[0].lines.len() == 3 && drawn[0].note.contains("no fences"),
            "they were asked for alone: {drawn:?}"
        );
        with_fences["fences"] = json!(true);
        with_fences["parameters"]["sstable_summary_ratio"] = json!(0.0005);
        assert_eq!(charts(&with_fences).unwrap()[0].lines.len(), 3, "there it is the usual summary");
        parameters["concurrency"] = json!(1);
        let alone =
            charts(&json!({ "parameters": parameters, "stats": {}, "lines": [{ "tps": 5.0 }] })).unwrap();
        assert_eq!(alone[0].lines.len(), 1, "others had a hundred at a time");
        parameters["memory"] = json!(1);
        let drawn = charts(&json!({ "parameters": parameters, "stats": {}, "lines": [] })).unwrap();
        assert_eq!((drawn.len(), drawn[0].lines.len()), (1, 1));
        assert!(!drawn[0].note.contains("requests"), "{}", drawn[0].note);
    }

    #[test]
    fn a_single_line_is_a_bar() {
        let drawn = |parameters: Value| {
            charts(&json!({ "parameters": parameters, "stats": {}, "lines": [{ "tps": 5.0 }] }))
                .unwrap()
                .remove(0)
        };
        let some = drawn(json!({ "operations": 100_000 }));
        assert_eq!((some.form, some.lines[0].points.as_slice()), (Form::Bars, [(0.0, 5.0)].as_slice()));
        assert_eq!(some.x.names, ["100,000 operations"]);
        assert_eq!(drawn(json!({ "duration": 1 })).x.names, ["a second"]);
        assert_eq!(drawn(json!({ "duration": 1.5 })).x.names, ["1.5 seconds"]);
        let parameters = json!({ "mode": "read", "memory": 200 << 20, "partitions": 1_000_000, "enable_cache": true,
            "enable_index_cache": true, "sstable_summary_ratio": 0.0005, "operations": 9 });
        assert_eq!(
            drawn(parameters).lines[1].points,
            [(0.0, 7774.96)],
            "the median of the published seconds"
        );
    }

    #[test]
    fn an_interrupted_run_is_told_as_it_was() {
        let drawn = |parameters: Value| {
            let lines = [json!({ "tps": 5.0, "operations": 40, "seconds": 0.25 })];
            let results =
                json!({ "parameters": parameters, "stats": {}, "interrupted": true, "lines": lines });
            charts(&results).unwrap().remove(0)
        };
        assert_eq!(drawn(json!({ "operations": 100_000 })).x.names, ["40 operations"]);
        let some = drawn(json!({ "duration": 5.0 }));
        assert_eq!(some.x.names, ["0.25 seconds"]);
        assert!(some.note.contains("Interrupted"), "{}", some.note);
    }

    #[test]
    fn notes_tell_runs_apart() {
        let usual = json!({ "partitions": 10_000, "concurrency": 100, "memory": 1 << 20, "enable_cache": true, "fences": true,
            "sstable_summary_ratio": 0.0005, "sstable_format": "me", "flush": false, "operations": null, "direct_io": true });
        let of_usual = "10,000 partitions, 100 at a time, 1,048,576 bytes of memory";
        assert_eq!(settings(&usual), of_usual);
        for (name, value, told) in [
            ("flush", json!(true), "flushed"),
            ("bypass_cache", json!(true), "past the row cache"),
            ("enable_cache", json!(false), "no row cache"),
            ("enable_index_cache", json!(false), "no index cache"),
            ("fences", json!(false), "no fences"),
            ("sstable_format", json!("mc"), "mc"),
            ("sstable_summary_ratio", json!(0.005), "summary ratio 0.005"),
            ("operations", json!(5000), "5,000 operations"),
        ] {
            let mut other = usual.clone();
            other[name] = value;
            assert_eq!(settings(&other), format!("{of_usual}, {told}"));
        }
    }
}
