//! What was written to a table, what of it is certain, and what reads may therefore give.
//!
//! ```text
//! begun ──► acknowledged ──► settled          durable for good: what Batch mode acknowledges is so at once
//!   │            └─ a crash may take a suffix of these
//!   └─ a crash may leave any of these, each wholly or not at all
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use model::merge::Direction;
use model::{Mutation, PartitionKey, Schema, Slice};
use testkit::generate::random::Random;
use testkit::oracle::Oracle;
use testkit::selected::Selected;

/// More writes at once than these are not told apart: twice as many states come with each.
const MOST_AT_ONCE: usize = 6;

/// The writes to one table.
#[derive(Debug)]
pub(crate) struct Ledger {
    schema: Rc<Schema>,
    partitions: BTreeMap<PartitionKey, Known>,
    begun: usize,
    acknowledged: usize,
}

/// What is known of a partition.
#[derive(Debug)]
struct Known {
    settled: Oracle,
    open: Vec<Write>,
    /// What was begun since the last quiet moment, for reads that were under way then.
    recent: Vec<Write>,
}

/// A write that may be lost.
#[derive(Clone, Debug)]
struct Write {
    number: usize,
    mutation: Mutation,
    /// `None` until somebody was told that it is done.
    acknowledged: Option<Acknowledged>,
}

#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    /// The order among those of the table.
    at: usize,
    time: Duration,
}

/// What a partition was when a read of it began.
#[derive(Debug)]
pub(crate) struct Before {
    base: Oracle,
    under_way: Vec<Mutation>,
    begun: usize,
}

impl Ledger {
    /// Nothing is written.
    pub(crate) fn new(schema: &Rc<Schema>) -> Ledger {
        Ledger { schema: schema.clone(), partitions: BTreeMap::new(), begun: 0, acknowledged: 0 }
    }

    /// Somebody begins to write this; its number.
    pub(crate) fn begin(&mut self, mutation: &Mutation) -> usize {
        self.begun += 1;
        let write = Write { number: self.begun, mutation: mutation.clone(), acknowledged: None };
        let known = self.partitions.entry(mutation.key.clone()).or_insert_with(|| Known {
            settled: Oracle::new(&self.schema),
            open: Vec::new(),
            recent: Vec::new(),
        });
        known.open.push(write.clone());
        known.recent.push(write);
        self.begun
    }

    /// Somebody was told that it is written.
    pub(crate) fn acknowledge(
        &mut self,
        key: &PartitionKey,
        number: usize,
        time: Duration,
        is_durable: bool,
    ) {
        self.acknowledged += 1;
        let at = self.acknowledged;
        let known = self.partitions.get_mut(key).unwrap();
        let write = known.open.iter_mut().find(|write| write.number == number).unwrap();
        write.acknowledged = Some(Acknowledged { at, time });
        if is_durable {
            known.settle(|write| write.number == number);
        }
    }

