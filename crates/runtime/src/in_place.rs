//! Disk reads made by the thread that waits for them, which has nothing else to do meanwhile.
//!
//! If a thread waits for a future, and the shard's thread waits for the disk, two threads go to sleep and two are woken where one would do.
//! So a thread that has borrowed a shard and *waits* makes the requests of its future itself, one after the other, each by one system call:
//!
//! ```text
//! the caller ──poll─┬────pread────┬─► ready                  the shard sleeps
//!                   │ several requests in parallel, or anything but a read
//!                   └─► pending: the shard continues, and begins the requests
//! ```
//!
//! Requests of parallel futures would wait for each other here, so [`join_all`](crate::join_all) leaves them to the shard.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread::LocalKey;
use std::time::{Duration, Instant};

/// So many requests are made in place for one poll: a shard that is borrowed for longer keeps others waiting.
const MOST_REQUESTS: u32 = 8;

/// One of so many is timed: to look at the clock twice takes as long as a hundredth of a request.
const TIMED: u32 = 16;

thread_local! {
    /// Whether this thread waits for what it does, and has one thing to do.
    static IS_WAITING: Cell<bool> = const { Cell::new(false) };

    /// Whether it polls a future in place.
    static IS_IN_PLACE: Cell<bool> = const { Cell::new(false) };

    /// How many requests it may still make for that.
    static REQUESTS_LEFT: Cell<u32> = const { Cell::new(0) };

    /// How many requests this thread has made in place, and how long the last one took that was timed, unless that was told.
    static MADE: Cell<u32> = const { Cell::new(0) };
    static TOOK: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Does something that this thread waits for: it has nothing else to do until that is done, and may block for it.
#[inline]
pub fn waiting<R>(act: impl FnOnce() -> R) -> R {
    with(&IS_WAITING, true, act)
}

/// Whether this thread waits, and for one thing.
#[inline]
pub fn is_waiting() -> bool {
    IS_WAITING.get()
}

/// Polls a future of a shard that this thread has borrowed, and for which it [waits](waiting). It makes the requests of reads that are
/// alone. Pending is what has to go on on the shard: nothing is woken, and what is polled there begins what is left.
///
/// The future spawns nothing while it is [in place](is_in_place).
pub fn poll_in_place<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    REQUESTS_LEFT.set(MOST_REQUESTS);
    with(&IS_IN_PLACE, true, || future.poll(&mut Context::from_waker(Waker::noop())))
}

/// Whether the future that asks is polled by [`poll_in_place`]: what it would begin to have it ready later goes on on nobody's thread.
#[inline]
pub fn is_in_place() -> bool {
    IS_IN_PLACE.get()
}

/// How long a request took that was made in place since this was asked last; one in a few is timed.
#[inline]
pub fn took_in_place() -> Option<Duration> {
    Some(TOOK.take()).filter(|took| !took.is_zero())
}

/// Does one of several things that are to go on side by side: nobody may block for one of them.
#[inline]
pub(crate) fn side_by_side<R>(act: impl FnOnce() -> R) -> R {
    with(&IS_WAITING, false, act)
}

/// Whether a request may be made here, in place: it is then to be [made](make_request).
pub(crate) fn may_make_request() -> bool {
    REQUESTS_LEFT.get() > 0 && is_in_place() && is_waiting()
}

/// A read needed no request. So many of these are too much as well.
pub(crate) async fn made_none() {
    match REQUESTS_LEFT.get().checked_sub(1) {
        Some(left) => REQUESTS_LEFT.set(left),
        None => over().await,
    }
}

/// Makes a request.
pub(crate) fn make_request<R>(request: impl FnOnce() -> R) -> R {
    REQUESTS_LEFT.set(REQUESTS_LEFT.get() - 1);
    let number = MADE.replace(MADE.get().wrapping_add(1));
    if !number.is_multiple_of(TIMED) {
        return request();
    }
    let began = Instant::now();
    let made = request();
    TOOK.set(began.elapsed());
    made
}

/// Ready where a future is not polled in place: on its shard.
pub(crate) fn over() -> impl Future<Output = ()> {
    poll_fn(|_| if is_in_place() { Poll::Pending } else { Poll::Ready(()) })
}

