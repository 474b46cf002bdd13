//! Each rule by hand; then any stream, under any rules.

use proptest::prelude::*;

use super::*;
use crate::merge::Direction;
use crate::merge::tests::random::{any_stream, directions, schema as random_schema};
use crate::merge::tests::{
    END, LIVE, Script, after, before, cell, key, read_all, read_flat, schema, start, validate,
};
use crate::time::EXPIRED_LIVENESS_TTL;
use crate::{Clustering, LiveRows, Position, Schema};

const NOW: i64 = 1000;
const GRACE: u32 = 100;

fn rules() -> PurgeRules {
    PurgeRules::new(NOW, GRACE)
}

/// A deletion at a timestamp, made at a second.
fn deletion(at: i64, local: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: at, local_deletion_time: local }
}

/// Made so early that it may go.
fn old(at: i64) -> DeletionTime {
    deletion(at, 899)
}

/// Made so late that it may not.
fn young(at: i64) -> DeletionTime {
    deletion(at, 900)
}

fn purged_by(rules: PurgeRules, limit: Option<i64>, fragments: &[Fragment]) -> Vec<Fragment> {
    let purge = || Purge::new(Script::new(fragments.to_vec(), 0), rules, |_: &PartitionKey| limit);
    let left = read_all(&mut purge());
    assert_eq!(read_flat(&mut purge()).0, left);
    left
}

fn purged(limit: Option<i64>, fragments: &[Fragment]) -> Vec<Fragment> {
    let result = purged_by(rules(), limit, fragments);
    validate(&schema(), &result);
    result
}

/// What is left of a row, beside another one that keeps the partition.
fn left_of(limit: Option<i64>, row: Row) -> Option<Row> {
    let anchor = Row { cells: vec![cell(1)], ..Row::new(key(99)) };
    let mut all = purged(limit, &[start(1, LIVE), Fragment::Row(row), Fragment::Row(anchor), END]);
    match all.remove(1) {
        Fragment::Row(row) if all.len() == 3 => Some(row),
        _ => None,
    }
}

fn with_cell(cell: Cell) -> Row {
    Row { cells: vec![cell], ..Row::new(key(1)) }
}

fn tombstone(timestamp: i64, local: i64) -> Cell {
    Cell { value: CellValue::Tombstone, local_deletion_time: local, ..cell(timestamp) }
}

fn expiring(timestamp: i64, ttl: u32, expires: i64) -> Cell {
    Cell { ttl, local_deletion_time: expires, ..cell(timestamp) }
}

#[test]
fn rows_as_they_stand_are_judged_unless_they_are_usual() {
    let with = |at: i32, row: Row| Fragment::Row(Row { clustering: key(at), ..row });
    let live = Liveness { timestamp: 9, ..Liveness::NONE };
    let usual = |at| with(at, Row { liveness: live, ..with_cell(cell(9)) });
    let dead = |at| with(at, with_cell(tombstone(9, 100)));
    let expired = |at| with(at, Row { liveness: live, ..with_cell(expiring(9, 10, 905)) });
    let stream = [start(1, LIVE), usual(1), usual(2), expired(3), usual(4), dead(5), usual(6), END];
    let left = purged(None, &stream);
    assert_eq!(left.len(), stream.len() - 1);
    let mut purge = Purge::new(Script::new(stream.to_vec(), 0), rules(), |_: &PartitionKey| None);
    assert_eq!(
        read_flat(&mut purge),
        (left, 3),
        "the first row of a partition waits for its start to be given out"
    );
}

/// Live rows beside their deletion, which somebody wrote into one SSTable.
#[test]
fn usual_rows_do_not_survive_a_deletion_that_goes() {
    let usual = |at: i32, timestamp: i64| {
        let liveness = Liveness { timestamp, ..Liveness::NONE };
        Fragment::Row(Row { liveness, clustering: key(at), ..with_cell(cell(timestamp)) })
    };
    let rows = [usual(1, 30), usual(2, 9), usual(3, 9), usual(4, 30), usual(5, 30)];
    let left = [usual(1, 30), usual(4, 30), usual(5, 30)];
    let partition = [&[start(1, old(20))], &rows[..], &[END]].concat();
    assert_eq!(purged(None, &partition), [&[start(1, LIVE)], &left[..], &[END]].concat());
    let change =
        |position: Position, deletion| Fragment::RangeTombstone(RangeTombstoneChange { position, deletion });
    let range = [change(Position::before(key(2)), old(20)), change(Position::after(key(4)), LIVE)];
    let range = [
        &[start(1, LIVE), rows[0].clone(), range[0].clone()],
        &rows[1..4],
        &[range[1].clone(), rows[4].clone(), END],
    ];
    assert_eq!(purged(None, &range.concat()), [&[start(1, LIVE)], &left[..], &[END]].concat());
}

