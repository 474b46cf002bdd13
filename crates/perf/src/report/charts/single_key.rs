//! Latencies of single keys, from those of most reads to those of few, and their ratios to the first case, beside what was published.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Form, Line};
use super::super::published::{self, SINGLE_KEY};
use super::{grouped, ours};

/// Percentiles, which one read in so many exceeds: what was published has no others.
const PERCENTILES: [(&str, f64); 4] =
    [("median", 2.0), ("95th percentile", 20.0), ("99th percentile", 100.0), ("99.9th percentile", 1000.0)];

/// How many rows each of the published program's SSTables has.
const PUBLISHED_ROWS: u32 = 10_000;

/// Ratios of these are drawn: what is above them tells of the machine rather than of the reads.
const RATIOS: [&str; 3] = ["mean", "median", "95th percentile"];

/// The charts of a run; `None` if it is none.
pub(super) fn charts(results: &Value) -> Option<Vec<Chart>> {
    let cases = results["cases"].as_array()?;
    let names = cases.iter().map(|case| case["case"].as_str()).collect::<Option<Vec<_>>>()?;
    // Where nothing was asked of the disk, nothing is like it, and so it is with other rows.
    let is_like = !super::is_buffered(results) && results["rows"] == PUBLISHED_ROWS;
    let others: &[Value] = if is_like { published::lines(SINGLE_KEY) } else { &[] };
    let of_another = match others {
        [] => "",
        _ => " What is published is of another machine, and of 4,000 requests a second.",
    };
    let note = format!(
        "{} requests a second, of {} rows in {} SSTables; waiting for earlier ones is counted.{}{of_another}",
        results["rate"],
        results["rows"].as_u64().map_or("?".to_owned(), grouped),
        results["sstables"],
        super::reading(results),
    );
    let latency = Chart {
        title: "single-key: latency".to_owned(),
        form: Form::Lines,
        x: Axis::log("one read in so many takes longer"),
        y: Axis::log("ms"),
        lines: latencies(cases, &names, others),
        note: note.clone(),
    };
    let groups = names.iter().map(|name| (*name).to_owned()).collect();
    let title = "single-key: latency beside that of off".to_owned();
    let ratio = Chart::bars(title, groups, "ratio", ratios(cases, &names, others), note);
    Some(vec![latency, ratio])
}

/// A line for each case, and a published one where there is one of it.
fn latencies(cases: &[Value], names: &[&str], others: &[Value]) -> Vec<Line> {
    let ours = (0..).zip(cases).zip(names).map(|((color, case), name)| ours(name, color, curve(case)));
    let of_others = (0..)
        .zip(names)
        .filter_map(|(color, name)| Some(super::published(name, color, percentiles(case_of(others, name)?))));
    ours.chain(of_others).collect()
}

/// All points of a case that was measured here.
fn curve(case: &Value) -> Vec<(f64, f64)> {
    let points = case["curve"].as_array().into_iter().flatten();
    points.filter_map(|point| Some((point[0].as_f64()?, point[1].as_f64()?))).collect()
}

fn percentiles(case: &Value) -> Vec<(f64, f64)> {
    let point = |(of, one_in)| Some((one_in, case["latency"][of].as_f64()?));
    PERCENTILES.into_iter().filter_map(point).collect()
}

/// Bars for each case: what a latency is beside that of the first one.
fn ratios(cases: &[Value], names: &[&str], others: &[Value]) -> Vec<Line> {
    let line_of = |(color, of): (usize, &str)| {
        let here = (0..)
            .zip(cases)
            .map(|(group, case)| Some((f64::from(group), case["ratio_to_off"][of].as_f64()?)));
        let there = (0..).zip(names).map(|(group, name)| {
            let latency = |name| case_of(others, name)?["latency"][of].as_f64();
            Some((f64::from(group), latency(name)? / latency("off")?))
        });
        [
            ours(&format!("here, {of}"), color, here.flatten().collect()),
            super::published(of, color, there.flatten().collect()),
        ]
    };
    (0..).zip(RATIOS).flat_map(line_of).filter(|line| !line.points.is_empty()).collect()
}

/// The published line of a case. The published program's worst case is that of tables that never adapt.
fn case_of<'a>(lines: &'a [Value], name: &str) -> Option<&'a Value> {
    let name = if name == "worst-at-first" { "worst" } else { name };
    lines.iter().find(|line| line["case"] == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cases_stand_beside_the_published_ones() {
        let curve = [[1.0, 0.5], [2.0, 1.5], [5.0, 4.0]];
        let case = |name: &str| json!({ "case": name, "curve": curve, "ratio_to_off": { "mean": 0.5 } });
        let cases = [case("best"), case("worst-adapted")];
        let drawn = charts(&json!({ "rate": 7, "rows": 10_000, "sstables": 3, "cases": cases })).unwrap();
        assert_eq!(drawn[0].lines.len(), 2 + 1);
        assert_eq!(drawn[0].lines[0].points, curve.map(|[one_in, millis]| (one_in, millis)));
        assert_eq!(drawn[0].lines[2].points, [(2.0, 0.6), (20.0, 1.0), (100.0, 1.2), (1000.0, 4.4)]);
        assert_eq!(drawn[1].lines[0].points, [(0.0, 0.5), (1.0, 0.5)]);
        assert_eq!(drawn[1].lines[1].points, [(0.0, 0.6 / 1.3)]);
        assert!(drawn[0].note.ends_with("of 4,000 requests a second."), "{}", drawn[0].note);
        assert!(charts(&json!({ "cases": [{}] })).is_none());
        let others = charts(&json!({ "rows": 9, "cases": cases })).unwrap();
        assert!(others.iter().flat_map(|chart| &chart.lines).all(|line| !line.is_published));
        let buffered = charts(&json!({ "direct_io": false, "rows": 10_000, "cases": cases })).unwrap();
        assert!(buffered.iter().flat_map(|chart| &chart.lines).all(|line| !line.is_published));
        assert!(buffered[0].note.contains("Read through the page cache"), "{}", buffered[0].note);
    }
}
