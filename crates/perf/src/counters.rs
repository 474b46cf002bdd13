//! What the processor itself counts of this thread: instructions and cycles outside of the kernel.
//!
//! Nothing is known where the machine has no such counters, as most virtual ones have not, or does not let them be read;
//! `kernel.perf_event_paranoid` may be 2 at the most. Neither is it while other programs have the counters in turn with this
//! one: what there is then is an estimate.

use std::cell::RefCell;

use perf_event::events::Hardware;
use perf_event::{Builder, Counter};

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    /// Instructions that were carried out.
    pub instructions: u64,
    /// Cycles that passed meanwhile.
    pub cycles: u64,
}

impl Counted {
    /// What was added since `earlier`.
    pub fn since(self, earlier: Counted) -> Counted {
        Counted {
            instructions: self.instructions - earlier.instructions,
            cycles: self.cycles - earlier.cycles,
        }
    }
}

thread_local! {
    /// The counters of this thread, from when somebody first asked.
    static COUNTERS: RefCell<Option<[Counter; 2]>> = RefCell::new(begun());
}

/// What was counted so far, from when this thread first asked; `None` if it is not known.
pub fn so_far() -> Option<Counted> {
    COUNTERS.with_borrow_mut(|counters| {
        let [instructions, cycles] = counters.as_mut()?.each_mut().map(read);
        Some(Counted { instructions: instructions?, cycles: cycles? })
    })
}

fn begun() -> Option<[Counter; 2]> {
    let begun = |what| {
        let mut counter = Builder::new().kind(what).build().ok()?;
        counter.enable().ok().map(|()| counter)
    };
    Some([begun(Hardware::INSTRUCTIONS)?, begun(Hardware::CPU_CYCLES)?])
}

fn read(counter: &mut Counter) -> Option<u64> {
    let read = counter.read_count_and_time().ok()?;
    (read.time_running == read.time_enabled).then_some(read.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_the_difference() {
        let counted = |instructions, cycles| Counted { instructions, cycles };
        assert_eq!(counted(90, 40).since(counted(20, 15)), counted(70, 25));
    }

    #[test]
    fn what_is_counted_grows_and_where_nothing_counts_nothing_is_known() {
        let before = so_far();
        let sum = (0..100_000_u64).fold(0, |sum, next| std::hint::black_box(sum ^ next));
        match (begun(), before, so_far()) {
            (None, before, now) => assert_eq!((before, now), (None, None)),
            (_, Some(before), Some(now)) => {
                let Counted { instructions, cycles } = now.since(before);
                assert!(instructions > 100_000 && cycles > 1000, "{sum}: {instructions}, {cycles}");
            }
            // Other programs have the counters in turn with this one.
            _ => {}
        }
    }
}
