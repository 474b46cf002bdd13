//! Levels without overlaps, each ten times as large as the one before: a read looks into one SSTable of each.
//!
//! ```text
//! 0  ▬▬▬▬▬▬▬▬▬ ▬▬▬▬▬▬▬▬▬▬ ▬▬▬▬▬▬   new ones, anywhere; with all of level 1 that they overlap they go there
//! 1  ▬▬▬ ▬▬▬ ▬▬▬ ▬▬▬              10 SSTables; above that, the next one goes on, with those of 2 that it overlaps
//! 2  ▬ ▬ ▬ ▬ ▬ ▬ ▬ ▬ ▬ ▬ ▬        100 SSTables
//! ```
//!
//! High levels come first. Where level 0 has more than 32, those are merged by size meanwhile, so that reads do not
//! suffer until the levels have caught up.
//!
//! Cassandra keeps in mind where each level went on last. Here that is where the youngest SSTable of the next level
//! ends, as Cassandra has it when it starts. It also counts for how long a level was not touched, and takes one of its
//! SSTables along after 25 jobs, against levels that a change of the options left nearly empty: that is left out.

use std::collections::BTreeSet;

use model::Token;

use super::facts::{SSTableFacts, View, generations, total_bytes};
use super::options::{Compaction, Leveled};
use super::{Job, Reason, droppable, size_tiered};

/// The last level. It may grow without bounds.
pub const HIGHEST_LEVEL: u32 = 8;

/// From more SSTables in level 0 on they are merged by size.
const BACKLOG: usize = 32;

/// Which share of a level has to be there for something to go on.
const FULL: f64 = 1.001;

/// How many bytes a level may have.
pub(super) fn max_bytes_of_level(level: u32, fanout: u32, sstable_bytes: u64) -> u64 {
    match level {
        0 => sstable_bytes.saturating_mul(4),
        level => (f64::from(fanout).powi(level as i32) * sstable_bytes as f64) as u64,
    }
}

/// The next job: a level that is too full, then new SSTables, then tombstones.
pub(super) fn next(compaction: &Compaction, options: &Leveled, view: &View<'_>) -> Option<Job> {
    let levels = Levels { compaction, options, view, levels: place(view) };
    let backlog = levels.backlog();
    let mut too_full = (1..HIGHEST_LEVEL).rev().filter(|&level| levels.is_too_full(level));
    if backlog.is_some() && too_full.clone().next().is_some() {
        return backlog;
    }
    let promotion = too_full.find_map(|level| levels.promote(level));
    promotion.or_else(|| levels.take_new()).or(backlog).or_else(|| levels.drop_tombstones())
}

/// How many jobs there are to be done, as Cassandra estimates.
pub(super) fn pending(compaction: &Compaction, options: &Leveled, view: &View<'_>) -> u64 {
    let levels = Levels { compaction, options, view, levels: place(view) };
    let of_level = |level: u32| {
        let allowed = (levels.max_bytes(level) as f64 * FULL) as u64;
        let too_much = total_bytes(levels.all(level)).saturating_sub(allowed);
        too_much.div_ceil(options.sstable_bytes)
    };
    let new = levels.levels[0].len();
    let by_size = if new > compaction.max_threshold { new / compaction.max_threshold } else { 0 };
    (0..=HIGHEST_LEVEL).map(of_level).sum::<u64>() + by_size as u64
}

/// The SSTables by their levels. One that overlaps an older one of its level belongs to level 0, whatever it says: it
/// was brought from elsewhere.
///
/// Invariant of the result: above level 0 none overlaps another one of its level, and all are in the order of their
/// tokens.
pub(super) fn place<'a>(view: &View<'a>) -> Vec<Vec<&'a SSTableFacts>> {
    let mut levels: Vec<Vec<&SSTableFacts>> = vec![Vec::new(); HIGHEST_LEVEL as usize + 1];
    let mut by_age = view.facts.clone();
    by_age.sort_by(|a, b| a.age().cmp(&b.age()));
    for sstable in by_age {
        let level = levels.get_mut(sstable.level as usize).filter(|_| sstable.level > 0);
        let place = level.and_then(|level| {
            let at = level.partition_point(|other| other.last_token < sstable.first_token);
            let is_free = level.get(at).is_none_or(|after| after.first_token > sstable.last_token);
            is_free.then(|| level.insert(at, sstable))
        });
        if place.is_none() {
            levels[0].push(sstable);
        }
    }
    levels
}

struct Levels<'a> {
    compaction: &'a Compaction,
    options: &'a Leveled,
    view: &'a View<'a>,
    levels: Vec<Vec<&'a SSTableFacts>>,
}

