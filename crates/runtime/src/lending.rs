//! An idle shard is lent: a thread with a question looks for the answer itself, and no thread is woken.
//!
//! A thread that runs anything of a shard has its *floor*. The shard's thread has it, but leaves it when there is nothing to do and the
//! shard may be lent; another thread then takes it for one look. The floor is never taken from the thread that has it.
//!
//! ```text
//! the shard's thread  ═ has the floor ═╗  leaves it, sleeps  ╔═ takes it, has it ═
//!                                      ╚╌╌┐      ┌╌┐      ┌╌╌╝
//! other threads                           └borrow┘ └borrow┘
//! ```
//!
//! To the shard, a look is like a poll of one of its own futures: it happens between two polls of others, and each thread that has the
//! floor sees what the threads before it have done.

#![expect(
    unsafe_code,
    reason = "what is lent is not `Sync`: that one thread at a time has it is not for the compiler to see"
)]

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};

/// So often is the floor looked at while others have it, each for about a microsecond.
const LOOKS: usize = 64;

/// So often are others let run after that: one of them may have the floor and no CPU.
const YIELDS: usize = 16;

/// What a shard lends, as other threads know it. Clones are the same.
pub struct Loan<T>(Arc<Place<T>>);

/// What a shard lends, as it knows it itself. It lends nothing any more once this is dropped.
pub struct Lender<T> {
    place: Arc<Place<T>>,
    /// It stays on the thread of the shard.
    stays: PhantomData<Rc<T>>,
}

/// What was lent, until it is given back by dropping this.
pub struct Borrowed<'a, T> {
    lent: &'a T,
    /// Given back behind the last use of what is lent.
    turn: Turn<'a>,
}

struct Place<T> {
    floor: Floor,
    /// Touched by who has the floor. The lender takes it away, on the shard, and with that drops it.
    lent: UnsafeCell<ManuallyDrop<Option<T>>>,
}

// SAFETY: `lent` is all that is not `Sync` or `Send`. A `Loan` touches it only while it has the floor. A `Lender` does so on the
// thread of its shard, where it was made and which it cannot leave, and which has the floor whenever it runs anything of
// the shard. It is dropped nowhere else, as a `Place` leaves it alone.
unsafe impl<T> Send for Place<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Place<T> {}

/// The right to run what belongs to a shard.
#[derive(Default)]
pub(crate) struct Floor {
    /// Who has it.
    holder: AtomicU8,
    /// The thread that waits for it where it is [`WANTED`].
    shard: OnceLock<Thread>,
    /// Whether the shard is to be lent when it rests.
    is_lent: AtomicBool,
}

/// The shard's thread has it.
const SHARD: u8 = 0;
/// The shard rests: whoever wants to may take it.
const NOBODY: u8 = 1;
/// Another thread has it.
const BORROWER: u8 = 2;
/// The same, and the shard's thread has it next.
const WANTED: u8 = 3;

/// The floor as another thread has it.
struct Turn<'f> {
    floor: &'f Floor,
    /// It is given back where it was taken.
    stays: PhantomData<Rc<()>>,
}

/// What is lent once it is offered, from outside, and the function that makes a lender of it: on the thread of the shard, while
/// that has the floor.
pub(crate) fn loan<T>() -> (Loan<T>, LenderToBe<T>) {
    let place = Arc::new(Place { floor: Floor::default(), lent: UnsafeCell::new(ManuallyDrop::new(None)) });
    (Loan(place.clone()), LenderToBe(place))
}

/// A lender that is on its way to its shard.
pub(crate) struct LenderToBe<T>(Arc<Place<T>>);

impl<T> LenderToBe<T> {
    pub(crate) fn floor(&self) -> &Floor {
        &self.0.floor
    }

    /// The lender, on the thread of the shard, which has the floor whenever it runs what knows the lender.
    pub(crate) fn arrive(&self) -> Lender<T> {
        self.0.floor.shard.get_or_init(thread::current);
        Lender { place: self.0.clone(), stays: PhantomData }
    }
}

