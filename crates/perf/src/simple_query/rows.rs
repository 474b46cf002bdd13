//! The rows of simple-query: a key of eight bytes, and five blobs of 34 bytes or five counters.

use std::rc::Rc;

use model::flat::{CellView, FlatRow, RowVisitor};
use model::merge::counter::encode;
use model::time::NO_DELETION_TIME;
use model::types::counter::{CounterContext, Shard, ShardKind};
use model::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, Liveness, Mutation,
    PartitionKey, Row, Schema,
};

/// How many columns there are beside the key: C0 to C4.
pub const COLUMNS: u16 = 5;

/// Bytes of a value.
const VALUE: usize = 34;

/// Bytes of a key.
const KEY: usize = 8;

/// About how many bytes a partition takes in Data.db, uncompressed.
pub(crate) const PARTITION: usize = 217;

/// Who counts.
const HOST: [u8; 16] = [1; 16];

/// The columns; those beside the key are counters or blobs.
pub fn schema(counters: bool) -> Rc<Schema> {
    let data_type = if counters { CqlType::Counter } else { CqlType::Blob };
    let column =
        |number| Column { name: format!("C{number}").into_bytes().into(), data_type: data_type.clone() };
    Rc::new(Schema::new(CqlType::Blob, Vec::new(), Vec::new(), (0..COLUMNS).map(column).collect()))
}

/// The key of a partition.
pub fn key(sequence: u32) -> PartitionKey {
    PartitionKey::new(Bytes::from(u64::from(sequence).to_be_bytes().to_vec()))
}

/// The value of a column, which all rows have.
pub fn value(column: u16) -> &'static [u8; VALUE] {
    &VALUES[usize::from(column)]
}

const VALUES: [[u8; VALUE]; COLUMNS as usize] = {
    let mut values = [[0; VALUE]; COLUMNS as usize];
    let mut at = 0;
    while at < COLUMNS as usize * VALUE {
        let (column, byte) = (at / VALUE, at % VALUE);
        values[column][byte] = ((byte + 1) * (column * 58 + 89) % 251) as u8;
        at += 1;
    }
    values
};

/// `UPDATE`, of all columns.
pub fn update(sequence: u32, timestamp: i64) -> Mutation {
    of(sequence, timestamp, NO_DELETION_TIME, |column| CellValue::Value(Bytes::from(&value(column)[..])))
}

/// `DELETE C0, C1, …`: a tombstone in the place of each value. `now` in seconds.
pub fn deletion(sequence: u32, timestamp: i64, now: i64) -> Mutation {
    of(sequence, timestamp, now, |_| CellValue::Tombstone)
}

/// `UPDATE … SET C0 = C0 + 1, C1 = C1 + 2, …`, when `before` is there.
pub fn count(sequence: u32, timestamp: i64, before: &[Cell]) -> Mutation {
    of(sequence, timestamp, NO_DELETION_TIME, |column| {
        let (clock, count) = before.iter().find(|cell| cell.column == column).and_then(own).unwrap_or((0, 0));
        let (clock, count) = (clock + 1, count + i64::from(column) + 1);
        let shard = Shard { id: HOST, clock, count, kind: ShardKind::Global };
        CellValue::Value(encode(&[shard]).expect("one shard can be numbered"))
    })
}

/// A row that was found, as it stands in memory or decoded.
#[derive(Clone, Copy, Debug)]
pub enum Found<'a> {
    /// As it stands.
    Flat(FlatRow<'a>),
    /// Decoded, without what is deleted or expired.
    Decoded(&'a Row),
}

impl Found<'_> {
    /// Its cells, those that a `SELECT` at `now` (seconds) would see.
    pub fn cells(self, now: i64) -> Vec<Cell> {
        let mut place = Fragment::default();
        let row = match self {
            Found::Decoded(row) => row,
            Found::Flat(row) => match row.decode(&mut place).map(|()| &place) {
                Ok(Fragment::Row(row)) => row,
                _ => return Vec::new(),
            },
        };
        row.cells.iter().filter(|cell| cell.is_live(now)).cloned().collect()
    }
}

/// Whether a row has all five values, and no others.
pub fn is_whole(found: Found<'_>, now: i64) -> bool {
    match found {
        Found::Decoded(row) => {
            row.cells.len() == usize::from(COLUMNS)
                && (0..COLUMNS).zip(&row.cells).all(|(column, cell)| match &cell.value {
                    CellValue::Value(found) => cell.column == column && **found == value(column)[..],
                    CellValue::Tombstone => false,
                })
        }
        Found::Flat(row) => {
            let mut compared = Compared { now, next: 0, differ: false };
            row.visit(&mut compared).is_ok() && compared.next == COLUMNS && !compared.differ
        }
    }
}

