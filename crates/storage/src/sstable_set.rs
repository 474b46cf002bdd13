//! The SSTables of a table as they are at one moment.
//!
//! A set never changes: flushes and compactions put a new one in its place, and who reads goes on with the old one,
//! whose files stay open even when they have lost their names.

use std::cell::{Cell, LazyCell, OnceCell};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::Path;
use std::rc::Rc;

use model::key::murmur3;
use model::merge::{ColumnMap, holds_keys, unknown_columns};
use model::{DeletionTime, KeyView, PartitionKey, Schema, Token};
use runtime::Disk;
use smallvec::SmallVec;
use sstable::component::Descriptor;
use sstable::parts::bloom_pages::Probe;
use sstable::{OpenOptions, SSTable};

use crate::batches::MOST_AT_ONCE;
use crate::compaction::SSTableFacts;
use crate::definition::Definition;
use crate::lanes;
use crate::table::ReadRequest;
use crate::{Error, Result};

mod beginning;
mod candidates;
mod gathered;
mod maplet;
mod maplet_memory;
mod plan;
mod runs;
mod span;
mod undeleted;

pub(crate) use beginning::SURE;
pub use candidates::Candidates;
pub(crate) use candidates::Rest;
pub(crate) use gathered::{Gathered, Gatherer};
pub use maplet_memory::MapletMemory;
pub(crate) use plan::Room;
pub(crate) use span::SoughtSlice;
pub(crate) use undeleted::Undeleted;

use candidates::Asked;
use gathered::Covered;
use plan::{Group, MANY, Plan};
use runs::{Runs, Stretch, ask_run};
use span::{ByRows, Span};

/// An SSTable of a table.
#[derive(Debug)]
pub struct Member {
    /// The SSTable.
    pub sstable: Rc<SSTable>,
    /// Brings its rows to the columns of the table.
    pub columns: ColumnMap,
    /// Its first partition.
    pub first: PartitionKey,
    /// Its last partition.
    pub last: PartitionKey,
    /// The least timestamp in it, in microseconds since the epoch, or whatever unit the writers use.
    pub min_timestamp: i64,
    /// The greatest timestamp in it, in the same unit.
    pub max_timestamp: i64,
    /// What decides about its compaction.
    pub facts: SSTableFacts,
    /// Outside of which no rows and range tombstones are here, if that is certain.
    span: Option<Span>,
    /// The version of the set with which it came, or what it was made of; 0 before that.
    since: Cell<u64>,
    /// Whether its tokens could not be gathered.
    is_uncertain: Cell<bool>,
    /// Whether it was written as the table is defined now, for certain.
    is_as_defined: Cell<bool>,
}

/// The SSTables of a table, the one with the greatest timestamp first.
#[derive(Clone, Debug)]
pub struct SSTableSet {
    members: Vec<Rc<Member>>,
    /// Of those whose tokens were not gathered.
    runs: Runs,
    /// What was gathered of the others.
    covered: Vec<Covered>,
    /// Of all, where those with rows around a slice are fewer than those with a token.
    by_rows: Option<ByRows>,
    /// Whether some of which the span is known may delete partitions.
    has_hiding: bool,
    /// The partitions that none of these deletes, as far as it is known.
    undeleted: Undeleted,
    /// How many looks at filters were taken while there were many runs, since tokens were gathered last.
    looks: Cell<u64>,
    /// After how many looks it is to be planned what is gathered; [`u64::MAX`] for never.
    plans_at: Cell<u64>,
    largest_chunk: u64,
    depth: OnceCell<Depth>,
}

/// How many SSTables are read at once at the most, those included that are read together because they are small.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Depth {
    /// By a slice of a partition.
    pub(crate) slice: usize,
    /// By a scan.
    pub(crate) scan: usize,
}

/// Where there is nothing to gather, or no room, it is looked again after as many looks as before, and no fewer than these.
const LOOKS_BETWEEN_PLANS: u64 = 1 << 16;

/// So many filters are asked for many keys at once: what they read is in no budget until it is in the cache.
const ASKED_AT_ONCE: usize = 8;

/// Some SSTables, to be compared with many.
pub(crate) struct These<'a>(HashSet<&'a Descriptor>);

