//! Long work on another thread: the one explicit hop from a shard to somewhere else.
//!
//! ```text
//! shard    offload(work) ──► queue of the process ──► a worker: a thread for each core at the most
//!          Task          ◄── output, or panic     ◄──┘
//! ```
//!
//! Only `Send` data goes there and comes back, so that the data of a shard stays on it. All shards of the process share the workers; once
//! started, these wait for more work. On a simulated shard the work is a task on the same thread, so that it runs in the same order each
//! time.

use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use rustix::thread::{Pid, sched_getaffinity, sched_setaffinity};

use crate::sim::in_simulation;
use crate::task::{Task, spawn};

/// Does `work` on another thread, while this shard goes on.
///
/// The hop there and back costs microseconds: it suits work of at least a tenth of a millisecond. Work begins in the
/// order in which it was given here. A [`Task`] that is dropped gives up the output, and work that has not begun by then
/// is not done; what was moved into it is dropped in any case, maybe on the other thread. If `work` panics, so does
/// who awaits the task. A shard that ends does not wait for it.
///
/// # Panics
/// On a simulated shard the whole run panics if `work` does.
pub fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Task<T> {
    if in_simulation() {
        return spawn(async { work() });
    }
    let slot = Arc::new(Slot(Mutex::new(State::Waiting(None))));
    let result = Arc::clone(&slot);
    WORKERS.add(Box::new(move || {
        if !matches!(*result.lock(), State::GivenUp) {
            result.put(catch_unwind(AssertUnwindSafe(work)));
        }
    }));
    Task::offloaded(Offloaded { slot, gives_up: true })
}

/// The output of work on another thread; dropping it gives the work up.
pub(crate) struct Offloaded<T> {
    slot: Arc<Slot<T>>,
    gives_up: bool,
}

/// Where the output is put, and taken from.
struct Slot<T>(Mutex<State<T>>);

enum State<T> {
    /// The work is not done. Who waits for it, if somebody does.
    Waiting(Option<Waker>),
    Done(Result<T, Box<dyn Any + Send>>),
    /// Nobody wants the output, or somebody has it.
    GivenUp,
}

impl<T> Offloaded<T> {
    /// Lets the work be done, whether or not somebody wants the output.
    pub(crate) fn detach(mut self) {
        self.gives_up = false;
    }
}

impl<T> Future for Offloaded<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.slot.lock();
        match std::mem::replace(&mut *state, State::GivenUp) {
            State::Waiting(_) => {
                *state = State::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            State::Done(Ok(output)) => Poll::Ready(output),
            State::Done(Err(panic)) => {
                drop(state);
                resume_unwind(panic)
            }
            State::GivenUp => panic!("a task is not polled after its end"),
        }
    }
}

impl<T> Drop for Offloaded<T> {
    fn drop(&mut self) {
        if self.gives_up {
            // What was there is dropped after the lock: it may be anything.
            let before = std::mem::replace(&mut *self.slot.lock(), State::GivenUp);
            drop(before);
        }
    }
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the output there and wakes who waits for it. It is dropped if nobody wants it any more.
    fn put(&self, output: Result<T, Box<dyn Any + Send>>) {
        let mut state = self.lock();
        let waiter = match &mut *state {
            State::Waiting(waiter) => waiter.take(),
            State::Done(_) | State::GivenUp => return drop((state, output)),
        };
        *state = State::Done(output);
        drop(state);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

static WORKERS: LazyLock<Workers> = LazyLock::new(|| Workers {
    most: thread::available_parallelism().map_or(1, usize::from),
    queue: Mutex::default(),
    added: Condvar::new(),
});

/// The threads of the process that do what is offloaded.
struct Workers {
    /// How many threads there are at the most.
    most: usize,
    queue: Mutex<Queue>,
    added: Condvar,
}

type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    threads: usize,
    waiting: usize,
}

impl Workers {
    /// Has a worker do the job, a new one if all are at work. Where there is none and the operating system gives none,
    /// the job is done here and now.
    fn add(&'static self, job: Job) {
        let mut queue = self.lock();
        queue.jobs.push_back(job);
        if queue.jobs.len() > queue.waiting && queue.threads < self.most {
            let worker = thread::Builder::new().name("offload".to_owned()).spawn(|| self.work());
            queue.threads += usize::from(worker.is_ok());
        }
        let job = if queue.threads == 0 { queue.jobs.pop_back() } else { None };
        drop(queue);
        match job {
            Some(job) => job(),
            None => self.added.notify_one(),
        }
    }

    fn work(&self) {
        leave_pinned_cpu();
        loop {
            let job = self.next();
            // What panics here is what somebody has dropped, while it is dropped: nobody is left to be told.
            drop(catch_unwind(AssertUnwindSafe(job)));
        }
    }

