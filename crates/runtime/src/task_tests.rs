//! Tasks behave alike on a real and on a simulated shard.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::*;
use crate::everywhere::everywhere;

/// Notes when it is dropped.
struct Noted(Rc<Cell<u32>>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn outputs_come_in_the_order_of_the_futures() {
    everywhere(async |_| {
        let ended = RefCell::new(Vec::new());
        let futures = [3, 1, 2].map(|yields| {
            let ended = &ended;
            async move {
                for _ in 0..yields {
                    yield_now().await;
                }
                ended.borrow_mut().push(yields);
                yields
            }
        });
        assert_eq!(join_all(futures).await, [3, 1, 2]);
        assert_eq!(*ended.borrow(), [1, 2, 3]);
        assert_eq!(join_all(Vec::<std::future::Ready<u32>>::new()).await, []);
    });
}

#[test]
fn a_task_goes_on_while_its_starter_does() {
    everywhere(async |_| {
        let steps = Rc::new(Cell::new(0));
        let counted = Rc::clone(&steps);
        let task = spawn(async move {
            for _ in 0..5 {
                counted.set(counted.get() + 1);
                yield_now().await;
            }
            "done"
        });
        while steps.get() < 5 {
            yield_now().await;
        }
        assert_eq!(task.await, "done");
    });
}

#[test]
fn a_dropped_task_is_cancelled_and_a_detached_one_goes_on() {
    everywhere(async |_| {
        let drops = Rc::new(Cell::new(0));
        let noted = Noted(Rc::clone(&drops));
        let task = spawn(async move {
            let _noted = noted;
            std::future::pending::<()>().await;
        });
        yield_now().await;
        assert_eq!(drops.get(), 0);
        drop(task);
        while drops.get() == 0 {
            yield_now().await;
        }

        let noted = Noted(Rc::clone(&drops));
        spawn(async move {
            let _noted = noted;
            yield_now().await;
        })
        .detach();
        while drops.get() == 1 {
            yield_now().await;
        }
    });
}

#[test]
fn tasks_may_start_and_cancel_tasks() {
    everywhere(async |_| {
        let outer = spawn(async {
            let pending = spawn(std::future::pending::<()>());
            let inner = spawn(async { 1 });
            let output = inner.await + 1;
            drop(pending);
            output
        });
        assert_eq!(outer.await, 2);
    });
}

#[test]
fn tasks_that_have_not_ended_end_with_the_shard() {
    everywhere(async |_| {
        let waits = spawn(async {
            let inner = spawn(std::future::pending::<()>());
            inner.await;
        });
        waits.detach();
        yield_now().await;
    });
}