impl<T> Loan<T> {
    /// What the shard lends, if it is at rest and lends anything.
    ///
    /// # Safety
    /// Nothing of it stays behind when it is given back, as a clone of an `Rc` in a thread-local would; nor is anything taken along
    /// that was there before, by something that is not `Send`. Nothing is asked of the shard's runtime, which is not that of
    /// this thread: no task is spawned, no sleep begun, no file read but [in place](crate::poll_in_place). To wake a future of the
    /// shard is allowed.
    #[inline]
    pub unsafe fn borrow(&self) -> Option<Borrowed<'_, T>> {
        let turn = self.0.floor.borrow()?;
        // SAFETY: this has the floor, and keeps it for as long as the reference is there.
        let lent = unsafe { &*self.0.lent.get() };
        Some(Borrowed { lent: lent.as_ref()?, turn })
    }
}

impl<T> Clone for Loan<T> {
    fn clone(&self) -> Loan<T> {
        Loan(self.0.clone())
    }
}

impl<T> Lender<T> {
    /// This is lent from now on, whenever the shard is at rest and [is to be lent](Lender::lend).
    pub fn offer(&self, lent: T) {
        drop(self.replace(Some(lent)));
    }

    /// Whether to lend what was offered when the shard rests next. It does not at first.
    pub fn lend(&self, is_lent: bool) {
        self.place.floor.is_lent.store(is_lent, Ordering::Relaxed);
    }

    /// Does something without the floor: it may be borrowed meanwhile, even though a future of the shard is being polled.
    ///
    /// # Safety
    /// What is done touches nothing of the shard, neither what it has with it nor what it calls: no waker of somebody else is woken, as
    /// that may come back to the shard by a thread-local. Whoever polls the future keeps no reference to what is lent.
    pub unsafe fn leave<R>(&self, act: impl FnOnce() -> R + Send) -> R {
        /// However that ends.
        struct Back<'f>(&'f Floor);

        impl Drop for Back<'_> {
            fn drop(&mut self) {
                self.0.take();
            }
        }

        let floor = &self.place.floor;
        floor.leave();
        let _back = Back(floor);
        act()
    }

    fn replace(&self, lent: Option<T>) -> Option<T> {
        // SAFETY: this is the thread of the shard, which has the floor; nobody else has a reference.
        let place = unsafe { &mut *self.place.lent.get() };
        std::mem::replace(place, lent)
    }
}

impl<T> Drop for Lender<T> {
    fn drop(&mut self) {
        self.lend(false);
        drop(self.replace(None));
    }
}

impl<T> Borrowed<'_, T> {
    /// Whether the shard waits for it to be given back.
    pub fn is_wanted(&self) -> bool {
        self.turn.floor.holder.load(Ordering::Relaxed) == WANTED
    }
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.lent
    }
}

impl Floor {
    pub(crate) fn is_lent(&self) -> bool {
        self.is_lent.load(Ordering::Relaxed)
    }

    /// Lets others have the floor.
    pub(crate) fn leave(&self) {
        self.holder.store(NOBODY, Ordering::Release);
    }