    fn next(&self) -> Job {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return job;
            }
            queue.waiting += 1;
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.waiting -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread runs where the one may that started it, which may be pinned; a worker runs where the process may, as its
/// first thread tells, which is no shard.
fn leave_pinned_cpu() {
    let process = i32::try_from(std::process::id()).ok().and_then(Pid::from_raw);
    // A worker that stays on the CPU of the shard is slower, and no worse.
    sched_getaffinity(process).and_then(|cpus| sched_setaffinity(None, &cpus)).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use rustix::thread::CpuSet;

    use super::*;
    use crate::everywhere::everywhere;
    use crate::sim::SimOptions;
    use crate::{ShardOptions, join_all, run, run_simulated, yield_now};

    /// Notes when it is dropped.
    struct Noted(Arc<AtomicUsize>);

    impl Drop for Noted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn outputs_come_back() {
        everywhere(async |_| {
            for count in [1, 3, 500] {
                let tasks = (0..count).map(|number| offload(move || vec![number; 1000]));
                let outputs = join_all(tasks.collect::<Vec<_>>()).await;
                assert!(outputs.iter().zip(0..).all(|(output, number)| *output == [number; 1000]));
            }
        });
    }

    #[test]
    fn a_real_shard_goes_on_meanwhile_on_a_thread_of_its_own() {
        run(ShardOptions::default(), async |_| {
            let (sender, receiver) = mpsc::channel();
            let task = offload(move || (receiver.recv().unwrap(), thread::current().id()));
            yield_now().await;
            sender.send(7).unwrap();
            let (sent, worker) = task.await;
            assert_eq!(sent, 7);
            assert_ne!(worker, thread::current().id());
        })
        .unwrap();
    }

    #[test]
    fn workers_run_where_the_process_may() {
        let allowed = sched_getaffinity(None).unwrap();
        let cpu = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
        let options = ShardOptions { cpu: Some(cpu), ..ShardOptions::default() };
        let cpus = run(options, async |_| offload(|| sched_getaffinity(None).unwrap()).await).unwrap();
        assert_eq!(cpus, allowed);
    }

    #[test]
    fn work_is_done_in_one_order_in_simulation() {
        run_simulated(SimOptions::default(), async |_| {
            let (sender, receiver) = mpsc::channel();
            let add = |number| {
                let sender = sender.clone();
                offload(move || (sender.send(number).unwrap(), thread::current().id()).1)
            };
            let tasks: Vec<_> = (0..20).map(add).collect();
            assert!(receiver.try_recv().is_err(), "nothing begins before the shard lets others go on");
            assert!(join_all(tasks).await.iter().all(|thread| *thread == thread::current().id()));
            assert!(receiver.try_iter().eq(0..20));
        })
        .unwrap();
    }

    #[test]
    fn what_is_moved_into_dropped_work_is_dropped() {
        let drops = Arc::new(AtomicUsize::new(0));
        everywhere(async |_| {
            let before = drops.load(Ordering::SeqCst);
            let tasks: Vec<_> = (0..50)
                .map(|_| {
                    let noted = Noted(Arc::clone(&drops));
                    offload(move || (thread::yield_now(), noted).1)
                })
                .collect();
            yield_now().await;
            drop(tasks);
            while drops.load(Ordering::SeqCst) < before + 50 {
                yield_now().await;
            }
        });
    }

    #[test]
    fn detached_work_is_done() {
        everywhere(async |_| {
            let (sender, receiver) = mpsc::channel();
            for number in 0..50 {
                let sender = sender.clone();
                offload(move || sender.send(number).unwrap()).detach();
            }
            let mut done = Vec::new();
            while done.len() < 50 {
                yield_now().await;
                done.extend(receiver.try_iter());
            }
            done.sort_unstable();
            assert!(done.into_iter().eq(0..50));
        });
    }

    #[test]
    fn a_shard_may_end_before_its_work() {
        let (sender, receiver) = mpsc::channel::<()>();
        let main = async |_| {
            offload(move || receiver.recv()).detach();
            yield_now().await;
        };
        run(ShardOptions::default(), main).unwrap();
        drop(sender);
    }

    #[test]
    fn a_panic_comes_back_and_the_worker_goes_on() {
        for io_uring in [true, false] {
            let options = ShardOptions { io_uring, ..ShardOptions::default() };
            let panic = catch_unwind(|| {
                run(options.clone(), async |_| {
                    let tasks: Vec<_> = (0..100).map(|_| offload(|| panic!("work failed"))).collect();
                    join_all(tasks).await;
                })
            });
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"work failed"));
            assert_eq!(run(options, async |_| offload(|| 5).await).unwrap(), 5);
        }
        let panic = catch_unwind(|| {
            run_simulated(SimOptions::default(), async |_| offload(|| -> () { panic!("work failed") }).await)
        });
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"work failed"));
    }
}
