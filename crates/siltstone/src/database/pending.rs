//! What a database will answer: a future for any executor, or a wait for a plain thread.

use std::cell::Cell;
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use super::here::has_floor;
use super::question::Reply;
use super::spin::spin;
use crate::{Error, Result};

/// An answer that is on its way.
///
/// It is a future that any executor can poll: whatever wakes it may come from another thread. [`Pending::wait`] is for
/// threads without an executor. Nothing happens before it is polled, waited for or [begun](Pending::begun), but that a row which is in
/// memory may have been looked up by the call. If it is dropped after that, what was asked for is done or not.
///
/// ```
/// # use siltstone::database::{Database, Options};
/// # let folder = tempfile::tempdir()?;
/// let pending = Database::open(folder.path(), Options { shards: 1, ..Options::default() });
/// let database = pending.wait()?;
/// # database.close().wait()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing happens until it is awaited or waited for"]
pub struct Pending<T>(State<T>);

enum State<T> {
    /// Nobody has polled it: what comes of it is what this makes.
    Asked(Box<dyn FnOnce() -> Pending<T> + Send>),
    /// A shard was asked.
    Sent(Reply<T>),
    Waiting(Pin<Box<dyn Future<Output = Result<T>> + Send>>),
    /// The answer is there, and others go on first.
    Yielding(Answer<T>),
    /// `None` once it was taken.
    Answered(Option<Answer<T>>),
}

thread_local! {
    /// Whether this thread begins something that it will not wait for.
    static BEGINS: Cell<bool> = const { Cell::new(false) };
}

/// Whether what is polled now is only [begun](Pending::begun): who polls it may wait for something else before it comes back, and that
/// must not wait for this.
pub(super) fn is_begun_only() -> bool {
    BEGINS.get()
}

/// An answer that is as small as what most are: it is moved more often than looked at.
type Answer<T> = std::result::Result<T, Box<Error>>;

impl<T> Pending<T> {
    pub(super) fn new(future: impl Future<Output = Result<T>> + Send + 'static) -> Pending<T> {
        Pending(State::Waiting(Box::pin(future)))
    }

    /// What this makes once it is polled.
    pub(super) fn asked(ask: impl FnOnce() -> Pending<T> + Send + 'static) -> Pending<T> {
        Pending(State::Asked(Box::new(ask)))
    }

    /// What a shard answers.
    pub(super) fn sent(reply: Reply<T>) -> Pending<T> {
        Pending(State::Sent(reply))
    }

    /// The answer is there.
    pub(super) fn answered(answer: Result<T>) -> Pending<T> {
        Pending(State::Answered(Some(answer.map_err(Box::new))))
    }

    /// The answer is there, but who polls it is to let others go on first.
    pub(super) fn after_others(answer: Result<T>) -> Pending<T> {
        Pending(State::Yielding(answer.map_err(Box::new)))
    }

    /// The answer, if it needs no wait.
    pub(super) fn at_hand(&mut self) -> Option<Result<T>> {
        match &mut self.0 {
            State::Answered(answer) => Some(answer.take()?.map_err(|error| *error)),
            State::Asked(_) | State::Sent(_) | State::Waiting(_) | State::Yielding(_) => None,
        }
    }

    /// Begins what would otherwise begin when it is first polled, and does not wait for it: the shards are at work while this
    /// thread does something else, and several may be under way. Reads of what is in memory may be done when it comes back. They
    /// are in no order: of two writes to one row, the later one is to be begun when the earlier one has answered. Where it
    /// takes several shards or steps it goes on to its end only if it is polled or waited for.
    ///
    /// ```
    /// # use siltstone::database::{Batch, Database, Options, Write};
    /// # let folder = tempfile::tempdir()?;
    /// # let database = Database::open(folder.path(), Options { shards: 1, ..Options::default() }).wait()?;
    /// let squares = database.create_table("CREATE TABLE ks.squares (n int PRIMARY KEY, s int)").wait()?;
    /// let batch = |from| (from..from + 100).map(|n| Write::insert(n, ()).set("s", n * n)).collect::<Batch>();
    /// let mut before = squares.write(batch(0)).begun();
    /// for from in [100, 200, 300] {
    ///     let next = squares.write(batch(from)).begun();
    ///     std::mem::replace(&mut before, next).wait()?;
    /// }
    /// before.wait()?;
    /// # database.close().wait()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn begun(self) -> Pending<T> {
        struct Begins(bool);
        impl Drop for Begins {
            fn drop(&mut self) {
                BEGINS.set(self.0);
            }
        }
        let _begins = Begins(BEGINS.replace(true));
        self.polled_once()
    }

    /// What its first poll leaves.
    fn polled_once(mut self) -> Pending<T> {
        match Pin::new(&mut self).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Pending::answered(answer),
            Poll::Pending => self,
        }
    }

    /// Blocks this thread until the answer is there. Not for a thread that has to poll other futures meanwhile.
    ///
    /// # Errors
    /// Those of what was asked for. [`Error::Usage`] in [`Database::run_on`](super::Database::run_on), and in a function that is
    /// shown rows: what does the work of a shard would wait for itself. What was not [begun](Pending::begun) is not done then.
    pub fn wait(self) -> Result<T> {
        if has_floor() {
            let what = "this thread does the work of a shard, which must not block: await the answer instead";
            return Err(Error::Usage(what.to_owned()));
        }
        match self.0 {
            State::Answered(Some(Ok(answer))) => Ok(answer),
            // What is in memory is answered by the first look, and what has to be read may be read by this thread: nobody has
            // to be woken for either.
            state => runtime::waiting(|| {
                let mut begun = Pending(state).polled_once();
                begun.at_hand().unwrap_or_else(|| block_on(begun))
            }),
        }
    }

    /// Polls what has not answered, or with an error.
    #[inline(never)]
    fn poll_further(&mut self, context: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut self.0 {
            State::Sent(reply) => return Pin::new(reply).poll(context),
            State::Waiting(future) => return future.as_mut().poll(context),
            State::Answered(answer) => {
                let answer = answer.take().expect("what has answered is not polled again");
                return Poll::Ready(answer.map_err(|error| *error));
            }
            State::Asked(_) | State::Yielding(_) => {}
        }
        match mem::replace(&mut self.0, State::Answered(None)) {
            State::Asked(ask) => {
                *self = ask();
                Pin::new(self).poll(context)
            }
            State::Yielding(answer) => {
                self.0 = State::Answered(Some(answer));
                context.waker().wake_by_ref();
                Poll::Pending
            }
            State::Sent(_) | State::Waiting(_) | State::Answered(_) => {
                unreachable!("the others were dealt with")
            }
        }
    }
}

