//! Which reads may run now: every read holds a permit for the memory that it takes.
//!
//! Beyond the limit, reads wait in the order in which they came. The queue is bounded, and so is the wait: a read that cannot be admitted
//! fails with an error that says so, and nothing grows without bound. A read that alone is larger than the limit is admitted when no other
//! read runs.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use runtime::Line;

use crate::{Error, Result};

/// How much may be read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdmissionOptions {
    /// Bytes of memory that all reads together may take. Default 64 MiB.
    pub memory: usize,
    /// How many reads may be under way. Default 100, as many as a disk has use for.
    pub reads: usize,
    /// How many more may wait. Default 1000.
    pub waiting: usize,
    /// How long one waits at the most. Default 5 s, Cassandra's for reads.
    pub patience: Duration,
}

impl Default for AdmissionOptions {
    fn default() -> AdmissionOptions {
        AdmissionOptions { memory: 64 << 20, reads: 100, waiting: 1000, patience: Duration::from_secs(5) }
    }
}

/// Lets reads in. Clones are the same.
#[derive(Clone, Debug)]
pub struct Admission(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    options: AdmissionOptions,
    stats: Cell<AdmissionStats>,
    waiting: Line,
}

/// What has been let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AdmissionStats {
    /// Reads under way.
    pub reads: usize,
    /// Bytes that they hold.
    pub memory: usize,
    /// Reads that had to wait, since the start.
    pub waited: u64,
    /// Reads that were turned away, since the start.
    pub refused: u64,
}

/// What a read holds while it is under way.
#[derive(Debug)]
pub struct Permit {
    admission: Admission,
    bytes: usize,
}

impl Admission {
    /// Lets in what the options say.
    pub fn new(options: AdmissionOptions) -> Admission {
        Admission(Rc::new(Inner { options, stats: Cell::default(), waiting: Line::new() }))
    }

    /// A permit for a read that takes about so many bytes. What would take more than there is takes all.
    ///
    /// # Errors
    /// [`Error::Overloaded`] if too many wait already, or this one waited for too long.
    pub async fn admit(&self, bytes: usize) -> Result<Permit> {
        if let Some(permit) = self.try_admit(bytes) {
            return Ok(permit);
        }
        let AdmissionOptions { waiting: most, patience, memory, .. } = self.0.options;
        let bytes = bytes.min(memory);
        if self.0.waiting.len() >= most {
            return Err(self.refuse(format!("{most} reads are waiting already")));
        }
        self.note(|stats| stats.waited += 1);
        let permit = self.0.waiting.until(|| self.has_room(bytes).then(|| self.let_in(bytes)));
        let permit = runtime::timeout(patience, permit).await;
        permit.ok_or_else(|| self.refuse(format!("a read has waited for {patience:?}")))
    }

    /// The same permit, if there is no need to wait for it.
    pub fn try_admit(&self, bytes: usize) -> Option<Permit> {
        let bytes = bytes.min(self.0.options.memory);
        (self.0.waiting.is_empty() && self.has_room(bytes)).then(|| self.let_in(bytes))
    }

    /// What has been let in.
    pub fn stats(&self) -> AdmissionStats {
        self.0.stats.get()
    }

    fn has_room(&self, bytes: usize) -> bool {
        let AdmissionStats { reads, memory, .. } = self.stats();
        reads == 0 || (reads < self.0.options.reads && memory.saturating_add(bytes) <= self.0.options.memory)
    }

    fn let_in(&self, bytes: usize) -> Permit {
        self.note(|stats| {
            stats.reads += 1;
            stats.memory += bytes;
        });
        Permit { admission: self.clone(), bytes }
    }

    fn refuse(&self, why: String) -> Error {
        self.note(|stats| stats.refused += 1);
        Error::Overloaded(why)
    }

    fn note(&self, change: impl FnOnce(&mut AdmissionStats)) {
        let mut stats = self.0.stats.get();
        change(&mut stats);
        self.0.stats.set(stats);
    }
}

impl Permit {
    /// The read takes so many bytes in all, if there is room for that or it is the only one. If not, the permit is as it was: give it back
    /// before you wait for a larger one, or those who do may wait for each other.
    pub fn try_grow(&mut self, bytes: usize) -> bool {
        let more = bytes.min(self.admission.0.options.memory).saturating_sub(self.bytes);
        let AdmissionStats { reads, memory, .. } = self.admission.stats();
        let has_room = reads == 1 || memory.saturating_add(more) <= self.admission.0.options.memory;
        if has_room {
            self.bytes += more;
            self.admission.note(|stats| stats.memory += more);
        }
        has_room
    }

