//! The threads of a database, and how work comes to them.
//!
//! ```text
//! any thread ──job──► bounded queue ──► shard: a task a job, so many at once
//!      ▲                                   │
//!      └───────────── answer ◄─────────────┘
//! ```
//!
//! A job is a closure that may go to another thread; the future that it makes may not, and lives and ends on the
//! shard. Answers are plain data. A job that panics takes its shard with it: it may have left anything half done.
//!
//! What needs no wait, as a read of what is in memory, is done when the job is taken, and makes neither a future nor a
//! task. What a job asks of its own shard does not go through the queue either: it is done where it is asked for.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;

use async_channel::TrySendError;
use runtime::{RuntimeError, Shard, ShardOptions, Signal};
use send_wrapper::SendWrapper;

use super::pending::Pending;
use super::question::{Question, question};
use super::spin::spin;
use super::worker::Worker;
use crate::{Error, Result};

/// How many jobs of a shard may be under way; others wait in its queue.
const AT_ONCE: usize = 1024;

/// How many jobs wait for a shard before who asks waits as well.
const QUEUE: usize = 1024;

pub(super) type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;
/// How a shard has ended.
type Ended = std::result::Result<Result<()>, RuntimeError>;

/// What has become of a question when it was asked.
pub(super) enum Work<T> {
    /// The answer is there.
    Done(T),
    /// It has to be waited for.
    Later(LocalFuture<Result<T>>),
}

/// The number of the next shard of the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The shard of this thread, if it is one, with its number.
    static HERE: RefCell<Option<(u64, Rc<Worker>)>> = const { RefCell::new(None) };
}

/// A shard as other threads see it.
pub(super) struct ShardHandle {
    number: u64,
    jobs: async_channel::Sender<Question>,
    thread: Mutex<Option<JoinHandle<Ended>>>,
}

impl ShardHandle {
    /// Starts the thread of a shard.
    pub(super) fn start(options: ShardOptions) -> Result<ShardHandle> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (jobs, queue) = async_channel::bounded(QUEUE);
        let thread = runtime::start(options, async move |shard| serve(shard, number, queue).await)?;
        Ok(ShardHandle { number, jobs, thread: Mutex::new(Some(thread)) })
    }

    /// Does something on the shard.
    pub(super) fn call<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Worker>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.ask(move |worker| {
            let worker = worker.clone();
            Ok(Work::later(async move { work(worker).await }))
        })
    }

    /// Does something on the shard that may not need to wait there. If this is its thread, what needs no wait is done when
    /// this returns.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
    ) -> Pending<T> {
        match begin_here(self.number, work) {
            Begun::Done(done) => Pending::answered(done),
            Begun::Later(later) => Pending::new(later),
            Begun::Not(work) => self.send(work),
        }
    }

    /// Puts work where the shard takes it from: at once where there is room.
    fn send<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
    ) -> Pending<T> {
        let (question, reply) = question(work);
        match self.jobs.try_send(question) {
            Err(TrySendError::Full(question)) => {
                let jobs = self.jobs.clone();
                Pending::new(async move {
                    // Where the queue is closed, the question is dropped, and that is the answer.
                    drop(jobs.send(question).await);
                    reply.await
                })
            }
            Ok(()) | Err(TrySendError::Closed(_)) => Pending::sent(reply),
        }
    }

    /// Takes nothing more. What was asked for before is done.
    pub(super) fn close(&self) {
        self.jobs.close();
    }

    /// Waits until the thread has ended, which it does once it is closed, all is done, and the log is durable.
    pub(super) fn join(&self) -> Result<()> {
        if here(self.number).is_some() {
            return Err(Error::Usage("a database is not closed on one of its shards".to_owned()));
        }
        let thread = self.thread.lock().map_or(None, |mut thread| thread.take());
        match thread.map(JoinHandle::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended?,
            Some(Err(_)) => Err(Error::Closed("a shard of the database has panicked".to_owned())),
        }
    }
}

impl<T> Work<T> {
    /// What a future will answer.
    ///
    /// It is in a box: the future of a read has some kilobytes, which every layer around it would move.
    pub(super) fn later(work: impl Future<Output = Result<T>> + 'static) -> Work<T> {
        Work::Later(Box::pin(work))
    }

