//! The SSTables of a table as they are at one moment.
//!
//! A set never changes: flushes and compactions put a new one in its place, and who reads goes on with the old one,
//! whose files stay open even when they have lost their names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use model::key::murmur3;
use model::merge::ColumnMap;
use model::types::all_alike;
use model::{DeletionTime, KeyView, PartitionKey, Token};
use runtime::Disk;
use smallvec::SmallVec;
use sstable::parts::bloom_pages::Probe;
use sstable::{OpenOptions, SSTable};

use crate::compaction::SSTableFacts;
use crate::definition::Definition;
use crate::{Error, Result};

/// An SSTable of a table.
#[derive(Debug)]
pub struct Member {
    /// The SSTable.
    pub sstable: Rc<SSTable>,
    /// Brings its rows to the columns of the table.
    pub columns: ColumnMap,
    /// Its first and last partition.
    pub first: PartitionKey,
    /// Its last partition.
    pub last: PartitionKey,
    /// The least timestamp in it.
    pub min_timestamp: i64,
    /// The greatest timestamp in it.
    pub max_timestamp: i64,
    /// What decides about its compaction.
    pub facts: SSTableFacts,
}

/// Where members are on the ring, in runs that do not overlap, each in the order of the ring: as few runs as there can be. Leveled
/// compaction leaves few runs, however many SSTables; then a partition is looked for by halves.
#[derive(Clone, Debug, Default)]
struct Runs {
    /// Those of one member: SSTables that overlap all others are looked at one after the other, in one piece of memory.
    alone: Vec<Stretch>,
    /// Those of several.
    runs: Vec<Vec<Stretch>>,
}

/// Where a member is on the ring.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Stretch {
    /// The token of its first partition.
    first: Token,
    /// The token of its last partition.
    last: Token,
    /// Its place among the members.
    place: u32,
}

/// The SSTables of a table, the one with the greatest timestamp first.
#[derive(Clone, Debug, Default)]
pub struct SSTableSet {
    members: Vec<Rc<Member>>,
    runs: Runs,
    largest_chunk: u64,
}

/// So many filters are asked for many keys at once: what they read is in no budget until it is in the cache.
const ASKED_AT_ONCE: usize = 8;

/// The SSTables that may have a partition, the one with the greatest timestamp first.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    members: SmallVec<[Rc<Member>; 2]>,
    /// Whether there are some whose filter was not asked, because it was not in memory.
    has_unread: bool,
}

impl Member {
    /// Opens an SSTable of a table.
    ///
    /// # Errors
    /// What cannot be read; an SSTable whose keys are not those of the table.
    pub async fn open(
        disk: &Disk,
        path: &Path,
        options: &OpenOptions,
        definition: &Definition,
    ) -> Result<Rc<Member>> {
        let sstable = SSTable::open(disk, path, options).await?;
        Member::of(disk, sstable, definition).map(Rc::new)
    }

    /// An open SSTable as one of a table.
    ///
    /// # Errors
    /// If its keys are not those of the table; what the operating system says of when it was written.
    pub fn of(disk: &Disk, sstable: Rc<SSTable>, definition: &Definition) -> Result<Member> {
        let (own, table) = (sstable.schema(), &definition.schema);
        let has_same_keys = own.partition_key.is_alike(&table.partition_key)
            && all_alike(own.clustering.iter(), table.clustering.iter());
        if !has_same_keys {
            let path = sstable.data().file.path().display();
            return Err(Error::Invalid(format!("{path}: its keys are not those of the table")));
        }
        let columns = ColumnMap::onto(own, table, |name| definition.dropped_at(name));
        let key = |bytes: &[u8]| sstable.key(bytes.into());
        let stats = &sstable.statistics().stats;
        Ok(Member {
            columns,
            first: key(sstable.summary().first_key()),
            last: key(sstable.summary().last_key()),
            min_timestamp: stats.min_timestamp,
            max_timestamp: stats.max_timestamp,
            facts: SSTableFacts::of(disk, &sstable)?,
            sstable,
        })
    }

    /// Whether both are the same SSTable, whatever the columns of the table were when they were opened.
    pub fn is(&self, other: &Member) -> bool {
        Rc::ptr_eq(&self.sstable, &other.sstable) || self.sstable.descriptor() == other.sstable.descriptor()
    }

    /// Whether it has partitions above one token and not above another.
    pub fn overlaps(&self, after: Option<Token>, last: Token) -> bool {
        self.first.token <= last && after.is_none_or(|after| self.last.token > after)
    }
}

impl Stretch {
    fn has(&self, token: Token) -> bool {
        self.first <= token && token <= self.last
    }
}

