//! Usual rows shown by their values, where these stand in the bytes of a file, and written into those of another one: most rows are
//! usual, and nothing of them has to be made in between.
//!
//! ```text
//! Data.db   24, 0 if there are any, clustering values, vint body size, { vint previous size, vint timestamp, { 08, value } … }
//! ```
//!
//! What is not exactly so is left to who decodes it.

use std::ops::Range;

use model::flat::{UsualRow, UsualValues};

use super::encode::put_value;
use super::{ColumnCodec, LONGEST_CLUSTERING_VALUE, RowCodec, Width, cell_flag, flag};
use crate::encode::{Encode, vint_len};

/// The flags of a row that has a marker, all columns, and nothing else.
const USUAL: u8 = flag::TIMESTAMP | flag::ALL_COLUMNS;

/// The most bytes that a row is looked for in: what is longer is left to the decoder, which refuses lengths above that.
const MOST_BYTES: usize = i32::MAX as usize;

/// So many clustering values are told of by one vint, which is 0 where all are there.
const TOLD_AT_ONCE: usize = 32;

impl RowCodec {
    /// Whether [`RowCodec::put_values_of_row`] can write a usual row of so many cells. Those that it lacks are told by a bit each.
    #[inline]
    pub(crate) fn can_put_usual(&self, cells: usize) -> bool {
        let all = self.regulars.len();
        cells <= self.simple_regulars && (cells == all || all < u64::BITS as usize)
    }

    /// Appends a usual row. `place` and `previous` are those of [`RowCodec::put_row`], which appends the same bytes.
    #[inline]
    pub(crate) fn put_values_of_row(
        &self,
        row: &UsualRow<'_>,
        place: &[u8],
        previous: u64,
        to: &mut Vec<u8>,
    ) {
        let (count, all) = (row.cells.len(), self.regulars.len());
        let missing = (count < all).then(|| (1_u64 << all) - (1 << count));
        to.put_u8(if missing.is_none() { USUAL } else { flag::TIMESTAMP });
        to.put(&place[1..]);
        let timestamp = row.timestamp.wrapping_sub(self.minima.timestamp) as u64;
        let columns = || row.cells.iter().zip(&self.regulars);
        let len_of = |(value, column): (&&[u8], &ColumnCodec)| match column.width {
            Some(len) => 1 + len,
            None => 1 + vint_len(value.len() as u64) + value.len(),
        };
        let len = vint_len(previous)
            + vint_len(timestamp)
            + missing.map_or(0, vint_len)
            + columns().map(len_of).sum::<usize>();
        to.put_vint(len as u64);
        to.put_vint(previous);
        to.put_vint(timestamp);
        if let Some(missing) = missing {
            to.put_vint(missing);
        }
        for (value, column) in columns() {
            to.put_u8(cell_flag::ROW_TIMESTAMP);
            put_value(column.width, value, to);
        }
    }

    /// Whether rows can be usual in this file at all.
    pub(super) fn has_usual_rows(&self) -> bool {
        self.clustering.len() <= TOLD_AT_ONCE && self.regulars.iter().all(|column| !column.is_complex)
    }

    /// Whether what stands at the start of the bytes may be a usual row: none begins otherwise.
    #[inline]
    pub(crate) fn may_be_usual(&self, bytes: &[u8]) -> bool {
        self.can_be_usual && bytes.first() == Some(&USUAL)
    }

