//! Random statements, told by the names of columns, become the mutations that Cassandra makes of them.

use model::Clustering;
use sstable::Version;
use sstable::data::row::Family;
use testkit::generate::random::Random;
use testkit::statements::{self, Element, End, New, Part, Place as Column, Statement, What, Writer};

use super::super::write::{Batch, Bound};
use super::*;
use crate::table_schema::TableSchema;

/// A statement as a write; `None` for what only the mutation can tell: the ids of a list's elements, and counters.
fn write_of(statement: &Statement, table: &statements::Table) -> Option<Write> {
    let key = || raw(&statement.key);
    let row = |row: &Option<Clustering>| row.as_ref().map_or(Vec::new(), values_of);
    let write = match &statement.what {
        What::Insert(clustering, changes) => changed(Write::insert(key(), row(clustering)), changes, table)?,
        What::Update(clustering, changes) => changed(Write::update(key(), row(clustering)), changes, table)?,
        What::Count(..) => return None,
        What::DeleteColumns(clustering, parts) => {
            let write = Write::update(key(), row(clustering));
            parts.iter().try_fold(write, |write, (column, part)| deleted(write, *column, part, table))?
        }
        What::DeleteRow(clustering) => Write::delete_row(key(), values_of(clustering)),
        What::DeleteRange(range) => {
            let whole = |end: &Option<End>| bound(&range.prefix, end.as_ref());
            // The bounds are those of values; where a column descends they change places.
            let of = &table.schema.clustering[range.prefix.len()];
            let (from, to) = match of.is_reversed() {
                true => (whole(&range.upper), whole(&range.lower)),
                false => (whole(&range.lower), whole(&range.upper)),
            };
            Write::delete_range(key(), from, to)
        }
        What::DeletePartition => Write::delete(key()),
    };
    Some(write.ttl(statement.ttl).timestamp(statement.timestamp))
}

fn changed(write: Write, changes: &[statements::Change], table: &statements::Table) -> Option<Write> {
    changes.iter().try_fold(write, |write, change| {
        let of = &table.column(change.column).data_type;
        let is_list = of.is_multi_cell() && matches!(of, CqlType::List { .. });
        let name = table.column(change.column).name_text().into_owned();
        let wire = |elements: &[Element]| Value::Raw(wire_of(of, elements));
        Some(match &change.to {
            New::Null => write.set(&name, Value::Null),
            New::Value(value) => write.set(&name, Value::Raw(value.to_vec())),
            _ if is_list => return None,
            New::Elements(elements) => write.set(&name, wire(elements)),
            New::Add(elements) | New::Prepend(elements) => write.add(&name, wire(elements)),
            New::Remove(paths) => {
                paths.iter().fold(write, |write, path| write.remove(&name, Value::Raw(path.to_vec())))
            }
            New::Put(path, value) => {
                let value = value.as_ref().map_or(Value::Null, |value| Value::Raw(value.to_vec()));
                write.put(&name, Value::Raw(path.to_vec()), value)
            }
        })
    })
}

fn deleted(write: Write, column: Column, part: &Part, table: &statements::Table) -> Option<Write> {
    let name = table.column(column).name_text().into_owned();
    Some(match part {
        Part::Whole => write.unset(&name),
        Part::Cell(path) => write.remove(&name, Value::Raw(path.to_vec())),
    })
}

fn bound(prefix: &[Bytes], end: Option<&End>) -> Bound {
    let values = |more: &[Bytes]| raw(prefix.iter().chain(more));
    match end {
        None if prefix.is_empty() => Bound::Open,
        None => Bound::including(values(&[])),
        Some(End { values: more, is_inclusive: true }) => Bound::including(values(more)),
        Some(End { values: more, is_inclusive: false }) => Bound::excluding(values(more)),
    }
}

/// The elements of a set, map or user type as one value.
fn wire_of(of: &CqlType, elements: &[Element]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |part: Option<&[u8]>| {
        bytes.extend_from_slice(&part.map_or(-1, |part| part.len() as i32).to_be_bytes());
        bytes.extend_from_slice(part.unwrap_or_default());
    };
    match of {
        CqlType::Udt(udt) => (0..udt.fields.len() as u16).for_each(|field| {
            let element = elements.iter().find(|element| *element.path == field.to_be_bytes());
            put(element.map(|element| &*element.value));
        }),
        CqlType::Set { .. } => elements.iter().for_each(|element| put(Some(&element.path))),
        _ => elements.iter().for_each(|element| {
            put(Some(&element.path));
            put(Some(&element.value));
        }),
    }
    match of {
        CqlType::Udt(_) => bytes,
        _ => [&(elements.len() as i32).to_be_bytes()[..], &bytes].concat(),
    }
}

fn raw<'a>(values: impl IntoIterator<Item = &'a Bytes>) -> Vec<Value> {
    values.into_iter().map(|value| Value::Raw(value.to_vec())).collect()
}

fn values_of(clustering: &Clustering) -> Vec<Value> {
    raw(clustering.values.iter().flatten())
}

/// What the records of a batch are.
fn mutations(encoder: &Encoder<'_>, batch: &Batch) -> Vec<Mutation> {
    let decoded = |Record { bytes, .. }| flat::mutation(&Bytes::from(bytes)).unwrap();
    encoder.records(batch).unwrap().into_iter().map(decoded).collect()
}

