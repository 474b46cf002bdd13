//! An idle shard, borrowed by the calling thread: it looks into the shard's memory at once, and if it waits for the answer, it also makes
//! the disk reads.

#![expect(unsafe_code, reason = "who borrows a shard promises to leave nothing of it behind")]

use std::panic::{self, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use async_channel::Receiver;
use runtime::{Borrowed, Lender, Loan};

use super::here::Here;
use super::pending::Pending;
use super::question::{Question, gone};
use super::serving::Served;
use super::shards::{LocalFuture, Work};
use super::spin::spin;
use super::worker::Worker;
use crate::Result;

/// Begins work on this thread, if the shard is at rest; the work again if it is not. What has to be waited for goes on on the shard.
///
/// The work asks nothing of the shard's disk or timers and spawns no task before it is a future, nor does that while it is polled in
/// place but to read.
pub(super) fn borrow<T: Send + 'static, W>(
    loan: &Loan<Rc<Served>>,
    work: W,
) -> std::result::Result<Pending<T>, W>
where
    W: FnOnce(&Rc<Worker>) -> Result<Work<T>> + Send + 'static,
{
    // SAFETY: what the work has and what it answers is `Send`, and a future that it leaves behind goes to the shard. The
    // thread-local of `Here` is empty again before this ends, no other one of ours has anything that is not `Send`, what
    // is begun here and waits for nothing does not come to the shard's runtime, and a future is polled in place.
    let Some(served) = (unsafe { loan.borrow() }) else { return Err(work) };
    if served.worker.has_failed() || served.is_full() {
        return Err(work);
    }
    let here = Here::begin(&served, true);
    let begin = || match work(&served.worker)? {
        Work::Later(later) => wait_here(&served, later),
        done => Ok(done),
    };
    let answer = match panic::catch_unwind(AssertUnwindSafe(begin)) {
        Ok(Ok(Work::Done(done))) => served.worker.in_turn(Ok(done)),
        Ok(Ok(Work::Later(later))) => Pending::sent(served.hand_over(later)),
        Ok(Err(error)) => Pending::answered(Err(error)),
        // As on the shard: it goes, and all who wait are told.
        Err(_) => {
            served.fail();
            Pending::answered(Err(gone()))
        }
    };
    drop(here);
    Ok(answer)
}

/// Goes on with work for which this thread waits: as far as it needs one request after the other, and nobody else wants the shard.
fn wait_here<T>(served: &Borrowed<'_, Rc<Served>>, mut later: LocalFuture<Result<T>>) -> Result<Work<T>> {
    // Within a function that is shown rows in place there may be somebody else who does not wait.
    let is_alone = runtime::is_waiting() && !runtime::is_in_place();
    if !is_alone || !served.patience.has_any() {
        return Ok(Work::Later(later));
    }
    let polled = runtime::poll_in_place(later.as_mut());
    served.patience.note(served.is_wanted(), runtime::took_in_place());
    match polled {
        Poll::Ready(answer) => Ok(Work::Done(answer?)),
        Poll::Pending => Ok(Work::Later(later)),
    }
}

/// Looks at a shard on this thread, if it is at rest.
///
/// The look asks nothing of the shard's disk or timers, spawns no task, and runs nothing of a caller who may ask the database
/// for more.
#[inline]
pub(super) fn look<R: Send>(loan: &Loan<Rc<Served>>, look: impl FnOnce(&Worker) -> R + Send) -> Option<R> {
    // SAFETY: what the look has and what it comes to is `Send`; it begins nothing that would go on, and no thread-local knows
    // of it.
    let served = unsafe { loan.borrow() }?;
    if served.worker.has_failed() {
        return None;
    }
    let seen = panic::catch_unwind(AssertUnwindSafe(|| look(&served.worker)));
    // Who asks next is told.
    seen.map_err(|_| served.fail()).ok()
}

/// Looks for a while whether anybody calls, by the queue or by having handed something over; the shard may be borrowed meanwhile.
pub(super) fn look_out(
    lender: &Lender<Rc<Served>>,
    queue: &Receiver<Question>,
    is_called: &AtomicBool,
) -> bool {
    let look = || (!queue.is_empty() || is_called.load(Ordering::Acquire)).then_some(());
    // SAFETY: both are looked at by several threads anyway, and to look wakes nobody. Whoever serves has no reference into what is lent
    // that a borrower would not share.
    unsafe { lender.leave(|| spin(look)) }.is_some()
}
