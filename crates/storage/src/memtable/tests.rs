//! A memtable gives what was written, whichever way it is read; and so do several, whoever has which writes.

use model::fragment::Validator;
use model::merge::{Direction, Merge};
use model::{
    Bytes, Clustering, CqlType, Fragment, FragmentReader, Mutation, Next, Position, Slice, Token, Weight,
};
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
                memtable.apply(super::Checked::of(&mutation, &schema), LogPosition::default());
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
            let readers = memtables.iter().map(|memtable| match slice {
                None => MemtableReader::scan(memtable, None, Token::MAX),
                Some((key, slice)) => MemtableReader::slice(memtable, key, slice, way, true),
            });
            let is_all = slice.is_none_or(|(_, slice)| slice.is_all());
            let found = self.selected(Merge::new(&self.schema, way, readers.collect()), way, is_all, now);
            assert_eq!(found, expected, "{way:?} {slice:?} at {now} of {} memtables", memtables.len());
        }
    }

    fn selected(
        &self,
        mut rows: Merge<MemtableReader>,
        way: Direction,
        all: bool,
        now: i64,
    ) -> Vec<Selected> {
        let mut selection = Selection::new(&self.schema, now, all);
        let mut order = Order::new(&self.schema, way);
        let mut fragment = Fragment::default();
        while rows.pop(&mut fragment).unwrap() == Next::Fragment {
            order.check(&fragment);
            selection.take(std::mem::take(&mut fragment));
        }
        order.validator.finish().unwrap();
        selection.rows
    }
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

fn slice(table: &Table, random: &mut Random) -> Slice {
    let mut position = || {
        let row = table.random_row(random);
        let len = random.below(row.len() + 1);
        let is_whole = len == row.len();
        let prefix: Clustering = row.values.into_iter().take(len).flatten().collect();
        match random.below(3) {
            0 => Position::before(prefix),
            1 if is_whole => Position::at(prefix),
            _ => Position::after(prefix),
        }
    };
    let (start, end) = (position(), position());
    match table.schema.compare(&start, &end).is_le() {
        true => Slice { start, end },
        false => Slice { start: end, end: start },
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
                let slice = if random.percent(10) { Slice::all() } else { slice(&table, &mut random) };
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
