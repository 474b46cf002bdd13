//! Whether a thread that has borrowed a shard may keep it while it waits for the disk.
//!
//! If no other thread wants the shard, this saves the hop to the shard's thread and back. Otherwise the others would wait as long as a few
//! requests take. So once another thread has waited, or the disk is so slow that the hop costs nothing in comparison, the next reads hop.
//! One slow request does not make a slow disk: most disks have some, and after each hundreds of reads would take twice the CPU time.

use std::cell::Cell;
use std::time::Duration;

/// So many reads go on on the shard before one waits in place again.
const PAUSE: u32 = 256;

/// A request that takes longer than this need not be in place: the way to the shard and back is a hundredth of it.
const LONGEST: Duration = Duration::from_millis(4);

/// After so many of those, one after the other, the disk is slow.
const SLOW: u32 = 3;

#[derive(Debug, Default)]
pub(super) struct Patience {
    /// How many reads go on on the shard first.
    pause: Cell<u32>,
    /// How many of the last requests took long, without another one in between.
    slow: Cell<u32>,
}

impl Patience {
    /// Whether the next read may wait in place. It is counted.
    pub(super) fn has_any(&self) -> bool {
        let pause = self.pause.get();
        self.pause.set(pause.saturating_sub(1));
        pause == 0
    }

    /// A read has waited in place: whether somebody else wanted the shard meanwhile, and how long a request of it took, if it is known.
    pub(super) fn note(&self, is_wanted: bool, took: Option<Duration>) {
        let slow = match took {
            Some(took) if took > LONGEST => self.slow.get() + 1,
            Some(_) => 0,
            None => self.slow.get(),
        };
        if is_wanted || slow >= SLOW {
            self.pause.set(PAUSE);
        }
        // Of a slow disk the next one that waits in place tells whether it is still slow.
        self.slow.set(slow.min(SLOW - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_somebody_waits_or_the_disk_is_slow_reads_go_on_on_the_shard() {
        let patience = Patience::default();
        let pause = || (0..).take_while(|_| !patience.has_any()).count();
        let (fast, slow) = (Some(LONGEST), Some(2 * LONGEST));
        assert_eq!(pause(), 0);
        for (is_wanted, took) in [(true, None), (true, fast)] {
            patience.note(is_wanted, took);
            assert_eq!(pause(), PAUSE as usize);
            assert_eq!(pause(), 0);
        }
        // Now and then a request is slow.
        for took in [slow, slow, fast, slow, None, slow] {
            patience.note(false, took);
            assert_eq!(pause(), 0);
        }
        for (took, paused) in [(slow, PAUSE as usize), (slow, PAUSE as usize), (fast, 0), (slow, 0)] {
            patience.note(false, took);
            assert_eq!(pause(), paused);
        }
    }
}
