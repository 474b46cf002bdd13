//! Any writes, split over any sources: the merge is the stream of all writes. Timestamps are few, so that
//! ties are many. Shadowable deletions, and counters that a deletion by time covers in part, are left
//! out: what they do depends on what was merged before.

use std::cmp::Reverse;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::oracle::{InRow, Key, What, Write, backwards, stream};
use super::*;
use crate::time::EXPIRED_LIVENESS_TTL;
use crate::types::counter::{Shard, ShardKind};

/// Static: a blob, a map. Regular: two blobs, two maps.
pub(crate) fn schema() -> Rc<Schema> {
    let column = |name: &str, data_type: CqlType| Column { name: name.as_bytes().into(), data_type };
    let map = CqlType::map(CqlType::Int, CqlType::Blob, false);
    let descending = CqlType::Reversed(Box::new(CqlType::Int));
    let statics = vec![column("s", CqlType::Blob), column("t", map.clone())];
    let regulars = [("a", CqlType::Blob), ("b", CqlType::Blob), ("m", map.clone()), ("n", map)];
    let regulars = regulars.into_iter().map(|(name, data_type)| column(name, data_type)).collect();
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int, descending], statics, regulars))
}

fn timestamps() -> impl Strategy<Value = i64> {
    -1..5i64
}

fn deletions() -> impl Strategy<Value = DeletionTime> {
    (timestamps(), 1..3i64).prop_map(|(marked_for_delete_at, local_deletion_time)| DeletionTime {
        marked_for_delete_at,
        local_deletion_time,
    })
}

fn keys() -> impl Strategy<Value = Key> {
    (0..3i32, -1..2i32).prop_map(|(a, b)| Key(a, Reverse(b)))
}

fn positions() -> impl Strategy<Value = Position> {
    (keys(), 0..3usize, any::<bool>()).prop_map(|(key, columns, is_before)| {
        let mut prefix = key.clustering();
        prefix.values.truncate(columns);
        if is_before { Position::before(prefix) } else { Position::after(prefix) }
    })
}

fn markers() -> impl Strategy<Value = Liveness> {
    let ttl = select(vec![0, 10, 20, EXPIRED_LIVENESS_TTL]);
    (timestamps(), ttl, 1..3i64).prop_map(|(timestamp, ttl, expires)| {
        let local_expiration_time = if ttl == 0 { NO_DELETION_TIME } else { expires };
        Liveness { timestamp, ttl, local_expiration_time }
    })
}

/// A cell of column 0 without a path.
fn cells() -> impl Strategy<Value = Cell> {
    let value = select(vec![None, Some(&b""[..]), Some(b"a"), Some(b"b")]);
    (timestamps(), value, select(vec![0, 10, 20]), 1..3i64).prop_map(|(timestamp, value, ttl, dies)| {
        let ttl = if value.is_none() { 0 } else { ttl };
        let local_deletion_time = if value.is_some() && ttl == 0 { NO_DELETION_TIME } else { dies };
        let value = value.map_or(CellValue::Tombstone, |bytes| CellValue::Value(Bytes::from(bytes)));
        Cell { column: 0, ttl, timestamp, local_deletion_time, path: None, value }
    })
}

/// A write in a row of so many blobs, then as many maps.
fn in_row(columns: u16) -> impl Strategy<Value = InRow> {
    prop_oneof![
        1 => (columns..2 * columns, deletions()).prop_map(|(column, at)| InRow::Collection(column, at)),
        3 => (0..columns, cells()).prop_map(|(column, cell)| InRow::Cell(None, Cell { column, ..cell })),
        3 => (columns..2 * columns, -1..2i32, cells()).prop_map(|(column, path, cell)| {
            let bytes = Bytes::from(path.to_be_bytes().to_vec());
            InRow::Cell(Some(path), Cell { column, path: Some(bytes), ..cell })
        }),
    ]
}

fn whole_row() -> impl Strategy<Value = InRow> {
    prop_oneof![markers().prop_map(InRow::Marker), deletions().prop_map(InRow::Deletion)]
}

fn writes() -> impl Strategy<Value = Write> {
    let range = (positions(), positions(), deletions()).prop_map(|(a, b, deletion)| {
        let (start, end) = if schema().compare(&a, &b).is_le() { (a, b) } else { (b, a) };
        What::Range(start, end, deletion)
    });
    let what = prop_oneof![
        1 => deletions().prop_map(What::Partition),
        4 => range,
        1 => in_row(1).prop_map(|write| What::Row(None, write)),
        2 => (keys(), whole_row()).prop_map(|(key, write)| What::Row(Some(key), write)),
        6 => (keys(), in_row(2)).prop_map(|(key, write)| What::Row(Some(key), write)),
    ];
    (0..2i32, what).prop_map(|(partition, what)| Write { partition, what })
}

/// Writes, each with the number of the source that has it.
fn split_writes() -> impl Strategy<Value = Vec<Vec<Write>>> {
    (1..6usize, vec((writes(), any::<prop::sample::Index>()), 0..60)).prop_map(|(count, writes)| {
        let mut sources = vec![Vec::new(); count];
        writes.into_iter().for_each(|(write, source)| sources[source.index(count)].push(write));
        sources
    })
}

