//! A row that is looked for among rows as they stand, of which none is decoded.
//!
//! ```text
//! 1 byte kind   1 byte flags   1 byte columns: 1   1 byte length + 1   the number, of 1, 2, 4 or 8 bytes
//! ```
//!
//! A row whose one clustering column is a whole number, as of many a series, begins like this. A search compares four bytes and one
//! number then; all else goes value by value.

use std::cmp::Ordering;

use super::cursor::Cursor;
use super::place::Ends;
use super::{FlatError, compare_place, kind};
use crate::{Bytes, CqlType, Weight};

/// A row by the values of all its clustering columns.
#[derive(Clone, Copy, Debug)]
pub struct SoughtRow<'a> {
    types: &'a [CqlType],
    values: &'a [&'a [u8]],
    number: Option<Number>,
}

/// The value of a row's one clustering column.
#[derive(Clone, Copy, Debug)]
struct Number {
    /// How a row begins that has such a value, but for its flags.
    head: u32,
    /// The bits of eight bytes that are its value.
    value: u64,
    /// Those of them that are turned over.
    turned: u64,
    /// What they have to be then.
    rank: u64,
}

/// Where the flags are, in the first bytes of a row as a number whose lowest byte is the first one.
const FLAGS: u32 = 0xff00;

/// Bytes of a head and of a number.
const HEAD: usize = 4;
const LONGEST: usize = 8;

impl<'a> SoughtRow<'a> {
    /// The row of a partition with clustering columns of these types that has these values.
    #[inline]
    pub fn new(types: &'a [CqlType], values: &'a [&'a [u8]]) -> SoughtRow<'a> {
        let number = match (types, values) {
            ([of], [value]) => Number::new(of, value),
            _ => None,
        };
        SoughtRow { types, values, number }
    }

    /// Where the fragment stands that begins at `at`, which is a row or a range tombstone, beside this row.
    ///
    /// # Errors
    /// If neither is there.
    ///
    /// # Panics
    /// If `at` is past the end.
    #[inline]
    pub fn compare_at(&self, bytes: &Bytes, at: usize) -> Result<Ordering, FlatError> {
        if let Some(number) = &self.number
            && let Some(order) = number.compare(&bytes[at..])
        {
            return Ok(order);
        }
        self.compare_any_at(bytes, at)
    }

    fn compare_any_at(&self, bytes: &Bytes, at: usize) -> Result<Ordering, FlatError> {
        let mut cursor = Cursor::new(bytes, at);
        let ends = Ends(self.values.iter().map(|value| Some(*value)), Weight::At);
        compare_place(&mut cursor, self.types, ends).map_err(|fault| cursor.error(fault))
    }
}

impl Number {
    #[inline]
    fn new(of: &CqlType, value: &[u8]) -> Option<Number> {
        let order = of.number_order().filter(|order| order.len == value.len())?;
        let head = u32::from_le_bytes([kind::ROW, 0, 1, order.len as u8 + 1]);
        let bits = u64::MAX << (u64::BITS - u8::BITS * order.len as u32);
        let turned = order.turned & bits;
        Some(Number { head, value: bits, turned, rank: order.rank(value) & bits })
    }

    /// Where a row stands beside that of this number; `None` if it does not begin like this, or is too short to see it at once.
    #[inline]
    fn compare(&self, row: &[u8]) -> Option<Ordering> {
        let bytes: &[u8; HEAD + LONGEST] = row.first_chunk()?;
        let (head, number) = bytes.split_at(HEAD);
        let head = u32::from_le_bytes(head.try_into().ok()?);
        if head & !FLAGS != self.head {
            return None;
        }
        let rank = u64::from_be_bytes(number.try_into().ok()?) & self.value ^ self.turned;
        Some(rank.cmp(&self.rank))
    }
}

#[cfg(test)]
mod tests {
    use super::super::put_fragment;
    use super::*;
    use crate::{Clustering, DeletionTime, Fragment, Liveness, Position, Row};

    fn types() -> Vec<CqlType> {
        let types = [
            CqlType::Int,
            CqlType::BigInt,
            CqlType::SmallInt,
            CqlType::TinyInt,
            CqlType::Timestamp,
            CqlType::Date,
            CqlType::Time,
        ];
        types.into_iter().flat_map(|of| [of.clone(), CqlType::Reversed(Box::new(of))]).collect()
    }

    fn clustering(value: Option<&[u8]>) -> Clustering {
        Clustering { values: std::iter::once(value.map(Bytes::from)).collect() }
    }

    fn row(value: Option<&[u8]>) -> Fragment {
        let liveness = Liveness { timestamp: 7, ..Liveness::NONE };
        Fragment::Row(Row { liveness, ..Row::new(clustering(value)) })
    }

    /// Bytes in which a fragment begins at the third one.
    fn bytes(fragment: &Fragment, behind: usize) -> Bytes {
        let mut bytes = vec![0; 2];
        put_fragment(fragment, &mut bytes);
        bytes.resize(bytes.len() + behind, 0xff);
        Bytes::from(bytes)
    }

    #[test]
    fn numbers_stand_in_the_order_of_their_type() {
        let numbers = [i64::MIN, -1 << 40, -257, -1, 0, 1, 256, 1 << 40, i64::MAX, 0x7fff_ffff, 0x8000_0000];
        for of in types() {
            let len = of.number_order().unwrap().len;
            let values: Vec<_> =
                numbers.iter().map(|number| number.to_be_bytes()[8 - len..].to_vec()).collect();
            for (own, sought) in values.iter().flat_map(|own| values.iter().map(move |sought| (own, sought)))
            {
                let (types, sought) = (std::slice::from_ref(&of), &[&**sought][..]);
                let sought_row = SoughtRow::new(types, sought);
                assert!(sought_row.number.is_some());
                for behind in [0, 8] {
                    let order = sought_row.compare_at(&bytes(&row(Some(own)), behind), 2);
                    assert_eq!(order, Ok(of.compare(own, sought[0])), "{of:?}: {own:02x?}, {sought:02x?}");
                }
            }
        }
    }

    #[test]
    fn others_are_compared_by_their_values() {
        for of in types() {
            let len = of.number_order().unwrap().len;
            let (types, sought) = (std::slice::from_ref(&of), &[&[0; 8][..len]][..]);
            let sought = SoughtRow::new(types, sought);
            assert_eq!(sought.compare_at(&bytes(&row(None), 8), 2), Ok(Ordering::Less));
            for other in (0..=8).filter(|other| *other != len) {
                let order = sought.compare_at(&bytes(&row(Some(&[0; 8][..other])), 8), 2);
                assert_eq!(order, Ok(of.compare(&[0; 8][..other], &[0; 8][..len])), "{of:?}: {other}");
            }
            for (position, expected) in [
                (Position::before(clustering(Some(&[0; 8][..len]))), Ordering::Less),
                (Position::end(), Ordering::Greater),
            ] {
                let change = Fragment::change(position, DeletionTime::LIVE);
                assert_eq!(sought.compare_at(&bytes(&change, 8), 2), Ok(expected));
            }
            assert!(sought.compare_at(&bytes(&Fragment::PartitionEnd, 20), 2).is_err());
        }
    }
}
