//! The time of a shard: the machine's, or one that only a test moves.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

/// Tells the wall-clock time; for the times that are written into data and for expiry, not for measuring.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The clock of the machine.
    Real,
    /// A clock that stands still until it is set or advanced, while others sleep too.
    Simulated(SimClock),
}

impl Clock {
    /// The time since the Unix epoch. A machine whose clock is set before it counts as at the epoch.
    pub fn now(&self) -> Duration {
        match self {
            Self::Real => SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default(),
            Self::Simulated(clock) => clock.now(),
        }
    }

    /// The time in whole seconds since the Unix epoch, rounded down.
    pub fn now_seconds(&self) -> i64 {
        i64::try_from(self.now().as_secs()).unwrap_or(i64::MAX)
    }

    /// The simulated clock, to be moved; `None` for the real one.
    pub fn as_simulated(&self) -> Option<&SimClock> {
        match self {
            Self::Real => None,
            Self::Simulated(clock) => Some(clock),
        }
    }
}

/// A clock that stands still until it is set or advanced; [`sleep`](crate::sleep) does not move it. Clones are the same
/// clock.
#[derive(Debug, Clone)]
pub struct SimClock(Rc<Cell<Duration>>);

impl SimClock {
    /// What a new simulated clock shows: 2020-01-01 00:00:00 UTC, since the Unix epoch.
    pub const START: Duration = Duration::from_secs(1_577_836_800);

    /// The time since the Unix epoch.
    pub fn now(&self) -> Duration {
        self.0.get()
    }

    /// Sets the time since the Unix epoch; backwards too.
    pub fn set(&self, now: Duration) {
        self.0.set(now);
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        self.0.set(self.0.get() + by);
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self(Rc::new(Cell::new(Self::START)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_moves_only_when_told() {
        let sim = SimClock::default();
        let clock = Clock::Simulated(sim.clone());
        assert_eq!(clock.now_seconds(), 1_577_836_800);
        sim.advance(Duration::from_millis(1500));
        assert_eq!(clock.now_seconds(), 1_577_836_801);
        assert_eq!(clock.now().as_micros(), 1_577_836_801_500_000);
        sim.set(Duration::from_secs(5));
        assert_eq!(clock.now(), Duration::from_secs(5));
    }

    #[test]
    fn the_real_clock_is_past_the_start_of_the_simulated_one() {
        assert!(Clock::Real.now() > SimClock::START);
        assert!(Clock::Real.as_simulated().is_none());
    }
}