#[test]
fn a_tombstone_goes_if_it_is_old_and_deletes_nothing_elsewhere() {
    let cases = [
        (None, 899, false),
        (None, 900, true),
        (Some(8), 899, false),
        (Some(7), 899, true),
        (Some(i64::MIN), 0, true),
    ];
    for (limit, local, stays) in cases {
        let case = format!("{limit:?} {local}");
        let of_row = Row { deletion: deletion(7, local), ..Row::new(key(1)) };
        assert_eq!(left_of(limit, of_row.clone()), stays.then_some(of_row), "{case}");
        let shadowable = Row { shadowable: deletion(7, local), ..Row::new(key(1)) };
        assert_eq!(left_of(limit, shadowable.clone()), stays.then_some(shadowable), "{case}");
        let collection = Row { complex_deletions: vec![(1, deletion(7, local))], ..Row::new(key(1)) };
        assert_eq!(left_of(limit, collection.clone()), stays.then_some(collection), "{case}");
        let of_cell = with_cell(tombstone(7, local));
        assert_eq!(left_of(limit, of_cell.clone()), stays.then_some(of_cell), "{case}");
        let partition = [start(1, deletion(7, local)), END];
        assert_eq!(purged(limit, &partition), if stays { partition.to_vec() } else { vec![] }, "{case}");
    }
}

#[test]
fn the_youngest_and_the_latest_may_go_where_nothing_is_outside() {
    assert_eq!(left_of(None, with_cell(tombstone(i64::MAX, 899))), None);
    assert!(left_of(Some(i64::MAX), with_cell(tombstone(i64::MAX, 899))).is_some());
}

#[test]
fn an_expired_cell_is_a_tombstone_of_when_it_was_written() {
    // It lives for one more second.
    let alive = with_cell(expiring(7, 10, 1001));
    assert_eq!(left_of(None, alive.clone()), Some(alive));
    // Written at 990, and at 899.
    assert_eq!(left_of(None, with_cell(expiring(7, 10, 1000))), Some(with_cell(tombstone(7, 990))));
    assert_eq!(left_of(None, with_cell(expiring(7, 101, 1000))), None);
    assert_eq!(left_of(None, with_cell(expiring(7, 100, 1000))), Some(with_cell(tombstone(7, 900))));
    // What lies elsewhere is older.
    assert_eq!(left_of(Some(7), with_cell(expiring(7, 101, 1000))), Some(with_cell(tombstone(7, 899))));
}

#[test]
fn an_expired_marker_stays_as_it_is_until_it_goes() {
    let marker = |ttl, expires| Row {
        liveness: Liveness { timestamp: 7, ttl, local_expiration_time: expires },
        ..Row::new(key(1))
    };
    for (ttl, expires, stays) in [
        (10, 1001, true),
        (10, 900, true),
        (10, 899, false),
        (500, 900, true),
        (EXPIRED_LIVENESS_TTL, 900, true),
        (EXPIRED_LIVENESS_TTL, 899, false),
    ] {
        let row = marker(ttl, expires);
        assert_eq!(left_of(None, row.clone()), stays.then_some(row), "{ttl} {expires}");
    }
    assert_eq!(left_of(Some(7), marker(10, 899)), Some(marker(10, 899)));
}

#[test]
fn a_row_loses_its_dead_parts_only() {
    let mut row = Row { liveness: Liveness { timestamp: 9, ..Liveness::NONE }, ..Row::new(key(1)) };
    row.deletion = old(5);
    row.complex_deletions = vec![(1, young(6))];
    row.cells = vec![tombstone(8, 899), Cell { column: 1, ..cell(7) }];
    let expected = Row { deletion: LIVE, cells: vec![Cell { column: 1, ..cell(7) }], ..row.clone() };
    assert_eq!(left_of(None, row), Some(expected));
}