impl<'a> Levels<'a> {
    fn all(&self, level: u32) -> impl Iterator<Item = &'a SSTableFacts> {
        self.levels[level as usize].iter().copied()
    }

    /// Those of a level that nobody is at work on.
    fn free(&self, level: u32) -> impl Iterator<Item = &'a SSTableFacts> {
        self.all(level).filter(|sstable| !self.view.is_compacting(sstable))
    }

    fn max_bytes(&self, level: u32) -> u64 {
        max_bytes_of_level(level, self.options.fanout, self.options.sstable_bytes)
    }

    fn is_too_full(&self, level: u32) -> bool {
        total_bytes(self.free(level)) as f64 / self.max_bytes(level) as f64 > FULL
    }

    /// New SSTables merged by size, while there are too many of them.
    fn backlog(&self) -> Option<Job> {
        if self.levels[0].len() <= BACKLOG {
            return None;
        }
        let buckets = size_tiered::buckets(&self.options.tiers, self.free(0));
        let bucket = size_tiered::interesting(self.compaction, buckets)?;
        Some(Job::merging(generations(&bucket), Reason::Backlog))
    }

    /// The next SSTable of a level, from where the last one ended, with those that it overlaps in the next level.
    fn promote(&self, level: u32) -> Option<Job> {
        let order = self.next_in_turn(level);
        let candidates = order.into_iter().map(|sstable| {
            let overlapped = self.all(level + 1).filter(|other| other.overlaps(sstable));
            [sstable].into_iter().chain(overlapped).collect::<Vec<_>>()
        });
        let free = |inputs: &Vec<&SSTableFacts>| !inputs.iter().any(|input| self.view.is_compacting(input));
        let inputs = candidates.into_iter().find(free)?;
        let may_move = self.options.single_sstable_uplevel && inputs.len() == 1;
        Some(Job { may_move, ..self.merging_into(&inputs, level + 1, Reason::Level(level)) })
    }

    /// The SSTables of a level, beginning behind the youngest one of the next level.
    fn next_in_turn(&self, level: u32) -> Vec<&'a SSTableFacts> {
        let key = |sstable: &&'a SSTableFacts| (sstable.written_at, sstable.first_token);
        let last: Option<Token> = self.all(level + 1).max_by_key(key).map(|sstable| sstable.last_token);
        let mut order: Vec<&SSTableFacts> = self.all(level).collect();
        let pivot = last.map_or(0, |last| order.partition_point(|sstable| sstable.first_token <= last));
        // Behind all of them is the beginning again.
        let first = if pivot < order.len() { pivot } else { 0 };
        order.rotate_left(first);
        order
    }

    /// New SSTables, the oldest ones and what overlaps them, merged with what they overlap in level 1, or with each other
    /// where all of them would not make one SSTable of that.
    fn take_new(&self) -> Option<Job> {
        let busy: Vec<&SSTableFacts> =
            self.all(0).filter(|sstable| self.view.is_compacting(sstable)).collect();
        let mut inputs = self.oldest_new(&busy);
        let level = u32::from(total_bytes(inputs.iter().copied()) > self.options.sstable_bytes);
        if level == 1 {
            let (first, last) = span(&inputs)?;
            let below: Vec<&SSTableFacts> =
                self.all(1).filter(|sstable| sstable.is_within(first, last)).collect();
            // What is not free now is taken when it is.
            let is_busy = below.iter().any(|sstable| self.view.is_compacting(sstable));
            if is_busy || busy.iter().any(|sstable| sstable.is_within(first, last)) {
                return None;
            }
            inputs.extend(below);
        }
        (inputs.len() >= 2).then(|| self.merging_into(&inputs, level, Reason::Level(0)))
    }

    /// From the oldest one on, new SSTables with those that overlap them, as many as one job may have. Those are left
    /// out that lie where somebody is at work.
    fn oldest_new(&self, busy: &[&SSTableFacts]) -> Vec<&'a SSTableFacts> {
        let mut remaining: Vec<&SSTableFacts> = self.all(0).collect();
        remaining.sort_by(|a, b| (a.max_timestamp, a.age()).cmp(&(b.max_timestamp, b.age())));
        let (busy_span, mut inputs, mut seen) = (span(busy), Vec::new(), BTreeSet::new());
        for sstable in remaining.clone() {
            let overlaps = |other: &&SSTableFacts| other.overlaps(sstable);
            let is_busy = busy.iter().any(|other| other.overlaps(sstable));
            if is_busy || seen.contains(&sstable.generation) {
                continue;
            }
            let overlapped: Vec<&SSTableFacts> =
                remaining.iter().filter(|other| overlaps(other)).copied().collect();
            remaining.retain(|other| !overlaps(other));
            seen.extend(overlapped.iter().map(|other| &other.generation));
            let is_apart =
                |other: &&SSTableFacts| busy_span.is_none_or(|(first, last)| !other.is_within(first, last));
            inputs.extend(overlapped.into_iter().filter(is_apart));
            if inputs.len() > self.compaction.max_threshold {
                break;
            }
        }
        inputs.sort_by(|a, b| (a.max_timestamp, a.age()).cmp(&(b.max_timestamp, b.age())));
        inputs.truncate(self.compaction.max_threshold);
        inputs
    }

    /// The SSTable with most droppable tombstones, of the highest level that has one worth it.
    fn drop_tombstones(&self) -> Option<Job> {
        (0..=HIGHEST_LEVEL).rev().find_map(|level| {
            let worth =
                self.free(level).filter(|sstable| droppable::is_worth(self.compaction, self.view, sstable));
            let ratio = |sstable: &SSTableFacts| sstable.droppable_ratio(self.view.gc_before);
            let most = worth.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
            Some(self.merging_into(&[most], level, Reason::Tombstones))
        })
    }

    fn merging_into(&self, inputs: &[&SSTableFacts], output_level: u32, why: Reason) -> Job {
        let max_output_bytes = Some(self.options.sstable_bytes);
        Job { output_level, max_output_bytes, ..Job::merging(generations(inputs), why) }
    }
}

/// From the first token to the last.
fn span(sstables: &[&SSTableFacts]) -> Option<(Token, Token)> {
    let first = sstables.iter().map(|sstable| sstable.first_token).min()?;
    let last = sstables.iter().map(|sstable| sstable.last_token).max()?;
    Some((first, last))
}

#[cfg(test)]
mod tests;
