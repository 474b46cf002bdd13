//! From what the benchmarks print to charts of it.

use serde_json::Value;

use super::chart::{Axis, Chart, Line};
use super::published::{SLICING, SLICING_ROWS, Slicing};

/// The charts of a document; `None` if no benchmark prints such a one.
pub(super) fn of(results: &Value) -> Option<Vec<Chart>> {
    if let Some(groups) = results.as_array() {
        let charts: Vec<Chart> = groups.iter().flat_map(group).collect();
        return (!charts.is_empty()).then_some(charts);
    }
    if let Some(curves) = results["growth"].as_array() {
        return curves.iter().map(growth).collect::<Option<Vec<_>>>().map(|charts| charts.concat());
    }
    if results.get("along").is_some() {
        return growth(results);
    }
    if results.get("lines").is_some() {
        return simple_query(results);
    }
    results.get("cases").and(single_key(results))
}

/// The slices, or the skips, of a group of fast-forward; nothing of the other groups.
fn group(group: &Value) -> Vec<Chart> {
    let (name, cases) = (group["group"].as_str().unwrap_or_default(), group["cases"].as_array());
    let Some(cases) = cases else { return Vec::new() };
    let has = |column: &str| cases.iter().all(|case| case[column].is_number());
    let fences = if group["fences"] == true { "fences" } else { "no fences" };
    let how = format!("{fences}, {} search", group["index_search"].as_str().unwrap_or("binary"));
    let (by, along, label) = if has("offset") && has("read") {
        ("offset", "read", "rows that are read")
    } else if has("read") && has("skip") {
        ("read", "skip", "rows that are skipped")
    } else {
        return Vec::new();
    };
    let rows = group["made_of"]["rows"].as_u64().unwrap_or_default();
    let is_published = name.starts_with("large-partition-slicing") && rows == SLICING_ROWS;
    let chart = |column: &str, unit: &str, published: fn(&Slicing) -> [u64; 2]| {
        let mut lines = lines(cases, by, (along, column));
        if is_published {
            lines.extend(
                SLICING.iter().flat_map(|(offset, slices)| published_lines(*offset, slices, published)),
            );
        }
        Chart {
            title: format!("{name}: {unit}"),
            x: Axis::log(label),
            y: Axis::log(unit),
            lines,
            note: format!("{rows} rows of {} bytes; {how}. Cold.", group["made_of"]["value_size"]),
        }
    };
    vec![
        chart("aio", "requests", |slicing| [slicing.scan.0, slicing.binary.0]),
        chart("KiB", "KiB", |slicing| [slicing.scan.1, slicing.binary.1]),
    ]
}

/// A line for each value of a column.
fn lines(cases: &[Value], by: &str, (x, y): (&str, &str)) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for case in cases {
        let name = format!("{by} {}", case[by]);
        let (Some(x), Some(y)) = (case[x].as_f64(), case[y].as_f64()) else { continue };
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push((x, y)),
            None => lines.push(Line { name, points: vec![(x, y)], is_published: false }),
        }
    }
    lines
}

fn published_lines(offset: u64, slices: &[Slicing], value: fn(&Slicing) -> [u64; 2]) -> [Line; 2] {
    [(0, "scan"), (1, "binary search")].map(|(which, how)| Line {
        name: format!("offset {offset}, published, {how}"),
        points: slices.iter().map(|slicing| (slicing.rows as f64, value(slicing)[which] as f64)).collect(),
        is_published: true,
    })
}

/// Requests, and instructions where they were counted, by size.
fn growth(curve: &Value) -> Option<Vec<Chart>> {
    let along = curve["along"].as_str()?;
    let points = curve["points"].as_array()?;
    let line = |name: &str, value: &dyn Fn(&Value) -> Option<f64>| {
        let points =
            points.iter().filter_map(|point| Some((point["size"].as_f64()?, value(point)?))).collect();
        Line { name: name.to_owned(), points, is_published: false }
    };
    let chart = |unit: &str, y: Axis, lines: Vec<Line>| Chart {
        title: format!("A row, by {along}: {unit}"),
        x: Axis::log(along),
        y,
        lines,
        note: "Cold: right after all was opened with empty caches. Warm: behind many other reads.".to_owned(),
    };
    let of = |temperature: &'static str, unit: &'static str| {
        line(temperature, &move |point| point[temperature][unit].as_f64())
    };
    let mut charts = vec![
        chart("requests", Axis::linear("requests"), vec![of("cold", "requests"), of("warm", "requests")]),
        chart("KiB", Axis::linear("KiB"), vec![of("cold", "kib"), of("warm", "kib")]),
    ];
    let instructions = line("warm", &|point| point["instructions"].as_f64());
    if !instructions.points.is_empty() {
        charts.push(chart("instructions", Axis::linear("instructions"), vec![instructions]));
    }
    Some(charts)
}

