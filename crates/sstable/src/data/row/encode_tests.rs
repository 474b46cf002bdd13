//! Every row of every real file is written as it stands there; and by hand, what no real file has.

use std::path::Path;
use std::rc::Rc;

use model::{Bytes, Column, CqlType, Schema, Weight};
use runtime::{Cache, Shard, ShardOptions};

use super::*;
use crate::data::chunk::Care;
use crate::data::row::{Lead, Marker, Minima, Sought, Source};
use crate::data::walk::{Item, Step, Walk};
use crate::parts::samples;
use crate::{OpenOptions, SSTable};

/// ScyllaDB has a layout of its own for shadowable deletions.
fn is_scyllas(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "scylla")
}

/// The bytes of Data.db from one item to the next, written again.
struct Rewriter {
    codec: RowCodec,
    previous: u64,
}

impl Rewriter {
    fn write(&mut self, item: &Item, at: u64) -> Vec<u8> {
        let (mut bytes, codec) = (Vec::new(), &self.codec);
        match item {
            Item::Head { key, deletion, static_row } => {
                self.previous = at;
                codec.put_partition_head(key, deletion, &mut bytes);
                if let Some(row) = static_row {
                    codec.put_static_row(row, &mut bytes);
                }
                return bytes;
            }
            Item::Row(row) => put_row(codec, row, at - self.previous, &mut bytes),
            Item::Marker(Marker { position, closes, opens }) => {
                let previous = at - self.previous;
                codec.put_marker(position, closes.as_ref(), opens.as_ref(), previous, &mut bytes);
            }
            Item::End => codec.put_end_of_partition(&mut bytes),
        }
        self.previous = at;
        bytes
    }
}

fn put_row(codec: &RowCodec, row: &Row, previous: u64, to: &mut Vec<u8>) {
    let mut place = Vec::new();
    codec.put_row_prefix(&row.clustering, &mut place);
    codec.put_row(row, &place, previous, to);
}

/// How many items were written as they stand.
async fn rewrite(shard: &Shard, path: &Path) -> Result<usize, String> {
    let options = OpenOptions::new(Cache::new(0));
    let table = SSTable::open(shard.disk(), path, &options).await.map_err(|error| error.to_string())?;
    let data = table.data().clone();
    let len = data.file.len();
    if len == 0 {
        return Ok(0);
    }
    let whole = data.file.read(&data.file.nothing_at(0), 0..len, Care::Usual).await.unwrap();
    let mut walk = Walk::new(data.clone(), 0..len, len);
    let family = if is_scyllas(path) { Family::Scylla } else { Family::Cassandra };
    let codec =
        RowCodec::new(table.schema(), Minima::from(&table.statistics().header.encoding), table.version())
            .writing_for(family);
    let mut rewriter = Rewriter { codec, previous: 0 };
    let mut items = 0;
    loop {
        match walk.pop().map_err(|error| error.to_string())? {
            Step::Fill => walk.fill().await.map_err(|error| error.to_string())?,
            Step::End => return Ok(items),
            Step::Item(item, range) => {
                let bytes = &whole.owner[whole.bytes.clone()][range.start as usize..range.end as usize];
                let written = rewriter.write(&item, range.start);
                if written != bytes {
                    return Err(format!(
                        "at {range:?}, {item:?}\n as it stands {bytes:02x?}\n as written   {written:02x?}"
                    ));
                }
                items += 1;
            }
        }
    }
}

#[test]
fn real_rows_are_written_as_they_stand() {
    let counts = runtime::run(ShardOptions::default(), async |shard| {
        let mut counts = (0, 0);
        for file in samples::real_files("Data.db") {
            match rewrite(&shard, &file.path).await {
                Ok(items) => counts = (counts.0 + 1, counts.1 + items),
                Err(error) => {
                    assert!(error.contains("RandomPartitioner"), "{}: {error}", file.path.display())
                }
            }
        }
        counts
    });
    let (files, items) = counts.unwrap();
    assert!(files == 0 || (files > 100 && items > 10_000), "{items} items of {files} files");
}

const MINIMA: Minima = Minima { timestamp: 1000, local_deletion_time: 500, ttl: 10 };

fn codec(columns: usize, version: Version) -> RowCodec {
    let column = |n: usize| Column { name: format!("c{n:03}").into_bytes().into(), data_type: CqlType::Int };
    let regulars = (0..columns).map(column).collect();
    let schema = Schema::as_listed(CqlType::Int, vec![CqlType::Text; 40], Vec::new(), regulars);
    RowCodec::new(&schema, MINIMA, version)
}

