//! Rows that come out of order, several times, or in several runs.

use std::path::Path;

use model::{Clustering, Column, CqlType, Position};

use super::*;
use crate::json_rows::JsonRows;

fn schema() -> Rc<Schema> {
    let column = |name: &str, data_type| Column { name: name.as_bytes().into(), data_type };
    let regulars = vec![column("v", CqlType::Int), column("w", CqlType::Int)];
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![column("s", CqlType::Int)], regulars))
}

fn pieces(lines: &[String]) -> Vec<Piece> {
    let mut rows = JsonRows::new(Path::new("rows"), schema(), None);
    lines.iter().map(|line| rows.parse_line(line).unwrap().unwrap()).collect()
}

fn table(lines: &[String]) -> SortedRows {
    let mut table = SortedRows::new(schema());
    pieces(lines).into_iter().for_each(|piece| table.insert(piece));
    table
}

fn drain(mut sorted: Sorted) -> Vec<Fragment> {
    let (mut fragments, mut fragment) = (Vec::new(), Fragment::default());
    while sorted.pop(&mut fragment).unwrap() == Next::Fragment {
        fragments.push(std::mem::take(&mut fragment));
    }
    fragments
}

/// The table as words: what `drain` gives, short.
fn words(fragments: &[Fragment]) -> Vec<String> {
    let number = |clustering: &Clustering| match clustering.values.first() {
        Some(Some(value)) => i32::from_be_bytes(value[..].try_into().unwrap()).to_string(),
        _ => "all".to_owned(),
    };
    let cells = |row: &Row| row.cells.iter().map(|cell| (cell.column, cell.timestamp)).collect::<Vec<_>>();
    let word = |fragment: &Fragment| match fragment {
        Fragment::PartitionStart(start) => format!("key {}", start.key.bytes[3]),
        Fragment::StaticRow(row) => format!("static {:?}", cells(row)),
        Fragment::Row(row) => format!("row {} {:?}", number(&row.clustering), cells(row)),
        Fragment::RangeTombstone(change) => {
            let at = number(&change.position.prefix);
            format!("{:?} {at}: {}", change.position.weight, change.deletion.marked_for_delete_at.max(0))
        }
        Fragment::PartitionEnd => "end".to_owned(),
    };
    fragments.iter().map(word).collect()
}

fn row(key: i32, clustering: i32, column: &str, timestamp: i64) -> String {
    format!(
        r#"{{"type":"row","key":["{key}"],"clustering":[{clustering}],"cells":[{{"name":"{column}","value":1,"tstamp":{timestamp}}}]}}"#
    )
}

fn bound(end: &str, clustering: i32, at: i64) -> String {
    format!(
        r#"{{"type":"range_tombstone_bound","key":["1"],"{end}":{{"type":"inclusive","clustering":[{clustering}],"deletion_info":{{"marked_deleted":{at}}}}}}}"#
    )
}

