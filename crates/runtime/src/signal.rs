//! Futures of one shard that wait for something to change.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// Wakes all who wait whenever something has changed; they look for themselves whether it is what they wait for.
///
/// Nothing is missed: between a look and the wait that follows it, nobody else on the thread goes on.
#[derive(Debug, Default)]
pub struct Signal {
    changes: Cell<u64>,
    waiting: RefCell<Vec<Waker>>,
}

impl Signal {
    /// Nobody waits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Something has changed.
    pub fn notify(&self) {
        self.changes.set(self.changes.get() + 1);
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// Waits for the next change after the future is first polled.
    pub async fn changed(&self) {
        let seen = self.changes.get();
        poll_fn(|context| {
            if self.changes.get() != seen {
                return Poll::Ready(());
            }
            self.wait(context);
            Poll::Pending
        })
        .await;
    }

    /// Waits until `look` finds something. It looks at once and after every change, and must not notify this signal.
    pub async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| {
            let found = look();
            if found.is_none() {
                self.wait(context);
            }
            found.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    fn wait(&self, context: &mut Context<'_>) {
        let mut waiting = self.waiting.borrow_mut();
        // Futures that are polled together have one waker, and come one after the other.
        if !waiting.last().is_some_and(|last| last.will_wake(context.waker())) {
            waiting.push(context.waker().clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use super::*;
    use crate::{SimOptions, join_all, run_simulated, spawn, timeout, yield_now};

    #[test]
    fn all_who_wait_look_again() {
        run_simulated(SimOptions::default(), async |_| {
            let (signal, level) = (Rc::new(Signal::new()), Rc::new(Cell::new(0)));
            let tasks: Vec<_> = (0..10)
                .map(|wanted| {
                    let (signal, level) = (Rc::clone(&signal), Rc::clone(&level));
                    spawn(async move { signal.until(|| (level.get() >= wanted).then(|| level.get())).await })
                })
                .collect();
            for now in [3, 9] {
                yield_now().await;
                level.set(now);
                signal.notify();
            }
            assert_eq!(join_all(tasks).await, [0, 3, 3, 3, 9, 9, 9, 9, 9, 9]);
        })
        .unwrap();
    }

    #[test]
    fn a_change_is_one_after_the_first_poll() {
        run_simulated(SimOptions::default(), async |_| {
            let signal = Signal::new();
            signal.notify();
            assert_eq!(timeout(Duration::from_secs(1), signal.changed()).await, None);
            let signal = Rc::new(signal);
            let other = Rc::clone(&signal);
            let notifies = spawn(async move { other.notify() });
            signal.changed().await;
            assert_eq!(signal.changes.get(), 2);
            notifies.await;
        })
        .unwrap();
    }
}