    /// The answer, once it is there.
    pub(super) async fn answer(self) -> Result<T> {
        match self {
            Work::Done(done) => Ok(done),
            Work::Later(later) => later.await,
        }
    }
}

/// Takes jobs until the queue is closed and empty, lets those end that are under way, and closes the log.
async fn serve(shard: Shard, number: u64, queue: async_channel::Receiver<Question>) -> Result<()> {
    let worker = Rc::new(Worker::new(shard));
    let here = Here::begin(number, &worker);
    let load = Rc::new(Load::default());
    while let Some(job) = next(&worker, &load, &queue).await {
        load.running.set(load.running.get() + 1);
        let running = Running { worker: worker.clone(), load: load.clone() };
        match panic::catch_unwind(AssertUnwindSafe(|| job.begin(&worker))) {
            Ok(Some(work)) => runtime::spawn(async move {
                let running = running;
                work.await;
                drop(running);
            })
            .detach(),
            Ok(None) if worker.is_turn_over() => runtime::yield_now().await,
            Ok(None) => {}
            // As a panic of a task: the shard goes, and all who wait are told.
            Err(_) => worker.fail(),
        }
    }
    // After a failure: whoever waits for an answer is told that none will come.
    queue.close();
    while queue.try_recv().is_ok() {}
    load.changed.until(|| (load.running.get() == 0 || worker.has_failed()).then_some(())).await;
    drop(here);
    match worker.has_failed() {
        true => Err(Error::Closed("a shard of the database has panicked".to_owned())),
        false => worker.close().await,
    }
}

/// This thread is a shard until it is dropped, however that ends: its worker does not outlive what it runs on.
struct Here;

impl Here {
    fn begin(number: u64, worker: &Rc<Worker>) -> Here {
        HERE.set(Some((number, worker.clone())));
        Here
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        HERE.take();
    }
}

/// What has become of a question where it was asked.
enum Begun<T, W> {
    Done(Result<T>),
    /// What is left does not leave this thread: whoever polls it is a job of the shard.
    Later(SendWrapper<LocalFuture<Result<T>>>),
    /// This is not the shard that it was for.
    Not(W),
}

/// Work that is done where it is asked for, if this is the shard of that number.
fn begin_here<T: 'static, W: FnOnce(&Rc<Worker>) -> Result<Work<T>> + 'static>(
    number: u64,
    work: W,
) -> Begun<T, W> {
    let Some(worker) = here(number) else { return Begun::Not(work) };
    if worker.is_turn_over() {
        // What is in memory is read without a wait: a loop of that would let nobody else go on.
        return Begun::Later(SendWrapper::new(Box::pin(async move {
            runtime::yield_now().await;
            work(&worker)?.answer().await
        })));
    }
    match work(&worker) {
        Ok(Work::Done(done)) => Begun::Done(Ok(done)),
        Ok(Work::Later(later)) => Begun::Later(SendWrapper::new(later)),
        Err(error) => Begun::Done(Err(error)),
    }
}

/// The shard of this thread, if it is the one of that number.
fn here(number: u64) -> Option<Rc<Worker>> {
    HERE.with_borrow(|here| here.as_ref().filter(|here| here.0 == number).map(|here| here.1.clone()))
}

/// The next job, once there is room for one; `None` if there will be none, as after a panic.
async fn next(worker: &Worker, load: &Load, queue: &async_channel::Receiver<Question>) -> Option<Question> {
    load.changed.until(|| (load.running.get() < AT_ONCE || worker.has_failed()).then_some(())).await;
    while !worker.has_failed() {
        // While nobody waits for the queue, who sends need not wake anybody.
        let is_idle = load.running.get() == 0;
        if is_idle && let Some(job) = spin(|| queue.try_recv().ok()) {
            return Some(job);
        }
        let mut received = pin!(queue.recv());
        let becomes_idle = || worker.has_failed() || (!is_idle && load.running.get() == 0);
        let mut changed = pin!(load.changed.until(|| becomes_idle().then_some(())));
        let job = poll_fn(|context| match changed.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => received.as_mut().poll(context).map(Some),
        });
        if let Some(job) = job.await {
            return job.ok();
        }
    }
    None
}

/// How much a shard has to do.
#[derive(Default)]
struct Load {
    running: Cell<usize>,
    /// A job has ended.
    changed: Signal,
}

