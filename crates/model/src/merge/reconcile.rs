//! Which of two cells wins, and several rows of one key as one.
//!
//! The greater timestamp wins. Where two are equal, in this order:
//!
//! 1. what dies over what lives for ever: a tombstone or an expiring cell over a plain one;
//! 2. a tombstone over an expiring cell, expired or not, so that the clock does not matter;
//! 3. the later local deletion time;
//! 4. of two expiring cells the smaller TTL: it was written later;
//! 5. the greater value, byte by byte.
//!
//! Counters do not compete: their contexts are merged, and a tombstone wins over them whatever the
//! timestamps say. What a deletion covers is removed before anything is compared.

use std::cmp::{Ordering, Reverse};
use std::ops::Deref;
use std::rc::Rc;

use super::counter::{self, Merged};
use crate::time::NO_DELETION_TIME;
use crate::{Cell, CellValue, Column, CqlType, DeletionTime, Liveness, Row, Schema};

/// So many versions of a row are merged one after the other.
const ONE_BY_ONE: usize = 8;

/// Merges the versions of a row.
#[derive(Debug)]
pub struct RowMerger<S = Rc<Schema>> {
    schema: S,
    /// The cells of one version that those before it do not have; empty between two calls.
    extra: Vec<Cell>,
}

impl<S: Deref<Target = Schema>> RowMerger<S> {
    /// A merger of rows of this schema.
    pub fn new(schema: S) -> RowMerger<S> {
        RowMerger { schema, extra: Vec::new() }
    }

    /// The merge of all `rows`, which have the same key, with what shadows their parts removed; `None`
    /// where nothing is left. `active` is the deletion in force at the row, of its partition or a range.
    ///
    /// Empties `rows`. The result does not depend on their order. Nor does it matter whether some of them
    /// were merged before, with two exceptions that Cassandra has too: a shadowable deletion and the marker
    /// that lifts it must not meet too late, and neither must a counter's shards and what deletes some.
    ///
    /// A row's lasting deletion stays when a greater shadowable one is lifted, as in ScyllaDB. Cassandra
    /// keeps but one deletion a row and forgets the lasting one.
    pub fn merge(&mut self, rows: &mut Vec<Row>, is_static: bool, active: DeletionTime) -> Option<Row> {
        let head = RowHead::of(rows, active);
        let mut merged = take_largest(rows)?;
        rows.iter().for_each(|row| add_complex_deletions(&mut merged.complex_deletions, row));
        retain_unshadowed(&mut merged.cells, head.active, &merged.complex_deletions);
        let columns = self.schema.columns(is_static);
        for row in rows.iter_mut() {
            retain_unshadowed(&mut row.cells, head.active, &merged.complex_deletions);
        }
        // Of many each goes together with another one, and so on, so that no cell is looked at as often as there are rows.
        while rows.len() > ONE_BY_ONE {
            let others = rows.split_off(rows.len().div_ceil(2));
            for (row, other) in rows.iter_mut().zip(others) {
                merge_cells(columns, &mut row.cells, other.cells, &mut self.extra);
            }
        }
        for row in rows.drain(..) {
            merge_cells(columns, &mut merged.cells, row.cells, &mut self.extra);
        }
        merged.complex_deletions.retain(|(_, deletion)| deletion.supersedes(&head.active));
        merged.liveness = head.liveness;
        merged.deletion = head.deletion;
        merged.shadowable = head.shadowable;
        (!merged.is_empty()).then_some(merged)
    }
}

/// Makes `cell` the winner of itself and another cell of the same column and path.
pub fn reconcile(cell: &mut Cell, other: Cell, of_counter: bool) {
    if of_counter && !(is_tombstone(cell) && is_tombstone(&other)) {
        reconcile_counters(cell, other);
    } else if wins(&other, cell) {
        *cell = other;
    }
}

/// Merges `other` into `merged`, both in the order of a row's cells. The work space is left empty.
fn merge_cells(columns: &[Column], merged: &mut Vec<Cell>, other: Vec<Cell>, extra: &mut Vec<Cell>) {
    let mut at = 0;
    for cell in other {
        let order = loop {
            match merged.get(at).map(|own| compare_cells(columns, own, &cell)) {
                Some(Ordering::Less) => at += 1,
                order => break order,
            }
        };
        if order == Some(Ordering::Equal) {
            let of_counter = is_of_counter(&columns[usize::from(cell.column)].data_type);
            reconcile(&mut merged[at], cell, of_counter);
        } else {
            extra.push(cell);
        }
    }
    if !extra.is_empty() {
        merged.append(extra);
        // Two sorted runs, which the sort finds and merges.
        merged.sort_by(|a, b| compare_cells(columns, a, b));
    }
}

/// The order of the cells of a row.
fn compare_cells(columns: &[Column], a: &Cell, b: &Cell) -> Ordering {
    a.column.cmp(&b.column).then_with(|| match (&a.path, &b.path) {
        (Some(path), Some(other)) => {
            let path_type = columns[usize::from(a.column)].data_type.cell_path_type();
            path_type.map_or(Ordering::Equal, |path_type| path_type.compare(path, other))
        }
        _ => Ordering::Equal,
    })
}

