//! What lies outside of a compaction, as far as it keeps tombstones from being purged.
//!
//! A purge asks for it in the middle of a partition, where it cannot wait. So the pages of filters that tell are brought in
//! where the partition begins; should one have gone since, its SSTable counts as one that has the partition.

use std::cell::RefCell;
use std::rc::Rc;

use model::flat::RowTaker;
use model::{Fragment, FragmentReader, Next, PartitionKey, PartitionStart};

use crate::sstable_set::{Candidates, Member, SSTableSet};
use crate::table::Table;
use crate::{Error, Result};

/// All of a table but some SSTables.
#[derive(Clone)]
pub(crate) struct Outside(Rc<Inner>);

struct Inner {
    table: Table,
    inputs: Vec<Rc<Member>>,
    /// The SSTables of the table when it was asked last, and those of them that are outside.
    known: RefCell<(Rc<SSTableSet>, Rc<SSTableSet>)>,
}

/// A stream whose partitions do not begin before the filters can be asked for them.
pub(crate) struct Awaiting<R> {
    reader: R,
    /// `None` where nothing will be asked.
    outside: Option<Outside>,
    held: Option<(PartitionStart, Candidates)>,
}

impl Outside {
    /// All but these.
    pub(crate) fn new(table: &Table, inputs: Vec<Rc<Member>>) -> Outside {
        let set = table.sstables();
        let others = Rc::new(set.by_filters_without(&inputs));
        Outside(Rc::new(Inner { table: table.clone(), inputs, known: RefCell::new((set, others)) }))
    }

    /// The least timestamp of all that may be of a partition; `None` if nothing is.
    pub(crate) fn least(&self, key: &PartitionKey) -> Option<i64> {
        let candidates = self.candidates(key);
        let in_sstables = candidates.members().iter().map(|member| member.min_timestamp);
        let memtables = self.0.table.memtables();
        let with_key = memtables.iter().filter(|memtable| memtable.has(key.token));
        let in_memtables = with_key.filter_map(|memtable| memtable.timestamps().map(|(least, _)| least));
        in_sstables.chain(in_memtables).min()
    }

    /// The stream of a reader, whose partitions wait for what [`Outside::least`] asks, if it may be asked: that is all filters outside for
    /// each partition.
    pub(crate) fn awaited_by<R>(&self, reader: R, may_be_asked: bool) -> Awaiting<R> {
        Awaiting { reader, outside: may_be_asked.then(|| self.clone()), held: None }
    }

    fn candidates(&self, key: &PartitionKey) -> Candidates {
        self.sstables().of_key(key)
    }

    /// The SSTables that are outside by now: what a flush has made meanwhile is.
    fn sstables(&self) -> Rc<SSTableSet> {
        let Inner { table, inputs, known } = &*self.0;
        let set = table.sstables();
        let mut known = known.borrow_mut();
        if !Rc::ptr_eq(&known.0, &set) {
            let others = Rc::new(set.by_filters_without(inputs));
            *known = (set, others);
        }
        known.1.clone()
    }
}

impl<R: FragmentReader<Error = Error>> FragmentReader for Awaiting<R> {
    type Error = Error;

    fn pop(&mut self, place: &mut Fragment) -> Result<Next> {
        if let Some((start, _)) = self.held.take() {
            *place = Fragment::PartitionStart(start);
            return Ok(Next::Fragment);
        }
        let next = self.reader.pop(place)?;
        if next == Next::Fragment
            && let Fragment::PartitionStart(start) = place
            && let Some(outside) = &self.outside
        {
            let candidates = outside.candidates(&start.key);
            if candidates.has_unread() {
                self.held = Some((start.clone(), candidates));
                return Ok(Next::Fill);
            }
        }
        Ok(next)
    }

    #[inline]
    fn pop_flat(&mut self, take: &mut impl RowTaker) {
        if self.held.is_none() {
            self.reader.pop_flat(take);
        }
    }

    async fn fill(&mut self) -> Result<()> {
        match &mut self.held {
            Some((start, candidates)) => candidates.ask_all(&start.key).await,
            None => self.reader.fill().await,
        }
    }
}