    /// How many were acknowledged so far, for [`Ledger::settle`].
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged
    }

    /// The first so many that were acknowledged are durable.
    pub(crate) fn settle(&mut self, count: usize) {
        for known in self.partitions.values_mut() {
            known.settle(|write| write.acknowledged.is_some_and(|known| known.at <= count));
        }
    }

    /// No read is under way.
    pub(crate) fn is_quiet(&mut self) {
        self.partitions.values_mut().for_each(|known| known.recent.clear());
    }

    /// Whether a write has neither ended nor been given up.
    pub(crate) fn has_under_way(&self) -> bool {
        let mut open = self.partitions.values().flat_map(|known| &known.open);
        open.any(|write| write.acknowledged.is_none())
    }

    /// All keys that were ever written.
    pub(crate) fn keys(&self) -> Vec<PartitionKey> {
        self.partitions.keys().cloned().collect()
    }

    /// A read of a partition begins.
    pub(crate) fn before(&self, key: &PartitionKey) -> Before {
        let known = self.partitions.get(key);
        let base = known.map_or_else(|| Oracle::new(&self.schema), Known::visible);
        let under_way = known.map(Known::under_way).unwrap_or_default();
        Before { base, under_way, begun: self.begun }
    }

    /// All that the read may have met, in every combination of the writes that were under way; `None` if there are too
    /// many of them.
    pub(crate) fn between(
        &self,
        before: &Before,
        key: &PartitionKey,
        slice: &Slice,
        way: Direction,
        now: i64,
    ) -> Option<Vec<Vec<Selected>>> {
        let recent = self.partitions.get(key).map(|known| &*known.recent).unwrap_or_default();
        let since = recent.iter().filter(|write| write.number > before.begun);
        let mut writes = before.under_way.clone();
        writes.extend(since.map(|write| write.mutation.clone()));
        (writes.len() <= MOST_AT_ONCE).then(|| {
            let of = |set| {
                let mut state = before.base.clone();
                chosen(&writes, set).iter().for_each(|write| state.apply(write));
                state.slice(key, slice, way, now)
            };
            (0..1 << writes.len()).map(of).collect()
        })
    }

    /// After a crash and a recovery this is found. Makes sure that it is what may be left: all that was acknowledged
    /// first, at least up to `time`, and of what was under way anything. What is not certain then
    /// is given back, to be written again; so is at times what is lost.
    pub(crate) fn survive(
        &mut self,
        found: &[Selected],
        now: i64,
        time: Option<Duration>,
        random: &mut Random,
    ) -> Vec<Mutation> {
        let possible = self.possible(found, now, self.kept(time));
        let first = possible.first().unwrap_or_else(|| panic!("{}", self.tell(found, now)));
        let is_certain = possible.len() == 1 && first.choices.iter().all(|choices| choices.len() == 1);
        let is_over = is_certain && random.percent(50);
        let mut again = Vec::new();
        for (known, choices) in self.partitions.values_mut().zip(&first.choices) {
            known.settle(|write| write.acknowledged.is_some_and(|known| known.at <= first.kept));
            let chosen = known.under_way_in(choices[0]);
            let open = std::mem::take(&mut known.open);
            match is_over {
                true => chosen.iter().for_each(|mutation| known.settled.apply(mutation)),
                false => again.extend(open.into_iter().map(|write| write.mutation)),
            }
        }
        again
    }

    /// How many of the acknowledged writes must be there.
    fn kept(&self, time: Option<Duration>) -> usize {
        let open = self.partitions.values().flat_map(|known| &known.open);
        let is_in_time = |known: &Acknowledged| time.is_some_and(|time| known.time <= time);
        let in_time = open.filter_map(|write| write.acknowledged).filter(is_in_time);
        in_time.map(|known| known.at).max().unwrap_or(0)
    }

    /// All that may have come of a crash and looks like this.
    fn possible(&self, found: &[Selected], now: i64, kept: usize) -> Vec<Possible> {
        let open = self.partitions.values().flat_map(|known| &known.open);
        let acknowledged = open.filter_map(|write| write.acknowledged).map(|known| known.at);
        let cuts: BTreeSet<usize> = acknowledged.filter(|at| *at > kept).chain([kept]).collect();
        let of_cut = |kept: usize| {
            let choices = self.partitions.iter().map(|(key, known)| {
                let found: Vec<&Selected> = found.iter().filter(|row| row.key == *key).collect();
                known.choices(key, kept, &found, now)
            });
            Possible { kept, choices: choices.collect() }
        };
        let possible = cuts.into_iter().map(of_cut);
        possible.filter(|possible| possible.choices.iter().all(|choices| !choices.is_empty())).collect()
    }

    /// What was found beside what is known.
    fn tell(&self, found: &[Selected], now: i64) -> String {
        let mut text = String::from("this is not what a crash may leave\n");
        for (key, known) in &self.partitions {
            let found: Vec<&Selected> = found.iter().filter(|row| row.key == *key).collect();
            let settled = known.settled.slice(key, &Slice::all(), Direction::Forward, now);
            if !found.iter().copied().eq(&settled) || !known.open.is_empty() {
                let open = &known.open;
                text += &format!("{key:?}:\nfound {found:#?}\ncertain {settled:#?}\nuncertain {open:#?}\n");
            }
        }
        text
    }
}

/// What a crash may have left.
#[derive(Debug)]
struct Possible {
    /// How many of the acknowledged writes.
    kept: usize,
    /// For each partition the sets of the writes under way that explain it.
    choices: Vec<Vec<Set>>,
}

/// Some of a few writes: a bit for each.
type Set = usize;

impl Known {
    fn settle(&mut self, is_certain: impl Fn(&Write) -> bool) {
        let (certain, open) = std::mem::take(&mut self.open).into_iter().partition(is_certain);
        let certain: Vec<Write> = certain;
        certain.iter().for_each(|write| self.settled.apply(&write.mutation));
        self.open = open;
    }

    /// With all that was acknowledged.
    fn visible(&self) -> Oracle {
        self.state(usize::MAX, 0)
    }

    fn under_way(&self) -> Vec<Mutation> {
        let under_way = self.open.iter().filter(|write| write.acknowledged.is_none());
        under_way.map(|write| write.mutation.clone()).collect()
    }

    fn under_way_in(&self, set: Set) -> Vec<Mutation> {
        chosen(&self.under_way(), set)
    }

    /// With the first so many acknowledged writes, and some of those under way.
    fn state(&self, kept: usize, set: Set) -> Oracle {
        let mut state = self.settled.clone();
        let acknowledged = |write: &&Write| write.acknowledged.is_some_and(|known| known.at <= kept);
        self.open.iter().filter(acknowledged).for_each(|write| state.apply(&write.mutation));
        self.under_way_in(set).iter().for_each(|mutation| state.apply(mutation));
        state
    }

    /// Which of the writes under way explain what was found, if the first so many that were acknowledged are there.
    fn choices(&self, key: &PartitionKey, kept: usize, found: &[&Selected], now: i64) -> Vec<Set> {
        let count = self.under_way().len();
        assert!(count <= 2 * MOST_AT_ONCE, "{count} writes to one partition at once");
        let explains = |set: &Set| {
            let rows = self.state(kept, *set).slice(key, &Slice::all(), Direction::Forward, now);
            rows.iter().eq(found.iter().copied())
        };
        (0..1 << count).filter(explains).collect()
    }
}

fn chosen(writes: &[Mutation], set: Set) -> Vec<Mutation> {
    let in_set = writes.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
    in_set.map(|(_, write)| write.clone()).collect()
}
