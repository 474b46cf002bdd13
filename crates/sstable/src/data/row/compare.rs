//! How encoded positions stand to decoded ones: what searches and skips ask of thousands, and decode but one of.
//!
//! Nothing is copied and nothing is counted; a value is compared where it lies.

use std::cmp::Ordering;

use model::clustering::{compare_ends, compare_values};
use model::types::NumberOrder;
use model::{Clustering, Position, Schema, Weight};
use smallvec::SmallVec;

use super::{Decoded, KIND_ROW, RowCodec, Source, body, flag, len_of};
use crate::decode::{Cursor, DecodeError};

/// A clustering value, which may be null.
pub(crate) type Value<'a> = Option<&'a [u8]>;

/// Clustering values where they lie.
pub(crate) type Values<'a> = SmallVec<[Value<'a>; 4]>;

/// A position that many encoded ones are compared with.
pub(crate) struct Sought<'a> {
    codec: &'a RowCodec,
    schema: &'a Schema,
    values: SoughtValues<'a>,
    weight: Weight,
    only: Option<OnlyValue<'a>>,
}

/// Where the values of what is sought are.
#[derive(Clone, Copy)]
enum SoughtValues<'a> {
    Prefix(&'a Clustering),
    Row(&'a [&'a [u8]]),
}

/// The value of the only clustering column, if values of its type have a width: most tables have such a key.
struct OnlyValue<'a> {
    value: &'a [u8],
    width: usize,
    /// The order and the rank of a whole number: two of them are compared as such.
    number: Option<(NumberOrder, u64)>,
}

impl<'a> Sought<'a> {
    /// A position among those that this codec encodes.
    #[inline]
    pub(crate) fn new(codec: &'a RowCodec, schema: &'a Schema, position: &'a Position) -> Sought<'a> {
        Sought::with(codec, schema, SoughtValues::Prefix(&position.prefix), position.weight)
    }

    /// The row with these values in all clustering columns.
    #[inline]
    pub(crate) fn row(codec: &'a RowCodec, schema: &'a Schema, row: &'a [&'a [u8]]) -> Sought<'a> {
        Sought::with(codec, schema, SoughtValues::Row(row), Weight::At)
    }

    #[inline]
    fn with(codec: &'a RowCodec, schema: &'a Schema, values: SoughtValues<'a>, weight: Weight) -> Sought<'a> {
        let only = match (&*codec.clustering, &*schema.clustering, values.len(), values.get(0)) {
            ([Some(width)], [_], 1, Some(value)) => {
                let order = codec.only_number.filter(|order| value.len() == order.len);
                let number = order.map(|order| (order, order.rank(value)));
                Some(OnlyValue { value, width: *width, number })
            }
            _ => None,
        };
        Sought { codec, schema, values, weight, only }
    }

    /// How the clustering prefix with its kind at the start of `bytes` stands to the position.
    #[inline(always)]
    pub(crate) fn compare_prefix(&self, bytes: &[u8]) -> Decoded<Ordering> {
        // Searches do little else than to look at the one value of a row.
        if let (Some(only), [KIND_ROW, 0, rest @ ..]) = (&self.only, bytes)
            && let Some(value) = rest.get(..only.width)
        {
            return Ok(self.order_of(only, value, Weight::At));
        }
        self.compare_any_prefix(bytes)
    }

    #[inline(never)]
    fn compare_any_prefix(&self, bytes: &[u8]) -> Decoded<Ordering> {
        let mut cursor = Cursor::new(bytes);
        let prefix = self.codec.kind_of_prefix(&mut cursor)?;
        self.codec.order_of(&mut cursor, prefix, self)
    }

    /// Whether it stands behind the row with whose clustering values the bytes begin.
    #[inline(always)]
    pub(crate) fn is_behind_row(&self, bytes: &[u8]) -> Decoded<bool> {
        if let (Some(only), [0, rest @ ..]) = (&self.only, bytes)
            && let Some(value) = rest.get(..only.width)
        {
            return Ok(self.order_of(only, value, Weight::At).is_lt());
        }
        self.is_behind_any_row(bytes)
    }

    #[inline(never)]
    fn is_behind_any_row(&self, bytes: &[u8]) -> Decoded<bool> {
        self.order_of_row(bytes).map(Ordering::is_lt)
    }

    /// How the row with whose clustering values the bytes begin stands to it.
    pub(crate) fn order_of_row(&self, bytes: &[u8]) -> Decoded<Ordering> {
        let row = (self.codec.clustering.len(), Weight::At);
        self.codec.order_of_any(&mut Cursor::new(bytes), row, self)
    }

    /// The position as that of a number, if it is one.
    #[inline]
    pub(crate) fn number(&self) -> Option<SoughtNumber> {
        let (_, rank) = self.only.as_ref()?.number?;
        Some(SoughtNumber { rank, weight: self.weight })
    }

    /// The codec that encoded what it is compared with.
    pub(crate) fn codec(&self) -> &RowCodec {
        self.codec
    }

    /// The same values, on this side of them.
    pub(crate) fn with_weight(self, weight: Weight) -> Sought<'a> {
        Sought { weight, ..self }
    }

    /// How a value of the only column, on that side of it, stands to the position.
    #[inline(always)]
    fn order_of(&self, only: &OnlyValue<'_>, value: &[u8], weight: Weight) -> Ordering {
        let values = match only.number {
            Some((order, rank)) => order.rank(value).cmp(&rank),
            None => self.schema.clustering[0].compare(value, only.value),
        };
        values.then(weight.cmp(&self.weight))
    }
}

