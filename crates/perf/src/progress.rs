//! How far something is that takes long, told now and then.

use std::time::{Duration, Instant};

/// How often it is told.
const PATIENCE: Duration = Duration::from_secs(5);

/// When it was told last, or has begun.
#[derive(Debug)]
pub(crate) struct Progress(Instant);

impl Progress {
    /// Of something that begins now.
    pub(crate) fn begin() -> Progress {
        Progress(Instant::now())
    }

    /// Says how far it is, if nobody has heard of it for a while.
    pub(crate) fn tell(&mut self, how_far: impl FnOnce() -> String) {
        if self.0.elapsed() >= PATIENCE {
            self.0 = Instant::now();
            eprintln!("{}", how_far());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_now_and_then() {
        let mut told = 0;
        let mut say = || {
            told += 1;
            String::new()
        };
        let mut progress = Progress::begin();
        progress.tell(&mut say);
        progress.0 -= PATIENCE;
        progress.tell(&mut say);
        progress.tell(&mut say);
        assert_eq!(told, 1);
    }
}
