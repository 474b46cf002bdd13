//! Rows coded by hand, decoded, and cut or bent.

use model::time::NO_DELETION_TIME;
use model::{Column, Liveness};

use super::*;

const MINIMA: Minima = Minima { timestamp: 1000, local_deletion_time: 500, ttl: 10 };

fn column(name: &str, of: &str) -> Column {
    Column { name: name.as_bytes().into(), data_type: CqlType::parse(of).unwrap() }
}

/// A static text; an int, a text and a list of ints; clustered by an int and a text.
fn codec(version: Version) -> RowCodec {
    codec_above(MINIMA, version)
}

fn codec_above(minima: Minima, version: Version) -> RowCodec {
    let regulars =
        vec![column("i", "Int32Type"), column("t", "UTF8Type"), column("l", "ListType(Int32Type)")];
    let clustering = vec![CqlType::Int, CqlType::Text];
    let schema = Schema::as_listed(CqlType::Int, clustering, vec![column("s", "UTF8Type")], regulars);
    RowCodec::new(&schema, minima, version)
}

fn owner(parts: &[&[u8]]) -> Rc<Vec<u8>> {
    Rc::new(parts.concat())
}

fn source(owner: &Rc<Vec<u8>>) -> Source<'_> {
    Source { owner, end: owner.len() }
}

fn row(codec: &RowCodec, bytes: &[u8]) -> Decoded<Row> {
    let owner = owner(&[bytes]);
    let mut row = Row::new(Clustering::empty());
    match codec.lead(source(&owner), 0, &mut row.clustering)? {
        (Lead::Row(lead), end) => {
            assert_eq!(end, bytes.len());
            codec.row(source(&owner), 0, &lead, &mut row)?;
            Ok(row)
        }
        other => panic!("{other:?} is not a row"),
    }
}

/// The clustering (7, "k"): no empty and no null value.
const KEY: &[u8] = &[0, 0, 0, 0, 7, 1, b'k'];

/// A row of these flags; its size is counted.
fn with_body(flags: &[u8], body: &[u8]) -> Vec<u8> {
    [flags, KEY, &[body.len() as u8 + 1, 0], body].concat()
}

fn deletion(marked_for_delete_at: i64, local_deletion_time: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at, local_deletion_time }
}

#[test]
fn a_row_with_everything() {
    let body = [
        &[3, 5, 40][..],                       // marker: timestamp, TTL, expiry
        &[1, 2],                               // row deletion
        &[0x08 | 0x10 | 0x02, 0, 0, 0, 9],     // i: the row's timestamp and TTL
        &[0x01 | 0x04, 6, 7],                  // t: deleted
        &[0, 1],                               // l: its deletion
        &[2],                                  // l: two cells
        &[0x08, 2, 0xaa, 0xbb, 4, 0, 0, 0, 1], // path of two bytes, value behind its length
        &[0x02 | 0x04, 9, 30, 2, 1, 0xcc],     // expiring by itself, empty
    ]
    .concat();
    let row = row(&codec(Version::Me), &with_body(&[0x04 | 0x08 | 0x10 | 0x20 | 0x40], &body)).unwrap();
    assert_eq!(row.liveness, Liveness { timestamp: 1003, ttl: 15, local_expiration_time: 540 });
    assert_eq!((row.deletion, row.shadowable), (deletion(1001, 502), DeletionTime::LIVE));
    assert_eq!(row.complex_deletions, [(2, deletion(1000, 501))]);
    let cells: Vec<_> = row
        .cells
        .iter()
        .map(|cell| (cell.column, cell.timestamp, cell.ttl, cell.local_deletion_time, cell.path.as_deref()))
        .collect();
    assert_eq!(
        cells,
        [
            (0, 1003, 15, 540, None),
            (1, 1006, 0, 507, None),
            (2, 1003, 0, NO_DELETION_TIME, Some(&[0xaa, 0xbb][..])),
            (2, 1009, 12, 530, Some(&[0xcc][..])),
        ]
    );
    assert_eq!(row.cells[0].value, CellValue::Value(Bytes::from(vec![0, 0, 0, 9])));
    assert_eq!(row.cells[1].value, CellValue::Tombstone);
    assert_eq!(row.cells[3].value, CellValue::Value(Bytes::default()));
}

/// No writer is known to leave such ones; reads, merges and purges are to take them for the same.
#[test]
fn a_cell_that_expires_and_lives_for_no_time_is_a_tombstone() {
    let body = [
        &[0x02, 4, 30, 0, 0, 0, 0, 9][..], // i: expiring by itself
        &[0x02 | 0x10, 4, 1, b'a'],        // t: with the row, which does not expire
        &[0],                              // l: no cells
    ];
    let codec = codec_above(Minima { ttl: 0, ..MINIMA }, Version::Me);
    let row = row(&codec, &with_body(&[0x20], &body.concat())).unwrap();
    let cells: Vec<_> =
        row.cells.iter().map(|cell| (cell.local_deletion_time, cell.ttl, cell.value.clone())).collect();
    let live = CellValue::Value(Bytes::from(b"a".to_vec()));
    assert_eq!(cells, [(530, 0, CellValue::Tombstone), (NO_DELETION_TIME, 0, live)]);
}

