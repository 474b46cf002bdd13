//! A shard's own thread: it takes jobs, and while it has none, other threads may borrow the shard.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::{self, AssertUnwindSafe};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use async_channel::Receiver;
use runtime::{Lender, Shard, Signal};

use super::borrowing::look_out;
use super::here::Here;
use super::patience::Patience;
use super::question::{Question, Reply, begun};
use super::shards::LocalFuture;
use super::worker::Worker;
use crate::{Error, Result};

/// How many jobs of a shard may be under way; others wait in its queue.
const AT_ONCE: usize = 1024;

/// A shard that takes jobs: what it lends to who asks while it is at rest.
pub(super) struct Served {
    /// Among those of the process.
    pub(super) number: u64,
    pub(super) worker: Rc<Worker>,
    running: Cell<usize>,
    /// What who borrowed the shard has begun, and cannot bring to its end.
    handed: RefCell<VecDeque<LocalFuture<()>>>,
    /// Whether who borrows the shard may wait for its disk.
    pub(super) patience: Patience,
    /// Whether something was handed over, or whoever borrowed the shard failed: known without the floor.
    is_called: AtomicBool,
    /// A job has ended, has been handed over, or has failed.
    changed: Signal,
}

/// What is to be done next.
enum Job {
    Asked(Question),
    Handed(LocalFuture<()>),
}

/// Why a shard that waits goes on.
enum Woken {
    /// Something was handed over, or has ended or failed.
    Changed,
    Asked(Question),
    /// Nobody will ask any more.
    Closed,
}

/// What a shard is asked. However its thread comes to its end, or does not begin: those who wait are told that no answer will come.
pub(super) struct Questions(pub(super) Receiver<Question>);

impl Drop for Questions {
    fn drop(&mut self) {
        self.0.close();
        while self.0.try_recv().is_ok() {}
    }
}

/// Takes jobs until the queue is closed and empty, lets those end that are under way, and closes the log.
pub(super) async fn serve(
    shard: Shard,
    lender: Lender<Rc<Served>>,
    number: u64,
    questions: Questions,
) -> Result<()> {
    let worker = Rc::new(Worker::new(shard));
    let served = Rc::new(Served {
        number,
        worker: worker.clone(),
        running: Cell::default(),
        handed: RefCell::default(),
        patience: Patience::default(),
        is_called: AtomicBool::default(),
        changed: Signal::new(),
    });
    let here = Here::begin(&served, false);
    lender.offer(served.clone());
    while let Some(job) = served.next(&lender, &questions.0).await {
        match job {
            Job::Handed(work) => served.run(work),
            Job::Asked(question) => {
                match panic::catch_unwind(AssertUnwindSafe(|| question.begin(&worker))) {
                    Ok(Some(work)) => served.run(work),
                    Ok(None) if worker.is_turn_over() => runtime::yield_now().await,
                    Ok(None) => {}
                    // As a panic of a task: the shard goes, and all who wait are told.
                    Err(_) => worker.fail(),
                }
            }
        }
    }
    drop(lender);
    // After a failure: whoever waits for an answer is told that none will come.
    drop(questions);
    served.handed.take();
    served.changed.until(|| (served.running.get() == 0 || worker.has_failed()).then_some(())).await;
    drop(here);
    match worker.has_failed() {
        true => Err(Error::Closed("a shard of the database has panicked".to_owned())),
        false => worker.close().await,
    }
}

impl Served {
    /// Takes what was begun by who borrowed the shard; the answer is that of its end.
    pub(super) fn hand_over<T: Send + 'static>(&self, work: LocalFuture<Result<T>>) -> Reply<T> {
        let (work, reply) = begun(work);
        self.handed.borrow_mut().push_back(work);
        self.call();
        reply
    }

    /// Begins what a job of this shard wants done, beside it: there need not be room for one more, as that job may wait for it.
    pub(super) fn run_to_end<T: Send + 'static>(self: &Rc<Self>, work: LocalFuture<Result<T>>) -> Reply<T> {
        let (work, reply) = begun(work);
        self.run(work);
        reply
    }

    /// Whether no more can be handed over.
    pub(super) fn is_full(&self) -> bool {
        self.running.get() + self.handed.borrow().len() >= AT_ONCE
    }

    /// Something has panicked while the shard was borrowed.
    pub(super) fn fail(&self) {
        self.worker.fail();
        self.call();
    }

    fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.changed.notify();
    }

    /// Goes on with a job as a task of its own.
    fn run(self: &Rc<Self>, work: LocalFuture<()>) {
        self.running.set(self.running.get() + 1);
        let running = Running(self.clone());
        runtime::spawn(async move {
            let running = running;
            work.await;
            drop(running);
        })
        .detach();
    }

    /// The next job, once there is room for one; `None` if there will be none, as after a panic.
    async fn next(&self, lender: &Lender<Rc<Served>>, queue: &Receiver<Question>) -> Option<Job> {
        // There may be no more room, and then nothing else to do.
        lender.lend(false);
        let has_room = || self.running.get() < AT_ONCE || self.worker.has_failed();
        self.changed.until(|| has_room().then_some(())).await;
        while !self.worker.has_failed() {
            if let Some(work) = self.handed.borrow_mut().pop_front() {
                return Some(Job::Handed(work));
            }
            // Whoever borrows the shard keeps it from what is under way.
            let is_idle = self.running.get() == 0;
            lender.lend(is_idle);
            if is_idle && look_out(lender, queue, &self.is_called) {
                self.is_called.store(false, Ordering::Relaxed);
                match queue.try_recv() {
                    Ok(question) => return Some(Job::Asked(question)),
                    Err(_) => continue,
                }
            }
            match self.asleep(queue, is_idle).await {
                Woken::Changed => {}
                Woken::Asked(question) => return Some(Job::Asked(question)),
                Woken::Closed => return None,
            }
        }
        None
    }

    /// Waits until there may be something to do; for who was at work, until it is idle at the latest.
    async fn asleep(&self, queue: &Receiver<Question>, was_idle: bool) -> Woken {
        let has_changed = || {
            let is_called = self.is_called.swap(false, Ordering::Acquire);
            self.worker.has_failed() || is_called || (!was_idle && self.running.get() == 0)
        };
        let mut changed = pin!(self.changed.until(|| has_changed().then_some(())));
        let mut received = pin!(queue.recv());
        poll_fn(|context| match changed.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Woken::Changed),
            Poll::Pending => received.as_mut().poll(context).map(|received| match received {
                Ok(question) => Woken::Asked(question),
                Err(_) => Woken::Closed,
            }),
        })
        .await
    }
}

/// A job that is under way.
struct Running(Rc<Served>);

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.worker.fail();
        }
        self.0.running.set(self.0.running.get() - 1);
        self.0.changed.notify();
    }
}
