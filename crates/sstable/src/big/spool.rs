//! Bytes of which nobody knows beforehand how many there will be: kept in memory, beyond a limit in a file.
//!
//! A promoted index begins with its length, which is known only at its end, and has no bound but that of the
//! partition. What was spooled is read back once, from its start, and the file is gone again.

use std::ops::AsyncFnMut;
use std::path::PathBuf;

use runtime::{Disk, spawn, yield_now};

use crate::Result;
use crate::appending::Appending;
use crate::component::INDEX_IO;

/// So much is kept in memory; as much again while it is appended to the file. Bytes.
const LIMIT: usize = 1 << 20;
/// So much is read back at a time. Bytes.
const STEP: u64 = 256 << 10;

/// Bytes that are appended and, at some time, drained.
///
/// Invariant: `len` is the length of the file and of `memory` together.
pub(crate) struct Spool {
    disk: Disk,
    path: PathBuf,
    memory: Vec<u8>,
    file: Option<Appending>,
    len: u64,
}

impl Spool {
    /// An empty one, whose file would be at `path`.
    pub(crate) fn new(disk: &Disk, path: PathBuf) -> Spool {
        Spool { disk: disk.clone(), path, memory: Vec::new(), file: None, len: 0 }
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Lets `put` append bytes.
    pub(crate) fn append(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        let before = self.memory.len();
        put(&mut self.memory);
        self.len += (self.memory.len() - before) as u64;
    }

    /// Whether [`Spool::spill`] is due.
    pub(crate) fn is_full(&self) -> bool {
        self.memory.len() >= LIMIT
    }

    /// Begins to move what is in memory into the file.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn spill(&mut self) -> Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => Appending::new(self.disk.create(&self.path, INDEX_IO).await?),
        };
        self.memory = file.append(std::mem::take(&mut self.memory)).await?;
        self.file = Some(file);
        Ok(())
    }

    /// Hands out all bytes, piece by piece, and is empty afterwards.
    ///
    /// # Errors
    /// What the operating system says, and what `take` does.
    pub(crate) async fn drain(&mut self, mut take: impl AsyncFnMut(&[u8]) -> Result<()>) -> Result<()> {
        if let Some(mut spilled) = self.file.take() {
            spilled.idle().await?;
            let file = self.disk.open(&self.path, INDEX_IO).await?;
            let read = |at: u64| {
                let (file, len) = (file.clone(), STEP.min(spilled.len() - at));
                spawn(async move { file.read_exact_at(at, len as usize).await })
            };
            let (mut reading, mut at) = (read(0), STEP);
            while at < spilled.len() {
                // The next piece is read while this one is taken.
                let piece = std::mem::replace(&mut reading, read(at)).await?;
                yield_now().await;
                take(&piece).await?;
                at += STEP;
            }
            take(&reading.await?).await?;
            self.disk.remove(&self.path).await?;
        }
        take(&self.memory).await?;
        self.clear();
        Ok(())
    }

    /// Forgets all bytes, those in the file too.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) async fn discard(&mut self) -> Result<()> {
        if let Some(mut spilled) = self.file.take() {
            spilled.idle().await?;
            self.disk.remove(&self.path).await?;
        }
        self.clear();
        Ok(())
    }

    /// Forgets what is in memory, once nothing is left in the file.
    fn clear(&mut self) {
        self.memory.clear();
        self.len = 0;
    }
}

impl std::fmt::Debug for Spool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spool").field("path", &self.path).field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use runtime::{SimOptions, run_simulated};

    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        run_simulated(SimOptions::default(), async |shard| {
            shard.disk().create_dir_all(Path::new("/t")).await.unwrap();
            let mut spool = Spool::new(shard.disk(), "/t/spool.tmp".into());
            for len in [0, 10, LIMIT, 3 * LIMIT + 5, 7] {
                let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
                for piece in bytes.chunks(100_000) {
                    spool.append(|to| to.extend_from_slice(piece));
                    if spool.is_full() {
                        spool.spill().await.unwrap();
                    }
                }
                assert_eq!(spool.len(), len as u64);
                let mut drained = Vec::new();
                spool
                    .drain(async |piece| {
                        drained.extend_from_slice(piece);
                        Ok(())
                    })
                    .await
                    .unwrap();
                assert!(drained == bytes && spool.len() == 0);
                assert!(!shard.disk().exists(Path::new("/t/spool.tmp")), "the file is gone again");
            }
        })
        .unwrap();
    }
}