/// As ScyllaDB and careless tools write it.
#[test]
fn what_a_deletion_covers_goes_with_it() {
    let covered = |mut row: Row| {
        row.liveness = Liveness { timestamp: 5, ..Liveness::NONE };
        row.cells = vec![cell(5), Cell { column: 1, ..cell(6) }];
        row
    };
    let left = Row { cells: vec![Cell { column: 1, ..cell(6) }], ..Row::new(key(1)) };
    assert_eq!(left_of(None, covered(Row { deletion: old(5), ..Row::new(key(1)) })), Some(left.clone()));
    let row = Fragment::Row(covered(Row::new(key(1))));
    let expected = [start(1, LIVE), Fragment::Row(left), END];
    assert_eq!(purged(None, &[start(1, old(5)), row.clone(), END]), expected);
    let range = [start(1, LIVE), ranged(before(0, 1), old(5)), row, ranged(after(5, 1), LIVE), END];
    assert_eq!(purged(None, &range), expected);
    let mut of_column = Row { complex_deletions: vec![(1, old(5))], ..Row::new(key(1)) };
    of_column.cells = vec![cell(5), Cell { column: 1, ..cell(5) }];
    assert_eq!(left_of(None, of_column), Some(with_cell(cell(5))));
}

#[test]
fn without_a_marker_a_row_of_a_view_is_none() {
    let strict = PurgeRules { strict_liveness: true, ..rules() };
    let marker = Liveness { timestamp: 7, ttl: 10, local_expiration_time: 899 };
    let row = Fragment::Row(Row { liveness: marker, ..with_cell(cell(7)) });
    assert_eq!(purged_by(strict, None, &[start(1, LIVE), row.clone(), END]), []);
    assert_eq!(purged(None, &[start(1, LIVE), row, END]).len(), 3);
    // As Cassandra has it, it stays where nothing in it is dead.
    let whole = [start(1, LIVE), Fragment::Row(with_cell(cell(7))), END];
    assert_eq!(purged_by(strict, None, &whole), whole);
}

/// The same change to another deletion.
fn ranged(fragment: Fragment, deletion: DeletionTime) -> Fragment {
    match fragment {
        Fragment::RangeTombstone(change) => {
            Fragment::RangeTombstone(RangeTombstoneChange { deletion, ..change })
        }
        other => other,
    }
}

#[test]
fn a_range_shrinks_to_its_neighbours() {
    // Three ranges side by side, from 1, 2 and 3 on, up to 4.
    let changes = |deletions: [DeletionTime; 3]| {
        let [a, b, c] = deletions;
        let changes = [before(1, 1), before(2, 1), before(3, 1), before(4, 1)];
        let changes = std::iter::zip(changes, [a, b, c, LIVE]).map(|(at, to)| ranged(at, to));
        [start(1, young(1))].into_iter().chain(changes).chain([END]).collect::<Vec<_>>()
    };
    let of = |left: &[(i32, DeletionTime)]| {
        let changes = left.iter().map(|&(at, to)| ranged(before(at, 1), to));
        [start(1, young(1))].into_iter().chain(changes).chain([END]).collect::<Vec<_>>()
    };
    let (o, y) = (old(5), young(6));
    assert_eq!(purged(None, &changes([y, o, y])), of(&[(1, y), (2, LIVE), (3, y), (4, LIVE)]));
    assert_eq!(purged(None, &changes([o, y, o])), of(&[(2, y), (3, LIVE)]));
    assert_eq!(purged(None, &changes([o, old(4), y])), of(&[(3, y), (4, LIVE)]));
    assert_eq!(purged(None, &changes([o, old(4), old(3)])), of(&[]));
}

#[test]
fn an_empty_partition_vanishes_and_only_that() {
    let dead = Fragment::StaticRow(Row { deletion: old(1), ..Row::new(Clustering::empty()) });
    let fragments = [start(1, LIVE), dead, ranged(before(1, 1), old(5)), ranged(after(2, 1), LIVE), END];
    assert_eq!(purged(None, &fragments), []);
    let live = [start(2, LIVE), Fragment::Row(with_cell(cell(1))), END];
    let both: Vec<Fragment> = fragments.into_iter().chain(live.clone()).collect();
    assert_eq!(purged(None, &both), live);
    assert_eq!(purged(Some(1), &both), both);
    assert_eq!(purged(None, &[start(1, LIVE), END]), [], "whoever wrote it");
}

