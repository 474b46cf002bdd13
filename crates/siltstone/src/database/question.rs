//! A question to a shard and its answer, in one allocation that both threads share.
//!
//! ```text
//!                 ┌──── Exchange: the work, then its result ────┐
//! caller: Reply ──┘                                             └── Question: queue ──► shard
//! ```
//!
//! The caller allocates it, and the shard lets go of it first, so that the same thread allocates and frees it. Two threads that free each
//! other's memory wait for each other in the allocator, for longer than a read from memory takes.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use runtime::boxed;

use super::shards::{LocalFuture, Work};
use super::worker::Worker;
use crate::{Error, Result};

/// What a shard is asked, which it takes and begins. If it does not come to that, who asks is told.
pub(super) struct Question(Option<Arc<dyn Asked>>);

/// A future of the answer; [`Error::Closed`] if none will come.
pub(super) struct Reply<T>(Arc<dyn Answered<T>>);

/// A question, and the answer to come.
pub(super) fn question<T, W>(work: W) -> (Question, Reply<T>)
where
    T: Send + 'static,
    W: FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
{
    let exchange = Arc::new(Exchange(Mutex::new(Inside { state: State::Asked(work), waker: None })));
    (Question(Some(exchange.clone())), Reply(exchange))
}

/// What goes on already, as the shard polls it, and the answer to come.
pub(super) fn begun<T: Send + 'static>(work: LocalFuture<Result<T>>) -> (LocalFuture<()>, Reply<T>) {
    let exchange: Arc<Exchange<(), T>> =
        Arc::new(Exchange(Mutex::new(Inside { state: State::Begun, waker: None })));
    let answerer = Answerer(Some(exchange.clone()));
    (boxed(move || async move { answerer.answer(work.await) }), Reply(exchange))
}

/// That nobody answers.
pub(super) fn gone() -> Error {
    Error::Closed("the database is closed, or a shard of it has failed".to_owned())
}

impl Question {
    /// Does what needs no wait. What is left is to be polled on this thread; none if the answer was given.
    pub(super) fn begin(mut self, worker: &Rc<Worker>) -> Option<LocalFuture<()>> {
        self.0.take()?.begin(worker)
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(asked) = self.0.take() {
            asked.give_up();
        }
    }
}

impl<T> Future for Reply<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.0.poll_answer(context)
    }
}

/// What a shard sees of an exchange.
trait Asked: Send + Sync {
    fn begin(self: Arc<Self>, worker: &Rc<Worker>) -> Option<LocalFuture<()>>;

    fn give_up(self: Arc<Self>);
}

/// What who asks sees of it.
trait Answered<T>: Send + Sync {
    fn poll_answer(&self, context: &mut Context<'_>) -> Poll<Result<T>>;
}

struct Exchange<W, T>(Mutex<Inside<W, T>>);

struct Inside<W, T> {
    state: State<W, T>,
    /// Of who waits for the answer.
    waker: Option<Waker>,
}

enum State<W, T> {
    Asked(W),
    Begun,
    Answered(Result<T>),
    /// The answer was taken.
    Over,
}

impl<W, T> Exchange<W, T> {
    fn inside<R>(&self, act: impl FnOnce(&mut Inside<W, T>) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<W, T> Asked for Exchange<W, T>
where
    T: Send + 'static,
    W: FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
{
    fn begin(self: Arc<Self>, worker: &Rc<Worker>) -> Option<LocalFuture<()>> {
        let State::Asked(work) = self.inside(|inside| mem::replace(&mut inside.state, State::Begun)) else {
            unreachable!("a question is begun once")
        };
        let answerer = Answerer(Some(self));
        match work(worker) {
            Ok(Work::Later(later)) => {
                return Some(boxed(move || async move { answerer.answer(later.await) }));
            }
            Ok(Work::Done(done)) => answerer.answer(Ok(done)),
            Err(error) => answerer.answer(Err(error)),
        }
        None
    }

    fn give_up(self: Arc<Self>) {
        drop(Answerer(Some(self)));
    }
}

impl<W: Send, T: Send> Answered<T> for Exchange<W, T> {
    fn poll_answer(&self, context: &mut Context<'_>) -> Poll<Result<T>> {
        self.inside(|inside| match &inside.state {
            State::Asked(_) | State::Begun => {
                match &mut inside.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    none => *none = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            State::Answered(_) => match mem::replace(&mut inside.state, State::Over) {
                State::Answered(answer) => Poll::Ready(answer),
                _ => unreachable!("it was just looked at"),
            },
            State::Over => panic!("an answer is taken once"),
        })
    }
}

/// Owes an answer: if it is dropped without, as by a panic or with its shard, that is the answer.
struct Answerer<W, T>(Option<Arc<Exchange<W, T>>>);

impl<W, T> Answerer<W, T> {
    fn answer(mut self, answer: Result<T>) {
        self.put(answer);
    }

    fn put(&mut self, answer: Result<T>) {
        let Some(exchange) = self.0.take() else { return };
        let (before, waker) = exchange
            .inside(|inside| (mem::replace(&mut inside.state, State::Answered(answer)), inside.waker.take()));
        // Who is woken shall be the last that has it.
        drop(exchange);
        drop(before);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<W, T> Drop for Answerer<W, T> {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.put(Err(gone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::super::Pending;
    use super::*;

    /// Notes how many had the exchange when it was woken.
    struct Counts {
        exchange: Arc<Exchange<(), i32>>,
        seen: AtomicUsize,
    }

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            self.seen.store(Arc::strong_count(&self.exchange), Ordering::Relaxed);
        }
    }

    #[test]
    fn a_question_that_nobody_takes_is_answered() {
        let (question, reply) = question::<i32, _>(|_| Ok(Work::Done(7)));
        drop(question);
        assert!(matches!(Pending::sent(reply).wait(), Err(Error::Closed(_))));
    }

    #[test]
    fn who_is_woken_is_the_last_to_have_the_exchange() {
        let exchange = Arc::new(Exchange(Mutex::new(Inside { state: State::Begun, waker: None })));
        let counts = Arc::new(Counts { exchange: exchange.clone(), seen: AtomicUsize::default() });
        let waker = Waker::from(counts.clone());
        let mut context = Context::from_waker(&waker);
        assert!(exchange.poll_answer(&mut context).is_pending());
        Answerer(Some(exchange.clone())).answer(Ok(7));
        // This test and the waker: the answerer has let go.
        assert_eq!(counts.seen.load(Ordering::Relaxed), 2);
        assert!(matches!(exchange.poll_answer(&mut context), Poll::Ready(Ok(7))));
    }

    #[test]
    fn who_owes_an_answer_and_goes_away_has_given_it() {
        let exchange: Arc<Exchange<(), i32>> =
            Arc::new(Exchange(Mutex::new(Inside { state: State::Begun, waker: None })));
        drop(Answerer(Some(exchange.clone())));
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(exchange.poll_answer(&mut context), Poll::Ready(Err(Error::Closed(_)))));
    }
}
