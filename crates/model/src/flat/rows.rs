//! Mutations of nothing but rows, put together row by row: who has values need not make a [`Row`](crate::Row) of them first.
//!
//! ```text
//! mutation   01, 00: no flags
//!            key, vint rows, rows
//! ```

use super::cursor::put_bytes;
use super::row::put_plain;
use super::stamp::Base;
use super::{CellView, VERSION};
use crate::Liveness;
use crate::types::vint::put_unsigned;

/// The part of its bytes that a mutation may take as much again.
const SPARE: usize = 4;

/// A mutation of nothing but rows of which nothing is deleted as a whole.
///
/// The bytes are those of [`put_mutation`](super::put_mutation) for the same rows.
#[derive(Debug)]
pub struct PutRows {
    bytes: Vec<u8>,
    base: Base,
    left: usize,
}

impl PutRows {
    /// Of the partition of this key, whose token is Murmur3's. So many rows will be put.
    pub fn new(key: &[u8], rows: usize) -> PutRows {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&[VERSION, 0]);
        put_bytes(key, &mut bytes);
        put_unsigned(rows as u64, &mut bytes);
        PutRows { bytes, base: Base::at_start(), left: rows }
    }

    /// Takes memory for about so many bytes more.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }

    /// Appends a row: the values of its clustering key, its marker ([`Liveness::NONE`] for none), and its cells in their order.
    ///
    /// # Panics
    /// If all rows are there.
    #[inline]
    pub fn put<'v>(
        &mut self,
        clustering: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
        marker: &Liveness,
        cells: impl ExactSizeIterator<Item = CellView<'v>>,
    ) {
        assert!(self.left > 0, "no more rows are put than were announced");
        self.left -= 1;
        put_plain(clustering, marker, cells, &mut self.base, &mut self.bytes);
    }

    /// The bytes, which do not take much more memory than they are.
    ///
    /// # Panics
    /// If rows are missing.
    pub fn finish(mut self) -> Vec<u8> {
        assert!(self.left == 0, "as many rows are put as were announced");
        if self.bytes.capacity() - self.bytes.len() > self.bytes.len() / SPARE {
            self.bytes.shrink_to_fit();
        }
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flat::put_mutation;
    use crate::{Bytes, Cell, CellValue, Mutation, PartitionKey, Row};

    fn cell(column: u16, timestamp: i64, value: Option<&[u8]>) -> Cell {
        let value = value.map_or(CellValue::Tombstone, |value| CellValue::Value(Bytes::from(value)));
        Cell { column, ttl: 0, timestamp, local_deletion_time: 1_700_000_000, path: None, value }
    }

    #[test]
    fn the_bytes_are_those_of_the_mutation() {
        let mut mutation = Mutation::new(PartitionKey::new(Bytes::from(&b"key"[..])));
        for number in 0..300_i32 {
            let mut row = Row::new([number.to_be_bytes().to_vec()].into_iter().collect());
            if number % 3 > 0 {
                let (timestamp, ttl) = (i64::from(number / 2), number.cast_unsigned() % 2 * 60);
                row.liveness = Liveness { timestamp, ttl, local_expiration_time: 1_700_000_060 };
            }
            let value = vec![7; number.cast_unsigned() as usize];
            row.cells =
                vec![cell(0, 3, Some(&value)), cell(4, 4, None), cell(5, i64::from(number), Some(&[]))];
            row.cells.truncate(number.cast_unsigned() as usize % 4);
            mutation.rows.push(row);
        }
        let mut expected = Vec::new();
        put_mutation(&mutation, &mut expected);
        let mut rows = PutRows::new(&mutation.key.bytes, mutation.rows.len());
        for Row { clustering, liveness, cells, .. } in &mutation.rows {
            rows.put(clustering.views(), liveness, cells.iter().map(Cell::as_view));
        }
        assert_eq!(rows.finish(), expected);
    }

    #[test]
    #[should_panic(expected = "as many rows are put as were announced")]
    fn a_row_that_is_missing_is_a_mistake() {
        PutRows::new(b"key", 1).finish();
    }
}
