//! Rows and range tombstones as bytes: the writing side of [`super`], where the bytes are drawn.
//!
//! Where a format leaves a choice, it is made as Cassandra makes it, so that the same rows give the same bytes.

use model::time::NO_DELETION_TIME;
use model::{Cell, CellValue, Clustering, DeletionTime, Liveness, Position, Row, Weight};

use super::{ColumnCodec, Family, KIND_ROW, RowCodec, Value, Width, cell_flag, flag};
use crate::Version;
use crate::encode::{Encode, put_vint_at, vint_len};

/// What the vint of a deletion that is live adds to the least deletion time, before `oa`.
const LEGACY_NO_DELETION_TIME: i64 = i32::MAX as i64;

/// One column of a row: its cells, and the deletion of all that were there before.
struct ColumnData<'a> {
    index: u16,
    deletion: Option<DeletionTime>,
    cells: &'a [Cell],
}

impl RowCodec {
    /// Appends the head of a partition.
    pub fn put_partition_head(&self, key: &[u8], deletion: &DeletionTime, to: &mut Vec<u8>) {
        to.put_short_bytes(key);
        put_deletion_time(deletion, self.version, to);
    }

    /// Appends a static row. A partition of a table with static columns has one, be it empty.
    pub fn put_static_row(&self, row: &Row, to: &mut Vec<u8>) {
        self.put_any_row(row, None, 0, to);
    }

    /// Appends a clustered row. `place` is what [`RowCodec::put_row_prefix`] gives of it. `previous` is how far before
    /// it the last row or marker began, in bytes; for the first one, the length of the partition's head.
    pub fn put_row(&self, row: &Row, place: &[u8], previous: u64, to: &mut Vec<u8>) {
        self.put_any_row(row, Some(&place[1..]), previous, to);
    }

    /// Appends a marker: the end of a range tombstone, the start of one, or both.
    ///
    /// # Panics
    /// If it is neither, or stands at a row.
    pub fn put_marker(
        &self,
        position: &Position,
        closes: Option<&DeletionTime>,
        opens: Option<&DeletionTime>,
        previous: u64,
        to: &mut Vec<u8>,
    ) {
        to.put_u8(flag::MARKER);
        self.put_bound(
            kind_of_marker(position.weight, closes.is_some(), opens.is_some()),
            &position.prefix,
            to,
        );
        let deletions = || closes.into_iter().chain(opens);
        let len: usize = deletions().map(|deletion| self.row_deletion_len(deletion)).sum();
        to.put_vint((len + vint_len(previous)) as u64);
        to.put_vint(previous);
        deletions().for_each(|deletion| self.put_row_deletion(deletion, to));
    }

    /// Appends the byte that ends a partition.
    pub fn put_end_of_partition(&self, to: &mut Vec<u8>) {
        to.put_u8(flag::END_OF_PARTITION);
    }

    /// Appends the place of a row, as the promoted index has it.
    pub fn put_row_prefix(&self, clustering: &Clustering, to: &mut Vec<u8>) {
        to.put_u8(KIND_ROW);
        self.put_clustering_values(clustering, to);
    }

    /// The same of values where they lie; `false` if they have other lengths than their types: those have no bytes in an SSTable.
    #[inline]
    pub(crate) fn try_put_row_prefix<V>(
        &self,
        values: &[V],
        value_of: impl Fn(&V) -> Value<'_>,
        to: &mut Vec<u8>,
    ) -> bool {
        let mut both = values.iter().zip(&self.clustering);
        let is_of_lengths = both.all(|(value, &width)| {
            let len = value_of(value).map_or(0, <[u8]>::len);
            len == 0 || width.is_none_or(|width| width == len)
        });
        if is_of_lengths {
            to.put_u8(KIND_ROW);
            self.put_values(values, value_of, to);
        }
        is_of_lengths
    }

    /// Appends the place of a marker, as the promoted index has it.
    ///
    /// # Panics
    /// As [`RowCodec::put_marker`].
    pub fn put_marker_prefix(&self, position: &Position, closes: bool, opens: bool, to: &mut Vec<u8>) {
        self.put_bound(kind_of_marker(position.weight, closes, opens), &position.prefix, to);
    }

    fn put_bound(&self, kind: u8, prefix: &Clustering, to: &mut Vec<u8>) {
        to.put_u8(kind);
        to.put_u16(prefix.len() as u16);
        self.put_clustering_values(prefix, to);
    }

