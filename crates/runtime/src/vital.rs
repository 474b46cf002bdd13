//! Tasks that a shard cannot be without: where one of them panics, so does the shard, and whoever waits for it is told.
//!
//! What awaits a task panics with it. Nobody awaits those that write a log or flush by themselves: without this their panic would be
//! known to nobody, and what they serve would wait for ever.

use std::any::Any;
use std::cell::RefCell;
use std::future::{Future, pending, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Poll, Waker};
use std::thread;

use crate::sim::in_simulation;
use crate::task::{Task, spawn};

type Panic = Box<dyn Any + Send>;

/// What the main future of this thread's shard is to know.
struct News {
    main: Waker,
    panic: Option<Panic>,
}

thread_local! {
    static NEWS: RefCell<Option<News>> = const { RefCell::new(None) };
}

/// Starts a task as [`spawn`] does. If it panics the shard does, as if its `main` had.
///
/// # Panics
/// As [`spawn`] does.
pub fn spawn_vital<F: Future + 'static>(future: F) -> Task<F::Output> {
    if in_simulation() {
        // The whole run panics by itself.
        return spawn(future);
    }
    // It may be large, and would be moved once more.
    let future = Box::pin(future);
    spawn(async {
        match caught(future).await {
            Ok(output) => output,
            Err(panic) => {
                NEWS.with_borrow_mut(|news| {
                    let news = news.as_mut().expect("tasks run where a main future does");
                    news.panic.get_or_insert(panic);
                    news.main.wake_by_ref();
                });
                // Whoever awaits it ends with the shard.
                pending().await
            }
        }
    })
}

/// The output of a shard's main future, or what it or a vital task panicked with.
pub(crate) async fn main_caught<T>(main: impl Future<Output = T>) -> thread::Result<T> {
    let mut main = pin!(caught(main));
    let result = poll_fn(|context| {
        let panic = NEWS.with_borrow_mut(|news| {
            let waker = || News { main: context.waker().clone(), panic: None };
            news.get_or_insert_with(waker).panic.take()
        });
        match panic {
            Some(panic) => Poll::Ready(Err(panic)),
            None => main.as_mut().poll(context),
        }
    });
    result.await
}

/// The output of a future, or what it panicked with.
async fn caught<T>(future: impl Future<Output = T>) -> thread::Result<T> {
    let mut future = pin!(future);
    poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .map_or_else(|panic| Poll::Ready(Err(panic)), |polled| polled.map(Ok))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{ShardOptions, SimOptions, run, run_simulated, sleep};

    /// What a run panics with that would wait for ever.
    fn panic_of(main: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(main)).unwrap_err();
        panic.downcast_ref::<&str>().copied().unwrap_or("another panic").to_owned()
    }

    #[test]
    fn a_shard_ends_with_what_it_cannot_be_without() {
        for io_uring in [false, true] {
            let options = ShardOptions { io_uring, ..ShardOptions::default() };
            let said = panic_of(|| {
                let main = async |_| {
                    let _held = spawn_vital(async {
                        sleep(Duration::from_millis(1)).await;
                        panic!("the writer is gone");
                    });
                    pending::<()>().await;
                };
                run(options, main).unwrap();
            });
            assert_eq!(said, "the writer is gone");
        }
        let said = panic_of(|| {
            let main = async |_| {
                spawn_vital(async { panic!("the writer is gone") }).await;
            };
            run_simulated(SimOptions::default(), main).unwrap();
        });
        assert_eq!(said, "the writer is gone");
    }

    #[test]
    fn one_that_ends_is_a_task_as_any_other() {
        let sum =
            run(ShardOptions::default(), async |_| spawn_vital(async { 3 }).await + spawn(async { 4 }).await);
        assert_eq!(sum.unwrap(), 7);
    }
}