/// A sought position that is beside a whole number, or at it: the value of the only clustering column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SoughtNumber {
    /// By its rank.
    pub(crate) rank: u64,
    weight: Weight,
}

impl SoughtNumber {
    /// How the row with a number of this rank stands to it.
    #[inline]
    pub(crate) fn order_of_row(self, rank: u64) -> Ordering {
        rank.cmp(&self.rank).then(Weight::At.cmp(&self.weight))
    }

    /// The greatest rank of rows before it. `None` if there is none.
    #[inline]
    pub(crate) fn last_before(self) -> Option<u64> {
        if Weight::At < self.weight { Some(self.rank) } else { self.rank.checked_sub(1) }
    }
}

/// What stands at a place among rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RowAt {
    /// A row: how it stands to a position, and where it ends.
    Row(Ordering, usize),
    /// The end of the partition.
    End,
    /// A marker, a row of another kind, or what is none of these.
    Other,
}

impl<'a> SoughtValues<'a> {
    #[inline]
    fn len(self) -> usize {
        match self {
            SoughtValues::Prefix(prefix) => prefix.len(),
            SoughtValues::Row(row) => row.len(),
        }
    }

    /// One of them, which may be null; none beyond the last.
    #[inline]
    fn get(self, number: usize) -> Value<'a> {
        match self {
            SoughtValues::Prefix(prefix) => prefix.values.get(number)?.as_deref(),
            SoughtValues::Row(row) => row.get(number).copied(),
        }
    }
}

impl RowCodec {
    /// Where the rows from `at` on end that stand before a position: they are stepped over without being decoded. At the
    /// first that does not, or is not plain, or not at hand as a whole, it is at its end.
    pub fn rows_before(&self, source: Source<'_>, at: usize, schema: &Schema, position: &Position) -> usize {
        let (mut at, sought) = (at, Sought::new(self, schema, position));
        // A block has hundreds of small rows, of which a slice in its middle wants none: the usual keys have a loop of their own.
        if let Some(only) = &sought.only {
            let is_before = |key: &[u8]| sought.order_of(only, key, Weight::At).is_lt();
            while let Some(end) = plain_row(&source.owner[..source.end], at, only.width, is_before) {
                source.bring_key_near(&(at..end));
                at = end;
            }
        }
        while let Ok(Some(end)) = self.row_before(source, at, &sought) {
            at = end;
        }
        at
    }

