//! The SSTables that may have a partition, and what of their filters is still to be read.

use std::rc::Rc;

use model::key::murmur3;
use model::{PartitionKey, Position};
use smallvec::SmallVec;
use sstable::parts::bloom_pages::Probe;

use super::{Member, SSTableSet, SoughtSlice};
use crate::Result;

/// The SSTables that may have a partition, the one with the greatest timestamp first.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    members: SmallVec<[Rc<Member>; 2]>,
    /// Those of them whose filter was not asked, because it was not in memory: in the same order. Mostly all were.
    unread: Option<Box<[Rc<Member>]>>,
    /// Whether others may have the partition, but nothing of the slice.
    left_out: bool,
    /// Whether some have nothing of the slice, or nothing before others were read, unless they delete the partition.
    asks_beside: bool,
    /// No SSTable deletes the partition that came with this version of the set, or before; 0 where that is not known.
    undeleted: u64,
    /// Who may have something of the slice behind its beginning, which these are of.
    rest: Option<Box<Rest>>,
}

/// What is left of a slice behind its beginning, of which nobody was asked yet.
#[derive(Clone, Debug)]
pub(crate) struct Rest {
    /// The SSTables among which they are.
    pub(crate) set: Rc<SSTableSet>,
    /// Where it begins, as the stream runs.
    pub(crate) at: Position,
}

impl Candidates {
    /// These, of which all were asked.
    pub(super) fn of(members: SmallVec<[Rc<Member>; 2]>) -> Candidates {
        Candidates { members, ..Candidates::default() }
    }

    /// Only those that may have something of a slice.
    pub(crate) fn within(mut self, sought: &SoughtSlice<'_>) -> Candidates {
        let all = self.members.len();
        self.members.retain(|member| member.may_have(sought));
        self.asks_beside = false;
        if self.members.len() < all {
            self.left_out = true;
            let unread = self.unread.take().map(Vec::from).unwrap_or_default();
            let unread: Vec<_> = unread.into_iter().filter(|member| member.may_have(sought)).collect();
            self.unread = if unread.is_empty() { None } else { Some(unread.into()) };
        }
        self
    }

    /// The same of the beginning of a slice up to here, as the stream runs.
    pub(super) fn with_rest(self, set: Rc<SSTableSet>, at: Position) -> Candidates {
        Candidates { left_out: true, rest: Some(Box::new(Rest { set, at })), ..self }
    }

    /// What these are not of, as they are of the beginning of a slice alone.
    pub(crate) fn rest(&self) -> Option<&Rest> {
        self.rest.as_deref()
    }

    /// What is known of the partition's deletion.
    pub(super) fn know_undeleted(&mut self, version: u64) {
        self.undeleted = version;
    }

    /// No SSTable deletes the partition that came with this version of the set, or before; 0 where that is not known.
    pub(crate) fn undeleted(&self) -> u64 {
        self.undeleted
    }

    /// Some are asked, or not left for later, only because they may delete the partition.
    pub(super) fn ask_beside(&mut self) {
        self.asks_beside = true;
    }

    /// Whether some are asked, or not left for later, only because they may delete the partition: what all of them say of that is to be
    /// [noted](crate::SSTableSet::note_deletion).
    pub(crate) fn asks_beside(&self) -> bool {
        self.asks_beside
    }

    /// Asks those filters that were not in memory before SSTables are read. That of the only SSTable there is, with no rest behind it, is not asked: it
    /// would cost a request, and spare no more than the index does, which tells for sure.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn settle(&mut self, key: &PartitionKey) -> Result<()> {
        if self.members.len() > 1 || self.rest.is_some() { self.ask_all(key).await } else { Ok(()) }
    }

    /// Asks all filters that were not in memory, at once.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn ask_all(&mut self, key: &PartitionKey) -> Result<()> {
        let Some(unread) = &self.unread else { return Ok(()) };
        let hash = murmur3(&key.bytes);
        let asked = unread.iter().map(|member| member.sstable.filter().may_contain_hash(hash));
        let mut denied = Vec::new();
        for (may, member) in runtime::join_all(asked).await.into_iter().zip(unread) {
            if !may? {
                denied.push(member.clone());
            }
        }
        let mut denied = denied.iter().peekable();
        self.members.retain(|member| denied.next_if(|denied| Rc::ptr_eq(denied, member)).is_none());
        self.unread = None;
        Ok(())
    }

    /// The only SSTable has turned out not to have the partition: brings in what its filter says of it and its neighbours,
    /// if that was not in memory, so that they cost no request the next time.
    ///
    /// # Errors
    /// What cannot be read.
    pub async fn note_absent(&self, key: &PartitionKey) -> Result<()> {
        if let ([only], Some(_)) = (&self.members[..], &self.unread) {
            only.sstable.filter().may_contain(key).await?;
        }
        Ok(())
    }

    /// Whether no SSTable can have it.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.rest.is_none()
    }

    /// Whether these are all that may have the partition, be it beside the slice.
    pub(crate) fn are_all_of_partition(&self) -> bool {
        !self.left_out
    }

    /// Whether both are the same SSTables.
    pub(crate) fn are(&self, others: &Candidates) -> bool {
        let mut pairs = self.members.iter().zip(&others.members);
        self.members.len() == others.members.len() && pairs.all(|(own, other)| Rc::ptr_eq(own, other))
    }

    /// Whether some filter was not in memory.
    pub fn has_unread(&self) -> bool {
        self.unread.is_some()
    }

    /// The SSTables, the one with the greatest timestamp first.
    pub fn members(&self) -> &[Rc<Member>] {
        &self.members
    }
}

/// What the filters of a set say of a partition, as far as they are in memory.
pub(super) struct Asked<'a> {
    members: &'a [Rc<Member>],
    /// That of the partition key.
    hash: [u64; 2],
    /// The places of those that may have it, in the order in which they were asked.
    found: SmallVec<[u32; 8]>,
    /// Those of them that could not be asked.
    unread: Vec<u32>,
    /// How many looks it took.
    pub(super) looks: u64,
    /// Whether others may have the partition, but nothing of the slice.
    pub(super) left_out: bool,
}

impl<'a> Asked<'a> {
    /// Nobody yet, of these.
    pub(super) fn new(members: &'a [Rc<Member>], hash: [u64; 2]) -> Asked<'a> {
        Asked { members, hash, found: SmallVec::new(), unread: Vec::new(), looks: 0, left_out: false }
    }

    /// Asks one.
    #[inline]
    pub(super) fn ask(&mut self, place: u32) {
        self.looks += 1;
        match self.members[place as usize].sstable.filter().probe(self.hash) {
            Probe::Absent => return,
            Probe::Unread => self.unread.push(place),
            Probe::Maybe => {}
        }
        self.found.push(place);
    }

    /// Takes one that need not be asked.
    pub(super) fn take(&mut self, place: u32) {
        self.found.push(place);
    }

    /// Those that may have the partition.
    pub(super) fn candidates(self) -> Candidates {
        let Asked { members, mut found, mut unread, left_out, .. } = self;
        if found.len() > 1 {
            found.sort_unstable();
            unread.sort_unstable();
        }
        let member = |place: u32| members[place as usize].clone();
        let unread: Option<Vec<_>> = (!unread.is_empty()).then(|| unread.into_iter().map(member).collect());
        Candidates {
            members: found.into_iter().map(member).collect(),
            unread: unread.map(Vec::into_boxed_slice),
            left_out,
            ..Candidates::default()
        }
    }
}