/// No part of it is pinned but what is in a box.
impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        // An error, which is larger than most answers, would have them moved as if they were errors.
        if let State::Answered(answer @ Some(Ok(_))) = &mut self.0
            && let Some(Ok(answer)) = answer.take()
        {
            return Poll::Ready(Ok(answer));
        }
        self.poll_further(context)
    }
}

/// Polls a future on this thread until it is ready.
fn block_on<F: Future>(future: F) -> F::Output {
    let wakeup = Arc::new(Wakeup { thread: thread::current(), has_come: AtomicBool::new(false) });
    let waker = Waker::from(wakeup.clone());
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let has_come = || wakeup.has_come.swap(false, Ordering::Acquire).then_some(());
        while spin(has_come).is_none() {
            thread::park();
        }
    }
}

/// Wakes a thread that spins or is parked.
struct Wakeup {
    thread: Thread,
    has_come: AtomicBool,
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.has_come.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_thread_waits_for_another_one() {
        let (sender, receiver) = async_channel::bounded(1);
        let pending = Pending::new(async move { Ok(receiver.recv().await.unwrap_or(0)) });
        let other = thread::spawn(move || sender.send_blocking(7));
        assert_eq!(pending.wait().unwrap(), 7);
        other.join().unwrap().unwrap();
        let asked = Pending::asked(|| Pending::asked(|| Pending::new(async { Ok(7) })));
        assert_eq!(asked.wait().unwrap(), 7);
        let failed: Pending<()> = Pending::new(async { Err(Error::Usage("no".to_owned())) });
        assert_eq!(failed.wait().unwrap_err().to_string(), "no");
        let refused = || Pending::<()>::answered(Err(Error::Usage("no".to_owned())));
        let after_others = Pending::<()>::after_others(Err(Error::Usage("no".to_owned())));
        for pending in [refused(), refused().begun(), Pending::asked(refused), after_others] {
            assert_eq!(pending.wait().unwrap_err().to_string(), "no");
        }
    }

    #[test]
    fn nothing_is_asked_before_it_is_polled() {
        let is_asked = Arc::new(AtomicBool::new(false));
        let asks = is_asked.clone();
        let mut pending = Pending::asked(move || {
            asks.store(true, Ordering::Relaxed);
            Pending::answered(Ok(7))
        });
        assert!(pending.at_hand().is_none() && !is_asked.load(Ordering::Relaxed));
        assert_eq!(pending.wait().unwrap(), 7);
        assert!(is_asked.load(Ordering::Relaxed));
        assert_eq!(Pending::answered(Ok(7)).at_hand().unwrap().unwrap(), 7);
    }

    #[test]
    fn others_go_on_before_an_answer_that_yields() {
        let mut pending = Pending::after_others(Ok(7));
        assert!(pending.at_hand().is_none());
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut pending).poll(&mut context).is_pending());
        assert!(matches!(Pin::new(&mut pending).poll(&mut context), Poll::Ready(Ok(7))));
        assert_eq!(Pending::after_others(Ok(8)).wait().unwrap(), 8);
    }

    #[test]
    fn what_is_begun_is_asked_once_and_answers_who_waits() {
        let (sender, receiver) = async_channel::bounded(1);
        let is_asked = Arc::new(AtomicBool::new(false));
        let asks = is_asked.clone();
        let begun = Pending::asked(move || {
            assert!(!asks.swap(true, Ordering::Relaxed), "it was asked before");
            Pending::new(async move { Ok(receiver.recv().await.unwrap_or(0)) })
        })
        .begun();
        assert!(is_asked.load(Ordering::Relaxed));
        let other = thread::spawn(move || sender.send_blocking(7));
        assert_eq!(begun.wait().unwrap(), 7);
        other.join().unwrap().unwrap();
        assert_eq!(Pending::asked(|| Pending::answered(Ok(8))).begun().at_hand().unwrap().unwrap(), 8);
    }
}
