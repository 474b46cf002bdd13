//! Wherever rows lie, in one SSTable or in many, in order or across each other: any slice and any scan finds those that were written,
//! as a table does that has all of them in memory.

use std::path::Path;

use model::Bytes;
use model::merge::Direction;
use model::{
    Clustering, Column, CqlType, DeletionTime, Fragment, FragmentReader, Mutation, PartitionKey, Position,
    RangeTombstone, Slice, Token, Weight,
};
use runtime::{Cache, SimOptions, run_simulated};
use siltstone_storage::rewrite::{Control, Rewrite};
use siltstone_storage::{Caching, ReadRequest, Table};
use sstable::Version;
use testkit::generate::random::Random;

use super::spans::{NO_POSITION, between, clusterings, expiring, prefix, row, rows, table_of, write};

/// How the number of a row is its clustering key.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// As an int.
    Int,
    /// As the text of its group, and an int within that, which may descend. Ranks do not tell rows of a group from each other, nor groups
    /// whose texts begin alike.
    Grouped { text: &'static str, descending: bool },
}

/// So many numbers are a group.
const GROUP: i32 = 250;

impl Keys {
    fn columns(self) -> Vec<CqlType> {
        match self {
            Keys::Int => vec![CqlType::Int],
            Keys::Grouped { descending: false, .. } => vec![CqlType::Text, CqlType::Int],
            Keys::Grouped { descending: true, .. } => {
                vec![CqlType::Text, CqlType::Reversed(Box::new(CqlType::Int))]
            }
        }
    }

    /// The clustering key of the row with this number; that of nothing is nothing.
    fn of(self, number: &Clustering) -> Clustering {
        let Keys::Grouped { text, descending } = self else { return number.clone() };
        let Some(value) = number.values.first() else { return Clustering::empty() };
        let number = i32::from_be_bytes(value.as_deref().unwrap().try_into().unwrap());
        let (group, within) = (number.div_euclid(GROUP), number.rem_euclid(GROUP));
        let within = if descending { GROUP - within } else { within };
        [format!("{text}{group:05}").into_bytes(), within.to_be_bytes().to_vec()].into_iter().collect()
    }

    /// The same slice, of which sometimes an end is in front of all of its group, or behind it.
    fn slice(self, Slice { start, end }: &Slice, random: &mut Random) -> Slice {
        let mut place = |position: &Position, outside| {
            let prefix = self.of(&position.prefix);
            if prefix.len() == 2 && random.percent(30) {
                let group = Clustering { values: prefix.values.into_iter().take(1).collect() };
                return Position { prefix: group, weight: outside };
            }
            Position { prefix, weight: position.weight }
        };
        Slice { start: place(start, Weight::Before), end: place(end, Weight::After) }
    }

    fn mutation(self, mut mutation: Mutation, random: &mut Random) -> Mutation {
        mutation.rows.iter_mut().for_each(|row| row.clustering = self.of(&row.clustering));
        for range in &mut mutation.range_tombstones {
            let slice = Slice { start: range.start.clone(), end: range.end.clone() };
            Slice { start: range.start, end: range.end } = self.slice(&slice, random);
        }
        mutation
    }

    fn request(self, mut request: ReadRequest, random: &mut Random) -> ReadRequest {
        request.slice = self.slice(&request.slice, random);
        request
    }
}

/// The rows of a slice that are there.
async fn found(table: &Table, request: &ReadRequest) -> Vec<Clustering> {
    clusterings(table.read(request).await.unwrap()).await
}

/// Whether a slice is read in two parts, and has two changes of what is deleted at one place, as where it is parted.
async fn is_parted(table: &Table, request: &ReadRequest) -> [bool; 2] {
    let mut reader = table.read(request).await.unwrap();
    let is_parted = format!("{reader:?}").contains("Parts(");
    let (mut last, mut meet) = (None, false);
    while let Some(fragment) = reader.next().await.unwrap() {
        if let Fragment::RangeTombstone(change) = fragment {
            meet |= last.replace(change.position.clone()) == Some(change.position);
        }
    }
    [is_parted, is_parted && meet]
}

