//! From what the benchmarks print to charts of it.
//!
//! | module | of |
//! |---|---|
//! | [`fast_forward`] | slices, skips and single rows: requests, KiB, rows a second |
//! | [`simple_query`] | operations a second, and what one costs |
//! | [`single_key`] | latencies, and their ratios |
//! | [`growth`] | what a row costs, by the size of what it is in |
//! | [`peers`] | the same work by other databases |

mod fast_forward;
mod growth;
mod peers;
mod simple_query;
mod single_key;

use serde_json::Value;

use super::chart::{Chart, Line};

/// The charts of a document, and what is in it of which there are none; `None` if no benchmark prints such a one.
pub(super) fn of(results: &Value) -> Option<(Vec<Chart>, Vec<String>)> {
    if let Some(groups) = results.as_array() {
        return of_groups(groups);
    }
    let of_each = |tables: &[Value], of: fn(&Value) -> Option<Vec<Chart>>| {
        tables.iter().map(of).collect::<Option<Vec<_>>>().map(|charts| charts.concat())
    };
    let charts = if let Some(curves) = results["growth"].as_array() {
        of_each(curves, growth::charts)
    } else if let Some(tables) = results["peers"].as_array() {
        of_each(tables, peers::charts)
    } else if results.get("along").is_some() {
        growth::charts(results)
    } else if results.get("lines").is_some() {
        simple_query::charts(results)
    } else {
        results.get("cases").and(single_key::charts(results))
    };
    charts.map(with_points)
}

/// The charts that have a point, and the titles of the others.
fn with_points(charts: Vec<Chart>) -> (Vec<Chart>, Vec<String>) {
    let charts = charts.into_iter().map(Chart::drawable);
    let has_some =
        |chart: &Chart| chart.lines.iter().any(|line| !line.is_published && !line.points.is_empty());
    let (drawn, empty): (Vec<Chart>, Vec<Chart>) = charts.partition(has_some);
    (drawn, empty.into_iter().map(|chart| chart.title).collect())
}

/// Those of fast-forward.
fn of_groups(groups: &[Value]) -> Option<(Vec<Chart>, Vec<String>)> {
    let (mut charts, mut left_out) = (Vec::new(), Vec::new());
    for (number, group) in groups.iter().enumerate() {
        let name = group["group"].as_str().filter(|_| group["cases"].is_array())?;
        match fast_forward::charts(group, number == 0) {
            none if none.is_empty() => left_out.push(name.to_owned()),
            of_group => charts.extend(of_group.into_iter().map(Chart::drawable)),
        }
    }
    (!groups.is_empty()).then_some((charts, left_out))
}

/// Whether it is known that files were read through the page cache of the operating system, which nobody counts.
fn is_buffered(run: &Value) -> bool {
    run["direct_io"] == false
}

/// What is said of a run for how it read, behind what else is said of it.
fn reading(run: &Value) -> String {
    let parts = [
        (
            is_buffered(run),
            " Read through the page cache of the operating system: not cold, and not to be set beside what was published.",
        ),
        (run["io_uring"] == false, " Read by a pool of threads, without io_uring."),
        (run["interrupted"] == true, " Interrupted: this is what was found by then."),
    ];
    let parts = parts.into_iter().filter(|(is_so, _)| *is_so).map(|(_, told)| told.to_owned());
    let wrong =
        run["error"].as_str().map(|error| format!(" It went wrong, and this is no good figure: {error}."));
    parts.chain(wrong).collect()
}

/// A line of our own.
fn ours(name: &str, color: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.to_owned(), points, color, is_published: false }
}

/// A line that others have published, in the color of the one of ours that it stands beside.
fn published(name: &str, color: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: format!("published, {name}"), points, color, is_published: true }
}

/// A number as people write it, with a comma after each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn other_documents_are_refused() {
        for other in [json!({}), json!([1]), json!([]), json!({ "peers": [1] }), json!({ "growth": [{}] })] {
            assert!(of(&other).is_none(), "{other}");
        }
    }

    #[test]
    fn charts_without_a_point_are_left_out() {
        let point = json!({ "size": 10, "cold": null, "warm": { "requests": 1 } });
        let titles = ["A row, by rows: requests", "A row, by rows: KiB"].map(str::to_owned);
        for (points, drawn, left_out) in [(json!([]), 0, &titles[..]), (json!([point]), 1, &titles[1..])] {
            let (charts, others) = of(&json!({ "along": "rows", "points": points })).unwrap();
            assert_eq!((charts.len(), &others[..]), (drawn, left_out));
        }
        for empty in [json!({ "rate": 7, "rows": 9, "sstables": 3, "cases": [] }), json!({ "lines": [] })] {
            let (charts, others) = of(&empty).unwrap();
            assert!(charts.is_empty() && !others.is_empty(), "{empty}: {others:?}");
        }
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([7, 400, 5000, 10_000_000].map(grouped), ["7", "400", "5,000", "10,000,000"]);
    }
}
