//! The shards whose floor this thread has: that of which it is the thread, and those that it has borrowed.
//!
//! What is asked of that shard is done there and then: whoever waited for its queue would wait for itself.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::marker::PhantomData;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use async_channel::{Sender, TrySendError};
use runtime::boxed;
use send_wrapper::SendWrapper;

use super::pending::{Pending, is_begun_only};
use super::question::{Question, Reply, gone, question};
use super::serving::Served;
use super::shards::{LocalFuture, Work, send};
use super::worker::Worker;
use crate::Result;

thread_local! {
    /// The last one is the one at work.
    static HERE: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };

    /// How many they are, at any time: most threads have none, and see that at once.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

#[derive(Clone)]
struct Place {
    served: Rc<Served>,
    is_borrowed: bool,
}

/// This thread has the floor of a shard until this is dropped, however that comes: nothing of the shard stays behind then.
pub(super) struct Here {
    /// It ends where it began.
    stays: PhantomData<Rc<()>>,
}

impl Place {
    /// The shard brings the work to its end, whether or not somebody waits for it.
    fn run_to_end<T: Send + 'static>(&self, work: LocalFuture<Result<T>>) -> Reply<T> {
        match self.is_borrowed {
            true => self.served.hand_over(work),
            false => self.served.run_to_end(work),
        }
    }
}

impl Here {
    pub(super) fn begin(served: &Rc<Served>, is_borrowed: bool) -> Here {
        HERE.with_borrow_mut(|here| here.push(Place { served: served.clone(), is_borrowed }));
        COUNT.set(COUNT.get() + 1);
        Here { stays: PhantomData }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        COUNT.set(COUNT.get() - 1);
        // It is dropped behind the borrow: what goes with it may look here.
        let _last = HERE.with_borrow_mut(Vec::pop);
    }
}

/// What has become of a question where it was asked.
pub(super) enum Begun<T, W> {
    Done(Result<T>),
    /// What is left does not leave this thread: whoever polls it is mostly a job of the shard.
    Later(SendWrapper<LocalFuture<Result<T>>>),
    /// What is left was handed over to the shard.
    Handed(Reply<T>),
    /// This is not the shard that it was for.
    Not(W),
}

impl<T: Send + 'static, W> Begun<T, W> {
    /// The answer to come, of the shard of that number; `jobs` is its queue.
    ///
    /// # Panics
    /// If it was not begun.
    pub(super) fn pending(self, number: u64, jobs: &Sender<Question>) -> Pending<T> {
        match self {
            Begun::Done(done) => Pending::answered(done),
            Begun::Later(later) => {
                let work = Some(Stray(Some(later)));
                Pending::new(AtHome { work, number, jobs: jobs.clone(), sent: None })
            }
            Begun::Handed(reply) => Pending::sent(reply),
            Begun::Not(_) => panic!("it was not begun"),
        }
    }
}

/// What was begun on the shard's own thread, and ends there. Who polls it there does the work meanwhile; who only begins it leaves that to
/// a task of the shard, as others may wait for what it holds; and who polls it elsewhere sends it back, and waits for the answer.
struct AtHome<T: Send + 'static> {
    work: Option<Stray<T>>,
    /// Whose it is.
    number: u64,
    jobs: Sender<Question>,
    sent: Option<Pending<T>>,
}

/// A future of the shard's own thread, maybe elsewhere. If it is dropped there it is forgotten: that happens once the shard has ended.
struct Stray<T>(Option<SendWrapper<LocalFuture<Result<T>>>>);

impl<T: Send + 'static> Future for AtHome<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        if let Some(work) = self.work.as_mut().and_then(Stray::at_home) {
            let polled = work.as_mut().poll(context);
            let Some(Place { served, .. }) = place_to_go_on(self.number, &polled) else { return polled };
            let work = self.work.take().expect("it was polled").taken();
            self.sent = Some(Pending::sent(served.run_to_end(work)));
        }
        if let Some(work) = self.work.take() {
            self.sent = Some(send(&self.jobs, move |_| Ok(Work::Later(work.taken()))));
        }
        Pin::new(self.sent.as_mut().expect("it is at home, or was sent there")).poll(context)
    }
}

