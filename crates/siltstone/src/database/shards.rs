//! The threads of a database, and how work comes to them.
//!
//! ```text
//!                  at rest: borrowed, looked at there
//! any thread ──job─┤
//!      ▲           └─► bounded queue ──► shard: one task for each job, a limited number at once
//!      └───────────── answer ◄──────────────┘
//! ```
//!
//! A job is a closure that may go to another thread. The future that it makes may not: it lives and ends on the shard. Answers are plain
//! data. If a job panics, its shard ends, because anything may be half done.
//!
//! A job that needs no wait, such as a read of what is in memory, is done when it is taken, without a future or a task; if the shard is
//! idle, the calling thread does it. Calls of a job to its own shard do not go through the queue either.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_channel::{Sender, TrySendError};
use runtime::{Loan, ShardOptions, ShardThread, boxed};

use super::borrowing::{self, borrow};
use super::folder::Locked;
use super::here::{Begun, begin_here, begin_here_to_end, is_here, look_here};
use super::pending::Pending;
use super::question::{Question, question};
use super::serving::{Questions, Served, serve};
use super::worker::Worker;
use crate::{Error, Result};

/// How many jobs wait for a shard before who asks waits as well.
const QUEUE: usize = 1024;

pub(super) type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// What has become of a question when it was asked.
pub(super) enum Work<T> {
    /// The answer is there.
    Done(T),
    /// It has to be waited for.
    Later(LocalFuture<Result<T>>),
}

/// The number of the next shard of the process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A shard as other threads see it.
pub(super) struct ShardHandle {
    number: u64,
    jobs: Sender<Question>,
    loan: Loan<Rc<Served>>,
    thread: Mutex<Option<ShardThread<Ended>>>,
}

/// How the thread of a shard ended, and the lock of the database, which is held until then.
type Ended = (Result<()>, Arc<Vec<Locked>>);

impl ShardHandle {
    /// Starts the thread of a shard. Whatever becomes of who starts it: until it has ended, and with it all that it has begun, the lock is
    /// held.
    pub(super) fn start(options: ShardOptions, locks: Arc<Vec<Locked>>) -> Result<ShardHandle> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (jobs, queue) = async_channel::bounded(QUEUE);
        let questions = Questions(queue);
        let main = async move |shard, lender| (serve(shard, lender, number, questions).await, locks);
        let (thread, loan) = runtime::start(options, main)?;
        Ok(ShardHandle { number, jobs, loan, thread: Mutex::new(Some(thread)) })
    }

    /// Does something on the shard.
    pub(super) fn call<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Worker>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        self.ask_at_length(move |worker| {
            let worker = worker.clone();
            Ok(Work::later(move || async move { work(worker).await }))
        })
    }

    /// Does something on the shard that is not to be left half done: whether or not somebody still waits for it.
    pub(super) fn call_to_end<T: Send + 'static>(
        &self,
        work: impl AsyncFnOnce(Rc<Worker>) -> Result<T> + Send + 'static,
    ) -> Pending<T> {
        let begin = move |worker: &Rc<Worker>| -> LocalFuture<Result<T>> {
            let worker = worker.clone();
            boxed(move || async move { work(worker).await })
        };
        match begin_here_to_end(self.number, begin) {
            Begun::Not(begin) => send(&self.jobs, move |worker| Ok(Work::Later(begin(worker)))),
            begun => begun.pending(self.number, &self.jobs),
        }
    }

    /// Does something on the shard that may not need to wait there, and then takes no longer than a page of rows. If the shard is at
    /// rest, or this is its thread, what needs no wait is done when this returns.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
    ) -> Pending<T> {
        match begin_here(self.number, work) {
            Begun::Not(work) => borrow(&self.loan, work).unwrap_or_else(|work| send(&self.jobs, work)),
            begun => begun.pending(self.number, &self.jobs),
        }
    }

    /// The same for what may take longer: who asks is free meanwhile.
    pub(super) fn ask_at_length<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
    ) -> Pending<T> {
        match begin_here(self.number, work) {
            Begun::Not(work) => send(&self.jobs, work),
            begun => begun.pending(self.number, &self.jobs),
        }
    }

    /// Looks at the shard on this thread, if it is at rest or this is its thread. The look needs no wait and runs nothing of a
    /// caller.
    #[inline]
    pub(super) fn look<R: Send>(&self, look: impl FnOnce(&Worker) -> R + Send) -> Option<R> {
        look_here(self.number, look).unwrap_or_else(|look| borrowing::look(&self.loan, look))
    }

    /// Takes nothing more. What was asked for before is done.
    pub(super) fn close(&self) {
        self.jobs.close();
    }

    /// Whether this thread has the floor of it.
    pub(super) fn is_here(&self) -> bool {
        is_here(self.number)
    }

    /// Waits until the thread has ended, which it does once it is closed, all is done, and the log is durable. Whoever waits first is told
    /// how it ended.
    pub(super) fn join(&self) -> Result<()> {
        if self.is_here() {
            return Err(Error::Usage("a database is not closed on one of its shards".to_owned()));
        }
        let thread = self.thread.lock().map_or(None, |mut thread| thread.take());
        match thread.map(ShardThread::join) {
            None => Ok(()),
            Some(Ok(ended)) => ended?.0,
            Some(Err(_)) => Err(Error::Closed("a shard of the database has panicked".to_owned())),
        }
    }
}

