//! Tables of pairs, one for each rule; each is tried both ways round.

use super::*;
use crate::time::{EXPIRED_LIVENESS_TTL, NO_TIMESTAMP};
use crate::types::counter::{CounterContext, Shard, ShardKind};
use crate::{Bytes, Clustering};

const SIMPLE: u16 = 0;
const MAP: u16 = 1;

fn schema() -> Rc<Schema> {
    let column = |name: &str, data_type: CqlType| Column { name: name.as_bytes().into(), data_type };
    let regulars =
        vec![column("a", CqlType::Blob), column("m", CqlType::map(CqlType::Int, CqlType::Blob, false))];
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![column("s", CqlType::Blob)], regulars))
}

fn value(timestamp: i64, bytes: &[u8]) -> Cell {
    Cell {
        column: SIMPLE,
        ttl: 0,
        timestamp,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value: CellValue::Value(Bytes::from(bytes)),
    }
}

fn tombstone(timestamp: i64, local_deletion_time: i64) -> Cell {
    Cell { local_deletion_time, value: CellValue::Tombstone, ..value(timestamp, b"") }
}

fn expiring(timestamp: i64, ttl: u32, local_deletion_time: i64, bytes: &[u8]) -> Cell {
    Cell { ttl, local_deletion_time, ..value(timestamp, bytes) }
}

fn element(key: i32, timestamp: i64) -> Cell {
    Cell { column: MAP, path: Some(Bytes::from(key.to_be_bytes().to_vec())), ..value(timestamp, b"e") }
}

fn deletion(at: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: at, local_deletion_time: at }
}

fn marker(timestamp: i64) -> Liveness {
    Liveness { timestamp, ..Liveness::NONE }
}

fn row(cells: Vec<Cell>) -> Row {
    Row { cells, ..Row::new(Clustering::empty()) }
}

/// The winner, which must not depend on which cell is the first.
fn winner(a: &Cell, b: &Cell, of_counter: bool) -> Cell {
    let merged = |a: &Cell, b: &Cell| {
        let mut cell = a.clone();
        reconcile(&mut cell, b.clone(), of_counter);
        cell
    };
    assert_eq!(merged(a, b), merged(b, a), "{a:?} {b:?}");
    merged(a, b)
}

/// The merge, which must not depend on the order of the rows.
fn merged(rows: &[Row], active: DeletionTime) -> Option<Row> {
    let mut merger = RowMerger::new(schema());
    let merge = |merger: &mut RowMerger, rows: &mut Vec<Row>| merger.merge(rows, false, active);
    let result = merge(&mut merger, &mut rows.to_vec());
    let mut reversed: Vec<Row> = rows.iter().rev().cloned().collect();
    assert_eq!(result, merge(&mut merger, &mut reversed));
    assert!(reversed.is_empty());
    result
}

#[test]
fn each_rule_for_two_cells() {
    let winner_first = [
        // The timestamp, whatever else they are.
        (value(2, b"a"), value(1, b"b")),
        (value(2, b"a"), tombstone(1, 100)),
        (value(2, b"a"), expiring(1, 10, 100, b"b")),
        (tombstone(2, 1), expiring(1, 10, 100, b"b")),
        (value(-1, b"a"), value(i64::MIN, b"b")),
        // 1. What dies over what does not.
        (tombstone(1, 0), value(1, b"z")),
        (expiring(1, 10, 100, b"a"), value(1, b"z")),
        // 2. A tombstone over an expiring cell, however late that one expires.
        (tombstone(1, 1), expiring(1, 10, 100, b"z")),
        // 3. The later local deletion time, whatever TTL and value are.
        (tombstone(1, 2), tombstone(1, 1)),
        (expiring(1, 90, 101, b"a"), expiring(1, 10, 100, b"z")),
        // 4. The smaller TTL, whatever the value is.
        (expiring(1, 10, 100, b"a"), expiring(1, 11, 100, b"z")),
        // 5. The greater value, by unsigned bytes.
        (expiring(1, 10, 100, b"b"), expiring(1, 10, 100, b"a")),
        (value(1, b"b"), value(1, b"a")),
        (value(1, b"\x80"), value(1, b"\x7f\xff")),
        (value(1, b"aa"), value(1, b"a")),
        (value(1, b"a"), value(1, b"")),
        // A cell without value or TTL that has a local deletion time counts as a tombstone.
        (Cell { local_deletion_time: 5, ..value(1, b"") }, expiring(1, 10, 100, b"z")),
    ];
    for (expected, other) in &winner_first {
        assert_eq!(winner(expected, other, false), *expected);
        assert_eq!(winner(expected, expected, false), *expected);
    }
}