fn is_of_counter(data_type: &CqlType) -> bool {
    data_type.cell_value_type(None).is_some_and(CqlType::is_counter)
}

/// Whether `a` wins over `b`; neither does where they are the same.
fn wins(a: &Cell, b: &Cell) -> bool {
    let by_times = a.timestamp.cmp(&b.timestamp).then_with(|| precedence(a).cmp(&precedence(b)));
    by_times.then_with(|| value_of(a).cmp(value_of(b))).is_gt()
}

/// Rules 1 to 4: kind, local deletion time, TTL. The greater one wins.
fn precedence(cell: &Cell) -> (u8, i64, Reverse<u32>) {
    let kind = match cell {
        cell if is_tombstone(cell) => 2,
        cell if cell.local_deletion_time != NO_DELETION_TIME => 1,
        _ => return (0, NO_DELETION_TIME, Reverse(0)),
    };
    (kind, cell.local_deletion_time, Reverse(cell.ttl))
}

/// An expired cell that has become one counts as a tombstone by its lack of a TTL.
fn is_tombstone(cell: &Cell) -> bool {
    cell.is_tombstone() || (cell.local_deletion_time != NO_DELETION_TIME && !cell.is_expiring())
}

fn value_of(cell: &Cell) -> &[u8] {
    match &cell.value {
        CellValue::Value(value) => value,
        CellValue::Tombstone => &[],
    }
}

/// At most one of the two is a tombstone.
fn reconcile_counters(cell: &mut Cell, other: Cell) {
    let (own, value) = (value_of(cell), value_of(&other));
    if is_tombstone(cell) || is_tombstone(&other) {
        if is_tombstone(&other) {
            *cell = other;
        }
    } else if own.is_empty() || value.is_empty() {
        // A counter whose value was skipped stays one.
        if (value.is_empty(), other.timestamp) > (own.is_empty(), cell.timestamp) {
            *cell = other;
        }
    } else {
        merge_contexts(cell, other);
    }
}

/// A malformed context cannot be merged: the two are then reconciled as plain values.
fn merge_contexts(cell: &mut Cell, other: Cell) {
    let timestamp = cell.timestamp.max(other.timestamp);
    match counter::merge(value_of(cell), value_of(&other)) {
        Some(Merged::Left) => {}
        Some(Merged::Right) => cell.value = other.value,
        Some(Merged::New(context)) => cell.value = CellValue::Value(context),
        None if wins(&other, cell) => *cell = other,
        None => {}
    }
    cell.timestamp = timestamp;
}

/// All of a row but its columns.
struct RowHead {
    liveness: Liveness,
    deletion: DeletionTime,
    shadowable: DeletionTime,
    /// The deletion in force for the row's columns.
    active: DeletionTime,
}

impl RowHead {
    fn of(rows: &[Row], active: DeletionTime) -> RowHead {
        let liveness = rows.iter().map(|row| row.liveness).fold(Liveness::NONE, greater_liveness);
        let greatest = |of: fn(&Row) -> DeletionTime| rows.iter().map(of).max().unwrap_or(DeletionTime::LIVE);
        let deletion = beyond(greatest(|row| row.deletion), active);
        let active = active.max(deletion);
        let shadowable = beyond(greatest(|row| row.shadowable), active);
        let is_lifted = liveness.timestamp > shadowable.marked_for_delete_at;
        let shadowable = if is_lifted { DeletionTime::LIVE } else { shadowable };
        let active = active.max(shadowable);
        RowHead {
            liveness: if active.deletes(liveness.timestamp) { Liveness::NONE } else { liveness },
            deletion,
            shadowable,
            active,
        }
    }
}

/// A deletion, if another one does not delete all that it does.
fn beyond(deletion: DeletionTime, other: DeletionTime) -> DeletionTime {
    if deletion.supersedes(&other) { deletion } else { DeletionTime::LIVE }
}

fn greater_liveness(a: Liveness, b: Liveness) -> Liveness {
    if b.supersedes(&a) { b } else { a }
}

/// The row with most cells: the others are merged into it.
fn take_largest(rows: &mut Vec<Row>) -> Option<Row> {
    let (largest, _) = rows.iter().enumerate().max_by_key(|(_, row)| row.cells.len())?;
    Some(rows.swap_remove(largest))
}

fn add_complex_deletions(deletions: &mut Vec<(u16, DeletionTime)>, row: &Row) {
    for &(column, deletion) in &row.complex_deletions {
        match deletions.binary_search_by_key(&column, |(column, _)| *column) {
            Ok(at) => deletions[at].1 = deletions[at].1.max(deletion),
            Err(at) => deletions.insert(at, (column, deletion)),
        }
    }
}

/// Removes the cells that the row's or their column's deletion covers.
fn retain_unshadowed(cells: &mut Vec<Cell>, active: DeletionTime, complex: &[(u16, DeletionTime)]) {
    if active.is_live() && complex.is_empty() {
        return;
    }
    cells.retain(|cell| {
        let own = complex.binary_search_by_key(&cell.column, |(column, _)| *column);
        !active.deletes(cell.timestamp) && !own.is_ok_and(|at| complex[at].1.deletes(cell.timestamp))
    });
}

#[cfg(test)]
mod tests;
