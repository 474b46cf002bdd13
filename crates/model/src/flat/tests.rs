//! What is put comes back, to the byte and from the same buffer; other bytes are refused, or are the one form of something.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::stamp::EPOCH;
use super::*;
use crate::clustering::compare_positions;
use crate::time::{EXPIRED_LIVENESS_TTL, NO_DELETION_TIME, NO_TIMESTAMP};
use crate::{
    Cell, CellValue, Clustering, CqlType, DeletionTime, LiveRows, Liveness, RangeTombstone, Row, Schema,
    Weight,
};

const NOW: i64 = 1_790_000_000_000_000;

fn timestamps() -> impl Strategy<Value = i64> {
    let odd = [NO_TIMESTAMP, NO_TIMESTAMP + 1, i64::MAX, -1, 0, 1, EPOCH];
    prop_oneof![3 => NOW..NOW + 3, 1 => select(odd.to_vec()), 1 => any::<i64>()]
}

fn seconds() -> impl Strategy<Value = i64> {
    let odd = [NO_DELETION_TIME, NO_DELETION_TIME - 1, i64::MIN, 0, i64::from(i32::MAX), i64::from(u32::MAX)];
    prop_oneof![3 => NOW / 1_000_000..NOW / 1_000_000 + 3, 2 => select(odd.to_vec()), 1 => any::<i64>()]
}

fn ttls() -> impl Strategy<Value = u32> {
    prop_oneof![select(&[0, 0, 0, 600, EXPIRED_LIVENESS_TTL, u32::MAX][..]), any::<u32>()]
}

fn expiries() -> impl Strategy<Value = (u32, i64)> {
    prop_oneof![Just((0, NO_DELETION_TIME)), Just((600, 1_790_000_600)), (ttls(), seconds())]
}

fn deletions() -> impl Strategy<Value = DeletionTime> {
    let any = (timestamps(), seconds()).prop_map(|(marked_for_delete_at, local_deletion_time)| {
        DeletionTime { marked_for_delete_at, local_deletion_time }
    });
    prop_oneof![Just(DeletionTime::LIVE), any]
}

fn markers() -> impl Strategy<Value = Liveness> {
    let any = (timestamps(), expiries()).prop_map(|(timestamp, (ttl, local_expiration_time))| Liveness {
        timestamp,
        ttl,
        local_expiration_time,
    });
    prop_oneof![Just(Liveness::NONE), any]
}

fn values() -> impl Strategy<Value = Bytes> {
    prop_oneof![4 => vec(any::<u8>(), 0..5), 1 => vec(any::<u8>(), 120..140)].prop_map(Bytes::from)
}

fn cells() -> impl Strategy<Value = Cell> {
    let columns = prop_oneof![4 => 0..4u16, 1 => any::<u16>()];
    let value = prop_oneof![3 => values().prop_map(CellValue::Value), 1 => Just(CellValue::Tombstone)];
    (columns, timestamps(), expiries(), prop::option::of(values()), value).prop_map(
        |(column, timestamp, (ttl, local_deletion_time), path, value)| Cell {
            column,
            ttl,
            timestamp,
            local_deletion_time,
            path,
            value,
        },
    )
}

fn clusterings() -> impl Strategy<Value = Clustering> {
    let columns = prop_oneof![4 => 0..4usize, 1 => 30..40usize];
    columns
        .prop_flat_map(|columns| vec(prop::option::weighted(0.8, values()), columns))
        .prop_map(|values| Clustering { values: values.into() })
}

/// Rows as most are, and rows that need not keep their invariants.
fn rows() -> impl Strategy<Value = Row> {
    let usual = (clusterings(), timestamps(), vec(vec(any::<u8>(), 1..9), 0..6));
    let usual = usual.prop_map(|(clustering, timestamp, values)| Row {
        liveness: Liveness { timestamp, ..Liveness::NONE },
        cells: (0..)
            .zip(values)
            .map(|(column, value)| {
                let (local_deletion_time, value) = (NO_DELETION_TIME, CellValue::Value(Bytes::from(value)));
                Cell { column, ttl: 0, timestamp, local_deletion_time, path: None, value }
            })
            .collect(),
        ..Row::new(clustering)
    });
    prop_oneof![1 => usual, 2 => odd_rows()]
}

