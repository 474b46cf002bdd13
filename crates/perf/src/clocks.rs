//! The time that passes, and what of it the thread is on a processor.

use std::ops::AddAssign;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

/// Both clocks of a thread, at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    wall: Instant,
    cpu: Duration,
}

/// What passed between two moments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Passed {
    /// On the wall.
    pub(crate) wall: Duration,
    /// Of the thread on a processor.
    pub(crate) cpu: Duration,
}

impl Clocks {
    /// Now, of the thread that asks.
    pub(crate) fn now() -> Clocks {
        let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
        let cpu = cpu.expect("every thread has a clock").into();
        Clocks { wall: Instant::now(), cpu }
    }

    /// What has passed since; the same thread asks.
    pub(crate) fn passed(&self) -> Passed {
        Clocks::now().since(self)
    }

    /// What passed from an earlier moment to this one.
    pub(crate) fn since(&self, earlier: &Clocks) -> Passed {
        let wall = self.wall - earlier.wall;
        // The clocks are not read at one moment: of a few microseconds one would tell more than the other.
        Passed { wall, cpu: self.cpu.saturating_sub(earlier.cpu).min(wall) }
    }
}

impl AddAssign for Passed {
    fn add_assign(&mut self, other: Passed) {
        self.wall += other.wall;
        self.cpu += other.cpu;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_is_on_no_processor() {
        let clocks = Clocks::now();
        std::thread::sleep(Duration::from_millis(50));
        let passed = clocks.passed();
        assert!(passed.wall >= Duration::from_millis(50) && passed.cpu < passed.wall / 2, "{passed:?}");
    }
}