fn row(present: &[u16]) -> Row {
    let mut row = Row::new((0..40).map(|n: u8| vec![n; usize::from(n % 3)]).collect());
    row.liveness = Liveness { timestamp: 1001, ..Liveness::NONE };
    row.clustering.values[35] = None;
    let cell = |&column: &u16| {
        let value = CellValue::Value(Bytes::from(u32::from(column).to_be_bytes().to_vec()));
        Cell { column, ttl: 0, timestamp: 1001, local_deletion_time: NO_DELETION_TIME, path: None, value }
    };
    row.cells = present.iter().map(cell).collect();
    row
}

fn read_back(codec: &RowCodec, bytes: Vec<u8>) -> Row {
    let owner = Rc::new(bytes);
    let source = Source { owner: &owner, end: owner.len() };
    let mut row = Row::new(Clustering::empty());
    match codec.lead(source, 0, &mut row.clustering).unwrap() {
        (Lead::Row(lead), end) if end == owner.len() => codec.row(source, 0, &lead, &mut row).unwrap(),
        (other, end) => panic!("{other:?} ends at {end} of {}", owner.len()),
    }
    row
}

/// Few, half and nearly all of many columns; more clustering columns than one header has.
#[test]
fn wide_rows_come_back() {
    for columns in [3_u16, 63, 64, 65, 200] {
        let codec = codec(usize::from(columns), Version::Oa);
        let choices: [Box<dyn Fn(u16) -> bool>; 5] = [
            Box::new(|_| true),
            Box::new(|_| false),
            Box::new(|n| n == 1),
            Box::new(|n| n % 2 == 0),
            Box::new(|n| n != 2),
        ];
        for choice in choices {
            let row = row(&(0..columns).filter(|&n| choice(n)).collect::<Vec<_>>());
            let mut bytes = Vec::new();
            put_row(&codec, &row, 300, &mut bytes);
            assert_eq!(read_back(&codec, bytes), row);
        }
    }
}

#[test]
fn both_families_write_shadowable_deletions() {
    let deletion = |at| DeletionTime { marked_for_delete_at: at, local_deletion_time: 600 };
    for (family, deletions) in [
        (Family::Cassandra, DeletionTime::LIVE),
        (Family::Scylla, DeletionTime::LIVE),
        (Family::Scylla, deletion(1200)),
    ] {
        let codec = codec(3, Version::Me).writing_for(family);
        let mut row = row(&[1]);
        (row.deletion, row.shadowable) = (deletions, deletion(1300));
        let mut bytes = Vec::new();
        put_row(&codec, &row, 7, &mut bytes);
        assert_eq!(bytes[1], if family == Family::Scylla { 0x80 } else { 0x02 });
        assert_eq!(read_back(&codec, bytes), row);
    }
}

/// A local deletion time more than 2^31 seconds above the least one is a negative delta since `oa`.
#[test]
fn far_deletion_times_come_back() {
    let codec = codec(3, Version::Oa);
    let mut row = row(&[1]);
    row.deletion = DeletionTime { marked_for_delete_at: 1200, local_deletion_time: i64::from(u32::MAX) - 7 };
    let mut bytes = Vec::new();
    put_row(&codec, &row, 7, &mut bytes);
    assert_eq!(read_back(&codec, bytes), row);
}

#[test]
fn a_length_that_was_not_expected_is_written_too() {
    for len in [0, 1, 127, 128, 129, 16_383, 16_384, 16_385, 1 << 21] {
        for expected in 1..=9 {
            let body: Vec<u8> = (0..len).map(|at: usize| (at % 251) as u8).collect();
            let mut put = b"before".to_vec();
            put_behind_len(expected, &mut put, |to| to.put(&body));
            let mut one_by_one = b"before".to_vec();
            one_by_one.put_vint_bytes(&body);
            assert!(put == one_by_one, "{len} bytes, where a vint of {expected} bytes was expected");
        }
    }
}