    /// Takes it again for the shard's thread, once who has it gives it back; nobody is given it meanwhile.
    pub(crate) fn take(&self) {
        let take = |from, to| self.holder.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed);
        while take(NOBODY, SHARD).is_err() {
            if take(BORROWER, WANTED).is_ok() {
                while self.holder.load(Ordering::Acquire) != SHARD {
                    thread::park();
                }
                return;
            }
        }
    }

    /// The floor for another thread, unless the shard is at work or wants to be. Others who have it give it back soon.
    #[inline]
    fn borrow(&self) -> Option<Turn<'_>> {
        for look in 0..LOOKS + YIELDS {
            match self.holder.compare_exchange(NOBODY, BORROWER, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(Turn { floor: self, stays: PhantomData }),
                Err(BORROWER) if look < LOOKS => std::hint::spin_loop(),
                Err(BORROWER) => thread::yield_now(),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        let Floor { holder, shard, .. } = self.floor;
        if holder.compare_exchange(BORROWER, NOBODY, Ordering::Release, Ordering::Relaxed).is_err() {
            holder.store(SHARD, Ordering::Release);
            shard.get().map_or_else(|| unreachable!("who wants it has arrived"), Thread::unpark);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::{Shard, ShardOptions, Signal, monotonic, sleep, spawn, start, yield_now};

    /// What these shards lend.
    #[derive(Default)]
    struct Lent {
        count: Cell<u64>,
        seen: Cell<u64>,
        is_over: Cell<bool>,
        changed: Signal,
    }

    /// A look at what is lent, once there is something.
    fn look<R: Send>(loan: &Loan<Rc<Lent>>, look: impl Fn(&Lent) -> R + Send) -> R {
        loop {
            // SAFETY: what is looked for is `Send`, and no look of these tests leaves anything behind.
            if let Some(lent) = unsafe { loan.borrow() } {
                return look(&lent);
            }
            thread::yield_now();
        }
    }

    fn each_driver(test: impl Fn(ShardOptions)) {
        for io_uring in [true, false] {
            test(ShardOptions { io_uring, ..ShardOptions::default() });
        }
    }

    /// Lends something until it is over, and then tells its count.
    async fn until_over(_: Shard, lender: Lender<Rc<Lent>>) -> u64 {
        let lent = Rc::<Lent>::default();
        lender.offer(lent.clone());
        lender.lend(true);
        let counts = lent.clone();
        spawn(async move {
            while !counts.is_over.get() {
                counts.count.set(counts.count.get() + 1);
                sleep(Duration::from_micros(50)).await;
                counts.count.set(counts.count.get() - 1);
                yield_now().await;
            }
        })
        .detach();
        lent.changed.until(|| lent.is_over.get().then_some(())).await;
        while Rc::strong_count(&lent) > 2 {
            yield_now().await;
        }
        lent.count.get()
    }

    fn end(lent: &Lent) {
        lent.is_over.set(true);
        lent.changed.notify();
    }

    /// Neither is a count lost that threads and the shard make without a lock of their own, nor a wake.
    #[test]
    fn one_thread_at_a_time_has_the_floor() {
        each_driver(|options| {
            let (shard, loan) = start(options, until_over).unwrap();
            let threads = [(); 3].map(|()| {
                let loan = loan.clone();
                thread::spawn(move || {
                    for _ in 0..20_000 {
                        look(&loan, |lent| lent.count.set(lent.count.get() + 1));
                    }
                })
            });
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            look(&loan, end);
            assert_eq!(shard.join().unwrap().unwrap(), 60_000);
        });
    }

    #[test]
    fn who_borrows_wakes_the_shard_from_its_sleep() {
        each_driver(|options| {
            let main = async |_, lender: Lender<Rc<Lent>>| {
                let lent = Rc::<Lent>::default();
                lender.offer(lent.clone());
                lender.lend(true);
                for turn in 1..=50 {
                    lent.changed.until(|| (lent.count.get() == turn).then_some(())).await;
                    lent.seen.set(turn);
                }
            };
            let (shard, loan) = start(options, main).unwrap();
            for turn in 1..=50 {
                // Every other time it has gone to sleep before.
                thread::sleep(Duration::from_millis(turn % 2));
                look(&loan, |lent| {
                    lent.count.set(turn);
                    lent.changed.notify();
                });
                while turn < 50 && look(&loan, |lent| lent.seen.get()) < turn {}
            }
            shard.join().unwrap().unwrap();
        });
    }

    /// The driver is waited for by its file descriptor: what is read and slept for comes nevertheless.
    #[test]
    fn what_the_shard_waits_for_comes_while_it_is_lent() {
        each_driver(|options| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            std::fs::write(&path, vec![7; 1 << 20]).unwrap();
            let main = async move |shard: Shard, lender: Lender<Rc<Lent>>| {
                lender.offer(Rc::default());
                lender.lend(true);
                let file = shard.disk().open(&path, crate::IoClass::default()).await.unwrap();
                for number in 0..100 {
                    assert_eq!(*file.read_exact_at(number * 4096, 4096).await.unwrap(), [7; 4096]);
                }
                let before = monotonic();
                sleep(Duration::from_millis(3)).await;
                assert!(monotonic() - before >= Duration::from_millis(3));
            };
            start(options, main).unwrap().0.join().unwrap().unwrap();
        });
    }

    #[test]
    fn nothing_is_lent_by_a_shard_at_work_or_one_that_does_not_want_to_or_has_ended() {
        let main = async |_, lender: Lender<Cell<i32>>| {
            lender.offer(Cell::new(7));
            // At rest, and not lent.
            sleep(Duration::from_millis(2)).await;
            lender.lend(true);
            // Lent, and not at rest.
            thread::sleep(Duration::from_millis(2));
        };
        let (shard, loan) = start(ShardOptions::default(), main).unwrap();
        while !shard.is_finished() {
            // SAFETY: nothing of it is looked at.
            assert!(unsafe { loan.borrow() }.is_none());
        }
        shard.join().unwrap().unwrap();
        // SAFETY: as above.
        assert!(unsafe { loan.borrow() }.is_none());
    }
}