    /// Where the row at `at` ends, if one is there that stands before a position. `None` where something else is, or a row
    /// that is not plain.
    #[inline]
    fn row_before(&self, source: Source<'_>, at: usize, sought: &Sought<'_>) -> Decoded<Option<usize>> {
        let mut place = source.cursor(at);
        let flags = place.cursor.u8()?;
        if !flag::are_of_row(flags) {
            return Ok(None);
        }
        let row = (self.clustering.len(), Weight::At);
        if self.order_of(&mut place.cursor, row, sought)?.is_ge() {
            return Ok(None);
        }
        match body(&mut place)? {
            (body, true) => Ok(Some(body.end)),
            (_, false) => Ok(None),
        }
    }

    /// The order of the only clustering column, if it is of whole numbers and they have a width in files.
    pub(crate) fn number_order(&self) -> Option<NumberOrder> {
        self.only_number
    }

    /// Whether of two rows, with whose clustering values the bytes begin, the second one stands behind the first one.
    #[inline(never)]
    pub(crate) fn ascends(&self, schema: &Schema, first: &[u8], second: &[u8]) -> bool {
        if let (Some(order), [0, first @ ..], [0, second @ ..]) = (self.only_number, first, second)
            && let (Some(first), Some(second)) = (first.get(..order.len), second.get(..order.len))
        {
            return order.rank(first) < order.rank(second);
        }
        self.order_of_rows(schema, first, second).is_ok_and(Ordering::is_lt)
    }

    fn order_of_rows(&self, schema: &Schema, first: &[u8], second: &[u8]) -> Decoded<Ordering> {
        let (mut values, mut order) = (Values::new(), Ordering::Equal);
        self.each_value(&mut Cursor::new(first), self.clustering.len(), |_, value| values.push(value))?;
        self.each_value(&mut Cursor::new(second), self.clustering.len(), |i, value| {
            if order.is_eq() {
                order = compare_values(&schema.clustering[i], values[i], value);
            }
        })?;
        Ok(order)
    }

    /// How many bytes the clustering values of a row have that `bytes` begin with.
    #[inline]
    pub(crate) fn values_len(&self, bytes: &[u8]) -> Decoded<usize> {
        if let ([Some(width)], [0, ..]) = (&self.clustering[..], bytes) {
            return Ok(1 + width);
        }
        let mut cursor = Cursor::new(bytes);
        self.each_value(&mut cursor, self.clustering.len(), |_, _| {})?;
        Ok(cursor.position())
    }

    /// The number of the row whose prefix with its kind `bytes` are, by its rank: of one in that order, and of nothing else.
    #[inline]
    pub(crate) fn rank_of_prefix(order: NumberOrder, bytes: &[u8]) -> Option<u64> {
        let [KIND_ROW, 0, value @ ..] = bytes else { return None };
        (value.len() == order.len).then(|| order.rank(value))
    }

    /// Appends the prefix that has a number of this rank: the other side of [`RowCodec::rank_of_prefix`].
    pub(crate) fn put_prefix_of_rank(order: NumberOrder, rank: u64, to: &mut Vec<u8>) {
        to.extend_from_slice(&[KIND_ROW, 0]);
        to.extend_from_slice(&(rank ^ order.turned).to_be_bytes()[..order.len]);
    }

    /// What stands at `at`, and how it stands to a position.
    pub(crate) fn row_at(&self, source: Source<'_>, at: usize, sought: &Sought<'_>) -> Decoded<RowAt> {
        let mut place = source.cursor(at);
        let flags = place.cursor.u8()?;
        if flags == flag::END_OF_PARTITION {
            return Ok(RowAt::End);
        }
        if !flag::are_of_row(flags) {
            return Ok(RowAt::Other);
        }
        let row = (self.clustering.len(), Weight::At);
        let order = self.order_of(&mut place.cursor, row, sought)?;
        match body(&mut place)? {
            (body, true) => Ok(RowAt::Row(order, body.end)),
            (body, false) => Err(DecodeError::Truncated { needed: place.cursor.position() + body.len() }),
        }
    }