fn empty(key: i32) -> String {
    format!(r#"{{"type":"partition","key":["{key}"]}}"#)
}

#[test]
fn partitions_and_rows_come_in_order() {
    let lines = [
        row(2, 7, "v", 1),
        row(1, 9, "v", 1),
        row(1, -9, "v", 1),
        r#"{"type":"static_block","key":["1"],"cells":[{"name":"s","value":1,"tstamp":4}]}"#.to_owned(),
        empty(3),
    ];
    let fragments = drain(table(&lines).finish().unwrap());
    let mut validator = model::fragment::Validator::new(&schema());
    fragments.iter().for_each(|fragment| validator.check(fragment).unwrap());
    let words = words(&fragments);
    let expected = ["key 1", "static [(0, 4)]", "row -9 [(0, 1)]", "row 9 [(0, 1)]", "end"];
    assert!(words.windows(expected.len()).any(|words| words == expected), "{words:?}");
    assert!(words.windows(2).any(|words| words == ["key 3", "end"]), "{words:?}");
    assert_eq!(words.len(), 10);
}

#[test]
fn versions_of_a_row_are_merged() {
    let lines = [row(1, 1, "v", 5), row(1, 2, "v", 1), row(1, 1, "w", 3), row(1, 1, "v", 4)];
    let mut reversed = lines.clone();
    reversed.reverse();
    for lines in [lines, reversed] {
        let words = words(&drain(table(&lines).finish().unwrap()));
        assert_eq!(words, ["key 1", "row 1 [(0, 5), (1, 3)]", "row 2 [(0, 1)]", "end"]);
    }
}

#[test]
fn what_a_tombstone_deletes_stays() {
    let lines = [bound("start", 1, 9), row(1, 2, "v", 5), bound("end", 3, 9), row(1, 4, "v", 5)];
    let words = words(&drain(table(&lines).finish().unwrap()));
    assert_eq!(words, ["key 1", "Before 1: 9", "row 2 [(0, 5)]", "After 3: 0", "row 4 [(0, 5)]", "end"]);
}

#[test]
fn a_range_that_is_not_whole_waits_for_the_next_run() {
    let mut table = table(&[bound("start", 1, 9), row(1, 2, "v", 5)]);
    assert_eq!(words(&drain(table.take())), ["key 1", "row 2 [(0, 5)]", "end"]);
    assert!(!table.is_empty() && table.memory() > 0);
    assert_eq!(table.minima().timestamp, Some(9));
    pieces(&[bound("end", 3, 9)]).into_iter().for_each(|piece| table.insert(piece));
    assert_eq!(words(&drain(table.take())), ["key 1", "Before 1: 9", "After 3: 0", "end"]);
    assert!(table.is_empty());
    assert_eq!((table.memory(), table.minima()), (0, Minima::default()));
}

#[test]
fn a_range_that_is_never_whole_is_named_by_its_line() {
    let lines = [row(1, 2, "v", 5), bound("start", 1, 9), bound("end", 3, 8), bound("start", 2, 8)];
    assert_eq!(table(&lines).finish().unwrap_err(), Unpaired { line: 2 });
    assert_eq!(table(&lines[2..3]).finish().unwrap_err().line, 1);
}

#[test]
fn the_least_times_are_those_of_a_memtable() {
    let row = |liveness: &str, cells: &str| {
        format!(
            r#"{{"type":"row","key":["1"],"clustering":[1],"liveness_info":{{{liveness}}},"cells":[{cells}]}}"#
        )
    };
    let minima = |line: String| table(&[line]).minima();
    let plain = minima(row(r#""tstamp":50"#, ""));
    assert_eq!(plain, Minima { timestamp: Some(50), ..Minima::default() });
    let expiring = minima(row(
        r#""tstamp":50,"ttl":9,"expires_at":100"#,
        r#"{"name":"v","value":1,"ttl":0,"tstamp":40}"#,
    ));
    assert_eq!(expiring, Minima { timestamp: Some(40), local_deletion_time: Some(100), ttl: Some(9) });
    let deleted = minima(row(r#""tstamp":50"#, r#"{"name":"v","deletion_info":{"local_delete_time":7}}"#));
    assert_eq!(deleted, Minima { timestamp: Some(50), local_deletion_time: Some(7), ttl: None });
    assert_eq!(minima(bound("start", 1, 9)).timestamp, Some(9));
    assert_eq!(minima(empty(1)), Minima::default());
}

#[test]
fn whole_ranges_need_no_order() {
    let line = r#"{"type":"range_tombstone","key":["1"],"end":{"type":"exclusive","clustering":[5]},
        "deletion_info":{"marked_deleted":9}}"#;
    let fragments =
        drain(table(&[line.to_owned(), bound("end", 7, 8), bound("start", 5, 8)]).finish().unwrap());
    assert_eq!(words(&fragments), ["key 1", "Before all: 9", "Before 5: 8", "After 7: 0", "end"]);
    let at = |fragment: &Fragment| match fragment {
        Fragment::RangeTombstone(change) => Some(change.position.clone()),
        _ => None,
    };
    assert_eq!(at(&fragments[1]), Some(Position::start()));
}
