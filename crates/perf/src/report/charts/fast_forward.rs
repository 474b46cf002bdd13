//! Slices, skips and single rows of fast-forward: requests, KiB and rows a second, beside what was published of the same work.

use serde_json::Value;

use super::super::chart::{Axis, Chart, Form, Line};
use super::super::published::{self, NEIGHBOURS, SKIPS, SLICES};
use super::grouped;

/// What is drawn of each case: its column, and the unit of that.
type Measure = (&'static str, &'static str);

/// Charts of a group have these, one each.
const MEASURES: [Measure; 3] = [("aio", "requests"), ("(KiB)", "KiB"), ("frag/s", "rows a second")];

/// The group of which slices were published.
const OF_SLICES: &str = "large-partition-slicing-clustering-keys";

/// The published ways of finding rows, with how they are named here.
const SEARCHES: [(&str, &str); 2] = [("scan", "scan"), ("search", "binary search")];

/// The charts of a group, which may be the first of its run; none for one whose cases are none of these.
pub(super) fn charts(group: &Value, is_first: bool) -> Vec<Chart> {
    let Some(cases) = group["cases"].as_array() else { return Vec::new() };
    // What goes on with what the case before has left is another thing, and sequences of ranges are too many for bars.
    let cases: Vec<&Value> = cases.iter().filter(|case| case["case"] != "").collect();
    if cases.is_empty() {
        return Vec::new();
    }
    let has = |column: &str| cases.iter().all(|case| case[column].is_number());
    let is_of_ranges = cases.iter().any(|case| case["range"].is_string());
    let group = Group { group, cases: &cases, is_first };
    let charts = MEASURES.iter().map(|measure| {
        if has("offset") && has("read") {
            Some(group.slices(measure))
        } else if has("read") && has("skip") {
            Some(group.skips(measure))
        } else if has("stride") && has("rows") {
            Some(group.few(measure))
        } else if !is_of_ranges && cases.iter().all(|case| labels(case).is_some()) {
            Some(group.named(measure))
        } else {
            None
        }
    });
    // Results of before may not have all columns.
    let has_points =
        |chart: &Chart| chart.lines.iter().any(|line| !line.is_published && !line.points.is_empty());
    charts.flatten().filter(has_points).collect()
}

struct Group<'a> {
    group: &'a Value,
    cases: &'a [&'a Value],
    /// Whether nothing was read before it.
    is_first: bool,
}

