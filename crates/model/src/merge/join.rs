//! Waiting for several sources at once: their disk requests run side by side.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs the futures to their ends, also where one fails: a request under way is not to be abandoned. The
/// first error is given.
pub(super) async fn all<E>(
    futures: impl Iterator<Item = impl Future<Output = Result<(), E>>>,
) -> Result<(), E> {
    let mut futures = futures;
    let Some(first) = futures.next() else {
        return Ok(());
    };
    let Some(second) = futures.next() else {
        return first.await;
    };
    let mut waiting: Vec<_> = [first, second].into_iter().chain(futures).map(Box::pin).collect();
    let mut outcome = Ok(());
    poll_fn(|context| poll_each(&mut waiting, &mut outcome, context)).await;
    outcome
}

/// Polls each, and forgets those at their end.
fn poll_each<E, F: Future<Output = Result<(), E>>>(
    waiting: &mut Vec<Pin<Box<F>>>,
    outcome: &mut Result<(), E>,
    context: &mut Context<'_>,
) -> Poll<()> {
    waiting.retain_mut(|future| match future.as_mut().poll(context) {
        Poll::Pending => true,
        Poll::Ready(result) => {
            if outcome.is_ok() {
                *outcome = result;
            }
            false
        }
    });
    if waiting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
}
