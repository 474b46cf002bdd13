//! Operations one after the other, by a number of workers at once: how many a second, and what one costs.
//!
//! ```text
//! 32492.40 tps ( 130.7 allocs/op,   12.8 logallocs/op,   36.1 tasks/op,       - insns/op,       - cycles/op,        0 errors)
//! ```
//!
//! A line is of one second, or of a fixed number of operations. Its columns are those of the published programs.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use runtime::{Cache, Disk, join_all, spawn};
use serde_json::{Value, json};
use siltstone::{Error, Result};

use crate::allocations;
use crate::counters::{self, Counted};
use crate::interrupted;
use crate::numbers::{deviation, middle, rounded};
use crate::polls::Polls;

/// After so many operations of a worker others may go on, where it does not wait for anything.
const TURN: u64 = 16;

/// When a line ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Until {
    /// After that time.
    Elapsed(Duration),
    /// After so many operations.
    Operations(u64),
}

/// What is counted around the operations.
#[derive(Clone)]
pub(crate) struct Meters {
    /// Whose requests.
    pub(crate) disk: Disk,
    /// Whose insertions.
    pub(crate) cache: Cache,
}

/// What some operations cost together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Line {
    /// From the first to the last.
    pub(crate) time: Duration,
    /// How many.
    pub(crate) operations: u64,
    /// Those of them that failed, or did not find what they must.
    pub(crate) errors: u64,
    /// Allocations of the shard's thread, if they are counted.
    pub(crate) allocations: Option<u64>,
    /// Instructions and cycles of it, if the processor counts them.
    pub(crate) counted: Option<Counted>,
    /// Values that were taken into the caches.
    pub(crate) insertions: u64,
    /// How often the shard turned to an operation.
    pub(crate) tasks: u64,
    /// Reads that went to the operating system.
    pub(crate) requests: u64,
}

/// What the workers of a line share.
struct Run {
    until: Until,
    begin: Instant,
    begun: Cell<u64>,
    errors: Cell<u64>,
    first_error: RefCell<Option<Error>>,
    polls: Polls,
}

/// Runs an operation again and again, until an interrupt at the most. It says whether it went as it must; the first error is handed back.
pub(crate) async fn run<W>(
    operation: &Rc<W>,
    concurrency: u32,
    until: Until,
    meters: &Meters,
) -> (Line, Option<Error>)
where
    W: AsyncFn() -> Result<()> + 'static,
{
    let before = Line::totals(meters);
    let run = Rc::new(Run {
        until,
        begin: Instant::now(),
        begun: Cell::default(),
        errors: Cell::default(),
        first_error: RefCell::default(),
        polls: Polls::default(),
    });
    let worker = |_| {
        let (run, operation) = (run.clone(), operation.clone());
        spawn(async move { run.work(&*operation).await })
    };
    let workers: Vec<_> = (0..concurrency).map(worker).collect();
    join_all(workers).await;
    let now = Line::totals(meters);
    let line = Line {
        time: run.begin.elapsed(),
        operations: run.begun.get(),
        errors: run.errors.get(),
        allocations: now.allocations.zip(before.allocations).map(|(now, before)| now - before),
        counted: now.counted.zip(before.counted).map(|(now, before)| now.since(before)),
        insertions: now.insertions - before.insertions,
        tasks: run.polls.tasks.get(),
        requests: now.requests - before.requests,
    };
    (line, run.first_error.take())
}

/// Whether all went well in these lines, whose first error it is.
///
/// # Errors
/// How many operations did not, and what went wrong first.
pub(crate) fn check(lines: &[Line], first_error: Option<&Error>) -> Result<()> {
    let wrong: u64 = lines.iter().map(|line| line.errors).sum();
    match first_error {
        None => Ok(()),
        Some(error) => {
            Err(Error::Closed(format!("{wrong} operations went wrong, first: {}", error.in_words())))
        }
    }
}

impl Run {
    async fn work(&self, operation: &impl AsyncFn() -> Result<()>) {
        while self.begins_another() {
            if let Err(error) = self.polls.count(pin!(operation())).await {
                self.errors.update(|errors| errors + 1);
                self.first_error.borrow_mut().get_or_insert(error);
            }
            if self.begun.get().is_multiple_of(TURN) {
                runtime::yield_now().await;
            }
        }
    }

