//! How often a shard turned to some work, and how often that had to wait.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;

/// The counters; any number of futures may share them.
#[derive(Debug, Default)]
pub(crate) struct Polls {
    /// How often the shard turned to one of them.
    pub(crate) tasks: Cell<u64>,
    /// How often it then had to wait.
    pub(crate) blocked: Cell<u64>,
}

impl Polls {
    /// Runs something, counted. It stays where it is: some futures are large, and moving them would show.
    pub(crate) async fn count<T>(&self, mut work: Pin<&mut impl Future<Output = T>>) -> T {
        poll_fn(|context| {
            self.tasks.update(|count| count + 1);
            let polled = work.as_mut().poll(context);
            self.blocked.update(|count| count + u64::from(polled.is_pending()));
            polled
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[test]
    fn waits_are_counted() {
        let polls = runtime::run_simulated(runtime::SimOptions::default(), async |_| {
            let polls = Polls::default();
            polls.count(pin!(runtime::yield_now())).await;
            assert_eq!(polls.count(pin!(async { 5 })).await, 5);
            (polls.tasks.get(), polls.blocked.get())
        });
        assert_eq!(polls.unwrap(), (3, 1));
    }
}