    /// The values of the row that stands at the start of this range of the bytes, in the place of those in `row`, if it is a usual one
    /// and is there as a whole. Where it ends; otherwise the values are of no worth.
    #[inline]
    pub(crate) fn usual_row<'a>(
        &self,
        bytes: &'a [u8],
        range: Range<usize>,
        row: &mut UsualValues<'a>,
    ) -> Option<usize> {
        let mut ahead = Ahead(bytes.get(range.clone()).filter(|ahead| ahead.len() <= MOST_BYTES)?);
        if !self.may_be_usual(ahead.0) {
            return None;
        }
        ahead.u8()?;
        if !self.clustering.is_empty() && ahead.u8()? != 0 {
            return None;
        }
        row.clustering.clear();
        for &width in &self.clustering {
            let value = ahead.value(width)?;
            if width.is_none() && value.len() > LONGEST_CLUSTERING_VALUE {
                return None;
            }
            row.clustering.push(Some(value));
        }
        let len = ahead.vint()?;
        let behind = ahead.0.len().checked_sub(usize::try_from(len).ok()?)?;
        ahead.pass_vint()?;
        row.timestamp = self.minima.timestamp.wrapping_add(ahead.vint()? as i64);
        if !UsualRow::can_be_of(row.timestamp) {
            return None;
        }
        row.cells.clear();
        for column in &self.regulars {
            if ahead.u8()? != cell_flag::ROW_TIMESTAMP {
                return None;
            }
            let value = ahead.value(column.width)?;
            if value.is_empty() {
                return None;
            }
            row.cells.push(value);
        }
        (ahead.0.len() == behind).then_some(range.end - behind)
    }
}

/// What is ahead. Where it does not know what to do, because little is, there is nothing.
pub(super) struct Ahead<'a>(&'a [u8]);

