//! Concurrent misses of the same thing become one read.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::hash::Hash;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Lets only one of several concurrent futures with the same key run, and gives its output to all of them.
///
/// Nothing is kept: once a flight has landed, the next caller starts a new one. What should be kept goes into a
/// cache *within* the future, so that no one finds neither the flight nor the cached value.
pub struct SingleFlight<K, V> {
    flights: RefCell<HashMap<K, Rc<Flight<V>>>>,
}

/// Invariants:
/// 1. A flight is in the map exactly as long as it has no output and somebody takes part in it.
/// 2. At most one of those who take part is the leader, who runs its future; the others wait.
struct Flight<V> {
    output: RefCell<Option<V>>,
    led: Cell<bool>,
    taking_part: Cell<usize>,
    waiters: RefCell<Vec<Waker>>,
}

impl<K: Eq + Hash + Clone, V: Clone> SingleFlight<K, V> {
    /// Without flights.
    pub fn new() -> Self {
        Self { flights: RefCell::default() }
    }

    /// The output of the future that `begin` makes, or that of the future with the same key which another caller is running
    /// already.
    ///
    /// If that caller is dropped midway, one of those who wait runs its own future instead. A future that is not
    /// needed is never made: had it been given, it would take its place here twice, as what was given and as what is awaited.
    pub async fn run<F: Future<Output = V>>(&self, key: K, begin: impl FnOnce() -> F) -> V {
        let mut seat = self.join(key);
        match poll_fn(|context| seat.poll_turn(context)).await {
            Turn::Landed(output) => output,
            Turn::Lead => {
                let output = begin().await;
                seat.land(output.clone());
                output
            }
        }
    }

    /// Whether a flight with this key is under way.
    pub fn contains(&self, key: &K) -> bool {
        self.flights.borrow().contains_key(key)
    }

    /// How many flights are under way.
    pub fn in_flight(&self) -> usize {
        self.flights.borrow().len()
    }

    fn join(&self, key: K) -> Seat<'_, K, V> {
        let flight = Rc::clone(self.flights.borrow_mut().entry(key.clone()).or_default());
        flight.taking_part.set(flight.taking_part.get() + 1);
        Seat { group: self, key, flight, leads: false }
    }
}

impl<K: Eq + Hash + Clone, V: Clone> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Default for Flight<V> {
    fn default() -> Self {
        Self {
            output: RefCell::new(None),
            led: Cell::new(false),
            taking_part: Cell::new(0),
            waiters: RefCell::default(),
        }
    }
}

impl<V> Flight<V> {
    fn wake_all(&self) {
        for waiter in self.waiters.take() {
            waiter.wake();
        }
    }
}

/// What one who takes part has to do.
enum Turn<V> {
    Landed(V),
    Lead,
}

/// One caller's part in a flight, given up when it is dropped.
struct Seat<'group, K: Eq + Hash, V> {
    group: &'group SingleFlight<K, V>,
    key: K,
    flight: Rc<Flight<V>>,
    leads: bool,
}

impl<K: Eq + Hash, V: Clone> Seat<'_, K, V> {
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<Turn<V>> {
        if let Some(output) = &*self.flight.output.borrow() {
            return Poll::Ready(Turn::Landed(output.clone()));
        }
        if !self.flight.led.replace(true) {
            self.leads = true;
            return Poll::Ready(Turn::Lead);
        }
        let mut waiters = self.flight.waiters.borrow_mut();
        if !waiters.iter().any(|waiter| waiter.will_wake(context.waker())) {
            waiters.push(context.waker().clone());
        }
        Poll::Pending
    }

    fn land(&mut self, output: V) {
        self.flight.output.replace(Some(output));
        self.group.flights.borrow_mut().remove(&self.key);
        self.flight.wake_all();
    }
}

impl<K: Eq + Hash, V> Drop for Seat<'_, K, V> {
    fn drop(&mut self) {
        let flight = &self.flight;
        flight.taking_part.set(flight.taking_part.get() - 1);
        if flight.output.borrow().is_some() {
            return;
        }
        if flight.taking_part.get() == 0 {
            self.group.flights.borrow_mut().remove(&self.key);
        } else if self.leads {
            flight.led.set(false);
            flight.wake_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::SimOptions;
    use crate::{join_all, run_simulated, spawn, yield_now};

    #[test]
    fn one_runs_and_all_get_its_output() {
        run_simulated(SimOptions::default(), async |_| {
            let group = SingleFlight::new();
            let runs = Cell::new(0);
            let calls = (0..10).map(|call| {
                group.run(call % 2, async || {
                    runs.set(runs.get() + 1);
                    yield_now().await;
                    runs.get()
                })
            });
            assert_eq!(join_all(calls).await, [2; 10]);
            assert_eq!((runs.get(), group.in_flight()), (2, 0));
        })
        .unwrap();
    }

    #[test]
    fn a_flight_that_landed_is_not_kept() {
        run_simulated(SimOptions::default(), async |_| {
            let group = SingleFlight::new();
            assert_eq!(group.run("key", async || 1).await, 1);
            assert_eq!(group.run("key", async || 2).await, 2);
        })
        .unwrap();
    }

    #[test]
    fn a_waiter_takes_over_from_a_leader_that_is_dropped() {
        run_simulated(SimOptions::default(), async |_| {
            let group = Rc::new(SingleFlight::new());
            let call = |output: u32| {
                let group = Rc::clone(&group);
                spawn(async move {
                    let work = async || {
                        for _ in 0..3 {
                            yield_now().await;
                        }
                        output
                    };
                    group.run("key", work).await
                })
            };
            let (leader, second, third) = (call(1), call(2), call(3));
            yield_now().await;
            yield_now().await;
            drop(leader);
            assert_eq!(join_all([second, third]).await, [2, 2]);
            assert_eq!(group.in_flight(), 0);
        })
        .unwrap();
    }

    #[test]
    fn nothing_is_left_when_all_are_dropped() {
        run_simulated(SimOptions::default(), async |_| {
            let group = Rc::new(SingleFlight::<_, ()>::new());
            let call = || {
                let group = Rc::clone(&group);
                spawn(async move { group.run("key", std::future::pending).await })
            };
            let calls = [call(), call(), call()];
            yield_now().await;
            assert_eq!(
                (group.in_flight(), group.contains(&"key"), group.contains(&"other")),
                (1, true, false)
            );
            drop(calls);
            assert_eq!(group.in_flight(), 0);
        })
        .unwrap();
    }
}