/// A job that is under way.
struct Running {
    worker: Rc<Worker>,
    load: Rc<Load>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.worker.fail();
        }
        self.load.running.set(self.load.running.get() - 1);
        self.load.changed.notify();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::super::worker::ANSWERS_A_TURN;
    use super::*;

    fn shard() -> ShardHandle {
        ShardHandle::start(ShardOptions { io_uring: false, ..ShardOptions::default() }).unwrap()
    }

    #[test]
    fn what_was_asked_for_before_the_end_is_done() {
        let shard = shard();
        let answers: Vec<_> = (0..50)
            .map(|number| {
                shard.call(async move |_| {
                    runtime::yield_now().await;
                    Ok(number)
                })
            })
            .collect();
        let sum: i32 = answers.into_iter().map(|answer| answer.wait().unwrap()).sum();
        assert_eq!(sum, 49 * 50 / 2);
        shard.close();
        let late = shard.call(async |_| Ok(()));
        assert!(matches!(late.wait(), Err(Error::Closed(_))));
        shard.join().unwrap();
    }

    /// A queue that a job would have to wait for cannot keep it from asking its own shard.
    #[test]
    fn a_job_asks_its_own_shard_at_once() {
        let shard = Arc::new(shard());
        let inner = shard.clone();
        let outer = shard.call(async move |worker| {
            let own = thread::current().id();
            let found =
                inner.call(async move |again| Ok((Rc::as_ptr(&again).addr(), thread::current().id())));
            assert_eq!(found.await?, (Rc::as_ptr(&worker).addr(), own));
            assert!(inner.join().is_err(), "it would wait for itself");
            Ok(())
        });
        outer.wait().unwrap();
        shard.close();
        shard.join().unwrap();
    }

    #[test]
    fn a_job_that_asks_its_own_shard_lets_others_go_on() {
        let shard = Arc::new(shard());
        let inner = shard.clone();
        let asks = shard.call(async move |_| {
            let (is_over, mut asked) = (Rc::new(Cell::new(false)), 0);
            let other = is_over.clone();
            runtime::spawn(async move { other.set(true) }).detach();
            while !is_over.get() {
                inner.ask(|_| Ok(Work::Done(()))).await?;
                asked += 1;
            }
            Ok(asked)
        });
        assert!(asks.wait().unwrap() <= 2 * ANSWERS_A_TURN);
        shard.close();
        shard.join().unwrap();
    }

    #[test]
    fn what_needs_no_wait_is_answered_between_others() {
        let shard = shard();
        let (begin, begun) = async_channel::bounded::<()>(1);
        let slow = shard.call(async move |_| Ok(begun.recv().await.is_ok()));
        let slow = thread::spawn(move || slow.wait());
        let sum: u64 = (0..2 * ANSWERS_A_TURN)
            .map(|number| shard.ask(move |_| Ok(Work::Done(number))).wait().unwrap())
            .sum();
        assert_eq!(sum, ANSWERS_A_TURN * (2 * ANSWERS_A_TURN - 1));
        begin.send_blocking(()).unwrap();
        assert!(slow.join().unwrap().unwrap());
        let refused: Pending<()> = shard.ask(|_| Err(Error::Usage("no".to_owned())));
        assert_eq!(refused.wait().unwrap_err().to_string(), "no");
        shard.close();
        shard.join().unwrap();
    }

    /// Whether the job panics when it is begun or later.
    #[test]
    fn a_panic_is_an_error_for_all_who_wait() {
        let later = |shard: &ShardHandle| shard.call(async |_| panic!("on purpose"));
        let at_once = |shard: &ShardHandle| shard.ask(|_| panic!("on purpose"));
        for panics in [later as fn(&ShardHandle) -> Pending<()>, at_once] {
            let shard = shard();
            let stuck = shard.call(async |_| {
                std::future::pending::<()>().await;
                Ok(())
            });
            let stuck = thread::spawn(move || stuck.wait());
            assert!(matches!(panics(&shard).wait(), Err(Error::Closed(_))));
            let late = shard.call(async |_| Ok(()));
            assert!(matches!(late.wait(), Err(Error::Closed(_))));
            assert!(matches!(stuck.join().unwrap(), Err(Error::Closed(_))));
            assert!(shard.join().is_err());
        }
    }
}
