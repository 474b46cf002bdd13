//! What a row costs, by the size of what it is in: requests, KiB, and instructions where they were counted.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Form, Line};
use super::{grouped, ours};
use crate::fences;

/// What stands below: what grows, by its name in the results.
const SIZES: [(&str, &str); 7] = [
    ("rows", "rows of the partition"),
    ("partitions", "partitions of the SSTable"),
    ("sstables", "SSTables, of whose tokens none are between those of another"),
    ("overlapping", "SSTables, each with any tokens of the ring"),
    ("stretches", "SSTables, each with a stretch of 1,000 rows of the one partition"),
    ("expiring", "SSTables, each with a stretch of 1,000 rows of the one partition, which expire one day"),
    ("slices", "SSTables, each with a stretch of 1,000 rows of the one partition"),
];

/// How a row is read, and the color of that.
const COLD: (&str, usize) = ("cold", 0);
const WARM: (&str, usize) = ("warm", 1);

/// The charts of a curve; `None` if it is none.
pub(super) fn charts(curve: &Value) -> Option<Vec<Chart>> {
    let along = curve["along"].as_str()?;
    let size = SIZES.iter().find(|(name, _)| *name == along).map_or(along, |(_, size)| size);
    let (what, slices) = match along {
        "slices" => ("100 rows", " A slice is of 100 rows, from any row on."),
        _ => ("A row", ""),
    };
    let reading = super::reading(curve);
    let points = curve["points"].as_array()?;
    let fences = without_fences(curve, points);
    let line = |name: &str, color: usize, value: &dyn Fn(&Value) -> Option<f64>| {
        let points = points.iter().filter_map(|point| Some((point["size"].as_f64()?, value(point)?)));
        ours(name, color, points.collect())
    };
    let chart = |unit: &str, lines: Vec<Line>| Chart {
        title: format!("{what}, by {along}: {unit}"),
        form: Form::Lines,
        x: Axis::log(size),
        y: Axis::linear(unit),
        lines,
        note: format!(
            "Cold: right after all was opened with empty caches. Warm: behind many other reads.{slices}{fences}{reading}"
        ),
    };
    let of = |(temperature, color): (&'static str, usize), unit: &'static str| {
        line(temperature, color, &move |point| point[temperature][unit].as_f64())
    };
    let mut charts = vec![
        chart("requests", vec![of(COLD, "requests"), of(WARM, "requests")]),
        chart("KiB", vec![of(COLD, "kib"), of(WARM, "kib")]),
    ];
    let instructions = line(WARM.0, WARM.1, &|point| point["instructions"].as_f64());
    if !instructions.points.is_empty() {
        charts.push(chart("instructions", vec![instructions]));
    }
    Some(charts)
}

/// At which sizes SSTables had no fences. Results of before tell what was asked for, of all sizes.
fn without_fences(curve: &Value, points: &[Value]) -> String {
    let without = points.iter().filter(|point| fences::are_missing(&point["fences"]));
    let without: Vec<String> = without.filter_map(|point| point["size"].as_u64().map(grouped)).collect();
    if curve["fences"] == false || (without.len() == points.len() && !points.is_empty()) {
        " No fences.".to_owned()
    } else if without.is_empty() {
        String::new()
    } else {
        format!(" No fences at {}.", without.join("; "))
    }
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

    #[test]
    fn sizes_without_fences_are_told() {
        let note = |fences: [Value; 3]| {
            let points = [1, 10, 1000].into_iter().zip(fences);
            let points = points.map(|(size, fences)| json!({ "size": size, "fences": fences }));
            let curve = json!({ "along": "partitions", "points": points.collect::<Vec<Value>>() });
            charts(&curve).unwrap().remove(0).note
        };
        let (some, none) = (json!(true), json!("none"));
        let told = [[&some, &some, &some], [&none, &none, &some], [&none, &none, &none]];
        let told = told.map(|fences| note(fences.map(Value::clone)));
        for (note, end) in told.iter().zip(["other reads.", " No fences at 1; 10.", " No fences."]) {
            assert!(note.ends_with(end), "{note}");
        }
    }

    #[test]
    fn it_is_told_what_is_read_and_what_grows() {
        let drawn = |along: &str| {
            charts(&json!({ "along": along, "fences": false, "points": [] })).unwrap().remove(0)
        };
        let (row, slice) = (drawn("overlapping"), drawn("slices"));
        assert_eq!(
            [&*row.title, &*slice.title],
            ["A row, by overlapping: requests", "100 rows, by slices: requests"]
        );
        assert_eq!(row.x.label, "SSTables, each with any tokens of the ring");
        assert!(row.note.ends_with("other reads. No fences."), "{}", row.note);
        assert!(slice.note.contains("of 100 rows"), "{}", slice.note);
        assert_eq!(drawn("others").x.label, "others");
    }
}
