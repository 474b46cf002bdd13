//! The SSTables of a table as they are at one moment.
//!
//! A set never changes: flushes and compactions put a new one in its place, and who reads goes on with the old one,
//! whose files stay open even when they have lost their names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::rc::Rc;

use model::key::murmur3;
use model::merge::ColumnMap;
use model::types::all_alike;
use model::{PartitionKey, Token};
use runtime::Disk;
use smallvec::SmallVec;
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

/// The places of members in runs that do not overlap, each in the order of the ring: as few runs as there can be. Leveled
/// compaction leaves few runs, however many SSTables; then a partition is looked for by halves.
#[derive(Clone, Debug, Default)]
struct Runs(Vec<Vec<u32>>);

/// The first and the last partition of a member.
type Ends<'a> = (&'a PartitionKey, &'a PartitionKey);

/// The SSTables of a table, the one with the greatest timestamp first.
#[derive(Clone, Debug, Default)]
pub struct SSTableSet {
    members: Vec<Rc<Member>>,
    runs: Runs,
    largest_chunk: u64,
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

    fn ends(&self) -> Ends<'_> {
        (&self.first, &self.last)
    }

    /// Whether it may have a partition, as far as its first and last one and the filter tell.
    pub fn may_have(&self, key: &PartitionKey) -> bool {
        self.first <= *key && *key <= self.last && self.sstable.index().may_contain(key)
    }

    /// Whether it has partitions above one token and not above another.
    pub fn overlaps(&self, after: Option<Token>, last: Token) -> bool {
        self.first.token <= last && after.is_none_or(|after| self.last.token > after)
    }
}

impl Runs {
    /// Of so many members, whose first and last partitions `ends` tells.
    fn of<'a>(count: usize, ends: impl Fn(u32) -> Ends<'a>) -> Runs {
        let mut places: Vec<u32> = (0..count as u32).collect();
        places.sort_by(|&a, &b| ends(a).0.cmp(ends(b).0));
        let mut runs: Vec<Vec<u32>> = Vec::new();
        // The run that ends first takes the next member, if it ends before that begins.
        let mut open: BinaryHeap<Reverse<(&PartitionKey, usize)>> = BinaryHeap::new();
        for place in places {
            let (first, last) = ends(place);
            let run = match open.peek() {
                Some(&Reverse((end, run))) if end < first => {
                    open.pop();
                    run
                }
                _ => {
                    runs.push(Vec::new());
                    runs.len() - 1
                }
            };
            runs[run].push(place);
            open.push(Reverse((last, run)));
        }
        Runs(runs)
    }

    /// The members between whose first and last partition a key stands, one of a run at the most.
    fn around<'a>(&self, key: &PartitionKey, ends: impl Fn(u32) -> Ends<'a>) -> impl Iterator<Item = u32> {
        self.0.iter().filter_map(move |run| {
            let behind = run.partition_point(|&place| ends(place).0 <= key);
            let place = run[behind.checked_sub(1)?];
            (key <= ends(place).1).then_some(place)
        })
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
        let runs = Runs::of(members.len(), |place| members[place as usize].ends());
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

    /// Those that may have a partition, as far as first and last ones and filters tell.
    pub fn of_key(&self, key: &PartitionKey) -> Vec<Rc<Member>> {
        let hash = murmur3(&key.bytes);
        let around = self.runs.around(key, |place| self.members[place as usize].ends());
        let mut found: SmallVec<[u32; 8]> =
            around.filter(|&at| self.members[at as usize].sstable.index().may_contain_hash(hash)).collect();
        found.sort_unstable();
        found.into_iter().map(|at| self.members[at as usize].clone()).collect()
    }

    /// The set without some and with others.
    pub fn replaced(&self, gone: &[Rc<Member>], new: impl IntoIterator<Item = Rc<Member>>) -> SSTableSet {
        let stays = |member: &&Rc<Member>| !gone.iter().any(|gone| gone.is(member));
        SSTableSet::new(self.members.iter().filter(stays).cloned().chain(new).collect())
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;
    use testkit::generate::random::Random;

    use super::*;

    fn key(token: Token) -> PartitionKey {
        PartitionKey { token, bytes: Bytes::default() }
    }

    #[test]
    fn runs_find_what_looking_at_each_finds() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let longest = [1, 5, 100][seed as usize % 3];
            let members: Vec<(PartitionKey, PartitionKey)> = (0..random.below(40))
                .map(|_| {
                    let first = random.below(100) as Token;
                    (key(first), key(first + random.below(longest) as Token))
                })
                .collect();
            let ends = |place: u32| (&members[place as usize].0, &members[place as usize].1);
            let runs = Runs::of(members.len(), ends);
            let mut most = 0;
            for token in -1..210 {
                let mut found: Vec<u32> = runs.around(&key(token), ends).collect();
                found.sort_unstable();
                let is_around = |place: &u32| (ends(*place).0.token..=ends(*place).1.token).contains(&token);
                let expected: Vec<u32> = (0..members.len() as u32).filter(is_around).collect();
                assert_eq!(found, expected, "{seed}: {token}");
                most = most.max(expected.len());
            }
            assert_eq!(
                runs.0.len(),
                most,
                "{seed}: there are no more runs than members that overlap at one place"
            );
        }
    }

    #[test]
    fn members_that_do_not_overlap_are_one_run() {
        let members: Vec<(PartitionKey, PartitionKey)> =
            (0..1000).rev().map(|at| (key(at * 10), key(at * 10 + 9))).collect();
        let ends = |place: u32| (&members[place as usize].0, &members[place as usize].1);
        let runs = Runs::of(members.len(), ends);
        assert_eq!((runs.0.len(), runs.around(&key(5555), ends).collect::<Vec<_>>()), (1, vec![999 - 555]));
    }
}