    /// Appends a row: the static one if it has no values of a clustering key, encoded.
    fn put_any_row(&self, row: &Row, clustering: Option<&[u8]>, previous: u64, to: &mut Vec<u8>) {
        let columns = if clustering.is_none() { &self.statics } else { &self.regulars };
        let (flags, extended) = self.flags(row, clustering.is_none(), count_columns(row) == columns.len());
        to.put_u8(flags);
        if flags & flag::EXTENDED != 0 {
            to.put_u8(extended);
        }
        if let Some(clustering) = clustering {
            to.put(clustering);
        }
        put_behind_len(vint_len(likely_len(row)), to, |to| {
            to.put_vint(previous);
            self.put_body(row, columns, flags, extended, to);
        });
    }

    fn flags(&self, row: &Row, is_static: bool, has_all: bool) -> (u8, u8) {
        let mut flags = 0;
        let mut extended = if is_static { flag::EXTENDED_STATIC } else { 0 };
        let mut set = |is: bool, bit: u8| flags |= if is { bit } else { 0 };
        set(!row.liveness.is_none(), flag::TIMESTAMP);
        set(row.liveness.is_expiring(), flag::TTL);
        set(has_all, flag::ALL_COLUMNS);
        set(!row.complex_deletions.is_empty(), flag::COMPLEX_DELETION);
        set(!row.deletion.is_live(), flag::DELETION);
        if self.tells_shadowable(row) {
            match self.family {
                Family::Scylla => extended |= flag::EXTENDED_SCYLLA_SHADOWABLE,
                Family::Cassandra => {
                    assert!(row.deletion.is_live(), "Cassandra has one deletion a row");
                    set(true, flag::DELETION);
                    extended |= flag::EXTENDED_SHADOWABLE;
                }
            }
        }
        set(extended != 0, flag::EXTENDED);
        (flags, extended)
    }

    /// Whether the row's shadowable deletion is written. Beside a greater one that is not shadowable it says nothing.
    fn tells_shadowable(&self, row: &Row) -> bool {
        !row.shadowable.is_live() && (self.family == Family::Scylla || row.shadowable > row.deletion)
    }