impl<'a> Ahead<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Ahead<'a> {
        Ahead(bytes)
    }

    /// How many bytes there are.
    pub(super) fn left(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn u8(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A vint of up to eight bytes, of which eight are there: behind as many bits as there are bytes, which tell how many these are,
    /// each byte leaves seven.
    #[inline(always)]
    fn vint(&mut self) -> Option<u64> {
        let word = u64::from_be_bytes(*self.0.first_chunk()?);
        let bytes = word.leading_ones() + 1;
        if bytes > u64::BITS / 8 {
            return None;
        }
        self.0 = &self.0[bytes as usize..];
        Some(word << bytes >> (u64::BITS - 7 * bytes))
    }

    /// Passes by a vint.
    #[inline(always)]
    pub(super) fn pass_vint(&mut self) -> Option<()> {
        let bytes = self.0.first()?.leading_ones() as usize + 1;
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    #[inline(always)]
    fn value(&mut self, width: Width) -> Option<&'a [u8]> {
        let len = match width {
            Some(len) => len,
            None => usize::try_from(self.vint()?).ok()?,
        };
        let (value, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use model::flat::{FlatRow, is_usual, put_fragment};
    use model::time::NO_DELETION_TIME;
    use model::{
        Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Fragment, Liveness, Row, Schema,
    };
    use proptest::prelude::*;

    use super::super::{Lead, Minima, Source};
    use super::*;
    use crate::Version;

    const TIMESTAMP: i64 = 1_700_000_000_000_000;
    /// What stands behind a row: numbers are read eight bytes at a time.
    const BEHIND: &[u8] = b"\x01behind it";

    fn schema() -> Schema {
        let column = |name: &str, data_type| Column { name: name.as_bytes().into(), data_type };
        let regulars = vec![column("a", CqlType::Int), column("b", CqlType::Blob)];
        Schema::new(CqlType::Int, vec![CqlType::Int, CqlType::Text], Vec::new(), regulars)
    }

    fn codec(schema: &Schema, version: Version) -> RowCodec {
        let minima = Minima { timestamp: TIMESTAMP - 5, local_deletion_time: 0, ttl: 0 };
        RowCodec::new(schema, minima, version)
    }

    fn cell(column: u16, value: &[u8]) -> Cell {
        let value = CellValue::Value(Bytes::from(value));
        Cell {
            column,
            ttl: 0,
            timestamp: TIMESTAMP,
            local_deletion_time: NO_DELETION_TIME,
            path: None,
            value,
        }
    }

    fn row(number: i32, text: &str, value: &[u8]) -> Row {
        let clustering: Clustering =
            [number.to_be_bytes().to_vec(), text.as_bytes().to_vec()].into_iter().collect();
        Row {
            liveness: Liveness { timestamp: TIMESTAMP, ..Liveness::NONE },
            cells: vec![cell(0, &number.to_be_bytes()), cell(1, value)],
            ..Row::new(clustering)
        }
    }

    fn encoded(codec: &RowCodec, row: &Row) -> Vec<u8> {
        let (mut place, mut bytes) = (Vec::new(), b"before".to_vec());
        codec.put_row_prefix(&row.clustering, &mut place);
        codec.put_row(row, &place, 70, &mut bytes);
        bytes.extend_from_slice(BEHIND);
        bytes
    }

    /// What a decoder makes of the row behind the first six bytes, and where it ends.
    fn decoded(codec: &RowCodec, bytes: &[u8]) -> Option<(Fragment, usize)> {
        let owner = Rc::new(bytes.to_vec());
        let source = Source { owner: &owner, end: bytes.len() };
        let mut row = Row::new(Clustering::empty());
        let (Lead::Row(lead), end) = codec.lead(source, 6, &mut row.clustering).ok()? else { return None };
        codec.row(source, 6, &lead, &mut row).ok()?;
        Some((Fragment::Row(row), end))
    }

    /// If the row there is found, it is what a decoder makes of it, whatever more there is behind it. Whether it is.
    fn is_found(codec: &RowCodec, bytes: &[u8]) -> bool {
        let (mut row, mut out) = (UsualValues::default(), Vec::new());
        let Some(end) = codec.usual_row(bytes, 6..bytes.len(), &mut row) else { return false };
        row.row().put(&mut out);
        let (more, mut again) = ([bytes, &[0xff; 9]].concat(), UsualValues::default());
        assert_eq!(codec.usual_row(&more, 6..more.len(), &mut again), Some(end));
        assert_eq!(format!("{:?}", again.row()), format!("{:?}", row.row()));
        let (fragment, decoded_end) = decoded(codec, bytes).expect("a decoder reads it as well");
        let mut expected = Vec::new();
        put_fragment(&fragment, &mut expected);
        assert!(is_usual(&fragment), "{fragment:?}");
        assert_eq!((out, end), (expected, decoded_end));
        true
    }

    #[test]
    fn rows_that_are_not_usual_are_left() {
        let schema = schema();
        for version in Version::ALL {
            let codec = codec(&schema, version);
            let usual = row(7, "text", &[9; 300]);
            assert!(is_found(&codec, &encoded(&codec, &usual)));
            let with = |change: fn(&mut Row)| {
                let mut row = usual.clone();
                change(&mut row);
                row
            };
            let deleted = DeletionTime { marked_for_delete_at: 3, local_deletion_time: 4 };
            let others = [
                with(|row| row.liveness = Liveness::NONE),
                with(|row| row.liveness.timestamp += 1),
                with(|row| row.cells[1].timestamp += 1),
                with(|row| row.cells[1].value = CellValue::Value(Bytes::default())),
                with(|row| row.cells[0].value = CellValue::Tombstone),
                with(|row| drop(row.cells.pop())),
                with(|row| row.cells.clear()),
                with(|row| (row.cells[1].ttl, row.cells[1].local_deletion_time) = (60, 1_700_000_060)),
                with(|row| row.clustering.values[1] = Some(Bytes::default())),
                with(|row| row.clustering.values[1] = None),
                Row { deletion: deleted, ..usual.clone() },
            ];
            for other in others {
                assert!(!is_found(&codec, &encoded(&codec, &other)), "{other:?}");
            }
        }
    }

    /// The row in flat bytes is written as the row itself is.
    fn assert_written_alike(codec: &RowCodec, row: &Row) {
        let (mut flat, mut place, mut expected, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        put_fragment(&Fragment::Row(row.clone()), &mut flat);
        codec.put_row_prefix(&row.clustering, &mut place);
        codec.put_row(row, &place, 70, &mut expected);
        let (flat, mut values) = (Bytes::from(flat), UsualValues::default());
        FlatRow::alone(&flat).visit(&mut values).unwrap();
        assert_eq!(values.clustering.as_slice(), row.clustering.views().collect::<Vec<_>>());
        assert!(codec.can_put_usual(values.cells.len()));
        codec.put_values_of_row(&values.row(), &place, 70, &mut bytes);
        assert_eq!(bytes, expected);
    }

    #[test]
    fn rows_of_odd_keys_are_written_alike() {
        let schema = schema();
        for version in Version::ALL {
            let codec = codec(&schema, version);
            for value in [None, Some(Bytes::default()), Some(Bytes::from(vec![7; 300]))] {
                let mut row = row(-1, "", b"value");
                row.clustering.values[1] = value;
                assert_written_alike(&codec, &row);
            }
            for count in 0..2 {
                let mut row = row(1, "text", b"value");
                row.cells.truncate(count);
                assert_written_alike(&codec, &row);
            }
        }
    }

    #[test]
    fn rows_of_few_and_of_many_columns() {
        for (keys, columns) in [(0, 0), (0, 1), (1, 0), (32, 20)] {
            let regulars = (0..columns).map(|_| Column { name: b"a"[..].into(), data_type: CqlType::Blob });
            let schema = Schema::new(CqlType::Int, vec![CqlType::Blob; keys], Vec::new(), regulars.collect());
            for version in Version::ALL {
                let codec = codec(&schema, version);
                let row = Row {
                    liveness: Liveness { timestamp: TIMESTAMP, ..Liveness::NONE },
                    cells: (0..columns).map(|column| cell(column, &vec![7; 1 << column.min(9)])).collect(),
                    ..Row::new((0..keys).map(|key| vec![5; 1 + key]).collect())
                };
                assert!(is_found(&codec, &encoded(&codec, &row)), "{keys} {columns}");
                assert_written_alike(&codec, &row);
            }
        }
    }

    /// How far the row before it is away takes up to nine bytes.
    #[test]
    fn whatever_the_size_of_the_row_before() {
        let codec = codec(&schema(), Version::Oa);
        let (row, mut place) = (row(7, "text", b"value"), Vec::new());
        codec.put_row_prefix(&row.clustering, &mut place);
        for bits in 0..=64 {
            let mut bytes = b"before".to_vec();
            codec.put_row(&row, &place, u64::MAX.checked_shr(64 - bits).unwrap_or(0), &mut bytes);
            bytes.extend_from_slice(BEHIND);
            assert!(is_found(&codec, &bytes), "{bits}");
        }
    }

    #[test]
    fn tables_whose_rows_are_never_usual() {
        let set = CqlType::parse("SetType(UTF8Type)").unwrap();
        let column = |data_type| vec![Column { name: b"a"[..].into(), data_type }];
        let complex = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), column(set));
        let long = Schema::new(CqlType::Int, vec![CqlType::Int; 33], Vec::new(), column(CqlType::Int));
        for schema in [&complex, &long] {
            assert!(!codec(schema, Version::Oa).can_be_usual);
        }
        let may = |schema: &Schema| [0, 1].map(|cells| codec(schema, Version::Oa).can_put_usual(cells));
        assert_eq!(
            [may(&complex), may(&long)],
            [[true, false], [true, true]],
            "what such a row lacks can be told"
        );
        let column = Column { name: b"a"[..].into(), data_type: CqlType::Int };
        let wide = Schema::new(CqlType::Int, Vec::new(), Vec::new(), vec![column; 64]);
        let wide = codec(&wide, Version::Oa);
        assert!(wide.can_put_usual(64) && !wide.can_put_usual(63));
    }

    proptest! {
        /// Whatever the bytes are, a row that is found is the one that a decoder makes of them.
        #[test]
        fn what_is_found_is_what_a_decoder_reads(
            number: i32,
            text in "[a-z]{0,9}",
            value in prop::collection::vec(any::<u8>(), 1..200),
            change in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            cut in prop::option::of(any::<prop::sample::Index>()),
        ) {
            let schema = schema();
            for version in Version::ALL {
                let codec = codec(&schema, version);
                assert_written_alike(&codec, &row(number, &text, &value));
                let mut bytes = encoded(&codec, &row(number, &text, &value));
                if let Some((at, byte)) = &change {
                    let at = 6 + at.index(bytes.len() - 6);
                    bytes[at] = *byte;
                }
                if let Some(cut) = &cut {
                    bytes.truncate(6 + cut.index(bytes.len() - 6));
                }
                let is_found = is_found(&codec, &bytes);
                let is_sound = change.is_none() && cut.is_none() && !text.is_empty();
                prop_assert!(is_found || !is_sound);
            }
        }
    }
}
