//! Runs the futures of a simulated shard in one order: first woken, first polled; time passes when all wait.
//!
//! Time is counted in *ticks*, of a microsecond each. As long as a future can go on, no tick passes; when all wait, time
//! jumps to the earliest one that sleeps. When none sleeps either, the shard is deadlocked, which is an error instead
//! of a hang.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::error::RuntimeError;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Executor>>> = const { RefCell::new(None) };
}

/// The number of the future that [`run`] was called with.
const MAIN: u64 = 0;

type Body = Pin<Box<dyn Future<Output = ()>>>;

/// Invariants:
/// 1. A task is in `tasks` from its start until it has ended or was cancelled; its body is `None` while it is polled.
/// 2. A task is in `ready` at most once.
struct Executor {
    tasks: RefCell<BTreeMap<u64, RunningTask>>,
    ready: Arc<ReadyQueue>,
    /// Sleepers by the tick they wake at, then by the order in which they fell asleep.
    sleepers: RefCell<BTreeMap<(u64, u64), Waker>>,
    now: Cell<u64>,
    next_number: Cell<u64>,
}

struct RunningTask {
    body: Option<Body>,
    waker: Arc<TaskWaker>,
}

/// Runs `main` and what it spawns until `main` has ended; tasks that have not are dropped.
///
/// # Errors
/// [`RuntimeError::Nested`] within itself, [`RuntimeError::Deadlock`] if `main` can never end.
pub(crate) fn run<T>(seed: u64, main: impl Future<Output = T>) -> Result<T, RuntimeError> {
    let guard = Entered::enter(seed)?;
    let executor = &guard.executor;
    let main_waker = executor.waker(MAIN);
    main_waker.wake_by_ref();
    let waker = Waker::from(Arc::clone(&main_waker));
    let mut main = pin!(main);
    loop {
        while let Some(number) = executor.ready.pop() {
            if number != MAIN {
                executor.poll_task(number);
                continue;
            }
            main_waker.queued.store(false, Ordering::Relaxed);
            if let Poll::Ready(output) = main.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Ok(output);
            }
        }
        if !executor.pass_time() {
            return Err(RuntimeError::Deadlock { seed });
        }
    }
}

/// Starts `future` as a task of the simulated shard of this thread; gives it back if there is none.
pub(crate) fn try_spawn<F: Future + 'static>(future: F) -> Result<SimTask<F::Output>, F> {
    let Some(executor) = current() else { return Err(future) };
    let slot = Rc::new(Slot { output: RefCell::new(None), waiter: RefCell::new(None) });
    let result = Rc::clone(&slot);
    let body = async move {
        let output = future.await;
        result.output.replace(Some(output));
        if let Some(waiter) = result.waiter.take() {
            waiter.wake();
        }
    };
    let number = executor.next_number();
    let waker = executor.waker(number);
    let task = RunningTask { body: Some(Box::pin(body)), waker: Arc::clone(&waker) };
    executor.tasks.borrow_mut().insert(number, task);
    waker.wake_by_ref();
    Ok(SimTask { number, slot, cancels: true })
}

/// Whether this thread runs a simulated shard.
pub(crate) fn in_simulation() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Waits for a number of ticks.
///
/// # Panics
/// When polled outside of a simulated shard.
pub(crate) fn sleep(ticks: u64) -> impl Future<Output = ()> {
    Sleep { ticks, registered: None }
}

