//! Time that passes: the machine's, or the ticks of a simulated shard.
//!
//! This is another time than the [`Clock`](crate::Clock)'s, which people set and tests hold still. On a simulated shard
//! it passes only while all futures wait, and then at once to where the next of them goes on: a sleep of an hour costs
//! nothing, and ends after all that takes less than an hour.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::LazyLock;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::in_place;
use crate::sim::{try_now, try_sleep};

/// No sleep is longer: there are moments that a clock does not have.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Waits for this long, from when the future is first polled; never shorter, and never longer than a century.
///
/// # Panics
/// When polled outside of [`run`](crate::run) and [`run_simulated`](crate::run_simulated).
pub async fn sleep(duration: Duration) {
    if let Some(sleep) = try_sleep(duration) {
        return sleep.await;
    }
    in_place::over().await;
    compio::time::sleep(duration.min(LONGEST)).await;
}

/// The output of `future`, or `None` if it has not ended after this long; it is dropped then. One that has ended at
/// the same moment is ahead.
///
/// # Panics
/// As [`sleep`] does.
pub async fn timeout<F: Future>(duration: Duration, future: F) -> Option<F::Output> {
    let (mut future, mut sleep) = (pin!(future), pin!(sleep(duration)));
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        sleep.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// The time since some moment in the life of the process, to measure by. It never goes back, and is the same on all threads.
pub fn monotonic() -> Duration {
    try_now().unwrap_or_else(|| START.elapsed())
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::rc::Rc;

    use super::*;
    use crate::everywhere::everywhere;
    use crate::{Clock, SimOptions, join_all, run_simulated, spawn, yield_now};

    const SHORT: Duration = Duration::from_millis(2);

    #[test]
    fn a_sleep_may_be_for_ever() {
        everywhere(async |_| assert!(timeout(SHORT, sleep(Duration::MAX)).await.is_none()));
    }

    #[test]
    fn a_sleep_is_never_shorter() {
        everywhere(async |_| {
            for duration in [SHORT, Duration::ZERO, Duration::from_nanos(1)] {
                let before = monotonic();
                sleep(duration).await;
                assert!(monotonic() >= before + duration);
            }
        });
    }

    #[test]
    fn others_go_on_during_a_sleep() {
        everywhere(async |_| {
            let order = Rc::new(std::cell::RefCell::new(Vec::new()));
            let sleeps = [30, 10, 20].map(|millis| {
                let order = Rc::clone(&order);
                spawn(async move {
                    sleep(Duration::from_millis(millis)).await;
                    order.borrow_mut().push(millis);
                })
            });
            join_all(sleeps).await;
            assert_eq!(*order.borrow(), [10, 20, 30]);
        });
    }

    #[test]
    fn a_timeout_ends_what_takes_longer() {
        everywhere(async |_| {
            assert_eq!(timeout(SHORT, pending::<()>()).await, None);
            assert_eq!(timeout(Duration::ZERO, ready(3)).await, Some(3));
            let slow = async {
                yield_now().await;
                4
            };
            assert_eq!(timeout(Duration::from_secs(3600), slow).await, Some(4));
        });
    }

    #[test]
    fn a_simulated_sleep_costs_nothing_and_leaves_the_clock_alone() {
        run_simulated(SimOptions::default(), async |shard| {
            let (clock, before): (&Clock, _) = (shard.clock(), shard.clock().now());
            sleep(Duration::from_secs(1 << 30)).await;
            assert_eq!(monotonic(), Duration::from_secs(1 << 30));
            sleep(Duration::from_nanos(1)).await;
            assert_eq!(monotonic(), Duration::new(1 << 30, 1000));
            assert_eq!(clock.now(), before);
        })
        .unwrap();
    }

    #[test]
    fn simulated_requests_take_microseconds() {
        run_simulated(SimOptions { max_delay: 50, ..SimOptions::default() }, async |shard| {
            for _ in 0..100 {
                shard.disk().create_dir_all(std::path::Path::new("/a")).await.unwrap();
            }
            let passed = monotonic();
            assert!(
                passed > Duration::from_micros(1000) && passed < Duration::from_micros(5000),
                "{passed:?}"
            );
        })
        .unwrap();
    }

    #[test]
    fn who_is_cancelled_sleeps_no_more() {
        run_simulated(SimOptions::default(), async |_| {
            let sleeper = spawn(sleep(Duration::from_secs(9)));
            yield_now().await;
            drop(sleeper);
            sleep(Duration::from_secs(10)).await;
            assert_eq!(monotonic(), Duration::from_secs(10));
        })
        .unwrap();
    }
}
