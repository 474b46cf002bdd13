//! A look at what another thread will say in a moment, before this one sleeps.
//!
//! To put a thread to sleep and wake it again takes tens of microseconds, most reads of what is in memory a few. So who
//! waits for an answer, and a shard that has nothing under way, look for a while before they sleep. Where there is but one
//! CPU, nothing can happen meanwhile, and nobody looks.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

/// For so long: about what sleeping would take.
const PATIENCE: Duration = Duration::from_micros(20);

/// So many looks for one at the clock.
const LOOKS: usize = 32;

static HAS_OTHERS: LazyLock<bool> =
    LazyLock::new(|| thread::available_parallelism().is_ok_and(|count| count.get() > 1));

/// What `look` finds, at once or in a moment.
pub(super) fn spin<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let found = look();
    if found.is_some() || !*HAS_OTHERS {
        return found;
    }
    let began = Instant::now();
    loop {
        for _ in 0..LOOKS {
            std::hint::spin_loop();
            let found = look();
            if found.is_some() {
                return found;
            }
        }
        if began.elapsed() >= PATIENCE {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_and_what_is_not_is_given_up() {
        assert_eq!(spin(|| Some(7)), Some(7));
        let mut looks = 0;
        assert_eq!(
            spin::<()>(|| {
                looks += 1;
                None
            }),
            None
        );
        // With more than one CPU, how often is a matter of who else wants them.
        match *HAS_OTHERS {
            true => assert!(looks > LOOKS, "{looks}"),
            false => assert_eq!(looks, 1),
        }
    }
}