    fn begins_another(&self) -> bool {
        let goes_on = !interrupted::is_interrupted() && self.is_before_end();
        self.begun.update(|begun| begun + u64::from(goes_on));
        goes_on
    }

    fn is_before_end(&self) -> bool {
        match self.until {
            Until::Elapsed(time) => self.begin.elapsed() < time,
            Until::Operations(count) => self.begun.get() < count,
        }
    }
}

impl Line {
    /// All that was counted so far.
    fn totals(meters: &Meters) -> Line {
        Line {
            allocations: allocations::made(),
            counted: counters::so_far(),
            insertions: meters.cache.stats().inserts,
            requests: meters.disk.stats().total().requests,
            ..Line::default()
        }
    }

    /// Operations a second that went well.
    pub(crate) fn rate(&self) -> f64 {
        (self.operations - self.errors) as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// As the published programs print it.
    pub(crate) fn text(&self) -> String {
        let if_known = |count: Option<u64>, decimals: usize| {
            let each = count.and_then(|count| self.each(count));
            each.map_or_else(|| "-".to_owned(), |each| format!("{each:.decimals$}"))
        };
        let [allocations, insertions, tasks] =
            [self.allocations, Some(self.insertions), Some(self.tasks)].map(|count| if_known(count, 1));
        let [instructions, cycles] = self.processor().map(|count| if_known(count, 0));
        format!(
            "{:.2} tps ({allocations:>5} allocs/op, {insertions:>5} logallocs/op, {tasks:>5} tasks/op, {instructions:>7} insns/op, {cycles:>7} cycles/op, {:>8} errors)",
            self.rate(),
            self.errors
        )
    }

    /// As JSON: the same, and the sums that it is made of.
    pub(crate) fn json(&self) -> Value {
        let each = |count: u64| self.each(count).map(|each| rounded(each, 2));
        let [instructions, cycles] =
            self.processor().map(|count| self.each(count?).map(|each| rounded(each, 0)));
        json!({
            "tps": rounded(self.rate(), 2),
            "allocs_per_op": self.allocations.and_then(each),
            "logallocs_per_op": each(self.insertions),
            "tasks_per_op": each(self.tasks),
            "instructions_per_op": instructions,
            "cycles_per_op": cycles,
            "requests_per_op": each(self.requests),
            "errors": self.errors,
            "operations": self.operations,
            "allocations": self.allocations,
            "insertions": self.insertions,
            "tasks": self.tasks,
            "requests": self.requests,
            "seconds": rounded(self.time.as_secs_f64(), 6),
        })
    }

    /// Instructions, and cycles.
    fn processor(&self) -> [Option<u64>; 2] {
        [self.counted.map(|counted| counted.instructions), self.counted.map(|counted| counted.cycles)]
    }

    /// What there is of it for an operation, if there was one.
    fn each(&self, count: u64) -> Option<f64> {
        (self.operations > 0).then(|| count as f64 / self.operations as f64)
    }
}

/// Lines, summed up.
pub(crate) struct Summary {
    /// The line of the median rate.
    pub(crate) median: Line,
    /// Operations a second, ascending.
    rates: Vec<f64>,
    /// Operations that went wrong, of all lines.
    errors: u64,
}

impl Summary {
    /// Of these lines.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn new(lines: &[Line]) -> Summary {
        let mut lines = lines.to_vec();
        lines.sort_by(|a, b| a.rate().total_cmp(&b.rate()));
        let errors = lines.iter().map(|line| line.errors).sum();
        Summary { median: lines[lines.len() / 2], rates: lines.iter().map(Line::rate).collect(), errors }
    }

    /// The lines at the end.
    pub(crate) fn text(&self) -> String {
        let (most, least) = self.extremes();
        let errors = match self.errors {
            0 => String::new(),
            errors => format!("errors of all lines: {errors}\n"),
        };
        format!(
            "median {}\nmedian absolute deviation: {:.2}\nmaximum: {most:.2}\nminimum: {least:.2}\n{errors}",
            self.median.text(),
            deviation(&self.rates, middle(&self.rates))
        )
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        let (most, least) = self.extremes();
        let line = self.median.json();
        json!({
            "median tps": rounded(middle(&self.rates), 2),
            "mad tps": rounded(deviation(&self.rates, middle(&self.rates)), 2),
            "max tps": rounded(most, 2),
            "min tps": rounded(least, 2),
            "allocs_per_op": line["allocs_per_op"],
            "logallocs_per_op": line["logallocs_per_op"],
            "tasks_per_op": line["tasks_per_op"],
            "requests_per_op": line["requests_per_op"],
            "instructions_per_op": line["instructions_per_op"],
            "cycles_per_op": line["cycles_per_op"],
            "errors": self.errors,
        })
    }