impl These<'_> {
    pub(crate) fn of(members: &[Rc<Member>]) -> These<'_> {
        These(members.iter().map(|member| member.sstable.descriptor()).collect())
    }

    /// Whether an SSTable [is](Member::is) one of them.
    pub(crate) fn have(&self, member: &Member) -> bool {
        self.0.contains(member.sstable.descriptor())
    }
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
        let facts = SSTableFacts::of(disk, &sstable)?;
        Member::with_facts(sstable, facts, definition)
    }

    /// The same SSTable as one of a table that is defined so.
    ///
    /// # Errors
    /// If its keys are not those of the table, or a type of a column does not hold its values.
    pub(crate) fn redefined(&self, definition: &Definition) -> Result<Member> {
        Member::with_facts(self.sstable.clone(), self.facts.clone(), definition)
    }

    fn with_facts(sstable: Rc<SSTable>, facts: SSTableFacts, definition: &Definition) -> Result<Member> {
        let (own, table) = (sstable.schema(), &definition.schema);
        let has_same_keys = holds_keys(&table.partition_key, &own.partition_key)
            && own.clustering.len() == table.clustering.len()
            && own.clustering.iter().zip(&table.clustering).all(|(own, table)| holds_keys(table, own));
        if !has_same_keys {
            let path = sstable.data().file.path().display();
            return Err(Error::Invalid(format!("{path}: its keys are not those of the table")));
        }
        let columns = ColumnMap::onto(own, table, |name| definition.dropped_at(name)).map_err(|error| {
            let path = sstable.data().file.path().display();
            Error::Invalid(format!("{path}: with the table it belongs to: {error}"))
        })?;
        let key = |bytes: &[u8]| sstable.key(bytes.into());
        let stats = &sstable.statistics().stats;
        Ok(Member {
            columns,
            first: key(sstable.first_key()),
            last: key(sstable.last_key()),
            min_timestamp: stats.min_timestamp,
            max_timestamp: stats.max_timestamp,
            facts,
            span: Span::of(&sstable, table),
            since: Cell::new(0),
            is_uncertain: Cell::new(false),
            is_as_defined: Cell::new(false),
            sstable,
        })
    }

    /// Columns that are here and not in the table, though nobody dropped them: nobody reads them, and a compaction keeps them.
    pub(crate) fn unknown_columns(&self, definition: &Definition) -> Vec<String> {
        let is_dropped = |name: &[u8]| definition.dropped_at(name).is_some();
        let [statics, regulars] = unknown_columns(&definition.schema, self.sstable.schema(), is_dropped);
        let statics = statics.into_iter().map(|column| format!("{} (static)", column.name_text()));
        statics.chain(regulars.into_iter().map(|column| column.name_text().into_owned())).collect()
    }

    /// Whether both are the same SSTable, whatever the columns of the table were when they were opened.
    pub fn is(&self, other: &Member) -> bool {
        Rc::ptr_eq(&self.sstable, &other.sstable) || self.sstable.descriptor() == other.sstable.descriptor()
    }

    /// It was written just now, by the definition that it was opened with.
    pub(crate) fn note_as_defined(&self) {
        self.is_as_defined.set(true);
    }

    /// Whether it was written as the table is defined now, for certain.
    pub(crate) fn is_as_defined(&self) -> bool {
        self.is_as_defined.get()
    }

    /// Outside of which no rows and range tombstones are here, in whatever partition, if that is certain.
    pub(crate) fn rows(&self) -> Option<&model::Slice> {
        self.span.as_ref().map(Span::slice)
    }

    /// The same, with the [ranks](Schema::rank) of both ends.
    pub(crate) fn ranked_rows(&self) -> Option<(&model::Slice, [u64; 2])> {
        self.span.as_ref().map(Span::ranked)
    }

    /// Whether something of a slice may be here, or what hides it, in whatever partition.
    #[inline]
    fn may_have(&self, sought: &SoughtSlice<'_>) -> bool {
        self.may_have_rows(sought) || self.may_hide(sought)
    }

    /// Whether rows or range tombstones of a slice may be here, in whatever partition.
    #[inline]
    fn may_have_rows(&self, sought: &SoughtSlice<'_>) -> bool {
        self.span.as_ref().is_none_or(|span| span.meets(sought))
    }

    /// Whether it may be that a partition is deleted here.
    #[inline]
    fn may_hide(&self, sought: &SoughtSlice<'_>) -> bool {
        self.span.as_ref().is_some_and(|span| span.may_hide) && self.since.get() > sought.undeleted
    }

    /// How many rows a partition has here, on average.
    pub(crate) fn rows_of_partition(&self) -> f64 {
        self.sstable.statistics().stats.row_count as f64 / self.facts.partitions.max(1) as f64
    }

    /// Whether it may be that a partition is deleted here, of which it is known that no SSTable does that came with this version or before.
    pub(crate) fn may_delete_partitions(&self, undeleted: u64) -> bool {
        let is_known = undeleted > 0 && self.since.get() <= undeleted;
        !is_known && self.span.as_ref().is_none_or(|span| span.may_hide)
    }

    /// Whether it is asked for a slice for no other reason than that.
    fn is_beside(&self, sought: &SoughtSlice<'_>) -> bool {
        self.may_hide(sought) && !self.may_have_rows(sought)
    }

    /// Where it is on the ring, at this place of a set.
    fn stretch(&self, place: u32) -> Stretch {
        Stretch { first: self.first.token, last: self.last.token, place }
    }

    fn has_token(&self, token: Token) -> bool {
        self.stretch(0).has(token)
    }

    /// Between which tokens its partitions are, of those above one token and not above another.
    pub(crate) fn tokens(&self, after: Option<Token>, last: Token) -> RangeInclusive<Token> {
        let least = after.map_or(Token::MIN, |after| after.saturating_add(1));
        least.max(self.first.token)..=last.min(self.last.token)
    }

    /// Whether it has partitions above one token and not above another.
    pub fn overlaps(&self, after: Option<Token>, last: Token) -> bool {
        self.first.token <= last && after.is_none_or(|after| self.last.token > after)
    }
}

