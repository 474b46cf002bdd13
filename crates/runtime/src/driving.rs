//! The loop of a shard's thread: futures that were woken, then the driver, then rest.
//!
//! ```text
//! ┌─► main, tasks ──more──────────────────► driver, no wait ──┐
//! │        ├─────not to be lent───────────► driver, waits ────┤
//! │        └─────to be lent───────► asleep without the floor ─┤
//! └───────────────────────────────────────────────────────────┘
//! ```
//!
//! The driver belongs to the shard as all else does, so it cannot be waited in while the shard is lent: what is
//! waited for then is that its file descriptor has something to read.

#![expect(unsafe_code, reason = "compio gives its driver's file descriptor as a number")]

use std::future::Future;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use compio::runtime::Runtime;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::lending::Floor;
use crate::real::RealDisk;

/// So often may the future of the shard be woken before the driver is asked what else there is. With requests under way it is asked
/// each time: what one of them brought would wait behind all that is read out of memory meanwhile.
const WAKES_A_POLL: u32 = 64;

/// So long does a shard sleep at the most, lent, with requests under way. One that ends on a thread of compio's pool, as what io_uring cannot do
/// there does, may say so at the very moment of a poll, which then forgets it until the next one.
const LONGEST_WITH_REQUESTS: Duration = Duration::from_millis(10);

/// Runs a future of the shard, and its tasks beside it, until the future ends.
pub(crate) fn drive<F: Future>(runtime: &Runtime, floor: &Floor, disk: &RealDisk, future: F) -> F::Output {
    let news = Arc::new(News {
        has_come: AtomicBool::new(true),
        is_awake: AtomicBool::new(true),
        driver: runtime.waker(),
    });
    let waker = Waker::from(news.clone());
    let mut context = Context::from_waker(&waker);
    let mut rest = Rest::default();
    runtime.enter(|| {
        // In here, as it may need the runtime where it ends before its end.
        let mut future = pin!(future);
        loop {
            if news.has_come.swap(false, Ordering::Acquire) {
                if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                    runtime.run();
                    return output;
                }
                rest.wakes += 1;
            }
            let has_tasks = runtime.run();
            if has_tasks || news.has_come() {
                if has_tasks || disk.has_requests() || rest.wakes >= WAKES_A_POLL {
                    rest.poll(runtime, &news);
                }
            } else if floor.is_lent() {
                rest.lend(runtime, floor, disk, &news);
            } else if news.may_sleep() {
                rest.wait(runtime, runtime.current_timeout());
                news.awake();
            }
        }
    })
}

/// How far the shard has come to rest.
#[derive(Default)]
struct Rest {
    /// How often the future was woken since the driver was asked.
    wakes: u32,
    /// Nothing has happened since the driver was asked last: had that been told of the end of its own watch for what wakes it, it
    /// has been asked once more and has begun a new one.
    is_settled: bool,
}

impl Rest {
    /// Asks the driver what there is, and submits what it was given.
    ///
    /// It was woken before: else it would wait for at least one completion, for no time, and the kernel takes several microseconds for
    /// that, and may let another thread run.
    fn poll(&mut self, runtime: &Runtime, news: &News) {
        news.driver.wake_by_ref();
        self.wait(runtime, Some(Duration::ZERO));
    }

    fn wait(&mut self, runtime: &Runtime, timeout: Option<Duration>) {
        runtime.poll_with(timeout);
        (self.is_settled, self.wakes) = (false, 0);
    }

    /// Goes a step further to sleep, without the floor.
    fn lend(&mut self, runtime: &Runtime, floor: &Floor, disk: &RealDisk, news: &News) {
        if !self.is_settled {
            self.poll(runtime, news);
            self.is_settled = true;
            return;
        }
        if !news.may_sleep() {
            return self.poll(runtime, news);
        }
        // Who wakes the driver behind its last poll is seen by the flush, who does so later by the file descriptor.
        if !runtime.flush() {
            let longest = disk.has_requests().then_some(LONGEST_WITH_REQUESTS);
            let timeout = [longest, runtime.current_timeout()].into_iter().flatten().min();
            floor.leave();
            await_readable(runtime, timeout);
            floor.take();
        }
        news.awake();
        // It sleeps for all that it knows, and to wake it would take a system call; what woke this is there.
        self.wait(runtime, Some(Duration::ZERO));
    }
}

/// Sleeps until the driver has something to tell, for so long at the most, or until a signal comes.
fn await_readable(runtime: &Runtime, timeout: Option<Duration>) {
    // SAFETY: the runtime has the file open, and outlives this.
    let driver = unsafe { BorrowedFd::borrow_raw(runtime.as_raw_fd()) };
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut fds = [PollFd::new(&driver, PollFlags::IN)];
    // If it cannot be waited for, the driver itself will say why.
    let _ = poll(&mut fds, timeout.as_ref());
}

/// Whether the future of the shard was woken. Who wakes it wakes the driver only where that may sleep, which takes a system call.
struct News {
    has_come: AtomicBool,
    is_awake: AtomicBool,
    driver: Waker,
}

impl News {
    fn has_come(&self) -> bool {
        self.has_come.load(Ordering::Relaxed)
    }

    /// Says that the driver has to be woken from now on; whether nothing has come before that.
    fn may_sleep(&self) -> bool {
        self.is_awake.store(false, Ordering::SeqCst);
        let may_sleep = !self.has_come.load(Ordering::SeqCst);
        if !may_sleep {
            self.awake();
        }
        may_sleep
    }

    fn awake(&self) {
        self.is_awake.store(true, Ordering::Relaxed);
    }
}

impl Wake for News {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_come.store(true, Ordering::SeqCst);
        if !self.is_awake.load(Ordering::SeqCst) {
            self.driver.wake_by_ref();
        }
    }
}
