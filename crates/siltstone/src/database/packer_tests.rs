//! A page is the same, whether rows came decoded or as they stand in the cache.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use model::flat::{Habit, Outline, is_usual, put_fragment};
use model::time::NO_DELETION_TIME;
use model::{Bytes, Cell, CellValue, CqlType, DeletionTime, Liveness, Token};
use storage::commit_log::{LogPosition, TableId};
use storage::memtable::{Checked, Memtable, MemtableReader};
use testkit::generate::random::Random;
use testkit::statements::{self, Writer};

use super::super::fold::{Fold, Folded, RowView};
use super::super::rows::PackedRows;
use super::super::shape::{ColumnInfo, ColumnKind};
use super::*;
use crate::table_schema::TableSchema;

/// A stream, some of whose rows are given as they stand.
struct Cached {
    /// And whether each is a usual row.
    fragments: VecDeque<(Fragment, Bytes, bool)>,
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
            (fragment.clone(), Bytes::from(bytes), is_usual(fragment))
        };
        let fragments = fragments.iter().map(flat).collect();
        Cached { fragments, percent, random: Random::new(seed), undecoded: 0 }
    }
}

impl FragmentReader for Cached {
    type Error = storage::Error;

    fn pop(&mut self, place: &mut Fragment) -> storage::Result<Next> {
        Ok(match self.fragments.pop_front() {
            Some((fragment, ..)) => {
                *place = fragment;
                Next::Fragment
            }
            None => Next::End,
        })
    }

    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        let is_row = |item: &&(Fragment, Bytes, bool)| matches!(item.0, Fragment::Row(_));
        let rows = self.fragments.iter().take_while(is_row).count();
        let run = (0..rows).take_while(|_| self.random.percent(self.percent)).count();
        let mut given = 0;
        let rows = self.fragments.range(..run).map(|(_, flat, is_usual)| {
            given += 1;
            FlatRow::new(flat, flat).known_as(*is_usual)
        });
        take.rows(&mut { rows });
        self.undecoded += given;
        self.fragments.drain(..given);
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
    habit: Rc<Habit<Outline>>,
}