/// Whether a row has counted, as often in each column.
pub fn has_counted(found: Found<'_>, now: i64) -> bool {
    let cells = found.cells(now);
    let Some((clock, _)) = cells.first().and_then(own) else { return false };
    let is_right = |cell: &Cell| own(cell) == Some((clock, clock * (i64::from(cell.column) + 1)));
    cells.len() == usize::from(COLUMNS) && cells.iter().all(is_right)
}

/// Compares the cells of a row with those that it must have.
struct Compared {
    now: i64,
    /// The column of the next one.
    next: u16,
    differ: bool,
}

impl<'a> RowVisitor<'a> for Compared {
    fn clustering_value(&mut self, _: Option<&'a [u8]>) {
        self.differ = true;
    }

    fn marker(&mut self, _: Liveness) {}

    fn deletions(&mut self, _: DeletionTime, _: DeletionTime) {
        self.differ = true;
    }

    fn complex_deletions(&mut self, _: Vec<(u16, DeletionTime)>) {
        self.differ = true;
    }

    fn cells(&mut self, _: usize) {}

    fn cell(&mut self, cell: CellView<'a>) {
        let is_right = cell.column == self.next
            && self.next < COLUMNS
            && cell.is_live(self.now)
            && cell.value == Some(&value(cell.column)[..]);
        self.differ |= !is_right;
        self.next += 1;
    }
}

/// The share of a summary in bytes of the data, as ScyllaDB has it, in partitions between two of its keys: each key has its
/// bytes, its length and where it stands.
pub fn summary_interval(ratio: f64) -> u32 {
    let entry = (KEY + 2 + 8) as f64;
    ((entry / ratio / PARTITION as f64).round() as u32).max(1)
}

/// How often this database has added to a counter, and the sum.
fn own(cell: &Cell) -> Option<(i64, i64)> {
    let CellValue::Value(context) = &cell.value else { return None };
    let context = CounterContext::parse(context).ok()?;
    context.shards().find(|shard| shard.id == HOST).map(|shard| (shard.clock, shard.count))
}

fn of(sequence: u32, timestamp: i64, local_deletion_time: i64, value: impl Fn(u16) -> CellValue) -> Mutation {
    let mut row = Row::new(Clustering::empty());
    let cell =
        |column| Cell { column, ttl: 0, timestamp, local_deletion_time, path: None, value: value(column) };
    row.cells = (0..COLUMNS).map(cell).collect();
    Mutation { rows: vec![row], ..Mutation::new(key(sequence)) }
}

#[cfg(test)]
mod tests {
    use model::flat;

    use super::*;

    /// A row as it is decoded and as it stands in memory, which is the same.
    fn both(row: &Row, look: impl Fn(Found<'_>, i64) -> bool) -> bool {
        let mut bytes = Vec::new();
        flat::put_fragment(&Fragment::Row(row.clone()), &mut bytes);
        let bytes = Bytes::from(bytes);
        let seen = look(Found::Decoded(row), 1);
        assert_eq!(look(Found::Flat(FlatRow::new(&bytes, &bytes)), 1), seen);
        seen
    }

    #[test]
    fn a_row_is_known_again() {
        let mut row = update(7, 1).rows.remove(0);
        assert!(both(&row, is_whole) && !both(&row, has_counted));
        row.cells[3].value = row.cells[2].value.clone();
        assert!(!both(&row, is_whole));
        let mut less = update(7, 1).rows.remove(0);
        less.cells.pop();
        assert!(!both(&less, is_whole));
        let mut more = update(7, 1).rows.remove(0);
        more.cells.push(Cell { column: 5, ..more.cells[4].clone() });
        assert!(!both(&more, is_whole));
        assert!(!both(&deletion(7, 1, 1).rows[0], is_whole));
        assert!(!both(&Row::new(Clustering::empty()), is_whole));
    }

    #[test]
    fn counters_add_up() {
        let once = count(7, 1, &[]).rows.remove(0);
        let mut twice = count(7, 2, &once.cells).rows.remove(0);
        assert_eq!(own(&twice.cells[4]), Some((2, 10)));
        assert!(both(&once, has_counted) && both(&twice, has_counted) && !both(&once, is_whole));
        assert_eq!(Found::Decoded(&twice).cells(1), twice.cells);
        twice.cells[1] = once.cells[1].clone();
        assert!(!both(&twice, has_counted));
    }

    #[test]
    fn values_differ_by_their_columns() {
        let values: Vec<_> = (0..COLUMNS).map(value).collect();
        assert!((1..COLUMNS as usize).all(|at| values[at] != values[at - 1]));
    }

    #[test]
    fn a_summary_is_a_share_of_the_data() {
        assert_eq!((summary_interval(0.0005), summary_interval(0.005)), (166, 17));
        assert_eq!(summary_interval(10.0), 1);
    }
}
