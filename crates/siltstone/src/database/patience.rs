//! Whether who borrows a shard may keep it while it waits for the disk.
//!
//! Alone it saves the way to the shard's thread and back. Others would wait for it, for up to as long as a few requests take: once one of
//! them does, or the disk is so slow that the way to the shard is nothing beside it, reads go that way for a while.

use std::cell::Cell;
use std::time::Duration;

/// So many reads go on on the shard before one waits in place again.
const PAUSE: u32 = 256;

/// A request that takes longer than this need not be in place: the way to the shard and back is a hundredth of it.
const LONGEST: Duration = Duration::from_millis(4);

/// How many reads go on on the shard first.
#[derive(Debug, Default)]
pub(super) struct Patience(Cell<u32>);

impl Patience {
    /// Whether the next read may wait in place. It is counted.
    pub(super) fn has_any(&self) -> bool {
        let pause = self.0.get();
        self.0.set(pause.saturating_sub(1));
        pause == 0
    }

    /// A read has waited in place: whether somebody else wanted the shard meanwhile, and how long a request of it took, if it is known.
    pub(super) fn note(&self, is_wanted: bool, took: Option<Duration>) {
        if is_wanted || took.is_some_and(|took| took > LONGEST) {
            self.0.set(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_somebody_waits_or_the_disk_is_slow_reads_go_on_on_the_shard() {
        let patience = Patience::default();
        let pause = || (0..).take_while(|_| !patience.has_any()).count();
        assert_eq!(pause(), 0);
        for (is_wanted, took) in [(true, None), (false, Some(2 * LONGEST)), (true, Some(LONGEST))] {
            patience.note(is_wanted, took);
            assert_eq!(pause(), PAUSE as usize);
            assert_eq!(pause(), 0);
        }
        for took in [None, Some(LONGEST)] {
            patience.note(false, took);
            assert_eq!(pause(), 0);
        }
    }
}