/// The stream of any writes, in this direction.
pub(crate) fn any_stream(direction: Direction) -> impl Strategy<Value = Vec<Fragment>> {
    vec(writes(), 0..60).prop_map(move |writes| in_direction(stream(&schema(), &writes), direction))
}

fn streams(sources: &[Vec<Write>], direction: Direction) -> Vec<Vec<Fragment>> {
    sources.iter().map(|writes| in_direction(stream(&schema(), writes), direction)).collect()
}

fn in_direction(forward: Vec<Fragment>, direction: Direction) -> Vec<Fragment> {
    match direction {
        Direction::Forward => forward,
        Direction::Reverse => backwards(&forward),
    }
}

pub(crate) fn directions() -> impl Strategy<Value = Direction> {
    select(vec![Direction::Forward, Direction::Reverse])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_merge_of_any_split_is_the_table_of_all_writes(
        sources in split_writes(), direction in directions(), pieces in vec(0..4usize, 5), turn in 0..5usize,
    ) {
        let expected = in_direction(stream(&schema(), &sources.concat()), direction);
        let mut streams = streams(&sources, direction);
        let turn = turn % streams.len();
        streams.rotate_left(turn);
        let merge = || {
            let scripts = std::iter::zip(&streams, &pieces).map(|(s, piece)| Script::new(s.clone(), *piece));
            Merge::new(&schema(), direction, scripts.collect())
        };
        let merged = read_all(&mut merge());
        prop_assert_eq!(&read_flat(&mut merge()).0, &merged);
        if direction == Direction::Forward {
            streams.iter().for_each(|source| validate(&schema(), source));
            validate(&schema(), &merged);
        }
        prop_assert_eq!(merged, expected);
    }

    #[test]
    fn a_merge_of_merges_is_the_merge_of_all(
        sources in split_writes(), direction in directions(), pieces in vec(0..4usize, 5), cut in 0..6usize,
    ) {
        let streams = streams(&sources, direction);
        let (left, right) = streams.split_at(cut.min(streams.len()));
        let merge = |streams: &[Vec<Fragment>]| {
            let scripts = std::iter::zip(streams, &pieces).map(|(s, piece)| Script::new(s.clone(), *piece));
            Merge::new(&schema(), direction, scripts.collect())
        };
        let mut nested = Merge::new(&schema(), direction, vec![merge(left), merge(right)]);
        prop_assert_eq!(read_all(&mut nested), merged(&schema(), direction, &streams));
    }

    #[test]
    fn counters_of_any_split_are_the_context_of_all_shards(
        sources in vec(vec((shards(), -1..5i64), 1..8), 2..5), tombstone in any::<bool>(),
    ) {
        let schema = Rc::new(counter_schema());
        let mut streams: Vec<_> = sources.iter().map(|writes| counter_stream(counter_cell(writes))).collect();
        let mut expected = counter_cell(&sources.concat());
        if tombstone {
            expected = Cell { value: CellValue::Tombstone, local_deletion_time: 1, ..cell(0) };
            streams.push(counter_stream(expected.clone()));
        }
        prop_assert_eq!(merged(&schema, Direction::Forward, &streams), counter_stream(expected.clone()));
        streams.reverse();
        prop_assert_eq!(merged(&schema, Direction::Forward, &streams), counter_stream(expected));
    }
}

fn shards() -> impl Strategy<Value = Shard> {
    let kind = select(vec![ShardKind::Global, ShardKind::Local, ShardKind::Remote]);
    (0..4u8, kind, -2..3i64, -2..3i64).prop_map(|(id, kind, clock, count)| Shard {
        id: [id; 16],
        clock,
        count,
        kind,
    })
}

fn counter_schema() -> Schema {
    let counter = Column { name: b"c"[..].into(), data_type: CqlType::Counter };
    Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), vec![counter])
}

fn counter_stream(cell: Cell) -> Vec<Fragment> {
    let row = Row { cells: vec![cell], ..Row::new(key(1)) };
    vec![start(1, LIVE), Fragment::Row(row), END]
}

/// The one shard that stands for all shards of each id.
fn counter_cell(writes: &[(Shard, i64)]) -> Cell {
    let mut result = Vec::new();
    for id in 0..4u8 {
        let of_kind =
            |kind| writes.iter().map(|write| write.0).filter(move |s| s.id[0] == id && s.kind == kind);
        let sum = |a: Shard, b: Shard| Shard { clock: a.clock + b.clock, count: a.count + b.count, ..a };
        let global = of_kind(ShardKind::Global).max_by_key(|shard| (shard.clock, shard.count));
        let local = of_kind(ShardKind::Local).reduce(sum);
        let downwards = of_kind(ShardKind::Remote).filter(|shard| shard.clock < 0);
        let remote = downwards.max_by_key(|shard| (Reverse(shard.clock), shard.count));
        let upwards = of_kind(ShardKind::Remote).max_by_key(|shard| (shard.clock, shard.count));
        result.extend(global.or(local).or(remote).or(upwards));
    }
    let context = super::counter::encode(&result).unwrap();
    let timestamp = writes.iter().map(|write| write.1).max().unwrap();
    Cell { value: CellValue::Value(context), ..cell(timestamp) }
}