    /// Bytes that the read holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.note(|stats| {
            stats.reads -= 1;
            stats.memory -= self.bytes;
        });
        self.admission.0.waiting.notify();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use runtime::{SimOptions, run_simulated, spawn, yield_now};

    use super::*;

    fn options() -> AdmissionOptions {
        AdmissionOptions { memory: 100, reads: 3, waiting: 2, patience: Duration::from_secs(1) }
    }

    async fn settle() {
        for _ in 0..20 {
            yield_now().await;
        }
    }

    #[test]
    fn who_waits_is_let_in_in_order() {
        run_simulated(SimOptions::default(), async |_| {
            let admission = Admission::new(options());
            let first = admission.admit(60).await.unwrap();
            let order: Rc<RefCell<Vec<usize>>> = Rc::default();
            for bytes in [70, 10] {
                let (admission, order) = (admission.clone(), order.clone());
                spawn(async move {
                    let permit = admission.admit(bytes).await.unwrap();
                    order.borrow_mut().push(permit.bytes());
                })
                .detach();
            }
            settle().await;
            // There would be room for the second, but it is not its turn.
            assert_eq!((admission.stats().memory, order.borrow().len()), (60, 0));
            drop(first);
            settle().await;
            assert_eq!(*order.borrow(), [70, 10]);
            assert_eq!((admission.stats().memory, admission.stats().reads), (0, 0));
        })
        .unwrap();
    }

    #[test]
    fn a_full_queue_turns_away_and_patience_ends() {
        run_simulated(SimOptions::default(), async |_| {
            let admission = Admission::new(options());
            // Larger than the limit, whatever that is, but alone: it takes all.
            let first = admission.admit(usize::MAX).await.unwrap();
            let waiting: Vec<_> = (0..2)
                .map(|_| {
                    let admission = admission.clone();
                    spawn(async move { admission.admit(1).await.map(drop) })
                })
                .collect();
            settle().await;
            assert!(matches!(admission.admit(1).await, Err(Error::Overloaded(_))));
            for waiting in waiting {
                let error = waiting.await.unwrap_err().to_string();
                assert!(error.starts_with("overloaded: a read has waited for 1s"), "{error}");
            }
            assert_eq!((admission.stats().waited, admission.stats().refused), (2, 3));
            drop(first);
            assert_eq!(admission.stats().memory, 0);
            assert!(admission.admit(1).await.is_ok());
        })
        .unwrap();
    }

    #[test]
    fn a_permit_grows_where_there_is_room() {
        run_simulated(SimOptions::default(), async |_| {
            let admission = Admission::new(options());
            let (mut first, mut second) =
                (admission.admit(10).await.unwrap(), admission.admit(10).await.unwrap());
            assert!(first.try_grow(90) && !second.try_grow(11) && second.try_grow(5));
            assert_eq!((first.bytes(), second.bytes(), admission.stats().memory), (90, 10, 100));
            drop(first);
            assert!(second.try_grow(usize::MAX), "it is the only one, and takes all that there is");
            assert_eq!((second.bytes(), admission.stats().memory), (100, 100));
            drop(second);
            assert_eq!(admission.stats().memory, 0);
        })
        .unwrap();
    }

    #[test]
    fn who_goes_away_makes_way_for_those_behind() {
        for is_dropped in [false, true] {
            run_simulated(SimOptions::default(), async |_| {
                let admission = Admission::new(options());
                let first = admission.admit(60).await.unwrap();
                let admit = |bytes| {
                    let admission = admission.clone();
                    spawn(async move { admission.admit(bytes).await })
                };
                let mut large = Some(admit(70));
                runtime::sleep(Duration::from_millis(900)).await;
                let small = admit(10);
                if is_dropped {
                    drop(large.take());
                }
                runtime::sleep(Duration::from_millis(300)).await;
                assert_eq!((admission.stats().memory, first.bytes()), (70, 60));
                assert_eq!(small.await.unwrap().bytes(), 10);
            })
            .unwrap();
        }
    }

    #[test]
    fn who_goes_away_leaves_nothing_behind() {
        run_simulated(SimOptions::default(), async |_| {
            let admission = Admission::new(options());
            let first = admission.admit(100).await.unwrap();
            let task = {
                let admission = admission.clone();
                spawn(async move { admission.admit(50).await.map(drop) })
            };
            settle().await;
            drop(task);
            settle().await;
            drop(first);
            settle().await;
            assert_eq!((admission.stats().memory, admission.stats().reads), (0, 0));
        })
        .unwrap();
    }
}