/// Does something under a mark, however it ends.
#[inline]
fn with<R>(mark: &'static LocalKey<Cell<bool>>, is_set: bool, act: impl FnOnce() -> R) -> R {
    struct Back(&'static LocalKey<Cell<bool>>, bool);

    impl Drop for Back {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }

    let _back = Back(mark, mark.replace(is_set));
    act()
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::path::Path;
    use std::pin::pin;

    use super::*;
    use crate::{Disk, File, IoClass, Shard, ShardOptions, join_all, run, sleep, yield_now};

    /// Polls once as who has borrowed the shard does.
    fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        waiting(|| poll_in_place(future))
    }

    /// On the thread of the shard, which is another one than who borrows it, but knows of none of this either.
    fn with_file(test: impl AsyncFn(&Disk, File) + Send + Sync) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect::<Vec<_>>()).unwrap();
        for (direct_io, io_uring) in [(false, true), (true, true), (true, false)] {
            let options = ShardOptions { direct_io, io_uring, ..ShardOptions::default() };
            run(options, async |shard: Shard| {
                let file = shard.disk().open(Path::new(&path), IoClass::default()).await.unwrap();
                test(shard.disk(), file).await;
            })
            .unwrap();
        }
    }

    async fn number_at(file: &File, place: u64) -> u32 {
        let window = file.read_exact_at(place * 4, 4).await.unwrap();
        u32::from_le_bytes((*window).try_into().unwrap())
    }

    /// What comes of a future that the shard has to begin, or to go on with; with buffered I/O the page cache answers at once.
    async fn left_to_shard<F: Future>(file: &File, mut future: Pin<&mut F>) -> F::Output {
        match poll_once(future.as_mut()) {
            Poll::Ready(output) => {
                assert_eq!(file.alignment(), 1, "it was read in place");
                output
            }
            Poll::Pending => future.await,
        }
    }

    #[test]
    fn one_read_after_the_other_is_made_at_once() {
        with_file(async |disk, file| {
            let before = disk.stats().total().requests;
            let mut reads = pin!(async { [number_at(&file, 7).await, number_at(&file, 200_000).await] });
            assert_eq!(poll_once(reads.as_mut()), Poll::Ready([7, 200_000]));
            assert_eq!(disk.stats().total().requests - before, 2);
            // Only where somebody waits.
            let mut other = pin!(number_at(&file, 9));
            let polled = side_by_side(|| poll_in_place(other.as_mut()));
            assert!(polled.is_pending() || file.alignment() == 1);
        });
    }

    /// What is begun by nobody is begun by the shard, whole.
    #[test]
    fn what_is_no_read_or_too_much_goes_on_on_the_shard() {
        with_file(async |disk, file| {
            let (own, path) = (disk.clone(), file.path().to_owned());
            let mut opens = pin!(async { own.open(&path, IoClass::default()).await.unwrap().len() });
            assert_eq!(poll_once(opens.as_mut()), Poll::Pending);
            assert_eq!(opens.await, 1 << 20);
            let mut large = pin!(async { file.read_exact_at(0, 1 << 20).await.unwrap().len() });
            assert_eq!(left_to_shard(&file, large.as_mut()).await, 1 << 20);
            let mut sleeps = pin!(sleep(Duration::from_micros(1)));
            assert_eq!(poll_once(sleeps.as_mut()), Poll::Pending);
            sleeps.await;
            let mut yields = pin!(yield_now());
            assert_eq!(poll_once(yields.as_mut()), Poll::Pending);
            yields.await;
            let mut sum = pin!(async {
                let mut sum = 0;
                for place in 0..100 {
                    sum += number_at(&file, place * 1000).await;
                }
                sum
            });
            assert_eq!(left_to_shard(&file, sum.as_mut()).await, 99 * 50 * 1000);
        });
    }

    #[test]
    fn reads_side_by_side_are_begun_by_the_shard() {
        with_file(async |disk, file| {
            let before = disk.stats().total().requests;
            let mut both = pin!(join_all([1, 2].map(|place| number_at(&file, place))));
            assert_eq!(left_to_shard(&file, both.as_mut()).await, [1, 2]);
            assert_eq!(disk.stats().total().requests - before, 2);
            // One alone is not beside others.
            let mut one = pin!(join_all([number_at(&file, 3)]));
            assert_eq!(poll_once(one.as_mut()), Poll::Ready(vec![3]));
        });
    }

    #[test]
    fn the_end_of_a_file_is_an_error_there_too() {
        with_file(async |_, file| {
            std::fs::File::options().write(true).open(file.path()).unwrap().set_len(8).unwrap();
            let mut behind = pin!(file.read_exact_at(4096, 8));
            let Poll::Ready(Err(error)) = poll_once(behind.as_mut()) else { panic!("an error") };
            assert!(error.to_string().contains("4096"), "{error}");
        });
    }

    #[test]
    fn one_request_in_a_few_is_timed() {
        with_file(async |_, file| {
            let is_buffered = file.alignment() == 1;
            took_in_place();
            let mut timed = 0;
            for place in 0..2 * u64::from(TIMED) {
                assert!(poll_once(pin!(number_at(&file, place * 999))).is_ready());
                timed += u32::from(took_in_place().is_some());
            }
            assert!(timed == 2 || (is_buffered && timed <= 2), "{timed}");
        });
    }

    #[test]
    fn a_thread_waits_for_what_it_is_in() {
        assert!(!is_waiting());
        waiting(|| {
            side_by_side(|| assert!(!is_waiting()));
            assert!(is_waiting());
        });
        assert!(catch_unwind(|| waiting(|| panic!("on purpose"))).is_err());
        assert!(!is_waiting());
    }
}