impl Runs {
    /// Of members that are there.
    fn of(mut stretches: Vec<Stretch>) -> Runs {
        stretches.sort_by_key(|stretch| (stretch.first, stretch.last));
        let mut runs: Vec<Vec<Stretch>> = Vec::new();
        // The run that ends first takes the next member, if it ends before that begins.
        let mut open: BinaryHeap<Reverse<(Token, usize)>> = BinaryHeap::new();
        for stretch in stretches {
            let run = match open.peek() {
                Some(&Reverse((end, run))) if end < stretch.first => {
                    open.pop();
                    run
                }
                _ => {
                    runs.push(Vec::new());
                    runs.len() - 1
                }
            };
            runs[run].push(stretch);
            open.push(Reverse((stretch.last, run)));
        }
        let (alone, runs): (Vec<_>, _) = runs.into_iter().partition(|run| run.len() == 1);
        Runs { alone: alone.concat(), runs }
    }

    /// The members that have a token between their first and their last one, one of a run at the most.
    fn around(&self, token: Token) -> impl Iterator<Item = u32> {
        let alone = self.alone.iter().filter(move |stretch| stretch.has(token));
        let in_runs = self.runs.iter().filter_map(move |run| {
            let behind = run.partition_point(|stretch| stretch.first <= token);
            let stretch = &run[behind.checked_sub(1)?];
            stretch.has(token).then_some(stretch)
        });
        alone.chain(in_runs).map(|stretch| stretch.place)
    }

    /// All runs.
    fn all(&self) -> impl Iterator<Item = &[Stretch]> {
        self.runs.iter().map(Vec::as_slice).chain(self.alone.chunks(1))
    }
}

impl Candidates {
    /// Asks those filters that were not in memory before SSTables are read. That of the only SSTable there is is not asked: it
    /// would cost a request, and spare no more than the index does, which tells for sure.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn settle(&mut self, key: &PartitionKey) -> Result<()> {
        if self.members.len() > 1 { self.ask_all(key).await } else { Ok(()) }
    }

    /// Asks all filters that were not in memory, at once.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn ask_all(&mut self, key: &PartitionKey) -> Result<()> {
        if self.has_unread {
            let hash = murmur3(&key.bytes);
            let asked = self.members.iter().map(|member| member.sstable.filter().may_contain_hash(hash));
            let answers = runtime::join_all(asked).await;
            let mut left = SmallVec::new();
            for (may, member) in answers.into_iter().zip(&self.members) {
                if may? {
                    left.push(member.clone());
                }
            }
            self.members = left;
            self.has_unread = false;
        }
        Ok(())
    }

    /// The only SSTable has turned out not to have the partition: brings in what its filter says of it and its neighbours,
    /// if that was not in memory, so that they cost no request the next time.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn note_absent(&self, key: &PartitionKey) -> Result<()> {
        if let ([only], true) = (&self.members[..], self.has_unread) {
            only.sstable.filter().may_contain(key).await?;
        }
        Ok(())
    }

    /// Whether no SSTable can have it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Whether some filter was not in memory.
    pub fn has_unread(&self) -> bool {
        self.has_unread
    }

    /// The SSTables, the one with the greatest timestamp first.
    pub fn members(&self) -> &[Rc<Member>] {
        &self.members
    }
}

impl SSTableSet {
    /// A set of these.
    pub fn new(mut members: Vec<Rc<Member>>) -> SSTableSet {
        // Of equal ones the greater generation was written later, as a rule.
        members.sort_by_cached_key(|member| {
            let generation = &member.sstable.descriptor().generation;
            let newest = (member.max_timestamp, generation.len(), generation.clone());
            Reverse(newest)
        });
        let chunks = members.iter().filter_map(|member| member.sstable.data().file.compression());
        let largest_chunk = chunks.map(|info| u64::from(info.chunk_len())).max().unwrap_or(0);
        let stretch = |(place, member): (u32, &Rc<Member>)| Stretch {
            first: member.first.token,
            last: member.last.token,
            place,
        };
        let runs = Runs::of((0..).zip(&members).map(stretch).collect());
        SSTableSet { runs, members, largest_chunk }
    }

    /// The largest chunk that any of them is compressed in, in bytes; 0 if none is compressed.
    pub fn largest_chunk(&self) -> u64 {
        self.largest_chunk
    }

    /// All of them, the one with the greatest timestamp first.
    pub fn members(&self) -> &[Rc<Member>] {
        &self.members
    }

    /// Those that may have a partition, as far as first and last tokens tell, and filters as far as they are in memory.
    pub fn of_key(&self, key: &PartitionKey) -> Candidates {
        if self.members.is_empty() {
            return Candidates::default();
        }
        let hash = murmur3(&key.bytes);
        let mut has_unread = false;
        let around = self.runs.around(key.token);
        let mut found: SmallVec<[u32; 8]> = around
            .filter(|&at| {
                let probe = self.members[at as usize].sstable.filter().probe(hash);
                has_unread |= probe == Probe::Unread;
                probe != Probe::Absent
            })
            .collect();
        found.sort_unstable();
        let members = found.into_iter().map(|at| self.members[at as usize].clone()).collect();
        Candidates { members, has_unread }
    }

