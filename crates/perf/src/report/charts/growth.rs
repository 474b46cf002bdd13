//! What a row costs, by the size of what it is in: requests, KiB, and instructions where they were counted.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Form, Line};
use super::ours;

/// The charts of a curve; `None` if it is none.
pub(super) fn charts(curve: &Value) -> Option<Vec<Chart>> {
    let along = curve["along"].as_str()?;
    let points = curve["points"].as_array()?;
    let line = |name: &str, value: &dyn Fn(&Value) -> Option<f64>| {
        let points = points.iter().filter_map(|point| Some((point["size"].as_f64()?, value(point)?)));
        ours(name, points.collect())
    };
    let chart = |unit: &str, lines: Vec<Line>| Chart {
        title: format!("A row, by {along}: {unit}"),
        form: Form::Lines,
        x: Axis::log(along),
        y: Axis::linear(unit),
        lines,
        note: "Cold: right after all was opened with empty caches. Warm: behind many other reads.".to_owned(),
    };
    let of = |temperature: &'static str, unit: &'static str| {
        line(temperature, &move |point| point[temperature][unit].as_f64())
    };
    let mut charts = vec![
        chart("requests", vec![of("cold", "requests"), of("warm", "requests")]),
        chart("KiB", vec![of("cold", "kib"), of("warm", "kib")]),
    ];
    let instructions = line("warm", &|point| point["instructions"].as_f64());
    if !instructions.points.is_empty() {
        charts.push(chart("instructions", vec![instructions]));
    }
    Some(charts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn instructions_are_drawn_where_they_were_counted() {
        let mut point =
            json!({ "size": 10, "cold": { "requests": 2 }, "warm": { "requests": 1 }, "instructions": 9 });
        let counted = charts(&json!({ "along": "rows", "points": [point] })).unwrap();
        assert_eq!((counted.len(), counted[0].lines[1].points[0]), (3, (10.0, 1.0)));
        point["instructions"] = Value::Null;
        assert_eq!(charts(&json!({ "along": "rows", "points": [point] })).unwrap().len(), 2);
    }
}