fn context(id: u8, clock: i64) -> Vec<u8> {
    let shard = Shard { id: [id; 16], clock, count: clock, kind: ShardKind::Global };
    super::counter::encode(&[shard]).unwrap().to_vec()
}

#[test]
fn counters_are_added_up_and_lose_to_tombstones() {
    let (one, two) = (value(1, &context(1, 5)), value(9, &context(2, 7)));
    let sum = winner(&one, &two, true);
    assert_eq!(sum.timestamp, 9);
    assert_eq!(CounterContext::parse(value_of(&sum)).unwrap().total(), 12);
    // The larger context stays, the later timestamp too.
    assert_eq!(winner(&value(1, &context(1, 6)), &value(3, &context(1, 5)), true), value(3, &context(1, 6)));
    // A tombstone wins whatever its timestamp is; two follow the common rules.
    assert_eq!(winner(&one, &tombstone(0, 1), true), tombstone(0, 1));
    assert_eq!(winner(&tombstone(2, 1), &tombstone(1, 9), true), tombstone(2, 1));
    // A skipped value stays skipped.
    assert_eq!(winner(&one, &value(0, b""), true), value(0, b""));
    assert_eq!(winner(&value(2, b""), &value(0, b""), true), value(2, b""));
    // What is no context does not panic.
    assert_eq!(winner(&value(1, b"\0\x01"), &one, true), one);
}

#[test]
fn each_rule_for_two_markers() {
    let expiring = |timestamp, ttl, local_expiration_time| Liveness { timestamp, ttl, local_expiration_time };
    let winner_first = [
        (marker(2), marker(1)),
        (marker(2), expiring(1, 10, 100)),
        (marker(1), Liveness::NONE),
        (expiring(1, EXPIRED_LIVENESS_TTL, 1), marker(1)),
        (expiring(1, EXPIRED_LIVENESS_TTL, 1), expiring(1, 10, 100)),
        (expiring(1, EXPIRED_LIVENESS_TTL, 2), expiring(1, EXPIRED_LIVENESS_TTL, 1)),
        (expiring(1, 10, 100), marker(1)),
        (expiring(1, 20, 101), expiring(1, 10, 100)),
        (expiring(1, 10, 100), expiring(1, 20, 100)),
    ];
    for (winner, loser) in &winner_first {
        assert!(winner.supersedes(loser) && !loser.supersedes(winner), "{winner:?} {loser:?}");
        assert!(!winner.supersedes(winner));
        let rows = [winner, loser].map(|liveness| Row { liveness: *liveness, ..row(Vec::new()) });
        assert_eq!(merged(&rows, DeletionTime::LIVE).unwrap().liveness, *winner);
    }
}

#[test]
fn cells_of_all_versions_are_in_order() {
    let rows = [
        row(vec![value(1, b"old"), element(-1, 1), element(5, 1)]),
        row(vec![element(-7, 1), element(-1, 3), element(7, 1)]),
        row(vec![value(2, b"new"), element(3, 1), element(5, 0)]),
    ];
    let cells = merged(&rows, DeletionTime::LIVE).unwrap().cells;
    let expected =
        [value(2, b"new"), element(-7, 1), element(-1, 3), element(3, 1), element(5, 1), element(7, 1)];
    assert_eq!(cells, expected);
}

#[test]
fn many_versions_are_merged_as_one_after_the_other() {
    let cell = |number: i64| match number % 7 {
        0 => tombstone(number % 13, 5),
        1 => expiring(number % 11, 60, 70 + number % 3, &[number as u8]),
        2 => value(number % 17, &[number as u8]),
        _ => element((number * 31 % 29) as i32, number % 19),
    };
    for count in [2, 9, 10, 37, 100] {
        let rows: Vec<Row> = (0..count).map(|number| row(vec![cell(number)])).collect();
        let next = |before: Option<Row>, row: &Row| {
            merged(&before.into_iter().chain([row.clone()]).collect::<Vec<_>>(), DeletionTime::LIVE)
        };
        assert_eq!(merged(&rows, DeletionTime::LIVE), rows.iter().fold(None, next), "{count}");
    }
}