impl Written {
    fn random(random: &mut Random) -> Written {
        let table = statements::Table::random(random, 0);
        let text = format!("{};\n{}", table.create_types.join(";\n"), table.create);
        let shape = Shape::new(TableSchema::parse("t".as_ref(), &text, None).unwrap(), 0);
        let memtable = Rc::new(Memtable::new(&Rc::new(table.schema.clone())));
        let mut writer = Writer::new(&table, random.number());
        for _ in 0..random.between(1, 120) {
            let written = writer.statement().to_mutation(&table);
            memtable.apply(Checked::of(&written, memtable.schema()), LogPosition::default());
        }
        // What expires is there, or is gone.
        let now = writer.now() + *random.one_of(&[0, 0, 20, 100]);
        Written { shape: Arc::new(shape), memtable, now, habit: Rc::default() }
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

    fn packer<S: Sink>(&self, selection: &Selection, sink: S) -> Packer<S> {
        let schema = self.memtable.schema().clone();
        Packer::new(self.shape.clone(), schema, selection.clone(), sink, (self.now, self.habit.clone()))
    }
}

/// What came of a page: its bytes, where rows begin, where it goes on.
type Packed = (Vec<u8>, Vec<usize>, Option<Vec<u8>>);

fn packed(packer: Packer<PackedRows>, stream: &mut Cached) -> Packed {
    let PackedRows { bytes, starts, next, .. } = filled(packer, stream);
    (bytes, starts, next)
}

fn filled<S: Sink>(mut packer: Packer<S>, stream: &mut Cached) -> S {
    assert!(packer.take_some(stream, &mut Fragment::default()).unwrap() == Taken::All);
    packer.finish()
}

/// A row by its token and the bytes of its values.
type Seen = (Token, Vec<Option<Vec<u8>>>);

/// The rows that a page has.
fn rows_of((bytes, starts, _): &Packed, columns: usize) -> Vec<Seen> {
    let page = PackedRows { bytes: bytes.clone(), starts: starts.clone(), ..PackedRows::default() };
    let column = ColumnInfo { name: "c".to_owned(), data_type: CqlType::Blob, kind: ColumnKind::Regular };
    let page = page.into_page(&vec![column; columns].into());
    let seen = |row: &super::super::Row| {
        (row.token(), row.values().map(|value| value.map(<[u8]>::to_vec)).collect())
    };
    page.rows.iter().map(seen).collect()
}

/// How a partition is read.
struct How {
    direction: Direction,
    with_static_only: bool,
    behind: PartitionKey,
}

impl How {
    fn apply<S: Sink>(&self, mut packer: Packer<S>) -> Packer<S> {
        (packer.direction, packer.with_static_only) = (self.direction, self.with_static_only);
        packer.behind = Some(self.behind.clone());
        packer
    }
}

/// Rows that are looked at one by one are those of a page that is as large as it has to be.
fn check_fold(written: &Written, selection: &Selection, how: &How, stream: impl Fn() -> Cached) {
    let selection = Selection { bytes: usize::MAX, ..selection.clone() };
    let page = packed(how.apply(written.packer(&selection, PackedRows::default())), &mut stream());
    let each = |seen: &mut Vec<Seen>, row: RowView<'_>| {
        seen.push((row.token(), row.values().map(|value| value.map(<[u8]>::to_vec)).collect()));
        ControlFlow::Continue(())
    };
    let fold = filled(how.apply(written.packer(&selection, Fold::new(Vec::new(), each))), &mut stream());
    let Folded { state, next } = fold.finish();
    assert_eq!(state, rows_of(&page, selection.places.len()), "{selection:?}");
    assert_eq!(next, page.2, "{selection:?}");
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
            // A scan goes on behind a partition; this one, or one that is far before.
            let token = if behind { key.token } else { Token::MIN };
            let behind = PartitionKey { token, bytes: key.bytes.clone() };
            let how = How { direction, with_static_only, behind };
            let page_of = |percent: usize| {
                let mut stream = Cached::new(&fragments, percent, seed);
                let packer = how.apply(written.packer(&selection, PackedRows::default()));
                (packed(packer, &mut stream), stream.undecoded)
            };
            let (expected, _) = page_of(0);
            for percent in [100, 50, 0] {
                check_fold(&written, &selection, &how, || Cached::new(&fragments, percent, seed));
                let (page, count) = page_of(percent);
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

/// A partition of so many usual rows.
fn usual_rows(count: u32) -> Vec<Fragment> {
    let row = |number: u32| {
        let (ttl, local_deletion_time, path) = (0, NO_DELETION_TIME, None);
        let value = CellValue::Value(Bytes::from(number.to_le_bytes().to_vec()));
        Fragment::Row(Row {
            liveness: Liveness { timestamp: 7, ..Liveness::NONE },
            cells: vec![Cell { column: 0, ttl, timestamp: 7, local_deletion_time, path, value }],
            ..Row::new([number.to_be_bytes().to_vec()].into_iter().collect())
        })
    };
    let key = PartitionKey::new(Bytes::from(vec![0; 4]));
    let start = Fragment::PartitionStart(PartitionStart { key, deletion: DeletionTime::LIVE });
    [start].into_iter().chain((0..count).map(row)).chain([Fragment::PartitionEnd]).collect()
}

#[test]
fn a_long_run_is_taken_in_turns_up_to_the_limit() {
    let text = "CREATE TABLE t.t (k int, c int, v blob, PRIMARY KEY (k, c));";
    let shape = Arc::new(Shape::new(TableSchema::parse("t".as_ref(), text, None).unwrap(), 0));
    let fragments = usual_rows(1200);
    // The beginning of the partition is a part of the first turn.
    for (limit, turns) in [(usize::MAX, 2), (1200, 2), (700, 1), (512, 1), (511, 0), (3, 0)] {
        let places = shape.places.clone();
        let (table, bytes) = (TableId([0; 16]), usize::MAX);
        let selection = Selection {
            table,
            version: 0,
            places,
            is_all: true,
            rows: limit,
            bytes,
            now: None,
            wants_next: true,
        };
        let each = |seen: &mut Vec<(u32, u32)>, row: RowView<'_>| {
            let values: Vec<_> = row.values().map(|value| value.unwrap().try_into().unwrap()).collect();
            seen.push((u32::from_be_bytes(values[1]), u32::from_le_bytes(values[2])));
            ControlFlow::Continue(())
        };
        let schema = Rc::new(shape.model().clone());
        let fold = Fold::new(Vec::new(), each);
        let mut packer = Packer::new(shape.clone(), schema, selection, fold, (0, Rc::default()));
        let (mut stream, mut place, mut taken) = (Cached::new(&fragments, 100, 1), Fragment::default(), 0);
        while packer.take_some(&mut stream, &mut place).unwrap() == Taken::Turn {
            taken += 1;
        }
        let Folded { state, next } = packer.finish().finish();
        let expected: Vec<_> = (0..limit.min(1200) as u32).map(|number| (number, number)).collect();
        assert_eq!((state, taken, next.is_some()), (expected, turns, limit <= 1200), "{limit}");
    }
}