/// Puts work where a shard takes it from: at once where there is room.
pub(super) fn send<T: Send + 'static>(
    jobs: &Sender<Question>,
    work: impl FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
) -> Pending<T> {
    let (question, reply) = question(work);
    match jobs.try_send(question) {
        Err(TrySendError::Full(question)) => {
            let jobs = jobs.clone();
            Pending::new(async move {
                // Where the queue is closed, the question is dropped, and that is the answer.
                drop(jobs.send(question).await);
                reply.await
            })
        }
        Ok(()) | Err(TrySendError::Closed(_)) => Pending::sent(reply),
    }
}

impl<T> Work<T> {
    /// What a future will answer.
    ///
    /// It is made in a box: the future of a read has some kilobytes, which every layer around it would move.
    pub(super) fn later<F: Future<Output = Result<T>> + 'static>(work: impl FnOnce() -> F) -> Work<T> {
        Work::Later(boxed(work))
    }

    /// The answer, once it is there.
    pub(super) async fn answer(self) -> Result<T> {
        match self {
            Work::Done(done) => Ok(done),
            Work::Later(later) => later.await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::task::Poll;
    use std::thread;
    use std::time::Duration;

    use runtime::Signal;
    use send_wrapper::SendWrapper;

    use super::super::worker::ANSWERS_A_TURN;
    use super::*;

    fn shard() -> ShardHandle {
        ShardHandle::start(ShardOptions { io_uring: false, ..ShardOptions::default() }, Arc::default())
            .unwrap()
    }

    /// There is no such processor.
    #[test]
    fn who_asks_a_shard_that_cannot_start_is_told() {
        for _ in 0..20 {
            let options = ShardOptions { cpu: Some(usize::MAX), ..ShardOptions::default() };
            let shard = ShardHandle::start(options, Arc::default()).unwrap();
            let asked = [shard.call(async |_| Ok(())), shard.ask(|_| Ok(Work::Done(())))];
            for answer in asked {
                assert!(matches!(answer.wait(), Err(Error::Closed(_))));
            }
            assert!(!matches!(shard.join(), Ok(()) | Err(Error::Closed(_))), "it says why");
        }
    }

    #[test]
    fn the_lock_is_held_until_the_thread_has_ended() {
        let lock = Arc::new(vec![Locked::of_nobody()]);
        let held = Arc::downgrade(&lock);
        let shard = ShardHandle::start(ShardOptions::default(), lock).unwrap();
        let (goes_on, waits) = async_channel::bounded::<()>(1);
        let waits = async move |_| {
            waits.recv().await.expect_err("nothing is sent");
            Ok(())
        };
        let job = shard.call(waits).begun();
        // As if nobody wanted the database any more while it is opened.
        drop((job, shard));
        thread::sleep(std::time::Duration::from_millis(20));
        assert!(held.upgrade().is_some(), "a job is under way");
        drop(goes_on);
        while held.upgrade().is_some() {
            thread::yield_now();
        }
    }

    /// Tells on which thread it is dropped.
    struct Tells(std::sync::mpsc::Sender<thread::ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).expect("somebody listens");
        }
    }

    #[test]
    fn what_was_begun_on_the_shard_ends_there_wherever_it_is_waited_for_or_dropped() {
        let shard = Arc::new(shard());
        let (tells, told) = std::sync::mpsc::channel();
        let begin = || {
            let (inner, tells) = (shard.clone(), Tells(tells.clone()));
            let job = shard.call(async move |_| {
                let mut begun = inner.call(async move |_| {
                    let _tells = tells;
                    runtime::yield_now().await;
                    runtime::yield_now().await;
                    Ok(thread::current().id())
                });
                poll_fn(|context| Poll::Ready(Pin::new(&mut begun).poll(context).is_pending())).await;
                Ok((thread::current().id(), begun))
            });
            job.wait().unwrap()
        };
        let (own, begun) = begin();
        assert_eq!((begun.wait().unwrap(), told.recv().unwrap()), (own, own));
        let (own, begun) = begin();
        drop(begun);
        assert_eq!(told.recv().unwrap(), own);
        // Behind the end of the shard there is nowhere to go: it is forgotten.
        let (_, late) = begin();
        let (_, dropped) = begin();
        shard.close();
        shard.join().unwrap();
        assert!(matches!(late.wait(), Err(Error::Closed(_))));
        drop(dropped);
    }

    /// One that only begins something may wait for what that holds, and nobody else need poll it.
    #[test]
    fn what_is_begun_on_the_shard_goes_on_by_itself() {
        let shard = Arc::new(shard());
        let inner = shard.clone();
        let job = shard.call(async move |_| {
            let held = SendWrapper::new(Rc::new((Cell::new(false), Signal::new())));
            let waited_for = held.clone();
            let first = inner.call(async move |_| {
                runtime::sleep(Duration::from_millis(1)).await;
                held.0.set(true);
                held.1.notify();
                Ok(1)
            });
            let first = first.begun();
            let second = inner.call(async move |_| {
                waited_for.1.until(|| waited_for.0.get().then_some(())).await;
                Ok(2)
            });
            let second = runtime::timeout(Duration::from_secs(10), second).await.expect("it goes on")?;
            Ok([first.await?, second])
        });
        assert_eq!(job.wait().unwrap(), [1, 2]);
        let inner = shard.clone();
        let begin = async move |_| {
            let work = async |_| {
                runtime::sleep(Duration::from_millis(1)).await;
                Ok(3)
            };
            Ok(inner.call(work).begun())
        };
        let begun = shard.call(begin).wait().unwrap();
        shard.close();
        shard.join().unwrap();
        assert_eq!(begun.wait().unwrap(), 3, "it came to its end before the shard did");
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

    /// A thread that a question was begun on, once that is the one that asks.
    fn ask_at_rest<T: Send + 'static>(
        shard: &ShardHandle,
        work: impl Fn(&Rc<Worker>) -> Result<Work<T>> + Clone + Send + 'static,
    ) -> Pending<(thread::ThreadId, T)> {
        loop {
            let (work, asks) = (work.clone(), thread::current().id());
            let asked = shard.ask(move |worker| {
                let here = thread::current().id();
                match work(worker)? {
                    Work::Done(done) => Ok(Work::Done((here, done))),
                    Work::Later(later) => Ok(Work::later(move || async move { Ok((here, later.await?)) })),
                }
            });
            let answer = asked.wait().unwrap();
            if answer.0 == asks {
                return Pending::answered(Ok(answer));
            }
        }
    }

    #[test]
    fn a_shard_at_rest_is_looked_at_by_who_asks() {
        let shard = shard();
        let (there, ()) = ask_at_rest(&shard, |_| Ok(Work::Done(()))).wait().unwrap();
        assert_eq!(there, thread::current().id());
        // What cannot be ended there goes on on the shard.
        let later = |_: &Rc<Worker>| {
            Ok(Work::later(|| async {
                runtime::yield_now().await;
                Ok(thread::current().id())
            }))
        };
        let (begun, ended) = ask_at_rest(&shard, later).wait().unwrap();
        assert_eq!(begun, thread::current().id());
        assert_ne!(ended, begun);
        shard.close();
        shard.join().unwrap();
        assert!(matches!(shard.ask(|_| Ok(Work::Done(()))).wait(), Err(Error::Closed(_))));
    }

    #[test]
    fn a_look_is_a_call_from_the_shard_or_while_it_is_at_rest() {
        let shard = Arc::new(shard());
        let inner = shard.clone();
        let own = |_: &Worker| thread::current().id();
        let seen = shard.call(async move |_| Ok((inner.look(own), thread::current().id()))).wait().unwrap();
        assert_eq!(seen.0, Some(seen.1));
        let here = std::iter::repeat_with(|| shard.look(own)).find_map(|seen| seen);
        assert_eq!(here, Some(thread::current().id()));
        shard.close();
        shard.join().unwrap();
        assert_eq!(shard.look(own), None);
    }

    #[test]
    fn a_panic_in_a_look_is_an_error_for_who_asks_next() {
        let (shard, has_looked) = (shard(), AtomicBool::new(false));
        let look = |_: &Worker| {
            has_looked.store(true, Ordering::Relaxed);
            panic!("on purpose")
        };
        while !has_looked.load(Ordering::Relaxed) {
            assert_eq!(shard.look(look), None::<()>);
        }
        let late = shard.ask(|_| Ok(Work::Done(())));
        assert!(matches!(late.wait(), Err(Error::Closed(_))));
        assert!(shard.join().is_err());
    }

    /// An executor that polls a loop of reads of memory comes to its other futures nevertheless.
    #[test]
    fn who_looks_at_a_shard_again_and_again_lets_others_go_on() {
        let (shard, asks) = (shard(), thread::current().id());
        let (mut turns, mut in_a_row) = (0, 0);
        while turns < 3 {
            let mut asked = shard.ask(|_| Ok(Work::Done(thread::current().id())));
            let at_once = asked.at_hand().map(Result::unwrap);
            let answered = at_once.unwrap_or_else(|| asked.wait().unwrap());
            // A shard that was at work has answered by itself, and says nothing of who borrows it.
            let is_borrowed = answered == asks;
            turns += u64::from(is_borrowed && at_once.is_none());
            in_a_row = if is_borrowed && at_once.is_some() { in_a_row + 1 } else { 0 };
            assert!(in_a_row < ANSWERS_A_TURN);
        }
        shard.close();
        shard.join().unwrap();
    }

    /// Who has borrowed a shard asks it again: to wait for its queue would be to wait for itself.
    #[test]
    fn who_has_borrowed_a_shard_can_ask_it() {
        let shard = Arc::new(shard());
        let inner = shard.clone();
        let asks = thread::current().id();
        let nested = move |_: &Rc<Worker>| {
            if thread::current().id() != asks {
                return Ok(Work::Done((0, std::sync::Mutex::new(None))));
            }
            let done = inner.ask(|_| Ok(Work::Done(7))).at_hand().expect("it is done there")?;
            let later = inner.call(async |_| {
                runtime::yield_now().await;
                Ok(8)
            });
            Ok(Work::Done((done, std::sync::Mutex::new(Some(later)))))
        };
        let (_, (done, later)) = ask_at_rest(&shard, nested).wait().unwrap();
        let later = later.into_inner().unwrap().unwrap();
        assert_eq!((done, later.wait().unwrap()), (7, 8));
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
