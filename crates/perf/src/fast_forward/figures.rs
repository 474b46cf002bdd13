//! What a case costs: counted while it runs, and summed up over its iterations.

use std::pin::pin;
use std::time::Duration;

use runtime::{Disk, IoStats};
use serde_json::Value;
use sstable::cache::cached_file::PageStats;

use crate::allocations;
use crate::clocks::Clocks;
use crate::counters::{self, Counted};
use crate::numbers::{deviation, rounded};
use crate::polls::Polls;

/// What one iteration cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Figures {
    /// From the first request to the last row.
    pub time: Duration,
    /// Rows found.
    pub fragments: u64,
    /// Reads that went to the operating system.
    pub requests: u64,
    /// Bytes that they were for, rounded outwards to what direct I/O needs.
    pub bytes: u64,
    /// Those of them whose bytes nobody wanted in the end.
    pub dropped: u64,
    /// How often all waited for the disk.
    pub blocked: u64,
    /// How often the shard turned to it.
    pub tasks: u64,
    /// Pages of 4 KiB of Index.db that were in the cache, and that were not.
    pub index: PageStats,
    /// How slices were found in the row cache; all 0 without one.
    pub rows: RowLookups,
    /// Allocations, if they are counted.
    pub allocations: Option<u64>,
    /// Instructions of the shard's thread, if the processor counts them.
    pub instructions: Option<u64>,
    /// Time of the shard's own thread on a processor.
    pub cpu: Duration,
    /// Bytes that the caches have at the end.
    pub memory: u64,
    /// Bytes that the shard's thread has allocated and not freed at the end, beside the buffers that it keeps for its
    /// next requests, and that no cache accounts for; less than nothing where caches account for more than was
    /// allocated. `None` if allocations are not counted.
    pub held: Option<i64>,
}

/// How slices were found in the row cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RowLookups {
    /// All of it was there.
    pub hits: u64,
    /// It was not, or not all.
    pub misses: u64,
    /// Stretches of rows that were taken in.
    pub insertions: u64,
}

impl RowLookups {
    /// What was added since `earlier`.
    pub fn since(self, earlier: RowLookups) -> RowLookups {
        RowLookups {
            hits: self.hits - earlier.hits,
            misses: self.misses - earlier.misses,
            insertions: self.insertions - earlier.insertions,
        }
    }
}

/// Runs something, and counts what it costs the disk, the shard and the allocator. What only its caller knows
/// is left 0, and what the caches took is part of what is held.
pub async fn counted<T>(disk: &Disk, work: impl Future<Output = T>) -> (T, Figures) {
    let polls = Polls::default();
    let before = Meters::now(disk);
    let done = polls.count(pin!(work)).await;
    let mut figures = Meters::now(disk).since(&before);
    (figures.blocked, figures.tasks) = (polls.blocked.get(), polls.tasks.get());
    (done, figures)
}

/// What can be read at any moment.
struct Meters {
    clocks: Clocks,
    io: IoStats,
    allocations: Option<u64>,
    /// Without buffers that wait for a request.
    live: Option<i64>,
    counted: Option<Counted>,
}

impl Meters {
    fn now(disk: &Disk) -> Meters {
        let (allocations, live) = (allocations::made(), allocations::live());
        let live = live.map(|live| live - runtime::kept_bytes() as i64);
        Meters { clocks: Clocks::now(), io: disk.stats(), allocations, live, counted: counters::so_far() }
    }

    fn since(&self, earlier: &Meters) -> Figures {
        let io = self.io.since(&earlier.io);
        let allocations = self.allocations.zip(earlier.allocations).map(|(now, before)| now - before);
        let passed = self.clocks.since(&earlier.clocks);
        Figures {
            time: passed.wall,
            cpu: passed.cpu,
            requests: io.total().requests,
            bytes: io.total().bytes,
            dropped: io.dropped(),
            allocations,
            held: self.live.zip(earlier.live).map(|(now, before)| now - before),
            instructions: self
                .counted
                .zip(earlier.counted)
                .map(|(now, before)| now.since(before).instructions),
            ..Figures::default()
        }
    }
}

/// The iterations of a case.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// By their times, the quickest first; at least one.
    iterations: Vec<Figures>,
}

