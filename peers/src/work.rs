//! The cases, and how a peer is taken through them.

use std::error::Error;
use std::fs;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use nix::time::{ClockId, clock_gettime};
use runtime::{join_all, spawn};

use crate::rows::{Found, Rows, mixed};

/// What a piece of work ends with.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Rows of a slice.
const SLICE: u32 = 100;

/// Rows that are read, and rows that are skipped.
const SKIPS: [u32; 2] = [64, 4096];

/// What is read.
#[derive(Clone, Copy, PartialEq, Debug, ValueEnum)]
pub(crate) enum Case {
    /// Nothing: it is only opened.
    Open,
    /// A row that is there.
    Point,
    /// A row that is not there, between two that are.
    Absent,
    /// 100 rows, in order.
    Slice,
    /// 100 rows, from the last to the first.
    Reverse,
    /// 64 rows, 4096 behind the last ones.
    Skips,
    /// All rows.
    Scan,
}

/// A direction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Way {
    Forward,
    Reverse,
}

/// An open database, as one reader has it. Those that never wait have futures that are ready at once.
pub(crate) trait Peer: Clone + 'static {
    /// A row by its key.
    async fn point(&mut self, clustering: i32, found: &mut Found) -> Result<()>;

    /// So many rows, from the one with this key on.
    async fn slice(&mut self, from: i32, rows: usize, way: Way, found: &mut Found) -> Result<()>;

    /// The same, forward, where such slices follow each other.
    async fn skip_to(&mut self, from: i32, rows: usize, found: &mut Found) -> Result<()> {
        self.slice(from, rows, Way::Forward, found).await
    }

    /// The first so many rows.
    async fn scan(&mut self, rows: usize, found: &mut Found) -> Result<()>;

    /// What it counts itself: requests to the disk, and their bytes.
    fn counted(&self) -> Option<[u64; 2]> {
        None
    }
}

/// What is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) case: Case,
    pub(crate) rows: Rows,
    pub(crate) warm: u64,
    pub(crate) from: u64,
    pub(crate) count: u64,
    pub(crate) rounds: u64,
    pub(crate) scan_rows: usize,
    /// So many read at once, each its share of the operations.
    pub(crate) readers: u64,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Measured {
    open_seconds: f64,
    seconds: f64,
    cpu_seconds: f64,
    operations: u64,
    warmed: Found,
    /// By each reader.
    found: Vec<Found>,
    counted: Option<[u64; 2]>,
}

/// When what is measured began.
struct Began {
    at: Instant,
    cpu_seconds: f64,
}

impl Began {
    fn now() -> Began {
        Began { at: Instant::now(), cpu_seconds: cpu_seconds() }
    }
}

impl Plan {
    /// Opens a peer that needs nothing to wait with, and does the work. Each reader has a thread.
    pub(crate) fn run_alone<P: Peer + Send>(&self, open: impl FnOnce() -> Result<P>) -> Result<Measured> {
        ready(self.run(
            async || open(),
            async |readers| {
                let (ready_ones, all) = (AtomicUsize::new(0), Barrier::new(readers.len() + 1));
                thread::scope(|scope| {
                    let start = |(plan, mut peer): (Plan, P)| {
                        let (ready_ones, all) = (&ready_ones, &all);
                        scope.spawn(move || {
                            ready_ones.fetch_add(1, Ordering::Relaxed);
                            all.wait();
                            ready(plan.read(&mut peer))?
                        })
                    };
                    let threads: Vec<_> = readers.into_iter().map(start).collect();
                    // What it takes to start threads is not measured; that they are let go is.
                    while ready_ones.load(Ordering::Relaxed) < threads.len() {
                        thread::yield_now();
                    }
                    let began = Began::now();
                    all.wait();
                    let join = |thread: ScopedJoinHandle<'_, Result<Found>>| thread.join();
                    let found = threads.into_iter().map(|thread| join(thread).expect("readers do not panic"));
                    Ok((began, found.collect::<Result<_>>()?))
                })
            },
        ))?
    }

    /// Opens a peer and does the work on the thread of this shard. Each reader is a task.
    pub(crate) async fn run_within<P: Peer>(
        &self,
        open: impl AsyncFnOnce() -> Result<P>,
    ) -> Result<Measured> {
        self.run(open, async |readers| {
            let began = Began::now();
            let start = |(plan, mut peer): (Plan, P)| spawn(async move { plan.read(&mut peer).await });
            let tasks: Vec<_> = readers.into_iter().map(start).collect();
            Ok((began, join_all(tasks).await.into_iter().collect::<Result<_>>()?))
        })
        .await
    }