fn odd_rows() -> impl Strategy<Value = Row> {
    let complex = vec((any::<u16>(), deletions()), 0..3);
    let cells = prop_oneof![4 => vec(cells(), 0..6), 1 => vec(cells(), 30..70)];
    (clusterings(), markers(), deletions(), deletions(), complex, cells).prop_map(
        |(clustering, liveness, deletion, shadowable, complex_deletions, cells)| Row {
            clustering,
            liveness,
            deletion,
            shadowable,
            complex_deletions,
            cells,
        },
    )
}

fn positions() -> impl Strategy<Value = Position> {
    let weights = select(&[Weight::Before, Weight::At, Weight::After][..]);
    (clusterings(), weights).prop_map(|(prefix, weight)| Position { prefix, weight })
}

fn slices() -> impl Strategy<Value = Slice> {
    let ends = (positions(), positions()).prop_map(|(start, end)| Slice { start, end });
    prop_oneof![ends, clusterings().prop_map(Slice::of_prefix)]
}

fn keys() -> impl Strategy<Value = PartitionKey> {
    (values(), prop::option::weighted(0.2, any::<i64>())).prop_map(|(bytes, token)| {
        let key = PartitionKey::new(bytes);
        PartitionKey { token: token.unwrap_or(key.token), ..key }
    })
}

fn fragments() -> impl Strategy<Value = Fragment> {
    prop_oneof![
        (keys(), deletions())
            .prop_map(|(key, deletion)| Fragment::PartitionStart(PartitionStart { key, deletion })),
        rows().prop_map(Fragment::StaticRow),
        rows().prop_map(Fragment::Row),
        (positions(), deletions()).prop_map(|(position, deletion)| {
            Fragment::RangeTombstone(RangeTombstoneChange { position, deletion })
        }),
        Just(Fragment::PartitionEnd),
    ]
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let range = (slices(), deletions()).prop_map(|(Slice { start, end }, deletion)| RangeTombstone {
        start,
        end,
        deletion,
    });
    (keys(), deletions(), prop::option::of(rows()), vec(rows(), 0..4), vec(range, 0..3)).prop_map(
        |(key, deletion, static_row, rows, range_tombstones)| Mutation {
            key,
            deletion,
            static_row,
            rows,
            range_tombstones,
        },
    )
}