impl Group<'_> {
    /// A line for each offset, by the rows that are read.
    fn slices(&self, measure: &Measure) -> Chart {
        let mut lines = self.lines("offset", "read", measure.0);
        if self.group["group"] == OF_SLICES {
            lines.extend(self.published(&lines, SLICES, "offset", "read", measure.0));
        }
        self.chart(measure, Axis::log("rows that are read"), lines)
    }

    /// A line for each number of rows that are read, by those that are skipped.
    fn skips(&self, measure: &Measure) -> Chart {
        let mut lines = self.lines("read", "skip", measure.0);
        lines.extend(self.published(&lines, SKIPS, "read", "skip", measure.0));
        let chart = self.chart(measure, Axis::log("rows that are skipped"), lines);
        Chart {
            note: format!("{} On the left edge is that of all rows, none of which is skipped.", chart.note),
            ..chart
        }
    }

    /// Bars, a group for each case.
    fn few(&self, &(column, unit): &Measure) -> Chart {
        let name = |case: &Value| format!("stride {}, rows {}", told(&case["stride"]), told(&case["rows"]));
        let mut lines = vec![super::ours("here", 0, self.points(|case| case[column].as_f64()))];
        for change in ["before", "after"].into_iter().filter(|_| self.has_neighbours()) {
            let value = |case: &Value| neighbour(case)?[change][column].as_f64();
            lines.push(super::published(change, 0, self.points(value)));
        }
        self.bars(&(column, unit), name, lines)
    }

    /// Bars, one for each case, which has a name.
    fn named(&self, measure: &Measure) -> Chart {
        let lines = vec![super::ours("here", 0, self.points(|case| case[measure.0].as_f64()))];
        self.bars(measure, |case| labels(case).unwrap_or_default(), lines)
    }

    fn bars(&self, measure: &Measure, name: impl Fn(&Value) -> String, lines: Vec<Line>) -> Chart {
        let names = self.cases.iter().copied().map(name).collect();
        let chart = self.chart(measure, Axis::default(), lines);
        Chart::bars(chart.title, names, measure.1, chart.lines, chart.note)
    }

    /// A point for each case that has a value, by its place.
    fn points(&self, of: impl Fn(&Value) -> Option<f64>) -> Vec<(f64, f64)> {
        let points = (0..).zip(self.cases).map(|(at, case)| Some((f64::from(at), of(case)?)));
        points.flatten().collect()
    }

    fn chart(&self, &(_, unit): &Measure, x: Axis, lines: Vec<Line>) -> Chart {
        let name = self.group["group"].as_str().unwrap_or_default();
        let others = lines.iter().any(|line| line.is_published) && unit == "rows a second";
        Chart {
            title: format!("{name}: {unit}"),
            form: Form::Lines,
            x,
            y: Axis::log(unit),
            lines,
            note: format!(
                "{}.{}{}{}",
                self.settings(),
                self.temperature(),
                super::reading(self.group),
                if others { " What is published is of another machine." } else { "" },
            ),
        }
    }

    /// A line for each value of a column.
    fn lines(&self, by: &str, x: &str, y: &str) -> Vec<Line> {
        let point = |case: &Value| case[y].as_f64();
        let lines = (0..).zip(by_value(self.cases.iter().copied(), by, x, point));
        lines.map(|(color, (name, points))| super::ours(&name, color, points)).collect()
    }

    /// Such lines of the published tables, where they are of the same rows; of small partitions nothing was published.
    fn published(&self, ours: &[Line], table: &str, by: &str, x: &str, y: &str) -> Vec<Line> {
        let made_of = &self.group["made_of"];
        let is_same = |line: &&Value| ["rows", "value_size"].iter().all(|of| line[of] == made_of[of]);
        let lines = || published::lines(table).iter().filter(|_| self.is_as_published()).filter(is_same);
        let of_search = |(search, how)| {
            let of_values = by_value(lines(), by, x, |line| line[search][y].as_f64()).into_iter();
            of_values.map(move |(name, points)| {
                let of_ours = ours.iter().find(|line| line.name == name);
                let color = of_ours.map_or(ours.len(), |line| line.color);
                super::published(&format!("{name}, {how}"), color, points)
            })
        };
        SEARCHES.into_iter().flat_map(of_search).collect()
    }

    /// What the caches have when a case begins. What the operating system has in its own is told apart.
    fn temperature(&self) -> &'static str {
        if self.keeps("cases") {
            " With what the case before has left in the caches."
        } else if self.keeps("groups") {
            " The first case begins with what the group before it, if there is one, has left in the caches, the others with empty ones."
        } else if self.is_cold() {
            " Cold."
        } else {
            ""
        }
    }

    /// Whether each case begins with empty caches, and nothing that it reads is in those of the operating system.
    fn is_cold(&self) -> bool {
        !self.keeps("cases") && !self.keeps("groups") && !super::is_buffered(self.group)
    }

    /// Whether what was read is kept across test cases or groups.
    fn keeps(&self, across: &str) -> bool {
        self.group[format!("keep_cache_across_test_{across}")] == true
    }

    /// Whether it was read as others have published it: a large partition, not compressed, in blocks of 64 KiB, without a row cache,
    /// past the page cache, each case with empty caches.
    fn is_as_published(&self) -> bool {
        let (group, made_of) = (self.group, &self.group["made_of"]);
        let of_large_partition =
            group["group"].as_str().is_some_and(|name| name.starts_with("large-partition"));
        of_large_partition
            && made_of["compression"] != true
            && made_of["column_index_size_in_kb"].as_u64().is_none_or(|size| size == 64)
            && group["row_cache"] != true
            && self.is_cold()
    }

    /// What its rows were made of, and how they were read.
    fn settings(&self) -> String {
        let made_of = &self.group["made_of"];
        let parts = [
            format!("{} rows of {} bytes", told(&made_of["rows"]), made_of["value_size"]),
            made_of["column_index_size_in_kb"]
                .as_u64()
                .map(|size| format!("blocks of {size} KiB"))
                .unwrap_or_default(),
            made_of["sstable_format"].as_str().unwrap_or_default().to_owned(),
            if made_of["compression"] == true { "compressed" } else { "" }.to_owned(),
            self.fences(),
            format!("{} search", self.group["index_search"].as_str().unwrap_or("binary")),
            if self.group["row_cache"] == true { "through the row cache" } else { "" }.to_owned(),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// Whether reads went by fences; where they could not, why.
    fn fences(&self) -> String {
        match &self.group["fences"] {
            Value::Bool(true) => "fences".to_owned(),
            Value::String(why) => format!("fences: {why}"),
            _ => "no fences".to_owned(),
        }
    }

    /// Whether the neighbours of which something was published are among the rows that are there, and were read as they were: one after the
    /// other, from caches that were empty before. What is read again, or behind another group, finds more in them.
    fn has_neighbours(&self) -> bool {
        let (made_of, of_others) = (&self.group["made_of"], &published::lines(NEIGHBOURS)[0]);
        let mut neighbours = self.cases.iter().filter(|case| neighbour(case).is_some());
        self.group["group"] == "large-partition-select-few-rows"
            && ["rows", "column_index_size_in_kb"].iter().all(|of| made_of[of] == of_others[of])
            && made_of["compression"] != true
            && self.group["row_cache"] != true
            && !super::is_buffered(self.group)
            && self.keeps("cases")
            && self.is_first
            && neighbours.all(|case| case["iterations"] == 1)
    }
}

/// The published line of a row by itself, if there is one.
fn neighbour(case: &Value) -> Option<&'static Value> {
    let is_of = |line: &&Value| line["stride"] == case["stride"] && case["rows"] == 1;
    published::lines(NEIGHBOURS).iter().find(is_of)
}

