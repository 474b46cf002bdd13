//! One at a time for each key: counters, and rows that may be new, are read before they are written.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use runtime::Line;

/// The keys that somebody has, or waits for.
#[derive(Debug, Default)]
pub(super) struct Locks(RefCell<BTreeMap<Vec<u8>, Rc<OfKey>>>);

#[derive(Debug, Default)]
struct OfKey {
    is_taken: Cell<bool>,
    line: Line,
}

/// Whoever has this has the key, or waits for it.
#[derive(Debug)]
pub(super) struct Lock<'a> {
    locks: &'a Locks,
    key: Vec<u8>,
    of_key: Rc<OfKey>,
    has_it: bool,
}

impl Locks {
    /// Waits until nobody else has the key.
    pub(super) async fn lock(&self, key: &[u8]) -> Lock<'_> {
        let of_key = self.0.borrow_mut().entry(key.to_vec()).or_default().clone();
        let mut lock = Lock { locks: self, key: key.to_vec(), of_key, has_it: false };
        let OfKey { is_taken, line } = &*lock.of_key;
        line.until(|| (!is_taken.replace(true)).then_some(())).await;
        lock.has_it = true;
        lock
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        if self.has_it {
            self.of_key.is_taken.set(false);
            self.of_key.line.notify();
        }
        // The last one of those who have it or wait.
        if Rc::strong_count(&self.of_key) == 2 {
            self.locks.0.borrow_mut().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runtime::{SimOptions, join_all, run_simulated, sleep, timeout};

    use super::*;

    #[test]
    fn one_after_the_other_has_a_key() {
        run_simulated(SimOptions::default(), async |_| {
            let (locks, order) = (Locks::default(), RefCell::new(Vec::new()));
            let are_had = [Cell::new(false), Cell::new(false)];
            let work = (0..50).map(async |number: u64| {
                sleep(Duration::from_micros(number)).await;
                let (key, is_had) = match number.is_multiple_of(2) {
                    true => (b"even", &are_had[0]),
                    false => (b"odd.", &are_had[1]),
                };
                let lock = locks.lock(key).await;
                assert!(!is_had.replace(true), "somebody else has it");
                sleep(Duration::from_millis(1)).await;
                is_had.set(false);
                order.borrow_mut().push(number);
                drop(lock);
            });
            join_all(work).await;
            let order = order.take();
            let (even, odd): (Vec<u64>, Vec<u64>) =
                order.into_iter().partition(|number| number.is_multiple_of(2));
            assert!(even.is_sorted() && odd.is_sorted() && even.len() == 25, "in the order of their coming");
            assert!(locks.0.borrow().is_empty(), "of keys that nobody has nothing is kept");
        })
        .unwrap();
    }

    #[test]
    fn who_gives_up_leaves_the_key_to_others() {
        run_simulated(SimOptions::default(), async |_| {
            let locks = Locks::default();
            let first = locks.lock(b"k").await;
            let waits =
                async |millis| timeout(Duration::from_millis(millis), locks.lock(b"k")).await.is_some();
            let frees = async {
                sleep(Duration::from_millis(20)).await;
                drop(first);
                true
            };
            let all: [std::pin::Pin<Box<dyn Future<Output = bool>>>; 3] =
                [Box::pin(waits(10)), Box::pin(waits(1000)), Box::pin(frees)];
            assert_eq!(join_all(all).await, [false, true, true]);
            assert!(locks.0.borrow().is_empty());
        })
        .unwrap();
    }
}