/// All kinds of names; that each type's name says all of it is a property of the types themselves.
fn put<T>(item: &T, put: impl Fn(&T, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put(item, &mut out);
    out
}

fn put_all(fragments: &[Fragment]) -> Vec<u8> {
    put(&fragments, |fragments, out| fragments.iter().for_each(|fragment| put_fragment(fragment, out)))
}

fn read_all(bytes: Bytes) -> Result<Vec<Fragment>, FlatError> {
    let mut reader = FlatReader::new(bytes);
    std::iter::from_fn(|| reader.next_fragment().transpose()).collect()
}

/// Whatever these bytes are read as, they are refused, or are what is put again.
fn assert_one_form(bytes: &[u8]) {
    let owner = Bytes::from(bytes);
    if let Ok(fragments) = read_all(owner.clone()) {
        assert_eq!(put_all(&fragments), bytes);
    }
    let schema = Schema::new(CqlType::Int, vec![CqlType::Blob], Vec::new(), Vec::new());
    let standing = standing_mutation(&owner, &schema, &mut Nobody);
    assert_eq!(standing.as_ref().err(), mutation(&owner).as_ref().err());
    if let (Ok(item), Ok(standing)) = (mutation(&owner), standing) {
        assert_eq!(put(&item, put_mutation), bytes);
        let said = item.rows.iter().filter(|row| !row.is_empty());
        assert!(standing.rows.iter().map(StandingRow::to_row).eq(said.cloned()));
    }
    if let Ok(item) = position(&owner) {
        assert_eq!(put(&item, put_position), bytes);
    }
    if let Ok(item) = slice(&owner) {
        assert_eq!(put(&item, put_slice), bytes);
    }
}

/// Looks at nothing.
struct Nobody;

impl<'a> RowVisitor<'a> for Nobody {
    fn clustering_value(&mut self, _: Option<&'a [u8]>) {}
    fn marker(&mut self, _: Liveness) {}
    fn deletions(&mut self, _: DeletionTime, _: DeletionTime) {}
    fn complex_deletions(&mut self, _: Vec<(u16, DeletionTime)>) {}
    fn cells(&mut self, _: usize) {}
    fn cell(&mut self, _: CellView<'a>) {}
}

/// `bytes` with some of them changed.
fn damaged(mut bytes: Vec<u8>, damage: &[(prop::sample::Index, u8)]) -> Vec<u8> {
    for (at, mask) in damage.iter().filter(|_| !bytes.is_empty()).collect::<Vec<_>>() {
        let at = at.index(bytes.len());
        bytes[at] ^= mask;
    }
    bytes
}

/// What was shown of a row.
#[derive(Default)]
struct Shown<'a> {
    clustering: Vec<Option<&'a [u8]>>,
    cells: Vec<(u16, &'a [u8])>,
}

impl<'a> ValueVisitor<'a> for Shown<'a> {
    fn clustering_value(&mut self, value: Option<&'a [u8]>) {
        self.clustering.push(value);
    }

    fn cell(&mut self, column: u16, value: &'a [u8]) {
        self.cells.push((column, value));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn fragments_round_trip(fragments in vec(fragments(), 0..6)) {
        let bytes = put_all(&fragments);
        prop_assert_eq!(read_all(Bytes::from(bytes)), Ok(fragments));
    }

    #[test]
    fn rows_that_stay_where_they_are_are_those_of_the_mutation(mutation in mutations(), other in positions()) {
        let bytes = Bytes::from(put(&mutation, put_mutation));

        let types = vec![CqlType::Blob; 64];
        let schema = Schema::new(CqlType::Int, types.clone(), Vec::new(), Vec::new());
        let standing = standing_mutation(&bytes, &schema, &mut Nobody).unwrap();
        prop_assert_eq!(standing.is_empty(), mutation.is_empty());
        let said: Vec<&Row> = mutation.rows.iter().filter(|row| !row.is_empty()).collect();
        prop_assert_eq!(standing.rows.len(), said.len());
        prop_assert_eq!(standing.ranks.len(), said.len());
        for ((row, expected), rank) in standing.rows.iter().zip(&said).zip(&standing.ranks) {
            prop_assert_eq!(&row.to_row(), *expected);
            prop_assert_eq!(row.clustering(), expected.clustering.clone());
            let at = Position::at(expected.clustering.clone());
            prop_assert_eq!(*rank, schema.rank(&at));
            let order = compare_positions(&types, at.as_view(), other.as_view());
            prop_assert_eq!(row.compare(&schema, other.as_view()), order);
            let (fragment, mut values) = (Fragment::Row(Row::clone(expected)), UsualValues::default());
            values.cells.push(b"of the row before");
            prop_assert_eq!(row.take_usual(&mut values), is_usual(&fragment));
            if is_usual(&fragment) {
                let mut alone = Vec::new();
                values.row().put(&mut alone);
                prop_assert_eq!(alone, put(&fragment, put_fragment));
            }
            let flat = Bytes::from(put(&fragment, put_fragment));
            prop_assert_eq!(FlatRow::alone(&flat).compare(&types, other.as_view()), Ok(order));
            let has_deletion = [expected.deletion, expected.shadowable].iter().any(|deletion| !deletion.is_live());
            let plain = !has_deletion && expected.complex_deletions.is_empty();
            prop_assert_eq!(row.is_plain(), plain);
            for (other, key) in standing.rows.iter().zip(&said) {
                let order = schema.compare_rows(&expected.clustering, &key.clustering);
                prop_assert_eq!(row.compare_to(&schema, other), order);
            }
        }
        // What is cut off, or has more behind it, is none.
        let cut = bytes.slice(0..bytes.len() - 1);
        prop_assert!(standing_mutation(&cut, &schema, &mut Nobody).is_err());
        let longer = Bytes::from([&*bytes, &[0]].concat());
        prop_assert!(standing_mutation(&longer, &schema, &mut Nobody).is_err());
    }

    #[test]
    fn where_a_fragment_stands_is_told_without_it(fragment in fragments(), other in positions()) {
        let position = match &fragment {
            Fragment::Row(row) => Some(Position::at(row.clustering.clone())),
            Fragment::RangeTombstone(change) => Some(change.position.clone()),
            _ => None,
        };
        let bytes = Bytes::from([b"before", &*put_all(std::slice::from_ref(&fragment))].concat());
        let types = vec![CqlType::Blob; 64];
        for other in position.iter().chain([&other]) {
            let expected = position.as_ref().map(|position| {
                compare_positions(&types, position.as_view(), other.as_view())
            });
            prop_assert_eq!(compare_at(&bytes, 6, &types, other).ok(), expected);
            let row: Option<Vec<&[u8]>> = other.prefix.values.iter().map(Option::as_deref).collect();
            let Some(row) = row else { continue };
            let at = Position::at(other.prefix.clone());
            let expected = position.as_ref().map(|position| {
                compare_positions(&types, position.as_view(), at.as_view())
            });
            prop_assert_eq!(SoughtRow::new(&types, &row).compare_at(&bytes, 6).ok(), expected);
            let schema = Schema::new(CqlType::Int, types[..row.len()].to_vec(), Vec::new(), Vec::new());
            // A position at a row has all of its columns.
            let is_whole = |own: &&Position| own.weight != Weight::At || own.prefix.len() == row.len();
            let position = position.as_ref().filter(|own| own.prefix.len() <= row.len());
            let Some(position) = position.filter(is_whole) else { continue };
            prop_assert_eq!(Some(schema.compare_to_row(position, &row)), expected);
            let ranks = schema.rank(position).cmp(&schema.rank_of_row(schema.number_order(), &row));
            prop_assert!(ranks.is_eq() || Some(ranks) == expected, "{position:?}, {row:?}");
        }
        let mut place = Fragment::Row(simple_row(vec![1]));
        prop_assert_eq!(fragment_at(&bytes, 6, &mut place), Ok(()));
        prop_assert_eq!(place, fragment);
    }

    #[test]
    fn what_is_live_is_the_same_decoded_or_not(
        mut row in rows(), around in deletions(), range in deletions(), now in seconds(),
    ) {
        row.cells.sort_by_key(|cell| cell.column);
        let has_complex_deletions = !row.complex_deletions.is_empty();
        let mut fragment = Fragment::Row(row);
        let bytes = Bytes::from([b"before", &*put_all(std::slice::from_ref(&fragment))].concat());
        let mut live = LiveRows::new(now);
        live.keeps(&mut Fragment::PartitionStart(PartitionStart {
            key: PartitionKey::new(Bytes::default()),
            deletion: around,
        }));
        live.keeps(&mut Fragment::RangeTombstone(RangeTombstoneChange {
            position: Position::start(),
            deletion: range,
        }));
        let mut shown = Shown::default();
        let kept = live.show(FlatRow::new(&bytes, &bytes[6..]), &mut shown);
        let expected = live.keeps(&mut fragment);
        prop_assert_eq!(kept, Ok((!has_complex_deletions).then_some(expected)));
        if let (Fragment::Row(row), Ok(Some(true))) = (&fragment, kept) {
            let cells = row.cells.iter().map(|cell| match &cell.value {
                CellValue::Value(value) => (cell.column, &**value),
                CellValue::Tombstone => unreachable!("it is live"),
            });
            prop_assert_eq!(shown.cells, cells.collect::<Vec<_>>());
            let values = row.clustering.values.iter().map(Option::as_deref);
            prop_assert_eq!(shown.clustering, values.collect::<Vec<_>>());
        }
    }

    /// Deviations: 0 and above 8 are none.
    #[test]
    fn usual_rows_are_shown_as_any(
        mut row in rows(), around in deletions(), now in seconds(), written in timestamps(),
        values in vec(vec(any::<u8>(), 1..300), 0..5), deviation in 0..16_usize, other in timestamps(),
    ) {
        row.liveness = Liveness { timestamp: written, ..Liveness::NONE };
        (row.deletion, row.shadowable) = (DeletionTime::LIVE, DeletionTime::LIVE);
        row.complex_deletions.clear();
        let cell = |(column, value)| Cell {
            column,
            ttl: 0,
            timestamp: written,
            local_deletion_time: NO_DELETION_TIME,
            path: None,
            value: CellValue::Value(Bytes::from(value)),
        };
        row.cells = (0..).zip(values).map(cell).collect();
        let mut is_usual_row = ![NO_TIMESTAMP, EPOCH].contains(&written);
        if let Some(last) = row.cells.last_mut() {
            is_usual_row &= !(1..=8).contains(&deviation) || deviation == 1 && other == written;
            match deviation {
                1 => last.timestamp = other,
                2 => last.ttl = 7,
                3 => last.local_deletion_time = 7,
                4 => last.path = Some(Bytes::default()),
                5 => last.value = CellValue::Value(Bytes::default()),
                6 => last.value = CellValue::Tombstone,
                7 => last.column += 1,
                8 => row.deletion = DeletionTime { marked_for_delete_at: other.max(0), local_deletion_time: 1 },
                _ => {}
            }
        }
        let fragment = Fragment::Row(row);
        prop_assert_eq!(is_usual(&fragment), is_usual_row);
        let bytes = Bytes::from(put_all(&[fragment]));
        let mut live = LiveRows::new(now);
        let deletion = if deviation % 2 == 0 { DeletionTime::LIVE } else { around };
        live.keeps(&mut Fragment::PartitionStart(PartitionStart {
            key: PartitionKey::new(Bytes::default()),
            deletion,
        }));
        let [(mut any, mut usual), (mut claimed, mut cut)] = <[(Shown<'_>, Shown<'_>); 2]>::default();
        let flat = FlatRow::new(&bytes, &bytes);
        let kept = live.show(flat, &mut any);
        prop_assert_eq!(live.show(flat.known_as(is_usual_row), &mut usual), kept);
        if kept == Ok(Some(true)) {
            prop_assert_eq!((any.clustering, any.cells), (usual.clustering, usual.cells));
        }
        // Who says so of another row is told, or is right about its values.
        let _ = live.show(flat.known_as(true), &mut claimed);
        let short = bytes.slice(0..bytes.len() - 1);
        prop_assert!(!deletion.is_live() || live.show(FlatRow::new(&short, &short).known_as(true), &mut cut).is_err());
    }

    #[test]
    fn mutations_round_trip(item in mutations()) {
        let bytes = put(&item, put_mutation).into();
        prop_assert_eq!(mutation_key(&bytes), Ok(item.key.clone()));
        prop_assert_eq!(mutation(&bytes), Ok(item));
    }

    #[test]
    fn positions_and_slices_round_trip(place in positions(), of in slices()) {
        prop_assert_eq!(position(&put(&place, put_position).into()), Ok(place));
        prop_assert_eq!(slice(&put(&of, put_slice).into()), Ok(of));
    }

    #[test]
    fn items_of_all_kinds_stand_in_a_row(write in mutations(), place in positions(), part in slices()) {
        let mut bytes = Vec::new();
        put_slice(&part, &mut bytes);
        put_mutation(&write, &mut bytes);
        put_position(&place, &mut bytes);
        let len = bytes.len();
        let mut reader = FlatReader::new(Bytes::from(bytes));
        prop_assert_eq!(reader.slice(), Ok(part));
        prop_assert_eq!(reader.mutation(), Ok(write));
        prop_assert!(!reader.is_at_end());
        prop_assert_eq!(reader.position(), Ok(place));
        prop_assert_eq!((reader.offset(), reader.is_at_end()), (len, true));
    }

    #[test]
    fn what_is_cut_off_is_refused(item in mutations(), cut: prop::sample::Index) {
        let mut bytes = put(&item, put_mutation);
        bytes.truncate(cut.index(bytes.len()));
        let len = bytes.len();
        let error = mutation(&bytes.into()).unwrap_err();
        prop_assert!(error.at <= len);
    }

    #[test]
    fn damaged_bytes_have_one_form(
        fragments in vec(fragments(), 1..4), write in mutations(), place in positions(), part in slices(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let items = [
            put_all(&fragments),
            put(&write, put_mutation),
            put(&place, put_position),
            put(&part, put_slice),
        ];
        items.into_iter().for_each(|bytes| assert_one_form(&damaged(bytes, &damage)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Small bytes, because what they count has a chance to be there.
    #[test]
    fn any_bytes_have_one_form(mut bytes in vec(prop_oneof![6 => 0..9u8, 1 => any::<u8>()], 0..40), item in 0..3u8) {
        assert_one_form(&bytes);
        let head: &[u8] = match item { 0 => &[VERSION, 0, 0], 1 => &[VERSION, 4, 0, 0], _ => &[kind::ROW] };
        bytes.splice(..0, head.iter().copied());
        assert_one_form(&bytes);
    }
}

fn int(value: i32) -> Bytes {
    Bytes::from(value.to_be_bytes().to_vec())
}

fn cell(column: u16, timestamp: i64, value: CellValue) -> Cell {
    Cell { column, ttl: 0, timestamp, local_deletion_time: NO_DELETION_TIME, path: None, value }
}

/// Row 7 of partition 1, with a marker and one value.
fn simple_row(value: Vec<u8>) -> Row {
    Row {
        liveness: Liveness { timestamp: NOW, ..Liveness::NONE },
        cells: vec![cell(0, NOW, CellValue::Value(value.into()))],
        ..Row::new([int(7)].into_iter().collect())
    }
}

#[test]
fn a_simple_row_costs_little_more_than_its_key_and_value() {
    let row = simple_row(vec![9; 100]);
    // Kind, flags, how many columns, the key's length, the timestamp, how many cells, a cell's flags and length.
    let about = 1 + 1 + 1 + 1 + 7 + 1 + 1 + 1;
    assert_eq!(put(&Fragment::Row(row.clone()), put_fragment).len(), 4 + 100 + about);
    let write = Mutation { rows: vec![row.clone(); 2], ..Mutation::new(PartitionKey::new(int(1))) };
    // Version, flags, the key and its length, how many rows; the second row's timestamp is the first one's.
    let head = 1 + 1 + 5 + 1;
    assert_eq!(put(&write, put_mutation).len(), head + 2 * (4 + 100 + about - 1) - 7);
}

/// A row that was written with a TTL, into a list that it replaced, and beside it the deletion of another row.
#[test]
fn bytes_are_as_they_are_drawn() {
    let expiry = |cell: Cell| Cell { ttl: 600, local_deletion_time: NOW / 1_000_000 + 600, ..cell };
    let element =
        Cell { path: Some(Bytes::from(vec![0xaa, 0xbb])), ..cell(3, NOW, CellValue::Value(int(5))) };
    let row = Row {
        liveness: Liveness { timestamp: NOW, ttl: 600, local_expiration_time: NOW / 1_000_000 + 600 },
        complex_deletions: vec![(
            3,
            DeletionTime { marked_for_delete_at: NOW - 1, local_deletion_time: NOW / 1_000_000 },
        )],
        cells: vec![
            expiry(cell(0, NOW, CellValue::Value(int(4)))),
            expiry(cell(1, NOW, CellValue::Value(Bytes::default()))),
            expiry(element),
            Cell { local_deletion_time: NOW / 1_000_000, ..cell(3, NOW - 5, CellValue::Tombstone) },
        ],
        ..simple_row(Vec::new())
    };
    let range = RangeTombstone {
        start: Position::before([int(8)].into_iter().collect()),
        end: Position::after([int(8)].into_iter().collect()),
        deletion: DeletionTime { marked_for_delete_at: NOW, local_deletion_time: NOW / 1_000_000 },
    };
    let write = Mutation {
        rows: vec![row],
        range_tombstones: vec![range],
        ..Mutation::new(PartitionKey::new(int(1)))
    };
    #[rustfmt::skip]
    let expected: &[&[u8]] = &[
        &[VERSION, 0x04, 4, 0, 0, 0, 1],                // range tombstones; the key
        &[1, 0x4f],                                     // one row: marker with timestamp and TTL, complex deletions
        &[1, 5, 0, 0, 0, 7],                            // one column
        &[0xfc, 0xbc, 0x2f, 0x74, 0x42, 0x7f, 0xff],    // 103456000000000 µs before 2030
        &[0x82, 0x58, 0],                               // 600 s, after which it expires
        &[1, 3, 1, 2],                                  // one deletion: column 3, a microsecond before, in the second after it
        &[4],                                           // cells
        &[0x03, 2, 4, 0, 0, 0, 4],                      // a microsecond later, and the marker's expiry
        &[0x12],                                        // empty
        &[0x8a, 2, 2, 0xaa, 0xbb, 4, 0, 0, 0, 5],       // one column is left out, a path
        &[0x65, 9, 2],                                  // the same column, five microseconds before: a tombstone
        &[1, 4 + 3, 5, 0, 0, 0, 8, 10, 0],              // one range: all rows with this prefix
    ];
    let bytes = put(&write, put_mutation);
    let hex = |bytes: &[u8]| format!("{:?}", Bytes::from(bytes));
    assert_eq!(hex(&bytes), hex(&expected.concat()));
    assert_eq!(mutation(&bytes.into()), Ok(write));
}

#[test]
fn values_point_into_the_buffer() {
    let bytes = Bytes::from(put(&Fragment::Row(simple_row(vec![9; 100])), put_fragment));
    let Ok(Some(Fragment::Row(row))) = FlatReader::new(bytes.clone()).next_fragment() else {
        panic!("no row")
    };
    let CellValue::Value(value) = &row.cells[0].value else { panic!("no value") };
    let (owner, range) = value.parts();
    assert!(std::rc::Rc::ptr_eq(owner, bytes.parts().0));
    assert_eq!(range.end, bytes.len());
}

#[test]
fn a_part_of_a_buffer_ends_where_it_ends() {
    let all = Bytes::from(put_all(&[Fragment::PartitionEnd, Fragment::Row(simple_row(vec![9; 100]))]));
    let mut reader = FlatReader::new(all.slice(1..all.len() - 1));
    assert_eq!(
        reader.next_fragment().map_err(|error| error.what),
        Err("more is promised than the rest of the bytes can hold")
    );
    assert_eq!(reader.offset(), 0, "an error does not move");
    assert_eq!(read_all(all.slice(1..all.len())).unwrap().len(), 1);
}

#[test]
fn the_stream_ends_without_being_filled() {
    let bytes = Bytes::from(put_all(&[Fragment::PartitionEnd]));
    let mut reader = FlatReader::new(bytes);
    let mut place = Fragment::default();
    assert_eq!(reader.pop(&mut place), Ok(Next::Fragment));
    assert_eq!(place, Fragment::PartitionEnd);
    assert_eq!(reader.pop(&mut place), Ok(Next::End));
}

#[test]
fn other_versions_and_more_bytes_are_refused() {
    let mut bytes = put(&Mutation::new(PartitionKey::new(int(1))), put_mutation);
    bytes.push(0);
    let refused = |bytes: &[u8]| mutation(&Bytes::from(bytes)).unwrap_err();
    assert_eq!(refused(&bytes).to_string(), "flat bytes, at 8: more bytes follow than there should be");
    bytes[0] = VERSION + 1;
    assert_eq!(refused(&bytes).what, "this version of a mutation is not known");
}

fn of_fragments(bytes: &[u8]) -> &'static str {
    read_all(Bytes::from(bytes)).unwrap_err().what
}

#[test]
fn a_row_has_one_form() {
    let marker_of_none =
        [&[kind::ROW, 0x09, 0][..], &signed_of(NO_TIMESTAMP.wrapping_sub(EPOCH)), &[0]].concat();
    let refused: [(&[u8], &str); 13] = [
        (&marker_of_none, "a marker is told where there is none"),
        (&[kind::ROW, 0x80, 0, 0], "a row has an unknown flag"),
        (&[kind::ROW, 0x01, 0, 0], "a row without a marker has the marker's flags"),
        (&[kind::ROW, 0, 0, 1, 0x11, 0], "a timestamp is told that is the last one"),
        (&[kind::ROW, 0, 0, 1, 0x12], "an expiry is told where there is none"),
        (&[kind::ROW, 0, 0, 1, 0x16, 0, 1], "a time to live is told where there is none"),
        (&[kind::ROW, 0, 0, 2, 0x14, 2, 0x14, 2], "an expiry is told that is the last one"),
        (&[kind::ROW, 0, 0, 1, 0xd0], "a cell has unknown flags"),
        (&[kind::ROW, 0, 0, 1, 0x30], "a cell is both empty and deleted"),
        (&[kind::ROW, 0, 0, 1, 0x00, 0], "an empty value has a length"),
        (&[kind::ROW, 0, 0, 1, 0x90, 0], "a distance is told to a column that is near"),
        (&[kind::ROW, 0, 0, 1, 0x90, 1], "a distance is told to a column that is near"),
        (&[kind::ROW, 0, 0, 1, 0x90, 0xc1, 0, 0], "a column is too far away"),
    ];
    for (bytes, what) in refused {
        assert_eq!(of_fragments(bytes), what);
    }
}

#[test]
fn heads_have_one_form() {
    let token = token_of(&1i32.to_be_bytes()).to_be_bytes();
    let own_token = [&[kind::START | kind::OWN_TOKEN, 4, 0, 0, 0, 1][..], &token].concat();
    let live = put(&DeletionTime::LIVE, |deletion, out| Base::at_start().put_deletion(deletion, out));
    let not_deleted = [&[kind::START | kind::DELETED, 0][..], &live].concat();
    assert_eq!(of_fragments(&own_token), "a token is stored that can be worked out");
    assert_eq!(of_fragments(&not_deleted), "a deletion is told where there is none");
    for head in [0, 6, kind::END | kind::DELETED] {
        assert_eq!(of_fragments(&[head]), "this is no kind of fragment");
    }
    let flagged = mutation(&Bytes::from(vec![VERSION, 0x10, 0, 0])).unwrap_err();
    assert_eq!(flagged.what, "a mutation has an unknown flag");
    let both_sides = position(&Bytes::from(vec![3])).unwrap_err();
    assert_eq!(both_sides.what, "a position stands on both sides of its prefix");
}

fn signed_of(number: i64) -> Vec<u8> {
    put(&number, |number, out| crate::types::vint::put_signed(*number, out))
}
