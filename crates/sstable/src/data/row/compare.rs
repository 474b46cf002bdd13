//! How encoded positions stand to decoded ones: what searches and skips ask of thousands, and decode but one of.
//!
//! Nothing is copied and nothing is counted; a value is compared where it lies.

use std::cmp::Ordering;

use model::clustering::{compare_ends, compare_values};
use model::{Position, Schema, Weight};

use super::{Decoded, Place, RowCodec, Source, Width, flag};
use crate::decode::Cursor;

impl RowCodec {
    /// Where the rows from `at` on end that stand before a position: they are stepped over without being decoded. At the
    /// first that does not, or is not plain, or not at hand as a whole, it is at its end.
    pub fn rows_before(&self, source: Source<'_>, at: usize, schema: &Schema, position: &Position) -> usize {
        let mut at = at;
        // A block has hundreds of small rows, of which a slice in its middle wants none: the usual keys have a loop of their own.
        if let ([Some(width)], [data_type], [Some(value)]) =
            (&*self.clustering, &*schema.clustering, &*position.prefix.values)
        {
            let is_before =
                |key: &[u8]| data_type.compare(key, value).then(Weight::At.cmp(&position.weight)).is_lt();
            while let Some(end) = plain_row(&source.owner[..source.end], at, *width, is_before) {
                at = end;
            }
        }
        while let Ok(Some(end)) = self.row_before(source, at, schema, position) {
            at = end;
        }
        at
    }

    /// Where the row at `at` ends, if one is there that stands before a position. `None` where something else is, or a row
    /// that is not plain.
    #[inline]
    fn row_before(
        &self,
        source: Source<'_>,
        at: usize,
        schema: &Schema,
        position: &Position,
    ) -> Decoded<Option<usize>> {
        let mut place = source.cursor(at);
        let flags = place.cursor.u8()?;
        if flags & (flag::END_OF_PARTITION | flag::MARKER | flag::EXTENDED) != 0 {
            return Ok(None);
        }
        let row = (self.clustering.len(), Weight::At);
        if self.order_of(&mut place, row, schema, position)?.is_ge() {
            return Ok(None);
        }
        self.body(&mut place).map(|body| Some(body.end))
    }

    /// How a clustering prefix with its kind stands to a position, and where it ends.
    #[inline]
    pub fn compare_prefix(
        &self,
        source: Source<'_>,
        at: usize,
        schema: &Schema,
        position: &Position,
    ) -> Decoded<(Ordering, usize)> {
        let mut place = source.cursor(at);
        let prefix = self.kind_of_prefix(&mut place)?;
        let order = self.order_of(&mut place, prefix, schema, position)?;
        Ok((order, place.at()))
    }

    /// How as many values as this, on that side of them, stand to a position. Goes behind them.
    #[inline]
    fn order_of(
        &self,
        place: &mut Place<'_>,
        (count, weight): (usize, Weight),
        schema: &Schema,
        position: &Position,
    ) -> Decoded<Ordering> {
        // Most tables have one clustering column, and most values are neither empty nor null: searches do little else.
        if let ([Some(width)], [data_type], [Some(other)]) =
            (&*self.clustering, &*schema.clustering, &*position.prefix.values)
            && count == 1
            && let Some(value) = place.value_at_hand(*width)
        {
            return Ok(data_type.compare(value, other).then(weight.cmp(&position.weight)));
        }
        self.order_of_any(place, (count, weight), schema, position)
    }

    fn order_of_any(
        &self,
        place: &mut Place<'_>,
        (count, weight): (usize, Weight),
        schema: &Schema,
        position: &Position,
    ) -> Decoded<Ordering> {
        let mut others = position.prefix.values.iter();
        let mut order = Ordering::Equal;
        let mut bits = 0;
        for (i, (&width, data_type)) in self.clustering[..count].iter().zip(&schema.clustering).enumerate() {
            if i % 32 == 0 {
                bits = place.cursor.vint()?;
            }
            let value = match (bits >> (2 * (i % 32))) & 0b11 {
                0b00 => Some(place.bytes(width)?),
                0b01 => Some(&[][..]),
                _ => None,
            };
            if let (Ordering::Equal, Some(other)) = (order, others.next()) {
                order = compare_values(data_type, value, other.as_deref());
            }
        }
        let ends = || compare_ends((count, weight), (position.prefix.len(), position.weight));
        Ok(order.then_with(ends))
    }
}

impl<'a> Place<'a> {
    /// The bytes of one clustering value behind its header, if it is neither empty nor null and all of it is there.
    #[inline]
    fn value_at_hand(&mut self, width: usize) -> Option<&'a [u8]> {
        let (header, rest) = self.cursor.rest().split_first()?;
        let value = rest.get(..width).filter(|_| *header == 0)?;
        self.cursor.skip(1 + width).ok()?;
        Some(value)
    }

    /// The bytes of a value.
    #[inline]
    fn bytes(&mut self, width: Width) -> Decoded<&'a [u8]> {
        let len = self.len_of(width)?;
        self.cursor.take(len)
    }
}

/// Where the row at `at` ends, if all of it is there and its key, one value of this width, is as it should be.
#[inline]
fn plain_row(bytes: &[u8], at: usize, width: usize, is_right: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let [flags, 0, rest @ ..] = bytes.get(at..)? else { return None };
    if flags & (flag::END_OF_PARTITION | flag::MARKER | flag::EXTENDED) != 0 {
        return None;
    }
    let (key, rest) = rest.split_at_checked(width).filter(|(key, _)| is_right(key))?;
    let (size, size_len) = match *rest {
        [first, ..] if first < 0x80 => (usize::from(first), 1),
        [first, second, ..] if first < 0xc0 => (usize::from(first & 0x3f) << 8 | usize::from(second), 2),
        _ => {
            let mut cursor = Cursor::new(rest);
            (cursor.vint_len().ok()?, cursor.position())
        }
    };
    let end = at + 2 + key.len() + size_len + size;
    (end <= bytes.len()).then_some(end)
}