    /// Whether memory alone tells that none of them has anything of a row: see [`SSTable::denies_row`].
    pub fn denies_row(&self, key: KeyView<'_>, row: &[&[u8]]) -> bool {
        let hash = murmur3(key.bytes);
        let mut around = self.runs.around(key.token);
        around.all(|place| self.members[place as usize].sstable.denies_row(key, hash, row))
    }

    /// The deletion of a partition of which rows were [denied](SSTableSet::denies_row), none if no SSTable has the partition; `None` if
    /// memory does not tell.
    pub fn deletion_at_hand(&self, key: KeyView<'_>) -> Option<Option<DeletionTime>> {
        let hash = murmur3(key.bytes);
        let mut newest = None;
        for place in self.runs.around(key.token) {
            let sstable = &self.members[place as usize].sstable;
            if sstable.filter().probe(hash) != Probe::Absent {
                newest = newest.max(Some(sstable.way_to_row(key)?.partition_deletion()));
            }
        }
        Some(newest)
    }

    /// Those that may have each of many keys, in the order of tokens: each SSTable that may have some of them is asked for all of
    /// those, and what has to be read of its filter is read together.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn of_keys(&self, keys: &[&PartitionKey]) -> Result<Vec<Candidates>> {
        assert!(keys.is_sorted(), "keys stand in their order");
        let hashes: Vec<[u64; 2]> = keys.iter().map(|key| murmur3(&key.bytes)).collect();
        let mut questions = Vec::new();
        self.runs.all().for_each(|run| ask_run(run, keys, &mut questions));
        let mut found: Vec<SmallVec<[u32; 8]>> = vec![SmallVec::new(); keys.len()];
        for some in questions.chunks(ASKED_AT_ONCE) {
            let asked = some.iter().map(async |(place, range)| {
                let mut passed = Vec::new();
                let filter = self.members[*place as usize].sstable.filter();
                filter.sift(&hashes[range.clone()], &mut passed).await?;
                Ok::<_, Error>(passed)
            });
            for (passed, (place, range)) in runtime::join_all(asked).await.into_iter().zip(some) {
                passed?.into_iter().for_each(|key| found[range.start + key].push(*place));
            }
        }
        let candidates = found.into_iter().map(|mut places| {
            places.sort_unstable();
            let members = places.into_iter().map(|at| self.members[at as usize].clone()).collect();
            Candidates { members, has_unread: false }
        });
        Ok(candidates.collect())
    }

    /// The set without some and with others.
    pub fn replaced(&self, gone: &[Rc<Member>], new: impl IntoIterator<Item = Rc<Member>>) -> SSTableSet {
        let stays = |member: &&Rc<Member>| !gone.iter().any(|gone| gone.is(member));
        SSTableSet::new(self.members.iter().filter(stays).cloned().chain(new).collect())
    }
}

/// Which SSTables of a run to ask for which of these keys.
fn ask_run(run: &[Stretch], keys: &[&PartitionKey], questions: &mut Vec<(u32, Range<usize>)>) {
    let mut at = 0;
    while at < keys.len() {
        let behind = run.partition_point(|stretch| stretch.first <= keys[at].token);
        let last = behind.checked_sub(1).map(|before| run[before].last);
        let within = last.map_or(0, |last| keys[at..].partition_point(|key| key.token <= last));
        if within > 0 {
            questions.push((run[behind - 1].place, at..at + within));
            at += within;
            continue;
        }
        // The key stands before the run, between two of it or behind it.
        let Some(next) = run.get(behind) else { return };
        at += keys[at..].partition_point(|key| key.token < next.first);
    }
}

#[cfg(test)]
mod tests {
    use testkit::generate::random::Random;

    use super::*;

    fn stretches(ends: impl IntoIterator<Item = (Token, Token)>) -> Vec<Stretch> {
        (0..).zip(ends).map(|(place, (first, last))| Stretch { first, last, place }).collect()
    }

    #[test]
    fn runs_find_what_looking_at_each_finds() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let longest = [1, 5, 100][seed as usize % 3];
            let members = stretches((0..random.below(40)).map(|_| {
                let first = random.below(100) as Token;
                (first, first + random.below(longest) as Token)
            }));
            let runs = Runs::of(members.clone());
            let mut most = 0;
            for token in -1..210 {
                let mut found: Vec<u32> = runs.around(token).collect();
                found.sort_unstable();
                let around = members.iter().filter(|stretch| stretch.has(token));
                let expected: Vec<u32> = around.map(|stretch| stretch.place).collect();
                assert_eq!(found, expected, "{seed}: {token}");
                most = most.max(expected.len());
            }
            assert_eq!(
                runs.all().count(),
                most,
                "{seed}: there are no more runs than members that overlap at one place"
            );
        }
    }

    #[test]
    fn members_that_do_not_overlap_are_one_run() {
        let runs = Runs::of(stretches((0..1000).rev().map(|at| (at * 10, at * 10 + 9))));
        assert_eq!((runs.all().count(), runs.around(5555).collect::<Vec<_>>()), (1, vec![999 - 555]));
    }
}