/// How many statements of a table could be told by names.
fn compare(seed: u64) -> usize {
    let random = &mut Random::new(seed);
    let table = statements::Table::random(random, 0);
    let text = format!("{};\n{}", table.create_types.join(";\n"), table.create);
    let schema = TableSchema::parse("t".as_ref(), &text, None).unwrap();
    let shape = Shape::new(schema, 0);
    let (stamps, limits) = (Stamps::new(1), Limits::of(Version::Oa, Family::Cassandra));
    let mut writer = Writer::new(&table, seed);
    let (mut told, mut batch) = (0, Batch::new());
    for _ in 0..100 {
        let statement = writer.statement();
        let Some(write) = write_of(&statement, &table) else { continue };
        let encoder = Encoder { shape: &shape, stamps: &stamps, limits: &limits, now: statement.now };
        let mutations = mutations(&encoder, &Batch::from(write.clone()));
        // A row of which nothing is said is left out.
        let mut expected = statement.to_mutation(&table);
        expected.rows.retain(|row| !row.is_empty());
        expected.static_row = expected.static_row.filter(|row| !row.is_empty());
        assert_eq!(mutations, [expected], "seed {seed}: {write:?}");
        told += 1;
        batch.push(write);
        if batch.len() == 1 + told % 4 {
            compare_ways(&encoder, &std::mem::take(&mut batch));
        }
    }
    told
}

/// Where the writes to a partition are plain, the bytes are those of their mutation.
fn compare_ways(encoder: &Encoder<'_>, batch: &Batch) {
    let compared = encoder.each_partition(batch, |key, writes, timestamp| {
        let mutation = encoder.mutation(key, writes, timestamp)?;
        if let Some(bytes) = encoder.plain(key, writes, timestamp) {
            assert_eq!(bytes, Record::of(&mutation).bytes, "{writes:?}");
        }
        Ok(())
    });
    compared.unwrap();
}

/// Rows in the order of their table, whatever their values.
#[test]
fn rows_in_order_are_encoded_alike() {
    let text = "CREATE TABLE ks.t (k int, a double, b text, v text, w int, PRIMARY KEY (k, a, b))
        WITH CLUSTERING ORDER BY (a DESC, b ASC)";
    let shape = Shape::new(TableSchema::parse("t".as_ref(), text, None).unwrap(), 0);
    let (stamps, limits) = (Stamps::new(1), Limits::of(Version::Oa, Family::Cassandra));
    let encoder = Encoder { shape: &shape, stamps: &stamps, limits: &limits, now: 1_700_000_000 };
    let (mut random, mut plain) = (Random::new(7), 0);
    for _ in 0..500 {
        let mut keys: Vec<(i32, i32)> =
            (0..random.between(1, 20)).map(|_| (random.below(5) as i32, random.below(30) as i32)).collect();
        keys.sort_unstable_by_key(|(a, b)| (-a, format!("{b}")));
        if random.percent(80) {
            keys.dedup();
        }
        let write = |(a, b): (i32, i32)| {
            // 0.0 comes behind -0.0, of which the bytes are others.
            let key = (1, (if b % 2 == 0 { f64::from(a) } else { -f64::from(-a) }, format!("{b}")));
            let write =
                if random.percent(70) { Write::insert(key.0, key.1) } else { Write::update(key.0, key.1) };
            let mut write = write.timestamp(random.below(3) as i64).ttl([0, 60][random.below(2)]);
            for _ in 0..random.between(1, 3) {
                write = match random.below(4) {
                    0 => write.unset("v"),
                    1 => write.set("v", "x".repeat(random.below(300))),
                    2 => write.set("w", Value::Null),
                    _ => write.set("w", b),
                };
            }
            write
        };
        let batch: Batch = keys.into_iter().map(write).collect();
        compare_ways(&encoder, &batch);
        let is_plain =
            encoder.each_partition(&batch, |key, writes, at| Ok(encoder.plain(key, writes, at).is_some()));
        plain += usize::from(is_plain.unwrap() == [true]);
    }
    assert!((300..500).contains(&plain), "{plain} batches are plain");
}

#[test]
fn writes_become_what_cassandra_makes_of_them() {
    let told: usize = (0..60).map(compare).sum();
    assert!(told > 2000, "{told}");
}

/// Equal values need not be equal keys.
#[test]
fn zeros_of_either_sign_are_two_partitions() {
    let text = "CREATE TABLE ks.t (k double PRIMARY KEY, v int)";
    let shape = Shape::new(TableSchema::parse("t".as_ref(), text, None).unwrap(), 0);
    let (stamps, limits) = (Stamps::new(1), Limits::of(Version::Oa, Family::Cassandra));
    let encoder = Encoder { shape: &shape, stamps: &stamps, limits: &limits, now: 1 };
    let batch: Batch = [0.0, -0.0, 0.0].map(|k| Write::insert(k, ()).set("v", 1)).into_iter().collect();
    let mutations = mutations(&encoder, &batch);
    let keys: Vec<f64> =
        mutations.iter().map(|m| f64::from_be_bytes((*m.key.bytes).try_into().unwrap())).collect();
    assert_eq!(keys.iter().map(|key| key.is_sign_negative()).collect::<Vec<_>>(), [false, true]);
}