impl Summary {
    /// Of these iterations.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(mut iterations: Vec<Figures>) -> Summary {
        assert!(!iterations.is_empty(), "a case is run at least once");
        iterations.sort_by_key(|figures| figures.time);
        Summary { iterations }
    }

    /// The iteration of the median time: all that is not named otherwise in a line is of it.
    pub fn median(&self) -> &Figures {
        &self.iterations[self.iterations.len() / 2]
    }

    /// The columns behind the labels, with their names. `Null` is what is not known.
    pub fn columns(&self) -> Vec<(&'static str, Value)> {
        let median = self.median();
        let rates: Vec<f64> = self.iterations.iter().rev().map(rate).collect();
        let rate = rate(median);
        let requests = self.iterations.iter().map(|figures| figures.requests).sum::<u64>();
        vec![
            ("time (s)", rounded(median.time.as_secs_f64(), 9)),
            ("iterations", self.iterations.len().into()),
            ("frags", median.fragments.into()),
            ("frag/s", rounded(rate, 0)),
            ("mad f/s", rounded(deviation(&rates, rate), 0)),
            ("max f/s", rounded(rates.last().copied().unwrap_or(rate), 0)),
            ("min f/s", rounded(rates.first().copied().unwrap_or(rate), 0)),
            ("avg aio", rounded(requests as f64 / self.iterations.len() as f64, 1)),
            ("aio", median.requests.into()),
            ("(KiB)", rounded(median.bytes as f64 / 1024.0, 1)),
            ("blocked", median.blocked.into()),
            ("dropped", median.dropped.into()),
            ("idx hit", median.index.hits.into()),
            // As published: a miss is what nobody had asked for before; blocked is all that was not there yet, with
            // what another read was bringing already.
            ("idx miss", (median.index.misses - median.index.waits).into()),
            ("idx blk", median.index.misses.into()),
            ("c hit", median.rows.hits.into()),
            ("c miss", median.rows.misses.into()),
            // The published programs count insertions under this name.
            ("c blk", median.rows.insertions.into()),
            ("allocs", optional(median.allocations)),
            ("tasks", median.tasks.into()),
            ("insns/f", optional(median.instructions.map(|count| count / median.fragments.max(1)))),
            ("cpu", share_on_cpu(median)),
            ("mem", median.memory.into()),
            ("held", median.held.map_or(Value::Null, Value::from)),
        ]
    }
}

/// Rows a second.
fn rate(figures: &Figures) -> f64 {
    let seconds = figures.time.as_secs_f64();
    if seconds > 0.0 { figures.fragments as f64 / seconds } else { 0.0 }
}

fn optional(number: Option<u64>) -> Value {
    number.map_or(Value::Null, Value::from)
}

/// In percent. Both clocks tick in steps of their own, so that it may be a little more than 100.
fn share_on_cpu(figures: &Figures) -> Value {
    let (cpu, time) = (figures.cpu.as_secs_f64(), figures.time.as_secs_f64());
    rounded(if time > 0.0 { 100.0 * cpu / time } else { 0.0 }, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(millis: u64, requests: u64) -> Figures {
        Figures {
            time: Duration::from_millis(millis),
            fragments: 10,
            requests,
            bytes: 2560,
            ..Figures::default()
        }
    }

    #[track_caller]
    fn assert_column(summary: &Summary, name: &str, expected: &str) {
        let columns = summary.columns();
        let (_, value) = columns.iter().find(|(column, _)| *column == name).unwrap();
        assert_eq!(value.to_string(), expected, "{name}");
    }

    #[test]
    fn a_rate_is_of_the_same_iteration_as_its_time() {
        let summary = Summary::new(vec![figures(10, 3), figures(5, 2)]);
        for (name, expected) in [("time (s)", "0.01"), ("frag/s", "1000"), ("max f/s", "2000")] {
            assert_column(&summary, name, expected);
        }
    }

    #[test]
    fn a_line_is_of_the_median_iteration() {
        let summary = Summary::new(vec![figures(10, 3), figures(5, 2), figures(20, 7)]);
        for (name, expected) in [
            ("time (s)", "0.01"),
            ("iterations", "3"),
            ("frags", "10"),
            ("frag/s", "1000"),
            ("mad f/s", "500"),
            ("max f/s", "2000"),
            ("min f/s", "500"),
            ("avg aio", "4"),
            ("aio", "3"),
            ("(KiB)", "2.5"),
        ] {
            assert_column(&summary, name, expected);
        }
    }

    #[test]
    fn what_is_not_known_is_null() {
        let summary = Summary::new(vec![figures(1, 1)]);
        for name in ["allocs", "insns/f"] {
            assert_column(&summary, name, "null");
        }
        let known = Figures { allocations: Some(7), instructions: Some(1234), ..figures(1, 1) };
        let summary = Summary::new(vec![known]);
        assert_column(&summary, "allocs", "7");
        assert_column(&summary, "insns/f", "123");
    }

    #[test]
    fn lookups_are_as_the_published_ones() {
        let index = PageStats { hits: 4, misses: 3, waits: 1 };
        let rows = RowLookups { hits: 5, misses: 6, insertions: 7 };
        let summary = Summary::new(vec![Figures { index, rows, ..figures(1, 1) }]);
        for (name, expected) in [
            ("idx hit", "4"),
            ("idx miss", "2"),
            ("idx blk", "3"),
            ("c hit", "5"),
            ("c miss", "6"),
            ("c blk", "7"),
        ] {
            assert_column(&summary, name, expected);
        }
    }

    #[test]
    fn waits_are_counted() {
        let counts = runtime::run_simulated(runtime::SimOptions::default(), async |shard| {
            let work = async {
                runtime::yield_now().await;
                runtime::yield_now().await;
                5
            };
            counted(shard.disk(), work).await
        });
        let (five, figures) = counts.unwrap();
        assert_eq!((five, figures.blocked, figures.tasks, figures.requests), (5, 2, 3, 0));
    }
}