/// Rows of `any` number up to this.
const ROWS: usize = 2000;

fn any(random: &mut Random) -> i32 {
    random.below(ROWS) as i32
}

/// A deletion that no compaction purges.
fn lasting(at: i64) -> DeletionTime {
    DeletionTime { marked_for_delete_at: at, local_deletion_time: 2_000_000_000 }
}

/// A partition, mostly the first.
fn one_of_two(random: &mut Random) -> PartitionKey {
    PartitionKey::new(Bytes::from(&i32::from(random.percent(20)).to_be_bytes()[..]))
}

/// Mostly some rows near each other, behind those before if there is a place for that; or what hides rows, there or anywhere, or a
/// static row.
fn mutation(random: &mut Random, behind: Option<i32>, with_deletions: bool) -> Mutation {
    let (first, len) = (behind.unwrap_or_else(|| any(random)), random.between(1, 40) as i32);
    let timestamp = random.below(50) as i64;
    let key = one_of_two(random);
    let nothing = Mutation::new(key.clone());
    match random.below(25) {
        0 if with_deletions => Mutation { deletion: lasting(timestamp), ..nothing },
        1 => Mutation { static_row: Some(row(Clustering::empty(), timestamp)), ..nothing },
        kind @ 2..5 => {
            let end = first + random.between(1, 200) as i32;
            let (start, end) = (Position::before(prefix(first)), Position::after(prefix(end)));
            let range = RangeTombstone { start, end, deletion: lasting(timestamp) };
            let rows = if kind == 2 { Vec::new() } else { rows(first..first + len, timestamp).rows };
            Mutation { range_tombstones: vec![range], rows, ..nothing }
        }
        5..10 => Mutation { key, ..expiring((first..first + len).step_by(random.between(1, 3)), timestamp) },
        _ => Mutation { key, ..rows((first..first + len).step_by(random.between(1, 3)), timestamp) },
    }
}

/// Of rows mostly up to this number.
fn request(random: &mut Random, last: i32) -> ReadRequest {
    let key = one_of_two(random);
    let first = random.below(last as usize) as i32;
    let most = *random.one_of(&[200, 1000]);
    let wide = random.between(20, most);
    let slice = match random.below(17) {
        0 => Slice::all(),
        8 | 10 | 11 => Slice { start: Position::before(prefix(first)), ..Slice::all() },
        9 | 12 | 13 => Slice { end: Position::after(prefix(first)), ..Slice::all() },
        1..3 => between(first, first + random.between(1, 60) as i32),
        3..5 | 14..17 => between(first, first + wide as i32),
        _ => Slice::of_prefix(prefix(first)),
    };
    let most = *random.one_of(&[3, 10, 60]);
    let limit = random.between(1, most) as u64;
    ReadRequest {
        direction: *random.one_of(&[Direction::Forward, Direction::Reverse]),
        caching: *random.one_of(&[Caching::Bypass, Caching::Full]),
        static_row: random.percent(20),
        limit: random.percent(60).then_some(limit),
        reads_on: random.percent(50),
        ..ReadRequest::new(key, slice)
    }
}

/// A part of the ring, or all of it.
#[derive(Clone, Copy, Debug)]
struct Part {
    after: Option<Token>,
    /// Whether it begins behind the partition that is there, and not above a token.
    is_behind: bool,
    last: Token,
}

impl Part {
    fn any(random: &mut Random) -> Part {
        let mut token = |percent| random.percent(percent).then(|| request(random, 1).key.token);
        let (after, last) = (token(40), token(30).unwrap_or(Token::MAX));
        Part { after, is_behind: random.percent(50), last }
    }
}