/// Waits for this long, rounded up to ticks; `None` if there is no simulated shard on this thread.
pub(crate) fn try_sleep(duration: Duration) -> Option<impl Future<Output = ()>> {
    let ticks = u64::try_from(duration.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
    current().map(|_| sleep(ticks))
}

/// The time since the simulated shard of this thread began; `None` if there is none.
pub(crate) fn try_now() -> Option<Duration> {
    CURRENT.with_borrow(|current| Some(Duration::from_micros(current.as_ref()?.now.get())))
}

fn current() -> Option<Rc<Executor>> {
    CURRENT.with_borrow(Clone::clone)
}

impl Executor {
    fn next_number(&self) -> u64 {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        number
    }

    fn waker(&self, number: u64) -> Arc<TaskWaker> {
        Arc::new(TaskWaker { number, ready: Arc::clone(&self.ready), queued: AtomicBool::new(false) })
    }

    fn poll_task(&self, number: u64) {
        let taken = self.tasks.borrow_mut().get_mut(&number).and_then(|task| {
            task.waker.queued.store(false, Ordering::Relaxed);
            Some((task.body.take()?, Waker::from(Arc::clone(&task.waker))))
        });
        // A task that was cancelled after it was woken is gone.
        let Some((mut body, waker)) = taken else { return };
        if body.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            self.cancel(number);
        } else if let Some(task) = self.tasks.borrow_mut().get_mut(&number) {
            task.body = Some(body);
        }
    }

    fn cancel(&self, number: u64) {
        // The body is dropped after the borrow: what it owns may cancel further tasks.
        let task = self.tasks.borrow_mut().remove(&number);
        drop(task);
    }

    /// Jumps to the earliest sleeper and wakes it; `false` if there is none.
    fn pass_time(&self) -> bool {
        let first = self.sleepers.borrow_mut().pop_first();
        let Some(((tick, _), waker)) = first else { return false };
        self.now.set(tick);
        waker.wake();
        true
    }

    fn drop_tasks(&self) {
        loop {
            let task = self.tasks.borrow_mut().pop_first();
            if task.is_none() {
                break;
            }
        }
    }
}

/// Makes an executor that of the thread, until dropped.
struct Entered {
    executor: Rc<Executor>,
    seed: u64,
}

impl Entered {
    fn enter(seed: u64) -> Result<Self, RuntimeError> {
        if current().is_some() {
            return Err(RuntimeError::Nested);
        }
        let executor = Rc::new(Executor {
            tasks: RefCell::default(),
            ready: Arc::default(),
            sleepers: RefCell::default(),
            now: Cell::new(0),
            next_number: Cell::new(MAIN + 1),
        });
        CURRENT.set(Some(Rc::clone(&executor)));
        Ok(Self { executor, seed })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("a simulated shard panicked; its seed is {}", self.seed);
        }
        self.executor.drop_tasks();
        CURRENT.take();
    }
}

/// The tasks that can go on, in the order in which they were woken.
///
/// Wakers must be `Send`, so that this is behind a lock, though it never leaves the thread.
#[derive(Default)]
struct ReadyQueue(Mutex<VecDeque<u64>>);

impl ReadyQueue {
    fn push(&self, number: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(number);
    }

    fn pop(&self) -> Option<u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

struct TaskWaker {
    number: u64,
    ready: Arc<ReadyQueue>,
    queued: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            self.ready.push(self.number);
        }
    }
}

/// A task of a simulated shard; resolves to its output, and cancels it when dropped before.
pub(crate) struct SimTask<T> {
    number: u64,
    slot: Rc<Slot<T>>,
    cancels: bool,
}

struct Slot<T> {
    output: RefCell<Option<T>>,
    waiter: RefCell<Option<Waker>>,
}

impl<T> SimTask<T> {
    pub(crate) fn detach(self) {
        drop(self.uncancelled());
    }

    /// The same, but dropping it lets the task go on.
    pub(crate) fn uncancelled(mut self) -> Self {
        self.cancels = false;
        self
    }
}

impl<T> Future for SimTask<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        if let Some(output) = self.slot.output.take() {
            return Poll::Ready(output);
        }
        self.slot.waiter.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}

impl<T> Drop for SimTask<T> {
    fn drop(&mut self) {
        if let Some(executor) = current().filter(|_| self.cancels) {
            executor.cancel(self.number);
        }
    }
}

struct Sleep {
    ticks: u64,
    /// The place among the sleepers, and their executor, once polled.
    registered: Option<((u64, u64), Rc<Executor>)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let ticks = self.ticks;
        let (place, executor) = self.registered.get_or_insert_with(|| {
            let executor = current().expect("delays pass only within run_simulated");
            let place = (executor.now.get().saturating_add(ticks), executor.next_number());
            (place, executor)
        });
        if executor.now.get() >= place.0 {
            return Poll::Ready(());
        }
        executor.sleepers.borrow_mut().insert(*place, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some((place, executor)) = &self.registered {
            executor.sleepers.borrow_mut().remove(place);
        }
    }
}