#[test]
fn a_deletion_in_force_removes_what_it_covers() {
    let full = Row {
        liveness: marker(5),
        deletion: deletion(4),
        complex_deletions: vec![(MAP, deletion(6))],
        cells: vec![value(6, b"a"), element(1, 7), element(2, 6)],
        ..row(Vec::new())
    };
    let at = |active| merged(std::slice::from_ref(&full), deletion(active));
    // The collection's own deletion covers one of its elements.
    let kept = Row { cells: vec![value(6, b"a"), element(1, 7)], ..full.clone() };
    assert_eq!(at(3), Some(kept.clone()));
    // An equal deletion in force covers the row's.
    let kept = Row { deletion: DeletionTime::LIVE, ..kept };
    assert_eq!(at(4), Some(kept.clone()));
    let kept = Row { liveness: Liveness::NONE, ..kept };
    assert_eq!(at(5), Some(kept));
    assert_eq!(at(6), Some(row(vec![element(1, 7)])));
    assert_eq!(at(7), None);
}

#[test]
fn the_greatest_row_deletion_covers_other_versions() {
    let deleted = Row { deletion: deletion(5), ..row(vec![value(6, b"a")]) };
    let older =
        Row { liveness: marker(5), deletion: deletion(2), ..row(vec![value(4, b"b"), element(1, 6)]) };
    let expected = Row { deletion: deletion(5), ..row(vec![value(6, b"a"), element(1, 6)]) };
    assert_eq!(merged(&[deleted, older], DeletionTime::LIVE), Some(expected));
}

#[test]
fn complex_deletions_stay_where_they_delete_more_than_the_row() {
    let with = |at| Row { complex_deletions: vec![(MAP, deletion(at))], ..row(Vec::new()) };
    let merged_one = |rows: &[Row]| merged(rows, DeletionTime::LIVE).map(|row| row.complex_deletions);
    assert_eq!(merged_one(&[with(3), with(5)]), Some(vec![(MAP, deletion(5))]));
    let deleted = Row { deletion: deletion(5), ..row(Vec::new()) };
    assert_eq!(merged_one(&[with(5), deleted.clone()]), Some(Vec::new()));
    assert_eq!(merged_one(&[with(6), deleted]), Some(vec![(MAP, deletion(6))]));
}

#[test]
fn tombstones_and_expired_cells_stay() {
    let cells = vec![tombstone(1, 1), Cell { value: CellValue::Tombstone, ..element(1, 2) }];
    let rows = [row(cells.clone()), row(vec![element(1, 1)])];
    assert_eq!(merged(&rows, DeletionTime::LIVE), Some(row(cells)));
    let expired = expiring(1, 1, 1, b"a");
    assert_eq!(
        merged(&[row(vec![expired.clone()]), row(vec![value(1, b"b")])], DeletionTime::LIVE),
        Some(row(vec![expired]))
    );
}

#[test]
fn a_newer_marker_lifts_a_shadowable_deletion() {
    let shadowable = |at| Row { shadowable: deletion(at), ..row(Vec::new()) };
    let with_marker = |at| Row { liveness: marker(at), ..row(vec![value(3, b"a")]) };
    // The marker is newer: even the older cell is there again.
    assert_eq!(merged(&[shadowable(5), with_marker(6)], DeletionTime::LIVE), Some(with_marker(6)));
    // It is not: all of it is deleted.
    assert_eq!(merged(&[shadowable(5), with_marker(5)], DeletionTime::LIVE), Some(shadowable(5)));
    let no_marker = Row { liveness: marker(NO_TIMESTAMP), ..with_marker(0) };
    assert_eq!(merged(&[shadowable(5), no_marker], DeletionTime::LIVE), Some(shadowable(5)));
    // A lasting deletion beside it is not lifted, be it equal or smaller.
    let lasting = Row { deletion: deletion(5), ..row(Vec::new()) };
    let expected = Row { liveness: marker(6), deletion: deletion(5), ..row(Vec::new()) };
    let greater = [shadowable(7), lasting.clone(), with_marker(8)];
    assert_eq!(merged(&greater, DeletionTime::LIVE), Some(Row { liveness: marker(8), ..expected.clone() }));
    assert_eq!(merged(&[shadowable(5), lasting, with_marker(6)], DeletionTime::LIVE), Some(expected));
}

#[test]
fn static_cells_follow_the_static_columns() {
    let mut merger = RowMerger::new(schema());
    let rows = &mut vec![row(vec![value(1, b"a")]), row(vec![value(2, b"b")])];
    assert_eq!(merger.merge(rows, true, DeletionTime::LIVE), Some(row(vec![value(2, b"b")])));
    assert_eq!(merger.merge(&mut Vec::new(), true, DeletionTime::LIVE), None);
}
