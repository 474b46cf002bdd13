//! Streams by hand; streams at random are in `random`.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::flat::{FlatRow, RowTaker, is_usual, put_fragment};
use crate::fragment::Validator;
use crate::time::NO_DELETION_TIME;
use crate::{
    Bytes, Cell, CellValue, Clustering, Column, CqlType, DeletionTime, Liveness, PartitionKey,
    PartitionStart, Position, RangeTombstoneChange, Row,
};

mod oracle;
pub(crate) mod random;

/// A stream that is written down, and is at hand in pieces of a few fragments.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    fragments: std::vec::IntoIter<Fragment>,
    /// How many fragments one fill brings; all are at hand where it is 0.
    piece: usize,
    at_hand: usize,
    fills: usize,
    fails: bool,
}

impl Script {
    pub(crate) fn new(fragments: Vec<Fragment>, piece: usize) -> Script {
        Script { fragments: fragments.into_iter(), piece, at_hand: 0, fills: 0, fails: false }
    }
}

impl FragmentReader for Script {
    type Error = &'static str;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next, &'static str> {
        if self.piece > 0 && self.at_hand == 0 {
            return Ok(Next::Fill);
        }
        self.at_hand = self.at_hand.saturating_sub(1);
        match self.fragments.next() {
            Some(fragment) => {
                *place = fragment;
                Ok(Next::Fragment)
            }
            None => Ok(Next::End),
        }
    }

    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        let mut wants_more = true;
        while wants_more
            && (self.piece == 0 || self.at_hand > 0)
            && let Some(row @ Fragment::Row(_)) = self.fragments.as_slice().first()
        {
            let mut bytes = Vec::new();
            put_fragment(row, &mut bytes);
            let (bytes, is_usual) = (Bytes::from(bytes), is_usual(row));
            self.fragments.next();
            self.at_hand = self.at_hand.saturating_sub(1);
            wants_more = take.row(FlatRow::alone(&bytes).known_as(is_usual));
        }
    }

    async fn fill(&mut self) -> Result<(), &'static str> {
        assert!(self.piece > 0 && self.at_hand == 0, "only a starving source is filled");
        let mut waited = false;
        std::future::poll_fn(|_| {
            if std::mem::replace(&mut waited, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        self.fills += 1;
        self.at_hand = self.piece;
        if self.fails { Err("the disk is gone") } else { Ok(()) }
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

pub(crate) fn read_all<R: FragmentReader<Error: std::fmt::Debug>>(reader: &mut R) -> Vec<Fragment> {
    block_on(async {
        let mut fragments = Vec::new();
        while let Some(fragment) = reader.next().await.unwrap() {
            fragments.push(fragment);
        }
        assert!(reader.next().await.unwrap().is_none(), "the end stays the end");
        fragments
    })
}

/// The same, of a reader that is asked for rows as they stand, two at a time, before each fragment that is popped; and how
/// many came so.
pub(crate) fn read_flat<R: FragmentReader<Error: std::fmt::Debug>>(reader: &mut R) -> (Vec<Fragment>, usize) {
    block_on(async {
        let (mut fragments, mut flat) = (Vec::new(), 0);
        loop {
            let mut left = 2;
            reader.pop_flat(&mut |row: FlatRow<'_>| {
                let mut fragment = Fragment::default();
                row.decode(&mut fragment).unwrap();
                fragments.push(fragment);
                (flat, left) = (flat + 1, left - 1);
                left > 0
            });
            match reader.next().await.unwrap() {
                Some(fragment) => fragments.push(fragment),
                None => return (fragments, flat),
            }
        }
    })
}

fn merged(schema: &Rc<Schema>, direction: Direction, sources: &[Vec<Fragment>]) -> Vec<Fragment> {
    let merge = || {
        let scripts = sources.iter().map(|source| Script::new(source.clone(), 0)).collect();
        Merge::new(schema, direction, scripts)
    };
    let fragments = read_all(&mut merge());
    assert_eq!(read_flat(&mut merge()).0, fragments);
    fragments
}

pub(crate) fn validate(schema: &Schema, fragments: &[Fragment]) {
    let mut validator = Validator::new(schema);
    for fragment in fragments {
        validator.check(fragment).unwrap_or_else(|error| panic!("{error}: {fragment:?}"));
    }
    validator.finish().unwrap();
}

/// Rows of one clustering column, a blob `a`, a `map<int, blob>` and a static blob.
pub(crate) fn schema() -> Rc<Schema> {
    let column = |name: &str, data_type: CqlType| Column { name: name.as_bytes().into(), data_type };
    let regulars =
        vec![column("a", CqlType::Blob), column("m", CqlType::map(CqlType::Int, CqlType::Blob, false))];
    Rc::new(Schema::new(CqlType::Int, vec![CqlType::Int], vec![column("s", CqlType::Blob)], regulars))
}

pub(crate) fn deletion(at: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: at, local_deletion_time: 1 }
}

pub(crate) fn start(key: i32, deletion: DeletionTime) -> Fragment {
    let key = PartitionKey::new(Bytes::from(key.to_be_bytes().to_vec()));
    Fragment::PartitionStart(PartitionStart { key, deletion })
}

pub(crate) fn key(value: i32) -> Clustering {
    [value.to_be_bytes().to_vec()].into_iter().collect()
}

pub(crate) fn cell(timestamp: i64) -> Cell {
    Cell {
        column: 0,
        ttl: 0,
        timestamp,
        local_deletion_time: NO_DELETION_TIME,
        path: None,
        value: CellValue::Value(Bytes::from(b"v".to_vec())),
    }
}

fn row(at: i32, timestamp: i64) -> Fragment {
    Fragment::Row(Row { cells: vec![cell(timestamp)], ..Row::new(key(at)) })
}

fn static_row(timestamp: i64) -> Fragment {
    Fragment::StaticRow(Row { cells: vec![cell(timestamp)], ..Row::new(Clustering::empty()) })
}

pub(crate) fn change(position: Position, to: i64) -> Fragment {
    let deletion = if to == 0 { DeletionTime::LIVE } else { deletion(to) };
    Fragment::RangeTombstone(RangeTombstoneChange { position, deletion })
}

pub(crate) fn before(at: i32, to: i64) -> Fragment {
    change(Position::before(key(at)), to)
}

pub(crate) fn after(at: i32, to: i64) -> Fragment {
    change(Position::after(key(at)), to)
}

pub(crate) const LIVE: DeletionTime = DeletionTime::LIVE;
pub(crate) const END: Fragment = Fragment::PartitionEnd;

#[test]
fn no_source_and_empty_sources_are_at_their_end() {
    assert_eq!(merged(&schema(), Direction::Forward, &[]), []);
    assert_eq!(merged(&schema(), Direction::Forward, &[vec![], vec![], vec![]]), []);
}

#[test]
fn a_single_source_passes_as_it_is() {
    // The deletion would cover the row, had another source to be looked at.
    let only = vec![start(1, deletion(9)), static_row(1), row(1, 1), END, start(2, LIVE), END];
    assert_eq!(merged(&schema(), Direction::Forward, std::slice::from_ref(&only)), only);
    assert_eq!(merged(&schema(), Direction::Forward, &[vec![], only.clone()]), only);
}

#[test]
fn partitions_come_by_token() {
    let tokens = [1i32, 2, 3].map(|key| crate::key::token_of(&key.to_be_bytes()));
    assert!(tokens.is_sorted());
    let sources =
        [vec![start(1, LIVE), row(1, 1), END, start(3, LIVE), END], vec![start(2, LIVE), row(5, 1), END]];
    let expected = [start(1, LIVE), row(1, 1), END, start(2, LIVE), row(5, 1), END, start(3, LIVE), END];
    assert_eq!(merged(&schema(), Direction::Forward, &sources), expected);
}

#[test]
fn rows_and_deletions_of_one_partition_are_reconciled() {
    let sources = [
        vec![start(1, deletion(2)), static_row(3), row(1, 5), before(2, 7), row(3, 9), after(4, 0), END],
        vec![
            start(1, deletion(1)),
            static_row(2),
            row(1, 4),
            row(2, 6),
            row(3, 8),
            row(4, 7),
            row(5, 3),
            END,
        ],
        vec![start(1, LIVE), row(0, 2), after(3, 8), row(4, 8), row(5, 9), change(Position::end(), 0), END],
    ];
    let expected = [
        start(1, deletion(2)),
        static_row(3),
        row(1, 5),
        before(2, 7),
        row(3, 9),
        after(3, 8),
        row(5, 9),
        change(Position::end(), 0),
        END,
    ];
    assert_eq!(merged(&schema(), Direction::Forward, &sources), expected);
    validate(&schema(), &expected);
}

/// How many rows pass as they stand.
fn flat_rows(direction: Direction, sources: &[Vec<Fragment>]) -> usize {
    assert_eq!(merged(&schema(), direction, sources).len(), 2 + 9, "{sources:?}");
    let scripts = sources.iter().map(|source| Script::new(source.clone(), 0)).collect();
    read_flat(&mut Merge::new(&schema(), direction, scripts)).1
}

#[test]
fn stretches_of_one_source_pass_as_they_stand() {
    let of = |deletion: DeletionTime, at: &[i32]| {
        let rows = at.iter().map(|&at| row(at, 1));
        [start(1, deletion)].into_iter().chain(rows).chain([END]).collect::<Vec<_>>()
    };
    // The first two of a stretch tell that it is one.
    let stretches = [of(LIVE, &[1, 2, 3, 4, 5, 9]), of(LIVE, &[6, 7, 8])];
    assert_eq!(flat_rows(Direction::Forward, &stretches), 3);
    let backwards = [of(LIVE, &[9, 5, 4, 3, 2, 1]), of(LIVE, &[8, 7, 6])];
    assert_eq!(flat_rows(Direction::Reverse, &backwards), 3);
    let alternating = [of(LIVE, &[1, 3, 5, 7, 9]), of(LIVE, &[2, 4, 6, 8])];
    assert_eq!(flat_rows(Direction::Forward, &alternating), 0);
    let deleted = [of(deletion(0), &[1, 2, 3, 4, 5, 9]), of(LIVE, &[6, 7, 8])];
    assert_eq!(flat_rows(Direction::Forward, &deleted), 0);
}

#[test]
fn a_range_that_the_partition_deletion_covers_is_not_announced() {
    let sources = [
        vec![start(1, deletion(5)), END],
        vec![start(1, LIVE), before(1, 5), row(1, 6), after(1, 6), after(3, 5), after(4, 0), END],
    ];
    let expected = [start(1, deletion(5)), row(1, 6), after(1, 6), after(3, 0), END];
    assert_eq!(merged(&schema(), Direction::Forward, &sources), expected);
}

#[test]
fn a_partition_runs_backwards() {
    let sources = [
        vec![start(1, LIVE), static_row(1), row(9, 1), after(5, 4), row(4, 5), before(3, 0), row(1, 1), END],
        vec![start(1, LIVE), row(5, 4), row(4, 4), after(3, 6), before(2, 0), row(0, 1), END],
    ];
    let expected = [
        start(1, LIVE),
        static_row(1),
        row(9, 1),
        after(5, 4),
        row(4, 5),
        after(3, 6),
        before(2, 0),
        row(1, 1),
        row(0, 1),
        END,
    ];
    assert_eq!(merged(&schema(), Direction::Reverse, &sources), expected);
}

#[test]
fn a_slice_that_begins_in_a_range_begins_with_it() {
    let sources = [
        vec![start(1, LIVE), before(5, 3), row(6, 4), after(7, 0), END],
        vec![start(1, LIVE), before(5, 4), row(5, 5), row(7, 4), after(7, 0), END],
    ];
    let expected = [start(1, LIVE), before(5, 4), row(5, 5), after(7, 0), END];
    assert_eq!(merged(&schema(), Direction::Forward, &sources), expected);
}

#[test]
fn equal_rows_of_tables_without_clustering_columns_are_one() {
    let schema = Rc::new(Schema { clustering: Vec::new(), ..Schema::clone(&schema()) });
    let only =
        |timestamp| Fragment::Row(Row { cells: vec![cell(timestamp)], ..Row::new(Clustering::empty()) });
    let sources = [vec![start(1, LIVE), only(1), END], vec![start(1, LIVE), only(2), END]];
    assert_eq!(merged(&schema, Direction::Forward, &sources), [start(1, LIVE), only(2), END]);
}

/// How often each source was filled.
fn fills(merge: &Merge<Script>) -> Vec<usize> {
    match &merge.0 {
        Sources::One(source) => vec![source.fills],
        Sources::Several(several) => several.readers().map(|source| source.fills).collect(),
    }
}

#[test]
fn only_the_sources_that_are_needed_are_filled() {
    let body = |key: i32| vec![start(key, LIVE), row(1, 1), row(2, 1), row(3, 1), END];
    let scripts = vec![Script::new(body(1), 1), Script::new(body(1), 1), Script::new(body(2), 1)];
    let mut merge = Merge::new(&schema(), Direction::Forward, scripts);
    assert_eq!(merge.pop(&mut Fragment::default()), Ok(Next::Fill));
    for (fragment, expected) in [(start(1, LIVE), [1, 1, 1]), (row(1, 1), [2, 2, 1]), (row(2, 1), [3, 3, 1])]
    {
        assert_eq!(block_on(merge.next()), Ok(Some(fragment)));
        assert_eq!(fills(&merge), expected);
    }
    assert_eq!(block_on(merge.next()), Ok(Some(row(3, 1))));
    assert_eq!(block_on(merge.next()), Ok(Some(END)));
    assert_eq!(block_on(merge.next()), Ok(Some(start(2, LIVE))));
    // The others were asked whether they have that partition too; now it is the third one's alone.
    assert_eq!(block_on(merge.next()), Ok(Some(row(1, 1))));
    assert_eq!(fills(&merge), [6, 6, 2]);
}

#[test]
fn sources_are_filled_side_by_side() {
    let scripts = (0..8).map(|_| Script::new(vec![start(1, LIVE), END], 2)).collect();
    let mut merge = Merge::new(&schema(), Direction::Forward, scripts);
    assert_eq!(merge.pop(&mut Fragment::default()), Ok(Next::Fill));
    let mut fill = Box::pin(merge.fill());
    let mut context = Context::from_waker(Waker::noop());
    // Each waits once: one after the other would be pending eight times.
    assert!(fill.as_mut().poll(&mut context).is_pending());
    assert!(fill.as_mut().poll(&mut context).is_ready());
}

#[test]
fn an_error_of_one_source_leaves_the_others_filled() {
    let mut scripts: Vec<Script> = (0..3).map(|_| Script::new(vec![start(1, LIVE), END], 2)).collect();
    scripts[1].fails = true;
    let mut merge = Merge::new(&schema(), Direction::Forward, scripts);
    assert_eq!(block_on(merge.next()), Err("the disk is gone"));
    assert_eq!(fills(&merge), [1, 1, 1]);
}

#[test]
fn sources_of_different_columns_are_merged() {
    let new = schema();
    let mut old = Schema::clone(&new);
    old.regulars.remove(0);
    let unified = UnifiedSchema::of(&[&old, &new]).unwrap();
    assert_eq!(unified.schema, *new);
    let element = |column| Cell { column, path: Some(Bytes::from(1i32.to_be_bytes().to_vec())), ..cell(2) };
    let with = |cells| Fragment::Row(Row { cells, ..Row::new(key(1)) });
    let sources = [
        vec![start(1, LIVE), with(vec![element(0)]), END],
        vec![start(1, LIVE), with(vec![cell(1), Cell { timestamp: 1, ..element(1) }]), END],
    ];
    let readers =
        std::iter::zip(sources, unified.maps).map(|(source, map)| Mapped::new(Script::new(source, 1), map));
    let mut merge = Merge::new(&Rc::new(unified.schema), Direction::Forward, readers.collect());
    assert_eq!(read_all(&mut merge), [start(1, LIVE), with(vec![cell(1), element(1)]), END]);
}
