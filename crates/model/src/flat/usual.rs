//! Usual rows put together piece by piece, by who has no [`Row`](crate::Row) of them.

use super::{kind, place, row};

/// A [usual](super::is_usual) row that is being put together: the values of its clustering key, its marker, and its cells, in this
/// order. Its bytes are those that [`put_fragment`](super::put_fragment) gives of the same row.
#[derive(Debug)]
pub struct UsualRow<'o>(&'o mut Vec<u8>);

impl<'o> UsualRow<'o> {
    /// Begins behind what is there already. So many values of the clustering key will be put.
    #[inline]
    pub fn begin(clustering: usize, out: &'o mut Vec<u8>) -> UsualRow<'o> {
        row::begin_usual(kind::ROW, clustering, out);
        UsualRow(out)
    }

    /// Appends the next value of the clustering key, which is not null.
    #[inline]
    pub fn clustering_value(&mut self, value: &[u8]) {
        place::put_value(Some(value), self.0);
    }

    /// Appends the marker, in microseconds, and how many cells will be put; `false` if no usual row has such a marker: what was put
    /// is of no worth then.
    #[inline]
    pub fn marker(&mut self, timestamp: i64, cells: usize) -> bool {
        row::put_usual_marker(timestamp, cells, self.0)
    }

    /// Appends the cell of the next column, which has the row's timestamp.
    ///
    /// # Panics
    /// If it has no value: no usual row has such a cell.
    #[inline]
    pub fn cell(&mut self, value: &[u8]) {
        assert!(!value.is_empty(), "the cells of a usual row have values");
        row::put_usual_cell(value, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{is_usual, put_fragment};
    use super::*;
    use crate::time::{NO_DELETION_TIME, NO_TIMESTAMP};
    use crate::{Bytes, Cell, CellValue, Clustering, Fragment, Liveness, Row};

    #[test]
    fn the_bytes_are_those_of_the_same_row() {
        let long = vec![7; 300];
        let mut usual = 0;
        for timestamp in [NO_TIMESTAMP, super::super::stamp::EPOCH, -1, 0, 1_700_000_000_000_000, i64::MAX] {
            for (key, values) in [
                (&[][..], &[][..]),
                (&[&b"a"[..], b""], &[&long[..]]),
                (&[&long, b"b", b"c"], &[b"x", &long, b"yz"]),
            ] {
                let cell = |(column, value): (u16, &&[u8])| Cell {
                    column,
                    ttl: 0,
                    timestamp,
                    local_deletion_time: NO_DELETION_TIME,
                    path: None,
                    value: CellValue::Value(Bytes::from(*value)),
                };
                let clustering: Clustering = key.iter().map(|value| value.to_vec()).collect();
                let fragment = Fragment::Row(Row {
                    liveness: Liveness { timestamp, ..Liveness::NONE },
                    cells: (0..).zip(values).map(cell).collect(),
                    ..Row::new(clustering)
                });
                let (mut expected, mut out) = (b"before".to_vec(), b"before".to_vec());
                put_fragment(&fragment, &mut expected);
                let mut row = UsualRow::begin(key.len(), &mut out);
                key.iter().for_each(|value| row.clustering_value(value));
                assert_eq!(row.marker(timestamp, values.len()), is_usual(&fragment), "{fragment:?}");
                if is_usual(&fragment) {
                    values.iter().for_each(|value| row.cell(value));
                    assert_eq!(out, expected);
                    usual += 1;
                }
            }
        }
        assert_eq!(usual, 4 * 3);
    }
}
