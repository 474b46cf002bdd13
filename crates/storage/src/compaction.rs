//! Which SSTables are merged next: a decision from facts about them, without a look at a disk.
//!
//! ```text
//! options of the table ──► Compaction ─┐
//! SSTables ──► SSTableFacts ──► View ──┴─► next ──► Job: merge these, remove those, write so many bytes each
//! ```
//!
//! The strategies are those of Cassandra 5.0 with its options, and they decide as it does wherever they look at the same
//! things. They look at nothing else: the same facts give the same job. What Cassandra remembers between two
//! decisions is read from the facts instead (where leveled compaction went last, which window is the newest). How often an
//! SSTable is read counts for nothing.
//!
//! Repaired SSTables, those of each pending repair and all others are kept apart, as Cassandra keeps them.
//!
//! | module | idea |
//! |---|---|
//! | [`facts`] | what is known of an SSTable, and of all of them at a time |
//! | [`options`] | the options of a table |
//! | [`size_tiered`] | SSTables of about the same size are merged |
//! | [`leveled`] | levels without overlaps, each ten times as large as the one before |
//! | [`time_window`] | SSTables of one hour or day are merged, and not with others |
//! | [`droppable`] | what holds nothing but tombstones, or many of them |

use std::collections::BTreeSet;
use std::fmt;

pub mod droppable;
pub mod facts;
pub mod leveled;
pub mod options;
pub mod size_tiered;
pub mod time_window;

pub use facts::{Generation, SSTableFacts, View};
pub use options::{Compaction, Strategy};

/// What is to be done with some SSTables.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// The SSTables that are merged; none where only `expired` ones go.
    pub inputs: Vec<Generation>,
    /// SSTables that go with them, unread: all in them has expired, and it deletes nothing elsewhere.
    pub expired: Vec<Generation>,
    /// The level of the new SSTables; see [`Job::level_of_next`].
    pub output_level: u32,
    /// From how many bytes on disk on the next SSTable begins, between two partitions; `None` for a single one.
    pub max_output_bytes: Option<u64>,
    /// How many times as large each level is as the one before, where the new SSTables are to fill several.
    pub fanout: Option<u32>,
    /// Whether it is enough to give the one input that level: there is nothing to merge it with.
    pub may_move: bool,
    /// Why it is done.
    pub why: Reason,
}

/// Why SSTables are merged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// They are of about the same size.
    SizeTier,
    /// A level is too full.
    Level(u32),
    /// New SSTables come faster than leveled compaction takes them.
    Backlog,
    /// They are of the time window that begins at this second.
    Window(i64),
    /// It is worth while for the tombstones.
    Tombstones,
    /// All in them has expired.
    Expired,
    /// Somebody asked for it.
    Major,
}

impl Job {
    /// One SSTable in the place of these.
    pub(crate) fn merging(inputs: Vec<Generation>, why: Reason) -> Job {
        let (expired, output_level, max_output_bytes) = (Vec::new(), 0, None);
        Job { inputs, expired, output_level, max_output_bytes, fanout: None, may_move: false, why }
    }

    /// The level of the next new SSTable, once those of so many bytes on disk are finished.
    pub fn level_of_next(&self, finished: &[u64]) -> u32 {
        let (Some(fanout), Some(max)) = (self.fanout, self.max_output_bytes) else {
            return self.output_level;
        };
        let (mut level, mut bytes) = (self.output_level, 0u64);
        for finished in finished {
            bytes += finished;
            if bytes > leveled::max_bytes_of_level(level, fanout, max) {
                (level, bytes) = ((level + 1).min(leveled::HIGHEST_LEVEL), 0);
            }
        }
        level
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::SizeTier => f.write_str("they are of about the same size"),
            Reason::Level(level) => write!(f, "level {level} is too full"),
            Reason::Backlog => f.write_str("there are too many that are in no level"),
            Reason::Window(start) => write!(f, "they are of the time window that begins at second {start}"),
            Reason::Tombstones => f.write_str("it has many tombstones to drop"),
            Reason::Expired => f.write_str("all in them has expired"),
            Reason::Major => f.write_str("a major compaction was asked for"),
        }
    }
}

impl Compaction {
    /// What is to be done next, if anything is. Jobs that are under way are told by the view; more of them may be begun
    /// at the same time. Nothing is done while compaction is not enabled.
    pub fn next(&self, view: &View<'_>) -> Option<Job> {
        if !self.enabled {
            return None;
        }
        view.groups().into_iter().find_map(|group| {
            let found = match &self.strategy {
                Strategy::SizeTiered(tiers) => size_tiered::next(self, tiers, &group),
                Strategy::Leveled(levels) => leveled::next(self, levels, &group),
                Strategy::TimeWindow(windows) => time_window::next(self, windows, &group),
            };
            found.map(|job| self.without_expired(&group, job))
        })
    }

    /// The jobs that merge all that nobody is at work on: one, or one for each kind of SSTables that are kept apart. Best
    /// begun while no other job is under way: with leveled compaction, new SSTables may overlap what that one leaves, and
    /// belong to level 0 then.
    pub fn major(&self, view: &View<'_>) -> Vec<Job> {
        let jobs = view.groups().into_iter().filter_map(|group| {
            let inputs: Vec<Generation> = group.free().map(|sstable| sstable.generation.clone()).collect();
            if inputs.is_empty() {
                return None;
            }
            let mut job = Job::merging(inputs, Reason::Major);
            if let Strategy::Leveled(levels) = &self.strategy {
                let (max, fanout) = (Some(levels.sstable_bytes), Some(levels.fanout));
                job = Job { output_level: 1, max_output_bytes: max, fanout, ..job };
            }
            Some(self.without_expired(&group, job))
        });
        jobs.collect()
    }

    /// An estimate of how many jobs there are to be done.
    pub fn pending(&self, view: &View<'_>) -> u64 {
        let pending = view.groups().into_iter().map(|group| match &self.strategy {
            Strategy::SizeTiered(tiers) => size_tiered::pending(self, tiers, &group),
            Strategy::Leveled(levels) => leveled::pending(self, levels, &group),
            Strategy::TimeWindow(windows) => time_window::pending(self, windows, &group),
        });
        pending.sum()
    }

    /// The job, in which nothing is read that can be dropped unread.
    fn without_expired(&self, view: &View<'_>, mut job: Job) -> Job {
        let chosen: BTreeSet<&Generation> = job.inputs.iter().collect();
        let inputs: Vec<&SSTableFacts> =
            view.facts.iter().filter(|sstable| chosen.contains(&sstable.generation)).copied().collect();
        let expired = droppable::fully_expired(self, view, &inputs);
        let gone: BTreeSet<&Generation> = expired.iter().collect();
        job.inputs.retain(|input| !gone.contains(input));
        job.expired.extend(expired);
        job
    }
}

#[cfg(test)]
mod simulation;
