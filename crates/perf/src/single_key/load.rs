//! A constant rate: operations begin when they are due, whether or not those before have ended, and what they took counts
//! from when they were due. A stall is so in the latencies of all that were due meanwhile, and not in one alone.
//!
//! ```text
//! rounds    │∙ ∙ ∙ ∙ ∙ ∙ ∙ ∙│  another case  │∙ ∙ ∙ ∙ ∙ ∙ ∙ ∙│
//! stall             ├───────┼───►            ├───►               late: what the round before has left over
//! ```
//!
//! Rounds of a case are one line of time with gaps: what would be due while the last ones of a round are waited for, longer than one takes
//! at the least, is due at the beginning of the next round, and late by then.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use runtime::Task;
use serde_json::{Value, json};
use siltstone::{Error, Result};

use crate::numbers::rounded;

/// The lines of a case, with how they are named.
const LINES: [&str; 6] = ["mean", "median", "95th percentile", "99th percentile", "99.9th percentile", "max"];

/// What operations took, all of it kept: percentiles are exact.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Latencies(Vec<Duration>);

/// What operations at a constant rate took, each of them, and all together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Run {
    pub(crate) taken: Vec<Duration>,
    /// From the beginning until the last had ended, and the next one would have been due.
    pub(crate) time: Duration,
    /// By how much the next one is late.
    pub(crate) late: Duration,
}

impl Run {
    /// One that comes behind this one.
    pub(crate) fn extend(&mut self, next: Run) {
        self.taken.extend(next.taken);
        self.time += next.time;
        self.late = next.late;
    }