#[test]
fn missing_columns_are_a_bitmap() {
    // The first and the last column are missing.
    let row = row(&codec(Version::Me), &with_body(&[0x04], &[0, 0b101, 0x08, 2, b'h', b'i'])).unwrap();
    assert_eq!(row.cells.len(), 1);
    assert_eq!(
        (row.cells[0].column, &row.cells[0].value),
        (1, &CellValue::Value(Bytes::from(b"hi".to_vec())))
    );
    assert!(
        super::tests::row(&codec(Version::Me), &with_body(&[0x04], &[0, 0b1000])).is_err(),
        "there is no fourth"
    );
}

#[test]
fn columns_of_wide_tables_are_listed() {
    let listed = |bytes: &[u8], all| present_columns(&mut Cursor::new(bytes), all);
    assert_eq!(listed(&[0], 70), Ok((0..70).collect()));
    // 68 are missing: the two present ones are listed.
    assert_eq!(listed(&[68, 3, 69], 70), Ok(vec![3, 69]));
    // 2 are missing: they are.
    assert_eq!(listed(&[2, 0, 69], 70), Ok((1..69).collect()));
    for bad in [&[71][..], &[2, 5, 5], &[2, 6, 5], &[2, 0, 70], &[2, 0]] {
        assert!(listed(bad, 70).is_err(), "{bad:?}");
    }
}

#[test]
fn shadowable_deletions_of_both_families() {
    let codec = codec(Version::Me);
    let cassandra = row(&codec, &with_body(&[0x80 | 0x10, 0x02], &[4, 5, 0b111])).unwrap();
    assert_eq!((cassandra.deletion, cassandra.shadowable), (DeletionTime::LIVE, deletion(1004, 505)));
    let scylla = row(&codec, &with_body(&[0x80 | 0x10, 0x80], &[4, 5, 6, 7, 0b111])).unwrap();
    assert_eq!((scylla.deletion, scylla.shadowable), (deletion(1004, 505), deletion(1006, 507)));
    let alone = row(&codec, &with_body(&[0x80, 0x80], &[6, 7, 0b111])).unwrap();
    assert_eq!((alone.deletion, alone.shadowable), (DeletionTime::LIVE, deletion(1006, 507)));
}

#[test]
fn clustering_values_may_be_empty_or_null() {
    let bytes = [&[0x00, 0b1001][..], &[2, 0, 0b111]].concat();
    let row = row(&codec(Version::Me), &bytes).unwrap();
    assert_eq!(row.clustering.values[..], [Some(Bytes::default()), None]);
    assert!(row.is_empty());
}

#[test]
fn markers_of_every_kind() {
    let cases = [
        (0, Weight::Before, true, false),
        (1, Weight::Before, false, true),
        (2, Weight::Before, true, true),
        (5, Weight::After, true, true),
        (6, Weight::After, true, false),
        (7, Weight::After, false, true),
    ];
    for (kind, weight, closes, opens) in cases {
        let body: &[u8] = if closes && opens { &[5, 0, 1, 2, 3, 4] } else { &[3, 0, 1, 2] };
        let owner = owner(&[&[0x02, kind, 0, 1, 0, 0, 0, 0, 7], body]);
        let Ok((Lead::Marker(marker), end)) =
            codec(Version::Me).lead(source(&owner), 0, &mut Clustering::empty())
        else {
            panic!("kind {kind} is a marker")
        };
        let first = deletion(1001, 502);
        assert_eq!((end, marker.position.weight, marker.position.prefix.len()), (owner.len(), weight, 1));
        assert_eq!(marker.closes, closes.then_some(first));
        let second = if closes { deletion(1003, 504) } else { first };
        assert_eq!(marker.opens, opens.then_some(second));
    }
}

#[test]
fn deletions_before_and_since_oa() {
    let decode = |bytes: &[u8], version| deletion_time(&mut Cursor::new(bytes), version);
    let live = [&[0x7f, 0xff, 0xff, 0xff, 0x80][..], &[0; 7]].concat();
    assert_eq!(decode(&live, Version::Nb), Ok(DeletionTime::LIVE));
    assert_eq!(decode(&[0x80], Version::Oa), Ok(DeletionTime::LIVE));
    assert!(decode(&[0x81], Version::Oa).is_err());
    let old = [&[0xff; 4][..], &[0, 0, 0, 0, 0, 0, 0, 9]].concat();
    assert_eq!(decode(&old, Version::Me), Ok(deletion(9, INVALID_DELETION_TIME)), "it overflowed");
    let new = [&[0, 0, 0, 0, 0, 0, 0, 9][..], &[0xf0, 0, 0, 0]].concat();
    assert_eq!(decode(&new, Version::Oa), Ok(deletion(9, 0xf000_0000)), "it is unsigned");
}

