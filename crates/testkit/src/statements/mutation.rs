//! A statement as the mutation that Cassandra makes of it.
//!
//! | statement | what it writes |
//! |---|---|
//! | `INSERT` | a row marker and cells |
//! | `UPDATE` | cells |
//! | `= null` | a tombstone; of many cells, the deletion of all that is older |
//! | `=` to many cells | the deletion of all that is older, and cells |
//! | `+`, `-`, `m[k] =` | cells and tombstones |
//! | `DELETE v` | a tombstone; of many cells, the deletion of all that is as old |
//! | `DELETE` of a row without clustering columns | the deletion of its partition |

use model::merge::counter::encode;
use model::time::NO_DELETION_TIME;
use model::types::counter::{Shard, ShardKind};
use model::{
    Bytes, Cell, CellValue, Clustering, DeletionTime, Liveness, Mutation, PartitionKey, Position,
    RangeTombstone, Row,
};

use super::table::Table;
use super::values::key_of;
use super::{Change, Count, Element, End, New, Part, Place, Range, Statement, What};

/// Who counts.
const COUNTER_ID: [u8; 16] = [0x51; 16];

impl Statement {
    /// As a mutation.
    pub fn to_mutation(&self, table: &Table) -> Mutation {
        let mut mutation = Mutation::new(PartitionKey::new(key_of(&self.key)));
        match &self.what {
            What::Insert(row, changes) => {
                self.change_rows(table, row.as_ref(), changes, &mut mutation);
                if let Some(row) = mutation.rows.first_mut() {
                    row.liveness = self.marker();
                }
            }
            What::Update(row, changes) => self.change_rows(table, row.as_ref(), changes, &mut mutation),
            What::Count(row, counts) => self.count(row.as_ref(), counts, &mut mutation),
            What::DeleteColumns(row, parts) => self.delete(table, row.as_ref(), parts, &mut mutation),
            What::DeleteRow(row) => {
                let deletion = self.deletion();
                mutation.rows.push(Row { deletion, ..Row::new(row.clone()) });
            }
            What::DeleteRange(range) => mutation.range_tombstones.extend(self.range(table, range)),
            What::DeletePartition => mutation.deletion = self.deletion(),
        }
        debug_assert!(mutation.is_in_order(&table.schema), "a statement writes in order");
        mutation
    }

    fn change_rows(
        &self,
        table: &Table,
        row: Option<&Clustering>,
        changes: &[Change],
        mutation: &mut Mutation,
    ) {
        if let Some(row) = row {
            mutation.rows.push(self.changed(table, row.clone(), changes, false));
        }
        if changes.iter().any(|change| change.column.is_static) {
            mutation.static_row = Some(self.changed(table, Clustering::empty(), changes, true));
        }
    }

    fn changed(&self, table: &Table, clustering: Clustering, changes: &[Change], is_static: bool) -> Row {
        let mut row = Row::new(clustering);
        for change in changes.iter().filter(|change| change.column.is_static == is_static) {
            self.change(table, change, &mut row);
        }
        sorted(table, row, is_static)
    }

    fn change(&self, table: &Table, change: &Change, row: &mut Row) {
        let column = change.column.at;
        let is_multi_cell = table.column(change.column).data_type.is_multi_cell();
        let older = DeletionTime { marked_for_delete_at: self.timestamp - 1, ..self.deletion() };
        let add = |elements: &[Element], row: &mut Row| {
            row.cells.extend(elements.iter().map(|element| self.element(column, element)));
        };
        match &change.to {
            New::Null if is_multi_cell => row.complex_deletions.push((column, older)),
            New::Null => row.cells.push(self.tombstone(column, None)),
            New::Value(value) => row.cells.push(self.cell(column, None, value.clone())),
            New::Elements(elements) => {
                row.complex_deletions.push((column, older));
                add(elements, row);
            }
            New::Add(elements) | New::Prepend(elements) => add(elements, row),
            New::Remove(paths) => {
                row.cells.extend(paths.iter().map(|path| self.tombstone(column, Some(path.clone()))));
            }
            New::Put(path, None) => row.cells.push(self.tombstone(column, Some(path.clone()))),
            New::Put(path, Some(value)) => {
                row.cells.push(self.cell(column, Some(path.clone()), value.clone()));
            }
        }
    }

