//! What a case costs: counted while it runs, and summed up over its iterations.

use std::pin::pin;
use std::time::{Duration, Instant};

use runtime::{Disk, IoStats};
use rustix::time::{ClockId, clock_gettime};
use serde_json::Value;

use crate::allocations;
use crate::numbers::{deviation, middle, rounded};
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
    /// How often all waited for the disk.
    pub blocked: u64,
    /// How often the shard turned to it.
    pub tasks: u64,
    /// Pages of 4 KiB of Index.db that were in the cache, and that were not.
    pub index: Lookups,
    /// Slices that were in the row cache, and that were not or not all, if there is a row cache.
    pub rows: Option<Lookups>,
    /// Allocations, if they are counted.
    pub allocations: Option<u64>,
    /// Time of the shard's own thread on a processor.
    pub cpu: Duration,
    /// Bytes that the caches have at the end.
    pub memory: u64,
}

/// What was there, and what was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lookups {
    /// It was there.
    pub hits: u64,
    /// It was not.
    pub misses: u64,
}

impl Lookups {
    /// What was added since `earlier`.
    pub fn since(self, earlier: Lookups) -> Lookups {
        Lookups { hits: self.hits - earlier.hits, misses: self.misses - earlier.misses }
    }
}

/// Runs something, and counts what it costs the disk, the shard and the allocator. What only its caller knows is left 0.
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
    at: Instant,
    cpu: Duration,
    io: IoStats,
    allocations: Option<u64>,
}

impl Meters {
    fn now(disk: &Disk) -> Meters {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::try_from(cpu).unwrap_or_default();
        Meters { at: Instant::now(), cpu, io: disk.stats(), allocations: allocations::made() }
    }

    fn since(&self, earlier: &Meters) -> Figures {
        let io = self.io.since(&earlier.io).total();
        let allocations = self.allocations.zip(earlier.allocations).map(|(now, before)| now - before);
        Figures {
            time: self.at - earlier.at,
            cpu: self.cpu.saturating_sub(earlier.cpu),
            requests: io.requests,
            bytes: io.bytes,
            allocations,
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
        let rate = middle(&rates);
        let requests = self.iterations.iter().map(|figures| figures.requests).sum::<u64>();
        let rows = |lookup: fn(Lookups) -> u64| optional(median.rows.map(lookup));
        vec![
            ("time (s)", rounded(median.time.as_secs_f64(), 6)),
            ("iterations", self.iterations.len().into()),
            ("frags", median.fragments.into()),
            ("frag/s", rounded(rate, 0)),
            ("mad f/s", rounded(deviation(&rates), 0)),
            ("max f/s", rounded(rates.last().copied().unwrap_or(rate), 0)),
            ("min f/s", rounded(rates.first().copied().unwrap_or(rate), 0)),
            ("avg aio", rounded(requests as f64 / self.iterations.len() as f64, 1)),
            ("aio", median.requests.into()),
            ("(KiB)", rounded(median.bytes as f64 / 1024.0, 1)),
            ("blocked", median.blocked.into()),
            // Nothing is read that nobody waits for.
            ("dropped", 0.into()),
            ("idx hit", median.index.hits.into()),
            ("idx miss", median.index.misses.into()),
            ("idx blk", Value::Null),
            ("c hit", rows(|lookups| lookups.hits)),
            ("c miss", rows(|lookups| lookups.misses)),
            ("c blk", Value::Null),
            ("allocs", optional(median.allocations)),
            ("tasks", median.tasks.into()),
            ("insns/f", Value::Null),
            ("cpu", percent(median)),
            ("mem", median.memory.into()),
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

fn percent(figures: &Figures) -> Value {
    let (cpu, time) = (figures.cpu.as_secs_f64(), figures.time.as_secs_f64());
    let share = if time > 0.0 { 100.0 * cpu / time } else { 0.0 };
    Value::from(format!("{share:.1}%"))
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
        for name in ["allocs", "insns/f", "c hit", "idx blk"] {
            assert_column(&summary, name, "null");
        }
        let known =
            Figures { allocations: Some(7), rows: Some(Lookups { hits: 1, misses: 2 }), ..figures(1, 1) };
        let summary = Summary::new(vec![known]);
        for (name, expected) in [("allocs", "7"), ("c hit", "1"), ("c miss", "2")] {
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