    fn put_body(&self, row: &Row, columns: &[ColumnCodec], flags: u8, extended: u8, to: &mut Vec<u8>) {
        if flags & flag::TIMESTAMP != 0 {
            self.put_liveness(&row.liveness, to);
        }
        let is_shadowable = extended & flag::EXTENDED_SHADOWABLE != 0;
        if flags & flag::DELETION != 0 {
            self.put_row_deletion(if is_shadowable { &row.shadowable } else { &row.deletion }, to);
        }
        if extended & flag::EXTENDED_SCYLLA_SHADOWABLE != 0 {
            self.put_row_deletion(&row.shadowable, to);
        }
        if flags & flag::ALL_COLUMNS == 0 {
            put_subset(row, columns.len(), to);
        }
        let with_deletion = flags & flag::COMPLEX_DELETION != 0;
        let put_column = |data: ColumnData<'_>| {
            let column = &columns[usize::from(data.index)];
            if column.is_complex {
                self.put_complex(&data, column, with_deletion, &row.liveness, to);
            } else {
                assert!(data.cells.len() == 1 && data.deletion.is_none(), "a simple column has one cell");
                self.put_cell(&data.cells[0], column, &row.liveness, to);
            }
        };
        if with_deletion {
            columns_of(row).for_each(put_column);
        } else {
            columns_of_cells(row).for_each(put_column);
        }
    }

    fn put_complex(
        &self,
        data: &ColumnData<'_>,
        column: &ColumnCodec,
        with_deletion: bool,
        liveness: &Liveness,
        to: &mut Vec<u8>,
    ) {
        if with_deletion {
            self.put_row_deletion(&data.deletion.unwrap_or(DeletionTime::LIVE), to);
        }
        to.put_vint(data.cells.len() as u64);
        data.cells.iter().for_each(|cell| self.put_cell(cell, column, liveness, to));
    }

    #[inline]
    fn put_cell(&self, cell: &Cell, column: &ColumnCodec, row: &Liveness, to: &mut Vec<u8>) {
        let value = match &cell.value {
            CellValue::Value(value) => &value[..],
            CellValue::Tombstone => &[],
        };
        let (deleted, expiring) = (cell.is_tombstone(), cell.is_expiring() && !cell.is_tombstone());
        let row_timestamp = !row.is_none() && cell.timestamp == row.timestamp;
        let same_expiry = (cell.ttl, cell.local_deletion_time) == (row.ttl, row.local_expiration_time);
        let row_ttl = expiring && row.is_expiring() && same_expiry;
        let bit = |is: bool, bit: u8| if is { bit } else { 0 };
        to.put_u8(
            bit(deleted, cell_flag::DELETED)
                | bit(expiring, cell_flag::EXPIRING)
                | bit(value.is_empty(), cell_flag::EMPTY)
                | bit(row_timestamp, cell_flag::ROW_TIMESTAMP)
                | bit(row_ttl, cell_flag::ROW_TTL),
        );
        if !row_timestamp {
            self.put_timestamp(cell.timestamp, to);
        }
        if (deleted || expiring) && !row_ttl {
            self.put_local_deletion_time(cell.local_deletion_time, to);
        }
        if expiring && !row_ttl {
            self.put_ttl(cell.ttl, to);
        }
        if column.is_complex {
            to.put_vint_bytes(cell.path.as_deref().unwrap_or_default());
        }
        if !value.is_empty() {
            put_value(column.width, value, to);
        }
    }

    fn put_liveness(&self, liveness: &Liveness, to: &mut Vec<u8>) {
        self.put_timestamp(liveness.timestamp, to);
        if liveness.is_expiring() {
            self.put_ttl(liveness.ttl, to);
            self.put_local_deletion_time(liveness.local_expiration_time, to);
        }
    }

    /// Appends the place of a row with these values, as [`RowCodec::put_row_prefix`] does.
    #[inline]
    pub(crate) fn put_prefix_of_values(&self, values: &[Value<'_>], to: &mut Vec<u8>) {
        to.put_u8(KIND_ROW);
        self.put_values(values, |value| *value, to);
    }

    /// The first values of a clustering key, without telling how many.
    #[inline]
    fn put_clustering_values(&self, clustering: &Clustering, to: &mut Vec<u8>) {
        self.put_values(&clustering.values, Option::as_deref, to);
    }

    #[inline]
    fn put_values<V>(&self, values: &[V], value_of: impl Fn(&V) -> Value<'_>, to: &mut Vec<u8>) {
        for (first, values) in (0..).step_by(32).zip(values.chunks(32)) {
            let mut bits = 0_u64;
            for (i, value) in values.iter().enumerate() {
                bits |= match value_of(value) {
                    Some([]) => 0b01,
                    Some(_) => 0b00,
                    None => 0b10,
                } << (2 * i);
            }
            to.put_vint(bits);
            for (value, &width) in values.iter().zip(&self.clustering[first..]) {
                if let Some(value) = value_of(value).filter(|value| !value.is_empty()) {
                    put_value(width, value, to);
                }
            }
        }
    }

    #[inline]
    fn put_timestamp(&self, timestamp: i64, to: &mut Vec<u8>) {
        to.put_vint(timestamp.wrapping_sub(self.minima.timestamp) as u64);
    }

    fn put_local_deletion_time(&self, seconds: i64, to: &mut Vec<u8>) {
        to.put_vint(self.deletion_time_delta(seconds));
    }

    fn put_ttl(&self, ttl: u32, to: &mut Vec<u8>) {
        to.put_vint(i64::from(ttl).wrapping_sub(self.minima.ttl) as u64);
    }

    fn put_row_deletion(&self, deletion: &DeletionTime, to: &mut Vec<u8>) {
        self.put_timestamp(deletion.marked_for_delete_at, to);
        self.put_local_deletion_time(deletion.local_deletion_time, to);
    }

    fn row_deletion_len(&self, deletion: &DeletionTime) -> usize {
        let timestamp = deletion.marked_for_delete_at.wrapping_sub(self.minima.timestamp) as u64;
        let local = self.deletion_time_delta(deletion.local_deletion_time);
        vint_len(timestamp) + vint_len(local)
    }

    /// Seconds above the least deletion time. Before `oa` these are numbers of 32 bits with a sign.
    fn deletion_time_delta(&self, seconds: i64) -> u64 {
        let least = self.minima.local_deletion_time;
        if self.version.has_uint_deletion_time() {
            return i64::from(seconds.wrapping_sub(least) as i32) as u64;
        }
        let seconds = if seconds == NO_DELETION_TIME { LEGACY_NO_DELETION_TIME } else { seconds };
        i64::from((seconds as i32).wrapping_sub(least as i32)) as u64
    }
}

/// Appends a deletion as partitions and index blocks have it: the other side of [`super::deletion_time`].
pub fn put_deletion_time(deletion: &DeletionTime, version: Version, to: &mut Vec<u8>) {
    if !version.has_uint_deletion_time() {
        let local = match deletion.local_deletion_time {
            NO_DELETION_TIME => LEGACY_NO_DELETION_TIME,
            // What is beyond 32 bits is not one, and negative then.
            seconds => seconds,
        };
        to.put_i32(local as i32);
        return to.put_i64(deletion.marked_for_delete_at);
    }
    if deletion.is_live() {
        return to.put_u8(0x80);
    }
    to.put_i64(deletion.marked_for_delete_at);
    to.put_u32(deletion.local_deletion_time.min(i64::from(u32::MAX)) as u32);
}