#[test]
fn the_limit_is_asked_once_a_partition_and_only_if_needed() {
    let old_row = |at| Fragment::Row(Row { deletion: old(at), ..Row::new(key(at as i32)) });
    let young_row = Fragment::Row(Row { deletion: young(1), ..Row::new(key(3)) });
    let fragments = [
        vec![start(1, LIVE), old_row(1), old_row(2), young_row.clone(), END],
        vec![start(2, LIVE), young_row, END],
        vec![start(3, old(1)), old_row(1), END],
    ];
    let mut asked = Vec::new();
    let limit = |key: &PartitionKey| {
        asked.push(key.bytes[3]);
        Some(2)
    };
    let script = Script::new(fragments.concat(), 2);
    assert_eq!(read_all(&mut Purge::new(script, rules(), limit)).len(), 4 + 3);
    assert_eq!(asked, [1, 3]);
}

/// The rows that a `SELECT` gives, each after the key of its partition.
fn live(now: i64, fragments: &[Fragment]) -> Vec<(PartitionKey, Fragment)> {
    let (mut rows, mut key, mut result) = (LiveRows::new(now), None, Vec::new());
    for fragment in fragments {
        if let Fragment::PartitionStart(start) = fragment {
            key = Some(start.key.clone());
        }
        let mut row = fragment.clone();
        if rows.keeps(&mut row) {
            result.push((key.clone().unwrap(), row));
        }
    }
    result
}

/// Rules under which the few seconds and timestamps of random streams fall on either side.
fn any_rules() -> impl Strategy<Value = PurgeRules> {
    (0..4i64, -25..4i64).prop_map(|(now, gc_before)| PurgeRules { now, gc_before, strict_liveness: false })
}

/// The stream whose expired cells are tombstones, and no partition empty.
fn converted(now: i64, fragments: &[Fragment]) -> Vec<Fragment> {
    let mut result = fragments.to_vec();
    for fragment in &mut result {
        if let Fragment::Row(row) | Fragment::StaticRow(row) = fragment {
            for cell in row.cells.iter_mut().filter(|cell| !cell.is_live(now) && cell.is_expiring()) {
                cell.local_deletion_time -= i64::from(cell.ttl);
                (cell.ttl, cell.value) = (0, CellValue::Tombstone);
            }
        }
    }
    let partitions = result.split_inclusive(|fragment| *fragment == END);
    let is_empty = |partition: &&[Fragment]| matches!(partition, [Fragment::PartitionStart(start), _] if start.deletion.is_live());
    partitions.filter(|partition| !is_empty(partition)).flatten().cloned().collect()
}

fn has_tombstone(now: i64, fragment: &Fragment) -> bool {
    match fragment {
        Fragment::PartitionStart(start) => !start.deletion.is_live(),
        Fragment::RangeTombstone(_) => true,
        Fragment::StaticRow(row) | Fragment::Row(row) => {
            let marker = &row.liveness;
            row.cells.iter().any(|cell| !cell.is_live(now))
                || !row.complex_deletions.is_empty()
                || !row.row_deletion().is_live()
                || (marker.is_expiring() && marker.local_expiration_time <= now)
        }
        Fragment::PartitionEnd => false,
    }
}

fn in_order(schema: &Schema, direction: Direction, fragments: &[Fragment]) {
    if direction == Direction::Forward {
        validate(schema, fragments);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_lives_stays(
        (direction, stream) in directions().prop_flat_map(|to| (Just(to), any_stream(to))),
        rules in any_rules(), limit in prop::option::of(-2..6i64),
    ) {
        let left = purged_by(rules, limit, &stream);
        in_order(&random_schema(), direction, &left);
        prop_assert_eq!(live(rules.now, &left), live(rules.now, &stream));
        // All the more so later on.
        prop_assert_eq!(live(rules.now + 5, &left), live(rules.now + 5, &stream));
        prop_assert_eq!(purged_by(rules, limit, &left), left, "what is purged has nothing to purge");
    }

    #[test]
    fn nothing_goes_where_older_data_may_be(
        stream in any_stream(Direction::Forward), now in 0..4i64, piece in 0..4usize,
    ) {
        let rules = PurgeRules { now, gc_before: i64::MAX, strict_liveness: false };
        let script = Script::new(stream.clone(), piece);
        let left = read_all(&mut Purge::new(script, rules, |_: &PartitionKey| Some(i64::MIN)));
        prop_assert_eq!(left, converted(now, &stream));
    }

    #[test]
    fn all_that_is_dead_goes_where_nothing_is_outside(
        stream in any_stream(Direction::Forward), now in 0..4i64,
    ) {
        let rules = PurgeRules { now, gc_before: 100, strict_liveness: false };
        let left = purged_by(rules, None, &stream);
        validate(&random_schema(), &left);
        prop_assert!(!left.iter().any(|fragment| has_tombstone(now, fragment)), "{:?}", left);
    }
}
