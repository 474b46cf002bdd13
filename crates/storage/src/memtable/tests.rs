//! A memtable gives what was written, whichever way it is read; and so do several, whoever has which writes.

use model::fragment::Validator;
use model::merge::{Direction, Merge};
use model::{Bytes, Column, CqlType, Fragment, FragmentReader, Mutation, Next, Slice, Token, Weight};
use testkit::generate::random::Random;
use testkit::oracle::Oracle;
use testkit::selected::{Selected, Selection};
use testkit::statements::{Table, Writer};

use super::*;
use crate::commit_log::LogPosition;

/// What a test has written, to the memtables and to what they are compared with.
struct Written {
    schema: Rc<Schema>,
    oracle: Oracle,
    /// All in one, and then each write in one of several.
    memtables: Vec<Vec<Rc<Memtable>>>,
    now: i64,
}

impl Written {
    fn of(table: &Table, random: &mut Random, statements: usize) -> Written {
        let schema = Rc::new(table.schema.clone());
        let mut writer = Writer::new(table, random.number());
        let mut mutations: Vec<Mutation> =
            (0..statements).map(|_| writer.statement().to_mutation(table)).collect();
        // What counters say depends on the order, where they are deleted.
        if !table.schema.is_counter() {
            shuffle(&mut mutations, random);
        }
        let empty = |count| (0..count).map(|_| Rc::new(Memtable::new(&schema))).collect();
        let memtables: Vec<Vec<Rc<Memtable>>> = vec![empty(1), empty(random.between(2, 5))];
        let mut oracle = Oracle::new(&schema);
        for mutation in mutations {
            oracle.apply(&mutation);
            for memtable in [&memtables[0][0], random.one_of(&memtables[1])] {
                memtable.apply(Checked::of(&mutation, &schema), LogPosition::default());
            }
        }
        Written { schema, oracle, memtables, now: writer.now() }
    }

    fn check(&self, way: Direction, slice: Option<(&PartitionKey, &Slice)>, now: i64) {
        let expected = match slice {
            None => self.oracle.rows(now),
            Some((key, slice)) => self.oracle.slice(key, slice, way, now),
        };
        for memtables in &self.memtables {
            for is_flat in [false, true] {
                let readers = memtables.iter().map(|memtable| match slice {
                    None => MemtableReader::scan(memtable, None, Token::MAX),
                    Some((key, slice)) => MemtableReader::slice(memtable, key, slice, way, true),
                });
                let is_all = slice.is_none_or(|(_, slice)| slice.is_all());
                let merge = Merge::new(&self.schema, way, readers.collect());
                let found = self.selected((merge, is_flat), way, is_all, now);
                assert_eq!(found, expected, "{way:?} {slice:?} at {now} of {} memtables", memtables.len());
            }
        }
    }

    fn selected(
        &self,
        (mut rows, is_flat): (Merge<MemtableReader>, bool),
        way: Direction,
        all: bool,
        now: i64,
    ) -> Vec<Selected> {
        let mut selection = Selection::new(&self.schema, now, all);
        let mut order = Order::new(&self.schema, way);
        let mut fragment = Fragment::default();
        while pop(&mut rows, is_flat, &mut fragment) == Next::Fragment {
            order.check(&fragment);
            selection.take(std::mem::take(&mut fragment));
        }
        order.validator.finish().unwrap();
        selection.rows
    }
}

/// Pops a fragment, or a row as it stands where there is one.
fn pop<R: FragmentReader<Error: std::fmt::Debug>>(
    reader: &mut R,
    is_flat: bool,
    place: &mut Fragment,
) -> Next {
    let mut has_row = false;
    if is_flat {
        reader.pop_flat(&mut |row: model::flat::FlatRow<'_>| {
            assert!(row.is_usual());
            row.decode(place).unwrap();
            has_row = true;
            false
        });
    }
    if has_row { Next::Fragment } else { reader.pop(place).unwrap() }
}

/// Validates a stream that runs either way.
struct Order {
    validator: Validator,
    way: Direction,
}

impl Order {
    fn new(schema: &Schema, way: Direction) -> Order {
        let mut schema = schema.clone();
        if way == Direction::Reverse {
            schema.clustering = schema.clustering.into_iter().map(mirrored).collect();
        }
        Order { validator: Validator::new(&schema), way }
    }

    fn check(&mut self, fragment: &Fragment) {
        let mut fragment = fragment.clone();
        if let (Fragment::RangeTombstone(change), Direction::Reverse) = (&mut fragment, self.way) {
            change.position.weight = match change.position.weight {
                Weight::Before => Weight::After,
                Weight::At => Weight::At,
                Weight::After => Weight::Before,
            };
        }
        self.validator.check(&fragment).unwrap();
    }
}

fn mirrored(of: CqlType) -> CqlType {
    match of {
        CqlType::Reversed(base) => *base,
        other => CqlType::Reversed(Box::new(other)),
    }
}

fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at + 1));
    }
}

#[test]
fn whoever_has_which_writes_the_rows_are_the_same() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let table = Table::random(&mut random, 0);
        let statements = random.between(1, 150);
        println!("seed {seed}: {statements} statements to {}", table.create);
        let written = Written::of(&table, &mut random, statements);
        let keys: Vec<PartitionKey> = written.oracle.keys().cloned().collect();
        for later in [0, 10, 30, 1000, 200_000_000] {
            let now = written.now + later;
            written.check(Direction::Forward, None, now);
            for _ in 0..5 {
                let slice = if random.percent(10) { Slice::all() } else { table.random_slice(&mut random) };
                if table.schema.is_empty_slice(&slice) {
                    continue;
                }
                for way in [Direction::Forward, Direction::Reverse] {
                    written.check(way, Some((random.one_of(&keys), &slice)), now);
                }
            }
        }
    }
}

