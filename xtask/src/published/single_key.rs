//! Rows of several SSTables, newest first or all at once: latencies by the program that was published, and here.

use serde_json::Value;

use super::{Bench, Part};
use crate::Result;
use crate::pages::{grouped, table};

/// The places on the page.
pub(super) const PARTS: &[&str] = &["ratios", "milliseconds"];

/// Reads a second of the published runs.
const PUBLISHED_RATE: u32 = 4000;

/// A case, and how the page calls it.
const CASES: [(&str, &str); 7] = [
    ("off", "off, 3 of 3 at once"),
    ("best", "best, 1 of 3 needed"),
    ("in", "best, IN of three rows"),
    ("mid", "mid, 2 of 3 needed"),
    ("worst", "worst, 3 of 3 needed"),
    (AT_FIRST, "worst, the first reads of a table"),
    ("worst-adapted", "worst, adapted"),
];

/// The case of tables that have not adapted, as the published program's never does: it is beside that one's worst.
const AT_FIRST: &str = "worst-at-first";

/// The latencies of a case.
const LATENCIES: [&str; 6] =
    ["mean", "median", "95th percentile", "99th percentile", "99.9th percentile", "max"];

/// Runs both, and says what the tables are.
pub(super) fn parts(bench: &Bench) -> Result<Vec<Part>> {
    let published = bench.lines("single key")?;
    let own = bench.perf("single-key --duration 20", None)?;
    let at_their_rate = bench.perf(&format!("single-key --duration 20 --rate {PUBLISHED_RATE}"), None)?;
    let rate = own["rate"].as_f64().ok_or("nothing was printed of the rate")?;
    let texts = [ratios(published, &own, rate, &at_their_rate), milliseconds(published, &own, rate)];
    Ok(PARTS.iter().copied().zip(texts).collect())
}

/// Latencies beside those of the first case.
fn ratios(published: &[Value], own: &Value, rate: f64, at_their_rate: &Value) -> String {
    let [here, there] =
        [rate, PUBLISHED_RATE.into()].map(|rate| format!("here, {}/s, mean", grouped(rate, 0)));
    let heads = [
        "case",
        "published, mean",
        "median",
        "95 %",
        &here,
        "median",
        "95 %",
        &there,
        "median",
        "95 %",
        "SSTables touched",
        "requests",
    ];
    let of_first = |latency: &str| published.first().and_then(|off| off["latency"][latency].as_f64());
    let line = |(case, name): (&str, &str)| {
        let of_published = |latency| {
            Some(find_published(published, case)?["latency"][latency].as_f64()? / of_first(latency)?)
        };
        let of_run =
            |run: &Value, latency| find(run["cases"].as_array()?, case)?["ratio_to_off"][latency].as_f64();
        let shown = |ratio: Option<f64>| ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let latencies = || LATENCIES[..3].iter();
        [name.to_owned()]
            .into_iter()
            .chain(latencies().map(|latency| shown(of_published(latency))))
            .chain(
                [own, at_their_rate]
                    .into_iter()
                    .flat_map(|run| latencies().map(move |latency| shown(of_run(run, latency)))),
            )
            .chain(["sstables", "requests"].map(|count| a_read(own, case, count)))
            .collect()
    };
    table(&heads, &CASES.into_iter().map(line).collect::<Vec<_>>()) + &sustained(own)
}

/// What was sustained, by which a rate of our own is chosen.
fn sustained(own: &Value) -> String {
    let rate = |case: &str| Some(grouped(own["sustained"][case].as_f64()?, 0));
    let told = rate("best").zip(rate("off")).map(|(one, all)| {
        format!("\nSustained were {one} reads a second where one SSTable is enough, and {all} where all are read at once.\n")
    });
    told.unwrap_or_default()
}

/// All latencies of a case in a cell.
fn milliseconds(published: &[Value], own: &Value, rate: f64) -> String {
    let latencies = |case: Option<&Value>, decimals: usize| {
        let latency = |of: &str| Some(format!("{:.decimals$}", case?["latency"][of].as_f64()?));
        let all: Option<Vec<String>> = LATENCIES.into_iter().map(latency).collect();
        all.map_or("–".to_owned(), |all| all.join(" / "))
    };
    let cases = own["cases"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |(case, name): (&str, &str)| {
        vec![name.to_owned(), latencies(find_published(published, case), 1), latencies(find(cases, case), 3)]
    };
    let [there, here] = [("published", PUBLISHED_RATE.into()), ("here", rate)]
        .map(|(who, rate)| format!("{who}, {}/s", grouped(rate, 0)));
    table(&["case", &there, &here], &CASES.into_iter().map(line).collect::<Vec<_>>())
}

/// How many of these a read took.
fn a_read(run: &Value, case: &str, of: &str) -> String {
    let count = run["cases"].as_array().and_then(|cases| {
        let case = find(cases, case)?;
        Some(case[of].as_f64()? / case["reads"].as_f64()?)
    });
    count.map_or("–".to_owned(), |count| grouped(count, 2))
}

fn find<'a>(cases: &'a [Value], name: &str) -> Option<&'a Value> {
    cases.iter().find(|case| case["case"] == name)
}

fn find_published<'a>(cases: &'a [Value], name: &str) -> Option<&'a Value> {
    find(cases, if name == AT_FIRST { "worst" } else { name })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::bench;
    use super::*;

    fn run() -> Value {
        let latencies = LATENCIES.map(|of| (of.to_owned(), json!(0.4215)));
        let latencies = Value::Object(latencies.into_iter().collect());
        let case = json!({ "case": "best", "latency": latencies, "ratio_to_off": latencies, "sstables": 30, "requests": 33, "reads": 30 });
        json!({ "sustained": { "best": 24_000.0, "off": 13_000.4 }, "cases": [case] })
    }

    #[test]
    fn ratios_stand_beside_the_published_ones() {
        let table = ratios(bench().lines("single key").unwrap(), &run(), 7495.4, &json!({ "cases": [] }));
        let lines: Vec<&str> = table.lines().collect();
        assert!(lines[0].contains("| here, 7,495/s, mean |"), "{table}");
        assert_eq!(
            lines[3],
            "| best, 1 of 3 needed | 0.46 | 0.60 | 0.42 | 0.42 | 0.42 | 0.42 | – | – | – | 1 | 1.1 |"
        );
        assert!(lines[7].starts_with("| worst, the first reads of a table | 2.15 | 2.30 | 2.25 | – |"));
        assert_eq!(lines[8].matches('–').count(), 3 + 3 + 3 + 2);
        assert!(
            lines[10].contains(" 24,000 reads a second ") && lines[10].contains(" 13,000 where all "),
            "{table}"
        );
    }

    #[test]
    fn latencies_stand_in_one_cell() {
        let table = milliseconds(bench().lines("single key").unwrap(), &run(), 7495.4);
        assert!(
            table.contains(
                "| 0.6 / 0.6 / 1.0 / 1.2 / 4.4 / 13.4 | 0.421 / 0.421 / 0.421 / 0.421 / 0.421 / 0.421 |"
            ),
            "{table}"
        );
        assert!(table.ends_with("| worst, adapted | – | – |\n"), "{table}");
    }
}
