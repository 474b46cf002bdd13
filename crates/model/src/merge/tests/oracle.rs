//! A table as plain as can be: all writes are kept, and a stream is made by asking each one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::*;
use crate::time::EXPIRED_LIVENESS_TTL;

/// Two clustering columns, the second one descending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Key(pub(super) i32, pub(super) Reverse<i32>);

impl Key {
    pub(super) fn clustering(self) -> Clustering {
        [self.0, self.1.0].into_iter().map(|v| v.to_be_bytes().to_vec()).collect()
    }
}

#[derive(Clone, Debug)]
pub(super) struct Write {
    pub(super) partition: i32,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Partition(DeletionTime),
    Range(Position, Position, DeletionTime),
    /// Of the static row, or the one of this key.
    Row(Option<Key>, InRow),
}

#[derive(Clone, Debug)]
pub(super) enum InRow {
    Marker(Liveness),
    Deletion(DeletionTime),
    Collection(u16, DeletionTime),
    /// The path is an `int`.
    Cell(Option<i32>, Cell),
}

/// The stream that a table of these writes gives.
pub(super) fn stream(schema: &Schema, writes: &[Write]) -> Vec<Fragment> {
    let mut partitions: BTreeMap<(i64, i32), Vec<&What>> = BTreeMap::new();
    for write in writes {
        let token = crate::key::token_of(&write.partition.to_be_bytes());
        partitions.entry((token, write.partition)).or_default().push(&write.what);
    }
    partitions.iter().flat_map(|((_, key), writes)| partition(schema, *key, writes)).collect()
}

/// The same stream, each partition backwards.
pub(super) fn backwards(forward: &[Fragment]) -> Vec<Fragment> {
    let mut result = Vec::new();
    for partition in forward.split_inclusive(|fragment| *fragment == END) {
        let is_head = |f: &Fragment| matches!(f, Fragment::PartitionStart(_) | Fragment::StaticRow(_));
        let (head, body) = partition.split_at(partition.iter().take_while(|f| is_head(f)).count());
        result.extend_from_slice(head);
        let mut above = LIVE;
        let mut turned: Vec<Fragment> = body[..body.len() - 1].to_vec();
        for fragment in &mut turned {
            if let Fragment::RangeTombstone(change) = fragment {
                std::mem::swap(&mut change.deletion, &mut above);
            }
        }
        result.extend(turned.into_iter().rev());
        result.push(END);
    }
    result
}

fn partition(schema: &Schema, key: i32, writes: &[&What]) -> Vec<Fragment> {
    let deletions =
        writes.iter().filter_map(|write| if let What::Partition(d) = write { Some(*d) } else { None });
    let deletion = deletions.max().unwrap_or(LIVE);
    let mut rows: BTreeMap<Option<Key>, Vec<&InRow>> = BTreeMap::new();
    for write in writes {
        if let What::Row(key, write) = write {
            rows.entry(*key).or_default().push(write);
        }
    }
    let mut placed: Vec<(Position, Fragment)> = changes(schema, writes, deletion);
    let mut head = vec![start(key, deletion)];
    for (key, writes_of_row) in &rows {
        let clustering = key.map_or(Clustering::empty(), Key::clustering);
        let at = Position::at(clustering.clone());
        let active = if key.is_none() { deletion } else { in_force(schema, writes, &at).max(deletion) };
        match build_row(clustering, writes_of_row, active) {
            Some(row) if key.is_none() => head.push(Fragment::StaticRow(row)),
            Some(row) => placed.push((at, Fragment::Row(row))),
            None => {}
        }
    }
    placed.sort_by(|(a, _), (b, _)| schema.compare(a, b));
    head.into_iter().chain(placed.into_iter().map(|(_, fragment)| fragment)).chain([END]).collect()
}

/// The greatest of the ranges that hold what is just behind this position, or at it.
fn in_force(schema: &Schema, writes: &[&What], at: &Position) -> DeletionTime {
    let covering = writes.iter().filter_map(|write| match write {
        What::Range(start, end, deletion)
            if schema.compare(start, at).is_le() && schema.compare(at, end).is_lt() =>
        {
            Some(*deletion)
        }
        _ => None,
    });
    covering.max().unwrap_or(LIVE)
}

fn changes(schema: &Schema, writes: &[&What], partition: DeletionTime) -> Vec<(Position, Fragment)> {
    let mut ends: Vec<&Position> = writes
        .iter()
        .flat_map(|write| if let What::Range(start, end, _) = write { vec![start, end] } else { vec![] })
        .collect();
    ends.sort_by(|a, b| schema.compare(a, b));
    ends.dedup();
    let (mut result, mut last) = (Vec::new(), LIVE);
    for position in ends {
        let greatest = in_force(schema, writes, position);
        let deletion = if greatest > partition { greatest } else { LIVE };
        if deletion != last {
            let change = RangeTombstoneChange { position: position.clone(), deletion };
            result.push((position.clone(), Fragment::RangeTombstone(change)));
            last = deletion;
        }
    }
    result
}

fn build_row(clustering: Clustering, writes: &[&InRow], active: DeletionTime) -> Option<Row> {
    let mut row = Row::new(clustering);
    let mut collections: BTreeMap<u16, DeletionTime> = BTreeMap::new();
    let mut cells: BTreeMap<(u16, Option<i32>), Vec<&Cell>> = BTreeMap::new();
    let mut markers = Vec::new();
    for write in writes {
        match write {
            InRow::Marker(marker) => markers.push(*marker),
            InRow::Deletion(deletion) => row.deletion = row.deletion.max(*deletion),
            InRow::Collection(column, deletion) => {
                let known = collections.entry(*column).or_insert(LIVE);
                *known = (*known).max(*deletion);
            }
            InRow::Cell(path, cell) => cells.entry((cell.column, *path)).or_default().push(cell),
        }
    }
    let of_row = active.max(row.deletion);
    row.deletion = if row.deletion > active { row.deletion } else { LIVE };
    row.liveness = markers
        .into_iter()
        .filter(|marker| !of_row.deletes(marker.timestamp))
        .max_by_key(|m| {
            (m.timestamp, m.ttl == EXPIRED_LIVENESS_TTL, m.ttl > 0, m.local_expiration_time, Reverse(m.ttl))
        })
        .unwrap_or(Liveness::NONE);
    let of_column = |column: &u16| collections.get(column).map_or(of_row, |own| of_row.max(*own));
    let winners = cells.iter().filter_map(|((column, _), versions)| {
        let covered = of_column(column);
        versions.iter().filter(|cell| !covered.deletes(cell.timestamp)).max_by_key(|cell| strength(cell))
    });
    row.cells = winners.map(|cell| Cell::clone(cell)).collect();
    row.complex_deletions = collections.iter().map(|(c, d)| (*c, *d)).filter(|(_, d)| *d > of_row).collect();
    (!row.is_empty()).then_some(row)
}

fn strength(cell: &Cell) -> (i64, u8, i64, Reverse<u32>, Vec<u8>) {
    let (kind, value) = match &cell.value {
        CellValue::Tombstone => (2, Vec::new()),
        CellValue::Value(value) if cell.ttl > 0 => (1, value.to_vec()),
        CellValue::Value(value) => (0, value.to_vec()),
    };
    (cell.timestamp, kind, cell.local_deletion_time, Reverse(cell.ttl), value)
}