    fn extremes(&self) -> (f64, f64) {
        let of = |rate: Option<&f64>| rate.copied().unwrap_or(0.0);
        (of(self.rates.last()), of(self.rates.first()))
    }
}

#[cfg(test)]
mod tests {
    use runtime::{SimOptions, run_simulated};

    use super::*;

    fn line(millis: u64) -> Line {
        Line {
            time: Duration::from_millis(millis),
            operations: 10,
            insertions: 25,
            tasks: 20,
            ..Line::default()
        }
    }

    #[test]
    fn a_line_is_as_the_published_ones() {
        let known = Line { allocations: Some(1307), ..line(4) };
        let text = "2500.00 tps (130.7 allocs/op,   2.5 logallocs/op,   2.0 tasks/op,       - insns/op,       - cycles/op,        0 errors)";
        assert_eq!(known.text(), text);
        assert!(line(4).text().contains("(    - allocs/op"));
        let counted = Line { counted: Some(Counted { instructions: 1_092_360, cycles: 1_032_030 }), ..known };
        assert!(counted.text().contains(" 109236 insns/op,  103203 cycles/op, "), "{}", counted.text());
        assert_eq!(counted.json()["instructions_per_op"], 109_236);
        assert_eq!(
            (&known.json()["allocs_per_op"], &line(4).json()["allocations"]),
            (&json!(130.7), &Value::Null)
        );
    }

    #[test]
    fn operations_that_failed_are_none_a_second() {
        let failed = Line { errors: 4, ..line(4) };
        assert!(failed.text().starts_with("1500.00 tps ("), "{}", failed.text());
        assert_eq!((&failed.json()["tps"], &failed.json()["operations"]), (&json!(1500), &json!(10)));
    }

    #[test]
    fn where_there_are_no_operations_nothing_is_known_of_one() {
        let none = Line { allocations: Some(7), operations: 0, ..line(4) };
        let text = "0.00 tps (    - allocs/op,     - logallocs/op,     - tasks/op,       - insns/op,       - cycles/op,        0 errors)";
        assert_eq!(none.text(), text);
        for name in ["allocs_per_op", "logallocs_per_op", "tasks_per_op", "requests_per_op"] {
            assert_eq!(none.json()[name], Value::Null, "{name}");
        }
    }

    #[test]
    fn the_summary_is_of_the_median() {
        let summary = Summary::new(&[line(10), line(5), line(20)]);
        assert_eq!(summary.median, line(10));
        let text = summary.text();
        assert!(
            text.ends_with("\nmedian absolute deviation: 500.00\nmaximum: 2000.00\nminimum: 500.00\n"),
            "{text}"
        );
        assert_eq!(summary.json()["max tps"], 2000);
        let failed = Summary::new(&[line(10), Line { errors: 10, ..line(5) }, line(20)]);
        assert!(failed.text().ends_with("\nerrors of all lines: 10\n"), "{}", failed.text());
    }

    #[test]
    fn so_many_operations_are_run_whoever_does_them() {
        for concurrency in [1, 7] {
            let line = run_simulated(SimOptions::default(), async |shard| {
                let meters = Meters { disk: shard.disk().clone(), cache: Cache::new(0) };
                let count = Cell::new(0);
                let operation = Rc::new(async move || {
                    runtime::yield_now().await;
                    count.update(|count| count + 1);
                    match count.get() % 10 {
                        0 => Err(Error::Usage("every tenth fails".to_owned())),
                        _ => Ok(()),
                    }
                });
                run(&operation, concurrency, Until::Operations(100), &meters).await
            });
            let (line, first_error) = line.unwrap();
            assert_eq!((line.operations, line.errors, line.tasks), (100, 10, 200));
            let said = check(&[line, line], first_error.as_ref()).unwrap_err().to_string();
            assert_eq!(said, "20 operations went wrong, first: every tenth fails");
            assert!(check(&[line], None).is_ok());
        }
    }
}
