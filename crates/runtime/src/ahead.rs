//! Reads that begin before anybody wants their bytes. What nobody takes in the end was read in vain, and is counted.

use crate::error::IoError;
use crate::file::{File, Window};

/// Bytes that were read ahead. Unless they are [taken](Ahead::take), the read counts as [dropped](crate::IoStats::dropped).
#[derive(Debug)]
pub struct Ahead {
    file: File,
    /// None while the disk is asked.
    window: Option<Window>,
    /// Whether its bytes were taken, or an error was told: then it was not in vain.
    is_settled: bool,
}

impl File {
    /// Reads as [`File::read_behind_room_at`] does, what may turn out not to be wanted.
    ///
    /// # Errors
    /// As there.
    pub async fn read_ahead_at(self, offset: u64, len: usize, room: usize) -> Result<Ahead, IoError> {
        let mut ahead = Ahead { file: self, window: None, is_settled: false };
        match ahead.file.read_behind_room_at(offset, len, room).await {
            Ok(window) => {
                ahead.window = Some(window);
                Ok(ahead)
            }
            Err(error) => {
                ahead.is_settled = true;
                Err(error)
            }
        }
    }
}

impl Ahead {
    /// The bytes.
    pub fn take(mut self) -> Window {
        self.is_settled = true;
        self.window.take().expect("the disk has answered")
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if !self.is_settled {
            self.file.counters().record_dropped();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{IoClass, Shard, SimOptions, run_simulated, spawn, yield_now};

    async fn file(shard: &Shard) -> File {
        let path = Path::new("/t/a");
        shard.disk().as_simulated().unwrap().add_file(path, vec![7; 4096]);
        shard.disk().open(path, IoClass::default()).await.unwrap()
    }

    #[test]
    fn what_is_taken_was_not_in_vain() {
        run_simulated(SimOptions::default(), async |shard| {
            let ahead = file(&shard).await.read_ahead_at(10, 20, 0).await.unwrap();
            assert_eq!(&*ahead.take(), [7; 20]);
            assert_eq!((shard.disk().stats().total().requests, shard.disk().stats().dropped()), (1, 0));
        })
        .unwrap();
    }

    #[test]
    fn what_nobody_takes_is_counted_once_the_disk_was_asked() {
        run_simulated(SimOptions { max_delay: 10, ..SimOptions::default() }, async |shard| {
            let file = file(&shard).await;
            let dropped = || shard.disk().stats().dropped();
            drop(spawn(file.clone().read_ahead_at(0, 9, 0)));
            yield_now().await;
            assert_eq!((shard.disk().stats().total().requests, dropped()), (0, 0), "it never began");
            let under_way = spawn(file.clone().read_ahead_at(0, 9, 0));
            yield_now().await;
            assert_eq!((shard.disk().stats().total().requests, dropped()), (1, 0));
            drop(under_way);
            yield_now().await;
            assert_eq!(dropped(), 1);
            drop(file.clone().read_ahead_at(0, 9, 0).await.unwrap());
            assert_eq!(dropped(), 2);
        })
        .unwrap();
    }

    #[test]
    fn errors_are_not_in_vain() {
        run_simulated(SimOptions::default(), async |shard| {
            assert!(file(&shard).await.read_ahead_at(4000, 200, 0).await.is_err());
            assert_eq!(shard.disk().stats().dropped(), 0);
        })
        .unwrap();
    }
}