/// About how many bytes the body of a row takes: its values, and a few bytes for the row and for each of its cells.
#[inline]
fn likely_len(row: &Row) -> u64 {
    let len = |cell: &Cell| match &cell.value {
        CellValue::Value(value) => 3 + value.len() as u64,
        CellValue::Tombstone => 5,
    };
    4 + row.cells.iter().map(len).sum::<u64>()
}

/// Appends what `put` appends, behind a vint of how many bytes that is. So many bytes are left for the vint; if it
/// takes more or fewer, what follows is moved.
#[inline]
fn put_behind_len(expected: usize, to: &mut Vec<u8>, put: impl FnOnce(&mut Vec<u8>)) {
    let start = to.len();
    to.put(&[0; 9][..expected]);
    put(to);
    let len = to.len() - start - expected;
    let taken = vint_len(len as u64);
    if taken != expected {
        to.resize(start + taken.max(expected) + len, 0);
        to.copy_within(start + expected..start + expected + len, start + taken);
        to.truncate(start + taken + len);
    }
    put_vint_at(len as u64, &mut to[start..start + taken]);
}

/// How many columns a row has.
fn count_columns(row: &Row) -> usize {
    if !row.complex_deletions.is_empty() {
        return columns_of(row).count();
    }
    let mut last = None;
    row.cells.iter().filter(|cell| last.replace(cell.column) != Some(cell.column)).count()
}

/// The columns that a row has without deletions of columns, in order.
fn columns_of_cells(row: &Row) -> impl Iterator<Item = ColumnData<'_>> {
    let cells = row.cells.chunk_by(|a, b| a.column == b.column);
    cells.map(|cells| ColumnData { index: cells[0].column, deletion: None, cells })
}

/// The columns that a row has, in order.
fn columns_of(row: &Row) -> impl Iterator<Item = ColumnData<'_>> {
    let mut cells = row.cells.chunk_by(|a, b| a.column == b.column).peekable();
    let mut deletions = row.complex_deletions.iter().peekable();
    std::iter::from_fn(move || {
        let of_cells = cells.peek().map(|cells| cells[0].column);
        let of_deletions = deletions.peek().map(|deletion| deletion.0);
        let index = match (of_cells, of_deletions) {
            (Some(a), Some(b)) => a.min(b),
            (a, b) => a.or(b)?,
        };
        let cells = cells.next_if(|cells| cells[0].column == index).unwrap_or_default();
        let deletion = deletions.next_if(|deletion| deletion.0 == index).map(|deletion| deletion.1);
        Some(ColumnData { index, deletion, cells })
    })
}

/// Which columns a row that lacks some has: see [`super::present_columns`].
fn put_subset(row: &Row, all: usize, to: &mut Vec<u8>) {
    if all < 64 {
        let present = columns_of(row).fold(0_u64, |bits, data| bits | 1 << data.index);
        return to.put_vint(!present & ((1 << all) - 1));
    }
    let present: Vec<u16> = columns_of(row).map(|data| data.index).collect();
    to.put_vint((all - present.len()) as u64);
    if present.len() < all / 2 {
        return present.iter().for_each(|&index| to.put_vint(u64::from(index)));
    }
    let missing = (0..all as u64).filter(|&index| present.binary_search(&(index as u16)).is_err());
    missing.for_each(|index| to.put_vint(index));
}

#[inline]
pub(super) fn put_value(width: Width, value: &[u8], to: &mut Vec<u8>) {
    match width {
        Some(len) => {
            assert!(value.len() == len, "a value of {} bytes where its type has {len}", value.len());
            to.put(value);
        }
        None => to.put_vint_bytes(value),
    }
}

/// The kind byte of a marker.
fn kind_of_marker(weight: Weight, closes: bool, opens: bool) -> u8 {
    match (weight, closes, opens) {
        (Weight::Before, true, false) => 0,
        (Weight::Before, false, true) => 1,
        (Weight::Before, true, true) => 2,
        (Weight::After, true, true) => 5,
        (Weight::After, true, false) => 6,
        (Weight::After, false, true) => 7,
        _ => panic!("a marker stands beside rows, and opens or closes a range tombstone"),
    }
}

#[cfg(test)]
#[path = "encode_tests.rs"]
mod tests;
