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

    /// Holds where there are counters as well as where there are none.
    #[test]
    fn what_is_counted_only_grows() {
        let before = so_far();
        let sum = std::hint::black_box((0..100_000_u64).fold(0, |sum, next| sum ^ next));
        let now = so_far();
        if let (Some(before), Some(now)) = (before, now) {
            let Counted { instructions, cycles } = now.since(before);
            assert!(instructions > 10_000 && cycles > 1000, "{sum}: {instructions}, {cycles}");
        }
    }
}