impl<T: Send + 'static> Drop for AtHome<T> {
    fn drop(&mut self) {
        let Some(work) = self.work.take().filter(|work| !work.is_at_home()) else { return };
        let (question, _) = question(move |_| {
            drop(work.taken());
            Ok(Work::Done(()))
        });
        if let Err(TrySendError::Full(question)) = self.jobs.try_send(question) {
            match HERE.with_borrow(|here| here.last().cloned()) {
                None => drop(self.jobs.send_blocking(question)),
                // Who has the floor of a shard might wait for itself: that shard sends it once there is room.
                Some(place) => drop(place.run_to_end(send_later(self.jobs.clone(), question))),
            }
        }
    }
}

impl<T> Stray<T> {
    fn is_at_home(&self) -> bool {
        self.0.as_ref().is_some_and(SendWrapper::valid)
    }

    fn at_home(&mut self) -> Option<&mut LocalFuture<Result<T>>> {
        self.0.as_mut().filter(|work| work.valid()).map(|work| &mut **work)
    }

    /// The future.
    ///
    /// # Panics
    /// If this is not its thread.
    fn taken(mut self) -> LocalFuture<Result<T>> {
        self.0.take().expect("it is taken once").take()
    }
}

impl<T> Drop for Stray<T> {
    fn drop(&mut self) {
        if let Some(work) = self.0.take().filter(|work| !work.valid()) {
            mem::forget(work);
        }
    }
}

/// Work that is brought to its end whether or not somebody still waits for it, if this thread has the floor of the shard of that number.
pub(super) fn begin_here_to_end<T: Send + 'static, W>(number: u64, work: W) -> Begun<T, W>
where
    W: FnOnce(&Rc<Worker>) -> LocalFuture<Result<T>> + 'static,
{
    match place_of(number) {
        Some(Place { served, .. }) if served.worker.has_failed() => Begun::Done(Err(gone())),
        Some(place) => Begun::Handed(place.run_to_end(work(&place.served.worker))),
        None => Begun::Not(work),
    }
}

fn send_later(jobs: Sender<Question>, question: Question) -> LocalFuture<Result<()>> {
    boxed(move || async move {
        drop(jobs.send(question).await);
        Ok(())
    })
}

/// Work that is done where it is asked for, if this is the shard of that number.
pub(super) fn begin_here<T: Send + 'static, W>(number: u64, work: W) -> Begun<T, W>
where
    W: FnOnce(&Rc<Worker>) -> Result<Work<T>> + 'static,
{
    let Some(Place { served, is_borrowed }) = place_of(number) else { return Begun::Not(work) };
    let worker = &served.worker;
    if is_borrowed && worker.has_failed() {
        return Begun::Done(Err(gone()));
    }
    if !is_borrowed && worker.is_turn_over() {
        // What is in memory is read without a wait: a loop of that would let nobody else go on.
        let worker = worker.clone();
        return Begun::Later(SendWrapper::new(boxed(move || async move {
            runtime::yield_now().await;
            work(&worker)?.answer().await
        })));
    }
    match work(worker) {
        Ok(Work::Done(done)) => Begun::Done(Ok(done)),
        Ok(Work::Later(later)) if is_borrowed => Begun::Handed(served.hand_over(later)),
        Ok(Work::Later(later)) => Begun::Later(SendWrapper::new(later)),
        Err(error) => Begun::Done(Err(error)),
    }
}

/// Looks at the shard of that number, if this thread has the floor of it; the look is given back if not. It runs nothing of a caller.
#[inline]
pub(super) fn look_here<R, L>(number: u64, look: L) -> std::result::Result<Option<R>, L>
where
    L: FnOnce(&Worker) -> R,
{
    if !has_floor() {
        return Err(look);
    }
    HERE.with_borrow(|here| {
        let Some(Place { served, .. }) = here.iter().find(|here| here.served.number == number) else {
            return Err(look);
        };
        Ok((!served.worker.has_failed()).then(|| look(&served.worker)))
    })
}

/// Whether this thread has the floor of any shard.
#[inline]
pub(super) fn has_floor() -> bool {
    COUNT.get() != 0
}

/// Whether this thread has the floor of the shard of that number.
pub(super) fn is_here(number: u64) -> bool {
    HERE.with_borrow(|here| here.iter().any(|here| here.served.number == number))
}

/// Where what was polled goes on, if it has not come to its end and who polls it does not wait for that.
fn place_to_go_on<T>(number: u64, polled: &Poll<T>) -> Option<Place> {
    if polled.is_pending() && is_begun_only() { place_of(number) } else { None }
}

fn place_of(number: u64) -> Option<Place> {
    HERE.with_borrow(|here| here.iter().find(|here| here.served.number == number).cloned())
}