/// What tells a case from the others, where that is text; of several the first one without its name.
fn labels(case: &Value) -> Option<String> {
    let labels = case.as_object()?.iter().filter_map(|(name, label)| Some((name, label.as_str()?)));
    let labels: Vec<(&String, &str)> = labels.collect();
    let named = |(name, label): &(&String, &str)| format!("{name} {label}");
    match &labels[..] {
        [] => None,
        [one] => Some(named(one)),
        [(_, first), others @ ..] => {
            Some(others.iter().fold((*first).to_owned(), |text, other| text + ", " + &named(other)))
        }
    }
}

fn told(number: &Value) -> String {
    number.as_u64().map_or_else(|| number.to_string(), grouped)
}

/// Points by the value of a column, in the order in which its values come; each line's from left to right, one at each place. Of several it is
/// the first: with a row cache, skips are read again behind all others, before the scans that go on with what they have left.
fn by_value<'a>(
    cases: impl Iterator<Item = &'a Value>,
    by: &str,
    x: &str,
    y: impl Fn(&Value) -> Option<f64>,
) -> Vec<(String, Vec<(f64, f64)>)> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for case in cases {
        let name = format!("{by} {}", told(&case[by]));
        let (Some(x), Some(y)) = (case[x].as_f64(), y(case)) else { continue };
        match lines.iter_mut().find(|(other, _)| *other == name) {
            Some((_, points)) if points.iter().any(|point| point.0 == x) => {}
            Some((_, points)) => points.push((x, y)),
            None => lines.push((name, vec![(x, y)])),
        }
    }
    for (_, points) in &mut lines {
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn group(name: &str, made_of: &Value, is_kept: bool, case: &Value) -> Vec<Chart> {
        let cases = [case];
        of_first(&json!({ "group": name, "made_of": made_of, "fences": true, "index_search": "binary",
            "keep_cache_across_test_cases": is_kept, "cases": cases }))
    }

    fn of_first(group: &Value) -> Vec<Chart> {
        charts(group, true)
    }

    fn names(chart: &Chart) -> Vec<&str> {
        chart.lines.iter().map(|line| line.name.as_str()).collect()
    }

    #[test]
    fn cases_that_go_on_are_not_drawn() {
        let case = |begins: &str, skip: u64| json!({ "case": begins, "read": 1, "skip": skip, "aio": 2, "(KiB)": 73.0, "frag/s": 9 });
        let made_of = json!({ "rows": 1000, "value_size": 100 });
        let group = json!({ "group": "large-partition-skips", "made_of": made_of, "row_cache": true,
            "cases": [case("->", 1), case("", 0)] });
        assert_eq!(of_first(&group)[0].lines[0].points, [(1.0, 2.0)]);
        let ranges =
            json!([{ "case": "->", "range": "[0, 1]", "known": "no", "aio": 2, "(KiB)": 73.0, "frag/s": 9 }]);
        assert!(
            of_first(
                &json!({ "group": "large-partition-single-key-slice", "made_of": made_of, "cases": ranges })
            )
            .is_empty()
        );
    }

    /// With a row cache some skips are read again, before the scans that go on.
    #[test]
    fn a_line_has_one_point_at_each_place() {
        let case = |begins: &str, read: u64, skip: u64, aio: u64| json!({ "case": begins, "read": read, "skip": skip, "aio": aio, "(KiB)": 73.0, "frag/s": 9 });
        let cases =
            [(1, 0, 9), (1, 1, 8), (1, 64, 7), (64, 64, 5), (64, 1, 6), (1, 1, 1), (1, 64, 2), (64, 1, 3)];
        let cases = cases.map(|(read, skip, aio)| case("->", read, skip, aio));
        let group =
            json!({ "group": "small-partition-skips", "made_of": {}, "row_cache": true, "cases": cases });
        let lines = of_first(&group)[0].lines.clone();
        assert_eq!(lines[0].points, [(0.0, 9.0), (1.0, 8.0), (64.0, 7.0)]);
        assert_eq!(lines[1].points, [(1.0, 6.0), (64.0, 5.0)]);
    }

    #[test]
    fn what_is_not_cold_is_not_said_to_be() {
        let case = json!({ "offset": 0, "read": 32, "aio": 2, "(KiB)": 73.0, "frag/s": 9000 });
        let made_of = json!({ "rows": 400, "value_size": 200 });
        let drawn = |settings: Value| {
            let mut group = json!({ "group": OF_SLICES, "made_of": made_of, "cases": [case] });
            group.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
            let chart = of_first(&group).remove(2);
            (chart.lines.len(), chart.note)
        };
        let (lines, note) = drawn(json!({ "direct_io": true, "io_uring": true }));
        assert!(lines == 5 && note.contains("search. Cold. What is published"), "{note}");
        let (lines, note) = drawn(json!({ "keep_cache_across_test_groups": true }));
        assert!(
            lines == 1 && note.contains("The first case begins with") && !note.contains("Cold"),
            "{note}"
        );
        let (lines, note) = drawn(json!({ "direct_io": false, "io_uring": false }));
        assert!(
            lines == 1 && note.contains("search. Read through the page cache of the operating system: not"),
            "{note}"
        );
        assert!(note.ends_with("without io_uring."), "{note}");
    }

    #[test]
    fn cases_that_are_told_by_text_are_bars() {
        let case = json!({ "pk-scan": "yes", "aio": 2, "(KiB)": 73.0, "frag/s": 9000 });
        let made_of = json!({ "rows": 1000, "value_size": 100 });
        let charts = group("large-partition-forwarding", &made_of, false, &case);
        assert_eq!((charts.len(), &charts[0].x.names[..]), (3, &["pk-scan yes".to_owned()][..]));
        assert_eq!(charts[1].lines[0].points, [(0.0, 73.0)]);
    }

    #[test]
    fn slices_stand_beside_those_of_the_same_rows() {
        let case = json!({ "offset": 0, "read": 32, "aio": 2, "(KiB)": 73.0, "frag/s": 9000 });
        let made_of = |rows: u64, value_size: u64| json!({ "rows": rows, "value_size": value_size });
        let of = |rows, value_size, is_kept| group(OF_SLICES, &made_of(rows, value_size), is_kept, &case);
        let charts = of(10_000_000, 2000, false);
        assert_eq!(charts.len(), 3);
        assert_eq!(charts[1].lines[0].points, [(32.0, 73.0)]);
        assert_eq!(names(&charts[0])[..2], ["offset 0", "published, offset 0, scan"]);
        assert_eq!(charts[0].lines[4].points[0], (1.0, 21.0));
        let colors: Vec<usize> = charts[0].lines.iter().map(|line| line.color).collect();
        assert_eq!(colors, [0, 0, 1, 0, 1], "each has that of what it stands beside");
        assert_eq!(charts[2].lines[4].points[3], (4096.0, 239_324.0));
        assert!(
            charts[2].note.ends_with("another machine.")
                && charts[0].note.contains("10,000,000 rows of 2000")
        );
        assert_eq!(of(400, 200, false)[0].lines.len(), 1 + 4);
        assert_eq!(of(400, 2000, false)[0].lines.len(), 1);
        assert_eq!(of(10_000_000, 2000, true)[0].lines.len(), 1, "the published ones were cold");
    }

    /// Nothing was published of compressed rows, of other blocks, or of reads through the row cache.
    #[test]
    fn other_work_stands_by_itself() {
        let case = json!({ "offset": 0, "read": 32, "aio": 2, "(KiB)": 73.0, "frag/s": 9000 });
        let drawn = |name: &str, value: Value, row_cache: bool| {
            let mut made_of = json!({ "rows": 400, "value_size": 200, "column_index_size_in_kb": 64, "compression": false });
            made_of[name] = value;
            let group =
                json!({ "group": OF_SLICES, "made_of": made_of, "row_cache": row_cache, "cases": [case] });
            of_first(&group)[0].clone()
        };
        assert_eq!(drawn("rows", json!(400), false).lines.len(), 5);
        let compressed = drawn("compression", json!(true), false);
        assert_eq!(compressed.lines.len(), 1);
        assert!(compressed.note.contains("blocks of 64 KiB, compressed, no fences"), "{}", compressed.note);
        assert_eq!(drawn("column_index_size_in_kb", json!(4), false).lines.len(), 1);
        let cached = drawn("rows", json!(400), true);
        assert!(cached.lines.len() == 1 && cached.note.contains("through the row cache"), "{}", cached.note);
    }

    #[test]
    fn skips_stand_beside_the_published_point() {
        let case = json!({ "read": 1, "skip": 1, "aio": 78_308, "(KiB)": 1.0, "frag/s": 2 });
        let made_of = json!({ "rows": 10_000_000, "value_size": 2000 });
        let charts = group("large-partition-skips", &made_of, false, &case);
        assert_eq!(charts[0].lines[2].points, [(1.0, 155_651.0)]);
        assert!(charts[0].note.contains("left edge"), "{}", charts[0].note);
        assert_eq!(group("small-partition-skips", &made_of, false, &case)[0].lines.len(), 1);
    }

    #[test]
    fn neighbours_stand_beside_the_published_ones() {
        let mut case =
            json!({ "stride": 500_001, "rows": 1, "aio": 1, "(KiB)": 1.5, "frag/s": 2, "iterations": 1 });
        let made_of = json!({ "rows": 1_000_000, "value_size": 200, "column_index_size_in_kb": 1 });
        let drawn = group("large-partition-select-few-rows", &made_of, true, &case);
        assert_eq!(names(&drawn[1]), ["here", "published, before", "published, after"]);
        assert_eq!(drawn[1].lines[1].points, [(0.0, 64.0)]);
        assert_eq!(
            (drawn[1].form, &drawn[1].x.names),
            (Form::Bars, &vec!["stride 500,001, rows 1".to_owned()])
        );
        assert_eq!(group("large-partition-select-few-rows", &made_of, false, &case)[0].lines.len(), 1);
        let mut later = json!({ "group": "large-partition-select-few-rows", "made_of": made_of, "cases": [case],
            "keep_cache_across_test_cases": true });
        assert_eq!(charts(&later, true)[0].lines.len(), 3);
        assert_eq!(
            charts(&later, false)[0].lines.len(),
            1,
            "the group before has left something in the caches"
        );
        later["cases"][0]["iterations"] = json!(2);
        assert_eq!(of_first(&later)[0].lines.len(), 1, "the second time it is warm");
        (case["stride"], case["iterations"]) = (json!(2), json!(2));
        later["cases"] = json!([later["cases"][0], case]);
        later["cases"][0]["iterations"] = json!(1);
        assert_eq!(of_first(&later)[0].lines.len(), 3, "others may be read again");
    }

    #[test]
    fn fences_are_told_as_they_were_found() {
        let case = json!({ "offset": 0, "read": 32, "aio": 2, "(KiB)": 73.0, "frag/s": 9000 });
        for (fences, told) in [
            (json!(true), "200 bytes, fences, binary"),
            (json!(false), "200 bytes, no fences, binary"),
            (json!("none"), "200 bytes, fences: none, binary"),
        ] {
            let made_of = json!({ "rows": 400, "value_size": 200 });
            let group = json!({ "group": OF_SLICES, "made_of": made_of, "fences": fences, "cases": [case] });
            let note = &of_first(&group)[0].note;
            assert!(note.contains(told), "{note}");
        }
    }

    #[test]
    fn nothing_read_is_drawn_too() {
        let case = json!({ "pk-scan": "no", "aio": 0, "(KiB)": 0.0, "frag/s": 9000 });
        let charts = group("large-partition-forwarding", &json!({}), false, &case);
        assert_eq!((charts.len(), &charts[0].lines[0].points[..]), (3, &[(0.0, 0.0)][..]));
    }

    #[test]
    fn other_cases_are_not_drawn() {
        assert!(
            group("large-partition-forwarding", &json!({}), false, &json!({ "pk-scan": "no" })).is_empty()
        );
        assert!(of_first(&json!(5)).is_empty());
    }
}