    /// How many a second there were.
    pub(crate) fn rate(&self) -> f64 {
        self.taken.len() as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

/// So many operations are under way at the most: those that are due beyond them wait, and the wait is in what they take.
const MOST_UNDER_WAY: usize = 4096;

/// Runs an operation so many times, at a constant rate of so many a second. The first one is `late` by so much. Where the rate is far too
/// much, and the most that can be under way are when `patience` ends, no more begin.
///
/// # Errors
/// The first error of an operation, once all have ended.
pub(crate) async fn at_rate<W>(
    operation: &Rc<W>,
    (rate, late): (f64, Duration),
    count: u32,
    patience: Duration,
) -> Result<Run>
where
    W: AsyncFn() -> Result<()> + 'static,
{
    let interval = Duration::from_secs_f64(1.0 / rate);
    let mut started = Started::default();
    let (begin, mut begun) = (Instant::now(), 0);
    let due_at = |number: u32| (begin + interval * number).checked_sub(late).unwrap_or(begin);
    for number in 0..count {
        let due = due_at(number);
        // A timer would be late by more than a read takes.
        while Instant::now() < due {
            runtime::yield_now().await;
        }
        while started.under_way() == MOST_UNDER_WAY && begin.elapsed() < patience {
            runtime::yield_now().await;
        }
        if started.under_way() == MOST_UNDER_WAY {
            break;
        }
        begun += 1;
        started.begin(operation.clone(), due).await;
    }
    let Ended { taken, least } = started.finish().await?;
    // What each takes at the least is waited for without anything being due meanwhile.
    let late = due_at(begun).elapsed().saturating_sub(least);
    while Instant::now() < due_at(begun) {
        runtime::yield_now().await;
    }
    Ok(Run { taken, time: begin.elapsed(), late })
}

type Begun = Task<Result<()>>;

/// Operations that have ended well.
#[derive(Default)]
struct Ended {
    /// What each took from when it was due.
    taken: Vec<Duration>,
    /// What one took at the least from when it began.
    least: Duration,
}

/// Operations that have begun.
#[derive(Default)]
struct Started {
    ended_well: Rc<RefCell<Ended>>,
    ended: Rc<Cell<usize>>,
    begun: usize,
    /// In their order, but for the first ones that have ended; and whether each has.
    tasks: VecDeque<(Rc<Cell<bool>>, Begun)>,
    /// What went wrong first.
    failed: Option<Error>,
}

impl Started {
    fn under_way(&self) -> usize {
        self.begun - self.ended.get()
    }

    /// Begins another one, which was due at this moment.
    async fn begin<W>(&mut self, operation: Rc<W>, due: Instant)
    where
        W: AsyncFn() -> Result<()> + 'static,
    {
        // What has ended still takes memory.
        while self.tasks.front().is_some_and(|(has_ended, _)| has_ended.get()) {
            self.join_first().await;
        }
        let (ended_well, ended) = (self.ended_well.clone(), self.ended.clone());
        let has_ended = Rc::<Cell<bool>>::default();
        let noted = has_ended.clone();
        let task = runtime::spawn(async move {
            let begin = Instant::now();
            let done = operation().await;
            if done.is_ok() {
                ended_well.borrow_mut().note(due.elapsed(), begin.elapsed());
            }
            ended.set(ended.get() + 1);
            noted.set(true);
            done
        });
        self.begun += 1;
        self.tasks.push_back((has_ended, task));
    }

    async fn join_first(&mut self) {
        if let Some((_, task)) = self.tasks.pop_front() {
            let failed = task.await.err();
            self.failed = self.failed.take().or(failed);
        }
    }

    /// All of them, once they have ended.
    async fn finish(mut self) -> Result<Ended> {
        while !self.tasks.is_empty() {
            self.join_first().await;
        }
        self.failed.map_or_else(|| Ok(self.ended_well.take()), Err)
    }
}

impl Ended {
    fn note(&mut self, from_due: Duration, from_begin: Duration) {
        self.least = if self.taken.is_empty() { from_begin } else { self.least.min(from_begin) };
        self.taken.push(from_due);
    }
}

impl Latencies {
    /// These, in any order.
    pub fn of(mut taken: Vec<Duration>) -> Latencies {
        taken.sort_unstable();
        Latencies(taken)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The mean.
    pub fn mean(&self) -> Duration {
        self.0.iter().sum::<Duration>() / u32::try_from(self.len().max(1)).unwrap_or(u32::MAX)
    }

    /// What this share of them does not exceed; 1 is all.
    pub fn at(&self, share: f64) -> Duration {
        let rank = (self.len() as f64 * share).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    }

    /// The lines as they are printed, with their names.
    pub fn lines(&self) -> [(&'static str, Duration); 6] {
        let shares = [0.5, 0.95, 0.99, 0.999, 1.0].map(|share| self.at(share));
        let mut values = [self.mean()].into_iter().chain(shares);
        LINES.map(|name| (name, values.next().unwrap_or_default()))
    }

    /// The lines as JSON, in milliseconds.
    pub fn json(&self) -> Value {
        let lines = self.lines().into_iter().map(|(name, value)| (name.to_owned(), millis(value)));
        Value::Object(lines.collect())
    }

    /// The curve as JSON: what one in 1, 2, 5, 10, 20, … of them exceeds, in milliseconds, as far as there are so many.
    pub fn curve(&self) -> Value {
        let steps = (0..).flat_map(|tens| [1, 2, 5].map(|step| step * 10_usize.pow(tens)));
        let points = steps.take_while(|one_in| *one_in <= self.len());
        let point = |one_in: usize| json!([one_in, millis(self.at(1.0 - 1.0 / one_in as f64))]);
        points.map(point).collect()
    }
}

/// Milliseconds with three decimals.
fn millis(duration: Duration) -> Value {
    rounded(duration.as_secs_f64() * 1e3, 3)
}

#[cfg(test)]
mod tests {
    use runtime::ShardOptions;

    use super::*;

    #[test]
    fn percentiles_are_exact() {
        let latencies = Latencies::of((1..=1000).rev().map(Duration::from_millis).collect());
        let values = latencies.lines().map(|(_, value)| value.as_micros());
        assert_eq!(values, [500_500, 500_000, 950_000, 990_000, 999_000, 1_000_000]);
        assert_eq!(latencies.json()["mean"], 500.5);
        let curve = latencies.curve();
        assert_eq!(
            (curve.as_array().unwrap().len(), &curve[1], &curve[9]),
            (10, &json!([2, 500]), &json!([1000, 999]))
        );
        assert_eq!(Latencies::default().curve(), json!([]));
        assert_eq!(Latencies::default().lines()[5], ("max", Duration::ZERO));
    }

    #[test]
    fn a_stall_is_in_the_latencies_of_all_that_were_due() {
        let latencies = runtime::run(ShardOptions::default(), async |_| {
            let first = Cell::new(true);
            let operation = Rc::new(async move || {
                if first.take() {
                    std::thread::sleep(Duration::from_millis(50));
                }
                Ok(())
            });
            // A stall that lasts longer than that is no matter.
            let rate = (1000.0, Duration::ZERO);
            at_rate(&operation, rate, 60, Duration::from_millis(40)).await
        });
        let run = latencies.unwrap().unwrap();
        assert!(run.time >= Duration::from_millis(60) && run.rate() <= 1000.0, "{run:?}");
        let latencies = Latencies::of(run.taken);
        assert_eq!(latencies.len(), 60);
        // Some forty of them were due while the first one held up all.
        assert!(latencies.at(0.5) >= Duration::from_millis(10), "{latencies:?}");
    }

    /// Of a stall that is longer than a round, and begins with its last one.
    #[test]
    fn what_a_round_leaves_over_is_late_in_those_behind_it() {
        let run = runtime::run(ShardOptions::default(), async |_| {
            let number = Cell::new(0);
            let operation = Rc::new(async move || {
                if number.replace(number.get() + 1) == 19 {
                    std::thread::sleep(Duration::from_millis(60));
                }
                Ok(())
            });
            let (mut run, mut late) = (Run::default(), Vec::new());
            for _ in 0..6 {
                let rate = (1000.0, run.late);
                run.extend(at_rate(&operation, rate, 20, Duration::from_secs(1)).await?);
                late.push(run.late);
            }
            Ok::<_, Error>((run, late))
        });
        let (run, late) = run.unwrap().unwrap();
        assert_eq!(run.taken.len(), 120);
        assert!(late[0] >= Duration::from_millis(55) && late[1] >= Duration::from_millis(30), "{late:?}");
        // Some sixty were due meanwhile, of which forty are of the next two rounds.
        let of_next = Latencies::of(run.taken[20..60].to_vec());
        assert!(of_next.at(0.5) >= Duration::from_millis(15), "{of_next:?}");
        assert!(run.rate() <= 1001.0, "{}", run.rate());
    }

    /// Of operations that all wait until as many as may be are under way, and far longer than anybody is patient from then on.
    #[test]
    fn what_is_too_much_comes_to_an_end() {
        let (patience, long) = (Duration::from_millis(20), Duration::from_secs(1));
        let run = runtime::run(ShardOptions::default(), async |_| {
            let (begun, all_since) = (Cell::new(0), Cell::new(None));
            let operation = Rc::new(async move || {
                begun.set(begun.get() + 1);
                if begun.get() == MOST_UNDER_WAY {
                    all_since.set(Some(Instant::now()));
                }
                while all_since.get().is_none_or(|since| since.elapsed() < long) {
                    runtime::yield_now().await;
                }
                Ok(())
            });
            at_rate(&operation, (1e7, Duration::ZERO), u32::MAX, patience).await
        });
        let run = run.unwrap().unwrap();
        assert_eq!(run.taken.len(), MOST_UNDER_WAY, "no more begin");
        assert!(run.time >= patience, "{:?}", run.time);
    }
}