/// All rows of a part of the ring that are there, partition by partition.
async fn scanned(table: &Table, part: Part) -> Vec<Clustering> {
    let Part { after, is_behind, last } = part;
    let keys = [0, 1].map(|number: i32| PartitionKey::new(Bytes::from(&number.to_be_bytes()[..])));
    let key = keys.iter().find(|key| Some(key.token) == after).filter(|_| is_behind);
    let scan = match key {
        Some(key) => table.scan_behind(key, last, None).await,
        None => table.scan(after, last, None).await,
    };
    clusterings(scan.unwrap()).await
}

#[test]
fn wherever_rows_lie_they_are_those_that_were_written() {
    let grouped = |text, descending| Keys::Grouped { text, descending };
    check(Keys::Int, 100, true);
    check(grouped("", false), 80, true);
    check(grouped("", true), 80, true);
    check(grouped("of the group ", false), 30, false);
}

/// So many tables, of which some slices are read in parts, if ranks tell where.
fn check(keys: Keys, seeds: u64, in_parts: bool) {
    let (mut rows, mut parted, mut met) = (0, 0, 0);
    for seed in 0..seeds {
        run_simulated(SimOptions { seed, ..SimOptions::default() }, async |shard| {
            let mut random = Random::new(seed);
            let version = *random.one_of(&[Version::Me, Version::Oa, Version::Oa]);
            let statics = vec![Column { name: b"s"[..].into(), data_type: CqlType::Blob }];
            let statics = if random.percent(50) { statics } else { Vec::new() };
            let has_statics = !statics.is_empty();
            let fences = random.percent(50);
            let table = async |folder| {
                let columns = (keys.columns(), statics.clone());
                table_of(Cache::new(4 << 20), Path::new(folder), &shard, (version, fences), columns).await
            };
            let (flushed, in_memory) = (table("/d").await, table("/e").await);
            // In their order, with gaps between SSTables, or as windows that overlap, or anywhere.
            let step = *random.one_of(&[None, Some(15), Some(15), Some(40), Some(100), Some(100)]);
            // Where none deletes its partition, those that have nothing near a slice need not be known to be without such deletions.
            let with_deletions = random.percent(50);
            for number in 0..random.between(5, 50) as i32 {
                let behind = step.map(|step| step * number);
                let last = behind.map_or(ROWS as i32, |behind| behind + 50);
                let mutation =
                    |random: &mut Random| keys.mutation(mutation(random, behind, with_deletions), random);
                let mut own = mutation(&mut random);
                // Sometimes with the other partition, or with what deletes this one beside its rows.
                if random.percent(20) {
                    let mut other = mutation(&mut random);
                    other.static_row = other.static_row.filter(|_| has_statics);
                    in_memory.apply(&other, NO_POSITION);
                    flushed.apply(&other, NO_POSITION);
                }
                if with_deletions && random.percent(5) {
                    own.deletion = lasting(random.below(20) as i64);
                }
                own.static_row = own.static_row.filter(|_| has_statics);
                in_memory.apply(&own, NO_POSITION);
                write(&flushed, own).await;
                if random.percent(15) {
                    let all = flushed.sstables().members().to_vec();
                    let some = all.into_iter().filter(|_| random.percent(40)).collect();
                    flushed.rewrite(&Rewrite::into_one(some), &Control::default()).await.unwrap();
                }
                for _ in 0..6 {
                    let request = keys.request(request(&mut random, last), &mut random);
                    let expected = found(&in_memory, &request).await;
                    assert_eq!(
                        found(&flushed, &request).await,
                        expected,
                        "{keys:?} seed {seed}: {request:?}"
                    );
                    rows += expected.len();
                    let [is_parted, has_met] = is_parted(&flushed, &request).await;
                    (parted, met) = (parted + usize::from(is_parted), met + usize::from(has_met));
                }
                let part = Part::any(&mut random);
                let expected = scanned(&in_memory, part).await;
                assert_eq!(scanned(&flushed, part).await, expected, "{keys:?} seed {seed}: {part:?}");
            }
        })
        .unwrap();
    }
    let seeds = seeds as usize;
    let has_parts = parted > seeds && met > seeds / 10;
    assert!(rows > 100 * seeds && (has_parts || !in_parts), "{keys:?}: {rows} {parted} {met}");
}
