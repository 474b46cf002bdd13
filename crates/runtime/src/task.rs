//! Several futures at once on the one thread of a shard.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use compio::runtime::{JoinHandle, ResumeUnwind};

use crate::in_place;
use crate::offload::Offloaded;
use crate::sim::{SimTask, try_spawn};

/// Starts a future as a task of this shard, which goes on while its starter does something else.
///
/// # Panics
/// Outside of [`run`](crate::run) and [`run_simulated`](crate::run_simulated), and [in place](crate::is_in_place).
pub fn spawn<F: Future + 'static>(future: F) -> Task<F::Output> {
    assert!(!in_place::is_in_place(), "the runtime of this thread is not that of the shard");
    match try_spawn(future) {
        Ok(task) => Task(Inner::Simulated(task)),
        Err(future) => Task(Inner::Real(compio::runtime::spawn(future))),
    }
}

/// A task of this shard, or [offloaded](crate::offload) by it; a future of its output. Dropping it cancels the task.
///
/// If the task panics, so does who awaits it; on a simulated shard the whole run does at once. A shard that ends drops
/// the tasks that have not ended.
#[must_use = "a task is cancelled when its handle is dropped: await it, or detach it"]
pub struct Task<T>(Inner<T>);

enum Inner<T> {
    Real(JoinHandle<T>),
    Simulated(SimTask<T>),
    Offloaded(Offloaded<T>),
}

impl<T> Task<T> {
    pub(crate) fn offloaded(work: Offloaded<T>) -> Task<T> {
        Task(Inner::Offloaded(work))
    }

    /// Lets the task go on by itself, until it or the shard ends.
    pub fn detach(self) {
        match self.0 {
            Inner::Real(task) => task.detach(),
            Inner::Simulated(task) => task.detach(),
            Inner::Offloaded(work) => work.detach(),
        }
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Inner::Real(task) => pin!(task)
                .poll(context)
                .map(|result| result.resume_unwind().expect("only dropping its handle cancels a task")),
            Inner::Simulated(task) => pin!(task).poll(context),
            Inner::Offloaded(work) => pin!(work).poll(context),
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

/// Runs futures concurrently, and returns their outputs in the order of the futures.
///
/// All that have not ended are polled whenever one of them can go on, which suits tens of them; a crowd is better
/// spawned.
pub async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<_> = running.iter().map(|_| None).collect();
    let count = running.len();
    poll_fn(|context| {
        let mut poll_all = || {
            let mut pending = false;
            for (place, output) in running.iter_mut().zip(&mut outputs) {
                let Some(future) = place else { continue };
                match future.as_mut().poll(context) {
                    Poll::Ready(value) => {
                        *output = Some(value);
                        *place = None;
                    }
                    Poll::Pending => pending = true,
                }
            }
            if pending { Poll::Pending } else { Poll::Ready(()) }
        };
        if count == 1 { poll_all() } else { in_place::side_by_side(poll_all) }
    })
    .await;
    outputs.into_iter().flatten().collect()
}

/// A future that is made in its box. `Box::pin` has it made beside that, and copies as many kilobytes as the longest way through it keeps,
/// of which a future that was not polled has hardly any in use.
#[inline(always)]
pub fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let place = Box::new_uninit();
    Box::into_pin(Box::write(place, make()))
}

/// Lets the other tasks of this shard go on first, once.
pub async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