#[test]
fn heads_and_static_rows() {
    let codec = codec(Version::Oa);
    let owner = owner(&[&[0, 4, 0, 0, 0, 1, 0x80], &[0x80 | 0x24, 0x01, 6, 0, 2, 0x08, 2, b'h', b'i']]);
    let (head, end) = codec.partition_head(source(&owner), 0).unwrap();
    assert_eq!((&*head.key, head.deletion.is_live(), end), (&[0, 0, 0, 1][..], true, 7));
    let (row, end) = codec.static_row(source(&owner), end).unwrap();
    assert_eq!((row.cells.len(), row.liveness.timestamp, end), (1, 1002, owner.len()));
    assert!(codec.static_row(source(&owner), 0).is_err(), "a head is no static row");
}

#[test]
fn sizes_must_fit() {
    let codec = codec(Version::Me);
    let mut longer = with_body(&[0x04], &[0, 0b111]);
    longer[KEY.len() + 1] += 1;
    longer.push(0);
    assert!(matches!(
        row(&codec, &longer),
        Err(DecodeError::Invalid { what: "a row is shorter than its size", .. })
    ));
    let mut shorter = with_body(&[0x04], &[0, 0b101, 0x08, 2, b'h', b'i']);
    shorter[KEY.len() + 1] -= 1;
    shorter.pop();
    assert!(matches!(
        row(&codec, &shorter),
        Err(DecodeError::Invalid { what: "a row is longer than its size", .. })
    ));
}

/// Whatever is cut off, decoding says how many bytes it needs, and never more than there were.
#[test]
fn what_is_cut_off_is_asked_for() {
    let codec = codec(Version::Me);
    let whole = with_body(&[0x24], &[3, 0x08, 0, 0, 0, 9, 0x0c, 0]);
    row(&codec, &whole).unwrap();
    for len in 0..whole.len() {
        let owner = owner(&[&whole[..len]]);
        match codec.lead(source(&owner), 0, &mut Clustering::empty()) {
            Err(DecodeError::Truncated { needed }) => assert!(needed > len && needed <= whole.len()),
            other => panic!("{len} bytes give {other:?}"),
        }
    }
}

/// A size that was damaged is found by what has to end before it: nobody reads two gigabytes to find that out.
#[test]
fn a_huge_size_is_refused_as_soon_as_the_row_has_ended() {
    let codec = codec(Version::Me);
    let lead = |bytes: &[&[u8]]| {
        let owner = owner(bytes);
        codec.lead(source(&owner), 0, &mut Clustering::empty()).map(|_| ())
    };
    let (size, body) = ([0xf0, 0x7f, 0xff, 0xff, 0xf0], [0, 0b101, 0x08, 2, b'h', b'i']);
    let row: &[&[u8]] = &[&[0x04], KEY, &size, &[0], &body];
    let invalid = |at, what| Err(DecodeError::Invalid { at, what });
    let ends = 1 + KEY.len() + size.len() + 1 + body.len();
    assert_eq!(lead(row), invalid(ends, "a row is shorter than its size"));
    assert_eq!(lead(&[row, &[&[1; 99]]].concat()), invalid(ends, "a row is shorter than its size"));
    let whole = 1 + KEY.len() + size.len() + 0x7fff_fff0;
    assert_eq!(lead(&row[..4]), Err(DecodeError::Truncated { needed: whole }), "it may be that long");

    // A value that goes beyond its row, of which the end is not at hand either.
    let beyond = lead(&[&[0x04], KEY, &[9, 0], &[0, 0b101, 0x08, 99, b'h']]);
    assert_eq!(beyond, invalid(1 + KEY.len() + 1 + 9, "a row is longer than its size"));
    let beyond = lead(&[&[0x04, 0, 0, 0, 0, 7, 0xe1, 0, 0, 0], &[9; 99]]);
    assert_eq!(beyond, invalid(10, "a clustering value is longer than 65535 bytes"));
    let beyond = lead(&[&[0x02, 0, 0, 1, 0, 0, 0, 0, 7], &[0x80 | 46, 0]]);
    assert_eq!(beyond, invalid(11, "a range tombstone is longer than two deletions"));
}

#[test]
fn every_byte_may_be_bent() {
    for version in Version::ALL {
        let codec = codec(version);
        let whole = with_body(&[0x24], &[3, 0x08, 0, 0, 0, 9, 0x0c, 1, 0x08, 1, 5, 1, 1]);
        for (at, bits) in (0..whole.len()).flat_map(|at| (1..=255u8).map(move |bits| (at, bits))) {
            let mut bent = whole.clone();
            bent[at] ^= bits;
            let owner = owner(&[&bent]);
            let mut row = Row::new(Clustering::empty());
            if let Ok((Lead::Row(lead), _)) = codec.lead(source(&owner), 0, &mut row.clustering) {
                // Whatever comes of it, it is a row or an error.
                let _ = codec.row(source(&owner), 0, &lead, &mut row);
            }
            let _ = codec.clustering_prefix(source(&owner), 0);
            let _ = codec.partition_head(source(&owner), 0);
        }
    }
}