/// Positions of all kinds, empty and null values among them, are compared as they are encoded as they are when decoded.
#[test]
fn encoded_positions_stand_where_decoded_ones_do() {
    let types = vec![CqlType::Int, CqlType::Reversed(Box::new(CqlType::Text)), CqlType::Blob];
    let regulars = vec![Column { name: b"v".as_slice().into(), data_type: CqlType::Blob }];
    let schema = Schema::new(CqlType::Int, types, Vec::new(), regulars);
    let minima = Minima { timestamp: 0, local_deletion_time: 0, ttl: 0 };
    let codec = RowCodec::new(&schema, minima, Version::Oa);
    let values =
        |of: &[&[u8]]| of.iter().map(|value| Some(Bytes::from(*value))).chain([None]).collect::<Vec<_>>();
    let (numbers, texts) = (values(&[&[0, 0, 0, 7], &[255, 0, 0, 1]]), values(&[b"", b"a", b"bc"]));
    let mut rows = Vec::new();
    for (number, text) in numbers.iter().flat_map(|number| texts.iter().map(move |text| (number, text))) {
        for blob in [Some(Bytes::from(b"\0".as_slice())), None] {
            rows.push(Clustering { values: [number.clone(), text.clone(), blob].into_iter().collect() });
        }
    }
    let prefix = |row: &Clustering, len| Clustering { values: row.values[..len].iter().cloned().collect() };
    let bounds = rows.iter().flat_map(|row| (0..=3).map(|len| prefix(row, len))).flat_map(|prefix| {
        [Weight::Before, Weight::After].map(|weight| Position { prefix: prefix.clone(), weight })
    });
    let positions: Vec<Position> = rows.iter().cloned().map(Position::at).chain(bounds).collect();
    for a in &positions {
        let mut bytes = Vec::new();
        match a.weight {
            Weight::At => codec.put_row_prefix(&a.prefix, &mut bytes),
            weight => {
                codec.put_marker_prefix(a, weight == Weight::After, weight == Weight::Before, &mut bytes)
            }
        }
        assert_eq!(codec.prefix_len(&bytes), Ok(bytes.len()));
        let mut row = Vec::new();
        put_row(&codec, &Row::new(a.prefix.clone()), 7, &mut row);
        let row = Rc::new(row);
        for b in &positions {
            let expected = schema.compare(a, b);
            assert_eq!(Sought::new(&codec, &schema, b).compare_prefix(&bytes), Ok(expected), "{a:?} {b:?}");
            if a.weight == Weight::At {
                let source = Source { owner: &row, end: row.len() };
                let end = if expected.is_lt() { row.len() } else { 0 };
                assert_eq!(codec.rows_before(source, 0, &schema, b), end, "{a:?} {b:?}");
            }
        }
    }
}

/// Rows of all sizes, stepped over up to a position, to the end of what is at hand, and to what is no plain row.
#[test]
fn rows_in_front_of_a_position_are_stepped_over() {
    let regulars = vec![Column { name: b"v".as_slice().into(), data_type: CqlType::Blob }];
    let schema = Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), regulars);
    let codec = RowCodec::new(&schema, Minima { timestamp: 0, local_deletion_time: 0, ttl: 0 }, Version::Me);
    let (mut bytes, mut starts) = (Vec::new(), Vec::new());
    for (number, len) in (0_i32..).zip([0, 1, 100, 118, 119, 120, 16_000, 16_380, 16_390, 3]) {
        starts.push(bytes.len());
        let value = CellValue::Value(Bytes::from(vec![7; len]));
        let cell = Cell {
            column: 0,
            ttl: 0,
            timestamp: 5,
            local_deletion_time: NO_DELETION_TIME,
            path: None,
            value,
        };
        let key: Clustering = std::iter::once(number.to_be_bytes().to_vec()).collect();
        put_row(&codec, &Row { cells: vec![cell], ..Row::new(key) }, 300, &mut bytes);
    }
    starts.push(bytes.len());
    codec.put_end_of_partition(&mut bytes);
    let owner = Rc::new(bytes);
    let skip = |end: usize, position: &Position| {
        codec.rows_before(Source { owner: &owner, end }, 0, &schema, position)
    };
    for (number, start) in (0_i32..).zip(&starts) {
        let key: Clustering = std::iter::once(number.to_be_bytes().to_vec()).collect();
        assert_eq!(skip(owner.len(), &Position::before(key.clone())), *start, "{number}");
        let behind = starts.get(number as usize + 1).unwrap_or(start);
        assert_eq!(skip(owner.len(), &Position::after(key)), *behind, "{number}");
    }
    for (pair, cut) in
        starts.windows(2).flat_map(|pair| [(pair, pair[0]), (pair, pair[0] + 1), (pair, pair[1] - 1)])
    {
        assert_eq!(skip(cut, &Position::end()), pair[0], "what is cut off is not stepped over");
    }
}
