//! A line of futures of one shard, of which only the first looks: whoever comes later waits behind it, and is not woken for nothing.
//!
//! With a [`Signal`] all who wait look at each change. Where a thousand wait for what one of them can have, that is a thousand looks for
//! each that goes on.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::signal::Signal;

/// Futures that wait for something which one of them can have at a time, in the order in which they came.
#[derive(Debug, Default)]
pub struct Line(RefCell<VecDeque<Rc<Signal>>>);

/// A place in a line as long as this lives; whoever is behind it looks then.
struct Place<'a> {
    line: &'a Line,
    signal: Rc<Signal>,
}

impl Line {
    /// Nobody waits yet.
    pub fn new() -> Line {
        Line::default()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// Waits behind all who have come before, and then until `look` finds something. The first looks at once, whenever it is
    /// [notified](Line::notify), and when the one before it has gone.
    pub async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        if self.is_empty()
            && let Some(found) = look()
        {
            return found;
        }
        let place = Place { line: self, signal: Rc::new(Signal::new()) };
        self.0.borrow_mut().push_back(place.signal.clone());
        place.signal.until(|| if place.is_first() { look() } else { None }).await
    }

    /// Has the first one look, if there is one.
    pub fn notify(&self) {
        // It may be woken here and now, and leave.
        let first = self.0.borrow().front().cloned();
        if let Some(first) = first {
            first.notify();
        }
    }
}

impl Place<'_> {
    fn is_first(&self) -> bool {
        self.line.0.borrow().front().is_some_and(|first| Rc::ptr_eq(first, &self.signal))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let was_first = self.is_first();
        self.line.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.signal));
        if was_first {
            self.line.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::*;
    use crate::{SimOptions, join_all, run_simulated, sleep, spawn, timeout};

    /// Something of which there are so many pieces, and how often somebody has looked for one.
    #[derive(Default)]
    struct Pieces {
        line: Line,
        left: Cell<u32>,
        looks: Cell<u32>,
    }

    impl Pieces {
        async fn take(&self) {
            let look = || {
                self.looks.update(|looks| looks + 1);
                let left = self.left.get().checked_sub(1)?;
                self.left.set(left);
                Some(())
            };
            self.line.until(look).await;
        }

        fn give(&self) {
            self.left.update(|left| left + 1);
            self.line.notify();
        }
    }

    #[test]
    fn the_first_one_alone_looks() {
        run_simulated(SimOptions::default(), async |_| {
            let (pieces, order) = (Rc::new(Pieces::default()), Rc::new(RefCell::new(Vec::new())));
            let tasks: Vec<_> = (0..100)
                .map(|number| {
                    let (pieces, order) = (pieces.clone(), order.clone());
                    spawn(async move {
                        sleep(Duration::from_millis(number)).await;
                        pieces.take().await;
                        order.borrow_mut().push(number);
                    })
                })
                .collect();
            sleep(Duration::from_millis(200)).await;
            assert!(!pieces.line.is_empty());
            for _ in 0..100 {
                pieces.give();
                sleep(Duration::from_millis(1)).await;
            }
            join_all(tasks).await;
            assert!(order.borrow().is_sorted() && pieces.line.is_empty());
            // Each as it becomes the first and when there is something; who came to an empty line before that too.
            assert_eq!(pieces.looks.get(), 201);
        })
        .unwrap();
    }

    #[test]
    fn who_goes_away_keeps_nobody() {
        run_simulated(SimOptions::default(), async |_| {
            let pieces = Pieces::default();
            let takes = async |millis| timeout(Duration::from_millis(millis), pieces.take()).await.is_some();
            let gives = async {
                sleep(Duration::from_millis(30)).await;
                pieces.give();
                false
            };
            let all: [std::pin::Pin<Box<dyn Future<Output = bool>>>; 5] = [
                Box::pin(takes(10)),
                Box::pin(takes(100)),
                Box::pin(takes(20)),
                Box::pin(takes(90)),
                Box::pin(gives),
            ];
            // The second is the first then; nobody gives anything to the one behind it.
            assert_eq!(join_all(all).await, [false, true, false, false, false]);
            assert!(pieces.line.is_empty());
        })
        .unwrap();
    }
}