/// Operations a second, second by second.
fn simple_query(results: &Value) -> Option<Vec<Chart>> {
    let (lines, parameters) = (results["lines"].as_array()?, &results["parameters"]);
    let rates =
        (1..).zip(lines).filter_map(|(second, line)| Some((f64::from(second), line["tps"].as_f64()?)));
    let rates = Line { name: "operations a second".to_owned(), points: rates.collect(), is_published: false };
    Some(vec![Chart {
        title: format!("simple-query, {}", parameters["mode"].as_str().unwrap_or("read")),
        x: Axis::linear("second"),
        y: Axis::linear("operations a second"),
        lines: vec![rates],
        note: format!(
            "{} partitions, {} at a time; {} allocations, {} requests an operation.",
            parameters["partitions"],
            parameters["concurrency"],
            results["stats"]["allocs_per_op"],
            results["stats"]["requests_per_op"],
        ),
    }])
}

/// Latencies, from the mean to the greatest, of each case.
fn single_key(results: &Value) -> Option<Vec<Chart>> {
    let cases = results["cases"].as_array()?;
    let names: Vec<String> = cases.first()?["latency"].as_object()?.keys().cloned().collect();
    let line = |case: &Value| {
        let latency = |(at, name): (usize, &String)| Some((at as f64, case["latency"][name].as_f64()?));
        Some(Line {
            name: case["case"].as_str()?.to_owned(),
            points: names.iter().enumerate().filter_map(latency).collect(),
            is_published: false,
        })
    };
    let lines = cases.iter().map(line).collect::<Option<Vec<_>>>()?;
    Some(vec![Chart {
        title: "single-key: latency".to_owned(),
        x: Axis { names: names.clone(), ..Axis::linear("") },
        y: Axis::log("ms"),
        lines,
        note: format!(
            "{} requests a second, of {} rows in {} SSTables; waiting for earlier ones is counted.",
            results["rate"], results["rows"], results["sstables"]
        ),
    }])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_benchmark_has_its_charts() {
        let case = json!({ "offset": 0, "read": 32, "aio": 2, "KiB": 73.0 });
        let made_of = json!({ "rows": SLICING_ROWS, "value_size": 2000 });
        let slicing = json!({ "group": "large-partition-slicing", "made_of": made_of, "fences": true, "index_search": "binary",
            "cases": [case] });
        let charts = of(&json!([slicing])).unwrap();
        assert_eq!(charts.len(), 2);
        assert_eq!(charts[0].lines.len(), 1 + 4, "the published ones are beside it");
        assert_eq!(charts[1].lines[0].points, [(32.0, 73.0)]);

        let latency = json!({ "mean": 1.5, "median": 1.0 });
        let single_key =
            json!({ "rate": 7, "rows": 9, "sstables": 3, "cases": [{ "case": "off", "latency": latency }] });
        assert_eq!(of(&single_key).unwrap()[0].lines[0].points.len(), 2);
        let lines = json!({ "parameters": {}, "stats": {}, "lines": [{ "tps": 5.0 }, { "tps": 6.0 }] });
        assert_eq!(of(&lines).unwrap()[0].lines[0].points, [(1.0, 5.0), (2.0, 6.0)]);
        let point =
            json!({ "size": 10, "cold": { "requests": 2 }, "warm": { "requests": 1 }, "instructions": 9 });
        let curve = json!({ "along": "rows", "points": [point] });
        assert_eq!(of(&json!({ "growth": [curve, curve] })).unwrap().len(), 6);
        assert!(of(&json!({})).is_none() && of(&json!([1])).is_none());
    }
}