    async fn run<P: Peer>(
        &self,
        open: impl AsyncFnOnce() -> Result<P>,
        at_once: impl AsyncFnOnce(Vec<(Plan, P)>) -> Result<(Began, Vec<Found>)>,
    ) -> Result<Measured> {
        mark("open");
        let began = Instant::now();
        let mut peer = open().await?;
        let open_seconds = began.elapsed().as_secs_f64();
        mark("opened");
        let mut warmed = Found::thoroughly();
        self.all(&mut peer, 0..self.warm, &mut warmed).await?;
        let before = peer.counted();
        mark("begin");
        let (began, found) = match self.readers {
            1 => (Began::now(), vec![self.read(&mut peer).await?]),
            _ => at_once(self.shares().map(|plan| (plan, peer.clone())).collect()).await?,
        };
        let (seconds, cpu_seconds) = (began.at.elapsed().as_secs_f64(), cpu_seconds() - began.cpu_seconds);
        mark("end");
        let counted =
            peer.counted().zip(before).map(|(now, before)| [now[0] - before[0], now[1] - before[1]]);
        let operations = self.count * self.rounds;
        Ok(Measured { open_seconds, seconds, cpu_seconds, operations, warmed, found, counted })
    }

    /// What each reader does.
    fn shares(&self) -> impl Iterator<Item = Plan> {
        let first = |reader| self.from + self.count * reader / self.readers;
        let share =
            move |reader| Plan { from: first(reader), count: first(reader + 1) - first(reader), ..*self };
        (0..self.readers).map(share)
    }

    /// Does what is measured.
    async fn read<P: Peer>(&self, peer: &mut P) -> Result<Found> {
        let mut found = Found::default();
        for _ in 0..self.rounds {
            self.all(peer, self.from..self.from + self.count, &mut found).await?;
        }
        Ok(found)
    }

    /// Does it for all of these numbers. A loop for each case: nothing is to be measured between two operations.
    async fn all<P: Peer>(&self, peer: &mut P, numbers: Range<u64>, found: &mut Found) -> Result<()> {
        let any = |number, less: u32| (mixed(number) % u64::from(self.rows.count - less)) as u32;
        match self.case {
            Case::Open => {}
            Case::Point => {
                for number in numbers {
                    peer.point(Rows::clustering(any(number, 0)), found).await?;
                }
            }
            Case::Absent => {
                for number in numbers {
                    peer.point(Rows::clustering(any(number, 0)) + 1, found).await?;
                }
            }
            Case::Slice => {
                for number in numbers {
                    let first = Rows::clustering(any(number, SLICE));
                    peer.slice(first, SLICE as usize, Way::Forward, found).await?;
                }
            }
            Case::Reverse => {
                for number in numbers {
                    let last = Rows::clustering(any(number, SLICE) + SLICE - 1);
                    peer.slice(last, SLICE as usize, Way::Reverse, found).await?;
                }
            }
            Case::Skips => {
                let [read, skip] = SKIPS;
                for number in numbers {
                    let first = number * u64::from(read + skip) % u64::from(self.rows.count - read);
                    peer.skip_to(Rows::clustering(first as u32), read as usize, found).await?;
                }
            }
            Case::Scan => {
                for _ in numbers {
                    peer.scan(self.scan_rows, found).await?;
                }
            }
        }
        Ok(())
    }
}

impl Measured {
    pub(crate) fn to_json(&self) -> String {
        let [requests, bytes] = self.counted.unwrap_or_default();
        format!(
            "{{\"open_seconds\":{},\"seconds\":{},\"cpu_seconds\":{},\"operations\":{},\"rows\":{},\"sum\":\"{:016x}\",\
             \"warm_sum\":\"{:016x}\",\"requests\":{requests},\"bytes\":{bytes},\"counts\":{},\"peak_kib\":{}}}",
            self.open_seconds,
            self.seconds,
            self.cpu_seconds,
            self.operations,
            self.found.iter().map(|found| found.rows).sum::<u64>(),
            self.found.iter().fold(0, |sum: u64, found| sum.wrapping_add(found.sum())),
            self.warmed.sum(),
            self.counted.is_some(),
            peak_kib(),
        )
    }
}

/// A system call that does nothing, for a tracer to see: a look for a file of this name.
fn mark(name: &str) {
    let is_there = fs::metadata(format!("peers-mark-{name}")).is_ok();
    debug_assert!(!is_there, "there is no such file");
}

/// What all threads of the process have taken of all CPUs so far, those in the kernel that work for it too.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("every process has a clock");
    Duration::from(time).as_secs_f64()
}

/// The largest resident set so far.
pub(crate) fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok()).unwrap_or(0)
}

/// The output of a future that never waits.
pub(crate) fn ready<F: Future>(future: F) -> Result<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Ok(output),
        Poll::Pending => Err("a peer waited that must not".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_of_one_reader() {
        let rows = Rows { count: 1000, value_size: 8 };
        for (count, readers) in [(1, 1), (10, 3), (2000, 64), (3, 8)] {
            let plan =
                Plan { case: Case::Point, rows, warm: 0, from: 70, count, rounds: 1, scan_rows: 1, readers };
            let numbers = plan.shares().flat_map(|share| share.from..share.from + share.count);
            assert!(numbers.eq(70..70 + count), "{count} by {readers}");
        }
    }
}
