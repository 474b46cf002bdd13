//! A page is the same, whether rows came decoded or as they stand in the cache.

use std::collections::VecDeque;

use model::Token;
use model::flat::put_fragment;
use storage::commit_log::{LogPosition, TableId};
use storage::memtable::{Memtable, MemtableReader};
use testkit::generate::random::Random;
use testkit::statements::{self, Writer};

use super::*;
use crate::table_schema::TableSchema;

/// A stream, some of whose rows are given as they stand.
struct Cached {
    fragments: VecDeque<(Fragment, Bytes)>,
    /// How many of a hundred rows may be taken undecoded.
    percent: usize,
    random: Random,
    undecoded: usize,
}

impl Cached {
    fn new(fragments: &[Fragment], percent: usize, seed: u64) -> Cached {
        let flat = |fragment: &Fragment| {
            let mut bytes = Vec::new();
            put_fragment(fragment, &mut bytes);
            (fragment.clone(), Bytes::from(bytes))
        };
        let fragments = fragments.iter().map(flat).collect();
        Cached { fragments, percent, random: Random::new(seed), undecoded: 0 }
    }
}

impl FragmentReader for Cached {
    type Error = storage::Error;

    fn pop(&mut self, place: &mut Fragment) -> storage::Result<Next> {
        Ok(match self.fragments.pop_front() {
            Some((fragment, _)) => {
                *place = fragment;
                Next::Fragment
            }
            None => Next::End,
        })
    }

    fn pop_flat(&mut self, take: &mut impl FnMut(FlatRow<'_>) -> bool) {
        while matches!(self.fragments.front(), Some((Fragment::Row(_), _)))
            && self.random.percent(self.percent)
        {
            let flat = self.fragments.pop_front().unwrap().1;
            self.undecoded += 1;
            if !take(FlatRow::new(&flat, &flat)) {
                return;
            }
        }
    }

    async fn fill(&mut self) -> storage::Result<()> {
        Ok(())
    }
}

/// A table with random rows.
struct Written {
    shape: Arc<Shape>,
    memtable: Rc<Memtable>,
    now: i64,
}

impl Written {
    fn random(random: &mut Random) -> Written {
        let table = statements::Table::random(random, 0);
        let text = format!("{};\n{}", table.create_types.join(";\n"), table.create);
        let shape = Shape::new(TableSchema::parse("t".as_ref(), &text, None).unwrap(), 0);
        let memtable = Rc::new(Memtable::new(&Rc::new(table.schema.clone())));
        let mut writer = Writer::new(&table, random.number());
        for _ in 0..random.between(1, 120) {
            memtable.apply(writer.statement().to_mutation(&table), 0, LogPosition::default());
        }
        // What expires is there, or is gone.
        let now = writer.now() + *random.one_of(&[0, 0, 20, 100]);
        Written { shape: Arc::new(shape), memtable, now }
    }

    fn fragments(&self, key: &PartitionKey, direction: Direction) -> Vec<Fragment> {
        let mut reader = MemtableReader::slice(&self.memtable, key, &Slice::all(), direction, true);
        let mut all = Vec::new();
        let mut place = Fragment::default();
        while reader.pop(&mut place).unwrap() == Next::Fragment {
            all.push(place.clone());
        }
        all
    }

    /// Some of the columns, in any order, perhaps twice.
    fn selection(&self, random: &mut Random) -> Selection {
        let all = &self.shape.places;
        let is_all = random.percent(40);
        let some = (0..random.between(0, 4)).map(|_| *random.one_of(all)).collect();
        Selection {
            table: TableId([0; 16]),
            version: 0,
            places: if is_all { all.clone() } else { some },
            is_all,
            rows: *random.one_of(&[1, 2, 3, 1000]),
            bytes: *random.one_of(&[1, 40, 1 << 20]),
            now: None,
            wants_next: random.percent(80),
        }
    }

    fn packer(&self, selection: &Selection) -> Packer {
        let schema = self.memtable.schema().clone();
        Packer::new(self.shape.clone(), schema, selection.clone(), self.now)
    }
}

/// What came of a page: its bytes, where rows begin, where it goes on.
type Packed = (Vec<u8>, Vec<usize>, Option<Vec<u8>>);

fn packed(mut packer: Packer, stream: &mut Cached) -> Packed {
    assert!(packer.take_some(stream, &mut Fragment::default()).unwrap() == Taken::All);
    let PackedRows { bytes, starts, next } = packer.finish();
    (bytes, starts, next)
}

/// How many rows were packed undecoded.
fn compare(seed: u64) -> usize {
    let random = &mut Random::new(seed);
    let written = Written::random(random);
    let mut undecoded = 0;
    for key in written.memtable.keys() {
        for direction in [Direction::Forward, Direction::Reverse] {
            let fragments = written.fragments(&key, direction);
            let selection = written.selection(random);
            let (with_static_only, behind) = (random.percent(50), random.percent(20));
            let packed = |percent: usize| {
                let mut stream = Cached::new(&fragments, percent, seed);
                let mut packer = written.packer(&selection);
                (packer.direction, packer.with_static_only) = (direction, with_static_only);
                // A scan goes on behind a partition; this one, or one that is far before.
                let token = if behind { key.token } else { Token::MIN };
                packer.behind = Some(PartitionKey { token, bytes: key.bytes.clone() });
                (packed(packer, &mut stream), stream.undecoded)
            };
            let (expected, _) = packed(0);
            for percent in [100, 50] {
                let (page, count) = packed(percent);
                assert_eq!(page, expected, "seed {seed}: {direction:?}, {selection:?}, {fragments:#?}");
                undecoded += count;
            }
        }
    }
    undecoded
}

#[test]
fn pages_are_the_same_of_rows_that_are_not_decoded() {
    let undecoded: usize = (0..300).map(compare).sum();
    assert!(undecoded > 3000, "{undecoded}");
}