    fn delete(
        &self,
        table: &Table,
        row: Option<&Clustering>,
        parts: &[(Place, Part)],
        mutation: &mut Mutation,
    ) {
        let is_static = row.is_none();
        let mut deleted = Row::new(row.cloned().unwrap_or_default());
        for (column, part) in parts {
            let is_multi_cell = table.column(*column).data_type.is_multi_cell();
            match part {
                Part::Whole if is_multi_cell => deleted.complex_deletions.push((column.at, self.deletion())),
                Part::Whole => deleted.cells.push(self.tombstone(column.at, None)),
                Part::Cell(path) => deleted.cells.push(self.tombstone(column.at, Some(path.clone()))),
            }
        }
        let deleted = sorted(table, deleted, is_static);
        match is_static {
            true => mutation.static_row = Some(deleted),
            false => mutation.rows.push(deleted),
        }
    }

    fn count(&self, row: Option<&Clustering>, counts: &[Count], mutation: &mut Mutation) {
        let mut counted = Row::new(row.cloned().unwrap_or_default());
        for count in counts {
            let Count { column, clock, total, .. } = *count;
            let shard = Shard { id: COUNTER_ID, clock, count: total, kind: ShardKind::Global };
            let context = encode(&[shard]).expect("one shard fits into a context");
            counted.cells.push(self.cell(column.at, None, context));
        }
        match row {
            None => mutation.static_row = Some(counted),
            Some(_) => mutation.rows.push(counted),
        }
    }

    /// `None` if the range is empty.
    fn range(&self, table: &Table, range: &Range) -> Option<RangeTombstone> {
        let next = table.schema.clustering.get(range.prefix.len());
        let is_reversed = next.is_some_and(|of| of.is_reversed());
        let (start, end) = match is_reversed {
            true => (&range.upper, &range.lower),
            false => (&range.lower, &range.upper),
        };
        let prefix = |end: &End| range.prefix.iter().chain(&end.values).cloned().collect();
        let all = || range.prefix.iter().cloned().collect();
        let start = match start {
            None => Position::before(all()),
            Some(end) if end.is_inclusive => Position::before(prefix(end)),
            Some(end) => Position::after(prefix(end)),
        };
        let end = match end {
            None => Position::after(all()),
            Some(end) if end.is_inclusive => Position::after(prefix(end)),
            Some(end) => Position::before(prefix(end)),
        };
        let is_empty = table.schema.compare(&start, &end).is_ge();
        (!is_empty).then(|| RangeTombstone { start, end, deletion: self.deletion() })
    }

    fn marker(&self) -> Liveness {
        Liveness { timestamp: self.timestamp, ttl: self.ttl, local_expiration_time: self.expiry() }
    }

    fn element(&self, column: u16, element: &Element) -> Cell {
        self.cell(column, Some(element.path.clone()), element.value.clone())
    }

    fn cell(&self, column: u16, path: Option<Bytes>, value: Bytes) -> Cell {
        let value = CellValue::Value(value);
        let (timestamp, local_deletion_time) = (self.timestamp, self.expiry());
        Cell { column, ttl: self.ttl, timestamp, local_deletion_time, path, value }
    }

    fn tombstone(&self, column: u16, path: Option<Bytes>) -> Cell {
        let value = CellValue::Tombstone;
        Cell { column, ttl: 0, timestamp: self.timestamp, local_deletion_time: self.now, path, value }
    }

    fn deletion(&self) -> DeletionTime {
        DeletionTime { marked_for_delete_at: self.timestamp, local_deletion_time: self.now }
    }

    fn expiry(&self) -> i64 {
        if self.ttl == 0 { NO_DELETION_TIME } else { self.now + i64::from(self.ttl) }
    }
}

/// The row with what it has in the order of columns and paths.
fn sorted(table: &Table, mut row: Row, is_static: bool) -> Row {
    row.complex_deletions.sort_by_key(|(column, _)| *column);
    row.cells.sort_by(|a, b| {
        let of = table.column(Place { is_static, at: a.column }).data_type.cell_path_type();
        a.column.cmp(&b.column).then_with(|| match (of, &a.path, &b.path) {
            (Some(of), Some(a), Some(b)) => of.compare(a, b),
            _ => std::cmp::Ordering::Equal,
        })
    });
    row
}