#[test]
fn what_was_never_written_is_not_there() {
    let table = Table::random(&mut Random::new(1), 0);
    let memtable = Rc::new(Memtable::new(&Rc::new(table.schema.clone())));
    assert!(memtable.is_empty() && memtable.timestamps().is_none());
    let key = PartitionKey::new(Bytes::from(&b"key"[..]));
    let mut slice = MemtableReader::slice(&memtable, &key, &Slice::all(), Direction::Forward, true);
    let mut place = Fragment::default();
    assert_eq!(slice.pop(&mut place).unwrap(), Next::End);
    let mut scan = MemtableReader::scan(&memtable, None, Token::MAX);
    assert_eq!(scan.pop(&mut place).unwrap(), Next::End);
}

/// A table of an int key, an int clustering column, a blob and an int.
fn blobs() -> Rc<Schema> {
    let column = |name: &str, data_type| Column { name: name.as_bytes().into(), data_type };
    let regulars = vec![column("v", CqlType::Blob), column("w", CqlType::Int)];
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], Vec::new(), regulars))
}

fn int(number: i32) -> Bytes {
    Bytes::from(&number.to_be_bytes()[..])
}

/// A row of the only partition, with one column.
fn row(number: i32, column: u16, value: Bytes, timestamp: i64) -> Mutation {
    let mut row = model::Row::new(std::iter::once(int(number)).collect());
    let (value, local_deletion_time) = (model::CellValue::Value(value), model::time::NO_DELETION_TIME);
    row.cells = vec![model::Cell { column, ttl: 0, timestamp, local_deletion_time, path: None, value }];
    Mutation { rows: vec![row], ..Mutation::new(PartitionKey::new(int(1))) }
}

fn apply(memtable: &Memtable, mutation: &Mutation) {
    memtable.apply(Checked::of(mutation, memtable.schema()), LogPosition::default());
}

/// Whatever of a row is written again, its other values are neither copied nor counted again.
#[test]
fn a_part_of_a_row_that_is_written_again_takes_little() {
    const LARGE: usize = 1 << 20;
    let memtable = Memtable::new(&blobs());
    apply(&memtable, &row(7, 0, Bytes::from(vec![1; LARGE]), 1));
    let before = memtable.bytes();
    assert!((LARGE..LARGE + 2000).contains(&before), "{before}");
    (0..1000).for_each(|number| apply(&memtable, &row(7, 1, int(number), i64::from(number))));
    let each = (memtable.bytes() - before) / 1000;
    assert!((80..200).contains(&each), "{each} bytes an update");
}

/// The list of rows may have room for twice as many.
#[test]
fn a_row_takes_its_buffer_and_its_entry() {
    let memtable = Memtable::new(&blobs());
    let mut mutation = Mutation::new(PartitionKey::new(int(1)));
    mutation.rows = (0..10_000).flat_map(|number| row(number, 1, int(number), 1).rows).collect();
    apply(&memtable, &mutation);
    let (entry, buffer) = (ENTRY, 1 + 1 + 1 + 4 + 1 + 1 + 1 + 4);
    let each = memtable.bytes() / 10_000;
    assert!((entry + buffer..entry + 2 * buffer + 2).contains(&each), "{each} bytes a row");
}

/// What is behind a reader stays as it was, and what is before it is as it is now; a deletion holds from where it stands.
#[test]
fn writes_may_come_while_a_reader_stands() {
    let ways = [Direction::Forward, Direction::Reverse];
    for (way, is_flat) in ways.into_iter().flat_map(|way| [(way, false), (way, true)]) {
        for (popped, is_deleted) in
            [(0, false), (1, false), (70, false), (150, true), (300, false), (301, true)]
        {
            let memtable = Rc::new(Memtable::new(&blobs()));
            (0..300).for_each(|number| apply(&memtable, &row(number * 2, 1, int(1), 1)));
            let key = PartitionKey::new(int(1));
            let mut reader = MemtableReader::slice(&memtable, &key, &Slice::all(), way, true);
            let (mut order, mut place) = (Order::new(memtable.schema(), way), Fragment::default());
            let mut found = Vec::new();
            for at in 0.. {
                if at == popped && is_deleted {
                    let deletion = DeletionTime { marked_for_delete_at: 5, local_deletion_time: 5 };
                    apply(&memtable, &Mutation { deletion, ..Mutation::new(key.clone()) });
                } else if at == popped {
                    (0..600).for_each(|number| apply(&memtable, &row(number, 1, int(2), 2)));
                }
                if pop(&mut reader, is_flat, &mut place) != Next::Fragment {
                    break;
                }
                order.check(&place);
                if let Fragment::Row(row) = &place {
                    let model::CellValue::Value(value) = &row.cells[0].value else { panic!("a value") };
                    let number = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().unwrap());
                    found.push((number(row.clustering.values[0].as_ref().unwrap()), number(value)));
                }
            }
            order.validator.finish().unwrap();
            let old = found.iter().take_while(|(_, value)| *value == 1).count();
            assert!(
                found[old..].iter().all(|(_, value)| *value == 2),
                "what is new comes behind what is old"
            );
            // A reader takes 64 at a time.
            let seen = usize::min(300, popped);
            assert!((seen.saturating_sub(1)..=seen + 64).contains(&old), "{old} of {popped}");
            let expected = if is_deleted { old } else { old + 2 * (300 - old) };
            assert!(found.len().abs_diff(expected) <= 1, "{} of {popped}, {old} of them old", found.len());
        }
    }
}