impl Default for SSTableSet {
    fn default() -> SSTableSet {
        SSTableSet::new(Vec::new(), Undeleted::default())
    }
}

impl SSTableSet {
    /// A set of these, which is the next version of what is known of partitions.
    pub(crate) fn new(members: Vec<Rc<Member>>, undeleted: Undeleted) -> SSTableSet {
        SSTableSet::among(members, [].into_iter(), 0, undeleted)
    }

    /// A set of these, of some of which tokens may have been gathered; so many looks were taken since.
    fn among<'a>(
        mut members: Vec<Rc<Member>>,
        gathered: impl Iterator<Item = &'a Rc<Gathered>>,
        looks: u64,
        undeleted: Undeleted,
    ) -> SSTableSet {
        let undeleted = undeleted.next();
        members.iter().filter(|new| new.since.get() == 0).for_each(|new| new.since.set(undeleted.version()));
        // Of equal ones the greater generation was written later, as a rule.
        members.sort_by_cached_key(|member| {
            let generation = &member.sstable.descriptor().generation;
            let newest = (member.max_timestamp, generation.len(), generation.clone());
            Reverse(newest)
        });
        let chunks = members.iter().filter_map(|member| member.sstable.data().file.compression());
        let largest_chunk = chunks.map(|info| u64::from(info.chunk_len())).max().unwrap_or(0);
        let (covered, is_covered) = Covered::of(&members, gathered);
        let alone = (0..).zip(&members).filter(|(place, _)| !is_covered[*place as usize]);
        let runs = Runs::of(alone.map(|(place, member)| member.stretch(place)).collect());
        let by_rows = ByRows::of(&members);
        let has_many = runs.len() > MANY;
        let (looks, plans_at) = if has_many { (looks, 0) } else { (0, u64::MAX) };
        let (looks, plans_at) = (Cell::new(looks), Cell::new(plans_at));
        let has_hiding = members.iter().any(|member| member.span.as_ref().is_some_and(|span| span.may_hide));
        SSTableSet {
            members,
            runs,
            covered,
            by_rows,
            has_hiding,
            undeleted,
            looks,
            plans_at,
            largest_chunk,
            depth: OnceCell::new(),
        }
    }

    /// The largest chunk that any of them is compressed in, in bytes; 0 if none is compressed.
    pub fn largest_chunk(&self) -> u64 {
        self.largest_chunk
    }

    /// How many of them are read at once at the most, as rows of a table with this schema, which is that of the set.
    pub(crate) fn depth(&self, schema: &Schema) -> Depth {
        *self.depth.get_or_init(|| {
            let all = self.members.len();
            let with_small = |lanes: usize| all.min(lanes + MOST_AT_ONCE);
            let of_tokens = (0..).zip(&self.members).map(|(place, member)| member.stretch(place));
            let of_tokens = Runs::of(of_tokens.collect()).len();
            let of_rows = self
                .members
                .first()
                .map_or(0, |member| lanes::of_slice(&member.first, &self.members, 0, schema).len());
            // A static row may be in each that has the partition.
            let of_slice = if schema.statics.is_empty() { with_small(of_rows) } else { all };
            let of_slice = of_slice.min(of_tokens);
            Depth { slice: of_slice, scan: with_small(lanes::of_scan(&self.members, schema).len()) }
        })
    }

    /// All of them, the one with the greatest timestamp first.
    pub fn members(&self) -> &[Rc<Member>] {
        &self.members
    }

    /// Those that may have a partition, as far as first and last tokens tell, and filters as far as they are in memory.
    pub fn of_key(&self, key: &PartitionKey) -> Candidates {
        self.of_slice(key, None)
    }

    /// The same, but only those that may have something of a slice.
    pub(crate) fn of_slice(&self, key: &PartitionKey, sought: Option<SoughtSlice<'_>>) -> Candidates {
        let sought = sought.map(|sought| self.knowing(sought, key));
        let candidates = self.of_known(key, sought);
        self.noting_beside(candidates, sought.as_ref(), key)
    }

    /// The same with what is known of the partition.
    fn of_known(&self, key: &PartitionKey, sought: Option<SoughtSlice<'_>>) -> Candidates {
        if self.members.is_empty() {
            return Candidates::default();
        }
        let mut asked = Asked::new(&self.members, murmur3(&key.bytes));
        let by_rows = self.by_rows.as_ref().zip(sought.as_ref());
        match by_rows.filter(|(_, sought)| self.finds_by_rows(sought)) {
            Some((by_rows, sought)) => self.ask_by_rows(by_rows, sought, key.token, &mut asked),
            None => self.ask_by_tokens(sought.as_ref(), key.token, &mut asked),
        }
        self.count_looks(asked.looks);
        asked.candidates()
    }

    /// Asks those that have rows around the slice, and those that may delete the partition.
    fn ask_by_rows(&self, by_rows: &ByRows, sought: &SoughtSlice<'_>, token: Token, asked: &mut Asked<'_>) {
        let member = |place: u32| &*self.members[place as usize];
        asked.left_out = true;
        for place in self.near(by_rows, sought.ranks(), token) {
            if member(place).may_have_rows(sought) {
                asked.ask(place);
            }
        }
        for place in by_rows.hiding_behind(sought.undeleted) {
            if member(place).has_token(token) && member(place).is_beside(sought) {
                asked.ask(place);
            }
        }
    }

    /// Asks those that have the token between their first and their last one, or that the maplet names, but for who has nothing of the slice.
    fn ask_by_tokens(&self, sought: Option<&SoughtSlice<'_>>, token: Token, asked: &mut Asked<'_>) {
        let may_matter =
            |place: u32| sought.is_none_or(|sought| self.members[place as usize].may_have(sought));
        for place in self.runs.around(token) {
            if may_matter(place) { asked.ask(place) } else { asked.left_out = true }
        }
        for place in self.covered.iter().flat_map(|covered| covered.find(token)) {
            if may_matter(place) { asked.take(place) } else { asked.left_out = true }
        }
    }

    /// Those that may have something of what is requested; where it has a limit, maybe those alone that may have something of its beginning,
    /// and what to do for [others](Candidates::rest).
    pub(crate) fn of_request(self: &Rc<Self>, request: &ReadRequest, schema: &Schema) -> Candidates {
        let all = || self.of_slice(&request.key, request.sought(schema));
        self.of_beginning(request, schema).unwrap_or_else(all)
    }

    /// Those that may have something of the beginning of what is requested, if there are any, and it pays to ask no others yet.
    pub(crate) fn of_beginning(
        self: &Rc<Self>,
        request: &ReadRequest,
        schema: &Schema,
    ) -> Option<Candidates> {
        let at = self.cut(request, schema)?;
        let [beginning, _] = request.parted(&at);
        let candidates = self.of_slice(&request.key, beginning.sought(schema));
        (!candidates.is_empty()).then(|| candidates.with_rest(self.clone(), at))
    }

    /// Those of a slice behind its beginning, for which all were asked that may delete the partition, of which that was known.
    pub(crate) fn of_rest(&self, request: &ReadRequest, undeleted: u64, schema: &Schema) -> Candidates {
        let sought = request.sought(schema).map(|sought| sought.undeleted_since(u64::MAX));
        let mut rest = self.of_known(&request.key, sought);
        rest.know_undeleted(undeleted);
        rest
    }

    /// Only those that may have something of a slice, of those that may have a partition.
    pub(crate) fn of_slice_among(
        &self,
        candidates: Candidates,
        key: &PartitionKey,
        sought: Option<SoughtSlice<'_>>,
    ) -> Candidates {
        let Some(sought) = sought.map(|sought| self.knowing(sought, key)) else { return candidates };
        self.noting_beside(candidates.within(&sought), Some(&sought), key)
    }

    /// All that may delete a partition were asked for it, and say this together.
    pub(crate) fn note_deletion(&self, key: &PartitionKey, deletion: DeletionTime) {
        self.undeleted.note(key, deletion);
    }

    /// A slice that is looked for, with what is known of its partition.
    #[inline]
    fn knowing<'a>(&self, sought: SoughtSlice<'a>, key: &PartitionKey) -> SoughtSlice<'a> {
        if self.has_hiding {
            sought.undeleted_since(self.undeleted.of(key.view()).none_since)
        } else {
            sought
        }
    }

    /// Whether those that have rows around a slice are found by halves: it has to be known which of the others hide them.
    #[inline]
    fn finds_by_rows(&self, sought: &SoughtSlice<'_>) -> bool {
        sought.undeleted > 0 || !self.has_hiding
    }

    /// Notes of these whether some are asked, or not left for later, only because they may delete the partition, and it is to be found out.
    fn noting_beside(
        &self,
        mut candidates: Candidates,
        sought: Option<&SoughtSlice<'_>>,
        key: &PartitionKey,
    ) -> Candidates {
        candidates.know_undeleted(sought.map_or(0, |sought| sought.undeleted));
        if let Some(sought) = sought
            && self.has_hiding
            && span::asks_more_than_rows(candidates.members(), sought)
            && !self.undeleted.of(key.view()).is_somewhere
        {
            candidates.ask_beside();
        }
        candidates
    }

    /// If memory alone tells that none of them has anything of a row, how many were asked: see [`SSTable::denies_row`].
    pub fn denies_row(&self, key: KeyView<'_>, row: &[&[u8]], schema: &Schema) -> Option<u64> {
        let hash = LazyCell::new(|| murmur3(key.bytes));
        let rank = LazyCell::new(|| schema.rank_of_row(schema.number_order(), row));
        let (mut looks, mut of_covered) = (0, 0);
        let denies = |place: u32| {
            let Member { sstable, span, .. } = &*self.members[place as usize];
            let is_outside = span.as_ref().is_some_and(|span| !span.may_have_row(schema, row, *rank));
            is_outside || sstable.denies_row(key, || *hash, row)
        };
        let is_denied = if let Some(by_rows) = &self.by_rows {
            self.near(by_rows, [*rank; 2], key.token).inspect(|_| looks += 1).all(denies)
        } else {
            let covered = self.covered.iter().flat_map(|covered| covered.find(key.token));
            self.runs.around(key.token).inspect(|_| looks += 1).all(denies)
                && covered.inspect(|_| of_covered += 1).all(denies)
        };
        self.count_looks(looks);
        is_denied.then_some(looks + of_covered)
    }

    /// Those that may have something between two ranks, and have a token between their first and their last one.
    fn near(&self, by_rows: &ByRows, ranks: [u64; 2], token: Token) -> impl Iterator<Item = u32> {
        by_rows.meeting(ranks).filter(move |place| self.members[*place as usize].has_token(token))
    }

    /// The deletion of a partition of which rows were [denied](SSTableSet::denies_row), none if no SSTable has the partition; `None` if
    /// memory does not tell.
    pub fn deletion_at_hand(&self, key: KeyView<'_>) -> Option<Option<DeletionTime>> {
        let hash = murmur3(key.bytes);
        let covered = self.covered.iter().flat_map(|covered| covered.find(key.token));
        let undeleted = self.undeleted.of(key).none_since;
        let is_undeleted = |member: &Member| member.since.get() <= undeleted;
        let mut newest = None;
        for place in self.runs.around(key.token).chain(covered) {
            let member = &*self.members[place as usize];
            let Member { sstable, span, .. } = member;
            let deletion = match span {
                Some(span) if !span.may_hide => DeletionTime::LIVE,
                _ if is_undeleted(member) => DeletionTime::LIVE,
                _ if sstable.filter().probe(hash) == Probe::Absent => continue,
                _ => sstable.way_to_row(key)?.partition_deletion(),
            };
            newest = newest.max(Some(deletion));
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
        self.count_looks(questions.iter().map(|(_, range)| range.len() as u64).sum());
        let mut found: Vec<SmallVec<[u32; 8]>> = vec![SmallVec::new(); keys.len()];
        for (found, key) in found.iter_mut().zip(keys) {
            found.extend(self.covered.iter().flat_map(|covered| covered.find(key.token)));
        }
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
            Candidates::of(members)
        });
        Ok(candidates.collect())
    }

    /// The set without some and with others, which were made of them if there are any.
    pub fn replaced(&self, gone: &[Rc<Member>], new: impl IntoIterator<Item = Rc<Member>>) -> SSTableSet {
        let gone = These::of(gone);
        let (gone, mut members): (Vec<_>, Vec<_>) =
            self.members.iter().cloned().partition(|member| gone.have(member));
        let since = gone.iter().map(|member| member.since.get()).max();
        members.extend(new.into_iter().inspect(|new| new.since.set(since.unwrap_or(0))));
        self.with_members(members)
    }

    /// The set without some, which asks filters alone: what a maplet says is as true as Index.db, which is enough for who reads by
    /// Index.db, but not for who drops a tombstone because of it.
    pub(crate) fn by_filters_without(&self, gone: &[Rc<Member>]) -> SSTableSet {
        let gone = These::of(gone);
        self.by_filters(self.members.iter().filter(|member| !gone.have(member)).cloned().collect())
    }

    /// The set with these members in the place of its own, which asks filters alone. It may not be the table's next one, but has
    /// the same version: then nobody asks it for slices.
    pub(crate) fn by_filters(&self, members: Vec<Rc<Member>>) -> SSTableSet {
        SSTableSet::new(members, self.undeleted.clone())
    }

    /// The set with these members in the place of its own.
    pub(crate) fn with_members(&self, members: Vec<Rc<Member>>) -> SSTableSet {
        let (gathered, looks) = (self.covered.iter().map(Covered::gathered), self.looks.get());
        SSTableSet::among(members, gathered, looks, self.undeleted.clone())
    }

    /// The set with what was gathered.
    pub(crate) fn with_gathered(&self, gathered: Gathered) -> SSTableSet {
        let new = Rc::new(gathered);
        let all = [&new].into_iter().chain(self.covered.iter().map(Covered::gathered));
        SSTableSet::among(self.members.clone(), all, 0, self.undeleted.clone())
    }

    /// Whether so many filters were looked at that it is to be [planned](SSTableSet::to_gather) what is gathered.
    #[inline]
    pub(crate) fn pays_to_plan(&self) -> bool {
        self.looks.get() >= self.plans_at.get()
    }

    /// Of how many a look at a maplet tells whether they may have a partition.
    pub fn gathered(&self) -> usize {
        self.covered.iter().map(|covered| covered.there().count()).sum()
    }

    /// What is to be gathered now, to whoever asks first, and about how many partitions that is. If it does not pay yet, or there is no
    /// room, it is planned again later.
    pub(crate) fn to_gather(&self, room: Room) -> Option<(Vec<Rc<Member>>, u64)> {
        if !self.pays_to_plan() {
            return None;
        }
        let member = |place: u32| (place, &*self.members[place as usize]);
        let runs = self.runs.all().map(|run| Group::of(run.iter().map(|stretch| member(stretch.place))));
        let maplets = self.covered.iter().map(|covered| Group::of(covered.there().map(member)));
        let plan = Plan::new(runs.flatten().collect(), maplets.flatten().collect(), room);
        let looks = self.looks.get();
        let is_due = !plan.places.is_empty() && plan.cost <= looks;
        self.plans_at.set(if is_due {
            u64::MAX
        } else if plan.places.is_empty() {
            looks.max(LOOKS_BETWEEN_PLANS) * 2
        } else {
            plan.cost
        });
        let members = plan.places.iter().map(|place| self.members[*place as usize].clone());
        is_due.then(|| (members.collect(), plan.partitions))
    }

    #[inline]
    fn count_looks(&self, looks: u64) {
        self.looks.set(self.looks.get() + looks);
    }
}