    /// How many bytes the clustering prefix with its kind has that `bytes` begin with.
    #[inline]
    pub fn prefix_len(&self, bytes: &[u8]) -> Decoded<usize> {
        // Most are the one value of a row.
        if let ([Some(width)], [KIND_ROW, 0, rest @ ..]) = (&self.clustering[..], bytes)
            && rest.len() >= *width
        {
            return Ok(2 + width);
        }
        self.any_prefix_len(bytes)
    }

    #[inline(never)]
    fn any_prefix_len(&self, bytes: &[u8]) -> Decoded<usize> {
        let mut cursor = Cursor::new(bytes);
        let (count, _) = self.kind_of_prefix(&mut cursor)?;
        self.each_value(&mut cursor, count, |_, _| {})?;
        Ok(cursor.position())
    }

    /// The values of the clustering prefix with its kind that `bytes` begin with.
    pub(crate) fn values_of_prefix<'a>(&self, bytes: &'a [u8]) -> Decoded<Values<'a>> {
        let mut cursor = Cursor::new(bytes);
        let (count, _) = self.kind_of_prefix(&mut cursor)?;
        let mut values = Values::new();
        self.each_value(&mut cursor, count, |_, value| values.push(value))?;
        Ok(values)
    }

    /// How as many values as this, on that side of them, stand to a position. Goes behind them.
    #[inline]
    fn order_of(
        &self,
        cursor: &mut Cursor<'_>,
        (count, weight): (usize, Weight),
        sought: &Sought<'_>,
    ) -> Decoded<Ordering> {
        // Most values are neither empty nor null: searches do little else.
        if let Some(only) = &sought.only
            && count == 1
            && let Some(value) = value_at_hand(cursor, only.width)
        {
            return Ok(sought.order_of(only, value, weight));
        }
        self.order_of_any(cursor, (count, weight), sought)
    }

    fn order_of_any(
        &self,
        cursor: &mut Cursor<'_>,
        (count, weight): (usize, Weight),
        Sought { schema, values, weight: of_values, .. }: &Sought<'_>,
    ) -> Decoded<Ordering> {
        let mut order = Ordering::Equal;
        self.each_value(cursor, count, |i, value| {
            if order.is_eq() && i < values.len() {
                order = compare_values(&schema.clustering[i], value, values.get(i));
            }
        })?;
        let ends = || compare_ends((count, weight), (values.len(), *of_values));
        Ok(order.then_with(ends))
    }

    /// Goes over the first `count` clustering values, of which `see` is told the numbers.
    #[inline]
    fn each_value<'a>(
        &self,
        cursor: &mut Cursor<'a>,
        count: usize,
        mut see: impl FnMut(usize, Option<&'a [u8]>),
    ) -> Decoded<()> {
        let mut bits = 0;
        for (i, &width) in self.clustering[..count].iter().enumerate() {
            if i % 32 == 0 {
                bits = cursor.vint()?;
            }
            let value = match (bits >> (2 * (i % 32))) & 0b11 {
                0b00 => {
                    let len = len_of(cursor, width)?;
                    Some(cursor.take(len)?)
                }
                0b01 => Some(&[][..]),
                _ => None,
            };
            see(i, value);
        }
        Ok(())
    }
}

/// The bytes of one clustering value behind its header, if it is neither empty nor null and all of it is there.
#[inline]
fn value_at_hand<'a>(cursor: &mut Cursor<'a>, width: usize) -> Option<&'a [u8]> {
    let (header, rest) = cursor.rest().split_first()?;
    let value = rest.get(..width).filter(|_| *header == 0)?;
    cursor.skip(1 + width).ok()?;
    Some(value)
}

/// Where the row at `at` ends, if all of it is there and its key, one value of this width, is as it should be.
#[inline]
fn plain_row(bytes: &[u8], at: usize, width: usize, is_right: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let [flags, 0, rest @ ..] = bytes.get(at..)? else { return None };
    if !flag::are_of_row(*flags) {
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
